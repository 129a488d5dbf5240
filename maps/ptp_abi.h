/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PTP management messages (IEEE 1588-2008, clause 15) as ptp4l takes and sends them on its
 * management socket, as far as barline asks them. All integers are in network order.
 *
 * The TLVs whose names end in NP are linuxptp's own. The layouts were compared with what ptp4l
 * 3.1.1 of Debian 12 sends (2026-11-27); later versions have the same.
 */
#ifndef BARLINE_PTP_ABI_H
#define BARLINE_PTP_ABI_H

#include <linux/types.h>

#define BL_PTP_MANAGEMENT    0xd    /* type of a message, in the low half of the first byte */
#define BL_PTP_VERSION       2      /* in the low half of the second byte */
#define BL_PTP_GET           0      /* actions */
#define BL_PTP_RESPONSE      2      /* the answer to a GET */
#define BL_PTP_ALL_PORTS     0xffff /* port number of a target; @target all ones: any clock */
#define BL_PTP_TLV           0x0001 /* types of a TLV: a value */
#define BL_PTP_TLV_ERROR     0x0002 /* a refusal: struct bl_ptp_error */
#define BL_PTP_ID_DEFAULT    0x2000 /* DEFAULT_DATA_SET */
#define BL_PTP_ID_CURRENT    0x2001 /* CURRENT_DATA_SET */
#define BL_PTP_ID_PROPERTIES 0x2003 /* TIME_PROPERTIES_DATA_SET */
#define BL_PTP_ID_STATUS     0xc000 /* TIME_STATUS_NP */
#define BL_PTP_ID_PORT       0xc004 /* PORT_PROPERTIES_NP; linuxptp 3.1 or later */

/** struct bl_ptp_msg - a management message up to its TLV. */
struct bl_ptp_msg {
	__u8 type;    /* transportSpecific in the high half */
	__u8 version; /* minor version in the high half */
	__u8 length[2];
	__u8 domain;
	__u8 minor_sdo;
	__u8 flags[2];
	__u8 correction[8];
	__u8 reserved[4];
	__u8 source[10]; /* identity of a clock, 8 bytes, and port number */
	__u8 sequence[2];
	__u8 control; /* 4 */
	__u8 interval;
	__u8 target[10];
	__u8 starting_hops;
	__u8 hops;
	__u8 action; /* in the low half */
	__u8 reserved2;
};
_Static_assert(sizeof(struct bl_ptp_msg) == 48, "IEEE 1588");

/** struct bl_ptp_tlv - the head of a TLV, which its data follows. */
struct bl_ptp_tlv {
	__u8 type[2];
	__u8 length[2]; /* of @id and the data */
	__u8 id[2];     /* if @type is BL_PTP_TLV_ERROR: the error */
};
_Static_assert(sizeof(struct bl_ptp_tlv) == 6, "IEEE 1588");

/** struct bl_ptp_error - data of BL_PTP_TLV_ERROR. */
struct bl_ptp_error {
	__u8 id[2]; /* what was asked for */
	__u8 reserved[4];
};

/** struct bl_ptp_status - data of TIME_STATUS_NP. */
struct bl_ptp_status {
	__u8 offset[8];  /* ptp4l's clock less the master's at @ingress, ns */
	__u8 ingress[8]; /* arrival of the last Sync by ptp4l's clock, ns; 0: none came */
	__u8 rate[4];
	__u8 phase[4];
	__u8 base[2];
	__u8 last_phase[12];
	__u8 gm_present[4]; /* 0: the clock is the grandmaster itself, or has not found one */
	__u8 gm[8];         /* identity of the grandmaster */
};
_Static_assert(sizeof(struct bl_ptp_status) == 50, "linuxptp");

/** struct bl_ptp_current - data of CURRENT_DATA_SET. */
struct bl_ptp_current {
	__u8 steps[2];  /* clocks from the grandmaster to this one; 0: it is the grandmaster */
	__u8 offset[8]; /* in units of 2^-16 ns */
	__u8 delay[8];  /* mean path delay to the master, in units of 2^-16 ns */
};
_Static_assert(sizeof(struct bl_ptp_current) == 18, "IEEE 1588");

/** struct bl_ptp_properties - data of TIME_PROPERTIES_DATA_SET. */
struct bl_ptp_properties {
	__u8 utc_offset[2]; /* TAI - UTC, s */
	__u8 flags;         /* BL_PTP_UTC_VALID, BL_PTP_TIMESCALE and others */
	__u8 source;
};
#define BL_PTP_UTC_VALID 0x04 /* utc_offset is right */
#define BL_PTP_TIMESCALE 0x08 /* the domain's time is TAI; else it is any time, UTC as a rule */

/** struct bl_ptp_port - data of PORT_PROPERTIES_NP, up to the name of the interface. */
struct bl_ptp_port {
	__u8 identity[10];
	__u8 state;    /* enum bl_ptp_state */
	__u8 stamping; /* 0: software; others: by the NIC's clock */
	__u8 length;   /* of the name that follows */
};
_Static_assert(sizeof(struct bl_ptp_port) == 13, "linuxptp");

/** struct bl_ptp_default - data of DEFAULT_DATA_SET. */
struct bl_ptp_default {
	__u8 flags;
	__u8 reserved;
	__u8 ports[2]; /* number of ports; the first one has number 1 */
	__u8 priority1;
	__u8 quality[4];
	__u8 priority2;
	__u8 identity[8]; /* of the clock */
	__u8 domain;
	__u8 reserved2;
};
_Static_assert(sizeof(struct bl_ptp_default) == 20, "IEEE 1588");

/* States of a port: the number is IEEE 1588's, the second column its name. */
#define BL_PTP_STATES(X)   \
	X(1, INITIALIZING) \
	X(2, FAULTY)       \
	X(3, DISABLED)     \
	X(4, LISTENING)    \
	X(5, PRE_MASTER)   \
	X(6, MASTER)       \
	X(7, PASSIVE)      \
	X(8, UNCALIBRATED) \
	X(9, SLAVE)
enum bl_ptp_state {
#define BL_PTP_STATE_(number, name) BL_PTP_##name = (number),
	BL_PTP_STATES(BL_PTP_STATE_)
#undef BL_PTP_STATE_
};

#endif
