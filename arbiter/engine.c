// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See engine.h. The path stage is in assign.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arbiter/engine.h" /* first: <netinet/in.h> and <linux/ipv6.h> agree only so */
#include "arbiter/engine_priv.h"

#include "core/fastpass/fcp_core.h"
#include "base/log.h"

/* Slots: the deadline of demands without one. bl_alloc_demand() takes no later deadline. */
#define PATIENT (1U << 30)

/* ---- allocation ---- */

/*
 * How many slots from now the deadline of a pair is. A pair without a deadline comes after all that
 * have one.
 */
static uint64_t patience_slots(const struct bl_fp_file *f, uint32_t src, uint32_t dst)
{
	const struct bl_fp_pair *pair = bl_fp_pair_find(f, src, dst);
	uint64_t us = pair && pair->deadline_us ? pair->deadline_us : f->peer[src].deadline_us;

	return us ? us * 1000 / f->slot_ns : PATIENT;
}

static int take_demand(void *p, uint32_t src, uint32_t dst, uint32_t mtus, uint64_t slot)
{
	struct bl_engine *e = p;
	uint64_t deadline = slot + PATIENT;

	/* It would take a slot of its source that could not be used; comm asks again. */
	if (e->usable && e->rack_of[src] != e->rack_of[dst] &&
	    !atomic_load_explicit(&e->usable[(size_t)e->rack_of[src] * e->nracks + e->rack_of[dst]],
				  memory_order_relaxed)) {
		atomic_fetch_add_explicit(&e->no_path, 1, memory_order_relaxed);
		return -ENOSPC;
	}
	if (e->file->policy == BL_ALLOC_DEADLINE && src < e->nendpoints && dst < e->nendpoints)
		deadline = slot + patience_slots(e->file, src, dst);
	switch (bl_alloc_demand(e->alloc, src, dst, mtus, deadline)) {
	case BL_ALLOC_OK:
		return 0;
	case BL_ALLOC_SELF:
		/*
		 * The network is not needed for that: hosts do not ask for it, and a host that does
		 * gets no slots.
		 */
		return 0;
	case BL_ALLOC_UNKNOWN:
		return 0; /* comm refuses numbers of unknown endpoints */
	default:
		return -ENOSPC;
	}
}

static void forget_source(void *p, uint32_t src)
{
	bl_alloc_forget_from(((struct bl_engine *)p)->alloc, src);
}

static bool any_waiting(void *p)
{
	return bl_alloc_waiting(((struct bl_engine *)p)->alloc) != 0;
}

static uint64_t spare_mtus(void *p)
{
	const struct bl_engine *e = p;
	const uint64_t waits = bl_alloc_waiting(e->alloc), enough = bl_alloc_enough(e->alloc);

	return waits < enough ? enough - waits : 0;
}

static unsigned int run_slots(void *p, uint64_t slot, struct arb_grant *out, unsigned int max)
{
	struct bl_engine *e = p;
	unsigned int n = 0;

	if (!e->busy) {
		if (slot > e->last)
			e->last = slot;
		e->g = bl_alloc_run(e->alloc, e->last);
		e->at = 0;
		e->words = 0;
		e->busy = true;
	}
	for (;;) {
		while (e->words) {
			const uint32_t j = (uint32_t)__builtin_ctz(e->words);

			if (n == max)
				return n;
			out[n++] = (struct arb_grant){ .base = e->g.base + 64 * j,
						       .slots = *e->mask++,
						       .src = e->head->src,
						       .dst = e->head->dst,
						       .path = BL_FCP_PATH_ANY };
			e->words &= e->words - 1;
		}
		e->head = bl_grant_next(&e->g, &e->at, &e->mask);
		if (!e->head)
			break;
		e->words = e->head->words;
	}
	e->busy = n == max; /* then this function is called again, and finds nothing */
	return n;
}

/* ---- dead paths ---- */

/*
 * Sets @usable from what is known; @lock is held. Each pair of racks that has no path left is
 * logged once.
 */
