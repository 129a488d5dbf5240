// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline admission set`: other settings of admission on a node that runs, in its pinned maps; its
 * daemon need not know. A restart of the daemon sets again what its configuration says.
 *
 * Example: K = 4, t = 738240 ns at 250 Mbit/s; "--rate 500mbit" makes t 369120 ns: 15 slots, as
 * before.
 */
#include "loader/admission/admission_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/log.h"
#include "base/rate.h"
#include "base/time.h"
#include "core/pl2/pl2_core.h"
#include "core/queue/dest_core.h"
#include "core/queue/queue_core.h"
#include "loader/admission/admission.h"
#include "loader/admission/admission_priv.h"
#include "loader/admission/bl0.h"
#include "loader/admission/top_host.h"
#include "loader/admission/top_switch.h"
#include "loader/load/maps.h"
#include "loader/load/pin.h"

/* One line of what `barline admission set` says. */
static void say(char *said, size_t size, const char *what, const char *old, const char *now)
{
	size_t at = strlen(said);

	snprintf(said + at, size - at, "%s%s: %s -> %s", at ? ", " : "", what, old, now);
}

static void say_number(char *said, size_t size, const char *what, uint64_t old, uint64_t now,
		       const char *unit)
{
	char a[32], b[32];

	if (old == now)
		return;
	snprintf(a, sizeof(a), "%llu%s", (unsigned long long)old, unit);
	snprintf(b, sizeof(b), "%llu%s", (unsigned long long)now, unit);
	say(said, size, what, a, b);
}

static void say_rate(char *said, size_t size, uint32_t old, uint32_t now)
{
	char a[32], b[32];

	if (old != now)
		say(said, size, "rate", bl_rate_text(bl_rate_of_q20(old), a, sizeof(a)),
		    bl_rate_text(bl_rate_of_q20(now), b, sizeof(b)));
}

static int set_us(__u64 *ns, int64_t us, const char *what, struct bl_err *err)
{
	if (us < 0)
		return 0;
	if (us > BL_TIME_MAX_US)
		return bl_fail(err, EINVAL, "%s %lld: at most %u", what, (long long)us,
			       BL_TIME_MAX_US);
	*ns = (uint64_t)us * 1000;
	return 0;
}

static int set_rate(uint32_t *ns_q20, int64_t bps, struct bl_err *err)
{
	int rc;

	if (bps < 0)
		return 0;
	rc = bl_admission_rate((uint64_t)bps, "admission", err);
	if (!rc)
		*ns_q20 = bl_rate_ns_q20((uint64_t)bps);
	return rc;
}

static int read_one(const struct bl_node_ref *ref, const char *map, void *value, uint32_t size,
		    int *fd, struct bl_err *err)
{
	uint32_t zero = 0;
	int rc;

	*fd = bl_map_open(ref, map, size, true, err);
	if (*fd < 0)
		return *fd;
	if (!bpf_map_lookup_elem(*fd, &zero, value))
		return 0;
	rc = bl_fail(err, errno, "cannot read the map %s: %s", map, strerror(errno));
	close(*fd);
	return rc;
}

/*
 * What is held was held by another policy's rules: the pacer shall look at it now, and not only
 * when the next frame comes.
 */
static void look_again(const struct bl_node_ref *ref)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE),
	       size = (sizeof(struct bl_due) + page - 1) / page * page;
	struct bl_due *due;
	struct bl_err err;
	uint32_t n;
	int fd;

	fd = bl_map_open(ref, BL_MAP_HOLD_DUE, sizeof(*due), true, &err);
	if (fd < 0)
		return; /* a node of a build before: the next frame does it */
	due = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (due == MAP_FAILED)
		return;
	for (n = 1; n < bl_numbers_used(due); n++)
		bl_due_lower(
			due, n,
			bl_mono_ns()); /* a pacer that sleeps looks 100 ms later at the latest */
	munmap(due, size);
}

/* A time that follows from the slot follows the new one; one that was given stays. */
static void follow(__u64 *ns, uint64_t was, uint64_t now)
{
	if (*ns == was)
		*ns = now;
}

static void follow_slot(struct bl_hold_cfg *c, uint32_t old_q20)
{
	struct bl_pl2_times was, now;

	bl_pl2_times(bl_slot_ns(old_q20), &was);
	bl_pl2_times(bl_slot_ns(c->link.ns_q20), &now);
	follow(&c->recent_ns, was.recent_ns, now.recent_ns);
	follow(&c->retry_ns, was.retry_ns, now.retry_ns);
	follow(&c->late_ns, was.late_ns, now.late_ns);
	follow(&c->coming_ns, was.coming_ns, now.coming_ns);
}

