/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The network of a lab: who is linked to whom, addresses, routes, neighbours. All of it is static,
 * so nothing has to be learned or timed out.
 *
 * Hosts are h1, h2, ...; ToR switches s1, ...; spines p1, ...; cores c1, ... Host i of ToR t
 * is 10.77.t.i and fd77:t::i on eth0. rack over L2: the ToR's ports are in a bridge (which carries
 * all that is not ordered), hosts are one subnet. With admission, each host is a second station
 * there, bl0, with 10.78.t.i/16 and fd78::t:i/64, and finds the others by ARP and ND as
 * applications' networks do. Fastpass's arbiters are a1 and a2, 10.77.1.201 and .202: hosts without
 * barline. A dumbbell is two ToRs whose ports up1 are linked. Three tiers: pod 1 has the first half
 * of the ToRs and of the spines, pod 2 the other. Spines go up by all cores, and a core goes down
 * to a ToR by the spines of its pod. L3: hosts have a /32 and a default route to 10.77.250.t; the
 * ToR has a host route per port, and leaf-spine adds one route over all spines.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/length_core.h"
#include "lib/barline.h"
#include "cli/util/cmd.h"
#include "lab.h"
#include "base/nl.h"
#include "maps/fastpass_abi.h"
#include "pass.h"
#include "loader/admission/bl0.h"

static struct lab_node *add_node(struct lab *lab, enum lab_kind kind, unsigned int index)
{
	static const char letter[] = { [LAB_HOST] = 'h',
				       [LAB_TOR] = 's',
				       [LAB_SPINE] = 'p',
				       [LAB_ARBITER] = 'a',
				       [LAB_CORE] = 'c' };
	struct lab_node *n = &lab->nodes[lab->nnodes++];

	snprintf(n->name, sizeof(n->name), "%c%u", letter[kind], index);
	n->kind = kind;
	n->index = index;
	n->netns = -1;
	return n;
}

static void add_link(struct lab *lab, struct lab_node *a, enum bl_port_role ra, const char *name_a,
		     struct lab_node *b, enum bl_port_role rb, const char *name_b)
{
	struct lab_port *pa = &a->ports[a->nports], *pb = &b->ports[b->nports];

	*pa = (struct lab_port){ .role = ra,
				 .peer_node = (unsigned int)(b - lab->nodes),
				 .peer_port = b->nports,
				 .mac = { 0x02, 0x77, (uint8_t)a->kind, (uint8_t)a->index, 0,
					  (uint8_t)a->nports } };
	*pb = (struct lab_port){ .role = rb,
				 .peer_node = (unsigned int)(a - lab->nodes),
				 .peer_port = a->nports,
				 .mac = { 0x02, 0x77, (uint8_t)b->kind, (uint8_t)b->index, 0,
					  (uint8_t)b->nports } };
	snprintf(pa->ifname, sizeof(pa->ifname), "%s", name_a);
	snprintf(pb->ifname, sizeof(pb->ifname), "%s", name_b);
	a->nports++;
	b->nports++;
}

#define ARBITER_SLOT 200 /* 10.77.1.201 and .202 */

static void addr4(uint8_t *a, unsigned int net, unsigned int i)
{
	const uint8_t v[4] = { 10, 77, (uint8_t)net, (uint8_t)i };

	memcpy(a, v, 4);
}

bool lab_station(const struct lab_node *n)
{
	return n->kind == LAB_HOST || n->kind == LAB_ARBITER;
}

static unsigned int lab_beacon_us(const struct lab_spec *s)
{
	/* at 250 Mbit/s, beacons of 142 bytes every 100 us are 4.5 % of a metered port */
	return s->beacon_us || !s->admission.on ? s->beacon_us : 1000;
}

