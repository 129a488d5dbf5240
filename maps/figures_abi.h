/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an endpoint tells of itself: counters, histograms of times, and its last messages that had
 * to wait. A part of its page (struct bl_ep_page). The process is the only writer; `barline
 * metrics`, `barline trace` and others read it without a lock, and believe it only as far as it
 * concerns this endpoint, since a process can write there what it likes.
 *
 * Example: a message is staged at 100 us and finds the window of 10.0.0.2:61700 closed at 120 us.
 * It gets its timestamp T at 900 us. hist[BL_FIG_SEND] counts 800 us, and wait[] gets { ts T,
 * staged_ns 20000, window_ns 780000, dst 10.0.0.2:61700, why BL_FIG_WINDOW }.
 */
#ifndef BARLINE_FIGURES_ABI_H
#define BARLINE_FIGURES_ABI_H

#include <linux/types.h>

/*
 * X(SYMBOL, member): the words of @count, each a member of struct bl_stats (lib/barline.h), which
 * says what it means. Append only.
 */
/* clang-format off */
#define BL_FIG_COUNTS(X) \
	X(SCATTERINGS, scatterings) \
	X(MESSAGES_SENT, messages_sent) \
	X(FRAMES_SENT, frames_sent) \
	X(MESSAGES_DELIVERED, messages_delivered) \
	X(RELIABLE_DELIVERED, reliable_delivered) \
	X(FRAMES_RECEIVED, frames_received) \
	X(LATE_DROPPED, late_dropped) \
	X(DUPLICATES, duplicates) \
	X(LOST_FRAMES, lost_frames) \
	X(MALFORMED, malformed) \
	X(SEND_FAILED, send_failed) \
	X(AGAIN, again) \
	X(CREDITS_SENT, credits_sent) \
	X(CREDITS_RECEIVED, credits_received) \
	X(PROBES_SENT, probes_sent) \
	X(NAKS_SENT, naks_sent) \
	X(SLEEPS, sleeps) \
	X(WAKEUPS, wakeups) \
	X(RETRANSMITS, retransmits) \
	X(DISCARDED, discarded) \
	X(RECALLS_SENT, recalls_sent) \
	X(RECALLED, recalled) \
	X(FORWARDED, forwarded) \
	X(REFUSED, refused) \
	X(RECONNECTS, reconnects) \
	X(NO_ROOM, no_room) \
	X(UNANSWERED, unanswered) \
	X(RING_FULL, ring_full)
/* clang-format on */
#define BL_FIG_ENUM(sym, member) BL_FIG_N_##sym,
enum bl_fig_count { BL_FIG_COUNTS(BL_FIG_ENUM) BL_FIG_N_COUNT };
#undef BL_FIG_ENUM
#define BL_FIG_N_MAX 32 /* room to grow */
_Static_assert(BL_FIG_N_COUNT <= BL_FIG_N_MAX, "counters outgrew struct bl_figures");

/*
 * The histograms; each kind has two, of the best-effort stream and behind it of the reliable one.
 */
enum bl_fig_kind {
	/*
	 * From the first bl_send() of a scattering, or of those that leave together, to its
	 * timestamp: staged by BL_MORE, or waiting for windows. Counts timestamps.
	 */
	BL_FIG_SEND,
	/*
	 * From a message's timestamp to the call that hands it to the application. Counts messages;
	 * a sample of them, see lib/figures.h.
	 */
	BL_FIG_DELIVERY = 2,
	/*
	 * From the ring to delivery, or to the helper thread: waiting for the barrier, and for the
	 * process. Counts frames; a sample of them, see struct bl_rec.
	 */
	BL_FIG_HOLD = 4,
	BL_FIG_KINDS = 6,
};

#define BL_FIG_BINS     20 /* those of core/log_hist_core.h */
#define BL_FIG_FIRST    11 /* the first bin has times below 2^11 ns, the last one from 2^29 ns on */
#define BL_FIG_KEPT     64 /* entries of @wait and of @end */
#define BL_FIG_SHORT_NS 20000ULL /* a wait before the timestamp that is shorter has no entry */

