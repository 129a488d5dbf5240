/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by fuzz_switch.c and fuzz_host.c, which run whole programs, compiled natively
 * (tests/native/native.h): frames from the input, plain or with their fields, and the counters.
 */
#ifndef BARLINE_FUZZ_NATIVE_H
#define BARLINE_FUZZ_NATIVE_H

#include "tests/fuzz/fuzz.h"

#include "maps/clock_abi.h"
#include "maps/reasons_abi.h"
#include "tests/native/native.h"
#include "tests/prog/frames.h"

#define BOUND 50000ULL
#define BUS   ((6000ULL << BL_TS_BITS) + 0x123456789abcULL)

static const enum bl_reason_kind kind_of[] = {
#define KIND(sym, name, kind, text) [BL_R_##sym] = BL_KIND_##kind,
	BL_REASONS(KIND)
#undef KIND
};

static uint64_t bus_now;

/* Bus time stands still at @bus until it is set again. */
static void fuzz_clock(uint64_t bus)
{
	struct bl_clock_seg s = { .mono_ns = 1ULL << 40, .bus_ns = bus, .rate = -(1 << 30) };
	struct bl_clock c = { .flags = BL_CLOCK_VALID,
			      .seg = { s, s },
			      .as_of_ns = s.mono_ns,
			      .void_after_ns = ~0ULL,
			      .bound_ns = BOUND };

	native_now_ns = s.mono_ns;
	bus_now = bus;
	native_put("clock", 0, &c);
}

/* A time near the clock, or any. */
static uint64_t fuzz_time(struct fuzz_in *in)
{
	uint8_t k = fuzz_u8(in);

	if (k < 96)
		return bus_now - (uint64_t)k * 1000;
	if (k < 128)
		return bus_now + (uint64_t)(k - 96) * 2000;
	if (k < 192)
		return bus_now - (1ULL << (k & 63));
	return bus_now + fuzz_u64(in);
}

/* A frame with its fields from the input. */
static void fuzz_fields(struct fuzz_in *in, struct frame *f)
{
	uint8_t what = fuzz_u8(in), how = fuzz_u8(in);
	uint32_t from = what >> 6;
	struct desc d = what & 32 ? data_frame6(from, how & 3, 0, 0)
				  : data_frame(from, how & 3, 0, 0);

	if ((what & 31) == BL_OP_BEACON)
		d = beacon_frame(from, 0);
	d.op = what & 31;
	d.ts = fuzz_time(in);
	d.b = fuzz_time(in);
	d.c = how & 4 ? d.b : fuzz_time(in);
	d.psn = fuzz_u8(in);
	d.tags = how >> 3 & 1;
	d.csum = how >> 4 & 1;
	d.sport = (__u16)(BL_PORT_BASE + (fuzz_u8(in) & 15));
	d.dport = (__u16)(BL_PORT_BASE + (fuzz_u8(in) & 15));
	d.body = how & 32 ? fuzz_u16(in) % 1600 : fuzz_u8(in) & 63;
	if (how & 64)
		d.flag_byte = fuzz_u8(in);
	if (how & 128)
		d.node = 0x5a5a5a5a;
	build(f, &d);
}

/* A frame with bytes from the input behind its fields, damaged, or of the input alone. */
static void fuzz_frame(struct fuzz_in *in, uint8_t kind, struct frame *f)
{
	size_t n;
	const uint8_t *p;

	if (kind & 1) {
		fuzz_fields(in, f);
		if (kind & 2)
			f->p[fuzz_u16(in) % f->n] ^= (uint8_t)(1 + fuzz_u8(in));
		if (kind & 4) {
			n = fuzz_u8(in);
			n = n < f->n ? n : f->n;
			p = fuzz_take(in, &n);
			memcpy(f->p + f->n - n, p, n);
		}
		return;
	}
	n = fuzz_u8(in) | (kind & 2 ? 256u : 0);
	p = fuzz_take(in, &n);
	memset(f->p, 0, sizeof(f->p));
	if (n)
		memcpy(f->p, p, n);
	f->n = (__u32)(n < 14 ? 14 : n);
}

/* bl_parse() of @f, where its IP header is aligned. */
static inline enum bl_reason fuzz_parse(const struct frame *f, __u16 base, __u16 count,
					struct bl_frame *b)
{
	uint8_t *p = fuzz_copy(f->p, f->n, 2);
	enum bl_reason why = bl_parse(p, p + f->n, base, count, b);

	fuzz_free(p, 2);
	return why;
}

/* The counters that were there before, and how many ends of frames have been counted since. */
static uint64_t fuzz_ends(uint64_t *last, uint32_t keys, enum bl_reason *why)
{
	uint64_t ends = 0;
	uint32_t r, k;

	for (r = 0; r < BL_REASON_MAX; r++) {
		const uint64_t *n = native_get("counts", r);

		if (!memcmp(n, last + r * keys, keys * sizeof(*n)))
			continue;
		FUZZ_CHECK(r < BL_R_COUNT);
		for (k = 0; k < keys; k++) {
			uint64_t by = n[k] - last[r * keys + k];

			if (by && kind_of[r] != BL_KIND_NOTE) {
				ends += by;
				*why = (enum bl_reason)r;
			}
		}
		memcpy(last + r * keys, n, keys * sizeof(*n));
	}
	return ends;
}

#endif
