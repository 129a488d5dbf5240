// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every function of the library while the host's daemon is stopped (SIGSTOP). What an endpoint
 * shares with the kernel goes on; what asks the daemon ends within BL_DAEMON_WAIT_S with -ETIMEDOUT
 * and a sentence that names the daemon; all of it works when the daemon continues. A call that does
 * not end is a failure, by the limit of the case. A function that is exported and not called here
 * fails the test.
 */
#include "base/proc.h"
#include "tests/net/loader/restart.h"

#include <arpa/inet.h>
#include <sys/un.h>

#define NAMES 64

static struct {
	const char *name[NAMES];
	unsigned int n;
} calls;

static void note(const char *name)
{
	CHECK(calls.n < NAMES, "make NAMES greater");
	calls.name[calls.n++] = name;
}

/* Calls a function of the library, and notes that. */
#define CALL(fn, ...) (note(#fn), fn(__VA_ARGS__))

/* Compares the names that were noted with those that the library exports. */
static void check_names(void)
{
	FILE *f = fopen("lib/libbarline.map", "r");
	unsigned int exported = 0, missing = 0, i;
	char line[128], name[64];

	CHECK(f, "lib/libbarline.map: %s", strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " bl_%60[a-z_];", name) != 1)
			continue;
		exported++;
		for (i = 0; i < calls.n && strcmp(calls.name[i] + 3, name); i++)
			;
		if (i == calls.n)
			fprintf(stderr, "bl_%s is not called\n", name);
		missing += i == calls.n;
	}
	fclose(f);
	CHECK(exported > 25 && !missing, "%u of %u functions are not called", missing, exported);
}

static struct bl_endpoint *ep, *other; /* of h1, whose daemon is stopped, and of h2 */

static struct bl_endpoint *endpoint_of(unsigned int node, uint16_t port)
{
	const struct bl_options o = { .port = port };
	struct bl_endpoint *e;
	int home = rack_away(node);

	CHECK(!CALL(bl_init, &e, &o), "%s", bl_strerror(NULL));
	rack_back(home);
	return e;
}

static void on_fail(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
		    enum bl_fail_reason why)
{
	(void)ctx, (void)ts, (void)dst, (void)cookie, (void)why;
}

/* ---- what asks the daemon, in processes of their own ---- */

static int ask_init(void)
{
	struct bl_endpoint *e;
	char pid[32];
	int rc = bl_init(&e, NULL);

	snprintf(pid, sizeof(pid), "process %d", dm[rack_host(0)].pid);
	CHECK(!rc == !!e, "half an endpoint");
	CHECK(rc != -ETIMEDOUT ||
		      (strstr(bl_strerror(NULL), pid) && strstr(bl_strerror(NULL), "barline "
										   "status")),
	      "%s", bl_strerror(NULL));
	bl_exit(e);
	return rc;
}

/* The queue of the daemon is full, so not even a connection is made. */
static int ask_init_queued(void)
{
	struct bl_endpoint *e;
	int rc = bl_init(&e, NULL);

	CHECK(rc != -ETIMEDOUT || strstr(bl_strerror(NULL), "is it stopped?"), "%s",
	      bl_strerror(NULL));
	bl_exit(e);
	return rc;
}

static int ask_clock(void)
{
	struct bl_bus_clock *c;
	struct bl_bus_time t = { .size = sizeof(t) };
	int rc = bl_bus_clock_open(&c, NULL);

	CHECK(rc || !bl_bus_clock_read(c, &t), "the clock");
	bl_bus_clock_close(c);
	return rc;
}

static int ask_hint(void)
{
	const struct bl_flow_hint hint = { .bytes = 1000 };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr.s_addr = inet_addr("10.77.1.2") };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)), "%s", strerror(errno));
	return bl_flow_hint(fd, &hint);
}

