/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagrams to the socket: up to BL_MMSG sends in one sendmmsg(), each of which the kernel may cut
 * into datagrams (UDP GSO).
 */
#ifndef BARLINE_LIB_BATCH_H
#define BARLINE_LIB_BATCH_H

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "internal.h"

#define BL_MMSG      64    /* sends in one sendmmsg() */
#define BL_GSO_PAUSE 4096u /* sends without GSO after the kernel has refused one with it */
#define BL_UDP_MOST                                                                  \
	65507u /* bytes in one send, GSO or not; with jumbo frames less than a stage \
		*/

/* Room for the control message of one GSO send. */
union bl_gso {
	char bytes[CMSG_SPACE(sizeof(uint16_t))];
	struct cmsghdr align;
};

/* Sends that wait for one sendmmsg(). */
struct bl_batch {
	struct mmsghdr m[BL_MMSG];
	struct iovec io[BL_MMSG];
	struct bl_peer *peer[BL_MMSG]; /* destination */
	uint32_t psn[BL_MMSG];         /* number of the first frame */
	uint32_t frames[BL_MMSG];      /* frames in the send */
	union bl_gso ctl[BL_MMSG];
	unsigned int n; /* sends in use */
};

/**
 * bl_gso - let the kernel cut what @h sends into datagrams of @size bytes; the last datagram may be
 * shorter.
 * @ctl: must live as long as @h.
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
 * bl_gso_refused - whether @errnum means that the kernel does not cut what @h sends; it may still
 * accept the datagrams one by one. EIO: kernels before 6.11, if the outgoing device leaves
 * checksums to the kernel (tx-checksumming off, as in the lab, or a virtio NIC without an offload
 * of its host's), and later kernels if IPsec encrypts the datagrams. EINVAL: the socket sends
 * without checksums.
 */
static inline bool bl_gso_refused(const struct msghdr *h, int errnum)
{
	return h->msg_controllen && (errnum == EIO || errnum == EINVAL);
}

/**
 * bl_gso_allowed - whether the next send may use GSO. Ask once per send: after a refusal the next
 * BL_GSO_PAUSE sends do without, and then GSO is tried again, since a device's features may change.
 */
static inline bool bl_gso_allowed(struct bl_endpoint *ep)
{
	if (!ep->gso_pause)
		return true;
	ep->gso_pause--;
	return false;
}

/**
 * bl_gso_one - send datagram @i of those that the kernel refused to cut out of @h.
 * @h: has one buffer with all frames back to back, or one buffer per frame.
 * Returns 0 or -errno.
 */
int bl_gso_one(struct bl_endpoint *ep, const struct msghdr *h, uint32_t i);

/** bl_batch_send - send what the batch has and empty it. Frames that cannot leave have failed. */
void bl_batch_send(struct bl_endpoint *ep, struct bl_batch *b);

/**
 * bl_batch_frames - add frames of one destination to the batch, as GSO sends where possible. Frames
 * to this host, which leave by lo, are added one by one: lo does not segment.
 * @data: @frames frames of ep->frame_max bytes, back to back; valid until bl_batch_send().
 * @last: bytes of the last frame.
 * @psn: number of the first frame.
 */
void bl_batch_frames(struct bl_endpoint *ep, struct bl_batch *b, struct bl_peer *p, uint8_t *data,
		     uint32_t frames, uint32_t last, uint32_t psn);

/**
 * bl_batch_claim - let the last frame of the batch promise that no frame at or below timestamp @ts
 * follows it (core/order/promise_core.h).
 */
void bl_batch_claim(struct bl_batch *b, uint64_t ts);

#endif
