/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which arbiter is the primary (Fastpass section 5.1): watchdogs of the primary, takeover after
 * silence, and fencing by time, so that two arbiters never allocate the same slot.
 *
 *   standby             to candidate after dead_ns of silence, later for higher ranks
 *   candidate           to primary after guard_ns
 *   candidate, primary  to standby on a watchdog of a higher term, or of the same term and a
 *                       lower rank
 *   primary             to standby if it has sent no watchdog for lease_ns: it was stopped
 *
 * Fencing. An arbiter allocates only while its own last watchdog is younger than lease_ns, and
 * never a slot that ends more than horizon_ns ahead. So its last slot has ended lease_ns +
 * horizon_ns = dead_ns after its last watchdog. No other arbiter allocates before dead_ns after it
 * has received that watchdog. A primary that was stopped (a paused virtual machine) and continues
 * finds that its lease has lapsed before it can allocate. This needs clocks of equal rate, not
 * equal clocks, and it needs watchdogs to arrive: if all of 1 ms are lost, two arbiters are primary
 * until one of them hears the other, and hosts follow the higher term
 * (core/fastpass/fcp_host_core.h).
 *
 * Example, watchdogs every 100 us, dead 1 ms, guard 300 us, horizon 200 us, lease 800 us. The
 * primary (term 5) sends its last watchdog at 0 and dies at 50 us; its last slot ends before 250
 * us. The secondary, rank 1, waits until 1.3 ms (0.3 ms per rank), announces itself with term 6,
 * and allocates from 1.6 ms on. The old primary comes back at 1.5 ms: it is in standby, hears term
 * 6 and stays there.
 *
 * Times are compared as signed differences: a watchdog that was received after @now was read does
 * not look 2^64 ns old (in the published arbiter it does, and the secondary takes over almost at
 * once). Sequence numbers are serial numbers: they wrap after 5 days.
 *
 * This file has no socket and no clock.
 */
#ifndef BARLINE_WATCHDOG_CORE_H
#define BARLINE_WATCHDOG_CORE_H

#include "core/fastpass/fcp_core.h"

/**
 * struct bl_wd - one arbiter's view of its group. Used by one thread.
 */
struct bl_wd {
	const struct bl_fcp_params *p; /* secret and table */
	__u32 rank;                    /* lower ranks take over earlier, and win ties */
	__u32 state;                   /* enum bl_fcp_state */
	__u64 interval_ns;             /* interval of its watchdogs */
	__u64 dead_ns;                 /* silence after which it takes over */
	__u64 guard_ns;                /* see the top of this file */
	__u64 lease_ns;                /* see the top of this file */
	__u64 since_ns;                /* time at which @state was entered */
	__u32 term;                    /* highest term heard or announced */
	__u32 heard_term;              /* of the last watchdog that counted */
	/* time of the last watchdog that counted; at first, the start of listening */
	__u64 heard_ns;
	__u32 heard_rank;            /* of the last watchdog that counted */
	__u32 heard_seq;             /* of the last watchdog that counted */
	__u64 sent_ns;               /* time of its last watchdog that the socket accepted */
	__u32 seq;                   /* of its next watchdog */
	__u32 heard;                 /* 1: a watchdog has counted */
	__u64 takeovers;             /* times that it became primary */
	__u64 yields;                /* times that it gave way to another arbiter */
	__u64 stalls;                /* times that its lease lapsed */
	__u64 count[BL_FCP_R_COUNT]; /* watchdogs received, by enum bl_fcp_reason */
};

BL_CORE void bl_wd_state_enter(struct bl_wd *w, __u32 state, __u64 now)
{
	w->state = state;
	w->since_ns = now;
	if (state == BL_FCP_STANDBY)
		w->heard_ns = now;
}

/**
 * bl_wd_init - begin in standby.
 * @horizon_ns: how far ahead this arbiter allocates at most, to the end of the slot.
 * @term: at least as high as any that hosts may know; the calendar time in seconds will do.
 *
 * Returns 0, or -1 if no time is left for a lease: @dead_ns must be at least @horizon_ns + 2
 * @interval_ns.
 */
BL_FN int bl_wd_init(struct bl_wd *w, __u64 now, __u64 horizon_ns, __u32 term)
{
	if (w->dead_ns < horizon_ns + 2 * w->interval_ns)
		return -1;
	w->lease_ns = w->dead_ns - horizon_ns;
	w->term = term;
	w->seq = 1;
	bl_wd_state_enter(w, BL_FCP_STANDBY, now);
	return 0;
}

/** bl_wd_outranked - whether (@term, @rank) outranks this arbiter's own claim. */
BL_CORE int bl_wd_outranked(const struct bl_wd *w, __u32 term, __u32 rank)
{
	__s32 d = (__s32)(term - w->term);

	return d > 0 || (d == 0 && rank < w->rank);
}

