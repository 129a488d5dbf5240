/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The timeslot allocator (Fastpass section 3): demands in, matchings out. In every slot no port
 * carries more packets than it can: endpoints in and out, racks up and down, pods up and down.
 *
 *	demand	"endpoint 3 has 10 MTUs for endpoint 7"
 *	run	"slot 1000 is the first that can still be given": moves the window there and gives
 *		slots to the demands that wait
 *	grant	"3 sends to 7 in slots 1024 + {0, 1, 5}": a head with the pair, then one 64-bit mask
 *		for each word of the window in which the pair has slots
 *
 * Units: a slot is the time of one MTU on a link of capacity 1 (1.23 us at 10 Gbit/s); all demands
 * count MTUs. An endpoint with four times that rate has capacity 4. Slot numbers are 64-bit and
 * never wrap.
 *
 * Each policy promises something else:
 *
 *	first-come	A request gets the earliest slots that its two ends have in common when it
 *			comes; the window is 512 slots.
 *	fair		Each window is given by exact max-min fair shares of it, demands counted.
 *			What a pair was due and did not get, it is due in the next window, up to
 *			1000 MTUs. Where all ports carry one packet a slot, slots are found for all
 *			that is due but a rest: 16 MTUs of one pair and 1/512 of the total, and what
 *			is left when as many steps of chains have been taken as packets were given.
 *			Backlogged pairs of 1000 random graphs of 8 to 256 endpoints are within 2 %
 *			of their max-min share after 50 windows of 512 slots (0.986 to 1.012).
 *	weighted	The same by weight: 800 graphs with weights of 1 to 4 are within 3 %
 *			(0.978 to 1.023).
 *	min-fct		Fewest remaining MTUs first.
 *	deadline	Earliest deadline first; equal ones in order of arrival.
 *
 * With each of them the result is maximal: no pair waits for which any slot of the window that is
 * not past is free at both its ends and in all tiers between them.
 *
 * Threads: an allocator belongs to one thread at a time; different allocators share nothing.
 * Nothing is allocated after bl_alloc_new().
 */
#ifndef BARLINE_ARBITER_ALLOC_H
#define BARLINE_ARBITER_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include "arbiter/alloc/alloc_types.h"
#include "core/core.h"
#include "core/fastpass/timeslot_core.h"

/**
 * bl_alloc_window - Slots that are given ahead. Where windows are shared out, wide ones cost less
 * per packet, since a visit gives more; their price is the time until a newcomer at a full port has
 * its share: a window at most. Mean delay at load 0.9, 256 endpoints, fair: 145, 159 and 160 slots
 * with 64, 256 and 512 (2026-11-21). Where the most urgent comes first, little is given ahead.
 */
static inline uint32_t bl_alloc_window(const struct bl_alloc_cfg *cfg)
{
	if (cfg->window_slots)
		return cfg->window_slots;
	return cfg->policy == BL_ALLOC_FIRST || cfg->policy == BL_ALLOC_FAIR ? 512
	       : cfg->policy == BL_ALLOC_WEIGHTED                            ? 256
									     : 64;
}

struct bl_alloc;

/**
 * bl_alloc_new - Make an allocator whose first slot is 0. Returns NULL on failure, with a constant
 * text in @why that says what is wrong with @cfg.
 */
struct bl_alloc *bl_alloc_new(const struct bl_alloc_cfg *cfg, const char **why);
void bl_alloc_free(struct bl_alloc *a);
/**
 * bl_alloc_touch - Make the kernel find pages now for what runs of usual size write. Without this
 * the first run of a rack of 256 took 10 to 50 ms, in which every slot was lost (2026-11-23).
 */
void bl_alloc_touch(struct bl_alloc *a);

/**
 * bl_alloc_demand - Add @mtus MTUs from @src to @dst, to be served at the next run.
 * @deadline: slot before which they should be sent, at most 2^30 slots after that of the next run;
 * only the deadline policy uses it.
 */
enum bl_alloc_err bl_alloc_demand(struct bl_alloc *a, uint32_t src, uint32_t dst, uint32_t mtus,
				  uint64_t deadline);

/**
 * bl_alloc_weight - Set the weight of a pair, 1 (default) to BL_ALLOC_WEIGHT_MAX. Takes effect at
 * the first request of the pair that comes while it has nothing waiting.
 */
enum bl_alloc_err bl_alloc_weight(struct bl_alloc *a, uint32_t src, uint32_t dst, uint32_t weight);

/**
 * bl_alloc_run - Give slots.
 * @now: the first slot whose grant still reaches its sender in time; never less than at the last
 * run. It may be any number of slots later: slots that were skipped are lost.
 */
struct bl_grants bl_alloc_run(struct bl_alloc *a, uint64_t now);

/**
 * bl_alloc_row - Choose where the next run writes its grants, so that another thread can read them
 * while this one goes on. To copy them took a thirtieth of the time of the allocation core at
 * 2 Tbit/s (2026-11-21).
 * @row: bl_alloc_row_words() words; NULL: the allocator's own memory again.
 */
void bl_alloc_row(struct bl_alloc *a, uint64_t *row);
size_t bl_alloc_row_words(const struct bl_alloc *a);

/**
 * bl_alloc_forget - Drop all demands from and to an endpoint that was reset or is dead. Returns
 * their MTUs. Slots that were given stay given.
 */
uint64_t bl_alloc_forget(struct bl_alloc *a, uint32_t endpoint);
/**
 * bl_alloc_forget_from - Drop the demands from @src only: it counts anew (FCP's RESET), but others
 * still want to send to it. Returns their MTUs.
 */
uint64_t bl_alloc_forget_from(struct bl_alloc *a, uint32_t src);

/** bl_alloc_waiting - MTUs demanded and not given. */
uint64_t bl_alloc_waiting(const struct bl_alloc *a);
/**
 * bl_alloc_enough - MTUs that should wait at most: half a step of the window for every sender. With
 * more, slots are hardly fuller, but a run takes longer, since all waiting flows are visited when
 * the window moves; and a run that takes longer than the slots that it gives never catches up. A
 * caller with more demands keeps them until less waits. 256 endpoints, first-come, overload: 6.1 ns
 * a packet and 237 packets a slot with a quarter, 5.0 and 243 with half, 9.3 and 248 with three
 * (2026-11-21).
 */
uint64_t bl_alloc_enough(const struct bl_alloc *a);
const struct bl_alloc_stats *bl_alloc_stats(const struct bl_alloc *a);
/** bl_alloc_isa - Name of the instruction set whose code is used. */
const char *bl_alloc_isa(const struct bl_alloc *a);
const char *bl_alloc_policy_name(enum bl_alloc_policy p);
const char *bl_alloc_err_text(enum bl_alloc_err e);

/**
 * bl_grant_next - Walk over the grants of a run.
 * @at: position; starts at 0.
 * @mask: set to the masks of the grant.
 *
 * Returns NULL after the last one.
 */
static inline const struct bl_grant *bl_grant_next(const struct bl_grants *g, size_t *at,
						   const uint64_t **mask)
{
	const struct bl_grant *head;

	if (*at >= g->len)
		return NULL;
	head = (const struct bl_grant *)&g->row[*at];
	*mask = &g->row[*at + 1];
	*at += 1 + bl_count64(head->words);
	return head;
}

#endif
