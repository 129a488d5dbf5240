// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * No host loses its connectivity because of others. Frames go to hundreds of stations that do not
 * exist, to a peer that does not answer, from hundreds of ports to one host, and to ten thousand
 * stations one after the other. Each time traffic to hosts that have not been used before
 * continues, under every policy, and the daemons' memory does not grow. 400 TCP connections to one
 * host all work, and a policy can be changed after as many flows as there are numbers.
 *
 * The frames are hand-made UDP over IPv4 with addresses of their own. Some of them must arrive in
 * time, and the limits are generous.
 */
#include "tests/net/stations.h"
#include "tests/net/fastpass/rack_arbiter.h"
#include "maps/top_host_abi.h"
#include "loader/admission/admission_set.h"

#define PATIENCE 20000 /* ms */

static struct station st[4];

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->clock_bound_us = 1000;
	if (cfg->role == BL_ROLE_HOST && cfg->admission.policy == BL_POLICY_TOP)
		cfg->admission.top.v[BL_TOP_O_EXPIRY] = 10000000 + 1;
}

static void open_rack(enum bl_policy policy)
{
	unsigned int i;

	rack.lab.spec.hosts = 4;
	rack.lab.spec.beacon_us = 20000;
	rack.lab.spec.admission =
		(struct bl_admission_cfg){ .on = true, .policy = policy, .rate_bps = 100000000 };
	rack.lab.spec.arbiters = policy == BL_POLICY_FASTPASS;
	rack.lab.spec.fp_policy = 1;
	rack.tweak = tweak;
	rack_open();
	rack_last_words = rack_dump;
	if (policy == BL_POLICY_FASTPASS) {
		arbiter_begin(0);
		wait_primary(0);
	}
	rack_serve(300);
	for (i = 0; i < 4; i++)
		st[i] = station(i);
}

/* Sends to station @n, which does not exist. */
static void give_stranger(const struct station *from, uint32_t n, uint32_t sport)
{
	const uint8_t mac[6] = { 2, 0xde, 0xad, 0, (uint8_t)(n >> 8), (uint8_t)n };

	give(from, mac, 201, n, sport, 0);
}

/* Checks that frames that are sent again and again arrive. */
static void reaches(unsigned int from, unsigned int to)
{
	uint64_t end = t_mono() + PATIENCE * 1000000ULL;

	do {
		give_host(&st[from], &st[to], 700, 0);
		CHECK(t_mono() < end, "h%u does not reach h%u: %" PRIu64 " frames found no number",
		      from + 1, to + 1, rack_count(rack_host(from), BL_R_HOLD_DESTS));
		rack_serve(20);
	} while (took(&st[to], NULL) != 700);
}

/* Returns the resident pages of this process, which contains all daemons of the rack. */
static long resident(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long all, pages;
	int n;

	n = f ? fscanf(f, "%ld %ld", &all, &pages) : 0;
	CHECK(n == 2, "/proc/self/statm");
	fclose(f);
	return pages;
}

static void strangers(enum bl_policy policy)
{
	long before, grown;
	uint32_t i;

	open_rack(policy);
	before = resident();
	for (i = 1; i <= 300; i++) {
		give_stranger(&st[0], i, 800);
		if (!(i % 50))
			rack_serve(2);
	}
	reaches(0, 1);
	/* a peer that does not answer, from that many ports */
	for (i = 1; i <= 300; i++) {
		give_stranger(&st[0], 301, 1000 + i);
		if (!(i % 50))
			rack_serve(2);
	}
	reaches(0, 2);
	/* ten thousand stations, one after the other */
	for (i = 1; i <= 10000; i++) {
		give_stranger(&st[0], 1000 + i, 800);
		if (!(i % 100))
			rack_serve(1);
	}
	reaches(0, 3);
	reaches(3, 0);
	grown = resident() - before;
	CHECK(grown * sysconf(_SC_PAGESIZE) < 4 << 20, "%ld pages more than before", grown);
}

RACK_TEST(strangers__none)
{
	strangers(BL_POLICY_NONE);
}

RACK_TEST(strangers__pl2)
{
	strangers(BL_POLICY_PL2);
}

RACK_TEST(strangers__fastpass)
{
	strangers(BL_POLICY_FASTPASS);
}

RACK_TEST(strangers__top)
{
	strangers(BL_POLICY_TOP);
}

/* 400 flows from one host to one: a datagram of each arrives. */
RACK_TEST(flows__four_hundred)
{
	static bool seen[65536];
	uint64_t end = t_mono() + 3 * PATIENCE * 1000000ULL, again;
	uint32_t i, port, n = 0;

	open_rack(BL_POLICY_TOP);
	for (i = 0; i < 400; i++) {
		give_host(&st[0], &st[1], 2000 + i, 0);
		if (!(i % 20))
			rack_serve(1);
	}
	again = t_mono() + 3000000000ULL;
	while (n < 400) {
		CHECK(t_mono() < end, "%u of 400 flows got through", n);
		for (port = took(&st[1], NULL); port; port = took(&st[1], NULL))
			if (!seen[port]) {
				seen[port] = true;
				n++;
			}
		rack_serve(5);
		/* a datagram may be lost, as any may */
		if (t_mono() > again)
			for (i = 0; i < 400; i++)
				if (!seen[2000 + i] && !((i + t_mono() / 1000000) % 97))
					give_host(&st[0], &st[1], 2000 + i, 0);
	}
	CHECK(!rack_count(rack_host(0), BL_R_HOLD_DESTS), "some found no number");
}

