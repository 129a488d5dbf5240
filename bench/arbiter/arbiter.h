/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline arbiter bench: what its workloads share.
 *
 * Times are medians of blocks. A block is long compared with a context switch, and short compared
 * with the activity of another virtual machine on the same core, so that the median of many blocks
 * is the time that the code needs. The results of a block are kept and verified after it, outside
 * of the measured time; the first error ends the command with exit status 1.
 */
#ifndef BARLINE_BENCH_ARBITER_H
#define BARLINE_BENCH_ARBITER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "arbiter/alloc/alloc.h"
#include "arbiter/path/path.h"
#include "cli/util/out.h"

/* packets of 1500 bytes at 10 Gbit/s, with all overhead on the wire (Fastpass section 1) */
#define ARB_SLOT_NS   1230.0
#define ARB_SLOT_BITS 12300.0
#define ARB_BLOCKS    40
#define ARB_RACK      32u /* machines in a rack */

/** struct arb_args - Options. 0 or NULL selects all values of the experiment, or the default. */
struct arb_args {
	long long endpoints;
	long long window; /* slots that are allocated ahead */
	long long slots;  /* to measure in each row */
	long long tick;   /* slots between two runs of the allocator */
	long long mtus;   /* of each request */
	long long racks;
	long long paths; /* between racks */
	long long cap;   /* packets per slot on a path, out of a rack and into it */
	int policy;      /* enum bl_alloc_policy; -1: all */
	int how;         /* enum bl_path_how; -1: both */
	int isa;         /* enum bl_alloc_isa */
	double load;     /* 0 to 1 */
	long long seed;  /* of the random requests */
	const char *out; /* directory for result files */
};

/** struct arb_rnd - State of a random number generator (splitmix64); any value is a seed. */
struct arb_rnd {
	uint64_t x;
};

/* arbiter.c */
/** arb_rnd64 - Returns 64 random bits. */
uint64_t arb_rnd64(struct arb_rnd *r);
/** arb_unit - Returns a random number from 0 to below 1. */
double arb_unit(struct arb_rnd *r);
/** arb_below - Returns a random number from 0 to below @n. */
uint32_t arb_below(struct arb_rnd *r, uint32_t n);
/** arb_median - Sorts the @n values @v and returns their median; 0 if @n is 0. */
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
