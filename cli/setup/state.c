// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See state.h. */
#include "cli/setup/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL_FORWARDING "net/ipv6/conf/all/forwarding"
#define V6_CONF        "net/ipv6/conf/"
#define FORWARDING     "/forwarding"

static const char *const kind_names[SETUP_KINDS] = {
	[SETUP_LINK] = "link",       [SETUP_MTU_MAX] = "mtu_max",
	[SETUP_LOWER] = "lower",     [SETUP_UNFIT] = "unfit",
	[SETUP_DOUBT] = "doubt",     [SETUP_OTHER] = "other",
	[SETUP_UP] = "up",           [SETUP_MTU] = "mtu",
	[SETUP_BRIDGE] = "bridge",   [SETUP_MASTER] = "master",
	[SETUP_ADDRESS] = "address", [SETUP_ROUTE] = "route",
	[SETUP_SYSCTL] = "sysctl",   [SETUP_NEIGHBOUR] = "neighbour",
	[SETUP_DIR] = "dir",         [SETUP_FILE] = "file",
};

const char *setup_kind_name(enum setup_kind kind)
{
	return kind_names[kind];
}

enum setup_kind setup_kind_of(const char *name)
{
	unsigned int k;

	for (k = 0; k < SETUP_KINDS && strcmp(kind_names[k], name); k++)
		;
	return (enum setup_kind)k;
}

bool setup_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool setup_is_kept(const struct setup_step *s)
{
	return setup_same(s->before, s->after);
}

/* ---- facts ---- */

static size_t find_fact(const struct setup_facts *f, enum setup_kind kind, const char *dev,
			const char *arg)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->v[i].kind == kind && !strcmp(f->v[i].dev, dev) && !strcmp(f->v[i].arg, arg))
			break;
	return i;
}

const char *setup_get(const struct setup_facts *f, enum setup_kind kind, const char *dev,
		      const char *arg)
{
	size_t i = find_fact(f, kind, dev, arg);

	return i < f->n ? f->v[i].value : NULL;
}

static void drop_at(struct setup_facts *f, size_t i)
{
	free(f->v[i].value);
	f->v[i] = f->v[--f->n];
}

static void add_fact(struct setup_facts *f, enum setup_kind kind, const char *dev, const char *arg,
		     char *value)
{
	struct setup_fact *v = f->v;

	if (f->n == f->room) {
		f->room = f->room ? 2 * f->room : 64;
		v = realloc(f->v, f->room * sizeof(*v));
		if (!v) {
			f->room = f->n;
			f->failed = true;
			free(value);
			return;
		}
		f->v = v;
	}
	v += f->n++;
	v->kind = kind;
	snprintf(v->dev, sizeof(v->dev), "%s", dev);
	snprintf(v->arg, sizeof(v->arg), "%s", arg);
	v->value = value;
}

void setup_add(struct setup_facts *f, enum setup_kind kind, const char *dev, const char *arg,
	       const char *value)
{
	char *copy = strdup(value);

	if (copy)
		add_fact(f, kind, dev, arg, copy);
	else
		f->failed = true;
}

static void set_one(struct setup_facts *f, enum setup_kind kind, const char *dev, const char *arg,
		    const char *value)
{
	size_t i = find_fact(f, kind, dev, arg);
	char *copy = value ? strdup(value) : NULL;

	if (value && !copy) {
		f->failed = true;
	} else if (!value) {
		if (i < f->n)
			drop_at(f, i);
	} else if (i < f->n) {
		free(f->v[i].value);
		f->v[i].value = copy;
	} else {
		add_fact(f, kind, dev, arg, copy);
	}
}

/* Removes what goes with a bridge. */
static void drop_bridge(struct setup_facts *f, const char *dev)
{
	size_t i = 0;

	while (i < f->n)
		if (!strcmp(f->v[i].dev, dev) ||
		    (f->v[i].kind == SETUP_MASTER && !strcmp(f->v[i].value, dev)))
			drop_at(f, i);
		else
			i++;
}

static bool is_v6_forwarding(const struct setup_fact *f)
{
	size_t n = strlen(f->arg), tail = sizeof(FORWARDING) - 1;

	return f->kind == SETUP_SYSCTL && !strncmp(f->arg, V6_CONF, sizeof(V6_CONF) - 1) &&
	       n > tail && !strcmp(f->arg + n - tail, FORWARDING);
}

void setup_set(struct setup_facts *f, enum setup_kind kind, const char *dev, const char *arg,
	       const char *value)
{
	size_t i;

	set_one(f, kind, dev, arg, value);
	if (kind == SETUP_BRIDGE && value) {
		set_one(f, SETUP_LINK, dev, "", "bridge");
		set_one(f, SETUP_UP, dev, "", "down");
	} else if (kind == SETUP_BRIDGE) {
		drop_bridge(f, dev);
	} else if (kind == SETUP_SYSCTL && value && !strcmp(arg, ALL_FORWARDING)) {
		for (i = 0; i < f->n; i++)
			if (is_v6_forwarding(&f->v[i]))
				set_one(f, SETUP_SYSCTL, "", f->v[i].arg, value);
	}
}

