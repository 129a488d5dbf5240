// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is outstanding: BL_WAIT_CREDITED and bl_get_pending(), and the destinations that bl_send()
 * and bl_send_reliable() refuse.
 */
#include "tests/unit/lib/lib_fake.h"

static struct fake a, b;
static struct failures fs;

static int pair_up(void **state)
{
	(void)state;
	fake_make(&a, "127.0.0.1", FAKE_RING);
	fake_make(&b, "127.0.0.2", FAKE_RING);
	fs.n = 0;
	bl_on_send_fail(a.ep, on_fail, &fs);
	return 0;
}

static int pair_down(void **state)
{
	(void)state;
	fake_free(&a);
	fake_free(&b);
	return 0;
}

static void send_one(uint64_t cookie, unsigned int flags)
{
	const struct bl_msg m = msg_to(&b, "x", 1, cookie);

	assert_int_equal(bl_send(a.ep, &m, 1, flags), 0);
}

static void expect_pending(uint32_t frames, uint32_t messages, uint64_t cookie)
{
	struct bl_pending p[2];

	assert_int_equal(bl_get_pending(a.ep, NULL, 0), 1);
	assert_int_equal(bl_get_pending(a.ep, p, 2), 1);
	assert_memory_equal(&p[0].dst, &b.ep->self, sizeof(p[0].dst));
	assert_int_equal(p[0].frames, frames);
	assert_int_equal(p[0].messages, messages);
	assert_int_equal(p[0].cookie, cookie);
	assert_int_equal(bl_wait(a.ep, BL_WAIT_CREDITED, 0), 0);
}

static void expect_settled(void)
{
	assert_int_equal(bl_get_pending(a.ep, NULL, 0), 0);
	assert_int_equal(bl_wait(a.ep, BL_WAIT_CREDITED, 0), BL_WAIT_CREDITED);
}

/* Staged, sent and credited messages; a CREDIT for the first of two frames settles only that one.
 */
static void pending__best_effort(void **state)
{
	uint32_t first;

	(void)state;
	expect_settled();
	send_one(7, BL_MORE);
	send_one(8, BL_MORE);
	expect_pending(1, 2, 7);
	bl_flush(a.ep);
	expect_pending(1, 2, 7);
	first = fake_peer(&a, &b)->tx.next_psn;
	send_one(9, 0);
	expect_pending(2, 3, 7);
	fake_credit(&a, &b, first, 100);
	bl_process(a.ep);
	expect_pending(1, 1, 9);
	fake_credit(&a, &b, first + 1, 100);
	bl_process(a.ep);
	expect_settled();
}

/* A message that was reported as failed is not outstanding; a receiver that was given up is not. */
static void pending__reported(void **state)
{
	struct bl_peer *p;
	int k;

	(void)state;
	send_one(1, 0);
	send_one(2, 0);
	p = fake_peer(&a, &b);
	fake_nak(&a, &b, p->tx.next_psn - 2, 1, BL_NAK_NO_MEMORY, BL_NAK_WHOLE);
	bl_process(a.ep);
	assert_int_equal(fs.n, 1);
	expect_pending(2, 1, 2);
	for (k = 0; k < BL_PROBES_MAX + 2; k++) {
		p->tx.progress_ns = p->tx.patience.since_ns = 1;
		a.ep->timers_ns = 1;
		bl_process(a.ep);
	}
	assert_int_equal(fs.n, 2);
	expect_settled();
}

/* What an endpoint sends to itself is never outstanding. */
static void pending__self(void **state)
{
	const struct bl_msg m = msg_to(&a, "x", 1, 1);

	(void)state;
	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
	expect_settled();
}

/* Reliable messages that wait for the answer to OPEN. */
static void pending__reliable(void **state)
{
	const struct bl_msg m = msg_to(&b, "x", 1, 5);
	struct bl_pending p;

	(void)state;
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(bl_get_pending(a.ep, &p, 1), 1);
	assert_int_equal(p.messages, 1);
	assert_int_equal(p.cookie, 5);
	assert_int_equal(bl_wait(a.ep, BL_WAIT_CREDITED, 0), BL_WAIT_CREDITED);
}

/* A destination that can never answer is refused by both streams, and the whole scattering is. */
static void send__refuses_destinations(void **state)
{
	static const struct {
		const char *dst, *says;
	} cases[] = {
		{ "127.0.0.2:99", "message 1: port 99 is outside of the ports of endpoints, 61696 "
				  "to 61951" },
		{ "224.0.0.1:61700", "message 1: 224.0.0.1:61700 is a multicast or broadcast" },
		{ "0.0.0.0:61700", "message 1: 0.0.0.0:61700 is an address of nobody" },
		{ "[fd00::1]:61700", "message 1: [fd00::1]:61700 is of another address family" },
	};
	struct bl_msg vec[2] = { msg_to(&b, "x", 1, 1) };
	size_t i;

	(void)state;
	a.ep->port_base = 61696;
	a.ep->port_count = 256;
	vec[0].dst.port = 61696;
	vec[1] = vec[0];
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(bl_addr_parse(&vec[1].dst, cases[i].dst), 0);
		assert_int_equal(bl_send(a.ep, vec, 2, 0), -EINVAL);
		if (strncmp(bl_strerror(a.ep), cases[i].says, strlen(cases[i].says)))
			fail_msg("%s: %s", cases[i].dst, bl_strerror(a.ep));
		assert_int_equal(bl_send_reliable(a.ep, vec, 2, 0), -EINVAL);
		assert_int_equal(bl_get_pending(a.ep, NULL, 0), 0);
	}
}

#define PAIR(f) cmocka_unit_test_setup_teardown(f, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR(pending__best_effort), PAIR(pending__reported),          PAIR(pending__self),
		PAIR(pending__reliable),    PAIR(send__refuses_destinations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
