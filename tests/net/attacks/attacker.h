/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The attacker: a process in the network namespace of one host of a rack that runs none of
 * barline's programs there. It sends raw Ethernet frames past the qdisc, and sees what reaches the
 * NIC, as somebody does who has taken over that machine or plugs in one of his own.
 *
 *	static void still(struct atk *a)
 *	{
 *		uint64_t b = atk_now(a);
 *
 *		while (atk_pace(a, 1000))	every 1000 us, until atk_stop()
 *			atk_beacon(a, b, b);
 *	}
 *	...
 *	atk_start(3, still, 0);			from h4, in a process of its own
 *	tr_pass(2000);
 *	end = atk_stop();			no frame was sent after that
 *
 * He is given more than a real one has: the clock of the rack to the nanosecond, the incarnation of
 * every endpoint, and the number that each sender will use next (atk_psn()). A defence must not
 * rest on his not knowing these.
 */
#ifndef BARLINE_TESTS_ATTACKER_H
#define BARLINE_TESTS_ATTACKER_H

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sys/socket.h>

#include "core/clock_core.h"
#include "core/wire_core.h"
#include "lab/pass.h"
#include "tests/net/traffic.h"

#define ATK_FRAME_MAX 1514
#define ATK_KEEP      512 /* captured frames */
#define ATK_NO_HOST   (~0U)

/** struct atk_shared - what the attacker and the case share. */
struct atk_shared {
	uint32_t stop;     /* written by the case */
	uint32_t over;     /* the attack has come to its end by itself */
	uint64_t frames;   /* sent */
	uint64_t refused;  /* by the attacker's own NIC */
	uint64_t seen;     /* captured */
	uint64_t ended_ns; /* CLOCK_MONOTONIC of the last frame; 0: the attack goes on */
	uint64_t note[8];  /* free for the attack */
};
static struct atk_shared *atk_sh;
static pid_t atk_pid;
static uint64_t atk_runs;

/** struct atk_frame - a frame under construction. */
struct atk_frame {
	uint32_t len;
	uint8_t b[ATK_FRAME_MAX];
};

/** struct atk_from - whose name a datagram bears. */
struct atk_from {
	uint8_t mac[6];
	uint8_t ip[16]; /* IPv6, or IPv4-mapped */
	uint16_t port;
};

/** struct atk - the attacker's own state. */
struct atk {
	int fd;          /* packet socket on eth0 */
	unsigned int me; /* host, from 0 */
	uint8_t mac[6];  /* of his NIC */
	struct bl_clock clock;
	uint64_t seed, arg;
	uint64_t next_ns; /* of atk_pace() */
	struct atk_frame kept[ATK_KEEP];
	unsigned int nkept;
	unsigned int flags;    /* BL_HOP_*, lanes and lane of his frames; 0: a host with one lane */
	int regs, lags, lanes; /* maps of his switch; 0: atk_input() opens them */
};

/** struct atk_input - what the switch makes of him. */
struct atk_input {
	bool in;         /* the minimum of B waits for him */
	uint32_t lagged; /* how often he was put out because he lagged, at most BL_LAG_TIMES */
	uint64_t out_ns; /* watch time of the last of these; 0: there was none */
	uint64_t watch_ns;
};

/* ---- what he knows ---- */

T_FN uint64_t atk_now(const struct atk *a)
{
	return bl_clock_at(&a->clock, t_mono());
}

/* Returns the MAC address of host @host, from 0. */
T_FN const uint8_t *atk_mac(unsigned int host)
{
	return rack.lab.nodes[rack_host(host)].ports[0].mac;
}

/* Returns the incarnation of endpoint @id. */
T_FN uint16_t atk_life(unsigned int id)
{
	struct bl_ep_slot slot;
	uint32_t key = id; /* tr_main(): port BL_PORT_BASE + id */
	int fd = rack_map(rack_host(tr_sh->node[id].cfg.host), BL_MAP_EPS);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &key, &slot), "%s", strerror(errno));
	close(fd);
	return slot.life;
}

