/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline arbiter bench: what the parts share.
 *
 * Times are medians of blocks: a block is long against a context switch and short against a
 * neighbour's work, and the median of many says what the code needs. What was computed in a block
 * is kept and checked after it, outside of the measured time; one fault ends the run with exit 1.
 */
#ifndef BARLINE_CLI_ARBITER_H
#define BARLINE_CLI_ARBITER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "arbiter/alloc/alloc.h"
#include "arbiter/path/path.h"
#include "cli/util/out.h"

/* 1500-byte packets at 10 Gbit/s, with all that surrounds them on the wire (Fastpass section 1) */
#define ARB_SLOT_NS   1230.0
#define ARB_SLOT_BITS 12300.0
#define ARB_BLOCKS    40
#define ARB_RACK      32u /* machines in a rack */

/**
 * struct arb_args - zero or NULL: the whole experiment.
 * @policy: -1: not given. @how: -1: both. @load: of 1.
 */
struct arb_args {
	long long endpoints, window, slots, tick, mtus, racks, paths, cap;
	int policy, how, isa;
	double load;
	long long seed;
	const char *out;
};

struct arb_rnd {
	uint64_t x;
};

/* arbiter.c */
uint64_t arb_rnd64(struct arb_rnd *r);
double arb_unit(struct arb_rnd *r);                /* [0, 1) */
uint32_t arb_below(struct arb_rnd *r, uint32_t n); /* [0, n) */
/** arb_median - of @v, which it sorts. */
double arb_median(double *v, unsigned int n);

/**
 * struct arb_bench - What to measure: one of the workloads of `barline arbiter bench`.
 */
struct arb_bench {
	const char *name;                             /* also part of the names of files */
	json_t *(*measure)(const struct arb_args *a); /* rows; NULL after a message */
	const struct col *cols;                       /* of the table and of the CSV file */
	size_t ncols;
};
extern const struct arb_bench arb_bench_alloc;    /* arbiter_alloc.c */
extern const struct arb_bench arb_bench_path;     /* arbiter_path.c */
extern const struct arb_bench arb_bench_pipeline; /* arbiter_pipe.c */

/**
 * arb_bench_main - `barline arbiter bench`. Returns the exit status.
 * @find: returns the workload with a name, or NULL
 * @names: names of all workloads, for help and errors
 */
int arb_bench_main(int argc, char **argv, const struct arb_bench *(*find)(const char *name),
		   const char *names);

#endif
