/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints that send and receive at random and log everything they do. Each endpoint is a process
 * of its own, with its logs in shared memory; order_check.h judges the logs at the end.
 *
 * Example:
 * 	tr_add(&(struct tr_cfg){ .host = 0, .fn = tr_mix, .scatterings = 500 });
 * 	tr_go();
 * 	tr_wait_done(30000);
 * 	tr_stop();
 * 	tr_judge(~0ULL, ~0ULL);
 *
 * tr_add() may be called before or during the run; tr_go() lets all endpoints that are up begin.
 *
 * A message carries its identity: sender, sequence number, item. A message that is too short for
 * that is identified by the message before it: item 0 is always long enough, and messages with the
 * same timestamp and the same sender are delivered together.
 */
#ifndef BARLINE_TESTS_TRAFFIC_H
#define BARLINE_TESTS_TRAFFIC_H

#include "tests/net/order_check.h"
#include "tests/net/rack.h"

#define TR_MAX        56
#define TR_SENT_MAX   (1u << 18)
#define TR_GOT_MAX    (1u << 19)
#define TR_FAILED_MAX (1u << 16)
#define TR_MAGIC      0x72616372u
#define TR_BIG_MAX    (4u << 20) /* BL_BIG_MAX */

/*
 * Rings so small that each sender's window is 4 frames. Then neither a link (a veth's ring holds
 * 256 frames) nor a ring can overflow.
 */
#define TR_RING_TIGHT(endpoints) ((endpoints) <= 8 ? 65536u : 131072u)

#define TR_PATIENCE_MS           15000 /* time that tr_finish() waits for acknowledgements */

enum tr_state { TR_NEW, TR_UP, TR_DONE, TR_GONE };

/** struct tr_head - identity of a message, at its beginning. */
struct tr_head {
	uint32_t magic, len; /* TR_MAGIC, and the length of the message */
	uint64_t seq;        /* of the scattering */
	uint16_t sender, item;
	uint32_t zero;
};

/** struct tr_failed - a message that was reported to its sender as failed. */
struct tr_failed {
	uint64_t seq;       /* of the scattering */
	uint16_t dst, item; /* the receiver, and the item for it */
	uint8_t why;        /* enum bl_fail_reason */
};

struct tr;
/** struct tr_cfg - the work of one worker */
struct tr_cfg {
	unsigned int host;        /* from 0 */
	void (*fn)(struct tr *w); /* its work between tr_go() and the end */
	/* Called for item 0 of each delivered scattering; may be NULL. */
	void (*on_msg)(struct tr *w, unsigned int sender, uint64_t seq, const void *data,
		       uint32_t len);
	uint64_t to; /* bit set of the endpoints that it may send to; 0: all */
	/*
	 * @scatterings: number that tr_mix() sends; without effect if @run_ms or @until_enough is
	 * set.
	 * @run_ms: time for which tr_mix() sends.
	 * @gap_us: pause between two scatterings.
	 * @fan: most receivers of one scattering; 0: all.
	 * @items: most messages to each receiver.
	 * @len: length of the longest message, bytes.
	 * @big: of 256 scatterings, the number with a message of up to 1 MiB.
	 * @more: of 256 scatterings, the number that is sent with BL_MORE.
	 * @quiet_ms: the work ends after this time without a delivery, once all have sent; 0:
	 * 20000.
	 * @ring_bytes, @send_buffer: see struct bl_options.
	 */
	uint32_t scatterings, run_ms, gap_us, fan, items, len, big, more, quiet_ms, ring_bytes,
		send_buffer;
	uint64_t arg; /* for @fn */
	int family;   /* see struct bl_options */
	/*
	 * @until_enough: tr_mix() sends until tr_enough(), so it runs for as long as the script
	 * takes on a slow machine.
	 * @reliable: it sends and receives the reliable stream.
	 * @helper: it has a helper thread.
	 * @lost: its messages are never acknowledged, and nothing waits for that at the end.
	 */
	bool until_enough, reliable, helper, lost;
};

/**
 * struct tr_node - a worker, in shared memory. The worker writes most fields; the script reads them
 * with TR_LOAD().
 */
