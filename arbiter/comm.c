// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The comm stage: packets in, each to its endpoint's session; new demands to the allocator; grants
 * into ALLOCs; watchdogs.
 *
 * A turn reads the clock first, then empties the group's socket, then evaluates the watchdogs
 * (core/fastpass/watchdog_core.h says why), and only then processes requests. So a process that was
 * stopped loses its right to give slots before it can use it.
 */
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "arbiter/comm.h"
#include "arbiter/comm_priv.h"
#include "arbiter/peer.h"
#include "base/event.h"
#include "base/log.h"

/* ---- opening ---- */

static int sock_open(struct bl_arb *a, const struct in6_addr *ip, bool group, struct bl_err *err)
{
	struct arb_sock *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return bl_fail(err, ENOMEM, "out of memory");
	a->sock[a->nsock++] = s;
	s->family = arb_addr_family(ip);
	s->group = group;
	s->fd = arb_udp_open(ip, a->cfg.port, group ? a->cfg.group_if : NULL, err);
	if (s->fd < 0)
		return s->fd;
	rc = group ? arb_group_join(s->fd, ip, a->cfg.group_if, err) : 0;
	return rc;
}

/* Watchdogs leave from the address of this arbiter's rank, by which the others know them. */
static int bind_watchdogs(const struct bl_arb *a, unsigned int index, struct bl_err *err)
{
	char name[INET6_ADDRSTRLEN];
	struct arb_sa sa;

	if (a->cfg.rank >= a->cfg.narbiters)
		return 0;
	arb_sa_set(&sa, arb_addr_family(&a->cfg.group), &a->cfg.arbiters[a->cfg.rank], 0,
		   IN6_IS_ADDR_LINKLOCAL(&a->cfg.arbiters[a->cfg.rank]) ? index : 0);
	return bind(a->wd_send, &sa.sa, sa.len)
		       ? bl_fail(err, errno, "cannot send watchdogs from %s: %s",
				 arb_addr_text(&a->cfg.arbiters[a->cfg.rank], name),
				 strerror(errno))
		       : 0;
}

/*
 * Whether packet @i of the group comes from the address of the rank that it names. A packet that is
 * no watchdog passes: bl_wd_rx() counts it.
 */
static bool from_its_arbiter(const struct bl_arb *a, unsigned int i)
{
	const struct bl_fcp_watchdog *b;
	struct bl_fcp_pkt k;
	struct in6_addr ip;
	uint16_t port;

	if (!a->cfg.narbiters ||
	    bl_fcp_parse(a->in.buf[i], a->in.msg[i].msg_len, 0, &k) != BL_FCP_R_OK ||
	    k.opcode != BL_FCP_WATCHDOG)
		return true;
	b = k.body;
	arb_sa_get(&a->in.addr[i], &ip, &port);
	return BL_BE16(b->rank) < a->cfg.narbiters &&
	       !memcmp(&a->cfg.arbiters[BL_BE16(b->rank)], &ip, sizeof(ip));
}

static void read_watchdog(struct bl_arb *a, unsigned int i, uint64_t now)
{
	if (from_its_arbiter(a, i))
		bl_wd_rx(&a->wd, a->in.buf[i], a->in.msg[i].msg_len, now);
	else
		a->wd.count[BL_FCP_R_UNKNOWN]++;
}

