/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The arbiter's end of the Fastpass control protocol: one struct per endpoint. All state is soft:
 * an arbiter that knows nothing sends RESET and has everything one round trip later.
 *
 *   why = bl_fcp_arb_rx(a, buf, n, now, random)  a packet of this endpoint arrived
 *     a->fresh: a new session began: tell the allocator to forget the endpoint, then clear it
 *   while (bl_fcp_arb_take(a, &dst, &slots))     pass new demands to the allocator, within the
 *                                                quota
 *   bl_fcp_arb_grant(a, slot, dst, path)         the allocator gave a slot: add it to the ALLOC
 *                                                that is being built
 *   n = bl_fcp_arb_tx(a, now, buf)               until 0: send these n bytes to the endpoint
 *
 * A RESET is an offer. The old session continues until a packet verifies under the new nonce, so
 * neither a forged nor a corrupted nor an old packet of an endpoint can end a working session: the
 * host accepts a RESET only for the challenge that it has now.
 *
 * Example, quota 100: the endpoint has told {7: 1000000}. 100 slots are passed to the allocator,
 * and 30 more after 30 grants. A host that lies about its demand waits only for its own slots.
 *
 * This file has no socket, no allocator and no clock.
 */
#ifndef BARLINE_FCP_ARB_CORE_H
#define BARLINE_FCP_ARB_CORE_H

#include "core/fastpass/fcp_core.h"

/* slots passed to the allocator at once for one destination, so that others get their turn */
#define BL_FCP_CHUNK 1024

/*
 * Slots before a packet's first grant that later grants may name, since an allocator passes out its
 * window pair by pair.
 */
#define BL_FCP_BEFORE 1024

/**
 * struct bl_fcp_build - the ALLOC that is being built.
 */
struct bl_fcp_build {
	__u64 base;                   /* slot that offsets count from */
	__u32 totals;                 /* entries of @dst in use */
	__u32 runs;                   /* entries of @run in use */
	__u16 dst[BL_FCP_TOTALS_MAX]; /* destinations */
	/* by index of the destination: 1 + its last run; 0: none */
	__u8 run_of[BL_FCP_TOTALS_MAX];
	__u32 last[BL_FCP_RUNS_MAX]; /* by run: its last slot, from @base */
	struct bl_fcp_run run[BL_FCP_RUNS_MAX];
};
_Static_assert(BL_FCP_RUNS_MAX < 256 && BL_FCP_TOTALS_MAX < 256, "places are bytes");

/**
 * struct bl_fcp_arb - an arbiter's end, for one endpoint. Used by one thread.
 */
struct bl_fcp_arb {
	/*
	 * shared part; pair @done: slots passed on; @look: destinations with demand left to pass on
	 */
	struct bl_fcp_end e;
	const struct bl_fcp_params *p; /* by the caller, for all endpoints */
	struct bl_fcp_reset reset;     /* body of its RESETs, except the nonce */
	/* slots passed to the allocator and not granted yet; at most @p->quota */
	__u32 waiting;
	__u32 fresh;           /* set to 1 when a session began or ended; cleared by the caller */
	__u64 offer;           /* nonce that is offered; 0: none */
	__u32 challenge;       /* of the packet that the offer answers */
	__u32 reset_due;       /* 1: send the offer */
	__u64 reset_ns;        /* time of the last RESET; 0: none */
	__u64 granted;         /* slots put into ALLOCs */
	__u64 refused;         /* slots granted that were not asked for, and not put into ALLOCs */
	__u64 capped;          /* times that the quota held a demand back */
	__u64 resets;          /* RESETs sent */
	__u64 sessions;        /* sessions begun */
	__u64 gone;            /* sessions ended by silence */
	struct bl_fcp_build b; /* the next ALLOC */
};

/**
 * bl_fcp_arb_begin - begin the session of @nonce, or end the session if it is 0. All counts become
 * zero. Call it once at the start, with 0.
 */
BL_FN void bl_fcp_arb_begin(struct bl_fcp_arb *a, __u64 nonce)
{
	bl_fcp_session_begin(&a->e, nonce);
	__builtin_memset(a->e.pair, 0, a->e.n * sizeof(*a->e.pair));
	a->e.tell.count = a->e.look.count = 0;
	a->b.totals = a->b.runs = 0;
	a->waiting = 0;
	a->offer = 0;
	a->reset_due = 0;
	a->fresh = 1;
}

/* The other end is out of step: offer a session, at most once per round trip. */
BL_FN void bl_fcp_arb_offer(struct bl_fcp_arb *a, __u32 challenge, __u64 now, __u64 random)
{
	if (a->reset_due || (a->reset_ns && (__s64)(now - a->reset_ns) < (__s64)a->p->rtt_ns))
		return;
	/*
	 * The same question gets the same answer, so whichever of two RESETs arrives first works.
	 */
	if (!a->offer || a->challenge != challenge)
		a->offer = random ? random : 1;
	a->challenge = challenge;
	a->reset_due = 1;
	a->reset_ns = now ? now : 1;
}

