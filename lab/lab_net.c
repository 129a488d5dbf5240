/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The network of a lab: namespaces, links, addresses, routes and neighbours, as lab_plan.c planned
 * them. All entries are static, so nothing has to be learned and nothing times out.
 *
 * Rack over L2: the ports of the ToR are in a bridge, which carries everything that is not ordered,
 * and the hosts are one subnet. With admission, bl0 of each host is a second station in that subnet
 * and finds the others by ARP and ND, as applications' networks do.
 *
 * L3: hosts have a /32 and a default route to 10.77.250.T. The ToR has a host route for each port;
 * with a leaf-spine, one more route leads over all spines. With three tiers, spines go up over all
 * cores, and a core goes down to a ToR over the spines of its pod.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/nl.h"
#include "cli/util/out.h"
#include "lab/lab.h"
#include "lab/lab_addr.h"
#include "lab/pass.h"
#include "loader/admission/bl0.h"

/*
 * Gives the sysctl @path the value @text. Returns 0 or -errno.
 *
 * A value that is there already is not written: the kernel takes its lock for interfaces for many
 * of these, and while anybody else holds the lock, as for every namespace that goes away, the
 * writer spins. Beside five other racks, that was most of the time of both CPUs (2026-11,
 * Linux 6.18).
 */
static int set_sysctl(const char *path, const char *text)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), err = 0;
	char now[64];
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, now, sizeof(now) - 1);
	now[n > 0 ? n : 0] = '\0';
	now[strcspn(now, "\n")] = '\0';
	if (strcmp(now, text) && pwrite(fd, text, strlen(text), 0) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Sets the sysctls of the namespace of @n, in which this process is. */
static int set_sysctls(const struct lab *lab, const struct lab_node *n)
{
	const bool forward = lab->spec.l3 && !lab_station(n);
	const bool bl0 = lab->spec.admission.on && n->kind == LAB_HOST;
	const struct {
		const char *path, *value;
		bool forward_only, bl0_only;
	} all[] = {
		{ "/proc/sys/net/ipv6/conf/default/accept_ra", "0", false },
		/* as nl_no_link_local(), for bl0, which the daemon makes */
		{ "/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1", false, true },
		{ "/proc/sys/net/ipv6/conf/all/disable_ipv6", "0", false },
		{ "/proc/sys/net/ipv6/conf/default/disable_ipv6", "0", false },
		{ "/proc/sys/net/ipv4/conf/all/rp_filter", "0", false },
		{ "/proc/sys/net/ipv4/conf/default/rp_filter", "0", false },
		{ "/proc/sys/net/ipv4/ip_forward", "1", true },
		{ "/proc/sys/net/ipv6/conf/all/forwarding", "1", true },
		{ "/proc/sys/net/ipv6/conf/default/forwarding", "1", true },
		/* hash ports too, so that the flows of a rack use all spines */
		{ "/proc/sys/net/ipv4/fib_multipath_hash_policy", "1", true },
		{ "/proc/sys/net/ipv6/fib_multipath_hash_policy", "1", true },
		/* a switch whose link is down uses its other next hops */
		{ "/proc/sys/net/ipv4/conf/all/ignore_routes_with_linkdown", "1", true },
		{ "/proc/sys/net/ipv4/conf/default/ignore_routes_with_linkdown", "1", true },
		{ "/proc/sys/net/ipv6/conf/all/ignore_routes_with_linkdown", "1", true },
		{ "/proc/sys/net/ipv6/conf/default/ignore_routes_with_linkdown", "1", true },
		/* switches mark frames in long queues, so TCP must negotiate ECN */
		{ "/proc/sys/net/ipv4/tcp_ecn", "1", false, true },
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int err = (all[i].forward_only && !forward) || (all[i].bl0_only && !bl0)
				  ? 0
				  : set_sysctl(all[i].path, all[i].value);

		if (err && err != -ENOENT)
			return cli_fail("%s: %s", all[i].path, strerror(-err));
	}
	return 0;
}

static int enter_netns(int fd)
{
	return setns(fd, CLONE_NEWNET) ? cli_fail("cannot enter a network namespace of the lab: %s",
						  strerror(errno))
				       : 0;
}

static int make_netns(struct lab_node *n)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", LAB_NETNS_DIR, n->name);
	if (unshare(CLONE_NEWNET))
		return cli_fail("cannot make a network namespace: %s", strerror(errno));
	fd = open(path, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0444);
	if (fd >= 0)
		close(fd);
	if (mount("/proc/self/ns/net", path, NULL, MS_BIND, NULL))
		return cli_fail("%s: %s", path, strerror(errno));
	n->netns = open(path, O_RDONLY | O_CLOEXEC);
	return n->netns < 0 ? cli_fail("%s: %s", path, strerror(errno)) : 0;
}

