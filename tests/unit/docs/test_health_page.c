// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Compares docs/health.md with the code: its table of events with BL_EVENTS (base/event.h), and its
 * table of checks with the words that the doctor's checks find. Each event of the list is sent
 * somewhere.
 */
#include "tests/unit/unit.h"

#include "base/event.h"
#include "cli/doctor/finding.h"

static char page[65536];

static int read_page(void **state)
{
	FILE *f = fopen("docs/health.md", "re");
	size_t n;

	(void)state;
	assert_non_null(f);
	n = fread(page, 1, sizeof(page) - 1, f);
	fclose(f);
	assert_in_range(n, 1, sizeof(page) - 2);
	page[n] = '\0';
	return 0;
}

static void events__are_in_the_table(void **state)
{
#define ROW(sym, name, fields, when) { name, fields, when },
	static const char *const rows[][3] = { BL_EVENTS(ROW) };
#undef ROW
	char line[512], fields[256], *save, *p;
	const char *at = strstr(page, "| event | fields |");
	unsigned int k, n, lines = 0;

	(void)state;
	assert_non_null(at);
	for (k = 0; k < ARRAY_SIZE(rows); k++) {
		n = (unsigned int)snprintf(line, sizeof(line), "\n| `%s` | ", rows[k][0]);
		snprintf(fields, sizeof(fields), "%s", rows[k][1]);
		p = strtok_r(fields, " ", &save);
		if (!p)
			n += (unsigned int)snprintf(line + n, sizeof(line) - n, "-");
		for (; p; p = strtok_r(NULL, " ", &save))
			n += (unsigned int)snprintf(line + n, sizeof(line) - n, "`%s`%s", p,
						    *save ? ", " : "");
		snprintf(line + n, sizeof(line) - n, " | %s |\n", rows[k][2]);
		if (!strstr(at, line))
			fail_msg("docs/health.md lacks the row:%s", line);
	}
	for (p = strstr(at, "\n| `"); p; p = strstr(p + 1, "\n| `"))
		lines++;
	assert_int_equal(lines, ARRAY_SIZE(rows));
}

/* Reads the output of a command into @buf. */
static void run(const char *command, char *buf, size_t size)
{
	FILE *f = popen(command, "re");
	size_t n;

	assert_non_null(f);
	n = fread(buf, 1, size - 1, f);
	buf[n] = '\0';
	assert_int_equal(pclose(f), 0);
	assert_in_range(n, 1, size - 2);
}

static void events__are_sent(void **state)
{
#define ROW(sym, name, fields, when) #sym,
	static const char *const symbols[] = { BL_EVENTS(ROW) };
#undef ROW
	static char sent[65536];
	char word[64];
	unsigned int k;

	(void)state;
	run("grep -rhoE 'BL_EVENT[(_][A-Z_]+' base loader controller arbiter --include=*.c | "
	    "sed 's/BL_EVENT[(_]//; s/$/;/'",
	    sent, sizeof(sent));
	for (k = 0; k < ARRAY_SIZE(symbols); k++) {
		snprintf(word, sizeof(word), "%s;", symbols[k]);
		if (!strstr(sent, word))
			fail_msg("nobody sends the event %s", symbols[k]);
	}
}

static void checks__and_their_words_are_in_the_table(void **state)
{
	static char words[65536];
	char cell[64], *p, *save;
	unsigned int k, n = 0;

	(void)state;
	for (k = 0; k < NODE_CHECKS_NUMBER; k++) {
		snprintf(cell, sizeof(cell), "\n| `%s` |", node_check_name((enum node_check)k));
		if (!strstr(page, cell))
			fail_msg("docs/health.md lacks the check %s", node_check_name(k));
	}
	run("cat cli/doctor/*.c cli/health/*.c | tr '\\n\\t' '  ' | tr -s ' ' | "
	    "grep -oE '(CHECK_[A-Z_]+,|\\{ FOUND_[A-Z]+,|missing,) \"[a-z_]+\"' | "
	    "grep -oE '\"[a-z_]+\"'",
	    words, sizeof(words));
	for (p = strtok_r(words, "\"\n", &save); p; p = strtok_r(NULL, "\"\n", &save)) {
		snprintf(cell, sizeof(cell), "`%s`", p);
		n++;
		if (strcmp(p, "ok") && !strstr(page, cell))
			fail_msg("docs/health.md lacks the word %s", p);
	}
	assert_true(n > 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events__are_in_the_table),
		cmocka_unit_test(events__are_sent),
		cmocka_unit_test(checks__and_their_words_are_in_the_table),
	};

	return cmocka_run_group_tests(tests, read_page, NULL);
}