/*
 * A slot of the lab. It has room for an acknowledgement beside a full frame: where data goes both
 * ways, each second frame brings one, and a slot of its own for it would be a third of all slots.
 * So it lasts for a frame and half an acknowledgement, FCP_BYTES for FCP, ARP and what a meter
 * loses when its CPU is taken away, and what the slot's part of a beacon takes. All of it together
 * is what a link must carry: with less its queue grows for as long as all slots are used.
 */
#define FCP_BYTES 30

static uint32_t slot_ns(const struct lab_spec *s)
{
	double rate = (double)s->admission.rate_bps / 8e9; /* bytes per ns */
	double beacons = bl_wire_bytes(BL_BEACON_LEN) / (lab_beacon_us(s) * 1e3 * rate);

	if (beacons > 0.5)
		beacons = 0.5;
	return (uint32_t)((BL_WIRE_FULL + BL_FP_ACK_BYTES / 2 + FCP_BYTES) /
			  (rate * (1 - beacons)));
}

/*
 * The file of this rack's Fastpass, as fastpass_file.h has it. Times are those of a busy machine: a
 * thread of two cores may wait for milliseconds.
 */
static void plan_fp(struct lab *lab)
{
	const struct lab_spec *s = &lab->spec;
	struct bl_fp_file *f = &lab->fp;
	unsigned int i;

	memset(f, 0, sizeof(*f));
	f->peer = lab->fp_peer;
	f->policy = s->fp_policy;
	f->slot_bytes = 1514 + BL_FP_ACK_BYTES;
	f->slot_ns = s->admission.rate_bps ? slot_ns(s) : 12500;
	f->rtt_us = 2000 + 8 * f->slot_ns / 1000;
	if (s->fp_fast) {
		f->slot_bytes = 1514;
		f->slot_ns = 1230;
		f->rtt_us = 200;
	} else {
		f->lead_us = 200 + 2 * f->slot_ns / 1000;
		f->watchdog_us = 500;
		/*
		 * a meter that stood still catches up by two frames, and so may its senders: later
		 * ones would stay in its queue
		 */
		f->late_us = 2 * f->slot_ns / 1000 + 1;
	}
	bl_fp_times(f);
	if (!s->fp_fast)
		f->dead_us += 3000;
	/*
	 * every link has the same rate: a spine, or a dumbbell's bar, is a path of one packet per
	 * slot, and a rack sends as many as there are
	 */
	if (s->leaf_spine) {
		f->paths = s->dumbbell ? 1 : s->spines;
		f->path_cap = 1;
		f->rack_up = f->paths;
		f->field = BL_FIELD_MAC;
		f->routed = true;
		f->nracks = s->tors;
	}
	f->has_group = true;
	memcpy(f->group + 10, (const uint8_t[]){ 0xff, 0xff, 239, 77, 7, 7 }, 6);
	for (i = 0; i < lab->nnodes; i++) {
		const struct lab_node *n = &lab->nodes[i];
		uint8_t *addr = n->kind == LAB_ARBITER ? f->arbiter[n->index - 1]
						       : f->peer[n->index - 1].addr,
			v4[16];

		if (!lab_station(n))
			continue;
		memset(addr, 0, 10);
		memset(addr + 10, 0xff, 2);
		addr4(addr + 12, n->tor, n->slot);
		if (n->kind == LAB_ARBITER) {
			f->narbiters++;
			continue;
		}
		snprintf(f->peer[n->index - 1].name, sizeof(f->peer[0].name), "%s", n->name);
		bl_bl0_mac(n->ports[0].mac, f->peer[n->index - 1].mac);
		f->peer[n->index - 1].has_mac = true;
		f->peer[n->index - 1].rack = (uint16_t)(n->tor - 1);
		f->peer[n->index - 1].cap = 1;
		memset(f->peer[n->index - 1].app[0], 0, 10);
		memset(f->peer[n->index - 1].app[0] + 10, 0xff, 2);
		lab_bl0_addr(n, AF_INET, v4);
		memcpy(f->peer[n->index - 1].app[0] + 12, v4, 4);
		lab_bl0_addr(n, AF_INET6, f->peer[n->index - 1].app[1]);
		f->peer[n->index - 1].napps = 2;
		f->npeers++;
	}
}

