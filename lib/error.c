// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Errors of an endpoint: negative errno values for programs, one sentence for people. The sentence
 * of a bl_init() that failed belongs to the thread, since there is no endpoint that could hold it.
 */
#include <stdarg.h>
#include <stdio.h>

#include "error.h"

static _Thread_local char init_error[192];

int bl_set_error(struct bl_endpoint *ep, int errnum, const char *fmt, ...)
{
	va_list ap;

	if (ep && ep->by_helper)
		return -errnum; /* the sentence belongs to the application */
	va_start(ap, fmt);
	vsnprintf(ep ? ep->error : init_error, sizeof(init_error), fmt, ap);
	va_end(ap);
	return -errnum;
}

const char *bl_strerror(const struct bl_endpoint *ep)
{
	return ep ? ep->error : init_error;
}

void bl_clear_init_error(void)
{
	init_error[0] = 0;
}

int bl_outcast(struct bl_endpoint *ep)
{
#define BL_X(name, word, text) [BL_OUT_##name] = text,
	static const char *const texts[] = { BL_OUT_WHYS(BL_X) };
#undef BL_X
	uint64_t why;

	if (!ep->put_out)
		return bl_set_error(ep, ESTALE,
				    "this endpoint was announced as failed, or has missed too many "
				    "announcements; start again with bl_exit() and bl_init()");
	why = __atomic_load_n(&ep->page->word[ep->slot].out_why, __ATOMIC_ACQUIRE);
	return bl_set_error(ep, ESTALE,
			    "this host has put this endpoint out%s%s; start again with "
			    "bl_exit() and bl_init()",
			    why && why < BL_OUT_WHY_COUNT ? ": " : "",
			    why && why < BL_OUT_WHY_COUNT ? texts[why] : "");
}
