// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/auth_core.h: the tag against the published function, each bit of a frame (covered, or named
 * here as not covered), stamps at their edges, the choice of keys during a rotation, and the limit
 * on wrong tags.
 */
#include "tests/unit/unit.h"

#include "core/auth_core.h"

#define EPOCH  5
#define STREAM 3
#define MARK   BL_AUTH_MARK(EPOCH, STREAM)
#define NOW    1000000000000ULL

static const struct bl_auth_key key = { { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL } };

/* A link frame: Ethernet header 14, barline's header 24, body. */
struct link_frame {
	uint8_t p[160];
	uint32_t n;
	int beacon;
};

static struct link_frame make(int beacon)
{
	struct link_frame f = { .n = beacon ? BL_BEACON_LEN : BL_RSV_LEN, .beacon = beacon };
	uint32_t i;

	for (i = 0; i < f.n; i++)
		f.p[i] = (uint8_t)(i * 37 + 11);
	f.p[14] = MARK >> 8;
	f.p[15] = (uint8_t)MARK;
	return f;
}

/* Where the tag lies in the frame. */
static uint32_t tag_at(const struct link_frame *f)
{
	return f->beacon ? 14 + sizeof(struct bl_hdr) + sizeof(struct bl_beacon) + 8 : 14 + 10;
}

/* The tag of @f, from a copy that ends where its last covered byte ends. */
static uint64_t tag_of(const struct link_frame *f)
{
	uint32_t need = 14 + sizeof(struct bl_hdr) +
			(f->beacon ? sizeof(struct bl_beacon) + sizeof(struct bl_auth_block)
				   : sizeof(struct bl_rsv_body));
	uint8_t *p = exact_copy(f->p, need);
	uint32_t mark = (uint32_t)p[14] << 8 | p[15];
	__u64 w[BL_AUTH_WORDS];
	uint64_t tag;

	bl_auth_words(p + 14, f->beacon, mark, p + 6, w);
	tag = bl_auth_tag(&key, w);
	exact_free(p);
	return tag;
}

static void bl_auth_tag__is_siphash_of_its_words(void **state)
{
	struct rnd r = rnd_seeded("auth tag");
	__u64 w[BL_AUTH_WORDS];
	struct bl_auth_key k;
	uint32_t i, j;

	(void)state;
	for (i = 0; i < 1000; i++) {
		for (j = 0; j < BL_AUTH_WORDS; j++)
			w[j] = rnd64(&r);
		k.k[0] = rnd64(&r);
		k.k[1] = rnd64(&r);
		assert_int_equal(bl_auth_tag(&k, w),
				 bl_siphash(k.k[0], k.k[1], w, sizeof(w), BL_SIP_NONE));
	}
}

/* The 48 bytes that docs/protocol.md names, in their order, give the same tag. */
static void bl_auth_words__as_documented(void **state)
{
	struct link_frame f;
	uint8_t m[48];
	int beacon;

	(void)state;
	for (beacon = 0; beacon < 2; beacon++) {
		const uint8_t *h;

		f = make(beacon);
		h = f.p + 14;
		memcpy(m, h, 2);
		memcpy(m + 2, f.p + 6, 6);
		memcpy(m + 8, beacon ? h + 32 : h + 2, 8);
		memcpy(m + 16, h + 16, 8);
		memcpy(m + 24, h + 24, 8);
		if (beacon) {
			memcpy(m + 32, h + 8, 8);
			memcpy(m + 40, h, 8);
		} else {
			m[16] = m[17] = 0;
			memcpy(m + 32, h + 32, 8);
			memcpy(m + 40, h + 38, 8);
		}
		assert_int_equal(tag_of(&f),
				 bl_siphash(key.k[0], key.k[1], m, sizeof(m), BL_SIP_NONE));
	}
}

/* Returns whether the tag covers byte @i of a frame. */
static bool covered(const struct link_frame *f, uint32_t i)
{
	if (i < 6)
		return false; /* the group address to which every link frame is sent */
	if (i >= 12 && i < 14)
		return false; /* the ethertype, without which it is no link frame */
	if (i >= tag_at(f) && i < tag_at(f) + 8)
		return false;                        /* the tag itself */
	return f->beacon ? i < tag_at(f) : i < f->n; /* the rest of the scratch is not read */
}

static void bl_auth_tag__every_bit(void **state)
{
	int beacon;
	uint32_t i;

	(void)state;
	for (beacon = 0; beacon < 2; beacon++) {
		struct link_frame f = make(beacon);
		uint64_t tag = tag_of(&f);

		for (i = 0; i < f.n * 8; i++) {
			f.p[i / 8] ^= (uint8_t)(1 << i % 8);
			if (covered(&f, i / 8))
				assert_int_not_equal(tag_of(&f), tag);
			else
				assert_int_equal(tag_of(&f), tag);
			f.p[i / 8] ^= (uint8_t)(1 << i % 8);
		}
	}
}

