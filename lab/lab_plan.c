/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The plan of a lab: nodes, links, addresses, and what each node is configured with.
 *
 * Hosts are h1, h2, ...; ToR switches s1, ...; spines p1, ...; cores c1, ...; Fastpass arbiters a1
 * and a2. Host I of ToR T is 10.77.T.I and fd77:T::I on eth0.
 *
 * Rack: one ToR, whose link to host hN is the port hN. Leaf-spine: each ToR is linked to each spine
 * P by its port upP. Dumbbell: two ToRs whose ports up1 are linked. Three tiers: pod 1 has the
 * first half of the ToRs and of the spines, pod 2 has the other half; ToRs are linked to the spines
 * of their pod, and spines to all cores.
 *
 * With admission, each host is a second station, bl0, with 10.78.T.I/16 and fd78::T:I/64.
 * Arbiters are 10.77.1.201 and 10.77.1.202, at the first ToR; they run no barline programs.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "arbiter/alloc/alloc.h"
#include "core/length_core.h"
#include "lab/lab.h"
#include "lab/lab_addr.h"
#include "lib/barline.h"
#include "loader/admission/bl0.h"
#include "maps/fastpass_abi.h"

struct lab *lab_new(void)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	if (lab) {
		lab->spec.hosts = 8;
		lab->spec.tors = lab->spec.spines = 2;
		lab->spec.mtu = 1500;
		lab->spec.dead_after_us = 500000;
		lab->spec.fp_policy = BL_ALLOC_FAIR;
	}
	return lab;
}

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

#define ARBITER_SLOT 200 /* arbiters are 10.77.1.201 and .202 */

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
	/* beacons of 142 bytes every 100 us would be 4.5 % of a metered port of 250 Mbit/s */
	return s->beacon_us || !s->admission.on ? s->beacon_us : 1000;
}

/* bytes per slot for FCP, for ARP, and for what a meter loses while another thread has its CPU */
#define FCP_BYTES 30

/*
 * Returns the duration of a Fastpass timeslot. A slot has room for a full frame and for half an
 * acknowledgement: with data in both directions every second frame causes one, and acknowledgements
 * in slots of their own would take a third of all slots. To this come FCP_BYTES and the share of
 * beacons that falls on a slot. The link must carry all of it; with shorter slots, the queue of a
 * port grows as long as all slots are used.
 */
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
 * Makes the configuration of Fastpass, as in fastpass_file.h. Its times suit a busy machine, where
 * a thread may wait for milliseconds for one of two cores.
 */
static void plan_fastpass(struct lab *lab)
{
	const struct lab_spec *s = &lab->spec;
	struct bl_fp_file *f = &lab->fp;
	unsigned int i;

	memset(f, 0, sizeof(*f));
	f->peer = lab->fp_peer;
	/* of this rack alone; it is never written anywhere */
	while (getrandom(f->secret, sizeof(f->secret), 0) != sizeof(f->secret))
		;
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
		 * A meter that was delayed catches up by two frames. Its senders may be late by as
		 * much; frames that come later would stay in its queue.
		 */
		f->late_us = 2 * f->slot_ns / 1000 + 1;
	}
	bl_fp_times(f);
	if (!s->fp_fast)
		f->dead_us += 3000;
	/*
	 * All links have the same rate. So each spine, and the link between the ToRs of a dumbbell,
	 * is a path for one packet per slot, and a rack sends one packet per path.
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

unsigned int lab_pod(const struct lab_spec *s, unsigned int index, unsigned int n)
{
	return s->cores ? (index - 1) * 2 / n : 0;
}

unsigned int lab_first_host(const struct lab_spec *s, unsigned int tor)
{
	return (tor * s->hosts + s->tors - 1) / s->tors;
}

bool lab_name_ok(const char *name)
{
	size_t n = strlen(name), i;

	for (i = 0; i < n; i++)
		if (!isascii(name[i]) || (!isalnum(name[i]) && (!i || !strchr("._-", name[i]))))
			return false;
	return n && n < sizeof(((struct lab_spec *)NULL)->name);
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
			if (lab_pod(s, t + 1, tors) != lab_pod(s, p + 1, spines))
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
	 * The port is "up" at both ends: each ToR forwards frames of its own hosts over the link,
	 * and frames that came over the link to its hosts, never back. So barriers have no cycle.
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
	/* a router does not forward watchdogs, so the two arbiters get a link of their own */
	if (s->l3 && lab->nodes[lab->nnodes - 1].index == 2)
		add_link(lab, &lab->nodes[lab->nnodes - 2], BL_PORT_UP, "eth1",
			 &lab->nodes[lab->nnodes - 1], BL_PORT_UP, "eth1");
	plan_fastpass(lab);
}

