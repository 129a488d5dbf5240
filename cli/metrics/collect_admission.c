// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Metrics of admission: queues, the pacer, PL2, TOP and Fastpass. See collect.h.
 *
 * Queues that were never used are left out. The hold queues of a host are summed over destinations,
 * and so are its counters of PL2 and Fastpass, since their number is bounded by the rack only.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "cli/metrics/collect.h"
#include "cli/util/read_admission.h"
#include "core/queue/hist_core.h"
#include "loader/admission/admission.h"
#include "maps/fastpass_abi.h"
#include "maps/hold_abi.h"
#include "maps/pl2_switch_abi.h"
#include "maps/top_host_abi.h"
#include "maps/top_token_abi.h"

/*
 * Limits of buckets are powers of four, from this one on, in units of the histogram: from 1 KiB to
 * 1 MiB, and from 512 ns to 34 ms.
 */
#define FIRST_BUCKET   16
#define LENGTH_BUCKETS 6
#define TIME_BUCKETS   9
#define BUCKETS_MAX    9

/** struct queue_sum - one queue, or several of them. */
struct queue_sum {
	struct bl_queue
		q; /* only the counters, and head and tail, whose difference is the length */
	struct bl_queue_hist h;
};

/*
 * Exports a histogram with a tenth of its bins. Limits of buckets are those of octaves of the bins,
 * so no value is in a wrong bucket. The sum is that of the bins' middles, at most 6.25 % off.
 */
static void put_hist(struct collector *c, enum metric m, const struct bl_hist *h, bool times,
		     const char *const *labels)
{
	unsigned int n = times ? TIME_BUCKETS : LENGTH_BUCKETS, k, bin;
	double unit = times ? 1e-9 * (1u << BL_HIST_NS_SHIFT) : 1u << BL_HIST_LEN_SHIFT;
	struct metric_bucket b[BUCKETS_MAX + 1];
	uint64_t limit = FIRST_BUCKET;
	double sum = 0;

	for (k = 0; k <= n; k++) {
		b[k].le = k < n ? (double)limit * unit : INFINITY;
		b[k].n = 0;
		limit *= 4;
	}
	for (bin = 0, k = 0, limit = FIRST_BUCKET; bin < BL_HIST_BINS; bin++) {
		while (k < n && hist_least(bin) >= limit) {
			limit *= 4;
			k++;
		}
		b[k].n += h->n[bin];
		sum += (double)h->n[bin] * (double)(hist_least(bin) + hist_greatest(bin)) / 2;
	}
	metric_hist(c->to, m, b, n + 1, sum * unit, labels);
}

/* ---- queues ---- */

static void put_queue(struct collector *c, const struct queue_sum *s, const char *const *labels)
{
	metric_u64(c->to, BL_METRIC_QUEUE_FRAMES, s->q.tail - s->q.head, labels);
	metric_u64(c->to, BL_METRIC_QUEUE_BYTES, s->q.bytes, labels);
	metric_u64(c->to, BL_METRIC_QUEUE_PUT, s->q.put, labels);
	metric_u64(c->to, BL_METRIC_QUEUE_SENT, s->q.taken, labels);
	metric_u64(c->to, BL_METRIC_QUEUE_DROPPED, s->q.dropped, labels);
	metric_u64(c->to, BL_METRIC_QUEUE_MARKED, s->q.marked, labels);
	put_hist(c, BL_METRIC_QUEUE_LENGTH, &s->h.found, false, labels);
	put_hist(c, BL_METRIC_QUEUE_WAIT, &s->h.sojourn, true, labels);
}

/** struct queue_maps - both maps of queues, open. */
struct queue_maps {
	int queues, hists;
	uint32_t n; /* elements that both have */
};

static bool open_queues(struct collector *c, int node, struct queue_maps *m)
{
	struct bpf_map_info info[2] = { 0 };
	uint32_t len = sizeof(info[0]);
	struct bl_err err;

	m->hists = -1;
	m->queues =
		bl_map_open(&c->refs[node], BL_MAP_QUEUES, sizeof(struct bl_queue), false, &err);
	if (m->queues >= 0)
		m->hists = bl_map_open(&c->refs[node], BL_MAP_QUEUE_HIST,
				       sizeof(struct bl_queue_hist), false, &err);
	if (m->hists < 0 || bpf_obj_get_info_by_fd(m->queues, &info[0], &len) ||
	    bpf_obj_get_info_by_fd(m->hists, &info[1], &len)) {
		collect_failed(c, "%s", m->hists < 0 ? err.text : strerror(errno));
		return false;
	}
	m->n = info[0].max_entries < info[1].max_entries ? info[0].max_entries
							 : info[1].max_entries;
	return true;
}

