// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl0 and the maps of admission, as the loader creates, takes over and removes them; and
 * applications' bytes across a rack whose daemons are replaced meanwhile.
 */
#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "tests/net/rack.h"
#include "loader/admission/bl0.h"

static bool off;                   /* next open: without admission */
static unsigned int slots, frames; /* next open: of the hosts */
static char app_name[16];

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	cfg->admission.on = !off;
	if (n->kind != LAB_HOST)
		return;
	cfg->admission.slots = slots;
	cfg->admission.queue.frames = frames;
	strcpy(cfg->admission.bl0, app_name);
}

static void open_rack(unsigned int hosts, uint64_t rate_bps)
{
	rack.lab.spec.hosts = hosts;
	rack.lab.spec.admission.on = true;
	rack.lab.spec.admission.rate_bps = rate_bps;
	rack.tweak = tweak;
	rack_open();
}

/* ---- state in the namespace of a node ---- */

static unsigned int ifindex(unsigned int node, const char *name)
{
	int home = rack_away(node);
	unsigned int i = if_nametoindex(name);

	rack_back(home);
	return i;
}

static uint32_t feature(const char *ifname, uint32_t cmd)
{
	struct ethtool_value v = { .cmd = cmd };
	struct ifreq r = { .ifr_data = (void *)&v };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", ifname);
	CHECK(fd >= 0 && !ioctl(fd, SIOCETHTOOL, &r), "%s: %s", ifname, strerror(errno));
	close(fd);
	return v.data;
}

static int sysctl_of(const char *ifname, const char *key)
{
	char path[128];
	int v = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/%s", ifname, key);
	f = fopen(path, "re");
	CHECK(f, "%s", path);
	if (fscanf(f, "%d", &v) != 1)
		FAIL("%s: no number", path);
	fclose(f);
	return v;
}

static struct bl_hold_cfg hold_cfg(unsigned int node)
{
	struct bl_hold_cfg c;
	uint32_t zero = 0;
	int fd = rack_map(node, BL_MAP_HOLD_CFG);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &c), "%s", strerror(errno));
	close(fd);
	return c;
}

static struct bpf_map_info map_info(unsigned int node, const char *name)
{
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info);
	int fd = rack_map(node, name);

	CHECK(fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len), "%s: %s", name, strerror(errno));
	close(fd);
	return info;
}

static uint32_t xdp_prog(unsigned int node, const char *ifname)
{
	int home = rack_away(node);
	uint32_t id = 0;

	bpf_xdp_query_id((int)if_nametoindex(ifname), 0, &id);
	rack_back(home);
	return id;
}

static bool pinned(unsigned int node, const char *link)
{
	char path[384];

	snprintf(path, sizeof(path), "%s/links/%s", rack.dir[node], link);
	return !access(path, F_OK);
}

/* ---- bl0 ---- */

