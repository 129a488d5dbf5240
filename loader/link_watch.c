// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What follows from changes of a node's interfaces while its daemon runs.
 *
 * 	change			what is done
 * 	deleted and made anew	attached again under its name: programs, tables, the beacon
 * 				socket, NAPI threads
 * 	renamed			known by its new name: pins, tables, what new endpoints are told
 * 	MTU, MAC address	taken over. An MTU that XDP cannot have is refused by a message
 * 				in the log, and the old MTU stays in force
 * 	down and up		NAPI threads of a switch's ports are pinned again to the home
 * 				CPUs of their lanes. Until then the programs steer the frames
 * 				to their home CPU (bpf/switch/steer.h)
 * 	put into a bond, or no	said, in the log and by the doctor (load/lower.h). The programs
 * 	longer its active slave	stay
 * 	IP addresses		reported to the controller. Endpoints keep theirs, new ones get
 * 				the new address. The log, the doctor and `barline show
 * 				endpoints` name those whose address is gone
 *
 * A netlink message only says when to sample the interfaces. What is done follows from what the
 * sample finds, so a lost message, or many messages in a row, make no difference. Example: eth0
 * (index 7) is deleted and made anew (index 9). "RTM_DELLINK 7": there is neither an index 7 nor an
 * eth0, so eth0 is gone. "RTM_NEWLINK 9 eth0": there is no index 7, but there is an eth0, which is
 * attached.
 *
 * An interface is known by its index as long as it exists, and after that by its last name.
 */
#include "loader/link_watch.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "base/iface.h"
#include "base/ip.h"
#include "base/event.h"
#include "base/log.h"
#include "base/netns.h"
#include "loader/admission/bl0.h"
#include "loader/hook_watch.h"
#include "loader/load/attach.h"
#include "loader/load/lower.h"
#include "loader/load/maps.h"
#include "loader/load/pin.h"
#include "loader/nic.h"
#include "loader/node_priv.h"
#include "loader/order/beacon.h"
#include "loader/order/events.h"
#include "loader/spare.h"

#define RETRY_US 1000000

static bool is_watched(const struct bl_node *n, const struct bl_attached *a)
{
	/* A host's lo is not watched. */
	return n->cfg.role == BL_ROLE_SWITCH || a == &n->att[0];
}

void bl_link_pin_napi(struct bl_node *n, struct bl_attached *a)
{
	struct bl_err why;

	a->home_cpu = -1;
	if (n->cfg.role != BL_ROLE_SWITCH)
		return;
	if (bl_nic_thread(n, a, &why))
		bl_log(BL_LOG_WARN, "%s", why.text);
	else if (n->cfg.thread_napi && a->iface.up)
		a->home_cpu = a->cpu;
}

/* ---- a switch's tables ---- */

/* Updates what the port's entry says of the interface; the rest of the entry stays. */
static int update_port_entry(const struct bl_node *n, const struct bl_attached *a,
			     struct bl_err *err)
{
	int fd = bl_node_map_open(n, BL_MAP_SW_PORTS, sizeof(struct bl_sw_port), err), rc;
	uint32_t key = (uint32_t)a->port;
	struct bl_sw_port p;

	if (fd < 0)
		return fd;
	if (bpf_map_lookup_elem(fd, &key, &p)) {
		rc = bl_fail(err, errno, "cannot read entry %u of the map %s: %s", key,
			     BL_MAP_SW_PORTS, strerror(errno));
	} else {
		p.ifindex = (uint32_t)a->iface.ifindex;
		p.mtu = (uint16_t)a->iface.mtu;
		memcpy(p.mac, a->iface.mac, sizeof(p.mac));
		memcpy(p.name, a->iface.name, sizeof(p.name));
		rc = bl_map_set(fd, key, &p, BL_MAP_SW_PORTS, err);
	}
	close(fd);
	return rc;
}

