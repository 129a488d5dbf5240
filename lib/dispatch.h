/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ring: its records, and the handler of each opcode. */
#ifndef BARLINE_LIB_DISPATCH_H
#define BARLINE_LIB_DISPATCH_H

#include "internal.h"

/**
 * bl_rx_drain - read the barriers, then empty the ring and pass each record to its handler.
 * Returns bl_failures_last() as it was between the barriers and the ring.
 */
uint64_t bl_rx_drain(struct bl_endpoint *ep);

#endif
