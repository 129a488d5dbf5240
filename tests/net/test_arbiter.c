// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The arbiter server over real sockets: hosts that are threads with a socket and the host's end of FCP, in a network namespace of their own. What bpf/fcp_host_core.h and
 * bpf/fcp_arb_core.h promise over a simulated channel is checked here over the server: sockets, table, rings, threads, group, takeover.
 *
 * Whatever is done to it, at the end each host has received as many slots as it wanted, and in no slot did two hosts send to one destination, or one host to two. No time is asserted.
 */
#include "rack.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "arbiter/engine.h"
#include "arbiter/server.h"
#include "bpf/fcp_host_core.h"

#define HOSTS 6
#define SEEN (1U << 22) /* slots of which the takers are remembered, in a ring: 5 s */
#define WAIT_S 60

/* ---- an allocator that is easy to believe: slot by slot, each pair in turn ---- */

#define WINDOW 16

struct toy {
	uint32_t want[HOSTS][HOSTS];
	uint64_t next, unfinished;
	uint32_t turn, at, n;
	int refuse; /* every so many demands; 0: none */
	uint32_t demands;
	struct arb_grant out[WINDOW * HOSTS];
};

static int toy_demand(void *p, uint32_t src, uint32_t dst, uint32_t mtus, uint64_t slot)
{
	struct toy *t = p;

	if (t->refuse && ++t->demands % (uint32_t)t->refuse == 0)
		return -ENOSPC;
	t->want[src][dst] += mtus;
	return 0;
}

static void toy_forget(void *p, uint32_t src)
{
	memset(((struct toy *)p)->want[src], 0, sizeof(((struct toy *)p)->want[src]));
}

static unsigned int toy_run(void *p, uint64_t slot, struct arb_grant *out, unsigned int max)
{
	struct toy *t = p;
	uint64_t s, from = slot > t->next ? slot : t->next;
	uint32_t n = 0, k;

	for (s = from; s < slot + WINDOW; s++) {
		uint32_t src_used = 0, dst_used = 0;

		t->turn = (t->turn + 1) % (HOSTS * HOSTS);
		for (k = 0; k < HOSTS * HOSTS; k++) {
			uint32_t at = (t->turn + k) % (HOSTS * HOSTS), i = at / HOSTS, j = at % HOSTS;

			if (!t->want[i][j] || src_used >> i & 1 || dst_used >> j & 1)
				continue;
			t->want[i][j]--;
			src_used |= 1U << i;
			dst_used |= 1U << j;
			out[n++] = (struct arb_grant){ .base = s, .slots = 1, .src = (uint16_t)i, .dst = (uint16_t)j, .path = BL_FCP_PATH_ANY };
		}
		t->next = s + 1;
	}
	CHECK(n <= max, "too many");
	return n;
}

static bool toy_waiting(void *p)
{
	const struct toy *t = p;
	uint32_t i;

	for (i = 0; i < HOSTS * HOSTS; i++)
		if (t->want[i / HOSTS][i % HOSTS])
			return true;
	return false;
}

static const struct arb_alloc_ops toy_ops = { toy_demand, toy_forget, toy_run, toy_waiting, WINDOW, 0 };

/* a path selector that is easy to check: the path is the slot modulo 4, plus the number of its thread times 4 */
static unsigned int toy_paths(void *p, struct arb_grant *g, unsigned int n, unsigned int max)
{
	unsigned int i;

	CHECK(n <= max, "too many");
	for (i = 0; i < n; i++)
		g[i].path = (uint8_t)(g[i].base % 4 + 4 * *(unsigned int *)p);
	return n;
}

static const struct arb_path_ops toy_path_ops = { toy_paths };

/* ---- hosts ---- */

/**
 * struct world - one case. @taken: slot % SEEN: the slot, per destination and per source.
 * @loss: packets of 1000 lost in each direction, at the hosts. @target: where requests go to.
 */
static struct world {
	struct bl_arb_endpoint ep[HOSTS];
	struct bl_fcp_host host[HOSTS];
	int fd[HOSTS];
	struct sockaddr_storage target;
	socklen_t target_len;
	uint32_t loss;
	uint64_t rnd;
	bool v6;
	uint64_t by_path[16];
	uint64_t term_slots; /* slots of the term before that lie behind one of a later term: fencing is broken */
	uint32_t last_term;
	uint64_t last_slot, first_slot;
	pthread_t thread[3];
	struct bl_arb *arb[3];
	struct toy toy[3];
	struct bl_engine *engine[3];
	struct bl_fp_file file;
	struct bl_fp_peer peer[HOSTS];
} w;
static uint64_t taken_dst[HOSTS][SEEN], taken_src[HOSTS][SEEN];

