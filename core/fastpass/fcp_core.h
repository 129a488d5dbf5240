/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What both ends of the Fastpass control protocol share (Fastpass section 5.3): packets, the window
 * of sequence numbers, and the aggregate counts. The ends are core/fastpass/fcp_host_core.h and
 * core/fastpass/fcp_arb_core.h.
 *
 * Each packet contains counts since the session began ("100 slots wanted for host 7 so far"). So
 * receiving a count twice or late changes nothing, and a lost packet is never sent again; the
 * present count is sent instead. Sequence numbers serve only to know which counts the other end has
 * received, and to accept each ALLOC at most once.
 *
 * Example, 2 slots wanted for host 7, and the first ALLOC lost:
 *
 *   host: REQ seq 1 {7: 2}                    arbiter: told 2
 *   arbiter: ALLOC seq 1 {7: 1}, slot 900     (lost)
 *   arbiter: ALLOC seq 2 {7: 2}, slot 901     host: told 2, received 1; seq 1 is missing: waits
 *   host, 100 us later: seq 1 is given up (it will be refused if it arrives); 2 - 1 = 1 slot is
 *   lost, so 1 more is wanted: REQ seq 2 {7: 3}
 *                                             arbiter: 3 - 2 = 1 new slot
 *
 * If seq 2 had been lost too, no acknowledgement would have arrived, and the arbiter would send the
 * totals alone: ALLOC seq 3 {7: 2}, without a run.
 *
 * This file has no socket and no clock: time and random numbers are arguments.
 */
#ifndef BARLINE_FCP_CORE_H
#define BARLINE_FCP_CORE_H

#include "maps/fcp_abi.h"
#include "core/siphash_core.h"
#include "core/wire_core.h"

/* packets: a packet with this many later ones received is lost, as in RFC 6675 */
#define BL_FCP_REORDER 3
/* packets: a sequence number that is further ahead is not valid */
#define BL_FCP_REACH   (1U << 20)
#define BL_FCP_BACKOFF 3 /* the timeout is doubled at most this often */
#define BL_FCP_NEVER   (~0ULL)

/**
 * struct bl_fcp_pkt - a parsed packet, in host order. Pointers point into the packet. Filled in by
 * bl_fcp_parse().
 */
struct bl_fcp_pkt {
	__u8 opcode;                       /* from the header */
	__u32 challenge;                   /* from the header */
	__u32 seq;                         /* from the header */
	__u32 ack;                         /* from the header */
	__u64 ack_bits;                    /* from the header */
	const struct bl_fcp_total *totals; /* REQ, ALLOC */
	__u32 ntotals;                     /* REQ, ALLOC */
	const struct bl_fcp_run *runs;     /* ALLOC */
	__u32 nruns;                       /* ALLOC */
	__u64 base;                        /* ALLOC */
	const void *body;                  /* RESET, WATCHDOG, REPORT, FAULTS, HEARD */
	const struct bl_fcp_count *counts; /* REPORT */
	__u32 ncounts;                     /* REPORT */
	const struct bl_fcp_link *links;   /* FAULTS */
	__u32 nlinks;                      /* FAULTS */
};

/**
 * struct bl_fcp_slots - a run in host order: the slots @first + k * @stride for k < @count.
 */
struct bl_fcp_slots {
	__u64 first;
	__u32 dst; /* index of the destination */
	__u32 count;
	__u32 stride;
	__u8 path; /* number of the path, or BL_FCP_PATH_ANY */
};

/**
 * struct bl_fcp_params - parameters of both ends, set at the start; the same for all endpoints of
 * an arbiter.
 */
