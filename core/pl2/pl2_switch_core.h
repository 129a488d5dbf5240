/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PL2 at the switch: promises of time on an input and an output (PL2 Algorithm 2), and the
 * accounting that makes every promise end.
 *
 * A promise is a number of byte times (core/length_core.h) from one input to one output, which form
 * a pair. It ends in one of three ways: its data arrives, the receiver releases it, or it lapses,
 * with time or when the host asks for its next burst. So granted = used + lapsed + released + what
 * is still promised, for each input, whatever is lost or dies.
 *
 * Example, two-counter without overlap, 1 Gbit/s (8 ns per byte): input 0 has 3076 bytes promised
 * and output 5 has 6152. An RSV of input 0 for 1538 bytes to output 5 is answered with 24608 ns at
 * the input and 49216 ns at the output, and the counters become 4614 and 7690. The host waits for
 * the longer of the two. Its frame of 1514 bytes takes 1538 off both. With joint, the answer is one
 * time for both, the maximum of the times at which they are free, and both are free after it. With
 * the bitmap it is the first slot that is free in both windows, which may lie between two bursts
 * that were promised before.
 *
 * Everything is under one lock (struct bl_rsv), which the caller holds. Nothing runs when a
 * promise's time is over, since XDP has no timer: each RSV checks its own pair and one other pair
 * of its output, in turn. So a promise ends at the latest when its output has had as many RSVs as
 * there are inputs. Until then it delays the output for as long as its bytes take, with every
 * allocator.
 */
#ifndef BARLINE_RESERVE_CORE_H
#define BARLINE_RESERVE_CORE_H

#include "maps/pl2_switch_abi.h"
#include "core/core.h"
#include "core/length_core.h"

/**
 * struct bl_rsv_grant - the answer to one RSV. Filled in by bl_rsv_ask().
 */
struct bl_rsv_grant {
	__u32 reason;      /* BL_R_RSV_GRANTED, _REPEATED, _REFUSED or _BAD */
	__u32 flags;       /* BL_GRT_PASSED or BL_GRT_REFUSED, or 0 */
	__u64 in_wait_ns;  /* from now to the slot at the input */
	__u64 out_wait_ns; /* from now to the slot at the output */
};

/**
 * bl_rsv_ns - how many ns @bytes take at a port's rate; rounded up, so that successive slots never
 * overlap.
 */
BL_CORE __u64 bl_rsv_ns(__u32 ns_q20, __u64 bytes)
{
	return (bytes * ns_q20 + (1 << 20) - 1) >> 20;
}

/**
 * bl_rsv_slots - whole slots that @bytes need; exact up to 2^22 bytes. Uses a multiplication, since
 * BPF divides at run time even by a constant.
 */
BL_CORE __u32 bl_rsv_slots(__u32 bytes)
{
	const __u64 inverse = ((1ULL << 32) + BL_RSV_SLOT_BYTES - 1) / BL_RSV_SLOT_BYTES;

	return (__u32)(((__u64)bytes + BL_RSV_SLOT_BYTES - 1) * inverse >> 32);
}

/**
 * bl_rsv_slot_at - the first slot of the bitmap that begins at @now or later; 0 with another
 * allocator. Separate, so that the division is done before the lock is taken.
 */
BL_CORE __u64 bl_rsv_slot_at(const struct bl_rsv_cfg *cfg, __u64 now)
{
	__u64 slot_ns = bl_rsv_ns(cfg->ns_q20, BL_RSV_SLOT_BYTES);

	return cfg->allocator == BL_ALLOC_BITMAP && slot_ns ? (now + slot_ns - 1) / slot_ns : 0;
}

/* ---- the bitmap ---- */

/*
 * A port that keeps its promises may have this much in its queue: two bursts overlap by a frame,
 * and a beacon comes in between.
 */
#define BL_RSV_BEHIND (2 * BL_RSV_SLOT_BYTES)

#define BL_RSV_STEPS  5
_Static_assert(BL_RSV_RUN_MAX == 1 << BL_RSV_STEPS, "each step doubles the runs");

