// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of arbiter/path/path*.c: every colouring is counted again by the verifier, which has its
 * own tests in test_arb_verify.c. What must always hold: all packets are placed where no rack has
 * more than paths x cap of them and no path is dead; with dead paths, no packet is without a path
 * that could still have one.
 */
#include "tests/unit/unit.h"

#include "arbiter/path/path.h"
#include "arbiter/alloc/verify.h"

#define MOST 8192

static uint16_t src[MOST], dst[MOST];
static uint8_t path[MOST], core[MOST];

static struct bl_path *make(uint32_t racks, uint32_t paths, uint32_t cap, enum bl_path_how how)
{
	const char *why;
	struct bl_path *p = bl_path_new(racks, paths, cap, how, &why);

	assert_non_null(p);
	assert_null(why);
	return p;
}

/* Selects and verifies. Returns how many packets have no path. */
static size_t colour(struct bl_path *p, uint32_t racks, uint32_t paths, uint32_t cap, size_t n)
{
	size_t lost, said = bl_path_select(p, n, src, dst, path);
	const char *why =
		bl_verify_paths(racks, paths, cap, bl_path_table(p), src, dst, path, n, &lost);

	if (why)
		print_error("%u racks, %u paths, cap %u, %zu packets: %s\n", racks, paths, cap, n,
			    why);
	assert_null(why);
	assert_int_equal(lost, said);
	return lost;
}

/*
 * Draws a random multigraph with degrees up to @degree at both sides; @full: exactly that many
 * everywhere.
 */
static size_t draw(struct rnd *r, uint32_t racks, uint32_t degree, bool full)
{
	size_t n = (size_t)racks * degree, i, j, keep = 0;

	for (i = 0; i < n; i++)
		src[i] = dst[i] = (uint16_t)(i / degree);
	for (i = n; i > 1; i--) {
		uint16_t t;

		j = rnd_below(r, (uint32_t)i);
		t = dst[i - 1];
		dst[i - 1] = dst[j];
		dst[j] = t;
		j = rnd_below(r, (uint32_t)i);
		t = src[i - 1];
		src[i - 1] = src[j];
		src[j] = t;
	}
	for (i = 0; i < n; i++) {
		if (!full && !rnd_below(r, 4))
			continue;
		src[keep] = src[i];
		dst[keep++] = dst[i];
	}
	return keep;
}

static void bl_path_new__refused(void **state)
{
	static const struct {
		uint32_t racks, paths, cap;
		bool ok;
	} t[] = {
		{ 0, 1, 1, false },    { 1, 1, 1, true },  { 1024, 1, 1, true },
		{ 1025, 1, 1, false }, { 1, 0, 1, false }, { 1, 64, 1, true },
		{ 1, 65, 1, false },   { 1, 1, 0, false }, { 1, 1, 4095, true },
		{ 1, 1, 4096, false },
	};
	const char *why;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_path *p =
			bl_path_new(t[i].racks, t[i].paths, t[i].cap, BL_PATH_GREEDY, &why);

		assert_int_equal(!!p, t[i].ok);
		assert_int_equal(!why, t[i].ok);
		bl_path_free(p);
	}
	bl_path_free(NULL);
}

static void bl_path_usable__edges(void **state)
{
	struct bl_path *p = make(3, 4, 1, BL_PATH_GREEDY);

	(void)state;
	assert_null(bl_path_table(p));
	assert_int_equal(bl_path_usable(p, 3, 0, 1), -1);
	assert_int_equal(bl_path_usable(p, 0, 3, 1), -1);
	assert_null(bl_path_table(p));
	assert_int_equal(bl_path_usable(p, 2, 1, 5), 0);
	assert_int_equal(bl_path_table(p)[2 * 3 + 1], 5);
	assert_true(bl_path_table(p)[2 * 3 + 0] == ~0ULL);
	bl_path_free(p);
}

