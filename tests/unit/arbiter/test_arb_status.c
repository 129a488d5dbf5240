// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the status sockets of the arbiter (arbiter/status.c) and of fault isolation
 * (arbiter/faults/faultd.c) answer: one line of JSON with the keys in the documented order, in
 * which any name survives.
 */
#include "arbiter/engine.h" /* first, for <netinet/in.h> */
#include "arbiter/faults/faultd.h"
#include "arbiter/arb.h"
#include "arbiter/status.h"
#include "arbiter/status_json.h"

#include "arbiter/alloc/alloc.h"
#include "tests/unit/unit.h"

#define QUOTED "a\"b\\c" /* a"b\c */

/* the address 127.0.0.@last as IPv6 */
#define LOOPBACK(last)                                                    \
	{                                                                 \
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, last \
	}

static struct bl_fp_peer peers[] = {
	{ .name = QUOTED, .addr = LOOPBACK(2), .rack = 0, .cap = 1 },
	{ .name = "plain", .addr = LOOPBACK(3), .rack = 1, .cap = 1 },
};

/* two hosts in two racks; the service listens on 127.0.0.77, which no other test uses */
static const struct bl_fp_file file = {
	.slot_ns = 1230,
	.slot_bytes = 1514,
	.policy = BL_ALLOC_FAIR,
	.window_slots = 128,
	.quota = 65536,
	.arbiter = { LOOPBACK(9) },
	.narbiters = 1,
	.faults = LOOPBACK(77),
	.has_faults = true,
	.fault_report_us = 10000,
	.fault_settle_us = 2000,
	.fault_frames = 50,
	.fault_percent = 1,
	.fault_hold_ms = 5000,
	.peer = peers,
	.npeers = ARRAY_SIZE(peers),
	.nracks = 2,
	.paths = 2,
	.path_cap = 1,
};

/* @text is one line; returns the object in it. */
static json_t *line_parse(const char *text)
{
	json_error_t e;
	json_t *o = json_loads(text, 0, &e);

	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	if (!o)
		fail_msg("%s: %s", e.text, text);
	return o;
}

static void assert_keys(const json_t *o, const char *const *keys)
{
	void *at = json_object_iter((json_t *)o);

	for (; *keys; keys++, at = json_object_iter_next((json_t *)o, at)) {
		assert_non_null(at);
		assert_string_equal(json_object_iter_key(at), *keys);
	}
	assert_null(at);
}

static const char *text_at(const json_t *list, size_t i, const char *key)
{
	return json_string_value(json_object_get(json_array_get(list, i), key));
}

static void bl_arb_text__keys_and_names(void **state)
{
	static const char *const keys[] = {
		"pid",       "rank",      "addr",    "state",          "policy",
		"term",      "slot_ns",   "paths",   "granted",        "late",
		"stale",     "refunds",   "runs",    "run_ns",         "run_bins",
		"skipped",   "overrun",   "no_path", "faults_version", "faults_links",
		"takeovers", "yields",    "stalls",  "sent",           "send_failed",
		"packets",   "watchdogs", "faults",  "unknown",        "endpoints",
		NULL
	};
	static const char *const row[] = { "endpoint", "addr",    "rack",         "session",
					   "waiting",  "granted", "refused",      "capped",
					   "resets",   "gone",    "lost_packets", "packets",
					   NULL };
	struct bl_arb *a = aligned_alloc(64, (sizeof(*a) + 63) & ~63UL);
	struct arb_peer *rows = calloc(2, sizeof(*rows));
	const json_t *list;
	struct bl_engine *e;
	struct bl_err err;
	size_t len = 0;
	json_t *o;
	char *text;

	(void)state;
	memset(a, 0, sizeof(*a));
	a->cfg.nendpoints = 2;
	a->peer = rows;
	a->t.granted = 4;
	a->t.packets[BL_FCP_R_BAD_CHECK] = 3;
	rows[1].fcp.e.nonce = 1;
	assert_int_equal(bl_engine_new(&e, &file, &err), 0);
	text = bl_arb_text(a, &file, e, 0, &len);
	assert_int_equal(strlen(text), len);
	o = line_parse(text);
	assert_keys(o, keys);
	assert_string_equal(json_string_value(json_object_get(o, "addr")), "127.0.0.9");
	assert_string_equal(json_string_value(json_object_get(o, "policy")), "fair");
	assert_int_equal(json_integer_value(json_object_get(o, "granted")), 4);
	assert_int_equal(json_object_size(json_object_get(o, "packets")), 1);
	list = json_object_get(o, "endpoints");
	assert_int_equal(json_array_size(list), 2);
	assert_keys(json_array_get(list, 0), row);
	assert_string_equal(text_at(list, 0, "endpoint"), QUOTED);
	assert_string_equal(text_at(list, 1, "endpoint"), "plain");
	assert_true(json_is_false(json_object_get(json_array_get(list, 0), "session")));
	assert_true(json_is_true(json_object_get(json_array_get(list, 1), "session")));
	json_decref(o);
	free(text);
	bl_engine_free(e);
	free(rows);
	free(a);
}

static void bl_faultd_text__keys_and_names(void **state)
{
	static const char *const keys[] = { "pid",      "addr",      "version",     "avoided",
					    "pairs",    "unwatched", "unexplained", "evaluations",
					    "boots",    "sent",      "packets",     "links",
					    "arbiters", "hosts",     NULL };
	static const char *const host[] = { "host", "rack", "reports", "silent_ms", NULL };
	static const char *const arbiter[] = { "addr", "answered", "version", NULL };
	struct bl_faultd *d;
	struct bl_err err;
	const json_t *list;
	json_t *o;
	char *text;

	(void)state;
	if (bl_faultd_new(&d, &file, &err))
		fail_msg("%s", err.text);
	text = bl_faultd_text(d);
	o = line_parse(text);
	assert_keys(o, keys);
	assert_int_equal(json_integer_value(json_object_get(o, "version")), 1);
	list = json_object_get(o, "hosts");
	assert_int_equal(json_array_size(list), 2);
	assert_keys(json_array_get(list, 0), host);
	assert_string_equal(text_at(list, 0, "host"), QUOTED);
	assert_string_equal(text_at(list, 1, "host"), "plain");
	list = json_object_get(o, "arbiters");
	assert_keys(json_array_get(list, 0), arbiter);
	json_decref(o);
	free(text);
	bl_faultd_free(d);
}

/* JSON is UTF-8: text in another encoding keeps its ASCII characters. */
static void arb_json_text__not_utf8(void **state)
{
	static const struct {
		const char *in, *out;
	} t[] = {
		{ "", "" },
		{ QUOTED "\n", QUOTED "\n" },
		{ "k\xc3\xb6ln", "k\xc3\xb6ln" },
		{ "k\xf6ln\"", "k?ln\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		json_t *o = arb_json_text(t[i].in);

		assert_string_equal(json_string_value(o), t[i].out);
		json_decref(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_arb_text__keys_and_names),
		cmocka_unit_test(bl_faultd_text__keys_and_names),
		cmocka_unit_test(arb_json_text__not_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
