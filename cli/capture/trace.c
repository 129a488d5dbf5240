// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline trace: for each message, how long it was where, and which node's barrier it waited for.
 * It follows the frames of a capture (follow.h), or looks back (trace_past.h). docs/look.md
 * explains the columns.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/capture/attach.h"
#include "cli/capture/follow.h"
#include "cli/capture/text.h"
#include "cli/capture/trace_past.h"
#include "cli/capture/trace_row.h"
#include "cli/cmd.h"
#include "cli/live/holder.h"
#include "cli/util/args.h"
#include "cli/util/message.h"
#include "cli/util/proc.h"
#include "cli/util/read.h"
#include "core/clock_core.h"
#include "maps/fence_abi.h"
#include "maps/host_abi.h"

#define ROUND_MS 50
#define SNAP     128

struct trace_args {
	uint16_t endpoint; /* of source or destination; 0: any */
	long long psn;     /* -1: any */
	double slower_us;
	long long count;             /* of messages; 0: no limit */
	unsigned int last;           /* messages to look back; 0: no --last */
	struct message_name message; /* a timestamp of 0: none is named */
	bool all;
};

enum { KEY_ENDPOINT = 256, KEY_PSN, KEY_SLOWER, KEY_LAST };

static const struct argp_option options[] = {
	{ "endpoint", KEY_ENDPOINT, "PORT", 0, "messages from or to this UDP port only", 0 },
	{ "psn", KEY_PSN, "NUMBER", 0, "messages with this sequence number only", 0 },
	{ "slower-than", KEY_SLOWER, "US", 0, "messages that took longer only", 0 },
	{ "last", KEY_LAST, "COUNT", OPTION_ARG_OPTIONAL,
	  "look back: the last message that an endpoint here has delivered, or the last COUNT, and "
	  "what waits to leave now",
	  0 },
	{ "count", 'c', "COUNT", 0, "stop after this number of messages (default: never)", 0 },
	{ "all", 'a', NULL, 0, "nodes of all network namespaces of this machine", 0 },
	{ 0 }
};

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER(KEY_ENDPOINT, "endpoint", NULL, 1, 65535, struct trace_args, endpoint),
	BL_NUMBER(KEY_PSN, "psn", NULL, 0, 4294967295, struct trace_args, psn),
	BL_NUMBER(KEY_SLOWER, "slower-than", "us", 0, 1e9, struct trace_args, slower_us),
	BL_NUMBER('c', "count", NULL, 1, 1000000000000, struct trace_args, count),
	BL_NUMBER(KEY_LAST, "last", NULL, 1, TRACE_LAST_MAX, struct trace_args, last),
	{ 0 }
};
/* clang-format on */

