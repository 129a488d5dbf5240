// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See faults.h. */
#include <stdlib.h>
#include <string.h>

#include "arbiter/faults/faults.h"

#define CONFIRM        2             /* evaluations in a row that must agree */
#define HOLD_TIMES_MAX 64            /* a hold time doubles up to that multiple */
#define RETRY_NS       10000000ULL   /* between packets to an arbiter without the present list */
#define REPEAT_NS      1000000000ULL /* to one that has it, since it may restart */

/** struct pair - Two hosts, in one direction. */
struct pair {
	struct bl_fault_pair p; /* its columns are @col */
	uint16_t src, dst;
	uint32_t next; /* 1 + number of the next pair with the same hash; 0: none */
	struct bl_fault_col col[];
};

struct host {
	struct bl_fault_seq seq;
	uint64_t heard_ns; /* last REPORT; 0: none came */
};

/** struct told - An arbiter. */
struct told {
	uint64_t boot;      /* start of the service that sent the list that it has */
	uint64_t due_ns;    /* when the list is sent to it next */
	uint32_t version;   /* of the list that it has */
	uint32_t challenge; /* of its start */
	bool answered;      /* has answered at least once */
};

struct bl_faults {
	struct bl_faults_cfg cfg;
	struct bl_fcp_params params;
	uint64_t boot;
	uint32_t seq;                /* of the last FAULTS packet */
	struct bl_faults_part *part; /* [nparts] */
	uint32_t nparts;
	struct bl_iso_named *named; /* [nparts] */
	uint8_t *good_long;         /* [nparts] a flow that is good in the long window uses it */
	struct host *host;
	struct pair **pair; /* [npairs], reserved for @room */
	uint32_t npairs, room;
	uint32_t *hash; /* 1 + number of the first pair with that hash; 0: none */
	uint32_t hash_mask;
	struct bl_iso_flow *flow; /* reserved for @flow_room */
	uint32_t flow_room;
	struct told told[BL_FAULTS_ARBITERS];
	uint64_t due_ns; /* next evaluation */
	bool heard;      /* new counts have come since the last evaluation */
	bool dirty;      /* the list of links to avoid has changed */
	struct bl_faults_total t;
};

/* ---- pairs ---- */

static uint32_t hash_of(const struct bl_faults *f, uint32_t src, uint32_t dst)
{
	return (uint32_t)(((uint64_t)(src << 12 | dst) * 0x9E3779B97F4A7C15ULL) >> 40) &
	       f->hash_mask;
}

static struct pair *pair_find(const struct bl_faults *f, uint32_t src, uint32_t dst)
{
	uint32_t at = f->hash[hash_of(f, src, dst)];

	for (; at; at = f->pair[at - 1]->next)
		if (f->pair[at - 1]->src == src && f->pair[at - 1]->dst == dst)
			return f->pair[at - 1];
	return NULL;
}

static struct pair *pair_make(struct bl_faults *f, uint32_t src, uint32_t dst)
{
	struct pair *p = pair_find(f, src, dst), **more;
	uint32_t n = f->cfg.net.paths + 1, h;

	if (p)
		return p;
	if (f->npairs == f->room) {
		uint32_t room = f->room ? 2 * f->room : 64;

		more = f->npairs < BL_FAULTS_PAIRS_MAX ? realloc(f->pair, room * sizeof(*more))
						       : NULL;
		if (!more)
			return NULL;
		f->pair = more;
		f->room = room;
	}
	p = calloc(1, sizeof(*p) + n * sizeof(p->col[0]));
	if (!p)
		return NULL;
	p->p.cols = p->col;
	p->p.n = n;
	p->src = (uint16_t)src;
	p->dst = (uint16_t)dst;
	h = hash_of(f, src, dst);
	f->pair[f->npairs++] = p;
	p->next = f->hash[h];
	f->hash[h] = f->npairs;
	return p;
}

static void forget_host(struct bl_faults *f, uint32_t who)
{
	uint32_t i;

	for (i = 0; i < f->npairs; i++)
		if (f->pair[i]->src == who || f->pair[i]->dst == who)
			bl_fault_forget(&f->pair[i]->p, 1);
}

/* ---- reports ---- */

static uint32_t column_of(const struct bl_faults *f, uint8_t path)
{
	return path < f->cfg.net.paths ? path : f->cfg.net.paths;
}

