/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counters of queues, hooks and pacers of a lab while flows run: all queues of all metered switch
 * ports, by class (fct.h).
 */
#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/counter_span.h"
#include "bench/fct/fct.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "cli/util/read_admission.h"
#include "core/top/top_token_core.h"
#include "maps/clock_abi.h"
#include "maps/top_host_abi.h"

/** struct sampled_switch - The maps of one switch. */
struct sampled_switch {
	const struct bl_node_ref *ref;
	int queues, hists, names; /* descriptors */
	uint32_t ports;           /* that have queues */
};

struct fct_sampler {
	struct counter_span span;
	unsigned int nswitches;
	struct sampled_switch sw[LAB_TORS_MAX + LAB_SPINES_MAX];
	/* at the beginning: by switch, port and class in this order */
	struct fct_queue *before;
	unsigned int nbefore;
};

static int open_switch(struct sampled_switch *s)
{
	uint32_t queues = 0, hists = 0, ports = 0;
	int meters = adm_map(s->ref, BL_MAP_METERS, sizeof(struct bl_meter), &ports);

	s->queues = s->hists = s->names = -1;
	if (meters < 0)
		return 1;
	close(meters);
	s->names = adm_map(s->ref, BL_MAP_SW_PORTS, sizeof(struct bl_sw_port), NULL);
	s->queues = s->names < 0 ? -1
				 : adm_map(s->ref, BL_MAP_QUEUES, sizeof(struct bl_queue), &queues);
	s->hists = s->queues < 0 ? -1
				 : adm_map(s->ref, BL_MAP_QUEUE_HIST, sizeof(struct bl_queue_hist),
					   &hists);
	while (s->ports < ports && BL_PORT_QUEUE(s->ports + 1, 0) <= queues &&
	       BL_PORT_QUEUE(s->ports + 1, 0) <= hists)
		s->ports++;
	return s->hists < 0;
}

/*
 * Calls @fn for each queue of each port. The fields that the lock of a queue protects are
 * consistent; histograms are updated without it.
 */
static void each_queue(const struct fct_sampler *l,
		       void (*fn)(void *arg, const struct fct_queue *q), void *arg)
{
	unsigned int i, class;
	uint32_t port;

	for (i = 0; i < l->nswitches; i++)
		for (port = 0; port < l->sw[i].ports; port++) {
			struct bl_sw_port p;

			if (bpf_map_lookup_elem(l->sw[i].names, &port, &p) || !p.name[0])
				continue;
			for (class = 0; class < BL_CL_COUNT; class ++) {
				uint32_t key = BL_PORT_QUEUE(port, class);
				struct fct_queue row = { .class = class };
				struct bl_queue_hist h;
				struct bl_queue q;

				if (adm_queue(l->sw[i].queues, key, &q) ||
				    bpf_map_lookup_elem(l->sw[i].hists, &key, &h))
					continue;
				snprintf(row.node, sizeof(row.node), "%.15s",
					 l->sw[i].ref->meta.name);
				snprintf(row.port, sizeof(row.port), "%.15s", p.name);
				row.put = q.put;
				row.dropped = q.dropped;
				row.marked = q.marked;
				row.found = h.found;
				row.sojourn = h.sojourn;
				fn(arg, &row);
			}
		}
}

static void count_queue(void *arg, const struct fct_queue *q)
{
	unsigned int *n = arg;

	(void)q;
	++*n;
}

static void remember_queue(void *arg, const struct fct_queue *q)
{
	struct fct_sampler *l = arg;

	l->before[l->nbefore++] = *q;
}

