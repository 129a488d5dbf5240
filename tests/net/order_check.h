/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Judges whether the logs of a run fit one order. It uses application-level ids alone, and shares
 * no code and no notion of time with the code under test.
 *
 * An id is (sender, seq, item): the seq-th scattering of a sender, and the item-th message of it to
 * one receiver (each receiver of a scattering gets the same items). A scattering is one point in
 * the order, so its items must arrive together.
 *
 * oc_check() builds one graph over all scatterings, with an edge from each scattering to the next
 * one that a receiver delivered, from each to the next one of its sender, and from a delivered one
 * to those that were sent because of it. There is one total order that is FIFO and causal, and of
 * which every receiver saw a part, if and only if the graph has no cycle.
 *
 * Example: R1 delivered (0,5) (1,2), R2 delivered (1,2) (0,5). This is a cycle of two: OC_ORDER.
 * Each pair of receivers is compared first, because a message about two receivers is easier to read
 * than one about a cycle of nine.
 */
#ifndef BARLINE_TESTS_ORDER_CHECK_H
#define BARLINE_TESTS_ORDER_CHECK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OC_NODES_MAX 64
#define OC_ITEMS_MAX 4

/** struct oc_sent - one scattering, logged before it is sent. */
struct oc_sent {
	uint64_t to;                 /* bit r: receiver r gets it */
	uint64_t hash[OC_ITEMS_MAX]; /* of each item's bytes */
	/* @after is 1: sent because its sender had delivered @after_seq of @after_sender. */
	uint64_t after_seq;
	uint16_t after_sender;
	uint8_t after;
	uint8_t items; /* messages to each receiver */
};

/** struct oc_got - one delivery. */
struct oc_got {
	uint64_t seq;  /* of the scattering */
	uint64_t hash; /* of the delivered bytes */
	uint64_t ts;   /* timestamp, only for messages about errors */
	uint16_t sender;
	uint16_t item;
};

struct oc_log {
	const struct oc_sent *sent;
	const struct oc_got *got;
	uint32_t nsent, ngot;
};

enum oc_verdict {
	OC_OK,
	OC_INVENTED, /* delivered a message that was never sent, or not to this receiver */
	OC_CONTENT,  /* delivered other bytes than were sent */
	OC_DUPLICATE,
	/* The items of one scattering were not delivered together, or in the wrong order. */
	OC_SPLIT,
	OC_FIFO,   /* two messages of one sender in the wrong order */
	OC_CAUSAL, /* an answer before its question */
	OC_ORDER,  /* two receivers disagree, or there is a longer cycle */
	OC_LOST,   /* a message is missing; only where completeness is required */
};

/** struct oc - one check. A check that compared nothing (@common is 0) proves nothing. */
struct oc {
	struct oc_log log[OC_NODES_MAX]; /* in: log of each endpoint */
	unsigned int nodes;              /* in: number of endpoints */
	/* In: everything that one of the former sent to one of the latter must have arrived. */
	uint64_t complete_from, complete_to;
	/*
	 * In: returns the bit set of items that are exempt from that, because their sender was told
	 * that they would not arrive. May be NULL.
	 */
	unsigned int (*excused)(unsigned int sender, uint64_t seq, unsigned int receiver);
	char text[512]; /* out: description of the error */
	/*
	 * Out: checked scatterings; checked deliveries; pairs of receivers times the scatterings
	 * that both delivered.
	 */
	uint64_t groups, deliveries, common;
	/* Private to oc_check(). */
	uint64_t base[OC_NODES_MAX + 1];
	uint32_t *pos[OC_NODES_MAX]; /* by scattering, at a receiver; 0: not delivered */
	uint8_t *items[OC_NODES_MAX];
	uint32_t *last_of[OC_NODES_MAX];
};

__attribute__((format(printf, 3, 4))) static enum oc_verdict oc_say(struct oc *c, enum oc_verdict v,
								    const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->text, sizeof(c->text), fmt, ap);
	va_end(ap);
	return v;
}

static uint64_t oc_index(const struct oc *c, unsigned int sender, uint64_t seq)
{
	return c->base[sender] + seq;
}

static unsigned int oc_sender_of(const struct oc *c, uint64_t index)
{
	unsigned int s = 0;

	while (index >= c->base[s + 1])
		s++;
	return s;
}

/* Checks each delivery of receiver @r alone and against the one before it. */
static enum oc_verdict oc_check_one(struct oc *c, unsigned int r)
{
	const struct oc_log *l = &c->log[r];
	uint32_t i, place = 0;