/*
 * Takes the part of a report by @who that is about @peer: what @who sent to @peer, and what came to
 * it from @peer. @c: @n counts. @at: time of the counts of frames sent, @came_at: of those
 * received.
 */
static void report_pair(struct bl_faults *f, uint32_t who, uint32_t peer,
			const struct bl_fcp_count *c, uint32_t n, uint64_t at, uint64_t came_at,
			uint64_t now)
{
	struct pair *to, *from = pair_find(f, peer, who);
	bool sends = false;
	uint32_t i, k;

	for (i = 0; i < n; i++)
		sends |= bl_get48(c[i].sent) != 0;
	to = sends ? pair_make(f, who, peer) : pair_find(f, who, peer);
	f->t.unwatched += sends && !to;
	if (to && at > to->p.sent_ns) {
		for (k = 0; k < to->p.n; k++)
			to->col[k].sent = 0;
		for (i = 0; i < n; i++)
			to->col[column_of(f, c[i].path)].sent += bl_get48(c[i].sent);
		bl_fault_sent(&to->p, at);
	}
	if (from && came_at > from->p.came_ns) {
		for (k = 0; k < from->p.n; k++)
			from->col[k].came = 0;
		for (i = 0; i < n; i++)
			from->col[column_of(f, c[i].path)].came += bl_get48(c[i].came);
		f->heard |= bl_fault_came(&from->p, came_at, &f->cfg.rules, now);
	}
}

static enum bl_fcp_reason report_take(struct bl_faults *f, const uint8_t from[16],
				      const struct bl_fcp_pkt *k, uint64_t now)
{
	const struct bl_fcp_report *r = k->body;
	uint32_t who = BL_BE16(r->index), last = BL_BE16(r->last), peer, i = 0, n;
	uint64_t at = BL_BE64(r->at), took = BL_BE32(r->took);
	enum bl_fcp_reason why;
	int fresh;

	if (memcmp(from, f->cfg.addr[who], 16))
		return BL_FCP_R_UNKNOWN;
	if (r->table != BL_BE32(f->cfg.table))
		return BL_FCP_R_BAD_TABLE;
	if (took >= at)
		return BL_FCP_R_BAD_BODY;
	why = bl_fault_seq_take(&f->host[who].seq, BL_BE64(r->boot), k->seq, &fresh);
	if (why != BL_FCP_R_OK)
		return why;
	if (fresh) {
		forget_host(f, who);
		f->t.boots++;
	}
	f->host[who].heard_ns = now;
	for (peer = BL_BE16(r->first); peer <= last; peer++) {
		for (n = 0; i + n < k->ncounts && BL_BE16(k->counts[i + n].peer) == peer; n++)
			;
		if (peer != who)
			report_pair(f, who, peer, &k->counts[i], n, at, at - took, now);
		i += n;
	}
	return BL_FCP_R_OK;
}

static enum bl_fcp_reason heard_take(struct bl_faults *f, const uint8_t from[16],
				     const struct bl_fcp_pkt *k, uint64_t now)
{
	const struct bl_fcp_heard *h = k->body;
	uint64_t boot = BL_BE64(h->boot);
	struct told *to;
	unsigned int i;

	for (i = 0; i < f->cfg.narbiters && memcmp(from, f->cfg.arbiter[i], 16); i++)
		;
	if (i == f->cfg.narbiters)
		return BL_FCP_R_UNKNOWN;
	if (h->table != BL_BE32(f->cfg.table))
		return BL_FCP_R_BAD_TABLE;
	to = &f->told[i];
	if (boot > f->boot) { /* the clock of this machine was ahead when the service ran before */
		f->boot = boot + 1;
		f->dirty = true;
	}
	/* it has restarted: send at once, not when the next repetition is due */
	if (!to->answered || to->challenge != k->challenge)
		to->due_ns = 0;
	to->answered = true;
	to->challenge = k->challenge;
	to->boot = boot;
	to->version = BL_BE32(h->version);
	if (to->due_ns && boot == f->boot && to->version == f->t.version)
		to->due_ns = now + REPEAT_NS;
	return BL_FCP_R_OK;
}

