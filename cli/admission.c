/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline admission set, show: the settings of admission on the nodes of a network namespace, while
 * they run.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/rate.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "cli/util/status.h"
#include "core/policy_core.h"
#include "loader/admission/apart.h"
#include "maps/top_token_abi.h"
#include "loader/admission/admission.h"
#include "loader/admission/admission_set.h"
#include "loader/admission/top_host.h"
#include "loader/admission/top_switch.h"
#include "maps/host_abi.h"

/* a controller gives each of three steps a second, if its file says nothing else */
#define RACK_WAIT_MS 10000
#define RACK_LOOK_US 5000

/* options of TOP on hosts follow from the one list: KEY_TOP + enum bl_top_option */
enum {
	KEY_RATE = 256,
	KEY_ALLOCATOR,
	KEY_K,
	KEY_T,
	KEY_T_US,
	KEY_RECENT,
	KEY_RETRY,
	KEY_COMING,
	KEY_LATE,
	KEY_REFUSE,
	KEY_FAR,
	KEY_LAPSE,
	KEY_OUTSIDE,
	KEY_TOKENS,
	KEY_DATA_FIRST,
	KEY_UNSCHEDULED,
	KEY_TOKEN_FRAMES,
	KEY_EXPIRY,
	KEY_SPRAY,
	KEY_RACK,
	KEY_TOP = 512
};

