/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The host's end of the Fastpass control protocol: asks for timeslots, accepts ALLOCs, notices
 * ALLOCs that were lost, and starts anew when an arbiter sends RESET.
 *
 *   bl_fcp_host_want(h, dst, slots)         frames were put into the hold queue; or a slot passed
 *                                           unused (Fastpass section 6.3) and is wanted again
 *   n = bl_fcp_host_tx(h, now, buf, size)   until 0: send these n bytes to the arbiter
 *   why = bl_fcp_host_rx(h, buf, n, now, &k)
 *                                           a packet arrived; ALLOC: k.nruns runs, read with
 *                                           bl_fcp_slots_at(), belong to this host
 *   t = bl_fcp_host_next(h)                 call bl_fcp_host_tx() at t at the latest
 *
 * Example of a RESET: host 3 wanted 10 slots for host 7 and has received 4 when its arbiter dies.
 * It asks again after 1 ms (keep_ns), under its old nonce, with challenge 21. The new arbiter
 * cannot verify that packet and answers RESET with challenge 21 and nonce N. The host counts anew:
 * 6 wanted, 0 given. Its challenge is 22 now, so the same RESET again, or a late one, changes
 * nothing. Its next packet, REQ seq 1 {7: 6}, verifies under N: one round trip.
 *
 * This file has no socket and no clock.
 */
#ifndef BARLINE_FCP_HOST_CORE_H
#define BARLINE_FCP_HOST_CORE_H

#include "core/fastpass/fcp_core.h"

/**
 * struct bl_fcp_host - a host's end. Used by one thread.
 */
struct bl_fcp_host {
	struct bl_fcp_end e;    /* shared part; pair @done: slots received or given up */
	struct bl_fcp_params p; /* by the caller */
	__u32 self;             /* index of this host */
	__u32 challenge;        /* of the next RESET that will be accepted */
	__u64 need;             /* slots wanted and not received, over all destinations */
	__u32 term;             /* of the session's arbiter */
	__u32 slot_ns;          /* from the RESET; 0: there was no session yet */
	__u32 slot_bytes;       /* from the RESET; 0: there was no session yet */
	__u32 call;             /* 1: an arbiter sent CALL: answer at once */
	__u64 called_ns;        /* time of the last answer */
	__u64 wanted;           /* slots wanted, without those that were lost */
	__u64 received;         /* slots received */
	__u64 lost;             /* slots lost on their way */
	__u64 unasked;          /* slots received without having been asked for */
	__u64 resets;           /* sessions begun */
};

/**
 * bl_fcp_host_init - initialise @h; the memory of @h->e and @h->p are set, everything else is zero.
 * @challenge: random.
 */
BL_CORE void bl_fcp_host_init(struct bl_fcp_host *h, __u32 self, __u32 challenge)
{
	h->self = self;
	h->challenge = challenge;
	bl_fcp_session_begin(&h->e, 0);
}

BL_CORE __u32 bl_fcp_host_needs(const struct bl_fcp_pair *r)
{
	__s32 n = (__s32)(r->total - r->done);

	return n > 0 ? (__u32)n : 0;
}

/** bl_fcp_host_want - want @slots more slots for @dst. */
BL_FN void bl_fcp_host_want(struct bl_fcp_host *h, __u32 dst, __u32 slots)
{
	struct bl_fcp_pair *r = &h->e.pair[dst];
	__u32 before = bl_fcp_host_needs(r);

	r->total += slots;
	h->wanted += slots;
	h->need += bl_fcp_host_needs(r) - before;
	bl_fcp_total_tell(&h->e, dst);
}

/* Wants slots anew that were given and have not arrived, and cannot arrive any more. */
BL_FN void bl_fcp_host_scan(struct bl_fcp_host *h)
{
	while (h->e.look.count) {
		__u32 dst = bl_fcp_queue_pop(&h->e, &h->e.look, BL_FCP_Q_LOOK);
		struct bl_fcp_pair *r = &h->e.pair[dst];
		__s32 lost = (__s32)(r->told - r->done);

		if (lost <= 0)
			continue;
		r->done += (__u32)lost;
		r->total += (__u32)lost; /* as many are needed as before */
		h->lost += (__u32)lost;
		bl_fcp_total_tell(&h->e, dst);
	}
}