/*
 * Makes @base the oldest word of the window; the words that are passed become free for later slots.
 */
BL_CORE void bl_rsv_slide(struct bl_rsv_side *s, __u64 base)
{
	__u64 d = base - s->base, from = s->base;
	__u32 i, words = BL_RSV_WORDS;

	if (!d)
		return;
	if (d > BL_RSV_WORDS)
		d = BL_RSV_WORDS;
	s->bits[from & (BL_RSV_WORDS - 1)] = 0; /* on a busy port, only this word is passed */
	s->base = base;
	if (d == 1)
		return;
	BL_OPAQUE(words);
	for (i = 0; i < words; i++)
		s->bits[(from + i) & (BL_RSV_WORDS - 1)] &= ~bl_mask_below(i, d);
}

/*
 * Two CPUs may take the lock in another order than they read the clock: one that is a few words
 * behind uses the window as it is. If it is further behind, the slot time has changed, and a new
 * window begins.
 */
BL_CORE __u64 bl_rsv_base(const struct bl_rsv_side *s, __u64 base)
{
	return s->base - base - 1 < BL_RSV_WORDS ? s->base : base;
}

/**
 * bl_rsv_run - the first run of @n (1 to BL_RSV_RUN_MAX) slots, not before slot @first, that is
 * free in both windows, whose oldest word is @from. Returns its first slot, or 0: none (slot 0 was
 * at boot).
 *
 * Each word is searched together with the next one. After r &= r >> 1 a bit stands for two free
 * slots, after r &= r >> 2 for four, and so on up to n: step k takes what is left of n, at most
 * 2^k. Most bursts are short, and most are found in the first word, so steps that are not needed
 * are skipped by branches.
 */
BL_CORE __u64 bl_rsv_run(const struct bl_rsv_side *in, const struct bl_rsv_side *out, __u64 from,
			 __u64 first, __u32 n)
{
	__u64 base = first >> 6, lo, hi, r, q, s;
	__u32 i, k, w = (__u32)base & (BL_RSV_WORDS - 1), words;

	if (base - from >= BL_RSV_WORDS)
		return 0;
	words = BL_RSV_WORDS - (__u32)(base - from);
	lo = ~(in->bits[w] | out->bits[w]) & ~0ULL << (first & 63);
	/*
	 * one or two slots within the first word: a run that crosses its end never begins earlier
	 */
	if (n <= 2) {
		r = lo & (lo >> (n - 1));
		if (r)
			return (base << 6) + bl_lowest(r);
	}
	BL_OPAQUE(words); /* prevents unrolling, and keeping all values on the stack */
	for (i = 0; i < BL_RSV_WORDS && i < words; i++) {
		w = (__u32)(base + i + 1) & (BL_RSV_WORDS - 1);
		hi = ~(in->bits[w] | out->bits[w]) & bl_mask_below(i, words - 1);
		r = lo;
		q = hi;
		/*
		 * Otherwise everything that follows from n is computed before the loop and kept on
		 * the stack.
		 */
		BL_OPAQUE(n);
#pragma GCC unroll 5
		for (k = 0; k < BL_RSV_STEPS; k++) {
			if (n <= 1U << k)
				break;
			s = n < 2U << k ? n - (1U << k) : 1U << k;
			r &= r >> s | q << 1 << (63 - s);
			q &= q >> s;
		}
		if (r)
			return ((base + i) << 6) + bl_lowest(r);
		lo = hi;
	}
	return 0;
}

/* Marks @n slots from @slot on as promised, or as free again, on both sides. */
BL_CORE void bl_rsv_mark(struct bl_rsv_side *in, struct bl_rsv_side *out, __u64 slot, __u32 n,
			 int promised)
{
	__u64 run = (1ULL << n) - 1, lo = run << (slot & 63), hi = run >> 1 >> (63 - (slot & 63));
	__u32 w = (__u32)(slot >> 6) & (BL_RSV_WORDS - 1), v = (w + 1) & (BL_RSV_WORDS - 1);

	if (promised) {
		in->bits[w] |= lo;
		out->bits[w] |= lo;
	} else {
		in->bits[w] &= ~lo;
		out->bits[w] &= ~lo;
	}
	if (!hi) /* most runs are short */
		return;
	if (promised) {
		in->bits[v] |= hi;
		out->bits[v] |= hi;
	} else {
		in->bits[v] &= ~hi;
		out->bits[v] &= ~hi;
	}
}