static const struct argp_option set_options[] = {
	{ "rate", KEY_RATE, "RATE", 0, "of the NIC, or of every metered port: as 250mbit", 0 },
	{ "rack", KEY_RACK, NULL, 0,
	  "the policy and rate of all nodes that the controller here knows", 0 },
	{ NULL, 0, NULL, 0, "Hosts:", 1 },
	{ "k", KEY_K, "N", 0, "PL2's K: frames in one burst", 1 },
	{ "t", KEY_T, "SLOTS", 0, "PL2's t: below that wait bursts go unsolicited; 0: never", 1 },
	{ "t-us", KEY_T_US, "US", 0, "the same as time", 1 },
	{ "recent-us", KEY_RECENT, "US", 0,
	  "how old a grant may be to justify an unsolicited burst", 1 },
	{ "retry-us", KEY_RETRY, "US", 0,
	  "a reservation without an answer is repeated after that long", 1 },
	{ "coming-us", KEY_COMING, "US", 0,
	  "a burst that was announced and does not come is released after that long; 0: never", 1 },
	{ "late-us", KEY_LATE, "US", 0,
	  "a burst that is later than that for its slot asks for another; 0: never", 1 },
	{ NULL, 0, NULL, 0, "Hosts, TOP:", 3 },
#define TOP_OPTION(sym, key, flag, least, most, dflt, text) \
	{ flag, KEY_TOP + BL_TOP_O_##sym, "VALUE", 0, text, 3 },
	BL_TOP_OPTIONS(TOP_OPTION)
#undef TOP_OPTION
		{ NULL, 0, NULL, 0, "Switches:", 2 },
	{ "allocator", KEY_ALLOCATOR, "NAME", 0, "two-counter, joint or bitmap", 2 },
	{ "refuse-us", KEY_REFUSE, "US", 0,
	  "PL2's T: above that wait unsolicited bursts are dropped", 2 },
	{ "far-us", KEY_FAR, "US", 0, "a reservation further ahead is refused", 2 },
	{ "lapse-us", KEY_LAPSE, "US", 0, "a promise that is not used lapses after that long", 2 },
	{ "outside", KEY_OUTSIDE, "PERCENT", 0,
	  "share of each port for traffic from outside the rack", 2 },
	{ "tokens", KEY_TOKENS, "MODE", 0, "top: drop or pace", 2 },
	{ "data-first", KEY_DATA_FIRST, "yes|no", 0,
	  "top, pace: data before tokens, within its share", 2 },
	{ "unscheduled-class", KEY_UNSCHEDULED, "yes|no", 0,
	  "top: a class for frames without a token", 2 },
	{ "token-frames", KEY_TOKEN_FRAMES, "N", 0, "top: tokens of one class", 2 },
	{ "expiry-tokens", KEY_EXPIRY, "N", 0, "top: token times that a token is good for", 2 },
	{ "spray", KEY_SPRAY, "yes|no", 0,
	  "top, switches that route: frames take the ways up in turn, not one way per flow", 2 },
	{ 0 }
};

static int64_t yes_no(const char *what, const char *arg, struct argp_state *state)
{
	if (strcmp(arg, "yes") && strcmp(arg, "no"))
		argp_error(state, "%s \"%s\": yes or no", what, arg);
	return *arg == 'y';
}

static int64_t number(const char *what, const char *arg, long long max, struct argp_state *state)
{
	long long v;

	if (!bl_read_integer(arg, 0, max, &v))
		argp_error(state, "%s \"%s\" is not a number from 0 to %lld", what, arg, max);
	return v;
}

/** struct set_args - @rack: of all nodes, by way of the controller. */
struct set_args {
	struct bl_admission_set set;
	bool rack;
};

/* What a controller passes on: a policy, and a rate or none. */
static bool for_rack(const struct bl_admission_set *s)
{
	struct bl_admission_set rest = *s;

	rest.policy = -1;
	rest.rate_bps = -1;
	return s->policy >= 0 &&
	       !memcmp(&rest, &(struct bl_admission_set)BL_ADMISSION_SAME, sizeof(rest));
}

static error_t parse_set(int key, char *arg, struct argp_state *state)
{
	struct set_args *all = state->input;
	struct bl_admission_set *s = &all->set;
	struct bl_err err;
	uint64_t rate;
	uint32_t v;

	if (key >= KEY_TOP && key < KEY_TOP + BL_TOP_O_COUNT) {
		if (bl_top_option_parse((unsigned int)key - KEY_TOP, arg, &v, &err))
			argp_error(state, "%s", err.text);
		s->top[key - KEY_TOP] = v + 1;
		return 0;
	}
	switch (key) {
	case KEY_RATE:
		if (!bl_rate_parse(arg, &rate))
			argp_error(state,
				   "rate \"%s\" is no rate: as 250mbit or 10gbit, from 2mbit to "
				   "1000gbit",
				   arg);
		s->rate_bps = (int64_t)rate;
		return 0;
	case KEY_ALLOCATOR:
		s->allocator = bl_allocator_by_name(arg);
		if (s->allocator < 0)
			argp_error(state, "allocator \"%s\": two-counter, joint or bitmap", arg);
		return 0;
	case KEY_K:
		s->k = number("K", arg, UINT32_MAX, state);
		return 0;
	case KEY_T:
		s->t_slots = number("t", arg, UINT32_MAX, state);
		return 0;
	case KEY_T_US:
		s->t_us = number("t-us", arg, UINT32_MAX, state);
		return 0;
	case KEY_RECENT:
		s->recent_us = number("recent-us", arg, UINT32_MAX, state);
		return 0;
	case KEY_RETRY:
		s->retry_us = number("retry-us", arg, UINT32_MAX, state);
		return 0;
	case KEY_COMING:
		s->coming_us = number("coming-us", arg, UINT32_MAX, state);
		return 0;
	case KEY_LATE:
		s->late_us = number("late-us", arg, UINT32_MAX, state);
		return 0;
	case KEY_REFUSE:
		s->refuse_us = number("refuse-us", arg, UINT32_MAX, state);
		return 0;
	case KEY_FAR:
		s->far_us = number("far-us", arg, UINT32_MAX, state);
		return 0;
	case KEY_LAPSE:
		s->lapse_us = number("lapse-us", arg, UINT32_MAX, state);
		return 0;
	case KEY_OUTSIDE:
		s->outside_percent = number("outside", arg, UINT32_MAX, state);
		return 0;
	case KEY_TOKENS:
		s->tokens = bl_token_mode_by_name(arg);
		if (s->tokens < 0)
			argp_error(state, "tokens \"%s\": drop or pace", arg);
		return 0;
	case KEY_DATA_FIRST:
		s->data_first = yes_no("data-first", arg, state);
		return 0;
	case KEY_UNSCHEDULED:
		s->unscheduled = yes_no("unscheduled-class", arg, state);
		return 0;
	case KEY_TOKEN_FRAMES:
		s->token_frames = number("token-frames", arg, BL_TOKEN_FRAMES_MAX, state);
		return 0;
	case KEY_EXPIRY:
		s->expiry_tokens = number("expiry-tokens", arg, BL_TOKEN_FRAMES_MAX, state);
		return 0;
	case KEY_SPRAY:
		s->spray = yes_no("spray", arg, state);
		return 0;
	case KEY_RACK:
		all->rack = true;
		return 0;
	case ARGP_KEY_ARG:
		if (s->policy >= 0)
			return ARGP_ERR_UNKNOWN;
		s->policy = bl_policy_by_name(arg);
		if (s->policy < 0)
			argp_error(state, "policy \"%s\": none, pl2, fastpass or top", arg);
		return 0;
	case ARGP_KEY_END:
		if (!memcmp(s, &(struct bl_admission_set)BL_ADMISSION_SAME, sizeof(*s)))
			argp_error(state, "set what? A policy (none, pl2, fastpass, top), or one "
					  "of the options");
		if (all->rack && !for_rack(s))
			argp_error(state, "--rack takes a policy, and at most --rate: hosts and "
					  "switches have no other setting in common");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/*
 * The reply of the controller that leads; @orders may be NULL. NULL after a message. The caller's.
 */
static json_t *ask_leader(const char *orders)
{
	json_t *all = status_ask_each("controller", orders), *one, *found = NULL;
	size_t i;

	json_array_foreach(all, i, one) if (!strcmp(json_string_value(json_object_get(one, "stat"
											   "e")),
						    "leader")) found = json_incref(one);
	if (!found && json_array_size(all))
		cli_fail("no controller of this network namespace leads; see `barline show "
			 "controller`");
	else if (!found)
		cli_fail("--rack goes by way of the controller that leads, and none runs in this "
			 "network namespace. Without "
			 "one: `barline admission set` on every node, switches first");
	json_decref(all);
	return found;
}

/* The change @number, as the controller tells it; NULL: it is not over yet. */
static json_t *rack_over(json_int_t number, int *rc)
{
	json_t *leader = ask_leader(NULL), *a = json_object_get(leader, "admission");

	if (!leader) {
		*rc = 1;
		return NULL;
	}
	if (json_integer_value(json_object_get(a, "change")) != number)
		*rc = cli_fail("another controller leads by now, and does not know what became of "
			       "this change; "
			       "see `barline admission show` on the nodes, or say it again");
	else if (!strcmp(json_string_value(json_object_get(a, "step")), "done"))
		json_incref(a);
	else
		a = NULL;
	json_decref(leader);
	return *rc ? NULL : a;
}

static int rack_said(json_t *a)
{
	json_t *one, *nodes = json_object_get(a, "nodes");
	bool refused = json_is_true(json_object_get(a, "refused"));
	int troubles = 0;
	size_t i;

	json_array_foreach(nodes, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "node"));
		const char *said = json_string_value(json_object_get(one, "changed"));
		const char *trouble = json_string_value(json_object_get(one, "trouble"));

		troubles += *trouble != 0;
		if (!cli.json && *trouble)
			printf("%s: %s\n", name, trouble);
		else if (!cli.json && !refused)
			printf("%s: %s\n", name, *said ? said : "nothing is different");
	}
	if (cli.json) {
		cli_json(json_incref(a));
		return refused || troubles;
	}
	if (refused)
		return cli_fail("nothing was changed, since not all nodes can");
	if (!json_array_size(nodes))
		return cli_fail("the controller knows no nodes yet");
	return troubles != 0;
}

static int set_rack(const struct bl_admission_set *s)
{
	json_t *reply, *a = NULL;
	const char *trouble;
	json_int_t number;
	char orders[64];
	int rc = 0, ms;

	snprintf(orders, sizeof(orders), "admission %s %" PRId64 "\n",
		 bl_policy_name((unsigned int)s->policy), s->rate_bps > 0 ? s->rate_bps : 0);
	reply = ask_leader(orders);
	if (!reply)
		return 1;
	trouble = json_string_value(json_object_get(reply, "trouble"));
	number = json_integer_value(json_object_get(reply, "number"));
	if (!number)
		rc = cli_fail("the controller: %s", trouble ? trouble
							    : "it is of a version that does not "
							      "know this order");
	json_decref(reply);
	for (ms = 0; !rc && !a && ms < RACK_WAIT_MS; ms += RACK_LOOK_US / 1000) {
		usleep(RACK_LOOK_US);
		a = rack_over(number, &rc);
	}
	if (rc)
		return rc;
	if (!a)
		return cli_fail("the controller has not ended change %d within %d ms", (int)number,
				RACK_WAIT_MS);
	rc = rack_said(a);
	json_decref(a);
	return rc;
}

int cmd_admission_set(int argc, char **argv)
{
	static const struct argp argp = { .options = set_options,
					  .parser = parse_set,
					  .args_doc = "[none|pl2|fastpass|top]",
					  .children = cmd_globals,
					  .doc = "barline admission set - other settings of "
						 "admission, while the node runs\vOn a host, pl2: "
						 "bursts wait for a grant; fastpass: frames wait "
						 "for timeslots; top: for tokens; "
						 "none: frames go at once. On a switch, pl2: "
						 "reservations are made and data needs one; top: "
						 "tokens are limited. The daemon's next start sets "
						 "what "
						 "its configuration says." };
	struct set_args args = { .set = BL_ADMISSION_SAME };
	struct bl_node_ref *refs;
	json_t *rows;
	struct bl_err err;
	char said[1024];
	int n, i, rc = 0;

	cmd_parse(&argp, argc, argv, &args);
	if (args.rack)
		return set_rack(&args.set);
	rows = json_array();
	n = nodes_here(&refs, false);
	for (i = 0; i < n && !rc; i++) {
		rc = bl_admission_change(&refs[i], &args.set, said, sizeof(said), &err);
		if (!rc && !cli.json)
			printf("%s: %s\n", refs[i].meta.name,
			       *said ? said : "nothing is different");
		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:s}", "node", refs[i].meta.name,
						"role", role_name(refs[i].role), "changed", said));
	}
	if (n >= 0)
		free(refs);
	if (n < 0 || rc) {
		json_decref(rows);
		return n < 0 ? 1 : cli_fail("%s", err.text);
	}
	if (cli.json)
		cli_json(json_pack("{s:O}", "nodes", rows));
	json_decref(rows);
	return 0;
}