static bool is_metered(const struct bl_node *n, const struct bl_attached *a)
{
	uint32_t key = (uint32_t)a->port;
	struct bl_sw_port p = {};
	int fd = bl_node_map_open(n, BL_MAP_SW_PORTS, sizeof(p), NULL);

	if (fd < 0)
		return false;
	bpf_map_lookup_elem(fd, &key, &p);
	close(fd);
	return p.metered;
}

/* Returns 0, or -errno if the programs cannot work with such an interface. */
static int check_usable(const struct bl_node *n, const struct bl_attached *a,
			const struct bl_iface *now, struct bl_err *err)
{
	int rc = bl_iface_xdp_ok(now, n->frags, err);

	if (!rc && n->cfg.role == BL_ROLE_SWITCH && now->mtu > BL_QUEUE_FRAME_MAX - 18 &&
	    is_metered(n, a))
		rc = bl_fail(err, EMSGSIZE,
			     "port %s has MTU %u, and a metered port queues frames of an MTU up to "
			     "%u; `ip link set %s mtu 1500`",
			     now->name, now->mtu, BL_QUEUE_FRAME_MAX - 18, now->name);
	return rc;
}

/*
 * Writes an entry of a device map without programs, which the pacer sends by. No-op if the node has
 * no such map.
 */
static int set_devmap_entry(const struct bl_node *n, const char *map, uint32_t key,
			    uint32_t ifindex, struct bl_err *err)
{
	struct bpf_devmap_val dev = { .ifindex = ifindex, .bpf_prog.fd = -1 };
	char path[BL_PATH_MAX];
	int fd, rc = 0;

	snprintf(path, sizeof(path), "%s/maps/%s", n->dir, map);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return errno == ENOENT ? 0
				       : bl_fail(err, errno, "cannot open the map %s: %s", path,
						 strerror(errno));
	if (bpf_map_update_elem(fd, &key, &dev,
				/* A map of plain indices takes the first word of the value. */
				BPF_ANY))
		rc = bl_fail(err, errno, "cannot enter interface %u into the device map %s: %s",
			     ifindex, map, strerror(errno));
	close(fd);
	return rc;
}

/*
 * The map of interface indices was sized when the programs were loaded: returns -ERANGE if this
 * index does not fit.
 */
static int check_ifindex_room(const struct bl_node *n, const struct bl_iface *i, struct bl_err *err)
{
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info);
	int fd = bl_node_map_open(n, BL_MAP_SW_IFIDX, sizeof(uint32_t), err), rc = 0;

	if (fd < 0)
		return fd;
	if (!bpf_obj_get_info_by_fd(fd, &info, &len) && (uint32_t)i->ifindex >= info.max_entries)
		rc = bl_fail(err, ERANGE,
			     "port %s has interface number %d now, and the running programs have a "
			     "table for those below %u; restart the daemon of this switch "
			     "(`systemctl restart barlined`), "
			     "which loads them with a larger one; traffic through the other ports "
			     "goes on meanwhile",
			     i->name, i->ifindex, info.max_entries);
	close(fd);
	return rc;
}

static int move_port(const struct bl_node *n, const struct bl_attached *a, uint32_t old,
		     struct bl_err *err)
{
	struct bpf_devmap_val dev = { .ifindex = (uint32_t)a->iface.ifindex,
				      .bpf_prog.fd = n->devmap_prog };
	uint32_t none = 0, number = (uint32_t)a->port + 1;
	int rc;

	rc = check_ifindex_room(n, &a->iface, err);
	if (rc)
		return rc;
	rc = bl_node_map_set(n, BL_MAP_SW_IFIDX, sizeof(number), dev.ifindex, &number, err);
	if (rc)
		return rc;
	if (old && old != dev.ifindex)
		bl_node_map_set(n, BL_MAP_SW_IFIDX, sizeof(none), old, &none, NULL);
	rc = update_port_entry(n, a, err);
	if (!rc)
		rc = bl_node_map_set(n, BL_MAP_SW_TX, sizeof(dev), (uint32_t)a->port, &dev, err);
	return rc || !n->cfg.admission.on
		       ? rc
		       : set_devmap_entry(n, BL_MAP_PORT_TX, (uint32_t)a->port, dev.ifindex, err);
}

