/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline show: the state of the nodes of a network namespace, read from their pinned maps. Changes
 * nothing and needs no daemon.
 */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/iface.h"
#include "base/netns.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "cli/doctor/doctor.h"
#include "cli/health/health.h"
#include "cli/show/show.h"
#include "cli/util/args.h"
#include "cli/util/endpoints.h"
#include "cli/util/inputs.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "core/clock_core.h"
#include "core/order/line_core.h"
#include "loader/config_clock.h"
#include "maps/host_abi.h"

/* the kernel memory, in bytes, that the maps of one node may use; `show maps` warns above it */
#define MEMORY_LIMIT (64ull << 20)

/* Whether a host takes part: drained, draining, or "" for one that does, and for a switch. */
static const char *member_state(const struct bl_node_ref *ref)
{
	struct bl_host_page page;
	struct bl_err err;
	uint32_t zero = 0;
	int fd;
	bool read;

	if (ref->role != BL_ROLE_HOST)
		return "";
	fd = bl_map_open(ref, BL_MAP_HOST_PAGE, sizeof(page), false, &err);
	read = fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &page);
	if (fd >= 0)
		close(fd);
	return !read || !page.drained ? "" : page.eps_active ? "draining" : "drained";
}

static int collect_node(const struct bl_node_ref *ref, json_t *rows)
{
	json_t *alive = ref->role == BL_ROLE_HOST ? json_boolean(node_alive(ref)) : json_null();
	struct bl_node_ports ports;
	struct health h;

	health_read_some(ref, 1U << CHECK_DAEMON | 1U << CHECK_CLOCK, &h);
	bl_node_ports(ref, &ports);
	json_array_append_new(
		rows,
		json_pack("{s:s, s:s, s:I, s:I, s:i, s:o, s:s, s:b, s:s, s:s, s:i, "
			  "s:i, s:s, s:s, s:s}",
			  "node", node_name(ref), "role", role_name(ref->role), "netns",
			  (json_int_t)ref->netns_ino, "node_id", (json_int_t)ref->meta.node_id,
			  "abi", (int)ref->meta.abi_version, "socket", alive, "daemon",
			  h.check[CHECK_DAEMON].word, "clock",
			  h.check[CHECK_CLOCK].known && h.check[CHECK_CLOCK].level != FOUND_FAIL,
			  "clock_state", h.check[CHECK_CLOCK].word, "network", network_state(ref),
			  "interfaces", (int)ports.all, "gone", (int)ports.gone, "build",
			  ref->meta.build, "dir", ref->dir, "member", member_state(ref)));
	return 0;
}

int cmd_show_nodes(int argc, char **argv)
{
	static const struct col cols[] = {
		{ "node", "NODE", 's' },      { "role", "ROLE", 's' },
		{ "netns", "NETNS", 'd' },    { "node_id", "ID", 'd' },
		{ "abi", "ABI", 'd' },        { "clock_state", "CLOCK", 's' },
		{ "daemon", "DAEMON", 's' },  { "network", "NETWORK", 's' },
		{ "gone", "NICS_GONE", 'd' }, { "member", "MEMBER", 's' },
		{ "build", "BUILD", 's' },    { "dir", "PINS", 's' }
	};

	return SHOW("barline show nodes - switches and hosts pinned on this machine", "nodes",
		    collect_node, cols, "no nodes");
}

static int collect_ports(const struct bl_node_ref *ref, json_t *rows)
{
	struct count_row *r;
	int n = node_count_rows(ref, &r), i;

	for (i = 0; i < n; i++) {
		const struct bl_counts *c = &r[i].n;
		json_t *reasons = json_object(), *bytes = json_object();
		unsigned int k;

		for (k = 0; k < BL_REASON_MAX; k++) {
			if (c->n[k])
				json_object_set_new(reasons, reason_name(k),
						    json_integer((json_int_t)c->n[k]));
			if (c->bytes[k])
				json_object_set_new(bytes, reason_name(k),
						    json_integer((json_int_t)c->bytes[k]));
		}
		json_array_append_new(
			rows,
			json_pack("{s:s, s:s, s:i, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
				  "s:o, s:o}",
				  "node", node_name(ref), "node_role", role_name(ref->role), "port",
				  (int)r[i].key, "name", r[i].name, "role", r[i].role, "frames",
				  (json_int_t)counts_frames(c), "bytes",
				  (json_int_t)counts_bytes(c), "data", (json_int_t)counts_data(c),
				  "beacons", (json_int_t)counts_beacons(c), "other",
				  (json_int_t)(c->n[BL_R_NOT_OURS] + c->n[BL_R_TO_KERNEL]),
				  "dropped", (json_int_t)counts_dropped(c), "wrong_cpu",
				  (json_int_t)c->n[BL_R_WRONG_CPU], "reasons", reasons,
				  "reason_bytes", bytes));
	}
	free(r);
	return n < 0;
}

