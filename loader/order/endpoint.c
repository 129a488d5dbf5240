// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Endpoints: the socket at which a process becomes one, and what happens when it goes.
 *
 * A process connects, sends one struct bl_attach_req, gets a struct bl_attach_rep with file
 * descriptors, and keeps the connection. The endpoint lives until the connection closes or the
 * process dies (pidfd: a child that inherited the connection does not count). A daemon that starts
 * finds the endpoints of the one before in the map "eps" and keeps those whose process still lives,
 * told by pid and start time.
 *
 * The order of steps matters to the programs: a slot is active only when everything else of it is
 * there, and is made inactive first.
 *
 * An endpoint whose process is gone while its reliable window is not empty stays, as dead: the
 * window holds the commit barrier of the rack, since some receivers may have what others have not.
 * The ACKs that are still on their way may empty it; else somebody who knows what happened to the
 * others has to say that it may go (bl_endpoint_resume()).
 *
 * With failure controllers every endpoint that goes is announced in the rack, since others may wait
 * for its ACKs. Its window is frozen before its T is read from it: else ACKs that come late would
 * take the commit barrier beyond T. It stays, as dead, until it is resumed; its port is nobody
 * else's so long.
 *
 * A process that lives may be put out (bl_endpoint_put_out()). It may go on writing into its pages,
 * so nothing that counts for others is read from there any more: core/order/line_core.h has the
 * order of the steps. Its slot is free when it is gone.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <grp.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include "core/clock_core.h"
#include "core/order/commit_core.h"
#include "core/order/line_core.h"
#include "endpoint_pages.h"
#include "node_agent.h"

#define PENDING_MAX 64
/* no timestamp is so far ahead of the clock; a process that says so is not believed */
#define LEAVE_AHEAD_NS 1000000000ULL

struct bl_pending {
	struct bl_node *node;
	struct bl_pending *next;
	int fd;
	sd_event_source *src;
};

static int proc_read(pid_t pid, const char *what, char *buf, size_t size)
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

/* 0: no such process. */
static uint64_t start_time(pid_t pid)
{
	uint64_t t;

	bl_proc_stat(pid, BL_PROC_STARTED, &t);
	return t;
}

static uint32_t eps_key(const struct bl_node *n, const struct bl_ep_slot *i)
{
	return (uint32_t)i->port - n->host_cfg.port_base;
}

/*
 * The slot is free: nothing of its endpoint is left, but which life programs answer for. @untold:
 * 0, or BL_EP_LEFT_NOW: the rack has not heard yet that this life left.
 */
static void forget(struct bl_ep *ep, uint64_t untold)
{
	struct bl_node *n = ep->node;
	uint32_t key = eps_key(n, &ep->info);
	struct bl_ep_slot none = { .left = ep->info.left, .start_time = untold };

	memcpy(none.addr, ep->info.addr, sizeof(none.addr));
	if (bpf_map_update_elem(n->eps_fd, &key, &none, BPF_ANY) ||
	    bl_ep_clear_line(n, ep->slot, true))
		bl_log(BL_LOG_ERR, "%s: cannot take endpoint %u down: %s", n->meta.name,
		       ep->info.port, strerror(errno));
	memset(ep, 0, sizeof(*ep));
	ep->conn = ep->pidfd = -1;
}

static const char *why_text(enum bl_out_why why)
{
#define BL_X(name, word, text) [BL_OUT_##name] = text,
	static const char *const texts[] = { BL_OUT_WHYS(BL_X) };
#undef BL_X

	return why < BL_OUT_WHY_COUNT ? texts[why] : "of a reason that this version does not know";
}

/* Why it is gone, as the rack hears it: what the line says. */
static uint8_t gone_why(const struct bl_ep *ep)
{
	static const uint8_t gone[BL_OUT_WHY_COUNT] = { [BL_OUT_GONE] = BL_WHY_DIED,
							[BL_OUT_IN_FLIGHT] = BL_WHY_IN_FLIGHT,
							[BL_OUT_WINDOW] = BL_WHY_WINDOW,
							[BL_OUT_RING] = BL_WHY_RING,
							[BL_OUT_UNREACHABLE] = BL_WHY_UNREACHABLE,
							[BL_OUT_HOST] = BL_WHY_DOWN };
	enum bl_out_why why = BL_OUT_MEMBER;

	bl_ep_out(ep->node, ep->slot, &why);
	return why < BL_OUT_WHY_COUNT ? gone[why] : BL_WHY_UNKNOWN;
}

