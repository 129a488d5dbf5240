// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cli/live/: rates and states from two snapshots, who holds whom back, and what is shown of it on
 * screens of all sizes.
 */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "cli/live/holder.h"
#include "cli/live/rows.h"
#include "cli/live/screen.h"
#include "cli/live/tty.h"
#include "cli/util/growth.h"

#define MS 1000000ULL
#define S  1000000000ULL

static void growth__begins_anew_and_is_never_negative(void **state)
{
	const struct {
		uint64_t before, now, growth;
	} cases[] = { { 0, 0, 0 }, { 7, 7, 0 },    { 7, 8, 1 },
		      { 8, 7, 7 }, { 1000, 0, 0 }, { 0, ~0ULL, ~0ULL } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(counter_growth(cases[i].before, cases[i].now), cases[i].growth);
	assert_true(growth_per_s(300, 500 * MS) == 600.0);
	assert_true(growth_per_s(300, 0) == 0.0);
}

/* ---- a rack of one switch and some hosts ---- */

#define PORTS_MAX 64

/* struct world - what one snapshot points into. */
struct world {
	struct live_snap snap;
	struct live_node node[3];
	struct node_input in[3][PORTS_MAX];
	struct count_row count[3][PORTS_MAX];
	struct endpoint_row ep;
};

static void add_node(struct world *w, enum bl_role role, const char *name, uint32_t id, uint32_t n)
{
	int k = w->snap.nodes++;
	struct live_node *t = &w->node[k];

	t->ref.role = role;
	t->ref.netns_ino = 100 + (uint64_t)k;
	t->ref.meta.node_id = id;
	snprintf(t->ref.meta.name, sizeof(t->ref.meta.name), "%s", name);
	t->at_ns = w->snap.at_ns;
	t->bus_ns = 1000 * S;
	t->bound_ns = 20000;
	t->maps = 5;
	t->process[0] = 77;
	t->process[1] = 1;
	t->in.in = w->in[k];
	t->in.n = n;
	t->in.sets = 1;
	t->in.beacon_ns = 100000;
	t->count = w->count[k];
	t->counts = (int)n;
}

static void set_input(struct world *w, int node, uint32_t port, const char *name,
		      uint32_t neighbour, uint64_t b)
{
	struct node_input *in = &w->in[node][port];

	in->port = port;
	snprintf(in->name, sizeof(in->name), "%s", name);
	in->cfg.in_sets = 1;
	in->life.neighbour = neighbour;
	in->reg[0].state = BL_REG_LIVE | BL_REG_IN;
	in->reg[0].b = b;
	in->reg[0].c = b;
	in->reg[0].heard_ns = 1;
	in->watch_ns = 1 + MS;
	snprintf(w->count[node][port].name, sizeof(w->count[node][port].name), "%s", name);
	w->count[node][port].key = port;
	w->count[node][port].role = "host";
}

/* s1 with h1 and h2 and, silent for 610 ms, h3. h1 is on this machine as well. */
static void make_rack(struct world *w, uint64_t at)
{
	uint64_t now = 1000 * S;

	memset(w, 0, sizeof(*w));
	w->snap.at_ns = at;
	w->snap.time_s = (double)at / 1e9;
	w->snap.node = w->node;
	add_node(w, BL_ROLE_SWITCH, "s1", 10, 3);
	add_node(w, BL_ROLE_HOST, "h1", 1, 1);
	set_input(w, 0, 0, "p1", 1, now - 100000);
	set_input(w, 0, 1, "p2", 2, now);
	set_input(w, 0, 2, "p3", 3, now - 610 * MS);
	set_input(w, 1, 0, "eth0", 10, now - 610 * MS);
}

static const json_t *node_at(const json_t *reading, size_t i)
{
	return json_array_get(json_object_get(reading, "nodes"), i);
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "(none)";
}

static json_t *compare(struct world *old, struct world *now)
{
	static const struct live_filter all = { 0 };

	live_follow(NULL, &old->snap);
	live_follow(&old->snap, &now->snap);
	return live_reading(&old->snap, &now->snap, &all);
}

/* ---- who holds ---- */

static void hold__the_minimum_of_live_inputs(void **state)
{
	struct world w;
	struct live_hold h;

	(void)state;
	make_rack(&w, 9 * S);
	hold_find(&w.node[0].in, 0, LIVE_ORDER, 1000 * S, &h);
	assert_true(h.known);
	assert_int_equal(h.input, 2);
	assert_int_equal(h.time, 1000 * S - 610 * MS);
	assert_int_equal(h.next, 1000 * S - 100000);
	assert_int_equal(h.inputs, 3);
	assert_int_equal(h.late, 1);

	/* an input that is out of the minimum holds nobody back */
	w.in[0][2].reg[0].state = BL_REG_DEAD;
	hold_find(&w.node[0].in, 0, LIVE_ORDER, 1000 * S, &h);
	assert_int_equal(h.input, 0);
	assert_int_equal(h.next, 1000 * S);
	assert_int_equal(h.late, 0);

	/* but the reliable stream waits for one that is frozen */
	w.in[0][2].reg[0].state = BL_REG_DEAD | BL_REG_IN | BL_REG_HELD;
	hold_find(&w.node[0].in, 0, LIVE_RELIABLE, 1000 * S, &h);
	assert_int_equal(h.input, 2);
	/* and for one of which it is not known what is there */
	w.in[0][2].reg[0].state = BL_REG_ABSENT | BL_REG_AWAITED;
	w.in[0][2].reg[0].c = BL_C_UNKNOWN;
	hold_find(&w.node[0].in, 0, LIVE_RELIABLE, 1000 * S, &h);
	assert_int_equal(h.input, 2);
	assert_int_equal(h.time, BL_C_UNKNOWN);
}

static void hold__sets_and_lanes(void **state)
{
	struct world w;
	struct live_hold h;

	(void)state;
	make_rack(&w, 9 * S);
	w.in[0][2].cfg.in_sets = 2; /* p3 feeds set 1 only */
	hold_find(&w.node[0].in, 0, LIVE_ORDER, 1000 * S, &h);
	assert_int_equal(h.input, 0);
	hold_find(&w.node[0].in, 1, LIVE_ORDER, 1000 * S, &h);
	assert_int_equal(h.input, 2);
	assert_int_equal(h.next, BL_TIME_NONE);
	hold_find(&w.node[0].in, 2, LIVE_ORDER, 1000 * S, &h);
	assert_false(h.known);
	/* the least of an input's lanes counts */
	w.in[0][1].reg[3] = w.in[0][1].reg[0];
	w.in[0][1].reg[3].b = 5;
	hold_find(&w.node[0].in, 0, LIVE_ORDER, 1000 * S, &h);
	assert_int_equal(h.input, 1);
	assert_int_equal(h.lane, 3);
	/* with a clock that is void, nobody is late */
	hold_find(&w.node[0].in, 0, LIVE_ORDER, 0, &h);
	assert_int_equal(h.late, 0);
}

/* The limit of lateness: ten beacon intervals, but not less than HOLD_LATE_NS. */
static void hold__late_at_the_edge(void **state)
{
	const struct {
		uint64_t beacon, lag;
		uint32_t late;
	} cases[] = { { 100000, HOLD_LATE_NS, 0 },
		      { 100000, HOLD_LATE_NS + 1, 1 },
		      { 2 * MS, 20 * MS, 0 },
		      { 2 * MS, 20 * MS + 1, 1 } };
	struct live_hold h;
	struct world w;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		make_rack(&w, 9 * S);
		w.node[0].in.beacon_ns = cases[i].beacon;
		w.in[0][2].reg[0].b = 1000 * S - cases[i].lag;
		hold_find(&w.node[0].in, 0, LIVE_ORDER, 1000 * S, &h);
		assert_int_equal(h.late, cases[i].late);
	}
}

