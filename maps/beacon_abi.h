/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A host's beacons: what is to be sent and when, whoever sends it. The daemon's beacon thread keeps
 * one of these for each of its hosts; where the pacer carries the beacons (bpf/host/beacon.h), it
 * is value 0 of the host's "pace_beat".
 */
#ifndef BARLINE_BEACON_ABI_H
#define BARLINE_BEACON_ABI_H

#include "maps/wire_abi.h"

#define BL_MAP_PACE_BEAT "pace_beat"

/**
 * struct bl_beat - beacons of one host. In the map: made by the loader before a pacer has the host,
 * then written by the host's pace program alone.
 * @on: 1: the pacer sends them. 0: the thread does, or nobody; then the rest of the map's value
 * means nothing.
 * @node_id: of the host: which of the ticks it leaves out when data carries its barrier
 * (bl_beat_serve()).
 * @psn: of the next beacon.
 * @interval_ns: of bus time. @tick: bus time of the last tick that was served; 0: none yet.
 * @next_ns: CLOCK_MONOTONIC of the next tick; 0: at once.
 * @sends: bl_host_page.sends at the last tick.
 * @frame: the beacon but for its psn; barriers are 0 until bl_host_egress fills them in.
 */
struct bl_beat {
	__u32 on;
	__u32 node_id;
	__u32 psn;
	__u32 reserved;
	__u64 interval_ns;
	__u64 tick;
	__u64 next_ns;
	__u64 sends;
	__u8 frame[BL_BEACON_LEN];
	__u8 zero[2];
};
_Static_assert(sizeof(struct bl_beat) == 192, "ABI");

#endif
