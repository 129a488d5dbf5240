// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Drivers that are known, from their sources; docs/nics.md has the same table, and a test compares
 * the two (tests/unit/loader/load/test_nic_drivers.c).
 *
 * Where a driver puts frames of XDP matters because rings of their own are another queue than that
 * of sockets. It breaks no promise on either role. What a host returns by XDP_TX are ACKs, whose
 * barrier is old, and its pacer's beacons take the way of sockets (bpf/host/beacon.h). On a switch
 * all ordered frames leave by redirect, and those of its own kernel are dropped.
 */
#include "loader/load/nic_drivers.h"

#include <stddef.h>
#include <string.h>

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

static const struct bl_nic_driver drivers[] = {
	{ "bnxt_en", BL_RINGS_APART, "4.11", "" },
	{ "e1000", BL_RINGS_NONE, "", "It works in generic mode only." },
	{ "e1000e", BL_RINGS_NONE, "", "It works in generic mode only." },
	{ "ena", BL_RINGS_APART, "5.6",
	  "At most half of the channels may be in use, and the MTU may be 3498 at most." },
	{ "i40e", BL_RINGS_APART, "4.13", "" },
	{ "ice", BL_RINGS_APART, "5.5", "" },
	{ "igb", BL_RINGS_SHARED, "5.10", "" },
	{ "igc", BL_RINGS_SHARED, "5.13", "" },
	{ "ixgbe", BL_RINGS_APART, "4.12", "" },
	{ "mlx4_en", BL_RINGS_APART, "4.8", "" },
	{ "mlx5_core", BL_RINGS_APART, "4.9", "" },
	{ "r8169", BL_RINGS_NONE, "", "It works in generic mode only." },
	{ "tg3", BL_RINGS_NONE, "", "It works in generic mode only." },
	{ "tun", BL_RINGS_SHARED, "4.14", "" },
	{ "veth", BL_RINGS_APART, "4.19",
	  "Both ends need an XDP program, or frames that XDP redirects are dropped. A VLAN "
	  "device on one end needs `ethtool -K IFNAME txvlan off` there, or the tag comes beside "
	  "the frame." },
	{ "virtio_net", BL_RINGS_MIXED, "4.10",
	  "Rings of their own need twice as many queues as CPUs. Receive offloads of the guest are "
	  "turned off." },
	{ "vmxnet3", BL_RINGS_SHARED, "6.6", "" },
};

const struct bl_nic_driver *bl_nic_driver(const char *name)
{
	unsigned int k;

	for (k = 0; k < COUNT(drivers); k++)
		if (!strcmp(drivers[k].name, name))
			return &drivers[k];
	return NULL;
}

const struct bl_nic_driver *bl_nic_drivers(unsigned int *n)
{
	*n = COUNT(drivers);
	return drivers;
}

const char *bl_xdp_rings_name(enum bl_xdp_rings r)
{
	static const char *const names[] = {
		[BL_RINGS_UNKNOWN] = "unknown", [BL_RINGS_SHARED] = "shared",
		[BL_RINGS_APART] = "apart",     [BL_RINGS_MIXED] = "mixed",
		[BL_RINGS_NONE] = "none",
	};

	return (unsigned int)r < COUNT(names) ? names[r] : "unknown";
}
