/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The source guard: frames from a port with a host behind it must have an Ethernet and an IP
 * address of that host as their source, and are dropped otherwise (spoofed). BPF side only.
 *
 * An address is configured, or pinned to the port that uses it first:
 *
 *   Ethernet   A switch with a static table (l2) asks that table. A router pins the source of the
 *              first beacon.
 *   IP         On a router the route back to the address must lead out of this port, and the
 *              neighbour there must have the frame's Ethernet address if it is resolved (strict
 *              reverse path, RFC 3704). On an l2 switch the address must not belong to another
 *              port.
 *
 *   node id    A host's port keeps the id in the first beacon, and no other port whose host is
 *              heard may have it. After about 10 s of another id, or of silence, it takes
 *              another one.
 *
 * Example: port 3 of an l2 switch sends a message from 10.0.0.1 with the Ethernet address of port
 * 0. The address is not in port 3's list, "sw_fdb" says port 0, and the frame is dropped.
 *
 * Tokens and signals of TOP, packets of Fastpass's arbiters (bl_source_plain()) and reservations
 * (bl_source_link()) come from bl0, which is a second station behind the same port, with bits of
 * its Ethernet address in use as marks (BL_PATH_MAC0, BL_EARLY_MAC0). They are rare, so they are
 * looked up without the lists.
 *
 * Not here: frames from switches; they carry what others sent.
 */
#ifndef BARLINE_SWITCH_SOURCE_H
#define BARLINE_SWITCH_SOURCE_H

#include "bpf/role.h"
#include "core/order/barrier_core.h"
#include "core/quota_core.h"
#include "core/queue/classify_core.h"
#include "core/source_core.h"
#include "bpf/bpf_util.h"
#include "bpf/switch/fdb.h"
#include "bpf/switch/route.h"
#include "bpf/switch/run.h"

#define BL_MAC0_MARKS (BL_PATH_MAC0 | BL_EARLY_MAC0)

/* Returns 1 if the static table has the Ethernet address behind port @in. */
static __always_inline int mac_is_behind(const __u8 *addr, __u32 in)
{
	return bl_fdb_port(addr) == (int)in;
}

/**
 * bl_source_route - returns 1 if the route back to @ip leaves by port @in, and the neighbour there
 * has the Ethernet address @mac or is not resolved. @marks: 1: the marks in @mac do not count.
 */
__attribute__((noinline)) int bl_source_route(struct xdp_md *ctx, const struct bl_ip *ip, __u64 mac,
					      __u32 marks)
{
	struct bpf_fib_lookup fib = { .ifindex = ctx->ingress_ifindex };
	__u64 ignore = marks ? BL_MAC0_MARKS : 0, there = 0;
	struct bl_ip v4 = bl_ip4(0);
	long rc;

	if (!ip)
		return 0;
	if (!ip->hi && (__u32)ip->lo == (__u32)v4.lo) {
		fib.family = BL_AF_INET;
		fib.ipv4_dst = bl_ip4_raw(ip);
	} else {
		fib.family = BL_AF_INET6;
		__builtin_memcpy(fib.ipv6_dst, ip, sizeof(*ip));
	}
	rc = bpf_fib_lookup(ctx, &fib, sizeof(fib), 0);
	if (rc == BPF_FIB_LKUP_RET_NO_NEIGH)
		return fib.ifindex == ctx->ingress_ifindex;
	__builtin_memcpy(&there, fib.dmac, sizeof(fib.dmac)); /* as bl_mac48(), but not aligned */
	return rc == BPF_FIB_LKUP_RET_SUCCESS && fib.ifindex == ctx->ingress_ifindex &&
	       !((there ^ mac) & ~ignore);
}

/*
 * Makes port @in the owner of @ip, which nobody owns. @app: 1: it is the source of a token or of
 * Fastpass, of which a port has a bounded number: the list that bounds the others is written by the
 * CPU of the port only, and these frames arrive anywhere. Returns 1, or 0 if there is no room.
 */
static __always_inline int add_owner(__u32 in, const struct bl_ip *ip, __u32 app)
{
	struct bl_quotas *q = bpf_map_lookup_elem(&sw_quotas, &in);
	struct bl_owner mine = { .port = in };

	if (!app)
		return !bpf_map_update_elem(&sw_owners, ip, &mine, BPF_NOEXIST);
	if (!q || BL_READ_ONCE(q->apps) >= BL_SOURCE_IPS)
		return 0;
	if (bpf_map_update_elem(&sw_owners, ip, &mine, BPF_NOEXIST))
		return 0;
	/* As many CPUs as come here at the same moment may each add one beyond the limit. */
	__sync_fetch_and_add(&q->apps, 1);
	return 1;
}

