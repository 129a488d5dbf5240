// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Daemons are replaceable at any moment, with a controller watching: whoever is stopped and started again is not announced, nor is
 * anybody else; order and atomicity hold, nothing is late, bus time goes on. The daemons are the program itself (daemons.h), and stay
 * away for longer than dead_after, so that without a caretaker each restart of a host would be a failure.
 */
#include "daemons.h"

#include "bpf/clock_core.h"
#include "cli/kill.h"
#include "loader/node_priv.h"

#define HOSTS	  3
#define ANSWER_MS 20000
#define DEAD_US	  500000
#define AWAY_MS	  1200 /* longer than DEAD_US, with a margin for whoever watches */

static struct kill_ctl *c;
static uint32_t dead_us = DEAD_US;

uint64_t mono_ns(void)
{
	return t_mono();
}

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	name_controller(cfg, n);
	cfg->dead_after_us = dead_us;
}

static const char *doing = "begins";

static void say_all(void)
{
	unsigned int i;

	fprintf(stderr, "while it %s; the controller says: %s\n", doing, ask());
	for (i = 0; c && i < HOSTS; i++)
		fprintf(stderr, "worker %u: sent %u got %u acked %d %s\n", i, c->w[i].nsent, c->w[i].ngot, c->w[i].all_acked, c->w[i].error);
	rack_dump();
}

#define UNTIL(what, cond) \
	do { \
		uint64_t until_ = t_mono() + 60000000000ULL; \
		doing = what; \
		while (!(cond)) { \
			CHECK(t_mono() < until_, "it does not come to its end"); \
			rack_serve(5); \
		} \
	} while (0)

static void open_rack(void)
{
	rack_last_words = say_all;
	rack.lab.spec.hosts = HOSTS;
	rack.tweak = tweak;
	ctl_start(ANSWER_MS);
	daemons_open();
	UNTIL("waits for all nodes", all_ok());
}

static unsigned int failures(void)
{
	return times_said("\"number\":");
}

/* ---- traffic: reliable, from each to all ---- */

static void talk(void)
{
	unsigned int i;
	pid_t pid;

	c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(c != MAP_FAILED, "%s", strerror(errno));
	c->n = HOSTS;
	c->interval_us = 1500;
	c->size = 200;
	for (i = 0; i < HOSTS; i++) {
		fflush(NULL);
		pid = fork();
		CHECK(pid >= 0, "%s", strerror(errno));
		if (pid) {
			c->w[i].pid = pid;
			continue;
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(rack_host(i));
		_exit(kill_work(c, i));
	}
	for (i = 0; i < HOSTS; i++)
		UNTIL("waits for endpoints", atomic_load(&c->w[i].ready) || c->w[i].error[0]);
	atomic_store(&c->phase, KILL_TALK);
}

static bool all_have(uint32_t more, const uint32_t *since)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++) {
		CHECK(!c->w[i].error[0], "worker %u: %s", i, c->w[i].error);
		if (atomic_load(&c->w[i].ngot) < since[i] + more)
			return false;
	}
	return true;
}

/* It goes on: each gets so many more. */
static void goes_on(const char *when)
{
	uint32_t since[HOSTS];
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		since[i] = atomic_load(&c->w[i].ngot);
	UNTIL(when, all_have(30, since));
}

static bool all_acked(void)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		if (!atomic_load(&c->w[i].all_acked))
			return false;
	return true;
}

/* Everything that was sent came to all, in one order, and nobody was told of any failure. */
static void judge(void)
{
	struct kill_verdict v = { 0 };
	uint64_t end;
	unsigned int i;

	atomic_store(&c->phase, KILL_DRAIN);
	UNTIL("waits for acknowledgements", all_acked());
	for (end = t_mono() + 20000000000ULL; kill_judge(c, (1U << HOSTS) - 1, &v) && t_mono() < end;)
		rack_serve(20);
	CHECK(!kill_judge(c, (1U << HOSTS) - 1, &v), "%s", v.error);
	for (i = 0; i < HOSTS; i++)
		CHECK(!c->w[i].error[0] && !atomic_load(&c->w[i].told_ns), "worker %u: %s", i, c->w[i].error[0] ? c->w[i].error : "was told that somebody failed");
	CHECK(!v.none && !v.cut, "%u scatterings were delivered by nobody", v.none + v.cut);
	CHECK(!failures(), "somebody was announced: %s", ask());
	fprintf(stderr, "  %u scatterings, all delivered by all\n", v.delivered);
	atomic_store(&c->phase, KILL_EXIT);
	for (i = 0; i < HOSTS; i++)
		waitpid(c->w[i].pid, NULL, 0);
}

/* ---- the clock record of a node ---- */

