// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Metrics by HTTP: they are those of `barline show`, what does not run is shown as such, and no
 * client keeps others out.
 */
#include "tests/net/metrics/exporter.h"
#include "tests/net/run_beside.h"
#include "tests/net/until.h"

#include <gnutls/gnutls.h>
#include <pwd.h>

#include "proto/pki.h"

#define CLIENTS 14 /* slow ones; the server accepts 16 of one address */

static unsigned int the_switch(void)
{
	unsigned int i;

	for (i = 0; !rack_is_switch(i); i++)
		;
	return i;
}

static void soon_void(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->clock_void_after_ms = 4000;
}

static void open_rack(unsigned int hosts)
{
	rack.lab.spec.hosts = hosts;
	rack_open();
	rack_settle();
}

/* Nodes whose daemons are gone count nothing: no beacon comes. */
static void close_all(void)
{
	unsigned int i;

	for (i = 0; i < rack.lab.nnodes; i++)
		if (rack.node[i])
			rack_close_node(i);
}

/* Gives everything that barline has pinned and opened to a user. */
static void give_away(const char *user)
{
	const struct passwd *p = getpwnam(user);
	char command[256];

	CHECK(p, "there is no user %s", user);
	snprintf(command, sizeof(command),
		 "chown %1$u:%2$u " BL_RUN_DIR " && chown -R %1$u:%2$u " BL_RUN_DIR "/bpf",
		 p->pw_uid, p->pw_gid);
	CHECK(!system(command), "chown");
}

/* Compares the reasons of one row of `show ports -j` with the metrics. Returns their number. */
static unsigned int compare_row(json_t *row)
{
#define KIND(sym, name, kind, text) { name, #kind },
	static const struct {
		const char *name, *kind;
	} reasons[] = { BL_REASONS(KIND) };
#undef KIND
	const char *node = json_string_value(json_object_get(row, "node"));
	const char *port = json_string_value(json_object_get(row, "name"));
	const char *role = json_string_value(json_object_get(row, "role"));
	unsigned int k, n = 0;
	const char *reason;
	json_int_t bytes = 0;
	char sample[256];
	json_t *count;

	if (!strcmp(port, "lo"))
		return 0; /* the requests of this test pass it */
	json_object_foreach(json_object_get(row, "reasons"), reason, count)
	{
		for (k = 0; strcmp(reasons[k].name, reason); k++)
			;
		if (!strcmp(reasons[k].kind, "NOTE"))
			snprintf(sample, sizeof(sample),
				 "barline_notes_total{node=\"%s\",port=\"%s\",role=\"%s\","
				 "reason=\"%s\"}",
				 node, port, role, reason);
		else
			snprintf(sample, sizeof(sample),
				 "barline_frames_total{node=\"%s\",port=\"%s\",role=\"%s\","
				 "verdict=\"%s\",reason=\"%s\"}",
				 node, port, role, strcmp(reasons[k].kind, "OK") ? "drop" : "ok",
				 reason);
		CHECK(metric(sample) == (double)json_integer_value(count), "%s: %f, not %lld",
		      sample, metric(sample), json_integer_value(count));
		n++;
	}
	json_object_foreach(json_object_get(row, "reason_bytes"), reason, count)
	{
		for (k = 0; strcmp(reasons[k].name, reason); k++)
			;
		CHECK(strcmp(reasons[k].kind, "NOTE"), "%s has bytes", reason);
		snprintf(sample, sizeof(sample),
			 "barline_port_bytes_total{node=\"%s\",port=\"%s\",role=\"%s\","
			 "verdict=\"%s\",reason=\"%s\"}",
			 node, port, role, strcmp(reasons[k].kind, "OK") ? "drop" : "ok", reason);
		CHECK(metric(sample) == (double)json_integer_value(count) &&
			      json_integer_value(count) > 0,
		      "%s: %f, not %lld", sample, metric(sample), json_integer_value(count));
		bytes += json_integer_value(count);
	}
	CHECK(bytes == json_integer_value(json_object_get(row, "bytes")), "%s of %s: %lld bytes",
	      port, node, bytes);
	return n;
}

