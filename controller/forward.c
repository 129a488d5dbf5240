// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Controller forwarding (1Pipe 5.2): a frame from one correct host for another
 * (loader/order/forward.h). It is sent on or dropped, counted either way, and never saved: whoever
 * needs it sends it again.
 *
 * It must be in nobody's way: what says who failed goes out in the same sessions. So a frame is
 * dropped if more than CTL_FORWARD_WAIT bytes wait for its receiver already.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/forward_msg.h"
#include "server_priv.h"

#define CTL_FORWARD_WAIT (BL_SESSION_OUT_MAX / 32)

static const struct peer *peer_of(const struct bl_ctl *c, uint32_t node)
{
	const struct peer *p;

	for (p = c->peers; p && p->node != node; p = p->next)
		;
	return p;
}

static enum ctl_count judge(const struct peer *from, const struct bl_forward *f,
			    const struct peer **to)
{
	const struct bl_ctl *c = from->c;
	const struct bl_recover_node *s = bl_recover_node(c->rec, from->node),
				     *d = bl_recover_node_of(c->rec, f->to);
	uint32_t i;

	for (i = 0; s && i < s->naddrs && memcmp(s->addr[i], f->from, 16); i++)
		;
	if (!s || i == s->naddrs)
		return CTL_FORWARD_FORGED;
	if (!d || d->kind != BL_DET_HOST)
		return CTL_FORWARD_UNKNOWN;
	if (s->state != BL_DET_UP || d->state != BL_DET_UP || s->gone || d->gone)
		return CTL_FORWARD_FAILED;
	/*
	 * else it could open a window that its switch would not let it open: C does not wait for it
	 * yet
	 */
	if (!bl_recover_covered(c->rec, s))
		return CTL_FORWARD_AWAY;
	*to = peer_of(c, d->id);
	/* what comes before WELCOME is no order for an agent */
	if (!*to || !d->connected || !d->saved || d->welcome)
		return CTL_FORWARD_AWAY;
	return bl_session_waiting((*to)->session) > CTL_FORWARD_WAIT ? CTL_FORWARD_FULL
								     : CTL_FORWARDED;
}

bool ctl_forward(struct peer *p, const Bl__Forward *m)
{
	struct bl_ctl *c = p->c;
	const struct peer *to = NULL;
	enum ctl_count what;
	struct bl_forward f;
	struct ctl_bytes b;

	if (!bl_forward_read(m, &f)) {
		c->counts[CTL_FORWARD_BAD]++;
		return false;
	}
	what = judge(p, &f, &to);
	c->counts[what]++;
	if (what != CTL_FORWARDED)
		return true;
	b = ctl_forward_bytes(c->elected, m);
	if (b.data)
		bl_session_send(to->session, b.data, b.len);
	free(b.data);
	return true;
}
