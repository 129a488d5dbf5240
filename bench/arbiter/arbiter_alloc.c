/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline arbiter bench alloc: the experiment of Fastpass 7.3 (F), on one core. Requests of 10 MTUs
 * arrive as a Poisson process between uniformly distributed pairs. Every @tick slots, the allocator
 * gets the requests that have arrived, and runs. Only the time in bl_alloc_demand() and
 * bl_alloc_run() is measured.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arbiter/alloc/verify.h"
#include "base/time.h"
#include "bench/arbiter/arbiter.h"
#include "cli/util/out.h"

struct request {
	uint16_t src, dst;
};

/** struct trial - The measurement of one row. */
struct trial {
	struct bl_alloc_cfg cfg;
	double load;
	uint32_t tick;  /* slots between two runs of the allocator */
	uint32_t mtus;  /* of each request */
	uint64_t slots; /* to measure */
	struct arb_rnd rnd;
	double due;              /* when the next request arrives, in slots */
	double asked;            /* sum of arrival times over all requested MTUs */
	struct request *request; /* of a block: @nrequests of @maxrequests */
	uint32_t *first;         /* by tick of a block: its first request; one more than ticks */
	size_t nrequests, maxrequests;
	struct bl_grants *runs; /* by tick of a block: the result of the run */
	uint64_t *log;          /* grants of a block, which are verified after it */
	size_t nlog, maxlog;    /* used and allocated words of @log */
};

static bool draw_requests(struct trial *t, uint64_t now, uint32_t ticks)
{
	const double rate = t->cfg.endpoints * t->load / t->mtus;
	uint32_t q;

	t->nrequests = 0;
	for (q = 0; q < ticks; q++) {
		t->first[q] = (uint32_t)t->nrequests;
		while (t->due < (double)(now + (uint64_t)(q + 1) * t->tick)) {
			const uint32_t src = arb_below(&t->rnd, t->cfg.endpoints),
				       dst = arb_below(&t->rnd, t->cfg.endpoints - 1);

			if (t->nrequests == t->maxrequests) {
				struct request *more =
					realloc(t->request, 2 * t->maxrequests * sizeof(*more));

				if (!more)
					return false;
				t->request = more;
				t->maxrequests *= 2;
			}
			t->request[t->nrequests++] =
				(struct request){ (uint16_t)src, (uint16_t)(dst + (dst >= src)) };
			t->asked += t->due * t->mtus;
			t->due += -log1p(-arb_unit(&t->rnd)) / rate;
		}
	}
	t->first[ticks] = (uint32_t)t->nrequests;
	return true;
}

static bool log_grants(struct trial *t, struct bl_grants *g)
{
	if (t->nlog + g->len > t->maxlog) {
		size_t max = 2 * t->maxlog + g->len;
		uint64_t *more = realloc(t->log, max * sizeof(*more));

		if (!more)
			return false;
		t->log = more;
		t->maxlog = max;
	}
	memcpy(&t->log[t->nlog], g->row, g->len * sizeof(*t->log));
	t->nlog += g->len;
	return true;
}

/*
 * Runs one block of @ticks ticks from slot @now. Requests are drawn before it, and grants verified
 * after it.
 * @ns, @mtus: get the measured time and the MTUs that were granted
 * Returns 0, or 1 after a message.
 */
static int run_block(struct trial *t, struct bl_alloc *a, struct bl_verify *v, uint64_t now,
		     uint32_t ticks, uint64_t *ns, uint64_t *mtus)
{
	uint64_t start;
	size_t at = 0;
	uint32_t q, i;

	if (!draw_requests(t, now, ticks))
		return cli_fail("out of memory");
	t->nlog = 0;
	*ns = 0;
	*mtus = 0;
	for (q = 0; q < ticks; q++) {
		/* when all requests of the tick have arrived */
		const uint64_t slot = now + (uint64_t)(q + 1) * t->tick;

		start = bl_mono_ns();
		for (i = t->first[q]; i < t->first[q + 1]; i++)
			if (bl_alloc_demand(a, t->request[i].src, t->request[i].dst, t->mtus,
					    slot + 10 * t->mtus))
				return cli_fail("a demand was refused: %" PRIu64 " MTUs wait at %u "
						"endpoints, which cannot carry this load",
						bl_alloc_waiting(a), t->cfg.endpoints);
		t->runs[q] = bl_alloc_run(a, slot);
		*ns += bl_mono_ns() - start;
		*mtus += t->runs[q].mtus;
		if (!log_grants(t, &t->runs[q]))
			return cli_fail("out of memory");
	}
	for (q = 0; q < ticks; q++) {
		t->runs[q].row = &t->log[at];
		at += t->runs[q].len;
		for (i = t->first[q]; i < t->first[q + 1]; i++)
			bl_verify_demand(v, t->request[i].src, t->request[i].dst, t->mtus);
		if (!bl_verify_run(v, &t->runs[q], now + (uint64_t)(q + 1) * t->tick))
			return cli_fail("the schedule is wrong: %s", bl_verify_error(v));
	}
	return 0;
}