BL_FN void bl_fcp_host_take(struct bl_fcp_host *h, const struct bl_fcp_pkt *k)
{
	struct bl_fcp_slots s;
	__u32 i;

	for (i = 0; i < k->nruns; i++) {
		struct bl_fcp_pair *r;
		__u32 needs;

		bl_fcp_slots_at(k, i, &s);
		r = &h->e.pair[s.dst];
		needs = bl_fcp_host_needs(r);
		r->done += s.count;
		h->received += s.count;
		h->need -= s.count < needs ? s.count : needs;
		h->unasked += s.count > needs ? s.count - needs : 0;
	}
	for (i = 0; i < k->ntotals; i++) {
		__u32 dst = BL_BE16(k->totals[i].dst), total = bl_fcp_total_get(&k->totals[i]);
		struct bl_fcp_pair *r = &h->e.pair[dst];

		if ((__s32)(total - r->told) > 0)
			r->told = total;
		if (r->told != r->done)
			bl_fcp_queue_push(&h->e, &h->e.look, BL_FCP_Q_LOOK, dst);
	}
}

BL_FN enum bl_fcp_reason bl_fcp_host_reset(struct bl_fcp_host *h, const struct bl_fcp_pkt *k,
					   __u64 now)
{
	const struct bl_fcp_reset *b = k->body;
	__u32 term = BL_BE32(b->term), i;

	if (k->challenge != h->challenge)
		return BL_FCP_R_OLD_RESET;
	if (!b->nonce || !b->slot_ns || !b->slot_bytes || b->reserved)
		return BL_FCP_R_BAD_BODY;
	if (BL_BE32(b->table) != h->p.table || BL_BE16(b->index) != h->self ||
	    BL_BE16(b->endpoints) != h->e.n)
		return BL_FCP_R_BAD_TABLE;
	if (h->e.nonce && (__s32)(term - h->term) < 0 &&
	    (__s64)(now - h->e.heard_ns) < (__s64)h->p.hold_ns)
		return BL_FCP_R_OLD_TERM;
	h->challenge++;
	h->term = term;
	h->slot_ns = BL_BE32(b->slot_ns);
	h->slot_bytes = BL_BE32(b->slot_bytes);
	h->resets++;
	bl_fcp_session_begin(&h->e, BL_BE64(b->nonce));
	for (i = 0; i < h->e.n; i++) {
		struct bl_fcp_pair *r = &h->e.pair[i];

		r->total = bl_fcp_host_needs(r);
		r->told = r->done = 0;
		if (r->total)
			bl_fcp_total_tell(&h->e, i);
	}
	h->call = 1; /* the arbiter must receive the new nonce, even if no slot is wanted */
	bl_fcp_heard(&h->e, &h->p, now, 0);
	return BL_FCP_R_OK;
}

BL_FN enum bl_fcp_reason bl_fcp_host_read(struct bl_fcp_host *h, const void *packet, __u32 len,
					  __u64 now, struct bl_fcp_pkt *k)
{
	enum bl_fcp_reason why = bl_fcp_parse(packet, len, h->e.n, k);
	int session = k->opcode == BL_FCP_ALLOC || k->opcode == BL_FCP_ACK;

	if (why != BL_FCP_R_OK)
		return why;
	if (!session && k->opcode != BL_FCP_RESET && k->opcode != BL_FCP_CALL)
		return BL_FCP_R_BAD_OPCODE;
	if ((session && !h->e.nonce) ||
	    !bl_fcp_checksum_ok(&h->p, session ? h->e.nonce : 0, packet, len))
		return BL_FCP_R_BAD_CHECK;
	if (k->opcode == BL_FCP_RESET)
		return bl_fcp_host_reset(h, k, now);
	if (k->opcode == BL_FCP_CALL) {
		/* at most one answer per round trip, however often it is called */
		h->call |= (__s64)(now - h->called_ns) >= (__s64)h->p.rtt_ns;
		return BL_FCP_R_OK;
	}
	if (!bl_fcp_acks_ok(&h->e, k->ack))
		return BL_FCP_R_BAD_SEQ;
	if (k->opcode == BL_FCP_ALLOC) {
		why = bl_fcp_seq_check(&h->e, k->seq);
		if (why != BL_FCP_R_OK)
			return why;
		bl_fcp_seq_take(&h->e, k->seq, now);
		bl_fcp_host_take(h, k);
		if (!h->e.gap_ns)
			bl_fcp_host_scan(h);
	}
	bl_fcp_acked(&h->e, k->ack, k->ack_bits);
	bl_fcp_heard(&h->e, &h->p, now, k->opcode == BL_FCP_ALLOC);
	return BL_FCP_R_OK;
}

