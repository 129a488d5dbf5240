// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Nodes on interfaces that are no NIC of their own (loader/load/lower.c): what is refused and with
 * which words, and ordered traffic of hosts whose address is on a device on top of their NIC.
 *
 * Where this kernel lacks a kind of device, its part is left out; Debian's kernels have them all,
 * and tests/vm/run.sh runs this test there.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <sys/socket.h>

#include "base/nl_qdisc.h"
#include "loader/load/attach.h"
#include "loader/load/lower.h"
#include "maps/nic_abi.h"
#include "tests/net/barline_run.h"
#include "tests/net/loader/stranger.h"
#include "tests/net/serve_until.h"
#include "tests/net/traffic.h"

static const char *ifname_wanted; /* NIC of the first host, instead of eth0 */
static bool accepted;             /* generic XDP, and reordering is accepted */
static bool patient;

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	if (patient) {
		cfg->dead_after_us = 60000000;
		cfg->clock_void_after_ms = 100000;
	}
	if (n != &rack.lab.nodes[rack_host(0)] || !ifname_wanted)
		return;
	snprintf(cfg->ifname, sizeof(cfg->ifname), "%s", ifname_wanted);
	cfg->accept_reordering = accepted;
	cfg->mode = accepted ? BL_XDP_GENERIC : BL_XDP_NATIVE;
}

/* Runs a command of sh(1) in the namespace of @node. Returns whether it succeeded. */
static bool run(unsigned int node, const char *command)
{
	int home = rack_away(node), rc = system(command);

	rack_back(home);
	return !rc;
}

/* The guests of tests/vm have every kind of device. */
static bool must_have_all(void)
{
	char name[64] = "";

	gethostname(name, sizeof(name) - 1);
	return !strcmp(name, "barline-vm");
}

static void build(unsigned int hosts)
{
	rack.tweak = tweak;
	rack.lab.spec.hosts = hosts;
	rack.closed = ~0ULL;
	rack_open();
}

static void open_nodes(void)
{
	unsigned int i;

	for (i = 0; i < rack.lab.nnodes; i++)
		if (!rack.node[i])
			rack_open_node(i);
}

/*
 * Makes a device with @make and moves addresses, routes and neighbours of eth0 to @dev. Returns
 * false if this kernel has no such device. They are read first: an interface that goes down or gets
 * another Ethernet address loses the permanent neighbours, too, and then messages wait for ARP.
 */
static bool move_to(unsigned int node, const char *make, const char *dev)
{
	static const char read[] = "A=$(ip -4 -o addr show dev eth0 scope global | sed 's/.*inet "
				   "\\([^ ]*\\).*/\\1/')\n"
				   "R=$(ip -4 route show dev eth0 | grep -v 'proto kernel' | sed "
				   "'s/linkdown//')\n"
				   "N=$(ip -4 neigh show dev eth0 | sed -n 's/^\\([^ ]*\\) lladdr "
				   "\\([^ ]*\\) .*/\\1 lladdr \\2/p')\n"
				   /* /sys is that of the machine's own namespace */
				   "M=$(ip -o link show eth0 | sed 's/.*ether \\([^ ]*\\).*/"
				   "\\1/')\n",
			  move[] = "set -e\n"
				   "ip addr flush dev eth0 scope global\n"
				   "for a in $A; do ip addr add $a dev $D; done\n"
				   "echo \"$R\" | while read -r r; do [ -z \"$r\" ] || ip route "
				   "replace $r dev $D; done\n"
				   "echo \"$N\" | while read -r n; do [ -z \"$n\" ] || "
				   "ip neigh replace $n nud permanent dev $D; done\n"
				   "ip -4 neigh show nud permanent | grep -q \"dev $D\"\n";
	const int cannot = 77;
	char text[4096];
	int home, rc;

	snprintf(text, sizeof(text), "%sD=%s\n{ %s; } 2>/dev/null || exit %d\n%s", read, dev, make,
		 cannot, move);
	home = rack_away(node);
	rc = system(text);
	rack_back(home);
	if (WIFEXITED(rc) && WEXITSTATUS(rc) == cannot) {
		CHECK(!must_have_all(), "%s", make);
		fprintf(stderr, "this kernel cannot \"%s\": left out\n", make);
		return false;
	}
	CHECK(!rc, "%s", text);
	return true;
}

