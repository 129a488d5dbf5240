/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connection to the host's daemon after bl_init(): its end, and the next one. */
#ifndef BARLINE_LIB_AGAIN_H
#define BARLINE_LIB_AGAIN_H

#include "internal.h"

/** bl_daemon_gone - note that the connection to the daemon has ended. */
void bl_daemon_gone(struct bl_endpoint *ep);

/**
 * bl_daemon_hear - read one message of the daemon without blocking: a byte that says that there is
 * an announcement, the answer to a request to be taken over, or the end of the connection.
 */
void bl_daemon_hear(struct bl_endpoint *ep);

/**
 * bl_again - reconnect to a daemon, or read the answer of the one that was asked. Does not block.
 * Called before announcements are read, if ep->daemon_gone is set.
 */
void bl_again(struct bl_endpoint *ep);

#endif
