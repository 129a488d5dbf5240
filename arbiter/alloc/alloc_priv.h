/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside the allocator. Every limit of the network is a port: the sending end of endpoint e is port
 * e, its receiving end is port n + e, then follow racks up, racks down, pods up, pods down. A pair
 * of endpoints has 2, 4 or 6 ports; it can get a slot that is free at all of them.
 */
#ifndef BARLINE_ARBITER_ALLOC_PRIV_H
#define BARLINE_ARBITER_ALLOC_PRIV_H

#include <stdbool.h>

#include "arbiter/alloc/alloc_types.h"
#include "core/fastpass/timeslot_core.h"

/* A pair's word in @pair of struct bl_alloc. */
#define BL_PAIR_MTUS   0x00ffffffu /* MTUs that came while the pair was waiting already */
#define BL_PAIR_WEIGHT 24          /* 7 bits from here: its weight less one */
#define BL_PAIR_LISTED (1u << 31)  /* the pair is in a list */
/*
 * Records beyond the end of a list: they are written before it is known whether they count, and
 * read several at a time.
 */
#define BL_WANT_PAD 16

/** struct bl_want - A waiting flow (or request), in the order of service. */
struct bl_want {
	uint16_t src, dst;
	uint32_t mtus; /* still wanted */
	/*
	 * Deadline policy: the low 32 bits of the slot. Fair and weighted: the weight, the fraction
	 * of @account in 1/256 MTU, and how many windows were shared out while the flow waited; see
	 * BL_KEY_*.
	 */
	uint32_t key;
	/*
	 * Fair and weighted: BL_ACCOUNT_ZERO, plus the MTUs that the flow has got since the present
	 * window was opened, plus what it had got more (or less) than it was due before that.
	 */
	int32_t account;
};

enum bl_pass {
	BL_PASS_WHOLE, /* each flow takes all that it wants */
	BL_PASS_FAIR,  /* each flow takes what lifts it to the level of its ports */
	BL_PASS_AIM,   /* each flow takes what it is due (struct bl_due) */
};

/** struct bl_due_flow - A flow whose share is still growing. */
struct bl_due_flow {
	uint32_t at;   /* its place in the list */
	uint16_t s, d; /* its ports */
	uint32_t weight, reserved;
	int64_t had;  /* 2^-20 MTU: its account and what it is due so far */
	int64_t most; /* 2^-20 MTU: the same if it gets all that it wants */
};

/** struct bl_due - What the flows of the list are due; see alloc_due.c. Units are 2^-20 MTU. */
struct bl_due {
	int64_t *room; /* [port] what is left of it */
	/*
	 * [port] its level in the present lift. After the last lift each flow is due the lowest
	 * level of its ports. BL_DUE_ENOUGH: the port limits no flow.
	 */
	int64_t *level;
	/* The next three are by port, of the flows that have not stopped. */
	int64_t *weight; /* sum of their weights */
	int64_t *sum;    /* what they have had, plus what is left of the port */
	int64_t *want;   /* what they have had if they get all that they want */
	/*
	 * A port with less room than this is full: 1/512 of a window. The room that remains is
	 * given in whole MTUs.
	 */
	int64_t full;
	struct bl_due_flow *flow; /* flows that have not stopped */
	struct bl_due_flow *gone; /* flows that have just stopped */
	int64_t *had;             /* [list] of flows that have stopped */
	uint32_t *aim;            /* [list] what each flow is due, in whole MTUs */
	uint32_t *part;           /* places in the list of flows that are due a part of an MTU */
	uint16_t *port;           /* [nports] ports that are not full but can become full */
	uint8_t *is_full;         /* [port] */
	uint32_t nports;
};

#define BL_DUE_ENOUGH (1LL << 54) /* multiplied by any weight it is below 2^63 */

/**
 * struct bl_chain - Which port sends to which; see alloc_chain.c. Unused (NULL) where ports have
 * several packets a slot.
 */
struct bl_chain {
	uint16_t *peer;  /* [port][row] 1 + the other port of the packet in this slot; 0: none */
	uint32_t row;    /* slots in a row */
	uint32_t *where; /* [src][dst] place in the list; valid for the pairs in it */
	uint64_t steps;  /* steps that chains may still take in this run */
};

#define BL_PORTS_MAX 6u /* of a pair: endpoints, racks, pods */

struct bl_alloc;

/** struct bl_alloc_ops - The inner loop, compiled once per instruction set. */
struct bl_alloc_ops {
	const char *name;
	/* Sets @share of all ports that the list touches. */
	void (*shares)(struct bl_alloc *a);
	/* The first half of BL_PASS_AIM, where all ports have one packet a slot: @takes, @parts. */
	void (*take)(struct bl_alloc *a);
	/* The second half: grants, and the records into their lists. */
	void (*sort)(struct bl_alloc *a);
	/*
	 * Visits each flow of @list once. A flow that can go on stays there; a blocked one goes to
	 * @wait, one that has all it wants to @done.
	 */
	void (*pass)(struct bl_alloc *a, enum bl_pass kind);
	/* Moves the flows of @list that have no free slot left to @wait. */
	void (*filter)(struct bl_alloc *a);
};

