// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * loader/order/agent.c without sockets: what an agent does with its controller's fences, and which
 * messages it sends. Its sessions are numbers, time is a variable, and the test calls its timers.
 */
#include "tests/unit/unit.h"

#include <errno.h>

#include "proto/ctl.pb-c.h"
#include "maps/failure_abi.h"
#include "proto/ctl_why.h"
#include "proto/forward_msg.h"
#include "loader/order/agent.h"
#include "loader/order/agent_priv.h"

static uint64_t fake_usec = 1000000;
static unsigned int connects, closes, n_sent;
static char to_whom[64];
static Bl__ToController *heard[64];
static size_t waiting;

/* the agent's operations, to be called with @session_ctx */
static const struct bl_session_ops *session;
static void *session_ctx;

int __wrap_sd_event_now(sd_event *ev, clockid_t clock, uint64_t *usec);
int __wrap_bl_session_connect(struct bl_session **out, sd_event *ev, const struct sockaddr *addr,
			      socklen_t len, struct bl_session_tls *tls,
			      const struct bl_session_ops *ops, void *ctx, struct bl_err *err);
bool __wrap_bl_session_send(struct bl_session *s, const void *body, size_t len);
size_t __wrap_bl_session_waiting(const struct bl_session *s);
void __wrap_bl_session_close(struct bl_session *s);

int __wrap_sd_event_now(sd_event *ev, clockid_t clock, uint64_t *usec)
{
	(void)ev, (void)clock;
	*usec = fake_usec;
	return 0;
}

int __wrap_bl_session_connect(struct bl_session **out, sd_event *ev, const struct sockaddr *addr,
			      socklen_t len, struct bl_session_tls *tls,
			      const struct bl_session_ops *ops, void *ctx, struct bl_err *err)
{
	(void)ev, (void)addr, (void)len, (void)tls, (void)err;
	*out = (struct bl_session *)&to_whom;
	session = ops;
	session_ctx = ctx;
	connects++;
	return 0;
}

bool __wrap_bl_session_send(struct bl_session *s, const void *body, size_t len)
{
	assert_ptr_equal(s, to_whom);
	assert_true(n_sent < ARRAY_SIZE(heard));
	heard[n_sent] = bl__to_controller__unpack(NULL, len, body);
	assert_non_null(heard[n_sent]);
	n_sent++;
	return true;
}

size_t __wrap_bl_session_waiting(const struct bl_session *s)
{
	(void)s;
	return waiting;
}

void __wrap_bl_session_close(struct bl_session *s)
{
	closes += s != NULL;
}

/* ---- the node ---- */

static unsigned int nports;
static char did[256];
static uint64_t heard_epoch;
static int rc_of_fences;
static struct bl_agent_failed last[4];
static struct bl_agent_input inputs[4];
static struct bl_agent_port frozen;

static void __attribute__((format(printf, 1, 2))) did_add(const char *fmt, ...)
{
	size_t n = strlen(did);
	va_list ap;

	n += (size_t)snprintf(did + n, sizeof(did) - n, "%s", n ? "; " : "");
	va_start(ap, fmt);
	vsnprintf(did + n, sizeof(did) - n, fmt, ap);
	va_end(ap);
}

static void expect_did(const char *text)
{
	assert_string_equal(did, text);
	*did = 0;
}

static void describe_node(void *ctx, struct bl_agent_node *v)
{
	(void)ctx;
	v->node_id = 7;
	v->host = true;
	v->naddrs = 2;
	v->addr[0][0] = 10;
	v->addr[1][0] = 11;
	v->nports = nports;
	for (unsigned int i = 0; i < nports; i++)
		v->port[i] = (struct bl_agent_port){ .port = i + 1,
						     .neighbour = 90 + i,
						     .death = 30 + i,
						     .role = 1,
						     .state = BL_AGENT_SILENT,
						     .c = 500 + i };
	v->nendpoints = 2;
	v->endpoint[0] = 61696;
	v->endpoint[1] = 65535;
	snprintf(v->name, sizeof(v->name), "h7");
}

static void on_epoch(void *ctx, uint64_t e)
{
	(void)ctx;
	heard_epoch = e;
}