/*
 * Values of an array map are copied without a lock: a program that reads in this moment may see
 * some fields old and some new, for one frame.
 */
static int change_host(const struct bl_node_ref *ref, const struct bl_admission_set *c, char *said,
		       size_t size, struct bl_err *err)
{
	struct bl_hold_cfg old, now;
	char top_said[512] = "";
	uint64_t slot;
	int fd, rc;

	if (c->allocator >= 0 || c->refuse_us >= 0 || c->far_us >= 0 || c->lapse_us >= 0 ||
	    c->outside_percent >= 0)
		return bl_fail(err, EINVAL,
			       "%s is a host: allocator, refuse, far, lapse and outside are "
			       "settings of switches",
			       ref->meta.name);
	if (c->tokens >= 0 || c->data_first >= 0 || c->unscheduled >= 0 || c->token_frames >= 0 ||
	    c->expiry_tokens >= 0 || c->spray >= 0)
		return bl_fail(err, EINVAL,
			       "%s is a host: tokens, data-first, unscheduled-class, token-frames, "
			       "expiry-tokens and spray are settings of switches",
			       ref->meta.name);
	rc = read_one(ref, BL_MAP_HOLD_CFG, &old, sizeof(old), &fd, err);
	if (rc)
		return rc;
	now = old;
	if (!old.on)
		rc = bl_fail(err, EINVAL,
			     "%s was started without admission, so it has no bl0; start it with "
			     "`admission:` in its file, or --admission",
			     ref->meta.name);
	if (!rc)
		rc = set_rate(&now.link.ns_q20, c->rate_bps, err);
	if (!rc && c->k >= 0) {
		if (c->k < 1 || c->k > BL_PL2_K_MAX)
			rc = bl_fail(err, EINVAL, "K of %lld frames: from 1 to %u", (long long)c->k,
				     BL_PL2_K_MAX);
		now.k_frames = (uint32_t)c->k;
		now.k_bytes = now.k_frames * BL_RSV_SLOT_BYTES;
	}
	if (!rc && c->policy >= 0)
		now.policy = (uint32_t)c->policy;
	if (!rc && now.policy == BL_POLICY_PL2 && !now.link.ns_q20)
		rc = bl_fail(err, EINVAL,
			     "pl2 counts time in frames of the link, so it needs the link's rate; "
			     "add --rate");
	if (!rc && now.policy == BL_POLICY_TOP && !now.link.ns_q20)
		rc = bl_fail(err, EINVAL,
			     "top paces tokens at the link's rate, so it needs one; add --rate");
	if (!rc && now.policy == BL_POLICY_FASTPASS && !now.slot_ns)
		rc = bl_fail(err, EINVAL,
			     "%s was started without Fastpass's file; start it with `admission: { "
			     "fastpass: FILE }`, or --fastpass FILE",
			     ref->meta.name);
	slot = bl_slot_ns(now.link.ns_q20);
	/* t stays as many slots as it was */
	if (!rc && old.link.ns_q20)
		now.t_ns = old.t_ns * now.link.ns_q20 / old.link.ns_q20;
	else if (!rc && now.link.ns_q20 && !now.t_ns)
		now.t_ns = BL_T_SLOTS * slot;
	if (!rc)
		follow_slot(&now, old.link.ns_q20);
	if (!rc && c->t_slots >= 0 && c->t_us >= 0)
		rc = bl_fail(err, EINVAL,
			     "t is given in slots and in microseconds; one of them is enough");
	if (!rc && c->t_slots > (int64_t)BL_RSV_WORDS * 64)
		rc = bl_fail(err, EINVAL, "t of %lld slots: at most %u", (long long)c->t_slots,
			     BL_RSV_WORDS * 64);
	if (!rc && c->t_slots >= 0)
		now.t_ns = (uint64_t)c->t_slots * slot;
	if (!rc)
		rc = set_us(&now.t_ns, c->t_us, "t", err);
	if (!rc)
		rc = set_us(&now.recent_ns, c->recent_us, "recent", err);
	if (!rc)
		rc = set_us(&now.retry_ns, c->retry_us, "retry", err);
	if (!rc && !now.retry_ns)
		rc = bl_fail(err, EINVAL, "retry 0: an RSV would be repeated at once, for ever");
	if (!rc)
		rc = set_us(&now.coming_ns, c->coming_us, "coming", err);
	if (!rc)
		rc = set_us(&now.late_ns, c->late_us, "late", err);
	if (rc || c->check) {
		close(fd);
		return rc;
	}
	if ((old.policy == BL_POLICY_TOP) !=
	    (now.policy == BL_POLICY_TOP)) /* the others need the same MTU, and can be changed from
					      any namespace */
		rc = bl_bl0_policy(ref->dir, now.policy, err);
	if (!rc)
		rc = bl_top_change(ref, c->top, now.link.ns_q20, top_said, sizeof(top_said), err);
	if (!rc)
		rc = bl_map_set(fd, 0, &now, BL_MAP_HOLD_CFG, err);
	close(fd);
	if (rc)
		return rc;
	if (old.link.ns_q20 != now.link.ns_q20)
		bl_bl0_rate(ref->dir, now.link.ns_q20);
	if (old.policy != now.policy)
		look_again(ref);
	if (old.policy != now.policy)
		say(said, size, "policy", bl_policy_name(old.policy), bl_policy_name(now.policy));
	say_rate(said, size, old.link.ns_q20, now.link.ns_q20);
	say_number(said, size, "K", old.k_frames, now.k_frames, "");
	say_number(said, size, "t", old.t_ns, now.t_ns, " ns");
	say_number(said, size, "recent", old.recent_ns, now.recent_ns, " ns");
	say_number(said, size, "retry", old.retry_ns, now.retry_ns, " ns");
	say_number(said, size, "coming", old.coming_ns, now.coming_ns, " ns");
	say_number(said, size, "late", old.late_ns, now.late_ns, " ns");
	if (*top_said)
		snprintf(said + strlen(said), size - strlen(said), "%s%s", *said ? ", " : "",
			 top_said);
	return 0;
}