static bool lose(void)
{
	w.rnd = w.rnd * 6364136223846793005ULL + 1442695040888963407ULL;
	return (w.rnd >> 33) % 1000 < w.loss;
}

static bool first_time(uint64_t *taken, uint64_t slot)
{
	uint64_t before = taken[slot % SEEN];

	taken[slot % SEEN] = slot;
	return before != slot;
}

static void take(uint32_t i, const struct bl_fcp_pkt *k)
{
	struct bl_fcp_slots s;
	uint32_t r, n;

	for (r = 0; r < k->nruns; r++) {
		bl_fcp_slots_at(k, r, &s);
		for (n = 0; n < s.count; n++) {
			uint64_t slot = s.first + n * s.stride;

			CHECK(first_time(taken_dst[s.dst], slot), "two hosts send to %u in slot %" PRIu64, s.dst, slot);
			CHECK(first_time(taken_src[i], slot), "host %u sends twice in slot %" PRIu64, i, slot);
			w.by_path[s.path < 16 ? s.path : 15]++;
			if (!w.file.npeers && s.path != BL_FCP_PATH_ANY && (s.path & 3) != (slot & 3)) /* the toy's */
				FAIL("path %u in slot %" PRIu64, s.path, slot);
			/* a later arbiter's first slot lies behind all slots of the one before */
			if (w.host[i].term != w.last_term) {
				CHECK((int32_t)(w.host[i].term - w.last_term) > 0, "an old term's slot came after a new one's");
				w.last_term = w.host[i].term;
				w.first_slot = w.last_slot + 1;
			}
			CHECK(slot >= w.first_slot, "slot %" PRIu64 " is one of the arbiter before", slot);
			if (slot > w.last_slot)
				w.last_slot = slot;
		}
	}
}

/* all hosts, for a moment; returns true once nobody wants anything */
static bool hosts_turn(void)
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
			if (bl_fcp_host_rx(&w.host[i], buf, (uint32_t)n, t_mono(), &k) == BL_FCP_R_OK && k.opcode == BL_FCP_ALLOC)
				take(i, &k);
		}
		while ((len = bl_fcp_host_tx(&w.host[i], t_mono(), buf)))
			if (!lose())
				sendto(w.fd[i], buf, len, MSG_DONTWAIT, (struct sockaddr *)&w.target, w.target_len);
		quiet &= !w.host[i].need;
	}
	return quiet;
}

static void hosts_for(uint32_t ms)
{
	uint64_t until = t_mono() + ms * 1000000ULL;

	while (t_mono() < until) {
		hosts_turn();
		usleep(50);
	}
}

static void hosts_until_quiet(void)
{
	uint64_t until = t_mono() + WAIT_S * 1000000000ULL;
	uint32_t i;

	while (!hosts_turn()) {
		if (t_mono() > until) {
			for (i = 0; i < HOSTS; i++)
				fprintf(stderr, "  host %u: needs %llu of %llu, term %u, %llu sessions\n", i, w.host[i].need, w.host[i].wanted,
					w.host[i].term, w.host[i].resets);
			FAIL("slots are missing after %d s", WAIT_S);
		}
		usleep(50);
	}
	for (i = 0; i < HOSTS; i++) {
		CHECK(w.host[i].received == w.host[i].wanted, "host %u: %llu of %llu", i, w.host[i].received, w.host[i].wanted);
		CHECK(!w.host[i].unasked, "unasked");
	}
}

static void wants(uint32_t rounds)
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

static void parse(const char *text, struct in6_addr *ip)
{
	char mapped[64];

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
	CHECK(inet_pton(AF_INET6, mapped, ip) == 1, "%s", text);
}

/* an address of the namespace: .1 to .3 are arbiters, .10 and up hosts */
static void address(struct in6_addr *ip, unsigned int n)
{
	char text[64];

	snprintf(text, sizeof(text), w.v6 ? "fd77::%u" : "10.77.0.%u", n);
	parse(text, ip);
}

static struct sockaddr_storage sa_of(const struct in6_addr *ip, uint16_t port, socklen_t *len)
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

static void shell(const char *cmd)
{
	CHECK(system(cmd) == 0, "%s", cmd);
}

