// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs of a running node that somebody takes away (loader/hook_watch.c): detached links, pins
 * that are removed, a clsact that goes, another program in their place or before them. What is
 * missing is attached again, what is somebody else's stays, and nothing is delivered out of order
 * meanwhile.
 */
#include "loader/load/attach.h"
#include "maps/hook_watch_abi.h"
#include "maps/nic_abi.h"
#include "tests/net/loader/stranger.h"
#include "tests/net/serve_until.h"
#include "tests/net/traffic.h"

#define BEFORE     (1U << 3) /* BPF_F_BEFORE of Linux 6.6 */
#define TCX_EGRESS 47        /* BPF_TCX_EGRESS */

static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 60000000;
	cfg->clock_void_after_ms = 100000;
}

static struct bl_hook_seen seen(unsigned int node, uint32_t port, enum bl_hook_side s)
{
	int fd = rack_map(node, BL_MAP_HOOK_WATCH);
	struct bl_hook_watch w;

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &port, &w), "%s", strerror(errno));
	close(fd);
	return w.side[s];
}

static void until_state(unsigned int node, uint32_t port, enum bl_hook_side s,
			enum bl_hook_state want)
{
	UNTIL(seen(node, port, s).state == want, "state %u of side %u, wanted %u",
	      seen(node, port, s).state, s, want);
}

static void pin_path(char *buf, size_t size, unsigned int node, const char *pin)
{
	snprintf(buf, size, "%s/links/%s", rack.dir[node], pin);
}

/* Detaches the pinned link, as `bpftool link detach` does. */
static void detach_link(unsigned int node, const char *pin)
{
	char path[400];
	int fd;

	pin_path(path, sizeof(path), node, pin);
	fd = bpf_obj_get(path);
	CHECK(fd >= 0, "%s: %s", path, strerror(errno));
	CHECK(!bpf_link_detach(fd), "%s: %s", path, strerror(errno));
	close(fd);
}

static unsigned int the_switch(void)
{
	unsigned int i;

	for (i = 0; !rack_is_switch(i); i++)
		;
	return i;
}

static void open_rack(unsigned int hosts)
{
	rack.tweak = patient;
	rack.lab.spec.hosts = hosts;
	rack_open();
	until_state(rack_host(0), 0, BL_HOOK_XDP, BL_HOOK_OURS);
}

/* Removes each program of the nodes in turn while endpoints send, and judges what they got. */
RACK_TEST(detached__under_traffic)
{
	static const struct {
		const char *pin;
		uint32_t port;
		enum bl_hook_side side;
	} of_host[] = { { "xdp-eth0", 0, BL_HOOK_XDP },
			{ "egress-eth0", 0, BL_HOOK_EGRESS },
			{ "egress-lo", BL_HOOK_LO, BL_HOOK_EGRESS } };
	unsigned int i, h, s, host;
	char pin[40];

	open_rack(3);
	host = rack_host(0);
	s = the_switch();
	for (i = 0; i < 5; i++)
		tr_add(&(struct tr_cfg){ .host = i % 3,
					 .fn = tr_mix,
					 .until_enough = true,
					 .len = 500,
					 .fan = 3,
					 .items = 2,
					 .gap_us = 1000,
					 .quiet_ms = 3000,
					 .ring_bytes = TR_RING_TIGHT(8) });
	tr_go();
	tr_goes_on(0, "at first");
	for (h = 0; h < sizeof(of_host) / sizeof(of_host[0]); h++) {
		detach_link(host, of_host[h].pin);
		UNTIL(seen(host, of_host[h].port, of_host[h].side).repaired == 1,
		      "%s was not attached again", of_host[h].pin);
		CHECK(seen(host, of_host[h].port, of_host[h].side).removed == 1, "counted as %llu",
		      (unsigned long long)seen(host, of_host[h].port, of_host[h].side).removed);
		tr_goes_on(0, of_host[h].pin);
	}
	snprintf(pin, sizeof(pin), "xdp-%s", rack.lab.nodes[s].ports[1].ifname);
	detach_link(s, pin);
	UNTIL(seen(s, 1, BL_HOOK_XDP).repaired == 1, "%s was not attached again", pin);
	snprintf(pin, sizeof(pin), "egress-%s", rack.lab.nodes[s].ports[1].ifname);
	detach_link(s, pin);
	UNTIL(seen(s, 1, BL_HOOK_EGRESS).repaired == 1, "%s was not attached again", pin);
	tr_goes_on(1, "after the switch's programs were removed");
	tr_enough();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(0, 0); /* messages are lost meanwhile */
	CHECK(!seen(host, 0, BL_HOOK_XDP).other_id && !seen(s, 0, BL_HOOK_XDP).removed, "something "
											"else was "
											"counted");
}