RACK_TEST(open__makes_bl0)
{
	static const char *const both[] = { "bl0", "bl0d" };
	unsigned int h, k;
	struct bl_iface i;
	struct bl_err err;
	uint8_t mac[6];

	open_rack(2, 250000000);
	h = rack_host(0);
	k = (unsigned int)rack_away(h);
	bl_bl0_mac(rack.lab.nodes[h].ports[0].mac, mac);
	CHECK(!bl_iface_get(&i, "bl0", &err), "%s", err.text);
	CHECK(!memcmp(i.mac, mac, 6) && i.mtu == 1500 && i.up, "address, MTU or state");
	CHECK(mac[0] == 0x02 && memcmp(mac, rack.lab.nodes[h].ports[0].mac, 6), "not an address of "
										"its own");
	CHECK(!bl_iface_get(&i, "bl0d", &err) && i.up && i.mtu == 1500, "bl0d");
	rack_back((int)k);
	k = (unsigned int)rack_away(h);
	for (unsigned int e = 0; e < 2; e++)
		CHECK(!feature(both[e], ETHTOOL_GTXCSUM) && !feature(both[e], ETHTOOL_GTSO) &&
			      !feature(both[e], ETHTOOL_GGSO),
		      "%s has offloads", both[e]);
	CHECK(feature("bl0", ETHTOOL_GGRO), "no GRO");
	CHECK(sysctl_of("eth0", "arp_ignore") == 1 && sysctl_of("bl0", "arp_ignore") == 1, "arp_"
											   "ignor"
											   "e");
	CHECK(sysctl_of("eth0", "arp_announce") == 2 && sysctl_of("bl0", "arp_announce") == 2, "arp"
											       "_an"
											       "nou"
											       "nc"
											       "e");
	CHECK(sysctl_of("eth0", "rp_filter") == 2 && sysctl_of("bl0", "rp_filter") == 2, "rp_"
											 "filter");
	rack_back((int)k);
	CHECK(xdp_prog(h, "bl0") && xdp_prog(h, "bl0d"), "no programs on the pair");
	CHECK(hold_cfg(h).on == 1 && !memcmp(hold_cfg(h).mac, mac, 6) &&
		      hold_cfg(h).link.ns_q20 == 32u << 20,
	      "hold_cfg");
	CHECK(hold_cfg(h).k_frames == 4 && hold_cfg(h).t_ns == 15 * 49216, "K %u, t %llu",
	      hold_cfg(h).k_frames, (unsigned long long)hold_cfg(h).t_ns);
	/* the other host's address differs */
	CHECK(memcmp(hold_cfg(h).mac, hold_cfg(rack_host(1)).mac, 6), "two hosts, one address");
}

RACK_TEST(takeover__keeps_bl0)
{
	unsigned int h, a, d;
	uint32_t prog, slots_id;

	open_rack(1, 250000000);
	h = rack_host(0);
	a = ifindex(h, "bl0");
	d = ifindex(h, "bl0d");
	prog = xdp_prog(h, "bl0d");
	slots_id = map_info(h, BL_MAP_SLOTS).id;
	CHECK(a && d && prog, "not made");
	rack_forget_programs(h);
	rack_close_node(h);
	CHECK(ifindex(h, "bl0") == a && xdp_prog(h, "bl0d") == prog, "it went with the daemon");
	rack_open_node(h);
	CHECK(ifindex(h, "bl0") == a && ifindex(h, "bl0d") == d, "made anew");
	CHECK(xdp_prog(h, "bl0d") != prog && xdp_prog(h, "bl0d"), "the program was not swapped");
	CHECK(map_info(h, BL_MAP_SLOTS).id == slots_id, "the maps were not kept");
	CHECK(hold_cfg(h).on, "off");
}

static void gone(unsigned int h)
{
	CHECK(!ifindex(h, "bl0") && !ifindex(h, "bl0d"), "the pair is still there");
}

RACK_TEST(detach__removes_bl0)
{
	char netns[300];
	unsigned int h;
	struct bl_err err;

	open_rack(1, 0);
	h = rack_host(0);
	CHECK(ifindex(h, "bl0"), "not made");
	rack_close_node(h);
	snprintf(netns, sizeof(netns), "%s/%s", LAB_NETNS_DIR, rack.lab.nodes[h].name);
	CHECK(!bl_node_detach(BL_ROLE_HOST, netns, &err), "%s", err.text);
	gone(h);
	CHECK(!xdp_prog(h, "eth0"), "the NIC still has its program");
	CHECK(access(rack.dir[h], F_OK), "pins are left");
}

