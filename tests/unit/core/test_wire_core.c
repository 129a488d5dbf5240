// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/wire_core.h: the parser at its edges, and the fields that hops rewrite.
 *
 * Each row of a table starts from one good frame and changes bytes of it. The frame that the parser
 * sees ends where its allocation ends. Example: "ipv4, total length one too large" writes 105
 * instead of 104 at offset 16, and the result must be BL_R_BAD_LENGTH.
 */
#include "tests/unit/unit.h"

#include "core/wire_core.h"
#include "maps/switch_abi.h"

#define BASE  BL_PORT_BASE
#define COUNT BL_PORT_COUNT
#define BODY  52u

enum kind { V4, V6, LINK };

struct frame {
	uint8_t b[512];
	uint32_t len;
	uint32_t l3, l4, hdr;
};

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Returns a good frame with @tags VLAN tags and @body bytes after the header. */
static struct frame make_frame(enum kind kind, int tags, uint32_t body)
{
	struct frame f = { .len = 14 };
	struct bl_hdr *h;
	int i;

	memset(f.b, 0x02, 12);
	for (i = 0; i < tags; i++) {
		put16(f.b + f.len - 2, i ? BL_ETH_8021Q : tags == 2 ? BL_ETH_8021AD : BL_ETH_8021Q);
		put16(f.b + f.len, 100);
		f.len += 4;
	}
	put16(f.b + f.len - 2, kind == V4 ? BL_ETH_IP : kind == V6 ? BL_ETH_IP6 : BL_ETHERTYPE);
	f.l3 = f.len;
	if (kind == V4) {
		uint8_t *ip = f.b + f.len;

		ip[0] = 0x45;
		put16(ip + 2, 20 + 8 + 24 + body);
		ip[8] = 64;
		ip[9] = BL_UDP;
		memcpy(ip + 12, "\x0a\0\0\x01\x0a\0\0\x02", 8);
		f.len += 20;
	} else if (kind == V6) {
		uint8_t *ip = f.b + f.len;

		ip[0] = 0x60;
		put16(ip + 4, 8 + 24 + body);
		ip[6] = BL_UDP;
		ip[7] = 64;
		ip[8] = ip[24] = 0xfd;
		ip[23] = 1;
		ip[39] = 2;
		f.len += 40;
	}
	f.l4 = f.len;
	if (kind != LINK) {
		put16(f.b + f.len, BASE + 7);
		put16(f.b + f.len + 2, BASE + 9);
		put16(f.b + f.len + 4, 8 + 24 + body);
		f.len += 8;
	}
	f.hdr = f.len;
	h = (void *)(f.b + f.len);
	bl_put48(h->ts, 0x010203040506);
	bl_put48(h->barrier, 0x0a0b0c0d0e0f);
	bl_put48(h->commit, 0x090807060504);
	bl_hdr_set_psn(h, 0xdeadbeef);
	h->opcode = BL_OPCODE_BYTE(kind == LINK ? BL_OP_BEACON : BL_OP_DATA);
	h->flags = BL_HOP_LEAF | BL_F_LANES(4) | 2;
	f.len += 24 + (kind == LINK ? (uint32_t)(sizeof(struct bl_beacon) + sizeof(struct bl_relay))
				    : body);
	return f;
}

static enum bl_reason parse_copy(const struct frame *f, struct bl_frame *out)
{
	uint8_t *p = exact_copy(f->b, f->len);
	enum bl_reason r;

	memset(out, 0xee, sizeof(*out));
	r = bl_parse(p, p + f->len, BASE, COUNT, out);
	assert_memory_equal(p, f->b, f->len); /* The parser changes nothing. */
	exact_free(p);
	return r;
}

static void expect_good(const struct frame *f, enum kind kind, int tags, uint32_t body)
{
	struct bl_frame o;

	assert_int_equal(parse_copy(f, &o), BL_R_NONE);
	assert_int_equal(o.l3_off, kind == LINK ? 0 : f->l3);
	assert_int_equal(o.hdr_off, f->hdr);
	assert_int_equal(o.body_len, kind == LINK ? sizeof(struct bl_beacon) : body);
	assert_int_equal(o.v6, kind == V6);
	assert_int_equal(o.vlan, tags);
	assert_int_equal(o.opcode, kind == LINK ? BL_OP_BEACON : BL_OP_DATA);
	assert_int_equal(o.flags, BL_HOP_LEAF | 3 << 3 | 2);
	assert_int_equal(o.lane, 2);
	assert_int_equal(o.lanes, 4);
	assert_int_equal(o.sport, kind == LINK ? 0 : BASE + 7);
	assert_int_equal(o.dport, kind == LINK ? 0 : BASE + 9);
	assert_int_equal(o.psn, 0xdeadbeef);
	assert_int_equal(o.ts, 0x010203040506);
	assert_int_equal(o.b, 0x0a0b0c0d0e0f);
	assert_int_equal(o.c, 0x090807060504);
}

