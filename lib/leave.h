/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Last words of an endpoint that leaves by bl_exit(). */
#ifndef BARLINE_LIB_LEAVE_H
#define BARLINE_LIB_LEAVE_H

#include "internal.h"

/** bl_rx_leave - tell senders of best-effort messages what was delivered, and what will not be. */
void bl_rx_leave(struct bl_endpoint *ep);

/** bl_rrx_leave - tell senders of reliable messages that the window of this endpoint is open. */
void bl_rrx_leave(struct bl_endpoint *ep);

#endif
