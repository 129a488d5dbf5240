/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel and the record of a node say about the NICs of that node. */
#ifndef BARLINE_CLI_UTIL_NIC_FACTS_H
#define BARLINE_CLI_UTIL_NIC_FACTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/load/nic_drivers.h"
#include "loader/node.h"
#include "maps/nic_abi.h"

/** struct nic_facts - one interface of a node. */
struct nic_facts {
	char name[16];
	char driver[32];                 /* "": not known */
	const struct bl_nic_driver *row; /* what is known of the driver; NULL: nothing */
	struct bl_nic nic;               /* the node's record */
	bool generic;                    /* XDP is in generic mode */
	unsigned int rx_queues, tx_queues;
	char qdisc[16];    /* kind of the root; "": none */
	json_t *xps;       /* for each transmit queue its mask of CPUs, or null; NULL: not known */
	int xps_queues;    /* transmit queues that have a mask; -1: not known */
	int lro, gro_hw;   /* 1: on; 0: off; below: not known */
	int rxvlan;        /* the same: VLAN tags are taken off before XDP sees them */
	int rx_usecs;      /* interrupt coalescing; -1: not known */
	bool adaptive_rx;  /* the driver changes it with the load */
	int phc;           /* number of the NIC's PTP clock; -1: none, or not known */
	bool hw_rx, hw_tx; /* it timestamps in hardware */
	bool here;         /* the interface is in this network namespace, so the above is known */
};

/**
 * nic_records_each - calls @fn with the record of each interface of a node, except lo, and the name
 * that the interface has or had. Stops at the first value that is not 0 and returns it; 1 after a
 * message if the record cannot be read.
 */
int nic_records_each(const struct bl_node_ref *ref,
		     int (*fn)(const struct bl_nic *nic, const char *name, void *ctx), void *ctx);

/**
 * nic_facts_each - calls @fn for each interface of a node, except lo. Stops at the first value that
 * is not 0 and returns it; 1 after a message if the record cannot be read.
 */
int nic_facts_each(const struct bl_node_ref *ref, int (*fn)(const struct nic_facts *f, void *ctx),
		   void *ctx);

/** nic_side_text - how one direction keeps the order: "FIFO", "made", "BROKEN", ... */
const char *nic_side_text(unsigned int side);

/** nic_how_text - what barline has changed, as a list of words; "" for nothing. Returns @buf. */
char *nic_how_text(const struct bl_nic *nic, char *buf, unsigned int size);

/** nic_facts_text - all that the kernel says of a NIC that is here, in one line. Returns @buf. */
char *nic_facts_text(const struct nic_facts *f, char *buf, size_t size);

#endif
