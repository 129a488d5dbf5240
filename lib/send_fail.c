// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Messages that were not delivered. Failures are collected while the library works and reported by
 * bl_tx_report() at its end, since a callback may call the library.
 */
#include <stdlib.h>

#include "lock.h"
#include "send_fail.h"

void bl_tx_fail(struct bl_endpoint *ep, const struct bl_peer *p, uint64_t ts, uint64_t cookie,
		uint8_t why)
{
	ep->st.send_failed++;
	if (!ep->on_fail)
		return;
	if (ep->nfailed == ep->failed_room) {
		uint32_t room = ep->failed_room ? 2 * ep->failed_room : 64;
		struct bl_failed *f = realloc(ep->failed, room * sizeof(*f));

		if (!f)
			return; /* best effort: counted, but not reported */
		ep->failed = f;
		ep->failed_room = room;
	}
	ep->failed[ep->nfailed++] =
		(struct bl_failed){ .ts = ts, .cookie = cookie, .dst = p->addr, .why = why };
}

void bl_tx_report(struct bl_endpoint *ep)
{
	struct bl_failed *f = ep->failed;
	uint32_t n = ep->nfailed, i;

	if (!n)
		return;
	/* Taken over first: a callback may send, and that may fail, too. */
	ep->failed = NULL;
	ep->nfailed = ep->failed_room = 0;
	bl_leave(ep);
	for (i = 0; i < n && ep->on_fail; i++)
		ep->on_fail(ep->on_fail_ctx, f[i].ts, &f[i].dst, f[i].cookie, f[i].why);
	bl_enter(ep);
	free(f);
}

void bl_tx_fail_frame(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint8_t item,
		      uint8_t why)
{
	struct bl_sent *s = p->tx.sent ? &p->tx.sent[psn % (2 * BL_WINDOW_MAX)] : NULL;
	uint32_t i;

	if (!s || s->psn != psn || !s->count) {
		if (!p->tx.sent)
			ep->st.send_failed++; /* without a callback, frames are counted */
		return;
	}
	for (i = 0; i < s->count; i++)
		if (item == BL_NAK_WHOLE || item == i)
			bl_tx_fail(ep, p, s->ts, s->cookie[i], why);
	if (item == BL_NAK_WHOLE)
		s->count = 0; /* reported once */
}

void bl_tx_nak(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len)
{
	const struct bl_tx *t = &p->tx;
	struct bl_nak_view v;
	uint32_t i, from;

	if (bl_nak_open(&v, body, len) || v.count > 2 * BL_WINDOW_MAX || bl_nak_is_local(v.why)) {
		ep->st.malformed++;
		return;
	}
	if (v.incarnation != ep->incarnation)
		return;
	/*
	 * A CREDIT covers what was delivered, so that nothing before it is taken back. Only a
	 * receiver that leaves may name messages that its helper had taken out and the application
	 * has not read.
	 */
	from = v.why == BL_NAK_LEFT || p->self ? t->next_psn - 2 * BL_WINDOW_MAX : t->credited;
	if (v.psn + v.count - from > t->next_psn - from || v.psn - from >= t->next_psn - from) {
		ep->st.refused++;
		return;
	}
	for (i = 0; i < v.count; i++)
		bl_tx_fail_frame(ep, p, v.psn + i, v.count == 1 ? v.item : BL_NAK_WHOLE, v.why);
}

void bl_on_send_fail(struct bl_endpoint *ep, bl_send_fail_fn fn, void *ctx)
{
	bl_enter(ep);
	ep->on_fail = fn;
	ep->on_fail_ctx = ctx;
	bl_leave(ep);
}
