// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of drivers in loader/load/nic_drivers.c is the one of docs/nics.md. */
#include <stdio.h>

#include "tests/unit/unit.h"

#include "loader/load/nic_drivers.h"

/* Returns the rows of the table in the document, from "| bnxt_en" to the first other line. */
static unsigned int read_table(char (*rows)[256], unsigned int max)
{
	FILE *f = fopen("docs/nics.md", "re");
	unsigned int n = 0;
	bool in = false;
	char line[256];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "| driver ", 9)) {
			in = true;
			assert_non_null(fgets(line, sizeof(line), f));
		} else if (in && line[0] == '|') {
			assert_true(n < max);
			snprintf(rows[n++], sizeof(*rows), "%s", line);
		} else {
			in = false;
		}
	}
	fclose(f);
	return n;
}

static void table__is_the_document_s(void **state)
{
	char rows[64][256], want[256], gap[8];
	const struct bl_nic_driver *d;
	unsigned int n, k;

	(void)state;
	d = bl_nic_drivers(&n);
	assert_int_equal(read_table(rows, 64), n);
	for (k = 0; k < n; k++) {
		snprintf(gap, sizeof(gap), "%s", *d[k].native ? " " : "");
		snprintf(want, sizeof(want), "| %s | %s%s| %s | %s%s|\n", d[k].name, d[k].native,
			 gap, bl_xdp_rings_name(d[k].rings), d[k].note, *d[k].note ? " " : "");
		assert_string_equal(rows[k], want);
		assert_ptr_equal(bl_nic_driver(d[k].name), &d[k]);
		/* native XDP and its rings go together */
		assert_int_equal(!*d[k].native, d[k].rings == BL_RINGS_NONE);
	}
}

static void table__is_sorted_and_others_are_unknown(void **state)
{
	const struct bl_nic_driver *d;
	unsigned int n, k;

	(void)state;
	d = bl_nic_drivers(&n);
	for (k = 1; k < n; k++)
		assert_true(strcmp(d[k - 1].name, d[k].name) < 0);
	assert_null(bl_nic_driver(""));
	assert_null(bl_nic_driver("ixgb"));
	assert_null(bl_nic_driver("ixgbex"));
	assert_string_equal(bl_xdp_rings_name((enum bl_xdp_rings)99), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table__is_the_document_s),
		cmocka_unit_test(table__is_sorted_and_others_are_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
