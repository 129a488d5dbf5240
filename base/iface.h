/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Network interfaces in the namespace of the calling thread.
 */
#ifndef BARLINE_BASE_IFACE_H
#define BARLINE_BASE_IFACE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

/** struct bl_iface - Facts of an interface, read once by bl_iface_get(). */
struct bl_iface {
	char name[IFNAMSIZ];
	int ifindex;
	uint8_t mac[6];
	unsigned int mtu;
	bool up;
};

/** bl_iface_get - Read the facts of interface @name. Returns 0 or -errno (ENODEV: none). */
int bl_iface_get(struct bl_iface *i, const char *name, struct bl_err *err);

/** bl_iface_up - Set interface @name up. Returns 0 or -errno. */
int bl_iface_up(const char *name, struct bl_err *err);

/**
 * bl_iface_hear - Let frames to the multicast address @mac pass the filter of interface @name, or
 * no longer. This outlives the process, and is not counted: one call with @on false ends it. No-op
 * on an interface without such a filter. Returns 0 or -errno.
 */
int bl_iface_hear(const char *name, const uint8_t mac[6], bool on, struct bl_err *err);

/**
 * bl_iface_addr - The first address of interface @name that other hosts can use.
 * @family: AF_INET or AF_INET6; 0: IPv4 if the interface has such an address, else IPv6.
 * @addr: receives the address; an IPv4 address is IPv4-mapped (::ffff:a.b.c.d).
 *
 * Returns 0 or -errno (EADDRNOTAVAIL: it has none).
 */
int bl_iface_addr(const char *name, int family, uint8_t addr[16], struct bl_err *err);

/**
 * bl_iface_addr_here - whether some interface of this network namespace has the address @ip. Also
 * true if that cannot be found out.
 */
bool bl_iface_addr_here(const uint8_t ip[16]);

#endif
