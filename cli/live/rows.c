// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See rows.h. */
#include "cli/live/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/util/read.h"
#include "cli/live/holder.h"
#include "cli/util/growth.h"
#include "core/order/commit_core.h"
#include "core/order/line_core.h"

#define WORST 3 /* reasons that the text names */

bool live_filter_passes(const struct live_filter *f, const char *name)
{
	int i;

	for (i = 0; i < f->n; i++)
		if (!strcmp(f->names[i], name))
			return true;
	return !f->n;
}

/** struct pair - a node in both snapshots. */
struct pair {
	const struct live_node *was, *is; /* @was NULL: it is new, or its maps are */
	uint64_t ns;                      /* between its two readings */
};

static json_t *rate(const struct pair *p, uint64_t before, uint64_t now)
{
	return json_real(growth_per_s(counter_growth(before, now), p->ns));
}

/* ---- drops ---- */

/** struct drop - a reason, and how many frames it took. */
struct drop {
	unsigned int reason;
	uint64_t n;
};

static int by_number(const void *a, const void *b)
{
	const struct drop *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return x->reason < y->reason ? -1 : x->reason > y->reason;
}

/* How much each reason for drops has grown, the greatest first. Returns their number. */
static size_t drops_of(const struct bl_counts *before, const struct bl_counts *now,
		       struct drop d[BL_REASON_MAX])
{
	size_t n = 0;
	unsigned int k;

	for (k = 0; k < BL_REASON_MAX; k++) {
		uint64_t grown = counter_growth(before->n[k], now->n[k]);

		if (grown && k != BL_R_CLONE_STALE && reason_kind(k) == BL_KIND_DROP)
			d[n++] = (struct drop){ k, grown };
	}
	qsort(d, n, sizeof(*d), by_number);
	return n;
}

/* Adds "dropped_per_s", "drops", and "worst": the first reasons with their rates, as text. */
static void add_drops(json_t *row, const struct pair *p, const struct bl_counts *before,
		      const struct bl_counts *now)
{
	struct drop d[BL_REASON_MAX];
	json_t *drops = json_array();
	char worst[128] = "";
	struct bl_text t = { .buf = worst, .size = sizeof(worst) };
	size_t n = drops_of(before, now, d), i;
	uint64_t all = 0;

	for (i = 0; i < n; i++) {
		double per_s = growth_per_s(d[i].n, p->ns);

		all += d[i].n;
		json_array_append_new(drops, json_pack("{s:s, s:f}", "reason",
						       reason_name(d[i].reason), "per_s", per_s));
		if (i < WORST)
			bl_text_add(&t, "%s%s %.1f", i ? ", " : "", reason_name(d[i].reason),
				    per_s);
	}
	json_object_set_new(row, "dropped_per_s", json_real(growth_per_s(all, p->ns)));
	json_object_set_new(row, "worst", json_string(worst));
	json_object_set_new(row, "drops", drops);
}

static void add_rates(json_t *row, const struct pair *p, const struct bl_counts *before,
		      const struct bl_counts *now)
{
	json_object_set_new(row, "frames_per_s",
			    rate(p, counts_frames(before), counts_frames(now)));
	json_object_set_new(row, "bits_per_s",
			    rate(p, 8 * counts_bytes(before), 8 * counts_bytes(now)));
	json_object_set_new(row, "ordered_per_s", rate(p, counts_data(before), counts_data(now)));
	json_object_set_new(row, "beacons_per_s",
			    rate(p, counts_beacons(before), counts_beacons(now)));
	add_drops(row, p, before, now);
}

/* ---- barriers ---- */

/* How far a barrier is behind; one that is ahead of the clock lags by nothing. */
static json_t *lag_of(const struct live_node *n, uint64_t time)
{
	if (!n->bus_ns || time <= BL_C_UNKNOWN || time == BL_TIME_NONE)
		return json_null();
	return json_integer(time < n->bus_ns ? (json_int_t)(n->bus_ns - time) : 0);
}

/* Appends what the culprit is called: "h3 (h3 of s1), endpoint 61700 of 812". */
static void name_culprit(const struct live_culprit *c, char *buf, size_t size)
{
	struct bl_text t = { .buf = buf, .size = size };

	if (c->node)
		bl_text_add(&t, "%s", node_name(&c->node->ref));
	else if (c->node_id)
		bl_text_add(&t, "node %u", c->node_id);
	else
		bl_text_add(&t, "unknown");
	bl_text_add(&t, " (%s of %s)", c->port->name, node_name(&c->at->ref));
	if (c->ep)
		bl_text_add(&t, ", endpoint %u of process %u", c->ep->s.port, c->ep->s.pid);
}

