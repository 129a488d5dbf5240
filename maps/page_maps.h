/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The host page and the announcements of failures as maps, for BPF programs only; layouts:
 * maps/host_abi.h, maps/failure_abi.h.
 */
#ifndef BARLINE_PAGE_MAPS_H
#define BARLINE_PAGE_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/failure_abi.h"
#include "maps/host_abi.h"

/* barriers and registers; processes map it read-only */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_host_page);
} host_page SEC(".maps");

/* announcements of failures; written by the daemon */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_failures);
} failures SEC(".maps");

#endif
