// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A planned absence (ctl.proto: Away) and a change of the leader: what
 * controller/recover/recover_event.c saves of the absence, what the next leader makes of it, and
 * that no absence lasts for ever. Absences under one leader are in test_recover_core.c, away__*.
 */
#include "tests/unit/unit.h"

#include "controller/message.h"
#include "controller/recover/recover_core.h"

#define MS     1000000ULL
#define ANSWER (1000 * MS)
#define GRACE  (3000 * MS)
#define HOSTS  3

static const struct bl_recover_cfg cfg = { .settle_ns = 5 * MS,
					   .answer_ns = ANSWER,
					   .grace_ns = GRACE };
static const uint8_t addr_of[HOSTS + 1][1][16] = {
	{ { 0 } }, { { 10, 1 } }, { { 10, 2 } }, { { 10, 3 } }
};

/* switch 9 with hosts 1 to 3 */
static enum bl_recover_reason hello(struct bl_recover *r, uint64_t now, uint32_t id, uint64_t epoch)
{
	static const uint16_t endpoint[] = { 61696 };
	struct bl_recover_port port[HOSTS];
	struct bl_recover_hello h = { .id = id, .epoch = epoch, .port = port };
	uint32_t i;

	if (id == 9) {
		h.kind = BL_DET_SWITCH;
		h.nports = HOSTS;
		for (i = 0; i < HOSTS; i++)
			port[i] = (struct bl_recover_port){ .port = i + 1,
							    .neighbour = i + 1,
							    .role = BL_RECOVER_HOST };
	} else {
		h.kind = BL_DET_HOST;
		h.nports = h.naddrs = h.nendpoints = 1;
		h.addr = addr_of[id];
		h.endpoint = endpoint;
		port[0] = (struct bl_recover_port){ .neighbour = 9, .role = BL_RECOVER_UP };
	}
	snprintf(h.name, sizeof(h.name), "n%u", id);
	return bl_recover_hello(r, now, &h);
}

static unsigned int told; /* how often host 3 was told that its absence is saved */

/*
 * Returns how often node @id is to be saved now. Saves all records; all nodes but host 3 do at once
 * what they are told.
 */
static unsigned int saves(struct bl_recover *r, uint64_t now, uint32_t id)
{
	struct bl_recover_out o;
	unsigned int n = 0;

	while (bl_recover_next(r, &o)) {
		if (o.what == BL_RECOVER_SAVE_NODE) {
			n += o.node == id;
			bl_recover_saved_node(r, now, o.node);
		} else if (o.what == BL_RECOVER_SAVE_FAILURE) {
			bl_recover_saved_failure(r, now, o.number);
		} else if (o.what == BL_RECOVER_BAR) {
			bl_recover_barred(r, now, o.node, bl_recover_node(r, o.node)->bar);
		} else if (o.what == BL_RECOVER_FAIL && o.node != 3) {
			bl_recover_done(r, now, o.node, o.number);
		} else if (o.what == BL_RECOVER_AWAY) {
			assert_int_equal(o.node, 3);
			told++;
		}
	}
	return n;
}

static void all_say_hello(struct bl_recover *r, uint64_t now, uint64_t epoch, uint32_t but)
{
	uint32_t i;

	for (i = 0; i <= HOSTS; i++)
		if ((i ? i : 9) != but)
			assert_int_equal(hello(r, now, i ? i : 9, epoch), BL_RECOVER_OK);
	saves(r, now, 0);
}

static struct bl_recover *rack(void)
{
	struct bl_recover *r = bl_recover_new(&cfg);

	assert_non_null(r);
	bl_recover_start(r, 0, 5);
	all_say_hello(r, 0, 5, 0);
	return r;
}

/* Returns the next leader, which knows what @old had saved, from the bytes in the store. */
static struct bl_recover *next_leader(struct bl_recover *old, uint64_t now, uint64_t epoch)
{
	struct bl_recover *r = bl_recover_new(&cfg);
	uint64_t number, at;
	uint32_t i;

