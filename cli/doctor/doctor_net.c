// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The doctor's look at the network around a node: whether what it sends can arrive at all. Its
 * links may be live, and its clock valid, while no message passes because a host has no address,
 * or because the kernel of a switch does not forward ARP requests.
 *
 * A host needs carrier, an address and a route. An l2 switch needs all its ports in one bridge, and
 * the Ethernet address of each host in its table (fdb); an l3 switch needs forwarding, and a route
 * and a neighbour for each host. Firewalls and policy routing are not looked at.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/iface.h"
#include "base/netns.h"
#include "base/nl_neigh.h"
#include "base/proc.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/util/read.h"
#include "loader/load/pin.h"
#include "loader/load/sysfs.h"

#define NAMES_MAX       8
#define V4_REJECT       0x0200     /* RTF_REJECT */
#define V6_NOT_A_WAY    0x80100200 /* RTF_LOCAL, RTF_ANYCAST, RTF_REJECT */
#define BRIDGE_FORWARDS "3"        /* BR_STATE_FORWARDING */
#define SEE_DEPLOY      "; docs/deploy.md has the steps"

/** struct names - interfaces by which the traffic of one NIC may go. */
struct names {
	char v[NAMES_MAX][IFNAMSIZ];
	unsigned int n;
};

/** struct met - the neighbours of one NIC. */
struct met {
	unsigned int known, silent;
	char first[INET6_ADDRSTRLEN]; /* that did not answer */
};

/** struct place - one interface of a node. */
struct place {
	const struct finder *to;
	char what[40], name[IFNAMSIZ];
	unsigned int ifindex;
	int sys; /* sysfs of this network namespace */
};

static void add_name(struct names *to, const char *name)
{
	if (to->n < NAMES_MAX)
		snprintf(to->v[to->n++], IFNAMSIZ, "%s", name);
}

/* The NIC, what is stacked on it (VLAN devices, a bond, a bridge), and bl0. */
static void find_names(const struct place *p, struct names *to)
{
	char path[64];
	struct dirent *e;
	DIR *d;
	int fd;

	add_name(to, p->name);
	add_name(to, "bl0");
	snprintf(path, sizeof(path), "class/net/%s", p->name);
	fd = openat(p->sys, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, "upper_", 6))
			add_name(to, e->d_name + 6);
	if (d)
		closedir(d);
}

static bool is_in(const struct names *names, const char *name)
{
	unsigned int k;

	for (k = 0; k < names->n; k++)
		if (!strcmp(names->v[k], name))
			return true;
	return false;
}

/* Whether a route of the main table leaves by one of @names. */
static bool has_route_v4(const struct names *names)
{
	FILE *f = fopen("/proc/thread-self/net/route", "re");
	char line[256], name[IFNAMSIZ];
	unsigned int flags;
	bool yes = false;

	while (f && !yes && fgets(line, sizeof(line), f))
		yes = sscanf(line, "%15s %*s %*s %x", name, &flags) == 2 && !(flags & V4_REJECT) &&
		      is_in(names, name);
	if (f)
		fclose(f);
	return yes;
}

/* The same for IPv6. Routes to link-local and multicast addresses do not count. */
static bool has_route_v6(const struct names *names)
{
	FILE *f = fopen("/proc/thread-self/net/ipv6_route", "re");
	char line[256], dst[33], name[IFNAMSIZ];
	unsigned int flags;
	bool yes = false;

	while (f && !yes && fgets(line, sizeof(line), f))
		yes = sscanf(line, "%32s %*s %*s %*s %*s %*s %*s %*s %x %15s", dst, &flags, name) ==
			      3 &&
		      strncmp(dst, "fe8", 3) != 0 && strncmp(dst, "ff", 2) != 0 &&
		      !(flags & V6_NOT_A_WAY) && is_in(names, name);
	if (f)
		fclose(f);
	return yes;
}

static void meet(const struct nl_neighbour *n, void *ctx)
{
	struct met *m = ctx;

	if (n->known)
		m->known++;
	else if (!m->silent++)
		addr_text(n->ip, m->first, sizeof(m->first));
}

static struct met meet_all(const struct place *p)
{
	struct met m = { 0 };
	struct nl nl;

	if (!nl_open(&nl)) {
		nl_neigh_each(&nl, (int)p->ifindex, meet, &m);
		nl_close(&nl);
	}
	return m;
}

static short flags_of(const struct place *p)
{
	struct ifreq r = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", p->name);
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r))
		r.ifr_flags = 0;
	if (fd >= 0)
		close(fd);
	return r.ifr_flags;
}

/*
 * Reports that the link is down. Returns whether it is up. A switch only warns of a missing
 * carrier, because a machine behind it may be switched off on purpose.
 */
