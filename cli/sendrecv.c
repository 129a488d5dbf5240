/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline send, barline recv: send and receive ordered messages on the command line.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/ip.h"
#include "base/number.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/message.h"
#include "cli/util/out.h"
#include "lib/barline.h"
#include "maps/wire_abi.h"

/** struct sr_args - Options of send and recv. */
struct sr_args {
	struct bl_options opt;
	long long count;      /* recv: messages to print; 0: no limit */
	long long timeout_ms; /* recv: fail if nothing is received for this time; -1: no limit */
	long long wait_ms;    /* send: longest wait for the fate of what was sent */
	struct bl_addr *to;   /* send: @nto receivers */
	size_t nto;
	const char *text;      /* send: the message; NULL or "-": one per line of stdin */
	bool reliable, helper; /* -r, -H */
};

#define WAIT_MS        10000       /* default of --wait: a receiver is given up after 2 to 4 s */
#define WAIT_SILENT_NS 1000000000U /* how long the command waits without a word */

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

/* Handles ^C and SIGTERM. No system call goes on after one. */
static void catch_signals(void)
{
	const struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

static error_t parse_addrs(struct sr_args *a, char *list, struct argp_state *state)
{
	char *s;

	while ((s = strsep(&list, ","))) {
		struct bl_addr *more = realloc(a->to, (a->nto + 1) * sizeof(*more));

		if (!more)
			return ENOMEM;
		a->to = more;
		if (a->nto == BL_SCATTER_MAX)
			argp_error(state, "more than %d addresses", BL_SCATTER_MAX);
		if (bl_addr_parse(&a->to[a->nto++], s))
			argp_error(state, "address \"%s\" is not IP:PORT or [IPv6]:PORT", s);
	}
	return 0;
}

/* Without -4 or -6, the endpoint gets an address of the family of its receivers. */
static void choose_family(struct sr_args *a, const struct argp_state *state)
{
	size_t i, v4 = 0;

	for (i = 0; i < a->nto; i++)
		v4 += bl_ip_is_v4(a->to[i].ip);
	if (v4 && v4 < a->nto)
		argp_error(state, "a scattering is to IPv4 addresses or to IPv6 addresses, not to "
				  "both");
	if (!a->opt.family)
		a->opt.family = v4 ? AF_INET : AF_INET6;
}

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER('p', "port", NULL, 1, 65535, struct sr_args, opt.port),
	BL_NUMBER('w', "wait", "ms", 0, 3600000, struct sr_args, wait_ms),
	BL_NUMBER('c', "count", NULL, 1, INT64_MAX, struct sr_args, count),
	BL_NUMBER('t', "timeout", "ms", 0, 86400000, struct sr_args, timeout_ms),
	{ 0 }
};
/* clang-format on */

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	struct sr_args *a = state->input;
	error_t err = bl_number_option(numbers, key, arg, a, state);

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case '4':
		a->opt.family = AF_INET;
		return 0;
	case '6':
		a->opt.family = AF_INET6;
		return 0;
	case 'r':
		a->reliable = true;
		return 0;
	case 'H':
		a->helper = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static error_t parse_send(int key, char *arg, struct argp_state *state)
{
	struct sr_args *a = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (state->arg_num == 0)
			return parse_addrs(a, arg, state);
		if (state->arg_num == 1) {
			a->text = arg;
			return 0;
		}
		return ARGP_ERR_UNKNOWN;
	case ARGP_KEY_END:
		if (!a->nto)
			argp_error(state, "to which address? One or more are needed, as in "
					  "10.0.0.1:61700");
		choose_family(a, state);
		return 0;
	}
	return parse_common(key, arg, state);
}

#define COMMON_OPTIONS                                                                         \
	{ "port",                                                                              \
	  'p',                                                                                 \
	  "PORT",                                                                              \
	  0,                                                                                   \
	  "UDP port of this endpoint (default: a free one of barline's range)",                \
	  0 },                                                                                 \
		{ "reliable", 'r', NULL, 0, "the reliable stream: all receivers or none", 0 }, \
		{ "helper",                                                                    \
		  'H',                                                                         \
		  NULL,                                                                        \
		  0,                                                                           \
		  "with a helper thread, so that slow output does not delay others",           \
		  0 },                                                                         \
		{ NULL, '4', NULL, 0, "use the host's IPv4 address", 0 },                      \
	{                                                                                      \
		NULL, '6', NULL, 0, "use the host's IPv6 address", 0                           \
	}

static const struct argp_option send_options[] = { COMMON_OPTIONS,
						   { "wait", 'w', "MS", 0,
						     "longest wait, after the last message, "
						     "until each receiver has taken what was sent "
						     "or a failure is reported (default 10000)",
						     0 },
						   { 0 } };
