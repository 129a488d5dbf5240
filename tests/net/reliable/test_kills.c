// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The random-kill campaign: random failures, many runs, three judges. Endpoints send reliable
 * scatterings to a few receivers each. Something dies, stops, is cut, restarted or detached, loses
 * frames or has a wrong clock, and comes back (kill_faults.h). Then:
 *
 * - of the endpoints that were not announced as failed, all or none deliver a scattering, in one
 *   order, after what it follows from, and once; no loss goes unreported (bench/kill/kill_judge.c);
 * - nobody was announced that the faults do not concern, and the others stood still for no longer
 *   than these faults allow (kill_limits.h);
 * - no process and no daemon has crashed, and everything continues.
 *
 * All runs of a case use one rack, so that each also begins with what the previous one left: nodes
 * that joined anew, addresses whose processes died, a controller that was killed. Every node has
 * its own barlined.
 *
 * 	test_kills			RUNS runs on a rack and as many on a leaf-spine, half as
 * many on three tiers; each prints its seed
 * 	test_kills --runs N		N runs of each; --seconds S: for S seconds
 * 	test_kills --seed S		the first run has that seed
 * 	test_kills --case PATTERN	only cases that match: rack*, leaf_spine*, three_tiers*
 * 	test_kills --draw LIST		the words in kill_faults.h (default: all)
 */
#include "tests/net/reliable/kill_faults.h"

#include <getopt.h>

#include "tests/net/stall_watch.h"

#define RUNS     12   /* `make soak-kills` has more */
#define MANY     75   /* this many show what a few may not */
#define BASE_MS  1500 /* for the procedure of a failure, retransmissions and a busy machine */
#define STILL_NS 300000000ULL /* shorter gaps are no standstill */
#define SAID_MAX 64
#define ASK_NS   1000000000ULL /* after its answer, the controller is asked again at the latest */

static unsigned int wanted = RUNS, seconds;
static unsigned int asked; /* --runs */
static uint64_t first_seed;

/** struct tally - the results of a case, in memory that cases share with the program. */
static struct tally {
	char name[16];
	/* Runs; faults by kind; announcements that may be caused by this machine. */
	unsigned int runs, times[F_COUNT], starved;
	uint64_t longest_ns;
	struct kill_verdict sum;
} * tallies, *tally; /* of all cases, and of this one */

/** struct said - an announcement. */
static struct said {
	uint64_t number;
	unsigned int node, port; /* @port: of the process; 0: the node itself */
	char why[16];
} said[SAID_MAX];
static unsigned int nsaid;

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	name_controller(cfg, n);
	cfg->dead_after_us = DEAD_US;
	if (n->kind != LAB_HOST)
		return;
	cfg->process_limit_ms = PROCESS_LIMIT_MS;
	cfg->skew_ns = skew_ns[n->index - 1];
}

/* ---- the run ---- */

static unsigned int run_number;
static uint64_t run_seed;

static void last_words(void)
{
	fprintf(stderr, "run %u, seed %#" PRIx64 "\n", run_number, run_seed);
	say_workers();
}

static void watch(void)
{
	pid_t pids[STALL_PIDS];
	unsigned int i, n = 0;

	for (i = 0; i < rack.lab.nnodes; i++)
		pids[n++] = dm[i].pid;
	for (i = 0; c && i < WORKERS; i++)
		if (c->w[i].pid > 0)
			pids[n++] = c->w[i].pid;
	pids[n++] = ctl;
	stall_watch(pids, n);
}

static void start_workers(void)
{
	kill_begin(WORKERS, 500 + t_below(&seed, 2000));
	c->size = 16 + t_below(&seed, 300);
	c->fan = 1 + t_below(&seed, 4);
	c->seed = seed;
	kill_fork(host_of);
}

static bool anybody_out(void)
{
	unsigned int i;

	for (i = 0; i < WORKERS && !c->w[i].error[0]; i++)
		;
	return i < WORKERS;
}

