// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A process in a time namespace that shifts CLOCK_MONOTONIC is no endpoint, reads no bus time, and
 * runs no node: it would take its own times for those of the kernel.
 */
#include "tests/net/rack.h"

#include "base/timens.h"
#include "tests/net/barline_run.h"

#define SHIFT_S 5

static char barline[512], barlined[520];
static const char *ifname; /* of the host whose daemon does not run */

/* Children of this process get a CLOCK_MONOTONIC that is ahead by @s. */
static void shift_children(int s)
{
	char text[64];
	int fd, n = snprintf(text, sizeof(text), "monotonic %d 0", s);

	CHECK(!unshare(CLONE_NEWTIME), "unshare: %s; has the kernel CONFIG_TIME_NS?",
	      strerror(errno));
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && write(fd, text, (size_t)n) == n, "timens_offsets: %s", strerror(errno));
	close(fd);
}

/* Runs @fn in a process on @node whose clock is shifted by @s, and serves until its end. */
static void run_shifted(unsigned int node, int s, void (*fn)(void))
{
	pid_t outer, inner;
	int st;

	fflush(NULL);
	outer = fork();
	CHECK(outer >= 0, "fork");
	if (!outer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(node);
		shift_children(s);
		inner = fork();
		if (!inner) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			fn();
			_exit(0);
		}
		_exit(inner > 0 && waitpid(inner, &st, 0) == inner && !st ? 0 : 1);
	}
	while (!waitpid(outer, &st, WNOHANG))
		rack_serve(2);
	CHECK(!st, "status %x", st);
}

static void refuse_library(void)
{
	struct bl_endpoint *ep;
	struct bl_bus_clock *c;
	int rc = bl_init(&ep, NULL);

	CHECK(rc == -ENOTSUP && !ep, "bl_init() says %d", rc);
	CHECK(strstr(bl_strerror(NULL), "time namespace"), "\"%s\"", bl_strerror(NULL));
	rc = bl_bus_clock_open(&c, NULL);
	CHECK(rc == -ENOTSUP && !c, "bl_bus_clock_open() says %d", rc);
	CHECK(strstr(bl_strerror(NULL), "time namespace"), "\"%s\"", bl_strerror(NULL));
}

/* The clock that is read is within its bound of the lab's, which follows that of the machine. */
static void accept_library(void)
{
	struct bl_bus_time t = { .size = sizeof(t) };
	struct bl_endpoint *ep;
	struct bl_bus_clock *c;
	uint64_t before, after;
	struct timespec now;

	CHECK(!bl_init(&ep, NULL), "%s", bl_strerror(NULL));
	CHECK(!bl_bus_clock_open(&c, NULL), "bl_bus_clock_open");
	clock_gettime(CLOCK_TAI, &now);
	before = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	CHECK(!bl_bus_clock_read(c, &t), "bl_bus_clock_read");
	clock_gettime(CLOCK_TAI, &now);
	after = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	CHECK(t.bus_ns + t.bound_ns >= before && t.bus_ns - t.bound_ns <= after,
	      "bus time %" PRIu64 ", bound %" PRIu64, t.bus_ns, t.bound_ns);
	bl_bus_clock_close(c);
	bl_exit(ep);
}

static void refuse_command(const char *const *argv)
{
	const char *text = "";
	json_t *said;
	int st = barline_run(&said, argv);

	json_unpack(said, "{s:s}", "error", &text);
	CHECK(st == 1 && strstr(text, "time namespace"), "%s %s %s: status %d, \"%s\"", argv[0],
	      argv[1], argv[2], st, text);
	json_decref(said);
}

static void refuse_commands(void)
{
	static const char *const argv[][6] = {
		{ barline, "-j", "show", "clock", NULL },
		{ barline, "-j", "show", "links", NULL },
		{ barline, "-j", "admission", "show", NULL },
		{ barline, "-j", "recv", NULL },
	};
	const char *text = NULL;
	json_t *said, *row;
	bool named = false;
	unsigned int k;
	size_t at;

	for (k = 0; k < sizeof(argv) / sizeof(argv[0]); k++)
		refuse_command(argv[k]);
	barline_run(&said, (const char *const[]){ barline, "-j", "doctor", NULL });
	json_array_foreach(json_object_get(said, "findings"), at,
			   row) if (!json_unpack(row, "{s:s}", "what", &text))
		named |= !strcmp(text, "time namespace");
	CHECK(named, "barline doctor does not name it");
	json_decref(said);
}

/* A daemon that starts all the same is ended by timeout(1), whose status is another one. */
static void refuse_daemon(void)
{
	refuse_command((const char *const[]){ "/usr/bin/timeout", "20", barlined, "host", "-j",
					      "-i", ifname, "--clock-source", "trust", NULL });
}

RACK_TEST(timens__shifted_is_refused)
{
	static struct bl_node_cfg cfg;

	CHECK(barline_path(barline, sizeof(barline)), "no path of barline");
	snprintf(barlined, sizeof(barlined), "%sd", barline);
	rack.lab.spec.hosts = 2;
	rack.closed = 1ULL << 2; /* s1 h1 h2 */
	rack_open();
	CHECK(!lab_node_cfg(&rack.lab, &rack.lab.nodes[rack_host(1)], &cfg), "lab_node_cfg");
	ifname = cfg.ifname;
	run_shifted(rack_host(0), SHIFT_S, refuse_library);
	run_shifted(rack_host(0), -SHIFT_S, refuse_library);
	run_shifted(rack_host(0), SHIFT_S, refuse_commands);
	run_shifted(rack_host(1), SHIFT_S, refuse_daemon);
}

/* Neither a namespace without a shift nor one for later children changes the clock of a process. */
RACK_TEST(timens__not_shifted_is_accepted)
{
	rack.lab.spec.hosts = 2;
	rack_open();
	run_shifted(rack_host(0), 0, accept_library);
	shift_children(SHIFT_S);
	CHECK(!bl_timens_shifts("monotonic"), "the process counts as shifted, not its children");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timens__shifted_is_refused),
		cmocka_unit_test(timens__not_shifted_is_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
