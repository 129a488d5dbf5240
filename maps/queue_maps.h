/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Map definitions of queues and of a node's side of the pacer. BPF side only; the values are in
 * queue_abi.h and pace_abi.h. BL_QUEUES: how many queues the role has at most.
 */
#ifndef BARLINE_QUEUE_MAPS_H
#define BARLINE_QUEUE_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/pace_abi.h"

/* The loader may make slots, free_slots, queues and queue_hist smaller. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SLOTS);
	__type(key, __u32);
	__type(value, struct bl_slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, BL_SLOTS);
	__type(value, __u32);
} free_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_QUEUES_MAX);
	__type(key, __u32);
	__type(value, struct bl_queue);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_QUEUES_MAX);
	__type(key, __u32);
	__type(value, struct bl_queue_hist);
} queue_hist SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_pace_page);
} pace_page SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* the loader enlarges it where pages are larger */
} pace_bell SEC(".maps");

#endif