/* ---- policies that do not agree ---- */

/*
 * An input that has asked for nothing for this long has a host with another policy behind it.
 * Longer than a host with policy pl2 sends without an RSV, and short compared with what people and
 * TCP wait for.
 */
#define BL_RSV_APART_NS 20000000ULL

/** bl_rsv_asked - record that an RSV was received at @now. */
BL_CORE void bl_rsv_asked(struct bl_rsv_port *in, __u64 now)
{
	if (BL_READ_ONCE(in->asked_ns) < now)
		BL_WRITE_ONCE(in->asked_ns, now);
}

/**
 * bl_rsv_apart - whether data from this input passes without a promise: its host does not reserve,
 * and a rack whose hosts and switch disagree works as if there was no policy.
 */
BL_CORE int bl_rsv_apart(const struct bl_rsv_port *in, __u64 now)
{
	__u64 asked = BL_READ_ONCE(in->asked_ns);

	return !asked || (now > asked && now - asked > BL_RSV_APART_NS);
}

/* ---- the books ---- */

BL_CORE void bl_rsv_pair_take(struct bl_rsv_port *in, struct bl_rsv_port *out,
			      struct bl_rsv_pair *pair, __u32 bytes)
{
	pair->bytes -= bytes;
	if (pair->early > pair->bytes)
		pair->early = pair->bytes;
	in->in.bytes -= bytes;
	out->out.bytes -= bytes;
}

/*
 * Ends what is left of @pair's promise if @over is all ones, and does nothing if it is 0. Returns
 * the bytes that were left. Without branches: an RSV does this twice, and the outcome cannot be
 * predicted.
 */
BL_CORE __u32 bl_rsv_pair_end(struct bl_rsv_pair *pair, __u32 over)
{
	__u32 bytes = pair->bytes & over;

	pair->bytes -= bytes;
	pair->early &= ~over;
	pair->valid &= ~over;
	return bytes;
}

/** bl_rsv_lapsed - all ones if @pair's time is over, else 0. */
BL_CORE __u32 bl_rsv_lapsed(const struct bl_rsv_pair *pair, __u64 now)
{
	return (__u32)bl_mask_below(pair->lapse_ns, now);
}

/**
 * bl_rsv_renew - an RSV of @bytes with number @seq for @pair begins. Takes back what was promised
 * to @pair, and to @other, the pair of input @from with the same output, if their time is over.
 *
 * What is left of @pair's promise is taken back also if the RSV does not repeat the last one. A
 * host asks for its next burst when it is done with the one before, and on a FIFO link the RSV
 * arrives after all frames of that burst, so what is left of it will not arrive. Without this, a
 * pair that is asked for all the time would never get rid of what was once lost.
 *
 * @from may be @in, and @other may be @pair. Returns the bytes taken back. Counters that both
 * concern are written once, since a value that was just stored is slow to load again.
 */
BL_CORE __u32 bl_rsv_renew(struct bl_rsv_port *in, struct bl_rsv_port *out,
			   struct bl_rsv_pair *pair, struct bl_rsv_port *from,
			   struct bl_rsv_pair *other, __u32 bytes, __u32 seq, __u64 now)
{
	__u32 theirs = bl_rsv_pair_end(other, bl_rsv_lapsed(other, now)), own;

	own = bl_rsv_pair_end(pair, bl_rsv_lapsed(pair, now) |
					    (__u32)bl_mask_below(0, (pair->seq ^ seq) |
									    (pair->asked ^ bytes)));
	from->in.bytes -= theirs;
	from->lapsed += theirs;
	in->lapsed += own;
	in->in.bytes -= own;
	out->out.bytes -= (__u64)theirs + own;
	return theirs + own;
}

