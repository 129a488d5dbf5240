// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sending: stages, timestamps, windows (1Pipe section 6.1).
 *
 * bl_send() appends each message to the stage of its destination: frames of frame_max bytes, back
 * to back, the last one growing. A flush gives all staged frames of all destinations one timestamp
 * and sends each stage with one UDP GSO send: about half the cost per frame of plain sends (0.65
 * against 1.35 us through two veth links, 2026-11). It waits until the windows of all staged
 * destinations are open, so that a scattering leaves as a whole and never waits while its timestamp
 * holds the rack's barrier back.
 *
 * Large messages go ahead as FRAGs, which carry no timestamp: only a reference is staged. So a
 * message of a megabyte holds the barrier no longer than one of a byte does.
 */
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include "send.h"
#include "tx_nic.h"

#define FRAME_HEAD (sizeof(struct bl_hdr) + sizeof(struct bl_data))

static uint32_t outstanding(const struct bl_tx *t)
{
	return t->next_psn - t->credited;
}

static uint8_t *frame_at(const struct bl_endpoint *ep, const struct bl_tx *t, uint32_t i)
{
	return t->stage + (size_t)i * ep->frame_max;
}

void bl_tx_hdr(uint8_t *frame, uint8_t op, uint64_t ts, uint32_t psn)
{
	struct bl_hdr *h = (void *)frame;

	memset(h, 0, sizeof(*h));
	bl_put48(h->ts, ts);
	bl_hdr_set_psn(h, psn);
	h->opcode = BL_OPCODE_BYTE(op);
	h->flags = BL_HOP_HOST | BL_F_LANES(1); /* every hop writes its own */
}

static void fill_data(const struct bl_endpoint *ep, uint8_t *frame, uint32_t count)
{
	bl_store16(frame + sizeof(struct bl_hdr), ep->incarnation);
	bl_store16(frame + sizeof(struct bl_hdr) + 2, count);
}

/* ---- failures ---- */

void bl_tx_fail(struct bl_endpoint *ep, const struct bl_peer *p, uint64_t ts, uint64_t cookie,
		uint8_t why)
{
	ep->st.send_failed++;
	if (!ep->on_fail)
		return;
	if (ep->nfailed == ep->failed_room) {
		uint32_t room = ep->failed_room ? 2 * ep->failed_room : 64;
		struct bl_failed *f = realloc(ep->failed, room * sizeof(*f));

		if (!f)
			return; /* best effort: counted, not reported */
		ep->failed = f;
		ep->failed_room = room;
	}
	ep->failed[ep->nfailed++] =
		(struct bl_failed){ .ts = ts, .cookie = cookie, .dst = p->addr, .why = why };
}

void bl_tx_report(struct bl_endpoint *ep)
{
	struct bl_failed *f = ep->failed;
	uint32_t n = ep->nfailed, i;

	if (!n)
		return;
	/* taken over first: a callback may send, and that may fail, too */
	ep->failed = NULL;
	ep->nfailed = ep->failed_room = 0;
	bl_leave(ep);
	for (i = 0; i < n && ep->on_fail; i++)
		ep->on_fail(ep->on_fail_ctx, f[i].ts, &f[i].dst, f[i].cookie, f[i].why);
	bl_enter(ep);
	free(f);
}

static void fail_frame(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint8_t item,
		       uint8_t why)
{
	struct bl_sent *s = p->tx.sent ? &p->tx.sent[psn % (2 * BL_WINDOW_MAX)] : NULL;
	uint32_t i;

	if (!s || s->psn != psn || !s->count) {
		if (!p->tx.sent)
			ep->st.send_failed++; /* no callback: frames are counted */
		return;
	}
	for (i = 0; i < s->count; i++)
		if (item == BL_NAK_WHOLE || item == i)
			bl_tx_fail(ep, p, s->ts, s->cookie[i], why);
	if (item == BL_NAK_WHOLE)
		s->count = 0; /* reported once */
}