/* ---- a host's bl0 ---- */

static int move_bl0(struct bl_node *n, struct bl_err *err)
{
	uint32_t nic = (uint32_t)n->att[0].iface.ifindex, zero = 0;
	struct bl_hold_cfg c;
	int fd, rc;

	fd = bl_node_map_open(n, BL_MAP_HOLD_CFG, sizeof(c), err);
	if (fd < 0)
		return fd;
	if (bpf_map_lookup_elem(fd, &zero, &c)) {
		rc = bl_fail(err, errno, "cannot read the map %s: %s", BL_MAP_HOLD_CFG,
			     strerror(errno));
	} else {
		c.nic_ifindex = nic;
		rc = set_devmap_entry(n, BL_MAP_HOLD_TX, BL_TX_NIC, nic, err);
		if (!rc)
			rc = bl_map_set(fd, 0, &c, BL_MAP_HOLD_CFG, err);
	}
	close(fd);
	return rc ? rc : bl_bl0_nic(n, err);
}

/* ---- changes ---- */

int bl_link_attach(struct bl_node *n, struct bl_attached *a, const struct bl_iface *now,
		   struct bl_err *err)
{
	uint32_t old = (uint32_t)a->iface.ifindex;
	int rc = bl_lower_check(now, n->cfg.role, err);

	if (!rc || (rc == -EPERM && n->cfg.accept_reordering))
		rc = check_usable(n, a, now, err);
	if (!rc) {
		a->iface = *now;
		if (n->cfg.role == BL_ROLE_SWITCH)
			rc = move_port(n, a, old, err);
	}
	if (!rc)
		rc = bl_nic_before(n, a, err);
	if (!rc)
		rc = bl_attach_tc(a, n->dir, false, n->tc_prog, err);
	if (!rc)
		rc = bl_attach_xdp(a, n->dir, "xdp", n->xdp_prog, n->cfg.mode, n->cfg.replace, err);
	if (!rc)
		rc = bl_nic_after(n, a, err);
	return rc;
}

/* Attaches to a new interface that has the name of the old one. */
static void attach_new_iface(struct bl_node *n, struct bl_attached *a, const struct bl_iface *now)
{
	struct bl_err why;
	int rc = bl_link_attach(n, a, now, &why);

	if (!rc && n->cfg.role == BL_ROLE_HOST) {
		rc = bl_beacon_moved(n, &why);
		bl_spare_renew(n);
	}
	if (!rc && n->cfg.role == BL_ROLE_HOST && n->cfg.admission.on)
		rc = move_bl0(n, &why);
	a->gone = rc != 0;
	if (rc) {
		/* So that the next netlink message tries again. */
		a->iface.ifindex = 0;
		bl_hook_watch_unused(n, a, now->ifindex);
		if (!strncmp(a->refusal, why.text, sizeof(a->refusal) - 1))
			return;
		snprintf(a->refusal, sizeof(a->refusal), "%.*s", (int)sizeof(a->refusal) - 1,
			 why.text);
		bl_log(BL_LOG_ERR, "%s: %s is there again, but cannot be used: %s", n->meta.name,
		       now->name, why.text);
		return;
	}
	*a->refusal = 0;
	bl_link_pin_napi(n, a);
	bl_event(BL_EVENT(INTERFACE_BACK, INFO, n->meta.name, .iface = now->name),
		 "%s: %s is there again, and attached (index %d)", n->meta.name, now->name,
		 now->ifindex);
}

static void mark_gone(struct bl_node *n, struct bl_attached *a)
{
	if (!a->gone)
		bl_event(BL_EVENT(INTERFACE_GONE, WARN, n->meta.name, .iface = a->iface.name),
			 "%s: %s is gone: nothing comes or leaves there until there is an "
			 "interface "
			 "of that name again",
			 n->meta.name, a->iface.name);
	a->gone = true;
	a->iface.up = false;
	a->home_cpu = -1;
}

