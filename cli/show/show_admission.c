/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline show reservations, holds, queues, pacer: the state of admission in the maps of hosts and
 * switches (maps/{pl2_switch,hold,queue,pace}_abi.h).
 *
 * Percentiles come from histograms whose bins are up to 12.5 % wide; the greatest value of the bin
 * is shown (core/queue/hist_core.h).
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/admission/admission.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "cli/show/show.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "cli/util/read_admission.h"

/* writes the name of switch port @i, or "" if there is no such port */
static void port_name(int fd, uint32_t i, char *buf, size_t size)
{
	struct bl_sw_port p;

	if (fd < 0 || bpf_map_lookup_elem(fd, &i, &p) || !p.ifindex)
		p.name[0] = '\0';
	snprintf(buf, size, "%.15s", p.name);
}

static void close_all(const int *fds, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}
#define SHUT(fds) close_all(fds, sizeof(fds) / sizeof((fds)[0]))

/* ---- queues and holds ---- */

/* Returns the columns that output and hold queues share, or NULL if the queue was never used. */
static json_t *queue_row(const struct bl_node_ref *ref, int queues, int hists, uint32_t key)
{
	struct bl_queue_hist h;
	struct bl_queue q;
	json_t *row;

	if (adm_queue(queues, key, &q) || (!q.put && !q.dropped) ||
	    bpf_map_lookup_elem(hists, &key, &h))
		return NULL;
	row = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "node", node_name(ref),
			"frames", (json_int_t)(q.tail - q.head), "bytes", (json_int_t)q.bytes,
			"limit_frames", (json_int_t)q.limit_frames, "limit_bytes",
			(json_int_t)q.limit_bytes, "put", (json_int_t)q.put, "sent",
			(json_int_t)q.taken, "dropped", (json_int_t)q.dropped, "marked",
			(json_int_t)q.marked);
	adm_quantiles(row, "found", "_frames", &h.found, BL_HIST_LEN_SHIFT, ADM_FULL_FRAME);
	adm_quantiles(row, "sojourn", "_ns", &h.sojourn, BL_HIST_NS_SHIFT, 1);
	return row;
}

static int collect_queues(const struct bl_node_ref *ref, json_t *rows)
{
	uint32_t queue_count, hist_count, port, class;
	struct bl_sw_cfg cfg;
	int fds[4];

	if (ref->role != BL_ROLE_SWITCH)
		return 0;
	if (node_value(ref, BL_MAP_SW_CFG, 0, &cfg, sizeof(cfg)))
		return 1;
	fds[0] = adm_map(ref, BL_MAP_QUEUES, sizeof(struct bl_queue), &queue_count);
	fds[1] = fds[0] < 0 ? -1
			    : adm_map(ref, BL_MAP_QUEUE_HIST, sizeof(struct bl_queue_hist),
				      &hist_count);
	fds[2] = fds[1] < 0 ? -1 : adm_map(ref, BL_MAP_METERS, sizeof(struct bl_meter), NULL);
	fds[3] = fds[2] < 0 ? -1 : adm_map(ref, BL_MAP_SW_PORTS, sizeof(struct bl_sw_port), NULL);
	for (port = 0; fds[3] >= 0 && port < cfg.nports; port++)
		for (class = 0; class < BL_CL_COUNT; class ++) {
			uint32_t key = BL_PORT_QUEUE(port, class);
			struct bl_meter m;
			char name[16];
			json_t *row;

			/* the maps have room only for ports that were metered at the start */
			row = key < queue_count && key < hist_count
				      ? queue_row(ref, fds[0], fds[1], key)
				      : NULL;
			if (!row)
				continue;
			if (bpf_map_lookup_elem(fds[2], &port, &m))
				m.ns_q20 = 0;
			port_name(fds[3], port, name, sizeof(name));
			json_object_set_new(row, "port", json_integer(port));
			json_object_set_new(row, "name", json_string(name));
			json_object_set_new(row, "class", json_string(bl_class_name(class)));
			json_object_set_new(row, "rate_bps",
					    m.ns_q20 ? json_real(adm_rate(m.ns_q20)) : json_null());
			json_object_set_new(row, "rate_mbit",
					    m.ns_q20 ? json_real(adm_rate(m.ns_q20) / 1e6)
						     : json_null());
			json_array_append_new(rows, row);
		}
	SHUT(fds);
	return fds[3] < 0;
}

