// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * controller/status.c: the JSON object that `barline controller show` reads. Names come from agents
 * and may hold any character; the object has to stay one that a JSON parser accepts.
 */
#include <jansson.h>

#include "tests/unit/controller/recover/recover_rack.h"

#include "controller/ctl_priv.h"
#include "controller/status.h"

static struct bl_ctl ctl;

static int status_setup(void **state)
{
	(void)state;
	memset(&ctl, 0, sizeof(ctl));
	assert_int_equal(pthread_mutex_init(&ctl.lock, NULL), 0);
	snprintf(ctl.cfg.advertise, sizeof(ctl.cfg.advertise), "10.0.0.1:61693");
	snprintf(ctl.cfg.sqlite, sizeof(ctl.cfg.sqlite), "/tmp/ctl.db");
	ctl.elected = 5;
	ctl.rec = rack(2);
	return 0;
}

static int status_teardown(void **state)
{
	(void)state;
	bl_recover_free(ctl.rec);
	pthread_mutex_destroy(&ctl.lock);
	return 0;
}

static json_t *parsed_status(void)
{
	char *text = bl_ctl_text(&ctl);
	json_t *o;

	assert_non_null(text);
	o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	free(text);
	return o;
}

static const char *member(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	assert_non_null(text);
	return text;
}

/* Quotes, backslashes and control characters in names and texts arrive as they were sent. */
static void text__quotes_and_backslashes_survive(void **state)
{
	static const char name[] = "rack\"1\\h1\t\001";
	struct bl_recover_hello h = hello_host(1);
	json_t *o, *n;

	(void)state;
	snprintf(h.name, sizeof(h.name), "%s", name);
	assert_int_equal(bl_recover_hello(ctl.rec, MS, &h), BL_RECOVER_OK);
	outs(ctl.rec);
	snprintf(ctl.leader, sizeof(ctl.leader), "a\"b\\c");
	snprintf(ctl.trouble, sizeof(ctl.trouble), "the store \"x\\y\" is full");
	snprintf(ctl.cfg.sqlite, sizeof(ctl.cfg.sqlite), "/var/lib/\"ctl\\.db");
	o = parsed_status();
	n = json_array_get(json_object_get(o, "nodes"), 0);
	assert_int_equal(json_integer_value(json_object_get(n, "node")), 1);
	assert_string_equal(member(n, "name"), name);
	assert_string_equal(member(o, "leader"), "a\"b\\c");
	assert_string_equal(member(o, "trouble"), "the store \"x\\y\" is full");
	assert_string_equal(member(o, "store"), "/var/lib/\"ctl\\.db");
	json_decref(o);
}

/* The keys of the object, and the members of a node's row, with their types and in this order. */
static void text__keys_in_their_order(void **state)
{
	static const char *const keys[] = { "addr",      "pid",    "state",    "epoch",
					    "leader",    "store",  "trouble",  "lost",
					    "sessions",  "counts", "refused",  "strangers",
					    "admission", "nodes",  "failures", "epochs" };
	json_t *o = parsed_status(), *v;
	const char *key;
	size_t i = 0;

	(void)state;
	json_object_foreach(o, key, v)
	{
		assert_true(i < ARRAY_SIZE(keys));
		assert_string_equal(key, keys[i++]);
	}
	assert_int_equal(i, ARRAY_SIZE(keys));
	assert_string_equal(member(o, "state"), "leader");
	assert_true(json_is_integer(json_object_get(o, "epoch")));
	assert_true(json_is_object(json_object_get(o, "counts")));
	assert_int_equal(json_array_size(json_object_get(o, "nodes")), 3);
	json_decref(o);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, status_setup, status_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(text__quotes_and_backslashes_survive),
		CASE(text__keys_in_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
