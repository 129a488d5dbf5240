// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/order/barrier_core.h, the controller's fences: an input that dies or is frozen stays frozen
 * until it is resumed; what a slot does to a port; and the states of a port at random. Its lane
 * sees fences late and several at once, and is compared with a port that obeys each fence when it
 * is given.
 */
#include "tests/unit/unit.h"

#include "core/order/barrier_core.h"
#include "tests/unit/core/order/expire.h"

#define NONE BL_LEAF_NONE
#define L    BL_REG_LIVE
#define D    BL_REG_DEAD
#define J    BL_REG_JOINING
#define A    BL_REG_ABSENT
#define I    BL_REG_IN
#define H    BL_REG_HELD

static struct bl_port_regs make_two_lanes(uint32_t s0, uint32_t s1)
{
	struct bl_port_regs p = { 0 };

	p.lane[0] = (struct bl_reg){ .b = 505, .c = 500, .heard_ns = 10, .state = s0, .lanes = 2 };
	p.lane[7] = (struct bl_reg){ .b = 605, .c = 600, .heard_ns = 20, .state = s1, .lanes = 2 };
	return p;
}

/* ---- single transitions: lanes 0 (c 500) and 7 (c 600) before, and after ---- */

static void bl_port_leaf__flags(void **state)
{
	static const struct {
		uint32_t s0, s1;
		uint64_t b, c;
		uint32_t flags;
	} t[] = {
		{ A, A, NONE, NONE, 0 },
		{ J, J, NONE, NONE, 0 },
		{ L, A, 505, NONE, 0 },
		{ L | I, A, 505, 500, I },
		{ L | I | H, A, 505, 500, I | H },
		{ D, A, NONE, NONE, 0 },
		{ D | I | H, A, NONE, 500, I | H },
		{ L, L | I, 505, 600, I },
		{ L | I, L | I, 505, 500, I },
		{ D, L | I, 605, 600, I },
		{ D | I | H, L | I | H, 605, 500, I | H },
		{ J, L | I | H, 605, 600, I | H },
	};
	struct bl_pair leaf;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_port_regs p = make_two_lanes(t[i].s0, t[i].s1);

		bl_port_leaf(&p, &leaf);
		if (leaf.b != t[i].b || leaf.c != t[i].c || bl_port_flags(&p) != t[i].flags)
			fail_msg("row %zu", i);
		p.lane[0].c = 0; /* A lane that has never announced a C holds none back. */
		bl_port_leaf(&p, &leaf);
		assert_int_equal(leaf.c, t[i].s1 & I ? 600 : NONE);
	}
}

static void bl_reg_alone__flags(void **state)
{
	static const uint32_t not [] = { A, J, L, D, L | H, L | I | H, D | I, D | I | H };
	struct bl_reg r = { .state = L | I };
	size_t i;

	(void)state;
	assert_true(bl_reg_alone(&r, 1));
	assert_false(bl_reg_alone(&r, 2));
	for (i = 0; i < ARRAY_SIZE(not ); i++) {
		r.state = not [i];
		assert_false(bl_reg_alone(&r, 1));
		assert_int_equal(bl_reg_live(&r), (not [i] & 0xff) == L);
	}
}

/*
 * Lane 0 has been silent for longer than lane 7. @both says whether @dead_after is exceeded by both
 * of them.
 */
