// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Timeslots of a Fastpass host, by destination: what the programs want (struct bl_fp_dest.want)
 * becomes requests, and what the arbiter gives is entered for the pacer.
 *
 * Example: bl_hold_xdp holds two full frames for destination 3: want goes from 0 to 2.
 * bl_fpass_gather() finds that the destination is endpoint 7, and asks FCP for two slots. An ALLOC
 * with slots 900 and 903 comes: bl_fpass_give() sets their bits in the destination's ring and
 * lowers its time to the begin of slot 900.
 */
#include <bpf/bpf.h>
#include <string.h>

#include "base/time.h"
#include "core/clock_core.h"
#include "core/fastpass/fastpass_core.h"
#include "core/queue/dest_core.h"
#include "loader/admission/fastpass_host.h"
#include "loader/admission/pacer.h"
#include "loader/node_priv.h"

/* ---- what is wanted ---- */

/* Whether the destination is endpoint @p. */
static bool is_endpoint(const struct bl_fp_peer *p, const struct bl_hold_dest *who)
{
	struct bl_mac_key key;
	unsigned int k;

	if (!who->kind)
		return p->has_mac && !memcmp(p->mac, who->mac, 6);
	for (k = 0; k < p->napps; k++) {
		bl_fp_key(p->app[k], &key);
		if (key.kind == who->kind && !memcmp(key.mac, who->mac, sizeof(key.mac)) &&
		    !memcmp(key.upper, who->upper, sizeof(key.upper)))
			return true;
	}
	return false;
}

void bl_fpass_visit(struct bl_fpass *h, uint32_t n)
{
	if (bl_due_lower(h->due, n, bl_mono_ns()))
		bl_pacer_wake(&h->node->pace);
}

/*
 * Finds the endpoint of destination @n, and enters it. Does nothing if the number loses its owner
 * at this moment: then endpoint is RETIRED.
 */
static void resolve_endpoint(struct bl_fpass *h, uint32_t n)
{
	struct bl_hold_dest who;
	unsigned int i;

	if (bpf_map_lookup_elem(h->macs_fd, &n, &who) || who.used != BL_DEST_USED ||
	    who.kind == BL_DEST_FLOW)
		return;
	for (i = 0; i < h->npeers; i++)
		if (i != h->fcp.self && is_endpoint(&h->peer[i], &who)) {
			if (!__sync_bool_compare_and_swap(&h->dest[n].endpoint, BL_FP_UNKNOWN,
							  i + 1))
				return;
			h->next_of[n] = h->of[i];
			h->of[i] = (uint8_t)n;
			return;
		}
	if (!__sync_bool_compare_and_swap(&h->dest[n].endpoint, BL_FP_UNKNOWN, BL_FP_OUTSIDE))
		return;
	/* it gets no slots, so the frames that are held leave now */
	bl_fpass_visit(h, n);
}

/*
 * Number @n has lost its owner. The slots that it was given are dropped, and slots that still come
 * for that endpoint go to another number of it or are dropped. When endpoint is UNKNOWN again, the
 * pacer may give the number away (bl_number_free() in bpf/host/sweep.h); the first frame of the
 * next owner makes it wanted.
 */
static void forget_dest(struct bl_fpass *h, uint32_t n)
{
	struct bl_fp_dest *d = &h->dest[n];
	unsigned int i;
	uint8_t *at;

	for (i = 0; i < h->npeers; i++)
		for (at = &h->of[i]; *at; at = &h->next_of[*at])
			if (*at == n) {
				*at = h->next_of[n];
				break;
			}
	h->next_of[n] = 0;
	for (i = 0; i < BL_FP_WORDS; i++)
		(void)__sync_lock_test_and_set(&d->word[i].bits, 0);
	h->told[n] = BL_FP_WANTED(BL_READ_ONCE(d->want));
	h->missed[n] = BL_READ_ONCE(d->missed);
	h->entered[n] = h->told[n] + h->missed[n];
	h->short_by[n] = 0;
	__atomic_store_n(&d->endpoint, BL_FP_UNKNOWN, __ATOMIC_SEQ_CST);
}

/* Asks for @slots more slots to an endpoint. */
static void request_slots(struct bl_fpass *h, uint32_t endpoint, uint64_t slots)
{
	if (!slots)
		return;
	bl_fcp_host_want(&h->fcp, endpoint, (uint32_t)slots);
	h->page->asked += slots;
}

/*
 * During the fallback: the endpoint of @n has to be known all the same, since frames are counted by
 * endpoint; and a frame whose hook did not know of the fallback yet must not wait for a slot.
 */
static void serve_without_slots(struct bl_fpass *h, uint32_t n, bool wants)
{
	if (BL_READ_ONCE(h->dest[n].endpoint) == BL_FP_UNKNOWN)
		resolve_endpoint(h, n);
	if (wants)
		bl_fpass_visit(h, n);
}