int cmd_show_queues(int argc, char **argv)
{
	static const struct col cols[] = { { "node", "NODE", 's' },
					   { "name", "PORT", 's' },
					   { "class", "CLASS", 's' },
					   { "rate_mbit", "MBIT", 'f' },
					   { "frames", "FRAMES", 'd' },
					   { "bytes", "BYTES", 'd' },
					   { "sent", "SENT", 'n' },
					   { "dropped", "DROPPED", 'n' },
					   { "marked", "MARKED", 'n' },
					   { "found_p50_frames", "LEN_P50", 'f' },
					   { "found_p99_frames", "P99", 'f' },
					   { "found_p999_frames", "P99.9", 'f' },
					   { "found_max_frames", "MAX", 'f' },
					   { "sojourn_p50_ns", "WAIT_P50", 't' },
					   { "sojourn_p99_ns", "P99", 't' },
					   { "sojourn_p999_ns", "P99.9", 't' },
					   { "sojourn_max_ns", "MAX", 't' } };

	return SHOW("barline show queues - output queues of a switch's metered ports\v"
		    "LEN is the length of the queue that frames found, in full frames of 1514 "
		    "bytes; WAIT is the time that they spent in the queue. Queues that were never "
		    "used are omitted.",
		    "queues", collect_queues, cols, "no frame was queued");
}

static int collect_holds(const struct bl_node_ref *ref, json_t *rows)
{
	static const char *const classes[BL_HOLD_CLASSES] = { "expedited", "rest" };
	uint32_t queue_count, hist_count, dest_count, dest, class;
	int fds[3];

	if (ref->role != BL_ROLE_HOST)
		return 0;
	fds[0] = adm_map(ref, BL_MAP_QUEUES, sizeof(struct bl_queue), &queue_count);
	fds[1] = fds[0] < 0 ? -1
			    : adm_map(ref, BL_MAP_QUEUE_HIST, sizeof(struct bl_queue_hist),
				      &hist_count);
	fds[2] = fds[1] < 0
			 ? -1
			 : adm_map(ref, BL_MAP_HOLD_MACS, sizeof(struct bl_hold_dest), &dest_count);
	for (dest = 0; fds[2] >= 0 && dest < dest_count && dest < BL_DESTS; dest++) {
		struct bl_hold_dest d;
		char mac[24];

		if (bpf_map_lookup_elem(fds[2], &dest, &d) || (dest && !d.used))
			continue;
		for (class = 0; class < BL_HOLD_CLASSES; class ++) {
			uint32_t key = BL_HOLD_QUEUE(dest, class);
			json_t *row = key < queue_count && key < hist_count
					      ? queue_row(ref, fds[0], fds[1], key)
					      : NULL;

			if (!row)
				continue;
			json_object_set_new(row, "dest", json_integer(dest));
			json_object_set_new(row, "mac",
					    dest ? json_string(mac_text(d.mac, mac, sizeof(mac)))
						 : json_null());
			json_object_set_new(row, "class", json_string(classes[class]));
			json_array_append_new(rows, row);
		}
	}
	SHUT(fds);
	return fds[2] < 0;
}

