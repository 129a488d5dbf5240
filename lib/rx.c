// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Receiving: the ring into the reorder queue, the queue out in order (1Pipe section 4.1).
 *
 * The order of two reads is what keeps the promise: the barriers first, the ring second. What the
 * ring holds then is everything below that barrier. A record that is still being written hides
 * those behind it: then the barrier is not believed yet.
 *
 * Sequence numbers per sender find duplicates and gaps; a gap is final (best effort) and is NAKed
 * at once. Credits go back when a frame has left the reorder queue, so a receiver that does not
 * keep up closes its senders' windows instead of its ring.
 */
#include "tx_nic.h"

#define RB_BUSY    (1u << 31) /* linux/bpf.h BPF_RINGBUF_BUSY_BIT */
#define RB_DISCARD (1u << 30)
#define RB_HDR     8

/* ---- buffers ---- */

struct bl_buf *bl_buf_get(struct bl_endpoint *ep, uint32_t len)
{
	struct bl_buf **list = len <= 216    ? &ep->free_small
			       : len <= 1496 ? &ep->free_full
					     : &ep->free_jumbo;
	uint32_t room = len <= 216 ? 216 : len <= 1496 ? 1496 : BL_BODY_MAX;
	struct bl_buf *b = *list;

	if (b) {
		*list = b->free_next;
		return b;
	}
	b = malloc(sizeof(*b) + room);
	if (b)
		b->room = room;
	return b;
}

void bl_buf_put(struct bl_endpoint *ep, struct bl_buf *b)
{
	struct bl_buf **list = b->room == 216    ? &ep->free_small
			       : b->room == 1496 ? &ep->free_full
						 : &ep->free_jumbo;

	b->free_next = *list;
	*list = b;
}

static void free_list(struct bl_buf *b)
{
	while (b) {
		struct bl_buf *n = b->free_next;

		free(b);
		b = n;
	}
}

static void free_bigs(struct bl_big *b)
{
	while (b) {
		struct bl_big *n = b->next;

		free(b);
		b = n;
	}
}

void bl_lent_free(struct bl_lent *lent)
{
	free_list(lent->bufs);
	free_bigs(lent->bigs);
}

void bl_rx_free(struct bl_endpoint *ep)
{
	struct bl_rq_frame *f;

	while ((f = bl_rq_pop(&ep->rq, UINT64_MAX)))
		free(f);
	bl_lent_free(&ep->lent);
	free(ep->cur);
	free_list(ep->free_small);
	free_list(ep->free_full);
	free_list(ep->free_jumbo);
	free(ep->frag_buf);
	free(ep->failed);
}

void bl_rx_peer_free(struct bl_peer *p)
{
	free_bigs(p->rx.big);
}

/* ---- credits and NAKs ---- */

static void credit_due(struct bl_endpoint *ep, struct bl_peer *p, bool now)
{
	p->rx.credit_now |= now;
	if (p->rx.credit_due || p->self)
		return;
	p->rx.credit_due = true;
	p->credit_next = ep->credits;
	ep->credits = p;
}

uint32_t bl_rx_window(const struct bl_endpoint *ep)
{
	/*
	 * an eighth of the ring stays free for credits, probes and senders that we have not heard
	 * of
	 */
	uint32_t n = ep->nsenders > 8 ? ep->nsenders : 8, all = ep->ring_frames * 7 / 8;
	/*
	 * nor is the ring of a NIC larger, on the way here or at the sender's; who asks for a
	 * larger ring than the usual one has a network that holds more
	 */
	uint32_t w =
		(ep->ring_bytes > BL_RING_BYTES || all < BL_NIC_FRAMES ? all : BL_NIC_FRAMES) / n;

	return w < BL_WINDOW_FIRST ? BL_WINDOW_FIRST : w > BL_WINDOW_MAX ? BL_WINDOW_MAX : w;
}

#define CREDITS_ASK 8u /* for so many at a time room is asked for */

/*
 * What finds no room in the NIC's ring waits: a CREDIT that is lost there costs its sender a PROBE,
 * 25 ms later.
 */