/*
 * Makes port @in the owner of @ip, unless another port is. An address that the routes of a router
 * lead to has moved if another port owned it. Returns 1 if port @in is the owner.
 */
static __always_inline int own_address(struct xdp_md *ctx, const struct bl_sw_cfg *cfg, __u32 in,
				       const struct bl_ip *ip, __u64 mac, __u32 marks, int learn)
{
	struct bl_owner *owner = bpf_map_lookup_elem(&sw_owners, ip);
	struct bl_sources *other;
	struct bl_sw_port *there;
	__u32 was;

	if (owner && (owner->listed || owner->port == in))
		return owner->port == in;
	if (!learn || (cfg->forward == BL_FWD_L3 && !bl_source_route(ctx, ip, mac, marks)))
		return 0;
	if (!owner)
		return add_owner(in, ip, marks);
	if (cfg->forward != BL_FWD_L3)
		return 0;
	was = owner->port;
	owner->port = in;
	other = bpf_map_lookup_elem(&sw_sources, &was);
	there = port_at(was);
	if (!other || !there)
		return 1;
	/* A full barrier; pairs with remember_source(). */
	__sync_fetch_and_add(&other->forget, 1);
	BL_WRITE_ONCE(there->source_eth, BL_SOURCE_NO_ETH);
	return 1;
}

/* Reads the source of the IP header at @l3 into @ip. Returns 0, or -1 behind the frame's end. */
static __always_inline int read_source(struct xdp_md *ctx, __u32 l3, int v6, struct bl_ip *ip)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct ipv6hdr *ip6;
	const struct iphdr *ip4;

	if (l3 > sizeof(struct ethhdr) + 4)
		return -1;
	ip4 = data + l3;
	BL_SEEN(ip4);
	ip6 = (const void *)ip4;
	if (v6) {
		if ((void *)(ip6 + 1) > end)
			return -1;
		*ip = bl_ip6(ip6->saddr.s6_addr32);
	} else {
		if ((void *)(ip4 + 1) > end)
			return -1;
		*ip = bl_ip4(ip4->saddr);
	}
	return 0;
}

/*
 * Makes this source the one that nearly all frames of the port are compared with. If another CPU or
 * the daemon asked meanwhile that the port's sources be forgotten, it may have emptied the entry
 * before it was written here: one of the two sees what the other wrote.
 */
static __always_inline void remember_source(struct bl_sw_port *port, struct bl_sources *s,
					    const struct bl_ip *ip, __u64 word)
{
	port->source_ip = *ip;
	__sync_lock_test_and_set(&port->source_eth, word);
	if (BL_READ_ONCE(s->forget) != s->forgot)
		BL_WRITE_ONCE(port->source_eth, BL_SOURCE_NO_ETH);
}

#define BL_SOURCE_V6 0x100u
/**
 * bl_source_slowly - checks the source of an ordered frame that is not the first one of its port's
 * lists, and learns it. A global function, since this happens once for nearly all ports.
 * @l3: offset of the IP header, or-ed with BL_SOURCE_V6 for IPv6; 0: a beacon, which has none
 * Returns BL_R_NONE or BL_R_SPOOFED.
 */
__attribute__((noinline)) int bl_source_slowly(struct xdp_md *ctx, __u32 in, __u32 l3)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bl_sources *s = bpf_map_lookup_elem(&sw_sources, &in);
	__u32 zero = 0;
	const struct bl_sw_cfg *cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	struct bl_quotas *q = bpf_map_lookup_elem(&sw_quotas, &in);
	struct bl_sw_port *port = port_at(in);
	struct ethhdr *eth = data;
	struct bl_ip ip = {};
	__u64 mac, word;

	if (!s || !cfg || !port || (void *)(eth + 1) > end || s->mode == BL_SOURCE_ANY)
		return BL_R_NONE;
	if (bl_source_obey(s) && q)
		BL_WRITE_ONCE(q->apps, 0);
	mac = bl_mac48(eth->h_source);
	word = bl_source_word(eth); /* here, since a call makes the verifier forget the frame */
	if (!bl_source_mac_known(s, mac)) {
		if (s->mode != BL_SOURCE_LEARN)
			return BL_R_SPOOFED;
		if (cfg->forward == BL_FWD_L2 ? !mac_is_behind(eth->h_source, in) : s->nmac != 0)
			return BL_R_SPOOFED;
		if (!bl_source_learn_mac(s, mac))
			return BL_R_SPOOFED;
	}
	if (!l3)
		return BL_R_NONE;
	if (read_source(ctx, l3 & 0xff, l3 & BL_SOURCE_V6, &ip))
		return BL_R_SPOOFED;
	if (!bl_source_ip_known(s, ip.hi, ip.lo) &&
	    !(bl_source_room(s) && own_address(ctx, cfg, in, &ip, mac, 0, 1) &&
	      bl_source_learn_ip(s, ip)))
		return BL_R_SPOOFED;
	remember_source(port, s, &ip, word);
	return BL_R_NONE;
}

