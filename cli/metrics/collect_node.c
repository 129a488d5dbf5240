// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Metrics of a node: counters by port and reason, barriers, links, keys and clock. See collect.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "cli/metrics/collect.h"
#include "cli/util/read.h"
#include "core/clock_core.h"
#include "core/order/link_core.h"
#include "core/order/skew_core.h"
#include "loader/config_clock.h"
#include "maps/auth_abi.h"
#include "maps/host_abi.h"

#define DAEMON_NS 3000000000ULL /* a daemon measures the clock four times per second */
#define VIEW_NS   5000000000ULL /* without a daemon, nobody judges clocks of neighbours */

/*
 * Reasons that the alert rules watch: they are exported from the start, with 0. A counter that
 * appears with its first event would hide that event from increase().
 */
static const unsigned int watched[] = {
	BL_R_LOOPED,        BL_R_BARRIER_AHEAD,  BL_R_TS_AHEAD,       BL_R_TAI_MISMATCH,
	BL_R_CLOCK_VOID,    BL_R_RING_FULL,      BL_R_UNSWITCHED,     BL_R_BYPASSED,
	BL_R_FORGED_BEACON, BL_R_SPOOFED,        BL_R_LANES_REFUSED,  BL_R_CONTROL_FLOOD,
	BL_R_AUTH_MISSING,  BL_R_AUTH_BAD,       BL_R_AUTH_REPLAYED,  BL_R_AUTH_FLOOD,
	BL_R_AUTH_EPOCH,    BL_R_PROMISE_BROKEN, BL_R_EXCLUDED,       BL_R_JOINED,
	BL_R_LAGGING,       BL_R_PROMISE_ABSURD, BL_R_FOREIGN_SOURCE,
};

/** struct port - one port of a node, as its metrics need it. A host's NIC is port 0. */
struct port {
	const char *name;
	const struct bl_reg *reg; /* by lane */
	const struct bl_life *life;
	bool barred;
	const uint64_t *watch; /* watch time of the port's lane */
};

/** struct clock_now - the clock of a node, read once. */
struct clock_now {
	struct bl_clock c;
	uint64_t mono;
	uint64_t bus; /* 0: the clock is void */
};

static bool is_watched(unsigned int r)
{
	size_t k;

	for (k = 0; k < sizeof(watched) / sizeof(watched[0]); k++)
		if (watched[k] == r)
			return true;
	return false;
}

/* Whether frames of endpoints pass there: not the hooks that admission alone uses. */
static bool is_main(const struct bl_node_ref *ref, uint32_t key)
{
	return ref->role == BL_ROLE_SWITCH || key <= BL_HC_LOCAL;
}

/* Frames that ended for reason @k at a place; of one that never occurred there are no bytes. */
static void put_frames(struct collector *c, const char *node, const struct count_row *r,
		       unsigned int k)
{
	const char *verdict = reason_kind(k) == BL_KIND_OK ? "ok" : "drop";

	metric_u64(c->to, BL_METRIC_FRAMES, r->n.n[k],
		   LABELS(node, r->name, r->role, verdict, reason_name(k)));
	if (r->n.bytes[k])
		metric_u64(c->to, BL_METRIC_PORT_BYTES, r->n.bytes[k],
			   LABELS(node, r->name, r->role, verdict, reason_name(k)));
}

static void put_counts(struct collector *c, int node)
{
	const char *name = c->name[node];
	struct count_row *r;
	int n = node_count_rows(&c->refs[node], &r), i;
	unsigned int k;

	if (n < 0)
		collect_failed(c, "cannot read the counters of %s", name);
	for (i = 0; i < n; i++)
		for (k = 1; k < BL_REASON_MAX; k++) {
			uint64_t v = r[i].n.n[k];

			if (!v && !(is_watched(k) && is_main(&c->refs[node], r[i].key)))
				continue;
			if (reason_kind(k) == BL_KIND_NOTE)
				metric_u64(c->to, BL_METRIC_NOTES, v,
					   LABELS(name, r[i].name, r[i].role, reason_name(k)));
			else
				put_frames(c, name, &r[i], k);
		}
	free(r);
}

/* ---- clock ---- */