int arb_comm_open(struct bl_arb *a, struct bl_err *err)
{
	static const struct in6_addr any = IN6ADDR_ANY_INIT;
	unsigned int i;
	int rc = 0;

	if (getrandom(a->rnd, sizeof(a->rnd), 0) != sizeof(a->rnd) ||
	    getrandom(&a->hash_key, sizeof(a->hash_key), 0) != sizeof(a->hash_key))
		return bl_fail(err, EIO, "the kernel has no random numbers");
	if (getrandom(&a->faults_challenge, sizeof(a->faults_challenge), 0) !=
	    sizeof(a->faults_challenge))
		return bl_fail(err, EIO, "the kernel has no random numbers");
	a->faults_challenge |= 1; /* 0 stands for a service that does not know it */
	a->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->bell_fd < 0)
		return bl_fail(err, errno, "eventfd: %s", strerror(errno));
	for (i = 0; !rc && i < a->cfg.nlisten; i++)
		rc = sock_open(a, &a->cfg.listen[i], false, err);
	if (!rc && !i)
		rc = sock_open(a, &any, false, err);
	a->alone = IN6_IS_ADDR_UNSPECIFIED(&a->cfg.group);
	if (!rc && !a->alone)
		rc = sock_open(a, &a->cfg.group, true, err);
	if (!rc && !a->alone) {
		unsigned int index = if_nametoindex(a->cfg.group_if);

		a->wd_fd = arb_udp_open(&a->cfg.group, a->cfg.wd_port, a->cfg.group_if, err);
		rc = a->wd_fd < 0 ? a->wd_fd
				  : arb_group_join(a->wd_fd, &a->cfg.group, a->cfg.group_if, err);
		if (!rc) {
			a->wd_send = socket(arb_addr_family(&a->cfg.group),
					    SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
			if (a->wd_send < 0)
				rc = bl_fail(err, errno, "cannot make a UDP socket: %s",
					     strerror(errno));
			else
				rc = bind_watchdogs(a, index, err);
		}
		if (!rc)
			rc = arb_group_join(a->wd_send, &a->cfg.group, a->cfg.group_if, err);
		arb_sa_set(&a->wd_to, arb_addr_family(&a->cfg.group), &a->cfg.group, a->cfg.wd_port,
			   index);
	}
	return rc ? rc : arb_peers_open(a, err);
}

void arb_comm_close(struct bl_arb *a)
{
	unsigned int i;

	for (i = 0; i < a->nsock; i++) {
		if (a->sock[i]->fd >= 0)
			close(a->sock[i]->fd);
		free(a->sock[i]);
	}
	if (a->wd_fd >= 0)
		close(a->wd_fd);
	if (a->wd_send >= 0)
		close(a->wd_send);
	if (a->bell_fd >= 0)
		close(a->bell_fd);
	arb_peers_close(a);
}

/* ---- between a session and the pipeline ---- */

/*
 * Hands what a session has for the allocator to it: first the end of the session before, then
 * demands. What the ring has no room for stays in the session.
 */
static void hand_over_demands(struct bl_arb *a, struct arb_peer *p)
{
	struct arb_ask q = { .src = (uint16_t)(p - a->peer) };
	uint32_t dst;

	if (p->fcp.fresh) {
		if (!ck_ring_enqueue_spsc_ask(&a->asks, a->asks_buf, &q))
			return;
		p->fcp.fresh = 0;
		p->forgets++;
	}
	while (ck_ring_size(&a->asks) < ck_ring_capacity(&a->asks) - 1 &&
	       bl_fcp_arb_take(&p->fcp, &dst, &q.mtus)) {
		q.dst = (uint16_t)dst;
		ck_ring_enqueue_spsc_ask(&a->asks, a->asks_buf, &q);
	}
}

void arb_take_slots(struct bl_arb *a, const struct arb_grant *g, uint64_t now)
{
	struct arb_peer *p = &a->peer[g->src];
	uint64_t bits = g->slots, begun = arb_slot(a, 0);

	/* @fresh: these slots are for the session before; the ring had no room for its end yet */
	if (p->forgets || p->fcp.fresh || !p->fcp.e.nonce) {
		p->stale += (uint64_t)__builtin_popcountll(bits);
		a->t.stale += (uint64_t)__builtin_popcountll(bits);
		return;
	}
	for (; bits; bits &= bits - 1) {
		uint64_t slot = g->base + (uint64_t)__builtin_ctzll(bits);
		int r = arb_peer_grant(p, slot, g->dst, g->path);

		if (r < 0) {
			arb_peer_send(a, p, now);
			r = arb_peer_grant(p, slot, g->dst, g->path);
		}
		a->t.granted += r == 0;
		a->t.late += r == 0 && slot < begun;
	}
	if (!p->touched) {
		p->touched = true;
		a->touched[a->ntouched++] = g->src;
	}
}

void arb_take_refund(struct bl_arb *a, const struct arb_grant *g)
{
	struct bl_fcp_arb *f = &a->peer[g->src].fcp;

	a->t.refunds++;
	if (a->peer[g->src].forgets || f->fresh)
		return; /* the demand of a session that has ended */
	f->e.pair[g->dst].done -= g->mtus;
	f->waiting -= g->mtus;
	bl_fcp_queue_push(&f->e, &f->e.look, BL_FCP_Q_LOOK, g->dst);
}

