// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * loader/config.c: how the YAML file of a node is read, its admission section above all, and
 * proto/fastpass_file.h: the file of Fastpass. A refusal names the line of the file and the mistake
 * in that line.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "proto/fastpass_file.h"
#include "loader/node.h"
#include "maps/top_token_abi.h"

static char path[] = "/tmp/barline-test-config-XXXXXX";

static int load(const char *text, struct bl_node_cfg *cfg, struct bl_err *err)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	memset(cfg, 0, sizeof(*cfg));
	return bl_config_load(cfg, path, err);
}

#define HOST "role: host\ninterface: eth1\n"
#define SWITCH \
	"role: switch\nports:\n  - { interface: a, role: host }\n  - { interface: b, role: up }\n"

static void no_ahead__said_or_not(void **state)
{
	static const char *const roles[] = { HOST, SWITCH };
	struct bl_node_cfg c;
	struct bl_err err;
	char text[256];
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(load(roles[i], &c, &err), 0);
		assert_false(c.no_ahead);
		bl_config_free(&c);
		snprintf(text, sizeof(text), "%sno_ahead: false\n", roles[i]);
		assert_int_equal(load(text, &c, &err), 0);
		assert_false(c.no_ahead);
		bl_config_free(&c);
		snprintf(text, sizeof(text), "%sno_ahead: true\n", roles[i]);
		assert_int_equal(load(text, &c, &err), 0);
		assert_true(c.no_ahead);
		bl_config_free(&c);
	}
}

/* Limits of a host: not said, a number, and 0, which means that there is none. */
static void limits__of_hosts(void **state)
{
	static const struct {
		const char *text;
		int send, eps, mib;
	} t[] = {
		{ HOST, 0, 0, 0 },
		{ HOST "send_limit_ms: 0\nuser_endpoints: 0\nuser_ring_mib: 0\n", -1, -1, -1 },
		{ HOST "send_limit_ms: 4\nuser_endpoints: 1\nuser_ring_mib: 4096\n", 4, 1, 4096 },
		{ HOST "send_limit_ms: 60000\nuser_endpoints: 64\n", 60000, 64, 0 },
	};
	static const struct {
		const char *text, *want;
	} bad[] = {
		{ HOST "send_limit_ms: 3\n", "send_limit_ms 3: 0 (no limit), or 4 to 60000" },
		{ HOST "send_limit_ms: 60001\n", "send_limit_ms 60001" },
		{ HOST "user_endpoints: 65\n", "user_endpoints 65: 0 (no limit), or 1 to 64" },
		{ HOST "user_ring_mib: -1\n", "user_ring_mib -1" },
		{ SWITCH "send_limit_ms: 20\n", "send_limit_ms is a key of hosts" },
		{ SWITCH "user_endpoints: 0\n", "user_endpoints is a key of hosts" },
	};
	struct bl_node_cfg c;
	struct bl_err err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		assert_int_equal(load(t[i].text, &c, &err), 0);
		assert_int_equal(c.send_limit_ms, t[i].send);
		assert_int_equal(c.user_endpoints, t[i].eps);
		assert_int_equal(c.user_ring_mib, t[i].mib);
		bl_config_free(&c);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_not_equal(load(bad[i].text, &c, &err), 0);
		if (!strstr(err.text, bad[i].want))
			fail_msg("\"%s\" does not say \"%s\"", err.text, bad[i].want);
	}
}

/*
 * An IPv6 address without quotes is a list in YAML. The message names the form that works, and that
 * form is accepted.
 */