RACK_TEST(off__and_on_again)
{
	unsigned int h;

	open_rack(1, 250000000);
	h = rack_host(0);
	CHECK(map_info(h, BL_MAP_SLOTS).max_entries == BL_SLOTS &&
		      map_info(h, BL_MAP_QUEUES).max_entries == BL_DESTS * BL_HOLD_CLASSES,
	      "sizes with admission");
	rack_close_node(h);
	off = true;
	rack.lab.spec.admission.on = false; /* no addresses */
	rack_open_node(h);
	gone(h);
	CHECK(!hold_cfg(h).on, "on");
	CHECK(!pinned(h, "hold-bl0d") && !pinned(h, "pass-bl0") && !pinned(h, "ingress-eth0"),
	      "pins of it are left");
	CHECK(map_info(h, BL_MAP_SLOTS).max_entries == 1 &&
		      map_info(h, BL_MAP_FREE_SLOTS).max_entries == 1 &&
		      map_info(h, BL_MAP_QUEUES).max_entries == 1,
	      "the maps take as much as before");
	rack_close_node(h);
	off = false;
	rack.lab.spec.admission.on = true;
	rack_open_node(h);
	CHECK(ifindex(h, "bl0") && hold_cfg(h).on &&
		      map_info(h, BL_MAP_SLOTS).max_entries == BL_SLOTS,
	      "not on again");
}

RACK_TEST(takeover__other_limits)
{
	uint32_t queues_id, cfg_id;
	struct bl_queue q;
	uint32_t one = 1;
	unsigned int h;
	int fd;

	open_rack(1, 250000000);
	h = rack_host(0);
	queues_id = map_info(h, BL_MAP_QUEUES).id;
	cfg_id = map_info(h, BL_MAP_HOST_CFG).id;
	rack_close_node(h);
	frames = 32;
	slots = 512;
	rack_open_node(h);
	CHECK(map_info(h, BL_MAP_QUEUES).id != queues_id &&
		      map_info(h, BL_MAP_SLOTS).max_entries == 512 &&
		      map_info(h, BL_MAP_FREE_SLOTS).max_entries == 512,
	      "as before");
	CHECK(map_info(h, BL_MAP_HOST_CFG).id == cfg_id, "more than the queues is new");
	fd = rack_map(h, BL_MAP_QUEUES);
	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &one, &q), "%s", strerror(errno));
	CHECK(q.limit_frames == 32 && q.limit_bytes == 32 * BL_QUEUE_FRAME_MAX && !q.put,
	      "limits %u, %u", q.limit_frames, q.limit_bytes);
	close(fd);
	queues_id = map_info(h, BL_MAP_QUEUES).id;
	rack_close_node(h);
	rack_open_node(h);
	CHECK(map_info(h, BL_MAP_QUEUES).id == queues_id, "the same limits, and new queues");
}

/* ---- names that are taken ---- */

static void make_other(unsigned int node, const char *a, const char *b)
{
	struct nl_end ea = { .name = a, .mac = { 2, 1, 1, 1, 1, 1 } },
		      eb = { .name = b, .mac = { 2, 1, 1, 1, 1, 2 } };
	int home = rack_away(node);
	struct nl nl;

	CHECK(!nl_open(&nl) && !nl_veth(&nl, &ea, &eb, -1, 1500), "%s", a);
	nl_close(&nl);
	rack_back(home);
}

static int try_open(unsigned int i, struct bl_err *err)
{
	struct bl_node_cfg cfg;
	struct bl_node *n;
	int rc;

	CHECK(!lab_node_cfg(&rack.lab, &rack.lab.nodes[i], &cfg), "cfg");
	tweak(&cfg, &rack.lab.nodes[i]);
	rc = bl_node_open(&n, rack.server, &cfg, err);
	free(cfg.ports);
	free(cfg.fdb);
	return rc;
}

RACK_TEST(open__name_taken)
{
	struct bl_err err;
	unsigned int h;

	rack.closed = ~0ULL;
	open_rack(1, 0);
	h = rack_host(0);
	make_other(h, "bl0", "other");
	CHECK(try_open(h, &err) == -EEXIST && strstr(err.text, "bl0") &&
		      strstr(err.text, "ip link del"),
	      "%s", err.text);
	CHECK(ifindex(h, "bl0") && ifindex(h, "other"), "what was not ours was removed");
	CHECK(!xdp_prog(h, "eth0"), "the failed start left its program");
	strcpy(app_name, "app0");
	rack.lab.spec.admission.on = false; /* the addresses are for a bl0 */
	CHECK(!try_open(h, &err), "%s", err.text);
	CHECK(ifindex(h, "app0") && ifindex(h, "app0d"), "not under the other name");
}

