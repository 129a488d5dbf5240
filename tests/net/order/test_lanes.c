// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The attack on the FIFO of a switch with two datapath CPUs (docs/design.md).
 *
 * CPU 0 polls port A: a message with timestamp T goes into its bulk queue, and the next frame of A
 * raises R_A above T. Before CPU 0 flushes, CPU 1 takes a frame of port B, computes a barrier from
 * R_A and sends it to the same output: the barrier overtakes the message that it vouches for. With
 * a lane per CPU this cannot happen. With one lane for both CPUs the test must see it happen, or it
 * would prove nothing.
 *
 * Two CPUs in one lane at once also lose updates of its minimum tree: a frame that arrives on the
 * wrong CPU has to be steered first (bpf/switch/steer.h). In the last cases NAPI threads are
 * therefore moved all the time.
 *
 * The load is: senders on ports of both CPUs, small messages as fast as possible to few receivers,
 * and short beacon intervals, so that all registers are near the clock and the minimum is that of
 * A.
 */
#include "tests/net/reliable/reliable.h"
#include "loader/load/napi.h"

#define SENDERS   4
#define RECEIVERS 2
#define HOSTS     (SENDERS + RECEIVERS)

#define BREAKS_S  80 /* longest attack on one lane for both CPUs */
#define MOVES     600

static bool one_lane;

/* A host that has no CPU for a while is not excluded: its messages would be late then. */
static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 10000000;
}

static void two_cpus(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	patient(cfg, n);
	cfg->beacon_us = 50;
	if (n->kind == LAB_HOST)
		return;
	cfg->cpus[0] = 0;
	cfg->cpus[1] = 1;
	cfg->ncpus = 2;
	cfg->one_lane = one_lane;
	cfg->thread_napi = true;
}

/*
 * Sends bursts: many messages, each with a timestamp of its own, to one receiver, and one to all
 * now and then.
 */
static void storm(struct tr *w)
{
	uint64_t end = t_mono() + w->cfg->run_ms * 1000000ULL;
	const uint32_t len = 64;
	uint64_t to = w->cfg->to;

	/*
	 * A fast machine must not fill the receivers' logs: every scattering may arrive at each of
	 * them.
	 */
	while (t_mono() < end && w->me->nsent < TR_GOT_MAX / SENDERS - 100) {
		unsigned int k, n = 1 + t_below(&w->seed, 40);

		if (!t_below(&w->seed, 2))
			to = 1ULL << (SENDERS + t_below(&w->seed, RECEIVERS));
		else
			to = w->cfg->to;
		for (k = 0; k < n; k++)
			if (tr_send(w, to, 1, &len, 0))
				break;
		tr_take(w, 0);
		if (k < n)
			bl_wait(w->ep, BL_WAIT_SEND | BL_WAIT_RECV, 1);
		if (!t_below(&w->seed, 8))
			usleep(t_below(&w->seed, 300));
	}
	tr_finish(w);
}

static uint64_t broken(void)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		n += rack_count(rack_host(i), BL_R_PROMISE_BROKEN);
	return n;
}

static void open_rack(void)
{
	rack.lab.spec.hosts = HOSTS;
	rack.tweak = two_cpus;
	rack_open();
}

static unsigned int moves;

/*
 * Moves the NAPI threads of the switch's ports between the CPUs, as the scheduler may do with
 * threads that are not pinned.
 */
static void move_threads(uint64_t *seed)
{
	static uint64_t next;
	struct bl_node *sw = rack.node[0];
	unsigned int ports = 0;
	struct bl_err err;
	int home;

	if (t_mono() < next)
		return;
	while (bl_node_iface(sw, ports))
		ports++;
	next = t_mono() + 3000000 + t_below(seed, 12000000);
	home = rack_away(0);
	CHECK(!bl_napi_thread(&bl_node_iface(sw, t_below(seed, ports))->iface,
			      (int)t_below(seed, 2), BL_RT_AUTO, &err),
	      "%s", err.text);
	rack_back(home);
	moves++;
}

static void storm_of(uint32_t run_ms)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = i < SENDERS ? storm : tr_sink,
					 .run_ms = run_ms,
					 .to = ((1ULL << RECEIVERS) - 1) << SENDERS,
					 .quiet_ms = 1500 });
	tr_go();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(0, 0);
}

RACK_TEST_CPUS(lane_per_cpu__holds, 2)
{
	unsigned int i;

	open_rack();
	for (i = 0; i < 3; i++) {
		storm_of(1500);
		CHECK(TR_SUM(late_dropped) == 0, "%" PRIu64 " late", TR_SUM(late_dropped));
		tr_reset();
	}
	for (i = 0; i < HOSTS; i++)
		CHECK(rack_count(rack_host(i), BL_R_PROMISE_BROKEN) == 0,
		      "h%u: the promise was broken", i + 1);
	CHECK(rack_count(0, BL_R_PROMISE_BROKEN) == 0, "at the switch");
	CHECK(rack_count(0, BL_R_WRONG_CPU) == 0, "frames on the wrong CPU: nothing was tested");
}

