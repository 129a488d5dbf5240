// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See forward.h. A frame is forwarded or dropped, and counted either way. It is never saved: the
 * sender retransmits what is not acknowledged.
 */
#include <string.h>

#include "controller/forward.h"
#include "controller/message.h"
#include "controller/peer.h"
#include "proto/forward_msg.h"

/*
 * Returns the counter for frame @f from node @from, CTL_FORWARDED if it is to be forwarded; *@to is
 * then the session of the receiver.
 */
static enum ctl_count classify_frame(const struct peer *from, const struct bl_forward *f,
				     struct peer **to)
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
	 * The commit barrier does not wait for this sender yet. Its switch would not let it open a
	 * window, and neither does the controller.
	 */
	if (!bl_recover_covered(c->rec, s))
		return CTL_FORWARD_AWAY;
	*to = ctl_peer_find(c, d->id);
	/* An agent accepts no message before WELCOME. */
	if (!*to || !d->connected || !d->saved || d->welcome)
		return CTL_FORWARD_AWAY;
	return bl_session_waiting((*to)->session) > CTL_FORWARD_WAIT ? CTL_FORWARD_FULL
								     : CTL_FORWARDED;
}

bool ctl_forward(struct peer *p, const Bl__Forward *m)
{
	struct bl_ctl *c = p->c;
	struct peer *to = NULL;
	enum ctl_count what;
	struct bl_forward f;

	if (!bl_forward_read(m, &f)) {
		c->counts[CTL_FORWARD_BAD]++;
		return false;
	}
	what = classify_frame(p, &f, &to);
	c->counts[what]++;
	if (what != CTL_FORWARDED)
		return true;
	ctl_send(to, ctl_forward_bytes(c->elected, m));
	return true;
}
