// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline completion: a script that completes barline's commands and options, or barlined's, in a
 * shell. It is made of the argp tables of the commands themselves (table.h), so it cannot differ
 * from what they take, and it runs nothing to find out. make and the packages install it.
 *
 * Example: source <(barline completion bash); then `barline admission set --all<TAB>` makes
 * --allocator of it, and the next <TAB> offers two-counter, joint and bitmap.
 */
#include <argp.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/completion/table.h"
#include "cli/util/args.h"
#include "loader/barlined_argp.h"

#define NAMES_MAX 160

/* Calls a function for each command. Set by main.c, whose table this file must not include. */
static cmd_each_fn each_command;

void completion_commands(cmd_each_fn each)
{
	each_command = each;
}

/* ---- the tables of commands ---- */

static struct {
	jmp_buf back;
	const char *name;
	struct comp_table *table;
} inspected;

/* Gets the argp that a command would parse its options with, and ends the command. */
static void inspect(const struct argp *argp)
{
	comp_collect(inspected.table, inspected.name, argp);
	longjmp(inspected.back, 1);
}

/** struct script - the script while it is printed. */
struct script {
	const struct comp_shell *shell;
	struct comp_table *table;
	char *name[NAMES_MAX + 1];
	size_t n;
	bool failed; /* a command has no table */
};

static void keep_name(void *ctx, const struct cmd_entry *c)
{
	struct script *s = ctx;

	if (*c->name && s->n < NAMES_MAX)
		s->name[s->n] = strdup(c->name); /* it is the caller's */
	s->n += s->name[s->n] != NULL;
}

/*
 * Runs a command up to where it parses its options. What it has allocated until then is lost, which
 * this process can bear.
 */
static void put_command(void *ctx, const struct cmd_entry *c)
{
	struct script *s = ctx;
	char title[] = "barline", word[32];
	char *argv[] = { title, word, NULL };

	snprintf(word, sizeof(word), "%s", c->word ? c->word : "");
	inspected.name = c->name;
	inspected.table = s->table;
	cmd_inspect = inspect;
	if (!setjmp(inspected.back)) {
		c->run(c->word ? 2 : 1, argv);
		cmd_inspect = NULL;
		s->failed = true;
		cli_fail("the command %s has no table of options", c->name);
		return;
	}
	cmd_inspect = NULL;
	s->shell->command(stdout, s->table);
}

static int put_barline(struct script *s)
{
	each_command(keep_name, s);
	s->shell->head(stdout, "barline", (const char *const *)s->name, s->n);
	each_command(put_command, s);
	s->shell->tail(stdout, "barline");
	return s->failed;
}

static int put_barlined(struct script *s)
{
	s->shell->head(stdout, "barlined", NULL, 0);
	comp_collect(s->table, "", &bl_barlined_argp);
	s->shell->command(stdout, s->table);
	s->shell->tail(stdout, "barlined");
	return 0;
}

/** struct completion_args - what the command line says. */
struct completion_args {
	const char *shell;
	bool daemon;
};

static error_t parse_completion(int key, char *arg, struct argp_state *state)
{
	struct completion_args *a = state->input;

	switch (key) {
	case 'd':
		a->daemon = true;
		return 0;
	case ARGP_KEY_ARG:
		if (strcmp(arg, "bash") != 0 && strcmp(arg, "zsh") != 0)
			argp_error(state, "shell \"%s\": bash or zsh", arg);
		a->shell = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "for which shell? bash or zsh");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

int cmd_completion(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "daemon", 'd', NULL, 0, "of the daemon barlined", 0 }, { 0 }
	};
	static const struct argp argp = { .options = options,
					  .parser = parse_completion,
					  .args_doc = "bash|zsh",
					  .children = cmd_globals,
					  .doc = "barline completion - a script that completes "
						 "barline's commands and options\vIn bash: source "
						 "<(barline completion bash)" };
	struct completion_args args = { .shell = "" };
	struct script s = { 0 };
	int rc;

	cmd_parse(&argp, argc, argv, &args);
	s.table = malloc(sizeof(*s.table));
	if (!s.table)
		return cli_fail("out of memory");
	s.shell = strcmp(args.shell, "zsh") ? &comp_bash : &comp_zsh;
	rc = args.daemon ? put_barlined(&s) : put_barline(&s);
	while (s.n)
		free(s.name[--s.n]);
	free(s.table);
	return rc;
}
