// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Discard (1Pipe 5.2). What an announcement discards is dropped as soon as the announcement is
 * read, before anything is delivered; recall.c does what remains.
 *
 * An announcement of a process names its life. An announcement of a host, or without a life, means
 * the lives that were heard of before it was read. So the page is read whenever a life is heard of
 * for the first time. A host comes back only after all pages have the announcement of its failure,
 * so an endpoint that hears from the host's new processes finds the announcement in its page.
 */
#include "discard.h"
#include "failures.h"
#include "open.h"
#include "prepared.h"

/*
 * Stop sending to a failed process. A frame that got its slot after begin_recalls() has locked the
 * slots of the process would never be recalled.
 */
static void stop_sending(struct bl_endpoint *ep, struct bl_peer *p, const struct bl_failure *f)
{
	bool wanted = p->rtx.open || p->rtx.asks || p->rtx.dirty;
	struct bl_recalling *r;

	if (f->port && f->life && !bl_failures_is_gone(p, f->life))
		p->rtx.gone[p->rtx.next_gone++ % BL_GONE_LIVES] = 1U + f->life;
	if (!bl_failures_other_life(f, p->rtx.life))
		for (r = ep->recalls; r; r = r->next)
			if (r->peer == p)
				r->done = true; /* a failed process does not answer */
	/* A window that is not open was not given by any known process, so @f may be about it. */
	if (p->self || (p->rtx.open && bl_failures_other_life(f, p->rtx.life)))
		return;
	p->rtx.failed |= p->rtx.open;
	p->rtx.open = false;
	/*
	 * Sends to the address fail at once, and delay nothing else, until a process answers there.
	 * An address that was never sent to is asked only when the application sends to it.
	 */
	bl_open_mark_dead(ep, p, bl_mono());
	if (!wanted) {
		p->rtx.retries = BL_RETRIES_MAX;
		p->rtx.retry_ns = 0;
	}
}

static void discard_failure(struct bl_endpoint *ep, const struct bl_failure *f)
{
	struct bl_peer *p;

	for (p = ep->peers; p; p = p->all_next) {
		if (!bl_failures_is_at(f, &p->addr))
			continue;
		ep->st.discarded += bl_rrx_discard(ep, p, f->ts, f->port ? f->life : 0);
		if (!p->rrx.known || !bl_failures_other_life(f, p->rrx.incarnation)) {
			uint16_t life = p->rrx.known ? p->rrx.incarnation : f->life;

			/* If the failure is announced again, the first T remains valid. */
			p->rrx.gone_ts = p->rrx.gone && p->rrx.gone_life == life &&
							 p->rrx.gone_ts < f->ts
						 ? p->rrx.gone_ts
						 : f->ts;
			p->rrx.gone = true;
			p->rrx.gone_life = life;
		}
		stop_sending(ep, p, f);
	}
}

/* Later announcements, and later commit barriers, do not concern this endpoint any more. */
static void end_announcements(struct bl_endpoint *ep)
{
	ep->outcast = ep->fails_end = ep->ended = true;
}

bool bl_discard_news(struct bl_endpoint *ep, const struct bl_peer *p)
{
	uint64_t last = bl_failures_last(ep);
	bool mine = false;

	while (!ep->fails_end && ep->fail_begun < last) {
		const struct bl_failure *f = bl_failures_at(ep, ep->fail_begun + 1);

		/*
		 * The endpoint has missed announcements and cannot learn them any more, and the
		 * commit barrier that was read last may have passed their T.
		 */
		if (last - ep->fail_seen >= BL_FAILS_MAX - 1 ||
		    !bl_failures_read(ep, ep->fail_begun + 1)) {
			ep->commit = ep->commit_was;
			end_announcements(ep);
			break;
		}
		/*
		 * This endpoint itself has failed. No host was told of that before this host had
		 * stopped to advance the commit barrier for the endpoint, so the barrier that was
		 * read last is valid.
		 */
		if (bl_failures_is_at(f, &ep->self) &&
		    !bl_failures_other_life(f, ep->incarnation)) {
			end_announcements(ep);
			break;
		}
		ep->fail_begun++;
		ep->recall_again = true;
		discard_failure(ep, f);
		mine |= p && bl_failures_is_at(f, &p->addr);
	}
	return mine;
}
