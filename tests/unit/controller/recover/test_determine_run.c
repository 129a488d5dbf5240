// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * controller/recover/determine.c on random networks in which barriers flow, nodes die or only seem
 * to, links fail and come back, and reports come late: no receiver may get past T, nor past what a
 * correct sender has committed.
 */
#include "tests/unit/controller/recover/determine_net.h"

/** struct run - The registers of a network, and what is the case in it. */
struct run {
	uint64_t commit[NODES];   /* of a host: everything it sent below this is prepared */
	uint64_t r[2 * LINKS];    /* register of a way, at its receiving end */
	uint64_t sent[2 * LINKS]; /* last C that was sent on the way */
	bool cut[2 * LINKS];      /* nothing arrives on the way any more */
	bool dead[NODES];         /* the node does nothing any more */
	bool stuck[NODES];        /* a message of the host waits for its ACK */
	bool flows[NODES][NODES]; /* there was a flow from the first to the second at the start */
};

/* All nodes are there, all ways are live, and nothing is sent yet. */
static void run_begin(struct run *x, struct net *n)
{
	unsigned int i, w;

	n->g.roots = 0;
	memset(x, 0, sizeof(*x));
	for (i = 0; i < n->g.nodes; i++)
		n->node[i].state = BL_DET_UP;
	for (w = 0; w < 2 * n->g.links; w++)
		n->link[w / 2].way[w % 2].state = BL_DET_LIVE;
	walk_all(n);
	for (i = 0; i < nflows; i++)
		x->flows[flows[i].at[0]][flows[i].at[flows[i].n]] = true;
}

static unsigned int way_from(const struct net *n, unsigned int w)
{
	return w % 2 ? n->link[w / 2].high : n->link[w / 2].low;
}

static unsigned int way_to(const struct net *n, unsigned int w)
{
	return w % 2 ? n->link[w / 2].low : n->link[w / 2].high;
}

/* What goes up comes from below only. */
static bool feeds(unsigned int in, unsigned int out)
{
	return in % 2 == BL_DET_TO_HIGH || out % 2 == BL_DET_TO_LOW;
}

static void run_send(struct run *x, const struct net *n, unsigned int w)
{
	unsigned int from = way_from(n, w), in;
	uint64_t c = UINT64_MAX;

	if (x->dead[from])
		return;
	if (n->node[from].kind == BL_DET_HOST)
		c = x->commit[from];
	for (in = 0; in < 2 * n->g.links && n->node[from].kind == BL_DET_SWITCH; in++)
		if (way_to(n, in) == from && feeds(in, w) &&
		    way_of(n, in)->state != BL_DET_REMOVED && x->r[in] < c)
			c = x->r[in];
	if (c != UINT64_MAX && c > x->sent[w])
		x->sent[w] = c;
}

/* Returns the C of a receiver. */
static uint64_t run_c(const struct run *x, const struct net *n, unsigned int host)
{
	uint64_t c = UINT64_MAX;
	unsigned int w;

	for (w = 0; w < 2 * n->g.links; w++)
		if (w % 2 == BL_DET_TO_LOW && n->link[w / 2].low == host && x->r[w] < c)
			c = x->r[w];
	return c;
}

static void run_steps(struct run *x, const struct net *n, struct rnd *r, unsigned int steps)
{
	while (steps--) {
		unsigned int h = rnd_below(r, n->g.nodes), w = rnd_below(r, 2 * n->g.links);

		x->commit[h] += !x->dead[h] && !x->stuck[h] && rnd_below(r, 2) ? rnd_below(r, 4)
									       : 0;
		run_send(x, n, w);
		/* A part arrives: what was sent later is still on its way, or lost. */
		w = rnd_below(r, 2 * n->g.links);
		if (!x->cut[w] && bl_det_rises(way_of(n, w)->state) && x->sent[w] > x->r[w])
			x->r[w] += rnd_below(r, 2) ? x->sent[w] - x->r[w]
						   : rnd_below(r, (uint32_t)(x->sent[w] - x->r[w]));
	}
}

/*
 * No receiver for which T is said to hold gets beyond T, and T is never beyond what its sender had
 * committed.
 */
