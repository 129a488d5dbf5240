// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline trace: for each message, how long it was where, and which node's barrier it waited for.
 * It follows the frames of a capture (follow.h); docs/look.md explains the columns.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/ip.h"
#include "base/number.h"
#include "cli/capture/attach.h"
#include "cli/capture/follow.h"
#include "cli/capture/text.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "core/clock_core.h"
#include "maps/fence_abi.h"
#include "maps/host_abi.h"

#define ROUND_MS   50
#define SNAP       128
#define LEVELS_MAX 5 /* of switches */

struct trace_args {
	uint16_t endpoint; /* of source or destination; 0: any */
	long long psn;     /* -1: any */
	double slower_us;
	long long count; /* of messages; 0: no limit */
	bool all;
};

enum { KEY_ENDPOINT = 256, KEY_PSN, KEY_SLOWER };

static const struct argp_option options[] = {
	{ "endpoint", KEY_ENDPOINT, "PORT", 0, "messages from or to this UDP port only", 0 },
	{ "psn", KEY_PSN, "NUMBER", 0, "messages with this sequence number only", 0 },
	{ "slower-than", KEY_SLOWER, "US", 0, "messages that took longer only", 0 },
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
	{ 0 }
};
/* clang-format on */

static error_t parse_trace(int key, char *arg, struct argp_state *state)
{
	struct trace_args *a = state->input;
	error_t err = bl_number_option(numbers, key, arg, a, state);

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	if (key != 'a')
		return ARGP_ERR_UNKNOWN;
	a->all = true;
	return 0;
}

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

