// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/queue/classify_core.h: the kind of a frame, how long it is held, and in which class; every
 * frame is also cut at every length.
 */
#include "tests/unit/unit.h"

#include "core/queue/classify_core.h"

struct f {
	uint8_t b[128];
	uint32_t n;
};

static void append_bytes(struct f *f, const void *p, size_t n)
{
	memcpy(f->b + f->n, p, n);
	f->n += (uint32_t)n;
}

static void append_ethertype(struct f *f, uint16_t t)
{
	uint8_t b[2] = { (uint8_t)(t >> 8), (uint8_t)t };

	append_bytes(f, b, 2);
}

static struct f make_eth(int multi, int tags)
{
	struct f f = { .n = 0 };
	uint8_t mac[12] = { (uint8_t)(2 | multi), 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 9 };
	int i;

	append_bytes(&f, mac, 12);
	for (i = 0; i < tags; i++) {
		append_ethertype(&f, i ? BL_ETH_8021Q : BL_ETH_8021AD);
		append_ethertype(&f, 0x2064);
	}
	return f;
}

static void append_ip4(struct f *f, uint8_t ver_ihl, uint8_t tos, uint16_t frag, uint8_t proto)
{
	uint8_t h[20] = { ver_ihl,
			  tos,
			  0,
			  48,
			  0,
			  1,
			  (uint8_t)(frag >> 8),
			  (uint8_t)frag,
			  64,
			  proto,
			  0,
			  0,
			  10,
			  0,
			  0,
			  1,
			  10,
			  0,
			  0,
			  2 };

	append_ethertype(f, BL_ETH_IP);
	append_bytes(f, h, 20);
}

static void append_ip6(struct f *f, uint8_t version, uint8_t tc, uint8_t proto)
{
	uint8_t h[40] = { (uint8_t)(version << 4 | tc >> 4),
			  (uint8_t)(tc << 4 | 0xf),
			  0xff,
			  0xff,
			  0,
			  8,
			  proto,
			  64 };

	append_ethertype(f, BL_ETH_IP6);
	append_bytes(f, h, 40);
}

static void append_ports(struct f *f)
{
	static const uint8_t p[8] = { 0x12, 0x34, 0xab, 0xcd };

	append_bytes(f, p, sizeof(p));
}

static int classify_cut(const struct f *f, uint32_t n, struct bl_frame_class *l)
{
	uint8_t *p = exact_copy(f->b, n);
	int rc = bl_frame_class(p, p + n, l);

	exact_free(p);
	return rc;
}

/* @dest: 1: held for its address; 0: never held */
static void expect_class(const struct f *f, struct bl_frame_class want, uint32_t dest, uint32_t cls)
{
	struct bl_frame_class l;

	memset(&l, 0xa5, sizeof(l));
	assert_int_equal(classify_cut(f, f->n, &l), 0);
	assert_memory_equal(&l, &want, sizeof(l));
	assert_int_equal(bl_class_is_held(&l), dest);
	assert_int_equal(bl_hold_class(&l), cls);
}