static int do_bar(void *ctx, const uint32_t *port, unsigned int n)
{
	(void)ctx;
	did_add("bar %u of %u", n ? port[0] : 0, n);
	return rc_of_fences;
}

static int do_freeze(void *ctx, uint32_t port, struct bl_agent_port *p)
{
	(void)ctx;
	frozen = *p;
	p->c = 777;
	p->death++;
	did_add("freeze %u of %u", port, p->neighbour);
	return rc_of_fences;
}

static void do_fail(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n)
{
	(void)ctx;
	assert_true(n <= ARRAY_SIZE(last));
	memcpy(last, v, n * sizeof(*v));
	did_add("fail %u of %u", (unsigned int)number, n);
}

static int do_resume(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n,
		     const struct bl_agent_input *in, unsigned int nin)
{
	(void)ctx, (void)v, (void)n;
	assert_true(nin <= ARRAY_SIZE(inputs));
	memcpy(inputs, in, nin * sizeof(*in));
	did_add("resume %u of %u", (unsigned int)number, nin);
	return rc_of_fences;
}

static void on_own_failure(void *ctx, uint64_t number)
{
	(void)ctx;
	did_add("failed %u", (unsigned int)number);
}

static void do_put_out(void *ctx, uint16_t port, uint16_t life)
{
	(void)ctx;
	did_add("expelled %u:%u", port, life);
}

static struct bl_agent *a;
static sd_event *ev;

static void forget_sent(void)
{
	while (n_sent)
		bl__to_controller__free_unpacked(heard[--n_sent], NULL);
}

/* Compares the messages sent since the last call, one word each, with @text. */
static void expect_sent(const char *text)
{
	static const char *const names[] = {
		[BL__TO_CONTROLLER__WHAT_HELLO] = "hello",
		[BL__TO_CONTROLLER__WHAT_LINK_DOWN] = "link",
		[BL__TO_CONTROLLER__WHAT_PROC_DOWN] = "proc",
		[BL__TO_CONTROLLER__WHAT_BARRED] = "barred",
		[BL__TO_CONTROLLER__WHAT_DONE] = "done",
		[BL__TO_CONTROLLER__WHAT_RESUMED] = "resumed",
		[BL__TO_CONTROLLER__WHAT_PING] = "ping",
		[BL__TO_CONTROLLER__WHAT_AWAY] = "away",
		[BL__TO_CONTROLLER__WHAT_PROC_STUCK] = "stuck",
		[BL__TO_CONTROLLER__WHAT_FORWARD] = "forward",
		[BL__TO_CONTROLLER__WHAT_ADMITTED] = "admitted",
	};
	char all[256] = "";

	for (unsigned int i = 0; i < n_sent; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? " " : "",
			 names[heard[i]->what_case]);
	assert_string_equal(all, text);
}

static void receive(Bl__ToAgent *m, uint64_t epoch, Bl__ToAgent__WhatCase what)
{
	uint8_t buf[4096];

	m->epoch = epoch;
	m->what_case = what;
	assert_true(bl__to_agent__get_packed_size(m) <= sizeof(buf));
	session->message(session_ctx, buf, bl__to_agent__pack(m, buf));
}

static void receive_welcome(uint64_t epoch, uint64_t failed)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Welcome v = BL__WELCOME__INIT;

	v.failed = failed;
	v.answer_ms = 1234;
	v.stuck_ms = 5678;
	m.welcome = &v;
	receive(&m, epoch, BL__TO_AGENT__WHAT_WELCOME);
}

/*
 * Receives FAIL or RESUME: node @node, or its process at @port, failed at @t. The failure has one
 * input of this node and one of another.
 */
static void receive_failure(bool resume, uint64_t epoch, uint64_t number, uint32_t node,
			    uint32_t port, uint64_t t)
{
	static uint8_t addr[16] = { 10, 9 };
	ProtobufCBinaryData at = { 16, addr };
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Failure f = BL__FAILURE__INIT;
	Bl__Failed v = BL__FAILED__INIT, *vs = &v;
	Bl__Input in[2] = { BL__INPUT__INIT, BL__INPUT__INIT }, *ins[2] = { &in[0], &in[1] };

	f.number = number;
	f.epoch = epoch;
	f.n_failed = 1;
	f.failed = &vs;
	v.node = node;
	v.port = port;
	v.life = 3;
	v.t = t;
	v.why = BL_DET_CUT;
	v.gone = 2;
	v.n_addr = 1;
	v.addr = &at;
	f.n_input = 2;
	f.input = ins;
	in[0].node = 8;
	in[1].node = 7;
	in[1].port = 2;
	in[1].death = 31;
	m.fail = &f;
	receive(&m, epoch, resume ? BL__TO_AGENT__WHAT_RESUME : BL__TO_AGENT__WHAT_FAIL);
}

