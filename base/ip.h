/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * IP addresses of 16 bytes: IPv4 as ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2).
 * IN6_IS_ADDR_V4MAPPED() does the same for aligned addresses only.
 *
 * Example: 10.0.0.1 is ten bytes of 0, ff ff, 0a 00 00 01.
 */
#ifndef BARLINE_IP_H
#define BARLINE_IP_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* The bytes before an IPv4 address. */
static const uint8_t bl_ip_mapped[12] = { [10] = 0xff, [11] = 0xff };

/** bl_ip_is_v4 - whether it is an IPv4 address. */
static inline bool bl_ip_is_v4(const uint8_t ip[16])
{
	return !memcmp(ip, bl_ip_mapped, sizeof(bl_ip_mapped));
}

/** bl_ip_map_v4 - writes all but the last four bytes of an IPv4 address. */
static inline void bl_ip_map_v4(uint8_t ip[16])
{
	memcpy(ip, bl_ip_mapped, sizeof(bl_ip_mapped));
}

/** bl_ip_text - as people write it, into @buf. Returns @buf. */
static inline const char *bl_ip_text(const uint8_t ip[16], char buf[INET6_ADDRSTRLEN])
{
	bool v4 = bl_ip_is_v4(ip);

	return inet_ntop(v4 ? AF_INET : AF_INET6, ip + (v4 ? 12 : 0), buf, INET6_ADDRSTRLEN);
}

/**
 * bl_ip_sockaddr - makes a socket address.
 * @port: in host order
 * Returns its length.
 */
static inline socklen_t bl_ip_sockaddr(struct sockaddr_storage *ss, const uint8_t ip[16],
				       uint16_t port)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)ss;
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)ss;

	memset(ss, 0, sizeof(*ss));
	if (bl_ip_is_v4(ip)) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, ip + 12, 4);
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	memcpy(&v6->sin6_addr, ip, 16);
	return sizeof(*v6);
}

#endif