/* The example of path.h: without a chain the third packet finds no path. */
static void bl_path_select__example(void **state)
{
	struct bl_path *p = make(2, 2, 1, BL_PATH_GREEDY);

	(void)state;
	src[0] = 0, dst[0] = 0;
	src[1] = 0, dst[1] = 1;
	src[2] = 1, dst[2] = 0;
	assert_int_equal(colour(p, 2, 2, 1, 3), 0);
	assert_int_equal(path[0], 0);
	assert_int_equal(path[1], 1);
	assert_int_equal(path[2], 1);
	/*
	 * 0 to 1 has path 0, and 1 to 0 has path 0 as well; now 0 to 0 has path 1 on both sides. 1
	 * to 1 closes the square.
	 */
	src[0] = 0, dst[0] = 1;
	src[1] = 1, dst[1] = 0;
	src[2] = 0, dst[2] = 0;
	src[3] = 1, dst[3] = 1;
	assert_int_equal(colour(p, 2, 2, 1, 4), 0);
	bl_path_free(p);
}

/*
 * Every multigraph of 3 racks whose 9 pairs have 0, 1 or 2 packets each: 19683 graphs, 2 to 3 paths
 * of 1 or 2. All packets are placed if the degrees allow it; if not, at most the excess is left.
 */
static void bl_path_select__all_small_graphs(void **state)
{
	static const uint32_t caps[][2] = { { 2, 1 }, { 3, 1 }, { 2, 2 }, { 3, 2 } };
	uint32_t code, c, how, i, k;

	(void)state;
	for (how = 0; how < 2; how++)
		for (c = 0; c < ARRAY_SIZE(caps); c++) {
			struct bl_path *p = make(3, caps[c][0], caps[c][1], (enum bl_path_how)how);

			for (code = 0; code < 19683; code++) {
				uint32_t out[3] = { 0 }, in[3] = { 0 }, rest = code, over = 0,
					 over_in = 0;
				const uint32_t most = caps[c][0] * caps[c][1];
				size_t n = 0, lost;

				for (i = 0; i < 9; i++, rest /= 3)
					for (k = 0; k < rest % 3; k++) {
						src[n] = (uint16_t)(i / 3);
						dst[n++] = (uint16_t)(i % 3);
						out[i / 3]++;
						in[i % 3]++;
					}
				for (i = 0; i < 3; i++) {
					over += out[i] > most ? out[i] - most : 0;
					over_in += in[i] > most ? in[i] - most : 0;
				}
				lost = colour(p, 3, caps[c][0], caps[c][1], n);
				assert_true(lost <= over + over_in);
				assert_true(lost >= (over > over_in ? over : over_in));
			}
			bl_path_free(p);
		}
}

/*
 * Random graphs with degrees that are not powers of two and paths of every number; full graphs need
 * long chains.
 */
static void bl_path_select__random_graphs(void **state)
{
	static const struct {
		uint32_t racks, paths, cap;
	} t[] = {
		{ 1, 1, 1 },   { 1, 4, 8 },    { 2, 3, 5 },   { 5, 2, 7 },  { 7, 5, 3 },
		{ 8, 4, 8 },   { 16, 4, 8 },   { 16, 3, 11 }, { 13, 6, 5 }, { 9, 7, 3 },
		{ 32, 8, 4 },  { 32, 9, 1 },   { 20, 12, 3 }, { 6, 33, 1 }, { 10, 63, 1 },
		{ 10, 64, 1 }, { 100, 16, 2 }, { 128, 4, 8 },
	};
	struct rnd r = rnd_seeded("bl_path_select__random_graphs");
	uint32_t how, full, round;
	size_t i;

	(void)state;
	for (how = 0; how < 2; how++)
		for (i = 0; i < ARRAY_SIZE(t); i++) {
			struct bl_path *p =
				make(t[i].racks, t[i].paths, t[i].cap, (enum bl_path_how)how);
			uint64_t packets = 0;

			for (full = 0; full < 2; full++)
				for (round = 0; round < 12; round++) {
					size_t n =
						draw(&r, t[i].racks, t[i].paths * t[i].cap, full);

					packets += n;
					assert_int_equal(
						colour(p, t[i].racks, t[i].paths, t[i].cap, n), 0);
				}
			assert_int_equal(bl_path_stats(p)->slots, 24);
			assert_int_equal(bl_path_stats(p)->packets, packets);
			assert_int_equal(bl_path_stats(p)->unplaced, 0);
			bl_path_free(p);
		}
}

