// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a node leaves on its interfaces: nothing, also if its daemon was killed while it started
 * (loader/nic.c). The kernel is taken to be one without tcx, where egress programs are filters of a
 * clsact, which have no pin.
 */
#include "loader/clean.h"
#include "loader/load/attach.h"
#include "tests/net/rack.h"

/* Whether @ifname of @node has a filter of barline. */
static bool has_filter(unsigned int node, const char *ifname)
{
	int home = rack_away(node), rc;
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "tc filter show dev %s egress | grep -q bl_", ifname);
	rc = system(cmd);
	rack_back(home);
	return !rc;
}

static bool has_clsact(unsigned int node, const char *ifname)
{
	int home = rack_away(node), rc;
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "tc qdisc show dev %s | grep -q clsact", ifname);
	rc = system(cmd);
	rack_back(home);
	return !rc;
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
	CHECK(!unlink(path), "%s: %s", path, strerror(errno));
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

static void clean_in(unsigned int node)
{
	int home = rack_away(node), n;
	struct bl_err err;

	n = bl_clean(false, NULL, NULL, &err);
	CHECK(n == 1, "%d nodes were removed", n);
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
	clean_in(h);
	is_clean(h, "eth0", "after clean");
	is_clean(h, "lo", "after clean");

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switch_killed__then_detached),
		cmocka_unit_test(host_killed),
		cmocka_unit_test(filter_of_another_role__stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
