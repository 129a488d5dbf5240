/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Verifies schedules and colourings, with nothing of the code that makes them: plain counters per
 * slot and port, and a ledger of what was demanded. The verifier is told the demands and shown
 * every run's grants; it knows the network from the same struct bl_alloc_cfg.
 *
 * At every run it verifies that no port carries more than it can in any slot, whatever runs its
 * packets came from; that no slot is past or outside the window; that no pair gets more than it
 * asked for; and that the run is maximal: for no pair that still waits is there a slot, from @now
 * to the end of the window, in which all its ports have room.
 *
 * The published allocator put two packets on one destination in 20 to 34 % of cases at load 0.9,
 * and its own tests did not look for that.
 */
#ifndef BARLINE_ARBITER_VERIFY_H
#define BARLINE_ARBITER_VERIFY_H

#include <stdbool.h>

#include "arbiter/alloc/alloc.h"

struct bl_verify;

/** bl_verify_new - @cfg: as given to bl_alloc_new(). NULL: memory is short. */
struct bl_verify *bl_verify_new(const struct bl_alloc_cfg *cfg);
void bl_verify_free(struct bl_verify *v);
/** bl_verify_demand - Record a demand that the allocator took. */
void bl_verify_demand(struct bl_verify *v, uint32_t src, uint32_t dst, uint32_t mtus);
/**
 * bl_verify_run - Verify what a run at slot @now gave. Returns false if it broke a rule: see
 * bl_verify_error(). All later calls return false, too.
 */
bool bl_verify_run(struct bl_verify *v, const struct bl_grants *g, uint64_t now);
/** bl_verify_forget - The counterpart of bl_alloc_forget(). Returns the MTUs. */
uint64_t bl_verify_forget(struct bl_verify *v, uint32_t endpoint);
/** bl_verify_waiting - MTUs of one pair that were demanded and not given. */
uint32_t bl_verify_waiting(const struct bl_verify *v, uint32_t src, uint32_t dst);
/** bl_verify_packets - Packets verified so far. */
uint64_t bl_verify_packets(const struct bl_verify *v);
/**
 * bl_verify_slot_sum - Sum of the slot numbers of all packets. Less the times of their requests it
 * is the delay of all packets together.
 */
uint64_t bl_verify_slot_sum(const struct bl_verify *v);
/** bl_verify_slot - Packets in one slot, which is at most 1024 slots from the last window. */
uint32_t bl_verify_slot(const struct bl_verify *v, uint64_t slot);
/** bl_verify_error - The rule that was broken, in words. */
const char *bl_verify_error(const struct bl_verify *v);

/**
 * bl_verify_paths - Verify a colouring: no rack sends, and no rack receives, more than @cap packets
 * on one path, and no packet uses a path that is dead.
 * @usable: [src][dst] of path bits; NULL: all paths work.
 * @path: of each packet; 0xff: none, which is counted in @unplaced.
 *
 * Returns NULL, or what is wrong.
 */
const char *bl_verify_paths(uint32_t racks, uint32_t paths, uint32_t cap, const uint64_t *usable,
			    const uint16_t *src, const uint16_t *dst, const uint8_t *path, size_t n,
			    size_t *unplaced);

#endif
