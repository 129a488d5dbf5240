// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See base/thread.h. */
#include "base/thread.h"

#include <signal.h>

int bl_thread_start(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *ctx)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(thread, attr, fn, ctx);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}