/*
 * Every metered port gets the new rate. The first one's old rate says what reservations were made
 * for.
 */
static int change_meters(const struct bl_node_ref *ref, uint32_t ns_q20, uint32_t *old,
			 struct bl_err *err)
{
	int fd = bl_map_open(ref, BL_MAP_METERS, sizeof(struct bl_meter), true, err), rc = 0;
	struct bl_meter m;
	uint32_t k;

	*old = 0;
	if (fd < 0)
		return fd;
	for (k = 0; k < BL_SW_PORTS_MAX && !rc; k++) {
		if (bpf_map_lookup_elem(fd, &k, &m)) {
			rc = bl_fail(err, errno, "cannot read entry %u of the map %s: %s", k,
				     BL_MAP_METERS, strerror(errno));
		} else if (m.ns_q20) {
			if (!*old)
				*old = m.ns_q20;
			m.ns_q20 = ns_q20;
			if (ns_q20)
				rc = bl_map_set(fd, k, &m, BL_MAP_METERS, err);
		}
	}
	close(fd);
	return rc;
}

static int change_switch(const struct bl_node_ref *ref, const struct bl_admission_set *c,
			 char *said, size_t size, struct bl_err *err)
{
	bool was_top = false, is_top = false;
	struct bl_pl2_times was, is;
	struct bl_rsv_cfg old, now;
	uint32_t meter, rate;
	unsigned int k;
	int fd, rc;

	for (k = 0; k < BL_TOP_O_COUNT; k++)
		if (c->top[k])
			return bl_fail(err, EINVAL, "%s is a switch: %s is a setting of hosts",
				       ref->meta.name, bl_top_option_key(k));
	if (c->k >= 0 || c->t_slots >= 0 || c->t_us >= 0 || c->recent_us >= 0 || c->retry_us >= 0 ||
	    c->coming_us >= 0 || c->late_us >= 0)
		return bl_fail(err, EINVAL,
			       "%s is a switch: K, t, recent, retry, coming and late are settings "
			       "of hosts",
			       ref->meta.name);
	rc = read_one(ref, BL_MAP_RSV_CFG, &old, sizeof(old), &fd, err);
	if (rc)
		return rc;
	now = old;
	if (!old.pair_shift)
		rc = bl_fail(err, EINVAL,
			     "%s was started without admission; start it with `admission:` in its "
			     "file, or --admission",
			     ref->meta.name);
	if (!rc)
		rc = change_meters(ref, 0, &meter, err);
	rate = rc ? 0 : meter;
	if (!rc)
		rc = set_rate(&rate, c->rate_bps, err);
	if (!rc && c->rate_bps == 0)
		rc = bl_fail(err, EINVAL,
			     "rate 0: ports cannot become unmetered while frames wait in their "
			     "queues; start the switch without a rate");
	if (!rc && c->outside_percent > BL_OUTSIDE_MAX)
		rc = bl_fail(err, EINVAL,
			     "%lld %% of each port for traffic from outside: at most %u",
			     (long long)c->outside_percent, BL_OUTSIDE_MAX);
	if (!rc && c->outside_percent >= 0)
		now.ns_q20 = bl_share_q20(rate, (uint32_t)c->outside_percent);
	else if (!rc && meter && rate != meter) /* the share stays */
		now.ns_q20 = (uint32_t)((uint64_t)old.ns_q20 * rate / meter);
	else if (!rc && !now.ns_q20)
		now.ns_q20 = rate;
	if (!rc && rate != meter && old.ns_q20) { /* and bounds stay as many slots as they were */
		now.refuse_ns = old.refuse_ns * now.ns_q20 / old.ns_q20;
		now.far_ns = old.far_ns * now.ns_q20 / old.ns_q20;
	}
	if (!rc) {
		bl_pl2_times(bl_slot_ns(old.ns_q20), &was);
		bl_pl2_times(bl_slot_ns(now.ns_q20), &is);
		follow(&now.lapse_ns, was.lapse_ns, is.lapse_ns);
	}
	if (!rc && c->policy >= 0)
		now.on = c->policy == BL_POLICY_PL2;
	if (!rc && c->allocator >= 0)
		now.allocator = (uint32_t)c->allocator;
	if (!rc && now.on && !now.ns_q20)
		rc = bl_fail(err, EINVAL,
			     "pl2 makes reservations in time, so it needs the ports' rate; add "
			     "--rate");
	if (!rc)
		rc = set_us(&now.refuse_ns, c->refuse_us, "refuse", err);
	if (!rc)
		rc = set_us(&now.far_ns, c->far_us, "far", err);
	if (!rc)
		rc = set_us(&now.lapse_ns, c->lapse_us, "lapse", err);
	if (!rc)
		rc = bl_token_change(ref, c, meter ? rate : 0, false, &was_top, &is_top, said, size,
				     err);
	if (!rc && !c->check)
		rc = bl_map_set(fd, 0, &now, BL_MAP_RSV_CFG, err);
	close(fd);
	if (rc || c->check)
		return rc;
	if (old.on != now.on || was_top != is_top)
		say(said, size, "policy",
		    old.on    ? "pl2"
		    : was_top ? "top"
			      : "none",
		    now.on   ? "pl2"
		    : is_top ? "top"
			     : "none");
	rc = bl_token_change(ref, c, meter ? rate : 0, true, &was_top, &is_top, said, size, err);
	if (!rc && c->rate_bps > 0 &&
	    meter) /* after tokens, whose shares follow from what ports are metered at; all of them,
		      whatever the first one was at */
		rc = change_meters(ref, rate, &meter, err);
	if (rc)
		return rc;
	if (old.allocator != now.allocator)
		say(said, size, "allocator", bl_allocator_name(old.allocator),
		    bl_allocator_name(now.allocator));
	say_rate(said, size, meter, rate);
	if (old.ns_q20 != now.ns_q20) {
		char a[32], b[32];

		say(said, size, "reserved rate",
		    bl_rate_text(bl_rate_of_q20(old.ns_q20), a, sizeof(a)),
		    bl_rate_text(bl_rate_of_q20(now.ns_q20), b, sizeof(b)));
	}
	say_number(said, size, "refuse", old.refuse_ns, now.refuse_ns, " ns");
	say_number(said, size, "far", old.far_ns, now.far_ns, " ns");
	say_number(said, size, "lapse", old.lapse_ns, now.lapse_ns, " ns");
	return 0;
}

int bl_admission_change(const struct bl_node_ref *ref, const struct bl_admission_set *c, char *said,
			size_t size, struct bl_err *err)
{
	*said = 0;
	return ref->role == BL_ROLE_HOST ? change_host(ref, c, said, size, err)
					 : change_switch(ref, c, said, size, err);
}
