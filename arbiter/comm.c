// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The comm stage: packets in, each to its endpoint's session; new demands to the allocator; grants
 * into ALLOCs; watchdogs.
 *
 * A turn reads the clock first, then empties the group's socket, then judges
 * (core/fastpass/watchdog_core.h says why), and only then looks at requests. So a process that
 * stood still loses its right to give slots before it could use it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "priv.h"

#define RCVBUF (4 << 20)

static char *addr_name(const struct in6_addr *ip, char *buf)
{
	if (IN6_IS_ADDR_V4MAPPED(ip))
		inet_ntop(AF_INET, &ip->s6_addr[12], buf, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, ip, buf, INET6_ADDRSTRLEN);
	return buf;
}

static void sa_set(struct arb_sa *s, sa_family_t family, const struct in6_addr *ip, uint16_t port,
		   unsigned int scope)
{
	memset(s, 0, sizeof(*s));
	if (family == AF_INET) {
		s->in.sin_family = AF_INET;
		s->in.sin_port = htons(port);
		memcpy(&s->in.sin_addr, &ip->s6_addr[12], 4);
		s->len = sizeof(s->in);
		return;
	}
	s->in6.sin6_family = AF_INET6;
	s->in6.sin6_port = htons(port);
	s->in6.sin6_addr = *ip;
	s->in6.sin6_scope_id = scope;
	s->len = sizeof(s->in6);
}

static void sa_get(const struct arb_sa *s, struct in6_addr *ip, uint16_t *port)
{
	if (s->sa.sa_family == AF_INET) {
		memset(ip, 0, sizeof(*ip));
		ip->s6_addr[10] = ip->s6_addr[11] = 0xff;
		memcpy(&ip->s6_addr[12], &s->in.sin_addr, 4);
		*port = ntohs(s->in.sin_port);
		return;
	}
	*ip = s->in6.sin6_addr;
	*port = ntohs(s->in6.sin6_port);
}

static sa_family_t family_of(const struct in6_addr *ip)
{
	return IN6_IS_ADDR_V4MAPPED(ip) ? AF_INET : AF_INET6;
}

/* ---- opening ---- */

/*
 * @group_if: for a group; it may be of link-local scope, and several arbiters of a machine may
 * listen to it
 */
static int udp_open(const struct in6_addr *ip, uint16_t port, const char *group_if,
		    struct bl_err *err)
{
	sa_family_t family = family_of(ip);
	int on = 1, off = 0, size = RCVBUF,
	    fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;
	char name[INET6_ADDRSTRLEN];
	struct arb_sa sa;

	if (fd < 0)
		return bl_fail(err, errno, "cannot make a UDP socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (group_if)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, IN6_IS_ADDR_UNSPECIFIED(ip) ? &off : &on,
			   sizeof(on));
	sa_set(&sa, family, ip, port, group_if ? if_nametoindex(group_if) : 0);
	if (bind(fd, &sa.sa, sa.len)) {
		rc = bl_fail(err, errno, "cannot listen on %s port %u: %s", addr_name(ip, name),
			     port, strerror(errno));
		close(fd);
		return rc;
	}
	return fd;
}

static int group_join(int fd, const struct in6_addr *group, const char *ifname, struct bl_err *err)
{
	unsigned int index = if_nametoindex(ifname);
	char name[INET6_ADDRSTRLEN];
	int rc;

	if (!index)
		return bl_fail(err, ENODEV, "the group's interface %s does not exist", ifname);
	if (IN6_IS_ADDR_V4MAPPED(group)) {
		struct ip_mreqn m = { .imr_ifindex = (int)index };

		memcpy(&m.imr_multiaddr, &group->s6_addr[12], 4);
		rc = setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m)) ||
		     setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &m, sizeof(m));
	} else {
		struct ipv6_mreq m = { .ipv6mr_multiaddr = *group, .ipv6mr_interface = index };

		rc = setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof(m)) ||
		     setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof(index));
	}
	return rc ? bl_fail(err, errno, "cannot join %s on %s: %s", addr_name(group, name), ifname,
			    strerror(errno))
		  : 0;
}

static int sock_open(struct bl_arb *a, const struct in6_addr *ip, bool group, struct bl_err *err)
{
	struct arb_sock *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return bl_fail(err, ENOMEM, "out of memory");
	a->sock[a->nsock++] = s;
	s->family = family_of(ip);
	s->group = group;
	s->fd = udp_open(ip, a->cfg.port, group ? a->cfg.group_if : NULL, err);
	if (s->fd < 0)
		return s->fd;
	rc = group ? group_join(s->fd, ip, a->cfg.group_if, err) : 0;
	return rc;
}

