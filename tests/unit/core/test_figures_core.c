// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* core/figures_core.h: histograms, rings of entries, and what is known of a message. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "core/figures_core.h"

static struct bl_figures f;

static int fresh(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	return 0;
}

static void fig_add__bins(void **state)
{
	static const struct {
		uint64_t ns;
		unsigned int bin;
	} rows[] = { { 0, 0 },           { 2047, 0 },
		     { 2048, 1 },        { 4095, 1 },
		     { 4096, 2 },        { (1ULL << 29) - 1, 18 },
		     { 1ULL << 29, 19 }, { UINT64_MAX >> 4, 19 } };
	uint64_t sum = 0;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t before = f.hist[2].n[rows[i].bin];

		bl_fig_add(&f.hist[2], rows[i].ns, 3);
		sum += 3 * rows[i].ns;
		assert_int_equal(f.hist[2].n[rows[i].bin], before + 3);
		assert_int_equal(f.hist[2].sum_ns, sum);
	}
	assert_int_equal(f.hist[1].sum_ns + f.hist[3].sum_ns, 0);
}

static void put(uint64_t ts, uint8_t reliable)
{
	struct bl_fig_wait e = { .ts = ts, .window_ns = ts + 1, .port = 7, .reliable = reliable };

	bl_fig_put(f.wait, &f.nwaits, &e, sizeof(e));
}

static void find_wait__of_its_stream(void **state)
{
	struct bl_fig_wait e;

	(void)state;
	f.began = 1000;
	put(5000, 0);
	put(5000, 1);
	put(6000, 0);
	assert_int_equal(bl_fig_find_wait(&f, 5000, 1, &e), BL_FIG_FOUND);
	assert_true(e.ts == 5000 && e.reliable && e.window_ns == 5001 && e.port == 7);
	assert_int_equal(bl_fig_find_wait(&f, 5000, 0, &e), BL_FIG_FOUND);
	assert_int_equal(e.reliable, 0);
	assert_int_equal(bl_fig_find_wait(&f, 6000, 1, &e), BL_FIG_BRIEF);
	/* frames have 48 bits of it */
	assert_int_equal(bl_fig_find_wait(&f, 6000 | 0xabcdULL << 48, 0, &e), BL_FIG_FOUND);
}

static void find_wait__brief_or_unknown(void **state)
{
	struct bl_fig_wait e;
	uint64_t k;

	(void)state;
	assert_int_equal(bl_fig_find_wait(&f, 5000, 0, &e), BL_FIG_UNKNOWN); /* no endpoint */
	f.began = 1000;
	assert_int_equal(bl_fig_find_wait(&f, 999, 0, &e), BL_FIG_UNKNOWN);
	assert_int_equal(bl_fig_find_wait(&f, 1000, 0, &e), BL_FIG_UNKNOWN);
	assert_int_equal(bl_fig_find_wait(&f, 1001, 0, &e), BL_FIG_BRIEF);
	for (k = 0; k < BL_FIG_KEPT; k++)
		put(2000 + 10 * k, 0);
	assert_int_equal(bl_fig_find_wait(&f, 1500, 0, &e), BL_FIG_BRIEF);
	put(9000, 0); /* overwrites 2000 */
	assert_int_equal(bl_fig_find_wait(&f, 2000, 0, &e), BL_FIG_UNKNOWN);
	assert_int_equal(bl_fig_find_wait(&f, 2009, 0, &e), BL_FIG_UNKNOWN);
	assert_int_equal(bl_fig_find_wait(&f, 2010, 0, &e), BL_FIG_FOUND);
	assert_int_equal(bl_fig_find_wait(&f, 2011, 0, &e), BL_FIG_BRIEF);
	assert_int_equal(bl_fig_find_wait(&f, 9000, 0, &e), BL_FIG_FOUND);
}

static void get__empty_and_busy(void **state)
{
	struct bl_fig_end e = { .ts = 77, .total_ns = 5 }, got;

	(void)state;
	assert_false(bl_fig_get(f.end, 0, &got, sizeof(got)));
	bl_fig_put(f.end, &f.nends, &e, sizeof(e));
	assert_int_equal(f.nends, 1);
	assert_true(bl_fig_get(f.end, 0, &got, sizeof(got)));
	assert_memory_equal(&got, &e, sizeof(e));
	assert_true(bl_fig_get(f.end, BL_FIG_KEPT, &got, sizeof(got)));
	f.end[0].ts = 0; /* its writer has begun anew */
	assert_false(bl_fig_get(f.end, 0, &got, sizeof(got)));
}

/* A reader beside a writer gets whole entries. */
#define ROUNDS 200000
static atomic_bool over;

static void *write_many(void *arg)
{
	struct bl_fig_end e = { 0 };
	uint64_t k;

	(void)arg;
	for (k = 1; k <= ROUNDS; k++) {
		e.ts = e.total_ns = e.hold_ns = e.at_ns = k;
		bl_fig_put(f.end, &f.nends, &e, sizeof(e));
	}
	over = true;
	return NULL;
}

static void get__beside_a_writer(void **state)
{
	struct bl_fig_end e;
	unsigned int i = 0;
	pthread_t t;

	(void)state;
	over = false;
	assert_int_equal(pthread_create(&t, NULL, write_many, NULL), 0);
	while (!over)
		if (bl_fig_get(f.end, i++, &e, sizeof(e)))
			assert_true(e.total_ns == e.ts && e.hold_ns == e.ts && e.at_ns == e.ts);
	pthread_join(t, NULL);
	assert_int_equal(f.nends, ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(fig_add__bins, fresh),
		cmocka_unit_test_setup(find_wait__of_its_stream, fresh),
		cmocka_unit_test_setup(find_wait__brief_or_unknown, fresh),
		cmocka_unit_test_setup(get__empty_and_busy, fresh),
		cmocka_unit_test_setup(get__beside_a_writer, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
