/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What ptp4l says of its clock: questions to its management socket, its answers, and the bound that
 * follows from them.
 *
 * A round is one question of each kind. Each has a sequence number of its own, and is sent in the
 * name of a clock identity that nobody else knows, so an answer to somebody else is told apart.
 *
 * ptp4l measures its clock against that of its master at each Sync message, as the difference less
 * the mean path delay. The mean is half of the way there and back, and neither way takes less than
 * no time: ptp4l cannot know the difference better than to within the mean path delay, whatever
 * the asymmetry. The bound of ptp4l's clock is therefore the largest offset among the last Syncs
 * plus the largest path delay among them. A clock that is k steps away from the grandmaster follows
 * k - 1 other clocks, which are taken to be as good as itself.
 *
 * Example: offsets of -1434 to 323 ns and path delays of 2434 to 2739 ns: 4173 ns, and 8346 ns two
 * steps away.
 *
 * Only what was measured between two answers counts, so a Sync counts if the round before it and
 * its own round were both answered by the next reading. It is then at most two readings old.
 *
 * A hardware clock (PHC) is related to the system clock by reading both; the error of that reading
 * is half the time that it took.
 *
 * This file reads no clock and no socket; loader/clock/ptp4l.c does.
 */
#ifndef BARLINE_PTP_CORE_H
#define BARLINE_PTP_CORE_H

#include "core/clock_source_core.h"
#include "core/core.h"
#include "maps/clock_abi.h"
#include "maps/ptp_abi.h"

/** enum bl_ptp_question - the questions of a round, in the order of their sequence numbers. */
enum bl_ptp_question {
	BL_PTP_Q_STATUS,
	BL_PTP_Q_CURRENT,
	BL_PTP_Q_PROPERTIES,
	BL_PTP_Q_DEFAULT,
	BL_PTP_Q_PORT,
	BL_PTP_QUESTIONS
};

#define BL_PTP_ALL          ((1u << BL_PTP_QUESTIONS) - 1)
#define BL_PTP_ASK_BYTES    (sizeof(struct bl_ptp_msg) + sizeof(struct bl_ptp_tlv))
#define BL_PTP_WINDOW       16             /* Syncs that count */
#define BL_PTP_SYNC_LOST_NS 20000000000ULL /* without a Sync for that long, nothing is measured */

/** struct bl_ptp_asker - in whose name questions are asked, and whom. */
struct bl_ptp_asker {
	__u8 me[10];    /* a random identity and port number */
	__u8 domain;    /* of ptp4l, which does not answer to another one */
	__u8 transport; /* transportSpecific, likewise; 1 for 802.1AS */
};

/** struct bl_ptp_round - a round of questions and what was answered. */
struct bl_ptp_round {
	__u16 first; /* sequence number of the first question */
	__u16 port;  /* the port that BL_PTP_Q_PORT asks about, from 1 on */
	__u32 got;   /* bit q: question q was answered; its fields below are valid */
	__u32 error; /* bit q: it was refused, or the answer cannot be used */

	__s64 offset_ns;  /* STATUS: ptp4l's clock less the master's */
	__s64 ingress_ns; /* arrival of the Sync that @offset_ns is from */
	__u8 gm_present;
	__u8 gm[8];
	__u16 steps; /* CURRENT */
	__s64 delay_ns;
	__s16 utc_offset_s; /* PROPERTIES */
	__u8 time_flags;
	__u16 ports; /* DEFAULT */
	__u8 clock[8];
	__u8 state; /* PORT: enum bl_ptp_state */
	__u8 stamping;
	char interface[16]; /* NUL-terminated; "": it has a longer name, or none */
};

BL_CORE __u64 bl_ptp_get(const __u8 *p, __u32 bytes)
{
	__u64 v = 0;
	__u32 k;

	for (k = 0; k < bytes; k++)
		v = v << 8 | p[k];
	return v;
}

BL_CORE void bl_ptp_put16(__u8 *p, __u16 v)
{
	p[0] = (__u8)(v >> 8);
	p[1] = (__u8)v;
}

BL_CORE int bl_ptp_same(const __u8 *a, const __u8 *b, __u32 bytes)
{
	__u32 k, differ = 0;

	for (k = 0; k < bytes; k++)
		differ |= a[k] ^ b[k];
	return !differ;
}

