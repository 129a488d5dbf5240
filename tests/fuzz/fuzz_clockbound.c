/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes the reader of ClockBound's file (core/clockbound_core.h). The input is a list of files of
 * 80 bytes, each after a byte for the time since the last reading and one for how the head is
 * mended: bit 0 the magic and the size, bit 1 the version, which is then 1 or 2.
 *
 * It checks that a clock is called synchronised only if the status says so and the bound is neither
 * negative nor old, and that a bound is new only if it is younger than the last of two readings.
 */
#include "fuzz.h"

#include "core/clockbound_core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct bl_cb_view v = { 0 };
	uint64_t mono = 100000000000;

	while (in.left) {
		uint64_t last = v.last_ns, before = v.before_ns,
			 took = (uint64_t)fuzz_u8(&in) * 10000000;
		uint8_t mend = fuzz_u8(&in);
		struct bl_clock_sample s = { 0 };
		struct bl_clockbound f = { 0 };
		size_t n = sizeof(f);
		const uint8_t *p = fuzz_take(&in, &n);
		enum bl_clock_reason why;
		__u64 as_of;

		memcpy(&f, p, n);
		if (mend & 1) {
			f.magic[0] = BL_CB_MAGIC0;
			f.magic[1] = BL_CB_MAGIC1;
			f.size = sizeof(f);
		}
		if (mend & 2)
			f.version = (uint16_t)(1 + (mend >> 2 & 1));
		FUZZ_CHECK(!bl_cb_whole(&f, &f) == (!f.generation || f.generation & 1));
		mono += took;
		if (!bl_cb_layout(&f, n))
			continue;
		FUZZ_CHECK(n >= BL_CB_V1_BYTES && (f.version == 1 || n == sizeof(f)));
		why = bl_cb_judge(&v, &f, mono, &s);
		FUZZ_CHECK(why < BL_CLOCK_REASONS_NUMBER && !!s.synced == !why);
		FUZZ_CHECK(s.synced || !s.fresh);
		if (!s.synced)
			continue;
		FUZZ_CHECK((f.version == 1 ? f.v1.status : f.v2.status) == BL_CB_SYNCHRONIZED);
		FUZZ_CHECK(f.bound_ns >= 0 && bl_cb_ns(&f.as_of, &as_of));
		FUZZ_CHECK(mono < as_of + BL_CB_STALE_NS && as_of <= mono + BL_CB_COARSE_NS);
		FUZZ_CHECK(!s.fresh || (before && as_of > last));
		FUZZ_CHECK(s.bound_ns > (uint64_t)f.bound_ns || s.bound_ns > BL_CLOCK_BOUND_MAX_NS);
	}
	return 0;
}
