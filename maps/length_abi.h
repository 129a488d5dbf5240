/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The constants of Ethernet that times are counted with; core/length_core.h says what for.
 */
#ifndef BARLINE_LENGTH_ABI_H
#define BARLINE_LENGTH_ABI_H

#define BL_WIRE_LEAST      60 /* bytes of frame without FCS: a NIC pads what is shorter */
#define BL_WIRE_EXTRA      24 /* preamble 8, FCS 4, gap 12 */
#define BL_WIRE_BYTES(len) (((len) < BL_WIRE_LEAST ? BL_WIRE_LEAST : (len)) + BL_WIRE_EXTRA)

#define BL_WIRE_FULL       BL_WIRE_BYTES(1514) /* 1538: a full frame without a tag */

#endif
