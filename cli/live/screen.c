// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See screen.h. */
#include "cli/live/screen.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/util/out.h"

#define HEAD_MAX       32
#define COLS_MAX       16
#define HELD_LINES     3  /* on a screen; text has all */
#define TEXT_ENDPOINTS 10 /* in a block of text */

static const struct col node_cols[] = { { "node", "NODE", 's' },
					{ "state", "STATE", 's' },
					{ "frames_per_s", "FRAMES/S", 'f' },
					{ "ordered_per_s", "ORDERED/S", 'f' },
					{ "dropped_per_s", "DROPS/S", 'f' },
					{ "lag_ns", "LAG", 't' },
					{ "held_ns", "HELD", 't' },
					{ "held_by", "HELD_BY", 's' },
					{ "bits_per_s", "BITS/S", 'r' },
					{ "worst", "DROPPED_MOST", 's' },
					{ "bound_ns", "CLOCK_BOUND", 't' },
					{ "clock", "CLOCK", 's' },
					{ "daemon", "DAEMON", 's' } };
static const struct col port_cols[] = { { "node", "NODE", 's' },
					{ "name", "PORT", 's' },
					{ "role", "ROLE", 's' },
					{ "frames_per_s", "FRAMES/S", 'f' },
					{ "ordered_per_s", "ORDERED/S", 'f' },
					{ "beacons_per_s", "BEACONS/S", 'f' },
					{ "dropped_per_s", "DROPS/S", 'f' },
					{ "lag_ns", "LAG", 't' },
					{ "silent_ns", "SILENT", 't' },
					{ "bits_per_s", "BITS/S", 'r' },
					{ "state", "INPUT", 's' },
					{ "holds", "HOLDS", 'b' },
					{ "queue_frames", "QUEUE", 'd' },
					{ "worst", "DROPPED_MOST", 's' } };
static const struct col endpoint_cols[] = {
	{ "node", "NODE", 's' },
	{ "addr", "ADDRESS", 's' },
	{ "port", "PORT", 'd' },
	{ "process", "PROCESS", 's' },
	{ "pid", "PID", 'd' },
	{ "ring_used", "RING_USED", 'k' },
	{ "ring_bytes", "RING", 'k' },
	{ "in_flight", "IN_FLIGHT", 'd' },
	{ "sending_ns", "SENDING", 't' },
	{ "out", "OUT", 's' },
};

static const struct table {
	const char *name, *rows; /* member of a node's object that has the rows; NULL: it is one */
	const struct col *cols;
	size_t n;
} tables[LIVE_TABLES] = {
	[LIVE_NODES] = { "nodes", NULL, node_cols, sizeof(node_cols) / sizeof(node_cols[0]) },
	[LIVE_PORTS] = { "ports", "ports", port_cols, sizeof(port_cols) / sizeof(port_cols[0]) },
	[LIVE_ENDPOINTS] = { "endpoints", "endpoints", endpoint_cols,
			     sizeof(endpoint_cols) / sizeof(endpoint_cols[0]) },
};

static const char *const help[] = {
	"q            quit",
	"space        stop and go on",
	"left, right  sort by another column",
	"r            reverse the order",
	"up, down     scroll; also by page",
	"p            ports, or nodes",
	"e            endpoints, or nodes",
	"n            next node, then all",
	"h            help",
	"",
	"LAG          how far the barrier is behind the clock",
	"HELD         for how long it has been late",
	"HELD_BY      the neighbour whose barrier it waits for",
};

/* ---- keys ---- */

static void show_table(struct live_view *v, enum live_table t)
{
	v->table = v->table == t ? LIVE_NODES : t;
	v->first = 0;
}

