// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP on a rack: connections of applications go from bl0 to bl0, each data frame in the place of a token that its receiver sent. The switch knows nothing of tokens here but that they are UDP;
 * they are few enough all the same, since every receiver paces its own.
 *
 * Time must not matter where a test is not about it: tokens may be minutes old, and nobody is given up.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include "rack.h"

#include <arpa/inet.h>

#include "loader/node_priv.h"
#include "maps/top_host_abi.h"

#define RATE	  250000000
#define PORT	  5001
#define FOREVER	  10000000 /* us */
#define OPT(o, v) (rack_top[BL_TOP_O_##o] = (v) + 1)

static uint32_t rack_top[BL_TOP_O_COUNT];
static unsigned int skewed; /* this node's clock is off by @skew_ns */
static int64_t skew_ns;

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	if (cfg->role == BL_ROLE_HOST)
		memcpy(cfg->admission.top.v, rack_top, sizeof(rack_top));
	if (skew_ns && n == &rack.lab.nodes[skewed])
		cfg->skew_ns = skew_ns;
	cfg->clock_bound_us = 1000;
}

static void open_rack(unsigned int hosts)
{
	rack.lab.spec.hosts = hosts;
	rack.lab.spec.admission.on = true;
	rack.lab.spec.admission.policy = BL_POLICY_TOP;
	rack.lab.spec.admission.rate_bps = RATE;
	rack.tweak = tweak;
	rack_last_words = rack_dump;
	if (!rack_top[BL_TOP_O_EXPIRY])
		OPT(EXPIRY, FOREVER);
	if (!rack_top[BL_TOP_O_DEAD])
		OPT(DEAD, FOREVER);
	rack_open();
}

static int away(unsigned int node)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	CHECK(home >= 0, "%s", strerror(errno));
	rack_enter(node);
	return home;
}

static void back(int home)
{
	CHECK(!setns(home, CLONE_NEWNET), "%s", strerror(errno));
	close(home);
}

/* ---- connections ---- */

#define CHILDREN 16

static struct {
	int family, listener;
	unsigned int senders;
	uint64_t bytes; /* of each sender */
	pid_t pid[CHILDREN + 1];
	const char *name[CHILDREN + 1];
	unsigned int n, left;
} w;

static void fill(uint8_t *b, size_t n, uint64_t at)
{
	size_t k;

	for (k = 0; k < n; k++)
		b[k] = (uint8_t)((at + k) * 2654435761u >> 13);
}

static socklen_t address(int family, unsigned int node, struct sockaddr_storage *sa)
{
	uint8_t a[16];

	memset(sa, 0, sizeof(*sa));
	lab_bl0_addr(&rack.lab.nodes[node], family, a);
	if (family == AF_INET) {
		struct sockaddr_in *s = (void *)sa;

		s->sin_family = AF_INET;
		s->sin_port = htons(PORT);
		memcpy(&s->sin_addr, a, 4);
		return sizeof(*s);
	} else {
		struct sockaddr_in6 *s = (void *)sa;

		s->sin6_family = AF_INET6;
		s->sin6_port = htons(PORT);
		memcpy(&s->sin6_addr, a, 16);
		return sizeof(*s);
	}
}

static void child(unsigned int node, const char *name, void (*fn)(void))
{
	pid_t pid = fork();

	CHECK(pid >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(node);
		fn();
		_exit(0);
	}
	w.pid[w.n] = pid;
	w.name[w.n++] = name;
	w.left++;
}

/* All of every sender's bytes, in order. */
static void receive(void)
{
	static uint8_t got[65536], want[65536];
	uint64_t at[CHILDREN] = { 0 };
	struct pollfd p[CHILDREN];
	unsigned int i, left = w.senders;

	for (i = 0; i < w.senders; i++) {
		p[i] = (struct pollfd){ .fd = accept(w.listener, NULL, NULL), .events = POLLIN };
		CHECK(p[i].fd >= 0, "%s", strerror(errno));
	}
	while (left) {
		CHECK(poll(p, w.senders, -1) > 0, "%s", strerror(errno));
		for (i = 0; i < w.senders; i++) {
			ssize_t n;

			if (!p[i].revents)
				continue;
			n = recv(p[i].fd, got, sizeof(got), 0);
			CHECK(n >= 0, "%s", strerror(errno));
			fill(want, (size_t)n, at[i]);
			CHECK(!memcmp(got, want, (size_t)n), "bytes from %" PRIu64 " on differ", at[i]);
			at[i] += (uint64_t)n;
			if (n)
				continue;
			CHECK(at[i] == w.bytes, "%" PRIu64 " bytes", at[i]);
			close(p[i].fd);
			p[i].fd = -1;
			left--;
		}
	}
}

