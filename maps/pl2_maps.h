/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Map definitions of PL2 on a host, for BPF programs only; layouts: maps/hold_abi.h. */
#ifndef BARLINE_PL2_MAPS_H
#define BARLINE_PL2_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/hold_abi.h"

/* by number of the destination: its reservation */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_DESTS);
	__type(key, __u32);
	__type(value, struct bl_pl2_dest);
} pl2_dests SEC(".maps");

/* by number of the sender: announced bursts */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_DESTS);
	__type(key, __u32);
	__type(value, struct bl_pl2_coming);
} pl2_coming SEC(".maps");

#endif