static void close_queues(struct queue_maps *m)
{
	if (m->queues >= 0)
		close(m->queues);
	if (m->hists >= 0)
		close(m->hists);
}

/*
 * Adds queue @key to @s. Returns whether it was ever used. Without the queue's lock: the datapath
 * must not wait for a reader.
 */
static bool add_queue(const struct queue_maps *m, uint32_t key, struct queue_sum *s)
{
	struct bl_queue_hist h;
	struct bl_queue q;

	if (key >= m->n || bpf_map_lookup_elem(m->queues, &key, &q) || (!q.put && !q.dropped) ||
	    bpf_map_lookup_elem(m->hists, &key, &h))
		return false;
	s->q.tail += q.tail - q.head;
	s->q.bytes += q.bytes;
	s->q.put += q.put;
	s->q.taken += q.taken;
	s->q.dropped += q.dropped;
	s->q.marked += q.marked;
	hist_add(&s->h.found, &h.found, NULL);
	hist_add(&s->h.sojourn, &h.sojourn, NULL);
	return true;
}

/* ---- switches ---- */

static void put_reservations(struct collector *c, const char *node, const struct bl_sw_port *port,
			     const struct bl_rsv_port *r)
{
	const struct {
		const char *event;
		uint64_t bytes;
	} events[] = { { "granted", r->granted },
		       { "used", r->used },
		       { "lapsed", r->lapsed },
		       { "released", r->released } };
	size_t k;

	for (k = 0; k < sizeof(events) / sizeof(events[0]); k++)
		metric_u64(c->to, BL_METRIC_RSV_BYTES, events[k].bytes,
			   LABELS(node, port->name, events[k].event));
	metric_u64(c->to, BL_METRIC_RSV_ASKED, r->grants, LABELS(node, port->name, "granted"));
	metric_u64(c->to, BL_METRIC_RSV_ASKED, r->refused, LABELS(node, port->name, "refused"));
}

static void put_all_reservations(struct collector *c, int node, const struct bl_sw_port *ports,
				 uint32_t n)
{
	struct bl_rsv *rsv = malloc(sizeof(*rsv));
	struct bl_rsv_cfg cfg;
	uint32_t k;

	/* not under its lock, for which the datapath would wait */
	if (rsv && collect_value(c, node, BL_MAP_RSV_CFG, 0, &cfg, sizeof(cfg)) && cfg.on &&
	    collect_value(c, node, BL_MAP_RSV, 0, rsv, sizeof(*rsv)))
		for (k = 0; k < n && k < BL_SW_PORTS_MAX; k++)
			if (ports[k].ifindex)
				put_reservations(c, c->name[node], &ports[k], &rsv->port[k]);
	free(rsv);
}

static void put_tokens(struct collector *c, const char *node, const char *port,
		       const struct bl_token_counts *n)
{
	const struct {
		const char *event;
		const __u64 *v;
	} events[] = { { "passed", n->passed }, { "limit", n->limit }, { "expired", n->expired } };
	char class[4];
	unsigned int k, e;

	for (k = 0; k < BL_TOP_CLASSES; k++) {
		snprintf(class, sizeof(class), "%u", k);
		for (e = 0; e < sizeof(events) / sizeof(events[0]); e++)
			if (n->passed[k] || n->limit[k] || n->expired[k])
				metric_u64(c->to, BL_METRIC_TOKENS, events[e].v[k],
					   LABELS(node, port, class, events[e].event));
	}
}

static void put_all_tokens(struct collector *c, int node, const struct bl_sw_port *ports,
			   uint32_t n)
{
	struct bl_token_counts sum;
	struct bl_token_cfg cfg;
	struct bl_err err;
	uint32_t i;
	int fd;

	if (!collect_value(c, node, BL_MAP_TOKEN_CFG, 0, &cfg, sizeof(cfg)) || !cfg.on)
		return;
	fd = bl_map_open(&c->refs[node], BL_MAP_TOKEN_COUNTS, sizeof(sum), false, &err);
	if (fd < 0)
		collect_failed(c, "%s", err.text);
	for (i = 0; fd >= 0 && i < n; i++)
		if (ports[i].ifindex && !adm_tokens(fd, i, &sum))
			put_tokens(c, c->name[node], ports[i].name, &sum);
	if (fd >= 0)
		close(fd);
}

