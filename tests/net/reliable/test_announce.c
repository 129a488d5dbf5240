// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The addresses in announcements of failures. A host is told of a failure by the addresses of the
 * failed node, and no host reports DONE for an announcement that it could not pass on to its
 * endpoints. The rack's nodes have their agents, and there is one controller. Endpoints are idle;
 * what they hear is counted.
 */
#include "tests/net/traffic.h"

#include "tests/net/controller/controller.h"
#include "proto/ctl.pb-c.h"
#include "loader/order/agent.h"
#include "loader/order/endpoint_pages.h"
#include "loader/order/events.h"

#define WAIT_MS   60000
#define ANSWER_MS 20000
/*
 * Longer than any CPU stands still: a node that is excluded besides those of the case has really
 * been silent.
 */
#define DEAD_US  1500000
#define LATER_MS 800 /* more than a quarter of DEAD_US, the period of the checks for silence */

static const char *without; /* the node without controllers */

static void name_most(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	cfg->dead_after_us = DEAD_US;
	if (!without || strcmp(n->name, without))
		name_controller(cfg, n);
}

static unsigned int want_ok;

static bool enough_ok(void)
{
	return times_said("\"state\":\"ok\"") == want_ok;
}

static void open_rack(unsigned int hosts, bool all)
{
	unsigned int i;

	ctl_start(ANSWER_MS);
	rack.lab.spec.hosts = hosts;
	rack.tweak = name_most;
	rack_open();
	want_ok = rack.lab.nnodes - !all;
	CHECK(tr_until(enough_ok, WAIT_MS), "not all nodes are there: %s", ask());
	for (i = 0; i < hosts; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = tr_mix,
					 .reliable = true,
					 .until_enough = true,
					 .to = 1ULL << i,
					 .gap_us = 100000,
					 .len = 100,
					 .scatterings = 1 });
	tr_go();
}

static uint64_t listeners;

static bool all_heard(void)
{
	uint32_t i;

	for (i = 0; i < tr_sh->count; i++)
		if ((listeners >> i & 1) && !TR_LOAD(tr_sh->node[i].nproc_failed))
			return false;
	return true;
}

/*
 * Removes the addresses of a host. An endpoint keeps the address that it was given, and others know
 * it by that. A NIC that has lost the address since must not leave it without an owner.
 */
static void lose_addresses(unsigned int host)
{
	int home = rack_away(rack_host(host));

	CHECK(!system("ip addr flush dev eth0 scope global"), "ip");
	rack_back(home);
}