/* Forget what is staged for a peer, and report it. */
static void drop_stage(struct bl_endpoint *ep, struct bl_peer *p, uint8_t why)
{
	struct bl_tx *t = &p->tx;
	uint32_t i, k;

	for (i = 0; i < t->nframes; i++) {
		uint32_t n = i + 1 < t->nframes
				     ? bl_load16(frame_at(ep, t, i) + sizeof(struct bl_hdr) + 2)
				     : t->count;

		for (k = 0; k < n; k++)
			bl_tx_fail(ep, p, 0, t->cookies ? t->cookies[i * BL_ITEMS_MAX + k] : 0,
				   why);
	}
	while (t->big) {
		struct bl_big *b = t->big;

		t->big = b->next;
		ep->staged_bytes -= b->total;
		free(b);
	}
	t->big_tail = &t->big;
	t->nframes = t->count = t->fill = 0;
}

/* ---- staging ---- */

static void mark_dirty(struct bl_endpoint *ep, struct bl_peer *p)
{
	if (p->tx.dirty)
		return;
	p->tx.dirty = true;
	p->dirty_next = ep->dirty;
	ep->dirty = p;
}

static int begin_frame(struct bl_endpoint *ep, struct bl_peer *p)
{
	struct bl_tx *t = &p->tx;

	if (!t->stage) {
		t->stage = malloc((size_t)BL_STAGE_FRAMES * ep->frame_max);
		if (!t->stage)
			return -ENOMEM;
	}
	if (ep->on_fail && !t->cookies) {
		t->cookies = calloc(BL_STAGE_FRAMES * BL_ITEMS_MAX, sizeof(*t->cookies));
		t->sent = calloc(2 * BL_WINDOW_MAX, sizeof(*t->sent));
		if (!t->cookies || !t->sent)
			return -ENOMEM;
	}
	if (t->nframes >= bl_stage_cap(t->window, t->alone))
		return -EAGAIN;
	if (t->nframes) {
		/* frames of one GSO send are equally long: pad the one that is finished */
		fill_data(ep, frame_at(ep, t, t->nframes - 1), t->count);
		memset(frame_at(ep, t, t->nframes - 1) + t->fill, 0, ep->frame_max - t->fill);
	}
	t->nframes++;
	t->fill = FRAME_HEAD;
	t->count = 0;
	return 0;
}

static int stage_big(struct bl_endpoint *ep, struct bl_peer *p, const struct bl_msg *m, uint32_t id)
{
	struct bl_big *b = malloc(sizeof(*b) + m->len);

	if (!b)
		return -ENOMEM;
	b->next = NULL;
	b->id = id;
	b->total = m->len;
	b->done = 0;
	b->broken = false;
	b->why = 0;
	memcpy(b->data, m->data, m->len);
	*p->tx.big_tail = b;
	p->tx.big_tail = &b->next;
	ep->staged_bytes += m->len;
	return 0;
}

static int stage_item(struct bl_endpoint *ep, struct bl_peer *p, const struct bl_msg *m)
{
	struct bl_tx *t = &p->tx;
	bool big = m->len > ep->frame_max - FRAME_HEAD - BL_ITEM_OVERHEAD;
	uint32_t need = BL_ITEM_OVERHEAD + (big ? (uint32_t)sizeof(struct bl_ref) : m->len);
	uint8_t *at;
	int rc;

	if (big && ep->staged_bytes && ep->staged_bytes + m->len > ep->send_buffer)
		return -EAGAIN;
	if (!t->nframes || t->fill + need > ep->frame_max || t->count == BL_ITEMS_MAX) {
		rc = begin_frame(ep, p);
		if (rc)
			return rc;
	}
	at = frame_at(ep, t, t->nframes - 1) + t->fill;
	if (big) {
		rc = stage_big(ep, p, m, t->next_big);
		if (rc)
			return rc;
		bl_ref_put(at, t->next_big++, m->len);
	} else {
		bl_item_put(at, m->data, m->len);
	}
	if (t->cookies)
		t->cookies[(t->nframes - 1) * BL_ITEMS_MAX + t->count] = m->cookie;
	t->fill += need;
	t->count++;
	return 0;
}

