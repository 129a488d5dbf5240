// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * When frames go by way of the controller (lib/forward_core.h), and which frames may
 * (loader/order/forward.h).
 */
#include "tests/unit/unit.h"

#include <string.h>

#include "lib/forward_core.h"
#include "proto/forward_msg.h"

#define MS 1000000ULL

static void bl_fwd_due__edges(void **state)
{
	static const struct {
		__u64 until, first, last, now;
		__u32 tries;
		int due;
		__u64 then;
	} t[] = {
		/* Often and for long: both. */
		{ 0, 1000 * MS, 0, 1300 * MS, 5, 1, 6300 * MS },
		{ 0, 1000 * MS, 0, 1300 * MS - 1, 5, 0, 0 },
		{ 0, 1000 * MS, 0, 1300 * MS, 4, 0, 0 },
		{ 0, 1000 * MS, 0, 9000 * MS, 4, 0, 0 },
		{ 0, 1000 * MS, 0, 1299 * MS, 1000, 0, 0 },
		/*
		 * The destination is known to be hard to reach: a frame that is sent again is
		 * forwarded at once.
		 */
		{ 1301 * MS, 1290 * MS, 0, 1300 * MS, 2, 1, 1301 * MS },
		{ 1301 * MS, 1300 * MS, 0, 1300 * MS, 1, 0, 1301 * MS },
		{ 1300 * MS, 1290 * MS, 0, 1300 * MS, 2, 0, 1300 * MS },
		/* Not the same frame so soon, but the destination stays known. */
		{ 0, 1000 * MS, 1300 * MS, 1400 * MS - 1, 6, 0, 6400 * MS - 1 },
		{ 0, 1000 * MS, 1300 * MS, 1400 * MS, 6, 1, 6400 * MS },
		{ 2000 * MS, 1250 * MS, 1260 * MS, 1300 * MS, 3, 0, 2000 * MS },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		__u64 until = t[i].until;
		int due = bl_fwd_due(&until, t[i].first, t[i].tries, t[i].last, t[i].now);

		if (due != t[i].due || until != t[i].then)
			fail_msg("row %zu: due %d, until %llu", i, due, (unsigned long long)until);
	}
}

static void bl_fwd_take__so_many_in_a_turn(void **state)
{
	struct bl_fwd_turn t = { 0 };
	__u32 k;

	(void)state;
	for (k = 0; k < BL_FORWARD_TURN; k++)
		assert_true(bl_fwd_take(&t, 1000 * MS + k * MS));
	assert_false(bl_fwd_take(&t, 1000 * MS + k * MS));
	assert_false(bl_fwd_take(&t, 1100 * MS - 1));
	assert_true(bl_fwd_take(&t, 1100 * MS));
	assert_int_equal(t.n, 1);
}

static void bl_forward_read__edges(void **state)
{
	static uint8_t frame[BL_FORWARD_MAX + 1], addr[17] = { 1 };
	static const struct {
		size_t to, from, len;
		uint32_t port, sport;
		uint8_t byte;
		bool ok;
	} t[] = {
#define OP(x) BL_OPCODE_BYTE(BL_OP_##x)
		{ 16, 16, 24, 1, 1, OP(PREP), true },
		{ 16, 16, BL_FORWARD_MAX, 65535, 65535, OP(RECALLED), true },
		{ 16, 16, 24, 1, 1, OP(ACK), true },
		{ 16, 16, 23, 1, 1, OP(PREP), false },
		{ 16, 16, 0, 1, 1, OP(PREP), false },
		{ 16, 16, BL_FORWARD_MAX + 1, 1, 1, OP(PREP), false },
		{ 15, 16, 24, 1, 1, OP(PREP), false },
		{ 17, 16, 24, 1, 1, OP(PREP), false },
		{ 16, 0, 24, 1, 1, OP(PREP), false },
		{ 16, 17, 24, 1, 1, OP(PREP), false },
		{ 16, 16, 24, 0, 1, OP(PREP), false },
		{ 16, 16, 24, 1, 0, OP(PREP), false },
		{ 16, 16, 24, 65536 + 1, 1, OP(PREP), false },
		{ 16, 16, 24, 1, 65536 + 1, OP(PREP), false },
		{ 16, 16, 24, 1, 1, OP(PREP) ^ 0x20, false }, /* another version */
		{ 16, 16, 24, 1, 1, OP(DATA), false },
		{ 16, 16, 24, 1, 1, OP(BEACON), false },
		{ 16, 16, 24, 1, 1, OP(PREP) - 1, false },
		{ 16, 16, 24, 1, 1, OP(RECALLED) + 1, false },
		{ 16, 16, 24, 1, 1, 0, false },
#undef OP
	};
	struct bl_forward f;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		Bl__Forward m = BL__FORWARD__INIT;

		m.to = (ProtobufCBinaryData){ t[i].to, addr };
		m.from = (ProtobufCBinaryData){ t[i].from, addr };
		m.frame = (ProtobufCBinaryData){ t[i].len, frame };
		m.port = t[i].port;
		m.sport = t[i].sport;
		frame[offsetof(struct bl_hdr, opcode)] = t[i].byte;
		if (bl_forward_read(&m, &f) != t[i].ok)
			fail_msg("row %zu", i);
		if (t[i].ok)
			assert_true(f.len == t[i].len && f.frame == frame && f.port == t[i].port &&
				    f.sport == t[i].sport && f.to[0] == 1 && f.from[0] == 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_fwd_due__edges),
		cmocka_unit_test(bl_fwd_take__so_many_in_a_turn),
		cmocka_unit_test(bl_forward_read__edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
