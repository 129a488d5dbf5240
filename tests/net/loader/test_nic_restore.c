// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a node leaves on its interfaces: nothing, also if its daemon was killed while it started
 * (loader/nic.c). The kernel is taken to be one without tcx, where egress programs are filters of a
 * clsact, which have no pin.
 *
 * Threads of NAPI are visible in all PID namespaces of the machine, and other tests have ports of
 * the same names. So the ports whose threads are looked at have names of their own.
 */
#include <dirent.h>
#include <sched.h>
#include <sys/syscall.h>

#include "base/ethtool.h"
#include "loader/clean.h"
#include "loader/load/attach.h"
#include "loader/load/chain.h"
#include "loader/load/sysfs.h"
#include "loader/nic.h"
#include "tests/net/loader/ports.h"
#include "tests/net/loader/said.h"
#include "tests/net/loader/stranger.h"
#include "tests/net/serve_until.h"

/* Whether sh(1) in the namespace of @node succeeds with a command, in which %s is @ifname. */
__attribute__((format(printf, 2, 0))) static bool succeeds(unsigned int node, const char *command,
							   const char *ifname)
{
	int home = rack_away(node), rc;
	char cmd[128];

	snprintf(cmd, sizeof(cmd), command, ifname);
	rc = system(cmd);
	rack_back(home);
	return !rc;
}

/* Whether @ifname of @node has a filter of barline. */
static bool has_filter(unsigned int node, const char *ifname)
{
	return succeeds(node, "tc filter show dev %s egress | grep -q bl_", ifname);
}

static bool has_clsact(unsigned int node, const char *ifname)
{
	return succeeds(node, "tc qdisc show dev %s | grep -q clsact", ifname);
}

static void is_clean(unsigned int node, const char *ifname, const char *when)
{
	CHECK(!has_filter(node, ifname), "%s: %s has barline's filter", when, ifname);
	CHECK(!has_clsact(node, ifname), "%s: %s has a clsact", when, ifname);
}

/*
 * Has the node look as its daemon leaves it that is killed while it starts, before it attaches its
 * XDP program to @ifname.
 */
static void kill_before_xdp(unsigned int node, const char *ifname)
{
	char path[400];

	if (rack.node[node])
		rack_close_node(node);
	snprintf(path, sizeof(path), "%s/links/xdp-%s", rack.dir[node], ifname);
	undo_link(path);
	CHECK(has_filter(node, ifname), "%s has no filter", ifname);
}

static void open_rack(void)
{
	bl_no_tcx = true;
	rack.lab.spec.hosts = 3;
	rack_open();
}

static const char *path_of(unsigned int node)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", rack.lab.nodes[node].netns);
	return path;
}

/* All egress programs are attached before the first XDP program is. */
RACK_TEST(switch_killed__then_detached)
{
	struct bl_err err;
	unsigned int k;

	open_rack();
	for (k = 1; k < 3; k++)
		kill_before_xdp(0, rack.lab.nodes[0].ports[k].ifname);
	CHECK(!bl_node_detach(BL_ROLE_SWITCH, path_of(0), &err), "%s", err.text);
	for (k = 0; k < 3; k++)
		is_clean(0, rack.lab.nodes[0].ports[k].ifname, "after detach");
}

static void say_removed(const char *what, void *ctx)
{
	(void)ctx;
	fprintf(stderr, "    removed %s\n", what);
}

/* @removed: how many nodes have to be removed. */
static void clean_in(unsigned int node, int removed)
{
	int home = rack_away(node), n;
	struct bl_err err;

	n = bl_clean(false, say_removed, NULL, &err);
	CHECK(n == removed, "%d nodes were removed", n);
	rack_back(home);
}

RACK_TEST(host_killed)
{
	unsigned int h;
	struct bl_err err;

	open_rack();
	h = rack_host(0);
	kill_before_xdp(h, "eth0");
	CHECK(!bl_node_detach(BL_ROLE_HOST, path_of(h), &err), "%s", err.text);
	is_clean(h, "eth0", "after detach");
	is_clean(h, "lo", "after detach");

	rack_open_node(h);
	kill_before_xdp(h, "eth0");
	clean_in(h, 1);
	is_clean(h, "eth0", "after clean");
	is_clean(h, "lo", "after clean");

	rack_open_node(h);
	kill_before_xdp(h, "eth0");
	clean_in(rack_host(1), 1);
	is_clean(h, "eth0", "after clean in another network namespace");
	is_clean(h, "lo", "after clean in another network namespace");

	/* The next start begins anew, and its clsact is its own. */
	rack_open_node(h);
	kill_before_xdp(h, "eth0");
	rack_open_node(h);
	CHECK(has_filter(h, "eth0"), "no filter after the next start");
	rack_close_node(h);
	CHECK(!bl_node_detach(BL_ROLE_HOST, path_of(h), &err), "%s", err.text);
	is_clean(h, "eth0", "after the next start and detach");
	is_clean(h, "lo", "after the next start and detach");
}

