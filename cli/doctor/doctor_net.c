// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The doctor's look at the network around a node: whether what it sends can arrive at all. Its
 * links may be live, and its clock valid, while no message passes because a host has no address,
 * or because the kernel of a switch does not forward ARP requests.
 *
 * A host needs carrier, an address and a route. An l2 switch needs all its ports in one bridge, and
 * the Ethernet address of each host in its table (fdb); an l3 switch needs forwarding, and a route
 * and a neighbour for each host. Routes count in whatever table they are, as in that of a VRF; the
 * rules that choose a table are not looked at.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/iface.h"
#include "base/ip.h"
#include "base/netns.h"
#include "base/nl_dump.h"
#include "base/nl_neigh.h"
#include "base/proc.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "loader/load/lower.h"
#include "loader/load/attach.h"
#include "loader/load/chain.h"
#include "loader/load/pin.h"
#include "loader/load/sysfs.h"
#include "maps/hold_abi.h"
#include "maps/host_abi.h"

#define BRIDGE_FORWARDS "3" /* BR_STATE_FORWARDING */
#define SEE_DEPLOY      "; docs/deploy.md has the steps"

/** struct names - interfaces by which the traffic of one NIC may go. */
struct names {
	char (*v)[IFNAMSIZ]; /* the NIC, perhaps bl0, then what is stacked on the NIC */
	unsigned int n, own; /* @own: the first of them, which are the NIC and bl0 */
	unsigned int room;
};

/** struct met - the neighbours of one NIC. */
struct met {
	unsigned int known, silent;
	char first[INET6_ADDRSTRLEN]; /* that did not answer */
};

/** struct way - one interface by which packets may leave, and what lies there. */
struct way {
	unsigned int ifindex; /* 0: it is gone */
	bool v4, v6;          /* a route of that version leaves by it */
	struct met met;
};

/** struct place - one interface of a node. */
struct place {
	const struct finder *to;
	char what[40], name[IFNAMSIZ];
	unsigned int ifindex;
	short flags;      /* of enum net_device_flags */
	unsigned int mtu; /* 0: unknown */
	int sys;          /* sysfs of this network namespace */
	int sock;         /* any socket of it */
};

/* Without memory a name is left out. */
static void add_name(struct names *to, const char *name)
{
	unsigned int room = to->room ? 2 * to->room : 8;
	void *v = to->n < to->room ? to->v : reallocarray(to->v, room, sizeof(*to->v));

	if (!v)
		return;
	if (to->n == to->room)
		to->room = room;
	to->v = v;
	snprintf(to->v[to->n++], IFNAMSIZ, "%s", name);
}

static void add_above(const struct nl_link *up, void *ctx)
{
	add_name(ctx, up->name);
}

/* The name of bl0, whose other end the programs know; "" without admission. */
static void find_bl0(const struct place *p, const struct bl_node_ref *ref, char name[IFNAMSIZ])
{
	struct bl_hold_cfg c;
	char end[IFNAMSIZ], path[64], line[16];

	*name = '\0';
	if (node_value(ref, BL_MAP_HOLD_CFG, 0, &c, sizeof(c)) || !c.app_ifindex ||
	    !if_indextoname(c.app_ifindex, end))
		return;
	snprintf(path, sizeof(path), "class/net/%s/iflink", end);
	if (bl_read_line(p->sys, path, line, sizeof(line)) ||
	    !if_indextoname((unsigned int)atoi(line), name))
		*name = '\0';
}

/* The NIC, bl0, and what endpoints may send by on top of the NIC. */
static void find_names(const struct place *p, const char *bl0, struct names *to)
{
	add_name(to, p->name);
	if (*bl0)
		add_name(to, bl0);
	to->own = to->n;
	bl_lower_above((int)p->ifindex, add_above, to);
}

/** struct ways - some interfaces, each of which is in the list once. */
struct ways {
	struct way *v;
	unsigned int n;
};

static struct way *way_of(const struct ways *w, unsigned int ifindex)
{
	unsigned int k;

	for (k = 0; ifindex && k < w->n; k++)
		if (w->v[k].ifindex == ifindex)
			return &w->v[k];
	return NULL;
}

static void note_route(const struct ways *w, unsigned int ifindex, uint8_t family)
{
	struct way *way = way_of(w, ifindex);

	if (!way)
		return;
	way->v4 |= family == AF_INET;
	way->v6 |= family == AF_INET6;
}