BL_CORE __u16 bl_ptp_question_id(__u32 q)
{
	switch (q) {
	case BL_PTP_Q_STATUS:
		return BL_PTP_ID_STATUS;
	case BL_PTP_Q_CURRENT:
		return BL_PTP_ID_CURRENT;
	case BL_PTP_Q_PROPERTIES:
		return BL_PTP_ID_PROPERTIES;
	case BL_PTP_Q_DEFAULT:
		return BL_PTP_ID_DEFAULT;
	default:
		return BL_PTP_ID_PORT;
	}
}

/**
 * bl_ptp_ask - writes question @q of @r to @to, BL_PTP_ASK_BYTES. It is not to leave the machine:
 * boundary hops are 0. Only one port is asked, and so there is one answer: ptp4l waits for a client
 * whose socket is full.
 */
BL_CORE void bl_ptp_ask(__u8 *to, const struct bl_ptp_asker *a, const struct bl_ptp_round *r,
			__u32 q)
{
	struct bl_ptp_msg *m = (struct bl_ptp_msg *)to;
	struct bl_ptp_tlv *t = (struct bl_ptp_tlv *)(to + sizeof(*m));

	__builtin_memset(to, 0, BL_PTP_ASK_BYTES);
	m->type = (__u8)(a->transport << 4 | BL_PTP_MANAGEMENT);
	m->version = BL_PTP_VERSION;
	bl_ptp_put16(m->length, BL_PTP_ASK_BYTES);
	m->domain = a->domain;
	__builtin_memcpy(m->source, a->me, sizeof(m->source));
	bl_ptp_put16(m->sequence, (__u16)(r->first + q));
	m->control = 4;
	m->interval = 0x7f;
	__builtin_memset(m->target, 0xff, sizeof(m->target));
	if (q == BL_PTP_Q_PORT)
		bl_ptp_put16(m->target + 8, r->port);
	m->action = BL_PTP_GET;
	bl_ptp_put16(t->type, BL_PTP_TLV);
	bl_ptp_put16(t->length, sizeof(t->id));
	bl_ptp_put16(t->id, bl_ptp_question_id(q));
}

/** enum bl_ptp_taken - what a datagram from ptp4l's socket was. */
enum bl_ptp_taken {
	BL_PTP_TAKEN,   /* an answer to a question of the round */
	BL_PTP_FOREIGN, /* something else: for another client, or from an earlier round */
	BL_PTP_REFUSED, /* ptp4l does not answer this question */
	BL_PTP_BROKEN,  /* an answer to it that is too short, or contradicts itself */
};

BL_CORE int bl_ptp_take_status(struct bl_ptp_round *r, const __u8 *data, __u32 len)
{
	const struct bl_ptp_status *d = (const struct bl_ptp_status *)data;

	if (len < sizeof(*d))
		return 0;
	r->offset_ns = (__s64)bl_ptp_get(d->offset, 8);
	r->ingress_ns = (__s64)bl_ptp_get(d->ingress, 8);
	r->gm_present = !!bl_ptp_get(d->gm_present, 4);
	__builtin_memcpy(r->gm, d->gm, sizeof(r->gm));
	return 1;
}

BL_CORE int bl_ptp_take_current(struct bl_ptp_round *r, const __u8 *data, __u32 len)
{
	const struct bl_ptp_current *d = (const struct bl_ptp_current *)data;

	if (len < sizeof(*d))
		return 0;
	r->steps = (__u16)bl_ptp_get(d->steps, 2);
	r->delay_ns = (__s64)bl_ptp_get(d->delay, 8) >> 16;
	return 1;
}

BL_CORE int bl_ptp_take_properties(struct bl_ptp_round *r, const __u8 *data, __u32 len)
{
	const struct bl_ptp_properties *d = (const struct bl_ptp_properties *)data;

	if (len < sizeof(*d))
		return 0;
	r->utc_offset_s = (__s16)bl_ptp_get(d->utc_offset, 2);
	r->time_flags = d->flags;
	return 1;
}

