// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lies about barriers, from a host that runs none of our programs: nobody else is held for longer
 * than dead_after and lag_max together, and nothing that is refused has any effect.
 *
 * Covered elsewhere: the arithmetic of lagging and of joining again, in tests/unit/core/order;
 * verdicts and counters of single frames, in tests/prog/switch.
 */
#include "tests/net/attacks/attack_rack.h"

#define MS 1000000LL

/* A beacon every @arg us, all with the barrier with which he joined. */
static void still(struct atk *a)
{
	uint64_t b = atk_now(a);

	while (atk_pace(a, (uint32_t)a->arg)) {
		if (atk_begins(a))
			b = atk_now(a);
		atk_beacon(a, b, b);
	}
}

RACK_TEST(barrier__stands_still)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	beside("1000 beacons a second with a constant barrier",
	       &(struct atk_case){
		       .attack = still, .arg = 1000, .reason = "lagging", .held_ms = ATK_HELD_MS });
	rack_judge();
}

/* As few beacons as keep an input alive. */
RACK_TEST(barrier__stands_still_quietly)
{
	rack_of(&(struct atk_rack){ 0 });
	beside("3.5 beacons a second with a constant barrier",
	       &(struct atk_case){ .attack = still,
				   .arg = ATK_DEAD_AFTER_US * 7 / 10,
				   .reason = "lagging",
				   .held_ms = ATK_HELD_MS });
	rack_judge();
}

/* Two switches away from those who would wait. */
RACK_TEST(barrier__stands_still_leaf_spine)
{
	rack_of(&(struct atk_rack){ .leaf_spine = true });
	beside("1000 beacons a second with a constant barrier, behind another leaf",
	       &(struct atk_case){
		       .attack = still, .arg = 1000, .reason = "lagging", .held_ms = ATK_HELD_MS });
	rack_judge();
}

/* One beacon on each of eight lanes; then only the last lane, whose barrier stands. */
static void eight_lanes(struct atk *a)
{
	uint64_t b = atk_now(a);
	unsigned int l;

	for (l = 0; l < BL_LANES_MAX; l++) {
		a->flags = BL_F_LANES(BL_LANES_MAX) | l;
		atk_beacon(a, b, b);
	}
	while (atk_pace(a, 50000))
		atk_beacon(a, b, b);
}

/* All lanes one after the other, each with another barrier. */
static void lanes_in_turn(struct atk *a)
{
	unsigned int l;

	while (atk_pace(a, 1000)) {
		l = (unsigned int)atk_sh->frames % BL_LANES_MAX;
		a->flags = BL_F_LANES(BL_LANES_MAX) | l;
		atk_beacon(a, atk_now(a) - l * 100 * MS, atk_now(a) - l * 100 * MS);
	}
}

RACK_TEST(lanes__too_many)
{
	rack_of(&(struct atk_rack){ 0 });
	beside("a host that says it has eight lanes, one of which stands still",
	       &(struct atk_case){ .attack = eight_lanes, .reason = "lanes_refused" });
	beside("eight lanes in turn",
	       &(struct atk_case){ .attack = lanes_in_turn, .reason = "lanes_refused" });
	rack_judge();
}

/* A clock that is right when he joins and runs at half the speed from then on. */
static void half_speed(struct atk *a)
{
	uint64_t b = atk_now(a);

	while (atk_pace(a, 1000)) {
		if (atk_begins(a))
			b = atk_now(a);
		atk_beacon(a, b + (atk_now(a) - b) / 2, b + (atk_now(a) - b) / 2);
	}
}

RACK_TEST(barrier__clock_at_half_speed)
{
	rack_of(&(struct atk_rack){ 0 });
	beside("a clock at half the speed", &(struct atk_case){ .attack = half_speed,
								.reason = "lagging",
								.held_ms = ATK_HELD_MS });
	rack_judge();
}

/* @arg ms behind, from the first beacon on. */
static void behind(struct atk *a)
{
	while (atk_pace(a, 1000))
		atk_beacon(a, atk_now(a) - a->arg * MS, atk_now(a) - a->arg * MS);
}

/*
 * Fresh until he is in, standing until he is put out, and fresh again. That is all that he can do,
 * since he sees what the switch makes of him. note[0]: how often he joined again after he had been
 * put out because he lagged. note[2k - 1], note[2k]: of the k-th time, how long he had stood, in
 * watch time, and how long he had to be fresh, ns.
 */
