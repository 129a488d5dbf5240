/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flood ADDRESS SOCKETS - sends UDP datagrams of 1400 bytes to port 9 of ADDRESS (IPv4), as many as
 * its sockets take, until it is stopped. The kernel charges a socket for a datagram until the NIC
 * has sent it, about 90 of them with the usual limit. So 90 * SOCKETS of them are on their way at
 * any time, which is more than the ring of a NIC holds: the rest waits in front of it.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define SOCKETS_MAX 32

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct pollfd p[SOCKETS_MAX];
	static char data[1400];
	int n = argc == 3 ? atoi(argv[2]) : 0, i;

	if (n < 1 || n > SOCKETS_MAX || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1) {
		fprintf(stderr, "usage: flood ADDRESS SOCKETS\n");
		return 2;
	}
	for (i = 0; i < n; i++) {
		p[i] = (struct pollfd){ .fd = socket(AF_INET, SOCK_DGRAM, 0), .events = POLLOUT };
		if (p[i].fd < 0) {
			perror("flood: socket");
			return 1;
		}
	}
	for (;;) {
		poll(p, (nfds_t)n, -1);
		for (i = 0; i < n; i++)
			if (p[i].revents)
				sendto(p[i].fd, data, sizeof(data), MSG_DONTWAIT,
				       (struct sockaddr *)&to, sizeof(to));
	}
}
