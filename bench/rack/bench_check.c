/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checks that all receivers delivered in one order: compares the hashes that the workers kept
 * (bench.h) and finds the first difference.
 *
 * Best effort may lose a message; then its sender is told. (The ring of a veth, with 256 frames, is
 * full when a NAPI thread waits some milliseconds for a CPU.) Receivers that miss messages are not
 * compared with the others; they are in order if their timestamps never decrease. Some losses are
 * not reported to senders, because reports get lost, too, and the loss of a last message is not
 * noticed. But if messages are missing although no frame was lost, the promise is broken.
 */
#include <inttypes.h>
#include <string.h>

#include "bench/rack/bench.h"
#include "cli/util/out.h"
#include "cli/util/read.h"

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/**
 * first_difference - Returns the first position at which @a and @b differ, or UINT64_MAX if they
 * are equal as far as both delivered. Beyond the log, only the interval of BENCH_CHECK deliveries
 * is known; then *@exact is false.
 */
static uint64_t first_difference(const struct bench_worker *a, const struct bench_worker *b,
				 bool *exact)
{
	uint64_t na = atomic_load(&a->delivered), nb = atomic_load(&b->delivered),
		 n = least_of(na, nb), i;

	*exact = true;
	if (na == nb && a->hash == b->hash)
		return UINT64_MAX;
	for (i = 0; i < n && i < BENCH_LOG; i++)
		if (a->log[i] != b->log[i])
			return i;
	*exact = false;
	for (i = 1; i * BENCH_CHECK <= n && i < BENCH_CHECKS; i++)
		if (a->check[i] != b->check[i])
			return (i - 1) * BENCH_CHECK;
	*exact = true;
	if (na == nb)
		return (n - 1) / BENCH_CHECK *
		       BENCH_CHECK; /* equal up to the last kept hash, not at the end */
	return UINT64_MAX;
}

int bench_order(const struct bench_ctl *ctl, json_t *res)
{
	uint64_t missing = 0, dups = 0, back = 0, failed = 0, late = 0, expect = 0,
		 shortest = UINT64_MAX;
	bool lossy = ctl->p.loss > 0 && !ctl->p.reliable; /* each receiver misses other messages */
	unsigned int i, k, whole = 0;
	int err = 0;
	json_t *o, *hashes = json_array();

	for (i = 0; i < ctl->n; i++)
		expect += atomic_load(&ctl->w[i].sent);
	for (i = 0; i < ctl->n; i++) {
		const struct bench_worker *w = &ctl->w[i];
		uint64_t n = atomic_load(&w->delivered);
		char hex[20];

		/* counted here, because a receiver notices a gap only if a message follows it */
		missing += least_of(n, expect) < expect ? expect - n : 0;
		dups += w->duplicates;
		back += w->ts_backwards;
		failed += w->send_failed;
		late += w->stats.late_dropped;
		shortest = least_of(shortest, n);
		snprintf(hex, sizeof(hex), "%016" PRIx64, w->hash);
		json_array_append_new(hashes, json_pack("{s:I, s:s}", "delivered", (json_int_t)n,
							"hash", hex));
	}
	o = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "compared", (json_int_t)shortest,
		      "expected", (json_int_t)expect, "missing", (json_int_t)missing, "duplicates",
		      (json_int_t)dups, "ts_backwards", (json_int_t)back, "send_failed",
		      (json_int_t)failed, "late_dropped", (json_int_t)late, "workers", hashes);
	json_object_set_new(res, "order", o);
	for (i = 0; i < ctl->n && atomic_load(&ctl->w[i].delivered) != expect; i++)
		;
	for (k = i, whole = 0; k < ctl->n && !lossy; k++) {
		bool exact;
		uint64_t at;

		if (atomic_load(&ctl->w[k].delivered) != expect)
			continue;
		whole++;
		at = first_difference(&ctl->w[i], &ctl->w[k], &exact);
		if (at == UINT64_MAX)
			continue;
		json_object_set_new(o, "differs_at", json_integer((json_int_t)at));
		if (exact && at < BENCH_LOG)
			err = cli_fail("receivers %u and %u differ first at position %" PRIu64
				       ": sender %u number %u there, sender %u number %u here",
				       i + 1, k + 1, at,
				       (unsigned int)(ctl->w[i].log[at] >> 32) + 1,
				       (unsigned int)ctl->w[i].log[at],
				       (unsigned int)(ctl->w[k].log[at] >> 32) + 1,
				       (unsigned int)ctl->w[k].log[at]);
		else
			err = cli_fail("receivers %u and %u differ first between positions %" PRIu64
				       " and %" PRIu64,
				       i + 1, k + 1, at, at + BENCH_CHECK);
		break;
	}
	if (!lossy)
		json_object_set_new(o, "whole", json_integer(whole));
	if (back || dups)
		err = cli_fail("delivered out of order: %" PRIu64 " timestamps went back, %" PRIu64
			       " duplicates",
			       back, dups);
	if (!err && ctl->p.reliable && missing)
		err = cli_fail("%" PRIu64 " of %" PRIu64 " messages are missing; `barline show "
			       "drops` tells where they went",
			       missing, expect * ctl->n);
	if (!lossy || err)
		json_object_set_new(o, "one_order", json_boolean(!err));
	return err;
}

/*
 * Returns whether a counter shows that frames were dropped. Relayed beacons that carried no news
 * (clone_stale) do not count.
 */
static bool lost_any(const json_t *drops)
{
	const json_t *row;
	size_t i;

	json_array_foreach(drops, i, row)
	{
		const char *kind = json_string_value(json_object_get(row, "kind")),
			   *reason = json_string_value(json_object_get(row, "reason"));

		if (kind && reason &&
		    (!strcmp(kind, "link") ||
		     (!strcmp(kind, "drop") && strcmp(reason, reason_name(BL_R_CLONE_STALE)))))
			return true;
	}
	return false;
}

int bench_missing(const json_t *res)
{
	const json_t *o = json_object_get(res, "order");
	json_int_t missing = json_integer_value(json_object_get(o, "missing")),
		   told = json_integer_value(json_object_get(o, "send_failed"));

	if (!json_object_get(o, "whole") || missing <= told ||
	    lost_any(json_object_get(res, "drops")))
		return 0;
	return cli_fail("%" JSON_INTEGER_FORMAT " messages are missing, senders were told of "
			"%" JSON_INTEGER_FORMAT ", and no counter shows "
			"that anything was lost",
			missing, told);
}