static void read_clock(struct collector *c, int node, struct clock_now *t)
{
	memset(t, 0, sizeof(*t));
	collect_value(c, node, BL_MAP_CLOCK, 0, &t->c, sizeof(t->c));
	t->mono = bl_mono_ns();
	t->bus = bl_clock_usable(&t->c, t->mono) ? bl_clock_at(&t->c, t->mono) : 0;
}

static void put_clock(struct collector *c, int node, const struct clock_now *t)
{
	static const char *const states[] = {
#define STATE(sym, name, is_void) [BL_CLOCK_##sym] = (name),
		BL_CLOCK_STATES(STATE)
#undef STATE
	};
	const char *const *name = LABELS(c->name[node]);
	const struct bl_clock *k = &t->c;
	unsigned int s;

	metric_u64(c->to, BL_METRIC_DAEMON_UP, k->as_of_ns && t->mono - k->as_of_ns < DAEMON_NS,
		   name);
	metric_u64(c->to, BL_METRIC_CLOCK_VALID, t->bus != 0, name);
	metric_ns(c->to, BL_METRIC_CLOCK_BOUND, (int64_t)bl_clock_bound(k, t->mono), name);
	if (k->max_bound_ns)
		metric_ns(c->to, BL_METRIC_CLOCK_MAX_BOUND, (int64_t)k->max_bound_ns, name);
	else
		metric_real(c->to, BL_METRIC_CLOCK_MAX_BOUND, INFINITY, name);
	metric_ns(c->to, BL_METRIC_CLOCK_SOURCE_BOUND, (int64_t)k->source_ns, name);
	metric_ns(c->to, BL_METRIC_CLOCK_AGE, k->as_of_ns ? (int64_t)(t->mono - k->as_of_ns) : 0,
		  name);
	if (k->source_as_of_ns)
		metric_ns(c->to, BL_METRIC_CLOCK_SOURCE_AGE,
			  (int64_t)(t->mono - k->source_as_of_ns), name);
	else
		metric_real(c->to, BL_METRIC_CLOCK_SOURCE_AGE, INFINITY, name);
	metric_ns(c->to, BL_METRIC_CLOCK_VOID_IN,
		  t->bus ? (int64_t)(k->void_after_ns - t->mono) : 0, name);
	metric_u64(c->to, BL_METRIC_CLOCK_SOURCE, 1,
		   LABELS(c->name[node], bl_clock_source_name(k->source)));
	for (s = 0; s < BL_CLOCK_STATES_NUMBER; s++)
		metric_u64(c->to, BL_METRIC_CLOCK_STATE, s == k->state,
			   LABELS(c->name[node], states[s]));
	metric_ns(c->to, BL_METRIC_CLOCK_TAI, k->tai_offset_s * 1000000000LL, name);
}

/* ---- barriers ---- */

static void put_lag(struct collector *c, enum metric m, const struct clock_now *t, uint64_t b,
		    const char *const *labels)
{
	if (b && b != BL_TIME_NONE && t->bus)
		metric_ns(c->to, m, (int64_t)(t->bus - b), labels);
}

static void put_input(struct collector *c, const char *node, const struct port *p, int lane,
		      const struct clock_now *t)
{
	static const char *const states[] = { [BL_REG_ABSENT] = "absent",
					      [BL_REG_JOINING] = "joining",
					      [BL_REG_LIVE] = "live",
					      [BL_REG_DEAD] = "dead" };
	const struct bl_reg *r = &p->reg[lane];
	char number[12];
	unsigned int s;

	snprintf(number, sizeof(number), "%d", lane);
	for (s = 0; s <= BL_REG_DEAD; s++)
		metric_u64(c->to, BL_METRIC_INPUT_STATE, s == (r->state & 0xff),
			   LABELS(node, p->name, number, states[s]));
	metric_u64(c->to, BL_METRIC_INPUT_HELD, !!(r->state & BL_REG_HELD),
		   LABELS(node, p->name, number));
	if ((r->state & 0xff) == BL_REG_LIVE) {
		put_lag(c, BL_METRIC_INPUT_LAG, t, r->b, LABELS(node, p->name, number, "order"));
		if (r->state & BL_REG_IN)
			put_lag(c, BL_METRIC_INPUT_LAG, t, r->c,
				LABELS(node, p->name, number, "reliable"));
	}
	if (r->heard_ns && *p->watch >= r->heard_ns)
		metric_ns(c->to, BL_METRIC_INPUT_SILENT, (int64_t)(*p->watch - r->heard_ns),
			  LABELS(node, p->name, number));
}

