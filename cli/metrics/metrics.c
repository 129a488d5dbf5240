// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline metrics: the metrics of the nodes, controllers and arbiters of this network namespace,
 * once to standard output or into a file, or by HTTP.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/library/systemd.h"
#include "base/number.h"
#include "base/privileges.h"
#include "base/timens.h"
#include "cli/cmd.h"
#include "cli/metrics/collect.h"
#include "cli/metrics/lag.h"
#include "cli/metrics/serve.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/service.h"
#include "proto/session.h"

enum {
	KEY_TEXTFILE = 0x1000,
	KEY_LISTEN,
	KEY_OPENMETRICS,
	KEY_CERTIFICATE,
	KEY_ASK_MS,
	KEY_INSECURE,
	KEY_TLS_CERT,
	KEY_TLS_KEY,
	KEY_TLS_CA
};

/** struct metrics_args - the command line. */
struct metrics_args {
	const char *textfile; /* NULL: not into a file */
	const char *listen;   /* NULL: once */
	bool openmetrics, insecure;
	struct metrics_listen how;
	struct collector c;
	struct service_args service;
};

static const struct argp_option options[] = {
	{ "textfile", KEY_TEXTFILE, "FILE", 0,
	  "write into FILE, which is replaced at once, for the textfile collector of node_exporter",
	  0 },
	{ "openmetrics", KEY_OPENMETRICS, NULL, 0,
	  "OpenMetrics 1.0 instead of Prometheus' text format; by HTTP the client chooses", 0 },
	{ "ask-ms", KEY_ASK_MS, "MS", 0,
	  "how long controllers, and then arbiters, may take to answer (1000)", 0 },
	{ "certificate", KEY_CERTIFICATE, "FILE", 0,
	  "export when this certificate expires; may be repeated", 0 },
	{ 0, 0, NULL, 0, "HTTP:", 1 },
	{ "listen", KEY_LISTEN, "ADDR:PORT", 0, "serve /metrics, /healthz and /readyz there", 1 },
	{ "tls-cert", KEY_TLS_CERT, "FILE", 0, "certificate of the server", 1 },
	{ "tls-key", KEY_TLS_KEY, "FILE", 0, "its key", 1 },
	{ "tls-ca", KEY_TLS_CA, "FILE", 0,
	  "authority: clients need a certificate of it, as of `barline pki`", 1 },
	{ "insecure", KEY_INSECURE, NULL, 0, "allow other addresses than loopback without TLS", 1 },
	{ 0 }
};

static const struct bl_number numbers[] = {
	BL_NUMBER(KEY_ASK_MS, "ask-ms", "ms", 1, 10000, struct collector, ask_ms), { 0 }
};

/* Whether @text has a port: bl_session_addr() would take the controllers' one. */
static bool has_port(const char *text)
{
	const char *end = *text == '[' ? strstr(text, "]:") : strchr(text, ':');

	return end && (*text == '[' || !strchr(end + 1, ':'));
}

/* Checks what the options say together. */
static void check(const struct metrics_args *a, struct argp_state *state)
{
	int tls = !!a->how.cert + !!a->how.key + !!a->how.ca;

	if (a->listen && a->textfile)
		argp_error(state, "--listen and --textfile are two commands");
	if (tls && tls != 3)
		argp_error(state, "--tls-cert, --tls-key and --tls-ca belong together");
	if (!a->listen && (tls || a->insecure || a->service.user))
		argp_error(state, "--tls-..., --insecure and --user need --listen");
	if (a->listen && !tls && !a->insecure && !bl_session_is_local(a->listen))
		argp_error(state,
			   "%s can be reached from other machines: name --tls-cert, --tls-key and "
			   "--tls-ca, or say --insecure",
			   a->listen);
}

