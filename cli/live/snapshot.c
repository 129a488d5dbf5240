// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See snapshot.h. */
#include "cli/live/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/time.h"
#include "cli/health/health.h"
#include "cli/util/out.h"
#include "cli/util/read_admission.h"
#include "core/clock_core.h"
#include "loader/admission/admission.h"
#include "loader/pulse.h"
#include "maps/fastpass_abi.h"
#include "maps/hold_abi.h"
#include "maps/pl2_switch_abi.h"
#include "maps/top_host_abi.h"

/* Returns the id of the node's map of counters, 0: unknown. */
static uint32_t counters_id(const struct bl_node_ref *ref)
{
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info);
	struct bl_err err;
	int fd = bl_map_open(ref, BL_MAP_COUNTS,
			     ref->role == BL_ROLE_SWITCH ? sizeof(struct bl_sw_counts)
							 : sizeof(struct bl_host_counts),
			     false, &err);

	if (fd < 0)
		return 0;
	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		info.id = 0;
	close(fd);
	return info.id;
}

static void read_state(struct live_node *n)
{
	struct bl_pulse p;
	struct health h;

	health_read_some(&n->ref, 1U << CHECK_DAEMON | 1U << CHECK_CLOCK, &h);
	snprintf(n->daemon, sizeof(n->daemon), "%s", h.check[CHECK_DAEMON].word);
	snprintf(n->clock, sizeof(n->clock), "%s", h.check[CHECK_CLOCK].word);
	if (bl_pulse_read(n->ref.role, n->ref.netns_ino, &p))
		return;
	n->process[0] = p.pid;
	n->process[1] = p.start_time;
}

static void read_clock(struct live_node *n)
{
	struct bl_clock clock;

	n->bus_ns = node_now(&n->ref, &clock);
	n->bound_ns = bl_clock_bound(&clock, bl_mono_ns());
}

/* ---- admission ---- */

static void add_counter(struct live_node *n, const char *name, uint64_t v)
{
	if (n->counters < LIVE_COUNTERS_MAX)
		n->counter[n->counters++] = (struct live_counter){ name, v };
}

static void read_pl2(struct live_node *n, struct bl_err *err)
{
	struct bl_pl2_dest *d = calloc(BL_DESTS, sizeof(*d)), sum = { 0 };
	uint32_t k;

	if (d && !bl_map_read_all(&n->ref, BL_MAP_PL2_DESTS, sizeof(*d), BL_DESTS, d, err)) {
		for (k = 0; k < BL_DESTS; k++) {
			sum.rsvs += d[k].rsvs;
			sum.grts += d[k].grts;
			sum.refused += d[k].refused;
			sum.late += d[k].late;
		}
		add_counter(n, "asked", sum.rsvs);
		add_counter(n, "granted", sum.grts);
		add_counter(n, "refused", sum.refused);
		add_counter(n, "missed", sum.late);
	}
	free(d);
}

static void read_top(struct live_node *n, struct bl_err *err)
{
	struct bl_top_page p;
	uint64_t tokens = 0;
	int k;

	if (bl_map_read_all(&n->ref, BL_MAP_TOP_PAGE, sizeof(p), 1, &p, err))
		return;
	for (k = 0; k < BL_TOP_CLASSES; k++)
		tokens += p.tokens[k];
	add_counter(n, "tokens_sent", tokens);
}

static void read_fastpass(struct live_node *n, struct bl_err *err)
{
	struct bl_fp_page p;

	if (bl_map_read_all(&n->ref, BL_MAP_FP_PAGE, sizeof(p), 1, &p, err))
		return;
	add_counter(n, "slots_asked", p.asked);
	add_counter(n, "slots_given", p.given);
	add_counter(n, "slots_refused", p.refused);
}

static void read_held(struct live_node *n, struct bl_err *err)
{
	struct bl_queue *q = calloc(BL_HOLD_QUEUE(BL_DESTS, 0), sizeof(*q));
	uint32_t key;

	if (q && !bl_map_read_all(&n->ref, BL_MAP_QUEUES, sizeof(*q), BL_HOLD_QUEUE(BL_DESTS, 0), q,
				  err))
		for (key = 0; key < BL_HOLD_QUEUE(BL_DESTS, 0); key++)
			adm_queue_length(&q[key], &n->held_frames, &n->held_bytes);
	free(q);
}