/* Routes to IPv6 link-local and multicast addresses are there on each interface that is up. */
static bool is_local_route(const struct rtmsg *m, const uint8_t *dst)
{
	return m->rtm_family == AF_INET6 && dst &&
	       ((dst[0] == 0xfe && (dst[1] & 0xc0) == 0x80) || dst[0] == 0xff);
}

static void look_at_route(struct nlmsghdr *h, void *ctx)
{
	const struct rtmsg *m = NLMSG_DATA(h);
	const struct rtattr *dst =
		nl_attr(h, sizeof(*m), RTA_DST, m->rtm_family == AF_INET ? 4 : 16);
	const struct rtattr *hops = nl_attr(h, sizeof(*m), RTA_MULTIPATH, 0);
	uint32_t oif = nl_attr_u32(h, sizeof(*m), RTA_OIF, 0);
	struct ways *w = ctx;
	struct rtnexthop *hop;
	int len;

	if (m->rtm_type != RTN_UNICAST || m->rtm_flags & RTM_F_CLONED ||
	    m->rtm_table == RT_TABLE_LOCAL || is_local_route(m, dst ? RTA_DATA(dst) : NULL))
		return;
	note_route(w, oif, m->rtm_family);
	if (!hops)
		return;
	len = (int)RTA_PAYLOAD(hops);
	for (hop = RTA_DATA(hops); RTNH_OK(hop, len); hop = RTNH_NEXT(hop)) {
		note_route(w, (unsigned int)hop->rtnh_ifindex, m->rtm_family);
		len -= RTNH_ALIGN(hop->rtnh_len);
	}
}

static void meet(const struct nl_neighbour *n, void *ctx)
{
	struct way *way = way_of(ctx, (unsigned int)n->ifindex);

	if (!way)
		return;
	if (n->known)
		way->met.known++;
	else if (!way->met.silent++)
		addr_text(n->ip, way->met.first, sizeof(way->met.first));
}

/*
 * Finds the routes and neighbours of all of @w. Of both there may be many, so that they are listed
 * once for all interfaces.
 */
static void find_ways(struct ways *w)
{
	static const uint8_t families[] = { AF_INET, AF_INET6 };
	struct nl nl;
	size_t k;

	for (k = 0; w->n && k < sizeof(families); k++) {
		if (nl_open(&nl))
			return;
		nl_dump(&nl, RTM_GETROUTE, families[k], RTM_NEWROUTE, sizeof(struct rtmsg),
			look_at_route, w);
		nl_close(&nl);
	}
	if (!w->n || nl_open(&nl))
		return;
	nl_neigh_each(&nl, 0, meet, w);
	nl_close(&nl);
}

/*
 * Reports that the link is down. Returns whether it is up. A switch only warns of a missing
 * carrier, because a machine behind it may be switched off on purpose.
 */
static bool check_carrier(const struct place *p, enum finding_level level)
{
	short flags = p->flags;
	char cure[80];

	snprintf(cure, sizeof(cure), "`ip link set %s up`", p->name);
	if (!(flags & IFF_UP))
		found_as(p->to, CHECK_LINK, "down", FOUND_FAIL, p->what, cure,
			 "the interface is down: nothing passes");
	else if (!(flags & IFF_RUNNING))
		found_as(p->to, CHECK_LINK, "no_carrier", level, p->what,
			 "check the cable, and that the interface at its other end is up",
			 "the interface has no carrier: nothing passes");
	return flags & IFF_UP && flags & IFF_RUNNING;
}

/* An MTU that was raised behind the back of the programs, which a start would have refused. */
static void check_mtu(const struct place *p, const struct bl_hook *hook)
{
	unsigned int most = bl_xdp_mtu_max(hook->frags != BL_HOOK_FRAGS_NONE);
	char cure[80];

	if (p->mtu <= most)
		return;
	snprintf(cure, sizeof(cure), "`ip link set %s mtu %u`", p->name, most);
	found_as(p->to, CHECK_LINK, "mtu", FOUND_WARN, p->what, cure,
		 "MTU %u is above the limit %u of barline's programs: frames above it are dropped",
		 p->mtu, most);
}

/* Whether packets are dropped that arrive by @name though the route to their source leaves by bl0.
 */
static bool is_strict(const char *name)
{
	char path[96], line[8];
	int all = 0, own = 0;

	if (!bl_read_line(AT_FDCWD, "/proc/sys/net/ipv4/conf/all/rp_filter", line, sizeof(line)))
		all = atoi(line);
	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/rp_filter", name);
	if (!bl_read_line(AT_FDCWD, path, line, sizeof(line)))
		own = atoi(line);
	return (all > own ? all : own) == 1; /* the kernel takes the greater one; 2 is loose */
}

