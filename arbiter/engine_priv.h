/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What engine.c (allocation, tables of dead paths, life) and assign.c (the path stage) share.
 */
#ifndef BARLINE_ARBITER_ENGINE_PRIV_H
#define BARLINE_ARBITER_ENGINE_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "proto/fastpass_file.h" /* first: <netinet/in.h> and <linux/ipv6.h> agree only in this order */

#include "arbiter/alloc/alloc.h"
#include "arbiter/path/path.h"
#include "arbiter/path/path_room.h"
#include "arbiter/stage.h"
#include "maps/fcp_abi.h"

#define BL_SEL_WORDS 16u /* words of 64 slots that a window can touch, and a power of two */

/** struct sel_pair - what of a grant comes back with its paths. @base: of its slots. */
struct sel_pair {
	uint64_t base;
	uint64_t slots;
	uint16_t src, dst;
};

/**
 * struct selector - of one path thread. Nothing is allocated after it was opened, but for tables of
 *	dead paths when the first path dies.
 */
struct selector {
	struct bl_engine *e;
	struct bl_path *path;    /* colours a slot as a whole; NULL: three tiers */
	struct bl_tiers *tiers;  /* three tiers; NULL: two */
	unsigned int limit;      /* grants in one run; packets, too */
	unsigned int slot_limit; /* packets in one slot */
	uint64_t seen;           /* generation of struct bl_engine's table that the selector has */
	/* that table, by racks, once there is one; of pods, for a moment */
	uint64_t *works, *between;
	uint16_t *src, *dst; /* [slot_limit] racks of the packets of the slot in hand */
	uint8_t *got;        /* [slot_limit] their paths */
	uint32_t *packet_of; /* [slot_limit] their grants */

	/* two tiers: masks (path_room.h) */
	struct bl_room *room;
	struct bl_room_ask *ask; /* [limit] */
	struct sel_pair *pair;   /* [limit] of each ask */
	uint64_t *take;          /* [limit][lanes] */
	size_t take_bytes;
	uint32_t *next; /* [limit] the next ask of the same word */
	uint64_t first; /* words below it are over */
	/* [word % BL_SEL_WORDS] slots in which earlier runs sent packets */
	uint64_t used[BL_SEL_WORDS];
	/* [64][slot_limit] asks of each slot of the word that is recoloured */
	uint32_t *in_slot;

	/* three tiers: a colouring per slot */
	/* [limit] the run's grants by word; @mtus: path in the slot in hand */
	struct arb_grant *in;
	/* [64 slot_limit][paths + 1] slots of each grant of a word by path */
	uint64_t *mask;
	uint8_t *agg, *core;   /* what the tiers chose */
	unsigned int npackets; /* of the slot in hand */
	uint64_t *load_slot;   /* by slot modulo LOAD_SLOTS: whose load it is */
	uint16_t *load;        /* what runs so far have given (struct load) */
};

/**
 * struct bl_engine - allocation and paths.
 * @file: shares and deadlines are looked up there.
 * @g, @at, @head, @mask, @words: the run that is being handed out, and how far. @busy: it is not
 *	all handed out. @last: slot of the last run; never goes back, whatever the clock does.
 * @npaths: path numbers. @cap: packets between a rack and an aggregation switch, or on a path.
 * @pod_of, @npods, @cores, @core_cap: three tiers (proto/fastpass_file.h); else NULL, 0, 1 and 0.
 * @usable: [src][dst] of path bits; NULL: all work. Written under @generation odd, as a seqlock:
 *	readers that meet a writer come again at their next run. Writers hold @lock.
 * @told: what bl_engine_usable() said. @up, @down: of each rack, paths whose link is to be avoided
 *	(bl_engine_links()). @usable is @told without these.
 * @no_path: demands refused. Written by the allocation stage.
 */
struct bl_engine {
	const struct bl_fp_file *file;
	struct bl_alloc *alloc;
	struct bl_grants g;
	size_t at;
	const struct bl_grant *head;
	const uint64_t *mask;
	uint32_t words;
	bool busy;
	uint64_t last;
	uint16_t *rack_of;
	const uint16_t *pod_of;
	uint32_t nracks, npods, npaths, cap, cores, core_cap, nendpoints;
	struct selector sel;
	void *state;
	_Atomic uint64_t *usable;
	_Atomic uint64_t generation;
	pthread_mutex_t lock;
	uint64_t *told, *up, *down;
	_Atomic uint64_t no_path;
	struct arb_alloc_ops ops;
};

/* assign.c */
int bl_selector_open(struct bl_engine *e, const struct bl_fp_file *f, struct bl_err *err);
void bl_selector_close(struct selector *s);
extern const struct arb_path_ops bl_selector_ops;

#endif
