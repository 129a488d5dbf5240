// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See figures.h. */
#include <string.h>

#include "core/figures_core.h"
#include "figures.h"

void bl_fig_copy(struct bl_endpoint *ep)
{
	struct bl_figures *f = ep->fig;

#define COPY(sym, member) BL_WRITE_ONCE(f->count[BL_FIG_N_##sym], ep->st.member);
	BL_FIG_COUNTS(COPY)
#undef COPY
	BL_WRITE_ONCE(f->queued[0], ep->rq.frames);
	BL_WRITE_ONCE(f->queued[1], ep->rrq.frames);
}

void bl_fig_staged(struct bl_endpoint *ep, bool reliable, uint64_t mono)
{
	struct bl_fig_now *n = &ep->fig->now[reliable];

	BL_WRITE_ONCE(n->held_ns, 0);
	BL_WRITE_ONCE(n->since_ns, mono);
}

void bl_fig_held(struct bl_endpoint *ep, bool reliable, uint64_t mono, enum bl_fig_why why,
		 const struct bl_peer *p)
{
	struct bl_fig_now *n = &ep->fig->now[reliable];

	if (!n->since_ns)
		return;
	n->why = (__u8)why;
	n->port = p ? p->addr.port : 0;
	if (p)
		memcpy(n->dst, p->addr.ip, sizeof(n->dst));
	if (!n->held_ns)
		BL_WRITE_ONCE(n->held_ns, mono);
}

void bl_fig_left(struct bl_endpoint *ep, bool reliable, uint64_t mono, uint64_t ts)
{
	struct bl_fig_now *n = &ep->fig->now[reliable];
	uint64_t since, held, wait;

	if (!n->since_ns)
		return;
	since = n->since_ns;
	held = n->held_ns ? n->held_ns : mono;
	wait = mono - since;
	BL_WRITE_ONCE(n->since_ns, 0);
	if (!ts)
		return;
	bl_fig_add(&ep->fig->hist[BL_FIG_SEND + reliable], wait, 1);
	if (wait >= BL_FIG_SHORT_NS) {
		struct bl_fig_wait e = { .ts = ts,
					 .staged_ns = held - since,
					 .window_ns = mono - held,
					 .port = n->port,
					 .why = n->held_ns ? n->why : BL_FIG_MORE,
					 .reliable = reliable };

		memcpy(e.dst, n->dst, sizeof(e.dst));
		bl_fig_put(ep->fig->wait, &ep->fig->nwaits, &e, sizeof(e));
	}
}

void bl_fig_hold(struct bl_endpoint *ep, bool reliable, const struct bl_buf *b)
{
	uint32_t now = (uint32_t)(bl_mono() >> BL_REC_AT_SHIFT);

	ep->fig_hold_ts = b->rq.ts;
	ep->fig_hold_ns = (uint64_t)(uint32_t)((now | 1) - b->at) << BL_REC_AT_SHIFT;
	bl_fig_add(&ep->fig->hist[BL_FIG_HOLD + reliable], ep->fig_hold_ns, 1);
}

/* By the host's clock; a promise ahead, or the sender's clock, can make it negative. */
static uint64_t since_timestamp(uint64_t now, uint64_t ts)
{
	return now > ts ? now - ts : 0;
}

void bl_fig_measure(struct bl_endpoint *ep, bool reliable, const struct bl_delivery *d, int n)
{
	struct bl_fig_end e = { .ts = d[0].ts, .port = d[0].src.port, .reliable = reliable };
	uint64_t now;
	int from = 0, i;

	e.at_ns = bl_mono();
	now = bl_clock_at(ep->clock, e.at_ns);
	for (i = 1; i <= n; i++) {
		if (i < n && d[i].ts == d[from].ts)
			continue;
		bl_fig_add(&ep->fig->hist[BL_FIG_DELIVERY + reliable],
			   since_timestamp(now, d[from].ts), (uint64_t)(i - from));
		from = i;
	}
	e.total_ns = since_timestamp(now, e.ts);
	e.hold_ns = ep->fig_hold_ts == e.ts ? ep->fig_hold_ns : 0;
	memcpy(e.src, d[0].src.ip, sizeof(e.src));
	bl_fig_put(ep->fig->end, &ep->fig->nends, &e, sizeof(e));
}