bool bl_fpass_gather(struct bl_fpass *h)
{
	bool any = false;
	uint32_t n;

	for (n = 1; n < bl_numbers_used(h->due); n++) {
		struct bl_fp_dest *d = &h->dest[n];
		uint64_t wanted = BL_FP_WANTED(BL_READ_ONCE(d->want)),
			 missed = BL_READ_ONCE(d->missed);
		uint32_t endpoint = BL_READ_ONCE(d->endpoint);

		if (endpoint == BL_FP_RETIRED) {
			forget_dest(h, n);
			continue;
		}
		if (h->vain.fallen)
			serve_without_slots(h, n, wanted != h->told[n]);
		if (wanted == h->told[n] && missed == h->missed[n])
			continue;
		if (endpoint == BL_FP_UNKNOWN) {
			resolve_endpoint(h, n);
			endpoint = BL_READ_ONCE(d->endpoint);
		}
		if (endpoint == BL_FP_UNKNOWN || endpoint == BL_FP_RETIRED)
			continue;
		if (endpoint != BL_FP_OUTSIDE)
			request_slots(h, endpoint - 1, wanted - h->told[n] + missed - h->missed[n]);
		h->told[n] = wanted;
		h->missed[n] = missed;
		any = true;
	}
	return any;
}

void bl_fpass_audit(struct bl_fpass *h)
{
	uint32_t n, k;

	for (n = 1; n < bl_numbers_used(h->due); n++) {
		uint32_t endpoint = BL_READ_ONCE(h->dest[n].endpoint);
		uint64_t under_way, there, missing = 0;

		if (endpoint == BL_FP_UNKNOWN || endpoint == BL_FP_OUTSIDE ||
		    endpoint == BL_FP_RETIRED)
			continue;
		under_way = 0;
		there = bl_fcp_host_needs(&h->fcp.e.pair[endpoint - 1]);
		for (k = h->of[endpoint - 1]; k; k = h->next_of[k]) {
			under_way += bl_fp_under_way(&h->dest[k]);
			there += bl_fp_given(&h->dest[k]);
		}
		if (n == h->of[endpoint - 1] && under_way > there)
			missing = under_way - there;
		if (missing && h->short_by[n]) {
			missing = missing < h->short_by[n] ? missing : h->short_by[n];
			request_slots(h, endpoint - 1, missing);
			h->page->healed += missing;
			missing = 0;
		}
		h->short_by[n] = missing;
	}
}

/* ---- what is given ---- */

/* Of an endpoint's destinations (nearly always one), the one that lacks most slots; 0: none. */
static uint32_t neediest_dest(const struct bl_fpass *h, uint32_t endpoint)
{
	uint32_t n = h->of[endpoint], best = n;

	for (; n; n = h->next_of[n])
		if ((int64_t)(h->told[n] + h->missed[n] - h->entered[n]) >
		    (int64_t)(h->told[best] + h->missed[best] - h->entered[best]))
			best = n;
	return best;
}

void bl_fpass_give(struct bl_fpass *h, const struct bl_fcp_pkt *k, uint64_t now)
{
	uint64_t oldest = bl_fp_oldest(h->offset_ns, h->slot_ns, h->late_ns, now);
	__u64 lapsed = 0;
	struct bl_fcp_slots s;
	uint32_t i, j, n;

	for (i = 0; i < k->nruns; i++) {
		uint64_t first = BL_DUE_NEVER;

		bl_fcp_slots_at(k, i, &s);
		for (j = 0; j < s.count; j++) {
			/* the wire has the low 48 bits: ten years of slots of 1.23 us */
			uint64_t slot =
				bl_ext48((s.first + j * s.stride) & 0xffffffffffffULL, oldest);

			n = neediest_dest(h, s.dst);
			if (!n)
				continue; /* the endpoint has no destination any more */
			if (bl_fp_give(&h->dest[n], slot, s.path, oldest, &lapsed)) {
				h->page->refused++;
				request_slots(h, s.dst, 1);
				continue;
			}
			h->entered[n]++;
			if (slot < first)
				first = slot;
		}
		h->page->given += s.count;
		/* slots of the ring's last round that the pacer did not come to use */
		request_slots(h, s.dst, lapsed);
		lapsed = 0;
		if (first == BL_DUE_NEVER)
			continue;
		if (!h->page->first_ns)
			BL_WRITE_ONCE(h->page->first_ns, now);
		h->page->last_ns = now;
		n = h->of[s.dst];
		for (; n; n = h->next_of[n])
			if (bl_due_lower(h->due, n,
					 bl_fp_slot_begin(h->offset_ns, h->slot_ns, first)))
				bl_pacer_wake(&h->node->pace);
	}
}