/* Endpoints on all hosts send to each other, and what they got is judged. */
static void talk(unsigned int hosts, uint32_t scatterings)
{
	unsigned int i;

	for (i = 0; i < hosts + 1; i++)
		tr_add(&(struct tr_cfg){ .host = i % hosts,
					 .fn = tr_mix,
					 .scatterings = tr_share(scatterings),
					 .len = 500,
					 .fan = 3,
					 .items = 2,
					 .gap_us = 1000,
					 .family = AF_INET,
					 .ring_bytes = TR_RING_TIGHT(8) });
	tr_go();
	tr_wait_done(90000);
	tr_stop();
	tr_judge(~0ULL, ~0ULL);
}

/* ---- what is refused ---- */

struct refused {
	const char *make, *ifname;
	bool always; /* every kernel has it */
	const char *words;
};

/* Starts the first host on @r, which must be refused, in a rack that is built. */
static void check_refused(const struct refused *r)
{
	unsigned int node = rack_host(0);
	struct bl_err err = {};
	char text[512];

	snprintf(text, sizeof(text), "{ %s; } 2>/dev/null", r->make);
	if (!run(node, text)) {
		CHECK(!r->always && !must_have_all(), "%s", r->make);
		fprintf(stderr, "this kernel cannot \"%s\": left out\n", r->make);
		return;
	}
	ifname_wanted = r->ifname;
	CHECK(!rack_start_node(node, &err), "%s: a host runs there", r->make);
	CHECK(strstr(err.text, r->words), "%s: \"%s\" does not say \"%s\"", r->make, err.text,
	      r->words);
	run(node, "for i in d0 b0; do ip link del $i 2>/dev/null; done; true");
}

RACK_TEST(kinds__refused)
{
	static const struct refused v[] = {
		{ "ip link add b0 type bridge", "b0", true, "b0 is a bridge, and each of" },
		{ "{ [ -c /dev/net/tun ] || modprobe tun; } && ip tuntap add d0 mode tun", "d0",
		  true, "d0 (tun) carries no Ethernet" },
		{ "ip link add link eth0 name d0 type macvlan", "d0", true,
		  "d0 is a macvlan device and sends by way of eth0" },
		{ "ip link add d0 type vxlan id 5 dstport 4789 local 10.0.0.1", "d0", false,
		  "d0 is a tunnel (vxlan)" },
		{ "ip link add link eth0 name d0 type vlan id 5", "d0", false,
		  "d0 is a VLAN device and sends by way of eth0" },
		{ "ip link add link eth0 name d0 type ipvlan", "d0", false,
		  "d0 is an ipvlan device and sends by way of eth0" },
		{ "ip link add d0 type dummy", "d0", false, "d0 is a device of the kind dummy" },
		{ "ip link add d0 type ipip local 10.0.0.1 remote 10.0.0.2", "d0", false,
		  "d0 (ipip) carries no Ethernet" },
		{ "ip link add d0 type gretap local 10.0.0.1 remote 10.0.0.2", "d0", false,
		  "d0 is a tunnel (gretap)" },
		{ "ip link add d0 type vrf table 10", "d0", false, "d0 is a VRF" },
		{ "ip link add d0 type team", "d0", false, "d0 is a team device" },
		{ "ip link add d0 type bond mode active-backup", "d0", false,
		  "d0 is a bond (active-backup), and each of" },
		{ "ip link add d0 type bond mode 802.3ad", "d0", false,
		  "d0 is a bond (802.3ad) and sends by several links" },
		/* ports of others; the names say which of two it is */
		{ "ip link add b0 type bond mode balance-rr && ip link add d0 type veth peer d1 && "
		  "ip link set d0 master b0",
		  "d0", false, "d0 is a slave of the bond b0 (balance-rr), which" },
		{ "ip link add b0 type bond mode active-backup && ip link add d0 type veth peer d1 "
		  "&& ip link set d0 master b0",
		  "d0", false, "d0 is a slave of the bond b0, which has no active slave" },
		{ "ip link add b0 type bond mode active-backup && ip link add d0 type veth peer d1 "
		  "&& ip link add d2 type veth peer d3 && ip link set d2 master b0 && "
		  "ip link set d0 master b0 && ip link set b0 up && ip link set d1 up && "
		  "ip link set d3 up && "
		  "while ! ip link set b0 type bond active_slave d2; do :; done",
		  "d0", false, "d0 is a slave of the bond b0, which sends by its active slave d2" },
		{ "ip link add b0 type team && ip link add d0 type veth peer d1 && "
		  "ip link set d0 master b0",
		  "d0", false, "d0 is a port of the team device b0" },
		{ "ip link add b0 type vrf table 10 && ip link add d0 type veth peer d1 && "
		  "ip link set d0 master b0",
		  "d0", false, "d0 is in the VRF b0" },
	};
	unsigned int k;

	build(2);
	for (k = 0; k < sizeof(v) / sizeof(v[0]); k++)
		check_refused(&v[k]);
	/* Nothing of these starts is left in the way of a good one. */
	ifname_wanted = NULL;
	open_nodes();
	talk(2, 50);
}