static void check_rp_filter(const struct place *p, const char *bl0)
{
	char cure[120];

	snprintf(cure, sizeof(cure), "`sysctl -w net/ipv4/conf/%s/rp_filter=2`", p->name);
	if (*bl0 && is_strict(p->name))
		found_as(p->to, CHECK_ADDRESS, "rp_filter", FOUND_FAIL, p->what, cure,
			 "strict rp_filter drops what arrives by the NIC for %s, which has the "
			 "route",
			 bl0);
}

/*
 * Reports that endpoints get no address. Returns whether they get one. @with: number of the first
 * interface that has one
 */
static bool check_address(const struct place *p, const struct names *names, unsigned int *with)
{
	struct bl_iface nic;
	struct bl_err err;
	uint8_t addr[16];
	char cure[160];
	unsigned int k;

	for (k = 0; k < names->n && bl_iface_addr(names->v[k], 0, addr, NULL); k++)
		;
	*with = k;
	if (k == names->n) {
		snprintf(cure, sizeof(cure), "`ip address add ADDRESS/LENGTH dev %s`%s", p->name,
			 SEE_DEPLOY);
		found_as(p->to, CHECK_ADDRESS, "no_address", FOUND_FAIL, p->what, cure,
			 "the interface has no IP address that other machines can use: nothing is "
			 "sent or received");
		return false;
	}
	if (k >= names->own && !bl_iface_get(&nic, p->name, NULL) &&
	    bl_lower_addr(&nic, 0, addr, &nic.mtu, &err) == -ENOTUNIQ) {
		found_as(p->to, CHECK_ADDRESS, "no_address", FOUND_FAIL, p->what,
			 "do what the sentence says", "processes get no address: %s", err.text);
		return false;
	}
	return true;
}

/* Whether a route leaves by one of @names. @m: gets the neighbours on the first @n of them. */
static bool look_around(const struct names *names, unsigned int n, struct met *m)
{
	struct ways w = { .v = calloc(names->n + 1, sizeof(*w.v)) };
	bool route = false;
	unsigned int k;

	*m = (struct met){ 0 };
	for (k = 0; w.v && k < names->n; k++)
		w.v[w.n++].ifindex = if_nametoindex(names->v[k]);
	find_ways(&w);
	for (k = 0; k < w.n; k++) {
		const struct met *here = &w.v[k].met;

		route |= w.v[k].v4 || w.v[k].v6;
		if (k >= n)
			continue;
		if (!m->silent)
			memcpy(m->first, here->first, sizeof(m->first));
		m->known += here->known;
		m->silent += here->silent;
	}
	free(w.v);
	return route;
}

static void check_host(const struct place *p, const char *bl0, const struct names *names)
{
	struct met m;
	char cure[160];
	unsigned int with;

	if (!check_carrier(p, FOUND_FAIL))
		return;
	check_rp_filter(p, bl0);
	if (!check_address(p, names, &with))
		return;
	/* What is stacked on a NIC that has an address of its own is for something else. */
	if (!look_around(names, with < names->own ? names->own : names->n, &m)) {
		snprintf(cure, sizeof(cure), "`ip route add NETWORK via ROUTER dev %s`%s", p->name,
			 SEE_DEPLOY);
		found_as(p->to, CHECK_ADDRESS, "no_route", FOUND_FAIL, p->what, cure,
			 "no route leaves by the interface: no other machine is reached");
		return;
	}
	if (m.silent)
		found_as(p->to, CHECK_ADDRESS, "no_arp", FOUND_WARN,
			 p->what, /* they may be switched off on purpose */
			 "check that this machine is up and has that address, and that the switch "
			 "passes ARP and neighbour discovery (`barline doctor` there)",
			 "%u addresses do not answer ARP or neighbour discovery (one is %s)%s",
			 m.silent, m.first, m.known ? "" : ", and none does");
	else
		found_as(p->to, CHECK_ADDRESS, "ok", FOUND_OK, p->what, "",
			 "an address, a route, %u neighbours known", m.known);
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
	bool up = check_carrier(p, FOUND_WARN);
	char bridge[16], state[8], cure[160];

	read_bridge(p, bridge, sizeof(bridge), state, sizeof(state));
	snprintf(cure, sizeof(cure), "`ip link set %s master BRIDGE`%s", p->name, SEE_DEPLOY);
	if (!*bridge) {
		found_as(p->to, CHECK_ADDRESS, "no_bridge",
			 p->flags & IFF_PROMISC ? FOUND_WARN : FOUND_FAIL, p->what, cure,
			 "the port is in no bridge: nothing passes ARP and neighbour discovery to "
			 "the "
			 "host behind it%s",
			 p->flags & IFF_PROMISC ? ""
						: ", and its NIC may drop frames to other "
						  "machines");
		return;
	}
	if (*first && strcmp(first, bridge) != 0)
		found_as(p->to, CHECK_ADDRESS, "other_bridge", FOUND_FAIL, p->what, cure,
			 "the port is in another bridge than the ports before it: nothing passes "
			 "ARP "
			 "and neighbour discovery between them");
	else if (up && strcmp(state, BRIDGE_FORWARDS) != 0)
		found_as(p->to, CHECK_ADDRESS, "bridge_blocks", FOUND_FAIL, p->what,
			 "set the bridge up (`ip link set BRIDGE up`), and check that no spanning "
			 "tree blocks the port (`bridge link`)",
			 "the bridge of the port does not forward by it");
	else if (up)
		found_as(p->to, CHECK_ADDRESS, "ok", FOUND_OK, p->what, "", "its bridge forwards");
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
	found_as(p->to, CHECK_ADDRESS, "no_forwarding", FOUND_FAIL, p->what, cure,
		 "the port does not forward IPv%d: frames that arrive here are dropped (no_route)",
		 version);
	return false;
}

