// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See loop.h. */
#include "loader/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "loader/control.h"
#include "loader/node_priv.h"

static int on_stop(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct bl_server *s = ctx;
	uint64_t v;

	(void)src, (void)events;
	if (read(fd, &v, sizeof(v)) == sizeof(v))
		s->stop = true;
	return 0;
}

static int on_signal(sd_event_source *src, const struct signalfd_siginfo *si, void *ctx)
{
	(void)src, (void)si;
	((struct bl_server *)ctx)->stop = true;
	return 0;
}

static int on_hangup(sd_event_source *src, const struct signalfd_siginfo *si, void *ctx)
{
	(void)src, (void)si;
	bl_control_hangup(ctx);
	return 0;
}

void bl_server_destroy(struct bl_server *s)
{
	sd_event_unref(s->ev);
	if (s->stop_fd >= 0)
		close(s->stop_fd);
	pthread_cond_destroy(&s->beacon_cond);
	pthread_mutex_destroy(&s->beacon_lock);
	free(s);
}

int bl_server_new(struct bl_server **out, struct bl_err *err)
{
	struct bl_server *s = calloc(1, sizeof(*s));
	int rc;

	*out = NULL;
	if (!s)
		return bl_fail(err, ENOMEM, "out of memory");
	pthread_mutex_init(&s->beacon_lock, NULL);
	pthread_cond_init(&s->beacon_cond, NULL);
	s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = s->stop_fd < 0 ? -errno : sd_event_new(&s->ev);
	/* While the loop turns, a service manager that wants to know (WatchdogSec=) is told. */
	if (rc >= 0)
		rc = sd_event_set_watchdog(s->ev, true);
	if (rc >= 0)
		rc = sd_event_add_io(s->ev, NULL, s->stop_fd, EPOLLIN, on_stop, s);
	if (rc < 0) {
		bl_server_destroy(s);
		return bl_fail(err, -rc, "cannot make an event loop: %s", strerror(-rc));
	}
	*out = s;
	return 0;
}

void bl_server_block_signals(void)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &mask, NULL);
}

int bl_server_run(struct bl_server *s, struct bl_err *err)
{
	sd_event_source *term = NULL, *intr = NULL, *hangup = NULL;
	sigset_t mask, old;
	int rc;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &mask, &old);
	rc = sd_event_add_signal(s->ev, &term, SIGTERM, on_signal, s);
	if (rc >= 0)
		rc = sd_event_add_signal(s->ev, &intr, SIGINT, on_signal, s);
	if (rc >= 0)
		rc = sd_event_add_signal(s->ev, &hangup, SIGHUP, on_hangup, s);
	s->stop = false;
	while (rc >= 0 && !s->stop)
		rc = sd_event_run(s->ev, UINT64_MAX);
	sd_event_source_disable_unref(term);
	sd_event_source_disable_unref(intr);
	sd_event_source_disable_unref(hangup);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc < 0 ? bl_fail(err, -rc, "the event loop failed: %s", strerror(-rc)) : 0;
}

void bl_server_stop(struct bl_server *s)
{
	uint64_t one = 1;

	/*
	 * write() is async-signal-safe. The counter of an eventfd cannot overflow here, and a full
	 * one would wake the loop as well.
	 */
	if (write(s->stop_fd, &one, sizeof(one)) < 0)
		return;
}

int bl_server_fd(struct bl_server *s)
{
	return sd_event_get_fd(s->ev);
}

int bl_server_step(struct bl_server *s, struct bl_err *err)
{
	int rc, n = 0;

	/*
	 * Bounded, because the caller's loop has other work, too. The descriptor stays readable
	 * while more events are pending.
	 */
	do
		rc = sd_event_run(s->ev, 0);
	while (rc > 0 && ++n < 64);
	return rc < 0 ? bl_fail(err, -rc, "the event loop failed: %s", strerror(-rc)) : 0;
}
