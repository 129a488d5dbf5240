// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline events: what has happened to the nodes of this machine, and with -f what happens.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "base/event.h"
#include "base/number.h"
#include "cli/cmd.h"
#include "cli/health/event_log.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "maps/meta_abi.h"

#define FOLLOW_LAST 10   /* events that -f begins with */
#define TURN_MS     1000 /* it looks so often where inotify tells nothing */

/** struct wish - what is wanted. */
struct wish {
	bool follow;
	long long last;                     /* events of the past; -1: all */
	uint64_t since_ns;                  /* CLOCK_REALTIME; 0: from the beginning */
	const char *node;                   /* NULL: all */
	bool event[BL_EVENTS_NUMBER], some; /* @some: only those */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Reads "90s", "10m", "2h", "1d" (before now), "2026-11-29 11:00[:00]" or "11:00[:00]". */
static uint64_t parse_since(const char *arg, struct argp_state *state)
{
	static const char *const dates[] = { "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S",
					     "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d" };
	static const struct {
		const char *unit;
		double s;
	} units[] = { { "s", 1 }, { "m", 60 }, { "h", 3600 }, { "d", 86400 } };
	time_t now = time(NULL);
	struct tm tm;
	unsigned int k;
	char *end;
	double v;

	for (k = 0; k < sizeof(dates) / sizeof(dates[0]); k++) {
		memset(&tm, 0, sizeof(tm));
		tm.tm_isdst = -1;
		end = strptime(arg, dates[k], &tm);
		if (end && !*end)
			return (uint64_t)mktime(&tm) * 1000000000;
	}
	for (k = 0; k < 2; k++) {
		localtime_r(&now, &tm);
		tm.tm_sec = 0;
		end = strptime(arg, k ? "%H:%M" : "%H:%M:%S", &tm);
		if (end && !*end)
			return (uint64_t)mktime(&tm) * 1000000000;
	}
	v = strtod(arg, &end);
	for (k = 0; end != arg && v >= 0 && k < sizeof(units) / sizeof(units[0]); k++)
		if (!strcmp(end, units[k].unit) && v * units[k].s < (double)now)
			return now_ns() - (uint64_t)(v * units[k].s * 1e9);
	argp_error(state,
		   "--since \"%s\": how long ago, as 90s, 10m, 2h or 1d, or a time, as 11:30 or "
		   "\"2026-11-29 11:30\"",
		   arg);
	return 0;
}

static void parse_event(struct wish *w, const char *arg, struct argp_state *state)
{
	unsigned int k;

	for (k = 0; k < BL_EVENTS_NUMBER; k++)
		if (!strcmp(arg, bl_event_name((enum bl_event_kind)k))) {
			w->event[k] = w->some = true;
			return;
		}
	argp_error(state,
		   "--event \"%s\": there is no such event; `barline events --list` names "
		   "them",
		   arg);
}

static void list_events(void)
{
#define ROW(sym, name, fields, when) { name, fields, when },
	static const char *const rows[][3] = { BL_EVENTS(ROW) };
#undef ROW
	json_t *all = json_array();
	unsigned int k;

	for (k = 0; k < BL_EVENTS_NUMBER; k++)
		if (cli.json)
			json_array_append_new(all,
					      json_pack("{s:s, s:s, s:s}", "event", rows[k][0],
							"fields", rows[k][1], "when", rows[k][2]));
		else
			printf("%-22s %s\n", rows[k][0], rows[k][2]);
	if (cli.json)
		cli_json(json_pack("{s:O}", "events", all));
	json_decref(all);
}

enum { KEY_SINCE = 0x6000, KEY_NODE, KEY_EVENT, KEY_LIST };

static error_t parse_events(int key, char *arg, struct argp_state *state)
{
	struct wish *w = state->input;

	switch (key) {
	case 'f':
		w->follow = true;
		return 0;
	case 'N':
		if (!bl_read_integer(arg, 0, 1000000, &w->last))
			argp_error(state, "--last \"%s\": a number from 0 to 1000000", arg);
		return 0;
	case KEY_SINCE:
		w->since_ns = parse_since(arg, state);
		return 0;
	case KEY_NODE:
		w->node = arg;
		return 0;
	case KEY_EVENT:
		parse_event(w, arg, state);
		return 0;
	case KEY_LIST:
		list_events();
		exit(0);
	}
	return ARGP_ERR_UNKNOWN;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static bool is_wanted(const struct wish *w, const json_t *o)
{
	unsigned int k;

	if (event_time(o) < w->since_ns || (w->node && strcmp(w->node, text_of(o, "node"))))
		return false;
	if (!w->some)
		return true;
	for (k = 0; k < BL_EVENTS_NUMBER; k++)
		if (w->event[k] &&
		    !strcmp(text_of(o, "event"), bl_event_name((enum bl_event_kind)k)))
			return true;
	return false;
}

/* Control characters of a hostile file must not reach the terminal. */
static void print_plainly(const char *s)
{
	for (; *s; s++)
		putchar((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s);
}

static void print_event(const json_t *o)
{
	uint64_t ns = event_time(o);
	time_t s = (time_t)(ns / 1000000000);
	const char *node = text_of(o, "node"), *text = text_of(o, "text");
	size_t n = strlen(node);
	char date[32];
	struct tm tm;

	if (cli.json) {
		json_dumpf(o, stdout, JSON_COMPACT);
		putchar('\n');
		return;
	}
	localtime_r(&s, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
	printf("%s.%06u ", date, (unsigned int)(ns % 1000000000 / 1000));
	print_plainly(node);
	putchar(' ');
	print_plainly(text_of(o, "event"));
	/* Sentences begin with the name of the node, which stands there already. */
	fputs(": ", stdout);
	print_plainly(n && !strncmp(text, node, n) && !strncmp(text + n, ": ", 2) ? text + n + 2
										  : text);
	putchar('\n');
}

/* Prints the lines that were read, the last @last of those that are wanted; -1: all. */
static void print_lines(const struct wish *w, struct event_log *l, long long last)
{
	size_t n = json_array_size(l->lines), k, wanted = 0;

	for (k = 0; k < n; k++)
		wanted += is_wanted(w, json_array_get(l->lines, k));
	for (k = 0; k < n; k++) {
		const json_t *o = json_array_get(l->lines, k);

		if (is_wanted(w, o) && (last < 0 || (long long)wanted-- <= last))
			print_event(o);
	}
	json_array_clear(l->lines);
	fflush(stdout);
}

/* Until stdout is closed, or a signal comes. */
static int follow(const struct wish *w, struct event_log *l)
{
	struct pollfd p[2] = { { .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), .events = POLLIN },
			       { .fd = STDOUT_FILENO } };
	char buf[4096];
	int watch = -1;

	for (;;) {
		/* The directory may come later, with the first node. */
		if (watch < 0 && p[0].fd >= 0)
			watch = inotify_add_watch(p[0].fd, l->dir,
						  IN_MODIFY | IN_CREATE | IN_MOVED_TO |
							  IN_DELETE_SELF);
		if (poll(p, 2, TURN_MS) < 0 && errno != EINTR)
			return cli_fail("poll: %s", strerror(errno));
		if (p[1].revents & (POLLERR | POLLHUP))
			return 0;
		while (p[0].fd >= 0 && read(p[0].fd, buf, sizeof(buf)) > 0)
			;
		event_log_read(l);
		print_lines(w, l, -1);
		if (ferror(stdout))
			return 0;
		if (watch >= 0 && access(l->dir, F_OK))
			watch = -1;
	}
}

int cmd_events(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "follow", 'f', NULL, 0, "go on, and print what happens", 0 },
		{ "last", 'N', "N", 0, "only the last N events of the past (with -f 10)", 0 },
		{ "since", KEY_SINCE, "TIME", 0,
		  "only later ones: 90s, 10m, 2h or 1d ago, or at 11:30 or \"2026-11-29 11:30\"",
		  0 },
		{ "node", KEY_NODE, "NAME", 0, "only of this node", 0 },
		{ "event", KEY_EVENT, "NAME", 0, "only this event; may be repeated", 0 },
		{ "list", KEY_LIST, NULL, 0, "name all events and when they are sent", 0 },
		{ 0 }
	};
	static const struct argp argp = { .options = options,
					  .parser = parse_events,
					  .children = cmd_globals,
					  .doc = "barline events - what has happened to the nodes "
						 "of this machine\v"
						 "Merges the files of events of all nodes, in the "
						 "order of their times. With "
						 "-j, one JSON object per line. Controllers and "
						 "arbiters have theirs in the "
						 "journal only: journalctl "
						 "BARLINE_ROLE=controller. docs/health.md lists "
						 "the "
						 "events." };
	struct wish w = { .last = -1 };
	struct event_log l;
	int rc = 0;

	cmd_parse(&argp, argc, argv, &w);
	event_log_open(&l, BL_RUN_DIR);
	event_log_read(&l);
	print_lines(&w, &l, w.last < 0 && w.follow && !w.since_ns ? FOLLOW_LAST : w.last);
	if (w.follow)
		rc = follow(&w, &l);
	if (l.refused)
		cli_say("%u lines or files were left out, because they are not those of events",
			l.refused);
	event_log_close(&l);
	return rc;
}
