// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Invalid input for controllers and agents (controller_world.h): bytes that are no messages,
 * messages of unknown nodes, controllers whose epoch is over or that never sent WELCOME, and
 * certificates of another authority. All of it is counted by its reason, and honest peers never
 * notice. The certificates here have no identity; test_ctl_identity.c is about those that have.
 */
#include "tests/net/controller/raw_client.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "proto/ctl.pb-c.h"

/* ---- bad input ---- */

RACK_TEST(input__refused_and_counted)
{
	static const uint8_t too_long[] = { 0x7f, 0xff, 0xff, 0xff, 1 }, none[4] = { 0 },
			     junk[] = { 0, 0, 0, 3, 0xff, 0xff, 0xff },
			     empty[] = { 0, 0, 0, 2, 0x7a, 0 };
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__LinkDown d = BL__LINK_DOWN__INIT;
	Bl__Hello h = BL__HELLO__INIT;
	uint64_t seed = t_seed();
	unsigned int i, k;
	int fd;

	configure(1, BL_RUN_DIR "/ctl.db");
	ctl_start(0);
	rack_up();
	fd = raw();
	CHECK(write(fd, too_long, sizeof(too_long)) == sizeof(too_long) && hung_up(fd), "too long");
	fd = raw();
	CHECK(write(fd, none, sizeof(none)) == sizeof(none) && hung_up(fd), "of no length");
	fd = raw();
	CHECK(write(fd, junk, sizeof(junk)) == sizeof(junk) && hung_up(fd), "junk");
	fd = raw();
	CHECK(write(fd, empty, sizeof(empty)) == sizeof(empty) && hung_up(fd), "a message that "
									       "does not exist");
	/*
	 * an answer to a command, or a report, before HELLO; HELLO of an unknown node; HELLO with
	 * an invalid kind, port and address
	 */
	m.what_case = BL__TO_CONTROLLER__WHAT_LINK_DOWN;
	m.link_down = &d;
	fd = raw();
	say(fd, &m);
	CHECK(hung_up(fd), "a report before HELLO");
	m.what_case = BL__TO_CONTROLLER__WHAT_HELLO;
	m.hello = &h;
	for (i = 0; i < 5; i++) {
		uint8_t bytes[8] = { 0 };
		ProtobufCBinaryData addr = { sizeof(bytes), bytes };
		Bl__Port port = BL__PORT__INIT, *ports[1] = { &port };

		bl__hello__init(&h);
		h.version = i == 0 ? 2 : 1;
		h.node = i == 1 ? 0 : 77;
		h.kind = i == 2 ? 7 : 1;
		h.n_addr = i == 3;
		h.addr = &addr;
		h.n_port = i == 4;
		h.port = ports;
		port.role = 300;
		fd = raw();
		say(fd, &m);
		CHECK(hung_up(fd), "HELLO %u", i);
	}
	/* random bytes, whole messages of them, and silence */
	for (i = 0; i < 200; i++) {
		uint8_t buf[64];

		for (k = 0; k < sizeof(buf); k++)
			buf[k] = (uint8_t)t_rand(&seed);
		buf[0] = buf[1] = buf[2] = 0;
		buf[3] = 60;
		fd = raw();
		if (write(fd, buf, sizeof(buf)) != sizeof(buf))
			FAIL("%s", strerror(errno));
		close(fd);
	}
	fd = raw();
	CHECK(hung_up(fd), "who says nothing is hung up on");
	UNTIL(strstr(ask(0), "\"silent\":"));
	CHECK(strstr(ask(0), "\"bad_hello\":") && strstr(ask(0), "\"stranger\":"), "%s",
	      strstr(ask(0), "\"counts\""));
	/* honest agents never noticed */
	UNTIL(all_welcome());
	for (i = 1; i <= SWITCH; i++)
		CHECK(!w.n[i].a || !refused(i, BL_AGENT_BAD_MESSAGE), "node %u", i);
	host_dies(1);
	UNTIL(w.n[SWITCH].port[0].state == BL_AGENT_REMOVED);
}