static void host_open(uint32_t i)
{
	struct bl_fcp_end *e = &w.host[i].e;
	struct bl_fcp_params p = BL_FCP_PARAMS_DEFAULT;
	struct sockaddr_storage sa;
	unsigned int index = if_nametoindex("v0");
	socklen_t len;

	p.secret[0] = 0x1234;
	p.table = bl_arb_table(w.ep, HOSTS);
	p.rtt_ns = 2000000; /* a machine that has other things to do */
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
		setsockopt(w.fd[i], IPPROTO_IP, IP_MULTICAST_IF, &(struct ip_mreqn){ .imr_ifindex = (int)index }, sizeof(struct ip_mreqn));
}

static void open_world(bool v6)
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
		snprintf(cmd, sizeof(cmd), v6 ? "ip addr add fd77::%u/64 dev v0 nodad" : "ip addr add 10.77.0.%u/24 dev v0", i);
		shell(cmd);
	}
	for (i = 0; i < HOSTS; i++)
		address(&w.ep[i].addr, 10 + i);
	for (i = 0; i < HOSTS; i++)
		host_open(i);
}

/* ---- arbiters ---- */

static void *arb_thread(void *p)
{
	struct bl_err err;

	CHECK(!bl_arb_run(p, &err), "%s", err.text);
	return NULL;
}

static struct bl_arb_cfg config(uint32_t at)
{
	struct bl_arb_cfg c = { .endpoints = w.ep, .nendpoints = HOSTS, .secret = { 0x1234 }, .nlisten = 1, .rtt_us = 2000, .clock = CLOCK_MONOTONIC, .clock_set = true,
				.lead_us = 1000, .rank = at };

	address(&c.listen[0], 1 + at);
	return c;
}

static void group(struct bl_arb_cfg *c)
{
	parse(w.v6 ? "ff02::6261" : "239.7.7.7", &c->group);
	snprintf(c->group_if, sizeof(c->group_if), "v0");
	/* far longer than any pause of a busy virtual machine: nobody is taken for dead who lives */
	c->interval_us = 5000;
	c->dead_us = 150000;
	w.target = sa_of(&c->group, BL_FCP_PORT, &w.target_len);
}

static void begin(uint32_t at, const struct bl_arb_cfg *c, const struct arb_path_ops *pops)
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

static struct bl_arb_total end(uint32_t at)
{
	struct bl_arb_total t;

	bl_arb_stop(w.arb[at]);
	pthread_join(w.thread[at], NULL);
	bl_arb_read(w.arb[at], &t, NULL, 0);
	bl_arb_free(w.arb[at]);
	bl_engine_free(w.engine[at]);
	w.arb[at] = NULL;
	w.engine[at] = NULL;
	return t;
}

static uint32_t state_of(uint32_t at)
{
	struct bl_arb_total t;

	bl_arb_read(w.arb[at], &t, NULL, 0);
	return t.state;
}

/* the same with the allocator and the path selector that users get: two racks, @paths paths */
static void begin_real(uint32_t at, const struct bl_arb_cfg *cfg, uint32_t paths)
{
	struct bl_arb_cfg c = *cfg;
	struct bl_err err;
	uint32_t i;

	w.file = (struct bl_fp_file){ .paths = paths, .policy = 1, .peer = w.peer, .npeers = HOSTS, .narbiters = 1 };
	memcpy(w.file.arbiter[0], &c.listen[0], 16);
	for (i = 0; i < HOSTS; i++) {
		memcpy(w.peer[i].addr, &w.ep[i].addr, 16);
		w.peer[i].rack = (uint16_t)(i % 2);
		snprintf(w.peer[i].name, sizeof(w.peer[i].name), "h%u", i);
	}
	CHECK(!bl_fp_defaults(&w.file, &err), "%s", err.text);
	CHECK(!bl_engine_new(&w.engine[at], &w.file, &err), "%s", err.text);
	CHECK(!bl_arb_new(&w.arb[at], &c, bl_engine_ops(w.engine[at]), bl_engine_alloc(w.engine[at]), bl_engine_path_ops(w.engine[at]), bl_engine_paths(w.engine[at]), &err),
	      "%s", err.text);
	CHECK(!pthread_create(&w.thread[at], NULL, arb_thread, w.arb[at]), "thread");
	w.target = sa_of(&c.listen[0], BL_FCP_PORT, &w.target_len);
}

