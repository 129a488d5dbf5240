// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * controller/message.c: what is saved is what the next leader loads, commands contain what they
 * should and nothing else, and what a node reports of itself is held to the limits.
 */
#include "tests/unit/unit.h"

#include "proto/ctl.pb-c.h"
#include "controller/message.h"

static const struct bl_recover_cfg cfg = { .settle_ns = 1, .answer_ns = 1, .grace_ns = 1 };

static uint8_t addrs[3][16] = { { 10, 1 }, { 10, 2 }, { 0xfd, 7, 9 } };

static struct bl_recover_failed failed[] = {
	{ .node = 7, .why = BL_DET_CUT, .proc = { .t = 900 }, .naddrs = 2, .addr = &addrs[1] },
	{ .node = 8,
	  .proc = { .port = 61697, .life = 65535, .why = 3, .t = BL_DET_NO_C },
	  .naddrs = 1,
	  .addr = addrs },
	{ .node = 9, .why = BL_DET_TOLD, .proc = { .t = 901 } },
};
static struct bl_recover_input input[] = { { 4, 1, 7, 3, 899 },
					   { 5, 2, 7, 4, BL_DET_NO_C },
					   { 4, 6, 9, 5, 77 } };

static struct bl_recover_failure a_failure(uint8_t step)
{
	return (struct bl_recover_failure){ .number = 41,
					    .epoch = 6,
					    .step = step,
					    .separated = step == BL_RECOVER_RESUMED,
					    .failed = failed,
					    .nfailed = 3,
					    .input = input,
					    .ninputs = 3 };
}

static void same_failed(const struct bl_recover_failed *a, const struct bl_recover_failed *b)
{
	assert_int_equal(a->node, b->node);
	assert_int_equal(a->why, b->why);
	assert_int_equal(a->proc.port, b->proc.port);
	assert_int_equal(a->proc.life, b->proc.life);
	assert_int_equal(a->proc.why, b->proc.why);
	assert_int_equal(a->proc.t, b->proc.t);
	assert_int_equal(a->naddrs, b->naddrs);
	assert_memory_equal(a->addr, b->addr, 16 * a->naddrs);
}

static void failure__saved_and_loaded(void **state)
{
	(void)state;
	for (uint8_t step = 0; step <= BL_RECOVER_FINISHED; step++) {
		struct bl_recover_failure f = a_failure(step);
		struct ctl_bytes b = ctl_save_failure(&f, 1234567);
		struct bl_recover *r = bl_recover_new(&cfg);
		uint64_t number = 0, unix_ns = 0;
		const struct bl_recover_failure *got;

		assert_int_equal(ctl_load_failure(r, b.data, b.len, &number, &unix_ns), 0);
		assert_int_equal(number, 41);
		assert_int_equal(unix_ns, 1234567);
		got = bl_recover_failure(r, 41);
		assert_non_null(got);
		assert_int_equal(got->epoch, 6);
		assert_int_equal(got->step, step);
		assert_int_equal(got->separated, f.separated);
		assert_int_equal(got->nfailed, 3);
		for (uint32_t i = 0; i < 3; i++)
			same_failed(&got->failed[i], &failed[i]);
		assert_int_equal(got->ninputs, 3);
		for (uint32_t i = 0; i < 3; i++) {
			assert_int_equal(got->input[i].node, input[i].node);
			assert_int_equal(got->input[i].port, input[i].port);
			assert_int_equal(got->input[i].neighbour, input[i].neighbour);
			assert_int_equal(got->input[i].death, input[i].death);
			assert_int_equal(got->input[i].c, input[i].c);
		}
		/* the same record twice is a contradiction */
		assert_int_equal(ctl_load_failure(r, b.data, b.len, &number, &unix_ns), -1);
		bl_recover_free(r);
		free(b.data);
	}
}

