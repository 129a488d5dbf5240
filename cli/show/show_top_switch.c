/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline show tokens: the state of TOP in the maps of switches (maps/top_token_abi.h) and of hosts
 * (show_top.h). Classes of a port that never had a token are omitted.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "cli/cmd.h"
#include "cli/show/show.h"
#include "cli/show/show_top.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "cli/util/read_admission.h"
#include "core/top/top_token_core.h"
#include "loader/admission/top_switch.h"

/** struct tokens - Arrays of rows, one per table. */
struct tokens {
	json_t *switches, *ports, *classes;
	struct top_rows top;
};

/* Reads the counts of a port, summed over all CPUs. All fields have 64 bits. */
static int read_token_counts(int fd, uint32_t port, struct bl_token_counts *sum)
{
	size_t words = sizeof(*sum) / sizeof(uint64_t), w;
	int cpus = libbpf_num_possible_cpus(), k, rc;
	uint64_t *v = cpus > 0 ? calloc((size_t)cpus, sizeof(*sum)) : NULL;

	memset(sum, 0, sizeof(*sum));
	if (!v)
		return cli_fail("out of memory");
	rc = bpf_map_lookup_elem(fd, &port, v);
	for (k = 0; k < cpus && !rc; k++)
		for (w = 0; w < words; w++)
			((uint64_t *)sum)[w] += v[(size_t)k * words + w];
	free(v);
	return rc ? cli_fail("cannot read entry %u of the map %s: %s", port, BL_MAP_TOKEN_COUNTS,
			     strerror(errno))
		  : 0;
}

static uint64_t sum_classes(const __u64 *v)
{
	uint64_t sum = 0;
	unsigned int c;

	for (c = 0; c < BL_TOP_CLASSES; c++)
		sum += v[c];
	return sum;
}

static int add_port_rows(const struct bl_node_ref *ref, const struct bl_token_cfg *cfg,
			 const int *fds, uint32_t queue_count, uint32_t port, struct tokens *out)
{
	uint64_t passed, limit, expired, unit, now = bl_mono_ns();
	struct bl_token_counts n;
	struct bl_token_port p;
	struct bl_sw_port sw;
	char name[16];
	unsigned int c;

	if (bpf_map_lookup_elem(fds[0], &port, &p) || bpf_map_lookup_elem(fds[2], &port, &sw))
		return cli_fail("cannot read port %u of %s: %s", port, ref->meta.name,
				strerror(errno));
	if (!sw.ifindex)
		return 0;
	if (read_token_counts(fds[1], port, &n))
		return 1;
	snprintf(name, sizeof(name), "%.15s", sw.name);
	unit = bl_token_unit(p.ns_q20);
	passed = sum_classes(n.passed);
	limit = sum_classes(n.limit);
	expired = sum_classes(n.expired);
	json_array_append_new(
		out->ports,
		json_pack("{s:s, s:i, s:s, s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			  "node", node_name(ref), "port", (int)port, "name", name, "token_ns",
			  (json_int_t)(unit >> 20), "tokens_per_s",
			  unit ? 1e9 * (1 << 20) / (double)unit : 0.0, "ahead_tokens",
			  unit ? (double)bl_token_ahead(p.out_q20, now, unit) / (double)unit : 0.0,
			  "passed", (json_int_t)passed, "limit", (json_int_t)limit, "expired",
			  (json_int_t)expired, "lost", (json_int_t)n.lost, "bad", (json_int_t)n.bad,
			  "flood", (json_int_t)n.flood, "signals", (json_int_t)n.signals,
			  "signal_flood", (json_int_t)n.signal_flood));
	for (c = 0; c < BL_TOP_CLASSES; c++) {
		uint32_t key = BL_PORT_QUEUE(port, BL_CL_TOKEN0 + c);
		struct bl_queue q = { .head = 0 };

		if (!n.passed[c] && !n.limit[c] && !n.expired[c])
			continue;
		if (sw.metered && key < queue_count && adm_queue(fds[3], key, &q))
			return cli_fail("cannot read queue %u of %s", key, ref->meta.name);
		json_array_append_new(
			out->classes,
			json_pack("{s:s, s:i, s:s, s:i, s:I, s:I, s:I, s:I, s:o}", "node",
				  node_name(ref), "port", (int)port, "name", name, "class", (int)c,
				  "queued", (json_int_t)(q.tail - q.head), "passed",
				  (json_int_t)n.passed[c], "limit", (json_int_t)n.limit[c],
				  "expired", (json_int_t)n.expired[c], "dropped_percent",
				  json_real(100.0 * (double)(n.limit[c] + n.expired[c]) /
					    (double)(n.passed[c] + n.limit[c] + n.expired[c]))));
	}
	return 0;
}

