// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See holder.h. */
#include "cli/live/holder.h"

#include <string.h>

#include "core/order/barrier_core.h"

uint64_t hold_limit(uint64_t beacon_ns)
{
	return 10 * beacon_ns > HOLD_LATE_NS ? 10 * beacon_ns : HOLD_LATE_NS;
}

/* Whether a lane counts for the minimum of a stream, as in bl_port_leaf(), and with which time. */
static bool lane_counts(const struct bl_reg *r, enum live_stream stream, uint64_t *time)
{
	*time = stream == LIVE_ORDER ? r->b : r->c;
	return stream == LIVE_ORDER ? bl_reg_live(r)
				    : (r->state & (BL_REG_IN | BL_REG_AWAITED)) && r->c;
}

bool hold_input_time(const struct node_input *in, enum live_stream stream, uint64_t *time,
		     uint32_t *lane)
{
	bool counts = false;
	uint64_t t;
	uint32_t l;

	for (l = 0; l < BL_LANES_MAX; l++) {
		if (!lane_counts(&in->reg[l], stream, &t) || (counts && t >= *time))
			continue;
		counts = true;
		*time = t;
		*lane = l;
	}
	return counts;
}

void hold_find(const struct node_inputs *in, unsigned int set, enum live_stream stream,
	       uint64_t now, struct live_hold *h)
{
	uint64_t limit = hold_limit(in->beacon_ns), time = 0;
	uint32_t i, lane = 0;

	*h = (struct live_hold){ .next = BL_TIME_NONE };
	for (i = 0; i < in->n; i++) {
		if (!(in->in[i].cfg.in_sets & 1U << set) ||
		    !hold_input_time(&in->in[i], stream, &time, &lane))
			continue;
		h->inputs++;
		h->late += now && time + limit < now;
		if (h->known && time >= h->time) {
			h->next = time < h->next ? time : h->next;
			continue;
		}
		h->next = h->known ? h->time : BL_TIME_NONE;
		h->known = true;
		h->input = i;
		h->lane = lane;
		h->time = time;
	}
}

const struct live_node *live_same_node(const struct live_snap *s, const struct live_node *n)
{
	int i;

	for (i = 0; s && i < s->nodes; i++)
		if (s->node[i].ref.role == n->ref.role &&
		    s->node[i].ref.netns_ino == n->ref.netns_ino)
			return &s->node[i];
	return NULL;
}

/*
 * Since when the input is late: it stands still since its barrier was the time, and if it was late
 * before already, since then.
 */
static uint64_t late_since(const struct live_node *n, const struct live_hold *h,
			   const struct live_node *was, const struct live_hold *before)
{
	uint64_t lag, since;

	if (!h->late || !n->bus_ns)
		return 0;
	/* BL_C_UNKNOWN and 0 are no times: it is late from the first reading on */
	lag = h->time > BL_C_UNKNOWN ? n->bus_ns - h->time : 0;
	since = n->at_ns - (lag < n->at_ns ? lag : n->at_ns);
	if (was && before->since_ns && before->since_ns < since && before->input < was->in.n &&
	    was->in.in[before->input].port == n->in.in[h->input].port)
		since = before->since_ns;
	return since ? since : 1;
}

void live_holds(const struct live_snap *old, struct live_snap *now)
{
	int i, s, k;

	for (i = 0; i < now->nodes; i++) {
		struct live_node *n = &now->node[i];
		const struct live_node *was = live_same_node(old, n);

		for (s = 0; s < BL_SETS_MAX; s++)
			for (k = 0; k < LIVE_STREAMS; k++) {
				struct live_hold *h = &n->hold[s][k];

				*h = (struct live_hold){ 0 };
				if (!(n->in.sets & 1U << s))
					continue;
				hold_find(&n->in, (unsigned int)s, (enum live_stream)k, n->bus_ns,
					  h);
				h->since_ns = late_since(n, h, was, was ? &was->hold[s][k] : NULL);
			}
	}
}

/* The set of the output of @n that leads to the node with this id. Returns false if none does. */
static bool set_towards(const struct live_node *n, uint32_t id, unsigned int *set)
{
	uint32_t i;

	for (i = 0; i < n->in.n; i++)
		if (n->in.in[i].life.neighbour == id) {
			*set = n->in.in[i].cfg.out_set;
			return true;
		}
	return false;
}

/*
 * The node with @id that has the node @neighbour as a neighbour. NULL: there is none, or there are
 * several, as in two racks of one machine.
 */
static const struct live_node *neighbour_node(const struct live_snap *s, uint32_t id,
					      uint32_t neighbour)
{
	const struct live_node *found = NULL;
	unsigned int set;
	int i;

	for (i = 0; id && i < s->nodes; i++) {
		if (s->node[i].ref.meta.node_id != id || !set_towards(&s->node[i], neighbour, &set))
			continue;
		if (found)
			return NULL;
		found = &s->node[i];
	}
	return found;
}

/* The endpoint of a host whose send holds its barrier back: the oldest that is in flight. */
static const struct endpoint_row *holding_endpoint(const struct live_node *n,
						   enum live_stream stream)
{
	const struct endpoint_row *found = NULL;
	uint64_t least = BL_TIME_NONE, t;
	int i;

	for (i = 0; i < n->eps; i++) {
		const struct bl_inflight *l = &n->ep[i].line;

		t = l->ts && l->ts > n->ep[i].word.over ? l->ts : BL_TIME_NONE;
		if (stream == LIVE_RELIABLE && l->hold && l->hold < t)
			t = l->hold;
		if (n->ep[i].word.out || t >= least)
			continue;
		least = t;
		found = &n->ep[i];
	}
	/* a send that has just begun holds nobody */
	return found && n->bus_ns > least && n->bus_ns - least > hold_limit(n->in.beacon_ns) ? found
											     : NULL;
}

bool hold_follow(const struct live_snap *s, const struct live_node *n, unsigned int set,
		 enum live_stream stream, uint64_t ts, struct live_culprit *c)
{
	int level;

	memset(c, 0, sizeof(*c));
	for (level = 0; level < HOLD_LEVELS_MAX; level++) {
		const struct live_hold *h = &n->hold[set][stream];
		uint32_t id = n->ref.meta.node_id;

		if (!h->known || h->time > ts)
			break;
		c->at = n;
		c->port = &n->in.in[h->input];
		c->node_id = c->port->life.neighbour;
		c->node = neighbour_node(s, c->node_id, id);
		if (!c->node || c->node->ref.role != BL_ROLE_SWITCH ||
		    !set_towards(c->node, id, &set))
			break;
		n = c->node;
	}
	if (c->node && c->node->ref.role == BL_ROLE_HOST)
		c->ep = holding_endpoint(c->node, stream);
	return c->at != NULL;
}