/* A clock without a port, or one that is in another domain than the one asked, is refused. */
BL_CORE int bl_ptp_take_default(struct bl_ptp_round *r, const struct bl_ptp_asker *a,
				const __u8 *data, __u32 len)
{
	const struct bl_ptp_default *d = (const struct bl_ptp_default *)data;

	if (len < sizeof(*d) || d->domain != a->domain || !bl_ptp_get(d->ports, 2))
		return 0;
	r->ports = (__u16)bl_ptp_get(d->ports, 2);
	__builtin_memcpy(r->clock, d->identity, sizeof(r->clock));
	return 1;
}

BL_CORE int bl_ptp_take_port(struct bl_ptp_round *r, const __u8 *data, __u32 len)
{
	const struct bl_ptp_port *d = (const struct bl_ptp_port *)data;
	__u32 k;

	if (len < sizeof(*d) || d->length > len - sizeof(*d) ||
	    bl_ptp_get(d->identity + 8, 2) != r->port)
		return 0;
	r->state = d->state;
	r->stamping = d->stamping;
	__builtin_memset(r->interface, 0, sizeof(r->interface));
	for (k = 0; k < d->length && d->length < sizeof(r->interface); k++)
		r->interface[k] = (char)data[sizeof(*d) + k];
	return 1;
}

/* Takes the message @p of @len bytes, which answers question @q. */
BL_CORE enum bl_ptp_taken bl_ptp_take_answer(struct bl_ptp_round *r, const struct bl_ptp_asker *a,
					     __u32 q, const __u8 *p, __u32 len)
{
	const struct bl_ptp_msg *m = (const struct bl_ptp_msg *)p;
	const struct bl_ptp_tlv *t = (const struct bl_ptp_tlv *)(p + sizeof(*m));
	const __u8 *data = p + BL_PTP_ASK_BYTES;
	__u32 said = (__u32)bl_ptp_get(m->length, 2), has;
	int taken = 0;

	/* The message may be shorter than the datagram, and the TLV shorter than the message. */
	if (said > len || said < BL_PTP_ASK_BYTES)
		return BL_PTP_BROKEN;
	has = (__u32)bl_ptp_get(t->length, 2);
	if (has < sizeof(t->id) || has - sizeof(t->id) > said - BL_PTP_ASK_BYTES)
		return BL_PTP_BROKEN;
	has -= sizeof(t->id);
	if (bl_ptp_get(t->type, 2) == BL_PTP_TLV_ERROR)
		return BL_PTP_REFUSED;
	if (bl_ptp_get(t->type, 2) != BL_PTP_TLV || bl_ptp_get(t->id, 2) != bl_ptp_question_id(q))
		return BL_PTP_BROKEN;
	switch (q) {
	case BL_PTP_Q_STATUS:
		taken = bl_ptp_take_status(r, data, has);
		break;
	case BL_PTP_Q_CURRENT:
		taken = bl_ptp_take_current(r, data, has);
		break;
	case BL_PTP_Q_PROPERTIES:
		taken = bl_ptp_take_properties(r, data, has);
		break;
	case BL_PTP_Q_DEFAULT:
		taken = bl_ptp_take_default(r, a, data, has);
		break;
	case BL_PTP_Q_PORT:
		taken = bl_ptp_take_port(r, data, has);
		break;
	}
	return taken ? BL_PTP_TAKEN : BL_PTP_BROKEN;
}

/**
 * bl_ptp_take - takes the datagram @p of @len bytes as an answer to a question of @r. Sets the bit
 * of the question in @r->got, or in @r->error; of a foreign datagram it sets neither.
 */
BL_CORE enum bl_ptp_taken bl_ptp_take(struct bl_ptp_round *r, const struct bl_ptp_asker *a,
				      const __u8 *p, __u32 len)
{
	const struct bl_ptp_msg *m = (const struct bl_ptp_msg *)p;
	enum bl_ptp_taken taken;
	__u32 q;

	if (len < sizeof(*m) || (m->type & 0xf) != BL_PTP_MANAGEMENT ||
	    (m->version & 0xf) != BL_PTP_VERSION || (m->action & 0xf) != BL_PTP_RESPONSE ||
	    m->domain != a->domain || !bl_ptp_same(m->target, a->me, sizeof(a->me)))
		return BL_PTP_FOREIGN;
	q = (__u16)(bl_ptp_get(m->sequence, 2) - r->first);
	if (q >= BL_PTP_QUESTIONS || (r->got | r->error) >> q & 1)
		return BL_PTP_FOREIGN;
	taken = bl_ptp_take_answer(r, a, q, p, len);
	if (taken == BL_PTP_TAKEN)
		r->got |= 1u << q;
	else
		r->error |= 1u << q;
	return taken;
}