void bl_rx_credits(struct bl_endpoint *ep)
{
	uint32_t near = bl_rx_window(ep), far = ep->credits ? bl_nic_window(ep, near) : near,
		 room = 0, w;
	struct bl_peer *p;

	for (; (p = ep->credits); room -= !p->local) {
		/*
		 * frames leave in the order of their numbers: the first one queued is the first one
		 * not free
		 */
		uint32_t psn = p->rq.head ? p->rq.head->psn : p->rx.expected;
		uint8_t body[sizeof(struct bl_credit)];

		/* not of another place, where the receiver was before (place_core.h) */
		if (p->rx.expected - psn > BL_OLD_MAX)
			psn = p->rx.expected;
		if (!room) {
			bl_nic_witness(ep);
			room = bl_nic_room(ep, CREDITS_ASK, BL_NIC_CONTROLS);
		}
		if (!room)
			break;
		w = p->local ? near : far;
		ep->credits = p->credit_next;
		p->rx.credit_due = false;
		if (!p->rx.credit_now && psn - p->rx.credit_psn < (p->rx.credit_window + 3) / 4)
			continue;
		p->rx.credit_now = false;
		p->rx.credit_psn = psn;
		p->rx.credit_window = w;
		bl_store32(body, psn);
		bl_store16(body + 4, p->rx.incarnation);
		bl_store16(body + 6, w);
		bl_tx_control(ep, p, BL_OP_CREDIT, 0, body, sizeof(body));
		ep->st.credits_sent++;
	}
	bl_nic_witness(ep);
	if (ep->credits)
		bl_tx_wake_at(ep, bl_mono() + BL_NIC_WAIT_NS);
}

static void nak(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint32_t count,
		uint8_t why, uint8_t item)
{
	uint8_t body[sizeof(struct bl_nak)];

	if (p->self) {
		bl_store32(body, psn);
		bl_store32(body + 4, count);
		bl_store16(body + 8, ep->incarnation);
		body[10] = why;
		body[11] = item;
		bl_tx_nak(ep, p, body, sizeof(body));
		return;
	}
	while (count) {
		uint32_t n = count < 2 * BL_WINDOW_MAX ? count : 2 * BL_WINDOW_MAX;

		bl_store32(body, psn);
		bl_store32(body + 4, n);
		bl_store16(body + 8, p->rx.incarnation);
		body[10] = why;
		body[11] = item;
		bl_tx_control(ep, p, BL_OP_NAK, 0, body, sizeof(body));
		ep->st.naks_sent++;
		psn += n;
		count -= n;
		if (count > 64 * BL_WINDOW_MAX)
			break; /* no sender has so many outstanding: a stranger's numbers are not
				  worth a flood */
	}
}

/* ---- sequence numbers ---- */

/* The sender restarted, or is new: its numbers begin here. */
static void begin(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation, uint32_t psn)
{
	if (!p->rx.known) {
		p->rx.known = true;
		ep->nsenders++;
		if (!p->local)
			bl_nic_sender(ep);
	}
	free_bigs(p->rx.big);
	p->rx.big = NULL;
	p->rx.big_bytes = p->rx.nbigs = 0;
	p->rx.incarnation = incarnation;
	/*
	 * a first number within the first window: those before it were lost. Beyond: we joined in
	 * the middle of a stream
	 */
	p->rx.expected = psn < BL_WINDOW_FIRST ? 0 : psn;
	p->rx.odd.known = 0;
	p->rx.credit_psn = p->rx.expected;
	p->rx.credit_window = BL_WINDOW_FIRST;
	credit_due(ep, p, true);
}

static void broken_bigs(struct bl_peer *p)
{
	struct bl_big *b;

	for (b = p->rx.big; b; b = b->next)
		if (b->done < b->total && !b->broken) {
			b->broken = true;
			b->why = BL_NAK_INCOMPLETE;
		}
}

/*
 * Returns false for a frame that is not to be taken: its number was seen before, or cannot be
 * outstanding. @next: the number after it; @psn itself for a PROBE.
 */
