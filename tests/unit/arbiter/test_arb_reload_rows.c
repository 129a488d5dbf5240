// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a reload of an arbiter compares (arbiter/reload.c), and what it can apply. */
#include "tests/unit/unit.h"

#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include <errno.h>
#include <unistd.h>

#include "arbiter/reload.h"
#include "proto/fastpass_file.h"

/* The file of before: each row below replaces one of its lines, or adds one. */
static const char *const lines[] = {
	"arbiters: [10.0.0.250, 10.0.0.251]",
	"group: 239.7.7.7",
	"secret: \"00000000000012340000000000000000\"",
	"policy: weighted",
	"faults: 10.0.0.252",
	"endpoints: [{ name: h1, addr: 10.0.0.1, rack: 0 }, { name: h2, addr: 10.0.0.2, rack: 1 }]",
};

static void load(struct bl_fp_file *f, int replaced, const char *by)
{
	char path[] = "/tmp/barline-reload-XXXXXX";
	struct bl_err err;
	int fd = mkstemp(path), k;
	FILE *to;

	assert_true(fd >= 0);
	to = fdopen(fd, "w");
	for (k = 0; k < (int)ARRAY_SIZE(lines); k++)
		fprintf(to, "%s\n", k == replaced ? by : lines[k]);
	if (replaced < 0)
		fprintf(to, "%s\n", by);
	fclose(to);
	memset(f, 0, sizeof(*f));
	if (bl_fp_load(f, path, &err))
		fail_msg("%s", err.text);
	unlink(path);
}

/* Each difference is named, with what makes it take effect. */
static void changes__each(void **state)
{
	static const struct {
		int line; /* that is replaced; -1: one is added */
		const char *by;
		const char *path;
		enum bl_change change;
	} rows[] = {
		{ 0, "arbiters: [10.0.0.250, 10.0.0.253]", "arbiters.1", BL_CHANGE_RESTART },
		{ 0, "arbiters: [10.0.0.250]", "arbiters.1", BL_CHANGE_RESTART },
		{ 1, "group: 239.7.7.8", "group", BL_CHANGE_RESTART },
		{ 2, "secret: \"00000000000012350000000000000000\"", "secret", BL_CHANGE_RESTART },
		{ 4, "faults: 10.0.0.253", "faults", BL_CHANGE_LIVE },
		{ 4, "", "faults", BL_CHANGE_RESTART },
		{ 5, "endpoints: [{ name: h1, addr: 10.0.0.1, rack: 0 }]", "endpoints",
		  BL_CHANGE_RESTART },
		{ 5,
		  "endpoints: [{ name: h1, addr: 10.0.0.1, rack: 0, weight: 3 }, { name: h2, addr: "
		  "10.0.0.2, rack: 1 }]",
		  "endpoints.h1.weight", BL_CHANGE_RESTART },
		{ 5,
		  "endpoints: [{ name: h1, addr: 10.0.0.1, rack: 0 }, { name: h2, addr: 10.0.0.2, "
		  "rack: 1, mac: 02:00:00:00:00:01 }]",
		  "endpoints.h2.mac", BL_CHANGE_LIVE },
		{ -1, "pairs: [{ from: h1, to: h2, weight: 4 }]", "pairs", BL_CHANGE_RESTART },
		{ -1, "rtt_us: 300", "rtt_us", BL_CHANGE_LIVE },
		{ -1, "quota: 1000", "quota", BL_CHANGE_RESTART },
		{ -1, "guard_us: 999", "guard_us", BL_CHANGE_RESTART },
		{ -1, "fallback_ms: 4000", "fallback_ms", BL_CHANGE_LIVE },
		{ -1, "fault_hold_ms: 4000", "fault_hold_ms", BL_CHANGE_LIVE },
		{ -1, "udp_ports: 50000", "udp_ports", BL_CHANGE_LIVE },
	};
	struct bl_changes c = { 0 };
	struct bl_fp_file was, now;
	struct bl_err err;
	unsigned int k;

	(void)state;
	load(&was, -1, "");
	bl_arb_changes(&c, &was, &was);
	assert_int_equal(c.n, 0);
	for (k = 0; k < ARRAY_SIZE(rows); k++) {
		load(&now, rows[k].line, rows[k].by);
		bl_arb_changes(&c, &was, &now);
		if (c.n != 1 || strcmp(c.v[0].path, rows[k].path) ||
		    c.v[0].change != rows[k].change)
			fail_msg("%s: %u changes, the first one of %s is %s", rows[k].by, c.n,
				 c.n ? c.v[0].path : "", c.n ? bl_change_name(c.v[0].change) : "");
		assert_int_equal(bl_changes_judge(&c, &err),
				 rows[k].change == BL_CHANGE_LIVE ? 0 : -EPERM);
		bl_changes_free(&c);
		bl_fp_free(&now);
	}
	bl_fp_free(&was);
}

/* The secret is never shown. */
static void changes__hide_the_secret(void **state)
{
	struct bl_changes c = { 0 };
	struct bl_fp_file was, now;

	(void)state;
	load(&was, -1, "");
	load(&now, 2, "secret: \"00000000000012350000000000000000\"");
	bl_arb_changes(&c, &was, &now);
	assert_string_equal(c.v[0].was, "as before");
	assert_string_equal(c.v[0].now, "another one");
	bl_changes_free(&c);
	bl_fp_free(&was);
	bl_fp_free(&now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes__each),
		cmocka_unit_test(changes__hide_the_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
