/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arbiters of a Fastpass rack: threads of the test in their nodes' network namespaces.
 *
 * 	rack.lab.spec.arbiters = 1;
 * 	rack_open();
 * 	arbiter_begin(0);
 * 	wait_primary(0);
 * 	t = arbiter_end(0);	or it ends with the case
 */
#ifndef BARLINE_TESTS_RACK_ARBITER_H
#define BARLINE_TESTS_RACK_ARBITER_H

#include "tests/net/rack.h"

#include <pthread.h>

#include "arbiter/engine.h"
#include "arbiter/server.h"

/** rack_arb - arbiters of this rack, by rank. */
static struct {
	struct bl_arb *arb;
	struct bl_engine *engine;
	struct bl_arb_cfg cfg;
	pthread_t thread;
} rack_arb[LAB_ARBITERS_MAX];

T_FN unsigned int arbiter_node(unsigned int rank)
{
	unsigned int i;

	for (i = 0; rack.lab.nodes[i].kind != LAB_ARBITER || rack.lab.nodes[i].index != rank + 1;
	     i++)
		CHECK(i < rack.lab.nnodes, "no arbiter");
	return i;
}

T_FN void *arbiter_main(void *p)
{
	struct bl_err err;

	CHECK(!bl_arb_run(p, &err), "%s", err.text);
	return NULL;
}

T_FN void arbiter_begin(unsigned int rank)
{
	struct bl_arb_cfg *c = &rack_arb[rank].cfg;
	struct bl_engine *e;
	struct bl_err err;
	int home;

	memset(c, 0, sizeof(*c));
	CHECK(!bl_arb_cfg_of(c, &rack.lab.fp, rank, &err), "%s", err.text);
	/*
	 * No arbiter that only waits for a CPU is taken for dead. Without a group the value has no
	 * effect.
	 */
	c->interval_us = 5000;
	c->dead_us = rack.lab.spec.arbiters > 1 ? 3000000 : 1000000;
	snprintf(c->group_if, sizeof(c->group_if), "eth0");
	CHECK(!bl_engine_new(&e, &rack.lab.fp, &err), "%s", err.text);
	rack_arb[rank].engine = e;
	c->links = bl_engine_links;
	c->links_ctx = e;
	home = rack_away(arbiter_node(rank));
	CHECK(!bl_arb_new(&rack_arb[rank].arb, c, bl_engine_ops(e), bl_engine_alloc(e),
			  bl_engine_path_ops(e), bl_engine_paths(e), &err),
	      "%s", err.text);
	rack_back(home);
	CHECK(!pthread_create(&rack_arb[rank].thread, NULL, arbiter_main, rack_arb[rank].arb), "thr"
											       "ea"
											       "d");
}

T_FN struct bl_arb_total arbiter_end(unsigned int rank)
{
	struct bl_arb_total t;

	bl_arb_stop(rack_arb[rank].arb);
	pthread_join(rack_arb[rank].thread, NULL);
	bl_arb_read(rack_arb[rank].arb, &t, NULL, 0);
	bl_arb_free(rack_arb[rank].arb);
	bl_engine_free(rack_arb[rank].engine);
	bl_arb_cfg_free(&rack_arb[rank].cfg);
	rack_arb[rank].arb = NULL;
	return t;
}

T_FN void wait_primary(unsigned int rank)
{
	struct bl_arb *arb = rack_arb[rank].arb;
	uint64_t start = t_mono();
	struct bl_arb_total t;

	for (bl_arb_read(arb, &t, NULL, 0); t.state != BL_FCP_PRIMARY;
	     bl_arb_read(arb, &t, NULL, 0)) {
		CHECK(t_mono() - start < 60000000000ULL, "arbiter %u does not rule after a minute",
		      rank);
		rack_serve(5);
	}
}

#endif
