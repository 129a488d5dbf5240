// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An XDP program that passes every frame. A veth end drops what XDP redirects into its peer unless
 * it runs NAPI, and attaching an XDP program turns NAPI on. The lab attaches this one to ends that
 * need no program of their own.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int bl_pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