static uint32_t hash_of(const struct bl_arb *a, const struct in6_addr *ip)
{
	return (uint32_t)bl_siphash(a->hash_key, 0, ip, 16, BL_SIP_NONE) & a->hash_mask;
}

static struct arb_peer *peer_find(struct bl_arb *a, const struct in6_addr *ip)
{
	uint32_t at = hash_of(a, ip);

	for (; a->hash[at]; at = (at + 1) & a->hash_mask)
		if (!memcmp(&a->cfg.endpoints[a->hash[at] - 1].addr, ip, sizeof(*ip)))
			return &a->peer[a->hash[at] - 1];
	return NULL;
}

static int peers_open(struct bl_arb *a, struct bl_err *err)
{
	uint32_t n = a->cfg.nendpoints, i, at;
	size_t each = n * (sizeof(struct bl_fcp_pair) + 2 * sizeof(uint16_t)) +
		      BL_FCP_WINDOW * sizeof(struct bl_fcp_sent);
	char name[INET6_ADDRSTRLEN];
	uint8_t *m;

	each = (each + 63) & ~63UL;
	for (a->hash_mask = 15; a->hash_mask < 2 * n; a->hash_mask = 2 * a->hash_mask + 1)
		;
	a->hash = calloc(a->hash_mask + 1, sizeof(*a->hash));
	a->peer = calloc(n, sizeof(*a->peer));
	a->touched = calloc(n, sizeof(*a->touched));
	a->mem = m = calloc(n, each); /* zero pages until a pair is used */
	if (!a->hash || !a->peer || !a->touched || !m)
		return bl_fail(err, ENOMEM, "out of memory for %u endpoints", n);
	for (i = 0; i < n; i++, m += each) {
		struct arb_peer *p = &a->peer[i];
		struct bl_fcp_end *e = &p->fcp.e;

		if (peer_find(a, &a->cfg.endpoints[i].addr))
			return bl_fail(err, EINVAL, "endpoint %s is listed twice",
				       addr_name(&a->cfg.endpoints[i].addr, name));
		for (at = hash_of(a, &a->cfg.endpoints[i].addr); a->hash[at];
		     at = (at + 1) & a->hash_mask)
			;
		a->hash[at] = i + 1;
		p->addr = a->cfg.endpoints[i].addr;
		p->port = a->cfg.endpoints[i].port ? a->cfg.endpoints[i].port : BL_FCP_PORT;
		for (p->via = 0;
		     p->via < a->nsock && a->sock[p->via]->family != family_of(&p->addr); p->via++)
			;
		if (p->via == a->nsock || a->sock[p->via]->group)
			p->via = 0;
		p->fcp.p = &a->params;
		e->n = n;
		e->sent = (void *)m;
		e->pair = (void *)(m + BL_FCP_WINDOW * sizeof(struct bl_fcp_sent));
		e->tell.item = (void *)(e->pair + n);
		e->look.item = e->tell.item + n;
		p->fcp.reset = (struct bl_fcp_reset){ .table = BL_BE32(a->params.table),
						      .slot_ns = BL_BE32(a->cfg.slot_ns),
						      .slot_bytes = BL_BE32(a->cfg.slot_bytes),
						      .index = BL_BE16(i),
						      .endpoints = BL_BE16(n) };
		bl_fcp_session_begin(&p->fcp.e, 0);
	}
	return 0;
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
	a->faults_challenge |= 1; /* 0 is who does not know it */
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

		a->wd_fd = udp_open(&a->cfg.group, a->cfg.wd_port, a->cfg.group_if, err);
		rc = a->wd_fd < 0 ? a->wd_fd
				  : group_join(a->wd_fd, &a->cfg.group, a->cfg.group_if, err);
		if (!rc) {
			a->wd_send = socket(family_of(&a->cfg.group),
					    SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
			if (a->wd_send < 0)
				rc = bl_fail(err, errno, "cannot make a UDP socket: %s",
					     strerror(errno));
		}
		if (!rc)
			rc = group_join(a->wd_send, &a->cfg.group, a->cfg.group_if, err);
		sa_set(&a->wd_to, family_of(&a->cfg.group), &a->cfg.group, a->cfg.wd_port, index);
	}
	return rc ? rc : peers_open(a, err);
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
	free(a->hash);
	free(a->peer);
	free(a->touched);
	free(a->mem);
}