void arb_comm_take(struct bl_arb *a)
{
	uint64_t now = bl_mono_ns();
	struct arb_grant g;

	while (arb_next_grant(a, &g)) {
		switch (g.kind) {
		case ARB_SLOTS:
			arb_take_slots(a, &g, now);
			break;
		case ARB_REFUND:
			arb_take_refund(a, &g);
			break;
		case ARB_FORGOTTEN:
			a->peer[g.src].forgets--;
			break;
		default:
			now = bl_mono_ns();
			for (; a->ntouched; a->ntouched--) {
				struct arb_peer *p = &a->peer[a->touched[a->ntouched - 1]];

				p->touched = false;
				arb_peer_send(a, p, now);
				hand_over_demands(a, p);
			}
			/* relaxed: nothing is published with the number */
			atomic_store_explicit(&a->took_ns, bl_mono_ns() - g.slots,
					      memory_order_relaxed);
			/* relaxed, too: nothing is published with it */
			atomic_fetch_add_explicit(&a->marks, 1, memory_order_relaxed);
		}
	}
}

/* ---- receiving ---- */

static uint64_t random_nonce(struct bl_arb *a)
{
	a->rnd[1]++; /* a keyed hash of a counter: no outsider can predict a nonce */
	return bl_siphash(a->rnd[0], a->hash_key, &a->rnd[1], sizeof(a->rnd[1]), BL_SIP_NONE);
}

static void refuse_stranger(struct bl_arb *a, const struct in6_addr *ip, uint64_t now)
{
	char name[INET6_ADDRSTRLEN];

	a->t.packets[BL_FCP_R_UNKNOWN]++;
	arb_addr_text(ip, name);
	memcpy(a->t.unknown, name, sizeof(name));
	if (a->told_ns && now - a->told_ns < 1000000000ULL)
		return;
	a->told_ns = now;
	bl_log(BL_LOG_WARN,
	       "%s is not an endpoint of this arbiter and was refused; if it should be one, add it "
	       "to "
	       "the endpoints of all arbiters and hosts",
	       name);
}

/* ---- links to avoid ---- */

enum bl_fcp_reason arb_take_faults(struct bl_arb *a, const struct bl_fcp_pkt *k)
{
	const struct bl_fcp_faults *b = k->body;
	uint64_t boot = BL_BE64(b->boot);
	uint32_t version = BL_BE32(b->version);

	if (BL_BE32(b->table) != a->params.table)
		return BL_FCP_R_BAD_TABLE;
	if (k->challenge != a->faults_challenge)
		return BL_FCP_R_BAD_CHALLENGE;
	if (boot < a->faults_boot ||
	    (boot == a->faults_boot && (__s32)(version - a->t.faults_version) < 0))
		return BL_FCP_R_OLD;
	if (boot == a->faults_boot && version == a->t.faults_version)
		return BL_FCP_R_OK;
	a->faults_boot = boot;
	a->t.faults_version = version;
	a->t.faults_links = k->nlinks;
	if (a->cfg.links)
		a->cfg.links(a->cfg.links_ctx, k->links, k->nlinks);
	return BL_FCP_R_OK;
}

/*
 * Processes a packet from the address of the fault isolation service. A sender that knows the
 * secret gets an answer, which also tells it the challenge, from the primary and from arbiters in
 * standby.
 */
