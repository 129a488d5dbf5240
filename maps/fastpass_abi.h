/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fastpass on a host: how many timeslots each destination wants, and which timeslots the arbiter
 * has given to it. The daemon's thread (loader/admission/fastpass.c) speaks FCP with the arbiter
 * and mmaps these maps; the BPF programs count the demand and release the frames.
 *
 * Slots are numbered: slot s begins at bus time s x slot_ns, which is CLOCK_MONOTONIC s x slot_ns -
 * offset_ns. The slots given to a destination form a ring of BL_FP_SLOTS bits: slot s is bit s % 64
 * of word s / 64 % BL_FP_WORDS, and a word stands for the 64 slots from 64 x base on. Example: slot
 * 70000 is bit 48 of word 5, whose base is 1093.
 *
 * The arithmetic is in core/fastpass/fastpass_core.h; the protocol is in maps/fcp_abi.h.
 */
#ifndef BARLINE_FP_ABI_H
#define BARLINE_FP_ABI_H

#include <linux/types.h>

#define BL_MAP_FP_DESTS "fp_dests" /* array: number of the destination -> struct bl_fp_dest */
#define BL_MAP_FP_PAGE  "fp_page"  /* array of one struct bl_fp_page; mmapped */
/* A ring buffer that never holds a record: its wait queue wakes the daemon's thread. */
#define BL_MAP_FP_BELL "fp_bell"

/* array: number of the endpoint -> struct bl_fp_paths; mmapped */
#define BL_MAP_FP_PATHS "fp_paths"
/* hash: struct bl_mac_key of an endpoint's application -> __u32, 1 + its number; by the daemon */
#define BL_MAP_FP_PEERS "fp_peers"

#define BL_FP_WORDS     16
#define BL_FP_SLOTS     (64 * BL_FP_WORDS)
/* byte times of a TCP acknowledgement with timestamps: 66 bytes of frame and 24 on the wire */
#define BL_FP_ACK_BYTES 90
#define BL_FP_NO_PATH   0xff /* in bl_fp_dest.path: the path that the flow's hash selects */

/* Values of bl_fp_dest.endpoint besides 1 + the number of an endpoint. */
#define BL_FP_UNKNOWN 0 /* the daemon has not looked the destination up yet: its frames wait */
/*
 * Written by the pacer: the destination has no owner any more. The daemon forgets it and writes
 * UNKNOWN.
 */
#define BL_FP_RETIRED 0xfffffffe
#define BL_FP_OUTSIDE 0xffffffff /* not an endpoint of the arbiter: frames are sent at once */

/**
 * struct bl_fp_word - 64 slots of one destination. Shared by the daemon and the pacer without a
 * lock; core/fastpass/fastpass_core.h has the rules.
 */
struct bl_fp_word {
	__u64 base; /* slot number / 64. Written by the daemon, which empties @bits before. */
	/* 1: given and not used yet. Set by the daemon, cleared by the pacer, both atomically. */
	__u64 bits;
};

/**
 * struct bl_fp_dest - one destination. No lock: each field says who writes it.
 */
struct bl_fp_dest {
	/*
	 * Slots wanted since the map was made << 16 | byte times (core/length_core.h) left in the
	 * last of them: small frames share a slot (Fastpass section 6.1). Changed by
	 * compare-and-swap, since bl_hold_xdp runs on any CPU.
	 */
	__u64 want;
	__u64 used;   /* slots that carried a frame. Written by the pacer. */
	__u64 idle;   /* slots that found no frame. Written by the pacer. */
	__u64 missed; /* slots that the pacer came too late for; asked for again. Written by it. */
	__u64 frames; /* frames sent in slots; at least @used. Written by the pacer. */
	__u64 open;   /* slot in use; valid while @room is not 0. Written by the pacer. */
	__u32 room;   /* byte times left in @open; 0: no slot is in use. Written by the pacer. */
	__u32 first;  /* 1: @open has carried no frame yet. Written by the pacer. */
	/*
	 * BL_FP_UNKNOWN, BL_FP_OUTSIDE, BL_FP_RETIRED, or 1 + number of the endpoint. The daemon
	 * replaces UNKNOWN by compare-and-swap; the pacer exchanges any value for RETIRED. While it
	 * is RETIRED, the destination has no owner and only the daemon changes it.
	 */
	__u32 endpoint;
	__u32 reserved;
	struct bl_fp_word word[BL_FP_WORDS];
	__u8 path[BL_FP_SLOTS]; /* by slot % BL_FP_SLOTS; valid while the slot's bit is 1 */
};
_Static_assert(sizeof(struct bl_fp_dest) == 64 + 16 * BL_FP_WORDS + BL_FP_SLOTS, "ABI");

/*
 * Columns of struct bl_fp_paths: one per path, and a last one for frames without a path, or with
 * one that the receiver cannot see.
 */
#define BL_FP_PATHS   64
#define BL_FP_COLUMNS (BL_FP_PATHS + 1)

/**
 * struct bl_fp_paths - frames sent to and received from one endpoint, by path. Both ends count the
 * same frames: those of applications, without ARP, ND and broadcast. A frame that one end sent and
 * the other never received was lost between them. Counters only grow while the map exists.
 */
struct bl_fp_paths {
	__u64 sent[BL_FP_COLUMNS]; /* frames that left in a slot. Written by the pacer. */
	/* frames received for bl0. Incremented atomically by any CPU that receives. */
	__u64 came[BL_FP_COLUMNS];
};
_Static_assert(sizeof(struct bl_fp_paths) == 1040, "ABI");

/**
 * struct bl_fp_page - value 0 of "fp_page". Written by the daemon's thread, except @asleep, which
 * programs exchange as well. Fields from @session on are informational, except @fallback.
 */
struct bl_fp_page {
	__u64 offset_ns; /* bus time - CLOCK_MONOTONIC, modulo 2^64; one 64-bit store */
	/*
	 * 1: the daemon's thread sleeps, and whoever raises a demand rings the bell. The thread
	 * sets it, issues a full fence and scans all @want once more. A program that raises a
	 * demand changes @want atomically and then exchanges this for 0.
	 */
	__u32 asleep;
	__u32 session; /* 1: the arbiter has answered */
	__u32 term;    /* of the arbiter */
	/*
	 * 1: no arbiter has answered for fallback_ms, so frames leave without slots
	 * (core/fastpass/fcp_vain_core.h). Read without a lock by the hook that holds frames and by
	 * the pacer. Either may see it late; gather() in loader/admission/fastpass.c finds the
	 * frames that were held meanwhile.
	 */
	__u32 fallback;
	__u64 sessions;   /* sessions so far */
	__u64 session_ns; /* CLOCK_MONOTONIC at which the last session began */
	__u64 first_ns;   /* CLOCK_MONOTONIC at which its first slot came; 0: none */
	__u64 last_ns;    /* CLOCK_MONOTONIC at which the last slot came */
	__u64 asked;      /* slots asked for */
	__u64 given;      /* slots given */
	__u64 lost;       /* slots in ALLOCs that did not arrive */
	__u64 refused;    /* slots too late or too far ahead to be entered; asked for again */
	__u64 healed;     /* slots asked for since frames waited and none was under way */
	__u64 tx;         /* FCP packets sent */
	__u64 rx;         /* FCP packets received */
	__u64 bad;        /* FCP packets received and refused */
};
_Static_assert(sizeof(struct bl_fp_page) == 120, "ABI");

#endif