int cmd_show_holds(int argc, char **argv)
{
	static const struct col cols[] = { { "node", "NODE", 's' },
					   { "dest", "DEST", 'd' },
					   { "mac", "ADDRESS", 's' },
					   { "class", "CLASS", 's' },
					   { "frames", "FRAMES", 'd' },
					   { "bytes", "BYTES", 'd' },
					   { "limit_frames", "LIMIT", 'd' },
					   { "sent", "SENT", 'n' },
					   { "dropped", "DROPPED", 'n' },
					   { "marked", "MARKED", 'n' },
					   { "found_p99_frames", "LEN_P99", 'f' },
					   { "found_max_frames", "MAX", 'f' },
					   { "sojourn_p50_ns", "WAIT_P50", 't' },
					   { "sojourn_p99_ns", "P99", 't' } };

	return SHOW("barline show holds - hold queues of a host: what applications sent through "
		    "bl0, by destination\v"
		    "Destination 0 has what is never held back: ARP, neighbour discovery, "
		    "broadcast and multicast. Queues that were never used are omitted.",
		    "holds", collect_holds, cols, "no frame was held");
}

/* ---- pacer ---- */

static int collect_pacer(const struct bl_node_ref *ref, json_t *rows)
{
	struct bl_pace_page p;
	uint64_t busy;
	json_t *row;

	if (node_value(ref, BL_MAP_PACE_PAGE, 0, &p, sizeof(p)))
		return 1;
	busy = p.emitted + p.beacons + p.failed;
	row = json_pack(
		"{s:s, s:I, s:I, s:I, s:I, s:o, s:b, s:o}", "node", node_name(ref), "turns",
		(json_int_t)p.turns, "emitted", (json_int_t)p.emitted, "beacons",
		(json_int_t)p.beacons, "failed", (json_int_t)p.failed, "idle_percent",
		/* the page is read while it is written, so @busy may be more than the turns */
		p.turns ? json_real(100.0 * (double)(p.turns > busy ? p.turns - busy : 0) /
				    (double)p.turns)
			: json_null(),
		"asleep", p.asleep != 0, "waiting",
		json_boolean(p.next_ns != BL_DUE_NEVER && p.turns));
	/* these count for the thread, which serves all nodes of its process */
	json_object_set_new(row, "calls", json_integer((json_int_t)p.calls));
	json_object_set_new(row, "sleeps", json_integer((json_int_t)p.sleeps));
	json_object_set_new(row, "woken", json_integer(p.woken));
	adm_quantiles(row, "late", "_ns", &p.late, BL_HIST_NS_SHIFT, 1);
	json_array_append_new(rows, row);
	return 0;
}

int cmd_show_pacer(int argc, char **argv)
{
	static const struct col cols[] = {
		{ "node", "NODE", 's' },       { "turns", "TURNS", 'n' },
		{ "emitted", "EMITTED", 'n' }, { "beacons", "BEACONS", 'n' },
		{ "failed", "FAILED", 'n' },   { "idle_percent", "IDLE_%", 'f' },
		{ "asleep", "ASLEEP", 'b' },   { "late_p50_ns", "LATE_P50", 't' },
		{ "late_p99_ns", "P99", 't' }, { "late_p999_ns", "P99.9", 't' },
		{ "late_max_ns", "MAX", 't' }
	};

	return SHOW("barline show pacer - what the pacer did for each node\v"
		    "IDLE_% is the share of turns in which nothing was due. LATE is how long after "
		    "its time a frame was handed to the device.",
		    "pacer", collect_pacer, cols, "no pacer");
}

/* ---- reservations ---- */

/*
 * Returns the bytes that are promised on one side of a port and were not received or sent yet. Each
 * allocator keeps this in another form.
 */
