/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Has a NIC deliver ordered frames on one receive queue, and turns off what merges frames before
 * XDP sees them; puts back what was there before. nic_rx.c says how.
 */
#ifndef BARLINE_NIC_RX_H
#define BARLINE_NIC_RX_H

#include <linux/ethtool.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/iface.h"
#include "base/log.h"
#include "maps/nic_abi.h"

/** struct bl_rx_want - what the NIC is to do. */
struct bl_rx_want {
	uint16_t port_base, port_count; /* UDP ports of ordered traffic */
	bool one_queue; /* it may be set to one channel where its driver can do nothing else */
};

/**
 * bl_rx_rules - the flow rules for beacons and for UDP over IPv4 and IPv6 to a range of ports, to
 * receive queue 0. A range takes a rule for each of its aligned blocks. No system calls.
 *
 * Returns the number of rules, or -E2BIG: the range takes more than @max.
 */
int bl_rx_rules(uint16_t base, uint16_t count, struct ethtool_rx_flow_spec *v, unsigned int max);

/**
 * bl_rx_before - turns off the offloads that XDP does not go with, and sets one channel if @w wants
 * that and the driver has nothing else. Called before a program is attached. @save: as for
 * bl_tx_make(). Returns 0 or -errno.
 */
int bl_rx_before(const struct bl_iface *i, struct bl_nic *nic, const struct bl_rx_want *w,
		 int (*save)(const struct bl_nic *nic, void *ctx), void *ctx, struct bl_err *err);

/**
 * bl_rx_make - has ordered frames come in on one receive queue, or finds that they do.
 * Returns 0 and sets @nic->rx; -EPERM: they do not, @err says why.
 */
int bl_rx_make(const struct bl_iface *i, struct bl_nic *nic, const struct bl_rx_want *w,
	       int (*save)(const struct bl_nic *nic, void *ctx), void *ctx, struct bl_err *err);

/**
 * bl_rx_kept - whether what bl_rx_make() found or made is still there; after BL_NIC_BROKEN, whether
 * it is still broken.
 */
bool bl_rx_kept(const struct bl_iface *i, const struct bl_nic *nic);

/** bl_rx_undo - puts back what was there before. What somebody changed meanwhile stays. */
void bl_rx_undo(const struct bl_iface *i, struct bl_nic *nic);

#endif
