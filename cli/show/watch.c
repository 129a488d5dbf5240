/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline watch: prints rates per port and reason, and the lag of the barrier, every few seconds.
 * On a terminal it redraws the screen; into a pipe it prints lines. With --columns it prints one
 * line per node and reading (columns.h).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "maps/clock_abi.h"
#include "maps/host_abi.h"
#include "base/number.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "cli/show/columns.h"
#include "cli/show/view.h"
#include "cli/util/args.h"
#include "cli/util/growth.h"
#include "cli/util/out.h"
#include "cli/util/proc.h"
#include "cli/util/read.h"

struct watch_args {
	double interval_s;
	long long count; /* of readings to print; 0: no limit */
	bool all;        /* nodes of all network namespaces */
	char **ports;    /* only these */
	size_t nports;   /* 0: all */
	bool reasons;    /* only those of @reason */
	bool reason[BL_REASON_MAX];
	struct column column[COLUMNS_MAX];
	size_t ncolumns; /* 0: a row per port and reason */
};

static const struct argp_option watch_options[] = {
	{ "interval", 'i', "SECONDS", 0, "time between two readings (default 1)", 0 },
	{ "count", 'c', "COUNT", 0, "stop after this number of readings (default: never)", 0 },
	{ "all", 'a', NULL, 0, "nodes of all network namespaces of this machine", 0 },
	{ "reason", 'R', "REASON", 0, "only rows with this reason; may be repeated", 0 },
	{ "columns", 'C', "NAME,...", OPTION_ARG_OPTIONAL,
	  "one line per node and reading, with these columns, as in --columns=lag,frames,no_route: "
	  "lag, frames, bytes, dropped, noted, or a reason (default: " COLUMNS_DEFAULT ")",
	  0 },
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
	struct bl_err why;
	enum bl_reason r;
	int n;

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case 'a':
		w->all = true;
		return 0;
	case 'R':
		r = view_reason(arg, state);
		if (r < BL_R_COUNT)
			w->reason[r] = w->reasons = true;
		return 0;
	case 'C':
		n = columns_parse(w->column, arg ? arg : COLUMNS_DEFAULT, &why);
		if (n < 0)
			argp_error(state, "%s", why.text);
		else
			w->ncolumns = (size_t)n;
		return 0;
	case ARGP_KEY_ARGS:
		w->ports = state->argv + state->next;
		w->nports = (size_t)(state->argc - state->next);
		return 0;
	case ARGP_KEY_END:
		if (w->reasons && w->ncolumns)
			argp_error(state, "--reason and --columns exclude each other: a column can "
					  "be a reason");
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

static bool is_wanted(const struct watch_args *w, const char *port)
{
	size_t i;

	for (i = 0; i < w->nports && strcmp(w->ports[i], port); i++)
		;
	return !w->nports || i < w->nports;
}

/* How much the counters of row @i of @new have grown since @old. What was not there began at 0. */
static struct bl_counts growth(const struct sample *old, const struct sample *new, int i)
{
	struct bl_counts d = new->rows[i].n;
	unsigned int k;
	int j;

	for (j = 0; j < old->n && old->rows[j].key != new->rows[i].key; j++)
		;
	for (k = 0; j < old->n && k < BL_REASON_MAX; k++) {
		d.n[k] = counter_growth(old->rows[j].n.n[k], d.n[k]);
		d.bytes[k] = counter_growth(old->rows[j].n.bytes[k], d.bytes[k]);
	}
	return d;
}

static void add_rates(json_t *rows, const struct watch_args *w, const struct bl_node_ref *ref,
		      const struct sample *old, const struct sample *new)
{
	unsigned int k;
	int i;

	for (i = 0; i < new->n; i++) {
		struct bl_counts grown = growth(old, new, i);

		if (!is_wanted(w, new->rows[i].name))
			continue;
		for (k = 0; k < BL_REASON_MAX; k++) {
			uint64_t d = grown.n[k];

			if (!d ||
			    (w->reasons ? !w->reason[k] : k == BL_R_CLONE_STALE && !cli.verbose))
				continue;
			json_array_append_new(
				rows,
				json_pack("{s:s, s:s, s:s, s:s, s:f, s:f}", "node", ref->meta.name,
					  "name", new->rows[i].name, "role", new->rows[i].role,
					  "reason", reason_name(k), "per_s",
					  growth_per_s(d, new->at_ns - old->at_ns), "bytes_per_s",
					  growth_per_s(grown.bytes[k], new->at_ns - old->at_ns)));
		}
	}
}

static void print_reading(json_t *rates, json_t *lags, bool redraw)
{
	static const struct col cols[] = {
		{ "node", "NODE", 's' },        { "name", "PORT", 's' },
		{ "role", "ROLE", 's' },        { "reason", "REASON", 's' },
		{ "per_s", "PER_SECOND", 'f' }, { "bytes_per_s", "BYTES/S", 'k' }
	};
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

/* ---- columns ---- */

/* The values of a node's line, from all ports that are wanted. */
static void column_values(double *to, const struct watch_args *w, const struct bl_node_ref *ref,
			  const struct sample *old, const struct sample *new)
{
	uint64_t ns = new->at_ns - old->at_ns;
	struct bl_counts sum = { 0 };
	size_t c;
	int i;

	for (i = 0; i < new->n; i++) {
		struct bl_counts grown = growth(old, new, i);

		if (is_wanted(w, new->rows[i].name))
			counts_add(&sum, &grown);
	}
	for (c = 0; c < w->ncolumns; c++) {
		json_t *lag;

		switch (w->column[c].kind) {
		case COLUMN_LAG:
			lag = barrier_lag(ref);
			to[c] = json_is_null(lag) ? NAN : json_number_value(lag);
			json_decref(lag);
			break;
		case COLUMN_FRAMES:
			to[c] = growth_per_s(counts_frames(&sum), ns);
			break;
		case COLUMN_BYTES:
			to[c] = growth_per_s(counts_bytes(&sum), ns);
			break;
		case COLUMN_DROPPED:
			to[c] = growth_per_s(counts_dropped(&sum), ns);
			break;
		case COLUMN_NOTED:
			to[c] = growth_per_s(counts_kind(&sum, BL_KIND_NOTE), ns);
			break;
		case COLUMN_REASON:
			to[c] = growth_per_s(sum.n[w->column[c].reason], ns);
			break;
		}
	}
}

/* Lines after which the headings are repeated: what a terminal shows, or as vmstat(8) has it. */
static int lines_per_head(void)
{
	struct winsize size = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row < 3)
		return 22;
	return size.ws_row - 2;
}

static json_t *columns_json(const struct watch_args *w, const char *node, const double *values)
{
	json_t *row = json_pack("{s:s}", "node", node);
	size_t c;

	for (c = 0; c < w->ncolumns; c++)
		json_object_set_new(row,
				    w->column[c].kind == COLUMN_LAG ? "lag_ns" : w->column[c].name,
				    isnan(values[c]) ? json_null() : json_real(values[c]));
	return row;
}

static void print_columns(const struct watch_args *w, const struct bl_node_ref *refs, int n,
			  const struct sample *old, const struct sample *new)
{
	static int since = -1; /* lines since the headings; -1: there were none */
	int width = 4, i, lines = lines_per_head();
	json_t *rows = json_array();
	double values[COLUMNS_MAX];
	struct timespec t;
	char when[16];
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &t);
	localtime_r(&t.tv_sec, &tm);
	strftime(when, sizeof(when), "%H:%M:%S", &tm);
	for (i = 0; i < n; i++)
		if ((int)strlen(refs[i].meta.name) > width)
			width = (int)strlen(refs[i].meta.name);
	for (i = 0; i < n; i++) {
		column_values(values, w, &refs[i], &old[i], &new[i]);
		if (cli.json) {
			json_array_append_new(rows, columns_json(w, refs[i].meta.name, values));
			continue;
		}
		if (since < 0 || since >= lines) {
			columns_head(stdout, w->column, w->ncolumns, width);
			since = 0;
		}
		columns_line(stdout, w->column, w->ncolumns, width, when, refs[i].meta.name,
			     values);
		since++;
	}
	if (cli.json)
		cli_json(json_pack("{s:f, s:O}", "time", (double)t.tv_sec + (double)t.tv_nsec / 1e9,
				   "rows", rows));
	json_decref(rows);
	fflush(stdout);
}