static json_t *measure_trial(struct trial *t)
{
	double cost[ARB_BLOCKS], best, ns_packet, ns_slot[ARB_BLOCKS], slot_ns, delay;
	const uint32_t ticks = (uint32_t)(t->slots / ARB_BLOCKS / t->tick) + 1;
	const uint64_t span = (uint64_t)ticks * t->tick;
	uint64_t ns, mtus, sum = 0, now = 0, warm;
	struct bl_verify *v = bl_verify_new(&t->cfg);
	const char *why = "out of memory";
	struct bl_alloc *a = v ? bl_alloc_new(&t->cfg, &why) : NULL;
	json_t *row = NULL;
	unsigned int b;

	t->maxrequests = 4096;
	t->maxlog = 1 << 16;
	t->request = malloc(t->maxrequests * sizeof(*t->request));
	t->first = calloc(ticks + 1, sizeof(*t->first));
	t->runs = calloc(ticks, sizeof(*t->runs));
	t->log = malloc(t->maxlog * sizeof(*t->log));
	if (!a || !t->request || !t->first || !t->runs || !t->log) {
		cli_fail("%s", why);
		goto out;
	}
	/*
	 * Warm up until the backlog has reached its steady state, which takes some thousand slots
	 * near full load.
	 */
	for (warm = 0; warm < t->slots / 3 || warm < 4096; warm += span, now += span)
		if (run_block(t, a, v, now, ticks, &ns, &mtus))
			goto out;
	for (b = 0; b < ARB_BLOCKS; b++, now += span) {
		if (run_block(t, a, v, now, ticks, &ns, &mtus))
			goto out;
		cost[b] = mtus ? (double)ns / (double)mtus : 0;
		ns_slot[b] = (double)ns / (double)span;
		sum += mtus;
	}
	/* MTUs that are still waiting count with the time until now */
	delay = ((double)bl_verify_slot_sum(v) + (double)bl_alloc_waiting(a) * (double)now -
		 t->asked) /
		(double)bl_alloc_stats(a)->demanded_mtus;
	ns_packet = arb_median(cost, ARB_BLOCKS);
	slot_ns = arb_median(ns_slot, ARB_BLOCKS);
	best = cost[0];
	row = json_pack(
		"{s:I, s:s, s:I, s:I, s:s, s:f, s:f, s:f, s:f, s:I, s:b, s:f, s:I, s:I, s:f, s:f}",
		"endpoints", (json_int_t)t->cfg.endpoints, "policy",
		bl_alloc_policy_name(t->cfg.policy), "window", (json_int_t)bl_alloc_window(&t->cfg),
		"tick", (json_int_t)t->tick, "isa", bl_alloc_isa(a), "load", 100 * t->load,
		"ns_packet", ns_packet, "ns_packet_best", best, "ns_slot", slot_ns, "gbps",
		(json_int_t)(ns_packet > 0 ? ARB_SLOT_BITS / ns_packet : 0), "keeps_up",
		slot_ns <= ARB_SLOT_NS, "carried",
		100.0 * (double)sum / (double)(span * ARB_BLOCKS) / t->cfg.endpoints, "waiting",
		(json_int_t)bl_alloc_waiting(a), "verified", (json_int_t)bl_verify_packets(v),
		"delay", delay, "visits_packet",
		(double)bl_alloc_stats(a)->visits /
			(double)(bl_alloc_stats(a)->granted_mtus ? bl_alloc_stats(a)->granted_mtus
								 : 1));
out:
	free(t->request);
	free(t->first);
	free(t->runs);
	free(t->log);
	bl_alloc_free(a);
	bl_verify_free(v);
	return row;
}