/* What a switch has left does not concern a host that is there now. */
RACK_TEST(filter_of_another_role__stays)
{
	unsigned int h;
	int home;

	open_rack();
	h = rack_host(0);
	home = rack_away(h);
	bl_detach_clsact("eth0", BL_ROLE_SWITCH);
	rack_back(home);
	CHECK(has_filter(h, "eth0"), "a switch has removed a host's filter");
	home = rack_away(h);
	bl_detach_clsact("eth0", BL_ROLE_HOST);
	rack_back(home);
	CHECK(!has_filter(h, "eth0"), "a host has not removed its filter");
}

/* ---- threaded NAPI ---- */

static bool thread_napi = true;
static unsigned int left_out = 99; /* index of the port that is not configured */
static const char *chain = "";

static void threads(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	if (n->kind == LAB_HOST)
		return;
	cfg->thread_napi = thread_napi;
	strcpy(cfg->chain, chain);
	port_leave_out(cfg, left_out);
}

static const char *port(unsigned int k)
{
	return rack.lab.nodes[0].ports[k].ifname;
}

/*
 * Reads the attribute "threaded" of port @k of the switch, which is in the network namespace of
 * @node now, or writes it if @set is not NULL.
 */
static int threaded(unsigned int node, unsigned int k, const char *set)
{
	int home = rack_away(node), sys = bl_sysfs_open(), fd;
	char path[64], c = 0;

	snprintf(path, sizeof(path), "class/net/%s/threaded", port(k));
	fd = openat(sys, path, set ? O_WRONLY : O_RDONLY);
	CHECK(fd >= 0 && (set ? write(fd, set, 1) : read(fd, &c, 1)) == 1, "%s: %s", path,
	      strerror(errno));
	close(fd);
	close(sys);
	rack_back(home);
	return c - '0';
}

/*
 * Returns how many threads the NAPI of port @k has. @pinned: those kept on one CPU, or not
 * scheduled as usual.
 */
static unsigned int napi_threads(unsigned int k, unsigned int *pinned)
{
	struct { /* struct sched_attr of the kernel, version 0 */
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} is, usual;
	char path[300], comm[80], want[32];
	unsigned int found = 0;
	struct dirent *e;
	cpu_set_t set;
	DIR *d = opendir("/proc");
	FILE *f;

	*pinned = 0;
	CHECK(d, "%s", strerror(errno));
	CHECK(!syscall(SYS_sched_getattr, 2, &usual, sizeof(usual), 0), "%s", strerror(errno));
	snprintf(want, sizeof(want), "napi/%s-", port(k));
	while ((e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		f = e->d_name[0] >= '0' && e->d_name[0] <= '9' ? fopen(path, "r") : NULL;
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f) && !strncmp(comm, want, strlen(want))) {
			pid_t pid = atoi(e->d_name);

			found++;
			CHECK(!sched_getaffinity(pid, sizeof(set), &set), "%s", strerror(errno));
			CHECK(!syscall(SYS_sched_getattr, pid, &is, sizeof(is), 0), "%s",
			      strerror(errno));
			*pinned += CPU_COUNT(&set) == 1 || is.policy != usual.policy ||
				   is.nice != usual.nice || is.runtime != usual.runtime;
		}
		fclose(f);
	}
	closedir(d);
	return found;
}

/*
 * Gives the ports names of their own. Port 1 has NAPI without XDP, too, and it is threaded already.
 */
static void open_threaded(void)
{
	unsigned int k;
	char cmd[300];
	int home;

	bl_no_tcx = true;
	rack.lab.spec.hosts = 3;
	rack.tweak = threads;
	rack.closed = 1;
	rack_open();
	home = rack_away(0);
	for (k = 0; k < 3; k++) {
		snprintf(cmd, sizeof(cmd),
			 "ip link set %s down && ip link set %s name p%u.%d && ip link set p%u.%d "
			 "up && ethtool -K p%u.%d gro %s",
			 port(k), port(k), k, getpid(), k, getpid(), k, getpid(),
			 k == 1 ? "on" : "off");
		CHECK(!system(cmd), "%s", cmd);
		snprintf(rack.lab.nodes[0].ports[k].ifname, IFNAMSIZ, "p%u.%d", k, getpid());
	}
	rack_back(home);
	threaded(0, 1, "1");
}

