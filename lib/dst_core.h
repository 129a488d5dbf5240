/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Destinations that no frame can ever reach as an ordered message, so that a send to one is refused
 * at once and not reported as unreachable after seconds.
 *
 * Example: the host's range of ports is 61696 to 61951. A message to 10.0.0.2:99 would arrive there
 * as a plain datagram; one to 224.0.0.1:61700 has no receiver that could answer.
 */
#ifndef BARLINE_DST_CORE_H
#define BARLINE_DST_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/ip.h"

/** enum bl_dst_fault - why a destination is refused. */
enum bl_dst_fault {
	BL_DST_GOOD,
	BL_DST_PORT,      /* not a port of the rack's endpoints */
	BL_DST_NOBODY,    /* unspecified: 0.0.0.0/8 or :: */
	BL_DST_MULTICAST, /* 224.0.0.0/4, ff00::/8, or 255.255.255.255 */
	BL_DST_LOOPBACK,  /* 127.0.0.0/8 or ::1, which are on no NIC */
	BL_DST_FAMILY     /* IPv6 from an endpoint with an IPv4 address, or the other way round */
};

static inline bool bl_dst_is_loopback(const uint8_t ip[16])
{
	static const uint8_t one[16] = { [15] = 1 };

	return bl_ip_is_v4(ip) ? ip[12] == 127 : !memcmp(ip, one, 16);
}

/**
 * bl_dst_judge - whether @port of @ip can be an endpoint of the rack.
 * @self: address of the sending endpoint; @base, @count: the host's range; count 0: not known.
 */
static inline enum bl_dst_fault bl_dst_judge(const uint8_t ip[16], uint16_t port,
					     const uint8_t self[16], uint16_t base, uint16_t count)
{
	static const uint8_t none[16];
	bool v4 = bl_ip_is_v4(ip);

	if (!port || (count && (uint16_t)(port - base) >= count))
		return BL_DST_PORT;
	if (v4 ? !ip[12] : !memcmp(ip, none, 16))
		return BL_DST_NOBODY;
	if (v4 ? ip[12] >> 4 == 14 || !memcmp(ip + 12, "\xff\xff\xff\xff", 4) : ip[0] == 0xff)
		return BL_DST_MULTICAST;
	if (bl_dst_is_loopback(ip) && !bl_dst_is_loopback(self))
		return BL_DST_LOOPBACK;
	return v4 == bl_ip_is_v4(self) ? BL_DST_GOOD : BL_DST_FAMILY;
}

#endif
