// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The clock record: keeps bus time near CLOCK_TAI without ever setting it back (maps/clock_abi.h,
 * core/clock_core.h).
 *
 * Every 250 ms CLOCK_TAI is read against CLOCK_MONOTONIC, and the rate of the next segment is
 * chosen so that the error would be gone after 2 s. Example: bus time is 10 us ahead; the rate
 * becomes -5 ppm. An error of more than a second is not drift but a step of the system clock. Bus
 * time does not follow a step: it continues at the rate of CLOCK_MONOTONIC, as_of does not change,
 * and so the bound widens by drift_ppb until the clocks agree again.
 *
 * A record that an earlier daemon left is continued while it is valid. A void record is not used by
 * anybody, so bus time may leap forward to the truth.
 *
 * There is one writer at a time: the holder of the keeper's lock (keep.c). It has a copy of the
 * record, never reads the shared one back, and writes every field at each update. The record of a
 * host, which processes map, is written by a program, since its map is frozen (note.c). The beacon
 * thread writes the record, not the event loop: what takes long there (loading programs, a start on
 * a busy machine) must not let the record expire.
 *
 * This file does not discipline the system clock; ptp4l or chrony does.
 */
#include "loader/order/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "loader/order/note.h"

#define READINGS 9
#define GAIN_NS  2000000000ULL

struct reading {
	uint64_t mono, tai, width;
};

/* Returns the narrowest of several bracketed readings. A reading that was interrupted is wide. */
static struct reading read_clocks(void)
{
	struct reading best = { .width = UINT64_MAX };
	int i;

	for (i = 0; i < READINGS; i++) {
		uint64_t a = bl_mono_ns(), t = bl_clock_ns(CLOCK_TAI), w = bl_mono_ns() - a;

		if (w < best.width)
			best = (struct reading){ .mono = a + w / 2, .tai = t, .width = w };
	}
	return best;
}

/*
 * Writes the keeper's own record into the shared one; pairs with bl_clock_at(). The older segment
 * is written first: a keeper that is killed in between leaves at least one segment whole, and an
 * odd sequence number (bl_clock_torn()).
 */
static void publish_record(struct bl_clock_keeper *k)
{
	struct bl_clock *c = k->shared, *own = &k->own;

	if (k->note_fd > 0) {
		struct bl_note_arg a = { .kind = BL_NOTE_CLOCK };
		int rc;

		own->seq = (own->seq | 1) + 1;
		a.clock = *own;
		rc = bl_note(k->note_fd, &a);
		if (rc)
			bl_log(BL_LOG_ERR, "%s: cannot write the clock record: %s", k->name,
			       strerror(-rc));
		return;
	}
	BL_WRITE_ONCE(c->seq, own->seq | 1);
	atomic_thread_fence(memory_order_seq_cst);
	c->seg[0] = own->seg[0];
	atomic_thread_fence(memory_order_seq_cst);
	c->seg[1] = own->seg[1];
	BL_WRITE_ONCE(c->flags, own->flags);
	c->as_of_ns = own->as_of_ns;
	BL_WRITE_ONCE(c->void_after_ns, own->void_after_ns);
	c->bound_ns = own->bound_ns;
	c->drift_ppb = own->drift_ppb;
	c->tai_offset_s = own->tai_offset_s;
	c->skew_ns = own->skew_ns;
	atomic_thread_fence(memory_order_seq_cst);
	own->seq = (own->seq | 1) + 1;
	BL_WRITE_ONCE(c->seq, own->seq);
}

static uint64_t void_after_ns(const struct bl_clock_keeper *k, uint64_t mono)
{
	return mono + k->void_after_ms * 1000000ULL;
}

/*
 * All nodes of a process with the same base start at the same moment. Otherwise they would disagree
 * by the time between their openings.
 */
static int64_t base_offset(uint64_t base, uint64_t tai)
{
	static uint64_t last_base;
	static int64_t offset;

	if (base != last_base) {
		last_base = base;
		offset = (int64_t)(base - tai);
	}
	return offset;
}