static int make_node_links(struct lab *lab, struct lab_node *n, struct nl *nl)
{
	unsigned int i;
	int err;

	for (i = 0; i < n->nports; i++) {
		struct lab_port *p = &n->ports[i];
		struct lab_node *peer = &lab->nodes[p->peer_node];
		struct lab_port *q = &peer->ports[p->peer_port];
		struct nl_end a = { .name = p->ifname }, b = { .name = q->ifname };

		if (peer < n)
			continue; /* the link was made with the other node */
		memcpy(a.mac, p->mac, 6);
		memcpy(b.mac, q->mac, 6);
		err = nl_veth(nl, &a, &b, peer->netns, lab->spec.mtu);
		if (err)
			return cli_fail("link %s:%s - %s:%s: %s", n->name, p->ifname, peer->name,
					q->ifname, strerror(-err));
	}
	return 0;
}

/* adds the address, routes and neighbours of a host or arbiter; returns 0 or -errno */
static int add_host_routes(struct lab *lab, struct lab_node *n, struct nl *nl, int family)
{
	const struct lab_port *nic = &n->ports[0];
	const struct lab_node *tor = &lab->nodes[nic->peer_node];
	uint8_t a[16], gw[16];
	struct nl_hop hop = { .ifindex = nic->ifindex, .via = gw };
	bool one_net = !lab->spec.l3;
	unsigned int i;
	int err;

	lab_host_addr(n, family, a);
	err = nl_addr(nl, nic->ifindex, family, a,
		      one_net ? (family == AF_INET ? 24 : 64) : (family == AF_INET ? 32 : 128));
	if (!one_net) {
		lab_make_addr(family, gw, LAB_GATEWAY_NET, n->tor);
		if (!err)
			err = nl_neigh(nl, nic->ifindex, family, gw,
				       tor->ports[nic->peer_port].mac);
		return err ? err : nl_route(nl, family, NULL, 0, &hop, 1);
	}
	for (i = 0; !err && i < lab->nnodes; i++) {
		if (!lab_station(&lab->nodes[i]) || &lab->nodes[i] == n)
			continue;
		lab_host_addr(&lab->nodes[i], family, a);
		err = nl_neigh(nl, nic->ifindex, family, a, lab->nodes[i].ports[0].mac);
	}
	return err;
}

/* the network of all bl0 behind ToR @tor; of all ToRs if @tor is 0 */
static void make_bl0_net(int family, uint8_t a[16], unsigned int tor)
{
	const struct lab_node n = { .tor = tor };

	lab_bl0_addr(&n, family, a);
}

/*
 * Adds the neighbour entry and the host route of a station directly behind a port. Next hops need
 * such a route too: IPv6 refuses a next hop that is covered by a shorter route over another port
 * ("invalid gateway or device mismatch"), and after a link came back, the route over all spines
 * covers it.
 */
static int route_station(struct nl *nl, int family, unsigned int ifindex, const uint8_t *addr,
			 const uint8_t mac[6])
{
	const struct nl_hop direct = { .ifindex = ifindex };
	int err = nl_neigh(nl, ifindex, family, addr, mac);

	return err ? err : nl_route(nl, family, addr, family == AF_INET ? 32 : 128, &direct, 1);
}

/* adds the route to bl0, which is a second station behind its host's port */
static int route_bl0(struct nl *nl, int family, unsigned int ifindex, const struct lab_node *host)
{
	uint8_t a[16], mac[6];

	lab_bl0_addr(host, family, a);
	bl_bl0_mac(host->ports[0].mac, mac);
	return route_station(nl, family, ifindex, a, mac);
}

