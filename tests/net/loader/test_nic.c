// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Interfaces that change under a running daemon (loader/link_watch.c): deleted and created again,
 * renamed, with another MTU, with another address. Each time, new endpoints must be able to
 * exchange messages through the switch.
 */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "loader/load/chain.h"
#include "tests/net/loader/said.h"
#include "tests/net/serve_until.h"

#define TALKS 20 /* messages that each has to get from the other */

struct talk {
	_Atomic int ready, done;
	struct bl_addr addr;
	char error[256];
};

static struct talk *talk; /* of the two endpoints */
static bool talk_reliably;

/* One of two endpoints: sends until it has received enough, and the other one has, too. */
static int talker(unsigned int host, unsigned int me, size_t len)
{
	static uint8_t text[16384];
	struct talk *t = &talk[me], *other = &talk[!me];
	struct bl_delivery d[16];
	struct bl_endpoint *ep;
	uint64_t next = 0;
	int heard = 0, rc, i;

	rack_enter(rack_host(host));
	rc = bl_init(&ep, NULL);
	if (rc) {
		snprintf(t->error, sizeof(t->error), "bl_init: %s", bl_strerror(NULL));
		return 1;
	}
	t->addr = *bl_self(ep);
	t->ready = 1;
	while (!other->ready)
		usleep(1000);
	while (!t->done || !other->done) {
		struct bl_msg m = { .dst = other->addr, .data = text, .len = len };

		if (t_mono() > next) {
			if (talk_reliably)
				bl_send_reliable(ep, &m, 1, 0);
			else
				bl_send(ep, &m, 1, 0);
			next = t_mono() + 2000000;
		}
		rc = talk_reliably ? bl_recv_reliable(ep, d, 16, 1) : bl_recv(ep, d, 16, 1);
		for (i = 0; i < rc; i++)
			heard += d[i].len == len;
		if (heard >= TALKS)
			t->done = 1;
	}
	return 0;
}

/*
 * Two new endpoints on two hosts exchange messages. @addr: expected address of the first one; NULL:
 * any.
 */
static void they_talk(unsigned int a, unsigned int b, size_t len, const char *addr,
		      const char *when)
{
	const unsigned int host[2] = { a, b };
	uint64_t end = t_mono() + 60000000000ULL;
	struct bl_addr want;
	pid_t pid[2];
	unsigned int k;

	memset(talk, 0, 2 * sizeof(*talk));
	for (k = 0; k < 2; k++) {
		fflush(NULL);
		pid[k] = fork();
		CHECK(pid[k] >= 0, "%s", strerror(errno));
		if (!pid[k]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(talker(host[k], k, len));
		}
	}
	while (!talk[0].done || !talk[1].done) {
		for (k = 0; k < 2; k++)
			CHECK(!talk[k].error[0], "%s: %s", when, talk[k].error);
		if (t_mono() > end)
			rack_dump();
		CHECK(t_mono() < end, "%s: they do not hear each other (%d, %d)", when,
		      talk[0].done, talk[1].done);
		rack_serve(5);
	}
	if (addr) {
		char text[64];

		snprintf(text, sizeof(text), "%s:%u", addr, talk[0].addr.port);
		CHECK(!bl_addr_parse(&want, text) && !memcmp(want.ip, talk[0].addr.ip, 16),
		      "%s: the endpoint has another address", when);
	}
	for (k = 0; k < 2; k++)
		while (waitpid(pid[k], NULL, WNOHANG) != pid[k])
			rack_serve(2);
}

/* Runs ip(8) in the namespace of a node. */
__attribute__((format(printf, 2, 3))) static void ip(unsigned int node, const char *fmt, ...)
{
	char cmd[512] = "ip ";
	int home = rack_away(node);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd + 3, sizeof(cmd) - 3, fmt, ap);
	va_end(ap);
	CHECK(!system(cmd), "%s", cmd);
	rack_back(home);
}

static void open_rack(void)
{
	talk = mmap(NULL, 2 * sizeof(*talk), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		    0);
	CHECK(talk != MAP_FAILED, "%s", strerror(errno));
	rack.lab.spec.hosts = 3;
	rack_open();
	rack_settle();
	they_talk(0, 1, 100, NULL, "at first");
}

static struct lab_port *switch_port(unsigned int host)
{
	struct lab_port *nic = &rack.lab.nodes[rack_host(host)].ports[0];

	return &rack.lab.nodes[nic->peer_node].ports[nic->peer_port];
}

