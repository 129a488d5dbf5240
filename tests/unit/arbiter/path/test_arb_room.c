// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of arbiter/path/path_room*.c: whole masks against a model that counts packets one by one,
 * and every slot once more by the verifier. Both implementations are tested: the plain one, and the
 * one for the CPU that the test runs on.
 */
#include "tests/unit/unit.h"

#include "arbiter/path/path.h"
#include "arbiter/path/path_room.h"
#include "arbiter/path/path_room_priv.h"
#include "arbiter/alloc/verify.h"

#define RACKS 5
#define WORDS 4
#define PATHS 9
#define ASKS  400

/** struct model - What is taken, packet by packet. */
struct model {
	uint32_t paths, cap;
	uint16_t out[WORDS * 64][RACKS][PATHS], in[WORDS * 64][RACKS][PATHS]; /* packets */
	uint64_t usable[RACKS][RACKS]; /* [src][dst] path bits */
};

static struct bl_room *make(uint32_t racks, uint32_t paths, uint32_t cap, uint32_t words,
			    bool plain)
{
	const char *why;
	struct bl_room *r = bl_room_new(racks, paths, cap, words, &why);

	assert_non_null(r);
	assert_null(why);
	if (plain)
		r->take = bl_room_take_plain;
	return r;
}

/* Takes the lowest path on which both racks have room. */
static uint64_t model_take(struct model *m, const struct bl_room_ask *q, uint64_t *take)
{
	uint64_t rest = 0;
	uint32_t bit, k;

	memset(take, 0, PATHS * sizeof(*take));
	for (bit = 0; bit < 64; bit++) {
		const size_t s = q->word % WORDS * 64 + bit;

		if (!(q->slots >> bit & 1))
			continue;
		for (k = 0; k < m->paths; k++)
			if (m->out[s][q->src][k] < m->cap && m->in[s][q->dst][k] < m->cap &&
			    m->usable[q->src][q->dst] >> k & 1)
				break;
		if (k == m->paths) {
			rest |= 1ULL << bit;
			continue;
		}
		m->out[s][q->src][k]++;
		m->in[s][q->dst][k]++;
		take[k] |= 1ULL << bit;
	}
	return rest;
}

static void bl_room_take__as_the_model(void **state)
{
	static const struct {
		uint32_t paths, cap;
		bool dead;
	} t[] = {
		{ 1, 1, false }, { 2, 1, false }, { 3, 2, false }, { 4, 8, false },
		{ 4, 7, true },  { 4, 9, false }, { 4, 15, true }, { 4, 16, false },
		{ 5, 3, true },  { 8, 4, false }, { 9, 8, true },
	};
	static struct model m;
	struct rnd rnd = { 7 };
	size_t i, j, k;
	int plain;

	for (i = 0; i < 2 * sizeof(t) / sizeof(t[0]); i++) {
		const uint32_t paths = t[i / 2].paths, cap = t[i / 2].cap,
			       lanes = (paths + 3) / 4 * 4;
		struct bl_room *r;
		uint64_t word = 0;

		plain = i % 2;
		r = make(RACKS, paths, cap, WORDS, plain);
		assert_int_equal(bl_room_lanes(r), lanes);
		memset(&m, 0, sizeof(m));
		m.paths = paths;
		m.cap = cap;
		memset(m.usable, 0xff, sizeof(m.usable));
		for (j = 0; t[i / 2].dead && j < RACKS; j++) {
			m.usable[j][(j + 1) % RACKS] = rnd_below(&rnd, 1u << paths);
			assert_int_equal(bl_room_usable(r, (uint32_t)j, (uint32_t)(j + 1) % RACKS,
							m.usable[j][(j + 1) % RACKS]),
					 0);
		}
		for (; word < 40; word += 1 + rnd_below(&rnd, word % 5 ? 1 : WORDS + 2)) {
			struct bl_room_ask q[ASKS], want[ASKS];
			uint64_t take[ASKS * 12], expect[ASKS][PATHS], said, none = 0;
			const size_t n = rnd_below(&rnd, ASKS);

			for (j = r->first; j < word && j < r->first + WORDS; j++)
				for (k = 0; k < 64; k++) {
					memset(m.out[j % WORDS * 64 + k], 0, sizeof(m.out[0]));
					memset(m.in[j % WORDS * 64 + k], 0, sizeof(m.in[0]));
				}
			bl_room_move(r, word);
			for (j = 0; j < n; j++) {
				q[j] = (struct bl_room_ask){
					.slots = rnd64(&rnd) & rnd64(&rnd),
					.word = word + rnd_below(&rnd, WORDS),
					.src = (uint16_t)rnd_below(&rnd, RACKS),
					.dst = (uint16_t)rnd_below(&rnd, RACKS)
				};
				want[j] = q[j];
			}
			for (j = 0; j < n; j++) {
				want[j].slots = model_take(&m, &want[j], expect[j]);
				none += (uint32_t)__builtin_popcountll(want[j].slots);
			}
			said = bl_room_take(r, q, n, take);
			assert_int_equal(said, none);
			for (j = 0; j < n; j++) {
				assert_memory_equal(&q[j], &want[j], sizeof(q[j]));
				for (k = 0; k < lanes; k++)
					assert_int_equal(take[j * lanes + k],
							 k < paths ? expect[j][k] : 0);
			}
		}
		bl_room_free(r);
	}
}