BL_FN enum bl_fcp_reason bl_fcp_arb_read(struct bl_fcp_arb *a, const void *packet, __u32 len,
					 __u64 now, __u64 random)
{
	struct bl_fcp_pkt k = { 0 };
	enum bl_fcp_reason why = bl_fcp_parse(packet, len, a->e.n, &k);
	__u32 i;

	if (why != BL_FCP_R_OK)
		return why;
	if (k.opcode != BL_FCP_REQ && k.opcode != BL_FCP_ACK)
		return BL_FCP_R_BAD_OPCODE;
	if (!a->e.nonce || !bl_fcp_checksum_ok(a->p, a->e.nonce, packet, len)) {
		if (!a->offer || !bl_fcp_checksum_ok(a->p, a->offer, packet, len)) {
			bl_fcp_arb_offer(a, k.challenge, now, random);
			return BL_FCP_R_BAD_CHECK;
		}
		bl_fcp_arb_begin(a, a->offer);
		a->sessions++;
	}
	if (!bl_fcp_acks_ok(&a->e, k.ack)) {
		bl_fcp_arb_offer(a, k.challenge, now, random);
		return BL_FCP_R_BAD_SEQ;
	}
	if (k.opcode == BL_FCP_REQ) {
		why = bl_fcp_seq_check(&a->e, k.seq);
		if (why == BL_FCP_R_BAD_SEQ)
			bl_fcp_arb_offer(a, k.challenge, now, random);
		if (why != BL_FCP_R_OK)
			return why;
		bl_fcp_seq_take(&a->e, k.seq, now);
		for (i = 0; i < k.ntotals; i++) {
			__u32 dst = BL_BE16(k.totals[i].dst),
			      total = bl_fcp_total_get(&k.totals[i]);
			struct bl_fcp_pair *r = &a->e.pair[dst];

			if ((__s32)(total - r->told) > 0)
				r->told = total;
			if (r->told != r->done)
				bl_fcp_queue_push(&a->e, &a->e.look, BL_FCP_Q_LOOK, dst);
		}
	}
	bl_fcp_acked(&a->e, k.ack, k.ack_bits);
	bl_fcp_heard(&a->e, a->p, now, k.opcode == BL_FCP_REQ);
	return BL_FCP_R_OK;
}

/**
 * bl_fcp_arb_rx - process a packet of this endpoint. @packet: aligned to 8. @random: 64 random bits
 * for a nonce. Returns the result of the packet.
 */
BL_FN enum bl_fcp_reason bl_fcp_arb_rx(struct bl_fcp_arb *a, const void *packet, __u32 len,
				       __u64 now, __u64 random)
{
	enum bl_fcp_reason why = bl_fcp_arb_read(a, packet, len, now, random);

	a->e.count[why]++;
	return why;
}

/**
 * bl_fcp_arb_take - the next new demand for the allocator. Returns 1, or 0 if there is none or the
 * quota is used up.
 */
BL_FN int bl_fcp_arb_take(struct bl_fcp_arb *a, __u32 *dst, __u32 *slots)
{
	__u32 room = a->p->quota > a->waiting ? a->p->quota - a->waiting : 0;
	struct bl_fcp_pair *r;

	if (!a->e.look.count)
		return 0;
	if (!room) {
		a->capped++;
		return 0;
	}
	*dst = bl_fcp_queue_pop(&a->e, &a->e.look, BL_FCP_Q_LOOK);
	r = &a->e.pair[*dst];
	*slots = r->told - r->done;
	if (*slots > room)
		*slots = room;
	if (*slots > BL_FCP_CHUNK)
		*slots = BL_FCP_CHUNK;
	r->done += *slots;
	a->waiting += *slots;
	if (r->done != r->told)
		bl_fcp_queue_push(&a->e, &a->e.look, BL_FCP_Q_LOOK, *dst);
	return 1;
}

/**
 * bl_fcp_arb_grant - the allocator gave @slot to @dst on @path. Pass the slots of a destination in
 * rising order, so that they form runs. Returns 0; -1: the packet is full: send it
 * (bl_fcp_arb_tx()) and call again; 1: the slot was not asked for and is not sent.
 */
BL_FN int bl_fcp_arb_grant(struct bl_fcp_arb *a, __u64 slot, __u32 dst, __u8 path)
{
	struct bl_fcp_build *b = &a->b;
	struct bl_fcp_pair *r = &a->e.pair[dst];
	struct bl_fcp_run *run;
	__u32 at, off, step;

	if (!a->e.nonce || r->total == r->done) {
		a->refused++;
		return 1;
	}
	if (!b->totals)
		b->base = slot > BL_FCP_BEFORE ? slot - BL_FCP_BEFORE : 0;
	if (slot < b->base || slot - b->base > 0xffff)
		return -1;
	off = (__u32)(slot - b->base);
	for (at = 0; at < b->totals && b->dst[at] != dst; at++)
		;
	if (at == b->totals) {
		if (at == BL_FCP_TOTALS_MAX || b->runs == BL_FCP_RUNS_MAX)
			return -1;
		b->dst[at] = (__u16)dst;
		b->run_of[at] = 0;
		b->totals++;
	}
	run = b->run_of[at] ? &b->run[b->run_of[at] - 1] : 0;
	step = run ? off - b->last[b->run_of[at] - 1] : 0;
	if (run && run->path == path && run->count < 255 && step && step < 256 &&
	    (run->count == 1 || step == run->stride)) {
		run->stride = (__u8)step;
		run->count++;
		b->last[b->run_of[at] - 1] = off;
	} else {
		if (b->runs == BL_FCP_RUNS_MAX)
			return -1;
		run = &b->run[b->runs];
		run->offset = BL_BE16(off);
		run->which = (__u8)at;
		run->path = path;
		run->count = 1;
		run->stride = 0;
		b->last[b->runs] = off;
		b->run_of[at] = (__u8)++b->runs;
	}
	r->total++;
	a->waiting--;
	a->granted++;
	return 0;
}