static const struct bl_clock *clock_of(unsigned int i)
{
	int fd = rack_map(i, BL_MAP_CLOCK);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(p != MAP_FAILED, "%s", strerror(errno));
	close(fd);
	return p;
}

/* ---- cases ---- */

RACK_TEST(term_and_start__announces_nobody)
{
	unsigned int i, round, ms, longest = 0;

	open_rack();
	talk();
	goes_on("begins to talk");
	for (round = 0; round < 2; round++) {
		for (i = 0; i < rack.lab.nnodes; i++) {
			/* in the first round nobody talks while a daemon is away: only beacons say that a host lives */
			atomic_store(&c->phase, round ? KILL_TALK : KILL_REGISTER);
			rack_serve(round ? 0 : 200);
			ms = daemon_stop(i, SIGTERM);
			longest = ms > longest ? ms : longest;
			CHECK(caretaker(i), "%s has no caretaker", rack.lab.nodes[i].name);
			rack_serve(AWAY_MS);
			if (round)
				goes_on("goes on without a daemon");
			daemon_start(i);
			CHECK(!caretaker(i), "%s has a caretaker still", rack.lab.nodes[i].name);
			CHECK(!failures(), "somebody was announced: %s", ask());
			atomic_store(&c->phase, KILL_TALK);
			goes_on("goes on with the next daemon");
		}
	}
	fprintf(stderr, "  the longest stop took %u ms\n", longest);
	UNTIL("waits for all nodes", all_ok());
	judge();
	CHECK(!rack_count_all(BL_R_PREP_LATE), "%" PRIu64 " late", rack_count_all(BL_R_PREP_LATE));
	CHECK(!rack_count_all(BL_R_CLOCK_VOID), "%" PRIu64 " found the clock void", rack_count_all(BL_R_CLOCK_VOID));
	daemons_end();
}

/* Three in a row, as fast as they go, of every node at once. */
RACK_TEST(term_and_start__all_at_once)
{
	unsigned int i, round;
	int status;

	open_rack();
	talk();
	goes_on("begins to talk");
	for (round = 0; round < 3; round++) {
		for (i = 0; i < rack.lab.nnodes; i++)
			CHECK(!kill(dm[i].pid, SIGTERM), "%s", strerror(errno));
		for (i = 0; i < rack.lab.nnodes; i++) {
			status = daemon_wait(i);
			CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "%s: status %#x", rack.lab.nodes[i].name, status);
		}
		for (i = 0; i < rack.lab.nnodes; i++)
			daemon_spawn(i);
		for (i = 0; i < rack.lab.nnodes; i++)
			CHECK(daemon_ready(i, &status), "%s", rack.lab.nodes[i].name);
		goes_on("goes on with the next daemons");
	}
	UNTIL("waits for all nodes", all_ok());
	judge();
	CHECK(!rack_count_all(BL_R_CLOCK_VOID), "%" PRIu64 " found the clock void", rack_count_all(BL_R_CLOCK_VOID));
	daemons_end();
}

/* While somebody else fails, whose daemon is away owes an answer: it is waited for, and not taken for failed. */
RACK_TEST(away__is_not_late)
{
	unsigned int k;

	rack_last_words = say_all;
	rack.lab.spec.hosts = HOSTS;
	rack.tweak = tweak;
	ctl_start(2000);
	daemons_open();
	UNTIL("waits for all nodes", all_ok());
	talk();
	goes_on("begins to talk");
	daemon_stop(rack_host(1), SIGTERM);
	CHECK(!kill(c->w[0].pid, SIGKILL) && waitpid(c->w[0].pid, NULL, 0) == c->w[0].pid, "%s", strerror(errno));
	rack_serve(5000); /* twice the time for an answer, and half of caretaker_ms */
	CHECK(!strstr(ask(), "\"why\":\"down\"") && !strstr(ask(), "\"step\":\"finished\""), "%s", ask());
	daemon_start(rack_host(1));
	UNTIL("waits for the failure's end", all_finished());
	CHECK(failures() == 1 && times_said("\"port\":0,") == 0, "%s", ask());
	for (k = 1; k < HOSTS; k++)
		CHECK(!c->w[k].error[0], "worker %u: %s", k, c->w[k].error);
	daemons_end();
}

