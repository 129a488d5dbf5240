/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes the bodies that a receiver reads (lib/body_core.h). The input is the opcode and then the
 * body.
 *
 * Besides reads beyond the end (ASan, on a copy of exact size) it checks what callers rely on:
 * every byte handed out lies in the body, padding changes nothing, and a body that is one byte
 * short is refused.
 */
#include "fuzz.h"

#include "lib/body_core.h"

/* Opens @p as DATA and reads all of it. Returns the used bytes, or 0 if it is refused. */
static size_t walk(const uint8_t *p, size_t size)
{
	struct bl_item item, none;
	struct bl_items it;
	size_t used;
	int n, i;

	n = bl_items_open(&it, p, (uint32_t)size);
	FUZZ_CHECK(n == -1 || (n >= 1 && n <= BL_ITEMS_MAX));
	if (n < 0)
		return 0;
	used = sizeof(struct bl_data);
	for (i = 0; i < n; i++) {
		memset(&item, 0xff, sizeof(item));
		FUZZ_CHECK(bl_items_next(&it, &item) == 1);
		used += 2;
		if (item.data) {
			FUZZ_CHECK(item.data == p + used && item.len < BL_ITEM_REF &&
				   item.msg_id == 0);
			used += item.len;
		} else {
			FUZZ_CHECK(item.len >= 1 && item.len <= BL_MSG_MAX);
			used += sizeof(struct bl_ref);
		}
		FUZZ_CHECK(used <= size);
	}
	FUZZ_CHECK(bl_items_next(&it, &none) == 0 && bl_items_next(&it, &none) == 0);
	return used;
}

static size_t walk_copy(const uint8_t *data, size_t size)
{
	uint8_t *p = fuzz_copy(data, size, 0);
	size_t used = walk(p, size);

	fuzz_free(p, 0);
	return used;
}

static void data_body(const uint8_t *p, size_t size)
{
	size_t used = walk(p, size);

	if (!used)
		return;
	FUZZ_CHECK(walk_copy(p, used) == used);
	FUZZ_CHECK(walk_copy(p, used - 1) == 0);
}

static void frag_body(const uint8_t *p, size_t size)
{
	const size_t head = sizeof(struct bl_data) + sizeof(struct bl_frag);
	struct bl_frag_view v;
	int ret;

	memset(&v, 0xff, sizeof(v));
	ret = bl_frag_open(&v, p, (uint32_t)size);
	FUZZ_CHECK(ret == 0 || ret == -1);
	if (ret)
		return;
	FUZZ_CHECK(size > head && v.data == p + head && v.len == size - head);
	FUZZ_CHECK(v.total >= 1 && v.total <= BL_MSG_MAX);
	FUZZ_CHECK((uint64_t)v.offset + v.len <= v.total);
}

static void credit_body(const uint8_t *p, size_t size)
{
	struct bl_credit_view v;

	memset(&v, 0, sizeof(v));
	if (bl_credit_open(&v, p, (uint32_t)size))
		return;
	FUZZ_CHECK(size >= sizeof(struct bl_credit) && v.window);
	FUZZ_CHECK(v.psn ==
		   ((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]));
}

static void nak_body(const uint8_t *p, size_t size)
{
	struct bl_nak_view v;

	memset(&v, 0, sizeof(v));
	if (bl_nak_open(&v, p, (uint32_t)size))
		return;
	FUZZ_CHECK(size >= sizeof(struct bl_nak) && v.count && v.why);
	FUZZ_CHECK(v.psn ==
		   ((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]));
	FUZZ_CHECK(v.why == p[offsetof(struct bl_nak, why)]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *p;

	if (!size)
		return 0;
	p = fuzz_copy(data + 1, size - 1, 0);
	switch (data[0]) {
	case BL_OP_DATA:
		data_body(p, size - 1);
		break;
	case BL_OP_FRAG:
		frag_body(p, size - 1);
		break;
	case BL_OP_CREDIT:
		credit_body(p, size - 1);
		break;
	case BL_OP_NAK:
		nak_body(p, size - 1);
		break;
	default:
		break;
	}
	fuzz_free(p, 0);
	return 0;
}
