/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Map definitions of TOP on a host, for BPF programs only; layouts: maps/top_host_abi.h. */
#ifndef BARLINE_TOP_MAPS_H
#define BARLINE_TOP_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/top_host_abi.h"

/* written by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_top_cfg);
} top_cfg SEC(".maps");

/* flow -> number */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BL_DESTS);
	__type(key, struct bl_top_key);
	__type(value, __u32);
} top_flows SEC(".maps");

/* by number: a flow that is sent */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_DESTS);
	__type(key, __u32);
	__type(value, struct bl_top_tx);
} top_tx SEC(".maps");

/* by number: its frames that may be sent again */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_DESTS);
	__type(key, __u32);
	__type(value, struct bl_top_kept);
} top_kept SEC(".maps");

/* sender and number -> place */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BL_TOP_RX_MAX);
	__type(key, struct bl_top_rx_key);
	__type(value, __u32);
} top_rx_of SEC(".maps");

/* by place: a flow that is received */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_TOP_RX_MAX);
	__type(key, __u32);
	__type(value, struct bl_top_rx);
} top_rx SEC(".maps");

/* by number of the coflow */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BL_TOP_RX_MAX);
	__type(key, __u32);
	__type(value, struct bl_top_coflow);
} top_coflows SEC(".maps");

/* by bl_top_hint_hash(); written by applications */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_TOP_HINTS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_top_hint);
} top_hints SEC(".maps");

/* the receiver's side of the pacer */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_top_page);
} top_page SEC(".maps");

#endif