/* A pin is the only thing that holds its link. */
RACK_TEST(pin_removed__made_again)
{
	unsigned int host;
	char path[400];

	open_rack(2);
	host = rack_host(0);
	pin_path(path, sizeof(path), host, "xdp-eth0");
	CHECK(!unlink(path), "%s: %s", path, strerror(errno));
	UNTIL(seen(host, 0, BL_HOOK_XDP).repaired == 1, "not attached again");
	CHECK(xdp_at(host, "eth0"), "there is no program");
	CHECK(!access(path, F_OK), "no pin: %s", strerror(errno));
}

/* The refusal names the command that takes it off, which ip(8) cannot if a bpf_link holds it. */
RACK_TEST(start__names_the_link_in_its_way)
{
	static const char command[] = "`bpftool link detach id ";
	int fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_PASS, 0), link, named, home;
	const char *hint;
	unsigned int host;
	uint32_t id;
	struct bl_err err;
	char netns[64];

	open_rack(2);
	host = rack_host(0);
	rack_close_node(host);
	snprintf(netns, sizeof(netns), LAB_NETNS_DIR "/%s", rack.lab.nodes[host].name);
	CHECK(!bl_node_detach(BL_ROLE_HOST, netns, &err), "%s", err.text);
	home = rack_away(host);
	link = bpf_link_create(fd, (int)if_nametoindex("eth0"), BPF_XDP, NULL);
	rack_back(home);
	CHECK(link >= 0, "%s", strerror(errno));
	CHECK(!rack_start_node(host, &err), "it started beside another program");
	hint = strstr(err.text, command);
	CHECK(hint, "%s", err.text);
	id = (uint32_t)strtoul(hint + strlen(command), NULL, 10);
	named = bpf_link_get_fd_by_id(id);
	CHECK(named >= 0 && !bpf_link_detach(named), "%u: %s", id, strerror(errno));
	CHECK(!xdp_at(host, "eth0"), "it is not the link in the way");
	close(named);
	close(link);
	/* one that no link holds */
	home = rack_away(host);
	CHECK(!bpf_xdp_attach((int)if_nametoindex("eth0"), fd, XDP_FLAGS_DRV_MODE, NULL), "%s",
	      strerror(errno));
	rack_back(home);
	CHECK(!rack_start_node(host, &err) && strstr(err.text, "`ip link set eth0 xdp off`"), "%s",
	      err.text);
	home = rack_away(host);
	CHECK(!bpf_xdp_detach((int)if_nametoindex("eth0"), XDP_FLAGS_DRV_MODE, NULL), "%s",
	      strerror(errno));
	rack_back(home);
	CHECK(rack_start_node(host, &err), "%s", err.text);
	close(fd);
}

