/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Networks for the tests of controller/recover/determine.c: a graph with its result, random graphs,
 * and all flows from host to host.
 */
#ifndef BARLINE_TESTS_DETERMINE_NET_H
#define BARLINE_TESTS_DETERMINE_NET_H

#include "controller/recover/determine.h"
#include "tests/unit/unit.h"

#define NODES 24
#define LINKS 64

struct net {
	struct bl_det_node node[NODES];
	struct bl_det_link link[LINKS];
	uint16_t root[NODES];
	struct bl_det_graph g;
	struct bl_det_found found[NODES];
	uint8_t todo[2 * LINKS];
	struct bl_det_sum sum;
};

static void net_wire(struct net *n)
{
	n->g.node = n->node;
	n->g.link = n->link;
	n->g.root = n->root;
}

#define FLOWS 40000
#define FLOW  10

/** struct flow - Nodes at[0] (a host) to at[n], by way[0] to way[n - 1] (2 * link + direction). */
struct flow {
	uint8_t at[FLOW + 1], way[FLOW], n;
};
static struct flow flows[FLOWS];
static unsigned int nflows;

static void walk(const struct net *n, struct flow *f, bool down)
{
	unsigned int u = f->at[f->n], i, dir;

	if (f->n) {
		assert_true(nflows < FLOWS);
		flows[nflows++] = *f;
		if (n->node[u].kind == BL_DET_HOST)
			return;
	}
	assert_true(f->n < FLOW);
	for (i = 0; i < n->g.links; i++)
		for (dir = 0; dir < 2; dir++) {
			const struct bl_det_link *l = &n->link[i];

			if ((dir ? l->high : l->low) != u || (dir == BL_DET_TO_HIGH && down))
				continue;
			f->way[f->n++] = 2 * i + dir;
			f->at[f->n] = dir ? l->low : l->high;
			walk(n, f, dir == BL_DET_TO_LOW);
			f->n--;
		}
}

static void walk_all(const struct net *n)
{
	unsigned int i;

	nflows = 0;
	for (i = 0; i < n->g.nodes; i++)
		if (n->node[i].kind == BL_DET_HOST) {
			struct flow f = { .at = { i } };

			walk(n, &f, false);
		}
}

static const struct bl_det_way *way_of(const struct net *n, unsigned int w)
{
	return &n->link[w / 2].way[w % 2];
}

/*
 * Makes hosts 0 to h - 1, then tiers of switches, with links mostly between tiers; any link may be
 * cut, reported or resumed.
 */
static void net_random(struct net *n, struct rnd *r)
{
	unsigned int tier[NODES] = { 0 }, hosts = 2 + rnd_below(r, 4), tiers = 1 + rnd_below(r, 3),
		     i, j, dir, at = hosts, k;

	memset(n, 0, sizeof(*n));
	net_wire(n);
	for (k = 1; k <= tiers; k++)
		for (i = 1 + rnd_below(r, k == tiers && k > 1 ? 2 : 3); i--;)
			tier[at++] = k;
	n->g.nodes = at;
	for (i = 0; i < at; i++) {
		n->node[i] = (struct bl_det_node){ .kind = i < hosts ? BL_DET_HOST : BL_DET_SWITCH,
						   .processes = rnd_below(r, 4) };
		k = rnd_below(r, 24);
		n->node[i].state = k == 0 ? BL_DET_GONE : k < 3 ? BL_DET_DOWN : BL_DET_UP;
		for (j = hosts; j < at; j++) {
			struct bl_det_link *l = &n->link[n->g.links];

			/* each host on the first switch of its number, and sometimes on another */
			if (tier[j] != tier[i] + 1 ||
			    (i < hosts ? (j - hosts) % hosts != i % 3 && rnd_below(r, 4)
				       : !rnd_below(r, 6)))
				continue;
			l->low = i;
			l->high = j;
			n->g.links++;
		}
	}
	for (k = rnd_below(r, 3);
	     k-- &&
	     n->g.links;) /* nodes whose neighbours have noticed their failure, most of them */
		for (i = 0, j = rnd_below(r, at); i < n->g.links; i++) {
			if (n->link[i].low == j && rnd_below(r, 6))
				n->link[i].way[BL_DET_TO_HIGH] =
					(struct bl_det_way){ 1 + rnd_below(r, 50), 0,
							     BL_DET_SILENT };
			if (n->link[i].high == j && rnd_below(r, 6))
				n->link[i].way[BL_DET_TO_LOW] =
					(struct bl_det_way){ 1 + rnd_below(r, 50), 0,
							     BL_DET_SILENT };
		}
	for (i = 0; i < n->g.links; i++)
		for (dir = 0; dir < 2; dir++) {
			k = rnd_below(r, 40);
			if (k < 3)
				n->link[i].way[dir] =
					(struct bl_det_way){ k ? 1 + rnd_below(r, 50) : BL_DET_NO_C,
							     0, BL_DET_SILENT, !rnd_below(r, 3) };
			else if (k < 5)
				n->link[i].way[dir].state = k == 3 ? BL_DET_REMOVED : BL_DET_BEHIND;
		}
	for (k = rnd_below(r, 3); k--;)
		n->root[n->g.roots++] = rnd_below(r, at);
}

static bool is_failed(const struct net *n, unsigned int i)
{
	return n->found[i].why != BL_DET_CORRECT;
}

static bool is_new(const struct net *n, unsigned int i)
{
	return is_failed(n, i) && n->found[i].why != BL_DET_BEFORE;
}

#endif
