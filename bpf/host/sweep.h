/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the pacer of a host does about numbers that are of no use: frames that waited too long are
 * dropped, and numbers that are no longer used are freed (core/queue/dest_core.h). All of it runs
 * in the pacer's turns, so nothing that only the pacer writes can change meanwhile.
 *
 * Example: 64 numbers or fewer are left. Each turn looks at 16 numbers. Number 9 holds nothing and
 * was last used BL_HOLD_IDLE_NS ago: it is closed, looked at once more, and deleted from
 * "hold_dests". Once the last pin is gone and the daemon has forgotten its owner, 9 goes to
 * "hold_free".
 *
 * Not here: flows of TOP, whose end hold.h sees to. BPF side only.
 */
#ifndef BARLINE_HOST_SWEEP_H
#define BARLINE_HOST_SWEEP_H

#include "bpf/host/role.h"
#include "bpf/host/dest.h"
#include "bpf/host/fastpass.h"
#include "bpf/host/pl2.h"
#include "bpf/host/top_keep.h"

#define BL_SWEEP_STEP 16 /* numbers that one turn looks at */
/* shortest time between two looks at a destination that waits for an answer */
#define BL_HOLD_LOOK_NS (BL_HOLD_AGE_NS / 16)
#define BL_SWEEP_NS     2000000ULL /* from one pass over all numbers to the next */

/** struct bl_hold_sweep - argument of the callbacks of this file. */
struct bl_hold_sweep {
	__u64 now;     /* CLOCK_MONOTONIC, ns */
	__u64 age;     /* that a frame may have, ns */
	__u32 from;    /* first number less 1, or key of a queue */
	__u32 dropped; /* frames */
	__u64 bytes;   /* of them */
};

/* ---- numbers ---- */

/*
 * Clears what PL2 and Fastpass remember of a destination, before its number gets another owner.
 * PL2's sequence numbers go on.
 */
static __always_inline void bl_number_clean(__u32 n)
{
	struct bl_pl2_dest *d = bpf_map_lookup_elem(&pl2_dests, &n);
	struct bl_fp_dest *f = bpf_map_lookup_elem(&fp_dests, &n);

	if (d) {
		d->refusals = 0;
		d->last_wait_ns = d->last_ns = d->delay_ns = d->delay_min_ns = d->delay_max_ns = 0;
		d->rsvs = d->grts = d->early = d->resent = d->timeouts = d->refused = d->bad =
			d->late = 0;
	}
	if (f) {
		/* nothing that was asked for is under way */
		f->used = BL_FP_WANTED(BL_READ_ONCE(f->want)) - f->idle;
		f->room = 0;
	}
}

/**
 * bl_number_free - frees number @n, which is closed and LEAVING, if no CPU uses it any more and the
 * daemon has forgotten its owner. Otherwise a later sweep tries again. Returns 1 if the number is
 * free now.
 */
__attribute__((noinline)) int bl_number_free(__u32 n)
{
	__u32 zero = 0;
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);
	struct bl_fp_dest *f = bpf_map_lookup_elem(&fp_dests, &n);
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	struct bl_due *due = bpf_map_lookup_elem(&hold_due, &zero);

	if (!d || !cfg || !due || !bl_dest_empty(d) || bl_number_held(n))
		return 0;
	if (f && BL_READ_ONCE(f->endpoint) == BL_FP_RETIRED) {
		if (cfg->slot_ns)
			return 0; /* the daemon's thread looks at it every 50 ms at least */
		BL_WRITE_ONCE(f->endpoint, BL_FP_UNKNOWN);
	}
	bl_number_clean(n);
	d->kind = 0;
	BL_WRITE_ONCE(d->used, BL_DEST_FREE);
	if (bpf_map_push_elem(&hold_free, &n, BPF_ANY)) {
		/* Since Linux 6.16 the map's lock may time out: a later sweep tries again. */
		BL_WRITE_ONCE(d->used, BL_DEST_LEAVING);
		return 0;
	}
	(void)__sync_fetch_and_add(&due->spare, 1);
	return 1;
}

/** bl_number_leave - marks the closed number @n as LEAVING, after it was deleted from its hash. */
static __always_inline void bl_number_leave(struct bl_hold_dest *d, __u32 n)
{
	BL_WRITE_ONCE(d->used, BL_DEST_LEAVING);
	bl_number_free(n);
}

