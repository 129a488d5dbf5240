/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `barline trace --last` and `barline trace MESSAGE`: messages of the past, by what their endpoints
 * have noted of them, and messages that wait at this moment, by registers. Nothing is captured, and
 * no process is asked, so nothing waits.
 */
#ifndef BARLINE_CLI_CAPTURE_TRACE_PAST_H
#define BARLINE_CLI_CAPTURE_TRACE_PAST_H

#include "cli/capture/trace_row.h"

#define TRACE_LAST_MAX 4096

/**
 * trace_last - prints the last @n messages that were delivered on the hosts @refs, the latest one
 * last, and before them what waits to leave. @endpoint: of source or destination; 0: any.
 * @slower_ns: those that took longer only. Returns the exit status.
 */
int trace_last(const struct bl_node_ref *refs, int nrefs, unsigned int n, uint16_t endpoint,
	       int64_t slower_ns);

/** trace_message - prints what is known of one message. Returns the exit status. */
int trace_message(const struct bl_node_ref *refs, int nrefs, const struct message_name *m);

#endif
