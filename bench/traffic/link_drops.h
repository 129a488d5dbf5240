/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What links dropped that no program of ours saw: an interface's own counters (ethtool -S), those
 * that count drops and errors, and tx_dropped (ip -s link). A veth whose NAPI thread does not get a
 * CPU has room for 256 frames; what is redirected to it then is dropped by the kernel
 * (tx_queue_0_xdp_xmit_errors of the one end or rx_queue_0_drops of the other), and what a host
 * sends (tx_dropped of the host's end).
 *
 * Example: before: tor1 eth1 rx_queue_0_drops 3; after: 17. The row says 14.
 */
#ifndef BARLINE_CLI_LINK_DROPS_H
#define BARLINE_CLI_LINK_DROPS_H

#include <jansson.h>

struct link_drops;
/**
 * link_drops_begin - the counters now, of the namespaces bound in @netns_dir; NULL: of this one.
 * NULL, after a message, if they cannot be read.
 */
struct link_drops *link_drops_begin(const char *netns_dir);
/**
 * link_drops_end - adds a row of "drops" for each counter that grew, kind "link"; frees. NULL is
 * allowed and adds nothing.
 */
void link_drops_end(struct link_drops *d, json_t *rows);

#endif
