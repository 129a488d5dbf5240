// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* base/text.h: names of any bytes are made plain, and those that are plain stay as they are. */
#include "tests/unit/unit.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static void text__made_plain(void **state)
{
	static const struct {
		const char *name, *plain;
	} cases[] = {
		{ "", "" },
		{ "receiver 7/~", "receiver 7/~" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "\xe2\x82\xac \xf0\x9f\x9a\x80", "\xe2\x82\xac \xf0\x9f\x9a\x80" },
		{ "a\xffz", "a?z" },
		{ "\xe2\x82", "??" },                /* cut off in the middle, as the kernel does */
		{ "\xc0\xaf\xed\xa0\x80", "?????" }, /* overlong, and a surrogate */
		{ "a\033[2J\tb\177", "a?[2J?b?" },
		{ "\xc2\x9b[2J\xc2\xa0", "??[2J\xc2\xa0" },
	};
	char name[32];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *s;

		snprintf(name, sizeof(name), "%s", cases[i].name);
		bl_text_plain(name);
		assert_string_equal(name, cases[i].plain);
		s = json_string(name);
		assert_non_null(s);
		json_decref(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text__made_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