static void put_port_queues(struct collector *c, int node, const struct bl_sw_port *ports,
			    uint32_t n)
{
	struct queue_sum *s = malloc(sizeof(*s));
	struct queue_maps m;
	uint32_t i, class;

	if (s && open_queues(c, node, &m)) {
		for (i = 0; i < n; i++)
			for (class = 0; ports[i].ifindex && class < BL_CL_COUNT; class ++) {
				memset(s, 0, sizeof(*s));
				if (add_queue(&m, BL_PORT_QUEUE(i, class), s))
					put_queue(c, s,
						  LABELS(c->name[node], ports[i].name,
							 bl_class_name(class)));
			}
	}
	if (s)
		close_queues(&m);
	free(s);
}

static void put_switch(struct collector *c, int node)
{
	struct bl_sw_port *ports;
	struct bl_sw_cfg cfg;
	uint32_t n = 0, i;

	if (!collect_value(c, node, BL_MAP_SW_CFG, 0, &cfg, sizeof(cfg)))
		return;
	ports = collect_array(c, node, BL_MAP_SW_PORTS, sizeof(*ports), cfg.nports ? cfg.nports : 1,
			      &n);
	if (!ports)
		return;
	for (i = 0; i < n; i++)
		ports[i].name[sizeof(ports[i].name) - 1] = '\0';
	put_port_queues(c, node, ports, n);
	put_all_reservations(c, node, ports, n);
	put_all_tokens(c, node, ports, n);
	free(ports);
}

/* ---- hosts ---- */

static void put_hold_queues(struct collector *c, int node)
{
	static const char *const classes[BL_HOLD_CLASSES] = { "expedited", "rest" };
	struct queue_sum *s = calloc(BL_HOLD_CLASSES, sizeof(*s));
	uint32_t dest, class;
	struct queue_maps m;

	if (s && open_queues(c, node, &m)) {
		for (dest = 0; dest < BL_DESTS; dest++)
			for (class = 0; class < BL_HOLD_CLASSES; class ++)
				add_queue(&m, BL_HOLD_QUEUE(dest, class), &s[class]);
		for (class = 0; class < BL_HOLD_CLASSES; class ++)
			put_queue(c, &s[class], LABELS(c->name[node], "bl0", classes[class]));
	}
	if (s)
		close_queues(&m);
	free(s);
}

static void put_pl2(struct collector *c, int node)
{
	struct bl_pl2_dest *d, sum = { 0 };
	uint32_t n = 0, k;
	const struct {
		const char *event;
		const __u64 *v;
	} events[] = { { "asked", &sum.rsvs },        { "granted", &sum.grts },
		       { "unsolicited", &sum.early }, { "resent", &sum.resent },
		       { "timeout", &sum.timeouts },  { "refused", &sum.refused },
		       { "bad", &sum.bad },           { "missed", &sum.late } };

	d = collect_array(c, node, BL_MAP_PL2_DESTS, sizeof(*d), BL_DESTS, &n);
	for (k = 0; d && k < n; k++) {
		sum.rsvs += d[k].rsvs;
		sum.grts += d[k].grts;
		sum.early += d[k].early;
		sum.resent += d[k].resent;
		sum.timeouts += d[k].timeouts;
		sum.refused += d[k].refused;
		sum.bad += d[k].bad;
		sum.late += d[k].late;
	}
	for (k = 0; d && k < sizeof(events) / sizeof(events[0]); k++)
		metric_u64(c->to, BL_METRIC_PL2, *events[k].v,
			   LABELS(c->name[node], events[k].event));
	free(d);
}

