// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A lossy link, for `barline lab run --loss`: drops a share of the frames that come to a host, and
 * hands the others to the host's own program. Whatever it is: data, acknowledgements, beacons, ARP.
 *
 * Example: below = 42949673: one frame of 100 is dropped.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile __u32 below; /* of 2^32 */
__u64 lost;

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
	return XDP_ABORTED; /* the host's program is gone */
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