struct tr_node {
	struct tr_cfg cfg;
	pid_t pid;      /* written by the script; 0: the process has ended */
	uint32_t state; /* enum tr_state */
	bool may_die;   /* written by the script: its death does not fail the case */
	uint32_t done_sending;
	/* 1: it is reliable, and not everything that it sent is acknowledged or reported. */
	uint32_t unacked;
	struct bl_addr addr;
	uint64_t expected; /* messages sent to this endpoint */
	uint64_t received;
	uint32_t nsent, ngot, nfailed; /* entries of @sent, @got and @failed */
	uint64_t fails[16];            /* count by enum bl_fail_reason */
	uint32_t nproc_failed;
	uint64_t user[8]; /* free for the case */
	struct bl_stats st;
	char error[256];
	struct oc_sent *sent;
	struct oc_got *got;
	struct tr_failed *failed;
};

struct tr_shared {
	/* Written by the script: start, leave, number of workers, tr_enough() was called. */
	uint32_t go, quit, count, enough;
	uint64_t seed; /* of the run's randomness */
	struct tr_node node[TR_MAX];
};
static struct tr_shared *tr_sh;

/** struct tr - a worker's own view. */
struct tr {
	unsigned int id;
	struct tr_node *me;
	const struct tr_cfg *cfg;
	struct bl_endpoint *ep;
	uint64_t seed;
	uint64_t last_seq[TR_MAX];
	uint16_t last_item[TR_MAX];
	uint64_t last_progress;
	/* The next tr_send() is an answer to the message after_seq of after_sender. */
	bool after;
	uint16_t after_sender;
	uint64_t after_seq;
	uint8_t *buf[OC_ITEMS_MAX];
	uint32_t big_bytes; /* of the large messages that it has sent */
};

#define TR_LOAD(x)     __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define TR_STORE(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELEASE)

/* ---- message contents ---- */

T_FN uint64_t tr_hash(const void *data, uint32_t len)
{
	const uint8_t *p = data;
	uint64_t h = 0x9E3779B97F4A7C15ULL ^ len, w;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&w, p, 8);
		h = (h ^ w) * 0xD6E8FEB86659FD93ULL;
		h ^= h >> 32;
	}
	for (w = 0; len; len--)
		w = w << 8 | *p++;
	h = (h ^ w) * 0xD6E8FEB86659FD93ULL;
	return h ^ h >> 29;
}

T_FN void tr_fill(uint8_t *p, uint32_t len, uint16_t sender, uint64_t seq, uint16_t item)
{
	struct tr_head head = {
		.magic = TR_MAGIC, .len = len, .seq = seq, .sender = sender, .item = item
	};
	uint64_t x = (seq << 20 ^ (uint64_t)sender << 8 ^ item) * 0x9E3779B97F4A7C15ULL | 1;
	uint32_t i;

	for (i = 0; i + 8 <= len; i += 8) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		memcpy(p + i, &x, 8);
	}
	for (; i < len; i++)
		p[i] = (uint8_t)(x >> 8 * (i & 7));
	if (len >= sizeof(head))
		memcpy(p, &head, sizeof(head));
}

/* ---- calls of a worker ---- */

__attribute__((format(printf, 2, 3), noreturn)) T_FN void tr_fail(struct tr *w, const char *fmt,
								  ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->me->error, sizeof(w->me->error), fmt, ap);
	va_end(ap);
	_exit(1);
}

/*
 * Sends one scattering of @items messages of @len[] bytes to each endpoint in the bit set @to.
 * Returns the result of bl_send().
 */
T_FN int tr_send(struct tr *w, uint64_t to, unsigned int items, const uint32_t *len,
		 unsigned int flags)
{
	struct bl_msg vec[TR_MAX * OC_ITEMS_MAX];
	struct tr_node *me = w->me;
	struct oc_sent *s = &me->sent[me->nsent];
	unsigned int d, i, n = 0;
	int rc;

	if (me->nsent == TR_SENT_MAX)
		tr_fail(w, "the test's log of sent messages is full");
	*s = (struct oc_sent){ .to = to,
			       .items = (uint8_t)items,
			       .after = w->after,
			       .after_sender = w->after_sender,
			       .after_seq = w->after_seq };
	for (i = 0; i < items; i++) {
		if (!w->buf[i])
			w->buf[i] = malloc(BL_MESSAGE_MAX);
		tr_fill(w->buf[i], len[i], (uint16_t)w->id, me->nsent, (uint16_t)i);
		s->hash[i] = tr_hash(w->buf[i], len[i]);
	}
	for (d = 0; d < TR_MAX; d++)
		for (i = 0; i < items && (to >> d & 1); i++)
			vec[n++] =
				(struct bl_msg){ .dst = tr_sh->node[d].addr,
						 .data = len[i] ? w->buf[i] : NULL,
						 .len = len[i],
						 .cookie = (uint64_t)me->nsent << 16 | d << 4 | i };
	/* Log the scattering first: a worker that is killed in bl_send() may have sent it. */
	TR_STORE(me->nsent, me->nsent + 1);
	rc = w->cfg->reliable ? bl_send_reliable(w->ep, vec, n, flags)
			      : bl_send(w->ep, vec, n, flags);
	if (rc) {
		TR_STORE(me->nsent, me->nsent - 1);
		return rc;
	}
	w->after = false;
	for (d = 0; d < TR_MAX; d++)
		if (to >> d & 1)
			__atomic_add_fetch(&tr_sh->node[d].expected, items, __ATOMIC_ACQ_REL);
	return rc;
}

