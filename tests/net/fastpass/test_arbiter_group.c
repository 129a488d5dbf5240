// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Arbiters in a group, over real sockets: takeovers, and input from operators, from the fault
 * isolation service and from strangers. arbiter_world.h describes the world.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

/* the world has a variable w, as this file has parameters: */
#include "core/fastpass/watchdog_core.h"
#include "tests/net/fastpass/arbiter_world.h"
#include "arbiter/status.h"

#include "tests/net/barline_run.h"

static uint64_t again; /* slots on path 0 when path 1 died */

static bool both_paths(void)
{
	return w.by_path[0] && w.by_path[1];
}

static bool ten_thousand_more(void)
{
	return w.by_path[0] >= again + 10000;
}

RACK_TEST(door__tells_and_takes_dead_paths)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct bl_arb_status *door;
	struct bl_arb_cfg c;
	struct bl_err err;
	json_t *v;
	uint32_t i, before;
	int fd;

	open_world(false);
	c = config(0);
	begin_real(0, &c, 2);
	CHECK(!bl_arb_serve(&door, w.arb[0], &w.file, w.engine[0], 0, NULL, &err), "%s", err.text);
	wants(100);
	hosts_until_quiet();
	wants_until(both_paths, "both paths are used");
	snprintf(sa.sun_path, sizeof(sa.sun_path), BL_RUN_DIR BL_ARB_STATUS,
		 (unsigned long long)bl_netns_ino(), 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!connect(fd, (struct sockaddr *)&sa, sizeof(sa)), "%s: %s", sa.sun_path,
	      strerror(errno));
	CHECK(write(fd, "usable 0 1 1\nusable 1 0 1\nnonsense\n", 36) == 36 &&
		      !shutdown(fd, SHUT_WR),
	      "orders");
	v = json_loadfd(fd, 0, NULL);
	CHECK(v && !strcmp(json_string_value(json_object_get(v, "state")), "primary"), "state");
	CHECK(json_array_size(json_object_get(v, "endpoints")) == HOSTS, "endpoints");
	for (i = 0; i < HOSTS; i++) {
		json_t *row = json_array_get(json_object_get(v, "endpoints"), i);

		CHECK(json_is_true(json_object_get(row, "session")) &&
			      json_integer_value(json_object_get(row, "granted")) >=
				      (json_int_t)w.host[i].received,
		      "endpoint %u", i);
	}
	json_decref(v);
	close(fd);
	before = (uint32_t)w.by_path[1];
	wants(200);
	again = w.by_path[0];
	wants_until(ten_thousand_more, "slots on path 0");
	CHECK(w.by_path[1] == before, "path 1 is dead, and %u slots were given on it",
	      (uint32_t)w.by_path[1] - before);
	bl_arb_serve_end(door);
	CHECK(access(sa.sun_path, F_OK), "the socket is gone");
	end(0);
}

RACK_TEST(cli__run_and_show)
{
	char barline[256], file[] = "/tmp/barline-arbiter-XXXXXX", show[300],
			   text[INET6_ADDRSTRLEN];
	struct bl_arb_cfg c;
	json_t *v, *one;
	uint32_t i;
	int fd, st;
	pid_t pid;
	FILE *f;

	open_world(false);
	c = config(0);
	w.target = sa_of(&c.listen[0], BL_FCP_PORT, &w.target_len);
	CHECK(barline_path(barline, sizeof(barline)), "barline's path");
	fd = mkstemp(file);
	f = fdopen(fd, "w");
	CHECK(f, "%s", strerror(errno));
	fprintf(f,
		"arbiters: [%s]\nsecret: \"00000000000012340000000000000000\"\npolicy: "
		"fair\nrtt_us: 2000\nlead_us: 800\ndead_us: 20000\nendpoints:\n",
		bl_fp_addr_text((uint8_t *)&c.listen[0], text));
	for (i = 0; i < HOSTS; i++)
		fprintf(f, "  - { name: h%u, addr: %s }\n", i,
			bl_fp_addr_text((uint8_t *)&w.ep[i].addr, text));
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
	CHECK(!strcmp(json_string_value(json_object_get(one, "state")), "primary") &&
		      !strcmp(json_string_value(json_object_get(one, "policy")), "fair"),
	      "state");
	CHECK(json_integer_value(json_object_get(one, "granted")) > 0 &&
		      json_array_size(json_object_get(one, "endpoints")) == HOSTS,
	      "granted");
	json_decref(v);
	CHECK(!kill(pid, SIGTERM) && waitpid(pid, &st, 0) == pid && WIFEXITED(st) &&
		      !WEXITSTATUS(st),
	      "its end: %#x", st);
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
	}
	/*
	 * One after the other: when both start at once, one that waits for a CPU loses, whatever
	 * its rank (the clock decides who is earlier: bl_wd_next__by_rank).
	 */
	begin(0, &c[0], NULL);
	CHECK(ruler(1) == 0, "who is alone takes over");
	begin(1, &c[1], NULL);
	wants(100);
	hosts_until_quiet();
	becomes(1, BL_FCP_STANDBY, "the other one stands by");
	wants(300);
	hosts_for(2);
	old = end(0); /* with demands that it knows and has not served */
	wants(100);
	CHECK(ruler(2) == 1, "the secondary takes over");
	hosts_until_quiet();
	/* The old arbiter comes back, and stays secondary. */
	begin(0, &c[0], NULL);
	for (i = 0; i < 10; i++) {
		wants(20);
		hosts_for(50);
	}
	hosts_until_quiet();
	becomes(0, BL_FCP_STANDBY, "who comes back stands by");
	becomes(1, BL_FCP_PRIMARY, "who ruled goes on");
	now = end(1);
	CHECK(now.takeovers == 1 && !now.yields, "takeovers");
	CHECK(now.packets[BL_FCP_R_STANDBY] > 0 && old.takeovers == 1, "requests reach both");
	fprintf(stderr,
		"  %" PRIu64 " slots from the first, %" PRIu64 " from the second; stalls %" PRIu64
		"\n",
		old.granted, now.granted, now.stalls);
	end(0);
	sessions_were(2);
}

