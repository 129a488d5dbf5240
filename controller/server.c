// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See server.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/netns.h"
#include "controller/admit.h"
#include "controller/dispatch.h"
#include "controller/lead.h"
#include "controller/nodes.h"
#include "controller/outputs.h"
#include "controller/reload.h"
#include "controller/server.h"
#include "controller/sessions.h"
#include "controller/status.h"
#include "maps/meta_abi.h"

static int on_stop(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct bl_ctl *c = ctx;
	uint64_t v;

	(void)src, (void)events;
	if (read(fd, &v, sizeof(v)) == sizeof(v))
		c->stop = true;
	return 0;
}

void bl_ctl_stop(struct bl_ctl *c)
{
	uint64_t one = 1;

	/* write() is async-signal-safe. */
	if (write(c->stop_fd, &one, sizeof(one)) < 0)
		return;
}

static char *on_status(void *ctx, char *said, size_t *len)
{
	char *text = !*said                             ? bl_ctl_text(ctx)
		     : !strcmp(said, "reload\n")        ? ctl_reload_answer(ctx)
		     : !strncmp(said, "admission ", 10) ? ctl_admit_ask(ctx, said)
							: ctl_nodes_ask(ctx, said);

	*len = text ? strlen(text) : 0;
	return text;
}

static int open_store(struct bl_ctl *c, struct bl_err *err)
{
	const char *urls[BL_CTL_ETCD_MAX];
	struct bl_etcd_cfg e = { .endpoints = urls,
				 .nendpoints = c->cfg.netcd,
				 .prefix = *c->cfg.prefix ? c->cfg.prefix : NULL,
				 .ttl_s = c->cfg.ttl_s,
				 .ca = *c->cfg.etcd_ca ? c->cfg.etcd_ca : NULL,
				 .cert = *c->cfg.etcd_cert ? c->cfg.etcd_cert : NULL,
				 .key = *c->cfg.etcd_key ? c->cfg.etcd_key : NULL };
	unsigned int i;

	if (!*c->cfg.sqlite == !c->cfg.netcd)
		return bl_fail(err, EINVAL, "the controller needs one store: sqlite, or etcd");
	if (*c->cfg.sqlite)
		return bl_store_sqlite(&c->store, c->ev, c->cfg.sqlite, err);
	for (i = 0; i < c->cfg.netcd; i++)
		urls[i] = c->cfg.etcd[i];
	return bl_store_etcd(&c->store, c->ev, &e, err);
}

static int open_socket(struct bl_ctl *c, struct bl_err *err)
{
	struct sockaddr_storage sa;
	socklen_t len;
	int one = 1;

	if (bl_session_addr(c->cfg.listen, &sa, &len))
		return bl_fail(err, EINVAL,
			       "listen: \"%s\" is no address, as 10.0.0.1:%d or [fd00::1]:%d",
			       c->cfg.listen, BL_SESSION_PORT, BL_SESSION_PORT);
	c->listen_fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listen_fd < 0 ||
	    setsockopt(c->listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(c->listen_fd, (struct sockaddr *)&sa, len) || listen(c->listen_fd, 512))
		return bl_fail(err, errno, "cannot listen at %s: %s", c->cfg.listen,
			       strerror(errno));
	return 0;
}

static int open_status_socket(struct bl_ctl *c, struct bl_err *err)
{
	unsigned long long netns = bl_netns_ino();
	char path[128];

	/* Controllers that were killed have left their sockets behind. */
	snprintf(path, sizeof(path), BL_RUN_DIR BL_CTL_STATUS_GLOB, netns);
	bl_status_sockets_clean(path, false, NULL, NULL);
	snprintf(path, sizeof(path), BL_RUN_DIR BL_CTL_STATUS, netns, (int)getpid());
	return bl_status_socket_open(&c->status_socket, path, on_status, c, err);
}

