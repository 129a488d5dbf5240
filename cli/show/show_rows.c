/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * show_rows() and show_tables() (show.h): a `show` command with one table or several, once or again
 * and again, in the form that the command line asks for (view.h).
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "cli/show/show.h"
#include "cli/show/view.h"
#include "cli/util/args.h"
#include "cli/util/proc.h"
#include "cli/util/read.h"

/* hands the input on */
static error_t parse_view(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[1] = state->input;
	return 0;
}

/** struct show - A `show` command. One of the two functions is set. */
struct show {
	const char *doc, *what, *none;
	const struct show_table *tables;
	size_t n;
	int (*one)(const struct bl_node_ref *, json_t *);
	int (*several)(const struct bl_node_ref *, json_t **);
};

/** struct reading - The rows of each table, at one time. */
struct reading {
	json_t *rows[SHOW_TABLES_MAX];
	uint64_t at_ns; /* CLOCK_MONOTONIC */
};

static void drop_reading(struct reading *r)
{
	size_t i;

	for (i = 0; i < SHOW_TABLES_MAX; i++)
		json_decref(r->rows[i]);
	*r = (struct reading){ 0 };
}

/* Keeps those rows of @r that the command line asks for. Returns 0, or the exit status. */
static int select_rows(const struct show *s, const struct view *v, struct reading *r)
{
	json_t *all = json_array(), *row;
	const char *unknown;
	bool reasons = false;
	size_t i;

	for (i = 0; i < s->n; i++)
		json_array_extend(all, r->rows[i]);
	json_array_foreach(all, i, row) reasons |= json_object_get(row, "reason") != NULL;
	json_decref(view_select(v, all, &unknown));
	if (unknown && !strcmp(s->what, "PORT")) {
		json_decref(all);
		return cli_fail("no port \"%s\" here; `barline show ports` lists them", unknown);
	}
	if (unknown) {
		json_decref(all);
		return cli_fail("no %s \"%s\" here; without it, the command lists them", s->what,
				unknown);
	}
	if (v->reason && !reasons && json_array_size(all)) {
		json_decref(all);
		return cli_usage("no row here has a reason; `barline show drops --reason %s` does",
				 v->reason);
	}
	json_decref(all);
	for (i = 0; i < s->n; i++) {
		json_t *rows = view_select(v, r->rows[i], &unknown);

		json_decref(r->rows[i]);
		r->rows[i] = rows;
	}
	return 0;
}

/* Reads the rows of all nodes. Returns 0, or the exit status after a message. */
static int read_rows(const struct show *s, const struct view *v, const struct bl_node_ref *refs,
		     int n, struct reading *r)
{
	size_t k;
	int i, err = 0;

	for (k = 0; k < s->n; k++)
		r->rows[k] = json_array();
	r->at_ns = bl_mono_ns();
	for (i = 0; i < n && !err; i++)
		err = s->one ? s->one(&refs[i], r->rows[0]) : s->several(&refs[i], r->rows);
	return err ? err : select_rows(s, v, r);
}

static struct reading differences_of(const struct show *s, const struct view *v,
				     const struct reading *before, const struct reading *now)
{
	struct reading r = { .at_ns = now->at_ns };
	size_t i;

	for (i = 0; i < s->n; i++)
		r.rows[i] = view_differences(
			before->rows[i], now->rows[i], s->tables[i].cols, s->tables[i].ncols,
			v->per_second ? (double)(now->at_ns - before->at_ns) / 1e9 : 0);
	return r;
}

static void print_json(const struct show *s, const struct view *v, const struct reading *r,
		       const struct timespec *t)
{
	json_t *o = json_object();
	size_t i;

	if (v->time || v->interval_s)
		json_object_set_new(o, "time",
				    json_real((double)t->tv_sec + (double)t->tv_nsec / 1e9));
	if (v->interval_s)
		json_object_set_new(o, "interval_s", json_real(v->interval_s));
	for (i = 0; i < s->n; i++)
		json_object_set(o, s->tables[i].key, r->rows[i]);
	cli_json(o);
}

static void print_rows(const struct show *s, const struct view *v, const struct reading *r)
{
	bool headed = !v->one_line && !v->brief && !v->details, first = true;
	char when[64], zone[16];
	struct timespec t;
	struct tm tm;
	size_t i;

	clock_gettime(CLOCK_REALTIME, &t);
	localtime_r(&t.tv_sec, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(when + strlen(when), sizeof(when) - strlen(when), ".%03ld%s", t.tv_nsec / 1000000,
		 zone);
	for (i = 0; !cli.json && i < s->n; i++) {
		if (!json_array_size(r->rows[i]))
			continue;
		if (!first && !v->one_line && !v->brief)
			putchar('\n');
		view_print(stdout, v, r->rows[i], s->tables[i].cols, s->tables[i].ncols,
			   v->time && (first || v->one_line) ? when : NULL,
			   s->n > 1 && !headed ? s->tables[i].key : NULL);
		first = false;
	}
	if (cli.json)
		print_json(s, v, r, &t);
	else if (first && !v->one_line)
		puts(s->none);
	fflush(stdout);
}

static int show(int argc, char **argv, const struct show *s)
{
	const struct argp_child children[] = { cmd_globals_child,
					       { &view_argp, 0, NULL, 0 },
					       { 0 } };
	char args[32];
	const struct argp argp = {
		.parser = parse_view, .args_doc = args, .children = children, .doc = s->doc
	};
	struct reading before = { 0 }, now = { 0 }, grown;
	struct view v = { 0 };
	struct bl_node_ref *refs;
	long long round;
	int n, err = 0;

	snprintf(args, sizeof(args), "[%s...]", s->what);
	cmd_parse(&argp, argc, argv, &v);
	n = nodes_here(&refs, v.all);
	if (n < 0)
		return 1;
	for (round = 0; !err && (!v.count || round <= v.count); round++) {
		err = read_rows(s, &v, refs, n, &now);
		if (!err && round) {
			grown = differences_of(s, &v, &before, &now);
			print_rows(s, &v, &grown);
			drop_reading(&grown);
		} else if (!err && !v.interval_s) {
			print_rows(s, &v, &now);
		}
		drop_reading(&before);
		before = now;
		now = (struct reading){ 0 };
		if (!v.interval_s)
			break;
		if (!err && (!v.count || round < v.count))
			nap_ns((uint64_t)(v.interval_s * 1e9));
	}
	drop_reading(&before);
	free(refs);
	return err;
}

int show_tables(int argc, char **argv, const char *doc, const char *what,
		const struct show_table *tables, size_t n,
		int (*collect)(const struct bl_node_ref *, json_t **rows), const char *none)
{
	const struct show s = {
		.doc = doc, .what = what, .none = none, .tables = tables, .n = n, .several = collect
	};

	return show(argc, argv, &s);
}

int show_rows(int argc, char **argv, const char *doc, const char *key,
	      int (*collect)(const struct bl_node_ref *, json_t *), const struct col *cols,
	      size_t ncols, const char *none)
{
	const struct show_table table = { key, cols, ncols };
	const struct show s = {
		.doc = doc, .what = "PORT", .none = none, .tables = &table, .n = 1, .one = collect
	};

	return show(argc, argv, &s);
}
