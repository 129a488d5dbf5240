/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What goes into the timeslot allocator (alloc.h) and comes out of it: a network, grants, counters.
 */
#ifndef BARLINE_ARBITER_ALLOC_TYPES_H
#define BARLINE_ARBITER_ALLOC_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "maps/alloc_abi.h"

enum bl_alloc_isa { BL_ISA_BEST, BL_ISA_PLAIN, BL_ISA_BMI2, BL_ISA_AVX512 };

/* Why a demand was refused. */
enum bl_alloc_err {
	BL_ALLOC_OK,
	BL_ALLOC_UNKNOWN, /* no such endpoint */
	BL_ALLOC_SELF,    /* source and destination are the same */
	BL_ALLOC_QUOTA,   /* more than the pair may have waiting; nothing of it was taken */
	BL_ALLOC_FULL,    /* flows_max flows wait */
};

/** struct bl_alloc_cfg - A network, as far as its bandwidth goes. All arrays are copied. */
struct bl_alloc_cfg {
	uint32_t endpoints; /* 1 to BL_ALLOC_ENDPOINTS_MAX */
	enum bl_alloc_policy policy;
	/*
	 * Slots that are given ahead at most: 8, 16, 32, 64, 128, 256 or 512; 0: see
	 * bl_alloc_window(). Fewer than 64 are for slow links, whose slots are long.
	 */
	uint32_t window_slots;
	/*
	 * Flows (first-come and deadline: requests) that may wait; 0: 1 << 20, or all pairs if
	 * there are fewer.
	 */
	uint32_t flows_max;
	/* MTUs that one pair may have waiting, and that one request may ask for; 0: 65535 */
	uint32_t quota_mtus;
	const uint16_t *src_cap, *dst_cap;   /* [endpoints] packets per slot; NULL: 1 each */
	uint32_t racks;                      /* 0: one network that never blocks */
	const uint16_t *rack_of;             /* [endpoints] */
	const uint16_t *rack_up, *rack_down; /* [racks] packets per slot from and to other racks */
	uint32_t pods;                       /* 0: two tiers of switches */
	const uint16_t *pod_of;              /* [racks] */
	const uint16_t *pod_up, *pod_down;   /* [pods] packets per slot from and to other pods */
	enum bl_alloc_isa isa; /* code to use; BL_ISA_BEST: the fastest that this CPU has */
};

/**
 * struct bl_grant - The slots that a pair gets in one run. One 64-bit mask follows for each 1 in
 * @words: bit i of the mask of word j is slot base + 64 j + i. A pair may have several grants in
 * one run, and, if its ends carry several packets a slot, also several in one slot.
 */
struct bl_grant {
	uint16_t src, dst;
	uint8_t words;
	uint8_t reserved;
	uint16_t mtus; /* ones in all of the masks */
};
_Static_assert(sizeof(struct bl_grant) == sizeof(uint64_t), "grants are a row of 64-bit words");

/**
 * struct bl_grants - What one run gave. Belongs to the allocator and is valid until its next run,
 * unless bl_alloc_row() chose another place.
 */
struct bl_grants {
	uint64_t base;       /* slot of bit 0 of word 0 */
	const uint64_t *row; /* the grants, one after the other */
	size_t len;          /* length of @row in 64-bit words */
	uint64_t mtus;       /* sum over all grants */
};

/** struct bl_alloc_stats - Counters since bl_alloc_new(). */
struct bl_alloc_stats {
	uint64_t demanded_mtus, granted_mtus, forgotten_mtus;
	uint64_t visits; /* how often a pair was visited to be given slots */
	uint64_t passes, windows;
	uint64_t lifts;  /* how often a pair was visited to calculate shares */
	uint64_t chains; /* packets for which others were moved */
	uint64_t refused;
};

#endif
