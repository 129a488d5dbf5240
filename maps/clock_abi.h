/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bus time: the one clock that all nodes agree on, in ns, in 64 bits on a node and in 48 on the
 * wire. The daemon keeps it near CLOCK_TAI; programs and processes derive it from CLOCK_MONOTONIC
 * by the record below (core/clock_core.h), so no step of the system clock ever reaches a timestamp.
 */
#ifndef BARLINE_CLOCK_ABI_H
#define BARLINE_CLOCK_ABI_H

#include <linux/types.h>

/**
 * struct bl_clock_seg - one straight piece of bus time.
 * @mono_ns: CLOCK_MONOTONIC from which the piece holds.
 * @bus_ns: bus time at @mono_ns. Joins the piece before it: bus time is continuous and never goes
 * back.
 * @rate: slope - 1 in units of 2^-30 (about 0.93 ppb), within BL_CLOCK_RATE_MAX.
 * @reserved: must be zero.
 */
struct bl_clock_seg {
	__u64 mono_ns;
	__u64 bus_ns;
	__s32 rate;
	__u32 reserved;
};
#define BL_CLOCK_RATE_MAX (536871) /* 500 ppm */

/**
 * struct bl_clock - the clock record (DESIGN 5). One writer, the daemon; readers in BPF and in
 *processes.
 * @seq: odd while the daemon writes; readers retry, at most BL_CLOCK_TRIES times, and then use what
 *they read: pieces differ by ns.
 * @flags: BL_CLOCK_VALID once the first piece is there.
 * @seg: [0] the older piece, [1] the newer; the newer holds from its @mono_ns on, which the daemon
 *sets BL_CLOCK_LEAD_NS ahead, so that all readers change over at one moment.
 * @as_of_ns: CLOCK_MONOTONIC of the last good measurement.
 * @void_after_ns: CLOCK_MONOTONIC after which the clock must not be used.
 * @bound_ns: greatest error at @as_of_ns against the true bus time.
 * @drift_ppb: how fast the error can have grown since.
 * @skew_ns: injected by tests: added to the bus time that the daemon aims at.
 * @tai_offset_s: the kernel's TAI - UTC.
 */
struct bl_clock {
	__u32 seq;
	__u32 flags;
	struct bl_clock_seg seg[2];
	__u64 as_of_ns;
	__u64 void_after_ns;
	__u64 bound_ns;
	__u32 drift_ppb;
	__s32 tai_offset_s;
	__s64 skew_ns;
};
_Static_assert(sizeof(struct bl_clock) == 96, "ABI");
#define BL_CLOCK_VALID   1u
#define BL_CLOCK_TRIES   4
#define BL_CLOCK_LEAD_NS 2000000ULL

#endif
