/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writing the daemon's words of a host's clock record and host page; note.c says how. */
#ifndef BARLINE_LOADER_NOTE_H
#define BARLINE_LOADER_NOTE_H

#include "base/log.h"
#include "maps/note_abi.h"

/**
 * bl_note_open - load the program that writes into the maps @clock_fd, @page_fd and
 * @failures_fd. Returns its descriptor or -errno.
 */
int bl_note_open(int clock_fd, int page_fd, int failures_fd, struct bl_err *err);

/**
 * bl_note_freeze - make the map @fd read-only for everything except programs. @name: for messages.
 * Returns 0, also if the map is frozen already, or -errno.
 */
int bl_note_freeze(int fd, const char *name, struct bl_err *err);

/** bl_note - run the program @fd with @a. May be called by any thread. Returns 0 or -errno. */
int bl_note(int fd, struct bl_note_arg *a);

#endif