bool live_key(struct live_view *v, int key, size_t nodes)
{
	size_t *sort = &v->sort[v->table], n = tables[v->table].n, page = v->page ? v->page : 1;
	bool helped = v->help;

	v->help = false;
	switch (key) {
	case 'q':
	case 'Q':
		v->quit = true;
		return true;
	case ' ':
		v->paused = !v->paused;
		return true;
	case 'h':
	case '?':
		v->help = !helped;
		return true;
	case 'p':
		show_table(v, LIVE_PORTS);
		return true;
	case 'e':
		show_table(v, LIVE_ENDPOINTS);
		return true;
	case 'n':
		v->node = v->node < nodes ? v->node + 1 : 0;
		v->first = 0;
		return true;
	case 'r':
		v->reverse[v->table] = !v->reverse[v->table];
		return true;
	case LIVE_RIGHT:
	case '>':
		*sort = (*sort + 1) % n;
		return true;
	case LIVE_LEFT:
	case '<':
		*sort = (*sort + n - 1) % n;
		return true;
	case LIVE_DOWN:
		v->first++; /* live_screen() knows where the end is */
		return true;
	case LIVE_UP:
		v->first -= v->first > 0;
		return true;
	case LIVE_PAGE_DOWN:
		v->first += page;
		return true;
	case LIVE_PAGE_UP:
		v->first -= v->first < page ? v->first : page;
		return true;
	case LIVE_HOME:
		v->first = 0;
		return true;
	}
	return helped; /* any key leaves the help */
}

/* ---- rows ---- */

/* Returns the rows of a table: of all nodes, or of node number @node from 1 on. */
static json_t *rows_of(const json_t *reading, const struct table *t, size_t node)
{
	json_t *rows = json_array(), *n;
	size_t i;

	json_array_foreach(json_object_get(reading, "nodes"), i, n)
	{
		if (node && i + 1 != node)
			continue;
		if (t->rows)
			json_array_extend(rows, json_object_get(n, t->rows));
		else
			json_array_append(rows, n);
	}
	return rows;
}

/** struct order - a row that is sorted. */
struct order {
	json_t *row;
	const json_t *v;
	size_t at; /* where it was */
	bool reverse;
};

/* -1, 0 or 1: the order of two values in ascending order. */
static int compare_values(const json_t *x, const json_t *y)
{
	double a, b;

	if (json_is_string(x) && json_is_string(y))
		return strcmp(json_string_value(x), json_string_value(y));
	a = json_is_true(x) ? 1 : json_number_value(x);
	b = json_is_true(y) ? 1 : json_number_value(y);
	return a < b ? -1 : a > b;
}

static bool is_unknown(const json_t *v)
{
	return !v || json_is_null(v);
}

/* What is not known comes last, whichever way the order is. */
static int compare_rows(const void *p, const void *q)
{
	const struct order *a = p, *b = q;
	int d;

	if (is_unknown(a->v) || is_unknown(b->v))
		d = is_unknown(a->v) - is_unknown(b->v);
	else
		d = (json_is_string(a->v) ? 1 : -1) * (a->reverse ? -1 : 1) *
		    compare_values(a->v, b->v);
	return d ? d : a->at < b->at ? -1 : 1;
}

/* Sorts rows: texts rise, numbers fall, with @reverse the other way round. */
static json_t *sorted(json_t *rows, const char *key, bool reverse)
{
	size_t n = json_array_size(rows), i;
	struct order *o = calloc(n + 1, sizeof(*o));
	json_t *out = json_array();

	for (i = 0; o && i < n; i++) {
		o[i].row = json_array_get(rows, i);
		o[i].v = json_object_get(o[i].row, key);
		o[i].at = i;
		o[i].reverse = reverse;
	}
	if (o)
		qsort(o, n, sizeof(*o), compare_rows);
	for (i = 0; o && i < n; i++)
		json_array_append(out, o[i].row);
	free(o);
	json_decref(rows);
	return out;
}

/* ---- lines ---- */

