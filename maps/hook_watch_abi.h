/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the daemon finds on the hooks of a node's interfaces once per second: barline's program, no
 * program, or somebody else's. The record is pinned beside the node's other maps, so that commands
 * can read it and a daemon that starts again goes on counting.
 *
 * Example: `bpftool link detach id 12` takes barline's XDP program off eth1. Within a second the
 * daemon finds the hook empty, attaches the program again, and removed and repaired are 1. If
 * another program had been attached meanwhile, state would be BL_HOOK_OTHERS, other_id its id, and
 * repaired 0: the daemon does not replace programs of others.
 */
#ifndef BARLINE_HOOK_WATCH_ABI_H
#define BARLINE_HOOK_WATCH_ABI_H

#include <linux/types.h>

/* array: the port's number on a switch, enum bl_hook_place on a host -> struct bl_hook_watch */
#define BL_MAP_HOOK_WATCH     "hook_watch"

#define BL_HOOK_WATCH_MAGIC   0x484b5731 /* "HKW1" */
#define BL_HOOK_WATCH_VERSION 2

enum bl_hook_place {
	BL_HOOK_NIC,
	BL_HOOK_LO,
	BL_HOOK_BL0,  /* only with admission */
	BL_HOOK_BL0D, /* likewise */
	BL_HOOK_PLACES,
};

enum bl_hook_side {
	BL_HOOK_XDP,     /* of the interface; a host's lo has none */
	BL_HOOK_EGRESS,  /* tc egress: tcx, or a filter of clsact; bl0d has none */
	BL_HOOK_INGRESS, /* tc ingress, likewise: of a host's NIC and bl0 with admission */
	BL_HOOK_SIDES,
};

enum bl_hook_state {
	BL_HOOK_UNKNOWN, /* not looked at yet */
	BL_HOOK_OURS,    /* barline's program is attached, and runs first */
	BL_HOOK_EMPTY,   /* somebody has removed it, and it is not attached again yet */
	BL_HOOK_OTHERS,  /* another program is in its place, which is left alone */
	BL_HOOK_BEHIND,  /* it is attached, but another program of tcx runs before it */
	/*
	 * It is attached, and runs first, but another program of tcx runs behind it and decides
	 * whether the filter that picks the transmit queue is asked (loader/load/nic_tx.c).
	 */
	BL_HOOK_FOLLOWED,
};

/** struct bl_hook_seen - one hook of an interface. Times are of CLOCK_MONOTONIC. */
struct bl_hook_seen {
	__u32 state;    /* enum bl_hook_state */
	__u32 other_id; /* OTHERS, BEHIND, FOLLOWED: id of that program; 0: not known */
	__u64 since_ns; /* when @state was found first */
	__u64 removed;  /* times that the program was found missing or replaced */
	__u64 repaired; /* times that the daemon has attached it again */
	__u64 paid_ns;  /* quota of repairs: the word of bl_quota_take() */
};

/** struct bl_hook_watch - a value of "hook_watch". Written by the daemon alone. */
struct bl_hook_watch {
	__u32 magic;   /* BL_HOOK_WATCH_MAGIC; 0: nothing was recorded yet */
	__u16 version; /* BL_HOOK_WATCH_VERSION */
	__u16 size;    /* sizeof(struct bl_hook_watch) */
	__u32 ifindex; /* of the interface; another one means that the record is of a former one */
	__u32 spare;   /* 0 */
	struct bl_hook_seen side[BL_HOOK_SIDES];
};
_Static_assert(sizeof(struct bl_hook_seen) == 40, "ABI");
_Static_assert(sizeof(struct bl_hook_watch) == 136, "ABI");
_Static_assert(__builtin_offsetof(struct bl_hook_watch, side) == 16, "ABI");

#endif