static void read_host_admission(struct live_node *n, struct bl_err *err)
{
	struct bl_hold_cfg cfg;

	if (bl_map_read_all(&n->ref, BL_MAP_HOLD_CFG, sizeof(cfg), 1, &cfg, err) || !cfg.on)
		return;
	n->policy = bl_policy_name(cfg.policy);
	read_held(n, err);
	if (cfg.policy == BL_POLICY_PL2)
		read_pl2(n, err);
	if (cfg.policy == BL_POLICY_TOP)
		read_top(n, err);
	if (cfg.policy == BL_POLICY_FASTPASS)
		read_fastpass(n, err);
}

static void read_queues(struct live_node *n)
{
	uint32_t entries = 0, i, class;
	int fd = -1;

	n->queue = calloc(n->in.n + 1, sizeof(*n->queue));
	for (i = 0; n->queue && i < n->in.n; i++) {
		const struct node_input *in = &n->in.in[i];
		struct live_queue *q = &n->queue[n->queues];

		if (!in->cfg.metered)
			continue;
		if (fd < 0)
			fd = adm_map(&n->ref, BL_MAP_QUEUES, sizeof(struct bl_queue), &entries);
		if (fd < 0)
			return;
		q->port = in->port;
		n->queues++;
		for (class = 0; class < BL_CL_COUNT; class ++)
			if (BL_PORT_QUEUE(in->port, class) < entries)
				adm_length(fd, BL_PORT_QUEUE(in->port, class), &q->frames,
					   &q->bytes);
	}
	if (fd >= 0)
		close(fd);
}

static void read_reservations(struct live_node *n, struct bl_err *err)
{
	struct bl_rsv *rsv = malloc(sizeof(*rsv));
	uint64_t granted = 0, used = 0, lapsed = 0, refused = 0;
	struct bl_rsv_cfg cfg;
	uint32_t i;

	if (rsv && !bl_map_read_all(&n->ref, BL_MAP_RSV_CFG, sizeof(cfg), 1, &cfg, err) && cfg.on &&
	    !bl_map_read_all(&n->ref, BL_MAP_RSV, sizeof(*rsv), 1, rsv, err)) {
		for (i = 0; i < n->in.n; i++) {
			const struct bl_rsv_port *p = &rsv->port[n->in.in[i].port];

			granted += p->granted;
			used += p->used;
			lapsed += p->lapsed;
			refused += p->refused;
		}
		n->policy = "pl2";
		add_counter(n, "granted_bytes", granted);
		add_counter(n, "used_bytes", used);
		add_counter(n, "lapsed_bytes", lapsed);
		add_counter(n, "refused", refused);
	}
	free(rsv);
}

static void read_tokens(struct live_node *n, struct bl_err *err)
{
	uint64_t passed = 0, limited = 0, expired = 0;
	struct bl_token_counts sum;
	struct bl_token_cfg cfg;
	uint32_t i;
	int fd, k;

	if (bl_map_read_all(&n->ref, BL_MAP_TOKEN_CFG, sizeof(cfg), 1, &cfg, err) || !cfg.on)
		return;
	fd = bl_map_open(&n->ref, BL_MAP_TOKEN_COUNTS, sizeof(sum), false, err);
	for (i = 0; fd >= 0 && i < n->in.n; i++) {
		if (adm_tokens(fd, n->in.in[i].port, &sum))
			continue;
		for (k = 0; k < BL_TOP_CLASSES; k++) {
			passed += sum.passed[k];
			limited += sum.limit[k];
			expired += sum.expired[k];
		}
	}
	if (fd < 0)
		return;
	close(fd);
	n->policy = "top";
	add_counter(n, "tokens_passed", passed);
	add_counter(n, "tokens_limited", limited);
	add_counter(n, "tokens_expired", expired);
}

/* ---- all of a node ---- */