static void addr6(uint8_t *a, unsigned int net, unsigned int i)
{
	memset(a, 0, 16);
	a[0] = 0xfd;
	a[1] = 0x77;
	a[3] = (uint8_t)net;
	a[15] = (uint8_t)i;
}

void lab_make_addr(int family, uint8_t *addr, unsigned int net, unsigned int i)
{
	if (family == AF_INET)
		addr4(addr, net, i);
	else
		addr6(addr, net, i);
}

void lab_host_addr(const struct lab_node *n, int family, uint8_t addr[16])
{
	lab_make_addr(family, addr, n->tor, n->slot);
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

void lab_app_addr(const struct lab *lab, unsigned int host, uint8_t addr[4])
{
	uint8_t a[16];
	unsigned int k;

	for (k = 0; k < lab->nnodes; k++)
		if (lab->nodes[k].kind == LAB_HOST && lab->nodes[k].index == host + 1)
			(lab->spec.admission.on ? lab_bl0_addr : lab_host_addr)(&lab->nodes[k],
										AF_INET, a);
	memcpy(addr, a, 4);
}

static int fill_ports(const struct lab *lab, const struct lab_node *n, struct bl_node_cfg *cfg)
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

#define CONTROLLER_PORT 61693 /* of the first one; the others have the ports after it */

uint32_t lab_node_id(const struct lab_node *n)
{
	return (uint32_t)n->kind * 1000 + n->index;
}

void lab_controller_addr(unsigned int i, char *buf, size_t size)
{
	snprintf(buf, size, "127.0.0.1:%u", CONTROLLER_PORT + i);
}

int lab_node_cfg(const struct lab *lab, const struct lab_node *n, struct bl_node_cfg *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->role = n->kind == LAB_HOST ? BL_ROLE_HOST : BL_ROLE_SWITCH;
	snprintf(cfg->name, sizeof(cfg->name), "%s", n->name);
	snprintf(cfg->netns, sizeof(cfg->netns), "%s/%s", LAB_NETNS_DIR, n->name);
	cfg->mode = BL_XDP_NATIVE;
	cfg->node_id = lab_node_id(n);
	cfg->port_base = BL_PORT_BASE;
	cfg->port_count = BL_PORT_COUNT;
	cfg->beacon_us = lab_beacon_us(&lab->spec);
	cfg->dead_after_us = lab->spec.dead_after_us;
	cfg->lag_max_us = lab->spec.lag_max_us;
	cfg->no_ahead = lab->spec.no_ahead;
	cfg->realtime = lab->spec.realtime;
	memcpy(cfg->cpus, lab->spec.cpus, sizeof(cfg->cpus));
	cfg->ncpus = lab->spec.ncpus;
	cfg->admission = lab->spec.admission;
	for (cfg->ctl.n = 0; cfg->ctl.n < lab->spec.controllers; cfg->ctl.n++)
		lab_controller_addr(cfg->ctl.n, cfg->ctl.addr[cfg->ctl.n],
				    sizeof(cfg->ctl.addr[0]));
	if (n->kind == LAB_HOST) {
		/* the limits of queues in the spec are those of the switches */
		cfg->admission.queue = (struct bl_limit_cfg){ 0 };
		if (lab->fp.narbiters)
			cfg->admission.fp = &lab->fp;
		if (!cfg->ncpus)
			cfg->ncpus = 1; /* CPU 0, where the switches forward what the host sends */
		cfg->skew_ns = lab->spec.skew_ns[n->index - 1];
		snprintf(cfg->ifname, sizeof(cfg->ifname), "eth0");
		return 0;
	}
	if (n->kind == LAB_SPINE || n->kind == LAB_CORE)
		cfg->admission.spray = false; /* only ToRs have several ways up */
	cfg->forward = lab->spec.l3 ? BL_FWD_L3 : BL_FWD_L2;
	cfg->one_lane = lab->spec.one_lane;
	cfg->thread_napi = !lab->spec.no_thread_napi;
	return fill_ports(lab, n, cfg);
}
