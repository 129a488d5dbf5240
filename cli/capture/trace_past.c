// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See trace_past.h. */
#include "cli/capture/trace_past.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "cli/live/holder.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "cli/util/read_figures.h"
#include "core/figures_core.h"
#include "maps/host_abi.h"

#define STAGED_NS 1000000 /* what waits to leave for longer is shown */

/** struct rows - rows that are to be printed. */
struct rows {
	struct trace_row *r;
	unsigned int n, room;
	bool no_memory;
};

static void add_row(struct rows *to, const struct trace_row *r)
{
	if (to->n == to->room) {
		unsigned int room = to->room ? 2 * to->room : 64;
		struct trace_row *more = realloc(to->r, room * sizeof(*more));

		if (!more) {
			to->no_memory = true;
			return;
		}
		to->r = more;
		to->room = room;
	}
	to->r[to->n++] = *r;
}

/** struct wanted - which rows. */
struct wanted {
	const struct message_name *message; /* NULL: any */
	uint16_t endpoint;                  /* 0: any */
};

static bool is_wanted(const struct wanted *w, const struct trace_row *r)
{
	if (w->endpoint && w->endpoint != r->name.src.port && w->endpoint != r->dst.port)
		return false;
	if (!w->message)
		return true;
	return r->name.ts && bl_fig_same_ts(r->name.ts, w->message->ts) &&
	       (!w->message->src.port ||
		(w->message->src.port == r->name.src.port &&
		 !memcmp(w->message->src.ip, r->name.src.ip, sizeof(r->name.src.ip))));
}

/* The messages that an endpoint has delivered. */
static void add_ends(struct rows *to, const struct wanted *w, const struct bl_figures *f,
		     const struct bl_addr *self)
{
	struct trace_row r;
	struct bl_fig_end e;
	unsigned int i;

	for (i = 0; i < BL_FIG_KEPT; i++) {
		if (!bl_fig_get(f->end, i, &e, sizeof(e)))
			continue;
		trace_row_clear(&r);
		r.name.ts = e.ts;
		r.name.src.port = e.port;
		memcpy(r.name.src.ip, e.src, sizeof(r.name.src.ip));
		r.dst = *self;
		r.reliable = e.reliable;
		r.ns[TRACE_TOTAL] = (int64_t)e.total_ns;
		if (e.hold_ns)
			r.ns[TRACE_ORDER] = (int64_t)e.hold_ns;
		r.at_ns = e.at_ns;
		if (is_wanted(w, &r))
			add_row(to, &r);
	}
}

/* What is staged in an endpoint, and has no timestamp. */
static void add_staged(struct rows *to, const struct wanted *w, const struct bl_figures *f,
		       const struct bl_addr *self)
{
	uint64_t now = bl_mono_ns();
	unsigned int k;

	for (k = 0; k < 2; k++) {
		uint64_t since = BL_READ_ONCE(f->now[k].since_ns);
		uint64_t held = BL_READ_ONCE(f->now[k].held_ns);
		struct trace_row r;

		if (!since || since >= now || now - since < STAGED_NS)
			continue;
		held = held > since && held < now ? held : 0;
		trace_row_clear(&r);
		r.name.src = *self;
		r.reliable = k;
		r.ns[TRACE_STAGED] = (int64_t)((held ? held : now) - since);
		r.ns[TRACE_WINDOW] = held ? (int64_t)(now - held) : 0;
		r.why = held ? f->now[k].why : BL_FIG_MORE;
		if (r.why == BL_FIG_WINDOW) {
			memcpy(r.window.ip, f->now[k].dst, sizeof(r.window.ip));
			r.window.port = f->now[k].port;
		}
		if (is_wanted(w, &r))
			add_row(to, &r);
	}
}

static void add_host(struct rows *to, const struct wanted *w, const struct bl_node_ref *ref)
{
	struct bl_ep_slot *s = calloc(BL_PORT_COUNT, sizeof(*s));
	bool known = s && !bl_map_read_all(ref, BL_MAP_EPS, sizeof(*s), BL_PORT_COUNT, s, NULL);
	uint32_t i;

	to->no_memory |= !s;
	for (i = 0; known && i < BL_PORT_COUNT; i++) {
		const struct bl_figures *f;
		struct bl_addr self;
		struct bl_err err;

		if (!s[i].active || s[i].slot >= BL_EPS_MAX)
			continue;
		f = figures_map(ref, s[i].slot, &err);
		if (!f)
			continue; /* it is leaving */
		memcpy(self.ip, s[i].addr, sizeof(self.ip));
		self.port = s[i].port;
		add_ends(to, w, f, &self);
		add_staged(to, w, f, &self);
		figures_unmap(f);
	}
	free(s);
}

/* ---- who is behind now ---- */

static void name_culprit(const struct live_culprit *c, struct trace_holder *h)
{
	h->known = h->now = true;
	h->at = node_name(&c->at->ref);
	h->port = c->port->name;
	if (c->node)
		snprintf(h->node, sizeof(h->node), "%.31s", node_name(&c->node->ref));
	else
		snprintf(h->node, sizeof(h->node), "node %u", c->node_id);
}

