/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sources of a bound for the system clock, one per file of this folder. To add one: add it to
 * enum bl_clock_source_kind (maps/clock_abi.h), its functions to bl_clock_source() in source.c, and
 * its name to loader/config_clock.c.
 */
#ifndef BARLINE_LOADER_CLOCK_SOURCE_H
#define BARLINE_LOADER_CLOCK_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/clock_source_core.h"

/** struct bl_clock_options - what the configuration says of a source; see struct bl_node_cfg. */
struct bl_clock_options {
	const char *name; /* of the node, for the log */
	const char
		*socket; /* ptp4l: its socket, clockbound: its file; "": where it is by default */
	const char *phc; /* ptp4l: its hardware clock, "none"; "": the one of its interface */
	uint8_t domain;  /* ptp4l */
	uint8_t transport_specific;
	bool grandmaster;   /* ptp4l: this clock may be the rack's time */
	bool bound_default; /* kernel: nobody has written bound_us */
	char own_path[108]; /* ptp4l: path of the daemon's own socket */
};

/** struct bl_clock_memory - what a source remembers from one reading to the next; zero at first. */
struct bl_clock_memory {
	struct bl_kernel_reading kernel; /* kernel: the last reading that counts */
	bool skipped;     /* kernel: there was one since, at the beginning of a second */
	bool spoken;      /* kernel: maxerror has said something since the start */
	void *own;        /* others: what they have allocated; NULL: nothing yet */
	char detail[160]; /* what the last reason was about, for the log; "": nothing to add */
};

/**
 * struct bl_clock_source - a source. All functions are called by the keeper of the record.
 * @read: fills in *@s at @mono, CLOCK_MONOTONIC. Does not block. Returns why the clock is not
 * synchronised, or 0; a negative errno if not even the kernel's TAI offset could be read.
 * @close: frees what @m holds. NULL: nothing to free.
 */
struct bl_clock_source {
	int (*read)(struct bl_clock_memory *m, const struct bl_clock_options *o, uint64_t mono,
		    struct bl_clock_sample *s);
	void (*close)(struct bl_clock_memory *m, const struct bl_clock_options *o);
};

/** bl_clock_source - the source of kind @kind, or NULL if the bound is not measured (trust). */
const struct bl_clock_source *bl_clock_source(uint32_t kind);

extern const struct bl_clock_source bl_clock_kernel;
extern const struct bl_clock_source bl_clock_ptp4l;
extern const struct bl_clock_source bl_clock_clockbound;

#endif
