// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * base/nearest.c: how many slips are between two words, and which of several candidates a word is
 * taken for.
 */
#include "tests/unit/unit.h"

#include "base/nearest.h"

#define LONG63 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk"

static void slips__edges(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned int slips;
	} cases[] = {
		{ "", "", 0 },
		{ "", "abc", 3 },
		{ "ports", "ports", 0 },
		{ "prots", "ports", 1 },  /* swapped */
		{ "port", "ports", 1 },   /* missing */
		{ "poorts", "ports", 1 }, /* too many */
		{ "pirts", "ports", 1 },  /* another */
		{ "opsrt", "ports", 3 },  /* no letter takes part in two swaps */
		{ "ab", "ba", 1 },
		{ "ca", "abc", 3 }, /* unrestricted, it would be 2 */
		{ "kitten", "sitting", 3 },
		{ "xyz", "abc", 3 },
		{ LONG63, LONG63, 0 },
		{ LONG63, LONG63 "x", 64 }, /* too long to be compared */
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		if (bl_slips(cases[i].a, cases[i].b) != cases[i].slips ||
		    bl_slips(cases[i].b, cases[i].a) != cases[i].slips)
			fail_msg("%s, %s: %u", cases[i].a, cases[i].b,
				 bl_slips(cases[i].a, cases[i].b));
	}
}

static void nearest__candidates(void **state)
{
	static const char *const names[] = { "nodes", NULL,        "ports", "barriers",
					     "drops", "endpoints", "epochs" };
	static const struct {
		const char *word, *best;
	} cases[] = {
		{ "ports", "ports" },
		{ "prots", "ports" },
		{ "por", "ports" }, /* a beginning */
		{ "p", NULL },      /* of at least two letters */
		{ "end", "endpoints" },
		{ "enpoint", "endpoints" }, /* 2 of 7 */
		{ "barier", "barriers" },
		{ "quux", NULL },
		{ "", NULL },
		{ "nods", "nodes" },
		{ "drop", "drops" },
		{ "xx", NULL },
		{ "paxxs", NULL }, /* 3 of 5 */
		{ "no", "nodes" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *best = bl_nearest_of(cases[i].word, names, ARRAY_SIZE(names));

		if (!best != !cases[i].best || (best && strcmp(best, cases[i].best)))
			fail_msg("\"%s\": %s", cases[i].word, best ? best : "none");
	}
}

/* Of two that are equally near, the first one counts. */
static void nearest__first(void **state)
{
	static const char *const names[] = { "host up", "host down" };

	(void)state;
	assert_string_equal(bl_nearest_of("host", names, 2), "host up");
	assert_null(bl_nearest_of("host", names, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slips__edges),
		cmocka_unit_test(nearest__candidates),
		cmocka_unit_test(nearest__first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
