// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/siphash_core.h against the vectors that the authors of SipHash publish (vectors_sip64: key
 * 00..0f, messages 00..n-1), and the word that the function skips.
 */
#include "tests/unit/unit.h"

#include "core/siphash_core.h"

#define K0 0x0706050403020100ULL
#define K1 0x0f0e0d0c0b0a0908ULL

static void bl_siphash__published_vectors(void **state)
{
	static const struct {
		uint32_t len;
		uint64_t want;
	} t[] = {
		{ 0, 0x726fdb47dd0e0e31ULL },  { 1, 0x74f839c593dc67fdULL },
		{ 7, 0xab0200f58b01d137ULL },  { 8, 0x93f5f5799a932462ULL },
		{ 9, 0x9e0082df0ba9e4b0ULL },  { 15, 0xa129ca6149be45e5ULL },
		{ 16, 0x3f2acc7f57c29bdbULL }, { 63, 0x958a324ceb064572ULL },
	};
	uint8_t msg[64];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(msg); i++)
		msg[i] = (uint8_t)i;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		uint8_t *p = exact_copy(msg, t[i].len);

		assert_int_equal(bl_siphash(K0, K1, p, t[i].len, BL_SIP_NONE), t[i].want);
		exact_free(p);
	}
}

static void bl_siphash__skips_one_word(void **state)
{
	uint8_t a[40], b[40];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(a); i++)
		a[i] = b[i] = (uint8_t)(i * 7 + 1);
	memset(b + 24, 0, 8);
	assert_int_equal(bl_siphash(K0, K1, a, sizeof(a), 3),
			 bl_siphash(K0, K1, b, sizeof(b), BL_SIP_NONE));
	for (i = 0; i < sizeof(a); i++) {
		uint64_t before = bl_siphash(K0, K1, a, sizeof(a), 3);

		a[i] ^= 0x10;
		if (i >= 24 && i < 32)
			assert_int_equal(bl_siphash(K0, K1, a, sizeof(a), 3), before);
		else
			assert_int_not_equal(bl_siphash(K0, K1, a, sizeof(a), 3), before);
		a[i] ^= 0x10;
	}
	assert_int_not_equal(bl_siphash(K0, K1, a, sizeof(a), 3),
			     bl_siphash(K0 ^ 1, K1, a, sizeof(a), 3));
	assert_int_not_equal(bl_siphash(K0, K1, a, sizeof(a), 3),
			     bl_siphash(K0, K1 ^ 1, a, sizeof(a), 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_siphash__published_vectors),
		cmocka_unit_test(bl_siphash__skips_one_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
