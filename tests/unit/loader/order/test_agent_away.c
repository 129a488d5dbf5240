// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An agent whose daemon stops on purpose (loader/order/agent.c: bl_agent_away), and a controller
 * that is a list of the messages that it received. Away is the last message: a Hello after it would
 * say that the daemon is back, and its host would count as late before the next daemon has begun.
 */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "proto/ctl.pb-c.h"
#include "loader/order/agent.h"

#define WAIT_MS  20000
#define QUIET_MS 400 /* several times as long as an agent needs for its next session */
#define HEARD    64

static struct world {
	sd_event *ev;
	int door;
	char addr[64];
	struct bl_session *session; /* the controller's end of the session */
	unsigned int sessions, n;
	Bl__ToController__WhatCase heard[HEARD];
	uint32_t away_ms;
	struct bl_agent *a;
	bool leads, saves;
} w;

/* ---- the controller ---- */

static void send_answer(Bl__ToAgent__WhatCase what)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Welcome v = BL__WELCOME__INIT;
	Bl__Number n = BL__NUMBER__INIT;
	uint8_t buf[64];

	m.epoch = 1;
	m.what_case = what;
	if (what == BL__TO_AGENT__WHAT_WELCOME)
		m.welcome = &v;
	else
		m.away = &n;
	assert_true(bl__to_agent__get_packed_size(&m) <= sizeof(buf));
	bl_session_send(w.session, buf, bl__to_agent__pack(&m, buf));
}

static void on_message(void *ctx, const uint8_t *body, size_t len)
{
	Bl__ToController *m = bl__to_controller__unpack(NULL, len, body);

	(void)ctx;
	assert_non_null(m);
	assert_true(w.n < HEARD);
	w.heard[w.n++] = m->what_case;
	if (m->what_case == BL__TO_CONTROLLER__WHAT_AWAY)
		w.away_ms = m->away->ms;
	if (m->what_case == BL__TO_CONTROLLER__WHAT_AWAY && w.saves)
		send_answer(BL__TO_AGENT__WHAT_AWAY);
	if (m->what_case == BL__TO_CONTROLLER__WHAT_HELLO && w.leads)
		send_answer(BL__TO_AGENT__WHAT_WELCOME);
	bl__to_controller__free_unpacked(m, NULL);
}

static void on_up(void *ctx)
{
	(void)ctx;
}

static void on_down(void *ctx, const char *why)
{
	(void)ctx, (void)why;
	w.session = NULL;
}

static int on_status(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	static const struct bl_session_ops ops = { on_up, on_message, on_down };
	int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct bl_err err;

	(void)src, (void)events, (void)ctx;
	assert_true(conn >= 0);
	bl_session_close(w.session);
	assert_int_equal(bl_session_accept(&w.session, w.ev, conn, NULL, &ops, NULL, &err), 0);
	w.sessions++;
	return 0;
}

/* ---- the agent's node ---- */

static void describe_node(void *ctx, struct bl_agent_node *v)
{
	(void)ctx;
	v->node_id = 7;
	v->host = true;
	snprintf(v->name, sizeof(v->name), "h7");
}

static void ignore_epoch(void *ctx, uint64_t e)
{
	(void)ctx, (void)e;
}

static uint64_t mono_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool is_welcome(void)
{
	struct bl_agent_total t;

	bl_agent_read(w.a, &t);
	return t.welcome;
}

static bool heard_away(void)
{
	return w.n && w.heard[w.n - 1] == BL__TO_CONTROLLER__WHAT_AWAY;
}

static bool heard_hello(void)
{
	return w.n != 0;
}

static bool away_is_known(void)
{
	return bl_agent_away_known(w.a);
}

/* Closes the session, as a controller does that was replaced or has restarted. */
static void close_session(void)
{
	bl_session_close(w.session);
	w.session = NULL;
}

static void run_until(bool (*what)(void))
{
	uint64_t end = mono_ms() + WAIT_MS;

	while (!what()) {
		assert_true(mono_ms() < end);
		assert_true(sd_event_run(w.ev, 10000) >= 0);
	}
}

static void run_for_ms(unsigned int ms)
{
	uint64_t end = mono_ms() + ms;

	while (mono_ms() < end)
		assert_true(sd_event_run(w.ev, 10000) >= 0);
}

static uint32_t silence_ms = 150; /* The agent sends three messages in this time. */