static bool number(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation, uint32_t psn,
		   uint32_t next)
{
	if (!p->rx.known || p->rx.incarnation != incarnation)
		begin(ep, p, incarnation, psn);
	switch (bl_place_classify(&p->rx.odd, p->rx.expected, psn, next)) {
	case BL_PLACE_OLD:
		ep->st.duplicates += next != psn;
		return false;
	case BL_PLACE_ODD:
		ep->st.refused++;
		if (next != psn)
			nak(ep, p, psn, 1, BL_NAK_LOST, BL_NAK_WHOLE);
		credit_due(ep, p, true);
		return false;
	case BL_PLACE_ANEW:
		/* nobody knows what is missing between there and here */
		broken_bigs(p);
		credit_due(ep, p, true);
		p->rx.expected = psn;
		break;
	case BL_PLACE_FITS:
		break;
	}
	if (psn != p->rx.expected) {
		ep->st.lost_frames += psn - p->rx.expected;
		broken_bigs(p);
		nak(ep, p, p->rx.expected, psn - p->rx.expected, BL_NAK_LOST, BL_NAK_WHOLE);
		credit_due(ep, p, true);
	}
	p->rx.expected = next;
	return true;
}

/* ---- frames ---- */

static void on_data(struct bl_endpoint *ep, struct bl_peer *p, uint64_t ts, uint32_t psn,
		    const uint8_t *body, uint32_t len)
{
	struct bl_items it;
	struct bl_buf *b;

	if (bl_items_open(&it, body, len) < 0) {
		ep->st.malformed++;
		nak(ep, p, psn, 1, BL_NAK_MALFORMED, BL_NAK_WHOLE);
		return;
	}
	if (bl_rq_late(&ep->rq, &p->rq, ts, psn)) {
		ep->st.late_dropped++;
		nak(ep, p, psn, 1, BL_NAK_LATE, BL_NAK_WHOLE);
		credit_due(ep, p, false);
		return;
	}
	b = bl_buf_get(ep, len);
	if (b) {
		b->rq.ts = ts;
		b->rq.psn = psn;
		b->peer = p;
		b->len = len;
		memcpy(b->body, body, len);
		if (!bl_rq_push(&ep->rq, &p->rq, &b->rq))
			return;
		bl_buf_put(ep, b);
	}
	nak(ep, p, psn, 1, BL_NAK_NO_MEMORY, BL_NAK_WHOLE);
}

static void on_frag(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len)
{
	struct bl_big *b, **at;
	struct bl_frag_view v;

	credit_due(ep, p, false);
	if (bl_frag_open(&v, body, len)) {
		ep->st.malformed++;
		return;
	}
	for (at = &p->rx.big; (b = *at); at = &b->next)
		if (b->id == v.msg_id)
			break;
	if (!b) {
		bool fits = p->rx.big_bytes + v.total <= BL_BIG_MAX;

		if (p->rx.nbigs == BL_BIGS_MAX)
			return;
		b = malloc(sizeof(*b) + (fits ? v.total : 0));
		if (!b)
			return; /* its reference will find nothing, and say so */
		*b = (struct bl_big){ .id = v.msg_id,
				      .total = v.total,
				      .broken = !fits,
				      .why = fits ? 0 : BL_NAK_NO_MEMORY };
		*at = b;
		p->rx.nbigs++;
		if (fits)
			p->rx.big_bytes += v.total;
	}
	if (b->broken || b->total != v.total || b->done != v.offset) {
		if (!b->broken) {
			b->broken = true;
			b->why = BL_NAK_INCOMPLETE;
		}
		return;
	}
	memcpy(b->data + v.offset, v.data, v.len);
	b->done += v.len;
}

void bl_rx_self_big(struct bl_endpoint *ep, struct bl_peer *p, struct bl_big *g)
{
	struct bl_big **at = &p->rx.big;

	while (*at)
		at = &(*at)->next;
	g->next = NULL;
	g->done = g->total;
	*at = g;
	p->rx.nbigs++;
}