static struct bl_agent_total read_total(void)
{
	struct bl_agent_total t;

	bl_agent_read(a, &t);
	return t;
}

static int agent_setup(void **state)
{
	static const struct bl_agent_ops ops = { .tell = describe_node,
						 .epoch = on_epoch,
						 .bar = do_bar,
						 .freeze = do_freeze,
						 .fail = do_fail,
						 .resume = do_resume,
						 .failed = on_own_failure,
						 .put_out = do_put_out };
	struct bl_agent_cfg cfg = { .controllers = { "10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1" },
				    .ncontrollers = 3,
				    .epoch = 5,
				    .silence_ms = 3000 };
	struct bl_err err;

	(void)state;
	nports = 3;
	*did = 0;
	connects = closes = 0;
	heard_epoch = 0;
	rc_of_fences = 0;
	waiting = 0;
	assert_true(sd_event_new(&ev) >= 0);
	assert_int_equal(bl_agent_new(&a, ev, &cfg, &ops, NULL, &err), 0);
	assert_int_equal(bl_agent_on_retry(NULL, 0, a), 0);
	assert_int_equal(connects, 1);
	session->up(session_ctx);
	expect_sent("hello");
	return 0;
}

static int agent_teardown(void **state)
{
	(void)state;
	forget_sent();
	bl_agent_free(a);
	sd_event_unref(ev);
	return 0;
}

/* The HELLO contains all of the node, however many ports it has. */
static void hello__says_all(void **state)
{
	const Bl__Hello *h = heard[0]->hello;

	(void)state;
	assert_int_equal(h->version, 1);
	assert_int_equal(h->node, 7);
	assert_int_equal(h->kind, 0);
	assert_string_equal(h->name, "h7");
	assert_int_equal(h->epoch, 5);
	assert_false(h->rejoin);
	assert_int_equal(h->n_addr, 2);
	assert_int_equal(h->addr[1].data[0], 11);
	assert_int_equal(h->n_endpoint, 2);
	assert_int_equal(h->endpoint[1], 65535);
	nports = BL_AGENT_PORTS_MAX;
	bl_agent_changed(a);
	expect_sent("hello hello");
	h = heard[1]->hello;
	assert_int_equal(h->n_port, BL_AGENT_PORTS_MAX);
	for (unsigned int i = 0; i < BL_AGENT_PORTS_MAX; i++) {
		assert_int_equal(h->port[i]->port, i + 1);
		assert_int_equal(h->port[i]->neighbour, 90 + i);
		assert_int_equal(h->port[i]->death, 30 + i);
		assert_int_equal(h->port[i]->role, 1);
		assert_int_equal(h->port[i]->state, BL_AGENT_SILENT);
		assert_int_equal(h->port[i]->c, 500 + i);
	}
}

static void welcome__and_epochs(void **state)
{
	(void)state;
	assert_false(read_total().welcome);
	receive_welcome(5, 0);
	assert_true(read_total().welcome);
	assert_int_equal(read_total().answer_ms, 1234);
	assert_int_equal(read_total().stuck_ms, 5678);
	assert_int_equal(heard_epoch, 0);
	assert_string_equal(read_total().controller, "10.0.0.1:1");
	/*
	 * A higher epoch is kept and announced at once. A controller with a lower one no longer
	 * leads.
	 */
	forget_sent();
	receive_welcome(9, 0);
	assert_int_equal(heard_epoch, 9);
	expect_sent("hello");
	assert_int_equal(heard[0]->hello->epoch, 9);
	receive_welcome(8, 0);
	assert_int_equal(closes, 1);
	assert_int_equal(read_total().reasons[BL_AGENT_OLD_EPOCH], 1);
	assert_false(read_total().welcome);
	assert_string_equal(read_total().controller, "");
}