static void put_output(struct collector *c, const char *node, const char *output, int lane,
		       uint64_t b, uint64_t commit, const struct clock_now *t)
{
	char number[12];

	snprintf(number, sizeof(number), "%d", lane);
	put_lag(c, BL_METRIC_OUTPUT_LAG, t, b, LABELS(node, output, number, "order"));
	put_lag(c, BL_METRIC_OUTPUT_LAG, t, commit, LABELS(node, output, number, "reliable"));
}

/* ---- links ---- */

static void put_link_lane(struct collector *c, const char *node, const struct port *p, int lane,
			  const struct bl_link_lane *k)
{
	char number[12];
	const char *const *labels = LABELS(node, p->name, number);

	snprintf(number, sizeof(number), "%d", lane);
	metric_u64(c->to, BL_METRIC_LINK_FRAMES, p->reg[lane].frames, labels);
	metric_u64(c->to, BL_METRIC_LINK_LOST, k->lost, labels);
	metric_u64(c->to, BL_METRIC_LINK_MISSING, k->apart > 0 ? (uint32_t)k->apart : 0, labels);
	metric_u64(c->to, BL_METRIC_LINK_OVERTAKEN, k->overtaken, labels);
	metric_u64(c->to, BL_METRIC_LINK_RACED, k->raced, labels);
}

static void put_delay(struct collector *c, int64_t ns, const char *const *labels)
{
	if (ns < BL_SKEW_MAX && ns > -BL_SKEW_MAX)
		metric_ns(c->to, BL_METRIC_LINK_DELAY, ns, labels);
}

static void put_link_view(struct collector *c, const char *node, const char *port,
			  const struct bl_link_view *v, uint64_t mono)
{
	static const char *const verdicts[BL_VERDICT_COUNT] = { [BL_VERDICT_NONE] = "unknown",
								[BL_VERDICT_GOOD] = "good",
								[BL_VERDICT_OFF] = "off",
								[BL_VERDICT_SELF] = "self",
								[BL_VERDICT_EITHER] = "either" };
	bool judged = v->written_ns && mono - v->written_ns < VIEW_NS &&
		      v->verdict < BL_VERDICT_COUNT;
	unsigned int verdict = judged ? v->verdict : BL_VERDICT_NONE, k;

	for (k = 0; k < BL_VERDICT_COUNT; k++)
		metric_u64(c->to, BL_METRIC_LINK_CLOCK, k == verdict,
			   LABELS(node, port, verdicts[k]));
	if (!judged)
		return;
	put_delay(c, v->in_ns, LABELS(node, port, "in"));
	put_delay(c, v->out_ns, LABELS(node, port, "out"));
	metric_ns(c->to, BL_METRIC_LINK_CLOCK_OFF, v->off_ns, LABELS(node, port));
}

static void put_link(struct collector *c, const char *node, const struct port *p,
		     const struct bl_link *l, const struct bl_link_view *v, uint64_t mono)
{
	char neighbour[16];
	int k;

	for (k = 0; k < BL_LANES_MAX; k++)
		if (!k || l->lane[k].run)
			put_link_lane(c, node, p, k, &l->lane[k]);
	metric_u64(c->to, BL_METRIC_LINK_THEIRS, l->theirs, LABELS(node, p->name));
	if (l->node) {
		snprintf(neighbour, sizeof(neighbour), "%u", l->node);
		metric_u64(c->to, BL_METRIC_LINK_NEIGHBOUR, 1, LABELS(node, p->name, neighbour));
	}
	put_link_view(c, node, p->name, v, mono);
}

/* ---- keys of links ---- */

