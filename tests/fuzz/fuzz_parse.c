/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes bl_parse and the rewrites of hops (core/wire_core.h) on arbitrary frames. The input is the
 * frame.
 *
 * The programs around the parser are not covered; tests/prog tests those.
 */
#include "fuzz.h"

#include "core/wire_core.h"

#define NET_IP_ALIGN 2

static const enum bl_reason_kind kinds[] = {
#define KIND(sym, name, kind, text) [BL_R_##sym] = BL_KIND_##kind,
	BL_REASONS(KIND)
#undef KIND
};

/*
 * Parses twice into structs with different initial contents: a field that the parser does not set
 * shows as a difference.
 */
static enum bl_reason parse(const uint8_t *p, size_t size, uint16_t base, uint16_t count,
			    struct bl_frame *f)
{
	enum bl_reason r, again;
	struct bl_frame g;

	memset(f, 0, sizeof(*f));
	memset(&g, 0xff, sizeof(g));
	r = bl_parse(p, p + size, base, count, f);
	again = bl_parse(p, p + size, base, count, &g);
	FUZZ_CHECK(r == again);
	FUZZ_CHECK(r < BL_R_COUNT && kinds[r] != BL_KIND_NOTE);
	if (r != BL_R_NONE) {
		/* A refused frame is dropped; only foreign frames are passed on. */
		FUZZ_CHECK(r == BL_R_NOT_OURS || kinds[r] == BL_KIND_DROP);
		return r;
	}
	FUZZ_CHECK(f->l3_off == g.l3_off && f->hdr_off == g.hdr_off && f->body_len == g.body_len);
	FUZZ_CHECK(f->v6 == g.v6 && f->vlan == g.vlan && f->opcode == g.opcode &&
		   f->flags == g.flags);
	FUZZ_CHECK(f->lane == g.lane && f->lanes == g.lanes && f->sport == g.sport &&
		   f->dport == g.dport);
	FUZZ_CHECK(f->psn == g.psn && f->ts == g.ts && f->b == g.b && f->c == g.c);
	return r;
}

static void check_accepted(const uint8_t *p, size_t size, uint16_t base, uint16_t count,
			   const struct bl_frame *f)
{
	const struct bl_hdr *h = (const void *)(p + f->hdr_off);

	FUZZ_CHECK((uint64_t)f->hdr_off + sizeof(*h) + f->body_len <= size);
	FUZZ_CHECK(f->opcode > 0 && f->opcode < BL_OP_LIMIT);
	FUZZ_CHECK(h->opcode == BL_OPCODE_BYTE(f->opcode) && h->flags == f->flags);
	FUZZ_CHECK(f->lanes >= 1 && f->lanes <= BL_LANES_MAX && f->lane < f->lanes);
	FUZZ_CHECK(f->ts <= BL_TS_MASK && f->b <= BL_TS_MASK && f->c <= BL_TS_MASK);
	FUZZ_CHECK(f->vlan <= 1);
	if (bl_op_link(f->opcode)) {
		size_t body = f->opcode == BL_OP_BEACON
				      ? sizeof(struct bl_beacon) + sizeof(struct bl_relay)
				      : sizeof(struct bl_rsv_body);

		FUZZ_CHECK(f->l3_off == 0);
		FUZZ_CHECK(f->hdr_off == sizeof(struct ethhdr) + f->vlan * sizeof(struct bl_vlan));
		FUZZ_CHECK((uint64_t)f->hdr_off + sizeof(*h) + body <= size);
	} else {
		FUZZ_CHECK(f->l3_off == sizeof(struct ethhdr) + f->vlan * sizeof(struct bl_vlan));
		FUZZ_CHECK(f->hdr_off ==
			   f->l3_off + (f->v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr)) +
				   sizeof(struct udphdr));
		FUZZ_CHECK(bl_in_range(f->dport, base, count));
	}
}

/*
 * Checks padding: Ethernet pads short frames, and what follows the IP packet, or a beacon, must
 * change nothing.
 */
