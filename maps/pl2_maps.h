/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Map definitions of PL2 on a host. BPF side only; the values are in hold_abi.h. */
#ifndef BARLINE_PL2_MAPS_H
#define BARLINE_PL2_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/hold_abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_DESTS);
	__type(key, __u32);
	__type(value, struct bl_pl2_dest);
} pl2_dests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_DESTS);
	__type(key, __u32);
	__type(value, struct bl_pl2_coming);
} pl2_coming SEC(".maps");

#endif
