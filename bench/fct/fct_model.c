/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parameters of the fluid model (fct_fluid.h) for a policy of `lab run fct`.
 *
 * Policies without tokens have the whole rate; a frame takes its bytes, preamble, FCS and gap, and
 * all flows share. With TOP, each frame takes the slot of a token, 1622 byte times, however short
 * it is, of the rate without the headroom (of hosts or of switches, whichever is more); with one
 * class all flows share. There is no model for objectives whose classes do not depend on sizes
 * (deadline, coflow). Acknowledgements, SYNCs and round-trip times cost nothing in the model, so no
 * policy can reach it; the difference to the measurement is what they and the policy cost.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/fct/fct.h"
#include "bench/fct/fct_fluid.h"
#include "bench/fct/fct_stat.h"
#include "core/length_core.h"
#include "core/top/top_core.h"

#define ECHO_BYTES 12 /* by which top lowers the MTU of bl0 */

static uint32_t top_option(const struct lab_spec *s, unsigned int k, uint32_t dflt)
{
	return s->admission.top.v[k] ? s->admission.top.v[k] - 1 : dflt;
}

/* returns the enum fct_fluid_by of a policy, or -1 if there is no model */
static int class_rule(const struct lab_spec *s, const struct fct_params *p, unsigned int policy)
{
	if (p->policy[policy].policy != BL_POLICY_TOP || p->one_class[policy] ||
	    top_option(s, BL_TOP_O_LEVELS, BL_TOP_CLASSES) == 1)
		return FCT_FLUID_SHARE;
	switch (top_option(s, BL_TOP_O_OBJECTIVE, BL_TOP_BY_REMAINING)) {
	case BL_TOP_BY_REMAINING:
		return FCT_FLUID_REMAINING;
	case BL_TOP_BY_FCT:
		return FCT_FLUID_SIZE;
	case BL_TOP_BY_LAS:
		return FCT_FLUID_SERVED;
	}
	return -1;
}

static void set_network(const struct lab_spec *s, double rate, struct fct_fluid *m)
{
	unsigned int t, i;

	m->hosts = s->hosts;
	m->host_rate = rate;
	for (i = 0; i < FCT_HOSTS_MAX; i++)
		m->rack_rate[i] = rate * (s->leaf_spine && !s->dumbbell ? s->spines : 1);
	for (t = 0; s->leaf_spine && t < s->tors; t++)
		for (i = lab_first_host(s, t); i < lab_first_host(s, t + 1); i++)
			m->rack[i] = t;
}

int fct_model(const struct lab_spec *s, const struct fct_params *p, unsigned int policy,
	      double base_ns, double *fct)
{
	const bool top = p->policy[policy].policy == BL_POLICY_TOP;
	const uint32_t host = top_option(s, BL_TOP_O_HEADROOM, 5),
		       sw = s->admission.headroom_percent;
	const unsigned int mss = p->mss - (top ? ECHO_BYTES : 0);
	double rate = (double)s->admission.rate_bps / 8e9;
	struct fct_fluid_flow *f = calloc(p->nflows, sizeof(*f));
	struct fct_fluid m = { .levels = top_option(s, BL_TOP_O_LEVELS, BL_TOP_CLASSES) };
	int by = class_rule(s, p, policy), err;
	uint32_t i;

	if (by < 0 || !f) {
		free(f);
		return -1;
	}
	m.by = (enum fct_fluid_by)by;
	if (top)
		rate *= (100 - (host > sw ? host : sw)) / 100.0;
	set_network(s, rate, &m);
	for (i = 0; i + 1 < BL_TOP_CLASSES; i++)
		m.limit[i] = ((double)p->limit[i] - 1) * BL_TOP_MSS / mss * BL_TOP_WIRE_BYTES;
	for (i = 0; i < p->nflows; i++) {
		const struct fct_flow *w = &p->flow[i];
		uint64_t full = w->bytes / mss;
		uint32_t rest = (uint32_t)(w->bytes % mss);

		f[i].start_ns = (double)w->start_ns;
		f[i].src = w->src;
		f[i].dst = w->dst;
		if (top)
			f[i].bytes = (double)(full + !!rest) * BL_TOP_WIRE_BYTES;
		else
			f[i].bytes = (double)(full * bl_wire_bytes(mss + FCT_HEADERS) +
					      (rest ? bl_wire_bytes(rest + FCT_HEADERS) : 0));
	}
	err = fct_fluid_run(&m, f, p->nflows, fct);
	for (i = 0; i < p->nflows && !err; i++)
		fct[i] += base_ns;
	free(f);
	return err;
}