/* ---- sending ---- */

static void flush(struct bl_arb *a, struct arb_sock *s)
{
	unsigned int at = 0;

	while (at < s->out.n) {
		int n = sendmmsg(s->fd, &s->out.msg[at], s->out.n - at, MSG_DONTWAIT);

		if (n <= 0) { /* this one is lost, like many on their way: totals make up for it */
			a->t.send_failed++;
			n = 1;
		} else {
			a->t.sent += (unsigned int)n;
		}
		at += (unsigned int)n;
	}
	s->out.n = 0;
}

static uint8_t *room(struct bl_arb *a, struct arb_sock *s)
{
	if (s->out.n == ARB_BATCH)
		flush(a, s);
	return s->out.buf[s->out.n];
}

static void queue(struct arb_sock *s, const struct arb_peer *p, uint32_t len)
{
	struct arb_packets *o = &s->out;
	unsigned int i = o->n++;

	sa_set(&o->addr[i], s->family, &p->addr, p->port, 0);
	o->iov[i] = (struct iovec){ o->buf[i], len };
	o->msg[i].msg_hdr = (struct msghdr){ .msg_name = &o->addr[i].sa,
					     .msg_namelen = o->addr[i].len,
					     .msg_iov = &o->iov[i],
					     .msg_iovlen = 1 };
}

static void peer_send(struct bl_arb *a, struct arb_peer *p, uint64_t now)
{
	struct arb_sock *s = a->sock[p->via];
	uint32_t len;

	while ((len = bl_fcp_arb_tx(&p->fcp, now, room(a, s))))
		queue(s, p, len);
}

/* ---- between a session and the pipeline ---- */

/*
 * a session's end goes to the allocator before the next one's demands; what the ring has no room
 * for stays where it is
 */
static void hand_over(struct bl_arb *a, struct arb_peer *p)
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

static void take_slots(struct bl_arb *a, const struct arb_grant *g, uint64_t now)
{
	struct arb_peer *p = &a->peer[g->src];
	uint64_t bits = g->slots, begun = arb_slot(a, 0);

	/* fresh: of the session before, and the ring had no room to say so yet */
	if (p->forgets || p->fcp.fresh || !p->fcp.e.nonce) {
		p->stale += (uint64_t)__builtin_popcountll(bits);
		a->t.stale += (uint64_t)__builtin_popcountll(bits);
		return;
	}
	for (; bits; bits &= bits - 1) {
		uint64_t slot = g->base + (uint64_t)__builtin_ctzll(bits);
		int r = bl_fcp_arb_grant(&p->fcp, slot, g->dst, g->path);

		if (r < 0) {
			peer_send(a, p, now);
			r = bl_fcp_arb_grant(&p->fcp, slot, g->dst, g->path);
		}
		a->t.granted += r == 0;
		a->t.late += r == 0 && slot < begun;
	}
	if (!p->touched) {
		p->touched = true;
		a->touched[a->ntouched++] = g->src;
	}
}

static void refund(struct bl_arb *a, const struct arb_grant *g)
{
	struct bl_fcp_arb *f = &a->peer[g->src].fcp;

	a->t.refunds++;
	if (a->peer[g->src].forgets || f->fresh)
		return; /* of a session that ended */
	f->e.pair[g->dst].done -= g->mtus;
	f->waiting -= g->mtus;
	bl_fcp_queue_push(&f->e, &f->e.look, BL_FCP_Q_LOOK, g->dst);
}

void arb_comm_take(struct bl_arb *a)
{
	uint64_t now = arb_mono();
	struct arb_grant g;

	while (arb_pipe_next(a, &g)) {
		switch (g.kind) {
		case ARB_SLOTS:
			take_slots(a, &g, now);
			break;
		case ARB_REFUND:
			refund(a, &g);
			break;
		case ARB_FORGOTTEN:
			a->peer[g.src].forgets--;
			break;
		default:
			now = arb_mono();
			for (; a->ntouched; a->ntouched--) {
				struct arb_peer *p = &a->peer[a->touched[a->ntouched - 1]];

				p->touched = false;
				peer_send(a, p, now);
				hand_over(a, p);
			}
			/* a number by itself: nothing is ordered by it */
			atomic_store_explicit(&a->took_ns, arb_mono() - g.slots,
					      memory_order_relaxed);
			/* nor by this */
			atomic_fetch_add_explicit(&a->marks, 1, memory_order_relaxed);
		}
	}
}

