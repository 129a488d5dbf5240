/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline watch: prints rates per port and reason, and the lag of the barrier, every few seconds.
 * On a terminal it redraws the screen; into a pipe it prints lines.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "maps/clock_abi.h"
#include "maps/host_abi.h"
#include "base/number.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/growth.h"
#include "cli/util/out.h"
#include "cli/util/read.h"

struct watch_args {
	double interval_s;
	long long count; /* of readings to print; 0: no limit */
	bool all;        /* nodes of all network namespaces */
};

static const struct argp_option watch_options[] = {
	{ "interval", 'i', "SECONDS", 0, "time between two readings (default 1)", 0 },
	{ "count", 'c', "COUNT", 0, "stop after this number of readings (default: never)", 0 },
	{ "all", 'a', NULL, 0, "nodes of all network namespaces of this machine", 0 },
	{ 0 }
};

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER('i', "interval", "s", 0.01, 86400, struct watch_args, interval_s),
	BL_NUMBER('c', "count", NULL, 1, 1000000000, struct watch_args, count),
	{ 0 }
};
/* clang-format on */

static error_t parse_watch(int key, char *arg, struct argp_state *state)
{
	struct watch_args *w = state->input;
	error_t err = bl_number_option(numbers, key, arg, w, state);

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case 'a':
		w->all = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/** struct sample - The counters of a node at one time. */
struct sample {
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	struct count_row *rows;
	int n; /* of @rows */
};

/*
 * Returns how far a node's barrier lags behind its clock in ns, or null if unknown. For a switch,
 * the lowest barrier of its outputs counts.
 */
static json_t *barrier_lag(const struct bl_node_ref *ref)
{
	struct bl_clock clock;
	struct bl_host_page page;
	struct bl_sw_lane lane;
	uint64_t now, b = 0;
	int s;

	if (ref->role == BL_ROLE_HOST) {
		if (!node_value(ref, BL_MAP_HOST_PAGE, 0, &page, sizeof(page)))
			b = page.barrier;
	} else if (!node_value(ref, BL_MAP_SW_LANES, 0, &lane, sizeof(lane))) {
		for (s = 0; s < BL_SETS_MAX; s++)
			if (lane.out[s].b && lane.out[s].b != BL_TIME_NONE &&
			    (!b || lane.out[s].b < b))
				b = lane.out[s].b;
	}
	now = node_now(ref, &clock);
	return now && b ? json_integer((json_int_t)(now - b)) : json_null();
}

static void add_rates(json_t *rows, const struct bl_node_ref *ref, const struct sample *old,
		      const struct sample *new)
{
	int i, j;
	unsigned int k;

	for (i = 0; i < new->n; i++) {
		for (j = 0; j < old->n && old->rows[j].key != new->rows[i].key; j++)
			;
		for (k = 0; k < BL_REASON_MAX; k++) {
			uint64_t before = j < old->n ? old->rows[j].n.n[k] : 0;
			uint64_t d = counter_growth(before, new->rows[i].n.n[k]);

			if (!d || (k == BL_R_CLONE_STALE && !cli.verbose))
				continue;
			json_array_append_new(
				rows, json_pack("{s:s, s:s, s:s, s:s, s:f}", "node", ref->meta.name,
						"name", new->rows[i].name, "role",
						new->rows[i].role, "reason", reason_name(k),
						"per_s", growth_per_s(d, new->at_ns - old->at_ns)));
		}
	}
}

static void print_reading(json_t *rates, json_t *lags, bool redraw)
{
	static const struct col cols[] = { { "node", "NODE", 's' },
					   { "name", "PORT", 's' },
					   { "role", "ROLE", 's' },
					   { "reason", "REASON", 's' },
					   { "per_s", "PER_SECOND", 'f' } };
	static const struct col lag_cols[] = { { "node", "NODE", 's' },
					       { "lag_ns", "BARRIER_LAG", 't' } };
	json_t *row;
	char buf[64];
	size_t i;

	if (cli.json) {
		struct timespec t;

		clock_gettime(CLOCK_REALTIME, &t);
		cli_json(json_pack("{s:f, s:O, s:O}", "time",
				   (double)t.tv_sec + (double)t.tv_nsec / 1e9, "rates", rates,
				   "lags", lags));
		return;
	}
	if (redraw) {
		fputs("\033[H\033[J", stdout);
		OUT_TABLE(stdout, lags, lag_cols);
		putchar('\n');
		OUT_TABLE(stdout, rates, cols);
	} else {
		json_array_foreach(lags, i, row)
		{
			json_t *lag = json_object_get(row, "lag_ns");

			printf("%s barrier_lag %s\n",
			       json_string_value(json_object_get(row, "node")),
			       json_is_null(lag)
				       ? "unknown"
				       : out_time(json_integer_value(lag), buf, sizeof(buf)));
		}
		json_array_foreach(rates, i, row)
			printf("%s %s %s %s %.1f/s\n",
			       json_string_value(json_object_get(row, "node")),
			       json_string_value(json_object_get(row, "name")),
			       json_string_value(json_object_get(row, "role")),
			       json_string_value(json_object_get(row, "reason")),
			       json_number_value(json_object_get(row, "per_s")));
	}
	fflush(stdout);
}

int cmd_watch(int argc, char **argv)
{
	const struct argp argp = { .options = watch_options,
				   .parser = parse_watch,
				   .children = cmd_globals,
				   .doc = "barline watch - rates per port and reason, and the lag "
					  "of the barrier, continuously\v"
					  "Relayed beacons that a port did not need (clone_stale) "
					  "appear with -v only." };
	struct watch_args w = { .interval_s = 1 };
	struct bl_node_ref *refs;
	struct sample *old;
	struct timespec pause;
	bool redraw = isatty(STDOUT_FILENO);
	int n, i, err = 0;
	long long round;

	cmd_parse(&argp, argc, argv, &w);
	n = nodes_here(&refs, w.all);
	if (n < 0)
		return 1;
	old = calloc((size_t)n, sizeof(*old));
	if (!old)
		return cli_fail("out of memory");
	pause.tv_sec = (time_t)w.interval_s;
	pause.tv_nsec = (long)((w.interval_s - (double)pause.tv_sec) * 1e9);
	for (round = 0; !err && (!w.count || round <= w.count); round++) {
		json_t *rates = json_array(), *lags = json_array();

		if (round)
			nanosleep(&pause, NULL);
		for (i = 0; i < n && !err; i++) {
			struct sample new = { .at_ns = bl_mono_ns() };

			new.n = node_count_rows(&refs[i], &new.rows);
			err = new.n < 0;
			if (!err && round) {
				add_rates(rates, &refs[i], &old[i], &new);
				json_array_append_new(lags, json_pack("{s:s, s:o}", "node",
								      refs[i].meta.name, "lag_ns",
								      barrier_lag(&refs[i])));
			}
			free(old[i].rows);
			old[i] = new;
		}
		if (!err && round)
			print_reading(rates, lags, redraw);
		json_decref(rates);
		json_decref(lags);
	}
	for (i = 0; i < n; i++)
		free(old[i].rows);
	free(old);
	free(refs);
	return err;
}