void setup_facts_copy(struct setup_facts *to, const struct setup_facts *from)
{
	size_t i;

	*to = (struct setup_facts){ .failed = from->failed };
	for (i = 0; i < from->n; i++) {
		char *value = strdup(from->v[i].value);

		if (value)
			add_fact(to, from->v[i].kind, from->v[i].dev, from->v[i].arg, value);
		else
			to->failed = true;
	}
}

void setup_facts_free(struct setup_facts *f)
{
	while (f->n)
		drop_at(f, f->n - 1);
	free(f->v);
	*f = (struct setup_facts){ 0 };
}

/* ---- steps ---- */

void setup_push(struct setup_steps *s, enum setup_kind kind, const char *dev, const char *arg,
		const char *before, const char *after)
{
	struct setup_step *v = s->v;

	if (s->n == s->room) {
		v = realloc(s->v, (s->room ? 2 * s->room : 32) * sizeof(*v));
		if (!v) {
			s->failed = true;
			return;
		}
		s->room = s->room ? 2 * s->room : 32;
		s->v = v;
	}
	v += s->n++;
	*v = (struct setup_step){ .kind = kind };
	snprintf(v->dev, sizeof(v->dev), "%s", dev);
	snprintf(v->arg, sizeof(v->arg), "%s", arg);
	v->before = before ? strdup(before) : NULL;
	v->after = after ? strdup(after) : NULL;
	if ((before && !v->before) || (after && !v->after))
		s->failed = true;
}

bool setup_find(const struct setup_steps *s, enum setup_kind kind, const char *dev, const char *arg)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->v[i].kind == kind && !strcmp(s->v[i].dev, dev) && !strcmp(s->v[i].arg, arg))
			return true;
	return false;
}

void setup_steps_free(struct setup_steps *s)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		free(s->v[i].before);
		free(s->v[i].after);
	}
	free(s->v);
	*s = (struct setup_steps){ 0 };
}

/* ---- undo ---- */

/* An address of @dev that no step names, so that somebody else added it; NULL: none. */
static const char *foreign_address(const struct setup_facts *f, const struct setup_steps *s,
				   const char *dev)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->v[i].kind == SETUP_ADDRESS && !strcmp(f->v[i].dev, dev) &&
		    !setup_find(s, SETUP_ADDRESS, dev, f->v[i].arg))
			return f->v[i].arg;
	return NULL;
}

static const char *port_of(const struct setup_facts *f, const char *bridge)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->v[i].kind == SETUP_MASTER && !strcmp(f->v[i].value, bridge))
			return f->v[i].dev;
	return NULL;
}

/*
 * A device on top of @dev, which would vanish with it; NULL: none.
 * @up: one that is up, which would go down with it
 */
static const char *device_on(const struct setup_facts *f, const char *dev, bool up)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->v[i].kind == SETUP_LOWER && !strcmp(f->v[i].value, dev) &&
		    (!up || setup_same(setup_get(f, SETUP_UP, f->v[i].dev, ""), "up")))
			return f->v[i].dev;
	return NULL;
}

/* Who uses what the step made, so that it has to stay. Returns false if nobody does. */
static bool is_used(const struct setup_facts *f, const struct setup_steps *s,
		    const struct setup_step *step, char *why, size_t size)
{
	const char *master = setup_get(f, SETUP_MASTER, step->dev, "");
	const char *by;

	if (step->kind != SETUP_BRIDGE && (step->kind != SETUP_UP || strcmp(step->after, "up")))
		return false;
	by = foreign_address(f, s, step->dev);
	if (by) {
		snprintf(why, size, "%s has the address %s, which setup did not add", step->dev,
			 by);
		return true;
	}
	by = step->kind == SETUP_BRIDGE ? port_of(f, step->dev) : NULL;
	if (by) {
		snprintf(why, size, "%s is a port of %s", by, step->dev);
		return true;
	}
	by = device_on(f, step->dev, step->kind == SETUP_UP);
	if (by) {
		snprintf(why, size, "%s, which setup did not make, is on top of %s", by, step->dev);
		return true;
	}
	if (master && !setup_find(s, SETUP_MASTER, step->dev, "")) {
		snprintf(why, size, "%s is a port of %s", step->dev, master);
		return true;
	}
	return false;
}

enum setup_undo setup_undo_judge(const struct setup_facts *f, const struct setup_steps *s, size_t k,
				 char *why, size_t size)
{
	const struct setup_step *step = &s->v[k];
	const char *now = setup_get(f, step->kind, step->dev, step->arg);

	*why = '\0';
	if (setup_is_kept(step) ? setup_same(now, step->after) || step->kind != SETUP_SYSCTL
				: setup_same(now, step->before))
		return SETUP_UNDO_NOTHING;
	if (setup_is_kept(step)) /* a sysctl that taking back another one has changed */
		return SETUP_UNDO_DO;
	if (!setup_same(now, step->after)) {
		if (step->kind == SETUP_FILE)
			snprintf(why, size, "somebody has %s it since",
				 now ? "changed" : "removed");
		else
			snprintf(why, size, "it is %s now, neither as setup made it nor as before",
				 now ? now : "absent");
		return SETUP_UNDO_LEFT;
	}
	return is_used(f, s, step, why, size) ? SETUP_UNDO_LEFT : SETUP_UNDO_DO;
}
