// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of arbiter/alloc/verify.c: every rule is broken once, and the verifier sees it; a schedule
 * that breaks none passes. All other tests of the allocator rely on this.
 */
#include "tests/unit/unit.h"

#include "arbiter/path/path.h"
#include "arbiter/alloc/verify.h"

/** struct step - One call of the verifier. */
struct step {
	char what; /* 'd': demand; 'g': run with one grant; 'n': empty run */
	uint16_t src, dst, mtus;
	uint64_t base, now; /* start of the window and slot of the run */
	uint8_t words;      /* of the grant */
	uint64_t mask[2];   /* of the grant */
	uint64_t said;      /* sum that the run claims; 0: as in the head */
	const char *error;  /* part of the message with which the call fails; NULL: it succeeds */
};

static bool run_step(struct bl_verify *v, const struct step *s)
{
	struct bl_grant head = { .src = s->src, .dst = s->dst, .words = s->words, .mtus = s->mtus };
	uint64_t row[3];
	struct bl_grants g = { .base = s->base, .row = row };

	if (s->what == 'd') {
		bl_verify_demand(v, s->src, s->dst, s->mtus);
		return true;
	}
	if (s->what == 'g') {
		memcpy(row, &head, sizeof(head));
		row[1] = s->mask[0];
		row[2] = s->mask[1];
		/* @words of 3 with one mask: a row that is cut off */
		g.len = 1 + (s->mask[0] != 0 || s->words) + (s->mask[1] != 0);
		g.mtus = s->said ? s->said : s->mtus;
	}
	return bl_verify_run(v, &g, s->now);
}

static void run_steps(const struct bl_alloc_cfg *cfg, const struct step *s, size_t n)
{
	struct bl_verify *v = bl_verify_new(cfg);
	size_t i;

	assert_non_null(v);
	for (i = 0; i < n; i++) {
		bool ok = run_step(v, &s[i]);

		if (ok != !s[i].error)
			print_error("step %zu: %s\n", i, ok ? "passed" : bl_verify_error(v));
		assert_int_equal(ok, !s[i].error);
		if (!ok) {
			if (!strstr(bl_verify_error(v), s[i].error))
				print_error("step %zu: \"%s\" should say \"%s\"\n", i,
					    bl_verify_error(v), s[i].error);
			assert_non_null(strstr(bl_verify_error(v), s[i].error));
			assert_false(run_step(v, &s[0]) &&
				     s[0].what != 'd'); /* all later calls fail */
		}
	}
	bl_verify_free(v);
}

#define DEMAND(s, d, m)                            \
	{                                          \
		'd', .src = s, .dst = d, .mtus = m \
	}
#define GRANT(s, d, m, w, m0, m1, e)                                                           \
	{                                                                                      \
		'g', .src = s, .dst = d, .mtus = m, .words = w, .mask = { m0, m1 }, .error = e \
	}
#define STEPS(cfg, ...)                                             \
	do {                                                        \
		static const struct step steps[] = { __VA_ARGS__ }; \
		run_steps(cfg, steps, ARRAY_SIZE(steps));           \
	} while (0)

static const struct bl_alloc_cfg four = { .endpoints = 4, .window_slots = 128 };

static void bl_verify_run__right(void **state)
{
	(void)state;
	STEPS(&four, DEMAND(0, 1, 3), GRANT(0, 1, 3, 3, 3, 1, NULL), { 'n' });
	/* a second run gives other pairs what is left */
	STEPS(&four, DEMAND(0, 1, 1), GRANT(0, 1, 1, 1, 1, 0, NULL), DEMAND(0, 2, 1),
	      GRANT(0, 2, 1, 1, 2, 0, NULL), DEMAND(2, 1, 1), GRANT(2, 1, 1, 1, 2, 0, NULL));
	/* the same slot of the ring, 2048 later */
	STEPS(&four, DEMAND(0, 1, 2), GRANT(0, 1, 1, 1, 1, 0, "waits"));
	STEPS(&four, DEMAND(0, 1, 1), GRANT(0, 1, 1, 1, 1, 0, NULL), DEMAND(0, 1, 1),
	      { 'g', .src = 0, .dst = 1, .mtus = 1, .words = 1, .mask = { 1 }, .base = 2048,
		.now = 2048 });
}

static void bl_verify_run__form(void **state)
{
	(void)state;
	STEPS(&four, DEMAND(0, 1, 9), GRANT(4, 1, 1, 1, 1, 0, "grant from 4"));
	STEPS(&four, DEMAND(0, 1, 9), GRANT(0, 4, 1, 1, 1, 0, "to 4"));
	STEPS(&four, DEMAND(0, 1, 9), GRANT(1, 1, 1, 1, 1, 0, "from 1 to 1"));
	STEPS(&four, DEMAND(0, 1, 9), GRANT(0, 1, 1, 0, 1, 0, "words 0x0"));
	STEPS(&four, DEMAND(0, 1, 9), GRANT(0, 1, 1, 3, 1, 0, "ends inside"));
	STEPS(&four, DEMAND(0, 1, 9), GRANT(0, 1, 1, 1, 0, 0, "empty mask"));
	STEPS(&four, DEMAND(0, 1, 9), GRANT(0, 1, 2, 1, 1, 0, "says 2 MTUs and has 1"));
	STEPS(&four, DEMAND(0, 1, 9), GRANT(0, 1, 1, 1, 3, 0, "says 1 MTUs and has 2"));
	STEPS(&four, DEMAND(0, 1, 1),
	      { 'g', .src = 0, .dst = 1, .mtus = 1, .words = 1, .mask = { 1 }, .said = 2,
		.error = "run says 2" });
}