static void bl_determine__no_correct_host_passes_T(void **state)
{
	static struct net n;
	static struct run x;
	struct rnd r = rnd_seeded("run");
	unsigned int k, i, j, w, kept = 0, beyond = 0, early = 0;

	(void)state;
	for (k = 0; k < 6000; k++) {
		net_random(&n, &r);
		run_begin(&x, &n);
		if (!n.g.links)
			continue;
		run_steps(&x, &n, &r, 300);
		for (j = 1 + rnd_below(&r, 3); j--;) {
			unsigned int victim = rnd_below(&r, n.g.nodes), what = rnd_below(&r, 4);

			if (what == 0) /* it seems dead, and is not */
				n.node[victim].state = BL_DET_DOWN;
			x.dead[victim] |= what == 1 || what == 2;
			if (what == 2)
				n.node[victim].state = BL_DET_DOWN;
			for (w = 0; w < 2 * n.g.links; w++)
				if (way_from(&n, w) == victim && what == 3 && rnd_below(&r, 2))
					x.cut[w] = true;
			run_steps(&x, &n, &r, rnd_below(&r, 30));
		}
		/*
		 * Nodes that hear nothing freeze and report, and the others go on in between; some
		 * are asked although they hear something; some are late.
		 */
		for (w = 0; w < 2 * n.g.links; w++) {
			unsigned int from = way_from(&n, w);

			if ((!x.cut[w] && !x.dead[from] && n.node[from].state == BL_DET_UP) ||
			    rnd_below(&r, 4) == 0)
				continue;
			n.link[w / 2].way[w % 2] = (struct bl_det_way){ x.r[w], 0, BL_DET_SILENT };
			run_steps(&x, &n, &r, rnd_below(&r, 20));
		}
		assert_int_equal(bl_determine(&n.g, n.found, n.todo, &n.sum), 0);
		for (i = 0; i < n.g.nodes; i++)
			if (n.node[i].kind == BL_DET_HOST && is_new(&n, i) &&
			    n.found[i].t != BL_DET_NO_C)
				assert_true(n.found[i].t <= x.commit[i]);
		run_steps(&x, &n, &r, 600);
		for (i = 0; i < n.g.nodes; i++) {
			uint64_t c = run_c(&x, &n, i);

			if (n.node[i].kind != BL_DET_HOST || n.found[i].why != BL_DET_CORRECT)
				continue;
			for (j = 0; j < n.g.nodes; j++) {
				if (n.node[j].kind != BL_DET_HOST || !is_new(&n, j) ||
				    !x.flows[j][i])
					continue;
				if (n.found[i].exposed != 2) {
					assert_true(c <= n.found[j].t);
					early += n.found[i].exposed == 1;
					kept++;
				} else {
					beyond += n.found[j].t == BL_DET_NO_C || c > n.found[j].t;
				}
			}
		}
	}
	print_message("receivers kept below T %u, of them %u with other flows not reported; beyond "
		      "it, and said so %u\n",
		      kept, early, beyond);
	assert_true(kept > 1000 && early > 50 && beyond > 50);
}

/* Whether the link is between switches. */
static unsigned int random_way(const struct net *n, struct rnd *r)
{
	unsigned int w = rnd_below(r, 2 * n->g.links);

	return n->node[n->link[w / 2].low].kind == BL_DET_SWITCH ? w : UINT32_MAX;
}

/* Whether way @w has passed what the outputs that it feeds were given. */
static bool has_passed(const struct run *x, const struct net *n, unsigned int w)
{
	unsigned int out;

	for (out = 0; out < 2 * n->g.links; out++)
		if (way_from(n, out) == way_to(n, w) && feeds(w, out) && x->sent[out] > x->r[w])
			return false;
	return true;
}

/*
 * For the nodes that failed: T is not beyond what they had committed, and no receiver for which T
 * is said to hold gets beyond it.
 */
static void check_no_pass(struct run *x, const struct net *n, struct rnd *r)
{
	unsigned int i, j;

	for (j = 0; j < n->g.nodes; j++)
		if (n->node[j].kind == BL_DET_HOST && is_new(n, j) && n->found[j].t != BL_DET_NO_C)
			assert_true(n->found[j].t <= x->commit[j]);
	memset(x->stuck, 0, sizeof(x->stuck));
	run_steps(x, n, r, 600);
	for (i = 0; i < n->g.nodes; i++) {
		uint64_t c = run_c(x, n, i);

		if (n->node[i].kind != BL_DET_HOST || n->found[i].why != BL_DET_CORRECT ||
		    n->found[i].exposed == 2)
			continue;
		for (j = 0; j < n->g.nodes; j++)
			if (n->node[j].kind == BL_DET_HOST && is_new(n, j) && x->flows[j][i])
				assert_true(c <= n->found[j].t);
	}
}