static void rename_iface(struct bl_node *n, struct bl_attached *a, const char *name)
{
	struct bl_err why;
	int rc;

	bl_log(BL_LOG_INFO, "%s: %s is called %s now; change its configuration, too", n->meta.name,
	       a->iface.name, name);
	bl_links_rename(n->dir, a->iface.name, name);
	snprintf(a->iface.name, sizeof(a->iface.name), "%s", name);
	bl_nic_renamed(n, a);
	if (n->cfg.role == BL_ROLE_HOST) {
		snprintf(n->cfg.ifname, sizeof(n->cfg.ifname), "%s", name);
		return;
	}
	rc = update_port_entry(n, a, &why);
	if (rc)
		bl_log(BL_LOG_ERR, "%s: port %s: %s", n->meta.name, name, why.text);
}

static void apply_changes(struct bl_node *n, struct bl_attached *a, const struct bl_iface *now)
{
	bool mac = memcmp(a->iface.mac, now->mac, sizeof(now->mac)) != 0,
	     mtu = a->iface.mtu != now->mtu;
	struct bl_err why;
	int rc = 0;

	if (mtu && check_usable(n, a, now, &why)) {
		if (a->mtu_refused != now->mtu)
			bl_event(BL_EVENT(MTU_REFUSED, ERR, n->meta.name, .iface = now->name,
					  .reason = why.text),
				 "%s: %u stays the MTU for ordered messages, and larger frames are "
				 "dropped: %s",
				 n->meta.name, a->iface.mtu, why.text);
		a->mtu_refused = now->mtu;
		mtu = false;
	} else if (a->mtu_refused) {
		a->mtu_refused = 0;
		bl_event(BL_EVENT(MTU_FITS, INFO, n->meta.name, .iface = now->name),
			 "%s: the MTU of %s, %u, is within the limit again", n->meta.name,
			 now->name, now->mtu);
	}
	if (!mac && !mtu)
		return;
	if (mtu) {
		bl_log(BL_LOG_INFO, "%s: the MTU of %s is %u now, was %u%s", n->meta.name,
		       now->name, now->mtu, a->iface.mtu,
		       n->cfg.role == BL_ROLE_HOST ? "; endpoints of before keep theirs" : "");
		a->iface.mtu = now->mtu;
	}
	memcpy(a->iface.mac, now->mac, sizeof(now->mac));
	if (n->cfg.role == BL_ROLE_SWITCH)
		rc = update_port_entry(n, a, &why);
	if (!rc && mac && n->cfg.role == BL_ROLE_HOST) {
		rc = bl_beacon_moved(n, &why);
		bl_spare_renew(n);
	}
	if (!rc && mtu && n->cfg.role == BL_ROLE_HOST && n->cfg.admission.on)
		rc = bl_bl0_policy(n->dir, n->cfg.admission.policy, &why);
	if (rc)
		bl_log(BL_LOG_ERR, "%s: %s: %s", n->meta.name, now->name, why.text);
}

/*
 * Reports an interface that was put into a bond, or is not the active slave of its bond any more.
 * The programs stay: whether the node is of use there is for the operator to say, and the bond may
 * come back.
 */
static void check_kind(struct bl_node *n, struct bl_attached *a, const struct bl_iface *now)
{
	struct bl_err why;
	int rc = bl_lower_check(now, n->cfg.role, &why);
	bool unfit = rc == -EOPNOTSUPP;

	if (rc && rc != -EPERM && !unfit)
		return; /* it cannot be read: it is changing */
	if (unfit && !a->unfit)
		bl_event(BL_EVENT(INTERFACE_UNFIT, ERR, n->meta.name, .iface = now->name,
				  .reason = why.text),
			 "%s: ordered messages do not pass %s from now on: %s", n->meta.name,
			 now->name, why.text);
	else if (!unfit && a->unfit)
		bl_event(BL_EVENT(INTERFACE_FIT, INFO, n->meta.name, .iface = now->name),
			 "%s: ordered messages pass %s again", n->meta.name, now->name);
	a->unfit = unfit;
}

