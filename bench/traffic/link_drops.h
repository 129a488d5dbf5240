/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that links dropped before a program of ours counted them: the counters of an interface for
 * drops and errors (ethtool -S), and tx_dropped (ip -s link). A veth whose NAPI thread does not get
 * a CPU has room for 256 frames. Further frames that are redirected to it are dropped by the kernel
 * (tx_queue_0_xdp_xmit_errors of one end or rx_queue_0_drops of the other), and so are those that a
 * host sends (tx_dropped of the host's end).
 *
 * Example: rx_queue_0_drops of eth1 on tor1 is 3 at the beginning and 17 at the end. The row
 * has 14.
 */
#ifndef BARLINE_BENCH_LINK_DROPS_H
#define BARLINE_BENCH_LINK_DROPS_H

#include <jansson.h>

struct link_drops;
/**
 * link_drops_begin - Reads the counters of the namespaces that are bound in @netns_dir; NULL: of
 * the current one. Returns NULL after a message.
 */
struct link_drops *link_drops_begin(const char *netns_dir);
/**
 * link_drops_end - Adds a row with the kind "link" to the array @rows for each counter that grew,
 * and frees @d. NULL is allowed and adds nothing.
 */
void link_drops_end(struct link_drops *d, json_t *rows);

#endif
