// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See kill.h. The judge considers each scattering once: its timestamp, and which of the correct
 * receivers delivered it.
 *
 * Total order: each diary is sorted by (timestamp, sender, number), and a scattering has the same
 * timestamp in all diaries. So any two receivers deliver what they share in the same order.
 * All or none: either all correct receivers of a scattering deliver it, or none of them.
 * Causality: the timestamp of a scattering is above those of all messages that its sender had
 * delivered before it sent it.
 *
 * Example: (h1,9) was sent to h1, h2 and h3, and h2 has failed. If it is in the diaries of h1 and
 * h3, it was delivered. If it is in neither, and h1 was told that it failed, it was recalled. If it
 * is only in that of h1, or in both although h1 was told that it failed, a promise is broken.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kill/kill.h"

/** struct seen - A scattering as it is in the diaries. */
struct seen {
	uint64_t ts;  /* 0: it is in no diary */
	uint64_t got; /* receivers that delivered it; bit: host */
};

__attribute__((format(printf, 2, 3))) static int report_violation(struct kill_verdict *v,
								  const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->error, sizeof(v->error), fmt, ap);
	va_end(ap);
	return 1;
}

static int is_later(const struct kill_got *a, const struct kill_got *b)
{
	return a->ts != b->ts           ? a->ts > b->ts
	       : a->sender != b->sender ? a->sender > b->sender
					: a->seq > b->seq;
}

/* checks the order of receiver @r's diary and enters it into @seen */
static int read_diary(const struct kill_ctl *c, unsigned int r, struct seen *seen,
		      const uint8_t *rank, struct kill_verdict *v)
{
	const struct kill_worker *w = &c->w[r];
	uint32_t n = atomic_load(&w->ngot), k;

	for (k = 0; k < n; k++) {
		const struct kill_got *g = &w->got[k];
		struct kill_got before, now = *g;
		struct seen *s;

		if (g->sender >= c->n || g->seq >= atomic_load(&c->w[g->sender].nsent) ||
		    !(c->w[g->sender].sent[g->seq].to >> r & 1))
			return report_violation(v,
						"h%u delivered (h%u,%u), which was not sent to it",
						r + 1, g->sender + 1, g->seq);
		if (k) {
			before = g[-1];
			before.sender = rank[before.sender];
			now.sender = rank[now.sender];
			if (!is_later(&now, &before))
				return report_violation(v,
							"h%u delivered (h%u,%u) of time %" PRIu64
							" after (h%u,%u) of %" PRIu64,
							r + 1, g->sender + 1, g->seq, g->ts,
							g[-1].sender + 1, g[-1].seq, g[-1].ts);
		}
		s = &seen[(size_t)g->sender * KILL_SENT + g->seq];
		if (s->ts && s->ts != g->ts)
			return report_violation(v,
						"(h%u,%u) has time %" PRIu64 " at h%u and %" PRIu64
						" elsewhere",
						g->sender + 1, g->seq, g->ts, r + 1, s->ts);
		s->ts = g->ts;
		s->got |= 1ULL << r;
	}
	return 0;
}

static int judge_sent(const struct kill_ctl *c, unsigned int s, uint64_t correct,
		      const struct seen *seen, struct kill_verdict *v)
{
	const struct kill_worker *w = &c->w[s];
	uint32_t n = atomic_load(&w->nsent), k;

	for (k = 0; k < n; k++) {
		uint64_t to = w->sent[k].to & correct, got = seen[k].got & correct;

		if (got && got != to)
			return report_violation(v,
						"(h%u,%u) went to hosts %#" PRIx64 ", of which "
						"%#" PRIx64 " are correct, and %#" PRIx64 " deliver"
						"ed it",
						s + 1, k, w->sent[k].to, to, got);
		if (got && seen[k].ts <= w->sent[k].after)
			return report_violation(v,
						"(h%u,%u) has time %" PRIu64 ", and its sender had "
						"delivered "
						"one of %" PRIu64 " before",
						s + 1, k, seen[k].ts, w->sent[k].after);
		v->delivered += got != 0;
		if (!(correct >> s & 1)) {
			v->cut += to && !got;
			continue;
		}
		if (to && (got != 0) == w->failed[k])
			return report_violation(v, "(h%u,%u) was %s", s + 1, k,
						got ? "delivered, and its sender was told that it "
						      "failed"
						    : "neither delivered nor reported to its "
						      "sender");
		v->none += w->failed[k];
	}
	return 0;
}

/* Messages with the same timestamp are ordered by the addresses of their senders. */
static void rank_senders(const struct kill_ctl *c, uint8_t *rank)
{
	unsigned int i, k;

	for (i = 0; i < c->n; i++)
		for (rank[i] = 0, k = 0; k < c->n; k++) {
			int d = memcmp(c->w[k].addr.ip, c->w[i].addr.ip, 16);

			rank[i] = (uint8_t)(rank[i] + (d < 0 || (!d && c->w[k].addr.port <
									       c->w[i].addr.port)));
		}
}

int kill_judge(const struct kill_ctl *c, uint64_t correct, struct kill_verdict *v)
{
	struct seen *seen = calloc((size_t)c->n * KILL_SENT, sizeof(*seen));
	uint8_t rank[LAB_HOSTS_MAX];
	unsigned int i;
	int bad = 0;

	*v = (struct kill_verdict){ 0 };
	if (!seen)
		return report_violation(v, "out of memory");
	rank_senders(c, rank);
	for (i = 0; i < c->n && !bad; i++)
		if (correct >> i & 1)
			bad = read_diary(c, i, seen, rank, v);
	for (i = 0; i < c->n && !bad; i++)
		bad = judge_sent(c, i, correct, seen + (size_t)i * KILL_SENT, v);
	free(seen);
	return bad;
}