static error_t parse_trace(int key, char *arg, struct argp_state *state)
{
	struct trace_args *a = state->input;
	error_t err;

	if (key == KEY_LAST && !arg) {
		a->last = 1;
		return 0;
	}
	err = bl_number_option(numbers, key, arg, a, state);
	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case 'a':
		a->all = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			return ARGP_ERR_UNKNOWN;
		if (message_parse(&a->message, arg))
			argp_error(state,
				   "\"%s\" is no message: SOURCE@TIMESTAMP, as in "
				   "10.0.0.1:61696@1764000000000000000, or @TIMESTAMP",
				   arg);
		return 0;
	case ARGP_KEY_END:
		if (a->message.ts &&
		    (a->last || a->count || a->psn >= 0 || a->endpoint || a->slower_us > 0))
			argp_error(state, "a message that is named is the only one: leave out "
					  "--last, --endpoint, --psn, --slower-than and --count");
		if (a->last && (a->count || a->psn >= 0))
			argp_error(state, "--last looks back, where --count and --psn do not "
					  "apply");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/** struct trace - the command at work. */
struct trace {
	const struct trace_args *args;
	struct capture *c;
	struct follow *f;
	const struct bl_node_ref *refs;
	int nodes;
	uint64_t shown;
};

/* Copies the addresses of an IP packet, IPv4 ones as IPv6. */
static bool copy_ends(const struct bl_capture_event *e, const struct bl_capture_head *h,
		      struct follow_frame *k)
{
	const uint8_t *ip = (const uint8_t *)(e + 1) + h->l3_off;

	if (!h->l3_off || e->caplen < h->l3_off + (h->v6 ? 40U : 20U))
		return false;
	if (h->v6) {
		memcpy(k->src, ip + 8, 16);
		memcpy(k->dst, ip + 24, 16);
	} else {
		memset(k->src + 10, 0xff, 2);
		memset(k->dst + 10, 0xff, 2);
		memcpy(k->src + 12, ip + 12, 4);
		memcpy(k->dst + 12, ip + 16, 4);
	}
	k->sport = h->sport;
	k->dport = h->dport;
	return true;
}

/* A stored PREP is its ACK by now, on its way back. */
static void turn_round(struct follow_frame *k)
{
	uint8_t ip[16];
	uint16_t port = k->sport;

	memcpy(ip, k->src, sizeof(ip));
	memcpy(k->src, k->dst, sizeof(ip));
	memcpy(k->dst, ip, sizeof(ip));
	k->sport = k->dport;
	k->dport = port;
}

static bool accepted(unsigned int reason)
{
	switch (reason) {
	case BL_R_BEACON:
	case BL_R_RELAYED:
	case BL_R_FORWARDED:
	case BL_R_QUEUED:
	case BL_R_TO_KERNEL:
	case BL_R_NOT_IN:
	case BL_R_STORED:
	case BL_R_PREPARED:
	case BL_R_SENT:
		return true;
	}
	return false;
}

/* Returns the id of the node at the other end of a switch's port; 0: none is known. */
static uint32_t neighbour_of(const struct trace *t, uint32_t node, uint32_t port)
{
	struct bl_life life;

	if (node_value(capture_node(t->c, node), BL_MAP_SW_LIVES, port, &life, sizeof(life)))
		return 0;
	return life.neighbour;
}

/*
 * The number of the node that has this id; -1: it is not in reach, or several have it, as in two
 * racks of one machine.
 */
static int node_of_id(const struct trace *t, uint32_t id)
{
	int i, found = -1;

	for (i = 0; i < t->nodes; i++) {
		if (!id || t->refs[i].meta.node_id != id)
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

/* Follows the barrier that was missing from switch to switch, as far as they are in reach. */
static void find_holder(const struct trace *t, const struct follow_message *m,
			struct trace_holder *h)
{
	struct bl_capture_event at = { .node = m->last_switch, .key = m->held_port };
	uint64_t when = m->held_ns;
	bool excluded;
	int level, next = -1;
	uint32_t id;

	h->known = m->held;
	h->excluded = m->excluded;
	for (level = 0; m->held && level < HOLD_LEVELS_MAX; level++) {
		struct capture_place p = capture_place(t->c, &at);

		h->at = p.node;
		h->port = p.port;
		id = neighbour_of(t, at.node, at.key);
		next = node_of_id(t, id);
		snprintf(h->node, sizeof(h->node), "node %u", id);
		if (next < 0)
			return;
		snprintf(h->node, sizeof(h->node), "%.31s",
			 capture_node(t->c, (uint32_t)next)->meta.name);
		if (capture_node(t->c, (uint32_t)next)->role != BL_ROLE_SWITCH ||
		    !follow_input(t->f, (uint32_t)next, m->ts, m->reliable, when, &at.key, &when,
				  &excluded))
			return;
		at.node = (uint32_t)next;
	}
}

/* Returns how long after its timestamp the message left its host, ns; 0: not known. */
static int64_t time_in_host(const struct trace *t, const struct follow_message *m)
{
	struct bl_clock clock;

	if (!m->sent_ns ||
	    node_value(capture_node(t->c, m->sender), BL_MAP_CLOCK, 0, &clock, sizeof(clock)))
		return 0;
	return (int64_t)((bl_clock_at(&clock, m->sent_ns) - m->ts) << 16) >> 16;
}

static int64_t span(uint64_t from, uint64_t to)
{
	return from && to ? (int64_t)(to - from) : TRACE_UNKNOWN;
}

/* Returns the 64 bits of a timestamp of which a frame carried 48. */
static uint64_t whole_ts(const struct trace *t, const struct follow_message *m)
{
	struct bl_clock clock;
	uint32_t node = m->sent_ns ? m->sender : m->receiver;

	if (node_value(capture_node(t->c, node), BL_MAP_CLOCK, 0, &clock, sizeof(clock)))
		return m->ts;
	return bl_ext48(m->ts, bl_clock_at(&clock, m->stored_ns));
}

static void fill_row(const struct trace *t, const struct follow_message *m, int64_t host,
		     int64_t total, struct trace_row *r)
{
	trace_row_clear(r);
	memcpy(r->name.src.ip, m->src, sizeof(r->name.src.ip));
	memcpy(r->dst.ip, m->dst, sizeof(r->dst.ip));
	r->name.src.port = m->sport;
	r->dst.port = m->dport;
	r->name.ts = whole_ts(t, m);
	r->reliable = m->reliable;
	r->psn = m->psn;
	r->ns[TRACE_HOST] = m->sent_ns ? host : TRACE_UNKNOWN;
	r->ns[TRACE_UP] = span(m->sent_ns, m->first_ns);
	r->ns[TRACE_SWITCHES] = span(m->first_ns, m->last_ns);
	r->ns[TRACE_DOWN] = span(m->last_ns, m->stored_ns);
	r->ns[TRACE_ORDER] = span(m->stored_ns, m->done_ns);
	r->ns[TRACE_TOTAL] = total;
	r->at_ns = m->done_ns;
	trace_row_wait(r, t->refs, t->nodes);
	trace_row_app(r, capture_node(t->c, m->receiver), m->done_ns);
	find_holder(t, m, &r->holder);
}

static void on_done(const struct follow_message *m, void *ctx)
{
	struct trace *t = ctx;
	const struct trace_args *a = t->args;
	int64_t host = time_in_host(t, m);
	struct trace_row r;

	if ((a->count && t->shown == (uint64_t)a->count) ||
	    (a->endpoint && a->endpoint != m->sport && a->endpoint != m->dport) ||
	    (a->psn >= 0 && (uint32_t)a->psn != m->psn))
		return;
	fill_row(t, m, host,
		 (int64_t)(m->done_ns - (m->sent_ns ? m->sent_ns : m->stored_ns)) + host, &r);
	if ((double)trace_row_took(&r) < a->slower_us * 1000)
		return;
	trace_row_print(&r, !t->shown++);
}

static int on_frame(const struct bl_capture_event *e, void *ctx)
{
	struct trace *t = ctx;
	const struct bl_node_ref *ref = capture_node(t->c, e->node);
	struct bl_capture_head h;
	struct follow_frame k = { 0 };
	int rc;

	if (!ref || !accepted(e->reason) ||
	    (ref->role == BL_ROLE_HOST && e->key != BL_HC_INGRESS && e->key != BL_HC_EGRESS))
		return 0;
	frame_find(e, &h);
	k.at_ns = e->at_ns;
	k.node = e->node;
	k.in_switch = ref->role == BL_ROLE_SWITCH;
	k.port = k.in_switch ? e->key : 0;
	k.out = e->dir == BL_CAPTURE_OUT;
	k.b_before = e->b_before;
	k.b_after = e->b_after;
	k.c_before = e->c_before;
	k.c_after = e->c_after;
	k.ts = h.ts;
	k.psn = h.psn;
	k.reliable = e->opcode == BL_OP_PREP || e->reason == BL_R_PREPARED;
	k.message = copy_ends(e, &h, &k) && (e->opcode == BL_OP_DATA || k.reliable);
	k.took = k.in_switch ? e->reason == BL_R_FORWARDED
			     : e->reason == BL_R_SENT || e->reason == BL_R_STORED ||
				       e->reason == BL_R_PREPARED;
	if (e->reason == BL_R_PREPARED)
		turn_round(&k);
	rc = follow_frame(t->f, &k, on_done, t);
	return rc ? rc : t->args->count && t->shown == (uint64_t)t->args->count;
}

/* Captures, and prints messages as they end. Returns the exit status. */
static int follow_all(struct trace *t)
{
	const volatile sig_atomic_t *stop;
	struct capture_filter filter;
	struct bl_err err;
	int rc, st = 0;

	stop = stop_flag();
	capture_everything(&filter);
	filter.snap = SNAP;
	t->f = follow_new();
	if (!t->f)
		return cli_fail("out of memory");
	rc = capture_open(&t->c, t->refs, t->nodes, &filter, &err);
	if (!rc)
		cli_say("tracing");
	while (!rc && !*stop)
		rc = capture_poll(t->c, ROUND_MS, 0, on_frame, t, &err);
	if (rc == -ENOMEM)
		st = cli_fail("out of memory");
	else if (rc < 0)
		st = cli_fail("%s", err.text);
	else if (capture_lost(t->c) && !cli.json)
		fprintf(stderr, "barline: %" PRIu64 " frames were not seen, for want of buffers\n",
			capture_lost(t->c));
	capture_close(t->c);
	follow_free(t->f);
	return st;
}

int cmd_trace(int argc, char **argv)
{
	const struct argp argp = { .options = options,
				   .parser = parse_trace,
				   .args_doc = "[MESSAGE]",
				   .children = cmd_globals,
				   .doc = "barline trace - where messages waited, and for whose "
					  "barrier\v"
					  "Columns: before its timestamp, staged and waiting for "
					  "windows; in its host after that, up to the first "
					  "switch, between switches, down to the receiver, there "
					  "until it was in order, and until the application took "
					  "it. What is not in reach of this machine is not known. "
					  "With -a in a lab, everything is.\n\n"
					  "MESSAGE is SOURCE@TIMESTAMP, as `send -v` prints it and "
					  "recv its two parts: what the endpoints here have noted "
					  "of "
					  "that message, or for whom it waits now." };
	struct trace_args a = { .psn = -1 };
	struct trace t = { .args = &a };
	struct bl_node_ref *refs;
	int st;

	cmd_parse(&argp, argc, argv, &a);
	t.nodes = nodes_here(&refs, a.all);
	if (t.nodes < 0)
		return 1;
	t.refs = refs;
	if (a.message.ts)
		st = trace_message(refs, t.nodes, &a.message);
	else if (a.last)
		st = trace_last(refs, t.nodes, a.last, a.endpoint, (int64_t)(a.slower_us * 1000));
	else
		st = follow_all(&t);
	free(refs);
	return st;
}
