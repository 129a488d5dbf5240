// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See isolate.h. The time is proportional to flows x components of a flow x components named. All
 * counts belong to one call and are dropped at its end.
 */
#include <stdlib.h>
#include <string.h>

#include "arbiter/faults/isolate.h"

/** struct work - State of one call of bl_iso_find(). */
struct work {
	const struct bl_iso_net *net;
	const struct bl_iso_flow *f;
	uint32_t *bad, nbad;         /* numbers of the bad flows */
	uint8_t *explained;          /* [bad] a chosen component explains the flow */
	uint32_t *count;             /* [component] bad flows without explanation */
	uint32_t *both;              /* [component] those that also pass through the one in hand */
	uint32_t *touched, ntouched; /* components of any bad flow, each once */
	uint32_t *chosen, nchosen;   /* components that were chosen */
};

uint32_t bl_iso_components(const struct bl_iso_net *net)
{
	return 2 * net->endpoints + 2 * net->racks * net->paths + net->racks + net->paths;
}

uint32_t bl_iso_number(const struct bl_iso_net *net, enum bl_iso_kind kind, uint32_t who,
		       uint32_t path)
{
	const uint32_t links = 2 * net->endpoints, between = net->racks * net->paths;

	switch (kind) {
	case BL_ISO_HOST_UP:
		return who;
	case BL_ISO_HOST_DOWN:
		return net->endpoints + who;
	case BL_ISO_UP:
		return links + who * net->paths + path;
	case BL_ISO_DOWN:
		return links + between + who * net->paths + path;
	case BL_ISO_RACK:
		return links + 2 * between + who;
	default:
		return links + 2 * between + net->racks + path;
	}
}

enum bl_iso_kind bl_iso_what(const struct bl_iso_net *net, uint32_t c, uint32_t *who,
			     uint32_t *path)
{
	const uint32_t between = net->racks * net->paths;

	*path = 0;
	*who = c;
	if (c < net->endpoints)
		return BL_ISO_HOST_UP;
	*who = c -= net->endpoints;
	if (c < net->endpoints)
		return BL_ISO_HOST_DOWN;
	c -= net->endpoints;
	if (c < 2 * between) {
		bool down = c >= between;

		c -= down ? between : 0;
		*who = c / net->paths;
		*path = c % net->paths;
		return down ? BL_ISO_DOWN : BL_ISO_UP;
	}
	*who = c -= 2 * between;
	if (c < net->racks)
		return BL_ISO_RACK;
	*who = 0;
	*path = c - net->racks;
	return BL_ISO_PATH;
}

/* Returns true if the path number identifies the links between these racks. */
static bool path_known(const struct bl_iso_net *net, uint32_t from, uint32_t to, uint32_t path)
{
	return path < net->paths && (!net->pod_of || net->pod_of[from] != net->pod_of[to]);
}

unsigned int bl_iso_through(const struct bl_iso_net *net, const struct bl_iso_flow *f,
			    uint32_t out[BL_ISO_COMPONENTS])
{
	uint32_t from = net->rack_of[f->src], to = net->rack_of[f->dst];
	unsigned int n = 0;

	out[n++] = bl_iso_number(net, BL_ISO_HOST_UP, f->src, 0);
	out[n++] = bl_iso_number(net, BL_ISO_HOST_DOWN, f->dst, 0);
	out[n++] = bl_iso_number(net, BL_ISO_RACK, from, 0);
	if (from == to)
		return n;
	out[n++] = bl_iso_number(net, BL_ISO_RACK, to, 0);
	if (!path_known(net, from, to, f->path))
		return n;
	out[n++] = bl_iso_number(net, BL_ISO_UP, from, f->path);
	out[n++] = bl_iso_number(net, BL_ISO_DOWN, to, f->path);
	out[n++] = bl_iso_number(net, BL_ISO_PATH, 0, f->path);
	return n;
}

static bool is_switch(const struct bl_iso_net *net, uint32_t c)
{
	return c >= 2 * net->endpoints + 2 * net->racks * net->paths;
}

/*
 * Returns true if the fault may be in a link that the flow does not identify, since its path
 * between racks is not known.
 */
static bool path_hidden(const struct bl_iso_net *net, const struct bl_iso_flow *f)
{
	uint32_t from = net->rack_of[f->src], to = net->rack_of[f->dst];

	return from != to && !path_known(net, from, to, f->path);
}

static int work_new(struct work *w, const struct bl_iso_net *net, const struct bl_iso_flow *f,
		    uint32_t n)
{
	uint32_t i, all = bl_iso_components(net), nbad = 0;

	for (i = 0; i < n; i++)
		nbad += f[i].verdict == BL_FAULT_BAD;
	*w = (struct work){ .net = net, .f = f };
	w->bad = calloc(nbad + 1, sizeof(*w->bad));
	w->explained = calloc(nbad + 1, 1);
	w->count = calloc(all, sizeof(*w->count));
	w->both = calloc(all, sizeof(*w->both));
	w->touched = calloc(all, sizeof(*w->touched));
	w->chosen = calloc(nbad + 1, sizeof(*w->chosen));
	return w->bad && w->explained && w->count && w->both && w->touched && w->chosen ? 0 : -1;
}

static void work_free(struct work *w)
{
	free(w->bad);
	free(w->explained);
	free(w->count);
	free(w->both);
	free(w->touched);
	free(w->chosen);
}

static bool goes_through(const struct work *w, uint32_t flow, uint32_t c)
{
	uint32_t out[BL_ISO_COMPONENTS];
	unsigned int k, n = bl_iso_through(w->net, &w->f[flow], out);

	for (k = 0; k < n; k++)
		if (out[k] == c)
			return true;
	return false;
}

