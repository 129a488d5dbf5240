// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline doctor` on a rack on which nothing can pass: each thing that a node needs around it is
 * taken away, the doctor names it, and after it was mended the doctor is content again.
 */
#include <arpa/inet.h>

#include "tests/net/barline_run.h"
#include "tests/net/loader/said.h"
#include "tests/net/rack.h"
#include "tests/net/serve_until.h"

static json_t *said; /* what the doctor said last */

/* Runs the doctor on node @i; @option: --quick, or NULL. */
static void ask(unsigned int i, const char *option)
{
	static char barline[512];
	const char *const argv[] = { barline, "-j", "doctor", option, NULL };
	int home = rack_away(i);

	json_decref(said);
	CHECK(barline_path(barline, sizeof(barline)), "no command");
	CHECK(barline_run(&said, argv) < 2 && said, "the doctor did not run");
	rack_back(home);
}

/* What it says of a node does not depend on what it tries. */
static void look(unsigned int i)
{
	ask(i, "--quick");
}

/* @key of the doctor's finding on interface @name whose cause has @part, or "absent". */
static const char *text_of(const char *key, const char *name, const char *part)
{
	const char *got = "absent";
	json_t *row;
	size_t k;

	json_array_foreach(json_object_get(said, "findings"), k,
			   row) if (strstr(json_string_value(json_object_get(row, "what")), name) &&
				    strstr(json_string_value(json_object_get(row, "cause")), part))
		got = json_string_value(json_object_get(row, key));
	return got;
}

static const char *level_of(const char *name, const char *part)
{
	return text_of("level", name, part);
}

static const char *cure_of(const char *name, const char *part)
{
	return text_of("cure", name, part);
}

/* Checks that this level is @level; NULL: absent. */
static void expect(const char *name, const char *part, const char *level)
{
	const char *got = level_of(name, part);

	CHECK(!strcmp(got, level ? level : "absent"), "%s: \"%s\" is %s, not %s", name, part, got,
	      level ? level : "absent");
}

/*
 * Asks the doctor on node @i until this level is @level, because the kernel reports a carrier a
 * while after the link is up. The limit of the case ends a wait in vain.
 */
static void await(unsigned int i, const char *name, const char *part, const char *level)
{
	do
		look(i);
	while (strcmp(level_of(name, part), level) != 0);
}

/* Runs a command of iproute2 or sysctl on node @i. */
__attribute__((format(printf, 2, 3))) static void on(unsigned int i, const char *fmt, ...)
{
	int home = rack_away(i);
	char command[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	CHECK(!system(command), "%s", command);
	rack_back(home);
}

#define GOOD_HOST   "an address, a route"
#define NO_MORE     "which the host has no more"
#define NO_ADDRESS  "has no IP address"
#define NOT_UNIQUE  "processes get no address: "
#define NO_ROUTE    "no route leaves"
#define SILENT      "do not answer ARP"
#define DOWN        "the interface is down"
#define NO_CARRIER  "no carrier"
#define GOOD_BRIDGE "its bridge forwards"
#define NO_BRIDGE   "in no bridge"
#define BLOCKED     "does not forward by it"
#define OTHER       "in another bridge"
#define GOOD_ROUTER "neighbours known, forwards"
#define NO_IPV4     "does not forward IPv4"
#define NO_IPV6     "does not forward IPv6"
#define NO_ENTRY    "no Ethernet address for the host"
#define NO_NEIGH    "no neighbour of the port is known"

static unsigned int host, tor;          /* the first host and its switch */
static const char *nic, *port, *second; /* the host's NIC, its port, and the switch's other port */

static void start(bool l3)
{
	const struct lab_port *p;
	const struct lab_node *s;

	rack.lab.spec.hosts = 2;
	rack.lab.spec.l3 = l3;
	rack_open();
	host = rack_host(0);
	p = &rack.lab.nodes[host].ports[0];
	tor = p->peer_node;
	s = &rack.lab.nodes[tor];
	nic = p->ifname;
	port = s->ports[p->peer_port].ifname;
	second = s->ports[!p->peer_port].ifname;
}

/* Whether `show endpoints` says of the first endpoint of the host that its address is gone. */
static bool is_stray(void)
{
	char path[512];
	const char *const argv[] = { path, "-j", "show", "endpoints", NULL };
	int home = rack_away(host);
	json_t *now = NULL;
	bool stray;

	CHECK(barline_path(path, sizeof(path)), "no command");
	CHECK(!barline_run(&now, argv) && now, "no endpoints");
	rack_back(home);
	stray = json_is_true(
		json_object_get(json_array_get(json_object_get(now, "endpoints"), 0), "stray"));
	json_decref(now);
	return stray;
}

/* A process that has an endpoint and waits. *@fd: it is closed when the process may end. */
static pid_t begin_endpoint(int *fd)
{
	struct bl_endpoint *ep;
	int begun[2], end[2];
	pid_t pid;
	char c;

	CHECK(!pipe(begun) && !pipe(end), "pipe");
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(end[1]);
		rack_enter(host);
		c = (char)bl_init(&ep, NULL);
		if (write(begun[1], &c, 1) == 1 && read(end[0], &c, 1) == 0)
			_exit(0);
		_exit(1);
	}
	close(begun[1]);
	close(end[0]);
	CHECK(!fcntl(begun[0], F_SETFL, O_NONBLOCK), "fcntl");
	UNTIL(read(begun[0], &c, 1) == 1, "the process does not say whether it has begun");
	CHECK(!c, "bl_init: %d", c);
	close(begun[0]);
	*fd = end[1];
	return pid;
}