BL_FN __u32 bl_fcp_arb_alloc(struct bl_fcp_arb *a, __u64 now, void *buf)
{
	struct bl_fcp_alloc *body = (void *)((struct bl_fcp_hdr *)buf + 1);
	struct bl_fcp_total *t = (void *)(body + 1);
	struct bl_fcp_build *b = &a->b;
	struct bl_fcp_end *e = &a->e;
	__u32 seq, n = b->totals, i;
	struct bl_fcp_sent *s = bl_fcp_next_seq(e, now, &seq);

	for (i = 0; i < n; i++) {
		struct bl_fcp_pair *r = &e->pair[b->dst[i]];

		r->seq = seq;
		s->dst[s->n++] = b->dst[i];
		bl_fcp_total_put(&t[i], b->dst[i], r->total);
	}
	/*
	 * Totals that were not acknowledged are added. One that is in both lists is sent twice,
	 * which is harmless.
	 */
	n += bl_fcp_put_totals(e, s, seq, t + n, BL_FCP_TOTALS_MAX - n);
	bl_put48(body->base, b->base);
	body->totals = (__u8)n;
	body->runs = (__u8)b->runs;
	__builtin_memcpy(t + n, b->run, b->runs * sizeof(b->run[0]));
	i = (__u32)(sizeof(struct bl_fcp_hdr) + sizeof(*body) + n * sizeof(*t) +
		    b->runs * sizeof(b->run[0]));
	b->totals = b->runs = 0;
	return bl_fcp_seal(a->p, e->nonce, BL_FCP_ALLOC, 0, seq, e->in_max, bl_fcp_ack_bits(e), buf,
			   i);
}

/**
 * bl_fcp_arb_tx - write the next packet that must be sent at @now. @buf: BL_FCP_PACKET_MAX bytes,
 * aligned to 8. Returns its length, or 0 if there is none.
 */
BL_FN __u32 bl_fcp_arb_tx(struct bl_fcp_arb *a, __u64 now, void *buf)
{
	struct bl_fcp_end *e = &a->e;
	__u32 len;

	if (a->reset_due) {
		struct bl_fcp_reset *r = (void *)((struct bl_fcp_hdr *)buf + 1);

		*r = a->reset;
		r->nonce = BL_BE64(a->offer);
		a->reset_due = 0;
		a->resets++;
		e->tx++;
		return bl_fcp_seal(a->p, 0, BL_FCP_RESET, a->challenge, 0, 0, 0, buf,
				   sizeof(struct bl_fcp_hdr) + sizeof(*r));
	}
	if (!e->nonce)
		return 0;
	if (e->open && (__s64)(now - e->heard_ns) >= (__s64)a->p->dead_ns) {
		bl_fcp_arb_begin(a, 0);
		a->gone++;
		return 0;
	}
	bl_fcp_packets_expire(e, a->p, now);
	if (a->b.totals || e->tell.count) {
		len = bl_fcp_arb_alloc(a, now, buf);
	} else if (e->ack_due_ns && e->ack_due_ns <= now) {
		len = bl_fcp_seal(a->p, e->nonce, BL_FCP_ACK, 0, 0, e->in_max, bl_fcp_ack_bits(e),
				  buf, sizeof(struct bl_fcp_hdr));
	} else {
		return 0;
	}
	e->ack_due_ns = 0;
	e->sent_ns = now;
	e->tx++;
	return len;
}

/** bl_fcp_arb_next - the time at which to call bl_fcp_arb_tx() again, if nothing happens before. */
BL_FN __u64 bl_fcp_arb_next(const struct bl_fcp_arb *a)
{
	const struct bl_fcp_end *e = &a->e;
	__u64 t = bl_fcp_timeout(e, a->p);

	if (a->reset_due || (e->nonce && (a->b.totals || e->tell.count)))
		return 0;
	if (e->ack_due_ns)
		t = bl_min64(t, e->ack_due_ns);
	if (e->open)
		t = bl_min64(t, e->heard_ns + a->p->dead_ns);
	return t;
}

/** bl_fcp_arb_call - write a CALL to an endpoint that may have no session. Returns its length. */
BL_FN __u32 bl_fcp_arb_call(const struct bl_fcp_params *p, void *buf)
{
	return bl_fcp_seal(p, 0, BL_FCP_CALL, 0, 0, 0, 0, buf, sizeof(struct bl_fcp_hdr));
}

#endif