/* The number that the frames of endpoint @id to each of its receivers bear about now. */
T_FN uint32_t atk_psn(unsigned int id)
{
	return TR_LOAD(tr_sh->node[id].nsent);
}

/* Endpoint @id, as its host would send. */
T_FN struct atk_from atk_as(unsigned int id)
{
	const struct tr_node *n = &tr_sh->node[id];
	struct atk_from f = { .port = n->addr.port };

	memcpy(f.mac, atk_mac(n->cfg.host), 6);
	memcpy(f.ip, n->addr.ip, 16);
	return f;
}

/* A sender that does not exist: number @i of 16 million, behind the attacker's own MAC address. */
T_FN struct atk_from atk_nobody(const struct atk *a, uint32_t i)
{
	struct atk_from f = {
		.ip = { [10] = 0xff, 0xff, 10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i },
		.port = BL_PORT_BASE + 200
	};

	memcpy(f.mac, a->mac, 6);
	return f;
}

/*
 * What the switch that he is behind makes of him. What he does next can depend on that, and not on
 * the time that has passed: a switch counts in watch time, which runs slower than any clock while
 * the machine is short of CPU. @lagged and @out_ns are final when @in is true again. The switches
 * of these racks have one lane.
 */
T_FN struct atk_input atk_input(struct atk *a)
{
	const struct lab_port *p = &rack.lab.nodes[rack_host(a->me)].ports[0];
	struct bl_port_regs regs;
	struct bl_sw_lane lane;
	struct bl_lag lag;
	uint32_t key = p->peer_port, zero = 0;

	if (!a->regs) {
		a->regs = rack_map(p->peer_node, BL_MAP_SW_REGS);
		a->lags = rack_map(p->peer_node, BL_MAP_SW_LAGS);
		a->lanes = rack_map(p->peer_node, BL_MAP_SW_LANES);
	}
	CHECK(!bpf_map_lookup_elem(a->regs, &key, &regs) &&
		      !bpf_map_lookup_elem(a->lags, &key, &lag) &&
		      !bpf_map_lookup_elem(a->lanes, &zero, &lane),
	      "%s", strerror(errno));
	return (struct atk_input){ .in = (uint8_t)regs.lane[0].state == BL_REG_LIVE,
				   .lagged = lag.times,
				   .out_ns = lag.out_ns,
				   .watch_ns = lane.watch_ns };
}

/*
 * Whether he is not in B, and has never been put out because he lagged: he has not joined yet, or
 * had no CPU for dead_after and was put out because he was silent. What he wants to show has to
 * begin, or to begin anew.
 */
T_FN bool atk_begins(struct atk *a)
{
	const struct atk_input input = atk_input(a);

	return !input.in && !input.lagged;
}

/* ---- frames ---- */

T_FN void atk_put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

T_FN void atk_put32(uint8_t *p, uint32_t v)
{
	atk_put16(p, v >> 16);
	atk_put16(p + 2, v);
}

T_FN void atk_send(struct atk *a, const struct atk_frame *f)
{
	if (send(a->fd, f->b, f->len, 0) == (ssize_t)f->len)
		__atomic_add_fetch(&atk_sh->frames, 1, __ATOMIC_RELAXED);
	else
		__atomic_add_fetch(&atk_sh->refused, 1, __ATOMIC_RELAXED);
}

/* The 24 bytes of the header, with the attacker's flags. */
T_FN void atk_hdr(const struct atk *a, uint8_t *p, enum bl_opcode op, uint64_t ts, uint64_t b,
		  uint64_t c, uint32_t psn)
{
	struct bl_hdr *h = (struct bl_hdr *)p;

	bl_put48(h->ts, ts & BL_TS_MASK);
	bl_put48(h->barrier, b & BL_TS_MASK);
	bl_put48(h->commit, c & BL_TS_MASK);
	bl_hdr_set_psn(h, psn);
	h->opcode = BL_OPCODE_BYTE(op);
	h->flags = (uint8_t)a->flags;
}

