/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A node's hooks on its interfaces, by port (a host's NIC is 0): which XDP program of somebody else
 * gets the frames that are not barline's, and what is put back on detach.
 *
 * Example: eth1 carried a firewall (id 41) when `barlined host --chain attached` started. next_id
 * and back_id are 41, back_flags is XDP_FLAGS_DRV_MODE; entry 0 of "next_progs" holds the program,
 * and the pin maps/back-0 keeps it. An ARP request ends in bpf_tail_call() to it and is counted as
 * chained. `barline host detach` attaches 41 again.
 *
 * The entries from BL_SW_PORTS_MAX on are of interfaces whose number another port has got in the
 * same step; of those, only what is put back counts.
 */
#ifndef BARLINE_HOOK_ABI_H
#define BARLINE_HOOK_ABI_H

#include <linux/types.h>

#include "maps/switch_abi.h"

#define BL_MAP_HOOKS      "hooks"               /* array: port -> struct bl_hook */
#define BL_HOOKS_MAX      (2 * BL_SW_PORTS_MAX) /* entries of "hooks" */
#define BL_MAP_NEXT_PROGS "next_progs" /* array of programs: port -> the program of @next_id */

/* Whether the node's programs take frames of several buffers. */
enum bl_hook_frags {
	BL_HOOK_FRAGS_NONE,
	BL_HOOK_FRAGS_FLAG, /* yes: they are loaded with BPF_F_XDP_HAS_FRAGS */
	/* yes, without the flag: the dispatcher of libxdp that they run in has it */
	BL_HOOK_FRAGS_DISPATCHER,
};

/**
 * struct bl_hook - value of "hooks". Written by the loader and the daemon; the XDP program reads
 * @next_id.
 */
struct bl_hook {
	/*
	 * XDP program that frames go to which are not barline's; 0: the kernel. Written after the
	 * entry of "next_progs" is filled, and cleared before that is emptied.
	 */
	__u32 next_id;
	__u32 back_id;      /* program that was attached before; put back on detach; 0: none */
	__u32 back_flags;   /* XDP_FLAGS_* that it was attached with */
	__u32 back_ifindex; /* the interface that it was attached to */
	__u32 frags;        /* enum bl_hook_frags */
	__u32 spare;        /* 0 */
};
_Static_assert(sizeof(struct bl_hook) == 24, "ABI");

#endif