/*
 * Links fail, are resumed, come back behind what was given, and others fail and are resumed. Where
 * no node fails because of that, no receiver's C passes what a correct sender has committed.
 */
static void bl_determine__resume_leaves_a_flow(void **state)
{
	static struct net n;
	static struct run x;
	struct rnd r = rnd_seeded("resume");
	unsigned int k, i, j, w, behind, resumed = 0, failed = 0;

	(void)state;
	for (k = 0; k < 30000; k++) {
		net_random(&n, &r);
		run_begin(&x, &n);
		for (i = 0; i < n.g.nodes; i++)
			n.node[i].processes = 1;
		if (!n.g.links || bl_determine(&n.g, n.found, n.todo, &n.sum) || n.sum.failed)
			continue;
		run_steps(&x, &n, &r, 100);
		for (j = 1 + rnd_below(&r, 3); j--;) {
			w = random_way(&n, &r);
			if (w == UINT32_MAX)
				continue;
			n.link[w / 2].way[w % 2].state = BL_DET_REMOVED;
			if (bl_determine(&n.g, n.found, n.todo, &n.sum) || n.sum.failed)
				n.link[w / 2].way[w % 2].state = BL_DET_LIVE;
		}
		run_steps(&x, &n, &r, 300);
		x.stuck[rnd_below(&r, n.g.nodes)] = true;
		run_steps(&x, &n, &r, 300);
		for (w = 0; w < 2 * n.g.links; w++)
			if (n.link[w / 2].way[w % 2].state == BL_DET_REMOVED && rnd_below(&r, 4))
				n.link[w / 2].way[w % 2].state = BL_DET_BEHIND;
		run_steps(&x, &n, &r, rnd_below(&r, 200));
		for (j = 1 + rnd_below(&r, 2); j--;) {
			w = random_way(&n, &r);
			if (w != UINT32_MAX && n.link[w / 2].way[w % 2].state == BL_DET_LIVE)
				n.link[w / 2].way[w % 2] =
					(struct bl_det_way){ x.r[w], 0, BL_DET_SILENT };
		}
		run_steps(&x, &n, &r, rnd_below(&r, 30));
		if (!rnd_below(&r, 3))
			n.node[rnd_below(&r, n.g.nodes)].state = BL_DET_DOWN;
		for (w = behind = 0; w < 2 * n.g.links; w++) {
			struct bl_det_way *way = &n.link[w / 2].way[w % 2];

			if (way->state != BL_DET_BEHIND)
				continue;
			if (has_passed(&x, &n, w)) {
				way->state = BL_DET_LIVE;
				continue;
			}
			behind++;
			if (rnd_below(&r, 2))
				*way = (struct bl_det_way){ x.r[w], 0, BL_DET_SILENT, 1 };
		}
		assert_int_equal(bl_determine(&n.g, n.found, n.todo, &n.sum), 0);
		if (n.sum.failed) {
			failed += behind > 0;
			check_no_pass(&x, &n, &r);
			continue;
		}
		for (w = 0; w < 2 * n.g.links; w++)
			if (n.todo[w] & BL_DET_RESUME) {
				n.link[w / 2].way[w % 2].state = BL_DET_REMOVED;
				resumed += behind > 0;
			}
		run_steps(&x, &n, &r, 600);
		for (i = 0; i < n.g.nodes; i++) {
			uint64_t c = run_c(&x, &n, i);

			for (j = 0; j < n.g.nodes; j++)
				if (n.node[i].kind == BL_DET_HOST && x.flows[j][i])
					assert_true(c <= x.commit[j]);
		}
	}
	print_message("with a way that is behind: resumed %u ways, and failed somebody %u times\n",
		      resumed, failed);
	assert_true(resumed > 50 && failed > 50);
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_determine__no_correct_host_passes_T),
		cmocka_unit_test(bl_determine__resume_leaves_a_flow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
