// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See trace_row.h. */
#include "cli/capture/trace_row.h"

#include <stdio.h>
#include <string.h>

#include "cli/util/out.h"
#include "cli/util/read.h"
#include "cli/util/read_figures.h"
#include "core/figures_core.h"
#include "maps/host_abi.h"

static const char *const why_names[] = {
	[BL_FIG_MORE] = "more",   [BL_FIG_WINDOW] = "window", [BL_FIG_NIC] = "nic",
	[BL_FIG_CLOCK] = "clock", [BL_FIG_SLOTS] = "slots",
};

static const char *const why_texts[] = {
	[BL_FIG_MORE] = "for more (BL_MORE)",
	[BL_FIG_WINDOW] = "for the window of",
	[BL_FIG_NIC] = "for room in the ring of the NIC",
	[BL_FIG_CLOCK] = "for a valid clock",
	[BL_FIG_SLOTS] = "for acknowledgements of what was sent before",
};

#define WHYS ((int)(sizeof(why_names) / sizeof(why_names[0])))

void trace_row_clear(struct trace_row *r)
{
	unsigned int k;

	memset(r, 0, sizeof(*r));
	for (k = 0; k < TRACE_TIME_COUNT; k++)
		r->ns[k] = TRACE_UNKNOWN;
	r->psn = r->why = -1;
}