enum bl_fcp_reason bl_faults_rx(struct bl_faults *f, const uint8_t from[16], const void *packet,
				uint32_t len, uint64_t now)
{
	struct bl_fcp_pkt k;
	enum bl_fcp_reason why = bl_fcp_parse(packet, len, f->cfg.net.endpoints, &k);

	if (why == BL_FCP_R_OK && k.opcode != BL_FCP_REPORT && k.opcode != BL_FCP_HEARD)
		why = BL_FCP_R_BAD_OPCODE;
	if (why == BL_FCP_R_OK && !bl_fcp_checksum_ok(&f->params, 0, packet, len))
		why = BL_FCP_R_BAD_CHECK;
	if (why == BL_FCP_R_OK)
		why = k.opcode == BL_FCP_REPORT ? report_take(f, from, &k, now)
						: heard_take(f, from, &k, now);
	f->t.packets[why]++;
	return why;
}

/* ---- looking for links ---- */

/* Judges all flows in the window of @scale, into @f->flow. Returns how many have a verdict. */
static uint32_t judge_flows(struct bl_faults *f, uint32_t scale, uint64_t now)
{
	uint32_t i, k, n = 0, all = f->npairs * (f->cfg.net.paths + 1);

	if (all > f->flow_room) {
		struct bl_iso_flow *more = realloc(f->flow, all * sizeof(*more));

		if (!more)
			return 0;
		f->flow = more;
		f->flow_room = all;
	}
	for (i = 0; i < f->npairs; i++)
		for (k = 0; k < f->pair[i]->p.n; k++) {
			enum bl_fault_verdict v =
				bl_fault_judge(&f->pair[i]->p, k, scale, &f->cfg.rules, now);

			if (v == BL_FAULT_UNKNOWN)
				continue;
			f->flow[n++] = (struct bl_iso_flow){ .src = f->pair[i]->src,
							     .dst = f->pair[i]->dst,
							     .path = (uint8_t)k,
							     .verdict = (uint8_t)v,
							     .at = i };
		}
	return n;
}

static bool flow_through(const struct bl_faults *f, const struct bl_iso_flow *w, uint32_t c)
{
	uint32_t out[BL_ISO_COMPONENTS];
	unsigned int i, n = bl_iso_through(&f->cfg.net, w, out);

	for (i = 0; i < n; i++)
		if (out[i] == c)
			return true;
	return false;
}

static bool avoidable(const struct bl_faults *f, uint32_t c)
{
	uint32_t who, path;
	enum bl_iso_kind kind = bl_iso_what(&f->cfg.net, c, &who, &path);

	return kind == BL_ISO_UP || kind == BL_ISO_DOWN || kind == BL_ISO_PATH;
}

/* Returns true if every rack has a path that works in both directions without component @c. */
static bool can_spare(const struct bl_faults *f, uint32_t c)
{
	const struct bl_iso_net *net = &f->cfg.net;
	uint32_t who, path, r, k;
	enum bl_iso_kind kind = bl_iso_what(net, c, &who, &path);

	for (r = 0; r < net->racks; r++) {
		uint32_t both = 0;

		if (kind != BL_ISO_PATH && r != who)
			continue;
		for (k = 0; k < net->paths; k++)
			both += k != path &&
				f->part[bl_iso_number(net, BL_ISO_UP, r, k)].state !=
					BL_FAULTS_BROKEN &&
				f->part[bl_iso_number(net, BL_ISO_DOWN, r, k)].state !=
					BL_FAULTS_BROKEN &&
				f->part[bl_iso_number(net, BL_ISO_PATH, 0, k)].state !=
					BL_FAULTS_BROKEN;
		if (!both)
			return false;
	}
	return true;
}

/*
 * Counts the frames of the bad flows through @c and, with @hold, remembers these flows until @c is
 * tried again.
 */
static void stick_flows(struct bl_faults *f, uint32_t c, uint32_t scale, bool hold, uint64_t now)
{
	uint32_t i, k;

	f->part[c].sent = f->part[c].lost = 0;
	for (i = 0; i < f->npairs; i++)
		for (k = 0; k < f->pair[i]->p.n; k++) {
			struct bl_fault_col *col = &f->pair[i]->col[k];
			struct bl_iso_flow w = { .src = f->pair[i]->src,
						 .dst = f->pair[i]->dst,
						 .path = (uint8_t)k };

			if (!flow_through(f, &w, c) ||
			    bl_fault_judge(&f->pair[i]->p, k, scale, &f->cfg.rules, now) !=
				    BL_FAULT_BAD)
				continue;
			f->part[c].sent += col->win_sent[scale];
			f->part[c].lost +=
				col->win_least[scale] > 0 ? (uint64_t)col->win_least[scale] : 0;
			col->sticky |= hold;
		}
}

