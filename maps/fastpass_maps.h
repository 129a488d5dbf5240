/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Map definitions of Fastpass on a host, for BPF programs only; layouts: maps/fastpass_abi.h. */
#ifndef BARLINE_FP_MAPS_H
#define BARLINE_FP_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/fastpass_abi.h"
#include "maps/hold_abi.h"

/* by number of the destination */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_DESTS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_fp_dest);
} fp_dests SEC(".maps");

/* shared with the daemon's thread */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_fp_page);
} fp_page SEC(".maps");

/* by endpoint; frames sent and received by path */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* sized by the loader */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_fp_paths);
} fp_paths SEC(".maps");

/* application address -> 1 + number of its endpoint; written by the daemon */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* sized by the loader */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct bl_mac_key);
	__type(value, __u32);
} fp_peers SEC(".maps");

/* wakes the daemon's thread; holds no records */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* sized by the loader: one page */
} fp_bell SEC(".maps");

#endif