static void steer_record(struct bl_clock_keeper *k)
{
	struct bl_clock *c = &k->own;
	struct bl_clock_seg next;
	struct reading r;
	int64_t error;
	bool step;
	int tries;

	for (tries = 0; tries < 8; tries++) {
		r = read_clocks();
		error = bl_clock_steer(c, r.mono, r.tai + (uint64_t)(k->bus_offset_ns + k->skew_ns),
				       GAIN_NS, &next);
		step = error > BL_CLOCK_STEP_NS || error < -BL_CLOCK_STEP_NS;
		if (step)
			next.rate = 0;
		/*
		 * A segment that starts in the past would make time jump for its readers, so the
		 * clocks are read again if this thread was delayed.
		 */
		if (bl_mono_ns() + BL_CLOCK_LEAD_NS / 2 > next.mono_ns)
			continue;
		c->seg[0] = c->seg[1];
		c->seg[1] = next;
		c->void_after_ns = void_after_ns(k, r.mono);
		if (!step) {
			c->as_of_ns = r.mono;
			c->bound_ns = k->bound_us * 1000ULL + r.width / 2 + (uint64_t)llabs(error) +
				      atomic_load(&k->proven_ns);
		}
		publish_record(k);
		if (step && !k->stepped)
			bl_log(BL_LOG_WARN,
			       "%s: the system clock is %s bus time by %lld ms: it was set. Bus "
			       "time keeps its own course and its bound widens; when all "
			       "clocks of the rack are right, stop the daemon for %u ms and start "
			       "it again",
			       k->name, error < 0 ? "ahead of" : "behind",
			       (long long)(llabs(error) / 1000000), k->void_after_ms);
		if (!step && k->stepped)
			bl_log(BL_LOG_INFO, "%s: the system clock and bus time agree again",
			       k->name);
		k->stepped = step;
		return;
	}
}

int bl_clock_map(struct bl_clock_keeper *k, int map_fd, struct bl_err *err)
{
	void *p;

	if (k->shared)
		return 0;
	p = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE),
		 k->note_fd > 0 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (p == MAP_FAILED)
		return bl_fail(err, errno, "cannot map the clock record: %s", strerror(errno));
	k->shared = p;
	k->fd = fcntl(map_fd, F_DUPFD_CLOEXEC, 3);
	return k->fd < 0 ? bl_fail(err, errno, "cannot keep the clock record: %s", strerror(errno))
			 : 0;
}

/* Bus time must not go back, so the bus time of a void record counts as well. */
int bl_clock_adopt(struct bl_clock_keeper *k, struct bl_err *err)
{
	struct bl_clock *c = &k->own;
	struct timex tx = {};
	struct reading r = read_clocks();
	uint64_t target, bus;

	*c = *k->shared;
	if (k->base_ns)
		k->bus_offset_ns = base_offset(k->base_ns, r.tai);
	target = r.tai + (uint64_t)(k->bus_offset_ns + k->skew_ns);
	if (c->seq & 1)
		bl_clock_torn(c, r.mono, target);
	c->seq = (c->seq | 1) + 1;
	if (bl_clock_usable(c, r.mono)) {
		if (k->base_ns)
			k->bus_offset_ns = (int64_t)(bl_clock_at(c, r.mono) - r.tai) - c->skew_ns;
		c->skew_ns = k->skew_ns;
		steer_record(k);
		return 0;
	}
	bus = bl_max64(target, bl_clock_at(c, r.mono));
	if (adjtimex(&tx) < 0)
		return bl_fail(err, errno, "adjtimex: %s", strerror(errno));
	bl_clock_start(c, r.mono, bus);
	c->as_of_ns = r.mono;
	c->void_after_ns = void_after_ns(k, r.mono);
	/*
	 * A void record may be ahead of the truth. Its error remains until it is worked off, or for
	 * ever if it counts as a step.
	 */
	c->bound_ns = k->bound_us * 1000ULL + r.width / 2 + (bus - target);
	c->drift_ppb = BL_CLOCK_DRIFT_PPB;
	c->tai_offset_s = tx.tai;
	c->skew_ns = k->skew_ns;
	c->flags = BL_CLOCK_VALID;
	publish_record(k);
	return 0;
}

uint64_t bl_clock_tick(struct bl_clock_keeper *k, uint64_t mono)
{
	if (mono >= k->next_ns) {
		steer_record(k);
		k->next_ns = mono + BL_CLOCK_TICK_NS;
	}
	return k->next_ns;
}

void bl_clock_close(struct bl_clock_keeper *k)
{
	if (k->shared)
		munmap(k->shared, (size_t)sysconf(_SC_PAGESIZE));
	k->shared = NULL;
	if (k->fd >= 0)
		close(k->fd);
	k->fd = -1;
}
