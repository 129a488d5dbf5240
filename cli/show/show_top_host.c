/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See show_top.h.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <unistd.h>

#include "cli/show/show_top.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "cli/util/read_admission.h"
#include "maps/top_host_abi.h"
#include "loader/admission/admission.h"
#include "loader/admission/top_host.h"

static const char *const tx_states[] = { [BL_TOP_FREE] = "free",
					 [BL_TOP_IDLE] = "idle",
					 [BL_TOP_ASKING] = "asking",
					 [BL_TOP_CREDITED] = "credited",
					 [BL_TOP_OUTSIDE] = "outside" };
static const char *const rx_states[] = {
	[BL_TOP_RX_FREE] = "free", [BL_TOP_RX_STOPPED] = "stopped", [BL_TOP_RX_OPEN] = "open"
};

/* Formats an address and, unless it is -1, @port, which is in network byte order. */
static char *format_flow_end(const uint8_t *addr, uint32_t v6, int port, char *buf, size_t size)
{
	char a[INET6_ADDRSTRLEN];

	inet_ntop(v6 ? AF_INET6 : AF_INET, v6 ? addr : addr + 12, a, sizeof(a));
	if (port < 0)
		snprintf(buf, size, "%s", a);
	else
		snprintf(buf, size, v6 ? "[%s]:%u" : "%s:%u", a, ntohs((uint16_t)port));
	return buf;
}

/* the size that a flow declared; null if it declared none, or a class */
static json_t *size_json(uint64_t bytes)
{
	return bytes && bytes < BL_TOP_SAYS_CLASS ? json_integer((json_int_t)bytes) : json_null();
}

static int add_sent_flows(const struct bl_node_ref *ref, json_t *rows)
{
	uint32_t entries, n;
	int fd = adm_map(ref, BL_MAP_TOP_TX, sizeof(struct bl_top_tx), &entries);
	struct bl_top_tx t;
	char from[64], to[64];

	for (n = 1; fd >= 0 && n < entries; n++) {
		if (bpf_map_lookup_elem_flags(fd, &n, &t, BPF_F_LOCK) || t.state == BL_TOP_FREE ||
		    t.state >= sizeof(tx_states) / sizeof(tx_states[0]))
			continue;
		json_array_append_new(
			rows,
			json_pack("{s:s, s:i, s:s, s:s, s:i, s:s, s:o, s:I, s:I, s:I, s:I, s:I, "
				  "s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:I, s:I}",
				  "node", node_name(ref), "flow", (int)n, "from",
				  format_flow_end(t.key.saddr, t.key.v6, t.key.sport, from,
						  sizeof(from)),
				  "to",
				  format_flow_end(t.key.daddr, t.key.v6, t.key.dport, to,
						  sizeof(to)),
				  "protocol", t.key.proto, "state", tx_states[t.state], "bytes",
				  size_json(t.bytes), "coflow", (json_int_t)t.coflow, "frames",
				  (json_int_t)t.frames, "sent_bytes", (json_int_t)t.sent_bytes,
				  "tokens", (json_int_t)t.tokens, "wasted", (json_int_t)t.wasted,
				  "expired", (json_int_t)t.expired, "refused",
				  (json_int_t)t.refused, "syncs", (json_int_t)t.syncs,
				  "unscheduled", (json_int_t)t.unscheduled, "paced",
				  (json_int_t)t.paced, "keeps", t.keep, "lost", (json_int_t)t.asked,
				  "resent", (json_int_t)t.resent, "gone", (json_int_t)t.gone));
	}
	if (fd >= 0)
		close(fd);
	return fd < 0;
}

