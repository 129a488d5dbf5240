// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See judge.h. */
#include "cli/health/judge.h"

#include "maps/pulse_abi.h"

struct verdict judge_daemon(const struct daemon_facts *f)
{
	if (!f->pulse)
		return (struct verdict){ FOUND_FAIL, "none" };
	if (f->state == BL_PULSE_STOPPED || f->process == 0 || f->process == 'Z' ||
	    f->process == 'X')
		return (struct verdict){ FOUND_FAIL, "stopped" };
	if (f->process == 'T' || f->process == 't')
		return (struct verdict){ FOUND_FAIL, "sigstop" };
	if (f->age_ns > PULSE_STALE_NS)
		return (struct verdict){ FOUND_FAIL, "stuck" };
	if (f->state == BL_PULSE_CARETAKER)
		return (struct verdict){ FOUND_WARN, "caretaker" };
	if (f->spare == BL_PULSE_SPARE_LOST)
		return (struct verdict){ FOUND_WARN, "no_spare" };
	return (struct verdict){ FOUND_OK, "ok" };
}

uint64_t lag_limit(uint64_t dead_after_ns)
{
	return 10 * dead_after_ns > LAG_MIN_NS ? 10 * dead_after_ns : LAG_MIN_NS;
}

/* A host has one neighbour, and is nothing without it. A switch may have ports for machines that
 * are off. */
struct verdict judge_neighbours(const struct neighbour_facts *f)
{
	enum finding_level missing = f->host ? FOUND_FAIL : FOUND_WARN;

	if (f->drained)
		return (struct verdict){ FOUND_FAIL, "drained" };
	if (f->held)
		return (struct verdict){ missing, "held" };
	if (f->excluded)
		return (struct verdict){ missing, "excluded" };
	if (f->joining)
		return (struct verdict){ missing, "joining" };
	if (f->live < f->all)
		return (struct verdict){ missing, "silent" };
	if (f->host && f->lag_ns > lag_limit(f->dead_after_ns) + LAG_STILL_NS)
		return (struct verdict){ FOUND_FAIL, "lagging" };
	if (f->lagging || (f->host && f->lag_ns > lag_limit(f->dead_after_ns)))
		return (struct verdict){ FOUND_WARN, "lagging" };
	return (struct verdict){ FOUND_OK, "ok" };
}

struct verdict judge_controller(bool known, unsigned int session, bool failed)
{
	if (!known)
		return (struct verdict){ FOUND_OK, "unknown" };
	if (failed)
		return (struct verdict){ FOUND_FAIL, "failed" };
	if (session == BL_PULSE_NO_CONTROLLERS)
		return (struct verdict){ FOUND_OK, "none" };
	if (session != BL_PULSE_WELCOME)
		return (struct verdict){ FOUND_WARN, "no_session" };
	return (struct verdict){ FOUND_OK, "ok" };
}

void judge_node(struct health *h)
{
	unsigned int k;

	h->level = FOUND_OK;
	h->worst = 0;
	for (k = 0; k < NODE_CHECKS_NUMBER; k++)
		if (h->check[k].known && h->check[k].level > h->level) {
			h->level = h->check[k].level;
			h->worst = k;
		}
	h->ready = h->level != FOUND_FAIL;
}
