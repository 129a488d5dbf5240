// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ptp4l's management messages and the bound that follows from them (core/ptp_core.h): the bytes of
 * ptp4l 3.1.1, answers that are cut, foreign or contradict themselves, which Syncs count, and
 * random clocks, whose error is never above the bound.
 */
#include "tests/unit/unit.h"
#include "core/ptp_core.h"

#define SEC  1000000000ULL
#define TICK 250000000ULL

static const struct bl_ptp_asker asker = { .me = { 0x50, 0x8c, 0x11, 0x09, 0x4e, 0x3a, 0x7e, 0x33,
						   0x12, 0x34 } };

/* What ptp4l 3.1.1 answered to the five questions (2026-11-27); the last two bytes: sequence. */
static const char *const recorded[BL_PTP_QUESTIONS] = {
	"0d02006800000000000000000000000000000000fe4f41fffe335b8100000000047f508c11094e3a7e33123400"
	"00020000010034c000fffffffffffffad518ebeb7fda2f05410000000000000000000000000000000000000000"
	"00000000000116f3dffffe4a293f",
	"0d02004800000000000000000000000000000000fe4f41fffe335b8100000001047f508c11094e3a7e33123400"
	"0002000001001420010001fffffffffad500000000000009b60000",
	"0d02003a00000000000000000000000000000000fe4f41fffe335b8100000002047f508c11094e3a7e33123400"
	"000200000100062003002500a0",
	"0d02004a00000000000000000000000000000000fe4f41fffe335b8100000003047f508c11094e3a7e33123400"
	"0002000001001620000300000180fffeffff80fe4f41fffe335b810000",
	"0d02004600000000000000000000000000000000fe4f41fffe335b8100010004047f508c11094e3a7e33123400"
	"00020000010012c004fe4f41fffe335b810001080002766200",
};

static uint8_t bytes[256];

static uint32_t from_hex(const char *hex)
{
	uint32_t n;
	unsigned int v;

	for (n = 0; hex[2 * n]; n++) {
		assert_int_equal(sscanf(hex + (size_t)2 * n, "%2x", &v), 1);
		bytes[n] = (uint8_t)v;
	}
	return n;
}

static struct bl_ptp_round round_of(uint16_t first)
{
	return (struct bl_ptp_round){ .first = first, .port = 1 };
}

static void bl_ptp_take__what_ptp4l_says(void **state)
{
	static const uint8_t gm[8] = { 0x16, 0xf3, 0xdf, 0xff, 0xfe, 0x4a, 0x29, 0x3f };
	static const uint8_t me[8] = { 0xfe, 0x4f, 0x41, 0xff, 0xfe, 0x33, 0x5b, 0x81 };
	struct bl_ptp_round r = round_of(0);
	unsigned int q;

	(void)state;
	for (q = 0; q < BL_PTP_QUESTIONS; q++) {
		uint32_t n = from_hex(recorded[q]);

		assert_int_equal(bl_ptp_take(&r, &asker, bytes, n), BL_PTP_TAKEN);
		/* A second answer to the same question is nothing. */
		assert_int_equal(bl_ptp_take(&r, &asker, bytes, n), BL_PTP_FOREIGN);
	}
	assert_int_equal(r.got, BL_PTP_ALL);
	assert_int_equal(r.error, 0);
	assert_int_equal(r.offset_ns, -1323);
	assert_true(r.ingress_ns == 0x18ebeb7fda2f0541LL);
	assert_int_equal(r.gm_present, 1);
	assert_memory_equal(r.gm, gm, 8);
	assert_int_equal(r.steps, 1);
	assert_int_equal(r.delay_ns, 2486);
	assert_int_equal(r.utc_offset_s, 37);
	assert_int_equal(r.time_flags, 0);
	assert_int_equal(r.ports, 1);
	assert_memory_equal(r.clock, me, 8);
	assert_int_equal(r.state, BL_PTP_UNCALIBRATED);
	assert_int_equal(r.stamping, 0);
	assert_string_equal(r.interface, "vb");
}