/** struct node_scan - argument of another_port_has_node(). */
struct node_scan {
	__u32 node; /* its id */
	__u32 port; /* that claims it */
	__u32 nports;
	__u32 found; /* 1: another host's port that is live has it */
};

/* Looks whether port @p has the node. Returns 1 if the search is over. */
static long another_port_has_node(__u32 p, struct node_scan *s)
{
	const struct bl_life *life = bpf_map_lookup_elem(&sw_lives, &p);
	const struct bl_port_regs *regs = bpf_map_lookup_elem(&sw_regs, &p);
	const struct bl_sw_port *port = port_at(p);

	if (!life || !regs || !port || p >= s->nports)
		return 1;
	s->found = p != s->port && life->neighbour == s->node && port->ifindex &&
		   port->role == BL_PORT_HOST && bl_reg_live(&regs->lane[0]);
	return s->found;
}

/**
 * bl_source_node - decides about a beacon of port @in whose node id @node is not the one that the
 * port has had so far, and gives the port that id. Not inlined, since it is rare. Returns 0, or 1
 * if the beacon must be refused: a host has one id and does not change it often, and no other host
 * of this switch has it.
 */
__attribute__((noinline)) int bl_source_node(__u32 in, __u32 lane_no, __u32 node)
{
	const struct bl_sw_lane *lane = bpf_map_lookup_elem(&sw_lanes, &lane_no);
	struct bl_life *life = bpf_map_lookup_elem(&sw_lives, &in);
	const struct bl_port_regs *regs = bpf_map_lookup_elem(&sw_regs, &in);
	struct bl_sw_port *port = port_at(in);
	__u32 zero = 0, other, since, now, heard;
	const struct bl_sw_cfg *cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	struct node_scan s = { .node = node, .port = in };
	enum bl_node_verdict verdict;

	if (!lane || !life || !regs || !port || !cfg || !node)
		return 1;
	if (port->role == BL_PORT_HOST) {
		other = port->other_node;
		since = port->other_since;
		now = (__u32)(lane->watch_ns >> BL_NODE_SHIFT);
		heard = (__u32)(regs->lane[0].heard_ns >> BL_NODE_SHIFT);
		/* Where nothing was heard for as long, somebody else may be connected now. */
		verdict = bl_node_judge(now - heard < BL_NODE_KEEP ? life->neighbour : 0, node,
					&other, &since, now);
		port->other_node = other;
		port->other_since = since;
		if (verdict == BL_NODE_REFUSE)
			return 1;
		s.nports = cfg->nports;
		BL_LOOP(BL_SW_PORTS_MAX, another_port_has_node, &s);
		if (s.found)
			return 1;
		port->other_node = 0;
	}
	life->neighbour = node;
	return 0;
}

/*
 * Returns 1 if the source of a frame that bl_parse_plain() accepted, whose word is @word, is the
 * one that was accepted last. The ethertype in the word says that this was IPv4, too, so its four
 * bytes are enough.
 */
static __always_inline int is_last_plain(const struct bl_sw_port *port, const struct ethhdr *eth,
					 __u64 word)
{
	const struct iphdr *ip = (const void *)(eth + 1);

	return !((port->source_eth ^ word) | (bl_ip4_raw(&port->source_ip) ^ ip->saddr));
}

/*
 * Checks the source of an ordered frame or a beacon from port @port, and its number of lanes.
 * @plain: constant; 1: bl_parse_plain() parsed it. Returns BL_R_NONE, or the reason to drop the
 * frame.
 */
static __always_inline enum bl_reason validate_source(struct xdp_md *ctx, const struct run *r,
						      const struct bl_sw_port *port, int plain)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct bl_ip ip = {};
	__u64 word;

	if (__builtin_expect(r->f.lanes > BL_PORT_LANES(port), 0))
		return BL_R_LANES_REFUSED;
	if (!port->guarded)
		return BL_R_NONE;
	if ((void *)(eth + 1) > end || (plain && (void *)((struct iphdr *)(eth + 1) + 1) > end))
		return BL_R_SHORT;
	word = bl_source_word(eth);
	if (plain) {
		if (__builtin_expect(is_last_plain(port, eth, word), 1))
			return BL_R_NONE;
	} else if (r->f.opcode == BL_OP_BEACON) {
		if (__builtin_expect(bl_source_same_mac(port->source_eth, word), 1))
			return BL_R_NONE;
		return (enum bl_reason)bl_source_slowly(ctx, r->in, 0);
	} else {
		if (read_source(ctx, r->f.l3_off, r->f.v6, &ip))
			return BL_R_SHORT;
		if (__builtin_expect(!((port->source_eth ^ word) | (port->source_ip.lo ^ ip.lo) |
				       (port->source_ip.hi ^ ip.hi)),
				     1))
			return BL_R_NONE;
	}
	return (enum bl_reason)bl_source_slowly(ctx, r->in,
						r->f.l3_off | (r->f.v6 ? BL_SOURCE_V6 : 0));
}

