// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A lossy link, for `barline lab run --loss`: drops a share of the frames that arrive at a host,
 * whatever they are (data, acknowledgements, beacons, ARP), and passes the others to the host's own
 * program by a tail call.
 *
 * Example: below = 42949673 drops one frame of 100.
 *
 * Not here: losses in bursts, and losses on the way out.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* A frame is dropped if a random number of 32 bits is below this one; set by the loader. */
const volatile __u32 below;
__u64 lost; /* frames dropped */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} next SEC(".maps");

SEC("xdp")
int bl_loss(struct xdp_md *ctx)
{
	if (bpf_get_prandom_u32() < below) {
		__sync_fetch_and_add(&lost, 1);
		return XDP_DROP;
	}
	bpf_tail_call(ctx, &next, 0);
	return XDP_ABORTED; /* The host's program is not in the map. */
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
