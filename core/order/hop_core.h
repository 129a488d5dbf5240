/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose barriers a frame carries. Every node writes barriers into every ordered frame that it
 * sends, and every node takes those of a frame for what its neighbour promises. A switch that has
 * lost its program (detached, rebooted, its daemon gone with everything) still forwards, as any
 * bridge or router does: then a frame brings the barriers of the node before it, and whoever
 * believed them would run ahead of everybody else behind that switch.
 *
 * So two bits of the header say which kind of node wrote them and in which direction, and each node
 * knows from its neighbour's beacons what they must be: beacons never pass a bridge or a router.
 *
 * Example: host h1, leaf s1, spine p1, leaf s2, host h2. h1 writes HOST, s1 LEAF_UP, p1 TOP, s2
 * LEAF, which is what h2 expects of s2. Without a program on p1, s2 gets LEAF_UP from s1 at the
 * port where p1's beacons said TOP; without one on s2, h2 gets TOP where it expects LEAF: both drop
 * it (unswitched).
 *
 * Where paths go up and then down, the codes are all different in networks of two tiers: frames
 * past any set of switches are known. With three tiers there are six kinds of writers and four
 * codes; what tests/unit/core/order/test_hop_core.c finds by trying all sets: frames past any one
 * switch are known, and past any two but a leaf together with the switch right above it.
 */
#ifndef BARLINE_HOP_CORE_H
#define BARLINE_HOP_CORE_H

#include "maps/switch_abi.h"
#include "core/core.h"

/**
 * bl_hop_write - what a switch writes at an output with the role @out (enum bl_port_role). @hosts,
 * @ups: whether it has any port of that role.
 */
BL_CORE __u8 bl_hop_write(int hosts, int ups, __u32 out)
{
	if (out == BL_PORT_UP)
		return hosts ? BL_HOP_LEAF_UP : BL_HOP_LEAF;
	if (hosts)
		return BL_HOP_LEAF;
	return ups ? BL_HOP_HOST : BL_HOP_TOP;
}

/**
 * bl_hop_first - what is expected at a port with the role @in before its neighbour's first beacon.
 */
BL_CORE __u8 bl_hop_first(__u32 in)
{
	return in == BL_PORT_HOST ? BL_HOP_HOST : BL_HOP_UNKNOWN;
}

/**
 * bl_hop_old - whether barriers promise nothing to anybody: then it does not matter whose they
 * are.
 */
BL_CORE int bl_hop_old(__u64 b, __u64 c, __u64 now)
{
	return b < now - BL_TS_OLD / 2 && c < now - BL_TS_OLD / 2;
}

#endif
