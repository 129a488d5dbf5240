/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose barriers a frame carries. Every node writes barriers into every ordered frame that it
 * sends, and takes the barriers of a received frame as a promise of its neighbour. A switch that
 * has lost its program (detached, rebooted, its daemon gone) still forwards, as any bridge or
 * router does. A frame then brings the barriers of the node before that switch, and a node that
 * accepted them would run ahead of everything else behind that switch.
 *
 * So two bits of the header say which kind of node wrote the barriers and in which direction, and
 * each node knows from its neighbour's beacons what they must be: beacons never pass a bridge or a
 * router.
 *
 * Example: host h1, leaf s1, spine p1, leaf s2, host h2. h1 writes HOST, s1 LEAF_UP, p1 TOP, and s2
 * LEAF, which is what h2 expects of s2. Without a program on p1, s2 receives LEAF_UP from s1 at the
 * port where p1's beacons said TOP. Without one on s2, h2 receives TOP where it expects LEAF. Both
 * drop the frame (unswitched).
 *
 * Where paths go up and then down in networks of two tiers, all codes differ, so frames past any
 * set of switches are recognised. With three tiers there are six kinds of writers and four codes.
 * tests/unit/core/order/test_hop_core.c tries all sets: frames past any one switch are recognised,
 * and past any two, except a leaf together with the switch directly above it.
 */
#ifndef BARLINE_HOP_CORE_H
#define BARLINE_HOP_CORE_H

#include "maps/switch_abi.h"
#include "core/core.h"

/**
 * bl_hop_write - the hop that a switch writes at an output with the role @out (enum bl_port_role).
 * @hosts and @ups say whether the switch has any port of that role.
 */
BL_CORE __u8 bl_hop_write(int hosts, int ups, __u32 out)
{
	if (out == BL_PORT_UP)
		return hosts ? BL_HOP_LEAF_UP : BL_HOP_LEAF;
	if (hosts)
		return BL_HOP_LEAF;
	return ups ? BL_HOP_HOST : BL_HOP_TOP;
}

/** bl_old_below - barriers below this promise nothing to any node at bus time @now. */
BL_CORE __u64 bl_old_below(__u64 now)
{
	return now - BL_TS_OLD / 2;
}

/**
 * bl_hop_old - whether barriers promise nothing to any node, so that it does not matter whose they
 * are.
 */
BL_CORE int bl_hop_old(__u64 b, __u64 c, __u64 now)
{
	return b < bl_old_below(now) && c < bl_old_below(now);
}

/**
 * bl_lane_promise - the barrier @b of a frame as a host takes it into the register of its link,
 * which has @lanes lanes; 0, with which no lane joins (bl_port_join()), if it promises nothing.
 *
 * A lane of a switch in which no input has joined forwards frames with such barriers. A host that
 * has just started has no barrier yet by which bl_join_floor() could refuse it, and excludes no
 * lane that lags. So such a lane would join, and hold it for as long as it has no input. A link
 * with one lane has no other that could be held, and waits as before.
 */
BL_CORE __u64 bl_lane_promise(__u64 b, __u32 lanes, __u64 now)
{
	return lanes > 1 && b < bl_old_below(now) ? 0 : b;
}

#endif
