// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * base/number.c: which numbers are accepted on a command line, where they are stored, and the
 * messages for others.
 */
#include <errno.h>

#include "tests/unit/unit.h"

#include "base/number.h"

struct fields {
	uint16_t port;
	uint32_t us, ring;
	uint64_t ns, rate_bps;
	int32_t cpu;
	int64_t skew;
	double load, base_ns;
	uint64_t after; /* must not change */
};

enum { K_PORT = 1, K_US, K_RING, K_NS, K_RATE, K_CPU, K_SKEW, K_LOAD, K_BASE, K_SEED };

static const struct bl_number table[] = {
	BL_NUMBER(K_PORT, "port", NULL, 1, 65535, struct fields, port),
	BL_NUMBER(K_US, "wait-us", "us", 10, UINT32_MAX, struct fields, us),
	BL_NUMBER_POWER_OF_TWO(K_RING, "ring", "bytes", 4096, 65536, struct fields, ring),
	BL_NUMBER_SCALED(K_NS, "late-ms", "ms", 1, 1000000, struct fields, ns, 1000000),
	BL_NUMBER_RATE_OF(K_RATE, "rate", struct fields, rate_bps),
	BL_NUMBER(K_CPU, "cpu", NULL, -1, 63, struct fields, cpu),
	BL_NUMBER(K_SKEW, "skew", "ns", INT64_MIN, INT64_MAX, struct fields, skew),
	BL_NUMBER(K_LOAD, "load", NULL, 0.001, 1, struct fields, load),
	BL_NUMBER_SCALED(K_BASE, "base-us", "us", 0.5, 1e6, struct fields, base_ns, 1000),
	BL_NUMBER(K_SEED, "seed", NULL, 0, INT64_MAX, struct fields, ns),
	{ 0 }
};

static const struct bl_number *find_row(int key)
{
	const struct bl_number *n = table;

	while (n->key != key)
		n++;
	return n;
}

