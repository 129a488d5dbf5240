/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The faults of the random-kill campaign (test_kills.c) on a rack of daemons, and the cost that
 * each of them may have (kill_limits.h): who may be announced, and how long the others may stand
 * still.
 *
 * 	choose_draws("base,pause")		words of --draw
 * 	n = draw_faults(f);
 * 	strike(f[0]);
 * 	... at the end of the run: faults_end()
 */
#ifndef BARLINE_TESTS_KILL_FAULTS_H
#define BARLINE_TESTS_KILL_FAULTS_H

#include "tests/net/lossy.h"

#include "tests/net/daemons.h"
#include "tests/net/reliable/kill_limits.h"
#include "tests/net/reliable/kill_talk.h"

#define WORKERS          6 /* on 4 hosts, of which two have two */
#define HOSTS            4
#define DEAD_US          200000
#define PROCESS_LIMIT_MS 1000
#define ANSWER_MS        5000
#define STUCK_MS         5000 /* the controller's default */
#define GRACE_MS         3000 /* likewise */

/* X(SYMBOL, "name"): the fault and its victim are drawn at random */
/* clang-format off */
#define FAULTS(X) \
	X(PROCESS, "process killed") \
	X(STOP, "process stopped for a moment") \
	X(LINK, "host's link cut") \
	X(LOSS, "frames lost") \
	X(CLOCK, "clock stepped") \
	X(CONTROLLER, "controller killed") \
	X(SPINE, "spine cut off") \
	X(PARTITION, "ToR cut off") \
	X(CORE, "core cut off") \
	X(LEAVE, "process left") \
	X(PAUSE, "process stopped for 0.1 to 12 s") \
	X(CTL_STOP, "controller stopped") \
	X(HOST_TERM, "host's daemon restarted") \
	X(HOST_KILL, "host's daemon killed and started") \
	X(SWITCH_TERM, "switch's daemon restarted") \
	X(SWITCH_KILL, "switch's daemon killed and started") \
	X(HOST_STILL, "host's daemon stopped for 0.1 to 3 s") \
	X(SWITCH_STILL, "switch's daemon stopped for 0.1 to 3 s") \
	X(SWITCH_OUT, "switch detached") \
	X(HOST_OUT, "host detached")
/* clang-format on */
#define FAULT_ENUM(sym, name) F_##sym,
#define FAULT_NAME(sym, name) name,
enum fault { FAULTS(FAULT_ENUM) F_COUNT };
static const char *const fault_names[] = { FAULTS(FAULT_NAME) };

/* words of --draw */
#define BIT(sym) (1u << F_##sym)
#define DRAW_BASE                                                                          \
	(BIT(PROCESS) | BIT(STOP) | BIT(LINK) | BIT(LOSS) | BIT(CLOCK) | BIT(CONTROLLER) | \
	 BIT(SPINE) | BIT(PARTITION) | BIT(CORE) | BIT(HOST_TERM))
#define DRAW_RESTART (BIT(HOST_TERM) | BIT(HOST_KILL) | BIT(SWITCH_TERM) | BIT(SWITCH_KILL))
#define DRAW_ALL     ((1u << F_COUNT) - 1)
static const struct draw {
	const char *name;
	unsigned int faults;
} draws[] = {
	{ "all", DRAW_ALL },
	{ "base", DRAW_BASE },
	{ "leave", BIT(LEAVE) },
	{ "pause", BIT(PAUSE) },
	{ "controller-stop", BIT(CTL_STOP) },
	{ "restart", DRAW_RESTART },
	{ "switch", BIT(SWITCH_TERM) | BIT(SWITCH_KILL) },
	{ "stop-daemon", BIT(HOST_STILL) | BIT(SWITCH_STILL) },
	{ "detach", BIT(SWITCH_OUT) | BIT(HOST_OUT) },
};
static unsigned int drawn = DRAW_ALL;

static uint64_t seed;
static int64_t skew_ns[HOSTS];
/* Time until which a host whose clock was far off may still be refused: it does not jump back. */
static uint64_t off_until_ns[HOSTS];
static int whole[HOSTS]; /* program that a host had before it lost frames; -1: it loses none */

