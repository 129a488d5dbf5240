// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline lab run --loss` as its users run it: links lose frames, best effort loses messages by
 * that and reports it, and the reliable stream loses none.
 */
#include "tests/net/barline_run.h"

static char barline[512];

static int set_up(void **state)
{
	(void)state;
	return barline_path(barline, sizeof(barline)) ? 0 : -1;
}

/*
 * Runs the command. Returns its exit status; *@said receives the object that it printed, which the
 * caller frees, or NULL.
 */
static int run(json_t **said, const char *loss, bool reliable)
{
	/*
	 * A host that has no CPU for a while is not excluded, and few frames are under way at once.
	 */
	const char *const argv[] = {
		barline,   "-j",          "lab",  "run",
		"rack",    "--hosts",     "3",    "--dead-after-us",
		"5000000", "--beacon-us", "1000", "--ring",
		"65536",   "--duration",  "1",    "--samples",
		"0",       "--loss",      loss,   reliable ? "--reliable" : NULL,
		NULL
	};

	return barline_run(said, argv);
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
	assert_true(json_real_value(json_object_get(json_object_get(o, "loss"), "probability")) ==
		    0.2);
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
