// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Causality: an endpoint that delivers a question and its answer delivers the question first, also
 * when the path of the answer is shorter, and also through chains of answers to answers.
 */
#include "tests/net/traffic.h"

/*
 * Answers at once, from inside the delivery, to all endpoints: this is the earliest that a program
 * can send the answer.
 */
static void answer(struct tr *w, unsigned int sender, uint64_t seq, const void *data, uint32_t len)
{
	const uint32_t small = sizeof(struct tr_head);

	if (sender == w->id || !w->me->user[0] || t_below(&w->seed, 3))
		return;
	w->after = true;
	w->after_sender = (uint16_t)sender;
	w->after_seq = seq;
	if (!tr_send(w, tr_present(w), 1, &small, 0))
		w->me->user[0]--;
	w->after = false;
}

/* Returns whether all workers have sent their own questions (user[1]). */
static bool all_asked(void)
{
	uint32_t i;

	for (i = 0; i < TR_LOAD(tr_sh->count); i++)
		if (!TR_LOAD(tr_sh->node[i].user[1]))
			return false;
	return true;
}

static void talk(struct tr *w)
{
	uint32_t i;

	w->me->user[0] = w->cfg->arg; /* answers left, so that the run ends */
	for (i = 0; i < w->cfg->scatterings; i++) {
		tr_send_some(w);
		tr_take(w, (int)t_below(&w->seed, 3));
	}
	TR_STORE(w->me->user[1], 1);
	/* A worker that has no CPU for a while may still have questions to send. */
	while (w->me->user[0] && (!all_asked() || t_mono() - w->last_progress < 1000000000ULL))
		tr_take(w, 10);
	w->me->user[0] = 0;
	tr_finish(w);
}

/* No host is excluded, not even one that has no CPU for a while. */
static void nobody_dies(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 10000000;
}

static void run(unsigned int hosts, unsigned int endpoints)
{
	uint32_t answers = 0, q;
	unsigned int i;

	rack.lab.spec.hosts = hosts;
	rack.tweak = nobody_dies;
	rack_open();
	for (i = 0; i < endpoints; i++)
		tr_add(&(struct tr_cfg){ .host = i % hosts,
					 .fn = talk,
					 .on_msg = answer,
					 .scatterings = 60,
					 .arg = 150,
					 .len = 900,
					 .fan = endpoints,
					 .ring_bytes = TR_RING_TIGHT(endpoints) });
	tr_go();
	tr_wait_done(90000);
	tr_stop();
	tr_judge(~0ULL, ~0ULL);
	for (i = 0; i < endpoints; i++)
		for (q = 0; q < tr_sh->node[i].nsent; q++)
			answers += tr_sh->node[i].sent[q].after;
	fprintf(stderr, "  %u answers\n", answers);
	CHECK(answers > 100, "only %u answers were given", answers);
	CHECK(TR_SUM(late_dropped) == 0, "late");
}

RACK_TEST(rack__3_hosts)
{
	run(3, 3);
}

RACK_TEST(rack__2_endpoints_on_each_of_4_hosts)
{
	run(4, 8);
}

RACK_TEST(leaf_spine__6_hosts)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	run(6, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rack__3_hosts),
		cmocka_unit_test(rack__2_endpoints_on_each_of_4_hosts),
		cmocka_unit_test(leaf_spine__6_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
