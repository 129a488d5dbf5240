/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes what hosts and switches read before they hold or queue a frame
 * (core/queue/classify_core.h), the head of TOP's frames (core/top/top_token_core.h), and the ECN
 * mark that they may write (core/queue/queue_core.h), on arbitrary frames. The input is the frame.
 * bl_frame_class() is compared with a reader that takes byte by byte, and with bl_parse() where
 * that one accepts the frame.
 *
 * Queues and the programs around them are not covered; tests/prog/host/test_hold.c tests those.
 */
#include "fuzz.h"

#include "core/queue/classify_core.h"
#include "core/queue/queue_core.h"
#include "core/top/top_token_core.h"

#define NET_IP_ALIGN 2

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* A second implementation of bl_frame_class(), from the standards and by offsets. */
static struct bl_frame_class plain_look(const uint8_t *p, size_t n)
{
	struct bl_frame_class l = { .multi = p[0] & 1 };
	uint16_t type = be16(p + 12);
	size_t at = 14, l4 = 0;

	if (type == 0x8100 || type == 0x88a8) {
		if (n < 18)
			return l;
		type = be16(p + 16);
		at = 18;
	}
	if (type == 0x0806) {
		l.kind = BL_FRAME_ARP;
	} else if (type == 0x0800 && n >= at + 20 && p[at] >> 4 == 4 && (p[at] & 15) >= 5) {
		l.kind = BL_FRAME_IP4;
		l.l3_off = (uint32_t)at;
		l.dscp = p[at + 1] >> 2;
		l.proto = p[at + 9];
		/* neither options nor a fragment (more to come, or an offset) */
		l4 = (p[at] & 15) == 5 && !(be16(p + at + 6) & 0x3fff) ? at + 20 : 0;
	} else if (type == 0x86dd && n >= at + 40 && p[at] >> 4 == 6) {
		l.kind = BL_FRAME_IP6;
		l.l3_off = (uint32_t)at;
		l.dscp = be16(p + at) >> 6 & 0x3f;
		l.proto = p[at + 6];
		l4 = at + 40;
		if (l.proto == 58 && n > l4 && p[l4] >= 133 && p[l4] <= 137)
			l.kind = BL_FRAME_ND;
	}
	if (l4 && (l.proto == 6 || l.proto == 17) && n >= l4 + 4) {
		l.sport = be16(p + l4);
		l.dport = be16(p + l4 + 2);
	}
	return l;
}

static void check_class(const struct bl_frame_class *l)
{
	uint32_t cls = bl_hold_class(l);

	FUZZ_CHECK(cls < BL_HOLD_CLASSES);
	/* Frames of address resolution are never held back, and neither are broadcasts. */
	FUZZ_CHECK(!bl_class_is_control(l) || !bl_class_is_held(l));
	FUZZ_CHECK(!l->multi || !bl_class_is_held(l));
	FUZZ_CHECK(bl_class_is_held(l) || cls == 0);
	FUZZ_CHECK(!bl_class_is_held(l) || cls == (l->dscp < 40));
}

/* Checks that both parsers agree on a frame. */
static void check_parse(const uint8_t *p, size_t size, const struct bl_frame_class *l)
{
	struct bl_frame f;

	if (bl_parse(p, p + size, 1, 0xffff, &f) != BL_R_NONE)
		return;
	if (bl_op_link(f.opcode)) { /* a link frame */
		FUZZ_CHECK(l->kind == BL_FRAME_OTHER);
		return;
	}
	FUZZ_CHECK(l->kind == (f.v6 ? BL_FRAME_IP6 : BL_FRAME_IP4) && l->proto == BL_UDP);
	FUZZ_CHECK(l->l3_off == f.l3_off && l->sport == f.sport && l->dport == f.dport);
}

static uint32_t sum4(const uint8_t *ip)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < 20; i += 2)
		sum += be16(ip + i);
	return sum % 0xffff;
}

/*
 * Checks the mark: the two bits become 11 where they were 01 or 10, a checksum is as valid as it
 * was, and no other bit changes.
 */
static void check_mark(uint8_t *p, const struct bl_frame_class *l)
{
	uint8_t was[40], *ip = p + l->l3_off;
	int v6 = l->kind != BL_FRAME_IP4, marked;
	size_t n = v6 ? 40 : 20;
	uint8_t ecn = v6 ? ip[1] >> 4 & 3 : ip[1] & 3;

	memcpy(was, ip, n);
	marked = v6 ? bl_ecn_ce6((void *)ip) : bl_ecn_ce4((void *)ip);
	FUZZ_CHECK(marked == (ecn == 1 || ecn == 2));
	if (marked) {
		FUZZ_CHECK((v6 ? ip[1] >> 4 & 3 : ip[1] & 3) == 3);
		FUZZ_CHECK(!(v6 ? bl_ecn_ce6((void *)ip) : bl_ecn_ce4((void *)ip)));
		if (!v6) {
			FUZZ_CHECK(sum4(was) == sum4(ip));
			memcpy(ip + 10, was + 10, 2);
		}
		ip[1] = was[1];
	}
	FUZZ_CHECK(!memcmp(was, ip, n));
}

/* Checks the parser of TOP's frames at a switch against a second one that works by offsets. */
static void check_token(const uint8_t *p, size_t size, const struct bl_frame_class *l)
{
	size_t l4 = l->l3_off + (l->kind == BL_FRAME_IP4 ? 20u : 40u);
	int got, want;

	if (!bl_class_is_top(l))
		return;
	FUZZ_CHECK(l->proto == 17 && be16(p + l4 + 2) == 61692);
	got = bl_token_parse((const void *)(p + l4), p + size, (uint32_t)(size - l4));
	if (size < l4 + 26)
		want = -BL_R_SHORT;
	else if (be16(p + l4 + 4) < 26 || be16(p + l4 + 4) > size - l4)
		want = -BL_R_BAD_LENGTH;
	else if (p[l4 + 8] >> 4 != 1)
		want = -BL_R_BAD_VERSION;
	else if ((p[l4 + 8] & 15) < 1 || (p[l4 + 8] & 15) > 5)
		want = -BL_R_BAD_OPCODE;
	else if ((p[l4 + 8] & 15) > 1)
		want = 6;
	else
		want = p[l4 + 9] < 6 ? p[l4 + 9] : -BL_R_TOKEN_CLASS;
	FUZZ_CHECK(got == want);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *p = fuzz_copy(data, size, NET_IP_ALIGN);
	struct bl_frame_class l, want;

	memset(&l, 0xff, sizeof(l));
	if (bl_frame_class(p, p + size, &l)) {
		FUZZ_CHECK(size < 14);
	} else {
		FUZZ_CHECK(size >= 14);
		want = plain_look(data, size);
		FUZZ_CHECK(l.kind == want.kind && l.multi == want.multi && l.dscp == want.dscp &&
			   l.proto == want.proto);
		FUZZ_CHECK(l.l3_off == want.l3_off && l.sport == want.sport &&
			   l.dport == want.dport);
		FUZZ_CHECK(!memcmp(p, data, size));
		check_class(&l);
		check_parse(p, size, &l);
		check_token(p, size, &l);
		if (l.kind == BL_FRAME_IP4 || l.kind == BL_FRAME_IP6 || l.kind == BL_FRAME_ND)
			check_mark(p, &l);
	}
	fuzz_free(p, NET_IP_ALIGN);
	return 0;
}
