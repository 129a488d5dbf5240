// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The source "kernel": the kernel's own account of its clock, adjtimex(2). Whatever disciplines the
 * clock keeps it: chrony and ntpd set maxerror to the root distance at each update, and phc2sys
 * clears STA_UNSYNC.
 *
 * maxerror alone is too pessimistic between two updates, since the kernel adds 500 ppm to it. Only
 * the value that a daemon sets counts; core/clock_source_core.h adds the drift.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/timex.h>

#include "loader/clock/source.h"

static int read_kernel(struct bl_clock_memory *m, const struct bl_clock_options *o, uint64_t mono,
		       struct bl_clock_sample *s)
{
	struct timex tx = {};
	int state = adjtimex(&tx);
	uint64_t error_us;

	(void)o;
	*s = (struct bl_clock_sample){};
	if (state < 0)
		return -errno;
	error_us = tx.maxerror > 0 ? (uint64_t)tx.maxerror : 0;
	s->synced = state != TIME_ERROR && !(tx.status & STA_UNSYNC);
	s->fresh = m->mono_ns && bl_kernel_was_set(m->error_us, error_us, mono - m->mono_ns);
	s->bound_ns = error_us * 1000;
	s->tai_offset_s = tx.tai;
	m->error_us = error_us;
	m->mono_ns = mono;
	return s->synced ? BL_CLOCK_NO_REASON : BL_CLOCK_UNSYNC;
}

const struct bl_clock_source bl_clock_kernel = { .read = read_kernel };