static json_t *hold_row(const struct live_snap *s, const struct live_node *n, unsigned int set,
			enum live_stream stream)
{
	const struct live_hold *h = &n->hold[set][stream];
	const struct node_input *in = &n->in.in[h->input];
	struct live_culprit c;
	char by[160] = "";
	json_t *row;

	if (hold_follow(s, n, set, stream, BL_TIME_NONE, &c))
		name_culprit(&c, by, sizeof(by));
	row = json_pack("{s:i, s:s, s:s, s:i, s:I, s:b, s:i, s:i}", "set", (int)set, "stream",
			stream == LIVE_ORDER ? "order" : "reliable", "port", in->name, "lane",
			(int)h->lane, "neighbour_id", (json_int_t)in->life.neighbour, "frozen",
			!!(in->reg[h->lane].state & BL_REG_HELD), "inputs", (int)h->inputs, "late",
			(int)h->late);
	json_object_set_new(row, "lag_ns", lag_of(n, h->time));
	json_object_set_new(row, "without_ns", lag_of(n, h->next));
	json_object_set_new(row, "since_ns",
			    h->since_ns ? json_integer((json_int_t)(n->at_ns - h->since_ns))
					: json_null());
	json_object_set_new(row, "by", json_string(by));
	json_object_set_new(row, "by_node",
			    c.node ? json_string(node_name(&c.node->ref)) : json_null());
	json_object_set_new(row, "by_node_id", json_integer((json_int_t)c.node_id));
	json_object_set_new(row, "by_port", json_string(c.port ? c.port->name : ""));
	json_object_set_new(row, "at", json_string(c.at ? node_name(&c.at->ref) : ""));
	json_object_set_new(row, "by_endpoint",
			    c.ep ? json_integer((json_int_t)c.ep->s.port) : json_null());
	return row;
}

/* The hold that the node's line names: the one that is late for the longest time; NULL: none. */
static const json_t *named_hold(json_t *holds)
{
	const json_t *found = NULL, *since;
	json_int_t longest = -1;
	json_t *h;
	size_t i;

	json_array_foreach(holds, i, h)
	{
		since = json_object_get(h, "since_ns");
		if (json_is_null(since) || json_integer_value(since) <= longest)
			continue;
		longest = json_integer_value(since);
		found = h;
	}
	return found;
}

static void add_holds(json_t *row, const struct live_snap *s, const struct live_node *n)
{
	json_t *holds = json_array(), *h, *lag, *worst = NULL;
	const json_t *named;
	unsigned int set, k;
	char by[192] = "";
	size_t i;

	for (set = 0; set < BL_SETS_MAX; set++)
		for (k = 0; k < LIVE_STREAMS; k++)
			if (n->hold[set][k].known)
				json_array_append_new(holds,
						      hold_row(s, n, set, (enum live_stream)k));
	json_array_foreach(holds, i, h)
	{
		lag = json_object_get(h, "lag_ns");
		if (json_is_integer(lag) &&
		    !strcmp(json_string_value(json_object_get(h, "stream")), "order") &&
		    (!worst || json_integer_value(lag) > json_integer_value(worst)))
			worst = lag;
	}
	named = named_hold(holds);
	if (named)
		snprintf(by, sizeof(by), "%s%s", json_string_value(json_object_get(named, "by")),
			 !strcmp(json_string_value(json_object_get(named, "stream")), "reliable")
				 ? ", reliable"
				 : "");
	json_object_set(row, "lag_ns", worst ? worst : json_null());
	json_object_set_new(row, "held_by", json_string(by));
	json_object_set(row, "held_ns", named ? json_object_get(named, "since_ns") : json_null());
	json_object_set_new(row, "holds", holds);
}

static bool holds_back(const struct live_node *n, uint32_t input)
{
	unsigned int s, k;

	for (s = 0; s < BL_SETS_MAX; s++)
		for (k = 0; k < LIVE_STREAMS; k++)
			if (n->hold[s][k].known && n->hold[s][k].input == input &&
			    n->hold[s][k].since_ns)
				return true;
	return false;
}