static int remember(struct bl_endpoint *ep, struct bl_peer *p)
{
	const struct bl_tx *t = &p->tx;

	if (ep->undo_n == ep->undo_room) {
		uint32_t room = ep->undo_room ? 2 * ep->undo_room : 32;
		struct bl_undo *u = realloc(ep->undo, room * sizeof(*u));

		if (!u)
			return -ENOMEM;
		ep->undo = u;
		ep->undo_room = room;
	}
	ep->undo[ep->undo_n++] =
		(struct bl_undo){ p, t->nframes, t->fill, t->count, t->next_big, t->big_tail };
	return 0;
}

static void undo(struct bl_endpoint *ep)
{
	while (ep->undo_n) {
		const struct bl_undo *u = &ep->undo[--ep->undo_n];
		struct bl_tx *t = &u->peer->tx;

		while (*u->big_tail) {
			struct bl_big *b = *u->big_tail;

			*u->big_tail = b->next;
			ep->staged_bytes -= b->total;
			free(b);
		}
		t->big_tail = u->big_tail;
		t->nframes = u->nframes;
		t->fill = u->fill;
		t->count = u->count;
		t->next_big = u->next_big;
	}
}

static int stage_all(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n)
{
	size_t i;
	int rc;

	ep->mark++;
	ep->undo_n = 0;
	for (i = 0; i < n; i++) {
		struct bl_peer *p = bl_peer_get(ep, vec[i].dst.ip, vec[i].dst.port);

		if (!p) {
			undo(ep);
			return -ENOMEM;
		}
		if (p->tx.mark != ep->mark) {
			rc = remember(ep, p);
			p->tx.mark = ep->mark;
			p->tx.alone = !p->tx.nframes;
			if (rc) {
				undo(ep);
				return rc;
			}
		}
		rc = stage_item(ep, p, &vec[i]);
		if (rc) {
			undo(ep);
			return rc;
		}
		mark_dirty(ep, p);
	}
	return 0;
}

int bl_tx_clock_void(struct bl_endpoint *ep)
{
	return bl_set_error(ep, ETIME,
			    "the clock record is void since the host daemon stopped; nothing is "
			    "sent rather than sent wrong");
}

static int clock_void(struct bl_endpoint *ep)
{
	ep->held = ep->dirty != NULL; /* what was accepted is tried again */
	return bl_tx_clock_void(ep);
}

bool bl_tx_room(const struct bl_endpoint *ep)
{
	return !ep->held;
}

/* What no scattering of either stream may be: 0 or -errno. */
int bl_tx_check(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n, unsigned int flags)
{
	size_t i;

	if (!n || n > BL_SCATTER_MAX || flags & ~BL_MORE)
		return bl_set_error(ep, EINVAL,
				    "a scattering has 1 to %u messages, and the only flag is "
				    "BL_MORE",
				    BL_SCATTER_MAX);
	for (i = 0; i < n; i++) {
		if (vec[i].len > BL_MESSAGE_MAX)
			return bl_set_error(ep, EMSGSIZE,
					    "message %zu has %u bytes; the limit is %u", i,
					    vec[i].len, BL_MESSAGE_MAX);
		if (!vec[i].dst.port || (vec[i].len && !vec[i].data))
			return bl_set_error(ep, EINVAL,
					    "message %zu has no destination port, or no data", i);
	}
	return 0;
}

static int send_now(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n, unsigned int flags)
{
	int rc = bl_tx_check(ep, vec, n, flags);

	if (rc)
		return rc;
	if (bl_is_out(ep))
		return bl_outcast(ep);
	if (!bl_clock_usable(ep->clock, bl_mono()))
		return clock_void(ep);
	rc = stage_all(ep, vec, n);
	if (rc == -EAGAIN) {
		rc = bl_tx_flush(ep);
		if (rc)
			return rc;
		rc = stage_all(ep, vec, n);
	}
	if (rc == -EAGAIN && !ep->held) /* nothing is before it: waiting would not help */
		return bl_set_error(ep, EMSGSIZE,
				    "a scattering has at most %u frames of %u bytes for one "
				    "destination, and %u bytes in large messages; split it",
				    BL_STAGE_FRAMES, ep->frame_max, ep->send_buffer);
	if (rc == -EAGAIN) {
		ep->st.again++;
		return bl_set_error(ep, EAGAIN,
				    "the send buffer is full; wait with bl_wait(BL_WAIT_SEND)");
	}
	if (rc)
		return bl_set_error(ep, -rc, "out of memory");
	ep->st.scatterings++;
	ep->st.messages_sent += n;
	if (!(flags & BL_MORE)) {
		/*
		 * accepted whatever it says: should the clock be void since a moment ago, it leaves
		 * when that is over
		 */
		bl_tx_flush(ep);
	}
	return 0;
}

