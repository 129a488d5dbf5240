/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bench/traffic/traffic_span.h: only seconds in which all flows send count. */
#include "bench/traffic/traffic_span.h"
#include "tests/unit/unit.h"

static unsigned int count_seconds(const struct traffic_span *s, double from, double to)
{
	unsigned int i, n = 0;

	for (i = 0; i < s->life; i++)
		n += traffic_counts(s, i, i + 1, from, to);
	return n;
}

/* The header's own example, and its edges. */
static void traffic_common__example(void **state)
{
	static const struct traffic_span s[] = { { 0, 0.25, 6 }, { 2.5, 3, 6 } };
	double from, to;

	(void)state;
	traffic_common(s, 2, &from, &to);
	assert_true(from == 3 && to == 6);
	assert_false(traffic_counts(&s[0], 2, 3, from, to));
	assert_true(traffic_counts(&s[0], 3, 4, from, to));
	assert_true(traffic_counts(&s[0], 4, 5, from, to));
	assert_false(traffic_counts(&s[0], 5, 6, from, to));
	assert_false(traffic_counts(&s[1], 0, 1, from, to));
	assert_int_equal(count_seconds(&s[0], from, to), 2);
	assert_int_equal(count_seconds(&s[1], from, to), 2);
	traffic_common(s, 1, &from, &to);
	assert_true(from == 0.25 && to == 6);
}

/* 56 flows, of which the last begins when the first has ended, have no second in common. */
static void traffic_common__none(void **state)
{
	struct traffic_span s[56];
	double from, to;
	unsigned int i;

	(void)state;
	for (i = 0; i < 56; i++)
		s[i] = (struct traffic_span){ i * 0.5, i * 0.5 + 0.1, 6 };
	traffic_common(s, 56, &from, &to);
	assert_true(to < from);
	for (i = 0; i < 56; i++)
		assert_int_equal(count_seconds(&s[i], from, to), 0);
}

/* Whenever the flows really began, all of them send in every second that counts. */
static void traffic_common__whatever_was(void **state)
{
	unsigned int round, i, k, n, seed = 7;
	struct traffic_span s[8];
	double from, to, began[8];

	(void)state;
	for (round = 0; round < 2000; round++) {
		n = 1 + round % 8;
		for (i = 0; i < n; i++) {
			s[i].least = rand_r(&seed) % 2000 / 1e3;
			s[i].most = s[i].least + rand_r(&seed) % 1000 / 1e3;
			s[i].life = 4 + rand_r(&seed) % 4;
			began[i] =
				s[i].least + (s[i].most - s[i].least) * (rand_r(&seed) % 101) / 100;
		}
		traffic_common(s, n, &from, &to);
		for (i = 0; i < n; i++) {
			unsigned int j = rand_r(&seed) % 8;

			if (!traffic_counts(&s[i], j, j + 1, from, to))
				continue;
			for (k = 0; k < n; k++) {
				assert_true(began[i] + j >= began[k] - 1e-9);
				assert_true(began[i] + j + 1 <= began[k] + s[k].life + 1e-9);
			}
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(traffic_common__example),
		cmocka_unit_test(traffic_common__none),
		cmocka_unit_test(traffic_common__whatever_was),
	};

	return cmocka_run_group_tests_name("traffic_span", tests, NULL, NULL);
}
