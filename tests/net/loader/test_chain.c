// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Another XDP program on the NIC of a host (loader/load/chain.c): it is taken over, gets what is
 * not barline's, stays over restarts of the daemon, and is put back on detach. What the kernel
 * would not call is refused with a reason.
 */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "loader/clean.h"
#include "loader/load/attach.h"
#include "loader/load/chain.h"
#include "loader/nic.h"
#include "maps/hook_abi.h"
#include "tests/net/loader/ports.h"
#include "tests/net/loader/stranger.h"

static char chain[64];             /* of the first host and the switch; "": none */
static unsigned int left_out = 99; /* port that the switch is started without */

static void set_chain(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	if (n->kind != LAB_HOST || !strcmp(n->name, "h1"))
		strcpy(cfg->chain, chain);
	if (n->kind != LAB_HOST)
		port_leave_out(cfg, left_out);
}

static struct bl_hook hook(void)
{
	struct bl_hook h;

	CHECK(!bl_hook_read(rack.dir[rack_host(0)], 0, &h), "no hook");
	return h;
}

static uint64_t count(enum bl_reason r)
{
	struct bl_counts c = rack_counts(rack_host(0));

	return c.n[r];
}

/* The second host sends UDP that is not barline's to the first one until @r is counted there. */
static void udp_until(enum bl_reason r)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	uint64_t end = t_mono() + 60000000000ULL, before = count(r);
	int home = rack_away(rack_host(1)), s = socket(AF_INET, SOCK_DGRAM, 0);

	rack_back(home);
	lab_app_addr(&rack.lab, 0, (uint8_t *)&to.sin_addr);
	while (count(r) == before) {
		CHECK(sendto(s, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)) == 1, "%s",
		      strerror(errno));
		rack_serve(5);
		CHECK(t_mono() < end, "nothing is counted as %u", r);
	}
	close(s);
}

static void detach(void)
{
	struct bl_err err;

	CHECK(!bl_node_detach(BL_ROLE_HOST, LAB_NETNS_DIR "/h1", &err), "%s", err.text);
}

/* The network, with a program on the NIC of the first host, which has not started. */
static uint32_t open_rack(int fd, uint32_t flags)
{
	unsigned int node;
	int home;

	rack.tweak = set_chain;
	rack.lab.spec.hosts = 2;
	rack.closed = ~1ULL;
	rack_open();
	node = rack_host(0);
	rack_open_node(rack_host(1));
	home = rack_away(node);
	CHECK(!bpf_xdp_attach((int)if_nametoindex("eth0"), fd, flags, NULL), "%s", strerror(errno));
	rack_back(home);
	return stranger_id(fd);
}

RACK_TEST(attached__and_put_back)
{
	int fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_DROP, 0);
	uint32_t id = open_rack(fd, XDP_FLAGS_DRV_MODE);
	unsigned int node = rack_host(0);
	struct bl_err err;

	close(fd); /* the interface holds it */
	CHECK(!rack_start_node(node, &err), "another program was replaced");
	CHECK(strstr(err.text, "--chain attached"), "%s", err.text);
	CHECK(xdp_at(node, "eth0") == id, "the refused start changed something");
	strcpy(chain, BL_CHAIN_ATTACHED);
	rack_open_node(node);
	CHECK(xdp_at(node, "eth0") && xdp_at(node, "eth0") != id, "barline is not attached");
	CHECK(hook().next_id == id && hook().back_id == id, "%u, %u", hook().next_id,
	      hook().back_id);
	udp_until(BL_R_CHAINED);
	/* a restart, also with another choice, forgets nothing */
	rack_close_node(node);
	udp_until(BL_R_CHAINED);
	rack_open_node(node);
	CHECK(hook().next_id == id && hook().back_id == id, "%u, %u", hook().next_id,
	      hook().back_id);
	udp_until(BL_R_CHAINED);
	rack_close_node(node);
	strcpy(chain, BL_CHAIN_NONE);
	rack_open_node(node);
	CHECK(!hook().next_id && hook().back_id == id, "%u, %u", hook().next_id, hook().back_id);
	udp_until(BL_R_NOT_OURS);
	rack_close_node(node);
	/* the daemon is gone, as after a kill -9: its pins know what belongs back */
	detach();
	CHECK(xdp_at(node, "eth0") == id, "not put back");
}

