// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The helper thread does what others wait for while the application does not call the library. It
 * takes frames out of the ring and puts what can be delivered on a shelf (shelf.c), up to a limit,
 * returns credits for it, retransmits, and carries out recalls. It never runs a callback: the
 * application's next call reports in the application's thread what the helper has found.
 *
 * While the application calls, or sleeps in bl_wait(), the helper only checks every 10 to 40 ms
 * that it still does. If there was no call since the last check and something is due, the helper
 * takes over. From then on it sleeps as an application in bl_recv() would, and is woken by the XDP
 * program, until there is a call. lock.c keeps the two apart.
 *
 * Example: an application computes for 30 s. After at most 50 ms the helper finds 28 frames in the
 * ring and no call since the last check. The frames go to the shelf, their credits go back, and the
 * program is asked to wake the ring's sleepers on data. The next bl_recv() delivers what has
 * arrived in 30 s, in order, before anything newer.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "again.h"
#include "away.h"
#include "error.h"
#include "lock.h"
#include "wake.h"

#define LOOK_MS   10
#define LOOK_MOST 40
#define STACK     (512u << 10)

static uint64_t call_count(const struct bl_helper *h)
{
	return __atomic_load_n(&h->calls, __ATOMIC_RELAXED);
}

/*
 * Whether to take over: the application has not called since its call number @since, does not sleep
 * in a call, and something is due.
 */
static bool must_take_over(struct bl_endpoint *ep, uint64_t since)
{
	struct bl_helper *h = ep->helper;
	bool res;

	if (call_count(h) != since || pthread_mutex_trylock(&h->lock))
		return false;
	res = call_count(h) == since && !__atomic_load_n(&h->asleep, __ATOMIC_ACQUIRE) &&
	      bl_away_due(ep);
	pthread_mutex_unlock(&h->lock);
	return res;
}

/* Work for the application until it calls. Returns false if the thread is to end. */
static bool stand_in_for_app(struct bl_endpoint *ep, uint64_t since)
{
	struct bl_helper *h = ep->helper;

	for (;;) {
		struct epoll_event ev[3];
		int ms, n;

		pthread_mutex_lock(&h->lock);
		if (call_count(h) != since) {
			pthread_mutex_unlock(&h->lock);
			return true;
		}
		bl_daemon_hear(ep);
		ms = bl_away_work(ep, &h->armed);
		pthread_mutex_unlock(&h->lock);
		n = epoll_wait(ep->helper_epfd, ev, 3, ms);
		if (__atomic_load_n(&h->stop, __ATOMIC_ACQUIRE))
			return false;
		if (n < 0 && errno != EINTR) {
			pthread_mutex_lock(&h->lock);
			h->error = errno;
			pthread_mutex_unlock(&h->lock);
			return false;
		}
	}
}

static void *run_helper(void *arg)
{
	struct bl_endpoint *ep = arg;
	struct bl_helper *h = ep->helper;
	uint64_t seen = call_count(h);
	int ms = LOOK_MS;

	prctl(PR_SET_NAME, "barline-helper");
	while (!__atomic_load_n(&h->stop, __ATOMIC_ACQUIRE)) {
		struct pollfd stop = { .fd = ep->helper_stop, .events = POLLIN };
		int n = poll(&stop, 1, ms);
		uint64_t now = call_count(h);

		if (n < 0 && errno != EINTR) {
			pthread_mutex_lock(&h->lock);
			h->error = errno;
			pthread_mutex_unlock(&h->lock);
			break;
		}
		if (n > 0)
			continue; /* the loop condition ends the thread */
		if (now != seen) {
			seen = now;
			ms = LOOK_MS;
		} else if (must_take_over(ep, seen)) {
			if (!stand_in_for_app(ep, seen))
				break;
			ms = LOOK_MS;
		} else if (ms < LOOK_MOST) {
			ms *= 2;
		}
	}
	return NULL;
}

static int watch_fd(const struct bl_endpoint *ep, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events };

	return epoll_ctl(ep->helper_epfd, EPOLL_CTL_ADD, fd, &e);
}

/*
 * Edge-triggered, as in bl_init(): the descriptor signals that the program or the daemon woke us.
 * Returns 0 or a positive errno.
 */
static int open_fds(struct bl_endpoint *ep)
{
	ep->helper_stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ep->helper_epfd = epoll_create1(EPOLL_CLOEXEC);
	if (ep->helper_stop < 0 || ep->helper_epfd < 0 || watch_fd(ep, ep->helper_stop, EPOLLIN) ||
	    watch_fd(ep, ep->fd[BL_FD_RING], EPOLLIN | EPOLLET) ||
	    (ep->daemon >= 0 && (!ep->daemon_gone || ep->asked) &&
	     watch_fd(ep, ep->daemon, EPOLLIN | EPOLLET)))
		return errno;
	return 0;
}

/* The thread blocks all signals, so the application's threads handle them. */
static int start_thread(struct bl_endpoint *ep, struct bl_helper *h)
{
	sigset_t all, was;
	pthread_attr_t at;
	int rc;

	pthread_attr_init(&at);
	pthread_attr_setstacksize(&at, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	rc = pthread_create(&h->thread, &at, run_helper, ep);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	pthread_attr_destroy(&at);
	return rc;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

int bl_helper_start(struct bl_endpoint *ep, uint64_t bytes)
{
	struct bl_helper *h;
	int rc;

	if (ep->helper) {
		bl_enter(ep);
		rc = bl_set_error(ep, EALREADY, "this endpoint has a helper thread");
		bl_leave(ep);
		return rc;
	}
	h = mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (h == MAP_FAILED)
		return bl_set_error(ep, errno, "no memory for a helper thread: %m");
	if (madvise(h, sizeof(*h), MADV_WIPEONFORK)) {
		munmap(h, sizeof(*h));
		return bl_set_error(ep, errno,
				    "cannot keep the helper thread's page from a fork: %m");
	}
	pthread_mutex_init(&h->lock, NULL);
	ep->helper = h;
	ep->helper_stop = ep->helper_epfd = -1;
	ep->shelf_max = bytes ? bytes : BL_HELPER_BYTES;
	rc = open_fds(ep);
	h->alive = true;
	if (!rc)
		rc = start_thread(ep, h);
	if (!rc)
		return 0;
	h->alive = false;
	bl_helper_stop(ep);
	errno = rc;
	return bl_set_error(ep, rc, "cannot start a helper thread: %m");
}

void bl_helper_stop(struct bl_endpoint *ep)
{
	struct bl_helper *h = ep->helper;
	const uint64_t one = 1;

	if (!h)
		return;
	if (h->alive) {
		__atomic_store_n(&h->stop, true, __ATOMIC_RELEASE);
		(void)!write(ep->helper_stop, &one, sizeof(one));
		pthread_join(h->thread, NULL);
		pthread_mutex_destroy(&h->lock);
	}
	close_fd(ep->helper_epfd);
	close_fd(ep->helper_stop);
	if (h->armed)
		bl_disarm(ep);
	munmap(h, sizeof(*h));
	ep->helper = NULL;
}
