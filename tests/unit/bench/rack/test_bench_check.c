// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A test of the judge of `lab run rack` (bench/rack/bench_check.c): three workers with made-up
 * sequences.
 */
#include <sys/mman.h>

#include "tests/unit/unit.h"

#include "bench/rack/bench.h"
#include "maps/reasons_abi.h"

static char said[512];

/* Replaces cli/util: see WRAP_test_bench_check in the Makefile. */
int __wrap_cli_fail(const char *fmt, ...);
const char *__wrap_reason_name(unsigned int r);

int __wrap_cli_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said, sizeof(said), fmt, ap);
	va_end(ap);
	return 1;
}

const char *__wrap_reason_name(unsigned int r)
{
	static const char *const names[] = {
#define NAME(sym, name, kind, text) name,
		BL_REASONS(NAME)
	};

	return r < ARRAY_SIZE(names) ? names[r] : "";
}

static struct bench_ctl *ctl; /* It is large, but only touched pages use memory. */

static void fill_log(unsigned int w, uint64_t n)
{
	struct bench_worker *v = &ctl->w[w];
	uint64_t i;

	atomic_store(&v->delivered, n);
	v->hash = 1000 + n;
	for (i = 0; i < n; i++)
		v->log[i] = (i % 3) << 32 | (i / 3);
}

/* Three workers, each of which sent three messages to all. */
static void setup_three(void)
{
	unsigned int i;

	if (ctl)
		munmap(ctl, sizeof(*ctl));
	ctl = mmap(NULL, sizeof(*ctl), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(ctl != MAP_FAILED);
	ctl->n = 3;
	for (i = 0; i < 3; i++) {
		atomic_store(&ctl->w[i].sent, 3);
		fill_log(i, 9);
	}
	said[0] = 0;
}

static void order__table(void **state)
{
	static const struct {
		const char *name;
		uint64_t got[3]; /* of nine; 0: all */
		bool swapped, reliable;
		double loss;
		unsigned int back, twice;     /* at the second worker */
		int err, whole, missing, one; /* -1: not printed */
		const char *text;
	} t[] = {
		{ "one order", .whole = 3, .one = 1, .text = "" },
		{ "two change places", .swapped = true, .err = 1, .whole = 3,
		  .text = "receivers 1 and 3 differ first at position 4: sender 2 number 1 there, "
			  "sender 3 number 1 here" },
		{ "one misses some", { 0, 7 }, .whole = 2, .missing = 2, .one = 1, .text = "" },
		{ "all miss some", { 7, 7, 7 }, .missing = 6, .one = 1, .text = "" },
		{ "one misses some of the reliable stream",
		  { 0, 7 },
		  .reliable = true,
		  .err = 1,
		  .whole = 2,
		  .missing = 2,
		  .text = "2 of 27 messages are missing; `barline show drops` tells where they "
			  "went" },
		{ "a timestamp went back where some are missing",
		  { 0, 7 },
		  .back = 1,
		  .err = 1,
		  .whole = 2,
		  .missing = 2,
		  .text = "delivered out of order: 1 timestamps went back, 0 duplicates" },
		{ "a message twice", .twice = 1, .err = 1, .whole = 3,
		  .text = "delivered out of order: 0 timestamps went back, 1 duplicates" },
		{ "loss is wanted: receivers are not compared",
		  { 0, 7 },
		  .loss = 0.1,
		  .whole = -1,
		  .missing = 2,
		  .one = -1,
		  .text = "" },
		{ "loss is wanted, and a timestamp went back",
		  { 0, 7 },
		  .loss = 0.1,
		  .back = 1,
		  .err = 1,
		  .whole = -1,
		  .missing = 2,
		  .text = "delivered out of order: 1 timestamps went back, 0 duplicates" },
	};
	unsigned int i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		json_t *res = json_object(), *o;
		uint64_t was;

		setup_three();
		for (k = 0; k < 3; k++)
			if (t[i].got[k])
				fill_log(k, t[i].got[k]);
		if (t[i].swapped) {
			was = ctl->w[2].log[4];
			ctl->w[2].log[4] = ctl->w[2].log[5];
			ctl->w[2].log[5] = was;
			ctl->w[2].hash++;
		}
		ctl->p.reliable = t[i].reliable;
		ctl->p.loss = t[i].loss;
		ctl->w[1].ts_backwards = t[i].back;
		ctl->w[1].duplicates = t[i].twice;
		if (bench_order(ctl, res) != t[i].err || strcmp(said, t[i].text))
			fail_msg("%s: \"%s\"", t[i].name, said);
		o = json_object_get(res, "order");
		assert_int_equal(json_integer_value(json_object_get(o, "missing")), t[i].missing);
		assert_int_equal(json_object_get(o, "whole")
					 ? json_integer_value(json_object_get(o, "whole"))
					 : -1,
				 t[i].whole);
		assert_int_equal(json_object_get(o, "one_order")
					 ? json_is_true(json_object_get(o, "one_order"))
					 : -1,
				 t[i].one);
		assert_int_equal(json_object_get(o, "differs_at") != NULL, t[i].swapped);
		json_decref(res);
	}
}

/* Messages that are missing, were not reported, and are in no counter. */
static void missing__table(void **state)
{
	static const struct {
		const char *res;
		int err;
	} t[] = {
		{ "{}", 0 },
		{ "{\"order\": {\"whole\": 8, \"missing\": 0, \"send_failed\": 0}, \"drops\": []}",
		  0 },
		{ "{\"order\": {\"whole\": 7, \"missing\": 5, \"send_failed\": 5}, \"drops\": []}",
		  0 },
		{ "{\"order\": {\"whole\": 7, \"missing\": 5, \"send_failed\": 6}, \"drops\": []}",
		  0 },
		{ "{\"order\": {\"whole\": 7, \"missing\": 5, \"send_failed\": 4}, \"drops\": []}",
		  1 },
		{ "{\"order\": {\"whole\": 7, \"missing\": 5, \"send_failed\": 4}, \"drops\": "
		  "[{\"kind\": \"link\", \"reason\": \"eth0 tx_dropped\"}]}",
		  0 },
		{ "{\"order\": {\"whole\": 7, \"missing\": 5, \"send_failed\": 4}, \"drops\": "
		  "[{\"kind\": \"drop\", \"reason\": \"queue_full\"}]}",
		  0 },
		{ "{\"order\": {\"whole\": 7, \"missing\": 5, \"send_failed\": 4}, \"drops\": "
		  "[{\"kind\": \"drop\", \"reason\": \"clone_stale\"}, {\"kind\": \"note\", "
		  "\"reason\": \"joined\"}]}",
		  1 },
		/* Loss was configured. */
		{ "{\"order\": {\"missing\": 5, \"send_failed\": 4}, \"drops\": []}", 0 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		json_t *res = json_loads(t[i].res, 0, NULL);

		assert_non_null(res);
		said[0] = 0;
		if (bench_missing(res) != t[i].err || strcmp(said, t[i].err ? "5 messages are "
									      "missing, senders "
									      "were told of 4, and "
									      "no counter shows "
									      "that anything was "
									      "lost"
									    : ""))
			fail_msg("row %u: \"%s\"", i, said);
		json_decref(res);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order__table),
		cmocka_unit_test(missing__table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
