/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline send, barline recv: send and receive ordered messages on the command line.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "lib/barline.h"
#include "maps/wire_abi.h"

/** struct sr_args - Options of send and recv. */
struct sr_args {
	struct bl_options opt;
	long long count;      /* recv: messages to print; 0: no limit */
	long long timeout_ms; /* recv: fail if nothing is received for this time; -1: no limit */
	long long linger_ms;  /* send: time to wait for failure reports at the end */
	struct bl_addr *to;   /* send: @nto receivers */
	size_t nto;
	const char *text;      /* send: the message; NULL or "-": one per line of stdin */
	bool reliable, helper; /* -r, -H */
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static error_t parse_addrs(struct sr_args *a, char *list, struct argp_state *state)
{
	char *save, *s;

	for (s = strtok_r(list, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
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

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER('p', "port", NULL, 1, 65535, struct sr_args, opt.port),
	BL_NUMBER('w', "wait", "ms", 0, 3600000, struct sr_args, linger_ms),
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
						     "time to wait for failure reports after the "
						     "last message (default 100)",
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
		err = bl_wait(ep, a->reliable ? BL_WAIT_SEND_RELIABLE : BL_WAIT_SEND, 1000);
		if (err < 0)
			break;
	}
	return err ? cli_fail("line %" PRIu64 ": %s", line, bl_strerror(ep)) : 0;
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
					  "scattering: one timestamp at all its receivers." };
	struct sr_args a = { .linger_ms = 100 };
	struct failures f = { 0 };
	struct bl_endpoint *ep;
	struct bl_msg *vec;
	uint64_t line = 0, until;
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
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
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
	/* if the process ended before all messages are acknowledged, it would count as failed */
	while (a.reliable && !err && !stop && bl_wait(ep, BL_WAIT_ACKED, 1000) == 0)
		;
	until = bl_mono_ns() + (uint64_t)a.linger_ms * 1000000;
	while (!err && !stop && bl_mono_ns() < until)
		bl_wait(ep, BL_WAIT_RECV, 10); /* failure reports arrive here */
	if (cli.json && !err)
		cli_json(json_pack("{s:I, s:I, s:I, s:I}", "scatterings", (json_int_t)line,
				   "messages", (json_int_t)(line * a.nto), "failed",
				   (json_int_t)(f.n - f.unknown), "unknown",
				   (json_int_t)f.unknown));
	bl_exit(ep);
	free(vec);
	free(a.to);
	return err || f.n;
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
		json_t *o = json_pack("{s:I, s:s, s:i, s:o*}", "ts", (json_int_t)d->ts, "src", from,
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

int cmd_recv(int argc, char **argv)
{
	const struct argp argp = { .options = recv_options,
				   .parser = parse_common,
				   .children = cmd_globals,
				   .doc = "barline recv - print ordered messages as they are "
					  "delivered: timestamp, sender, text" };
	struct sr_args a = { .timeout_ms = -1 };
	struct sigaction sa = { .sa_handler = on_signal };
	struct bl_delivery d[64];
	struct bl_endpoint *ep;
	long long got = 0;
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
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	fprintf(stderr, "barline: receiving on %s\n",
		bl_addr_format(bl_self(ep), self, sizeof(self)));
	while (!stop && (!a.count || got < a.count)) {
		size_t room = a.count && a.count - got < 64 ? (size_t)(a.count - got) : 64;

		n = a.reliable ? bl_recv_reliable(ep, d, room, (int)a.timeout_ms)
			       : bl_recv(ep, d, room, (int)a.timeout_ms);
		if (n == -EINTR)
			continue;
		if (n < 0) {
			cli_fail("%s", bl_strerror(ep));
			if (n == -ESTALE && a.reliable)
				print_stale(ep);
			break;
		}
		if (n == 0 && a.timeout_ms >= 0) {
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
