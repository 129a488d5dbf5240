/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline completion: a script that completes barline's commands and options in a shell.
 *
 * Commands come from the table in main.c. The options of admission and their values come from the
 * table in loader/admission/options.c; all others the script asks `barline COMMAND --help` for, so
 * it cannot differ from what the command takes.
 *
 * Example: source <(barline completion bash); then `barline admission set --all<TAB>` makes
 * --allocator of it, and the next <TAB> offers two-counter, joint and bitmap.
 */
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/util/args.h"
#include "loader/admission/options.h"

/* Prints the names of the commands. Set by main.c, whose table this file must not include. */
static void (*print_commands)(FILE *f);

void completion_commands(void (*print_names)(FILE *f))
{
	print_commands = print_names;
}

static void put_commands(void)
{
	puts("	local commands=\"");
	print_commands(stdout);
	puts("\"");
}

/* Prints the admission options of `admission set`, or those that commands take at start. */
static void put_flags(const char *variable, bool set)
{
	unsigned int k;

	printf("	local %s=\"", variable);
	for (k = 0; k < BL_AO_COUNT; k++) {
		const char *flag = set ? bl_option(k)->set : bl_option(k)->start;

		if (flag && *flag)
			printf(" --%s", flag);
	}
	puts("\"");
}

static void put_names(const struct bl_option *o)
{
	unsigned int k;

	for (k = 0; k <= o->greatest; k++)
		printf("%s%s", k ? " " : "", o->names[k]);
}

/* Prints the values that may follow an option. */
static void put_values(void)
{
	unsigned int k;

	puts("	case $prev in");
	for (k = 0; k < BL_AO_COUNT; k++) {
		const struct bl_option *o = bl_option(k);
		const char *flag = o->set && *o->set ? o->set : o->start;

		if (o->kind != BL_OPTION_NAME || !flag)
			continue;
		printf("	--%s) words=\"", flag);
		put_names(o);
		puts("\" ;;");
	}
	/* options that take no value at start */
	for (k = 0; k < BL_AO_COUNT; k++)
		if (bl_option(k)->kind == BL_OPTION_TRUTH && bl_option(k)->set)
			printf("	--%s) [[ $command == admission\\ set ]] && words=\"yes "
			       "no\" ;;\n",
			       bl_option(k)->set);
	puts("	--config | --fastpass | --out) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;");
	puts("	esac");
}

static void put_script(void)
{
	puts("_barline()\n{");
	puts("	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words= w");
	puts("	local -a said=()");
	put_commands();
	put_flags("set_flags", true);
	put_flags("start_flags", false);
	puts("	for w in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do");
	puts("		[[ $w == -* ]] || said+=(\"$w\")");
	puts("	done");
	puts("	local command=\"${said[*]:0:2}\"");
	put_values();
	puts("	if [[ -z $words && $cur == -* ]]; then");
	puts("		case $command in");
	puts("		admission\\ set) words=$set_flags ;;");
	puts("		switch\\ up | host\\ up | lab\\ up | lab\\ run) words=$start_flags ;;");
	puts("		esac");
	puts("		words+=\" $(barline ${said[@]:0:2} --help 2> /dev/null |"
	     " grep -oE -- '--[a-z][a-z0-9-]*' | sort -u)\"");
	puts("	elif [[ -z $words && $command == admission\\ set ]]; then");
	fputs("		words=\"", stdout);
	put_names(bl_option(BL_AO_POLICY));
	puts("\"");
	puts("	elif [[ -z $words && ${#said[@]} -eq 0 ]]; then");
	puts("		words=$(cut -d ' ' -f 1 <<< \"$commands\" | sort -u)");
	puts("	elif [[ -z $words && ${#said[@]} -eq 1 ]]; then");
	puts("		words=$(sed -n \"s/^${said[0]} //p\" <<< \"$commands\")");
	puts("	fi");
	puts("	COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))");
	puts("}\ncomplete -F _barline barline");
}

static error_t parse_completion(int key, char *arg, struct argp_state *state)
{
	const char **shell = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (strcmp(arg, "bash") && strcmp(arg, "zsh"))
			argp_error(state, "shell \"%s\": bash or zsh", arg);
		*shell = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "for which shell? bash or zsh");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

int cmd_completion(int argc, char **argv)
{
	static const struct argp argp = { .parser = parse_completion,
					  .args_doc = "bash|zsh",
					  .children = cmd_globals,
					  .doc = "barline completion - a script that completes "
						 "barline's commands and options\vIn bash: source "
						 "<(barline completion bash)" };
	const char *shell = "";

	cmd_parse(&argp, argc, argv, &shell);
	if (!strcmp(shell, "zsh"))
		puts("autoload -U +X bashcompinit && bashcompinit");
	put_script();
	return 0;
}