/* Forgets which flows through @c were bad: their windows start now. */
static void unstick_flows(struct bl_faults *f, uint32_t c)
{
	uint32_t i, k;

	for (i = 0; i < f->npairs; i++) {
		bool any = false;

		for (k = 0; k < f->pair[i]->p.n; k++) {
			struct bl_iso_flow w = { .src = f->pair[i]->src,
						 .dst = f->pair[i]->dst,
						 .path = (uint8_t)k };

			if (!f->pair[i]->col[k].sticky || !flow_through(f, &w, c))
				continue;
			f->pair[i]->col[k].sticky = 0;
			any = true;
		}
		if (any)
			bl_fault_forget(&f->pair[i]->p, 0);
	}
}

static bool has_stuck_flows(const struct bl_faults *f, uint32_t c)
{
	uint32_t i, k;

	for (i = 0; i < f->npairs; i++)
		for (k = 0; k < f->pair[i]->p.n; k++) {
			struct bl_iso_flow w = { .src = f->pair[i]->src,
						 .dst = f->pair[i]->dst,
						 .path = (uint8_t)k };

			if (f->pair[i]->col[k].sticky && flow_through(f, &w, c))
				return true;
		}
	return false;
}

static void enter_state(struct bl_faults *f, uint32_t c, enum bl_faults_state state, uint64_t now)
{
	struct bl_faults_part *p = &f->part[c];

	f->dirty |= (p->state == BL_FAULTS_BROKEN) != (state == BL_FAULTS_BROKEN);
	p->state = (uint8_t)state;
	p->since_ns = now;
}

/* Takes note that component @w was named; @w is one of the @n entries of @f->named. */
static void part_named(struct bl_faults *f, const struct bl_iso_named *w, uint32_t n,
		       uint32_t scale, uint64_t now)
{
	struct bl_faults_part *p = &f->part[w->component];
	uint64_t most = HOLD_TIMES_MAX * f->cfg.hold_ns;
	bool only_hosts = true, host_proven = false;
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint32_t c = f->named[i].component;

		if (f->named[i].of != w->of)
			continue;
		only_hosts &= c < 2 * f->cfg.net.endpoints;
		host_proven |= c < 2 * f->cfg.net.endpoints && f->part[c].proven;
	}
	p->one_of = w->one_of;
	if (p->named < CONFIRM || p->state == BL_FAULTS_BROKEN ||
	    (w->one_of > 1 && now - p->first_ns < f->cfg.rules.gen_ns[scale]))
		return;
	p->proven |= only_hosts;
	if (!avoidable(f, w->component) ||
	    (w->host && (host_proven || !can_spare(f, w->component)))) {
		if (p->state == BL_FAULTS_SUSPECT)
			return;
		stick_flows(f, w->component, scale, false, now);
		enter_state(f, w->component, BL_FAULTS_SUSPECT, now);
		return;
	}
	stick_flows(f, w->component, scale, true, now);
	p->until_ns = now + p->hold_ns;
	p->hold_ns = 2 * p->hold_ns < most ? 2 * p->hold_ns : most;
	p->times++;
	enter_state(f, w->component, BL_FAULTS_BROKEN, now);
}

static void part_release(struct bl_faults *f, uint32_t c, enum bl_faults_state state, uint64_t now)
{
	unstick_flows(f, c);
	f->part[c].named = 0;
	enter_state(f, c, state, now);
}

/*
 * Takes note that a component was not named this time. @known: bad flows through it are remembered.
 */
static void part_unnamed(struct bl_faults *f, uint32_t c, bool known, uint64_t now)
{
	struct bl_faults_part *p = &f->part[c];

	p->named = 0;
	if (p->unnamed < CONFIRM)
		p->unnamed++;
	if (p->unnamed < CONFIRM)
		return;
	/*
	 * Something else explains the losses. What nothing explains any more, because a host
	 * started to count anew, stays avoided. A host that was proven stays suspect for a hold
	 * time: the windows of the links that are released start anew, and must not lead to the
	 * same experiment at once.
	 */
	if (p->state == BL_FAULTS_BROKEN && known) {
		p->hold_ns = f->cfg.hold_ns;
		part_release(f, c, BL_FAULTS_GOOD, now);
	} else if ((p->state == BL_FAULTS_SUSPECT &&
		    (!p->proven || now - p->since_ns >= f->cfg.hold_ns)) ||
		   (p->state == BL_FAULTS_TRIAL && f->good_long[c])) {
		p->hold_ns = f->cfg.hold_ns;
		p->proven = 0;
		enter_state(f, c, BL_FAULTS_GOOD, now);
	}
}