static void check_routed(const struct place *p, const struct way *w, bool host)
{
	char cure[200];
	bool good;

	if (!check_carrier(p, FOUND_WARN))
		return;
	good = (!w->v4 || check_forwarding(p, 4)) & (!w->v6 || check_forwarding(p, 6));
	if (!host)
		return;
	if (!w->v4 && !w->v6) {
		snprintf(cure, sizeof(cure), "`ip address add ADDRESS/LENGTH dev %s`, or a route%s",
			 p->name, SEE_DEPLOY);
		found_as(p->to, CHECK_ADDRESS, "no_route", FOUND_FAIL, p->what, cure,
			 "no route leaves by the port: the host behind it is not reached "
			 "(no_route)");
		return;
	}
	snprintf(cure, sizeof(cure), "`ip neigh replace ADDRESS lladdr MAC nud permanent dev %s`%s",
		 p->name, SEE_DEPLOY);
	if (!w->met.known)
		found_as(p->to, CHECK_ADDRESS, "no_arp", FOUND_WARN, p->what, cure,
			 "no neighbour of the port is known: frames to the host behind it wait in "
			 "the "
			 "kernel until it has resolved the address (to_kernel), and their "
			 "messages may be late and lost");
	else if (good)
		found_as(p->to, CHECK_ADDRESS, "ok", FOUND_OK, p->what, "",
			 "a route, %u neighbours known, forwards", w->met.known);
}

/* Fills in name, flags and MTU of the interface. Returns false if there is nothing to be checked.
 */
static bool find_place(struct place *p, const struct bl_node_ref *ref)
{
	struct ifreq r = { .ifr_ifindex = (int)p->ifindex };

	if (p->sock < 0 || ioctl(p->sock, SIOCGIFNAME, &r))
		return false;
	snprintf(p->name, sizeof(p->name), "%.15s", r.ifr_name);
	p->flags = ioctl(p->sock, SIOCGIFFLAGS, &r) ? 0 : r.ifr_flags;
	if (p->flags & IFF_LOOPBACK)
		return false;
	p->mtu = ioctl(p->sock, SIOCGIFMTU, &r) ? 0 : (unsigned int)r.ifr_mtu;
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
	found_as(p->to, CHECK_ADDRESS, "no_fdb", FOUND_FAIL, p->what, cure,
		 "the switch has no Ethernet address for the host behind the port (fdb): ordered "
		 "frames to it are dropped (no_route)");
}

/* What is read of a switch before its ports are looked at, each map at once. */
struct ports {
	struct bl_sw_port port[BL_SW_PORTS_MAX];
	struct bl_hook hook[BL_SW_PORTS_MAX];
	struct way way[BL_SW_PORTS_MAX]; /* of each port; of l3 switches only */
	bool has[BL_SW_PORTS_MAX];       /* as read_table() */
};