T_FN unsigned int tr_who(struct tr *w, const struct bl_addr *a)
{
	unsigned int id = (unsigned int)a->port - BL_PORT_BASE;

	if (id >= TR_MAX || memcmp(tr_sh->node[id].addr.ip, a->ip, 16))
		tr_fail(w, "a message came from a stranger, port %u", a->port);
	return id;
}

T_FN void tr_log(struct tr *w, const struct bl_delivery *d)
{
	struct tr_node *me = w->me;
	unsigned int sender = tr_who(w, &d->src);
	struct oc_got *g = &me->got[me->ngot];
	struct tr_head head;

	if (me->ngot == TR_GOT_MAX)
		tr_fail(w, "the test's log of deliveries is full");
	*g = (struct oc_got){ .hash = tr_hash(d->data, d->len),
			      .ts = d->ts,
			      .sender = (uint16_t)sender };
	if (d->len >= sizeof(head)) {
		memcpy(&head, d->data, sizeof(head));
		if (head.magic != TR_MAGIC || head.len != d->len || head.sender != sender)
			tr_fail(w, "a message of %u bytes from %u is not what that endpoint makes",
				d->len, sender);
		g->seq = head.seq;
		g->item = head.item;
	} else {
		g->seq = w->last_seq[sender];
		g->item = w->last_item[sender] + 1;
	}
	w->last_seq[sender] = g->seq;
	w->last_item[sender] = g->item;
	TR_STORE(me->ngot, me->ngot + 1);
	TR_STORE(me->received, me->received + 1);
	if (w->cfg->on_msg && !g->item)
		w->cfg->on_msg(w, sender, g->seq, d->data, d->len);
}

/* Receives the pending messages, or waits up to @timeout_ms for some. Returns their number. */
T_FN int tr_take(struct tr *w, int timeout_ms)
{
	struct bl_delivery d[64];
	int n = w->cfg->reliable ? bl_recv_reliable(w->ep, d, 64, timeout_ms)
				 : bl_recv(w->ep, d, 64, timeout_ms),
	    i;

	if (n == -EINTR) /* the machine was frozen, or a debugger is attached */
		return 0;
	if (n < 0)
		tr_fail(w, "bl_recv: %d %s", n, bl_strerror(w->ep));
	for (i = 0; i < n; i++)
		tr_log(w, &d[i]);
	if (n)
		w->last_progress = t_mono();
	return n;
}

T_FN void tr_on_fail(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
		     enum bl_fail_reason why)
{
	struct tr *w = ctx;
	struct tr_node *me = w->me;

	if (me->nfailed < TR_FAILED_MAX)
		me->failed[me->nfailed] = (struct tr_failed){ cookie >> 16,
							      (uint16_t)(cookie >> 4 & 0xfff),
							      cookie & 15, (uint8_t)why };
	TR_STORE(me->nfailed, me->nfailed + 1);
	me->fails[why & 15]++;
	w->last_progress = t_mono();
}

T_FN void tr_on_proc_fail(void *ctx, const struct bl_addr *who, uint64_t ts)
{
	struct tr *w = ctx;

	w->me->nproc_failed++;
	w->last_progress = t_mono();
}

T_FN bool tr_all_sent(void)
{
	uint32_t i;

	for (i = 0; i < TR_LOAD(tr_sh->count); i++)
		if (!TR_LOAD(tr_sh->node[i].done_sending))
			return false;
	return true;
}