/* An endpoint keeps the address of the host that it began with, also when the host loses it. */
RACK_TEST(endpoint__keeps_an_address_that_is_gone)
{
	char text[INET_ADDRSTRLEN];
	uint8_t addr[16];
	pid_t pid;
	int fd;

	start(false);
	pid = begin_endpoint(&fd);
	lab_host_addr(&rack.lab.nodes[host], AF_INET, addr);
	inet_ntop(AF_INET, addr, text, sizeof(text));
	look(host);
	expect(nic, NO_MORE, NULL);
	CHECK(!is_stray(), "its address is there");
	on(host, "ip -4 address flush dev %s", nic);
	on(host, "ip address add 10.9.0.1/24 dev %s", nic);
	look(host);
	expect(nic, NO_MORE, "warn");
	CHECK(is_stray(), "its address is gone");
	UNTIL(says_event(host, "address_gone"), "that is no event");
	on(host, "ip address add %s/24 dev %s", text, nic);
	look(host);
	expect(nic, NO_MORE, NULL);
	CHECK(!is_stray(), "its address is there again");
	UNTIL(says_event(host, "address_back"), "that it is back is no event");
	close(fd);
	CHECK(waitpid(pid, NULL, 0) == pid, "%s", strerror(errno));
}

#define LARGE "is above the limit"

/* The peer of this NIC has no program, which would limit the MTU of a veth by itself. */
RACK_TEST(host__mtu_above_the_limit)
{
	rack.closed = 1;
	start(false);
	look(host);
	expect(nic, LARGE, NULL);
	on(host, "ip link set %s mtu 9000", nic);
	look(host);
	expect(nic, LARGE, "warn");
	CHECK(strstr(cure_of(nic, LARGE), "mtu 3498"), "the cure is %s", cure_of(nic, LARGE));
	UNTIL(says_event(host, "mtu_refused"), "that is no event");
	on(host, "ip link set %s mtu 1500", nic);
	look(host);
	expect(nic, LARGE, NULL);
	UNTIL(says_event(host, "mtu_fits"), "that it fits again is no event");
}