/* the network that a switch's own address is in */
static unsigned int switch_net(const struct lab_node *n)
{
	return n->kind == LAB_TOR     ? LAB_GATEWAY_NET
	       : n->kind == LAB_SPINE ? LAB_SPINE_NET
				      : LAB_CORE_NET;
}

/* adds the routes of a core: to each ToR over the spines of its pod */
static int add_core_routes(const struct lab *lab, const struct lab_node *n, struct nl *nl,
			   int family)
{
	const struct lab_spec *s = &lab->spec;
	uint8_t a[16], via[LAB_SPINES_MAX][16];
	struct nl_hop hops[LAB_SPINES_MAX];
	unsigned int i, t, nhops;
	int err = 0;

	for (i = 0; !err && i < n->nports; i++) {
		const struct lab_port *p = &n->ports[i];
		const struct lab_node *peer = &lab->nodes[p->peer_node];

		lab_make_addr(family, a, LAB_SPINE_NET, peer->index);
		err = route_station(nl, family, p->ifindex, a, peer->ports[p->peer_port].mac);
	}
	for (t = 1; !err && t <= s->tors; t++) {
		for (i = nhops = 0; i < n->nports; i++) {
			const struct lab_node *peer = &lab->nodes[n->ports[i].peer_node];

			if (lab_pod(s, peer->index, s->spines) != lab_pod(s, t, s->tors))
				continue;
			lab_make_addr(family, via[nhops], LAB_SPINE_NET, peer->index);
			hops[nhops] = (struct nl_hop){ .ifindex = n->ports[i].ifindex,
						       .via = via[nhops] };
			nhops++;
		}
		lab_make_addr(family, a, t, 0);
		err = nl_route(nl, family, a, family == AF_INET ? 24 : 32, hops, nhops);
	}
	return err;
}

static int add_switch_routes(struct lab *lab, struct lab_node *n, struct nl *nl, int family)
{
	uint8_t a[16], via[LAB_SPINES_MAX][16];
	struct nl_hop hops[LAB_SPINES_MAX];
	uint8_t full = family == AF_INET ? 32 : 128;
	unsigned int i, nhops = 0;
	int err;

	lab_make_addr(family, a, switch_net(n), n->index);
	err = nl_addr(nl, if_nametoindex("lo"), family, a, full);
	if (n->kind == LAB_CORE)
		return err ? err : add_core_routes(lab, n, nl, family);
	for (i = 0; !err && i < n->nports; i++) {
		const struct lab_port *p = &n->ports[i];
		const struct lab_node *peer = &lab->nodes[p->peer_node];
		const uint8_t *peer_mac = peer->ports[p->peer_port].mac;

		if (lab_station(peer)) {
			lab_host_addr(peer, family, a);
			err = route_station(nl, family, p->ifindex, a, peer_mac);
			if (!err && lab->spec.admission.on && peer->kind == LAB_HOST)
				err = route_bl0(nl, family, p->ifindex, peer);
			continue;
		}
		hops[nhops] = (struct nl_hop){ .ifindex = p->ifindex, .via = via[nhops] };
		lab_make_addr(family, via[nhops], switch_net(peer), peer->index);
		err = route_station(nl, family, p->ifindex, via[nhops], peer_mac);
		if (!err && peer->kind == LAB_TOR) {
			lab_make_addr(family, a, peer->index, 0);
			err = nl_route(nl, family, a, family == AF_INET ? 24 : 32, &hops[nhops], 1);
			make_bl0_net(family, a, peer->index);
			if (!err && lab->spec.admission.on)
				err = nl_route(nl, family, a, family == AF_INET ? 24 : 112,
					       &hops[nhops], 1);
		} else if (!err) {
			nhops++;
		}
	}
	if (!err && nhops) {
		lab_make_addr(family, a, 0, 0);
		err = nl_route(nl, family, a, 16, hops, nhops);
		make_bl0_net(family, a, 0);
		if (!err && lab->spec.admission.on)
			err = nl_route(nl, family, a, family == AF_INET ? 16 : 32, hops, nhops);
	}
	return err;
}