/*
 * Returns whether a live worker still waits for acknowledgements. Until it has them, no worker
 * delivers later messages.
 */
T_FN bool tr_any_unacked(void)
{
	uint32_t i;

	for (i = 0; i < TR_LOAD(tr_sh->count); i++) {
		const struct tr_node *n = &tr_sh->node[i];

		if (TR_LOAD(n->unacked) && TR_LOAD(n->state) != TR_GONE)
			return true;
	}
	return false;
}

T_FN bool tr_awaits_acks(const struct tr *w)
{
	return w->cfg->reliable && !w->cfg->lost;
}

/* Receives, and publishes whether everything that this worker sent is acknowledged. */
T_FN void tr_linger(struct tr *w)
{
	tr_take(w, 10);
	if (tr_awaits_acks(w))
		TR_STORE(w->me->unacked, bl_wait(w->ep, BL_WAIT_ACKED, 0) == 0);
}

/*
 * Receives until everything has arrived or nothing arrives any more. The delay of a frame that is
 * lost now and then has no bound, so silence counts only while no worker waits for an
 * acknowledgement. That wait is limited (TR_PATIENCE_MS), because some workers wait for ever for an
 * endpoint that has left.
 */
T_FN void tr_finish(struct tr *w)
{
	uint64_t quiet = (w->cfg->quiet_ms ? w->cfg->quiet_ms : 20000) * 1000000ULL, patience = 0;

	TR_STORE(w->me->unacked, tr_awaits_acks(w));
	TR_STORE(w->me->done_sending, 1);
	w->last_progress = t_mono();
	for (;;) {
		bool all = tr_all_sent();

		tr_linger(w);
		if (all && TR_LOAD(w->me->received) >= TR_LOAD(w->me->expected))
			break;
		if (!all || !patience)
			patience = t_mono() + TR_PATIENCE_MS * 1000000ULL;
		if (!all || (tr_any_unacked() && t_mono() < patience))
			w->last_progress = t_mono();
		if (t_mono() - w->last_progress > quiet)
			break;
	}
}

/* Returns the bit set of the present endpoints, without those that have left. */
T_FN uint64_t tr_present(const struct tr *w)
{
	uint64_t m = 0;
	uint32_t i;

	for (i = 0; i < TR_LOAD(tr_sh->count); i++) {
		uint32_t st = TR_LOAD(tr_sh->node[i].state);

		if (st == TR_UP || st == TR_DONE)
			m |= 1ULL << i;
	}
	return w->cfg->to ? m & w->cfg->to : m;
}

T_FN uint64_t tr_some_of(struct tr *w, uint64_t from)
{
	unsigned int fan = w->cfg->fan, k, have = (unsigned int)__builtin_popcountll(from);
	uint64_t to = 0;

	if (!fan || fan >= have)
		return from;
	k = 1 + t_below(&w->seed, fan);
	while (k) {
		unsigned int d = t_below(&w->seed, TR_MAX);

		if ((from >> d & 1) && !(to >> d & 1)) {
			to |= 1ULL << d;
			k--;
		}
	}
	return to;
}

T_FN uint32_t tr_some_len(struct tr *w, unsigned int item)
{
	uint32_t least = item ? 0 : sizeof(struct tr_head),
		 most = w->cfg->len > least ? w->cfg->len : least;

	/* Choose edge cases often: empty, one byte, a full frame and its neighbours. */
	switch (t_below(&w->seed, 8)) {
	case 0:
		return least;
	case 1:
		return item ? 1 : least + 1;
	case 2:
		return most >= 1450 ? 1435 + t_below(&w->seed, 16) : most;
	default:
		return least + t_below(&w->seed, most - least + 1);
	}
}

/*
 * Returns the length of a large message, or @small if that would be too much: a receiver keeps at
 * most BL_BIG_MAX bytes (lib/internal.h) of large messages of one sender that it cannot deliver yet
 * and refuses the rest (BL_FAIL_NO_MEMORY). Where everything has to arrive, an endpoint sends no
 * more than that, because nothing can be delivered while beacons have no CPU.
 */
T_FN uint32_t tr_some_big_len(struct tr *w, uint32_t small)
{
	uint32_t len = t_below(&w->seed, 4) ? 1500 + t_below(&w->seed, 60000)
					    : BL_MESSAGE_MAX - t_below(&w->seed, 3);
	bool all_arrive = !w->cfg->quiet_ms && !w->cfg->reliable;

	if (all_arrive && w->big_bytes + len > TR_BIG_MAX)
		return small;
	w->big_bytes += len;
	return len;
}

