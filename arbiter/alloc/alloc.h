/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The timeslot allocator (Fastpass section 3): demands in, matchings out. In every slot no port
 *carries more packets than it can: endpoints in and out, racks up and down, pods up and down.
 *
 *	demand	"endpoint 3 has 10 MTUs for endpoint 7"
 *	run	"slot 1000 is the first that can still be given": moves the window there and gives
 *slots to what waits
 *	grant	"3 sends to 7 in slots 1024 + {0, 1, 5}": head with the pair, then one 64-bit mask
 *for each word of the window that has some
 *
 * Units: a slot is the time of one MTU on a link of capacity 1 (1.23 us at 10 Gbit/s); all demands
 *count MTUs. An endpoint with four times that rate has capacity 4. Slot numbers are 64-bit and
 *never wrap.
 *
 * What is promised, by policy:
 *	first-come	a request has the earliest slots that were common to its ends when it came;
 *the window is 512 slots fair		each window is given by exact max-min fair shares of it,
 *demands counted. What a pair was due and did not get, it is due in the next window, up to 1000
 *MTUs. Where all ports carry one packet a slot, slots are found for all that is due but so much: 16
 *MTUs of one pair and 1/512 of all, and what is left when as many steps of chains have been taken
 *as packets were given. Backlogged pairs of 1000 random graphs of 8 to 256 endpoints are within 2 %
 *of their max-min share after 50 windows of 512 slots (0.986 to 1.012) weighted	the same by
 *weight min-fct		fewest remaining MTUs first deadline	earliest deadline first;
 *equal ones in order of arrival In all of them the result is maximal: no pair waits that has a slot
 *free at both its ends and in all tiers between, in the window and not past.
 *
 * Threads: an allocator belongs to one thread at a time; different ones have nothing in common.
 *Nothing is allocated after bl_alloc_new().
 */
#ifndef BARLINE_ARBITER_ALLOC_H
#define BARLINE_ARBITER_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include "core/fastpass/timeslot_core.h"
#include "proto/fastpass_limits.h"

#define BL_ALLOC_ENDPOINTS_MAX 4096u
#define BL_ALLOC_RACKS_MAX     1024u
#define BL_ALLOC_WINDOW_MIN    8u
#define BL_ALLOC_QUOTA_MAX     ((1u << 24) - 1)

enum bl_alloc_isa { BL_ISA_BEST, BL_ISA_PLAIN, BL_ISA_BMI2, BL_ISA_AVX512 };

/* why a demand was refused */
enum bl_alloc_err {
	BL_ALLOC_OK,
	BL_ALLOC_UNKNOWN, /* no such endpoint */
	BL_ALLOC_SELF,    /* source and destination are the same */
	BL_ALLOC_QUOTA,   /* more than the pair may have waiting; nothing of it was taken */
	BL_ALLOC_FULL,    /* flows_max flows wait */
};

/**
 * struct bl_alloc_cfg - a network, as far as its bandwidth goes. All arrays are copied.
 * @endpoints: 1 to BL_ALLOC_ENDPOINTS_MAX.
 * @window_slots: 8, 16, 32, 64, 128, 256 or 512; 0: see bl_alloc_window(). What is given is given
 * so far ahead at most. Fewer than 64 are for slow links, whose slots are long.
 * @flows_max: flows (or, for first-come and deadline, requests) that may wait; 0: 1 << 20, or all
 * pairs if there are fewer.
 * @quota_mtus: MTUs that one pair may have waiting, and one request may ask; 0: 65535.
 * @src_cap, @dst_cap: packets per slot of each endpoint; NULL: 1 each.
 * @racks: 0: one non-blocking network. @rack_of: of each endpoint. @rack_up, @rack_down: packets
 * per slot between a rack and the rest.
 * @pods: 0: two tiers. @pod_of: of each rack. @pod_up, @pod_down: packets per slot between a pod
 * and the rest.
 * @isa: which code; BL_ISA_BEST: the fastest that this CPU has.
 */
struct bl_alloc_cfg {
	uint32_t endpoints;
	enum bl_alloc_policy policy;
	uint32_t window_slots;
	uint32_t flows_max;
	uint32_t quota_mtus;
	const uint16_t *src_cap, *dst_cap;
	uint32_t racks;
	const uint16_t *rack_of;
	const uint16_t *rack_up, *rack_down;
	uint32_t pods;
	const uint16_t *pod_of;
	const uint16_t *pod_up, *pod_down;
	enum bl_alloc_isa isa;
};

/**
 * struct bl_grant - followed by one 64-bit mask for each 1 in @words: bit i of the mask of word j
 * is slot base + 64 j + i.
 * @mtus: ones in all its masks. A pair may have several grants in one run; if its ends carry
 * several packets a slot, also several in one slot.
 */
struct bl_grant {
	uint16_t src, dst;
	uint8_t words;
	uint8_t reserved;
	uint16_t mtus;
};
_Static_assert(sizeof(struct bl_grant) == sizeof(uint64_t), "grants are a row of 64-bit words");

