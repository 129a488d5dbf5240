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
 * Nothing more may be sent to it: what gets its slots after begin_recalls() has locked those of
 * before would never be taken back.
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
				r->done = true; /* who failed will not answer */
	/* whom a window that is not open is asked for nobody knows */
	if (p->self || (p->rtx.open && bl_failures_other_life(f, p->rtx.life)))
		return;
	p->rtx.failed |= p->rtx.open;
	p->rtx.open = false;
	/*
	 * what is sent there fails at once, and holds nothing else up, until somebody answers; whom
	 * nobody has sent to is asked only when somebody does
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

			/* announced once more, by who does not know: the first T stays */
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

/* Announcements that follow say nothing to this endpoint, and nor does the commit barrier. */
static void end_announcements(struct bl_endpoint *ep)
{
	ep->outcast = ep->fails_end = ep->ended = true;
}

/*
 * What the page says that is new is begun: discarded, and to be recalled by the next
 * bl_recall_work(). Returns whether any of it is of @p.
 */
bool bl_discard_news(struct bl_endpoint *ep, const struct bl_peer *p)
{
	uint64_t last = bl_failures_last(ep);
	bool mine = false;

	while (!ep->fails_end && ep->fail_begun < last) {
		const struct bl_failure *f = bl_failures_at(ep, ep->fail_begun + 1);

		/*
		 * what it has missed, it cannot learn any more, and the barrier that was read last
		 * may have passed its T
		 */
		if (last - ep->fail_seen >= BL_FAILS_MAX - 1 ||
		    !bl_failures_read(ep, ep->fail_begun + 1)) {
			ep->commit = ep->commit_was;
			end_announcements(ep);
			break;
		}
		/*
		 * nobody was told of it before this host promised it no C any more, so the barrier
		 * that was read last holds
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
