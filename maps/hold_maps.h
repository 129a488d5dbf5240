/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Map definitions of admission on a host. BPF side only; the values are in hold_abi.h. */
#ifndef BARLINE_HOLD_MAPS_H
#define BARLINE_HOLD_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/beacon_abi.h"
#include "maps/hold_abi.h"
#include "maps/queue_maps.h"

_Static_assert(BL_DESTS *BL_HOLD_CLASSES <= BL_QUEUES_MAX, "hold queues outgrew the map");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_hold_cfg);
} hold_cfg SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BL_DESTS);
	__type(key, struct bl_mac_key);
	__type(value, __u32);
} hold_dests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_DESTS);
	__type(key, __u32);
	__type(value, struct bl_hold_dest);
} hold_macs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, BL_DESTS);
	__type(value, __u32);
} hold_free SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_due);
} hold_due SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, BL_TX_COUNT);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} hold_tx SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_beat);
} pace_beat SEC(".maps");

#endif