	for (i = 0; i < l->ngot; i++) {
		const struct oc_got *g = &l->got[i], *before = i ? g - 1 : NULL;
		bool same = before && before->sender == g->sender && before->seq == g->seq;
		const struct oc_sent *s;
		uint64_t x;

		if (g->sender >= c->nodes || g->seq >= c->log[g->sender].nsent)
			return oc_say(c, OC_INVENTED,
				      "receiver %u, delivery %u: (%u,%llu) was never sent", r, i,
				      g->sender, (unsigned long long)g->seq);
		s = &c->log[g->sender].sent[g->seq];
		x = oc_index(c, g->sender, g->seq);
		if (!(s->to >> r & 1) || g->item >= s->items)
			return oc_say(c, OC_INVENTED,
				      "receiver %u, delivery %u: (%u,%llu) item %u was not sent to "
				      "it",
				      r, i, g->sender, (unsigned long long)g->seq, g->item);
		if (g->hash != s->hash[g->item])
			return oc_say(c, OC_CONTENT,
				      "receiver %u, delivery %u: (%u,%llu) item %u has other "
				      "contents than were sent",
				      r, i, g->sender, (unsigned long long)g->seq, g->item);
		if (c->items[r][x] >> g->item & 1)
			return oc_say(c, OC_DUPLICATE,
				      "receiver %u, delivery %u: (%u,%llu) item %u came twice", r,
				      i, g->sender, (unsigned long long)g->seq, g->item);
		c->items[r][x] |= (uint8_t)(1u << g->item);
		if (same && before->item > g->item)
			return oc_say(c, OC_SPLIT,
				      "receiver %u, delivery %u: item %u of (%u,%llu) came after "
				      "item %u",
				      r, i, g->item, g->sender, (unsigned long long)g->seq,
				      before->item);
		if (!same && c->pos[r][x])
			return oc_say(c, OC_SPLIT,
				      "receiver %u, delivery %u: (%u,%llu) goes on after something "
				      "else was delivered",
				      r, i, g->sender, (unsigned long long)g->seq);
		if (!same)
			c->pos[r][x] = ++place;
		if (c->last_of[r][g->sender] > g->seq + 1)
			return oc_say(c, OC_FIFO,
				      "receiver %u, delivery %u: (%u,%llu) came after (%u,%u) of "
				      "the same sender",
				      r, i, g->sender, (unsigned long long)g->seq, g->sender,
				      c->last_of[r][g->sender] - 1);
		c->last_of[r][g->sender] = (uint32_t)g->seq + 1;
		c->deliveries++;
	}
	return OC_OK;
}

/* Checks the order of answers at every receiver that got the question and the answer. */
static enum oc_verdict oc_check_causal(struct oc *c)
{
	unsigned int s, r;
	uint32_t q;

	for (s = 0; s < c->nodes; s++) {
		for (q = 0; q < c->log[s].nsent; q++) {
			const struct oc_sent *m = &c->log[s].sent[q];

			if (!m->after)
				continue;
			for (r = 0; r < c->nodes; r++) {
				uint32_t p = c->pos[r][oc_index(c, s, q)],
					 w = c->pos[r][oc_index(c, m->after_sender, m->after_seq)];

				if (p && w && p < w)
					return oc_say(c, OC_CAUSAL,
						      "receiver %u delivered (%u,%u) before "
						      "(%u,%llu), which it answers",
						      r, s, q, m->after_sender,
						      (unsigned long long)m->after_seq);
			}
		}
	}
	return OC_OK;
}

static enum oc_verdict oc_check_pairs(struct oc *c)
{
	unsigned int a, b;

	for (a = 0; a < c->nodes; a++) {
		for (b = a + 1; b < c->nodes; b++) {
			const struct oc_got *last = NULL;
			uint32_t i, far = 0;

			for (i = 0; i < c->log[a].ngot; i++) {
				const struct oc_got *g = &c->log[a].got[i];
				uint32_t p = c->pos[b][oc_index(c, g->sender, g->seq)];

				if (!p || p == far)
					continue;
				if (p < far)
					return oc_say(c, OC_ORDER,
						      "receivers %u and %u disagree: %u delivered "
						      "(%u,%llu) [ts %llu] before (%u,%llu) [ts "
						      "%llu], %u the other way round",
						      a, b, a, last->sender,
						      (unsigned long long)last->seq,
						      (unsigned long long)last->ts, g->sender,
						      (unsigned long long)g->seq,
						      (unsigned long long)g->ts, b);
				far = p;
				last = g;
				c->common++;
			}
		}
	}
	return OC_OK;
}

struct oc_edge {
	uint32_t from, to;
};