/*
 * Sends one random scattering as the configuration demands. Repeats the call until it is accepted,
 * and receives meanwhile.
 */
T_FN void tr_send_some(struct tr *w)
{
	uint64_t to = tr_some_of(w, tr_present(w));
	unsigned int items = 1 + t_below(&w->seed, w->cfg->items ? w->cfg->items : 1), i;
	bool more = t_below(&w->seed, 256) < w->cfg->more;
	uint32_t len[OC_ITEMS_MAX];
	int rc;

	if (!to)
		return;
	for (i = 0; i < items; i++)
		len[i] = tr_some_len(w, i);
	if (t_below(&w->seed, 256) < w->cfg->big)
		len[items - 1] = tr_some_big_len(w, len[items - 1]);
	while ((rc = tr_send(w, to, items, len, more ? BL_MORE : 0)) == -EAGAIN) {
		/*
		 * An endpoint that has failed grants no window any more, and an endpoint that may
		 * come back there is asked for one, which may take for ever.
		 */
		if (w->cfg->reliable && to & ~tr_present(w))
			return;
		bl_wait(w->ep,
			w->cfg->reliable ? BL_WAIT_SEND_RELIABLE | BL_WAIT_RECV_RELIABLE
					 : BL_WAIT_SEND | BL_WAIT_RECV,
			5);
		tr_take(w, 0);
	}
	if (rc)
		tr_fail(w, "bl_send: %d %s", rc, bl_strerror(w->ep));
}

/* The usual work: sends at random and receives everything, until everything has arrived. */
T_FN void tr_mix(struct tr *w)
{
	uint64_t end = w->cfg->run_ms ? t_mono() + w->cfg->run_ms * 1000000ULL : 0;
	uint32_t i;

	for (i = 0;
	     w->cfg->until_enough ? !TR_LOAD(tr_sh->enough) && w->me->nsent < TR_SENT_MAX - 10
	     : end                ? t_mono() < end
				  : i < w->cfg->scatterings;
	     i++) {
		tr_send_some(w);
		if (w->cfg->gap_us) {
			uint64_t next = t_mono() + w->cfg->gap_us * 1000ULL;

			do {
				if (!tr_take(w, 0) && t_mono() < next)
					usleep(50);
			} while (t_mono() < next);
		} else if (!t_below(&w->seed, 4)) {
			tr_take(w, 0);
		}
	}
	bl_flush(w->ep);
	tr_finish(w);
}

T_FN void tr_sink(struct tr *w)
{
	tr_finish(w);
}

/* ---- calls of the script ---- */

/* Ends the workers that send until tr_enough(). */
T_FN void tr_enough(void)
{
	TR_STORE(tr_sh->enough, 1);
}

T_FN void tr_main(unsigned int id)
{
	struct tr w = { .id = id, .me = &tr_sh->node[id], .cfg = &tr_sh->node[id].cfg };
	struct bl_options o = { .port = (uint16_t)(BL_PORT_BASE + id),
				.ring_bytes = w.cfg->ring_bytes,
				.send_buffer = w.cfg->send_buffer,
				.family = w.cfg->family };
	int rc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rack_enter(rack_host(w.cfg->host));
	close_range(3, ~0U, 0);
	w.seed = tr_sh->seed ^ (id + 1) * 0xD6E8FEB86659FD93ULL;
	rc = bl_init(&w.ep, &o);
	if (rc)
		tr_fail(&w, "bl_init: %d %s", rc, bl_strerror(NULL));
	bl_on_send_fail(w.ep, tr_on_fail, &w);
	bl_on_proc_fail(w.ep, tr_on_proc_fail, &w);
	if (w.cfg->helper && bl_helper_start(w.ep, 0))
		tr_fail(&w, "bl_helper_start: %s", bl_strerror(w.ep));
	w.me->addr = *bl_self(w.ep);
	TR_STORE(w.me->state, TR_UP);
	while (!TR_LOAD(tr_sh->go)) {
		tr_take(&w, 0);
		usleep(1000);
	}
	w.last_progress = t_mono();
	w.cfg->fn(&w);
	TR_STORE(w.me->done_sending, 1);
	w.me->st.size = sizeof(w.me->st);
	TR_STORE(w.me->state, TR_DONE);
	while (!TR_LOAD(tr_sh->quit))
		tr_linger(&w);
	bl_get_stats(w.ep, &w.me->st);
	bl_exit(w.ep);
	TR_STORE(w.me->state, TR_GONE);
	_exit(0);
}

