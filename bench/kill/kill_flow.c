// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See kill.h. If a process is stopped or leaves, the others may deliver later or less than before.
 * Both follow from their diaries.
 *
 * Example: h1 delivered at 0, 1, 2, 7 and 8 ms. From 0 to 10 ms its longest gap is 5 ms, and the
 * flow is 500 messages per second.
 */
#include "bench/kill/kill.h"

/*
 * Reads the diary of receiver @r. Updates the gap of @f if @r has a longer one, and adds the number
 * of deliveries from correct senders to *@n.
 */
static void read_diary(const struct kill_ctl *c, unsigned int r, uint64_t correct, uint64_t from,
		       uint64_t to, struct kill_flow *f, uint64_t *n)
{
	const struct kill_worker *w = &c->w[r];
	uint32_t got = atomic_load(&w->ngot), k;
	uint64_t last = from, at;

	for (k = 0; k <= got && last < to; k++) {
		if (k < got && (w->got[k].at_ns < from || !(correct >> w->got[k].sender & 1)))
			continue;
		at = k < got && w->got[k].at_ns < to ? w->got[k].at_ns : to;
		if ((double)(at - last) / 1e6 > f->gap_ms) {
			f->gap_ms = (double)(at - last) / 1e6;
			f->gap_end_ns = at;
		}
		*n += at < to;
		last = at;
	}
}

struct kill_flow kill_flow(const struct kill_ctl *c, uint64_t correct, uint64_t from_ns,
			   uint64_t to_ns)
{
	struct kill_flow f = { .gap_end_ns = from_ns };
	unsigned int i, hosts = 0;
	uint64_t n = 0;

	for (i = 0; i < c->n && from_ns < to_ns; i++) {
		if (!(correct >> i & 1))
			continue;
		read_diary(c, i, correct, from_ns, to_ns, &f, &n);
		hosts++;
	}
	if (hosts)
		f.per_s = (double)n * 1e9 / (double)(to_ns - from_ns) / hosts;
	return f;
}