RACK_TEST(failover__ipv4_group)
{
	failover(false);
}

RACK_TEST(failover__ipv6_group)
{
	failover(true);
}

static uint32_t ruling(void)
{
	uint32_t i, n = 0;

	for (i = 0; i < 3; i++)
		n += state_of(i) == BL_FCP_PRIMARY;
	return n;
}

RACK_TEST(election__three_start_at_once)
{
	struct bl_arb_cfg c[3];
	uint64_t until;
	uint32_t i, k;

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
	/* An arbiter that became primary beside another one for lack of a CPU gives way. */
	for (until = t_mono() + WAIT_S * 1000000000ULL; ruling() != 1;) {
		CHECK(t_mono() < until, "%u rule", ruling());
		hosts_for(1);
	}
	for (i = 0; i < 3; i++)
		end(i);
}

/*
 * Waits until the arbiter has counted @n invalid packets of host 0. A sender that does not wait
 * overflows the arbiter's socket while the arbiter has no CPU.
 */
static void until_nonsense(uint64_t n)
{
	uint64_t until = t_mono() + WAIT_S * 1000000000ULL, have;
	struct bl_arb_row rows[HOSTS];
	struct bl_arb_total t;

	for (;;) {
		bl_arb_read(w.arb[0], &t, rows, HOSTS);
		have = rows[0].packets[BL_FCP_R_BAD_MAGIC] + rows[0].packets[BL_FCP_R_SHORT];
		if (have >= n)
			return;
		CHECK(t_mono() < until, "%" PRIu64 " of %" PRIu64 " were counted", have, n);
		usleep(50);
	}
}

static bool capped(void)
{
	struct bl_arb_row rows[HOSTS];
	struct bl_arb_total t;

	bl_arb_read(w.arb[0], &t, rows, HOSTS);
	return rows[1].capped > 0 && rows[0].packets[BL_FCP_R_BAD_CHECK] &&
	       t.packets[BL_FCP_R_UNKNOWN] >= 10;
}

