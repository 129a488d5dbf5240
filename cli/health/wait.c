// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline wait: ends when something is true of the nodes of a network namespace. It looks every 50
 * ms, and after the first seconds every 200 ms; each look takes a few milliseconds, and asks no
 * process.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/netns.h"
#include "base/number.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "cli/health/health.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/proc.h"
#include "cli/util/read.h"
#include "maps/host_abi.h"

#define SOON_NS  2000000000ULL /* so long it looks often */
#define OFTEN_NS 50000000ULL
#define LATER_NS 200000000ULL

enum wait_for { FOR_READY, FOR_CLOCK, FOR_NEIGHBOUR, FOR_CONTROLLER, FOR_ENDPOINT, FOR_GONE };
static const char *const names[] = { "ready",      "clock",     "neighbour",
				     "controller", "endpoint=", "gone" };
/* the checks that each needs; 0: none */
static const unsigned int needs[] = { ~0U, 1U << CHECK_CLOCK, 1U << CHECK_NEIGHBOUR,
				      1U << CHECK_CONTROLLER | 1U << CHECK_DAEMON };

struct waiting {
	enum wait_for what;
	unsigned int port; /* FOR_ENDPOINT */
	bool given;        /* --for was given */
	double timeout_s;
	char missing[2048]; /* what is missing; "": nothing */
};

static void parse_for(struct waiting *w, const char *arg, struct argp_state *state)
{
	long long port;
	unsigned int k;

	for (k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		size_t n = strlen(names[k]);

		if (k == FOR_ENDPOINT ? strncmp(arg, names[k], n) : strcmp(arg, names[k]))
			continue;
		w->what = (enum wait_for)k;
		w->given = true;
		if (k == FOR_ENDPOINT && !bl_read_integer(arg + n, 1, 65535, &port))
			argp_error(state, "--for %s: a UDP port from 1 to 65535", arg);
		if (k == FOR_ENDPOINT)
			w->port = (unsigned int)port;
		return;
	}
	argp_error(state,
		   "--for \"%s\": there is ready, clock, neighbour, controller, endpoint=PORT and "
		   "gone",
		   arg);
}

/* Reads a time such as "30", "30s", "500ms" or "2m". */
static double parse_time(const char *arg, struct argp_state *state)
{
	static const struct {
		const char *unit;
		double s;
	} units[] = { { "ms", 0.001 }, { "s", 1 }, { "m", 60 }, { "", 1 } };
	char *end;
	double v = strtod(arg, &end);
	unsigned int k;

	for (k = 0; end != arg && k < sizeof(units) / sizeof(units[0]); k++)
		if (!strcmp(end, units[k].unit) && v >= 0 && v * units[k].s <= 1e6)
			return v * units[k].s;
	argp_error(state, "--timeout \"%s\": a time such as 30s, 500ms or 2m", arg);
	return 0;
}