/* which of the first @n rules; waits until one does */
static uint32_t ruler(uint32_t n)
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

RACK_TEST(arbiter__slots_arrive)
{
	struct bl_arb_cfg c;
	struct bl_arb_total t;
	uint64_t sum = 0;
	uint32_t i;

	open_world(false);
	c = config(0);
	begin(0, &c, NULL);
	wants(200);
	hosts_until_quiet();
	for (i = 0; i < HOSTS; i++) {
		sum += w.host[i].received;
		CHECK(w.host[i].resets == 1 && w.host[i].slot_ns == 1230, "session");
	}
	t = end(0);
	CHECK(sum > 1000 && t.granted >= sum, "%" PRIu64 " of %" PRIu64, sum, t.granted);
	CHECK(t.state == BL_FCP_PRIMARY && t.runs && !t.packets[BL_FCP_R_UNKNOWN], "totals");
	fprintf(stderr, "  %" PRIu64 " slots, %" PRIu64 " late, %" PRIu64 " packets sent\n", t.granted, t.late, t.sent);
}

RACK_TEST(arbiter__one_packet_in_five_is_lost)
{
	struct bl_arb_cfg c;
	struct bl_arb_total t;
	uint64_t lost = 0;
	uint32_t i;

	open_world(false);
	w.loss = 200;
	c = config(0);
	begin(0, &c, NULL);
	for (i = 0; i < 20; i++) {
		wants(20);
		hosts_for(10);
	}
	hosts_until_quiet();
	for (i = 0; i < HOSTS; i++)
		lost += w.host[i].lost;
	t = end(0);
	fprintf(stderr, "  %" PRIu64 " slots given, %" PRIu64 " lost on the way and given again\n", t.granted, lost);
	CHECK(lost > 0, "nothing was lost: this proves nothing");
}

RACK_TEST(arbiter__begins_anew)
{
	struct bl_arb_cfg c;
	uint32_t i, k;

	open_world(false);
	c = config(0);
	for (k = 0; k < 5; k++) {
		begin(0, &c, NULL);
		wants(50);
		hosts_for(20);
		wants(50); /* not answered any more */
		end(0);
		hosts_for(5);
	}
	begin(0, &c, NULL);
	hosts_until_quiet();
	for (i = 0; i < HOSTS; i++)
		CHECK(w.host[i].resets >= 4 && w.host[i].resets <= 6, "host %u: %llu sessions", i, w.host[i].resets);
	end(0);
}

static void threads(unsigned int n)
{
	struct bl_arb_total t;
	struct bl_arb_cfg c;
	uint32_t i;

	open_world(false);
	c = config(0);
	c.threads = n;
	begin(0, &c, &toy_path_ops);
	w.toy[0].refuse = 3; /* refunds, too */
	for (i = 0; i < 10; i++) {
		wants(30);
		hosts_for(10);
	}
	hosts_until_quiet();
	t = end(0);
	CHECK(!w.by_path[15], "a grant without a path");
	CHECK(w.by_path[0] && w.by_path[1] && w.by_path[2] && w.by_path[3], "paths");
	if (n > 3)
		CHECK(w.by_path[4] && w.by_path[5], "the second path thread did nothing");
	CHECK(t.refunds && !t.overrun, "refunds");
}

RACK_TEST(threads__one_with_paths)
{
	threads(1);
}

RACK_TEST(threads__two)
{
	threads(2);
}

RACK_TEST(threads__three)
{
	threads(3);
}

RACK_TEST(threads__four)
{
	threads(4);
}

static void real(unsigned int nthreads, uint32_t paths)
{
	struct bl_arb_total t;
	struct bl_arb_cfg c;
	uint64_t with = 0;
	uint32_t i;

	open_world(false);
	c = config(0);
	c.threads = nthreads;
	begin_real(0, &c, paths);
	for (i = 0; i < 10; i++) {
		wants(30);
		hosts_for(10);
	}
	hosts_until_quiet();
	t = end(0);
	for (i = 0; i < 15; i++)
		with += w.by_path[i];
	CHECK(paths ? with > 0 && w.by_path[0] && w.by_path[paths - 1] && w.by_path[15] : !with, "paths");
	for (i = paths; i < 15; i++)
		CHECK(!w.by_path[i], "path %u does not exist", i);
	CHECK(t.granted > 1000 && !t.refunds && !t.overrun, "%" PRIu64 " slots, %" PRIu64 " refunds", t.granted, t.refunds);
}

