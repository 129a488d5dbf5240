/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Just enough rtnetlink to build a rack, and bl0 on a host: veth pairs, a bridge, addresses, routes
 * over several next hops, neighbours. A socket belongs to the network namespace that it was opened
 * in. All return 0 or -errno.
 */
#ifndef BARLINE_NL_H
#define BARLINE_NL_H

#include <stdbool.h>
#include <stdint.h>

struct nl {
	int fd;
	uint32_t seq;
};
struct nl_end {
	const char *name;
	uint8_t mac[6];
};
struct nl_hop {
	unsigned int ifindex;
	const uint8_t *via; /* NULL: on link */
};

int nl_open(struct nl *nl);
void nl_close(struct nl *nl);
/** nl_veth - a pair: @a here, @b in the namespace @b_netns (-1: here too). */
int nl_veth(struct nl *nl, const struct nl_end *a, const struct nl_end *b, int b_netns,
	    uint32_t mtu);
int nl_bridge(struct nl *nl, const char *name);
int nl_master(struct nl *nl, unsigned int ifindex, unsigned int master);
int nl_up(struct nl *nl, unsigned int ifindex);
int nl_down(struct nl *nl, unsigned int ifindex);
int nl_del(struct nl *nl, unsigned int ifindex);
/**
 * nl_station - the interface receives frames for this address too, beside its own; @on false: no
 * longer.
 */
int nl_station(struct nl *nl, unsigned int ifindex, const uint8_t mac[6], bool on);
/** nl_addr - no duplicate address detection: IPv6 addresses work at once. */
int nl_addr(struct nl *nl, unsigned int ifindex, int family, const uint8_t *addr, uint8_t plen);
/** nl_route - @hops with equal weight; all next hops count as on link. */
int nl_route(struct nl *nl, int family, const uint8_t *dst, uint8_t plen, const struct nl_hop *hops,
	     unsigned int nhops);
int nl_neigh(struct nl *nl, unsigned int ifindex, int family, const uint8_t *addr,
	     const uint8_t mac[6]);
/** nl_tx_plain - transmit checksums and segmentation offloads off: XDP frames must be complete. */
int nl_tx_plain(const char *ifname);
int nl_gro(const char *ifname);

#endif
