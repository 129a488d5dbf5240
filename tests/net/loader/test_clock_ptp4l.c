// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The clock of a node whose source is ptp4l, with the ptp4l of linuxptp: a master on one host and a
 * slave on the other, over a link of their own, with software timestamps.
 *
 * Nobody sets the clock of the machine: each ptp4l has free_running in its configuration, and
 * CAP_SYS_TIME is taken from it. Such a ptp4l measures the offset, which is 0, but its port remains
 * UNCALIBRATED. For the cases that need a SLAVE, a relay between the daemon and ptp4l changes this
 * one byte; all else is ptp4l's own.
 */
#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/un.h>

#include "core/clock_core.h"
#include "core/ptp_core.h"
#include "tests/net/barline_run.h"
#include "tests/net/loader/clock_record.h"

#define DIR BL_RUN_DIR "/ptp"

static unsigned int host;
static const char *asks;              /* the socket that the daemon asks */
static uint32_t max_bound_us = 25000; /* from 200 us on, that takes four minutes */
static pid_t master, slave, relay;

/* Serves until the record has that state and that reason. The case's limit ends a wait in vain. */
static void until(enum bl_clock_state state, enum bl_clock_reason reason, const char *what)
{
	struct bl_clock c;

	fprintf(stderr, "    %s\n", what);
	do {
		rack_serve(20);
		c = clock_record(host);
	} while (c.state != state || c.reason != reason);
}

/* Checks what `barline show clock` and the doctor say of the host. */
static void told(const char *state, const char *reason, const char *level, const char *sentence)
{
	static char barline[512];
	const char *const show[] = { barline, "-j", "show", "clock", NULL };
	const char *const doctor[] = { barline, "-j", "doctor", NULL };
	int home = rack_away(host);
	bool found = false;
	json_t *said, *row;
	size_t k;

	CHECK(barline_path(barline, sizeof(barline)), "no command");
	CHECK(!barline_run(&said, show) && said, "no clock is shown");
	row = json_array_get(json_object_get(said, "clocks"), 0);
#define IS(key, want)                                                                     \
	CHECK(!strcmp(json_string_value(json_object_get(row, key)), want), "%s: %s", key, \
	      json_string_value(json_object_get(row, key)))
	IS("source", "ptp4l");
	IS("state", state);
	IS("reason", reason);
	json_decref(said);
	CHECK(barline_run(&said, doctor) < 2 && said, "the doctor did not run");
	json_array_foreach(json_object_get(said, "findings"), k, row)
		found |= !strcmp(json_string_value(json_object_get(row, "level")), level) &&
			 strstr(json_string_value(json_object_get(row, "cause")), sentence);
	CHECK(found, "the doctor does not say \"%s\"", sentence);
	json_decref(said);
	rack_back(home);
}

/* ---- ptp4l ---- */

/* Starts ptp4l on interface @ifname of node @node; it is @is, "master" or "slave". */
static pid_t start_ptp4l(unsigned int node, const char *ifname, const char *is)
{
	const char *order = !strcmp(is, "master") ? "priority1 1" : "slaveOnly 1";
	char cfg[128], log[128];
	FILE *f;
	pid_t pid;
	int home;

	snprintf(cfg, sizeof(cfg), "%s/%s.cfg", DIR, is);
	snprintf(log, sizeof(log), "%s/%s.log", DIR, is);
	f = fopen(cfg, "w");
	CHECK(f, "%s", cfg);
	fprintf(f,
		"[global]\nfree_running 1\ntime_stamping software\nnetwork_transport L2\n"
		"uds_address %s/%s\nlogAnnounceInterval -1\nannounceReceiptTimeout 2\n"
		"logSyncInterval -3\nlogMinDelayReqInterval -3\ntx_timestamp_timeout 30000\n"
		"fault_reset_interval ASAP\n%s\n",
		DIR, is, order);
	CHECK(!fclose(f), "%s", cfg);
	home = rack_away(node);
	pid = fork();
	CHECK(pid >= 0, "%s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (prctl(PR_CAPBSET_DROP, CAP_SYS_TIME) || !freopen(log, "w", stdout))
			_exit(1);
		execlp("ptp4l", "ptp4l", "-f", cfg, "-i", ifname, "-m", "-q", NULL);
		_exit(127);
	}
	rack_back(home);
	return pid;
}

static void end(pid_t *pid)
{
	kill(*pid, SIGKILL);
	CHECK(waitpid(*pid, NULL, 0) == *pid, "%s", strerror(errno));
	*pid = 0;
}