RACK_TEST(another_program__is_not_replaced)
{
	unsigned int host;
	uint32_t own, id;
	int fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_PASS, 0), home;

	open_rack(2);
	host = rack_host(0);
	own = xdp_at(host, "eth0");
	id = stranger_id(fd);
	detach_link(host, "xdp-eth0");
	home = rack_away(host);
	CHECK(!bpf_xdp_attach((int)if_nametoindex("eth0"), fd, XDP_FLAGS_DRV_MODE, NULL), "%s",
	      strerror(errno));
	rack_back(home);
	until_state(host, 0, BL_HOOK_XDP, BL_HOOK_OTHERS);
	CHECK(seen(host, 0, BL_HOOK_XDP).other_id == id, "%u", seen(host, 0, BL_HOOK_XDP).other_id);
	/* Whether the empty hook was seen in between makes no difference. */
	CHECK(seen(host, 0, BL_HOOK_XDP).removed == 1 && !seen(host, 0, BL_HOOK_XDP).repaired, "mis"
											       "cou"
											       "nte"
											       "d");
	rack_serve(2500);
	CHECK(xdp_at(host, "eth0") == id, "somebody else's program was replaced");
	home = rack_away(host);
	CHECK(!bpf_xdp_detach((int)if_nametoindex("eth0"), XDP_FLAGS_DRV_MODE, NULL), "%s",
	      strerror(errno));
	rack_back(home);
	until_state(host, 0, BL_HOOK_XDP, BL_HOOK_OURS);
	CHECK(xdp_at(host, "eth0") == own, "another program than before");
	close(fd);
}

/*
 * The NIC is deleted, and there is another one with its name and somebody else's program, which a
 * bpf_link holds. That is not said to be well anywhere, and when the program goes, barline's comes.
 */
RACK_TEST(nic__comes_back_with_another_program)
{
	int fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_PASS, 0), home, link;
	struct bl_node_ports ports;
	struct bl_node_ref *ref;
	char name[IFNAMSIZ];
	struct bl_err err;
	unsigned int host;

	open_rack(2);
	host = rack_host(0);
	home = rack_away(host);
	CHECK(bl_nodes_find(&ref, bl_netns_ino(), &err) == 1, "%s", err.text);
	CHECK(!system("ip link del eth0"), "ip");
	rack_back(home);
	until_state(host, 0, BL_HOOK_XDP, BL_HOOK_UNKNOWN);
	home = rack_away(host);
	bl_node_ports(ref, &ports);
	CHECK(bl_node_nic(ref, name) && !strcmp(name, "eth0"), "the name is not known");
	CHECK(ports.all == 1 && ports.gone == 1, "%u of %u are gone", ports.gone, ports.all);
	CHECK(!system("ip link add e9 type veth peer name e8"), "ip");
	link = bpf_link_create(fd, (int)if_nametoindex("e9"), BPF_XDP, NULL);
	CHECK(link >= 0, "%s", strerror(errno));
	CHECK(!system("ip link set e9 name eth0 && ip link set eth0 up"), "ip");
	rack_back(home);
	until_state(host, 0, BL_HOOK_XDP, BL_HOOK_OTHERS);
	CHECK(seen(host, 0, BL_HOOK_XDP).other_id == stranger_id(fd), "%u",
	      seen(host, 0, BL_HOOK_XDP).other_id);
	home = rack_away(host);
	bl_node_ports(ref, &ports);
	rack_back(home);
	CHECK(ports.all == 1 && !ports.gone, "%u of %u are gone", ports.gone, ports.all);
	CHECK(!bpf_link_detach(link), "%s", strerror(errno));
	until_state(host, 0, BL_HOOK_XDP, BL_HOOK_OURS);
	free(ref);
	close(link);
	close(fd);
}

RACK_TEST(again_and_again__ends)
{
	unsigned int host, k;

	open_rack(2);
	host = rack_host(0);
	for (k = 1; k <= 5; k++) {
		detach_link(host, "xdp-eth0");
		UNTIL(seen(host, 0, BL_HOOK_XDP).repaired == k, "repair %u", k);
	}
	detach_link(host, "xdp-eth0");
	until_state(host, 0, BL_HOOK_XDP, BL_HOOK_EMPTY);
	rack_serve(2500);
	CHECK(seen(host, 0, BL_HOOK_XDP).removed == 6, "%llu removals",
	      (unsigned long long)seen(host, 0, BL_HOOK_XDP).removed);
	CHECK(seen(host, 0, BL_HOOK_XDP).repaired == 5 && !xdp_at(host, "eth0"), "it fights on");
	/* A daemon that starts attaches what its node needs. */
	rack_close_node(host);
	rack_open_node(host);
	CHECK(xdp_at(host, "eth0"), "no program after a restart");
	until_state(host, 0, BL_HOOK_XDP, BL_HOOK_OURS);
	CHECK(seen(host, 0, BL_HOOK_XDP).removed == 6, "the counts are gone");
}