/*
 * What one evaluation found about a component: it was named; or it is avoided, was not named, and
 * bad flows through it are remembered.
 */
enum { SEEN = 1, KNOWN };

static void evaluate_flows(struct bl_faults *f, uint64_t now)
{
	uint32_t scale, i, n, unexplained, c;
	uint8_t *seen = calloc(f->nparts, 1);
	int k, found;

	if (!seen)
		return;
	f->t.evaluations++;
	f->t.unexplained = 0;
	for (scale = 0; scale < BL_FAULT_SCALES; scale++) {
		n = judge_flows(f, scale, now);
		found = bl_iso_find(&f->cfg.net, f->flow, n, f->named, f->nparts, f->good_long,
				    &unexplained);
		f->t.unexplained += unexplained;
		for (k = 0; k < found; k++) {
			c = f->named[k].component;
			if (!f->part[c].named)
				f->part[c].first_ns = now;
			if (!seen[c] && f->part[c].named < CONFIRM)
				f->part[c].named++;
			seen[c] = SEEN;
			f->part[c].unnamed = 0;
		}
		for (k = 0; k < found; k++)
			part_named(f, &f->named[k], (uint32_t)found, scale, now);
	}
	/*
	 * All components are looked at before any is released: those that were avoided together
	 * remember the same flows.
	 */
	for (i = 0; i < f->nparts; i++)
		if (!seen[i] && f->part[i].state == BL_FAULTS_BROKEN && has_stuck_flows(f, i))
			seen[i] = KNOWN;
	for (i = 0; i < f->nparts; i++)
		if (seen[i] != SEEN && (f->part[i].named || f->part[i].state != BL_FAULTS_GOOD))
			part_unnamed(f, i, seen[i] == KNOWN, now);
	free(seen);
}

uint64_t bl_faults_tick(struct bl_faults *f, uint64_t now, bool *changed)
{
	uint64_t next = now + 50000000;
	uint32_t c;

	if (now >= f->due_ns && f->heard) {
		f->heard = false;
		f->due_ns = now + f->cfg.report_ns;
		evaluate_flows(f, now);
	}
	for (c = 2 * f->cfg.net.endpoints; c < f->nparts; c++)
		if (f->part[c].state == BL_FAULTS_BROKEN && now >= f->part[c].until_ns)
			part_release(f, c, BL_FAULTS_TRIAL, now);
	*changed = f->dirty;
	if (f->dirty) {
		f->dirty = false;
		f->t.version++;
		for (c = 0; c < f->cfg.narbiters; c++)
			f->told[c].due_ns = 0;
	}
	if (f->heard && f->due_ns < next)
		next = f->due_ns;
	for (c = 0; c < f->cfg.narbiters; c++)
		next = bl_min64(next, f->told[c].due_ns);
	return next;
}

void bl_faults_clear(struct bl_faults *f, uint64_t now)
{
	uint32_t i, k;

	for (i = 0; i < f->npairs; i++) {
		for (k = 0; k < f->pair[i]->p.n; k++)
			f->pair[i]->col[k].sticky = 0;
		bl_fault_forget(&f->pair[i]->p, 0);
	}
	for (i = 0; i < f->nparts; i++) {
		f->part[i].named = f->part[i].unnamed = f->part[i].proven = 0;
		f->part[i].hold_ns = f->cfg.hold_ns;
		if (f->part[i].state != BL_FAULTS_GOOD)
			enter_state(f, i, BL_FAULTS_GOOD, now);
	}
	f->dirty = true;
}

/* ---- arbiters ---- */