static void bl_parse__good_frames(void **state)
{
	enum kind kind;
	int tags;

	(void)state;
	for (kind = V4; kind <= LINK; kind++) {
		for (tags = 0; tags <= 1; tags++) {
			struct frame f = make_frame(kind, tags, BODY),
				     empty = make_frame(kind, tags, 0);

			expect_good(&f, kind, tags, BODY);
			expect_good(&empty, kind, tags, 0);
		}
	}
}

static void bl_parse__padding_is_not_body(void **state)
{
	enum kind kind;

	(void)state;
	for (kind = V4; kind <= LINK; kind++) {
		struct frame f = make_frame(kind, 0, 1);

		f.len += 60;
		expect_good(&f, kind, 0, 1);
	}
}

/*
 * Returns the result for a frame that is cut to @len bytes while its length fields stay unchanged.
 */
static enum bl_reason parse_cut(enum kind kind, int tags, uint32_t len)
{
	struct frame f = make_frame(kind, tags, BODY);
	struct bl_frame o;

	f.len = len;
	return parse_copy(&f, &o);
}

static void bl_parse__cut_at_every_byte(void **state)
{
	enum kind kind;
	int tags;

	(void)state;
	for (kind = V4; kind <= LINK; kind++) {
		for (tags = 0; tags <= 2; tags++) {
			struct frame f = make_frame(kind, tags, BODY);
			uint32_t len;

			for (len = 0; len <= f.len; len++) {
				enum bl_reason want;

				/*
				 * Up to the destination port (or the ethertype), a frame cannot be
				 * recognised as ours.
				 */
				if (len < (kind == LINK ? f.l3 : f.hdr))
					want = BL_R_NOT_OURS;
				else if (tags == 2)
					want = BL_R_DOUBLE_TAG;
				else if (len < f.len)
					want = kind == LINK ? BL_R_SHORT : BL_R_BAD_LENGTH;
				else
					want = BL_R_NONE;
				assert_int_equal(parse_cut(kind, tags, len), want);
			}
		}
	}
}

/*
 * The length fields are true but leave too little room for the header: the frame is short, down to
 * no bytes of it; with 24 bytes the header is complete.
 */
static void bl_parse__short_with_honest_lengths(void **state)
{
	enum kind kind;
	int tags;

	(void)state;
	for (kind = V4; kind <= V6; kind++) {
		for (tags = 0; tags <= 1; tags++) {
			uint32_t n;

			for (n = 0; n <= 25; n++) {
				struct frame f = make_frame(kind, tags, BODY);
				struct bl_frame o;

				if (kind == V4)
					put16(f.b + f.l3 + 2, 28 + n);
				else
					put16(f.b + f.l3 + 4, 8 + n);
				put16(f.b + f.l4 + 4, 8 + n);
				f.len = f.hdr + n;
				assert_int_equal(parse_copy(&f, &o),
						 n < 24 ? BL_R_SHORT : BL_R_NONE);
				/*
				 * Ethernet padding behind the packet must not be taken for the
				 * header.
				 */
				f.len = f.hdr + 60;
				assert_int_equal(parse_copy(&f, &o),
						 n < 24 ? BL_R_BAD_LENGTH : BL_R_NONE);
				if (n >= 24)
					assert_int_equal(o.body_len, n - 24);
			}
		}
	}
}

struct edit {
	const char *what;
	enum kind kind;
	int tags;
	/*
	 * '3': from the IP header, '4': from UDP, 'h': from the barline header, 'e': from the frame
	 */
	int from;
	int off, bytes;
	uint32_t value;
	enum bl_reason want;
};

static void run_edits(const struct edit *e, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++, e++) {
		struct frame f = make_frame(e->kind, e->tags, BODY);
		uint32_t at = (e->from == '3'   ? f.l3
			       : e->from == '4' ? f.l4
			       : e->from == 'h' ? f.hdr
						: 0) +
			      (uint32_t)e->off;
		struct bl_frame o;
		enum bl_reason got;

		if (e->bytes == 2)
			put16(f.b + at, e->value);
		else
			f.b[at] = (uint8_t)e->value;
		got = parse_copy(&f, &o);
		if (got != e->want)
			fail_msg("%s: got reason %d, want %d", e->what, got, e->want);
	}
}

