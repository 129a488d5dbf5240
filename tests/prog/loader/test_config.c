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
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "proto/fastpass_file.h"
#include "loader/defaults.h"
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

/* Authentication of links: modes, exempt ports, and what is missing. */
static void auth__modes(void **state)
{
	static const char *const names[] = { "off", "offer", "links", "strict" };
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ HOST "auth: { mode: links }\n", ":3: mode links needs keys" },
		{ HOST "auth: { keys: f }\n", "mode" },
		{ HOST "auth: { mode: yes, keys: f }\n", "mode" },
		{ HOST "auth: { mode: links, keys: f, epoch: 1 }\n", "epoch" },
		{ "role: switch\nports:\n  - { interface: a, role: host, auth: links }\n", "auth" },
	};
	struct bl_node_cfg c;
	struct bl_err err;
	char text[256];
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), HOST "auth: { mode: %s, keys: /k/%zu }\n", names[i],
			 i);
		assert_int_equal(load(text, &c, &err), 0);
		assert_int_equal(c.auth.mode, i);
		snprintf(text, sizeof(text), "/k/%zu", i);
		assert_string_equal(c.auth.keys, text);
		bl_config_free(&c);
	}
	assert_int_equal(load("role: switch\nports:\n  - { interface: a, role: host, auth: off }\n"
			      "  - { interface: b, role: up }\nauth: { mode: links, keys: k }\n",
			      &c, &err),
			 0);
	assert_true(c.ports[0].auth_off);
	assert_false(c.ports[1].auth_off);
	bl_config_free(&c);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(load(bad[i].text, &c, &err), -EINVAL);
		if (!strstr(err.text, bad[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.text, bad[i].says);
	}
}

static void user__and_sandbox(void **state)
{
	static const char *const roles[] = { HOST, SWITCH };
	struct bl_node_cfg c;
	struct bl_err err;
	char text[256];
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(load(roles[i], &c, &err), 0);
		assert_string_equal(c.user, "");
		assert_false(c.no_sandbox);
		bl_config_free(&c);
		snprintf(text, sizeof(text), "%suser: barline\nsandbox: false\n", roles[i]);
		assert_int_equal(load(text, &c, &err), 0);
		assert_string_equal(c.user, "barline");
		assert_true(c.no_sandbox);
		bl_config_free(&c);
		snprintf(text, sizeof(text), "%ssandbox: true\n", roles[i]);
		assert_int_equal(load(text, &c, &err), 0);
		assert_false(c.no_sandbox);
		bl_config_free(&c);
		/* longer than a user's name can be */
		snprintf(text, sizeof(text), "%suser: %033d\n", roles[i], 7);
		assert_int_not_equal(load(text, &c, &err), 0);
		snprintf(text, sizeof(text), "%ssandbox: 7\n", roles[i]);
		assert_int_not_equal(load(text, &c, &err), 0);
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
	assert_false(c.ctl.insecure || c.ctl.unnamed);
	bl_config_free(&c);
	assert_int_equal(load(HOST "controllers: [10.0.0.1]\ninsecure: true\n"
				   "tls: { ca: a, cert: b, key: c, unnamed: true }\n",
			      &c, &err),
			 0);
	assert_true(c.ctl.insecure && c.ctl.unnamed);
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

/* The addresses and lanes of a port, and how far a host may lag. */
static void ports__sources(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "role: host, addresses: [10.0.0.1]", ":3: list at least one Ethernet and one IP "
						       "address" },
		{ "role: host, addresses: [02:00:00:00:00:01]", "list at least one Ethernet" },
		{ "role: host, addresses: [any, 10.0.0.1]", ":3: any is neither an Ethernet nor an "
							    "IP address; or write [learn]" },
		{ "role: host, addresses: [10.0.0.256]", "10.0.0.256 is neither" },
		{ "role: host, addresses: [01:00:00:00:00:01]", "01:00:00:00:00:01 is a group "
								"address" },
		{ "role: host, addresses: []", ":3:" },
		{ "role: up, addresses: [any]", "the role of this one is up" },
		{ "role: host, lanes: 0", ":3: lanes 0: 1 to 8" },
		{ "role: host, lanes: 9", ":3: lanes 9: 1 to 8" },
	};
	struct bl_node_cfg c;
	struct bl_err err;
	char text[512];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "role: switch\nports:\n  - { interface: a, %s }\n",
			 bad[i].text);
		assert_int_equal(load(text, &c, &err), -EINVAL);
		if (!strstr(err.text, bad[i].says))
			fail_msg("%zu: %s", i, err.text);
	}
	assert_int_equal(load("role: switch\n"
			      "ports:\n"
			      "  - { interface: a, role: host,\n"
			      "      addresses: [02:00:00:00:00:07, 10.0.0.7, \"fd00::7\"] }\n"
			      "  - { interface: b, role: host, addresses: [any] }\n"
			      "  - { interface: c, role: host, addresses: [learn] }\n"
			      "  - { interface: d, role: host, lanes: 3 }\n"
			      "lag_max_us: 70000\n"
			      "control_rate: 1000\n",
			      &c, &err),
			 0);
	assert_int_equal(c.ports[0].source, BL_SOURCE_LIST);
	assert_int_equal(c.ports[0].nmac, 1);
	assert_int_equal(c.ports[0].mac[0][5], 7);
	assert_int_equal(c.ports[0].nip, 2);
	assert_memory_equal(c.ports[0].ip[0], "\0\0\0\0\0\0\0\0\0\0\377\377\12\0\0\7", 16);
	assert_int_equal(c.ports[0].ip[1][0], 0xfd);
	assert_true(c.ports[1].source_given && c.ports[1].source == BL_SOURCE_ANY);
	assert_true(c.ports[2].source_given && c.ports[2].source == BL_SOURCE_LEARN);
	assert_false(c.ports[3].source_given);
	assert_int_equal(c.ports[3].lanes, 3);
	assert_int_equal(c.lag_max_us, 70000);
	assert_int_equal(c.control_rate, 1000);
	bl_config_free(&c);
	assert_int_equal(load(SWITCH "lag_max_us: 999\n", &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, ":5: lag_max_us 999: at least dead_after_us (1000)"));
	assert_int_equal(load(HOST "lag_max_us: 99999\n", &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "a host has no such key; its switch has"));
	/* The default follows dead_after, and is never below 50 ms. */
	assert_int_equal(load(SWITCH, &c, &err), 0);
	bl_node_defaults(&c);
	assert_int_equal(c.lag_max_us, 50000);
	bl_config_free(&c);
	assert_int_equal(load(SWITCH "dead_after_us: 6000\n", &c, &err), 0);
	bl_node_defaults(&c);
	assert_int_equal(c.lag_max_us, 60000);
	bl_config_free(&c);
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
		cmocka_unit_test(fastpass__refused),  cmocka_unit_test(no_ahead__said_or_not),
		cmocka_unit_test(ports__sources),     cmocka_unit_test(controllers__addresses),
		cmocka_unit_test(admission__host),    cmocka_unit_test(admission__top),
		cmocka_unit_test(admission__switch),  cmocka_unit_test(admission__switch_top),
		cmocka_unit_test(admission__refused), cmocka_unit_test(examples__load),
		cmocka_unit_test(fastpass__secret),   cmocka_unit_test(auth__modes),
		cmocka_unit_test(user__and_sandbox),  cmocka_unit_test(limits__of_hosts),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
