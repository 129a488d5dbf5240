/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a shell completes: the options of all commands, taken from their argp tables, and what may
 * follow an option or a command. A script is printed from it when barline is built, so nothing is
 * run at completion time.
 */
#ifndef BARLINE_CLI_COMPLETION_TABLE_H
#define BARLINE_CLI_COMPLETION_TABLE_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum comp_kind {
	COMP_NONE,
	COMP_WORDS, /* those of @words */
	COMP_FILE,
	COMP_DIR,
	COMP_INTERFACE,
	COMP_NETNS,
	COMP_NODE,
	COMP_LAB,
	COMP_USER,
	COMP_COMMAND /* of barline */
};

/** struct comp_value - what may stand in a place. */
struct comp_value {
	enum comp_kind kind;
	bool list;          /* several, with commas between them */
	const char *shared; /* name of comp_shared_words() with the words; NULL: they are here */
	char words[1024];
};

/** comp_shared_words - long lists of words that many commands take: number @k, NULL: no more. */
const char *comp_shared_words(size_t k, const char **name);

/** struct comp_option - an option of a command. */
struct comp_option {
	char name[48]; /* "": it has none but @letter */
	char letter;   /* 0: none */
	char doc[512];
	char arg[64]; /* what its value is called; "": it takes none */
	bool many;    /* it may be repeated */
	struct comp_value value;
};

#define COMP_OPTIONS_MAX 160

/** struct comp_table - a command, while its part of the script is printed. */
struct comp_table {
	const char *name; /* "show ports" */
	struct comp_option option[COMP_OPTIONS_MAX];
	size_t n;
	struct comp_value args; /* what may stand where no option does */
};

/** comp_collect - fills in @t from an argp and its children. */
void comp_collect(struct comp_table *t, const char *name, const struct argp *argp);

/** comp_value_of - what may follow an option with this name and this word for its value. */
void comp_value_of(const char *command, const char *option, const char *arg, struct comp_value *v);

/** comp_value_of_args - what may stand where a command's help says "[NAME] a|b ...". */
void comp_value_of_args(const char *command, const char *args_doc, struct comp_value *v);

/** struct comp_shell - how the script of a shell is printed. */
struct comp_shell {
	void (*head)(FILE *f, const char *program, const char *const *names, size_t n);
	void (*command)(FILE *f, const struct comp_table *t);
	void (*tail)(FILE *f, const char *program);
};

extern const struct comp_shell comp_bash, comp_zsh;

#endif
