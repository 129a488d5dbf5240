/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Listing the neighbours (ARP and neighbour discovery) that the kernel has for an interface. */
#ifndef BARLINE_BASE_NL_NEIGH_H
#define BARLINE_BASE_NL_NEIGH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nl.h"

/** struct nl_neighbour - one neighbour. */
struct nl_neighbour {
	uint8_t ip[16]; /* an IPv4 address is IPv4-mapped */
	int ifindex;    /* of the interface that it is on */
	uint8_t mac[6]; /* valid if @known */
	bool known;     /* its Ethernet address is known; false: it did not answer, or not yet */
	bool permanent; /* somebody wrote it down; it never expires */
};

/**
 * nl_neigh_each - calls @fn for each unicast neighbour on interface @ifindex; 0: on all. The
 * kernel's own entries (NUD_NOARP, for broadcast and multicast) are left out. Returns 0 or -errno.
 */
int nl_neigh_each(struct nl *nl, int ifindex, void (*fn)(const struct nl_neighbour *n, void *ctx),
		  void *ctx);

#endif