/**
 * bl_rsv_data - account for a frame of @len bytes from @in to @out. @early: 1 if it is unsolicited.
 * The NIC that sent it may have padded it since its bytes were asked for; bl_wire_bytes() counts
 * the same on both sides.
 * Returns BL_R_NONE if the frame may pass; else the reason to drop it, and nothing has changed.
 */
BL_CORE enum bl_reason bl_rsv_data(struct bl_rsv_port *in, struct bl_rsv_port *out,
				   struct bl_rsv_pair *pair, __u32 len, int early)
{
	__u32 bytes = bl_wire_bytes(len);

	if (early) {
		if (pair->early < bytes)
			return BL_R_EARLY_REFUSED;
		pair->early -= bytes;
	} else if (pair->bytes < bytes) {
		return BL_R_UNRESERVED;
	}
	bl_rsv_pair_take(in, out, pair, bytes);
	in->used += bytes;
	return BL_R_NONE;
}

/**
 * bl_rsv_release - the receiver on @out says that @bytes of the burst that was promised with number
 * @seq did not arrive from @in. Refused if another burst was promised meanwhile. The bitmap's slots
 * become free if nothing of the promise is left and they lie in the future.
 */
BL_CORE enum bl_reason bl_rsv_release(const struct bl_rsv_cfg *cfg, struct bl_rsv_port *in,
				      struct bl_rsv_port *out, struct bl_rsv_pair *pair,
				      __u32 bytes, __u32 seq, __u64 now)
{
	__u64 slot_ns = bl_rsv_ns(cfg->ns_q20, BL_RSV_SLOT_BYTES), slot;

	if (!bytes || !pair->bytes || pair->seq != seq)
		return BL_R_RELEASE_BAD;
	if (bytes > pair->bytes)
		bytes = pair->bytes;
	bl_rsv_pair_take(in, out, pair, bytes);
	in->released += bytes;
	if (pair->bytes)
		return BL_R_RELEASED;
	pair->valid = 0;
	if (pair->slots && pair->slots <= BL_RSV_RUN_MAX && pair->in_ns >= now && slot_ns) {
		slot = pair->in_ns / slot_ns;
		if (slot * slot_ns == pair->in_ns) { /* else the rate has changed since */
			bl_rsv_mark(&in->in, &out->out, slot, pair->slots, 0);
		}
	}
	pair->slots = 0;
	return BL_R_RELEASED;
}

/** bl_rsv_bytes_beyond - @bytes less @overlap; 0 if @bytes is less. */
BL_CORE __u64 bl_rsv_bytes_beyond(__u64 bytes, __u32 overlap)
{
	return bl_max64(bytes, overlap) - overlap;
}

/**
 * bl_rsv_ask - answer an RSV of @bytes from @in to @out.
 * @early: 1: the burst follows at once.
 * @queued: byte times of the frames in the output's queue.
 * @slot: bl_rsv_slot_at() of now.
 * @g: filled in with the answer.
 *
 * The waits are those before this promise is counted, as in the paper; those of two-counter are
 * shorter by @cfg's overlap. An RSV that is refused changes nothing.
 *
 * In the paper's switch, data leaves when it arrives, since the chip sends at the rate that it
 * promises. Here a metered port is drained by a thread that may stand still for milliseconds, and
 * it also carries beacons and GRTs, which are not reserved. The data in its queue has used its
 * promise and is yet to be sent, so it counts like a promise. And a queue means that the port is
 * behind its promises: a new slot then comes after all of them, so that the port catches up; joint,
 * which fills no gaps, always does so. Without this, unsolicited bursts, which hold no promise back
 * for longer than they take to arrive, filled the queue (7 to 1: 16 % of frames dropped), and with
 * joint 24 frames stayed in it.
 */