/* Serves until the slave has measured its clock: "ptp4l[1.2]: rms 9 max 12 freq ... delay ...". */
static void until_measured(void)
{
	do
		rack_serve(20);
	while (system("grep -q ' rms ' " DIR "/slave.log"));
}

static int bound_socket(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	unlink(path);
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)), "%s", path);
	return fd;
}

/*
 * Passes questions on to the slave, and its answers back, in which a port that is UNCALIBRATED is
 * SLAVE. Ends with ptp4l.
 */
static void run_relay(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX }, from;
	struct pollfd p[2] = { { .fd = bound_socket(DIR "/relay"), .events = POLLIN },
			       { .fd = bound_socket(DIR "/relayed"), .events = POLLIN } };
	socklen_t len = 0;
	uint8_t b[1500];
	ssize_t n;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s/slave", DIR);
	while (connect(p[1].fd, (struct sockaddr *)&to, sizeof(to)))
		usleep(1000);
	for (;;) {
		uint8_t *state = b + BL_PTP_ASK_BYTES + offsetof(struct bl_ptp_port, state);

		poll(p, 2, -1);
		if (p[0].revents) {
			len = sizeof(from);
			n = recvfrom(p[0].fd, b, sizeof(b), 0, (struct sockaddr *)&from, &len);
			if (n > 0 && send(p[1].fd, b, (size_t)n, 0) < 0)
				_exit(0);
		}
		if (p[1].revents) {
			n = recv(p[1].fd, b, sizeof(b), 0);
			if (n > (ssize_t)(state - b) && bl_ptp_get(b + 52, 2) == BL_PTP_ID_PORT &&
			    *state == BL_PTP_UNCALIBRATED)
				*state = BL_PTP_SLAVE;
			if (n > 0)
				sendto(p[0].fd, b, (size_t)n, 0, (struct sockaddr *)&from, len);
		}
	}
}

static void start_slave(void)
{
	slave = start_ptp4l(host, "ptp1", "slave");
	if (strcmp(asks, DIR "/relay") != 0)
		return;
	relay = fork();
	CHECK(relay >= 0, "%s", strerror(errno));
	if (relay)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_relay();
}

static void kill_slave(void)
{
	end(&slave);
	if (relay)
		end(&relay);
}

/* ---- cases ---- */

static void asks_ptp4l(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	if (n->kind != LAB_HOST || n->index != 1)
		return;
	cfg->clock_source = BL_CLOCK_PTP4L;
	cfg->clock_max_bound_us = max_bound_us;
	snprintf(cfg->clock_socket, sizeof(cfg->clock_socket), "%s", asks);
}

static void open_rack(const char *socket)
{
	char cmd[200];
	int home;

	asks = socket;
	rack.lab.spec.hosts = 2;
	rack.tweak = asks_ptp4l;
	CHECK(!mkdir(DIR, 0755), "%s", strerror(errno));
	rack_open();
	host = rack_host(0);
	home = rack_away(rack_host(1));
	snprintf(cmd, sizeof(cmd),
		 "ip link add ptp0 up type veth peer name ptp1 netns /proc/%d/fd/%d", getpid(),
		 rack.lab.nodes[host].netns);
	CHECK(!system(cmd), "%s", cmd);
	rack_back(home);
	home = rack_away(host);
	CHECK(!system("ip link set ptp1 up"), "ip");
	rack_back(home);
}

/*
 * A ptp4l that never disciplines a clock: nothing is promised, and the doctor says why. Nobody has
 * set the machine's clock.
 */
RACK_TEST(ptp4l__not_running_then_not_calibrated)
{
	struct timex before = {}, after = {};

	CHECK(adjtimex(&before) >= 0, "%s", strerror(errno));
	open_rack(DIR "/slave");
	until(BL_CLOCK_NEVER, BL_CLOCK_PTP_GONE, "ptp4l does not run");
	told("unsynchronised", "ptp4l_gone", "FAIL", "ptp4l does not run");
	master = start_ptp4l(rack_host(1), "ptp0", "master");
	start_slave();
	until_measured();
	until(BL_CLOCK_NEVER, BL_CLOCK_PTP_PORT, "ptp4l runs");
	CHECK(!system("ls " BL_RUN_DIR "/host-[1-9]*-ptp4l.sock >/dev/null"), "the socket is not "
									      "named after its "
									      "network namespace");
	told("unsynchronised", "ptp4l_port", "FAIL", "no port in the state SLAVE");
	CHECK(!clock_record(host).source_as_of_ns, "the clock was believed");
	kill_slave();
	end(&master);
	CHECK(adjtimex(&after) >= 0 && after.freq == before.freq, "somebody set the clock");
	rack_close_node(host);
	CHECK(!system("! ls " BL_RUN_DIR "/*-ptp4l.sock 2>/dev/null"), "the socket is left");
}