/* Adds what the input with number @port is like; a host's NIC is the input of its ingress hook. */
static void add_input(json_t *row, const struct live_node *n, uint32_t port)
{
	const struct node_input *in = NULL;
	uint64_t least = 0, heard = 0;
	uint32_t i, l, lane;
	bool live;

	for (i = 0; i < n->in.n && !in; i++)
		if (n->in.in[i].port == port)
			in = &n->in.in[i];
	live = in && hold_input_time(in, LIVE_ORDER, &least, &lane);
	for (l = 0; in && l < BL_LANES_MAX; l++)
		heard = in->reg[l].heard_ns > heard ? in->reg[l].heard_ns : heard;
	json_object_set_new(row, "state",
			    json_string(!in    ? ""
					: live ? "live"
					       : input_state_name(in->reg[0].state)));
	json_object_set_new(row, "neighbour_id",
			    in ? json_integer((json_int_t)in->life.neighbour) : json_null());
	json_object_set_new(row, "lag_ns", live ? lag_of(n, least) : json_null());
	json_object_set_new(row, "silent_ns",
			    heard && in->watch_ns >= heard
				    ? json_integer((json_int_t)(in->watch_ns - heard))
				    : json_null());
	json_object_set_new(row, "holds", json_boolean(in && holds_back(n, i - 1)));
}

/* ---- ports, endpoints, admission ---- */

static const struct bl_counts *counts_before(const struct pair *p, uint32_t key)
{
	static const struct bl_counts none;
	int i;

	for (i = 0; p->was && i < p->was->counts; i++)
		if (p->was->count[i].key == key)
			return &p->was->count[i].n;
	return &none;
}

static json_t *queue_of(const struct live_node *n, uint32_t port)
{
	int i;

	for (i = 0; i < n->queues; i++)
		if (n->queue[i].port == port)
			return json_integer((json_int_t)n->queue[i].frames);
	return json_null();
}