static void bl_parse__lying_lengths(void **state)
{
	const uint32_t all = 8 + 24 + BODY;
	const struct edit t[] = {
		{ "v4 total -1", V4, 0, '3', 2, 2, 20 + all - 1, BL_R_BAD_LENGTH },
		{ "v4 total", V4, 0, '3', 2, 2, 20 + all, BL_R_NONE },
		{ "v4 total +1", V4, 0, '3', 2, 2, 20 + all + 1, BL_R_BAD_LENGTH },
		{ "v4 total 0", V4, 0, '3', 2, 2, 0, BL_R_BAD_LENGTH },
		{ "v4 total 19", V4, 0, '3', 2, 2, 19, BL_R_BAD_LENGTH },
		{ "v4 total 20", V4, 0, '3', 2, 2, 20, BL_R_BAD_LENGTH },
		{ "v4 total 65535", V4, 0, '3', 2, 2, 65535, BL_R_BAD_LENGTH },
		{ "v4 tagged total +1", V4, 1, '3', 2, 2, 20 + all + 1, BL_R_BAD_LENGTH },
		{ "v4 udp -1", V4, 0, '4', 4, 2, all - 1, BL_R_NONE },
		{ "v4 udp +1", V4, 0, '4', 4, 2, all + 1, BL_R_BAD_LENGTH },
		{ "v4 udp 0", V4, 0, '4', 4, 2, 0, BL_R_BAD_LENGTH },
		{ "v4 udp 7", V4, 0, '4', 4, 2, 7, BL_R_BAD_LENGTH },
		{ "v4 udp 31", V4, 0, '4', 4, 2, 31, BL_R_BAD_LENGTH },
		{ "v4 udp 32", V4, 0, '4', 4, 2, 32, BL_R_NONE },
		{ "v4 udp 65535", V4, 0, '4', 4, 2, 65535, BL_R_BAD_LENGTH },
		{ "v6 payload -1", V6, 0, '3', 4, 2, all - 1, BL_R_BAD_LENGTH },
		{ "v6 payload", V6, 0, '3', 4, 2, all, BL_R_NONE },
		{ "v6 payload +1", V6, 0, '3', 4, 2, all + 1, BL_R_BAD_LENGTH },
		{ "v6 payload 0 (jumbogram)", V6, 0, '3', 4, 2, 0, BL_R_BAD_LENGTH },
		{ "v6 payload 65535", V6, 0, '3', 4, 2, 65535, BL_R_BAD_LENGTH },
		{ "v6 tagged payload +1", V6, 1, '3', 4, 2, all + 1, BL_R_BAD_LENGTH },
		{ "v6 udp +1", V6, 0, '4', 4, 2, all + 1, BL_R_BAD_LENGTH },
		{ "v6 udp 31", V6, 0, '4', 4, 2, 31, BL_R_BAD_LENGTH },
		{ "v6 udp 32", V6, 0, '4', 4, 2, 32, BL_R_NONE },
	};

	(void)state;
	run_edits(t, ARRAY_SIZE(t));
}

