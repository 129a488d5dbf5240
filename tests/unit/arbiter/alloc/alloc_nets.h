/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Networks for the tests of the allocators (test_arb_alloc.c, test_arb_fair.c), drawn at random in
 * four shapes, and runs that the verifier sees. Example: net_draw(&n, &r, 40, PODS): 40 endpoints
 * with links of different rates, in racks, in pods; some links are dead.
 */
#ifndef BARLINE_TEST_ALLOC_NETS_H
#define BARLINE_TEST_ALLOC_NETS_H

#include "tests/unit/unit.h"

#include "arbiter/alloc/alloc.h"
#include "arbiter/alloc/verify.h"

#define ENDS_MAX 1024

/** struct net - A configuration and what it points to. */
struct net {
	struct bl_alloc_cfg cfg;
	uint16_t src_cap[ENDS_MAX], dst_cap[ENDS_MAX], rack_of[ENDS_MAX];
	uint16_t up[64], down[64], pod_of[64], pod_up[8], pod_down[8];
};

enum shape { PLAIN, RATES, RACKS, PODS, SHAPES };

__attribute__((unused)) static void net_draw(struct net *n, struct rnd *r, uint32_t endpoints,
					     enum shape shape)
{
	uint32_t i;

	memset(n, 0, sizeof(*n));
	n->cfg.endpoints = endpoints;
	if (shape == PLAIN)
		return;
	/* some links are dead, most have a capacity of 1, some of 4, one of 10 */
	for (i = 0; i < endpoints; i++) {
		static const uint16_t caps[] = { 1, 1, 1, 1, 1, 4, 4, 2, 3, 10, 0 };

		n->src_cap[i] = caps[rnd_below(r, ARRAY_SIZE(caps))];
		n->dst_cap[i] = caps[rnd_below(r, ARRAY_SIZE(caps))];
	}
	n->cfg.src_cap = n->src_cap;
	n->cfg.dst_cap = n->dst_cap;
	if (shape == RATES)
		return;
	n->cfg.racks = 1 + rnd_below(r, endpoints / 3 + 1);
	n->cfg.racks = n->cfg.racks > 64 ? 64 : n->cfg.racks;
	for (i = 0; i < endpoints; i++)
		n->rack_of[i] = (uint16_t)rnd_below(r, n->cfg.racks);
	for (i = 0; i < n->cfg.racks; i++) {
		n->up[i] = (uint16_t)rnd_below(r, 6);
		n->down[i] = (uint16_t)rnd_below(r, 6);
	}
	n->cfg.rack_of = n->rack_of;
	n->cfg.rack_up = n->up;
	n->cfg.rack_down = n->down;
	if (shape == RACKS)
		return;
	n->cfg.pods = 1 + rnd_below(r, 8);
	for (i = 0; i < n->cfg.racks; i++)
		n->pod_of[i] = (uint16_t)rnd_below(r, n->cfg.pods);
	for (i = 0; i < n->cfg.pods; i++) {
		n->pod_up[i] = (uint16_t)rnd_below(r, 9);
		n->pod_down[i] = (uint16_t)rnd_below(r, 9);
	}
	n->cfg.pod_of = n->pod_of;
	n->cfg.pod_up = n->pod_up;
	n->cfg.pod_down = n->pod_down;
}

static struct bl_alloc *make(const struct bl_alloc_cfg *cfg)
{
	const char *why;
	struct bl_alloc *a = bl_alloc_new(cfg, &why);

	if (!a)
		print_error("%s\n", why);
	assert_non_null(a);
	assert_null(why);
	return a;
}

static bool has(enum bl_alloc_isa isa)
{
	const struct bl_alloc_cfg cfg = { .endpoints = 2, .isa = isa };
	const char *why;
	struct bl_alloc *a = bl_alloc_new(&cfg, &why);

	bl_alloc_free(a);
	return a;
}

static struct bl_grants run(struct bl_alloc *a, struct bl_verify *v, uint64_t now)
{
	struct bl_grants g = bl_alloc_run(a, now);

	if (!bl_verify_run(v, &g, now))
		fail_msg("%s, %s: %s", bl_alloc_isa(a), "schedule", bl_verify_error(v));
	return g;
}

/* Returns the MTUs that one pair got in a run. */
__attribute__((unused)) static uint32_t given_to(const struct bl_grants *g, uint32_t src,
						 uint32_t dst)
{
	const struct bl_grant *head;
	const uint64_t *mask;
	uint32_t n = 0;
	size_t at = 0;

	while ((head = bl_grant_next(g, &at, &mask)))
		n += head->src == src && head->dst == dst ? head->mtus : 0;
	return n;
}

#endif