/* Begins a link frame; the body follows at b[38]. */
T_FN void atk_link(const struct atk *a, struct atk_frame *f, enum bl_opcode op, uint64_t b,
		   uint64_t c, uint32_t psn, uint32_t len)
{
	static const uint8_t to[] = BL_BEACON_MAC;

	memset(f, 0, sizeof(*f));
	f->len = len;
	memcpy(f->b, to, 6);
	memcpy(f->b + 6, a->mac, 6);
	atk_put16(f->b + 12, BL_ETHERTYPE);
	atk_hdr(a, f->b + 14, op, 0, b, c, psn);
}

/* A beacon of the node @node_id from @mac. */
T_FN void atk_beacon_of(struct atk *a, const uint8_t *mac, uint32_t node_id, uint64_t b, uint64_t c)
{
	struct atk_frame f;

	atk_link(a, &f, BL_OP_BEACON, b, c, (uint32_t)atk_sh->frames, BL_BEACON_LEN);
	memcpy(f.b + 6, mac, 6);
	atk_put16(f.b + 38, (uint32_t)a->clock.tai_offset_s);
	atk_put32(f.b + 42, node_id);
	atk_send(a, &f);
}

T_FN void atk_beacon(struct atk *a, uint64_t b, uint64_t c)
{
	atk_beacon_of(a, a->mac, 0x0bad0bad, b, c);
}

/* RSV, GRT or RELEASE. */
T_FN void atk_rsv(struct atk *a, const uint8_t *from, enum bl_opcode op, uint32_t psn,
		  const uint8_t *mac, uint32_t bytes, uint8_t flags)
{
	struct atk_frame f;

	atk_link(a, &f, op, 0, 0, psn, BL_RSV_LEN);
	memcpy(f.b + 6, from, 6);
	memcpy(f.b + 38, mac, 6);
	atk_put32(f.b + 44, bytes);
	f.b[56] = flags;
	atk_send(a, &f);
}

/*
 * Makes a UDP datagram over IPv4 from @from to @to, with @len bytes of @payload. Returns the place
 * of the payload, for payloads that are written later (NULL).
 */
T_FN uint8_t *atk_dgram(struct atk_frame *f, const struct atk_from *from, const struct atk_from *to,
			const void *payload, uint32_t len)
{
	uint8_t *ip = f->b + 14, *udp = ip + 20;
	uint32_t sum = 0, i;

	memset(f, 0, sizeof(*f));
	f->len = 14 + 20 + 8 + len;
	memcpy(f->b, to->mac, 6);
	memcpy(f->b + 6, from->mac, 6);
	atk_put16(f->b + 12, BL_ETH_IP);
	ip[0] = 0x45;
	atk_put16(ip + 2, f->len - 14);
	ip[8] = 64;
	ip[9] = BL_UDP;
	memcpy(ip + 12, from->ip + 12, 4);
	memcpy(ip + 16, to->ip + 12, 4);
	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	atk_put16(ip + 10, ~(sum + (sum >> 16)));
	atk_put16(udp, from->port);
	atk_put16(udp + 2, to->port);
	atk_put16(udp + 4, f->len - 34);
	if (payload)
		memcpy(udp + 8, payload, len);
	return udp + 8;
}

/* Makes an ordered frame from @from to endpoint @to with @len bytes of @body. */
T_FN void atk_udp(const struct atk *a, struct atk_frame *f, const struct atk_from *from,
		  unsigned int to, enum bl_opcode op, uint64_t ts, uint64_t b, uint32_t psn,
		  const void *body, uint32_t len)
{
	struct atk_from dst = atk_as(to);
	uint8_t *p = atk_dgram(f, from, &dst, NULL, (uint32_t)sizeof(struct bl_hdr) + len);

	atk_hdr(a, p, op, ts, b, b, psn);
	if (len)
		memcpy(p + sizeof(struct bl_hdr), body, len);
}

