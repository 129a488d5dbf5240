/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the configuration file of a Fastpass network (fastpass_file.h) and the arbiter that obeys it
 * must agree on: the allocator's policies and the bounds of a network's size.
 */
#ifndef BARLINE_FASTPASS_LIMITS_H
#define BARLINE_FASTPASS_LIMITS_H

#define BL_ALLOC_CAP_MAX    4095u /* packets per slot: the allocator has 12 bit planes */
#define BL_ALLOC_WEIGHT_MAX 127u
#define BL_PATH_RACKS_MAX   1024u
#define BL_PATH_PATHS_MAX   64u /* a set of paths is one 64-bit word */

/*
 * X(SYMBOL, "name", "text"): how the allocator divides slots. Append only: the number is on the
 * wire of FCP and in JSON.
 */
/* clang-format off */
#define BL_ALLOC_POLICIES(X) \
	X(FIRST,    "first-come", "whole requests in order of arrival") \
	X(FAIR,     "fair",       "max-min fair, least recently served first") \
	X(WEIGHTED, "weighted",   "max-min fair by weight") \
	X(FCT,      "min-fct",    "fewest remaining MTUs first") \
	X(DEADLINE, "deadline",   "earliest deadline first")
/* clang-format on */
#define BL_ALLOC_ENUM(sym, name, text) BL_ALLOC_##sym,
enum bl_alloc_policy { BL_ALLOC_POLICIES(BL_ALLOC_ENUM) BL_ALLOC_NPOLICIES };
#undef BL_ALLOC_ENUM

#endif