static void bl_frame_class__kinds(void **state)
{
	int tags, multi;

	(void)state;
	for (tags = 0; tags < 2; tags++) {
		for (multi = 0; multi < 2; multi++) {
			const uint32_t off = 14 + 4 * (uint32_t)tags;
			const uint8_t m = (uint8_t)multi;
			struct f f;

			f = make_eth(multi, tags);
			append_ethertype(&f, BL_ETH_ARP);
			expect_class(&f,
				     (struct bl_frame_class){ .kind = BL_FRAME_ARP, .multi = m }, 0,
				     0);
			f = make_eth(multi, tags);
			append_ethertype(&f, 0x88b5);
			expect_class(&f, (struct bl_frame_class){ .multi = m }, !m, !m);
			f = make_eth(multi, tags);
			append_ip4(&f, 0x45, 0, 0x4000, BL_TCP);
			append_ports(&f);
			expect_class(&f,
				     (struct bl_frame_class){ .kind = BL_FRAME_IP4,
							      .multi = m,
							      .l3_off = off,
							      .proto = BL_TCP,
							      .sport = 0x1234,
							      .dport = 0xabcd },
				     !m, !m);
			f = make_eth(multi, tags);
			append_ip4(&f, 0x45, 0xb8, 0, BL_UDP);
			append_ports(&f);
			expect_class(&f,
				     (struct bl_frame_class){ .kind = BL_FRAME_IP4,
							      .multi = m,
							      .dscp = 46,
							      .l3_off = off,
							      .proto = BL_UDP,
							      .sport = 0x1234,
							      .dport = 0xabcd },
				     !m, 0);
			f = make_eth(multi, tags);
			append_ip6(&f, 6, 0xb8, BL_TCP);
			append_ports(&f);
			expect_class(&f,
				     (struct bl_frame_class){ .kind = BL_FRAME_IP6,
							      .multi = m,
							      .dscp = 46,
							      .l3_off = off,
							      .proto = BL_TCP,
							      .sport = 0x1234,
							      .dport = 0xabcd },
				     !m, 0);
			f = make_eth(multi, tags);
			append_ip6(&f, 6, 0, 47);
			append_ports(&f);
			expect_class(&f,
				     (struct bl_frame_class){ .kind = BL_FRAME_IP6,
							      .multi = m,
							      .l3_off = off,
							      .proto = 47 },
				     !m, !m);
		}
	}
	/* Behind two tags the kind is unknown. */
	{
		struct f f = make_eth(0, 2);

		append_ip4(&f, 0x45, 0xb8, 0, BL_UDP);
		append_ports(&f);
		expect_class(&f, (struct bl_frame_class){ 0 }, 1, 1);
	}
}

/*
 * Frames of TOP are sent to its port; those of Fastpass are sent to or from the port of an arbiter.
 * Both use UDP.
 */
static void bl_frame_class__whose_port(void **state)
{
	static const struct {
		uint16_t sport, dport;
		int top, fcp;
	} t[] = {
		{ 1, 2, 0, 0 },
		{ 1, BL_TOP_PORT, 1, 0 },
		{ BL_TOP_PORT, 1, 0, 0 },
		{ 1, BL_FCP_PORT, 0, 1 },
		{ BL_FCP_PORT, 1, 0, 1 },
		{ 1, BL_FCP_FAULTS_PORT, 0, 1 },
		{ BL_FCP_FAULTS_PORT, 1, 0, 1 },
		{ BL_FCP_PORT, BL_TOP_PORT, 1, 1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_frame_class l = { .kind = BL_FRAME_IP4, .proto = BL_UDP };

		l.sport = t[i].sport;
		l.dport = t[i].dport;
		assert_int_equal(bl_class_is_top(&l), t[i].top);
		assert_int_equal(bl_class_is_fcp(&l), t[i].fcp);
		l.proto = BL_TCP;
		assert_int_equal(bl_class_is_top(&l), 0);
		assert_int_equal(bl_class_is_fcp(&l), 0);
	}
}

/*
 * Fragments, and frames with IP options, have no ports. A frame whose header contradicts itself has
 * no kind.
 */
static void bl_frame_class__odd_ip(void **state)
{
	static const struct {
		uint8_t ver_ihl;
		uint16_t frag;
		uint8_t proto, kind, ports;
	} t[] = {
		{ 0x45, 0x0000, BL_UDP, BL_FRAME_IP4, 1 },
		{ 0x45, 0x4000, BL_UDP, BL_FRAME_IP4, 1 },
		{ 0x45, 0x8000, BL_UDP, BL_FRAME_IP4, 1 },
		{ 0x45, 0x2000, BL_UDP, BL_FRAME_IP4, 0 },
		{ 0x45, 0x0001, BL_UDP, BL_FRAME_IP4, 0 },
		{ 0x45, 0x1fff, BL_UDP, BL_FRAME_IP4, 0 },
		{ 0x46, 0x0000, BL_UDP, BL_FRAME_IP4, 0 },
		{ 0x4f, 0x0000, BL_TCP, BL_FRAME_IP4, 0 },
		{ 0x45, 0x0000, 1, BL_FRAME_IP4, 0 },
		{ 0x44, 0x0000, BL_UDP, BL_FRAME_OTHER, 0 },
		{ 0x55, 0x0000, BL_UDP, BL_FRAME_OTHER, 0 },
		{ 0x65, 0x0000, BL_UDP, BL_FRAME_OTHER, 0 },
	};
	struct f f;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_frame_class want = { .kind = t[i].kind };

		f = make_eth(0, 0);
		append_ip4(&f, t[i].ver_ihl, 0xb8, t[i].frag, t[i].proto);
		append_ports(&f);
		if (want.kind == BL_FRAME_IP4) {
			want.l3_off = 14;
			want.dscp = 46;
			want.proto = t[i].proto;
		}
		if (t[i].ports) {
			want.sport = 0x1234;
			want.dport = 0xabcd;
		}
		expect_class(&f, want, 1, want.kind == BL_FRAME_OTHER);
	}
	f = make_eth(0, 0);
	append_ip6(&f, 4, 0xb8, BL_UDP);
	append_ports(&f);
	expect_class(&f, (struct bl_frame_class){ 0 }, 1, 1);
}

