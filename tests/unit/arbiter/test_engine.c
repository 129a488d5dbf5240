// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of arbiter/engine.c and arbiter/assign.c: what the allocator gave, slot by slot with paths.
 * Every slot is counted again here, by endpoint, by rack and path, and by pair: nothing is lost or
 * doubled on the way.
 */
#include "arbiter/engine.h" /* first, for <netinet/in.h> */
#include "arbiter/arb.h"

#include <errno.h>
#include <stdarg.h>

#include "arbiter/alloc/alloc.h"
#include "core/fastpass/fcp_core.h"
#include "tests/unit/unit.h"

int bl_fail(struct bl_err *err, int errnum, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -errnum;
}

void bl_log(int level, const char *fmt, ...);
void bl_log(int level, const char *fmt, ...)
{
	(void)level;
	(void)fmt;
}

#define HOSTS 24
#define RACKS 3
#define MAX   8192

#define SLOTS 1024

/** struct slot_use - Packets of one slot. */
struct slot_use {
	uint64_t slot;
	uint8_t src[HOSTS], dst[HOSTS]; /* by endpoint */
	/* by rack and path (three tiers: aggregation switch), and by pod and path */
	uint8_t up[RACKS][64], down[RACKS][64], core_up[RACKS][64], core_down[RACKS][64];
};

/** struct net - A network, and what was asked for and given, in MTUs of each pair. */
struct net {
	struct bl_fp_file f;
	struct bl_fp_peer peer[HOSTS];
	struct bl_engine *e;
	uint64_t now; /* slot of demands */
	uint32_t asked[HOSTS][HOSTS];
	uint32_t given[HOSTS][HOSTS]; /* came out with a path, or without needing one */
	uint32_t back[HOSTS][HOSTS];  /* refunds */
	uint32_t again[HOSTS][HOSTS]; /* asked for again */
	struct arb_grant g[MAX];
	struct slot_use use[SLOTS];      /* [slot % SLOTS] */
	uint32_t paths_of[RACKS][RACKS]; /* bits of paths that were given */
};

/* racks 0 and 1 are pod 0, rack 2 is pod 1 */
static uint16_t pod_of[RACKS] = { 0, 0, 1 };

static struct net *open_net_as(uint32_t paths, uint32_t cap, bool euler, uint32_t cores,
			       uint32_t core_cap)
{
	struct net *n = calloc(1, sizeof(*n));
	struct bl_err err;
	uint32_t i;

	n->f = (struct bl_fp_file){ .slot_ns = 1230,
				    .slot_bytes = 1514,
				    .policy = BL_ALLOC_FAIR,
				    .window_slots = 128,
				    .quota = 65536,
				    .paths = paths,
				    .path_cap = cap,
				    .euler = euler,
				    .peer = n->peer,
				    .npeers = HOSTS,
				    .nracks = RACKS,
				    .cores = cores,
				    .core_cap = core_cap,
				    .pod_of = cores ? pod_of : NULL,
				    .npods = cores ? 2 : 0 };
	for (i = 0; i < HOSTS; i++) {
		n->peer[i].rack = (uint16_t)(i % RACKS);
		n->peer[i].cap = 1;
	}
	assert_int_equal(bl_engine_new(&n->e, &n->f, &err), 0);
	return n;
}

static struct net *open_net(uint32_t paths, uint32_t cap, bool euler)
{
	return open_net_as(paths, cap, euler, 0, 0);
}

static void close_net(struct net *n)
{
	bl_engine_free(n->e);
	free(n);
}

static void ask(struct net *n, uint32_t src, uint32_t dst, uint32_t mtus)
{
	assert_int_equal(bl_engine_ops(n->e)->demand(bl_engine_alloc(n->e), src, dst, mtus, n->now),
			 0);
	n->asked[src][dst] += src == dst ? 0 : mtus;
}

/* Returns what all runs so far have put into @slot. */
static struct slot_use *use_of(struct net *n, uint64_t slot)
{
	struct slot_use *u = &n->use[slot % SLOTS];