RACK_TEST(term_twice__is_as_once)
{
	static const unsigned int later_us[] = { 0, 100, 1000, 3000, 10000, 30000 };
	unsigned int i = rack_host(0), k;
	int status;

	rack.lab.spec.hosts = 2;
	rack.tweak = tweak;
	ctl_start(ANSWER_MS);
	daemons_open();
	UNTIL("waits for all nodes", all_ok());
	i = rack_host(0);
	for (k = 0; k < sizeof(later_us) / sizeof(later_us[0]); k++) {
		CHECK(!kill(dm[i].pid, SIGTERM), "%s", strerror(errno));
		usleep(later_us[k]);
		kill(dm[i].pid, k & 1 ? SIGINT : SIGTERM);
		status = daemon_wait(i);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "%u us later: status %#x", later_us[k], status);
		CHECK(caretaker(i), "no caretaker");
		daemon_start(i);
	}
	/* and one that comes before it is ready */
	CHECK(!daemon_stop(i, SIGTERM) || true, "");
	daemon_spawn(i);
	usleep(30000);
	kill(dm[i].pid, SIGTERM);
	kill(dm[i].pid, SIGTERM);
	status = daemon_wait(i);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "status %#x", status);
	CHECK(caretaker(i), "no caretaker");
	daemon_start(i);
	CHECK(!kill(dm[i].pid, SIGHUP), "%s", strerror(errno));
	rack_serve(300);
	CHECK(waitpid(dm[i].pid, &status, WNOHANG) == 0, "SIGHUP ends it: status %#x", status);
	CHECK(!failures(), "%s", ask());
	daemons_end();
}

