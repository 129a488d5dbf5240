// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The caretaker of a daemon that was stopped (loader/caretaker.c): what it keeps, when it ends, and
 * who ends it; signals; and the clock record, which the caretaker and the daemons write in turns.
 * test_spare.c has the spare that a daemon keeps for this, and test_restart.c the effect of
 * restarts on a rack.
 */
#include "tests/net/loader/caretaker_clock.h"

#include "loader/order/clock.h"
#include "loader/order/note.h"

/*
 * Waits until the daemon has blocked SIGTERM, which its main() does first. Before that the signal
 * would kill it in the kernel's or the program's loader.
 */
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

	dead_us = PATIENT_US;
	open_rack(2);
	i = rack_host(0);
	for (k = 0; k < sizeof(later_us) / sizeof(later_us[0]); k++) {
		CHECK(!kill(dm[i].pid, SIGTERM), "%s", strerror(errno));
		usleep(later_us[k]);
		kill(dm[i].pid, k & 1 ? SIGINT : SIGTERM);
		status = daemon_wait(i);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "%u us later: status %#x",
		      later_us[k], status);
		CHECK(caretaker(i), "no caretaker");
		daemon_start(i);
	}
	/* and a signal that arrives before it is ready */
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

/*
 * Without a spare the next daemon keeps the clock from its first step on, even one that then cannot
 * start because of the NIC.
 */
RACK_TEST(kill_and_start__keeps_the_clock_first)
{
	unsigned int i;
	const struct bl_clock *clock;
	uint64_t before;
	int home, status;

	dm_caretaker_ms = 0;
	open_rack(2);
	i = rack_host(0);
	clock = clock_of(i);
	daemon_stop(i, SIGKILL);
	CHECK(!spare(i) && !caretaker(i), "a caretaker that nobody wanted");
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

/*
 * The daemon is absent for longer than void_after: the caretaker keeps the record, bus time
 * continues, and only one process writes it.
 */
RACK_TEST(caretaker__keeps_the_clock)
{
	const struct bl_clock *clock;
	uint64_t bus = 0, at;
	unsigned int i, k;
	int status;
	pid_t pid;
	bool kept;

	dm_void_ms = VOID_MS;
	open_rack(2);
	i = rack_host(0);
	clock = clock_of(i);
	daemon_stop(i, SIGTERM);
	pid = caretaker(i);
	CHECK(pid > 0 && is_kept(clock, pid, &bus, "without a daemon"), "the caretaker ended");
	/*
	 * A start that takes long: the daemon is stopped while the caretaker continues. If the
	 * caretaker has gone, the daemon was stopped too late, and is started once more.
	 */
	for (k = 0;; k++) {
		CHECK(k < 10, "no start was stopped in its middle");
		daemon_spawn(i);
		usleep(20000);
		kill(dm[i].pid, SIGSTOP);
		kept = is_kept(clock, pid, &bus, "while a daemon starts");
		kill(dm[i].pid, SIGCONT);
		CHECK(daemon_ready(i, &status), "it does not start");
		if (kept)
			break;
		daemon_stop(i, SIGTERM);
		pid = caretaker(i);
		CHECK(pid > 0, "no caretaker");
	}
	at = bl_clock_at(clock, t_mono());
	CHECK(at >= bus, "bus time went back by %" PRIu64, bus - at);
	CHECK(!caretaker(i), "there is a caretaker still");
	daemons_end();
}

/* What another process writes into the record does not stay. */
RACK_TEST(clock__is_written_whole)
{
	struct bl_note_arg a = { .kind = BL_NOTE_CLOCK };
	int fd, page, failures, note;
	const struct bl_clock *clock;
	uint64_t before, at, now, bus;
	struct bl_err err = { 0 };
	uint32_t zero = 0;
	unsigned int i;

	open_rack(2);
	i = rack_host(0);
	clock = clock_of(i);
	at = t_mono();
	before = bl_clock_at(clock, at);
	fd = rack_map(i, BL_MAP_CLOCK);
	/* Nobody can write the record, not even root, but a program that uses its map. */
	a.clock = *clock;
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED &&
		      errno == EPERM,
	      "the clock record can be mapped for writing");
	CHECK(bpf_map_update_elem(fd, &zero, &a.clock, BPF_ANY) == -EPERM, "the clock record can "
									   "be written");
	page = rack_map(i, BL_MAP_HOST_PAGE);
	failures = rack_map(i, BL_MAP_FAILURES);
	note = bl_note_open(fd, page, failures, &err);
	CHECK(note >= 0, "%s", err.text);
	a.clock.seq = (a.clock.seq | 1) + 1;
	a.clock.flags = 0;
	a.clock.drift_ppb = 1;
	a.clock.tai_offset_s = 12345;
	a.clock.seg[0].bus_ns = a.clock.seg[1].bus_ns = 5;
	CHECK(!bl_note(note, &a), "bl_note");
	close(note);
	close(failures);
	close(page);
	close(fd);
	UNTIL("waits for a clock that is usable", bl_clock_usable(clock, t_mono()));
	UNTIL("waits for the daemon's numbers",
	      BL_READ_ONCE(clock->drift_ppb) >= BL_CLOCK_DRIFT_PPB &&
		      BL_READ_ONCE(clock->tai_offset_s) != 12345);
	/* Both copies are the daemon's: the one that was written first is not checked any more. */
	UNTIL("waits for the daemon's pieces",
	      BL_READ_ONCE(clock->seg[0].bus_ns) != 5 && BL_READ_ONCE(clock->seg[1].bus_ns) != 5);
	now = t_mono();
	bus = bl_clock_at(clock, now);
	CHECK(bus > before && bus < before + (now - at) + 1000000000ULL,
	      "bus time is what was written: %" PRIu64 " ns after %" PRIu64, bus - before,
	      now - at);
	daemons_end();
}

