// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of arbiter/alloc/alloc*.c. They rest on three things: a model that counts one packet and
 * one slot at a time and says exactly what first-come, min-fct and deadline give; the verifier
 * (tested in test_arb_verify.c), which sees every run of every policy here; and the plain code,
 * with which the other instruction sets must agree word by word. What fair and weighted promise is
 * in test_arb_fair.c.
 */
#include "tests/unit/arbiter/alloc/alloc_nets.h"

/* ---- what is refused ---- */

static void bl_alloc_new__refused(void **state)
{
	static const uint16_t zero[8] = { 0 }, big[8] = { 0, 4096 },
			      most[8] = { 4095, 4095, 4095, 4095, 4095, 4095, 4095, 4095 },
			      one[8] = { 0, 1 };
	static const struct {
		struct bl_alloc_cfg c;
		const char *why;
	} t[] = {
		{ { .endpoints = 0 }, "1 to 4096 endpoints" },
		{ { .endpoints = 4097 }, "1 to 4096 endpoints" },
		{ { .endpoints = 1 }, NULL },
		{ { .endpoints = 2, .policy = BL_ALLOC_NPOLICIES }, "no such policy" },
		{ { .endpoints = 2, .window_slots = 4 }, "a window has" },
		{ { .endpoints = 2, .window_slots = 8 }, NULL },
		{ { .endpoints = 2, .window_slots = 24 }, "a window has" },
		{ { .endpoints = 2, .window_slots = 63 }, "a window has" },
		{ { .endpoints = 2, .window_slots = 192 }, "a window has" },
		{ { .endpoints = 2, .window_slots = 1024 }, "a window has" },
		{ { .endpoints = 2, .window_slots = 512 }, NULL },
		{ { .endpoints = 2, .quota_mtus = 1 << 24 }, "quota" },
		{ { .endpoints = 2, .quota_mtus = (1 << 24) - 1 }, NULL },
		{ { .endpoints = 2,
		    .racks = 1025,
		    .rack_of = zero,
		    .rack_up = zero,
		    .rack_down = zero },
		  "at most 1024 racks" },
		{ { .endpoints = 2, .racks = 1, .pods = 1025 }, "at most 1024 racks" },
		{ { .endpoints = 2, .pods = 1 }, "pods of racks" },
		{ { .endpoints = 2, .racks = 1, .rack_of = zero, .rack_up = zero }, "racks need" },
		{ { .endpoints = 2, .racks = 1, .rack_of = zero, .rack_down = zero },
		  "racks need" },
		{ { .endpoints = 2, .racks = 1, .rack_up = zero, .rack_down = zero },
		  "racks need" },
		{ { .endpoints = 2,
		    .racks = 1,
		    .rack_of = zero,
		    .rack_up = zero,
		    .rack_down = zero,
		    .pods = 1 },
		  "pods need" },
		{ { .endpoints = 2,
		    .racks = 1,
		    .rack_of = one,
		    .rack_up = zero,
		    .rack_down = zero },
		  "rack that does not exist" },
		{ { .endpoints = 2,
		    .racks = 2,
		    .rack_of = one,
		    .rack_up = zero,
		    .rack_down = zero },
		  NULL },
		{ { .endpoints = 2, .racks = 2, .rack_of = one, .rack_up = big, .rack_down = zero },
		  "at most 4095 packets" },
		{ { .endpoints = 2, .racks = 2, .rack_of = one, .rack_up = zero, .rack_down = big },
		  "at most 4095 packets" },
		{ { .endpoints = 2,
		    .racks = 2,
		    .rack_of = one,
		    .rack_up = most,
		    .rack_down = most },
		  NULL },
		{ { .endpoints = 2,
		    .racks = 2,
		    .rack_of = one,
		    .rack_up = zero,
		    .rack_down = zero,
		    .pods = 1,
		    .pod_of = one,
		    .pod_up = zero,
		    .pod_down = zero },
		  "pod that does not exist" },
		{ { .endpoints = 2,
		    .racks = 2,
		    .rack_of = one,
		    .rack_up = zero,
		    .rack_down = zero,
		    .pods = 2,
		    .pod_of = one,
		    .pod_up = big,
		    .pod_down = zero },
		  "at most 4095 packets" },
		{ { .endpoints = 2,
		    .racks = 2,
		    .rack_of = one,
		    .rack_up = zero,
		    .rack_down = zero,
		    .pods = 2,
		    .pod_of = one,
		    .pod_up = zero,
		    .pod_down = big },
		  "at most 4095 packets" },
		{ { .endpoints = 2, .src_cap = big }, "at most 4095 packets" },
		{ { .endpoints = 2, .dst_cap = big }, "at most 4095 packets" },
		{ { .endpoints = 2, .src_cap = most, .dst_cap = most }, NULL },
		{ { .endpoints = 2, .isa = (enum bl_alloc_isa)99 },
		  "does not have the instructions" },
	};
	const char *why;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_alloc *a = bl_alloc_new(&t[i].c, &why);

		if (!!a != !t[i].why)
			print_error("case %zu: %s\n", i, why ? why : "accepted");
		assert_int_equal(!!a, !t[i].why);
		if (t[i].why)
			assert_non_null(strstr(why, t[i].why));
		bl_alloc_free(a);
	}
	bl_alloc_free(NULL);
}