static uint64_t promised_bytes(const struct bl_rsv_side *s, const struct bl_rsv_cfg *cfg,
			       uint64_t now)
{
	uint64_t slot_ns, slot, bits = 0, k;

	switch (cfg->allocator) {
	case BL_ALLOC_TWO_COUNTER:
		return s->bytes;
	case BL_ALLOC_JOINT:
		return s->free_ns > now && cfg->ns_q20
			       ? (uint64_t)((double)(s->free_ns - now) * (1 << 20) / cfg->ns_q20)
			       : 0;
	case BL_ALLOC_BITMAP:
		slot_ns = (uint64_t)BL_RSV_SLOT_BYTES * cfg->ns_q20 >> 20;
		slot = slot_ns ? now / slot_ns : 0;
		for (k = 0; slot_ns && k < 64 * BL_RSV_WORDS; k++)
			bits += s->base + k >= slot && s->bits[k / 64] >> k % 64 & 1;
		return bits * BL_RSV_SLOT_BYTES;
	}
	return 0;
}

/** struct reservations - Arrays of rows, one per table. */
struct reservations {
	json_t *switches, *ports; /* of switches */
	json_t *pairs;            /* of switches: pairs of ports with a promise */
	json_t *dests;            /* of hosts: destinations */
};

static int add_pair_rows(const struct bl_node_ref *ref, const struct bl_rsv_cfg *cfg,
			 const struct bl_sw_cfg *sw, int names, struct reservations *out)
{
	uint32_t entries, in, o;
	uint64_t now = bl_mono_ns();
	int fd = adm_map(ref, BL_MAP_RSV_PAIRS, sizeof(struct bl_rsv_pair), &entries);

	if (fd < 0)
		return 1;
	for (in = 0; in < sw->nports; in++)
		for (o = 0; o < sw->nports; o++) {
			uint32_t key = in << cfg->pair_shift | o;
			struct bl_rsv_pair p;
			char a[16], b[16];

			if (key >= entries || bpf_map_lookup_elem(fd, &key, &p) || !p.bytes)
				continue;
			port_name(names, in, a, sizeof(a));
			port_name(names, o, b, sizeof(b));
			json_array_append_new(
				out->pairs,
				json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}",
					  "node", node_name(ref), "in", a, "out", b, "bytes",
					  (json_int_t)p.bytes, "early", (json_int_t)p.early, "seq",
					  (json_int_t)p.seq, "asked", (json_int_t)p.asked,
					  "in_wait_ns", (json_int_t)(p.in_ns - now), "out_wait_ns",
					  (json_int_t)(p.out_ns - now), "lapses_in_ns",
					  (json_int_t)(p.lapse_ns - now), "refused",
					  p.flags & BL_GRT_REFUSED));
		}
	close(fd);
	return 0;
}