int bl_send(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n, unsigned int flags)
{
	int rc;

	bl_enter(ep);
	rc = send_now(ep, vec, n, flags);
	bl_leave(ep);
	return rc;
}

int bl_flush(struct bl_endpoint *ep)
{
	int rc, rel;

	bl_enter(ep);
	if (bl_is_out(ep)) {
		rc = bl_outcast(ep);
	} else {
		rc = bl_tx_flush(ep);
		rel = bl_rtx_flush(ep);
		rc = rc ? rc : rel;
	}
	bl_leave(ep);
	return rc;
}

/* ---- to the socket ---- */

struct batch {
	struct mmsghdr m[BL_MMSG];
	struct iovec io[BL_MMSG];
	struct bl_peer *peer[BL_MMSG];
	uint32_t psn[BL_MMSG], frames[BL_MMSG];
	union bl_gso ctl[BL_MMSG];
	unsigned int n;
};

int bl_gso_one(struct bl_endpoint *ep, const struct msghdr *h, uint32_t i)
{
	struct iovec one = h->msg_iov[h->msg_iovlen == 1 ? 0 : i];
	struct msghdr m = { .msg_name = h->msg_name,
			    .msg_namelen = h->msg_namelen,
			    .msg_iov = &one,
			    .msg_iovlen = 1 };
	ssize_t rc;

	if (h->msg_iovlen == 1) {
		size_t at = (size_t)i * ep->frame_max;

		one.iov_base = (uint8_t *)one.iov_base + at;
		one.iov_len = one.iov_len - at < ep->frame_max ? one.iov_len - at : ep->frame_max;
	}
	do
		rc = sendmsg(ep->sock, &m, 0);
	while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return -errno;
	ep->gso_pause = BL_GSO_PAUSE; /* it is the cutting that was refused */
	return 0;
}

/*
 * Entry @e cannot leave as one send: one by one, if that is what was refused. Numbers of frames
 * that cannot leave are used up; the receiver sees a gap if it ever hears from us again.
 */
static void batch_refused(struct bl_endpoint *ep, const struct batch *b, unsigned int e, int errnum)
{
	const struct msghdr *h = &b->m[e].msg_hdr;
	bool singly = bl_gso_refused(h, errnum);
	uint32_t i;

	for (i = 0; i < b->frames[e]; i++)
		if (!singly || bl_gso_one(ep, h, i))
			fail_frame(ep, b->peer[e], b->psn[e] + i, BL_NAK_WHOLE, BL_NAK_UNREACHABLE);
}

static void batch_send(struct bl_endpoint *ep, struct batch *b)
{
	unsigned int done = 0;

	while (done < b->n) {
		int rc = sendmmsg(ep->sock, b->m + done, b->n - done, 0);

		if (rc > 0) {
			done += (unsigned int)rc;
			continue;
		}
		if (rc < 0 && errno == EINTR)
			continue;
		batch_refused(ep, b, done++, errno);
	}
	b->n = 0;
}

/* @frames frames of @seg bytes (the last one shorter) at @data; more than one: a GSO send */
static void batch_add(struct bl_endpoint *ep, struct batch *b, struct bl_peer *p, uint8_t *data,
		      size_t len, uint32_t frames, uint16_t seg, uint32_t psn)
{
	struct msghdr *h;

	if (b->n == BL_MMSG)
		batch_send(ep, b);
	h = &b->m[b->n].msg_hdr;
	memset(h, 0, sizeof(*h));
	b->io[b->n] = (struct iovec){ data, len };
	h->msg_name = &p->sa;
	h->msg_namelen = p->sa_len;
	h->msg_iov = &b->io[b->n];
	h->msg_iovlen = 1;
	if (frames > 1)
		bl_gso(h, &b->ctl[b->n], seg);
	b->peer[b->n] = p;
	b->psn[b->n] = psn;
	b->frames[b->n] = frames;
	b->n++;
	ep->st.frames_sent += frames;
}