static void end_workers(void)
{
	uint64_t until = t_mono() + 2000000000ULL;
	unsigned int i;
	int st;

	atomic_store(&c->phase, KILL_EXIT);
	for (i = 0; i < WORKERS; i++) {
		if (c->w[i].pid <= 0)
			continue;
		kill(c->w[i].pid, SIGCONT);
		while (waitpid(c->w[i].pid, &st, WNOHANG) != c->w[i].pid) {
			if (t_mono() > until)
				kill(c->w[i].pid, SIGKILL);
			rack_serve(1);
		}
		/*
		 * An expelled process gets ESTALE; it never crashes. A report of a sanitizer is an
		 * exit status above 1.
		 */
		CHECK(!(WIFSIGNALED(st) && WTERMSIG(st) != SIGKILL) &&
			      !(WIFEXITED(st) && WEXITSTATUS(st) > 1),
		      "worker %u, pid %d, died with status %#x", i, c->w[i].pid, (unsigned int)st);
		c->w[i].pid = 0;
	}
}

static void note_said(uint64_t number, const json_t *who)
{
	struct said s = { .number = number,
			  .node = (unsigned int)json_integer_value(json_object_get(who, "node")),
			  .port = (unsigned int)json_integer_value(json_object_get(who, "port")) };
	unsigned int i;

	snprintf(s.why, sizeof(s.why), "%s", json_string_value(json_object_get(who, "why")));
	for (i = 0; i < nsaid && (said[i].number != s.number || said[i].node != s.node ||
				  said[i].port != s.port);
	     i++)
		;
	CHECK(i < SAID_MAX, "more than %d were announced", SAID_MAX);
	if (i == nsaid)
		said[nsaid++] = s;
}

static bool answered; /* the controller, when announced() asked it last */

/*
 * Returns the workers that were announced as failed since failure number @since; *@last receives
 * the number of the last failure. The controller's answer may be long, so it is not requested all
 * the time.
 */
static uint64_t announced(uint64_t since, uint64_t *last)
{
	static uint64_t again_ns, mask, of;
	json_t *all, *f, *who;
	uint64_t begun = t_mono(), took;
	unsigned int i;
	size_t k, m;

	if (since == of && begun < again_ns)
		return mask;
	mask = since == of ? mask : 0; /* a controller without a CPU may not answer in time */
	of = since;
	all = json_loads(ask(), 0, NULL);
	answered = all;
	json_array_foreach(json_object_get(all, "failures"), k, f)
	{
		uint64_t number = (uint64_t)json_integer_value(json_object_get(f, "number"));

		if (number > *last)
			*last = number;
		if (number <= since)
			continue;
		json_array_foreach(json_object_get(f, "failed"), m, who)
		{
			note_said(number, who);
			for (i = 0; c && i < WORKERS; i++) {
				json_int_t port = json_integer_value(json_object_get(who, "port"));

				if (json_integer_value(json_object_get(who, "node")) ==
					    (json_int_t)host_of(i) + 1 &&
				    (!port || port == c->w[i].addr.port))
					mask |= 1ULL << i;
			}
		}
	}
	json_decref(all);
	took = t_mono() - begun;
	again_ns = t_mono() + (5 * took < ASK_NS ? 5 * took : ASK_NS);
	return mask;
}

static bool recovered(uint64_t who)
{
	unsigned int i;

	for (i = 0; i < WORKERS; i++)
		if ((who >> i & 1) && c->w[i].pid > 0 && !c->w[i].error[0] &&
		    !atomic_load(&c->w[i].left) && !atomic_load(&c->w[i].recovered_ns))
			return false;
	return true;
}

static bool acked(uint64_t who)
{
	unsigned int i;

	for (i = 0; i < WORKERS; i++)
		if ((who >> i & 1) && !c->w[i].error[0] && !atomic_load(&c->w[i].left) &&
		    !atomic_load(&c->w[i].all_acked))
			return false;
	return true;
}

/* Returns whether each excluded worker has been announced, or will be. */
static bool none_out(uint64_t who)
{
	unsigned int i;

	for (i = 0; i < WORKERS; i++)
		if ((who >> i & 1) && c->w[i].error[0])
			return false;
	return true;
}

