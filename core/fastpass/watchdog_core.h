/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which arbiter rules (Fastpass section 5.1): watchdogs of the primary, takeover after silence, and
 *fencing by time, so that two never allocate the same slot.
 *
 *	standby --(dead_ns of silence, later for higher ranks)--> candidate --(guard_ns)--> primary
 *	candidate, primary --(a watchdog of a higher term; or of the same term and a lower rank)-->
 *standby primary --(it has sent no watchdog for lease_ns: it was stopped)--> standby
 *
 * Fencing. An arbiter allocates only while its own last watchdog is younger than lease_ns, and
 *never a slot that ends more than horizon_ns ahead. So its last slot has ended lease_ns +
 *horizon_ns = dead_ns after its last watchdog. Nobody else allocates before dead_ns after having
 *heard that watchdog. A primary that was stopped (a paused virtual machine) and goes on finds its
 *lease lapsed before it can allocate. This needs clocks of equal rate, not equal clocks, and that
 *watchdogs arrive: if all of 1 ms are lost, two rule until one of them hears the other, and hosts
 *follow the higher term (core/fastpass/fcp_host_core.h).
 *
 * Example, watchdogs every 100 us, dead 1 ms, guard 300 us, horizon 200 us, lease 800 us. The
 *primary (term 5) sends its last watchdog at 0 and dies at 50 us; its last slot ends before 250 us.
 * The secondary, rank 1, is silent until 1.3 ms (0.3 ms per rank), announces itself with term 6,
 *and allocates from 1.6 ms on. The dead one comes back at 1.5 ms: it is in standby, hears term 6
 *and stays there.
 *
 * Time is signed: a watchdog that was received after @now was read does not look 2^64 ns old (in
 *the published arbiter it does, and the secondary takes over almost at once). Sequence numbers are
 * serial numbers: they wrap after 5 days.
 */
#ifndef BARLINE_WATCHDOG_CORE_H
#define BARLINE_WATCHDOG_CORE_H

#include "core/fastpass/fcp_core.h"

/**
 * struct bl_wd - one arbiter's view; one thread.
 * @p: secret and table. @rank: lower ones take over earlier, and win ties. @interval_ns, @dead_ns,
 * @guard_ns, @lease_ns: see above.
 * @state: enum bl_fcp_state. @since_ns: when it was entered.
 * @term: highest that was heard or announced.
 * @heard_ns, @heard_term, @heard_rank, @heard_seq: last watchdog that counted; @heard_ns also the
 * start of listening.
 * @heard: 1: there was one.
 * @seq: of the next own watchdog. @sent_ns: of the last one that the socket took.
 * @takeovers: times that this one became primary. @yields: times that it gave way. @stalls: leases
 * that lapsed. @count: watchdogs that came, by enum bl_fcp_reason.
 */
struct bl_wd {
	const struct bl_fcp_params *p;
	__u32 rank;
	__u32 state;
	__u64 interval_ns;
	__u64 dead_ns;
	__u64 guard_ns;
	__u64 lease_ns;
	__u64 since_ns;
	__u32 term;
	__u32 heard_term;
	__u64 heard_ns;
	__u32 heard_rank;
	__u32 heard_seq;
	__u64 sent_ns;
	__u32 seq;
	__u32 heard;
	__u64 takeovers;
	__u64 yields;
	__u64 stalls;
	__u64 count[BL_FCP_R_COUNT];
};

BL_CORE void bl_wd_state_enter(struct bl_wd *w, __u32 state, __u64 now)
{
	w->state = state;
	w->since_ns = now;
	if (state == BL_FCP_STANDBY)
		w->heard_ns = now;
}

/**
 * bl_wd_init - @horizon_ns: how far ahead this arbiter allocates, at most, to the end of the slot.
 * @term: at least as high as any that hosts may know: seconds of the calendar will do. Returns 0;
 * -1: no room is left for a lease: @dead_ns must be at least @horizon_ns + 2 @interval_ns.
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

/** bl_wd_outranked - does (@term, @rank) outrank this arbiter's own claim? */
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
		return BL_FCP_R_DUPLICATE; /* its own, by way of the group */
	if (w->heard && term == w->heard_term && rank == w->heard_rank &&
	    (__s32)(k.seq - w->heard_seq) <= 0)
		return BL_FCP_R_DUPLICATE;
	/* who listens follows anybody at first, and after that nobody who was replaced */
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

/** bl_wd_rx - a packet came to the group, aligned to 8. */
BL_FN enum bl_fcp_reason bl_wd_rx(struct bl_wd *w, const void *packet, __u32 len, __u64 now)
{
	enum bl_fcp_reason why = bl_wd_read(w, packet, len, now);

	w->count[why]++;
	return why;
}

/**
 * bl_wd_may_allocate - may this arbiter allocate at @now? To be asked before every batch, with a
 * fresh
 * @now.
 */
BL_CORE int bl_wd_may_allocate(const struct bl_wd *w, __u64 now)
{
	return w->state == BL_FCP_PRIMARY && (__s64)(now - w->sent_ns) < (__s64)w->lease_ns;
}

/**
 * bl_wd_tick - what time alone changes. @now must have been read before the group's socket was
 * emptied: then a process that stood still hears what waits there before it judges. Returns 1 if a
 * watchdog is due: send it (bl_wd_tx()).
 */
BL_FN int bl_wd_tick(struct bl_wd *w, __u64 now)
{
	if (w->state == BL_FCP_STANDBY &&
	    (__s64)(now - w->heard_ns) >= (__s64)(w->dead_ns + w->rank * w->guard_ns)) {
		w->term++;
		w->sent_ns = now; /* the lease of a candidate permits nothing yet */
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

/** bl_wd_next - when bl_wd_tick() is to be called, if nothing comes. */
BL_CORE __u64 bl_wd_next(const struct bl_wd *w)
{
	return w->state == BL_FCP_STANDBY ? w->heard_ns + w->dead_ns + w->rank * w->guard_ns
					  : w->sent_ns + w->interval_ns;
}

/** bl_wd_tx - a watchdog; its length. @buf: BL_FCP_PACKET_MAX bytes, aligned to 8. */
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
 * bl_wd_sent - the socket took it. @now was read before that: the lease counts from there. What
 * the socket refuses extends nothing.
 */
BL_CORE void bl_wd_sent(struct bl_wd *w, __u64 now)
{
	w->sent_ns = now;
}

#endif