/* from 0, of ToR or spine @index of @n, from 1 */
static unsigned int pod_of(const struct lab_spec *s, unsigned int index, unsigned int n)
{
	return s->cores ? (index - 1) * 2 / n : 0;
}

unsigned int lab_first_host(const struct lab_spec *s, unsigned int tor)
{
	return (tor * s->hosts + s->tors - 1) / s->tors;
}

void lab_plan(struct lab *lab)
{
	const struct lab_spec *s = &lab->spec;
	unsigned int tors = s->leaf_spine ? s->tors : 1,
		     spines = s->leaf_spine && !s->dumbbell ? s->spines : 0;
	struct lab_node *tor[LAB_TORS_MAX], *spine[LAB_SPINES_MAX], *core[LAB_CORES_MAX];
	unsigned int cores = spines ? s->cores : 0, c;
	unsigned int slot[LAB_TORS_MAX] = { 0 };
	char name[16];
	unsigned int i, t, p;

	lab->nnodes = 0;
	for (c = 0; c < cores; c++)
		core[c] = add_node(lab, LAB_CORE, c + 1);
	for (p = 0; p < spines; p++)
		spine[p] = add_node(lab, LAB_SPINE, p + 1);
	for (t = 0; t < tors; t++)
		tor[t] = add_node(lab, LAB_TOR, t + 1);
	for (i = 0; i < s->hosts; i++) {
		struct lab_node *h = add_node(lab, LAB_HOST, i + 1);

		t = i * tors / s->hosts;
		h->tor = t + 1;
		h->slot = ++slot[t];
		add_link(lab, h, BL_PORT_UP, "eth0", tor[t], BL_PORT_HOST, h->name);
	}
	for (t = 0; t < tors; t++)
		for (p = 0; p < spines; p++) {
			if (pod_of(s, t + 1, tors) != pod_of(s, p + 1, spines))
				continue;
			snprintf(name, sizeof(name), "up%u", p + 1);
			add_link(lab, tor[t], BL_PORT_UP, name, spine[p], BL_PORT_DOWN,
				 tor[t]->name);
		}
	for (p = 0; p < spines; p++)
		for (c = 0; c < cores; c++) {
			snprintf(name, sizeof(name), "up%u", c + 1);
			add_link(lab, spine[p], BL_PORT_UP, name, core[c], BL_PORT_DOWN,
				 spine[p]->name);
		}
	/*
	 * Up on both sides: what came from a ToR's own hosts goes over the bar, what came over the
	 * bar goes to hosts, and never back. Barriers have no circle.
	 */
	if (s->dumbbell)
		add_link(lab, tor[0], BL_PORT_UP, "up1", tor[1], BL_PORT_UP, "up1");
	if (!s->admission.on || s->admission.policy != BL_POLICY_FASTPASS)
		return;
	for (i = 0; i < (s->arbiters ? s->arbiters : LAB_ARBITERS_MAX); i++) {
		struct lab_node *a = add_node(lab, LAB_ARBITER, i + 1);

		a->tor = 1;
		a->slot = ARBITER_SLOT + i + 1;
		add_link(lab, a, BL_PORT_UP, "eth0", tor[0], BL_PORT_HOST, a->name);
	}
	/* a router passes no watchdogs on: a link of their own */
	if (s->l3 && lab->nodes[lab->nnodes - 1].index == 2)
		add_link(lab, &lab->nodes[lab->nnodes - 2], BL_PORT_UP, "eth1",
			 &lab->nodes[lab->nnodes - 1], BL_PORT_UP, "eth1");
	plan_fp(lab);
}

static void addr6(uint8_t *a, unsigned int net, unsigned int i)
{
	memset(a, 0, 16);
	a[0] = 0xfd;
	a[1] = 0x77;
	a[3] = (uint8_t)net;
	a[15] = (uint8_t)i;
}