static int add_switch_rows(const struct bl_node_ref *ref, struct tokens *out)
{
	uint32_t queue_count = 0, port;
	struct bl_token_cfg cfg;
	struct bl_sw_cfg sw;
	int fds[4], k, err = 0;

	if (node_value(ref, BL_MAP_TOKEN_CFG, 0, &cfg, sizeof(cfg)) ||
	    node_value(ref, BL_MAP_SW_CFG, 0, &sw, sizeof(sw)))
		return 1;
	json_array_append_new(out->switches,
			      json_pack("{s:s, s:b, s:s, s:b, s:b, s:i, s:i, s:s}", "node",
					node_name(ref), "on", cfg.on, "mode",
					bl_token_mode_name(cfg.mode), "data_first", cfg.data_first,
					"unscheduled", cfg.unscheduled, "token_frames",
					(int)cfg.frames, "expiry_tokens", (int)cfg.expiry, "paths",
					bl_path_by_name(sw.paths ? sw.path_by : BL_PATH_BY_FRAME)));
	fds[0] = adm_map(ref, BL_MAP_TOKEN_PORTS, sizeof(struct bl_token_port), NULL);
	fds[1] = fds[0] < 0
			 ? -1
			 : adm_map(ref, BL_MAP_TOKEN_COUNTS, sizeof(struct bl_token_counts), NULL);
	fds[2] = fds[1] < 0 ? -1 : adm_map(ref, BL_MAP_SW_PORTS, sizeof(struct bl_sw_port), NULL);
	fds[3] = fds[2] < 0 ? -1
			    : adm_map(ref, BL_MAP_QUEUES, sizeof(struct bl_queue), &queue_count);
	err = fds[3] < 0;
	for (port = 0; !err && cfg.on && port < sw.nports && port < BL_SW_PORTS_MAX; port++)
		err = add_port_rows(ref, &cfg, fds, queue_count, port, out);
	for (k = 0; k < 4; k++)
		if (fds[k] >= 0)
			close(fds[k]);
	return err;
}

/* The order is that of the tables in cmd_show_tokens(). */
static int collect_tokens(const struct bl_node_ref *ref, json_t **rows)
{
	struct tokens t = { rows[0], rows[1], rows[2], { rows[3], rows[4], rows[5] } };

	return ref->role == BL_ROLE_SWITCH ? add_switch_rows(ref, &t) : top_rows(ref, &t.top);
}

int cmd_show_tokens(int argc, char **argv)
{
	static const struct col switches[] = { { "node", "SWITCH", 's' },
					       { "on", "ON", 'b' },
					       { "mode", "MODE", 's' },
					       { "data_first", "DATA_FIRST", 'b' },
					       { "unscheduled", "UNSCHEDULED", 'b' },
					       { "token_frames", "FRAMES", 'd' },
					       { "expiry_tokens", "EXPIRY", 'd' },
					       { "paths", "PATHS", 's' } };
	static const struct col ports[] = { { "node", "SWITCH", 's' },
					    { "name", "PORT", 's' },
					    { "token_ns", "TOKEN_TIME", 't' },
					    { "tokens_per_s", "PER_S", 'f' },
					    { "ahead_tokens", "AHEAD", 'f' },
					    { "passed", "PASSED", 'n' },
					    { "limit", "LIMIT", 'n' },
					    { "expired", "EXPIRED", 'n' },
					    { "bad", "BAD", 'n' },
					    { "flood", "FLOOD", 'n' },
					    { "signals", "SIGNALS", 'n' },
					    { "signal_flood", "SIG_FLOOD", 'n' } };
	static const struct col classes[] = {
		{ "node", "SWITCH", 's' },     { "name", "PORT", 's' },
		{ "class", "CLASS", 'd' },     { "queued", "QUEUED", 'd' },
		{ "passed", "PASSED", 'n' },   { "limit", "LIMIT", 'n' },
		{ "expired", "EXPIRED", 'n' }, { "dropped_percent", "DROPPED_%", 'f' }
	};
	const struct show_table tables[] = { SHOW_TABLE("switches", switches),
					     SHOW_TABLE("ports", ports),
					     SHOW_TABLE("classes", classes),
					     top_tables[0],
					     top_tables[1],
					     top_tables[2] };

	return show_tables(
		argc, argv,
		"barline show tokens - TOP: tokens by port and class of a switch, by flow "
		"of a host\v"
		"Switches: PASSED, LIMIT and EXPIRED count tokens at the port by which they "
		"leave. LIMIT: dropped, because as many tokens as their class allows were "
		"ahead of them; EXPIRED: dropped, because they would have waited too long. "
		"BAD, FLOOD and SIGNALS count at the port of arrival. BAD: unknown class; "
		"FLOOD: more than the link of the port may carry. AHEAD is the number of "
		"tokens that passed in excess of the group's rate at this moment. Hosts, "
		"flows that are sent: ANSWERED: a held frame was sent for a token; WASTED: "
		"no frame was held; EXPIRED: the token was older than T; REFUSED: forged, "
		"replayed or ahead of the clock. Hosts, flows that are received: MBIT is "
		"the rate that the tokens ask for at this moment, RATE_% its share of the "
		"link; LOST: tokens that were not answered.",
		"PORT", tables, sizeof(tables) / sizeof(tables[0]), collect_tokens,
		"no node in this network namespace");
}
