// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline lab up --controllers`, as somebody uses it who studies failures for the first time: the
 * lab is up when a controller leads and knows all nodes; a link is cut and comes back; a controller
 * is killed. The test reads the command's output through a pipe to its end, so no background
 * process may hold the pipe. The test also runs `barline lab run failover --kill stop` and `leave`.
 */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define WAIT_S 90
/* A host that has no CPU for a while is not announced, but one that is cut off is, in time. */
#define PATIENT "--dead-after-us", "3000000"

static char barline[512], lab[32], out[1 << 16];

static int set_up(void **state)
{
	ssize_t n = readlink("/proc/self/exe", barline, sizeof(barline) - 16);

	(void)state;
	if (n < 0)
		return -1;
	barline[n] = '\0';
	/* build/tests/net/test_lab_up */
	for (n = 0; n < 3; n++)
		*strrchr(barline, '/') = '\0';
	strcat(barline, "/barline");
	snprintf(lab, sizeof(lab), "t-up-%d", getpid());
	return 0;
}

/* Runs a command. Returns its exit status; @out receives all its output, including errors. */
static int run(const char *const *argv)
{
	size_t len = 0;
	int fds[2], st;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		execv(barline, (char *const *)argv);
		_exit(127);
	}
	close(fds[1]);
	alarm(WAIT_S);
	while (len < sizeof(out) - 1 && (n = read(fds[0], out + len, sizeof(out) - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &st, 0), pid);
	alarm(0);
	assert_true(WIFEXITED(st));
	return WEXITSTATUS(st);
}

#define RUN(...)      run((const char *const[]){ barline, __VA_ARGS__, NULL })
#define IN(node, ...) RUN("lab", "exec", lab, node, "--", __VA_ARGS__)

/*
 * Returns the output of `barline show WHAT -j` where the controllers are, which the caller frees;
 * NULL: an error.
 */
static json_t *show(const char *what)
{
	return IN("mgmt", barline, "show", what, "-j") ? NULL : json_loads(out, 0, NULL);
}

/* Returns the controller that leads, which the caller frees, or NULL. */
static json_t *leader(void)
{
	json_t *all = show("controller"), *one, *found = NULL;
	size_t i;

	json_array_foreach(json_object_get(all, "controllers"), i,
			   one) if (!strcmp(json_string_value(json_object_get(one, "state")), "lead"
											      "er"))
		found = json_incref(one);
	json_decref(all);
	return found;
}

/* Returns the number of nodes in that state according to the leader. */
static int nodes(const char *state)
{
	json_t *c = leader(), *one;
	int n = 0;
	size_t i;

	json_array_foreach(json_object_get(c, "nodes"), i, one)
		n += !strcmp(json_string_value(json_object_get(one, "state")), state);
	json_decref(c);
	return n;
}