/* Runs the functions at the same time in the namespace of h1. Each has to return @want. */
static void ask_all(int (*const *ask)(void), unsigned int n, int want)
{
	pid_t child[4];
	unsigned int i;
	int st;

	for (i = 0; i < n; i++) {
		fflush(NULL);
		child[i] = fork();
		if (!child[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			rack_enter(rack_host(0));
			_exit(-ask[i]());
		}
	}
	for (i = 0; i < n; i++) {
		CHECK(waitpid(child[i], &st, 0) == child[i], "%s", strerror(errno));
		CHECK(WIFEXITED(st) && WEXITSTATUS(st) == -want, "function %u: %#x instead of %s",
		      i, st, strerror(-want));
	}
}

/* Takes all places in the queue of the daemon's socket. */
static void fill_queue(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	unsigned int n = 0;
	int fd;

	snprintf(to.sun_path, sizeof(to.sun_path), BL_RUN_DIR "/host-%" PRIu64 ".sock",
		 dm[rack_host(0)].netns_ino);
	do {
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		CHECK(fd >= 0 && n++ < 1000, "the queue has no end");
	} while (!connect(fd, (struct sockaddr *)&to, sizeof(to)));
	CHECK(errno == EAGAIN, "%s", strerror(errno));
	close(fd);
	/* the others go with this process */
}

/* ---- the cases ---- */

static void use_endpoint(void)
{
	const struct bl_msg m = { .dst = *bl_self(other), .data = "hello", .len = 5 };
	struct bl_stats st = { .size = sizeof(st) };
	struct bl_bus_time t = { .size = sizeof(t) };
	struct bl_stale stale = { .size = sizeof(stale) };
	struct bl_delivery d[4];
	struct bl_pending p;
	struct bl_addr a;
	char text[64];

	CALL(bl_on_send_fail, ep, on_fail, NULL);
	CALL(bl_on_proc_fail, ep, NULL, NULL);
	CALL(bl_on_proc_gone, ep, NULL, NULL);
	CALL(bl_on_peer, ep, NULL, NULL);
	CHECK(!CALL(bl_addr_parse, &a,
		    CALL(bl_addr_format, CALL(bl_self, ep), text, sizeof(text))) &&
		      a.port == 61703,
	      "%s", text);
	CHECK(CALL(bl_get_timestamp, ep) && !CALL(bl_get_bus_time, ep, &t), "no time");
	CHECK(!CALL(bl_helper_start, ep, 0), "%s", bl_strerror(ep));
	CHECK(CALL(bl_strerror, ep), "no sentence");
	CHECK(!CALL(bl_send, ep, &m, 1, 0) && !CALL(bl_send_reliable, ep, &m, 1, 0), "%s",
	      bl_strerror(ep));
	CHECK(!CALL(bl_flush, ep), "%s", bl_strerror(ep));
	CHECK(CALL(bl_recv, ep, d, 4, 200) >= 0 && CALL(bl_recv_reliable, ep, d, 4, 200) >= 0 &&
		      CALL(bl_process, ep) >= 0 && CALL(bl_wait, ep, BL_WAIT_RECV, 200) >= 0,
	      "%s", bl_strerror(ep));
	CHECK(CALL(bl_recv_undecided, ep, d, 4) <= 0, "undecided");
	CHECK(CALL(bl_get_stale, ep, &stale) <= 0, "stale");
	CHECK(CALL(bl_fd, ep) >= 0 && CALL(bl_get_pending, ep, &p, 1) >= 0 &&
		      !CALL(bl_get_stats, ep, &st),
	      "%s", bl_strerror(ep));
	/* the process of the peer is this one, which does not look */
	CHECK(CALL(bl_peer_wait, ep, bl_self(other), 500) == -ETIMEDOUT, "the peer answers");
	CALL(bl_helper_stop, ep);
	CALL(bl_exit, ep);
}

static void message_comes(void)
{
	const struct bl_msg m = { .dst = *bl_self(other), .data = "again", .len = 5 };
	struct bl_delivery d[4];
	uint64_t end = t_mono() + WAIT_NS;
	bool found = false;
	int n, i;

	CHECK(!bl_send(ep, &m, 1, 0), "%s", bl_strerror(ep));
	while (!found) {
		CHECK(t_mono() < end, "the message does not come");
		CHECK(bl_process(ep) >= 0, "%s", bl_strerror(ep));
		n = bl_recv(other, d, 4, 10);
		CHECK(n >= 0, "%s", bl_strerror(other));
		for (i = 0; i < n; i++)
			found |= d[i].len == 5 && !memcmp(d[i].data, "again", 5);
	}
}

RACK_TEST(stopped__daemon_and_library)
{
	static int (*const asks[])(void) = { ask_init, ask_clock, ask_hint };
	static int (*const queued[])(void) = { ask_init_queued, ask_clock, ask_hint };
	pid_t pid;

	dm_void_ms = 60000;
	dead_us = 60000000; /* nobody is excluded meanwhile */
	answer_ms = 60000;
	rack_last_words = rack_dump;
	open_rack(2);
	pid = dm[rack_host(0)].pid;
	ep = endpoint_of(rack_host(0), 61703);
	other = endpoint_of(rack_host(1), 61704);
	UNTIL("waits for the daemon to stop", !kill(pid, SIGSTOP) && bl_proc_state(pid) == 'T');
	use_endpoint();
	ask_all(asks, 3, -ETIMEDOUT);
	fill_queue();
	ask_all(queued, 3, -ETIMEDOUT);
	CHECK(!kill(pid, SIGCONT), "%s", strerror(errno));
	ask_all(asks, 3, 0);
	bl_exit(other); /* nobody has looked at it, so it may be out */
	ep = endpoint_of(rack_host(0), 61705);
	other = endpoint_of(rack_host(1), 61706);
	message_comes();
	bl_exit(ep);
	bl_exit(other);
	/* called by the functions above, in other processes */
	note("bl_bus_clock_open");
	note("bl_bus_clock_read");
	note("bl_bus_clock_close");
	note("bl_flow_hint");
	check_names();
	/* The controller settles those that have died, too, and no detach waits for dead_after. */
	UNTIL("waits for the endpoints to be free", !dm_slots_used(0) && !dm_slots_used(1));
	daemons_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stopped__daemon_and_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