static void bl_verify_run__window(void **state)
{
	(void)state;
	STEPS(&four, DEMAND(0, 1, 1),
	      { 'g', .src = 0, .dst = 1, .mtus = 1, .words = 1, .mask = { 1 }, .now = 1,
		.error = "slot 0 was given at 1" });
	STEPS(&four, DEMAND(0, 1, 1),
	      { 'g', .src = 0, .dst = 1, .mtus = 1, .words = 4, .mask = { 1 },
		.error = "slot 128 was given" });
	STEPS(&four, DEMAND(0, 1, 1),
	      { 'g', .src = 0, .dst = 1, .mtus = 1, .words = 2, .mask = { 1ULL << 63 },
		.now = 127 });
	STEPS(&four, { 'n', .base = 64, .now = 63, .error = "is not in the window" });
	STEPS(&four, { 'n', .base = 64, .now = 64 + 128, .error = "is not in the window" });
	STEPS(&four, { 'n', .base = 64, .now = 64 + 127 });
}

static void bl_verify_run__ports(void **state)
{
	(void)state;
	/* one source twice and one destination twice, in one run and in two */
	STEPS(&four, DEMAND(0, 1, 1), DEMAND(0, 2, 1), GRANT(0, 1, 1, 1, 1, 0, "0 to 2 waits"));
	STEPS(&four, DEMAND(0, 1, 1), GRANT(0, 1, 1, 1, 1, 0, NULL), DEMAND(0, 2, 1),
	      GRANT(0, 2, 1, 1, 1, 0, "source 0 carries 2"));
	STEPS(&four, DEMAND(0, 1, 1), GRANT(0, 1, 1, 1, 1, 0, NULL), DEMAND(2, 1, 1),
	      GRANT(2, 1, 1, 1, 1, 0, "destination 1 carries 2"));
	/* more than was asked for */
	STEPS(&four, DEMAND(0, 1, 1), GRANT(0, 1, 2, 1, 3, 0, "got 2 MTUs and asked for 1"));
	STEPS(&four, DEMAND(0, 1, 1), GRANT(0, 2, 1, 1, 1, 0, "got 1 MTUs and asked for 0"));
	/* a slot is idle while a pair waits; a slot that is past does not count */
	STEPS(&four, DEMAND(0, 1, 1), { 'n', .error = "slot 0: 0 to 1 waits with 1 MTUs" });
	STEPS(&four, DEMAND(0, 1, 3), GRANT(0, 1, 2, 1, 5, 0, "slot 1: 0 to 1 waits"));
	STEPS(&four, DEMAND(0, 1, 3),
	      { 'g', .src = 0, .dst = 1, .mtus = 1, .words = 2, .mask = { 1ULL << 63 },
		.now = 127 });
}

static void bl_verify_run__tiers(void **state)
{
	static const uint16_t rack_of[] = { 0, 0, 0, 1, 1, 1, 2, 2, 2 }, up[] = { 2, 1, 0 },
			      down[] = { 2, 2, 1 }, pod_of[] = { 0, 1, 1 }, wide[] = { 1, 3 };
	static const uint16_t cap[] = { 1, 1, 1, 2, 1, 1, 1, 1, 1 };
	struct bl_alloc_cfg c = { .endpoints = 9,
				  .window_slots = 64,
				  .racks = 3,
				  .rack_of = rack_of,
				  .rack_up = up,
				  .rack_down = down };

	(void)state;
	STEPS(&c, DEMAND(0, 3, 1), GRANT(0, 3, 1, 1, 1, 0, NULL), DEMAND(1, 4, 1),
	      GRANT(1, 4, 1, 1, 1, 0, NULL), DEMAND(2, 6, 1),
	      GRANT(2, 6, 1, 1, 1, 0, "rack up-link 0 carries 3"));
	STEPS(&c, DEMAND(0, 6, 1), GRANT(0, 6, 1, 1, 1, 0, NULL), DEMAND(3, 7, 1),
	      GRANT(3, 7, 1, 1, 1, 0, "rack down-link 2 carries 2"));
	/*
	 * Within a rack no up-link is needed; a dead up-link carries nothing, and a pair that waits
	 * for it breaks no rule.
	 */
	STEPS(&c, DEMAND(6, 7, 1), GRANT(6, 7, 1, 1, 1, 0, NULL), DEMAND(8, 0, 1), { 'n' },
	      GRANT(8, 0, 1, 1, 1, 0, "rack up-link 2 carries 1 packets and can carry 0"));
	c.pods = 2;
	c.pod_of = pod_of;
	c.pod_up = wide;
	c.pod_down = wide;
	STEPS(&c, DEMAND(0, 3, 1), GRANT(0, 3, 1, 1, 1, 0, NULL), DEMAND(1, 4, 1),
	      GRANT(1, 4, 1, 1, 1, 0, "pod up-link 0 carries 2"));
	STEPS(&c, DEMAND(3, 0, 1), GRANT(3, 0, 1, 1, 1, 0, NULL), DEMAND(3, 1, 1),
	      GRANT(3, 1, 1, 1, 1, 0, "source 3 carries 2"));
	c.src_cap = cap;
	STEPS(&c, DEMAND(3, 4, 1), GRANT(3, 4, 1, 1, 1, 0, NULL), DEMAND(3, 5, 1),
	      GRANT(3, 5, 1, 1, 1, 0, NULL), DEMAND(3, 8, 1),
	      GRANT(3, 8, 1, 1, 1, 0, "source 3 carries 3"));
}