static void add_line(struct live_lines *l, size_t width, size_t height, const char *text)
{
	size_t len = strlen(text), i;
	char *s;

	if (l->n == height)
		return;
	len = len < width ? len : width;
	s = malloc(len + 1);
	if (!s)
		return;
	/* names of processes and interfaces are anybody's: they do not command the terminal */
	for (i = 0; i < len; i++)
		s[i] = text[i] >= ' ' && text[i] < 0x7f ? text[i] : '?';
	s[len] = '\0';
	l->line[l->n++] = s;
}

static void title(const json_t *reading, const struct live_view *v, char *buf, size_t size)
{
	double at = json_number_value(json_object_get(reading, "time"));
	const json_t *nodes = json_object_get(reading, "nodes"), *one;
	time_t secs = (time_t)at;
	char when[16];
	struct tm tm;

	localtime_r(&secs, &tm);
	strftime(when, sizeof(when), "%H:%M:%S", &tm);
	one = v->node ? json_object_get(json_array_get(nodes, v->node - 1), "node") : NULL;
	snprintf(buf, size, "%s%s  %s of %s%s  (h: help)", when, v->paused ? " STOPPED" : "",
		 tables[v->table].name, one ? json_string_value(one) : "all",
		 json_array_size(nodes) ? "" : "  there is no node");
}

static bool held_line(const json_t *node, char *buf, size_t size)
{
	const char *by = json_string_value(json_object_get(node, "held_by"));
	char since[32];

	if (!by || !*by)
		return false;
	snprintf(buf, size, "%s waits for %s: %s", json_string_value(json_object_get(node, "node")),
		 by,
		 out_time(json_integer_value(json_object_get(node, "held_ns")), since,
			  sizeof(since)));
	return true;
}

static bool error_line(const json_t *node, char *buf, size_t size)
{
	const char *error = json_string_value(json_object_get(node, "error"));

	if (!error || !*error)
		return false;
	snprintf(buf, size, "%s: %s", json_string_value(json_object_get(node, "node")), error);
	return true;
}

/* "{policy} held 12 frames; asked_per_s 3.0; ..." */
static bool admission_line(const json_t *node, char *buf, size_t size)
{
	const json_t *a = json_object_get(node, "admission");
	const char *key;
	size_t at;
	json_t *v;

	if (!json_is_object(a))
		return false;
	at = (size_t)snprintf(buf, size,
			      "%s admission:", json_string_value(json_object_get(node, "node")));
	json_object_foreach((json_t *)a, key, v)
	{
		if (at >= size)
			break;
		if (json_is_string(v))
			at += (size_t)snprintf(buf + at, size - at, " %s", json_string_value(v));
		else
			at += (size_t)snprintf(buf + at, size - at, "; %s %.*f", key,
					       json_is_real(v), json_number_value(v));
	}
	return true;
}

/* Prints the lines above the tables, at most @most of each kind. @node: 0: of all nodes */
static void put_notes(FILE *f, const json_t *reading, size_t node, size_t most)
{
	static bool (*const kinds[])(const json_t *, char *, size_t) = { error_line, held_line,
									 admission_line };
	size_t i, k, put;
	char buf[512];
	json_t *n;

	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		put = 0;
		json_array_foreach(json_object_get(reading, "nodes"), i, n)
		{
			if ((node && i + 1 != node) || put == most ||
			    !kinds[k](n, buf, sizeof(buf)))
				continue;
			fprintf(f, "%s\n", buf);
			put++;
		}
	}
}

/* Prints a table with a star at the column by which it is sorted. */
static void put_table(FILE *f, const struct table *t, json_t *rows, size_t sort)
{
	struct col cols[COLS_MAX];
	char head[HEAD_MAX];

	memcpy(cols, t->cols, t->n * sizeof(cols[0]));
	snprintf(head, sizeof(head), "%s*", cols[sort].head);
	cols[sort].head = head;
	out_table(f, rows, cols, t->n);
}

/* Adds what was written, line by line. */
static void add_text(struct live_lines *l, size_t width, size_t height, char *text)
{
	char *save, *s;

	for (s = strtok_r(text, "\n", &save); s; s = strtok_r(NULL, "\n", &save))
		add_line(l, width, height, s);
}

