// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See kill.h. Every scattering goes to everybody, so what is promised is simple to see: the diaries of all correct receivers are the same, from the first line to the last.
 *
 * Example: h1 has (h2,7) (h1,9), h3 has (h2,7): all have ended, so h3 lost (h1,9), or h1 must not have it. With h3's (h1,9) before (h2,7): another order.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kill.h"

__attribute__((format(printf, 2, 3))) static int wrong(struct kill_verdict *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->error, sizeof(v->error), fmt, ap);
	va_end(ap);
	return 1;
}

/* one diary in itself: times that do not fall, no sender's number twice or backwards, nothing that nobody sent */
static int judge_one(const struct kill_ctl *c, unsigned int i, struct kill_verdict *v)
{
	const struct kill_worker *w = &c->w[i];
	uint32_t next[LAB_HOSTS_MAX] = { 0 }, n = atomic_load(&w->ngot), k;

	for (k = 0; k < n; k++) {
		const struct kill_got *g = &w->got[k];

		if (g->sender >= c->n || g->seq >= atomic_load(&c->w[g->sender].nsent))
			return wrong(v, "h%u delivered (h%u,%u), which nobody sent", i + 1, g->sender + 1, g->seq);
		if (k && g->ts < g[-1].ts)
			return wrong(v, "h%u delivered (h%u,%u) of time %llu after %llu", i + 1, g->sender + 1, g->seq, (unsigned long long)g->ts, (unsigned long long)g[-1].ts);
		if (g->seq < next[g->sender])
			return wrong(v, "h%u delivered (h%u,%u) after (h%u,%u)", i + 1, g->sender + 1, g->seq, g->sender + 1, next[g->sender] - 1);
		next[g->sender] = g->seq + 1;
	}
	return 0;
}

static int judge_two(const struct kill_ctl *c, unsigned int a, unsigned int b, struct kill_verdict *v)
{
	const struct kill_worker *x = &c->w[a], *y = &c->w[b];
	uint32_t n = atomic_load(&x->ngot), m = atomic_load(&y->ngot), k;

	for (k = 0; k < n && k < m; k++)
		if (x->got[k].sender != y->got[k].sender || x->got[k].seq != y->got[k].seq || x->got[k].ts != y->got[k].ts)
			return wrong(v, "delivery %u is (h%u,%u) at h%u and (h%u,%u) at h%u", k + 1, x->got[k].sender + 1, x->got[k].seq, a + 1, y->got[k].sender + 1, y->got[k].seq, b + 1);
	if (n != m)
		return wrong(v, "h%u delivered %u messages and h%u %u: not all or none", a + 1, n, b + 1, m);
	return 0;
}

/* what a correct sender sent came, or it was told that it did not; never both, never neither */
static int judge_sender(const struct kill_ctl *c, unsigned int s, unsigned int receiver, struct kill_verdict *v)
{
	static bool came[KILL_SENT];
	const struct kill_worker *w = &c->w[receiver];
	uint32_t n = atomic_load(&w->ngot), sent = atomic_load(&c->w[s].nsent), k;

	memset(came, 0, sizeof(came));
	for (k = 0; k < n; k++)
		if (w->got[k].sender == s)
			came[w->got[k].seq] = true;
	for (k = 0; k < sent; k++) {
		if (came[k] == c->w[s].failed[k])
			return wrong(v, "(h%u,%u) was %s", s + 1, k, came[k] ? "delivered, and its sender was told that it failed" : "neither delivered nor reported to its sender");
		v->none += !came[k];
	}
	return 0;
}

int kill_judge(const struct kill_ctl *c, uint64_t correct, struct kill_verdict *v)
{
	unsigned int i, first = (unsigned int)__builtin_ctzll(correct);

	*v = (struct kill_verdict){ 0 };
	for (i = 0; i < c->n; i++)
		if ((correct >> i & 1) && judge_one(c, i, v))
			return 1;
	for (i = first + 1; i < c->n; i++)
		if ((correct >> i & 1) && judge_two(c, first, i, v))
			return 1;
	for (i = 0; i < c->n; i++)
		if ((correct >> i & 1) && judge_sender(c, i, first, v))
			return 1;
	v->delivered = atomic_load(&c->w[first].ngot);
	return 0;
}
