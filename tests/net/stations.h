/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stations of a rack with admission. A station is a packet socket on bl0 of a host; it sends and
 * receives hand-made UDP datagrams over IPv4, each with a number.
 *
 * 	struct station a = station(0), b = station(1);
 *
 * 	give_host(&a, &b, 700, 1);
 * 	while (took(&b, &seq) != 700)
 * 		rack_serve(1);
 */
#ifndef BARLINE_TESTS_STATIONS_H
#define BARLINE_TESTS_STATIONS_H

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "tests/net/rack.h"

#define STATION_LEN   120
#define STATION_MAGIC 0x57a9e125u

/** struct station - bl0 of one host. */
struct station {
	uint8_t mac[6];     /* address of bl0 */
	unsigned int index; /* host, from 0 */
	int fd;             /* packet socket on bl0 */
};

T_FN struct station station(unsigned int host)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
	struct station s = { .index = host };
	int home = rack_away(rack_host(host)), room = 16 << 20, on = 1;
	struct ifreq r = { .ifr_name = "bl0" };

	s.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_IP));
	a.sll_ifindex = (int)if_nametoindex("bl0");
	CHECK(s.fd >= 0 && a.sll_ifindex && !bind(s.fd, (void *)&a, sizeof(a)) &&
		      !ioctl(s.fd, SIOCGIFHWADDR, &r),
	      "%s", strerror(errno));
	setsockopt(s.fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)), "%s",
	      strerror(errno));
	memcpy(s.mac, r.ifr_hwaddr.sa_data, 6);
	rack_back(home);
	return s;
}

T_FN void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/*
 * Sends a datagram with number @seq from station @from, source port @sport, to the address
 * 10.@net.@host at @mac.
 */
T_FN void give(const struct station *from, const uint8_t *mac, uint32_t net, uint32_t host,
	       uint32_t sport, uint32_t seq)
{
	uint8_t p[STATION_LEN] = { 0 };
	const uint32_t magic = STATION_MAGIC;
	uint32_t sum = 0, i;

	memcpy(p, mac, 6);
	memcpy(p + 6, from->mac, 6);
	put16(p + 12, ETH_P_IP);
	p[14] = 0x45;
	put16(p + 16, STATION_LEN - 14);
	p[22] = 64;
	p[23] = IPPROTO_UDP;
	p[26] = 10;
	p[27] = 200;
	p[29] = (uint8_t)(from->index + 1);
	p[30] = 10;
	p[31] = (uint8_t)net;
	put16(p + 32, host);
	for (i = 14; i < 34; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put16(p + 24, ~(sum + (sum >> 16)));
	put16(p + 34, sport);
	put16(p + 36, 9);
	put16(p + 38, STATION_LEN - 34);
	memcpy(p + 42, &magic, sizeof(magic));
	memcpy(p + 46, &seq, sizeof(seq));
	CHECK(send(from->fd, p, STATION_LEN, 0) == STATION_LEN, "%s", strerror(errno));
}

T_FN void give_host(const struct station *from, const struct station *to, uint32_t sport,
		    uint32_t seq)
{
	give(from, to->mac, 200, to->index + 1, sport, seq);
}

/* Returns the time of CLOCK_REALTIME, which took_at() also uses. */
T_FN uint64_t station_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/*
 * Returns the source port of the next datagram that arrived at @at, or 0 if there is none. @seq:
 * receives its number; may be NULL. @came_ns: receives the time at which bl0 had it, however late
 * this function is called; may be NULL. Trailing bytes, as TOP's echo adds where the receiver has
 * another policy, are ignored.
 */
T_FN uint32_t took_at(const struct station *at, uint32_t *seq, uint64_t *came_ns)
{
	const uint32_t magic = STATION_MAGIC;
	struct sockaddr_ll a;
	uint8_t p[2048], control[128];
	struct iovec part = { p, sizeof(p) };
	struct cmsghdr *c;
	struct timespec t;

	for (;;) {
		struct msghdr m = { .msg_name = &a,
				    .msg_namelen = sizeof(a),
				    .msg_iov = &part,
				    .msg_iovlen = 1,
				    .msg_control = control,
				    .msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(at->fd, &m, MSG_DONTWAIT);

		if (n < 0)
			return 0;
		if (a.sll_pkttype == PACKET_OUTGOING || n < STATION_LEN ||
		    memcmp(p + 42, &magic, sizeof(magic)))
			continue;
		if (seq)
			memcpy(seq, p + 46, sizeof(*seq));
		for (c = CMSG_FIRSTHDR(&m); came_ns && c; c = CMSG_NXTHDR(&m, c))
			if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
				memcpy(&t, CMSG_DATA(c), sizeof(t));
				*came_ns = (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
			}
		return (uint32_t)p[34] << 8 | p[35];
	}
}

T_FN uint32_t took(const struct station *at, uint32_t *seq)
{
	return took_at(at, seq, NULL);
}

#endif