BL_CORE void bl_rsv_ask(const struct bl_rsv_cfg *cfg, struct bl_rsv_port *in,
			struct bl_rsv_port *out, struct bl_rsv_pair *pair, __u32 bytes, __u32 seq,
			int early, __u32 queued, __u64 now, __u64 slot, struct bl_rsv_grant *g)
{
	__u64 start = 0, wait, slot_ns = 0, base, due = out->out.bytes + queued;
	__u32 n = 0;

	if (pair->valid && pair->seq == seq && pair->asked == bytes && now <= pair->lapse_ns) {
		g->reason = BL_R_RSV_REPEATED;
		g->flags = pair->flags;
		g->in_wait_ns = pair->in_ns > now ? pair->in_ns - now : 0;
		g->out_wait_ns = pair->out_ns > now ? pair->out_ns - now : 0;
		return;
	}
	g->flags = BL_GRT_REFUSED;
	g->in_wait_ns = g->out_wait_ns = 0;
	if (!bytes || bytes > cfg->limit_bytes) {
		g->reason = BL_R_RSV_BAD;
		in->refused++;
		return;
	}
	g->reason = BL_R_RSV_REFUSED;
	switch (cfg->allocator) {
	case BL_ALLOC_JOINT:
		start = bl_max_mask(now + bl_rsv_ns(cfg->ns_q20, due),
				    bl_max_mask(in->in.free_ns, out->out.free_ns));
		g->in_wait_ns = g->out_wait_ns = start - now;
		break;
	case BL_ALLOC_BITMAP:
		slot_ns = bl_rsv_ns(cfg->ns_q20, BL_RSV_SLOT_BYTES);
		n = bl_rsv_slots(bytes);
		if (!slot || n > BL_RSV_RUN_MAX) {
			in->refused++;
			return;
		}
		base = bl_rsv_base(&out->out, bl_rsv_base(&in->in, slot >> 6));
		if (queued)
			slot += bl_rsv_slots(queued > BL_RSV_BEHIND
						     ? (__u32)bl_min64(due, BL_RSV_PAIR_MAX >> 8)
						     : queued);
		slot = bl_max64(slot, base << 6);
		bl_rsv_slide(&in->in, base);
		bl_rsv_slide(&out->out, base);
		slot = bl_rsv_run(&in->in, &out->out, base, slot, n);
		if (!slot) {
			in->refused++;
			return;
		}
		g->in_wait_ns = g->out_wait_ns = slot * slot_ns - now;
		break;
	default:
		g->in_wait_ns = bl_rsv_ns(cfg->ns_q20,
					  bl_rsv_bytes_beyond(in->in.bytes, cfg->overlap_bytes));
		g->out_wait_ns =
			bl_rsv_ns(cfg->ns_q20, bl_rsv_bytes_beyond(due, cfg->overlap_bytes));
		break;
	}
	wait = bl_max_mask(g->in_wait_ns, g->out_wait_ns);
	if (wait > cfg->far_ns || wait > 0xffffffff ||
	    (__u64)pair->bytes + bytes > BL_RSV_PAIR_MAX) {
		g->in_wait_ns = g->out_wait_ns = 0;
		in->refused++;
		return;
	}
	if (cfg->allocator == BL_ALLOC_JOINT) {
		in->in.free_ns = out->out.free_ns = start + bl_rsv_ns(cfg->ns_q20, bytes);
	} else if (n) {
		bl_rsv_mark(&in->in, &out->out, slot, n, 1);
	}
	g->reason = BL_R_RSV_GRANTED;
	g->flags = 0;
	if (early && wait <= cfg->refuse_ns) {
		g->flags = BL_GRT_PASSED;
		pair->early += bytes;
	}
	start = now + wait + bl_rsv_ns(cfg->ns_q20, bytes) + cfg->lapse_ns;
	pair->lapse_ns = pair->bytes ? bl_max64(pair->lapse_ns, start) : start;
	pair->bytes += bytes;
	pair->seq = seq;
	pair->asked = bytes;
	pair->flags = (__u8)g->flags;
	pair->valid = 1;
	pair->slots = (__u8)n;
	pair->in_ns = now + g->in_wait_ns;
	pair->out_ns = now + g->out_wait_ns;
	in->in.bytes += bytes;
	out->out.bytes += bytes;
	in->granted += bytes;
	in->grants++;
}

#endif