struct bl_fcp_params {
	/* shared by hosts and arbiters; 0, 0: none, and checksums only tell sessions apart */
	__u64 secret[2];
	__u32 table; /* bl_fcp_table() of the list of endpoints */
	/*
	 * slots of one endpoint that may wait in the allocator; more demand follows as they are
	 * given
	 */
	__u32 quota;
	/* a generous round trip: at most one RESET in it; the timeout is twice this */
	__u64 rtt_ns;
	__u64 reorder_ns; /* an ALLOC that is missing for this long is given up */
	__u64 ack_ns;     /* an acknowledgement waits this long for a packet to travel with */
	/*
	 * host: least time from its last packet to one with more demand, unless that fills a packet
	 * or carries an acknowledgement, so that FCP takes only a few per cent of a slow link
	 */
	__u64 pace_ns;
	/* host: asks again after this time without an answer while it wants slots */
	__u64 keep_ns;
	/* host: accepts an arbiter of an older term after this silence of the present one */
	__u64 hold_ns;
	/* arbiter: ends the session of a host that acknowledges nothing for this long */
	__u64 dead_ns;
};
#define BL_FCP_PARAMS_DEFAULT                                                               \
	{                                                                                   \
		.quota = 1U << 16, .rtt_ns = 200000, .reorder_ns = 100000, .ack_ns = 50000, \
		.keep_ns = 1000000, .hold_ns = 100000000, .dead_ns = 1000000000             \
	}

/**
 * struct bl_fcp_pair - counts for one destination in one session.
 */
struct bl_fcp_pair {
	__u32 total; /* count that this end tells: slots wanted (host), slots given (arbiter) */
	/* highest count that the other end told: slots given (host), slots wanted (arbiter) */
	__u32 told;
	/*
	 * host: slots received, or given up and wanted anew: @told - @done are under way or lost.
	 * Arbiter: slots passed to the allocator.
	 */
	__u32 done;
	__u32 seq;    /* of the last packet that carried @total */
	__u32 queued; /* BL_FCP_Q_*: the queues that it is in */
};
#define BL_FCP_Q_TELL 1 /* @total must be told */
#define BL_FCP_Q_LOOK 2 /* @told differs from @done */

/**
 * struct bl_fcp_queue - destinations, first in first out, each at most once.
 */
struct bl_fcp_queue {
	__u16 *item; /* indices of destinations; as many entries as there are pairs */
	__u32 head;  /* index of the oldest entry */
	__u32 count; /* number of entries */
};

/**
 * struct bl_fcp_sent - the contents of a packet that was not acknowledged yet.
 */
struct bl_fcp_sent {
	__u64 at_ns;                  /* time at which it was sent */
	__u32 n;                      /* entries of @dst in use */
	__u16 dst[BL_FCP_TOTALS_MAX]; /* destinations whose totals it carried */
};

/**
 * struct bl_fcp_end - one end of a session. Used by one thread.
 */
struct bl_fcp_end {
	struct bl_fcp_pair *pair; /* by destination; the caller's memory */
	__u32 n;                  /* number of destinations */
	__u32 next;               /* sequence number of the next packet */
	struct bl_fcp_queue tell; /* destinations with BL_FCP_Q_TELL */
	struct bl_fcp_queue look; /* destinations with BL_FCP_Q_LOOK */
	__u64 nonce;              /* of the session; 0: no session */
	struct bl_fcp_sent *sent; /* by seq % BL_FCP_WINDOW; the caller's memory */
	__u64 open;               /* bit k: packet @next - 1 - k is neither acknowledged nor lost */
	__u64 in_got;             /* bit k: packet @in_max - k was received */
	__u64 in_closed;          /* bit k: packet @in_max - k was received or given up */
	__u32 in_max;             /* highest sequence number received; 0: none */
	__u32 gap_max;            /* @in_max when @gap_ns was set */
	__u64 gap_ns;     /* time since which a packet before @gap_max is missing; 0: none is */
	__u64 ack_due_ns; /* time at which to acknowledge; 0: there is nothing to acknowledge */
	__u64 heard_ns;   /* time of the last packet accepted */
	__u64 sent_ns;    /* time of the last packet sent */
	__u32 backoff;    /* timeouts since @heard_ns, at most BL_FCP_BACKOFF */
	__u32 reserved;
	__u64 count[BL_FCP_R_COUNT]; /* packets received, by enum bl_fcp_reason */
	__u64 timeouts;              /* packets lost by time */
	__u64 nacks;                 /* packets lost by acknowledgements of later ones */
	__u64 tx;                    /* packets sent */
};

/** bl_fcp_table - hash of the list of endpoints: @n addresses of 16 bytes, in order. */
BL_FN __u32 bl_fcp_table(const void *addrs, __u32 n)
{
	return (__u32)bl_siphash(n, 0, addrs, n * 16, BL_SIP_NONE);
}

/* ---- packets ---- */