	if (u->slot != slot) {
		memset(u, 0, sizeof(*u));
		u->slot = slot;
	}
	return u;
}

/* Counts a packet from rack @a to rack @b on path @k at every link that it uses. */
static void use_path(struct net *n, struct slot_use *u, uint32_t a, uint32_t b, uint32_t k)
{
	uint32_t cores = n->f.npods ? n->f.cores : 1;

	assert_in_range(++u->up[a][k / cores], 1, n->f.path_cap);
	assert_in_range(++u->down[b][k / cores], 1, n->f.path_cap);
	if (!n->f.npods || pod_of[a] == pod_of[b]) {
		assert_int_equal(k % cores, 0);
		return;
	}
	assert_in_range(++u->core_up[pod_of[a]][k], 1, n->f.core_cap);
	assert_in_range(++u->core_down[pod_of[b]][k], 1, n->f.core_cap);
}

static uint32_t dead_to = 1;

/*
 * Makes one run, in pieces of @piece, through the selector, and verifies everything. @dead: a path
 * that must not be used from rack 0 to rack dead_to; 0xff: all may be used.
 */
static uint32_t run(struct net *n, uint64_t slot, uint32_t piece, uint8_t dead)
{
	const struct arb_alloc_ops *ops = bl_engine_ops(n->e);
	uint32_t count = 0, got, i, total = 0;
	struct slot_use *u;

	do {
		got = ops->run(bl_engine_alloc(n->e), slot, n->g + count, piece);
		count += got;
		assert_in_range(count, 0, MAX - piece);
	} while (got == piece);
	assert_in_range(count, 0, ops->grants_max);
	count = bl_engine_path_ops(n->e)
			? bl_engine_path_ops(n->e)->assign(bl_engine_paths(n->e)[0], n->g, count,
							   ops->grants_max)
			: count;
	for (i = 0; i < count; i++) {
		const struct arb_grant *g = &n->g[i];
		uint32_t a = g->src % RACKS, b = g->dst % RACKS;
		uint64_t bits;

		if (g->kind == ARB_REFUND) {
			n->back[g->src][g->dst] += g->mtus;
			total += g->mtus;
			continue;
		}
		assert_int_equal(g->kind, ARB_SLOTS);
		assert_int_equal(g->mtus, 0);
		assert_int_equal(g->path == BL_FCP_PATH_ANY, a == b || !n->f.paths);
		n->paths_of[a][b] |= g->path < 32 ? 1U << g->path : 0;
		for (bits = g->slots; bits; bits &= bits - 1) {
			uint64_t s = g->base + (uint64_t)__builtin_ctzll(bits);

			assert_in_range(s, slot, slot + ops->horizon_slots - 1);
			u = use_of(n, s);
			assert_int_equal(u->src[g->src]++, 0);
			assert_int_equal(u->dst[g->dst]++, 0);
			if (g->path != BL_FCP_PATH_ANY) {
				assert_in_range(g->path, 0, bl_fp_ways(&n->f) - 1);
				use_path(n, u, a, b, g->path);
				assert_false(a == 0 && b == dead_to && g->path == dead);
			}
			n->given[g->src][g->dst]++;
			total++;
		}
	}
	return total;
}

static void all_served(const struct net *n)
{
	uint32_t i, j;

	for (i = 0; i < HOSTS; i++)
		for (j = 0; j < HOSTS; j++)
			assert_int_equal(n->given[i][j] + n->back[i][j], n->asked[i][j]);
}

static uint64_t begin_slot = 1ULL << 50;