static json_t *port_rows(const struct pair *p)
{
	const struct live_node *n = p->is;
	bool is_switch = n->ref.role == BL_ROLE_SWITCH;
	json_t *rows = json_array();
	int i;

	for (i = 0; i < n->counts; i++) {
		const struct count_row *c = &n->count[i];
		json_t *row;

		/* hooks that this host does not use */
		if (!is_switch && c->key > BL_HC_EGRESS && !counts_frames(&c->n))
			continue;
		row = json_pack("{s:s, s:s, s:s}", "node", node_name(&n->ref), "name", c->name,
				"role", c->role);
		add_rates(row, p, counts_before(p, c->key), &c->n);
		if (is_switch || c->key == BL_HC_INGRESS) {
			add_input(row, n, c->key);
			json_object_set_new(row, "queue_frames", queue_of(n, c->key));
		}
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *endpoint_rows(const struct live_node *n)
{
	json_t *rows = json_array();
	char addr[64];
	int i;

	for (i = 0; i < n->eps; i++) {
		const struct endpoint_row *e = &n->ep[i];
		uint64_t ts = e->line.ts;
		bool sends = ts && ts != BL_TIME_NONE && !bl_line_void(ts, e->word.over);

		json_array_append_new(
			rows, json_pack("{s:s, s:s, s:i, s:i, s:s, s:I, s:o, s:I, s:o, s:s}",
					"node", node_name(&n->ref), "addr",
					addr_text(e->s.addr, addr, sizeof(addr)), "port",
					(int)e->s.port, "pid", (int)e->s.pid, "process", e->s.name,
					"ring_bytes", (json_int_t)e->s.ring_bytes, "ring_used",
					e->ring_used < 0 ? json_null() : json_integer(e->ring_used),
					"in_flight", (json_int_t)bl_rwin_used(e->line.state),
					"sending_ns", sends ? lag_of(n, ts) : json_null(), "out",
					endpoint_out_name(&e->word)));
	}
	return rows;
}

static json_t *admission_row(const struct pair *p)
{
	const struct live_node *n = p->is;
	json_t *row;
	char key[48];
	int i;

	if (!n->policy)
		return json_null();
	row = json_pack("{s:s}", "policy", n->policy);
	if (n->ref.role == BL_ROLE_HOST) {
		json_object_set_new(row, "held_frames", json_integer((json_int_t)n->held_frames));
		json_object_set_new(row, "held_bytes", json_integer((json_int_t)n->held_bytes));
	}
	for (i = 0; i < n->counters; i++) {
		const struct live_counter *c = &n->counter[i];
		/* the policy may have changed in between */
		bool same = p->was && i < p->was->counters &&
			    !strcmp(p->was->counter[i].name, c->name);

		snprintf(key, sizeof(key), "%s_per_s", c->name);
		json_object_set_new(row, key, rate(p, same ? p->was->counter[i].n : 0, c->n));
	}
	return row;
}

static void sum_counts(const struct live_node *n, struct bl_counts *sum)
{
	int i;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; n && i < n->counts; i++)
		counts_add(sum, &n->count[i].n);
}

/* ---- states ---- */

static const char *node_state(const struct live_node *was, const struct live_node *is, bool first)
{
	if (is->error[0])
		return "unreadable";
	if (!was)
		return first ? "" : "new";
	if (was->maps && was->maps != is->maps)
		return "restarted";
	if (was->process[0] && is->process[0] &&
	    memcmp(was->process, is->process, sizeof(is->process)) != 0)
		return "daemon_restarted";
	return "";
}

static void set_state(const struct live_snap *old, const struct live_snap *now, struct live_node *n)
{
	const struct live_node *was = live_same_node(old, n);

	n->state = node_state(was, n, !old);
	n->state_ns = now->at_ns;
	if (!was || !*was->state || now->at_ns - was->state_ns > LIVE_STATE_NS)
		return;
	/* it is unreadable as long as it is, and shown no longer */
	if ((!*n->state && strcmp(was->state, "unreadable") != 0) ||
	    (*n->state && !strcmp(was->state, n->state) && !strcmp(n->state, "unreadable"))) {
		n->state = was->state;
		n->state_ns = was->state_ns;
	}
}

static void add_gone(struct live_snap *now, const struct live_node *n, uint64_t since)
{
	struct live_node *g;

	if (live_same_node(now, n) || now->at_ns - since > LIVE_STATE_NS)
		return;
	g = realloc(now->gone, (size_t)(now->gones + 1) * sizeof(*g));
	if (!g)
		return;
	now->gone = g;
	g = &g[now->gones++];
	memset(g, 0, sizeof(*g));
	g->ref = n->ref;
	g->state = "gone";
	g->state_ns = since;
}

void live_follow(const struct live_snap *old, struct live_snap *now)
{
	int i;

	live_holds(old, now);
	for (i = 0; i < now->nodes; i++)
		set_state(old, now, &now->node[i]);
	for (i = 0; old && i < old->nodes; i++)
		add_gone(now, &old->node[i], now->at_ns);
	for (i = 0; old && i < old->gones; i++)
		add_gone(now, &old->gone[i], old->gone[i].state_ns);
}

/* ---- nodes ---- */

static json_t *node_head(const struct live_snap *now, const struct live_node *n)
{
	return json_pack("{s:s, s:s, s:I, s:I, s:s, s:I, s:s, s:s, s:s}", "node",
			 node_name(&n->ref), "role", role_name(n->ref.role), "netns",
			 (json_int_t)n->ref.netns_ino, "node_id", (json_int_t)n->ref.meta.node_id,
			 "state", n->state, "state_ns", (json_int_t)(now->at_ns - n->state_ns),
			 "daemon", n->daemon, "clock", n->clock, "error", n->error);
}

/*
 * The time in which the counters of a node have grown: since the snapshot before, also if its maps
 * are new. 0: there is none to compare with.
 */
static uint64_t time_between(const struct live_snap *old, const struct live_node *was,
			     const struct live_node *is)
{
	if (!old || !is->at_ns || (was && !was->maps))
		return 0;
	return is->at_ns - (was ? was->at_ns : old->at_ns);
}

static json_t *node_row(const struct live_snap *old, const struct live_snap *now,
			const struct live_node *n)
{
	const struct live_node *was = live_same_node(old, n);
	struct pair p = { was && was->maps == n->maps ? was : NULL, n, time_between(old, was, n) };
	struct bl_counts before, is;
	json_t *row = node_head(now, n);

	sum_counts(p.was, &before);
	sum_counts(n, &is);
	add_rates(row, &p, &before, &is);
	add_holds(row, now, n);
	json_object_set_new(row, "bound_ns",
			    n->bus_ns ? json_integer((json_int_t)n->bound_ns) : json_null());
	json_object_set_new(row, "beacon_ns", json_integer((json_int_t)n->in.beacon_ns));
	json_object_set_new(row, "ports", port_rows(&p));
	json_object_set_new(row, "endpoints", endpoint_rows(n));
	json_object_set_new(row, "admission", admission_row(&p));
	return row;
}

json_t *live_reading(const struct live_snap *old, const struct live_snap *now,
		     const struct live_filter *f)
{
	json_t *nodes = json_array();
	int i;

	for (i = 0; i < now->nodes; i++)
		if (live_filter_passes(f, node_name(&now->node[i].ref)))
			json_array_append_new(nodes, node_row(old, now, &now->node[i]));
	for (i = 0; i < now->gones; i++)
		if (live_filter_passes(f, node_name(&now->gone[i].ref)))
			json_array_append_new(nodes, node_head(now, &now->gone[i]));
	return json_pack("{s:f, s:f, s:o}", "time", now->time_s, "interval_s",
			 old ? (double)(now->at_ns - old->at_ns) / 1e9 : 0.0, "nodes", nodes);
}
