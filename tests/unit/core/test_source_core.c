// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The source guard's lists (core/source_core.h). */
#include <arpa/inet.h>

#include "tests/unit/unit.h"
#include "core/source_core.h"

/* An IPv4 address has the form of its IPv4-mapped address, and both forms are those of memory. */
static void bl_ip__forms(void **state)
{
	uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [14] = 2, [15] = 3 };
	uint32_t words[4], raw = inet_addr("10.1.2.3");
	struct bl_ip a = bl_ip4(raw), b;

	(void)state;
	memcpy(words, mapped, sizeof(words));
	b = bl_ip6(words);
	assert_memory_equal(&a, mapped, sizeof(a));
	assert_memory_equal(&b, mapped, sizeof(b));
	inet_pton(AF_INET6, "2001:db8:1:2:3:4:5:6", words);
	b = bl_ip6(words);
	assert_memory_equal(&b, words, sizeof(b));
}

static void bl_source_learn__until_full(void **state)
{
	struct bl_sources s = { .mode = BL_SOURCE_LEARN };
	uint32_t k;

	(void)state;
	/* Nothing is known at first, not even the address that is all zeros. */
	assert_false(bl_source_mac_known(&s, 0));
	assert_false(bl_source_ip_known(&s, 0, 0));
	for (k = 0; k < BL_SOURCE_MACS; k++) {
		assert_false(bl_source_mac_known(&s, 100 + k));
		assert_true(bl_source_learn_mac(&s, 100 + k));
		assert_true(bl_source_mac_known(&s, 100 + k));
	}
	assert_false(bl_source_learn_mac(&s, 999));
	for (k = 0; k < BL_SOURCE_IPS; k++) {
		struct bl_ip ip = bl_ip4(1000 + k);

		assert_true(bl_source_room(&s));
		assert_false(bl_source_ip_known(&s, ip.hi, ip.lo));
		assert_true(bl_source_learn_ip(&s, ip));
		assert_true(bl_source_ip_known(&s, ip.hi, ip.lo));
		/* both words count */
		ip.hi = 1;
		assert_false(bl_source_ip_known(&s, ip.hi, ip.lo));
	}
	assert_false(bl_source_room(&s));
	assert_false(bl_source_learn_ip(&s, bl_ip4(999)));
}

static void bl_source_learn__only_in_mode_learn(void **state)
{
	struct bl_sources s = { .mode = BL_SOURCE_LIST };

	(void)state;
	assert_false(bl_source_room(&s));
	assert_false(bl_source_learn_mac(&s, 1));
	assert_false(bl_source_learn_ip(&s, bl_ip4(1)));
	assert_int_equal(s.nmac + s.nip, 0);
}

static void bl_source_obey__empties_learnt_lists(void **state)
{
	struct bl_sources s = { .mode = BL_SOURCE_LEARN }, list = { .mode = BL_SOURCE_LIST };

	(void)state;
	bl_source_learn_mac(&s, 7);
	bl_source_learn_ip(&s, bl_ip4(8));
	bl_source_obey(&s);
	assert_true(bl_source_mac_known(&s, 7) &&
		    bl_source_ip_known(&s, bl_ip4(8).hi, bl_ip4(8).lo));
	s.forget = 3;
	bl_source_obey(&s);
	assert_int_equal(s.forgot, 3);
	assert_int_equal(s.nmac + s.nip, 0);
	assert_false(bl_source_mac_known(&s, 7) ||
		     bl_source_ip_known(&s, bl_ip4(8).hi, bl_ip4(8).lo));
	bl_source_learn_mac(&s, 9);
	bl_source_learn_ip(&s, bl_ip4(10));
	assert_true(bl_source_mac_known(&s, 9) &&
		    bl_source_ip_known(&s, bl_ip4(10).hi, bl_ip4(10).lo));
	/* A configured list is not emptied. */
	list.mac[0] = 7;
	list.nmac = 1;
	list.forget = 1;
	bl_source_obey(&list);
	assert_true(bl_source_mac_known(&list, 7));
	assert_int_equal(list.forgot, 1);
}

/* Another id has to be said for long; the first one of a port is tried at once, then seldom. */
static void bl_node_judge__table(void **state)
{
	static const struct {
		__u32 pinned, said, other, since, now, verdict, then_other, then_since;
	} t[] = {
		{ 0, 0, 0, 0, 5, BL_NODE_REFUSE, 0, 0 },
		{ 7, 0, 9, 1, 5 + BL_NODE_KEEP, BL_NODE_REFUSE, 9, 1 },
		{ 0, 8, 0, 0, 5, BL_NODE_CHANGE, 8, 5 },
		/* It was refused for another reason, so whatever is said next has to wait. */
		{ 0, 8, 8, 5, 6, BL_NODE_REFUSE, 8, 5 },
		{ 0, 9, 8, 5, 4 + BL_NODE_KEEP, BL_NODE_REFUSE, 8, 5 },
		{ 0, 9, 8, 5, 5 + BL_NODE_KEEP, BL_NODE_CHANGE, 9, 5 + BL_NODE_KEEP },
		{ 7, 8, 0, 0, 5 + BL_NODE_KEEP, BL_NODE_REFUSE, 8, 5 + BL_NODE_KEEP },
		{ 7, 8, 8, 5, 4 + BL_NODE_KEEP, BL_NODE_REFUSE, 8, 5 },
		{ 7, 8, 8, 5, 5 + BL_NODE_KEEP, BL_NODE_CHANGE, 8, 5 + BL_NODE_KEEP },
		{ 7, 9, 8, 5, 5 + BL_NODE_KEEP, BL_NODE_REFUSE, 9, 5 + BL_NODE_KEEP },
		/* across the wrap of time */
		{ 7, 8, 8, -1U, BL_NODE_KEEP - 2, BL_NODE_REFUSE, 8, -1U },
		{ 7, 8, 8, -1U, BL_NODE_KEEP - 1, BL_NODE_CHANGE, 8, BL_NODE_KEEP - 1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		__u32 other = t[i].other, since = t[i].since;

		assert_int_equal(bl_node_judge(t[i].pinned, t[i].said, &other, &since, t[i].now),
				 t[i].verdict);
		assert_int_equal(other, t[i].then_other);
		assert_int_equal(since, t[i].then_since);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_ip__forms),
		cmocka_unit_test(bl_source_learn__until_full),
		cmocka_unit_test(bl_source_learn__only_in_mode_learn),
		cmocka_unit_test(bl_source_obey__empties_learnt_lists),
		cmocka_unit_test(bl_node_judge__table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
