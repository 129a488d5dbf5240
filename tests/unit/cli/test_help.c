// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What `barline` says to somebody who does not know it: help for the whole, for a group and for a
 * command, and what it takes a mistyped word for (cli/main.c, cli/util/args.c).
 */
#include "tests/unit/barline_says.h"

/* Help lists what it was asked for, in all ways to ask, and nothing else. */
static void help__lists(void **state)
{
	static const struct {
		const char *args, *has, *lacks;
	} cases[] = {
		{ "help", "\n  show ports ", NULL },
		{ "-h", "\n  show ports ", NULL },
		{ "--help", "\n  lab down ", NULL },
		{ "help show", "\n  show ports ", "\n  lab down " },
		{ "show --help", "\n  show ports ", "\n  lab down " },
		{ "show -h", "\n  show ports ", "\n  lab down " },
		{ "help bench", "\n  bench latency ", "\n  show ports " },
		{ "help show ports", "Usage: barline show ports [OPTION", "\n  show drops " },
		{ "show ports -h", "Usage: barline show ports [OPTION", "\n  show drops " },
		{ "help bench latency", "Usage: barline bench latency [OPTION", NULL },
		{ "help lab run incast", "Usage: barline lab run [OPTION...] incast|", NULL },
		{ "help watch", "Usage: barline watch [OPTION", "\n  show drops " },
		{ "help help", "\n  show ports ", NULL },
		{ "version", "barline ", NULL },
		{ "version -j", "{\"schema\": 1, \"version\": \"", NULL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = barline_says(cases[i].args);

		if (!strstr(text, cases[i].has) || (cases[i].lacks && strstr(text, cases[i].lacks)))
			fail_msg("barline %s: %s", cases[i].args, text);
		free(text);
	}
}

/* Of options of a command, none stands among --help and --usage. */
static void help__own_options_apart(void **state)
{
	char *text = barline_says("bench latency --help"), *help, *lab;

	(void)state;
	help = strstr(text, "  -?, --help");
	lab = strstr(text, "  -l, --lab=");
	assert_true(help && lab && lab < help);
	assert_null(strstr(help, "--peer"));
	free(text);
}

/* An error begins with the command, whether the command line or the rack is wrong. */
static void errors__begin_alike(void **state)
{
	static const struct {
		const char *args, *begin;
	} cases[] = {
		{ "show ports --foo 2>&1", "barline show ports: " },
		{ "show ports -n /nonexistent 2>&1", "barline show ports: " },
		{ "send 2>&1", "barline send: " },
		{ "send -n /nonexistent 10.0.0.1:61700 x 2>&1", "barline send: " },
		{ "quux 2>&1", "barline: " },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		int status;
		char *text = barline_run_says(cases[i].args, &status);

		if (!status || strncmp(text, cases[i].begin, strlen(cases[i].begin)))
			fail_msg("barline %s: %d, %s", cases[i].args, status, text);
		free(text);
	}
}

/* barlined has the flags of both roles: each heading has those that it names below it. */
static void help__of_the_daemon_by_role(void **state)
{
	static const struct {
		const char *option, *heading; /* the last one before it; NULL: none */
	} cases[] = {
		{ "--config=", NULL },     { "--clock-source=", NULL },
		{ "--user=", NULL },       { "--process-limit-ms=", " Host:" },
		{ "--fdb=", " Switch:" },  { "--host-port=", " Switch:" },
		{ "--k=", " Admission:" }, { "--skew-ns=", " For tests:" },
	};
	static const char *const headings[] = { " Host:", " Switch:", " Admission:",
						" For tests:" };
	char path[PATH_MAX], command[PATH_MAX + 16], *text = NULL;
	size_t room = 0, i, k;
	FILE *f;

	(void)state;
	barline_command(path, sizeof(path));
	snprintf(command, sizeof(command), "%sd --help", path);
	f = popen(command, "r");
	assert_non_null(f);
	assert_true(getdelim(&text, &room, '\0', f) > 0);
	assert_int_equal(pclose(f), 0);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *at = strstr(text, cases[i].option), *last = NULL, *heading = NULL;

		if (!at)
			fail_msg("no %s", cases[i].option);
		for (k = 0; k < ARRAY_SIZE(headings); k++) {
			const char *h = strstr(text, headings[k]);

			assert_non_null(h);
			if (h < at && (!last || h > last)) {
				last = h;
				heading = headings[k];
			}
		}
		if (heading != cases[i].heading &&
		    (!heading || !cases[i].heading || strcmp(heading, cases[i].heading)))
			fail_msg("%s is below \"%s\"", cases[i].option, heading ? heading : "");
	}
	free(text);
}

/* What is no command is answered by one line, with the command that was meant if one is near. */
static void meant__commands(void **state)
{
	static const struct {
		const char *args, *meant; /* @meant NULL: nothing is near */
	} cases[] = {
		{ "shw ports", "show ports" },
		{ "show prots", "show ports" },
		{ "prots", "show ports" },
		{ "shw", "show" },
		{ "shw quux", "show" },
		{ "hots up -n x", "host up" },
		{ "wtach", "watch" },
		{ "bench latncy", "bench latency" },
		{ "help show prts", "show ports" },
		{ "help lba", "lab" },
		{ "quux", NULL },
	};
	char args[128], want[64];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		int status;
		char *text;

		snprintf(args, sizeof(args), "%s 2>&1", cases[i].args);
		text = barline_run_says(args, &status);
		snprintf(want, sizeof(want), "did you mean \"%s\"?", cases[i].meant);
		if (status != 2 || !strchr(text, '\n') || strchr(text, '\n')[1] ||
		    !strstr(text, cases[i].meant ? want : "barline help") ||
		    (!cases[i].meant && strstr(text, "did you mean")))
			fail_msg("barline %s: %d, %s", args, status, text);
		free(text);
	}
}

/* The same for options, and for the words that they and the commands take. */
static void meant__options_and_words(void **state)
{
	static const struct {
		const char *args, *says;
	} cases[] = {
		{ "lab up --hots 3", "'--hots'; did you mean --hosts?\nTry" },
		{ "lab up --hots=3", "'--hots=3'; did you mean --hosts?\nTry" },
		{ "-j lab up --hots=3", "'--hots=3'; did you mean --hosts?\"}" },
		{ "show ports --jsn", "'--jsn'; did you mean --json?" },
		{ "show ports --quuux", "'--quuux'\nTry" },
		{ "lab run incst", "Did you mean incast?" },
		{ "lab up --admission ttop --rate 1gbit", "did you mean top?" },
		{ "lab up ../evil", "a lab cannot be called \"../evil\"" },
		{ "lab up 'bad name'", "a lab cannot be called \"bad name\"" },
		{ "lab up x torus", "no topology is called \"torus\"" },
	};
	char args[128];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		int status;
		char *text;

		snprintf(args, sizeof(args), "%s 2>&1", cases[i].args);
		text = barline_run_says(args, &status);
		if (status != 2 || !strstr(text, cases[i].says))
			fail_msg("barline %s: %d, %s", args, status, text);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(help__lists),
		cmocka_unit_test(help__own_options_apart),
		cmocka_unit_test(help__of_the_daemon_by_role),
		cmocka_unit_test(errors__begin_alike),
		cmocka_unit_test(meant__commands),
		cmocka_unit_test(meant__options_and_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
