// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What may follow an option: the names of the tables that it is read by (settings, options of
 * admission, reasons, opcodes, events, policies), the words that its help names (a|b), or something
 * of the machine that the word for its value stands for (FILE, IFNAME).
 */
#include <ctype.h>
#include <string.h>

#include "base/event.h"
#include "cli/completion/table.h"
#include "loader/admission/options.h"
#include "loader/settings.h"
#include "maps/hold_abi.h"
#include "maps/reasons_abi.h"
#include "maps/wire_abi.h"

/* words for values, and of arguments, and what they stand for */
static const struct {
	const char *word;
	enum comp_kind kind;
} stands_for[] = { { "FILE", COMP_FILE },           { "DIR", COMP_DIR },
		   { "FOLDER", COMP_DIR },          { "IFNAME", COMP_INTERFACE },
		   { "INTERFACE", COMP_INTERFACE }, { "NIC", COMP_INTERFACE },
		   { "PORT", COMP_NONE },           { "NETNS", COMP_NETNS },
		   { "COMMAND", COMP_COMMAND } };

#define REASON_NAME(sym, name, kind, text)  name " "
#define OPCODE_NAME(sym, number, name, ...) name " "
#define EVENT_NAME(sym, name, fields, text) name " "
#define POLICY_NAME(sym, name)              name " "

static const struct {
	const char *name, *words;
} shared[] = { { "reasons", BL_REASONS(REASON_NAME) },
	       { "opcodes", BL_OPCODES(OPCODE_NAME) "other" },
	       { "events", BL_EVENTS(EVENT_NAME) } };

const char *comp_shared_words(size_t k, const char **name)
{
	if (k >= sizeof(shared) / sizeof(shared[0]))
		return NULL;
	*name = shared[k].name;
	return shared[k].words;
}

/* Options whose values are names of a table; @command NULL: of all commands. */
static const struct {
	const char *command, *option;
	enum comp_kind kind;
	const char *words; /* or the name of shared ones */
	bool list;
} known[] = {
	{ NULL, "reason", COMP_WORDS, "reasons", false },
	{ "capture", "opcode", COMP_WORDS, "opcodes", false },
	{ "events", "event", COMP_WORDS, "events", false },
	{ NULL, "node", COMP_NODE, "", false },
	{ "pki issue", "role", COMP_WORDS, "node controller etcd", false },
	{ "wait", "for", COMP_WORDS, "ready clock neighbour controller endpoint= gone", false },
	{ NULL, "user", COMP_USER, "", false },
	{ NULL, "lab", COMP_LAB, "", false },
	{ NULL, "transport", COMP_WORDS, "tcp udp", true },
	{ "lab run", "policy", COMP_WORDS, BL_POLICIES(POLICY_NAME), true },
};

/* Arguments of commands whose help has only a word for them. */
static const struct {
	const char *command, *word;
	enum comp_kind kind;
} args[] = { { "show", "PORT", COMP_INTERFACE },
	     { "top", "NODE", COMP_NODE },
	     { "lab down", "NAME", COMP_LAB },
	     { "lab exec", "NAME", COMP_LAB },
	     { "lab exec", "COMMAND", COMP_NONE } };

/* Whether @command is @of, or one of the group @of. */
static bool is_command(const char *command, const char *of)
{
	size_t n = strlen(of);

	return !strncmp(command, of, n) && (!command[n] || command[n] == ' ');
}

static void add_word(struct comp_value *v, const char *word, size_t len)
{
	size_t n = strlen(v->words);

	v->kind = COMP_WORDS;
	snprintf(v->words + n, sizeof(v->words) - n, "%s%.*s", n ? " " : "", (int)len, word);
}

static void add_names(struct comp_value *v, const char *const *names, size_t n)
{
	size_t k;

	for (k = 0; k < n; k++)
		if (names[k])
			add_word(v, names[k], strlen(names[k]));
}

