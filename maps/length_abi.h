/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many byte times of the link an Ethernet frame takes. Example: a frame of 1514 bytes takes
 * 1514 + 24 = 1538 byte times, and a frame of 42 bytes, which the NIC pads to 60, takes 84. See
 * core/length_core.h for what counts in byte times and what does not.
 */
#ifndef BARLINE_LENGTH_ABI_H
#define BARLINE_LENGTH_ABI_H

#define BL_WIRE_LEAST      60 /* bytes of frame without FCS: a NIC pads shorter frames */
#define BL_WIRE_EXTRA      24 /* bytes: preamble 8, FCS 4, gap 12 */
#define BL_WIRE_BYTES(len) (((len) < BL_WIRE_LEAST ? BL_WIRE_LEAST : (len)) + BL_WIRE_EXTRA)

#define BL_WIRE_FULL       BL_WIRE_BYTES(1514) /* 1538: a full frame without a tag */

#endif