static void faults_receive(struct bl_arb *a, unsigned int sock, unsigned int i,
			   const struct in6_addr *ip, uint16_t port)
{
	uint8_t via = 0;
	struct arb_sock *s;
	struct bl_fcp_pkt k;
	enum bl_fcp_reason why =
		bl_fcp_parse(a->in.buf[i], a->in.msg[i].msg_len, a->cfg.nendpoints, &k);
	struct bl_fcp_heard *h;
	uint8_t *buf;

	if (why == BL_FCP_R_OK && k.opcode != BL_FCP_FAULTS)
		why = BL_FCP_R_BAD_OPCODE;
	if (why == BL_FCP_R_OK &&
	    !bl_fcp_checksum_ok(&a->params, 0, a->in.buf[i], a->in.msg[i].msg_len))
		why = BL_FCP_R_BAD_CHECK;
	if (why != BL_FCP_R_OK) {
		a->t.faults[why]++;
		return;
	}
	a->t.faults[arb_take_faults(a, &k)]++;
	if (!a->sock[sock]->group)
		via = (uint8_t)sock;
	s = a->sock[via];
	buf = arb_sock_room(s, &a->sent);
	h = (void *)(buf + sizeof(struct bl_fcp_hdr));
	*h = (struct bl_fcp_heard){ .boot = BL_BE64(a->faults_boot),
				    .version = BL_BE32(a->t.faults_version),
				    .table = BL_BE32(a->params.table) };
	arb_sock_queue(s, ip, port,
		       bl_fcp_seal(&a->params, 0, BL_FCP_HEARD, a->faults_challenge, 0, 0, 0, buf,
				   sizeof(struct bl_fcp_hdr) + sizeof(*h)));
}

static bool is_from_faults(const struct bl_arb *a, const struct in6_addr *ip, const void *packet,
			   unsigned int len)
{
	const struct bl_fcp_hdr *h = packet;

	/* an endpoint may have the same address, so the opcode decides, too */
	return !IN6_IS_ADDR_UNSPECIFIED(&a->cfg.faults) &&
	       !memcmp(ip, &a->cfg.faults, sizeof(*ip)) && len >= 4 &&
	       h->magic == BL_BE16(BL_FCP_MAGIC) && (h->opcode & 0xf) == BL_FCP_FAULTS;
}

static void receive_request(struct bl_arb *a, unsigned int sock, unsigned int i, uint64_t now)
{
	enum bl_fcp_reason why;
	struct in6_addr ip;
	struct arb_peer *p;
	uint64_t nonce;
	uint16_t port;

	arb_sa_get(&a->in.addr[i], &ip, &port);
	if (is_from_faults(a, &ip, a->in.buf[i], a->in.msg[i].msg_len)) {
		faults_receive(a, sock, i, &ip, port);
		return;
	}
	p = arb_peer_find(a, &ip);
	if (!p) {
		refuse_stranger(a, &ip, now);
		return;
	}
	if (!a->ruled) {
		a->t.packets[BL_FCP_R_STANDBY]++;
		return;
	}
	nonce = p->fcp.e.nonce;
	why = bl_fcp_arb_rx(&p->fcp, a->in.buf[i], a->in.msg[i].msg_len, now, random_nonce(a));
	a->t.packets[why]++;
	/*
	 * Answers go to the source of the last request; but an endpoint that has a session is not
	 * redirected by a packet that does not verify.
	 */
	if (why == BL_FCP_R_OK || !nonce) {
		p->port = port;
		if (!a->sock[sock]->group)
			p->via = (uint8_t)sock;
	}
	hand_over_demands(a, p);
	if (p->fcp.reset_due)
		arb_peer_send(a, p, now);
}

/* ---- primary or standby ---- */

static void restart_sessions(struct bl_arb *a, bool rule)
{
	uint32_t i;

	for (i = 0; i < a->cfg.nendpoints; i++) {
		struct arb_peer *p = &a->peer[i];

		bl_fcp_arb_begin(&p->fcp, 0);
		p->fcp.reset_ns = 0;
		p->fcp.reset.term = BL_BE32(a->wd.term);
		hand_over_demands(a, p);
		if (rule)
			arb_sock_queue(a->sock[p->via], &p->addr, p->port,
				       bl_fcp_arb_call(&a->params,
						       arb_sock_room(a->sock[p->via], &a->sent)));
	}
	a->ruled = rule;
	bl_event(&(struct bl_event){ .kind = rule ? BL_EVENT_ARBITER_PRIMARY
						  : BL_EVENT_ARBITER_STANDBY,
				     .level = BL_LOG_INFO,
				     .epoch = a->wd.term },
		 rule ? "this arbiter (rank %u) is primary from now on, term %u"
		      : "this arbiter (rank %u) is in standby, term %u",
		 a->cfg.rank, a->wd.term);
}

