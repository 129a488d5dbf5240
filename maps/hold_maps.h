/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Map definitions of admission on a host, for BPF programs only; layouts: maps/hold_abi.h. */
#ifndef BARLINE_HOLD_MAPS_H
#define BARLINE_HOLD_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/beacon_abi.h"
#include "maps/hold_abi.h"
#include "maps/queue_maps.h"

_Static_assert(BL_DESTS *BL_HOLD_CLASSES <= BL_QUEUES_MAX, "hold queues outgrew the map");

/* written by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_hold_cfg);
} hold_cfg SEC(".maps");

/* destination -> number */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BL_DESTS);
	__type(key, struct bl_mac_key);
	__type(value, __u32);
} hold_dests SEC(".maps");

/* by number: its owner */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_DESTS);
	__type(key, __u32);
	__type(value, struct bl_hold_dest);
} hold_macs SEC(".maps");

/* numbers that were given back */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, BL_DESTS);
	__type(value, __u32);
} hold_free SEC(".maps");

/* when a frame of each number is due */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_due);
} hold_due SEC(".maps");

/* the NIC and bl0d, by enum bl_hold_tx */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, BL_TX_COUNT);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} hold_tx SEC(".maps");

/* state of the beacons, where the pacer sends them */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_beat);
} pace_beat SEC(".maps");

#endif