static void random_run(struct net *n, uint32_t piece, uint32_t step)
{
	uint64_t slot = begin_slot;
	uint32_t i, k, refunds = 0, total = 0;

	for (k = 0; k < 60 * 64 / step; k++) {
		for (i = 0; k < 30 && i < 40; i++)
			ask(n, (uint32_t)(rand() % HOSTS), (uint32_t)(rand() % HOSTS),
			    1 + (uint32_t)(rand() % 12));
		run(n, slot, piece, 0xff);
		slot += step;
		/* asks again for what found no path, as comm does */
		for (i = 0; i < HOSTS * HOSTS; i++)
			for (; n->again[i / HOSTS][i % HOSTS] < n->back[i / HOSTS][i % HOSTS];
			     n->again[i / HOSTS][i % HOSTS]++)
				ask(n, i / HOSTS, i % HOSTS, 1);
	}
	assert_false(bl_engine_ops(n->e)->waiting(bl_engine_alloc(n->e)));
	all_served(n);
	for (i = 0; i < HOSTS * HOSTS; i++) {
		refunds += n->back[i / HOSTS][i % HOSTS];
		total += n->given[i / HOSTS][i % HOSTS];
	}
	if (step >= 128 || !n->f.paths)
		assert_int_equal(refunds, 0); /* each slot is coloured at once, and there are as
						 many paths as a rack may send packets */
	else
		assert_in_range(refunds, 0, total / 4);
	close_net(n);
}

static void random_net(uint32_t paths, uint32_t cap, bool euler, uint32_t piece, uint32_t step)
{
	random_run(open_net(paths, cap, euler), piece, step);
}

static void run__one_network(void **state)
{
	random_net(0, 0, false, 4096, 128);
}

static void run__in_pieces(void **state)
{
	random_net(0, 0, false, 7, 128);
}

static void assign__four_paths(void **state)
{
	random_net(4, 2, false, 4096, 128);
}

/* Runs of 32 slots begin within a word of 64. */
static void assign__windows_shorter_than_a_word(void **state)
{
	struct net *n = open_net(4, 2, false);
	struct bl_err err;

	(void)state;
	bl_engine_free(n->e);
	n->f.window_slots = 32;
	assert_int_equal(bl_engine_new(&n->e, &n->f, &err), 0);
	begin_slot += 32;
	random_run(n, 4096, 32);
	begin_slot -= 32;
}

static void assign__slots_shared_by_runs(void **state)
{
	random_net(4, 2, false, 4096, 8);
}

static void assign__oversubscribed_and_shared(void **state)
{
	random_net(3, 1, true, 4096, 16);
}

static void assign__oversubscribed(void **state)
{
	random_net(3, 1, false, 4096, 128);
}

static void assign__euler(void **state)
{
	random_net(4, 2, true, 4096, 128);
}

/*
 * 2 aggregation switches x 2 core switches without bandwidth to spare; then oversubscribed racks
 * and core switches, and slots that several runs fill.
 */
static void assign__three_tiers(void **state)
{
	static const struct {
		uint32_t aggs, cap, cores, core_cap, step;
		bool euler;
	} t[] = {
		{ 2, 4, 2, 4, 128, false }, { 2, 4, 2, 4, 128, true }, { 3, 1, 2, 1, 128, false },
		{ 2, 4, 2, 4, 8, false },   { 2, 2, 4, 1, 16, true },  { 1, 8, 5, 4, 128, false }
	};
	size_t k;

	for (k = 0; k < sizeof(t) / sizeof(t[0]); k++)
		random_run(open_net_as(t[k].aggs, t[k].cap, t[k].euler, t[k].cores, t[k].core_cap),
			   4096, t[k].step);
}

/*
 * Path 1 is core switch 1 of aggregation switch 0. From rack 0 to rack 2 it is dead, and at the end
 * all of switch 0 is. Within the pod it is enough that the aggregation switch works.
 */
