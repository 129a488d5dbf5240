/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether frames find room in the NIC's ring. A veth without a queueing discipline drops what finds its 256 places taken, and tells nobody; a scattering whose timestamp is taken
 * must not wait for room, since it holds the rack's barrier back. So a flush asks before.
 *
 * What is not credited yet is all that can be in the ring: where each host sends to each other, windows keep that below BL_NIC_FRAMES (bl_rx_window()), and nothing more is asked. Who
 * sends to many that hear few others has larger windows. Then the socket knows: what is charged to its send buffer is freed when the frame leaves the ring.
 *
 * Example: 40 receivers have 400 frames that they have not credited, 80 are to be sent. The socket says 46080 bytes: at most 60 frames are in the ring. 140 <= 224: they leave.
 */
#ifndef BARLINE_LIB_TX_NIC_H
#define BARLINE_LIB_TX_NIC_H

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include "internal.h"

#define BL_FRAME_CHARGE 768    /* at least so many bytes are charged for a frame */
#define BL_NIC_WAIT_NS	100000 /* a full ring is empty by then, if its CPU serves it */

/** bl_nic_full - whether @need more frames might not fit. A scattering that is larger than the ring leaves when the ring is empty: waiting longer would not help. */
static inline bool bl_nic_full(const struct bl_endpoint *ep, uint32_t need)
{
	uint32_t frames;
	int bytes;

	if (ep->flying + need <= BL_NIC_FRAMES)
		return false;
	if (ioctl(ep->sock, SIOCOUTQ, &bytes))
		return false;
	frames = (uint32_t)bytes / BL_FRAME_CHARGE;
	return frames && frames + need > BL_NIC_FRAMES;
}

#endif