/*
 * Returns 1 if the source of @eth, with or without marks, is behind port @in of an l2 switch. bl0's
 * own address has no marks.
 */
static __always_inline int app_mac_is_behind(const struct ethhdr *eth, __u64 mac, __u32 in)
{
	__u8 addr[8];

	if (mac_is_behind(eth->h_source, in))
		return 1;
	__builtin_memcpy(addr, &mac, sizeof(addr));
	return mac_is_behind(addr, in);
}

/**
 * bl_source_plain - checks the source of a frame that is not barline's, if it is a token or signal
 * of TOP or a packet of Fastpass. Returns BL_R_NONE or BL_R_SPOOFED.
 */
__attribute__((noinline)) int bl_source_plain(struct xdp_md *ctx, __u32 in)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct bl_sw_port *port = port_at(in);
	struct bl_sources *s;
	__u32 zero = 0;
	const struct bl_sw_cfg *cfg;
	struct ethhdr *eth = data;
	struct bl_frame_class c;
	struct bl_ip ip = {};
	__u64 mac;

	if (!port || !port->guarded || (void *)(eth + 1) > end || bl_frame_class(data, end, &c) ||
	    !(bl_class_is_top(&c) || bl_class_is_fcp(&c) ||
	      (c.proto == BL_UDP && c.dport == BL_FCP_WATCHDOG_PORT)))
		return BL_R_NONE;
	if (read_source(ctx, c.l3_off, c.kind != BL_FRAME_IP4, &ip))
		return BL_R_SPOOFED;
	s = bpf_map_lookup_elem(&sw_sources, &in);
	cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	if (!s || !cfg)
		return BL_R_NONE;
	mac = bl_mac48(eth->h_source) & ~(__u64)BL_MAC0_MARKS;
	if (s->app_mac == mac && s->app_ip4 == ip.lo && c.kind == BL_FRAME_IP4)
		return BL_R_NONE;
	if (cfg->forward == BL_FWD_L2 && !app_mac_is_behind(eth, mac, in))
		return BL_R_SPOOFED;
	if (!own_address(ctx, cfg, in, &ip, mac, 1, s->mode == BL_SOURCE_LEARN))
		return BL_R_SPOOFED;
	if (c.kind == BL_FRAME_IP4) {
		BL_WRITE_ONCE(s->app_mac, mac);
		BL_WRITE_ONCE(s->app_ip4, ip.lo);
	}
	return BL_R_NONE;
}

/**
 * bl_source_link - checks the source of an RSV or RELEASE, and takes it from the port's quota.
 * Returns BL_R_NONE, or the reason to drop the frame.
 */
__attribute__((noinline)) int bl_source_link(struct xdp_md *ctx, __u32 in)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct bl_sw_port *port = port_at(in);
	struct bl_quotas *q = bpf_map_lookup_elem(&sw_quotas, &in);
	struct bl_sources *s = bpf_map_lookup_elem(&sw_sources, &in);
	__u32 zero = 0;
	const struct bl_sw_cfg *cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	struct ethhdr *eth = data;
	__u64 mac;

	if (!port || !cfg || !q || !s || (void *)(eth + 1) > end || port->role != BL_PORT_HOST)
		return BL_R_NONE;
	mac = bl_mac48(eth->h_source) & ~(__u64)BL_MAC0_MARKS;
	/* A router promises nothing, and says so to everybody. */
	if (port->guarded && cfg->forward == BL_FWD_L2 && s->app_mac != mac) {
		if (!app_mac_is_behind(eth, mac, in))
			return BL_R_SPOOFED;
		BL_WRITE_ONCE(s->app_mac, mac);
	}
	return bl_quota_take(&q->links, bpf_ktime_get_coarse_ns(), cfg->control_gap_ns,
			     BL_CONTROL_BURST * (__u64)cfg->control_gap_ns)
		       ? BL_R_NONE
		       : BL_R_CONTROL_FLOOD;
}

#endif
