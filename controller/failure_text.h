/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A failure in words, for the status and for events. */
#ifndef BARLINE_CONTROLLER_FAILURE_TEXT_H
#define BARLINE_CONTROLLER_FAILURE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct bl_ctl;
struct bl_recover_failed;
struct bl_recover_failure;

/**
 * ctl_failure_unnamed - returns the number of hosts in @f that failed without having reported an
 * address: no host could be told to discard what came from them. A host without an agent has
 * promised nothing either.
 */
uint32_t ctl_failure_unnamed(const struct bl_ctl *c, const struct bl_recover_failure *f);

/** ctl_failure_who - writes "h2", "h2:61697", "spine1 and 3 more" or "1f4a0007 (no address)". */
void ctl_failure_who(const struct bl_ctl *c, const struct bl_recover_failure *f, char *text,
		     size_t size);

/** ctl_failed_why - returns the reason of one of those that failed, in a word. */
const char *ctl_failed_why(const struct bl_recover_failed *f);

/** ctl_failure_why - writes the reasons of all that failed, each once: "cut-off", "died, ring". */
void ctl_failure_why(const struct bl_recover_failure *f, char *text, size_t size);

/** ctl_failure_event - reports the decision, or once it is finished, that it is settled. */
void ctl_failure_event(const struct bl_ctl *c, const struct bl_recover_failure *f);

#endif
