// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The script for zsh: for each command a call of _arguments, which shows what each option does. The
 * words of the command are cut off before, so that _arguments sees its options and arguments only.
 */
#include <string.h>

#include "base/log.h"
#include "cli/completion/table.h"
#include "maps/meta_abi.h"

static void head(FILE *f, const char *program, const char *const *names, size_t n)
{
	const char *words, *name;
	size_t k;

	fprintf(f,
		"#compdef %s\n"
		"# %s's completion for zsh. Made from the tables of its options when it was "
		"built:\n"
		"# `barline completion zsh`.\n"
		"typeset -ga _%s_commands=(\n",
		program, program, program);
	for (k = 0; k < n; k++)
		fprintf(f, "\t'%s'\n", names[k]);
	fputs(")\n", f);
	for (k = 0; n && (words = comp_shared_words(k, &name)); k++)
		fprintf(f, "typeset -ga _%s_%s=(%s)\n", program, name, words);
	fprintf(f, "_%s_table() {\n\tcase $1 in\n", program);
}

/* A text within single quotes; of a description, also what _arguments gives a meaning to. */
static void put_text(FILE *f, const char *s, const char *special)
{
	for (; *s; s++) {
		if (*s == '\'') {
			fputs("'\\''", f);
			continue;
		}
		if (strchr(special, *s))
			fputc('\\', f);
		fputc(*s == '\n' ? ' ' : *s, f);
	}
}

/* What completes a value, as _arguments wants it; one with a blank in front is called as it is. */
static void put_action(FILE *f, const char *program, const struct comp_value *v)
{
	switch (v->kind) {
	case COMP_NONE:
		fputs(" ", f);
		return;
	case COMP_WORDS:
		if (v->shared) {
			fprintf(f, " _%s_%s $_%s_%s", program, v->list ? "list" : "one", program,
				v->shared);
			return;
		}
		if (v->list)
			fprintf(f, " _%s_list ", program);
		else
			fputc('(', f);
		put_text(f, v->words, ":");
		if (!v->list)
			fputc(')', f);
		return;
	case COMP_FILE:
		fputs("_files", f);
		return;
	case COMP_DIR:
		fputs("_files -/", f);
		return;
	case COMP_INTERFACE:
		fprintf(f, " _%s_dir /sys/class/net", program);
		return;
	case COMP_NETNS:
		fprintf(f, " _%s_dir /run/netns", program);
		return;
	case COMP_LAB:
		fprintf(f, " _%s_dir " BL_RUN_DIR "/labs", program);
		return;
	case COMP_NODE:
		fprintf(f, " _%s_nodes", program);
		return;
	case COMP_USER:
		fputs("_users", f);
		return;
	case COMP_COMMAND:
		fprintf(f, " _%s_next", program);
		return;
	}
}

/* '(-i --interval)--interval=[time between two readings]:SECONDS: ' */
static void put_option(FILE *f, const char *program, const struct comp_option *o, bool is_long)
{
	fputs("\t\t\t'", f);
	if (o->many)
		fputc('*', f);
	else if (*o->name && o->letter)
		fprintf(f, "(-%c --%s)", o->letter, o->name);
	if (is_long)
		fprintf(f, "--%s%s", o->name, *o->arg ? "=" : "");
	else
		fprintf(f, "-%c%s", o->letter, *o->arg ? "+" : "");
	fputc('[', f);
	put_text(f, o->doc, "[]:\\");
	fputc(']', f);
	if (*o->arg) {
		fputc(':', f);
		put_text(f, o->arg, "[]:\\");
		fputc(':', f);
		put_action(f, program, &o->value);
	}
	fputs("'\n", f);
}

static const char *current_program;