/*
 * Replaces the routes of ToR @n to ToR @tor by routes over all spines but @spine. Runs in the
 * namespace of @n. Returns 0 or -errno.
 */
static int withdraw_routes(const struct lab *lab, const struct lab_node *n, unsigned int tor,
			   unsigned int spine)
{
	static const int families[] = { AF_INET, AF_INET6 };
	uint8_t a[16], via[LAB_SPINES_MAX][16];
	struct nl_hop hops[LAB_SPINES_MAX];
	unsigned int i, f, nhops;
	struct nl nl;
	int err = nl_open(&nl);

	if (err)
		return err;
	for (f = 0; !err && f < 2; f++) {
		for (nhops = 0, i = 0; i < n->nports; i++) {
			const struct lab_node *peer = &lab->nodes[n->ports[i].peer_node];

			if (peer->kind != LAB_SPINE || peer->index == spine)
				continue;
			lab_make_addr(families[f], via[nhops], LAB_SPINE_NET, peer->index);
			hops[nhops] =
				(struct nl_hop){ .ifindex = if_nametoindex(n->ports[i].ifname),
						 .via = via[nhops] };
			nhops++;
		}
		lab_make_addr(families[f], a, tor, 0);
		if (nhops)
			err = nl_route(&nl, families[f], a, families[f] == AF_INET ? 24 : 32, hops,
				       nhops);
	}
	nl_close(&nl);
	return err;
}

int lab_node_enter(const char *name)
{
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), LAB_NETNS_DIR "/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	err = fd < 0 || setns(fd, CLONE_NEWNET) ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return err;
}

int lab_host_enter(unsigned int host)
{
	char name[16];

	snprintf(name, sizeof(name), "h%u", host + 1);
	return lab_node_enter(name);
}

int lab_withdraw(const struct lab *lab, unsigned int tor, unsigned int spine)
{
	unsigned int i;
	int st;

	for (i = 0; i < lab->nnodes; i++) {
		const struct lab_node *n = &lab->nodes[i];
		pid_t pid;

		if (n->kind != LAB_TOR || n->index == tor)
			continue;
		fflush(NULL);
		pid = fork(); /* so that this process stays in its namespace */
		if (pid < 0)
			return cli_fail("cannot fork: %s", strerror(errno));
		if (!pid) {
			_exit(lab_node_enter(n->name) || withdraw_routes(lab, n, tor, spine));
		}
		if (waitpid(pid, &st, 0) != pid || st)
			return cli_fail("cannot change the routes of %s", n->name);
	}
	return 0;
}

static int bridge_ports(struct lab_node *n, struct nl *nl)
{
	unsigned int i, br;
	int err = nl_bridge(nl, "br0");

	br = err ? 0 : if_nametoindex("br0");
	if (!err)
		err = nl_no_link_local(nl, br);
	for (i = 0; !err && i < n->nports; i++)
		err = nl_master(nl, n->ports[i].ifindex, br);
	return err ? err : nl_up(nl, br);
}

static int add_node_routes(struct lab *lab, struct lab_node *n, struct nl *nl, int family)
{
	return lab_station(n) ? add_host_routes(lab, n, nl, family)
	       : lab->spec.l3 ? add_switch_routes(lab, n, nl, family)
			      : 0;
}

int lab_routes(struct lab *lab, struct lab_node *n)
{
	struct nl nl;
	int err = nl_open(&nl);

	if (err)
		return cli_fail("%s: no netlink socket: %s", n->name, strerror(-err));
	err = add_node_routes(lab, n, &nl, AF_INET);
	if (!err)
		err = add_node_routes(lab, n, &nl, AF_INET6);
	nl_close(&nl);
	return err ? cli_fail("cannot give %s its routes: %s", n->name, strerror(-err)) : 0;
}