/* A host waits for the host that its switch waits for, and that one's endpoint is named. */
static void follow__from_switch_to_switch(void **state)
{
	struct live_culprit c;
	struct world w;

	(void)state;
	make_rack(&w, 9 * S);
	live_follow(NULL, &w.snap);
	assert_true(hold_follow(&w.snap, &w.node[1], 0, LIVE_ORDER, BL_TIME_NONE, &c));
	assert_ptr_equal(c.at, &w.node[0]);
	assert_string_equal(c.port->name, "p3");
	assert_int_equal(c.node_id, 3);
	assert_null(c.node);

	add_node(&w, BL_ROLE_HOST, "h3", 3, 1);
	set_input(&w, 2, 0, "eth0", 10, 1000 * S);
	w.ep.line.ts = 1000 * S - 610 * MS;
	w.node[2].ep = &w.ep;
	w.node[2].eps = 1;
	live_follow(NULL, &w.snap);
	assert_true(hold_follow(&w.snap, &w.node[1], 0, LIVE_ORDER, BL_TIME_NONE, &c));
	assert_ptr_equal(c.node, &w.node[2]);
	assert_ptr_equal(c.ep, &w.ep);
	/* a send that has been declared void holds nobody back, nor one that has just begun */
	w.ep.word.over = w.ep.line.ts;
	assert_true(hold_follow(&w.snap, &w.node[1], 0, LIVE_ORDER, BL_TIME_NONE, &c));
	assert_null(c.ep);
	w.ep.word.over = 0;
	w.ep.line.ts = 1000 * S - 10;
	assert_true(hold_follow(&w.snap, &w.node[1], 0, LIVE_ORDER, BL_TIME_NONE, &c));
	assert_null(c.ep);
	/* two racks of one machine have the same numbers: none is named rather than the wrong one
	 */
	w.node[2].ref.role = BL_ROLE_SWITCH;
	w.node[2].ref.meta.node_id = 10;
	w.in[2][0].life.neighbour = 1;
	assert_true(hold_follow(&w.snap, &w.node[1], 0, LIVE_ORDER, BL_TIME_NONE, &c));
	assert_ptr_equal(c.at, &w.node[1]);
}

