// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The socket of a host at which processes become endpoints.
 *
 * A process connects, sends one struct bl_attach_req, gets a struct bl_attach_rep with file
 * descriptors, and keeps the connection. Its endpoint lives until the connection closes or the
 * process dies (endpoint.c). A process may also connect to say that it is an endpoint of before
 * (endpoint_again.c), or to get the map of hints for TOP's flows.
 */
#include "loader/order/endpoint_attach.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "base/iface.h"
#include "base/event.h"
#include "base/log.h"
#include "base/netns.h"
#include "base/time.h"
#include "core/order/commit_core.h"
#include "core/order/line_core.h"
#include "loader/load/attach.h"
#include "loader/load/lower.h"
#include "loader/load/pin.h"
#include "loader/node_priv.h"
#include "loader/order/drain.h"
#include "loader/order/endpoint.h"
#include "loader/order/endpoint_again.h"
#include "loader/order/endpoint_pages.h"
#include "loader/order/endpoint_socket.h"
#include "loader/order/ep.h"
#include "loader/order/events.h"
#include "loader/order/slot_map.h"

#define PENDING_MAX 64

struct bl_pending {
	struct bl_node *node;
	struct bl_pending *next;
	int fd;
	sd_event_source *src;
};

static int read_proc_file(pid_t pid, const char *what, char *buf, size_t size)
{
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	n = fread(buf, 1, size - 1, f);
	buf[n] = 0;
	fclose(f);
	return n ? 0 : -ESRCH;
}

/*
 * Returns a descriptor of a pinned map that a process maps for reading. The map is frozen (note.c).
 */
static int open_map_for_reading(const struct bl_node *n, const char *map)
{
	char path[BL_PATH_MAX];

	snprintf(path, sizeof(path), "%s/maps/%s", n->dir, map);
	return bpf_obj_get(path);
}

static void fill_error(struct bl_attach_rep *rep, int errnum, const struct bl_err *err)
{
	rep->error = errnum;
	snprintf(rep->message, sizeof(rep->message), "%.*s", (int)sizeof(rep->message) - 1,
		 err->text);
}

static int choose_port(struct bl_node *n, uint32_t wish, pid_t pid, uint32_t *port,
		       struct bl_err *err)
{
	const struct bl_host_cfg *c = &n->host_cfg;
	struct bl_ep *ep;
	unsigned int k;

	if (wish) {
		if (wish < c->port_base || wish - c->port_base >= c->port_count)
			return bl_fail(err, EINVAL, "port %u is outside barline's range %u to %u",
				       wish, c->port_base, c->port_base + c->port_count - 1);
		ep = bl_endpoint_at(n, wish);
		/*
		 * An endpoint from before this daemon's start that has not connected again has no
		 * connection that could close. Its process attaches to the same port again, so it
		 * does not use the endpoint any more, or is another program since. The endpoint may
		 * stay, as dead: two endpoints with one port would share what the programs look up.
		 */
		if (ep && ep->conn < 0 && !ep->left && pid && ep->info.pid == (uint32_t)pid &&
		    ep->info.start_time == bl_proc_started(pid)) {
			bl_endpoint_release(ep, "its process attached again");
			ep = bl_endpoint_at(n, wish);
		}
		if (ep && ep->dead)
			return bl_fail(err, EADDRINUSE,
				       "port %u is not free yet: its last process, %s (pid %u), "
				       "has failed, and the controller has not finished that "
				       "failure; try again later, or ask for another port",
				       wish, ep->info.name, ep->info.pid);
		if (ep)
			return bl_fail(err, EADDRINUSE,
				       "port %u is taken by %s (pid %u); ask for another, or for 0",
				       wish, ep->info.name, ep->info.pid);
		*port = wish;
		return 0;
	}
	/*
	 * Ports are taken in turn, so that a port is not reused at once: peers may still send to
	 * its former endpoint.
	 */
	for (k = 0; k < c->port_count; k++) {
		*port = c->port_base + (n->next_port + k) % c->port_count;
		if (!bl_endpoint_at(n, *port)) {
			n->next_port = *port - c->port_base + 1;
			return 0;
		}
	}
	return bl_fail(err, ENOSPC, "all %u ports of the range are taken", c->port_count);
}

/*
 * Returns 0 if user @uid may have another endpoint with a ring of @bytes. Root may have all; an
 * endpoint that is dead counts until its slot is free.
 */