/* "in|out": alternatives in small letters. Returns false if it is none. */
static bool add_alternatives(struct comp_value *v, const char *text, size_t len)
{
	const char *end = text + len, *word = text, *c;
	bool several = false;

	for (c = text; c < end; c++) {
		if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '|' &&
		    *c != '-')
			return false;
		several |= *c == '|';
	}
	if (!several)
		return false;
	for (c = text; c <= end; c++)
		if (c == end || *c == '|') {
			add_word(v, word, (size_t)(c - word));
			word = c + 1;
		}
	return true;
}

/* What the words in capitals at the beginning of @text stand for: "IFNAME[@CPU]" is an IFNAME. */
static enum comp_kind kind_of(const char *text)
{
	size_t k, n;

	for (k = 0; k < sizeof(stands_for) / sizeof(stands_for[0]); k++) {
		n = strlen(stands_for[k].word);
		if (!strncmp(text, stands_for[k].word, n) && !isupper((unsigned char)text[n]))
			return stands_for[k].kind;
	}
	return COMP_NONE;
}

/* The values of a setting, or of an option of admission, with this flag. */
static bool add_setting(const char *command, const char *flag, struct comp_value *v)
{
	bool set = is_command(command, "admission set");
	unsigned int k;

	for (k = 0; k < BL_S_COUNT && !set; k++) {
		const struct bl_setting *s = bl_setting(k);

		if (s->flag && !strcmp(s->flag, flag) && s->kind == BL_SETTING_NAME && !s->bare)
			add_names(v, s->names, s->count);
	}
	for (k = 0; k < BL_AO_COUNT && v->kind == COMP_NONE; k++) {
		const struct bl_option *o = bl_option(k);
		const char *name = set ? o->set : o->start;

		if (!name || strcmp(name, flag) != 0)
			continue;
		if (o->kind == BL_OPTION_NAME)
			add_names(v, o->names, (size_t)o->greatest + 1);
		else if (o->kind == BL_OPTION_TRUTH)
			add_names(v, (const char *const[]){ "yes", "no" }, 2);
	}
	return v->kind != COMP_NONE;
}

void comp_value_of(const char *command, const char *option, const char *arg, struct comp_value *v)
{
	size_t k;

	memset(v, 0, sizeof(*v));
	/* NAME[,NAME...] */
	v->list = strstr(arg, "[,") != NULL;
	for (k = 0; k < sizeof(known) / sizeof(known[0]); k++)
		if (!strcmp(option, known[k].option) &&
		    (!known[k].command || is_command(command, known[k].command))) {
			v->kind = known[k].kind;
			v->list |= known[k].list;
			snprintf(v->words, sizeof(v->words), "%s", known[k].words);
			for (k = 0; k < sizeof(shared) / sizeof(shared[0]); k++)
				if (!strcmp(v->words, shared[k].name))
					v->shared = shared[k].name;
			return;
		}
	if (!add_setting(command, option, v) && !add_alternatives(v, arg, strlen(arg)))
		v->kind = kind_of(arg);
}

void comp_value_of_args(const char *command, const char *args_doc, struct comp_value *v)
{
	const char *s = args_doc ? args_doc : "", *word;
	size_t len, k;

	memset(v, 0, sizeof(*v));
	while (*s) {
		s += strspn(s, " \n[].");
		len = strcspn(s, " \n[].");
		word = s;
		s += len;
		if (!len || !strncmp(word, "--", 2))
			continue;
		if (add_alternatives(v, word, len) || v->kind != COMP_NONE)
			continue;
		if (islower((unsigned char)*word)) { /* a word as it is */
			add_word(v, word, len);
			continue;
		}
		v->kind = kind_of(word);
		for (k = 0; k < sizeof(args) / sizeof(args[0]); k++)
			if (is_command(command, args[k].command) && strlen(args[k].word) == len &&
			    !strncmp(args[k].word, word, len))
				v->kind = args[k].kind;
	}
}