/**
 * bl_ptp_next_port - the port to ask about after @r: the same if it decides what the clock does,
 * else the next one, as any of them may be the slave.
 */
BL_CORE __u16 bl_ptp_next_port(const struct bl_ptp_round *r)
{
	int decides = r->state == BL_PTP_SLAVE || (r->state == BL_PTP_MASTER && !r->gm_present);

	if (!(r->got & (1u << BL_PTP_Q_DEFAULT)) || !r->port || r->port > r->ports)
		return 1;
	if (decides)
		return r->port;
	return r->port == r->ports ? 1 : (__u16)(r->port + 1);
}

BL_CORE __u64 bl_ptp_abs(__s64 v)
{
	return v < 0 ? 0 - (__u64)v : (__u64)v;
}

/* The sum of @a and @b, at most BL_CLOCK_BOUND_MAX_NS. */
BL_CORE __u64 bl_ptp_add(__u64 a, __u64 b)
{
	if (a >= BL_CLOCK_BOUND_MAX_NS || b >= BL_CLOCK_BOUND_MAX_NS - a)
		return BL_CLOCK_BOUND_MAX_NS;
	return a + b;
}

/** struct bl_ptp_view - what earlier rounds have shown. All zero: nothing. */
struct bl_ptp_view {
	__u64 offset_ns[BL_PTP_WINDOW]; /* absolute values, Sync number k at k % BL_PTP_WINDOW */
	__u64 delay_ns[BL_PTP_WINDOW];
	__u32 syncs;    /* Syncs since @gm is followed */
	int follows;    /* the following three are valid */
	__u8 gm[8];     /* the grandmaster that is followed */
	__u64 since_ns; /* CLOCK_MONOTONIC of the last Sync, or of the first round with @gm */
	int seen;       /* the last round was in time, and had @ingress_ns */
	__s64 ingress_ns;
};

/** bl_ptp_missed - a round was not answered, or late: the next Sync may be older than it seems. */
BL_CORE void bl_ptp_missed(struct bl_ptp_view *v)
{
	v->seen = 0;
}

/* Returns the bound of ptp4l's clock against its grandmaster, ns. */
BL_CORE __u64 bl_ptp_bound(const struct bl_ptp_view *v, __u16 steps)
{
	__u64 offset = 0, delay = 0, one;
	__u32 k;

	for (k = 0; k < BL_PTP_WINDOW && k < v->syncs; k++) {
		offset = offset < v->offset_ns[k] ? v->offset_ns[k] : offset;
		delay = delay < v->delay_ns[k] ? v->delay_ns[k] : delay;
	}
	one = bl_ptp_add(offset, delay);
	if (steps <= 1)
		return one;
	return one >= BL_CLOCK_BOUND_MAX_NS / steps ? BL_CLOCK_BOUND_MAX_NS : one * steps;
}

/**
 * bl_ptp_judge - what the answered round @r says of ptp4l's clock.
 * @mono: CLOCK_MONOTONIC of this reading.
 * @in_time: it was asked at the reading before, and not earlier.
 * @grandmaster: this machine may be the grandmaster; its clock is then right by definition.
 *
 * Sets all of *@s but its TAI offset, and returns why the clock is not synchronised, or 0.
 */
