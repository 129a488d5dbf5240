/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the unit tests share: cmocka, a random generator whose seed is printed and can be given
 * (BL_SEED=n), and buffers that end where the allocation ends, so that ASan detects the first byte
 * read beyond them.
 */
#ifndef BARLINE_UNIT_H
#define BARLINE_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

struct rnd {
	uint64_t x;
};

static inline uint64_t rnd64(struct rnd *r)
{
	/* splitmix64 */
	uint64_t z = (r->x += 0x9E3779B97F4A7C15ULL);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
	return z ^ (z >> 31);
}

static inline uint32_t rnd_below(struct rnd *r, uint32_t n)
{
	return (uint32_t)(rnd64(r) % n);
}

static inline struct rnd rnd_seeded(const char *who)
{
	const char *given = getenv("BL_SEED");
	struct timespec t;
	uint64_t seed;

	clock_gettime(CLOCK_MONOTONIC, &t);
	seed = given ? strtoull(given, NULL, 0) : (uint64_t)t.tv_nsec ^ (uint64_t)t.tv_sec << 20;
	print_message("%s: BL_SEED=%llu\n", who, (unsigned long long)seed);
	return (struct rnd){ seed };
}

/*
 * Drivers place a frame at NET_IP_ALIGN, so that the IP header is aligned. UBSan checks that the
 * parser is written for this.
 */
#define FRAME_ALIGN 2

static inline uint8_t *exact_copy(const void *from, size_t n)
{
	uint8_t *p = malloc(n + FRAME_ALIGN);

	assert_non_null(p);
	if (n)
		memcpy(p + FRAME_ALIGN, from, n);
	return p + FRAME_ALIGN;
}

static inline void exact_free(uint8_t *p)
{
	free(p - FRAME_ALIGN);
}

#endif
