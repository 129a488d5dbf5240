// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The allocation and path stages.
 *
 * Entries keep their order, which makes this simple: all that the allocation stage emits between
 * two marks goes through the rings of one path thread, and comm reads these rings in turn. So when
 * comm sees ARB_FORGOTTEN, all grants of the session that ended precede it.
 *
 * In one loop a full ring is emptied on the spot by the stage behind it (@drain of struct bl_arb);
 * with threads the producer waits for it.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arbiter/arb.h"
#include "arbiter/pipe.h"

#include "maps/fastpass_abi.h"

/*
 * Asks that a run takes at most: one for each packet that it can give. After a pause the ring is
 * full, and all of it at once made runs of 1 ms of which nothing was in time, for 45 ms on end.
 */
static uint32_t ask_limit(const struct bl_arb *a)
{
	return (uint32_t)bl_min64(ARB_ASK_RING,
				  bl_max64(1024, (uint64_t)a->cfg.nendpoints * a->cfg.run_slots));
}

int arb_pipe_open(struct bl_arb *a, struct bl_err *err)
{
	unsigned int i, rings = a->npaths ? a->npaths : 1;
	bool ok;

	a->ask_budget = ask_limit(a);
	a->path_max = a->aops->grants_max ? a->aops->grants_max
					  : a->cfg.nendpoints * a->aops->horizon_slots;
	ck_ring_init(&a->asks, ARB_ASK_RING);
	a->asks_buf = aligned_alloc(64, ARB_ASK_RING * sizeof(*a->asks_buf));
	a->run_buf = calloc(ARB_RUN_MAX, sizeof(*a->run_buf));
	ok = a->asks_buf && a->run_buf;
	if (ok) { /* makes the kernel find the pages before the first run, as in arb_ring_open() */
		memset(a->asks_buf, 0, ARB_ASK_RING * sizeof(*a->asks_buf));
		memset(a->run_buf, 0, ARB_RUN_MAX * sizeof(*a->run_buf));
	}
	for (i = 0; ok && i < rings; i++) {
		ok = arb_ring_open(&a->to_comm[i], ARB_GRANT_RING);
		if (!ok || !a->npaths)
			continue;
		/* written only as far as runs of usual size reach */
		a->path_buf[i] = calloc(a->path_max, sizeof(*a->path_buf[i]));
		ok = a->path_buf[i] && arb_ring_open(&a->to_path[i], ARB_GRANT_RING);
		if (ok)
			memset(a->path_buf[i], 0,
			       bl_min64(a->path_max, 1u << 16) * sizeof(*a->path_buf[i]));
	}
	return ok ? 0 : bl_fail(err, ENOMEM, "out of memory");
}

void arb_pipe_close(struct bl_arb *a)
{
	unsigned int i;

	free(a->asks_buf);
	free(a->run_buf);
	for (i = 0; i < BL_ARB_PATHS_MAX; i++) {
		arb_ring_close(&a->to_path[i]);
		arb_ring_close(&a->to_comm[i]);
		free(a->path_buf[i]);
	}
}

