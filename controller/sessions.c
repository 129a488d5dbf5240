// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See sessions.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "controller/dispatch.h"
#include "controller/outputs.h"
#include "controller/peer.h"
#include "controller/sessions.h"

#define NS_PER_MS 1000000ULL

/* shortest time between two lines in the log about sessions that failed */
#define BAD_LOG_NS 1000000000ULL

/*
 * Logs the sessions that failed since the last line: the first one at once, those of the following
 * second together. A port scan must not fill the log.
 */
static void log_bad_sessions(struct bl_ctl *c)
{
	uint64_t now = bl_mono_ns();

	if (!c->bad.n || (c->bad.logged_ns && now < c->bad.logged_ns + BAD_LOG_NS))
		return;
	if (c->bad.n == 1)
		bl_log(BL_LOG_INFO, "controller: session with %s", c->bad.last);
	else
		bl_log(BL_LOG_INFO, "controller: %u more sessions failed; the last one with %s",
		       c->bad.n, c->bad.last);
	c->bad.logged_ns = now;
	c->bad.n = 0;
}

static void note_bad_session(struct peer *p, const char *why)
{
	struct bl_ctl *c = p->c;

	c->bad.n++;
	snprintf(c->bad.last, sizeof(c->bad.last), "%s: %s", p->addr, why);
	log_bad_sessions(c);
}

static void on_message(void *ctx, const uint8_t *body, size_t len)
{
	struct peer *p = ctx;
	struct bl_ctl *c = p->c;
	Bl__ToController *m = bl__to_controller__unpack(NULL, len, body);
	bool ok;

	p->heard_ns = bl_mono_ns();
	if (!m)
		c->counts[CTL_BAD_MESSAGE]++;
	ok = m && ctl_dispatch(p, m);
	if (m)
		bl__to_controller__free_unpacked(m, NULL);
	if (!ok) {
		note_bad_session(p,
				 m ? "its message was refused" : "it sent what is not a message");
		ctl_peer_hang_up(p);
	}
	ctl_outputs_run(c);
}

static void on_up(void *ctx)
{
	((struct peer *)ctx)->heard_ns = bl_mono_ns();
}

static void on_down(void *ctx, const char *why)
{
	struct peer *p = ctx;
	struct bl_ctl *c = p->c;

	if (strcmp(why, "closed") && strcmp(why, "the other side closed the connection")) {
		c->counts[CTL_BAD_SESSION]++;
		note_bad_session(p, why);
	}
	ctl_peer_remove(p);
	ctl_outputs_run(c);
}

static const struct bl_session_ops session_ops = { .up = on_up,
						   .message = on_message,
						   .down = on_down };

static void format_addr(const struct sockaddr_storage *sa, char *text, size_t size)
{
	char ip[INET6_ADDRSTRLEN] = "?";

	if (sa->ss_family == AF_INET) {
		const struct sockaddr_in *v = (const void *)sa;

		inet_ntop(AF_INET, &v->sin_addr, ip, sizeof(ip));
		snprintf(text, size, "%s:%u", ip, ntohs(v->sin_port));
	} else if (sa->ss_family == AF_INET6) {
		const struct sockaddr_in6 *v = (const void *)sa;

		inet_ntop(AF_INET6, &v->sin6_addr, ip, sizeof(ip));
		snprintf(text, size, "[%s]:%u", ip, ntohs(v->sin6_port));
	}
}

static int on_accept(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof(sa);
	struct bl_ctl *c = ctx;
	struct bl_err err;
	struct peer *p;
	int conn;

	(void)src, (void)events;
	conn = accept4(fd, (struct sockaddr *)&sa, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (conn < 0)
		return 0;
	p = c->npeers < CTL_SESSIONS_MAX && c->strangers < CTL_STRANGERS_MAX ? calloc(1, sizeof(*p))
									     : NULL;
	if (!p) {
		c->counts[CTL_TOO_MANY]++;
		close(conn);
		return 0;
	}
	p->c = c;
	p->heard_ns = bl_mono_ns();
	format_addr(&sa, p->addr, sizeof(p->addr));
	if (bl_session_accept(&p->session, c->ev, conn, c->tls, &session_ops, p, &err)) {
		free(p);
		return 0;
	}
	p->next = c->peers;
	c->peers = p;
	c->npeers++;
	c->strangers++;
	c->counts[CTL_SESSIONS]++;
	return 0;
}

static int on_beat(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_ctl *c = ctx;
	uint64_t now = bl_mono_ns();
	struct peer *p, *next;

	(void)usec;
	for (p = c->peers; p; p = next) {
		next = p->next;
		if (now < p->heard_ns + c->cfg.silence_ms * NS_PER_MS)
			continue;
		c->counts[CTL_SILENT]++;
		ctl_peer_hang_up(p);
	}
	log_bad_sessions(c);
	sd_event_source_set_time_relative(
		src, c->cfg.silence_ms > 3000 ? 1000000 : c->cfg.silence_ms * 1000ULL / 3);
	sd_event_source_set_enabled(src, SD_EVENT_ONESHOT);
	ctl_outputs_run(c);
	return 0;
}

int ctl_sessions_open(struct bl_ctl *c, struct bl_err *err)
{
	if (sd_event_add_io(c->ev, &c->listen_src, c->listen_fd, EPOLLIN, on_accept, c) < 0 ||
	    sd_event_add_time_relative(c->ev, &c->beat, CLOCK_MONOTONIC, 0, 1000, on_beat, c) < 0)
		return bl_fail(err, ENOMEM, "cannot make an event loop");
	return 0;
}

void ctl_sessions_close(struct bl_ctl *c)
{
	while (c->peers)
		ctl_peer_hang_up(c->peers);
	sd_event_source_disable_unref(c->listen_src);
	sd_event_source_disable_unref(c->beat);
}