BL_CORE __u32 bl_fcp_total_get(const struct bl_fcp_total *t)
{
	return (__u32)BL_BE16(t->total_hi) << 16 | BL_BE16(t->total_lo);
}

BL_CORE void bl_fcp_total_put(struct bl_fcp_total *t, __u32 dst, __u32 total)
{
	t->dst = BL_BE16(dst);
	t->total_hi = BL_BE16(total >> 16);
	t->total_lo = BL_BE16(total & 0xffff);
}

BL_FN __u64 bl_fcp_checksum(const struct bl_fcp_params *p, __u64 nonce, const void *packet,
			    __u32 len)
{
	return bl_siphash(p->secret[0] ^ nonce, p->secret[1], packet, len,
			  offsetof(struct bl_fcp_hdr, check) / 8);
}

BL_CORE int bl_fcp_checksum_ok(const struct bl_fcp_params *p, __u64 nonce, const void *packet,
			       __u32 len)
{
	const struct bl_fcp_hdr *h = packet;

	return BL_BE64(h->check) == bl_fcp_checksum(p, nonce, packet, len);
}

/*
 * Validates the counts of a REPORT: peers below @n, within its range and in order, each column
 * once.
 */
BL_FN int bl_fcp_report_ok(const struct bl_fcp_report *r, const struct bl_fcp_count *c, __u32 count,
			   __u32 n)
{
	__u32 first = BL_BE16(r->first), last = BL_BE16(r->last), i, key, before = 0;

	if (BL_BE16(r->index) >= n || first > last || last >= n)
		return 0;
	for (i = 0; i < count; i++) {
		key = (__u32)BL_BE16(c[i].peer) << 8 | c[i].path;
		if (c[i].reserved || key >> 8 < first || key >> 8 > last || (i && key <= before))
			return 0;
		before = key;
	}
	return 1;
}

/** bl_fcp_slots_at - run @i of an ALLOC that bl_fcp_parse() has validated. */
BL_CORE void bl_fcp_slots_at(const struct bl_fcp_pkt *k, __u32 i, struct bl_fcp_slots *s)
{
	const struct bl_fcp_run *r = &k->runs[i];

	s->first = k->base + BL_BE16(r->offset);
	s->dst = BL_BE16(k->totals[r->which].dst);
	s->count = r->count;
	s->stride = r->stride;
	s->path = r->path;
}

/**
 * bl_fcp_parse - parse and validate @len bytes, aligned to 8, into @k. @n: number of endpoints.
 * Everything that needs no session is validated: after BL_FCP_R_OK, all entries lie within the
 * packet, all destinations are below @n and all runs contain slots. A packet that is longer than
 * its contents is refused.
 */
