/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the daemon reads and writes in the pages that endpoints share with their host's programs: a
 * line in flight, a word to wake, a window, and the failures that were announced. Who may attach,
 * and what happens to an endpoint whose process goes, is endpoint.c.
 *
 * They are mapped for the moment: it happens when an endpoint comes or goes, not while it works.
 * One word is stored at a time, never a whole value, since programs and processes write beside it.
 *
 * Example: endpoint 61696 in slot 3 dies at bus time 1000 with frames of timestamps 940 and 970 in
 * its window. bl_ep_dead_at() returns 940, the line lets C pass no further than that, and
 * bl_failure_announce() puts { port 61696, ts 940 } into the ring as number 7. Endpoints that have
 * dealt with it store 7 in done[]; bl_failure_done() says when all have.
 */
#ifndef BARLINE_ENDPOINT_PAGES_H
#define BARLINE_ENDPOINT_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "maps/failure_abi.h"
#include "maps/host_abi.h"

struct bl_node;

/** bl_ep_clear_wake - nobody in @slot waits for anything. Returns 0 or -errno. */
int bl_ep_clear_wake(struct bl_node *n, unsigned int slot);

/**
 * bl_ep_publish - how many endpoints there are, for those that share the NIC's ring. The process of
 * slot
 * @gone counts no more; BL_EPS_MAX: all do. Returns 0 or -errno.
 */
int bl_ep_publish(struct bl_node *n, unsigned int gone);

/**
 * bl_ep_clear_line - what a dead process leaves in flight, it will not send. What it leaves in its
 * window stays unless @all says that the line is to be another process's. Returns 0 or -errno.
 */
int bl_ep_clear_line(struct bl_node *n, unsigned int slot, bool all);

/** bl_ep_holds_commit - whether what is in the window of @slot holds the rack's commit barrier. */
bool bl_ep_holds_commit(const struct bl_node *n, unsigned int slot);

/**
 * bl_ep_dead_at - the process of @slot is dead: from when on what it sent is not committed. C does
 * not pass that until bl_ep_over() or bl_ep_clear_line(). 0, with errno: the pages could not be
 * mapped.
 */
uint64_t bl_ep_dead_at(struct bl_node *n, unsigned int slot, enum bl_out_why why);

/**
 * bl_ep_put_out - the same for processes that live, whatever they go on doing. @slots: a bit for
 * each slot; their entries in "eps" say BL_EP_DEAD already. @t: by slot; 0: could not be mapped,
 * with errno. Waits for an RCU grace period: 8 to 20 ms, for all of them together.
 */
void bl_ep_put_out(struct bl_node *n, uint64_t slots, enum bl_out_why why, uint64_t t[BL_EPS_MAX]);

/** bl_ep_over - the line of @slot counts for nothing any more. Returns 0 or -errno. */
int bl_ep_over(struct bl_node *n, unsigned int slot);

/** bl_ep_out - what the line of @slot says: 0, T, or BL_OUT_OVER; *@why: 0: not final. */
uint64_t bl_ep_out(const struct bl_node *n, unsigned int slot, enum bl_out_why *why);

/**
 * bl_ep_bye - above all that the process of @slot has sent, if it has left by bl_exit(); 0: it has
 * not.
 */
uint64_t bl_ep_bye(const struct bl_node *n, unsigned int slot);

/**
 * bl_lines_map - the in-flight page, of which programs and processes write other words; NULL, with
 * errno.
 */
struct bl_inflight *bl_lines_map(const struct bl_node *n);
void bl_lines_unmap(struct bl_inflight *page);

/**
 * bl_ep_none_failed - what failed before the endpoint was there is nothing to it. Returns 0 or
 * -errno.
 */
int bl_ep_none_failed(const struct bl_node *n, unsigned int slot);

/**
 * bl_failure_announce - announces a failure to the endpoints of this host; its number is given
 * here. No-op if it was announced before. Returns 0 or -errno.
 */
int bl_failure_announce(struct bl_node *n, const struct bl_failure *f);

/** bl_failure_done - whether all endpoints of this host have processed all announcements. */
bool bl_failure_done(struct bl_node *n);

/** bl_failures_replace - for tests: uses @fd as the map "failures". Returns the former fd. */
int bl_failures_replace(struct bl_node *n, int fd);

/** bl_failures_map - the announcements; NULL, with errno. */
struct bl_failures *bl_failures_map(const struct bl_node *n);
void bl_failures_unmap(struct bl_failures *page);

#endif
