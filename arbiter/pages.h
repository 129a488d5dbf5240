/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Zeroed memory for tables that are sized for a worst case which is seldom near: it has pages only
 * where it is used. Example: 4096 endpoints have 64 MiB of pairs; if ten of them talk, ten pages
 * are used.
 */
#ifndef BARLINE_ARBITER_PAGES_H
#define BARLINE_ARBITER_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/** bl_pages_map - Map @bytes zeroed bytes. Returns NULL if memory is short. */
static inline void *bl_pages_map(size_t bytes)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/** bl_pages_unmap - Release memory from bl_pages_map(). @bytes: as given there. @p: may be NULL. */
static inline void bl_pages_unmap(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

/**
 * bl_pages_touch - Make the kernel find pages now for the first 2 MiB: one huge page, or as many
 * small ones as runs of usual size write. @p: may be NULL.
 */
static inline void bl_pages_touch(void *p, size_t bytes)
{
	volatile uint8_t *b = p;
	size_t i;

	for (i = 0; b && i < bytes && i < 2u << 20; i += 4096)
		b[i] = b[i];
}

#endif
