/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on a host, the sender: frames that were sent and stay in their slots until they have come,
 * and the LOSS signals that say so. For flows with BL_TOP_F_RESEND. BPF side only; see
 * bpf/host/top.h.
 *
 * A slot belongs to whoever takes its word out of "top_kept" by compare-and-swap, so nothing here
 * is locked: the CPU that sends a frame again has taken it out and puts it back, a LOSS on another
 * CPU that wants to give it to others meanwhile finds nothing, and the next LOSS finds it again.
 */
#ifndef BARLINE_HOST_TOP_KEEP_H
#define BARLINE_HOST_TOP_KEEP_H

#include "maps/top_maps.h"
#include "dest.h"
#include "bpf/queue_util.h"
#include "core/top/top_loss_core.h"

static __always_inline void bl_bit_set(__u64 *bits, __u32 i)
{
	__u64 was = __sync_fetch_and_or(bits, 1ULL << (i & 63));

	__asm__ volatile("" : : "r"(was));
}

/* Returns 1 if it was set. */
static __always_inline int bl_bit_clear(__u64 *bits, __u32 i)
{
	return __sync_fetch_and_and(bits, ~(1ULL << (i & 63))) >> (i & 63) & 1;
}

static __always_inline void bl_kept_count(__u64 by)
{
	__u32 zero = 0;
	struct bl_top_page *p = bpf_map_lookup_elem(&top_page, &zero);

	if (p)
		(void)__sync_fetch_and_add(&p->kept, by);
}

/* A frame that the caller has taken out, and nobody needs any more. */
static __always_inline void bl_kept_drop(__u32 entry)
{
	bl_slot_free(BL_RING_SLOT(entry));
	bl_kept_count(-1ULL);
}

/**
 * bl_top_keep - frame @data of flow @n was sent, or will be by the pacer (@push), from the slot of
 * @entry, which goes into the keeping.
 */
__attribute__((noinline)) int bl_top_keep(__u32 n, __u32 data, __u32 entry, __u32 push, __u64 now)
{
	__u32 zero = 0, i = BL_KEPT_PLACE(data);
	struct bl_top_kept *k = bpf_map_lookup_elem(&top_kept, &n);
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	const struct bl_top_page *p = bpf_map_lookup_elem(&top_page, &zero);
	__u64 was;

	if (!k || !c || !p ||
	    (!push && !BL_READ_ONCE(k->word[i]) && BL_READ_ONCE(p->kept) >= c->keep_max)) {
		bl_slot_free(BL_RING_SLOT(entry));
		bl_count(BL_HC_INGRESS, BL_R_NOT_KEPT);
		return 0;
	}
	BL_WRITE_ONCE(k->at[i], bl_kept_at(now, 0));
	bl_bit_clear(&k->marked, i);
	was = __sync_lock_test_and_set(&k->word[i], bl_kept_word(data, entry));
	bl_kept_count(1);
	if (was)
		bl_kept_drop(BL_KEPT_ENTRY(
			was)); /* two CPUs at once: else nothing is sent while it is there */
	if (push)
		bl_bit_set(&k->push, i);
	return 0;
}

/*
 * The frame in place @i was taken out and sent: it goes back, unless a later one is there by now.
 */
static __always_inline void bl_top_put_back(struct bl_top_kept *k, __u32 i, __u64 word)
{
	if (__sync_val_compare_and_swap(&k->word[i & (BL_TOP_KEEP - 1)], 0, word))
		bl_kept_drop(BL_KEPT_ENTRY(word));
}

/* What @i's place keeps, which is the caller's now; 0: nothing. */
static __always_inline __u64 bl_top_take_out(struct bl_top_kept *k, __u32 i)
{
	__u64 word = BL_READ_ONCE(k->word[i & (BL_TOP_KEEP - 1)]);

	return word && __sync_val_compare_and_swap(&k->word[i & (BL_TOP_KEEP - 1)], word, 0) == word
		       ? word
		       : 0;
}

/** bl_top_missing - frames of flow @n that shall be sent again. */
static __always_inline __u32 bl_top_missing(__u32 n)
{
	const struct bl_top_kept *k = bpf_map_lookup_elem(&top_kept, &n);

	return k ? (__u32)__builtin_popcountll(BL_READ_ONCE(k->marked)) : 0;
}

