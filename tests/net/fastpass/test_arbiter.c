// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One arbiter over real sockets: losses, restarts, one to four threads, the real allocators.
 * arbiter_world.h describes the world.
 */
#include "tests/net/fastpass/arbiter_world.h"

RACK_TEST(arbiter__slots_arrive)
{
	struct bl_arb_cfg c;
	struct bl_arb_total t;
	uint64_t sum = 0;
	uint32_t i;

	open_world(false);
	c = config(0);
	begin(0, &c, NULL);
	wants(200);
	hosts_until_quiet();
	for (i = 0; i < HOSTS; i++) {
		sum += w.host[i].received;
		CHECK(w.host[i].slot_ns == 1230, "session");
	}
	t = end(0);
	sessions_were(1);
	CHECK(sum > 1000 && t.granted >= sum, "%" PRIu64 " of %" PRIu64, sum, t.granted);
	CHECK(t.state == BL_FCP_PRIMARY && t.runs && !t.packets[BL_FCP_R_UNKNOWN], "totals");
	fprintf(stderr, "  %" PRIu64 " slots, %" PRIu64 " late, %" PRIu64 " packets sent\n",
		t.granted, t.late, t.sent);
}

static uint64_t slots_lost(void)
{
	uint64_t lost = 0;
	uint32_t i;

	for (i = 0; i < HOSTS; i++)
		lost += w.host[i].lost;
	return lost;
}

static bool some_lost(void)
{
	return slots_lost() > 0;
}

RACK_TEST(arbiter__one_packet_in_five_is_lost)
{
	struct bl_arb_cfg c;
	struct bl_arb_total t;
	uint32_t i;

	open_world(false);
	w.loss = 200;
	c = config(0);
	begin(0, &c, NULL);
	for (i = 0; i < 20; i++) {
		wants(20);
		hosts_for(10);
	}
	wants_until(some_lost, "slots are lost on the way");
	hosts_until_quiet();
	t = end(0);
	fprintf(stderr, "  %" PRIu64 " slots given, %" PRIu64 " lost on the way and given again\n",
		t.granted, slots_lost());
}

RACK_TEST(arbiter__begins_anew)
{
	struct bl_arb_cfg c;
	uint32_t k;

	open_world(false);
	c = config(0);
	for (k = 0; k < 5; k++) {
		begin(0, &c, NULL);
		hosts_meet();
		wants(50);
		hosts_for(20);
		wants(50); /* not answered any more */
		end(0);
		hosts_for(5);
	}
	begin(0, &c, NULL);
	hosts_meet();
	hosts_until_quiet();
	end(0);
	sessions_were(6);
}

static bool four_paths(void)
{
	return w.by_path[0] && w.by_path[1] && w.by_path[2] && w.by_path[3];
}

static bool second_thread(void)
{
	return four_paths() && w.by_path[4] && w.by_path[5];
}

static void threads(unsigned int n)
{
	struct bl_arb_total t;
	struct bl_arb_cfg c;
	uint32_t i;

	open_world(false);
	c = config(0);
	c.threads = n;
	begin(0, &c, &toy_path_ops);
	w.toy[0].refuse = 3; /* causes refunds, too */
	for (i = 0; i < 10; i++) {
		wants(30);
		hosts_for(10);
	}
	hosts_until_quiet();
	wants_until(n > 3 ? second_thread : four_paths, "slots on every path, from every path "
							"thread");
	t = end(0);
	CHECK(!w.by_path[15], "a grant without a path");
	CHECK(t.refunds && !t.overrun, "refunds");
}

RACK_TEST(threads__one_with_paths)
{
	threads(1);
}

RACK_TEST(threads__two)
{
	threads(2);
}

RACK_TEST(threads__three)
{
	threads(3);
}

RACK_TEST(threads__four)
{
	threads(4);
}

static bool three_paths(void)
{
	return w.by_path[0] && w.by_path[1] && w.by_path[2];
}

static void real(unsigned int nthreads, uint32_t paths)
{
	struct bl_arb_total t;
	struct bl_arb_cfg c;
	uint64_t with = 0;
	uint32_t i;

	open_world(false);
	c = config(0);
	c.threads = nthreads;
	begin_real(0, &c, paths);
	for (i = 0; i < 10; i++) {
		wants(30);
		hosts_for(10);
	}
	hosts_until_quiet();
	if (paths)
		wants_until(three_paths, "slots on every path");
	t = end(0);
	for (i = 0; i < 15; i++)
		with += w.by_path[i];
	/* Hosts of one rack need no path. */
	CHECK(paths ? w.by_path[15] > 0 : !with, "paths");
	for (i = paths; i < 15; i++)
		CHECK(!w.by_path[i], "path %u does not exist", i);
	CHECK(t.granted > 1000 && !t.refunds && !t.overrun,
	      "%" PRIu64 " slots, %" PRIu64 " refunds", t.granted, t.refunds);
}

RACK_TEST(real__one_thread)
{
	real(1, 0);
}

RACK_TEST(real__one_thread_with_paths)
{
	real(1, 3);
}

RACK_TEST(real__three_threads_with_paths)
{
	real(3, 3);
}

RACK_TEST(real__begins_anew_under_loss)
{
	struct bl_arb_cfg c;
	uint32_t k;

	open_world(false);
	w.loss = 100;
	c = config(0);
	for (k = 0; k < 3; k++) {
		begin_real(0, &c, 2);
		hosts_meet();
		wants(50);
		hosts_for(20);
		wants(50);
		end(0);
		hosts_for(5);
	}
	begin_real(0, &c, 2);
	hosts_until_quiet();
	end(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arbiter__slots_arrive),
		cmocka_unit_test(arbiter__one_packet_in_five_is_lost),
		cmocka_unit_test(arbiter__begins_anew),
		cmocka_unit_test(threads__one_with_paths),
		cmocka_unit_test(threads__two),
		cmocka_unit_test(threads__three),
		cmocka_unit_test(threads__four),
		cmocka_unit_test(real__one_thread),
		cmocka_unit_test(real__one_thread_with_paths),
		cmocka_unit_test(real__three_threads_with_paths),
		cmocka_unit_test(real__begins_anew_under_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
