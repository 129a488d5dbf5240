/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The clock record as a map, for BPF programs only; layout: maps/clock_abi.h. */
#ifndef BARLINE_CLOCK_MAPS_H
#define BARLINE_CLOCK_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/clock_abi.h"

/* written by the keeper of the node; mmapped by daemons and processes */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_clock);
} clock SEC(".maps");

#endif