static void make_addr(int family, uint8_t *a, unsigned int net, unsigned int i)
{
	if (family == AF_INET)
		addr4(a, net, i);
	else
		addr6(a, net, i);
}

void lab_host_addr(const struct lab_node *n, int family, uint8_t addr[16])
{
	make_addr(family, addr, n->tor, n->slot);
}

void lab_bl0_addr(const struct lab_node *n, int family, uint8_t addr[16])
{
	const uint8_t v4[4] = { 10, 78, (uint8_t)n->tor, (uint8_t)n->slot };

	if (family == AF_INET) {
		memcpy(addr, v4, sizeof(v4));
		return;
	}
	memset(addr, 0, 16);
	addr[0] = 0xfd;
	addr[1] = 0x78;
	addr[13] = (uint8_t)n->tor;
	addr[15] = (uint8_t)n->slot;
}

#define BL0_GATEWAY_NET 252 /* 10.77.252.t: ToR t, as bl0 sees it */
#define GATEWAY_NET     250 /* 10.77.250.t: ToR t; 10.77.251.p: spine p */
#define SPINE_NET       251
#define CORE_NET        253 /* 10.77.253.c: core c */

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int sysctls(bool forward, bool ecn)
{
	static const struct {
		const char *path, *value;
		bool forward_only, ecn_only;
	} all[] = {
		{ "/proc/sys/net/ipv6/conf/default/accept_ra", "0", false },
		/* no link-local addresses: no chatter on an idle rack */
		{ "/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1", false },
		{ "/proc/sys/net/ipv6/conf/all/disable_ipv6", "0", false },
		{ "/proc/sys/net/ipv6/conf/default/disable_ipv6", "0", false },
		{ "/proc/sys/net/ipv4/conf/all/rp_filter", "0", false },
		{ "/proc/sys/net/ipv4/conf/default/rp_filter", "0", false },
		{ "/proc/sys/net/ipv4/ip_forward", "1", true },
		{ "/proc/sys/net/ipv6/conf/all/forwarding", "1", true },
		{ "/proc/sys/net/ipv6/conf/default/forwarding", "1", true },
		/* over ports too, so that a rack uses all its spines */
		{ "/proc/sys/net/ipv4/fib_multipath_hash_policy", "1", true },
		{ "/proc/sys/net/ipv6/fib_multipath_hash_policy", "1", true },
		/* who sees that a neighbour is gone takes another way */
		{ "/proc/sys/net/ipv4/conf/all/ignore_routes_with_linkdown", "1", true },
		{ "/proc/sys/net/ipv4/conf/default/ignore_routes_with_linkdown", "1", true },
		{ "/proc/sys/net/ipv6/conf/all/ignore_routes_with_linkdown", "1", true },
		{ "/proc/sys/net/ipv6/conf/default/ignore_routes_with_linkdown", "1", true },
		/* queues mark: TCP is to hear it */
		{ "/proc/sys/net/ipv4/tcp_ecn", "1", false, true },
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int err = (all[i].forward_only && !forward) || (all[i].ecn_only && !ecn)
				  ? 0
				  : write_file(all[i].path, all[i].value);

		if (err && err != -ENOENT)
			return cli_fail("%s: %s", all[i].path, strerror(-err));
	}
	return 0;
}

static int enter(int fd)
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

static int make_links(struct lab *lab, struct lab_node *n, struct nl *nl)
{
	unsigned int i;
	int err;

	for (i = 0; i < n->nports; i++) {
		struct lab_port *p = &n->ports[i];
		struct lab_node *peer = &lab->nodes[p->peer_node];
		struct lab_port *q = &peer->ports[p->peer_port];
		struct nl_end a = { .name = p->ifname }, b = { .name = q->ifname };

		if (peer < n)
			continue; /* made from the other side */
		memcpy(a.mac, p->mac, 6);
		memcpy(b.mac, q->mac, 6);
		err = nl_veth(nl, &a, &b, peer->netns, lab->spec.mtu);
		if (err)
			return cli_fail("link %s:%s - %s:%s: %s", n->name, p->ifname, peer->name,
					q->ifname, strerror(-err));
	}
	return 0;
}