static void again_and_again(struct atk *a)
{
	uint64_t fresh_at = t_mono(), stood_at = 0, b = atk_now(a), again = 0;
	uint32_t lagged = 0;
	bool stands = false;

	while (atk_pace(a, 1000)) {
		const struct atk_input input = atk_input(a);

		if (input.in && !stands && input.lagged > lagged && ++again < 4) {
			TR_STORE(atk_sh->note[2 * again - 1], input.out_ns - stood_at);
			TR_STORE(atk_sh->note[2 * again], t_mono() - fresh_at);
			TR_STORE(atk_sh->note[0], again);
		}
		if (input.in && !stands) {
			lagged = input.lagged;
			stood_at = input.watch_ns;
		}
		if (!input.in && stands)
			fresh_at = t_mono();
		stands = input.in;
		if (!stands)
			b = atk_now(a);
		atk_beacon(a, b, b);
	}
}

/*
 * Each time that he is put out because he lagged he has to be fresh for twice as long as the time
 * before. The switch counts both in watch time, which never runs faster than the clock, so a
 * machine that stands still changes neither of the two promises.
 */
RACK_TEST(barrier__holds_again_and_again)
{
	uint64_t k, stood, fresh;

	rack_of(&(struct atk_rack){ 0 });
	beside("standing, fresh for a moment, and standing again",
	       &(struct atk_case){ .attack = again_and_again,
				   .reason = "lagging",
				   .least = 3,
				   .held_ms = ATK_HELD_MS });
	CHECK(atk_sh->note[0] >= 2, "he joined again %" PRIu64 " times only", atk_sh->note[0]);
	for (k = 1; k <= 2; k++) {
		stood = atk_sh->note[2 * k - 1] / 1000;
		fresh = atk_sh->note[2 * k] / 1000;
		fprintf(stderr,
			"  stood for %" PRIu64 " ms of watch time, then fresh for %" PRIu64 " ms\n",
			stood / 1000, fresh / 1000);
		CHECK(stood <= ATK_HELD_MS * 1000, "he stood for %" PRIu64 " us", stood);
		CHECK(fresh >= (uint64_t)ATK_LAG_MAX_US << (k - 1),
		      "%" PRIu64 " us after exclusion %" PRIu64 " he was in again", fresh, k);
	}
	rack_judge();
}

/* B is good, but C stands, as if an acknowledgement were missing for ever. */
static void commit_still(struct atk *a)
{
	uint64_t c = atk_now(a);

	while (atk_pace(a, 1000)) {
		if (atk_begins(a))
			c = atk_now(a);
		atk_beacon(a, atk_now(a), c);
	}
}

RACK_TEST(commit__stands_still)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	beside("a good B with a constant C", &(struct atk_case){ .attack = commit_still,
								 .reason = "lagging",
								 .held_ms = ATK_COMMIT_HELD_MS });
	rack_judge();
}

/*
 * Every distance ahead, from 1 ms to half of all times, and the edges of the field. One of 1 ms
 * that is late on its way may be good when it arrives, and then counts.
 */
static void ahead(struct atk *a)
{
	unsigned int i = 0;

	while (atk_pace(a, 500)) {
		uint64_t b = atk_now(a) + (1ULL << (20 + i % 28));

		if (i % 30 == 28)
			b = BL_TS_MASK;
		if (i % 30 == 29)
			b = 0;
		atk_beacon(a, b, i & 1 ? b : atk_now(a));
		i++;
	}
}

RACK_TEST(barrier__far_away)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	beside("barriers from the future", &(struct atk_case){ .attack = ahead,
							       .reason = "barrier_ahead",
							       .least = 100,
							       .held_ms = ATK_HELD_MS });
	beside("twice lag_max behind, from the begin on",
	       &(struct atk_case){ .attack = behind, .arg = 2 * ATK_LAG_MAX_US / 1000 });
	beside("39 hours behind", &(struct atk_case){ .attack = behind, .arg = 1ULL << 27 });
	rack_judge();
}

/* Ahead of the clock by a share of the elapsed time: first within the bound, then beyond it. */
static void runs_away(struct atk *a)
{
	uint64_t start = atk_now(a);

	while (atk_pace(a, 1000)) {
		uint64_t b = atk_now(a);

		b += (b - start) / 1000;
		atk_beacon(a, b, b);
	}
}

RACK_TEST(barrier__clock_runs_away)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	beside("a clock that gains a millisecond per second",
	       &(struct atk_case){
		       .attack = runs_away, .reason = "barrier_ahead", .held_ms = ATK_HELD_MS });
	rack_judge();
}

