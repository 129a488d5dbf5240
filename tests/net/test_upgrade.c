// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Daemons come and go, the datapath stays: programs are swapped under traffic without the loss of a frame, and without a daemon all goes on until
 * the clock record is void; then nothing is sent rather than sent wrong.
 */
#include "traffic.h"

static void swap_all(unsigned int rounds)
{
	unsigned int i, k;

	for (k = 0; k < rounds; k++) {
		for (i = 0; i < rack.lab.nnodes; i++) {
			rack_close_node(i);
			rack_open_node(i);
			tr_pass(30);
		}
	}
}

static void under_traffic(unsigned int hosts, unsigned int rounds)
{
	unsigned int i;

	rack.lab.spec.hosts = hosts;
	rack_open();
	for (i = 0; i < hosts + 2; i++)
		tr_add(&(struct tr_cfg){ .host = i % hosts, .fn = tr_mix, .run_ms = 4000, .len = 500, .fan = 3, .items = 2, .gap_us = 1000, .ring_bytes = TR_RING_TIGHT(8) });
	tr_go();
	tr_pass(200);
	swap_all(rounds);
	/* who comes after the upgrade finds a daemon that knows who was there before */
	i = tr_add(&(struct tr_cfg){ .host = 0, .fn = tr_mix, .scatterings = 100, .len = 500, .fan = 3, .gap_us = 1000, .ring_bytes = TR_RING_TIGHT(8) });
	tr_wait_done(40000);
	tr_stop();
	tr_judge(~0ULL, ~0ULL);
	CHECK(TR_SUM(late_dropped) == 0 && TR_SUM(lost_frames) == 0, "late %" PRIu64 ", lost %" PRIu64, TR_SUM(late_dropped), TR_SUM(lost_frames));
}

RACK_TEST(swap__rack)
{
	under_traffic(4, 2);
}

RACK_TEST(swap__leaf_spine)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	under_traffic(4, 1);
}

/* An endpoint of before the upgrade dies: the new daemon must clear what it had in flight. */
RACK_TEST(swap__adopted_endpoint_dies_in_flight)
{
	uint64_t n, end;
	unsigned int i, victim;

	rack.lab.spec.hosts = 3;
	rack_open();
	for (i = 0; i < 2; i++)
		tr_add(&(struct tr_cfg){ .host = i, .fn = tr_mix, .until_enough = true, .len = 300, .to = 3, .gap_us = 500, .quiet_ms = 3000, .ring_bytes = TR_RING_TIGHT(8) });
	victim = tr_add(&(struct tr_cfg){ .host = 2, .fn = tr_rage, .to = 3, .ring_bytes = TR_RING_TIGHT(8) });
	tr_go();
	tr_pass(200);
	rack_close_node(rack_host(2));
	tr_pass(50);
	rack_open_node(rack_host(2));
	tr_pass(100);
	tr_kill(victim);
	tr_pass(50);
	n = TR_LOAD(tr_sh->node[0].received);
	for (end = t_mono() + 20000000000ULL; TR_LOAD(tr_sh->node[0].received) < n + 20; tr_pass(5))
		CHECK(t_mono() < end, "the others stand still after an adopted endpoint was killed");
	tr_enough();
	tr_wait_done(30000);
	tr_stop();
	tr_judge(3, 3);
}

static void quick_void(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	cfg->clock_void_after_ms = 1500;
}

/* user[0]: times -ETIME; user[1], user[2]: scatterings accepted before the first and after the last of them */
static void persist(struct tr *w)
{
	uint64_t end = t_mono() + w->cfg->run_ms * 1000000ULL;
	const uint32_t len = 100;

	while (t_mono() < end) {
		int rc = tr_send(w, w->cfg->to, 1, &len, 0);

		if (rc == -ETIME) {
			w->me->user[0]++;
			w->me->user[2] = 0;
			usleep(5000);
		} else if (!rc) {
			w->me->user[w->me->user[0] ? 2 : 1]++;
			usleep(200); /* the logs hold so many messages, however fast the machine is */
		} else if (rc != -EAGAIN) {
			tr_fail(w, "bl_send: %d %s", rc, bl_strerror(w->ep));
		}
		tr_take(w, 1);
	}
	tr_finish(w);
}

RACK_TEST(no_daemon__until_void_after)
{
	uint64_t closed, alive, last, n;
	unsigned int i;

	rack.lab.spec.hosts = 2;
	rack.tweak = quick_void;
	rack_open();
	for (i = 0; i < 2; i++)
		tr_add(&(struct tr_cfg){ .host = i, .fn = persist, .to = 3, .run_ms = 7000, .quiet_ms = 4000 });
	tr_go();
	tr_pass(500);
	for (i = 0; i < rack.lab.nnodes; i++)
		rack_close_node(i);
	/* nobody serves now, and no beacons are sent: data frames carry the barriers. Watch how long deliveries go on. */
	closed = alive = t_mono();
	last = TR_LOAD(tr_sh->node[0].received);
	while (t_mono() - closed < 3000000000ULL) {
		n = TR_LOAD(tr_sh->node[0].received);
		if (n > last) {
			last = n;
			alive = t_mono();
		}
		usleep(2000);
	}
	fprintf(stderr, "  deliveries went on for %.0f ms without a daemon\n", (double)(alive - closed) / 1e6);
	CHECK(alive - closed > 700000000ULL, "they stopped at once");
	CHECK(alive - closed < 2500000000ULL, "they went on with a void clock"); /* void after 1500 ms; the rest is for a watcher that had no CPU */
	for (i = 0; i < 2; i++)
		CHECK(TR_LOAD(tr_sh->node[i].user[0]) > 10, "bl_send() did not say -ETIME");
	for (i = 0; i < rack.lab.nnodes; i++)
		rack_open_node(i);
	tr_wait_done(30000);
	tr_stop();
	tr_judge(0, 0);
	for (i = 0; i < 2; i++)
		CHECK(tr_sh->node[i].user[1] > 10 && tr_sh->node[i].user[2] > 10, "endpoint %u sent %" PRIu64 " before and %" PRIu64 " after", i,
		      tr_sh->node[i].user[1], tr_sh->node[i].user[2]);
	CHECK(TR_LOAD(tr_sh->node[0].received) > last + 10, "nothing was delivered after the daemons came back");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(swap__rack),
		cmocka_unit_test(swap__leaf_spine),
		cmocka_unit_test(swap__adopted_endpoint_dies_in_flight),
		cmocka_unit_test(no_daemon__until_void_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
