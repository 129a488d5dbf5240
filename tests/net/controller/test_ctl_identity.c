// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sessions with the certificates of `barline pki` (proto/pki.h), between a controller and agents
 * (controller_world.h): attack T1 of the review of November 2026. A certificate is good for one
 * node, or for a controller, and for one rack.
 */
#include "tests/net/controller/raw_client.h"

#include "proto/pki.h"

#define OURS   BL_RUN_DIR "/ours"
#define THEIRS BL_RUN_DIR "/theirs"

static void issue(const char *dir, const char *name, enum bl_ident_role role, uint32_t node)
{
	const struct bl_pki_req q = { .name = name, .role = role, .node = node, .days = 10 };
	struct bl_err err;

	CHECK(!bl_pki_issue(dir, &q, &err), "%s", err.text);
}

static void make_authorities(void)
{
	struct bl_err err;
	char name[16];
	uint32_t i;

	CHECK(!bl_pki_init(OURS, "ours", 10, &err), "%s", err.text);
	CHECK(!bl_pki_init(THEIRS, "theirs", 10, &err), "%s", err.text);
	issue(OURS, "ctl1", BL_IDENT_CONTROLLER, 0);
	issue(THEIRS, "ctl1", BL_IDENT_CONTROLLER, 0);
	for (i = 1; i <= SWITCH; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		issue(OURS, name, BL_IDENT_NODE, i);
	}
	issue(THEIRS, "n1", BL_IDENT_NODE, 1);
}

static struct bl_session_tls *tls_of(const char *dir, const char *name)
{
	struct bl_session_tls *t;
	char path[3][128];
	struct bl_err err;

	snprintf(path[0], sizeof(path[0]), "%s/ca.pem", dir);
	snprintf(path[1], sizeof(path[1]), "%s/%s.pem", dir, name);
	snprintf(path[2], sizeof(path[2]), "%s/%s.key", dir, name);
	CHECK(!bl_session_tls_new(&t, path[0], path[1], path[2], &err), "%s", err.text);
	return t;
}

static void give_certificate(struct bl_ctl_cfg *c, const char *dir, const char *name)
{
	snprintf(c->ca, sizeof(c->ca), "%s/ca.pem", dir);
	snprintf(c->cert, sizeof(c->cert), "%s/%s.pem", dir, name);
	snprintf(c->key, sizeof(c->key), "%s/%s.key", dir, name);
}

static void rack_with_certificates(void)
{
	char name[16];
	uint32_t i;

	make_authorities();
	configure(1, BL_RUN_DIR "/ctl.db");
	give_certificate(&w.cfg[0], OURS, "ctl1");
	ctl_start(0);
	UNTIL(leader_now() == 0);
	for (i = 1; i <= SWITCH; i++) {
		if (i > HOSTS && i < SWITCH)
			continue;
		snprintf(name, sizeof(name), "n%u", i);
		w.tls = tls_of(OURS, name);
		node_up(i);
	}
	UNTIL(all_welcome() && all_linked());
}

/** struct liar - A client with a certificate that says what it likes. */
struct liar {
	struct bl_session *s;
	Bl__Hello hello;
	bool over;
	char why[256];
};

static void liar_up(void *ctx)
{
	struct liar *l = ctx;
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__ProcDown p = BL__PROC_DOWN__INIT;
	uint8_t buf[1024];

	m.what_case = BL__TO_CONTROLLER__WHAT_HELLO;
	m.hello = &l->hello;
	bl_session_send(l->s, buf, bl__to_controller__pack(&m, buf));
	p.endpoint = 61696;
	p.t = 700;
	m.what_case = BL__TO_CONTROLLER__WHAT_PROC_DOWN;
	m.proc_down = &p;
	bl_session_send(l->s, buf, bl__to_controller__pack(&m, buf));
}

static void liar_message(void *ctx, const uint8_t *body, size_t len)
{
	(void)ctx, (void)body, (void)len;
}

static void liar_down(void *ctx, const char *why)
{
	struct liar *l = ctx;

	l->s = NULL;
	l->over = true;
	snprintf(l->why, sizeof(l->why), "%s", why);
}

static void lie(struct liar *l, struct bl_session_tls *tls, uint32_t node, uint32_t kind)
{
	static const struct bl_session_ops ops_of = { liar_up, liar_message, liar_down };
	struct sockaddr_storage sa;
	struct bl_err err;
	socklen_t len;

	*l = (struct liar){ .hello = hello_of(node, kind) };
	l->hello.epoch = 1;
	CHECK(!bl_session_addr(w.cfg[0].listen, &sa, &len), "the address");
	CHECK(!bl_session_connect(&l->s, ev, (struct sockaddr *)&sa, len, tls, &ops_of, l, &err),
	      "%s", err.text);
	UNTIL(l->over);
	bl_session_tls_free(tls);
}