RACK_TEST(host__address_route_neighbour_carrier)
{
	start(false);
	ask(host, NULL);
	expect(nic, GOOD_HOST, "ok");
	expect("BPF JIT", "on", "ok"); /* although this namespace has no sysctl of it */
	expect("native XDP", "", "ok");
	look(host);
	expect(nic, GOOD_HOST, "ok");
	expect("native XDP", "", NULL);
	on(host, "ip -4 address flush dev %s", nic);
	on(host, "ip -6 address flush dev %s scope global", nic);
	look(host);
	expect(nic, NO_ADDRESS, "FAIL");
	expect(nic, GOOD_HOST, NULL);
	on(host, "ip address add 10.9.0.1/32 dev %s", nic);
	look(host);
	expect(nic, NO_ADDRESS, NULL);
	expect(nic, NO_ROUTE, "FAIL");
	on(host, "ip route add 10.9.0.0/24 dev %s", nic);
	on(host, "ip neigh add 10.9.0.8 lladdr 02:00:00:00:09:08 nud permanent dev %s", nic);
	look(host);
	expect(nic, NO_ROUTE, NULL);
	expect(nic, GOOD_HOST, "ok");
	on(host, "ip neigh add 10.9.0.7 nud failed dev %s", nic);
	look(host);
	expect(nic, SILENT, "warn");
	on(host, "ip neigh flush nud permanent dev %s", nic);
	look(host);
	expect(nic, SILENT, "warn"); /* all neighbours may be off */
	on(host, "ip neigh del 10.9.0.7 dev %s", nic);
	look(host);
	expect(nic, SILENT, NULL);
	expect(nic, GOOD_HOST, "ok");
}

RACK_TEST(host__carrier)
{
	start(false);
	on(tor, "ip link set %s down", port);
	await(host, nic, NO_CARRIER, "FAIL");
	look(tor);
	expect(port, DOWN, "FAIL");
	on(tor, "ip link set %s up", port);
	on(host, "ip link set %s down", nic);
	look(host);
	expect(nic, DOWN, "FAIL");
	await(tor, port, NO_CARRIER, "warn"); /* the machine may be off */
	on(host, "ip link set %s up", nic);
	await(host, nic, GOOD_HOST, "ok");
	expect(nic, DOWN, NULL);
	expect(nic, NO_CARRIER, NULL);
}

/* A route of another table, as that of a VRF, is one. */
RACK_TEST(host__route_of_another_table)
{
	start(false);
	on(host, "ip -4 route flush dev %s", nic);
	on(host, "ip -6 route flush dev %s", nic);
	look(host);
	expect(nic, NO_ROUTE, "FAIL");
	on(host, "ip route add 10.9.0.0/24 dev %s table 77", nic);
	look(host);
	expect(nic, NO_ROUTE, NULL);
	on(host, "ip route flush table 77");
	on(host, "ip route add 10.9.0.0/24 nexthop dev %s nexthop dev lo", nic);
	look(host);
	expect(nic, NO_ROUTE, NULL);
}

/* The address and the route of a host may be those of a bridge, bond or VLAN device on its NIC. */
RACK_TEST(host__address_on_its_bridge)
{
	start(false);
	on(host, "ip -4 address flush dev %s", nic);
	on(host, "ip -6 address flush dev %s scope global", nic);
	on(host, "ip link add br5 up type bridge");
	on(host, "ip link set %s master br5", nic);
	look(host);
	expect(nic, NO_ADDRESS, "FAIL");
	on(host, "ip address add 10.9.0.1/24 dev br5");
	look(host);
	expect(nic, NO_ADDRESS, NULL);
	expect(nic, GOOD_HOST, "ok");
	on(host, "ip neigh add 10.9.0.7 nud failed dev br5");
	look(host);
	expect(nic, SILENT, "warn");
	expect(nic, "one is 10.9.0.7", "warn");
	on(host, "ip address add 10.8.0.1/24 dev %s", nic); /* the bridge is for something else */
	look(host);
	expect(nic, SILENT, NULL);
	expect(nic, GOOD_HOST, "ok");
}

/* Whether the kernel has VLAN devices; if so, makes two on top of br5 on the host. */
static bool add_vlans(void)
{
	int home = rack_away(host);
	bool made = !system("ip link add br5.7 link br5 up type vlan id 7") && !system("ip link "
										       "add br5.8 "
										       "link br5 "
										       "up type "
										       "vlan id 8");

	rack_back(home);
	return made;
}

/*
 * They may be those of a device on top of that one, but only of one, and not of a device whose
 * address endpoints do not get.
 */
