// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Unmodified applications over reservations: iperf3 (TCP, UDP, IPv6) and memcached on the addresses
 * of bl0, many to one, on a rack with metered ports.
 *
 * Everything must arrive, and no switch may drop anything; the rate is never judged. A sender may
 * lose UDP datagrams in its own hold queue if it offers more than the link carries: PL2 wants them
 * lost there.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "tests/net/rack.h"

#define HOSTS     4
#define RATE_BPS  100000000ULL
#define SLOW_BPS  20000000ULL /* a link that even a busy machine can overload */
#define PORT_BASE 5201
#define MC_PORT   11211
#define APPS_MAX  16
#define WAIT_MS   60000

/** struct app - a child in a host's namespace. */
struct app {
	pid_t pid;
	int out, status; /* memfd with its stdout; wait status */
	const char *name;
};

static struct app apps[APPS_MAX];
static unsigned int napps;

/*
 * Runs a program in the namespace of a host. PR_SET_PDEATHSIG ends it with the case, so nothing
 * survives the case.
 */
static struct app *app_run(unsigned int host, char *const argv[])
{
	struct app *a = &apps[napps++];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	CHECK(napps <= APPS_MAX, "too many");
	*a = (struct app){ .name = argv[0], .out = memfd_create("out", MFD_CLOEXEC) };
	fflush(NULL);
	a->pid = fork();
	CHECK(a->pid >= 0 && a->out >= 0, "%s", strerror(errno));
	if (a->pid) {
		close(null);
		return a;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rack_enter(rack_host(host));
	dup2(null, STDIN_FILENO);
	dup2(a->out, STDOUT_FILENO);
	execvp(argv[0], argv);
	fprintf(stderr, "%s: %s; these tests need the packages iperf3 and memcached\n", argv[0],
		strerror(errno));
	_exit(127);
}

static bool app_ended(struct app *a)
{
	if (a->pid && waitpid(a->pid, &a->status, WNOHANG) == a->pid)
		a->pid = 0;
	return !a->pid;
}

static void app_end(struct app *a)
{
	if (!a->pid)
		return;
	kill(a->pid, SIGKILL);
	waitpid(a->pid, &a->status, 0);
	a->pid = 0;
}

static void app_wait(struct app *a, unsigned int timeout_ms)
{
	uint64_t end = t_mono() + timeout_ms * 1000000ULL;

	while (!app_ended(a)) {
		CHECK(t_mono() < end, "%s does not come to its end in %u ms", a->name, timeout_ms);
		rack_serve(5);
	}
	CHECK(WIFEXITED(a->status) && !WEXITSTATUS(a->status), "%s ended with %d", a->name,
	      WIFEXITED(a->status) ? WEXITSTATUS(a->status) : -WTERMSIG(a->status));
}

static void app_listens(struct app *a, bool v6, unsigned int port)
{
	uint64_t end = t_mono() + WAIT_MS * 1000000ULL;
	char path[64], line[256], want[16];
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", a->pid, v6 ? "tcp6" : "tcp");
	snprintf(want, sizeof(want), ":%04X ", port);
	while (!found) {
		FILE *f = fopen(path, "re");

		while (f && !found && fgets(line, sizeof(line), f))
			/* the local address, and 0A: listening */
			found = strstr(line, want) && strstr(line, ":0000 0A ");
		if (f)
			fclose(f);
		CHECK(!app_ended(a), "%s ended before it listened", a->name);
		CHECK(t_mono() < end, "%s does not listen", a->name);
		rack_serve(5);
	}
}

static json_t *app_json(struct app *a)
{
	json_t *j;

	lseek(a->out, 0, SEEK_SET);
	j = json_loadfd(a->out, 0, NULL);
	CHECK(j, "%s said no JSON", a->name);
	close(a->out);
	return j;
}

static double number(const json_t *o, const char *a, const char *b)
{
	return json_number_value(json_object_get(json_object_get(json_object_get(o, "end"), a), b));
}

/* Writes the address that an application uses: that of bl0. */
static void bl0_addr(unsigned int host, int family, char *text, size_t size)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	struct ifaddrs *all, *i;

