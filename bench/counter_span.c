/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See counter_span.h.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/counter_span.h"
#include "cli/util/out.h"
#include "cli/util/read_admission.h"

int counter_span_begin(struct counter_span *s, bool admission)
{
	struct bl_err err;

	memset(s, 0, sizeof(*s));
	s->admission = admission;
	s->nrefs = bl_nodes_find(&s->refs, 0, &err);
	if (s->nrefs < 0)
		return cli_fail("%s", err.text);
	return adm_counts(s->refs, s->nrefs, &s->switches, &s->hosts) ||
	       (admission && adm_late(s->refs, s->nrefs, &s->late));
}

int counter_span_end(const struct counter_span *s, struct bl_counts *switches,
		     struct bl_counts *hosts, struct bl_hist *late)
{
	struct bl_counts sw = { 0 }, host = { 0 };
	struct bl_hist now = { 0 };
	unsigned int k;
	int err = 0;

	if (!s->admission || !adm_late(s->refs, s->nrefs, &now))
		hist_add(late, &now, &s->late);
	else
		err = 1;
	if (adm_counts(s->refs, s->nrefs, &sw, &host))
		return 1;
	for (k = 0; k < BL_REASON_MAX; k++) {
		switches->n[k] = sw.n[k] - s->switches.n[k];
		hosts->n[k] = host.n[k] - s->hosts.n[k];
		switches->bytes[k] = sw.bytes[k] - s->switches.bytes[k];
		hosts->bytes[k] = host.bytes[k] - s->hosts.bytes[k];
	}
	return err;
}

void counter_span_free(struct counter_span *s)
{
	free(s->refs);
	s->refs = NULL;
}