RACK_TEST(real__one_thread)
{
	real(1, 0);
}

RACK_TEST(real__one_thread_with_paths)
{
	real(1, 3);
}

RACK_TEST(real__three_threads_with_paths)
{
	real(3, 3);
}

RACK_TEST(real__begins_anew_under_loss)
{
	struct bl_arb_cfg c;
	uint32_t k;

	open_world(false);
	w.loss = 100;
	c = config(0);
	for (k = 0; k < 3; k++) {
		begin_real(0, &c, 2);
		wants(50);
		hosts_for(20);
		wants(50);
		end(0);
		hosts_for(5);
	}
	begin_real(0, &c, 2);
	hosts_until_quiet();
	end(0);
}

RACK_TEST(door__tells_and_takes_dead_paths)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct bl_arb_door *door;
	struct bl_arb_cfg c;
	struct bl_err err;
	json_t *v;
	uint32_t i, before;
	int fd;

	open_world(false);
	c = config(0);
	begin_real(0, &c, 2);
	CHECK(!bl_arb_serve(&door, w.arb[0], &w.file, w.engine[0], 0, &err), "%s", err.text);
	wants(100);
	hosts_until_quiet();
	CHECK(w.by_path[0] && w.by_path[1], "both paths are used");
	snprintf(sa.sun_path, sizeof(sa.sun_path), BL_RUN_DIR BL_ARB_DOOR, (unsigned long long)bl_netns_ino(), 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!connect(fd, (struct sockaddr *)&sa, sizeof(sa)), "%s: %s", sa.sun_path, strerror(errno));
	CHECK(write(fd, "usable 0 1 1\nusable 1 0 1\nnonsense\n", 36) == 36 && !shutdown(fd, SHUT_WR), "orders");
	v = json_loadfd(fd, 0, NULL);
	CHECK(v && !strcmp(json_string_value(json_object_get(v, "state")), "primary"), "state");
	CHECK(json_array_size(json_object_get(v, "endpoints")) == HOSTS, "endpoints");
	for (i = 0; i < HOSTS; i++) {
		json_t *row = json_array_get(json_object_get(v, "endpoints"), i);

		CHECK(json_is_true(json_object_get(row, "session")) && json_integer_value(json_object_get(row, "granted")) >= (json_int_t)w.host[i].received, "endpoint %u", i);
	}
	json_decref(v);
	close(fd);
	before = (uint32_t)w.by_path[1];
	wants(200);
	hosts_until_quiet();
	CHECK(w.by_path[1] == before, "path 1 is dead, and %u slots were given on it", (uint32_t)w.by_path[1] - before);
	bl_arb_serve_end(door);
	CHECK(access(sa.sun_path, F_OK), "the socket is gone");
	end(0);
}

/* build/tests/net/test_arbiter: the command is build/barline */
static void command(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	int up;

	CHECK(n > 0, "%s", strerror(errno));
	path[n] = 0;
	for (up = 0; up < 3; up++)
		*strrchr(path, '/') = 0;
	strncat(path, "/barline", size - strlen(path) - 1);
}

RACK_TEST(cli__run_and_show)
{
	char barline[256], file[] = "/tmp/barline-arbiter-XXXXXX", show[300], text[INET6_ADDRSTRLEN];
	struct bl_arb_cfg c;
	json_t *v, *one;
	uint32_t i;
	int fd, st;
	pid_t pid;
	FILE *f;

	open_world(false);
	c = config(0);
	w.target = sa_of(&c.listen[0], BL_FCP_PORT, &w.target_len);
	command(barline, sizeof(barline));
	fd = mkstemp(file);
	f = fdopen(fd, "w");
	CHECK(f, "%s", strerror(errno));
	fprintf(f, "arbiters: [%s]\nsecret: \"00000000000012340000000000000000\"\npolicy: fair\nrtt_us: 2000\nlead_us: 800\ndead_us: 20000\nendpoints:\n",
		bl_fp_addr_text((uint8_t *)&c.listen[0], text));
	for (i = 0; i < HOSTS; i++)
		fprintf(f, "  - { name: h%u, addr: %s }\n", i, bl_fp_addr_text((uint8_t *)&w.ep[i].addr, text));
	fclose(f);
	pid = fork();
	CHECK(pid >= 0, "%s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(barline, barline, "arbiter", "run", file, NULL);
		_exit(127);
	}
	wants(100);
	hosts_until_quiet();
	snprintf(show, sizeof(show), "%s -j arbiter show", barline);
	f = popen(show, "r");
	v = f ? json_loadf(f, 0, NULL) : NULL;
	CHECK(f && !pclose(f) && v, "%s", show);
	one = json_array_get(json_object_get(v, "arbiters"), 0);
	CHECK(!strcmp(json_string_value(json_object_get(one, "state")), "primary") && !strcmp(json_string_value(json_object_get(one, "policy")), "fair"), "state");
	CHECK(json_integer_value(json_object_get(one, "granted")) > 0 && json_array_size(json_object_get(one, "endpoints")) == HOSTS, "granted");
	json_decref(v);
	CHECK(!kill(pid, SIGTERM) && waitpid(pid, &st, 0) == pid && WIFEXITED(st) && !WEXITSTATUS(st), "its end: %#x", st);
	CHECK(system(show) == 256, "nobody is left to show"); /* exit status 1 */
	unlink(file);
}

