// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Text form of endpoint addresses. */
#include <arpa/inet.h>
#include <stdio.h>
#include "base/ip.h"
#include "internal.h"

int bl_addr_parse(struct bl_addr *a, const char *text)
{
	const char *colon = strrchr(text, ':');
	char host[64], *end;
	unsigned long port;
	size_t n;

	if (!colon || colon == text)
		return -EINVAL;
	n = (size_t)(colon - text);
	if (n >= sizeof(host) || colon[1] < '0' || colon[1] > '9')
		return -EINVAL;
	port = strtoul(colon + 1, &end, 10);
	if (*end || !port || port > 65535)
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = 0;
	if (host[0] == '[') {
		if (n < 3 || host[n - 1] != ']')
			return -EINVAL;
		host[n - 1] = 0;
		if (inet_pton(AF_INET6, host + 1, a->ip) != 1)
			return -EINVAL;
	} else {
		bl_ip_map_v4(a->ip);
		if (inet_pton(AF_INET, host, a->ip + 12) != 1)
			return -EINVAL;
	}
	a->port = (uint16_t)port;
	return 0;
}

char *bl_addr_format(const struct bl_addr *a, char *buf, size_t size)
{
	char ip[INET6_ADDRSTRLEN];

	if (bl_ip_is_v4(a->ip)) {
		inet_ntop(AF_INET, a->ip + 12, ip, sizeof(ip));
		snprintf(buf, size, "%s:%u", ip, a->port);
	} else {
		inet_ntop(AF_INET6, a->ip, ip, sizeof(ip));
		snprintf(buf, size, "[%s]:%u", ip, a->port);
	}
	return buf;
}
