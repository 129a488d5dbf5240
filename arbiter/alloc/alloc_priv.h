/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside the allocator. Every limit of the network is a port: sending end of endpoint e is port e,
 * receiving end n + e, then racks up, racks down, pods up, pods down. A pair has 2, 4 or 6 of them;
 * a slot may be given if it is free at all.
 */
#ifndef BARLINE_ARBITER_ALLOC_PRIV_H
#define BARLINE_ARBITER_ALLOC_PRIV_H

#include <stdbool.h>

#include "core/fastpass/timeslot_core.h"
#include "arbiter/alloc/alloc_types.h"

/*
 * a pair's word in @pair: what came while it was waiting already, its weight less one, whether it
 * is in a list
 */
#define BL_PAIR_MTUS   0x00ffffffu
#define BL_PAIR_WEIGHT 24
#define BL_PAIR_LISTED (1u << 31)
/* records are written before it is known whether they count, and read several at a time */
#define BL_WANT_PAD 16

/**
 * struct bl_want - a waiting flow (or request), in the order of service.
 * @mtus: still wanted.
 * @key: deadline policy: slot, low 32 bits; fair and weighted: its weight, 1/256 MTU of @account,
 *and how many windows were shared out while it waited, see BL_KEY_*.
 * @account: fair and weighted: MTUs that it has had since that window was opened, and before that
 *more (or less) than it was due, and BL_ACCOUNT_ZERO.
 */
struct bl_want {
	uint16_t src, dst;
	uint32_t mtus;
	uint32_t key;
	int32_t account;
};

enum bl_pass { BL_PASS_WHOLE, BL_PASS_FAIR, BL_PASS_AIM };

/**
 * struct bl_due_flow - a flow that is lifted. @at: place in the list. @s, @d: its ports. @had: in
 * 2^-20 MTU, its account and what it is due so far. @most: the same, if it gets all that it wants.
 */
struct bl_due_flow {
	uint32_t at;
	uint16_t s, d;
	uint32_t weight, reserved;
	int64_t had, most;
};

/**
 * struct bl_due - what the list is due, see alloc_due.c. In 2^-20 MTU but @aim.
 * @room: [port], what is left of it.
 * @level: [port], of the present lift; after the last one each flow is due the lowest of its ports.
 * BL_DUE_ENOUGH: the port holds up nobody.
 * @weight, @sum, @want: [port], of the flows that are not stopped: weights; what they have had, and
 * what is left of the port; what they have had if they get all that they want.
 * @full: a port with less room than that is full: 1/512 of a window; whole MTUs are given out of
 * it. @is_full: [port].
 * @flow: those that are not stopped. @gone: those that have just been. @had: [list], of those that
 * are. @aim: [list], in whole MTUs. @part: places in the list of those that are due a part of one.
 * @port: [@nports], ports that can still be full and are not.
 */
struct bl_due {
	int64_t *room, *level, *weight, *sum, *want;
	int64_t full;
	struct bl_due_flow *flow, *gone;
	int64_t *had;
	uint32_t *aim, *part;
	uint16_t *port;
	uint8_t *is_full;
	uint32_t nports;
};

#define BL_DUE_ENOUGH (1LL << 54) /* times any weight it is below 2^63 */

/**
 * struct bl_chain - who sends to whom, see alloc_chain.c. NULL where ports have several packets a
 * slot.
 * @peer: [port][row], 1 + the other port of the packet in this slot; 0: none. @row: slots in a row.
 * @where: [src][dst], place in the list; valid for pairs that are in it.
 * @steps: that chains may still be followed in this run.
 */
struct bl_chain {
	uint16_t *peer;
	uint32_t row;
	uint32_t *where;
	uint64_t steps;
};

#define BL_PORTS_MAX 6u /* of a pair: endpoints, racks, pods */

struct bl_alloc;

/** struct bl_alloc_ops - the inner loop, once per instruction set. */
struct bl_alloc_ops {
	const char *name;
	/* shares of the ports that the list touches; @all: the list is everybody who waits */
	void (*shares)(struct bl_alloc *a);
	/*
	 * where all ports have one packet a slot: takes and parts of BL_PASS_AIM; and what follows
	 */
	void (*take)(struct bl_alloc *a);
	void (*sort)(struct bl_alloc *a);
	/*
	 * one visit to all of a->list: what continues stays there, what cannot goes to wait, what
	 * is served to done
	 */
	void (*pass)(struct bl_alloc *a, enum bl_pass kind);
	/* those of the list that have no slot left go to wait */
	void (*filter)(struct bl_alloc *a);
};