static void send_all(void)
{
	static uint8_t b[65536];
	struct sockaddr_storage sa;
	socklen_t len = address(w.family, rack_host(0), &sa);
	int fd = socket(w.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t at = 0;

	CHECK(fd >= 0 && !connect(fd, (void *)&sa, len), "connect: %s", strerror(errno));
	while (at < w.bytes) {
		size_t n = w.bytes - at < sizeof(b) ? (size_t)(w.bytes - at) : sizeof(b);

		fill(b, n, at);
		CHECK(send(fd, b, n, MSG_NOSIGNAL) == (ssize_t)n, "send: %s", strerror(errno));
		at += n;
	}
	CHECK(!shutdown(fd, SHUT_WR) && !recv(fd, b, 1, 0), "end: %s", strerror(errno));
}

static void begin(int family, unsigned int senders, uint64_t bytes)
{
	struct sockaddr_storage sa;
	socklen_t len = address(family, rack_host(0), &sa);
	int home = away(rack_host(0)), one = 1;
	unsigned int i;

	w.family = family;
	w.senders = senders;
	w.bytes = bytes;
	w.n = w.left = 0;
	w.listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(w.listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	CHECK(w.listener >= 0 && !bind(w.listener, (void *)&sa, len) && !listen(w.listener, CHILDREN), "%s", strerror(errno));
	back(home);
	child(rack_host(0), "receiver", receive);
	for (i = 0; i < senders; i++)
		child(rack_host(i + 1), rack.lab.nodes[rack_host(i + 1)].name, send_all);
	close(w.listener);
}

/* Reaps who has ended. */
static bool running(void)
{
	unsigned int k;
	int st;

	for (k = 0; k < w.n; k++)
		if (w.pid[k] && waitpid(w.pid[k], &st, WNOHANG) == w.pid[k]) {
			CHECK(WIFEXITED(st) && !WEXITSTATUS(st), "%s failed", w.name[k]);
			w.pid[k] = 0;
			w.left--;
		}
	return w.left;
}

static void finish(void)
{
	while (running())
		rack_serve(10);
}

/* ---- what the hosts know ---- */

static struct bl_top_page page_of(unsigned int i)
{
	struct bl_top_page p;
	uint32_t zero = 0;
	int fd = rack_map(rack_host(i), BL_MAP_TOP_PAGE);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &p), "%s", strerror(errno));
	close(fd);
	return p;
}

static uint64_t tokens_of(unsigned int i)
{
	struct bl_top_page p = page_of(i);
	uint64_t n = 0;
	unsigned int k;

	for (k = 0; k < BL_TOP_CLASSES; k++)
		n += p.tokens[k];
	return n;
}

/* Every data frame went for a token, and nothing was lost on the way. */
static void in_order(unsigned int senders)
{
	uint64_t used = 0, held = 0;
	unsigned int i;

	for (i = 1; i <= senders; i++) {
		used += rack_count(rack_host(i), BL_R_TOKEN_USED) + rack_count(rack_host(i), BL_R_TOKEN_PACED);
		held += rack_count(rack_host(i), BL_R_HELD);
	}
	fprintf(stderr, "  %" PRIu64 " tokens, %" PRIu64 " answered, %" PRIu64 " wasted\n", tokens_of(0), used,
		rack_count_all(BL_R_TOKEN_WASTED) + rack_count_all(BL_R_TOKEN_STOP));
	CHECK(used && tokens_of(0) >= used && held >= used, "%" PRIu64 " tokens, %" PRIu64 " answered, %" PRIu64 " held", tokens_of(0), used, held);
	CHECK(!rack_count_all(BL_R_HOLD_FULL) && !rack_count_all(BL_R_NO_SLOT) && !rack_count_all(BL_R_QUEUE_FULL), "drops");
	CHECK(!rack_count_all(BL_R_TOKEN_FORGED) && !rack_count_all(BL_R_TOKEN_REPLAYED) && !rack_count_all(BL_R_ECHO_BAD) && !rack_count_all(BL_R_TOKEN_AHEAD) &&
		      !rack_count_all(BL_R_SIGNAL_BAD), "refusals");
}

RACK_TEST(bytes__tcp_v4)
{
	open_rack(2);
	begin(AF_INET, 1, 8 << 20);
	finish();
	in_order(1);
}

RACK_TEST(bytes__tcp_v6)
{
	open_rack(2);
	begin(AF_INET6, 1, 8 << 20);
	finish();
	in_order(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes__tcp_v4),
		cmocka_unit_test(bytes__tcp_v6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
