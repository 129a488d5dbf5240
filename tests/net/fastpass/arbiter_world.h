/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The arbiter server over real sockets. Hosts are threads with a socket and the host's end of FCP,
 * in a network namespace of the case. The promises of core/fastpass/fcp_host_core.h and
 * core/fastpass/fcp_arb_core.h, which unit tests check over a simulated channel, are checked here
 * over the server: sockets, table, rings, threads, group, takeover.
 *
 * Whatever a case does, at the end each host has received as many slots as it wanted, and in no
 * slot did two hosts send to one destination, or one host to two. No time is asserted.
 */
#ifndef BARLINE_TESTS_ARBITER_WORLD_H
#define BARLINE_TESTS_ARBITER_WORLD_H

#include "tests/net/rack.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "arbiter/engine.h"
#include "arbiter/server.h"
#include "core/fastpass/fcp_host_core.h"

#define HOSTS  6
#define SEEN   (1U << 22) /* slots whose owners are remembered, in a ring: 5 s */
#define WAIT_S 60

/* ---- a simple allocator: slot by slot, each pair in turn ---- */

#define WINDOW 16

struct toy {
	uint32_t want[HOSTS][HOSTS];
	uint64_t next, unfinished;
	uint32_t turn, at, n;
	int refuse; /* every n-th demand is refused; 0: none */
	uint32_t demands;
	struct arb_grant out[WINDOW * HOSTS];
};

T_FN int toy_demand(void *p, uint32_t src, uint32_t dst, uint32_t mtus, uint64_t slot)
{
	struct toy *t = p;

	if (t->refuse && ++t->demands % (uint32_t)t->refuse == 0)
		return -ENOSPC;
	t->want[src][dst] += mtus;
	return 0;
}

T_FN void toy_forget(void *p, uint32_t src)
{
	memset(((struct toy *)p)->want[src], 0, sizeof(((struct toy *)p)->want[src]));
}

T_FN unsigned int toy_run(void *p, uint64_t slot, struct arb_grant *out, unsigned int max)
{
	struct toy *t = p;
	uint64_t s, from = slot > t->next ? slot : t->next;
	uint32_t n = 0, k;

	for (s = from; s < slot + WINDOW; s++) {
		uint32_t src_used = 0, dst_used = 0;

		t->turn = (t->turn + 1) % (HOSTS * HOSTS);
		for (k = 0; k < HOSTS * HOSTS; k++) {
			uint32_t at = (t->turn + k) % (HOSTS * HOSTS), i = at / HOSTS,
				 j = at % HOSTS;

			if (!t->want[i][j] || src_used >> i & 1 || dst_used >> j & 1)
				continue;
			t->want[i][j]--;
			src_used |= 1U << i;
			dst_used |= 1U << j;
			out[n++] = (struct arb_grant){ .base = s,
						       .slots = 1,
						       .src = (uint16_t)i,
						       .dst = (uint16_t)j,
						       .path = BL_FCP_PATH_ANY };
		}
		t->next = s + 1;
	}
	CHECK(n <= max, "too many");
	return n;
}

T_FN bool toy_waiting(void *p)
{
	const struct toy *t = p;
	uint32_t i;

	for (i = 0; i < HOSTS * HOSTS; i++)
		if (t->want[i / HOSTS][i % HOSTS])
			return true;
	return false;
}

static const struct arb_alloc_ops toy_ops = { toy_demand,  toy_forget, toy_run,
					      toy_waiting, WINDOW,     0 };

/* A simple path selector: the path is the slot modulo 4, plus the number of its thread times 4. */
T_FN unsigned int toy_paths(void *p, struct arb_grant *g, unsigned int n, unsigned int max)
{
	unsigned int i;

	CHECK(n <= max, "too many");
	for (i = 0; i < n; i++)
		g[i].path = (uint8_t)(g[i].base % 4 + 4 * *(unsigned int *)p);
	return n;
}

static const struct arb_path_ops toy_path_ops = { toy_paths };

/* ---- hosts ---- */