static bool check_carrier(const struct place *p, short flags, enum finding_level level)
{
	char cure[80];

	snprintf(cure, sizeof(cure), "`ip link set %s up`", p->name);
	if (!(flags & IFF_UP))
		found(p->to, FOUND_FAIL, p->what, cure, "the interface is down: nothing passes");
	else if (!(flags & IFF_RUNNING))
		found(p->to, level, p->what,
		      "check the cable, and that the interface at its other end is up",
		      "the interface has no carrier: nothing passes");
	return flags & IFF_UP && flags & IFF_RUNNING;
}

static void check_host(const struct place *p)
{
	struct names names = { 0 };
	struct bl_err err;
	struct met m;
	uint8_t addr[16];
	char cure[160];
	unsigned int k;

	if (!check_carrier(p, flags_of(p), FOUND_FAIL))
		return;
	find_names(p, &names);
	for (k = 0; k < names.n && bl_iface_addr(names.v[k], 0, addr, &err); k++)
		;
	if (k == names.n) {
		snprintf(cure, sizeof(cure), "`ip address add ADDRESS/LENGTH dev %s`%s", p->name,
			 SEE_DEPLOY);
		found(p->to, FOUND_FAIL, p->what, cure,
		      "the interface has no IP address that other machines can use: nothing is "
		      "sent or received");
		return;
	}
	if (!has_route_v4(&names) && !has_route_v6(&names)) {
		snprintf(cure, sizeof(cure), "`ip route add NETWORK via ROUTER dev %s`%s", p->name,
			 SEE_DEPLOY);
		found(p->to, FOUND_FAIL, p->what, cure,
		      "no route leaves by the interface: no other machine is reached");
		return;
	}
	m = meet_all(p);
	if (m.silent)
		found(p->to, m.known ? FOUND_WARN : FOUND_FAIL, p->what,
		      "check that this machine is up and has that address, and that the switch "
		      "passes ARP and neighbour discovery (`barline doctor` there)",
		      "%u addresses do not answer ARP or neighbour discovery (one is %s)%s",
		      m.silent, m.first, m.known ? "" : ", and none does");
	else
		found(p->to, FOUND_OK, p->what, "", "an address, a route, %u neighbours known",
		      m.known);
}

/* The number of the bridge that a port is in; "" if it is in none. */
static void read_bridge(const struct place *p, char *number, size_t size, char *state,
			size_t state_size)
{
	char path[64];

	snprintf(path, sizeof(path), "class/net/%s/brport/bridge/ifindex", p->name);
	if (bl_read_line(p->sys, path, number, size))
		*number = '\0';
	snprintf(path, sizeof(path), "class/net/%s/brport/state", p->name);
	if (bl_read_line(p->sys, path, state, state_size))
		*state = '\0';
}

/* Reports on a port of an l2 switch. @first: the bridge of the ports before; "": none so far. */
static void check_bridged(const struct place *p, char *first, size_t size)
{
	short flags = flags_of(p);
	bool up = check_carrier(p, flags, FOUND_WARN);
	char bridge[16], state[8], cure[160];

	read_bridge(p, bridge, sizeof(bridge), state, sizeof(state));
	snprintf(cure, sizeof(cure), "`ip link set %s master BRIDGE`%s", p->name, SEE_DEPLOY);
	if (!*bridge) {
		found(p->to, flags & IFF_PROMISC ? FOUND_WARN : FOUND_FAIL, p->what, cure,
		      "the port is in no bridge: nothing passes ARP and neighbour discovery to the "
		      "host behind it%s",
		      flags & IFF_PROMISC ? "" : ", and its NIC may drop frames to other machines");
		return;
	}
	if (*first && strcmp(first, bridge) != 0)
		found(p->to, FOUND_FAIL, p->what, cure,
		      "the port is in another bridge than the ports before it: nothing passes ARP "
		      "and neighbour discovery between them");
	else if (up && strcmp(state, BRIDGE_FORWARDS) != 0)
		found(p->to, FOUND_FAIL, p->what,
		      "set the bridge up (`ip link set BRIDGE up`), and check that no spanning "
		      "tree blocks the port (`bridge link`)",
		      "the bridge of the port does not forward by it");
	else if (up)
		found(p->to, FOUND_OK, p->what, "", "its bridge forwards");
	if (!*first)
		snprintf(first, size, "%s", bridge);
}

/* Reports that a port does not forward packets of IPv4 or IPv6. Returns whether it does. */
static bool check_forwarding(const struct place *p, int version)
{
	char path[96], value[8], cure[120];

	snprintf(path, sizeof(path), "/proc/sys/net/ipv%d/conf/%s/forwarding", version, p->name);
	if (bl_read_line(AT_FDCWD, path, value, sizeof(value)) || strcmp(value, "0") != 0)
		return true;
	snprintf(cure, sizeof(cure), "`sysctl -w net.ipv%d.%s=1`%s", version,
		 version == 4 ? "ip_forward" : "conf.all.forwarding", SEE_DEPLOY);
	found(p->to, FOUND_FAIL, p->what, cure,
	      "the port does not forward IPv%d: frames that arrive here are dropped (no_route)",
	      version);
	return false;
}