/*
 * A start that was killed between creating the pair and pinning, or pins that were lost: the pair
 * is recognised by its address.
 */
RACK_TEST(open__pins_lost)
{
	unsigned int h, a;
	char cmd[600];

	open_rack(1, 0);
	h = rack_host(0);
	a = ifindex(h, "bl0");
	rack_close_node(h);
	snprintf(cmd, sizeof(cmd), "rm -f %s/links/* %s/maps/*", rack.dir[h], rack.dir[h]);
	CHECK(!system(cmd), "rm");
	rack_open_node(h);
	CHECK(ifindex(h, "bl0") == a && hold_cfg(h).on && pinned(h, "hold-bl0d"), "not taken");
}

/* ---- refusals ---- */

RACK_TEST(open__refused)
{
	static const struct {
		const char *why;
		struct bl_admission_cfg a;
	} v[] = {
		{ "rate", { .on = true, .policy = BL_POLICY_PL2 } },
		{ "at most 16", { .on = true, .k = 17 } },
		{ "slots and in microseconds",
		  { .on = true, .rate_bps = 1000000000, .t_us = 1, .t_slots = 1 } },
		{ "2mbit", { .on = true, .rate_bps = 1999999 } },
		{ "at most 512", { .on = true, .queue = { .frames = 513 } } },
		{ "less than one frame", { .on = true, .queue = { .bytes = 1521 } } },
		{ "ever be marked",
		  { .on = true, .queue = { .bytes = 9000, .mark_bytes = 9000 } } },
		{ "from 16 to 65536", { .on = true, .slots = 65537 } },
		{ "does not exist", { .on = true, .pacer_cpu = 200 } },
		{ "three names", { .on = true, .bl0 = "eth0" } },
	};
	struct bl_node_cfg cfg;
	struct bl_node *n;
	struct bl_err err;
	unsigned int k;

	rack.closed = ~0ULL;
	rack.lab.spec.hosts = 1;
	rack_open();
	for (k = 0; k < sizeof(v) / sizeof(v[0]); k++) {
		CHECK(!lab_node_cfg(&rack.lab, &rack.lab.nodes[rack_host(0)], &cfg), "cfg");
		cfg.admission = v[k].a;
		CHECK(bl_node_open(&n, rack.server, &cfg, &err) < 0, "case %u was taken", k);
		CHECK(strstr(err.text, v[k].why), "case %u: %s", k, err.text);
		CHECK(!ifindex(rack_host(0), "bl0"), "case %u made bl0", k);
	}
}

RACK_TEST(switch__large_mtu_metered)
{
	struct bl_err err;

	rack.closed = ~0ULL;
	rack.lab.spec.mtu = 1505;
	open_rack(1, 250000000);
	CHECK(try_open(0, &err) == -EMSGSIZE && strstr(err.text, "mtu 1500"), "%s", err.text);
}

/* ---- bytes ---- */

#define BYTES (12u << 20)

static void fill(uint8_t *b, size_t n, uint64_t at)
{
	size_t k;

	for (k = 0; k < n; k++)
		b[k] = (uint8_t)((at + k) * 2654435761u >> 13);
}

static int tcp_socket(int family, unsigned int node, struct sockaddr_storage *sa, socklen_t *len)
{
	uint8_t a[16];
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(sa, 0, sizeof(*sa));
	lab_bl0_addr(&rack.lab.nodes[node], family, a);
	if (family == AF_INET) {
		struct sockaddr_in *s = (void *)sa;

		s->sin_family = AF_INET;
		s->sin_port = htons(5001);
		memcpy(&s->sin_addr, a, 4);
		*len = sizeof(*s);
	} else {
		struct sockaddr_in6 *s = (void *)sa;

		s->sin6_family = AF_INET6;
		s->sin6_port = htons(5001);
		memcpy(&s->sin6_addr, a, 16);
		*len = sizeof(*s);
	}
	CHECK(fd >= 0, "%s", strerror(errno));
	return fd;
}

