/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TOP's frames for the program tests of the switch. Include it after switch_util.h. */
#ifndef BARLINE_TEST_TOKEN_UTIL_H
#define BARLINE_TEST_TOKEN_UTIL_H

#include <bpf/libbpf.h>
#include "core/top/top_token_core.h"

/*
 * The ns_q20 of a token time of 6.6 ms, so long that the test's own steps take no time in
 * comparison.
 */
#define SLOW     0xffffffffu
#define SLOW_NS  6643711ULL
#define LINK_UDP 8

/** struct top_desc - a frame of TOP, field by field. */
struct top_desc {
	struct desc d; /* addresses, tags, ports */
	__u8 opcode, cls;
	__u32 body;    /* bytes behind struct bl_top_hdr */
	__u16 udp_len; /* if not 0, used instead of the correct UDP length */
};

/* Returns a token of class @cls from host @from to host @to. */
MAYBE_UNUSED static struct top_desc token_of(__u32 from, __u32 to, bool v6, __u8 cls)
{
	struct top_desc t = { .d = v6 ? data_frame6(from, to, T0, T0)
				      : data_frame(from, to, T0, T0),
			      .opcode = BL_TOP_OPCODE_BYTE(BL_TOP_TOKEN),
			      .cls = cls };

	t.d.sport = BL_TOP_SPORT_BASE + 77;
	t.d.dport = BL_TOP_PORT;
	t.d.tos = 0;
	return t;
}

/* Builds the frame that @t describes. */
MAYBE_UNUSED static void build_top(struct frame *f, const struct top_desc *t)
{
	__u32 l4_len = LINK_UDP + sizeof(struct bl_top_hdr) + t->body, i;

	memset(f->p, 0, sizeof(f->p));
	f->n = 0;
	put(f, t->d.dst, 6);
	put(f, t->d.src, 6);
	for (i = 0; i < t->d.tags; i++) {
		put16(f, BL_ETH_8021Q);
		put16(f, 0x6000 | 100);
	}
	put16(f, t->d.v6 ? BL_ETH_IP6 : BL_ETH_IP);
	put_ip(f, &t->d, l4_len);
	put16(f, t->d.sport);
	put16(f, t->d.dport);
	put16(f, t->udp_len ? t->udp_len : (__u16)l4_len);
	put16(f, 0);
	put8(f, t->opcode);
	put8(f, t->cls);
	put16(f, 3);          /* flow */
	put32(f, 0x01020304); /* seq */
	put48(f, T0 & BL_TS_MASK);
	put32(f, 0xa1b2c3d4); /* tag */
	for (i = 0; i < t->body; i++)
		put8(f, (__u8)(i * 5 + 3));
}

MAYBE_UNUSED static struct bl_token_port token_port(__u32 port)
{
	struct bl_token_port p;

	map_get(sk->maps.token_ports, port, &p);
	return p;
}

/* Returns the counters of @port, summed over the CPUs. */
MAYBE_UNUSED static struct bl_token_counts token_counts(__u32 port)
{
	int cpus = libbpf_num_possible_cpus(), k;
	struct bl_token_counts *v = calloc((size_t)cpus, sizeof(*v)), sum = { .lost = 0 };
	size_t w;

	assert_non_null(v);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(sk->maps.token_counts), &port, v), 0);
	for (k = 0; k < cpus; k++)
		for (w = 0; w < sizeof(sum) / 8; w++)
			((__u64 *)&sum)[w] += ((__u64 *)&v[k])[w];
	free(v);
	return sum;
}

/* Gives all ports the slow rate, and clears their budgets and counters. */
MAYBE_UNUSED static void token_setup(const struct bl_token_cfg *c)
{
	const struct bl_token_port p = { .ns_q20 = SLOW };
	int cpus = libbpf_num_possible_cpus();
	struct bl_token_counts *none = calloc((size_t)cpus, sizeof(*none));
	__u32 i;

	assert_non_null(none);
	map_put(sk->maps.token_cfg, 0, c);
	for (i = 0; i < NPORTS; i++) {
		map_put(sk->maps.token_ports, i, &p);
		map_put(sk->maps.token_counts, i, none);
	}
	free(none);
}

#endif