static void detach_switch(void)
{
	struct bl_err err;

	rack_close_node(0);
	CHECK(!bl_node_detach(BL_ROLE_SWITCH, path_of(0), &err), "%s", err.text);
}

RACK_TEST(threaded_napi__put_back)
{
	unsigned int pinned, k;

	open_threaded();
	CHECK(napi_threads(1, &pinned) && !pinned, "port 1 has no thread, or it is pinned");
	rack_open_node(0);
	for (k = 0; k < 3; k++) {
		CHECK(threaded(0, k, NULL) == 1, "port %u is not threaded", k);
		CHECK(napi_threads(k, &pinned) && pinned == napi_threads(k, &pinned),
		      "port %u: %u pinned threads", k, pinned);
	}
	detach_switch();
	for (k = 0; k < 3; k++) {
		CHECK(threaded(0, k, NULL) == (k == 1), "port %u: threaded is %d after detach", k,
		      threaded(0, k, NULL));
		napi_threads(k, &pinned);
		CHECK(!pinned, "port %u: %u threads are pinned after detach", k, pinned);
	}
	CHECK(napi_threads(1, &pinned), "port 1 has no thread any more");
}

/* Without thread_napi, and without a port, the next daemon puts back what the one before did. */
RACK_TEST(threaded_napi__not_configured_any_more)
{
	unsigned int pinned;

	open_threaded();
	rack_open_node(0);
	rack_close_node(0);
	left_out = 2;
	rack_open_node(0);
	CHECK(threaded(0, 0, NULL) == 1, "port 0 is not threaded");
	CHECK(threaded(0, 2, NULL) == 0, "the port that was taken out is threaded");
	is_clean(0, port(2), "after it was taken out");
	rack_close_node(0);
	thread_napi = false;
	rack_open_node(0);
	CHECK(threaded(0, 0, NULL) == 0, "port 0 is threaded");
	CHECK(threaded(0, 1, NULL) == 1, "port 1, which was threaded before, is not");
	CHECK(napi_threads(1, &pinned) && !pinned, "port 1: %u threads are pinned", pinned);
	/* What somebody else sets meanwhile stays. */
	thread_napi = true;
	rack_close_node(0);
	rack_open_node(0);
	threaded(0, 0, "0");
	threaded(0, 1, "0");
	detach_switch();
	CHECK(threaded(0, 0, NULL) == 0 && threaded(0, 1, NULL) == 0, "threaded again by a detach");
}

/* A port that gets the number of one that is taken out does not get its record. */
RACK_TEST(port__replaced_by_another)
{
	unsigned int k;

	open_threaded();
	for (k = 0; k < 2; k++) {
		left_out = 1;
		rack_open_node(0);
		CHECK(threaded(0, 2, NULL) == 1, "port 2 is not threaded");
		rack_close_node(0);
		left_out = 2;
		rack_open_node(0);
		CHECK(threaded(0, 2, NULL) == 0, "port 2 was taken out and is threaded");
		is_clean(0, port(2), "after it was taken out");
		CHECK(has_filter(0, port(1)), "the port in its place has no filter");
		rack_close_node(0);
	}
	rack_open_node(0);
	detach_switch();
	for (k = 0; k < 3; k++) {
		CHECK(threaded(0, k, NULL) == (k == 1), "port %u: threaded is %d after detach", k,
		      threaded(0, k, NULL));
		is_clean(0, port(k), "after detach");
	}
}

/* ---- VLAN tags ---- */

static int tags(unsigned int node, const char *ifname, const char *feature)
{
	int home = rack_away(node), is = et_feature(ifname, feature);

	rack_back(home);
	return is;
}

static void set_tags(unsigned int node, const char *ifname)
{
	int home = rack_away(node);

	CHECK(!et_feature_set(ifname, ET_FEATURE_VLAN, true) &&
		      !et_feature_set(ifname, ET_FEATURE_STAG, true),
	      "the features do not change");
	rack_back(home);
}

static void check_tags(unsigned int node, const char *ifname, int want, const char *when)
{
	int tag = tags(node, ifname, ET_FEATURE_VLAN), stag = tags(node, ifname, ET_FEATURE_STAG);

	CHECK(tag == want && stag == want, "%s: %s: %s is %d, %s is %d", when, ifname,
	      ET_FEATURE_VLAN, tag, ET_FEATURE_STAG, stag);
}

