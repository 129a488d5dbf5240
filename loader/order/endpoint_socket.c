// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See endpoint_socket.h.
 *
 * The cookie identifies a socket for as long as the kernel runs, and is given only once. A socket
 * that the process makes could be used as well, but then the daemon would have to believe the
 * process, or wait for a second message. The endpoint's entry in the map "eps" has the cookie, so
 * an endpoint that is older than the daemon keeps its socket.
 *
 * A socket that is bound cannot be bound again, and a source address that a process picks for one
 * frame (IP_PKTINFO) is compared by the program.
 */
#include "loader/order/endpoint_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/ip.h"

static int fail_bind(const struct sockaddr_storage *ss, uint16_t port, struct bl_err *err)
{
	const struct sockaddr_in6 *v6 = (const void *)ss;
	const struct sockaddr_in *v4 = (const void *)ss;
	char text[INET6_ADDRSTRLEN] = "?";
	int rc = errno;

	inet_ntop(ss->ss_family,
		  ss->ss_family == AF_INET ? (const void *)&v4->sin_addr
					   : (const void *)&v6->sin6_addr,
		  text, sizeof(text));
	if (rc == EADDRINUSE)
		return bl_fail(err, rc,
			       "UDP port %u of %s is taken by a process that is not an endpoint; "
			       "`ss -ulpn` shows which, or ask for another port",
			       port, text);
	return bl_fail(err, rc, "cannot bind port %u of %s: %s", port, text, strerror(rc));
}

int bl_endpoint_socket(const uint8_t addr[16], uint16_t port, uint64_t *cookie, struct bl_err *err)
{
	struct sockaddr_storage ss;
	socklen_t len = bl_ip_sockaddr(&ss, addr, port), size = sizeof(*cookie);
	int fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1, rc;

	if (fd < 0)
		return bl_fail(err, errno, "cannot make a UDP socket: %s", strerror(errno));
	if (ss.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&ss, len))
		rc = fail_bind(&ss, port, err);
	else if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, cookie, &size) || !*cookie)
		rc = bl_fail(err, EPROTO, "cannot identify the socket of the endpoint: %s",
			     strerror(errno));
	else
		return fd;
	close(fd);
	return rc;
}
