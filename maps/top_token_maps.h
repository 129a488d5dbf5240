/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Map definitions of TOP at the switch. BPF side only; the values are in top_token_abi.h. */
#ifndef BARLINE_TOKEN_MAPS_H
#define BARLINE_TOKEN_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/top_token_abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_token_cfg);
} token_cfg SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bl_token_port);
} token_ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bl_token_counts);
} token_counts SEC(".maps");

#endif
