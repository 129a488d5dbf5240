// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A controller without TLS on a loopback address, and strangers who reach its port
 * (controller_world.h): attacks C1 to C6 of the review of November 2026. C7, junk, is in
 * test_controller_input.c. Honest nodes keep their sessions, nobody is announced, nothing is saved,
 * and each attempt is counted by its name. Then how nodes are admitted and removed.
 */
#include "tests/net/controller/raw_client.h"

#include <sys/resource.h>

#define HOSTILE 50

/* The nodes of controller_world.h, without those in @but; the list stays. */
static void list_nodes(uint32_t but)
{
	static struct bl_ctl_node v[HOSTS + 2];
	uint32_t i, n = 0;

	for (i = 1; i <= SWITCH; i++)
		if ((i <= HOSTS || i == SWITCH) && i != but)
			v[n++].id = i;
	w.cfg[0].nodes = v;
	w.cfg[0].nnodes = n;
}

static void open_world(uint32_t but)
{
	configure(1, BL_RUN_DIR "/ctl.db");
	list_nodes(but);
}

static uint64_t sessions_of(uint32_t id)
{
	struct bl_agent_total t;

	bl_agent_read(w.n[id].a, &t);
	return t.sessions;
}

static bool in_trouble(uint32_t id, const char *words)
{
	struct bl_agent_total t;

	bl_agent_read(w.n[id].a, &t);
	return !t.welcome && strstr(t.trouble, words);
}

static void say_proc_down(int fd, uint16_t port, uint32_t why, uint64_t t)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__ProcDown p = BL__PROC_DOWN__INIT;

	p.endpoint = port;
	p.t = t;
	p.life = (uint32_t)(t % 60000) + 1;
	p.why = why;
	m.what_case = BL__TO_CONTROLLER__WHAT_PROC_DOWN;
	m.proc_down = &p;
	say(fd, &m);
}

static bool nobody_failed(void)
{
	return strstr(ask(0), "\"failures\":[]") != NULL;
}

/* C1: HELLO as h2, then PROC_DOWN. h2's own session answers, so it stays, and h2's process lives.
 */
RACK_TEST(session__of_a_host_stays_its_own)
{
	Bl__Hello h = hello_of(2, BL_DET_HOST);
	uint64_t sessions;
	int fd;

	open_world(0);
	ctl_start(0);
	rack_up();
	sessions = sessions_of(2);
	h.epoch = 1;
	fd = raw();
	say_hello(fd, &h);
	CHECK(hung_up(fd), "h2's place is taken");
	UNTIL(counted("taken") == 1);
	/* HELLO and report at once: the report comes before the HELLO is decided about. */
	fd = raw();
	say_hello(fd, &h);
	say_proc_down(fd, 61696, 0, 700);
	CHECK(hung_up(fd), "the report is believed");
	CHECK(nobody_failed(), "%s", ask(0));
	CHECK(welcome(2) && sessions_of(2) == sessions, "h2 was hung up on");
	CHECK(!strstr(ask(0), "\"name\":\"raw\""), "the name is believed");
}

/* C2: HELLO as the switch, then LINK_DOWN of its ports. */
RACK_TEST(session__of_a_switch_stays_its_own)
{
	Bl__Hello h = hello_of(SWITCH, BL_DET_SWITCH);
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__LinkDown d = BL__LINK_DOWN__INIT;
	Bl__Port port = BL__PORT__INIT, *ports[1] = { &port };
	uint64_t sessions;
	int fd;

	open_world(0);
	ctl_start(0);
	rack_up();
	sessions = sessions_of(SWITCH);
	port.neighbour = 1;
	port.state = BL_AGENT_SILENT;
	port.c = 900;
	h.epoch = 1;
	h.n_port = 1;
	h.port = ports;
	fd = raw();
	say_hello(fd, &h);
	CHECK(hung_up(fd), "the switch's place is taken");
	fd = raw();
	say_hello(fd, &h);
	d.neighbour = 1;
	d.c = 900;
	d.death = 1;
	m.what_case = BL__TO_CONTROLLER__WHAT_LINK_DOWN;
	m.link_down = &d;
	say(fd, &m);
	CHECK(hung_up(fd), "the report is believed");
	CHECK(nobody_failed(), "%s", ask(0));
	CHECK(welcome(SWITCH) && sessions_of(SWITCH) == sessions, "the switch was hung up on");
}

/*
 * A session that does not answer gives its place up: the machine of that daemon was switched off,
 * and nobody has closed the connection.
 */
RACK_TEST(session__that_is_dead_is_replaced)
{
	Bl__Hello h = hello_of(3, BL_DET_HOST);
	int fd;

	open_world(0);
	ctl_start(0);
	UNTIL(leader_now() == 0);
	fd = raw();
	say_hello(fd, &h);
	UNTIL(strstr(ask(0), "\"name\":\"raw\""));
	node_up(3);
	UNTIL(welcome(3));
	CHECK(sessions_of(3) == 1, "it was sent away %" PRIu64 " times", sessions_of(3) - 1);
	CHECK(hung_up(fd), "the dead session stays");
	CHECK(!counted("taken"), "%s", ask(0));
}