/**
 * struct bl_alloc - see alloc.h.
 * @words: of the window. @span: slots in a word: 64, or fewer, its lowest bits, where the window is
 *smaller; the others are never open. @step: words by which it moves at once. @ports, @first_rack,
 *@first_pod: see the top.
 * @plain: every capacity is 1 and there are no tiers: two ports, one bit.
 * @free: [port][words], 1: free. @plane: [port][planes][words], counts of ports of more than one
 *packet. @cap: [port].
 * @open: slots of the window that are not past. @base: slot of the window's first bit.
 * @active: flows of the present list at each port. @share: the level up to which each of them may
 *come in this pass: BL_SHARE_*.
 * @sum: accounts of the present list at each port.
 * @takes: [list][words], what each took in this pass. @parts: what it might have taken, and whether
 *one of the odd slots was in it.
 * @pair: [src][dst], see BL_PAIR_*; NULL where requests are not merged.
 * @wait: blocked flows, who got least first. @list: those of this pass. @fresh: came since the last
 *run. @done: served to the end in this pass.
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
	uint32_t *active;
	uint32_t *share, *sum;
	struct bl_due due;
	struct bl_chain chain;
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

#define BL_RECIP_MAX 4096u
/* a port's word in @share: slots for each flow, and below them how many may have one more */
#define BL_SHARE_BITS 12
#define BL_SHARE_ODD  ((1u << BL_SHARE_BITS) - 1)
#define BL_SHARE_MAX  ((1u << 19) - 1)
#define BL_PART_EXTRA 32
#define BL_PART_BLOCKED                                                           \
	33 /* wide windows only; for one word it is cheaper to compare afterwards \
	    */
/*
 * @key of fair and weighted: weight, 1/256 MTU of the account, and windows that were shared out
 * while it waited. Whoever waits is in every one of them.
 */
#define BL_KEY_WEIGHT_MAX  0xffu
#define BL_KEY_PART        8
#define BL_KEY_PART_MAX    0xffu
#define BL_KEY_WINDOWS     16
#define BL_KEY_WINDOWS_MAX 0xffffu
/*
 * a flow that is held up by other things than its ports' levels saves up no more than that: two
 * windows
 */
#define BL_ACCOUNT_MAX  1000
#define BL_ACCOUNT_ZERO 1024
/*
 * What is due and found no slot waits for the next window, where it is due again, if no flow lacks
 * more than so many MTUs and all together no more than such a part of what was given. To write down
 * who sends when takes 1 ns a packet; requests of 10 MTUs at load 0.9 lack 0.02 %.
 */
#define BL_LACKS_FEW  16u
#define BL_LACKS_PART 512u
/*
 * That is of those that waited for the last window already, or want more than such a part of this
 * one. A short request that comes to a full port is first in the next window, and has what it wants
 * by then: to move others for it in this one took two thirds of the time of an arbiter that catches
 * up after a pause (2026-11-23).
 */
#define BL_CHAIN_SHORT(slots) ((slots) / 2)
/* Steps of eight chains together, by packets that were given without: 10 ns each. */
#define BL_CHAIN_STEPS(given) ((given) + 1024)
/* then what is left goes to whoever comes first, and the accounts remember it */
#define BL_PASSES_MAX 64

/** ports_of - the 2, 4 or 6 ports of a pair into @port. Returns how many. */
static inline uint32_t ports_of(const struct bl_alloc *a, uint32_t src, uint32_t dst,
				uint32_t *port)
{
	uint32_t r, q;

	port[0] = src;
	port[1] = a->n + dst;
	if (!a->racks)
		return 2;
	r = a->rack_of[src];
	q = a->rack_of[dst];
	if (r == q)
		return 2;
	port[2] = a->first_rack + r;
	port[3] = a->first_rack + a->racks + q;
	if (!a->pods || a->pod_of[r] == a->pod_of[q])
		return 4;
	port[4] = a->first_pod + a->pod_of[r];
	port[5] = a->first_pod + a->pods + a->pod_of[q];
	return 6;
}

/**
 * bl_alloc_open - a window is opened: accounts of the list say what each had more, or less, than it
 * was due in those before; who was not in the last one begins with nothing.
 */
void bl_alloc_open(struct bl_alloc *a);
/**
 * bl_alloc_due - what each flow of the list is due, of the window that is opened, into
 * @a->due.aim. What is due and will not be given is due in the next one.
 */
void bl_alloc_due(struct bl_alloc *a);
/**
 * bl_alloc_chains - the list took slots that are due to it (@takes, @parts), all of this run: move
 * some of them to make room for what lacks. Only where all ports have one packet a slot.
 */
void bl_alloc_chains(struct bl_alloc *a);

extern const struct bl_alloc_ops bl_alloc_plain;
#ifdef __x86_64__
extern const struct bl_alloc_ops bl_alloc_bmi2, bl_alloc_avx512;
#endif

#endif
