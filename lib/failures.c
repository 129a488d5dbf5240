// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reading the page of failure announcements, which the host's daemon writes (maps/failure_abi.h).
 */
#include "failures.h"

uint64_t bl_failures_last(const struct bl_endpoint *ep)
{
	return ep->failures ? __atomic_load_n(&ep->failures->last, __ATOMIC_ACQUIRE) : 0;
}

/*
 * Copies an announcement from the page. Returns false if it is there no more, or is being written
 * over.
 */
bool bl_failures_read(struct bl_endpoint *ep, uint64_t number)
{
	struct bl_failure *f = &ep->fails[number % BL_FAILS_MAX];

	memcpy(f, &ep->failures->ring[number % BL_FAILS_MAX], sizeof(*f));
	/*
	 * pairs with bl_failure_announce() in loader/order/endpoint_pages.c: a copy of what is
	 * newer finds a newer last
	 */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&ep->failures->last, __ATOMIC_RELAXED) - number < BL_FAILS_MAX - 1;
}

/* Below which messages may be delivered: not beyond what was announced and is not dealt with. */
uint64_t bl_failures_limit(const struct bl_endpoint *ep)
{
	uint64_t limit = ep->commit, n;

	/*
	 * the helper, which runs no callbacks, may go beyond what they are all that is missing of:
	 * nothing of it reaches the application before them
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