/* every route and neighbour of one address family; 0 or -errno */
static int host_routes(struct lab *lab, struct lab_node *n, struct nl *nl, int family)
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
		make_addr(family, gw, GATEWAY_NET, n->tor);
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

/* of ToR @tor's bl0s; 0: of all */
static void bl0_net(int family, uint8_t a[16], unsigned int tor)
{
	const struct lab_node n = { .tor = tor };

	lab_bl0_addr(&n, family, a);
}

/*
 * An address right behind a port: its station, and a route of its own. Next hops need one, too:
 * IPv6 refuses a next hop that a shorter route of another port covers ("invalid gateway or device
 * mismatch"), as the one to everywhere else does after a link came back.
 */
static int behind(struct nl *nl, int family, unsigned int ifindex, const uint8_t *addr,
		  const uint8_t mac[6])
{
	const struct nl_hop direct = { .ifindex = ifindex };
	int err = nl_neigh(nl, ifindex, family, addr, mac);

	return err ? err : nl_route(nl, family, addr, family == AF_INET ? 32 : 128, &direct, 1);
}

/* bl0 is a second station behind a host's port */
static int bl0_route(struct nl *nl, int family, unsigned int ifindex, const struct lab_node *host)
{
	uint8_t a[16], mac[6];

	lab_bl0_addr(host, family, a);
	bl_bl0_mac(host->ports[0].mac, mac);
	return behind(nl, family, ifindex, a, mac);
}

/* the network of a switch's own address */
static unsigned int own_net(const struct lab_node *n)
{
	return n->kind == LAB_TOR ? GATEWAY_NET : n->kind == LAB_SPINE ? SPINE_NET : CORE_NET;
}

/* a core goes down to each ToR by the spines of its pod */
static int core_routes(const struct lab *lab, const struct lab_node *n, struct nl *nl, int family)
{
	const struct lab_spec *s = &lab->spec;
	uint8_t a[16], via[LAB_SPINES_MAX][16];
	struct nl_hop hops[LAB_SPINES_MAX];
	unsigned int i, t, nhops;
	int err = 0;

	for (i = 0; !err && i < n->nports; i++) {
		const struct lab_port *p = &n->ports[i];
		const struct lab_node *peer = &lab->nodes[p->peer_node];

		make_addr(family, a, SPINE_NET, peer->index);
		err = behind(nl, family, p->ifindex, a, peer->ports[p->peer_port].mac);
	}
	for (t = 1; !err && t <= s->tors; t++) {
		for (i = nhops = 0; i < n->nports; i++) {
			const struct lab_node *peer = &lab->nodes[n->ports[i].peer_node];

			if (pod_of(s, peer->index, s->spines) != pod_of(s, t, s->tors))
				continue;
			make_addr(family, via[nhops], SPINE_NET, peer->index);
			hops[nhops] = (struct nl_hop){ .ifindex = n->ports[i].ifindex,
						       .via = via[nhops] };
			nhops++;
		}
		make_addr(family, a, t, 0);
		err = nl_route(nl, family, a, family == AF_INET ? 24 : 32, hops, nhops);
	}
	return err;
}

