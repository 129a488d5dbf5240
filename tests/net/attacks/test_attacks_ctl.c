// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Strangers at the controller's port, beside a rack under load: they change nothing, nothing of
 * them is saved, and they keep nobody out.
 *
 * Covered elsewhere: bytes that are no messages (tests/net/controller/test_controller_input.c), a
 * false controller and its epochs (there, and in tests/unit/loader), certificates
 * (tests/net/controller).
 */
#include <jansson.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "proto/ctl.pb-c.h"
#include "tests/net/attacks/attack_rack.h"

#define CTL_PORT 61693
#define IDLE     600 /* connections */
#define INVENTED 300 /* nodes */

static int call_ctl(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(CTL_PORT),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Writes @m with its length before it into @buf. Returns the number of bytes. */
static size_t pack(const Bl__ToController *m, uint8_t *buf, size_t size)
{
	size_t len = bl__to_controller__get_packed_size(m);

	if (len + 4 > size)
		_exit(2);
	atk_put32(buf, (uint32_t)len);
	bl__to_controller__pack(m, buf + 4);
	return len + 4;
}

static void say(int fd, const Bl__ToController *m)
{
	uint8_t buf[4096];
	size_t len = pack(m, buf, sizeof(buf));

	if (fd >= 0 && send(fd, buf, len, MSG_NOSIGNAL) == (ssize_t)len)
		atk_did();
}

static void hello(int fd, uint32_t node, bool is_switch, const char *name)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__Hello h = BL__HELLO__INIT;
	uint8_t ip[16] = { [10] = 0xff, 0xff, 10, 99, (uint8_t)(node >> 8), (uint8_t)node };
	ProtobufCBinaryData addr = { sizeof(ip), ip };
	char text[32];

	snprintf(text, sizeof(text), "%s", name);
	h.version = 1;
	h.epoch = 1; /* of the first leader; WELCOME says so */
	h.node = node;
	h.kind = is_switch;
	h.name = text;
	h.n_addr = !is_switch;
	h.addr = &addr;
	m.what_case = BL__TO_CONTROLLER__WHAT_HELLO;
	m.hello = &h;
	say(fd, &m);
}

/* Lets the controller answer, and throws the answer away. */
static void listen_to(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char buf[4096];

	if (fd >= 0 && poll(&p, 1, 50) == 1 && read(fd, buf, sizeof(buf)) < 0)
		return;
}

static uint32_t id_of(unsigned int node)
{
	struct bl_node_cfg cfg;
	uint32_t id;

	if (lab_node_cfg(&rack.lab, &rack.lab.nodes[node], &cfg))
		_exit(3);
	id = cfg.node_id;
	free(cfg.ports);
	free(cfg.fdb);
	return id;
}

/* HELLO as h2, and its endpoints are gone. */
static void as_host(struct atk *a)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__ProcDown d = BL__PROC_DOWN__INIT;
	unsigned int i;

	m.what_case = BL__TO_CONTROLLER__WHAT_PROC_DOWN;
	m.proc_down = &d;
	while (atk_pace(a, 100000)) {
		int fd = call_ctl();

		hello(fd, id_of(rack_host(1)), false, "h2");
		listen_to(fd);
		for (i = 0; i < atk_workers; i++) {
			if (tr_sh->node[i].cfg.host != 1)
				continue;
			d.endpoint = BL_PORT_BASE + i;
			d.t = atk_now(a) & BL_TS_MASK;
			d.life = atk_life(i);
			say(fd, &m);
		}
		listen_to(fd);
		close(fd);
	}
}

/* HELLO as the switch, and all its links are down. */
static void as_switch(struct atk *a)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__LinkDown d = BL__LINK_DOWN__INIT;
	unsigned int i;

	m.what_case = BL__TO_CONTROLLER__WHAT_LINK_DOWN;
	m.link_down = &d;
	while (atk_pace(a, 100000)) {
		int fd = call_ctl();

		hello(fd, id_of(0), true, "s1");
		listen_to(fd);
		for (i = 0; i < ATK_HOSTS; i++) {
			d.port = i;
			d.neighbour = id_of(rack_host(i));
			d.c = atk_now(a) & BL_TS_MASK;
			d.death = 1;
			say(fd, &m);
		}
		listen_to(fd);
		close(fd);
	}
}

/* h1, h2, h3 and s1 */
static bool all_sessions(void)
{
	return times_said("\"state\":\"ok\"") == rack.lab.nnodes - 1;
}

/* An endpoint that is expelled fails the case, too. */
RACK_TEST(node__in_anothers_name)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	beside("HELLO as h2, PROC_DOWN of its endpoints",
	       &(struct atk_case){ .attack = as_host, .elsewhere = true });
	CHECK(strstr(ask(), "\"failures\":[]") && all_sessions(), "it had an effect: %s", ask());
	beside("HELLO as s1, LINK_DOWN of its ports",
	       &(struct atk_case){ .attack = as_switch, .elsewhere = true });
	CHECK(strstr(ask(), "\"failures\":[]") && all_sessions(), "it had an effect: %s", ask());
	rack_judge();
}