/*
 * More packets than fit: no more is left over than the excess of each rack, and no packet is left
 * that has a path with room at both ends.
 */
static void bl_path_select__too_many(void **state)
{
	struct rnd r = rnd_seeded("bl_path_select__too_many");
	uint32_t how, round, i;

	(void)state;
	for (how = 0; how < 2; how++)
		for (round = 0; round < 100; round++) {
			const uint32_t racks = 2 + rnd_below(&r, 12), paths = 1 + rnd_below(&r, 9),
				       cap = 1 + rnd_below(&r, 4);
			struct bl_path *p = make(racks, paths, cap, (enum bl_path_how)how);
			uint32_t out[16] = { 0 }, in[16] = { 0 }, over = 0;
			size_t n = draw(&r, racks, paths * cap + 1 + rnd_below(&r, 5), false), k;

			for (k = 0; k < n; k++) {
				out[src[k]]++;
				in[dst[k]]++;
			}
			for (i = 0; i < racks; i++)
				over += (out[i] > paths * cap ? out[i] - paths * cap : 0) +
					(in[i] > paths * cap ? in[i] - paths * cap : 0);
			assert_true(colour(p, racks, paths, cap, n) <= over);
			bl_path_free(p);
		}
}

/*
 * Counts what was chosen, as the verifier does, and asserts that no packet without a path could
 * have had one.
 */
static void no_idle_path(const struct bl_path *p, uint32_t racks, uint32_t paths, uint32_t cap,
			 size_t n)
{
	uint32_t *count = calloc(2 * (size_t)racks * paths, sizeof(*count)),
		 *in = count + racks * paths, k;
	size_t i;

	assert_non_null(count);
	for (i = 0; i < n; i++) {
		if (path[i] == BL_PATH_NONE)
			continue;
		count[src[i] * paths + path[i]]++;
		in[dst[i] * paths + path[i]]++;
	}
	for (i = 0; i < n; i++)
		for (k = 0; path[i] == BL_PATH_NONE && k < paths; k++)
			if (!bl_path_table(p) || bl_path_table(p)[src[i] * racks + dst[i]] >> k & 1)
				assert_true(count[src[i] * paths + k] >= cap ||
					    in[dst[i] * paths + k] >= cap);
	free(count);
}

static void bl_path_select__dead_paths(void **state)
{
	struct rnd r = rnd_seeded("bl_path_select__dead_paths");
	uint32_t how, round, a, b, dead;

	(void)state;
	for (how = 0; how < 2; how++)
		for (round = 0; round < 150; round++) {
			const uint32_t racks = 2 + rnd_below(&r, 14), paths = 2 + rnd_below(&r, 14),
				       cap = 1 + rnd_below(&r, 4);
			struct bl_path *p = make(racks, paths, cap, (enum bl_path_how)how);
			size_t n, lost;

			/* one path is dead everywhere: the others carry what fits them */
			dead = rnd_below(&r, paths);
			for (a = 0; a < racks; a++)
				for (b = 0; b < racks; b++)
					assert_int_equal(bl_path_usable(p, a, b, ~(1ULL << dead)),
							 0);
			n = draw(&r, racks, (paths - 1) * cap, round & 1);
			assert_int_equal(colour(p, racks, paths, cap, n), 0);
			/* dead paths at random; some pairs have none left */
			for (a = 0; a < racks; a++)
				for (b = 0; b < racks; b++)
					assert_int_equal(bl_path_usable(p, a, b,
									rnd64(&r) &
										(rnd_below(&r, 20)
											 ? ~0ULL
											 : 0)),
							 0);
			n = draw(&r, racks, paths * cap, false);
			lost = colour(p, racks, paths, cap, n);
			no_idle_path(p, racks, paths, cap, n);
			(void)lost;
			/* all paths work again: nothing is lost */
			for (a = 0; a < racks; a++)
				for (b = 0; b < racks; b++)
					assert_int_equal(bl_path_usable(p, a, b, ~0ULL), 0);
			n = draw(&r, racks, paths * cap, true);
			assert_int_equal(colour(p, racks, paths, cap, n), 0);
			bl_path_free(p);
		}
}