/* @ep is out from @t on. With controllers: the rack hears of it. */
static void out_at(struct bl_ep *ep, uint64_t t)
{
	struct bl_node *n = ep->node;

	ep->dead = true;
	ep->t = t;
	if (!t)
		bl_log(BL_LOG_ERR, "%s: cannot tell from when on endpoint %u has failed: %s",
		       n->meta.name, ep->info.port, strerror(errno));
	else if (n->agent && n->cfg.ctl.n)
		bl_node_agent_proc_down(n, &ep->info, gone_why(ep), t);
}

/*
 * Nobody waits for what a dead or put out endpoint has left: C goes on, and if its process is gone,
 * too, the slot is free.
 */
static void settle(struct bl_ep *ep)
{
	struct bl_node *n = ep->node;

	ep->settled = true;
	if (ep->left)
		forget(ep, 0);
	else if (bl_ep_over(n, ep->slot))
		bl_log(BL_LOG_ERR, "%s: endpoint %u still holds the commit barrier: %s",
		       n->meta.name, ep->info.port, strerror(errno));
}

void bl_endpoint_put_out(struct bl_node *n, uint64_t slots, enum bl_out_why why)
{
	uint64_t t[BL_EPS_MAX];
	unsigned int k;

	for (k = 0; k < BL_EPS_MAX; k++) {
		struct bl_ep *ep = &n->ep[k];
		uint32_t key = eps_key(n, &ep->info);

		if (!ep->used || ep->dead)
			slots &= ~(1ULL << k);
		if (!(slots >> k & 1))
			continue;
		ep->info.active = BL_EP_DEAD;
		if (bpf_map_update_elem(n->eps_fd, &key, &ep->info, BPF_ANY))
			bl_log(BL_LOG_ERR, "%s: cannot put endpoint %u out: %s", n->meta.name,
			       ep->info.port, strerror(errno));
	}
	if (!slots)
		return;
	bl_ep_put_out(n, slots, why, t);
	for (k = 0; k < BL_EPS_MAX; k++) {
		struct bl_ep *ep = &n->ep[k];

		if (!(slots >> k & 1))
			continue;
		bl_log(BL_LOG_WARN, "%s: endpoint %u (%s, pid %u) was put out: %s", n->meta.name,
		       ep->info.port, ep->info.name, ep->info.pid, why_text(why));
		out_at(ep, t[k]);
		/* its process may sleep: it shall hear of it */
		if (ep->conn >= 0)
			(void)!send(ep->conn, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	bl_endpoints_bury(n);
	bl_node_agent_endpoints(n);
}

/*
 * The process is gone, and so are its ring and its sleep. Linux waits here until no program of any
 * CPU uses the ring: tens of milliseconds on a busy machine.
 */
static void drop_ring(struct bl_node *n, uint32_t slot, unsigned int port)
{
	if (bl_ep_clear_wake(n, slot) ||
	    (bpf_map_delete_elem(n->rings_fd, &slot) && errno != ENOENT))
		bl_log(BL_LOG_ERR, "%s: cannot take the ring of endpoint %u down: %s", n->meta.name,
		       port, strerror(errno));
}

/*
 * A process that has said goodbye, and of which nothing holds the commit barrier: the rack hears
 * that it left. Nothing stands still for that: the programs answer for it from now on, and its slot
 * and its port are free at once, since announcements name lives. Its T is above all that it has
 * sent, and taken when it can send nothing more: that may be committed ahead of the clock, and
 * nobody may discard it.
 */
static bool leave(struct bl_ep *ep)
{
	struct bl_node *n = ep->node;
	uint64_t now = bl_clock_at(n->clock, bl_mono_ns()), bye = ep->bye;
	struct bl_ep_slot who = ep->info;

	if (!bye || ep->dead || bl_ep_holds_commit(n, ep->slot) || (n->cfg.ctl.n && !n->agent) ||
	    bye > now + LEAVE_AHEAD_NS)
		return false;
	ep->info.left = ep->info.life;
	forget(ep, n->cfg.ctl.n ? BL_EP_LEFT_NOW : 0);
	if (n->cfg.ctl.n)
		bl_endpoint_left(n, who.port, who.life,
				 bl_max64(bl_clock_at(n->clock, bl_mono_ns()), bye));
	return true;
}

/*
 * A process that ended otherwise, or that was out: its slot and port stay until nobody waits for
 * what it left.
 */
static void end(struct bl_ep *ep)
{
	struct bl_node *n = ep->node;

	if (n->cfg.ctl.n) {
		if (!ep->dead)
			out_at(ep, bl_ep_dead_at(n, ep->slot, BL_OUT_GONE));
		if (ep->settled)
			forget(ep, 0);
		bl_node_agent_endpoints(n);
		return;
	}
	if (ep->settled || !bl_ep_holds_commit(n, ep->slot)) {
		forget(ep, 0);
		return;
	}
	ep->dead = true;
	bl_log(BL_LOG_WARN,
	       "%s: endpoint %u (%s, pid %u) left reliable messages that are not acknowledged: "
	       "they hold the rack's commit barrier until they are, or until the controller "
	       "resumes it",
	       n->meta.name, ep->info.port, ep->info.name, ep->info.pid);
}

void bl_endpoint_release(struct bl_ep *ep, const char *why)
{
	struct bl_node *n = ep->node;
	uint32_t key = eps_key(n, &ep->info), slot = ep->slot, port = ep->info.port;

	ep->left = true;
	ep->bye = bl_ep_bye(n, slot);
	ep->conn_src = sd_event_source_disable_unref(ep->conn_src);
	ep->pid_src = sd_event_source_disable_unref(ep->pid_src);
	if (ep->conn >= 0)
		close(ep->conn);
	if (ep->pidfd >= 0)
		close(ep->pidfd);
	ep->conn = ep->pidfd = -1;
	bl_log(BL_LOG_INFO, "%s: endpoint %u (%s, pid %u) left%s: %s", n->meta.name, port,
	       ep->info.name, ep->info.pid, ep->bye ? " in order" : "", why);
	if (leave(ep)) {
		drop_ring(n, slot, port); /* last: nobody waits for it */
		return;
	}
	ep->info.active = BL_EP_DEAD;
	if (bpf_map_update_elem(n->eps_fd, &key, &ep->info, BPF_ANY) ||
	    bl_ep_clear_line(n, slot, false))
		bl_log(BL_LOG_ERR, "%s: cannot take endpoint %u down: %s", n->meta.name, port,
		       strerror(errno));
	end(ep);
	drop_ring(n, slot, port); /* after the rack was told, as above */
}

void bl_endpoints_bury(struct bl_node *n)
{
	unsigned int k;

	for (k = 0; k < BL_EPS_MAX && !n->cfg.ctl.n; k++)
		if (n->ep[k].used && n->ep[k].dead && !n->ep[k].settled &&
		    !bl_ep_holds_commit(n, k))
			settle(&n->ep[k]);
}

int bl_endpoint_resume(struct bl_node *n, unsigned int port)
{
	int k;

	for (k = 0; k < BL_EPS_MAX; k++) {
		if (!n->ep[k].used || !n->ep[k].dead || n->ep[k].info.port != port)
			continue;
		if (!n->ep[k].settled) /* one that lives still is asked about again and again */
			bl_log(BL_LOG_INFO,
			       "%s: endpoint %u does not hold the commit barrier any more",
			       n->meta.name, port);
		settle(&n->ep[k]);
		return 0;
	}
	return -ENOENT;
}

void bl_endpoints_dead(struct bl_node *n)
{
	int k;

	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used && n->ep[k].dead && n->ep[k].t)
			bl_node_agent_proc_down(n, &n->ep[k].info, gone_why(&n->ep[k]), n->ep[k].t);
}

/* Frames to be forwarded, or the connection's end. */
static int on_conn(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct bl_forward_msg m;
	ssize_t n = recv(fd, &m, sizeof(m), MSG_DONTWAIT | MSG_TRUNC);

	(void)src, (void)events;
	if (n > 0)
		bl_forward_asked(ctx, &m, (size_t)n);
	else if (!n || (errno != EAGAIN && errno != EINTR))
		bl_endpoint_release(ctx, "it closed its connection");
	return 0;
}

static int on_death(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	(void)src, (void)fd, (void)events;
	bl_endpoint_release(ctx, "its process ended");
	return 0;
}

int bl_endpoint_connect(struct bl_ep *ep, int conn)
{
	int rc = sd_event_add_io(ep->node->srv->ev, &ep->conn_src, conn, EPOLLIN, on_conn, ep);

	if (rc >= 0)
		ep->conn = conn;
	return rc;
}

static int watch(struct bl_ep *ep, int conn)
{
	sd_event *ev = ep->node->srv->ev;
	int rc = 0;

	if (conn >= 0)
		rc = bl_endpoint_connect(ep, conn);
	if (rc >= 0 && ep->pidfd >= 0)
		rc = sd_event_add_io(ev, &ep->pid_src, ep->pidfd, EPOLLIN, on_death, ep);
	return rc;
}

/*
 * A fd of a pinned map that a process maps for reading. Not a read-only one: mmap() of a file that
 * is not open for writing loses VM_SHARED, and bpf_map_mmap() then says EINVAL (6.18). The library
 * maps it PROT_READ; processes of one host trust each other (docs/guarantees.md).
 */
static int reading_fd(const struct bl_node *n, const char *map)
{
	char path[BL_PATH_MAX];

	snprintf(path, sizeof(path), "%s/maps/%s", n->dir, map);
	return bpf_obj_get(path);
}

static void fail(struct bl_attach_rep *rep, int errnum, const struct bl_err *err)
{
	rep->error = errnum;
	snprintf(rep->message, sizeof(rep->message), "%.*s", (int)sizeof(rep->message) - 1,
		 err->text);
}

static struct bl_ep *ep_at_port(struct bl_node *n, uint32_t port)
{
	int k;

	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used && n->ep[k].info.port == port)
			return &n->ep[k];
	return NULL;
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
		ep = ep_at_port(n, wish);
		/*
		 * an endpoint of before this daemon's start that has not connected anew has no
		 * connection that could close: its process asks again, so it is done with it (or is
		 * another program since). It may stay, as dead: two endpoints with one port would
		 * share what the programs look up
		 */
		if (ep && ep->conn < 0 && !ep->left && pid && ep->info.pid == (uint32_t)pid &&
		    ep->info.start_time == start_time(pid)) {
			bl_endpoint_release(ep, "its process attached again");
			ep = ep_at_port(n, wish);
		}
		if (ep && ep->dead)
			return bl_fail(err, EADDRINUSE,
				       "port %u was %s (pid %u); whoever waits for it, or it for "
				       "them, has not settled that yet: the controller has to "
				       "resume it first",
				       wish, ep->info.name, ep->info.pid);
		if (ep)
			return bl_fail(err, EADDRINUSE,
				       "port %u is taken by %s (pid %u); ask for another, or for 0",
				       wish, ep->info.name, ep->info.pid);
		*port = wish;
		return 0;
	}
	/*
	 * go round, so that a port is not used again at once: its peers may still send to the
	 * endpoint that was
	 */
	for (k = 0; k < c->port_count; k++) {
		*port = c->port_base + (n->next_port + k) % c->port_count;
		if (!ep_at_port(n, *port)) {
			n->next_port = *port - c->port_base + 1;
			return 0;
		}
	}
	return bl_fail(err, ENOSPC, "all %u ports of the range are taken", c->port_count);
}