static uint32_t list_links(const struct bl_faults *f, struct bl_fcp_link *l)
{
	const struct bl_iso_net *net = &f->cfg.net;
	uint32_t c, n = 0, who, path;

	for (c = 2 * net->endpoints; c < f->nparts && n < BL_FCP_LINKS_MAX; c++) {
		enum bl_iso_kind kind = bl_iso_what(net, c, &who, &path);

		if (f->part[c].state != BL_FAULTS_BROKEN)
			continue;
		l[n++] = (struct bl_fcp_link){ .rack = BL_BE16(kind == BL_ISO_PATH ? BL_FCP_RACK_ALL
										   : who),
					       .path = (uint8_t)path,
					       .way = kind == BL_ISO_DOWN };
	}
	return n;
}

uint32_t bl_faults_tx(struct bl_faults *f, uint64_t now, void *buf, unsigned int *arbiter)
{
	struct bl_fcp_faults *b = (void *)((uint8_t *)buf + sizeof(struct bl_fcp_hdr));
	unsigned int i;
	uint32_t n;

	for (i = 0; i < f->cfg.narbiters; i++) {
		struct told *to = &f->told[i];

		if (now < to->due_ns)
			continue;
		n = list_links(f, (struct bl_fcp_link *)(b + 1));
		*b = (struct bl_fcp_faults){ .boot = BL_BE64(f->boot),
					     .version = BL_BE32(f->t.version),
					     .table = BL_BE32(f->cfg.table),
					     .count = BL_BE16(n) };
		to->due_ns =
			now + (to->answered && to->boot == f->boot && to->version == f->t.version
				       ? REPEAT_NS
				       : RETRY_NS);
		*arbiter = i;
		f->t.sent++;
		return bl_fcp_seal(&f->params, 0, BL_FCP_FAULTS, to->challenge, ++f->seq, 0, 0, buf,
				   (uint32_t)(sizeof(struct bl_fcp_hdr) + sizeof(*b) +
					      n * sizeof(struct bl_fcp_link)));
	}
	return 0;
}

/* ---- reading, life ---- */

const struct bl_faults_part *bl_faults_part(const struct bl_faults *f, uint32_t component)
{
	return &f->part[component];
}

uint64_t bl_faults_heard_ns(const struct bl_faults *f, uint32_t endpoint)
{
	return f->host[endpoint].heard_ns;
}

int64_t bl_faults_has(const struct bl_faults *f, unsigned int i)
{
	if (!f->told[i].answered)
		return -1;
	return f->told[i].boot == f->boot ? f->told[i].version : 0;
}

void bl_faults_read(const struct bl_faults *f, struct bl_faults_total *t)
{
	uint32_t c;

	*t = f->t;
	t->pairs = f->npairs;
	for (c = 2 * f->cfg.net.endpoints; c < f->nparts; c++)
		t->avoided += f->part[c].state == BL_FAULTS_BROKEN;
}

void bl_faults_free(struct bl_faults *f)
{
	uint32_t i;

	if (!f)
		return;
	for (i = 0; i < f->npairs; i++)
		free(f->pair[i]);
	free(f->pair);
	free(f->hash);
	free(f->part);
	free(f->named);
	free(f->good_long);
	free(f->host);
	free(f->flow);
	free(f);
}

struct bl_faults *bl_faults_new(const struct bl_faults_cfg *cfg, uint64_t boot)
{
	struct bl_faults *f = calloc(1, sizeof(*f));
	uint32_t i;

	if (!f)
		return NULL;
	f->cfg = *cfg;
	f->boot = boot;
	f->t.version = 1;
	f->params.secret[0] = cfg->secret[0];
	f->params.secret[1] = cfg->secret[1];
	f->nparts = bl_iso_components(&cfg->net);
	for (f->hash_mask = 1023; f->hash_mask < 16 * cfg->net.endpoints;
	     f->hash_mask = 2 * f->hash_mask + 1)
		;
	f->hash = calloc(f->hash_mask + 1, sizeof(*f->hash));
	f->part = calloc(f->nparts, sizeof(*f->part));
	f->named = calloc(f->nparts, sizeof(*f->named));
	f->good_long = calloc(f->nparts, 1);
	f->host = calloc(cfg->net.endpoints, sizeof(*f->host));
	if (!f->hash || !f->part || !f->named || !f->good_long || !f->host) {
		bl_faults_free(f);
		return NULL;
	}
	for (i = 0; i < f->nparts; i++)
		f->part[i].hold_ns = cfg->hold_ns;
	return f;
}