static void failover(bool v6)
{
	struct bl_arb_total old, now;
	struct bl_arb_cfg c[2];
	uint32_t i;

	open_world(v6);
	for (i = 0; i < 2; i++) {
		c[i] = config(i);
		group(&c[i]);
		begin(i, &c[i], NULL);
	}
	CHECK(ruler(2) == 0, "the lower rank takes over first");
	wants(100);
	hosts_until_quiet();
	CHECK(state_of(1) == BL_FCP_STANDBY, "the other one stands by");
	wants(300);
	hosts_for(2);
	old = end(0); /* with demands that it knows and has not served */
	wants(100);
	CHECK(ruler(2) == 1, "the secondary takes over");
	hosts_until_quiet();
	for (i = 0; i < HOSTS; i++)
		CHECK(w.host[i].resets == 2, "host %u: %llu sessions", i, w.host[i].resets);
	/* the old one comes back, and stays secondary */
	begin(0, &c[0], NULL);
	for (i = 0; i < 10; i++) {
		wants(20);
		hosts_for(50);
	}
	hosts_until_quiet();
	CHECK(state_of(0) == BL_FCP_STANDBY && state_of(1) == BL_FCP_PRIMARY, "who comes back stands by");
	now = end(1);
	CHECK(now.takeovers == 1 && !now.yields, "takeovers");
	CHECK(now.packets[BL_FCP_R_STANDBY] > 0 && old.takeovers == 1, "requests reach both");
	fprintf(stderr, "  %" PRIu64 " slots from the first, %" PRIu64 " from the second; stalls %" PRIu64 "\n", old.granted, now.granted, now.stalls);
	end(0);
}

RACK_TEST(failover__ipv4_group)
{
	failover(false);
}

RACK_TEST(failover__ipv6_group)
{
	failover(true);
}

RACK_TEST(election__three_start_at_once)
{
	struct bl_arb_cfg c[3];
	uint32_t i, k, ruling = 0;

	open_world(false);
	for (i = 0; i < 3; i++) {
		c[i] = config(i);
		group(&c[i]);
	}
	for (i = 3; i--;) /* the lowest rank last */
		begin(i, &c[i], NULL);
	ruler(3);
	for (k = 0; k < 10; k++) {
		wants(20);
		hosts_for(50);
	}
	hosts_until_quiet();
	for (i = 0; i < 3; i++)
		ruling += state_of(i) == BL_FCP_PRIMARY;
	CHECK(ruling == 1, "%u rule", ruling);
	for (i = 0; i < 3; i++)
		end(i);
}

