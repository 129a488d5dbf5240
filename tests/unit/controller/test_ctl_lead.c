// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * controller/lead.c and outputs.c: a controller that loses the lead and wins it again while the
 * store has not answered yet. The store is the test's: it keeps each request until the test answers
 * it.
 */
#include "tests/unit/controller/recover/recover_rack.h"

#include <unistd.h>

#include "controller/ctl_priv.h"
#include "controller/lead.h"
#include "controller/nodes.h"
#include "controller/outputs.h"
#include "controller/store/store_priv.h"

#define ASKED_MAX 16

/* A request that waits for its answer. */
struct asked {
	char key[BL_STORE_KEY_MAX + 1]; /* of a write */
	uint64_t epoch;
	bl_store_fn fn;
	void *ctx;
};

static struct bl_ctl ctl;
static struct bl_store store;
static const struct bl_store_candidate *candidate;
static struct asked reads[ASKED_MAX], writes[ASKED_MAX];
static unsigned int nreads, nwrites;

static void store_range(struct bl_store *s, const char *prefix, bool one, bl_store_fn fn, void *ctx)
{
	struct asked *a = &reads[nreads++];

	assert_true(nreads <= ASKED_MAX && !*prefix && !one);
	*a = (struct asked){ .epoch = s->epoch, .fn = fn, .ctx = ctx };
}

static void store_put(struct bl_store *s, uint64_t epoch, const char *key, uint64_t rev,
		      const void *value, size_t len, bl_store_fn fn, void *ctx)
{
	struct asked *a = &writes[nwrites++];

	(void)s, (void)rev, (void)value, (void)len;
	assert_true(nwrites <= ASKED_MAX);
	*a = (struct asked){ .epoch = epoch, .fn = fn, .ctx = ctx };
	snprintf(a->key, sizeof(a->key), "%s", key);
}

static int store_campaign(struct bl_store *s, const char *me, const struct bl_store_candidate *c,
			  struct bl_err *err)
{
	(void)s, (void)me, (void)err;
	candidate = c;
	return 0;
}

static void store_close(struct bl_store *s)
{
	(void)s;
}

static const struct bl_store_ops ops = {
	.close = store_close, .range = store_range, .put = store_put, .campaign = store_campaign
};

static int lead_setup(void **state)
{
	struct bl_err err;

	(void)state;
	memset(&ctl, 0, sizeof(ctl));
	nreads = nwrites = 0;
	assert_int_equal(pthread_mutex_init(&ctl.lock, NULL), 0);
	assert_true(sd_event_new(&ctl.ev) >= 0);
	store = (struct bl_store){ .ops = &ops, .ev = ctl.ev, .held_until = UINT64_MAX };
	ctl.store = &store;
	ctl.rec = bl_recover_new(&cfg);
	assert_non_null(ctl.rec);
	assert_int_equal(ctl_outputs_open(&ctl, &err), 0);
	assert_int_equal(ctl_nodes_open(&ctl, &err), 0);
	assert_int_equal(ctl_lead_campaign(&ctl, &err), 0);
	return 0;
}

static int lead_teardown(void **state)
{
	(void)state;
	bl_store_close(&store);
	ctl_nodes_close(&ctl);
	ctl_outputs_close(&ctl);
	bl_recover_free(ctl.rec);
	sd_event_unref(ctl.ev);
	pthread_mutex_destroy(&ctl.lock);
	return 0;
}

static void elect(uint64_t epoch)
{
	store.epoch = epoch;
	candidate->elected(candidate->ctx, epoch);
}

static void lose(void)
{
	store.epoch = 0;
	candidate->lost(candidate->ctx, "the test says so");
}

/* Answers read number @k with @n records. */
static void answer_read(unsigned int k, const struct bl_store_kv *kv, size_t n)
{
	struct bl_store_reply r = { .outcome = BL_STORE_DONE, .kv = kv, .n = n };

	assert_true(k < nreads);
	r.epoch = reads[k].epoch;
	reads[k].fn(reads[k].ctx, &r);
}