	assert_non_null(r);
	for (i = 0; i < bl_recover_nodes(old); i++) {
		struct ctl_bytes b = ctl_save_node(bl_recover_node_at(old, i));

		assert_non_null(b.data);
		assert_int_equal(ctl_load_node(r, b.data, b.len), 0);
		free(b.data);
	}
	for (i = 0; i < bl_recover_failures(old); i++) {
		struct ctl_bytes b = ctl_save_failure(bl_recover_failure_at(old, i), 1);

		assert_non_null(b.data);
		assert_int_equal(ctl_load_failure(r, b.data, b.len, &number, &at), 0);
		free(b.data);
	}
	bl_recover_start(r, now, epoch);
	bl_recover_free(old);
	return r;
}

/* A process of host 1 dies; only host 3 has still to answer. */
static void one_dies(struct bl_recover *r, uint64_t now)
{
	const struct bl_recover_proc p = { .port = 61696, .life = 7, .t = 900 };

	assert_int_equal(bl_recover_proc_down(r, now, 1, &p), BL_RECOVER_OK);
	bl_recover_tick(r, now + cfg.settle_ns);
	saves(r, now, 0);
	assert_int_equal(bl_recover_failure(r, 1)->step, BL_RECOVER_ANNOUNCED);
}

static uint8_t state_of(struct bl_recover *r, uint32_t id)
{
	return bl_recover_node(r, id)->state;
}

/* Lets time pass: calls bl_recover_tick() whenever it is due. */
static void pass(struct bl_recover *r, uint64_t from, uint64_t to)
{
	uint64_t due;

	while ((due = bl_recover_due(r)) <= to) {
		from = due > from ? due : from + 1;
		bl_recover_tick(r, from);
		saves(r, from, 0);
	}
	bl_recover_tick(r, to);
	saves(r, to, 0);
}

/*
 * The daemon is told when the absence is saved, and not before, also if another save of that node
 * was under way.
 */
static void away__is_acknowledged(void **state)
{
	struct bl_recover *r = rack();
	struct bl_recover_out o;
	unsigned int k;

	(void)state;
	told = 0;
	for (k = 0; k < 2; k++) {
		assert_int_equal(bl_recover_away(r, 10 * MS, 3, 5000 * MS), BL_RECOVER_OK);
		while (bl_recover_next(r, &o))
			assert_true(o.what == BL_RECOVER_SAVE_NODE && o.node == 3 && !k);
	}
	/* the first record, then the second */
	bl_recover_saved_node(r, 11 * MS, 3);
	assert_true(bl_recover_next(r, &o) && o.what == BL_RECOVER_SAVE_NODE &&
		    !bl_recover_next(r, &o));
	bl_recover_saved_node(r, 12 * MS, 3);
	saves(r, 12 * MS, 0);
	assert_int_equal(told, 1);
	bl_recover_free(r);
}

/* The absence is saved when it begins and when it ends, by a HELLO or by its time. */
static void away__is_saved(void **state)
{
	struct bl_recover *r = rack();

	(void)state;
	assert_int_equal(bl_recover_away(r, 10 * MS, 3, 5000 * MS), BL_RECOVER_OK);
	assert_int_equal(saves(r, 10 * MS, 3), 1);
	bl_recover_bye(r, 10 * MS, 3);
	assert_int_equal(hello(r, 500 * MS, 3, 5), BL_RECOVER_OK);
	assert_int_equal(saves(r, 500 * MS, 3), 1);
	assert_int_equal(hello(r, 501 * MS, 3, 5), BL_RECOVER_OK);
	assert_int_equal(saves(r, 501 * MS, 3), 0);

	assert_int_equal(bl_recover_away(r, 600 * MS, 3, 5000 * MS), BL_RECOVER_OK);
	assert_int_equal(saves(r, 600 * MS, 3), 1);
	assert_int_equal(bl_recover_due(r), 5600 * MS);
	bl_recover_tick(r, 5600 * MS);
	assert_int_equal(saves(r, 5600 * MS, 3), 1);
	assert_int_equal(bl_recover_due(r), UINT64_MAX);
	bl_recover_free(r);
}