static const struct argp_option recv_options[] = {
	COMMON_OPTIONS,
	{ "count", 'c', "COUNT", 0, "stop after this number of messages", 0 },
	{ "timeout", 't', "MS", 0, "fail if nothing is received for this time", 0 },
	{ 0 }
};

/** struct failures - Messages that send reported as failed. */
struct failures {
	unsigned long n;       /* all of them */
	unsigned long unknown; /* of these, messages that may have been delivered */
};

static void report_failure(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
			   enum bl_fail_reason why)
{
#define NAK_NAME(sym, num, name) [num] = name,
	static const char *const names[] = { BL_NAKS(NAK_NAME) };
	struct failures *f = ctx;
	char text[64];

	f->n++;
	f->unknown += why == BL_FAIL_UNKNOWN;
	cli_fail("line %" PRIu64 " %s delivered to %s: %s (ts %" PRIu64 ")", cookie,
		 why == BL_FAIL_UNKNOWN ? "may not have been" : "was not",
		 bl_addr_format(dst, text, sizeof(text)),
		 why < sizeof(names) / sizeof(names[0]) && names[why] ? names[why]
								      : "unknown reason",
		 ts);
}

/* Says once, after a second, what the command waits for. */
static void tell_waiting(struct bl_endpoint *ep, bool reliable, uint64_t since_ns, bool *told)
{
	struct bl_pending p;
	char text[64];

	if (*told || cli.json || bl_mono_ns() - since_ns < WAIT_SILENT_NS ||
	    !bl_get_pending(ep, &p, 1))
		return;
	*told = true;
	fprintf(stderr,
		"barline: waiting for %s, which %s; is its process stopped%s? ^C ends this\n",
		bl_addr_format(&p.dst, text, sizeof(text)),
		reliable ? "has not acknowledged what was sent" : "has not taken what was sent",
		reliable ? "" : ", or is it a recv with -r");
}

/* Waits until @what holds. Returns bl_wait()'s result when it does, on an error, or on a signal. */
static int wait_for(struct bl_endpoint *ep, unsigned int what, bool reliable, long long limit_ms)
{
	uint64_t since = bl_mono_ns();
	bool told = false;
	int rc = 0;

	while (!stop && rc == 0) {
		uint64_t ms = (bl_mono_ns() - since) / 1000000, left = (uint64_t)limit_ms - ms;

		if (limit_ms >= 0 && ms >= (uint64_t)limit_ms)
			break;
		rc = bl_wait(ep, what, limit_ms >= 0 && left < 250 ? (int)left + 1 : 250);
		if (rc == -EINTR)
			rc = 0; /* of a signal that does not end the command */
		tell_waiting(ep, reliable, since, &told);
	}
	return rc;
}

/*
 * Says what a line is called once it has its timestamp (-v), for barline trace. A line that waits
 * for windows is waited for, as long as the command may wait.
 */
static void tell_name(struct bl_endpoint *ep, const struct sr_args *a, uint64_t line)
{
	static uint64_t last; /* timestamp of the line before */
	struct bl_stats st = { .size = sizeof(st) };
	struct message_name m = { .src = *bl_self(ep) };
	char name[96];

	wait_for(ep, a->reliable ? BL_WAIT_SEND_RELIABLE : BL_WAIT_SEND, a->reliable, a->wait_ms);
	if (bl_get_stats(ep, &st) || st.sent_ts == last)
		return;
	last = m.ts = st.sent_ts;
	fprintf(stderr, "barline: line %" PRIu64 " is %s\n", line,
		message_format(&m, name, sizeof(name)));
}

static int send_line(struct bl_endpoint *ep, const struct sr_args *a, struct bl_msg *vec,
		     const char *data, size_t len, uint64_t line)
{
	size_t i;
	int err;

	if (len > BL_MESSAGE_MAX)
		return cli_fail("line %" PRIu64 " has %zu bytes; a message has at most %u", line,
				len, BL_MESSAGE_MAX);
	for (i = 0; i < a->nto; i++)
		vec[i] = (struct bl_msg){
			.dst = a->to[i], .data = data, .len = (uint32_t)len, .cookie = line
		};
	while ((err = a->reliable ? bl_send_reliable(ep, vec, a->nto, 0)
				  : bl_send(ep, vec, a->nto, 0)) == -EAGAIN &&
	       !stop) {
		err = wait_for(ep, a->reliable ? BL_WAIT_SEND_RELIABLE : BL_WAIT_SEND, a->reliable,
			       -1);
		if (err < 0)
			break;
	}
	if (err == -EAGAIN && stop)
		return cli_fail("line %" PRIu64 " was not sent: interrupted", line);
	if (err == -EINVAL)
		return cli_usage("%s", bl_strerror(ep));
	if (err < 0)
		return cli_fail("line %" PRIu64 ": %s", line, bl_strerror(ep));
	if (!err && cli.verbose)
		tell_name(ep, a, line);
	return err;
}

