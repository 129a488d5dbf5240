// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See hangup.h. */
#include "base/hangup.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/thread.h"

/* An arbiter locks its memory, and so the whole stack. */
#define STACK_BYTES (512U << 10)

/** struct bl_hangup - The thread that waits for SIGHUP. */
struct bl_hangup {
	void (*fn)(void *ctx);
	void *ctx;
	int signal_fd;    /* of SIGHUP; -1: none */
	int end_fd;       /* eventfd: the thread is to end; -1: none */
	pthread_t thread; /* valid if @started */
	bool started;
};

static void only_hangup(sigset_t *mask)
{
	sigemptyset(mask);
	sigaddset(mask, SIGHUP);
}

void bl_hangup_block(void)
{
	sigset_t mask;

	only_hangup(&mask);
	pthread_sigmask(SIG_BLOCK, &mask, NULL);
}

static void *wait_main(void *arg)
{
	struct bl_hangup *h = arg;
	struct pollfd p[2] = { { .fd = h->signal_fd, .events = POLLIN },
			       { .fd = h->end_fd, .events = POLLIN } };
	struct signalfd_siginfo si;

	pthread_setname_np(pthread_self(), "barline-reload");
	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (p[1].revents)
			return NULL;
		if (p[0].revents && read(h->signal_fd, &si, sizeof(si)) == sizeof(si))
			h->fn(h->ctx);
	}
}

int bl_hangup_open(struct bl_hangup **out, void (*fn)(void *ctx), void *ctx, struct bl_err *err)
{
	struct bl_hangup *h = calloc(1, sizeof(*h));
	pthread_attr_t attr;
	sigset_t mask;
	int rc;

	*out = NULL;
	if (!h)
		return bl_fail(err, ENOMEM, "out of memory");
	only_hangup(&mask);
	h->fn = fn;
	h->ctx = ctx;
	h->end_fd = eventfd(0, EFD_CLOEXEC);
	h->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	rc = h->end_fd < 0 || h->signal_fd < 0 ? errno : 0;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (!rc)
		rc = bl_thread_start(&h->thread, &attr, wait_main, h);
	pthread_attr_destroy(&attr);
	if (rc) {
		bl_hangup_close(h);
		return bl_fail(err, rc, "cannot wait for SIGHUP: %s", strerror(rc));
	}
	h->started = true;
	*out = h;
	return 0;
}

void bl_hangup_close(struct bl_hangup *h)
{
	uint64_t one = 1;

	if (!h)
		return;
	if (h->started && write(h->end_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(h->thread, NULL);
	if (h->signal_fd >= 0)
		close(h->signal_fd);
	if (h->end_fd >= 0)
		close(h->end_fd);
	free(h);
}