int bl_rx_self(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *frame, uint32_t len,
	       uint64_t ts, uint32_t psn)
{
	struct bl_buf *b = bl_buf_get(ep, len - (uint32_t)sizeof(struct bl_hdr));

	if (!b)
		return -ENOMEM;
	b->rq.ts = ts;
	b->rq.psn = psn;
	b->peer = p;
	b->len = len - (uint32_t)sizeof(struct bl_hdr);
	memcpy(b->body, frame + sizeof(struct bl_hdr), b->len);
	if (bl_rq_push(&ep->rq, &p->rq, &b->rq)) {
		bl_buf_put(ep, b);
		return -ENOMEM;
	}
	return 0;
}

/* Returns false if there is no memory for it: it shall stay in the ring. */
static bool on_record(struct bl_endpoint *ep, const struct bl_rec *rec)
{
	const uint8_t *body = (const uint8_t *)(rec + 1);
	uint16_t incarnation;
	struct bl_peer *p;

	p = bl_peer_get(ep, rec->saddr, rec->sport);
	if (!p && rec->opcode == BL_OP_PREP)
		return false;
	ep->st.frames_received++;
	if (!p || p->self || rec->len < sizeof(struct bl_data)) {
		ep->st.malformed++;
		return true;
	}
	incarnation = (uint16_t)bl_load16(body);
	if (rec->relayed)
		bl_forward_heard(p);
	switch (rec->opcode) {
	case BL_OP_DATA:
		if (number(ep, p, incarnation, rec->psn, rec->psn + 1))
			on_data(ep, p, rec->ts, rec->psn, body, rec->len);
		break;
	case BL_OP_FRAG:
		if (number(ep, p, incarnation, rec->psn, rec->psn + 1))
			on_frag(ep, p, body, rec->len);
		break;
	case BL_OP_PROBE:
		/*
		 * everything before psn was sent before this frame, on the same path: what is not
		 * here is lost
		 */
		number(ep, p, incarnation, rec->psn, rec->psn);
		credit_due(ep, p, true);
		break;
	case BL_OP_CREDIT:
		bl_tx_credit(ep, p, body, rec->len);
		break;
	case BL_OP_NAK:
		bl_tx_nak(ep, p, body, rec->len);
		break;
	case BL_OP_PREP:
		if (!bl_rrx_prep(ep, p, rec->ts, rec->psn, body, rec->len))
			break;
		ep->st.frames_received--; /* it will be received later */
		return false;
	case BL_OP_OPEN:
		bl_rrx_open(ep, p, rec->psn, incarnation);
		break;
	case BL_OP_WINDOW:
		bl_rtx_window(ep, p, body, rec->len);
		break;
	case BL_OP_RECALL:
		bl_rrx_recall(ep, p, rec->psn, body, rec->len);
		break;
	case BL_OP_RECALLED:
		bl_recall_answer(ep, p, rec->psn, body, rec->len);
		break;
	default:
		ep->st.malformed++;
	}
	return true;
}

/*
 * The commit barrier as far as it concerns this endpoint. Of who is out: the last one that its host
 * had received before anybody could be told. Later ones may have passed what senders have recalled
 * since without asking here. The order of the two reads counts: an endpoint that is not out yet was
 * a member when the barrier was published.
 */
static uint64_t commit_now(struct bl_endpoint *ep)
{
	uint64_t commit = __atomic_load_n(&ep->page->commit, __ATOMIC_ACQUIRE);

	if (!bl_is_out(ep))
		return commit;
	return __atomic_load_n(&ep->inflight[ep->slot].out_upto, __ATOMIC_RELAXED);
}