static void controllers__addresses(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = { { "controllers: [ [::1]:61693 ]\n", ":3: an IPv6 address in brackets is a list "
							"to YAML: put it in quotes, "
							"\"[::1]:61693\"" },
		    { "controllers: [[fd00::1]:61693, 10.0.0.1]\n", "put it in quotes, "
								    "\"[fd00::1]:61693\"" },
		    { "controllers: [\"[fd00::2]:61693\", [fd00::1]]\n", "put it in quotes, "
									 "\"[fd00::1]\"" },
		    { "controllers:\n  - 10.0.0.1\n  - [fd00::1]:80\n", ":5: an IPv6 address in "
									"brackets is a list to "
									"YAML: put it in quotes, "
									"\"[fd00::1]:80\"" },
		    { "controllers: [::1]\n", "put it in quotes, \"[::1]\"" },
		    { "controllers: [ [10.0.0.1]:61693 ]\n", ":3: controllers: expected a "
							     "text" },
		    { "controllers: [host:61693]\n", ":3: host:61693 is no address, as "
						     "10.0.0.1:61693, or with the quotes "
						     "\"[fd00::1]:61693\"" } };
	struct bl_node_cfg c;
	struct bl_err err;
	char text[256];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), HOST "%s", bad[i].text);
		assert_int_equal(load(text, &c, &err), -EINVAL);
		if (!strstr(err.text, bad[i].says))
			fail_msg("%zu: %s", i, err.text);
	}
	assert_int_equal(load(HOST "controllers: [\"[::1]:61693\", \"[fd00::1]\", 10.0.0.1]\n", &c,
			      &err),
			 0);
	assert_int_equal(c.ctl.n, 3);
	assert_string_equal(c.ctl.addr[0], "[::1]:61693");
	bl_config_free(&c);
}

static void admission__host(void **state)
{
	struct bl_node_cfg c;
	struct bl_err err;

	assert_int_equal(load(HOST, &c, &err), 0);
	assert_false(c.admission.on);
	assert_int_equal(load(HOST "admission:\n  policy: pl2\n  rate: 10gbit\n  k: 8\n  t_slots: "
				   "20\n  hold_frames: 100\n  hold_bytes: 90000\n  mark_bytes: "
				   "40000\n  slots: 512\n"
				   "  pacer: spin\n  cpu: 0\n  pacer_beacons: true\n  bl0: app0\n  "
				   "retry_us: 700\n",
			      &c, &err),
			 0);
	assert_true(c.admission.on);
	assert_int_equal(c.admission.policy, BL_POLICY_PL2);
	assert_int_equal(c.admission.rate_bps, 10000000000);
	assert_int_equal(c.admission.k, 8);
	assert_int_equal(c.admission.t_slots, 20);
	assert_int_equal(c.admission.queue.frames, 100);
	assert_int_equal(c.admission.queue.bytes, 90000);
	assert_int_equal(c.admission.queue.mark_bytes, 40000);
	assert_int_equal(c.admission.slots, 512);
	assert_true(c.admission.spin);
	assert_int_equal(c.admission.pacer_cpu, 1);
	assert_true(c.admission.pacer_beacons);
	assert_string_equal(c.admission.bl0, "app0");
	assert_int_equal(c.admission.retry_us, 700);
	bl_config_free(&c);
}

static void admission__top(void **state)
{
	static const struct bl_top_rule rules[] = {
		{ .bytes = 100000, .deadline_us = 900, .coflow = 7, .port = 5001, .proto = 6 },
		{ .bytes = 5, .port = 53, .proto = 17 },
		{ .port = 9 }
	};
	struct bl_node_cfg c;
	struct bl_err err;
	unsigned int k;

	(void)state;
	if (load(HOST "admission:\n  policy: top\n  rate: 10gbit\n  top:\n    law: paper\n    "
		      "objective: coflow\n    levels: 1\n    longest_frames: 300\n    unscheduled: "
		      "8\n    headroom_percent: 0\n"
		      "    rules:\n      - { port: 5001, protocol: tcp, bytes: 100000, "
		      "deadline_us: 900, coflow: 7 }\n      - { port: 53, protocol: udp, bytes: 5 "
		      "}\n      - { port: 9 }\n",
		 &c, &err))
		fail_msg("%s", err.text);
	assert_int_equal(c.admission.policy, BL_POLICY_TOP);
	for (k = 0; k < BL_TOP_O_COUNT; k++)
		assert_int_equal(c.admission.top.v[k], k == BL_TOP_O_LAW ? BL_TOP_LAW_PAPER + 1
						       : k == BL_TOP_O_OBJECTIVE
							       ? BL_TOP_BY_COFLOW + 1
						       : k == BL_TOP_O_LEVELS   ? 2
						       : k == BL_TOP_O_LONGEST  ? 301
						       : k == BL_TOP_O_UNSCHED  ? 9
						       : k == BL_TOP_O_HEADROOM ? 1
										: 0);
	assert_int_equal(c.admission.top.nrules, 3);
	assert_memory_equal(c.admission.top.rules, rules, sizeof(rules));
	bl_config_free(&c);
}

