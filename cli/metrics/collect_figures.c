// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Metrics of what endpoints tell of themselves (maps/figures_abi.h). See collect.h. */
#include "base/time.h"
#include "cli/metrics/collect.h"
#include "cli/util/read_figures.h"
#include "core/figures_core.h"

static const char *const streams[] = { "order", "reliable" };

/* Adds a histogram, unless nothing was counted: most endpoints use one stream. */
static void put_hist(struct collector *c, enum metric m, const struct bl_fig_hist *h,
		     const char *const *labels)
{
	uint64_t n[BL_LOG_BINS], sum = BL_READ_ONCE(h->sum_ns), any = 0;
	unsigned int k;

	for (k = 0; k < BL_LOG_BINS; k++)
		any |= n[k] = BL_READ_ONCE(h->n[k]);
	if (any)
		collect_log_hist(c, m, n, BL_FIG_FIRST, (double)sum * 1e-9, labels);
}

static void put_stream(struct collector *c, const struct bl_figures *f, unsigned int r,
		       const char *const *labels)
{
	uint64_t since = BL_READ_ONCE(f->now[r].since_ns), mono = bl_mono_ns();

	metric_u64(c->to, BL_METRIC_EP_QUEUED, BL_READ_ONCE(f->queued[r]), labels);
	metric_ns(c->to, BL_METRIC_EP_STAGED, since && since < mono ? (int64_t)(mono - since) : 0,
		  labels);
	put_hist(c, BL_METRIC_SEND_WAIT, &f->hist[BL_FIG_SEND + r], labels);
	put_hist(c, BL_METRIC_DELIVERY, &f->hist[BL_FIG_DELIVERY + r], labels);
	put_hist(c, BL_METRIC_HOLD, &f->hist[BL_FIG_HOLD + r], labels);
}

void collect_figures(struct collector *c, int node, unsigned int slot, const char *port)
{
	const char *name = c->name[node];
	const struct bl_figures *f;
	struct bl_err err;
	unsigned int r;

	f = figures_map(&c->refs[node], slot, &err);
	if (!f)
		return; /* the endpoint is just leaving */
#define PUT(sym, member)                                                               \
	metric_u64(c->to, BL_METRIC_EP_EVENTS, BL_READ_ONCE(f->count[BL_FIG_N_##sym]), \
		   LABELS(name, port, #member));
	BL_FIG_COUNTS(PUT)
#undef PUT
	for (r = 0; r < 2; r++)
		put_stream(c, f, r, LABELS(name, port, streams[r]));
	figures_unmap(f);
}
