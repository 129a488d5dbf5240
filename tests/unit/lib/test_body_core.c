// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lib/body_core.h: bodies of DATA, FRAG, CREDIT and NAK frames, cut and falsified at every byte. A
 * body ends where its allocation ends.
 */
#include "tests/unit/unit.h"

#include "lib/body_core.h"

/* Build a body of @count items. @spec: lengths; -1: a reference. */
static uint32_t build(uint8_t *b, uint32_t count, const int *spec, uint32_t n)
{
	uint32_t len = sizeof(struct bl_data), i, k;

	bl_store16(b, 0x1234);
	bl_store16(b + 2, count);
	for (i = 0; i < n; i++) {
		if (spec[i] < 0) {
			bl_store16(b + len, BL_ITEM_REF);
			bl_store32(b + len + 2, 70 + i);
			bl_store32(b + len + 6, 100000 + i);
			len += 10;
			continue;
		}
		bl_store16(b + len, (uint32_t)spec[i]);
		len += 2;
		for (k = 0; k < (uint32_t)spec[i]; k++)
			b[len++] = (uint8_t)(i + k);
	}
	return len;
}

static int open_exact(const uint8_t *b, uint32_t len)
{
	uint8_t *p = exact_copy(b, len);
	struct bl_items it;
	struct bl_item item;
	int n = bl_items_open(&it, p, len), seen = 0;

	/* A checked body can be walked to its end, byte by byte. */
	if (n > 0) {
		volatile uint8_t sum = 0;
		uint32_t k;

		while (bl_items_next(&it, &item)) {
			seen++;
			for (k = 0; item.data && k < item.len; k++)
				sum = (uint8_t)(sum + item.data[k]);
		}
		assert_int_equal(seen, n);
		assert_int_equal(bl_items_next(&it, &item), 0);
	}
	exact_free(p);
	return n;
}

static void bl_items__walk(void **state)
{
	static const int spec[] = { 5, 0, -1, 300, -1 };
	struct bl_items it;
	struct bl_item item;
	uint8_t b[512];
	uint32_t len = build(b, 5, spec, 5);

	(void)state;
	assert_int_equal(bl_items_open(&it, b, len), 5);
	assert_int_equal(bl_items_next(&it, &item), 1);
	assert_int_equal(item.len, 5);
	assert_memory_equal(item.data, "\0\1\2\3\4", 5);
	assert_int_equal(bl_items_next(&it, &item), 1);
	assert_non_null(item.data); /* an empty message is a message */
	assert_int_equal(item.len, 0);
	assert_int_equal(bl_items_next(&it, &item), 1);
	assert_null(item.data);
	assert_int_equal(item.msg_id, 72);
	assert_int_equal(item.len, 100002);
	assert_int_equal(bl_items_next(&it, &item), 1);
	assert_int_equal(item.len, 300);
	assert_int_equal(item.data[299], (uint8_t)(3 + 299));
	assert_int_equal(bl_items_next(&it, &item), 1);
	assert_int_equal(item.msg_id, 74);
	assert_int_equal(bl_items_next(&it, &item), 0);
}

static void bl_items_open__cut_and_padded(void **state)
{
	static const int spec[] = { 5, 0, -1, 7 };
	uint8_t b[128] = { 0 };
	uint32_t len = build(b, 4, spec, 4), n;

	(void)state;
	for (n = 0; n < len; n++)
		assert_int_equal(open_exact(b, n), -1);
	for (n = len; n < len + 40; n++)
		assert_int_equal(open_exact(b, n), 4);
}

static void bl_items_open__counts(void **state)
{
	static const int spec[BL_ITEMS_MAX + 1];
	uint8_t b[256];

	(void)state;
	assert_int_equal(open_exact(b, build(b, 0, spec, 0)), -1);
	assert_int_equal(open_exact(b, build(b, 0, spec, 3)), -1);
	assert_int_equal(open_exact(b, build(b, 1, spec, 1)), 1);
	assert_int_equal(open_exact(b, build(b, 2, spec, 1)), -1);
	assert_int_equal(open_exact(b, build(b, 1, spec, 2)), 1); /* the rest is padding */
	assert_int_equal(open_exact(b, build(b, BL_ITEMS_MAX, spec, BL_ITEMS_MAX)), BL_ITEMS_MAX);
	assert_int_equal(open_exact(b, build(b, BL_ITEMS_MAX + 1, spec, BL_ITEMS_MAX + 1)), -1);
	assert_int_equal(open_exact(b, build(b, 0xffff, spec, BL_ITEMS_MAX + 1)), -1);
}

static void bl_items_open__references(void **state)
{
	static const struct {
		uint32_t length;
		int want;
	} t[] = { { 0, -1 },
		  { 1, 1 },
		  { BL_MSG_MAX - 1, 1 },
		  { BL_MSG_MAX, 1 },
		  { BL_MSG_MAX + 1, -1 },
		  { 0xffffffff, -1 } };
	static const int ref = -1;
	uint8_t b[64];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		uint32_t len = build(b, 1, &ref, 1);

		bl_store32(b + 10, t[i].length);
		assert_int_equal(open_exact(b, len), t[i].want);
	}
	/* The greatest length that is not a reference: the body does not have 0xFFFE bytes. */
	build(b, 1, &ref, 1);
	bl_store16(b + 4, BL_ITEM_REF - 1);
	assert_int_equal(open_exact(b, 64), -1);
}