static void watchdog_turn(struct bl_arb *a)
{
	uint64_t now = bl_mono_ns(), sending;
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX];
	int n, i;

	if (a->alone) {
		if (!a->ruled) {
			a->wd.state = BL_FCP_PRIMARY;
			a->wd.takeovers = 1;
			atomic_store_explicit(&a->until_ns, BL_FCP_NEVER, memory_order_relaxed);
			restart_sessions(a, true);
		}
		return;
	}
	while ((n = arb_receive(&a->in, a->wd_fd)) > 0)
		for (i = 0; i < n; i++)
			read_watchdog(a, (unsigned int)i, now);
	if (bl_wd_tick(&a->wd, now)) {
		uint32_t len = bl_wd_tx(&a->wd, buf);

		sending = bl_mono_ns();
		if (sendto(a->wd_send, buf, len, MSG_DONTWAIT, &a->wd_to.sa, a->wd_to.len) ==
		    (ssize_t)len)
			bl_wd_sent(&a->wd, sending);
		else
			a->sent.failed++;
	}
	now = bl_mono_ns();
	atomic_store_explicit(&a->until_ns,
			      bl_wd_may_allocate(&a->wd, now) ? a->wd.sent_ns + a->wd.lease_ns : 0,
			      memory_order_relaxed);
	if (a->ruled != (a->wd.state == BL_FCP_PRIMARY))
		restart_sessions(a, !a->ruled);
}

/* ---- a turn ---- */

uint64_t arb_comm_turn(struct bl_arb *a)
{
	uint32_t n = a->cfg.nendpoints, i;
	uint64_t now, next;
	unsigned int s;

	watchdog_turn(a);
	now = bl_mono_ns();
	for (s = 0; s < a->nsock; s++) {
		int k, got = arb_receive(&a->in, a->sock[s]->fd);

		for (k = 0; k < got; k++)
			receive_request(a, s, (unsigned int)k, now);
	}
	arb_comm_take(a);
	now = bl_mono_ns();
	next = a->alone ? BL_FCP_NEVER : bl_wd_next(&a->wd);
	for (i = 0; i < n && i < ARB_SCAN; i++) {
		struct arb_peer *p = &a->peer[a->scan_at];
		uint64_t t = bl_fcp_arb_next(&p->fcp);

		a->scan_at = a->scan_at + 1 == n ? 0 : a->scan_at + 1;
		if (p->touched)
			continue; /* its ALLOC is being built and is sent at the mark */
		if (t <= now) {
			arb_peer_send(a, p, now);
			t = bl_fcp_arb_next(&p->fcp);
		}
		if (p->fcp.fresh || p->fcp.e.look.count)
			hand_over_demands(a, p);
		next = bl_min64(next, t);
	}
	if (n > ARB_SCAN)
		next = bl_min64(next, now + 50000); /* the turn of the other endpoints */
	for (s = 0; s < a->nsock; s++)
		arb_sock_flush(a->sock[s], &a->sent);
	return next;
}

void arb_comm_wait(struct bl_arb *a, uint64_t until)
{
	struct pollfd fds[BL_ARB_LISTEN_MAX + 3];
	struct timespec t = { 0 };
	nfds_t n = 0;
	uint64_t now, v;
	unsigned int s;

	fds[n++] = (struct pollfd){ .fd = a->bell_fd, .events = POLLIN };
	for (s = 0; s < a->nsock; s++)
		fds[n++] = (struct pollfd){ .fd = a->sock[s]->fd, .events = POLLIN };
	if (a->wd_fd >= 0)
		fds[n++] = (struct pollfd){ .fd = a->wd_fd, .events = POLLIN };
	atomic_store_explicit(&a->asleep, true, memory_order_relaxed);
	/* pairs with the fence in wake_comm() in pipe.c */
	ck_pr_fence_memory();
	now = bl_mono_ns();
	if (until > now + 100000000)
		until = now + 100000000;
	if (ck_ring_size(&a->to_comm[a->turn].ring) == 0 && until > now &&
	    !atomic_load_explicit(&a->stop, memory_order_relaxed)) {
		t.tv_nsec = (long)(until - now);
		ppoll(fds, n, &t, NULL);
	}
	atomic_store_explicit(&a->asleep, false, memory_order_relaxed);
	if (fds[0].revents & POLLIN && read(a->bell_fd, &v, sizeof(v)) < 0)
		return;
}
