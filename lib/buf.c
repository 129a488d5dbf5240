// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Buffers of received frames. A buffer that was delivered is lent to the application until its next
 * call of the function that delivered it, and then goes back to the free list of its size.
 */
#include <stdlib.h>

#include "buf.h"

static void free_bufs(struct bl_buf *b)
{
	while (b) {
		struct bl_buf *n = b->free_next;

		free(b);
		b = n;
	}
}

struct bl_buf *bl_buf_new(struct bl_endpoint *ep, uint32_t room, uint64_t most)
{
	struct bl_buf *b;

	if (ep->buf_bytes + sizeof(*b) + room > most)
		return NULL;
	b = malloc(sizeof(*b) + room);
	if (!b)
		return NULL;
	b->room = room;
	ep->buf_bytes += sizeof(*b) + room;
	return b;
}

void bl_buf_spare(struct bl_endpoint *ep, struct bl_buf *b)
{
	ep->buf_bytes -= sizeof(*b) + b->room;
	free(b);
}

void bl_bigs_free(struct bl_big *b)
{
	while (b) {
		struct bl_big *n = b->next;

		free(b);
		b = n;
	}
}

void bl_bufs_free(struct bl_endpoint *ep)
{
	free_bufs(ep->free_small);
	free_bufs(ep->free_full);
	free_bufs(ep->free_jumbo);
	free_bufs(ep->free_huge);
}

void bl_lent_free(struct bl_lent *lent)
{
	free_bufs(lent->bufs);
	bl_bigs_free(lent->bigs);
}

void bl_rx_release(struct bl_endpoint *ep, struct bl_lent *lent)
{
	struct bl_buf *b;

	while ((b = lent->bufs)) {
		lent->bufs = b->free_next;
		bl_buf_put(ep, b);
	}
	bl_bigs_free(lent->bigs);
	lent->bigs = NULL;
}

uint32_t bl_rx_window(const struct bl_endpoint *ep)
{
	/*
	 * An eighth of the ring stays free for CREDITs, PROBEs and the first frames of new senders.
	 */
	uint32_t n = ep->nsenders > 8 ? ep->nsenders : 8, all = ep->ring_frames * 7 / 8;
	/*
	 * The ring of a NIC, here or at the sender, is not larger than BL_NIC_FRAMES. A host that
	 * asks for a larger endpoint ring than the default has a network that holds more.
	 */
	uint32_t w =
		(ep->ring_bytes > BL_RING_BYTES || all < BL_NIC_FRAMES ? all : BL_NIC_FRAMES) / n;

	return w < BL_WINDOW_FIRST ? BL_WINDOW_FIRST : w > BL_WINDOW_MAX ? BL_WINDOW_MAX : w;
}