static void read__edges(void **state)
{
	static const struct {
		int key;
		const char *arg;
		const char *why; /* NULL: accepted */
	} cases[] = {
		{ K_PORT, "0", "--port: \"0\" is not a number from 1 to 65535" },
		{ K_PORT, "1", NULL },
		{ K_PORT, "65535", NULL },
		{ K_PORT, "65536", "--port: \"65536\" is not a number from 1 to 65535" },
		{ K_PORT, "-1", "--port: \"-1\" is not a number from 1 to 65535" },
		{ K_PORT, "", "--port: \"\" is not a number from 1 to 65535" },
		{ K_PORT, " ", "--port: \" \" is not a number from 1 to 65535" },
		{ K_PORT, "7 ", "--port: \"7 \" is not a number from 1 to 65535" },
		{ K_PORT, "7x", "--port: \"7x\" is not a number from 1 to 65535" },
		{ K_PORT, "7.0", "--port: \"7.0\" is not a number from 1 to 65535" },
		{ K_PORT, "0x10", NULL },
		{ K_US, "9", "--wait-us: \"9\" is not a number from 10 to 4294967295 us" },
		{ K_US, "10", NULL },
		{ K_US, "4294967295", NULL },
		{ K_US, "4294967296",
		  "--wait-us: \"4294967296\" is not a number from 10 to 4294967295 us" },
		/* No unit is accepted, not even the option's own. */
		{ K_US, "100us", "--wait-us: \"100us\" is not a number from 10 to 4294967295 us" },
		{ K_US, "1ms", "--wait-us: \"1ms\" is not a number from 10 to 4294967295 us" },
		{ K_RING, "4095",
		  "--ring: \"4095\" is not a power of two from 4096 to 65536 bytes" },
		{ K_RING, "4096", NULL },
		{ K_RING, "4097",
		  "--ring: \"4097\" is not a power of two from 4096 to 65536 bytes" },
		{ K_RING, "65536", NULL },
		{ K_RING, "131072",
		  "--ring: \"131072\" is not a power of two from 4096 to 65536 bytes" },
		{ K_CPU, "-2", "--cpu: \"-2\" is not a number from -1 to 63" },
		{ K_CPU, "-1", NULL },
		{ K_CPU, "63", NULL },
		{ K_CPU, "64", "--cpu: \"64\" is not a number from -1 to 63" },
		{ K_SKEW, "-9223372036854775808", NULL },
		{ K_SKEW, "9223372036854775807", NULL },
		{ K_SKEW, "9223372036854775808",
		  "--skew: \"9223372036854775808\" is not a number of ns" },
		{ K_SKEW, "-9223372036854775809",
		  "--skew: \"-9223372036854775809\" is not a number of ns" },
		{ K_SEED, "-1", "--seed: \"-1\" is not a number from 0 on" },
		{ K_SEED, "0", NULL },
		{ K_SEED, "9223372036854775807", NULL },
		{ K_SEED, "99999999999999999999",
		  "--seed: \"99999999999999999999\" is not a number from 0 on" },
		{ K_LOAD, "0.0009", "--load: \"0.0009\" is not a number from 0.001 to 1" },
		{ K_LOAD, "0.001", NULL },
		{ K_LOAD, "1", NULL },
		{ K_LOAD, "1.0001", "--load: \"1.0001\" is not a number from 0.001 to 1" },
		{ K_LOAD, "nan", "--load: \"nan\" is not a number from 0.001 to 1" },
		{ K_LOAD, "inf", "--load: \"inf\" is not a number from 0.001 to 1" },
		{ K_LOAD, "1e999", "--load: \"1e999\" is not a number from 0.001 to 1" },
		{ K_LOAD, "0.5x", "--load: \"0.5x\" is not a number from 0.001 to 1" },
		{ K_LOAD, "", "--load: \"\" is not a number from 0.001 to 1" },
		{ K_BASE, "0.4", "--base-us: \"0.4\" is not a number from 0.5 to 1000000 us" },
		{ K_BASE, "0.5", NULL },
		{ K_BASE, "1e6", NULL },
		{ K_RATE, "1999999",
		  "--rate: \"1999999\" is not a rate from 2mbit to 1000gbit, as in 250mbit" },
		{ K_RATE, "2mbit", NULL },
		{ K_RATE, "1tbit", NULL },
		{ K_RATE, "1001gbit",
		  "--rate: \"1001gbit\" is not a rate from 2mbit to 1000gbit, as in 250mbit" },
		{ K_RATE, "5mhz",
		  "--rate: \"5mhz\" is not a rate from 2mbit to 1000gbit, as in 250mbit" },
		{ K_RATE, "", "--rate: \"\" is not a rate from 2mbit to 1000gbit, as in 250mbit" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fields f, before;
		char why[256] = "";

		memset(&f, 0x5a, sizeof(f));
		before = f;
		assert_int_equal(bl_number_read(find_row(cases[i].key), cases[i].arg, &f, why,
						sizeof(why)),
				 cases[i].why ? -EINVAL : 0);
		assert_string_equal(why, cases[i].why ? cases[i].why : "");
		if (cases[i].why)
			assert_memory_equal(&f, &before, sizeof(f));
		assert_int_equal(f.after, before.after);
	}
}

static void read__each_type(void **state)
{
	struct fields f = { 0 }, want = { .port = 65535,
					  .us = 4294967295,
					  .ring = 8192,
					  .ns = 1000000000000,
					  .rate_bps = 250000000,
					  .cpu = -1,
					  .skew = INT64_MIN,
					  .load = 0.25,
					  .base_ns = 1500 };
	static const struct {
		int key;
		const char *arg;
	} args[] = { { K_PORT, "0xffff" },  { K_US, "4294967295" },
		     { K_RING, "8192" },    { K_NS, "1000000" },
		     { K_RATE, "250mbit" }, { K_CPU, "-1" },
		     { K_LOAD, "0.25" },    { K_SKEW, "-9223372036854775808" },
		     { K_BASE, "1.5" } };
	char why[256] = "";
	size_t i;

	for (i = 0; i < ARRAY_SIZE(args); i++)
		assert_int_equal(bl_number_read(find_row(args[i].key), args[i].arg, &f, why,
						sizeof(why)),
				 0);
	assert_int_equal(f.port, want.port);
	assert_int_equal(f.us, want.us);
	assert_int_equal(f.ring, want.ring);
	assert_int_equal(f.ns, want.ns);
	assert_int_equal(f.rate_bps, want.rate_bps);
	assert_int_equal(f.cpu, want.cpu);
	assert_int_equal(f.skew, want.skew);
	assert_true(f.load == want.load && f.base_ns == want.base_ns);
}

/* A key without a row belongs to another parser. */
static void option__unknown_key(void **state)
{
	struct fields f = { 0 };

	assert_int_equal(bl_number_option(table, 99, "1", &f, NULL), ARGP_ERR_UNKNOWN);
	assert_int_equal(bl_number_option(table, K_PORT, "7", &f, NULL), 0);
	assert_int_equal(f.port, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__edges),
		cmocka_unit_test(read__each_type),
		cmocka_unit_test(option__unknown_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