/*
 * as one GSO send, or frame by frame: to endpoints of this host, since lo does not segment, and
 * where GSO is refused
 */
static void batch_frames(struct bl_endpoint *ep, struct batch *b, struct bl_peer *p, uint8_t *data,
			 uint32_t frames, uint32_t last, uint32_t psn)
{
	uint32_t seg = ep->frame_max, most = BL_UDP_MOST / seg, i;

	if (!p->local && (frames == 1 || bl_gso_allowed(ep))) {
		for (; frames > most; frames -= most, psn += most, data += (size_t)most * seg)
			batch_add(ep, b, p, data, (size_t)most * seg, most, (uint16_t)seg, psn);
		batch_add(ep, b, p, data, (size_t)(frames - 1) * seg + last, frames, (uint16_t)seg,
			  psn);
		return;
	}
	for (i = 0; i < frames; i++)
		batch_add(ep, b, p, data + (size_t)i * seg, i + 1 < frames ? seg : last, 1, 0,
			  psn + i);
}

static void sent_now(struct bl_endpoint *ep, struct bl_tx *t, uint32_t frames)
{
	if (!outstanding(t)) {
		t->progress_ns = bl_mono();
		bl_patience_begin(&t->patience, t->progress_ns);
	}
	t->next_psn += frames;
	ep->flying += frames;
}

/* Send what the window allows of the large messages of @p. */
static void push_big(struct bl_endpoint *ep, struct bl_peer *p, struct batch *b)
{
	const uint32_t head = FRAME_HEAD + sizeof(struct bl_frag), room = ep->frame_max - head;
	struct bl_tx *t = &p->tx;

	if (!ep->frag_buf)
		ep->frag_buf = malloc((size_t)BL_STAGE_FRAMES * ep->frame_max);
	while (t->big && ep->frag_buf) {
		struct bl_big *g = t->big;
		uint32_t frames = 0, len = 0, most;

		if (p->self) {
			t->big = g->next;
			ep->staged_bytes -= g->total;
			bl_rx_self_big(ep, p, g);
			continue;
		}
		most = outstanding(t) < t->window ? t->window - outstanding(t) : 0;
		most = most < BL_STAGE_FRAMES ? most : BL_STAGE_FRAMES;
		if (most && !p->local) {
			uint32_t fit = bl_nic_room(ep, most, BL_NIC_SHARED);

			ep->nic.parts_wait |= fit < most;
			most = fit;
		}
		while (g->done < g->total && frames < most) {
			uint8_t *f = ep->frag_buf + (size_t)frames * ep->frame_max;
			uint32_t n = g->total - g->done < room ? g->total - g->done : room;

			bl_tx_hdr(f, BL_OP_FRAG, 0, t->next_psn + frames);
			fill_data(ep, f, 0);
			bl_frag_put(f + FRAME_HEAD, g->id, g->done, g->total);
			memcpy(f + head, g->data + g->done, n);
			g->done += n;
			len = head + n;
			frames++;
		}
		if (!frames)
			return;
		if (!p->local)
			bl_nic_count(ep, frames);
		batch_frames(ep, b, p, ep->frag_buf, frames, len, t->next_psn);
		batch_send(ep, b); /* frag_buf is used again */
		if (!p->local)
			bl_nic_witness(ep);
		sent_now(ep, t, frames);
		if (g->done < g->total)
			return;
		t->big = g->next;
		ep->staged_bytes -= g->total;
		free(g);
	}
	if (!t->big)
		t->big_tail = &t->big;
}

