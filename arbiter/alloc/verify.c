/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The verifier: counts every packet again, one at a time. See verify.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arbiter/alloc/verify.h"

#define RING       2048u /* slots remembered; windows have 512 at most */
#define RING_WORDS (RING / 64)
#define NONE       (~0u)

/** struct bl_verify - The network, and what was demanded and given so far. */
struct bl_verify {
	uint32_t n, racks, pods;     /* endpoints, racks, pods */
	uint32_t ports, rack0, pod0; /* numbered as in alloc_priv.h */
	uint32_t window;             /* slots */
	uint16_t *cap, *rack_of, *pod_of;
	uint16_t *count; /* [slot % RING][port] packets */
	uint32_t *sent;  /* [slot % RING] packets of all pairs */
	uint64_t *room;  /* [port][word] 1: the port can take another packet in the slot */
	uint64_t seen;   /* slots below it have been given their place in the ring */
	uint32_t *owed;  /* [src][dst] MTUs demanded and not given */
	uint32_t *at; /* [src][dst] 1 + place in @list of a pair that is owed something; 0: not */
	uint32_t *list;
	size_t nlist;
	uint64_t packets, slot_sum;
	bool failed;
	char error[256];
};

static void *dup16(const uint16_t *from, uint32_t n)
{
	uint16_t *p = calloc(n + 1, sizeof(*p));
	uint32_t i;

	for (i = 0; p && from && i < n; i++)
		p[i] = from[i];
	return p;
}

void bl_verify_free(struct bl_verify *v)
{
	if (!v)
		return;
	free(v->cap);
	free(v->rack_of);
	free(v->pod_of);
	free(v->count);
	free(v->sent);
	free(v->room);
	free(v->owed);
	free(v->at);
	free(v->list);
	free(v);
}

static void clear_slot(struct bl_verify *v, uint64_t slot)
{
	uint32_t r = (uint32_t)(slot % RING), p;

	memset(&v->count[(size_t)r * v->ports], 0, v->ports * sizeof(*v->count));
	v->sent[r] = 0;
	for (p = 0; p < v->ports; p++) {
		if (v->cap[p])
			v->room[(size_t)p * RING_WORDS + r / 64] |= 1ULL << r % 64;
		else
			v->room[(size_t)p * RING_WORDS + r / 64] &= ~(1ULL << r % 64);
	}
}

struct bl_verify *bl_verify_new(const struct bl_alloc_cfg *c)
{
	struct bl_verify *v = calloc(1, sizeof(*v));
	size_t pairs;
	uint32_t i;

	if (!v)
		return NULL;
	v->n = c->endpoints;
	v->racks = c->racks;
	v->pods = c->pods;
	v->rack0 = 2 * v->n;
	v->pod0 = v->rack0 + 2 * v->racks;
	v->ports = v->pod0 + 2 * v->pods;
	v->window = bl_alloc_window(c);
	pairs = (size_t)v->n * v->n;
	v->cap = calloc(v->ports, sizeof(*v->cap));
	v->rack_of = dup16(c->rack_of, v->racks ? v->n : 0);
	v->pod_of = dup16(c->pod_of, v->pods ? v->racks : 0);
	v->count = calloc((size_t)RING * v->ports, sizeof(*v->count));
	v->sent = calloc(RING, sizeof(*v->sent));
	v->room = calloc((size_t)v->ports * RING_WORDS, sizeof(*v->room));
	v->owed = calloc(pairs, sizeof(*v->owed));
	v->at = calloc(pairs, sizeof(*v->at));
	v->list = calloc(pairs, sizeof(*v->list));
	if (!v->cap || !v->rack_of || !v->pod_of || !v->count || !v->sent || !v->room || !v->owed ||
	    !v->at || !v->list) {
		bl_verify_free(v);
		return NULL;
	}
	for (i = 0; i < v->n; i++) {
		v->cap[i] = c->src_cap ? c->src_cap[i] : 1;
		v->cap[v->n + i] = c->dst_cap ? c->dst_cap[i] : 1;
	}
	for (i = 0; i < v->racks; i++) {
		v->cap[v->rack0 + i] = c->rack_up[i];
		v->cap[v->rack0 + v->racks + i] = c->rack_down[i];
	}
	for (i = 0; i < v->pods; i++) {
		v->cap[v->pod0 + i] = c->pod_up[i];
		v->cap[v->pod0 + v->pods + i] = c->pod_down[i];
	}
	return v;
}

