// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random failures, many runs, one judge: endpoints send reliable scatterings to a few of them each, something dies, stops, is cut, loses frames or has a wrong clock, and comes back. Whatever happened: of those that were not
 * announced as failed, all or none deliver a scattering, in one order, after what it follows from, once, and none is lost in silence (cli/kill_judge.c).
 *
 * All runs of a case are on one rack, so that each also begins with what the one before left: nodes that joined anew, addresses whose processes died, a controller that was killed.
 *
 *	test_kills			RUNS runs on a rack and as many on a leaf-spine; on three tiers half as many; from a seed that is printed
 *	test_kills --runs N		so many; --seconds S: for so long
 *	test_kills --seed S		with the choices of that seed
 *	test_kills --case PATTERN	only the cases whose names match: rack*, leaf_spine*, three_tiers*
 *	test_kills --draw LIST		of base, leave, pause, controller-stop, switch (default: base)
 */
#include "reliable.h"

#include <getopt.h>

#include "cli/kill.h"
#include "controller.h"

#define RUNS	25 /* `make soak-kills` has more */
#define MANY	75 /* so many show what a few may not */
#define WORKERS 6 /* on 4 hosts: two of them have two */
#define HOSTS	4
#define WAIT_NS 60000000000ULL

static unsigned int runs = RUNS, seconds;
static unsigned int asked; /* --runs */
static uint64_t first_seed;

/* X(SYMBOL, "name"): what happens to whom is drawn */
#define FAULTS(X) \
	X(PROCESS, "process killed") X(STOP, "process stopped for a while") X(LINK, "host's link cut for a while") X(LOSS, "frames lost") X(DAEMON, "daemon restarted") X(CLOCK, "clock stepped") \
	X(CONTROLLER, "controller killed") X(LEAVE, "process left") X(PAUSE, "process stopped for 0.1 to 12 s") X(CTL_STOP, "controller stopped for a while") \
	X(SWITCH, "switch daemon restarted") X(SPINE, "spine cut off for a while") X(PARTITION, "ToR cut off for a while") X(CORE, "core cut off for a while")
#define FAULT_ENUM(sym, name) F_##sym,
#define FAULT_NAME(sym, name) name,
enum fault { FAULTS(FAULT_ENUM) F_COUNT };
static const char *const fault_names[] = { FAULTS(FAULT_NAME) };
static unsigned int times[F_COUNT];
/*
 * Words of --draw, and which draws each adds. What is not in the first one shows defects that are
 * not mended yet: it is drawn only by name, and joins the first when it has run clean.
 */
#define DRAW_BASE (1u << F_PROCESS | 1u << F_STOP | 1u << F_LINK | 1u << F_LOSS | 1u << F_DAEMON | 1u << F_CLOCK | 1u << F_CONTROLLER | 1u << F_SPINE | 1u << F_PARTITION | 1u << F_CORE)
static const struct draw {
	const char *name;
	unsigned int faults;
} draws[] = {
	{ "base", DRAW_BASE },
	{ "leave", 1u << F_LEAVE },
	{ "pause", 1u << F_PAUSE },
	{ "controller-stop", 1u << F_CTL_STOP },
	{ "switch", 1u << F_SWITCH },
};
static unsigned int drawn = DRAW_BASE;

static struct kill_ctl *c; /* of the run, shared with its workers */
static uint64_t seed;
static int64_t skew_ns[HOSTS];
static int whole[HOSTS]; /* program that a host had before it lost frames; -1: it loses none */

uint64_t mono_ns(void)
{
	return t_mono();
}

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	name_controller(cfg, n);
	cfg->dead_after_us = 100000;
	if (n->kind == LAB_HOST)
		cfg->skew_ns = skew_ns[n->index - 1];
}

static unsigned int host_of(unsigned int worker)
{
	return worker % HOSTS;
}

/* ---- the run ---- */

static const char *doing = "begins";

static void say_all(void)
{
	unsigned int i;

	fprintf(stderr, "while it %s; the controller says: %s\n", doing, ask());
	for (i = 0; c && i < WORKERS; i++)
		fprintf(stderr, "worker %u: sent %u got %u acked %d recovered %d %s\n", i, c->w[i].nsent, c->w[i].ngot, c->w[i].all_acked, c->w[i].recovered_ns != 0, c->w[i].error);
	rack_dump();
}

#define UNTIL(what, cond) \
	do { \
		uint64_t until_ = t_mono() + WAIT_NS; \
		doing = what; \
		while (!(cond)) { \
			CHECK(t_mono() < until_, "it does not come to its end"); \
			rack_serve(1); \
		} \
	} while (0)

