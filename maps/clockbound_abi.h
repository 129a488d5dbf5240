/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file in which ClockBound of AWS publishes the bound of the system clock, in the byte order of
 * the machine: /var/run/clockbound/shm0, or /var/run/clockbound/shm before ClockBound 2. The layout
 * is that of docs/PROTOCOL.md of ClockBound 2.0.
 */
#ifndef BARLINE_CLOCKBOUND_ABI_H
#define BARLINE_CLOCKBOUND_ABI_H

#include <linux/types.h>

#define BL_CB_MAGIC0 0x414d5a4eu
#define BL_CB_MAGIC1 0x43420200u

/** struct bl_cb_time - a timespec of CLOCK_MONOTONIC_COARSE. */
struct bl_cb_time {
	__s64 sec, nsec;
};

/** struct bl_clockbound - the file. Its writer changes all but the first two fields at any time. */
struct bl_clockbound {
	__u32 magic[2];
	__u32 size;                   /* of what has been written, bytes */
	__u16 version;                /* of the layout: 1 or 2 */
	__u16 generation;             /* odd while an update is written, 0 before the first one */
	struct bl_cb_time as_of;      /* when @bound_ns was determined */
	struct bl_cb_time void_after; /* when it is not to be trusted any more */
	__s64 bound_ns;               /* greatest error of CLOCK_REALTIME at @as_of */
	union {
		struct {
			__u32 drift_ppb; /* how fast the error may grow */
			__u32 reserved;
			__s32 status; /* enum bl_cb_status */
			__u32 pad;
		} v1;
		struct {
			__u64 disruption_marker;
			__u32 drift_ppb;
			__s32 status;
			__u8 disruption_support;
			__u8 pad[7];
		} v2;
	};
};
#define BL_CB_V1_BYTES 72
_Static_assert(sizeof(struct bl_clockbound) == 80, "PROTOCOL.md");
_Static_assert(__builtin_offsetof(struct bl_clockbound, v1.pad) + 4 == BL_CB_V1_BYTES, "v1");

enum bl_cb_status {
	BL_CB_UNKNOWN,
	BL_CB_SYNCHRONIZED,
	BL_CB_FREE_RUNNING,
	BL_CB_DISRUPTED, /* version 2 */
};

#endif