/* What the faults of the run may cost. */
static struct facts {
	struct kl_run run;
	struct kl_proc proc[WORKERS];
	/*
	 * @stand_ms: standstill that the faults cause by themselves.
	 * @open_ms: additional standstill, if something fails while they last, or if they follow a
	 * failure.
	 * @apart: number of faults that cut the network.
	 */
	unsigned int stand_ms, open_ms, apart;
} facts;

T_FN unsigned int host_of(unsigned int worker)
{
	return worker % HOSTS;
}

T_FN uint64_t all_nodes(void)
{
	return (1ULL << rack.lab.nnodes) - 1;
}

T_FN unsigned int ms_since(uint64_t at)
{
	return (unsigned int)((t_mono() - at) / 1000000);
}

/* Adds the routes again that a routing daemon would add when a link is back. */
T_FN void reroute(unsigned int node)
{
	int home = rack_away(node);

	CHECK(!lab_routes(&rack.lab, &rack.lab.nodes[node]), "routes of %s",
	      rack.lab.nodes[node].name);
	rack_back(home);
}

/* Sets all links of a spine or core up or down, or those of a ToR to the spines. */
T_FN void ways(unsigned int node, bool up)
{
	const struct lab_node *n = &rack.lab.nodes[node];
	unsigned int k;

	for (k = 0; k < n->nports; k++)
		if (n->kind != LAB_TOR || rack.lab.nodes[n->ports[k].peer_node].kind == LAB_SPINE)
			rack_link(node, n->ports[k].ifname, up);
	if (up)
		reroute(node);
}

T_FN bool is_switch(const struct lab_node *n)
{
	return n->kind == LAB_TOR || n->kind == LAB_SPINE || n->kind == LAB_CORE;
}

T_FN bool is_spine(const struct lab_node *n)
{
	return n->kind == LAB_SPINE;
}

T_FN bool is_core(const struct lab_node *n)
{
	return n->kind == LAB_CORE;
}

T_FN bool is_tor(const struct lab_node *n)
{
	return n->kind == LAB_TOR;
}

T_FN unsigned int one_of(bool (*is)(const struct lab_node *n))
{
	unsigned int i, n = 0, k;

	for (i = 0; i < rack.lab.nnodes; i++)
		n += is(&rack.lab.nodes[i]);
	CHECK(n, "there is none");
	k = t_below(&seed, n);
	for (i = 0; !is(&rack.lab.nodes[i]) || k--; i++)
		;
	return i;
}

/* Returns a time below dead_after, about dead_after, or well beyond it. */
T_FN unsigned int a_while(void)
{
	return 1 + t_below(&seed, t_below(&seed, 3) ? DEAD_US / 2000 : DEAD_US * 4 / 1000);
}

/*
 * Returns the ms until the next daemon starts: 0, a moment, or so long that only a caretaker, if
 * there is one, sends the node's beacons meanwhile.
 */
T_FN unsigned int before_the_next(void)
{
	unsigned int kind = t_below(&seed, 3);

	return kind == 0 ? 0 : kind == 1 ? t_below(&seed, 60) : t_below(&seed, 1500);
}

T_FN void stop_losing(unsigned int node)
{
	unsigned int host = node - rack.host0;

	if (rack.lab.nodes[node].kind != LAB_HOST || whole[host] < 0)
		return;
	make_whole(host, whole[host]); /* the next daemon attaches its own program there */
	whole[host] = -1;
}

/*
 * Returns the nodes that go down with a node: itself, and for a ToR everything on one of its two
 * sides.
 */
T_FN uint64_t with(unsigned int node)
{
	return rack.lab.nodes[node].kind == LAB_TOR ? all_nodes() : 1ULL << node;
}

