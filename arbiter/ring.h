/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rings of grants between two stages: one producer, one consumer, no lock. The indices are those
 * of Concurrency Kit's ck_ring; the functions here move many entries at once, where ck_ring's own
 * functions would pass a cache line between the two cores for each entry.
 */
#ifndef BARLINE_ARBITER_RING_H
#define BARLINE_ARBITER_RING_H

#include <ck_pr.h>
#include <ck_ring.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "arbiter/stage.h"

CK_RING_PROTOTYPE(grant, arb_grant)

/** struct arb_ring - A ring with one producer and one consumer. */
struct arb_ring {
	struct ck_ring ring;
	struct arb_grant *buf; /* the entries */
};

/**
 * arb_ring_open - Reserve the memory of a ring and write to all of its pages.
 * @size: entries, a power of two.
 *
 * Returns false if memory is short.
 */
bool arb_ring_open(struct arb_ring *r, unsigned int size);
void arb_ring_close(struct arb_ring *r);

/**
 * arb_ring_put - Append up to @n entries; for the producer only. Reads the consumer's index once
 * for all of them. Returns how many there was room for.
 */
static inline unsigned int arb_ring_put(struct arb_ring *r, const struct arb_grant *g,
					unsigned int n)
{
	const unsigned int mask = r->ring.mask, tail = r->ring.p_tail;
	const unsigned int space = (ck_pr_load_uint(&r->ring.c_head) - tail - 1) & mask;
	const unsigned int at = tail & mask, end = mask + 1 - at;
	unsigned int first;

	n = n < space ? n : space;
	first = n < end ? n : end;
	memcpy(&r->buf[at], g, first * sizeof(*g));
	memcpy(r->buf, g + first, (n - first) * sizeof(*g));
	/* Pairs with the fence in arb_ring_peek(): the entries are written before the index. */
	ck_pr_fence_store();
	ck_pr_store_uint(&r->ring.p_tail, tail + n);
	return n;
}

/**
 * arb_ring_peek - The oldest entries that lie next to each other; for the consumer only.
 * @n: set to their number.
 *
 * Returns NULL if the ring is empty. The entries stay in the ring until arb_ring_drop().
 */
static inline const struct arb_grant *arb_ring_peek(struct arb_ring *r, unsigned int *n)
{
	const unsigned int head = r->ring.c_head, at = head & r->ring.mask;
	unsigned int all = (ck_pr_load_uint(&r->ring.p_tail) - head) & r->ring.mask;

	/* Pairs with the fence in arb_ring_put(): the index is read before the entries. */
	ck_pr_fence_load();
	*n = all < r->ring.mask + 1 - at ? all : r->ring.mask + 1 - at;
	return all ? &r->buf[at] : NULL;
}

/** arb_ring_drop - Remove the oldest @n entries; for the consumer only. */
static inline void arb_ring_drop(struct arb_ring *r, unsigned int n)
{
	ck_pr_fence_store();
	ck_pr_store_uint(&r->ring.c_head, r->ring.c_head + n);
}

/** arb_ring_take - Move the oldest entry to @g; for the consumer only. False: it is empty. */
static inline bool arb_ring_take(struct arb_ring *r, struct arb_grant *g)
{
	return ck_ring_dequeue_spsc_grant(&r->ring, r->buf, g);
}

#endif