/* A datagram that ends early is broken, whatever its head says, and no byte beyond it is read. */
static void bl_ptp_take__cut(void **state)
{
	unsigned int q;
	uint32_t n, cut, said;

	(void)state;
	for (q = 0; q < BL_PTP_QUESTIONS; q++) {
		n = from_hex(recorded[q]);
		for (cut = 0; cut < n; cut++) {
			struct bl_ptp_round r = round_of(0);
			uint8_t *p = malloc(cut + !cut);

			memcpy(p, bytes, cut);
			assert_int_equal(bl_ptp_take(&r, &asker, p, cut),
					 cut < sizeof(struct bl_ptp_msg) ? BL_PTP_FOREIGN
									 : BL_PTP_BROKEN);
			assert_int_equal(r.got, 0);
			/* The head agrees, and the TLV is longer than the message. */
			for (said = 48; cut >= 48 && said <= cut;
			     said += cut - said ? cut - said : 1) {
				r = round_of(0);
				bl_ptp_put16(p + 2, (uint16_t)said);
				assert_int_equal(bl_ptp_take(&r, &asker, p, cut), BL_PTP_BROKEN);
			}
			free(p);
		}
	}
}

/* One changed byte of the answer about the port, and what becomes of it. */
static void bl_ptp_take__lies(void **state)
{
	static const struct {
		unsigned int at;
		uint8_t to;
		enum bl_ptp_taken is;
	} t[] = {
		{ 0, 0x0d, BL_PTP_TAKEN },    /* unchanged */
		{ 0, 0x1d, BL_PTP_TAKEN },    /* transportSpecific of the answer */
		{ 0, 0x0c, BL_PTP_FOREIGN },  /* signaling */
		{ 1, 0x12, BL_PTP_TAKEN },    /* PTP 2.1 */
		{ 1, 0x01, BL_PTP_FOREIGN },  /* PTP 1 */
		{ 3, 0x47, BL_PTP_BROKEN },   /* longer than the datagram */
		{ 3, 0x35, BL_PTP_BROKEN },   /* shorter than its TLV's head */
		{ 4, 1, BL_PTP_FOREIGN },     /* another domain */
		{ 31, 5, BL_PTP_FOREIGN },    /* sequence: a question that was not asked */
		{ 31, 3, BL_PTP_BROKEN },     /* that of another question */
		{ 34, 0, BL_PTP_FOREIGN },    /* for another client */
		{ 43, 0x35, BL_PTP_FOREIGN }, /* the same with the port number */
		{ 46, 0, BL_PTP_FOREIGN },    /* a GET */
		{ 46, 3, BL_PTP_FOREIGN },    /* a COMMAND */
		{ 49, 0, BL_PTP_BROKEN },     /* no TLV type of ours */
		{ 49, 2, BL_PTP_REFUSED },    /* an error status */
		{ 51, 1, BL_PTP_BROKEN },     /* a TLV without an id */
		{ 51, 14, BL_PTP_BROKEN },    /* without the length of the name */
		{ 51, 0x13, BL_PTP_BROKEN },  /* longer than the message */
		{ 53, 0x02, BL_PTP_BROKEN },  /* another id */
		{ 63, 2, BL_PTP_BROKEN },     /* another port than asked */
		{ 66, 4, BL_PTP_BROKEN },     /* a name beyond the TLV */
	};
	uint32_t n;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		struct bl_ptp_round r = round_of(0);

		n = from_hex(recorded[BL_PTP_Q_PORT]);
		bytes[t[k].at] = t[k].to;
		if (bl_ptp_take(&r, &asker, bytes, n) != t[k].is)
			fail_msg("byte %u set to %#x", t[k].at, t[k].to);
		assert_int_equal(r.got, t[k].is == BL_PTP_TAKEN ? 1u << BL_PTP_Q_PORT : 0);
		assert_int_equal(!!r.error, t[k].is > BL_PTP_FOREIGN);
	}
	/* DEFAULT_DATA_SET: no port, and the domain in the data */
	for (size_t k = 0; k < 2; k++) {
		struct bl_ptp_round r = round_of(0);

		n = from_hex(recorded[BL_PTP_Q_DEFAULT]);
		bytes[k ? 57 : 72] = k ? 0 : 1;
		assert_int_equal(bl_ptp_take(&r, &asker, bytes, n), BL_PTP_BROKEN);
	}
	/* An interface whose name cannot be one is as one without a name. */
	n = from_hex(recorded[BL_PTP_Q_PORT]);
	for (size_t len = 14; len < 18; len++) {
		struct bl_ptp_round r = round_of(0);

		bl_ptp_put16(bytes + 2, 200);
		bl_ptp_put16(bytes + 50, 200 - 52);
		bytes[66] = (uint8_t)len;
		memset(bytes + 67, 'x', 20);
		assert_int_equal(bl_ptp_take(&r, &asker, bytes, 200), BL_PTP_TAKEN);
		assert_int_equal(strlen(r.interface), len < 16 ? len : 0);
	}
}

