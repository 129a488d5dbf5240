/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The beacons of one host: what the next beacon contains and when it is sent.
 *
 * Two senders exist. Normally the daemon's beacon thread (loader/order/beacon.c) keeps one struct
 * bl_beat for each of its hosts in ordinary memory. Where the pacer carries the beacons
 * (bpf/host/beacon.h), the struct is value 0 of the host's map "pace_beat" instead. Both senders
 * use the rules of core/order/beacon_core.h, which has an example in numbers. This file does not
 * define the beacon's frame format: see maps/wire_abi.h.
 */
#ifndef BARLINE_BEACON_ABI_H
#define BARLINE_BEACON_ABI_H

#include <linux/types.h>
#include "maps/wire_abi.h"

#define BL_MAP_PACE_BEAT "pace_beat" /* array of one struct bl_beat */

/**
 * struct bl_beat - the beacon state of one host. In the map, the loader fills it in before a pacer
 * serves the host; from then on only the host's pace program writes it, so no lock is needed.
 */
struct bl_beat {
	/*
	 * 1: the pacer sends the beacons. 0: it does not, and the rest of the map's value is
	 * unused.
	 */
	__u32 on;
	/* of the host; selects which ticks are skipped when data carries its barrier */
	__u32 node_id;
	__u32 psn; /* of the next beacon */
	__u32 reserved;
	__u64 interval_ns; /* ns of bus time between two beacons */
	__u64 tick;        /* bus time of the last tick that was served, ns; 0: none yet */
	__u64 next_ns;     /* CLOCK_MONOTONIC of the next tick; 0: at once */
	__u64 sends;       /* bl_host_page.sends at the last tick */
	/*
	 * the whole beacon except its psn; bl_host_egress fills in the barriers, the TAI offset and
	 * the policy, which are 0 here
	 */
	__u8 frame[BL_BEACON_LEN];
	__u8 zero[2];
};
_Static_assert(sizeof(struct bl_beat) == 192, "ABI");

#endif
