// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Remote endpoints by address. A table with open addressing, because every message that is sent and
 * every frame that arrives is looked up. sweep.c removes peers that are idle, and strangers
 * (proof.h) for which there is no room.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/ip.h"
#include "peer.h"

static uint32_t hash_addr(const uint8_t ip[16], uint16_t port)
{
	uint64_t a, b;

	memcpy(&a, ip, 8);
	memcpy(&b, ip + 8, 8);
	a = (a ^ (b + port) * 0x9E3779B97F4A7C15ULL) * 0xD6E8FEB86659FD93ULL;
	return (uint32_t)(a >> 32) ^ (uint32_t)(b >> 40) * 0x85EBCA6Bu;
}

static bool has_addr(const struct bl_peer *p, const uint8_t ip[16], uint16_t port)
{
	return p->addr.port == port && !memcmp(p->addr.ip, ip, 16);
}

struct bl_peer *bl_peer_find(struct bl_endpoint *ep, const uint8_t ip[16], uint16_t port)
{
	uint32_t i;

	if (!ep->table_size)
		return NULL;
	for (i = hash_addr(ip, port);; i++) {
		struct bl_peer *p = ep->table[i & (ep->table_size - 1)];

		if (!p || has_addr(p, ip, port))
			return p;
	}
}

static void insert_peer(struct bl_endpoint *ep, struct bl_peer *p)
{
	uint32_t i = hash_addr(p->addr.ip, p->addr.port);

	while (ep->table[i & (ep->table_size - 1)])
		i++;
	ep->table[i & (ep->table_size - 1)] = p;
}

static int grow_table(struct bl_endpoint *ep)
{
	uint32_t size = ep->table_size ? 2 * ep->table_size : 64;
	struct bl_peer **t = calloc(size, sizeof(*t)), *p;

	if (!t)
		return -ENOMEM;
	free(ep->table);
	ep->table = t;
	ep->table_size = size;
	for (p = ep->peers; p; p = p->all_next)
		insert_peer(ep, p);
	return 0;
}

void bl_peer_init(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t ip[16], uint16_t port)
{
	memcpy(p->addr.ip, ip, 16);
	p->addr.port = port;
	p->self = has_addr(p, ep->self.ip, ep->self.port);
	p->local = !memcmp(ip, ep->self.ip, 16);
	p->sa_len = bl_ip_sockaddr(&p->sa, ip, port);
}

/*
 * Numbers begin where nobody can guess. Best effort: the low byte is 0, so a receiver recognises
 * the first numbers of a stream (rx.c).
 */
static int choose_numbers(const struct bl_endpoint *ep, struct bl_peer *p)
{
	uint32_t r[4] = { 0 };

	if (ep->key[0] | ep->key[1] && !p->self && getrandom(r, sizeof(r), 0) != sizeof(r))
		return -EAGAIN;
	p->tx.next_psn = p->tx.credited = r[0] & ~0xffU;
	p->rtx.next_psn = p->rtx.credited = p->rtx.asked_psn = r[1];
	p->tx.next_big = r[2];
	p->rtx.next_big = r[3];
	return 0;
}

struct bl_peer *bl_peer_meet(struct bl_endpoint *ep, const uint8_t ip[16], uint16_t port)
{
	struct bl_peer *p;
	uint8_t key[BL_RQ_KEY];

	if (2 * (ep->npeers + 1) > ep->table_size && grow_table(ep))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	bl_peer_init(ep, p, ip, port);
	if (choose_numbers(ep, p)) {
		free(p);
		return NULL;
	}
	memcpy(key, ip, 16);
	bl_store16(key + 16, port);
	bl_rq_sender_init(&p->rq, key);
	bl_rq_sender_init(&p->rrq, key);
	/*
	 * An endpoint tells itself no window. With a window of 0 the stage for oneself would be the
	 * smallest one: broadcasts to all left four frames at a time, which cost a quarter of the
	 * throughput.
	 */
	p->rtx.window = p->self ? BL_WINDOW_MAX : 0;
	p->tx.window = p->self ? BL_WINDOW_MAX : BL_WINDOW_FIRST;
	p->tx.rto_ns = BL_RTO_NS;
	p->tx.big_tail = &p->tx.big;
	p->all_next = ep->peers;
	p->all_at = &ep->peers;
	if (ep->peers)
		ep->peers->all_at = &p->all_next;
	ep->peers = p;
	ep->npeers++;
	insert_peer(ep, p);
	return p;
}

struct bl_peer *bl_peer_get(struct bl_endpoint *ep, const uint8_t ip[16], uint16_t port)
{
	struct bl_peer *p = bl_peer_find(ep, ip, port);

	if (p && p->ours)
		return p;
	if (!p)
		p = bl_peer_meet(ep, ip, port);
	if (!p)
		return NULL;
	p->ours = true;
	bl_peer_known(ep, p);
	return p;
}

void bl_peer_strange(struct bl_endpoint *ep, struct bl_peer *p)
{
	ep->strangers[ep->nstrangers++] = p;
	p->stranger = ep->nstrangers;
}

void bl_peer_known(struct bl_endpoint *ep, struct bl_peer *p)
{
	struct bl_peer *last;

	if (!p->stranger)
		return;
	last = ep->strangers[--ep->nstrangers];
	ep->strangers[p->stranger - 1] = last;
	last->stranger = p->stranger;
	p->stranger = 0;
	ep->strange_bytes -= p->rx.big_room;
}

void bl_peer_take_out(struct bl_endpoint *ep, struct bl_peer *p)
{
	const uint32_t mask = ep->table_size - 1;
	uint32_t i = hash_addr(p->addr.ip, p->addr.port), k;

	bl_peer_known(ep, p);
	while (ep->table[i & mask] != p)
		i++;
	/* Move back those behind it that would not be found across the gap. */
	for (k = i + 1; ep->table[k & mask]; k++) {
		const struct bl_peer *q = ep->table[k & mask];

		if (((k - hash_addr(q->addr.ip, q->addr.port)) & mask) < ((k - i) & mask))
			continue;
		ep->table[i & mask] = ep->table[k & mask];
		i = k;
	}
	ep->table[i & mask] = NULL;
	*p->all_at = p->all_next;
	if (p->all_next)
		p->all_next->all_at = p->all_at;
	ep->npeers--;
}