RACK_TEST(input__strangers_and_nonsense)
{
	_Alignas(8) uint8_t buf[1400] = { 0 };
	struct bl_arb_row rows[HOSTS];
	struct sockaddr_storage sa;
	struct bl_arb_total t;
	struct bl_arb_cfg c;
	struct in6_addr ip;
	uint64_t begun, until;
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
	/* a sender that is in no list */
	address(&ip, 2);
	sa = sa_of(&ip, 40000, &len);
	fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&sa, len), "%s", strerror(errno));
	for (i = 0; i < 10; i++)
		sendto(fd, buf, 100, 0, (struct sockaddr *)&w.target, w.target_len);
	/* an endpoint that sends invalid packets of every length, and then forged requests */
	begun = t_mono();
	for (i = 0; i < sizeof(buf); i++) {
		sendto(w.fd[0], buf, i, 0, (struct sockaddr *)&w.target, w.target_len);
		if (i % 20 == 19)
			until_nonsense(i + 1);
	}
	until_nonsense(i);
	for (i = 0; i < 50; i++) {
		memset(buf, 0, 64);
		buf[33] = 1;
		buf[37] = 1;
		sendto(w.fd[0], buf,
		       bl_fcp_seal(&w.host[0].p, 0x666, BL_FCP_REQ, i, 1, 0, 0, buf, 42), 0,
		       (struct sockaddr *)&w.target, w.target_len);
	}
	/* and one that wants an absurd amount, beside honest ones */
	bl_fcp_host_want(&w.host[1], 2, 2000000000);
	for (i = 0; i < 20; i++) {
		bl_fcp_host_want(&w.host[3], 4, 10);
		hosts_for(10);
	}
	for (until = t_mono() + WAIT_S * 1000000000ULL; w.host[3].need || !capped();) {
		CHECK(t_mono() < until, "the honest host waits for %llu slots, or nobody counts",
		      w.host[3].need);
		hosts_for(10);
	}
	bl_arb_read(w.arb[0], &t, rows, HOSTS);
	CHECK(t.packets[BL_FCP_R_UNKNOWN] == 10 && !strcmp(t.unknown, "10.77.0.2"), "%s",
	      t.unknown);
	CHECK(rows[0].packets[BL_FCP_R_BAD_CHECK] >= 1 &&
		      rows[0].packets[BL_FCP_R_BAD_MAGIC] + rows[0].packets[BL_FCP_R_SHORT] >=
			      sizeof(buf),
	      "counts");
	/* It is given up if this process has had no CPU for a second. */
	CHECK((rows[0].session || rows[0].gone) && rows[0].sessions <= 1 + rows[0].gone, "a "
											 "session "
											 "that "
											 "works "
											 "goes on");
	CHECK(rows[0].resets <= n + (t_mono() - begun) / 2000000 + 1,
	      "%" PRIu64 " RESETs in %" PRIu64 " ms of 2 ms round trips", rows[0].resets - n,
	      (t_mono() - begun) / 1000000);
	CHECK(rows[1].waiting <= 50 && rows[1].capped > 0, "%u slots wait in the allocator",
	      rows[1].waiting);
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

/*
 * Sends a FAULTS with one link (or none) from @fd. Returns the challenge in the arbiter's answer,
 * and in *@version the version of its list; -1: no answer.
 */
static uint32_t faults_say(int fd, uint64_t secret1, uint64_t boot, uint32_t version,
			   uint32_t challenge, bool link, int64_t *has)
{
	_Alignas(8) uint8_t buf[128] = { 0 };
	struct bl_fcp_params p = { .secret = { w.host[0].p.secret[0], secret1 } };
	struct bl_fcp_faults *b = (void *)(buf + 32);
	struct bl_fcp_link *l = (void *)(b + 1);
	uint32_t len = 32 + sizeof(*b) + (link ? sizeof(*l) : 0);
	struct pollfd in = { .fd = fd, .events = POLLIN };
	struct bl_fcp_pkt k;
	ssize_t n;

	*b = (struct bl_fcp_faults){ .boot = BL_BE64(boot),
				     .version = BL_BE32(version),
				     .table = BL_BE32(w.host[0].p.table),
				     .count = BL_BE16(link) };
	l->path = link;
	bl_fcp_seal(&p, 0, BL_FCP_FAULTS, challenge, 1, 0, 0, buf, len);
	CHECK(sendto(fd, buf, len, 0, (struct sockaddr *)&w.target, w.target_len) == (ssize_t)len,
	      "%s", strerror(errno));
	*has = -1;
	if (secret1 != w.host[0].p.secret[1])
		return 0;
	CHECK(poll(&in, 1, WAIT_S * 1000) == 1, "no answer");
	n = recv(fd, buf, sizeof(buf), 0);
	CHECK(n > 0 && bl_fcp_parse(buf, (uint32_t)n, HOSTS, &k) == BL_FCP_R_OK &&
		      k.opcode == BL_FCP_HEARD && bl_fcp_checksum_ok(&p, 0, buf, (uint32_t)n),
	      "answer");
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
	/* It does not know the challenge: the list is not accepted, but answered. */
	challenge = faults_say(fd, secret1, 100, 1, 0, true, &has);
	CHECK(challenge && has == 0 && !list_calls, "challenge");
	faults_say(fd, secret1 + 1, 100, 1, challenge, true, &has); /* forged */
	CHECK(faults_say(fd, secret1, 100, 2, challenge, true, &has) == challenge && has == 2 &&
		      list_calls == 1 && list_links == 1,
	      "taken");
	faults_say(fd, secret1, 100, 2, challenge, true, &has); /* the same list again */
	CHECK(has == 2 && list_calls == 1, "repeated");
	faults_say(fd, secret1, 100, 1, challenge, false, &has); /* replayed */
	CHECK(has == 2 && list_calls == 1, "an older list was taken");
	faults_say(fd, secret1, 99, 7, challenge, false, &has); /* of an earlier service */
	CHECK(has == 2 && list_calls == 1, "an older service was believed");
	faults_say(fd, secret1, 101, 1, challenge, false,
		   &has); /* of a service that was restarted */
	CHECK(has == 1 && list_calls == 2 && !list_links, "a new service");
	t = end(0);
	CHECK(t.faults[BL_FCP_R_BAD_CHALLENGE] == 1 && t.faults[BL_FCP_R_BAD_CHECK] == 1 &&
		      t.faults[BL_FCP_R_OLD] == 2 && t.faults[BL_FCP_R_OK] == 3,
	      "counts");
	CHECK(t.faults_version == 1 && !t.faults_links, "list");
	close(fd);
}