static void check_routed(const struct place *p, bool host)
{
	struct names names = { 0 };
	bool v4, v6, good;
	struct met m;
	char path[64], line[16], cure[200];

	if (!check_carrier(p, flags_of(p), FOUND_WARN))
		return;
	add_name(&names, p->name);
	v4 = has_route_v4(&names);
	v6 = has_route_v6(&names);
	good = (!v4 || check_forwarding(p, 4)) & (!v6 || check_forwarding(p, 6));
	if (!host)
		return;
	/* The routes of a port in a VRF are in another table. */
	snprintf(path, sizeof(path), "class/net/%s/master/ifindex", p->name);
	if (!v4 && !v6 && bl_read_line(p->sys, path, line, sizeof(line))) {
		snprintf(cure, sizeof(cure), "`ip address add ADDRESS/LENGTH dev %s`, or a route%s",
			 p->name, SEE_DEPLOY);
		found(p->to, FOUND_FAIL, p->what, cure,
		      "no route leaves by the port: the host behind it is not reached (no_route)");
		return;
	}
	m = meet_all(p);
	snprintf(cure, sizeof(cure), "`ip neigh replace ADDRESS lladdr MAC nud permanent dev %s`%s",
		 p->name, SEE_DEPLOY);
	if (!m.known)
		found(p->to, FOUND_WARN, p->what, cure,
		      "no neighbour of the port is known: frames to the host behind it leave by "
		      "the "
		      "kernel, and that host refuses them (bypassed)");
	else if (good)
		found(p->to, FOUND_OK, p->what, "", "a route, %u neighbours known, forwards",
		      m.known);
}

/* Fills in the name of the interface. Returns false if there is nothing to be checked. */
static bool find_place(struct place *p, const struct bl_node_ref *ref)
{
	if (!if_indextoname(p->ifindex, p->name) || flags_of(p) & IFF_LOOPBACK)
		return false;
	snprintf(p->what, sizeof(p->what), "%.20s %.15s", ref->meta.name, p->name);
	return true;
}

/*
 * Sets @has[k] for each port k that the table of an l2 switch has an address for. Returns false if
 * the table cannot be read.
 */
static bool read_table(const struct bl_node_ref *ref, bool has[BL_SW_PORTS_MAX])
{
	struct bl_fdb_bucket b;
	struct bl_err err;
	int fd = bl_map_open(ref, BL_MAP_SW_FDB, sizeof(b), false, &err);
	uint32_t k, w;

	for (k = 0; fd >= 0 && k < BL_FDB_BUCKETS; k++)
		for (w = 0; w < BL_FDB_WAYS && !bpf_map_lookup_elem(fd, &k, &b); w++)
			if (b.way[w].mac && b.way[w].port < BL_SW_PORTS_MAX)
				has[b.way[w].port] = true;
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void report_no_entry(const struct place *p)
{
	char cure[160];

	snprintf(cure, sizeof(cure),
		 "add `- { mac: MAC, port: %s }` to fdb in the configuration of this switch, and "
		 "start it again%s",
		 p->name, SEE_DEPLOY);
	found(p->to, FOUND_FAIL, p->what, cure,
	      "the switch has no Ethernet address for the host behind the port (fdb): ordered "
	      "frames to it are dropped (no_route)");
}

static void check_ports(struct place *p, const struct bl_node_ref *ref)
{
	struct bl_sw_port port;
	struct bl_sw_cfg cfg;
	bool has[BL_SW_PORTS_MAX] = { false }, known;
	char first[16] = "";
	uint32_t k;

	if (node_value(ref, BL_MAP_SW_CFG, 0, &cfg, sizeof(cfg)))
		return;
	known = cfg.forward == BL_FWD_L2 && read_table(ref, has);
	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		if (node_value(ref, BL_MAP_SW_PORTS, k, &port, sizeof(port)) || !port.ifindex)
			continue;
		p->ifindex = port.ifindex;
		if (!find_place(p, ref))
			continue;
		if (cfg.forward == BL_FWD_L2)
			check_bridged(p, first, sizeof(first));
		else
			check_routed(p, port.role == BL_PORT_HOST);
		if (known && port.role == BL_PORT_HOST && !has[k])
			report_no_entry(p);
	}
}

void doctor_net(const struct finder *to, const struct bl_node_ref *ref)
{
	struct place p = { .to = to, .sys = -1 };
	char nic[IFNAMSIZ];

	if (ref->netns_ino != bl_netns_ino())
		return;
	p.sys = bl_sysfs_open();
	if (ref->role == BL_ROLE_HOST) {
		node_nic(ref, nic, sizeof(nic));
		p.ifindex = if_nametoindex(nic);
		if (p.ifindex && find_place(&p, ref))
			check_host(&p);
	} else {
		check_ports(&p, ref);
	}
	if (p.sys >= 0)
		close(p.sys);
}
