/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading the files of events (base/event.h) of all nodes of a machine, merged and in order. */
#ifndef BARLINE_CLI_EVENT_LOG_H
#define BARLINE_CLI_EVENT_LOG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define EVENT_FILES_MAX 4096 /* nodes of a machine whose files are followed */

/** struct event_reader - one file that is followed. */
struct event_reader {
	char path[256];
	dev_t dev;
	ino_t ino;
	off_t at; /* what is before it was read */
	/* how the file begins: a new file may get the inode of one that was removed */
	char head[48];
	size_t nhead;
};

/** struct event_log - the files of a directory, and the lines that were read and not taken yet. */
struct event_log {
	char dir[128];
	struct event_reader *file;
	unsigned int files;
	json_t *lines;        /* array of objects, in the order of their times */
	unsigned int refused; /* lines that are no events, and files that are not to be trusted */
};

/** event_log_open - prepares to read the files of @dir. Reads nothing yet. */
void event_log_open(struct event_log *l, const char *dir);

/**
 * event_log_read - reads what is new in all files, old ones that were renamed first, and sorts it
 * by time into @l->lines. A last line without its newline is left for the next call. A file counts
 * if it is a plain file and belongs to root, to the owner of the directory, or to this user.
 */
void event_log_read(struct event_log *l);

void event_log_close(struct event_log *l);

/** event_time - the time of an event, ns since 1970. */
uint64_t event_time(const json_t *event);

#endif