/** struct bl_fig_hist - a histogram of times. */
struct bl_fig_hist {
	__u64 n[BL_FIG_BINS];
	__u64 sum_ns; /* of all values */
};
_Static_assert(sizeof(struct bl_fig_hist) == 168, "ABI");

/* What a scattering waits for before it gets its timestamp. */
enum bl_fig_why {
	BL_FIG_MORE,   /* for more: BL_MORE */
	BL_FIG_WINDOW, /* for the window of a destination, or for its answer */
	BL_FIG_NIC,    /* for room in the NIC's ring */
	BL_FIG_CLOCK,  /* for a valid clock */
	BL_FIG_SLOTS,  /* for its own reliable window: for acknowledgements of others */
};

/** struct bl_fig_now - what is staged in one stream now. */
struct bl_fig_now {
	__u64 since_ns; /* CLOCK_MONOTONIC of the first bl_send() of it; 0: nothing is staged */
	__u64 held_ns;  /* since when it is held back by @why; 0: it is not */
	__u8 dst[16];   /* BL_FIG_WINDOW: whose window; IPv6 or IPv4-mapped */
	__u16 port;     /* BL_FIG_WINDOW: the same, host order */
	__u8 why;       /* enum bl_fig_why */
	__u8 reserved[5];
};
_Static_assert(sizeof(struct bl_fig_now) == 40, "ABI");

/** struct bl_fig_wait - a scattering that waited before its timestamp. */
struct bl_fig_wait {
	__u64 ts;        /* 0: the entry is being written. Stored last. */
	__u64 staged_ns; /* from the first bl_send() until it was held back */
	__u64 window_ns; /* from there to the timestamp */
	__u8 dst[16];    /* as in struct bl_fig_now: what it waited for last */
	__u16 port;
	__u8 why;
	__u8 reliable; /* 1: of the reliable stream */
	__u32 reserved;
};
_Static_assert(sizeof(struct bl_fig_wait) == 48, "ABI");

/** struct bl_fig_end - a message that was delivered: the first one of a call that was measured. */
struct bl_fig_end {
	__u64 ts;       /* 0: the entry is being written. Stored last. */
	__u64 total_ns; /* from @ts to the call, by the host's clock */
	__u64 hold_ns;  /* from the ring to the call; 0: it was not measured */
	__u64 at_ns;    /* CLOCK_MONOTONIC of the call */
	__u8 src[16];   /* sender: IPv6 or IPv4-mapped */
	__u16 port;     /* of the sender, host order */
	__u8 reliable;  /* 1: of the reliable stream */
	__u8 reserved[5];
};
_Static_assert(sizeof(struct bl_fig_end) == 56, "ABI");

/** struct bl_figures - all of it. Zero when the endpoint begins. */
struct bl_figures {
	/*
	 * By enum bl_fig_count. Copied from the library's own counters before it sleeps, and in
	 * every 64th call: so it may be behind by 64 calls of a process that works.
	 */
	__u64 count[BL_FIG_N_MAX];
	__u64 queued[2]; /* frames that wait to be delivered, by stream; copied with @count */
	__u64 began;     /* bus time at which the endpoint began */
	__u64 nwaits;    /* entries of @wait ever written, with one that is being written */
	__u64 nends;     /* entries of @end, the same */
	__u64 reserved;
	struct bl_fig_now now[2]; /* by stream */
	struct bl_fig_hist hist[BL_FIG_KINDS];
	struct bl_fig_wait wait[BL_FIG_KEPT]; /* entry n is at n modulo BL_FIG_KEPT */
	struct bl_fig_end end[BL_FIG_KEPT];   /* the same */
	__u64 unused[18];                     /* must be zero */
};
_Static_assert(sizeof(struct bl_figures) == 8192, "two pages");

#endif