static bool ended(unsigned int i)
{
	return !caretaker(i);
}

/*
 * No daemon returns: the host is silent when the time has passed, is announced, and nothing of the
 * caretaker is left.
 */
RACK_TEST(caretaker__ends)
{
	unsigned int i, announced;
	char path[128];
	int status;
	pid_t pid;

	dm_caretaker_ms = 8000;
	open_rack(HOSTS);
	i = rack_host(2);
	daemon_stop(i, SIGTERM);
	pid = caretaker(i);
	CHECK(pid > 0, "no caretaker");
	rack_serve(2500); /* longer than DEAD_US */
	announced = failures();
	/* A script that stood still looks too late. */
	CHECK(!announced || !runs(pid), "it is announced while its caretaker beats: %s", ask());
	UNTIL("waits for the caretaker's end", ended(i) && !runs(pid));
	UNTIL("waits for the failure", one_finished());
	CHECK(failures() == 1, "%s", ask());
	dm_path(path, sizeof(path), i, "caretaker.sock");
	CHECK(access(path, F_OK), "%s is left", path);
	/* it joins anew, as always */
	dm_caretaker_ms = 60000;
	daemon_start(i);
	UNTIL("waits for all nodes", all_ok());
	/* A caretaker that stands still is killed by the daemon that needs its place. */
	daemon_stop(i, SIGTERM);
	pid = caretaker(i);
	CHECK(pid > 0 && !kill(pid, SIGSTOP), "no caretaker");
	daemon_start(i);
	CHECK(!runs(pid), "process %d is there still", pid);
	/* A daemon that cannot start leaves the caretaker in its place. */
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

/* The caretaker ends with its node: by a detach, and when the network is gone. */
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
	/* all links of the switch vanish */
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
		if (dm[i].pid) {
			UNTIL("waits for the spare", spare(i));
			pid = spare(i);
			daemon_stop(i, SIGKILL);
			UNTIL("waits for its end, since the NIC is gone", !runs(pid));
		}
}

/* Whether node @i has its own socket to ask ptp4l, at the path that is named after its netns. */
static bool asks_ptp4l(unsigned int i)
{
	char path[128];

	dm_path(path, sizeof(path), i, "ptp4l.sock");
	return !access(path, F_OK);
}

/* Neither a daemon nor a caretaker asks ptp4l from the path of another node, or leaves its own. */
RACK_TEST(caretaker__asks_ptp4l)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = BL_RUN_DIR "/silent-ptp4l" };
	int ptp4l = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned int i, h;
	pid_t pid, sw;

	CHECK(ptp4l >= 0 && !bind(ptp4l, (struct sockaddr *)&a, sizeof(a)), "%s", strerror(errno));
	dm_caretaker_ms = 60000;
	dm_clock = "{ source: ptp4l, socket: " BL_RUN_DIR "/silent-ptp4l }";
	rack.lab.spec.hosts = 2;
	daemons_open();
	h = rack_host(0);
	UNTIL("waits for the daemons' sockets", asks_ptp4l(0) && asks_ptp4l(h));
	daemon_stop(0, SIGTERM);
	daemon_stop(h, SIGTERM);
	sw = caretaker(0);
	pid = caretaker(h);
	CHECK(pid > 0 && sw > 0, "no caretaker");
	UNTIL("waits for the caretakers' sockets", asks_ptp4l(0) && asks_ptp4l(h));
	CHECK(runs(pid) && runs(sw), "a caretaker ended");
	/* One ends at its own time, the other when a daemon takes over. */
	CHECK(!kill(sw, SIGTERM), "%s", strerror(errno));
	UNTIL("waits for the end of the switch's caretaker", !runs(sw));
	CHECK(!asks_ptp4l(0), "the caretaker's socket is left");
	daemon_start(h);
	CHECK(!runs(pid), "the host's caretaker runs");
	UNTIL("waits for the next daemon's socket", asks_ptp4l(h));
	daemons_end();
	for (i = 0; i < rack.lab.nnodes; i++)
		CHECK(!asks_ptp4l(i), "a detached node has a socket");
	unlink(a.sun_path);
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
		cmocka_unit_test(caretaker__asks_ptp4l),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