static void bl_parse__ip_headers(void **state)
{
	const struct edit t[] = {
		{ "ihl 0", V4, 0, '3', 0, 1, 0x40, BL_R_BAD_IHL },
		{ "ihl 4", V4, 0, '3', 0, 1, 0x44, BL_R_BAD_IHL },
		{ "ihl 4, tagged", V4, 1, '3', 0, 1, 0x44, BL_R_BAD_IHL },
		{ "version 6 in an IPv4 frame", V4, 0, '3', 0, 1, 0x65, BL_R_NOT_OURS },
		{ "version 0 in an IPv4 frame", V4, 0, '3', 0, 1, 0x05, BL_R_NOT_OURS },
		{ "version 4 in an IPv6 frame", V6, 0, '3', 0, 1, 0x45, BL_R_NOT_OURS },
		{ "don't fragment", V4, 0, '3', 6, 2, 0x4000, BL_R_NONE },
		{ "reserved fragment bit", V4, 0, '3', 6, 2, 0x8000, BL_R_NONE },
		{ "first fragment", V4, 0, '3', 6, 2, 0x2000, BL_R_FRAGMENT },
		{ "later fragment", V4, 0, '3', 6, 2, 0x2001, BL_R_NOT_OURS },
		{ "last fragment", V4, 0, '3', 6, 2, 0x0001, BL_R_NOT_OURS },
		{ "last fragment, greatest offset", V4, 0, '3', 6, 2, 0x1fff, BL_R_NOT_OURS },
		{ "TCP", V4, 0, '3', 9, 1, 6, BL_R_NOT_OURS },
		{ "UDP-Lite", V4, 0, '3', 9, 1, 136, BL_R_NOT_OURS },
		{ "TCP over IPv6", V6, 0, '3', 6, 1, 6, BL_R_NOT_OURS },
		{ "ICMPv6", V6, 0, '3', 6, 1, 58, BL_R_NOT_OURS },
		{ "port below the range", V4, 0, '4', 2, 2, BASE - 1, BL_R_NOT_OURS },
		{ "first port", V4, 0, '4', 2, 2, BASE, BL_R_NONE },
		{ "last port", V4, 0, '4', 2, 2, BASE + COUNT - 1, BL_R_NONE },
		{ "port above the range", V4, 0, '4', 2, 2, BASE + COUNT, BL_R_NOT_OURS },
		{ "port 0", V4, 0, '4', 2, 2, 0, BL_R_NOT_OURS },
		{ "v6 port below the range", V6, 0, '4', 2, 2, BASE - 1, BL_R_NOT_OURS },
		{ "v6 port above the range", V6, 0, '4', 2, 2, BASE + COUNT, BL_R_NOT_OURS },
		{ "source port outside the range is not looked at", V4, 0, '4', 0, 2, 53,
		  BL_R_NONE },
		{ "ARP", V4, 0, 'e', 12, 2, 0x0806, BL_R_NOT_OURS },
		{ "LLDP", LINK, 0, 'e', 12, 2, 0x88cc, BL_R_NOT_OURS },
		{ "802.3 length", V4, 0, 'e', 12, 2, 100, BL_R_NOT_OURS },
		{ "tagged ARP", V4, 1, 'e', 16, 2, 0x0806, BL_R_NOT_OURS },
		{ "one 802.1ad tag", V4, 1, 'e', 12, 2, BL_ETH_8021AD, BL_R_NONE },
		{ "double tag", V4, 2, 'e', 0, 1, 2, BL_R_DOUBLE_TAG },
		{ "double tag, IPv6", V6, 2, 'e', 0, 1, 2, BL_R_DOUBLE_TAG },
		{ "double tag, beacon", LINK, 2, 'e', 0, 1, 2, BL_R_DOUBLE_TAG },
		{ "double tag, not our port", V4, 2, '4', 2, 2, 53, BL_R_NOT_OURS },
		{ "double tag, IPv6, not our port", V6, 2, '4', 2, 2, 53, BL_R_NOT_OURS },
		{ "double tag, ARP", V4, 2, 'e', 20, 2, 0x0806, BL_R_NOT_OURS },
	};

	(void)state;
	run_edits(t, ARRAY_SIZE(t));
}

static void bl_parse__header_fields(void **state)
{
	const struct edit t[] = {
		{ "version 0", V4, 0, 'h', 22, 1, BL_OP_DATA, BL_R_BAD_VERSION },
		{ "version 2", V4, 0, 'h', 22, 1, 2 << 5 | BL_OP_DATA, BL_R_BAD_VERSION },
		{ "version 7", V4, 0, 'h', 22, 1, 7 << 5 | BL_OP_DATA, BL_R_BAD_VERSION },
		{ "beacon of version 0", LINK, 0, 'h', 22, 1, BL_OP_BEACON, BL_R_BAD_VERSION },
		{ "opcode 0", V4, 0, 'h', 22, 1, BL_OPCODE_BYTE(0), BL_R_BAD_OPCODE },
		{ "opcode data", V4, 0, 'h', 22, 1, BL_OPCODE_BYTE(BL_OP_DATA), BL_R_NONE },
		{ "opcode frag", V4, 0, 'h', 22, 1, BL_OPCODE_BYTE(BL_OP_FRAG), BL_R_NONE },
		{ "opcode credit", V4, 0, 'h', 22, 1, BL_OPCODE_BYTE(BL_OP_CREDIT), BL_R_NONE },
		{ "opcode nak", V4, 0, 'h', 22, 1, BL_OPCODE_BYTE(BL_OP_NAK), BL_R_NONE },
		{ "opcode probe", V6, 0, 'h', 22, 1, BL_OPCODE_BYTE(BL_OP_PROBE), BL_R_NONE },
		{ "beacon in UDP", V4, 0, 'h', 22, 1, BL_OPCODE_BYTE(BL_OP_BEACON),
		  BL_R_BAD_OPCODE },
		{ "first unknown opcode", V4, 0, 'h', 22, 1, BL_OPCODE_BYTE(BL_OP_LIMIT),
		  BL_R_BAD_OPCODE },
		{ "last unknown opcode", V4, 0, 'h', 22, 1, BL_OPCODE_BYTE(31), BL_R_BAD_OPCODE },
		{ "data on the link", LINK, 0, 'h', 22, 1, BL_OPCODE_BYTE(BL_OP_DATA),
		  BL_R_BAD_OPCODE },
		{ "unknown on the link", LINK, 0, 'h', 22, 1, BL_OPCODE_BYTE(BL_OP_LIMIT),
		  BL_R_BAD_OPCODE },
		{ "hop leaf_up", V4, 0, 'h', 23, 1, BL_HOP_LEAF_UP, BL_R_NONE },
		{ "hop top in a beacon", LINK, 0, 'h', 23, 1, BL_HOP_TOP, BL_R_NONE },
		{ "lane 0 of 1", V4, 0, 'h', 23, 1, 0, BL_R_NONE },
		{ "lane 1 of 1", V4, 0, 'h', 23, 1, 1, BL_R_BAD_FLAGS },
		{ "lane 2 of 3", V4, 0, 'h', 23, 1, BL_F_LANES(3) | 2, BL_R_NONE },
		{ "lane 3 of 3", V4, 0, 'h', 23, 1, BL_F_LANES(3) | 3, BL_R_BAD_FLAGS },
		{ "lane 7 of 8", V4, 0, 'h', 23, 1, BL_F_LANES(8) | 7, BL_R_NONE },
		{ "lane 7 of 7", V4, 0, 'h', 23, 1, BL_F_LANES(7) | 7, BL_R_BAD_FLAGS },
	};

	(void)state;
	run_edits(t, ARRAY_SIZE(t));
}

