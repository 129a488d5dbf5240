// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cli/show/columns.c: the columns of `barline watch`. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <math.h>

#include "cli/show/columns.h"

static void columns_parse__lists(void **state)
{
	static const struct {
		const char *list, *says; /* @says NULL: it is right */
		int n;
	} cases[] = {
		{ COLUMNS_DEFAULT, NULL, 4 },
		{ "no_route", NULL, 1 },
		{ "bytes", NULL, 1 },
		{ "lag,no_route,frames,lag", NULL, 4 },
		{ "lag,lag,lag,lag,lag,lag,lag,lag,lag,lag,lag,lag", NULL, 12 },
		{ "lag,lag,lag,lag,lag,lag,lag,lag,lag,lag,lag,lag,lag", "at most 12", -EINVAL },
		{ "", "\"\"", -EINVAL },
		{ "lag,", "\"\"", -EINVAL },
		{ "lag,no_ruote", "\"no_ruote\"; did you mean no_route?", -EINVAL },
		{ "a_word_that_is_longer_than_any_name_of_a_column", "\"a_word", -EINVAL },
	};
	struct column c[COLUMNS_MAX];
	struct bl_err err;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		int n = columns_parse(c, cases[i].list, &err);

		if (n != cases[i].n || (cases[i].says && !strstr(err.text, cases[i].says)))
			fail_msg("%s: %d, %s", cases[i].list, n, n < 0 ? err.text : "");
	}
	assert_int_equal(columns_parse(c, "noted,no_route,bytes", &err), 3);
	assert_int_equal(c[0].kind, COLUMN_NOTED);
	assert_int_equal(c[1].kind, COLUMN_REASON);
	assert_int_equal(c[1].reason, BL_R_NO_ROUTE);
	assert_int_equal(c[2].kind, COLUMN_BYTES);
}

/* Headings stand above their values, also above long ones. */
static void columns_line__is_below_its_head(void **state)
{
	const double values[] = { 1500, 20311.4, 0, 0.25 }, unknown[] = { NAN, 1e9, NAN, 9.96 };
	struct column c[COLUMNS_MAX];
	char *text = NULL;
	struct bl_err err;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(columns_parse(c, "lag,frames,dropped,barrier_ahead", &err), 4);
	columns_head(f, c, 4, 6);
	columns_line(f, c, 4, 6, "12:00:01", "h1", values);
	columns_line(f, c, 4, 6, "12:00:02", "switch", unknown);
	fclose(f);
	assert_string_equal(text, "TIME      NODE          LAG     FRAMES    DROPPED  "
				  "BARRIER_AHEAD\n"
				  "12:00:01  h1         1.5 us      20311          0            "
				  "0.2\n"
				  "12:00:02  switch          -  1000000000          -           "
				  "10.0\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_parse__lists),
		cmocka_unit_test(columns_line__is_below_its_head),
	};

	return cmocka_run_group_tests_name("columns", tests, NULL, NULL);
}