static int check_req(const struct bl_attach_req *q, ssize_t len, struct bl_err *err)
{
	uint32_t b = q->ring_bytes;

	if (len != sizeof(*q) || (q->magic != BL_SOCK_MAGIC && q->magic != BL_SOCK_HINTS))
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

/* Everything of the slot but active; then active. */
static int activate(struct bl_ep *ep, int ring, struct bl_err *err)
{
	struct bl_node *n = ep->node;
	uint32_t slot = ep->slot, key = eps_key(n, &ep->info), zero = 0;
	int rc;

	rc = bpf_map_update_elem(n->rings_fd, &slot, &ring, BPF_ANY)
		     ? -errno
		     : bl_ep_clear_line(n, slot, true);
	if (!rc)
		rc = bl_ep_clear_wake(n, slot);
	if (!rc)
		rc = bl_ep_none_failed(n, slot);
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

static void describe(struct bl_ep *ep, pid_t pid)
{
	char name[32];

	ep->info.pid = (uint32_t)pid;
	if (pid <= 0)
		return; /* of a pid namespace that cannot be seen from here: its connection alone
			   stands for it */
	ep->pidfd = pidfd_open(pid, 0);
	ep->info.start_time = start_time(pid);
	if (!proc_read(pid, "comm", name, sizeof(name))) {
		name[strcspn(name, "\n")] = 0;
		snprintf(ep->info.name, sizeof(ep->info.name), "%.15s", name);
	}
}

static int nic_facts(struct bl_node *n, uint32_t family, struct bl_attach_rep *rep,
		     struct bl_err *err)
{
	struct bl_iface nic;
	int old, rc;

	rc = bl_netns_enter(n->cfg.netns, &old, err);
	if (rc)
		return rc;
	rc = bl_iface_get(&nic, n->att[0].iface.name, err);
	if (!rc)
		rc = bl_iface_addr(nic.name, (int)family, rep->addr, err);
	bl_netns_leave(old);
	if (!rc) {
		/* it may have been raised since the start */
		rep->mtu = nic.mtu < BL_XDP_MTU_MAX ? nic.mtu : BL_XDP_MTU_MAX;
		rep->ifindex = (uint32_t)nic.ifindex;
	}
	return rc;
}

/*
 * Makes the endpoint and its ring. On success *@ring is the ring's fd, and @conn belongs to the
 * endpoint.
 */
static int attach(struct bl_node *n, int conn, const struct bl_attach_req *q,
		  struct bl_attach_rep *rep, int *ring, struct bl_err *err)
{
	socklen_t len = sizeof(struct ucred);
	struct bl_ep_slot before;
	struct ucred who = {};
	uint32_t port = 0, key;
	struct bl_ep *ep;
	int k, rc;

	getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &who, &len);
	bl_endpoints_bury(n);
	rc = nic_facts(n, q->family, rep, err);
	if (!rc)
		rc = choose_port(n, q->port, who.pid, &port, err);
	if (rc)
		return rc;
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
	ep->conn = ep->pidfd = -1;
	ep->info.slot = (uint16_t)k;
	ep->info.port = (uint16_t)port;
	ep->info.ring_bytes = q->ring_bytes ? q->ring_bytes : BL_RING_BYTES;
	key = eps_key(n, &ep->info);
	if (!bpf_map_lookup_elem(n->eps_fd, &key, &before))
		ep->info.left = before.left;
	memcpy(ep->info.addr, rep->addr, sizeof(ep->info.addr));
	/* what tells lives of one address apart; compared for equality only */
	if (getrandom(&ep->info.life, sizeof(ep->info.life), 0) != sizeof(ep->info.life))
		ep->info.life = (uint16_t)(bl_mono_ns() >> 20 ^ (uint64_t)who.pid);
	ep->info.life = bl_life_pick(ep->info.life, ep->info.left);
	*ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "bl_ring", 0, 0, ep->info.ring_bytes, NULL);
	if (*ring < 0)
		return bl_fail(err, errno, "cannot make a ring of %u bytes: %s",
			       ep->info.ring_bytes, strerror(errno));
	describe(ep, who.pid);
	ep->used = true;
	rc = activate(ep, *ring, err);
	if (!rc) {
		rc = watch(ep, conn);
		if (rc < 0)
			rc = bl_fail(err, -rc, "cannot watch the endpoint: %s", strerror(-rc));
	}
	if (rc < 0) {
		ep->conn = -1; /* still the caller's */
		bl_endpoint_release(ep, "it could not be set up");
		close(*ring);
		return rc;
	}
	rc = bl_ep_publish(n, BL_EPS_MAX);
	if (rc)
		bl_log(BL_LOG_WARN, "%s: cannot tell the host's endpoints how many they are: %s",
		       n->meta.name, strerror(-rc));
	rep->slot = ep->slot;
	rep->port = ep->info.port;
	rep->life = ep->info.life;
	rep->ring_bytes = ep->info.ring_bytes;
	bl_log(BL_LOG_INFO, "%s: endpoint %u (%s, pid %u) in slot %u", n->meta.name, ep->info.port,
	       ep->info.name, ep->info.pid, ep->slot);
	bl_node_agent_endpoints(n);
	return 0;
}

