/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See view.h.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/show/view.h"
#include "cli/util/growth.h"
#include "cli/util/read.h"

static const struct argp_option options[] = {
	{ "all", 'a', NULL, 0, "nodes of all network namespaces of this machine", 0 },
	{ "oneline", 'o', NULL, 0, "one line NAME=VALUE ... per row, for grep", 1 },
	{ "brief", 'b', NULL, 0, "short lines, without what is 0 (also -br)", 1 },
	{ NULL, 'r', NULL, OPTION_HIDDEN, NULL, 1 }, /* -br, as ip(8) and bridge(8) have it */
	{ "details", 'd', NULL, 0, "everything that is known of each row", 1 },
	{ "timestamps", 't', NULL, 0, "say when it was read", 1 },
	{ "interval", 'i', "SECONDS", 0,
	  "read again and again, and show how much counters have grown since the last time", 2 },
	{ "count", 'c', "COUNT", 0, "with -i or -s: stop after this number of readings", 2 },
	{ "statistics", 's', NULL, 0, "counters per second (every second, if -i does not say)", 2 },
	{ "reason", 'R', "REASON", 0, "only rows with this reason", 3 },
	{ 0 }
};

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER('i', "interval", "s", 0.01, 86400, struct view, interval_s),
	BL_NUMBER('c', "count", NULL, 1, 1000000000, struct view, count),
	{ 0 }
};
/* clang-format on */

enum bl_reason view_reason(const char *arg, const struct argp_state *state)
{
	const char *near;
	enum bl_reason r = reason_of(arg, &near);