static void order__before_welcome(void **state)
{
	(void)state;
	receive_failure(false, 5, 1, 9, 0, 100);
	expect_did("");
	assert_int_equal(closes, 1);
	assert_int_equal(read_total().reasons[BL_AGENT_TOO_EARLY], 1);
}

/*
 * A repeated FAIL is not executed twice, and is answered once it is done. The same number with
 * other contents is a new failure.
 */
static void fail__known_by_its_content(void **state)
{
	(void)state;
	receive_welcome(5, 0);
	receive_failure(false, 5, 1, 9, 61696, 100);
	expect_did("fail 1 of 1");
	assert_int_equal(last[0].node, 9);
	assert_int_equal(last[0].port, 61696);
	assert_int_equal(last[0].life, 3);
	assert_int_equal(last[0].t, 100);
	assert_int_equal(last[0].why, 2);
	assert_false(last[0].here);
	assert_int_equal(last[0].naddrs, 1);
	assert_int_equal(last[0].addr[0][1], 9);
	forget_sent();
	receive_failure(false, 5, 1, 9, 61696, 100);
	expect_did("");
	expect_sent("");
	bl_agent_done(a, 1);
	expect_sent("done");
	assert_int_equal(heard[0]->done->number, 1);
	receive_failure(false, 5, 1, 9, 61696, 100);
	expect_did("");
	expect_sent("done done");
	/* Another t, node, port or epoch makes another failure, which is not done yet. */
	receive_failure(false, 5, 1, 9, 61696, 101);
	expect_did("fail 1 of 1");
	receive_failure(false, 5, 1, 10, 61696, 101);
	expect_did("fail 1 of 1");
	receive_failure(false, 5, 1, 10, 0, 101);
	expect_did("fail 1 of 1");
	assert_int_equal(last[0].why, BL_WHY_CUT_OFF);
	expect_sent("done done");
	receive_failure(false, 6, 1, 10, 0, 101);
	expect_did("fail 1 of 1");
	expect_sent("done done hello");
}

/*
 * The failure of this node itself: reported once, and cleared when the next leader welcomes the
 * node.
 */
static void fail__of_this_node(void **state)
{
	(void)state;
	receive_welcome(5, 0);
	receive_failure(false, 5, 4, 7, 0, 100);
	expect_did("failed 4; fail 4 of 1");
	assert_true(last[0].here);
	assert_int_equal(read_total().failed, 4);
	receive_welcome(5, 4);
	expect_did("");
	forget_sent();
	bl_agent_rejoin(a);
	bl_agent_on_beat(NULL, 0, a);
	expect_sent("ping hello");
	assert_true(heard[1]->hello->rejoin);
	receive_welcome(5, 0);
	assert_int_equal(read_total().failed, 0);
	forget_sent();
	bl_agent_on_beat(NULL, 0, a);
	expect_sent("ping");
	receive_welcome(5, 4);
	expect_did("failed 4");
	/* The failure of one of its processes is not the failure of the node. */
	receive_welcome(5, 0);
	receive_failure(false, 5, 5, 7, 61696, 100);
	expect_did("fail 5 of 1");
	assert_int_equal(read_total().failed, 0);
}

/*
 * 0 stands for no failure, so there is none of that number: the node would take itself for correct
 * when it is announced as failed.
 */
static void fail__number_0(void **state)
{
	static const bool resume[] = { false, true };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(resume); i++) {
		receive_welcome(5, 4);
		receive_failure(resume[i], 5, 0, 7, 0, 100);
		expect_did(i ? "" : "failed 4");
		assert_int_equal(read_total().failed, 4);
		assert_int_equal(read_total().reasons[BL_AGENT_BAD_MESSAGE], i + 1);
		assert_int_equal(closes, i + 1);
		bl_agent_on_retry(NULL, 0, a);
		session->up(session_ctx);
	}
}