static void admission__switch(void **state)
{
	struct bl_node_cfg c;
	struct bl_err err;

	assert_int_equal(load("role: switch\nports:\n  - { interface: a, role: host, rate: 2gbit "
			      "}\n  - { interface: b, role: host, outside: true }\n"
			      "admission:\n  policy: pl2\n  rate: 1gbit\n  allocator: bitmap\n  "
			      "outside_percent: 10\n  refuse_us: 300\n  queue_frames: 64\n"
			      "  limits:\n    - { class: data, frames: 128, mark_bytes: 30000 }\n",
			      &c, &err),
			 0);
	assert_true(c.admission.on);
	assert_int_equal(c.ports[0].rate_bps, 2000000000);
	assert_int_equal(c.ports[1].rate_bps, 0);
	assert_true(c.ports[1].outside && !c.ports[0].outside);
	assert_int_equal(c.admission.rate_bps, 1000000000);
	assert_int_equal(c.admission.allocator, BL_ALLOC_BITMAP);
	assert_int_equal(c.admission.outside_percent, 10);
	assert_int_equal(c.admission.refuse_us, 300);
	assert_int_equal(c.admission.queue.frames, 64);
	assert_int_equal(c.admission.limit[BL_CL_DATA].frames, 128);
	assert_int_equal(c.admission.limit[BL_CL_DATA].mark_bytes, 30000);
	assert_int_equal(c.admission.limit[BL_CL_CONTROL].frames, 0);
	bl_config_free(&c);
}

static void admission__switch_top(void **state)
{
	struct bl_node_cfg c;
	struct bl_err err;

	assert_int_equal(load(SWITCH "admission:\n  policy: top\n  link_rate: 10gbit\n", &c, &err),
			 0);
	assert_int_equal(c.admission.policy, BL_POLICY_TOP);
	assert_int_equal(c.admission.link_rate_bps, 10000000000);
	assert_int_equal(c.admission.rate_bps, 0);
	assert_int_equal(c.admission.token_mode, 0);
	assert_false(c.admission.data_first || c.admission.unscheduled || c.admission.spray);
	bl_config_free(&c);
	assert_int_equal(load(SWITCH "admission:\n  policy: top\n  rate: 1gbit\n  tokens: pace\n  "
				     "data_first: true\n  unscheduled: true\n  spray: true\n  "
				     "token_frames: 6\n  expiry_tokens: 12\n"
				     "  headroom_percent: 5\n",
			      &c, &err),
			 0);
	assert_int_equal(c.admission.token_mode, BL_TOKEN_PACE + 1);
	assert_true(c.admission.data_first && c.admission.unscheduled && c.admission.spray);
	assert_int_equal(c.admission.token_frames, 6);
	assert_int_equal(c.admission.expiry_tokens, 12);
	assert_int_equal(c.admission.headroom_percent, 5);
	bl_config_free(&c);
	/* Tokens cannot be held back at a port without a meter, but mode drop works with one. */
	assert_int_equal(load("role: switch\nports:\n  - { interface: a, role: host, rate: 1gbit "
			      "}\n  - { interface: b, role: up }\nadmission: { policy: top, "
			      "link_rate: 10gbit, tokens: drop }\n",
			      &c, &err),
			 0);
	assert_int_equal(c.admission.token_mode, BL_TOKEN_DROP + 1);
	bl_config_free(&c);
}