/**
 * struct bl_grants - what one run gave. Belongs to the allocator and lasts until its next run,
 * unless bl_alloc_row() said where it goes.
 * @base: slot of bit 0 of word 0. @row: grants one after the other. @len: in 64-bit words. @mtus:
 * sum over all.
 */
struct bl_grants {
	uint64_t base;
	const uint64_t *row;
	size_t len;
	uint64_t mtus;
};

/**
 * struct bl_alloc_stats - since bl_alloc_new(). The cost: @visits: how often a pair was looked at;
 * @lifts: the same, when shares were calculated; @chains: packets for which others were moved.
 */
struct bl_alloc_stats {
	uint64_t demanded_mtus, granted_mtus, forgotten_mtus;
	uint64_t visits, passes, windows, lifts, chains;
	uint64_t refused;
};

/**
 * bl_alloc_window - slots given ahead. Where they are shared out, wide windows cost less, since a
 * visit gives more; what they cost is time until a newcomer at a full port has its share: a window
 * at most. Mean delay at load 0.9, 256 endpoints, fair: 145, 159 and 160 slots with 64, 256 and 512
 * (2026-11-21). Where the most urgent comes first, little is given ahead.
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
 * bl_alloc_new - NULL: failed, and @why (a constant) says what is wrong with @cfg. The first slot
 * is 0.
 */
struct bl_alloc *bl_alloc_new(const struct bl_alloc_cfg *cfg, const char **why);
void bl_alloc_free(struct bl_alloc *a);
/**
 * bl_alloc_touch - have the kernel find pages now for what runs of usual size write. Without this
 * the first run of a rack of 256 took 10 to 50 ms, in which every slot was lost (2026-11-23).
 */
void bl_alloc_touch(struct bl_alloc *a);

/**
 * bl_alloc_demand - @mtus more from @src to @dst. Served at the next run.
 * @deadline: slot before which it should be sent, at most 2^30 slots behind the next run's; only
 * the deadline policy looks at it.
 */
enum bl_alloc_err bl_alloc_demand(struct bl_alloc *a, uint32_t src, uint32_t dst, uint32_t mtus,
				  uint64_t deadline);

/**
 * bl_alloc_weight - share of a pair, 1 to BL_ALLOC_WEIGHT_MAX, from its next request on after it
 * had nothing waiting. Default 1.
 */
enum bl_alloc_err bl_alloc_weight(struct bl_alloc *a, uint32_t src, uint32_t dst, uint32_t weight);

/**
 * bl_alloc_run - give slots from @now on. @now: the first slot whose grant still reaches its sender
 * in time; never less than at the last run. A jump of any size is fine: slots that were skipped are
 * lost.
 */
struct bl_grants bl_alloc_run(struct bl_alloc *a, uint64_t now);

/**
 * bl_alloc_row - where the next run writes its grants, so that another thread can read them while
 * this one goes on: @row has bl_alloc_row_words() words. Copying them took a thirtieth of the time
 * of the allocation core at 2 Tbit/s (2026-11-21). NULL: back to the allocator's own.
 */
void bl_alloc_row(struct bl_alloc *a, uint64_t *row);
size_t bl_alloc_row_words(const struct bl_alloc *a);

/**
 * bl_alloc_forget - drop all that waits from or to an endpoint: it was reset or is dead. Returns
 * the MTUs. What was given stays given.
 */
uint64_t bl_alloc_forget(struct bl_alloc *a, uint32_t endpoint);
/**
 * bl_alloc_forget_from - the same of what waits from @src only: it counts anew (FCP's RESET), but
 * others still want to send to it.
 */
uint64_t bl_alloc_forget_from(struct bl_alloc *a, uint32_t src);

/** bl_alloc_waiting - MTUs demanded and not given. */
uint64_t bl_alloc_waiting(const struct bl_alloc *a);
/**
 * bl_alloc_enough - MTUs that should wait at most: half a step of the window for every sender. With
 * more, slots are hardly fuller, but a run takes longer, since all who wait are visited when the
 * window moves; a run that takes longer than the slots that it gives never catches up. Whoever has
 * more demands keeps them until less waits. 256 endpoints, first-come, overload: 6.1 ns a packet
 * and 237 packets a slot with a quarter, 5.0 and 243 with half, 9.3 and 248 with three
 * (2026-11-21).
 */
uint64_t bl_alloc_enough(const struct bl_alloc *a);
const struct bl_alloc_stats *bl_alloc_stats(const struct bl_alloc *a);
const char *bl_alloc_isa(const struct bl_alloc *a);
const char *bl_alloc_policy_name(enum bl_alloc_policy p);
const char *bl_alloc_err_text(enum bl_alloc_err e);

/** bl_grant_next - walk a row: @at starts at 0. NULL: no more. @mask: its masks. */
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
