// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline top: rates of ports, drops by reason, who holds whom back, and the state of nodes, live.
 * On a terminal it has the screen (tty.h), else it prints one block of text or one JSON object per
 * interval.
 */
#include <stdlib.h>
#include <string.h>

#include "base/netns.h"
#include "base/number.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "cli/util/read.h"
#include "cli/live/rows.h"
#include "cli/live/screen.h"
#include "cli/live/tty.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/proc.h"

#define PAUSED_NS 60000000000ULL /* a screen that is stopped only waits for keys */

struct live_args {
	double interval_s;
	long long count; /* of readings; 0: no limit */
	bool all, batch;
	struct live_filter filter;
};

static const struct argp_option options[] = {
	{ "interval", 'i', "SECONDS", 0, "time between two readings (default 1)", 0 },
	{ "count", 'c', "COUNT", 0, "stop after this number of readings (default: never)", 0 },
	{ "batch", 'b', NULL, 0, "print a block of text per reading, as when stdout is no terminal",
	  0 },
	{ "all", 'a', NULL, 0, "nodes of all network namespaces of this machine", 0 },
	{ 0 }
};

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER('i', "interval", "s", 0.1, 86400, struct live_args, interval_s),
	BL_NUMBER('c', "count", NULL, 1, 1000000000, struct live_args, count),
	{ 0 }
};
/* clang-format on */

static error_t parse_top(int key, char *arg, struct argp_state *state)
{
	struct live_args *a = state->input;
	error_t err = bl_number_option(numbers, key, arg, a, state);

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case 'a':
		a->all = true;
		return 0;
	case 'b':
		a->batch = true;
		return 0;
	case ARGP_KEY_ARGS:
		a->filter.names = state->argv + state->next;
		a->filter.n = state->argc - state->next;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/** struct live - the command at work. */
struct live {
	const struct live_args *args;
	uint64_t netns;         /* as live_snap_read() */
	struct live_snap *last; /* the snapshot before; NULL: none */
	json_t *reading;        /* the last one; NULL: none */
	long long readings;
	struct bl_err err;
};

/* Reads all nodes, and compares them with the last time. Returns false without a list of nodes. */
static bool read_nodes(struct live *t)
{
	struct live_snap *s = live_snap_read(t->netns, &t->err);

	if (!s)
		return false;
	live_follow(t->last, s);
	if (t->last) {
		json_decref(t->reading);
		t->reading = live_reading(t->last, s, &t->args->filter);
		t->readings++;
	}
	live_snap_free(t->last);
	t->last = s;
	return true;
}

static bool is_done(const struct live *t)
{
	return t->args->count && t->readings >= t->args->count;
}

static int print_readings(struct live *t, uint64_t interval)
{
	long long before;

	while (!is_done(t)) {
		before = t->readings;
		if (t->last)
			nap_ns(interval);
		if (!read_nodes(t))
			return cli_fail("%s", t->err.text);
		if (t->readings == before)
			continue;
		if (cli.json)
			cli_json(json_incref(t->reading));
		else
			live_text(stdout, t->reading);
	}
	return 0;
}

static bool draw(const struct live *t, struct live_view *v)
{
	struct live_lines lines;
	size_t width, height;
	bool ok;

	tty_size(&width, &height);
	live_screen(t->reading, v, width, height, &lines);
	ok = tty_draw(&lines);
	live_lines_free(&lines);
	return ok;
}

static int run_screen(struct live *t, uint64_t interval)
{
	struct live_view v = { .table = t->last->nodes == 1 ? LIVE_PORTS : LIVE_NODES };
	uint64_t next = bl_mono_ns() + interval;
	bool ok = true;
	int key, rc;

	rc = tty_open();
	if (rc)
		return cli_fail("the terminal: %s", strerror(-rc));
	while (ok && !v.quit && draw(t, &v) && !is_done(t)) {
		switch (tty_wait(v.paused ? bl_mono_ns() + PAUSED_NS : next, &key)) {
		case TTY_END:
			v.quit = true;
			break;
		case TTY_REDRAW:
			break;
		case TTY_KEY:
			live_key(&v, key, json_array_size(json_object_get(t->reading, "nodes")));
			break;
		case TTY_TIME:
			if (v.paused)
				break;
			ok = read_nodes(t);
			next = bl_mono_ns() + interval;
			break;
		}
	}
	tty_close();
	return ok ? 0 : cli_fail("%s", t->err.text);
}

/* Refuses names that no node has. */
static bool names_known(const struct live *t)
{
	int i, k;

	for (k = 0; k < t->args->filter.n; k++) {
		for (i = 0; i < t->last->nodes &&
			    strcmp(t->args->filter.names[k], node_name(&t->last->node[i].ref)) != 0;
		     i++)
			;
		if (i == t->last->nodes)
			return !cli_fail("no node \"%s\" here; `barline show nodes` lists them",
					 t->args->filter.names[k]);
	}
	return true;
}

int cmd_top(int argc, char **argv)
{
	static const struct argp argp = { .options = options,
					  .parser = parse_top,
					  .args_doc = "[NODE...]",
					  .children = cmd_globals,
					  .doc = "barline top - rates of ports, drops by reason, "
						 "and who holds whom back, "
						 "live\v"
						 "Keys: q quits, space stops, p shows ports, e "
						 "endpoints, n the next node, "
						 "the arrows sort and scroll, r reverses the "
						 "order, h helps. HELD_BY names "
						 "the neighbour whose barrier the node waits for, "
						 "as far as its way through "
						 "switches leads over nodes of this machine." };
	struct live_args args = { .interval_s = 1 };
	struct live t = { .args = &args };
	struct bl_node_ref *refs;
	uint64_t interval;
	int n, rc = 1;

	cmd_parse(&argp, argc, argv, &args);
	n = nodes_here(&refs, args.all);
	if (n < 0)
		return 1;
	free(refs);
	t.netns = args.all ? 0 : bl_netns_ino();
	interval = (uint64_t)(args.interval_s * 1e9);
	if (!read_nodes(&t))
		cli_fail("%s", t.err.text);
	else if (names_known(&t))
		rc = cli.json || args.batch || !tty_usable() ? print_readings(&t, interval)
							     : run_screen(&t, interval);
	live_snap_free(t.last);
	json_decref(t.reading);
	return rc;
}