static int answer(int conn, const struct bl_attach_rep *rep, const int *fds, int nfds)
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

/* A process wants to say what it knows of its flows. */
static void serve_hints(const struct bl_node *n, int conn, struct bl_attach_rep *rep)
{
	char path[BL_PATH_MAX];
	struct bl_err err;
	int fd;

	snprintf(path, sizeof(path), "%s/maps/%s", n->dir, BL_MAP_TOP_HINTS);
	fd = bpf_obj_get(path);
	if (fd < 0) {
		bl_fail(&err, errno, "cannot open %s: %s", path, strerror(errno));
		fail(rep, errno, &err);
		answer(conn, rep, NULL, 0);
		return;
	}
	answer(conn, rep, &fd, 1); /* who did not wait for it will ask again */
	close(fd);
}

/* Returns whether the connection was taken over by an endpoint. */
static bool serve(struct bl_node *n, int conn, const struct bl_attach_req *q, ssize_t len)
{
	struct bl_attach_rep rep = {
		.magic = BL_SOCK_MAGIC,
		.port_base = n->host_cfg.port_base,
		.port_count = n->host_cfg.port_count,
		.beacon_ns = n->host_cfg.beacon_ns,
	};
	int fds[BL_FD_COUNT] = { [BL_FD_RING] = -1, [BL_FD_HOST_PAGE] = -1, [BL_FD_CLOCK] = -1 };
	struct bl_err err = {};
	int rc;

	fds[BL_FD_INFLIGHT] = n->inflight_fd;
	fds[BL_FD_WAKE] = n->wake_fd;
	fds[BL_FD_WINDOWS] = n->windows_fd;
	fds[BL_FD_FAILURES] = n->failures_fd;
	rc = check_req(q, len, &err);
	if (!rc && q->magic == BL_SOCK_HINTS) {
		serve_hints(n, conn, &rep);
		return false;
	}
	if (!rc) {
		fds[BL_FD_HOST_PAGE] = reading_fd(n, BL_MAP_HOST_PAGE);
		fds[BL_FD_CLOCK] = reading_fd(n, BL_MAP_CLOCK);
		if (fds[BL_FD_HOST_PAGE] < 0 || fds[BL_FD_CLOCK] < 0)
			rc = bl_fail(&err, errno, "cannot open the pinned maps in %s: %s", n->dir,
				     strerror(errno));
	}
	if (!rc)
		rc = attach(n, conn, q, &rep, &fds[BL_FD_RING], &err);
	if (rc) {
		fail(&rep, -rc, &err);
		answer(conn, &rep, NULL, 0);
	} else if (answer(conn, &rep, fds, BL_FD_COUNT)) {
		bl_endpoint_release(&n->ep[rep.slot], "it did not wait for the answer");
	}
	if (!rc)
		close(fds[BL_FD_RING]); /* the map of rings and the process keep it */
	if (fds[BL_FD_HOST_PAGE] >= 0)
		close(fds[BL_FD_HOST_PAGE]);
	if (fds[BL_FD_CLOCK] >= 0)
		close(fds[BL_FD_CLOCK]);
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
	/* one fd, one source: the endpoint's is next */
	p->src = sd_event_source_disable_unref(p->src);
	if (len == sizeof(struct bl_again_req) && q.magic == BL_SOCK_AGAIN)
		kept = bl_endpoint_again(p->node, fd, (const void *)&q);
	else
		kept = len > 0 && serve(p->node, fd, &q, len);
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
			     false); /* who connected first and still has asked nothing will not */
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

