// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * proto/fastpass_file.h: the YAML file that Fastpass's hosts and arbiters share. A refusal names
 * the line of the file and the mistake in that line.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "proto/fastpass_file.h"

static char path[] = "/tmp/barline-test-fp-file-XXXXXX";

static int setup(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	return unlink(path);
}

#define PEERS                                                                                \
	"endpoints:\n  - { name: h1, addr: 10.0.0.1, mac: 02:c4:00:01:00:00 }\n  - { addr: " \
	"fd00::2, rack: 1, cap: 4 }\n"
#define OPEN "insecure: true\n"

static int load_fp(const char *text, struct bl_fp_file *f, struct bl_err *err)
{
	FILE *o = fopen(path, "w");

	assert_non_null(o);
	fputs(text, o);
	fclose(o);
	return bl_fp_load(f, path, err);
}

static void fastpass__file(void **state)
{
	struct bl_fp_file f;
	struct bl_err err;
	uint32_t table;
	char text[64];

	assert_int_equal(load_fp(OPEN "arbiters: [10.0.0.250]\n" PEERS, &f, &err), 0);
	assert_int_equal(f.npeers, 2);
	assert_int_equal(f.nracks, 2);
	assert_int_equal(f.slot_ns, 1230);
	assert_int_equal(f.slot_bytes, 1514);
	assert_int_equal(f.window_slots, 128);
	assert_int_equal(f.late_us, 100);
	assert_string_equal(f.peer[0].name, "h1");
	assert_string_equal(f.peer[1].name, "fd00::2");
	assert_true(f.peer[0].has_mac && !f.peer[1].has_mac);
	assert_int_equal(f.peer[0].cap, 1);
	assert_int_equal(f.peer[1].cap, 4);
	assert_int_equal(bl_fp_find(&f, f.peer[1].addr), 1);
	assert_int_equal(bl_fp_find(&f, f.arbiter[0]), -1);
	assert_string_equal(bl_fp_addr_text(f.arbiter[0], text), "10.0.0.250");
	assert_string_equal(bl_fp_addr_text(f.peer[1].addr, text), "fd00::2");
	table = bl_fp_table(&f);
	f.peer[1].addr[15]++;
	assert_int_not_equal(bl_fp_table(&f), table);
	bl_fp_free(&f);
	assert_int_equal(load_fp("rate: 10gbit\narbiters: [fd00::1, fd00::3]\ngroup: "
				 "ff02::6261\npolicy: min-fct\nsecret: "
				 "0123456789abcdeffedcba9876543210\npaths: 3\n"
				 "path_field: mac\nlate_us: 20\n" PEERS,
				 &f, &err),
			 0);
	assert_int_equal(f.slot_ns, 1255); /* 1538 bytes on the wire, and 2 % */
	assert_int_equal(f.policy, 3);
	assert_int_equal(f.secret[0], 0x0123456789abcdef);
	assert_int_equal(f.secret[1], 0xfedcba9876543210);
	/* Rack 1 sends 4 packets per slot: with 3 paths, 2 packets per path are enough. */
	assert_int_equal(f.path_cap, 2);
	assert_int_equal(f.field, BL_FIELD_MAC);
	assert_int_equal(f.late_us, 20);
	assert_true(f.has_group);
	assert_false(f.has_faults);
	bl_fp_free(&f);
	assert_int_equal(load_fp(OPEN "arbiters: [10.0.0.8]\npaths: 2\npath_cap: 2\nfaults: "
				      "10.0.0.9\nfault_hold_ms: 700\nfault_percent: 2\npath_names: "
				      "[s1, "
				      "s2]\n" PEERS,
				 &f, &err),
			 0);
	assert_true(f.has_faults);
	assert_string_equal(bl_fp_addr_text(f.faults, text), "10.0.0.9");
	assert_int_equal(f.fault_hold_ms, 700);
	assert_int_equal(f.fault_percent, 2);
	assert_int_equal(f.fault_report_us, 10000);
	assert_int_equal(f.fault_settle_us, 2000);
	assert_int_equal(f.fault_frames, 50);
	assert_string_equal(f.path_name[1], "s2");
	bl_fp_free(&f);
	assert_int_equal(load_fp(OPEN "arbiters: [10.0.0.250]\npolicy: weighted\n"
				      "endpoints:\n  - { name: h1, addr: 10.0.0.1 }\n  - { name: "
				      "h2, "
				      "addr: 10.0.0.2, weight: 9 }\n"
				      "pairs:\n  - { from: h2, to: h1, weight: 127 }\n  - { from: "
				      "h1, "
				      "to: h2, weight: 2 }\n",
				 &f, &err),
			 0);
	assert_int_equal(f.peer[0].weight, 1);
	assert_int_equal(f.peer[1].weight, 9);
	assert_int_equal(f.npairs, 2);
	assert_int_equal(bl_fp_pair_find(&f, 0, 1)->weight, 2);
	assert_int_equal(bl_fp_pair_find(&f, 1, 0)->weight, 127);
	assert_null(bl_fp_pair_find(&f, 1, 1));
	bl_fp_free(&f);
	assert_int_equal(load_fp(OPEN "arbiters: [10.0.0.250]\npaths: 3\npath_cap: 4\npods: [1, "
				      "0]\ncores: 2\n" PEERS,
				 &f, &err),
			 0);
	assert_int_equal(f.npods, 2);
	assert_int_equal(f.pod_of[0], 1);
	assert_int_equal(bl_fp_ways(&f), 6);
	/* The one rack of each pod sends 4 packets by one aggregation switch: 2 on each core. */
	assert_int_equal(f.core_cap, 2);
	bl_fp_free(&f);
}

