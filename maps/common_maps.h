/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Map definitions that both roles share, for BPF programs only. The layouts of the values are in
 * the
 * *_abi.h of the same names; maps/meta_abi.h says what else to do when you add a map.
 */
#ifndef BARLINE_COMMON_MAPS_H
#define BARLINE_COMMON_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/auth_abi.h"
#include "maps/clock_maps.h"
#include "maps/hook_abi.h"
#include "maps/link_abi.h"
#include "maps/meta_abi.h"
#include "maps/switch_abi.h"

/* identity of the node; written by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_meta);
} meta SEC(".maps");

/* epoch of the controller and generation of the fences; written by the program bl_fence */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bl_epoch);
} epoch SEC(".maps");

/* by port: keys of the link; written by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_auth_link);
} auth_links SEC(".maps");

/* by port: stamps of the link */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct bl_auth_state);
} auth_states SEC(".maps");

/* by port (a host's NIC is 0): hooks of the interface; written by the loader and the daemon */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_HOOKS_MAX);
	__type(key, __u32);
	__type(value, struct bl_hook);
} hooks SEC(".maps");

/* by port: the chained program; written by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} next_progs SEC(".maps");

/* by port: what beacons say of the link */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_link);
} link_seen SEC(".maps");

/* by port: what the daemon makes of it; programs do not read it */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BL_SW_PORTS_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct bl_link_view);
} link_views SEC(".maps");

#endif
