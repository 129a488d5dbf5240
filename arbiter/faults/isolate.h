/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fault isolation (Fastpass section 5.2): which links are broken, given the pairs of hosts that
 * lose frames and the paths on which they lose them.
 *
 * What a frame passes through are components, each of which may be broken by itself. A link counts
 * in each direction separately:
 *
 *	host -> rack	rack -> path	path -> rack	rack -> host
 *
 * and the switches of both racks and of the path. A flow (source, destination, path) that loses
 * nothing exonerates all of its components. The bad flows are explained by as few of the other
 * components as can be found: first the one that explains most flows, then the one that explains
 * most of the rest, and so on; at the end each that is not needed any more is dropped. A switch is
 * named only if it explains more than any link.
 *
 * Example, 3 racks, 2 paths, the link from rack 1 up to path 0 loses frames: flows from rack 1 on
 * path 0 are bad, to racks 0 and 2. Those from rack 0 to rack 2 on path 0 are good, so the switch
 *of path 0 and its link down to rack 2 are good, too; those from rack 1 on path 1 are good, so the
 * links of its hosts are. The one component that explains all bad flows is rack 1 -> path 0.
 *
 * Components that the flows cannot tell apart are named together (@one_of): with two racks only,
 * rack 0 -> path 1 and path 1 -> rack 1 carry the same frames.
 */
#ifndef BARLINE_ARBITER_ISOLATE_H
#define BARLINE_ARBITER_ISOLATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/fastpass/fault_core.h"

#define BL_ISO_COMPONENTS 7 /* of one flow, at most */

/* X(SYMBOL, "name"), in the order of their numbers */
/* clang-format off */
#define BL_ISO_KINDS(X) \
	X(HOST_UP,   "host-up")   /* host -> rack */ \
	X(HOST_DOWN, "host-down") /* rack -> host */ \
	X(UP,        "up")        /* rack -> path */ \
	X(DOWN,      "down")      /* path -> rack */ \
	X(RACK,      "rack")      /* the switch of a rack */ \
	X(PATH,      "path")      /* the switch of a path */
/* clang-format on */
#define BL_ISO_ENUM(sym, name) BL_ISO_##sym,
enum bl_iso_kind { BL_ISO_KINDS(BL_ISO_ENUM) BL_ISO_KIND_COUNT };
#undef BL_ISO_ENUM

/** struct bl_iso_net - The network. */
struct bl_iso_net {
	uint32_t endpoints;
	uint32_t racks;
	uint32_t paths;
	const uint16_t *rack_of; /* [endpoints] */
	/*
	 * [racks] three tiers; NULL: two. Within a pod a path has fewer links than its number says:
	 * such flows count as flows on an unknown path.
	 */
	const uint16_t *pod_of;
};

/** struct bl_iso_flow - What is known about one flow. */
struct bl_iso_flow {
	uint16_t src; /* endpoints */
	uint16_t dst;
	uint8_t path;    /* the number of paths or more: not known */
	uint8_t verdict; /* enum bl_fault_verdict */
	uint8_t zero[2];
	uint32_t at; /* for the caller's use */
};

/** struct bl_iso_named - A component that may be broken. */
struct bl_iso_named {
	uint32_t component;
	uint32_t of;     /* same number for the components that the flows cannot tell apart */
	uint32_t one_of; /* how many components have that number */
	uint32_t flows;  /* bad flows that pass through it */
	uint32_t host;   /* 1: one of the components with that number is the link of a host */
};

/** bl_iso_components - Number of components; they are numbered from 0. */
uint32_t bl_iso_components(const struct bl_iso_net *net);
/** bl_iso_number - Number of a component. @who: endpoint or rack; @path: where there is one. */
uint32_t bl_iso_number(const struct bl_iso_net *net, enum bl_iso_kind kind, uint32_t who,
		       uint32_t path);
/** bl_iso_what - Kind of component @c. @who: set to its endpoint or rack; @path: to its path. */
enum bl_iso_kind bl_iso_what(const struct bl_iso_net *net, uint32_t c, uint32_t *who,
			     uint32_t *path);
/** bl_iso_through - Write the components of a flow to @out. Returns how many. */
unsigned int bl_iso_through(const struct bl_iso_net *net, const struct bl_iso_flow *f,
			    uint32_t out[BL_ISO_COMPONENTS]);

/**
 * bl_iso_find - Find broken components.
 * @f: @n flows.
 * @out: written, @max entries at most.
 * @good: [components] written; 1: a good flow passes through the component.
 * @unexplained: set to the number of bad flows all of whose components are good.
 *
 * Returns the number of entries in @out; -1: memory is short.
 */
int bl_iso_find(const struct bl_iso_net *net, const struct bl_iso_flow *f, uint32_t n,
		struct bl_iso_named *out, uint32_t max, uint8_t *good, uint32_t *unexplained);

#endif