static json_t *rate_json(uint32_t ns_q20)
{
	char text[32];

	return ns_q20 ? json_string(bl_rate_text(bl_rate_of_q20(ns_q20), text, sizeof(text)))
		      : json_null();
}

/* TOP's settings by their keys, and what follows from them */
static json_t *show_top(const struct bl_node_ref *ref)
{
	struct bl_top_cfg c;
	char text[32];
	json_t *o;
	unsigned int k;

	if (node_value(ref, BL_MAP_TOP_CFG, 0, &c, sizeof(c)))
		return NULL;
	o = json_pack("{s:I, s:I}", "slot_ns", (json_int_t)c.slot_ns, "expiry_ns",
		      (json_int_t)c.expiry_ns);
	for (k = 0; k < BL_TOP_O_COUNT; k++)
		json_object_set_new(
			o, bl_top_option_key(k),
			k == BL_TOP_O_LAW || k == BL_TOP_O_OBJECTIVE
				? json_string(bl_top_option_value(k, c.opt[k], text, sizeof(text)))
				: json_integer(c.opt[k]));
	for (k = 0; k < BL_TOP_RULES && c.rules[k].port; k++) {
		if (!k)
			json_object_set_new(o, "rules", json_array());
		json_array_append_new(json_object_get(o, "rules"),
				      json_pack("{s:i, s:i, s:I, s:I, s:I}", "port",
						c.rules[k].port, "protocol", c.rules[k].proto,
						"bytes", (json_int_t)c.rules[k].bytes,
						"deadline_us", (json_int_t)c.rules[k].deadline_us,
						"coflow", (json_int_t)c.rules[k].coflow));
	}
	return o;
}

