/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on a host: what the sender and the receiver of a flow share. Parsed messages, the priority
 * classes of flows, and the keys that flows are found by. The receiver's rules are in
 * core/top/top_rx_core.h, the sender's in core/top/top_tx_core.h, and the repair of losses in
 * core/top/top_loss_core.h.
 *
 * Priority. A flow of x frames belongs to class floor(K log_p(a x + b)) (TOP section 3.2). With
 * K = 6, p = 10000, a = 1 and b = 0, class 1 begins at p^(1/6), which is 5 frames, class 2 at 22
 * frames and class 5 at 2155 frames. User space computes these thresholds
 * (loader/admission/top_host.c), or learns thresholds that give each class the same load
 * (core/top/top_classes_core.h). This file only compares flows with them.
 *
 * This file reads no clock and no map, and takes no lock: the caller holds the lock of the flow.
 */
#ifndef BARLINE_TOP_CORE_H
#define BARLINE_TOP_CORE_H

#include "maps/top_host_abi.h"
#include "core/core.h"
#include "core/wire_core.h"

#define BL_TOP_MSS 1460 /* bytes of a flow that a full frame carries */
/* A flow may bring this much, and an eighth of its announced size, more than it announced. */
#define BL_TOP_BEYOND_BYTES 16384

/**
 * struct bl_top_msg - a parsed token or signal, in host order. A field that the message does not
 * have is 0. Filled in by bl_top_parse().
 */
struct bl_top_msg {
	__u8 op;           /* enum bl_top_opcode */
	__u8 cls;          /* TOKEN: class */
	__u16 flow;        /* number of the flow at the sender of data */
	__u32 seq;         /* as in struct bl_top_hdr */
	__u32 tag;         /* as in struct bl_top_hdr */
	__u32 frames;      /* SYNC: frames that wait */
	__u64 ts;          /* 48 bits of bus time */
	__u64 bytes;       /* SYNC, FIN: size of the flow */
	__u32 deadline_us; /* SYNC */
	__u32 coflow;      /* SYNC */
	__u64 missing;     /* LOSS: bit k: frame @data - k is missing */
	__u32 data;        /* SYNC, FIN, LOSS, STOP: number of a data frame */
	__u32 rtt_us;      /* LOSS */
};

/* ---- classes ---- */

/** bl_top_frames - full frames that @bytes of a flow need. */
BL_CORE __u64 bl_top_frames(__u64 bytes)
{
	return (bytes + BL_TOP_MSS - 1) / BL_TOP_MSS;
}

/** bl_top_payload - the most bytes of a flow that frames of @len bytes in total can carry. */
BL_CORE __u64 bl_top_payload(__u64 len)
{
	return len - (len >> 5); /* headers are 54 of 1514 bytes or more */
}

/**
 * bl_top_class - the class of @frames frames. @limit: BL_TOP_CLASSES - 1 thresholds, as in
 * bl_top_cfg.
 */
BL_CORE __u32 bl_top_class(const __u64 *limit, __u64 frames)
{
	__u32 i, cls = 0, n = BL_TOP_CLASSES - 1;

	BL_OPAQUE(n);
	for (i = 0; i < BL_TOP_CLASSES - 1 && i < n; i++)
		cls += frames >= BL_READ_ONCE(limit[i]);
	return cls;
}

/**
 * bl_top_beyond_size - whether a flow has brought more than its size. @bytes: announced size, or 0
 * if none was; @served: bytes of frames received. Headers, and what TCP sends twice, are allowed
 * for.
 */
BL_CORE int bl_top_beyond_size(__u64 bytes, __u64 served)
{
	return bl_top_payload(served) > bytes + bytes / 8 + BL_TOP_BEYOND_BYTES;
}

/** bl_top_bytes_left - what is left of a flow with an announced size of @bytes; at least 1. */
BL_CORE __u64 bl_top_bytes_left(__u64 bytes, __u64 served)
{
	served = bl_top_payload(served);
	return served < bytes ? bytes - served : 1;
}

/**
 * bl_top_class_of - the class of an inbound flow at @now.
 * @limit: thresholds, those of @c or the learnt ones.
 * @coflow: bytes of its coflow.
 *
 * A flow without a deadline, or that has missed it, comes last where the objective is the deadline.
 * A flow that brings more than it announced counts as one of unknown size, whose class follows from
 * what was received: announcing too little gains nothing, and announcing too much harms only the
 * flow itself. A flow that announces a class (SO_PRIORITY) has that class in any case.
 */
BL_CORE __u32 bl_top_class_of(const struct bl_top_rx *r, const struct bl_top_cfg *c,
			      const __u64 *limit, __u64 coflow, __u64 now)
{
	__u64 bytes = BL_READ_ONCE(r->bytes), served = BL_READ_ONCE(r->served),
	      by = BL_READ_ONCE(r->deadline_ns);

	if (c->objective == BL_TOP_BY_DEADLINE) {
		if (!by || by <= now || !c->slot_ns)
			return c->levels - 1;
		return bl_top_class(limit, (by - now) / c->slot_ns);
	}
	if (c->objective == BL_TOP_BY_COFLOW && r->coflow)
		bytes = coflow;
	else if (c->objective != BL_TOP_BY_LAS && bytes >= BL_TOP_SAYS_CLASS)
		return (bytes & 7) < c->levels ? bytes & 7 : c->levels - 1;
	else if (c->objective == BL_TOP_BY_LAS || !bytes || bl_top_beyond_size(bytes, served))
		bytes = served;
	else if (c->objective == BL_TOP_BY_REMAINING)
		bytes = bl_top_bytes_left(bytes, served);
	return bl_top_class(limit, bl_top_frames(bytes));
}