/** struct trace - the command at work. */
struct trace {
	const struct trace_args *args;
	struct capture *c;
	struct follow *f;
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

/* Returns the number of the node that says it has this id; -1: it is not in reach. */
static int node_of_id(const struct trace *t, uint32_t id)
{
	int i;

	for (i = 0; i < t->nodes; i++)
		if (capture_node(t->c, (uint32_t)i)->meta.node_id == id)
			return i;
	return -1;
}

/* Returns the id of the node at the other end of a switch's port; 0: none is known. */
static uint32_t neighbour_of(const struct trace *t, uint32_t node, uint32_t port)
{
	struct bl_life life;

	if (node_value(capture_node(t->c, node), BL_MAP_SW_LIVES, port, &life, sizeof(life)))
		return 0;
	return life.neighbour;
}

/** struct holder - the input that a message waited for. */
struct holder {
	const char *at, *port; /* the switch, its input */
	char node[40];         /* at the other end */
	bool known;
};

/* Follows the barrier that was missing from switch to switch, as far as they are in reach. */
static void find_holder(const struct trace *t, const struct follow_message *m, struct holder *h)
{
	struct bl_capture_event at = { .node = m->last_switch, .key = m->held_port };
	uint64_t when = m->held_ns;
	bool excluded;
	int level, next = -1;
	uint32_t id;

	h->known = m->held;
	for (level = 0; m->held && level < LEVELS_MAX; level++) {
		struct capture_place p = capture_place(t->c, &at);

		h->at = p.node;
		h->port = p.port;
		id = neighbour_of(t, at.node, at.key);
		next = id ? node_of_id(t, id) : -1;
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

static json_t *span(uint64_t from, uint64_t to)
{
	return from && to ? json_integer((json_int_t)(to - from)) : json_null();
}

static char *end_name(const uint8_t ip[16], uint16_t port, char *buf, size_t size)
{
	char text[INET6_ADDRSTRLEN];

	addr_text(ip, text, sizeof(text));
	snprintf(buf, size, bl_ip_is_v4(ip) ? "%s:%u" : "[%s]:%u", text, port);
	return buf;
}

/* One line of the table. Its headings come first. */
static void print_line(const json_t *o, const struct holder *h, bool excluded, bool first)
{
	static const char *const keys[] = { "host_ns", "up_ns",    "switches_ns",
					    "down_ns", "order_ns", "total_ns" };
	char buf[32];
	size_t i;

	if (first)
		printf("%-24s %-24s %-5s %10s %10s %10s %10s %10s %10s %10s %s\n", "SOURCE",
		       "DESTINATION", "OP", "PSN", "HOST", "UP", "SWITCHES", "DOWN", "ORDER",
		       "TOTAL", "HELD_BY");
	printf("%-24s %-24s %-5s %10" JSON_INTEGER_FORMAT,
	       json_string_value(json_object_get(o, "source")),
	       json_string_value(json_object_get(o, "destination")),
	       json_string_value(json_object_get(o, "opcode")),
	       json_integer_value(json_object_get(o, "psn")));
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const json_t *v = json_object_get(o, keys[i]);

		printf(" %10s",
		       json_is_null(v) ? "-" : out_time(json_integer_value(v), buf, sizeof(buf)));
	}
	if (h->known)
		printf(" %s (%s of %s)%s", h->node, h->port, h->at,
		       excluded ? ", until it was excluded" : "");
	putchar('\n');
}

static void on_done(const struct follow_message *m, void *ctx)
{
	struct trace *t = ctx;
	const struct trace_args *a = t->args;
	int64_t host = time_in_host(t, m), total;
	char src[64], dst[64];
	struct holder h = { 0 };
	json_t *o, *by;

	if ((a->count && t->shown == (uint64_t)a->count) ||
	    (a->endpoint && a->endpoint != m->sport && a->endpoint != m->dport) ||
	    (a->psn >= 0 && (uint32_t)a->psn != m->psn))
		return;
	total = (int64_t)(m->done_ns - (m->sent_ns ? m->sent_ns : m->stored_ns)) + host;
	if ((double)total < a->slower_us * 1000)
		return;
	find_holder(t, m, &h);
	by = h.known ? json_pack("{s:s, s:s, s:s, s:b}", "node", h.node, "switch", h.at, "name",
				 h.port, "excluded", m->excluded)
		     : json_null();
	o = json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "source",
		      end_name(m->src, m->sport, src, sizeof(src)), "destination",
		      end_name(m->dst, m->dport, dst, sizeof(dst)), "opcode",
		      m->reliable ? "prep" : "data", "psn", (json_int_t)m->psn, "ts",
		      (json_int_t)m->ts, "host_ns", m->sent_ns ? json_integer(host) : json_null(),
		      "up_ns", span(m->sent_ns, m->first_ns), "switches_ns",
		      span(m->first_ns, m->last_ns), "down_ns", span(m->last_ns, m->stored_ns),
		      "order_ns", span(m->stored_ns, m->done_ns), "total_ns", (json_int_t)total,
		      "held_by", by);
	if (cli.json) {
		cli_json(o);
	} else {
		print_line(o, &h, m->excluded, !t->shown);
		json_decref(o);
	}
	fflush(stdout);
	t->shown++;
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

int cmd_trace(int argc, char **argv)
{
	const struct argp argp = { .options = options,
				   .parser = parse_trace,
				   .children = cmd_globals,
				   .doc = "barline trace - where messages waited, and for whose "
					  "barrier\v"
					  "Columns: in its host after its timestamp, up to the "
					  "first switch, between "
					  "switches, down to the receiver, there until it was in "
					  "order. What is not in "
					  "reach of this machine is not known. With -a in a lab, "
					  "everything is." };
	struct trace_args a = { .psn = -1 };
	struct trace t = { .args = &a };
	struct capture_filter filter;
	struct bl_node_ref *refs;
	struct bl_err err;
	int rc, st = 0;

	cmd_parse(&argp, argc, argv, &a);
	t.nodes = nodes_here(&refs, a.all);
	if (t.nodes < 0)
		return 1;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGHUP, on_signal);
	capture_everything(&filter);
	filter.snap = SNAP;
	t.f = follow_new();
	if (!t.f)
		return cli_fail("out of memory");
	rc = capture_open(&t.c, refs, t.nodes, &filter, &err);
	if (!rc)
		cli_say("tracing");
	while (!rc && !stop)
		rc = capture_poll(t.c, ROUND_MS, 0, on_frame, &t, &err);
	if (rc == -ENOMEM)
		st = cli_fail("out of memory");
	else if (rc < 0)
		st = cli_fail("%s", err.text);
	else if (capture_lost(t.c) && !cli.json)
		fprintf(stderr, "barline: %" PRIu64 " frames were not seen, for want of buffers\n",
			capture_lost(t.c));
	capture_close(t.c);
	follow_free(t.f);
	free(refs);
	return st;
}
