/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What both ends of the Fastpass control protocol share (Fastpass section 5.3): packets, the window
 *of sequence numbers, and the aggregate counts. core/fastpass/fcp_host_core.h and
 *core/fastpass/fcp_arb_core.h are the ends. No socket, no clock: time and random numbers are
 *arguments.
 *
 * The idea: what is said is a count since the session began ("100 slots wanted for host 7 so far"),
 *so hearing it twice or late changes nothing, and a lost packet is never sent again; the present
 *count goes out instead. Sequence numbers serve two ends only: to know which counts the other has
 *heard, and to take each ALLOC at most once.
 *
 * Example, 2 slots wanted for host 7 and the first ALLOC lost:
 *
 *	host: REQ seq 1 {7: 2}		arbiter: told 2
 *	arbiter: ALLOC seq 1 {7: 1}, slot 900	(lost)
 *	arbiter: ALLOC seq 2 {7: 2}, slot 901	host: told 2, received 1; seq 1 is missing: it waits
 *	host, 100 us later: seq 1 is given up (it will be refused if it comes); 2 - 1 = 1 slot lost,
 *so 1 more is wanted: REQ seq 2 {7: 3} arbiter: 3 - 2 = 1 new slot
 *
 * Had seq 2 been lost too, no acknowledgement would have come, and the arbiter would send the
 *totals alone: ALLOC seq 3 {7: 2}, no run.
 */
#ifndef BARLINE_FCP_CORE_H
#define BARLINE_FCP_CORE_H

#include "maps/fcp_abi.h"
#include "core/siphash_core.h"
#include "core/wire_core.h"

#define BL_FCP_REORDER 3 /* packets: missing behind so many later ones: lost, as in RFC 6675 */
/* packets: a sequence number further ahead is no loss but nonsense */
#define BL_FCP_REACH   (1U << 20)
#define BL_FCP_BACKOFF 3 /* the timeout doubles that often */
#define BL_FCP_NEVER   (~0ULL)

/**
 * struct bl_fcp_pkt - a parsed packet; pointers lead into it. Host order.
 * @opcode, @challenge, @seq, @ack, @ack_bits: from the header.
 * @totals, @ntotals: REQ, ALLOC. @runs, @nruns, @base: ALLOC. @body: RESET, WATCHDOG, REPORT,
 * FAULTS, HEARD. @counts, @ncounts: REPORT. @links, @nlinks: FAULTS.
 */
struct bl_fcp_pkt {
	__u8 opcode;
	__u32 challenge;
	__u32 seq;
	__u32 ack;
	__u64 ack_bits;
	const struct bl_fcp_total *totals;
	__u32 ntotals;
	const struct bl_fcp_run *runs;
	__u32 nruns;
	__u64 base;
	const void *body;
	const struct bl_fcp_count *counts;
	__u32 ncounts;
	const struct bl_fcp_link *links;
	__u32 nlinks;
};

/**
 * struct bl_fcp_slots - a run in host order: slots @first + k * @stride, k < @count, to @dst on
 * @path.
 */
struct bl_fcp_slots {
	__u64 first;
	__u32 dst;
	__u32 count;
	__u32 stride;
	__u8 path;
};

/**
 * struct bl_fcp_params - what both ends are told at the start; the same for all of an arbiter's
 *endpoints.
 * @secret: shared by hosts and arbiters; 0, 0: none, and checksums only tell sessions apart.
 * @table: bl_fcp_table() of the list of endpoints.
 * @rtt_ns: a round trip between host and arbiter, generously: at most one RESET in it; timeout = 2
 *@rtt_ns.
 * @reorder_ns: an ALLOC that is missing for that long is given up.
 * @ack_ns: an acknowledgement waits that long for something to travel with.
 * @pace_ns: host: what it wants more of is said that long after its last packet at the soonest,
 *	unless it fills a packet or can travel with an acknowledgement, so that FCP takes no more
 *	than a few per cent of a slow link.
 * @keep_ns: host: asks again after that long without an answer while it wants slots.
 * @hold_ns: host: an arbiter of an older term is believed after that long without a word from the
 *present one.
 * @dead_ns: arbiter: a host that acknowledges nothing for that long has no session any more.
 * @quota: slots that one endpoint may have waiting in the allocator; what it wants beyond comes in
 *as those are given.
 */
