// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See failure_text.h. */
#include "controller/failure_text.h"

#include <stdio.h>
#include <string.h>

#include "base/event.h"
#include "controller/ctl_priv.h"
#include "controller/recover/determine.h"
#include "controller/recover/recover_core.h"

uint32_t ctl_failure_unnamed(const struct bl_ctl *c, const struct bl_recover_failure *f)
{
	uint32_t i, sum = 0;

	for (i = 0; i < f->nfailed; i++) {
		const struct bl_recover_node *n = bl_recover_node(c->rec, f->failed[i].node);

		sum += !f->failed[i].proc.port && !f->failed[i].naddrs && n &&
		       n->kind == BL_DET_HOST;
	}
	return sum;
}

void ctl_failure_who(const struct bl_ctl *c, const struct bl_recover_failure *f, char *text,
		     size_t size)
{
	const struct bl_recover_node *n = f->nfailed ? bl_recover_node(c->rec, f->failed[0].node)
						     : NULL;
	int k;

	if (!f->nfailed) {
		snprintf(text, size, "links only");
		return;
	}
	k = n && *n->name ? snprintf(text, size, "%s", n->name)
			  : snprintf(text, size, "%08x", f->failed[0].node);
	if (f->failed[0].proc.port)
		k += snprintf(text + k, size - (size_t)k, ":%u", f->failed[0].proc.port);
	if (f->nfailed > 1)
		k += snprintf(text + k, size - (size_t)k, " and %u more", f->nfailed - 1);
	if (ctl_failure_unnamed(c, f))
		snprintf(text + k, size - (size_t)k, " (no address)");
}

const char *ctl_failed_why(const struct bl_recover_failed *f)
{
#define NAME(sym, num, name, text) [num] = name,
	static const char *const names[BL_WHY_COUNT] = { BL_GONES(NAME) };
#undef NAME
	if (!f->proc.port)
		return bl_det_why_name((enum bl_det_why)f->why);
	return names[f->proc.why < BL_WHY_COUNT ? f->proc.why : BL_WHY_UNKNOWN];
}

void ctl_failure_why(const struct bl_recover_failure *f, char *text, size_t size)
{
	uint32_t i, k;
	size_t n = 0;

	*text = 0;
	for (i = 0; i < f->nfailed && n < size; i++) {
		for (k = 0;
		     k < i && strcmp(ctl_failed_why(&f->failed[k]), ctl_failed_why(&f->failed[i]));
		     k++)
			;
		if (k == i)
			n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "",
					      ctl_failed_why(&f->failed[i]));
	}
}

void ctl_failure_event(const struct bl_ctl *c, const struct bl_recover_failure *f)
{
	bool settled = f->step == BL_RECOVER_FINISHED;
	char who[96], why[128], what[sizeof(who) + sizeof(why) + 4];

	ctl_failure_who(c, f, who, sizeof(who));
	ctl_failure_why(f, why, sizeof(why));
	snprintf(what, sizeof(what), "%s%s%s%s", who, *why ? " (" : "", why, *why ? ")" : "");
	bl_event(&(struct bl_event){ .kind = settled ? BL_EVENT_FAILURE_SETTLED
						     : BL_EVENT_FAILURE_DECIDED,
				     .level = f->left || settled ? BL_LOG_INFO : BL_LOG_WARN,
				     .failure = f->number,
				     .peer = f->nfailed ? f->failed[0].node : 0,
				     .epoch = f->epoch,
				     .reason = why },
		 settled ? "controller: failure %llu of %s is settled"
			 : "controller: failure %llu is announced: %s",
		 (unsigned long long)f->number, what);
}