/* Returns when the last epoch of a link ends, in bus time; BL_TIME_NONE: never. */
static uint64_t keys_until(const struct bl_auth_link *l)
{
	uint64_t until = 0;
	int k;

	for (k = 0; k < 2; k++)
		if (l->at[k].epoch && l->at[k].until_ns > until)
			until = l->at[k].until_ns;
	return until;
}

static void put_auth(struct collector *c, const char *node, const char *port,
		     const struct bl_auth_link *l, const struct bl_auth_state *s,
		     const struct clock_now *t)
{
	bool on = l->how != BL_AUTH_EXEMPT && (l->at[0].epoch || l->at[1].epoch);
	uint64_t until = keys_until(l);

	metric_u64(c->to, BL_METRIC_AUTH_MODE, 1,
		   LABELS(node, port,
			  l->how == BL_AUTH_EXEMPT    ? "exempt"
			  : !on                       ? "off"
			  : l->how == BL_AUTH_OFFERED ? "offered"
						      : "required"));
	if (!on)
		return;
	metric_u64(c->to, BL_METRIC_AUTH_EPOCH, s->out, LABELS(node, port, "out"));
	metric_u64(c->to, BL_METRIC_AUTH_EPOCH, s->in, LABELS(node, port, "in"));
	if (until == BL_TIME_NONE)
		metric_real(c->to, BL_METRIC_AUTH_ENDS, INFINITY, LABELS(node, port));
	else if (t->bus)
		metric_ns(c->to, BL_METRIC_AUTH_ENDS, (int64_t)(until - t->bus),
			  LABELS(node, port));
}

/* ---- all of a node ---- */

/** struct tables - what is kept by port, of all ports; each may be NULL. */
struct tables {
	struct bl_link *link;
	struct bl_link_view *view;
	struct bl_auth_link *keys;
	struct bl_auth_state *auth;
	uint32_t n; /* that each of them has at least */
};

static void read_tables(struct collector *c, int node, uint32_t ports, struct tables *t)
{
	uint32_t n[4] = { 0 };
	int k;

	t->link = collect_array(c, node, BL_MAP_LINK_SEEN, sizeof(*t->link), ports, &n[0]);
	t->view = collect_array(c, node, BL_MAP_LINK_VIEWS, sizeof(*t->view), ports, &n[1]);
	t->keys = collect_array(c, node, BL_MAP_AUTH_LINKS, sizeof(*t->keys), ports, &n[2]);
	t->auth = collect_array(c, node, BL_MAP_AUTH_STATES, sizeof(*t->auth), ports, &n[3]);
	t->n = ports;
	for (k = 0; k < 4; k++)
		if (n[k] < t->n)
			t->n = n[k];
}

static void free_tables(struct tables *t)
{
	free(t->link);
	free(t->view);
	if (t->keys) /* they are secret */
		explicit_bzero(t->keys, t->n * sizeof(*t->keys));
	free(t->keys);
	free(t->auth);
}

static void put_port(struct collector *c, const char *node, const struct port *p, uint32_t number,
		     const struct tables *tab, const struct clock_now *t)
{
	int l;

	for (l = 0; l < BL_LANES_MAX; l++)
		if (l == 0 || p->reg[l].state != BL_REG_ABSENT)
			put_input(c, node, p, l, t);
	metric_u64(c->to, BL_METRIC_INPUT_BARRED, p->barred, LABELS(node, p->name));
	metric_u64(c->to, BL_METRIC_INPUT_DEATHS, p->life->death, LABELS(node, p->name));
	if (number >= tab->n)
		return;
	if (tab->link && tab->view)
		put_link(c, node, p, &tab->link[number], &tab->view[number], t->mono);
	if (tab->keys && tab->auth)
		put_auth(c, node, p->name, &tab->keys[number], &tab->auth[number], t);
}

static void put_outputs(struct collector *c, const char *node, const struct bl_sw_lane *lanes,
			uint32_t n, unsigned int used, const struct clock_now *t)
{
	uint32_t l, s;
	char set[16];

	for (l = 0; l < n && l < BL_LANES_MAX; l++)
		for (s = 0; s < BL_SETS_MAX; s++) {
			if (!(used & 1u << s))
				continue;
			snprintf(set, sizeof(set), "set%u", s);
			put_output(c, node, set, (int)l, lanes[l].out[s].b, lanes[l].out[s].c, t);
		}
}