static void start_workers(void)
{
	unsigned int i;
	pid_t pid;

	c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(c != MAP_FAILED, "%s", strerror(errno));
	c->n = WORKERS;
	c->interval_us = 300 + t_below(&seed, 1000);
	c->size = 16 + t_below(&seed, 300);
	c->fan = 1 + t_below(&seed, 4);
	c->seed = seed;
	for (i = 0; i < WORKERS; i++) {
		fflush(NULL);
		pid = fork(); /* not into *c, which is shared: the child would write there, too */
		CHECK(pid >= 0, "%s", strerror(errno));
		if (pid) {
			c->w[i].pid = pid;
			continue;
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(rack_host(host_of(i)));
		_exit(kill_work(c, i));
	}
	for (i = 0; i < WORKERS; i++)
		UNTIL("waits for endpoints", atomic_load(&c->w[i].ready) || c->w[i].error[0]);
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
		/* who is put out gets ESTALE; it never crashes. A sanitizer's complaint is an exit status above 1 */
		CHECK(!(WIFSIGNALED(st) && WTERMSIG(st) != SIGKILL) && !(WIFEXITED(st) && WEXITSTATUS(st) > 1), "worker %u, pid %d, died with status %#x", i, c->w[i].pid, (unsigned int)st);
		c->w[i].pid = 0;
	}
}

/* Workers that were announced as failed since failure number @since, and the number of the last failure. */
static uint64_t announced(uint64_t since, uint64_t *last)
{
	json_t *said = json_loads(ask(), 0, NULL), *f, *who;
	uint64_t mask = 0;
	unsigned int i;
	size_t k, m;

	json_array_foreach(json_object_get(said, "failures"), k, f) {
		uint64_t number = (uint64_t)json_integer_value(json_object_get(f, "number"));

		if (number > *last)
			*last = number;
		if (number <= since)
			continue;
		json_array_foreach(json_object_get(f, "failed"), m, who)
			for (i = 0; i < WORKERS; i++) {
				json_int_t port = json_integer_value(json_object_get(who, "port"));

				if (json_integer_value(json_object_get(who, "node")) == (json_int_t)host_of(i) + 1 && (!port || port == c->w[i].addr.port))
					mask |= 1ULL << i;
			}
	}
	json_decref(said);
	return mask;
}

/* ---- what happens ---- */

/* what a routing daemon does when a link is back */
static void reroute(unsigned int node)
{
	int home = rack_away(node);

	CHECK(!lab_routes(&rack.lab, &rack.lab.nodes[node]), "routes");
	rack_back(home);
}

/* The links of a spine or a core; of a ToR those to spines. */
static void ways(enum lab_kind kind, unsigned int index, bool up)
{
	unsigned int i, k;

	for (i = 0; i < rack.lab.nnodes; i++) {
		const struct lab_node *n = &rack.lab.nodes[i];

		if (n->kind != kind || n->index != index)
			continue;
		for (k = 0; k < n->nports; k++)
			if (kind != LAB_TOR || rack.lab.nodes[n->ports[k].peer_node].kind == LAB_SPINE)
				rack_link(i, n->ports[k].ifname, up);
		if (up)
			reroute(i);
	}
}

/* One of two is cut off for @ms. */
static void cut_off(enum lab_kind kind, unsigned int ms)
{
	ways(kind, 1 + t_below(&seed, 2), false);
	rack_serve(ms);
	ways(kind, 1, true);
	ways(kind, 2, true);
}

/* short of dead_after, about it, or well beyond */
static unsigned int a_while(void)
{
	return 1 + t_below(&seed, t_below(&seed, 3) ? 60 : 400);
}

static void restart_daemon(unsigned int host)
{
	if (whole[host] >= 0) { /* the daemon puts its own program there */
		make_whole(host, whole[host]);
		whole[host] = -1;
	}
	rack_close_node(rack_host(host));
	rack_serve(t_below(&seed, 30));
	rack_open_node(rack_host(host));
}

static unsigned int switch_node(void)
{
	unsigned int i, n = 0, k;

	for (i = 0; i < rack.lab.nnodes; i++)
		n += rack_is_switch(i);
	k = t_below(&seed, n);
	for (i = 0; !rack_is_switch(i) || k--; i++)
		;
	return i;
}