/*
 * IPv4 with @words words of options. The UDP header moves, and with it the port that says whether
 * the frame is ours.
 */
static struct frame make_with_options(uint32_t words, uint16_t dport)
{
	struct frame f = make_frame(V4, 0, BODY);

	memmove(f.b + f.l4 + 4 * words, f.b + f.l4, f.len - f.l4);
	memset(f.b + f.l4, 1, 4 * words);
	f.b[f.l3] = (uint8_t)(0x45 + words);
	f.len += 4 * words;
	f.l4 += 4 * words;
	f.hdr += 4 * words;
	put16(f.b + f.l3 + 2, f.len - f.l3);
	put16(f.b + f.l4 + 2, dport);
	return f;
}

static void bl_parse__ipv4_options(void **state)
{
	struct bl_frame o;
	uint32_t words;

	(void)state;
	for (words = 1; words <= 10; words++) {
		struct frame ours = make_with_options(words, BASE),
			     other = make_with_options(words, 53);

		assert_int_equal(parse_copy(&ours, &o), BL_R_IP_OPTIONS);
		assert_int_equal(parse_copy(&other, &o), BL_R_NOT_OURS);
		ours.len = ours.hdr;
		assert_int_equal(parse_copy(&ours, &o), BL_R_IP_OPTIONS);
		ours.len--;
		assert_int_equal(parse_copy(&ours, &o), BL_R_NOT_OURS);
	}
	/* A later fragment has data in the place of a port. */
	{
		struct frame f = make_with_options(1, BASE);

		put16(f.b + f.l3 + 6, 0x2001);
		assert_int_equal(parse_copy(&f, &o), BL_R_NOT_OURS);
	}
}

static void bl_parse__ipv6_fragments(void **state)
{
	const struct {
		uint8_t next;
		uint16_t off;
		uint16_t dport;
		enum bl_reason want;
	} t[] = {
		{ BL_UDP, 0x0000, BASE, BL_R_FRAGMENT }, /* atomic */
		{ BL_UDP, 0x0001, BASE, BL_R_FRAGMENT }, /* first of several */
		/* Offset 8: the bytes in the place of a port are data. */
		{ BL_UDP, 0x0009, BASE, BL_R_NOT_OURS },
		{ BL_UDP, 0x0008, BASE, BL_R_NOT_OURS },
		{ BL_UDP, 0x0100, BASE, BL_R_NOT_OURS },
		{ BL_UDP, 0xfff8, BASE, BL_R_NOT_OURS },
		{ BL_UDP, 0x0001, 53, BL_R_NOT_OURS },
		{ 6, 0x0001, BASE, BL_R_NOT_OURS },
	};
	struct bl_frame o;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct frame f = make_frame(V6, 0, BODY);

		memmove(f.b + f.l4 + 8, f.b + f.l4, f.len - f.l4);
		memset(f.b + f.l4, 0, 8);
		f.b[f.l3 + 6] = 44;
		f.b[f.l4] = t[i].next;
		put16(f.b + f.l4 + 2, t[i].off);
		put16(f.b + f.l4 + 8 + 2, t[i].dport);
		put16(f.b + f.l3 + 4, 16 + 24 + BODY);
		f.len += 8;
		assert_int_equal(parse_copy(&f, &o), t[i].want);
		f.len = f.hdr + 8; /* The ports are just within the frame. */
		assert_int_equal(parse_copy(&f, &o), t[i].want);
		f.len--;
		assert_int_equal(parse_copy(&f, &o), BL_R_NOT_OURS);
	}
}

/*
 * The fast path accepts exactly the plain frames, and returns the same for them as the slow path.
 */