/*
 * The defaults bound in time how far ahead slots are allocated, how often, and how late they may be
 * used, since the slots of a slow link are long.
 */
static void fastpass__times(void **state)
{
	static const struct {
		const char *text;
		uint32_t window, run, lead, late, watchdog, dead, rtt;
	} v[] = {
		{ "rate: 10gbit", 128, 16, 100, 100, 100, 1000, 200 },
		/* Lead and lateness together take 816 of 960 slots. */
		{ "rate: 100gbit", 128, 16, 51, 51, 100, 1000, 200 },
		{ "slot_ns: 7812", 128, 13, 100, 100, 100, 1607, 200 }, /* 128 slots: 999.9 us */
		{ "slot_ns: 7813", 64, 13, 100, 100, 100, 1107, 200 },
		{ "rate: 1gbit", 64, 8, 100, 100, 100, 1415, 200 },
		{ "slot_ns: 25000", 32, 8, 100, 100, 100, 1425, 200 },
		{ "slot_ns: 25001", 32, 8, 100, 100, 100, 1425, 201 }, /* a run has 8 slots */
		{ "slot_ns: 50000", 16, 8, 100, 100, 100, 1450, 400 },
		{ "slot_ns: 50001", 16, 8, 101, 101, 100, 1451, 401 }, /* two slots */
		{ "rate: 100mbit", 8, 8, 252, 252, 100, 1881, 1005 },
		{ "slot_ns: 125001", 8, 8, 251, 251, 100, 1876, 1001 }, /* 8 is the minimum */
		{ "slot_ns: 10000000", 8, 8, 20000, 20000, 100, 110500, 80000 },
		/* A run of slots does not span windows. */
		{ "slot_ns: 1230\nwindow_slots: 8", 8, 8, 100, 100, 100, 1000, 200 },
		{ "slot_ns: 50000\nwindow_slots: 64\nrun_slots: 4\nlead_us: 300\nlate_us: 7\n"
		  "watchdog_us: 500\ndead_us: 9000\nrtt_us: 77",
		  64, 4, 300, 7, 500, 9000, 77 },
	};
	struct bl_fp_file f;
	struct bl_err err;
	char text[512];
	size_t k;

	for (k = 0; k < sizeof(v) / sizeof(v[0]); k++) {
		snprintf(text, sizeof(text), OPEN "arbiters: [10.0.0.8]\n%s\n" PEERS, v[k].text);
		if (load_fp(text, &f, &err))
			fail_msg("%s: %s", v[k].text, err.text);
		if (f.window_slots != v[k].window || f.run_slots != v[k].run ||
		    f.lead_us != v[k].lead || f.late_us != v[k].late ||
		    f.watchdog_us != v[k].watchdog || f.dead_us != v[k].dead ||
		    f.rtt_us != v[k].rtt)
			fail_msg("%s: window %u, run %u, lead %u, late %u, watchdog %u, dead %u, "
				 "rtt %u",
				 v[k].text, f.window_slots, f.run_slots, f.lead_us, f.late_us,
				 f.watchdog_us, f.dead_us, f.rtt_us);
		bl_fp_free(&f);
	}
}

/*
 * The time after which hosts send without slots: a second by default, or the time that four dead
 * arbiters take if that is longer.
 */