/* Sequence numbers wrap, and answers to the round before are not taken. */
static void bl_ptp_take__sequence_wraps(void **state)
{
	static const struct {
		uint16_t first, sequence;
		int taken;
	} t[] = {
		{ 0xfffe, 2, 1 }, { 0xfffe, 1, 0 }, { 0xfffe, 0xfffe, 0 }, { 0xfffb, 2, 0 },
		{ 0xfffc, 0, 1 }, { 5, 9, 1 },      { 5, 4, 0 },           { 5, (uint16_t)-1, 0 }
	};
	uint32_t n = from_hex(recorded[BL_PTP_Q_PORT]);

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		struct bl_ptp_round r = round_of(t[k].first);

		bl_ptp_put16(bytes + 30, t[k].sequence);
		assert_int_equal(bl_ptp_take(&r, &asker, bytes, n) == BL_PTP_TAKEN, t[k].taken);
	}
}

/* What is asked is what pmc asks, byte for byte but for the sender and its hops. */
static void bl_ptp_ask__bytes(void **state)
{
	struct bl_ptp_asker a = asker;
	struct bl_ptp_round r = { .first = 0xffff, .port = 7 };
	uint8_t to[BL_PTP_ASK_BYTES];

	(void)state;
	a.domain = 5;
	a.transport = 1;
	bl_ptp_ask(to, &a, &r, BL_PTP_Q_PORT);
	assert_int_equal(from_hex("1d02003605000000000000000000000000000000508c11094e3a7e33123400"
				  "03047fffffffffffffffff00070000000000010002c004"),
			 BL_PTP_ASK_BYTES);
	assert_memory_equal(to, bytes, BL_PTP_ASK_BYTES);
	bl_ptp_ask(to, &a, &r, BL_PTP_Q_STATUS);
	assert_int_equal(from_hex("1d02003605000000000000000000000000000000508c11094e3a7e331234ff"
				  "ff047fffffffffffffffffffff0000000000010002c000"),
			 BL_PTP_ASK_BYTES);
	assert_memory_equal(to, bytes, BL_PTP_ASK_BYTES);
}

static void bl_ptp_next_port__walks(void **state)
{
	static const struct {
		uint16_t port, ports;
		uint8_t state, gm_present, known;
		uint16_t next;
	} t[] = {
		{ 1, 1, BL_PTP_SLAVE, 1, 1, 1 },   { 1, 1, BL_PTP_LISTENING, 1, 1, 1 },
		{ 1, 3, BL_PTP_SLAVE, 1, 1, 1 },   { 1, 3, BL_PTP_MASTER, 1, 1, 2 },
		{ 1, 3, BL_PTP_MASTER, 0, 1, 1 },  { 2, 3, BL_PTP_FAULTY, 0, 1, 3 },
		{ 3, 3, BL_PTP_PASSIVE, 1, 1, 1 }, { 3, 3, BL_PTP_SLAVE, 1, 1, 3 },
		{ 4, 3, BL_PTP_SLAVE, 1, 1, 1 },   { 2, 3, BL_PTP_SLAVE, 1, 0, 1 },
		{ 0, 3, BL_PTP_SLAVE, 1, 1, 1 },   { 65535, 65535, BL_PTP_DISABLED, 1, 1, 1 },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		struct bl_ptp_round r = { .port = t[k].port,
					  .ports = t[k].ports,
					  .state = t[k].state,
					  .gm_present = t[k].gm_present,
					  .got = t[k].known ? BL_PTP_ALL : 0 };

		assert_int_equal(bl_ptp_next_port(&r), t[k].next);
	}
}