#define CONNS 400

/* Returns one end of a TCP connection between bl0 of two hosts. */
static int tcp_socket(unsigned int host)
{
	int home = rack_away(rack_host(host)),
	    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	rack_back(home);
	CHECK(fd >= 0, "%s", strerror(errno));
	return fd;
}

/* Opens 400 connections from h1 to h2 at once; a byte goes there and comes back on each. */
static void connections(enum bl_policy policy)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(5201) };
	static int there[CONNS], here[CONNS];
	static bool sent[CONNS], back[CONNS];
	unsigned int i, nhere = 0, done = 0;
	uint8_t addr[16], x = 'x';
	uint64_t end;
	int door;

	open_rack(policy);
	lab_bl0_addr(&rack.lab.nodes[rack_host(1)], AF_INET, addr);
	memcpy(&at.sin_addr, addr, 4);
	door = tcp_socket(1);
	CHECK(!bind(door, (void *)&at, sizeof(at)) && !listen(door, CONNS), "%s", strerror(errno));
	for (i = 0; i < CONNS; i++) {
		there[i] = tcp_socket(0);
		CHECK(!connect(there[i], (void *)&at, sizeof(at)) || errno == EINPROGRESS, "%s",
		      strerror(errno));
	}
	end = t_mono() + 3 * PATIENCE * 1000000ULL;
	while (done < CONNS) {
		CHECK(t_mono() < end, "%u of %d connections work, %u were accepted", done, CONNS,
		      nhere);
		rack_serve(5);
		while (nhere < CONNS &&
		       (here[nhere] = accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
			nhere++;
		for (i = 0; i < nhere; i++)
			if (recv(here[i], &x, 1, 0) == 1)
				CHECK(send(here[i], &x, 1, MSG_NOSIGNAL) == 1, "%s",
				      strerror(errno));
		for (i = 0; i < CONNS; i++) {
			if (!sent[i])
				sent[i] = send(there[i], &x, 1, MSG_NOSIGNAL) == 1;
			else if (!back[i] && recv(there[i], &x, 1, 0) == 1) {
				back[i] = true;
				done++;
			}
		}
	}
	CHECK(!rack_count(rack_host(0), BL_R_HOLD_DESTS), "some found no number");
	reaches(0, 2);
}

RACK_TEST(connections__none)
{
	connections(BL_POLICY_NONE);
}

RACK_TEST(connections__pl2)
{
	connections(BL_POLICY_PL2);
}

RACK_TEST(connections__fastpass)
{
	connections(BL_POLICY_FASTPASS);
}

RACK_TEST(connections__top)
{
	connections(BL_POLICY_TOP);
}

/* Uses as many flows as there are numbers, and then another policy. */
RACK_TEST(policy__none_after_top)
{
	struct bl_admission_set set = {};
	struct bl_node_ref *refs;
	unsigned int k;
	char said[512];
	struct bl_err err;
	int i, n;

	open_rack(BL_POLICY_TOP);
	for (k = 0; k < 300; k++) {
		give_stranger(&st[0], 1, 1000 + k);
		give_host(&st[0], &st[1], 1000 + k, 0);
		if (!(k % 20))
			rack_serve(1);
	}
	bl_admission_put(&set, BL_AO_POLICY, BL_POLICY_NONE);
	n = bl_nodes_find(&refs, 0, &err);
	CHECK(n > 0, "%s", err.text);
	for (i = 0; i < n; i++) {
		unsigned int h = 0;
		int home;

		while (h < 4 && strcmp(rack.dir[rack_host(h)], refs[i].dir))
			h++;
		if (h == 4)
			continue; /* the switch: its tokens do not interfere */
		home = rack_away(rack_host(h));
		CHECK(!bl_admission_change(&refs[i], &set, said, sizeof(said), &err), "%s",
		      err.text);
		rack_back(home);
	}
	free(refs);
	reaches(0, 2);
	reaches(1, 2);
	reaches(2, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers__none),       cmocka_unit_test(strangers__pl2),
		cmocka_unit_test(strangers__fastpass),   cmocka_unit_test(strangers__top),
		cmocka_unit_test(connections__none),     cmocka_unit_test(connections__pl2),
		cmocka_unit_test(connections__fastpass), cmocka_unit_test(connections__top),
		cmocka_unit_test(flows__four_hundred),   cmocka_unit_test(policy__none_after_top),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
