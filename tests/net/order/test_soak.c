// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random racks, random traffic and random accidents, for as long as is requested: test_soak
 * [--seconds N] [--seed S]. Each round is one rack of its own. The printed seed repeats its choices
 * (TEST_SEED=... or --seed, with --seconds 1).
 */
#include <getopt.h>
#include "tests/net/traffic.h"

static unsigned int soak_s = 15;
static uint64_t round_seed;
static int64_t skews[LAB_HOSTS_MAX];
static bool two_cpus;

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	cfg->clock_bound_us = 1000;
	if (n->kind == LAB_HOST) {
		cfg->skew_ns = skews[n->index - 1];
	} else if (two_cpus) {
		cfg->cpus[0] = 0;
		cfg->cpus[1] = 1;
		cfg->ncpus = 2;
	}
}

/* Sends without an end of its own. */
static void mad(struct tr *w)
{
	for (;;) {
		tr_send_some(w);
		tr_take(w, 0);
		if (w->me->nsent > TR_SENT_MAX - 10)
			usleep(10000);
	}
}

/* Causes accidents, none of which may cost a message of the live endpoints. */
static void accidents(uint64_t *s, unsigned int steady, unsigned int hosts)
{
	uint64_t end = t_mono() + 3000000000ULL, talk = (1ULL << steady) - 1;
	const struct tr_cfg wild = { .fn = mad,
				     .to = talk,
				     .len = 900,
				     .items = 3,
				     .fan = 3,
				     .ring_bytes = TR_RING_TIGHT(16) };
	unsigned int i, victim = 0, host = 0;
	struct tr_cfg cfg;
	bool other;

	while (t_mono() < end) {
		tr_pass(50 + t_below(s, 400));
		switch (t_below(s, 4)) {
		case 0: /* an upgrade, or a restart that keeps the programs */
			i = t_below(s, rack.lab.nnodes);
			other = t_below(s, 2);
			fprintf(stderr, "  %s %s\n", other ? "upgrade" : "restart",
				rack.lab.nodes[i].name);
			if (other)
				rack_forget_programs(i);
			rack_close_node(i);
			rack_open_node(i);
			break;
		case 1: /* an endpoint sends without limit, and is killed */
			if (tr_sh->count + 2 > TR_MAX)
				break;
			cfg = wild;
			cfg.host = t_below(s, hosts);
			victim = tr_add(&cfg);
			tr_pass(20 + t_below(s, 300));
			fprintf(stderr, "  kill endpoint %u\n", victim);
			tr_kill(victim);
			break;
		case 2: /* one more endpoint, which stays */
			if (tr_sh->count + 2 > TR_MAX)
				break;
			host = t_below(s, hosts);
			fprintf(stderr, "  one more on h%u\n", host + 1);
			cfg = wild;
			cfg.fn = tr_mix;
			cfg.host = host;
			cfg.scatterings = 50;
			cfg.gap_us = 1000;
			tr_add(&cfg);
			break;
		default: /* a pause of the daemons */
			i = t_below(s, 150);
			fprintf(stderr, "  daemons pause %u ms\n", i);
			usleep(i * 1000);
			break;
		}
	}
}

static void one_round(void)
{
	uint64_t s = round_seed;
	unsigned int hosts = 2 + t_below(&s, 5), steady = 2 + t_below(&s, 7), i;
	struct tr_cfg cfg = {
		.fn = tr_mix, .run_ms = 3500, .quiet_ms = 3000, .ring_bytes = TR_RING_TIGHT(16)
	};

	rack.lab.spec.hosts = hosts;
	if (hosts >= 4 && t_below(&s, 3) == 0)
		rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	rack.lab.spec.beacon_us = 200 + t_below(&s, 800);
	two_cpus = sysconf(_SC_NPROCESSORS_ONLN) > 1 && t_below(&s, 2);
	for (i = 0; i < hosts; i++)
		skews[i] = (int64_t)t_below(&s, 900000) - 450000;
	rack.tweak = tweak;
	cfg.to = (1ULL << steady) - 1;
	cfg.len = 40 + t_below(&s, 1400);
	cfg.items = 1 + t_below(&s, 4);
	cfg.fan = 1 + t_below(&s, steady);
	cfg.more = t_below(&s, 200);
	cfg.big = t_below(&s, 4) ? 0 : 3;
	cfg.gap_us = 300 + t_below(&s, 2000);
	if (cfg.big && cfg.fan > 3)
		cfg.fan = 3; /* of 1 MiB each; more exceeds the send buffer */
	fprintf(stderr,
		"round: TEST_SEED=0x%" PRIx64 " %s, %u hosts, %u endpoints, beacon %u us, %s, up "
		"to %u bytes, %u items, %u receivers%s\n",
		round_seed, rack.lab.spec.leaf_spine ? "leaf-spine" : "rack", hosts, steady,
		rack.lab.spec.beacon_us, two_cpus ? "2 lanes" : "1 lane", cfg.len, cfg.items,
		cfg.fan, cfg.big ? ", some large" : "");
	rack_open();
	for (i = 0; i < steady; i++) {
		cfg.host = i < hosts ? i : t_below(&s, hosts);
		tr_add(&cfg);
	}
	tr_go();
	accidents(&s, steady, hosts);
	tr_wait_done(40000);
	tr_stop();
	/*
	 * A lane that stood still for ten beacons is excluded and no longer waited for. What
	 * arrives by it afterwards is late, and is reported.
	 */
	tr_verdict(cfg.to, cfg.to, rack_count_all(BL_R_EXCLUDED) > 0, cfg.fan > 1);
	CHECK(TR_SUM(duplicates) == 0, "duplicates");
	CHECK(rack_count_all(BL_R_WRONG_CPU) == 0, "frames on the wrong CPU");
}

static void soak(void **state)
{
	uint64_t end = t_mono() + soak_s * 1000000000ULL, seed = round_seed;
	char text[32];

	do {
		round_seed = seed;
		snprintf(text, sizeof(text), "%" PRIu64, seed);
		setenv("TEST_SEED", text, 1);
		rack_run(one_round);
		/*
		 * splitmix64: the next state of t_rand() would give the same choices again, one
		 * later
		 */
		seed += 0x9E3779B97F4A7C15ULL;
		seed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9ULL;
		seed = (seed ^ seed >> 27) | 1;
	} while (t_mono() < end);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "seconds", 1, NULL, 's' },
					       { "seed", 1, NULL, 'r' },
					       { 0 } };
	const struct CMUnitTest tests[] = { cmocka_unit_test(soak) };
	uint64_t seed = 0;
	int c;

	while ((c = getopt_long(argc, argv, "s:r:", longs, NULL)) != -1) {
		if (c == 's') {
			soak_s = (unsigned int)atoi(optarg);
		} else if (c == 'r') {
			seed = strtoull(optarg, NULL, 0);
		} else {
			fprintf(stderr, "usage: %s [--seconds N] [--seed S]\n", argv[0]);
			return 2;
		}
	}
	round_seed = seed ? seed : t_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