static void bl_room_take__example(void **state)
{
	struct bl_room *r = make(2, 2, 1, 1, false);
	struct bl_room_ask q[] = { { .slots = 2, .src = 0, .dst = 0 },
				   { .slots = 7, .src = 0, .dst = 1 },
				   { .slots = 6, .src = 0, .dst = 1 } };
	const uint64_t want[] = { 2, 0, 0, 0, 5, 2, 0, 0, 0, 4, 0, 0 };
	uint64_t take[12];

	assert_int_equal(bl_room_take(r, q, 3, take), 1);
	assert_memory_equal(take, want, sizeof(want));
	assert_int_equal(q[0].slots, 0);
	assert_int_equal(q[1].slots, 0);
	assert_int_equal(q[2].slots, 2); /* slot 1 is full on both paths */
	bl_room_free(r);
}

/*
 * Slots in which all endpoints are busy, as an allocator gives them: what is placed is a colouring,
 * and it is nearly everything.
 */
static void bl_room_take__full_slots(void **state)
{
	enum { RACK = 32, N = 8 * RACK };
	struct bl_room *r = make(8, 4, 8, 1, false);
	static uint16_t src[N], dst[N];
	static uint8_t path[N];
	struct rnd rnd = { 3 };
	uint32_t bit, i, j, k;
	size_t none, sum = 0;

	for (bit = 0; bit < 64; bit++) {
		for (i = 0; i < N; i++)
			dst[i] = (uint16_t)i;
		for (i = N; i > 1; i--) {
			const uint16_t t = dst[i - 1];

			j = rnd_below(&rnd, i);
			dst[i - 1] = dst[j];
			dst[j] = t;
		}
		for (i = 0; i < N; i++) {
			struct bl_room_ask q = { .slots = 1ULL << bit,
						 .src = (uint16_t)(i / RACK),
						 .dst = (uint16_t)(dst[i] / RACK) };
			uint64_t take[4];

			bl_room_take(r, &q, 1, take);
			path[i] = BL_PATH_NONE;
			for (k = 0; k < 4; k++)
				if (take[k])
					path[i] = (uint8_t)k;
			src[i] = q.src;
		}
		for (i = 0; i < N; i++)
			dst[i] /= RACK;
		assert_null(bl_verify_paths(8, 4, 8, NULL, src, dst, path, N, &none));
		sum += none;
	}
	assert_true(sum < 64 * N / 20);
	bl_room_free(r);
}

/*
 * One slot gets other packets than were taken; the slots beside it keep theirs, and its room is
 * what the new packets leave.
 */