static void admission__refused(void **state)
{
	static const struct {
		const char *text;
		int line;
		const char *why;
	} v[] = {
		{ HOST "admission: { policy: none, speed: 3 }\n", 3, "speed" },
		{ HOST "admission:\n  policy: best\n", 4, "" },
		{ HOST "admission:\n  rate: 1gbit\n", 4, "policy" }, /* where the mapping begins */
		{ HOST "admission:\n  policy: none\n  rate: fast\n", 5, "fast is no rate" },
		{ HOST "admission:\n  policy: none\n  rate: 1mbit\n", 5, "2mbit" },
		{ HOST "admission:\n  policy: pl2\n", 3, "needs the link's rate" },
		{ HOST "admission:\n  policy: none\n  allocator: joint\n", 5, "key of switches" },
		{ HOST "admission:\n  policy: none\n  queue_frames: 8\n", 5, "key of switches" },
		{ HOST "admission:\n  policy: none\n  cpu: -1\n", 5, "CPU -1" },
		{ HOST "admission:\n  policy: none\n  k: 17\n", 3, "at most 16" },
		{ HOST "admission:\n  policy: none\n  hold_frames: 513\n", 3, "at most 512" },
		{ HOST "admission:\n  policy: none\n  t_us: 5\n  t_slots: 6\n", 3,
		  "one of them is enough" },
		{ HOST "admission:\n  policy: none\n  pacer: lazy\n", 5, "" },
		{ HOST "admission:\n  policy: fastpass\n", 3, "needs the file" },
		{ HOST "admission:\n  policy: top\n", 3, "needs one" },
		{ SWITCH "admission:\n  policy: none\n  top: { law: ns2 }\n", 7, "key of hosts" },
		{ HOST "admission:\n  policy: none\n  top:\n    law: best\n", 6,
		  "there is paper, ns2" },
		{ HOST "admission:\n  policy: none\n  top:\n    levels: 7\n", 6, "from 1 to 6" },
		{ HOST "admission:\n  policy: none\n  top:\n    levels: 0\n", 6, "from 1 to 6" },
		{ HOST "admission:\n  policy: none\n  top:\n    unscheduled: 9\n", 6,
		  "from 0 to 8" },
		{ HOST "admission:\n  policy: none\n  top:\n    w_min_permille: 100\n", 3,
		  "above w_init_permille" },
		{ HOST "admission:\n  policy: none\n  top:\n    sync_us: 12500\n", 3,
		  "taken for dead" },
		{ HOST "admission:\n  policy: none\n  top:\n    rules:\n      - { port: 0, bytes: "
		       "1 }\n",
		  7, "1 to 65535" },
		{ HOST "admission:\n  policy: none\n  top:\n    rules:\n      - port: 5\n        "
		       "protocol: sctp\n",
		  8, "tcp, udp or any" },
		{ SWITCH "admission:\n  policy: none\n  fastpass: /etc/x\n", 7, "key of hosts" },
		{ HOST "admission:\n  policy: none\n  path_div: 2\n", 5, "key of switches" },
		{ SWITCH "admission:\n  policy: pl2\n", 5, "needs the ports' rate" },
		{ SWITCH "admission:\n  policy: none\n  hold_frames: 8\n", 7, "key of hosts" },
		{ SWITCH "admission:\n  policy: top\n", 5, "needs the rate of a" },
		{ SWITCH "admission:\n  policy: top\n  link_rate: fast\n", 7, "fast is no rate" },
		{ SWITCH "admission:\n  policy: top\n  link_rate: 1gbit\n  tokens: pace\n", 5,
		  "a is not metered" },
		{ SWITCH "admission:\n  policy: top\n  link_rate: 1gbit\n  tokens: hold\n", 8,
		  "tokens \"hold\": there is drop, pace" },
		{ SWITCH "admission:\n  policy: topp\n", 6,
		  "policy \"topp\": there is none, pl2, fastpass, top" },
		{ SWITCH "admission: { policy: top, rate: 1gbit, data_first: maybe }\n", 5,
		  "data_first \"maybe\": true or false" },
		{ SWITCH "admission:\n  policy: top\n  rate: 1gbit\n  spray: # really?\n", 8,
		  "spray \"\": true or false" },
		{ SWITCH "admission:\n  policy: top\n  rate: 1gbit\n  token_frames: 8.5\n", 8,
		  "token_frames \"8.5\" is no number" },
		{ SWITCH "admission:\n  policy: top\n  rate: 1gbit\n  unscheduled: maybe\n", 8,
		  "unscheduled \"maybe\": true or false" },
		{ SWITCH "beacon_us: 100ms\n", 5, "beacon_us \"100ms\" is no number" },
		{ SWITCH "cpus: [0, 0]\n", 5, "CPU 0 is listed twice" },
		{ SWITCH "cpus: [255]\n", 5, "CPU 255 does not exist" },
		{ SWITCH "forward: l2\nadmission:\n  policy: top\n  rate: 1gbit\n  spray: true\n",
		  6, "it forwards by its table" },
		{ "role: switch\nports:\n  - { interface: a, role: host }\nadmission: { policy: "
		  "top, rate: 1gbit, spray: yes }\n",
		  4, "role up" },
		{ SWITCH "admission:\n  policy: top\n  link_rate: 1gbit\n  data_first: true\n", 5,
		  "with tokens: drop none does" },
		{ SWITCH "admission:\n  policy: top\n  rate: 1gbit\n  limits:\n    - { class: "
			 "token2, frames: 7 }\n",
		  5, "less than the 8 tokens" },
		{ SWITCH "admission:\n  policy: top\n  rate: 1gbit\n  limits:\n    - { class: "
			 "data, frames: 7 }\n    - { class: data, frames: 9 }\n",
		  10, "class data is listed twice" },
		{ HOST "admission:\n  policy: top\n  rate: 1gbit\n  top: { rules: [ { port: 5001, "
		       "bytes: 5 }, { port: 5001, protocol: udp, bytes: 6 } ] }\n",
		  3, "would never be used" },
		{ SWITCH "admission:\n  policy: top\n  link_rate: 1gbit\n  token_frames: 65\n", 5,
		  "at most 64" },
		{ SWITCH "admission:\n  policy: top\n  link_rate: 1gbit\n  expiry_tokens: 65\n", 5,
		  "at most 64" },
		{ SWITCH "admission:\n  policy: top\n  link_rate: 1gbit\n  headroom_percent: 91\n",
		  5, "at most 90" },
		{ HOST "admission:\n  policy: none\n  tokens: drop\n", 5, "key of switches" },
		{ HOST "admission:\n  policy: none\n  link_rate: 1gbit\n", 5, "key of switches" },
		{ SWITCH "admission:\n  policy: none\n  k: 2\n", 7, "key of hosts" },
		{ SWITCH "admission:\n  policy: none\n  outside_percent: 91\n", 5, "at most 90" },
		{ SWITCH "admission:\n  policy: none\n  limits:\n    - { class: best, frames: 1 "
			 "}\n",
		  8, "" },
		{ "role: switch\nports:\n  - { interface: a, role: host, rate: 1gbit }\n", 3,
		  "needs admission" },
		{ "role: switch\nports:\n  - { interface: a, role: host, rate: slow }\nadmission: "
		  "{ policy: none }\n",
		  3, "slow is no rate" },
		{ "role: switch\nports:\n  - { interface: a, role: host, rate: 1gbit "
		  "}\nadmission:\n  policy: none\n  rate: none\n",
		  6, "none is no rate" },
		{ "role: switch\nports:\n  - { interface: a, role: host, rate: 1gbit "
		  "}\nadmission:\n  policy: pl2\n  rate: 2gbit\n",
		  4, "slower" },
	};
	struct bl_node_cfg c;
	struct bl_err err;
	char at[80];
	size_t k;

	for (k = 0; k < sizeof(v) / sizeof(v[0]); k++) {
		if (!load(v[k].text, &c, &err))
			fail_msg("case %zu was taken", k);
		snprintf(at, sizeof(at), "%s:%d: ", path, v[k].line);
		if (strncmp(err.text, at, strlen(at)) || !strstr(err.text, v[k].why))
			fail_msg("case %zu, line %d, \"%s\": %s", k, v[k].line, v[k].why, err.text);
	}
}