/* The next leader waits for the absent node as long as was granted, and no longer. */
static void away__next_leader_waits(void **state)
{
	const uint64_t away = 20000 * MS, change = 2000 * MS;
	struct bl_recover *r = rack();

	(void)state;
	assert_int_equal(bl_recover_away(r, 10 * MS, 3, away), BL_RECOVER_OK);
	saves(r, 10 * MS, 3);
	bl_recover_bye(r, 10 * MS, 3);
	one_dies(r, 20 * MS);
	r = next_leader(r, change, 6);
	all_say_hello(r, change + MS, 6, 3);
	pass(r, change, change + away - 1);
	assert_int_equal(state_of(r, 3), BL_DET_UP);
	assert_int_equal(bl_recover_failure(r, 1)->step, BL_RECOVER_ANNOUNCED);
	pass(r, change + away, change + away + GRACE + 2 * ANSWER);
	assert_int_not_equal(state_of(r, 3), BL_DET_UP);
	bl_recover_free(r);
}

/* The node comes back to the next leader, and answers what it missed. */
static void away__next_leader_hears_it(void **state)
{
	const uint64_t change = 2000 * MS, back = change + 15000 * MS;
	struct bl_recover *r = rack();

	(void)state;
	assert_int_equal(bl_recover_away(r, 10 * MS, 3, 20000 * MS), BL_RECOVER_OK);
	saves(r, 10 * MS, 3);
	bl_recover_bye(r, 10 * MS, 3);
	one_dies(r, 20 * MS);
	r = next_leader(r, change, 6);
	all_say_hello(r, change + MS, 6, 3);
	pass(r, change, back - 1);
	assert_int_equal(hello(r, back, 3, 6), BL_RECOVER_OK);
	assert_int_equal(saves(r, back, 3), 1);
	bl_recover_tick(r, back + ANSWER / 2);
	assert_int_equal(bl_recover_done(r, back + ANSWER / 2, 3, 1), BL_RECOVER_OK);
	saves(r, back + ANSWER / 2, 0);
	assert_int_equal(state_of(r, 3), BL_DET_UP);
	assert_int_equal(bl_recover_failure(r, 1)->step, BL_RECOVER_RESUMED);
	bl_recover_free(r);
}

/* A node that came back, or whose time has passed, is not taken for absent by a later leader. */
static void away__is_over_for_the_next_leader(void **state)
{
	const uint64_t change = 30000 * MS;
	unsigned int came;

	(void)state;
	for (came = 0; came < 2; came++) {
		struct bl_recover *r = rack();

		assert_int_equal(bl_recover_away(r, 10 * MS, 3, 20000 * MS), BL_RECOVER_OK);
		saves(r, 10 * MS, 3);
		bl_recover_bye(r, 10 * MS, 3);
		if (came)
			assert_int_equal(hello(r, 1000 * MS, 3, 5), BL_RECOVER_OK);
		saves(r, 1000 * MS, 3);
		pass(r, 1000 * MS, 21000 * MS);
		bl_recover_bye(r, 21000 * MS, 3);
		one_dies(r, 21500 * MS);
		r = next_leader(r, change, 6);
		all_say_hello(r, change + MS, 6, 3);
		pass(r, change, change + GRACE + 2 * ANSWER);
		assert_int_not_equal(state_of(r, 3), BL_DET_UP);
		bl_recover_free(r);
	}
}

/* A record of another build, or a wrong one: no absence is longer than the limit. */
static void away__longer_than_any_is_cut(void **state)
{
	struct bl_recover *r = rack();
	struct bl_recover_node n = *bl_recover_node(r, 3);
	struct bl_recover *next = bl_recover_new(&cfg);

	(void)state;
	n.away_ns = UINT64_MAX;
	assert_int_equal(bl_recover_load_node(next, &n), 0);
	bl_recover_start(next, 0, 6);
	assert_int_equal(bl_recover_node(next, 3)->away_until, BL_RECOVER_AWAY_MAX_NS);
	bl_recover_free(next);
	bl_recover_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(away__is_acknowledged),
		cmocka_unit_test(away__is_saved),
		cmocka_unit_test(away__next_leader_waits),
		cmocka_unit_test(away__next_leader_hears_it),
		cmocka_unit_test(away__is_over_for_the_next_leader),
		cmocka_unit_test(away__longer_than_any_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
