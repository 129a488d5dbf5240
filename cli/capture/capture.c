// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline capture: the frames that the programs of nodes handle, with the verdict, as lines, as
 * JSON, or as a pcapng file. docs/look.md says how it works.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/capture/attach.h"
#include "cli/capture/pcapng.h"
#include "cli/capture/text.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/proc.h"
#include "cli/util/read.h"

#define ROUND_MS 50

struct capture_args {
	struct capture_filter f;
	const char *file;            /* of -w; NULL: text */
	long long count;             /* of frames; 0: no limit */
	bool all;                    /* nodes of all network namespaces */
	bool others;                 /* frames that are not barline's, too */
	bool opcodes, reasons, dirs; /* the filter was given */
};

enum {
	KEY_PORT = 256,
	KEY_ENDPOINT,
	KEY_OPCODE,
	KEY_REASON,
	KEY_DIRECTION,
	KEY_BUFFER,
	KEY_OTHERS
};

static const struct argp_option options[] = {
	{ "write", 'w', "FILE", 0, "write a pcapng file; -: to stdout (default: lines of text)",
	  0 },
	{ "count", 'c', "COUNT", 0, "stop after this number of frames (default: never)", 0 },
	{ "port", KEY_PORT, "IFNAME", 0, "frames of this interface only", 0 },
	{ "endpoint", KEY_ENDPOINT, "PORT", 0, "frames from or to this UDP port only", 0 },
	{ "opcode", KEY_OPCODE, "NAME[,NAME...]", 0,
	  "frames with these opcodes only; other: without a header of barline's", 0 },
	{ "reason", KEY_REASON, "NAME[,NAME...]", 0,
	  "frames with these reasons only; `barline show drops` explains them", 0 },
	{ "direction", KEY_DIRECTION, "in|out", 0, "frames in this direction only", 0 },
	{ "snaplen", 's', "BYTES", 0, "bytes to keep of each frame (default: all)", 0 },
	{ "others", KEY_OTHERS, NULL, 0, "frames that are not barline's, too", 0 },
	{ "buffer", KEY_BUFFER, "KIB", 0, "buffer of each CPU (default 2048)", 0 },
	{ "all", 'a', NULL, 0, "nodes of all network namespaces of this machine", 0 },
	{ 0 }
};

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER('c', "count", NULL, 1, 1000000000000, struct capture_args, count),
	BL_NUMBER('s', "snaplen", "bytes", 64, BL_CAPTURE_SNAP_MAX, struct capture_args, f.snap),
	BL_NUMBER(KEY_ENDPOINT, "endpoint", NULL, 1, 65535, struct capture_args, f.endpoint),
	BL_NUMBER(KEY_BUFFER, "buffer", "KiB", 4, 1048576, struct capture_args, f.buffer_kib),
	{ 0 }
};
/* clang-format on */

/* Why frames cannot be captured by this reason; NULL: they can. */
static const char *refuse_reason(int r)
{
	if (reason_kind((unsigned int)r) == BL_KIND_NOTE)
		return "is counted beside the reason that a frame ends for, so no frame is "
		       "captured for it; `barline show drops -i 1` counts it";
	if (r == BL_R_TOKEN_EXPIRED)
		return "is of tokens that vanish in a queue, where no program has the frame; "
		       "`barline show drops -i 1` counts it";
	return NULL;
}

/*
 * Calls @number for each name of @list, and sets the bits in @words, which has @n. @refuse: says of
 * a number why it cannot be asked for; NULL: all can.
 */
