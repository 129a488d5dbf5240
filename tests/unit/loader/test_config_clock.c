// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The key "clock" of a node's file (loader/config_clock.c): what it sets, and what is refused. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "loader/clock/source.h"
#include "loader/config.h"
#include "loader/config_clock.h"
#include "maps/clock_abi.h"
#include "tests/unit/loader/config_wraps.h"

static int load(struct bl_node_cfg *c, struct bl_err *err, const char *text)
{
	char path[] = "/tmp/config_clock_XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	int rc;

	assert_non_null(f);
	fprintf(f, "role: host\ninterface: lo\n%s\n", text);
	assert_int_equal(fclose(f), 0);
	*c = (struct bl_node_cfg){};
	rc = bl_config_load(c, path, err);
	bl_config_free(c);
	assert_int_equal(unlink(path), 0);
	return rc;
}

static void clock__good(void **state)
{
	static const struct {
		const char *text;
		uint32_t source, bound_us, max_us;
	} t[] = {
		{ "", 0, 0, 0 },
		{ "clock_bound_us: 70", 0, 70, 0 },
		{ "clock: { source: kernel }", BL_CLOCK_KERNEL, 0, 0 },
		{ "clock: { source: trust, bound_us: 1 }", BL_CLOCK_TRUST, 1, 0 },
		{ "clock: { max_bound_us: 1000000, bound_us: 999999 }", 0, 999999, 1000000 },
		{ "clock: { source: kernel }\nclock_bound_us: 70", BL_CLOCK_KERNEL, 70, 0 },
	};
	struct bl_node_cfg c;
	struct bl_err err;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		assert_int_equal(load(&c, &err, t[k].text), 0);
		assert_int_equal(c.clock_source, t[k].source);
		assert_int_equal(c.clock_bound_us, t[k].bound_us);
		assert_int_equal(c.clock_max_bound_us, t[k].max_us);
		bl_clock_default_source(&c);
		assert_int_equal(c.clock_source, t[k].source ? t[k].source : BL_CLOCK_KERNEL);
	}
}

#define TEXT_27  "abcdefghijklmnopqrstuvwxyz0"
#define TEXT_107 TEXT_27 TEXT_27 TEXT_27 "abcdefghijklmnopqrstuvwxyz"

/* The keys of the source "ptp4l", and what they are by default. */
static void clock__ptp4l(void **state)
{
	struct bl_node_cfg c;
	struct bl_err err;

	(void)state;
	assert_int_equal(load(&c, &err, "clock: { source: ptp4l }"), 0);
	assert_int_equal(c.clock_source, BL_CLOCK_PTP4L);
	assert_string_equal(c.clock_socket, "");
	assert_string_equal(c.clock_phc, "");
	assert_int_equal(c.clock_domain | c.clock_transport_specific | c.clock_grandmaster, 0);
	assert_int_equal(load(&c, &err,
			      "clock: { source: ptp4l, socket: /run/x, phc: /dev/ptp3, domain: "
			      "255, transport_specific: 15, grandmaster: true, max_bound_us: 7 }"),
			 0);
	assert_string_equal(c.clock_socket, "/run/x");
	assert_string_equal(c.clock_phc, "/dev/ptp3");
	assert_int_equal(c.clock_domain, 255);
	assert_int_equal(c.clock_transport_specific, 15);
	assert_true(c.clock_grandmaster);
	assert_int_equal(c.clock_max_bound_us, 7);
	assert_int_equal(load(&c, &err, "clock: { source: clockbound, file: /run/x }"), 0);
	assert_int_equal(c.clock_source, BL_CLOCK_CLOCKBOUND);
	assert_string_equal(c.clock_socket, "/run/x");
	assert_int_equal(load(&c, &err, "clock: { source: ptp4l, phc: none }"), 0);
	assert_string_equal(c.clock_phc, "none");
}

static void clock__bad(void **state)
{
	static const struct {
		const char *text, *says;
	} t[] = {
		{ "clock: kernel", "clock" },
		{ "clock: { source: sundial }", "sundial" },
		{ "clock: { source: kernel, socket: /run/ptp4l }", "source: ptp4l" },
		{ "clock: { phc: none }", "source: ptp4l" },
		{ "clock: { grandmaster: true }", "source: ptp4l" },
		{ "clock: { source: ptp4l, socket: run/ptp4l }", "absolute" },
		{ "clock: { source: ptp4l, file: /run/x }", "source: clockbound" },
		{ "clock: { source: clockbound, file: run/x }", "absolute" },
		{ "clock: { source: clockbound, socket: /run/x }", "source: ptp4l" },
		{ "clock: { source: ptp4l, socket: /" TEXT_107 " }", "socket" },
		{ "clock: { source: ptp4l, phc: eth0 }", "/dev/ptp0" },
		{ "clock: { source: ptp4l, domain: 256 }", "domain" },
		{ "clock: { source: ptp4l, transport_specific: 16 }", "transport_specific" },
		{ "clock: { bound: 3 }", "bound" },
		{ "clock: { bound_us: 0 }", "bound_us" },
		{ "clock: { max_bound_us: 1000001 }", "max_bound_us" },
		{ "clock: { max_bound_us: -1 }", "max_bound_us" },
		{ "clock: { bound_us: 5 }\nclock_bound_us: 5", "write one of them" },
		{ "clock: { source: trust, max_bound_us: 5 }", "does not change" },
	};
	struct bl_node_cfg c;
	struct bl_err err;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		err.text[0] = 0;
		assert_int_equal(load(&c, &err, t[k].text), -EINVAL);
		assert_non_null(strstr(err.text, t[k].says));
	}
}

static void bl_clock_source_name__all(void **state)
{
	uint32_t kind, named = 0;

	(void)state;
	for (kind = 0; kind < 64; kind++) {
		const char *name = bl_clock_source_name(kind);

		if (!strcmp(name, "none")) {
			assert_null(bl_clock_source(kind));
			continue;
		}
		named++;
	}
	assert_int_equal(named, 4);
	assert_string_equal(bl_clock_source_name(BL_CLOCK_CLOCKBOUND), "clockbound");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clock__good),
		cmocka_unit_test(clock__ptp4l),
		cmocka_unit_test(clock__bad),
		cmocka_unit_test(bl_clock_source_name__all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