int cmd_show_ports(int argc, char **argv)
{
	static const struct col cols[] = {
		{ "node", "NODE", 's' },          { "port", "PORT", 'd' },
		{ "name", "NAME", 's' },          { "role", "ROLE", 's' },
		{ "frames", "FRAMES", 'n' },      { "bytes", "BYTES", 'K' },
		{ "data", "DATA", 'n' },          { "beacons", "BEACONS", 'n' },
		{ "other", "OTHER", 'n' },        { "dropped", "DROPPED", 'n' },
		{ "wrong_cpu", "WRONG_CPU", 'n' }
	};

	return SHOW("barline show ports - frames by port of switches, by hook of hosts\v"
		    "A switch counts a frame where it comes in; beacons, and frames of metered "
		    "ports, are also counted as they leave. BYTES is from the Ethernet header on, "
		    "without FCS. DROPPED does not include relayed beacons that a port did not "
		    "need (clone_stale): `barline show drops` does.",
		    "ports", collect_ports, cols, "no ports");
}

static json_t *time_or_null(uint64_t t)
{
	return t && t != BL_TIME_NONE ? json_integer((json_int_t)t) : json_null();
}

/* The clock is read after the barrier, so that the lag is not negative for that reason. */
static json_t *lag_or_null(const struct bl_clock *clock, uint64_t t)
{
	uint64_t mono = bl_mono_ns();

	if (!t || t == BL_TIME_NONE || !bl_clock_usable(clock, mono))
		return json_null();
	return json_integer((json_int_t)(bl_clock_at(clock, mono) - t));
}

/* Appends the row of one lane of an input. */
static void add_register_row(json_t *rows, const struct bl_node_ref *ref,
			     const struct node_input *in, int lane, const struct bl_clock *clock)
{
	const struct bl_reg *r = &in->reg[lane];

	json_array_append_new(
		rows, json_pack("{s:s, s:s, s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:I, "
				"s:I}",
				"node", node_name(ref), "what", "in", "name", in->name, "lane",
				lane, "state", input_state_name(r->state), "barrier",
				time_or_null(r->b), "commit", time_or_null(r->c), "lag_ns",
				lag_or_null(clock, r->b), "silent_ns",
				r->heard_ns && in->watch_ns >= r->heard_ns
					? json_integer((json_int_t)(in->watch_ns - r->heard_ns))
					: json_null(),
				"in", !!(r->state & BL_REG_IN), "held", !!(r->state & BL_REG_HELD),
				"barred", in->barred, "death", (json_int_t)in->life.death,
				"neighbour", (json_int_t)in->life.neighbour));
}

static void add_barrier_row(json_t *rows, const struct bl_node_ref *ref, const char *what,
			    const char *name, int lane, uint64_t b, uint64_t c,
			    const struct bl_clock *clock)
{
	json_array_append_new(rows,
			      json_pack("{s:s, s:s, s:s, s:i, s:s, s:o, s:o, s:o, s:n, s:n, s:n, "
					"s:n, s:n, s:n}",
					"node", node_name(ref), "what", what, "name", name, "lane",
					lane, "state", "", "barrier", time_or_null(b), "commit",
					time_or_null(c), "lag_ns", lag_or_null(clock, b),
					"silent_ns", "in", "held", "barred", "death", "neighbour"));
}

static void add_output_rows(json_t *rows, const struct bl_node_ref *ref,
			    const struct node_inputs *in, const struct bl_clock *clock)
{
	uint32_t l, s;
	char name[16];

	for (l = 0; l < in->lanes; l++)
		for (s = 0; s < BL_SETS_MAX; s++) {
			if (!(in->sets & 1U << s))
				continue;
			snprintf(name, sizeof(name), "set %u", s);
			add_barrier_row(rows, ref, "out", name, (int)l, in->lane[l].out[s].b,
					in->lane[l].out[s].c, clock);
		}
}

