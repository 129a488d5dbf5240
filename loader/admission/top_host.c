// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP's settings: from configuration and flags to what the programs read (maps/top_host_abi.h), at
 * start and while the host runs.
 *
 * Example: 10 Gbit/s and a headroom of 5 %: a token and its data, 1622 bytes, take 1297.6 ns; a
 * slot is 1366 ns. Six levels and a longest flow of 10000 frames: class 1 begins at 5 frames
 * (10000^(1/6) = 4.64), class 2 at 22, then 100, 465 and 2155. T with base_us 10 and 2 hops: 10 us
 * + 2 x 8 x 1366 ns = 31.9 us.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/time.h"
#include "core/queue/queue_core.h"
#include "core/top/top_core.h"
#include "loader/admission/policy.h"
#include "loader/admission/top_host.h"
#include "loader/node_priv.h"

#define W_MAX_PERMILLE 500 /* xpass.cc:600, and the paper's */
#define HOP_TOKENS     8

static const struct bl_option *top_option(unsigned int k)
{
	return bl_option(BL_AO_TOP + k);
}

void bl_top_defaults(struct bl_top_opts *o)
{
	unsigned int k;

	for (k = 0; k < BL_TOP_O_COUNT; k++)
		if (!o->v[k])
			o->v[k] = (uint32_t)top_option(k)->dflt + 1;
}

int bl_top_check(const struct bl_top_opts *o, struct bl_err *err)
{
	unsigned int k, j;
	uint32_t last;

	for (k = 0; k < BL_TOP_O_COUNT; k++)
		if (o->v[k] &&
		    bl_option_check(top_option(k), bl_top_option_key(k), o->v[k] - 1, err))
			return -EINVAL;
	if (o->v[BL_TOP_O_W_MIN] > o->v[BL_TOP_O_W_INIT])
		return bl_fail(err, EINVAL, "w_min_permille %u is above w_init_permille %u",
			       o->v[BL_TOP_O_W_MIN] - 1, o->v[BL_TOP_O_W_INIT] - 1);
	if (o->v[BL_TOP_O_DEAD] && o->v[BL_TOP_O_SYNC] &&
	    o->v[BL_TOP_O_DEAD] - 1 <= 4 * (o->v[BL_TOP_O_SYNC] - 1))
		return bl_fail(err, EINVAL,
			       "dead_us %u: a sender that waits repeats its SYNC every %u us (4 "
			       "sync_us), and would be taken for dead",
			       o->v[BL_TOP_O_DEAD] - 1, 4 * (o->v[BL_TOP_O_SYNC] - 1));
	for (k = BL_TOP_O_CLASS1, last = 0; k <= BL_TOP_O_CLASS5; k++) {
		if (o->v[k] < 2)
			continue;
		if (o->v[k] - 1 <= last)
			return bl_fail(err, EINVAL, "%s %u: not above the threshold before it, %u",
				       bl_top_option_key(k), o->v[k] - 1, last);
		last = o->v[k] - 1;
	}
	for (k = 1; k < o->nrules; k++)
		for (j = 0; j < k; j++)
			if (o->rules[j].port == o->rules[k].port &&
			    (!o->rules[j].proto || o->rules[j].proto == o->rules[k].proto))
				return bl_fail(err, EINVAL,
					       "rules: port %u has two that fit the same flows; "
					       "the first one counts, so the second would never be "
					       "used",
					       o->rules[k].port);
	return 0;
}

uint64_t bl_top_limit(unsigned int cls, unsigned int levels, double a, double b, double longest)
{
	double x;

	if (cls >= levels)
		return ~0ULL;
	/*
	 * a hair less than the power: 8^(1/3) is 2 and not 2.0000000000000004, from which 3 would
	 * be made
	 */
	x = ceil((pow(longest, (double)cls / levels) * (1 - 1e-12) - b) / a);
	return x > 0 ? (uint64_t)x : 0;
}

void bl_top_limits(const struct bl_top_opts *given, uint64_t limit[BL_TOP_CLASSES - 1])
{
	struct bl_top_opts o = *given;
	uint32_t v[BL_TOP_O_COUNT], k;

	bl_top_defaults(&o);
	for (k = 0; k < BL_TOP_O_COUNT; k++)
		v[k] = o.v[k] - 1;
	for (k = 1; k < BL_TOP_CLASSES; k++) {
		limit[k - 1] = bl_top_limit(k, v[BL_TOP_O_LEVELS], v[BL_TOP_O_A] / 1000.0,
					    v[BL_TOP_O_B] / 1000.0, v[BL_TOP_O_LONGEST]);
		if (v[BL_TOP_O_CLASS1 + k - 1] && k < v[BL_TOP_O_LEVELS])
			limit[k - 1] = v[BL_TOP_O_CLASS1 + k - 1];
	}
}