static uint64_t sum_got(void)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < WORKERS; i++)
		n += atomic_load(&c->w[i].ngot);
	return n;
}

/* ---- announcements and standstills ---- */

/* Returns the worker with that port, or WORKERS if there is none or a node was announced. */
static unsigned int worker_of(const struct said *s)
{
	unsigned int i;

	for (i = 0; i < WORKERS && (host_of(i) + 1 != s->node || c->w[i].addr.port != s->port); i++)
		;
	return s->port ? i : WORKERS;
}

static unsigned int index_of(unsigned int node_id)
{
	unsigned int i;

	for (i = 0;
	     i < rack.lab.nnodes &&
	     (unsigned int)rack.lab.nodes[i].kind * 1000 + rack.lab.nodes[i].index != node_id;
	     i++)
		;
	return i;
}

static void judge_said(uint64_t from, const char *what)
{
	unsigned int i, k, w;

	facts.run.starved_ns = stall_worst(from, t_mono());
	for (i = 0; i < WORKERS; i++) {
		facts.proc[i].ended = c->w[i].error[0];
		facts.proc[i].gap_ns = atomic_load(&c->w[i].gap_ns);
	}
	for (k = 0; k < nsaid; k++) {
		const struct said *s = &said[k];
		enum kl_says v;

		i = index_of(s->node);
		w = worker_of(s);
		CHECK(i < rack.lab.nnodes, "node %u was announced, which nobody knows", s->node);
		CHECK(!s->port || w < WORKERS,
		      "run %u, seed %#" PRIx64 ", %s: port %u of %s was announced (%s), of a "
		      "process that is not in this run",
		      run_number, run_seed, what, s->port, rack.lab.nodes[i].name, s->why);
		v = s->port ? kl_process(&facts.run, &facts.proc[w], s->why)
			    : kl_node(&facts.run, i, s->why);
		tally->starved += v == KL_STARVED;
		if (v == KL_STARVED)
			fprintf(stderr,
				"  run %u: %s (%s) may have been announced for a CPU that it did "
				"not get for %.0f ms\n",
				run_number, rack.lab.nodes[i].name, s->why,
				(double)facts.run.starved_ns / 1e6);
		CHECK(v != KL_FALSE,
		      "run %u, seed %#" PRIx64 ", %s: %s, port %u, was announced (%s), for which "
		      "there is no reason; no "
		      "thread waited longer than %.0f ms for a CPU",
		      run_number, run_seed, what, rack.lab.nodes[i].name, s->port, s->why,
		      (double)facts.run.starved_ns / 1e6);
	}
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Judges the gaps between @from and @to in the deliveries of correct workers' messages at correct
 * workers.
 */
static void judge_standstill(uint64_t correct, uint64_t from, uint64_t to, bool fell,
			     unsigned int faults, const char *what)
{
	uint64_t *at, stood, limit;
	unsigned int i, k;
	size_t n = 0;

	if (!correct)
		return;
	at = malloc((sum_got() + 1) * sizeof(*at));
	CHECK(at, "out of memory");
	for (i = 0; i < WORKERS; i++)
		for (k = 0; (correct >> i & 1) && k < atomic_load(&c->w[i].ngot); k++)
			if (correct >> c->w[i].got[k].sender & 1 && c->w[i].got[k].at_ns >= from &&
			    c->w[i].got[k].at_ns <= to)
				at[n++] = c->w[i].got[k].at_ns;
	qsort(at, n, sizeof(*at), by_time);
	stood = kl_standstill(at, n, from, to, STILL_NS, stall_lost, NULL);
	free(at);
	limit = (BASE_MS + facts.stand_ms + (fell || faults > 1 ? facts.open_ms : 0)) * 1000000ULL;
	tally->longest_ns = stood > tally->longest_ns ? stood : tally->longest_ns;
	CHECK(stood <= limit,
	      "run %u, seed %#" PRIx64 ", %s: all stood still for %.0f ms in all; %.0f ms are "
	      "stated for these faults, "
	      "and the machine's part is taken off already",
	      run_number, run_seed, what, (double)stood / 1e6, (double)limit / 1e6);
}

static void judge_daemons(const char *what)
{
	unsigned int i;
	int st;

	for (i = 0; i < rack.lab.nnodes; i++)
		CHECK(waitpid(dm[i].pid, &st, WNOHANG) == 0,
		      "run %u, seed %#" PRIx64 ", %s: the daemon of %s has ended", run_number,
		      run_seed, what, rack.lab.nodes[i].name);
}

static void one_run(unsigned int number)
{
	const uint64_t all = (1ULL << WORKERS) - 1;
	uint64_t base = 0, last = 0, dead = 0, since, from, to;
	unsigned int faults, i;
	enum fault f[FAULTS_MAX];
	char what[256] = "";
	struct kill_verdict v;

	run_number = number;
	run_seed = seed;
	faults = draw_faults(f);
	for (i = 0; i < faults; i++)
		snprintf(what + strlen(what), sizeof(what) - strlen(what), "%s%s", i ? ", " : "",
			 fault_names[f[i]]);
	fprintf(stderr, "run %u, seed %#" PRIx64 ": %s\n", number, run_seed, what);
	UNTIL("waits for all nodes", all_ok() && none_open());
	faults_begin();
	nsaid = 0;
	UNTIL("waits for the controller's answer", (announced(~0ULL, &base), answered));
	start_workers();
	watch();
	atomic_store(&c->phase, KILL_TALK);
	UNTIL("waits for traffic", sum_got() >= 30 * WORKERS || anybody_out());
	from = t_mono();
	for (i = 0; i < faults; i++) {
		rack_serve(t_below(&seed, 20));
		tally->times[f[i]]++;
		strike(f[i]);
		watch();
	}
	rack_serve(t_below(&seed, 200));
	faults_end();
	/* everything continues: messages sent from now on arrive */
	atomic_store(&c->late_ns, t_mono());
	UNTIL("waits for what is sent now",
	      (dead |= announced(base, &last), recovered(all & ~dead)));
	to = t_mono();
	atomic_store(&c->phase, KILL_DRAIN);
	UNTIL("waits for acknowledgements", (dead |= announced(base, &last), acked(all & ~dead)));
	UNTIL("waits until whoever is out is announced",
	      (dead |= announced(base, &last), none_out(all & ~dead)));
	/*
	 * Wait until the logs are complete: a delivery may wait for a failure that nobody has dealt
	 * with yet.
	 */
	for (since = t_mono();
	     t_mono() - since < WAIT_NS && (dead & all) != all && kill_judge(c, all & ~dead, &v);
	     rack_serve(10))
		dead |= announced(base, &last);
	judge_daemons(what);
	judge_said(from, what);
	judge_standstill(all & ~dead, from, to, nsaid, faults, what);
	end_workers();
	if ((dead & all) != all)
		CHECK(!kill_judge(c, all & ~dead, &v),
		      "run %u, seed %#" PRIx64 ", %s; failed %#" PRIx64 ": %s", number, run_seed,
		      what, dead, v.error);
	else
		v = (struct kill_verdict){ 0 };
	tally->sum.delivered += v.delivered;
	tally->sum.none += v.none;
	tally->sum.cut += v.cut;
	/*
	 * The next run's processes may get the same ports, and an announcement of then must be of
	 * that run.
	 */
	UNTIL("waits until all are gone", (dead |= announced(base, &last), (dead & all) == all));
	munmap(c, sizeof(*c));
	c = NULL;
	tally->runs++;
}

/* Returns how often each kind was drawn, in this case and those before it. */
static const unsigned int *drawn_times(void)
{
	static unsigned int times[F_COUNT];
	const struct tally *t;
	unsigned int k;

	memset(times, 0, sizeof(times));
	for (t = tallies; t <= tally; t++)
		for (k = 0; k < F_COUNT; k++)
			times[k] += t->times[k];
	return times;
}

static void campaign(const char *name, bool leaf_spine, unsigned int cores)
{
	uint64_t begun = t_mono();
	unsigned int i, k;

	for (tally = tallies; tally->name[0]; tally++)
		;
	snprintf(tally->name, sizeof(tally->name), "%s", name);
	alarm(seconds ? seconds + 240 : 40 * wanted + 240);
	seed = first_seed ? first_seed : t_mono() * 0x9E3779B97F4A7C15ULL | 1;
	rack_last_words = last_words;
	dm_caretaker_ms = 10000;
	for (i = 0; i < HOSTS; i++)
		whole[i] = -1;
	ctl_start(ANSWER_MS);
	rack.lab.spec.hosts = HOSTS;
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = leaf_spine;
	rack.lab.spec.cores = cores;
	rack.tweak = tweak;
	daemons_open();
	fprintf(stderr, "  %u nodes were there after %.1f s\n", rack.lab.nnodes,
		(double)(t_mono() - begun) / 1e9);
	if (cores && !asked)
		wanted = RUNS / 2;
	begun = t_mono();
	for (i = 0; seconds ? t_mono() - begun < seconds * 1000000000ULL : i < wanted; i++) {
		if (i || !first_seed)
			choose_seed(drawn_times());
		one_run(i + 1);
	}
	fprintf(stderr,
		"  %s: %u runs in %.0f s: %u scatterings delivered by all, %u of correct senders "
		"by nobody, as they were told, %u of failed ones by nobody; all stood still for "
		"%.0f ms at most\n ",
		name, i, (double)(t_mono() - begun) / 1e9, tally->sum.delivered, tally->sum.none,
		tally->sum.cut, (double)tally->longest_ns / 1e6);
	for (k = 0; k < F_COUNT; k++)
		fprintf(stderr, " %s: %u;", fault_names[k], tally->times[k]);
	fputc('\n', stderr);
	/*
	 * Some must have died with messages under way; otherwise only the "all" of "all or none"
	 * was shown.
	 */
	if (i >= MANY)
		CHECK(tally->sum.none && tally->sum.cut, "nothing was taken back, nothing was "
							 "discarded: this proves nothing");
	daemons_end();
}

RACK_TEST(rack__random_kills)
{
	campaign("rack", false, 0);
}

RACK_TEST(leaf_spine__random_kills)
{
	campaign("leaf-spine", true, 0);
}

RACK_TEST(three_tiers__random_kills)
{
	campaign("three tiers", true, 2);
}

/* Prints the runs by network and by kind in one line, also those that did not reach their end. */
static void say_tally(int failed)
{
	unsigned int times[F_COUNT] = { 0 }, all = 0, starved = 0, k;
	const struct tally *at;

	for (at = tallies; at->name[0]; at++) {
		all += at->runs;
		starved += at->starved;
		for (k = 0; k < F_COUNT; k++)
			times[k] += at->times[k];
	}
	fprintf(stderr, "kills: %u runs passed, %d cases failed;", all, failed);
	for (at = tallies; at->name[0]; at++)
		fprintf(stderr, " %s %u;", at->name, at->runs);
	for (k = 0; k < F_COUNT; k++)
		fprintf(stderr, " %s %u;", fault_names[k], times[k]);
	fprintf(stderr, " announcements that may be this machine's %u\n", starved);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "runs", required_argument, NULL, 'r' },
		{ "seconds", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'S' },
		{ "case", required_argument, NULL, 'c' },
		{ "draw", required_argument, NULL, 'd' },
		{ 0 },
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rack__random_kills),
		cmocka_unit_test(leaf_spine__random_kills),
		cmocka_unit_test(three_tiers__random_kills),
	};
	int opt, failed;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'r')
			wanted = asked = (unsigned int)strtoul(optarg, NULL, 0);
		else if (opt == 's')
			seconds = (unsigned int)strtoul(optarg, NULL, 0);
		else if (opt == 'S')
			first_seed = strtoull(optarg, NULL, 0);
		else if (opt == 'c')
			cmocka_set_test_filter(optarg);
		else if (opt != 'd' || choose_draws(optarg))
			return 2;
	}
	tallies = mmap(NULL, (sizeof(tests) / sizeof(tests[0]) + 1) * sizeof(*tallies),
		       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tallies == MAP_FAILED)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	say_tally(failed);
	return failed;
}
