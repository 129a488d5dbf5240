// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The script for bash: a case for each command, and one function that offers what fits. */
#include <string.h>

#include "base/log.h"
#include "cli/completion/table.h"
#include "maps/meta_abi.h"

static const char *const kind_names[] = {
	[COMP_NONE] = "none",       [COMP_WORDS] = "words",   [COMP_FILE] = "file",
	[COMP_DIR] = "dir",         [COMP_INTERFACE] = "net", [COMP_NETNS] = "netns",
	[COMP_NODE] = "node",       [COMP_LAB] = "lab",       [COMP_USER] = "user",
	[COMP_COMMAND] = "command",
};

/* Functions and variables are named after the program: "_barline", "_barline_table". */
static const char scan[] = "\t# bash cuts --option=value at the =\n"
			   "\t[[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
			   "\t[[ $cur == = ]] && cur=\n"
			   "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
			   "\t\tw=${COMP_WORDS[i]}\n"
			   "\t\tcase $w in\n"
			   "\t\t-n | --netns | -b | --batch)\n"
			   "\t\t\t((i++))\n"
			   "\t\t\t[[ ${COMP_WORDS[i]} == = ]] && ((i++))\n"
			   "\t\t\t;;\n"
			   "\t\t--)\n"
			   "\t\t\tafter=$((COMP_CWORD - i))\n"
			   "\t\t\tbreak\n"
			   "\t\t\t;;\n"
			   "\t\t-*) ;;\n"
			   "\t\t*) said+=(\"$w\") ;;\n"
			   "\t\tesac\n"
			   "\tdone\n";

/* In between, the functions of the program are called. */
static const char *const choose[] = {
	"\tif [[ $after ]]; then # a command of the shell\n"
	"\t\tkind=file\n"
	"\t\t((after == 1)) && kind=words words=$(compgen -c -- \"$cur\")\n"
	"\telse\n"
	"\t\t# the command is what was said up to word n, and the rest are its arguments\n"
	"\t\tfor n in 3 2 1 0; do\n",
	"\t\tdone\n"
	"\t\tif [[ -z $value && $cur == -* ]]; then\n"
	"\t\t\tkind=words words=$options list=\n"
	"\t\telif [[ -z $value ]]; then\n"
	"\t\t\t[[ $kind == command ]] && said=(\"${said[@]:n}\")\n",
	"\t\t\t[[ $more ]] && kind=words words+=\" $more\"\n"
	"\t\tfi\n"
	"\tfi\n",
};

static const char offer[] = "\tcase $kind in\n"
			    "\tfile) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
			    "\tdir) mapfile -t COMPREPLY < <(compgen -d -- \"$cur\") ;;\n"
			    "\tuser) mapfile -t COMPREPLY < <(compgen -u -- \"$cur\") ;;\n"
			    "\tnet) words=$(ls /sys/class/net 2> /dev/null) ;;\n"
			    "\tnetns) words=$(ls /run/netns 2> /dev/null) ;;\n"
			    "\tlab) words=$(ls " BL_RUN_DIR "/labs 2> /dev/null) ;;\n"
			    "\tnode) words=$(sed -n 's/^name: "
			    "*\"\\{0,1\\}\\([^\"]*\\)\"\\{0,1\\}$/\\1/p' " BL_RUN_DIR
			    "/*-config.yaml 2> /dev/null | sort -u) ;;\n"
			    "\tesac\n"
			    "\tif [[ $kind == file || $kind == dir ]]; then\n"
			    "\t\tcompopt -o filenames 2> /dev/null\n"
			    "\telif [[ $kind != user ]]; then\n"
			    "\t\t[[ $list ]] && before=${cur%\"${cur##*,}\"}\n"
			    "\t\tmapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$words\" -- "
			    "\"${cur#\"$before\"}\")\n"
			    "\tfi\n";

