/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Map definitions of the switch role, for BPF programs only; layouts: maps/switch_abi.h. */
#ifndef BARLINE_SWITCH_MAPS_H
#define BARLINE_SWITCH_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/common_maps.h"
#include "maps/port_maps.h"

/* by enum bl_reason */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BL_REASON_MAX);
	__type(key, __u32);
	__type(value, struct bl_sw_counts);
} counts SEC(".maps");

/* written by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_sw_cfg);
} sw_cfg SEC(".maps");

/* by interface index: port + 1, or 0; written by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024); /* the loader enlarges it: interface index -> port + 1 */
	__type(key, __u32);
	__type(value, __u32);
} sw_ifindex SEC(".maps");

/* by port; written by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_sw_port);
} sw_ports SEC(".maps");

/* by port: its registers */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_port_regs);
} sw_regs SEC(".maps");

/* by BL_TREE_KEY */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_LANES_MAX *BL_SETS_MAX); /* BL_TREE_KEY */
	__type(key, __u32);
	__type(value, struct bl_tree);
} sw_trees SEC(".maps");

/* by lane */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_LANES_MAX);
	__type(key, __u32);
	__type(value, struct bl_sw_lane);
} sw_lanes SEC(".maps");

/* by port: fences; written by the program bl_fence */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bl_fence_slot);
} sw_orders SEC(".maps");

/* by port: neighbour and deaths */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bl_life);
} sw_lives SEC(".maps");

/* by port: exclusions for lagging */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bl_lag);
} sw_lags SEC(".maps");

/* by port: addresses that live there */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_sources);
} sw_sources SEC(".maps");

/* IP address: the port that it belongs to */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BL_OWNERS_MAX);
	__type(key, struct bl_ip);
	__type(value, struct bl_owner);
} sw_owners SEC(".maps");

/* by port: quotas of control frames */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bl_quotas);
} sw_quotas SEC(".maps");

/* by port: highest barriers sent */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bl_carried);
} sw_carried SEC(".maps");

/* static table for L2 forwarding, by bl_fdb_hash(); written by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_FDB_BUCKETS);
	__type(key, __u32);
	__type(value, struct bl_fdb_bucket);
} sw_fdb SEC(".maps");

/* by port: its interface and the program for clones */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} sw_tx SEC(".maps");

/* by CPU: the program for frames steered to it; the loader sizes it by the number of CPUs */
struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
} sw_home SEC(".maps");

/* by port: frames steered to the CPU that owns its lane */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bl_steering);
} sw_homing SEC(".maps");

#endif