static void put_switch(struct collector *c, int node)
{
	struct bl_port_regs *regs;
	struct bl_sw_lane *lanes;
	struct bl_sw_port *ports;
	struct bl_life *lives;
	struct tables tab = { 0 };
	struct bl_sw_cfg cfg;
	struct clock_now t;
	unsigned int used = 0;
	uint32_t i, n[4] = { 0 }, most;

	if (!collect_value(c, node, BL_MAP_SW_CFG, 0, &cfg, sizeof(cfg)))
		return;
	most = cfg.nports ? cfg.nports : 1;
	ports = collect_array(c, node, BL_MAP_SW_PORTS, sizeof(*ports), most, &n[0]);
	lives = collect_array(c, node, BL_MAP_SW_LIVES, sizeof(*lives), most, &n[1]);
	read_tables(c, node, most, &tab);
	regs = collect_array(c, node, BL_MAP_SW_REGS, sizeof(*regs), most, &n[2]);
	lanes = collect_array(c, node, BL_MAP_SW_LANES, sizeof(*lanes), cfg.lanes, &n[3]);
	read_clock(c, node, &t); /* after the barriers, so that no lag is too small */
	put_clock(c, node, &t);
	for (i = 0; ports && lives && regs && lanes && i < n[0] && i < n[1] && i < n[2]; i++) {
		struct port p = { .name = ports[i].name,
				  .reg = regs[i].lane,
				  .life = &lives[i],
				  .barred = ports[i].barred };
		static const uint64_t none;
		uint32_t home = BL_HOME_LANE(&ports[i]);

		if (!ports[i].ifindex)
			continue;
		ports[i].name[sizeof(ports[i].name) - 1] = '\0';
		p.watch = home < n[3] ? (const uint64_t *)&lanes[home].watch_ns : &none;
		used |= 1u << ports[i].out_set;
		put_port(c, c->name[node], &p, i, &tab, &t);
	}
	if (lanes)
		put_outputs(c, c->name[node], lanes, n[3], used, &t);
	free(ports);
	free(lives);
	free(regs);
	free(lanes);
	free_tables(&tab);
}

static void put_host(struct collector *c, int node)
{
	struct tables tab = { 0 };
	struct bl_host_page page;
	struct clock_now t;
	char nic[16];
	struct port p = { .name = nic,
			  .reg = page.reg,
			  .life = &page.life,
			  .watch = (const uint64_t *)&page.watch_ns };

	node_nic(&c->refs[node], nic, sizeof(nic));
	read_tables(c, node, 1, &tab);
	if (!collect_value(c, node, BL_MAP_HOST_PAGE, 0, &page, sizeof(page)))
		memset(&page, 0, sizeof(page));
	p.barred = page.barred;
	read_clock(c, node, &t);
	put_clock(c, node, &t);
	put_port(c, c->name[node], &p, 0, &tab, &t);
	put_output(c, c->name[node], "delivered", 0, page.barrier, page.commit, &t);
	put_output(c, c->name[node], "sent", 0, page.sent_barrier, page.sent_commit, &t);
	free_tables(&tab);
}

void collect_node(struct collector *c, int node)
{
	const struct bl_node_ref *ref = &c->refs[node];
	char id[16], abi[16], build[33];
	struct bl_epoch epoch;

	snprintf(id, sizeof(id), "%u", ref->meta.node_id);
	snprintf(abi, sizeof(abi), "%u", ref->meta.abi_version);
	snprintf(build, sizeof(build), "%.31s", ref->meta.build);
	metric_u64(c->to, BL_METRIC_NODE, 1,
		   LABELS(c->name[node], bl_role_name(ref->role), id, abi, build));
	if (collect_value(c, node, BL_MAP_EPOCH, 0, &epoch, sizeof(epoch)))
		metric_u64(c->to, BL_METRIC_NODE_EPOCH, epoch.epoch, LABELS(c->name[node]));
	put_counts(c, node);
	if (ref->role == BL_ROLE_SWITCH)
		put_switch(c, node);
	else
		put_host(c, node);
}
