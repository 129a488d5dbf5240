// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See table.h. */
#include "cli/completion/table.h"

#include <ctype.h>
#include <string.h>

static bool is_last(const struct argp_option *o)
{
	return !o->name && !o->key && !o->doc && !o->group;
}

static void copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

static void add(struct comp_table *t, const struct argp_option *o, const struct argp_option *real)
{
	struct comp_option *to = &t->option[t->n];
	size_t k;

	if ((o->flags | real->flags) & (OPTION_HIDDEN | OPTION_DOC) || t->n == COMP_OPTIONS_MAX)
		return;
	copy(to->name, sizeof(to->name), o->name);
	to->letter = isgraph((unsigned char)o->key) && o->key < 0x7f ? (char)o->key : 0;
	copy(to->doc, sizeof(to->doc), real->doc);
	copy(to->arg, sizeof(to->arg), real->arg);
	to->many = strstr(to->doc, "repeated") != NULL;
	if (*to->arg)
		comp_value_of(t->name, to->name, to->arg, &to->value);
	if (!*to->name && !to->letter)
		return;
	/* a command that has an option of its own hides that of a child with the same name */
	for (k = 0; k < t->n; k++)
		if (*to->name && !strcmp(t->option[k].name, to->name))
			return;
	t->n++;
}

static void add_all(struct comp_table *t, const struct argp *argp)
{
	const struct argp_option *o = argp->options, *real = o;
	const struct argp_child *c = argp->children;

	for (; o && !is_last(o); o++) {
		if (!o->name && !o->key)
			continue; /* the heading of a group */
		real = o->flags & OPTION_ALIAS ? real : o;
		add(t, o, real);
	}
	for (; c && c->argp; c++)
		add_all(t, c->argp);
}

void comp_collect(struct comp_table *t, const char *name, const struct argp *argp)
{
	static const struct argp_option own = { "help", '?', NULL, 0, "what the command does", 0 };

	memset(t, 0, sizeof(*t));
	t->name = name;
	add_all(t, argp);
	add(t, &own, &own);
	comp_value_of_args(name, argp->args_doc, &t->args);
}