/* Without tcx, barline's egress filter needs a clsact, in whose place somebody has "ingress". */
RACK_TEST(ingress__refused)
{
	static const struct refused v = { "tc qdisc add dev eth0 ingress", "eth0", true,
					  "eth0 has an ingress qdisc" };
	struct nl nl = { .fd = -1 };
	unsigned int node;
	int home;

	bl_no_tcx = true;
	build(2);
	node = rack_host(0);
	check_refused(&v);
	CHECK(run(node, "tc qdisc show dev eth0 | grep -q 'qdisc ingress'"), "it is gone");
	CHECK(run(node, "! tc filter show dev eth0 ingress | grep -q bl_host"), "a filter");
	home = rack_away(node);
	CHECK(!nl_open(&nl) && nl_clsact_del(&nl, (int)if_nametoindex("eth0")) == -EINVAL, "it was "
											   "removed"
											   " as a "
											   "clsac"
											   "t");
	nl_close(&nl);
	rack_back(home);
	CHECK(run(node, "tc qdisc del dev eth0 ingress"), "tc");
	ifname_wanted = NULL;
	open_nodes();
	talk(2, 50);
}

static struct bl_nic nic_record(unsigned int node, int set_tx)
{
	int fd = rack_map(node, BL_MAP_NIC);
	struct bl_nic nic;
	uint32_t key = 0;

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &key, &nic), "%s", strerror(errno));
	if (set_tx >= 0) {
		nic.tx = (uint8_t)set_tx;
		CHECK(!bpf_map_update_elem(fd, &key, &nic, BPF_ANY), "%s", strerror(errno));
	}
	close(fd);
	return nic;
}

/* What was found broken is tried again from time to time, since not every cure can be seen. */
RACK_TEST(broken__tried_again)
{
	unsigned int node;

	build(2);
	open_nodes();
	node = rack_host(0);
	CHECK(nic_record(node, -1).tx == BL_NIC_IS_FIFO, "%u", nic_record(node, -1).tx);
	nic_record(node, BL_NIC_BROKEN);
	UNTIL(nic_record(node, -1).tx == BL_NIC_IS_FIFO, "it is still broken");
	CHECK(!nic_record(node, -1).repaired, "counted as a change of others");
}

/* A port of a switch that has become a bridge's or a bond's, and a bridge as a port. */
RACK_TEST(port__of_a_bond)
{
	struct bl_err err = {};
	char text[256];
	unsigned int s;

	build(2);
	for (s = 0; !rack_is_switch(s); s++)
		;
	snprintf(text, sizeof(text),
		 "ip link add b0 type bond mode active-backup 2>/dev/null && "
		 "ip link set %s down && ip link set %s nomaster && ip link set %s master b0",
		 rack.lab.nodes[s].ports[0].ifname, rack.lab.nodes[s].ports[0].ifname,
		 rack.lab.nodes[s].ports[0].ifname);
	if (!run(s, text)) {
		CHECK(!must_have_all(), "%s", text);
		fprintf(stderr, "this kernel has no bonds: left out\n");
		return;
	}
	CHECK(!rack_start_node(s, &err), "a switch runs there");
	CHECK(strstr(err.text, "is a port of the bond device b0, which sends by others, too"), "%s",
	      err.text);
}

/* ---- what works ---- */

RACK_TEST(bridge__has_the_address)
{
	build(3);
	CHECK(move_to(rack_host(0),
		      "ip link add br0 type bridge && "
		      "ip link set br0 address $M up && "
		      "ip link set eth0 master br0",
		      "br0"),
	      "every kernel has bridges");
	open_nodes();
	rack_settle();
	talk(3, 1000);
}

