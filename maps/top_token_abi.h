/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP at a switch: how tokens are limited on each output and each input (core/top/top_token_core.h
 * has the rules), and what became of them.
 */
#ifndef BARLINE_TOKEN_ABI_H
#define BARLINE_TOKEN_ABI_H

#include "maps/switch_abi.h"
#include "maps/top_abi.h"

#define BL_MAP_TOKEN_CFG    "token_cfg"
#define BL_MAP_TOKEN_PORTS  "token_ports"
#define BL_MAP_TOKEN_COUNTS "token_counts"

/* What a switch does with tokens. X(SYMBOL, "name", "text"). Append only. */
/* clang-format off */
#define BL_TOKEN_MODES(X) \
	X(DROP, "drop", "decided as a token comes, nothing is held") \
	X(PACE, "pace", "held in the output's queues; the pacer sends the best one that is not too old")
/* clang-format on */
#define BL_TOKEN_MODE_ENUM(sym, name, text) BL_TOKEN_##sym,
enum bl_token_mode { BL_TOKEN_MODES(BL_TOKEN_MODE_ENUM) BL_TOKEN_MODE_COUNT };
#undef BL_TOKEN_MODE_ENUM

#define BL_TOKEN_FRAMES     8 /* tokens of one class (TOP section 4.3; ExpressPass section 3.1) */
#define BL_TOKEN_EXPIRY     8 /* token times (TOP section 3.1) */
#define BL_TOKEN_FRAMES_MAX 64

/**
 * struct bl_token_cfg - value 0 of "token_cfg". Written by the loader and by `barline admission
 * set`; the programs read it.
 * @on: TOP's frames are looked at; 0: they are data as any other.
 * @mode: enum bl_token_mode.
 * @data_first: pace: data goes before tokens, within its share of the link (TOP, Fig. 3a); 0: after
 * them (Fig. 3b).
 * @unscheduled: frames that say that they are unscheduled get the class of that name, one full
 * frame deep; 0: they are data.
 * @frames: pace: tokens of one class that wait at most; drop: how far class 0 may be ahead of the
 * group's rate, and each class after it one token less. From 1.
 * @expiry: token times after which a token is thrown away; drop: a token that finds more than that
 * before it is.
 * @spray: of a switch that routes: frames take the ways up in turn. The program goes by struct
 * bl_sw_cfg's path_by; this is what that becomes when the policy does.
 * @reserved: must be zero.
 */
struct bl_token_cfg {
	__u32 on;
	__u32 mode;
	__u32 data_first;
	__u32 unscheduled;
	__u32 frames;
	__u32 expiry;
	__u32 spray;
	__u32 reserved;
};
_Static_assert(sizeof(struct bl_token_cfg) == 32, "ABI");

/**
 * struct bl_token_port - one port of the switch. The words in _q20 are CLOCK_MONOTONIC times 2^20,
 *modulo 2^64: until when what has passed fills its share of the link.
 * @out_q20: tokens that left by this port. Mode drop: compare-and-swap by the programs of all
 *inputs. Mode pace: written by the pacer alone.
 * @data_q20: data that left by this port, where @data_first; the pacer's.
 * @in_q20, @signal_q20: tokens and signals that came in. Written by the port's datapath CPU; two
 *CPUs at once (wrong_cpu) let a frame more pass.
 * @ns_q20: of the link, as in struct bl_meter; 0: no limits. @outside: leads out of the rack:
 *nothing is unscheduled that comes from there. Written by the loader, which reads and writes back
 *the words above: what passes in between is forgotten, once.
 * @turn: spraying: path of the next frame from this input.
 */
struct bl_token_port {
	__u64 out_q20;
	__u64 data_q20;
	__u64 in_q20;
	__u64 signal_q20;
	__u32 ns_q20;
	__u32 outside;
	__u32 turn;
	__u32 reserved;
	__u64 reserved2[2];
};
_Static_assert(sizeof(struct bl_token_port) == 64, "one cache line");

/**
 * struct bl_token_counts - value of "token_counts", by port, per CPU. By output:
 * @passed: sent on, in mode pace by the pacer. @limit, @expired: dropped, see reasons token_limit
 * and token_expired.
 * @lost: all compare-and-swaps were lost to other CPUs: dropped and counted as @limit, too.
 * By input:
 * @bad: class out of range. @flood: tokens beyond the input's budget. @signals: signals that came
 * in. @signal_flood: those beyond the budget.
 */
struct bl_token_counts {
	__u64 passed[BL_TOP_CLASSES];
	__u64 limit[BL_TOP_CLASSES];
	__u64 expired[BL_TOP_CLASSES];
	__u64 lost;
	__u64 bad;
	__u64 flood;
	__u64 signals;
	__u64 signal_flood;
	__u64 reserved;
};
_Static_assert(sizeof(struct bl_token_counts) == 192, "ABI");

#endif