static void start_agent(bool leads)
{
	static const struct bl_agent_ops ops = { .tell = describe_node, .epoch = ignore_epoch };
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct bl_agent_cfg cfg = { .ncontrollers = 1, .silence_ms = silence_ms };
	socklen_t len = sizeof(sa);
	struct bl_err err;

	memset(&w, 0, sizeof(w));
	w.leads = leads;
	assert_true(sd_event_new(&w.ev) >= 0);
	w.door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(w.door >= 0 && !bind(w.door, (struct sockaddr *)&sa, sizeof(sa)) &&
		    !listen(w.door, 8) && !getsockname(w.door, (struct sockaddr *)&sa, &len));
	assert_true(sd_event_add_io(w.ev, NULL, w.door, EPOLLIN, on_status, NULL) >= 0);
	snprintf(cfg.controllers[0], sizeof(cfg.controllers[0]), "127.0.0.1:%u",
		 ntohs(sa.sin_port));
	assert_int_equal(bl_agent_new(&w.a, w.ev, &cfg, &ops, NULL, &err), 0);
	run_until(leads ? is_welcome : heard_hello);
}

static void stop_agent(void)
{
	bl_agent_free(w.a);
	bl_session_close(w.session);
	close(w.door);
	sd_event_unref(w.ev);
}

/*
 * Away is sent with its time, and counts as known when the controller answers that it has been
 * saved.
 */
static void away__is_said(void **state)
{
	(void)state;
	start_agent(true);
	bl_agent_away(w.a, 12345);
	run_until(heard_away);
	assert_int_equal(w.away_ms, 12345);
	run_for_ms(50);
	assert_false(away_is_known());
	send_answer(BL__TO_AGENT__WHAT_AWAY);
	run_until(away_is_known);
	stop_agent();
}

/*
 * Away stays the last message whatever changes afterwards: ports, endpoints, finished failures, or
 * the time for a sign of life; whether Away was answered or not.
 */
static void away__is_the_last_word(void **state)
{
	const struct bl_agent_port port = {
		.port = 0, .neighbour = 9, .state = BL_AGENT_SILENT, .c = 5
	};
	const struct bl_agent_proc proc = { .port = 61696, .life = 3, .t = 9 };
	unsigned int n, k;

	(void)state;
	for (k = 0; k < 2; k++) {
		/*
		 * An agent without an answer must not take the silence for the end of the session.
		 */
		silence_ms = k ? 150 : 100000;
		start_agent(true);
		w.saves = k;
		bl_agent_away(w.a, 1000);
		run_until(k ? away_is_known : heard_away);
		n = w.n;
		bl_agent_changed(w.a);
		bl_agent_link_down(w.a, &port);
		bl_agent_proc_down(w.a, &proc);
		bl_agent_done(w.a, 1);
		run_for_ms(QUIET_MS);
		assert_int_equal(w.n, n);
		stop_agent();
	}
}

/*
 * The controller hangs up. Another one may lead, and knows of the absence from the store; a HELLO
 * would tell it the opposite.
 */
static void away__begins_no_session(void **state)
{
	unsigned int n;

	(void)state;
	start_agent(true);
	w.saves = true;
	bl_agent_away(w.a, 1000);
	run_until(away_is_known);
	n = w.n;
	close_session();
	run_for_ms(QUIET_MS);
	assert_int_equal(w.n, n);
	assert_int_equal(w.sessions, 1);
	stop_agent();
}

/* The leader dies before Away is saved: the agent sends Away to the next one, after the HELLO. */
static void away__is_said_again(void **state)
{
	unsigned int n;

	(void)state;
	start_agent(true);
	bl_agent_away(w.a, 1000);
	run_until(heard_away);
	n = w.n;
	w.saves = true;
	close_session();
	run_until(away_is_known);
	assert_int_equal(w.sessions, 2);
	assert_int_equal(w.heard[n], BL__TO_CONTROLLER__WHAT_HELLO);
	assert_true(heard_away());
	stop_agent();
}

/*
 * A controller that does not lead gets no Away, since it could not save it. One that leads soon
 * afterwards does.
 */
static void away__without_a_leader(void **state)
{
	unsigned int i;

	(void)state;
	start_agent(false);
	bl_agent_away(w.a, 1000);
	run_for_ms(50);
	for (i = 0; i < w.n; i++)
		assert_int_not_equal(w.heard[i], BL__TO_CONTROLLER__WHAT_AWAY);
	assert_false(away_is_known());
	w.leads = w.saves = true;
	close_session();
	run_until(away_is_known);
	stop_agent();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(away__is_said),           cmocka_unit_test(away__is_the_last_word),
		cmocka_unit_test(away__begins_no_session), cmocka_unit_test(away__is_said_again),
		cmocka_unit_test(away__without_a_leader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