static void fastpass__fallback(void **state)
{
	static const struct {
		const char *text;
		uint32_t ms;
	} v[] = {
		{ "rate: 10gbit", 1000 },
		{ "dead_us: 249999", 1000 },
		{ "dead_us: 500001", 2001 },
		{ "fallback_ms: 0", BL_FP_NO_FALLBACK },
		{ "dead_us: 500001\nfallback_ms: 0", BL_FP_NO_FALLBACK },
		{ "fallback_ms: 4", 4 },
		{ "dead_us: 1001\nfallback_ms: 5", 5 },
		{ "fallback_ms: 3600000", 3600000 },
	};
	struct bl_fp_file f;
	struct bl_err err;
	char text[512];
	size_t k;

	for (k = 0; k < sizeof(v) / sizeof(v[0]); k++) {
		snprintf(text, sizeof(text), OPEN "arbiters: [10.0.0.8]\n%s\n" PEERS, v[k].text);
		if (load_fp(text, &f, &err))
			fail_msg("%s: %s", v[k].text, err.text);
		if (f.fallback_ms != v[k].ms)
			fail_msg("%s: %u ms", v[k].text, f.fallback_ms);
		bl_fp_free(&f);
	}
}

/* The example names a file for the secret that no machine has, so it is loaded with another. */
static void fastpass__example(void **state)
{
	static const char named[] = "secret_file: /etc/barline/fastpass.secret\n";
	char text[8192], *at;
	struct bl_fp_file f;
	struct bl_err err;
	FILE *in = fopen("docs/example-fastpass.yaml", "r");
	size_t n;

	assert_non_null(in);
	n = fread(text, 1, sizeof(text) - 1, in);
	fclose(in);
	assert_in_range(n, 1, sizeof(text) - 2);
	text[n] = 0;
	at = strstr(text, named);
	assert_non_null(at);
	memset(at, ' ', sizeof(named) - 2);
	memcpy(at, OPEN, sizeof(OPEN) - 2);
	if (load_fp(text, &f, &err))
		fail_msg("%s", err.text);
	assert_int_equal(f.npeers, 4);
	assert_int_equal(f.narbiters, 2);
	assert_true(f.routed);
	assert_int_equal(f.peer[3].napps, 2);
	bl_fp_free(&f);
}

/*
 * FCP does not start without a secret unless the file says so. A secret may be in a file of its
 * own, which not everybody may read.
 */
static void fastpass__secret(void **state)
{
	static const char *const without[] = { "", "insecure: false\n" };
	static const char *const twice[] = { "insecure: true\nsecret: "
					     "0123456789abcdef0123456789abcdef\n",
					     "insecure: true\nsecret_file: s\n",
					     "secret_file: s\nsecret: "
					     "0123456789abcdef0123456789abcdef\n" };
	char text[512], beside[200], file[300];
	struct bl_fp_file f;
	struct bl_err err;
	struct stat st;
	uint64_t first;
	size_t k;

	for (k = 0; k < sizeof(without) / sizeof(without[0]); k++) {
		snprintf(text, sizeof(text), "arbiters: [10.0.0.8]\n%s" PEERS, without[k]);
		assert_int_not_equal(load_fp(text, &f, &err), 0);
		assert_non_null(strstr(err.text, "barline arbiter secret"));
		assert_non_null(strstr(err.text, "insecure: true"));
	}
	for (k = 0; k < sizeof(twice) / sizeof(twice[0]); k++) {
		snprintf(text, sizeof(text), "arbiters: [10.0.0.8]\n%s" PEERS, twice[k]);
		assert_int_not_equal(load_fp(text, &f, &err), 0);
		assert_non_null(strstr(err.text, "one of secret_file, secret and insecure"));
	}
	assert_int_not_equal(load_fp("arbiters: [10.0.0.8]\nsecret: "
				     "\"00000000000000000000000000000000\"\n" PEERS,
				     &f, &err),
			     0);
	assert_non_null(strstr(err.text, "not all zeros"));

	/* a relative path is relative to the file that names it */
	snprintf(beside, sizeof(beside), "%s", path);
	*strrchr(beside, '/') = 0;
	snprintf(file, sizeof(file), "%s/test-config.secret", beside);
	unlink(file);
	assert_int_equal(bl_fp_secret_make(file, &err), 0);
	assert_int_equal(bl_fp_secret_make(file, &err), -EEXIST);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, 33);
	assert_int_equal(load_fp("arbiters: [10.0.0.8]\nsecret_file: test-config.secret\n" PEERS,
				 &f, &err),
			 0);
	assert_true(f.secret[0] && f.secret[1]);
	first = f.secret[0];
	bl_fp_free(&f);
	assert_int_equal(chmod(file, 0644), 0);
	assert_int_not_equal(
		load_fp("arbiters: [10.0.0.8]\nsecret_file: test-config.secret\n" PEERS, &f, &err),
		0);
	assert_non_null(strstr(err.text, "every user of this machine can read the secret"));
	unlink(file);
	assert_int_equal(bl_fp_secret_make(file, &err), 0);
	snprintf(text, sizeof(text), "arbiters: [10.0.0.8]\nsecret_file: %s\n" PEERS, file);
	assert_int_equal(load_fp(text, &f, &err), 0);
	assert_true(f.secret[0] != first);
	bl_fp_free(&f);
	unlink(file);
}

