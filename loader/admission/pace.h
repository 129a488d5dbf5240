/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* struct bl_pace: a node as the pacer's thread has it. pacer.c has the thread. */
#ifndef BARLINE_PACE_H
#define BARLINE_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct bl_pace_page;
struct bl_pace_thread;

/** struct bl_pace - written by the pacer's thread once it is added, except for @thread. */
struct bl_pace {
	struct bl_pace *next;
	struct bl_pace_thread *thread; /* NULL: the node is not paced */
	int prog_fd, due_fd, bell_fd;
	struct bl_pace_page *page;
	unsigned long *bell_read;          /* the reader's position in the bell's ring */
	const unsigned long *bell_written; /* the writers' position there */
	uint64_t emitted;                  /* frames that had left at the last sample */
	uint32_t place;                    /* in the map "pace_progs" */
	uint8_t more;                      /* turns in a row beyond the first */
	bool spin;                         /* the thread never sleeps for it */
};

/** struct bl_pace_fds - what bl_pacer_add() needs; it keeps duplicates. */
struct bl_pace_fds {
	int prog;           /* the program of a turn */
	int page;           /* map with struct bl_pace_page */
	int due;            /* map with struct bl_due */
	int bell;           /* ring that wakes the pacer */
	unsigned int links; /* link ends that the node paces; 0 counts as 1 */
};

#endif
