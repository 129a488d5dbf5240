/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP at a switch: how tokens are limited on each output and each input, and counters of what
 * became of them.
 *
 * Example: an output of 10 Gbit/s lets one token pass per 1297.6 ns, the time of a token and its
 * full data frame on the link. core/top/top_token_core.h has the rules and the numbers of both
 * modes. The tokens themselves are defined in maps/top_abi.h.
 */
#ifndef BARLINE_TOKEN_ABI_H
#define BARLINE_TOKEN_ABI_H

#include <linux/types.h>
#include "maps/switch_abi.h"
#include "maps/top_abi.h"

#define BL_MAP_TOKEN_CFG    "token_cfg"    /* array of one struct bl_token_cfg */
#define BL_MAP_TOKEN_PORTS  "token_ports"  /* array: port -> struct bl_token_port */
#define BL_MAP_TOKEN_COUNTS "token_counts" /* per-CPU array: port -> struct bl_token_counts */

/* X(SYMBOL, "name", "text"): what a switch does with tokens. Append only. */
/* clang-format off */
#define BL_TOKEN_MODES(X) \
	X(DROP, "drop", "decided as a token comes, nothing is held") \
	X(PACE, "pace", \
	  "held in the output's queues; the pacer sends the best one that is not too old")
/* clang-format on */
#define BL_TOKEN_MODE_ENUM(sym, name, text) BL_TOKEN_##sym,
enum bl_token_mode { BL_TOKEN_MODES(BL_TOKEN_MODE_ENUM) BL_TOKEN_MODE_COUNT };
#undef BL_TOKEN_MODE_ENUM

#define BL_TOKEN_FRAMES     8 /* tokens of one class (TOP section 4.3; ExpressPass section 3.1) */
#define BL_TOKEN_EXPIRY     8 /* token times (TOP section 3.1) */
#define BL_TOKEN_FRAMES_MAX 64

/**
 * struct bl_token_cfg - value 0 of "token_cfg". Written by the loader and by `barline admission
 * set`; the programs only read it.
 */
struct bl_token_cfg {
	__u32 on;   /* 1: TOP's frames are classified; 0: they are treated like all other data */
	__u32 mode; /* enum bl_token_mode */
	/*
	 * pace: 1: data is sent before tokens, within its share of the link (TOP, Fig. 3a); 0:
	 * after them (Fig. 3b).
	 */
	__u32 data_first;
	/*
	 * 1: frames marked as unscheduled get the class of that name, which is one full frame deep;
	 * 0: they are data.
	 */
	__u32 unscheduled;
	/*
	 * pace: tokens of one class that may wait. drop: how far class 0 may be ahead of the
	 * group's rate, in tokens; each following class one token less. From 1.
	 */
	__u32 frames;
	/*
	 * Token times. pace: a token that waited for longer is dropped. drop: a token that finds
	 * more than this ahead of it is dropped.
	 */
	__u32 expiry;
	/*
	 * 1: a switch that routes uses its up ports in turn. The program reads path_by of struct
	 * bl_sw_cfg; this is what path_by becomes when the policy changes to TOP.
	 */
	__u32 spray;
	__u32 reserved; /* must be zero */
};
_Static_assert(sizeof(struct bl_token_cfg) == 32, "ABI");

/**
 * struct bl_token_port - one port of the switch. A word called _q20 is a time: CLOCK_MONOTONIC
 * times 2^20, modulo 2^64, until which the frames that have passed fill their share of the link.
 * The loader reads the four words and writes them back when it changes @ns_q20 or @outside; what
 * passes in between is forgotten once.
 */
struct bl_token_port {
	/*
	 * Tokens that left by this port. Mode drop: changed by compare-and-swap by the programs of
	 * all inputs. Mode pace: written by the pacer alone.
	 */
	__u64 out_q20;
	__u64 data_q20; /* data that left by this port, for @data_first. Written by the pacer. */
	/*
	 * Tokens and signals that came in here. Written by the port's datapath CPU; two CPUs at
	 * once (reason wrong_cpu) let one frame too many pass.
	 */
	__u64 in_q20;
	__u64 signal_q20;
	__u32 ns_q20; /* rate of the link, as in struct bl_meter; 0: no limits. By the loader. */
	/* 1: leads out of the rack: nothing from there is unscheduled. By the loader. */
	__u32 outside;
	__u32 turn; /* spraying: path of the next frame from this input */
	__u32 reserved;
	__u64 reserved2[2];
};
_Static_assert(sizeof(struct bl_token_port) == 64, "one cache line");

/**
 * struct bl_token_counts - value of "token_counts", by port. Per CPU: each CPU's value is written
 * only by the programs that run there. The first four fields count by output, the others by input.
 */
struct bl_token_counts {
	__u64 passed[BL_TOP_CLASSES];  /* tokens sent on, by class; in mode pace, by the pacer */
	__u64 limit[BL_TOP_CLASSES];   /* tokens dropped for reason token_limit, by class */
	__u64 expired[BL_TOP_CLASSES]; /* tokens dropped for reason token_expired, by class */
	/* tokens dropped since other CPUs won every compare-and-swap; counted in @limit, too */
	__u64 lost;
	__u64 bad;          /* tokens with a class out of range */
	__u64 flood;        /* tokens beyond the input's budget */
	__u64 signals;      /* signals received */
	__u64 signal_flood; /* signals beyond the input's budget */
	__u64 reserved;
};
_Static_assert(sizeof(struct bl_token_counts) == 192, "ABI");

#endif
