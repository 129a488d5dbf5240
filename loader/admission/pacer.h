/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The pacer's threads; pacer.c. */
#ifndef BARLINE_PACER_H
#define BARLINE_PACER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/log.h"
#include "loader/admission/pace.h"

struct bl_server;

/**
 * bl_pacer_start - starts the thread of @cpu (-1: any); no-op if it runs. Not from within a node's
 * namespace. Returns 0 or -errno.
 */
int bl_pacer_start(struct bl_server *s, int cpu, struct bl_err *err);
/** bl_pacer_add - the thread of @cpu paces @p from now on. Returns 0 or -errno. */
int bl_pacer_add(struct bl_server *s, struct bl_pace *p, int cpu, bool spin,
		 const struct bl_pace_fds *fds, struct bl_err *err);
/** bl_pacer_remove - the thread does not touch @p any more when this returns. */
void bl_pacer_remove(struct bl_pace *p);
/** bl_pacer_spare - @thread leaves the pacers' CPUs to them, if it may use others. */
void bl_pacer_spare(struct bl_server *s, pthread_t thread);
/** bl_pacer_wake - something is due earlier than it was. From any thread, while @p is added. */
void bl_pacer_wake(struct bl_pace *p);
void bl_pacer_stop(struct bl_server *s);

#endif