/**
 * bl_top_unkeep - flow @n is over, or its peer does not answer. What is being sent again at this
 * moment comes back, and is over when a newer frame takes its place or the flow ends.
 */
__attribute__((noinline)) int bl_top_unkeep(__u32 n)
{
	struct bl_top_kept *k = bpf_map_lookup_elem(&top_kept, &n);
	__u64 word;
	__u32 i;

	if (!k)
		return 0;
	(void)__sync_lock_test_and_set(&k->marked, 0);
	(void)__sync_lock_test_and_set(&k->push, 0);
	/* no bpf_loop(): its callback would be one function more on Linux 6.1's stack */
	for (i = 0; i < BL_TOP_KEEP; i++) {
		word = bl_top_take_out(k, i);
		if (word)
			bl_kept_drop(BL_KEPT_ENTRY(word));
	}
	return 0;
}

/* ---- LOSS ---- */

struct bl_top_loss_scan {
	struct bl_top_kept *k;
	__u64 missing;
	__u64 now;
	__u32 data;
	__u32 rtt_us;
	__u32 asked;
	__u32 gone;
};

static long bl_top_loss_one(__u32 back, struct bl_top_loss_scan *l)
{
	__u32 data = l->data - back, i = BL_KEPT_PLACE(data);
	struct bl_top_kept *k = l->k;
	__u64 word;

	if (!k)
		return 1;
	word = BL_READ_ONCE(k->word[i]);
	if (l->missing >> (back & 63) & 1) {
		if (!word || BL_KEPT_NUMBER(word) != data) {
			l->gone++;
		} else if (bl_kept_may(BL_READ_ONCE(k->at[i]), l->rtt_us, l->now)) {
			bl_bit_set(&k->marked, i);
			l->asked++;
		}
	} else if (word && BL_KEPT_NUMBER(word) == data &&
		   __sync_val_compare_and_swap(&k->word[i], word, 0) == word) {
		bl_bit_clear(&k->marked, i);
		bl_kept_drop(BL_KEPT_ENTRY(word));
	}
	return 0;
}

/** bl_top_loss - LOSS @m came. Returns the reason. */
__attribute__((noinline)) int bl_top_loss(struct bl_top_msg *m)
{
	__u32 zero = 0, n, x, y;
	struct bl_due *due = bpf_map_lookup_elem(&hold_due, &zero);
	struct bl_top_loss_scan l = {};
	enum bl_reason why;
	struct bl_top_tx *t;

	if (!m || !due)
		return BL_R_LOSS_BAD;
	n = m->flow;
	t = bpf_map_lookup_elem(&top_tx, &n);
	l.k = bpf_map_lookup_elem(&top_kept, &n);
	if (!n || !t || !l.k)
		return BL_R_LOSS_BAD;
	l.now = bpf_ktime_get_ns();
	l.missing = m->missing;
	l.data = m->data;
	l.rtt_us = m->rtt_us;
	/* see bl_due_scan(): what the callback changes must not look constant */
	x = y = l.data;
	BL_SEEN(y);
	l.asked = l.gone = x ^ y;
	bpf_spin_lock(&t->lock);
	why = bl_top_loss_validate(t, m->tag, m->seq, m->data, m->missing, m->rtt_us, l.now);
	bpf_spin_unlock(&t->lock);
	if (why != BL_R_NONE)
		return why;
	bpf_loop(BL_TOP_KEEP, bl_top_loss_one, &l, 0);
	(void)__sync_fetch_and_add(&t->asked, l.asked);
	(void)__sync_fetch_and_add(&t->gone, l.gone);
	bl_count_n(BL_HC_INGRESS, BL_R_LOSS_GONE, l.gone);
	/* the pacer asks for tokens, unless some come */
	if (l.asked && bl_due_lower(due, n, l.now))
		bl_pace_ring();
	return BL_R_LOSS;
}

/* The same, while the number stays that flow's. */
static __always_inline int bl_top_loss_came(struct bl_top_msg *m)
{
	__u32 n = m->flow;
	struct bl_hold_dest *who = bpf_map_lookup_elem(&hold_macs, &n);
	int why;

	if (!who || !bl_dest_pin(who))
		return BL_R_LOSS_BAD;
	why = bl_top_loss(m);
	bl_unpin(n);
	return why;
}

#endif