static pid_t child(unsigned int node, void (*fn)(int family), int family)
{
	pid_t pid = fork();

	CHECK(pid >= 0, "fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rack_enter(node);
	fn(family);
	_exit(0);
}

static int listener;
/** struct shared - memory shared by the case and its two processes. */
static struct shared {
	/* The sender is connected; nothing is replaced any more, so the sender may end. */
	uint32_t connected, enough;
	uint64_t sent; /* bytes of the sender; written when it has ended */
} * shared;

static void receive(int family)
{
	static uint8_t got[65536], want[65536];
	int fd = accept(listener, NULL, NULL);
	uint64_t at = 0;
	ssize_t n;

	CHECK(fd >= 0, "%s", strerror(errno));
	while ((n = recv(fd, got, sizeof(got), 0)) > 0) {
		fill(want, (size_t)n, at);
		CHECK(!memcmp(got, want, (size_t)n), "bytes from %" PRIu64 " on differ", at);
		at += (uint64_t)n;
	}
	CHECK(!n && at == __atomic_load_n(&shared->sent, __ATOMIC_ACQUIRE), "%" PRIu64 " bytes: %s",
	      at, n ? strerror(errno) : "the end");
}

static void send_all(int family)
{
	static uint8_t b[65536];
	struct sockaddr_storage sa;
	uint64_t at = 0;
	socklen_t len;
	int fd = tcp_socket(family, rack_host(1), &sa, &len);

	CHECK(!connect(fd, (void *)&sa, len), "connect: %s", strerror(errno));
	__atomic_store_n(&shared->connected, 1, __ATOMIC_RELEASE);
	while (at < BYTES || !__atomic_load_n(&shared->enough, __ATOMIC_ACQUIRE)) {
		fill(b, sizeof(b), at);
		CHECK(send(fd, b, sizeof(b), 0) == sizeof(b), "send: %s", strerror(errno));
		at += sizeof(b);
	}
	__atomic_store_n(&shared->sent, at, __ATOMIC_RELEASE);
	CHECK(!shutdown(fd, SHUT_WR) && !recv(fd, b, 1, 0), "end: %s", strerror(errno));
}

enum restart { NONE, DAEMONS, SWITCH };

/* Removes the switch's programs and maps, and starts it as after a boot. */
static void reboot_switch(void)
{
	char netns[300];
	struct bl_err err;

	rack_close_node(0);
	snprintf(netns, sizeof(netns), "%s/%s", LAB_NETNS_DIR, rack.lab.nodes[0].name);
	CHECK(!bl_node_detach(BL_ROLE_SWITCH, netns, &err), "%s", err.text);
	rack_open_node(0);
}

/*
 * Transfers bytes from h1 to h2 over one connection while @restart happens, for as long as that
 * takes.
 */
static void transfer(int family, enum restart restart)
{
	struct sockaddr_storage sa;
	pid_t pid[2];
	socklen_t len;
	unsigned int k, i = 0;
	int home, st, left = 2;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED, "%s", strerror(errno));
	home = rack_away(rack_host(1));
	listener = tcp_socket(family, rack_host(1), &sa, &len);
	CHECK(!bind(listener, (void *)&sa, len) && !listen(listener, 1), "%s", strerror(errno));
	rack_back(home);
	pid[0] = child(rack_host(1), receive, family);
	pid[1] = child(rack_host(0), send_all, family);
	close(listener);
	while (left) {
		bool there;

		/*
		 * Not before the connection exists: the kernel gives up neighbours that do not
		 * answer for three seconds, and replacing a switch on a busy machine may take that
		 * long.
		 */
		rack_serve(30);
		there = __atomic_load_n(&shared->connected, __ATOMIC_ACQUIRE);
		if (there && restart == DAEMONS && i < 3 * rack.lab.nnodes) {
			rack_upgrade_node(i++ % rack.lab.nnodes);
		} else if (there && restart == SWITCH && i < 3) {
			reboot_switch();
			i++;
		} else if (there) {
			__atomic_store_n(&shared->enough, 1, __ATOMIC_RELEASE);
		}
		for (k = 0; k < 2; k++) {
			if (pid[k] && waitpid(pid[k], &st, WNOHANG) == pid[k]) {
				CHECK(WIFEXITED(st) && !WEXITSTATUS(st), "the %s failed",
				      k ? "sender" : "receiver");
				pid[k] = 0;
				left--;
			}
		}
	}
	munmap(shared, sizeof(*shared));
	CHECK(i == (restart == DAEMONS  ? 3 * rack.lab.nnodes
		    : restart == SWITCH ? 3
					: 0),
	      "the transfer ended before the restarts (%u)", i);
}