static void wake_comm(struct bl_arb *a)
{
	uint64_t one = 1;

	/*
	 * Pairs with the fence in arb_comm_wait(): either comm sees the grant, or this thread sees
	 * that comm is asleep.
	 */
	ck_pr_fence_memory();
	if (atomic_load_explicit(&a->asleep, memory_order_relaxed) &&
	    write(a->bell_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		return; /* comm sleeps no longer than a watchdog interval anyway */
}

static void emit_comm(struct bl_arb *a, unsigned int i, const struct arb_grant *g, unsigned int n)
{
	const bool mark = n && g[n - 1].kind == ARB_MARK;
	unsigned int done;

	while ((done = arb_ring_put(&a->to_comm[i], g, n)) < n) {
		g += done;
		n -= done;
		if (atomic_load_explicit(&a->stop, memory_order_relaxed))
			return;
		if (a->drain)
			a->drain(a);
		else
			sched_yield();
	}
	if (mark)
		wake_comm(a);
}

/* Passes entries to the next stage. A mark is the last entry of its run. */
static void emit_grants(struct bl_arb *a, const struct arb_grant *g, unsigned int n)
{
	const bool mark = n && g[n - 1].kind == ARB_MARK;
	unsigned int i = a->run_turn, done;

	if (!a->npaths) {
		emit_comm(a, 0, g, n);
		return;
	}
	while ((done = arb_ring_put(&a->to_path[i], g, n)) < n) {
		g += done;
		n -= done;
		if (atomic_load_explicit(&a->stop, memory_order_relaxed))
			return;
		if (a->cfg.threads == 1)
			arb_path_turn(a, i);
		else
			sched_yield();
	}
	if (mark)
		a->run_turn = i + 1 == a->npaths ? 0 : i + 1;
}

/* Gives paths to the grants of path selector @i's run, which is complete. */
static void path_run_end(struct bl_arb *a, unsigned int i)
{
	unsigned int n = a->path_n[i];

	a->path_n[i] = 0;
	if (n)
		emit_comm(a, i, a->path_buf[i],
			  a->pops->assign(a->paths[i], a->path_buf[i], n, a->path_max));
}

bool arb_path_turn(struct bl_arb *a, unsigned int i)
{
	struct arb_ring *in = &a->to_path[i];
	const struct arb_grant *g;
	unsigned int k, n;
	bool any = false;

	while ((g = arb_ring_peek(in, &n))) {
		any = true;
		for (k = 0; k < n && g[k].kind == ARB_SLOTS; k++) {
			if (a->path_n[i] < a->path_max)
				a->path_buf[i][a->path_n[i]++] = g[k];
			else
				atomic_fetch_add_explicit(
					&a->overrun, (uint64_t)__builtin_popcountll(g[k].slots),
					memory_order_relaxed);
		}
		if (k < n) {
			const struct arb_grant other = g[k];

			arb_ring_drop(in, k + 1);
			if (other.kind == ARB_MARK)
				path_run_end(a, i);
			emit_comm(a, i, &other, 1);
			continue;
		}
		arb_ring_drop(in, k);
	}
	return any;
}

/*
 * Sets how many asks the next run takes, after a run that took @took ns.
 *
 * A run visits all waiting flows. Where it takes longer than the slots that it gives, the next one
 * finds more, and so on. So the slower a run was, the fewer asks the next one takes; the rest stays
 * in the ring and, behind it, with comm, where all demands of a pair are one number.
 *
 * Long before that, where a run takes an eighth of the window, no more is accepted than fills the
 * slots, except for a few asks in each run: what waits for one slow receiver must not keep all
 * others out.
 */
static void set_ask_budget(struct bl_arb *a, uint64_t took)
{
	const uint64_t window = (uint64_t)a->aops->horizon_slots * a->cfg.slot_ns;

	if (took > window / 8)
		a->slow_until_ns = bl_mono_ns() + 4 * window;
	if (took > (uint64_t)a->aops->horizon_slots * a->cfg.slot_ns / 2)
		a->ask_budget = a->ask_budget / 2 > ARB_ASK_LEAST ? a->ask_budget / 2
								  : ARB_ASK_LEAST;
	else
		a->ask_budget = a->ask_budget * 2 < ask_limit(a) ? a->ask_budget * 2 : ask_limit(a);
	a->asked = 0;
}

/*
 * The lead of the next run. An arbiter that is alone may give slots as far ahead as its runs need;
 * where others may take over, slots beyond the horizon would be theirs.
 */
static uint64_t lead_ns(struct bl_arb *a)
{
	const uint64_t least = (uint64_t)a->cfg.lead_us * 1000,
		       window = (uint64_t)a->aops->horizon_slots * a->cfg.slot_ns;
	/* hosts refuse slots that are further ahead than that */
	const uint64_t ring = (uint64_t)(BL_FP_SLOTS - 64) * a->cfg.slot_ns,
		       other = window + (uint64_t)a->cfg.run_slots * a->cfg.slot_ns +
			       a->cfg.late_us * 1000ULL;
	const uint64_t most =
		bl_max64(least, bl_min64(least + 2 * window, ring > other ? ring - other : 0));

	if (!a->alone)
		return least;
	return bl_lead(&a->lead, bl_mono_ns(),
		       atomic_load_explicit(&a->took_ns, memory_order_relaxed),
		       2 * window + 1000000, least, most);
}

static void run_allocator(struct bl_arb *a, uint64_t slot)
{
	const uint64_t begun = bl_mono_ns();
	struct arb_grant mark = { .base = slot, .slots = begun, .kind = ARB_MARK };
	unsigned int n;
	uint64_t took;

	do {
		n = a->aops->run(a->alloc, slot, a->run_buf, ARB_RUN_MAX);
		emit_grants(a, a->run_buf, n);
	} while (n == ARB_RUN_MAX);
	a->busy = a->aops->waiting(a->alloc);
	took = bl_mono_ns() - begun;
	set_ask_budget(a, took);
	atomic_fetch_add_explicit(&a->run_bin[bl_log_bin(took, ARB_RUN_FIRST)], 1,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&a->run_ns, took, memory_order_relaxed);
	emit_grants(a, &mark, 1);
	atomic_fetch_add_explicit(&a->runs, 1, memory_order_relaxed);
}

static bool accepts_asks(const struct bl_arb *a)
{
	return a->asked < ARB_ASK_LEAST || !a->slow_until_ns || !a->aops->spare ||
	       a->aops->spare(a->alloc) || bl_mono_ns() >= a->slow_until_ns;
}

uint64_t arb_alloc_turn(struct bl_arb *a)
{
	uint64_t now, slot, from, lead, present = arb_slot(a, 0);
	bool was = a->busy;
	struct arb_ask q;

	while (a->asked < a->ask_budget && accepts_asks(a) &&
	       ck_ring_dequeue_spsc_ask(&a->asks, a->asks_buf, &q)) {
		struct arb_grant g = { .src = q.src,
				       .dst = q.dst,
				       .mtus = q.mtus,
				       .kind = q.mtus ? ARB_REFUND : ARB_FORGOTTEN };

		a->asked++;
		if (!q.mtus)
			a->aops->forget(a->alloc, q.src);
		if (!q.mtus || a->aops->demand(a->alloc, q.src, q.dst, q.mtus, present))
			emit_grants(a, &g, 1);
		else
			a->busy = true;
	}
	if (!a->busy) {
		a->asked = 0; /* nothing waits: there is no run that they could make longer */
		return BL_FCP_NEVER;
	}
	/*
	 * A run that cannot leave the pipeline in time is not started; the next one is as late as
	 * this one would be, but with current demands.
	 */
	if (atomic_load_explicit(&a->runs, memory_order_relaxed) -
		    atomic_load_explicit(&a->marks, memory_order_relaxed) >=
	    ARB_RUNS_AHEAD)
		return bl_mono_ns();
	lead = lead_ns(a);
	slot = from = arb_slot(a, lead);
	if (was && slot < a->next_slot)
		return bl_mono_ns() + (a->next_slot - slot) * a->cfg.slot_ns;
	/*
	 * A run that comes a little late still gives what it should have given: half of the lead is
	 * left.
	 */
	if (was && a->next_slot >= arb_slot(a, lead / 2))
		from = a->next_slot;
	/*
	 * The clock is read after the slot: what is given while the lease lasts ends before any
	 * other arbiter gives.
	 */
	now = bl_mono_ns();
	if (now >= atomic_load_explicit(&a->until_ns, memory_order_relaxed))
		return now + (uint64_t)a->cfg.interval_us * 1000;
	if (was && from >= a->next_slot + a->cfg.run_slots)
		atomic_fetch_add_explicit(&a->skipped, from - a->next_slot - a->cfg.run_slots + 1,
					  memory_order_relaxed);
	run_allocator(a, from);
	a->next_slot = arb_run_after(from, a->cfg.run_slots, a->aops->horizon_slots);
	return a->next_slot > slot ? now + (a->next_slot - slot) * a->cfg.slot_ns : now;
}