static void bl_alloc_demand__refused(void **state)
{
	static const enum bl_alloc_policy policies[] = { BL_ALLOC_FIRST, BL_ALLOC_FAIR };
	uint32_t p;

	(void)state;
	for (p = 0; p < 2; p++) {
		struct bl_alloc_cfg cfg = {
			.endpoints = 4, .policy = policies[p], .quota_mtus = 100, .flows_max = 2
		};
		struct bl_alloc *a = make(&cfg);

		assert_int_equal(bl_alloc_demand(a, 4, 0, 1, 0), BL_ALLOC_UNKNOWN);
		assert_int_equal(bl_alloc_demand(a, 0, 4, 1, 0), BL_ALLOC_UNKNOWN);
		assert_int_equal(bl_alloc_demand(a, 2, 2, 1, 0), BL_ALLOC_SELF);
		assert_int_equal(bl_alloc_demand(a, 0, 1, 101, 0), BL_ALLOC_QUOTA);
		assert_int_equal(bl_alloc_demand(a, 0, 1, 0, 0), BL_ALLOC_OK);
		assert_int_equal(bl_alloc_waiting(a), 0);
		assert_int_equal(bl_alloc_demand(a, 0, 1, 100, 0), BL_ALLOC_OK);
		assert_int_equal(bl_alloc_demand(a, 3, 1, 50, 0), BL_ALLOC_OK);
		assert_int_equal(bl_alloc_demand(a, 2, 3, 1, 0), BL_ALLOC_FULL);
		assert_int_equal(bl_alloc_stats(a)->refused, 5);
		assert_int_equal(bl_alloc_waiting(a), 150);
		/* the same pair again needs no new entry, but has a quota */
		if (policies[p] == BL_ALLOC_FAIR) {
			assert_int_equal(bl_alloc_demand(a, 3, 1, 60, 0), BL_ALLOC_OK);
			assert_int_equal(bl_alloc_demand(a, 3, 1, 41, 0), BL_ALLOC_QUOTA);
			assert_int_equal(bl_alloc_demand(a, 3, 1, 40, 0), BL_ALLOC_OK);
			assert_int_equal(bl_alloc_waiting(a), 250);
		}
		assert_int_equal(bl_alloc_weight(a, 4, 0, 1), BL_ALLOC_UNKNOWN);
		assert_int_equal(bl_alloc_weight(a, 0, 4, 1), BL_ALLOC_UNKNOWN);
		assert_int_equal(bl_alloc_weight(a, 1, 1, 1), BL_ALLOC_SELF);
		assert_int_equal(bl_alloc_weight(a, 0, 1, 0), BL_ALLOC_QUOTA);
		assert_int_equal(bl_alloc_weight(a, 0, 1, 128), BL_ALLOC_QUOTA);
		assert_int_equal(bl_alloc_weight(a, 0, 1, 127), BL_ALLOC_OK);
		bl_alloc_free(a);
	}
}

static void bl_alloc_window__by_policy(void **state)
{
	static const uint32_t want[] = { [BL_ALLOC_FIRST] = 512,
					 [BL_ALLOC_FAIR] = 512,
					 [BL_ALLOC_WEIGHTED] = 256,
					 [BL_ALLOC_FCT] = 64,
					 [BL_ALLOC_DEADLINE] = 64 };
	struct bl_alloc_cfg cfg = { .endpoints = 2 };
	uint32_t p;

	(void)state;
	for (p = 0; p < BL_ALLOC_NPOLICIES; p++) {
		struct bl_alloc *a;

		cfg.policy = (enum bl_alloc_policy)p;
		assert_int_equal(bl_alloc_window(&cfg), want[p]);
		a = make(&cfg);
		assert_int_equal(bl_alloc_demand(a, 0, 1, 1000, 0), BL_ALLOC_OK);
		/* the run gives that many, and no more before these slots are past */
		assert_int_equal(bl_alloc_run(a, 0).mtus, want[p]);
		assert_int_equal(bl_alloc_run(a, 63).mtus, 0);
		bl_alloc_free(a);
	}
}