/* A process that has ended is reported until the controller names exactly this process. */
static void proc_down__until_it_is_named(void **state)
{
	const struct bl_agent_proc p = { .port = 61696, .life = 3, .why = 2, .t = 100 };

	(void)state;
	bl_agent_proc_down(a, &p);
	expect_sent("hello");
	receive_welcome(5, 0);
	expect_sent("hello proc");
	assert_int_equal(heard[1]->proc_down->endpoint, 61696);
	assert_int_equal(heard[1]->proc_down->life, 3);
	assert_int_equal(heard[1]->proc_down->t, 100);
	assert_int_equal(heard[1]->proc_down->why, 2);
	forget_sent();
	receive_failure(false, 5, 1, 7, 61696, 99);  /* another t */
	receive_failure(false, 5, 2, 8, 61696, 100); /* a process of another node */
	receive_failure(false, 5, 3, 7, 61697, 100); /* another port */
	receive_welcome(5, 0);
	expect_sent("proc");
	receive_failure(true, 5, 4, 7, 61696, 100);
	forget_sent();
	receive_welcome(5, 0);
	expect_sent("");
}

static void resume__this_nodes_inputs(void **state)
{
	(void)state;
	receive_welcome(5, 0);
	forget_sent();
	receive_failure(true, 5, 6, 9, 0, 100);
	expect_did("resume 6 of 1");
	assert_int_equal(inputs[0].port, 2);
	assert_int_equal(inputs[0].death, 31);
	expect_sent("resumed");
	assert_int_equal(heard[0]->resumed->number, 6);
	/*
	 * An error is not answered. One that says that this node follows a later leader ends the
	 * session.
	 */
	rc_of_fences = -EIO;
	receive_failure(true, 5, 7, 9, 0, 100);
	expect_sent("resumed");
	assert_int_equal(closes, 0);
	rc_of_fences = -ESTALE;
	receive_failure(true, 5, 7, 9, 0, 100);
	expect_sent("resumed");
	assert_int_equal(closes, 1);
	assert_int_equal(read_total().reasons[BL_AGENT_OLD_EPOCH], 1);
}

/* An input that dies before WELCOME is part of the node's HELLO. */
static void link_down__before_welcome(void **state)
{
	const struct bl_agent_port p = { .port = 2, .neighbour = 91, .death = 33, .c = 7 };

	(void)state;
	bl_agent_link_down(a, &p);
	expect_sent("hello hello");
	receive_welcome(5, 0);
	bl_agent_link_down(a, &p);
	expect_sent("hello hello link");
	assert_int_equal(heard[2]->link_down->death, 33);
}

static void receive_bar(uint64_t version)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Bar b = BL__BAR__INIT;
	uint32_t port[] = { 3, 1 };

	b.version = version;
	b.n_port = 2;
	b.port = port;
	m.bar = &b;
	receive(&m, 5, BL__TO_AGENT__WHAT_BAR);
}

static void bar__answered_when_done(void **state)
{
	(void)state;
	receive_welcome(5, 0);
	forget_sent();
	receive_bar(17);
	expect_did("bar 3 of 2");
	expect_sent("barred");
	assert_int_equal(heard[0]->barred->number, 17);
	rc_of_fences = -EIO;
	receive_bar(18);
	expect_sent("barred");
}

/*
 * Two of three ports are asked about, and one that does not exist. The answers contain the state of
 * each port.
 */
static void freeze__each_port(void **state)
{
	uint32_t port[] = { 2, 77, 3 };
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Freeze f = BL__FREEZE__INIT;

	(void)state;
	receive_welcome(5, 0);
	forget_sent();
	f.n_port = 3;
	f.port = port;
	m.freeze = &f;
	receive(&m, 5, BL__TO_AGENT__WHAT_FREEZE);
	expect_did("freeze 2 of 91; freeze 3 of 92");
	expect_sent("link link");
	assert_int_equal(heard[0]->link_down->port, 2);
	assert_int_equal(heard[0]->link_down->neighbour, 91);
	assert_int_equal(heard[0]->link_down->c, 777);
	assert_int_equal(heard[0]->link_down->death, 32);
	assert_int_equal(heard[1]->link_down->port, 3);
	assert_int_equal(frozen.role, 1);
	rc_of_fences = -ENOENT; /* no such input */
	receive(&m, 5, BL__TO_AGENT__WHAT_FREEZE);
	expect_sent("link link");
	assert_int_equal(closes, 0);
	rc_of_fences = -ESTALE;
	*did = 0;
	receive(&m, 5, BL__TO_AGENT__WHAT_FREEZE);
	expect_did("freeze 2 of 91");
	assert_int_equal(closes, 1);
}

