// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The connection to the host's daemon. It ends when the daemon ends. The next daemon finds the
 * endpoint in the maps, and the library connects again and says which endpoint it is. Until then
 * frames are not forwarded by way of the controller, and the endpoint is not woken for an
 * announcement, so it reads the page every 50 ms. Nothing else is different.
 *
 * Nothing here blocks. The library tries once in 100 ms, when a call of the application or the
 * helper does work anyway; it tries again if the daemon does not listen yet or its queue of
 * connections is full. A request stands until it is answered or the connection ends, since a daemon
 * that is stopped (SIGSTOP) answers when it continues, and would take a connection that was closed
 * meanwhile for the end of the process.
 *
 * Example: the daemon is restarted at 0 ms and listens again at 90 ms. bl_recv() finds the end of
 * the connection at 1 ms, tries at 1 and 101 ms, and reads the answer in the same call. From then
 * on frames are forwarded again.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "maps/meta_abi.h"
#include "again.h"
#include "lock.h"

#define TRY_NS 100000000ULL
#define NEVER  UINT64_MAX

/*
 * Watch the connection with the application's epoll instance, level-triggered; the helper has an
 * epoll instance of its own.
 */
static void watch_daemon(struct bl_endpoint *ep, int op)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = BL_EV_DAEMON };

	epoll_ctl(ep->epfd, op, ep->daemon, &e);
	bl_helper_watch(ep, op);
}

void bl_daemon_gone(struct bl_endpoint *ep)
{
	/* close() does not suffice if a child has inherited the descriptor */
	watch_daemon(ep, EPOLL_CTL_DEL);
	ep->asked = false;
	ep->daemon_gone = true;
}

/* A refusal is final unless it is EAGAIN: the endpoint stays without a connection. */
static void handle_answer(struct bl_endpoint *ep, const struct bl_again_rep *rep, ssize_t n)
{
	if (n == sizeof(*rep) && rep->magic == BL_SOCK_AGAIN && !rep->error) {
		ep->asked = ep->daemon_gone = false;
		ep->st.reconnects++;
		return;
	}
	if (n != sizeof(*rep) || rep->magic != BL_SOCK_AGAIN || rep->error != EAGAIN)
		ep->again_ns = NEVER;
	bl_daemon_gone(ep);
}

void bl_daemon_hear(struct bl_endpoint *ep)
{
	struct bl_again_rep rep = { 0 };
	ssize_t n;

	if (ep->daemon_gone && !ep->asked)
		return;
	n = recv(ep->daemon, &rep, sizeof(rep), MSG_DONTWAIT | MSG_TRUNC);
	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		bl_daemon_gone(ep);
	else if (n > 0 && ep->asked)
		handle_answer(ep, &rep, n);
}

static void request_takeover(struct bl_endpoint *ep)
{
	const struct bl_again_req q = { .magic = BL_SOCK_AGAIN,
					.abi_version = BL_ABI_VERSION,
					.port = ep->self.port,
					.life = ep->incarnation };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return;
	memcpy(sun.sun_path, ep->daemon_path, sizeof(sun.sun_path));
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) ||
	    send(fd, &q, sizeof(q), MSG_NOSIGNAL) != sizeof(q)) {
		close(fd);
		return;
	}
	if (ep->daemon >= 0)
		close(ep->daemon);
	ep->daemon = fd;
	ep->asked = true;
	watch_daemon(ep, EPOLL_CTL_ADD);
}

void bl_again(struct bl_endpoint *ep)
{
	uint64_t mono = bl_mono();

	if (ep->asked)
		bl_daemon_hear(ep);
	if (ep->asked || !ep->daemon_gone || mono < ep->again_ns)
		return;
	/*
	 * The daemon knows the parent of a forked child, and an endpoint that is out has to start
	 * again.
	 */
	if (ep->pid != getpid() || bl_is_out(ep)) {
		ep->again_ns = NEVER;
		return;
	}
	ep->again_ns = mono + TRY_NS;
	request_takeover(ep);
	if (ep->asked)
		bl_daemon_hear(ep);
}