static int add_received_flows(const struct bl_node_ref *ref, const struct bl_top_cfg *cfg,
			      json_t *rows)
{
	uint32_t entries, i;
	int fd = adm_map(ref, BL_MAP_TOP_RX, sizeof(struct bl_top_rx), &entries);
	struct bl_top_rx r;
	char from[64];

	for (i = 0; fd >= 0 && i < entries; i++) {
		if (bpf_map_lookup_elem_flags(fd, &i, &r, BPF_F_LOCK) ||
		    r.state == BL_TOP_RX_FREE ||
		    r.state >= sizeof(rx_states) / sizeof(rx_states[0]))
			continue;
		json_array_append_new(
			rows,
			json_pack("{s:s, s:s, s:i, s:s, s:i, s:o, s:I, s:I, s:f, s:f, s:f, s:I, "
				  "s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
				  "node", node_name(ref), "from",
				  format_flow_end(r.who.addr, r.v6, -1, from, sizeof(from)), "flow",
				  (int)r.who.flow, "state", rx_states[r.state], "class", (int)r.cls,
				  "bytes", size_json(r.bytes), "coflow", (json_int_t)r.coflow,
				  "served", (json_int_t)r.served, "rate_percent",
				  100.0 * r.rate / BL_TOP_ONE, "rate_mbit",
				  cfg->slot_ns ? 8e3 * 1538 * r.rate / BL_TOP_ONE / cfg->slot_ns
					       : 0.0,
				  "weight", (double)r.weight / BL_TOP_ONE, "rtt_ns",
				  (json_int_t)r.rtt_ns, "tokens", (json_int_t)r.seq, "frames",
				  (json_int_t)r.frames, "lost", (json_int_t)(r.lost + r.dropped),
				  "late", (json_int_t)r.late, "syncs", (json_int_t)r.syncs,
				  "missing", (json_int_t)__builtin_popcountll(~r.came.got),
				  "losses", (json_int_t)r.came.losses, "data_lost",
				  (json_int_t)r.came.lost, "repeated",
				  (json_int_t)r.came.repeated));
	}
	if (fd >= 0)
		close(fd);
	return fd < 0;
}

/* returns where the thresholds between classes come from */
static const char *limits_origin(const struct bl_top_cfg *c, const struct bl_top_page *p)
{
	uint32_t k;

	if (c->levels < 2)
		return "none";
	for (k = BL_TOP_O_CLASS1; k <= BL_TOP_O_CLASS5; k++)
		if (c->opt[k])
			return "given";
	return c->learn && p->limit[0] ? "learnt" : "formula";
}

/*
 * Returns the thresholds that the pacer uses now: the number of frames from which each class
 * begins. Also writes them into @text, as in "50 128 247 431 903".
 */
static json_t *limits_json(const struct bl_top_cfg *c, const struct bl_top_page *p, char *text,
			   size_t size)
{
	const __u64 *limit = c->learn && p->limit[0] ? p->limit : c->limit;
	json_t *all = json_array();
	uint32_t k;
	int n = 0;

	*text = '\0';
	for (k = 0; k + 1 < c->levels && k < BL_TOP_CLASSES - 1; k++) {
		json_array_append_new(all, json_integer((json_int_t)limit[k]));
		n += snprintf(text + n, size - (size_t)n, "%s%llu", k ? " " : "",
			      (unsigned long long)limit[k]);
	}
	return all;
}