static void put_out__in_range(void **state)
{
	static const struct {
		uint32_t port, life;
		const char *did;
	} t[] = {
		{ 1, 0, "expelled 1:0" },
		{ 65535, 65535, "expelled 65535:65535" },
		{ 0, 1, "" },
		{ 65536, 1, "" },
		{ 1, 65536, "" },
	};

	(void)state;
	receive_welcome(5, 0);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		Bl__ToAgent m = BL__TO_AGENT__INIT;
		Bl__PutOut p = BL__PUT_OUT__INIT;

		p.port = t[i].port;
		p.life = t[i].life;
		m.put_out = &p;
		receive(&m, 5, BL__TO_AGENT__WHAT_PUT_OUT);
		expect_did(t[i].did);
	}
	assert_int_equal(read_total().reasons[BL_AGENT_BAD_MESSAGE], 3);
	assert_int_equal(closes, 0);
}

/*
 * A controller that is silent for longer than silence_ms is left. One message is enough, and so is
 * exactly that time.
 */
static void beat__silence(void **state)
{
	(void)state;
	receive_welcome(5, 0);
	forget_sent();
	fake_usec += 3000000;
	bl_agent_on_beat(NULL, 0, a);
	expect_sent("ping");
	assert_int_equal(closes, 0);
	fake_usec++;
	bl_agent_on_beat(NULL, 0, a);
	assert_int_equal(closes, 1);
	expect_sent("ping");
	assert_string_equal(read_total().trouble, "controller 10.0.0.1:1: it is silent");
	/* The next controller in turn is tried, and after it the one that is said to lead. */
	assert_int_equal(bl_agent_on_retry(NULL, 0, a), 0);
	assert_int_equal(connects, 2);
	assert_string_equal(read_total().controller, "10.0.0.2:1");
	bl_agent_on_retry(NULL, 0, a);
	assert_int_equal(connects, 2);
}

static void not_leading__asks_who_does(void **state)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__NotLeading v = BL__NOT_LEADING__INIT;

	(void)state;
	v.leader = (char *)(uintptr_t) "10.0.0.3:1";
	v.why = (char *)(uintptr_t) "";
	m.not_leading = &v;
	receive(&m, 0, BL__TO_AGENT__WHAT_NOT_LEADING);
	assert_string_equal(read_total().trouble, "controller 10.0.0.1:1: it does not lead");
	bl_agent_on_retry(NULL, 0, a);
	assert_string_equal(read_total().controller, "10.0.0.3:1");
	/* an address that is not one of our controllers */
	v.leader = (char *)(uintptr_t) "10.0.0.9:1";
	v.why = (char *)(uintptr_t) "busy";
	receive(&m, 0, BL__TO_AGENT__WHAT_NOT_LEADING);
	assert_string_equal(read_total().trouble, "controller 10.0.0.3:1: busy");
	bl_agent_on_retry(NULL, 0, a);
	assert_string_equal(read_total().controller, "10.0.0.1:1");
}

/*
 * The leader, 10.0.0.1, is dead. 10.0.0.2 does not reach the store, so it goes on to say that
 * 10.0.0.1 leads. The node finds the new leader, 10.0.0.3, and believes 10.0.0.2 again only after
 * it has tried all of them.
 */
static void not_leading__names_a_dead_leader(void **state)
{
	static const char tried[] = "212312123"; /* 2: 10.0.0.2 */
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__NotLeading v = BL__NOT_LEADING__INIT;
	size_t i;

	(void)state;
	v.leader = (char *)(uintptr_t) "10.0.0.1:1";
	v.why = (char *)(uintptr_t) "";
	m.not_leading = &v;
	receive_welcome(5, 0);
	session->down(session_ctx, "it is dead");
	for (i = 0; tried[i]; i++) {
		bl_agent_on_retry(NULL, 0, a);
		assert_int_equal(read_total().controller[strlen("10.0.0.")], tried[i]);
		if (tried[i] == '2')
			receive(&m, 0, BL__TO_AGENT__WHAT_NOT_LEADING);
		else
			session->down(session_ctx, "it does not answer");
	}
	/* A leader that was found makes the next hint count at once. */
	bl_agent_on_retry(NULL, 0, a);
	assert_string_equal(read_total().controller, "10.0.0.1:1");
	receive_welcome(5, 0);
	v.leader = (char *)(uintptr_t) "10.0.0.3:1";
	receive(&m, 0, BL__TO_AGENT__WHAT_NOT_LEADING);
	bl_agent_on_retry(NULL, 0, a);
	assert_string_equal(read_total().controller, "10.0.0.3:1");
}