	text[0] = '\0';
	rack_enter(rack_host(host));
	CHECK(!getifaddrs(&all), "%s", strerror(errno));
	for (i = all; i; i = i->ifa_next) {
		const void *raw;

		if (!i->ifa_addr || i->ifa_addr->sa_family != family || strcmp(i->ifa_name, "bl0"))
			continue;
		raw = family == AF_INET ? (void *)&((struct sockaddr_in *)i->ifa_addr)->sin_addr
					: (void *)&((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
		if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)raw))
			continue;
		inet_ntop(family, raw, text, (socklen_t)size);
	}
	freeifaddrs(all);
	CHECK(!setns(home, CLONE_NEWNET), "home");
	close(home);
	CHECK(text[0], "bl0 of h%u has no address of family %d", host + 1, family);
}

static void open_rack(uint64_t rate_bps)
{
	rack.lab.spec.hosts = HOSTS;
	/*
	 * Beacons are queued behind data: at 1 kHz they would fill a queue while a pacer has no CPU
	 * for a quarter of a second.
	 */
	rack.lab.spec.beacon_us = 10000;
	/*
	 * A promise outlives any delay of this machine: one that lapses, or that the receiver gives
	 * back, costs frames.
	 */
	rack.lab.spec.admission = (struct bl_admission_cfg){ .on = true,
							     .policy = BL_POLICY_PL2,
							     .rate_bps = rate_bps,
							     .coming_us = 2000000,
							     .lapse_us = 4000000 };
	rack_open();
	rack_settle();
	rack_last_words = rack_dump;
}

/* Checks that the switch promised, the hosts held and paced, and nothing was dropped on the way. */
static void judge(void)
{
	static const enum bl_reason drops[] = { BL_R_QUEUE_FULL,      BL_R_NO_SLOT,
						BL_R_UNRESERVED,      BL_R_FRAME_SIZE,
						BL_R_REDIRECT_FAILED, BL_R_RSV_BAD,
						BL_R_RSV_OFF };
	unsigned int sw = 0, i;

	while (!rack_is_switch(sw))
		sw++;
	for (i = 0; i < sizeof(drops) / sizeof(drops[0]); i++)
		CHECK(!rack_count(sw, drops[i]), "the switch dropped %llu frames by reason %u",
		      (unsigned long long)rack_count(sw, drops[i]), drops[i]);
	CHECK(rack_count(sw, BL_R_RSV_GRANTED), "nothing was reserved");
	CHECK(rack_count(sw, BL_R_QUEUED), "nothing went through a metered port");
	for (i = 0; i < HOSTS; i++) {
		CHECK(rack_count(rack_host(i), BL_R_HELD), "nothing of h%u was held", i + 1);
		CHECK(rack_count(rack_host(i), BL_R_PACED), "nothing of h%u was paced", i + 1);
		CHECK(rack_count(rack_host(i), BL_R_TO_APP), "nothing came to bl0 of h%u", i + 1);
		CHECK(!rack_count(rack_host(i), BL_R_NO_SLOT), "h%u had no slot", i + 1);
	}
}