static void sample_iface(struct bl_node *n, struct bl_attached *a)
{
	char name[IFNAMSIZ];
	struct bl_iface now;
	struct bl_err why;
	bool came;

	if (a->gone || !if_indextoname((unsigned int)a->iface.ifindex, name)) {
		mark_gone(n, a);
		if (!bl_iface_get(&now, a->iface.name, &why)) {
			attach_new_iface(n, a, &now);
			return;
		}
		bl_hook_watch_unused(n, a, 0);
		*a->refusal = 0;
		return;
	}
	if (strcmp(name, a->iface.name))
		rename_iface(n, a, name);
	/* The interface is changing; the next message starts another sample. */
	if (bl_iface_get(&now, name, &why) || now.ifindex != a->iface.ifindex)
		return;
	came = now.up && !a->iface.up;
	a->iface.up = now.up;
	check_kind(n, a, &now);
	apply_changes(n, a, &now);
	if (came) {
		bl_link_pin_napi(n, a);
		bl_nic_check(n);
	}
	if (!now.up)
		a->home_cpu = -1;
}

static void sample_ifaces(struct bl_node *n)
{
	unsigned int k;

	for (k = 0; k < n->natt; k++)
		if (is_watched(n, &n->att[k]))
			sample_iface(n, &n->att[k]);
}

/*
 * Returns whether the message is about an interface of the node, by index or by name. An interface
 * that the message reports as down has lost its NAPI threads, even if it is up again by now.
 */
static bool is_about_node(struct bl_node *n, const struct nlmsghdr *h)
{
	const struct ifinfomsg *i = NLMSG_DATA(h);
	const struct rtattr *r = IFLA_RTA(i);
	int left = (int)IFLA_PAYLOAD(h);
	const char *name = "";
	bool ours = false;
	unsigned int k;

	for (; RTA_OK(r, left); r = RTA_NEXT(r, left))
		if (r->rta_type == IFLA_IFNAME && RTA_PAYLOAD(r) && RTA_PAYLOAD(r) <= IFNAMSIZ &&
		    !((const char *)RTA_DATA(r))[RTA_PAYLOAD(r) - 1])
			name = RTA_DATA(r);
	for (k = 0; k < n->natt; k++) {
		struct bl_attached *a = &n->att[k];

		if (!is_watched(n, a) ||
		    (a->iface.ifindex != i->ifi_index && strcmp(a->iface.name, name)))
			continue;
		ours = true;
		if (a->iface.ifindex == i->ifi_index && !(i->ifi_flags & IFF_UP))
			a->iface.up = false;
	}
	return ours;
}

/*
 * Names the endpoints whose address the host has no more, once. They keep it: it is in what they
 * have sent, and peers know them by it.
 */
static void sample_addresses(struct bl_node *n)
{
	char text[INET6_ADDRSTRLEN];
	unsigned int k;

	for (k = 0; k < BL_EPS_MAX; k++) {
		struct bl_ep *ep = &n->ep[k];
		bool stray;

		if (!ep->used || ep->dead || ep->left)
			continue;
		stray = !bl_iface_addr_here(ep->info.addr);
		if (stray && !ep->stray)
			bl_event(BL_EVENT(ADDRESS_GONE, WARN, n->meta.name,
					  .endpoint = ep->info.port, .pid = ep->info.pid,
					  .process = ep->info.name,
					  .reason = bl_ip_text(ep->info.addr, text)),
				 "%s: the host has the address %s no more, and endpoint %u (%s, "
				 "pid %u) keeps it: nobody reaches it, until the address is back "
				 "or the process begins anew",
				 n->meta.name, text, ep->info.port, ep->info.name, ep->info.pid);
		else if (!stray && ep->stray)
			bl_event(BL_EVENT(ADDRESS_BACK, INFO, n->meta.name,
					  .endpoint = ep->info.port, .pid = ep->info.pid,
					  .process = ep->info.name,
					  .reason = bl_ip_text(ep->info.addr, text)),
				 "%s: the host has the address %s of endpoint %u again",
				 n->meta.name, text, ep->info.port);
		ep->stray = stray;
	}
}

