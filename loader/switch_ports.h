/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ports that come and go while a switch runs; switch_ports.c says how. */
#ifndef BARLINE_LOADER_SWITCH_PORTS_H
#define BARLINE_LOADER_SWITCH_PORTS_H

#include <stdint.h>

#include "base/log.h"
#include "loader/node_cfg.h"
#include "loader/switch_plan.h"
#include "maps/switch_abi.h"

struct bl_node;

/** struct bl_port_maps - descriptors of the maps that keep something of each port. */
struct bl_port_maps {
	int counts, token_counts, carried, lags, links, lives;
};

/** bl_port_regs_new - the registers of a port where nothing has been heard. */
struct bl_port_regs bl_port_regs_new(void);

/**
 * bl_port_forget - clears what number @port counted and remembers for another interface. Returns 0
 * or -errno.
 */
int bl_port_forget(const struct bl_port_maps *m, uint32_t port, struct bl_err *err);

/**
 * bl_port_release - takes barline's programs off the interface @name, which was port @port, and
 * puts back what was changed there. In the node's network namespace. @port: -1 if another interface
 * has that number already. Returns 0 or -errno.
 */
int bl_port_release(const char *dir, int port, const char *name, uint32_t ifindex,
		    struct bl_err *err);

/**
 * bl_ports_plan - works out which ports come and go if the running switch @n is to have those of
 * @now, whose defaults are filled in. Changes nothing.
 * *@out: freed by the caller; NULL if no port comes or goes.
 * Returns 0 or -errno; -EPERM: that takes a restart; -EBUSY: a port that is to leave is in use.
 */
int bl_ports_plan(struct bl_node *n, const struct bl_node_cfg *now, struct bl_switch_plan **out,
		  struct bl_err *err);

/** bl_ports_add - makes the new ports of the plan. Returns 0, or -errno and none was made. */
int bl_ports_add(struct bl_node *n, const struct bl_switch_plan *p, struct bl_err *err);

/** bl_ports_undo - removes the ports that bl_ports_add() has made. */
void bl_ports_undo(struct bl_node *n, const struct bl_switch_plan *p);

/** bl_ports_remove - removes the ports that the plan does not have. Returns 0 or -errno. */
int bl_ports_remove(struct bl_node *n, const struct bl_switch_plan *p, struct bl_err *err);

#endif
