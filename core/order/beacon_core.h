/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a host sends a beacon: at multiples of the beacon interval in bus time, so that one wave
 * runs through the rack per interval. The daemon's thread (loader/order/beacon.c) and the pacer's
 * turn (bpf/host/beacon.h) both ask bl_beat_serve().
 *
 * Example, interval 100 us: at bus time 12345678 and CLOCK_MONOTONIC 5000 the tick is 12300000. It
 * is served unless it was served before, and the next tick is due at 5000 + 54322 + 100 (the
 * margin). At 12399500 the tick at 12400000 is served, half a microsecond early: the clocks of a
 * lab's hosts differ by less than that, so that one wave needs one wakeup. A caller that comes only
 * at 12750000 serves the tick at 12700000: three ticks were missed, and one beacon says more than
 * all three would have.
 *
 * This file reads no clock: the caller passes both times.
 */
#ifndef BARLINE_BEACON_CORE_H
#define BARLINE_BEACON_CORE_H

#include "maps/beacon_abi.h"
#include "core/core.h"

#define BL_BEAT_SLOP_NS 1000ULL
/* Bus time may run 500 ppm slower than CLOCK_MONOTONIC: 50 ns in 100 us. */
#define BL_BEAT_MARGIN_NS 100ULL
/* While the clock is not valid, nothing is sent; the next attempt is after this time. */
#define BL_BEAT_VOID_NS 10000000ULL
/* data sends in one interval that make a beacon superfluous */
#define BL_BEAT_BUSY     4
#define BL_BEAT_ALL_SAME 4 /* one beacon in this many is sent in any case */

/** bl_beat_tick - the tick, in bus time, that is to be served at bus time @bus. */
BL_CORE __u64 bl_beat_tick(__u64 bus, __u64 interval_ns)
{
	return bus + BL_BEAT_SLOP_NS - (bus + BL_BEAT_SLOP_NS) % interval_ns;
}

/**
 * bl_beat_serve - whether a beacon is to be sent now; at most one per tick.
 * @b: state of the host's beacons; @b->next_ns is set in any case.
 * @mono, @bus: CLOCK_MONOTONIC and bus time of now.
 * @sends: bl_host_page.sends now.
 *
 * Data that has carried the host's barrier often enough since the last tick replaces the beacon,
 * except for one in four: beacons drive the switches' relays to idle ports and their scan for
 * silent inputs. Different hosts send that one at different ticks.
 */
BL_CORE int bl_beat_serve(struct bl_beat *b, __u64 mono, __u64 bus, __u64 sends)
{
	__u64 tick = bl_beat_tick(bus, b->interval_ns);
	int busy;

	b->next_ns = mono + (tick + b->interval_ns - bus) + BL_BEAT_MARGIN_NS;
	if (tick <= b->tick)
		return 0;
	b->tick = tick;
	busy = sends - b->sends >= BL_BEAT_BUSY;
	b->sends = sends;
	return !busy || !((tick / b->interval_ns + b->node_id) % BL_BEAT_ALL_SAME);
}

#endif