static void bl_auth_tag__every_bit_of_the_key(void **state)
{
	__u64 w[BL_AUTH_WORDS] = { 1, 2, 3, 4, 5, 6 }, tag = bl_auth_tag(&key, w);
	uint32_t i;

	(void)state;
	for (i = 0; i < 128; i++) {
		struct bl_auth_key k = key;

		k.k[i / 64] ^= 1ULL << i % 64;
		assert_int_not_equal(bl_auth_tag(&k, w), tag);
	}
}

/* A beacon and a reservation never have the same words: their opcodes are in the same byte. */
static void bl_auth_words__kinds_differ(void **state)
{
	struct link_frame b = make(1), r = make(0);
	__u64 wb[BL_AUTH_WORDS], wr[BL_AUTH_WORDS];

	(void)state;
	b.p[14 + 22] = BL_OPCODE_BYTE(BL_OP_BEACON);
	r.p[14 + 22] = BL_OPCODE_BYTE(BL_OP_RSV);
	bl_auth_words(b.p + 14, 1, MARK, b.p + 6, wb);
	bl_auth_words(r.p + 14, 0, MARK, r.p + 6, wr);
	assert_int_equal(wb[2] >> 48 & 0xff, BL_OPCODE_BYTE(BL_OP_BEACON));
	assert_int_equal(wr[2] >> 48 & 0xff, BL_OPCODE_BYTE(BL_OP_RSV));
}