BL_FN enum bl_fcp_reason bl_fcp_parse(const void *packet, __u32 len, __u32 n, struct bl_fcp_pkt *k)
{
	const struct bl_fcp_hdr *h = packet;
	const __u8 *p = (const __u8 *)(h + 1);
	__u32 left, i;

	if (len < sizeof(*h))
		return BL_FCP_R_SHORT;
	if (h->magic != BL_BE16(BL_FCP_MAGIC))
		return BL_FCP_R_BAD_MAGIC;
	if (h->opcode >> 4 != BL_FCP_VERSION)
		return BL_FCP_R_BAD_VERSION;
	if (h->flags)
		return BL_FCP_R_BAD_BODY;
	__builtin_memset(k, 0, sizeof(*k));
	k->opcode = h->opcode & 0xf;
	k->challenge = BL_BE32(h->challenge);
	k->seq = BL_BE32(h->seq);
	k->ack = BL_BE32(h->ack);
	k->ack_bits = BL_BE64(h->ack_bits);
	left = len - (__u32)sizeof(*h);
	switch (k->opcode) {
	case BL_FCP_REQ: {
		const struct bl_fcp_req *q = (const void *)p;

		if (left < sizeof(*q))
			return BL_FCP_R_SHORT;
		if (q->reserved)
			return BL_FCP_R_BAD_BODY;
		k->ntotals = BL_BE16(q->count);
		k->totals = (const void *)(q + 1);
		left -= (__u32)sizeof(*q);
		break;
	}
	case BL_FCP_ALLOC: {
		const struct bl_fcp_alloc *a = (const void *)p;

		if (left < sizeof(*a))
			return BL_FCP_R_SHORT;
		k->base = bl_get48(a->base);
		k->ntotals = a->totals;
		k->nruns = a->runs;
		k->totals = (const void *)(a + 1);
		k->runs = (const void *)(k->totals + k->ntotals);
		left -= (__u32)sizeof(*a);
		break;
	}
	case BL_FCP_ACK:
	case BL_FCP_CALL:
		break;
	case BL_FCP_RESET:
	case BL_FCP_WATCHDOG:
		i = k->opcode == BL_FCP_RESET ? (__u32)sizeof(struct bl_fcp_reset)
					      : (__u32)sizeof(struct bl_fcp_watchdog);
		if (left < i)
			return BL_FCP_R_SHORT;
		k->body = p;
		left -= i;
		break;
	case BL_FCP_REPORT: {
		const struct bl_fcp_report *r = (const void *)p;

		if (left < sizeof(*r))
			return BL_FCP_R_SHORT;
		k->body = r;
		k->ncounts = BL_BE16(r->count);
		k->counts = (const void *)(r + 1);
		left -= (__u32)sizeof(*r);
		break;
	}
	case BL_FCP_FAULTS: {
		const struct bl_fcp_faults *f = (const void *)p;

		if (left < sizeof(*f))
			return BL_FCP_R_SHORT;
		k->body = f;
		k->nlinks = BL_BE16(f->count);
		k->links = (const void *)(f + 1);
		left -= (__u32)sizeof(*f);
		break;
	}
	case BL_FCP_HEARD:
		if (left < sizeof(struct bl_fcp_heard))
			return BL_FCP_R_SHORT;
		k->body = p;
		left -= (__u32)sizeof(struct bl_fcp_heard);
		break;
	default:
		return BL_FCP_R_BAD_OPCODE;
	}
	if (k->ntotals > BL_FCP_TOTALS_MAX || k->nruns > BL_FCP_RUNS_MAX ||
	    k->ncounts > BL_FCP_COUNTS_MAX || k->nlinks > BL_FCP_LINKS_MAX)
		return BL_FCP_R_BAD_LENGTH;
	i = k->ntotals * (__u32)sizeof(*k->totals) + k->nruns * (__u32)sizeof(*k->runs) +
	    k->ncounts * (__u32)sizeof(*k->counts) + k->nlinks * (__u32)sizeof(*k->links);
	if (left != i)
		return left < i ? BL_FCP_R_SHORT : BL_FCP_R_BAD_LENGTH;
	for (i = 0; i < k->ntotals; i++)
		if (BL_BE16(k->totals[i].dst) >= n)
			return BL_FCP_R_BAD_BODY;
	for (i = 0; i < k->nruns; i++)
		if (k->runs[i].which >= k->ntotals || !k->runs[i].count ||
		    (k->runs[i].count > 1 && !k->runs[i].stride))
			return BL_FCP_R_BAD_BODY;
	for (i = 0; i < k->nlinks; i++)
		if (k->links[i].way > 1)
			return BL_FCP_R_BAD_BODY;
	if (k->opcode == BL_FCP_REPORT && !bl_fcp_report_ok(k->body, k->counts, k->ncounts, n))
		return BL_FCP_R_BAD_BODY;
	return BL_FCP_R_OK;
}

/** bl_fcp_seal - write the header of an otherwise complete packet. Returns @len. */
BL_FN __u32 bl_fcp_seal(const struct bl_fcp_params *p, __u64 nonce, __u8 op, __u32 challenge,
			__u32 seq, __u32 ack, __u64 ack_bits, void *packet, __u32 len)
{
	struct bl_fcp_hdr *h = packet;

	h->magic = BL_BE16(BL_FCP_MAGIC);
	h->opcode = BL_FCP_OPCODE_BYTE(op);
	h->flags = 0;
	h->challenge = BL_BE32(challenge);
	h->seq = BL_BE32(seq);
	h->ack = BL_BE32(ack);
	h->ack_bits = BL_BE64(ack_bits);
	h->check = BL_BE64(bl_fcp_checksum(p, nonce, packet, len));
	return len;
}

/* ---- queues of destinations ---- */