static int configure_node(struct lab *lab, struct lab_node *n)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct nl nl;
	unsigned int i, f;
	int err;

	if (enter_netns(n->netns))
		return 1;
	err = nl_open(&nl);
	if (!err)
		err = nl_up(&nl, if_nametoindex("lo"));
	for (i = 0; !err && i < n->nports; i++) {
		n->ports[i].ifindex = if_nametoindex(n->ports[i].ifname);
		err = nl_plain(n->ports[i].ifname);
		/* without link-local addresses an idle rack sends nothing */
		if (!err)
			err = nl_no_link_local(&nl, n->ports[i].ifindex);
		if (!err)
			err = nl_up(&nl, n->ports[i].ifindex);
		if (!err && (lab->spec.bare || n->kind == LAB_ARBITER))
			err = pass_attach(n->ports[i].ifindex);
	}
	if (!err && !lab_station(n) && !lab->spec.l3)
		err = bridge_ports(n, &nl);
	for (f = 0; !err && f < 2; f++)
		err = add_node_routes(lab, n, &nl, families[f]);
	nl_close(&nl);
	return err ? cli_fail("cannot configure %s: %s", n->name, strerror(-err)) : 0;
}

int lab_build(struct lab *lab)
{
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	unsigned int i;
	struct nl nl;
	int err = 0;

	if (home < 0 || (mkdir(LAB_NETNS_DIR, 0755) && errno != EEXIST))
		return cli_fail("%s: %s", LAB_NETNS_DIR, strerror(errno));
	for (i = 0; !err && i < lab->nnodes; i++) {
		err = make_netns(&lab->nodes[i]);
		if (!err)
			err = set_sysctls(lab, &lab->nodes[i]);
	}
	for (i = 0; !err && i < lab->nnodes; i++) {
		err = enter_netns(lab->nodes[i].netns);
		if (!err && nl_open(&nl))
			err = cli_fail("cannot open a netlink socket: %s", strerror(errno));
		if (!err) {
			err = make_node_links(lab, &lab->nodes[i], &nl);
			nl_close(&nl);
		}
	}
	for (i = 0; !err && i < lab->nnodes; i++) {
		out_progress("raising the lab: %s", lab->nodes[i].name);
		err = configure_node(lab, &lab->nodes[i]);
	}
	if (enter_netns(home))
		err = 1;
	close(home);
	return err;
}

static int address_bl0_bridged(const struct lab_node *n, struct nl *nl, int family)
{
	uint8_t a[16];

	lab_bl0_addr(n, family, a);
	return nl_addr(nl, if_nametoindex("bl0"), family, a, family == AF_INET ? 16 : 64);
}

/* bl0 with a default route for the network of all bl0, over the ToR */
static int address_bl0_routed(const struct lab *lab, const struct lab_node *n, struct nl *nl,
			      int family)
{
	const struct lab_node *tor = &lab->nodes[n->ports[0].peer_node];
	unsigned int bl0 = if_nametoindex("bl0");
	uint8_t a[16], net[16], gw[16];
	struct nl_hop hop = { .ifindex = bl0, .via = gw };
	int err;

	lab_bl0_addr(n, family, a);
	err = nl_addr(nl, bl0, family, a, family == AF_INET ? 32 : 128);
	lab_make_addr(family, gw, LAB_BL0_GATEWAY_NET, n->tor);
	if (!err)
		err = nl_neigh(nl, bl0, family, gw, tor->ports[n->ports[0].peer_port].mac);
	make_bl0_net(family, net, 0);
	return err ? err : nl_route(nl, family, net, family == AF_INET ? 16 : 32, &hop, 1);
}

int lab_bl0(const struct lab *lab, const struct lab_node *n)
{
	static const int families[] = { AF_INET, AF_INET6 };
	unsigned int f;
	int home, err;
	struct nl nl;

	if (!lab->spec.admission.on || n->kind != LAB_HOST)
		return 0;
	home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (home < 0 || enter_netns(n->netns))
		return 1;
	err = nl_open(&nl);
	for (f = 0; !err && f < 2; f++)
		err = lab->spec.l3 ? address_bl0_routed(lab, n, &nl, families[f])
				   : address_bl0_bridged(n, &nl, families[f]);
	nl_close(&nl);
	if (enter_netns(home))
		return 1;
	close(home);
	return err ? cli_fail("cannot give bl0 of %s its addresses: %s", n->name, strerror(-err))
		   : 0;
}