static int check_quota(const struct bl_node *n, uid_t uid, uint64_t bytes, struct bl_err *err)
{
	const int32_t eps = n->cfg.user_endpoints, mib = n->cfg.user_ring_mib;
	int32_t count = 0;
	unsigned int k;

	for (k = 0; k < BL_EPS_MAX; k++) {
		if (!n->ep[k].used || n->ep[k].info.uid != uid)
			continue;
		count++;
		bytes += n->ep[k].info.ring_bytes;
	}
	if (!uid)
		return 0;
	if (eps >= 0 && count >= eps)
		return bl_fail(err, EDQUOT,
			       "user %u has %d endpoints, as many as user_endpoints of this host "
			       "allows",
			       uid, count);
	if (mib >= 0 && bytes > (uint64_t)mib << 20)
		return bl_fail(err, EDQUOT,
			       "the rings of user %u would have %llu KiB, and user_ring_mib of "
			       "this "
			       "host allows %d MiB; ask for a smaller ring (ring_bytes)",
			       uid, (unsigned long long)bytes >> 10, mib);
	return 0;
}

static int validate_attach_req(const struct bl_attach_req *q, ssize_t len, struct bl_err *err)
{
	uint32_t b = q->ring_bytes;

	if (len != sizeof(*q) ||
	    (q->magic != BL_SOCK_MAGIC && q->magic != BL_SOCK_HINTS && q->magic != BL_SOCK_CLOCK))
		return bl_fail(err, EPROTO, "not a request of libbarline");
	if (q->abi_version != BL_ABI_VERSION)
		return bl_fail(err, EPROTO,
			       "libbarline speaks ABI version %u, the daemon %u; install the same "
			       "version of both",
			       q->abi_version, BL_ABI_VERSION);
	if (b && (b & (b - 1) || b < BL_RING_BYTES_MIN || b > BL_RING_BYTES_MAX))
		return bl_fail(err, EINVAL, "ring_bytes %u: a power of two from %u to %u", b,
			       BL_RING_BYTES_MIN, BL_RING_BYTES_MAX);
	if (q->family && q->family != AF_INET && q->family != AF_INET6)
		return bl_fail(err, EINVAL, "address family %u is neither AF_INET nor AF_INET6",
			       q->family);
	return 0;
}

/* Writes everything of the slot first, and makes it active last. */
static int activate_slot(struct bl_ep *ep, int ring, struct bl_err *err)
{
	struct bl_node *n = ep->node;
	uint32_t slot = ep->slot, key = bl_ep_key(n, &ep->info), zero = 0;
	int rc;

	rc = bl_slot_map_enter(n, BL_SLOT_RING, slot, ring);
	if (!rc)
		rc = bl_ep_make_page(ep);
	if (!rc)
		rc = bl_ep_clear_wake(n, slot);
	if (!rc && n->host_cfg.neps <= slot) {
		n->host_cfg.neps = slot + 1;
		rc = bpf_map_update_elem(n->host_cfg_fd, &zero, &n->host_cfg, BPF_ANY) ? -errno : 0;
	}
	if (!rc)
		rc = bpf_map_update_elem(n->eps_fd, &key, &ep->info, BPF_ANY) ? -errno : 0;
	ep->info.active = BL_EP_ACTIVE;
	if (!rc)
		rc = bpf_map_update_elem(n->eps_fd, &key, &ep->info, BPF_ANY) ? -errno : 0;
	return rc ? bl_fail(err, -rc, "cannot enter the endpoint into the maps: %s", strerror(-rc))
		  : 0;
}

static void describe_process(struct bl_ep *ep, pid_t pid)
{
	char name[32];

	ep->info.pid = (uint32_t)pid;
	if (pid <= 0)
		/*
		 * The process is in a pid namespace that is not visible here; only its connection
		 * is watched.
		 */
		return;
	ep->pidfd = pidfd_open(pid, 0);
	ep->info.start_time = bl_proc_started(pid);
	if (!read_proc_file(pid, "comm", name, sizeof(name))) {
		name[strcspn(name, "\n")] = 0;
		snprintf(ep->info.name, sizeof(ep->info.name), "%.15s", name);
	}
}

static int fill_nic_facts(struct bl_node *n, uint32_t family, struct bl_attach_rep *rep,
			  struct bl_err *err)
{
	struct bl_iface nic;
	int old, rc;

	rc = bl_netns_enter(n->cfg.netns, &old, err);
	if (rc)
		return rc;
	rc = bl_iface_get(&nic, n->att[0].iface.name, err);
	if (!rc)
		rc = bl_lower_addr(&nic, (int)family, rep->addr, &nic.mtu, err);
	bl_netns_leave(old);
	if (!rc) {
		/* The MTU may have been raised since the start. */
		rep->mtu = nic.mtu < bl_xdp_mtu_max(n->frags) ? nic.mtu : bl_xdp_mtu_max(n->frags);
		rep->ifindex = (uint32_t)nic.ifindex;
	}
	return rc;
}

