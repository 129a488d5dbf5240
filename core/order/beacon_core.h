/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a host sends a beacon (DESIGN 3.4): at multiples of the interval in bus time, so that one
 * wave runs through the rack per interval. The daemon's thread (loader/order/beacon.c) and the
 * pacer's turn (bpf/host/beacon.h) both ask here.
 *
 * Example, interval 100 us: at bus time 12345678 and CLOCK_MONOTONIC 5000 the tick is 12300000; it
 * is served unless it was, and the next one is looked at at 5000 + 54322 + 100 (the margin). At
 * 12399500 it is the tick at 12400000 that is served, half a microsecond early: the clocks of a
 * lab's hosts differ by less than that, and one wave is one waking. Who comes at 12750000 only
 * serves the tick at 12700000: three ticks were overslept, and one beacon says more than all three
 * would have.
 *
 * Does not read clocks: the caller passes both.
 */
#ifndef BARLINE_BEACON_CORE_H
#define BARLINE_BEACON_CORE_H

#include "maps/beacon_abi.h"
#include "core/core.h"

#define BL_BEAT_SLOP_NS 1000ULL
/* bus time may be 500 ppm slower than CLOCK_MONOTONIC: 50 ns in 100 us */
#define BL_BEAT_MARGIN_NS 100ULL
/* while the clock is void nothing is sent; look again after that long */
#define BL_BEAT_VOID_NS 10000000ULL
/* data sends in one interval that make a beacon superfluous */
#define BL_BEAT_BUSY     4
#define BL_BEAT_ALL_SAME 4 /* one beacon in so many is sent in any case */

/** bl_beat_tick - the tick that is to be served at @bus. */
BL_CORE __u64 bl_beat_tick(__u64 bus, __u64 interval_ns)
{
	return bus + BL_BEAT_SLOP_NS - (bus + BL_BEAT_SLOP_NS) % interval_ns;
}

/**
 * bl_beat_serve - it is @mono, which is @bus: is a beacon to be sent? Never twice for one tick.
 * Sets @b->next_ns in any case.
 * @sends: bl_host_page.sends now. Data that has carried the host's barrier often enough since the
 * last tick stands for the beacon, but not for one in four: it is beacons that drive the switches'
 * relays to idle ports and their search for the silent, and different hosts send at different
 * ticks.
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