RACK_TEST(input__strangers_and_nonsense)
{
	_Alignas(8) uint8_t buf[1400] = { 0 };
	struct bl_arb_row rows[HOSTS];
	struct sockaddr_storage sa;
	struct bl_arb_total t;
	struct bl_arb_cfg c;
	struct in6_addr ip;
	uint32_t i, n;
	socklen_t len;
	int fd;

	open_world(false);
	c = config(0);
	c.quota = 50;
	begin(0, &c, NULL);
	wants(10);
	hosts_until_quiet();
	bl_arb_read(w.arb[0], &t, rows, HOSTS);
	n = (uint32_t)rows[0].resets;
	/* somebody who is in no list */
	address(&ip, 2);
	sa = sa_of(&ip, 40000, &len);
	fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&sa, len), "%s", strerror(errno));
	for (i = 0; i < 10; i++)
		sendto(fd, buf, 100, 0, (struct sockaddr *)&w.target, w.target_len);
	/* an endpoint that sends nonsense of every length, and then forged requests */
	for (i = 0; i < sizeof(buf); i++)
		sendto(w.fd[0], buf, i, 0, (struct sockaddr *)&w.target, w.target_len);
	for (i = 0; i < 50; i++) {
		memset(buf, 0, 64);
		buf[33] = 1;
		buf[37] = 1;
		sendto(w.fd[0], buf, bl_fcp_seal(&w.host[0].p, 0x666, BL_FCP_REQ, i, 1, 0, 0, buf, 42), 0, (struct sockaddr *)&w.target, w.target_len);
	}
	/* and one that wants absurdly much, beside honest ones */
	bl_fcp_host_want(&w.host[1], 2, 2000000000);
	for (i = 0; i < 20; i++) {
		bl_fcp_host_want(&w.host[3], 4, 10);
		hosts_for(10);
	}
	CHECK(!w.host[3].need, "the honest host waits");
	bl_arb_read(w.arb[0], &t, rows, HOSTS);
	CHECK(t.packets[BL_FCP_R_UNKNOWN] == 10 && !strcmp(t.unknown, "10.77.0.2"), "%s", t.unknown);
	CHECK(rows[0].packets[BL_FCP_R_BAD_CHECK] >= 1 && rows[0].packets[BL_FCP_R_BAD_MAGIC] + rows[0].packets[BL_FCP_R_SHORT] > 1000, "counts");
	CHECK(rows[0].session && rows[0].sessions == 1, "a session that works goes on");
	CHECK(rows[0].resets <= n + 110, "%" PRIu64 " RESETs in 220 ms of 2 ms round trips", rows[0].resets - n);
	CHECK(rows[1].waiting <= 50 && rows[1].capped > 0, "%u slots wait in the allocator", rows[1].waiting);
	close(fd);
	end(0);
}

/* ---- links to be avoided ---- */

static unsigned int list_calls, list_links;

static void list_is(void *ctx, const struct bl_fcp_link *l, unsigned int n)
{
	CHECK(ctx == &list_calls && (!n || l[0].path == 1), "links");
	list_calls++;
	list_links = n;
}

/* a FAULTS with one link (or none) from @fd, and what the arbiter answers: its challenge; *@version: of the list that it has; -1: no answer */
static uint32_t faults_say(int fd, uint64_t secret1, uint64_t boot, uint32_t version, uint32_t challenge, bool link, int64_t *has)
{
	_Alignas(8) uint8_t buf[128] = { 0 };
	struct bl_fcp_params p = { .secret = { w.host[0].p.secret[0], secret1 } };
	struct bl_fcp_faults *b = (void *)(buf + 32);
	struct bl_fcp_link *l = (void *)(b + 1);
	uint32_t len = 32 + sizeof(*b) + (link ? sizeof(*l) : 0);
	struct pollfd in = { .fd = fd, .events = POLLIN };
	struct bl_fcp_pkt k;
	ssize_t n;

	*b = (struct bl_fcp_faults){ .boot = BL_BE64(boot), .version = BL_BE32(version), .table = BL_BE32(w.host[0].p.table), .count = BL_BE16(link) };
	l->path = link;
	bl_fcp_seal(&p, 0, BL_FCP_FAULTS, challenge, 1, 0, 0, buf, len);
	CHECK(sendto(fd, buf, len, 0, (struct sockaddr *)&w.target, w.target_len) == (ssize_t)len, "%s", strerror(errno));
	*has = -1;
	if (secret1 != w.host[0].p.secret[1])
		return 0;
	CHECK(poll(&in, 1, WAIT_S * 1000) == 1, "no answer");
	n = recv(fd, buf, sizeof(buf), 0);
	CHECK(n > 0 && bl_fcp_parse(buf, (uint32_t)n, HOSTS, &k) == BL_FCP_R_OK && k.opcode == BL_FCP_HEARD && bl_fcp_sum_ok(&p, 0, buf, (uint32_t)n), "answer");
	*has = BL_BE32(((const struct bl_fcp_heard *)k.body)->version);
	return k.challenge;
}