static void bl_port_expire__flags(void **state)
{
	static const struct {
		uint32_t s0, s1, both;
		uint32_t is0, is1, died, res;
	} t[] = {
		{ L | I, A, 0, D | I | H, A, 1, BL_A_LEAF | BL_A_EXCLUDED },
		{ L, A, 0, D, A, 0, BL_A_LEAF | BL_A_EXCLUDED }, /* barred: in no minimum of C */
		{ L | I | H, A, 0, D | I | H, A, 0, BL_A_LEAF | BL_A_EXCLUDED },
		{ D | I | H, A, 0, D | I | H, A, 0, 0 },
		{ D, A, 0, D, A, 0, 0 },
		{ J, A, 0, J, A, 0, 0 },
		{ A, A, 0, D, A, 0, 0 }, /* announced, never heard */
		{ L | I, L | I, 0, D | I | H, L | I | H, 1, BL_A_LEAF | BL_A_EXCLUDED },
		{ L | I, L | I, 1, D | I | H, D | I | H, 1, BL_A_LEAF | BL_A_EXCLUDED },
		{ L | I, L, 0, D | I | H, L, 1, BL_A_LEAF | BL_A_EXCLUDED },
		{ L, L | I, 0, D, L | I, 0, BL_A_LEAF | BL_A_EXCLUDED },
		{ L, L | I, 1, D, D | I | H, 1, BL_A_LEAF | BL_A_EXCLUDED },
		{ L | I | H, L | I | H, 0, D | I | H, L | I | H, 0, BL_A_LEAF | BL_A_EXCLUDED },
		{ L | I | H, L | I | H, 1, D | I | H, D | I | H, 0, BL_A_LEAF | BL_A_EXCLUDED },
		{ A, L | I, 0, D, L | I, 0, 0 },
		{ L | I, J, 1, D | I | H, J, 1, BL_A_LEAF | BL_A_EXCLUDED },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_port_regs p = make_two_lanes(t[i].s0, t[i].s1);
		struct bl_life life = { .neighbour = 9, .death = 7 };
		struct bl_pair leaf;

		if (t[i].s1 == A)
			p.lane[7].heard_ns = 0;
		assert_int_equal(expire_silent(&p, t[i].both ? 21 : 16, &life, &leaf), t[i].res);
		if (p.lane[0].state != t[i].is0 || p.lane[7].state != t[i].is1 ||
		    life.death != 7 + t[i].died)
			fail_msg("row %zu: %x %x, death %u", i, p.lane[0].state, p.lane[7].state,
				 life.death);
		assert_int_equal(life.neighbour, 9);
		assert_true(p.lane[0].c == 500 && p.lane[7].c == 600);
		if (t[i].res) {
			struct bl_pair want;

			bl_port_leaf(&p, &want);
			assert_true(leaf.b == want.b && leaf.c == want.c);
		}
	}
}

/* A frame with C = 700 arrives on lane 0. @leaf_c is the port's C afterwards. */
static void bl_port_arrive__flags(void **state)
{
	static const struct {
		uint32_t s0, s1, barred, is0;
		uint64_t c, leaf_c;
	} t[] = {
		{ L | I, A, 0, L | I, 700, 700 },
		{ L | I, A, 1, L | I, 700, 700 }, /* A lane that is in C's minimum stays there. */
		{ L, A, 1, L, 700, NONE },
		{ L | I | H, A, 0, L | I | H, 500, 500 },
		{ D | I | H, A, 0, L | I | H, 500, 500 },
		{ D | I | H, A, 1, L | I | H, 500, 500 },
		{ D, A, 0, L | I, 700, 700 },
		{ D, A, 1, L, 700, NONE },
		{ J, A, 0, L | I, 700, 700 },
		{ J, A, 1, L, 700, NONE },
		{ A, L | I, 0, L | I, 700, 600 },
		{ A, L | I, 1, L, 700, 600 },
		/*
		 * A lane that joins a frozen port is frozen with it: the least C may fall, but not
		 * rise.
		 */
		{ A, L | I | H, 0, L | I | H, 700, 600 },
		{ A, D | I | H, 0, L | I | H, 700, 600 },
		{ A, L | I | H, 1, L, 700, 600 },
		{ D, D | I | H, 0, L | I | H, 700, 600 },
		{ L | I | H, L | I | H, 0, L | I | H, 500, 500 },
	};
	struct bl_pair leaf;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_port_regs p = make_two_lanes(t[i].s0, t[i].s1);
		uint32_t l, res;

		for (l = 1; l < 7; l++)
			p.lane[l].state = D; /* No lane is waited for. */
		if (t[i].s1 == A)
			p.lane[7].state = D;
		res = bl_port_arrive(&p, 0, 2, 800, 700, 30, 0, t[i].barred, &leaf);
		if (p.lane[0].state != t[i].is0 || p.lane[0].c != t[i].c || leaf.c != t[i].leaf_c)
			fail_msg("row %zu: %x, c %llu, leaf %llu", i, p.lane[0].state, p.lane[0].c,
				 leaf.c);
		assert_int_equal(!!(res & BL_A_JOINED), (t[i].s0 & 0xff) != L);
		assert_int_equal(p.lane[0].b, 800); /* B rises in any case. */
		if (t[i].s0 & H && p.lane[0].c == 500) {
			/* A second frame is far ahead; C is still frozen. */
			bl_port_arrive(&p, 0, 2, 9000, 9000, 31, 0, t[i].barred, &leaf);
			assert_int_equal(p.lane[0].c, 500);
		}
	}
}