T_FN void tr_dump(void)
{
	uint32_t i;

	for (i = 0; i < tr_sh->count; i++) {
		const struct tr_node *n = &tr_sh->node[i];

		fprintf(stderr,
			"endpoint %u on h%u%s: state %u, sent %u, got %" PRIu64 " of %" PRIu64
			", failed %u (late %" PRIu64 " lost %" PRIu64 " incomplete %" PRIu64
			" memory %" PRIu64 " unreachable %" PRIu64 " failed %" PRIu64
			" unknown %" PRIu64 " left %" PRIu64 ") late %" PRIu64 " dup %" PRIu64
			" gaps %" PRIu64 " again %" PRIu64 " probes %" PRIu64 " %s\n",
			i, n->cfg.host + 1, n->cfg.reliable ? " (reliable)" : "", n->state,
			n->nsent, n->received, n->expected, n->nfailed, n->fails[BL_FAIL_LATE],
			n->fails[BL_FAIL_LOST], n->fails[BL_FAIL_INCOMPLETE],
			n->fails[BL_FAIL_NO_MEMORY], n->fails[BL_FAIL_UNREACHABLE],
			n->fails[BL_FAIL_FAILED], n->fails[BL_FAIL_UNKNOWN], n->fails[BL_FAIL_LEFT],
			n->st.late_dropped, n->st.duplicates, n->st.lost_frames, n->st.again,
			n->st.probes_sent, n->error);
	}
	rack_dump();
}

T_FN void *tr_map(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);

	CHECK(p != MAP_FAILED, "%s", strerror(errno));
	return p;
}

T_FN void tr_reap(void)
{
	int st;
	pid_t pid;
	uint32_t i;

	while ((pid = waitpid(-1, &st, WNOHANG)) > 0) {
		for (i = 0; i < tr_sh->count && tr_sh->node[i].pid != pid; i++)
			;
		if (i == tr_sh->count)
			continue;
		tr_sh->node[i].pid = 0;
		if (st && !tr_sh->node[i].may_die)
			FAIL("endpoint %u died (status %#x): %s", i, st, tr_sh->node[i].error);
		TR_STORE(tr_sh->node[i].done_sending, 1);
		TR_STORE(tr_sh->node[i].state, TR_GONE);
	}
}

/*
 * Reduces @scatterings to one of TEST_SHARE (environment), for machines where a frame costs a
 * hundred times as much as elsewhere, such as an emulated one (tests/vm).
 */
T_FN uint32_t tr_share(uint32_t scatterings)
{
	const char *e = getenv("TEST_SHARE");
	uint32_t share = e ? (uint32_t)strtoul(e, NULL, 10) : 1;

	return scatterings && share > 1 ? scatterings / share + 1 : scatterings;
}

/* Starts an endpoint. Returns its number once it is up. */
T_FN unsigned int tr_add(const struct tr_cfg *cfg)
{
	struct tr_node *n;
	unsigned int id;
	uint64_t start;
	pid_t pid;

	if (!tr_sh) {
		tr_sh = tr_map(sizeof(*tr_sh));
		tr_sh->seed = t_seed();
		rack_last_words = tr_dump;
	}
	id = tr_sh->count;
	CHECK(id < TR_MAX, "too many endpoints");
	n = &tr_sh->node[id];
	n->cfg = *cfg;
	n->cfg.scatterings = tr_share(cfg->scatterings);
	n->sent = tr_map(TR_SENT_MAX * sizeof(*n->sent));
	n->got = tr_map(TR_GOT_MAX * sizeof(*n->got));
	n->failed = tr_map(TR_FAILED_MAX * sizeof(*n->failed));
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "fork");
	if (!pid)
		tr_main(id);
	n->pid = pid; /* The struct is in shared memory, so the child must not write pid. */
	TR_STORE(tr_sh->count, id + 1);
	for (start = t_mono(); TR_LOAD(n->state) == TR_NEW; tr_reap()) {
		rack_serve(2);
		CHECK(t_mono() - start < 60000000000ULL, "endpoint %u does not come up", id);
	}
	return id;
}

