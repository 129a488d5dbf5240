/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of received frames and messages: buffers of four sizes with a free list each, and lists
 * of what the application may still read. Also the window that the ring's size allows each sender.
 */
#ifndef BARLINE_LIB_BUF_H
#define BARLINE_LIB_BUF_H

#include <stdlib.h>

#include "internal.h"

/**
 * bl_buf_new - a buffer that no free list has. @most: bytes that all buffers may have with it.
 * Returns NULL without memory.
 */
struct bl_buf *bl_buf_new(struct bl_endpoint *ep, uint32_t room, uint64_t most);

/** bl_buf_spare - take @b, which is not needed, from the memory of the endpoint. */
void bl_buf_spare(struct bl_endpoint *ep, struct bl_buf *b);

/** bl_buf_list - the free list of buffers with @room bytes. */
static inline struct bl_buf **bl_buf_list(struct bl_endpoint *ep, uint32_t room)
{
	return room == 216    ? &ep->free_small
	       : room == 1496 ? &ep->free_full
	       : room == 3544 ? &ep->free_jumbo
			      : &ep->free_huge;
}

/**
 * bl_buf_get - a buffer for a body of @len bytes. @most: bytes that all buffers may have,
 * BL_BUFS_MAX or less. Returns NULL without memory.
 */
static inline struct bl_buf *bl_buf_get(struct bl_endpoint *ep, uint32_t len, uint64_t most)
{
	uint32_t room = len <= 216 ? 216 : len <= 1496 ? 1496 : len <= 3544 ? 3544 : BL_BODY_MAX;
	struct bl_buf **list = bl_buf_list(ep, room), *b = *list;

	if (b)
		*list = b->free_next;
	else
		b = bl_buf_new(ep, room, most);
	if (b)
		b->at = ep->arrived;
	return b;
}

/** bl_buf_put - give a buffer back to the endpoint's free lists. */
static inline void bl_buf_put(struct bl_endpoint *ep, struct bl_buf *b)
{
	struct bl_buf **list = bl_buf_list(ep, b->room);

	if (ep->buf_bytes > BL_BUFS_KEEP + 2ULL * ep->ring_bytes) {
		bl_buf_spare(ep, b);
		return;
	}
	b->free_next = *list;
	*list = b;
}

/** bl_bufs_free - free the endpoint's free lists. */
void bl_bufs_free(struct bl_endpoint *ep);

/** bl_bigs_free - free a list of large messages. */
void bl_bigs_free(struct bl_big *b);

/** bl_lent_free - free what was lent to the application. */
void bl_lent_free(struct bl_lent *lent);

/** bl_rx_release - take back what was lent: the application asks for the next messages. */
void bl_rx_release(struct bl_endpoint *ep, struct bl_lent *lent);

/**
 * bl_rx_window - frames that each sender may have outstanding, by the size of this endpoint's ring.
 * bl_nic_window() may allow senders of other hosts less.
 */
uint32_t bl_rx_window(const struct bl_endpoint *ep);

/**
 * bl_rx_strangers_window - the window for a stranger where other senders have @w. It is divided by
 * the number of all senders including strangers, whereas @w does not depend on strangers.
 */
static inline uint32_t bl_rx_strangers_window(const struct bl_endpoint *ep, uint32_t w)
{
	uint32_t n = ep->nsenders + ep->nstrangers;

	w = n > 8 ? w * 8 / n : w;
	return w < BL_WINDOW_FIRST ? BL_WINDOW_FIRST : w;
}

#endif