/* ---- an agent and a fake controller ---- */

static void to_agent(int fd, uint64_t epoch, Bl__ToAgent__WhatCase what, uint64_t number)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Welcome wel = BL__WELCOME__INIT;
	Bl__Failure f = BL__FAILURE__INIT;
	uint8_t buf[512];
	size_t len;

	m.epoch = epoch;
	m.what_case = what;
	f.number = number;
	if (what == BL__TO_AGENT__WHAT_WELCOME)
		m.welcome = &wel;
	else
		m.resume = &f;
	len = bl__to_agent__get_packed_size(&m);
	memset(buf, 0, 4);
	buf[2] = (uint8_t)(len >> 8);
	buf[3] = (uint8_t)len;
	bl__to_agent__pack(&m, buf + 4);
	CHECK(write(fd, buf, len + 4) == (ssize_t)len + 4, "%s", strerror(errno));
}

static int accept_one(int listener)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };

	UNTIL(poll(&p, 1, 0) == 1);
	return accept(listener, NULL, NULL);
}

RACK_TEST(agent__refuses_old_epochs_and_nonsense)
{
	static const uint8_t junk[] = { 0, 0, 0, 3, 0xff, 0xff, 0xff };
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(61693),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct node *n = &w.n[SWITCH];
	int one = 1, listener, fd;

	configure(1, BL_RUN_DIR "/none.db");
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	CHECK(!bind(listener, (struct sockaddr *)&sa, sizeof(sa)) && !listen(listener, 16), "%s",
	      strerror(errno));
	n->epoch = 41; /* heard by the previous daemon */
	node_up(SWITCH);
	fd = accept_one(listener);
	to_agent(fd, 40, BL__TO_AGENT__WHAT_WELCOME, 0);
	UNTIL(refused(SWITCH, BL_AGENT_OLD_EPOCH) == 1);
	CHECK(hung_up(fd) && !welcome(SWITCH), "it follows an old one");
	fd = accept_one(listener);
	to_agent(fd, 41, BL__TO_AGENT__WHAT_RESUME, 5);
	UNTIL(refused(SWITCH, BL_AGENT_TOO_EARLY) == 1);
	CHECK(hung_up(fd) && !n->resumes, "an order before WELCOME was obeyed");
	fd = accept_one(listener);
	CHECK(write(fd, junk, sizeof(junk)) == sizeof(junk) && hung_up(fd), "junk");
	CHECK(refused(SWITCH, BL_AGENT_BAD_MESSAGE) == 1, "junk is counted");
	fd = accept_one(listener);
	to_agent(fd, 41, BL__TO_AGENT__WHAT_WELCOME, 0);
	UNTIL(welcome(SWITCH));
	to_agent(fd, 43, BL__TO_AGENT__WHAT_RESUME, 5);
	UNTIL(n->resumes == 1);
	CHECK(n->epoch == 43, "epoch %" PRIu64, n->epoch);
	/* On the same session: a command of an earlier leader, however it got there. */
	to_agent(fd, 42, BL__TO_AGENT__WHAT_RESUME, 6);
	UNTIL(refused(SWITCH, BL_AGENT_OLD_EPOCH) == 2);
	CHECK(hung_up(fd) && n->resumes == 1 && n->epoch == 43, "an order of epoch 42 was obeyed");
	/* The agent leaves a controller that stands still. */
	fd = accept_one(listener);
	to_agent(fd, 43, BL__TO_AGENT__WHAT_WELCOME, 0);
	UNTIL(welcome(SWITCH));
	UNTIL(!welcome(SWITCH));
	close(fd);
	close(listener);
}

/* ---- TLS ---- */