static void expect_plain_agrees(const struct frame *f)
{
	uint8_t *p = exact_copy(f->b, f->len);
	struct bl_frame o, q;
	enum bl_reason why;
	int plain;

	memset(&o, 0xee, sizeof(o));
	memset(&q, 0xee, sizeof(q));
	why = bl_parse(p, p + f->len, BASE, COUNT, &o);
	plain = bl_parse_plain(p, p + f->len, BASE, COUNT, &q);
	assert_int_equal(plain, why == BL_R_NONE && o.opcode == BL_OP_DATA && !o.v6 &&
					o.hdr_off == 42 && o.lane == 0 && o.lanes == 1);
	if (plain) {
		o.psn = q.psn;
		assert_memory_equal(&q, &o, sizeof(o));
	}
	exact_free(p);
}

static void bl_parse_plain__as_bl_parse(void **state)
{
	static const uint32_t bodies[] = { 0, 1, BODY };
	struct frame good, f;
	uint32_t i, k, v;

	(void)state;
	for (k = 0; k < sizeof(bodies) / sizeof(*bodies); k++) {
		good = make_frame(V4, 0, bodies[k]);
		good.b[good.hdr + 23] = BL_HOP_LEAF;
		expect_plain_agrees(&good);
		/* cut everywhere, with the length fields unchanged */
		for (f = good; f.len; f.len--)
			expect_plain_agrees(&f);
		for (i = 12; i < good.hdr + 24; i++) {
			for (v = 0; v < 256; v++) {
				f = good;
				f.b[i] = (uint8_t)v;
				expect_plain_agrees(&f);
			}
		}
		for (i = 0; i < 3; i++) { /* bytes behind the packet */
			f = good;
			f.len += i;
			expect_plain_agrees(&f);
		}
	}
	for (i = 0; i < 3; i++) {
		good = make_frame((enum kind)i, 1, BODY);
		good.b[good.hdr + 23] = BL_HOP_LEAF;
		expect_plain_agrees(&good);
		good = make_frame((enum kind)i, 0, BODY);
		expect_plain_agrees(&good);
		good.b[good.hdr + 23] = BL_HOP_LEAF;
		expect_plain_agrees(&good);
	}
}

/* Random bytes, with neither a port nor an ethertype of ours, are never taken for our frames. */
static void bl_parse__random_traffic_of_others(void **state)
{
	struct rnd r = rnd_seeded("others");
	int i, k;

	(void)state;
	for (i = 0; i < 20000; i++) {
		struct frame f =
			make_frame((enum kind)rnd_below(&r, 2), (int)rnd_below(&r, 3), BODY);
		uint32_t l4 = f.l4;
		struct bl_frame o;
		enum bl_reason got;

		put16(f.b + l4 + 2, 1 + rnd_below(&r, BASE - 1));
		for (k = 0; k < 4; k++) {
			uint32_t at = f.l3 + rnd_below(&r, f.len - f.l3);

			/* The bytes that say where the ports are stay unchanged. */
			if (at == f.l3 || at == f.l3 + 6 || at == f.l3 + 9 || at == l4 + 2 ||
			    at == l4 + 3)
				continue;
			f.b[at] = (uint8_t)rnd64(&r);
		}
		f.len = rnd_below(&r, f.len + 1);
		got = parse_copy(&f, &o);
		assert_int_equal(got, BL_R_NOT_OURS);
	}
}

/* A tc program sees only the head of a large skb: lengths are checked against the whole packet. */
static void bl_parse_whole__short_linear_part(void **state)
{
	enum kind kind;

	(void)state;
	for (kind = V4; kind <= V6; kind++) {
		struct frame f = make_frame(kind, 1, BODY);
		uint32_t whole = f.len, linear;

		for (linear = 0; linear <= f.len; linear++) {
			uint8_t *p = exact_copy(f.b, linear);
			enum bl_reason want = linear < f.hdr        ? BL_R_NOT_OURS
					      : linear < f.hdr + 24 ? BL_R_SHORT
								    : BL_R_NONE;
			struct bl_frame o;

			assert_int_equal(bl_parse_whole(p, p + linear, whole, BASE, COUNT, &o),
					 want);
			if (want == BL_R_NONE) {
				assert_int_equal(o.body_len, BODY);
				assert_int_equal(bl_parse_whole(p, p + linear, whole + 1, BASE,
								COUNT, &o),
						 BL_R_NONE);
				assert_int_equal(bl_parse_whole(p, p + linear, whole - 1, BASE,
								COUNT, &o),
						 BL_R_BAD_LENGTH);
			}
			exact_free(p);
		}
	}
}