static void command(FILE *f, const struct comp_table *t)
{
	size_t k;

	fprintf(f, "\t'%s') specs=(\n", t->name);
	for (k = 0; k < t->n; k++) {
		if (t->option[k].letter)
			put_option(f, current_program, &t->option[k], false);
		if (*t->option[k].name)
			put_option(f, current_program, &t->option[k], true);
	}
	if (t->args.kind != COMP_NONE) {
		fputs("\t\t\t'*:argument:", f);
		put_action(f, current_program, &t->args);
		fputs("'\n", f);
	}
	fputs("\t\t) ;;\n", f);
}

static void begin(FILE *f, const char *program, const char *const *names, size_t n)
{
	current_program = program;
	head(f, program, names, n);
}

static void tail(FILE *f, const char *program)
{
	fputs("\t*) return 1 ;;\n\tesac\n}\n", f);
	/* helpers, which _arguments calls */
	fprintf(f,
		"_%s_list() {\n"
		"\tcompset -P '*,'\n"
		"\tcompadd -q -S , -- \"$@\"\n"
		"}\n"
		"_%s_one() {\n"
		"\tcompadd -- \"$@\"\n"
		"}\n"
		"_%s_dir() {\n"
		"\tlocal -a names=($1/*(N:t))\n"
		"\tcompadd -a names\n"
		"}\n"
		"_%s_nodes() {\n"
		"\tlocal -a names=(${(fu)\"$(sed -n 's/^name: *\"\\{0,1\\}\\([^\"]*\\)\"\\{0,1\\}$/"
		"\\1/p' " BL_RUN_DIR "/*-config.yaml(N) < /dev/null)\"})\n"
		"\tcompadd -a names\n"
		"}\n",
		program, program, program, program);
	fprintf(f,
		"# Offers the words with which a command can go on that begins with $said.\n"
		"_%s_next() {\n"
		"\tlocal line before=\"${said:+$said }\"\n"
		"\tlocal -aU next\n"
		"\tfor line in $_%s_commands; do\n"
		"\t\t[[ $line == $before* ]] && next+=(${${line#$before}%%%% *})\n"
		"\tdone\n"
		"\tcompadd -a next\n"
		"}\n",
		program, program);
	fprintf(f,
		"_%s() {\n"
		"\tlocal -a specs=() all=()\n"
		"\tlocal said= w\n"
		"\tinteger i n at\n"
		"\tlocal -a ends=()\n"
		"\tfor ((i = 2; i < CURRENT; i++)); do\n"
		"\t\tcase $words[i] in\n"
		"\t\t-n | --netns | -b | --batch) ((i++)) ;;\n"
		"\t\t--) break ;;\n"
		"\t\t-*) ;;\n"
		"\t\t*) all+=($words[i]) ends+=($i) ;;\n"
		"\t\tesac\n"
		"\tdone\n"
		"\t# the command is what was said up to word n, and the rest are its arguments\n"
		"\tfor ((n = $#all < 3 ? $#all : 3; n >= 0; n--)); do\n"
		"\t\t_%s_table \"${(j: :)all[1,n]}\" && break\n"
		"\tdone\n"
		"\tsaid=\"${(j: :)all}\"\n"
		"\t[[ $all[1] == help ]] && said=\"${(j: :)all[2,-1]}\"\n"
		"\tif [[ -n ${_%s_commands[(r)${said:+$said }*]} && $PREFIX != -* ]]; then\n"
		"\t\t_%s_next\n"
		"\t\treturn\n"
		"\tfi\n"
		"\tif ((n > 0)); then\n"
		"\t\tat=$ends[n]\n"
		"\t\twords=($words[1] $words[at+1,-1])\n"
		"\t\t((CURRENT -= at - 1))\n"
		"\tfi\n"
		"\t_arguments -s : $specs\n"
		"}\n"
		"if [[ $funcstack[1] == _%s ]]; then\n"
		"\t_%s \"$@\"\n"
		"else\n"
		"\tcompdef _%s %s\n"
		"fi\n",
		program, program, program, program, program, program, program, program);
}

const struct comp_shell comp_zsh = { begin, command, tail };