/*
 * Waits until every receiver has taken (best effort) or stored (reliable) what was sent to it, or a
 * failure has been reported. Returns the number of messages of which neither is known, after a
 * message about them.
 */
static unsigned long settle(struct bl_endpoint *ep, const struct sr_args *a)
{
	struct bl_pending p[64];
	unsigned long unsettled = 0;
	char text[64];
	int rc, n, i;

	if (!a->wait_ms)
		return 0;
	rc = wait_for(ep, a->reliable ? BL_WAIT_ACKED : BL_WAIT_CREDITED, a->reliable, a->wait_ms);
	bl_process(ep); /* the last reports */
	if (rc < 0 && rc != -EINTR)
		cli_fail("%s", bl_strerror(ep));
	n = bl_get_pending(ep, p, sizeof(p) / sizeof(p[0]));
	for (i = 0; i < n && i < 64; i++) {
		unsettled += p[i].messages ? p[i].messages : 1;
		cli_fail("no answer of %s about %" PRIu32 " message%s, from line %" PRIu64
			 " on%s: it may or may not deliver %s%s",
			 bl_addr_format(&p[i].dst, text, sizeof(text)), p[i].messages,
			 p[i].messages == 1 ? "" : "s", p[i].cookie,
			 stop ? "" : " within the time of --wait",
			 p[i].messages == 1 ? "it" : "them",
			 a->reliable ? "" : "; if it is a recv with -r, send with -r, too");
	}
	if (n > 64)
		cli_fail("and nothing of %d more receivers", n - 64);
	return unsettled + (unsigned long)(rc < 0 && !n);
}

int cmd_send(int argc, char **argv)
{
	const struct argp argp = { .options = send_options,
				   .parser = parse_send,
				   .args_doc = "ADDR[,ADDR...] [TEXT|-]",
				   .children = cmd_globals,
				   .doc = "barline send - send ordered messages to one or more "
					  "endpoints\v"
					  "ADDR is 10.0.0.1:61700 or [fd00::1]:61700. Without "
					  "TEXT, or with -, every line of standard input is one "
					  "scattering: one timestamp at all its receivers.\n\n"
					  "The exit status is 0 if every receiver has taken every "
					  "message (with -r: if the hosts of all receivers have "
					  "stored it), and 1 if a failure was reported, or nothing "
					  "is known of a message after the time of --wait. With "
					  "-v, the name of each message is printed on stderr, as "
					  "`barline trace` takes it: SOURCE@TIMESTAMP." };
	struct sr_args a = { .wait_ms = WAIT_MS };
	struct failures f = { 0 };
	unsigned long unsettled;
	struct bl_endpoint *ep;
	struct bl_msg *vec;
	uint64_t line = 0;
	int err = 0;

	cmd_parse(&argp, argc, argv, &a);
	if (bl_init(&ep, &a.opt))
		return cli_fail("%s", bl_strerror(NULL));
	if (a.helper && bl_helper_start(ep, 0)) {
		cli_fail("%s", bl_strerror(ep));
		bl_exit(ep);
		return 1;
	}
	bl_on_send_fail(ep, report_failure, &f);
	catch_signals();
	vec = calloc(a.nto, sizeof(*vec));
	if (!vec) {
		err = cli_fail("out of memory");
	} else if (a.text && strcmp(a.text, "-")) {
		err = send_line(ep, &a, vec, a.text, strlen(a.text), ++line);
	} else {
		char *buf = NULL;
		size_t size = 0;
		ssize_t len;

		while (!err && !stop && (len = getline(&buf, &size, stdin)) >= 0) {
			if (len && buf[len - 1] == '\n')
				len--;
			err = send_line(ep, &a, vec, buf, (size_t)len, ++line);
			bl_process(ep);
		}
		free(buf);
	}
	unsettled = settle(ep, &a);
	if (cli.json && !err)
		cli_json(json_pack("{s:I, s:I, s:I, s:I, s:I}", "scatterings", (json_int_t)line,
				   "messages", (json_int_t)(line * a.nto), "failed",
				   (json_int_t)(f.n - f.unknown), "unknown", (json_int_t)f.unknown,
				   "unsettled", (json_int_t)unsettled));
	bl_exit(ep);
	free(vec);
	free(a.to);
	return err ? err : f.n || unsettled || stop;
}