int64_t trace_row_took(const struct trace_row *r)
{
	static const enum trace_time parts[] = { TRACE_STAGED, TRACE_WINDOW, TRACE_TOTAL };
	int64_t ns = 0;
	size_t k;

	for (k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
		if (r->ns[parts[k]] != TRACE_UNKNOWN)
			ns += r->ns[parts[k]];
	return ns;
}

/* ---- output ---- */

static json_t *end_json(const struct bl_addr *a)
{
	char text[64];

	return a->port ? json_string(bl_addr_format(a, text, sizeof(text))) : json_null();
}

static json_t *holder_json(const struct trace_holder *h)
{
	return h->known ? json_pack("{s:s, s:s, s:s, s:b, s:b}", "node", h->node, "switch", h->at,
				    "name", h->port, "excluded", h->excluded, "now", h->now)
			: json_null();
}

static json_t *row_json(const struct trace_row *r)
{
	static const char *const keys[] = {
#define KEY(sym, key, heading) [TRACE_##sym] = (key),
		TRACE_TIMES(KEY)
#undef KEY
	};
	char name[96];
	json_t *o = json_pack(
		"{s:o, s:o, s:s, s:o, s:o, s:o}", "source", end_json(&r->name.src), "destination",
		end_json(&r->dst), "opcode", r->reliable ? "prep" : "data", "psn",
		r->psn < 0 ? json_null() : json_integer(r->psn), "ts",
		r->name.ts ? json_integer((json_int_t)(r->name.ts & BL_TS_MASK)) : json_null(),
		"message",
		r->name.ts ? json_string(message_format(&r->name, name, sizeof(name)))
			   : json_null());
	unsigned int k;

	for (k = 0; k < TRACE_TIME_COUNT; k++)
		json_object_set_new(o, keys[k],
				    r->ns[k] == TRACE_UNKNOWN ? json_null()
							      : json_integer(r->ns[k]));
	json_object_set_new(o, "held_by", holder_json(&r->holder));
	json_object_set_new(o, "waited_for",
			    r->why < 0 || r->why >= WHYS
				    ? json_null()
				    : json_pack("{s:s, s:o}", "what", why_names[r->why], "endpoint",
						end_json(&r->window)));
	return o;
}

static void print_line(const struct trace_row *r, bool first)
{
	static const char *const headings[] = {
#define HEADING(sym, key, heading) [TRACE_##sym] = (heading),
		TRACE_TIMES(HEADING)
#undef HEADING
	};
	char name[96], dst[64] = "-", buf[32];
	unsigned int k;

	if (first) {
		printf("%-38s %-22s %-4s %8s", "MESSAGE", "DESTINATION", "OP", "PSN");
		for (k = 0; k < TRACE_TIME_COUNT; k++)
			printf(" %9s", headings[k]);
		printf(" %s\n", "HELD_BY");
	}
	if (r->dst.port)
		bl_addr_format(&r->dst, dst, sizeof(dst));
	if (r->name.ts)
		message_format(&r->name, name, sizeof(name));
	else
		bl_addr_format(&r->name.src, name, sizeof(name));
	printf("%-38s %-22s %-4s", name, dst, r->reliable ? "prep" : "data");
	snprintf(buf, sizeof(buf), "%lld", r->psn);
	printf(" %8s", r->psn < 0 ? "-" : buf);
	for (k = 0; k < TRACE_TIME_COUNT; k++)
		printf(" %9s",
		       r->ns[k] == TRACE_UNKNOWN ? "-" : out_time(r->ns[k], buf, sizeof(buf)));
	if (r->holder.known)
		printf(" %s (%s of %s)%s", r->holder.node, r->holder.port, r->holder.at,
		       r->holder.now        ? ", now"
		       : r->holder.excluded ? ", until it was excluded"
					    : "");
	if (r->why >= 0 && r->why < WHYS)
		printf("%s before it left, %s%s%s", r->holder.known ? ";" : "", why_texts[r->why],
		       r->why == BL_FIG_WINDOW ? " " : "",
		       r->why == BL_FIG_WINDOW ? bl_addr_format(&r->window, dst, sizeof(dst)) : "");
	putchar('\n');
}

void trace_row_print(const struct trace_row *r, bool first)
{
	if (cli.json)
		cli_json(row_json(r));
	else
		print_line(r, first);
	fflush(stdout);
}

/* ---- what endpoints tell ---- */

/* Maps the figures of the endpoint of a host at @a. NULL: it has none such. */
static const struct bl_figures *figures_at(const struct bl_node_ref *ref, const struct bl_addr *a)
{
	static const uint8_t any[16];
	struct bl_host_cfg cfg;
	struct bl_ep_slot s;
	struct bl_err err;
	uint32_t key;

	if (ref->role != BL_ROLE_HOST || node_value(ref, BL_MAP_HOST_CFG, 0, &cfg, sizeof(cfg)))
		return NULL;
	key = (uint16_t)(a->port - cfg.port_base);
	if (key >= cfg.port_count || node_value(ref, BL_MAP_EPS, key, &s, sizeof(s)) ||
	    s.active != BL_EP_ACTIVE ||
	    (memcmp(s.addr, a->ip, 16) && memcmp(s.addr, any, sizeof(any))))
		return NULL;
	return figures_map(ref, s.slot, &err);
}

bool trace_row_wait(struct trace_row *r, const struct bl_node_ref *refs, int nrefs)
{
	enum bl_fig_known known = BL_FIG_UNKNOWN;
	struct bl_fig_wait e;
	int i;

	for (i = 0; i < nrefs && known == BL_FIG_UNKNOWN; i++) {
		const struct bl_figures *f = figures_at(&refs[i], &r->name.src);

		if (!f)
			continue;
		known = bl_fig_find_wait(f, r->name.ts, r->reliable, &e);
		figures_unmap(f);
	}
	if (known == BL_FIG_UNKNOWN)
		return false;
	if (known == BL_FIG_BRIEF)
		e = (struct bl_fig_wait){ 0 };
	r->ns[TRACE_STAGED] = (int64_t)e.staged_ns;
	r->ns[TRACE_WINDOW] = (int64_t)e.window_ns;
	if (known == BL_FIG_BRIEF)
		return true;
	r->why = e.why;
	if (e.why == BL_FIG_WINDOW) {
		memcpy(r->window.ip, e.dst, sizeof(r->window.ip));
		r->window.port = e.port;
	}
	return true;
}

void trace_row_app(struct trace_row *r, const struct bl_node_ref *ref, uint64_t done_ns)
{
	const struct bl_figures *f = figures_at(ref, &r->dst);
	struct bl_fig_end e;
	unsigned int i;

	for (i = 0; f && i < BL_FIG_KEPT; i++)
		if (bl_fig_get(f->end, i, &e, sizeof(e)) && bl_fig_same_ts(e.ts, r->name.ts) &&
		    e.reliable == r->reliable && e.port == r->name.src.port &&
		    !memcmp(e.src, r->name.src.ip, 16) && e.at_ns >= done_ns)
			r->ns[TRACE_APP] = (int64_t)(e.at_ns - done_ns);
	figures_unmap(f);
}