static void bl_alloc_enough__half_a_step(void **state)
{
	static const uint16_t caps[] = { 0, 3, 40 };
	static const struct {
		enum bl_alloc_policy policy;
		uint32_t window;
		const uint16_t *cap;
		uint64_t want;
	} t[] = {
		{ BL_ALLOC_FIRST, 512, NULL, 3 * 32 },    { BL_ALLOC_FIRST, 64, NULL, 3 * 32 },
		{ BL_ALLOC_FAIR, 512, NULL, 3 * 256 },    { BL_ALLOC_WEIGHTED, 128, NULL, 3 * 64 },
		{ BL_ALLOC_DEADLINE, 64, caps, 43 * 32 }, { BL_ALLOC_FAIR, 256, caps, 43 * 128 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_alloc_cfg cfg = { .endpoints = 3,
					    .policy = t[i].policy,
					    .window_slots = t[i].window,
					    .src_cap = t[i].cap };
		struct bl_alloc *a = make(&cfg);

		assert_int_equal(bl_alloc_enough(a), t[i].want);
		bl_alloc_free(a);
	}
}

/*
 * Grants go where the caller says, the same as without that, and later back to the row of the
 * allocator.
 */
static void bl_alloc_row__of_the_caller(void **state)
{
	struct bl_alloc_cfg cfg = { .endpoints = 16, .policy = BL_ALLOC_FAIR };
	struct bl_alloc *a = make(&cfg), *b = make(&cfg);
	const size_t words = bl_alloc_row_words(a);
	uint64_t *row = malloc(
		words * sizeof(*row)); /* the exact size, so that ASan sees a write beyond it */
	const uint64_t *own = bl_alloc_run(a, 0).row;
	uint32_t round, i;

	(void)state;
	bl_alloc_run(b, 0);
	for (round = 1; round < 20; round++) {
		struct bl_grants x, y;

		/* every endpoint to every other one: the row is as full as it can be */
		for (i = 0; i < 16 * 15; i++) {
			bl_alloc_demand(a, i / 15, (i / 15 + 1 + i % 15) % 16, 40, 0);
			bl_alloc_demand(b, i / 15, (i / 15 + 1 + i % 15) % 16, 40, 0);
		}
		bl_alloc_row(a, round % 4 ? row : NULL);
		x = bl_alloc_run(a, round * 512);
		y = bl_alloc_run(b, round * 512);
		assert_ptr_equal(x.row, round % 4 ? row : own);
		assert_int_equal(x.len, y.len);
		assert_true(x.len > 240 && x.len <= words);
		assert_memory_equal(x.row, y.row, x.len * sizeof(*x.row));
	}
	bl_alloc_free(a);
	bl_alloc_free(b);
	free(row);
}

/* ---- the model of first-come, min-fct, deadline ---- */

#define MODEL_ENDS 12
#define MODEL_MAX  4096

struct model_want {
	uint32_t src, dst, mtus;
	uint64_t deadline;
};

/** struct model - What was demanded and given, packet by packet. */
struct model {
	const struct net *net;
	uint64_t base, cleared;
	bool begun;
	uint8_t used[2 * MODEL_ENDS + 2 * 64 + 2 * 8][1024]; /* [port][slot % 1024] packets */
	uint8_t got[MODEL_ENDS][MODEL_ENDS][1024]; /* [src][dst][slot % 1024] of this run */
	struct model_want wait[MODEL_MAX], fresh[MODEL_MAX];
	size_t nwait, nfresh;
};

static uint32_t model_ports(const struct net *n, uint32_t src, uint32_t dst, uint32_t *port,
			    uint32_t *cap)
{
	const struct bl_alloc_cfg *c = &n->cfg;
	uint32_t k = 0, r = n->rack_of[src], q = n->rack_of[dst];

	port[k] = src;
	cap[k++] = c->src_cap ? c->src_cap[src] : 1;
	port[k] = MODEL_ENDS + dst;
	cap[k++] = c->dst_cap ? c->dst_cap[dst] : 1;
	if (!c->racks || r == q)
		return k;
	port[k] = 2 * MODEL_ENDS + r;
	cap[k++] = n->up[r];
	port[k] = 2 * MODEL_ENDS + 64 + q;
	cap[k++] = n->down[q];
	if (!c->pods || n->pod_of[r] == n->pod_of[q])
		return k;
	port[k] = 2 * MODEL_ENDS + 128 + n->pod_of[r];
	cap[k++] = n->pod_up[n->pod_of[r]];
	port[k] = 2 * MODEL_ENDS + 136 + n->pod_of[q];
	cap[k++] = n->pod_down[n->pod_of[q]];
	return k;
}

static void model_demand(struct model *m, uint32_t src, uint32_t dst, uint32_t mtus,
			 uint64_t deadline)
{
	size_t i;

	/* min-fct has one entry per pair */
	for (i = 0; m->net->cfg.policy == BL_ALLOC_FCT && i < m->nwait + m->nfresh; i++) {
		struct model_want *w = i < m->nwait ? &m->wait[i] : &m->fresh[i - m->nwait];

		if (w->src == src && w->dst == dst) {
			w->mtus += mtus;
			return;
		}
	}
	m->fresh[m->nfresh++] = (struct model_want){ src, dst, mtus, deadline };
}

static uint64_t model_key(const struct model *m, const struct model_want *w)
{
	return m->net->cfg.policy == BL_ALLOC_FCT ? w->mtus
	       : m->net->cfg.policy == BL_ALLOC_DEADLINE
		       ? (w->deadline < m->base ? m->base : w->deadline)
		       : 0;
}

static void model_run(struct model *m, uint64_t now)
{
	static struct model_want list[2 * MODEL_MAX];
	const struct bl_alloc_cfg *c = &m->net->cfg;
	const uint32_t window = bl_alloc_window(c),
		       step = c->policy == BL_ALLOC_FIRST && window > 64 ? 64 : window;
	uint32_t port[6], cap[6], np, p;
	uint64_t slot, end;
	bool moved = !m->begun;
	size_t n = 0, i, j;

	m->begun = true;
	while (m->base + step <= now) {
		m->base += step;
		moved = true;
	}
	end = m->base + window;
	for (; m->cleared < end; m->cleared++) {
		for (p = 0; p < ARRAY_SIZE(m->used); p++)
			m->used[p][m->cleared % 1024] = 0;
	}
	memset(m->got, 0, sizeof(m->got));
	if (moved) {
		memcpy(list, m->wait, m->nwait * sizeof(*list));
		n = m->nwait;
		m->nwait = 0;
	}
	memcpy(&list[n], m->fresh, m->nfresh * sizeof(*list));
	n += m->nfresh;
	m->nfresh = 0;
	for (i = 1; i < n; i++) /* a stable sort */
		for (j = i; j && model_key(m, &list[j - 1]) > model_key(m, &list[j]); j--) {
			struct model_want t = list[j];

			list[j] = list[j - 1];
			list[j - 1] = t;
		}
	for (i = 0; i < n; i++) {
		struct model_want *w = &list[i];
		uint32_t before;

		np = model_ports(m->net, w->src, w->dst, port, cap);
		do { /* one packet in every slot that has room, then a second one, and so on */
			before = w->mtus;
			for (slot = now; slot < end && w->mtus; slot++) {
				for (p = 0; p < np && m->used[port[p]][slot % 1024] < cap[p]; p++)
					;
				if (p < np)
					continue;
				for (p = 0; p < np; p++)
					m->used[port[p]][slot % 1024]++;
				m->got[w->src][w->dst][slot % 1024]++;
				w->mtus--;
			}
		} while (w->mtus && w->mtus != before);
		if (w->mtus)
			m->wait[m->nwait++] = *w;
	}
}

static void model_compare(const struct model *m, const struct bl_grants *g)
{
	static uint8_t got[MODEL_ENDS][MODEL_ENDS][1024];
	const struct bl_grant *head;
	const uint64_t *mask;
	size_t at = 0;

	memset(got, 0, sizeof(got));
	while ((head = bl_grant_next(g, &at, &mask))) {
		uint32_t j, k = 0, i;

		for (j = 0; j < 8; j++) {
			if (!(head->words >> j & 1))
				continue;
			for (i = 0; i < 64; i++)
				got[head->src][head->dst][(g->base + 64 * j + i) % 1024] +=
					mask[k] >> i & 1;
			k++;
		}
	}
	assert_int_equal(g->base, m->base);
	assert_memory_equal(got, m->got, sizeof(got));
}

static void bl_alloc_run__as_the_model(void **state)
{
	static const enum bl_alloc_policy policies[] = { BL_ALLOC_FIRST, BL_ALLOC_FCT,
							 BL_ALLOC_DEADLINE };
	static struct model m;
	struct rnd r = rnd_seeded("bl_alloc_run__as_the_model");
	uint32_t round, i, k;
	struct net net;

	(void)state;
	for (round = 0; round < 360; round++) {
		struct bl_alloc *a;
		struct bl_verify *v;
		uint64_t now = 0;

		net_draw(&net, &r, 2 + rnd_below(&r, MODEL_ENDS - 1), (enum shape)(round % SHAPES));
		net.cfg.policy = policies[round / SHAPES % 3];
		net.cfg.window_slots = round % 5 ? 8u << rnd_below(&r, 7) : 0;
		net.cfg.isa = round % 7 == 0                       ? BL_ISA_PLAIN
			      : round % 7 == 1 && has(BL_ISA_BMI2) ? BL_ISA_BMI2
								   : BL_ISA_BEST;
		memset(&m, 0, sizeof(m));
		m.net = &net;
		a = make(&net.cfg);
		v = bl_verify_new(&net.cfg);
		for (i = 0; i < 40; i++) {
			struct bl_grants g;

			for (k = rnd_below(&r, 14); k; k--) {
				const uint32_t src = rnd_below(&r, net.cfg.endpoints),
					       dst = rnd_below(&r, net.cfg.endpoints),
					       mtus = 1 + rnd_below(&r, rnd_below(&r, 4) ? 12 : 60);
				const uint64_t deadline = now / bl_alloc_window(&net.cfg) *
								  bl_alloc_window(&net.cfg) +
							  rnd_below(&r, 128);

				/*
				 * Sizes and deadlines (after the start of the window) of 128 and
				 * more share buckets, which the model does not have.
				 */
				if (src == dst || (net.cfg.policy == BL_ALLOC_FCT &&
						   bl_verify_waiting(v, src, dst) + mtus > 127))
					continue;
				assert_int_equal(bl_alloc_demand(a, src, dst, mtus, deadline),
						 BL_ALLOC_OK);
				bl_verify_demand(v, src, dst, mtus);
				model_demand(&m, src, dst, mtus, deadline);
			}
			g = run(a, v, now);
			model_run(&m, now);
			model_compare(&m, &g);
			/*
			 * Mostly small steps; sometimes to the edge of a word or of a window, or
			 * far beyond.
			 */
			k = rnd_below(&r, 8);
			now += k < 4   ? rnd_below(&r, 20)
			       : k < 6 ? 64 - now % 64 - rnd_below(&r, 2)
			       : k < 7 ? rnd_below(&r, 200)
				       : rnd_below(&r, 900);
		}
		bl_alloc_free(a);
		bl_verify_free(v);
	}
}

/* ---- every policy, every network, every code ---- */

static void storm(struct rnd *r, uint32_t endpoints, enum shape shape, enum bl_alloc_policy policy,
		  uint32_t window, uint32_t runs)
{
	static const enum bl_alloc_isa isas[] = { BL_ISA_PLAIN, BL_ISA_BMI2, BL_ISA_AVX512 };
	struct net *net = malloc(sizeof(*net));
	struct bl_alloc *a[3] = { NULL };
	uint64_t now = 0, given = 0, asked = 0, gone = 0;
	struct bl_verify *v;
	uint32_t i, k, j;

	assert_non_null(net);
	net_draw(net, r, endpoints, shape);
	net->cfg.policy = policy;
	net->cfg.window_slots = window;
	for (i = 0; i < 3; i++) {
		net->cfg.isa = isas[i];
		if (i && !has(isas[i]))
			continue;
		a[i] = make(&net->cfg);
		for (k = 0; k < endpoints; k++) /* the same demands for all three: each run has a
						   generator with the same seed */
			bl_alloc_weight(a[i], k, (k * 7 + 1) % endpoints, 1 + k % 127);
	}
	v = bl_verify_new(&net->cfg);
	for (i = 0; i < runs; i++) {
		struct bl_grants g, other;

		for (k = rnd_below(r, 2 * endpoints); k; k--) {
			/* half of the demands go to few endpoints, so that queues grow there */
			const uint32_t src = rnd_below(r, endpoints),
				       dst = rnd_below(r, rnd_below(r, 2) ? endpoints : 3),
				       mtus = 1 + rnd_below(r, rnd_below(r, 9) ? 20 : 700);
			const uint64_t deadline = now + rnd_below(r, 3000);
			enum bl_alloc_err e = bl_alloc_demand(a[0], src, dst, mtus, deadline);

			if (e == BL_ALLOC_OK) {
				bl_verify_demand(v, src, dst, mtus);
				asked += mtus;
			}
			for (j = 1; j < 3; j++)
				if (a[j])
					assert_int_equal(
						bl_alloc_demand(a[j], src, dst, mtus, deadline), e);
		}
		g = run(a[0], v, now);
		given += g.mtus;
		for (j = 1; j < 3; j++) {
			if (!a[j])
				continue;
			other = bl_alloc_run(a[j], now);
			assert_int_equal(other.base, g.base);
			assert_int_equal(other.mtus, g.mtus);
			assert_int_equal(other.len, g.len);
			assert_memory_equal(other.row, g.row, g.len * sizeof(*g.row));
		}
		if (i % 16 == 7) {
			const uint32_t end = rnd_below(r, endpoints);
			const uint64_t mtus = bl_verify_forget(v, end);

			gone += mtus;
			for (j = 0; j < 3; j++)
				if (a[j])
					assert_int_equal(bl_alloc_forget(a[j], end), mtus);
		}
		assert_int_equal(bl_alloc_waiting(a[0]), asked - given - gone);
		assert_int_equal(bl_alloc_stats(a[0])->granted_mtus, given);
		assert_int_equal(bl_alloc_stats(a[0])->forgotten_mtus, gone);
		now += rnd_below(r, 5)   ? rnd_below(r, 40)
		       : rnd_below(r, 2) ? 64 - now % 64
					 : rnd_below(r, 1200);
	}
	/*
	 * Demands that can be served drain; those that cannot (a dead port) wait for ever, and the
	 * run is maximal all the same.
	 */
	do
		now += bl_alloc_window(&net->cfg);
	while (bl_alloc_run(a[0], now).mtus);
	if (shape == PLAIN)
		assert_int_equal(bl_alloc_waiting(a[0]), 0);
	for (j = 0; j < 3; j++)
		bl_alloc_free(a[j]);
	bl_verify_free(v);
	free(net);
}

static void bl_alloc_run__every_policy_and_network(void **state)
{
	static const uint32_t sizes[] = { 2, 3, 16, 17, 40, 100 };
	struct rnd r = rnd_seeded("bl_alloc_run__every_policy_and_network");
	uint32_t policy, shape, window, s;

	(void)state;
	for (policy = 0; policy < BL_ALLOC_NPOLICIES; policy++)
		for (shape = 0; shape < SHAPES; shape++)
			for (window = 8; window <= 512; window *= 2)
				for (s = 0; s < ARRAY_SIZE(sizes); s++)
					storm(&r, sizes[s], (enum shape)shape,
					      (enum bl_alloc_policy)policy, window,
					      shape == PLAIN ? 40 : 16);
}

static void bl_alloc_run__large(void **state)
{
	struct rnd r = rnd_seeded("bl_alloc_run__large");
	uint32_t policy;

	(void)state;
	for (policy = 0; policy < BL_ALLOC_NPOLICIES; policy++) {
		storm(&r, 1024, PLAIN, (enum bl_alloc_policy)policy, 0, 4);
		storm(&r, 333, PODS, (enum bl_alloc_policy)policy, 0, 4);
	}
}

/*
 * 4096 endpoints, the maximum: a permutation fills every slot, and all to one endpoint fills one
 * port.
 */
static void bl_alloc_run__most_endpoints(void **state)
{
	static const enum bl_alloc_policy policies[] = { BL_ALLOC_FIRST, BL_ALLOC_FAIR };
	uint32_t p, i;

	(void)state;
	for (p = 0; p < 2; p++) {
		struct bl_alloc_cfg cfg = { .endpoints = 4096,
					    .policy = policies[p],
					    .window_slots = 64 };
		struct bl_alloc *a = make(&cfg);
		struct bl_verify *v = bl_verify_new(&cfg);

		for (i = 0; i < 4096; i++) {
			assert_int_equal(bl_alloc_demand(a, i, (i + 2048) % 4096, 64, 0),
					 BL_ALLOC_OK);
			bl_verify_demand(v, i, (i + 2048) % 4096, 64);
		}
		assert_int_equal(run(a, v, 0).mtus, 4096 * 64);
		for (i = 0; i < 4095; i++) {
			assert_int_equal(bl_alloc_demand(a, i, 4095, 1, 0), BL_ALLOC_OK);
			bl_verify_demand(v, i, 4095, 1);
		}
		assert_int_equal(run(a, v, 1).mtus, 0);
		assert_int_equal(run(a, v, 64).mtus, 64);
		bl_alloc_free(a);
		bl_verify_free(v);
	}
}

/*
 * A slot number far beyond 2^32, and a jump over everything: what was skipped is lost, and nothing
 * is given twice.
 */
static void bl_alloc_run__far(void **state)
{
	uint32_t policy;

	(void)state;
	for (policy = 0; policy < BL_ALLOC_NPOLICIES; policy++) {
		struct bl_alloc_cfg cfg = { .endpoints = 3,
					    .policy = (enum bl_alloc_policy)policy,
					    .window_slots = 64 };
		struct bl_alloc *a = make(&cfg);
		struct bl_verify *v = bl_verify_new(&cfg);
		const uint64_t far = (1ULL << 52) + 5;

		assert_int_equal(bl_alloc_demand(a, 0, 1, 100, far + 50), BL_ALLOC_OK);
		bl_verify_demand(v, 0, 1, 100);
		assert_int_equal(run(a, v, 10).mtus, 54);
		assert_int_equal(run(a, v, 10).mtus, 0);
		assert_int_equal(run(a, v, far).mtus,
				 46); /* of 59 slots that are left of that window */
		assert_int_equal(bl_alloc_waiting(a), 0);
		bl_alloc_free(a);
		bl_verify_free(v);
	}
}

/* ---- single cases ---- */

/* A rack whose up-link is dead: nothing leaves the rack, and everything else is as without it. */
static void bl_alloc_run__dead_link(void **state)
{
	static const uint16_t rack_of[] = { 0, 0, 1, 1, 2, 2 }, up[] = { 2, 0, 2 },
			      down[] = { 2, 2, 2 };
	uint32_t policy;

	(void)state;
	for (policy = 0; policy < BL_ALLOC_NPOLICIES; policy++) {
		struct bl_alloc_cfg cfg = { .endpoints = 6,
					    .policy = (enum bl_alloc_policy)policy,
					    .window_slots = 64,
					    .racks = 3,
					    .rack_of = rack_of,
					    .rack_up = up,
					    .rack_down = down };
		struct bl_alloc *a = make(&cfg);
		struct bl_verify *v = bl_verify_new(&cfg);
		static const uint16_t pairs[][2] = {
			{ 2, 0 }, { 3, 4 }, { 2, 3 }, { 0, 2 }, { 4, 1 }
		};
		struct bl_grants g;
		uint32_t k;

		for (k = 0; k < 5; k++) {
			assert_int_equal(bl_alloc_demand(a, pairs[k][0], pairs[k][1], 10, 1),
					 BL_ALLOC_OK);
			bl_verify_demand(v, pairs[k][0], pairs[k][1], 10);
		}
		g = run(a, v, 0);
		assert_int_equal(g.mtus, 30);
		assert_int_equal(given_to(&g, 2, 0) + given_to(&g, 3, 4), 0);
		assert_int_equal(run(a, v, 64).mtus, 0);
		assert_int_equal(bl_alloc_waiting(a), 20);
		assert_int_equal(bl_alloc_forget(a, 2), 10);
		assert_int_equal(bl_alloc_forget(a, 4), 10);
		bl_alloc_free(a);
		bl_verify_free(v);
	}
}

/* Orders of service that can be seen from outside: one receiver, one run each. */
static void bl_alloc_run__orders(void **state)
{
	static const struct {
		enum bl_alloc_policy policy;
		uint32_t mtus[3];
		uint64_t deadline[3];
		uint64_t want[3]; /* slots */
	} t[] = {
		{ BL_ALLOC_FIRST, { 3, 1, 2 }, { 9, 1, 5 }, { 0x7, 0x8, 0x30 } },
		{ BL_ALLOC_FCT, { 3, 1, 2 }, { 9, 1, 5 }, { 0x38, 0x1, 0x6 } },
		{ BL_ALLOC_FCT, { 2, 2, 2 }, { 9, 1, 5 }, { 0x3, 0xc, 0x30 } },
		{ BL_ALLOC_DEADLINE, { 3, 1, 2 }, { 9, 1, 5 }, { 0x38, 0x1, 0x6 } },
		{ BL_ALLOC_DEADLINE, { 3, 1, 2 }, { 1, 9, 5 }, { 0x7, 0x20, 0x18 } },
		{ BL_ALLOC_DEADLINE, { 3, 1, 2 }, { 4, 4, 4 }, { 0x7, 0x8, 0x30 } },
		/* 21 slots each, and the odd one for the first flow */
		{ BL_ALLOC_FAIR,
		  { 64, 64, 64 },
		  { 0 },
		  { 0x00000000003fffffULL, 0x000007ffffc00000ULL, 0xfffff80000000000ULL } },
		{ BL_ALLOC_FAIR, { 3, 1, 2 }, { 0 }, { 0x7, 0x8, 0x30 } },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_alloc_cfg cfg = { .endpoints = 4,
					    .policy = t[i].policy,
					    .window_slots = 64 };
		struct bl_alloc *a = make(&cfg);
		struct bl_verify *v = bl_verify_new(&cfg);
		const struct bl_grant *head;
		uint64_t got[3] = { 0 };
		const uint64_t *mask;
		struct bl_grants g;
		uint32_t k;
		size_t at = 0;

		for (k = 0; k < 3; k++) {
			assert_int_equal(bl_alloc_demand(a, k + 1, 0, t[i].mtus[k],
							 t[i].deadline[k]),
					 BL_ALLOC_OK);
			bl_verify_demand(v, k + 1, 0, t[i].mtus[k]);
		}
		g = run(a, v, 0);
		while ((head = bl_grant_next(&g, &at, &mask)))
			got[head->src - 1] |= *mask;
		for (k = 0; k < 3; k++) {
			if (got[k] != t[i].want[k])
				print_error("case %zu, %u: %llx\n", i, k,
					    (unsigned long long)got[k]);
			assert_true(got[k] == t[i].want[k]);
		}
		bl_alloc_free(a);
		bl_verify_free(v);
	}
}

/*
 * A missed deadline is the most urgent, also where the lower 32 bits of the slot wrap between two
 * deadlines.
 */
static void bl_alloc_deadline__missed_and_wrapped(void **state)
{
	struct bl_alloc_cfg cfg = { .endpoints = 4,
				    .policy = BL_ALLOC_DEADLINE,
				    .window_slots = 64 };
	const uint64_t now = (1ULL << 32) - 64;
	struct bl_alloc *a = make(&cfg);
	struct bl_grants g;

	(void)state;
	bl_alloc_run(a, now);
	assert_int_equal(bl_alloc_demand(a, 1, 0, 30, now + 200), BL_ALLOC_OK);
	assert_int_equal(bl_alloc_demand(a, 2, 0, 30, now + 60), BL_ALLOC_OK);
	assert_int_equal(bl_alloc_demand(a, 3, 0, 30, now - 1000), BL_ALLOC_OK);
	g = bl_alloc_run(a, now);
	assert_int_equal(given_to(&g, 3, 0), 30);
	assert_int_equal(given_to(&g, 2, 0), 30);
	assert_int_equal(given_to(&g, 1, 0), 4);
	bl_alloc_free(a);
}

static void names__all(void **state)
{
	uint32_t i;

	(void)state;
	assert_string_equal(bl_alloc_policy_name(BL_ALLOC_FIRST), "first-come");
	assert_string_equal(bl_alloc_policy_name(BL_ALLOC_DEADLINE), "deadline");
	assert_string_equal(bl_alloc_policy_name(BL_ALLOC_NPOLICIES), "unknown");
	for (i = 0; i <= BL_ALLOC_FULL; i++)
		assert_string_not_equal(bl_alloc_err_text((enum bl_alloc_err)i), "unknown");
	assert_string_equal(bl_alloc_err_text((enum bl_alloc_err)(BL_ALLOC_FULL + 1)), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_alloc_new__refused),
		cmocka_unit_test(bl_alloc_demand__refused),
		cmocka_unit_test(bl_alloc_window__by_policy),
		cmocka_unit_test(bl_alloc_enough__half_a_step),
		cmocka_unit_test(bl_alloc_row__of_the_caller),
		cmocka_unit_test(bl_alloc_run__orders),
		cmocka_unit_test(bl_alloc_run__as_the_model),
		cmocka_unit_test(bl_alloc_run__every_policy_and_network),
		cmocka_unit_test(bl_alloc_run__large),
		cmocka_unit_test(bl_alloc_run__most_endpoints),
		cmocka_unit_test(bl_alloc_run__far),
		cmocka_unit_test(bl_alloc_run__dead_link),
		cmocka_unit_test(bl_alloc_deadline__missed_and_wrapped),
		cmocka_unit_test(names__all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
