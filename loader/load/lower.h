/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a node can run on an interface that is no NIC of its own: a VLAN device, a bond, a
 * bridge, a tunnel, or a NIC that is a port of one of them. lower.c says what becomes of each. The
 * calling thread is in the node's network namespace.
 */
#ifndef BARLINE_LOWER_H
#define BARLINE_LOWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/iface.h"
#include "base/log.h"
#include "base/nl_link.h"
#include "maps/meta_abi.h"

/** struct bl_lower - an interface and what is around it. Filled by bl_lower_look(). */
struct bl_lower {
	struct nl_link dev;
	struct nl_link master; /* of @dev; ifindex 0: it has none */
	char below[IFNAMSIZ];  /* device that @dev sends by; "": none, or not in this namespace */
	char active[IFNAMSIZ]; /* active slave of @dev, or of its master; "": none */
};

/** bl_lower_look - reads what kind of interface @ifindex is. Returns 0 or -errno. */
int bl_lower_look(int ifindex, struct bl_lower *to);

/**
 * bl_lower_judge - whether a node with @role can run on @v. No system calls.
 *
 * Returns 0; -EPERM: it can, if the operator accepts that frames are reordered; -EAGAIN: not yet,
 * since its bond has no active slave; -EOPNOTSUPP: it cannot. @err says why, and what to do
 * instead.
 */
int bl_lower_judge(const struct bl_lower *v, enum bl_role role, struct bl_err *err);

/** bl_lower_check - bl_lower_look() and bl_lower_judge() for @i. */
int bl_lower_check(const struct bl_iface *i, enum bl_role role, struct bl_err *err);

/**
 * bl_lower_addr - the address of endpoints of the host on @nic: that of the NIC, or, if it has
 * none, that of the one device on top of it that has one: a VLAN device, or the bridge or bond that
 * the NIC is a port of. The arguments are those of bl_iface_addr().
 * @mtu: lowered to the MTU of that device if that is smaller
 *
 * Returns 0 or -errno. -EADDRNOTAVAIL: none of them has one; -ENOTUNIQ: several of them have.
 */
int bl_lower_addr(const struct bl_iface *nic, int family, uint8_t addr[16], unsigned int *mtu,
		  struct bl_err *err);

/**
 * bl_lower_above - calls @fn for each device on top of interface @ifindex that the host may send
 * by, and so on upwards: VLAN devices, and the bridge or bond that the interface is a port of. At
 * most four on top of each other. Returns 0 or -errno.
 */
int bl_lower_above(int ifindex, nl_link_fn fn, void *ctx);

#endif
