/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The arbiter's UDP sockets: addresses, multicast groups, and packets in batches of one system
 * call. A packet to be sent is written into the buffer from arb_sock_room() and appended with
 * arb_sock_queue(); it leaves with arb_sock_flush(), or when the batch is full.
 */
#ifndef BARLINE_ARBITER_SOCKET_H
#define BARLINE_ARBITER_SOCKET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/log.h"
#include "maps/fcp_abi.h"

#define ARB_BATCH 64 /* packets in one system call */

/** struct arb_sa - An address in the form that a socket of its family takes. */
struct arb_sa {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
	socklen_t len;
};

/** struct arb_packets - The packets of one system call. */
struct arb_packets {
	unsigned int n; /* packets to be sent */
	struct mmsghdr msg[ARB_BATCH];
	struct iovec iov[ARB_BATCH];
	struct arb_sa addr[ARB_BATCH];
	/* 8 bytes more than the longest packet, so that a longer one is recognized as such */
	_Alignas(8) uint8_t buf[ARB_BATCH][BL_FCP_PACKET_MAX + 8];
};

/** struct arb_sock - A socket for requests. */
struct arb_sock {
	int fd;
	sa_family_t family;
	bool group;             /* receives requests to the group; answers leave by the first one */
	struct arb_packets out; /* packets that wait for arb_sock_flush() */
};

/** struct arb_sent - Counters of arb_sock_flush(). */
struct arb_sent {
	uint64_t sent;   /* packets that the kernel took */
	uint64_t failed; /* packets that it refused, which are lost */
};

/** arb_addr_text - Write the address into @buf of INET6_ADDRSTRLEN bytes and return @buf. */
char *arb_addr_text(const struct in6_addr *ip, char *buf);
/** arb_sa_set - @scope: index of an interface for an IPv6 address of link-local scope, or 0. */
void arb_sa_set(struct arb_sa *s, sa_family_t family, const struct in6_addr *ip, uint16_t port,
		unsigned int scope);
/** arb_sa_get - The address, IPv6 or IPv4-mapped, and the port in host order. */
void arb_sa_get(const struct arb_sa *s, struct in6_addr *ip, uint16_t *port);

/** arb_addr_family - AF_INET for an IPv4-mapped address, else AF_INET6. */
static inline sa_family_t arb_addr_family(const struct in6_addr *ip)
{
	return IN6_IS_ADDR_V4MAPPED(ip) ? AF_INET : AF_INET6;
}

/**
 * arb_udp_open - Bind a UDP socket that does not block.
 * @group_if: interface of a group whose address @ip is: it may be of link-local scope, and several
 * arbiters of a machine may listen to it. NULL: @ip is no group.
 *
 * Returns the descriptor or -errno with @err.
 */
int arb_udp_open(const struct in6_addr *ip, uint16_t port, const char *group_if,
		 struct bl_err *err);
/** arb_group_join - Receive from and send to @group on interface @ifname. 0 or -errno. */
int arb_group_join(int fd, const struct in6_addr *group, const char *ifname, struct bl_err *err);

/** arb_sock_room - A buffer for the next packet, BL_FCP_PACKET_MAX bytes; may send others. */
uint8_t *arb_sock_room(struct arb_sock *s, struct arb_sent *c);
/** arb_sock_queue - Append the @len bytes in the buffer from arb_sock_room(), for @ip. */
void arb_sock_queue(struct arb_sock *s, const struct in6_addr *ip, uint16_t port, uint32_t len);
/** arb_sock_flush - Send what was appended. */
void arb_sock_flush(struct arb_sock *s, struct arb_sent *c);
/** arb_receive - Receive up to ARB_BATCH packets into @in. Returns how many, or -1. */
int arb_receive(struct arb_packets *in, int fd);

#endif