/*
 * Policies of neighbours that do not fit @ref's: of a host its switch's, of a switch by port; null:
 * all fit.
 */
static json_t *show_apart(const struct bl_node_ref *ref)
{
	uint32_t own = bl_apart_own(ref), k = 0;
	bool host = ref->role == BL_ROLE_HOST;
	struct bl_host_page page;
	struct bl_life life;
	char text[256] = "";
	size_t at = 0;
	struct bl_err err;
	int fd;

	if (host) {
		if (node_value(ref, BL_MAP_HOST_PAGE, 0, &page, sizeof(page)))
			return json_null();
		return bl_policy_apart(own, page.life.policy)
			       ? json_string(bl_policy_name(page.life.policy - 1))
			       : json_null();
	}
	fd = bl_map_open(ref, BL_MAP_SW_LIVES, sizeof(life), false, &err);
	for (; fd >= 0 && own && k < BL_SW_PORTS_MAX && at < sizeof(text); k++)
		if (!bpf_map_lookup_elem(fd, &k, &life) && bl_policy_apart(own, life.policy))
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%sport %u: %s",
					       at ? ", " : "", k, bl_policy_name(life.policy - 1));
	if (fd >= 0)
		close(fd);
	return at ? json_string(text) : json_null();
}

static json_t *show_host(const struct bl_node_ref *ref)
{
	struct bl_hold_cfg c;
	json_t *top, *row;

	if (node_value(ref, BL_MAP_HOLD_CFG, 0, &c, sizeof(c)))
		return NULL;
	top = show_top(ref);
	if (!top)
		return NULL;
	row = json_pack("{s:s, s:s, s:b, s:s, s:o, s:i, s:I, s:I, s:I, s:I, s:I}", "node",
			ref->meta.name, "role", "host", "on", c.on, "policy",
			bl_policy_name(c.policy), "rate", rate_json(c.link.ns_q20), "k",
			(int)c.k_frames, "t_ns", (json_int_t)c.t_ns, "recent_ns",
			(json_int_t)c.recent_ns, "retry_ns", (json_int_t)c.retry_ns, "coming_ns",
			(json_int_t)c.coming_ns, "late_ns", (json_int_t)c.late_ns);
	json_object_set_new(row, "top", top);
	json_object_set_new(row, "apart", show_apart(ref));
	return row;
}

