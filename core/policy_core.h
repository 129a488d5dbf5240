/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether the admission policies of two neighbours fit. Each node announces its policy in its
 * beacons. A node with a neighbour whose policy does not fit its own continues as under policy none
 * (docs/protocol.md, "Policies that disagree") and reports it.
 *
 * PL2 needs a host that asks and a switch that promises; TOP needs a host that gives tokens and a
 * switch that limits them. Fastpass and none ask nothing of a switch, so they fit each other: with
 * Fastpass an arbiter gives the slots.
 *
 * Example: a host with none + 1 under a switch with pl2 + 1 does not fit. A host with fastpass + 1
 * under a switch with none + 1 fits. With a host of pl2 + 1 and a switch of 0 (without admission,
 * or older), nothing is known, and the host finds out by its RSVs.
 */
#ifndef BARLINE_POLICY_CORE_H
#define BARLINE_POLICY_CORE_H

#include "maps/hold_abi.h"
#include "core/core.h"

/** bl_policy_say - @policy (enum bl_policy) in the form of bl_beacon.policy. */
BL_CORE __u8 bl_policy_say(__u32 policy)
{
	return (__u8)(policy + 1);
}

/** bl_policy_apart - whether two neighbours that announce @a and @b do not fit. */
BL_CORE int bl_policy_apart(__u32 a, __u32 b)
{
	__u32 fp = BL_POLICY_FASTPASS + 1, none = BL_POLICY_NONE + 1;

	return a && b && (a == fp ? none : a) != (b == fp ? none : b);
}

#endif