/* Only what has not passed the time that somebody waits for is followed. */
static void follow__what_waits_for_a_time(void **state)
{
	const uint64_t of_p3 = 1000 * S - 610 * MS;
	struct live_culprit c;
	struct world w;

	(void)state;
	make_rack(&w, 9 * S);
	live_follow(NULL, &w.snap);
	assert_true(hold_follow(&w.snap, &w.node[1], 0, LIVE_ORDER, of_p3, &c));
	assert_string_equal(c.port->name, "p3");
	assert_false(hold_follow(&w.snap, &w.node[1], 0, LIVE_ORDER, of_p3 - 1, &c));
	/* the switch has passed it, and what it sent has not arrived: no other host is to blame */
	w.in[0][2].reg[0].b = 1000 * S - MS;
	live_follow(NULL, &w.snap);
	assert_true(hold_follow(&w.snap, &w.node[1], 0, LIVE_ORDER, of_p3, &c));
	assert_ptr_equal(c.at, &w.node[1]);
	assert_ptr_equal(c.node, &w.node[0]);
	/* the reliable stream goes by its own registers */
	assert_true(hold_follow(&w.snap, &w.node[1], 0, LIVE_RELIABLE, of_p3, &c));
	assert_string_equal(c.port->name, "p3");
}

/* Switches that wait for each other, as nonsense in maps would have it, do not hang the command. */
static void follow__ends_in_a_circle(void **state)
{
	struct live_culprit c;
	struct world w;

	(void)state;
	make_rack(&w, 9 * S);
	w.node[1].ref.role = BL_ROLE_SWITCH;
	w.in[0][0].reg[0].b = 1;
	live_follow(NULL, &w.snap);
	assert_true(hold_follow(&w.snap, &w.node[0], 0, LIVE_ORDER, BL_TIME_NONE, &c));
}

/* Late since the barrier stands still; one that goes on and stays late, since it was first late. */
static void since__is_carried_on(void **state)
{
	static struct world a, b, c;

	(void)state;
	make_rack(&a, 9 * S);
	make_rack(&b, 10 * S);
	make_rack(&c, 11 * S);
	a.in[0][2].reg[0].b = 1000 * S - 20 * MS;
	b.in[0][2].reg[0].b = 1000 * S - 30 * MS;
	c.in[0][2].reg[0].b = 1000 * S;
	live_follow(NULL, &a.snap);
	live_follow(&a.snap, &b.snap);
	live_follow(&b.snap, &c.snap);
	assert_int_equal(a.node[0].hold[0][LIVE_ORDER].since_ns, 9 * S - 20 * MS);
	assert_int_equal(b.node[0].hold[0][LIVE_ORDER].since_ns, 9 * S - 20 * MS);
	assert_int_equal(c.node[0].hold[0][LIVE_ORDER].since_ns, 0);
	/* another input is late: since its own barrier stands still */
	make_rack(&b, 10 * S);
	b.in[0][2].reg[0].b = 1000 * S;
	b.in[0][1].reg[0].b = 1000 * S - 30 * MS;
	live_follow(&a.snap, &b.snap);
	assert_int_equal(b.node[0].hold[0][LIVE_ORDER].since_ns, 10 * S - 30 * MS);
}