static gnutls_x509_privkey_t new_key(const char *path)
{
	gnutls_x509_privkey_t k;
	gnutls_datum_t pem;
	FILE *f;

	CHECK(!gnutls_x509_privkey_init(&k) &&
		      !gnutls_x509_privkey_generate(
			      k, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
			      0),
	      "a key");
	CHECK(!gnutls_x509_privkey_export2(k, GNUTLS_X509_FMT_PEM, &pem), "a key");
	f = fopen(path, "w");
	CHECK(f && fwrite(pem.data, 1, pem.size, f) == pem.size && !fclose(f), "%s", path);
	gnutls_free(pem.data);
	return k;
}

/* @purpose: NULL: an authority */
static gnutls_x509_crt_t new_cert(const char *path, gnutls_x509_privkey_t key, gnutls_x509_crt_t ca,
				  gnutls_x509_privkey_t ca_key, const char *purpose)
{
	gnutls_x509_crt_t c;
	gnutls_datum_t pem;
	time_t now = time(NULL);
	uint8_t serial = purpose ? 2 : 1;
	FILE *f;

	CHECK(!gnutls_x509_crt_init(&c) && !gnutls_x509_crt_set_version(c, 3) &&
		      !gnutls_x509_crt_set_serial(c, &serial, 1) &&
		      !gnutls_x509_crt_set_key(c, key),
	      "a certificate");
	gnutls_x509_crt_set_activation_time(c, now - 86400);
	gnutls_x509_crt_set_expiration_time(c, now + 86400);
	gnutls_x509_crt_set_dn_by_oid(c, GNUTLS_OID_X520_COMMON_NAME, 0,
				      purpose ? "node" : "authority", purpose ? 4 : 9);
	gnutls_x509_crt_set_basic_constraints(c, !purpose, -1);
	gnutls_x509_crt_set_key_usage(c, purpose ? GNUTLS_KEY_DIGITAL_SIGNATURE
						 : GNUTLS_KEY_KEY_CERT_SIGN);
	if (purpose)
		gnutls_x509_crt_set_key_purpose_oid(c, purpose, 0);
	CHECK(!gnutls_x509_crt_sign2(c, ca ? ca : c, ca_key, GNUTLS_DIG_SHA256, 0), "a signature");
	CHECK(!gnutls_x509_crt_export2(c, GNUTLS_X509_FMT_PEM, &pem), "a certificate");
	f = fopen(path, "w");
	CHECK(f && fwrite(pem.data, 1, pem.size, f) == pem.size && !fclose(f), "%s", path);
	gnutls_free(pem.data);
	return c;
}

static void authority(const char *name)
{
	gnutls_x509_privkey_t ca_key, key;
	gnutls_x509_crt_t ca;
	char path[2][128];
	unsigned int i;

	snprintf(path[0], sizeof(path[0]), BL_RUN_DIR "/%s-ca.key", name);
	snprintf(path[1], sizeof(path[1]), BL_RUN_DIR "/%s-ca.pem", name);
	ca_key = new_key(path[0]);
	ca = new_cert(path[1], ca_key, NULL, ca_key, NULL);
	for (i = 0; i < 2; i++) {
		snprintf(path[0], sizeof(path[0]), BL_RUN_DIR "/%s-%s.key", name,
			 i ? "agent" : "controller");
		snprintf(path[1], sizeof(path[1]), BL_RUN_DIR "/%s-%s.pem", name,
			 i ? "agent" : "controller");
		key = new_key(path[0]);
		gnutls_x509_crt_deinit(
			new_cert(path[1], key, ca, ca_key,
				 i ? GNUTLS_KP_TLS_WWW_CLIENT : GNUTLS_KP_TLS_WWW_SERVER));
		gnutls_x509_privkey_deinit(key);
	}
	gnutls_x509_crt_deinit(ca);
	gnutls_x509_privkey_deinit(ca_key);
}

static struct bl_session_tls *tls_of(const char *ca, const char *who)
{
	struct bl_session_tls *t;
	char path[3][128];
	struct bl_err err;