/* Beacons in the name of every other node, by its id and by its MAC address. */
static void other_nodes(struct atk *a)
{
	uint8_t any[6] = { 2, 0xee, 0, 0, 0, 1 };
	uint64_t b = atk_now(a);
	unsigned int i = 0;

	while (atk_pace(a, 1000)) {
		unsigned int node = i % rack.lab.nnodes;

		/* an unknown station with a known id, and a known one with an unknown id */
		atk_beacon_of(a, i & 64 ? any : a->mac, (uint32_t)a->arg, b, b);
		if (node != rack_host(ATK_ME))
			atk_beacon_of(a, rack.lab.nodes[node].ports[0].mac, i, b, b);
		i++;
	}
}

/* What the switch has sent to him, back to it, at once and a second later. */
static void replay(struct atk *a)
{
	unsigned int i = 0;

	while (atk_pace(a, 1000)) {
		atk_capture(a);
		if (!a->nkept)
			continue;
		atk_send(a, &a->kept[(a->nkept - 1) % ATK_KEEP]);
		atk_send(a, &a->kept[i++ % (a->nkept < ATK_KEEP ? a->nkept : ATK_KEEP)]);
	}
}

/* Keeps a register alive, so that the switch has something to send to this port. */
static void replay_as_host(struct atk *a)
{
	while (atk_pace(a, 2000) && a->nkept < 64) {
		atk_beacon(a, atk_now(a), atk_now(a));
		atk_capture(a);
	}
	replay(a);
}

RACK_TEST(beacon__of_another_node)
{
	struct bl_sw_cfg cfg;
	uint32_t zero = 0;
	int fd;

	rack_of(&(struct atk_rack){ .reliable = true });
	fd = rack_map(0, BL_MAP_SW_CFG);
	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &cfg), "%s", strerror(errno));
	close(fd);
	beside("beacons of the switch itself, and from foreign stations",
	       &(struct atk_case){ .attack = other_nodes,
				   .arg = cfg.node_id,
				   .reason = "spoofed",
				   .least = 100 });
	beside("the switch's own beacons", &(struct atk_case){ .attack = replay_as_host,
							       .reason = "spoofed looped "
									 "unswitched",
							       .least = 100,
							       .held_ms = ATK_HELD_MS });
	CHECK(atk_sh->seen, "nothing was captured");
	rack_judge();
}

/* Good beacons of his own station, in which he says that he is node @arg. */
static void node_says(struct atk *a)
{
	while (atk_pace(a, 1000))
		atk_beacon_of(a, a->mac, (uint32_t)a->arg, atk_now(a), atk_now(a));
}

/*
 * Who says that he is no node is behind no link that the controller knows. His falling silent must
 * not hold the reliable stream for ever.
 */
RACK_TEST(beacon__of_no_node)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	beside("good beacons of node 0", &(struct atk_case){ .attack = node_says,
							     .reason = "spoofed",
							     .held_ms = ATK_HELD_MS });
	rack_judge();
}

/* He says in each beacon that he is another node. */
static void many_nodes(struct atk *a)
{
	uint32_t i = 0;

	while (atk_pace(a, 1000))
		atk_beacon_of(a, a->mac, 1000 + ++i, atk_now(a), atk_now(a));
}

/*
 * The switch reports who is behind its ports. Reports of somebody who is another node each time
 * must not keep the controller from hearing what else the switch says.
 */
RACK_TEST(beacon__of_many_nodes)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	beside("beacons of 1000 nodes a second", &(struct atk_case){ .attack = many_nodes,
								     .reason = "spoofed",
								     .held_ms = ATK_HELD_MS });
	rack_judge();
}

static void flood(struct atk *a)
{
	while (atk_pace(a, 50))
		atk_beacon(a, atk_now(a), atk_now(a));
}

RACK_TEST(beacon__flood)
{
	rack_of(&(struct atk_rack){ 0 });
	beside("20 000 good beacons a second", &(struct atk_case){ .attack = flood,
								   .reason = "control_flood",
								   .least = 1000,
								   .held_ms = ATK_HELD_MS });
	rack_judge();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(barrier__stands_still),
		cmocka_unit_test(barrier__stands_still_quietly),
		cmocka_unit_test(barrier__stands_still_leaf_spine),
		cmocka_unit_test(lanes__too_many),
		cmocka_unit_test(barrier__clock_at_half_speed),
		cmocka_unit_test(barrier__holds_again_and_again),
		cmocka_unit_test(commit__stands_still),
		cmocka_unit_test(barrier__far_away),
		cmocka_unit_test(barrier__clock_runs_away),
		cmocka_unit_test(beacon__of_another_node),
		cmocka_unit_test(beacon__of_no_node),
		cmocka_unit_test(beacon__of_many_nodes),
		cmocka_unit_test(beacon__flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