/*
 * The daemon before us had put it out, or taken it down, and may have come no further than the
 * first step. What it had decided stays; what it had not is decided now.
 */
static void adopt_dead(struct bl_ep *ep)
{
	struct bl_node *n = ep->node;
	uint64_t t[BL_EPS_MAX];
	enum bl_out_why why;
	uint64_t out = bl_ep_out(n, ep->slot, &why);

	ep->settled = out == BL_OUT_OVER;
	if (out && why) {
		ep->dead = true;
		ep->t = ep->settled ? 0 : out;
	} else if (!ep->left) {
		bl_ep_put_out(n, 1ULL << ep->slot, BL_OUT_ANSWER, t);
		out_at(ep, t[ep->slot]);
	}
}

static void adopt_one(struct bl_node *n, uint32_t key, const struct bl_ep_slot *i)
{
	struct bl_ep *ep = &n->ep[i->slot % BL_EPS_MAX];
	uint32_t slot = i->slot;

	if (slot >= BL_EPS_MAX || i->port != n->host_cfg.port_base + key || ep->used) {
		struct bl_ep_slot none = {};

		bl_log(BL_LOG_WARN, "%s: entry %u of the map %s makes no sense and was removed",
		       n->meta.name, key, BL_MAP_EPS);
		bpf_map_update_elem(n->eps_fd, &key, &none, BPF_ANY);
		return;
	}
	ep->node = n;
	ep->slot = slot;
	ep->info = *i;
	ep->info.name[sizeof(ep->info.name) - 1] = 0;
	ep->conn = ep->pidfd = -1;
	ep->used = true;
	/*
	 * the pidfd first: then the start time that is read belongs to what it holds, or to nobody
	 */
	ep->pidfd = i->pid ? pidfd_open((pid_t)i->pid, 0) : -1;
	ep->left = ep->pidfd < 0 || start_time((pid_t)i->pid) != i->start_time;
	if (ep->info.active == BL_EP_DEAD)
		adopt_dead(ep);
	if (ep->left)
		return; /* bl_endpoints_adopted() */
	if (watch(ep, -1) < 0)
		bl_log(BL_LOG_WARN, "%s: cannot watch endpoint %u", n->meta.name, i->port);
	bl_log(BL_LOG_INFO, "%s: endpoint %u (%s, pid %u) goes on", n->meta.name, i->port,
	       ep->info.name, i->pid);
}