/*
 * Chooses the endpoint's port and makes its socket. Of ports that nobody has asked for, those that
 * strangers have bound are left out. Returns the socket or -errno.
 */
static int open_port(struct bl_node *n, const struct bl_attach_req *q, pid_t pid,
		     const uint8_t addr[16], uint32_t *port, uint64_t *cookie, struct bl_err *err)
{
	unsigned int k;
	int old, rc, fd;

	for (k = 0;; k++) {
		rc = choose_port(n, q->port, pid, port, err);
		if (!rc)
			rc = bl_netns_enter(n->cfg.netns, &old, err);
		if (rc)
			return rc;
		fd = bl_endpoint_socket(addr, (uint16_t)*port, cookie, err);
		bl_netns_leave(old);
		if (fd != -EADDRINUSE || q->port || k >= n->host_cfg.port_count)
			return fd;
	}
}

/*
 * Makes an endpoint, its ring and its socket. On success *@ring and *@sock are their descriptors,
 * and @conn belongs to the endpoint. Returns 0 or -errno.
 */
static int attach_endpoint(struct bl_node *n, int conn, const struct bl_attach_req *q,
			   struct bl_attach_rep *rep, int *ring, int *sock, struct bl_err *err)
{
	socklen_t len = sizeof(struct ucred);
	struct bl_ep_slot before;
	struct ucred who = { .uid = (uid_t)-1 };
	uint32_t port = 0, key;
	uint64_t cookie = 0;
	struct bl_ep *ep;
	int k, rc;

	getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &who, &len);
	if (n->drained)
		return bl_fail(err, ESHUTDOWN,
			       "host %s is drained, and takes no new endpoints; `barline host "
			       "undrain` ends that",
			       n->meta.name);
	bl_endpoints_bury(n);
	rc = check_quota(n, who.uid, q->ring_bytes ? q->ring_bytes : BL_RING_BYTES, err);
	if (!rc)
		rc = fill_nic_facts(n, q->family, rep, err);
	if (rc)
		return rc;
	*sock = open_port(n, q, who.pid, rep->addr, &port, &cookie, err);
	if (*sock < 0)
		return *sock;
	for (k = 0; k < BL_EPS_MAX && n->ep[k].used; k++)
		;
	if (k == BL_EPS_MAX)
		return bl_fail(err, ENOSPC,
			       "all %d endpoint slots of this host are in use; `barline show "
			       "endpoints` lists them",
			       BL_EPS_MAX);
	ep = &n->ep[k];
	memset(ep, 0, sizeof(*ep));
	ep->node = n;
	ep->slot = (unsigned int)k;
	ep->conn = ep->pidfd = ep->page_fd = -1;
	ep->info.slot = (uint16_t)k;
	ep->info.port = (uint16_t)port;
	ep->info.cookie = cookie;
	ep->info.uid = who.uid;
	ep->info.ring_bytes = q->ring_bytes ? q->ring_bytes : BL_RING_BYTES;
	key = bl_ep_key(n, &ep->info);
	if (!bpf_map_lookup_elem(n->eps_fd, &key, &before))
		ep->info.left = before.left;
	memcpy(ep->info.addr, rep->addr, sizeof(ep->info.addr));
	/* Tells incarnations of one address apart; it is only compared for equality. */
	if (getrandom(&ep->info.life, sizeof(ep->info.life), 0) != sizeof(ep->info.life))
		ep->info.life = (uint16_t)(bl_mono_ns() >> 20 ^ (uint64_t)who.pid);
	ep->info.life = bl_life_pick(ep->info.life, ep->info.left);
	*ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "bl_ring", 0, 0, ep->info.ring_bytes, NULL);
	if (*ring < 0)
		return bl_fail(err, errno, "cannot make a ring of %u bytes: %s",
			       ep->info.ring_bytes, strerror(errno));
	describe_process(ep, who.pid);
	ep->used = true;
	rc = activate_slot(ep, *ring, err);
	if (rc) {
		bl_endpoint_undo(ep);
		return rc;
	}
	rc = bl_endpoint_watch(ep, conn);
	if (rc < 0) {
		rc = bl_fail(err, -rc, "cannot watch the endpoint: %s", strerror(-rc));
		ep->conn = -1; /* still the caller's */
		bl_endpoint_release(ep, "it could not be set up");
		return rc;
	}
	rc = bl_ep_publish(n, BL_EPS_MAX);
	if (rc)
		bl_log(BL_LOG_WARN, "%s: cannot publish the number of endpoints: %s", n->meta.name,
		       strerror(-rc));
	rep->slot = ep->slot;
	rep->port = ep->info.port;
	rep->life = ep->info.life;
	rep->ring_bytes = ep->info.ring_bytes;
	bl_event(BL_EVENT(ENDPOINT_JOINED, INFO, n->meta.name, .endpoint = ep->info.port,
			  .pid = ep->info.pid, .process = ep->info.name),
		 "%s: endpoint %u (%s, pid %u) in slot %u", n->meta.name, ep->info.port,
		 ep->info.name, ep->info.pid, ep->slot);
	bl_event_changed(n);
	return 0;
}

