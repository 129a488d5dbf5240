/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads that leave the handling of signals to the main thread. */
#ifndef BARLINE_THREAD_H
#define BARLINE_THREAD_H

#include <pthread.h>

/**
 * bl_thread_start - pthread_create(3) of a thread in which all signals are blocked.
 * @attr: may be NULL.
 * Returns 0 or an errno (positive, like pthread_create()).
 */
int bl_thread_start(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *ctx);

#endif
