// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The clock record: keeps bus time near CLOCK_TAI without ever setting it back (maps/clock_abi.h,
 * core/clock_core.h).
 *
 * Every 250 ms CLOCK_TAI is read against CLOCK_MONOTONIC, and the rate of the next segment is
 * chosen so that the error would be gone after 2 s. Example: bus time is 10 us ahead; the rate
 * becomes -5 ppm. An error of more than a second is not drift but a step of the system clock. Bus
 * time does not follow a step: it continues at the rate of CLOCK_MONOTONIC, and the bound has the
 * difference in it until the clocks agree again.
 *
 * That is so if the clock's bound is trusted (BL_CLOCK_TRUST). If a source measures it, bus time
 * follows CLOCK_MONOTONIC plus the offset that the source has vouched for last, and a step of the
 * system clock counts only once the source has spoken again (core/clock_source_core.h). The record
 * is void while the bound is greater than max_bound_us. Example: chrony sets maxerror to 400 us and
 * dies; the bound reaches 25 ms after 246 s, and the record is void from then on.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "base/event.h"
#include "base/log.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "loader/order/note.h"

#define READINGS       9
#define GAIN_NS        2000000000ULL
#define TAI_JUMP_NS    500000000LL /* half a second: TAI - UTC is in seconds */
#define SLEEP_LEAST_NS 1000000ULL

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