/**
 * bl_top_bucket - the bucket of bl_top_page.sizes for a flow of @frames frames, 1 or more: two
 * buckets per power of two. 1 is in bucket 0, 2 in 2, 3 in 3, 4 and 5 in 4, 6 and 7 in 5, 8 to 11
 * in 6.
 */
BL_CORE __u32 bl_top_bucket(__u64 frames)
{
	__u32 v = frames >> 32 ? ~0U : (__u32)frames, k = 0, half;

	half = v;
	if (v >> 16)
		k += 16, v >>= 16;
	if (v >> 8)
		k += 8, v >>= 8;
	if (v >> 4)
		k += 4, v >>= 4;
	if (v >> 2)
		k += 2, v >>= 2;
	if (v >> 1)
		k += 1;
	half = k ? half >> (k - 1) & 1 : 0;
	return (2 * k + half) & (BL_TOP_SIZES - 1);
}

/**
 * bl_top_learn_flow - count a flow that has ended by @served, the bytes received, and not by the
 * size it announced.
 */
BL_CORE void bl_top_learn_flow(struct bl_top_page *p, __u64 served)
{
	__u64 frames = bl_top_frames(bl_top_payload(served));
	__u32 b = bl_top_bucket(frames);

	if (frames && b < BL_TOP_SIZES)
		BL_WRITE_ONCE(p->sizes[b], p->sizes[b] + 1);
}

/* ---- messages ---- */

/**
 * bl_top_parse - parse the TOP header at @h into @m. @len: bytes of UDP payload; @end: end of the
 * readable part. Returns 0, or -1 if the frame is too short, of another version or of an unknown
 * opcode.
 */
BL_CORE int bl_top_parse(const struct bl_top_hdr *h, const void *end, __u32 len,
			 struct bl_top_msg *m)
{
	if ((const void *)(h + 1) > end || len < sizeof(*h) || h->opcode >> 4 != BL_TOP_VERSION)
		return -1;
	m->op = h->opcode & 15;
	m->cls = h->cls;
	m->flow = BL_BE16(h->flow);
	m->seq = BL_HALVES(h, seq);
	m->tag = BL_HALVES(h, tag);
	m->ts = bl_get48(h->ts);
	m->bytes = 0;
	m->frames = m->deadline_us = m->coflow = m->data = m->rtt_us = 0;
	m->missing = 0;
	if (m->op == BL_TOP_SYNC) {
		const struct bl_top_sync *s = (const void *)(h + 1);

		if ((const void *)(s + 1) > end || len < sizeof(*h) + sizeof(*s))
			return -1;
		m->bytes = bl_get48(s->bytes);
		m->frames = BL_HALVES(s, frames);
		m->deadline_us = BL_HALVES(s, deadline);
		m->coflow = BL_HALVES(s, coflow);
		m->data = BL_HALVES(s, data);
	} else if (m->op == BL_TOP_FIN) {
		const struct bl_top_fin *f = (const void *)(h + 1);

		if ((const void *)(f + 1) > end || len < sizeof(*h) + sizeof(*f))
			return -1;
		m->bytes = bl_get48(f->bytes);
		m->data = BL_HALVES(f, data);
	} else if (m->op == BL_TOP_LOSS) {
		const struct bl_top_loss *l = (const void *)(h + 1);

		if ((const void *)(l + 1) > end || len < sizeof(*h) + sizeof(*l))
			return -1;
		m->data = BL_HALVES(l, data);
		m->missing = (__u64)BL_HALVES(l, missing_hi) << 32 | BL_HALVES(l, missing_lo);
		m->rtt_us = BL_HALVES(l, rtt);
	} else if (m->op == BL_TOP_STOP) {
		const struct bl_top_stop *s = (const void *)(h + 1);

		if ((const void *)(s + 1) <= end && len >= sizeof(*h) + sizeof(*s))
			m->data = BL_HALVES(s, data);
	}
	return m->op && m->op < BL_TOP_OPCODE_LIMIT ? 0 : -1;
}

/* ---- keys ---- */

/** bl_top_key_hash - a 32-bit hash of a flow's key. */
BL_CORE __u32 bl_top_key_hash(const struct bl_top_key *k)
{
	const __u64 *w = (const __u64 *)(const void *)k;
	__u64 h = 0;
	__u32 i;

	for (i = 0; i < sizeof(*k) / 8; i++)
		h = (h ^ w[i]) * 0x9E3779B97F4A7C15ULL, h ^= h >> 29;
	h *= 0xBF58476D1CE4E5B9ULL;
	return (__u32)(h >> 32);
}

_Static_assert(BL_TOP_HINTS == 1 << 10, "the upper bits of the mix");
/** bl_top_hint_hash - index of the key's hint in "top_hints". */
BL_CORE __u32 bl_top_hint_hash(const struct bl_top_key *k)
{
	return bl_top_key_hash(k) >> 22;
}

/**
 * bl_top_rule - fill in @h from the first rule that matches. Returns 1, or 0 if no rule matches.
 */
BL_CORE int bl_top_rule(const struct bl_top_cfg *c, const struct bl_top_key *k,
			struct bl_top_hint *h)
{
	__u32 i, n = BL_TOP_RULES;

	BL_OPAQUE(n);
	for (i = 0; i < BL_TOP_RULES && i < n; i++) {
		const struct bl_top_rule *r = &c->rules[i];

		if (!r->port)
			break;
		if ((r->proto && r->proto != k->proto) ||
		    (k->dport != BL_BE16(r->port) && k->sport != BL_BE16(r->port)))
			continue;
		h->bytes = r->bytes;
		h->deadline_us = r->deadline_us;
		h->coflow = r->coflow;
		h->flags = r->flags;
		return 1;
	}
	return 0;
}

#endif