static uint32_t permille(uint32_t v)
{
	return (uint32_t)((uint64_t)v * BL_TOP_ONE / 1000);
}

void bl_top_make(const struct bl_top_opts *o, uint32_t ns_q20, struct bl_top_cfg *c)
{
	uint64_t limit[BL_TOP_CLASSES - 1];
	uint32_t v[BL_TOP_O_COUNT];
	unsigned int k;

	for (k = 0; k < BL_TOP_O_COUNT; k++)
		v[k] = o->v[k] - 1;
	memset(c, 0, sizeof(*c));
	memcpy(c->opt, v, sizeof(v));
	c->law = v[BL_TOP_O_LAW];
	c->objective = v[BL_TOP_O_OBJECTIVE];
	c->levels = v[BL_TOP_O_LEVELS];
	c->slot_ns = (uint32_t)(((uint64_t)ns_q20 * BL_TOP_WIRE_BYTES * 100 /
					 (100 - v[BL_TOP_O_HEADROOM]) +
				 (1 << 20) - 1) >>
				20);
	c->alpha = permille(v[BL_TOP_O_ALPHA]);
	c->w_init = permille(v[BL_TOP_O_W_INIT]);
	c->w_min = permille(v[BL_TOP_O_W_MIN]);
	c->w_max = permille(W_MAX_PERMILLE);
	c->jitter = permille(v[BL_TOP_O_JITTER] * 10);
	c->outside_tries = v[BL_TOP_O_OUTSIDE];
	c->unscheduled = v[BL_TOP_O_UNSCHED];
	c->short_frames = v[BL_TOP_O_SHORT];
	bl_top_limits(o, limit);
	for (k = 0; k < BL_TOP_CLASSES - 1; k++)
		c->limit[k] = limit[k];
	c->learn = v[BL_TOP_O_LEARN] && c->levels > 1 && c->objective != BL_TOP_BY_DEADLINE &&
		   c->objective != BL_TOP_BY_COFLOW;
	for (k = BL_TOP_O_CLASS1; k <= BL_TOP_O_CLASS5; k++)
		c->learn = v[k] ? 0 : c->learn; /* they are known */
	c->expiry_ns = v[BL_TOP_O_EXPIRY] * 1000ULL;
	if (!c->expiry_ns)
		c->expiry_ns = v[BL_TOP_O_BASE] * 1000ULL +
			       (uint64_t)v[BL_TOP_O_HOPS] * HOP_TOKENS * c->slot_ns;
	c->ramp = BL_TOP_SHORT_RAMP;
	if (c->slot_ns && 2000ULL * v[BL_TOP_O_BASE] / c->slot_ns < BL_TOP_SHORT_RAMP)
		c->ramp = (uint32_t)(2000ULL * v[BL_TOP_O_BASE] / c->slot_ns);
	c->ramp = c->ramp ? c->ramp : 1;
	c->sync_ns = v[BL_TOP_O_SYNC] * 1000ULL;
	c->idle_ns = v[BL_TOP_O_IDLE] * 1000ULL;
	c->dead_ns = v[BL_TOP_O_DEAD] * 1000ULL;
	for (k = 0; k < o->nrules && k < BL_TOP_RULES; k++)
		c->rules[k] = o->rules[k];
}

/* ---- maps ---- */

int bl_top_host_check(const struct bl_node_cfg *c, bool selected, struct bl_err *err)
{
	if (selected && !c->admission.rate_bps)
		return bl_fail(err, EINVAL,
			       "top paces tokens at the link's rate, so it needs one; give "
			       "admission a rate (--rate)");
	return bl_top_check(&c->admission.top, err);
}

