/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Map definitions that both roles have. BPF side only. */
#ifndef BARLINE_COMMON_MAPS_H
#define BARLINE_COMMON_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/clock_abi.h"
#include "maps/meta_abi.h"
#include "maps/switch_abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_meta);
} meta SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_clock);
} clock SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_epoch);
} epoch SEC(".maps");

#endif