/* ---- receiving ---- */

static int receive(struct bl_arb *a, int fd)
{
	struct arb_packets *in = &a->in;
	unsigned int i;

	for (i = 0; i < ARB_BATCH; i++) {
		in->iov[i] = (struct iovec){ in->buf[i], sizeof(in->buf[i]) };
		in->msg[i].msg_hdr = (struct msghdr){ .msg_name = &in->addr[i].sa,
						      .msg_namelen = sizeof(struct sockaddr_in6),
						      .msg_iov = &in->iov[i],
						      .msg_iovlen = 1 };
	}
	return recvmmsg(fd, in->msg, ARB_BATCH, MSG_DONTWAIT, NULL);
}

static uint64_t random64(struct bl_arb *a)
{
	a->rnd[1]++; /* a keyed hash of a counter: nobody outside can foresee a nonce */
	return bl_siphash(a->rnd[0], a->hash_key, &a->rnd[1], sizeof(a->rnd[1]), BL_SIP_NONE);
}

static void stranger(struct bl_arb *a, const struct in6_addr *ip, uint64_t now)
{
	char name[INET6_ADDRSTRLEN];

	a->t.packets[BL_FCP_R_UNKNOWN]++;
	addr_name(ip, name);
	memcpy(a->t.unknown, name, sizeof(name));
	if (a->told_ns && now - a->told_ns < 1000000000ULL)
		return;
	a->told_ns = now;
	bl_log(BL_LOG_WARN,
	       "%s is no endpoint of this arbiter and was refused; if it should be one, add it to "
	       "the endpoints of all arbiters and hosts",
	       name);
}

/* ---- links to be avoided ---- */

/* A list that verified but is not the one that this arbiter has: is it to be taken? */
static enum bl_fcp_reason faults_take(struct bl_arb *a, const struct bl_fcp_pkt *k)
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
 * From the fault isolation service's address. Whoever knows the secret is answered, also to learn
 * the challenge; standing by or not.
 */
static void faults_rx(struct bl_arb *a, unsigned int sock, unsigned int i,
		      const struct in6_addr *ip, uint16_t port)
{
	const struct arb_peer to = { .addr = *ip, .port = port };
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
	a->t.faults[faults_take(a, &k)]++;
	if (!a->sock[sock]->group)
		via = (uint8_t)sock;
	s = a->sock[via];
	buf = room(a, s);
	h = (void *)(buf + sizeof(struct bl_fcp_hdr));
	*h = (struct bl_fcp_heard){ .boot = BL_BE64(a->faults_boot),
				    .version = BL_BE32(a->t.faults_version),
				    .table = BL_BE32(a->params.table) };
	queue(s, &to,
	      bl_fcp_seal(&a->params, 0, BL_FCP_HEARD, a->faults_challenge, 0, 0, 0, buf,
			  sizeof(struct bl_fcp_hdr) + sizeof(*h)));
}

static bool from_faults(const struct bl_arb *a, const struct in6_addr *ip, const void *packet,
			unsigned int len)
{
	const struct bl_fcp_hdr *h = packet;

	/* an endpoint may be on the same machine, so the opcode decides, too */
	return !IN6_IS_ADDR_UNSPECIFIED(&a->cfg.faults) &&
	       !memcmp(ip, &a->cfg.faults, sizeof(*ip)) && len >= 4 &&
	       h->magic == BL_BE16(BL_FCP_MAGIC) && (h->opcode & 0xf) == BL_FCP_FAULTS;
}

static void request(struct bl_arb *a, unsigned int sock, unsigned int i, uint64_t now)
{
	enum bl_fcp_reason why;
	struct in6_addr ip;
	struct arb_peer *p;
	uint64_t nonce;
	uint16_t port;

	sa_get(&a->in.addr[i], &ip, &port);
	if (from_faults(a, &ip, a->in.buf[i], a->in.msg[i].msg_len)) {
		faults_rx(a, sock, i, &ip, port);
		return;
	}
	p = peer_find(a, &ip);
	if (!p) {
		stranger(a, &ip, now);
		return;
	}
	if (!a->ruled) {
		a->t.packets[BL_FCP_R_STANDBY]++;
		return;
	}
	nonce = p->fcp.e.nonce;
	why = bl_fcp_arb_rx(&p->fcp, a->in.buf[i], a->in.msg[i].msg_len, now, random64(a));
	a->t.packets[why]++;
	/*
	 * an answer goes to where the question came from; but who has a session is not led away by
	 * what does not verify
	 */
	if (why == BL_FCP_R_OK || !nonce) {
		p->port = port;
		if (!a->sock[sock]->group)
			p->via = (uint8_t)sock;
	}
	hand_over(a, p);
	if (p->fcp.reset_due)
		peer_send(a, p, now);
}

