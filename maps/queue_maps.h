/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Map definitions of queues and of a node's side of the pacer, for BPF programs only; layouts:
 * maps/queue_abi.h and maps/pace_abi.h. Both roles have these maps. The loader makes slots,
 * free_slots, queues and queue_hist as large as the node's role and configuration need them.
 */
#ifndef BARLINE_QUEUE_MAPS_H
#define BARLINE_QUEUE_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/pace_abi.h"

/* by slot number */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SLOTS);
	__type(key, __u32);
	__type(value, struct bl_slot);
} slots SEC(".maps");

/* numbers of free slots; filled by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, BL_SLOTS);
	__type(value, __u32);
} free_slots SEC(".maps");

/* by BL_HOLD_QUEUE or BL_PORT_QUEUE */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_QUEUES_MAX);
	__type(key, __u32);
	__type(value, struct bl_queue);
} queues SEC(".maps");

/* by the same key */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_QUEUES_MAX);
	__type(key, __u32);
	__type(value, struct bl_queue_hist);
} queue_hist SEC(".maps");

/* counters of the pacer; mmapped by the daemon */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_pace_page);
} pace_page SEC(".maps");

/* wakes a sleeping pacer; holds no records */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* the loader enlarges it where pages are larger */
} pace_bell SEC(".maps");

#endif