/* reads the parts of TOP's bound from the configuration of hosts and switches */
static int read_bound(const struct fct_sampler *l, struct fct_bound *b)
{
	struct bl_token_port port;
	struct bl_token_cfg token;
	struct bl_hold_cfg hold;
	struct bl_clock clock;
	struct bl_top_cfg top;
	uint64_t hop;
	int i;

	memset(b, 0, sizeof(*b));
	for (i = 0; i < l->span.nrefs && l->span.admission; i++) {
		const struct bl_node_ref *ref = &l->span.refs[i];

		if (ref->role == BL_ROLE_SWITCH) {
			if (node_value(ref, BL_MAP_TOKEN_CFG, 0, &token, sizeof(token)) ||
			    node_value(ref, BL_MAP_TOKEN_PORTS, 0, &port, sizeof(port)))
				return 1;
			hop = token.on ? (token.frames * bl_token_unit(port.ns_q20)) >> 20 : 0;
			b->hop_ns = hop > b->hop_ns ? hop : b->hop_ns;
			continue;
		}
		if (node_value(ref, BL_MAP_HOLD_CFG, 0, &hold, sizeof(hold)))
			return 1;
		if (!hold.on || hold.policy != BL_POLICY_TOP)
			continue;
		if (node_value(ref, BL_MAP_TOP_CFG, 0, &top, sizeof(top)) ||
		    node_value(ref, BL_MAP_CLOCK, 0, &clock, sizeof(clock)))
			return 1;
		b->on = true;
		if (top.expiry_ns > b->expiry_ns) {
			b->expiry_ns = top.expiry_ns;
			b->base_ns = top.opt[BL_TOP_O_EXPIRY] ? 0
							      : top.opt[BL_TOP_O_BASE] * 1000ULL;
			b->hops = top.opt[BL_TOP_O_EXPIRY] ? 0 : top.opt[BL_TOP_O_HOPS];
		}
		b->clock_ns = clock.bound_ns > b->clock_ns ? clock.bound_ns : b->clock_ns;
	}
	return 0;
}

static void sampler_free(struct fct_sampler *l)
{
	unsigned int i;

	for (i = 0; i < l->nswitches; i++) {
		int fd[] = { l->sw[i].queues, l->sw[i].hists, l->sw[i].names };
		unsigned int k;

		for (k = 0; k < sizeof(fd) / sizeof(fd[0]); k++)
			if (fd[k] >= 0)
				close(fd[k]);
	}
	free(l->before);
	counter_span_free(&l->span);
	free(l);
}

struct fct_sampler *fct_sampler_new(bool admission)
{
	struct fct_sampler *l = calloc(1, sizeof(*l));
	unsigned int queues = 0;
	int i, bad;

	if (!l) {
		cli_fail("out of memory");
		return NULL;
	}
	bad = counter_span_begin(&l->span, admission);
	for (i = 0; i < l->span.nrefs && admission && !bad; i++)
		if (l->span.refs[i].role == BL_ROLE_SWITCH &&
		    l->nswitches < LAB_TORS_MAX + LAB_SPINES_MAX) {
			l->sw[l->nswitches].ref = &l->span.refs[i];
			bad = open_switch(&l->sw[l->nswitches++]);
		}
	if (!bad) {
		each_queue(l, count_queue, &queues);
		l->before = calloc(queues ? queues : 1, sizeof(*l->before));
		bad = l->before ? 0 : cli_fail("out of memory");
	}
	if (bad) {
		sampler_free(l);
		return NULL;
	}
	each_queue(l, remember_queue, l);
	return l;
}

struct difference {
	struct fct_sampler *l;
	struct fct_cell *c;
	unsigned int i;
};

/* The order of queues is the same as at the beginning, because no ports are added in a lab. */
static void subtract_queue(void *arg, const struct fct_queue *q)
{
	struct difference *s = arg;
	const struct fct_queue *b = s->i < s->l->nbefore ? &s->l->before[s->i++] : NULL;
	struct fct_queue *row = &s->c->queue[s->c->nqueues];

	if (!b || strcmp(b->node, q->node) || strcmp(b->port, q->port) || b->class != q->class ||
	    (q->put == b->put && q->dropped == b->dropped) || s->c->nqueues == FCT_ROWS_MAX)
		return;
	*row = *q;
	row->put -= b->put;
	row->dropped -= b->dropped;
	row->marked -= b->marked;
	memset(&row->found, 0, sizeof(row->found));
	memset(&row->sojourn, 0, sizeof(row->sojourn));
	hist_add(&row->found, &q->found, &b->found);
	hist_add(&row->sojourn, &q->sojourn, &b->sojourn);
	s->c->nqueues++;
}

int fct_sampler_end(struct fct_sampler *l, struct fct_cell *c)
{
	struct difference s = { l, c, 0 };
	int err;

	each_queue(l, subtract_queue, &s);
	err = counter_span_end(&l->span, &c->switch_counts, &c->host_counts, &c->late) ||
	      read_bound(l, &c->bound);
	sampler_free(l);
	return err;
}
