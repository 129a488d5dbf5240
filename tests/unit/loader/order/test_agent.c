// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The agent without a network: what changes of inputs mean (loader/order/agent_watch.c), and
 * addresses of controllers (proto/session.c). The rest is in
 * tests/net/controller/test_controller.c, tests/net/controller/test_controller_input.c and
 * tests/net/reliable/test_failover.c.
 */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "controller/recover/determine.h"
#include "loader/order/agent_watch.h"

static void watch__look(void **state)
{
	static const struct {
		struct bl_fence_port was, is;
		enum bl_agent_seen seen;
	} t[] = {
#define PORT(n, d, i, h) { .port = 255, .neighbour = n, .death = d, .in = i, .held = h }
		/*
		 * Frozen: reported once for each death, whatever the input did between two samples.
		 */
		{ PORT(9, 7, true, false), PORT(9, 8, true, true), BL_AGENT_SEEN_SILENT },
		{ PORT(9, 8, true, true), PORT(9, 8, true, true), BL_AGENT_SEEN_NOTHING },
		{ PORT(9, 8, true, true), PORT(9, 9, true, true), BL_AGENT_SEEN_SILENT },
		{ PORT(9, 7, false, false), PORT(9, 8, true, true), BL_AGENT_SEEN_SILENT },
		/* in C's minimum */
		{ PORT(9, 8, true, true), PORT(9, 8, true, false), BL_AGENT_SEEN_LIVE },
		{ PORT(9, 8, false, false), PORT(9, 8, true, false), BL_AGENT_SEEN_LIVE },
		{ PORT(9, 8, true, false), PORT(9, 8, true, false), BL_AGENT_SEEN_NOTHING },
		/* The input died and was resumed by a fence of ours. */
		{ PORT(9, 8, true, false), PORT(9, 9, true, false), BL_AGENT_SEEN_NOTHING },
		/* no longer in C's minimum */
		{ PORT(9, 8, true, true), PORT(9, 8, false, false), BL_AGENT_SEEN_OTHER },
		{ PORT(9, 8, true, false), PORT(9, 8, false, false), BL_AGENT_SEEN_OTHER },
		{ PORT(9, 8, false, false), PORT(9, 8, false, false), BL_AGENT_SEEN_NOTHING },
		/* A FREEZE found nothing to freeze. */
		{ PORT(9, 8, false, false), PORT(9, 9, false, false), BL_AGENT_SEEN_NOTHING },
		/* another neighbour */
		{ PORT(9, 8, true, false), PORT(10, 8, true, false), BL_AGENT_SEEN_OTHER },
		{ PORT(9, 8, true, true), PORT(10, 8, true, true), BL_AGENT_SEEN_OTHER },
		{ PORT(0, 8, false, false), PORT(10, 8, false, false), BL_AGENT_SEEN_OTHER },
		{ PORT(9, 8, true, false), PORT(10, 9, true, true), BL_AGENT_SEEN_SILENT },
	}, first[] = {
		{ { 0 }, PORT(0, 0, false, false), BL_AGENT_SEEN_NOTHING },
		{ { 0 }, PORT(9, 0, false, false), BL_AGENT_SEEN_OTHER },
		{ { 0 }, PORT(9, 0, true, false), BL_AGENT_SEEN_LIVE },
		{ { 0 }, PORT(9, 0, true, true), BL_AGENT_SEEN_SILENT },
		{ { 0 }, PORT(9, 3, true, true), BL_AGENT_SEEN_SILENT },
#undef PORT
	};
	struct bl_agent_watch w;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(first); i++) {
		memset(&w, 0, sizeof(w));
		assert_int_equal(bl_agent_watch_sample(&w, &first[i].is), first[i].seen);
		if (bl_agent_watch_sample(&w, &first[i].is) != BL_AGENT_SEEN_NOTHING)
			fail_msg("row %zu: seen twice", i);
	}
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		memset(&w, 0, sizeof(w));
		bl_agent_watch_sample(&w, &t[i].was);
		if (bl_agent_watch_sample(&w, &t[i].is) != t[i].seen)
			fail_msg("row %zu", i);
		assert_int_equal(bl_agent_watch_sample(&w, &t[i].is), BL_AGENT_SEEN_NOTHING);
	}
}

static void port_state__all(void **state)
{
	(void)state;
	assert_int_equal(bl_agent_port_state(&(struct bl_fence_port){ .in = true }), BL_AGENT_LIVE);
	assert_int_equal(bl_agent_port_state(&(struct bl_fence_port){ .in = true, .held = true }),
			 BL_AGENT_SILENT);
	assert_int_equal(bl_agent_port_state(&(struct bl_fence_port){ .barred = true }),
			 BL_AGENT_REMOVED);
	assert_int_equal(bl_agent_port_state(&(struct bl_fence_port){
				 .in = true, .behind = true, .role = BL_PORT_UP }),
			 BL_AGENT_BEHIND);
	assert_int_equal(bl_agent_port_state(&(struct bl_fence_port){
				 .in = true, .behind = true, .role = BL_PORT_DOWN }),
			 BL_AGENT_BEHIND);
	assert_int_equal(bl_agent_port_state(&(struct bl_fence_port){
				 .in = true, .behind = true, .role = BL_PORT_HOST }),
			 BL_AGENT_LIVE);
	assert_int_equal(bl_agent_port_state(&(struct bl_fence_port){
				 .in = true, .behind = true, .held = true, .role = BL_PORT_UP }),
			 BL_AGENT_SILENT);
	/* The numbers equal the controller's. */
	assert_int_equal(BL_AGENT_LIVE, BL_DET_LIVE);
	assert_int_equal(BL_AGENT_SILENT, BL_DET_SILENT);
	assert_int_equal(BL_AGENT_REMOVED, BL_DET_REMOVED);
	assert_int_equal(BL_AGENT_BEHIND, BL_DET_BEHIND);
	assert_int_equal(BL_AGENT_PORT_STATES, BL_DET_WAY_STATES);
}

static void addr__parsed(void **state)
{
	static const struct {
		const char *text, *ip;
		int family;
		unsigned int port;
	} t[] = {
		{ "10.0.0.1", "10.0.0.1", AF_INET, 61693 },
		{ "10.0.0.1:1", "10.0.0.1", AF_INET, 1 },
		{ "10.0.0.1:65535", "10.0.0.1", AF_INET, 65535 },
		{ "fd00::1", "fd00::1", AF_INET6, 61693 },
		{ "[fd00::1]", "fd00::1", AF_INET6, 61693 },
		{ "[fd00::1]:80", "fd00::1", AF_INET6, 80 },
		{ "::", "::", AF_INET6, 61693 },
	};
	static const char *const bad[] = { "",
					   ":80",
					   "10.0.0.1:",
					   "10.0.0.1:0",
					   "10.0.0.1:65536",
					   "10.0.0.1:8x",
					   "10.0.0.1: 8",
					   "10.0.0",
					   "host:80",
					   "[fd00::1",
					   "[fd00::1]80",
					   "[fd00::1]:",
					   "[10.0.0.1:80",
					   "fd00::1:2:3:4:5:6:7:8:9",
					   "10.0.0.1:-1",
					   "1111111111111111111111111111111111111111111111111111111"
					   "111111111111111111" };
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
		cmocka_unit_test(port_state__all),
		cmocka_unit_test(addr__parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
