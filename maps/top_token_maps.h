/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Map definitions of TOP at a switch, for BPF programs only; layouts: maps/top_token_abi.h. */
#ifndef BARLINE_TOKEN_MAPS_H
#define BARLINE_TOKEN_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/top_token_abi.h"

/* written by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_token_cfg);
} token_cfg SEC(".maps");

/* by port: how far its tokens are ahead */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bl_token_port);
} token_ports SEC(".maps");

/* by port */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bl_token_counts);
} token_counts SEC(".maps");

#endif
