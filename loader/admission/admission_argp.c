// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The flags of admission, which barlined, `barline host|switch up` and the lab share. They derive
 * from the table in options.c. The input is a struct bl_admission_cfg.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loader/admission/admission_argp.h"
#include "loader/admission/options.h"
#include "loader/node_cfg.h"

#define KEY_OPTION 256 /* + enum bl_option_id */

/* argp keeps the strings; one process has one table of flags */
static char help_texts[BL_AO_COUNT][512];
static struct argp_option options[BL_AO_COUNT + 2];

/* The first option with the flag of option @id: hold_frames and queue_frames share one. */
static unsigned int first_with_flag(unsigned int id)
{
	unsigned int k;

	for (k = 0; k < id; k++)
		if (bl_option(k)->start && !strcmp(bl_option(k)->start, bl_option(id)->start))
			return k;
	return id;
}

/* Roles of all options with the flag of option @id. */
static unsigned int flag_roles(unsigned int id)
{
	unsigned int k, roles = 0;

	for (k = 0; k < BL_AO_COUNT; k++)
		if (bl_option(k)->start && !strcmp(bl_option(k)->start, bl_option(id)->start))
			roles |= bl_option(k)->roles;
	return roles;
}

/* "host, pl2: frames in one burst; 1 to 16 (default: 4)" */
static const char *help_text(unsigned int id)
{
	const struct bl_option *o = bl_option(id);
	const unsigned int roles = flag_roles(id);
	char *to = help_texts[id], value[32] = "";
	size_t size = sizeof(help_texts[id]), at;

	at = (size_t)snprintf(
		to, size, "%s%s%s%s%s",
		roles == BL_OPTION_HOSTS      ? "host"
		: roles == BL_OPTION_SWITCHES ? "switch"
					      : "",
		roles != (BL_OPTION_HOSTS | BL_OPTION_SWITCHES) && o->policies ? ", " : "",
		o->policies ? o->policies : "",
		roles != (BL_OPTION_HOSTS | BL_OPTION_SWITCHES) || o->policies ? ": " : "",
		o->text);
	if (o->kind == BL_OPTION_NUMBER)
		at += (size_t)snprintf(to + at, size - at, "; %llu to %llu",
				       (unsigned long long)bl_option_start_least(o),
				       (unsigned long long)o->greatest);
	if (!o->dflt_text && (o->kind == BL_OPTION_NUMBER || o->kind == BL_OPTION_NAME))
		bl_option_value(o, o->dflt, value, sizeof(value));
	if (o->dflt_text || *value)
		snprintf(to + at, size - at, " (%s%s)",
			 o->needed ? "" : "default: ", o->dflt_text ? o->dflt_text : value);
	return to;
}

static const char *argument(const struct bl_option *o)
{
	static char upper[BL_AO_COUNT][16];
	static unsigned int used;
	char *to;
	unsigned int k;

	if (o->kind == BL_OPTION_TRUTH)
		return NULL;
	to = upper[used++ % BL_AO_COUNT];
	for (k = 0; o->unit[k] && k + 1 < sizeof(upper[0]); k++)
		to[k] = o->unit[k] >= 'a' && o->unit[k] <= 'z' ? (char)(o->unit[k] - 'a' + 'A')
							       : o->unit[k];
	return to;
}

/* Runs before main(): argp wants a constant table. */
__attribute__((constructor)) static void make_options(void)
{
	unsigned int k, n = 0;

	options[n++] = (struct argp_option){ .doc = "Admission:" };
	for (k = 0; k < BL_AO_COUNT; k++) {
		const struct bl_option *o = bl_option(k);

		if (o->start && first_with_flag(k) == k)
			options[n++] = (struct argp_option){ .name = o->start,
							     .key = KEY_OPTION + (int)k,
							     .arg = argument(o),
							     .doc = help_text(k) };
	}
}

static void parse_option(struct argp_state *st, struct bl_admission_cfg *a, unsigned int id,
			 const char *what, const char *arg)
{
	const struct bl_option *o = bl_option(id);
	struct bl_err err;
	uint64_t v = 1;

	if (arg && bl_option_parse(o, what, arg, bl_option_start_least(o), o->greatest, &v, &err))
		argp_error(st, "%s", err.text);
	else
		bl_option_store(o, a, v);
}

static void parse_text(struct argp_state *st, struct bl_admission_cfg *a, const struct bl_option *o,
		       const char *arg)
{
	if (strlen(arg) >= o->size)
		argp_error(st, "%s: the name is too long", o->start);
	else
		strcpy((char *)a + o->at, arg);
}

/* KEY=VALUE, of the settings of TOP */
static void parse_top(struct argp_state *st, struct bl_admission_cfg *a, const char *arg)
{
	const char *value = strchr(arg, '=');
	unsigned int k;

	for (k = BL_AO_TOP; value && k < BL_AO_COUNT; k++) {
		const char *key = bl_option(k)->key;

		if (strlen(key) == (size_t)(value - arg) && !strncmp(key, arg, strlen(key))) {
			parse_option(st, a, k, key, value + 1);
			return;
		}
	}
	argp_error(st, "top \"%s\": not KEY=VALUE with a key of top, as levels=1", arg);
}

/* Whether a setting was given that has no effect without --admission. */
static bool any_given(const struct bl_admission_cfg *a)
{
	unsigned int k;

	for (k = BL_AO_POLICY + 1; k < BL_AO_COUNT; k++)
		if ((bl_option(k)->start || k >= BL_AO_TOP) && bl_option_load(bl_option(k), a))
			return true;
	return false;
}

static error_t parse(int key, char *arg, struct argp_state *st)
{
	struct bl_admission_cfg *a = st->input;
	const struct bl_option *o;

	if (!a)
		return ARGP_ERR_UNKNOWN;
	if (key == ARGP_KEY_END && !a->on && any_given(a)) {
		argp_error(st, "these settings are of admission: add --admission none, pl2, "
			       "fastpass or top");
		return EINVAL; /* with ARGP_SILENT, argp_error() returns */
	}
	if (key == ARGP_KEY_END)
		return 0;
	o = key >= KEY_OPTION ? bl_option((unsigned int)key - KEY_OPTION) : NULL;
	if (!o)
		return ARGP_ERR_UNKNOWN;
	if (o->kind == BL_OPTION_TEXT)
		parse_text(st, a, o, arg);
	else if (o->kind == BL_OPTION_BLOCK)
		parse_top(st, a, arg);
	else
		parse_option(st, a, (unsigned int)key - KEY_OPTION, o->start, arg);
	if (key - KEY_OPTION == BL_AO_POLICY)
		a->on = true;
	return 0;
}

const struct argp bl_admission_argp = { .options = options, .parser = parse };