static void print_delivery(const struct bl_delivery *d)
{
	char from[64];

	bl_addr_format(&d->src, from, sizeof(from));
	if (!cli.json) {
		printf("%" PRIu64 " %s ", d->ts, from);
		fwrite(d->data, 1, d->len, stdout);
		putchar('\n');
	} else {
		/* NULL if it is not UTF-8 */
		json_t *text = json_stringn(d->data ? d->data : "", d->len);
		const struct message_name m = { .src = d->src, .ts = d->ts };
		char name[96];
		json_t *o = json_pack("{s:I, s:s, s:s, s:i, s:o*}", "ts", (json_int_t)d->ts, "src",
				      from, "message", message_format(&m, name, sizeof(name)),
				      "len", (int)d->len, "text", text);

		if (!text) {
			char *hex = malloc((size_t)d->len * 2 + 1);
			uint32_t i;

			for (i = 0; hex && i < d->len; i++)
				sprintf(hex + 2 * i, "%02x", ((const uint8_t *)d->data)[i]);
			if (hex)
				json_object_set_new(o, "hex", json_string(hex));
			free(hex);
		}
		cli_json(o);
	}
	fflush(stdout);
}

/*
 * Prints up to which timestamp an endpoint that was excluded has delivered, so that the remaining
 * messages can be fetched from a receiver that was not excluded.
 */
static void print_stale(const struct bl_endpoint *ep)
{
	struct bl_stale s = { .size = sizeof(s) };

	if (bl_get_stale(ep, &s))
		return;
	if (cli.json)
		cli_json(json_pack("{s:I, s:i}", "stale_ts", (json_int_t)s.ts, "undecided",
				   (int)s.undecided));
	cli_fail("everything below ts %" PRIu64 " was delivered, and nothing from it on; %" PRIu32
		 " messages from there on were received, and other receivers may have delivered "
		 "them: fetch them from one of those",
		 s.ts, s.undecided);
}

/* how often recv looks whether messages of the other stream wait, ms */
#define LOOK_MS 250

/*
 * Says that messages of the stream that is not printed have arrived. Returns whether they have.
 */
static bool tell_other_stream(struct bl_endpoint *ep, bool reliable)
{
	struct bl_stats st = { .size = sizeof(st) };

	if (bl_get_stats(ep, &st) || !(reliable ? st.queued_frames : st.prepared_frames))
		return false;
	fprintf(stderr,
		"barline: %s messages wait here, which this command does not print: run recv "
		"%s -r\n",
		reliable ? "best-effort" : "reliable", reliable ? "without" : "with");
	return true;
}

int cmd_recv(int argc, char **argv)
{
	const struct argp argp = { .options = recv_options,
				   .parser = parse_common,
				   .children = cmd_globals,
				   .doc = "barline recv - print ordered messages as they are "
					  "delivered: timestamp, sender, text" };
	struct sr_args a = { .timeout_ms = -1 };
	struct bl_delivery d[64];
	struct bl_endpoint *ep;
	long long got = 0, waited = 0; /* messages; ms since the last one */
	bool told = false;
	char self[64];
	int n = 0, i;

	cmd_parse(&argp, argc, argv, &a);
	if (bl_init(&ep, &a.opt))
		return cli_fail("%s", bl_strerror(NULL));
	if (a.helper && bl_helper_start(ep, 0)) {
		cli_fail("%s", bl_strerror(ep));
		bl_exit(ep);
		return 1;
	}
	catch_signals();
	fprintf(stderr,
		"barline: receiving on %s (messages of send%s; those of send%s need recv%s)\n",
		bl_addr_format(bl_self(ep), self, sizeof(self)), a.reliable ? " -r" : "",
		a.reliable ? " without -r" : " -r", a.reliable ? " without -r" : " -r");
	while (!stop && (!a.count || got < a.count)) {
		size_t room = a.count && a.count - got < 64 ? (size_t)(a.count - got) : 64;

		int slice = a.timeout_ms >= 0 && a.timeout_ms - waited < LOOK_MS
				    ? (int)(a.timeout_ms - waited)
				    : LOOK_MS;

		n = a.reliable ? bl_recv_reliable(ep, d, room, slice) : bl_recv(ep, d, room, slice);
		if (n == -EINTR)
			continue;
		waited = n ? 0 : waited + slice;
		told = told || tell_other_stream(ep, a.reliable);
		if (n < 0) {
			cli_fail("%s", bl_strerror(ep));
			if (n == -ESTALE && a.reliable)
				print_stale(ep);
			break;
		}
		if (n == 0 && a.timeout_ms >= 0 && waited >= a.timeout_ms) {
			cli_fail("nothing was received for %lld ms", a.timeout_ms);
			n = -ETIMEDOUT;
			break;
		}
		for (i = 0; i < n; i++)
			print_delivery(&d[i]);
		got += n;
	}
	bl_exit(ep);
	return n < 0 && n != -EINTR;
}
