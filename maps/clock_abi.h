/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bus time: the one clock that all nodes agree on, in nanoseconds; 64 bits wide on a node and 48
 * bits wide on the wire. The daemon keeps bus time close to CLOCK_TAI. Programs and processes
 * compute it from CLOCK_MONOTONIC with the record below (core/clock_core.h has an example), so a
 * step of the system clock never reaches a timestamp.
 *
 * This file does not say how the daemon measures or steers the clock: see loader/order/clock.c.
 */
#ifndef BARLINE_CLOCK_ABI_H
#define BARLINE_CLOCK_ABI_H

#include <linux/types.h>

/**
 * struct bl_clock_seg - one linear segment of bus time. Written by the daemon; struct bl_clock.seq
 * protects it.
 */
struct bl_clock_seg {
	__u64 mono_ns; /* CLOCK_MONOTONIC at which the segment begins */
	/* bus time at @mono_ns; equals the previous segment's, so bus time never goes back */
	__u64 bus_ns;
	__s32 rate;     /* slope - 1 in units of 2^-30 (about 0.93 ppb); see BL_CLOCK_RATE_MAX */
	__u32 reserved; /* must be zero */
};
#define BL_CLOCK_RATE_MAX (536871) /* largest absolute value of @rate: 500 ppm */

/**
 * struct bl_clock - the clock record, value 0 of the map "clock". The daemon is the only writer;
 * BPF programs and processes read it without a lock. The writer may stand still between any two
 * stores, for milliseconds on a busy machine, and a reader does not wait for it. So the order of
 * the stores (bl_clock_store()) and of the loads (bl_clock_at(), bl_clock_bound()) is part of the
 * ABI: whatever has been stored, a reader computes with one complete segment, and a bound that is
 * not too small. @seq is odd while the daemon writes; it tells readers that the record has changed
 * under them.
 */
struct bl_clock {
	__u32 seq;   /* odd: the record is being written */
	__u32 flags; /* BL_CLOCK_VALID, or 0: the record has no segment yet */
	/*
	 * [0]: the older segment, [1]: the newer. The newer one holds from its @mono_ns on. The
	 * daemon sets that BL_CLOCK_LEAD_NS into the future, so that all readers change over at the
	 * same moment. One whose @mono_ns is BL_CLOCK_UNWRITTEN is being written.
	 */
	struct bl_clock_seg seg[2];
	__u64 as_of_ns;      /* CLOCK_MONOTONIC of the last good measurement */
	__u64 void_after_ns; /* CLOCK_MONOTONIC from which the clock must not be used */
	__u64 bound_ns;      /* largest error against true bus time at @as_of_ns */
	__u32 drift_ppb;     /* how fast the error may have grown since @as_of_ns */
	__s32 tai_offset_s;  /* the kernel's TAI - UTC, seconds */
	__s64 skew_ns;       /* error injected by tests: added to the bus time that is aimed at */
	__u32 source;        /* enum bl_clock_source_kind: where @source_ns comes from */
	__u16 state;         /* enum bl_clock_state at the last update */
	__u16 reason;        /* enum bl_clock_reason: why it is not good; 0: it is, or unknown */
	__u64 source_ns;     /* the part of @bound_ns that comes from the source */
	/*
	 * CLOCK_MONOTONIC of the source's last word on the clock; 0: the record was void ever since
	 * it was made, and so no bus time of it was ever used
	 */
	__u64 source_as_of_ns;
	__u64 max_bound_ns; /* the record is void while the bound is greater; 0: no limit */
	/*
	 * For the next keeper: was the system clock stepped since, or so shortly before that its
	 * source may not know of it? Zero if the source is not measured.
	 */
	__s64 system_ns;         /* CLOCK_TAI less CLOCK_MONOTONIC at the last reading */
	__u64 system_error_ns;   /* greatest error of @system_ns */
	__u64 system_stepped_ns; /* CLOCK_MONOTONIC of the last step; 0: none is in doubt */
	/*
	 * The part of @bound_ns that neighbours have proven against this clock. Beacons say the
	 * bound without it (core/order/skew_core.h).
	 */
	__u64 proven_ns;
};
_Static_assert(sizeof(struct bl_clock) == 160, "ABI");

/** enum bl_clock_source_kind - where the bound of the system clock comes from (loader/clock/). */
enum bl_clock_source_kind {
	BL_CLOCK_SOURCE_NONE, /* not set */
	BL_CLOCK_TRUST,       /* the configuration: the bound is believed, not measured */
	BL_CLOCK_KERNEL,      /* adjtimex(2) */
	BL_CLOCK_PTP4L,       /* ptp4l's management socket */
	BL_CLOCK_CLOCKBOUND,  /* the file of AWS ClockBound */
};

/*
 * What the source says: the number is ABI, the second column is the name in output. Append only; a
 * record is void in those for which the third column says so.
 */
