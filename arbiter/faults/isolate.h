/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fault isolation (Fastpass section 5.2): from which pairs of hosts lose frames on which paths to
 *the links that are broken.
 *
 * What a frame goes through, each a component that may be broken by itself; links count in one
 *direction:
 *	host -> rack	rack -> path	path -> rack	rack -> host	and the switches of both
 *racks and of the path A flow (source, destination, path) that loses nothing exonerates all of
 *them. The bad flows are explained by as few of the others as can be found: the one that explains
 *most comes first, then the one that explains most of the rest; at the end whoever is not needed
 *any more is dropped. A switch is named only if it explains more than any link.
 *
 * Example, 3 racks, 2 paths, the link from rack 1 up to path 0 loses frames: flows from rack 1 on
 *path 0 are bad, to racks 0 and 2. Those from rack 0 to rack 2 on path 0 are good, so path 0's
 *switch and its link down to rack 2 are, too; those from rack 1 on path 1 are good, so its hosts
 *are. What explains all bad flows is rack 1 -> path 0.
 *
 * What the flows cannot tell apart is named together (@one_of): with two racks only, rack 0 -> path
 *1 and path 1 -> rack 1 carry the same frames.
 */
#ifndef BARLINE_ARBITER_ISOLATE_H
#define BARLINE_ARBITER_ISOLATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/fastpass/fault_core.h"

#define BL_ISO_COMPONENTS 7 /* that a flow goes through at most */

/* X(SYMBOL, "name"), in the order of their numbers */
/* clang-format off */
#define BL_ISO_KINDS(X) \
	X(HOST_UP,   "host-up")   /* host -> rack */ \
	X(HOST_DOWN, "host-down") /* rack -> host */ \
	X(UP,        "up")        /* rack -> path */ \
	X(DOWN,      "down")      /* path -> rack */ \
	X(RACK,      "rack")      /* a rack's switch */ \
	X(PATH,      "path")      /* a path's switch */
/* clang-format on */
#define BL_ISO_ENUM(sym, name) BL_ISO_##sym,
enum bl_iso_kind { BL_ISO_KINDS(BL_ISO_ENUM) BL_ISO_KIND_COUNT };
#undef BL_ISO_ENUM

/**
 * struct bl_iso_net - @rack_of: of each endpoint. @pod_of: three tiers: of each rack, or NULL.
 * Within a pod a path has fewer links than its number says: such flows count as of an unknown path.
 */
struct bl_iso_net {
	uint32_t endpoints;
	uint32_t racks;
	uint32_t paths;
	const uint16_t *rack_of;
	const uint16_t *pod_of;
};

/**
 * struct bl_iso_flow - @path: at or above the number of paths: not known. @verdict: enum
 * bl_fault_verdict. @at: the caller's.
 */
struct bl_iso_flow {
	uint16_t src;
	uint16_t dst;
	uint8_t path;
	uint8_t verdict;
	uint8_t zero[2];
	uint32_t at;
};

/**
 * struct bl_iso_named - a component. @of: @one_of components that the flows cannot tell apart have
 * the same number here. @flows: bad ones that go through it. @host: 1: one of them is a host's
 * link.
 */
struct bl_iso_named {
	uint32_t component;
	uint32_t of;
	uint32_t one_of;
	uint32_t flows;
	uint32_t host;
};

/** bl_iso_components - how many there are: their numbers are 0 to that - 1. */
uint32_t bl_iso_components(const struct bl_iso_net *net);
uint32_t bl_iso_number(const struct bl_iso_net *net, enum bl_iso_kind kind, uint32_t who,
		       uint32_t path);
/** bl_iso_what - kind of component @c; *@who: endpoint or rack, *@path: where there is one. */
enum bl_iso_kind bl_iso_what(const struct bl_iso_net *net, uint32_t c, uint32_t *who,
			     uint32_t *path);
/** bl_iso_through - the components of a flow, into @out; how many. */
unsigned int bl_iso_through(const struct bl_iso_net *net, const struct bl_iso_flow *f,
			    uint32_t out[BL_ISO_COMPONENTS]);

/**
 * bl_iso_find - which components are broken. @good: a byte for each component, written: 1: a good
 * flow goes through it. Returns how many are in @out, at most @max; -1: out of memory.
 * *@unexplained: bad flows all of whose components are good.
 */
int bl_iso_find(const struct bl_iso_net *net, const struct bl_iso_flow *f, uint32_t n,
		struct bl_iso_named *out, uint32_t max, uint8_t *good, uint32_t *unexplained);

#endif