int bl_top_host_fill(struct bl_node *n, const struct bl_node_cfg *node_cfg, struct bpf_object *obj,
		     const struct bl_sw_port *ports, bool selected, struct bl_err *err)
{
	struct bl_top_page page = { .at = BL_DUE_NEVER };
	struct bpf_map *cfg, *pages;
	struct bl_top_cfg c;
	int rc;

	(void)node_cfg, (void)ports, (void)selected;
	rc = bl_map_find(obj, BL_MAP_TOP_CFG, sizeof(c), &cfg, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_TOP_PAGE, sizeof(page), &pages, err);
	if (rc)
		return rc;
	bl_top_make(&n->cfg.admission.top, bl_rate_ns_q20(n->cfg.admission.rate_bps), &c);
	c.keep_max = n->cfg.admission.slots / BL_TOP_KEEP_PART;
	rc = bl_map_set(bpf_map__fd(cfg), 0, &c, BL_MAP_TOP_CFG, err);
	if (getrandom(&page.random, sizeof(page.random), 0) != sizeof(page.random) || !page.random)
		page.random = (uint32_t)bl_mono_ns() | 1;
	if (!rc && n->queues_fresh)
		rc = bl_map_set(bpf_map__fd(pages), 0, &page, BL_MAP_TOP_PAGE, err);
	return rc;
}

/*
 * Has the pacer visit all flows: those whose time was "never" under another policy, or whose slot
 * was longer.
 */
static void revisit_flows(const struct bl_node_ref *ref)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE),
	       size = (sizeof(struct bl_top_page) + page - 1) / page * page;
	struct bl_top_page *p;
	struct bl_err err;
	int fd = bl_map_open(ref, BL_MAP_TOP_PAGE, sizeof(*p), true, &err);

	if (fd < 0)
		return;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return;
	bl_time_lower(&p->at, BL_DUE_NEVER, bl_mono_ns());
	munmap(p, size);
}

/* The settings of a running host with those of @set that are given. */
static void merge_opts(const struct bl_admission_set *set, const struct bl_top_cfg *was,
		       struct bl_top_opts *o)
{
	unsigned int k;

	memset(o, 0, sizeof(*o));
	for (k = 0; k < BL_TOP_O_COUNT; k++)
		o->v[k] = set->given[BL_AO_TOP + k] ? (uint32_t)set->value[BL_AO_TOP + k] + 1
						    : was->opt[k] + 1;
	for (k = 0; k < BL_TOP_RULES && was->rules[k].port; k++)
		o->rules[o->nrules++] = was->rules[k];
}

static void say_opts(const struct bl_said *s, const struct bl_top_cfg *was,
		     const struct bl_top_cfg *now)
{
	char a[32], b[32];
	unsigned int k;

	for (k = 0; k < BL_TOP_O_COUNT; k++)
		if (was->opt[k] != now->opt[k])
			bl_say(s, bl_top_option_key(k),
			       bl_top_option_value(k, was->opt[k], a, sizeof(a)),
			       bl_top_option_value(k, now->opt[k], b, sizeof(b)));
}

int bl_top_host_change(struct bl_change *c, bool write, struct bl_err *err)
{
	struct bl_top_cfg was, now;
	struct bl_top_opts o;
	int fd, rc;

	if (c->hold.policy == BL_POLICY_TOP && !c->hold.link.ns_q20)
		return bl_fail(err, EINVAL,
			       "top paces tokens at the link's rate, so it needs one; add --rate");
	fd = bl_value_read(c->ref, BL_MAP_TOP_CFG, &was, sizeof(was), true, err);
	if (fd < 0)
		return fd;
	merge_opts(c->set, &was, &o);
	rc = bl_top_check(&o, err);
	if (!rc && write) {
		bl_top_make(&o, c->hold.link.ns_q20, &now);
		now.keep_max = was.keep_max;
		rc = bl_map_set(fd, 0, &now, BL_MAP_TOP_CFG, err);
	}
	close(fd);
	if (rc || !write)
		return rc;
	revisit_flows(c->ref);
	say_opts(&c->said, &was, &now);
	return 0;
}

int bl_top_host_show(const struct bl_node_ref *ref, struct bl_admission_set *v, struct bl_err *err)
{
	struct bl_top_cfg c;
	unsigned int k;
	int fd = bl_value_read(ref, BL_MAP_TOP_CFG, &c, sizeof(c), false, err);

	if (fd < 0)
		return fd;
	close(fd);
	for (k = 0; k < BL_TOP_O_COUNT; k++)
		bl_admission_put(v, BL_AO_TOP + k, c.opt[k]);
	return 0;
}