static uint32_t xdp_at(unsigned int node, const char *ifname)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);
	int home = rack_away(node), rc = bpf_xdp_query((int)if_nametoindex(ifname), 0, &q);

	rack_back(home);
	return rc ? 0 : q.drv_prog_id ? q.drv_prog_id : q.skb_prog_id;
}

static unsigned int gone(unsigned int node)
{
	struct bl_node_ref ref = { 0 };
	struct bl_node_ports p;

	snprintf(ref.dir, sizeof(ref.dir), "%s", rack.dir[node]);
	bl_node_ports(&ref, &p);
	return p.gone;
}

/*
 * Deletes the link of a host, and creates it again at both ends, as the host of a virtual machine
 * or a reloaded driver does.
 */
static void make_anew(unsigned int host, const char *nic_name)
{
	unsigned int node = rack_host(host);
	struct lab_node *h = &rack.lab.nodes[node];
	struct lab_port *nic = &h->ports[0], *port = switch_port(host);
	struct nl_end a = { .name = nic_name }, b = { .name = port->ifname };
	int home = rack_away(node);
	struct nl nl;

	memcpy(a.mac, nic->mac, 6);
	memcpy(b.mac, port->mac, 6);
	CHECK(!nl_open(&nl) && !nl_veth(&nl, &a, &b, rack.lab.nodes[nic->peer_node].netns, 1500),
	      "veth");
	nic->ifindex = if_nametoindex(nic_name);
	CHECK(!nl_plain(nic_name) && !nl_up(&nl, nic->ifindex), "up");
	CHECK(!lab_routes(&rack.lab, h), "routes");
	nl_close(&nl);
	rack_back(home);
	home = rack_away(nic->peer_node);
	CHECK(!nl_open(&nl), "netlink");
	port->ifindex = if_nametoindex(port->ifname);
	CHECK(!nl_plain(port->ifname) && !nl_up(&nl, port->ifindex) &&
		      !nl_master(&nl, port->ifindex, if_nametoindex("br0")),
	      "up");
	nl_close(&nl);
	rack_back(home);
}

/*
 * Returns whether both ends of the first host's link have a program, the host's under the name
 * @nic.
 */
static bool attached(unsigned int node, const char *nic)
{
	return xdp_at(node, nic) && xdp_at(0, switch_port(0)->ifname);
}

RACK_TEST(nic__is_made_anew)
{
	unsigned int node, round;

	open_rack();
	node = rack_host(0);
	for (round = 0; round < 3; round++) {
		ip(node, "link del eth0");
		UNTIL(gone(node) == 1 && gone(0) == 1, "what displays read says nothing of it");
		they_talk(1, 2, 100, NULL, "while it is gone");
		make_anew(0, "eth0");
		UNTIL(attached(node, "eth0"), "no program is attached: host %u, switch %u",
		      xdp_at(node, "eth0"), xdp_at(0, switch_port(0)->ifname));
		UNTIL(!gone(node) && !gone(0), "it is not gone any more");
		they_talk(0, 1, 100, NULL, "with the new one");
		CHECK(rack_count(node, BL_R_BEACON_SENT) > 10, "no beacons");
	}
	/* the NAPI thread of the switch's port is pinned */
	UNTIL(bl_node_iface(rack.node[0], 0)->home_cpu >= 0, "its NAPI thread is not pinned");
	/* the next daemon takes over what this one attached */
	rack_close_node(node);
	rack_close_node(0);
	rack_open_node(0);
	rack_open_node(node);
	they_talk(0, 1, 100, NULL, "after the daemons were restarted");
}

/*
 * The number of a port that is created again is beyond the capacity of the running programs: they
 * report the remedy, and it works.
 */
RACK_TEST(port__number_beyond_the_table)
{
	const char *said = BL_RUN_DIR "/said";
	int home, was = dup(STDERR_FILENO);

	open_rack();
	ip(rack_host(0), "link del eth0");
	UNTIL(gone(rack_host(0)) == 1 && gone(0) == 1, "nobody knows that it is gone");
	say_to(said);
	ip(0, "link add %s index 5000 type veth peer name far", switch_port(0)->ifname);
	UNTIL(says(said, "has interface number 5000 now") && says(said, "restart the daemon"),
	      "it does not say what to do");
	CHECK(dup2(was, STDERR_FILENO) == STDERR_FILENO && !unlink(said), "%s", strerror(errno));
	CHECK(!xdp_at(0, switch_port(0)->ifname), "attached all the same");
	they_talk(1, 2, 100, NULL, "without that port");
	rack_close_node(0);
	home = rack_away(0);
	CHECK(!system("ip link set far up"), "up");
	rack_back(home);
	ip(0, "link set %s up", switch_port(0)->ifname);
	rack_open_node(0);
	CHECK(xdp_at(0, switch_port(0)->ifname), "not attached after the restart");
	they_talk(1, 2, 100, NULL, "after the restart");
}

