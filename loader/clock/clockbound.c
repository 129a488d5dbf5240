// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The source "clockbound": the file of AWS ClockBound (core/clockbound_core.h). It is opened and
 * read at each reading and not mapped, since a mapped file that somebody truncates kills its reader
 * with SIGBUS. Two copies in a row are equal if no update was written meanwhile.
 *
 * ClockBound finds out about a live migration of the machine by /dev/vmclock0 and says "disrupted";
 * until it has, which takes it a moment, its last word is believed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <unistd.h>

#include "core/clockbound_core.h"
#include "loader/clock/source.h"

#define NEW   "/var/run/clockbound/shm0"
#define OLD   "/var/run/clockbound/shm"
#define TRIES 4

/* Reads the file at @path. Returns how many bytes of *@f are valid, or -errno. */
static ssize_t read_file(const char *path, struct bl_clockbound *f)
{
	struct bl_clockbound again;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), k;
	ssize_t n = -EAGAIN;

	if (fd < 0)
		return -errno;
	for (k = 0; k < TRIES; k++) {
		memset(f, 0, sizeof(*f));
		memset(&again, 0, sizeof(again));
		n = pread(fd, f, sizeof(*f), 0);
		if (n < 0)
			n = -errno;
		if (n < BL_CB_V1_BYTES)
			break;
		if (pread(fd, &again, sizeof(again), 0) == n && bl_cb_whole(f, &again))
			break;
		n = -EAGAIN;
	}
	close(fd);
	return n;
}

static int read_clockbound(struct bl_clock_memory *m, const struct bl_clock_options *o,
			   uint64_t mono, struct bl_clock_sample *s)
{
	const char *path = *o->socket ? o->socket : NEW;
	struct bl_cb_view *v = m->own;
	struct bl_clockbound f;
	struct timex tx = {};
	ssize_t n;

	*s = (struct bl_clock_sample){};
	if (!v)
		v = m->own = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	if (adjtimex(&tx) < 0) {
		bl_cb_reading(v, mono);
		return -errno;
	}
	s->tai_offset_s = tx.tai;
	n = read_file(path, &f);
	if (n == -ENOENT && !*o->socket) {
		path = OLD;
		n = read_file(path, &f);
	}
	m->detail[0] = '\0';
	if (n < 0) {
		bl_cb_reading(v, mono);
		snprintf(m->detail, sizeof(m->detail), "%s: %s", path,
			 n == -EAGAIN ? "an update does not end" : strerror((int)-n));
		return BL_CLOCK_CB_GONE;
	}
	if (!bl_cb_layout(&f, (uint64_t)n)) {
		bl_cb_reading(v, mono);
		snprintf(m->detail, sizeof(m->detail), "%s: %zd bytes of version %u", path, n,
			 n < BL_CB_V1_BYTES ? 0 : f.version);
		return BL_CLOCK_CB_WRONG;
	}
	return bl_cb_judge(v, &f, mono, s);
}

static void close_clockbound(struct bl_clock_memory *m, const struct bl_clock_options *o)
{
	(void)o;
	free(m->own);
	m->own = NULL;
}

const struct bl_clock_source bl_clock_clockbound = { .read = read_clockbound,
						     .close = close_clockbound };