#define UNTIL(cond)                                                             \
	do {                                                                    \
		time_t until_ = time(NULL) + WAIT_S;                            \
		while (!(cond)) {                                               \
			if (time(NULL) > until_)                                \
				fail_msg("never: %s; it said: %s", #cond, out); \
			usleep(50000);                                          \
		}                                                               \
	} while (0)

/* Returns whether a failure of @who is finished. */
static bool finished(const char *who)
{
	json_t *all = show("failures"), *one;
	bool found = false;
	size_t i;

	json_array_foreach(json_object_get(all, "failures"), i, one)
		found |= !strcmp(json_string_value(json_object_get(one, "who")), who) &&
			 !strcmp(json_string_value(json_object_get(one, "step")), "finished");
	json_decref(all);
	return found;
}

static void controllers__one(void **state)
{
	(void)state;
	assert_int_equal(RUN("lab", "up", lab, "--hosts", "3", "--controllers", "1", PATIENT), 0);
	assert_non_null(strstr(out, "mgmt -- barline show controller"));
	assert_int_equal(nodes("ok"), 4); /* at once: the command waited for it */
	assert_int_equal(IN("mgmt", barline, "show", "failures"), 0);
	assert_non_null(strstr(out, "no failures"));
	assert_int_equal(IN("h2", "ip", "link", "set", "eth0", "down"), 0);
	UNTIL(finished("h2"));
	assert_int_equal(IN("h2", "ip", "link", "set", "eth0", "up"), 0);
	UNTIL(nodes("ok") == 4);
	/* a host's own namespace has none */
	assert_int_equal(IN("h1", barline, "show", "controller"), 1);
	assert_int_equal(RUN("lab", "down", lab), 0);
}

static void controllers__three_leader_killed(void **state)
{
	json_int_t first;
	char pid[32];
	json_t *c;

	(void)state;
	assert_int_equal(RUN("lab", "up", lab, "--hosts", "2", "--controllers", "3", PATIENT), 0);
	UNTIL((c = leader()));
	first = json_integer_value(json_object_get(c, "epoch"));
	snprintf(pid, sizeof(pid), "%d", (int)json_integer_value(json_object_get(c, "pid")));
	json_decref(c);
	assert_int_equal(IN("mgmt", "kill", "-9", pid), 0);
	UNTIL(nodes("ok") == 3);
	UNTIL((c = leader()));
	assert_true(json_integer_value(json_object_get(c, "epoch")) > first);
	json_decref(c);
	c = show("epochs");
	/* more, if a leader lost its lease while the machine stood still */
	assert_true(json_array_size(json_object_get(c, "epochs")) >= 2);
	json_decref(c);
	assert_int_equal(RUN("lab", "down", lab), 0);
}

/*
 * run() reads to the end of the pipe: arbiters in the background must neither hold it nor read the
 * terminal.
 */
static void arbiters__hold_no_output(void **state)
{
	(void)state;
	assert_int_equal(RUN("lab", "up", lab, "--hosts", "2", "--admission", "fastpass", "--rate",
			     "50mbit"),
			 0);
	assert_int_equal(RUN("lab", "down", lab), 0);
}

/* Nothing remains of a lab whose controllers do not start, and the reason is reported. */
static void controllers__cannot_start(void **state)
{
	char *path = strdup(getenv("PATH") ? getenv("PATH") : "");

	(void)state;
	setenv("PATH", "/none", 1);
	assert_int_equal(RUN("lab", "up", lab, "--hosts", "2", "--controllers", "2"), 1);
	setenv("PATH", path, 1);
	free(path);
	if (!strstr(out, "etcd does not start; is it installed"))
		fail_msg("%s", out);
	assert_int_equal(RUN("lab", "exec", lab, "h1", "--", "true"), 1);
}

static void controllers__bad_numbers(void **state)
{
	static const char *const bad[] = { "-1", "4", "x", "" };
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(RUN("lab", "up", lab, "--controllers", bad[i]), 2);
	assert_int_equal(RUN("lab", "up", lab, "--controllers", "1", "--no-barline"), 2);
	assert_int_equal(RUN("lab", "up", lab, "--hosts", "2", "--controllers", "0"), 0);
	assert_int_equal(IN("mgmt", barline, "show", "controller"), 1);
	assert_int_equal(RUN("lab", "down", lab), 0);
}

/* Returns the row that `barline lab run failover -j` printed, which the caller frees. */
static json_t *failover(void)
{
	const char *begin = strchr(out, '{'); /* daemons' warnings surround it */
	json_t *all = begin ? json_loads(begin, JSON_DISABLE_EOF_CHECK, NULL) : NULL,
	       *row = json_incref(json_array_get(json_object_get(all, "failover"), 0));

	json_decref(all);
	return row;
}

/* The cost of a stop and of a leave for the others is printed, and nothing is wrong. */
static void failover__of_the_living(void **state)
{
	json_t *row;

	(void)state;
	assert_int_equal(RUN("-j", "lab", "run", "failover", "--kill", "stop", "--stop-ms", "300",
			     "--hosts", "3", "--runs", "1", PATIENT),
			 0);
	row = failover();
	assert_non_null(row);
	assert_int_equal(json_integer_value(json_object_get(row, "wrong")), 0);
	assert_true(json_real_value(json_object_get(row, "before_p50_per_s")) > 0);
	assert_true(json_real_value(json_object_get(row, "after_p50_per_s")) > 0);
	assert_true(json_real_value(json_object_get(row, "stood_p50_ms")) > 0);
	json_decref(row);
	assert_int_equal(RUN("-j", "lab", "run", "failover", "--kill", "leave", "--hosts", "3",
			     "--runs", "1", PATIENT),
			 0);
	row = failover();
	assert_int_equal(json_integer_value(json_object_get(row, "wrong")), 0);
	assert_true(json_real_value(json_object_get(row, "after_p50_per_s")) > 0);
	json_decref(row);
	assert_int_equal(RUN("lab", "run", "failover", "--kill", "stop", "--stop-ms", "99"), 2);
	assert_int_equal(RUN("lab", "run", "failover", "--kill", "nobody"), 2);
}

/* Returns what `lab list` has as @key of the lab: "state" or "pid". The caller frees it. */
static json_t *listed(const char *key)
{
	json_t *all = RUN("lab", "list", "-j") ? NULL : json_loads(out, 0, NULL), *one, *v = NULL;
	size_t i;

	json_array_foreach(json_object_get(all, "labs"), i,
			   one) if (!strcmp(json_string_value(json_object_get(one, "name")), lab))
		v = json_incref(json_object_get(one, key));
	json_decref(all);
	return v;
}

static bool is_listed(const char *state)
{
	json_t *v = listed("state");
	bool is = v && !strcmp(json_string_value(v), state);

	json_decref(v);
	return is;
}

/* Commands about a lab whose first process is stopped: none waits without a limit. */
static void stopped__lab(void **state)
{
	json_t *v;
	pid_t pid;

	(void)state;
	assert_int_equal(RUN("lab", "up", lab, "--hosts", "2"), 0);
	v = listed("pid");
	pid = (pid_t)json_integer_value(v);
	json_decref(v);
	assert_true(pid > 0);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	UNTIL(is_listed("no answer"));
	assert_int_equal(RUN("bench", "latency", "--lab", lab), 1);
	assert_non_null(strstr(out, "is stopped by a signal"));
	assert_int_equal(RUN("lab", "up", lab, "--hosts", "2"), 1);
	assert_int_equal(IN("h1", "true"), 0);
	assert_int_equal(kill(pid, SIGCONT), 0);
	UNTIL(is_listed("up"));
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(RUN("lab", "down", lab), 0);
	v = listed("pid");
	assert_null(v);
}

static int tear_down(void **state)
{
	(void)state;
	RUN("lab", "down", lab); /* of a case that failed */
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(controllers__one, tear_down),
		cmocka_unit_test_teardown(controllers__three_leader_killed, tear_down),
		cmocka_unit_test_teardown(arbiters__hold_no_output, tear_down),
		cmocka_unit_test_teardown(controllers__cannot_start, tear_down),
		cmocka_unit_test_teardown(controllers__bad_numbers, tear_down),
		cmocka_unit_test_teardown(stopped__lab, tear_down),
		cmocka_unit_test(failover__of_the_living),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
