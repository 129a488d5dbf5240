/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Map definitions of metered ports, for BPF programs only; layouts: maps/queue_abi.h. */
#ifndef BARLINE_PORT_MAPS_H
#define BARLINE_PORT_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/queue_maps.h"
#include "maps/switch_abi.h"

_Static_assert(BL_PORT_QUEUE(BL_SW_PORTS_MAX, 0) <= BL_QUEUES_MAX, "output queues outgrew the map");

/* by port: its rate; written by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bl_meter);
} sw_meters SEC(".maps");

/* by port: bit c: the queue of class c may have frames */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, __u64);
} port_busy SEC(".maps");

/* when each port may send its next frame */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_due);
} port_due SEC(".maps");

/* by port: its interface */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} port_tx SEC(".maps");

#endif