/* ---- who rules ---- */

static void begin_all(struct bl_arb *a, bool rule)
{
	uint32_t i;

	for (i = 0; i < a->cfg.nendpoints; i++) {
		struct arb_peer *p = &a->peer[i];

		bl_fcp_arb_begin(&p->fcp, 0);
		p->fcp.reset_ns = 0;
		p->fcp.reset.term = BL_BE32(a->wd.term);
		hand_over(a, p);
		if (rule)
			queue(a->sock[p->via], p,
			      bl_fcp_arb_call(&a->params, room(a, a->sock[p->via])));
	}
	a->ruled = rule;
	bl_log(BL_LOG_INFO,
	       rule ? "this arbiter (rank %u) rules from now on, term %u"
		    : "this arbiter (rank %u) stands by, term %u",
	       a->cfg.rank, a->wd.term);
}

static void watch(struct bl_arb *a)
{
	uint64_t now = arb_mono(), sending;
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX];
	int n, i;

	if (a->alone) {
		if (!a->ruled) {
			a->wd.state = BL_FCP_PRIMARY;
			a->wd.takeovers = 1;
			atomic_store_explicit(&a->until_ns, BL_FCP_NEVER, memory_order_relaxed);
			begin_all(a, true);
		}
		return;
	}
	while ((n = receive(a, a->wd_fd)) > 0)
		for (i = 0; i < n; i++)
			bl_wd_rx(&a->wd, a->in.buf[i], a->in.msg[i].msg_len, now);
	if (bl_wd_tick(&a->wd, now)) {
		uint32_t len = bl_wd_tx(&a->wd, buf);

		sending = arb_mono();
		if (sendto(a->wd_send, buf, len, MSG_DONTWAIT, &a->wd_to.sa, a->wd_to.len) ==
		    (ssize_t)len)
			bl_wd_sent(&a->wd, sending);
		else
			a->t.send_failed++;
	}
	now = arb_mono();
	atomic_store_explicit(&a->until_ns,
			      bl_wd_may_allocate(&a->wd, now) ? a->wd.sent_ns + a->wd.lease_ns : 0,
			      memory_order_relaxed);
	if (a->ruled != (a->wd.state == BL_FCP_PRIMARY))
		begin_all(a, !a->ruled);
}

/* ---- a turn ---- */

uint64_t arb_comm_turn(struct bl_arb *a)
{
	uint32_t n = a->cfg.nendpoints, i;
	uint64_t now, next;
	unsigned int s;

	watch(a);
	now = arb_mono();
	for (s = 0; s < a->nsock; s++) {
		int k, got = receive(a, a->sock[s]->fd);

		for (k = 0; k < got; k++)
			request(a, s, (unsigned int)k, now);
	}
	arb_comm_take(a);
	now = arb_mono();
	next = a->alone ? BL_FCP_NEVER : bl_wd_next(&a->wd);
	for (i = 0; i < n && i < ARB_SCAN; i++) {
		struct arb_peer *p = &a->peer[a->scan_at];
		uint64_t t = bl_fcp_arb_next(&p->fcp);

		a->scan_at = a->scan_at + 1 == n ? 0 : a->scan_at + 1;
		if (p->touched)
			continue; /* its ALLOC is being built and goes out at the mark */
		if (t <= now) {
			peer_send(a, p, now);
			t = bl_fcp_arb_next(&p->fcp);
		}
		if (p->fcp.fresh || p->fcp.e.look.count)
			hand_over(a, p);
		next = bl_min64(next, t);
	}
	if (n > ARB_SCAN)
		next = bl_min64(next, now + 50000); /* the others' turn */
	for (s = 0; s < a->nsock; s++)
		flush(a, a->sock[s]);
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
	/* pairs with the fence in wake() */
	ck_pr_fence_memory();
	now = arb_mono();
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