RACK_TEST(ptp4l__stopped_then_killed)
{
	open_rack(DIR "/slave");
	master = start_ptp4l(rack_host(1), "ptp0", "master");
	start_slave();
	until(BL_CLOCK_NEVER, BL_CLOCK_PTP_PORT, "ptp4l runs");
	CHECK(!kill(slave, SIGSTOP), "stop");
	until(BL_CLOCK_NEVER, BL_CLOCK_PTP_SILENT, "ptp4l is stopped");
	CHECK(!kill(slave, SIGCONT), "continue");
	until(BL_CLOCK_NEVER, BL_CLOCK_PTP_PORT, "ptp4l goes on");
	kill_slave();
	until(BL_CLOCK_NEVER, BL_CLOCK_PTP_GONE, "ptp4l is killed");
	start_slave();
	until(BL_CLOCK_NEVER, BL_CLOCK_PTP_PORT, "ptp4l runs again");
	CHECK(!clock_record(host).source_as_of_ns, "the clock was believed");
}

/* Bus time is CLOCK_TAI, which the only clock of this machine is, to within the bound. */
static void check_bus_time(void)
{
	struct bl_clock c = clock_record(host);
	struct timespec t;
	uint64_t a = t_mono(), tai, b;
	int64_t off;

	clock_gettime(CLOCK_TAI, &t);
	tai = (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
	b = t_mono();
	off = (int64_t)(bl_clock_at(&c, a) - tai);
	CHECK((uint64_t)llabs(off) <= bl_clock_bound(&c, a) + (b - a), "off by %lld ns",
	      (long long)off);
}

static void open_good(void)
{
	open_rack(DIR "/relay");
	master = start_ptp4l(rack_host(1), "ptp0", "master");
	start_slave();
	until(BL_CLOCK_GOOD, BL_CLOCK_NO_REASON, "a Sync has been measured");
	check_bus_time();
	fprintf(stderr, "    bound %llu ns, of which ptp4l's %llu ns\n",
		(unsigned long long)clock_record(host).bound_ns,
		(unsigned long long)clock_record(host).source_ns);
}

/* A calibrated ptp4l that is stopped until the record is void. */
RACK_TEST(ptp4l__good_then_void_and_back)
{
	uint64_t since, bound;
	struct bl_clock c;

	max_bound_us = 1500;
	open_good();
	since = t_mono();
	c = clock_record(host);
	bound = bl_clock_bound(&c, since);
	CHECK(!kill(slave, SIGSTOP), "stop");
	until(BL_CLOCK_TOO_WIDE, BL_CLOCK_PTP_SILENT, "the bound reaches its limit");
	c = clock_record(host);
	CHECK(!bl_clock_usable(&c, t_mono()), "a void record is used");
	/* 100 us a second */
	CHECK(t_mono() - since > (max_bound_us * 1000ULL - bound) * 9000, "after %llu ms",
	      (unsigned long long)(t_mono() - since) / 1000000);
	told("too_wide", "ptp4l_silent", "FAIL", "ptp4l does not answer");
	CHECK(!kill(slave, SIGCONT), "continue");
	until(BL_CLOCK_GOOD, BL_CLOCK_NO_REASON, "ptp4l goes on");
	check_bus_time();
}

/* It is killed and comes back, and then its master is lost. */
RACK_TEST(ptp4l__good_then_holdover)
{
	open_good();
	told("good", "", "ok", "clock valid");
	kill_slave();
	until(BL_CLOCK_HOLDOVER, BL_CLOCK_PTP_GONE, "ptp4l is killed");
	told("holdover", "ptp4l_gone", "warn", "ptp4l does not run");
	check_bus_time();
	start_slave();
	until(BL_CLOCK_GOOD, BL_CLOCK_NO_REASON, "ptp4l runs again");
	check_bus_time();
	end(&master);
	until(BL_CLOCK_HOLDOVER, BL_CLOCK_PTP_PORT, "the master is gone");
	check_bus_time();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ptp4l__not_running_then_not_calibrated),
		cmocka_unit_test(ptp4l__stopped_then_killed),
		cmocka_unit_test(ptp4l__good_then_void_and_back),
		cmocka_unit_test(ptp4l__good_then_holdover),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