static void usable__dead_core(void **state)
{
	struct net *n = open_net_as(2, 4, false, 2, 4);
	uint64_t slot = begin_slot;
	uint32_t k, i;

	dead_to = 2;
	assert_int_equal(bl_engine_usable(n->e, 0, 2, 0xd), 0);
	assert_int_equal(bl_engine_usable(n->e, 0, 1, 0xe), 0);
	for (k = 0; k < 60; k++) {
		if (k == 30)
			bl_engine_usable(n->e, 0, 2, 0xc);
		for (i = 0; i < 8; i++) {
			ask(n, 3 * i, 2 + 3 * ((i + k) % 8), 4);
			ask(n, 3 * i, 1 + 3 * ((i + k) % 8), 4);
		}
		run(n, slot, 4096, 1);
		if (k > 32)
			run(n, slot + 32, 4096, 0);
		slot += 64;
	}
	assert_false(bl_engine_ops(n->e)->waiting(bl_engine_alloc(n->e)));
	all_served(n);
	for (i = k = 0; i < HOSTS * HOSTS; i++)
		k += n->given[i / HOSTS][i % HOSTS];
	/* what found no path in its slot came back, and most of it found one */
	assert_in_range(k, 2000, 60 * 64);
	ask(n, 0, 2, 5);
	bl_engine_usable(n->e, 0, 2, 0);
	run(n, slot, 4096, 0xff);
	assert_in_range(n->back[0][2], 5, 1000);
	dead_to = 1;
	close_net(n);
}

static void usable__dead_path_is_left_alone(void **state)
{
	struct net *n = open_net(4, 2, false);
	uint64_t slot = begin_slot;
	uint32_t k, i;

	assert_int_equal(bl_engine_usable(n->e, RACKS, 0, 1), -1);
	assert_int_equal(bl_engine_usable(n->e, 0, RACKS, 1), -1);
	/* path 1 is dead; bits of paths that do not exist mean nothing */
	assert_int_equal(bl_engine_usable(n->e, 0, 1, 0xfffffffffffffffdULL), 0);
	for (k = 0; k < 40; k++) {
		for (i = 0; i < 8; i++)
			ask(n, 3 * i, 1 + 3 * ((i + k) % 8), 8);
		run(n, slot, 4096, 1);
		slot += 64;
	}
	/*
	 * All paths are dead: slots that were asked for before come back, to be asked for again,
	 * and are refused then.
	 */
	ask(n, 0, 1, 5);
	bl_engine_usable(n->e, 0, 1, 0xf0);
	run(n, slot, 4096, 0xff);
	assert_int_equal(n->back[0][1], 5);
	assert_int_equal(bl_engine_no_path(n->e), 0);
	assert_int_equal(bl_engine_ops(n->e)->demand(bl_engine_alloc(n->e), 0, 1, 5, slot),
			 -ENOSPC);
	assert_int_equal(bl_engine_no_path(n->e), 1);
	ask(n, 0, 3, 1); /* within the rack */
	ask(n, 0, 2, 1);
	bl_engine_usable(n->e, 0, 1, 0xf);
	ask(n, 0, 1, 5);
	run(n, slot + 64, 4096, 0xff);
	assert_int_equal(n->back[0][1], 5);
	all_served(n);
	close_net(n);
}

/* Asserts that the paths of @mask are given from rack @src to rack @dst, and no others. */
static void only(struct net *n, uint64_t *slot, uint32_t src, uint32_t dst, uint32_t mask)
{
	uint32_t k, i;

	n->paths_of[src][dst] = 0;
	for (k = 0; k < 8; k++) {
		for (i = 0; i < 8; i++) /* all hosts of the rack, so that one path is not enough */
			ask(n, src + RACKS * i, dst + RACKS * i, 8);
		run(n, *slot, 4096, 0xff);
		*slot += 64;
	}
	assert_int_equal(n->paths_of[src][dst], mask);
}