static void compare_with_show(unsigned int node)
{
	char barline[512];
	const char *const argv[] = { barline, "-j", "show", "ports", NULL };
	unsigned int n = 0;
	json_t *said, *row;
	int home;
	size_t i;

	exporter_start((int)node, "nobody");
	CHECK(http_get("/metrics") == 200, "%s", http_said);
	home = rack_away(node);
	CHECK(barline_path(barline, sizeof(barline)) && !barline_run(&said, argv), "show ports");
	rack_back(home);
	json_array_foreach(json_object_get(said, "ports"), i, row) n += compare_row(row);
	CHECK(n >= 2, "%u reasons were compared", n);
	json_decref(said);
	CHECK(metric("barline_scrape_error{source=\"nodes\"}") == 0 &&
		      metric("barline_scrape_error{source=\"admission\"}") == 0 &&
		      metric("barline_scrape_error{source=\"endpoints\"}") == 0 &&
		      metric("barline_scrape_error{source=\"interfaces\"}") == 0,
	      "a source fails: %s", http_said);
	exporter_stop();
}

/* The exporter has CAP_BPF, a filter of system calls, and nothing else. */
RACK_TEST(scrape__equals_show)
{
	open_rack(2);
	rack_serve(200);
	close_all();
	give_away("nobody");
	compare_with_show(the_switch());
	compare_with_show(rack_host(0));
}

#define OF_61710 "{node=\"h2\",endpoint=\"61710\","

/*
 * What an endpoint counts is exported from its page, to an exporter that has CAP_BPF alone, and
 * while the process is stopped.
 */
RACK_TEST(endpoint__figures)
{
	static const char delivered[] = "barline_endpoint_events_total" OF_61710 "event=\"messages_"
					"delivered\"}";
	char barline[512], to[64];
	const char *const recv[] = { barline, "recv", "-p", "61710", NULL };
	const char *const send[] = { barline, "send", to, NULL };
	struct run r, s;

	CHECK(barline_path(barline, sizeof(barline)), "where is barline?");
	open_rack(2);
	r = start_on(rack_host(1), recv, "");
	UNTIL("receives", sscanf(text_of(r.err), "barline: receiving on %63s", to) == 1);
	s = start_on(rack_host(0), send, "a\nb\nc\n");
	reap(&s, "the sender");
	CHECK(WIFEXITED(s.status) && !WEXITSTATUS(s.status), "%s", text_of(s.err));
	UNTIL("has it all", strstr(text_of(r.out), " c\n"));
	give_away("nobody");
	exporter_start((int)rack_host(1), "nobody");
	UNTIL("sleeps", http_get("/metrics") == 200 && metric(delivered) == 3);
	kill(r.pid, SIGSTOP);
	CHECK(http_get("/metrics") == 200, "%s", http_said);
	/*
	 * The time from the timestamp on counts as 0 where a host had promised ahead of its clock
	 * (lib/figures.c), as it does now and then.
	 */
	CHECK(metric(delivered) == 3 &&
		      metric("barline_delivery_seconds_count" OF_61710 "stream=\"order\"}") >= 1 &&
		      metric("barline_delivery_seconds_count" OF_61710 "stream=\"order\"}") <= 3 &&
		      metric("barline_delivery_seconds_sum" OF_61710 "stream=\"order\"}") >= 0 &&
		      metric("barline_delivery_seconds_count" OF_61710 "stream=\"reliable\"}") <
			      0 &&
		      metric("barline_reorder_hold_seconds_count" OF_61710 "stream=\"order\"}") ==
			      1 &&
		      metric("barline_reorder_hold_seconds_sum" OF_61710 "stream=\"order\"}") > 0 &&
		      metric("barline_endpoint_ring_used_bytes{node=\"h2\",endpoint=\"61710\"}") >=
			      0 &&
		      metric("barline_endpoint_queued_frames" OF_61710 "stream=\"order\"}") == 0 &&
		      metric("barline_endpoint_staged_seconds" OF_61710 "stream=\"order\"}") == 0,
	      "%s", strstr(http_said, "# HELP barline_endpoint_"));
	CHECK(metric("barline_scrape_error{source=\"endpoints\"}") == 0, "%s", http_said);
	exporter_stop();
	kill(r.pid, SIGCONT);
	kill(r.pid, SIGTERM);
	reap(&r, "the receiver");
}