	if (r == BL_R_COUNT)
		argp_error(state, "no reason is called \"%s\"%s%s%s; docs/protocol.md lists them",
			   arg, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	return r;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct view *v = state->input;
	error_t err = bl_number_option(numbers, key, arg, v, state);

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case 'a':
		v->all = true;
		return 0;
	case 'o':
		v->one_line = true;
		return 0;
	case 'b':
	case 'r':
		v->brief = true;
		return 0;
	case 'd':
		v->details = true;
		return 0;
	case 't':
		v->time = true;
		return 0;
	case 's':
		v->per_second = true;
		return 0;
	case 'R':
		view_reason(arg, state);
		v->reason = arg;
		return 0;
	case ARGP_KEY_ARGS:
		v->ports = state->argv + state->next;
		v->nports = (size_t)(state->argc - state->next);
		return 0;
	case ARGP_KEY_END:
		if (v->per_second && !v->interval_s)
			v->interval_s = 1;
		if (v->count && !v->interval_s)
			argp_error(state, "--count needs --interval or --statistics");
		if (v->one_line + v->brief + v->details > 1)
			argp_error(state, "--oneline, --brief and --details exclude each other");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp view_argp = { .options = options, .parser = parse };

/* Whether member @key of the row is the text @text. */
static bool is_text(const json_t *row, const char *key, const char *text)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s && !strcmp(s, text);
}

static bool is_wanted(const struct view *v, const json_t *row, bool *seen)
{
	bool wanted = !v->nports;
	size_t i;

	for (i = 0; i < v->nports; i++)
		if (is_text(row, "name", v->ports[i]) || is_text(row, "map", v->ports[i]))
			wanted = seen[i] = true;
	return wanted && (!v->reason || is_text(row, "reason", v->reason));
}

json_t *view_select(const struct view *v, json_t *rows, const char **unknown)
{
	json_t *out = json_array(), *row;
	bool *seen = calloc(v->nports + 1, sizeof(*seen));
	size_t i;

	*unknown = NULL;
	json_array_foreach(rows, i, row)
	{
		if (seen && is_wanted(v, row, seen))
			json_array_append(out, row);
	}
	for (i = 0; seen && i < v->nports && !*unknown; i++)
		*unknown = seen[i] ? NULL : v->ports[i];
	free(seen);
	return out;
}

/* Members that say which row it is. */
static const char *const row_keys[] = { "node", "what",   "name",  "port", "role", "lane",
					"addr", "reason", "class", "dest", "flow", "from" };
#define ROW_KEYS (sizeof(row_keys) / sizeof(row_keys[0]))

static bool is_row_key(const char *key)
{
	size_t i;

	for (i = 0; i < ROW_KEYS; i++)
		if (!strcmp(row_keys[i], key))
			return true;
	return false;
}

/* ---- differences ---- */

static bool is_same(const json_t *a, const json_t *b)
{
	size_t i;

	for (i = 0; i < ROW_KEYS; i++) {
		const json_t *x = json_object_get(a, row_keys[i]);
		const json_t *y = json_object_get(b, row_keys[i]);

		if (!x != !y || (x && !json_equal(x, y)))
			return false;
	}
	return true;
}

static const json_t *find_same(json_t *rows, size_t likely, const json_t *row)
{
	json_t *other = json_array_get(rows, likely); /* mostly in the same order */
	size_t i;

	if (other && is_same(other, row))
		return other;
	json_array_foreach(rows, i, other)
	{
		if (is_same(other, row))
			return other;
	}
	return NULL;
}

json_t *view_differences(json_t *before, json_t *rows, const struct col *cols, size_t ncols,
			 double divisor)
{
	json_t *out = json_array(), *row;
	size_t i, c;

	json_array_foreach(rows, i, row)
	{
		const json_t *old = find_same(before, i, row);
		json_t *now = json_copy(row);

		for (c = 0; c < ncols; c++) {
			const json_t *v = json_object_get(row, cols[c].key);
			json_int_t n = json_integer_value(v), was;

			if ((cols[c].fmt != 'n' && cols[c].fmt != 'K') || !json_is_integer(v))
				continue;
			was = json_integer_value(json_object_get(old, cols[c].key));
			n = (json_int_t)counter_growth((uint64_t)was, (uint64_t)n);
			json_object_set_new(now, cols[c].key,
					    divisor > 0 ? json_real((double)n / divisor)
							: json_integer(n));
		}
		json_array_append_new(out, now);
	}
	return out;
}

/* ---- forms ---- */

static void print_value(FILE *f, const json_t *v, bool quote)
{
	const char *s = json_string_value(v);

	if (s && (!quote || (*s && !strpbrk(s, " \t\"="))))
		fputs(s, f);
	else if (json_is_real(v))
		fprintf(f, "%.1f", json_real_value(v));
	else if (v && !json_is_null(v))
		json_dumpf(v, f, JSON_ENCODE_ANY | JSON_COMPACT);
	else
		fputc('-', f);
}

static void print_one_line(FILE *f, const json_t *row, const struct col *cols, size_t ncols)
{
	size_t c;

	for (c = 0; c < ncols; c++) {
		fprintf(f, "%s%s=", c ? " " : "", cols[c].key);
		print_value(f, json_object_get(row, cols[c].key), true);
	}
}

/* Whether a value says nothing: null, false, an empty text, or 0, unless it is port 0 or lane 0. */
static bool is_nothing(const char *key, const json_t *v)
{
	return !v || json_is_null(v) || json_is_false(v) ||
	       (json_is_number(v) && json_number_value(v) == 0 && !is_row_key(key)) ||
	       (json_is_string(v) && !*json_string_value(v));
}

static void print_brief(FILE *f, const json_t *row, const struct col *cols, size_t ncols)
{
	const char *gap = "";
	size_t c, i;

	for (c = 0; c < ncols; c++) {
		const json_t *v = json_object_get(row, cols[c].key);

		if (is_nothing(cols[c].key, v))
			continue;
		fputs(gap, f);
		gap = " ";
		if (cols[c].fmt != 's') {
			for (i = 0; cols[c].head[i]; i++)
				fputc(tolower((unsigned char)cols[c].head[i]), f);
			if (cols[c].fmt == 'b')
				continue;
			fputc(' ', f);
		}
		out_cell(v, cols[c].fmt, f);
	}
}

static void print_details(FILE *f, const json_t *row, bool first, const char *title)
{
	const char *key;
	json_t *v;

	if (!first)
		fputc('\n', f);
	if (title)
		fprintf(f, "%-16s %s\n", "table", title);
	json_object_foreach((json_t *)row, key, v)
	{
		fprintf(f, "%-16s ", key);
		print_value(f, v, false);
		fputc('\n', f);
	}
}

void view_print(FILE *f, const struct view *v, json_t *rows, const struct col *cols, size_t ncols,
		const char *time, const char *title)
{
	json_t *row;
	size_t i;

	if (time && !v->one_line)
		fprintf(f, "%s\n", time);
	if (!v->one_line && !v->brief && !v->details) {
		out_table(f, rows, cols, ncols);
		return;
	}
	json_array_foreach(rows, i, row)
	{
		if (v->details) {
			print_details(f, row, !i, title);
			continue;
		}
		if (time && v->one_line)
			fprintf(f, "time=%s ", time);
		if (title)
			fprintf(f, v->one_line ? "table=%s " : "%s ", title);
		if (v->one_line)
			print_one_line(f, row, cols, ncols);
		else
			print_brief(f, row, cols, ncols);
		fputc('\n', f);
	}
}