static int oc_edge_cmp(const void *a, const void *b)
{
	const struct oc_edge *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/*
 * Describes a cycle among the nodes that Kahn's algorithm left over: walks backwards until a node
 * repeats.
 */
static enum oc_verdict oc_tell_cycle(struct oc *c, const struct oc_edge *e, size_t ne,
				     const uint32_t *in, uint32_t n)
{
	uint32_t *pred = malloc(n * sizeof(*pred)), *seen = calloc(n, sizeof(*seen)), x, first, k;
	char text[400];
	size_t i, at = 0;

	for (i = 0; i < ne; i++)
		if (in[e[i].from] && in[e[i].to])
			pred[e[i].to] = e[i].from;
	for (x = 0; !in[x]; x++)
		;
	for (k = 1; !seen[x]; x = pred[x])
		seen[x] = k++;
	first = x;
	do {
		unsigned int s = oc_sender_of(c, x);

		at += (size_t)snprintf(text + at, sizeof(text) - at, "(%u,%llu) after ", s,
				       (unsigned long long)(x - c->base[s]));
		x = pred[x];
	} while (x != first && at < sizeof(text) - 60);
	free(pred);
	free(seen);
	return oc_say(c, OC_ORDER, "no total order fits all receivers, senders and answers: %s...",
		      text);
}

static enum oc_verdict oc_check_graph(struct oc *c)
{
	uint32_t n = (uint32_t)c->base[c->nodes], *in = calloc(n + 1, sizeof(*in)),
		 *first = calloc(n + 2, sizeof(*first)), *todo = malloc((n + 1) * sizeof(*todo));
	size_t ne = 0, room = c->deliveries + 2 * (size_t)n + 1, i;
	struct oc_edge *e = malloc(room * sizeof(*e));
	uint32_t head = 0, tail = 0, x, q;
	enum oc_verdict v = OC_OK;
	unsigned int s, r;

	for (s = 0; s < c->nodes; s++) {
		for (q = 0; q < c->log[s].nsent; q++) {
			const struct oc_sent *m = &c->log[s].sent[q];

			x = (uint32_t)oc_index(c, s, q);
			if (q)
				e[ne++] = (struct oc_edge){ x - 1, x };
			if (m->after)
				e[ne++] = (struct oc_edge){
					(uint32_t)oc_index(c, m->after_sender, m->after_seq), x
				};
		}
	}
	for (r = 0; r < c->nodes; r++) {
		uint32_t before = UINT32_MAX, k;

		for (k = 0; k < c->log[r].ngot; k++) {
			x = (uint32_t)oc_index(c, c->log[r].got[k].sender, c->log[r].got[k].seq);
			if (before != UINT32_MAX && before != x)
				e[ne++] = (struct oc_edge){ before, x };
			before = x;
		}
	}
	qsort(e, ne, sizeof(*e), oc_edge_cmp);
	for (i = 0; i < ne; i++) {
		in[e[i].to]++;
		first[e[i].from + 1]++;
	}
	for (x = 0; x < n; x++)
		first[x + 1] += first[x];
	for (x = 0; x < n; x++)
		if (!in[x])
			todo[tail++] = x;
	while (head < tail) {
		x = todo[head++];
		for (i = first[x]; i < first[x + 1]; i++)
			if (!--in[e[i].to])
				todo[tail++] = e[i].to;
	}
	if (tail != n)
		v = oc_tell_cycle(c, e, ne, in, n);
	free(e);
	free(in);
	free(first);
	free(todo);
	return v;
}

static enum oc_verdict oc_check_complete(struct oc *c)
{
	unsigned int s, r;
	uint32_t q;

	for (s = 0; s < c->nodes; s++) {
		if (!(c->complete_from >> s & 1))
			continue;
		for (q = 0; q < c->log[s].nsent; q++) {
			const struct oc_sent *m = &c->log[s].sent[q];

			for (r = 0; r < c->nodes; r++) {
				if (!(m->to & c->complete_to) ||
				    !((m->to & c->complete_to) >> r & 1))
					continue;
				if ((c->items[r][oc_index(c, s, q)] |
				     (c->excused ? c->excused(s, q, r) : 0)) !=
				    (1u << m->items) - 1)
					return oc_say(c, OC_LOST,
						      "receiver %u never delivered (%u,%u) in "
						      "full: items %#x of %#x",
						      r, s, q, c->items[r][oc_index(c, s, q)],
						      (1u << m->items) - 1);
			}
		}
	}
	return OC_OK;
}

static enum oc_verdict oc_check(struct oc *c)
{
	enum oc_verdict v = OC_OK;
	unsigned int r;
	uint64_t n;

	c->text[0] = 0;
	c->deliveries = c->common = 0;
	for (c->base[0] = 0, r = 0; r < c->nodes; r++)
		c->base[r + 1] = c->base[r] + c->log[r].nsent;
	n = c->groups = c->base[c->nodes];
	for (r = 0; r < c->nodes; r++) {
		c->pos[r] = calloc(n + 1, sizeof(uint32_t));
		c->items[r] = calloc(n + 1, 1);
		c->last_of[r] = calloc(c->nodes, sizeof(uint32_t));
	}
	for (r = 0; !v && r < c->nodes; r++)
		v = oc_check_one(c, r);
	if (!v)
		v = oc_check_causal(c);
	if (!v)
		v = oc_check_pairs(c);
	if (!v)
		v = oc_check_graph(c);
	if (!v)
		v = oc_check_complete(c);
	for (r = 0; r < c->nodes; r++) {
		free(c->pos[r]);
		free(c->items[r]);
		free(c->last_of[r]);
	}
	return v;
}

#endif