static json_t *show_switch(const struct bl_node_ref *ref)
{
	struct bl_token_cfg top;
	struct bl_rsv_cfg c;
	struct bl_meter m;
	struct bl_err err;
	uint32_t ns_q20 = 0, k;
	int fd, metered = 0;
	json_t *row;

	if (node_value(ref, BL_MAP_RSV_CFG, 0, &c, sizeof(c)) ||
	    node_value(ref, BL_MAP_TOKEN_CFG, 0, &top, sizeof(top)))
		return NULL;
	fd = bl_map_open(ref, BL_MAP_METERS, sizeof(m), false, &err);
	if (fd < 0) {
		cli_fail("%s", err.text);
		return NULL;
	}
	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		if (bpf_map_lookup_elem(fd, &k, &m) || !m.ns_q20)
			continue;
		metered++;
		if (m.ns_q20 > ns_q20)
			ns_q20 = m.ns_q20; /* the slowest */
	}
	close(fd);
	row = json_pack("{s:s, s:s, s:b, s:s, s:o, s:i, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:s, "
			"s:b, s:b, s:i, s:i, s:b}",
			"node", ref->meta.name, "role", "switch", "on", c.on || top.on || metered,
			"policy",
			bl_policy_name(c.on     ? BL_POLICY_PL2
				       : top.on ? BL_POLICY_TOP
						: BL_POLICY_NONE),
			"rate", rate_json(ns_q20), "metered_ports", metered, "allocator",
			bl_allocator_name(c.allocator), "reserved_rate", rate_json(c.ns_q20),
			"limit_bytes", (json_int_t)c.limit_bytes, "refuse_ns",
			(json_int_t)c.refuse_ns, "far_ns", (json_int_t)c.far_ns, "lapse_ns",
			(json_int_t)c.lapse_ns, "overlap_bytes", (json_int_t)c.overlap_bytes,
			"tokens", bl_token_mode_name(top.mode), "data_first", top.data_first,
			"unscheduled", top.unscheduled, "token_frames", (int)top.frames,
			"expiry_tokens", (int)top.expiry, "spray", top.spray);
	json_object_set_new(row, "apart", show_apart(ref));
	return row;
}

