/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The static forwarding table of a switch: from the addresses in its configuration to the buckets
 * of the map "sw_fdb".
 */
#ifndef BARLINE_LOADER_SWITCH_FDB_H
#define BARLINE_LOADER_SWITCH_FDB_H

#include "base/log.h"
#include "loader/node_cfg.h"
#include "maps/switch_abi.h"

/** bl_port_by_name - The number of the port with this interface name; -1: there is none. */
int bl_port_by_name(const struct bl_sw_port *ports, const char *name);

/**
 * bl_fdb_fill - Write the table of @cfg into the map.
 * @ports: [BL_SW_PORTS_MAX] the ports of the switch.
 * @fd: the map.
 *
 * Returns 0, or -errno with a sentence: an interface that is no port, a multicast or repeated
 * address (EINVAL), or too many addresses in one bucket (ENOSPC).
 */
int bl_fdb_fill(const struct bl_node_cfg *cfg, const struct bl_sw_port *ports, int fd,
		struct bl_err *err);

#endif