/* Whether the maps of a node are those that this build knows; else says in its @error why not. */
static bool is_known(struct live_node *n)
{
	if (n->ref.meta.abi_version == BL_ABI_VERSION)
		return true;
	snprintf(n->error, sizeof(n->error),
		 "its maps are of ABI version %u, and this command's of %u",
		 n->ref.meta.abi_version, BL_ABI_VERSION);
	return false;
}

/* The clock after the barriers, so that these are not ahead of it by the time that reading took. */
static void read_barriers(struct live_node *n)
{
	struct bl_err err;

	if (node_inputs_read(&n->ref, &n->in, &err))
		snprintf(n->error, sizeof(n->error), "%.200s", err.text);
	read_clock(n);
}

static void read_node(struct live_node *n)
{
	struct bl_err err = { 0 };

	if (!is_known(n))
		return;
	cli_keep_errors(n->error, sizeof(n->error));
	n->maps = counters_id(&n->ref);
	n->at_ns = bl_mono_ns();
	n->counts = node_count_rows(&n->ref, &n->count);
	read_barriers(n);
	read_state(n);
	if (n->ref.role == BL_ROLE_HOST && n->in.n) {
		n->eps = node_endpoints_read(&n->ref, &n->in.page, &n->ep, &err);
		read_host_admission(n, &err);
	} else if (n->in.n) {
		read_queues(n);
		read_reservations(n, &err);
		read_tokens(n, &err);
	}
	cli_keep_errors(NULL, 0);
	if (!n->error[0] && err.text[0])
		snprintf(n->error, sizeof(n->error), "%.200s", err.text);
	n->counts = n->counts < 0 ? 0 : n->counts;
	n->eps = n->eps < 0 ? 0 : n->eps;
}

/* By name, so that nodes stay where they are on the screen. */
static int by_name(const void *a, const void *b)
{
	const struct bl_node_ref *x = a, *y = b;
	int d = strcmp(node_name(x), node_name(y));

	if (d)
		return d;
	if (x->role != y->role)
		return x->role < y->role ? -1 : 1;
	return x->netns_ino < y->netns_ino ? -1 : x->netns_ino > y->netns_ino;
}

/* A snapshot of nodes that are to be read. NULL: out of memory. */
static struct live_snap *new_snap(const struct bl_node_ref *refs, int n)
{
	struct live_snap *s = calloc(1, sizeof(*s));
	struct timespec t;
	int i;

	if (!s)
		return NULL;
	s->node = calloc((size_t)n + 1, sizeof(*s->node));
	if (!s->node) {
		free(s);
		return NULL;
	}
	clock_gettime(CLOCK_REALTIME, &t);
	s->time_s = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
	s->at_ns = bl_mono_ns();
	s->nodes = n;
	for (i = 0; i < n; i++)
		s->node[i].ref = refs[i];
	return s;
}

struct live_snap *live_snap_read(uint64_t netns_ino, struct bl_err *err)
{
	struct bl_node_ref *refs = NULL;
	struct live_snap *s;
	int n, i;

	n = bl_nodes_find(&refs, netns_ino, err);
	if (n < 0)
		return NULL;
	if (n > 1)
		qsort(refs, (size_t)n, sizeof(*refs), by_name);
	s = new_snap(refs, n);
	free(refs);
	if (!s)
		bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; s && i < n; i++)
		read_node(&s->node[i]);
	return s;
}

struct live_snap *live_snap_barriers(const struct bl_node_ref *refs, int nrefs)
{
	struct live_snap *s = new_snap(refs, nrefs);
	int i;

	for (i = 0; s && i < nrefs; i++) {
		struct live_node *n = &s->node[i];

		if (!is_known(n))
			continue;
		n->at_ns = bl_mono_ns();
		read_barriers(n);
	}
	return s;
}

void live_snap_free(struct live_snap *s)
{
	int i;

	for (i = 0; s && i < s->nodes; i++) {
		free(s->node[i].count);
		node_inputs_free(&s->node[i].in);
		free(s->node[i].ep);
		free(s->node[i].queue);
	}
	if (s) {
		free(s->node);
		free(s->gone);
	}
	free(s);
}
