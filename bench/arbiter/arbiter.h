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

/*
 * arbiter_alloc.c, arbiter_path.c, arbiter_pipe.c: rows of the table; NULL after an error message
 */
json_t *arb_bench_alloc(const struct arb_args *a);
json_t *arb_bench_path(const struct arb_args *a);
json_t *arb_bench_pipe(const struct arb_args *a);

/* arbiter_run.c */
struct bl_fp_file;
struct bl_arb_cfg;
/**
 * arb_serve - be the arbiter of @rank until SIGTERM. @how: threads, cpus, spin; the rest comes
 * from @f. @ready: called before the first request. 0 or 1 after a message.
 */
int arb_serve(const struct bl_fp_file *f, unsigned int rank, const struct bl_arb_cfg *how,
	      void (*ready)(void *ctx), void *ctx);
/**
 * arb_ask_each - what each process of this network namespace with a socket of that name says
 * ("arbiter": BL_ARB_STATUS, "controller": BL_CTL_STATUS), after it heard @orders (NULL: none; see
 * arbiter/status.c). An array. arb_ask - one, by its socket.
 */
json_t *arb_ask_each(const char *door, const char *orders);
json_t *arb_ask(const char *path, const char *orders);

#endif