static void invented(struct atk *a)
{
	unsigned int i;

	for (i = 0; i < INVENTED && atk_pace(a, 2000); i++) {
		char name[32];
		int fd = call_ctl();

		snprintf(name, sizeof(name), "invented%u", i);
		hello(fd, 70000 + i, i & 1, name);
		listen_to(fd);
		close(fd);
	}
	atk_rest(a);
}

static bool attack_over(void)
{
	return TR_LOAD(atk_sh->over);
}

/* Returns how many invented nodes the controller knows. Those that it shows as strangers are not.
 */
static unsigned int invented_nodes(void)
{
	json_t *all = json_loads(ask(), 0, NULL), *node;
	unsigned int n = 0;
	size_t i;

	CHECK(json_is_array(json_object_get(all, "nodes")), "the controller names no nodes");
	json_array_foreach(json_object_get(all, "nodes"), i, node)
		n += !strncmp(json_string_value(json_object_get(node, "name")), "invented", 8);
	json_decref(all);
	return n;
}

RACK_TEST(nodes__invented)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	beside("300 nodes that nobody knows",
	       &(struct atk_case){ .attack = invented, .elsewhere = true, .least_ms = 3000 });
	CHECK(!invented_nodes(), "%u invented nodes are known", invented_nodes());
	/* a new start knows what was saved */
	ctl_kill();
	ctl_start(ATK_ANSWER_MS);
	UNTIL("waits for the controller to lead again", strstr(ask(), "\"state\":\"ok\""));
	CHECK(!invented_nodes(), "%u invented nodes were saved", invented_nodes());
	rack_judge();
}

/* Holds IDLE connections, always, and says nothing. */
static void idle(struct atk *a)
{
	int fd[IDLE];
	unsigned int i, n = 0;

	for (i = 0; i < IDLE; i++)
		fd[i] = -1;
	while (atk_on(a)) {
		for (i = 0; i < IDLE; i++) {
			struct pollfd p = { .fd = fd[i], .events = POLLIN };

			if (fd[i] >= 0 && poll(&p, 1, 0) == 1) {
				close(fd[i]);
				fd[i] = -1;
			}
			if (fd[i] < 0) {
				fd[i] = call_ctl();
				n += fd[i] >= 0;
				if (fd[i] >= 0)
					atk_did();
			}
		}
		if (n >= IDLE)
			TR_STORE(atk_sh->over, 1);
		usleep(5000);
	}
}

/* The same, and says a HELLO, a byte at a time. */
static void drip(struct atk *a)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__Hello h = BL__HELLO__INIT;
	char name[32] = "drop by drop, as slowly as it is";
	uint8_t buf[256];
	size_t len, at[IDLE] = { 0 };
	int fd[IDLE];
	unsigned int i;

	name[31] = 0;
	h.version = 1;
	h.node = id_of(rack_host(1));
	h.name = name;
	m.what_case = BL__TO_CONTROLLER__WHAT_HELLO;
	m.hello = &h;
	len = pack(&m, buf, sizeof(buf));
	for (i = 0; i < IDLE; i++)
		fd[i] = -1;
	while (atk_on(a)) {
		for (i = 0; i < IDLE; i++) {
			if (fd[i] >= 0 && at[i] < len - 1 &&
			    send(fd[i], buf + at[i], 1, MSG_NOSIGNAL) == 1) {
				at[i]++;
				continue;
			}
			if (fd[i] >= 0)
				close(fd[i]);
			fd[i] = call_ctl();
			at[i] = 0;
			if (fd[i] >= 0)
				atk_did();
		}
		TR_STORE(atk_sh->over, 1);
		usleep(200000);
	}
}

/* Agents whose sessions broke come back while strangers hold as many connections as they get. */
static void come_back_beside(const char *what, void (*attack)(struct atk *a))
{
	fprintf(stderr, "  %s:\n", what);
	atk_start(ATK_NO_HOST, attack, 0);
	CHECK(tr_until(attack_over, 60000), "the attacker does not get so far");
	beside_nothing();
	ctl_kill();
	ctl_start(ATK_ANSWER_MS);
	UNTIL("waits for all agents to come back", all_sessions());
	atk_stop();
}

RACK_TEST(strangers__hold_connections)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	come_back_beside("600 connections that say nothing", idle);
	come_back_beside("600 that say a byte five times a second", drip);
	rack_judge();
}

/* The status socket: callers that neither read nor hang up. */
static void deaf(struct atk *a)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	unsigned int i;
	int fd[200];

	snprintf(sa.sun_path, sizeof(sa.sun_path), BL_RUN_DIR BL_CTL_STATUS,
		 (unsigned long long)bl_netns_ino(), (int)a->arg);
	for (i = 0; i < 200; i++) {
		fd[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (!connect(fd[i], (struct sockaddr *)&sa, sizeof(sa)))
			atk_did();
		if (i & 1)
			shutdown(fd[i], SHUT_WR);
	}
	atk_rest(a);
}

RACK_TEST(status__nobody_reads)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	beside("200 callers of the controller's status that do not read",
	       &(struct atk_case){ .attack = deaf, .arg = (uint64_t)ctl, .elsewhere = true });
	UNTIL("waits for the status", *ask());
	rack_judge();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node__in_anothers_name),
		cmocka_unit_test(nodes__invented),
		cmocka_unit_test(strangers__hold_connections),
		cmocka_unit_test(status__nobody_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
