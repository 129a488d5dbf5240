// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The agent without a network: addresses of controllers (loader/session.c). The rest is in tests/net/test_controller.c and tests/net/test_failover.c. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "../../loader/agent.h"

static void addr__parsed(void **state)
{
	static const struct {
		const char *text, *ip;
		int family;
		unsigned int port;
	} t[] = {
		{ "10.0.0.1", "10.0.0.1", AF_INET, 61693 },	 { "10.0.0.1:1", "10.0.0.1", AF_INET, 1 },	   { "10.0.0.1:65535", "10.0.0.1", AF_INET, 65535 },
		{ "fd00::1", "fd00::1", AF_INET6, 61693 },	 { "[fd00::1]", "fd00::1", AF_INET6, 61693 },	   { "[fd00::1]:80", "fd00::1", AF_INET6, 80 },
		{ "::", "::", AF_INET6, 61693 },
	};
	static const char *const bad[] = { "", ":80", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:8x", "10.0.0.1: 8", "10.0.0", "host:80", "[fd00::1", "[fd00::1]80", "[fd00::1]:", "[10.0.0.1:80",
					   "fd00::1:2:3:4:5:6:7:8:9", "10.0.0.1:-1", "1111111111111111111111111111111111111111111111111111111111111111111111111" };
	struct sockaddr_storage sa;
	char ip[INET6_ADDRSTRLEN];
	socklen_t len;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(bl_session_addr(t[i].text, &sa, &len), 0);
		assert_int_equal(sa.ss_family, t[i].family);
		if (t[i].family == AF_INET) {
			const struct sockaddr_in *v = (const void *)&sa;

			assert_int_equal(len, sizeof(*v));
			assert_int_equal(ntohs(v->sin_port), t[i].port);
			inet_ntop(AF_INET, &v->sin_addr, ip, sizeof(ip));
		} else {
			const struct sockaddr_in6 *v = (const void *)&sa;

			assert_int_equal(len, sizeof(*v));
			assert_int_equal(ntohs(v->sin6_port), t[i].port);
			inet_ntop(AF_INET6, &v->sin6_addr, ip, sizeof(ip));
		}
		assert_string_equal(ip, t[i].ip);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_not_equal(bl_session_addr(bad[i], &sa, &len), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addr__parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
