// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See arbiter/peer.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arbiter/peer.h"

static uint32_t addr_hash(const struct bl_arb *a, const struct in6_addr *ip)
{
	return (uint32_t)bl_siphash(a->hash_key, 0, ip, 16, BL_SIP_NONE) & a->hash_mask;
}

struct arb_peer *arb_peer_find(struct bl_arb *a, const struct in6_addr *ip)
{
	uint32_t at = addr_hash(a, ip);

	for (; a->hash[at]; at = (at + 1) & a->hash_mask)
		if (!memcmp(&a->cfg.endpoints[a->hash[at] - 1].addr, ip, sizeof(*ip)))
			return &a->peer[a->hash[at] - 1];
	return NULL;
}

int arb_peers_open(struct bl_arb *a, struct bl_err *err)
{
	uint32_t n = a->cfg.nendpoints, i, at;
	size_t each = n * (sizeof(struct bl_fcp_pair) + 2 * sizeof(uint16_t)) +
		      BL_FCP_WINDOW * sizeof(struct bl_fcp_sent);
	char name[INET6_ADDRSTRLEN];
	uint8_t *m;

	each = (each + 63) & ~63UL;
	for (a->hash_mask = 15; a->hash_mask < 2 * n; a->hash_mask = 2 * a->hash_mask + 1)
		;
	a->hash = calloc(a->hash_mask + 1, sizeof(*a->hash));
	a->peer = calloc(n, sizeof(*a->peer));
	a->touched = calloc(n, sizeof(*a->touched));
	a->mem = m = calloc(n, each); /* no memory is used before a pair is */
	if (!a->hash || !a->peer || !a->touched || !m)
		return bl_fail(err, ENOMEM, "out of memory for %u endpoints", n);
	for (i = 0; i < n; i++, m += each) {
		struct arb_peer *p = &a->peer[i];
		struct bl_fcp_end *e = &p->fcp.e;

		if (arb_peer_find(a, &a->cfg.endpoints[i].addr))
			return bl_fail(err, EINVAL, "endpoint %s is listed twice",
				       arb_addr_text(&a->cfg.endpoints[i].addr, name));
		for (at = addr_hash(a, &a->cfg.endpoints[i].addr); a->hash[at];
		     at = (at + 1) & a->hash_mask)
			;
		a->hash[at] = i + 1;
		p->addr = a->cfg.endpoints[i].addr;
		p->port = a->cfg.endpoints[i].port ? a->cfg.endpoints[i].port : BL_FCP_PORT;
		for (p->via = 0;
		     p->via < a->nsock && a->sock[p->via]->family != arb_addr_family(&p->addr);
		     p->via++)
			;
		if (p->via == a->nsock || a->sock[p->via]->group)
			p->via = 0;
		p->fcp.p = &a->params;
		e->n = n;
		e->sent = (void *)m;
		e->pair = (void *)(m + BL_FCP_WINDOW * sizeof(struct bl_fcp_sent));
		e->tell.item = (void *)(e->pair + n);
		e->look.item = e->tell.item + n;
		p->fcp.reset = (struct bl_fcp_reset){ .table = BL_BE32(a->params.table),
						      .slot_ns = BL_BE32(a->cfg.slot_ns),
						      .slot_bytes = BL_BE32(a->cfg.slot_bytes),
						      .index = BL_BE16(i),
						      .endpoints = BL_BE16(n) };
		bl_fcp_session_begin(&p->fcp.e, 0);
	}
	return 0;
}

void arb_peers_close(struct bl_arb *a)
{
	free(a->hash);
	free(a->peer);
	free(a->touched);
	free(a->mem);
}

void arb_peer_send(struct bl_arb *a, struct arb_peer *p, uint64_t now)
{
	struct arb_sock *s = a->sock[p->via];
	uint32_t len;

	while ((len = bl_fcp_arb_tx(&p->fcp, now, arb_sock_room(s, &a->sent))))
		arb_sock_queue(s, &p->addr, p->port, len);
}

int arb_peer_grant(struct arb_peer *p, uint64_t slot, uint32_t dst, uint8_t path)
{
	return bl_fcp_arb_grant(&p->fcp, slot, dst, path);
}