/*
 * The daemon was killed after it had taken the other program off and before it attached its own.
 * Where the kernel has tcx, the egress program is there, and the next start or a detach goes on
 * from that; where it has none, nothing is left that is attached.
 */
RACK_TEST(attached__killed_then_cleaned)
{
	int fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_DROP, 0), home, n;
	uint32_t id = open_rack(fd, XDP_FLAGS_DRV_MODE);
	unsigned int node = rack_host(0), from;
	struct bl_err err;
	char pin[300];

	close(fd);
	bl_no_tcx = true;
	strcpy(chain, BL_CHAIN_ATTACHED);
	for (from = 0; from < 2; from++) {
		rack_open_node(node);
		rack_close_node(node);
		snprintf(pin, sizeof(pin), "%s/links/xdp-eth0", rack.dir[node]);
		undo_link(pin);
		/* in its network namespace, and in that of the other host */
		home = rack_away(rack_host(from));
		n = bl_clean(false, NULL, NULL, &err);
		rack_back(home);
		CHECK(n == 1, "%d nodes were removed", n);
		CHECK(xdp_at(node, "eth0") == id, "not put back by a clean in h%u", from + 1);
	}
}

/* By id, which another one replaces at a restart; the node holds it when nobody else does. */
RACK_TEST(by_id__and_another)
{
	int fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_DROP, 0), home;
	uint32_t id = open_rack(fd, XDP_FLAGS_SKB_MODE), other;
	unsigned int node = rack_host(0);

	home = rack_away(node);
	CHECK(!bpf_xdp_detach((int)if_nametoindex("eth0"), XDP_FLAGS_SKB_MODE, NULL), "detach");
	rack_back(home);
	snprintf(chain, sizeof(chain), "%u", id);
	rack_open_node(node);
	close(fd);
	CHECK(hook().next_id == id && !hook().back_id, "%u, %u", hook().next_id, hook().back_id);
	udp_until(BL_R_CHAINED);
	rack_close_node(node);
	fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_PASS, 0);
	other = stranger_id(fd);
	snprintf(chain, sizeof(chain), "%u", other);
	rack_open_node(node);
	close(fd);
	CHECK(hook().next_id == other, "%u", hook().next_id);
	CHECK(bpf_prog_get_fd_by_id(other) >= 0, "nobody holds it");
	udp_until(BL_R_CHAINED);
	rack_close_node(node);
	detach();
	CHECK(!xdp_at(node, "eth0"), "a program appeared");
}

static void refused(const char *what, const char *why)
{
	unsigned int node = rack_host(0);
	struct bl_err err;

	snprintf(chain, sizeof(chain), "%s", what);
	CHECK(!rack_start_node(node, &err), "%s was accepted", what);
	CHECK(strstr(err.text, why), "%s: %s", what, err.text);
	rack.node[node] = NULL;
}

RACK_TEST(what_cannot_be_chained)
{
	int fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_DROP, 0), bad;
	uint32_t id = open_rack(fd, XDP_FLAGS_DRV_MODE);
	char text[32];

	refused("/sys/fs/bpf/there-is-none", "cannot open");
	refused("4000000000", "no program with id");
	bad = stranger_load(BPF_PROG_TYPE_SOCKET_FILTER, 0, 0);
	snprintf(text, sizeof(text), "%u", stranger_id(bad));
	refused(text, "is no XDP program");
	close(bad);
	bad = stranger_load(BPF_PROG_TYPE_XDP, XDP_PASS, BPF_F_XDP_HAS_FRAGS);
	snprintf(text, sizeof(text), "%u", stranger_id(bad));
	refused(text, "load it without frags");
	close(bad);
	CHECK(xdp_at(rack_host(0), "eth0") == id, "a refused start changed something");
	/* nor does one of a daemon that takes over */
	strcpy(chain, BL_CHAIN_ATTACHED);
	rack_open_node(rack_host(0));
	rack_close_node(rack_host(0));
	bad = stranger_load(BPF_PROG_TYPE_XDP, XDP_PASS, BPF_F_XDP_HAS_FRAGS);
	snprintf(text, sizeof(text), "%u", stranger_id(bad));
	refused(text, "load it without frags");
	close(bad);
	CHECK(hook().next_id == id, "%u", hook().next_id);
	udp_until(BL_R_CHAINED);
	detach();
	CHECK(xdp_at(rack_host(0), "eth0") == id, "not put back");
}

