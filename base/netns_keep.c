// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See netns_keep.h. */
#include "base/netns_keep.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/netns.h"
#include "base/privileges.h"
#include "base/thread.h"

/** struct helper - a thread that runs one function at a time for others. */
struct helper {
	const char *name;
	bool scratch; /* it moves into a new namespace first */
	pthread_mutex_t lock;
	pthread_cond_t turn;
	bool ready;              /* the thread has started, or failed to by @rc */
	bool runs;               /* it has started; constant from then on */
	int (*fn)(void *ctx);    /* what it is asked to run; NULL: nothing */
	void *ctx;               /* of @fn */
	bool done;               /* @fn has returned @rc */
	int rc;                  /* of the start, or of @fn */
	pthread_mutex_t callers; /* held by the thread that waits for an answer */
};

static struct helper home = { .name = "barline-home",
			      .lock = PTHREAD_MUTEX_INITIALIZER,
			      .turn = PTHREAD_COND_INITIALIZER,
			      .callers = PTHREAD_MUTEX_INITIALIZER };
static struct helper empty = { .name = "barline-empty",
			       .scratch = true,
			       .lock = PTHREAD_MUTEX_INITIALIZER,
			       .turn = PTHREAD_COND_INITIALIZER,
			       .callers = PTHREAD_MUTEX_INITIALIZER };

static void *helper_main(void *arg)
{
	struct helper *h = arg;

	pthread_setname_np(pthread_self(), h->name);
	pthread_mutex_lock(&h->lock);
	h->rc = h->scratch && unshare(CLONE_NEWNET) ? -errno : 0;
	h->runs = !h->rc;
	h->ready = true;
	pthread_cond_broadcast(&h->turn);
	while (h->runs) {
		if (!h->fn) {
			pthread_cond_wait(&h->turn, &h->lock);
			continue;
		}
		h->rc = h->fn(h->ctx);
		h->fn = NULL;
		h->done = true;
		pthread_cond_broadcast(&h->turn);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

static int start_helper(struct helper *h)
{
	pthread_t t;
	int rc;

	rc = bl_thread_start(&t, NULL, helper_main, h);
	if (rc)
		return -rc;
	pthread_detach(t);
	pthread_mutex_lock(&h->lock);
	while (!h->ready)
		pthread_cond_wait(&h->turn, &h->lock);
	rc = h->rc;
	pthread_mutex_unlock(&h->lock);
	return rc;
}

static int ask_helper(struct helper *h, int (*fn)(void *ctx), void *ctx)
{
	int rc;

	if (!h->runs)
		return -ENOENT;
	pthread_mutex_lock(&h->callers);
	pthread_mutex_lock(&h->lock);
	h->ctx = ctx;
	h->done = false;
	h->fn = fn;
	pthread_cond_broadcast(&h->turn);
	while (!h->done)
		pthread_cond_wait(&h->turn, &h->lock);
	rc = h->rc;
	pthread_mutex_unlock(&h->lock);
	pthread_mutex_unlock(&h->callers);
	return rc;
}

int bl_netns_settle(const char *netns, bool scratch, struct bl_err *err)
{
	bool moves = netns && *netns;
	int rc = moves ? start_helper(&home) : 0, old;

	if (!rc && scratch)
		rc = start_helper(&empty);
	if (rc)
		return bl_fail(err, -rc, "cannot keep a thread in a network namespace: %s",
			       strerror(-rc));
	rc = bl_netns_enter(netns, &old, err);
	if (!rc && old >= 0)
		close(old);
	return rc;
}

static int keep_caps(void *ctx)
{
	(void)ctx;
	bl_thread_keep_caps();
	return 0;
}

static int drop_caps(void *ctx)
{
	return bl_thread_drop(*(uint64_t *)ctx);
}

int bl_netns_helpers_drop(uint64_t keep, int (*change)(void *ctx), void *ctx, struct bl_err *err)
{
	uint64_t none = 0;
	int rc;

	ask_helper(&home, keep_caps, NULL);
	ask_helper(&empty, keep_caps, NULL);
	rc = change(ctx);
	if (rc)
		return rc;
	if (home.runs)
		rc = ask_helper(&home, drop_caps, &none);
	if (!rc && empty.runs)
		rc = ask_helper(&empty, drop_caps, &keep);
	return rc ? bl_fail(err, -rc, "a helper thread cannot give up capabilities: %s",
			    strerror(-rc))
		  : 0;
}

struct socket_args {
	int family, type, protocol;
};

/* Returns a descriptor or -errno. */
static int make_socket(void *ctx)
{
	const struct socket_args *a = ctx;
	int fd = socket(a->family, a->type, a->protocol);

	return fd < 0 ? -errno : fd;
}

int bl_home_socket(int family, int type, int protocol)
{
	struct socket_args a = { family, type, protocol };
	int fd = home.runs ? ask_helper(&home, make_socket, &a) : make_socket(&a);

	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

int bl_scratch_run(int (*fn)(void *ctx), void *ctx)
{
	return ask_helper(&empty, fn, ctx);
}