/* T1: the certificate of h4 says that it is node 2, or the switch, and that a process has died. */
RACK_TEST(identity__of_another_node)
{
	struct bl_agent_total t;
	struct liar l;

	rack_with_certificates();
	lie(&l, tls_of(OURS, "n4"), 2, BL_DET_HOST);
	UNTIL(counted("forged") == 1);
	lie(&l, tls_of(OURS, "n4"), SWITCH, BL_DET_SWITCH);
	UNTIL(counted("forged") == 2);
	CHECK(strstr(ask(0), "\"failures\":[]"), "%s", ask(0));
	bl_agent_read(w.n[2].a, &t);
	CHECK(t.welcome && t.sessions == 1, "h2 was hung up on");
	bl_agent_read(w.n[4].a, &t);
	CHECK(t.welcome && t.sessions == 1, "h4 was hung up on");
}

/* Not a node of this rack at all: a controller's certificate, another rack's, and none. */
RACK_TEST(identity__of_no_node)
{
	struct liar l;
	int fd;

	rack_with_certificates();
	lie(&l, tls_of(OURS, "ctl1"), 2, BL_DET_HOST);
	UNTIL(counted("bad_session") == 1);
	lie(&l, tls_of(THEIRS, "n1"), 1, BL_DET_HOST);
	UNTIL(counted("bad_session") == 2);
	/* no TLS */
	l.hello = hello_of(2, BL_DET_HOST);
	fd = raw();
	say_hello(fd, &l.hello);
	CHECK(hung_up(fd), "without TLS");
	UNTIL(counted("bad_session") == 3);
	CHECK(strstr(ask(0), "\"failures\":[]"), "%s", ask(0));
	UNTIL(all_welcome());
}

/* A node's certificate cannot act as a controller: the agent says whose it is, and stays away. */
RACK_TEST(identity__of_no_controller)
{
	struct bl_session_tls *t;
	struct bl_agent_total a;
	struct bl_err err;
	struct bl_ctl *c;

	make_authorities();
	configure(1, BL_RUN_DIR "/ctl.db");
	give_certificate(&w.cfg[0], OURS, "n4");
	CHECK(bl_ctl_new(&c, &w.cfg[0], &err) == -EINVAL && strstr(err.text, "barline://ours/node/"
									     "4, which is not a "
									     "controller"),
	      "%s", err.text);
	/* A controller of another rack, of an authority that the agent does not know. */
	give_certificate(&w.cfg[0], THEIRS, "ctl1");
	ctl_start(0);
	UNTIL(leader_now() == 0);
	w.tls = t = tls_of(OURS, "n1");
	node_up(1);
	UNTIL((bl_agent_read(w.n[1].a, &a), a.sessions > 1 && strstr(a.trouble, "NOT trusted")));
	node_down(1);
	/* The daemon's own check names the next step. */
	CHECK(!bl_session_tls_expect(t, BL_IDENT_NODE, 1, &err), "%s", err.text);
	CHECK(bl_session_tls_expect(t, BL_IDENT_NODE, 2, &err) == -EINVAL &&
		      strstr(err.text, "`barline pki issue NODE --id 2` makes one"),
	      "%s", err.text);
	bl_session_tls_free(t);
}

/* A certificate that is renewed while the agent runs is used for its next session. */
RACK_TEST(identity__renewed)
{
	struct bl_agent_total a;
	struct bl_err err;
	uint64_t sessions;

	make_authorities();
	configure(1, BL_RUN_DIR "/ctl.db");
	give_certificate(&w.cfg[0], OURS, "ctl1");
	ctl_start(0);
	UNTIL(leader_now() == 0);
	w.tls = tls_of(OURS, "n1");
	node_up(1);
	UNTIL(welcome(1));
	bl_agent_read(w.n[1].a, &a);
	sessions = a.sessions;
	/* Another node's files in its place: the next session is that node's, and is refused. */
	CHECK(!rename(OURS "/n2.key", OURS "/n1.key") && !rename(OURS "/n2.pem", OURS "/n1.pem"),
	      "%s", strerror(errno));
	ctl_kill(0);
	ctl_start(0);
	UNTIL(counted("forged"));
	bl_agent_read(w.n[1].a, &a);
	CHECK(!a.welcome && a.sessions > sessions, "it is welcome");
	CHECK(!bl_pki_renew(OURS, "n3", 5, &err), "%s", err.text);
	CHECK(!rename(OURS "/n3.key", OURS "/n1.key") && !rename(OURS "/n3.pem", OURS "/n1.pem"),
	      "%s", strerror(errno));
	w.tls = tls_of(OURS, "n1");
	node_up(3);
	UNTIL(welcome(3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identity__of_another_node),
		cmocka_unit_test(identity__of_no_node),
		cmocka_unit_test(identity__of_no_controller),
		cmocka_unit_test(identity__renewed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