RACK_TEST(daemon__that_is_gone_is_shown)
{
	char up[64], valid[64];

	rack.tweak = soon_void;
	open_rack(1);
	snprintf(up, sizeof(up), "barline_daemon_up{node=\"%s\"}",
		 rack.lab.nodes[rack_host(0)].name);
	snprintf(valid, sizeof(valid), "barline_clock_valid{node=\"%s\"}",
		 rack.lab.nodes[rack_host(0)].name);
	exporter_start((int)rack_host(0), NULL);
	UNTIL("waits for the first scrape",
	      http_get("/metrics") == 200 && metric(up) == 1 && metric(valid) == 1);
	UNTIL("is healthy", http_get("/healthz") == 200);
	UNTIL("is ready", http_get("/readyz") == 200);
	close_all();
	UNTIL("sees that the daemon is gone", http_get("/metrics") == 200 && metric(up) == 0);
	CHECK(http_get("/healthz") == 503 && http_get("/readyz") == 503, "%s", http_said);
	UNTIL("sees that the clock is void", http_get("/metrics") == 200 && metric(valid) == 0);
	exporter_stop();
}

/* A stopped controller costs a scrape its limit, and is counted as silent. */
RACK_TEST(controller__that_is_stopped_is_shown)
{
	static const char silent[] = "barline_services{service=\"controller\",state=\"silent\"}",
			  answers[] = "barline_services{service=\"controller\",state="
				      "\"answering\"}",
			  leads[] = "barline_controller_state{controller=\"" CTL_ADDR "\",state="
				    "\"leader\"}";
	struct bl_err err;

	CHECK(!bl_server_new(&rack.server, &err), "%s", err.text);
	ctl_start(20000);
	exporter_start(-1, NULL);
	UNTIL("waits for a leader", http_get("/metrics") == 200 && metric(leads) == 1);
	CHECK(metric(answers) == 1 && metric(silent) == 0, "%s", http_said);
	CHECK(!kill(ctl, SIGSTOP), "stop");
	UNTIL("sees that it is silent", http_get("/metrics") == 200 && metric(silent) == 1);
	CHECK(metric(answers) == 0 && metric(leads) == -1 &&
		      metric("barline_scrape_error{source=\"controllers\"}") == 1,
	      "%s", http_said);
	CHECK(!kill(ctl, SIGCONT), "continue");
	UNTIL("sees that it answers", http_get("/metrics") == 200 && metric(answers) == 1);
	ctl_kill();
	UNTIL("sees that it is gone",
	      http_get("/metrics") == 200 && metric(answers) == 0 && metric(silent) == 0);
	exporter_stop();
}

/* Clients that send half a request, or read nothing of the answer, keep nobody out. */
RACK_TEST(client__slow_ones_block_nobody)
{
	static const char half[] = "GET /metrics HTTP/1.1\r\nHos", whole[] = "GET /metrics "
									     "HTTP/1.1\r\nHost: "
									     "x\r\n\r\n";
	int fd[CLIENTS], one = 1, k;
	struct bl_err err;

	CHECK(!bl_server_new(&rack.server, &err), "%s", err.text);
	exporter_start(-1, NULL);
	for (k = 0; k < CLIENTS; k++) {
		const char *say = k % 2 ? half : whole;

		fd[k] = http_connect(EXPORTER_PORT);
		CHECK(fd[k] >= 0, "%d", k);
		setsockopt(fd[k], SOL_SOCKET, SO_RCVBUF, &one, sizeof(one));
		CHECK(send(fd[k], say, strlen(say), MSG_NOSIGNAL) > 0, "%d", k);
	}
	CHECK(http_get("/metrics") == 200 && metric("barline_scrape_omitted_samples") == 0, "%s",
	      http_said);
	/* and those that are slow are let go, which is seen in their connections */
	for (k = 0; k < CLIENTS; k++) {
		if (k % 2)
			UNTIL("waits for the end of a slow client",
			      recv(fd[k], &one, 1, MSG_DONTWAIT) == 0);
		close(fd[k]);
	}
	exporter_stop();
}