static int on_links(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	char buf[16384] __attribute__((aligned(8)));
	bool links = false, addrs = false;
	struct bl_node *n = ctx;
	struct bl_err why;
	ssize_t len;
	int old;

	(void)src, (void)events;
	while ((len = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		struct nlmsghdr *h;

		for (h = (void *)buf; NLMSG_OK(h, (uint32_t)len); h = NLMSG_NEXT(h, len)) {
			if ((h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_DELLINK) &&
			    h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct ifinfomsg)))
				links |= is_about_node(n, h);
			if ((h->nlmsg_type == RTM_NEWADDR || h->nlmsg_type == RTM_DELADDR) &&
			    h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct ifaddrmsg)))
				addrs |=
					(int)((const struct ifaddrmsg *)NLMSG_DATA(h))->ifa_index ==
					n->att[0].iface.ifindex;
		}
	}
	/* Messages were lost. */
	if (len < 0 && errno == ENOBUFS)
		links = addrs = true;
	if (links || addrs) {
		if (bl_netns_enter(n->cfg.netns, &old, &why)) {
			bl_log(BL_LOG_WARN, "%s: its links cannot be watched any more: %s",
			       n->meta.name, why.text);
			n->links_src = sd_event_source_disable_unref(n->links_src);
			return 0;
		}
		if (links)
			sample_ifaces(n);
		if (n->cfg.role == BL_ROLE_HOST)
			sample_addresses(n);
		bl_netns_leave(old);
	}
	if (links || addrs)
		bl_event_changed(n);
	return 0;
}

/*
 * Tries again to use the interfaces that are there and could not be used. What was in the way may
 * go without a message: a bpf_link of another program does.
 */
static int on_retry(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_node *n = ctx;
	unsigned int k;
	int old;

	(void)usec;
	for (k = 0; k < n->natt; k++)
		if (n->att[k].gone && *n->att[k].refusal &&
		    !bl_netns_enter(n->cfg.netns, &old, NULL)) {
			sample_iface(n, &n->att[k]);
			bl_netns_leave(old);
		}
	sd_event_source_set_time_relative(src, RETRY_US);
	return sd_event_source_set_enabled(src, SD_EVENT_ONESHOT);
}

int bl_links_watch(struct bl_node *n, struct bl_err *err)
{
	struct sockaddr_nl me = { .nl_family = AF_NETLINK,
				  .nl_groups = RTMGRP_LINK |
					       (n->cfg.role == BL_ROLE_HOST
							? RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR
							: 0) };
	unsigned int k;
	int rc;

	n->links_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (n->links_fd < 0 || bind(n->links_fd, (struct sockaddr *)&me, sizeof(me)))
		return bl_fail(err, errno, "cannot watch the links of the node: %s",
			       strerror(errno));
	rc = sd_event_add_io(n->srv->ev, &n->links_src, n->links_fd, EPOLLIN, on_links, n);
	if (rc < 0)
		return bl_fail(err, -rc, "cannot watch the links of the node: %s", strerror(-rc));
	rc = sd_event_add_time_relative(n->srv->ev, &n->links_retry_src, CLOCK_MONOTONIC, RETRY_US,
					RETRY_US / 10, on_retry, n);
	if (rc < 0)
		return bl_fail(err, -rc, "cannot watch the links of the node: %s", strerror(-rc));
	for (k = 0; k < n->natt; k++)
		bl_link_pin_napi(n, &n->att[k]);
	/* Changes from before the socket was bound. */
	sample_ifaces(n);
	return 0;
}

void bl_links_unwatch(struct bl_node *n)
{
	n->links_src = sd_event_source_disable_unref(n->links_src);
	n->links_retry_src = sd_event_source_disable_unref(n->links_retry_src);
	if (n->links_fd >= 0)
		close(n->links_fd);
	n->links_fd = -1;
}
