/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside path selection: what the greedy choice, the chains and the Euler splits share. */
#ifndef BARLINE_ARBITER_PATH_PRIV_H
#define BARLINE_ARBITER_PATH_PRIV_H

#include <stdbool.h>

#include "core/core.h"
#include "arbiter/path/path_types.h"

/** struct bl_path - A selector, and the slot that it colours. */
struct bl_path {
	uint32_t racks, paths;
	/*
	 * Paths, rounded up to 8: a rack's counts are whole 16-byte registers. The counts of paths
	 * that do not exist stay full.
	 */
	uint32_t lanes;
	uint32_t cap; /* packets of a rack on a path, in either direction */
	enum bl_path_how how;
	uint16_t *out, *in; /* [rack][lanes] packets of the present slot */
	uint64_t *usable;   /* [src][dst] path bits; NULL while no path is dead */
	uint32_t *stamp;    /* [packet] the last chain that changed it */
	uint32_t chain;     /* number of the present chain */
	uint16_t *flip;     /* packets that the present chain changed, to undo it */
	bool indexed;       /* @start and @list are valid for this slot */
	/*
	 * [rack] path bits: it can send ([0]) or receive ([1]) more on the path. Used while a slot
	 * with more than 8 paths is coloured.
	 */
	uint64_t *room[2];
	/* Packets by source rack ([0]) and destination rack ([1]); made for the first chain. */
	uint32_t *start[2];
	uint16_t *list[2];
	/* Euler: partner of each packet at its source ([0]) and at its destination ([1]). */
	uint16_t *mate[2];
	uint16_t *order; /* Euler: packets, part by part */
	uint16_t *spare, *pending;
	uint8_t *side;  /* Euler: half of each packet */
	uint16_t *left; /* packets that found no path at first */
	size_t nleft;
	size_t (*greedy)(struct bl_path *p, size_t n, const uint16_t *src, const uint16_t *dst,
			 uint8_t *path);
	struct bl_path_stats st;
};

BL_CORE bool path_works(const struct bl_path *p, uint32_t src, uint32_t dst, uint32_t path)
{
	return !p->usable || p->usable[(size_t)src * p->racks + dst] >> path & 1;
}

/**
 * bl_path_split - Propose a path for every packet by Euler splits. Numbers from @p->paths on stand
 * for parts that are too many.
 */
void bl_path_split(struct bl_path *p, size_t n, const uint16_t *src, const uint16_t *dst,
		   uint8_t *path);
/* The greedy choice of path_sse41.c; only for CPUs with SSE4.1. */
#ifdef __x86_64__
size_t bl_path_greedy_sse41(struct bl_path *p, size_t n, const uint16_t *src, const uint16_t *dst,
			    uint8_t *path);
#endif

#endif
