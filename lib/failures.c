// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reading the page of failure announcements, which the host's daemon writes (maps/failure_abi.h).
 */
#include "failures.h"

uint64_t bl_failures_last(const struct bl_endpoint *ep)
{
	return ep->failures ? __atomic_load_n(&ep->failures->last, __ATOMIC_ACQUIRE) : 0;
}

bool bl_failures_read(struct bl_endpoint *ep, uint64_t number)
{
	struct bl_failure *f = &ep->fails[number % BL_FAILS_MAX];

	memcpy(f, &ep->failures->ring[number % BL_FAILS_MAX], sizeof(*f));
	/*
	 * Pairs with bl_failure_announce() in loader/order/endpoint_pages.c: a reader that has
	 * copied a newer announcement finds a newer @last.
	 */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&ep->failures->last, __ATOMIC_RELAXED) - number < BL_FAILS_MAX - 1;
}

uint64_t bl_failures_limit(const struct bl_endpoint *ep)
{
	uint64_t limit = ep->commit, n;

	/*
	 * The helper runs no callbacks, so it may deliver beyond announcements that lack only their
	 * callbacks. What it delivers goes to the shelf, and reaches the application after the
	 * callbacks.
	 */
	for (n = (ep->by_helper ? ep->fail_settled : ep->fail_seen) + 1; n <= ep->fail_begun; n++)
		if (bl_failures_at(ep, n)->ts < limit)
			limit = bl_failures_at(ep, n)->ts;
	return limit;
}

bool bl_failures_is_gone(const struct bl_peer *p, uint16_t life)
{
	unsigned int i;

	for (i = 0; i < BL_GONE_LIVES && p->rtx.gone[i] != 1U + life; i++)
		;
	return i < BL_GONE_LIVES;
}