/* Sends a datagram from bl0 to bl0 and one back. Returns false if they do not arrive within @ms. */
static bool over_bl0(unsigned int from, unsigned int to, unsigned int ms)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(9999) }, b = a;
	uint64_t end = t_mono() + ms * 1000000ULL;
	uint8_t ip16[16], c;
	int s, r, home;
	bool got = false;

	lab_bl0_addr(&rack.lab.nodes[rack_host(from)], AF_INET, ip16);
	memcpy(&a.sin_addr, ip16, 4);
	lab_bl0_addr(&rack.lab.nodes[rack_host(to)], AF_INET, ip16);
	memcpy(&b.sin_addr, ip16, 4);
	home = rack_away(rack_host(from));
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK(s >= 0 && !bind(s, (struct sockaddr *)&a, sizeof(a)), "%s", strerror(errno));
	rack_back(home);
	home = rack_away(rack_host(to));
	r = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK(r >= 0 && !bind(r, (struct sockaddr *)&b, sizeof(b)), "%s", strerror(errno));
	rack_back(home);
	while (!got && t_mono() < end) {
		sendto(s, "x", 1, 0, (struct sockaddr *)&b, sizeof(b));
		rack_serve(20);
		if (recv(r, &c, 1, 0) == 1)
			sendto(r, "y", 1, 0, (struct sockaddr *)&a, sizeof(a));
		rack_serve(20);
		got = recv(s, &c, 1, 0) == 1;
	}
	close(s);
	close(r);
	return got;
}

RACK_TEST(nic__with_bl0_is_made_anew)
{
	unsigned int node, round;

	rack.lab.spec.admission.on = true;
	rack.lab.spec.beacon_us = 1000;
	open_rack();
	node = rack_host(0);
	CHECK(over_bl0(0, 1, 60000), "nothing passes at first");
	for (round = 0; round < 2; round++) {
		ip(node, "link del eth0");
		UNTIL(gone(node) == 1 && gone(0) == 1, "nobody knows that it is gone");
		CHECK(!over_bl0(0, 1, 200), "it passes without a NIC");
		make_anew(0, "eth0");
		CHECK(over_bl0(0, 1, 60000), "nothing passes with the new NIC");
		they_talk(0, 1, 100, NULL, "with the new one");
	}
}

RACK_TEST(nic__is_renamed)
{
	unsigned int node;
	struct bl_err err;

	open_rack();
	node = rack_host(0);
	/* Linux allows this while the interface is up since about 6.2; see IFF_LIVE_RENAME_OK. */
	ip(node, "link set eth0 name lan7");
	UNTIL(!strcmp(bl_node_iface(rack.node[node], 0)->iface.name, "lan7"), "the host does not "
									      "know");
	they_talk(0, 1, 100, NULL, "under another name");
	ip(0, "link set %s name swp.9", switch_port(0)->ifname);
	UNTIL(!strcmp(bl_node_iface(rack.node[0], 0)->iface.name, "swp.9"), "the switch does not "
									    "know");
	they_talk(0, 1, 100, NULL, "with a port under another name");
	/* removed under its new name, and back */
	ip(node, "link del lan7");
	UNTIL(gone(node) == 1 && gone(0) == 1, "nobody knows that it is gone");
	strcpy(switch_port(0)->ifname, "swp.9");
	make_anew(0, "lan7");
	UNTIL(attached(node, "lan7") && !gone(node) && !gone(0), "no program is attached");
	they_talk(0, 1, 100, NULL, "made anew under the new name");
	/* a detach finds it */
	rack_close_node(node);
	CHECK(!bl_node_detach(BL_ROLE_HOST, LAB_NETNS_DIR "/h1", &err), "%s", err.text);
	CHECK(!xdp_at(node, "lan7"), "its program is there still");
}