RACK_TEST(vlan__has_the_address)
{
	unsigned int k;

	build(3);
	for (k = 0; k < 3; k++)
		if (!move_to(rack_host(k),
			     "ip link add link eth0 name eth0.5 type vlan id 5 && "
			     "ip link set eth0.5 up",
			     "eth0.5"))
			return;
	open_nodes();
	rack_settle();
	talk(3, 1000);
}

/* Sends messages from the first host to @node, which answers nothing. */
static void send_to(unsigned int node, unsigned int messages)
{
	struct bl_addr to = { .port = 61700 };
	pid_t pid;
	int st;

	lab_host_addr(&rack.lab.nodes[node], AF_INET, to.ip);
	memmove(to.ip + 12, to.ip, 4);
	memset(to.ip, 0, 10);
	memset(to.ip + 10, 0xff, 2);
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "%s", strerror(errno));
	if (!pid) {
		const struct bl_msg m = { .dst = to, .data = "tag", .len = 3 };
		struct bl_endpoint *ep;
		unsigned int k;
		int bad;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(rack_host(0));
		bad = bl_init(&ep, NULL);
		for (k = 0; !bad && k < messages; k++, usleep(1000))
			bad = bl_send(ep, &m, 1, 0);
		_exit(bad != 0);
	}
	while (waitpid(pid, &st, WNOHANG) != pid)
		rack_serve(2);
	CHECK(!st, "it cannot send");
}

/* Gives all frames that leave the first host the tag of VLAN 5, as a VLAN device would. */
static void tag_frames(void)
{
	const struct bpf_insn insn[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = htons(ETH_P_8021Q) },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = 5 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_skb_vlan_push },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = TC_ACT_UNSPEC },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int home = rack_away(rack_host(0));
	DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)if_nametoindex("eth0"),
			    .attach_point = BPF_TC_EGRESS);
	DECLARE_LIBBPF_OPTS(bpf_tc_opts, opts, .handle = 1, .priority = 1);

	opts.prog_fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "tag", "GPL", insn,
				     sizeof(insn) / sizeof(insn[0]), NULL);
	CHECK(opts.prog_fd >= 0 && !bpf_tc_attach(&hook, &opts), "%s", strerror(errno));
	rack_back(home);
}

/* A socket that gets all frames that arrive at the second host. */
static int listen_to_frames(void)
{
	int home = rack_away(rack_host(1)), on = 1, fd;

	fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
	CHECK(fd >= 0 && !setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)), "%s",
	      strerror(errno));
	rack_back(home);
	return fd;
}

/* Counts the messages to port 61700 that arrived, and those with the tag, which the kernel has
 * taken off. */
static void count_frames(int fd, unsigned int *all, unsigned int *tagged)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control;
	uint8_t frame[256];
	struct iovec v = { .iov_base = frame, .iov_len = sizeof(frame) };
	struct tpacket_auxdata aux;
	struct cmsghdr *c;

	for (;;) {
		struct msghdr m = { .msg_iov = &v,
				    .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = sizeof(control) };

		if (recvmsg(fd, &m, 0) < 42)
			return;
		if (frame[12] != 8 || frame[13] || frame[23] != IPPROTO_UDP ||
		    (frame[36] << 8 | frame[37]) != 61700)
			continue;
		++*all;
		for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
			if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
				continue;
			memcpy(&aux, CMSG_DATA(c), sizeof(aux));
			*tagged += aux.tp_status & TP_STATUS_VLAN_VALID && aux.tp_vlan_tci == 5;
		}
	}
}

/* Ordered frames have their tag still behind a switch. The second host has no daemon. */
RACK_TEST(vlan__tag_passes_the_switch)
{
	unsigned int all = 0, tagged = 0;
	int fd, home;

	bl_no_tcx = patient = true; /* programs of clsact run one after the other */
	build(2);
	fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_PASS, 0);
	home = rack_away(rack_host(1));
	CHECK(!bpf_xdp_attach((int)if_nametoindex("eth0"), fd, XDP_FLAGS_DRV_MODE, NULL), "%s",
	      strerror(errno));
	rack_back(home);
	fd = listen_to_frames();
	rack_open_node(0);
	rack_open_node(rack_host(0));
	tag_frames();
	/* What is sent while the switch does not know its neighbour yet may be dropped. */
	UNTIL((send_to(rack_host(1), 20), count_frames(fd, &all, &tagged), all), "no message came");
	CHECK(tagged == all, "%u of %u messages have their tag", tagged, all);
}