RACK_TEST(request__of_every_kind)
{
	static const struct {
		const char *request;
		int status;
	} rows[] = {
		{ "GET / HTTP/1.0\r\n\r\n", 200 },
		{ "HEAD /metrics HTTP/1.0\r\n\r\n", 200 },
		{ "GET /metrics?x=1 HTTP/1.0\r\n\r\n", 200 },
		{ "GET /healthz HTTP/1.0\r\n\r\n", 503 }, /* there is no node */
		{ "GET /../etc/passwd HTTP/1.0\r\n\r\n", 404 },
		{ "POST /metrics HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", 405 },
		{ "DELETE /metrics HTTP/1.0\r\n\r\n", 405 },
		{ "BREW /coffee HTTP/1.0\r\n\r\n", 405 },
	};
	static char huge[100000];
	struct bl_err err;
	unsigned int k;

	CHECK(!bl_server_new(&rack.server, &err), "%s", err.text);
	exporter_start(-1, NULL);
	for (k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		int status = http_ask(EXPORTER_PORT, rows[k].request);

		CHECK(status == rows[k].status, "%d, not %d: %s", status, rows[k].status,
		      rows[k].request);
	}
	memset(huge, 'x', sizeof(huge) - 1);
	memcpy(huge, "GET /metrics HTTP/1.0\r\nA: ", 26);
	CHECK(http_ask(EXPORTER_PORT, huge) != 200, "%s", http_said);
	http_ask(EXPORTER_PORT, "\x16\x03\x01 nonsense\r\n\r\n");
	CHECK(http_get_from(EXPORTER_PORT, "/metrics", "application/openmetrics-text") == 200, "met"
											       "ric"
											       "s");
	CHECK(strstr(http_head, "application/openmetrics-text; version=1.0.0") &&
		      !strcmp(http_said + strlen(http_said) - 6, "# EOF\n"),
	      "%s", http_head);
	exporter_stop();
}

#define PKI_DIR BL_RUN_DIR "/pki"

static void make_certificate(const char *dir, const char *name, uint32_t node)
{
	const struct bl_pki_req q = {
		.name = name, .role = BL_IDENT_NODE, .node = node, .days = 2
	};
	struct bl_err err;

	CHECK(!bl_pki_issue(dir, &q, &err), "%s", err.text);
}

/* Asks for the metrics with the certificate @dir/@name; NULL: with none. Returns the status. */
static int ask_tls(const char *dir, const char *name)
{
	static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
	gnutls_certificate_credentials_t cred;
	char crt[128], key[128], text[64] = "";
	int fd = http_connect(EXPORTER_PORT), status = 0;
	gnutls_session_t s;

	CHECK(fd >= 0 && !gnutls_certificate_allocate_credentials(&cred), "tls");
	snprintf(crt, sizeof(crt), "%s/%s.pem", dir, name ? name : "");
	snprintf(key, sizeof(key), "%s/%s.key", dir, name ? name : "");
	CHECK(!name || !gnutls_certificate_set_x509_key_file(cred, crt, key, GNUTLS_X509_FMT_PEM),
	      "%s", crt);
	CHECK(!gnutls_init(&s, GNUTLS_CLIENT) && !gnutls_set_default_priority(s) &&
		      !gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, cred),
	      "tls");
	gnutls_transport_set_int(s, fd);
	/* a client that is asked for a certificate shows one only if it fits the authority */
	if (!gnutls_handshake(s) && gnutls_record_send(s, request, strlen(request)) > 0 &&
	    gnutls_record_recv(s, text, sizeof(text) - 1) > 0)
		sscanf(text, "HTTP/1.%*d %d", &status);
	gnutls_deinit(s);
	gnutls_certificate_free_credentials(cred);
	close(fd);
	return status;
}