/*
 * C3 and C4: 300 HELLOs of invented nodes. Nothing of them is saved or counted as a node: a host
 * that does not answer is still taken for failed, and after a restart the controller knows as many
 * nodes as before.
 */
RACK_TEST(strangers__change_nothing)
{
	uint64_t saved;
	unsigned int i;

	open_world(0);
	w.cfg[0].answer_ms = 1000;
	ctl_start(0);
	rack_up();
	saved = counted("saved");
	for (i = 0; i < 300; i++) {
		Bl__Hello h = hello_of(5000 + i, BL_DET_HOST);
		int fd = raw();

		say_hello(fd, &h);
		CHECK(hung_up(fd), "node %u is welcome", 5000 + i);
	}
	CHECK(counted("not_admitted") == 300, "%s", ask(0));
	CHECK(counted("saved") == saved, "%s", ask(0));
	/* The last sixteen are shown, and no row of a node is about them. */
	CHECK(times_said("\"ago_ns\":") == 16 && times_said("\"admitted\":") == HOSTS + 1, "%s",
	      ask(0));
	w.n[4].hold = true;
	host_dies(2);
	UNTIL(times_said("\"state\":\"failed\"") == 2);
	ctl_kill(0);
	ctl_start(0);
	UNTIL(leader_now() == 0);
	CHECK(times_said("\"admitted\":") == HOSTS + 1, "%s", ask(0));
}

/* C5: an epoch that no election has reached, said by a node that is admitted. */
RACK_TEST(hello__with_a_far_epoch)
{
	static struct bl_ctl_node one = { .id = HOSTILE, .name = "hostile" };
	Bl__Hello h = hello_of(HOSTILE, BL_DET_HOST);
	int fd;

	open_world(0);
	w.cfg[0].nodes = &one;
	w.cfg[0].nnodes = 1;
	ctl_start(0);
	UNTIL(leader_now() == 0);
	h.epoch = 1ULL << 63;
	fd = raw();
	say_hello(fd, &h);
	CHECK(hung_up(fd), "it is welcome");
	CHECK(counted("epoch_far") == 1 && strstr(ask(0), "\"trouble\":\"\""), "%s", ask(0));
	/* A later epoch that is honest is shown for as long as that node has a session. */
	h.epoch = 5;
	fd = raw();
	say_hello(fd, &h);
	UNTIL(strstr(ask(0), "obeys epoch 5 already"));
	close(fd);
	UNTIL(!strstr(ask(0), "obeys epoch"));
}

/*
 * C6: 600 idle connections, from the very address of the nodes. A node whose session broke comes
 * back while they stand.
 */
RACK_TEST(connections__of_strangers_leave_room)
{
	struct rlimit files = { 4096, 4096 };
	struct pollfd idle[600];
	unsigned int i, standing = 0;
	char c;

	CHECK(!setrlimit(RLIMIT_NOFILE, &files), "%s", strerror(errno));
	open_world(0);
	/* No connection of the test ends because its time is over. */
	w.cfg[0].silence_ms = 10 * WAIT_S * 1000;
	ctl_start(0);
	rack_up();
	for (i = 0; i < 600; i++) {
		idle[i].fd = raw();
		CHECK(!fcntl(idle[i].fd, F_SETFL, O_NONBLOCK), "%s", strerror(errno));
	}
	UNTIL(counted("sessions") >= 605);
	node_down(1);
	node_up(1);
	UNTIL(welcome(1));
	for (i = 0; i < 600; i++) {
		standing += read(idle[i].fd, &c, 1) < 0 && errno == EAGAIN;
		close(idle[i].fd);
	}
	CHECK(standing >= 64, "%u connections stood when the node came back", standing);
	CHECK(!counted("silent"), "%s", ask(0));
}

/*
 * Who says no HELLO is not kept by pings, and a flood of connections that renew themselves leaves
 * room, too.
 */
RACK_TEST(connections__of_strangers_end)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__Number n = BL__NUMBER__INIT;
	struct pollfd p = { .events = POLLIN };
	uint64_t end;
	char buf[64];
	bool over = false;

	open_world(0);
	ctl_start(0);
	UNTIL(leader_now() == 0);
	m.what_case = BL__TO_CONTROLLER__WHAT_PING;
	m.ping = &n;
	p.fd = raw();
	end = t_mono() + WAIT_S * 1000000000ULL;
	while (!over) {
		CHECK(t_mono() < end, "pings keep it open");
		if (counted("silent"))
			break;
		say(p.fd, &m);
		while (poll(&p, 1, 50) == 1 && !over)
			over = read(p.fd, buf, sizeof(buf)) <= 0;
	}
	UNTIL(counted("silent") == 1);
	close(p.fd);
}

/*
 * C4 by a node that is admitted: it changes what it says of itself with every message, and reports
 * processes that leave. What it makes the controller save is bounded; the others are served.
 */