/* What does not fit into a record is not truncated. */
static void failure__out_of_range(void **state)
{
	static const struct {
		uint32_t step, port, life, gone, addrs;
		size_t len;
		int rc;
	} t[] = {
		{ 2, 65535, 65535, 255, 1, 16, 0 },
		{ 3, 1, 1, 1, 1, 16, -1 },
		{ 0, 65536, 1, 1, 1, 16, -1 },
		{ 0, 1, 65536, 1, 1, 16, -1 },
		{ 0, 1, 1, 256, 1, 16, -1 },
		{ 0, 1, 1, 1, 1, 15, -1 },
		{ 0, 1, 1, 1, BL_RECOVER_ADDRS_MAX, 16, 0 },
		{ 0, 1, 1, 1, BL_RECOVER_ADDRS_MAX + 1, 16, -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		ProtobufCBinaryData addr[BL_RECOVER_ADDRS_MAX + 1];
		Bl__Failure m = BL__FAILURE__INIT;
		Bl__Failed f = BL__FAILED__INIT, *at = &f;
		struct bl_recover *r = bl_recover_new(&cfg);
		uint64_t number, unix_ns;
		uint8_t buf[1024];

		for (size_t k = 0; k < ARRAY_SIZE(addr); k++)
			addr[k] = (ProtobufCBinaryData){ t[i].len, addrs[0] };
		m.number = 1;
		m.step = t[i].step;
		m.n_failed = 1;
		m.failed = &at;
		f.node = 7;
		f.port = t[i].port;
		f.life = t[i].life;
		f.gone = t[i].gone;
		f.n_addr = t[i].addrs;
		f.addr = addr;
		assert_true(bl__failure__get_packed_size(&m) <= sizeof(buf));
		assert_int_equal(ctl_load_failure(r, buf, bl__failure__pack(&m, buf), &number,
						  &unix_ns),
				 t[i].rc);
		assert_int_equal(bl_recover_failures(r), t[i].rc ? 0 : 1);
		bl_recover_free(r);
	}
}

static void node__saved_and_loaded(void **state)
{
	struct bl_recover_port port[] = {
		{ .port = 1, .neighbour = 7, .role = BL_RECOVER_HOST, .joined = 12 },
		{ .port = 4, .role = BL_RECOVER_UP },
		{ .port = 300, .neighbour = 8, .role = BL_RECOVER_DOWN }
	};
	uint16_t endpoint[] = { 1, 61696, 65535 };
	struct bl_recover_node n = { .id = 0x1f4a0007,
				     .kind = BL_DET_HOST,
				     .joined = 13,
				     .away_ns = 2000001,
				     .linked = true,
				     .name = "h7",
				     .addr = addrs,
				     .naddrs = 3,
				     .port = port,
				     .nports = 2,
				     .endpoint = endpoint,
				     .nendpoints = 3 };
	const struct bl_recover_node *got;
	struct bl_recover *r;
	struct ctl_bytes b;

	(void)state;
	for (int sw = 0; sw < 2; sw++) {
		if (sw) {
			n.kind = BL_DET_SWITCH;
			n.nports = 3;
			n.nendpoints = 0;
		} else {
			port[0].role = BL_RECOVER_UP;
		}
		if (sw)
			port[0].role = BL_RECOVER_HOST;
		r = bl_recover_new(&cfg);
		b = ctl_save_node(&n);
		assert_int_equal(ctl_load_node(r, b.data, b.len), 0);
		got = bl_recover_node(r, n.id);
		assert_non_null(got);
		assert_int_equal(got->kind, n.kind);
		assert_string_equal(got->name, "h7");
		assert_int_equal(got->joined, 13);
		assert_int_equal(got->away_ns, 3000000); /* never less than it was */
		assert_int_equal(got->naddrs, 3);
		assert_memory_equal(got->addr, addrs, sizeof(addrs));
		assert_int_equal(got->nports, n.nports);
		for (uint32_t i = 0; i < n.nports; i++) {
			assert_int_equal(got->port[i].port, port[i].port);
			assert_int_equal(got->port[i].neighbour, port[i].neighbour);
			assert_int_equal(got->port[i].role, port[i].role);
			assert_int_equal(got->port[i].joined, port[i].joined);
		}
		assert_int_equal(got->nendpoints, n.nendpoints);
		assert_memory_equal(got->endpoint, endpoint, n.nendpoints * sizeof(*endpoint));
		assert_int_equal(ctl_load_node(r, b.data, b.len), -1);
		bl_recover_free(r);
		free(b.data);
	}
}

/* A valid HELLO of a host, and its limits one after the other. */
static void hello__each_limit(void **state)
{
	static char name[BL_RECOVER_NAME_MAX + 2];
	static Bl__Port port[BL_RECOVER_PORTS_MAX + 1], *ports[BL_RECOVER_PORTS_MAX + 1];
	static uint32_t endpoint[BL_RECOVER_ENDPOINTS_MAX + 1];
	static ProtobufCBinaryData addr[BL_RECOVER_ADDRS_MAX + 1];
	size_t i, k;

	(void)state;
	for (i = 0; i < 18; i++) {
		struct bl_recover_hello h;
		struct bl_recover_port *p = NULL;
		uint16_t *e = NULL;
		uint8_t(*a)[16] = NULL;
		Bl__Hello m = BL__HELLO__INIT;
		bool good = i < 9;

		memset(name, 'x', sizeof(name) - 1);
		name[i == 9 ? BL_RECOVER_NAME_MAX + 1 : BL_RECOVER_NAME_MAX] = 0;
		for (k = 0; k < ARRAY_SIZE(ports); k++) {
			bl__port__init(&port[k]);
			port[k].port = (uint32_t)k;
			port[k].neighbour = 7;
			port[k].c = 55;
			port[k].death = 5;
			port[k].role = i == 1 ? 255 : i == 10 ? 256 : 1;
			port[k].state = i == 2 ? 255 : i == 11 ? 256 : 1;
			ports[k] = &port[k];
		}
		for (k = 0; k < ARRAY_SIZE(endpoint); k++)
			endpoint[k] = i == 3 ? 65535 : i == 12 ? 65536 : i == 13 ? 0 : 61696;
		for (k = 0; k < ARRAY_SIZE(addr); k++)
			addr[k] = (ProtobufCBinaryData){ i == 14 ? 17 : 16, addrs[2] };
		m.version = i == 15 ? 0 : 1;
		m.kind = i == 16 ? 256 : 255;
		m.node = 77;
		m.epoch = 6;
		m.rejoin = true;
		m.name = name;
		m.n_port = i == 4 ? BL_RECOVER_PORTS_MAX : i == 17 ? BL_RECOVER_PORTS_MAX + 1 : 2;
		m.port = ports;
		m.n_endpoint = i == 5 ? BL_RECOVER_ENDPOINTS_MAX : 2;
		m.endpoint = endpoint;
		m.n_addr = i == 6 ? BL_RECOVER_ADDRS_MAX : 2;
		m.addr = addr;
		assert_int_equal(ctl_hello(&m, &h, &p, &e, &a), good);
		if (good) {
			assert_int_equal(h.id, 77);
			assert_int_equal(h.epoch, 6);
			assert_int_equal(h.kind, 255);
			assert_true(h.rejoin);
			assert_string_equal(h.name, name);
			assert_int_equal(h.nports, m.n_port);
			assert_int_equal(h.port[m.n_port - 1].port, m.n_port - 1);
			assert_int_equal(h.port[0].neighbour, 7);
			assert_int_equal(h.port[0].c, 55);
			assert_int_equal(h.port[0].death, 5);
			assert_int_equal(h.port[0].role, i == 1 ? 255 : 1);
			assert_int_equal(h.port[0].state, i == 2 ? 255 : 1);
			assert_int_equal(h.nendpoints, m.n_endpoint);
			assert_int_equal(h.endpoint[m.n_endpoint - 1], i == 3 ? 65535 : 61696);
			assert_int_equal(h.naddrs, m.n_addr);
			assert_memory_equal(h.addr[m.n_addr - 1], addrs[2], 16);
		}
		free(p);
		free(e);
		free(a);
	}
}

static Bl__ToAgent *order_of(struct ctl_bytes b, Bl__ToAgent__WhatCase what)
{
	Bl__ToAgent *m;

	assert_non_null(b.data);
	m = bl__to_agent__unpack(NULL, b.len, b.data);
	free(b.data);
	assert_non_null(m);
	assert_int_equal(m->epoch, what == BL__TO_AGENT__WHAT_NOT_LEADING ? 0 : 6);
	assert_int_equal(m->what_case, what);
	return m;
}

/* Of five ports some are barred and others are asked about: each command names its own. */
static void order__bar_and_freeze(void **state)
{
	struct bl_recover_port port[5] = { { .port = 1, .barred = true },
					   { .port = 2 },
					   { .port = 3, .asked = true },
					   { .port = 4, .barred = true, .asked = true },
					   { .port = 5 } };
	const struct bl_recover_node n = { .id = 4, .port = port, .nports = 5, .bar = 17 };
	Bl__ToAgent *m = order_of(ctl_bar(6, &n), BL__TO_AGENT__WHAT_BAR);

	(void)state;
	assert_int_equal(m->bar->version, 17);
	assert_int_equal(m->bar->n_port, 2);
	assert_int_equal(m->bar->port[0], 1);
	assert_int_equal(m->bar->port[1], 4);
	bl__to_agent__free_unpacked(m, NULL);
	m = order_of(ctl_freeze(6, &n), BL__TO_AGENT__WHAT_FREEZE);
	assert_int_equal(m->freeze->n_port, 2);
	assert_int_equal(m->freeze->port[0], 3);
	assert_int_equal(m->freeze->port[1], 4);
	bl__to_agent__free_unpacked(m, NULL);
}

/* All ports of the largest node. */
static void order__bar_and_freeze_all(void **state)
{
	static struct bl_recover_port port[BL_RECOVER_PORTS_MAX];
	const struct bl_recover_node n = { .id = 4, .port = port, .nports = BL_RECOVER_PORTS_MAX };
	Bl__ToAgent *bar, *freeze;

	(void)state;
	for (uint32_t i = 0; i < BL_RECOVER_PORTS_MAX; i++)
		port[i] = (struct bl_recover_port){ .port = i, .barred = true, .asked = true };
	bar = order_of(ctl_bar(6, &n), BL__TO_AGENT__WHAT_BAR);
	freeze = order_of(ctl_freeze(6, &n), BL__TO_AGENT__WHAT_FREEZE);
	assert_int_equal(bar->bar->n_port, BL_RECOVER_PORTS_MAX);
	assert_int_equal(freeze->freeze->n_port, BL_RECOVER_PORTS_MAX);
	for (uint32_t i = 0; i < BL_RECOVER_PORTS_MAX; i++) {
		assert_int_equal(bar->bar->port[i], i);
		assert_int_equal(freeze->freeze->port[i], i);
	}
	bl__to_agent__free_unpacked(bar, NULL);
	bl__to_agent__free_unpacked(freeze, NULL);
}

/* FAIL and RESUME for node 4: all that failed, and of the inputs those of node 4. */
static void order__fail_and_resume(void **state)
{
	struct bl_recover_failure f = a_failure(BL_RECOVER_RESUMED);

	(void)state;
	for (int resume = 0; resume < 2; resume++) {
		Bl__ToAgent *m =
			order_of(ctl_failure(6, &f, resume, 4),
				 resume ? BL__TO_AGENT__WHAT_RESUME : BL__TO_AGENT__WHAT_FAIL);
		const Bl__Failure *v = resume ? m->resume : m->fail;

		assert_int_equal(v->number, 41);
		assert_int_equal(v->epoch, 6);
		assert_int_equal(v->n_failed, 3);
		assert_int_equal(v->failed[0]->node, 7);
		assert_int_equal(v->failed[0]->why, BL_DET_CUT);
		assert_int_equal(v->failed[0]->n_addr, 2);
		assert_memory_equal(v->failed[0]->addr[1].data, addrs[2], 16);
		assert_int_equal(v->failed[1]->port, 61697);
		assert_int_equal(v->failed[1]->life, 65535);
		assert_int_equal(v->failed[1]->gone, 3);
		assert_int_equal(v->failed[1]->t, BL_DET_NO_C);
		assert_memory_equal(v->failed[1]->addr[0].data, addrs[0], 16);
		assert_int_equal(v->n_input, 2);
		assert_int_equal(v->input[0]->port, 1);
		assert_int_equal(v->input[0]->death, 3);
		assert_int_equal(v->input[1]->port, 6);
		assert_int_equal(v->input[1]->neighbour, 9);
		bl__to_agent__free_unpacked(m, NULL);
	}
}

static void order__the_others(void **state)
{
	Bl__ToAgent *m = order_of(ctl_welcome(6, 41, 1000, 5000), BL__TO_AGENT__WHAT_WELCOME);
	struct ctl_bytes b;
	Bl__Epoch *e;

	(void)state;
	assert_int_equal(m->welcome->failed, 41);
	assert_int_equal(m->welcome->answer_ms, 1000);
	assert_int_equal(m->welcome->stuck_ms, 5000);
	bl__to_agent__free_unpacked(m, NULL);
	m = order_of(ctl_put_out(6, 61697, 9), BL__TO_AGENT__WHAT_PUT_OUT);
	assert_int_equal(m->put_out->port, 61697);
	assert_int_equal(m->put_out->life, 9);
	bl__to_agent__free_unpacked(m, NULL);
	m = order_of(ctl_not_leading("10.0.0.2:61693", "another does"),
		     BL__TO_AGENT__WHAT_NOT_LEADING);
	assert_string_equal(m->not_leading->leader, "10.0.0.2:61693");
	assert_string_equal(m->not_leading->why, "another does");
	bl__to_agent__free_unpacked(m, NULL);
	m = order_of(ctl_admission(6, 3, true, "top", 5000000000), BL__TO_AGENT__WHAT_ADMISSION);
	assert_int_equal(m->admission->number, 3);
	assert_true(m->admission->check);
	assert_string_equal(m->admission->policy, "top");
	assert_int_equal(m->admission->rate_bps, 5000000000);
	bl__to_agent__free_unpacked(m, NULL);
	m = order_of(ctl_away(6), BL__TO_AGENT__WHAT_AWAY);
	bl__to_agent__free_unpacked(m, NULL);
	b = ctl_save_epoch(6, "10.0.0.2", 99);
	e = bl__epoch__unpack(NULL, b.len, b.data);
	assert_non_null(e);
	assert_int_equal(e->epoch, 6);
	assert_string_equal(e->leader, "10.0.0.2");
	assert_int_equal(e->unix_ns, 99);
	bl__epoch__free_unpacked(e, NULL);
	free(b.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failure__saved_and_loaded),
		cmocka_unit_test(failure__out_of_range),
		cmocka_unit_test(node__saved_and_loaded),
		cmocka_unit_test(hello__each_limit),
		cmocka_unit_test(order__bar_and_freeze),
		cmocka_unit_test(order__bar_and_freeze_all),
		cmocka_unit_test(order__fail_and_resume),
		cmocka_unit_test(order__the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
