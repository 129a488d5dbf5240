// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See peer.h. */
#include <stdlib.h>

#include "base/time.h"
#include "controller/peer.h"

bool ctl_leading(const struct bl_ctl *c)
{
	return c->elected && !c->loading && bl_store_epoch(c->store) == c->elected;
}

struct peer *ctl_peer_find(const struct bl_ctl *c, uint32_t id)
{
	struct peer *p;

	for (p = c->peers; p && p->node != id; p = p->next)
		;
	return p;
}

struct peer *ctl_peer_ready(struct bl_ctl *c, uint32_t id)
{
	const struct bl_recover_node *n = bl_recover_node(c->rec, id);

	return n && n->connected && n->saved && !n->welcome ? ctl_peer_find(c, id) : NULL;
}

void ctl_send(struct peer *p, struct ctl_bytes b)
{
	if (b.data)
		bl_session_send(p->session, b.data, b.len);
	free(b.data);
}

void ctl_peer_remove(struct peer *p)
{
	struct bl_ctl *c = p->c;
	struct peer **at;

	for (at = &c->peers; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	c->npeers--;
	c->strangers -= !p->node;
	if (p->node && !ctl_peer_find(c, p->node))
		bl_recover_bye(c->rec, bl_mono_ns(), p->node);
	free(p->hello.data);
	free(p);
}

void ctl_peer_hang_up(struct peer *p)
{
	bl_session_close(p->session);
	ctl_peer_remove(p);
}

void ctl_peer_refer(struct peer *p)
{
	struct bl_ctl *c = p->c;
	const char *why = *c->trouble  ? c->trouble
			  : c->elected ? "it is about to lead"
				       : "it does not lead";
	char text[600];

	if (!*c->trouble && !c->elected && *bl_store_waits(c->store, text, sizeof(text)))
		why = text;
	ctl_send(p, ctl_not_leading(c->elected ? "" : c->leader, why));
	bl_session_end(p->session);
}

void ctl_peer_refuse(struct peer *p, const char *why)
{
	ctl_send(p, ctl_not_leading("", why));
	bl_session_end(p->session);
}
