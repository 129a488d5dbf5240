// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program that passes: a veth end drops what XDP redirects into its peer unless it runs NAPI,
 * which an XDP program turns on (DESIGN 6).
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