int top_rows(const struct bl_node_ref *ref, struct top_rows *out)
{
	struct bl_hold_cfg hold;
	struct bl_top_cfg cfg;
	struct bl_top_page p;
	json_t *classes = json_array(), *row;
	char limits[128], objective[32];
	uint64_t seen = 0;
	unsigned int c;
	json_int_t all = 0;

	if (node_value(ref, BL_MAP_HOLD_CFG, 0, &hold, sizeof(hold)) ||
	    node_value(ref, BL_MAP_TOP_CFG, 0, &cfg, sizeof(cfg)) ||
	    node_value(ref, BL_MAP_TOP_PAGE, 0, &p, sizeof(p))) {
		json_decref(classes);
		return 1;
	}
	for (c = 0; c < BL_TOP_CLASSES; c++) {
		json_array_append_new(classes, json_integer((json_int_t)p.tokens[c]));
		all += (json_int_t)p.tokens[c];
	}
	row = json_pack("{s:s, s:b, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I}", "node",
			node_name(ref), "on", hold.on && bl_policy_by_tokens(hold.policy),
			"slot_ns", (json_int_t)cfg.slot_ns, "expiry_ns", (json_int_t)cfg.expiry_ns,
			"tokens", all, "by_class", classes, "no_clock", (json_int_t)p.no_clock,
			"gone", (json_int_t)p.gone, "freed", (json_int_t)p.freed, "kept",
			(json_int_t)p.kept);
	for (c = 0; c < BL_TOP_SIZES; c++)
		seen += p.sizes[c];
	json_object_set_new(row, "objective",
			    json_string(bl_top_option_value(BL_TOP_O_OBJECTIVE, cfg.objective,
							    objective, sizeof(objective))));
	json_object_set_new(row, "limits", limits_json(&cfg, &p, limits, sizeof(limits)));
	json_object_set_new(row, "limits_text", json_string(limits));
	json_object_set_new(row, "limits_from", json_string(limits_origin(&cfg, &p)));
	json_object_set_new(row, "flows_seen", json_integer((json_int_t)seen));
	json_array_append_new(out->hosts, row);
	return add_sent_flows(ref, out->sending) || add_received_flows(ref, &cfg, out->receiving);
}

static const struct col hosts[] = {
	{ "node", "HOST", 's' },           { "on", "ON", 'b' },
	{ "slot_ns", "SLOT", 't' },        { "expiry_ns", "T", 't' },
	{ "tokens", "TOKENS_SENT", 'n' },  { "gone", "GONE", 'n' },
	{ "freed", "ENDED", 'n' },         { "kept", "KEPT", 'd' },
	{ "objective", "OBJECTIVE", 's' }, { "limits_text", "CLASSES_FROM_FRAMES", 's' },
	{ "limits_from", "ORIGIN", 's' },  { "flows_seen", "FLOWS_SEEN", 'n' }
};
static const struct col sending[] = {
	{ "node", "HOST", 's' },           { "flow", "FLOW", 'd' },
	{ "from", "FROM", 's' },           { "to", "TO", 's' },
	{ "state", "STATE", 's' },         { "bytes", "BYTES", 'd' },
	{ "frames", "HELD", 'd' },         { "tokens", "ANSWERED", 'n' },
	{ "wasted", "WASTED", 'n' },       { "expired", "EXPIRED", 'n' },
	{ "refused", "REFUSED", 'n' },     { "syncs", "SYNCS", 'n' },
	{ "unscheduled", "UNSCHED", 'n' }, { "paced", "PACED", 'n' },
	{ "lost", "LOST", 'n' },           { "resent", "RESENT", 'n' }
};
static const struct col receiving[] = {
	{ "node", "HOST", 's' },           { "from", "FROM", 's' },
	{ "flow", "FLOW", 'd' },           { "state", "STATE", 's' },
	{ "class", "CLASS", 'd' },         { "bytes", "BYTES", 'd' },
	{ "served", "SERVED", 'n' },       { "rate_mbit", "MBIT", 'f' },
	{ "rate_percent", "RATE_%", 'f' }, { "rtt_ns", "RTT", 't' },
	{ "tokens", "TOKENS", 'n' },       { "frames", "FRAMES", 'n' },
	{ "lost", "LOST", 'n' },           { "late", "LATE", 'n' },
	{ "missing", "MISSING", 'd' },     { "data_lost", "DATA_LOST", 'n' },
	{ "repeated", "REPEATED", 'n' }
};

const struct show_table top_tables[3] = { SHOW_TABLE("hosts", hosts),
					  SHOW_TABLE("sending", sending),
					  SHOW_TABLE("receiving", receiving) };