static int collect_barriers(const struct bl_node_ref *ref, json_t *rows)
{
	const struct bl_host_page *page;
	struct node_inputs in;
	struct bl_clock clock;
	struct bl_err err;
	uint32_t i;
	int l;

	node_now(ref, &clock);
	if (node_inputs_read(ref, &in, &err))
		return cli_fail("%s", err.text);
	for (i = 0; i < in.n; i++)
		for (l = 0; l < BL_LANES_MAX; l++)
			if (l == 0 || in.in[i].reg[l].state != BL_REG_ABSENT)
				add_register_row(rows, ref, &in.in[i], l, &clock);
	add_output_rows(rows, ref, &in, &clock);
	page = &in.page;
	if (ref->role == BL_ROLE_HOST) {
		add_barrier_row(rows, ref, "delivered", "host", 0, page->barrier, page->commit,
				&clock);
		add_barrier_row(rows, ref, "sent", in.in[0].name, 0, page->sent_barrier, 0, &clock);
	}
	node_inputs_free(&in);
	return 0;
}

int cmd_show_barriers(int argc, char **argv)
{
	static const struct col cols[] = {
		{ "node", "NODE", 's' },       { "what", "WHAT", 's' },
		{ "name", "NAME", 's' },       { "lane", "LANE", 'd' },
		{ "state", "STATE", 's' },     { "barrier", "BARRIER", 'd' },
		{ "commit", "COMMIT", 'd' },   { "in", "IN", 'b' },
		{ "held", "HELD", 'b' },       { "barred", "BARRED", 'b' },
		{ "death", "DEATH", 'd' },     { "lag_ns", "LAG", 't' },
		{ "silent_ns", "SILENT", 't' }
	};

	return SHOW("barline show barriers - registers by port and lane, and the barriers that "
		    "result from them\v"
		    "LAG is bus time minus barrier. A lag of about one beacon interval is normal; "
		    "where all senders are silent it is negative, because they promise ahead of "
		    "their clocks (no_ahead); a lag that grows shows which port holds back all "
		    "receivers. SILENT is how "
		    "long nothing was received from a port, as far as its lane has checked. IN: "
		    "the register holds the commit barrier back. HELD: the register is frozen "
		    "since the port's last failure, whose number is DEATH, until the controller "
		    "resumes it. BARRED: the output promises no commit barrier, and the input does "
		    "not join it.",
		    "barriers", collect_barriers, cols, "no barriers");
}

static int collect_endpoints(const struct bl_node_ref *ref, json_t *rows)
{
	struct bl_host_page page;
	struct endpoint_row *e;
	struct bl_err err;
	char text[64];
	bool here = ref->netns_ino == bl_netns_ino();
	int i, n;

	if (ref->role != BL_ROLE_HOST)
		return 0;
	if (node_value(ref, BL_MAP_HOST_PAGE, 0, &page, sizeof(page)))
		return 1;
	n = node_endpoints_read(ref, &page, &e, &err);
	for (i = 0; i < n; i++) {
		const struct bl_ep_slot *s = &e[i].s;
		uint64_t ts = e[i].line.ts, until = e[i].wake.until;

		json_array_append_new(
			rows,
			json_pack("{s:s, s:s, s:i, s:i, s:s, s:i, s:i, s:I, s:o, s:b, s:b, s:b, "
				  "s:I, s:s, s:b}",
				  "node", node_name(ref), "addr",
				  addr_text(s->addr, text, sizeof(text)), "port", (int)s->port,
				  "pid", (int)s->pid, "process", s->name, "uid", (int)s->uid,
				  "slot", (int)s->slot, "ring_bytes", (json_int_t)s->ring_bytes,
				  "ring_used",
				  e[i].ring_used < 0 ? json_null() : json_integer(e[i].ring_used),
				  "sending", ts && ts != BL_TIME_NONE, "void",
				  bl_line_void(ts, e[i].word.over), "sleeping",
				  until != BL_TIME_NONE && until, "woken",
				  (json_int_t)e[i].wake.woken, "out", endpoint_out_name(&e[i].word),
				  "stray", here && !bl_iface_addr_here(s->addr)));
	}
	free(e);
	return n < 0 ? cli_fail("%s", err.text) : 0;
}