/** struct world - one case. */
static struct world {
	struct bl_arb_endpoint ep[HOSTS];
	struct bl_fcp_host host[HOSTS];
	int fd[HOSTS];
	struct sockaddr_storage target; /* destination of requests */
	socklen_t target_len;
	uint32_t loss; /* lost packets of 1000 in each direction, at the hosts */
	uint64_t rnd;
	bool v6;
	uint64_t by_path[16]; /* slots by path */
	/* Slots of an earlier term that lie after one of a later term: fencing is broken. */
	uint64_t term_slots;
	uint32_t last_term;
	uint64_t last_slot, first_slot;
	/*
	 * Sessions of each host that arbiters which have ended gave up, because this process had no
	 * CPU.
	 */
	uint64_t gone[HOSTS];
	pthread_t thread[3];
	struct bl_arb *arb[3];
	struct toy toy[3];
	struct bl_engine *engine[3];
	struct bl_fp_file file;
	struct bl_fp_peer peer[HOSTS];
} w;
static uint64_t taken_dst[HOSTS][SEEN], taken_src[HOSTS][SEEN];

T_FN bool lose(void)
{
	w.rnd = w.rnd * 6364136223846793005ULL + 1442695040888963407ULL;
	return (w.rnd >> 33) % 1000 < w.loss;
}

T_FN bool first_time(uint64_t *taken, uint64_t slot)
{
	uint64_t before = taken[slot % SEEN];

	taken[slot % SEEN] = slot;
	return before != slot;
}

T_FN void take(uint32_t i, const struct bl_fcp_pkt *k)
{
	struct bl_fcp_slots s;
	uint32_t r, n;

	for (r = 0; r < k->nruns; r++) {
		bl_fcp_slots_at(k, r, &s);
		for (n = 0; n < s.count; n++) {
			uint64_t slot = s.first + n * s.stride;

			CHECK(first_time(taken_dst[s.dst], slot),
			      "two hosts send to %u in slot %" PRIu64, s.dst, slot);
			CHECK(first_time(taken_src[i], slot),
			      "host %u sends twice in slot %" PRIu64, i, slot);
			w.by_path[s.path < 16 ? s.path : 15]++;
			if (!w.file.npeers && s.path != BL_FCP_PATH_ANY &&
			    (s.path & 3) != (slot & 3)) /* as toy_paths() computes it */
				FAIL("path %u in slot %" PRIu64, s.path, slot);
			/*
			 * The first slot of a later arbiter lies after all slots of the one before.
			 */
			if (w.host[i].term != w.last_term) {
				CHECK((int32_t)(w.host[i].term - w.last_term) > 0, "an old term's "
										   "slot came "
										   "after a new "
										   "one's");
				w.last_term = w.host[i].term;
				w.first_slot = w.last_slot + 1;
			}
			CHECK(slot >= w.first_slot, "slot %" PRIu64 " is one of the arbiter before",
			      slot);
			if (slot > w.last_slot)
				w.last_slot = slot;
		}
	}
}

