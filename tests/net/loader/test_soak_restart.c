// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The restart campaign: every daemon of a rack is restarted, upgraded, reloaded and killed, one at
 * a time, under load of both streams, with three controllers on etcd. The judge is what
 * applications see: nothing is lost, nothing is reported as lost, nobody is announced, and all
 * deliver in one order. How long deliveries paused is measured and printed, not judged, since a
 * test asserts no speed.
 *
 * 	test_soak_restart		one round on a rack of 3 hosts, not of every daemon
 * 	test_soak_restart --rounds N	N rounds of every daemon on a rack of 8 hosts
 * 		--hosts N, --leaf-spine	another network
 * 		--interval-us US	between two sends of a host; default: so that one of the
 *					hosts sends every ms
 * 		--beacon-us US		of all nodes; default: 500
 * 		--dead-after-us US	of all nodes; default: 8000000
 * 		--only WORD		one action: restart, upgrade, reload, kill
 * 		--trace			a line for each action: when it stopped and was ready
 *					again, and when the gap was
 *
 * An upgrade is to the same tree with another version, and loads the programs; the other daemons go
 * on with those that run.
 *
 * The gap is the longest time for which one of the endpoints delivered nothing of one of the
 * streams, from the action until everybody has delivered more of both. The row "nothing" is the
 * same without an action: what the machine does by itself. SIGKILL is harmless only while the next
 * daemon begins within dead_after, hence the default of that.
 */
#include <getopt.h>

#include "tests/net/controller/ctl_group.h"
#include "tests/net/daemons.h"
#include "tests/net/loader/restart_load.h"
#include "tests/net/until.h"

#define SPAN_MS 200  /* of the action "nothing", and after a reload */
#define MORE    10   /* messages of each stream after an action */
#define GAPS    4096 /* measurements of one row */
#define LOOK_MS 20   /* from a look at the controllers to the next; a look takes CPU time */

/* X(SYMBOL, "name"): who is restarted */
#define KINDS(X)                        \
	X(HOST, "host")                 \
	X(SWITCH, "switch")             \
	X(LEADER, "leading controller") \
	X(OTHER, "other controller")
#define ACTIONS(X)            \
	X(NOTHING, "nothing") \
	X(RESTART, "restart") \
	X(UPGRADE, "upgrade") \
	X(RELOAD, "reload")   \
	X(KILL, "kill")
#define AS_ENUM(sym, name) R_##sym,
#define AS_NAME(sym, name) name,
enum kind { KINDS(AS_ENUM) KIND_COUNT };
enum action { ACTIONS(AS_ENUM) ACTION_COUNT };
static const char *const kind_names[] = { KINDS(AS_NAME) };
static const char *const action_names[] = { ACTIONS(AS_NAME) };

/** struct row - the measurements of one kind and one action. */
static struct row {
	unsigned int n, announced, stop_ms[GAPS];
	uint64_t gap_ns[LOAD_STREAMS][GAPS], lost, reported;
} rows[KIND_COUNT][ACTION_COUNT];

static unsigned int rounds, hosts, interval_us, beacon_us, dead_us = 8000000;
static bool leaf_spine, trace;
static const char *only;
static uint64_t begun_ns, stopped_ns, ready_ns; /* CLOCK_MONOTONIC, of the last action */
static bool is_next[LAB_NODES_MAX], ctl_is_next[GROUP];

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	group_name(cfg, n);
	cfg->dead_after_us = dead_us;
}

static bool all_there(void)
{
	return group_said("\"state\":\"ok\"") == rack.lab.nnodes;
}

static void last_words(void)
{
	unsigned int k = group_leader();

	fprintf(stderr, "while it %s; the controller says: %s\n", doing,
		k < GROUP ? ctl_ask(group.pid[k]) : "nothing");
	load_say();
	rack_dump();
	etcd_last_words();
}

/* Carries out @what on the daemon of node @i. Returns the duration of its stop. */
static unsigned int act_on_daemon(unsigned int i, enum action what)
{
	unsigned int ms = 0;

	if (what == R_NOTHING || what == R_RELOAD) {
		CHECK(what == R_NOTHING || !kill(dm[i].pid, SIGHUP), "%s", strerror(errno));
		rack_serve(SPAN_MS);
		return 0;
	}
	if (what == R_UPGRADE)
		rack_forget_programs(i);
	if (what == R_KILL) /* a daemon that has just started has no spare yet */
		UNTIL("waits for the spare", spare(i));
	ms = daemon_stop(i, what == R_KILL ? SIGKILL : SIGTERM);
	stopped_ns = t_mono();
	is_next[i] ^= what == R_UPGRADE;
	dm_next = is_next[i];
	daemon_start(i);
	ready_ns = t_mono();
	return ms;
}