static struct bl_ptp_round slave(int64_t offset, int64_t delay, int64_t ingress)
{
	return (struct bl_ptp_round){ .got = BL_PTP_ALL,
				      .port = 1,
				      .ports = 1,
				      .offset_ns = offset,
				      .delay_ns = delay,
				      .ingress_ns = ingress,
				      .gm_present = 1,
				      .gm = { 1 },
				      .clock = { 2 },
				      .steps = 1,
				      .state = BL_PTP_SLAVE };
}

static void bl_ptp_judge__states(void **state)
{
	static const struct {
		uint8_t is, gm_present, own, may;
		enum bl_clock_reason why;
	} t[] = {
		{ BL_PTP_SLAVE, 1, 0, 0, BL_CLOCK_ASKING },
		{ BL_PTP_UNCALIBRATED, 1, 0, 0, BL_CLOCK_PTP_PORT },
		{ BL_PTP_LISTENING, 0, 1, 1, BL_CLOCK_PTP_PORT },
		{ BL_PTP_FAULTY, 1, 0, 1, BL_CLOCK_PTP_PORT },
		{ BL_PTP_PASSIVE, 1, 0, 0, BL_CLOCK_PTP_PORT },
		{ BL_PTP_MASTER, 1, 0, 1, BL_CLOCK_PTP_PORT },
		{ BL_PTP_MASTER, 0, 0, 1, BL_CLOCK_PTP_PORT },
		{ BL_PTP_MASTER, 0, 1, 0, BL_CLOCK_PTP_MASTER },
		{ BL_PTP_MASTER, 0, 1, 1, BL_CLOCK_NO_REASON },
		{ BL_PTP_SLAVE, 0, 1, 1, BL_CLOCK_PTP_PORT },
		{ 0, 1, 0, 1, BL_CLOCK_PTP_PORT },
		{ 10, 1, 0, 1, BL_CLOCK_PTP_PORT },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		struct bl_ptp_round r = slave(5, 7, 1);
		struct bl_ptp_view v = {};
		struct bl_clock_sample s = { .synced = 9, .fresh = 9, .late = 9, .bound_ns = 9 };

		r.state = t[k].is;
		r.gm_present = t[k].gm_present;
		r.clock[0] = t[k].own ? 1 : 2;
		assert_int_equal(bl_ptp_judge(&v, &r, SEC, 1, t[k].may, &s), t[k].why);
		assert_int_equal(s.synced, !t[k].why);
		assert_int_equal(s.fresh, !t[k].why);
		assert_int_equal(s.late, 0);
		assert_int_equal(s.bound_ns, 0);
	}
}

/* Which Syncs count: one that came between two rounds that were both in time. */
static void bl_ptp_judge__syncs(void **state)
{
	static const struct {
		int64_t offset, ingress;
		int in_time, missed, fresh;
		uint64_t bound; /* 0: not synchronised yet */
	} t[] = {
		{ 900, 1, 1, 0, 0, 0 },    /* measured before anybody looked */
		{ 900, 1, 1, 0, 0, 0 },    /* the same one */
		{ 100, 2, 1, 0, 1, 107 },  /* a Sync */
		{ 200, 2, 1, 0, 0, 107 },  /* none: not even if the offset changes */
		{ -300, 3, 1, 0, 1, 307 }, /* one below zero */
		{ 50, 4, 1, 0, 1, 307 },   /* the largest counts */
		{ 900, 5, 0, 0, 0, 307 },  /* late: it may have been asked long ago */
		{ 900, 6, 1, 0, 0, 307 },  /* after a late one */
		{ 400, 7, 1, 0, 1, 407 },  /* again */
		{ 900, 8, 1, 1, 0, 407 },  /* after a round without an answer */
		{ 500, 7, 1, 0, 1, 507 },  /* the clock was set back: a Sync is a Sync */
	};
	struct bl_ptp_view v = {};
	uint64_t mono = SEC;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		struct bl_ptp_round r = slave(t[k].offset, -7, t[k].ingress);
		struct bl_clock_sample s;

		if (t[k].missed)
			bl_ptp_missed(&v);
		assert_int_equal(bl_ptp_judge(&v, &r, mono += TICK, t[k].in_time, 0, &s),
				 t[k].bound ? BL_CLOCK_NO_REASON : BL_CLOCK_ASKING);
		assert_int_equal(s.fresh, t[k].fresh);
		assert_int_equal(s.late, s.synced);
		assert_int_equal(s.bound_ns, t[k].bound);
	}
}

