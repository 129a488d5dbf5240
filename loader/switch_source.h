/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The source guard of a switch: the configured addresses of its ports, and forgetting learnt
 * addresses of ports whose host has gone (maps/source_abi.h).
 */
#ifndef BARLINE_LOADER_SWITCH_SOURCE_H
#define BARLINE_LOADER_SWITCH_SOURCE_H

#include <stdbool.h>

#include <bpf/libbpf.h>

#include "base/log.h"
#include "loader/node_cfg.h"
#include "maps/switch_abi.h"

struct bl_node;

/**
 * bl_source_mode - how the addresses of a port become known: as configured, otherwise
 * BL_SOURCE_LEARN for a host's port within the rack, and BL_SOURCE_ANY for all others.
 */
enum bl_source_mode bl_source_mode(const struct bl_port_cfg *c);

/**
 * bl_sources_fill - Write the addresses of all ports into the maps. A port that had this name and
 * learnt its addresses before keeps them.
 * @old, @ports: [BL_SW_PORTS_MAX] the ports of the running switch and of the new one.
 * @sources, @owners: the maps "sw_sources" and "sw_owners".
 *
 * Returns 0, or -errno with a sentence; EINVAL: two ports are given the same address.
 */
int bl_sources_fill(const struct bl_node_cfg *cfg, const struct bl_sw_port *old,
		    const struct bl_sw_port *ports, int sources, int owners, struct bl_err *err);

/**
 * bl_sources_watch - Forget, from now on, the learnt addresses of ports at which nothing was heard
 * for BL_SOURCE_KEEP_S seconds, so that another host can be connected there, and the addresses can
 * be used elsewhere. Returns 0, or -errno with a sentence.
 */
int bl_sources_watch(struct bl_node *n, const struct bpf_object *obj, struct bl_err *err);

/**
 * bl_source_port - writes the addresses of one port anew, which no frame comes in by at present.
 * After bl_sources_watch(). @c: NULL if it is no port any more. Returns 0, or -errno as
 * bl_sources_fill().
 */
int bl_source_port(struct bl_node *n, const struct bl_port_cfg *c, uint32_t port,
		   struct bl_err *err);

/**
 * bl_sources_more - Adds what the lists of @now have and those of the running switch do not have,
 * while frames pass: an address that was accepted is accepted all the time. No-op without
 * bl_sources_watch(). @check: only looks whether that is possible.
 *
 * Returns 0, or -errno with a sentence; -EEXIST: another port has an address. Nothing is added
 * then.
 */
int bl_sources_more(struct bl_node *n, const struct bl_node_cfg *now, bool check,
		    struct bl_err *err);

/** bl_sources_close - End bl_sources_watch(). No-op without it. */
void bl_sources_close(struct bl_node *n);

/* A host that restarts is back within this time and finds its addresses still reserved. */
#define BL_SOURCE_KEEP_S 60

#endif