/* One table for each role: they share few settings. */
static void show_text(json_t *rows)
{
	static const struct col host[] = {
		{ "node", "HOST", 's' },      { "on", "BL0", 'b' },
		{ "policy", "POLICY", 's' },  { "apart", "SWITCH_HAS", 's' },
		{ "rate", "RATE", 's' },      { "k", "K", 'd' },
		{ "t_ns", "T", 't' },         { "recent_ns", "RECENT", 't' },
		{ "retry_ns", "RETRY", 't' }, { "coming_ns", "COMING", 't' },
		{ "late_ns", "LATE", 't' }
	};
	static const struct col sw[] = { { "node", "SWITCH", 's' },
					 { "policy", "POLICY", 's' },
					 { "apart", "NEIGHBOURS_HAVE", 's' },
					 { "allocator", "ALLOCATOR", 's' },
					 { "rate", "RATE", 's' },
					 { "metered_ports", "METERED", 'd' },
					 { "reserved_rate", "RESERVED", 's' },
					 { "limit_bytes", "LIMIT", 'k' },
					 { "refuse_ns", "REFUSE", 't' },
					 { "far_ns", "FAR", 't' },
					 { "lapse_ns", "LAPSE", 't' },
					 { "overlap_bytes", "OVERLAP", 'k' },
					 { "tokens", "TOKENS", 's' },
					 { "token_frames", "FRAMES", 'd' } };
	json_t *hosts = json_array(), *switches = json_array(), *r;
	size_t i;

	json_array_foreach(rows, i, r) json_array_append(
		*json_string_value(json_object_get(r, "role")) == 'h' ? hosts : switches, r);
	if (json_array_size(hosts))
		OUT_TABLE(stdout, hosts, host);
	if (json_array_size(switches))
		OUT_TABLE(stdout, switches, sw);
	json_decref(hosts);
	json_decref(switches);
}

static bool all_nodes;

static error_t parse_show(int key, char *arg, struct argp_state *state)
{
	(void)arg, (void)state;
	if (key != 'a')
		return ARGP_ERR_UNKNOWN;
	all_nodes = true;
	return 0;
}

int cmd_admission_show(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "all", 'a', NULL, 0, "nodes of all network namespaces of this machine", 0 }, { 0 }
	};
	static const struct argp argp = { .options = options,
					  .parser = parse_show,
					  .children = cmd_globals,
					  .doc = "barline admission show - how admission is set" };
	struct bl_node_ref *refs;
	json_t *rows, *row;
	int n, i;

	cmd_parse(&argp, argc, argv, NULL);
	n = nodes_here(&refs, all_nodes);
	if (n < 0)
		return 1;
	rows = json_array();
	for (i = 0; i < n; i++) {
		row = refs[i].role == BL_ROLE_HOST ? show_host(&refs[i]) : show_switch(&refs[i]);
		if (!row)
			break;
		json_array_append_new(rows, row);
	}
	free(refs);
	if (i == n && cli.json)
		cli_json(json_pack("{s:O}", "admission", rows));
	else if (i == n)
		show_text(rows);
	json_decref(rows);
	return i < n;
}