static void put_paths(struct collector *c, int node)
{
	struct bl_fp_paths *p, sum = { 0 };
	uint32_t n = 0, i, k;
	char path[8];

	p = collect_array(c, node, BL_MAP_FP_PATHS, sizeof(*p), 0, &n);
	for (i = 0; p && i < n; i++)
		for (k = 0; k < BL_FP_COLUMNS; k++) {
			sum.sent[k] += p[i].sent[k];
			sum.came[k] += p[i].came[k];
		}
	for (k = 0; p && k < BL_FP_COLUMNS; k++) {
		snprintf(path, sizeof(path), "%u", k);
		if (!sum.sent[k] && !sum.came[k])
			continue;
		metric_u64(c->to, BL_METRIC_FP_PATHS, sum.sent[k],
			   LABELS(c->name[node], k < BL_FP_PATHS ? path : "none", "sent"));
		metric_u64(c->to, BL_METRIC_FP_PATHS, sum.came[k],
			   LABELS(c->name[node], k < BL_FP_PATHS ? path : "none", "received"));
	}
	free(p);
}

static void put_fastpass(struct collector *c, int node)
{
	uint64_t used = 0, idle = 0, missed = 0;
	struct bl_fp_dest *d;
	struct bl_fp_page p;
	uint32_t n = 0, k;

	if (!collect_value(c, node, BL_MAP_FP_PAGE, 0, &p, sizeof(p)))
		return;
	d = collect_array(c, node, BL_MAP_FP_DESTS, sizeof(*d), BL_DESTS, &n);
	for (k = 0; d && k < n; k++) {
		used += d[k].used;
		idle += d[k].idle;
		missed += d[k].missed;
	}
	free(d);
	const struct {
		const char *event;
		uint64_t v;
	} events[] = { { "asked", p.asked },     { "given", p.given },   { "lost", p.lost },
		       { "refused", p.refused }, { "healed", p.healed }, { "used", used },
		       { "idle", idle },         { "missed", missed } };

	metric_u64(c->to, BL_METRIC_FP_SESSION, p.session, LABELS(c->name[node]));
	metric_u64(c->to, BL_METRIC_FP_FALLBACK, p.fallback, LABELS(c->name[node]));
	for (k = 0; k < sizeof(events) / sizeof(events[0]); k++)
		metric_u64(c->to, BL_METRIC_FP_SLOTS, events[k].v,
			   LABELS(c->name[node], events[k].event));
	put_paths(c, node);
}

static void put_tokens_sent(struct collector *c, int node)
{
	struct bl_top_page p;
	char class[4];
	unsigned int k;

	if (!collect_value(c, node, BL_MAP_TOP_PAGE, 0, &p, sizeof(p)))
		return;
	for (k = 0; k < BL_TOP_CLASSES; k++) {
		snprintf(class, sizeof(class), "%u", k);
		metric_u64(c->to, BL_METRIC_TOKENS_SENT, p.tokens[k], LABELS(c->name[node], class));
	}
}

static void put_host(struct collector *c, int node)
{
	struct bl_hold_cfg cfg;

	if (!collect_value(c, node, BL_MAP_HOLD_CFG, 0, &cfg, sizeof(cfg)) || !cfg.on)
		return;
	metric_u64(c->to, BL_METRIC_POLICY, 1, LABELS(c->name[node], bl_policy_name(cfg.policy)));
	put_hold_queues(c, node);
	if (cfg.policy == BL_POLICY_PL2)
		put_pl2(c, node);
	if (cfg.policy == BL_POLICY_FASTPASS)
		put_fastpass(c, node);
	if (cfg.policy == BL_POLICY_TOP)
		put_tokens_sent(c, node);
}

static void put_pacer(struct collector *c, int node)
{
	struct bl_pace_page p;

	if (!collect_value(c, node, BL_MAP_PACE_PAGE, 0, &p, sizeof(p)) || !p.turns)
		return;
	metric_u64(c->to, BL_METRIC_PACER_TURNS, p.turns, LABELS(c->name[node]));
	metric_u64(c->to, BL_METRIC_PACER_FRAMES, p.emitted, LABELS(c->name[node], "frames"));
	metric_u64(c->to, BL_METRIC_PACER_FRAMES, p.beacons, LABELS(c->name[node], "beacons"));
	metric_u64(c->to, BL_METRIC_PACER_FRAMES, p.failed, LABELS(c->name[node], "failed"));
	put_hist(c, BL_METRIC_PACER_LATE, &p.late, true, LABELS(c->name[node]));
}

void collect_admission(struct collector *c, int node)
{
	if (c->refs[node].role == BL_ROLE_SWITCH)
		put_switch(c, node);
	else
		put_host(c, node);
	put_pacer(c, node);
}
