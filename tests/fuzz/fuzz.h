/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Common code of the fuzz harnesses: a check that ends the run and names itself, an exact copy of
 * the input, and a reader of the input as a stream of operations.
 */
#ifndef BARLINE_FUZZ_H
#define BARLINE_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * This uses abort() and not assert(): libFuzzer keeps the input either way, and NDEBUG must not
 * disable the checks.
 */
#define FUZZ_CHECK(cond)                                                                   \
	do {                                                                               \
		if (!(cond)) {                                                             \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                           \
		}                                                                          \
	} while (0)

/*
 * fuzz_copy - returns a copy of @size bytes that end where the allocation ends, so that ASan
 * detects the first byte read beyond it. The copy starts @align bytes into the allocation: drivers
 * place a frame at 2 (NET_IP_ALIGN) so that the IP header is aligned, and UBSan holds the parser to
 * that. Free it with fuzz_free().
 */
static inline uint8_t *fuzz_copy(const uint8_t *data, size_t size, size_t align)
{
	uint8_t *p = malloc(size + align);

	if (!p)
		abort();
	if (size)
		memcpy(p + align, data, size);
	return p + align;
}

static inline void fuzz_free(uint8_t *p, size_t align)
{
	free(p - align);
}

/** struct fuzz_in - the input as a stream; zeros once it is used up. */
struct fuzz_in {
	const uint8_t *p;
	size_t left;
};

static inline uint8_t fuzz_u8(struct fuzz_in *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->p++;
}

static inline uint16_t fuzz_u16(struct fuzz_in *in)
{
	uint16_t hi = fuzz_u8(in);

	return (uint16_t)(hi << 8 | fuzz_u8(in));
}

#endif
