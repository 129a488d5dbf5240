/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writing and reading the figures of an endpoint (maps/figures_abi.h). One writer, any number of
 * readers, no lock: each word is whole, and an entry is believed if its timestamp is the same
 * before and after it was copied.
 *
 * Example: a reader looks for the message with ts 5000 of an endpoint that began at 1000. An entry
 * of @wait has 5000: BL_FIG_FOUND. None has, and no entry was overwritten yet: it waited for less
 * than BL_FIG_SHORT_NS, BL_FIG_BRIEF. None has, and the oldest entry that is left is 6000: its
 * entry may have been overwritten, BL_FIG_UNKNOWN.
 */
#ifndef BARLINE_FIGURES_CORE_H
#define BARLINE_FIGURES_CORE_H

#include "core/core.h"
#include "core/log_hist_core.h"
#include "maps/figures_abi.h"
#include "maps/wire_abi.h"

_Static_assert(BL_FIG_BINS == BL_LOG_BINS, "the bins are those of log_hist_core.h");

/** bl_fig_add - counts @n values of @ns each. */
BL_CORE void bl_fig_add(struct bl_fig_hist *h, __u64 ns, __u64 n)
{
	__u64 *bin = &h->n[bl_log_bin(ns, BL_FIG_FIRST)];

	BL_WRITE_ONCE(*bin, *bin + n);
	BL_WRITE_ONCE(h->sum_ns, h->sum_ns + ns * n);
}

/**
 * bl_fig_put - appends the entry @e, which begins with a timestamp that is not 0, to a ring of
 * BL_FIG_KEPT entries. @count: entries ever written; it is raised first, so that it counts the one
 * that is overwritten now.
 */
BL_CORE void bl_fig_put(void *ring, __u64 *count, const void *e, unsigned int size)
{
	char *to = (char *)ring + *count % BL_FIG_KEPT * size;

	__atomic_store_n(count, *count + 1, __ATOMIC_RELAXED);
	__atomic_store_n((__u64 *)to, 0, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__builtin_memcpy(to + sizeof(__u64), (const char *)e + sizeof(__u64), size - sizeof(__u64));
	__atomic_store_n((__u64 *)to, *(const __u64 *)e, __ATOMIC_RELEASE);
}

/** bl_fig_get - copies entry @i of a ring. Returns 0: it is empty, or is being written. */
BL_CORE int bl_fig_get(const void *ring, unsigned int i, void *e, unsigned int size)
{
	const char *from = (const char *)ring + i % BL_FIG_KEPT * size;
	__u64 ts = __atomic_load_n((const __u64 *)from, __ATOMIC_ACQUIRE);

	__builtin_memcpy(e, from, size);
	*(__u64 *)e = ts;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return ts && __atomic_load_n((const __u64 *)from, __ATOMIC_RELAXED) == ts;
}

/** bl_fig_same_ts - whether two timestamps agree in the 48 bits that frames carry. */
BL_CORE int bl_fig_same_ts(__u64 a, __u64 b)
{
	return !((a ^ b) & BL_TS_MASK);
}

/* Returns whether @a is above @b, as serial numbers of 48 bits. */
BL_CORE int bl_fig_above(__u64 a, __u64 b)
{
	return (__s64)((a - b) << 16) > 0;
}

enum bl_fig_known {
	BL_FIG_UNKNOWN, /* nothing is known of it any more */
	BL_FIG_BRIEF,   /* it waited for less than BL_FIG_SHORT_NS */
	BL_FIG_FOUND,
};

/** bl_fig_find_wait - looks for the wait of the scattering with @ts, of which 48 bits count. */
BL_CORE enum bl_fig_known bl_fig_find_wait(const struct bl_figures *f, __u64 ts, int reliable,
					   struct bl_fig_wait *e)
{
	__u64 oldest = 0, n;
	unsigned int i;

	for (i = 0; i < BL_FIG_KEPT; i++) {
		if (!bl_fig_get(f->wait, i, e, sizeof(*e)))
			continue;
		if (!!e->reliable == !!reliable && bl_fig_same_ts(e->ts, ts))
			return BL_FIG_FOUND;
		if (!oldest || e->ts < oldest)
			oldest = e->ts;
	}
	/* after the entries: whoever has seen that one is overwritten must see the count, too */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	n = __atomic_load_n(&f->nwaits, __ATOMIC_RELAXED);
	if (!f->began || !bl_fig_above(ts, f->began))
		return BL_FIG_UNKNOWN;
	return n <= BL_FIG_KEPT || bl_fig_above(ts, oldest) ? BL_FIG_BRIEF : BL_FIG_UNKNOWN;
}

#endif