RACK_TEST(bytes__tcp_v4)
{
	open_rack(2, 250000000);
	transfer(AF_INET, NONE);
	CHECK(rack_count(rack_host(0), BL_R_HELD) && rack_count(rack_host(1), BL_R_TO_APP) &&
		      rack_count(0, BL_R_QUEUED),
	      "it went another way");
	/*
	 * The sender's own hold queue may be full: while the pacer waits for a CPU, TCP continues
	 * until the first mark comes back (docs/guarantees.md).
	 */
	CHECK(!rack_count_all(BL_R_NO_SLOT) && !rack_count_all(BL_R_QUEUE_FULL),
	      "drops: slot %" PRIu64 ", queue %" PRIu64, rack_count_all(BL_R_NO_SLOT),
	      rack_count_all(BL_R_QUEUE_FULL));
}

RACK_TEST(bytes__tcp_v6)
{
	open_rack(2, 250000000);
	transfer(AF_INET6, NONE);
	CHECK(rack_count(rack_host(0), BL_R_HELD) && rack_count(rack_host(1), BL_R_TO_APP) &&
		      rack_count(0, BL_R_QUEUED),
	      "it went another way");
}

RACK_TEST(bytes__daemons_exchanged)
{
	open_rack(2, 60000000);
	transfer(AF_INET, DAEMONS);
}

/*
 * Promises are in pinned maps, which outlive the daemon. A frame that waited too long for a pacer
 * may have lapsed.
 */
RACK_TEST(bytes__daemons_exchanged_reserved)
{
	rack.lab.spec.admission.policy = BL_POLICY_PL2;
	open_rack(2, 60000000);
	transfer(AF_INET, DAEMONS);
	CHECK(rack_count(0, BL_R_RSV_GRANTED), "nothing was reserved");
}

/*
 * Promises, queues and tables vanish in the middle of reserved traffic: hosts ask again, and TCP
 * retransmits what was in the queues.
 */
RACK_TEST(bytes__switch_rebooted_reserved)
{
	rack.lab.spec.admission.policy = BL_POLICY_PL2;
	open_rack(2, 60000000);
	transfer(AF_INET, SWITCH);
	CHECK(rack_count(0, BL_R_RSV_GRANTED), "nothing was reserved after the last time");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__makes_bl0),
		cmocka_unit_test(takeover__keeps_bl0),
		cmocka_unit_test(detach__removes_bl0),
		cmocka_unit_test(off__and_on_again),
		cmocka_unit_test(takeover__other_limits),
		cmocka_unit_test(open__name_taken),
		cmocka_unit_test(open__pins_lost),
		cmocka_unit_test(open__refused),
		cmocka_unit_test(switch__large_mtu_metered),
		cmocka_unit_test(bytes__tcp_v4),
		cmocka_unit_test(bytes__tcp_v6),
		cmocka_unit_test(bytes__daemons_exchanged),
		cmocka_unit_test(bytes__daemons_exchanged_reserved),
		cmocka_unit_test(bytes__switch_rebooted_reserved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