/* The window forgets, another master begins anew, and without a Sync nothing is measured. */
static void bl_ptp_judge__forgets(void **state)
{
	struct bl_ptp_view v = {};
	struct bl_clock_sample s;
	struct bl_ptp_round r;
	uint64_t mono = SEC;
	int k;

	(void)state;
	for (k = 0; k < 2; k++) {
		r = slave(1000000, 1, k);
		bl_ptp_judge(&v, &r, mono += TICK, 1, 0, &s);
	}
	assert_int_equal(s.bound_ns, 1000001);
	for (k = 2; k < 2 + BL_PTP_WINDOW; k++) {
		assert_int_equal(s.bound_ns, 1000001);
		r = slave(10, 1, k);
		bl_ptp_judge(&v, &r, mono += TICK, 1, 0, &s);
	}
	assert_int_equal(s.bound_ns, 11);
	/* The number of Syncs does not wrap to none. */
	v.syncs = ~0u;
	r = slave(10, 1, ++k);
	assert_int_equal(bl_ptp_judge(&v, &r, mono += TICK, 1, 0, &s), BL_CLOCK_NO_REASON);
	assert_int_equal(s.bound_ns, 11);
	assert_int_equal(v.syncs, BL_PTP_WINDOW);
	/* Silence of the master: the last moment, and the one after. */
	r = slave(10, 1, k);
	assert_int_equal(bl_ptp_judge(&v, &r, mono + BL_PTP_SYNC_LOST_NS, 1, 0, &s),
			 BL_CLOCK_NO_REASON);
	assert_int_equal(s.synced, 1);
	assert_int_equal(bl_ptp_judge(&v, &r, mono + BL_PTP_SYNC_LOST_NS + 1, 1, 0, &s),
			 BL_CLOCK_PTP_NO_SYNC);
	assert_int_equal(s.synced, 0);
	/* Another grandmaster: its first Syncs are awaited, also without end. */
	r.gm[0] = 3;
	assert_int_equal(bl_ptp_judge(&v, &r, mono, 1, 0, &s), BL_CLOCK_ASKING);
	assert_int_equal(bl_ptp_judge(&v, &r, mono + BL_PTP_SYNC_LOST_NS + 1, 1, 0, &s),
			 BL_CLOCK_PTP_NO_SYNC);
	/* A port that was lost for a moment begins anew, too. */
	r = slave(10, 1, ++k);
	bl_ptp_judge(&v, &r, mono, 1, 0, &s);
	r = slave(10, 1, ++k);
	assert_int_equal(bl_ptp_judge(&v, &r, mono, 1, 0, &s), BL_CLOCK_NO_REASON);
	r.state = BL_PTP_UNCALIBRATED;
	assert_int_equal(bl_ptp_judge(&v, &r, mono, 1, 0, &s), BL_CLOCK_PTP_PORT);
	r = slave(10, 1, ++k);
	assert_int_equal(bl_ptp_judge(&v, &r, mono, 1, 0, &s), BL_CLOCK_ASKING);
}