/* Runs all hosts for a moment. Returns true once none wants anything. */
T_FN bool hosts_turn(void)
{
	_Alignas(8) uint8_t buf[2048];
	struct bl_fcp_pkt k;
	bool quiet = true;
	uint32_t i, len;
	ssize_t n;

	for (i = 0; i < HOSTS; i++) {
		while ((n = recv(w.fd[i], buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
			if (lose())
				continue;
			if (bl_fcp_host_rx(&w.host[i], buf, (uint32_t)n, t_mono(), &k) ==
				    BL_FCP_R_OK &&
			    k.opcode == BL_FCP_ALLOC)
				take(i, &k);
		}
		while ((len = bl_fcp_host_tx(&w.host[i], t_mono(), buf)))
			if (!lose())
				sendto(w.fd[i], buf, len, MSG_DONTWAIT,
				       (struct sockaddr *)&w.target, w.target_len);
		quiet &= !w.host[i].need;
	}
	return quiet;
}

T_FN void hosts_for(uint32_t ms)
{
	uint64_t until = t_mono() + ms * 1000000ULL;

	while (t_mono() < until) {
		hosts_turn();
		usleep(50);
	}
}

T_FN void hosts_until_quiet(void)
{
	uint64_t until = t_mono() + WAIT_S * 1000000000ULL;
	uint32_t i;

	while (!hosts_turn()) {
		if (t_mono() > until) {
			for (i = 0; i < HOSTS; i++)
				fprintf(stderr,
					"  host %u: needs %llu of %llu, term %u, %llu sessions\n",
					i, w.host[i].need, w.host[i].wanted, w.host[i].term,
					w.host[i].resets);
			FAIL("slots are missing after %d s", WAIT_S);
		}
		usleep(50);
	}
	for (i = 0; i < HOSTS; i++) {
		CHECK(w.host[i].received == w.host[i].wanted, "host %u: %llu of %llu", i,
		      w.host[i].received, w.host[i].wanted);
		CHECK(!w.host[i].unasked, "unasked");
	}
}

T_FN void wants(uint32_t rounds)
{
	uint32_t i, j;

	while (rounds--) {
		for (i = 0; i < HOSTS; i++) {
			w.rnd = w.rnd * 6364136223846793005ULL + 1442695040888963407ULL;
			j = (uint32_t)((w.rnd >> 40) % HOSTS);
			if (j != i)
				bl_fcp_host_want(&w.host[i], j, 1 + (uint32_t)((w.rnd >> 33) % 20));
		}
		hosts_turn();
	}
}

/*
 * Adds demands until @seen returns that the subject of a case has happened. Which demands meet in
 * one slot, which run of the arbiter they fall into, and which packets are lost depends on who gets
 * the CPU, so none of it can be assumed. Every host wants many slots at once to one host in the
 * other rack, so that all of them want the same slots.
 */
T_FN void wants_until(bool (*seen)(void), const char *what)
{
	uint64_t until = t_mono() + WAIT_S * 1000000000ULL;
	uint32_t i;

	while (!seen()) {
		CHECK(t_mono() < until, "%d s of demands, and not once: %s", WAIT_S, what);
		for (i = 0; i < HOSTS; i++)
			bl_fcp_host_want(&w.host[i], i ^ 1, 500);
		hosts_until_quiet();
	}
}

T_FN void parse(const char *text, struct in6_addr *ip)
{
	char mapped[80];

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
	CHECK(inet_pton(AF_INET6, mapped, ip) == 1, "%s", text);
}

/* Writes an address of the namespace: .1 to .3 are arbiters, .10 and up are hosts. */
T_FN void address(struct in6_addr *ip, unsigned int n)
{
	char text[64];

	snprintf(text, sizeof(text), w.v6 ? "fd77::%u" : "10.77.0.%u", n);
	parse(text, ip);
}

T_FN struct sockaddr_storage sa_of(const struct in6_addr *ip, uint16_t port, socklen_t *len)
{
	struct sockaddr_storage s = { 0 };

	if (IN6_IS_ADDR_V4MAPPED(ip)) {
		struct sockaddr_in *in = (void *)&s;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, &ip->s6_addr[12], 4);
		*len = sizeof(*in);
	} else {
		struct sockaddr_in6 *in6 = (void *)&s;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		in6->sin6_addr = *ip;
		in6->sin6_scope_id = if_nametoindex("v0");
		*len = sizeof(*in6);
	}
	return s;
}

T_FN void shell(const char *cmd)
{
	CHECK(system(cmd) == 0, "%s", cmd);
}

T_FN void host_open(uint32_t i)
{
	struct bl_fcp_end *e = &w.host[i].e;
	struct bl_fcp_params p = BL_FCP_PARAMS_DEFAULT;
	struct sockaddr_storage sa;
	unsigned int index = if_nametoindex("v0");
	socklen_t len;

	p.secret[0] = 0x1234;
	p.table = bl_arb_table(w.ep, HOSTS);
	p.rtt_ns = 2000000; /* for a machine that has other things to do */
	p.reorder_ns = 2000000;
	p.keep_ns = 5000000;
	memset(&w.host[i], 0, sizeof(w.host[i]));
	w.host[i].p = p;
	e->n = HOSTS;
	e->pair = calloc(HOSTS, sizeof(*e->pair));
	e->sent = calloc(BL_FCP_WINDOW, sizeof(*e->sent));
	e->tell.item = calloc(HOSTS, 2);
	e->look.item = calloc(HOSTS, 2);
	CHECK(e->pair && e->sent && e->tell.item && e->look.item, "memory");
	bl_fcp_host_init(&w.host[i], i, (uint32_t)w.rnd + i * 77);
	sa = sa_of(&w.ep[i].addr, BL_FCP_PORT, &len);
	w.fd[i] = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(w.fd[i] >= 0 && !bind(w.fd[i], (struct sockaddr *)&sa, len), "%s", strerror(errno));
	if (w.v6)
		setsockopt(w.fd[i], IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof(index));
	else
		setsockopt(w.fd[i], IPPROTO_IP, IP_MULTICAST_IF,
			   &(struct ip_mreqn){ .imr_ifindex = (int)index },
			   sizeof(struct ip_mreqn));
}

T_FN void open_world(bool v6)
{
	char cmd[256];
	uint32_t i;

	memset(&w, 0, sizeof(w));
	w.v6 = v6;
	w.rnd = getenv("BL_SEED") ? strtoull(getenv("BL_SEED"), NULL, 0) : t_mono();
	fprintf(stderr, "  BL_SEED=%" PRIu64 "\n", w.rnd);
	CHECK(!unshare(CLONE_NEWNET), "%s", strerror(errno));
	shell("ip link set lo up");
	shell("ip link add v0 type veth peer name v1");
	shell("ip link set v0 up && ip link set v1 up");
	for (i = 1; i < 10 + HOSTS + 1; i++) {
		if (i > 3 && i < 10)
			continue;
		snprintf(cmd, sizeof(cmd),
			 v6 ? "ip addr add fd77::%u/64 dev v0 nodad"
			    : "ip addr add 10.77.0.%u/24 dev v0",
			 i);
		shell(cmd);
	}
	for (i = 0; i < HOSTS; i++)
		address(&w.ep[i].addr, 10 + i);
	for (i = 0; i < HOSTS; i++)
		host_open(i);
}

/* ---- arbiters ---- */

T_FN void *arb_thread(void *p)
{
	struct bl_err err;

	CHECK(!bl_arb_run(p, &err), "%s", err.text);
	return NULL;
}

T_FN struct bl_arb_cfg config(uint32_t at)
{
	struct bl_arb_cfg c = { .endpoints = w.ep,
				.nendpoints = HOSTS,
				.secret = { 0x1234 },
				.nlisten = 1,
				.rtt_us = 2000,
				.clock = CLOCK_MONOTONIC,
				.clock_set = true,
				.lead_us = 1000,
				.rank = at };

	address(&c.listen[0], 1 + at);
	return c;
}

T_FN void group(struct bl_arb_cfg *c)
{
	parse(w.v6 ? "ff02::6261" : "239.7.7.7", &c->group);
	snprintf(c->group_if, sizeof(c->group_if), "v0");
	for (c->narbiters = 0; c->narbiters < 3; c->narbiters++)
		address(&c->arbiters[c->narbiters], 1 + c->narbiters);
	/*
	 * This is far longer than any pause of a busy virtual machine: no live arbiter is taken for
	 * dead.
	 */
	c->interval_us = 5000;
	c->dead_us = 3000000;
	w.target = sa_of(&c->group, BL_FCP_PORT, &w.target_len);
}

T_FN void begin(uint32_t at, const struct bl_arb_cfg *c, const struct arb_path_ops *pops)
{
	static unsigned int numbers[4] = { 0, 1, 2, 3 };
	void *paths[] = { &numbers[0], &numbers[1], &numbers[2], &numbers[3] };
	struct bl_err err;

	memset(&w.toy[at], 0, sizeof(w.toy[at]));
	CHECK(!bl_arb_new(&w.arb[at], c, &toy_ops, &w.toy[at], pops, paths, &err), "%s", err.text);
	CHECK(!pthread_create(&w.thread[at], NULL, arb_thread, w.arb[at]), "thread");
	if (!c->group_if[0])
		w.target = sa_of(&c->listen[0], BL_FCP_PORT, &w.target_len);
}

T_FN struct bl_arb_total end(uint32_t at)
{
	struct bl_arb_row rows[HOSTS];
	struct bl_arb_total t;
	uint32_t i;

	bl_arb_stop(w.arb[at]);
	pthread_join(w.thread[at], NULL);
	bl_arb_read(w.arb[at], &t, rows, HOSTS);
	for (i = 0; i < HOSTS; i++)
		w.gone[i] += rows[i].gone;
	bl_arb_free(w.arb[at]);
	bl_engine_free(w.engine[at]);
	w.arb[at] = NULL;
	w.engine[at] = NULL;
	return t;
}

/*
 * Checks that each host has had as many sessions as arbiters that it met, and one more for each
 * that an arbiter gave up. To be called when all arbiters have ended.
 */
T_FN void sessions_were(uint64_t n)
{
	uint32_t i;

	for (i = 0; i < HOSTS; i++)
		CHECK(w.host[i].resets >= n && w.host[i].resets <= n + w.gone[i],
		      "host %u: %llu sessions, not %" PRIu64 "; %" PRIu64 " were given up", i,
		      w.host[i].resets, n, w.gone[i]);
}

/* Waits until every host has a session with the arbiter that has just begun. */
T_FN void hosts_meet(void)
{
	uint64_t until = t_mono() + WAIT_S * 1000000000ULL, before[HOSTS];
	uint32_t i, met;

	for (i = 0; i < HOSTS; i++) {
		before[i] = w.host[i].resets;
		bl_fcp_host_want(&w.host[i], i ^ 1, 1);
	}
	do {
		CHECK(t_mono() < until, "not every host has a session");
		hosts_turn();
		usleep(50);
		for (i = met = 0; i < HOSTS; i++)
			met += w.host[i].resets > before[i];
	} while (met < HOSTS);
}

T_FN uint32_t state_of(uint32_t at)
{
	struct bl_arb_total t;

	bl_arb_read(w.arb[at], &t, NULL, 0);
	return t.state;
}

/* Waits until arbiter @at is in state @state, which it reports once its thread has had the CPU. */
T_FN void becomes(uint32_t at, uint32_t state, const char *what)
{
	uint64_t until = t_mono() + WAIT_S * 1000000000ULL;

	while (state_of(at) != state) {
		CHECK(t_mono() < until, "%s: the state of arbiter %u is %u", what, at,
		      state_of(at));
		hosts_turn();
		usleep(50);
	}
}

/*
 * Same as begin() with the allocator and the path selector of the product: two racks, @paths paths.
 */
T_FN void begin_real(uint32_t at, const struct bl_arb_cfg *cfg, uint32_t paths)
{
	struct bl_arb_cfg c = *cfg;
	struct bl_err err;
	uint32_t i;

	w.file = (struct bl_fp_file){
		.paths = paths, .policy = 1, .peer = w.peer, .npeers = HOSTS, .narbiters = 1
	};
	memcpy(w.file.arbiter[0], &c.listen[0], 16);
	for (i = 0; i < HOSTS; i++) {
		memcpy(w.peer[i].addr, &w.ep[i].addr, 16);
		w.peer[i].rack = (uint16_t)(i % 2);
		snprintf(w.peer[i].name, sizeof(w.peer[i].name), "h%u", i);
	}
	CHECK(!bl_fp_defaults(&w.file, &err), "%s", err.text);
	CHECK(!bl_engine_new(&w.engine[at], &w.file, &err), "%s", err.text);
	CHECK(!bl_arb_new(&w.arb[at], &c, bl_engine_ops(w.engine[at]),
			  bl_engine_alloc(w.engine[at]), bl_engine_path_ops(w.engine[at]),
			  bl_engine_paths(w.engine[at]), &err),
	      "%s", err.text);
	CHECK(!pthread_create(&w.thread[at], NULL, arb_thread, w.arb[at]), "thread");
	w.target = sa_of(&c.listen[0], BL_FCP_PORT, &w.target_len);
}

/* Waits until one of the first @n arbiters is primary. Returns its number. */
T_FN uint32_t ruler(uint32_t n)
{
	uint64_t until = t_mono() + WAIT_S * 1000000000ULL;
	uint32_t i;

	for (;;) {
		for (i = 0; i < n; i++)
			if (w.arb[i] && state_of(i) == BL_FCP_PRIMARY)
				return i;
		CHECK(t_mono() < until, "nobody rules");
		hosts_turn();
		usleep(50);
	}
}

#endif
