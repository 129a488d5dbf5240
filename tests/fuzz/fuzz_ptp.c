/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes the reader of ptp4l's answers and what follows from them (core/ptp_core.h). The input is a
 * list of datagrams: a byte HOW, a length, and bytes. If bit 7 of HOW is set, the bytes are the
 * data of an answer to question HOW & 7, and the head is made for them. Else they are the datagram.
 * Bits 3 and 4 make the head's lengths wrong; bit 5 ends the round, though it is not complete.
 *
 * It checks that no byte beyond a datagram is read, that a foreign one changes nothing, and that a
 * clock is called synchronised only after a Sync that came between two complete rounds, or as the
 * grandmaster, with a bound that is not less than the offset.
 */
#include "fuzz.h"

#include "core/ptp_core.h"

static const struct bl_ptp_asker asker = { .me = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 } };

static enum bl_ptp_taken take(struct bl_ptp_round *r, const uint8_t *data, size_t n)
{
	uint8_t *p = fuzz_copy(data, n, 0);
	struct bl_ptp_round before = *r;
	enum bl_ptp_taken taken = bl_ptp_take(r, &asker, p, (uint32_t)n);
	uint32_t had = before.got | before.error, has = r->got | r->error;

	fuzz_free(p, 0);
	FUZZ_CHECK(!(r->got & r->error));
	FUZZ_CHECK(has >> BL_PTP_QUESTIONS == 0);
	if (taken == BL_PTP_FOREIGN)
		FUZZ_CHECK(!memcmp(&before, r, sizeof(before)));
	else
		FUZZ_CHECK((has & had) == had && __builtin_popcount(has & ~had) == 1);
	FUZZ_CHECK((taken == BL_PTP_TAKEN) == (r->got != before.got));
	FUZZ_CHECK(r->interface[sizeof(r->interface) - 1] == 0);
	FUZZ_CHECK(!(r->got & 1u << BL_PTP_Q_DEFAULT) || r->ports);
	return taken;
}

/* Writes an answer to question @how & 7 with the data @p. Returns its length. */
static size_t make(uint8_t *to, const struct bl_ptp_round *r, uint8_t how, const uint8_t *p,
		   size_t n)
{
	size_t all = BL_PTP_ASK_BYTES + n;

	bl_ptp_ask(to, &asker, r, how & 7);
	memcpy(((struct bl_ptp_msg *)to)->target, asker.me, sizeof(asker.me));
	((struct bl_ptp_msg *)to)->action = BL_PTP_RESPONSE;
	bl_ptp_put16(to + 2, (uint16_t)(all - (how >> 3 & 1)));
	bl_ptp_put16(to + 50, (uint16_t)(2 + n - (how >> 4 & 1)));
	memcpy(to + BL_PTP_ASK_BYTES, p, n);
	return all;
}

static void judge(struct bl_ptp_view *v, const struct bl_ptp_round *r, uint64_t mono, int in_time,
		  int grandmaster)
{
	struct bl_clock_sample s = { 0 };
	struct bl_ptp_view before = *v;
	enum bl_clock_reason why = bl_ptp_judge(v, r, mono, in_time, grandmaster, &s);

	FUZZ_CHECK(why < BL_CLOCK_REASONS_NUMBER && !!s.synced == !why);
	FUZZ_CHECK(s.bound_ns <= BL_CLOCK_BOUND_MAX_NS);
	if (s.synced && !s.late) {
		FUZZ_CHECK(grandmaster && !r->gm_present && r->state == BL_PTP_MASTER);
		FUZZ_CHECK(s.fresh && !s.bound_ns);
		return;
	}
	if (s.synced)
		FUZZ_CHECK(r->state == BL_PTP_SLAVE && r->gm_present && v->syncs);
	if (s.synced && s.fresh) {
		FUZZ_CHECK(in_time && before.seen && r->ingress_ns != before.ingress_ns);
		FUZZ_CHECK(s.bound_ns == BL_CLOCK_BOUND_MAX_NS ||
			   s.bound_ns >= bl_ptp_abs(r->offset_ns));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct bl_ptp_round r = { .port = 1 };
	struct bl_ptp_view v = { 0 };
	struct bl_phc_track track = { 0 };
	uint64_t mono = 1000000000;

	while (in.left) {
		uint8_t how = fuzz_u8(&in), made[BL_PTP_ASK_BYTES + 256];
		size_t n = fuzz_u8(&in);
		const uint8_t *p = fuzz_take(&in, &n);
		struct bl_phc_reading phc;
		int complete;

		if (how & 0x80)
			n = make(made, &r, how, p, n);
		take(&r, how & 0x80 ? made : p, n);
		complete = (r.got | r.error) == BL_PTP_ALL;
		if (!complete && !(how & 0x20))
			continue;
		mono += 250000000;
		if (complete && !r.error)
			judge(&v, &r, mono, !(how & 0x40), how & 1);
		else
			bl_ptp_missed(&v);
		phc = (struct bl_phc_reading){ r.offset_ns, (uint64_t)r.delay_ns };
		FUZZ_CHECK(bl_phc_error(&phc, bl_ptp_ahead_s(&r)) <= BL_CLOCK_BOUND_MAX_NS);
		bl_phc_jump(&track, mono, r.offset_ns, 0);
		FUZZ_CHECK(!bl_phc_jump(&track, mono, r.offset_ns, 0));
		FUZZ_CHECK(bl_ptp_next_port(&r));
		r = (struct bl_ptp_round){ .first = (uint16_t)(r.first + BL_PTP_QUESTIONS),
					   .port = bl_ptp_next_port(&r) };
	}
	return 0;
}