/* measures and appends one row; @window 0: that of the options, or the default of the policy */
static int add_row(json_t *rows, const struct arb_args *a, uint32_t endpoints,
		   enum bl_alloc_policy policy, double load, uint32_t window)
{
	struct trial t = { .load = a->load > 0 ? a->load : load,
			   .tick = a->tick ? (uint32_t)a->tick : 16,
			   .mtus = a->mtus ? (uint32_t)a->mtus : 10 };
	json_t *row;

	t.cfg.endpoints = endpoints;
	t.cfg.policy = policy;
	t.cfg.window_slots = window ? window : (uint32_t)a->window;
	t.cfg.isa = (enum bl_alloc_isa)a->isa;
	t.rnd.x = (uint64_t)a->seed;
	/* about 20 million packets: with many endpoints a slot takes long to verify */
	t.slots = a->slots                        ? (uint64_t)a->slots
		  : 20000000 / endpoints > 100000 ? 100000
						  : 20000000 / endpoints;
	out_progress("alloc: %u endpoints, %s, load %.2f ...", endpoints,
		     bl_alloc_policy_name(policy), t.load);
	row = measure_trial(&t);
	return row ? json_array_append_new(rows, row) : -1;
}

/* appends the rows of one policy and size: for the load of the options, or for two loads */
static int add_rows(json_t *rows, const struct arb_args *a, uint32_t endpoints,
		    enum bl_alloc_policy policy, double low, double high, uint32_t window)
{
	if (a->policy >= 0 && (int)policy != a->policy)
		return 0;
	if (add_row(rows, a, endpoints, policy, low, window))
		return -1;
	return a->load > 0 ? 0 : add_row(rows, a, endpoints, policy, high, window);
}

static json_t *measure_alloc(const struct arb_args *a)
{
	static const double loads[] = { 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95 };
	static const enum bl_alloc_policy both[] = { BL_ALLOC_FIRST, BL_ALLOC_FAIR };
	static const enum bl_alloc_policy others[] = { BL_ALLOC_WEIGHTED, BL_ALLOC_FCT,
						       BL_ALLOC_DEADLINE };
	static const uint32_t sizes[] = { 64, 512, 1024, 4096 };
	json_t *rows = json_array();
	const uint32_t n = a->endpoints ? (uint32_t)a->endpoints : 256;
	unsigned int i, p, err = 0;

	for (p = 0; !err && p < 2; p++)
		for (i = 0; !err && i < (a->load > 0 ? 1 : sizeof(loads) / sizeof(loads[0])); i++)
			if (a->policy < 0 || (int)both[p] == a->policy)
				err = add_row(rows, a, n, both[p], loads[i], 0) != 0;
	/* max-min fair with smaller windows, to show what the window costs and saves */
	for (i = 64; !err && !a->window && i <= 256; i *= 4)
		err = add_rows(rows, a, n, BL_ALLOC_FAIR, 0.9, 0.95, i) != 0;
	for (p = 0; !err && p < sizeof(others) / sizeof(others[0]); p++)
		err = add_rows(rows, a, n, others[p], 0.5, 0.9, 0) != 0;
	for (p = 0; !a->endpoints && p < 2; p++)
		for (i = 0; !err && i < sizeof(sizes) / sizeof(sizes[0]); i++)
			err = add_rows(rows, a, sizes[i], both[p], 0.5, 0.9, 0) != 0;
	if (!err)
		return rows;
	json_decref(rows);
	return NULL;
}

static const struct col alloc_cols[] = {
	{ "endpoints", "endpoints", 'd' }, { "policy", "policy", 's' },
	{ "window", "window", 'd' },       { "load", "load %", 'f' },
	{ "ns_packet", "ns/packet", 'f' }, { "ns_packet_best", "best", 'f' },
	{ "ns_slot", "ns/slot", 'f' },     { "gbps", "Gbit/s one core", 'd' },
	{ "keeps_up", "keeps up", 'b' },   { "carried", "carried %", 'f' },
	{ "delay", "delay slots", 'f' },   { "verified", "packets verified", 'd' },
};

const struct arb_bench arb_bench_alloc = { "alloc", measure_alloc, alloc_cols,
					   sizeof(alloc_cols) / sizeof(alloc_cols[0]) };