static void head(FILE *f, const char *program, const char *const *names, size_t n)
{
	const char *words, *name;
	size_t k;

	fprintf(f,
		"# %s's completion for bash. Made from the tables of its options when it was "
		"built:\n# `barline completion bash`.\n",
		program);
	fprintf(f, "_%s_commands=\"", program);
	for (k = 0; k < n; k++)
		fprintf(f, "%s%s", k ? "\n" : "", names[k]);
	fputs("\"\n", f);
	for (k = 0; n && (words = comp_shared_words(k, &name)); k++)
		fprintf(f, "_%s_%s='%s'\n", program, name, words);
	fprintf(f,
		"# Sets options, and kind, words and list of what may follow $prev, or else of "
		"arguments.\n_%s_table()\n{\n\tcase $1 in\n",
		program);
}

/* "kind=words words='a b'" */
static void put_value(FILE *f, const struct comp_value *v)
{
	fprintf(f, "kind=%s", kind_names[v->kind]);
	if (v->shared)
		fprintf(f, " words=$_barline_%s", v->shared);
	else if (v->kind == COMP_WORDS)
		fprintf(f, " words='%s'", v->words);
	if (v->list)
		fputs(" list=1", f);
}

static void put_options(FILE *f, const struct comp_table *t)
{
	const char *gap = "";
	size_t k;

	fputs("\t\toptions='", f);
	for (k = 0; k < t->n; k++) {
		const struct comp_option *o = &t->option[k];

		if (*o->name)
			fprintf(f, "%s--%s", gap, o->name);
		else
			fprintf(f, "%s-%c", gap, o->letter);
		gap = " ";
	}
	fputs("'\n", f);
}

static void command(FILE *f, const struct comp_table *t)
{
	size_t k;

	fprintf(f, "\t'%s')\n", t->name);
	put_options(f, t);
	fputs("\t\tcase $prev in\n", f);
	for (k = 0; k < t->n; k++) {
		const struct comp_option *o = &t->option[k];

		if (!*o->arg)
			continue;
		fputs("\t\t", f);
		if (*o->name)
			fprintf(f, "--%s%s", o->name, o->letter ? " | " : "");
		if (o->letter)
			fprintf(f, "-%c", o->letter);
		fputs(") value=1 ", f);
		put_value(f, &o->value);
		fputs(" ;;\n", f);
	}
	fputs("\t\t*) ", f);
	put_value(f, &t->args);
	fputs(" ;;\n\t\tesac\n\t\t;;\n", f);
}

static void tail(FILE *f, const char *program)
{
	fputs("\t*) return 1 ;;\n\tesac\n}\n", f);
	fprintf(f,
		"_%s()\n{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
		"\tlocal options= kind=none words= list= value= before= more= w i n after=\n"
		"\tlocal -a said=()\n"
		"\tCOMPREPLY=()\n",
		program);
	fputs(scan, f);
	fputs(choose[0], f);
	fprintf(f, "\t\t\t_%s_table \"${said[*]:0:n}\" && break\n", program);
	fputs(choose[1], f);
	fprintf(f, "\t\t\tmore=$(_%s_next \"${said[@]}\")\n", program);
	fputs(choose[2], f);
	fputs(offer, f);
	fputs("}\n", f);
	fprintf(f,
		"# Prints the words with which a command can go on that begins with the "
		"arguments.\n"
		"_%s_next()\n{\n"
		"\tlocal line said=\"$*\"\n"
		"\twhile read -r line; do\n"
		"\t\tif [[ -z $said ]]; then\n"
		"\t\t\techo \"${line%%%% *}\"\n"
		"\t\telif [[ $line == \"$said \"* ]]; then\n"
		"\t\t\tline=${line#\"$said \"}\n"
		"\t\t\techo \"${line%%%% *}\"\n"
		"\t\tfi\n"
		"\tdone <<< \"$_%s_commands\" | sort -u\n"
		"}\n",
		program, program);
	fprintf(f, "complete -F _%s %s\n", program, program);
}

const struct comp_shell comp_bash = { head, command, tail };
