/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Common code of the fuzz harnesses: a check that ends the run and names itself, an exact copy of
 * the input, the input as a file, and a reader of the input as a stream of operations.
 */
#ifndef BARLINE_FUZZ_H
#define BARLINE_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

static inline uint32_t fuzz_u32(struct fuzz_in *in)
{
	uint32_t hi = fuzz_u16(in);

	return hi << 16 | fuzz_u16(in);
}

/* fuzz_u64 - mostly a number at an edge, so that a byte of the input suffices for one. */
static inline uint64_t fuzz_u64(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in);
	uint64_t hi;

	if (how < 64)
		return how;
	if (how < 192)
		return (1ULL << (how & 63)) - (how & 64 ? 1 : 0);
	if (how < 224)
		return UINT64_MAX - (how & 31);
	hi = fuzz_u32(in);
	return hi << 32 | fuzz_u32(in);
}

/* fuzz_take - the next @n bytes of the input, or as many as are left; *@n: how many they are. */
static inline const uint8_t *fuzz_take(struct fuzz_in *in, size_t *n)
{
	const uint8_t *p = in->p;

	*n = *n < in->left ? *n : in->left;
	in->p += *n;
	in->left -= *n;
	return p;
}

/** FUZZ_PATH - size of the path that fuzz_file() writes. */
#define FUZZ_PATH 32

/**
 * fuzz_file - makes a file of the bytes that exists in memory only, and writes its path to @path.
 * Returns its descriptor, which the caller closes.
 */
static inline int fuzz_file(const uint8_t *data, size_t size, char path[FUZZ_PATH])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, FUZZ_PATH, "/proc/self/fd/%d", fd);
	return fd;
}

#endif
