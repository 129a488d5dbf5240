// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Messages that are followed through a small rack: where they waited, and for whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cli/capture/follow.h"

#define TS 1000 /* of the message */

/* Nodes 1 to 3 are hosts; node 0 is the switch, whose port N leads to host N. */
static struct follow *f;
static struct follow_message last;
static unsigned int ended;

static void on_done(const struct follow_message *m, void *ctx)
{
	assert_ptr_equal(ctx, &last);
	last = *m;
	ended++;
}

static int set_up(void **state)
{
	f = follow_new();
	ended = 0;
	memset(&last, 0, sizeof(last));
	return f ? 0 : -1;
}

static int tear_down(void **state)
{
	follow_free(f);
	return 0;
}

static void feed(const struct follow_frame *k)
{
	assert_int_equal(follow_frame(f, k, on_done, &last), 0);
}

/* A beacon comes from host @port to the switch. */
static void beacon_in(uint64_t at, uint32_t port, uint64_t b)
{
	feed(&(struct follow_frame){
		.at_ns = at, .port = port, .in_switch = true, .b_before = b, .c_before = b });
}

/* A beacon of the switch comes to host @node, whose barrier is @b then. */
static void beacon_out(uint64_t at, uint32_t node, uint64_t b)
{
	feed(&(struct follow_frame){ .at_ns = at, .node = node, .b_after = b, .c_after = b });
}

/* The message is seen at a node; @port: of the switch. */
static void seen(uint64_t at, uint32_t node, uint32_t port, bool out, uint64_t b)
{
	struct follow_frame k = { .at_ns = at,
				  .node = node,
				  .port = port,
				  .in_switch = !node,
				  .out = out,
				  .message = true,
				  .took = true,
				  .ts = TS,
				  .psn = 7,
				  .sport = 61696,
				  .dport = 61697 };

	k.b_before = out ? 0 : b;
	k.c_before = k.b_before;
	if (node && !out) {
		k.b_after = b;
		k.c_after = b;
	}
	feed(&k);
}

static void warm_up(void)
{
	uint32_t i;

	for (i = 1; i <= 3; i++)
		beacon_in(i, i, 900);
}

static void send(void)
{
	seen(10, 1, 0, true, 0);
	seen(20, 0, 1, false, TS + 1);
	seen(20, 0, 2, true, 0);
	seen(30, 2, 0, false, 900);
}

static void follow_frame__held_by_another(void **state)
{
	warm_up();
	send();
	beacon_in(25, 2, TS + 5);
	beacon_out(40, 2, TS); /* equal is not above */
	assert_int_equal(ended, 0);
	beacon_in(900, 3, TS + 2);
	beacon_out(910, 2, TS + 1);
	assert_int_equal(ended, 1);
	assert_int_equal(last.sent_ns, 10);
	assert_int_equal(last.first_ns, 20);
	assert_int_equal(last.last_ns, 20);
	assert_int_equal(last.stored_ns, 30);
	assert_int_equal(last.done_ns, 910);
	assert_int_equal(last.sender, 1);
	assert_int_equal(last.receiver, 2);
	assert_true(last.held && !last.excluded);
	assert_int_equal(last.held_port, 3);
	assert_int_equal(last.held_ns, 900);
	/* It ends once. */
	beacon_out(920, 2, TS + 100);
	assert_int_equal(ended, 1);
}

static void follow_frame__held_by_its_sender(void **state)
{
	warm_up();
	beacon_in(5, 2, TS + 5);
	beacon_in(6, 3, TS + 5);
	send();
	beacon_out(40, 2, TS + 1);
	assert_int_equal(ended, 1);
	assert_int_equal(last.held_port, 1);
	assert_int_equal(last.held_ns, 20);
}

static void follow_frame__excluded(void **state)
{
	warm_up();
	send();
	beacon_in(25, 2, TS + 5);
	beacon_out(5000, 2, TS + 4); /* without a word of host 3 */
	assert_int_equal(ended, 1);
	assert_true(last.held && last.excluded);
	assert_int_equal(last.held_port, 3);
	assert_int_equal(last.held_ns, 5000);
}

/* Another receiver's barrier, and frames on the wrong way, end nothing. */
static void follow_frame__other_node(void **state)
{
	warm_up();
	send();
	beacon_in(25, 2, TS + 5);
	beacon_in(26, 3, TS + 5);
	beacon_out(40, 3, TS + 1);
	assert_int_equal(ended, 0);
	beacon_out(41, 2, TS + 1);
	assert_int_equal(ended, 1);
}

/* More messages than there is room for, and more rises: the old ones go. */
static void follow_frame__many(void **state)
{
	unsigned int i;

	for (i = 0; i < 3 * FOLLOW_MAX; i++) {
		beacon_in(i + 1, 1, 10 + i);
		feed(&(struct follow_frame){ .at_ns = i + 1,
					     .node = 2,
					     .message = true,
					     .took = true,
					     .ts = 1U << 20,
					     .psn = i,
					     .b_after = 1 });
	}
	beacon_out(i, 2, (1U << 20) + 1);
	assert_int_equal(ended, FOLLOW_MAX);
	assert_int_equal(last.psn, 3 * FOLLOW_MAX - 1);
	assert_false(last.held); /* no switch saw it */
	/* Nodes and ports that cannot be are ignored. */
	beacon_in(i, 100000, 5);
	beacon_out(i, 100000, 5);
}

/* 48 bits wrap. */
static void follow_frame__wraps(void **state)
{
	uint64_t top = (1ULL << 48) - 10;
	struct follow_frame k = {
		.at_ns = 5, .node = 2, .message = true, .took = true, .ts = top, .b_after = top - 5
	};

	feed(&k);
	beacon_out(6, 2, top - 1);
	assert_int_equal(ended, 0);
	beacon_out(7, 2, 3);
	assert_int_equal(ended, 1);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(follow_frame__held_by_another),
		TEST(follow_frame__held_by_its_sender),
		TEST(follow_frame__excluded),
		TEST(follow_frame__other_node),
		TEST(follow_frame__many),
		TEST(follow_frame__wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