static json_t *slice(json_t *rows, size_t first, size_t n)
{
	json_t *out = json_array();
	size_t i;

	for (i = first; i < first + n && i < json_array_size(rows); i++)
		json_array_append(out, json_array_get(rows, i));
	json_decref(rows);
	return out;
}

static void put_help(struct live_lines *l, size_t width, size_t height)
{
	size_t i;

	for (i = 0; i < sizeof(help) / sizeof(help[0]); i++)
		add_line(l, width, height, help[i]);
}

static void draw(const json_t *reading, struct live_view *v, size_t width, size_t height,
		 struct live_lines *l)
{
	const struct table *t = &tables[v->table];
	json_t *rows = rows_of(reading, t, v->node);
	size_t all = json_array_size(rows), room;
	char *text = NULL, buf[256];
	FILE *f;

	f = open_memstream(&text, &(size_t){ 0 });
	if (!f) {
		json_decref(rows);
		return;
	}
	title(reading, v, buf, sizeof(buf));
	fprintf(f, "%s\n", buf);
	if (height > 8) /* a small screen is for the table */
		put_notes(f, reading, v->node, HELD_LINES);
	fclose(f);
	add_text(l, width, height, text);
	free(text);
	l->heading = l->n;
	room = height - l->n;
	v->page = room > 1 ? room - 1 : 1;
	if (v->first + v->page > all)
		v->first = all > v->page ? all - v->page : 0;
	rows = sorted(rows, t->cols[v->sort[v->table]].key, v->reverse[v->table]);
	rows = slice(rows, v->first, v->page);
	text = NULL;
	f = open_memstream(&text, &(size_t){ 0 });
	if (f) {
		put_table(f, t, rows, v->sort[v->table]);
		fclose(f);
		add_text(l, width, height, text);
		free(text);
	}
	json_decref(rows);
}

void live_screen(const json_t *reading, struct live_view *v, size_t width, size_t height,
		 struct live_lines *out)
{
	size_t nodes = json_array_size(json_object_get(reading, "nodes"));

	*out = (struct live_lines){ .line = calloc(height + 1, sizeof(char *)) };
	if (!out->line || !height || !width)
		return;
	if (v->node > nodes)
		v->node = 0;
	if (v->help)
		put_help(out, width, height);
	else if (!reading)
		add_line(out, width, height, "reading ...");
	else
		draw(reading, v, width, height, out);
	if (v->help || !reading)
		out->heading = out->n;
}

void live_lines_free(struct live_lines *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		free(l->line[i]);
	free(l->line);
	*l = (struct live_lines){ 0 };
}

/* ---- text ---- */

void live_text(FILE *f, const json_t *reading)
{
	struct live_view v = { 0 };
	enum live_table k;
	char buf[256];

	title(reading, &v, buf, sizeof(buf));
	fprintf(f, "%.8s, %zu nodes, in %.2f s\n", buf,
		json_array_size(json_object_get(reading, "nodes")),
		json_number_value(json_object_get(reading, "interval_s")));
	put_notes(f, reading, 0, (size_t)-1);
	for (k = 0; k < LIVE_TABLES; k++) {
		json_t *rows = rows_of(reading, &tables[k], 0);
		size_t all = json_array_size(rows);

		/* of endpoints, those with the fullest rings */
		rows = sorted(rows, k == LIVE_ENDPOINTS ? "ring_used" : "node", false);
		if (k == LIVE_ENDPOINTS)
			rows = slice(rows, 0, TEXT_ENDPOINTS);
		if (json_array_size(rows))
			out_table(f, rows, tables[k].cols, tables[k].n);
		if (all > json_array_size(rows))
			fprintf(f, "and %zu endpoints more\n", all - json_array_size(rows));
		json_decref(rows);
	}
	fputc('\n', f);
	fflush(f);
}