/*
 * Without a secret, a watchdog that says that it is another arbiter's, of a later term, does not
 * make the primary stand by unless it comes from that arbiter's address.
 */
RACK_TEST(watchdog__forged_without_a_secret)
{
	_Alignas(8) uint8_t packet[BL_FCP_PACKET_MAX];
	struct bl_fcp_params p = BL_FCP_PARAMS_DEFAULT;
	struct bl_wd forger = { .p = &p, .state = BL_FCP_PRIMARY, .seq = 1 };
	struct bl_arb_total t;
	struct bl_arb_cfg c;
	struct sockaddr_storage sa, from;
	socklen_t len, from_len;
	uint32_t rank, n, sent = 0;
	int fd;

	open_world(false);
	c = config(0);
	group(&c);
	c.secret[0] = 0;
	begin(0, &c, NULL);
	CHECK(ruler(1) == 0, "the only arbiter rules");
	p.table = bl_arb_table(w.ep, HOSTS);
	sa = sa_of(&c.group, BL_FCP_WATCHDOG_PORT, &len);
	from = sa_of(&w.ep[0].addr, 0, &from_len);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&from, from_len) &&
		      !setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF,
				  &(struct ip_mreqn){ .imr_ifindex = (int)if_nametoindex("v0") },
				  sizeof(struct ip_mreqn)),
	      "%s", strerror(errno));
	bl_arb_read(w.arb[0], &t, NULL, 0);
	forger.term = t.term + (1U << 30);
	/* of the other arbiters, of the primary itself, of none */
	for (rank = 0; rank < 6; rank++) {
		forger.rank = rank;
		for (n = 0; n < 5; n++, sent++) {
			uint32_t bytes = bl_wd_tx(&forger, packet);

			CHECK(sendto(fd, packet, bytes, 0, (struct sockaddr *)&sa, len) ==
				      (ssize_t)bytes,
			      "%s", strerror(errno));
		}
	}
	do {
		usleep(1000);
		bl_arb_read(w.arb[0], &t, NULL, 0);
	} while (t.watchdogs[BL_FCP_R_UNKNOWN] < sent && !t.yields);
	CHECK(t.watchdogs[BL_FCP_R_UNKNOWN] == sent && t.state == BL_FCP_PRIMARY && !t.yields,
	      "%llu of %u were refused, state %u, gave way %llu times",
	      (unsigned long long)t.watchdogs[BL_FCP_R_UNKNOWN], sent, t.state,
	      (unsigned long long)t.yields);
	close(fd);
	end(0);
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
	CHECK(bl_arb_new(&a, &c, &toy_ops, &w.toy[0], NULL, NULL, &err) == -EINVAL &&
		      strstr(err.text, "dead_us 11019: at least 11021"),
	      "%s", err.text);
	c.dead_us = 11021;
	CHECK(!bl_arb_new(&a, &c, &toy_ops, &w.toy[0], NULL, NULL, &err), "%s", err.text);
	bl_arb_free(a);
	c.group_if[0] = 0;
	CHECK(bl_arb_new(&a, &c, &toy_ops, &w.toy[0], NULL, NULL, &err) == -EINVAL, "an interface "
										    "is needed");
	c = config(0);
	c.run_slots = WINDOW + 1;
	CHECK(bl_arb_new(&a, &c, &toy_ops, &w.toy[0], NULL, NULL, &err) == -EINVAL, "run_slots");
	c = config(0);
	w.ep[1].addr = w.ep[0].addr;
	CHECK(bl_arb_new(&a, &c, &toy_ops, &w.toy[0], NULL, NULL, &err) == -EINVAL &&
		      strstr(err.text, "10.77.0.10 is listed twice"),
	      "%s", err.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(door__tells_and_takes_dead_paths),
		cmocka_unit_test(cli__run_and_show),
		cmocka_unit_test(failover__ipv4_group),
		cmocka_unit_test(failover__ipv6_group),
		cmocka_unit_test(election__three_start_at_once),
		cmocka_unit_test(input__strangers_and_nonsense),
		cmocka_unit_test(faults__only_from_the_service),
		cmocka_unit_test(watchdog__forged_without_a_secret),
		cmocka_unit_test(config__what_cannot_be_safe_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
