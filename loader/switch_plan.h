/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a switch will be, worked out before anything is changed: the numbers, lanes and sets of its
 * ports, its configuration record, and whether that regroups the one that runs.
 */
#ifndef BARLINE_LOADER_SWITCH_PLAN_H
#define BARLINE_LOADER_SWITCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/iface.h"
#include "base/log.h"
#include "loader/node_cfg.h"
#include "maps/switch_abi.h"

struct bl_node;

/** struct bl_switch_plan - what the maps will hold. Arrays are indexed by port number. */
struct bl_switch_plan {
	const struct bl_node_cfg *cfg;
	struct bl_iface iface[BL_SW_PORTS_MAX];
	struct bl_sw_port port[BL_SW_PORTS_MAX];
	int cpu[BL_SW_PORTS_MAX];
	struct bl_sw_cfg sw;
	uint32_t max_ifindex;
	uint32_t steering_most; /* see struct bl_steering */
	/* of the running switch, if there is one */
	struct bl_sw_port old_port[BL_SW_PORTS_MAX];
	struct bl_sw_cfg old_sw;
	struct bl_sw_lane old_lane[BL_LANES_MAX];
	struct bl_port_regs old_regs[BL_SW_PORTS_MAX];
	bool live;    /* set by the caller: ports come and go while the programs stay */
	bool regroup; /* the trees mean something else than before */
	bool fresh;
	bool frags; /* a port's frames may take several buffers */
};

/**
 * bl_switch_plan - Fill in @p, which is all zero but for @live, for the configuration @cfg of the
 * node @n. Reads the maps of the switch that runs, unless @n is fresh, and writes none.
 *
 * Returns 0, or -errno with a sentence: a port that is listed twice, has no role or does not exist,
 * a CPU that does not exist (EINVAL), no free port number (ENOSPC); with @live also a change that
 * takes a restart (EPERM), and more ports than the running switch has room for (ENOSPC).
 */
int bl_switch_plan(const struct bl_node *n, const struct bl_node_cfg *cfg, struct bl_switch_plan *p,
		   struct bl_err *err);

/**
 * bl_switch_limits - writes into @sw what changes live: how long inputs may be silent and lag, and
 * how many control frames they may send. The defaults of @c are filled in.
 */
void bl_switch_limits(const struct bl_node_cfg *c, struct bl_sw_cfg *sw);

#endif