static int switch_routes(struct lab *lab, struct lab_node *n, struct nl *nl, int family)
{
	uint8_t a[16], via[LAB_SPINES_MAX][16];
	struct nl_hop hops[LAB_SPINES_MAX];
	uint8_t full = family == AF_INET ? 32 : 128;
	unsigned int i, nhops = 0;
	int err;

	make_addr(family, a, own_net(n), n->index);
	err = nl_addr(nl, if_nametoindex("lo"), family, a, full);
	if (n->kind == LAB_CORE)
		return err ? err : core_routes(lab, n, nl, family);
	for (i = 0; !err && i < n->nports; i++) {
		const struct lab_port *p = &n->ports[i];
		const struct lab_node *peer = &lab->nodes[p->peer_node];
		const uint8_t *peer_mac = peer->ports[p->peer_port].mac;

		if (lab_station(peer)) {
			lab_host_addr(peer, family, a);
			err = behind(nl, family, p->ifindex, a, peer_mac);
			if (!err && lab->spec.admission.on && peer->kind == LAB_HOST)
				err = bl0_route(nl, family, p->ifindex, peer);
			continue;
		}
		hops[nhops] = (struct nl_hop){ .ifindex = p->ifindex, .via = via[nhops] };
		make_addr(family, via[nhops], own_net(peer), peer->index);
		err = behind(nl, family, p->ifindex, via[nhops], peer_mac);
		if (!err && peer->kind == LAB_TOR) {
			make_addr(family, a, peer->index, 0);
			err = nl_route(nl, family, a, family == AF_INET ? 24 : 32, &hops[nhops], 1);
			bl0_net(family, a, peer->index);
			if (!err && lab->spec.admission.on)
				err = nl_route(nl, family, a, family == AF_INET ? 24 : 112,
					       &hops[nhops], 1);
		} else if (!err) {
			nhops++;
		}
	}
	if (!err && nhops) {
		make_addr(family, a, 0, 0);
		err = nl_route(nl, family, a, 16, hops, nhops);
		bl0_net(family, a, 0);
		if (!err && lab->spec.admission.on)
			err = nl_route(nl, family, a, family == AF_INET ? 16 : 32, hops, nhops);
	}
	return err;
}

/* in @n's namespace: to ToR @tor by all spines but @spine */
static int withdraw(const struct lab *lab, const struct lab_node *n, unsigned int tor,
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
			make_addr(families[f], via[nhops], SPINE_NET, peer->index);
			hops[nhops] =
				(struct nl_hop){ .ifindex = if_nametoindex(n->ports[i].ifname),
						 .via = via[nhops] };
			nhops++;
		}
		make_addr(families[f], a, tor, 0);
		if (nhops)
			err = nl_route(&nl, families[f], a, families[f] == AF_INET ? 24 : 32, hops,
				       nhops);
	}
	nl_close(&nl);
	return err;
}

