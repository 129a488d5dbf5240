/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the senders of both streams share (tx.c best effort; rstage.c and rtx.c reliable): limits of
 * a stage, and UDP GSO.
 *
 * Example: a window of 8 frames. A receiver is silent until a quarter of the window, 2 frames, is
 * free again, so 7 frames may wait together: bl_stage_cap(8, false) = 8 - (2 - 1) = 7.
 */
#ifndef BARLINE_SEND_H
#define BARLINE_SEND_H

#include <errno.h>
#include <netinet/in.h>
#include <sys/uio.h>
#include "internal.h"

#define BL_ITEM_OVERHEAD 2u    /* be16 length */
#define BL_MMSG          64    /* sends in one sendmmsg() */
#define BL_GSO_PAUSE     4096u /* sends after a refusal of GSO that do not ask for it */
/* bytes in one send, GSO or not; with jumbo frames less than a stage */
#define BL_UDP_MOST 65507u

/**
 * bl_stage_cap - frames that may wait together for one destination with @window. A receiver keeps a
 * quarter of the window back until it is worth a CREDIT (bl_rx_credits()): a stage that needs it
 * all would wait for a probe.
 * @alone: nothing but one scattering waits, which may be larger than the window: it leaves when
 * nothing else is on the way, or it never could.
 */
static inline uint32_t bl_stage_cap(uint32_t window, bool alone)
{
	uint32_t w = window > BL_WINDOW_FIRST ? window : BL_WINDOW_FIRST;

	w -= (w + 3) / 4 - 1;
	return w < BL_STAGE_FRAMES && !alone ? w : BL_STAGE_FRAMES;
}

union bl_gso {
	char bytes[CMSG_SPACE(sizeof(uint16_t))];
	struct cmsghdr align;
};

/**
 * bl_gso - the kernel is to cut what @h sends into datagrams of @size bytes; the last one may be
 * shorter. @ctl: lives as long as @h.
 */
static inline void bl_gso(struct msghdr *h, union bl_gso *ctl, uint16_t size)
{
	struct cmsghdr *c = &ctl->align;

	h->msg_control = c;
	h->msg_controllen = sizeof(ctl->bytes);
	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(uint16_t));
	memcpy(CMSG_DATA(c), &size, sizeof(size));
}

/**
 * bl_gso_refused - the kernel does not cut what @h sends, though it may well take the datagrams one
 * by one. EIO: before 6.11, if the device that they leave by leaves checksums to the kernel
 * (tx-checksumming off, as in the lab, and as a virtio NIC has it without an offload of its
 * host's); later too, if they are encrypted by IPsec. EINVAL: the socket sends without checksums.
 */
static inline bool bl_gso_refused(const struct msghdr *h, int errnum)
{
	return h->msg_controllen && (errnum == EIO || errnum == EINVAL);
}

/**
 * bl_gso_allowed - to be asked before each send that could be one of GSO: after a refusal it is
 * tried again now and then only, for a device's features may change.
 */
static inline bool bl_gso_allowed(struct bl_endpoint *ep)
{
	if (!ep->gso_pause)
		return true;
	ep->gso_pause--;
	return false;
}

/**
 * bl_gso_one - send datagram @i of those that the kernel was to cut out of @h: of one buffer of
 * frames, or of a buffer for each. Returns 0 or -errno.
 */
int bl_gso_one(struct bl_endpoint *ep, const struct msghdr *h, uint32_t i);

#endif