/* ---- readings ---- */

static void reading__rates_and_drops(void **state)
{
	static struct world a, b;
	const json_t *n, *p, *d;
	json_t *r;

	(void)state;
	make_rack(&a, 9 * S);
	make_rack(&b, 11 * S);
	a.count[0][0].n.n[BL_R_FORWARDED] = 100;
	b.count[0][0].n.n[BL_R_FORWARDED] = 300;
	b.count[0][0].n.n[BL_R_TS_AHEAD] = 4;
	b.count[0][0].n.n[BL_R_RING_FULL] = 10;
	b.count[0][0].n.n[BL_R_CLONE_STALE] = 1000; /* no drop that anybody misses */
	b.count[0][0].n.n[BL_R_EXCLUDED] = 50;      /* a note */
	r = compare(&a, &b);
	n = node_at(r, 0);
	assert_string_equal(text_of(n, "state"), "");
	assert_true(json_number_value(json_object_get(n, "ordered_per_s")) == 100.0);
	assert_true(json_number_value(json_object_get(n, "dropped_per_s")) == 7.0);
	assert_string_equal(text_of(n, "worst"), "ring_full 5.0, ts_ahead 2.0");
	p = json_array_get(json_object_get(n, "ports"), 0);
	assert_true(json_number_value(json_object_get(p, "ordered_per_s")) == 100.0);
	d = json_array_get(json_object_get(p, "drops"), 0);
	assert_string_equal(text_of(d, "reason"), "ring_full");
	assert_int_equal(json_array_size(json_object_get(p, "drops")), 2);
	assert_true(json_number_value(json_object_get(r, "interval_s")) == 2.0);
	json_decref(r);
}

static void reading__names_who_holds(void **state)
{
	static struct world a, b;
	const json_t *h;
	json_t *r;

	(void)state;
	make_rack(&a, 9 * S);
	make_rack(&b, 10 * S);
	r = compare(&a, &b);
	assert_string_equal(text_of(node_at(r, 0), "held_by"), "node 3 (p3 of s1)");
	assert_string_equal(text_of(node_at(r, 1), "held_by"), "node 3 (p3 of s1)");
	h = json_array_get(json_object_get(node_at(r, 0), "holds"), 0);
	assert_string_equal(text_of(h, "stream"), "order");
	assert_int_equal(json_integer_value(json_object_get(h, "lag_ns")), 610 * MS);
	assert_int_equal(json_integer_value(json_object_get(h, "without_ns")), 100000);
	h = json_array_get(json_object_get(node_at(r, 0), "ports"), 2);
	assert_true(json_is_true(json_object_get(h, "holds")));
	assert_string_equal(text_of(h, "state"), "live");
	json_decref(r);
	/* nobody is late */
	a.in[0][2].reg[0].b = b.in[0][2].reg[0].b = b.in[0][2].reg[0].c = 1000 * S;
	b.in[1][0].reg[0].b = b.in[1][0].reg[0].c = 1001 * S; /* ahead of the clock */
	r = compare(&a, &b);
	assert_string_equal(text_of(node_at(r, 0), "held_by"), "");
	assert_int_equal(json_integer_value(json_object_get(node_at(r, 1), "lag_ns")), 0);
	json_decref(r);
}