/* Random damage reaches every reason that has a table above, and no other. */
static void bl_parse__reasons_are_these(void **state)
{
	static const enum bl_reason known[] = { BL_R_NONE,       BL_R_NOT_OURS,   BL_R_SHORT,
						BL_R_BAD_LENGTH, BL_R_BAD_IHL,    BL_R_IP_OPTIONS,
						BL_R_FRAGMENT,   BL_R_DOUBLE_TAG, BL_R_BAD_VERSION,
						BL_R_BAD_OPCODE, BL_R_BAD_FLAGS };
	struct rnd r = rnd_seeded("reasons");
	uint64_t seen = 0, want = 0;
	size_t j;
	int i, k;

	(void)state;
	for (j = 0; j < ARRAY_SIZE(known); j++)
		want |= 1ULL << known[j];
	/* The rarest reason takes some ten thousand frames. */
	for (i = 0; i < 50000 || (seen != want && i < 5000000); i++) {
		struct frame f = rnd_below(&r, 4) ? make_frame((enum kind)rnd_below(&r, 3),
							       (int)rnd_below(&r, 3), BODY)
						  : make_with_options(1 + rnd_below(&r, 10), BASE);
		struct bl_frame o;

		for (k = (int)rnd_below(&r, 3); k > 0; k--)
			f.b[f.l3 + rnd_below(&r, f.hdr + 24 - f.l3)] = (uint8_t)rnd64(&r);
		f.len -= rnd_below(&r, 4) ? 0 : rnd_below(&r, f.len);
		seen |= 1ULL << parse_copy(&f, &o);
	}
	assert_int_equal(seen, want);
}

static void bl_get48__edges(void **state)
{
	static const uint64_t v[] = {
		0, 1, 0xff, 0x100, 0x010203040506, 1ULL << 47, BL_TS_MASK - 1, BL_TS_MASK
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		uint8_t b[8] = { [0] = 0xaa, [7] = 0xaa };
		int k;

		bl_put48(b + 1, v[i]);
		assert_int_equal(bl_get48(b + 1), v[i]);
		for (k = 0; k < 6; k++)
			assert_int_equal(b[1 + k], (uint8_t)(v[i] >> (40 - 8 * k)));
		assert_int_equal(b[0], 0xaa);
		assert_int_equal(b[7], 0xaa);
		/* Bits above 48 do not reach the wire. */
		bl_put48(b + 1, v[i] | 0xabcdULL << 48);
		assert_int_equal(bl_get48(b + 1), v[i]);
	}
}

static void bl_hdr_psn__bytes_and_edges(void **state)
{
	static const uint32_t v[] = { 0,          1,          0xffff,     0x10000,
				      0x01020304, 0x7fffffff, 0x80000000, 0xffffffff };
	struct bl_hdr h;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		const uint8_t *p = (const uint8_t *)&h + 18;

		memset(&h, 0x55, sizeof(h));
		bl_hdr_set_psn(&h, v[i]);
		assert_int_equal(bl_hdr_psn(&h), v[i]);
		assert_int_equal((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
					 p[3],
				 v[i]);
		assert_int_equal(h.opcode, 0x55);
		assert_int_equal(h.commit[5], 0x55);
	}
}