/*
 * Returns whether nothing is held for destination @n and nothing is under way. Called before the
 * number is closed, and again after that.
 */
static __always_inline int bl_number_idle(__u32 n)
{
	const struct bl_pl2_coming *c = bpf_map_lookup_elem(&pl2_coming, &n);
	const struct bl_pl2_dest *d = bpf_map_lookup_elem(&pl2_dests, &n);

	if (!c || !d || BL_READ_ONCE(c->bytes) || c->release || d->n ||
	    BL_PL2_STATE(BL_READ_ONCE(d->word)) != BL_PL2_IDLE)
		return 0;
	return !bl_number_held(n);
}

/**
 * bl_number_retire - closes the number of destination @n if it was not used for BL_HOLD_IDLE_NS, so
 * that another destination can have it.
 */
__attribute__((noinline)) int bl_number_retire(__u32 n, __u64 now)
{
	__u32 zero = 0;
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);
	struct bl_fp_dest *f = bpf_map_lookup_elem(&fp_dests, &n);
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	struct bl_mac_key key = {};

	if (!d || !f || !cfg || d->used_ns + BL_HOLD_IDLE_NS > now || !bl_number_idle(n) ||
	    !bl_dest_close(d))
		return 0;
	if (!bl_number_idle(n)) {
		bl_dest_open(d); /* another CPU has used it since the first look */
		return 0;
	}
	__builtin_memcpy(key.mac, d->mac, sizeof(key.mac));
	__builtin_memcpy(key.upper, d->upper, sizeof(key.upper));
	key.kind = d->kind;
	bpf_map_delete_elem(&hold_dests, &key);
	if (cfg->slot_ns && __sync_lock_test_and_set(&f->endpoint, BL_FP_RETIRED) != BL_FP_RETIRED)
		bl_fp_ring();
	bl_number_leave(d, n);
	return 0;
}

/* Frees or retires one number. */
static long bl_sweep_number(__u32 i, struct bl_hold_sweep *s)
{
	__u32 n = (s->from + i) % BL_NUMBERS + 1;
	const struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);
	__u32 used;

	if (!d)
		return 0;
	used = BL_READ_ONCE(d->used);
	if (used == BL_DEST_LEAVING)
		bl_number_free(n);
	else if (used == BL_DEST_USED && d->kind != BL_DEST_FLOW)
		bl_number_retire(n, s->now);
	return 0;
}

/**
 * bl_number_sweep - frees or retires some of the numbers, and schedules the next step. Called while
 * few numbers are left.
 */
__attribute__((noinline)) int bl_number_sweep(__u64 now)
{
	__u32 zero = 0;
	struct bl_due *due = bpf_map_lookup_elem(&hold_due, &zero);
	struct bl_hold_sweep s = { .now = now };

	if (!due)
		return 0;
	if (due->sweep_ns <= now) {
		s.from = (__u32)due->sweep;
		BL_LOOP(BL_SWEEP_STEP, bl_sweep_number, &s);
		due->sweep += BL_SWEEP_STEP;
		due->sweep_ns = now;
		if (due->sweep >= BL_NUMBERS) {
			due->sweep = 0;
			due->sweep_ns = now + BL_SWEEP_NS;
		}
	}
	bl_due_next(due, due->sweep_ns);
	return 0;
}

/* ---- frames that wait too long ---- */

/* Drops the oldest frame of queue @s->from if it has waited too long. Returns 1 if it has not. */
static long bl_drop_old_head(__u32 i, struct bl_hold_sweep *s)
{
	__u32 key = s->from, entry = (__u32)bl_queue_peek(key);

	if (!entry || bl_slot_arrival_ns(BL_RING_SLOT(entry)) + s->age > s->now)
		return 1;
	if ((__u32)bl_queue_get_if(key, entry) == entry) {
		bl_slot_free(BL_RING_SLOT(entry));
		s->dropped++;
		s->bytes += BL_RING_LEN(entry);
	}
	return 0;
}

/*
 * Drops a PL2 burst of which no frame has left for @age. An answer to its RSV that comes later
 * finds IDLE or another sequence number. Adds its frames to @s.
 */
