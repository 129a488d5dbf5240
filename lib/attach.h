/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The memory of an endpoint's peers, for bl_exit() and for tests that build endpoints. */
#ifndef BARLINE_LIB_ATTACH_H
#define BARLINE_LIB_ATTACH_H

#include "internal.h"

/** bl_peers_free - free all peers and the table of their addresses. */
void bl_peers_free(struct bl_endpoint *ep);

#endif
