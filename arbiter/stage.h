/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What passes between the stages of the arbiter (server.h has the picture), and what an allocator
 * and a path selector have to offer to be one of them. engine.h offers both.
 */
#ifndef BARLINE_ARBITER_STAGE_H
#define BARLINE_ARBITER_STAGE_H

#include <stdbool.h>
#include <stdint.h>

enum arb_kind {
	ARB_SLOTS,     /* timeslots of one pair */
	ARB_REFUND,    /* a demand that was not served: comm asks for it again */
	ARB_FORGOTTEN, /* a session has ended; all of its grants precede this entry */
	ARB_MARK,      /* the end of a run of the allocator */
};

/** struct arb_grant - One entry on the way from the allocator to comm. */
struct arb_grant {
	uint64_t base;  /* ARB_SLOTS: slot of bit 0 of @slots; ARB_MARK: first slot of the run */
	uint64_t slots; /* ARB_SLOTS: bit i is slot @base + i; ARB_MARK: start of the run, ns */
	uint32_t mtus;  /* ARB_REFUND: MTUs that were not served */
	uint16_t src;   /* sending endpoint */
	uint16_t dst;   /* receiving endpoint */
	uint8_t path;   /* path number; BL_FCP_PATH_ANY before the path stage */
	uint8_t kind;   /* enum arb_kind; allocators write ARB_SLOTS only */
	uint8_t zero[6];
};
_Static_assert(sizeof(struct arb_grant) == 32, "two to a cache line");

/** struct arb_alloc_ops - An allocator. One thread calls it. */
struct arb_alloc_ops {
	/*
	 * Takes @mtus more MTUs from @src to @dst. @slot is the present slot, from which deadlines
	 * count. Returns 0, or -errno if nothing was taken: comm asks again later.
	 */
	int (*demand)(void *a, uint32_t src, uint32_t dst, uint32_t mtus, uint64_t slot);
	/* Drops the demands from @src; those of other endpoints to @src stay. */
	void (*forget)(void *a, uint32_t src);
	/*
	 * Gives slots from @slot on, none at or beyond @slot + @horizon_slots. Writes at most @max
	 * grants to @out and returns their number. Is called again with the same @slot as long as
	 * it returns @max.
	 */
	unsigned int (*run)(void *a, uint64_t slot, struct arb_grant *out, unsigned int max);
	/* Returns true if a demand waits; without any, the allocator is not run. */
	bool (*waiting)(void *a);
	uint32_t horizon_slots;
	uint32_t grants_max; /* of one run, each path counted; 0: endpoints x @horizon_slots */
	/*
	 * Returns how many more MTUs may wait before further demands hardly fill more slots. NULL:
	 * the length of a run does not depend on what waits.
	 */
	uint64_t (*spare)(void *a);
};

/** struct arb_path_ops - A path selector. Each path thread has a state @p of its own. */
struct arb_path_ops {
	/*
	 * Gives paths to the @n grants of one run, which have none. A grant may become several, at
	 * most @max in all (the allocator's @grants_max); returns how many there are. A slot for
	 * which there is no path becomes an ARB_REFUND of 1 MTU.
	 */
	unsigned int (*assign)(void *p, struct arb_grant *g, unsigned int n, unsigned int max);
};

#endif
