// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * NAPI threads of a switch's ports, kept on the home CPUs of their lanes: a link that goes down loses its threads, and one that comes up has new ones wherever the scheduler likes them. Until they are pinned, the programs
 * send their frames home themselves (bpf/switch_homing.h); what is late here costs time, no promise.
 */
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include "node_priv.h"

static void pin(struct bl_attached *a)
{
	struct bl_err why;

	a->home_cpu = -1;
	if (bl_napi_thread(&a->iface, a->cpu, &why))
		bl_log(BL_LOG_WARN, "%s", why.text);
	else if (a->iface.up)
		a->home_cpu = a->cpu;
}

static void heard(struct bl_node *n, int ifindex, bool up)
{
	unsigned int k;

	for (k = 0; k < n->natt; k++) {
		struct bl_attached *a = &n->att[k];
		bool came = up && !a->iface.up;

		if (a->iface.ifindex != ifindex)
			continue;
		a->iface.up = up;
		if (came)
			pin(a);
		else if (!up)
			a->home_cpu = -1;
	}
}

/* Something was missed. */
static void look(struct bl_node *n)
{
	unsigned int k;

	for (k = 0; k < n->natt; k++) {
		struct bl_attached *a = &n->att[k];
		struct bl_iface now;
		struct bl_err why;

		if (bl_iface_get(&now, a->iface.name, &why) || now.ifindex != a->iface.ifindex)
			continue;
		a->iface.up = now.up;
		pin(a);
	}
}

static int on_links(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	char buf[16384] __attribute__((aligned(8)));
	struct bl_node *n = ctx;
	struct bl_err why;
	ssize_t len;
	int old;

	(void)src, (void)events;
	if (bl_netns_enter(n->cfg.netns, &old, &why)) {
		bl_log(BL_LOG_WARN, "%s: its links cannot be watched any more: %s", n->meta.name, why.text);
		n->links_src = sd_event_source_disable_unref(n->links_src);
		return 0;
	}
	while ((len = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		struct nlmsghdr *h;

		for (h = (void *)buf; NLMSG_OK(h, (uint32_t)len); h = NLMSG_NEXT(h, len)) {
			const struct ifinfomsg *i = NLMSG_DATA(h);

			if (h->nlmsg_type == RTM_NEWLINK && h->nlmsg_len >= NLMSG_LENGTH(sizeof(*i)))
				heard(n, i->ifi_index, i->ifi_flags & IFF_UP);
		}
	}
	if (len < 0 && errno == ENOBUFS)
		look(n);
	bl_netns_leave(old);
	return 0;
}

int bl_links_watch(struct bl_node *n, struct bl_err *err)
{
	struct sockaddr_nl me = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int rc;

	n->links_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (n->links_fd < 0 || bind(n->links_fd, (struct sockaddr *)&me, sizeof(me)))
		return bl_fail(err, errno, "cannot watch the links of the ports: %s", strerror(errno));
	rc = sd_event_add_io(n->srv->ev, &n->links_src, n->links_fd, EPOLLIN, on_links, n);
	if (rc < 0)
		return bl_fail(err, -rc, "cannot watch the links of the ports: %s", strerror(-rc));
	look(n);
	return 0;
}

void bl_links_unwatch(struct bl_node *n)
{
	n->links_src = sd_event_source_disable_unref(n->links_src);
	if (n->links_fd >= 0)
		close(n->links_fd);
	n->links_fd = -1;
}