/* Hardware that takes VLAN tags off before XDP sees them does so again after detach. */
RACK_TEST(tags_taken_off__put_back)
{
	const char *port;
	struct bl_err err;
	unsigned int h;

	rack.lab.spec.hosts = 2;
	rack.closed = ~0ULL;
	rack_open();
	h = rack_host(0);
	port = rack.lab.nodes[0].ports[0].ifname;
	set_tags(0, port);
	set_tags(h, "eth0");
	rack_open_node(0);
	rack_open_node(h);
	check_tags(0, port, 0, "attached");
	check_tags(h, "eth0", 0, "attached");
	/* somebody turns it on while the daemon runs */
	set_tags(h, "eth0");
	UNTIL(!tags(h, "eth0", ET_FEATURE_VLAN) && !tags(h, "eth0", ET_FEATURE_STAG), "nobody has "
										      "turned it "
										      "off again");
	/* as a daemon finds it that takes over from one that did not look at tags */
	rack_close_node(h);
	set_tags(h, "eth0");
	rack_open_node(h);
	check_tags(h, "eth0", 0, "started again");
	rack_close_node(h);
	CHECK(!bl_node_detach(BL_ROLE_HOST, path_of(h), &err), "%s", err.text);
	check_tags(h, "eth0", 1, "detached");
	rack_close_node(0);
	CHECK(!bl_node_detach(BL_ROLE_SWITCH, path_of(0), &err), "%s", err.text);
	check_tags(0, port, 1, "detached");
}

/* ---- a NIC that leaves the network namespace of its node ---- */

static void move(unsigned int k, unsigned int from, unsigned int to)
{
	int home = rack_away(from);
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "ip link set %s netns /proc/%d/fd/%d", port(k), getpid(),
		 rack.lab.nodes[to].netns);
	CHECK(!system(cmd), "%s", cmd);
	rack_back(home);
	/* It is down. A veth has no NAPI then, and refuses to have it unthreaded. */
	home = rack_away(to);
	snprintf(cmd, sizeof(cmd), "ip link set %s up", port(k));
	CHECK(!system(cmd), "%s", cmd);
	rack_back(home);
}

/* Returns the path of the pin of port @k's XDP program. */
static const char *pin_of(unsigned int k)
{
	static char path[400];

	snprintf(path, sizeof(path), "%s/links/xdp-%s", rack.dir[0], port(k));
	*strrchr(path, '.') = ':';
	return path;
}

static bool has_pin(unsigned int k)
{
	return !access(pin_of(k), F_OK);
}

/* Two ports leave, and clean is asked where one of them is; then all do. */
RACK_TEST(moved__taken_back)
{
	unsigned int h1, h2;

	bl_nic_any_mac = true;
	open_threaded();
	h1 = rack_host(0);
	h2 = rack_host(1);
	rack_open_node(0);
	rack_close_node(0);
	move(0, 0, h1);
	move(2, 0, h2);
	CHECK(threaded(h1, 0, NULL) == 1 && xdp_at(h1, port(0)), "port 0 changed when it moved");
	is_clean(h1, port(0), "moved"); /* the kernel does that */
	clean_in(h1, 0);
	CHECK(!xdp_at(h1, port(0)), "port 0 has barline's program");
	CHECK(threaded(h1, 0, NULL) == 0, "port 0 is threaded");
	CHECK(!has_pin(0), "port 0 has a pin");
	CHECK(has_pin(1) && has_pin(2), "another port has lost its pin");
	CHECK(xdp_at(h2, port(2)), "port 2 has lost its program");
	CHECK(threaded(0, 1, NULL) == 1 && xdp_at(0, port(1)), "port 1 has changed");
	clean_in(h1, 0);
	move(1, 0, h2);
	clean_in(h2, 1);
	CHECK(threaded(h2, 2, NULL) == 0 && !xdp_at(h2, port(2)), "port 2 was not put back");
	CHECK(threaded(h2, 1, NULL) == 1 && !xdp_at(h2, port(1)), "port 1 was not put back");
	CHECK(access(rack.dir[0], F_OK), "the node was not removed");
}

/*
 * A port with a program that barline's has displaced gets another index where it moves to, since
 * its own is taken there. The program is put back all the same.
 */
