/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lock between the application's calls and the helper thread (helper.c). Every function of
 * barline.h that uses an endpoint takes the lock with bl_enter() and releases it with bl_leave(),
 * and releases it around callbacks and while it sleeps. Without a helper there is no lock.
 */
#ifndef BARLINE_LIB_LOCK_H
#define BARLINE_LIB_LOCK_H

#include <pthread.h>

#include "internal.h"

struct epoll_event;

/*
 * The state of the helper thread. It lies in a page that fork() wipes, so a child has no helper.
 * Fields are protected by @lock unless their comment says otherwise.
 */
struct bl_helper {
	bool alive; /* false in a child of fork(), whose copy of this page is zero */
	pthread_mutex_t lock;
	pthread_t thread;
	uint64_t calls; /* calls of the application; written by the application alone, unlocked */
	bool asleep;    /* the application sleeps in bl_wait(); written by it alone, unlocked */
	bool armed;     /* the helper has armed the wake-up */
	int error;      /* positive errno that ended the thread; 0: none, or already reported */
	int cancel;     /* the application's cancellation state before the call */
	bool stop;      /* the thread is to end; written by bl_helper_stop(), unlocked */
};

/** bl_helper_enter - take the lock; callers use bl_enter(). The endpoint has a helper. */
void bl_helper_enter(struct bl_endpoint *ep);

/** bl_helper_leave - release the lock; callers use bl_leave(). The endpoint has a helper. */
void bl_helper_leave(struct bl_endpoint *ep);

/**
 * bl_helper_sleep - epoll_wait() on ep->epfd with the lock released.
 * Arguments and result are those of epoll_wait(). The sleep is a cancellation point.
 */
int bl_helper_sleep(struct bl_endpoint *ep, struct epoll_event *ev, int n, int ms);

/**
 * bl_helper_watch - add the connection to the daemon to the helper's epoll instance, or remove it.
 * @op: EPOLL_CTL_ADD or EPOLL_CTL_DEL. No-op without a helper.
 */
void bl_helper_watch(struct bl_endpoint *ep, int op);

/** bl_helper_failed - returns 0, or once the negative errno that ended the helper thread. */
int bl_helper_failed(struct bl_endpoint *ep);

/** bl_enter - begin a call on @ep: exclude the helper thread. */
static inline void bl_enter(struct bl_endpoint *ep)
{
	if (ep->helper)
		bl_helper_enter(ep);
}

/** bl_leave - end a call on @ep. Around a callback, bl_leave() comes first. */
static inline void bl_leave(struct bl_endpoint *ep)
{
	if (ep->helper)
		bl_helper_leave(ep);
}

#endif
