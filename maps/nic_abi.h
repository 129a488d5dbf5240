/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What barline has changed on a NIC to make it one FIFO, and what was there before. The record is
 * pinned beside the node's other maps, so that it outlives a daemon that is killed: whoever
 * detaches the node, or starts it again, finds what is to be put back.
 *
 * A bit of @done is written before the change that it stands for, and cleared after the change has
 * been undone. So a bit may stand for a change that was not made, and undoing looks first whether
 * the NIC carries the change.
 */
#ifndef BARLINE_NIC_ABI_H
#define BARLINE_NIC_ABI_H

#include <linux/types.h>

#include "maps/host_abi.h"

/*
 * array: 0 on a host, the port's number on a switch -> struct bl_nic. Entry 1 of a host is its lo.
 * The entries of a switch from BL_SW_PORTS_MAX on are records of interfaces whose number another
 * port has got, until what was changed on them is put back.
 */
#define BL_MAP_NIC     "nic"

#define BL_NIC_MAGIC   0x4e494331 /* "NIC1" */
#define BL_NIC_VERSION 1
#define BL_NIC_RULES   16   /* flow rules at most */
#define BL_NIC_RSS     2048 /* entries of an indirection table at most */
#define BL_NIC_LIMIT   1000 /* frames that a FIFO holds at least: the kernel's txqueuelen */

/* Handles of the queueing disciplines that barline makes. */
#define BL_NIC_H_MQ    0xb4100000U                    /* mq, in place of the kernel's own mq */
#define BL_NIC_H_BANDS (BL_TX_PRIORITY & 0xffff0000U) /* the two bands */
#define BL_NIC_H_FIFO  0xb4120000U /* pfifo in band 1: ordered frames and beacons */
#define BL_NIC_H_REST  0xb4130000U /* what was there before, in band 2 */

/* Bits of struct bl_nic.done. */
enum bl_nic_done {
	BL_NIC_BANDS = 1 << 0,     /* two bands in place of the root, or of an mq's first queue */
	BL_NIC_MQ = 1 << 1,        /* the root is barline's mq; before, it was the kernel's */
	BL_NIC_QUEUE = 1 << 2,     /* a filter of clsact picks the transmit queue */
	BL_NIC_CLSACT = 1 << 3,    /* there was no clsact */
	BL_NIC_LRO = 1 << 4,       /* large receive offload was on */
	BL_NIC_GRO_HW = 1 << 5,    /* GRO in hardware was on */
	BL_NIC_CHANNELS = 1 << 6,  /* the NIC had @channels queues, now it has one */
	BL_NIC_FLOWS = 1 << 7,     /* flow rules steer ordered frames to receive queue 0 */
	BL_NIC_TABLE = 1 << 8,     /* the indirection table names receive queue 0 only */
	BL_NIC_THREADED = 1 << 10, /* the NAPI was not threaded, now it is */
	BL_NIC_PINNED = 1 << 11,   /* the threads of the NAPI are kept on CPU @napi_cpu */
	BL_NIC_VLAN = 1 << 12,     /* the hardware took VLAN tags off what it received */
	BL_NIC_STAG = 1 << 13,     /* and those of 802.1ad */
};

/* How one direction of a NIC keeps the order. */
enum bl_nic_fifo {
	BL_NIC_UNKNOWN, /* not looked at yet: the NIC is down and has no queueing discipline */
	BL_NIC_IS_FIFO, /* it was one FIFO already */
	BL_NIC_MADE,    /* barline has made it one; @done says how */
	BL_NIC_BROKEN,  /* it is none, and the operator accepted that; @why says what is missing */
	BL_NIC_APART,   /* switch, transmit: nothing ordered leaves by the kernel's queues */
};

#define BL_NIC_HOST 2 /* entries of a host's map: its NIC, and lo */

/** struct bl_nic - a value of "nic". Written by the daemon, read by it and by commands. */
struct bl_nic {
	__u32 magic;              /* BL_NIC_MAGIC; 0: nothing was recorded yet */
	__u16 version;            /* BL_NIC_VERSION */
	__u16 size;               /* sizeof(struct bl_nic) */
	__u32 ifindex;            /* of the NIC, in the network namespace of the node */
	__u32 done;               /* enum bl_nic_done */
	__u8 tx, rx;              /* enum bl_nic_fifo */
	__u8 strict;              /* the bands are "prio", because the kernel has no "ets" */
	__u8 seen;                /* how the transmit side looked when @tx was set (nic_tx.c) */
	__u32 limit;              /* frames that the FIFO holds */
	__u32 channels;           /* BL_NIC_CHANNELS: combined channels before */
	__u32 nrules;             /* BL_NIC_FLOWS: number of @rule */
	__u32 rule[BL_NIC_RULES]; /* their places; RX_CLS_LOC_ANY: the driver was to pick one */
	__u32 nrss;               /* BL_NIC_TABLE: entries of @rss */
	__u16 rss[BL_NIC_RSS];    /* the indirection table of before */
	char rest[16];            /* kind of the discipline of before; "": there was none */
	__u16 port_base;          /* BL_NIC_FLOWS: the ports that the rules are for */
	__u16 port_count;
	__u64 repaired; /* times that the daemon has made something again that others had removed */
	char why[192];  /* BL_NIC_BROKEN: what is missing, in one sentence */
	__u32 napi_cpu; /* BL_NIC_PINNED: the CPU */
	/*
	 * The permanent address, by which a NIC is known in every network namespace and under every
	 * name; 0: it has none, as most virtual devices.
	 */
	__u8 mac[6];
	__u8 reserved_end[6];
	char name[16]; /* name of the interface, and of its pins */
};
_Static_assert(sizeof(struct bl_nic) == 4448, "ABI");
_Static_assert(__builtin_offsetof(struct bl_nic, rule) == 32, "ABI");
_Static_assert(__builtin_offsetof(struct bl_nic, rss) == 100, "ABI");
_Static_assert(__builtin_offsetof(struct bl_nic, repaired) == 4216, "ABI");

#endif
