/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pacer (DESIGN 4): one thread per datapath CPU runs bl_pacer (bpf/pacer.bpf.c) by
 * bpf_prog_test_run with live frames, again and again. Each turn it tail-calls the next entry of
 * "pace_progs": a node's own program (bl_host_pace, bl_port_pace), which asks "is something due?"
 * and either drops the frame or fills and redirects it. So the hosts and switches of a lab share
 * one thread, each with its own maps.
 */
#ifndef BARLINE_PACE_ABI_H
#define BARLINE_PACE_ABI_H

#include "maps/queue_abi.h"

#define BL_MAP_PACE_PROGS "pace_progs"
#define BL_MAP_PACE_PAGE  "pace_page"
/* ring buffer without records: its wait queue wakes a sleeping pacer */
#define BL_MAP_PACE_BELL "pace_bell"

#define BL_PACE_PROGS    128
/*
 * Bytes of the frame that a turn is given: more than any frame that leaves, so that every program
 * that sends changes the length. Linux takes a frame's length anew only when the program has
 * changed it; of a page that was used before it keeps the length that the last XDP program on the
 * way gave it: one token in eight, of 60 bytes as the pacer's frames had then, left with the 1514
 * bytes of the data that its page had become at the sender (6.18, 2026-11-21).
 */
#define BL_PACE_FRAME 1524

/**
 * struct bl_pace_page - value 0 of a node's "pace_page"; mmapped by the daemon. Written by the
 *node's pace program (one CPU) but for @asleep.
 * @turns: times it was asked. @emitted: frames sent. @failed: frames that the device map refused.
 * @next_ns: CLOCK_MONOTONIC when something will be due, as of the last turn; BL_DUE_NEVER: nothing
 *is there.
 * @asleep: 1: the pacer sleeps, and who makes something due rings the bell. Set by the pacer's
 *thread, which then fences and looks at the node's struct bl_due once more; who puts a frame lowers
 *bl_due.next by an atomic operation and then looks here. Who rings exchanges it for 0, so that one
 *bell is rung, not one per frame.
 * @beacons: beacons sent, if the pacer carries them (bpf/host/beacon.h); not in @emitted or @late.
 *@failed counts those too that could not leave.
 * @calls, @sleeps, @woken: of the thread that serves the node, all its nodes together: calls of
 *bpf_prog_test_run, times it slept, times a bell ended a sleep (the rest ended when something
 *became due). Written by the thread.
 * @late: how long after its due time each frame was handed to the device.
 */
struct bl_pace_page {
	__u64 turns;
	__u64 emitted;
	__u64 failed;
	__u64 next_ns;
	__u64 beacons;
	__u64 calls;
	__u64 sleeps;
	__u32 asleep;
	__u32 woken;
	struct bl_hist late;
};
_Static_assert(sizeof(struct bl_pace_page) == 64 + 8 * BL_HIST_BINS, "ABI");

#endif