RACK_TEST(process__host_has_lost_its_addresses)
{
	open_rack(3, true);
	lose_addresses(0);
	tr_kill(0);
	listeners = 0x6;
	CHECK(tr_until(all_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	CHECK(tr_until(all_heard, WAIT_MS), "it is finished, and not everybody has heard of it: %s",
	      ask());
}

RACK_TEST(host__has_lost_its_addresses)
{
	open_rack(3, true);
	lose_addresses(0);
	/* The node reports its state whenever any of it changes. */
	bl_event_changed(rack.node[rack_host(0)]);
	tr_pass(300);
	tr_sh->node[0].may_die = true;
	rack_link(0, "h1", false);
	listeners = 0x6;
	CHECK(tr_until(all_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	CHECK(tr_until(all_heard, WAIT_MS), "it is finished, and not everybody has heard of it: %s",
	      ask());
}

static bool h1_missing(void)
{
	return strstr(ask(), "\"step\":\"announced\",") && strstr(ask(), "\"waits\":1,");
}

/*
 * A host whose daemon cannot write the page of failures is waited for, and reports DONE when its
 * endpoints have heard.
 */
RACK_TEST(page__cannot_be_written)
{
	int fd;

	open_rack(3, true);
	fd = bl_failures_replace(rack.node[rack_host(0)], -1);
	tr_kill(1);
	CHECK(tr_until(h1_missing, WAIT_MS), "it is not waited for: %s", ask());
	tr_pass(300);
	CHECK(h1_missing(), "it said DONE of what it could not announce: %s", ask());
	CHECK(!tr_sh->node[0].nproc_failed, "it heard of it all the same: this proves nothing");
	bl_failures_replace(rack.node[rack_host(0)], fd);
	listeners = 0x5;
	CHECK(tr_until(all_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	CHECK(tr_until(all_heard, WAIT_MS), "it is finished, and not everybody has heard of it: %s",
	      ask());
}

/*
 * A host without an agent has reported no address, so nobody can be told what to discard. The
 * others continue all the same, and the status shows it.
 */
RACK_TEST(host__without_an_agent)
{
	without = "h3";
	open_rack(3, false);
	tr_sh->node[2].may_die = true;
	rack_link(0, "h3", false);
	CHECK(tr_until(all_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	CHECK(strstr(ask(), "(no address)\"") && strstr(ask(), "\"unnamed\":1"),
	      "nobody says that it has no address: %s", ask());
}

/* ---- other failures ---- */

/*
 * Returns the number of failures that are finished, if none is open. *@others receives the nodes
 * that failed and are not @node.
 */
static unsigned int ended(json_int_t node, unsigned int *others)
{
	json_t *o = json_loads(ask(), 0, NULL), *f, *who;
	unsigned int n = 0;
	size_t i, k;

	*others = 0;
	json_array_foreach(json_object_get(o, "failures"), i, f)
	{
		n += !strcmp(json_string_value(json_object_get(f, "step")), "finished") &&
		     json_array_size(json_object_get(f, "failed"));
		json_array_foreach(json_object_get(f, "failed"), k, who) *others +=
			json_integer_value(json_object_get(who, "node")) != node;
	}
	json_decref(o);
	return n;
}

static unsigned int rounds;

static bool again(void)
{
	unsigned int others;

	return ended(4, &others) >= rounds;
}

static bool here(void)
{
	return times_said("\"state\":\"ok\"") == rack.lab.nnodes;
}

/*
 * A leaf-spine without any traffic. A node that waits for a silent one sends nothing new for as
 * long as it waits. Its neighbours, which are as patient, must not take it for dead as well.
 */
RACK_TEST(idle__host_dies_alone)
{
	unsigned int others, s2;

	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	ctl_start(ANSWER_MS);
	rack.lab.spec.hosts = 4;
	rack.tweak = name_most;
	rack_open();
	for (s2 = 0; strcmp(rack.lab.nodes[s2].name, "s2"); s2++)
		;
	CHECK(tr_until(here, WAIT_MS), "not all nodes are there: %s", ask());
	for (rounds = 1; rounds <= 5; rounds++) {
		rack_link(s2, "h4", false);
		CHECK(tr_until(again, WAIT_MS), "h4 is not announced: %s", ask());
		tr_pass(LATER_MS);
		CHECK(ended(4, &others) >= rounds && !others,
		      "%u others were announced with h4, in %u rounds: %s", others, rounds, ask());
		rack_link(s2, "h4", true);
		CHECK(tr_until(here, WAIT_MS), "h4 does not join anew: %s", ask());
		tr_pass(100);
	}
}

/* ---- an agent, and a fake controller ---- */

static sd_event *ev;
static unsigned int fails;

static void on_tell(void *ctx, struct bl_agent_node *v)
{
	v->node_id = 7;
	v->host = true;
}

static void on_epoch(void *ctx, uint64_t epoch)
{
}

static int on_bar(void *ctx, const uint32_t *port, unsigned int n)
{
	return 0;
}

static void on_fail(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n)
{
	fails++;
}

static const struct bl_agent_ops ops = {
	.tell = on_tell, .epoch = on_epoch, .bar = on_bar, .fail = on_fail
};

static int accept_one(int listener)
{
	uint64_t until = t_mono() + WAIT_MS * 1000000ULL;
	struct pollfd p = { .fd = listener, .events = POLLIN };

	while (poll(&p, 1, 0) != 1) {
		CHECK(t_mono() < until, "the agent does not come");
		CHECK(sd_event_run(ev, 10000) >= 0, "the event loop");
	}
	return accept(listener, NULL, NULL);
}

static void say(int fd, Bl__ToAgent *m)
{
	uint8_t buf[4096] = { 0 };
	size_t len;

	m->epoch = 1;
	len = bl__to_agent__get_packed_size(m);
	CHECK(len + 4 <= sizeof(buf), "%zu", len);
	buf[2] = (uint8_t)(len >> 8);
	buf[3] = (uint8_t)len;
	bl__to_agent__pack(m, buf + 4);
	CHECK(write(fd, buf, len + 4) == (ssize_t)len + 4, "%s", strerror(errno));
}

/*
 * Invalid addresses, too many addresses, or no address for a process: the session ends, the error
 * is counted, and nothing is done. A node without addresses is valid.
 */
RACK_TEST(fail__addresses_not_understood)
{
	static const struct {
		uint32_t port, naddrs;
		size_t len;
		bool good;
	} t[] = { { 0, 1, 4, false },
		  { 0, 1, 17, false },
		  { 0, 1, 0, false },
		  { 0, BL_AGENT_ADDRS_MAX + 1, 16, false },
		  { 61697, 0, 16, false },
		  { 65536, 1, 16, false },
		  { 0, BL_AGENT_ADDRS_MAX, 16, true },
		  { 61697, 1, 16, true },
		  { 0, 0, 16, true } };
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(61693),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	/* No session ends because this process had no CPU for a while. */
	struct bl_agent_cfg cfg = { .ncontrollers = 1, .silence_ms = WAIT_MS };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, fd;
	static uint8_t bytes[32] = { 1 };
	uint64_t until, good = 0, bad = 0;
	struct bl_agent_total total;
	struct bl_agent *a;
	struct bl_err err;
	unsigned int i, k;

	CHECK(!bl_iface_up("lo", &err), "%s", err.text);
	CHECK(sd_event_new(&ev) >= 0, "an event loop");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	CHECK(!bind(listener, (struct sockaddr *)&sa, sizeof(sa)) && !listen(listener, 16), "%s",
	      strerror(errno));
	snprintf(cfg.controllers[0], sizeof(cfg.controllers[0]), "127.0.0.1:61693");
	CHECK(!bl_agent_new(&a, ev, &cfg, &ops, NULL, &err), "%s", err.text);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		Bl__ToAgent m = BL__TO_AGENT__INIT, hello = BL__TO_AGENT__INIT;
		ProtobufCBinaryData addr[BL_AGENT_ADDRS_MAX + 1];
		Bl__Welcome wel = BL__WELCOME__INIT;
		Bl__Failure f = BL__FAILURE__INIT;
		Bl__Failed who = BL__FAILED__INIT, *list[1] = { &who };

		for (k = 0; k < t[i].naddrs; k++)
			addr[k] = (ProtobufCBinaryData){ t[i].len, bytes };
		who.node = 8;
		who.port = t[i].port;
		who.n_addr = t[i].naddrs;
		who.addr = addr;
		f.number = i + 1;
		f.n_failed = 1;
		f.failed = list;
		hello.what_case = BL__TO_AGENT__WHAT_WELCOME;
		hello.welcome = &wel;
		m.what_case = BL__TO_AGENT__WHAT_FAIL;
		m.fail = &f;
		fd = accept_one(listener);
		say(fd, &hello);
		say(fd, &m);
		good += t[i].good;
		bad += !t[i].good;
		until = t_mono() + WAIT_MS * 1000000ULL;
		do {
			CHECK(t_mono() < until, "case %u: %u taken, %" PRIu64 " refused", i, fails,
			      total.reasons[BL_AGENT_BAD_MESSAGE]);
			CHECK(sd_event_run(ev, 10000) >= 0, "the event loop");
			bl_agent_read(a, &total);
		} while (fails + total.reasons[BL_AGENT_BAD_MESSAGE] < good + bad);
		CHECK(fails == good && total.reasons[BL_AGENT_BAD_MESSAGE] == bad,
		      "case %u: %u taken, %" PRIu64 " refused", i, fails,
		      total.reasons[BL_AGENT_BAD_MESSAGE]);
		CHECK(t[i].good || strstr(total.trouble, "addresses"), "case %u: %s", i,
		      total.trouble);
		close(fd);
	}
	bl_agent_free(a);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process__host_has_lost_its_addresses),
		cmocka_unit_test(host__has_lost_its_addresses),
		cmocka_unit_test(page__cannot_be_written),
		cmocka_unit_test(host__without_an_agent),
		cmocka_unit_test(idle__host_dies_alone),
		cmocka_unit_test(fail__addresses_not_understood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