static unsigned int act_on_controller(unsigned int k, enum action what)
{
	unsigned int ms = 0;

	CHECK(k < GROUP, "no controller leads");
	if (what == R_NOTHING) {
		rack_serve(SPAN_MS);
		return 0;
	}
	ms = group_stop(k, what == R_KILL ? SIGKILL : SIGTERM);
	stopped_ns = t_mono();
	ctl_is_next[k] ^= what == R_UPGRADE;
	group.next = ctl_is_next[k];
	group_start(k);
	ready_ns = t_mono();
	return ms;
}

static double ms_of(uint64_t ns)
{
	return (double)ns / 1e6;
}

static double since_begun_ms(uint64_t at)
{
	return at > begun_ns ? ms_of(at - begun_ns) : 0;
}

/* All times are ms after the begin of the action. */
static void say_measured(enum kind kind, unsigned int who, enum action what,
			 const struct load_pause *gap)
{
	fprintf(stderr,
		"  %s %u %s: stopped %.1f, ready %.1f, all there %.1f; reliable gap %.1f to %.1f "
		"at h%u, best effort %.1f to %.1f at h%u\n",
		kind_names[kind], who, action_names[what], since_begun_ms(stopped_ns),
		since_begun_ms(ready_ns), since_begun_ms(t_mono()),
		since_begun_ms(gap[LOAD_RELIABLE].end_ns) - ms_of(gap[LOAD_RELIABLE].ns),
		since_begun_ms(gap[LOAD_RELIABLE].end_ns), gap[LOAD_RELIABLE].who + 1,
		since_begun_ms(gap[LOAD_BEST_EFFORT].end_ns) - ms_of(gap[LOAD_BEST_EFFORT].ns),
		since_begun_ms(gap[LOAD_BEST_EFFORT].end_ns), gap[LOAD_BEST_EFFORT].who + 1);
}

static void measure(enum kind kind, unsigned int who, enum action what)
{
	struct row *r = &rows[kind][what];
	struct load_pause gap[LOAD_STREAMS];
	struct load_verdict before, after;
	unsigned int ms, announced = group_said("\"number\":");

	CHECK(r->n < GAPS, "more than %d measurements", GAPS);
	load_sum(&before);
	load_window();
	begun_ns = stopped_ns = ready_ns = t_mono();
	ms = kind < R_LEADER ? act_on_daemon(who, what) : act_on_controller(who, what);
	load_goes_on(MORE, action_names[what]);
	UNTIL_EVERY(LOOK_MS, "waits for all nodes", all_there());
	load_sum(&after);
	gap[LOAD_RELIABLE] = load_gap(LOAD_RELIABLE);
	gap[LOAD_BEST_EFFORT] = load_gap(LOAD_BEST_EFFORT);
	if (trace)
		say_measured(kind, who, what, gap);
	r->gap_ns[LOAD_RELIABLE][r->n] = gap[LOAD_RELIABLE].ns;
	r->gap_ns[LOAD_BEST_EFFORT][r->n] = gap[LOAD_BEST_EFFORT].ns;
	r->stop_ms[r->n++] = ms;
	r->lost += after.lost - before.lost;
	r->reported += after.reported - before.reported;
	ms = group_said("\"number\":");
	r->announced += ms > announced ? ms - announced : 0;
	load_window();
}

