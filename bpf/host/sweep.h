/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the pacer of a host does about numbers that are of no use: frames that waited too long are
 * dropped, and numbers that nobody uses are taken back (dest_core.h). All of it runs in the pacer's
 * turns, so what only the pacer writes cannot change meanwhile. BPF side only.
 */
#ifndef BARLINE_HOST_SWEEP_H
#define BARLINE_HOST_SWEEP_H

#include "dest.h"
#include "fastpass.h"
#include "pl2.h"
#include "top_keep.h"

#define BL_SWEEP_STEP 16 /* numbers that one turn looks at */
/* who waits for an answer is looked at no more often for its age */
#define BL_HOLD_LOOK_NS (BL_HOLD_AGE_NS / 16)
#define BL_SWEEP_NS     2000000ULL /* from one look at all of them to the next */

/**
 * struct bl_hold_sweep - for the callbacks. @from: first number less 1; or key of a queue. @age:
 * that a frame may have. @dropped: frames.
 */
struct bl_hold_sweep {
	__u64 now;
	__u64 age;
	__u32 from;
	__u32 dropped;
};

/* ---- numbers ---- */

/*
 * What PL2 and Fastpass remember of a destination is nothing to the number's next owner. PL2's
 * sequence numbers go on.
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
		/* nothing of it is under way */
		f->used = BL_FP_WANTED(BL_READ_ONCE(f->want)) - f->idle;
		f->room = 0;
	}
}

/**
 * bl_number_free - number @n, closed and LEAVING, is for others if nobody is inside any more and
 * the daemon has forgotten its owner; else the next look sees to it.
 */
__attribute__((noinline)) int bl_number_free(__u32 n)
{
	__u32 zero = 0;
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);
	struct bl_fp_dest *f = bpf_map_lookup_elem(&fp_dests, &n);
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	struct bl_due *due = bpf_map_lookup_elem(&hold_due, &zero);

	if (!d || !cfg || !due || !bl_dest_empty(d) || bl_held(n))
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
		/* since Linux 6.16 the map's lock may give up: later */
		BL_WRITE_ONCE(d->used, BL_DEST_LEAVING);
		return 0;
	}
	(void)__sync_fetch_and_add(&due->spare, 1);
	return 1;
}

/** bl_number_leave - number @n, closed, has been taken out of its hash. */
static __always_inline void bl_number_leave(struct bl_hold_dest *d, __u32 n)
{
	BL_WRITE_ONCE(d->used, BL_DEST_LEAVING);
	bl_number_free(n);
}

/*
 * Is nothing held for destination @n, and nothing under way? Before it is closed, and once more
 * after.
 */
static __always_inline int bl_number_idle(__u32 n)
{
	const struct bl_pl2_coming *c = bpf_map_lookup_elem(&pl2_coming, &n);
	const struct bl_pl2_dest *d = bpf_map_lookup_elem(&pl2_dests, &n);

	if (!c || !d || BL_READ_ONCE(c->bytes) || c->release || d->n ||
	    BL_PL2_STATE(BL_READ_ONCE(d->word)) != BL_PL2_IDLE)
		return 0;
	return !bl_held(n);
}

/** bl_number_retire - destination @n has not been used for a while: its number is for others. */
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
		bl_dest_open(d); /* somebody has been in since the first look */
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

static long bl_sweep_one(__u32 i, struct bl_hold_sweep *s)
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
 * bl_number_sweep - few numbers are left: the pacer looks at some, whether they may be had, and
 * says when it goes on.
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
		bpf_loop(BL_SWEEP_STEP, bl_sweep_one, &s, 0);
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

/* ---- frames that wait in vain ---- */

/* Drops the oldest frame of queue s->key if it has waited too long. */
static long bl_age_one(__u32 i, struct bl_hold_sweep *s)
{
	__u32 key = s->from, entry = (__u32)bl_queue_peek(key);

	if (!entry || bl_slot_came(BL_RING_SLOT(entry)) + s->age > s->now)
		return 1;
	if ((__u32)bl_queue_get_if(key, entry) == entry) {
		bl_slot_free(BL_RING_SLOT(entry));
		s->dropped++;
	}
	return 0;
}

/*
 * Of a burst in hand no frame has left for so long. What comes in answer to its RSV finds IDLE, or
 * another number.
 */
static __always_inline __u32 bl_age_burst(__u32 n, __u64 age, __u64 now)
{
	struct bl_pl2_dest *d = bpf_map_lookup_elem(&pl2_dests, &n);
	__u32 dropped;

	if (!d || !d->n || bl_slot_came(BL_RING_SLOT(d->entry[0])) + age > now)
		return 0;
	dropped = d->n > d->sent ? d->n - d->sent : 0;
	bl_pl2_free(d);
	return dropped;
}

/**
 * bl_hold_drop_old - nothing has left number @n's queues for a while, in which the pacer was there,
 * since @back: what has waited longer than it may is dropped, and counted.
 */
__attribute__((noinline)) int bl_hold_drop_old(__u32 n, __u64 back, __u64 age, __u64 now)
{
	struct bl_hold_sweep s = { .now = now, .age = age };
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);
	__u32 x, y, dropped;

	if (!d || !bl_hold_expired(back, d->left_ns, age, now))
		return 0;
	/* see bl_due_scan(): what the callback changes must not look constant */
	x = y = (__u32)now;
	BL_SEEN(y);
	s.dropped = x ^ y;
	s.from = BL_HOLD_QUEUE(n, 0);
	bpf_loop(BL_RING, bl_age_one, &s, 0);
	s.from = BL_HOLD_QUEUE(n, 1);
	bpf_loop(BL_RING, bl_age_one, &s, 0);
	if (d->kind == BL_DEST_FLOW)
		bl_top_unkeep(n); /* counted as sent */
	dropped = s.dropped + bl_age_burst(n, age, now);
	bl_count_n(BL_HC_PACE, BL_R_HELD_LONG, dropped);
	return (int)dropped;
}

/* How long a frame may wait under the policy that there is; 0: for ever, since none does. */
static __always_inline __u64 bl_hold_age_now(const struct bl_hold_cfg *cfg,
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

/** bl_hold_age_of - before the pacer's turn for number @n. */
__attribute__((noinline)) int bl_hold_age_of(__u32 n, __u64 now)
{
	__u32 zero = 0;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	const struct bl_due *due = bpf_map_lookup_elem(&hold_due, &zero);
	__u64 age = cfg && due ? bl_hold_age_now(cfg, due) : 0;

	/*
	 * an arbiter that is away comes back, and it gives slots whether peers live or not: frames
	 * wait while there is room
	 */
	if (age && cfg->policy == BL_POLICY_FASTPASS && !bl_numbers_low(due))
		return 0;
	return age ? bl_hold_drop_old(n, due->back_ns, age, now) : 0;
}

/**
 * bl_hold_scan - after it: the pacer looks again in time, though nothing else would make it look.
 */
__attribute__((noinline)) int bl_hold_scan(__u32 n, __u64 now)
{
	__u32 zero = 0;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	struct bl_due *due = bpf_map_lookup_elem(&hold_due, &zero);
	__u64 age = cfg && due ? bl_hold_age_now(cfg, due) : 0;

	if (age && (bl_pl2_pending(n) || bl_held(n)))
		bl_due_lower(due, n, now + bl_hold_watch_ns(due, age, BL_HOLD_LOOK_NS));
	return 0;
}

#endif
