/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Argument of the program bl_note, by which a host's daemon, or its caretaker, writes its words of
 * the clock record and of the host page, and announcements of failures. Processes map all three, so
 * the maps are frozen; after that not even the daemon can map them for writing
 * (loader/order/note.c).
 */
#ifndef BARLINE_NOTE_ABI_H
#define BARLINE_NOTE_ABI_H

#include <linux/types.h>
#include "maps/clock_abi.h"
#include "maps/failure_abi.h"
#include "maps/host_abi.h"

enum bl_note_kind {
	BL_NOTE_CLOCK, /* @clock; its seq is the one that the record has afterwards */
	BL_NOTE_EPS,   /* @lines, @active: eps_lines and eps_active of the host page */
	BL_NOTE_WORD,  /* @slot, @word: of the host page */
	/* @failure, whose number decides about its place; then last */
	BL_NOTE_FAILURE,
	BL_NOTE_DRAINED, /* @drained: of the host page */
};

/** struct bl_note_arg - context of bl_note. Written by the caller; the program sets @done. */
struct bl_note_arg {
	__u32 kind; /* enum bl_note_kind */
	__u32 done; /* 1: written */
	__u32 lines, active;
	__u32 slot;
	__u32 reserved;
	__u64 drained;
	struct bl_ep_word word;
	struct bl_failure failure;
	struct bl_clock clock;
};
_Static_assert(sizeof(struct bl_note_arg) == 128 + sizeof(struct bl_clock), "ABI");

#endif