static void publish_usable(struct bl_engine *e)
{
	uint32_t a, b;

	atomic_fetch_add_explicit(&e->generation, 1, memory_order_acq_rel);
	for (a = 0; a < e->nracks; a++)
		for (b = 0; b < e->nracks; b++) {
			_Atomic uint64_t *at = &e->usable[(size_t)a * e->nracks + b];
			uint64_t mask = e->told[(size_t)a * e->nracks + b] & ~e->up[a] &
					~e->down[b];

			if (a != b && !mask && atomic_load_explicit(at, memory_order_relaxed))
				bl_log(BL_LOG_WARN,
				       "no path from rack %u to rack %u is left; slots between "
				       "them are refused",
				       a, b);
			atomic_store_explicit(at, mask, memory_order_relaxed);
		}
	atomic_fetch_add_explicit(&e->generation, 1, memory_order_release);
}

int bl_engine_usable(struct bl_engine *e, uint32_t src, uint32_t dst, uint64_t mask)
{
	if (!e->usable || src >= e->nracks || dst >= e->nracks)
		return -1;
	pthread_mutex_lock(&e->lock);
	/* Bits of paths that do not exist would make a pair without any path look alive. */
	e->told[(size_t)src * e->nracks + dst] =
		mask & (e->npaths == 64 ? ~0ULL : (1ULL << e->npaths) - 1);
	publish_usable(e);
	pthread_mutex_unlock(&e->lock);
	return 0;
}

void bl_engine_links(void *engine, const struct bl_fcp_link *l, unsigned int n)
{
	struct bl_engine *e = engine;
	uint32_t r;

	if (!e->usable)
		return;
	pthread_mutex_lock(&e->lock);
	memset(e->up, 0, e->nracks * sizeof(*e->up));
	memset(e->down, 0, e->nracks * sizeof(*e->down));
	for (; n--; l++) {
		uint32_t rack = BL_BE16(l->rack);

		if (l->path >= e->npaths || (rack >= e->nracks && rack != BL_FCP_RACK_ALL))
			continue; /* from another file: the table is a hash of the endpoints only */
		for (r = 0; r < e->nracks; r++)
			if (r == rack || rack == BL_FCP_RACK_ALL)
				*(l->way ? &e->down[r] : &e->up[r]) |= 1ULL << l->path;
	}
	publish_usable(e);
	pthread_mutex_unlock(&e->lock);
}

uint64_t bl_engine_no_path(struct bl_engine *e)
{
	return atomic_load_explicit(&e->no_path, memory_order_relaxed);
}

/* ---- life ---- */

