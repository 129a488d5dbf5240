/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * show_rows() (show.h): a `show` command with one table, once or again and again, in the form that
 * the command line asks for (view.h).
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

/* Reads the rows of all nodes. Returns NULL after a message. */
static json_t *read_rows(const struct bl_node_ref *refs, int n,
			 int (*collect)(const struct bl_node_ref *, json_t *))
{
	json_t *rows = json_array();
	int i, err = 0;

	for (i = 0; i < n && !err; i++)
		err = collect(&refs[i], rows);
	if (!err)
		return rows;
	json_decref(rows);
	return NULL;
}

static void print_rows(const struct view *v, const char *key, json_t *rows, const struct col *cols,
		       size_t ncols, const char *none)
{
	char when[64], zone[16];
	struct timespec t;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &t);
	localtime_r(&t.tv_sec, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(when + strlen(when), sizeof(when) - strlen(when), ".%03ld%s", t.tv_nsec / 1000000,
		 zone);
	if (cli.json) {
		json_t *o = json_object();

		if (v->time || v->interval_s)
			json_object_set_new(o, "time",
					    json_real((double)t.tv_sec + (double)t.tv_nsec / 1e9));
		if (v->interval_s)
			json_object_set_new(o, "interval_s", json_real(v->interval_s));
		json_object_set(o, key, rows);
		cli_json(o);
	} else if (json_array_size(rows)) {
		view_print(stdout, v, rows, cols, ncols, v->time ? when : NULL);
	} else if (!v->one_line) {
		puts(none);
	}
	fflush(stdout);
}

int show_rows(int argc, char **argv, const char *doc, const char *key,
	      int (*collect)(const struct bl_node_ref *, json_t *), const struct col *cols,
	      size_t ncols, const char *none)
{
	const struct argp_child children[] = { cmd_globals_child,
					       { &view_argp, 0, NULL, 0 },
					       { 0 } };
	const struct argp argp = {
		.parser = parse_view, .args_doc = "[PORT...]", .children = children, .doc = doc
	};
	struct view v = { 0 };
	struct bl_node_ref *refs;
	json_t *before = NULL, *all, *rows;
	const char *unknown;
	uint64_t at_ns, before_ns = 0;
	long long round;
	int n, err = 0;

	cmd_parse(&argp, argc, argv, &v);
	n = nodes_here(&refs, v.all);
	if (n < 0)
		return 1;
	for (round = 0; !err && (!v.count || round <= v.count); round++) {
		at_ns = bl_mono_ns();
		all = read_rows(refs, n, collect);
		rows = all ? view_select(&v, all, &unknown) : NULL;
		json_decref(all);
		err = !rows || (unknown && cli_fail("no port \"%s\" here; `barline show ports` "
						    "lists "
						    "them",
						    unknown));
		if (!err && before) {
			json_t *diff = view_differences(
				before, rows, cols, ncols,
				v.per_second ? (double)(at_ns - before_ns) / 1e9 : 0);

			print_rows(&v, key, diff, cols, ncols, none);
			json_decref(diff);
		} else if (!err && !v.interval_s) {
			print_rows(&v, key, rows, cols, ncols, none);
		}
		json_decref(before);
		before = rows;
		before_ns = at_ns;
		if (!v.interval_s)
			break;
		if (!err && (!v.count || round < v.count))
			nap_ns((uint64_t)(v.interval_s * 1e9));
	}
	json_decref(before);
	free(refs);
	return err;
}