static void links__by_direction(void **state)
{
	struct bl_fcp_link l[4] = { { .rack = BL_BE16(0), .path = 1, .way = 0 },
				    { .rack = BL_BE16(1), .path = 2, .way = 1 },
				    { .rack = BL_BE16(7), .path = 0, .way = 0 },
				    { .path = 9 } };
	struct net *n = open_net(4, 2, false);
	uint64_t slot = begin_slot;

	(void)state;
	/* rack 0 -> path 1, path 2 -> rack 1; and two that do not exist */
	bl_engine_links(n->e, l, 4);
	only(n, &slot, 0, 1, 0x9);
	only(n, &slot, 0, 2, 0xd);
	only(n, &slot, 2, 1, 0xb);
	bl_engine_links(n->e, l + 1, 1);   /* a list replaces the one before */
	bl_engine_usable(n->e, 0, 1, 0x6); /* what bl_engine_usable() said stays valid, too */
	only(n, &slot, 0, 1, 0x2);
	l[0].rack = BL_BE16(BL_FCP_RACK_ALL); /* path 1 as a whole */
	bl_engine_links(n->e, l, 1);
	only(n, &slot, 0, 1, 0x4);
	only(n, &slot, 2, 0, 0xd);
	bl_engine_links(n->e, l, 0);
	only(n, &slot, 0, 1, 0x6);
	all_served(n);
	close_net(n);
}

static void demand__to_oneself_is_never_given(void **state)
{
	struct net *n = open_net(0, 0, false);

	ask(n, 4, 4, 100);
	ask(n, 4, 5, 1);
	assert_int_equal(run(n, begin_slot, 4096, 0xff), 1);
	assert_false(bl_engine_ops(n->e)->waiting(bl_engine_alloc(n->e)));
	close_net(n);
}

static void forget__only_what_it_sends(void **state)
{
	struct net *n = open_net(0, 0, false);

	ask(n, 4, 5, 100);
	ask(n, 5, 4, 100);
	bl_engine_ops(n->e)->forget(bl_engine_alloc(n->e), 4);
	assert_int_equal(run(n, begin_slot, 4096, 0xff), 100);
	assert_int_equal(n->given[5][4], 100);
	close_net(n);
}

static uint32_t given_from(struct net *n, uint32_t from)
{
	uint32_t k, sum = 0;

	for (k = 0; k < HOSTS; k++)
		sum += n->given[from][k];
	return sum;
}

/*
 * All senders want slots of one receiver: their shares follow the weights of the file. The weight
 * of a pair takes precedence over that of its sender.
 */
static void weights__of_senders_and_pairs(void **state)
{
	struct bl_fp_pair pair[] = { { 3, 9, 6, 0 }, { 4, 9, 0, 0 } };
	struct net *n = open_net(0, 0, false);
	struct bl_err err;
	uint32_t i;

	bl_engine_free(n->e);
	n->f.policy = BL_ALLOC_WEIGHTED;
	n->f.pair = pair;
	n->f.npairs = 2;
	n->peer[2].weight = n->peer[3].weight = n->peer[4].weight = 3;
	assert_int_equal(bl_engine_new(&n->e, &n->f, &err), 0);
	for (i = 1; i < 5; i++)
		ask(n, i, 9, 1000);
	run(n, begin_slot, 4096, 0xff); /* a window of 128 slots: 13 shares of 9 and 11 odd ones */
	assert_in_range(given_from(n, 1), 8, 12);
	assert_in_range(given_from(n, 2), 27, 33);
	assert_in_range(given_from(n, 3), 54, 63);
	assert_in_range(given_from(n, 4), 27, 33);
	assert_int_equal(given_from(n, 1) + given_from(n, 2) + given_from(n, 3) + given_from(n, 4),
			 128);
	close_net(n);
}

/*
 * The most urgent demand comes first, whatever the upper bits of the clock are, and demands without
 * a deadline come last.
 */