/* The example files of the documentation are accepted. */
static void examples__load(void **state)
{
	static const char *const v[] = { "docs/example-host.yaml", "docs/example-switch.yaml" };
	struct bl_node_cfg c;
	struct bl_err err;
	size_t k;

	for (k = 0; k < 2; k++) {
		memset(&c, 0, sizeof(c));
		if (bl_config_load(&c, v[k], &err))
			fail_msg("%s", err.text);
		assert_true(c.admission.on);
		bl_config_free(&c);
	}
}

static int setup(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	return unlink(path);
}

/* ---- the file that Fastpass's hosts and arbiters share ---- */

#define PEERS                                                                                \
	"endpoints:\n  - { name: h1, addr: 10.0.0.1, mac: 02:c4:00:01:00:00 }\n  - { addr: " \
	"fd00::2, rack: 1, cap: 4 }\n"

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

	assert_int_equal(load_fp("arbiters: [10.0.0.250]\n" PEERS, &f, &err), 0);
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
	assert_int_equal(load_fp("arbiters: [10.0.0.8]\npaths: 2\npath_cap: 2\nfaults: "
				 "10.0.0.9\nfault_hold_ms: 700\nfault_percent: 2\npath_names: [s1, "
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
	assert_int_equal(load_fp("arbiters: [10.0.0.250]\npolicy: weighted\n"
				 "endpoints:\n  - { name: h1, addr: 10.0.0.1 }\n  - { name: h2, "
				 "addr: 10.0.0.2, weight: 9 }\n"
				 "pairs:\n  - { from: h2, to: h1, weight: 127 }\n  - { from: h1, "
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
	assert_int_equal(load_fp("arbiters: [10.0.0.250]\npaths: 3\npath_cap: 4\npods: [1, "
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
		snprintf(text, sizeof(text), "arbiters: [10.0.0.8]\n%s\n" PEERS, v[k].text);
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
		snprintf(text, sizeof(text), "arbiters: [10.0.0.8]\n%s\n" PEERS, v[k].text);
		if (load_fp(text, &f, &err))
			fail_msg("%s: %s", v[k].text, err.text);
		if (f.fallback_ms != v[k].ms)
			fail_msg("%s: %u ms", v[k].text, f.fallback_ms);
		bl_fp_free(&f);
	}
}

static void fastpass__example(void **state)
{
	struct bl_fp_file f;
	struct bl_err err;

	if (bl_fp_load(&f, "docs/example-fastpass.yaml", &err))
		fail_msg("%s", err.text);
	assert_int_equal(f.npeers, 4);
	assert_int_equal(f.narbiters, 2);
	assert_true(f.routed);
	assert_int_equal(f.peer[3].napps, 2);
	bl_fp_free(&f);
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
		cmocka_unit_test(fastpass__refused),  cmocka_unit_test(no_ahead__said_or_not),
		cmocka_unit_test(limits__of_hosts),   cmocka_unit_test(controllers__addresses),
		cmocka_unit_test(admission__host),    cmocka_unit_test(admission__top),
		cmocka_unit_test(admission__switch),  cmocka_unit_test(admission__switch_top),
		cmocka_unit_test(admission__refused), cmocka_unit_test(examples__load),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
