// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See control.h. */
#include "loader/control.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/changes.h"
#include "base/event.h"
#include "base/proc.h"
#include "loader/auth.h"
#include "loader/config.h"
#include "loader/load/pin.h"
#include "loader/node_priv.h"
#include "loader/reload.h"

#define CLIENTS 4 /* at a time; more are turned away */

/** struct bl_control - the control socket of a node. */
struct bl_control {
	struct bl_node *node;
	int fd;
	sd_event_source *src;
	struct sockaddr_un addr;
	sd_event_source *client[CLIENTS]; /* NULL: free */
};

static void control_addr(struct sockaddr_un *a, enum bl_role role, uint64_t ino)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(a->sun_path, sizeof(a->sun_path), "%s/%s-%" PRIu64 "-control.sock", BL_RUN_DIR,
		 bl_role_name(role), ino);
}

static int control_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

void bl_server_on_reload(struct bl_server *s,
			 int (*read)(void *ctx, struct bl_node_cfg *out, struct bl_err *err),
			 void *ctx)
{
	s->read_config = read;
	s->read_ctx = ctx;
}

static int reload_node(struct bl_node *n, FILE *say, struct bl_err *err)
{
	struct bl_server *s = n->srv;
	struct bl_node_cfg now = {};
	int rc;

	if (!s->read_config)
		return bl_fail(err, ENOTSUP,
			       "this node was started without a configuration that "
			       "could be read again");
	bl_reload_begins();
	rc = s->read_config(s->read_ctx, &now, err);
	if (!rc)
		rc = bl_node_reload(n, &now, say, err);
	bl_config_free(&now);
	bl_reload_ends(n->meta.name, n->meta.name, rc < 0 ? rc : 0, rc < 0 ? 0 : (unsigned int)rc,
		       err);
	return rc < 0 ? rc : 0;
}

void bl_control_hangup(struct bl_server *s)
{
	struct bl_node *n;
	struct bl_err err;

	for (n = s->nodes; n; n = n->next) {
		if (s->read_config) {
			reload_node(n, NULL, &err);
			continue;
		}
		if (n->auth_fd < 0)
			continue;
		if (bl_auth_reload(n, &err))
			bl_log(BL_LOG_ERR, "%s: %s; the keys of its links stay as they were",
			       n->meta.name, err.text);
		else
			bl_event(BL_EVENT(RELOADED, INFO, n->meta.name, .reason = "keys"),
				 "%s: the keys of its links were read again", n->meta.name);
	}
}

/* ---- the socket ---- */