	snprintf(path[0], sizeof(path[0]), BL_RUN_DIR "/%s-ca.pem", ca);
	snprintf(path[1], sizeof(path[1]), BL_RUN_DIR "/%s.pem", who);
	snprintf(path[2], sizeof(path[2]), BL_RUN_DIR "/%s.key", who);
	CHECK(!bl_session_tls_new(&t, path[0], path[1], path[2], &err), "%s", err.text);
	bl_session_tls_allow_unnamed(t);
	return t;
}

static void agent_with(struct bl_session_tls *tls, bool good, const char *words)
{
	struct bl_agent_total t;

	w.tls = tls;
	node_up(SWITCH);
	/* A session may end because one of the two had no CPU; the next one tells more. */
	if (good)
		UNTIL((bl_agent_read(w.n[SWITCH].a, &t), t.welcome));
	else
		UNTIL((bl_agent_read(w.n[SWITCH].a, &t),
		       t.welcome || (t.sessions > 1 && strstr(t.trouble, words))));
	CHECK(t.welcome == good, "welcome %d: %s", t.welcome, t.trouble);
	node_down(SWITCH);
	bl_session_tls_free(tls);
}

RACK_TEST(tls__certificates)
{
	struct bl_session_tls *t;
	struct bl_err err;

	authority("ours");
	authority("theirs");
	configure(1, BL_RUN_DIR "/ctl.db");
	snprintf(w.cfg[0].ca, sizeof(w.cfg[0].ca), BL_RUN_DIR "/ours-ca.pem");
	snprintf(w.cfg[0].cert, sizeof(w.cfg[0].cert), BL_RUN_DIR "/ours-controller.pem");
	snprintf(w.cfg[0].key, sizeof(w.cfg[0].key), BL_RUN_DIR "/ours-controller.key");
	w.cfg[0].unnamed = true;
	ctl_start(0);
	UNTIL(leader_now() == 0);
	agent_with(tls_of("ours", "ours-agent"), true, NULL);
	/* The agent does not know the controller's authority. */
	agent_with(tls_of("theirs", "ours-agent"), false, "NOT trusted");
	/* The controller does not know the agent's authority. */
	agent_with(tls_of("ours", "theirs-agent"), false, "controller 127.0.0.1:61693");
	/* A client may not use a server's certificate. */
	agent_with(tls_of("ours", "ours-controller"), false, "controller 127.0.0.1:61693");
	agent_with(NULL, false, "controller 127.0.0.1:61693");
	UNTIL(strstr(ask(0), "\"bad_session\":"));
	agent_with(tls_of("ours", "ours-agent"), true, NULL);
	/* A controller may not use an agent's certificate. */
	ctl_kill(0);
	snprintf(w.cfg[0].cert, sizeof(w.cfg[0].cert), BL_RUN_DIR "/ours-agent.pem");
	snprintf(w.cfg[0].key, sizeof(w.cfg[0].key), BL_RUN_DIR "/ours-agent.key");
	ctl_start(0);
	UNTIL(leader_now() == 0);
	agent_with(tls_of("ours", "ours-agent"), false, "purpose");
	CHECK(bl_session_tls_new(&t, BL_RUN_DIR "/ours-ca.key", BL_RUN_DIR "/ours-agent.pem",
				 BL_RUN_DIR "/ours-agent.key", &err) &&
		      strstr(err.text, "ours-ca.key"),
	      "%s", err.text);
	CHECK(bl_session_tls_new(&t, BL_RUN_DIR "/ours-ca.pem", BL_RUN_DIR "/ours-agent.pem",
				 BL_RUN_DIR "/theirs-agent.key", &err) &&
		      strstr(err.text, "theirs-agent.key"),
	      "%s", err.text);
	CHECK(bl_session_tls_new(&t, BL_RUN_DIR "/ours-ca.pem", "", NULL, &err), "no key");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input__refused_and_counted),
		cmocka_unit_test(agent__refuses_old_epochs_and_nonsense),
		cmocka_unit_test(tls__certificates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