RACK_TEST(address__changes)
{
	unsigned int node;

	open_rack();
	node = rack_host(0);
	ip(node, "addr flush dev eth0 scope global");
	ip(node, "addr add 10.77.200.1/8 dev eth0");
	ip(rack_host(1), "route replace 10.77.200.1/32 dev eth0");
	ip(rack_host(1), "neigh replace 10.77.200.1 lladdr %02x:%02x:%02x:%02x:%02x:%02x dev eth0",
	   rack.lab.nodes[node].ports[0].mac[0], rack.lab.nodes[node].ports[0].mac[1],
	   rack.lab.nodes[node].ports[0].mac[2], rack.lab.nodes[node].ports[0].mac[3],
	   rack.lab.nodes[node].ports[0].mac[4], rack.lab.nodes[node].ports[0].mac[5]);
	rack_serve(
		100); /* what the kernel reported of it is there, and is read before the answer */
	they_talk(0, 1, 100, "10.77.200.1", "with another address");
}

static unsigned int port_mtu(unsigned int port)
{
	struct bl_sw_port p = { 0 };
	int fd = rack_map(0, BL_MAP_SW_PORTS);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &port, &p), "%s", strerror(errno));
	close(fd);
	return p.mtu;
}

RACK_TEST(mtu__changes)
{
	unsigned int k;

	open_rack();
	for (k = 0; k < 3; k++) {
		ip(0, "link set %s mtu 3000", switch_port(k)->ifname);
		ip(rack_host(k), "link set eth0 mtu 3000");
	}
	for (k = 0; k < 3; k++) {
		UNTIL(port_mtu(k) == 3000, "port %u: MTU %u", k, port_mtu(k));
		UNTIL(bl_node_iface(rack.node[rack_host(k)], 0)->iface.mtu == 3000, "h%u: old MTU",
		      k + 1);
	}
	they_talk(0, 1, 2800, NULL, "with large frames");
	CHECK(!rack_count_all(BL_R_TOO_BIG), "too big for somebody");
	/* more than XDP accepts is refused; the old MTU stays */
	ip(0, "link set %s mtu 3498", switch_port(0)->ifname);
	UNTIL(port_mtu(0) == 3498, "MTU %u", port_mtu(0));
	they_talk(0, 1, 2800, NULL, "with a larger one");
}

/* Lowers the MTU of all interfaces, and restarts all daemons, which take the pins over. */
static void lower_mtu(unsigned int mtu)
{
	unsigned int k;

	rack_close_node(0);
	for (k = 0; k < 3; k++) {
		rack_close_node(rack_host(k));
		ip(0, "link set %s mtu %u", switch_port(k)->ifname, mtu);
		ip(rack_host(k), "link set eth0 mtu %u", mtu);
	}
	rack_open_node(0);
	for (k = 0; k < 3; k++)
		rack_open_node(rack_host(k));
	rack_settle();
}

/*
 * Messages of 8000 bytes are one frame each, which takes several XDP buffers on the host and on the
 * switch: best effort and reliable, whose ACK is the frame itself, turned and cut.
 */
RACK_TEST(mtu__of_9000)
{
	struct bl_hook h;

	rack.lab.spec.mtu = 9000;
	open_rack();
	they_talk(0, 1, 8000, NULL, "with jumbo frames");
	they_talk(1, 2, 100, NULL, "with small frames");
	talk_reliably = true;
	they_talk(0, 1, 8000, NULL, "with reliable jumbo frames");
	CHECK(!bl_hook_read(rack.dir[0], 0, &h) && h.frags, "the switch has no frags");
	CHECK(!bl_hook_read(rack.dir[rack_host(0)], 0, &h) && h.frags, "the host has no frags");
	CHECK(!rack_count_all(BL_R_TOO_BIG), "too big for somebody");
}

/*
 * Maps of programs, devices and CPUs are bound to programs with frags; those without, which an MTU
 * below that needs, get new ones.
 */
RACK_TEST(mtu__of_9000_lowered)
{
	rack.lab.spec.mtu = 9000;
	open_rack();
	they_talk(0, 1, 8000, NULL, "with jumbo frames");
	lower_mtu(3000);
	they_talk(0, 1, 2800, NULL, "after a restart with frames of one buffer");
	they_talk(1, 2, 8000, NULL, "with messages of several frames");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nic__is_made_anew),
		cmocka_unit_test(nic__with_bl0_is_made_anew),
		cmocka_unit_test(port__number_beyond_the_table),
		cmocka_unit_test(nic__is_renamed),
		cmocka_unit_test(address__changes),
		cmocka_unit_test(mtu__changes),
		cmocka_unit_test(mtu__of_9000),
		cmocka_unit_test(mtu__of_9000_lowered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