T_FN void tr_go(void)
{
	rack_settle();
	fprintf(stderr, "  up after %.1f s\n", (double)(t_mono() - rack_begun) / 1e9);
	TR_STORE(tr_sh->go, 1);
}

/* Serves the rack until @cond() holds or @timeout_ms is over. Returns whether it held. */
T_FN bool tr_until(bool (*cond)(void), unsigned int timeout_ms)
{
	uint64_t end = t_mono() + timeout_ms * 1000000ULL;

	while (!cond()) {
		if (t_mono() > end)
			return false;
		rack_serve(5);
		tr_reap();
	}
	return true;
}

static unsigned int tr_watched;
static uint32_t tr_before;

T_FN bool tr_delivers(void)
{
	return TR_LOAD(tr_sh->node[tr_watched].ngot) > tr_before + 20;
}

/* Waits until endpoint @id has delivered something new. @when is for the message of a failure. */
T_FN void tr_goes_on(unsigned int id, const char *when)
{
	tr_watched = id;
	tr_before = TR_LOAD(tr_sh->node[id].ngot);
	CHECK(tr_until(tr_delivers, 60000), "endpoint %u delivers nothing %s", id, when);
}

T_FN bool tr_all_done(void)
{
	uint32_t i;

	for (i = 0; i < tr_sh->count; i++)
		if (TR_LOAD(tr_sh->node[i].state) < TR_DONE)
			return false;
	return true;
}

static bool tr_all_gone(void)
{
	uint32_t i;

	for (i = 0; i < tr_sh->count; i++)
		if (tr_sh->node[i].pid)
			return false;
	return true;
}

/* Serves the nodes and watches the workers for @ms. */
T_FN void tr_pass(unsigned int ms)
{
	uint64_t end = t_mono() + ms * 1000000ULL;

	while (t_mono() < end) {
		rack_serve(5);
		tr_reap();
	}
}

T_FN void tr_wait_done(unsigned int timeout_ms)
{
	CHECK(tr_until(tr_all_done, timeout_ms), "not all endpoints came to an end in %u ms",
	      timeout_ms);
}

T_FN void tr_stop(void)
{
	TR_STORE(tr_sh->quit, 1);
	CHECK(tr_until(tr_all_gone, 60000), "endpoints do not leave");
}

/* Removes all endpoints, so that the case can add new ones on the same rack. */
T_FN void tr_reset(void)
{
	uint32_t i;

	for (i = 0; i < tr_sh->count; i++) {
		munmap(tr_sh->node[i].sent, TR_SENT_MAX * sizeof(struct oc_sent));
		munmap(tr_sh->node[i].got, TR_GOT_MAX * sizeof(struct oc_got));
		munmap(tr_sh->node[i].failed, TR_FAILED_MAX * sizeof(struct tr_failed));
		memset(&tr_sh->node[i], 0, sizeof(tr_sh->node[i]));
	}
	tr_sh->go = tr_sh->quit = tr_sh->count = 0;
	t_rand(&tr_sh->seed);
}

T_FN void tr_kill(unsigned int id)
{
	tr_sh->node[id].may_die = true;
	kill(tr_sh->node[id].pid, SIGKILL);
}

T_FN uint64_t tr_sum(size_t field)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < tr_sh->count; i++)
		n += *(const uint64_t *)((const char *)&tr_sh->node[i].st + field);
	return n;
}
#define TR_SUM(field) tr_sum(offsetof(struct bl_stats, field))

/*
 * Returns the bit set of items of a scattering of which the sender was told that they did not reach
 * @receiver.
 */
T_FN unsigned int tr_reported(unsigned int sender, uint64_t seq, unsigned int receiver)
{
	const struct tr_node *n = &tr_sh->node[sender];
	unsigned int items = 0;
	uint32_t k;

	for (k = 0; k < n->nfailed && k < TR_FAILED_MAX; k++)
		if (n->failed[k].seq == seq && n->failed[k].dst == receiver)
			items |= 1u << n->failed[k].item;
	return items;
}

/*
 * Judges the whole run. @complete_from, @complete_to: everything from the former to the latter must
 * have arrived. @reported: items that were reported as failed to their sender need not have
 * arrived. @shared: at least one scattering must have reached two receivers, since a run in which
 * nothing was compared proves nothing about the order; otherwise something must at least have been
 * delivered.
 */