static void check_padding(const uint8_t *p, size_t size, uint16_t base, uint16_t count,
			  const struct bl_frame *f)
{
	uint8_t *q = malloc(NET_IP_ALIGN + size + 1);
	struct bl_frame g;

	if (!q)
		abort();
	memcpy(q + NET_IP_ALIGN, p, size);
	q[NET_IP_ALIGN + size] = 0xa5;
	FUZZ_CHECK(parse(q + NET_IP_ALIGN, size + 1, base, count, &g) == BL_R_NONE);
	FUZZ_CHECK(g.hdr_off == f->hdr_off && g.body_len == f->body_len && g.opcode == f->opcode &&
		   g.ts == f->ts && g.psn == f->psn);
	free(q);
}

static uint16_t fold(const uint8_t *p, size_t n)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i + 1 < n; i += 2)
		sum += (uint16_t)(p[i] | p[i + 1] << 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/*
 * Checks a switch's rewrite: it changes barriers and lane; the rest of the frame and the validity
 * of a checksum stay.
 */
static void check_rewrite(uint8_t *p, size_t size, uint16_t base, uint16_t count,
			  const struct bl_frame *f)
{
	struct bl_hdr *h = (void *)(p + f->hdr_off);
	uint64_t b = (f->ts * 0x9E3779B97F4A7C15ULL) & BL_TS_MASK;
	uint64_t c = (f->b * 0x9E3779B97F4A7C15ULL + 1) & BL_TS_MASK;
	uint32_t lanes = f->psn % BL_LANES_MAX + 1, lane = f->psn % lanes;
	uint16_t before, after, sum;
	struct bl_hdr was = *h;
	struct bl_frame g;

	/*
	 * ~checksum + sum of the data, modulo 0xffff, is what a receiver finds: it must stay the
	 * same.
	 */
	sum = (uint16_t)(f->ts ^ f->psn);
	before = (uint16_t)(((uint32_t)sum + fold((const uint8_t *)&was, sizeof(was))) % 0xffff);
	sum = bl_hdr_send_sum(h, b, c, (h->flags & BL_F_HOP) | BL_F_LANES(lanes) | lane, sum);
	after = (uint16_t)(((uint32_t)sum + fold((const uint8_t *)h, sizeof(*h))) % 0xffff);
	FUZZ_CHECK(before == after);
	FUZZ_CHECK(parse(p, size, base, count, &g) == BL_R_NONE);
	FUZZ_CHECK(g.b == b && g.c == c && g.lane == lane && g.lanes == lanes);
	FUZZ_CHECK(g.ts == f->ts && g.psn == f->psn && g.opcode == f->opcode &&
		   g.body_len == f->body_len);
	FUZZ_CHECK((g.flags & BL_F_HOP) == (f->flags & BL_F_HOP));
}

/*
 * Checks truncated heads: a tc program reads only the head of a large skb, but knows its length. No
 * header may lie beyond the head, and no body beyond the length.
 */
static void check_head(const uint8_t *p, size_t size, uint16_t base, uint16_t count, uint32_t more)
{
	struct bl_frame f;

	if (bl_parse_whole(p, p + size, (uint32_t)size + more, base, count, &f) != BL_R_NONE)
		return;
	FUZZ_CHECK((uint64_t)f.hdr_off + sizeof(struct bl_hdr) <= size);
	FUZZ_CHECK((uint64_t)f.hdr_off + sizeof(struct bl_hdr) + f.body_len <=
		   (uint64_t)size + more);
	FUZZ_CHECK(f.lane < f.lanes && f.opcode > 0 && f.opcode < BL_OP_LIMIT);
}

static void one(const uint8_t *data, size_t size, uint16_t base, uint16_t count)
{
	uint8_t *p = fuzz_copy(data, size, NET_IP_ALIGN);
	struct bl_frame f;

	if (parse(p, size, base, count, &f) == BL_R_NONE) {
		FUZZ_CHECK(size && !memcmp(p, data, size));
		check_accepted(p, size, base, count, &f);
		check_padding(p, size, base, count, &f);
		check_rewrite(p, size, base, count, &f);
	}
	check_head(p, size, base, count, 1);
	check_head(p, size, base, count, 65536);
	fuzz_free(p, NET_IP_ALIGN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	one(data, size, BL_PORT_BASE, BL_PORT_COUNT);
	/* Other ranges that an operator can configure: nearly all ports, and only the last one. */
	one(data, size, 1, 0xffff);
	one(data, size, 65535, 1);
	return 0;
}
