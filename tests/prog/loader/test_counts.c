// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * loader/load/counts.c on maps like those of the two roles: a map holds the counters by reason and
 * CPU, of frames and then of bytes; the caller gets them by place (a port of a switch, or BL_HC_*).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "loader/load/counts.h"
#include "maps/host_abi.h"
#include "maps/reasons_abi.h"
#include "maps/switch_abi.h"

static int cpus;
static struct bl_counts out[BL_SW_COUNTS];

/*
 * Returns the value of reason @r at place @k on CPU @c. All values differ, except that some reasons
 * are 0 everywhere, as if they had never been given.
 */
static uint64_t value_at(uint32_t r, uint32_t k, int c)
{
	return r % 5 == 4 ? 0 : ((uint64_t)r << 32) + (k << 8) + (uint64_t)c + 1;
}

/* The bytes, unlike all values of frames; programs count none for beacons. */
static uint64_t bytes_at(uint32_t r, uint32_t k, int c)
{
	return BL_BEACON_REASON(r) || !value_at(r, k, c) ? 0 : value_at(r, k, c) + (1ULL << 48);
}

static int counts_map(uint32_t places, uint32_t reasons)
{
	uint64_t *v = calloc((size_t)cpus * 2 * places, sizeof(*v));
	int fd = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "counts", 4,
				2 * places * (uint32_t)sizeof(*v), reasons, NULL),
	    c;
	uint32_t r, k;

	assert_non_null(v);
	assert_true(fd >= 0);
	for (r = 0; r < reasons; r++) {
		for (c = 0; c < cpus; c++)
			for (k = 0; k < places; k++) {
				v[(uint32_t)c * 2 * places + k] = value_at(r, k, c);
				v[((uint32_t)c * 2 + 1) * places + k] = bytes_at(r, k, c);
			}
		assert_int_equal(bpf_map_update_elem(fd, &r, v, BPF_ANY), 0);
	}
	free(v);
	return fd;
}

/*
 * Fails unless the first @keys places have their original values, except place @zero, which must be
 * 0.
 */
static void expect_counts(int fd, uint32_t keys, uint32_t zero)
{
	uint32_t r, k;
	int c;

	memset(out, 0xff, sizeof(out));
	assert_int_equal(bl_counts_read(fd, out, keys), 0);
	for (k = 0; k < keys; k++) {
		for (r = 0; r < BL_REASON_MAX; r++) {
			uint64_t want = 0, bytes = 0;

			for (c = 0; c < cpus && k != zero; c++) {
				want += value_at(r, k, c);
				bytes += bytes_at(r, k, c);
			}
			assert_int_equal(out[k].n[r], want);
			assert_int_equal(out[k].bytes[r], BL_BEACON_REASON(r) ? 142 * want : bytes);
		}
	}
	if (keys < BL_SW_COUNTS)
		assert_int_equal(out[keys].n[0], UINT64_MAX); /* not written */
}

static void counts_read__sums_cpus(void **state)
{
	static const struct {
		uint32_t places, keys;
	} t[] = { { BL_SW_COUNTS, BL_SW_COUNTS },
		  { BL_SW_COUNTS, BL_COUNTS_UNKNOWN + 1 },
		  { BL_HC_MAX, BL_HC_MAX },
		  { BL_HC_MAX, BL_HC_COUNT },
		  { BL_HC_MAX, 0 } };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		int fd = counts_map(t[i].places, BL_REASON_MAX);

		expect_counts(fd, t[i].keys, UINT32_MAX);
		close(fd);
	}
}

static void counts_read__another_map(void **state)
{
	int fd = counts_map(BL_HC_MAX, BL_REASON_MAX),
	    few = counts_map(BL_HC_MAX, BL_REASON_MAX - 1);

	(void)state;
	assert_int_equal(bl_counts_read(fd, out, BL_HC_MAX + 1), -EPROTO);
	assert_int_equal(bl_counts_read(few, out, 1), -EPROTO);
	assert_int_equal(bl_counts_forget(few, 0), -EPROTO);
	assert_true(bl_counts_read(-1, out, 1) < 0);
	close(few);
	close(fd);
}

static void counts_forget__one_place(void **state)
{
	static const uint32_t keys[] = { 0, 1, BL_SW_PORTS_MAX - 1, BL_SW_COUNTS - 1 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		int fd = counts_map(BL_SW_COUNTS, BL_REASON_MAX);

		assert_int_equal(bl_counts_forget(fd, keys[i]), 0);
		expect_counts(fd, BL_SW_COUNTS, keys[i]);
		assert_int_equal(bl_counts_forget(fd, BL_SW_COUNTS), -EPROTO);
		expect_counts(fd, BL_SW_COUNTS, keys[i]);
		close(fd);
	}
}

static int setup(void **state)
{
	(void)state;
	cpus = libbpf_num_possible_cpus();
	return cpus < 1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_read__sums_cpus),
		cmocka_unit_test(counts_read__another_map),
		cmocka_unit_test(counts_forget__one_place),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