T_FN void tr_verdict(uint64_t complete_from, uint64_t complete_to, bool reported, bool shared)
{
	struct oc *c = calloc(1, sizeof(*c));
	enum oc_verdict v;
	uint32_t i, k;

	c->nodes = tr_sh->count;
	c->complete_from = complete_from;
	c->complete_to = complete_to;
	c->excused = reported ? tr_reported : NULL;
	for (i = 0; i < c->nodes; i++)
		c->log[i] = (struct oc_log){ tr_sh->node[i].sent, tr_sh->node[i].got,
					     tr_sh->node[i].nsent, tr_sh->node[i].ngot };
	v = oc_check(c);
	CHECK(v == OC_OK, "verdict %d: %s", v, c->text);
	fprintf(stderr,
		"  %.1f s: %" PRIu64 " scatterings, %" PRIu64 " deliveries, %" PRIu64 " comparisons"
		" of two "
		"receivers\n",
		(double)(t_mono() - rack_begun) / 1e9, c->groups, c->deliveries, c->common);
	CHECK(c->deliveries > 0, "nothing was delivered: this proves nothing");
	CHECK(!shared || c->common > 0, "no two receivers delivered the same: their order was not "
					"compared");
	/*
	 * A message that was reported as not delivered must not have been delivered.
	 * BL_FAIL_UNKNOWN makes no claim.
	 */
	for (i = 0; i < c->nodes; i++) {
		const struct tr_node *n = &tr_sh->node[i];

		/*
		 * The log is full, as a log of messages may be: an entry that is missing cannot be
		 * judged.
		 */
		CHECK(n->nfailed <= TR_FAILED_MAX,
		      "endpoint %u was told of %u messages that failed, and the test's log has "
		      "room for %u",
		      i, n->nfailed, TR_FAILED_MAX);
		for (k = 0; k < n->nfailed; k++) {
			const struct tr_failed *f = &n->failed[k];
			const struct tr_node *r = &tr_sh->node[f->dst];
			uint32_t g;

			if (f->why == BL_FAIL_UNKNOWN)
				continue;
			for (g = 0; g < r->ngot; g++)
				CHECK(r->got[g].sender != i || r->got[g].seq != f->seq ||
					      r->got[g].item != f->item,
				      "(%u,%" PRIu64 ") item %u was reported as failed (%u) and "
				      "delivered to %u all the same",
				      i, f->seq, f->item, f->why, f->dst);
		}
	}
	free(c);
}

/*
 * Same as tr_judge(), but with @reported messages that were reported as failed need not have
 * arrived. Nothing more is promised where a machine stands still for longer than dead_after.
 */
T_FN void tr_judge_all(uint64_t complete_from, uint64_t complete_to, bool reported)
{
	tr_verdict(complete_from, complete_to, reported, true);
}

/*
 * Judges the whole run. The case fails if the deliveries do not fit one order, or if there was
 * nothing to compare.
 */
T_FN void tr_judge(uint64_t complete_from, uint64_t complete_to)
{
	tr_verdict(complete_from, complete_to, false, true);
}

/*
 * Same as tr_judge(), for traffic of which no two receivers get the same message: each is judged
 * alone.
 */
T_FN void tr_judge_not_shared(uint64_t complete_from, uint64_t complete_to)
{
	tr_verdict(complete_from, complete_to, false, false);
}

/* Sends big scatterings to cfg.to as fast as it can; never returns. */
T_FN void tr_rage(struct tr *w)
{
	const uint32_t len[] = { 1400, 1400, 1400 };

	for (;;) {
		if (tr_send(w, w->cfg->to, 3, len, 0) == -EAGAIN)
			bl_wait(w->ep, BL_WAIT_SEND | BL_WAIT_RECV, 5);
		if (w->me->nsent > TR_SENT_MAX - 10)
			usleep(1000);
		tr_take(w, 0);
	}
}

/*
 * Adds @endpoints endpoints on @hosts hosts that run tr_mix() with @cfg to its end, and judges the
 * run: everything has to arrive. The case checks its further promises and calls tr_reset().
 */
static inline void tr_talk(const char *what, unsigned int endpoints, unsigned int hosts,
			   struct tr_cfg cfg)
{
	unsigned int i;

	fprintf(stderr, "  %s:\n", what);
	for (i = 0; i < endpoints; i++) {
		cfg.host = i % hosts;
		cfg.fn = tr_mix;
		tr_add(&cfg);
	}
	tr_go();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(~0ULL, ~0ULL);
}

#endif