static void bl_port_obey__table(void **state)
{
	static const struct {
		uint32_t s0, s1, death;
		struct bl_fence_slot o;
		uint32_t is0, is1, now;
	} t[] = {
		/* No fence was given. */
		{ L | I, D, 0, { 0 }, L | I, D, 0 },
		{ L | I, D | I | H, 7, { 0 }, L | I | H, D | I | H, 7 },
		{ J, A, 0, { 0 }, J, A, 0 },
		/* freeze */
		{ L | I, L | I, 7, { .freeze = 8 }, L | I | H, L | I | H, 8 },
		{ L | I, L | I, 8, { .freeze = 8 }, L | I, L | I, 8 },
		{ L | I, L | I, 9, { .freeze = 8 }, L | I, L | I, 9 },
		{ L | I, J, 7, { .freeze = 8 }, L | I | H, J, 8 },
		{ D, D, 7, { .freeze = 8 }, D, D, 8 }, /* No lane can be frozen. */
		/* The number wraps. */
		{ L | I, D, ~0u, { .freeze = 0, .resume = ~0u - 5 }, L | I | H, D, 0 },
		/* The port died by silence meanwhile. */
		{ D | I | H, D, 8, { .freeze = 8 }, D | I | H, D, 8 },
		/* resume: only that death */
		{ L | I | H, D | I | H, 7, { .resume = 7 }, L | I, D, 7 },
		{ L | I | H, D | I | H, 7, { .resume = 6 }, L | I | H, D | I | H, 7 },
		{ L | I | H, D | I | H, 8, { .resume = 7 }, L | I | H, D | I | H, 8 },
		{ D | I | H, D | I | H, 7, { .resume = 7 }, D, D, 7 },
		{ L | I, D, 7, { .resume = 7 }, L | I, D, 7 }, /* a second time */
		{ L | I | H, D | I | H, 7, { .resume = 7, .barred = 1, .drop = 1 }, L, D, 7 },
		/* barred after the RESUME */
		{ L | I | H,
		  L | I | H,
		  7,
		  { .resume = 7, .barred = 1, .drop = 0 },
		  L | I,
		  L | I,
		  7 },
		/* barred before the RESUME, free again */
		{ L | I | H, D | I | H, 7, { .resume = 7, .barred = 0, .drop = 1 }, L | I, D, 7 },
		/* bars */
		{ L, L, 7, { .barred = 1 }, L, L, 7 },
		{ L, L, 7, { .barred = 0 }, L | I, L | I, 7 },
		{ L, D, 7, { .barred = 0 }, L | I, D, 7 },
		{ L, L | I | H, 7, { .barred = 0 }, L | I | H, L | I | H, 7 },
		{ L | I, L, 7, { .barred = 1 }, L | I, L, 7 },
		/* several fences at once */
		{ L | I | H, D | I | H, 7, { .resume = 7, .freeze = 8 }, L | I | H, D, 8 },
		{ D | I | H, D | I | H, 7, { .resume = 7, .freeze = 8 }, D, D, 8 },
		{ L | I, L | I, 7, { .freeze = 8, .resume = 8 }, L | I, L | I, 8 },
		/* The first RESUME was overwritten. */
		{ L | I | H, D | I | H, 7, { .freeze = 8, .resume = 8 }, L | I, D, 8 },
		{ L | I, L | I, 7, { .freeze = 9, .resume = 8 }, L | I | H, L | I | H, 9 },
		/* Frozen, resumed while barred, frozen again: no lane is left in C's minimum. */
		{ L | I,
		  D,
		  7,
		  { .freeze = 9, .resume = 8, .drop = 1, .shut = 1, .barred = 1 },
		  L,
		  D,
		  9 },
		/* frozen while it was barred, then free */
		{ L, D, 7, { .freeze = 8, .shut = 1, .barred = 0 }, L | I, D, 8 },
		{ L, D, 7, { .freeze = 8, .shut = 0, .barred = 0 }, L | I | H, D, 8 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_port_regs p = make_two_lanes(t[i].s0, t[i].s1);
		struct bl_life life = { .neighbour = 9, .death = t[i].death };
		struct bl_pair was, leaf, again;
		uint32_t res;

		bl_port_leaf(&p, &was);
		res = bl_port_apply_fence(&p, &life, &t[i].o, &leaf);
		assert_int_equal(res == BL_A_LEAF, leaf.b != was.b || leaf.c != was.c);
		if (p.lane[0].state != t[i].is0 || p.lane[7].state != t[i].is1 ||
		    life.death != t[i].now)
			fail_msg("row %zu: %x %x, death %u", i, p.lane[0].state, p.lane[7].state,
				 life.death);
		bl_port_leaf(&p, &was);
		assert_true(leaf.b == was.b && leaf.c == was.c && life.neighbour == 9);
		/* The second call changes nothing. */
		assert_int_equal(bl_port_apply_fence(&p, &life, &t[i].o, &again), 0);
		if (p.lane[0].state != t[i].is0 || p.lane[7].state != t[i].is1 ||
		    life.death != t[i].now)
			fail_msg("row %zu, again: %x %x, death %u", i, p.lane[0].state,
				 p.lane[7].state, life.death);
		assert_true(p.lane[0].c == 500 && p.lane[7].c == 600 && p.lane[0].b == 505 &&
			    p.lane[7].b == 605);
	}
}

static void bl_slot__numbers(void **state)
{
	static const struct {
		struct bl_fence_slot o;
		uint32_t death, frozen; /* the port's deaths; the deaths that the FREEZE asks for */
		int res;
		struct bl_fence_slot is;
	} freeze[] = {
		{ { 0 }, 7, 8, 1, { .freeze = 8 } },
		{ { 0 }, 7, 7, 0, { 0 } },
		{ { 0 }, 7, 6, 0, { 0 } },
		{ { .freeze = 8 }, 7, 8, 0, { .freeze = 8 } },
		{ { .freeze = 8, .barred = 1 }, 7, 9, 1, { .freeze = 9, .barred = 1, .shut = 1 } },
		{ { .freeze = 8, .shut = 1 }, 8, 9, 1, { .freeze = 9 } },
		{ { .freeze = ~0u }, ~0u, 0, 1, { .freeze = 0 } },
	}, resume[] = {
		{ { 0 }, 7, 7, 1, { .resume = 7 } },
		{ { 0 }, 7, 6, -1, { 0 } },
		{ { 0 }, 7, 8, -1, { 0 } },
		/* The FREEZE is not applied yet, and the RESUME is here already. */
		{ { .freeze = 8 }, 7, 8, 1, { .freeze = 8, .resume = 8 } },
		{ { .freeze = 8 }, 7, 7, -1, { .freeze = 8 } },
		{ { .freeze = 6 }, 7, 7, 1, { .freeze = 6, .resume = 7 } },
		/* The number wraps. */
		{ { .freeze = 1 }, ~0u, 1, 1, { .freeze = 1, .resume = 1 } },
		/* What the RESUME drops was decided the first time. */
		{ { .resume = 7, .barred = 1 }, 7, 7, 0, { .resume = 7, .barred = 1 } },
		{ { .barred = 1 }, 7, 7, 1, { .resume = 7, .barred = 1, .drop = 1 } },
		{ { .resume = 6, .drop = 1 }, 7, 7, 1, { .resume = 7 } },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(freeze); i++) {
		struct bl_fence_slot o = freeze[i].o;
		struct bl_life life = { .death = freeze[i].death };

		assert_int_equal(bl_slot_freeze(&o, &life, freeze[i].frozen), freeze[i].res);
		assert_memory_equal(&o, &freeze[i].is, sizeof(o));
	}
	for (i = 0; i < ARRAY_SIZE(resume); i++) {
		struct bl_fence_slot o = resume[i].o;
		struct bl_life life = { .death = resume[i].death };

		assert_int_equal(bl_slot_resume(&o, &life, resume[i].frozen), resume[i].res);
		assert_memory_equal(&o, &resume[i].is, sizeof(o));
	}
}

/* ---- the states of a port ---- */

/* A model of a port that obeys each fence at once, as docs/protocol.md describes it. */
struct plain {
	struct bl_port_regs p;
	uint32_t death;
	bool barred;
};

static bool plain_held(const struct plain *m)
{
	return bl_port_flags(&m->p) & H;
}

static void plain_bar(struct plain *m, bool barred)
{
	bool held = plain_held(m);
	uint32_t l;

	m->barred = barred;
	for (l = 0; l < BL_LANES_MAX && !barred; l++)
		if ((m->p.lane[l].state & 0xff) == L)
			m->p.lane[l].state |= held ? I | H : I;
}

static void plain_freeze(struct plain *m)
{
	uint32_t l;

	if (plain_held(m))
		return;
	m->death++;
	for (l = 0; l < BL_LANES_MAX; l++)
		if (m->p.lane[l].state & I)
			m->p.lane[l].state |= H;
}

static void plain_resume(struct plain *m, uint32_t death)
{
	uint32_t l;

	if (death != m->death || !plain_held(m))
		return;
	for (l = 0; l < BL_LANES_MAX; l++) {
		struct bl_reg *r = &m->p.lane[l];

		if (r->state & H && (m->barred || (r->state & 0xff) != L))
			r->state &= ~I;
		r->state &= ~H;
	}
}

/*
 * Checks that all lanes in C's minimum are frozen or none is, and that each of them is live or
 * dead.
 */
static void expect_sound(const struct bl_port_regs *p)
{
	uint32_t l, flags = bl_port_flags(p);

	for (l = 0; l < BL_LANES_MAX; l++) {
		uint32_t s = p->lane[l].state;

		assert_true((s & 0xff) <= D && !(s & ~(0xffu | I | H)));
		if (s & I)
			assert_true((s & H) == (flags & H) && ((s & 0xff) == L || (s & 0xff) == D));
		else
			assert_false(s & H);
		if (s & I && (s & 0xff) == D)
			assert_true(s & H); /* A silent lane is reported. */
	}
}

static void orders__late_is_as_at_once(void **state)
{
	struct rnd r = rnd_seeded("orders");
	uint32_t died = 0, frozen = 0, resumed = 0;
	int round, op, k;

	(void)state;
	for (round = 0; round < 300; round++) {
		struct bl_port_regs p = { 0 };
		struct bl_life life = { 0 };
		struct bl_fence_slot o = { 0 };
		struct plain m = { 0 };
		uint64_t watch = 1, time = 1000, held_c = 0;
		uint32_t lanes = 1 + rnd_below(&r, 3);

		for (op = 0; op < 600; op++) {
			int fences = rnd_below(&r, 6) ? 0 : 1 + (int)rnd_below(&r, 4);
			bool flipped = false, was_held = bl_port_flags(&p) & H;
			struct bl_pair leaf, want;
			uint32_t x, l = rnd_below(&r, lanes), was_death = life.death;
			struct bl_port_regs was = p;
			char said[5] = "";

			watch += rnd_below(&r, 30);
			time += rnd_below(&r, 30);
			for (k = 0; k < fences; k++) {
				uint32_t say = rnd_below(&r, 3), death = m.death - rnd_below(&r, 2);

				said[k] = "frb"[say];
				said[k + 1] = 0;
				if (say == 0) {
					bl_slot_freeze(&o, &life,
						       plain_held(&m) ? m.death : m.death + 1);
					frozen += !plain_held(&m) && bl_port_flags(&m.p) & I;
					plain_freeze(&m);
				} else if (say == 1) {
					assert_int_equal(bl_slot_resume(&o, &life, death) >= 0,
							 death == m.death);
					resumed += plain_held(&m) && death == m.death;
					plain_resume(&m, death);
				} else if (!flipped) {
					/*
					 * At most once before the slot is applied: the slot keeps
					 * only the last value, so a lane that joined in between
					 * would be missed.
					 */
					flipped = true;
					o.barred = !o.barred;
					plain_bar(&m, o.barred);
				}
			}
			bl_port_leaf(&p, &want);
			x = bl_port_apply_fence(&p, &life, &o, &leaf);
			assert_int_equal(x == BL_A_LEAF, leaf.b != want.b || leaf.c != want.c);
			if (memcmp(&p, &m.p, sizeof(p)) || life.death != m.death)
				fail_msg("round %d, operation %d: %d orders (%s) at once made of "
					 "lanes %x %x %x, death %u, barred %u, lanes %x %x %x, "
					 "death %u; one by one %x %x %x, death %u",
					 round, op, fences, said, was.lane[0].state,
					 was.lane[1].state, was.lane[2].state, was_death, o.barred,
					 p.lane[0].state, p.lane[1].state, p.lane[2].state,
					 life.death, m.p.lane[0].state, m.p.lane[1].state,
					 m.p.lane[2].state, m.death);
			if (rnd_below(&r, 4)) {
				uint64_t b = time - rnd_below(&r, 60), c = b - rnd_below(&r, 10),
					 above = rnd_below(&r, 3) ? 0 : time;

				x = bl_port_arrive(&p, l, lanes, b, c, watch, above, o.barred,
						   &leaf);
				assert_int_equal(bl_port_arrive(&m.p, l, lanes, b, c, watch, above,
								m.barred, &want),
						 x);
			} else {
				expire_silent(&p, bl_time_before(watch, 100), &life, &leaf);
				if (life.death != m.death) {
					assert_int_equal(life.death, m.death + 1);
					died++;
				}
				m.p = p;
				m.death = life.death;
			}
			expect_sound(&p);
			/*
			 * The C of a frozen port does not rise: for the same death it stays the
			 * same or falls.
			 */
			bl_port_leaf(&p, &leaf);
			if (bl_port_flags(&p) & H) {
				if (was_held && !fences)
					assert_true(leaf.c <= held_c);
				held_c = leaf.c;
			}
		}
	}
	/* Otherwise the run covered too little. */
	assert_true(died > 100 && frozen > 100 && resumed > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_port_leaf__flags),
		cmocka_unit_test(bl_reg_alone__flags),
		cmocka_unit_test(bl_port_expire__flags),
		cmocka_unit_test(bl_port_arrive__flags),
		cmocka_unit_test(bl_port_obey__table),
		cmocka_unit_test(bl_slot__numbers),
		cmocka_unit_test(orders__late_is_as_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
