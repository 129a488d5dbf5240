/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client of the first controller of controller_world.h that is no agent: a socket, to which the
 * test writes what it likes.
 *
 *	int fd = raw();
 *	Bl__Hello h = hello_of(2, BL_DET_HOST);
 *	say_hello(fd, &h);
 *	CHECK(hung_up(fd), "it is believed");
 */
#ifndef BARLINE_TESTS_RAW_CLIENT_H
#define BARLINE_TESTS_RAW_CLIENT_H

#include "tests/net/controller/controller_world.h"

#include "controller/recover/determine.h"
#include "proto/ctl.pb-c.h"

T_FN int raw(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(61693),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&sa, sizeof(sa)), "%s", strerror(errno));
	return fd;
}

/* Returns true if the other side closed the connection. */
T_FN bool hung_up(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t end = t_mono() + WAIT_S * 1000000000ULL;
	char buf[4096];
	ssize_t n;

	for (;;) {
		CHECK(t_mono() < end, "it does not hang up");
		CHECK(sd_event_run(ev, 1000) >= 0, "the event loop");
		if (poll(&p, 1, 10) == 1) {
			n = read(fd, buf, sizeof(buf));
			if (n <= 0)
				break;
		}
	}
	close(fd);
	return true;
}

T_FN void say(int fd, const Bl__ToController *m)
{
	uint8_t buf[4096];
	size_t len = bl__to_controller__get_packed_size(m);

	CHECK(len + 4 <= sizeof(buf), "%zu", len);
	buf[0] = 0;
	buf[1] = 0;
	buf[2] = (uint8_t)(len >> 8);
	buf[3] = (uint8_t)len;
	bl__to_controller__pack(m, buf + 4);
	CHECK(write(fd, buf, len + 4) == (ssize_t)len + 4, "%s", strerror(errno));
}

T_FN Bl__Hello hello_of(uint32_t node, uint32_t kind)
{
	Bl__Hello h = BL__HELLO__INIT;

	h.version = 1;
	h.node = node;
	h.kind = kind;
	h.name = "raw";
	return h;
}

T_FN void say_hello(int fd, Bl__Hello *h)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;

	m.what_case = BL__TO_CONTROLLER__WHAT_HELLO;
	m.hello = h;
	say(fd, &m);
}

/* Returns the counter @name in the status of the first controller. */
T_FN uint64_t counted(const char *name)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(ask(0), "\"counts\":");
	at = at ? strstr(at, key) : NULL;
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

T_FN unsigned int times_said(const char *what)
{
	const char *p = ask(0);
	unsigned int n = 0;

	for (; (p = strstr(p, what)); p++)
		n++;
	return n;
}

#endif