static void check_ports_of(struct place *p, const struct bl_node_ref *ref, struct ports *s)
{
	struct ways ways = { .v = s->way, .n = BL_SW_PORTS_MAX };
	struct bl_sw_cfg cfg;
	struct bl_err err;
	char first[16] = "";
	bool known, l2;
	uint32_t k;

	if (node_value(ref, BL_MAP_SW_CFG, 0, &cfg, sizeof(cfg)) ||
	    bl_map_read_all(ref, BL_MAP_SW_PORTS, sizeof(s->port[0]), BL_SW_PORTS_MAX, s->port,
			    &err))
		return;
	if (bl_map_read_all(ref, BL_MAP_HOOKS, sizeof(s->hook[0]), BL_SW_PORTS_MAX, s->hook, NULL))
		memset(s->hook, 0, sizeof(s->hook));
	l2 = cfg.forward == BL_FWD_L2;
	known = l2 && read_table(ref, s->has);
	for (k = 0; !l2 && k < BL_SW_PORTS_MAX; k++)
		s->way[k].ifindex = s->port[k].ifindex;
	if (!l2)
		find_ways(&ways);
	for (k = 0; k < BL_SW_PORTS_MAX; k++) {
		bool host = s->port[k].role == BL_PORT_HOST;

		if (!s->port[k].ifindex)
			continue;
		p->ifindex = s->port[k].ifindex;
		if (!find_place(p, ref))
			continue;
		check_mtu(p, &s->hook[k]);
		if (l2)
			check_bridged(p, first, sizeof(first));
		else
			check_routed(p, &s->way[k], host);
		if (known && host && !s->has[k])
			report_no_entry(p);
	}
}

static void check_ports(struct place *p, const struct bl_node_ref *ref)
{
	struct ports *s = calloc(1, sizeof(*s));

	if (s)
		check_ports_of(p, ref, s);
	else
		cli_fail("out of memory");
	free(s);
}

/* Endpoints keep the address that the host had when they began. */
static void check_endpoints(const struct place *p, const struct bl_node_ref *ref)
{
	struct bl_ep_slot *s = calloc(BL_PORT_COUNT, sizeof(*s));
	bool known = s && !bl_map_read_all(ref, BL_MAP_EPS, sizeof(*s), BL_PORT_COUNT, s, NULL);
	char text[INET6_ADDRSTRLEN];
	uint32_t i;

	for (i = 0; known && i < BL_PORT_COUNT; i++) {
		if (!s[i].active || bl_iface_addr_here(s[i].addr))
			continue;
		found_as(p->to, CHECK_ADDRESS, "stray", FOUND_WARN, p->what,
			 "give the host its address back, or restart the process",
			 "endpoint %u (pid %u) has the address %s, which the host has no more: "
			 "nobody reaches it",
			 s[i].port, s[i].pid, bl_ip_text(s[i].addr, text));
	}
	free(s);
}

static void check_nic(struct place *p, const struct bl_node_ref *ref)
{
	struct names names = { 0 };
	struct bl_hook hook = { 0 };
	char nic[IFNAMSIZ], bl0[IFNAMSIZ];

	node_nic(ref, nic, sizeof(nic));
	p->ifindex = if_nametoindex(nic);
	if (!p->ifindex || !find_place(p, ref))
		return;
	find_bl0(p, ref, bl0);
	find_names(p, bl0, &names);
	check_host(p, bl0, &names);
	check_endpoints(p, ref);
	bl_hook_read(ref->dir, 0, &hook);
	check_mtu(p, &hook);
	doctor_firewall(p->to, ref, p->what, (const char(*)[IFNAMSIZ])names.v, names.n);
	free(names.v);
}

void doctor_ports(const struct finder *to, const struct bl_node_ref *ref)
{
	struct bl_node_ports ports;

	bl_node_ports(ref, &ports);
	if (ports.gone)
		found_as(to, CHECK_LINK, "gone", FOUND_FAIL, ref->meta.name,
			 "create it again with that name; the daemon attaches to it",
			 "%u of its %u interfaces are gone: %s%s", ports.gone, ports.all,
			 ports.first, ports.gone > 1 ? " and others" : "");
}

void doctor_net(const struct finder *to, const struct bl_node_ref *ref)
{
	struct place p = { .to = to, .sys = -1, .sock = -1 };

	if (ref->netns_ino != bl_netns_ino())
		return;
	p.sys = bl_sysfs_open();
	p.sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (ref->role == BL_ROLE_HOST)
		check_nic(&p, ref);
	else
		check_ports(&p, ref);
	if (p.sys >= 0)
		close(p.sys);
	if (p.sock >= 0)
		close(p.sock);
}
