// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The agent without a network: what registers say (loader/agent_watch.c), and addresses of controllers (loader/session.c). The rest is in tests/net/test_controller.c. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "../../loader/agent_watch.h"

static struct bl_port_regs two_lanes(uint32_t s0, uint64_t c0, uint32_t s1, uint64_t c1)
{
	struct bl_port_regs r = { 0 };

	r.lane[0] = (struct bl_reg){ .state = s0, .c = c0, .b = c0 + 5 };
	r.lane[1] = (struct bl_reg){ .state = s1, .c = c1, .b = c1 + 5 };
	return r;
}

static void watch__look(void **state)
{
	static const struct {
		uint8_t was;
		uint32_t s0;
		uint64_t c0;
		uint32_t s1;
		uint64_t c1;
		bool barred;
		enum bl_agent_seen seen;
		uint8_t is;
		uint64_t c;
	} t[] = {
		/* joins when it is live, and nothing of it is on its way or dead, and it may */
		{ BL_AGENT_REMOVED, BL_REG_ABSENT, 0, BL_REG_ABSENT, 0, false, BL_AGENT_SEEN_NOTHING, BL_AGENT_REMOVED, 0 },
		{ BL_AGENT_REMOVED, BL_REG_JOINING, 0, BL_REG_ABSENT, 0, false, BL_AGENT_SEEN_NOTHING, BL_AGENT_REMOVED, 0 },
		{ BL_AGENT_REMOVED, BL_REG_LIVE, 900, BL_REG_JOINING, 0, false, BL_AGENT_SEEN_NOTHING, BL_AGENT_REMOVED, 0 },
		{ BL_AGENT_REMOVED, BL_REG_LIVE, 900, BL_REG_DEAD, 800, false, BL_AGENT_SEEN_NOTHING, BL_AGENT_REMOVED, 0 },
		{ BL_AGENT_REMOVED, BL_REG_LIVE, 900, BL_REG_LIVE, 0, true, BL_AGENT_SEEN_NOTHING, BL_AGENT_REMOVED, 0 },
		{ BL_AGENT_REMOVED, BL_REG_LIVE, 900, BL_REG_LIVE, 0, false, BL_AGENT_SEEN_LIVE, BL_AGENT_LIVE, 0 },
		{ BL_AGENT_REMOVED, BL_REG_LIVE, 900, BL_REG_ABSENT, 0, false, BL_AGENT_SEEN_LIVE, BL_AGENT_LIVE, 0 },
		/* is silent when one lane is; C is the least of those that count */
		{ BL_AGENT_LIVE, BL_REG_LIVE, 900, BL_REG_LIVE, 950, false, BL_AGENT_SEEN_NOTHING, BL_AGENT_LIVE, 0 },
		{ BL_AGENT_LIVE, BL_REG_DEAD, 900, BL_REG_LIVE, 950, false, BL_AGENT_SEEN_SILENT, BL_AGENT_SILENT, 900 },
		{ BL_AGENT_LIVE, BL_REG_DEAD, 950, BL_REG_LIVE, 900, false, BL_AGENT_SEEN_SILENT, BL_AGENT_SILENT, 900 },
		{ BL_AGENT_LIVE, BL_REG_DEAD, 950, BL_REG_ABSENT, 3, false, BL_AGENT_SEEN_SILENT, BL_AGENT_SILENT, 950 },
		{ BL_AGENT_LIVE, BL_REG_DEAD, 0, BL_REG_ABSENT, 0, true, BL_AGENT_SEEN_SILENT, BL_AGENT_SILENT, BL_AGENT_NO_C },
		{ BL_AGENT_LIVE, BL_REG_DEAD, (5ULL << 48) + 7, BL_REG_ABSENT, 0, false, BL_AGENT_SEEN_SILENT, BL_AGENT_SILENT, 7 },
		/* and stays so, whatever is heard */
		{ BL_AGENT_SILENT, BL_REG_LIVE, 2000, BL_REG_LIVE, 2000, false, BL_AGENT_SEEN_NOTHING, BL_AGENT_SILENT, 77 },
		{ BL_AGENT_SILENT, BL_REG_DEAD, 2000, BL_REG_DEAD, 2000, false, BL_AGENT_SEEN_NOTHING, BL_AGENT_SILENT, 77 },
	};
	struct bl_agent_watch w;
	size_t i;

	(void)state;
	bl_agent_watch_init(&w);
	for (i = 0; i < BL_SW_PORTS_MAX; i++)
		assert_int_equal(w.state[i], BL_AGENT_REMOVED);
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_port_regs r = two_lanes(t[i].s0, t[i].c0, t[i].s1, t[i].c1);

		bl_agent_watch_init(&w);
		w.state[255] = t[i].was;
		w.c[255] = t[i].was == BL_AGENT_SILENT ? 77 : 0;
		assert_int_equal(bl_agent_watch_look(&w, 255, &r, t[i].barred), t[i].seen);
		assert_int_equal(w.state[255], t[i].is);
		assert_int_equal(w.c[255], t[i].c);
	}
}

static void watch__freeze_and_resume(void **state)
{
	struct bl_port_regs r = two_lanes(BL_REG_LIVE, 900, BL_REG_LIVE, 950), later = two_lanes(BL_REG_LIVE, 1900, BL_REG_LIVE, 1950);
	struct bl_agent_watch w;

	(void)state;
	bl_agent_watch_init(&w);
	assert_int_equal(bl_agent_watch_freeze(&w, 0, &r), BL_AGENT_NO_C); /* in nobody's minimum */
	assert_int_equal(bl_agent_watch_look(&w, 0, &r, false), BL_AGENT_SEEN_LIVE);
	bl_agent_watch_resumed(&w, 0); /* of before: it is live */
	assert_int_equal(w.state[0], BL_AGENT_LIVE);
	assert_int_equal(bl_agent_watch_freeze(&w, 0, &r), 900);
	assert_int_equal(bl_agent_watch_freeze(&w, 0, &later), 900); /* ordered again */
	assert_int_equal(bl_agent_watch_look(&w, 0, &later, false), BL_AGENT_SEEN_NOTHING);
	bl_agent_watch_resumed(&w, 0);
	assert_int_equal(bl_agent_watch_look(&w, 0, &later, true), BL_AGENT_SEEN_NOTHING);
	assert_int_equal(bl_agent_watch_look(&w, 0, &later, false), BL_AGENT_SEEN_LIVE);
}

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
		cmocka_unit_test(watch__look),
		cmocka_unit_test(watch__freeze_and_resume),
		cmocka_unit_test(addr__parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