static void bl_auth_fresh__edges(void **state)
{
	const uint64_t f = BL_AUTH_FRESH_NS;
	const struct {
		uint64_t stamp, seen;
		bool ok;
	} t[] = {
		{ NOW, 0, true },
		{ NOW, NOW - 1, true },
		{ NOW, NOW, false },
		{ NOW, NOW + 1, false },
		{ NOW + f, 0, true },
		{ NOW + f + 1, 0, false },
		{ NOW + f, NOW + f, false },
		{ NOW - f, 0, true },
		{ NOW - f - 1, 0, false },
		{ NOW, NOW + 2 * f, false },
		{ NOW, NOW + 2 * f + 1, true }, /* this node's clock was set back */
		{ 0, 0, false },
		{ ~0ULL, 0, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_auth_fresh(t[i].stamp, t[i].seen, NOW), t[i].ok);
}

static void bl_auth_next__rises(void **state)
{
	(void)state;
	assert_int_equal(bl_auth_next(0, NOW), NOW);
	assert_int_equal(bl_auth_next(NOW - 1, NOW), NOW);
	assert_int_equal(bl_auth_next(NOW, NOW), NOW + 1);
	assert_int_equal(bl_auth_next(NOW + 7, NOW), NOW + 8);
	assert_int_equal(bl_auth_next(NOW + BL_AUTH_FRESH_NS, NOW), NOW + BL_AUTH_FRESH_NS + 1);
	/* the clock was set back by an hour: nobody would accept what follows */
	assert_int_equal(bl_auth_next(NOW + BL_AUTH_FRESH_NS + 1, NOW), NOW);
}

/* A clock that is set back, at either end, stops a stream for two seconds at most. */
static void stamps__clock_set_back(void **state)
{
	uint64_t hour = 3600000000000ULL, sent, seen = 0, now, bad, k;

	(void)state;
	sent = seen = NOW + hour; /* both ends were wrong together */
	sent = bl_auth_next(sent, NOW);
	assert_true(bl_auth_fresh(sent, seen, NOW));
	for (k = 0; k < 2; k++) { /* and with every distance */
		uint64_t back = k ? BL_AUTH_FRESH_NS : 2 * BL_AUTH_FRESH_NS;

		sent = seen = NOW + back;
		for (now = NOW; now <= NOW + 2 * BL_AUTH_FRESH_NS + 1;
		     now += now % 1000000 ? 1000000 - now % 1000000 : 1) {
			sent = bl_auth_next(sent, now);
			if (bl_auth_fresh(sent, seen, now))
				break;
		}
		assert_true(now <= NOW + 2 * BL_AUTH_FRESH_NS + 1);
	}
	bad = bl_auth_punish(0, NOW + hour);
	assert_false(bl_auth_flooded(bad, NOW));
	assert_int_equal(bl_auth_punish(bad, NOW), NOW + BL_AUTH_BAD_NS);
}

/* A key of the link from @from on, until @until. */
static struct bl_auth_epoch epoch(uint32_t number, uint64_t from, uint64_t until)
{
	return (struct bl_auth_epoch){ .epoch = number, .from_ns = from, .until_ns = until };
}

static void bl_auth_to_send__rotation(void **state)
{
	struct bl_auth_link l = { .at = { epoch(4, 0, NOW + 9), epoch(5, NOW, ~0ULL) } };
	struct bl_auth_epoch swap;
	int k;

	(void)state;
	for (k = 0; k < 2; k++) { /* in either place */
		assert_int_equal(l.at[bl_auth_to_send(&l, NOW - 1)].epoch, 4);
		assert_int_equal(l.at[bl_auth_to_send(&l, NOW)].epoch, 5);
		assert_int_equal(l.at[bl_auth_to_send(&l, NOW + 100)].epoch, 5);
		swap = l.at[0];
		l.at[0] = l.at[1];
		l.at[1] = swap;
	}
	l.at[0].epoch = 0; /* one key is used before it begins: there is no other */
	assert_int_equal(bl_auth_to_send(&l, 0), 1);
	l.at[0].epoch = 4;
	l.at[1].epoch = 0;
	assert_int_equal(bl_auth_to_send(&l, 0), 0);
	l.at[0].epoch = 0;
	assert_int_equal(bl_auth_to_send(&l, NOW), -1);
}

static void bl_auth_to_receive__overlap(void **state)
{
	struct bl_auth_link l = { .at = { epoch(4, 0, NOW + 9), epoch(5, NOW, ~0ULL) } };

	(void)state;
	assert_int_equal(bl_auth_to_receive(&l, 4, NOW), 0);
	assert_int_equal(bl_auth_to_receive(&l, 4, NOW + 9), 0);
	assert_int_equal(bl_auth_to_receive(&l, 4, NOW + 10), -1); /* the overlap is over */
	assert_int_equal(bl_auth_to_receive(&l, 5, 0), 1);         /* a neighbour that is ahead */
	assert_int_equal(bl_auth_to_receive(&l, 5, ~0ULL), 1);
	assert_int_equal(bl_auth_to_receive(&l, 3, NOW), -1);
	assert_int_equal(bl_auth_to_receive(&l, 6, NOW), -1);
	assert_int_equal(bl_auth_to_receive(&l, 0, NOW), -1);
	l.at[0].epoch = 0; /* being written */
	assert_int_equal(bl_auth_to_receive(&l, 0, NOW), -1);
	assert_int_equal(bl_auth_to_receive(&l, 4, NOW), -1);
}

/* How many tags are computed while @n forged frames arrive, @gap_ns apart. */
static uint64_t computed(uint64_t *bad, uint64_t *now, uint64_t n, uint64_t gap_ns)
{
	uint64_t c = 0;

	for (; n; n--, *now += gap_ns)
		if (!bl_auth_flooded(*bad, *now)) {
			*bad = bl_auth_punish(*bad, *now);
			c++;
		}
	return c;
}

static void bl_auth_flooded__bounded(void **state)
{
	uint64_t bad = 0, now = NOW, first;

	(void)state;
	assert_false(bl_auth_flooded(0, 0));
	first = computed(&bad, &now, 1000, 0);
	assert_int_equal(first, BL_AUTH_BURST_NS / BL_AUTH_BAD_NS + 1);
	/* a second of a flood of 10 million frames per second */
	assert_in_range(computed(&bad, &now, 10000000, 100), 990, 1001);
	/* a ms after its end, a good frame is checked again; 51 ms later all is as before */
	assert_true(bl_auth_flooded(bad, now) || bad <= now + BL_AUTH_BURST_NS);
	assert_false(bl_auth_flooded(bad, now + BL_AUTH_BAD_NS));
	now += BL_AUTH_BURST_NS + BL_AUTH_BAD_NS;
	assert_int_equal(computed(&bad, &now, 1000, 0), first);
	/* wrong tags that are rarer than one per ms never stop anything */
	bad = 0;
	assert_int_equal(computed(&bad, &now, 1000, BL_AUTH_BAD_NS), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_auth_tag__is_siphash_of_its_words),
		cmocka_unit_test(bl_auth_words__as_documented),
		cmocka_unit_test(bl_auth_tag__every_bit),
		cmocka_unit_test(bl_auth_tag__every_bit_of_the_key),
		cmocka_unit_test(bl_auth_words__kinds_differ),
		cmocka_unit_test(bl_auth_fresh__edges),
		cmocka_unit_test(bl_auth_next__rises),
		cmocka_unit_test(stamps__clock_set_back),
		cmocka_unit_test(bl_auth_to_send__rotation),
		cmocka_unit_test(bl_auth_to_receive__overlap),
		cmocka_unit_test(bl_auth_flooded__bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