/* ---- the command ---- */

/* Returns 0 if each port that was asked for is there, else 1 after a message. */
static int check_ports(const struct watch_args *w, const struct sample *s, int n)
{
	size_t p;
	int i, k;

	for (p = 0; p < w->nports; p++) {
		bool found = false;

		for (i = 0; i < n; i++)
			for (k = 0; k < s[i].n; k++)
				found |= !strcmp(s[i].rows[k].name, w->ports[p]);
		if (!found)
			return cli_fail("no port \"%s\" here; `barline show ports` lists them",
					w->ports[p]);
	}
	return 0;
}

static void print_sample(const struct watch_args *w, const struct bl_node_ref *refs, int n,
			 const struct sample *old, const struct sample *new)
{
	json_t *rates, *lags;
	int i;

	if (w->ncolumns) {
		print_columns(w, refs, n, old, new);
		return;
	}
	rates = json_array();
	lags = json_array();
	for (i = 0; i < n; i++) {
		add_rates(rates, w, &refs[i], &old[i], &new[i]);
		json_array_append_new(lags, json_pack("{s:s, s:o}", "node", refs[i].meta.name,
						      "lag_ns", barrier_lag(&refs[i])));
	}
	print_reading(rates, lags, isatty(STDOUT_FILENO));
	json_decref(rates);
	json_decref(lags);
}

int cmd_watch(int argc, char **argv)
{
	const struct argp argp = { .options = watch_options,
				   .parser = parse_watch,
				   .args_doc = "[PORT...]",
				   .children = cmd_globals,
				   .doc = "barline watch - rates per port and reason, and the lag "
					  "of the barrier, continuously\v"
					  "Relayed beacons that a port did not need (clone_stale) "
					  "appear with -v only. The lag is negative where all "
					  "senders are silent, because they promise ahead of their "
					  "clocks (no_ahead)." };
	struct watch_args w = { .interval_s = 1 };
	struct bl_node_ref *refs;
	struct sample *old, *new;
	int n, i, err = 0;
	long long round;

	cmd_parse(&argp, argc, argv, &w);
	n = nodes_here(&refs, w.all);
	if (n < 0)
		return 1;
	old = calloc((size_t)n, sizeof(*old));
	new = calloc((size_t)n, sizeof(*new));
	if (!old || !new)
		return cli_fail("out of memory");
	for (round = 0; !err && (!w.count || round <= w.count); round++) {
		if (round)
			nap_ns((uint64_t)(w.interval_s * 1e9));
		for (i = 0; i < n && !err; i++) {
			new[i].at_ns = bl_mono_ns();
			new[i].n = node_count_rows(&refs[i], &new[i].rows);
			err = new[i].n < 0;
		}
		if (!err && !round)
			err = check_ports(&w, new, n);
		if (!err && round)
			print_sample(&w, refs, n, old, new);
		for (i = 0; i < n; i++) {
			free(old[i].rows);
			old[i] = new[i];
			new[i] = (struct sample){ 0 };
		}
	}
	for (i = 0; i < n; i++)
		free(old[i].rows);
	free(old);
	free(new);
	free(refs);
	return err;
}
