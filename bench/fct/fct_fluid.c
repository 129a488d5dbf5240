/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See fct_fluid.h. This file uses no clock and no files. */
#include <math.h>
#include <stdlib.h>

#include "bench/fct/fct_fluid.h"

#define LINKS    (4 * FCT_HOSTS_MAX)
#define LITTLE   1e-6 /* bytes; less than that counts as nothing */
#define HOPS_MAX 4

/* Links by number: hosts up, hosts down, racks up, racks down. */
enum {
	HOST_UP = 0,
	HOST_DOWN = FCT_HOSTS_MAX,
	RACK_UP = 2 * FCT_HOSTS_MAX,
	RACK_DOWN = 3 * FCT_HOSTS_MAX,
};

/** struct active - A flow that has arrived and has not ended. */
struct active {
	uint32_t flow; /* number in the trace */
	double left;   /* bytes */
	double rate;   /* bytes per ns */
	double order;  /* its class, or the value that replaces it; the least is served first */
	unsigned int links;
	unsigned int link[HOPS_MAX];
};

struct model {
	const struct fct_fluid *m;
	const struct fct_fluid_flow *f;
	struct active *a; /* @n, by order */
	uint32_t n;
	double room[LINKS];
	uint32_t users[LINKS]; /* flows of the class that is being served and have no rate yet */
};

static void find_links(const struct fct_fluid *m, const struct fct_fluid_flow *f, struct active *a)
{
	a->links = 0;
	a->link[a->links++] = HOST_UP + f->src;
	a->link[a->links++] = HOST_DOWN + f->dst;
	if (m->rack[f->src] == m->rack[f->dst])
		return;
	a->link[a->links++] = RACK_UP + m->rack[f->src];
	a->link[a->links++] = RACK_DOWN + m->rack[f->dst];
}

/* returns the number of bytes from which the class of a flow follows */
static double class_bytes(const struct model *s, const struct active *a)
{
	const double bytes = s->f[a->flow].bytes;

	if (s->m->by == FCT_FLUID_SIZE)
		return bytes;
	return s->m->by == FCT_FLUID_SERVED ? bytes - a->left : a->left;
}

static double order_of(const struct model *s, const struct active *a)
{
	const double w = class_bytes(s, a);
	unsigned int i, cls = 0;

	if (s->m->by == FCT_FLUID_SHARE)
		return 0;
	if (s->m->by == FCT_FLUID_SHORTEST)
		return w;
	/* a flow that has reached a threshold counts as beyond it, in the direction of its change
	 */
	for (i = 0; i + 1 < s->m->levels; i++)
		cls += w > s->m->limit[i] + (s->m->by == FCT_FLUID_SERVED ? -LITTLE : LITTLE);
	return cls;
}

/* returns after how many ns the class of a flow changes at its rate */
static double until_change(const struct model *s, const struct active *a)
{
	const double w = class_bytes(s, a);
	double best = INFINITY;
	unsigned int i;

	if (a->rate <= 0 || (s->m->by != FCT_FLUID_SERVED && s->m->by != FCT_FLUID_REMAINING))
		return INFINITY;
	for (i = 0; i + 1 < s->m->levels; i++) {
		double d = s->m->by == FCT_FLUID_SERVED ? s->m->limit[i] - w : w - s->m->limit[i];

		if (d > LITTLE && d / a->rate < best)
			best = d / a->rate;
	}
	return best;
}

static int by_order(const void *x, const void *y)
{
	const struct active *a = x, *b = y;

	if (a->order < b->order || a->order > b->order)
		return a->order < b->order ? -1 : 1;
	return (a->flow > b->flow) - (a->flow < b->flow);
}

static void set_rate(struct model *s, struct active *a, double rate)
{
	unsigned int k;

	a->rate = rate;
	for (k = 0; k < a->links; k++) {
		s->room[a->link[k]] -= rate;
		if (s->room[a->link[k]] < 0)
			s->room[a->link[k]] = 0;
		s->users[a->link[k]]--;
	}
}

/* sets the rates of the flows from @from to before @to, which are one class, by water filling */
static void share_capacity(struct model *s, uint32_t from, uint32_t to)
{
	uint32_t i, left = to - from;
	unsigned int k;

	for (i = from; i < to; i++) {
		s->a[i].rate = -1;
		for (k = 0; k < s->a[i].links; k++)
			s->users[s->a[i].link[k]]++;
	}
	while (left) {
		unsigned int narrow = 0;
		double least = INFINITY;

		for (k = 0; k < LINKS; k++)
			if (s->users[k] && s->room[k] / s->users[k] < least) {
				least = s->room[k] / s->users[k];
				narrow = k;
			}
		for (i = from; i < to; i++) {
			int over = 0;

			for (k = 0; k < s->a[i].links; k++)
				over |= s->a[i].link[k] == narrow;
			if (s->a[i].rate >= 0 || !over)
				continue;
			set_rate(s, &s->a[i], least);
			left--;
		}
	}
}

static void all_rates(struct model *s)
{
	uint32_t i, from;

	for (i = 0; i < FCT_HOSTS_MAX; i++) {
		s->room[HOST_UP + i] = s->room[HOST_DOWN + i] = s->m->host_rate;
		s->room[RACK_UP + i] = s->room[RACK_DOWN + i] = s->m->rack_rate[i];
	}
	for (i = 0; i < s->n; i++)
		s->a[i].order = order_of(s, &s->a[i]);
	qsort(s->a, s->n, sizeof(*s->a), by_order);
	for (from = 0; from < s->n; from = i) {
		for (i = from + 1; i < s->n && s->a[i].order <= s->a[from].order; i++)
			;
		share_capacity(s, from, i);
	}
}

int fct_fluid_run(const struct fct_fluid *m, const struct fct_fluid_flow *f, uint32_t n,
		  double *fct)
{
	struct model s = { .m = m, .f = f };
	double now = 0, step;
	uint32_t next = 0, i, kept;

	s.a = calloc(n ? n : 1, sizeof(*s.a));
	if (!s.a)
		return -1;
	while (next < n || s.n) {
		if (!s.n)
			now = f[next].start_ns;
		for (; next < n && f[next].start_ns <= now; next++) {
			struct active *a = &s.a[s.n++];

			a->flow = next;
			a->left = f[next].bytes;
			find_links(m, &f[next], a);
		}
		all_rates(&s);
		step = next < n ? f[next].start_ns - now : INFINITY;
		for (i = 0; i < s.n; i++) {
			if (s.a[i].rate > 0)
				step = fmin(step, s.a[i].left / s.a[i].rate);
			step = fmin(step, until_change(&s, &s.a[i]));
		}
		/* a step that is too small to change the sum is skipped */
		now = next < n && now + step >= f[next].start_ns ? f[next].start_ns : now + step;
		for (i = kept = 0; i < s.n; i++) {
			s.a[i].left -= s.a[i].rate * step;
			if (s.a[i].left > LITTLE)
				s.a[kept++] = s.a[i];
			else
				fct[s.a[i].flow] = now - f[s.a[i].flow].start_ns;
		}
		s.n = kept;
	}
	free(s.a);
	return 0;
}