/* kill -9 is silence until the next daemon beats: harmless as long as that is shorter than dead_after. */
RACK_TEST(kill_and_start__within_dead_after)
{
	unsigned int i, round;

	dead_us = 8000000;
	open_rack();
	talk();
	goes_on("begins to talk");
	for (round = 0; round < 2; round++) {
		for (i = 0; i < rack.lab.nnodes; i++) {
			/* not waited for: the next one may come while it is not gone yet */
			CHECK(!kill(dm[i].pid, SIGKILL), "%s", strerror(errno));
			close(dm[i].out);
			daemon_start(i);
			goes_on("goes on after kill -9");
		}
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	judge();
	daemons_end();
}

/* The next daemon keeps the clock from its first step on: also one that then cannot start, because of the NIC. */
RACK_TEST(kill_and_start__keeps_the_clock_first)
{
	unsigned int i;
	const struct bl_clock *clock;
	uint64_t before;
	int home, status;

	rack.lab.spec.hosts = 2;
	rack.tweak = tweak;
	ctl_start(ANSWER_MS);
	daemons_open();
	i = rack_host(0);
	clock = clock_of(i);
	daemon_stop(i, SIGKILL);
	before = BL_READ_ONCE(clock->void_after_ns);
	home = rack_away(i);
	CHECK(!system("ip link set eth0 down && ip link set eth0 name eth7"), "ip");
	rack_back(home);
	daemon_spawn(i);
	CHECK(!daemon_ready(i, &status), "it starts without its NIC");
	CHECK(BL_READ_ONCE(clock->void_after_ns) > before, "nobody kept the clock");
	home = rack_away(i);
	CHECK(!system("ip link set eth7 name eth0 && ip link set eth0 up"), "ip");
	rack_back(home);
	daemon_start(i);
	daemons_end();
}

/* Absent for longer than void_after: the caretaker keeps the record, bus time goes on, and nobody writes it but one. */
RACK_TEST(caretaker__keeps_the_clock)
{
	const struct bl_clock *clock;
	uint64_t end, bus, last = 0;
	unsigned int i;
	int status;

	dm_void_ms = 1000;
	rack.lab.spec.hosts = 2;
	rack.tweak = tweak;
	ctl_start(ANSWER_MS);
	daemons_open();
	i = rack_host(0);
	clock = clock_of(i);
	daemon_stop(i, SIGTERM);
	for (end = t_mono() + 2500000000ULL; t_mono() < end;) {
		CHECK(bl_clock_usable(clock, t_mono()), "the clock is void without a daemon");
		bus = bl_clock_at(clock, t_mono());
		CHECK(bus >= last, "bus time went back by %" PRIu64, last - bus);
		last = bus;
		rack_serve(1);
	}
	/* a start that takes its time: it stands still while the caretaker goes on */
	daemon_spawn(i);
	usleep(20000);
	kill(dm[i].pid, SIGSTOP);
	for (end = t_mono() + 2500000000ULL; t_mono() < end;) {
		CHECK(bl_clock_usable(clock, t_mono()), "the clock is void while a daemon starts");
		rack_serve(1);
	}
	kill(dm[i].pid, SIGCONT);
	CHECK(daemon_ready(i, &status), "it does not start");
	bus = bl_clock_at(clock, t_mono());
	CHECK(bus >= last, "bus time went back by %" PRIu64, last - bus);
	CHECK(!caretaker(i), "there is a caretaker still");
	daemons_end();
}

/* What somebody else writes into the record does not stay. */
RACK_TEST(clock__is_written_whole)
{
	struct bl_clock *clock;
	uint64_t end, before;
	unsigned int i;

	rack.lab.spec.hosts = 2;
	rack.tweak = tweak;
	ctl_start(ANSWER_MS);
	daemons_open();
	i = rack_host(0);
	clock = (struct bl_clock *)(uintptr_t)clock_of(i);
	before = bl_clock_at(clock, t_mono());
	clock->flags = 0;
	clock->drift_ppb = 1;
	clock->tai_offset_s = 12345;
	clock->seg[0].bus_ns = clock->seg[1].bus_ns = 5;
	for (end = t_mono() + 5000000000ULL; !bl_clock_usable(clock, t_mono()) && t_mono() < end;)
		rack_serve(10);
	CHECK(bl_clock_usable(clock, t_mono()), "void for good");
	rack_serve(600);
	CHECK(clock->drift_ppb == BL_CLOCK_DRIFT_PPB && clock->tai_offset_s != 12345, "drift %u, TAI %d", clock->drift_ppb, clock->tai_offset_s);
	CHECK(bl_clock_at(clock, t_mono()) > before && bl_clock_at(clock, t_mono()) < before + 60000000000ULL, "bus time is what was written");
	daemons_end();
}

static bool ended(unsigned int i)
{
	return !caretaker(i);
}

/* Nobody comes: the host is silent when the time has passed, is announced, and nothing of the caretaker is left. */
RACK_TEST(caretaker__ends)
{
	char path[128];
	unsigned int i;
	pid_t pid;

	dm_caretaker_ms = 2000;
	open_rack();
	i = rack_host(2);
	daemon_stop(i, SIGTERM);
	pid = caretaker(i);
	CHECK(pid > 0, "no caretaker");
	rack_serve(700);
	CHECK(!failures(), "it is announced while its caretaker beats: %s", ask());
	UNTIL("waits for the caretaker's end", ended(i) && !runs(pid));
	UNTIL("waits for the failure", one_finished());
	CHECK(failures() == 1, "%s", ask());
	dm_path(path, sizeof(path), i, "caretaker.sock");
	CHECK(access(path, F_OK), "%s is left", path);
	/* it joins anew, as ever */
	daemon_start(i);
	UNTIL("waits for all nodes", all_ok());
	/* a caretaker that stands still is killed by who needs its place */
	daemon_stop(i, SIGTERM);
	pid = caretaker(i);
	CHECK(!kill(pid, SIGSTOP), "%s", strerror(errno));
	daemon_start(i);
	CHECK(!runs(pid), "process %d is there still", pid);
	/* caretaker_ms: 0 */
	daemon_stop(i, SIGKILL);
	dm_caretaker_ms = 0;
	daemon_start(i);
	daemon_stop(i, SIGTERM);
	CHECK(!caretaker(i), "a caretaker that nobody wanted");
	daemons_end();
}

/* It ends with what it cares for: by a detach, and when the network is gone. */
RACK_TEST(caretaker__ends_with_its_node)
{
	struct bl_err err;
	unsigned int i;
	pid_t pid, sw;
	char netns[256], file[128];

	rack.lab.spec.hosts = 2;
	rack.tweak = tweak;
	dm_caretaker_ms = 60000;
	ctl_start(ANSWER_MS);
	daemons_open();
	i = rack_host(0);
	daemon_stop(i, SIGTERM);
	pid = caretaker(i);
	CHECK(pid > 0, "no caretaker");
	snprintf(netns, sizeof(netns), LAB_NETNS_DIR "/%s", rack.lab.nodes[i].name);
	CHECK(!bl_node_detach(BL_ROLE_HOST, netns, &err), "%s", err.text);
	CHECK(!runs(pid), "the caretaker outlives its node");
	dm_path(file, sizeof(file), i, "keeper.lock");
	CHECK(access(file, F_OK), "%s is left", file);
	daemon_start(i);
	/* all links of the switch go */
	daemon_stop(0, SIGTERM);
	daemon_stop(i, SIGTERM);
	pid = caretaker(i);
	sw = caretaker(0);
	CHECK(pid > 0 && sw > 0, "no caretaker");
	rack_enter(rack_host(1));
	CHECK(!system("ip link del eth0"), "ip");
	rack_enter(i);
	CHECK(!system("ip link del eth0"), "ip");
	UNTIL("waits for the caretakers' end", !runs(pid) && !runs(sw));
	for (i = 0; i < rack.lab.nnodes; i++)
		if (dm[i].pid)
			daemon_stop(i, SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(term_and_start__announces_nobody),
		cmocka_unit_test(term_and_start__all_at_once),
		cmocka_unit_test(away__is_not_late),
		cmocka_unit_test(term_twice__is_as_once),
		cmocka_unit_test(kill_and_start__within_dead_after),
		cmocka_unit_test(kill_and_start__keeps_the_clock_first),
		cmocka_unit_test(caretaker__keeps_the_clock),
		cmocka_unit_test(clock__is_written_whole),
		cmocka_unit_test(caretaker__ends),
		cmocka_unit_test(caretaker__ends_with_its_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