static void bl_items_open__random_bytes(void **state)
{
	struct rnd r = rnd_seeded("bodies");
	int i;

	(void)state;
	for (i = 0; i < 50000; i++) {
		uint8_t b[96];
		uint32_t len = rnd_below(&r, sizeof(b) + 1), k;

		for (k = 0; k < len; k++)
			b[k] = rnd_below(&r, 3) ? (uint8_t)rnd_below(&r, 4) : (uint8_t)rnd64(&r);
		if (len > 3)
			b[2] = 0;
		open_exact(b, len);
	}
}

static void bl_frag_open__edges(void **state)
{
	const uint32_t head = 4 + 12;
	const struct {
		uint32_t len, offset, total;
		int want;
	} t[] = {
		{ 0, 0, 100, -1 },
		{ head - 1, 0, 100, -1 },
		{ head, 0, 100, -1 }, /* empty */
		{ head + 1, 0, 100, 0 },
		{ head + 100, 0, 100, 0 },
		{ head + 101, 0, 100, -1 },
		{ head + 1, 99, 100, 0 },
		{ head + 2, 99, 100, -1 },
		{ head + 1, 100, 100, -1 },
		{ head + 1, 101, 100, -1 },
		{ head + 1, 0xffffffff, 100, -1 },
		{ head + 1, 0, 0, -1 },
		{ head + 1, 0, BL_MSG_MAX, 0 },
		{ head + 1, BL_MSG_MAX - 1, BL_MSG_MAX, 0 },
		{ head + 1, 0, BL_MSG_MAX + 1, -1 },
		{ head + 1, 0, 0xffffffff, -1 },
		{ head + 1, 0xfffffffe, 0xffffffff, -1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		uint8_t b[256] = { 0 }, *p;
		struct bl_frag_view v;

		bl_store32(b + 4, 0xcafe0001);
		bl_store32(b + 8, t[i].offset);
		bl_store32(b + 12, t[i].total);
		p = exact_copy(b, t[i].len);
		assert_int_equal(bl_frag_open(&v, p, t[i].len), t[i].want);
		if (!t[i].want) {
			assert_int_equal(v.msg_id, 0xcafe0001);
			assert_int_equal(v.offset, t[i].offset);
			assert_int_equal(v.total, t[i].total);
			assert_int_equal(v.len, t[i].len - head);
			assert_ptr_equal(v.data, p + head);
		}
		exact_free(p);
	}
}

static void bl_credit_open__edges(void **state)
{
	static const uint8_t b[9] = { 0xff, 0xee, 0xdd, 0xcc, 0x12, 0x34, 0x01, 0x00, 0x55 };
	struct bl_credit_view v;
	uint8_t shut[8];
	uint32_t n;

	(void)state;
	for (n = 0; n <= 9; n++) {
		uint8_t *p = exact_copy(b, n);

		assert_int_equal(bl_credit_open(&v, p, n), n < 8 ? -1 : 0);
		exact_free(p);
	}
	assert_int_equal(v.psn, 0xffeeddcc);
	assert_int_equal(v.incarnation, 0x1234);
	assert_int_equal(v.window, 256);
	/* A window of 0 would close the sender's window for good. */
	memcpy(shut, b, 8);
	bl_store16(shut + 6, 0);
	assert_int_equal(bl_credit_open(&v, shut, 8), -1);
}

static void bl_nak_open__edges(void **state)
{
	static const uint8_t b[13] = { 0, 0, 0, 7, 0, 0, 0, 2, 0xab, 0xcd, 3, 0xff, 0x55 };
	struct bl_nak_view v;
	uint8_t bad[12];
	uint32_t n;

	(void)state;
	for (n = 0; n <= 13; n++) {
		uint8_t *p = exact_copy(b, n);

		assert_int_equal(bl_nak_open(&v, p, n), n < 12 ? -1 : 0);
		exact_free(p);
	}
	assert_int_equal(v.psn, 7);
	assert_int_equal(v.count, 2);
	assert_int_equal(v.incarnation, 0xabcd);
	assert_int_equal(v.why, 3);
	assert_int_equal(v.item, BL_NAK_WHOLE);
	memcpy(bad, b, 12);
	bl_store32(bad + 4, 0);
	assert_int_equal(bl_nak_open(&v, bad, 12), -1);
	memcpy(bad, b, 12);
	bad[10] = 0;
	assert_int_equal(bl_nak_open(&v, bad, 12), -1);
}

static void bl_load__bytes(void **state)
{
	static const uint32_t v[] = { 0, 1, 0x80, 0xff00, 0x12345678, 0x80000000, 0xffffffff };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		uint8_t b[6] = { 0xaa, 0, 0, 0, 0, 0xaa };

		bl_store32(b + 1, v[i]);
		assert_int_equal(bl_load32(b + 1), v[i]);
		assert_int_equal(b[1], v[i] >> 24);
		bl_store16(b + 1, v[i]);
		assert_int_equal(bl_load16(b + 1), v[i] & 0xffff);
		assert_int_equal(b[0], 0xaa);
		assert_int_equal(b[5], 0xaa);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_items__walk),
		cmocka_unit_test(bl_items_open__cut_and_padded),
		cmocka_unit_test(bl_items_open__counts),
		cmocka_unit_test(bl_items_open__references),
		cmocka_unit_test(bl_items_open__random_bytes),
		cmocka_unit_test(bl_frag_open__edges),
		cmocka_unit_test(bl_credit_open__edges),
		cmocka_unit_test(bl_nak_open__edges),
		cmocka_unit_test(bl_load__bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
