// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The caretaker of a daemon that was stopped (loader/keep.c): what it keeps, when it ends, who ends it; signals; and the clock record, which it and the
 * daemons write by turns. What a rack sees of restarts: test_restart.c.
 */
#include "restart.h"

#include "bpf/clock_core.h"
#include "loader/node_priv.h"

/* The clock record of a node. */
static const struct bl_clock *clock_of(unsigned int i)
{
	int fd = rack_map(i, BL_MAP_CLOCK);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(p != MAP_FAILED, "%s", strerror(errno));
	close(fd);
	return p;
}

/* Until the daemon has blocked SIGTERM, which its main() does first: before that the kernel or the loader of its program would die of it. */
static void wait_blocked(pid_t pid)
{
	uint64_t end = t_mono() + 30000000000ULL, mask = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	while (!(mask >> (SIGTERM - 1) & 1)) {
		CHECK(t_mono() < end, "process %d does not block SIGTERM", pid);
		f = fopen(path, "r");
		CHECK(f, "%s: %s", path, strerror(errno));
		while (fgets(line, sizeof(line), f))
			sscanf(line, "SigBlk: %" SCNx64, &mask);
		fclose(f);
		usleep(200);
	}
}

RACK_TEST(term_twice__is_as_once)
{
	static const unsigned int later_us[] = { 0, 100, 1000, 3000, 10000, 30000 };
	unsigned int i = rack_host(0), k;
	int status;

	open_rack(2);
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
	daemon_stop(i, SIGTERM);
	daemon_spawn(i);
	wait_blocked(dm[i].pid);
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

/* The next daemon keeps the clock from its first step on: also one that then cannot start, because of the NIC. */
RACK_TEST(kill_and_start__keeps_the_clock_first)
{
	unsigned int i;
	const struct bl_clock *clock;
	uint64_t before;
	int home, status;

	open_rack(2);
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
	open_rack(2);
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

	open_rack(2);
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
	int status;
	pid_t pid;

	dm_caretaker_ms = 6000;
	open_rack(HOSTS);
	i = rack_host(2);
	daemon_stop(i, SIGTERM);
	pid = caretaker(i);
	CHECK(pid > 0, "no caretaker");
	rack_serve(2500); /* longer than DEAD_US */
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
	dm_caretaker_ms = 60000;
	daemon_start(i);
	CHECK(!runs(pid), "process %d is there still", pid);
	/* one that cannot start leaves the caretaker in its place */
	daemon_stop(i, SIGTERM);
	pid = caretaker(i);
	broken = true;
	daemon_spawn(i);
	CHECK(!daemon_ready(i, &status), "it starts with a certificate that is not there");
	broken = false;
	CHECK(pid > 0 && caretaker(i) == pid, "the caretaker has gone");
	daemon_start(i);
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

	dm_caretaker_ms = 60000;
	open_rack(2);
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
		cmocka_unit_test(term_twice__is_as_once),
		cmocka_unit_test(kill_and_start__keeps_the_clock_first),
		cmocka_unit_test(caretaker__keeps_the_clock),
		cmocka_unit_test(clock__is_written_whole),
		cmocka_unit_test(caretaker__ends),
		cmocka_unit_test(caretaker__ends_with_its_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
