// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What cli/sysdump/redact.c leaves out, and what it leaves alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "cli/sysdump/redact.h"

#define OUT "(left out)"

static void redact_line__table(void **state)
{
	static const struct {
		const char *in, *out;
	} t[] = {
		/* configuration as it is */
		{ "node_id: 12\n", "node_id: 12\n" },
		{ "", "" },
		{ "\n", "\n" },
		{ "auth: { mode: links, keys: /etc/barline/h1.keys }\n", "auth: { mode: links, "
									 "keys: "
									 "/etc/barline/h1.keys "
									 "}\n" },
		{ "secret_file: /etc/barline/fastpass.secret\n", "secret_file: "
								 "/etc/barline/fastpass.secret\n" },
		{ "address: fd77:1::1, 02:77:00:03:00:00\n", "address: fd77:1::1, "
							     "02:77:00:03:00:00\n" },
		/* keys that name a secret, whatever the value */
		{ "psk: 0\n", "psk: (\n" },
		{ "secret: abcdefghijk\n", "secret: " OUT "\n" },
		{ "  etcd: { user: root, Password: \"a b c d e\" }\n", "  etcd: { user: root, "
								       "Password: " OUT "\n" },
		{ "--token=abcdefghijk\r\n", "--token=" OUT "\r\n" },
		{ "secret:\n", "secret:\n" },
		/* long words, at the edge */
		{ "x: 0123456789abcdef0123456789abcde\n", "x: 0123456789abcdef0123456789abcde\n" },
		{ "x: 0123456789abcdef0123456789abcdef\n", "x: " OUT "\n" },
		{ "a 0123456789abcdef0123456789abcdef b Zm9vYmFyYmF6Zm9vYmFyYmF6Zm9vYmFyYg== c\n",
		  "a " OUT " b " OUT " c\n" },
	};
	char line[256];
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct redact r = { false };

		snprintf(line, sizeof(line), "%s", t[i].in);
		redact_line(&r, line);
		assert_string_equal(line, t[i].out);
	}
}

static void redact_line__pem(void **state)
{
	static const char *const lines[] = {
		"a: 1\n", "k: -----BEGIN PRIVATE KEY-----\n", "MIIB/short+line\n",
		"\n",     "-----END PRIVATE KEY-----\n",      "b: 2\n"
	};
	struct redact r = { false };
	char all[512] = "", line[128];
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(line, sizeof(line), "%s", lines[i]);
		redact_line(&r, line);
		strcat(all, line);
	}
	assert_string_equal(all, "a: 1\n" OUT "\n" OUT "\n\n" OUT "\nb: 2\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(redact_line__table),
		cmocka_unit_test(redact_line__pem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
