// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline lab run --loss` as its users run it: links do lose frames, best effort loses messages by that and says so, the reliable stream does not.
 */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>
#include <cmocka.h>

static char barline[512];

static int set_up(void **state)
{
	ssize_t n = readlink("/proc/self/exe", barline, sizeof(barline) - 16);

	(void)state;
	if (n < 0)
		return -1;
	barline[n] = '\0';
	/* build/tests/net/test_lab_loss */
	for (n = 0; n < 3; n++)
		*strrchr(barline, '/') = '\0';
	strcat(barline, "/barline");
	return 0;
}

/* its exit status; *@said: the object that it printed, or NULL; the caller's */
static int run(json_t **said, const char *loss, bool reliable)
{
	const char *const argv[] = { barline, "-j", "lab", "run", "rack", "--hosts", "3", "--duration", "0.5", "--samples", "0", "--loss", loss, reliable ? "--reliable" : NULL, NULL };
	int out = memfd_create("out", MFD_CLOEXEC), st;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0 && out >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out, STDOUT_FILENO);
		execv(barline, (char *const *)argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_true(WIFEXITED(st));
	lseek(out, 0, SEEK_SET);
	*said = json_loadfd(out, 0, NULL);
	close(out);
	return WEXITSTATUS(st);
}

static json_int_t number(const json_t *o, const char *of, const char *what)
{
	const json_t *v = json_object_get(json_object_get(o, of), what);

	assert_true(json_is_integer(v));
	return json_integer_value(v);
}

static void loss__best_effort_loses(void **state)
{
	json_t *o;

	(void)state;
	assert_int_equal(run(&o, "0.2", false), 0);
	assert_true(number(o, "loss", "frames") > 0);
	assert_true(json_real_value(json_object_get(json_object_get(o, "loss"), "probability")) == 0.2);
	assert_true(number(o, "throughput", "delivered") > 0);
	assert_true(number(o, "throughput", "delivered") < number(o, "throughput", "sent"));
	assert_null(json_object_get(json_object_get(o, "order"), "one_order")); /* not compared */
	json_decref(o);
}

static void loss__reliable_does_not(void **state)
{
	json_t *o;

	(void)state;
	assert_int_equal(run(&o, "0.05", true), 0);
	assert_true(number(o, "loss", "frames") > 0);
	assert_true(number(o, "throughput", "delivered") > 0);
	assert_int_equal(number(o, "throughput", "delivered"), number(o, "throughput", "sent"));
	assert_true(json_is_true(json_object_get(json_object_get(o, "order"), "one_order")));
	json_decref(o);
}

static void loss__none_and_too_much(void **state)
{
	static const char *const bad[] = { "-0.1", "0.51", "1", "x", "" };
	unsigned int i;
	json_t *o;

	(void)state;
	assert_int_equal(run(&o, "0", false), 0);
	assert_null(json_object_get(o, "loss"));
	assert_true(json_is_true(json_object_get(json_object_get(o, "order"), "one_order")));
	json_decref(o);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(run(&o, bad[i], false), 2);
		assert_null(json_object_get(o, "order"));
		json_decref(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loss__best_effort_loses),
		cmocka_unit_test(loss__reliable_does_not),
		cmocka_unit_test(loss__none_and_too_much),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
