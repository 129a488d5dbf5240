/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Map definitions of the host role, for BPF programs only; layouts: maps/host_abi.h. */
#ifndef BARLINE_HOST_MAPS_H
#define BARLINE_HOST_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/common_maps.h"
#include "maps/failure_abi.h"
#include "maps/host_abi.h"
#include "maps/hold_maps.h"
#include "maps/page_maps.h"
#include "maps/reliable_abi.h"

/* by enum bl_reason */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BL_REASON_MAX);
	__type(key, __u32);
	__type(value, struct bl_host_counts);
} counts SEC(".maps");

/* written by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_host_cfg);
} host_cfg SEC(".maps");

/* by CPU modulo BL_LINK_CPUS */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_LINK_CPUS);
	__type(key, __u32);
	__type(value, struct bl_link_sent);
} link_sent SEC(".maps");

/* fences for the NIC; written by the program bl_fence */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_fence_slot);
} host_orders SEC(".maps");

struct bl_page_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	/* clang leaves the type of an inner map's value out of the BTF. */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bl_ep_page));
};

/* by endpoint slot: its page; inserted by the daemon */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, BL_EPS_MAX);
	__type(key, __u32);
	__array(values, struct bl_page_map);
} ep_pages SEC(".maps");

/* what all processes may write */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_hints);
} hints SEC(".maps");

/* by port - port_base; written by the daemon */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_PORT_COUNT);
	__type(key, __u32);
	__type(value, struct bl_ep_slot);
} eps SEC(".maps");

struct bl_ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, BL_RING_BYTES);
};

/* by endpoint slot: its ring; inserted by the daemon */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, BL_EPS_MAX);
	__type(key, __u32);
	__array(values, struct bl_ring_map);
} rings SEC(".maps");

#endif