uint64_t bl_rx_drain(struct bl_endpoint *ep)
{
	/*
	 * acquire: nothing of the ring is read before them; pairs with bl_publish() in
	 * bpf/host/host.bpf.c
	 */
	uint64_t barrier = __atomic_load_n(&ep->page->barrier, __ATOMIC_ACQUIRE);
	uint64_t commit = commit_now(ep);
	bool out = ep->put_out;
	/*
	 * after the barriers: C does not pass a T before its announcement is there. Before the
	 * ring: what came before it is in it
	 */
	uint64_t last = bl_recall_last(ep);
	uint64_t cons = *ep->ring_cons; /* ours */
	uint64_t prod = __atomic_load_n(ep->ring_prod, __ATOMIC_ACQUIRE);
	uint64_t freed = cons;
	bool whole = true;

	ep->commit_was = ep->commit;
	while (cons < prod) {
		const uint8_t *at = ep->ring_data + (cons & (ep->ring_bytes - 1));
		uint32_t len = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);

		if (len & RB_BUSY ||
		    (!(len & RB_DISCARD) && !on_record(ep, (const void *)(at + RB_HDR)))) {
			whole = false; /* what hides behind it may be below the new barriers */
			break;
		}
		len &= ~RB_DISCARD;
		cons += (len + RB_HDR + 7) & ~7u;
		if (cons - freed > ep->ring_bytes / 16) {
			__atomic_store_n(ep->ring_cons, cons, __ATOMIC_RELEASE);
			freed = cons;
		}
	}
	if (cons != freed)
		__atomic_store_n(ep->ring_cons, cons, __ATOMIC_RELEASE);
	if (whole && barrier > ep->barrier)
		ep->barrier = barrier;
	if (whole && !ep->ended && commit > ep->commit)
		ep->commit = commit;
	ep->ended |= whole && out;
	return last;
}

/*
 * The frames of @p that lie in the queue will not be delivered: NAKed in runs of consecutive
 * numbers.
 */
static void leave_queued(struct bl_endpoint *ep, struct bl_peer *p)
{
	const struct bl_rq_frame *f = p->rq.head;

	while (f) {
		uint32_t first = f->psn, n = 0;

		for (; f && f->psn == first + n && n < 2 * BL_WINDOW_MAX; f = f->next)
			n++;
		nak(ep, p, first, n, BL_NAK_LEFT, BL_NAK_WHOLE);
	}
}

/*
 * What the helper took out, and the application never had; older frames than a sender remembers are
 * no use to it. The messages of a frame follow one another here, so one NAK is enough where the
 * first of them is here.
 */
static void leave_shelf(struct bl_endpoint *ep)
{
	const struct bl_shelved *whole = NULL;
	const struct bl_chunk *c;
	uint32_t i;

	for (c = ep->shelf.head; c; c = c->next) {
		for (i = c->at; i < c->n; i++) {
			const struct bl_shelved *m = &c->m[i];

			if (m->peer->self || m->peer->rx.expected - m->psn > 2 * BL_WINDOW_MAX)
				continue;
			if (whole && whole->peer == m->peer && whole->psn == m->psn)
				continue;
			whole = m->item ? NULL : m;
			nak(ep, m->peer, m->psn, 1, BL_NAK_LEFT, m->item ? m->item : BL_NAK_WHOLE);
		}
	}
}

/*
 * A sender that hears nothing more must take what it sent for unknown. So who ends in order says
 * what it has delivered, and what of that which came it will not deliver. What is on the way still
 * finds nobody.
 */
void bl_rx_leave(struct bl_endpoint *ep)
{
	const struct bl_buf *b = ep->cur;
	struct bl_peer *p;
	uint32_t i;

	bl_rx_drain(ep);
	leave_shelf(ep);
	for (i = 0; b && i < ep->cur_items.left; i++)
		nak(ep, b->peer, b->rq.psn, 1, BL_NAK_LEFT, (uint8_t)(ep->cur_index + i));
	for (p = ep->peers; p; p = p->all_next) {
		uint8_t body[sizeof(struct bl_credit)];

		if (!p->rx.known || p->self)
			continue;
		leave_queued(ep, p);
		bl_store32(body, p->rx.expected);
		bl_store16(body + 4, p->rx.incarnation);
		bl_store16(body + 6, BL_WINDOW_FIRST);
		bl_tx_control(ep, p, BL_OP_CREDIT, 0, body, sizeof(body));
	}
}

/* ---- delivery ---- */

