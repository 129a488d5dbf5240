/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on a host, the sender: frames that were sent and stay in their slots until they have arrived,
 * and the LOSS signals that report arrival. For flows with BL_TOP_F_RESEND.
 *
 * A slot belongs to the CPU that takes its word out of "top_kept" by compare-and-swap, so nothing
 * here is locked. The CPU that sends a frame again has taken the word out and puts it back. A LOSS
 * on another CPU that would free the slot meanwhile finds nothing, and the next LOSS finds it
 * again.
 *
 * Example: flow 3 has sent data frames 1 to 20 and keeps all of them. A LOSS reports up to 20,
 * missing 18: place 18 is marked to be sent again, and the slots of the other 19 are freed.
 *
 * Not here: when a frame counts as missing (core/top/top_loss_core.h). BPF side only.
 */
#ifndef BARLINE_HOST_TOP_KEEP_H
#define BARLINE_HOST_TOP_KEEP_H

#include "bpf/host/role.h"
#include "core/top/top_core.h"
#include "maps/top_maps.h"
#include "bpf/queue_util.h"
#include "bpf/host/dest.h"
#include "core/top/top_loss_core.h"

/* Sets bit @i of @bits; a full barrier. */
static __always_inline void bl_bit_set(__u64 *bits, __u32 i)
{
	__u64 was = __sync_fetch_and_or(bits, 1ULL << (i & 63));

	__asm__ volatile("" : : "r"(was));
}

/* Clears bit @i of @bits; a full barrier. Returns 1 if the bit was set. */
static __always_inline int bl_bit_clear(__u64 *bits, __u32 i)
{
	return __sync_fetch_and_and(bits, ~(1ULL << (i & 63))) >> (i & 63) & 1;
}

/* Adds @by to the number of frames that all flows keep. */
static __always_inline void bl_kept_add_count(__u64 by)
{
	__u32 zero = 0;
	struct bl_top_page *p = bpf_map_lookup_elem(&top_page, &zero);

	if (p)
		(void)__sync_fetch_and_add(&p->kept, by);
}

/* Frees the slot of a frame that the caller has taken out. */
static __always_inline void bl_kept_free_slot(__u32 entry)
{
	bl_slot_free(BL_RING_SLOT(entry));
	bl_kept_add_count(-1ULL);
}

/**
 * bl_top_keep - keeps the frame in @entry's slot, which was sent, or will be by the pacer, as data
 * frame @data of flow @n. Frees the slot instead if too many frames are kept already.
 * @push: 1: the pacer is to send it
 * @now: CLOCK_MONOTONIC, ns
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
	bl_kept_add_count(1);
	/*
	 * The place holds another frame only if two CPUs were here at once: nothing is sent while
	 * it is taken.
	 */
	if (was)
		bl_kept_free_slot(BL_KEPT_ENTRY(was));
	if (push)
		bl_bit_set(&k->push, i);
	return 0;
}

/*
 * Puts @word back into place @i after its frame was sent, or frees its slot if a later frame is
 * there by now.
 */
static __always_inline void bl_top_put_kept_back(struct bl_top_kept *k, __u32 i, __u64 word)
{
	if (__sync_val_compare_and_swap(&k->word[i & (BL_TOP_KEEP - 1)], 0, word))
		bl_kept_free_slot(BL_KEPT_ENTRY(word));
}

/* Takes the word out of place @i. Returns it, or 0 if the place is empty. */
static __always_inline __u64 bl_top_take_kept(struct bl_top_kept *k, __u32 i)
{
	__u64 word = BL_READ_ONCE(k->word[i & (BL_TOP_KEEP - 1)]);

	return word && __sync_val_compare_and_swap(&k->word[i & (BL_TOP_KEEP - 1)], word, 0) == word
		       ? word
		       : 0;
}

/** bl_top_missing - returns the frames of flow @n that are to be sent again. */
static __always_inline __u32 bl_top_missing(__u32 n)
{
	const struct bl_top_kept *k = bpf_map_lookup_elem(&top_kept, &n);

	return k ? (__u32)__builtin_popcountll(BL_READ_ONCE(k->marked)) : 0;
}

/**
 * bl_top_unkeep - frees all kept frames of flow @n, which is over or whose peer does not answer. A
 * frame that is being sent again at this moment comes back; it is freed when a newer frame takes
 * its place or the flow ends.
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
	/* No bpf_loop(): its callback would be one more function on Linux 6.1's stack. */
	for (i = 0; i < BL_TOP_KEEP; i++) {
		word = bl_top_take_kept(k, i);
		if (word)
			bl_kept_free_slot(BL_KEPT_ENTRY(word));
	}
	return 0;
}

/* ---- LOSS ---- */

/** struct bl_top_loss_scan - state while a LOSS is applied to the kept frames. */
struct bl_top_loss_scan {
	struct bl_top_kept *k; /* the flow's kept frames */
	__u64 missing;         /* bit i: data - i is missing */
	__u64 now;
	__u32 data;   /* last data frame that the LOSS describes */
	__u32 rtt_us; /* as the receiver measures it */
	__u32 asked;  /* frames that will be sent again */
	__u32 gone;   /* frames asked for that are not kept */
};

/* Marks data frame @l->data - @back to be sent again, or frees it because it arrived. */
static long bl_top_apply_loss(__u32 back, struct bl_top_loss_scan *l)
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
		bl_kept_free_slot(BL_KEPT_ENTRY(word));
	}
	return 0;
}

/** bl_top_loss - handles LOSS @m. Returns the reason. */
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
	/* See bl_due_scan(): what the callback changes must not look constant to the verifier. */
	x = y = l.data;
	BL_SEEN(y);
	l.asked = l.gone = x ^ y;
	bpf_spin_lock(&t->lock);
	why = bl_top_loss_validate(t, m->tag, m->seq, m->data, m->missing, m->rtt_us, l.now);
	bpf_spin_unlock(&t->lock);
	if (why != BL_R_NONE)
		return why;
	bpf_loop(BL_TOP_KEEP, bl_top_apply_loss, &l, 0);
	(void)__sync_fetch_and_add(&t->asked, l.asked);
	(void)__sync_fetch_and_add(&t->gone, l.gone);
	bl_count_n(BL_HC_INGRESS, BL_R_LOSS_GONE, l.gone);
	/* The pacer asks for tokens, unless some arrive. */
	if (l.asked && bl_due_lower(due, n, l.now))
		bl_pace_ring();
	return BL_R_LOSS;
}

/* Handles LOSS @m under a pin, so that the number stays this flow's. Returns the reason. */
static __always_inline int bl_top_loss_came(struct bl_top_msg *m)
{
	__u32 n = m->flow;
	struct bl_hold_dest *who = bpf_map_lookup_elem(&hold_macs, &n);
	int why;

	if (!who || !bl_dest_pin(who))
		return BL_R_LOSS_BAD;
	why = bl_top_loss(m);
	bl_number_unpin(n);
	return why;
}

#endif
