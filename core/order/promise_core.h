/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Promising ahead: a host that has sent no message for a while promises that its next one will not
 * come before a time in the future.
 *
 * Example: interval 100 us. Hosts 2 to 8 are silent; their beacons of the tick at 1000 say B =
 * 1150. Host 1 sends now and then and promises no more than its clock. At 1030 it sends one message
 * with ts = 1030, and since that is the last of its flush, the frame claims B = 1031. At the switch
 * the minimum is 1031, and so the receiver delivers the message with the frame that brings it.
 * Without promises ahead it would wait for what all others say at the tick at 1100.
 *
 * Host 2 now has something to send at 1040. It has promised 1150, so that is its timestamp
 * (bl_promise_ts()). It waits for all others to pass 1150, as the price for its silence; from now
 * on it promises its clock only.
 *
 * The barrier of a host is min(promise, everything in flight), and the promise is written down
 * before the in-flight page is read; pairs with bl_tx_flush() in lib/tx.c, which writes down that
 * it is in flight before it reads the promise. One of the two sees the other.
 *
 * Does not read clocks or pages: the caller passes what is there.
 */
#ifndef BARLINE_PROMISE_CORE_H
#define BARLINE_PROMISE_CORE_H

#include "maps/wire_abi.h"
#include "core/core.h"

/*
 * Silent: no message for so many beacon intervals. A sender that pauses for less pays nothing for
 * its pauses; one that pauses longer holds the others back for so long after its last message.
 */
#define BL_SILENT_TICKS 1000

/**
 * bl_ahead_ns - how far a rack with this beacon interval promises ahead: to the next beacon, and
 * half an interval for its way.
 */
BL_CORE __u64 bl_ahead_ns(__u64 beacon_ns)
{
	return beacon_ns + beacon_ns / 2;
}

/**
 * bl_host_silent - whether a host at @bus whose last message left at @data_ns (0: none ever) counts
 * as silent. A reading of another CPU may be a little ahead.
 */
BL_CORE int bl_host_silent(__u64 bus, __u64 data_ns, __u64 beacon_ns)
{
	return (__s64)(bus - data_ns) > (__s64)(beacon_ns * BL_SILENT_TICKS);
}

/**
 * bl_frame_claim - what a frame with a message of @ts claims for its endpoint, by the barrier that
 * the library left in it: nothing below @ts + 1 follows. 0: it claims nothing. Both as they are on
 * the wire. No other claim is listened to, so that a broken process cannot promise a year away.
 */
BL_CORE __u64 bl_frame_claim(__u64 ts, __u64 left)
{
	return left && left == ((ts + 1) & BL_TS_MASK) ? ts + 1 : 0;
}

/**
 * bl_promise - what a host may promise at @bus, apart from what is in flight: the clock and @ahead,
 * what a frame claims, and what was @promised already. Beyond @bus it must be written down before
 * the in-flight page is read.
 */
BL_CORE __u64 bl_promise(__u64 bus, __u64 ahead, __u64 promised, __u64 claim)
{
	return bl_max64(bl_max64(bus + ahead, promised), claim);
}

/**
 * bl_promise_ts - timestamp of a message: not below @clock, what the host @promised, or what was
 * @noted as in flight; above the endpoint's @last.
 */
BL_CORE __u64 bl_promise_ts(__u64 clock, __u64 promised, __u64 noted, __u64 last)
{
	return bl_max64(bl_max64(clock, promised), bl_max64(noted, last + 1));
}

#endif
