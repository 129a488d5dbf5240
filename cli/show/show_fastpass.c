/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline show fastpass: the host's session with its arbiter, and timeslots by destination
 * (maps/fastpass_abi.h).
 */
#include <bpf/bpf.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/show/show.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "cli/util/read_admission.h"
#include "core/fastpass/fastpass_core.h"
#include "loader/admission/admission.h"

static json_t *make_host_row(const struct bl_node_ref *ref)
{
	struct bl_hold_cfg c;
	struct bl_fp_page p;

	if (node_value(ref, BL_MAP_FP_PAGE, 0, &p, sizeof(p)) ||
	    node_value(ref, BL_MAP_HOLD_CFG, 0, &c, sizeof(c)))
		return NULL;
	return json_pack("{s:s, s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
			 "s:I, s:I}",
			 "node", node_name(ref), "policy", bl_policy_name(c.policy), "session",
			 p.session, "fallback", p.fallback, "term", (json_int_t)p.term, "sessions",
			 (json_int_t)p.sessions, "slot_ns", (json_int_t)c.slot_ns, "late_ns",
			 (json_int_t)c.slot_late_ns, "asked", (json_int_t)p.asked, "given",
			 (json_int_t)p.given, "lost", (json_int_t)p.lost, "refused",
			 (json_int_t)p.refused, "healed", (json_int_t)p.healed, "tx",
			 (json_int_t)p.tx, "rx", (json_int_t)p.rx, "bad", (json_int_t)p.bad);
}

static int add_dest_rows(const struct bl_node_ref *ref, json_t *rows)
{
	uint32_t entries = 0, n;
	int fd = adm_map(ref, BL_MAP_FP_DESTS, sizeof(struct bl_fp_dest), &entries);
	struct bl_fp_dest d;
	struct bl_hold_dest who;

	if (fd < 0)
		return 1;
	for (n = 1; n < entries; n++) {
		char mac[20];

		if (bpf_map_lookup_elem(fd, &n, &d) || !d.want ||
		    node_value(ref, BL_MAP_HOLD_MACS, n, &who, sizeof(who)))
			continue;
		mac_text(who.mac, mac, sizeof(mac));
		json_array_append_new(
			rows,
			json_pack("{s:s, s:i, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "node",
				  node_name(ref), "dest", (int)n, "address", mac, "endpoint",
				  d.endpoint == BL_FP_UNKNOWN || d.endpoint >= BL_FP_RETIRED
					  ? json_null()
					  : json_integer((json_int_t)d.endpoint - 1),
				  "wanted", (json_int_t)BL_FP_WANTED(d.want), "used",
				  (json_int_t)d.used, "idle", (json_int_t)d.idle, "missed",
				  (json_int_t)d.missed, "given", (json_int_t)bl_fp_given(&d),
				  "frames", (json_int_t)d.frames));
	}
	close(fd);
	return 0;
}

/* The order is that of the tables in cmd_show_fastpass(). */
static int collect_fastpass(const struct bl_node_ref *ref, json_t **rows)
{
	json_t *row;

	if (ref->role != BL_ROLE_HOST)
		return 0;
	row = make_host_row(ref);
	if (row)
		json_array_append_new(rows[0], row);
	return !row || add_dest_rows(ref, rows[1]);
}

int cmd_show_fastpass(int argc, char **argv)
{
	static const struct col hosts[] = {
		{ "node", "NODE", 's' },       { "policy", "POLICY", 's' },
		{ "session", "SESSION", 'b' }, { "fallback", "FALLBACK", 'b' },
		{ "term", "TERM", 'd' },       { "sessions", "SESSIONS", 'n' },
		{ "slot_ns", "SLOT", 't' },    { "late_ns", "MAY_BE_LATE", 't' },
		{ "asked", "ASKED", 'n' },     { "given", "GIVEN", 'n' },
		{ "lost", "LOST", 'n' },       { "refused", "TOO_LATE", 'n' },
		{ "healed", "HEALED", 'n' }
	};
	static const struct col dests[] = {
		{ "node", "NODE", 's' },       { "dest", "DEST", 'd' },
		{ "address", "ADDRESS", 's' }, { "endpoint", "ENDPOINT", 'd' },
		{ "wanted", "WANTED", 'n' },   { "used", "USED", 'n' },
		{ "idle", "IDLE", 'n' },       { "missed", "MISSED", 'n' },
		{ "given", "AHEAD", 'd' },     { "frames", "FRAMES", 'n' }
	};
	static const struct show_table tables[] = { SHOW_TABLE("fastpass", hosts),
						    SHOW_TABLE("destinations", dests) };

	return show_tables(argc, argv,
			   "barline show fastpass - timeslots that a host requested from its "
			   "arbiter, was granted, and used\v"
			   "MISSED: the pacer ran more than MAY_BE_LATE after the slot began, and "
			   "the slot was requested again. IDLE: no frame was queued for the slot. "
			   "AHEAD: granted and not begun. FALLBACK: no arbiter has answered for "
			   "fallback_ms, and frames leave without slots.",
			   "PORT", tables, sizeof(tables) / sizeof(tables[0]), collect_fastpass,
			   "no host in this network namespace");
}
