// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See sessions.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "controller/dispatch.h"
#include "controller/nodes.h"
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

/* Closes the session at once. Another one that waits for its end is taken up. */
static void hang_up(struct peer *p)
{
	struct bl_ctl *c = p->c;
	uint32_t node = p->node;

	ctl_peer_hang_up(p);
	if (node && !ctl_peer_find(c, node))
		ctl_session_gone(c, node);
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
		hang_up(p);
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
	uint32_t node = p->node;

	if (strcmp(why, "closed") && strcmp(why, "the other side closed the connection")) {
		c->counts[CTL_BAD_SESSION]++;
		note_bad_session(p, why);
	}
	ctl_peer_remove(p);
	if (node && !ctl_peer_find(c, node))
		ctl_session_gone(c, node);
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

/* ---- connections ---- */

/*
 * Who has said no HELLO yet takes one of a bounded number of places. A node that comes back needs
 * one for the milliseconds until its HELLO, while strangers may keep theirs for as long as they are
 * let. So a newcomer is let in, and the oldest of the strangers goes: of the same address, if that
 * has more than its share; of all, if there are too many. One that has just come is spared, since
 * it may be a node in the middle of its handshake; only if all have just come is the newcomer
 * refused. What counts as an address is the first 64 bits of IPv6, which are one machine's.
 *
 * Places for nodes are kept: a connection from an address where an admitted node had its last
 * session does not count among all strangers, and sessions of nodes have no limit but the number of
 * nodes.
 *
 * Example: 600 idle connections of one machine. 64 are let be, and each further one pushes out the
 * oldest; while they are younger than SPARED_NS, up to 1024 are open. A node on another machine,
 * and even one on the same, is let in at once.
 */
#define SHARE_MAX      64   /* connections of one address without a HELLO, if they are old */
#define SHARE_HARD     1024 /* the same, if all of them have just come */
#define STRANGERS_MAX  512  /* of all addresses that are not a node's, if they are old */
#define STRANGERS_HARD 2048
#define SPARED_NS      200000000ULL

static void read_from(const struct sockaddr_storage *sa, uint8_t from[16])
{
	const struct sockaddr_in *v4 = (const void *)sa;
	const struct sockaddr_in6 *v6 = (const void *)sa;

	memset(from, 0, 16);
	if (sa->ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		memcpy(from, &v6->sin6_addr, 8);
		return;
	}
	from[10] = from[11] = 0xff;
	if (sa->ss_family == AF_INET6)
		memcpy(from + 12, &v6->sin6_addr.s6_addr[12], 4);
	else
		memcpy(from + 12, &v4->sin_addr, 4);
}

/*
 * Makes room for a connection from @from, at an address that is a node's if @known. Returns false
 * if there is none.
 */
static bool make_room(struct bl_ctl *c, const uint8_t from[16], bool known)
{
	struct peer *p, *oldest = NULL, *of_it = NULL;
	uint64_t now = bl_mono_ns();
	unsigned int same = 0, all = 0;

	for (p = c->peers; p; p = p->next) {
		bool here = !memcmp(p->from, from, 16);

		if (p->node)
			continue;
		same += here;
		all += !p->known;
		if (here && (!of_it || p->begun_ns < of_it->begun_ns))
			of_it = p;
		if (!p->known && (!oldest || p->begun_ns < oldest->begun_ns))
			oldest = p;
	}
	if (same >= SHARE_MAX && now - of_it->begun_ns > SPARED_NS) {
		c->counts[CTL_PUSHED_OUT]++;
		ctl_peer_hang_up(of_it);
		return true;
	}
	if (same >= SHARE_HARD)
		return false;
	if (known || all < STRANGERS_MAX)
		return true;
	if (now - oldest->begun_ns > SPARED_NS) {
		c->counts[CTL_PUSHED_OUT]++;
		ctl_peer_hang_up(oldest);
		return true;
	}
	return all < STRANGERS_HARD;
}

/* There is no descriptor left for a connection: the oldest stranger's becomes free. */
static void free_descriptor(struct bl_ctl *c)
{
	struct peer *p, *oldest = NULL;

	for (p = c->peers; p; p = p->next)
		if (!p->node && (!oldest || p->begun_ns < oldest->begun_ns))
			oldest = p;
	c->counts[CTL_TOO_MANY]++;
	if (oldest) {
		ctl_peer_hang_up(oldest);
		return;
	}
	/* The connection is accepted with the descriptor in reserve, and closed. */
	close(c->spare_fd);
	c->spare_fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (c->spare_fd >= 0)
		close(c->spare_fd);
	c->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int on_accept(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof(sa);
	struct bl_ctl *c = ctx;
	struct peer *p = NULL;
	struct bl_err err;
	uint8_t from[16];
	bool known;
	int conn;

	(void)src, (void)events;
	conn = accept4(fd, (struct sockaddr *)&sa, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (conn < 0) {
		if (errno == EMFILE || errno == ENFILE)
			free_descriptor(c);
		return 0;
	}
	read_from(&sa, from);
	known = ctl_nodes_knows_addr(c, from);
	if (make_room(c, from, known))
		p = calloc(1, sizeof(*p));
	if (!p) {
		c->counts[CTL_TOO_MANY]++;
		close(conn);
		return 0;
	}
	p->c = c;
	p->known = known;
	p->begun_ns = p->heard_ns = bl_mono_ns();
	memcpy(p->from, from, sizeof(from));
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
		/* Whoever says no HELLO is not kept by anything else that he says. */
		if (now < (p->node ? p->heard_ns : p->begun_ns) + c->cfg.silence_ms * NS_PER_MS)
			continue;
		c->counts[CTL_SILENT]++;
		hang_up(p);
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
	c->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (sd_event_add_io(c->ev, &c->listen_src, c->listen_fd, EPOLLIN, on_accept, c) < 0 ||
	    sd_event_add_time_relative(c->ev, &c->beat, CLOCK_MONOTONIC, 0, 1000, on_beat, c) < 0)
		return bl_fail(err, ENOMEM, "cannot make an event loop");
	return 0;
}

void ctl_sessions_look(struct bl_ctl *c)
{
	sd_event_source_set_time_relative(c->beat, 0);
	sd_event_source_set_enabled(c->beat, SD_EVENT_ONESHOT);
}

void ctl_sessions_close(struct bl_ctl *c)
{
	while (c->peers)
		ctl_peer_hang_up(c->peers);
	if (c->spare_fd >= 0)
		close(c->spare_fd);
	sd_event_source_disable_unref(c->listen_src);
	sd_event_source_disable_unref(c->beat);
}
