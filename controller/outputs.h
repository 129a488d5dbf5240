/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Carries out the outputs of the failure procedure (struct bl_recover_out): records are saved in
 * the store, commands are sent to the agents.
 */
#ifndef BARLINE_CONTROLLER_OUTPUTS_H
#define BARLINE_CONTROLLER_OUTPUTS_H

#include "controller/ctl_priv.h"

/**
 * ctl_outputs_open - Adds the timer for bl_recover_due() to the event loop.
 *
 * Returns 0 or -errno with a text in @err.
 */
int ctl_outputs_open(struct bl_ctl *c, struct bl_err *err);

/** ctl_outputs_close - Removes the timer and frees the list of saved keys. */
void ctl_outputs_close(struct bl_ctl *c);

/**
 * ctl_outputs_run - Carries out all outputs that the failure procedure has, and sets the timer for
 * its next bl_recover_tick(). To be called after every event that the procedure was given.
 */
void ctl_outputs_run(struct bl_ctl *c);

#define CTL_KEY_MAX 32 /* bytes of the key of a record, with the terminating 0 */

/**
 * ctl_saved_key - Writes the key of a node's record (@what BL_RECOVER_SAVE_NODE, @id the node) or
 * of a failure's (BL_RECOVER_SAVE_FAILURE, @id its number) to @key.
 */
void ctl_saved_key(char key[CTL_KEY_MAX], enum bl_recover_do what, uint64_t id);

/**
 * ctl_saved_parse - Reads what ctl_saved_key() wrote. Returns false if @key is no such key.
 */
bool ctl_saved_parse(const char *key, enum bl_recover_do *what, uint64_t *id);

/**
 * ctl_saved_find - Returns the entry for the key of a node (@what BL_RECOVER_SAVE_NODE, @id the
 * node) or of a failure (BL_RECOVER_SAVE_FAILURE, @id its number), and makes one if there is none.
 * NULL: out of memory.
 */
struct saved *ctl_saved_find(struct bl_ctl *c, enum bl_recover_do what, uint64_t id);

/** ctl_saved_forget - Frees all entries; the store is about to be read anew. */
void ctl_saved_forget(struct bl_ctl *c);

/** ctl_fatal - Logs @why and ends bl_ctl_run() with it: this controller cannot go on. */
void ctl_fatal(struct bl_ctl *c, const char *why);

#endif