/* No rate is negative or absurd, whatever became of a node in between. */
static void reading__restarts_and_disappearances(void **state)
{
	const struct {
		uint32_t maps;
		uint64_t start;
		const char *state;
		double per_s;
	} cases[] = { { 5, 1, "", 100 },
		      { 6, 1, "restarted", 300 }, /* the new maps counted from 0 */
		      { 6, 2, "restarted", 300 },
		      { 5, 2, "daemon_restarted", 100 } };
	static struct world a, b;
	json_t *r;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		make_rack(&a, 9 * S);
		make_rack(&b, 10 * S);
		a.count[0][0].n.n[BL_R_FORWARDED] = 200;
		b.count[0][0].n.n[BL_R_FORWARDED] = 300;
		a.count[0][0].n.bytes[BL_R_FORWARDED] = 20000;
		b.count[0][0].n.bytes[BL_R_FORWARDED] = 30000;
		b.node[0].maps = cases[i].maps;
		b.node[0].process[1] = cases[i].start;
		r = compare(&a, &b);
		assert_string_equal(text_of(node_at(r, 0), "state"), cases[i].state);
		assert_true(json_number_value(json_object_get(node_at(r, 0), "frames_per_s")) ==
			    cases[i].per_s);
		assert_true(json_number_value(json_object_get(node_at(r, 0), "bits_per_s")) ==
			    800 * cases[i].per_s);
		json_decref(r);
	}
}

static void reading__new_gone_and_unreadable(void **state)
{
	static struct world a, b, c;
	static const struct live_filter all = { 0 };
	json_t *r;

	(void)state;
	make_rack(&a, 9 * S);
	make_rack(&b, 10 * S);
	make_rack(&c, 11 * S);
	a.snap.nodes = 1; /* h1 comes, and goes again */
	c.snap.nodes = 1;
	b.count[1][0].n.n[BL_R_STORED] = 5;
	r = compare(&a, &b);
	assert_string_equal(text_of(node_at(r, 1), "state"), "new");
	json_decref(r);
	live_follow(&b.snap, &c.snap);
	r = live_reading(&b.snap, &c.snap, &all);
	assert_string_equal(text_of(node_at(r, 1), "node"), "h1");
	assert_string_equal(text_of(node_at(r, 1), "state"), "gone");
	json_decref(r);
	free(c.snap.gone);
	c.snap.gone = NULL;
	c.snap.gones = 0;

	/* one that cannot be read has no rates, nor has it when it can be read again */
	make_rack(&c, 11 * S);
	snprintf(b.node[0].error, sizeof(b.node[0].error), "no permission");
	b.node[0].maps = 0;
	b.node[0].counts = 0;
	c.count[0][0].n.n[BL_R_FORWARDED] = 1000000;
	r = compare(&a, &b);
	assert_string_equal(text_of(node_at(r, 0), "state"), "unreadable");
	json_decref(r);
	r = compare(&b, &c);
	assert_true(json_number_value(json_object_get(node_at(r, 0), "frames_per_s")) == 0.0);
	json_decref(r);
}

/* A state stays on the screen for a while. */
static void states__are_seen(void **state)
{
	static struct world a, b, c;

	(void)state;
	make_rack(&a, 9 * S);
	make_rack(&b, 10 * S);
	b.node[0].maps = 6;
	live_follow(NULL, &a.snap);
	live_follow(&a.snap, &b.snap);
	make_rack(&c, 10 * S + LIVE_STATE_NS);
	c.node[0].maps = 6;
	live_follow(&b.snap, &c.snap);
	assert_string_equal(c.node[0].state, "restarted");
	assert_int_equal(c.node[0].state_ns, 10 * S);
	make_rack(&c, 10 * S + LIVE_STATE_NS + 1);
	c.node[0].maps = 6;
	live_follow(&b.snap, &c.snap);
	assert_string_equal(c.node[0].state, "");
}

/* ---- screens ---- */

static bool fits(const struct live_lines *l, size_t width, size_t height)
{
	size_t i, k;

	if (l->n > height)
		return false;
	for (i = 0; i < l->n; i++) {
		if (strlen(l->line[i]) > width)
			return false;
		for (k = 0; l->line[i][k]; k++)
			if (l->line[i][k] < ' ' || l->line[i][k] > '~')
				return false;
	}
	return true;
}