RACK_TEST(quota__of_a_node_that_floods)
{
	static struct bl_ctl_node v[HOSTS + 2];
	Bl__Hello h = hello_of(HOSTILE, BL_DET_HOST);
	uint64_t begun, saved;
	unsigned int i;
	char name[16];
	double s;
	int fd;

	open_world(0);
	memcpy(v, w.cfg[0].nodes, w.cfg[0].nnodes * sizeof(*v));
	v[HOSTS + 1].id = HOSTILE;
	w.cfg[0].nodes = v;
	w.cfg[0].nnodes = HOSTS + 2;
	w.cfg[0].silence_ms = 10 * WAIT_S * 1000;
	ctl_start(0);
	rack_up();
	saved = counted("saved");
	begun = t_mono();
	fd = raw();
	h.name = name;
	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "name%u", i);
		say_hello(fd, &h);
		/* Time for a write: what changes during a write is written once. */
		serve_ms(1);
	}
	UNTIL(counted("slowed"));
	serve_ms(1000);
	s = (double)(t_mono() - begun) / 1e9;
	saved = counted("saved") - saved;
	CHECK(saved <= 24 + 2 * s, "%" PRIu64 " records in %.1f s", saved, s);
	/* The others are served meanwhile. */
	host_dies(2);
	UNTIL(w.n[SWITCH].port[1].state == BL_AGENT_REMOVED);
	close(fd);
}

/*
 * What a switch says of its ports changes with the hosts behind them, so a host that comes and goes
 * must not have the switch wait: what it reports, and answers, would be late for everybody.
 */
RACK_TEST(quota__of_a_switch_whose_hosts_change)
{
	unsigned int i;

	open_world(0);
	ctl_start(0);
	rack_up();
	for (i = 0; i < 60; i++) {
		w.n[SWITCH].port[3].neighbour = i & 1 ? 4 : 0;
		bl_agent_changed(w.n[SWITCH].a);
		/* Time for a write: what changes during a write is written once. */
		serve_ms(20);
	}
	host_dies(2);
	UNTIL(w.n[SWITCH].port[1].state == BL_AGENT_REMOVED);
	CHECK(counted("saved") >= 30, "%s", ask(0));
	CHECK(!counted("slowed"), "%s", ask(0));
}

/* ---- admitted and removed ---- */

static const char *tell(const char *command)
{
	return ctl_tell(w.ctl[0], command);
}

RACK_TEST(nodes__are_admitted_and_removed)
{
	open_world(4);
	ctl_start(0);
	node_up(SWITCH);
	node_up(1);
	node_up(2);
	node_up(3);
	node_up(4);
	UNTIL(in_trouble(4, "node 4 is not admitted"));
	UNTIL(strstr(ask(0), "\"strangers\":[{\"node\":4,\"name\":\"h4\""));
	CHECK(strstr(tell("admit 0 h4\n"), "unknown command"), "%s", tell("admit 0 h4\n"));
	CHECK(strstr(tell("admit 4 h4;ls\n"), "unknown command"), "a name");
	CHECK(strstr(tell("admit 4 h4\n"), "node 4 (h4) is admitted"), "admit");
	CHECK(strstr(tell("admit 4 h4\n"), "admitted already"), "twice");
	UNTIL(all_welcome() && all_linked());
	/* It is saved. */
	ctl_kill(0);
	ctl_start(0);
	UNTIL(leader_now() == 0);
	UNTIL(all_welcome() && all_linked());
	CHECK(strstr(tell("remove 77\n"), "no such node"), "unknown");
	CHECK(strstr(tell("remove 1\n"), "in the file"), "of the file");
	CHECK(strstr(tell("remove 4\n"), "has a session"), "with a session");
	CHECK(nobody_failed(), "%s", ask(0));
	/* By force: it is announced as failed, all that is settled, and then it is gone. */
	UNTIL(strstr(tell("remove 4 force\n"), "node 4 is removed"));
	UNTIL(w.n[SWITCH].port[3].state == BL_AGENT_REMOVED);
	CHECK(strstr(ask(0), "\"why\":\"down\"") && w.n[1].told[1] && w.n[1].done[1], "%s", ask(0));
	UNTIL(in_trouble(4, "node 4 is not admitted"));
	ctl_kill(0);
	ctl_start(0);
	UNTIL(welcome(1));
	UNTIL(in_trouble(4, "node 4 is not admitted"));
	CHECK(w.n[SWITCH].barred[3], "it is not barred any more");
	/* Admitted again, it joins anew. */
	UNTIL(strstr(tell("admit 4 h4\n"), "is admitted"));
	UNTIL(welcome(4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(session__of_a_host_stays_its_own),
		cmocka_unit_test(session__of_a_switch_stays_its_own),
		cmocka_unit_test(session__that_is_dead_is_replaced),
		cmocka_unit_test(strangers__change_nothing),
		cmocka_unit_test(hello__with_a_far_epoch),
		cmocka_unit_test(connections__of_strangers_leave_room),
		cmocka_unit_test(connections__of_strangers_end),
		cmocka_unit_test(quota__of_a_node_that_floods),
		cmocka_unit_test(quota__of_a_switch_whose_hosts_change),
		cmocka_unit_test(nodes__are_admitted_and_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
