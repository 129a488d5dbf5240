/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Defaults and bounds of a node's configuration. */
#ifndef BARLINE_DEFAULTS_H
#define BARLINE_DEFAULTS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "maps/hook_abi.h"

struct bl_node_cfg;
struct bl_iface;

/** bl_node_defaults - fills in what is 0. */
void bl_node_defaults(struct bl_node_cfg *c);

/** bl_node_cfg_check - returns 0, or -errno if a value is out of bounds. Defaults are filled in. */
int bl_node_cfg_check(const struct bl_node_cfg *c, struct bl_err *err);

/** bl_node_xdp_check - returns 0, or -EINVAL if dispatchers and chains are mixed. */
int bl_node_xdp_check(const struct bl_node_cfg *c, struct bl_err *err);

/** bl_node_ahead_ns - how far ahead of their clocks silent hosts promise; 0: not at all. */
uint64_t bl_node_ahead_ns(const struct bl_node_cfg *c);

/** bl_node_lag_max_us - lag_max, if it is not configured, of a rack with this dead_after. */
uint32_t bl_node_lag_max_us(uint32_t dead_after_us);

/** bl_port_chain - what `chain:` says for a port of a switch: the port's value, or the node's. */
const char *bl_port_chain(const struct bl_node_cfg *c, const char *ifname);

/**
 * bl_node_iface_check - returns 0, or a negative error if the node cannot run on @i: -EMSGSIZE or,
 * if a newer kernel could, -EOPNOTSUPP because of its MTU; -EPERM or -EOPNOTSUPP because of the
 * kind of device that it is (load/lower.h).
 */
int bl_node_iface_check(const struct bl_node_cfg *c, const struct bl_iface *i, struct bl_err *err);

/** bl_node_frags - how the node's programs take frames of several buffers, if @frags says so. */
enum bl_hook_frags bl_node_frags(const struct bl_node_cfg *c, bool frags);

/** bl_node_plain - whether the node has neither admission nor authentication of links. */
bool bl_node_plain(const struct bl_node_cfg *c);

/**
 * bl_node_cpus - the CPUs that the node's datapath has by its configuration: `cpus`, or CPU 0 of a
 * switch, and that of the pacer. A host without `cpus` has those of its NIC's transmit queue, too.
 */
void bl_node_cpus(const struct bl_node_cfg *c, cpu_set_t *set);

/** bl_node_chains - whether any interface of the node has a chained program. */
bool bl_node_chains(const struct bl_node_cfg *c);

#endif