RACK_TEST(another_before__is_named)
{
	LIBBPF_OPTS(bpf_link_create_opts, o, .flags = BEFORE);
	int fd = stranger_load(BPF_PROG_TYPE_SCHED_CLS, -1, 0), home, link;
	unsigned int host;
	uint32_t first, behind;

	open_rack(2);
	host = rack_host(0);
	home = rack_away(host);
	bl_tcx_around((int)if_nametoindex("eth0"), false, 0, &first, &behind);
	if (!first) {
		rack_back(home);
		fprintf(stderr, "no tcx: skipped\n");
		return;
	}
	link = bpf_link_create(fd, (int)if_nametoindex("eth0"), (enum bpf_attach_type)TCX_EGRESS,
			       &o);
	CHECK(link >= 0, "%s", strerror(errno));
	bl_tcx_around((int)if_nametoindex("eth0"), false, first, &first, &behind);
	CHECK(first == stranger_id(fd) && !behind, "it is not the first");
	rack_back(home);
	until_state(host, 0, BL_HOOK_EGRESS, BL_HOOK_BEHIND);
	CHECK(seen(host, 0, BL_HOOK_EGRESS).other_id == stranger_id(fd), "another one is named");
	close(link);
	until_state(host, 0, BL_HOOK_EGRESS, BL_HOOK_OURS);
	CHECK(!seen(host, 0, BL_HOOK_EGRESS).removed, "it was never removed");
	close(fd);
}

RACK_TEST(clsact_deleted__made_again)
{
	unsigned int host;
	int home;

	bl_no_tcx = true;
	open_rack(2);
	host = rack_host(0);
	until_state(host, 0, BL_HOOK_EGRESS, BL_HOOK_OURS);
	home = rack_away(host);
	CHECK(!system("tc qdisc del dev eth0 clsact"), "tc");
	rack_back(home);
	UNTIL(seen(host, 0, BL_HOOK_EGRESS).repaired == 1, "not attached again");
	home = rack_away(host);
	CHECK(!system("tc filter show dev eth0 egress | grep -q bl_host_egress"), "no filter");
	rack_back(home);
}

/* Detaches each program of bl0 and of what belongs to it, with a pacer that sends the beacons. */
RACK_TEST(bl0__made_again)
{
	static const struct {
		const char *pin;
		enum bl_hook_place at;
		enum bl_hook_side side;
	} v[] = { { "hold-bl0d", BL_HOOK_BL0D, BL_HOOK_XDP },
		  { "pass-bl0", BL_HOOK_BL0, BL_HOOK_XDP },
		  { "egress-bl0", BL_HOOK_BL0, BL_HOOK_EGRESS },
		  { "ingress-eth0", BL_HOOK_NIC, BL_HOOK_INGRESS } };
	unsigned int host, k;
	char path[400];

	rack.lab.spec.admission.on = true;
	rack.lab.spec.beacon_us = 1000;
	open_rack(2);
	host = rack_host(0);
	for (k = 0; k < sizeof(v) / sizeof(v[0]); k++) {
		pin_path(path, sizeof(path), host, v[k].pin);
		/* Without tcx there are filters in place of the links. */
		if (access(path, F_OK)) {
			CHECK(v[k].side != BL_HOOK_XDP, "no %s", path);
			fprintf(stderr, "no tcx: %s is left out\n", v[k].pin);
			continue;
		}
		until_state(host, v[k].at, v[k].side, BL_HOOK_OURS);
		detach_link(host, v[k].pin);
		UNTIL(seen(host, v[k].at, v[k].side).repaired == 1, "%s was not attached again",
		      v[k].pin);
		CHECK(seen(host, v[k].at, v[k].side).removed == 1, "%s: counted as %llu", v[k].pin,
		      (unsigned long long)seen(host, v[k].at, v[k].side).removed);
	}
	CHECK(xdp_at(host, "bl0d") && xdp_at(host, "bl0"), "no program");
}

