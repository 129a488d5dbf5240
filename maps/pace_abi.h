/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pacer: one thread per datapath CPU runs the program bl_pacer (bpf/pacer.bpf.c) by
 * bpf_prog_test_run with live frames, again and again. In each turn bl_pacer tail-calls the next
 * entry of "pace_progs", which is a node's own program (bl_host_pace or bl_port_pace). That program
 * checks whether a frame is due and either drops the pacer's frame, or fills it and redirects it.
 * So the hosts and switches of a lab share one thread, and each has its own maps.
 *
 * Example: two hosts share a pacer. Its turns call host 0, host 1, host 0, ... In one of them, host
 * 1 finds its next_ns in the past, copies the frame that is due from its queue into the pacer's
 * frame, and redirects that to its NIC: @emitted becomes 1 more.
 *
 * When a frame is due is decided by struct bl_due (maps/queue_abi.h), not here.
 */
#ifndef BARLINE_PACE_ABI_H
#define BARLINE_PACE_ABI_H

#include <linux/types.h>
#include "maps/queue_abi.h"

#define BL_MAP_PACE_PROGS "pace_progs" /* program array: the pace programs of the nodes */
#define BL_MAP_PACE_PAGE  "pace_page"  /* array of one struct bl_pace_page; mmapped */
/* A ring buffer that never holds a record: its wait queue wakes a sleeping pacer. */
#define BL_MAP_PACE_BELL "pace_bell"

#define BL_PACE_PROGS    128
/*
 * Bytes of the frame that a turn is given: more than any frame that leaves, so that every program
 * that sends changes the length. Linux updates a frame's length only when the program has changed
 * it; a page that was used before keeps the length that the last XDP program on its way gave to it.
 * With pacer frames of 60 bytes, one token in eight left with the 1514 bytes of the data that its
 * page had become at the sender (Linux 6.18, 2026-11-21).
 */
#define BL_PACE_FRAME 1524

/**
 * struct bl_pace_page - value 0 of a node's "pace_page"; mmapped by the daemon. Written by the
 * node's pace program, which runs on one CPU, unless a field says otherwise.
 */
struct bl_pace_page {
	__u64 turns;   /* times that the pace program was called */
	__u64 emitted; /* frames sent, without beacons */
	__u64 failed;  /* frames that the device map refused, and beacons that could not leave */
	/* CLOCK_MONOTONIC of the next due frame as of the last turn; BL_DUE_NEVER: none */
	__u64 next_ns;
	__u64 beacons; /* beacons sent, where the pacer carries them (bpf/host/beacon.h) */
	/*
	 * Of the pacer's thread, for all its nodes together, and written by it: calls of
	 * bpf_prog_test_run, times that it slept, and (@woken) sleeps that a bell ended; the other
	 * sleeps ended when a frame became due.
	 */
	__u64 calls;
	__u64 sleeps;
	/*
	 * 1: the pacer sleeps, and whoever makes something due rings the bell. The pacer's thread
	 * sets it, issues a full fence and reads the node's struct bl_due once more. Whoever queues
	 * a frame lowers bl_due.next atomically and then reads this. Whoever rings exchanges it for
	 * 0, so that one bell is rung and not one per frame.
	 */
	__u32 asleep;
	__u32 woken;         /* see @calls */
	struct bl_hist late; /* from the due time of each frame until the device took it */
};
_Static_assert(sizeof(struct bl_pace_page) == 64 + 8 * BL_HIST_BINS, "ABI");

#endif