RACK_TEST(tls__needs_a_certificate)
{
	struct bl_err err;

	CHECK(!bl_server_new(&rack.server, &err), "%s", err.text);
	CHECK(!bl_pki_init(PKI_DIR, "test", 3, &err), "%s", err.text);
	CHECK(!bl_pki_init(PKI_DIR "-other", "test", 3, &err), "%s", err.text);
	make_certificate(PKI_DIR, "h1", 1);
	make_certificate(PKI_DIR, "monitor", 2);
	make_certificate(PKI_DIR "-other", "foreign", 3);
	exporter_tls = PKI_DIR;
	exporter_start(-1, NULL);
	CHECK(ask_tls(PKI_DIR, "monitor") == 200, "the rack's certificate is refused");
	CHECK(ask_tls(NULL, NULL) != 200, "no certificate is needed");
	CHECK(ask_tls(PKI_DIR "-other", "foreign") != 200, "a foreign certificate is accepted");
	CHECK(http_get("/metrics") != 200, "it speaks without TLS");
	CHECK(ask_tls(PKI_DIR, "monitor") == 200, "nobody is let in any more");
	exporter_stop();
}

/* Returns what follows `barline metrics`: its exit status. */
static int metrics_run(const char *a, const char *b, const char *c)
{
	char barline[512];
	const char *const argv[] = { barline, "-j", "metrics", a, b, c, NULL };
	json_t *said;
	int st;

	CHECK(barline_path(barline, sizeof(barline)), "barline");
	st = barline_run(&said, argv);
	json_decref(said);
	return st;
}

/* The file is complete or the one before, and can be read by node_exporter's user. */
RACK_TEST(textfile__is_replaced)
{
	char text[64] = "";
	struct stat st;
	FILE *f, *old;

	CHECK(!metrics_run("--textfile", BL_RUN_DIR "/b.prom", NULL), "textfile");
	CHECK(!stat(BL_RUN_DIR "/b.prom", &st) && (st.st_mode & 0777) == 0644 && st.st_size > 500,
	      "b.prom");
	f = fopen(BL_RUN_DIR "/b.prom", "r");
	CHECK(f && fgets(text, sizeof(text), f) && !strncmp(text, "# HELP barline_", 15), "%s",
	      text);
	fclose(f);
	CHECK(metrics_run("--textfile", BL_RUN_DIR "/none/b.prom", NULL) == 1, "no folder");
	old = fopen(BL_RUN_DIR "/b.prom", "r");
	CHECK(!metrics_run("--textfile", BL_RUN_DIR "/b.prom", NULL), "again");
	/* Whoever reads meanwhile has the whole file of before. */
	CHECK(old && !fstat(fileno(old), &st) && !st.st_nlink && st.st_size > 500, "the file was "
										   "written over");
	fclose(old);
	CHECK(!system("[ $(ls " BL_RUN_DIR " | grep -c b.prom) = 1 ]"), "something is left");
}

/* What cannot work is refused, with status 2, before anything is opened. */
RACK_TEST(options__refused)
{
	static const char *const rows[][3] = {
		{ "--listen", "10.0.0.1:9469", NULL },
		{ "--listen", "0.0.0.0:9469", NULL },
		{ "--listen", "[::]:9469", NULL },
		{ "--listen", "127.0.0.1", NULL },
		{ "--listen", "::1", NULL },
		{ "--listen", "127.0.0.1:0", NULL },
		{ "--listen", "localhost:9469", NULL },
		{ "--listen", "127.0.0.1:9469", "--textfile=x" },
		{ "--listen", "127.0.0.1:9469", "--tls-cert=x" },
		{ "--insecure", NULL, NULL },
		{ "--ask-ms", "0", NULL },
		{ "--ask-ms", "10001", NULL },
		{ "word", NULL, NULL },
	};
	unsigned int k;

	for (k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
		CHECK(metrics_run(rows[k][0], rows[k][1], rows[k][2]) == 2, "%s %s", rows[k][0],
		      rows[k][1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scrape__equals_show),
		cmocka_unit_test(endpoint__figures),
		cmocka_unit_test(daemon__that_is_gone_is_shown),
		cmocka_unit_test(controller__that_is_stopped_is_shown),
		cmocka_unit_test(client__slow_ones_block_nobody),
		cmocka_unit_test(request__of_every_kind),
		cmocka_unit_test(tls__needs_a_certificate),
		cmocka_unit_test(textfile__is_replaced),
		cmocka_unit_test(options__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
