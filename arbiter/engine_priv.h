/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What engine.c (allocation, tables of dead paths, life) and assign.c (the path stage) share.
 */
#ifndef BARLINE_ARBITER_ENGINE_PRIV_H
#define BARLINE_ARBITER_ENGINE_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "proto/fastpass_file.h" /* first: <netinet/in.h> and <linux/ipv6.h> agree only so */

#include "arbiter/alloc/alloc.h"
#include "arbiter/path/path.h"
#include "arbiter/path/path_room.h"
#include "arbiter/stage.h"
#include "maps/fcp_abi.h"

#define BL_SEL_WORDS 16u /* words of 64 slots that a window can touch; a power of two */

/** struct sel_pair - The part of a grant that comes back with its paths. */
struct sel_pair {
	uint64_t base; /* slot of bit 0 of @slots */
	uint64_t slots;
	uint16_t src, dst; /* endpoints */
};

/**
 * struct selector - The path stage; belongs to one path thread. Nothing is allocated after it was
 * opened, except tables of dead paths when the first path dies.
 */
struct selector {
	struct bl_engine *e;
	struct bl_path *path;    /* colours a slot as a whole; NULL: three tiers */
	struct bl_tiers *tiers;  /* NULL: two tiers */
	unsigned int limit;      /* grants in one run, and packets in one run */
	unsigned int slot_limit; /* packets in one slot */
	uint64_t seen;           /* @generation of the table in struct bl_engine that is in use */
	uint64_t *works;         /* [src][dst] that table; valid once @seen is not 0 */
	uint64_t *between;       /* [pod][pod] scratch memory */
	uint16_t *src, *dst;     /* [slot_limit] racks of the packets of the slot in hand */
	uint8_t *got;            /* [slot_limit] their paths */
	uint32_t *packet_of;     /* [slot_limit] their grants */

	/* two tiers: masks (path/path_room.h) */
	struct bl_room *room;
	struct bl_room_ask *ask; /* [limit] */
	struct sel_pair *pair;   /* [limit] of each ask */
	uint64_t *take;          /* [limit][lanes] */
	size_t take_bytes;
	uint32_t *next;              /* [limit] the next ask of the same word */
	uint64_t first;              /* words below it are over */
	uint64_t used[BL_SEL_WORDS]; /* [word % BL_SEL_WORDS] slots that earlier runs used */
	uint32_t *in_slot; /* [64][slot_limit] asks of each slot of the word that is recoloured */

	/* three tiers: a colouring per slot */
	struct arb_grant *in; /* [limit] grants by word; @mtus: path in the slot in hand */
	uint64_t *mask;       /* [64 slot_limit][paths + 1] slots of each grant of a word by path */
	uint8_t *agg, *core;  /* aggregation and core switches that @tiers chose */
	unsigned int npackets; /* of the slot in hand */
	uint64_t *load_slot;   /* [slot % LOAD_SLOTS] the slot whose load it is */
	uint16_t *load;        /* what runs so far have given (struct load) */
};

/** struct bl_engine - Allocation and paths. */
struct bl_engine {
	const struct bl_fp_file *file; /* has the weights and deadlines of pairs */
	struct bl_alloc *alloc;

	/* the run that is being handed out; the allocation stage uses these */
	struct bl_grants g;
	size_t at;                   /* position in @g */
	const struct bl_grant *head; /* the present grant */
	const uint64_t *mask;        /* its next mask */
	uint32_t words;              /* its words that are left */
	bool busy;                   /* something is left */
	uint64_t last; /* slot of the last run; never decreases, whatever the clock does */

	uint16_t *rack_of;      /* [nendpoints] */
	const uint16_t *pod_of; /* [nracks] three tiers (proto/fastpass_file.h); NULL: two */
	uint32_t nracks;
	uint32_t npods;    /* 0: two tiers */
	uint32_t npaths;   /* path numbers */
	uint32_t cap;      /* packets between a rack and an aggregation switch, or on a path */
	uint32_t cores;    /* of each aggregation switch; two tiers: 1 */
	uint32_t core_cap; /* packets between an aggregation switch and a core switch */
	uint32_t nendpoints;
	struct selector sel;
	void *state; /* &@sel */
	/*
	 * [src][dst] path bits: @told without @up and @down; NULL: all paths work. A seqlock:
	 * @generation is odd while it is written, and a reader that meets a writer retries at its
	 * next run. Writers hold @lock.
	 */
	_Atomic uint64_t *usable;
	_Atomic uint64_t generation;
	pthread_mutex_t lock;
	uint64_t *told;           /* [src][dst] what bl_engine_usable() said; under @lock */
	uint64_t *up, *down;      /* [rack] paths whose link is to be avoided; under @lock */
	_Atomic uint64_t no_path; /* demands refused; written by the allocation stage */
	struct arb_alloc_ops ops;
};

/** bl_selector_open - Reserve the memory of the path stage. Returns 0 or -errno with @err. */
int bl_selector_open(struct bl_engine *e, const struct bl_fp_file *f, struct bl_err *err);
void bl_selector_close(struct selector *s);
extern const struct arb_path_ops bl_selector_ops;

#endif
