/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Both ends of FCP with their memory, for the tests.
 */
#ifndef BARLINE_FCP_ENDS_H
#define BARLINE_FCP_ENDS_H

#include "tests/unit/unit.h"

#include "core/fastpass/fcp_arb_core.h"
#include "core/fastpass/fcp_host_core.h"

#define US   1000ULL
#define T0   (1ULL << 40)
#define NDST 300 /* more destinations than one packet holds */

struct mem {
	struct bl_fcp_pair pair[NDST];
	struct bl_fcp_sent sent[BL_FCP_WINDOW];
	uint16_t tell[NDST], look[NDST];
};

static inline void end_init(struct bl_fcp_end *e, struct mem *m, uint32_t n)
{
	memset(m, 0, sizeof(*m));
	*e = (struct bl_fcp_end){
		.pair = m->pair, .sent = m->sent, .tell.item = m->tell, .look.item = m->look, .n = n
	};
}

static inline void host_init(struct bl_fcp_host *h, struct mem *m, const struct bl_fcp_params *p,
			     uint32_t n, uint32_t self, uint32_t challenge)
{
	memset(h, 0, sizeof(*h));
	h->p = *p;
	end_init(&h->e, m, n);
	bl_fcp_host_init(h, self, challenge);
}

static inline void arb_init(struct bl_fcp_arb *a, struct mem *m, const struct bl_fcp_params *p,
			    uint32_t n, uint32_t self, uint32_t term)
{
	memset(a, 0, sizeof(*a));
	a->p = p;
	a->reset = (struct bl_fcp_reset){ .term = BL_BE32(term),
					  .table = BL_BE32(p->table),
					  .slot_ns = BL_BE32(1230),
					  .slot_bytes = BL_BE32(1514),
					  .index = BL_BE16(self),
					  .endpoints = BL_BE16(n) };
	end_init(&a->e, m, n);
	bl_fcp_arb_begin(a, 0);
	a->fresh = 0;
}

#endif