int lab_withdraw(const struct lab *lab, unsigned int tor, unsigned int spine)
{
	unsigned int i;
	int st;

	for (i = 0; i < lab->nnodes; i++) {
		const struct lab_node *n = &lab->nodes[i];
		char path[64];
		pid_t pid;
		int fd;

		if (n->kind != LAB_TOR || n->index == tor)
			continue;
		fflush(NULL);
		pid = fork(); /* who calls stays in its namespace */
		if (pid < 0)
			return cli_fail("cannot fork: %s", strerror(errno));
		if (!pid) {
			snprintf(path, sizeof(path), LAB_NETNS_DIR "/%s", n->name);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			_exit(fd < 0 || setns(fd, CLONE_NEWNET) || withdraw(lab, n, tor, spine));
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
	for (i = 0; !err && i < n->nports; i++)
		err = nl_master(nl, n->ports[i].ifindex, br);
	return err ? err : nl_up(nl, br);
}

static int routes(struct lab *lab, struct lab_node *n, struct nl *nl, int family)
{
	return lab_station(n) ? host_routes(lab, n, nl, family)
	       : lab->spec.l3 ? switch_routes(lab, n, nl, family)
			      : 0;
}

int lab_routes(struct lab *lab, struct lab_node *n)
{
	struct nl nl;
	int err = nl_open(&nl);

	if (err)
		return cli_fail("%s: no netlink socket: %s", n->name, strerror(-err));
	err = routes(lab, n, &nl, AF_INET);
	if (!err)
		err = routes(lab, n, &nl, AF_INET6);
	nl_close(&nl);
	return err ? cli_fail("cannot give %s its routes: %s", n->name, strerror(-err)) : 0;
}

static int configure(struct lab *lab, struct lab_node *n)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct nl nl;
	unsigned int i, f;
	int err;

	if (enter(n->netns))
		return 1;
	err = nl_open(&nl);
	if (!err)
		err = nl_up(&nl, if_nametoindex("lo"));
	for (i = 0; !err && i < n->nports; i++) {
		n->ports[i].ifindex = if_nametoindex(n->ports[i].ifname);
		err = nl_tx_plain(n->ports[i].ifname);
		if (!err)
			err = nl_up(&nl, n->ports[i].ifindex);
		if (!err && (lab->spec.bare || n->kind == LAB_ARBITER))
			err = pass_attach(n->ports[i].ifindex);
	}
	if (!err && !lab_station(n) && !lab->spec.l3)
		err = bridge_ports(n, &nl);
	for (f = 0; !err && f < 2; f++)
		err = routes(lab, n, &nl, families[f]);
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
			err = sysctls(lab->spec.l3 && !lab_station(&lab->nodes[i]),
				      lab->spec.admission.on && lab->nodes[i].kind == LAB_HOST);
	}
	for (i = 0; !err && i < lab->nnodes; i++) {
		err = enter(lab->nodes[i].netns);
		if (!err && nl_open(&nl))
			err = cli_fail("cannot open a netlink socket: %s", strerror(errno));
		if (!err) {
			err = make_links(lab, &lab->nodes[i], &nl);
			nl_close(&nl);
		}
	}
	for (i = 0; !err && i < lab->nnodes; i++) {
		out_progress("raising the lab: %s", lab->nodes[i].name);
		err = configure(lab, &lab->nodes[i]);
	}
	if (enter(home))
		err = 1;
	close(home);
	return err;
}

static int bl0_in_one_net(const struct lab_node *n, struct nl *nl, int family)
{
	uint8_t a[16];

	lab_bl0_addr(n, family, a);
	return nl_addr(nl, if_nametoindex("bl0"), family, a, family == AF_INET ? 16 : 64);
}

/* what goes to other hosts' bl0 leaves by this one, for the ToR */
static int bl0_routed(const struct lab *lab, const struct lab_node *n, struct nl *nl, int family)
{
	const struct lab_node *tor = &lab->nodes[n->ports[0].peer_node];
	unsigned int bl0 = if_nametoindex("bl0");
	uint8_t a[16], net[16], gw[16];
	struct nl_hop hop = { .ifindex = bl0, .via = gw };
	int err;

	lab_bl0_addr(n, family, a);
	err = nl_addr(nl, bl0, family, a, family == AF_INET ? 32 : 128);
	make_addr(family, gw, BL0_GATEWAY_NET, n->tor);
	if (!err)
		err = nl_neigh(nl, bl0, family, gw, tor->ports[n->ports[0].peer_port].mac);
	bl0_net(family, net, 0);
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
	if (home < 0 || enter(n->netns))
		return 1;
	err = nl_open(&nl);
	for (f = 0; !err && f < 2; f++)
		err = lab->spec.l3 ? bl0_routed(lab, n, &nl, families[f])
				   : bl0_in_one_net(n, &nl, families[f]);
	nl_close(&nl);
	if (enter(home))
		return 1;
	close(home);
	return err ? cli_fail("cannot give bl0 of %s its addresses: %s", n->name, strerror(-err))
		   : 0;
}

