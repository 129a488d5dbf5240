// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The XDP program of somebody else, for the case chain: it drops UDP to port 9 over IPv4, passes
 * everything else, and counts in "seen" what it has passed [0], dropped [1], and what is barline's
 * [2]: beacons, and UDP to its ports.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "maps/wire_abi.h"

enum { PASSED, DROPPED, ORDERED };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

static void count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&seen, &what);

	if (n)
		__sync_fetch_and_add(n, 1);
}

SEC("xdp")
int firewall(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);
	__u16 port;

	if ((void *)(eth + 1) > end)
		return XDP_PASS;
	if (eth->h_proto == bpf_htons(BL_ETHERTYPE))
		count(ORDERED);
	if (eth->h_proto == bpf_htons(ETH_P_IP) && (void *)(udp + 1) <= end && ip->ihl == 5 &&
	    ip->protocol == IPPROTO_UDP) {
		port = bpf_ntohs(udp->dest);
		if (port == 9) {
			count(DROPPED);
			return XDP_DROP;
		}
		if (port >= BL_PORT_BASE && port < BL_PORT_BASE + BL_PORT_COUNT)
			count(ORDERED);
	}
	count(PASSED);
	return XDP_PASS;
}
