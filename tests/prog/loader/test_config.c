// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * loader/config.c: how the YAML file of a node is read, its admission section above all. A refusal
 * names the line of the file and the mistake in that line.
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

/* The chained program of a node, and of a port that has another one. */
static void chain__of_node_and_port(void **state)
{
	static const char *const good[] = { "/sys/fs/bpf/firewall", "41", "attached", "none" };
	static const char *const bad[] = { "firewall", "0", "4294967296", "41x", "-1", "/" };
	struct bl_node_cfg c;
	struct bl_err err;
	char text[256];
	size_t i;

	(void)state;
	assert_int_equal(load(HOST, &c, &err), 0);
	assert_string_equal(c.chain, "");
	bl_config_free(&c);
	for (i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "%schain: %s\n", HOST, good[i]);
		assert_int_equal(load(text, &c, &err), 0);
		assert_string_equal(c.chain, good[i]);
		bl_config_free(&c);
	}
	for (i = 0; i < 6; i++) {
		snprintf(text, sizeof(text), "%schain: %s\n", HOST, bad[i]);
		assert_int_not_equal(load(text, &c, &err), 0);
		assert_non_null(strstr(err.text, "pinned XDP program"));
	}
	assert_int_equal(load("role: switch\nchain: 41\nports:\n"
			      "  - { interface: a, role: host, chain: none }\n"
			      "  - { interface: b, role: host }\n",
			      &c, &err),
			 0);
	assert_string_equal(bl_port_chain(&c, "a"), "none");
	assert_string_equal(bl_port_chain(&c, "b"), "41");
	assert_true(bl_node_chains(&c));
	strcpy(c.chain, "");
	assert_false(bl_node_chains(&c));
	bl_config_free(&c);
}

/* Dispatchers of libxdp, which exclude chained programs, also that of one port. */
static void xdp__alone_or_dispatcher(void **state)
{
	static const struct {
		const char *text;
		bool dispatcher, refused;
	} v[] = {
		{ HOST, false, false },
		{ HOST "xdp: alone\n", false, false },
		{ HOST "xdp: alone\nchain: 41\n", false, false },
		{ HOST "xdp: dispatcher\n", true, false },
		{ HOST "xdp: dispatcher\nchain: none\n", true, false },
		{ HOST "xdp: dispatcher\nchain: attached\n", true, true },
		{ SWITCH "xdp: dispatcher\n", true, false },
		{ "role: switch\nxdp: dispatcher\nports:\n"
		  "  - { interface: a, role: host, chain: 41 }\n",
		  true, true },
	};
	struct bl_node_cfg c;
	struct bl_err err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		assert_int_equal(load(v[i].text, &c, &err), 0);
		assert_int_equal(c.dispatcher, v[i].dispatcher);
		assert_int_equal(bl_node_xdp_check(&c, &err), v[i].refused ? -EINVAL : 0);
		if (v[i].refused)
			assert_non_null(strstr(err.text, "exclude each other"));
		bl_config_free(&c);
	}
	assert_int_equal(load(HOST "xdp: both\n", &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "dispatcher"));
	assert_non_null(strstr(err.text, ":3:"));
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
	assert_non_null(strstr(err.text, "lag_max_us is a key of switches, and this is a host"));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_ahead__said_or_not),
		cmocka_unit_test(ports__sources),
		cmocka_unit_test(controllers__addresses),
		cmocka_unit_test(admission__host),
		cmocka_unit_test(admission__top),
		cmocka_unit_test(admission__switch),
		cmocka_unit_test(admission__switch_top),
		cmocka_unit_test(admission__refused),
		cmocka_unit_test(examples__load),
		cmocka_unit_test(auth__modes),
		cmocka_unit_test(chain__of_node_and_port),
		cmocka_unit_test(xdp__alone_or_dispatcher),
		cmocka_unit_test(user__and_sandbox),
		cmocka_unit_test(limits__of_hosts),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
