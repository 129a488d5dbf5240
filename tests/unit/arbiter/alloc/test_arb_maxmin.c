// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of arbiter/alloc/alloc*.c: fair and weighted against an exact max-min solver
 * (alloc_fluid.h), over 50 windows in which all flows have more than they can have.
 * BL_MAXMIN_GRAPHS=1000 in the environment draws that many random graphs instead of a few: make
 * soak-fair.
 */
#include "tests/unit/arbiter/alloc/alloc_nets.h"

#include "tests/unit/arbiter/alloc/alloc_fluid.h"

#define WINDOWS   50
#define FLOWS_MAX 4096

/** struct duel - The flows of one network. */
struct duel {
	struct bl_alloc_cfg cfg;
	struct fluid_flow flow[FLOWS_MAX];
	uint16_t src[FLOWS_MAX], dst[FLOWS_MAX];
	uint64_t got[FLOWS_MAX]; /* MTUs */
	size_t n;
	uint32_t at[256 * 256]; /* [src][dst]: 1 + the flow */
	double behind;          /* the most MTUs that a flow was behind its rate */
};

static void add(struct duel *d, uint32_t src, uint32_t dst, uint32_t weight)
{
	const uint32_t pair = src * d->cfg.endpoints + dst;

	if (src == dst || d->at[pair] || d->n == FLOWS_MAX)
		return;
	d->src[d->n] = (uint16_t)src;
	d->dst[d->n] = (uint16_t)dst;
	d->flow[d->n] = (struct fluid_flow){ .port = { src, d->cfg.endpoints + dst },
					     .nports = 2,
					     .weight = weight };
	d->got[d->n] = 0;
	d->at[pair] = (uint32_t)++d->n;
}

/* Plays WINDOWS windows with all flows backlogged and every run verified. */
static void play(struct duel *d)
{
	const uint32_t n = d->cfg.endpoints, window = bl_alloc_window(&d->cfg);
	struct bl_alloc *a = make(&d->cfg);
	struct bl_verify *v = bl_verify_new(&d->cfg);
	double cap[512];
	uint32_t i, w;

	for (i = 0; i < 2 * n; i++)
		cap[i] = 1;
	fluid_solve(d->flow, d->n, cap, 2 * n);
	for (i = 0; i < d->n; i++)
		assert_int_equal(bl_alloc_weight(a, d->src[i], d->dst[i],
						 (uint32_t)d->flow[i].weight),
				 BL_ALLOC_OK);
	for (w = 0; w < WINDOWS; w++) {
		const struct bl_grant *head;
		const uint64_t *mask;
		struct bl_grants g;
		size_t at = 0;

		for (i = 0; i < d->n; i++) {
			const uint32_t more =
				3 * window - bl_verify_waiting(v, d->src[i], d->dst[i]);

			assert_int_equal(bl_alloc_demand(a, d->src[i], d->dst[i], more, 0),
					 BL_ALLOC_OK);
			bl_verify_demand(v, d->src[i], d->dst[i], more);
		}
		g = run(a, v, (uint64_t)w * window);
		while ((head = bl_grant_next(&g, &at, &mask)))
			d->got[d->at[head->src * n + head->dst] - 1] += head->mtus;
		for (i = 0; i < d->n; i++) {
			const double less =
				(w + 1.0) * window * d->flow[i].rate - (double)d->got[i];

			d->behind = less > d->behind ? less : d->behind;
		}
	}
	bl_alloc_free(a);
	bl_verify_free(v);
}

static struct duel *duel_new(uint32_t endpoints, enum bl_alloc_policy policy, uint32_t window,
			     enum bl_alloc_isa isa)
{
	struct duel *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	d->cfg = (struct bl_alloc_cfg){
		.endpoints = endpoints, .policy = policy, .window_slots = window, .isa = isa
	};
	return d;
}

/* What each flow got, divided by what max-min gives: least and greatest. */
static void ratios(const struct duel *d, double *least, double *most)
{
	const double slots = WINDOWS * (double)bl_alloc_window(&d->cfg);
	size_t i;

	*least = 1e9;
	*most = 0;
	for (i = 0; i < d->n; i++) {
		const double r = (double)d->got[i] / (slots * d->flow[i].rate);

		*least = r < *least ? r : *least;
		*most = r > *most ? r : *most;
	}
}

/* How far a pair may be from its share: 2 %, by weight 3 % (arbiter/alloc/alloc.h). */
static double allowed(enum bl_alloc_policy policy)
{
	return policy == BL_ALLOC_WEIGHTED ? 0.03 : 0.02;
}

static void judge(const struct duel *d, double least, double most)
{
	const bool good = least >= 1 - allowed(d->cfg.policy) && most <= 1 + allowed(d->cfg.policy);

	if (!good)
		print_error("%u endpoints, %zu flows, window %u: %.3f to %.3f of max-min\n",
			    d->cfg.endpoints, d->n, bl_alloc_window(&d->cfg), least, most);
	assert_true(good);
}

