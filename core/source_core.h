/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The source guard's lists: whether an address is a port's, and learning one.
 *
 * Example: the first message of port 3 has 10.0.0.4. bl_source_known() does not find it, the caller
 * makes the port its owner in "sw_owners", and bl_source_learn_ip() appends it. The next messages
 * find it in the port's entry of "sw_ports", and do not get here.
 *
 * Not here: which port owns an address (bpf/switch/source.h).
 */
#ifndef BARLINE_SOURCE_CORE_H
#define BARLINE_SOURCE_CORE_H

#include "maps/source_abi.h"
#include "core/wire_core.h"

/** bl_ip4 - an IPv4 address @raw, as in memory, in the form of the lists. */
BL_CORE struct bl_ip bl_ip4(__u32 raw)
{
	struct bl_ip ip;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	ip.lo = (__u64)raw << 32 | BL_BE32(0xffff);
#else
	ip.lo = (__u64)BL_BE32(0xffff) << 32 | raw;
#endif
	ip.hi = 0;
	return ip;
}

/** bl_ip4_raw - the IPv4 address @ip as in memory; meaningful only if it is one. */
BL_CORE __u32 bl_ip4_raw(const struct bl_ip *ip)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (__u32)(ip->lo >> 32);
#else
	return (__u32)ip->lo;
#endif
}

/** bl_ip6 - an IPv6 address in the form of the lists. */
BL_CORE struct bl_ip bl_ip6(const __u32 a[4])
{
	struct bl_ip ip;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	ip.hi = (__u64)a[1] << 32 | a[0];
	ip.lo = (__u64)a[3] << 32 | a[2];
#else
	ip.hi = (__u64)a[0] << 32 | a[1];
	ip.lo = (__u64)a[2] << 32 | a[3];
#endif
	return ip;
}

/**
 * bl_source_word - the Ethernet source address of a frame and the ethertype behind it, as they
 * stand in the frame: two frames with the same word have the same source, and are both IPv4, IPv6
 * or tagged.
 */
BL_CORE __u64 bl_source_word(const struct ethhdr *eth)
{
	return bl_raw64((const __u8 *)eth + sizeof(eth->h_dest));
}

/** bl_source_same_mac - whether two words, of which @a may be none, have the same address. */
BL_CORE int bl_source_same_mac(__u64 a, __u64 b)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return a != BL_SOURCE_NO_ETH && !((a ^ b) << 16);
#else
	return a != BL_SOURCE_NO_ETH && !((a ^ b) >> 16);
#endif
}

/** bl_source_mac_known - whether the Ethernet address is in the list. */
BL_CORE int bl_source_mac_known(const struct bl_sources *s, __u64 mac)
{
	__u32 k;

	for (k = 0; k < BL_SOURCE_MACS; k++)
		if (k < s->nmac && s->mac[k] == mac)
			return 1;
	return 0;
}

/**
 * bl_source_ip_known - whether the IP address @hi, @lo (struct bl_ip) is in the list. A function,
 * or the verifier would follow what comes after the search once for each length of the list.
 */
BL_CORE_CALLED int bl_source_ip_known(const struct bl_sources *s, __u64 hi, __u64 lo)
{
	__u32 k;

	if (!s)
		return 0;
	for (k = 0; k < BL_SOURCE_IPS; k++)
		if (k < s->nip && s->ip[k].lo == lo && s->ip[k].hi == hi)
			return 1;
	return 0;
}

/** bl_source_room - whether another IP address can be learnt. */
BL_CORE int bl_source_room(const struct bl_sources *s)
{
	return s->mode == BL_SOURCE_LEARN && s->nip < BL_SOURCE_IPS;
}

/** bl_source_learn_mac - append an Ethernet address. Returns 1, or 0 if there is no room. */
BL_CORE int bl_source_learn_mac(struct bl_sources *s, __u64 mac)
{
	__u32 n = s->nmac;

	if (s->mode != BL_SOURCE_LEARN || n >= BL_SOURCE_MACS)
		return 0;
	BL_OPAQUE(n); /* the verifier must see the mask at the access */
	n &= BL_SOURCE_MACS - 1;
	BL_WRITE_ONCE(s->mac[n], mac);
	BL_BARRIER();
	s->nmac = (__u16)(n + 1);
	return 1;
}

/** bl_source_learn_ip - append an IP address. Returns 1, or 0 if there is no room. */
BL_CORE int bl_source_learn_ip(struct bl_sources *s, struct bl_ip ip)
{
	__u32 n = s->nip;

	if (!bl_source_room(s))
		return 0;
	BL_OPAQUE(n);
	n &= BL_SOURCE_IPS - 1;
	BL_WRITE_ONCE(s->ip[n].hi, ip.hi);
	BL_WRITE_ONCE(s->ip[n].lo, ip.lo);
	BL_BARRIER();
	s->nip = (__u16)(n + 1);
	return 1;
}

/** enum bl_node_verdict - what becomes of a beacon whose node id is not that of its port. */
enum bl_node_verdict {
	BL_NODE_REFUSE, /* it is refused */
	/* it becomes the port's, unless another port of the switch has it */
	BL_NODE_CHANGE,
};

/**
 * bl_node_judge - whether a host's port may have another node id than before.
 * @pinned: the port's; 0: no beacon has arrived there yet, or nothing was heard for BL_NODE_KEEP
 * @said: in the beacon; not @pinned
 * @other, @since: what the last call has left here; 0 at first
 * @now: watch time in units of 2^BL_NODE_SHIFT ns
 *
 * Each change is reported to the controller and saved there, and what it decides of a node depends
 * on which port that is at. So a port keeps its node id until another one has been said for
 * BL_NODE_KEEP, and a beacon that was refused is tried again after as long: in between it costs a
 * comparison. The first id of a port is tried at once.
 */
BL_CORE enum bl_node_verdict bl_node_judge(__u32 pinned, __u32 said, __u32 *other, __u32 *since,
					   __u32 now)
{
	int first = !pinned && !*other, waited = now - *since >= BL_NODE_KEEP;

	if (!said)
		return BL_NODE_REFUSE;
	if (*other && !waited && (!pinned || *other == said))
		return BL_NODE_REFUSE;
	waited &= *other && (!pinned || *other == said);
	*other = said;
	*since = now;
	return first || waited ? BL_NODE_CHANGE : BL_NODE_REFUSE;
}

/**
 * bl_source_obey - empty the learnt lists if that was asked for; one comparison otherwise. Called
 * by the CPU of the port only. Returns 1 if they were emptied.
 */
BL_CORE int bl_source_obey(struct bl_sources *s)
{
	__u32 forget = BL_READ_ONCE(s->forget);

	if (__builtin_expect(s->forgot == forget, 1))
		return 0;
	BL_WRITE_ONCE(s->app_mac, 0);
	BL_WRITE_ONCE(s->app_ip4, 0);
	if (s->mode == BL_SOURCE_LEARN)
		s->nmac = s->nip = 0;
	BL_WRITE_ONCE(s->forgot, forget);
	return 1;
}

#endif