static void bl_verify__ledger(void **state)
{
	const struct step g = GRANT(0, 1, 2, 1, 6, 0, NULL);
	struct bl_verify *v = bl_verify_new(&four);

	(void)state;
	bl_verify_demand(v, 0, 1, 2);
	bl_verify_demand(v, 0, 2, 3);
	bl_verify_demand(v, 3, 0, 4);
	bl_verify_demand(v, 3, 2, 5);
	assert_int_equal(bl_verify_waiting(v, 0, 2), 3);
	assert_int_equal(bl_verify_forget(v, 0), 9);
	assert_int_equal(bl_verify_waiting(v, 0, 2), 0);
	assert_int_equal(bl_verify_waiting(v, 3, 0), 0);
	assert_int_equal(bl_verify_waiting(v, 3, 2), 5);
	assert_int_equal(bl_verify_forget(v, 2), 5);
	bl_verify_demand(v, 0, 1, 2);
	assert_true(run_step(v, &g));
	assert_int_equal(bl_verify_packets(v), 2);
	assert_int_equal(bl_verify_slot_sum(v), 1 + 2);
	assert_int_equal(bl_verify_slot(v, 0), 0);
	assert_int_equal(bl_verify_slot(v, 1), 1);
	bl_verify_free(v);
	bl_verify_free(NULL);
}

static void bl_verify_paths__each_rule(void **state)
{
	static const uint64_t usable[4] = { 3, 1, 3, 3 };
	static const struct {
		uint16_t src[3], dst[3];
		uint8_t path[3];
		uint32_t cap;
		bool dead;
		size_t none;
		const char *why;
	} t[] = {
		{ { 0, 0, 1 }, { 0, 1, 0 }, { 0, 1, 1 }, 1, false, 0, NULL },
		{ { 0, 0, 1 }, { 0, 1, 0 }, { 0, 0xff, 1 }, 1, false, 1, NULL },
		{ { 0, 0, 1 }, { 0, 1, 0 }, { 0, 0, 1 }, 1, false, 0, "sends more" },
		{ { 0, 0, 1 }, { 0, 1, 0 }, { 0, 1, 0 }, 1, false, 0, "receives more" },
		{ { 0, 0, 1 }, { 0, 1, 0 }, { 0, 0, 0 }, 2, false, 0, NULL },
		{ { 0, 0, 1 }, { 0, 1, 0 }, { 0, 1, 2 }, 1, false, 0, "does not exist" },
		{ { 0, 2, 1 }, { 0, 1, 0 }, { 0, 1, 1 }, 1, false, 0, "does not exist" },
		{ { 0, 0, 1 }, { 0, 2, 0 }, { 0, 1, 1 }, 1, false, 0, "does not exist" },
		{ { 0, 0, 1 }, { 0, 1, 0 }, { 0, 1, 1 }, 1, true, 0, "dead" },
		{ { 0, 0, 1 }, { 0, 1, 0 }, { 1, 0, 0 }, 1, true, 0, NULL },
	};
	size_t i, none;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		const char *why = bl_verify_paths(2, 2, t[i].cap, t[i].dead ? usable : NULL,
						  t[i].src, t[i].dst, t[i].path, 3, &none);

		assert_int_equal(!!why, !!t[i].why);
		if (why)
			assert_non_null(strstr(why, t[i].why));
		else
			assert_int_equal(none, t[i].none);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_verify_run__right),
		cmocka_unit_test(bl_verify_run__form),
		cmocka_unit_test(bl_verify_run__window),
		cmocka_unit_test(bl_verify_run__ports),
		cmocka_unit_test(bl_verify_run__tiers),
		cmocka_unit_test(bl_verify__ledger),
		cmocka_unit_test(bl_verify_paths__each_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