/*
 * An Euler split leaves floor or ceil of a half at every rack, and a quarter after two: nothing is
 * left to repair.
 */
static void bl_path_split__halves(void **state)
{
	struct rnd r = rnd_seeded("bl_path_split__halves");
	uint32_t paths, round, i, k;

	(void)state;
	for (paths = 2; paths <= 16; paths *= 2)
		for (round = 0; round < 60; round++) {
			const uint32_t racks = 1 + rnd_below(&r, 20),
				       degree = 1 + rnd_below(&r, 60);
			struct bl_path *p = make(racks, paths, 4095, BL_PATH_EULER);
			uint32_t out[20][17] = { { 0 } }, in[20][17] = { { 0 } };
			size_t n = draw(&r, racks, degree, round & 1), x;

			assert_int_equal(colour(p, racks, paths, 4095, n), 0);
			for (x = 0; x < n; x++) {
				out[src[x]][path[x]]++;
				out[src[x]][16]++;
				in[dst[x]][path[x]]++;
				in[dst[x]][16]++;
			}
			for (i = 0; i < racks; i++)
				for (k = 0; k < paths; k++) {
					assert_in_range(out[i][k], out[i][16] / paths,
							(out[i][16] + paths - 1) / paths);
					assert_in_range(in[i][k], in[i][16] / paths,
							(in[i][16] + paths - 1) / paths);
				}
			assert_int_equal(bl_path_stats(p)->repaired, 0);
			bl_path_free(p);
		}
}

/*
 * The greedy choice keeps the links of a rack about equal: it sends to the least loaded one, so
 * below half load no link has more than half of its cap.
 */
static void bl_path_select__spreads(void **state)
{
	struct bl_path *p = make(2, 4, 8, BL_PATH_GREEDY);
	uint32_t count[4] = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < 16; i++)
		src[i] = 0, dst[i] = 1;
	assert_int_equal(colour(p, 2, 4, 8, 16), 0);
	for (i = 0; i < 16; i++)
		count[path[i]]++;
	for (i = 0; i < 4; i++)
		assert_int_equal(count[i], 4);
	bl_path_free(p);
}

/* ---- three tiers ---- */

static void bl_tiers_new__refused(void **state)
{
	static const uint16_t pod_of[] = { 0, 0, 1, 1 }, beyond[] = { 0, 0, 1, 2 };
	static const struct {
		uint32_t racks, pods;
		const uint16_t *pod_of;
		uint32_t aggs, agg_cap, cores, core_cap;
		bool ok;
	} t[] = {
		{ 4, 2, pod_of, 2, 1, 2, 1, true },
		{ 0, 1, pod_of, 2, 1, 2, 1, false },
		{ 4, 5, pod_of, 2, 1, 2, 1, false },
		{ 4, 0, pod_of, 2, 1, 2, 1, false },
		{ 4, 2, beyond, 2, 1, 2, 1, false },
		{ 4, 2, pod_of, 0, 1, 2, 1, false },
		{ 4, 2, pod_of, 65, 1, 2, 1, false },
		{ 4, 2, pod_of, 64, 1, 2, 1, true },
		{ 4, 2, pod_of, 2, 3, 2, 3, true },
		{ 4, 2, pod_of, 2, 4, 2, 3, false },
		{ 4, 2, pod_of, 2, 1, 65, 1, false },
		{ 4, 2, pod_of, 2, 2, 3, 1, false }, /* one packet too many */
	};
	const char *why;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_tiers *p = bl_tiers_new(t[i].racks, t[i].pods, t[i].pod_of, t[i].aggs,
						  t[i].agg_cap, t[i].cores, t[i].core_cap,
						  BL_PATH_GREEDY, &why);

		assert_int_equal(!!p, t[i].ok);
		assert_int_equal(!why, t[i].ok);
		bl_tiers_free(p);
	}
	bl_tiers_free(NULL);
}

/*
 * Each aggregation number is a network of pods of its own; all packets that leave their pod have a
 * core switch, and all others have none.
 */