/* Ends the node's daemon with @sig and starts the next one. */
T_FN void restart(unsigned int node, int sig, unsigned int away_ms)
{
	pid_t old = dm[node].pid;
	uint64_t begun = t_mono();

	stop_losing(node);
	if (sig == SIGKILL && !away_ms) {
		/*
		 * It is not waited for: the next daemon may start while the old one still exists.
		 */
		CHECK(!kill(old, SIGKILL), "%s", strerror(errno));
		close(dm[node].out);
		daemon_start(node);
		CHECK(waitpid(old, NULL, 0) == old, "%s", strerror(errno));
	} else {
		daemon_stop(node, sig);
		rack_serve(away_ms);
		daemon_start(node);
	}
	facts.open_ms += ms_since(begun);
	if (sig == SIGKILL)
		facts.run.may_fall |= 1ULL << node;
	/*
	 * Whether an answer is late is decided by the controller, which knows nothing of a killed
	 * daemon.
	 */
	if (ms_since(begun) > ANSWER_MS / 2)
		facts.run.may_owe |= 1ULL << node;
}

T_FN void stop_daemon(unsigned int node, unsigned int ms)
{
	uint64_t begun = t_mono();

	CHECK(!kill(dm[node].pid, SIGSTOP), "%s", strerror(errno));
	rack_serve(ms);
	CHECK(!kill(dm[node].pid, SIGCONT), "%s", strerror(errno));
	facts.open_ms += ms_since(begun);
	if (ms_since(begun) >= DEAD_US / 2000)
		facts.run.may_fall |= 1ULL << node;
	if (ms_since(begun) >= ANSWER_MS / 2)
		facts.run.may_owe |= 1ULL << node;
}

/* Records that since @begun two endpoints may not have reached each other. */
T_FN void cut_since(uint64_t begun)
{
	uint64_t ns = t_mono() - begun;

	facts.run.waits_ns = ns > facts.run.waits_ns ? ns : facts.run.waits_ns;
}

/*
 * Detaches the node as `barlined switch detach --force` does after the daemon was stopped, and
 * starts it again.
 */
T_FN void detach(unsigned int node, unsigned int away_ms)
{
	uint64_t begun = t_mono();
	struct bl_err err;
	char netns[256];
	unsigned int i;

	stop_losing(node);
	daemon_stop(node, SIGTERM);
	snprintf(netns, sizeof(netns), LAB_NETNS_DIR "/%s", rack.lab.nodes[node].name);
	for (i = 0; i < WORKERS; i++)
		facts.proc[i].detached |= rack_host(host_of(i)) == node;
	CHECK(!bl_node_detach(rack_is_switch(node) ? BL_ROLE_SWITCH : BL_ROLE_HOST, netns, &err),
	      "%s: %s", rack.lab.nodes[node].name, err.text);
	rack_serve(away_ms);
	daemon_start(node);
	facts.open_ms += ms_since(begun);
	facts.run.may_fall |= with(node);
	if (ms_since(begun) > ANSWER_MS / 2)
		facts.run.may_owe |= 1ULL << node;
	cut_since(begun);
	if (!rack_is_switch(node))
		return;
	/*
	 * Its ports are awaited for that long, and unacknowledged messages are sent again
	 * (docs/guarantees.md).
	 */
	facts.stand_ms +=
		ms_since(begun) + (10 * DEAD_US / 1000 > 1000 ? 10 * DEAD_US / 1000 : 1000) + 200;
	facts.apart++;
}

/* Stops a process for @ms while the others continue. */
T_FN void stop_process(unsigned int worker, unsigned int ms)
{
	uint64_t begun = t_mono(), stood;

	if (c->w[worker].pid <= 0)
		return;
	kill(c->w[worker].pid, SIGSTOP);
	rack_serve(ms);
	kill(c->w[worker].pid, SIGCONT);
	stood = t_mono() - begun;
	if (stood > facts.proc[worker].stopped_ns)
		facts.proc[worker].stopped_ns = stood;
	/* The limit is checked eight times per period, so it takes effect at the next check. */
	facts.stand_ms += stood / 1000000 > PROCESS_LIMIT_MS ? PROCESS_LIMIT_MS * 9 / 8
							     : (unsigned int)(stood / 1000000);
}