int cmd_show_endpoints(int argc, char **argv)
{
	static const struct col cols[] = {
		{ "node", "NODE", 's' },      { "addr", "ADDRESS", 's' },
		{ "stray", "STRAY", 'b' },    { "port", "PORT", 'd' },
		{ "pid", "PID", 'd' },        { "process", "PROCESS", 's' },
		{ "slot", "SLOT", 'd' },      { "ring_bytes", "RING", 'k' },
		{ "ring_used", "USED", 'k' }, { "sending", "SENDING", 'b' },
		{ "void", "VOID", 'b' },      { "sleeping", "SLEEPING", 'b' },
		{ "woken", "WOKEN", 'n' },    { "out", "OUT", 's' }
	};

	return SHOW("barline show endpoints - the processes that send and receive on this host\v"
		    "STRAY: the host has this address no more, so nobody reaches the endpoint, "
		    "until the address is back or the process begins anew. "
		    "VOID: its process has stopped in the middle of a send, and the host goes on "
		    "without that send. "
		    "OUT: why an endpoint is no longer a member: gone (its process ended, and its "
		    "failure is not settled yet), or excluded while its process lives: in_flight "
		    "(it was stopped in the middle of a send), window (it was stopped with "
		    "reliable messages that are not acknowledged), ring (it did not read its "
		    "ring), answer, unreachable; or drained: it has left in order with its host.",
		    "endpoints", collect_endpoints, cols, "no endpoints");
}

static int collect_drops(const struct bl_node_ref *ref, json_t *rows)
{
	struct count_row *r;
	int n = node_count_rows(ref, &r), i;

	for (i = 0; i < n; i++) {
		unsigned int k;

		for (k = 0; k < BL_REASON_MAX; k++) {
			enum bl_reason_kind kind = reason_kind(k);

			if (!r[i].n.n[k] || kind == BL_KIND_OK)
				continue;
			json_array_append_new(
				rows,
				json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:s}", "node",
					  node_name(ref), "name", r[i].name, "role", r[i].role,
					  "reason", reason_name(k), "kind",
					  kind == BL_KIND_DROP ? "drop" : "note", "count",
					  (json_int_t)r[i].n.n[k], "bytes",
					  (json_int_t)r[i].n.bytes[k], "text", reason_text(k)));
		}
	}
	free(r);
	return n < 0;
}

int cmd_show_drops(int argc, char **argv)
{
	static const struct col cols[] = { { "node", "NODE", 's' },     { "name", "PORT", 's' },
					   { "role", "ROLE", 's' },     { "kind", "KIND", 's' },
					   { "reason", "REASON", 's' }, { "count", "COUNT", 'n' },
					   { "bytes", "BYTES", 'K' },   { "text", "WHY", 's' } };

	return SHOW("barline show drops - frames dropped, and events noted, by reason\v"
		    "A drop is a frame that was discarded; a note is counted in addition to the "
		    "verdict on a frame, and without its bytes.",
		    "drops", collect_drops, cols, "nothing dropped, nothing noted");
}

/* The name of why the source does not call the clock synchronised, or its sentence. */
static const char *clock_reason(const struct bl_clock *c, bool sentence)
{
#define TEXT(name, text, sentence, step) { text, sentence },
	static const char *const texts[][2] = { BL_CLOCK_REASONS(TEXT) };
#undef TEXT

	return c->reason < BL_CLOCK_REASONS_NUMBER ? texts[c->reason][sentence] : "";
}

/* The state that the daemon wrote, or "expired": it is not there to write another one. */
static const char *clock_state(const struct bl_clock *c, bool usable)
{
#define TEXT(name, text, is_void) [BL_CLOCK_##name] = (text),
	static const char *const texts[] = { BL_CLOCK_STATES(TEXT) };
#undef TEXT
#define IS_VOID(name, text, is_void) [BL_CLOCK_##name] = (is_void),
	static const bool voids[] = { BL_CLOCK_STATES(IS_VOID) };
#undef IS_VOID

	if (c->state >= BL_CLOCK_STATES_NUMBER)
		return "unknown";
	return usable || voids[c->state] ? texts[c->state] : "expired";
}