/* The same for the filter at the ingress of the NIC, where the kernel has no tcx. */
RACK_TEST(bl0__clsact_deleted)
{
	unsigned int host;
	int home;

	bl_no_tcx = true;
	rack.lab.spec.admission.on = true;
	rack.lab.spec.beacon_us = 1000;
	open_rack(2);
	host = rack_host(0);
	until_state(host, BL_HOOK_NIC, BL_HOOK_INGRESS, BL_HOOK_OURS);
	until_state(host, BL_HOOK_BL0, BL_HOOK_EGRESS, BL_HOOK_OURS);
	home = rack_away(host);
	CHECK(!system("tc qdisc del dev eth0 clsact && tc qdisc del dev bl0 clsact"), "tc");
	rack_back(home);
	UNTIL(seen(host, BL_HOOK_NIC, BL_HOOK_INGRESS).repaired == 1, "eth0: not attached again");
	UNTIL(seen(host, BL_HOOK_BL0, BL_HOOK_EGRESS).repaired == 1, "bl0: not attached again");
	home = rack_away(host);
	CHECK(!system("tc filter show dev eth0 ingress | grep -q bl_host_clone"), "no filter");
	rack_back(home);
}

/*
 * A program behind barline's keeps frames from the filter that picks the transmit queue. This
 * kernel may have no such filter (act_skbedit), so the node's record is told that
 * there is one.
 */
RACK_TEST(another_behind__is_named)
{
	int fd = stranger_load(BPF_PROG_TYPE_SCHED_CLS, 0, 0), home, link;
	unsigned int host;
	uint32_t first, behind, zero = 0;
	struct bl_nic nic;
	int fd_nic;

	open_rack(2);
	host = rack_host(0);
	home = rack_away(host);
	bl_tcx_around((int)if_nametoindex("eth0"), false, 0, &first, &behind);
	if (!first) {
		rack_back(home);
		fprintf(stderr, "no tcx: skipped\n");
		return;
	}
	link = bpf_link_create(fd, (int)if_nametoindex("eth0"), (enum bpf_attach_type)TCX_EGRESS,
			       NULL);
	CHECK(link >= 0, "%s", strerror(errno));
	rack_back(home);
	rack_serve(2500);
	CHECK(seen(host, BL_HOOK_NIC, BL_HOOK_EGRESS).state == BL_HOOK_OURS, "named on a NIC with "
									     "one queue");
	fd_nic = rack_map(host, BL_MAP_NIC);
	CHECK(fd_nic >= 0 && !bpf_map_lookup_elem(fd_nic, &zero, &nic), "%s", strerror(errno));
	nic.done |= BL_NIC_QUEUE;
	CHECK(!bpf_map_update_elem(fd_nic, &zero, &nic, BPF_ANY), "%s", strerror(errno));
	close(fd_nic);
	until_state(host, BL_HOOK_NIC, BL_HOOK_EGRESS, BL_HOOK_FOLLOWED);
	CHECK(seen(host, BL_HOOK_NIC, BL_HOOK_EGRESS).other_id == stranger_id(fd), "another id");
	close(link);
	until_state(host, BL_HOOK_NIC, BL_HOOK_EGRESS, BL_HOOK_OURS);
	CHECK(!seen(host, BL_HOOK_NIC, BL_HOOK_EGRESS).removed, "it was never removed");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(detached__under_traffic),
		cmocka_unit_test(pin_removed__made_again),
		cmocka_unit_test(start__names_the_link_in_its_way),
		cmocka_unit_test(another_program__is_not_replaced),
		cmocka_unit_test(nic__comes_back_with_another_program),
		cmocka_unit_test(again_and_again__ends),
		cmocka_unit_test(another_before__is_named),
		cmocka_unit_test(clsact_deleted__made_again),
		cmocka_unit_test(bl0__made_again),
		cmocka_unit_test(bl0__clsact_deleted),
		cmocka_unit_test(another_behind__is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
