/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Admission on both ends of a link. Each node says its policy in its beacons; whoever hears of one
 * that does not fit his own goes on as under none (docs/protocol.md, "Policies that disagree") and
 * says so.
 *
 * What fits: PL2 takes a host that asks and a switch that promises, TOP a host that gives tokens
 * and a switch that limits them. Fastpass and none ask nothing of a switch and fit each other: an
 * arbiter gives the slots.
 *
 * Example: host none + 1 under a switch pl2 + 1: apart. Host fastpass + 1, switch none + 1: not.
 * Host pl2 + 1, switch 0 (without admission, or older): nothing is known, and the host finds out by
 * its RSVs.
 */
#ifndef BARLINE_POLICY_CORE_H
#define BARLINE_POLICY_CORE_H

#include "maps/hold_abi.h"
#include "core/core.h"

/** bl_policy_say - as a beacon has it. */
BL_CORE __u8 bl_policy_say(__u32 policy)
{
	return (__u8)(policy + 1);
}

/** bl_policy_apart - two neighbours that say @a and @b do not fit. */
BL_CORE int bl_policy_apart(__u32 a, __u32 b)
{
	__u32 fp = BL_POLICY_FASTPASS + 1, none = BL_POLICY_NONE + 1;

	return a && b && (a == fp ? none : a) != (b == fp ? none : b);
}

#endif
