/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of rtnetlink that is needed to build a rack, and bl0 on a host: veth pairs, a bridge,
 * addresses, routes over several next hops, neighbours. A socket works in the network namespace in
 * which it was opened. All functions return 0 or -errno.
 */
#ifndef BARLINE_BASE_NL_H
#define BARLINE_BASE_NL_H

#include <stdbool.h>
#include <stdint.h>

/** struct nl - a netlink socket. One thread. */
struct nl {
	int fd;       /* -1: closed */
	uint32_t seq; /* of the last request */
};

/** struct nl_end - one end of a veth pair. */
struct nl_end {
	const char *name;
	uint8_t mac[6];
};

/** struct nl_hop - a next hop of a route. */
struct nl_hop {
	unsigned int ifindex;
	const uint8_t *via; /* address of the router; NULL: the destinations are on link */
};

int nl_open(struct nl *nl);
void nl_close(struct nl *nl);
/**
 * nl_veth - makes a pair: @a in this network namespace, @b in the one that the descriptor @b_netns
 * refers to (-1: in this one, too).
 */
int nl_veth(struct nl *nl, const struct nl_end *a, const struct nl_end *b, int b_netns,
	    uint32_t mtu);
/** nl_bridge - makes a bridge. */
int nl_bridge(struct nl *nl, const char *name);
/** nl_master - makes @ifindex a port of the bridge @master; 0: of none any more. */
int nl_master(struct nl *nl, unsigned int ifindex, unsigned int master);
/** nl_no_link_local - the kernel gives the interface no link-local IPv6 address when it comes up.
 */
int nl_no_link_local(struct nl *nl, unsigned int ifindex);
/** nl_up, nl_down - set an interface up or down. */
int nl_up(struct nl *nl, unsigned int ifindex);
int nl_down(struct nl *nl, unsigned int ifindex);
/** nl_mtu - sets the MTU of an interface, in bytes. */
int nl_mtu(struct nl *nl, unsigned int ifindex, uint32_t mtu);
/** nl_del - removes an interface. */
int nl_del(struct nl *nl, unsigned int ifindex);
/**
 * nl_station - with @on, the interface receives frames for the address @mac, too, beside its own;
 * without, it no longer does. No-op if it is so already.
 */
int nl_station(struct nl *nl, unsigned int ifindex, const uint8_t mac[6], bool on);
/** nl_addr - adds an address, without duplicate address detection: an IPv6 address works at once.
 */
int nl_addr(struct nl *nl, unsigned int ifindex, int family, const uint8_t *addr, uint8_t plen);
/** nl_addr_del - removes an address of an interface. */
int nl_addr_del(struct nl *nl, unsigned int ifindex, int family, const uint8_t *addr, uint8_t plen);
/**
 * nl_route_via - adds a static route (@add), or removes it, in the main table. The router @via must
 * be reachable by an address of the interface. -EEXIST: there is another one to the destination.
 */
int nl_route_via(struct nl *nl, bool add, int family, const uint8_t *dst, uint8_t plen,
		 const struct nl_hop *hop);
/** nl_route - adds a route over @nhops next hops of equal weight, all of which count as on link. */
int nl_route(struct nl *nl, int family, const uint8_t *dst, uint8_t plen, const struct nl_hop *hops,
	     unsigned int nhops);
/** nl_neigh - adds a permanent neighbour. */
int nl_neigh(struct nl *nl, unsigned int ifindex, int family, const uint8_t *addr,
	     const uint8_t mac[6]);
/** nl_neigh_del - removes a neighbour. */
int nl_neigh_del(struct nl *nl, unsigned int ifindex, int family, const uint8_t *addr);
/**
 * nl_plain - turns offloads of checksums, segmentation and VLAN tags off, of tags in both
 * directions: the XDP programs at both ends of a veth need complete frames.
 */
int nl_plain(const char *ifname);
/** nl_gro - turns generic receive offload on. */
int nl_gro(const char *ifname);

#endif