RACK_TEST(host__address_further_up)
{
	start(false);
	on(host, "ip -4 address flush dev %s", nic);
	on(host, "ip -6 address flush dev %s scope global", nic);
	on(host, "ip link add mv5 link %s up type macvlan", nic);
	on(host, "ip address add 10.7.0.1/24 dev mv5");
	look(host);
	expect(nic, NO_ADDRESS, "FAIL");
	on(host, "ip link del mv5");
	on(host, "ip link add br5 up type bridge");
	on(host, "ip link set %s master br5", nic);
	if (!add_vlans())
		return;
	on(host, "ip address add 10.9.0.1/24 dev br5.7");
	on(host, "ip neigh add 10.9.0.7 nud failed dev br5.7");
	look(host);
	expect(nic, NO_ADDRESS, NULL);
	expect(nic, SILENT, "warn");
	on(host, "ip address add 10.8.0.1/24 dev br5.8");
	look(host);
	expect(nic, NOT_UNIQUE, "FAIL");
	expect(nic, SILENT, NULL);
}

RACK_TEST(switch__l2_needs_its_bridge)
{
	start(false);
	look(tor);
	expect(port, GOOD_BRIDGE, "ok");
	on(tor, "ip link set %s nomaster", port);
	look(tor);
	expect(port, NO_BRIDGE, "FAIL");
	expect(second, GOOD_BRIDGE, "ok");
	on(tor, "ip link set %s promisc on", port);
	look(tor);
	expect(port, NO_BRIDGE, "warn");
	on(tor, "ip link set %s promisc off", port);
	on(tor, "ip link set %s master br0", port);
	on(tor, "ip link set br0 down");
	look(tor);
	expect(port, BLOCKED, "FAIL");
	expect(port, NO_BRIDGE, NULL);
	on(tor, "ip link set br0 up");
	await(tor, port, GOOD_BRIDGE, "ok");
	expect(port, BLOCKED, NULL);
}

RACK_TEST(switch__l2_needs_one_bridge)
{
	const char *later;

	start(false);
	later = strcmp(port, second) > 0 ? port : second;
	on(tor, "ip link add br1 up type bridge");
	on(tor, "ip link set %s master br1", later);
	look(tor);
	expect(later, OTHER, "FAIL");
	on(tor, "ip link set %s master br0", later);
	look(tor);
	expect(later, OTHER, NULL);
	expect(later, GOOD_BRIDGE, "ok");
}

/* Leaves only the first half of the table, which is the port of one host. */
static void forget_half(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->fdb_count /= 2;
}

RACK_TEST(switch__l2_needs_its_table)
{
	start(false);
	look(tor);
	expect(port, NO_ENTRY, NULL);
	expect(second, NO_ENTRY, NULL);
	rack_close_node(tor);
	rack.tweak = forget_half;
	rack_open_node(tor);
	look(tor);
	expect(port, NO_ENTRY, NULL);
	expect(second, NO_ENTRY, "FAIL");
}

RACK_TEST(switch__l3_forwards_by_route_and_neighbour)
{
	start(true);
	look(tor);
	expect(port, GOOD_ROUTER, "ok");
	on(tor, "sysctl -q -w net.ipv4.conf.%s.forwarding=0", port);
	on(tor, "sysctl -q -w net.ipv6.conf.%s.forwarding=0", port);
	look(tor);
	expect(port, NO_IPV4, "FAIL");
	expect(port, NO_IPV6, "FAIL");
	expect(port, GOOD_ROUTER, NULL);
	on(tor, "sysctl -q -w net.ipv4.conf.%s.forwarding=1", port);
	on(tor, "sysctl -q -w net.ipv6.conf.%s.forwarding=1", port);
	on(tor, "ip neigh flush nud permanent dev %s", port);
	look(tor);
	expect(port, NO_IPV4, NULL);
	expect(port, NO_NEIGH, "warn");
	on(tor, "ip route flush dev %s", port);
	on(tor, "ip -6 route flush dev %s", port);
	look(tor);
	expect(port, NO_ROUTE, "FAIL");
}