/*
 * Two ports of a switch have programs. Each takes the other's place, and its number, in one step:
 * the one that goes gets its own program back, and the program of the one that comes is chained.
 */
RACK_TEST(port__replaced_by_another)
{
	uint32_t id[3] = {};
	struct bl_err err;
	struct bl_hook h;
	unsigned int k;
	int fd[3], home;

	rack.tweak = set_chain;
	rack.lab.spec.hosts = 3;
	rack.closed = ~0ULL;
	rack_open();
	strcpy(chain, BL_CHAIN_ATTACHED);
	home = rack_away(0);
	for (k = 1; k < 3; k++) {
		fd[k] = stranger_load(BPF_PROG_TYPE_XDP, XDP_PASS, 0);
		id[k] = stranger_id(fd[k]);
		CHECK(!bpf_xdp_attach((int)if_nametoindex(rack.lab.nodes[0].ports[k].ifname), fd[k],
				      XDP_FLAGS_DRV_MODE, NULL),
		      "%s", strerror(errno));
		close(fd[k]);
	}
	rack_back(home);
	left_out = 1;
	rack_open_node(0);
	rack_close_node(0);
	for (k = 1; k < 4; k++) {
		unsigned int gone = 1 + k % 2, in = 3 - gone;

		left_out = gone;
		rack_open_node(0);
		rack_close_node(0);
		CHECK(xdp_at(0, rack.lab.nodes[0].ports[gone].ifname) == id[gone],
		      "port %u, which has left, has %u, not %u", gone,
		      xdp_at(0, rack.lab.nodes[0].ports[gone].ifname), id[gone]);
		CHECK(!bl_hook_read(rack.dir[0], 1, &h) && h.next_id == id[in] &&
			      h.back_id == id[in],
		      "port %u: %u is chained, %u is put back, not %u", in, h.next_id, h.back_id,
		      id[in]);
	}
	CHECK(!bl_node_detach(BL_ROLE_SWITCH, LAB_NETNS_DIR "/s1", &err), "%s", err.text);
	for (k = 1; k < 3; k++)
		CHECK(xdp_at(0, rack.lab.nodes[0].ports[k].ifname) == id[k],
		      "port %u has %u, not %u", k, xdp_at(0, rack.lab.nodes[0].ports[k].ifname),
		      id[k]);
}

/* An interface that has the index of the NIC, which has left, does not get the NIC's program. */
RACK_TEST(index_used_again__no_program)
{
	int fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_DROP, 0), home;
	unsigned int node;

	bl_nic_any_mac = true;
	open_rack(fd, XDP_FLAGS_DRV_MODE);
	node = rack_host(0);
	close(fd);
	strcpy(chain, BL_CHAIN_ATTACHED);
	rack_open_node(node);
	rack_close_node(node);
	home = rack_away(node);
	CHECK(!system("ip link set eth0 address 02:00:00:00:00:77"), "ip");
	rack_back(home);
	detach();
	CHECK(!xdp_at(node, "eth0"), "another NIC has got the program");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(port__replaced_by_another),
		cmocka_unit_test(index_used_again__no_program),
		cmocka_unit_test(attached__and_put_back),
		cmocka_unit_test(attached__killed_then_cleaned),
		cmocka_unit_test(by_id__and_another),
		cmocka_unit_test(what_cannot_be_chained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