T_FN void cut_off(unsigned int node, unsigned int ms)
{
	uint64_t begun = t_mono();

	ways(node, false);
	rack_serve(ms);
	ways(node, true);
	cut_since(begun);
	facts.run.may_fall |= with(node);
	facts.stand_ms += DEAD_US / 1000;
	facts.apart++;
}

T_FN void strike(enum fault f)
{
	unsigned int worker = t_below(&seed, WORKERS), host = t_below(&seed, HOSTS), ms = a_while();
	unsigned int node = rack_host(host);
	uint64_t begun = t_mono();

	switch (f) {
	case F_PROCESS:
		facts.proc[worker].killed = true;
		if (c->w[worker].pid > 0) {
			kill(c->w[worker].pid, SIGKILL);
			waitpid(c->w[worker].pid, NULL, 0);
		}
		c->w[worker].pid = 0;
		break;
	case F_STOP:
		stop_process(worker, ms);
		break;
	case F_PAUSE:
		/* Beyond its limit the process is expelled. */
		stop_process(worker, 100 + t_below(&seed, t_below(&seed, 8) ? 2900 : 11900));
		break;
	case F_LINK:
		rack_link(node, "eth0", false);
		rack_serve(ms);
		rack_link(node, "eth0", true);
		reroute(node);
		cut_since(begun);
		facts.run.may_fall |= 1ULL << node;
		facts.stand_ms += DEAD_US / 1000;
		facts.apart++;
		break;
	case F_LOSS:
		/* 10^-4 to 10^-1 */
		if (whole[host] < 0)
			whole[host] = make_lossy(host, 7u << t_below(&seed, 11), seed);
		facts.stand_ms += 1000;
		break;
	case F_CLOCK:
		/*
		 * Within the bound, or far beyond it: then what the host sends is refused until its
		 * clock is right again.
		 */
		if (t_below(&seed, 4)) {
			skew_ns[host] = (int64_t)t_below(&seed, 80000) - 40000;
		} else {
			skew_ns[host] = (int64_t)t_below(&seed, 20000000) - 10000000;
			facts.run.may_fall |= 1ULL << node;
			facts.stand_ms += DEAD_US / 1000;
			off_until_ns[host] = UINT64_MAX;
		}
		restart(node, SIGTERM, 0);
		rack_serve(ms);
		skew_ns[host] = 0;
		restart(node, SIGTERM, 0);
		if (off_until_ns[host] == UINT64_MAX)
			off_until_ns[host] = t_mono() + 60000000000ULL;
		break;
	case F_CONTROLLER:
		ctl_kill();
		rack_serve(ms / 4);
		ctl_start(ANSWER_MS);
		facts.open_ms += ms_since(begun) + GRACE_MS + 1000;
		break;
	case F_CTL_STOP:
		kill(ctl, SIGSTOP);
		rack_serve(ms);
		kill(ctl, SIGCONT);
		facts.open_ms += ms_since(begun) + 1000;
		break;
	case F_LEAVE:
		facts.proc[worker].leaves = true;
		atomic_store(&c->w[worker].leave, 1);
		break;
	case F_HOST_TERM:
		restart(node, SIGTERM, before_the_next());
		break;
	case F_HOST_KILL:
		restart(node, SIGKILL, before_the_next());
		break;
	case F_SWITCH_TERM:
		restart(one_of(is_switch), SIGTERM, before_the_next());
		break;
	case F_SWITCH_KILL:
		restart(one_of(is_switch), SIGKILL, before_the_next());
		break;
	case F_HOST_STILL:
		stop_daemon(node, 100 + t_below(&seed, t_below(&seed, 4) ? 900 : 2900));
		break;
	case F_SWITCH_STILL:
		stop_daemon(one_of(is_switch),
			    100 + t_below(&seed, t_below(&seed, 4) ? 900 : 2900));
		break;
	case F_SWITCH_OUT:
		detach(one_of(is_switch), ms);
		break;
	case F_HOST_OUT:
		detach(node, ms);
		break;
	case F_SPINE:
		cut_off(one_of(is_spine), ms);
		break;
	case F_CORE:
		cut_off(one_of(is_core), ms);
		break;
	case F_PARTITION:
		cut_off(one_of(is_tor), ms);
		break;
	default:
		break;
	}
}