/* Nothing is wider or higher than the terminal, down to one column and one line. */
static void screen__every_size(void **state)
{
	static const size_t sizes[] = { 1, 2, 3, 5, 8, 9, 10, 20, 24, 80, 200 };
	static struct world a, b;
	struct live_lines l;
	size_t w, h, t;
	json_t *r;

	(void)state;
	make_rack(&a, 9 * S);
	make_rack(&b, 10 * S);
	snprintf(b.in[0][0].name, sizeof(b.in[0][0].name), "\033[2Jx");
	snprintf(b.count[0][0].name, sizeof(b.count[0][0].name), "\033[2Jx");
	r = compare(&a, &b);
	for (w = 0; w < ARRAY_SIZE(sizes); w++)
		for (h = 0; h < ARRAY_SIZE(sizes); h++)
			for (t = 0; t <= LIVE_TABLES; t++) {
				struct live_view v = { .table = t % LIVE_TABLES,
						       .help = t == LIVE_TABLES };

				live_screen(t ? r : NULL, &v, sizes[w], sizes[h], &l);
				assert_true(fits(&l, sizes[w], sizes[h]));
				assert_true(l.n > 0);
				live_lines_free(&l);
			}
	json_decref(r);
}

/* Rows of a table with @n endpoints and growing rings, of a reading that has one node. */
static json_t *many_endpoints(size_t n)
{
	json_t *rows = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		json_array_append_new(rows, json_pack("{s:s, s:s, s:i, s:I}", "node", "h1", "addr",
						      "10.0.0.1", "port", (int)i, "ring_used",
						      (json_int_t)i));
	return json_pack("{s:f, s:f, s:[{s:s, s:o}]}", "time", 1.0, "interval_s", 1.0, "nodes",
			 "node", "h1", "endpoints", rows);
}

static void screen__ten_thousand_endpoints(void **state)
{
	struct live_view v = { .table = LIVE_ENDPOINTS };
	json_t *r = many_endpoints(10000);
	struct live_lines l;
	char *text = NULL;
	size_t size;
	FILE *f;

	(void)state;
	v.sort[LIVE_ENDPOINTS] = 5; /* RING_USED: the greatest first */
	live_screen(r, &v, 80, 24, &l);
	assert_int_equal(l.n, 24);
	assert_non_null(strstr(l.line[l.heading], "RING_USED*"));
	assert_non_null(strstr(l.line[l.heading + 1], " 9999 "));
	live_lines_free(&l);
	/* the end is where the last row is at the bottom */
	v.first = 1000000;
	live_screen(r, &v, 80, 24, &l);
	assert_int_equal(v.first, 10000 - v.page);
	assert_non_null(strstr(l.line[l.n - 1], " 0 B"));
	live_lines_free(&l);
	f = open_memstream(&text, &size);
	live_text(f, r);
	fclose(f);
	assert_non_null(strstr(text, "and 9990 endpoints more"));
	free(text);
	json_decref(r);
}

static void screen__64_ports_are_sorted(void **state)
{
	struct live_view v = { .table = LIVE_PORTS };
	static struct world a, b;
	struct live_lines l;
	char name[16];
	uint32_t k;
	json_t *r;

	(void)state;
	make_rack(&a, 9 * S);
	make_rack(&b, 10 * S);
	b.node[0].in.n = 64;
	b.node[0].counts = 64;
	b.snap.nodes = 1;
	for (k = 0; k < 64; k++) {
		snprintf(name, sizeof(name), "swp%u", k);
		set_input(&b, 0, k, name, 100 + k, 1000 * S);
		b.count[0][k].n.n[BL_R_FORWARDED] = (k * 7) % 64;
	}
	r = compare(&a, &b);
	v.sort[LIVE_PORTS] = 3; /* FRAMES/S */
	live_screen(r, &v, 120, 80, &l);
	assert_non_null(strstr(l.line[l.heading + 1], " swp9 ")); /* 9 * 7 = 63 */
	assert_int_equal(l.n - l.heading - 1, 64);
	live_lines_free(&l);
	v.reverse[LIVE_PORTS] = true;
	live_screen(r, &v, 120, 80, &l);
	assert_non_null(strstr(l.line[l.heading + 1], " swp0 "));
	live_lines_free(&l);
	/* what is not known comes last, either way */
	v.sort[LIVE_PORTS] = 7; /* LAG */
	b.node[0].bus_ns = 0;
	live_screen(r, &v, 120, 80, &l);
	assert_non_null(strstr(l.line[l.heading], "LAG*"));
	live_lines_free(&l);
	json_decref(r);
	free(b.snap.gone);
	b.snap.gone = NULL;
}

