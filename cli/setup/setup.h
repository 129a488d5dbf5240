/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `barline switch setup` and `barline host setup`: the parts that touch the machine. See state.h
 * for facts and steps, plan.h for how steps are found.
 */
#ifndef BARLINE_CLI_SETUP_H
#define BARLINE_CLI_SETUP_H

#include <stdio.h>

#include "base/nl.h"
#include "cli/setup/plan.h"

/**
 * setup_read - reads the machine: links, addresses, routes of the main table, permanent neighbours
 * of the ports of @w, the sysctls that a router needs, and the configuration file.
 * @steps: to be taken back, of which files and folders are read, too. NULL: the facts are for a
 * plan, so it is also read whether a node can run on the ports.
 * Returns 0 or -errno. Free @f with setup_facts_free().
 */
int setup_read(const struct setup_want *w, const struct setup_steps *steps, struct setup_facts *f,
	       struct bl_err *err);

/**
 * setup_file_text - a whole file, with a zero behind it. The caller frees it.
 * @max: bytes that it may have
 * @size: receives how many it has. NULL: it must not contain a zero
 * Returns NULL with errno if it cannot be read; EFBIG: it is longer; EILSEQ: there is a zero in it.
 */
char *setup_file_text(const char *path, size_t max, size_t *size);
#define SETUP_FILE_MAX (4u << 20) /* a switch with 4096 hosts needs a quarter of a megabyte */

/** setup_command - the command that a step is equal to; @back: that takes it back. Returns @to. */
char *setup_command(const struct setup_step *s, bool back, char *to, size_t size);

/** setup_diff - prints what differs between two texts, line by line. */
void setup_diff(const char *before, const char *after, FILE *to);

/**
 * setup_do - does a step, or takes it back. Returns 0 or -errno; -ENOTEMPTY: the folder is not
 * empty and stays.
 */
int setup_do(struct nl *nl, const struct setup_step *s, bool back, struct bl_err *err);

/** struct setup_journal - the steps that were done for one name, on disk and in memory. */
struct setup_journal {
	char path[SETUP_ARG + 64];
	int dir;    /* locked while the journal is open for writing; -1: there is none */
	int fd;     /* -1: not open for writing */
	long begin; /* length of the file before this run */
	struct setup_steps steps; /* all steps, those of this run at the end */
	size_t first;             /* first step of this run */
	/* Kernel settings from before the last boot, which are gone. */
	struct setup_steps earlier;
};

/** enum setup_access - what a journal is read for. */
enum setup_access {
	SETUP_LOOK,  /* nothing is changed */
	SETUP_BACK,  /* steps are taken back: locks the folder, if there is one */
	SETUP_CHANGE /* steps are done: makes the folder, and locks it */
};

/**
 * setup_journal_read - reads the journal of @w->name in folder @dir, which need not exist.
 * Kernel settings from before the last boot are left out, because they are gone.
 * @what: locks the folder, so that no two setups run at the same time
 * Returns 0 or -errno; -EXDEV: it belongs to another network namespace; -EPERM: others may write
 * the folder.
 */
int setup_journal_read(struct setup_journal *j, const struct setup_want *w, const char *dir,
		       enum setup_access what, struct bl_err *err);
/** setup_journal_begin - begins a run, making the file if needed. Returns 0 or -errno. */
int setup_journal_begin(struct setup_journal *j, const struct setup_want *w, const char *dir,
			struct bl_err *err);
/** setup_journal_add - writes a step down, which is done after that. Returns 0 or -errno. */
int setup_journal_add(struct setup_journal *j, const struct setup_step *s, struct bl_err *err);
/** setup_journal_made - writes down which interface a bridge became. Returns 0 or -errno. */
int setup_journal_made(struct setup_journal *j, const char *dev, unsigned int ifindex,
		       struct bl_err *err);
/** setup_journal_forget - forgets the steps of this run. */
void setup_journal_forget(struct setup_journal *j);
/** setup_journal_remove - removes the file. */
void setup_journal_remove(struct setup_journal *j);
void setup_journal_close(struct setup_journal *j);

/**
 * setup_learn - adds hosts to @w that the kernel knows: Ethernet addresses from the tables of
 * bridges, and IP addresses from neighbours. Hosts whose Ethernet address was given stay as they
 * are. The bridge is the one of @w. Returns how many were added, or -errno.
 */
int setup_learn(struct setup_want *w, struct bl_err *err);

/** struct setup_output - what is to be printed for every boot. */
struct setup_output {
	const struct setup_want *w;
	const struct setup_facts *f;    /* the machine as it is with the steps of @plan */
	const struct setup_steps *plan; /* what is missing */
	const struct setup_journal *j;  /* what earlier runs did */
	const char *how;                /* "networkd" or "ifupdown" */
	const char *dir; /* folder that receives the files; NULL: all to standard output */
};

/**
 * setup_print - writes settings as files, for every boot. What others configure has no file, and a
 * file that would undo what they configure is refused. Returns 0, or 1 after a message.
 */
int setup_print(const struct setup_output *o);

#endif