/**
 * bl_fcp_host_rx - process a packet. @packet: aligned to 8. Returns the result of the packet; use
 * @k's runs only after BL_FCP_R_OK with BL_FCP_ALLOC.
 */
BL_FN enum bl_fcp_reason bl_fcp_host_rx(struct bl_fcp_host *h, const void *packet, __u32 len,
					__u64 now, struct bl_fcp_pkt *k)
{
	enum bl_fcp_reason why;

	k->opcode = 0; /* read even if there is no header */
	why = bl_fcp_host_read(h, packet, len, now, k);
	h->e.count[why]++;
	return why;
}

/*
 * The time at which to ask the arbiter for an answer even without new demand: without a session at
 * once, then with growing intervals.
 */
BL_CORE __u64 bl_fcp_host_ask_ns(const struct bl_fcp_host *h)
{
	if (!h->need)
		return BL_FCP_NEVER;
	if (!h->e.nonce)
		return h->e.tx ? h->e.sent_ns + (2 * h->p.rtt_ns << h->e.backoff) : 0;
	return bl_max64(h->e.sent_ns, h->e.heard_ns) + (h->p.keep_ns << h->e.backoff);
}

/* The time at which queued totals may be sent: at once if they fill a packet. */
BL_CORE __u64 bl_fcp_host_pace_ns(const struct bl_fcp_host *h)
{
	return h->e.tell.count < BL_FCP_TOTALS_MAX ? h->e.sent_ns + h->p.pace_ns : 0;
}

/**
 * bl_fcp_host_tx - write the next packet that must be sent at @now. @buf: BL_FCP_PACKET_MAX bytes,
 * aligned to 8. Returns its length, or 0 if there is none.
 */
BL_FN __u32 bl_fcp_host_tx(struct bl_fcp_host *h, __u64 now, void *buf)
{
	struct bl_fcp_req *q = (void *)((struct bl_fcp_hdr *)buf + 1);
	struct bl_fcp_end *e = &h->e;
	__u32 len = sizeof(struct bl_fcp_hdr), seq = 0, n = 0;
	__u8 op = BL_FCP_REQ;
	int ask, owed;

	bl_fcp_packets_expire(e, &h->p, now);
	if (bl_fcp_gaps_close(e, &h->p, now))
		bl_fcp_host_scan(h);
	ask = h->call || bl_fcp_host_ask_ns(h) <= now;
	owed = e->ack_due_ns && e->ack_due_ns <= now;
	if (!e->nonce) {
		if (!ask)
			return 0;
		if (e->tx && e->backoff < BL_FCP_BACKOFF)
			e->backoff++;
	} else if (ask || (e->tell.count && (owed || bl_fcp_host_pace_ns(h) <= now))) {
		struct bl_fcp_sent *s = bl_fcp_next_seq(e, now, &seq);

		n = bl_fcp_put_totals(e, s, seq, (void *)(q + 1), BL_FCP_TOTALS_MAX);
	} else if (owed) {
		op = BL_FCP_ACK;
	} else {
		return 0;
	}
	if (op == BL_FCP_REQ) {
		q->count = BL_BE16(n);
		q->reserved = 0;
		len += (__u32)(sizeof(*q) + n * sizeof(struct bl_fcp_total));
		if (h->call)
			h->called_ns = now;
		h->call = 0;
	}
	e->ack_due_ns = 0;
	e->sent_ns = now;
	e->tx++;
	return bl_fcp_seal(&h->p, e->nonce, op, h->challenge, seq, e->in_max, bl_fcp_ack_bits(e),
			   buf, len);
}

/**
 * bl_fcp_host_next - the time at which to call bl_fcp_host_tx() again, if nothing happens before.
 */
BL_CORE __u64 bl_fcp_host_next(const struct bl_fcp_host *h)
{
	const struct bl_fcp_end *e = &h->e;
	__u64 t = bl_min64(bl_fcp_host_ask_ns(h), bl_fcp_timeout(e, &h->p));

	if (h->call)
		return 0;
	if (e->nonce && e->tell.count)
		t = bl_min64(t, bl_fcp_host_pace_ns(h));
	if (e->nonce && e->ack_due_ns)
		t = bl_min64(t, e->ack_due_ns);
	if (e->gap_ns)
		t = bl_min64(t, e->gap_ns + h->p.reorder_ns);
	return t;
}

#endif
