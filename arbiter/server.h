/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Fastpass arbiter as a library (Fastpass section 6.2): demands come in by FCP, an allocator
 * gives timeslots, a path selector gives paths, ALLOCs go out.
 *
 *	sockets -> comm --asks--> allocation --grants--> paths --grants--> comm -> sockets
 *
 * Each stage is a thread, pinned if the configuration says where. Between two stages lies a ring
 * with one producer and one consumer (Concurrency Kit). With one thread the same stages run in turn
 * in one loop. A run of the allocator ends with a mark, so that comm sends each endpoint one ALLOC
 * for it. With several path threads the runs go to them in turn, and comm takes them back in the
 * same order.
 *
 * Example, 1.23 us slots, lead 100 us, a run every 16 slots: at time t the allocator is asked for
 * slots from (t + 100 us) / 1.23 us on, and 20 us later for the next ones. Its window reaches 64
 * slots further, so the horizon is 100 + 79 + 20 = 199 us. With watchdogs of 1 ms that leaves a
 * lease of 801 us (core/fastpass/watchdog_core.h).
 *
 * Thread rules: one thread calls bl_arb_new(), bl_arb_run() and bl_arb_free(). Any thread and any
 * signal handler may call bl_arb_stop(). Any thread may call bl_arb_read() while the arbiter runs:
 * each number is whole, but the numbers may be of slightly different moments.
 */
#ifndef BARLINE_ARBITER_SERVER_H
#define BARLINE_ARBITER_SERVER_H

#include <stdint.h>

#include "arbiter/config.h"
#include "arbiter/counters.h"
#include "arbiter/stage.h"
#include "base/log.h"

struct bl_arb;

/**
 * bl_arb_new - Open the sockets and reserve the memory of an arbiter; nothing runs yet.
 * @cfg: copied, but for @endpoints, which must outlive the arbiter.
 * @alloc: state of the allocator @aops.
 * @pops: the path selector; NULL: no path stage.
 * @paths: states of the path selector, one for each path thread.
 *
 * Returns 0 or -errno with @err.
 */
int bl_arb_new(struct bl_arb **out, const struct bl_arb_cfg *cfg, const struct arb_alloc_ops *aops,
	       void *alloc, const struct arb_path_ops *pops, void *const *paths,
	       struct bl_err *err);
/**
 * bl_arb_run - Serve until bl_arb_stop() is called. The calling thread is comm, and starts and
 * joins the others. Returns 0 or -errno.
 */
int bl_arb_run(struct bl_arb *a, struct bl_err *err);
/** bl_arb_stop - Make bl_arb_run() return soon. Async-signal-safe. */
void bl_arb_stop(struct bl_arb *a);
/**
 * bl_arb_retune - Set the estimate of a round trip, as @rtt_us of struct bl_arb_cfg, and the
 * address of the fault isolation service. Any thread may call it while the arbiter runs.
 */
void bl_arb_retune(struct bl_arb *a, uint32_t rtt_us, const struct in6_addr *faults);
/** bl_arb_addr - The first address on which it listens. */
struct in6_addr bl_arb_addr(const struct bl_arb *a);
/** bl_arb_free - Release an arbiter that does not run. NULL: no-op. */
void bl_arb_free(struct bl_arb *a);

/** bl_arb_read - Read the totals and, unless @rows is NULL, the first @n endpoints. */
void bl_arb_read(struct bl_arb *a, struct bl_arb_total *t, struct bl_arb_row *rows, uint32_t n);

/** bl_arb_table - Hash of the list of endpoints, which hosts and arbiters compare. */
uint32_t bl_arb_table(const struct bl_arb_endpoint *e, uint32_t n);

#endif