/* Writes the keeper's own record into the shared one. */
static void publish_record(struct bl_clock_keeper *k)
{
	struct bl_note_arg a = { .kind = BL_NOTE_CLOCK };
	int rc;

	k->own.seq = (k->own.seq | 1) + 1;
	if (k->note_fd <= 0) {
		bl_clock_store(k->shared, &k->own);
		return;
	}
	a.clock = k->own;
	rc = bl_note(k->note_fd, &a);
	if (rc)
		bl_log(BL_LOG_ERR, "%s: cannot write the clock record: %s", k->name, strerror(-rc));
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

/*
 * Whether the machine was suspended since the last call. CLOCK_MONOTONIC stands still then, and
 * CLOCK_BOOTTIME does not. A delay between the readings makes the difference less certain, and no
 * sleep.
 */
static bool has_slept(struct bl_clock_keeper *k)
{
	uint64_t a = bl_mono_ns(), boot = bl_clock_ns(CLOCK_BOOTTIME), b = bl_mono_ns();
	uint64_t least = boot > b ? boot - b : 0, most = boot - a;
	bool slept = k->asleep_known && least > k->asleep_ns + SLEEP_LEAST_NS;

	if (slept)
		bl_event(BL_EVENT(CLOCK_STEPPED, WARN, k->name, .reason = "suspended"),
			 "%s: the machine was suspended for %llu ms: bus time is void until the "
			 "source of the clock has spoken again",
			 k->name, (unsigned long long)(least - k->asleep_ns) / 1000000);
	if (slept || !k->asleep_known || most < k->asleep_ns)
		k->asleep_ns = most;
	k->asleep_known = true;
	return slept;
}

/*
 * Takes over TAI - UTC as the source has it, @said. If CLOCK_TAI has jumped with it, somebody has
 * corrected the kernel's offset. Bus time does not follow before the source has spoken, so that it
 * has the old offset until then; other nodes do not accept it. At a leap second CLOCK_TAI goes on
 * as if nothing had happened.
 */
static void take_tai(struct bl_clock_keeper *k, int32_t said, bool word, bool jumped)
{
	bool changed = k->read && said != k->tai_said_s;

	if (changed && (jumped || k->jumped))
		bl_log(BL_LOG_WARN,
		       "%s: the kernel's TAI offset changed from %d to %d s, and CLOCK_TAI with "
		       "it: bus time does not follow before the clock's source has confirmed it, "
		       "and is then void until it agrees; set the same offset on all machines at "
		       "boot",
		       k->name, k->tai_said_s, said);
	else if (changed)
		bl_log(BL_LOG_INFO, "%s: the kernel's TAI offset changed from %d to %d s", k->name,
		       k->tai_said_s, said);
	if (!k->read || word || (changed && !jumped && !k->jumped))
		k->tai_offset_s = said;
	k->tai_said_s = said;
	k->read = true;
}

/*
 * The clocks are read after the source: a step in between then counts as one since the last
 * reading.
 */
static void read_source(struct bl_clock_keeper *k, const struct bl_clock_source *source)
{
	struct bl_clock_sample s;
	int why = source->read(&k->memory, &k->options, bl_mono_ns(), &s);
	struct reading r = read_clocks();
	int64_t offset = (int64_t)(r.tai - r.mono), step = offset - k->hold.last_offset_ns;
	bool word, jumped = k->hold.read && (step > TAI_JUMP_NS || step < -TAI_JUMP_NS);

	if (has_slept(k)) {
		bl_clock_hold_slept(&k->hold);
		s.fresh = 0; /* it may be from before that */
	}
	word = bl_clock_hold_read(&k->hold, &s, r.mono, offset,
				  r.width + k->last_width_ns + (s.late ? k->before_width_ns : 0));
	k->before_width_ns = k->last_width_ns;
	k->last_width_ns = r.width;
	if (why >= 0)
		take_tai(k, s.tai_offset_s, word, jumped);
	k->jumped = jumped;
	k->synced = s.synced;
	k->why = why >= 0 && !s.synced ? (enum bl_clock_reason)why : BL_CLOCK_NO_REASON;
	/* It has spoken, but of a time before this keeper's. */
	if (s.synced && !k->hold.ever)
		k->why = BL_CLOCK_ASKING;
}

/* Bus time that is aimed at, at the time of @r. */
static uint64_t target_at(const struct bl_clock_keeper *k, const struct reading *r)
{
	uint64_t tai = bl_clock_source(k->source) && k->hold.ever
			       ? r->mono + (uint64_t)k->hold.offset_ns
			       : r->tai;

	return tai + (uint64_t)(k->bus_offset_ns + k->skew_ns);
}

/* How fast the bound grows while bus time is not steered, ppb. */
static uint32_t drift_of(const struct bl_clock_keeper *k)
{
	return bl_clock_hold_drift(&k->hold, BL_CLOCK_DRIFT_PPB);
}

/* The sentence of @why, with what the source has to add, and the next step. */
static void explain(const struct bl_clock_keeper *k, char *buf, size_t size)
{
#define SENTENCE(name, text, sentence, step) [BL_CLOCK_##name] = (sentence),
	static const char *const sentences[] = { BL_CLOCK_REASONS(SENTENCE) };
#undef SENTENCE
#define STEP(name, text, sentence, step) [BL_CLOCK_##name] = (step),
	static const char *const steps[] = { BL_CLOCK_REASONS(STEP) };
#undef STEP

	if (k->why == BL_CLOCK_NO_REASON)
		snprintf(buf, size, "its source cannot be read");
	else
		snprintf(buf, size, "%s%s%s%s; %s", sentences[k->why],
			 *k->memory.detail ? " (" : "", k->memory.detail,
			 *k->memory.detail ? ")" : "", steps[k->why]);
}

/*
 * Says once what has become of the clock, and why. A source that was just asked for the first time
 * is left time to answer.
 */
static void tell_state(struct bl_clock_keeper *k, enum bl_clock_state is)
{
	const struct bl_clock *c = &k->own;
	unsigned long long us = c->bound_ns / 1000;
	bool same = is == k->told_state;
	char why[512];

	k->state = is;
	if ((same && k->why == k->told_why) ||
	    (k->why == BL_CLOCK_ASKING &&
	     (same || is == BL_CLOCK_HOLDOVER || is == BL_CLOCK_NEVER)))
		return;
	explain(k, why, sizeof(why));
	switch (is) {
	case BL_CLOCK_GOOD:
		bl_event(BL_EVENT(CLOCK_GOOD, INFO, k->name, .bound_us = us),
			 "%s: the system clock is synchronised, to within %llu us", k->name, us);
		break;
	case BL_CLOCK_HOLDOVER:
		bl_event(BL_EVENT(CLOCK_HOLDOVER, WARN, k->name, .bound_us = us),
			 "%s: the system clock is not synchronised any more: bus time keeps its "
			 "course, its bound of %llu us grows by %u us a second, and beyond %u us "
			 "nothing ordered is sent. %s",
			 k->name, us, drift_of(k) / 1000, k->max_bound_us, why);
		break;
	case BL_CLOCK_NEVER:
		bl_event(BL_EVENT(CLOCK_VOID, ERR, k->name, .reason = why),
			 "%s: the system clock is not synchronised, and nothing ordered is sent "
			 "until it is: %s, or pass --clock-source trust if the clock is right to "
			 "within --clock-bound-us",
			 k->name, why);
		break;
	case BL_CLOCK_TOO_WIDE:
		bl_event(BL_EVENT(CLOCK_VOID, ERR, k->name, .bound_us = us, .reason = why),
			 "%s: the clock may be wrong by %llu us, more than %u us are not allowed: "
			 "nothing ordered is sent until its source knows better; look after "
			 "chrony, "
			 "ntpd or ptp4l, or raise max_bound_us%s%s",
			 k->name, us, k->max_bound_us, k->why ? ". " : "", k->why ? why : "");
		break;
	case BL_CLOCK_STEERING:
		bl_event(BL_EVENT(CLOCK_VOID, ERR, k->name, .bound_us = us, .reason = why),
			 "%s: bus time may be wrong by %llu us since the system clock was set, "
			 "more "
			 "than %u us are not allowed: nothing ordered is sent until they agree, in "
			 "some %llu s; or stop the daemon, detach the node and start it again, and "
			 "bus time is set at once%s%s",
			 k->name, us, k->max_bound_us,
			 (unsigned long long)(k->ahead_ns / bl_rate_ppb(BL_CLOCK_RATE_MAX) + 1),
			 k->why ? ". " : "", k->why ? why : "");
		break;
	case BL_CLOCK_STATES_NUMBER:
		break;
	}
	k->told_state = is;
	k->told_why = k->why;
}

static bool is_void(enum bl_clock_state s)
{
#define VOID_(name, text, is_void) [BL_CLOCK_##name] = (is_void),
	static const bool voids[BL_CLOCK_STATES_NUMBER] = { BL_CLOCK_STATES(VOID_) };
#undef VOID_

	return voids[s];
}

/* Writes the bound into the record. @proven: the part of it that neighbours have proven */
static void write_bound(struct bl_clock *c, uint64_t bound, uint64_t proven)
{
	bool fits = bound < BL_CLOCK_BOUND_MAX_NS;

	c->bound_ns = fits ? bound : BL_CLOCK_BOUND_MAX_NS;
	c->proven_ns = fits ? proven : 0;
}

/*
 * Writes the bound and the state into the keeper's own record, whose bus time is @error away from
 * its target at @r. The record is valid for as long as its bound will be.
 */
static void judge_record(struct bl_clock_keeper *k, const struct reading *r, int64_t error)
{
	struct bl_clock *c = &k->own;
	uint64_t max = k->max_bound_us * 1000ULL, proven = atomic_load(&k->proven_ns), base, full,
		 lasts;

	c->source = k->source;
	c->max_bound_ns = max;
	c->as_of_ns = r->mono;
	c->tai_offset_s = k->tai_offset_s;
	c->drift_ppb = drift_of(k) + bl_rate_ppb(c->seg[1].rate);
	c->source_ns = bl_clock_hold_bound(&k->hold, r->mono, BL_CLOCK_DRIFT_PPB);
	base = bl_max64(k->bound_us * 1000ULL, c->source_ns) + r->width / 2 + proven;
	k->ahead_ns = (uint64_t)llabs(error);
	full = base + k->ahead_ns;
	write_bound(c, full, proven);
	c->state = !k->hold.ever ? BL_CLOCK_NEVER
		   : base > max  ? BL_CLOCK_TOO_WIDE
		   : full > max  ? BL_CLOCK_STEERING
		   : k->synced   ? BL_CLOCK_GOOD
				 : BL_CLOCK_HOLDOVER;
	c->reason = (uint16_t)k->why;
	bl_clock_hold_leave(&k->hold, c, k->last_width_ns);
	if (c->source_as_of_ns || !is_void((enum bl_clock_state)c->state))
		c->source_as_of_ns = bl_max64(k->hold.as_of_ns, 1);
	c->void_after_ns = r->mono;
	if (is_void((enum bl_clock_state)c->state))
		return;
	lasts = (max - full) * 1000000ULL / c->drift_ppb * 1000;
	c->void_after_ns = void_after_ns(k, r->mono);
	if (r->mono + lasts < c->void_after_ns)
		c->void_after_ns = r->mono + lasts;
}

/*
 * One update with a measured source. Bus time of a void record is used by nobody, so it leaps
 * forward to its target then. It is set back only if no bus time was ever used.
 */
static void steer_measured(struct bl_clock_keeper *k, const struct bl_clock_source *source)
{
	struct bl_clock *c = &k->own;
	bool unused = !c->source_as_of_ns;
	struct bl_clock_seg next;
	struct reading r;
	int64_t error;
	int tries;

	read_source(k, source);
	for (tries = 0; tries < 8; tries++) {
		r = read_clocks();
		error = bl_clock_steer(c, r.mono, target_at(k, &r), GAIN_NS, &next);
		if (bl_mono_ns() + BL_CLOCK_LEAD_NS / 2 > next.mono_ns)
			continue;
		bl_clock_append(c, r.mono, &next);
		judge_record(k, &r, error);
		if (is_void(k->state) && c->state != BL_CLOCK_NEVER &&
		    c->state != BL_CLOCK_TOO_WIDE && (error < 0 || unused)) {
			if (c->state == BL_CLOCK_STEERING)
				bl_log(BL_LOG_WARN,
				       "%s: bus time, which was void, is set %s by %lld us to the "
				       "system clock",
				       k->name, error < 0 ? "forward" : "back",
				       (long long)(llabs(error) / 1000));
			bl_clock_start(c, r.mono, target_at(k, &r));
			judge_record(k, &r, 0);
		}
		publish_record(k);
		tell_state(k, (enum bl_clock_state)c->state);
		return;
	}
}

/*
 * A stopped record follows CLOCK_MONOTONIC. A new daemon lets bus time go forward to the system
 * clock, but never back.
 */
static void say_stepped(const struct bl_clock_keeper *k, int64_t error)
{
	char then[96];

	if (error < 0)
		snprintf(then, sizeof(then), "stop the daemon for %u ms and start it again",
			 k->void_after_ms);
	else
		snprintf(then, sizeof(then),
			 "stop the daemon, detach the node, and start it again");
	bl_event(BL_EVENT(CLOCK_STEPPED, WARN, k->name, .reason = "set"),
		 "%s: the system clock is %s bus time by %lld ms: it was set. Bus time keeps its "
		 "own "
		 "course and its bound widens; when all clocks of the rack are right, %s",
		 k->name, error < 0 ? "ahead of" : "behind", (long long)(llabs(error) / 1000000),
		 then);
}

static void steer_trusted(struct bl_clock_keeper *k)
{
	struct bl_clock *c = &k->own;
	struct bl_clock_seg next;
	struct timex tx = {};
	struct reading r;
	uint64_t bound, proven;
	int64_t error;
	bool step;
	int tries;

	if (adjtimex(&tx) < 0)
		tx.tai = c->tai_offset_s;
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
		bl_clock_append(c, r.mono, &next);
		c->source = BL_CLOCK_TRUST;
		c->state = BL_CLOCK_GOOD;
		c->reason = BL_CLOCK_NO_REASON;
		c->source_ns = k->bound_us * 1000ULL;
		c->max_bound_ns = 0;
		bl_clock_hold_leave(&k->hold, c, 0);
		c->void_after_ns = void_after_ns(k, r.mono);
		c->drift_ppb = BL_CLOCK_DRIFT_PPB + bl_rate_ppb(next.rate);
		c->as_of_ns = r.mono;
		proven = atomic_load(&k->proven_ns);
		bound = k->bound_us * 1000ULL + r.width / 2 + (uint64_t)llabs(error) + proven;
		write_bound(c, bound, proven);
		if (!step) {
			c->source_as_of_ns = r.mono;
			c->tai_offset_s = tx.tai;
		}
		publish_record(k);
		if (step && !k->stepped)
			say_stepped(k, error);
		if (!step && k->stepped)
			bl_log(BL_LOG_INFO, "%s: the system clock and bus time agree again",
			       k->name);
		k->stepped = step;
		return;
	}
}