/* All hosts except h1 send to h1 for @seconds; @seen receives each server's report. */
static void incast(int family, const char *seconds, const char *udp_rate, json_t *seen[HOSTS])
{
	struct app *server[HOSTS], *client[HOSTS];
	char *time = (char *)(uintptr_t)seconds, *rate = (char *)(uintptr_t)udp_rate;
	char to[64], port[8], len[8];
	unsigned int i;

	bl0_addr(0, family, to, sizeof(to));
	for (i = 1; i < HOSTS; i++) {
		char *argv[] = { "iperf3", "-s", "-1", "-J", "-B", to, "-p", port, NULL };

		snprintf(port, sizeof(port), "%u", PORT_BASE + i);
		server[i] = app_run(0, argv);
	}
	for (i = 1; i < HOSTS; i++)
		app_listens(server[i], family == AF_INET6, PORT_BASE + i);
	for (i = 1; i < HOSTS; i++) {
		char *tcp[] = { "iperf3", "-c", to,   "-p",    port, "-t",
				time,     "-J", "-C", "cubic", NULL };
		char *udp[] = { "iperf3", "-c", to,   "-p", port, "-t", time,
				"-J",     "-u", "-b", rate, "-l", len,  NULL };

		snprintf(len, sizeof(len), "%u", rack.lab.spec.mtu - 28);
		snprintf(port, sizeof(port), "%u", PORT_BASE + i);
		client[i] = app_run(i, udp_rate ? udp : tcp);
	}
	for (i = 1; i < HOSTS; i++) {
		json_t *j;

		app_wait(client[i], WAIT_MS);
		app_wait(server[i], WAIT_MS);
		j = app_json(client[i]);
		CHECK(!json_object_get(j, "error"), "h%u: %s", i + 1,
		      json_string_value(json_object_get(j, "error")));
		json_decref(j);
		seen[i] = app_json(server[i]);
	}
	judge();
}

static void tcp(int family)
{
	json_t *seen[HOSTS];
	unsigned int i;

	open_rack(RATE_BPS);
	incast(family, "2", NULL, seen);
	for (i = 1; i < HOSTS; i++)
		CHECK(number(seen[i], "sum_received", "bytes") > 100000, "h%u: %.0f bytes", i + 1,
		      number(seen[i], "sum_received", "bytes"));
}

RACK_TEST(iperf3__tcp)
{
	tcp(AF_INET);
}

RACK_TEST(iperf3__ipv6)
{
	tcp(AF_INET6);
}

/*
 * The rate is so low that all datagrams arrive, even if a receiver has no CPU for two seconds: its
 * socket has room for some 90 of them.
 */
RACK_TEST(iperf3__udp)
{
	json_t *seen[HOSTS];
	unsigned int i;

	open_rack(RATE_BPS);
	incast(AF_INET, "4", "500k", seen);
	for (i = 1; i < HOSTS; i++) {
		CHECK(number(seen[i], "sum_received", "packets") > 100, "h%u: %.0f datagrams",
		      i + 1, number(seen[i], "sum_received", "packets"));
		CHECK(number(seen[i], "sum_received", "lost_packets") == 0,
		      "h%u: %.0f datagrams lost", i + 1,
		      number(seen[i], "sum_received", "lost_packets"));
	}
}

/* Each sender offers five times the link: most of it is lost, all in the senders' hold queues. */
RACK_TEST(iperf3__udp_overload)
{
	json_t *seen[HOSTS];
	unsigned int i;

	open_rack(SLOW_BPS);
	incast(AF_INET, "2", "100M", seen);
	for (i = 1; i < HOSTS; i++) {
		CHECK(number(seen[i], "sum_received", "packets") > 100, "h%u: %.0f datagrams",
		      i + 1, number(seen[i], "sum_received", "packets"));
		CHECK(rack_count(rack_host(i), BL_R_HOLD_FULL),
		      "h%u offered fifteen times what it may, and its hold queue was never full",
		      i + 1);
	}
}

/* ---- memcached ---- */

static void mc_send(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		CHECK(k > 0, "send: %s", strerror(errno));
		p += k;
		n -= (size_t)k;
	}
}

static void mc_expect(int fd, const char *want, size_t n, const char *what)
{
	char *got = malloc(n);
	size_t have = 0;

	while (have < n) {
		ssize_t k = recv(fd, got + have, n - have, 0);

		CHECK(k > 0, "%s: %zu of %zu bytes came: %s", what, have, n,
		      k ? strerror(errno) : "hung up");
		have += (size_t)k;
	}
	CHECK(!memcmp(got, want, n), "%s: other bytes came than were stored", what);
	free(got);
}