/* The bodies. Each returns its length; @p has room for 1400 bytes. */
T_FN uint32_t atk_body_data(uint8_t *p, uint16_t life, const void *item, uint32_t len)
{
	atk_put16(p, life);
	atk_put16(p + 2, 1);
	atk_put16(p + 4, len);
	memcpy(p + 6, item, len);
	return 6 + len;
}

T_FN uint32_t atk_body_frag(uint8_t *p, uint16_t life, uint32_t id, uint32_t offset, uint32_t total)
{
	memset(p, 0xaa, 16 + 64);
	atk_put16(p, life);
	atk_put16(p + 2, 0);
	atk_put32(p + 4, id);
	atk_put32(p + 8, offset);
	atk_put32(p + 12, total);
	return 16 + 64;
}

T_FN uint32_t atk_body_probe(uint8_t *p, uint16_t life)
{
	atk_put16(p, life);
	atk_put16(p + 2, 0);
	return 4;
}

T_FN uint32_t atk_body_credit(uint8_t *p, uint32_t psn, uint16_t life, uint32_t window)
{
	atk_put32(p, psn);
	atk_put16(p + 4, life);
	atk_put16(p + 6, window);
	return 8;
}

T_FN uint32_t atk_body_nak(uint8_t *p, uint32_t psn, uint32_t count, uint16_t life, uint8_t why)
{
	atk_put32(p, psn);
	atk_put32(p + 4, count);
	atk_put16(p + 8, life);
	p[10] = why;
	p[11] = BL_NAK_WHOLE;
	return 12;
}

/* A PREP with one message of 64 bytes. @life: of the receiver. */
T_FN uint32_t atk_body_prep(uint8_t *p, uint16_t own, uint32_t slot, uint16_t life)
{
	memset(p, 0x55, 100);
	atk_put16(p, own);
	atk_put16(p + 2, 1);
	atk_put32(p + 4, slot);
	atk_put16(p + 8, life);
	atk_put16(p + 10, 0);
	atk_put16(p + 12, 64);
	return 100;
}

T_FN uint32_t atk_body_window(uint8_t *p, uint32_t psn, uint16_t own, uint32_t window,
			      uint16_t life)
{
	atk_put32(p, psn);
	atk_put16(p + 4, own);
	atk_put16(p + 6, window);
	atk_put16(p + 8, life);
	atk_put16(p + 10, 0);
	return 12;
}

T_FN uint32_t atk_body_recall(uint8_t *p, uint16_t own, uint16_t life, uint32_t count, uint64_t ts)
{
	atk_put16(p, own);
	atk_put16(p + 2, life);
	atk_put32(p + 4, count);
	bl_put48(p + 8, ts & BL_TS_MASK);
	atk_put16(p + 14, 0);
	return 16;
}

/* ---- what he does ---- */

T_FN bool atk_on(const struct atk *a)
{
	(void)a;
	return !TR_LOAD(atk_sh->stop);
}

/*
 * Waits until it is time for the next frame, one every @gap_us. Returns false when the attack is to
 * end. A late attacker does not catch up: his frames come at this rate at most.
 */
T_FN bool atk_pace(struct atk *a, uint32_t gap_us)
{
	uint64_t gap = gap_us * 1000ULL, now = t_mono();

	if (!a->next_ns || a->next_ns + 20 * gap < now)
		a->next_ns = now;
	while (atk_on(a) && (now = t_mono()) < a->next_ns) {
		uint64_t left = (a->next_ns - now) / 1000;

		usleep((useconds_t)(left > 20000 ? 20000 : left));
	}
	a->next_ns += gap;
	return atk_on(a);
}

/* Something that is not a frame was sent. */
T_FN void atk_did(void)
{
	__atomic_add_fetch(&atk_sh->frames, 1, __ATOMIC_RELAXED);
}

/* The attack is over, but the attacker stays. */
T_FN void atk_rest(struct atk *a)
{
	TR_STORE(atk_sh->over, 1);
	while (atk_on(a))
		usleep(1000);
}