static int send_reply(int conn, const struct bl_attach_rep *rep, const int *fds, int nfds)
{
	union {
		char buf[CMSG_SPACE(sizeof(int) * BL_FD_COUNT)];
		struct cmsghdr align;
	} u = {};
	struct iovec iov = { .iov_base = (void *)(uintptr_t)rep, .iov_len = sizeof(*rep) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds) {
		struct cmsghdr *c;

		m.msg_control = u.buf;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)nfds);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)nfds);
	}
	return sendmsg(conn, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*rep) ? 0 : -errno;
}

/*
 * The process asks for one map only: the one in which it describes its flows, or the clock record.
 */
static void serve_map(const struct bl_node *n, int conn, uint32_t magic, struct bl_attach_rep *rep)
{
	const char *map = magic == BL_SOCK_CLOCK ? BL_MAP_CLOCK : BL_MAP_TOP_HINTS;
	int fd = open_map_for_reading(n, map), rc;
	struct bl_err err;

	if (fd < 0) {
		rc = bl_fail(&err, errno, "cannot open %s/maps/%s: %s", n->dir, map,
			     strerror(errno));
		fill_error(rep, -rc, &err);
		send_reply(conn, rep, NULL, 0);
		return;
	}
	/* A process that did not wait for the answer asks again. */
	send_reply(conn, rep, &fd, 1);
	close(fd);
}

/* Returns whether the connection belongs to an endpoint now. */
static bool serve_attach(struct bl_node *n, int conn, const struct bl_attach_req *q, ssize_t len)
{
	struct bl_attach_rep rep = {
		.magic = BL_SOCK_MAGIC,
		.port_base = n->host_cfg.port_base,
		.port_count = n->host_cfg.port_count,
		.beacon_ns = n->host_cfg.beacon_ns,
	};
	/* The descriptors that are only for this answer; the others are the node's. */
	static const int own[] = { BL_FD_RING, BL_FD_HOST_PAGE, BL_FD_CLOCK, BL_FD_SOCKET };
	int fds[BL_FD_COUNT] = {
		[BL_FD_RING] = -1, [BL_FD_HOST_PAGE] = -1, [BL_FD_CLOCK] = -1, [BL_FD_SOCKET] = -1
	};
	unsigned int k;
	struct bl_err err = {};
	int rc;

	fds[BL_FD_HINTS] = n->hints_fd;
	fds[BL_FD_FAILURES] = n->failures_fd;
	rc = validate_attach_req(q, len, &err);
	if (!rc && q->magic != BL_SOCK_MAGIC) {
		serve_map(n, conn, q->magic, &rep);
		return false;
	}
	if (!rc) {
		fds[BL_FD_HOST_PAGE] = open_map_for_reading(n, BL_MAP_HOST_PAGE);
		fds[BL_FD_CLOCK] = open_map_for_reading(n, BL_MAP_CLOCK);
		if (fds[BL_FD_HOST_PAGE] < 0 || fds[BL_FD_CLOCK] < 0)
			rc = bl_fail(&err, errno, "cannot open the pinned maps in %s: %s", n->dir,
				     strerror(errno));
	}
	if (!rc)
		rc = attach_endpoint(n, conn, q, &rep, &fds[BL_FD_RING], &fds[BL_FD_SOCKET], &err);
	if (!rc)
		fds[BL_FD_PAGE] = n->ep[rep.slot].page_fd;
	if (rc) {
		fill_error(&rep, -rc, &err);
		send_reply(conn, &rep, NULL, 0);
	} else if (send_reply(conn, &rep, fds, BL_FD_COUNT)) {
		bl_endpoint_release(&n->ep[rep.slot], "it did not wait for the answer");
	}
	for (k = 0; k < sizeof(own) / sizeof(own[0]); k++)
		if (fds[own[k]] >= 0)
			close(fds[own[k]]); /* the process has its own */
	return !rc;
}