static void forward__only_when_there_is_room(void **state)
{
	uint8_t frame[100] = { 0 };
	const struct bl_forward f = { .to = { 10, 1 },
				      .from = { 10, 2 },
				      .port = 5,
				      .sport = 6,
				      .frame = frame,
				      .len = 100 };

	(void)state;
	bl_agent_forward(a, &f);
	assert_int_equal(read_total().reasons[BL_AGENT_NOT_FORWARDED], 1);
	receive_welcome(5, 0);
	forget_sent();
	waiting = BL_AGENT_FORWARD_WAIT;
	bl_agent_forward(a, &f);
	expect_sent("forward");
	assert_int_equal(heard[0]->forward->port, 5);
	assert_int_equal(heard[0]->forward->sport, 6);
	assert_int_equal(heard[0]->forward->to.data[1], 1);
	assert_int_equal(heard[0]->forward->from.data[1], 2);
	waiting = BL_AGENT_FORWARD_WAIT + 1;
	bl_agent_forward(a, &f);
	waiting = 0;
	receive_welcome(5, 4);
	bl_agent_forward(a, &f);
	expect_sent("forward");
	assert_int_equal(read_total().reasons[BL_AGENT_FORWARDED], 1);
	assert_int_equal(read_total().reasons[BL_AGENT_NOT_FORWARDED], 3);
}

/*
 * Attack A1: a false controller says epoch 2^64 - 1, as WELCOME or later. The epoch is not kept,
 * the agent goes to the next controller, and a real leader is obeyed.
 */
static void welcome__with_a_far_epoch(void **state)
{
	const uint64_t far[] = { UINT64_MAX, 1ULL << 63, 5 + (1ULL << 32) + 1 };
	unsigned int k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(far); k++) {
		receive_welcome(far[k], 0);
		assert_int_equal(closes, k + 1);
		assert_int_equal(heard_epoch, 0);
		assert_int_equal(read_total().epoch, 5);
		assert_int_equal(read_total().reasons[BL_AGENT_FAR_EPOCH], k + 1);
		assert_non_null(strstr(read_total().trouble, "is too far above 5"));
		assert_non_null(strstr(read_total().trouble, "`barline host detach`"));
		assert_int_equal(bl_agent_on_retry(NULL, 0, a), 0);
		session->up(session_ctx);
	}
	receive_welcome(5 + (1ULL << 32), 0);
	assert_true(read_total().welcome);
	assert_int_equal(heard_epoch, 5 + (1ULL << 32));
}

/*
 * The controller asks whether this session lives, because somebody else says that it is this node:
 * the same number is the answer, at once, and before WELCOME, too. The answer to a sign of life
 * needs none.
 */
static void ping__is_answered(void **state)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Number n = BL__NUMBER__INIT;

	(void)state;
	forget_sent();
	n.number = 77;
	m.ping = &n;
	receive(&m, 0, BL__TO_AGENT__WHAT_PING);
	expect_sent("ping");
	assert_int_equal(heard[0]->ping->number, 77);
	forget_sent();
	n.number = 0;
	receive(&m, 0, BL__TO_AGENT__WHAT_PING);
	expect_sent("");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, agent_setup, agent_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(hello__says_all),
		CASE(welcome__and_epochs),
		CASE(welcome__with_a_far_epoch),
		CASE(ping__is_answered),
		CASE(order__before_welcome),
		CASE(fail__known_by_its_content),
		CASE(fail__of_this_node),
		CASE(fail__number_0),
		CASE(proc_down__until_it_is_named),
		CASE(resume__this_nodes_inputs),
		CASE(link_down__before_welcome),
		CASE(bar__answered_when_done),
		CASE(freeze__each_port),
		CASE(put_out__in_range),
		CASE(beat__silence),
		CASE(not_leading__asks_who_does),
		CASE(not_leading__names_a_dead_leader),
		CASE(forward__only_when_there_is_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