static void send_stage(struct bl_endpoint *ep, struct bl_peer *p, struct batch *b, uint64_t ts)
{
	struct bl_tx *t = &p->tx;
	uint32_t i;

	fill_data(ep, frame_at(ep, t, t->nframes - 1), t->count);
	for (i = 0; i < t->nframes; i++) {
		uint8_t *f = frame_at(ep, t, i);

		bl_tx_hdr(f, BL_OP_DATA, ts, t->next_psn + i);
		if (t->sent) {
			struct bl_sent *s = &t->sent[(t->next_psn + i) % (2 * BL_WINDOW_MAX)];

			s->ts = ts;
			s->psn = t->next_psn + i;
			s->count = bl_load16(f + sizeof(struct bl_hdr) + 2);
			memcpy(s->cookie, &t->cookies[i * BL_ITEMS_MAX],
			       s->count * sizeof(s->cookie[0]));
		}
		if (p->self) {
			uint32_t len = i + 1 < t->nframes ? ep->frame_max : t->fill;

			if (bl_rx_self(ep, p, f, len, ts, t->next_psn + i))
				fail_frame(ep, p, t->next_psn + i, BL_NAK_WHOLE, BL_NAK_NO_MEMORY);
		}
	}
	if (p->self) {
		t->next_psn += t->nframes;
		t->credited = t->next_psn;
	} else {
		batch_frames(ep, b, p, t->stage, t->nframes, t->fill, t->next_psn);
		sent_now(ep, t, t->nframes);
	}
}

/*
 * The last frame of a flush says that nothing at or below its timestamp follows
 * (core/order/promise_core.h). One frame only: the segments of a GSO send all get the same barrier.
 */
static void claim_last(struct batch *b, uint64_t ts)
{
	unsigned int last = b->n - 1;

	if (b->n && b->frames[last] == 1)
		bl_put48(((struct bl_hdr *)b->io[last].iov_base)->barrier, ts + 1);
}

/*
 * In flight first, the timestamp after it: pairs with host_barriers() in bpf/host.bpf.c. Either it
 * sees this store, or its promise came before we look at clock and promise.
 *
 * Above all that was delivered here, too. The barrier is never above this host's own promise,
 * unless the switch's lane that brings it back stood still for dead_after: then others with faster
 * clocks may be ahead. What follows from a message must not come before it, and a message to
 * oneself not below what one has delivered.
 */
uint64_t bl_tx_stamp(struct bl_endpoint *ep)
{
	uint64_t noted = bl_max64(bl_clock_at(ep->clock, bl_mono()),
				  BL_READ_ONCE(ep->page->promised)),
		 ts;

	BL_WRITE_ONCE(ep->inflight[ep->slot].ts, noted);
	__sync_synchronize();
	ts = bl_clock_at(ep->clock, bl_mono());
	ts = bl_promise_ts(bl_max64(ts, ep->floor), BL_READ_ONCE(ep->page->promised), noted,
			   bl_max64(ep->last_ts, bl_max64(ep->rq.last_ts, ep->rrq.last_ts)));
	ep->last_ts = ts;
	return ts;
}

void bl_tx_wake_at(struct bl_endpoint *ep, uint64_t at)
{
	if (!ep->timers_ns || ep->timers_ns > at)
		ep->timers_ns = at;
}

/*
 * What has left may have been delivered, and the answer may have been lost; what is staged has not
 * left. Nothing more is sent there but PROBEs until one of them is answered: so the numbers go on
 * where they were, and nothing to others ever waits for it again.
 */
static void give_up(struct bl_endpoint *ep, struct bl_peer *p)
{
	struct bl_tx *t = &p->tx;
	uint32_t psn;

	for (psn = t->credited; psn != t->next_psn; psn++)
		fail_frame(ep, p, psn, BL_NAK_WHOLE, BL_NAK_UNKNOWN);
	drop_stage(ep, p, BL_NAK_UNREACHABLE);
	ep->flying -= outstanding(t);
	t->rto_ns = BL_RETRY_NS / 2;
	t->probes = BL_PROBES_MAX;
	t->dead = true;
}

static void probe(struct bl_endpoint *ep, struct bl_peer *p, uint64_t now)
{
	uint8_t body[sizeof(struct bl_data)];
	struct bl_tx *t = &p->tx;
	uint64_t most = t->dead ? BL_RETRY_MAX_NS : BL_RTO_MAX_NS;

	bl_store16(body, ep->incarnation);
	bl_store16(body + 2, 0);
	bl_tx_control(ep, p, BL_OP_PROBE, t->next_psn, body, sizeof(body));
	ep->st.probes_sent++;
	t->probes++;
	t->progress_ns = now;
	t->rto_ns = t->rto_ns * 2 < most ? t->rto_ns * 2 : most;
}

