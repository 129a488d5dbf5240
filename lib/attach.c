// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bl_init() and bl_exit(): the daemon's socket, the shared pages, the UDP socket. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/timens.h"
#include "maps/meta_abi.h"
#include "attach.h"
#include "daemon.h"
#include "error.h"
#include "leave.h"
#include "lock.h"
#include "peer.h"
#include "recall.h"
#include "rrx.h"
#include "rtx.h"
#include "rx.h"
#include "shelf.h"
#include "stage.h"
#include "tx.h"

/* A daemon that is stopped still listens, but neither accepts a connection nor answers. */
static int no_answer_error(int daemon, const char *path)
{
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);
	char pid[32] = "";

	/* 0: it has not even a connection with us, or is not visible from this pid namespace */
	if (!getsockopt(daemon, SOL_SOCKET, SO_PEERCRED, &who, &len) && who.pid > 0)
		snprintf(pid, sizeof(pid), " (process %d)", who.pid);
	return bl_set_error(NULL, ETIMEDOUT,
			    "the host daemon%s at %s has not answered for %d s; is it stopped? "
			    "`barline status` says what is wrong with it",
			    pid, path, BL_DAEMON_WAIT_S);
}

static int connect_error(int daemon, const char *path, int error)
{
	errno = error;
	if (error == EAGAIN)
		return no_answer_error(daemon, path);
	if (error == EACCES)
		return bl_set_error(NULL, error,
				    "this user may not use the host daemon at %s: %m; root and the "
				    "group barline may (`adduser USER barline`, then log in again)",
				    path);
	return bl_set_error(NULL, error == ECONNREFUSED ? ENOENT : error,
			    "no barline host daemon answers at %s: %m; start `barlined host` in "
			    "this network namespace",
			    path);
}