BL_CORE void bl_fcp_queue_push(struct bl_fcp_end *e, struct bl_fcp_queue *q, __u32 bit, __u32 dst)
{
	__u32 at;

	if (e->pair[dst].queued & bit)
		return;
	e->pair[dst].queued |= bit;
	at = q->head + q->count++;
	q->item[at >= e->n ? at - e->n : at] = (__u16)dst;
}

/* Removes the oldest entry; the queue must not be empty. */
BL_CORE __u32 bl_fcp_queue_pop(struct bl_fcp_end *e, struct bl_fcp_queue *q, __u32 bit)
{
	__u32 dst = q->item[q->head];

	q->head = q->head + 1 == e->n ? 0 : q->head + 1;
	q->count--;
	e->pair[dst].queued &= ~bit;
	return dst;
}

/** bl_fcp_total_tell - queue @dst's total to be sent, since it changed or may not have arrived. */
BL_CORE void bl_fcp_total_tell(struct bl_fcp_end *e, __u32 dst)
{
	bl_fcp_queue_push(e, &e->tell, BL_FCP_Q_TELL, dst);
}

/* ---- sequence numbers ---- */

/**
 * bl_fcp_session_begin - begin a session in which nothing was sent or received. Counts of packets
 * stay; the caller sets the counts of slots.
 */
BL_CORE void bl_fcp_session_begin(struct bl_fcp_end *e, __u64 nonce)
{
	e->nonce = nonce;
	e->next = 1;
	e->open = 0;
	e->in_max = 0;
	e->in_got = e->in_closed = ~0ULL; /* packets before the first one are not missing */
	e->gap_ns = e->ack_due_ns = 0;
	e->backoff = 0;
}

/**
 * bl_fcp_packet_lost - packet @seq did not arrive: queue the totals that no later packet has
 * carried.
 */
BL_FN void bl_fcp_packet_lost(struct bl_fcp_end *e, __u32 seq)
{
	const struct bl_fcp_sent *s = &e->sent[seq % BL_FCP_WINDOW];
	__u32 i;

	for (i = 0; i < s->n; i++)
		if (e->pair[s->dst[i]].seq == seq)
			bl_fcp_total_tell(e, s->dst[i]);
}

/**
 * bl_fcp_next_seq - the number of a packet that is about to be sent, and its entry, to be filled
 * with its destinations. Never waits for a window: the packet sent 64 packets ago counts as lost.
 */
BL_CORE struct bl_fcp_sent *bl_fcp_next_seq(struct bl_fcp_end *e, __u64 now, __u32 *seq)
{
	struct bl_fcp_sent *s;

	if (e->open >> (BL_FCP_WINDOW - 1))
		bl_fcp_packet_lost(e, e->next - BL_FCP_WINDOW);
	e->open = e->open << 1 | 1;
	*seq = e->next++;
	s = &e->sent[*seq % BL_FCP_WINDOW];
	s->at_ns = now;
	s->n = 0;
	return s;
}

/** bl_fcp_acks_ok - whether the other end acknowledges only packets that were sent. */
BL_CORE int bl_fcp_acks_ok(const struct bl_fcp_end *e, __u32 ack)
{
	return (__s32)(ack - (e->next - 1)) <= 0;
}

/**
 * bl_fcp_acked - process the other end's @ack and @ack_bits: forget the packets that arrived, and
 * treat those as lost that three later ones overtook.
 */
BL_FN void bl_fcp_acked(struct bl_fcp_end *e, __u32 ack, __u64 ack_bits)
{
	__u32 shift = e->next - 1 - ack, k;

	if (shift >= BL_FCP_WINDOW)
		return;
	e->open &= ~((ack_bits << 1 | 1) << shift);
	for (k = shift + BL_FCP_REORDER; k < BL_FCP_WINDOW && e->open >> k; k++) {
		if (!(e->open >> k & 1))
			continue;
		e->open &= ~(1ULL << k);
		e->nacks++;
		bl_fcp_packet_lost(e, e->next - 1 - k);
	}
}

/** bl_fcp_timeout - the time at which the oldest open packet counts as lost. */
BL_CORE __u64 bl_fcp_timeout(const struct bl_fcp_end *e, const struct bl_fcp_params *p)
{
	__u32 k;

	if (!e->open)
		return BL_FCP_NEVER;
	k = 63 - (__u32)__builtin_clzll(e->open);
	return e->sent[(e->next - 1 - k) % BL_FCP_WINDOW].at_ns + (2 * p->rtt_ns << e->backoff);
}