static void verify_tiers(struct bl_tiers *t, uint32_t pods, const uint16_t *pod_of, uint32_t aggs,
			 uint32_t cores, uint32_t core_cap, size_t n)
{
	static uint16_t s[MOST], d[MOST];
	static uint8_t c[MOST];
	size_t i, m, none;
	uint32_t a;

	for (a = 0; a < aggs; a++) {
		for (m = 0, i = 0; i < n; i++) {
			if (path[i] != a)
				continue;
			if (pod_of[src[i]] == pod_of[dst[i]]) {
				assert_int_equal(core[i], BL_PATH_NONE);
				continue;
			}
			assert_int_not_equal(core[i], BL_PATH_NONE);
			s[m] = pod_of[src[i]];
			d[m] = pod_of[dst[i]];
			c[m++] = core[i];
		}
		assert_null(bl_verify_paths(pods, cores, core_cap,
					    bl_path_table(bl_tiers_core(t, a)), s, d, c, m, &none));
	}
}

static void bl_tiers_select__random(void **state)
{
	struct rnd r = rnd_seeded("bl_tiers_select__random");
	uint32_t how, round, i;

	(void)state;
	for (how = 0; how < 2; how++)
		for (round = 0; round < 80; round++) {
			const uint32_t pods = 1 + rnd_below(&r, 5), per_pod = 1 + rnd_below(&r, 5),
				       racks = pods * per_pod;
			const uint32_t aggs = 1 + rnd_below(&r, 6), agg_cap = 1 + rnd_below(&r, 4),
				       cores = 1 + rnd_below(&r, 5);
			const uint32_t core_cap = (per_pod * agg_cap + cores - 1) / cores;
			uint16_t pod_of[25];
			const char *why;
			struct bl_tiers *t;
			size_t n, none, x, gone = 0;

			for (i = 0; i < racks; i++)
				pod_of[i] = (uint16_t)(i % pods);
			t = bl_tiers_new(racks, pods, pod_of, aggs, agg_cap, cores, core_cap,
					 (enum bl_path_how)how, &why);
			assert_non_null(t);
			assert_null(bl_tiers_core(t, aggs));
			n = draw(&r, racks, aggs * agg_cap, round & 1);
			assert_int_equal(bl_tiers_select(t, n, src, dst, path, core), 0);
			assert_null(bl_verify_paths(racks, aggs, agg_cap, NULL, src, dst, path, n,
						    &none));
			assert_int_equal(none, 0);
			verify_tiers(t, pods, pod_of, aggs, cores, core_cap, n);
			/* core switch 0 of aggregation switch 0 is dead between all pods */
			for (i = 0; i < pods * pods; i++)
				assert_int_equal(bl_path_usable(bl_tiers_core(t, 0), i / pods,
								i % pods, ~1ULL),
						 0);
			none = bl_tiers_select(t, n, src, dst, path, core);
			for (x = 0; x < n; x++) {
				gone += path[x] == BL_PATH_NONE;
				assert_false(path[x] == 0 && core[x] == 0);
			}
			assert_int_equal(gone, none);
			verify_tiers(t, pods, pod_of, aggs, cores, core_cap, n);
			/* an aggregation number that is dead everywhere is not used */
			for (i = 0; i < racks * racks; i++)
				assert_int_equal(bl_path_usable(bl_tiers_agg(t), i / racks,
								i % racks, ~1ULL),
						 0);
			none = bl_tiers_select(t, n, src, dst, path, core);
			for (gone = 0, x = 0; x < n; x++) {
				gone += path[x] == BL_PATH_NONE;
				assert_int_not_equal(path[x], 0);
			}
			assert_int_equal(gone, none);
			bl_tiers_free(t);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_path_new__refused),
		cmocka_unit_test(bl_path_usable__edges),
		cmocka_unit_test(bl_path_select__example),
		cmocka_unit_test(bl_path_select__all_small_graphs),
		cmocka_unit_test(bl_path_select__random_graphs),
		cmocka_unit_test(bl_path_select__too_many),
		cmocka_unit_test(bl_path_select__dead_paths),
		cmocka_unit_test(bl_path_split__halves),
		cmocka_unit_test(bl_path_select__spreads),
		cmocka_unit_test(bl_tiers_new__refused),
		cmocka_unit_test(bl_tiers_select__random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