RACK_TEST(moved__program_put_back)
{
	int fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_PASS, 0), home;
	unsigned int h, index;

	bl_nic_any_mac = true;
	open_threaded();
	h = rack_host(0);
	home = rack_away(0);
	index = if_nametoindex(port(0));
	CHECK(!bpf_xdp_attach((int)index, fd, XDP_FLAGS_DRV_MODE, NULL), "%s", strerror(errno));
	rack_back(home);
	chain = BL_CHAIN_ATTACHED;
	rack_open_node(0);
	rack_close_node(0);
	CHECK(xdp_at(0, port(0)) != stranger_id(fd), "port 0 has not got barline's program");
	move(0, 0, h);
	home = rack_away(h);
	CHECK(if_nametoindex(port(0)) != index, "port 0 has index %u again", index);
	rack_back(home);
	clean_in(h, 0);
	CHECK(xdp_at(h, port(0)) == stranger_id(fd), "port 0 has not got its program back");
	close(fd);
}

/* Where somebody else uses the NIC now, it stays as it is. */
RACK_TEST(moved__in_use)
{
	unsigned int h;
	int fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_PASS, 0), home;

	bl_nic_any_mac = true;
	open_threaded();
	h = rack_host(0);
	rack_open_node(0);
	rack_close_node(0);
	undo_link(pin_of(0));
	move(0, 0, h);
	home = rack_away(h);
	CHECK(!bpf_xdp_attach((int)if_nametoindex(port(0)), fd, XDP_FLAGS_DRV_MODE, NULL), "%s",
	      strerror(errno));
	rack_back(home);
	clean_in(h, 0);
	CHECK(xdp_at(h, port(0)) == stranger_id(fd), "somebody else's program was removed");
	CHECK(threaded(h, 0, NULL) == 1, "somebody else's NIC was changed");
	close(fd);
}

/* A detach says what stays changed on a NIC that is not there, and nothing of one that is gone. */
RACK_TEST(moved__then_detached)
{
	int fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_PASS, 0), was = dup(STDERR_FILENO), home;
	const char *said = BL_RUN_DIR "/said";
	char cmd[128], want[128];

	bl_nic_any_mac = true;
	open_threaded();
	home = rack_away(0);
	CHECK(!bpf_xdp_attach((int)if_nametoindex(port(0)), fd, XDP_FLAGS_DRV_MODE, NULL), "%s",
	      strerror(errno));
	rack_back(home);
	chain = BL_CHAIN_ATTACHED;
	rack_open_node(0);
	move(0, 0, rack_host(0));
	home = rack_away(0);
	snprintf(cmd, sizeof(cmd), "ip link del %s", port(2));
	CHECK(!system(cmd), "%s", cmd);
	rack_back(home);
	say_to(said);
	detach_switch();
	CHECK(dup2(was, STDERR_FILENO) == STDERR_FILENO, "%s", strerror(errno));
	snprintf(want, sizeof(want), "`echo 0 > /sys/class/net/%s/threaded`", port(0));
	CHECK(says(said, want), "the command for port 0 is not printed");
	snprintf(want, sizeof(want), "program with id %u", stranger_id(fd));
	CHECK(says(said, want), "the program that port 0 had is not named");
	close(fd);
	CHECK(!says(said, port(2)), "port 2, which is gone, is named");
	CHECK(!says(said, port(1)), "port 1, which was put back, is named");
	unlink(said);
}

/* An interface with the index of a NIC that has gone is not taken for it. */
RACK_TEST(index_used_again__stays)
{
	struct bl_err err;
	unsigned int h;
	int home;

	bl_nic_any_mac = true;
	open_rack();
	h = rack_host(0);
	kill_before_xdp(h, "eth0");
	home = rack_away(h);
	CHECK(!system("ip link set eth0 address 02:00:00:00:00:77"), "ip");
	rack_back(home);
	CHECK(!bl_node_detach(BL_ROLE_HOST, path_of(h), &err), "%s", err.text);
	CHECK(has_filter(h, "eth0"), "the filter of another NIC was removed");
	is_clean(h, "lo", "after detach");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switch_killed__then_detached),
		cmocka_unit_test(host_killed),
		cmocka_unit_test(filter_of_another_role__stays),
		cmocka_unit_test(threaded_napi__put_back),
		cmocka_unit_test(threaded_napi__not_configured_any_more),
		cmocka_unit_test(port__replaced_by_another),
		cmocka_unit_test(moved__taken_back),
		cmocka_unit_test(moved__program_put_back),
		cmocka_unit_test(moved__in_use),
		cmocka_unit_test(moved__then_detached),
		cmocka_unit_test(index_used_again__stays),
		cmocka_unit_test(tags_taken_off__put_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