/** struct bl_alloc - See alloc.h. */
struct bl_alloc {
	uint32_t n;     /* endpoints */
	uint32_t words; /* of the window */
	uint32_t span;  /* slots in a word: 64; fewer, in its lowest bits, if the window is small */
	uint32_t step;  /* words by which the window moves at a time */
	uint32_t ports; /* see the top of this file */
	uint32_t planes; /* bit planes of a port's count */
	uint32_t racks, pods;
	uint32_t first_rack, first_pod; /* ports */
	enum bl_alloc_policy policy;
	bool plain;                  /* every capacity is 1, no tiers: two ports, one bit */
	bool moved;                  /* a window was opened since the last run began */
	uint64_t base;               /* slot of the window's first bit */
	__u64 open[BL_WINDOW_WORDS]; /* slots of the window that are not past */
	__u64 *free;                 /* [port][words] 1: the port can take a packet in the slot */
	__u64 *plane;                /* [port][planes][words] room of ports of several packets */
	uint16_t *cap;               /* [port] packets per slot */
	uint16_t *rack_of, *pod_of;  /* [n], [racks] */
	uint32_t *active;            /* [port] flows of the list */
	uint32_t *share;             /* [port] level that its flows may reach: BL_SHARE_* */
	uint32_t *sum;               /* [port] sum of the accounts of its flows in the list */
	struct bl_due due;
	struct bl_chain chain;
	uint64_t *recip; /* [flows] ceil(2^BL_RECIP_BITS / flows) */
	uint32_t *pair;  /* [src][dst] BL_PAIR_*; NULL where requests are not merged */
	uint64_t *takes; /* [list][words] slots that each flow took in this pass */
	/*
	 * [list] MTUs that each flow might have taken, and whether an odd slot was among them:
	 * BL_PART_*
	 */
	uint64_t *parts;
	struct bl_want *wait;  /* blocked flows, those that got least first */
	struct bl_want *list;  /* flows of this pass */
	struct bl_want *fresh; /* flows that came since the last run */
	struct bl_want *done;  /* flows that got all they wanted in this pass */
	struct bl_want *later; /* flows that got an odd slot in this pass: last in the next one */
	size_t nwait, nlist, nfresh, ndone;
	uint64_t *out;     /* grants of the present run */
	uint64_t *own_out; /* where they go unless the caller chose another place */
	size_t outlen, outmax;
	uint64_t run_mtus;
	uint32_t flows_max, quota_mtus;
	const struct bl_alloc_ops *ops;
	struct bl_alloc_stats st;
};

#define BL_RECIP_MAX 4096u
/* A port's word in @share: slots for each flow, and below them how many may have one more. */
#define BL_SHARE_BITS 12
#define BL_SHARE_ODD  ((1u << BL_SHARE_BITS) - 1)
#define BL_SHARE_MAX  ((1u << 19) - 1)
/* Bits of @parts: one of the odd slots was taken; the flow is blocked. */
#define BL_PART_EXTRA 32
/* Wide windows only; for one word it is cheaper to compare afterwards. */
#define BL_PART_BLOCKED 33
/*
 * @key of fair and weighted: weight, 1/256 MTU of the account, and the number of windows that were
 * shared out while the flow waited. A flow that waits takes part in every window.
 */
#define BL_KEY_WEIGHT_MAX  0xffu
#define BL_KEY_PART        8
#define BL_KEY_PART_MAX    0xffu
#define BL_KEY_WINDOWS     16
#define BL_KEY_WINDOWS_MAX 0xffffu
/*
 * MTUs that a flow can save up, about two windows: a flow that is held up by other things than the
 * levels of its ports would save up without limit.
 */
#define BL_ACCOUNT_MAX  1000
#define BL_ACCOUNT_ZERO 1024
/*
 * What is due and found no slot waits for the next window, where it is due again, if no flow lacks
 * more than BL_LACKS_FEW MTUs and all together lack no more than 1 / BL_LACKS_PART of what was
 * given. To write down which port sends to which takes 1 ns a packet; requests of 10 MTUs at load
 * 0.9 lack 0.02 %.
 */
#define BL_LACKS_FEW  16u
#define BL_LACKS_PART 512u
/*
 * Only flows that waited for the last window already count there, and flows that want more than
 * this part of the present window. A short request that comes to a full port is first in the next
 * window, and has what it wants by then: to move others for it in this one took two thirds of the
 * time of an arbiter that catches up after a pause (2026-11-23).
 */
#define BL_CHAIN_SHORT(slots) ((slots) / 2)
/* Steps of eight chains together, by packets that were given without chains: 10 ns each. */
#define BL_CHAIN_STEPS(given) ((given) + 1024)
/* Passes by shares; then flows take what is left in their order, and the accounts remember it. */
#define BL_PASSES_MAX 64

/** ports_of - Write the 2, 4 or 6 ports of a pair to @port. Returns how many there are. */
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
 * bl_alloc_open - Settle the accounts of the list when a window is opened: each says what its flow
 * got more, or less, than it was due in the windows before. A flow that was not in the last window
 * starts at zero.
 */
void bl_alloc_open(struct bl_alloc *a);
/**
 * bl_alloc_due - Calculate what each flow of the list is due of the window that is opened, into
 * @a->due.aim. What is due and is not given is due in the next window.
 */
void bl_alloc_due(struct bl_alloc *a);
/**
 * bl_alloc_chains - Move some of the slots that the list took in this run (@takes, @parts) to make
 * room for what is due and still lacks a slot. Only where all ports have one packet a slot.
 */
void bl_alloc_chains(struct bl_alloc *a);

extern const struct bl_alloc_ops bl_alloc_plain;
#ifdef __x86_64__
extern const struct bl_alloc_ops bl_alloc_bmi2, bl_alloc_avx512;
#endif

#endif
