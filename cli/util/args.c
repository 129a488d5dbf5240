/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See args.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/netns.h"
#include "cli/util/args.h"
#include "maps/switch_abi.h"

enum { KEY_PRETTY = 0x7000 };

static const struct argp_option global_options[] = {
	{ "json", 'j', NULL, 0, "print JSON: one object, or one per line for streams", -2 },
	{ "pretty", KEY_PRETTY, NULL, 0, "JSON in several lines, for people", -2 },
	{ "netns", 'n', "NETNS", 0,
	  "work in this network namespace: a name as in ip-netns(8), or a path", -2 },
	{ "verbose", 'v', NULL, 0, "say more on stderr; may be repeated", -2 },
	{ NULL, 'h', NULL, OPTION_HIDDEN, NULL, -2 }, /* as -? and --help, which are argp's own */
	{ 0 }
};

static error_t parse_global(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'h':
		argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
		return 0;
	case 'j':
		cli.json = true;
		return 0;
	case KEY_PRETTY:
		cli.json = cli.pretty = true;
		return 0;
	case 'n':
		cli.netns = arg;
		return 0;
	case 'v':
		cli.verbose++;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp cmd_globals_argp = { .options = global_options, .parser = parse_global };
const struct argp_child cmd_globals[] = { cmd_globals_child, { 0 } };

/* ---- errors of usage, which --json wants as JSON ---- */

/* what argp writes to stderr while it parses */
static struct {
	FILE *stderr_was; /* NULL: nothing is captured */
	char *text;
	size_t size;
	const struct argp *argp; /* what is parsed */
} usage;

static void try_options(struct bl_nearest *near, const struct argp *argp)
{
	const struct argp_option *o = argp->options;
	const struct argp_child *c = argp->children;

	for (; o && (o->name || o->key || o->doc || o->group); o++)
		if (o->name && !(o->flags & (OPTION_DOC | OPTION_HIDDEN)))
			bl_nearest_try(near, o->name);
	for (; c && c->argp; c++)
		try_options(near, c->argp);
}

/* Returns the option that was meant by the one that getopt(3) does not know, or NULL. */
static const char *meant_option(const char *text)
{
	static char word[64];
	struct bl_nearest near = { .word = word };
	const char *at = strstr(text, "unrecognized option '--");

	if (!at)
		return NULL;
	at += strlen("unrecognized option '--");
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, "'=\n"), at);
	try_options(&near, usage.argp);
	return near.best;
}

/*
 * Ends the capture and prints its text. Also called at exit, because argp ends the process after an
 * error. The first line of the text is "barline show nodes: unrecognized option '--x'"; the lines
 * after it only name --help.
 */
static void usage_end(void)
{
	const char *what, *meant, *rest;
	int first;

	if (!usage.stderr_was)
		return;
	fclose(stderr);
	stderr = usage.stderr_was;
	usage.stderr_was = NULL;
	what = strstr(usage.text, ": ");
	meant = meant_option(usage.text);
	first = (int)strcspn(usage.text, "\n");
	rest = usage.text + first;
	if (cli.json && what)
		cli_usage("%.*s%s%s%s", first - (int)(what + 2 - usage.text), what + 2,
			  meant ? "; did you mean --" : "", meant ? meant : "", meant ? "?" : "");
	else if (meant)
		fprintf(stderr, "%.*s; did you mean --%s?%s", first, usage.text, meant, rest);
	else
		fwrite(usage.text, 1, usage.size, stderr);
	free(usage.text);
	usage.text = NULL;
}

void (*cmd_inspect)(const struct argp *argp);

void cmd_parse_words(const struct argp *argp, int argc, char **argv, unsigned int flags,
		     void *input)
{
	static bool first = true;
	FILE *f;

	if (cmd_inspect)
		cmd_inspect(argp);
	f = open_memstream(&usage.text, &usage.size);
	if (first)
		atexit(usage_end);
	first = false;
	usage.argp = argp;
	if (f) { /* argp writes to the value that stderr has when it begins */
		usage.stderr_was = stderr;
		stderr = f;
	}
	argp_parse(argp, argc, argv, flags, NULL, input);
	usage_end();
}

int (*cmd_enter_named)(const char *netns);

void cmd_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	static bool entered; /* `host up` and `switch up` parse twice */
	struct bl_err err;
	int old, named;

	cmd_parse_words(argp, argc, argv, 0, input);
	if (!cli.netns || entered)
		return;
	named = cmd_enter_named ? cmd_enter_named(cli.netns) : -1;
	if (named > 0)
		exit(1);
	if (named && bl_netns_enter(cli.netns, &old, &err))
		exit(cli_fail("%s", err.text));
	entered = true;
}

int cmd_skip_flags(int argc, char **argv)
{
	static const char *const flags[] = { "-j", "--json", "-v", "--verbose" };
	int at, i;

	for (at = 1; at < argc; at++) {
		for (i = 0; i < 4 && strcmp(argv[at], flags[i]); i++)
			;
		if (i == 4)
			break;
	}
	return at;
}

int cli_cpus(const char *s, int *cpus, int max)
{
	int n = 0;

	while (*s) {
		char *end;
		long a = strtol(s, &end, 10), b = a;

		if (end == s || a < 0)
			return -1;
		if (*end == '-') {
			s = end + 1;
			b = strtol(s, &end, 10);
			if (end == s || b < a)
				return -1;
		}
		for (; a <= b; a++) {
			if (n == max || a >= BL_SW_CPUS_MAX)
				return -1;
			cpus[n++] = (int)a;
		}
		if (*end == ',')
			end++;
		else if (*end)
			return -1;
		s = end;
	}
	return n;
}