static int copy_nodes(struct bl_ctl *c, const struct bl_ctl_cfg *cfg, struct bl_err *err)
{
	if (!cfg->nnodes)
		return 0;
	c->cfg.nodes = calloc(cfg->nnodes, sizeof(*cfg->nodes));
	if (!c->cfg.nodes)
		return bl_fail(err, ENOMEM, "out of memory");
	memcpy(c->cfg.nodes, cfg->nodes, cfg->nnodes * sizeof(*cfg->nodes));
	return 0;
}

int bl_ctl_new(struct bl_ctl **out, const struct bl_ctl_cfg *cfg, struct bl_err *err)
{
	struct bl_ctl *c = calloc(1, sizeof(*c));
	struct bl_recover_cfg rec;
	int rc = 0;

	*out = NULL;
	if (!c)
		return bl_fail(err, ENOMEM, "out of memory");
	c->cfg = *cfg;
	bl_ctl_config_defaults(&c->cfg);
	c->cfg.nodes = NULL;
	c->listen_fd = c->admit.kick_fd = c->order.kick_fd = c->reload.kick_fd = c->spare_fd = -1;
	pthread_mutex_init(&c->lock, NULL);
	c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rec = ctl_limits(&c->cfg);
	c->rec = bl_recover_new(&rec);
	if (c->stop_fd < 0 || !c->rec || sd_event_new(&c->ev) < 0 ||
	    sd_event_set_watchdog(c->ev, true) < 0)
		rc = bl_fail(err, ENOMEM, "out of memory");
	if (!rc)
		rc = copy_nodes(c, cfg, err);
	if (!rc)
		rc = bl_ctl_config_check(&c->cfg, err);
	if (!rc)
		rc = ctl_tls_open(&c->tls, &c->cfg, err);
	if (!rc)
		rc = open_socket(c, err);
	if (!rc)
		rc = open_store(c, err);
	if (!rc && sd_event_add_io(c->ev, &c->stop_src, c->stop_fd, EPOLLIN, on_stop, c) < 0)
		rc = bl_fail(err, ENOMEM, "cannot make an event loop");
	if (!rc)
		rc = ctl_outputs_open(c, err);
	if (!rc)
		rc = ctl_sessions_open(c, err);
	if (!rc)
		rc = ctl_admit_open(c, err);
	if (!rc)
		rc = ctl_nodes_open(c, err);
	if (!rc)
		rc = ctl_dispatch_open(c, err);
	if (!rc)
		rc = ctl_reload_open(c, err);
	if (!rc)
		rc = ctl_lead_campaign(c, err);
	if (!rc)
		rc = open_status_socket(c, err);
	if (rc)
		bl_ctl_free(c);
	else
		*out = c;
	return rc;
}

int bl_ctl_run(struct bl_ctl *c, struct bl_err *err)
{
	int rc = 0;

	while (!c->stop && rc >= 0) {
		rc = sd_event_prepare(c->ev);
		if (rc == 0)
			rc = sd_event_wait(c->ev, UINT64_MAX);
		if (rc <= 0)
			continue;
		pthread_mutex_lock(&c->lock);
		rc = sd_event_dispatch(c->ev);
		pthread_mutex_unlock(&c->lock);
	}
	if (rc < 0)
		return bl_fail(err, -rc, "the event loop failed: %s", strerror(-rc));
	return *c->fatal.text ? bl_fail(err, EIO, "%s", c->fatal.text) : 0;
}

void bl_ctl_free(struct bl_ctl *c)
{
	if (!c)
		return;
	ctl_reload_end(c);
	bl_status_socket_close(c->status_socket);
	ctl_reload_close(c);
	ctl_admit_close(c);
	ctl_sessions_close(c);
	ctl_dispatch_close(c);
	ctl_nodes_close(c);
	free(c->cfg.nodes);
	if (c->store)
		bl_store_resign(c->store, 500);
	bl_store_close(c->store);
	ctl_outputs_close(c);
	bl_recover_free(c->rec);
	sd_event_source_disable_unref(c->stop_src);
	sd_event_unref(c->ev);
	bl_session_tls_free(c->tls);
	if (c->listen_fd >= 0)
		close(c->listen_fd);
	if (c->stop_fd >= 0)
		close(c->stop_fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
