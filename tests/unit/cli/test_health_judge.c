// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cli/health/judge.c: from facts on a node to a verdict, at the edges. */
#include "tests/unit/unit.h"

#include "cli/health/judge.h"
#include "maps/pulse_abi.h"

#define CHECK_VERDICT(v, lev, w)                  \
	do {                                      \
		const struct verdict got = (v);   \
		assert_string_equal(got.word, w); \
		assert_int_equal(got.level, lev); \
	} while (0)

static void judge_daemon__table(void **state)
{
	static const struct {
		struct daemon_facts f;
		enum finding_level level;
		const char *word;
	} t[] = {
		{ { .pulse = false, .process = 'S' }, FOUND_FAIL, "none" },
		{ { true, BL_PULSE_RUNS, 0, 'S', 0 }, FOUND_OK, "ok" },
		{ { true, BL_PULSE_RUNS, PULSE_STALE_NS, 'R', 0 }, FOUND_OK, "ok" },
		{ { true, BL_PULSE_RUNS, PULSE_STALE_NS + 1, 'R', 0 }, FOUND_FAIL, "stuck" },
		/* a process that is stopped is named at once, whatever its last beat */
		{ { true, BL_PULSE_RUNS, 0, 'T', 0 }, FOUND_FAIL, "sigstop" },
		{ { true, BL_PULSE_RUNS, 0, 't', 0 }, FOUND_FAIL, "sigstop" },
		{ { true, BL_PULSE_CARETAKER, 0, 'T', 0 }, FOUND_FAIL, "sigstop" },
		/* and one that was killed, too */
		{ { true, BL_PULSE_RUNS, 0, 0, 0 }, FOUND_FAIL, "stopped" },
		{ { true, BL_PULSE_RUNS, 0, 'Z', 0 }, FOUND_FAIL, "stopped" },
		{ { true, BL_PULSE_RUNS, 0, 'X', 0 }, FOUND_FAIL, "stopped" },
		{ { true, BL_PULSE_STOPPED, 0, 'S', 0 }, FOUND_FAIL, "stopped" },
		/* of another PID namespace only the beat is known */
		{ { true, BL_PULSE_RUNS, 1, '?', 0 }, FOUND_OK, "ok" },
		{ { true, BL_PULSE_RUNS, PULSE_STALE_NS + 1, '?', 0 }, FOUND_FAIL, "stuck" },
		{ { true, BL_PULSE_CARETAKER, 0, 'S', 0 }, FOUND_WARN, "caretaker" },
		{ { true, BL_PULSE_CARETAKER, PULSE_STALE_NS + 1, 'S', 0 }, FOUND_FAIL, "stuck" },
		{ { true, BL_PULSE_CARETAKER, 0, 0, 0 }, FOUND_FAIL, "stopped" },
		/* a daemon that starts its first spare is as good as one that has it */
		{ { true, BL_PULSE_RUNS, 0, 'S', BL_PULSE_SPARE_STARTS }, FOUND_OK, "ok" },
		{ { true, BL_PULSE_RUNS, 0, 'S', BL_PULSE_SPARE_READY }, FOUND_OK, "ok" },
		{ { true, BL_PULSE_RUNS, 0, 'S', BL_PULSE_SPARE_LOST }, FOUND_WARN, "no_spare" },
		{ { true, BL_PULSE_RUNS, 0, 'T', BL_PULSE_SPARE_LOST }, FOUND_FAIL, "sigstop" },
		/* of a caretaker it says nothing */
		{ { true, BL_PULSE_CARETAKER, 0, 'S', BL_PULSE_SPARE_LOST },
		  FOUND_WARN,
		  "caretaker" },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		CHECK_VERDICT(judge_daemon(&t[i].f), t[i].level, t[i].word);
}

#define DEAD  100000000ULL /* dead_after of the rows below: lags up to 1 s are ordinary */
#define LIMIT 1000000000ULL

static void judge_neighbours__table(void **state)
{
	static const struct {
		struct neighbour_facts f;
		enum finding_level level;
		const char *word;
	} t[] = {
		{ { .host = true, .all = 1, .live = 1 }, FOUND_OK, "ok" },
		{ { .host = true, .all = 1 }, FOUND_FAIL, "silent" },
		{ { .host = true, .drained = true, .all = 1, .live = 1 }, FOUND_FAIL, "drained" },
		{ { .host = true, .drained = true, .all = 1, .excluded = 1 },
		  FOUND_FAIL,
		  "drained" },
		{ { .host = true, .all = 1, .joining = 1 }, FOUND_FAIL, "joining" },
		{ { .host = true, .all = 1, .excluded = 1 }, FOUND_FAIL, "excluded" },
		{ { .host = true, .all = 1, .live = 1, .held = 1 }, FOUND_FAIL, "held" },
		{ { .host = true, .all = 1, .excluded = 1, .held = 1 }, FOUND_FAIL, "held" },
		{ { .host = true, .all = 1, .live = 1, .lag_ns = LIMIT, .dead_after_ns = DEAD },
		  FOUND_OK,
		  "ok" },
		{ { .host = true, .all = 1, .live = 1, .lag_ns = LIMIT + 1, .dead_after_ns = DEAD },
		  FOUND_WARN,
		  "lagging" },
		{ { .host = true,
		    .all = 1,
		    .live = 1,
		    .lag_ns = LIMIT + LAG_STILL_NS,
		    .dead_after_ns = DEAD },
		  FOUND_WARN,
		  "lagging" },
		{ { .host = true,
		    .all = 1,
		    .live = 1,
		    .lag_ns = LIMIT + LAG_STILL_NS + 1,
		    .dead_after_ns = DEAD },
		  FOUND_FAIL,
		  "lagging" },
		/* a switch is ready although machines behind it are off */
		{ { .all = 4 }, FOUND_WARN, "silent" },
		{ { .all = 4, .live = 3 }, FOUND_WARN, "silent" },
		{ { .all = 4, .live = 3, .excluded = 1 }, FOUND_WARN, "excluded" },
		{ { .all = 4, .live = 4, .lagging = 1 }, FOUND_WARN, "lagging" },
		{ { .all = 4, .live = 4, .lag_ns = ~0ULL }, FOUND_OK, "ok" },
		{ { .all = 4, .live = 4 }, FOUND_OK, "ok" },
		/* without ports there is nothing to be heard */
		{ { .all = 0 }, FOUND_OK, "ok" },
	};
	unsigned int i;

	(void)state;
	assert_int_equal(lag_limit(0), LAG_MIN_NS);
	assert_int_equal(lag_limit(LAG_MIN_NS / 10), LAG_MIN_NS);
	assert_int_equal(lag_limit(LAG_MIN_NS / 10 + 1), LAG_MIN_NS + 10);
	for (i = 0; i < ARRAY_SIZE(t); i++)
		CHECK_VERDICT(judge_neighbours(&t[i].f), t[i].level, t[i].word);
}

static void judge_controller__table(void **state)
{
	(void)state;
	CHECK_VERDICT(judge_controller(true, BL_PULSE_NO_CONTROLLERS, false), FOUND_OK, "none");
	CHECK_VERDICT(judge_controller(true, BL_PULSE_WELCOME, false), FOUND_OK, "ok");
	CHECK_VERDICT(judge_controller(true, BL_PULSE_NO_SESSION, false), FOUND_WARN, "no_session");
	CHECK_VERDICT(judge_controller(true, BL_PULSE_WELCOME, true), FOUND_FAIL, "failed");
	/* a newer daemon may say what this command does not know */
	CHECK_VERDICT(judge_controller(true, 9, false), FOUND_WARN, "no_session");
	CHECK_VERDICT(judge_controller(false, BL_PULSE_WELCOME, true), FOUND_OK, "unknown");
}

/* The worst level counts, and among equals the first check. What is not known does not count. */
static void judge_node__worst_first(void **state)
{
	static const struct {
		int level[NODE_CHECKS_NUMBER]; /* of the first checks; -1: not known */
		enum finding_level expect;
		unsigned int worst;
		bool ready;
	} t[] = {
		{ { 0, 0, 0 }, FOUND_OK, 0, true },
		{ { -1, -1, -1 }, FOUND_OK, 0, true },
		{ { 0, FOUND_WARN, 0 }, FOUND_WARN, 1, true },
		{ { FOUND_WARN, 0, FOUND_FAIL }, FOUND_FAIL, 2, false },
		{ { 0, FOUND_FAIL, FOUND_FAIL }, FOUND_FAIL, 1, false },
		{ { FOUND_WARN, FOUND_WARN, 0 }, FOUND_WARN, 0, true },
		{ { -1, FOUND_FAIL, -1 }, FOUND_FAIL, 1, false },
	};
	unsigned int i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct health h = { .ready = !t[i].ready };

		for (k = 0; k < NODE_CHECKS_NUMBER; k++) {
			h.check[k].known = t[i].level[k] >= 0;
			h.check[k].level = h.check[k].known ? (enum finding_level)t[i].level[k]
							    : FOUND_FAIL;
		}
		judge_node(&h);
		assert_int_equal(h.level, t[i].expect);
		assert_int_equal(h.worst, t[i].worst);
		assert_int_equal(h.ready, t[i].ready);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judge_daemon__table),
		cmocka_unit_test(judge_neighbours__table),
		cmocka_unit_test(judge_controller__table),
		cmocka_unit_test(judge_node__worst_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