static void bl_ptp_bound__ends(void **state)
{
	static const struct {
		int64_t offset, delay;
		uint16_t steps;
		uint64_t bound;
	} t[] = {
		{ 0, 0, 0, 0 },
		{ 3, -4, 0, 7 },
		{ 3, 4, 1, 7 },
		{ -3, 4, 2, 14 },
		{ -1434, 2739, 2, 8346 },
		{ 1, 0, 65535, 65535 },
		{ INT64_MIN, 0, 1, BL_CLOCK_BOUND_MAX_NS },
		{ INT64_MAX, INT64_MIN, 65535, BL_CLOCK_BOUND_MAX_NS },
		{ 0, INT64_MAX, 1, BL_CLOCK_BOUND_MAX_NS },
		{ (int64_t)BL_CLOCK_BOUND_MAX_NS - 2, 1, 1, BL_CLOCK_BOUND_MAX_NS - 1 },
		{ (int64_t)BL_CLOCK_BOUND_MAX_NS - 1, 1, 1, BL_CLOCK_BOUND_MAX_NS },
		{ (int64_t)BL_CLOCK_BOUND_MAX_NS / 2, 0, 2, BL_CLOCK_BOUND_MAX_NS },
		{ (int64_t)BL_CLOCK_BOUND_MAX_NS / 2 - 1, 0, 2, BL_CLOCK_BOUND_MAX_NS - 2 },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		struct bl_ptp_view v = { .syncs = 1 };

		v.offset_ns[0] = bl_ptp_abs(t[k].offset);
		v.delay_ns[0] = bl_ptp_abs(t[k].delay);
		assert_true(bl_ptp_bound(&v, t[k].steps) == t[k].bound);
	}
}

static void bl_phc_error__and_tai(void **state)
{
	static const struct {
		int64_t ahead;
		uint64_t half;
		int16_t utc;
		uint8_t flags;
		uint64_t error;
		int tai_differs; /* from 0 */
	} t[] = {
		{ 37 * (int64_t)SEC, 5, 37, BL_PTP_TIMESCALE, 5, 0 },
		{ 37 * (int64_t)SEC - 3, 5, 37, BL_PTP_TIMESCALE | BL_PTP_UTC_VALID, 8, 1 },
		{ 37 * (int64_t)SEC + 3, 5, 37, BL_PTP_TIMESCALE | BL_PTP_UTC_VALID, 8, 1 },
		{ 0, 5, 37, BL_PTP_TIMESCALE, 37 * SEC + 5, 0 },
		{ 0, 5, 37, BL_PTP_UTC_VALID, 5, 0 },
		{ 0, 5, 0, BL_PTP_TIMESCALE | BL_PTP_UTC_VALID, 5, 0 },
		{ -4, 0, 0, 0, 4, 0 },
		{ INT64_MIN, UINT64_MAX, -32768, BL_PTP_TIMESCALE, BL_CLOCK_BOUND_MAX_NS, 0 },
		{ INT64_MAX, 0, -32768, BL_PTP_TIMESCALE, BL_CLOCK_BOUND_MAX_NS, 0 },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		struct bl_ptp_round r = { .utc_offset_s = t[k].utc, .time_flags = t[k].flags };
		struct bl_phc_reading p = { t[k].ahead, t[k].half };

		assert_true(bl_phc_error(&p, bl_ptp_ahead_s(&r)) == t[k].error);
		assert_int_equal(bl_ptp_tai_differs(&r, 0), t[k].tai_differs);
		assert_int_equal(bl_ptp_tai_differs(&r, t[k].utc), 0);
	}
}

/* 250 ms at 500 ppm: 125 us, and the errors of both readings, and 1 us. */
static void bl_phc_jump__edges(void **state)
{
	static const struct {
		uint64_t took;
		int64_t moved;
		uint64_t half, by;
	} t[] = {
		{ TICK, 0, 0, 0 },
		{ TICK, 126000, 0, 0 },
		{ TICK, 126001, 0, 126001 },
		{ TICK, -126000, 0, 0 },
		{ TICK, -126001, 0, 126001 },
		{ TICK, 126100, 100, 0 },
		{ TICK, 126101, 100, 126101 },
		{ 0, 1001, 0, 1001 },
		{ TICK, INT64_MAX, 0, INT64_MAX },
		{ TICK, INT64_MIN, 0, 1ULL << 63 },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		struct bl_phc_track p = {};

		assert_int_equal(bl_phc_jump(&p, SEC, 1, 0), 0);
		p.ahead_ns = 0;
		assert_true(bl_phc_jump(&p, SEC + t[k].took, t[k].moved, t[k].half) == t[k].by);
		/* where it has jumped to is where it is */
		assert_int_equal(bl_phc_jump(&p, SEC + t[k].took, t[k].moved, 0), 0);
	}
	assert_int_equal(bl_phc_jump(&(struct bl_phc_track){}, SEC, INT64_MAX, 0), 0);
}