static void bl_frame_class__nd(void **state)
{
	static const struct {
		uint8_t type, proto;
		uint8_t kind;
	} t[] = {
		{ 132, BL_ICMP6, BL_FRAME_IP6 }, { 133, BL_ICMP6, BL_FRAME_ND },
		{ 135, BL_ICMP6, BL_FRAME_ND },  { 137, BL_ICMP6, BL_FRAME_ND },
		{ 138, BL_ICMP6, BL_FRAME_IP6 }, { 128, BL_ICMP6, BL_FRAME_IP6 },
		{ 135, 59, BL_FRAME_IP6 },       { 135, 0, BL_FRAME_IP6 },
	};
	struct f f;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		f = make_eth(0, 0);
		append_ip6(&f, 6, 0xc0, t[i].proto);
		append_bytes(&f, &t[i].type, 1);
		expect_class(
			&f,
			(struct bl_frame_class){
				.kind = t[i].kind, .l3_off = 14, .dscp = 48, .proto = t[i].proto },
			t[i].kind != BL_FRAME_ND, 0);
	}
	f = make_eth(0, 0);
	append_ip6(&f, 6, 0, BL_ICMP6); /* nothing behind the header */
	expect_class(
		&f,
		(struct bl_frame_class){ .kind = BL_FRAME_IP6, .l3_off = 14, .proto = BL_ICMP6 }, 1,
		1);
}

static void bl_hold_class__dscp(void **state)
{
	uint32_t tos;

	(void)state;
	for (tos = 0; tos < 256; tos++) {
		struct bl_frame_class want = {
			.kind = BL_FRAME_IP4, .l3_off = 14, .proto = 1, .dscp = (uint8_t)(tos / 4)
		};
		struct f f = make_eth(0, 0);

		append_ip4(&f, 0x45, (uint8_t)tos, 0, 1);
		expect_class(&f, want, 1, tos < 160);
		f = make_eth(0, 0);
		append_ip6(&f, 6, (uint8_t)tos, 1);
		want.kind = BL_FRAME_IP6;
		expect_class(&f, want, 1, tos < 160);
	}
}

/*
 * A frame cut at any place, under ASan: if it is shorter than an Ethernet header, it is refused;
 * otherwise the result never contains more than its bytes say.
 */
static void bl_frame_class__cut(void **state)
{
	int v;

	(void)state;
	for (v = 0; v < 4; v++) {
		struct f f = make_eth(0, v & 1);
		uint32_t l3 = 14 + 4 * (uint32_t)(v & 1), l4, n;
		struct bl_frame_class l;

		if (v & 2)
			append_ip6(&f, 6, 0xb8, BL_UDP);
		else
			append_ip4(&f, 0x45, 0xb8, 0, BL_UDP);
		l4 = f.n;
		append_ports(&f);
		for (n = 0; n <= f.n; n++) {
			assert_int_equal(classify_cut(&f, n, &l), n < 14 ? -1 : 0);
			if (n < 14)
				continue;
			assert_int_equal(l.kind, n < l4  ? BL_FRAME_OTHER
						 : v & 2 ? BL_FRAME_IP6
							 : BL_FRAME_IP4);
			assert_int_equal(l.l3_off, n < l4 ? 0 : l3);
			assert_int_equal(l.dport, n < l4 + 4 ? 0 : 0xabcd);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_frame_class__kinds),
		cmocka_unit_test(bl_frame_class__whose_port),
		cmocka_unit_test(bl_frame_class__odd_ip),
		cmocka_unit_test(bl_frame_class__nd),
		cmocka_unit_test(bl_hold_class__dscp),
		cmocka_unit_test(bl_frame_class__cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
