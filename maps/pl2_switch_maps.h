/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Map definitions of PL2 at a switch, for BPF programs only; layouts: maps/pl2_switch_abi.h. */
#ifndef BARLINE_RESERVE_MAPS_H
#define BARLINE_RESERVE_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/pl2_switch_abi.h"

/* written by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_rsv_cfg);
} rsv_cfg SEC(".maps");

/* promises by port, under one lock */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_rsv);
} rsv SEC(".maps");

/* by in << pair_shift | out; under the lock of "rsv" */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	/* the loader makes it 1 << 2 * pair_shift */
	__uint(max_entries, BL_SW_PORTS_MAX *BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bl_rsv_pair);
} rsv_pairs SEC(".maps");

#endif