static int ports_cfg(const struct lab *lab, const struct lab_node *n, struct bl_node_cfg *cfg)
{
	unsigned int i, k;

	cfg->ports = calloc(n->nports, sizeof(*cfg->ports));
	if (!cfg->ports)
		return -ENOMEM;
	cfg->ports_count = n->nports;
	for (i = 0; i < n->nports; i++) {
		snprintf(cfg->ports[i].ifname, sizeof(cfg->ports[i].ifname), "%s",
			 n->ports[i].ifname);
		cfg->ports[i].role = (uint8_t)n->ports[i].role;
		cfg->ports[i].home_cpu = -1;
	}
	if (lab->spec.l3)
		return 0;
	cfg->fdb = calloc(2 * n->nports, sizeof(*cfg->fdb));
	if (!cfg->fdb)
		return -ENOMEM;
	for (i = 0, k = 0; i < n->nports; i++) {
		const struct lab_node *peer = &lab->nodes[n->ports[i].peer_node];

		if (!lab_station(peer))
			continue;
		memcpy(cfg->fdb[k].mac, peer->ports[n->ports[i].peer_port].mac, 6);
		snprintf(cfg->fdb[k++].ifname, sizeof(cfg->fdb[0].ifname), "%s",
			 n->ports[i].ifname);
		if (!lab->spec.admission.on || peer->kind == LAB_ARBITER)
			continue;
		bl_bl0_mac(cfg->fdb[k - 1].mac, cfg->fdb[k].mac);
		snprintf(cfg->fdb[k++].ifname, sizeof(cfg->fdb[0].ifname), "%s",
			 n->ports[i].ifname);
	}
	cfg->fdb_count = k;
	return 0;
}

#define CONTROLLERS 61693 /* the first one's port */

void lab_controller_addr(unsigned int i, char *buf, size_t size)
{
	snprintf(buf, size, "127.0.0.1:%u", CONTROLLERS + i);
}

int lab_node_cfg(const struct lab *lab, const struct lab_node *n, struct bl_node_cfg *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->role = n->kind == LAB_HOST ? BL_ROLE_HOST : BL_ROLE_SWITCH;
	snprintf(cfg->name, sizeof(cfg->name), "%s", n->name);
	snprintf(cfg->netns, sizeof(cfg->netns), "%s/%s", LAB_NETNS_DIR, n->name);
	cfg->mode = BL_XDP_NATIVE;
	cfg->node_id = (uint32_t)n->kind * 1000 + n->index;
	cfg->port_base = BL_PORT_BASE;
	cfg->port_count = BL_PORT_COUNT;
	cfg->beacon_us = lab_beacon_us(&lab->spec);
	cfg->dead_after_us = lab->spec.dead_after_us;
	cfg->no_ahead = lab->spec.no_ahead;
	cfg->realtime = lab->spec.realtime;
	memcpy(cfg->cpus, lab->spec.cpus, sizeof(cfg->cpus));
	cfg->ncpus = lab->spec.ncpus;
	cfg->admission = lab->spec.admission;
	for (cfg->ctl.n = 0; cfg->ctl.n < lab->spec.controllers; cfg->ctl.n++)
		lab_controller_addr(cfg->ctl.n, cfg->ctl.addr[cfg->ctl.n],
				    sizeof(cfg->ctl.addr[0]));
	if (n->kind == LAB_HOST) {
		/* the queues that a lab is about are the switch's */
		cfg->admission.queue = (struct bl_limit_cfg){ 0 };
		if (lab->fp.narbiters)
			cfg->admission.fp = &lab->fp;
		if (!cfg->ncpus)
			cfg->ncpus = 1; /* CPU 0, as the switches: beacons start where they are
					   forwarded */
		cfg->skew_ns = lab->spec.skew_ns[n->index - 1];
		snprintf(cfg->ifname, sizeof(cfg->ifname), "eth0");
		return 0;
	}
	if (n->kind == LAB_SPINE || n->kind == LAB_CORE)
		cfg->admission.spray =
			false; /* it has no ways up; the flag is for those that have */
	cfg->forward = lab->spec.l3 ? BL_FWD_L3 : BL_FWD_L2;
	cfg->one_lane = lab->spec.one_lane;
	cfg->thread_napi = !lab->spec.no_thread_napi;
	return ports_cfg(lab, n, cfg);
}