static void answer(struct bl_node *n, int fd, const char *said)
{
	struct bl_err err;
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	int rc;

	if (!f)
		return;
	if (!strncmp(said, BL_CONTROL_ADMISSION, strlen(BL_CONTROL_ADMISSION))) {
		said += strlen(BL_CONTROL_ADMISSION);
		bl_event(BL_EVENT(ADMISSION_CHANGED, INFO, n->meta.name, .reason = said),
			 "%s: `barline admission set` changed the admission: %s", n->meta.name,
			 said);
		rc = 0;
	} else if (strcmp(said, "reload"))
		rc = bl_fail(&err, EINVAL, "this daemon does not know that command");
	else
		rc = reload_node(n, f, &err);
	if (rc)
		fprintf(f, "error\t%s\n", err.text);
	else
		fputs("ok\n", f);
	if (!fclose(f)) {
		/* the end matters, and the rest is in the log */
		size_t skip = size < BL_CONTROL_ANSWER_MAX ? 0 : size - BL_CONTROL_ANSWER_MAX + 1;

		send(fd, text + skip, size - skip, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	free(text);
}

static void end_client(struct bl_control *c, unsigned int k)
{
	int fd = sd_event_source_get_io_fd(c->client[k]);

	c->client[k] = sd_event_source_disable_unref(c->client[k]);
	close(fd);
}

static int on_client(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct bl_control *c = ctx;
	char said[BL_CONTROL_WORD_MAX];
	ssize_t n = recv(fd, said, sizeof(said) - 1, MSG_DONTWAIT);
	unsigned int k;

	(void)events;
	if (n > 0) {
		said[n] = 0;
		answer(c->node, fd, said);
	}
	for (k = 0; k < CLIENTS; k++)
		if (c->client[k] == src)
			end_client(c, k);
	return 0;
}

static int on_connect(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct bl_control *c = ctx;
	unsigned int k;

	(void)src, (void)events;
	if (conn < 0)
		return 0;
	for (k = 0; k < CLIENTS && c->client[k]; k++)
		;
	if (k == CLIENTS) /* those that came first and say nothing make room */
		end_client(c, k = 0);
	if (sd_event_add_io(c->node->srv->ev, &c->client[k], conn, EPOLLIN, on_client, c) < 0) {
		c->client[k] = NULL;
		close(conn);
	}
	return 0;
}

int bl_control_open(struct bl_node *n, struct bl_err *err)
{
	struct bl_control *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return bl_fail(err, ENOMEM, "out of memory");
	c->node = n;
	n->control = c;
	control_addr(&c->addr, n->cfg.role, n->netns_ino);
	unlink(c->addr.sun_path); /* a dead daemon's; this process has the node's lock */
	c->fd = control_socket();
	/* nobody can connect before listen() */
	if (c->fd < 0 || bind(c->fd, (struct sockaddr *)&c->addr, sizeof(c->addr)) ||
	    chmod(c->addr.sun_path, 0600) || listen(c->fd, CLIENTS))
		return bl_fail(err, errno, "cannot listen at %s: %s", c->addr.sun_path,
			       strerror(errno));
	rc = sd_event_add_io(n->srv->ev, &c->src, c->fd, EPOLLIN, on_connect, c);
	return rc < 0 ? bl_fail(err, -rc, "cannot serve %s: %s", c->addr.sun_path, strerror(-rc))
		      : 0;
}

void bl_control_close(struct bl_node *n)
{
	struct bl_control *c = n->control;
	unsigned int k;

	if (!c)
		return;
	n->control = NULL;
	for (k = 0; k < CLIENTS; k++)
		if (c->client[k])
			end_client(c, k);
	sd_event_source_disable_unref(c->src);
	if (c->fd >= 0) {
		close(c->fd);
		unlink(c->addr.sun_path);
	}
	free(c);
}

/* ---- the client ---- */

void bl_control_tell(enum bl_role role, uint64_t ino, const char *what)
{
	struct sockaddr_un a;
	int fd = control_socket();

	control_addr(&a, role, ino);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a)))
		send(fd, what, strlen(what), MSG_NOSIGNAL);
	if (fd >= 0)
		close(fd);
}

int bl_control_ask(enum bl_role role, uint64_t ino, const char *what, char *answer, int ms,
		   struct bl_err *err)
{
	struct sockaddr_un a;
	struct pollfd p = { .events = POLLIN };
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);
	char said[256];
	ssize_t n = -1;
	int rc;

	control_addr(&a, role, ino);
	p.fd = control_socket();
	if (p.fd < 0)
		return bl_fail(err, errno, "cannot make a socket: %s", strerror(errno));
	if (connect(p.fd, (struct sockaddr *)&a, sizeof(a)) ||
	    getsockopt(p.fd, SOL_SOCKET, SO_PEERCRED, &who, &len) ||
	    send(p.fd, what, strlen(what), MSG_NOSIGNAL) < 0)
		rc = errno == EAGAIN /* its queue of clients is full */
			     ? bl_fail(err, ETIMEDOUT,
				       "the daemon does not answer; is it stopped? "
				       "`barline status` says what is wrong with it")
			     : errno == ENOENT || errno == ECONNREFUSED
				       ? bl_fail(err, errno,
						 "no daemon runs that could be told; start it, "
						 "and it reads its configuration")
				       : bl_fail(err, errno, "cannot reach the daemon at %s: %s",
						 a.sun_path, strerror(errno));
	else if (poll(&p, 1, ms) <= 0)
		rc = bl_fail(err, ETIMEDOUT,
			     "%s; it reloads when it continues: `barline config diff` then shows "
			     "whether it has",
			     bl_proc_silence(said, sizeof(said), "daemon", who.pid,
					     (unsigned int)ms));
	else if ((n = recv(p.fd, answer, BL_CONTROL_ANSWER_MAX - 1, 0)) <= 0)
		rc = bl_fail(err, n ? errno : EPIPE, "the daemon ended before it had answered");
	else
		rc = 0;
	if (!rc)
		answer[n] = 0;
	close(p.fd);
	return rc;
}