static void strike(enum fault f)
{
	unsigned int worker = t_below(&seed, WORKERS), host = t_below(&seed, HOSTS), ms = a_while();
	unsigned int node = rack_host(host);

	times[f]++;
	switch (f) {
	case F_PROCESS:
		if (c->w[worker].pid > 0) {
			kill(c->w[worker].pid, SIGKILL);
			waitpid(c->w[worker].pid, NULL, 0);
		}
		c->w[worker].pid = 0;
		break;
	case F_STOP:
		if (c->w[worker].pid > 0) {
			kill(c->w[worker].pid, SIGSTOP);
			rack_serve(ms);
			kill(c->w[worker].pid, SIGCONT);
		}
		break;
	case F_LINK:
		rack_link(node, "eth0", false);
		rack_serve(ms);
		rack_link(node, "eth0", true);
		reroute(node);
		break;
	case F_LOSS:
		/* 10^-4 to 10^-1 */
		if (whole[host] < 0)
			whole[host] = make_lossy(host, 7u << t_below(&seed, 11), seed);
		break;
	case F_DAEMON:
		restart_daemon(host);
		break;
	case F_CLOCK:
		/* within the bound, or far beyond it: then what the host sends is refused until its clock is right again */
		skew_ns[host] = t_below(&seed, 4) ? (int64_t)t_below(&seed, 80000) - 40000 : (int64_t)t_below(&seed, 20000000) - 10000000;
		restart_daemon(host);
		rack_serve(ms);
		skew_ns[host] = 0;
		restart_daemon(host);
		break;
	case F_CONTROLLER:
		ctl_kill();
		rack_serve(ms / 4);
		ctl_start(20000);
		break;
	case F_LEAVE:
		atomic_store(&c->w[worker].leave, 1);
		break;
	case F_PAUSE:
		/* beyond the time limit of a process it is put out */
		if (c->w[worker].pid > 0) {
			kill(c->w[worker].pid, SIGSTOP);
			rack_serve(100 + t_below(&seed, t_below(&seed, 2) ? 12000 : 2000));
			kill(c->w[worker].pid, SIGCONT);
		}
		break;
	case F_CTL_STOP:
		kill(ctl, SIGSTOP);
		rack_serve(ms);
		kill(ctl, SIGCONT);
		break;
	case F_SWITCH:
		node = switch_node();
		rack_close_node(node);
		rack_serve(t_below(&seed, 30));
		rack_open_node(node);
		break;
	case F_SPINE:
		cut_off(LAB_SPINE, ms);
		break;
	case F_CORE:
		cut_off(LAB_CORE, ms);
		break;
	case F_PARTITION:
		cut_off(LAB_TOR, ms);
		break;
	default:
		break;
	}
}

static bool recovered(uint64_t who)
{
	unsigned int i;

	for (i = 0; i < WORKERS; i++)
		if ((who >> i & 1) && c->w[i].pid > 0 && !c->w[i].error[0] && !atomic_load(&c->w[i].left) && !atomic_load(&c->w[i].recovered_ns))
			return false;
	return true;
}