/* Answers write number @k: it is done, and the key has revision @rev. */
static void answer_write(unsigned int k, uint64_t rev)
{
	struct bl_store_reply r = { .outcome = BL_STORE_DONE, .rev = rev };

	assert_true(k < nwrites);
	writes[k].fn(writes[k].ctx, &r);
}

/* Lets the event loop make the writes that wait, until there are @n in all. */
static void until_writes(unsigned int n)
{
	while (nwrites < n)
		assert_true(sd_event_run(ctl.ev, UINT64_MAX) > 0);
	assert_int_equal(nwrites, n);
}

/* Returns the number of the write of the record of node 1 in @epoch. */
static unsigned int node_write(uint64_t epoch)
{
	unsigned int k;

	for (k = 0; k < nwrites; k++)
		if (writes[k].epoch == epoch && !strcmp(writes[k].key, "node/00000001"))
			return k;
	fail();
	return 0;
}

/* Host 1 says HELLO; its record waits to be saved. */
static void hello(void)
{
	struct bl_recover_hello h;

	said_epoch = 0;
	h = hello_host(1);
	assert_int_equal(bl_recover_hello(ctl.rec, bl_mono_ns(), &h), BL_RECOVER_OK);
	ctl_outputs_run(&ctl);
}

static bool node_is_saved(void)
{
	return bl_recover_node(ctl.rec, 1)->saved;
}

/* The answer to a write of the present epoch counts, and the next write names its revision. */
static void saved__in_this_epoch(void **state)
{
	(void)state;
	elect(41);
	answer_read(0, NULL, 0);
	hello();
	until_writes(2); /* the epoch and the node */
	assert_false(node_is_saved());
	answer_write(node_write(41), 43);
	assert_true(node_is_saved());
	assert_int_equal(ctl_saved_find(&ctl, BL_RECOVER_SAVE_NODE, 1)->rev, 43);
}

/*
 * The answer to a write of an earlier epoch comes when the store was read anew: the entry that it
 * was for is freed. It is not taken for the answer to the write of the present epoch.
 */
static void saved__in_an_earlier_epoch(void **state)
{
	(void)state;
	elect(41);
	answer_read(0, NULL, 0);
	hello();
	until_writes(2);
	lose();
	elect(52);
	answer_read(1, NULL, 0);
	hello();
	until_writes(4);
	answer_write(node_write(41), 43);
	assert_false(node_is_saved());
	assert_int_equal(ctl_saved_find(&ctl, BL_RECOVER_SAVE_NODE, 1)->rev, 0);
	answer_write(node_write(52), 55);
	assert_true(node_is_saved());
	assert_int_equal(ctl_saved_find(&ctl, BL_RECOVER_SAVE_NODE, 1)->rev, 55);
	assert_false(ctl.stop);
}

/* The same while the store is still being read for the present epoch: the entry is left alone. */
static void saved__while_the_store_is_read(void **state)
{
	(void)state;
	elect(41);
	answer_read(0, NULL, 0);
	hello();
	until_writes(2);
	lose();
	elect(52);
	answer_write(node_write(41), 43);
	assert_int_equal(ctl_saved_find(&ctl, BL_RECOVER_SAVE_NODE, 1)->rev, 0);
	assert_true(ctl.loading);
	answer_read(1, NULL, 0);
	assert_false(ctl.loading);
	assert_null(bl_recover_node(ctl.rec, 1));
}

/*
 * The store is read for epoch 41 when the lead is lost. Another controller may have written before
 * it is won again, so that read does not count for epoch 52.
 */
static void read__of_an_earlier_epoch(void **state)
{
	(void)state;
	elect(41);
	lose();
	elect(52);
	assert_int_equal(nreads, 2);
	answer_read(0, NULL, 0);
	assert_true(ctl.loading);
	answer_read(1, NULL, 0);
	assert_false(ctl.loading);
	assert_int_equal(nreads, 2);
	until_writes(1);
	assert_int_equal(writes[0].epoch, 52);
}