static int ask_daemon(struct bl_endpoint *ep, const struct bl_options *o, struct bl_attach_rep *rep)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct bl_attach_req req = { .magic = BL_SOCK_MAGIC, .abi_version = BL_ABI_VERSION };
	union {
		char bytes[CMSG_SPACE(BL_FD_COUNT * sizeof(int))];
		struct cmsghdr align;
	} ctl;
	struct iovec io = { .iov_base = rep, .iov_len = sizeof(*rep) };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = ctl.bytes,
			    .msg_controllen = sizeof(ctl) };
	struct cmsghdr *c;
	const struct timeval most = { .tv_sec = BL_DAEMON_WAIT_S };
	char path[sizeof(sun.sun_path)];
	size_t nfds = 0;
	ssize_t n;
	int rc;

	if (o->socket_path)
		snprintf(path, sizeof(path), "%s", o->socket_path);
	else if ((rc = bl_daemon_path(path, sizeof(path))))
		return bl_set_error(NULL, -rc,
				    "cannot find this network namespace: /proc is not mounted?");
	memcpy(sun.sun_path, path, sizeof(path));
	memcpy(ep->daemon_path, path, sizeof(path));
	ep->daemon = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (ep->daemon < 0)
		return bl_set_error(NULL, errno, "cannot make a socket: %m");
	/* also limits connect() */
	setsockopt(ep->daemon, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	setsockopt(ep->daemon, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	/*
	 * With these limits a process that is stopped and continued here gets EINTR although no
	 * signal was handled: signal(7).
	 */
	if (TEMP_FAILURE_RETRY(connect(ep->daemon, (struct sockaddr *)&sun, sizeof(sun))))
		return connect_error(ep->daemon, path, errno);
	req.port = o->port;
	req.ring_bytes = o->ring_bytes;
	req.family = (uint32_t)o->family;
	if (TEMP_FAILURE_RETRY(send(ep->daemon, &req, sizeof(req), MSG_NOSIGNAL)) != sizeof(req))
		return bl_set_error(NULL, errno, "the host daemon at %s hung up: %m", path);
	n = TEMP_FAILURE_RETRY(recvmsg(ep->daemon, &m, MSG_CMSG_CLOEXEC));
	if (n < 0 && errno == EAGAIN)
		return no_answer_error(ep->daemon, path);
	for (c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL; c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		nfds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (nfds > BL_FD_COUNT)
			nfds = BL_FD_COUNT;
		memcpy(ep->fd, CMSG_DATA(c), nfds * sizeof(int));
	}
	if (n != sizeof(*rep) || rep->magic != BL_SOCK_MAGIC)
		return bl_set_error(NULL, EPROTO,
				    "the host daemon at %s speaks another version; restart it or "
				    "rebuild this program",
				    path);
	if (rep->error) {
		rep->message[sizeof(rep->message) - 1] = 0;
		return bl_set_error(NULL, rep->error, "%s", rep->message);
	}
	if (nfds != BL_FD_COUNT)
		return bl_set_error(NULL, EPROTO,
				    "the host daemon at %s sent %zu of %d file descriptors", path,
				    nfds, BL_FD_COUNT);
	return 0;
}

static size_t page_round_up(size_t n)
{
	size_t p = (size_t)sysconf(_SC_PAGESIZE);

	return (n + p - 1) / p * p;
}

static int map_pages(struct bl_endpoint *ep)
{
	size_t ps = (size_t)sysconf(_SC_PAGESIZE);
	void *p;

	p = mmap(NULL, sizeof(struct bl_ep_page), PROT_READ | PROT_WRITE, MAP_SHARED,
		 ep->fd[BL_FD_PAGE], 0);
	if (p == MAP_FAILED)
		return bl_set_error(NULL, errno, "cannot map the page of the endpoint: %m");
	ep->mine = p;
	ep->line = &ep->mine->line;
	ep->wake = &ep->mine->wake;
	ep->fig = &ep->mine->fig;
	ep->rwin = &ep->mine->win;
	p = mmap(NULL, page_round_up(sizeof(struct bl_host_page)), PROT_READ, MAP_SHARED,
		 ep->fd[BL_FD_HOST_PAGE], 0);
	if (p == MAP_FAILED)
		return bl_set_error(NULL, errno, "cannot map the barrier page: %m");
	ep->page = p;
	p = mmap(NULL, page_round_up(sizeof(struct bl_hints)), PROT_READ | PROT_WRITE, MAP_SHARED,
		 ep->fd[BL_FD_HINTS], 0);
	if (p == MAP_FAILED)
		return bl_set_error(NULL, errno, "cannot map the page of hints: %m");
	ep->hints = p;
	p = mmap(NULL, page_round_up(sizeof(struct bl_failures)), PROT_READ, MAP_SHARED,
		 ep->fd[BL_FD_FAILURES], 0);
	if (p == MAP_FAILED)
		return bl_set_error(NULL, errno, "cannot map the page of failures: %m");
	ep->failures = p;
	/* Announcements until now are about others and were made before this endpoint existed. */
	ep->fail_seen = ep->fail_settled = ep->fail_begun = ep->wake->done;
	p = mmap(NULL, page_round_up(sizeof(struct bl_clock)), PROT_READ, MAP_SHARED,
		 ep->fd[BL_FD_CLOCK], 0);
	if (p == MAP_FAILED)
		return bl_set_error(NULL, errno, "cannot map the clock record: %m");
	ep->clock = p;
	/*
	 * A BPF ring buffer: the consumer page (writable), then the producer page and twice the
	 * data (read-only).
	 */
	p = mmap(NULL, ps, PROT_READ | PROT_WRITE, MAP_SHARED, ep->fd[BL_FD_RING], 0);
	if (p == MAP_FAILED)
		return bl_set_error(NULL, errno, "cannot map the ring: %m");
	ep->ring_cons = p;
	p = mmap(NULL, ps + 2 * (size_t)ep->ring_bytes, PROT_READ, MAP_SHARED, ep->fd[BL_FD_RING],
		 (off_t)ps);
	if (p == MAP_FAILED)
		return bl_set_error(NULL, errno, "cannot map the ring's data: %m");
	ep->ring_prod = p;
	ep->ring_data = (const uint8_t *)p + ps;
	return 0;
}

/* The daemon has made the socket and bound it to the address of the endpoint. */
static void take_socket(struct bl_endpoint *ep)
{
	struct timeval tv = { .tv_usec = 100000 };
	int big = 4 << 20;

	ep->sock = ep->fd[BL_FD_SOCKET];
	ep->fd[BL_FD_SOCKET] = -1; /* closed as @sock */
	if (setsockopt(ep->sock, SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof(big)))
		setsockopt(ep->sock, SOL_SOCKET, SO_SNDBUF, &big,
			   sizeof(big)); /* without CAP_NET_ADMIN: up to the system's limit */
	setsockopt(ep->sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

int bl_init(struct bl_endpoint **out, const struct bl_options *opt)
{
	struct bl_options none = { 0 };
	struct bl_attach_rep rep = { 0 };
	struct bl_endpoint *ep;
	int i, rc;

	*out = NULL;
	bl_clear_init_error();
	if (bl_timens_shifts("monotonic"))
		return bl_set_error(NULL, ENOTSUP, BL_TIMENS_SENTENCE, "CLOCK_MONOTONIC");
	opt = opt ? opt : &none;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return bl_set_error(NULL, ENOMEM, "out of memory");
	ep->sock = ep->daemon = ep->epfd = ep->timerfd = -1;
	ep->pid = getpid();
	for (i = 0; i < BL_FD_COUNT; i++)
		ep->fd[i] = -1;
	bl_rq_init(&ep->rq);
	bl_rq_init(&ep->rrq);
	while (!ep->key[0])
		if (getrandom(ep->key, sizeof(ep->key), 0) != sizeof(ep->key)) {
			rc = bl_set_error(NULL, errno, "cannot read random numbers: %m");
			goto fail;
		}
	rc = ask_daemon(ep, opt, &rep);
	if (rc)
		goto fail;
	memcpy(ep->self.ip, rep.addr, 16);
	ep->self.port = (uint16_t)rep.port;
	ep->slot = rep.slot & (BL_EPS_MAX - 1);
	ep->beacon_us = (uint32_t)(rep.beacon_ns / 1000);
	ep->port_base = rep.port_base;
	ep->port_count = rep.port_count;
	ep->ring_bytes = rep.ring_bytes;
	ep->send_buffer = opt->send_buffer ? opt->send_buffer : 4u << 20;
	rc = map_pages(ep);
	if (rc)
		goto fail;
	if (!bl_clock_usable(ep->clock, bl_mono())) {
		rc = bl_set_error(NULL, ETIME,
				  "the host's clock record is void; is barlined running?");
		goto fail;
	}
	ep->fig->began = bl_clock_at(ep->clock, bl_mono());
	ep->incarnation = rep.life;
	{
		uint32_t ip = !memcmp(ep->self.ip, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) ? 20 : 40;
		uint32_t rec = BL_REC_FULL;

		ep->frame_max = rep.mtu - ip - 8;
		if (ep->frame_max > BL_BODY_MAX + sizeof(struct bl_hdr))
			ep->frame_max = BL_BODY_MAX + sizeof(struct bl_hdr);
		if (ep->frame_max - sizeof(struct bl_hdr) > BL_REC_JUMBO - sizeof(struct bl_rec))
			rec = BL_REC_HUGE;
		else if (ep->frame_max - sizeof(struct bl_hdr) >
			 BL_REC_FULL - sizeof(struct bl_rec))
			rec = BL_REC_JUMBO;
		ep->ring_frames = ep->ring_bytes / (rec + 8);
	}
	if (!bl_peer_get(ep, ep->self.ip, ep->self.port)) {
		rc = bl_set_error(NULL, ENOMEM, "out of memory");
		goto fail;
	}
	take_socket(ep);
	ep->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	ep->epfd = epoll_create1(EPOLL_CLOEXEC);
	{
		/*
		 * Edge-triggered: the descriptor signals that the XDP program woke us, not that the
		 * ring holds frames whose time has not come.
		 */
		struct epoll_event ring = { .events = EPOLLIN | EPOLLET, .data.u32 = BL_EV_RING };
		struct epoll_event timer = { .events = EPOLLIN, .data.u32 = BL_EV_TIMER };
		struct epoll_event daemon = { .events = EPOLLIN, .data.u32 = BL_EV_DAEMON };

		if (ep->timerfd < 0 || ep->epfd < 0 ||
		    epoll_ctl(ep->epfd, EPOLL_CTL_ADD, ep->fd[BL_FD_RING], &ring) ||
		    epoll_ctl(ep->epfd, EPOLL_CTL_ADD, ep->timerfd, &timer) ||
		    epoll_ctl(ep->epfd, EPOLL_CTL_ADD, ep->daemon, &daemon)) {
			rc = bl_set_error(NULL, errno, "cannot make an epoll instance: %m");
			goto fail;
		}
	}
	*out = ep;
	return 0;
fail:
	bl_exit(ep);
	return rc;
}

void bl_peers_free(struct bl_endpoint *ep)
{
	struct bl_peer *p;

	while ((p = ep->peers)) {
		ep->peers = p->all_next;
		bl_tx_peer_free(p);
		bl_rx_peer_free(p);
		bl_rrx_peer_free(p);
		free(p);
	}
	free(ep->table);
	ep->table = NULL;
}

/*
 * Tell the daemon that this is no crash, so it can trust that nothing more is sent. The word is in
 * the endpoint's line, where the present or the next daemon finds it; a message could be lost with
 * the connection. A child of fork() says nothing, since its parent still uses the endpoint.
 */
static void say_goodbye(const struct bl_endpoint *ep)
{
	if (ep->pid == getpid())
		__atomic_store_n(&ep->line->bye, ep->last_ts + 1, __ATOMIC_RELEASE);
}

void bl_exit(struct bl_endpoint *ep)
{
	size_t ps = (size_t)sysconf(_SC_PAGESIZE);
	int i;

	if (!ep)
		return;
	bl_helper_stop(ep);
	if (ep->sock >= 0 && ep->epfd >= 0)
		bl_flush(ep); /* no-op if the daemon has expelled it */
	if (ep->sock >= 0 && ep->ring_data && !bl_is_out(ep)) {
		bl_rx_leave(ep);
		bl_rrx_leave(ep);
		if (ep->pid == getpid()) /* not a child of fork() */
			bl_tx_leave(ep);
	}
	if (ep->page)
		munmap((void *)ep->page, page_round_up(sizeof(struct bl_host_page)));
	if (ep->hints)
		munmap(ep->hints, page_round_up(sizeof(struct bl_hints)));
	if (ep->failures)
		munmap((void *)ep->failures, page_round_up(sizeof(struct bl_failures)));
	if (ep->clock)
		munmap((void *)ep->clock, page_round_up(sizeof(struct bl_clock)));
	if (ep->ring_cons)
		munmap(ep->ring_cons, ps);
	if (ep->ring_prod)
		munmap((void *)ep->ring_prod, ps + 2 * (size_t)ep->ring_bytes);
	for (i = 0; i < BL_FD_COUNT; i++)
		if (ep->fd[i] >= 0)
			close(ep->fd[i]);
	if (ep->sock >= 0)
		close(ep->sock);
	if (ep->epfd >= 0)
		close(ep->epfd);
	if (ep->timerfd >= 0)
		close(ep->timerfd);
	bl_shelf_free(ep);
	bl_rx_free(ep);
	bl_rrx_free(ep);
	bl_rtx_free(ep);
	bl_recall_free(ep);
	bl_peers_free(ep);
	bl_rq_free(&ep->rq);
	free(ep->undo);
	/* Last, since from here on the slot and the port may belong to another process. */
	if (ep->mine) {
		say_goodbye(ep);
		munmap(ep->mine, sizeof(struct bl_ep_page));
	}
	if (ep->daemon >= 0)
		close(ep->daemon);
	free(ep);
}

const struct bl_addr *bl_self(const struct bl_endpoint *ep)
{
	return &ep->self;
}

uint64_t bl_get_timestamp(const struct bl_endpoint *ep)
{
	uint64_t mono = bl_mono();

	return bl_clock_usable(ep->clock, mono) ? bl_clock_at(ep->clock, mono) : 0;
}

int bl_get_stats(const struct bl_endpoint *ep, struct bl_stats *st)
{
	struct bl_endpoint *mine = (struct bl_endpoint *)ep; /* for the lock alone */
	struct bl_stats now;

	if (st->size != sizeof(*st))
		return -EINVAL;
	bl_enter(mine);
	now = ep->st;
	now.size = st->size;
	now.peers = ep->npeers;
	now.strangers = ep->nstrangers;
	now.senders = ep->nsenders;
	now.memory = ep->buf_bytes + ep->big_bytes + ep->rbig_bytes +
		     ep->npeers * (uint64_t)sizeof(struct bl_peer) +
		     ep->table_size * (uint64_t)sizeof(void *);
	now.memory_max = BL_MEMORY_MAX;
	now.barrier = ep->barrier;
	now.queued_frames = ep->rq.frames;
	now.commit = ep->commit;
	now.prepared_frames = ep->rrq.frames;
	now.sent_ts = ep->last_ts;
	bl_leave(mine);
	*st = now;
	return 0;
}
