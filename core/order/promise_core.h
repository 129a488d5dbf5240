/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Promising ahead: a host that has sent no message for a while promises that its next message will
 * not be earlier than a time in the future.
 *
 * Example: interval 100 us. Hosts 2 to 8 are silent; their beacons of the tick at 1000 say B =
 * 1150. Host 1 sends now and then and promises no more than its clock. At 1030 it sends one message
 * with ts = 1030, and since that is the last of its flush, the frame claims B = 1031. The minimum
 * at the switch is 1031, so the receiver delivers the message with the frame that brings it.
 * Without promises ahead it would wait for the beacons of all others at the tick at 1100.
 *
 * Now host 2 has something to send at 1040. It has promised 1150, so that is its timestamp
 * (bl_promise_ts()). The message waits until all others have passed 1150, which is the price of
 * host 2's silence; from now on host 2 promises only its clock.
 *
 * The barrier of a host is min(promise, everything in flight). The promise is stored before the
 * lines in flight are read; this pairs with bl_tx_flush() in lib/tx.c, which stores that it is in
 * flight before it reads the promise. At least one of the two sees the other.
 *
 * This file reads no clock and no page: the caller passes the values.
 */
#ifndef BARLINE_PROMISE_CORE_H
#define BARLINE_PROMISE_CORE_H

#include "maps/wire_abi.h"
#include "core/core.h"

/*
 * Beacon intervals without a message after which a host counts as silent. A sender that pauses for
 * less keeps promising its clock only, so its next message needs no timestamp in the future. The
 * price is that for this long after its last message, messages of others wait for its beacons.
 */
#define BL_SILENT_TICKS 1000

/**
 * bl_ahead_ns - how far, in ns, a rack with this beacon interval promises ahead: to the next
 * beacon, and half an interval for its way.
 */
BL_CORE __u64 bl_ahead_ns(__u64 beacon_ns)
{
	return beacon_ns + beacon_ns / 2;
}

/**
 * bl_host_silent - whether a host whose last message left at @data_ns (0: none ever) counts as
 * silent at @bus. A reading of another CPU may be slightly ahead.
 */
BL_CORE int bl_host_silent(__u64 bus, __u64 data_ns, __u64 beacon_ns)
{
	return (__s64)(bus - data_ns) > (__s64)(beacon_ns * BL_SILENT_TICKS);
}

/**
 * bl_unpromised - what the library leaves in the barrier and in the commit barrier of a frame with
 * a message of @ts: a time so far back that it promises nothing to any node. If the host's egress
 * program is missing, the frame leaves so, and the barrier of the host does not rise.
 */
BL_CORE __u64 bl_unpromised(__u64 ts)
{
	return (ts - BL_TS_OLD) & BL_TS_MASK;
}

/**
 * bl_claim_wire - what the library leaves in the barrier of a frame with a message of @ts in order
 * to claim @ts + 1, since nothing below it will follow. As far back as bl_unpromised(): a claim is
 * the promise of one endpoint, and a node would take it for that of the host.
 */
BL_CORE __u64 bl_claim_wire(__u64 ts)
{
	return bl_unpromised(ts + 1);
}

/**
 * bl_frame_claim - the barrier that a frame with a message of @ts claims for its endpoint: @ts + 1,
 * where the library has left bl_claim_wire() in the header (@left); 0: no claim. No other claim is
 * accepted, so that a broken process cannot promise a year ahead.
 */
BL_CORE __u64 bl_frame_claim(__u64 ts, __u64 left)
{
	return left && left == bl_claim_wire(ts) ? ts + 1 : 0;
}

/**
 * bl_promise - what a host may promise at @bus, apart from what is in flight: its clock and @ahead,
 * what a frame claims, and what was @promised already. A promise beyond @bus must be stored before
 * the lines in flight are read.
 */
BL_CORE __u64 bl_promise(__u64 bus, __u64 ahead, __u64 promised, __u64 claim)
{
	return bl_max64(bl_max64(bus + ahead, promised), claim);
}

/**
 * bl_promise_absurd - whether @promised is so far ahead of @limit, the latest time that the host's
 * clock allows to promise, that no program can have written it. The limit varies with the bound of
 * the clock, by much less than BL_PROMISE_MOST_NS.
 */
#define BL_PROMISE_MOST_NS 1000000000ULL
BL_CORE int bl_promise_absurd(__u64 promised, __u64 limit)
{
	return promised > limit + BL_PROMISE_MOST_NS;
}

/**
 * bl_send_late - whether a message of @ts is below the barrier @sent that its host has sent at @bus
 * or before. A barrier beyond what the host may promise now, its clock and @ahead, is from before
 * that clock was set back, and says nothing.
 */
BL_CORE int bl_send_late(__u64 ts, __u64 sent, __u64 bus, __u64 ahead)
{
	return ts < sent && sent <= bus + ahead;
}

/**
 * bl_sent_least - the barrier that the host has sent at least, if @sent is the greatest one that it
 * has written down, at @bus. It bounds from below what lines in flight hold back (bl_line_least()).
 * One that says nothing, as in bl_send_late(), must not: lines between the clock and that barrier
 * would hold back nothing until the clock had passed it. Then only a time that is too old for the
 * wire is no time to hold at.
 */
BL_CORE __u64 bl_sent_least(__u64 sent, __u64 bus, __u64 ahead)
{
	if (sent <= bus + ahead)
		return sent;
	return bus > BL_TS_OLD ? bus - BL_TS_OLD : 0;
}

/**
 * bl_latest_barrier - no barrier that any node of the rack uses at @clock is later, if their clocks
 * are within @bound of this one: a node accepts what is beyond its own clock by the bound and by
 * what silent hosts promise.
 */
BL_CORE __u64 bl_latest_barrier(__u64 clock, __u64 bound, __u64 beacon_ns)
{
	return clock + 2 * bound + bl_ahead_ns(beacon_ns);
}

/**
 * bl_ts_wait - for how long, in ns at @clock, a message waits whose timestamp must not be below
 * @least: until the clock is there. A timestamp in the future could be further ahead than others
 * accept, who know neither @least nor by how much their clocks are behind this one.
 *
 * Example: clock 1000, bound 50, interval 100: the latest barrier is 1250. A node whose clock is
 * right accepts no more than 1200 now. The message waits for 250, and its timestamp is 1250.
 */
BL_CORE __u64 bl_ts_wait(__u64 clock, __u64 least)
{
	return least > clock ? least - clock : 0;
}

/**
 * bl_promise_ts - the timestamp of a message: not below @clock, the host's @promised, or what was
 * @noted as in flight; above the endpoint's @last.
 */
BL_CORE __u64 bl_promise_ts(__u64 clock, __u64 promised, __u64 noted, __u64 last)
{
	return bl_max64(bl_max64(clock, promised), bl_max64(noted, last + 1));
}

#endif