static void pending_free(struct bl_pending *p, bool keep_fd)
{
	struct bl_pending **at;

	for (at = &p->node->pending; *at; at = &(*at)->next) {
		if (*at == p) {
			*at = p->next;
			break;
		}
	}
	sd_event_source_disable_unref(p->src);
	if (!keep_fd)
		close(p->fd);
	free(p);
}

static int on_request(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct bl_pending *p = ctx;
	struct bl_attach_req q = {};
	ssize_t len;
	bool kept;

	(void)src, (void)events;
	len = recv(fd, &q, sizeof(q), MSG_DONTWAIT | MSG_TRUNC);
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	sd_event_source_set_enabled(p->src, SD_EVENT_OFF);
	/* A descriptor has one event source; the endpoint's is next. */
	p->src = sd_event_source_disable_unref(p->src);
	if (len == sizeof(struct bl_again_req) && q.magic == BL_SOCK_AGAIN)
		kept = bl_endpoint_again(p->node, fd, (const void *)&q);
	else if (len == sizeof(struct bl_drain_req) && q.magic == BL_SOCK_DRAIN)
		kept = bl_drain_asked(p->node, fd, (const void *)&q);
	else
		kept = len > 0 && serve_attach(p->node, fd, &q, len);
	pending_free(p, kept);
	return 0;
}

static int on_connect(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct bl_node *n = ctx;
	struct bl_pending *p, *last = NULL;
	int conn, count = 0;

	(void)src, (void)events;
	conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (conn < 0)
		return 0;
	for (p = n->pending; p; p = p->next, count++)
		last = p;
	if (count >= PENDING_MAX)
		pending_free(last,
			     /*
			      * The connection that was made first and has sent no request will not
			      * send one.
			      */
			     false);
	p = calloc(1, sizeof(*p));
	if (!p) {
		close(conn);
		return 0;
	}
	p->node = n;
	p->fd = conn;
	p->next = n->pending;
	n->pending = p;
	if (sd_event_add_io(n->srv->ev, &p->src, conn, EPOLLIN, on_request, p) < 0)
		pending_free(p, false);
	return 0;
}

int bl_endpoints_open(struct bl_node *n, struct bl_err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct group *g;
	int rc, k;

	for (k = 0; k < BL_EPS_MAX; k++)
		n->ep[k].conn = n->ep[k].pidfd = n->ep[k].page_fd = -1;
	bl_endpoints_adopt(n);
	snprintf(n->sock_path, sizeof(n->sock_path), "%s/host-%" PRIu64 ".sock", BL_RUN_DIR,
		 n->netns_ino);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", n->sock_path);
	unlink(n->sock_path); /* a dead daemon's; this process has the node's lock */
	n->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (n->listen_fd < 0 || bind(n->listen_fd, (struct sockaddr *)&a, sizeof(a)) ||
	    chmod(n->sock_path, 0660) || listen(n->listen_fd, 64))
		return bl_fail(err, errno, "cannot listen at %s: %s", n->sock_path,
			       strerror(errno));
	/* Endpoints share the slots and the NIC: root and one group. */
	g = getgrnam("barline");
	if (g && chown(n->sock_path, (uid_t)-1, g->gr_gid))
		bl_log(BL_LOG_WARN, "cannot give %s to the group barline: %s", n->sock_path,
		       strerror(errno));
	rc = sd_event_add_io(n->srv->ev, &n->listen_src, n->listen_fd, EPOLLIN, on_connect, n);
	return rc < 0 ? bl_fail(err, -rc, "cannot serve %s: %s", n->sock_path, strerror(-rc)) : 0;
}

void bl_endpoints_close(struct bl_node *n)
{
	int k;

	n->again_src = sd_event_source_disable_unref(n->again_src);
	while (n->pending)
		pending_free(n->pending, false);
	for (k = 0; k < BL_EPS_MAX; k++) {
		struct bl_ep *ep = &n->ep[k];

		if (!ep->used)
			continue;
		sd_event_source_disable_unref(ep->conn_src);
		sd_event_source_disable_unref(ep->pid_src);
		if (ep->conn >= 0)
			close(ep->conn);
		if (ep->pidfd >= 0)
			close(ep->pidfd);
		bl_ep_close_page(ep);
		ep->used = false;
	}
	sd_event_source_disable_unref(n->listen_src);
	n->listen_src = NULL;
	if (n->listen_fd >= 0) {
		close(n->listen_fd);
		unlink(n->sock_path);
	}
	n->listen_fd = -1;
}
