/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside the allocator. Every limit of the network is a port: sending end of endpoint e is port e, receiving end n + e, then racks up, racks down, pods up, pods
 * down. A pair has 2, 4 or 6 of them; a slot may be given if it is free at all.
 */
#ifndef BARLINE_ARBITER_ALLOC_PRIV_H
#define BARLINE_ARBITER_ALLOC_PRIV_H

#include <stdbool.h>

#include "../bpf/timeslot_core.h"
#include "alloc.h"

/* a pair's word in @pair: what came while it was waiting already, its weight less one, whether it is in a list */
#define BL_PAIR_MTUS   0x00ffffffu
#define BL_PAIR_WEIGHT 24
#define BL_PAIR_LISTED (1u << 31)
#define BL_WANT_PAD    16 /* records are written before it is known whether they count, and read several at a time */

/**
 * struct bl_want - a waiting flow (or request), in the order of service.
 * @mtus: still wanted. @key: deadline policy: slot, low 32 bits; weighted: weight. @credit: weighted: 1/256 MTU that it may have and did not get.
 */
struct bl_want {
	uint16_t src, dst;
	uint32_t mtus;
	uint32_t key;
	int32_t credit;
};

enum bl_pass { BL_PASS_WHOLE, BL_PASS_FAIR, BL_PASS_CREDIT };

/** struct bl_alloc_ops - the inner loop, once per instruction set. */
struct bl_alloc_ops {
	const char *name;
	/* shares of the ports that the list touches; @all: the list is everybody who waits */
	void (*shares)(struct bl_alloc *a, bool all);
	/* one visit to all of a->list: what continues stays there, what cannot goes to wait, what is served to done */
	void (*pass)(struct bl_alloc *a, enum bl_pass kind);
	/* those of the list that have no slot left go to wait */
	void (*filter)(struct bl_alloc *a);
};

/**
 * struct bl_alloc - see alloc.h.
 * @words: of the window. @span: slots in a word: 64, or fewer, its lowest bits, where the window is smaller; the others are never open. @step: words by which it moves at once. @ports, @first_rack, @first_pod: see the top.
 * @plain: every capacity is 1 and there are no tiers: two ports, one bit.
 * @free: [port][words], 1: free. @plane: [port][planes][words], counts of ports of more than one packet. @cap: [port].
 * @open: slots of the window that are not past. @base: slot of the window's first bit.
 * @backlog: flows (or their weights) that wait at each port. @active: flows (or their weights) of the present list at each port. @share: what each of them may have in this pass: BL_SHARE_*; weighted: 1/256 MTU.
 * @takes: [list][words], what each took in this pass. @parts: what it might have taken, and whether one of the odd slots was in it.
 * @pair: [src][dst], see BL_PAIR_*; NULL where requests are not merged.
 * @wait: blocked flows, who got least first. @list: those of this pass. @fresh: came since the last run. @done: served to the end in this pass.
 * @later: those that got one more than others in this pass: they are behind them in the next.
 * @out: the row of the present run; @own_out: if nobody says otherwise.
 * @recip: bl_fair_share()'s, by number of flows.
 */
struct bl_alloc {
	uint32_t n, words, span, step, ports, planes;
	uint32_t racks, pods, first_rack, first_pod;
	enum bl_alloc_policy policy;
	bool plain;
	bool moved; /* a window was opened in this run */
	uint64_t base;
	__u64 open[BL_WINDOW_WORDS];
	__u64 *free, *plane;
	uint16_t *cap;
	uint16_t *rack_of, *pod_of;
	uint32_t *backlog, *active;
	uint32_t *share;
	uint64_t *recip;
	uint32_t *pair;
	uint64_t *takes, *parts;
	struct bl_want *wait, *list, *fresh, *done, *later;
	size_t nwait, nlist, nfresh, ndone;
	uint64_t *out, *own_out;
	size_t outlen, outmax;
	uint64_t run_mtus;
	uint32_t flows_max, quota_mtus;
	const struct bl_alloc_ops *ops;
	struct bl_alloc_stats st;
};

#define BL_RECIP_MAX  4096u
/* a port's word in @share: slots for each flow, and below them how many may have one more */
#define BL_SHARE_BITS 12
#define BL_SHARE_ODD  ((1u << BL_SHARE_BITS) - 1)
#define BL_SHARE_MAX  ((1u << 19) - 1)
#define BL_PART_EXTRA	32
#define BL_PART_BLOCKED 33 /* wide windows only; for one word it is cheaper to compare afterwards */
#define BL_CREDIT_MAX (8 * 256) /* a flow held up elsewhere does not save up more than that */

extern const struct bl_alloc_ops bl_alloc_plain;
#ifdef __x86_64__
extern const struct bl_alloc_ops bl_alloc_bmi2, bl_alloc_avx512;
#endif

#endif
