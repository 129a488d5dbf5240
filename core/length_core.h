/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many byte times an Ethernet frame takes of a link: the one function that every rate, promise
 * and slot is counted with.
 *
 * A program sees a frame without preamble, FCS and gap, and the sender of a short frame sees it
 * without the padding that the NIC adds. A program that counted the bytes it sees would therefore
 * count a different number than the other end, and less time than the link takes. Example: an
 * application sends a datagram of 42 bytes. The host asks for bl_wire_bytes(42) = 84 byte times,
 * the NIC pads the frame to 60 bytes, and the switch takes bl_wire_bytes(60) = 84 off the promise.
 * The link is busy for 64 bytes with FCS, 8 of preamble and 12 of gap: 84.
 *
 * The lengths of queues and their limits are not times: they are bytes of frame.
 */
#ifndef BARLINE_LENGTH_CORE_H
#define BARLINE_LENGTH_CORE_H

#include "maps/length_abi.h"
#include "core/core.h"

/** bl_wire_bytes - byte times that a frame of @len bytes, without FCS, takes of a link. */
BL_CORE __u32 bl_wire_bytes(__u32 len)
{
	return BL_WIRE_BYTES(len);
}

#endif