static void bl_psn_before__serial_order(void **state)
{
	static const struct {
		uint32_t a, b;
		int before;
	} t[] = {
		{ 0, 0, 0 },
		{ 0, 1, 1 },
		{ 1, 0, 0 },
		{ 0xffffffff, 0, 1 },
		{ 0, 0xffffffff, 0 },
		{ 0, 0x7fffffff, 1 },
		{ 0x7fffffff, 0, 0 },
		{ 0xfffffff0, 0x10, 1 },
		{ 0x10, 0xfffffff0, 0 },
		{ 0x80000001, 0, 1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_psn_before(t[i].a, t[i].b), t[i].before);
}

static void bl_hdr_set_lane__keeps_other_flags(void **state)
{
	uint32_t lanes, lane, before;

	(void)state;
	for (before = 0; before < 256; before++) {
		for (lanes = 1; lanes <= BL_LANES_MAX; lanes++) {
			for (lane = 0; lane < lanes; lane++) {
				struct bl_hdr h = { .flags = (uint8_t)before };

				bl_hdr_set_lane(&h, lane, lanes);
				assert_int_equal(BL_FLAGS_LANE(h.flags), lane);
				assert_int_equal(BL_FLAGS_LANES(h.flags), lanes);
				assert_int_equal(h.flags & 0xc0, before & 0xc0);
			}
		}
	}
}

static uint16_t checksum(const uint8_t *p, size_t n)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void bl_csum_replace__equals_recomputation(void **state)
{
	struct rnd r = rnd_seeded("checksum");
	int i;
	size_t k;

	(void)state;
	for (i = 0; i < 20000; i++) {
		uint8_t d[2 + 24 + 38], was[24];
		uint16_t sum, wire;

		for (k = 0; k < sizeof(d); k++)
			d[k] = rnd_below(&r, 4) ? (uint8_t)rnd64(&r) : rnd_below(&r, 2) ? 0 : 0xff;
		d[0] = 0x40; /* The sum of a packet is never all zeros. */
		wire = BL_BE16(checksum(d, sizeof(d)));
		memcpy(was, d + 2, sizeof(was));
		for (k = 0; k < sizeof(was); k++)
			if (rnd_below(&r, 3))
				d[2 + k] = rnd_below(&r, 4)   ? (uint8_t)rnd64(&r)
					   : rnd_below(&r, 2) ? 0
							      : 0xff;
		sum = BL_BE16(bl_csum_replace(wire, was, d + 2, sizeof(was)));
		assert_int_equal(sum, checksum(d, sizeof(d)));
	}
}

/* The same header and the same checksum as by bl_hdr_send() and bl_csum_replace(), with all
 * carries. */
static void bl_hdr_send_sum__equals_both_steps(void **state)
{
	struct rnd r = rnd_seeded("send sum");
	int i;
	size_t k;

	(void)state;
	for (i = 0; i < 20000; i++) {
		uint8_t was[24], one[24], two[24];
		uint64_t b = rnd64(&r) >> 16, c = rnd_below(&r, 4) ? rnd64(&r) >> 16 : b;
		uint32_t flags = (uint32_t)rnd_below(&r, 256);
		uint16_t sum = rnd_below(&r, 8)   ? (uint16_t)rnd64(&r)
			       : rnd_below(&r, 2) ? 0
						  : 0xffff;
		uint16_t want;

		for (k = 0; k < sizeof(was); k++)
			was[k] = rnd_below(&r, 2)   ? (uint8_t)rnd64(&r)
				 : rnd_below(&r, 2) ? 0
						    : 0xff;
		if (!rnd_below(&r, 8))
			b = c = rnd_below(&r, 2) ? 0 : BL_TS_MASK;
		if (!rnd_below(&r, 16))
			memset(was, 0xff, sizeof(was)); /* its complement adds nothing */
		memcpy(one, was, sizeof(was));
		memcpy(two, was, sizeof(was));
		bl_hdr_send((struct bl_hdr *)one, b, c, flags);
		want = bl_csum_replace(sum, was, one, sizeof(was));
		assert_int_equal(bl_hdr_send_sum((struct bl_hdr *)two, b, c, flags, sum), want);
		assert_memory_equal(two, one, sizeof(one));
	}
}

static void bl_fdb_hash__fits_and_spreads(void **state)
{
	static uint8_t hits[BL_FDB_BUCKETS];
	uint8_t mac[6] = { 0x02, 0x42, 0, 0, 0, 0 };
	uint32_t i, worst = 0;

	(void)state;
	for (i = 0; i < 1024; i++) {
		uint32_t h;

		mac[4] = (uint8_t)(i >> 8);
		mac[5] = (uint8_t)i;
		assert_int_equal(bl_mac48(mac),
				 (uint64_t)mac[5] << 40 | (uint64_t)mac[4] << 32 | 0x4202);
		h = bl_fdb_hash(bl_mac48(mac));
		assert_true(h < BL_FDB_BUCKETS);
		if (++hits[h] > worst)
			worst = hits[h];
	}
	/* Addresses that were assigned one after another must fit into four ways at full load. */
	assert_true(worst <= BL_FDB_WAYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_parse__good_frames),
		cmocka_unit_test(bl_parse__padding_is_not_body),
		cmocka_unit_test(bl_parse__cut_at_every_byte),
		cmocka_unit_test(bl_parse__short_with_honest_lengths),
		cmocka_unit_test(bl_parse__lying_lengths),
		cmocka_unit_test(bl_parse__ip_headers),
		cmocka_unit_test(bl_parse__header_fields),
		cmocka_unit_test(bl_parse__ipv4_options),
		cmocka_unit_test(bl_parse__ipv6_fragments),
		cmocka_unit_test(bl_parse_plain__as_bl_parse),
		cmocka_unit_test(bl_parse__random_traffic_of_others),
		cmocka_unit_test(bl_parse_whole__short_linear_part),
		cmocka_unit_test(bl_parse__reasons_are_these),
		cmocka_unit_test(bl_get48__edges),
		cmocka_unit_test(bl_hdr_psn__bytes_and_edges),
		cmocka_unit_test(bl_psn_before__serial_order),
		cmocka_unit_test(bl_hdr_set_lane__keeps_other_flags),
		cmocka_unit_test(bl_csum_replace__equals_recomputation),
		cmocka_unit_test(bl_hdr_send_sum__equals_both_steps),
		cmocka_unit_test(bl_fdb_hash__fits_and_spreads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
