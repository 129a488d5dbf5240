// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every C file equals the output of clang-format 14 with .clang-format; `make format` makes it so.
 */
#include <unistd.h>

#include "tests/unit/house/house.h"

#define FORMAT "clang-format-14"

static void format__every_file(void **state)
{
	struct names said = {};
	unsigned int i;

	(void)state;
	names_of(&said, "find . -name .git -prune -o -path './build*' -prune -o -type f -name "
			"'*.[ch]' "
			"-print | xargs -n 40 -P \"$(nproc)\" " FORMAT " --dry-run 2>&1 | "
			"grep -o '^[^ ]*: warning' | cut -d : -f 1,2 | sort -u | head -n 20");
	for (i = 0; i < said.n; i++)
		print_error("%s is not formatted; run make format\n", said.v[i]);
	i = said.n;
	names_free(&said);
	assert_int_equal(i, 0);
}

static void format__what_is_not_is_found(void **state)
{
	struct names said = {};

	(void)state;
	names_of(&said, "echo 'int  x ;' | " FORMAT " --dry-run --assume-filename=x.c 2>&1 | "
			"grep -c warning");
	assert_int_equal(said.n, 1);
	assert_string_not_equal(said.v[0], "0");
	names_free(&said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(format__every_file),
		cmocka_unit_test(format__what_is_not_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