/* It ends while another controller leads, or after the read of the next epoch. */
static void read__ends_at_another_time(void **state)
{
	(void)state;
	elect(41);
	lose();
	answer_read(0, NULL, 0);
	assert_int_equal(nreads, 1);
	elect(52);
	lose();
	elect(63);
	answer_read(2, NULL, 0);
	assert_false(ctl.loading);
	hello();
	answer_read(1, NULL, 0);
	assert_non_null(bl_recover_node(ctl.rec, 1));
	assert_int_equal(nreads, 3);
}

/* Asks for what `barline controller admit` and `remove` ask for, and waits for the first write. */
static void order(const char *name, bool remove, unsigned int writes_then)
{
	const uint64_t one = 1;

	ctl.order.step = CTL_ORDER_ASKED;
	ctl.order.remove = remove;
	ctl.order.id = 1;
	snprintf(ctl.order.name, sizeof(ctl.order.name), "%s", name);
	assert_int_equal(write(ctl.order.kick_fd, &one, sizeof(one)), sizeof(one));
	until_writes(writes_then);
	assert_int_equal(ctl.order.step, CTL_ORDER_SAVING);
}

/* An order is not ended by the answer to one of an earlier epoch, which has ended. */
static void order__of_an_earlier_epoch(void **state)
{
	(void)state;
	elect(41);
	answer_read(0, NULL, 0);
	order("h1", false, 2); /* after the epoch */
	lose();
	assert_int_equal(ctl.order.step, CTL_ORDER_ENDED);
	assert_non_null(strstr(ctl.order.trouble, "lost the lead"));
	elect(52);
	answer_read(1, NULL, 0);
	order("h1", false, 4);
	answer_write(1, 43);
	assert_int_equal(ctl.order.step, CTL_ORDER_SAVING);
	answer_write(3, 55);
	assert_int_equal(ctl.order.step, CTL_ORDER_ENDED);
	assert_string_equal(ctl.order.done, "node 1 (h1) is admitted");
	/* The removal of both records, one of which is asked for in the epoch before. */
	order("", true, 6);
	lose();
	elect(63);
	answer_read(2, NULL, 0);
	order("h1", false, 8);
	answer_write(7, 65);
	order("", true, 10);
	answer_write(4, 54);
	answer_write(5, 55);
	assert_int_equal(ctl.order.step, CTL_ORDER_SAVING);
	answer_write(8, 66);
	answer_write(9, 67);
	assert_string_equal(ctl.order.done, "node 1 is removed");
}

/* The key of a record is read as it was written, and no other text is. */
static void key__of_a_record(void **state)
{
	static const char *const bad[] = { "node/1",
					   "node/0000000g",
					   "node/100000000",
					   "node/00000001x",
					   "failure/7",
					   "failure/-000000007",
					   "admit/00000001",
					   "node",
					   "failure/00000000070",
					   "" };
	enum bl_recover_do what;
	char key[CTL_KEY_MAX];
	uint64_t id;

	(void)state;
	ctl_saved_key(key, BL_RECOVER_SAVE_NODE, 0xfedcba98);
	assert_string_equal(key, "node/fedcba98");
	assert_true(ctl_saved_parse(key, &what, &id));
	assert_int_equal(what, BL_RECOVER_SAVE_NODE);
	assert_int_equal(id, 0xfedcba98);
	ctl_saved_key(key, BL_RECOVER_SAVE_FAILURE, UINT64_MAX);
	assert_string_equal(key, "failure/18446744073709551615");
	assert_true(ctl_saved_parse(key, &what, &id));
	assert_int_equal(what, BL_RECOVER_SAVE_FAILURE);
	assert_true(id == UINT64_MAX);
	for (size_t k = 0; k < ARRAY_SIZE(bad); k++)
		if (ctl_saved_parse(bad[k], &what, &id))
			fail_msg("\"%s\" is read", bad[k]);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, lead_setup, lead_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(saved__in_this_epoch),
		CASE(saved__in_an_earlier_epoch),
		CASE(saved__while_the_store_is_read),
		CASE(read__of_an_earlier_epoch),
		CASE(read__ends_at_another_time),
		CASE(order__of_an_earlier_epoch),
		CASE(key__of_a_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
