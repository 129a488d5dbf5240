/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Changes the admission policy of the whole rack by one command (`barline admission set --rack`):
 * the controller that leads sends it to all agents and collects their answers.
 */
#ifndef BARLINE_CONTROLLER_ADMIT_H
#define BARLINE_CONTROLLER_ADMIT_H

#include <jansson.h>

#include "controller/ctl_priv.h"
#include "proto/ctl.pb-c.h"

/**
 * ctl_admit_open - Adds the sources of @c->admit to the event loop.
 *
 * Returns 0 or -errno with a text in @err.
 */
int ctl_admit_open(struct bl_ctl *c, struct bl_err *err);

/** ctl_admit_close - Undoes ctl_admit_open() and frees the list of nodes. */
void ctl_admit_close(struct bl_ctl *c);

/**
 * ctl_admit_ask - Asks for a change, in the thread of the status socket.
 * @said: "admission POLICY BITS_PER_S"; 0 bits per second: the rate is unchanged.
 *
 * Takes the controller's lock. Returns a JSON object as text in memory from malloc(), NULL: out of
 * memory: state ("leader" or "standby"); number of the change, 0: there is none; trouble: why there
 * is none.
 */
char *ctl_admit_ask(struct bl_ctl *c, const char *said);

/** ctl_admit_row - The last change as a JSON object for the status. The caller holds the lock. */
json_t *ctl_admit_row(const struct bl_ctl *c);

/** ctl_admit_heard - Takes the answer @m of node @node. Answers to other commands are ignored. */
void ctl_admit_heard(struct bl_ctl *c, uint32_t node, const Bl__Admitted *m);

/** ctl_admit_lost - This controller no longer leads: the current change, if any, ends here. */
void ctl_admit_lost(struct bl_ctl *c);

#endif