BL_CORE enum bl_clock_reason bl_ptp_judge(struct bl_ptp_view *v, const struct bl_ptp_round *r,
					  __u64 mono, int in_time, int grandmaster,
					  struct bl_clock_sample *s)
{
	s->synced = s->fresh = s->late = 0;
	s->bound_ns = 0;
	if (!r->gm_present && r->state == BL_PTP_MASTER && bl_ptp_same(r->gm, r->clock, 8)) {
		v->follows = v->seen = 0;
		s->synced = s->fresh = grandmaster;
		return grandmaster ? BL_CLOCK_NO_REASON : BL_CLOCK_PTP_MASTER;
	}
	if (!r->gm_present || r->state != BL_PTP_SLAVE) {
		v->follows = v->seen = 0;
		return BL_CLOCK_PTP_PORT;
	}
	if (!v->follows || !bl_ptp_same(v->gm, r->gm, 8)) {
		__builtin_memcpy(v->gm, r->gm, sizeof(v->gm));
		v->follows = 1;
		v->seen = 0;
		v->syncs = 0;
		v->since_ns = mono;
	}
	if (v->seen && in_time && r->ingress_ns != v->ingress_ns) {
		v->offset_ns[v->syncs % BL_PTP_WINDOW] = bl_ptp_abs(r->offset_ns);
		v->delay_ns[v->syncs % BL_PTP_WINDOW] = bl_ptp_abs(r->delay_ns);
		v->syncs = v->syncs == ~0u ? BL_PTP_WINDOW : v->syncs + 1;
		v->since_ns = mono;
		s->fresh = 1;
	}
	v->seen = in_time;
	v->ingress_ns = r->ingress_ns;
	if (mono - v->since_ns > BL_PTP_SYNC_LOST_NS)
		return BL_CLOCK_PTP_NO_SYNC;
	if (!v->syncs)
		return BL_CLOCK_ASKING;
	s->synced = s->late = 1;
	s->bound_ns = bl_ptp_bound(v, r->steps);
	return BL_CLOCK_NO_REASON;
}

/** bl_ptp_ahead_s - what ptp4l's own hardware clock is ahead of UTC by if it is right, s. */
BL_CORE __s32 bl_ptp_ahead_s(const struct bl_ptp_round *r)
{
	return r->time_flags & BL_PTP_TIMESCALE ? r->utc_offset_s : 0;
}

/** bl_ptp_tai_differs - the grandmaster knows TAI - UTC, and the kernel has another @tai_s. */
BL_CORE int bl_ptp_tai_differs(const struct bl_ptp_round *r, __s32 tai_s)
{
	const __u8 both = BL_PTP_TIMESCALE | BL_PTP_UTC_VALID;

	return (r->time_flags & both) == both && r->utc_offset_s != tai_s;
}

/** struct bl_phc_reading - a hardware clock and the system clock, read together. */
struct bl_phc_reading {
	__s64 ahead_ns; /* the hardware clock less CLOCK_REALTIME */
	__u64 half_ns;  /* error of that */
};

/** bl_phc_error - the most by which the system clock is off a PHC that is @ahead_s of UTC, ns. */
BL_CORE __u64 bl_phc_error(const struct bl_phc_reading *p, __s32 ahead_s)
{
	__u64 off = bl_ptp_abs((__s64)((__u64)p->ahead_ns - (__u64)(ahead_s * 1000000000LL)));

	return bl_ptp_add(off, p->half_ns);
}

/** struct bl_phc_track - the course of a hardware clock. All zero: not read yet. */
struct bl_phc_track {
	int read;       /* the following three are valid */
	__u64 mono_ns;  /* CLOCK_MONOTONIC of the last reading */
	__s64 ahead_ns; /* the PHC less CLOCK_MONOTONIC */
	__u64 half_ns;
};

/*
 * A servo turns a PHC by some 100 ppm at the most once it is locked. More than this is a step, or a
 * clock that has yet to find its rate.
 */
#define BL_PHC_TURN_PPM 500
#define BL_PHC_NOISE_NS 1000

/**
 * bl_phc_jump - takes the reading of a PHC that is @ahead_ns of CLOCK_MONOTONIC at @mono, to within
 * @half_ns. Returns how far it has jumped since the last reading, ns; 0: it has not.
 */
BL_CORE __u64 bl_phc_jump(struct bl_phc_track *t, __u64 mono, __s64 ahead_ns, __u64 half_ns)
{
	__u64 by = bl_ptp_abs((__s64)((__u64)ahead_ns - (__u64)t->ahead_ns)), may;

	may = mono > t->mono_ns ? (mono - t->mono_ns) / (1000000 / BL_PHC_TURN_PPM) : 0;
	may += half_ns + t->half_ns + BL_PHC_NOISE_NS;
	if (!t->read)
		by = 0;
	t->read = 1;
	t->mono_ns = mono;
	t->ahead_ns = ahead_ns;
	t->half_ns = half_ns;
	return by > may ? by : 0;
}

#endif
