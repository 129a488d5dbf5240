/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fastpass on a host (DESIGN 4): how many timeslots each destination wants, and which ones it was
 * given. Both maps are mmapped by the daemon, whose thread (loader/admission/fastpass.c) speaks FCP
 * with the arbiter; programs count demand and release frames.
 *
 * Slots have numbers: slot s begins at s x slot_ns of bus time, which is s x slot_ns - offset_ns of
 * CLOCK_MONOTONIC. What was given to a destination is a ring of BL_FP_SLOTS bits: slot s is bit s %
 * 64 of word s / 64 % BL_FP_WORDS, which stands for slots from 64 x base on. Example: slot 70000 is
 * bit 48 of word 5, whose base is 1093.
 */
#ifndef BARLINE_FP_ABI_H
#define BARLINE_FP_ABI_H

#include <linux/types.h>

#define BL_MAP_FP_DESTS "fp_dests" /* array: number of the destination -> struct bl_fp_dest */
#define BL_MAP_FP_PAGE  "fp_page"
/* ring buffer without records: its wait queue wakes the daemon's thread */
#define BL_MAP_FP_BELL "fp_bell"

/* array: number of the endpoint -> struct bl_fp_paths; mmapped */
#define BL_MAP_FP_PATHS "fp_paths"
/* hash: struct bl_mac_key of an endpoint's application -> __u32 1 + its number; the daemon's */
#define BL_MAP_FP_PEERS "fp_peers"

#define BL_FP_WORDS     16
#define BL_FP_SLOTS     (64 * BL_FP_WORDS)
/* byte times of a TCP acknowledgement with timestamps: 66 bytes and 24 */
#define BL_FP_ACK_BYTES 90
#define BL_FP_NO_PATH   0xff /* the flow's own path */

/* bl_fp_dest.endpoint */
#define BL_FP_UNKNOWN 0 /* the daemon has not looked yet: frames wait */
/* the pacer's word: its owner has the number no more; the daemon forgets it and makes it UNKNOWN */
#define BL_FP_RETIRED 0xfffffffe
#define BL_FP_OUTSIDE 0xffffffff /* no endpoint of the arbiter's: frames go at once */

/**
 * struct bl_fp_word - 64 slots. @bits: 1: given and not used yet. Set by the daemon, cleared by the
 * pacer, both atomically.
 * @base: which 64 slots. The daemon's: it empties @bits before it changes @base.
 */
struct bl_fp_word {
	__u64 base;
	__u64 bits;
};

/**
 * struct bl_fp_dest - one destination.
 * @want: slots wanted since the map was made << 16 | byte times (core/length_core.h) that the last
 *of them has left: small frames share a slot (Fastpass section 6.1). Changed by compare-and-swap:
 *bl_hold_xdp runs on any CPU.
 * @used, @idle, @missed: slots that carried a frame; that found no frame; that the pacer came too
 *late for, and that are asked for again. The pacer's.
 * @frames: sent in slots; at least @used. The pacer's.
 * @open: slot in hand. @room: byte times left in it; 0: none is in hand. @first: 1: it has carried
 *no frame yet. The pacer's.
 * @endpoint: BL_FP_UNKNOWN, BL_FP_OUTSIDE or 1 + its number: the daemon's, who changes UNKNOWN by
 *compare-and-swap; or RETIRED, the pacer's, who exchanges it for any of these. While it is RETIRED
 *the number has no owner, and only the daemon changes it.
 * @path: by slot % BL_FP_SLOTS; valid while its bit is 1.
 */
struct bl_fp_dest {
	__u64 want;
	__u64 used;
	__u64 idle;
	__u64 missed;
	__u64 frames;
	__u64 open;
	__u32 room;
	__u32 first;
	__u32 endpoint;
	__u32 reserved;
	struct bl_fp_word word[BL_FP_WORDS];
	__u8 path[BL_FP_SLOTS];
};
_Static_assert(sizeof(struct bl_fp_dest) == 64 + 16 * BL_FP_WORDS + BL_FP_SLOTS, "ABI");

/*
 * Columns of struct bl_fp_paths: paths, and one for frames that carry none or one that cannot be
 * seen in them.
 */
#define BL_FP_PATHS   64
#define BL_FP_COLUMNS (BL_FP_PATHS + 1)

/**
 * struct bl_fp_paths - frames to and from one endpoint, by path. Both ends look at the same frames:
 * those of applications, not ARP, ND, broadcast. So what one sent and the other never saw is lost
 * between them. Only grow, for as long as the map lives.
 * @sent: left in a slot; the pacer's. @came: for bl0; any CPU that receives, atomically.
 */
struct bl_fp_paths {
	__u64 sent[BL_FP_COLUMNS];
	__u64 came[BL_FP_COLUMNS];
};
_Static_assert(sizeof(struct bl_fp_paths) == 1040, "ABI");

/**
 * struct bl_fp_page - value 0 of "fp_page".
 * @offset_ns: bus time - CLOCK_MONOTONIC, modulo 2^64; written by the daemon, one 64-bit word.
 * @asleep: 1: the daemon's thread sleeps, and who wants more slots rings the bell. Set by the
 *thread, which fences and looks at all @want once more; who wants changes @want by an atomic
 *operation and then exchanges this for 0.
 * @fallback: 1: no arbiter has answered for fallback_ms, and frames leave without slots; the
 *	daemon's (core/fastpass/fcp_vain_core.h). Read by the hook that holds frames and by the
 *pacer, unlocked: either may see it late, and gather() in loader/admission/fastpass.c finds what
 *was held meanwhile. The rest is the daemon's, for people:
 * @session: 1: the arbiter has answered. @term: of the arbiter. @sessions: how many there were.
 *@session_ns: CLOCK_MONOTONIC when the last one began. @first_ns: when its first slot came; 0: none
 *yet. @last_ns: when the last slot came.
 * @asked, @given, @lost: slots; @lost: in ALLOCs that did not arrive. @refused: given too late or
 *too far ahead to be entered, asked for again. @healed: asked for because nothing was under way
 *although frames waited.
 * @tx, @rx: FCP packets. @bad: those that came and were not taken.
 */
struct bl_fp_page {
	__u64 offset_ns;
	__u32 asleep;
	__u32 session;
	__u32 term;
	__u32 fallback;
	__u64 sessions;
	__u64 session_ns;
	__u64 first_ns;
	__u64 last_ns;
	__u64 asked;
	__u64 given;
	__u64 lost;
	__u64 refused;
	__u64 healed;
	__u64 tx;
	__u64 rx;
	__u64 bad;
};
_Static_assert(sizeof(struct bl_fp_page) == 120, "ABI");

#endif