static bool fail_run(struct bl_verify *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static bool fail_run(struct bl_verify *v, const char *fmt, ...)
{
	va_list ap;

	if (!v->failed) {
		va_start(ap, fmt);
		vsnprintf(v->error, sizeof(v->error), fmt, ap);
		va_end(ap);
	}
	v->failed = true;
	return false;
}

static void owe_mtus(struct bl_verify *v, size_t pair, uint32_t mtus)
{
	if (!v->owed[pair] && mtus) {
		v->list[v->nlist++] = (uint32_t)pair;
		v->at[pair] = (uint32_t)v->nlist;
	}
	v->owed[pair] += mtus;
}

static void pay_mtus(struct bl_verify *v, size_t pair, uint32_t mtus)
{
	uint32_t last;

	v->owed[pair] -= mtus;
	if (v->owed[pair] || !mtus)
		return;
	last = v->list[--v->nlist];
	v->list[v->at[pair] - 1] = last;
	v->at[last] = v->at[pair];
	v->at[pair] = 0;
}

void bl_verify_demand(struct bl_verify *v, uint32_t src, uint32_t dst, uint32_t mtus)
{
	owe_mtus(v, (size_t)src * v->n + dst, mtus);
}

uint64_t bl_verify_forget(struct bl_verify *v, uint32_t endpoint)
{
	uint64_t mtus = 0;
	uint32_t i;

	for (i = 0; i < v->n; i++) {
		size_t out = (size_t)endpoint * v->n + i, in = (size_t)i * v->n + endpoint;

		mtus += v->owed[out];
		pay_mtus(v, out, v->owed[out]);
		mtus += v->owed[in];
		pay_mtus(v, in, v->owed[in]);
	}
	return mtus;
}

static uint32_t ports_of_pair(const struct bl_verify *v, uint32_t src, uint32_t dst, uint32_t *p)
{
	uint32_t n = 0, r, q;

	p[n++] = src;
	p[n++] = v->n + dst;
	r = v->racks ? v->rack_of[src] : 0;
	q = v->racks ? v->rack_of[dst] : 0;
	if (r != q) {
		p[n++] = v->rack0 + r;
		p[n++] = v->rack0 + v->racks + q;
		if (v->pods && v->pod_of[r] != v->pod_of[q]) {
			p[n++] = v->pod0 + v->pod_of[r];
			p[n++] = v->pod0 + v->pods + v->pod_of[q];
		}
	}
	return n;
}

static const char *port_kind(const struct bl_verify *v, uint32_t p, uint32_t *index)
{
	const uint32_t first[] = { 0,        v->n,
				   v->rack0, v->rack0 + v->racks,
				   v->pod0,  v->pod0 + v->pods };
	static const char *const kind[] = { "source",         "destination", "rack up-link",
					    "rack down-link", "pod up-link", "pod down-link" };
	uint32_t k = 5;

	while (k && p < first[k])
		k--;
	*index = p - first[k];
	return kind[k];
}

static bool count_packet(struct bl_verify *v, uint32_t src, uint32_t dst, uint64_t slot)
{
	uint32_t p[6], np = ports_of_pair(v, src, dst, p), r = (uint32_t)(slot % RING), i, index;

	for (i = 0; i < np; i++) {
		uint16_t *c = &v->count[(size_t)r * v->ports + p[i]];

		if (*c >= v->cap[p[i]]) {
			const char *kind = port_kind(v, p[i], &index);

			return fail_run(v,
					"slot %" PRIu64 ": %s %u carries %u packets and can carry "
					"%u",
					slot, kind, index, *c + 1u, v->cap[p[i]]);
		}
		if (++*c == v->cap[p[i]])
			v->room[(size_t)p[i] * RING_WORDS + r / 64] &= ~(1ULL << r % 64);
	}
	v->sent[r]++;
	v->packets++;
	v->slot_sum += slot;
	return true;
}

static bool validate_maximal(struct bl_verify *v, uint64_t now, uint64_t end)
{
	uint32_t p[6];
	size_t k;

	for (k = 0; k < v->nlist; k++) {
		uint32_t src = v->list[k] / v->n, dst = v->list[k] % v->n,
			 np = ports_of_pair(v, src, dst, p), i;
		uint64_t slot = now;

		while (slot < end) {
			uint32_t r = (uint32_t)(slot % RING);
			uint64_t both = ~0ULL << r % 64, upto = slot - slot % 64 + 64;

			for (i = 0; i < np; i++)
				both &= v->room[(size_t)p[i] * RING_WORDS + r / 64];
			if (both && slot - slot % 64 + (uint32_t)__builtin_ctzll(both) < end)
				return fail_run(v,
						"slot %" PRIu64 ": %u to %u waits with %u MTUs and "
						"could send",
						slot - slot % 64 + (uint32_t)__builtin_ctzll(both),
						src, dst, v->owed[v->list[k]]);
			slot = upto;
		}
	}
	return true;
}

bool bl_verify_run(struct bl_verify *v, const struct bl_grants *g, uint64_t now)
{
	const uint64_t end = g->base + v->window;
	uint64_t sum = 0;
	size_t at = 0;

	if (v->failed)
		return false;
	if (now < g->base || now >= end)
		return fail_run(v, "slot %" PRIu64 " is not in the window of %" PRIu64, now,
				g->base);
	if (v->seen < now)
		v->seen = v->seen + RING < now ? now - RING : v->seen;
	for (; v->seen < end; v->seen++)
		clear_slot(v, v->seen);
	while (at < g->len) {
		struct bl_grant head;
		uint32_t word, in_head = 0;

		memcpy(&head, &g->row[at++], sizeof(head));
		if (head.src >= v->n || head.dst >= v->n || head.src == head.dst || !head.words)
			return fail_run(v, "grant from %u to %u with words 0x%x", head.src,
					head.dst, head.words);
		for (word = 0; word < 8; word++) {
			uint64_t mask;
			uint32_t bit;

			if (!(head.words >> word & 1))
				continue;
			if (at == g->len)
				return fail_run(v, "the row ends inside a grant");
			mask = g->row[at++];
			if (!mask)
				return fail_run(v, "grant from %u to %u with an empty mask",
						head.src, head.dst);
			for (bit = 0; bit < 64; bit++) {
				uint64_t slot = g->base + 64 * word + bit;

				if (!(mask >> bit & 1))
					continue;
				if (slot < now || slot >= end)
					return fail_run(v,
							"slot %" PRIu64 " was given at %" PRIu64
							", in a window that ends at %" PRIu64,
							slot, now, end);
				if (!count_packet(v, head.src, head.dst, slot))
					return false;
				in_head++;
			}
		}
		if (in_head != head.mtus)
			return fail_run(v, "grant from %u to %u says %u MTUs and has %u", head.src,
					head.dst, head.mtus, in_head);
		if (v->owed[(size_t)head.src * v->n + head.dst] < in_head)
			return fail_run(v, "%u to %u got %u MTUs and asked for %u", head.src,
					head.dst, in_head,
					v->owed[(size_t)head.src * v->n + head.dst]);
		pay_mtus(v, (size_t)head.src * v->n + head.dst, in_head);
		sum += in_head;
	}
	if (sum != g->mtus)
		return fail_run(v, "the run says %" PRIu64 " MTUs and has %" PRIu64, g->mtus, sum);
	return validate_maximal(v, now, end);
}

uint32_t bl_verify_waiting(const struct bl_verify *v, uint32_t src, uint32_t dst)
{
	return v->owed[(size_t)src * v->n + dst];
}

uint64_t bl_verify_packets(const struct bl_verify *v)
{
	return v->packets;
}

uint64_t bl_verify_slot_sum(const struct bl_verify *v)
{
	return v->slot_sum;
}

uint32_t bl_verify_slot(const struct bl_verify *v, uint64_t slot)
{
	return v->sent[slot % RING];
}

const char *bl_verify_error(const struct bl_verify *v)
{
	return v->error;
}

const char *bl_verify_paths(uint32_t racks, uint32_t paths, uint32_t cap, const uint64_t *usable,
			    const uint16_t *src, const uint16_t *dst, const uint8_t *path, size_t n,
			    size_t *unplaced)
{
	uint16_t *out = calloc((size_t)racks * paths, sizeof(*out)),
		 *in = calloc((size_t)racks * paths, sizeof(*in));
	const char *why = out && in ? NULL : "out of memory";
	size_t i;

	*unplaced = 0;
	for (i = 0; !why && i < n; i++) {
		if (path[i] == 0xff) {
			++*unplaced;
			continue;
		}
		if (src[i] >= racks || dst[i] >= racks || path[i] >= paths)
			why = "a packet has a path or a rack that does not exist";
		else if (usable && !(usable[(size_t)src[i] * racks + dst[i]] >> path[i] & 1))
			why = "a packet has a path that is dead between its racks";
		else if (++out[(size_t)src[i] * paths + path[i]] > cap)
			why = "a rack sends more on a path than it can";
		else if (++in[(size_t)dst[i] * paths + path[i]] > cap)
			why = "a rack receives more on a path than it can";
	}
	free(out);
	free(in);
	return why;
}