/*
 * The ring is full, as far as we know. If nobody of us is in it, a PROBE is to tell when it is
 * empty; whoever gets it may say that its window is open.
 */
static void wait_for_nic(struct bl_endpoint *ep, uint64_t mono)
{
	uint8_t body[sizeof(struct bl_data)];
	struct bl_peer *p;

	ep->held = true;
	bl_tx_wake_at(ep, mono + BL_NIC_WAIT_NS);
	if (!bl_nic_needs_witness(ep))
		return;
	for (p = ep->dirty; p && (p->local || p->tx.dead); p = p->dirty_next)
		;
	if (!p)
		return;
	bl_store16(body, ep->incarnation);
	bl_store16(body + 2, 0);
	bl_tx_control(ep, p, BL_OP_PROBE, p->tx.next_psn, body, sizeof(body));
	ep->st.probes_sent++;
	bl_nic_witness(ep);
}

int bl_tx_flush(struct bl_endpoint *ep)
{
	struct bl_inflight *mine = &ep->inflight[ep->slot];
	struct batch b;
	struct bl_peer *p;
	uint64_t mono, ts;
	bool held = false, any = false;
	uint32_t need = 0;

	if (!ep->dirty)
		return 0;
	b.n = 0;
	mono = bl_mono();
	if (!bl_clock_usable(ep->clock, mono))
		return clock_void(ep);
	ep->nic.parts_wait = false;
	for (p = ep->dirty; p; p = p->dirty_next) {
		struct bl_tx *t = &p->tx;

		if (t->dead) {
			drop_stage(ep, p, BL_NAK_UNREACHABLE);
			if (mono > t->progress_ns + BL_RETRY_MIN_NS)
				probe(ep, p, mono);
			continue;
		}
		if (t->big)
			push_big(ep, p, &b);
		if (t->big || (outstanding(t) && outstanding(t) + t->nframes > t->window))
			held = true;
		any |= t->nframes > 0;
		need += p->local ? 0 : t->nframes;
	}
	if (!held && bl_nic_full(ep, need)) {
		wait_for_nic(ep, mono);
		return 0;
	}
	ep->held = held;
	if (held) {
		bl_tx_wake_at(ep, mono + (ep->nic.parts_wait ? BL_NIC_WAIT_NS : BL_RTO_NS));
		return 0;
	}
	if (any) {
		ts = bl_tx_stamp(ep); /* frames are in the transmit queue when sendmmsg() returns */
		if (!bl_nic_take(ep, need)) {
			BL_WRITE_ONCE(mine->ts, BL_TIME_NONE);
			wait_for_nic(ep, mono);
			return 0;
		}
		for (p = ep->dirty; p; p = p->dirty_next)
			if (p->tx.nframes)
				send_stage(ep, p, &b, ts);
		claim_last(&b, ts);
		batch_send(ep, &b);
		bl_nic_sent(ep);
		BL_BARRIER();
		BL_WRITE_ONCE(mine->ts, BL_TIME_NONE);
		if (!ep->timers_ns)
			ep->timers_ns = mono + BL_RTO_NS;
	}
	while ((p = ep->dirty)) {
		ep->dirty = p->dirty_next;
		p->tx.dirty = false;
		p->tx.nframes = p->tx.count = p->tx.fill = 0;
	}
	return 0;
}

int bl_tx_control(struct bl_endpoint *ep, struct bl_peer *p, uint8_t opcode, uint32_t psn,
		  const void *body, uint32_t len)
{
	uint8_t f[sizeof(struct bl_hdr) + 32];

	if (ep->put_out)
		return -ESTALE; /* nobody listens, and no controller shall be asked to forward it */
	bl_tx_hdr(f, opcode, 0, psn);
	memcpy(f + sizeof(struct bl_hdr), body, len);
	bl_forward_control(ep, p, f, (uint32_t)sizeof(struct bl_hdr) + len, opcode);
	if (!p->local)
		bl_nic_count(ep, 1);
	/* a control frame that cannot leave is repeated by whoever needs it */
	if (sendto(ep->sock, f, sizeof(struct bl_hdr) + len, 0, (struct sockaddr *)&p->sa,
		   p->sa_len) < 0)
		return -errno;
	return 0;
}

