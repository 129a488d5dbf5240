// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* core/policy_core.h: which policies of two neighbours are compatible; all pairs. */
#include "tests/unit/unit.h"

#include "core/policy_core.h"

#define N (BL_POLICY_NONE + 1)
#define P (BL_POLICY_PL2 + 1)
#define F (BL_POLICY_FASTPASS + 1)
#define T (BL_POLICY_TOP + 1)

static void bl_policy_apart__all_pairs(void **state)
{
	static const struct {
		__u32 a, b;
		int apart;
	} t[] = {
		{ 0, 0, 0 }, { 0, N, 0 }, { 0, P, 0 }, { 0, F, 0 }, { 0, T, 0 },
		{ N, N, 0 }, { N, P, 1 }, { N, F, 0 }, { N, T, 1 }, { P, P, 0 },
		{ P, F, 1 }, { P, T, 1 }, { F, F, 0 }, { F, T, 1 }, { T, T, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (bl_policy_apart(t[i].a, t[i].b) != t[i].apart ||
		    bl_policy_apart(t[i].b, t[i].a) != t[i].apart)
			fail_msg("%u and %u", t[i].a, t[i].b);
}

static void bl_policy_say__none_is_not_silence(void **state)
{
	(void)state;
	assert_int_equal(bl_policy_say(BL_POLICY_NONE), BL_POLICY_NONE + 1);
	assert_true(bl_policy_say(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_policy_apart__all_pairs),
		cmocka_unit_test(bl_policy_say__none_is_not_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