static void deadlines__of_senders_and_pairs(void **state)
{
	static const uint64_t at[] = { 64, 1ULL << 31, (1ULL << 32) - 64, 1ULL << 50,
				       (1ULL << 50) + (3ULL << 30) };
	struct bl_fp_pair pair[] = { { 3, 9, 0, 200 }, { 4, 9, 1, 0 } };
	struct bl_err err;
	size_t k;

	for (k = 0; k < sizeof(at) / sizeof(at[0]); k++) {
		struct net *n = open_net(0, 0, false);

		bl_engine_free(n->e);
		n->f.policy = BL_ALLOC_DEADLINE;
		n->f.window_slots = 64;
		n->f.pair = pair;
		n->f.npairs = 2;
		n->peer[2].deadline_us = 1000;
		n->peer[3].deadline_us = 10000000;
		n->peer[4].deadline_us = 5000;
		assert_int_equal(bl_engine_new(&n->e, &n->f, &err), 0);
		n->now = at[k];
		ask(n, 1, 9, 20); /* none */
		ask(n, 4, 9, 30); /* the deadline of the sender: third */
		ask(n, 2, 9, 20); /* second */
		ask(n, 3, 9, 20); /* the deadline of the pair: first */
		run(n, at[k], 4096, 0xff);
		assert_int_equal(n->given[3][9], 20);
		assert_int_equal(n->given[2][9], 20);
		assert_int_equal(n->given[4][9], 24);
		assert_int_equal(n->given[1][9], 0);
		run(n, at[k] + 64, 4096, 0xff);
		assert_int_equal(n->given[4][9], 30);
		assert_int_equal(n->given[1][9], 20);
		close_net(n);
	}
}

static void run__clock_that_goes_back(void **state)
{
	struct net *n = open_net(0, 0, false);

	ask(n, 1, 2, 1);
	assert_int_equal(run(n, begin_slot + 1000, 4096, 0xff), 1);
	ask(n, 1, 2, 1);
	assert_int_equal(bl_engine_ops(n->e)->run(bl_engine_alloc(n->e), begin_slot, n->g, MAX), 1);
	assert_true(n->g[0].base + (uint64_t)__builtin_ctzll(n->g[0].slots) > begin_slot + 1000);
	close_net(n);
}

static void arb_run_after__windows_begin_with_a_run(void **state)
{
	static const struct {
		uint64_t slot, next;
		uint32_t step, window;
	} v[] = {
		{ 0, 2, 2, 16 },       { 1, 2, 2, 16 },
		{ 13, 14, 2, 16 },     { 14, 16, 2, 16 },
		{ 15, 16, 2, 16 },     { 16, 18, 2, 16 },
		{ 5, 8, 8, 8 },        { 8, 16, 8, 8 },
		{ 0, 13, 13, 128 },    { 117, 128, 13, 128 }, /* not 130 */
		{ 128, 130, 13, 128 }, { 63, 64, 16, 512 },
		{ 511, 512, 16, 512 }, { (1ULL << 60) - 1, 1ULL << 60, 16, 64 },
	};
	size_t k;

	(void)state;
	for (k = 0; k < sizeof(v) / sizeof(v[0]); k++)
		if (arb_run_after(v[k].slot, v[k].step, v[k].window) != v[k].next)
			fail_msg("after %llu, %u, %u: %llu", (unsigned long long)v[k].slot,
				 v[k].step, v[k].window,
				 (unsigned long long)arb_run_after(v[k].slot, v[k].step,
								   v[k].window));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arb_run_after__windows_begin_with_a_run),
		cmocka_unit_test(run__one_network),
		cmocka_unit_test(run__in_pieces),
		cmocka_unit_test(assign__four_paths),
		cmocka_unit_test(assign__windows_shorter_than_a_word),
		cmocka_unit_test(assign__slots_shared_by_runs),
		cmocka_unit_test(assign__oversubscribed_and_shared),
		cmocka_unit_test(assign__oversubscribed),
		cmocka_unit_test(assign__euler),
		cmocka_unit_test(assign__three_tiers),
		cmocka_unit_test(usable__dead_core),
		cmocka_unit_test(usable__dead_path_is_left_alone),
		cmocka_unit_test(links__by_direction),
		cmocka_unit_test(demand__to_oneself_is_never_given),
		cmocka_unit_test(forget__only_what_it_sends),
		cmocka_unit_test(run__clock_that_goes_back),
		cmocka_unit_test(weights__of_senders_and_pairs),
		cmocka_unit_test(deadlines__of_senders_and_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
