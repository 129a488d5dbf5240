/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The page of failure announcements (maps/failure_abi.h) as the endpoint reads it. Announcements
 * have consecutive numbers. Three numbers in struct bl_endpoint divide them: those up to @fail_seen
 * are handled, callback included; of those up to @fail_settled only the callbacks are missing;
 * those up to @fail_begun are read, and what they discard was discarded.
 */
#ifndef BARLINE_LIB_FAILURES_H
#define BARLINE_LIB_FAILURES_H

#include "internal.h"

/** bl_failures_at - announcement @number, which was read and is above ep->fail_seen. */
static inline const struct bl_failure *bl_failures_at(const struct bl_endpoint *ep, uint64_t number)
{
	return &ep->fails[number % BL_FAILS_MAX];
}

/** bl_failures_is_at - whether the announcement names address @a, or all endpoints of its host. */
static inline bool bl_failures_is_at(const struct bl_failure *f, const struct bl_addr *a)
{
	return !memcmp(f->addr, a->ip, 16) && (!f->port || f->port == a->port);
}

/** bl_failures_other_life - whether the announcement names a process, and not the one of @life. */
static inline bool bl_failures_other_life(const struct bl_failure *f, uint16_t life)
{
	return f->port && f->life && f->life != life;
}

/**
 * bl_failures_last - number of the latest announcement; 0: none. Read it after the barriers, since
 * the commit barrier does not pass T before the page has the announcement, and before the ring.
 */
uint64_t bl_failures_last(const struct bl_endpoint *ep);

/**
 * bl_failures_read - copy announcement @number from the page to ep->fails. Returns false if the
 * daemon has overwritten it, or is doing so now.
 */
bool bl_failures_read(struct bl_endpoint *ep, uint64_t number);

/**
 * bl_failures_limit - messages of the reliable stream below this timestamp may be delivered: the
 * commit barrier, or the lowest T of an announcement that is not handled yet.
 */
uint64_t bl_failures_limit(const struct bl_endpoint *ep);

/** bl_failures_is_gone - whether process @life at the address of @p was announced as failed. */
bool bl_failures_is_gone(const struct bl_peer *p, uint16_t life);

#endif
