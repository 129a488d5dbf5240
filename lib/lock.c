// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The lock that the application's calls share with the helper thread. Every call takes it if there
 * is a helper, and releases it while it sleeps and around callbacks, so a callback may call the
 * library. Without a helper a call tests one pointer.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "error.h"
#include "lock.h"
#include "wake.h"

void bl_helper_enter(struct bl_endpoint *ep)
{
	struct bl_helper *h = ep->helper;
	int was;

	if (!h->alive) {
		ep->by_helper = false; /* fork() copied it while the parent's helper was at work */
		return;
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	__atomic_store_n(&h->calls, h->calls + 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&h->lock);
	h->cancel = was;
	if (h->armed) {
		h->armed = false;
		bl_disarm(ep);
	}
}

void bl_helper_leave(struct bl_endpoint *ep)
{
	struct bl_helper *h = ep->helper;
	int was;

	if (!h->alive)
		return;
	was = h->cancel;
	pthread_mutex_unlock(&h->lock);
	pthread_setcancelstate(was, NULL);
}

/* Also the clean-up handler of a thread that is cancelled while it sleeps. */
static void mark_awake(void *arg)
{
	struct bl_helper *h = arg;

	__atomic_store_n(&h->asleep, false, __ATOMIC_RELEASE);
}

int bl_helper_sleep(struct bl_endpoint *ep, struct epoll_event *ev, int n, int ms)
{
	struct bl_helper *h = ep->helper;
	int rc, err;

	if (!h->alive)
		return epoll_wait(ep->epfd, ev, n, ms);
	__atomic_store_n(&h->asleep, true, __ATOMIC_RELEASE);
	bl_helper_leave(ep);
	pthread_cleanup_push(mark_awake, h);
	rc = epoll_wait(ep->epfd, ev, n, ms);
	pthread_cleanup_pop(0);
	err = errno;
	bl_helper_enter(ep);
	mark_awake(h);
	errno = err;
	return rc;
}

void bl_helper_watch(struct bl_endpoint *ep, int op)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };

	if (ep->helper)
		epoll_ctl(ep->helper_epfd, op, ep->daemon, &e);
}

int bl_helper_failed(struct bl_endpoint *ep)
{
	struct bl_helper *h = ep->helper;
	int err = h->alive ? h->error : 0;

	if (!err)
		return 0;
	h->error = 0; /* reported once */
	errno = err;
	return bl_set_error(ep, err,
			    "the helper thread has ended: %m; the endpoint works without it, or "
			    "restart it with bl_helper_stop() and bl_helper_start()");
}