static void all_daemons(enum action what, unsigned int round)
{
	bool seen[KIND_COUNT] = { false };
	unsigned int k;

	/* A short run has one host and one switch of each round, another one every time. */
	for (k = 0; k < rack.lab.nnodes; k++) {
		unsigned int i = (k + round) % rack.lab.nnodes;
		enum kind kind = rack_is_switch(i) ? R_SWITCH : R_HOST;

		if (rounds || !seen[kind])
			measure(kind, i, what);
		seen[kind] = true;
	}
	if (what == R_RELOAD) /* a controller reads its file only when it starts */
		return;
	k = group_leader();
	measure(R_OTHER, (k + 1) % GROUP, what);
	measure(R_LEADER, group_leader(), what);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Prints one line for each row with measurements. */
static void say_rows(void)
{
	unsigned int kind, what, s, k;

	fprintf(stderr, "  %-18s %-8s %5s %17s %17s %9s %5s %8s %9s\n", "daemon", "action", "times",
		"reliable gap ms", "best effort ms", "stop ms", "lost", "reported", "announced");
	for (kind = 0; kind < KIND_COUNT; kind++)
		for (what = 0; what < ACTION_COUNT; what++) {
			struct row *r = &rows[kind][what];
			unsigned int worst = 0, sum = 0;

			if (!r->n)
				continue;
			for (s = 0; s < LOAD_STREAMS; s++)
				qsort(r->gap_ns[s], r->n, sizeof(r->gap_ns[s][0]), by_size);
			for (k = 0; k < r->n; k++) {
				worst = r->stop_ms[k] > worst ? r->stop_ms[k] : worst;
				sum += r->stop_ms[k];
			}
			fprintf(stderr,
				"  %-18s %-8s %5u %8.1f %8.1f %8.1f %8.1f %4u %4u %5" PRIu64
				" %8" PRIu64 " %9u\n",
				kind_names[kind], action_names[what], r->n,
				ms_of(r->gap_ns[0][r->n / 2]), ms_of(r->gap_ns[0][r->n - 1]),
				ms_of(r->gap_ns[1][r->n / 2]), ms_of(r->gap_ns[1][r->n - 1]),
				sum / r->n, worst, r->lost, r->reported, r->announced);
		}
	fprintf(stderr, "  gaps and stops: median (of stops the mean) and worst\n");
}

RACK_TEST(every_daemon__nothing_is_lost)
{
	uint64_t begun = t_mono();
	struct load_verdict v;
	unsigned int round, what, announced, i;

	alarm(rounds ? 400 + rounds * 200 : RACK_CASE_S);
	hosts = hosts ? hosts : rounds ? 8 : 3;
	dm_caretaker_ms = 30000;
	rack.lab.spec.hosts = hosts;
	rack.lab.spec.beacon_us = beacon_us; /* 0: that of all racks of tests */
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = leaf_spine;
	rack.tweak = tweak;
	daemons_open();
	group_up(); /* last, because the controllers' files list the nodes */
	rack_last_words = last_words;
	UNTIL_EVERY(LOOK_MS, "waits for all nodes", all_there());
	load_begin(hosts, interval_us ? interval_us : hosts * 1000);
	load_goes_on(MORE, "begins");
	fprintf(stderr, "  up after %.1f s\n", ms_of(t_mono() - begun) / 1000);
	for (round = 0; round < (rounds ? rounds : 1); round++)
		for (what = 0; what < ACTION_COUNT; what++)
			if (!only || what == R_NOTHING || !strcmp(only, action_names[what]))
				all_daemons((enum action)what, round);
	announced = group_said("\"number\":");
	load_end(&v);
	say_rows();
	fprintf(stderr,
		"  %" PRIu64 " scatterings to %u endpoints; %" PRIu64 " messages lost, %" PRIu64
		" reported, %u announced\n",
		v.sent, hosts, v.lost, v.reported, announced);
	CHECK(!v.lost && !v.reported, "messages were lost");
	CHECK(!rack_count_all(BL_R_TS_AHEAD), "a timestamp was ahead of a clock");
	CHECK(!announced && !v.gone, "somebody was announced");
	CHECK(v.one_order[LOAD_RELIABLE] && v.one_order[LOAD_BEST_EFFORT], "the orders differ");
	for (i = 0; i < rack.lab.nnodes; i++)
		CHECK(!rack_count(i, BL_R_CLOCK_VOID), "%s found the clock void",
		      rack.lab.nodes[i].name);
	daemons_end();
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "hosts", required_argument, NULL, 'h' },
		{ "leaf-spine", no_argument, NULL, 'l' },
		{ "interval-us", required_argument, NULL, 'i' },
		{ "beacon-us", required_argument, NULL, 'b' },
		{ "dead-after-us", required_argument, NULL, 'd' },
		{ "only", required_argument, NULL, 'o' },
		{ "trace", no_argument, NULL, 't' },
		{ 0 },
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_daemon__nothing_is_lost),
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'r')
			rounds = (unsigned int)strtoul(optarg, NULL, 0);
		else if (opt == 'h')
			hosts = (unsigned int)strtoul(optarg, NULL, 0);
		else if (opt == 'l')
			leaf_spine = true;
		else if (opt == 'i')
			interval_us = (unsigned int)strtoul(optarg, NULL, 0);
		else if (opt == 'b')
			beacon_us = (unsigned int)strtoul(optarg, NULL, 0);
		else if (opt == 'd')
			dead_us = (unsigned int)strtoul(optarg, NULL, 0);
		else if (opt == 'o')
			only = optarg;
		else if (opt == 't')
			trace = true;
		else
			return 2;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