T_FN void faults_begin(void)
{
	unsigned int i;

	memset(&facts, 0, sizeof(facts));
	for (i = 0; i < HOSTS; i++)
		if (t_mono() < off_until_ns[i]) {
			facts.run.may_fall |= 1ULL << rack_host(i);
			facts.stand_ms += DEAD_US / 1000;
		}
	facts.run.process_limit_ns = PROCESS_LIMIT_MS * 1000000ULL;
	facts.run.dead_after_ns = DEAD_US * 1000ULL;
	facts.run.answer_ns = ANSWER_MS * 1000000ULL;
	facts.run.stuck_ns = STUCK_MS * 1000000ULL;
}

/*
 * Returns whether a node is a switch that may have no node left below it, and thus no barriers to
 * pass on.
 */
T_FN bool may_be_alone(const struct lab_node *n)
{
	unsigned int k;

	for (k = 0; k < n->nports; k++)
		if (n->ports[k].role != BL_PORT_UP &&
		    !(facts.run.may_fall >> n->ports[k].peer_node & 1))
			return false;
	return is_switch(n);
}

T_FN void faults_end(void)
{
	uint64_t before;
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		stop_losing(rack_host(i));
	/*
	 * Two faults that remove paths, one after the other: what remains of the first may cut off
	 * any node together with the second.
	 */
	if (facts.apart > 1)
		facts.run.may_fall = all_nodes();
	do {
		before = facts.run.may_fall;
		for (i = 0; i < rack.lab.nnodes; i++)
			if (may_be_alone(&rack.lab.nodes[i]))
				facts.run.may_fall |= 1ULL << i;
	} while (facts.run.may_fall != before);
}

#define FAULTS_MAX 2

/* Returns the faults that may be drawn on this network. */
T_FN unsigned int may_draw(void)
{
	unsigned int may = drawn;

	if (!rack.lab.spec.leaf_spine)
		may &= ~(BIT(SPINE) | BIT(PARTITION));
	if (!rack.lab.spec.cores)
		may &= ~BIT(CORE);
	CHECK(may, "nothing can be drawn here");
	return may;
}

/* Draws the number and kinds of the faults of a run that begins with @seed. */
T_FN unsigned int draw_faults(enum fault faults[FAULTS_MAX])
{
	unsigned int may = may_draw(), n = 1 + !t_below(&seed, 3), i, k, f;

	for (i = 0; i < n; i++) {
		k = t_below(&seed, (unsigned int)__builtin_popcount(may));
		for (f = 0; !(may >> f & 1) || k--; f++)
			;
		faults[i] = (enum fault)f;
	}
	return n;
}

/*
 * Chooses the seed of the next run, such that its first fault is one that has been drawn least
 * often according to @times. A few runs then contain a little of every kind. Everything in a run
 * follows from its seed, so a run can be repeated alone.
 */
T_FN void choose_seed(const unsigned int times[F_COUNT])
{
	unsigned int may = may_draw(), least = ~0U, f;
	enum fault faults[FAULTS_MAX];
	uint64_t s;

	for (f = 0; f < F_COUNT; f++)
		if ((may >> f & 1) && times[f] < least)
			least = times[f];
	for (;;) {
		s = seed;
		draw_faults(faults);
		if (times[faults[0]] == least)
			break;
	}
	seed = s;
}

/* Reads the list of --draw, as in "base,leave". Returns 0, or -1 after a message. */
T_FN int choose_draws(char *list)
{
	char *word, *rest = list;
	unsigned int i;

	drawn = 0;
	while ((word = strsep(&rest, ","))) {
		for (i = 0; i < sizeof(draws) / sizeof(draws[0]) && strcmp(word, draws[i].name);
		     i++)
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

#endif