bool bl_rx_ready(const struct bl_endpoint *ep)
{
	const struct bl_rq_frame *f = bl_rq_min(&ep->rq);

	return ep->cur || (f && f->ts < ep->barrier);
}

int bl_rx_count_ready(const struct bl_endpoint *ep)
{
	int n = 0;
	uint32_t i;

	if (ep->cur)
		n += (int)ep->cur_items.left;
	/* each sender's first frames: at least this many, without taking the queue apart */
	for (i = 0; i < ep->rq.used && n < 64; i++) {
		const struct bl_rq_frame *f = ep->rq.heap[i]->head;

		for (; f && f->ts < ep->barrier && n < 64; f = f->next)
			n += (int)bl_load16(((const struct bl_buf *)f)->body + 2);
	}
	return n < 64 ? n : 64;
}

void bl_rx_release(struct bl_endpoint *ep, struct bl_lent *lent)
{
	struct bl_buf *b;

	while ((b = lent->bufs)) {
		lent->bufs = b->free_next;
		bl_buf_put(ep, b);
	}
	free_bigs(lent->bigs);
	lent->bigs = NULL;
}

static void unlink_big(struct bl_peer *p, struct bl_big **at)
{
	struct bl_big *b = *at;

	*at = b->next;
	p->rx.nbigs--;
	if (!p->self && !(b->broken && b->why == BL_NAK_NO_MEMORY))
		p->rx.big_bytes -= b->total;
}

/* the message that a reference names, if it is complete; it moves to the spent ones */
static struct bl_big *take_big(struct bl_endpoint *ep, struct bl_peer *p,
			       const struct bl_item *item, uint8_t *why)
{
	struct bl_big *b, **at;

	*why = BL_NAK_INCOMPLETE;
	/*
	 * references come in the order of their messages: those of the older ones were lost, and
	 * nobody else would free them
	 */
	while ((b = p->rx.big) && bl_psn_before(b->id, item->msg_id)) {
		unlink_big(p, &p->rx.big);
		free(b);
	}
	for (at = &p->rx.big; (b = *at); at = &b->next)
		if (b->id == item->msg_id)
			break;
	if (!b)
		return NULL;
	unlink_big(p, at);
	b->next = ep->lent.bigs;
	ep->lent.bigs = b;
	if (b->broken || b->done != b->total || b->total != item->len) {
		if (b->why)
			*why = b->why;
		return NULL;
	}
	return b;
}

int bl_rx_deliver(struct bl_endpoint *ep, struct bl_delivery *out, size_t max)
{
	size_t n = 0;

	while (n < max) {
		struct bl_item item;
		struct bl_delivery *d = &out[n];
		struct bl_buf *b = ep->cur;

		if (!b) {
			b = (struct bl_buf *)bl_rq_pop(&ep->rq, ep->barrier);
			if (!b)
				break;
			bl_items_open(&ep->cur_items, b->body, b->len); /* checked when it came */
			ep->cur = b;
			ep->cur_index = 0;
			credit_due(ep, b->peer, false);
		}
		if (!bl_items_next(&ep->cur_items, &item)) {
			b->free_next = ep->lent.bufs;
			ep->lent.bufs = b;
			ep->cur = NULL;
			continue;
		}
		ep->cur_index++;
		d->ts = b->rq.ts;
		d->src = b->peer->addr;
		d->data = item.data;
		d->len = item.len;
		if (!item.data) {
			uint8_t why;
			struct bl_big *g = take_big(ep, b->peer, &item, &why);

			if (!g) {
				nak(ep, b->peer, b->rq.psn, 1, why, (uint8_t)(ep->cur_index - 1));
				continue;
			}
			d->data = g->data;
		}
		n++;
	}
	/* a frame that is used up need not wait for the next call to give its credit back */
	if (ep->cur && !ep->cur_items.left) {
		ep->cur->free_next = ep->lent.bufs;
		ep->lent.bufs = ep->cur;
		ep->cur = NULL;
	}
	ep->st.messages_delivered += n;
	return (int)n;
}
