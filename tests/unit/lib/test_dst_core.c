// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* lib/dst_core.h: which destinations a send refuses. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>

#include "lib/dst_core.h"

static void read_ip(const char *text, uint8_t ip[16])
{
	bl_ip_map_v4(ip);
	if (inet_pton(AF_INET, text, ip + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, text, ip), 1);
}

static void judge__addresses(void **state)
{
	static const struct {
		const char *self, *dst;
		enum bl_dst_fault fault;
	} cases[] = {
		{ "10.0.0.1", "10.0.0.2", BL_DST_GOOD },
		{ "10.0.0.1", "10.0.0.1", BL_DST_GOOD },
		{ "10.0.0.1", "0.0.0.0", BL_DST_NOBODY },
		{ "10.0.0.1", "0.1.2.3", BL_DST_NOBODY },
		{ "10.0.0.1", "1.0.0.0", BL_DST_GOOD },
		{ "10.0.0.1", "126.255.255.255", BL_DST_GOOD },
		{ "10.0.0.1", "127.0.0.1", BL_DST_LOOPBACK },
		{ "10.0.0.1", "128.0.0.1", BL_DST_GOOD },
		{ "127.0.0.1", "127.0.0.2", BL_DST_GOOD }, /* endpoints of a test */
		{ "10.0.0.1", "223.255.255.255", BL_DST_GOOD },
		{ "10.0.0.1", "224.0.0.0", BL_DST_MULTICAST },
		{ "10.0.0.1", "239.255.255.255", BL_DST_MULTICAST },
		{ "10.0.0.1", "240.0.0.1", BL_DST_GOOD },
		{ "10.0.0.1", "255.255.255.254", BL_DST_GOOD },
		{ "10.0.0.1", "255.255.255.255", BL_DST_MULTICAST },
		{ "10.0.0.1", "fd00::2", BL_DST_FAMILY },
		{ "fd00::1", "10.0.0.2", BL_DST_FAMILY },
		{ "fd00::1", "fd00::2", BL_DST_GOOD },
		{ "fd00::1", "::", BL_DST_NOBODY },
		{ "fd00::1", "::1", BL_DST_LOOPBACK },
		{ "fd00::1", "::2", BL_DST_GOOD },
		{ "fd00::1", "feff::1", BL_DST_GOOD },
		{ "fd00::1", "ff02::1", BL_DST_MULTICAST },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t self[16], dst[16];

		read_ip(cases[i].self, self);
		read_ip(cases[i].dst, dst);
		if (bl_dst_judge(dst, 61700, self, 61696, 256) != cases[i].fault)
			fail_msg("%s to %s: %d", cases[i].self, cases[i].dst,
				 (int)bl_dst_judge(dst, 61700, self, 61696, 256));
	}
}

static void judge__ports(void **state)
{
	static const struct {
		uint16_t port, base, count;
		bool good;
	} cases[] = {
		{ 61695, 61696, 256, false }, { 61696, 61696, 256, true },
		{ 61951, 61696, 256, true },  { 61952, 61696, 256, false },
		{ 0, 61696, 256, false },     { 99, 61696, 256, false },
		{ 65535, 65280, 256, true },  { 0, 65280, 256, false },
		{ 100, 100, 1, true },        { 101, 100, 1, false },
		{ 99, 0, 0, true },           { 0, 0, 0, false }, /* the range is not known */
	};
	uint8_t self[16], dst[16];
	size_t i;

	(void)state;
	read_ip("10.0.0.1", self);
	read_ip("10.0.0.2", dst);
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		if (bl_dst_judge(dst, cases[i].port, self, cases[i].base, cases[i].count) !=
		    (cases[i].good ? BL_DST_GOOD : BL_DST_PORT))
			fail_msg("port %u of %u and %u more", cases[i].port, cases[i].base,
				 cases[i].count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judge__addresses),
		cmocka_unit_test(judge__ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