static int add_switch_rows(const struct bl_node_ref *ref, struct reservations *out)
{
	struct bl_rsv *rsv = calloc(1, sizeof(*rsv));
	struct bl_rsv_cfg cfg;
	struct bl_sw_cfg sw;
	uint32_t zero = 0, i;
	int fds[2] = { -1, -1 }, err = 1;
	uint64_t now;

	if (!rsv)
		return cli_fail("out of memory");
	if (!node_value(ref, BL_MAP_SW_CFG, 0, &sw, sizeof(sw)) &&
	    !node_value(ref, BL_MAP_RSV_CFG, 0, &cfg, sizeof(cfg)))
		fds[0] = adm_map(ref, BL_MAP_RSV, sizeof(*rsv), NULL);
	if (fds[0] >= 0)
		fds[1] = adm_map(ref, BL_MAP_SW_PORTS, sizeof(struct bl_sw_port), NULL);
	if (fds[1] >= 0) {
		err = bpf_map_lookup_elem_flags(fds[0], &zero, rsv, BPF_F_LOCK);
		if (err)
			cli_fail("%s/maps/%s: %s", ref->dir, BL_MAP_RSV, strerror(errno));
	}
	now = bl_mono_ns();
	if (!err)
		json_array_append_new(out->switches,
				      json_pack("{s:s, s:b, s:s, s:f, s:I, s:I, s:I, s:I, s:I}",
						"node", node_name(ref), "on", cfg.on, "allocator",
						bl_allocator_name(cfg.allocator), "rate_mbit",
						adm_rate(cfg.ns_q20) / 1e6, "limit_bytes",
						(json_int_t)cfg.limit_bytes, "refuse_ns",
						(json_int_t)cfg.refuse_ns, "far_ns",
						(json_int_t)cfg.far_ns, "lapse_ns",
						(json_int_t)cfg.lapse_ns, "overlap_bytes",
						(json_int_t)cfg.overlap_bytes));
	for (i = 0; !err && cfg.on && i < sw.nports && i < BL_SW_PORTS_MAX; i++) {
		const struct bl_rsv_port *p = &rsv->port[i];
		char name[16];

		port_name(fds[1], i, name, sizeof(name));
		if (!name[0] && !p->granted)
			continue; /* no port has this number */
		json_array_append_new(
			out->ports,
			json_pack("{s:s, s:i, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
				  "node", node_name(ref), "port", (int)i, "name", name, "outside",
				  p->outside, "in_bytes",
				  (json_int_t)promised_bytes(&p->in, &cfg, now), "out_bytes",
				  (json_int_t)promised_bytes(&p->out, &cfg, now), "grants",
				  (json_int_t)p->grants, "refused", (json_int_t)p->refused,
				  "granted_bytes", (json_int_t)p->granted, "used_bytes",
				  (json_int_t)p->used, "lapsed_bytes", (json_int_t)p->lapsed,
				  "released_bytes", (json_int_t)p->released));
	}
	if (!err && cfg.on)
		err = add_pair_rows(ref, &cfg, &sw, fds[1], out);
	SHUT(fds);
	free(rsv);
	return err != 0;
}

static int add_host_rows(const struct bl_node_ref *ref, struct reservations *out)
{
	static const char *const states[] = { [BL_PL2_IDLE] = "idle",
					      [BL_PL2_ASKED] = "asked",
					      [BL_PL2_EARLY] = "early",
					      [BL_PL2_GRANTED] = "granted" };
	struct bl_hold_cfg cfg;
	uint32_t entries, i;
	int fds[2];

	if (node_value(ref, BL_MAP_HOLD_CFG, 0, &cfg, sizeof(cfg)))
		return 1;
	fds[0] = adm_map(ref, BL_MAP_PL2_DESTS, sizeof(struct bl_pl2_dest), &entries);
	fds[1] = fds[0] < 0 ? -1
			    : adm_map(ref, BL_MAP_HOLD_MACS, sizeof(struct bl_hold_dest), NULL);
	for (i = 1; fds[1] >= 0 && i < entries && i < BL_DESTS; i++) {
		struct bl_pl2_dest d;
		struct bl_hold_dest h;
		unsigned int state;
		char mac[24];

		if (bpf_map_lookup_elem(fds[0], &i, &d) || bpf_map_lookup_elem(fds[1], &i, &h) ||
		    !h.used || !d.rsvs)
			continue;
		state = d.word & 0xff;
		json_array_append_new(
			out->dests,
			json_pack("{s:s, s:i, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
				  "s:I, s:I, s:I, s:I, s:I, s:I}",
				  "node", node_name(ref), "dest", (int)i, "mac",
				  mac_text(h.mac, mac, sizeof(mac)), "state",
				  state <= BL_PL2_GRANTED ? states[state] : "?", "k",
				  (int)cfg.k_frames, "burst_frames", (json_int_t)d.n,
				  "last_wait_ns", (json_int_t)d.last_wait_ns, "delay_ns",
				  (json_int_t)d.delay_ns, "delay_min_ns",
				  (json_int_t)d.delay_min_ns, "delay_max_ns",
				  (json_int_t)d.delay_max_ns, "rsvs", (json_int_t)d.rsvs, "grts",
				  (json_int_t)d.grts, "early", (json_int_t)d.early, "resent",
				  (json_int_t)d.resent, "timeouts", (json_int_t)d.timeouts,
				  "refused", (json_int_t)d.refused, "bad", (json_int_t)d.bad,
				  "late", (json_int_t)d.late));
	}
	SHUT(fds);
	return fds[1] < 0;
}

