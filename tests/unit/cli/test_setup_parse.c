// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cli/setup/parse.c: which arguments are accepted, and what becomes of them. */
#include "tests/unit/unit.h"

#include "cli/setup/parse.h"

#define X16 "xxxxxxxxxxxxxxxx"

static void expect(const char *arg, const char *wrong, const char *part)
{
	if (!part && wrong)
		fail_msg("\"%s\": %s", arg, wrong);
	if (part && (!wrong || !strstr(wrong, part)))
		fail_msg("\"%s\": \"%s\" is not in \"%s\"", arg, part, wrong ? wrong : "");
}

static void parse__name(void **state)
{
	static const char *const t[][2] = {
		{ "sw", NULL },
		{ "rack-1_a.b", NULL },
		{ "xxxxxxxxxxxxxxx" X16, NULL },
		{ X16 X16, "at most 31" },
		{ "", "letters" },
		{ "..", "letters" },
		{ "-n", "letters" },
		{ "a/b", "letters" },
		{ "a b", "letters" },
	};
	char name[32];
	unsigned int k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(t); k++)
		expect(t[k][0], setup_parse_name(t[k][0], name), t[k][1]);
}

static void parse__dev(void **state)
{
	static const char *const t[][2] = {
		{ "eth0", NULL },     { "eth0.5", NULL },   { "xxxxxxxxxxxxxxx", NULL },
		{ X16, "no name" },   { "", "no name" },    { "..", "no name" },
		{ "a,b", "no name" }, { "a}b", "no name" }, { "a/b", "no name" },
	};
	char dev[IFNAMSIZ];
	unsigned int k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(t); k++)
		expect(t[k][0], setup_parse_dev(t[k][0], dev), t[k][1]);
}

static void parse__host(void **state)
{
	static const char *const t[][2] = {
		{ "eth0=02:00:00:00:00:0A", NULL },
		{ "eth0=02:00:00:00:00:0a,10.0.0.1,fd00::1", NULL },
		{ "eth0", "IFNAME=MAC" },
		{ "=02:00:00:00:00:01", "no name" },
		{ "eth0=02:00:00:00:00", "form" },
		{ "eth0=02:00:00:00:00:1", "form" },
		{ "eth0=02:00:00:00:00:01:02", "form" },
		{ "eth0=01:00:00:00:00:01", "one machine" },
		{ "eth0=ff:ff:ff:ff:ff:ff", "one machine" },
		{ "eth0=00:00:00:00:00:00", "one machine" },
		{ "eth0=00:00:00:00:00:01", NULL },
		{ "eth0=02:00:00:00:00:01,", "no IP" },
		{ "eth0=02:00:00:00:00:01,10.0.0", "no IP" },
		{ "eth0=02:00:00:00:00:01,10.0.0.256", "no IP" },
		{ "eth0=02:00:00:00:00:01,010.0.0.1", "no IP" },
		{ "eth0=02:00:00:00:00:01,1.1.1.1,1.1.1.2,1.1.1.3,1.1.1.4,1.1.1.5,1.1.1.6,1.1.1.7,"
		  "1.1.1.8",
		  NULL },
		{ "eth0=02:00:00:00:00:01,1.1.1.1,1.1.1.2,1.1.1.3,1.1.1.4,1.1.1.5,1.1.1.6,1.1.1.7,"
		  "1.1.1.8,1.1.1.9",
		  "at most 8" },
		{ "eth0=02:00:00:00:00:01,"
		  "11111111111111111111111111111111111111111111111111111111",
		  "too long" },
	};
	struct setup_host h;
	unsigned int k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(t); k++)
		expect(t[k][0], setup_parse_host(t[k][0], &h), t[k][1]);
	assert_null(setup_parse_host("eth1=02:AB:00:00:00:0A,10.0.0.1,FD00:0::1", &h));
	assert_string_equal(h.dev, "eth1");
	assert_string_equal(h.mac, "02:ab:00:00:00:0a");
	assert_int_equal(h.nip, 2);
	assert_string_equal(h.ip[0], "10.0.0.1");
	assert_string_equal(h.ip[1], "fd00::1");
}

static void parse__address_and_route(void **state)
{
	static const char *const t[][3] = {
		{ "10.0.0.1/24", NULL, "10.0.0.1/24" },
		{ "10.0.0.1/32", NULL, "10.0.0.1/32" },
		{ "10.0.0.1/33", "from 0 to 32", "" },
		{ "fd00:0::1/128", NULL, "fd00::1/128" },
		{ "fd00::1/129", "from 0 to 128", "" },
		{ "10.0.0.1", "length is missing", "" },
		{ "10.0.0.1/", "from 0 to 32", "" },
		{ "10.0.0.1/-1", "from 0 to 32", "" },
		{ "x/24", "no IP", "" },
	};
	static const char *const routes[][3] = {
		{ "10.0.0.0/16=10.0.1.254", NULL, "10.0.0.0/16" },
		{ "10.128.0.0/9=10.0.1.254", NULL, "10.128.0.0/9" },
		{ "10.128.0.0/8=10.0.1.254", "bits behind", "" },
		{ "default=10.0.1.254", NULL, "0.0.0.0/0" },
		{ "default=fd00::1", NULL, "::/0" },
		{ "fd00::/16=10.0.1.254", "same kind", "" },
		{ "10.0.0.0/16", "ROUTER", "" },
		{ "10.0.0.0/16=x", "no IP", "" },
	};
	struct setup_address a;
	struct setup_route r;
	unsigned int k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(t); k++) {
		expect(t[k][0], setup_parse_address(t[k][0], &a), t[k][1]);
		assert_string_equal(a.text, t[k][2]);
		assert_string_equal(a.dev, "");
	}
	assert_null(setup_parse_address("eth0=10.0.0.1/8", &a));
	assert_string_equal(a.dev, "eth0");
	assert_string_equal(a.text, "10.0.0.1/8");
	for (k = 0; k < ARRAY_SIZE(routes); k++) {
		r = (struct setup_route){ 0 };
		expect(routes[k][0], setup_parse_route(routes[k][0], &r), routes[k][1]);
		if (!routes[k][1])
			assert_string_equal(r.net, routes[k][2]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__name),
		cmocka_unit_test(parse__dev),
		cmocka_unit_test(parse__host),
		cmocka_unit_test(parse__address_and_route),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