/*
 * The same traffic with both CPUs in one lane breaks the promise. It does not break the order,
 * because receivers drop late messages. On 2 virtual CPUs this happened 60 to 100 times a second,
 * the first time within 0.1 s.
 */
RACK_TEST_CPUS(one_lane__breaks, 2)
{
	uint64_t n = 0, late = 0, begun;
	unsigned int round;

	one_lane = true;
	open_rack();
	begun = t_mono();
	for (round = 0; (!n && t_mono() - begun < BREAKS_S * 1000000000ULL) || round < 2; round++) {
		storm_of(1000);
		n = broken();
		late += TR_SUM(late_dropped);
		tr_reset();
	}
	fprintf(stderr,
		"  %" PRIu64 " promises broken in %u rounds of 1 s (%.1f s in all); %" PRIu64
		" frames came late and were dropped\n",
		n, round, (double)(t_mono() - begun) / 1e9, late);
	CHECK(n > 0,
	      "two CPUs in one lane broke nothing in %u rounds: this test does not attack what it "
	      "should",
	      round);
}

/*
 * Half of the hosts send the reliable stream, whose commit barriers have trees of their own, and
 * the others best effort. Nothing may be delivered out of order, or by some receivers only.
 * Although the threads run on either CPU, nothing may even be late: the frames of a port stay in
 * order while they are steered.
 */
RACK_TEST_CPUS(threads_that_move__nothing_breaks, 2)
{
	uint64_t seed = 0x10ca1, steered;
	unsigned int i;

	one_lane = false;
	rack.lab.spec.hosts = HOSTS;
	rack.tweak = patient;
	rack_open();
	for (i = 0; i < HOSTS; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = tr_mix,
					 .until_enough = true,
					 .gap_us = i & 1 ? 500 : 2000,
					 .len = 300,
					 .fan = 3,
					 .reliable = i & 1,
					 .to = i & 1 ? 0x2a : 0x15,
					 .quiet_ms = 3000 });
	tr_go();
	while (!tr_all_done()) {
		rack_serve(1);
		tr_reap();
		move_threads(&seed);
		if (moves >= MOVES && rack_count(0, BL_R_WRONG_CPU))
			tr_enough();
	}
	tr_stop();
	tr_judge(0x2a, 0x2a);
	for (i = 1; i < HOSTS; i += 2)
		CHECK(!all_or_none(i, 0x2a), "h%u: nobody failed, and not all was delivered",
		      i + 1);
	steered = rack_count(0, BL_R_STEERED);
	fprintf(stderr,
		"  %" PRIu64 " frames went home, %" PRIu64 " of them from the wrong CPU; %" PRIu64
		" frames came late\n",
		steered, rack_count(0, BL_R_WRONG_CPU), TR_SUM(late_dropped));
	CHECK(rack_count(0, BL_R_WRONG_CPU) > 0, "no thread was on the wrong CPU: nothing was "
						 "tested");
	CHECK(rack_count_all(BL_R_PROMISE_BROKEN) == 0, "the promise was broken");
	CHECK(TR_SUM(late_dropped) == 0, "%" PRIu64 " late", TR_SUM(late_dropped));
}

static bool unpinned(void)
{
	return bl_node_iface(rack.node[0], 1)->home_cpu == -1;
}

static bool pinned(void)
{
	return bl_node_iface(rack.node[0], 1)->home_cpu == 0;
}

static uint64_t heard;

/* Returns the number of barline frames at the switch. */
static uint64_t frames(void)
{
	return rack_count(0, BL_R_BEACON) + rack_count(0, BL_R_RELAYED);
}

static bool heard_more(void)
{
	return frames() > heard + 1000;
}

/* A link that comes up has new NAPI threads; they are pinned as the first ones were. */
RACK_TEST_CPUS(link__its_threads_are_pinned_again, 2)
{
	uint64_t wrong;

	one_lane = false;
	rack.lab.spec.hosts = 2;
	rack.tweak = patient;
	rack_open();
	rack_settle();
	CHECK(pinned(), "the threads of h2's port are not pinned");
	rack_link(0, "h2", false);
	CHECK(tr_until(unpinned, 60000), "nobody heard that the link went down");
	rack_link(0, "h2", true);
	CHECK(tr_until(pinned, 60000), "the new threads are not pinned");
	wrong = rack_count(0, BL_R_WRONG_CPU);
	heard = frames();
	CHECK(tr_until(heard_more, 60000), "no frame came: nothing was tested");
	CHECK(rack_count(0, BL_R_WRONG_CPU) == wrong, "%" PRIu64 " frames on the wrong CPU",
	      rack_count(0, BL_R_WRONG_CPU) - wrong);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lane_per_cpu__holds),
		cmocka_unit_test(one_lane__breaks),
		cmocka_unit_test(threads_that_move__nothing_breaks),
		cmocka_unit_test(link__its_threads_are_pinned_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