static int collect_clock(const struct bl_node_ref *ref, json_t *rows)
{
	struct bl_clock c;
	uint64_t mono, bus = node_now(ref, &c);

	mono = bl_mono_ns();
	json_array_append_new(
		rows,
		json_pack("{s:s, s:b, s:o, s:I, s:I, s:I, s:I, s:I, s:i, s:I, s:s, s:s, s:s, s:s, "
			  "s:I, s:o, s:I}",
			  "node", node_name(ref), "valid", bus != 0, "bus_ns", time_or_null(bus),
			  "bound_ns", (json_int_t)bl_clock_bound(&c, mono), "age_ns",
			  (json_int_t)(c.as_of_ns ? mono - c.as_of_ns : 0), "void_in_ns",
			  (json_int_t)(c.void_after_ns - mono), "drift_ppb",
			  (json_int_t)c.drift_ppb, "rate_ppb",
			  (json_int_t)c.seg[1].rate * 1000000000 / (1 << 30), "tai_offset_s",
			  (int)c.tai_offset_s, "skew_ns", (json_int_t)c.skew_ns, "source",
			  bl_clock_source_name(c.source), "state", clock_state(&c, bus != 0),
			  "reason", clock_reason(&c, false), "why", clock_reason(&c, true),
			  "source_bound_ns", (json_int_t)c.source_ns, "source_age_ns",
			  c.source_as_of_ns ? json_integer((json_int_t)(mono - c.source_as_of_ns))
					    : json_null(),
			  "max_bound_ns", (json_int_t)c.max_bound_ns));
	return 0;
}

int cmd_show_clock(int argc, char **argv)
{
	static const struct col cols[] = {
		{ "node", "NODE", 's' },         { "valid", "VALID", 'b' },
		{ "source", "SOURCE", 's' },     { "state", "STATE", 's' },
		{ "bus_ns", "BUS_TIME", 'd' },   { "bound_ns", "BOUND", 't' },
		{ "age_ns", "MEASURED", 't' },   { "void_in_ns", "VOID_IN", 't' },
		{ "rate_ppb", "RATE_PPB", 'd' }, { "tai_offset_s", "TAI_OFFSET", 'd' },
		{ "skew_ns", "SKEW", 't' },      { "why", "WHY", 's' }
	};

	return SHOW("barline show clock - bus time, its bound, where that comes from, and how long "
		    "it remains valid without the daemon",
		    "clocks", collect_clock, cols, "no clock");
}

static long long read_memlock(int fd)
{
	char path[64], line[128];
	long long v = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "memlock: %lld", &v) == 1)
			break;
	fclose(f);
	return v;
}

static long long add_map_row(const struct bl_node_ref *ref, json_t *rows, const char *name, int fd)
{
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info);
	long long bytes = read_memlock(fd);

	if (bpf_obj_get_info_by_fd(fd, &info, &len) || bytes < 0)
		return 0;
	json_array_append_new(rows,
			      json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "node", node_name(ref),
					"map", name, "id", (json_int_t)info.id, "entries",
					(json_int_t)info.max_entries, "value_bytes",
					(json_int_t)info.value_size, "bytes", (json_int_t)bytes));
	return bytes;
}

/* The order is that of the tables in cmd_show_maps(). */
static int collect_maps(const struct bl_node_ref *ref, json_t **rows)
{
	char path[640];
	long long total = 0;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "%s/maps", ref->dir);
	d = opendir(path);
	if (!d)
		return cli_fail("%s: %s", path, strerror(errno));
	while ((e = readdir(d))) {
		int fd;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/maps/%s", ref->dir, e->d_name);
		fd = bpf_obj_get(path);
		if (fd < 0 && errno == ENOENT)
			continue; /* of an endpoint that has left meanwhile */
		if (fd < 0) {
			closedir(d);
			return cli_fail("%s: %s", path, strerror(errno));
		}
		total += add_map_row(ref, rows[0], e->d_name, fd);
		close(fd);
	}
	closedir(d);
	json_array_append_new(rows[1],
			      json_pack("{s:s, s:I, s:I, s:b}", "node", node_name(ref), "bytes",
					(json_int_t)total, "limit_bytes", (json_int_t)MEMORY_LIMIT,
					"over", (unsigned long long)total > MEMORY_LIMIT));
	return 0;
}

int cmd_show_maps(int argc, char **argv)
{
	static const struct col cols[] = { { "node", "NODE", 's' },
					   { "map", "MAP", 's' },
					   { "id", "ID", 'd' },
					   { "entries", "ENTRIES", 'd' },
					   { "value_bytes", "VALUE", 'd' },
					   { "bytes", "MEMORY", 'k' } };
	static const struct col totals[] = { { "node", "NODE", 's' },
					     { "bytes", "TOTAL", 'k' },
					     { "limit_bytes", "LIMIT", 'k' },
					     { "over", "OVER", 'b' } };
	static const struct show_table tables[] = { SHOW_TABLE("maps", cols),
						    SHOW_TABLE("totals", totals) };

	return show_tables(argc, argv, "barline show maps - kernel memory of the nodes, by map",
			   "MAP", tables, sizeof(tables) / sizeof(tables[0]), collect_maps,
			   "no node in this network namespace");
}