static __always_inline void bl_drop_old_burst(__u32 n, struct bl_hold_sweep *s)
{
	struct bl_pl2_dest *d = bpf_map_lookup_elem(&pl2_dests, &n);
	__u32 i, tries = BL_PL2_K_MAX;

	if (!d || !d->n || bl_slot_arrival_ns(BL_RING_SLOT(d->entry[0])) + s->age > s->now)
		return;
	BL_OPAQUE(tries);
	for (i = 0; i < tries && i < d->n; i++)
		if (i >= d->sent) {
			s->dropped++;
			s->bytes += BL_RING_LEN(d->entry[i]);
		}
	bl_pl2_free(d);
}

/**
 * bl_hold_drop_old - drops and counts the frames of number @n that are older than @age, if nothing
 * has left its queues for that long while the pacer was running.
 * @back: since when the pacer has been running without a pause
 * Returns the frames dropped.
 */
__attribute__((noinline)) int bl_hold_drop_old(__u32 n, __u64 back, __u64 age, __u64 now)
{
	struct bl_hold_sweep s = { .now = now, .age = age };
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);
	__u32 x, y;

	if (!d || !bl_hold_expired(back, d->left_ns, age, now))
		return 0;
	/* See bl_due_scan(): what the callback changes must not look constant to the verifier. */
	x = y = (__u32)now;
	BL_SEEN(y);
	s.dropped = x ^ y;
	s.bytes = x ^ y;
	s.from = BL_HOLD_QUEUE(n, 0);
	BL_LOOP(BL_RING, bl_drop_old_head, &s);
	s.from = BL_HOLD_QUEUE(n, 1);
	BL_LOOP(BL_RING, bl_drop_old_head, &s);
	if (d->kind == BL_DEST_FLOW)
		bl_top_unkeep(n); /* they count as sent */
	bl_drop_old_burst(n, &s);
	bl_count_frames(BL_HC_PACE, BL_R_HELD_LONG, s.dropped, s.bytes);
	return (int)s.dropped;
}

/*
 * Returns how long a frame may wait under the present policy, ns; 0: for ever, since under policy
 * none no frame waits.
 */
static __always_inline __u64 bl_hold_age_limit(const struct bl_hold_cfg *cfg,
					       const struct bl_due *due)
{
	__u32 zero = 0;
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	__u64 ask = 0;

	if (cfg->policy == BL_POLICY_NONE)
		return 0;
	if (cfg->policy == BL_POLICY_TOP)
		ask = c ? c->sync_ns : 0;
	else if (cfg->policy == BL_POLICY_PL2)
		ask = cfg->retry_ns;
	return bl_hold_age(cfg, ask, bl_numbers_low(due));
}

/**
 * bl_hold_drop_aged - drops the frames of number @n that are too old. Called before the pacer's
 * turn for it.
 */
__attribute__((noinline)) int bl_hold_drop_aged(__u32 n, __u64 now)
{
	__u32 zero = 0;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	const struct bl_due *due = bpf_map_lookup_elem(&hold_due, &zero);
	__u64 age = cfg && due ? bl_hold_age_limit(cfg, due) : 0;

	/*
	 * Under Fastpass frames wait while there is room: an arbiter that is away comes back, and
	 * it grants slots whether the peers are alive or not.
	 */
	if (age && cfg->policy == BL_POLICY_FASTPASS && !bl_numbers_low(due))
		return 0;
	return age ? bl_hold_drop_old(n, due->back_ns, age, now) : 0;
}

/**
 * bl_hold_schedule_scan - makes the pacer look again for frames of number @n that are too old,
 * though nothing else would. Called after the pacer's turn for it.
 */
__attribute__((noinline)) int bl_hold_schedule_scan(__u32 n, __u64 now)
{
	__u32 zero = 0;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	struct bl_due *due = bpf_map_lookup_elem(&hold_due, &zero);
	__u64 age = cfg && due ? bl_hold_age_limit(cfg, due) : 0;

	if (age && (bl_pl2_pending(n) || bl_number_held(n)))
		bl_due_lower(due, n, now + bl_hold_watch_ns(due, age, BL_HOLD_LOOK_NS));
	return 0;
}

#endif