void bl_engine_free(struct bl_engine *e)
{
	if (!e)
		return;
	bl_alloc_free(e->alloc);
	bl_selector_close(&e->sel);
	free(e->rack_of);
	free(e->usable);
	free(e->told);
	free(e->up);
	free(e->down);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

/* Sets the weights of all pairs; in the allocator they start at 1. */
static void set_weights(struct bl_engine *e, const struct bl_fp_file *f)
{
	uint32_t i, k;

	for (i = 0; i < f->npeers; i++)
		for (k = 0; f->peer[i].weight > 1 && k < f->npeers; k++)
			if (k != i)
				bl_alloc_weight(e->alloc, i, k, f->peer[i].weight);
	for (i = 0; i < f->npairs; i++)
		if (f->pair[i].weight)
			bl_alloc_weight(e->alloc, f->pair[i].src, f->pair[i].dst,
					f->pair[i].weight);
}

static int engine_open(struct bl_engine *e, const struct bl_fp_file *f, struct bl_err *err)
{
	uint16_t *cap = calloc(f->npeers, sizeof(*cap)), *up = calloc(f->nracks, sizeof(*up)),
		 *pod_up = calloc(f->npods + 1, sizeof(*pod_up));
	uint32_t *inside = calloc(f->nracks + 1, sizeof(*inside));
	struct bl_alloc_cfg c = { .endpoints = f->npeers,
				  .policy = (enum bl_alloc_policy)f->policy,
				  .window_slots = f->window_slots,
				  .quota_mtus = f->quota < BL_ALLOC_QUOTA_MAX ? f->quota
									      : BL_ALLOC_QUOTA_MAX,
				  .src_cap = cap,
				  .dst_cap = cap };
	const char *why = NULL;
	uint32_t i, capsum = 0;
	bool limits = false;
	int rc = 0;

	e->rack_of = calloc(f->npeers, sizeof(*e->rack_of));
	if (!cap || !up || !pod_up || !inside || !e->rack_of)
		rc = bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; !rc && i < f->npeers; i++) {
		cap[i] = f->peer[i].cap;
		capsum += cap[i];
		e->rack_of[i] = f->peer[i].rack;
	}
	for (i = 0; !rc && f->nracks && i < f->npeers; i++)
		inside[e->rack_of[i]] += cap[i];
	for (i = 0; !rc && i < f->nracks; i++) {
		/* without a limit of its own a rack carries what its paths do */
		up[i] = (uint16_t)bl_min64(f->rack_up ? f->rack_up
						      : (uint64_t)f->paths * f->path_cap,
					   BL_ALLOC_CAP_MAX);
		limits |= inside[i] > up[i];
	}
	/*
	 * Where the hosts of each rack can send no more than leaves it, racks are no limit; to
	 * count them all the same costs the allocator its fast loops (alloc_priv.h, @plain).
	 */
	if (!rc && f->nracks > 1 && (f->rack_up || f->paths) && (limits || f->npods > 1)) {
		c.racks = f->nracks;
		c.rack_of = e->rack_of;
		c.rack_up = c.rack_down = up;
	}
	for (i = 0; !rc && i < f->npods; i++)
		pod_up[i] = (uint16_t)(f->paths * f->cores * f->core_cap < BL_ALLOC_CAP_MAX
					       ? f->paths * f->cores * f->core_cap
					       : BL_ALLOC_CAP_MAX);
	if (!rc && f->npods > 1) {
		c.pods = f->npods;
		c.pod_of = f->pod_of;
		c.pod_up = c.pod_down = pod_up;
	}
	if (!rc)
		e->alloc = bl_alloc_new(&c, &why);
	if (!rc && !e->alloc)
		rc = bl_fail(err, EINVAL, "timeslot allocation: %s", why);
	free(cap);
	free(up);
	free(pod_up);
	free(inside);
	if (rc)
		return rc;
	bl_alloc_touch(e->alloc);
	e->file = f;
	if (f->policy == BL_ALLOC_WEIGHTED)
		set_weights(e, f);
	e->nendpoints = f->npeers;
	e->nracks = f->nracks;
	e->npaths = bl_fp_ways(f);
	e->cap = f->path_cap;
	e->pod_of = f->npods ? f->pod_of : NULL;
	e->npods = f->npods;
	e->cores = f->npods ? f->cores : 1;
	e->core_cap = f->core_cap;
	/*
	 * each slot has at most as many packets as the links carry; each may be a grant of its own
	 */
	e->ops = (struct arb_alloc_ops){ .demand = take_demand,
					 .forget = forget_source,
					 .run = run_slots,
					 .waiting = any_waiting,
					 .horizon_slots = f->window_slots,
					 .grants_max = capsum * f->window_slots,
					 .spare = spare_mtus };
	if (!f->paths || f->nracks < 2)
		return 0;
	e->usable = calloc((size_t)f->nracks * f->nracks, sizeof(*e->usable));
	e->told = calloc((size_t)f->nracks * f->nracks, sizeof(*e->told));
	e->up = calloc(f->nracks, sizeof(*e->up));
	e->down = calloc(f->nracks, sizeof(*e->down));
	if (!e->usable || !e->told || !e->up || !e->down)
		return bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; i < f->nracks * f->nracks; i++)
		e->usable[i] = e->told[i] = e->npaths == 64 ? ~0ULL : (1ULL << e->npaths) - 1;
	rc = bl_selector_open(e, f, err);
	return rc;
}

int bl_engine_new(struct bl_engine **out, const struct bl_fp_file *f, struct bl_err *err)
{
	struct bl_engine *e = calloc(1, sizeof(*e));
	int rc;

	*out = NULL;
	if (!e)
		return bl_fail(err, ENOMEM, "out of memory");
	pthread_mutex_init(&e->lock, NULL);
	rc = engine_open(e, f, err);
	if (rc)
		bl_engine_free(e);
	else
		*out = e;
	return rc;
}

const struct arb_alloc_ops *bl_engine_ops(const struct bl_engine *e)
{
	return &e->ops;
}

void *bl_engine_alloc(struct bl_engine *e)
{
	return e;
}

const struct arb_path_ops *bl_engine_path_ops(const struct bl_engine *e)
{
	return e->npaths && e->nracks > 1 ? &bl_selector_ops : NULL;
}

void *const *bl_engine_paths(const struct bl_engine *e)
{
	return &e->state;
}
