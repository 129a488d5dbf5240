// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The source "kernel": the kernel's own account of its clock, adjtimex(2). Whatever disciplines the
 * clock keeps it: chrony and ntpd set maxerror to the root distance at each update, and phc2sys
 * clears STA_UNSYNC.
 *
 * maxerror alone is too pessimistic between two updates, since the kernel adds 500 ppm to it. Only
 * the value that a daemon sets counts; core/clock_source_core.h adds the drift.
 *
 * phc2sys and systemd-timesyncd set it to 0 whatever the error is: timesyncd also while it slews
 * the clock by 0.4 s. That says nothing unless the operator has said, by bound_us, how great the
 * error can be.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/timex.h>

#include "loader/clock/source.h"

static int read_kernel(struct bl_clock_memory *m, const struct bl_clock_options *o, uint64_t mono,
		       struct bl_clock_sample *s)
{
	struct bl_kernel_reading now = { .mono_ns = mono };
	struct timex tx = {};
	int state = adjtimex(&tx);

	*s = (struct bl_clock_sample){};
	if (state < 0)
		return -errno;
	now.error_us = tx.maxerror > 0 ? (uint64_t)tx.maxerror : 0;
	now.second = tx.time.tv_sec;
	now.us = (uint32_t)(tx.status & STA_NANO ? tx.time.tv_usec / 1000 : tx.time.tv_usec);
	s->synced = state != TIME_ERROR && !(tx.status & STA_UNSYNC);
	s->bound_ns = now.error_us * 1000;
	s->tai_offset_s = tx.tai;
	if (m->kernel.mono_ns && !m->skipped && now.us < BL_KERNEL_TICK_US) {
		m->skipped = true;
	} else {
		s->fresh = m->kernel.mono_ns && bl_kernel_was_set(&m->kernel, &now);
		s->late = s->fresh && m->skipped;
		m->kernel = now;
		m->skipped = false;
	}
	if (!s->synced)
		return BL_CLOCK_UNSYNC;
	if (o->bound_default && bl_kernel_set_zero(now.error_us)) {
		/* It is a word, if at all, that says nothing. */
		s->fresh = 0;
		s->synced = m->spoken;
		return m->spoken ? BL_CLOCK_NO_REASON : BL_CLOCK_NO_BOUND;
	}
	m->spoken = true;
	return BL_CLOCK_NO_REASON;
}

const struct bl_clock_source bl_clock_kernel = { .read = read_kernel };