BL_FN enum bl_fcp_reason bl_wd_read(struct bl_wd *w, const void *packet, __u32 len, __u64 now)
{
	struct bl_fcp_pkt k;
	enum bl_fcp_reason why = bl_fcp_parse(packet, len, 0, &k);
	const struct bl_fcp_watchdog *b = k.body;
	__u32 term, rank;

	if (why != BL_FCP_R_OK)
		return why;
	if (k.opcode != BL_FCP_WATCHDOG)
		return BL_FCP_R_BAD_OPCODE;
	if (!bl_fcp_checksum_ok(w->p, 0, packet, len))
		return BL_FCP_R_BAD_CHECK;
	if (b->reserved || b->reserved2 ||
	    (b->state != BL_FCP_CANDIDATE && b->state != BL_FCP_PRIMARY))
		return BL_FCP_R_BAD_BODY;
	if (BL_BE32(b->table) != w->p->table)
		return BL_FCP_R_BAD_TABLE;
	term = BL_BE32(b->term);
	rank = BL_BE16(b->rank);
	if (rank == w->rank)
		return BL_FCP_R_DUPLICATE; /* its own, received from the group */
	if (w->heard && term == w->heard_term && rank == w->heard_rank &&
	    (__s32)(k.seq - w->heard_seq) <= 0)
		return BL_FCP_R_DUPLICATE;
	/* in standby it follows any arbiter at first, and after that none that was replaced */
	if (w->state == BL_FCP_STANDBY ? w->heard && (__s32)(term - w->heard_term) < 0
				       : !bl_wd_outranked(w, term, rank))
		return BL_FCP_R_OLD_TERM;
	if (w->state != BL_FCP_STANDBY) {
		w->yields++;
		bl_wd_state_enter(w, BL_FCP_STANDBY, now);
	}
	w->heard = 1;
	w->heard_ns = now;
	w->heard_term = w->term = term;
	w->heard_rank = rank;
	w->heard_seq = k.seq;
	return BL_FCP_R_OK;
}

/**
 * bl_wd_rx - process a packet to the group. @packet: aligned to 8. Returns the result of the
 * packet.
 */
BL_FN enum bl_fcp_reason bl_wd_rx(struct bl_wd *w, const void *packet, __u32 len, __u64 now)
{
	enum bl_fcp_reason why = bl_wd_read(w, packet, len, now);

	w->count[why]++;
	return why;
}

/**
 * bl_wd_may_allocate - whether this arbiter may allocate at @now. Call it before every batch, with
 * a fresh @now.
 */
BL_CORE int bl_wd_may_allocate(const struct bl_wd *w, __u64 now)
{
	return w->state == BL_FCP_PRIMARY && (__s64)(now - w->sent_ns) < (__s64)w->lease_ns;
}

/**
 * bl_wd_tick - apply what time alone changes. @now must have been read before the group's socket
 * was drained, so that a process that stood still hears what waits there before it decides. Returns
 * 1 if a watchdog is due: send it (bl_wd_tx()).
 */
BL_FN int bl_wd_tick(struct bl_wd *w, __u64 now)
{
	if (w->state == BL_FCP_STANDBY &&
	    (__s64)(now - w->heard_ns) >= (__s64)(w->dead_ns + w->rank * w->guard_ns)) {
		w->term++;
		w->sent_ns = now; /* the lease of a candidate does not permit anything yet */
		bl_wd_state_enter(w, BL_FCP_CANDIDATE, now);
		return 1;
	}
	if (w->state == BL_FCP_STANDBY)
		return 0;
	if ((__s64)(now - w->sent_ns) >= (__s64)w->lease_ns) {
		w->stalls++;
		bl_wd_state_enter(w, BL_FCP_STANDBY, now);
		return 0;
	}
	if (w->state == BL_FCP_CANDIDATE && (__s64)(now - w->since_ns) >= (__s64)w->guard_ns) {
		w->takeovers++;
		bl_wd_state_enter(w, BL_FCP_PRIMARY, now);
		return 1;
	}
	return (__s64)(now - w->sent_ns) >= (__s64)w->interval_ns;
}

/** bl_wd_next - the time at which to call bl_wd_tick() if no packet arrives. */
BL_CORE __u64 bl_wd_next(const struct bl_wd *w)
{
	return w->state == BL_FCP_STANDBY ? w->heard_ns + w->dead_ns + w->rank * w->guard_ns
					  : w->sent_ns + w->interval_ns;
}

/** bl_wd_tx - write a watchdog. @buf: BL_FCP_PACKET_MAX bytes, aligned to 8. Returns its length. */
BL_FN __u32 bl_wd_tx(struct bl_wd *w, void *buf)
{
	struct bl_fcp_watchdog *b = (void *)((struct bl_fcp_hdr *)buf + 1);

	*b = (struct bl_fcp_watchdog){ .term = BL_BE32(w->term),
				       .rank = BL_BE16(w->rank),
				       .state = (__u8)w->state,
				       .table = BL_BE32(w->p->table) };
	return bl_fcp_seal(w->p, 0, BL_FCP_WATCHDOG, 0, w->seq++, 0, 0, buf,
			   sizeof(struct bl_fcp_hdr) + sizeof(*b));
}

/**
 * bl_wd_sent - the socket accepted the watchdog. @now was read before that: the lease counts from
 * there. A watchdog that the socket refuses extends nothing.
 */
BL_CORE void bl_wd_sent(struct bl_wd *w, __u64 now)
{
	w->sent_ns = now;
}

#endif