struct bl_fcp_params {
	__u64 secret[2];
	__u32 table;
	__u32 quota;
	__u64 rtt_ns;
	__u64 reorder_ns;
	__u64 ack_ns;
	__u64 pace_ns;
	__u64 keep_ns;
	__u64 hold_ns;
	__u64 dead_ns;
};
#define BL_FCP_PARAMS_DEFAULT                                                               \
	{                                                                                   \
		.quota = 1U << 16, .rtt_ns = 200000, .reorder_ns = 100000, .ack_ns = 50000, \
		.keep_ns = 1000000, .hold_ns = 100000000, .dead_ns = 1000000000             \
	}

/**
 * struct bl_fcp_pair - counts for one destination, in one session.
 * @total: what this end tells: slots wanted (host), slots given (arbiter).
 * @told: what the other end told last, the highest: slots given (host), slots wanted (arbiter).
 * @done: host: slots received, or given up and wanted anew: @told - @done are under way or lost.
 * Arbiter: slots handed to the allocator.
 * @seq: of the last packet that carried @total.
 * @queued: BL_FCP_Q_*: queues that it is in.
 */
struct bl_fcp_pair {
	__u32 total;
	__u32 told;
	__u32 done;
	__u32 seq;
	__u32 queued;
};
#define BL_FCP_Q_TELL 1 /* @total must be told */
#define BL_FCP_Q_LOOK 2 /* @told differs from @done */

/**
 * struct bl_fcp_queue - destinations, first in first out, each once. @item: as many as there are
 * pairs.
 */
struct bl_fcp_queue {
	__u16 *item;
	__u32 head;
	__u32 count;
};

/** struct bl_fcp_sent - a packet that was not acknowledged yet: what it told. */
struct bl_fcp_sent {
	__u64 at_ns;
	__u32 n;
	__u16 dst[BL_FCP_TOTALS_MAX];
};

/**
 * struct bl_fcp_end - one end of a session; one thread.
 * @pair, @n: by destination; the caller's memory, like @sent and the queues'.
 * @tell, @look: queues BL_FCP_Q_TELL and BL_FCP_Q_LOOK.
 * @nonce: of the session; 0: none.
 * @next: sequence number of the next packet. @open: bit k: packet @next - 1 - k is neither
 * acknowledged nor lost. @sent: by seq % BL_FCP_WINDOW.
 * @in_max: highest sequence number that came. @in_got, @in_closed: bit k: @in_max - k came; came or
 * was given up.
 * @gap_ns: since when something before @gap_max is missing; 0: nothing is.
 * @ack_due_ns: 0: nothing to acknowledge.
 * @heard_ns: last packet that was taken. @sent_ns: last packet that went out. @backoff: timeouts
 * since @heard_ns, at most BL_FCP_BACKOFF.
 * @count: packets that came, by enum bl_fcp_reason. @timeouts, @nacks: packets lost by time, by
 * acknowledgements. @tx: packets sent.
 */
struct bl_fcp_end {
	struct bl_fcp_pair *pair;
	__u32 n;
	__u32 next;
	struct bl_fcp_queue tell;
	struct bl_fcp_queue look;
	__u64 nonce;
	struct bl_fcp_sent *sent;
	__u64 open;
	__u64 in_got;
	__u64 in_closed;
	__u32 in_max;
	__u32 gap_max;
	__u64 gap_ns;
	__u64 ack_due_ns;
	__u64 heard_ns;
	__u64 sent_ns;
	__u32 backoff;
	__u32 reserved;
	__u64 count[BL_FCP_R_COUNT];
	__u64 timeouts;
	__u64 nacks;
	__u64 tx;
};

/** bl_fcp_table - hash over the list of endpoints: @n addresses of 16 bytes, in order. */
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

/* what a REPORT says: peers below @n in order, none outside of its range, each column once */
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

/** bl_fcp_slots_at - run @i of an ALLOC; it was checked by bl_fcp_parse(). */
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
 * bl_fcp_parse - from @len bytes, aligned to 8, to @k. Everything that can be checked without a
 * session is: after BL_FCP_R_OK all entries lie within the packet, all destinations are below @n,
 * all runs hold slots. What is longer than it says is refused: nothing rides along.
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

/** bl_fcp_seal - header of a packet that is complete but for it; returns @len. */
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