/* Takes what has reached the NIC and keeps the latest frames. Returns the number of new ones. */
T_FN unsigned int atk_capture(struct atk *a)
{
	unsigned int n = 0;

	for (;;) {
		struct atk_frame *f = &a->kept[a->nkept % ATK_KEEP];
		struct sockaddr_ll from;
		socklen_t size = sizeof(from);
		ssize_t len =
			recvfrom(a->fd, f->b, sizeof(f->b), MSG_DONTWAIT, (void *)&from, &size);

		if (len <= 0)
			return n;
		if (from.sll_pkttype == PACKET_OUTGOING)
			continue;
		f->len = (uint32_t)len;
		a->nkept++;
		n++;
		__atomic_add_fetch(&atk_sh->seen, 1, __ATOMIC_RELAXED);
	}
}

T_FN void atk_main(struct atk *a, void (*attack)(struct atk *a))
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int on = 1, room = 4 << 20;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (a->me == ATK_NO_HOST) {
		attack(a);
		goto over;
	}
	rack_enter(rack_host(a->me));
	at.sll_ifindex = (int)if_nametoindex("eth0");
	a->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	if (a->fd < 0 || setsockopt(a->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)) ||
	    bind(a->fd, (void *)&at, sizeof(at)))
		_exit(1);
	setsockopt(a->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	attack(a);
over:
	TR_STORE(atk_sh->ended_ns, t_mono());
	TR_STORE(atk_sh->over, 1);
	_exit(0);
}

/*
 * Lets @attack() run with @arg on host @host, from 0. Its NIC gets an XDP program that passes
 * everything, since a veth receives redirected frames only with one. ATK_NO_HOST: in the namespace
 * of the case, where the controller is, without a packet socket.
 */
T_FN void atk_start(unsigned int host, void (*attack)(struct atk *a), uint64_t arg)
{
	struct atk *a = tr_map(sizeof(*a));
	uint32_t zero = 0;
	int fd = rack_map(rack_host(0), BL_MAP_CLOCK), home;

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &a->clock), "%s", strerror(errno));
	close(fd);
	if (!atk_sh)
		atk_sh = tr_map(sizeof(*atk_sh));
	memset(atk_sh, 0, sizeof(*atk_sh));
	a->me = host;
	a->arg = arg;
	a->seed = tr_sh->seed ^ (atk_runs += 2);
	if (host != ATK_NO_HOST) {
		memcpy(a->mac, atk_mac(host), 6);
		home = rack_away(rack_host(host));
		pass_attach(if_nametoindex("eth0")); /* there already from the second attack on */
		rack_back(home);
	}
	fflush(NULL);
	atk_pid = fork();
	CHECK(atk_pid >= 0, "fork");
	if (!atk_pid)
		atk_main(a, attack);
	munmap(a, sizeof(*a));
}

/* Ends the attack. Returns CLOCK_MONOTONIC of its end. */
T_FN uint64_t atk_stop(void)
{
	int status;

	TR_STORE(atk_sh->stop, 1);
	kill(atk_pid, SIGCONT); /* it may have stopped itself */
	CHECK(waitpid(atk_pid, &status, 0) == atk_pid && !status, "the attacker ended with %#x",
	      status);
	return TR_LOAD(atk_sh->ended_ns);
}

/* Returns how many frames of @node ended in the reason called @name; UINT64_MAX: no such reason. */
T_FN uint64_t atk_count(unsigned int node, const char *name)
{
#define T_NAME(sym, name, kind, text) [BL_R_##sym] = name,
	static const char *const names[BL_REASON_MAX] = { BL_REASONS(T_NAME) };
#undef T_NAME
	unsigned int r;

	for (r = 0; r < BL_REASON_MAX; r++)
		if (names[r] && !strcmp(names[r], name))
			return rack_count(node, (enum bl_reason)r);
	return UINT64_MAX;
}

#endif