static bool acked(uint64_t who)
{
	unsigned int i;

	for (i = 0; i < WORKERS; i++)
		if ((who >> i & 1) && !c->w[i].error[0] && !atomic_load(&c->w[i].left) && !atomic_load(&c->w[i].all_acked))
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

static enum fault draw_fault(void)
{
	unsigned int may = drawn, k, f;

	/* of three tiers cores are cut: a spine that comes back there does not get its routes again (EINVAL) */
	if (!rack.lab.spec.leaf_spine || rack.lab.spec.cores)
		may &= ~(1u << F_SPINE | 1u << F_PARTITION);
	if (!rack.lab.spec.cores)
		may &= ~(1u << F_CORE);

	CHECK(may, "nothing can be drawn here");
	k = t_below(&seed, (unsigned int)__builtin_popcount(may));
	for (f = 0; !(may >> f & 1) || k--; f++)
		;
	return (enum fault)f;
}

static void one_run(unsigned int number, struct kill_verdict *sum)
{
	const uint64_t all = (1ULL << WORKERS) - 1;
	uint64_t run_seed = seed, base = 0, last = 0, dead = 0, since;
	unsigned int faults, i;
	char what[256] = "";
	struct kill_verdict v;

	UNTIL("waits for all nodes", all_ok() && none_open());
	announced(~0ULL, &base);
	start_workers();
	atomic_store(&c->phase, KILL_TALK);
	/* what the run before did may be announced only now */
	UNTIL("waits for traffic", sum_got() >= 30 * WORKERS || anybody_out());
	faults = 1 + !t_below(&seed, 3);
	for (i = 0; i < faults; i++) {
		enum fault f = draw_fault();

		snprintf(what + strlen(what), sizeof(what) - strlen(what), "%s%s", i ? ", " : "", fault_names[f]);
		rack_serve(t_below(&seed, 20));
		strike(f);
	}
	fprintf(stderr, "run %u, seed %#" PRIx64 ": %s\n", number, run_seed, what);
	rack_serve(t_below(&seed, 200));
	for (i = 0; i < HOSTS; i++)
		if (whole[i] >= 0) {
			make_whole(i, whole[i]);
			whole[i] = -1;
		}
	/* everything goes on: what is sent now comes */
	atomic_store(&c->late_ns, t_mono());
	UNTIL("waits for what is sent now", (dead |= announced(base, &last), recovered(all & ~dead)));
	atomic_store(&c->phase, KILL_DRAIN);
	UNTIL("waits for acknowledgements", (dead |= announced(base, &last), acked(all & ~dead)));
	/* until the diaries are complete: a delivery may wait for a failure that is not dealt with yet */
	for (since = t_mono(); t_mono() - since < WAIT_NS && (dead & all) != all && kill_judge(c, all & ~dead, &v); rack_serve(10))
		dead |= announced(base, &last);
	for (i = 0; i < WORKERS; i++)
		CHECK((dead >> i & 1) || !c->w[i].error[0], "worker %u, which nobody announced: %s", i, c->w[i].error);
	end_workers();
	if ((dead & all) != all)
		CHECK(!kill_judge(c, all & ~dead, &v), "run %u, seed %#" PRIx64 ", %s; failed %#" PRIx64 ": %s", number, run_seed, what, dead, v.error);
	else
		v = (struct kill_verdict){ 0 };
	sum->delivered += v.delivered;
	sum->none += v.none;
	sum->cut += v.cut;
	munmap(c, sizeof(*c));
	c = NULL;
}

static void campaign(bool leaf_spine, unsigned int cores)
{
	struct kill_verdict sum = { 0 };
	uint64_t begun = t_mono();
	unsigned int i, k;

	alarm(seconds ? seconds + 180 : 30 * runs + 180);
	seed = first_seed ? first_seed : t_mono() * 0x9E3779B97F4A7C15ULL | 1;
	rack_last_words = say_all;
	for (i = 0; i < HOSTS; i++)
		whole[i] = -1;
	ctl_start(20000);
	rack.lab.spec.hosts = HOSTS;
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = leaf_spine;
	rack.lab.spec.cores = cores;
	rack.tweak = tweak;
	rack_open();
	if (cores && !asked)
		runs = RUNS / 2;
	for (i = 0; seconds ? t_mono() - begun < seconds * 1000000000ULL : i < runs; i++)
		one_run(i + 1, &sum);
	fprintf(stderr, "  %u runs in %.0f s: %u scatterings delivered by all, %u of correct senders by nobody, as they were told, %u of failed ones by nobody\n ", i, (double)(t_mono() - begun) / 1e9, sum.delivered,
		sum.none, sum.cut);
	for (k = 0; k < F_COUNT; k++)
		fprintf(stderr, " %s: %u;", fault_names[k], times[k]);
	fputc('\n', stderr);
	if (i >= MANY) /* some died with something under way: else "all" was all that was shown of "all or none" */
		CHECK(sum.none && sum.cut, "nothing was taken back, nothing was discarded: this proves nothing");
}

RACK_TEST(rack__random_kills)
{
	campaign(false, 0);
}

RACK_TEST(leaf_spine__random_kills)
{
	campaign(true, 0);
}

RACK_TEST(three_tiers__random_kills)
{
	campaign(true, 2);
}

/* "base,leave": these; 0 or -1 after a message */
static int choose_draws(char *list)
{
	char *word, *rest = list;
	unsigned int i;

	drawn = 0;
	while ((word = strsep(&rest, ","))) {
		for (i = 0; i < sizeof(draws) / sizeof(draws[0]) && strcmp(word, draws[i].name); i++)
			;
		if (i == sizeof(draws) / sizeof(draws[0])) {
			fprintf(stderr, "--draw \"%s\":", word);
			for (i = 0; i < sizeof(draws) / sizeof(draws[0]); i++)
				fprintf(stderr, " %s", draws[i].name);
			fputc('\n', stderr);
			return -1;
		}
		drawn |= draws[i].faults;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "runs", required_argument, NULL, 'r' }, { "seconds", required_argument, NULL, 's' }, { "seed", required_argument, NULL, 'S' }, { "case", required_argument, NULL, 'c' }, { "draw", required_argument, NULL, 'd' },
		{ 0 } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rack__random_kills),
		cmocka_unit_test(leaf_spine__random_kills),
		cmocka_unit_test(three_tiers__random_kills),
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'r')
			runs = asked = (unsigned int)strtoul(optarg, NULL, 0);
		else if (opt == 's')
			seconds = (unsigned int)strtoul(optarg, NULL, 0);
		else if (opt == 'S')
			first_seed = strtoull(optarg, NULL, 0);
		else if (opt == 'c')
			cmocka_set_test_filter(optarg);
		else if (opt != 'd' || choose_draws(optarg))
			return 2;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