static error_t parse_wait(int key, char *arg, struct argp_state *state)
{
	struct waiting *w = state->input;

	switch (key) {
	case 'f':
		parse_for(w, arg, state);
		return 0;
	case 't':
		w->timeout_s = parse_time(arg, state);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "\"%s\": say --for %s", arg, arg);
		return 0;
	case ARGP_KEY_END:
		if (!w->given)
			argp_error(state, "--for what? There is ready, clock, neighbour, "
					  "controller, endpoint=PORT and gone");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static bool has_endpoint(const struct bl_node_ref *ref, unsigned int port)
{
	struct bl_ep_slot s;
	struct bl_host_cfg cfg;

	if (ref->role != BL_ROLE_HOST || node_value(ref, BL_MAP_HOST_CFG, 0, &cfg, sizeof(cfg)) ||
	    port < cfg.port_base || port - cfg.port_base >= cfg.port_count)
		return false;
	return !node_value(ref, BL_MAP_EPS, port - cfg.port_base, &s, sizeof(s)) &&
	       s.active == BL_EP_ACTIVE;
}

/* Whether it is true of one node. If not, what is missing is in @w->missing. */
static bool is_true_of(struct waiting *w, const struct bl_node_ref *ref)
{
	static const enum node_check of[] = { 0, CHECK_CLOCK, CHECK_NEIGHBOUR, CHECK_CONTROLLER };
	const struct health_check *c;
	struct health h;
	bool good;

	if (w->what == FOR_ENDPOINT) {
		good = has_endpoint(ref, w->port);
		if (!good)
			snprintf(w->missing, sizeof(w->missing),
				 "no process is the endpoint %u of this host", w->port);
		return good;
	}
	good = health_read_some(ref, needs[w->what], &h);
	c = &h.check[of[w->what]];
	if (w->what == FOR_CONTROLLER)
		good = c->known && !strcmp(c->word, "ok");
	else if (w->what == FOR_NEIGHBOUR)
		good = c->known && (!strcmp(c->word, "ok") || !strcmp(c->word, "lagging"));
	if (good)
		return true;
	if (w->what == FOR_CONTROLLER && c->known && c->level == FOUND_OK &&
	    h.check[CHECK_DAEMON].level != FOUND_FAIL)
		snprintf(w->missing, sizeof(w->missing), "%s: %s", h.node, c->cause);
	else
		health_text(&h, w->missing, sizeof(w->missing));
	return false;
}

/* Endpoints are looked for on any host of the namespace; everything else is of each node. */
static bool is_true(struct waiting *w)
{
	struct bl_node_ref *refs = NULL;
	bool any = w->what == FOR_ENDPOINT, good = !any;
	struct bl_err err = { "" };
	int n = bl_nodes_find(&refs, bl_netns_ino(), &err), i;

	*w->missing = '\0';
	if (w->what == FOR_GONE) {
		if (n > 0)
			snprintf(w->missing, sizeof(w->missing), "%s is still there (%s)",
				 refs[0].meta.name, refs[0].dir);
		free(refs);
		return !n;
	}
	if (n <= 0)
		snprintf(w->missing, sizeof(w->missing), "%s",
			 n < 0 ? err.text : "no node in this network namespace");
	for (i = 0; i < n; i++) {
		bool is = is_true_of(w, &refs[i]);

		good = any ? good || is : good && is;
		if (!any && !is)
			break;
	}
	free(refs);
	return n > 0 && good;
}

int cmd_wait(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "for", 'f', "WHAT", 0,
		  "ready, clock, neighbour, controller, endpoint=PORT or gone", 0 },
		{ "timeout", 't', "TIME", 0, "at most so long, as 30s, 500ms or 2m (30s)", 0 },
		{ 0 }
	};
	static const struct argp argp = { .options = options,
					  .parser = parse_wait,
					  .children = cmd_globals,
					  .doc = "barline wait - wait until the nodes of this "
						 "network namespace are ready\v"
						 "ready: as `barline status` says. clock: bus time "
						 "may be used. neighbour: "
						 "all neighbours are heard. controller: there is a "
						 "session with the one that "
						 "leads. endpoint=PORT: a process is the endpoint "
						 "of that port. gone: no node "
						 "is left. Exit status 0 when it is so, 1 if it "
						 "was not in time; then one "
						 "line says what is missing." };
	struct waiting w = { .timeout_s = 30 };
	uint64_t begun = bl_mono_ns(), end, now;

	cmd_parse(&argp, argc, argv, &w);
	end = begun + (uint64_t)(w.timeout_s * 1e9);
	for (;;) {
		if (is_true(&w))
			break;
		now = bl_mono_ns();
		if (now >= end)
			return cli_fail("not in time: %s", w.missing);
		nap_ns(now - begun < SOON_NS ? OFTEN_NS : LATER_NS);
	}
	if (cli.json)
		cli_json(json_pack("{s:I}", "waited_ms",
				   (json_int_t)((bl_mono_ns() - begun) / 1000000)));
	return 0;
}