static void adopt(struct bl_node *n)
{
	struct bl_ep_slot i;
	uint32_t k;

	for (k = 0; k < BL_PORT_COUNT; k++)
		if (!bpf_map_lookup_elem(n->eps_fd, &k, &i) && (i.active || i.port))
			adopt_one(n, k, &i);
	for (k = 0; k < BL_EPS_MAX; k++) {
		if (n->ep[k].used)
			continue;
		bl_ep_clear_line(n, k, true);
		bl_ep_clear_wake(n, k);
		bpf_map_delete_elem(n->rings_fd, &k);
	}
}

int bl_endpoints_open(struct bl_node *n, struct bl_err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct group *g;
	int rc, k;

	for (k = 0; k < BL_EPS_MAX; k++)
		n->ep[k].conn = n->ep[k].pidfd = -1;
	adopt(n);
	snprintf(n->sock_path, sizeof(n->sock_path), "%s/host-%" PRIu64 ".sock", BL_RUN_DIR,
		 n->netns_ino);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", n->sock_path);
	unlink(n->sock_path); /* of a daemon that is dead: we hold the node's lock */
	n->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (n->listen_fd < 0 || bind(n->listen_fd, (struct sockaddr *)&a, sizeof(a)) ||
	    chmod(n->sock_path, 0660) || listen(n->listen_fd, 64))
		return bl_fail(err, errno, "cannot listen at %s: %s", n->sock_path,
			       strerror(errno));
	/* endpoints share the in-flight page, so they trust each other: root and one group */
	g = getgrnam("barline");
	if (g && chown(n->sock_path, (uid_t)-1, g->gr_gid))
		bl_log(BL_LOG_WARN, "cannot give %s to the group barline: %s", n->sock_path,
		       strerror(errno));
	rc = sd_event_add_io(n->srv->ev, &n->listen_src, n->listen_fd, EPOLLIN, on_connect, n);
	return rc < 0 ? bl_fail(err, -rc, "cannot serve %s: %s", n->sock_path, strerror(-rc)) : 0;
}

/* The endpoints stay in the maps, for the next daemon. */
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
