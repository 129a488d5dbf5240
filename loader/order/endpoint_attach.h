/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The socket of a host at which processes become endpoints; endpoint_attach.c. */
#ifndef BARLINE_ENDPOINT_ATTACH_H
#define BARLINE_ENDPOINT_ATTACH_H

#include "base/log.h"

struct bl_node;

/**
 * bl_endpoints_open - adopts the endpoints of an earlier daemon and listens for new ones. Returns 0
 * or -errno.
 */
int bl_endpoints_open(struct bl_node *n, struct bl_err *err);

/** bl_endpoints_close - ends service; the endpoints stay in the maps for the next daemon. */
void bl_endpoints_close(struct bl_node *n);

#endif