/* ---- what comes back ---- */

void bl_tx_credit(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len)
{
	struct bl_tx *t = &p->tx;
	uint32_t flown = t->dead ? 0 : outstanding(t);
	struct bl_credit_view v;

	if (bl_credit_open(&v, body, len)) {
		ep->st.malformed++;
		return;
	}
	if (v.incarnation != ep->incarnation)
		return; /* of an earlier life */
	if (bl_psn_before(t->next_psn, v.psn) && v.psn - t->next_psn > BL_AHEAD_MAX)
		return; /* of frames that were never sent: the receiver will find back
			   (place_core.h) */
	ep->st.credits_received++;
	bl_patience_heard(&t->patience, bl_mono(), outstanding(t) != 0 && !t->dead);
	if (bl_psn_before(t->next_psn, v.psn)) {
		/*
		 * It was misled by somebody else's frame, not so far that it would notice: what we
		 * send now is old to it. So we go there, and do not know what became of what was on
		 * the way.
		 */
		for (; t->credited != t->next_psn; t->credited++)
			fail_frame(ep, p, t->credited, BL_NAK_WHOLE, BL_NAK_UNKNOWN);
		t->next_psn = t->credited = v.psn;
	} else if (bl_psn_before(t->credited, v.psn)) {
		t->credited = v.psn;
	}
	t->window = v.window < BL_WINDOW_MAX ? v.window : BL_WINDOW_MAX;
	t->progress_ns = bl_mono();
	t->rto_ns = BL_RTO_NS;
	t->probes = 0;
	t->dead = false;
	ep->flying += outstanding(t) - flown;
}

void bl_tx_nak(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len)
{
	struct bl_nak_view v;
	uint32_t i;

	if (bl_nak_open(&v, body, len) || v.count > 2 * BL_WINDOW_MAX) {
		ep->st.malformed++;
		return;
	}
	if (v.incarnation != ep->incarnation)
		return;
	for (i = 0; i < v.count; i++)
		if (bl_psn_before(v.psn + i, p->tx.next_psn))
			fail_frame(ep, p, v.psn + i, v.count == 1 ? v.item : BL_NAK_WHOLE, v.why);
}

bool bl_tx_unsent(const struct bl_endpoint *ep)
{
	int bytes;

	return !ioctl(ep->sock, SIOCOUTQ, &bytes) && bytes > 0;
}

uint64_t bl_tx_timers(struct bl_endpoint *ep, uint64_t now)
{
	uint64_t next = 0;
	struct bl_peer *p;

	if (!ep->timers_ns || now < ep->timers_ns)
		return ep->timers_ns;
	for (p = ep->peers; p; p = p->all_next) {
		struct bl_tx *t = &p->tx;
		uint64_t due;

		if (!outstanding(t) || (t->dead && t->probes > BL_PROBES_MAX + BL_RETRIES_MAX))
			continue;
		due = t->progress_ns + t->rto_ns;
		if (now >= due) {
			if (t->probes >= BL_PROBES_MAX && !t->dead &&
			    bl_patience_over(&t->patience, now, bl_tx_unsent(ep)))
				give_up(ep, p);
			probe(ep, p, now);
			due = now + t->rto_ns;
		}
		if (!next || due < next)
			next = due;
	}
	ep->timers_ns = next;
	return next;
}

void bl_tx_peer_free(struct bl_peer *p)
{
	while (p->tx.big) {
		struct bl_big *b = p->tx.big;

		p->tx.big = b->next;
		free(b);
	}
	free(p->tx.stage);
	free(p->tx.cookies);
	free(p->tx.sent);
}

void bl_on_send_fail(struct bl_endpoint *ep, bl_send_fail_fn fn, void *ctx)
{
	bl_enter(ep);
	ep->on_fail = fn;
	ep->on_fail_ctx = ctx;
	bl_leave(ep);
}
