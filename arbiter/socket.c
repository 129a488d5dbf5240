// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See arbiter/socket.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "arbiter/socket.h"

#define RCVBUF (4 << 20)

char *arb_addr_text(const struct in6_addr *ip, char *buf)
{
	if (IN6_IS_ADDR_V4MAPPED(ip))
		inet_ntop(AF_INET, &ip->s6_addr[12], buf, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, ip, buf, INET6_ADDRSTRLEN);
	return buf;
}

void arb_sa_set(struct arb_sa *s, sa_family_t family, const struct in6_addr *ip, uint16_t port,
		unsigned int scope)
{
	memset(s, 0, sizeof(*s));
	if (family == AF_INET) {
		s->in.sin_family = AF_INET;
		s->in.sin_port = htons(port);
		memcpy(&s->in.sin_addr, &ip->s6_addr[12], 4);
		s->len = sizeof(s->in);
		return;
	}
	s->in6.sin6_family = AF_INET6;
	s->in6.sin6_port = htons(port);
	s->in6.sin6_addr = *ip;
	s->in6.sin6_scope_id = scope;
	s->len = sizeof(s->in6);
}

void arb_sa_get(const struct arb_sa *s, struct in6_addr *ip, uint16_t *port)
{
	if (s->sa.sa_family == AF_INET) {
		memset(ip, 0, sizeof(*ip));
		ip->s6_addr[10] = ip->s6_addr[11] = 0xff;
		memcpy(&ip->s6_addr[12], &s->in.sin_addr, 4);
		*port = ntohs(s->in.sin_port);
		return;
	}
	*ip = s->in6.sin6_addr;
	*port = ntohs(s->in6.sin6_port);
}

int arb_udp_open(const struct in6_addr *ip, uint16_t port, const char *group_if, struct bl_err *err)
{
	sa_family_t family = arb_addr_family(ip);
	int on = 1, off = 0, size = RCVBUF,
	    fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;
	char name[INET6_ADDRSTRLEN];
	struct arb_sa sa;

	if (fd < 0)
		return bl_fail(err, errno, "cannot make a UDP socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (group_if)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, IN6_IS_ADDR_UNSPECIFIED(ip) ? &off : &on,
			   sizeof(on));
	arb_sa_set(&sa, family, ip, port, group_if ? if_nametoindex(group_if) : 0);
	if (bind(fd, &sa.sa, sa.len)) {
		rc = bl_fail(err, errno, "cannot listen on %s port %u: %s", arb_addr_text(ip, name),
			     port, strerror(errno));
		close(fd);
		return rc;
	}
	return fd;
}

int arb_group_join(int fd, const struct in6_addr *group, const char *ifname, struct bl_err *err)
{
	unsigned int index = if_nametoindex(ifname);
	char name[INET6_ADDRSTRLEN];
	int rc;

	if (!index)
		return bl_fail(err, ENODEV, "the group's interface %s does not exist", ifname);
	if (IN6_IS_ADDR_V4MAPPED(group)) {
		struct ip_mreqn m = { .imr_ifindex = (int)index };

		memcpy(&m.imr_multiaddr, &group->s6_addr[12], 4);
		rc = setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m)) ||
		     setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &m, sizeof(m));
	} else {
		struct ipv6_mreq m = { .ipv6mr_multiaddr = *group, .ipv6mr_interface = index };

		rc = setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof(m)) ||
		     setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof(index));
	}
	return rc ? bl_fail(err, errno, "cannot join %s on %s: %s", arb_addr_text(group, name),
			    ifname, strerror(errno))
		  : 0;
}

void arb_sock_flush(struct arb_sock *s, struct arb_sent *c)
{
	unsigned int at = 0;

	while (at < s->out.n) {
		int n = sendmmsg(s->fd, &s->out.msg[at], s->out.n - at, MSG_DONTWAIT);

		if (n <= 0) { /* lost like a packet in the network: totals make up for it */
			c->failed++;
			n = 1;
		} else {
			c->sent += (unsigned int)n;
		}
		at += (unsigned int)n;
	}
	s->out.n = 0;
}

uint8_t *arb_sock_room(struct arb_sock *s, struct arb_sent *c)
{
	if (s->out.n == ARB_BATCH)
		arb_sock_flush(s, c);
	return s->out.buf[s->out.n];
}

void arb_sock_queue(struct arb_sock *s, const struct in6_addr *ip, uint16_t port, uint32_t len)
{
	struct arb_packets *o = &s->out;
	unsigned int i = o->n++;

	arb_sa_set(&o->addr[i], s->family, ip, port, 0);
	o->iov[i] = (struct iovec){ o->buf[i], len };
	o->msg[i].msg_hdr = (struct msghdr){ .msg_name = &o->addr[i].sa,
					     .msg_namelen = o->addr[i].len,
					     .msg_iov = &o->iov[i],
					     .msg_iovlen = 1 };
}

int arb_receive(struct arb_packets *in, int fd)
{
	unsigned int i;

	for (i = 0; i < ARB_BATCH; i++) {
		in->iov[i] = (struct iovec){ in->buf[i], sizeof(in->buf[i]) };
		in->msg[i].msg_hdr = (struct msghdr){ .msg_name = &in->addr[i].sa,
						      .msg_namelen = sizeof(struct sockaddr_in6),
						      .msg_iov = &in->iov[i],
						      .msg_iovlen = 1 };
	}
	return recvmmsg(fd, in->msg, ARB_BATCH, MSG_DONTWAIT, NULL);
}