static void keys__change_the_view(void **state)
{
	struct live_view v = { 0 };

	(void)state;
	assert_true(live_key(&v, 'p', 2));
	assert_int_equal(v.table, LIVE_PORTS);
	assert_true(live_key(&v, 'p', 2));
	assert_int_equal(v.table, LIVE_NODES);
	assert_true(live_key(&v, 'e', 2));
	assert_int_equal(v.table, LIVE_ENDPOINTS);
	live_key(&v, LIVE_LEFT, 2); /* round to the last column */
	assert_int_equal(v.sort[LIVE_ENDPOINTS], 9);
	live_key(&v, LIVE_RIGHT, 2);
	assert_int_equal(v.sort[LIVE_ENDPOINTS], 0);
	assert_int_equal(v.sort[LIVE_NODES], 0);
	live_key(&v, 'n', 2);
	live_key(&v, 'n', 2);
	assert_int_equal(v.node, 2);
	live_key(&v, 'n', 2); /* then all */
	assert_int_equal(v.node, 0);
	live_key(&v, LIVE_UP, 2);
	assert_int_equal(v.first, 0);
	live_key(&v, LIVE_DOWN, 2);
	assert_int_equal(v.first, 1);
	live_key(&v, ' ', 2);
	assert_true(v.paused);
	assert_false(live_key(&v, 'x', 2));
	live_key(&v, 'h', 2);
	assert_true(v.help);
	assert_true(live_key(&v, 'x', 2)); /* leaves the help */
	assert_false(v.help);
	live_key(&v, 'q', 2);
	assert_true(v.quit);
}

/* Nodes that have gone take the view back to all. */
static void keys__node_that_is_gone(void **state)
{
	struct live_view v = { .node = 2 };
	json_t *r = many_endpoints(1);
	struct live_lines l;

	(void)state;
	live_screen(r, &v, 80, 24, &l);
	assert_int_equal(v.node, 0);
	live_lines_free(&l);
	json_decref(r);
}

static void tty__keys_of_terminals(void **state)
{
	static const struct {
		const char *s;
		size_t used;
		int key;
	} cases[] = { { "q", 1, 'q' },
		      { "", 0, -1 },
		      { "\033", 0, -1 },
		      { "\033[", 0, -1 },
		      { "\033[A", 3, LIVE_UP },
		      { "\033OBx", 3, LIVE_DOWN },
		      { "\033[5~q", 4, LIVE_PAGE_UP },
		      { "\033[5", 0, -1 },
		      { "\033[1;5C", 6, -1 }, /* with a modifier: no key here, and taken whole */
		      { "\033q", 1, -1 } };
	char endless[40];
	size_t i, used;
	int key;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		used = tty_key_of(cases[i].s, strlen(cases[i].s), &key);
		if (used != cases[i].used || (used && key != cases[i].key))
			fail_msg("case %zu: %zu bytes, key %d", i, used, key);
	}
	memset(endless, '1', sizeof(endless));
	memcpy(endless, "\033[", 2);
	assert_int_equal(tty_key_of(endless, sizeof(endless), &key), sizeof(endless));
	assert_int_equal(key, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth__begins_anew_and_is_never_negative),
		cmocka_unit_test(hold__the_minimum_of_live_inputs),
		cmocka_unit_test(hold__sets_and_lanes),
		cmocka_unit_test(hold__late_at_the_edge),
		cmocka_unit_test(follow__from_switch_to_switch),
		cmocka_unit_test(follow__what_waits_for_a_time),
		cmocka_unit_test(follow__ends_in_a_circle),
		cmocka_unit_test(since__is_carried_on),
		cmocka_unit_test(reading__rates_and_drops),
		cmocka_unit_test(reading__names_who_holds),
		cmocka_unit_test(reading__restarts_and_disappearances),
		cmocka_unit_test(reading__new_gone_and_unreadable),
		cmocka_unit_test(states__are_seen),
		cmocka_unit_test(screen__every_size),
		cmocka_unit_test(screen__ten_thousand_endpoints),
		cmocka_unit_test(screen__64_ports_are_sorted),
		cmocka_unit_test(keys__change_the_view),
		cmocka_unit_test(keys__node_that_is_gone),
		cmocka_unit_test(tty__keys_of_terminals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
