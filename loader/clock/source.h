/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sources of a bound for the system clock, one per file of this folder. To add one: add it to
 * enum bl_clock_source_kind (maps/clock_abi.h), and its functions to bl_clock_source() in source.c.
 */
#ifndef BARLINE_LOADER_CLOCK_SOURCE_H
#define BARLINE_LOADER_CLOCK_SOURCE_H

#include <stdint.h>

#include "core/clock_source_core.h"

/** struct bl_clock_memory - what a source remembers from one reading to the next; zero at first. */
struct bl_clock_memory {
	uint64_t mono_ns;  /* CLOCK_MONOTONIC of the last reading; 0: there was none */
	uint64_t error_us; /* kernel: maxerror at the last reading */
};

/**
 * struct bl_clock_source - a source.
 * @read: fills in *@s at @mono, CLOCK_MONOTONIC. Does not block. Returns 0, or -errno if the source
 * does not answer; *@s is then not synchronised.
 */
struct bl_clock_source {
	int (*read)(struct bl_clock_memory *m, uint64_t mono, struct bl_clock_sample *s);
};

/** bl_clock_source - the source of kind @kind, or NULL if the bound is not measured (trust). */
const struct bl_clock_source *bl_clock_source(uint32_t kind);

extern const struct bl_clock_source bl_clock_kernel;

#endif