#define BL_CLOCK_STATES(X)                                                                         \
	X(GOOD, "good", 0)            /* the clock is synchronised, and the bound is kept */       \
	X(HOLDOVER, "holdover", 0)    /* it is not any more; the bound widens and is still kept */ \
	X(NEVER, "unsynchronised", 1) /* it never was since the record was made */                 \
	X(TOO_WIDE, "too_wide", 1)    /* the bound is greater than @max_bound_ns */                \
	X(STEERING, "steering", 1)    /* the clock is good, bus time is too far from it */
enum bl_clock_state {
#define BL_CLOCK_STATE_(name, text, is_void) BL_CLOCK_##name,
	BL_CLOCK_STATES(BL_CLOCK_STATE_)
#undef BL_CLOCK_STATE_
		BL_CLOCK_STATES_NUMBER
};

/*
 * Why a source does not call the clock synchronised: the number is ABI, the second column is the
 * name in output, the third the sentence and the fourth the next step. Append only.
 */
#define BL_CLOCK_REASONS(X)                                                                        \
	X(NO_REASON, "", "", "")                                                                   \
	X(ASKING, "asking", "its source has been asked and has not answered yet", "wait")          \
	X(UNSYNC, "unsync", "the kernel calls the system clock unsynchronised (STA_UNSYNC)",       \
	  "start chrony, ntpd, or ptp4l and phc2sys")                                              \
	X(NO_BOUND, "no_bound",                                                                    \
	  "whoever sets the system clock reports an error of 0 (maxerror), as systemd-timesyncd "  \
	  "and phc2sys do, whatever it is",                                                        \
	  "write into bound_us how far the clock can be off, or run chrony instead of timesyncd")  \
	X(OWN_SOCKET, "own_socket", "the daemon cannot make a socket of its own for ptp4l",        \
	  "let it write to its run folder")                                                        \
	X(PTP_GONE, "ptp4l_gone", "ptp4l does not run: nobody listens on its socket",              \
	  "start ptp4l, or name its uds_address with \"socket\"")                                  \
	X(PTP_DENIED, "ptp4l_denied", "the daemon may not write to ptp4l's socket",                \
	  "give its group the right to, as docs/clocks.md says")                                   \
	X(PTP_SILENT, "ptp4l_silent", "ptp4l does not answer",                                     \
	  "see whether it is stopped, and whether \"domain\" and \"transport_specific\" are its "  \
	  "own")                                                                                   \
	X(PTP_WRONG, "ptp4l_wrong", "ptp4l's answers cannot be used", "use linuxptp 3.1 or later") \
	X(PTP_PORT, "ptp4l_port", "ptp4l has no port in the state SLAVE",                          \
	  "look for the master in ptp4l's log")                                                    \
	X(PTP_MASTER, "ptp4l_master", "ptp4l follows nobody, it is the grandmaster itself",        \
	  "look for the lost master, or set \"grandmaster: true\" if this clock is the rack's "    \
	  "time")                                                                                  \
	X(PTP_NO_SYNC, "ptp4l_no_sync", "ptp4l has not measured the clock for 20 s",               \
	  "see whether Sync messages arrive, and the path delay in ptp4l's log")                   \
	X(PHC_GONE, "phc_gone", "the hardware clock that ptp4l steers cannot be read",             \
	  "name it with \"phc\", and see docs/clocks.md for the rights")                           \
	X(PHC_JUMPED, "phc_jumped", "the hardware clock that ptp4l steers has jumped",             \
	  "see whether a second program sets it")                                                  \
	X(CB_GONE, "clockbound_gone", "the file of ClockBound cannot be read",                     \
	  "start clockbound, or name its file with \"file\"")                                      \
	X(CB_WRONG, "clockbound_wrong", "the file of ClockBound is not one of version 1 or 2",     \
	  "use ClockBound 1 or 2")                                                                 \
	X(CB_UNKNOWN, "clockbound_unknown", "ClockBound does not know how good the clock is",      \
	  "look after chronyd")                                                                    \
	X(CB_FREE_RUNNING, "clockbound_free", "ClockBound calls the clock free running",           \
	  "look after chronyd")                                                                    \
	X(CB_DISRUPTED, "clockbound_disrupted", "ClockBound says that the clock was disrupted",    \
	  "wait until chronyd has synchronised it again")                                          \
	X(CB_STALE, "clockbound_stale", "ClockBound has not renewed its bound for 5 s",            \
	  "see whether clockbound runs")
enum bl_clock_reason {
#define BL_CLOCK_REASON_(name, text, sentence, step) BL_CLOCK_##name,
	BL_CLOCK_REASONS(BL_CLOCK_REASON_)
#undef BL_CLOCK_REASON_
		BL_CLOCK_REASONS_NUMBER
};
#define BL_CLOCK_BOUND_MAX_NS 3600000000000ULL /* a bound is not written greater than this */
#define BL_CLOCK_VALID        1u
#define BL_CLOCK_TRIES        4
#define BL_CLOCK_LEAD_NS      2000000ULL
#define BL_CLOCK_UNWRITTEN    (1ULL << 62) /* later than CLOCK_MONOTONIC will ever be */

#endif