/* The order is that of the tables in cmd_show_reservations(). */
static int collect_reservations(const struct bl_node_ref *ref, json_t **rows)
{
	struct reservations r = { rows[0], rows[1], rows[2], rows[3] };

	return ref->role == BL_ROLE_SWITCH ? add_switch_rows(ref, &r) : add_host_rows(ref, &r);
}

int cmd_show_reservations(int argc, char **argv)
{
	static const struct col switches[] = { { "node", "NODE", 's' },
					       { "on", "ON", 'b' },
					       { "allocator", "ALLOCATOR", 's' },
					       { "rate_mbit", "MBIT", 'f' },
					       { "limit_bytes", "LIMIT", 'k' },
					       { "refuse_ns", "T", 't' },
					       { "far_ns", "FAR", 't' },
					       { "lapse_ns", "LAPSE", 't' },
					       { "overlap_bytes", "OVERLAP", 'k' } };
	static const struct col ports[] = { { "node", "NODE", 's' },
					    { "name", "PORT", 's' },
					    { "outside", "OUTSIDE", 'b' },
					    { "in_bytes", "IN", 'k' },
					    { "out_bytes", "OUT", 'k' },
					    { "grants", "GRANTS", 'n' },
					    { "refused", "REFUSED", 'n' },
					    { "granted_bytes", "GRANTED", 'K' },
					    { "used_bytes", "USED", 'K' },
					    { "lapsed_bytes", "LAPSED", 'K' },
					    { "released_bytes", "RELEASED", 'K' } };
	static const struct col pairs[] = { { "node", "NODE", 's' },
					    { "in", "FROM", 's' },
					    { "out", "TO", 's' },
					    { "bytes", "PROMISED", 'k' },
					    { "early", "EARLY", 'k' },
					    { "seq", "SEQ", 'd' },
					    { "in_wait_ns", "IN_SLOT", 't' },
					    { "out_wait_ns", "OUT_SLOT", 't' },
					    { "lapses_in_ns", "LAPSES_IN", 't' } };
	static const struct col dests[] = { { "node", "NODE", 's' },
					    { "mac", "DESTINATION", 's' },
					    { "state", "STATE", 's' },
					    { "k", "K", 'd' },
					    { "burst_frames", "BURST", 'd' },
					    { "last_wait_ns", "LAST_WAIT", 't' },
					    { "delay_ns", "RSV-GRT", 't' },
					    { "delay_min_ns", "MIN", 't' },
					    { "delay_max_ns", "MAX", 't' },
					    { "rsvs", "RSVS", 'n' },
					    { "grts", "GRTS", 'n' },
					    { "early", "EARLY", 'n' },
					    { "resent", "RESENT", 'n' },
					    { "timeouts", "TIMEOUTS", 'n' },
					    { "refused", "REFUSED", 'n' },
					    { "late", "LATE", 'n' },
					    { "bad", "BAD", 'n' } };
	static const struct show_table tables[] = { SHOW_TABLE("switches", switches),
						    SHOW_TABLE("ports", ports),
						    SHOW_TABLE("pairs", pairs),
						    SHOW_TABLE("destinations", dests) };

	return show_tables(argc, argv,
			   "barline show reservations - what PL2 promised\v"
			   "Switches: by port, and by pair of ports with a promise. IN and OUT are "
			   "promised and not used yet; GRANTED = USED + LAPSED + RELEASED + what "
			   "the port's pairs promise. Hosts: by destination; RSV-GRT is the "
			   "smoothed time until a reservation is answered.",
			   "PORT", tables, sizeof(tables) / sizeof(tables[0]), collect_reservations,
			   "no reservation was ever requested");
}