static void fastpass__refused(void **state)
{
	static const struct {
		const char *text;
		int line;
		const char *why;
	} v[] = {
		{ "arbiters: [10.0.0.250]\n", 1, "endpoints" },
		{ PEERS, 1, "arbiters" }, /* where the mapping begins */
		{ "arbiters: [here]\n" PEERS, 1, "here is no IP address" },
		{ "arbiters: [10.0.0.8, 10.0.0.9]\n" PEERS, 1, "need a group" },
		{ "arbiters: [10.0.0.8]\nsecret: short\n" PEERS, 2, "32 hex digits" },
		{ "arbiters: [10.0.0.8]\nrate: fast\n" PEERS, 2, "fast is no rate" },
		{ "arbiters: [10.0.0.8]\npolicy: best\n" PEERS, 2, "" },
		{ "arbiters: [10.0.0.8]\nwindow_slots: 100\n" PEERS, 1,
		  "8, 16, 32, 64, 128, 256 or 512" },
		{ "arbiters: [10.0.0.8]\npath_field: mac\n" PEERS, 1, "there are no paths" },
		{ "arbiters: [10.0.0.8]\npath_field: mac\npaths: 16\n" PEERS, 1, "at most 15" },
		{ "arbiters: [10.0.0.8]\npaths: 2\npath_cap: 1\n" PEERS, 1, "do not carry the 4" },
		{ "arbiters: [10.0.0.8]\nfaults: there\n" PEERS, 2, "there is no IP address" },
		{ "arbiters: [10.0.0.8]\nfault_percent: 51\n" PEERS, 1, "at most 50" },
		{ "arbiters: [10.0.0.8]\nfault_report_us: 99\n" PEERS, 1, "from 100" },
		{ "arbiters: [10.0.0.8]\npaths: 2\npath_cap: 2\npath_names: [s1]\n" PEERS, 1,
		  "1 path_names for 2 paths" },
		{ "arbiters: [10.0.0.8]\npaths: 2\npods: [0]\n" PEERS, 3, "1 pods for 2 racks" },
		{ "arbiters: [10.0.0.8]\npaths: 2\npods: [0, 2]\n" PEERS, 3, "pod 2" },
		{ "arbiters: [10.0.0.8]\npods: [0, 1]\n" PEERS, 1, "no paths" },
		{ "arbiters: [10.0.0.8]\npaths: 2\ncores: 2\n" PEERS, 1, "no pods" },
		{ "arbiters: [10.0.0.8]\npaths: 2\npods: [0, 1]\ncores: 2\ncore_cap: 1\npath_cap: "
		  "9\n" PEERS,
		  1, "do not carry the 9" },
		{ "arbiters: [10.0.0.8]\npath_field: mac\npaths: 4\npods: [0, 1]\ncores: 4\n" PEERS,
		  1, "at most 15" },
		{ "arbiters: [10.0.0.8]\nrack_up: 65537\n" PEERS, 1, "at most 4095" },
		{ "arbiters: [10.0.0.8]\nlead_us: 5000\ndead_us: 20000\n" PEERS, 1,
		  "hosts take slots" },
		{ "arbiters: [10.0.0.8]\nendpoints:\n  - { name: a, addr: 10.0.0.1 }\n  - { name: "
		  "a, addr: 10.0.0.2 }\n",
		  4, "a is the name of endpoint 0" },
		{ "arbiters: [10.0.0.8]\nendpoints:\n  - { name: a, addr: 10.0.0.1, mac: "
		  "02:00:00:00:00:01 }\n  - { addr: 10.0.0.2, mac: 02:00:00:00:00:01 }\n",
		  4, "address of a's bl0" },
		{ "arbiters: [10.0.0.8]\nslot_bytes: 63\n" PEERS, 1, "from 64" },
		{ "arbiters: [10.0.0.8]\nslot_bytes: 65512\n" PEERS, 1, "from 64 to 65511" },
		{ "arbiters: [10.0.0.8]\nrouted: true\nendpoints:\n  - { name: a, addr: 10.0.0.1, "
		  "apps: ['fd00::1'] }\n"
		  "  - { name: b, addr: 10.0.0.2, apps: ['fd00:0:0:1::1', 'fd00::1'] }\n",
		  1, "fd00::1 is an address of both" },
		{ "arbiters: [10.0.0.8]\nslot_ns: 99\n" PEERS, 1, "99 ns" },
		{ "arbiters: [10.0.0.8]\nfallback_ms: 3\n" PEERS, 1,
		  "0 (never), or from 4 to 3600000" },
		{ "arbiters: [10.0.0.8]\ndead_us: 1001\nfallback_ms: 4\n" PEERS, 1, "from 5 to" },
		{ "arbiters: [10.0.0.8]\nfallback_ms: 3600001\n" PEERS, 1, "to 3600000" },
		{ "arbiters: [10.0.0.8]\nendpoints:\n  - { addr: 10.0.0.1 }\n  - { addr: 10.0.0.1 "
		  "}\n",
		  4, "endpoint 0 already" },
		{ "arbiters: [10.0.0.8]\nendpoints:\n  - { addr: 10.0.0.1, mac: 03:00:00:00:00:01 "
		  "}\n",
		  3, "one station" },
		{ "arbiters: [10.0.0.8]\nspeed: 1\n" PEERS, 2, "speed" },
		{ "arbiters: [10.0.0.8]\nrouted: true\n" PEERS, 4, "needs apps" },
		{ "arbiters: [10.0.0.8]\nendpoints:\n  - { addr: 10.0.0.1 }\n  - { addr: 10.0.0.2, "
		  "weight: 2 }\n",
		  4, "first-come knows no weights" },
		{ "arbiters: [10.0.0.8]\npolicy: weighted\nendpoints:\n  - { addr: 10.0.0.1, "
		  "weight: 3 }\n  - { addr: 10.0.0.2, weight: 128 }\n",
		  5, "from 1 to 127" },
		{ "arbiters: [10.0.0.8]\npolicy: fair\n" PEERS "pairs:\n  - { from: h1, to: "
		  "fd00::2, deadline_us: 5 }\n",
		  7, "fair knows no deadlines" },
		{ "arbiters: [10.0.0.8]\npolicy: deadline\n" PEERS "pairs:\n  - { from: h1, to: "
		  "fd00::2, deadline_us: 10000001 "
		  "}\n",
		  7, "ten seconds" },
		{ "arbiters: [10.0.0.8]\n" PEERS "pairs:\n  - { from: h1, to: h3 }\n", 6,
		  "no endpoint is called h3" },
		{ "arbiters: [10.0.0.8]\n" PEERS "pairs:\n  - { from: h1, to: h1 }\n", 6,
		  "to itself" },
		{ "arbiters: [10.0.0.8]\n" PEERS "pairs:\n  - { from: h1, to: fd00::2 }\n  - { "
		  "from: h1, to: fd00::2 }\n",
		  1, "twice" },
		{ "arbiters: [10.0.0.8]\nendpoints:\n  - { addr: 10.0.0.1, apps: [there] }\n", 3,
		  "there is no IP address" },
	};
	struct bl_fp_file f;
	struct bl_err err;
	char at[80];
	size_t k;

	for (k = 0; k < sizeof(v) / sizeof(v[0]); k++) {
		if (!load_fp(v[k].text, &f, &err))
			fail_msg("%s was taken", v[k].text);
		snprintf(at, sizeof(at), "%s:%d: ", path, v[k].line);
		if (strncmp(err.text, at, strlen(at)) || !strstr(err.text, v[k].why))
			fail_msg("%s: \"%s\", not \"%s...%s\"", v[k].text, err.text, at, v[k].why);
		assert_null(f.peer);
	}
	assert_int_equal(bl_fp_load(&f, "/nonexistent", &err), -2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fastpass__file),     cmocka_unit_test(fastpass__times),
		cmocka_unit_test(fastpass__fallback), cmocka_unit_test(fastpass__example),
		cmocka_unit_test(fastpass__refused),  cmocka_unit_test(fastpass__secret),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