RACK_TEST(faults__only_from_the_service)
{
	uint64_t secret1;
	struct sockaddr_storage sa;
	struct bl_arb_total t;
	struct bl_arb_cfg c;
	struct in6_addr ip;
	uint32_t challenge;
	socklen_t len;
	int64_t has;
	int fd;

	open_world(false);
	c = config(0);
	address(&c.faults, 3);
	c.links = list_is;
	c.links_ctx = &list_calls;
	begin(0, &c, NULL);
	secret1 = w.host[0].p.secret[1];
	address(&ip, 3);
	sa = sa_of(&ip, 40001, &len);
	fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&sa, len), "%s", strerror(errno));
	challenge = faults_say(fd, secret1, 100, 1, 0, true, &has); /* it does not know the challenge: not taken, but answered */
	CHECK(challenge && has == 0 && !list_calls, "challenge");
	faults_say(fd, secret1 + 1, 100, 1, challenge, true, &has); /* forged */
	CHECK(faults_say(fd, secret1, 100, 2, challenge, true, &has) == challenge && has == 2 && list_calls == 1 && list_links == 1, "taken");
	faults_say(fd, secret1, 100, 2, challenge, true, &has); /* the same once more */
	CHECK(has == 2 && list_calls == 1, "repeated");
	faults_say(fd, secret1, 100, 1, challenge, false, &has); /* played again */
	CHECK(has == 2 && list_calls == 1, "an older list was taken");
	faults_say(fd, secret1, 99, 7, challenge, false, &has); /* of a service before */
	CHECK(has == 2 && list_calls == 1, "an older service was believed");
	faults_say(fd, secret1, 101, 1, challenge, false, &has); /* of one that began anew */
	CHECK(has == 1 && list_calls == 2 && !list_links, "a new service");
	t = end(0);
	CHECK(t.faults[BL_FCP_R_BAD_CHALLENGE] == 1 && t.faults[BL_FCP_R_BAD_CHECK] == 1 && t.faults[BL_FCP_R_OLD] == 2 && t.faults[BL_FCP_R_OK] == 3, "counts");
	CHECK(t.faults_version == 1 && !t.faults_links, "list");
	close(fd);
}

RACK_TEST(config__what_cannot_be_safe_is_refused)
{
	struct bl_arb_cfg c;
	struct bl_arb *a;
	struct bl_err err;

	open_world(false);
	c = config(0);
	group(&c);
	c.dead_us = 11019; /* lead 1000, 17 slots of 1.23 us, two intervals of 5000 */
	CHECK(bl_arb_new(&a, &c, &toy_ops, &w.toy[0], NULL, NULL, &err) == -EINVAL && strstr(err.text, "dead_us 11019: at least 11021"), "%s", err.text);
	c.dead_us = 11021;
	CHECK(!bl_arb_new(&a, &c, &toy_ops, &w.toy[0], NULL, NULL, &err), "%s", err.text);
	bl_arb_free(a);
	c.group_if[0] = 0;
	CHECK(bl_arb_new(&a, &c, &toy_ops, &w.toy[0], NULL, NULL, &err) == -EINVAL, "an interface is needed");
	c = config(0);
	c.run_slots = WINDOW + 1;
	CHECK(bl_arb_new(&a, &c, &toy_ops, &w.toy[0], NULL, NULL, &err) == -EINVAL, "run_slots");
	c = config(0);
	w.ep[1].addr = w.ep[0].addr;
	CHECK(bl_arb_new(&a, &c, &toy_ops, &w.toy[0], NULL, NULL, &err) == -EINVAL && strstr(err.text, "10.77.0.10 is listed twice"), "%s", err.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arbiter__slots_arrive),
		cmocka_unit_test(arbiter__one_packet_in_five_is_lost),
		cmocka_unit_test(arbiter__begins_anew),
		cmocka_unit_test(threads__one_with_paths),
		cmocka_unit_test(threads__two),
		cmocka_unit_test(threads__three),
		cmocka_unit_test(threads__four),
		cmocka_unit_test(real__one_thread),
		cmocka_unit_test(real__one_thread_with_paths),
		cmocka_unit_test(real__three_threads_with_paths),
		cmocka_unit_test(real__begins_anew_under_loss),
		cmocka_unit_test(door__tells_and_takes_dead_paths),
		cmocka_unit_test(cli__run_and_show),
		cmocka_unit_test(failover__ipv4_group),
		cmocka_unit_test(failover__ipv6_group),
		cmocka_unit_test(election__three_start_at_once),
		cmocka_unit_test(input__strangers_and_nonsense),
		cmocka_unit_test(faults__only_from_the_service),
		cmocka_unit_test(config__what_cannot_be_safe_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
