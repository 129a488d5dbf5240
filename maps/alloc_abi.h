/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The limits of Fastpass's timeslot allocation and path selection, and the numbers of its policies.
 * The file that arbiters and hosts share is validated against them.
 */
#ifndef BARLINE_MAPS_ALLOC_ABI_H
#define BARLINE_MAPS_ALLOC_ABI_H

#define BL_ALLOC_ENDPOINTS_MAX 4096u
#define BL_ALLOC_RACKS_MAX     1024u
#define BL_ALLOC_WINDOW_MIN    8u
#define BL_ALLOC_CAP_MAX       4095u /* packets per slot: 12 bit planes */
#define BL_ALLOC_QUOTA_MAX     ((1u << 24) - 1)
#define BL_ALLOC_WEIGHT_MAX    127u

#define BL_PATH_RACKS_MAX      1024u
#define BL_PATH_PATHS_MAX      64u
#define BL_PATH_CAP_MAX        4095u
#define BL_PATH_PACKETS_MAX    65535u

/* X(SYMBOL, "name", "text"). Append only: FCP and JSON use the number. */
/* clang-format off */
#define BL_ALLOC_POLICIES(X) \
	X(FIRST,    "first-come", "whole requests in order of arrival") \
	X(FAIR,     "fair",       "max-min fair, least recently served first") \
	X(WEIGHTED, "weighted",   "max-min fair by weight") \
	X(FCT,      "min-fct",    "fewest remaining MTUs first") \
	X(DEADLINE, "deadline",   "earliest deadline first")
/* clang-format on */
enum bl_alloc_policy {
#define X(id, name, text) BL_ALLOC_##id,
	BL_ALLOC_POLICIES(X)
#undef X
		BL_ALLOC_NPOLICIES
};

#endif