static void steer_record(struct bl_clock_keeper *k)
{
	const struct bl_clock_source *source = bl_clock_source(k->source);

	if (source)
		steer_measured(k, source);
	else
		steer_trusted(k);
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

/*
 * Continues what an earlier keeper held, whose record @k->own is: bus time was within the record's
 * bound of true time, whatever has happened to the system clock since.
 */
static void inherit_hold(struct bl_clock_keeper *k, const struct reading *r)
{
	const struct bl_clock *c = &k->own;

	k->hold = (struct bl_clock_hold){};
	if (c->source == k->source && c->source_as_of_ns)
		bl_clock_hold_inherit(&k->hold, c, r->mono,
				      (int64_t)(bl_clock_at(c, r->mono) - r->mono) -
					      k->bus_offset_ns - c->skew_ns,
				      (int64_t)(r->tai - r->mono), r->width);
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
	if (c->seq & 1)
		bl_clock_whole(c);
	c->seq = (c->seq | 1) + 1;
	if (bl_clock_usable(c, r.mono)) {
		if (k->base_ns)
			k->bus_offset_ns = (int64_t)(bl_clock_at(c, r.mono) - r.tai) - c->skew_ns;
		inherit_hold(k, &r);
		c->skew_ns = k->skew_ns;
		steer_record(k);
		return 0;
	}
	inherit_hold(k, &r);
	if (!k->hold.doubted)
		k->hold = (struct bl_clock_hold){};
	target = target_at(k, &r);
	/* nobody has used bus time of after void_after */
	bus = bl_max64(target,
		       bl_clock_at(c, r.mono < c->void_after_ns ? r.mono : c->void_after_ns));
	if (c->source > BL_CLOCK_TRUST && !c->source_as_of_ns)
		bus = target;
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
	c->source = BL_CLOCK_TRUST;
	c->state = BL_CLOCK_GOOD;
	c->reason = BL_CLOCK_NO_REASON;
	c->source_ns = k->bound_us * 1000ULL;
	if (!bl_clock_source(k->source))
		c->source_as_of_ns = r.mono;
	c->max_bound_ns = 0;
	c->drift_ppb = BL_CLOCK_DRIFT_PPB;
	c->tai_offset_s = tx.tai;
	c->skew_ns = k->skew_ns;
	c->flags = BL_CLOCK_VALID;
	if (bl_clock_source(k->source)) {
		steer_record(k);
		return 0;
	}
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
	const struct bl_clock_source *source = bl_clock_source(k->source);

	if (source && source->close)
		source->close(&k->memory, &k->options);
	if (k->shared)
		munmap(k->shared, (size_t)sysconf(_SC_PAGESIZE));
	k->shared = NULL;
	if (k->fd >= 0)
		close(k->fd);
	k->fd = -1;
}