#define NONE (~0U)

/*
 * Returns the component that explains most of the flows without explanation; a switch only if no
 * link explains as many. NONE: every flow has one.
 */
static uint32_t best_component(const struct work *w)
{
	uint32_t link = NONE, sw = NONE, i;

	for (i = 0; i < w->ntouched; i++) {
		uint32_t c = w->touched[i], *at = is_switch(w->net, c) ? &sw : &link;

		if (w->count[c] && (*at == NONE || w->count[c] > w->count[*at] ||
				    (w->count[c] == w->count[*at] && c < *at)))
			*at = c;
	}
	if (link == NONE || (sw != NONE && w->count[sw] > w->count[link]))
		return sw;
	return link;
}

/* Chooses component @c: the flows that it explains are not counted any more. */
static void choose_component(struct work *w, uint32_t c, const uint8_t *good)
{
	uint32_t i, out[BL_ISO_COMPONENTS];
	unsigned int k, n;

	for (i = 0; i < w->nbad; i++) {
		if (w->explained[i] || !goes_through(w, w->bad[i], c))
			continue;
		w->explained[i] = 1;
		n = bl_iso_through(w->net, &w->f[w->bad[i]], out);
		for (k = 0; k < n; k++)
			w->count[out[k]] -= !good[out[k]];
	}
	w->chosen[w->nchosen++] = c;
}

/*
 * Drops chosen components that are not needed: each of their bad flows passes through another
 * chosen one.
 */
static void drop_needless(struct work *w)
{
	uint32_t i, k, j;

	for (k = 0; k < w->nchosen;) {
		bool needed = false;

		for (i = 0; i < w->nbad && !needed; i++) {
			if (!w->explained[i] || !goes_through(w, w->bad[i], w->chosen[k]))
				continue;
			needed = true;
			for (j = 0; j < w->nchosen && needed; j++)
				needed = j == k || !goes_through(w, w->bad[i], w->chosen[j]);
		}
		if (needed) {
			k++;
			continue;
		}
		memmove(&w->chosen[k], &w->chosen[k + 1],
			(w->nchosen - k - 1) * sizeof(*w->chosen));
		w->nchosen--;
	}
}

/*
 * Writes chosen component @k and all components with the same bad flows to @out, as far as no other
 * chosen component explains these flows. Returns how many.
 */
static uint32_t name_indistinguishable(struct work *w, uint32_t k, const uint8_t *good,
				       struct bl_iso_named *out, uint32_t max)
{
	uint32_t c = w->chosen[k], through[BL_ISO_COMPONENTS], mine = 0, n = 0, i, j, host = 0;
	unsigned int t, nt;

	for (i = 0; i < w->ntouched; i++)
		w->both[w->touched[i]] = w->count[w->touched[i]] = 0;
	for (i = 0; i < w->nbad; i++) {
		bool here = goes_through(w, w->bad[i], c), others = false;

		for (j = 0; j < w->nchosen && !others; j++)
			others = j != k && goes_through(w, w->bad[i], w->chosen[j]);
		if (!w->explained[i] || others)
			continue;
		mine += here;
		nt = bl_iso_through(w->net, &w->f[w->bad[i]], through);
		for (t = 0; t < nt; t++) {
			w->count[through[t]] += !good[through[t]];
			w->both[through[t]] += here && !good[through[t]];
		}
	}
	for (i = 0; i < w->ntouched && n < max; i++) {
		uint32_t other = w->touched[i];

		if (other != c && (is_switch(w->net, other) != is_switch(w->net, c) ||
				   w->both[other] != mine || w->count[other] != mine))
			continue;
		out[n++] = (struct bl_iso_named){ .component = other, .of = k, .flows = mine };
		host |= other < 2 * w->net->endpoints;
	}
	for (i = 0; i < n; i++) {
		out[i].one_of = n;
		out[i].host = host;
	}
	return n;
}

int bl_iso_find(const struct bl_iso_net *net, const struct bl_iso_flow *f, uint32_t n,
		struct bl_iso_named *out, uint32_t max, uint8_t *good, uint32_t *unexplained)
{
	uint32_t i, c, found = 0, through[BL_ISO_COMPONENTS];
	unsigned int k, nt;
	struct work w;

	*unexplained = 0;
	memset(good, 0, bl_iso_components(net));
	if (work_new(&w, net, f, n)) {
		work_free(&w);
		return -1;
	}
	for (i = 0; i < n; i++) {
		nt = f[i].verdict == BL_FAULT_GOOD ? bl_iso_through(net, &f[i], through) : 0;
		for (k = 0; k < nt; k++)
			good[through[k]] = 1;
	}
	for (i = 0; i < n; i++) {
		bool any = false;

		if (f[i].verdict != BL_FAULT_BAD || path_hidden(net, &f[i]))
			continue;
		nt = bl_iso_through(net, &f[i], through);
		for (k = 0; k < nt; k++) {
			c = through[k];
			if (good[c])
				continue;
			any = true;
			if (!w.count[c]++)
				w.touched[w.ntouched++] = c;
		}
		if (any)
			w.bad[w.nbad++] = i;
		else
			(*unexplained)++;
	}
	while ((c = best_component(&w)) != NONE)
		choose_component(&w, c, good);
	drop_needless(&w);
	for (i = 0; i < w.nchosen; i++)
		found += name_indistinguishable(&w, i, good, out + found, max - found);
	work_free(&w);
	return (int)found;
}