/* With reordering accepted, a host runs on a macvlan device itself. */
RACK_TEST(macvlan__accepted)
{
	int fd, home;

	build(2);
	CHECK(move_to(rack_host(0),
		      "ip link set eth0 address 02:00:00:00:aa:01 && "
		      "ip link add link eth0 name mv0 address $M type macvlan && "
		      "ip link set mv0 up",
		      "mv0"),
	      "every kernel has macvlan");
	/* A veth takes frames that XDP redirects only if it has a program. */
	fd = stranger_load(BPF_PROG_TYPE_XDP, XDP_PASS, 0);
	home = rack_away(rack_host(0));
	CHECK(!bpf_xdp_attach((int)if_nametoindex("eth0"), fd, XDP_FLAGS_DRV_MODE, NULL), "%s",
	      strerror(errno));
	rack_back(home);
	ifname_wanted = "mv0";
	accepted = true;
	open_nodes();
	rack_settle();
	talk(2, 300);
}

/* What the doctor says of the first host's eth0 with these words; "absent": nothing. */
static const char *doctor_says(const char *words)
{
	static char barline[512], level[16];
	const char *const argv[] = { barline, "-j", "doctor", NULL };
	int home = rack_away(rack_host(0));
	json_t *said = NULL, *row;
	size_t k;

	CHECK(barline_path(barline, sizeof(barline)), "no command");
	CHECK(barline_run(&said, argv) < 2 && said, "the doctor did not run");
	rack_back(home);
	strcpy(level, "absent");
	json_array_foreach(json_object_get(said, "findings"), k, row)
	{
		if (strstr(json_string_value(json_object_get(row, "what")), "eth0") &&
		    strstr(json_string_value(json_object_get(row, "cause")), words))
			snprintf(level, sizeof(level), "%s",
				 json_string_value(json_object_get(row, "level")));
	}
	json_decref(said);
	return level;
}

static bool is_unfit(void)
{
	return bl_node_iface(rack.node[rack_host(0)], 0)->unfit;
}

/*
 * A host on the active slave of a bond. Nothing that leaves by the other slave after a failover is
 * delivered, and when the bond is back, messages pass again.
 */
RACK_TEST(bond__has_the_address)
{
	unsigned int i;

	patient = true;
	build(3);
	if (!move_to(rack_host(0),
		     "ip link add bond0 type bond mode active-backup miimon 10 && "
		     "ip link set bond0 address $M && "
		     "ip link add eth1 type veth peer far && ip link set far up && "
		     "ip link set eth0 down && ip link set eth0 master bond0 && "
		     "ip link set eth1 master bond0 && ip link set bond0 up && "
		     "while ! ip link set bond0 type bond active_slave eth0; do :; done",
		     "bond0"))
		return;
	open_nodes();
	rack_settle();
	CHECK(!is_unfit(), "it is said not to be the active slave");
	for (i = 0; i < 4; i++)
		tr_add(&(struct tr_cfg){ .host = i % 3,
					 .fn = tr_mix,
					 .until_enough = true,
					 .len = 500,
					 .fan = 3,
					 .items = 2,
					 .gap_us = 1000,
					 .quiet_ms = 3000,
					 .family = AF_INET,
					 .ring_bytes = TR_RING_TIGHT(8) });
	tr_go();
	tr_goes_on(1, "at first");
	CHECK(!strcmp(doctor_says("ordered messages do not pass"), "absent"), "the doctor "
									      "complains");
	CHECK(run(rack_host(0), "ip link set bond0 type bond active_slave eth1"), "failover");
	UNTIL(is_unfit(), "the daemon does not notice the failover");
	CHECK(!strcmp(doctor_says("ordered messages do not pass"), "FAIL"), "the doctor is "
									    "content");
	CHECK(run(rack_host(0), "ip link set bond0 type bond active_slave eth0"), "back");
	UNTIL(!is_unfit(), "the daemon does not notice that the bond is back");
	tr_goes_on(1, "after the bond was back");
	tr_goes_on(0, "after the bond was back");
	tr_enough();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(0, 0); /* messages are lost meanwhile */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds__refused),
		cmocka_unit_test(ingress__refused),
		cmocka_unit_test(broken__tried_again),
		cmocka_unit_test(port__of_a_bond),
		cmocka_unit_test(bridge__has_the_address),
		cmocka_unit_test(vlan__has_the_address),
		cmocka_unit_test(vlan__tag_passes_the_switch),
		cmocka_unit_test(macvlan__accepted),
		cmocka_unit_test(bond__has_the_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