static void bl_room_set__only_this_slot(void **state)
{
	static const uint16_t src[] = { 0, 0, 1, 0 }, dst[] = { 1, 2, 2, 2 };
	static const uint8_t path[] = { 4, 4, 0, BL_PATH_NONE };
	struct bl_room *r = make(3, 5, 3, 2, false);
	struct bl_room_ask q = { .slots = 0xf, .word = 1, .src = 0, .dst = 1 };
	uint64_t take[8], of[5] = { 0 };
	uint32_t i, k;

	(void)state;
	assert_int_equal(bl_room_take(r, &q, 1, take), 0);
	bl_room_set(r, 1, 2, 4, src, dst, path);
	for (i = 0; i < 15; i++) {
		q = (struct bl_room_ask){ .slots = 0xf, .word = 1, .src = 0, .dst = 1 };
		bl_room_take(r, &q, 1, take);
		for (k = 0; k < 5; k++)
			for (uint32_t b = 0; b < 4; b++)
				of[k] += (take[k] >> b & 1) << 16 * b;
	}
	/*
	 * Room for three packets on each path in slot 2, except for the path on which rack 0 has
	 * sent two; for two on path 0 in the other slots.
	 */
	assert_int_equal(of[0], 0x0002000300020002ULL);
	assert_int_equal(of[1], 0x0003000300030003ULL);
	assert_int_equal(of[4], 0x0003000100030003ULL);
	bl_room_free(r);
}

static void bl_room_new__refused(void **state)
{
	static const struct {
		uint32_t racks, paths, cap, words;
		const char *why;
	} t[] = {
		{ 0, 1, 1, 1, "path selection has 1 to 1024 racks" },
		{ 1025, 1, 1, 1, "path selection has 1 to 1024 racks" },
		{ 1, 0, 1, 1, "there are 1 to 64 paths" },
		{ 1, 65, 1, 1, "there are 1 to 64 paths" },
		{ 1, 1, 0, 1, "a path carries 1 to 4095 packets a slot" },
		{ 1, 1, 4096, 1, "a path carries 1 to 4095 packets a slot" },
		{ 1, 1, 1, 0, "paths are chosen 1 to 1024 words ahead" },
		{ 1, 1, 1, 1025, "paths are chosen 1 to 1024 words ahead" },
		{ 1024, 1, 4095, 1, NULL },
		{ 1, 64, 1, 1024, NULL },
	};
	const char *why;
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct bl_room *r = bl_room_new(t[i].racks, t[i].paths, t[i].cap, t[i].words, &why);

		if (t[i].why)
			assert_string_equal(why, t[i].why);
		else
			assert_null(why);
		assert_int_equal(!r, !!t[i].why);
		bl_room_free(r);
	}
}

static void bl_room_usable__edges(void **state)
{
	struct bl_room *r = make(2, 2, 1, 1, false);
	struct bl_room_ask q = { .slots = 1, .src = 0, .dst = 1 };
	uint64_t take[4];

	assert_int_equal(bl_room_usable(r, 2, 0, 1), -1);
	assert_int_equal(bl_room_usable(r, 0, 2, 1), -1);
	assert_int_equal(bl_room_usable(r, 0, 1, 2), 0);
	assert_int_equal(bl_room_take(r, &q, 1, take), 0);
	assert_int_equal(take[0], 0);
	assert_int_equal(take[1], 1);
	assert_int_equal(bl_room_usable(r, 0, 1, 0), 0);
	q.slots = 2;
	assert_int_equal(bl_room_take(r, &q, 1, take), 1);
	bl_room_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_room_take__as_the_model),
		cmocka_unit_test(bl_room_take__example),
		cmocka_unit_test(bl_room_take__full_slots),
		cmocka_unit_test(bl_room_set__only_this_slot),
		cmocka_unit_test(bl_room_new__refused),
		cmocka_unit_test(bl_room_usable__edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