/*
 * Prints one row for each host that cannot have delivered the message yet. Whether the host has a
 * receiver of it is not known. Returns how many there are.
 */
static unsigned int print_waiting(const struct live_snap *s, const struct bl_node_ref *refs,
				  int nrefs, const struct message_name *m, bool reliable)
{
	enum live_stream stream = reliable ? LIVE_RELIABLE : LIVE_ORDER;
	unsigned int printed = 0;
	int i;

	for (i = 0; i < s->nodes; i++) {
		const struct live_node *n = &s->node[i];
		struct live_culprit c;
		struct trace_row r;

		if (n->ref.role != BL_ROLE_HOST || !n->in.n ||
		    (reliable ? n->in.page.commit : n->in.page.barrier) > m->ts)
			continue;
		trace_row_clear(&r);
		r.name = *m;
		r.reliable = reliable;
		r.ns[TRACE_TOTAL] = n->bus_ns ? (int64_t)(n->bus_ns - m->ts) : TRACE_UNKNOWN;
		trace_row_wait(&r, refs, nrefs);
		if (hold_follow(s, n, 0, stream, m->ts, &c))
			name_culprit(&c, &r.holder);
		if (!cli.json)
			printf("%s has no %s above %llu yet:\n", node_name(&n->ref),
			       reliable ? "commit barrier" : "barrier", (unsigned long long)m->ts);
		trace_row_print(&r, !printed++);
	}
	return printed;
}

static int by_end(const void *a, const void *b)
{
	const struct trace_row *x = a, *y = b;

	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

/*
 * Sorts the rows, and prints the last @most of those that took long enough. What waits to leave has
 * not ended, and comes first: it is always shown. Returns how many it has printed.
 */
static unsigned int print_rows(struct rows *rows, const struct bl_node_ref *refs, int nrefs,
			       unsigned int most, int64_t slower_ns)
{
	unsigned int i, n = 0, from = rows->n; /* the rows from @from on are printed */

	if (rows->n)
		qsort(rows->r, rows->n, sizeof(*rows->r), by_end);
	/* from the end, since a look at the sender's endpoint takes some system calls */
	for (i = rows->n; i-- > 0;) {
		struct trace_row *r = &rows->r[i];

		if (r->at_ns && rows->n - from >= most)
			continue;
		if (r->name.ts)
			trace_row_wait(r, refs, nrefs);
		if (trace_row_took(r) >= slower_ns)
			rows->r[--from] = *r;
	}
	for (i = from; i < rows->n; i++)
		trace_row_print(&rows->r[i], !n++);
	return n;
}

int trace_last(const struct bl_node_ref *refs, int nrefs, unsigned int n, uint16_t endpoint,
	       int64_t slower_ns)
{
	const struct wanted w = { .endpoint = endpoint };
	struct rows rows = { 0 };
	unsigned int printed;
	int i;

	for (i = 0; i < nrefs; i++)
		if (refs[i].role == BL_ROLE_HOST)
			add_host(&rows, &w, &refs[i]);
	printed = print_rows(&rows, refs, nrefs, n, slower_ns);
	free(rows.r);
	if (rows.no_memory)
		return cli_fail("out of memory");
	if (!printed)
		return cli_fail("no endpoint here has delivered such a message; -a looks at all "
				"network namespaces");
	return 0;
}

/* Prints what is not noted anywhere, and which hosts wait for it. Returns the exit status. */
static int trace_unknown(const struct live_snap *s, const struct bl_node_ref *refs, int nrefs,
			 const struct message_name *m)
{
	char name[96];
	uint64_t now = 0;
	int i;

	for (i = 0; i < s->nodes; i++) {
		if (s->node[i].error[0])
			cli_fail("%s: %s", node_name(&s->node[i].ref), s->node[i].error);
		now = now ? now : s->node[i].bus_ns;
	}
	message_format(m, name, sizeof(name));
	if (now && m->ts > now + 1000000000)
		return cli_fail("%s is not sent yet: bus time is %llu", name,
				(unsigned long long)now);
	if (print_waiting(s, refs, nrefs, m, false) || print_waiting(s, refs, nrefs, m, true))
		return 0;
	return cli_fail("nothing is known of %s any more: every barrier here has passed it, and "
			"the endpoints here have noted later messages or others; `barline trace` "
			"must run while a message is under way to see each hop",
			name);
}

int trace_message(const struct bl_node_ref *refs, int nrefs, const struct message_name *m)
{
	const struct wanted w = { .message = m };
	struct rows rows = { 0 };
	struct live_snap *s;
	unsigned int printed;
	int i, rc;

	for (i = 0; i < nrefs; i++)
		if (refs[i].role == BL_ROLE_HOST)
			add_host(&rows, &w, &refs[i]);
	printed = print_rows(&rows, refs, nrefs, rows.n, 0);
	free(rows.r);
	if (rows.no_memory)
		return cli_fail("out of memory");
	if (printed)
		return 0;
	s = live_snap_barriers(refs, nrefs);
	if (!s)
		return cli_fail("out of memory");
	live_holds(NULL, s);
	rc = trace_unknown(s, refs, nrefs, m);
	live_snap_free(s);
	return rc;
}