static error_t parse_metrics(int key, char *arg, struct argp_state *state)
{
	struct metrics_args *a = state->input;
	error_t err = bl_number_option(numbers, key, arg, &a->c, state);
	socklen_t len;

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case ARGP_KEY_INIT:
		/* children: the global options, and those of services */
		state->child_inputs[1] = &a->service;
		return 0;
	case KEY_TEXTFILE:
		a->textfile = arg;
		return 0;
	case KEY_LISTEN:
		if (!has_port(arg) || bl_session_addr(arg, &a->how.addr, &len))
			argp_error(state,
				   "--listen: \"%s\" is no address with a port, as in "
				   "127.0.0.1:9469 or [::1]:9469",
				   arg);
		a->listen = arg;
		return 0;
	case KEY_OPENMETRICS:
		a->openmetrics = true;
		return 0;
	case KEY_CERTIFICATE:
		if (a->c.ncertificates == METRICS_CERTIFICATES)
			argp_error(state, "--certificate: at most %d", METRICS_CERTIFICATES);
		a->c.certificate[a->c.ncertificates++] = arg;
		return 0;
	case KEY_INSECURE:
		a->insecure = true;
		return 0;
	case KEY_TLS_CERT:
		a->how.cert = arg;
		return 0;
	case KEY_TLS_KEY:
		a->how.key = arg;
		return 0;
	case KEY_TLS_CA:
		a->how.ca = arg;
		return 0;
	case ARGP_KEY_END:
		check(a, state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* Writes @text into @file by way of a file beside it. Returns 0 or 1 after a message. */
static int replace_file(const char *file, const char *text, size_t len)
{
	char path[4096];
	ssize_t n = -1;
	int fd;

	/* the collector of node_exporter reads files that end in .prom; this one does not */
	if (snprintf(path, sizeof(path), "%s.XXXXXX", file) >= (int)sizeof(path))
		return cli_fail("%s: the name is too long", file);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return cli_fail("cannot make a file beside %s: %s", file, strerror(errno));
	while (len && (n = TEMP_FAILURE_RETRY(write(fd, text, len))) > 0) {
		text += n;
		len -= (size_t)n;
	}
	if (!len && !fchmod(fd, 0644) && !rename(path, file)) {
		close(fd);
		return 0;
	}
	cli_fail("cannot write %s: %s", file, strerror(n ? errno : EIO));
	close(fd);
	unlink(path);
	return 1;
}

static int run_once(struct metrics_args *a)
{
	enum metric_format f = a->openmetrics ? METRIC_OPENMETRICS : METRIC_PROMETHEUS;
	struct metrics *m = metrics_collect(&a->c);
	size_t len = 0;
	char *text = m ? metrics_text(m, f, &len) : NULL;
	int rc = 0;

	metrics_free(m);
	if (!text)
		return cli_fail("out of memory");
	if (a->textfile)
		rc = replace_file(a->textfile, text, len);
	else if (cli.json)
		cli_json(json_pack("{s:s, s:s}", "type", metrics_type(f), "text", text));
	else if (fwrite(text, 1, len, stdout) != len || fflush(stdout))
		rc = cli_fail("cannot write: %s", strerror(errno));
	free(text);
	return rc;
}

/* Waits for SIGTERM or SIGINT, which the caller has blocked. */
static void wait_for_end(int signals)
{
	struct signalfd_siginfo i;

	while (TEMP_FAILURE_RETRY(read(signals, &i, sizeof(i))) != sizeof(i))
		;
}

static int run_server(struct metrics_args *a)
{
	struct metrics_server *s = NULL;
	struct bl_err err;
	sigset_t set;
	int signals, rc;

	a->service.keep = BL_CAP(CAP_BPF);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL); /* and in the threads to come */
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals < 0)
		return cli_fail("cannot make a descriptor for signals: %s", strerror(errno));
	rc = service_drop(&a->service, &err);
	if (!rc)
		rc = lag_start(&a->c.lag, &err);
	if (!rc)
		rc = metrics_serve(&s, &a->how, &a->c, &err);
	if (!rc)
		rc = service_sandbox(&a->service, BL_SERVICE_METRICS, &err);
	if (!rc) {
		sd_notify(0, "READY=1");
		if (cli.json)
			cli_json(json_pack("{s:s, s:s}", "metrics", "ready", "listen", a->listen));
		else
			printf("metrics at %s://%s/metrics\n", a->how.cert ? "https" : "http",
			       a->listen);
		fflush(stdout);
		wait_for_end(signals);
		sd_notify(0, "STOPPING=1");
	}
	metrics_serve_end(s);
	lag_stop(a->c.lag);
	close(signals);
	return rc ? cli_fail("%s", err.text) : 0;
}

int cmd_metrics(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &service_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = { .options = options,
					  .parser = parse_metrics,
					  .children = children,
					  .doc = "barline metrics - the metrics of the nodes, "
						 "controllers and arbiters of this network "
						 "namespace\v"
						 "Without --textfile and --listen, they are "
						 "printed "
						 "once. docs/metrics.md lists them." };
	struct metrics_args a = { .c.ask_ms = METRICS_ASK_MS };
	struct bl_err err;

	cmd_parse(&argp, argc, argv, &a);
	if (a.c.ncertificates && bl_library_load(BL_LIBRARY_GNUTLS, &err))
		return cli_fail("%s", err.text);
	if (bl_timens_shifts("monotonic"))
		return cli_fail(BL_TIMENS_SENTENCE, "CLOCK_MONOTONIC");
	return a.listen ? run_server(&a) : run_once(&a);
}