/* Sets the CPUs whose senders take the transmit queue of the host's NIC. */
static void set_xps(const char *mask)
{
	on(host, "unshare -m sh -c 'mount -t sysfs s /sys && echo %s >%s/%s/queues/tx-0/xps_cpus'",
	   mask, "/sys/class/net", nic);
}

/* The row of the host's NIC. */
static json_t *show_nic(json_t **all)
{
	static char barline[512];
	const char *const argv[] = { barline, "-j", "show", "nics", NULL };
	int home = rack_away(host);

	json_decref(*all);
	CHECK(barline_path(barline, sizeof(barline)), "no command");
	CHECK(!barline_run(all, argv) && *all, "it shows no NICs");
	rack_back(home);
	return json_array_get(json_object_get(*all, "nics"), 0);
}

/* What kind of NIC it is, and how its queues are picked. */
RACK_TEST(host__facts_of_the_nic)
{
	json_t *all = NULL, *row;
	char cure[80];

	start(false);
	set_xps("0");
	look(host);
	expect(nic, "veth, native XDP, rings apart; transmit: ", "ok");
	expect(nic, ", no XPS; receive: ", "ok");
	expect(nic, "no hardware timestamps, no PTP clock", "ok");
	row = show_nic(&all);
	CHECK(json_integer_value(json_object_get(row, "xps_queues")) == 0 &&
		      json_is_null(json_array_get(json_object_get(row, "xps"), 0)),
	      "XPS is shown, although there is none");
	set_xps("1");
	look(host);
	expect(nic, ", XPS on 1; receive: ", "ok");
	row = show_nic(&all);
	CHECK(json_integer_value(json_object_get(row, "xps_queues")) == 1 &&
		      !strcmp(json_string_value(json_array_get(json_object_get(row, "xps"), 0)),
			      "1"),
	      "XPS is not shown");
	json_decref(all);
	expect(nic, ", rxvlan off; ", "ok");
	expect(nic, "takes VLAN tags off frames", NULL);
	rack_close_node(host); /* it would turn it off again */
	on(host, "ethtool -K %s rxvlan on", nic);
	look(host);
	expect(nic, ", rxvlan on; ", "ok");
	expect(nic, "takes VLAN tags off frames", "warn");
	snprintf(cure, sizeof(cure), "`ethtool -K %s rxvlan off ", nic);
	CHECK(!strncmp(cure_of(nic, "takes VLAN tags off frames"), cure, strlen(cure)),
	      "the remedy is \"%s\"", cure_of(nic, "takes VLAN tags off frames"));
}

/* A trial that is not done in time, as on a machine that is very busy, says nothing against it. */
RACK_TEST(trial__runs_out_of_time)
{
	static const char script[] = "\"$0\" -j doctor & p=$!; until c=$(pgrep -o -P $p); do :; "
				     "done; "
				     "kill -ALRM $c; wait $p";
	static char barline[512];
	const char *const argv[] = { "/bin/sh", "-c", script, barline, NULL };
	int home;

	start(false);
	home = rack_away(host);
	CHECK(barline_path(barline, sizeof(barline)), "no command");
	CHECK(!barline_run(&said, argv) && said, "the doctor fails");
	rack_back(home);
	expect("trial", "not done within 30 s, in which it got ", "warn");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoint__keeps_an_address_that_is_gone),
		cmocka_unit_test(host__mtu_above_the_limit),
		cmocka_unit_test(host__address_route_neighbour_carrier),
		cmocka_unit_test(host__carrier),
		cmocka_unit_test(host__route_of_another_table),
		cmocka_unit_test(host__facts_of_the_nic),
		cmocka_unit_test(host__address_on_its_bridge),
		cmocka_unit_test(host__address_further_up),
		cmocka_unit_test(switch__l2_needs_its_bridge),
		cmocka_unit_test(switch__l2_needs_one_bridge),
		cmocka_unit_test(switch__l2_needs_its_table),
		cmocka_unit_test(switch__l3_forwards_by_route_and_neighbour),
		cmocka_unit_test(trial__runs_out_of_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