/* Sets values of many sizes, reads them back and compares each byte. */
static void mc_client(const char *server)
{
	static const unsigned int sizes[] = { 1, 63, 1023, 1024, 1448, 1449, 4096, 65536, 500000 };
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(MC_PORT) };
	struct timeval wait = { .tv_sec = 60 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	unsigned int round, i, k;

	inet_pton(AF_INET, server, &sa.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	CHECK(!connect(fd, (struct sockaddr *)&sa, sizeof(sa)), "%s", strerror(errno));
	for (round = 0; round < 3; round++)
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			char *buf = malloc(sizes[i] + 128), what[64];
			uint64_t seed = 1 + round * 100 + i;
			int head;

			snprintf(what, sizeof(what), "value of %u bytes", sizes[i]);
			head = sprintf(buf, "set k%u 0 0 %u\r\n", i, sizes[i]);
			for (k = 0; k < sizes[i]; k++)
				buf[head + (int)k] = (char)t_rand(&seed);
			memcpy(buf + head + sizes[i], "\r\n", 2);
			mc_send(fd, buf, (size_t)head + sizes[i] + 2);
			mc_expect(fd, "STORED\r\n", 8, what);
			head = sprintf(buf, "get k%u\r\n", i);
			mc_send(fd, buf, (size_t)head);
			head = sprintf(buf, "VALUE k%u 0 %u\r\n", i, sizes[i]);
			seed = 1 + round * 100 + i;
			for (k = 0; k < sizes[i]; k++)
				buf[head + (int)k] = (char)t_rand(&seed);
			memcpy(buf + head + sizes[i], "\r\nEND\r\n", 7);
			mc_expect(fd, buf, (size_t)head + sizes[i] + 7, what);
			free(buf);
		}
	close(fd);
}

/* h2 queries h1 while h3 and h4 send bulk data to h2. */
RACK_TEST(memcached__beside_bulk)
{
	char server[64], asker[64], port[8], mc_port[8];
	char *mc[] = { "memcached", "-u", "root", "-U", "0",     "-t",
		       "1",         "-l", server, "-p", mc_port, NULL };
	struct app *bulk[2], *sink[2], *cache, *client = &apps[APPS_MAX - 1];
	unsigned int i;

	open_rack(RATE_BPS);
	bl0_addr(0, AF_INET, server, sizeof(server));
	bl0_addr(1, AF_INET, asker, sizeof(asker));
	snprintf(mc_port, sizeof(mc_port), "%u", MC_PORT);
	cache = app_run(0, mc);
	app_listens(cache, false, MC_PORT);
	for (i = 0; i < 2; i++) {
		char *argv[] = { "iperf3", "-s", "-1", "-J", "-B", asker, "-p", port, NULL };

		snprintf(port, sizeof(port), "%u", PORT_BASE + i);
		sink[i] = app_run(1, argv);
	}
	for (i = 0; i < 2; i++)
		app_listens(sink[i], false, PORT_BASE + i);
	for (i = 0; i < 2; i++) {
		char *argv[] = { "iperf3", "-c", asker, "-p", port, "-t", "4", "-J", NULL };

		snprintf(port, sizeof(port), "%u", PORT_BASE + i);
		bulk[i] = app_run(2 + i, argv);
	}
	fflush(NULL);
	*client = (struct app){ .name = "the memcached client", .pid = fork() };
	CHECK(client->pid >= 0, "%s", strerror(errno));
	if (!client->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(rack_host(1));
		mc_client(server);
		_exit(0);
	}
	app_wait(client, 90000);
	for (i = 0; i < 2; i++) {
		app_wait(bulk[i], WAIT_MS);
		app_wait(sink[i], WAIT_MS);
	}
	app_end(cache);
	judge();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(iperf3__tcp),
		cmocka_unit_test(iperf3__ipv6),
		cmocka_unit_test(iperf3__udp),
		cmocka_unit_test(iperf3__udp_overload),
		cmocka_unit_test(memcached__beside_bulk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