/** bl_fcp_packets_expire - treat the packets whose time is over as lost. */
BL_FN void bl_fcp_packets_expire(struct bl_fcp_end *e, const struct bl_fcp_params *p, __u64 now)
{
	__u32 before = e->backoff;

	while (e->open && bl_fcp_timeout(e, p) <= now) {
		__u32 k = 63 - (__u32)__builtin_clzll(e->open);

		e->open &= ~(1ULL << k);
		e->timeouts++;
		bl_fcp_packet_lost(e, e->next - 1 - k);
		if (e->backoff == before && e->backoff < BL_FCP_BACKOFF)
			e->backoff++;
	}
}

/** bl_fcp_seq_check - whether packet @seq of this session may be accepted. Changes nothing. */
BL_CORE enum bl_fcp_reason bl_fcp_seq_check(const struct bl_fcp_end *e, __u32 seq)
{
	__u32 ahead = seq - e->in_max, back = e->in_max - seq;

	if ((__s32)ahead > 0)
		return ahead > BL_FCP_REACH ? BL_FCP_R_BAD_SEQ : BL_FCP_R_OK;
	if (back >= BL_FCP_WINDOW)
		return BL_FCP_R_OLD;
	return e->in_closed >> back & 1 ? BL_FCP_R_DUPLICATE : BL_FCP_R_OK;
}

/** bl_fcp_seq_take - record packet @seq as received. */
BL_FN void bl_fcp_seq_take(struct bl_fcp_end *e, __u32 seq, __u64 now)
{
	__u32 ahead = seq - e->in_max;

	if ((__s32)ahead > 0) {
		e->in_got = ahead < BL_FCP_WINDOW ? e->in_got << ahead : 0;
		e->in_closed = ahead < BL_FCP_WINDOW ? e->in_closed << ahead : 0;
		e->in_max = seq;
		ahead = 0;
	}
	e->in_got |= 1ULL << (e->in_max - seq);
	e->in_closed |= 1ULL << (e->in_max - seq);
	if (e->in_closed == ~0ULL) {
		e->gap_ns = 0;
	} else if (!e->gap_ns) {
		e->gap_ns = now;
		e->gap_max = e->in_max;
	}
}

/**
 * bl_fcp_gaps_close - give up packets that have been missing for @reorder_ns; they are refused from
 * now on. Returns 1 if no packet is missing any more.
 */
BL_CORE int bl_fcp_gaps_close(struct bl_fcp_end *e, const struct bl_fcp_params *p, __u64 now)
{
	__u32 back = e->in_max - e->gap_max;

	if (!e->gap_ns)
		return 1;
	if ((__s64)(now - e->gap_ns) < (__s64)p->reorder_ns)
		return 0;
	e->in_closed |= back < BL_FCP_WINDOW ? ~0ULL << back : 0;
	e->gap_ns = e->in_closed == ~0ULL ? 0 : now;
	e->gap_max = e->in_max;
	return !e->gap_ns;
}

BL_CORE __u64 bl_fcp_ack_bits(const struct bl_fcp_end *e)
{
	return e->in_got >> 1;
}

/** bl_fcp_heard - a packet of this session was accepted. @owed: 1: it needs an acknowledgement. */
BL_CORE void bl_fcp_heard(struct bl_fcp_end *e, const struct bl_fcp_params *p, __u64 now, int owed)
{
	e->heard_ns = now;
	e->backoff = 0;
	if (owed && !e->ack_due_ns)
		e->ack_due_ns = now + p->ack_ns;
}

/* Writes up to @max queued totals into @t and the packet's entry. Returns how many. */
BL_FN __u32 bl_fcp_put_totals(struct bl_fcp_end *e, struct bl_fcp_sent *s, __u32 seq,
			      struct bl_fcp_total *t, __u32 max)
{
	__u32 i;

	for (i = 0; i < max && e->tell.count; i++) {
		__u32 dst = bl_fcp_queue_pop(e, &e->tell, BL_FCP_Q_TELL);

		e->pair[dst].seq = seq;
		s->dst[s->n++] = (__u16)dst;
		bl_fcp_total_put(&t[i], dst, e->pair[dst].total);
	}
	return i;
}

#endif
