/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What kind of device an interface is, as rtnetlink says it: a VLAN device and the one below it, a
 * bond and its active slave, a port of a bridge.
 */
#ifndef BARLINE_BASE_NL_LINK_H
#define BARLINE_BASE_NL_LINK_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nl.h"

#define NL_LINK_KIND   32

#define NL_BOND_NONE   (-1) /* nl_link.bond_mode: the kernel does not say */
#define NL_BOND_BACKUP 1    /* active-backup */

/** struct nl_link - one interface. Texts that do not fit are cut. */
struct nl_link {
	int ifindex;
	uint16_t type; /* ARPHRD_* */
	char name[IFNAMSIZ];
	char kind[NL_LINK_KIND];      /* "vlan", "bond", "veth", ...; "": a NIC of its own */
	char port_kind[NL_LINK_KIND]; /* kind of @master: "bridge", "bond", ...; "": not said */
	int master;      /* ifindex of the bridge or bond that it is a port of; 0: of none */
	int lower;       /* ifindex of the device below it, or of a veth's peer; 0: none */
	bool lower_away; /* @lower is in another network namespace */
	int bond_mode;   /* of a bond: 0 balance-rr, NL_BOND_BACKUP, ...; NL_BOND_NONE */
	int bond_active; /* of a bond: ifindex of its active slave; 0: none, or it uses them all */
};

typedef void (*nl_link_fn)(const struct nl_link *l, void *ctx);

/**
 * nl_link_read - calls @fn for each interface in @len bytes of an answer to RTM_GETLINK, of which
 * nothing is believed.
 *
 * Returns 1 at the end of the answer, 0 if there may be more to come, or -errno; -EBADMSG: the
 * answer is malformed.
 */
int nl_link_read(const void *buf, size_t len, uint32_t seq, nl_link_fn fn, void *ctx);

/** nl_link_get - reads interface @ifindex. Returns 0 or -errno; -ENODEV: there is none. */
int nl_link_get(struct nl *nl, int ifindex, struct nl_link *to);

/** nl_link_each - calls @fn for each interface of the network namespace. Returns 0 or -errno. */
int nl_link_each(struct nl *nl, nl_link_fn fn, void *ctx);

/** nl_bond_mode_name - name of nl_link.bond_mode, as `ip link` has it. */
const char *nl_bond_mode_name(int mode);

#endif
