/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Captures of frames (`barline capture`): what the command asks of the programs of a node, and the
 * records that they send.
 *
 * The page below is a variable of the programs' object, in the section ".data.capture", so that
 * the test of @on takes three instructions. The command finds it among the maps of the programs,
 * and maps it into its memory. Nothing of it outlives the programs: new ones begin without
 * captures, and the command finds them and asks again.
 *
 * Example: a capture takes slot 0 of h1: it writes @alive_ns by compare-and-swap, puts its perf
 * buffers into "capture_out" at 0, then writes the filter, its @dirs last, and @on. A DATA frame of
 * 172 bytes is stored: the record is one struct bl_capture_event with reason BL_R_STORED and caplen
 * 172, and behind it the 172 bytes. Two seconds after the command was killed, the next frame finds
 * @alive_ns too old, and clears @on.
 */
#ifndef BARLINE_CAPTURE_ABI_H
#define BARLINE_CAPTURE_ABI_H

#include <linux/types.h>

#include "maps/reasons_abi.h"

#define BL_MAP_CAPTURE_OUT  "capture_out" /* array of maps: slot -> perf event array of a reader */
#define BL_CAPTURE_PAGE     ".data.capture" /* name of the map that is the page */

#define BL_CAPTURE_SLOTS    4    /* captures at a time */
#define BL_CAPTURE_HEAD     128  /* bytes of a frame that are looked at: all headers fit */
#define BL_CAPTURE_SNAP_MAX 9728 /* bytes; the largest frame that barline sends, and more */
#define BL_CAPTURE_WORDS    (BL_REASON_MAX / 64)
/* A capture whose reader has not signed for so long is over. */
#define BL_CAPTURE_LEASE_NS 2000000000ULL

enum bl_capture_dir { BL_CAPTURE_IN, BL_CAPTURE_OUT };

/** struct bl_capture_slot - one capture. Written by its reader, but for @lost. */
struct bl_capture_slot {
	__u64 owner; /* number that the reader drew */
	/*
	 * CLOCK_MONOTONIC; the last sign of the reader. 0: free, as if it were too long ago. A
	 * reader takes a free slot by compare-and-swap of this.
	 */
	__u64 alive_ns;
	__u64 lost; /* records that found the buffer full; written by the programs, atomically */
	__u64 reasons[BL_CAPTURE_WORDS]; /* bit by enum bl_reason: capture frames with one of them
					  */
	__u32 opcodes;  /* bit by enum bl_opcode; bit 0: frames without barline's header */
	__u32 snap;     /* bytes of a frame at most; up to BL_CAPTURE_SNAP_MAX */
	__u32 keys;     /* hosts: bit by enum bl_host_hook; switches: port, or BL_CAPTURE_ALL */
	__u16 endpoint; /* UDP port that source or destination must have; 0: any */
	__u8 dirs;      /* bit by enum bl_capture_dir; 0: nothing is captured */
	__u8 pad;
	__u32 node; /* number of this node at the reader; repeated in events */
	__u32 pad2;
};
_Static_assert(sizeof(struct bl_capture_slot) == 64, "ABI");
#define BL_CAPTURE_ALL 0xffffffffU

/** struct bl_capture_page - all captures of one loaded object. */
struct bl_capture_page {
	__u64 version; /* BL_CAPTURE_VERSION */
	/*
	 * 1: there may be captures. Set by readers, again and again; cleared by a program that
	 * finds none. Both may happen at once: the reader's next time repairs it.
	 */
	__u32 on;
	__u32 pad;
	struct bl_capture_slot slot[BL_CAPTURE_SLOTS];
};
_Static_assert(sizeof(struct bl_capture_page) == 272, "ABI");
#define BL_CAPTURE_VERSION 1 /* of this file */

/** struct bl_capture_event - one frame, as it was behind the program. */
struct bl_capture_event {
	__u64 at_ns; /* CLOCK_MONOTONIC */
	/*
	 * Barriers of 48 bits; 0: none. Before: of the frame as it came; where a switch has
	 * overwritten them, those of the register of its input, which the frame has raised.
	 */
	__u64 b_before, c_before;
	/* of the frame as it leaves; of a frame that came to a host, what the host delivers up to
	 */
	__u64 b_after, c_after;
	__u32 len;    /* of the frame, bytes */
	__u32 caplen; /* bytes of it behind this struct */
	__u32 key;    /* a switch's port, or enum bl_host_hook */
	__u32 out;    /* the output port of a frame that a switch forwards, plus 1; 0: none */
	__u16 reason; /* enum bl_reason */
	__u8 dir;     /* enum bl_capture_dir */
	__u8 opcode;  /* as in the header, known or not; 0: no header of barline's */
	__u32 node;   /* of the slot */
};
_Static_assert(sizeof(struct bl_capture_event) == 64, "ABI");

#endif