static const enum bl_alloc_isa isas[] = { BL_ISA_PLAIN, BL_ISA_BMI2, BL_ISA_AVX512 };

/*
 * What is left over after the first pass is shared by what each flow has had, not equally: 0>1 and
 * 0>2 have a half each.
 */
static void bl_alloc_fair__ten_flows(void **state)
{
	static const uint8_t pairs[][2] = { { 0, 1 }, { 0, 2 }, { 3, 2 }, { 4, 2 }, { 3, 5 },
					    { 3, 6 }, { 3, 7 }, { 4, 5 }, { 4, 6 }, { 4, 7 } };
	uint32_t window, isa, i;

	(void)state;
	for (isa = 0; isa < 3; isa++)
		for (window = 8; has(isas[isa]) && window <= 512; window *= 2) {
			struct duel *d = duel_new(8, BL_ALLOC_FAIR, window, isas[isa]);
			double least, most;

			for (i = 0; i < ARRAY_SIZE(pairs); i++)
				add(d, pairs[i][0], pairs[i][1], 1);
			play(d);
			ratios(d, &least, &most);
			judge(d, least, most);
			free(d);
		}
}

/*
 * The same network by weight. Receiver 2 is full first, at 1/7 for a weight of 1; 0, 3 and 4 have
 * what it leaves for their other flows. Windows of 8 slots are left out: rounding to whole MTUs
 * costs a port up to one MTU in each window.
 */
static void bl_alloc_weighted__ten_flows(void **state)
{
	static const uint8_t flows[][3] = { { 0, 1, 1 }, { 0, 2, 3 }, { 3, 2, 2 }, { 4, 2, 2 },
					    { 3, 5, 1 }, { 3, 6, 1 }, { 3, 7, 1 }, { 4, 5, 1 },
					    { 4, 6, 1 }, { 4, 7, 1 } };
	uint32_t window, isa, i;

	(void)state;
	for (isa = 0; isa < 3; isa++)
		for (window = 16; has(isas[isa]) && window <= 512; window *= 2) {
			struct duel *d = duel_new(8, BL_ALLOC_WEIGHTED, window, isas[isa]);
			double least, most;

			for (i = 0; i < ARRAY_SIZE(flows); i++)
				add(d, flows[i][0], flows[i][1], flows[i][2]);
			play(d);
			ratios(d, &least, &most);
			judge(d, least, most);
			free(d);
		}
}

/*
 * Random graphs of 8 to 256 endpoints with up to 14 flows for each endpoint. @weights: the greatest
 * weight.
 */
static void random_graphs(enum bl_alloc_policy policy, uint32_t weights, struct rnd r)
{
	const char *env = getenv("BL_MAXMIN_GRAPHS");
	const uint32_t graphs = env ? (uint32_t)atoi(env) : 24;
	double worst_least = 1, worst_most = 1, behind = 0;
	uint32_t g, i, k;

	for (g = 0; g < graphs; g++) {
		const uint32_t n = 8 + rnd_below(&r, g % 4 ? 57 : 249);
		const uint32_t flows = n + rnd_below(&r, n * (2 + rnd_below(&r, 12)));
		struct duel *d = duel_new(n, policy, 512, BL_ISA_BEST);
		double least, most;

		for (i = 0; i < flows; i++) {
			k = rnd_below(&r, n);
			add(d, k, rnd_below(&r, n), 1 + rnd_below(&r, weights));
		}
		play(d);
		ratios(d, &least, &most);
		if (env)
			print_message("%u endpoints, %zu flows: %.3f to %.3f of max-min, "
				      "%.0f MTUs behind\n",
				      n, d->n, least, most, d->behind);
		else
			judge(d, least, most);
		worst_least = least < worst_least ? least : worst_least;
		worst_most = most > worst_most ? most : worst_most;
		behind = d->behind > behind ? d->behind : behind;
		free(d);
	}
	print_message("%u graphs: %.3f to %.3f of max-min, %.0f MTUs behind\n", graphs, worst_least,
		      worst_most, behind);
	assert_true(worst_least >= 1 - allowed(policy) && worst_most <= 1 + allowed(policy));
}

static void bl_alloc_fair__random_graphs(void **state)
{
	(void)state;
	random_graphs(BL_ALLOC_FAIR, 1, rnd_seeded("bl_alloc_fair__random_graphs"));
}

static void bl_alloc_weighted__random_graphs(void **state)
{
	(void)state;
	random_graphs(BL_ALLOC_WEIGHTED, 4, rnd_seeded("bl_alloc_weighted__random_graphs"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_alloc_fair__ten_flows),
		cmocka_unit_test(bl_alloc_weighted__ten_flows),
		cmocka_unit_test(bl_alloc_fair__random_graphs),
		cmocka_unit_test(bl_alloc_weighted__random_graphs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
