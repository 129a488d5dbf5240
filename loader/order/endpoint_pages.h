/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the daemon reads and writes in the pages that endpoints share with their host's programs:
 * lines in flight, words to wake, windows, and the announced failures. endpoint_attach.c says who
 * may attach, endpoint.c what happens to an endpoint whose process goes.
 *
 * The pages are mapped for each call, which happens when an endpoint comes or goes, not while it
 * works. Single words are stored, never a whole value, since programs and processes write beside
 * them.
 *
 * Example: endpoint 61696 in slot 3 dies at bus time 1000 with frames of timestamps 940 and 970 in
 * its window. bl_ep_dead_at() returns 940, the line lets C pass no further than that, and
 * bl_failure_announce() puts { port 61696, ts 940 } into the ring as number 7. Endpoints that have
 * processed it store 7 in done[]; bl_failure_done() says when all have.
 */
#ifndef BARLINE_ENDPOINT_PAGES_H
#define BARLINE_ENDPOINT_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "maps/failure_abi.h"
#include "maps/host_abi.h"

struct bl_ep;
struct bl_node;

/** bl_ep_clear_wake - clears what the process in @slot waits for. Returns 0 or -errno. */
int bl_ep_clear_wake(struct bl_node *n, unsigned int slot);

/**
 * bl_ep_publish - writes how many endpoints there are, for those that share the NIC's ring.
 * @gone: slot whose process does not count any more; BL_EPS_MAX: all count.
 * Returns 0 or -errno.
 */
int bl_ep_publish(struct bl_node *n, unsigned int gone);

/**
 * bl_ep_make_page - makes the page of a new endpoint, and enters it into the map of pages. Returns
 * 0 or -errno; bl_ep_drop_page() in either case.
 */
int bl_ep_make_page(struct bl_ep *ep);

/** bl_ep_adopt_page - maps the page of an endpoint of an earlier daemon. Returns 0 or -errno. */
int bl_ep_adopt_page(struct bl_ep *ep);

/** bl_ep_close_page - unmaps the page; the endpoint keeps it. */
void bl_ep_close_page(struct bl_ep *ep);

/** bl_ep_drop_page - removes the page of the slot. Returns 0 or -errno. */
int bl_ep_drop_page(struct bl_node *n, unsigned int slot);

/** bl_ep_line - the line of the endpoint in @slot; NULL: it has none. */
struct bl_inflight *bl_ep_line(const struct bl_node *n, unsigned int slot);

/** bl_ep_word_get - reads what the daemon has decided about @slot. Returns 0 or -errno. */
int bl_ep_word_get(const struct bl_node *n, unsigned int slot, struct bl_ep_word *w);

/** bl_ep_word_set - writes what the daemon has decided about @slot. Returns 0 or -errno. */
int bl_ep_word_set(const struct bl_node *n, unsigned int slot, const struct bl_ep_word *w);

/** bl_ep_clear_line - clears what a dead process left in flight, which will not be sent. */
void bl_ep_clear_line(struct bl_node *n, unsigned int slot);

/** bl_ep_sent_commit - the C that the host has sent last; UINT64_MAX: it cannot be read. */
uint64_t bl_ep_sent_commit(const struct bl_node *n);

/** bl_ep_holds_commit - whether the window of @slot holds the rack's commit barrier. */
bool bl_ep_holds_commit(const struct bl_node *n, unsigned int slot);

/**
 * bl_ep_dead_at - the process of @slot is dead: returns the bus time T from which on what it sent
 * is not committed. C does not pass T until bl_ep_over() or bl_ep_drop_page(). Returns 0 with
 * errno if the pages could not be mapped.
 */
uint64_t bl_ep_dead_at(struct bl_node *n, unsigned int slot, enum bl_out_why why);

/**
 * bl_ep_put_out - bl_ep_dead_at() for processes that live, whatever they write from now on. Waits
 * for an RCU grace period, 8 to 20 ms, once for all of them.
 * @slots: a bit for each slot; their entries in "eps" are BL_EP_DEAD already.
 * @t: by slot: T; 0 with errno: the pages could not be mapped.
 */
void bl_ep_put_out(struct bl_node *n, uint64_t slots, enum bl_out_why why, uint64_t t[BL_EPS_MAX]);

/** bl_ep_wait_programs - waits until every program that runs now has ended: 8 to 20 ms. */
void bl_ep_wait_programs(const struct bl_node *n);

/** bl_ep_over - the line of @slot holds nothing any more. Returns 0 or -errno. */
int bl_ep_over(struct bl_node *n, unsigned int slot);

/**
 * bl_ep_out - returns what the line of @slot says: 0, T, or BL_OUT_OVER. *@why is 0 if T is not
 * final.
 */
uint64_t bl_ep_out(const struct bl_node *n, unsigned int slot, enum bl_out_why *why);

/**
 * bl_ep_bye - returns a time above everything that the process of @slot sent, if it left by
 * bl_exit(); else 0.
 */
uint64_t bl_ep_bye(const struct bl_node *n, unsigned int slot);

/** bl_failures_last_number - the number of the latest announcement. Returns 0 or -errno. */
int bl_failures_last_number(const struct bl_node *n, __u64 *last);

/**
 * bl_failure_announce - announces a failure to the endpoints of this host; its number is given
 * here. No-op if it was announced before. Returns 0 or -errno.
 */
int bl_failure_announce(struct bl_node *n, const struct bl_failure *f);

/** bl_failure_done - whether all endpoints of this host have processed all announcements. */
bool bl_failure_done(struct bl_node *n);

/** bl_failures_replace - for tests: uses @fd as the map "failures". Returns the former fd. */
int bl_failures_replace(struct bl_node *n, int fd);

/** bl_failures_map - maps the announcements; NULL with errno. */
struct bl_failures *bl_failures_map(const struct bl_node *n);
void bl_failures_unmap(struct bl_failures *page);

#endif