static uint64_t seed;

static uint64_t random_below(uint64_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

/*
 * A clock that drifts against its master by up to 100 ppm, and is slewed and stepped by ptp4l.
 * Syncs come at any time. ptp4l measures the offset with an error of up to the path delay, since
 * the way there and the way back differ at will. It answers a question at once or not at all, or
 * late. The node takes its readings into account as loader/order/clock.c does. What it goes by is
 * within the bound at each reading.
 */
static void judge__random_clocks_are_within_the_bound(void **state)
{
	unsigned int run, i, words = 0, jumps = 0;

	(void)state;
	for (run = 0; run < 400; run++) {
		struct bl_clock_hold h = {};
		struct bl_ptp_view v = {};
		struct bl_ptp_round asked = {}, last = slave(0, 0, 0);
		int64_t truth = 0, clock, rate;
		uint64_t mono = SEC;
		int64_t ingress = 0;
		int late = 0, pending = 0;

		seed = run + 1;
		clock = (int64_t)random_below(2000000) - 1000000;
		rate = (int64_t)random_below(200001) - 100000;
		for (i = 0; i < 400; i++) {
			struct bl_clock_sample s = {};
			uint64_t part, took = 1 + random_below(SEC / 2);
			unsigned int steps = 3;

			/* The question is answered now, at the last reading's time, or not yet. */
			if (!pending) {
				pending = 1;
				late = !random_below(10);
				asked = last;
			}
			while (steps--) {
				part = took / 3;
				truth += (int64_t)part * rate / (int64_t)SEC;
				mono += part;
				if (!random_below(3)) { /* a Sync */
					int64_t delay = 1 + (int64_t)random_below(5000);
					int64_t wrong =
						(int64_t)random_below((uint64_t)(2 * delay + 1)) -
						delay;

					last = slave(clock - truth + wrong, delay, ++ingress);
					/* ptp4l believes it and sets the clock. */
					if (!random_below(6)) {
						clock = truth + wrong;
						jumps++;
					}
				}
				if (late && !random_below(2))
					asked = last; /* answered only now */
			}
			if (late && random_below(2)) {
				bl_ptp_missed(&v);
				bl_clock_hold_read(&h, &s, mono, clock, 0);
				continue;
			}
			bl_ptp_judge(&v, &asked, mono, !late, 0, &s);
			pending = 0;
			words += s.fresh;
			bl_clock_hold_read(&h, &s, mono, clock, 0);
			if (h.ever)
				assert_true((uint64_t)llabs(h.offset_ns - truth) <=
					    bl_clock_hold_bound(&h, mono, 100000) + 1000);
		}
	}
	assert_true(words > 10000 && jumps > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_ptp_take__what_ptp4l_says),
		cmocka_unit_test(bl_ptp_take__cut),
		cmocka_unit_test(bl_ptp_take__lies),
		cmocka_unit_test(bl_ptp_take__sequence_wraps),
		cmocka_unit_test(bl_ptp_ask__bytes),
		cmocka_unit_test(bl_ptp_next_port__walks),
		cmocka_unit_test(bl_ptp_judge__states),
		cmocka_unit_test(bl_ptp_judge__syncs),
		cmocka_unit_test(bl_ptp_judge__forgets),
		cmocka_unit_test(bl_ptp_bound__ends),
		cmocka_unit_test(bl_phc_error__and_tai),
		cmocka_unit_test(bl_phc_jump__edges),
		cmocka_unit_test(judge__random_clocks_are_within_the_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
