// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cli/util/message.c: names of messages. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "cli/util/message.h"

static void message__there_and_back(void **state)
{
	static const char *const names[] = {
		"10.0.0.1:61696@1764000000000000000",
		"[fd00::1]:61696@1",
		"@18446744073709551615",
	};
	struct message_name m;
	char buf[96];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(message_parse(&m, names[i]), 0);
		assert_string_equal(message_format(&m, buf, sizeof(buf)), names[i]);
	}
	assert_int_equal(message_parse(&m, names[0]), 0);
	assert_true(m.src.port == 61696 && m.ts == 1764000000000000000ULL);
	assert_int_equal(message_parse(&m, "@5"), 0);
	assert_true(!m.src.port && m.ts == 5);
}

static void message__refused(void **state)
{
	static const char *const names[] = {
		"",
		"5",
		"10.0.0.1:61696",
		"10.0.0.1:61696@",
		"10.0.0.1:61696@0",
		"10.0.0.1:61696@-1",
		"10.0.0.1:61696@ 5",
		"10.0.0.1:61696@5x",
		"10.0.0.1:61696@18446744073709551616",
		"10.0.0.1@5",
		"h1@5",
		"10.0.0.1:0@5",
		"5@5@5",
		"1111111111111111111111111111111111111111111111111111111111111111:1@5",
	};
	struct message_name m;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (message_parse(&m, names[i]) != -EINVAL)
			fail_msg("\"%s\" was accepted", names[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message__there_and_back),
		cmocka_unit_test(message__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