static void parse_names(char *list, const char *what, int (*number)(const char *),
			const char *(*refuse)(int), uint64_t *words, unsigned int n,
			const char *hint, struct argp_state *state)
{
	const char *why;
	char *save, *s;
	int k;

	for (s = strtok_r(list, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
		k = number(s);
		if (k < 0 || (unsigned int)k >= 64 * n) {
			argp_error(state, "--%s: there is no %s \"%s\"; %s", what, what, s, hint);
			continue; /* the parser was told not to end the process */
		}
		why = refuse ? refuse(k) : NULL;
		if (why)
			argp_error(state, "--%s: %s %s", what, s, why);
		words[k / 64] |= 1ULL << (k % 64);
	}
}

static error_t parse_capture(int key, char *arg, struct argp_state *state)
{
	struct capture_args *a = state->input;
	error_t err = bl_number_option(numbers, key, arg, a, state);
	uint64_t word;

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case 'w':
		a->file = arg;
		return 0;
	case 'a':
		a->all = true;
		return 0;
	case KEY_OTHERS:
		a->others = true;
		return 0;
	case KEY_PORT:
		a->f.port = arg;
		return 0;
	case KEY_OPCODE:
		word = a->opcodes ? a->f.opcodes : 0;
		a->opcodes = true;
		parse_names(arg, "opcode", opcode_number, NULL, &word, 1,
			    "docs/protocol.md lists them, and \"other\" is for none", state);
		a->f.opcodes = (uint32_t)word;
		return 0;
	case KEY_REASON:
		if (!a->reasons)
			memset(a->f.reasons, 0, sizeof(a->f.reasons));
		a->reasons = true;
		parse_names(arg, "reason", reason_number, refuse_reason, a->f.reasons,
			    BL_CAPTURE_WORDS, "docs/protocol.md lists them", state);
		return 0;
	case KEY_DIRECTION:
		if (!a->dirs)
			a->f.dirs = 0;
		a->dirs = true;
		if (!strcmp(arg, "in"))
			a->f.dirs |= 1U << BL_CAPTURE_IN;
		else if (!strcmp(arg, "out"))
			a->f.dirs |= 1U << BL_CAPTURE_OUT;
		else
			argp_error(state, "--direction: \"%s\" is neither in nor out", arg);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/** struct face - an interface of the pcapng file: a node's port in one direction. */
struct face {
	char name[64];
	uint64_t frames;
};

/** struct output - where frames go. */
struct output {
	const struct capture_args *args;
	struct capture *c;
	struct pcapng file; /* f NULL: lines */
	struct face *faces; /* by number of the interface */
	uint64_t frames;
	int err; /* 0 or -errno of a failed write */
};

/* Returns the number of the interface in the file, which is added when it is first needed. */
static uint32_t find_face(struct output *o, const struct bl_capture_event *e)
{
	struct capture_place p = capture_place(o->c, e);
	char name[64], text[128];
	struct face *more;
	uint32_t i;

	snprintf(name, sizeof(name), "%s/%s/%s", p.node, p.port, dir_name(e->dir));
	for (i = 0; i < o->file.interfaces; i++)
		if (!strcmp(o->faces[i].name, name))
			return i;
	more = realloc(o->faces, (i + 1) * sizeof(*more));
	if (!more) {
		o->err = -ENOMEM;
		return 0;
	}
	o->faces = more;
	memset(&more[i], 0, sizeof(more[i]));
	snprintf(more[i].name, sizeof(more[i].name), "%s", name);
	snprintf(text, sizeof(text), "%s %s, port %s, frames %s", p.role, p.node, p.port,
		 e->dir == BL_CAPTURE_IN ? "in" : "out");
	o->err = pcapng_interface(&o->file, name, text, o->args->f.snap);
	return i;
}

static int on_frame(const struct bl_capture_event *e, void *ctx)
{
	struct output *o = ctx;
	char text[1024];

	if (o->file.f) {
		struct pcapng_packet k = { .interface = find_face(o, e),
					   .real_ns = capture_real_ns(o->c, e),
					   .len = e->len,
					   .caplen = e->caplen,
					   .data = e + 1,
					   .dir = e->dir == BL_CAPTURE_IN ? PCAPNG_INBOUND
									  : PCAPNG_OUTBOUND };

		if (o->err)
			return 1;
		k.comment = frame_comment(o->c, e, text, sizeof(text));
		o->faces[k.interface].frames++;
		o->err = pcapng_packet(&o->file, &k);
	} else if (cli.json) {
		cli_json(frame_json(o->c, e));
	} else {
		puts(frame_line(o->c, e, text, sizeof(text)));
	}
	o->frames++;
	return o->err || (o->args->count && o->frames == (uint64_t)o->args->count);
}

static int begin_file(struct output *o)
{
	const char *name = o->args->file;
	struct utsname u;
	char os[256] = "Linux";

	if (!name)
		return 0;
	if (!strcmp(name, "-") && isatty(STDOUT_FILENO))
		return cli_usage("-w -: a pcapng file is not for a terminal; pipe it, as in "
				 "`barline capture -w - | wireshark -k -i -`");
	o->file.f = strcmp(name, "-") ? fopen(name, "we") : stdout;
	if (!o->file.f)
		return cli_fail("%s: %s", name, strerror(errno));
	if (!uname(&u))
		snprintf(os, sizeof(os), "%.64s %.128s", u.sysname, u.release);
	o->err = pcapng_section(&o->file, os, "barline " BARLINE_VERSION);
	return o->err ? cli_fail("%s: %s", name, strerror(-o->err)) : 0;
}

static void end_file(struct output *o)
{
	uint64_t lost = capture_lost(o->c);
	struct timespec t;
	char text[128];
	uint32_t i;

	clock_gettime(CLOCK_REALTIME, &t);
	snprintf(text, sizeof(text),
		 "the capture lost %" PRIu64 " frames of all interfaces, for want of buffers",
		 lost);
	for (i = 0; i < o->file.interfaces && !o->err; i++)
		o->err = pcapng_statistics(&o->file, i,
					   (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec,
					   o->faces[i].frames, lost, lost ? text : NULL);
}

/* Captures until it is to stop, which *@stop says, too. Returns the exit status. */
static int run(struct output *o, const volatile sig_atomic_t *stop)
{
	const char *name = !o->args->file || !strcmp(o->args->file, "-") ? "stdout" : o->args->file;
	FILE *f = o->file.f ? o->file.f : stdout;
	struct bl_err err;
	int rc = 0;

	while (!*stop && !rc) {
		rc = capture_poll(o->c, ROUND_MS, 0, on_frame, o, &err);
		if (fflush(f) && !o->err)
			o->err = -errno;
		if (o->err)
			break;
	}
	if (!rc && !o->err)
		rc = capture_poll(o->c, 0, 1, on_frame, o, &err);
	if (rc < 0)
		return cli_fail("%s", err.text);
	if (o->file.f && !o->err)
		end_file(o);
	if (fflush(f) && !o->err)
		o->err = -errno;
	if (o->err && o->err != -EPIPE) /* the reader of a pipe may have enough */
		return cli_fail("%s: %s", name, strerror(-o->err));
	if (!cli.json)
		fprintf(stderr, "barline: %" PRIu64 " frames captured, %" PRIu64 " lost%s\n",
			o->frames, capture_lost(o->c),
			capture_lost(o->c) ? " for want of buffers (see --buffer)" : "");
	return 0;
}

int cmd_capture(int argc, char **argv)
{
	const struct argp argp = { .options = options,
				   .parser = parse_capture,
				   .children = cmd_globals,
				   .doc = "barline capture - the frames of nodes, in and out, with "
					  "the verdict\v"
					  "Frames that XDP takes or forwards, which tcpdump does "
					  "not see, are captured "
					  "as well. Without -w there is one line per frame, or "
					  "with -j one object. The "
					  "file's packets have comments: node, interface, "
					  "direction, reason, and the "
					  "barriers before and after. Nothing is captured any more "
					  "once this command has "
					  "ended, in whatever way." };
	const volatile sig_atomic_t *stop;
	struct capture_args a = { 0 };
	struct output o = { .args = &a };
	struct bl_node_ref *refs;
	struct bl_err err;
	int n, st;

	capture_everything(&a.f);
	cmd_parse(&argp, argc, argv, &a);
	if (a.others && !a.opcodes)
		a.f.opcodes |= 1;
	n = nodes_here(&refs, a.all);
	if (n < 0)
		return 1;
	st = begin_file(&o);
	if (st)
		return st;
	signal(SIGPIPE, SIG_IGN);
	stop = stop_flag();
	if (capture_open(&o.c, refs, n, &a.f, &err)) {
		st = cli_fail("%s", err.text);
	} else {
		cli_say("capturing");
		st = run(&o, stop);
	}
	capture_close(o.c);
	pcapng_free(&o.file);
	if (o.file.f && o.file.f != stdout && fclose(o.file.f) && !st)
		st = cli_fail("%s: %s", a.file, strerror(errno));
	free(o.faces);
	free(refs);
	return st;
}