/* the oldest; the caller knows that there is one */
BL_CORE __u32 bl_fcp_queue_pop(struct bl_fcp_end *e, struct bl_fcp_queue *q, __u32 bit)
{
	__u32 dst = q->item[q->head];

	q->head = q->head + 1 == e->n ? 0 : q->head + 1;
	q->count--;
	e->pair[dst].queued &= ~bit;
	return dst;
}

/** bl_fcp_total_tell - @dst's total changed, or may not have been heard. */
BL_CORE void bl_fcp_total_tell(struct bl_fcp_end *e, __u32 dst)
{
	bl_fcp_queue_push(e, &e->tell, BL_FCP_Q_TELL, dst);
}

/* ---- sequence numbers ---- */

/**
 * bl_fcp_session_begin - a session: nothing was sent, nothing came. Counts of packets stay; the
 * counts of slots are the caller's to set.
 */
BL_CORE void bl_fcp_session_begin(struct bl_fcp_end *e, __u64 nonce)
{
	e->nonce = nonce;
	e->next = 1;
	e->open = 0;
	e->in_max = 0;
	e->in_got = e->in_closed = ~0ULL; /* what lies before the first packet is not missing */
	e->gap_ns = e->ack_due_ns = 0;
	e->backoff = 0;
}

/** bl_fcp_packet_lost - packet @seq did not arrive: what no later packet has told must be told
 * again. */
BL_FN void bl_fcp_packet_lost(struct bl_fcp_end *e, __u32 seq)
{
	const struct bl_fcp_sent *s = &e->sent[seq % BL_FCP_WINDOW];
	__u32 i;

	for (i = 0; i < s->n; i++)
		if (e->pair[s->dst[i]].seq == seq)
			bl_fcp_total_tell(e, s->dst[i]);
}

/**
 * bl_fcp_next_seq - number of a packet that is about to go out, and its entry, to be filled with
 * what it tells. Never waits for a window: what was sent 64 packets ago counts as lost.
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

/** bl_fcp_acks_ok - whether the other end acknowledges only what was sent. */
BL_CORE int bl_fcp_acks_ok(const struct bl_fcp_end *e, __u32 ack)
{
	return (__s32)(ack - (e->next - 1)) <= 0;
}

/**
 * bl_fcp_acked - the other end's @ack and @ack_bits: forget what came, lose what three later ones
 * overtook.
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

/** bl_fcp_timeout - when the oldest open packet is lost by time. */
BL_CORE __u64 bl_fcp_timeout(const struct bl_fcp_end *e, const struct bl_fcp_params *p)
{
	__u32 k;

	if (!e->open)
		return BL_FCP_NEVER;
	k = 63 - (__u32)__builtin_clzll(e->open);
	return e->sent[(e->next - 1 - k) % BL_FCP_WINDOW].at_ns + (2 * p->rtt_ns << e->backoff);
}

/** bl_fcp_packets_expire - lose what is due. */
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

/** bl_fcp_seq_check - may packet @seq of this session be taken? Changes nothing. */
BL_CORE enum bl_fcp_reason bl_fcp_seq_check(const struct bl_fcp_end *e, __u32 seq)
{
	__u32 ahead = seq - e->in_max, back = e->in_max - seq;

	if ((__s32)ahead > 0)
		return ahead > BL_FCP_REACH ? BL_FCP_R_BAD_SEQ : BL_FCP_R_OK;
	if (back >= BL_FCP_WINDOW)
		return BL_FCP_R_OLD;
	return e->in_closed >> back & 1 ? BL_FCP_R_DUPLICATE : BL_FCP_R_OK;
}

/** bl_fcp_seq_take - it is taken. */
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
 * bl_fcp_gaps_close - what has been missing for @reorder_ns is given up; it is refused from now
 * on. Returns 1 if nothing is missing any more.
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

/** bl_fcp_heard - a packet of this session was taken; @owed: it wants an acknowledgement. */
BL_CORE void bl_fcp_heard(struct bl_fcp_end *e, const struct bl_fcp_params *p, __u64 now, int owed)
{
	e->heard_ns = now;
	e->backoff = 0;
	if (owed && !e->ack_due_ns)
		e->ack_due_ns = now + p->ack_ns;
}

/* up to @max totals that must be told, into @t and the packet's entry; returns how many */
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
