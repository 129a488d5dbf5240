// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* barline show sources: the addresses that may be the source of frames from each port of a switch.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <endian.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/show/show.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "maps/switch_abi.h"

static const char *const modes[] = {
	[BL_SOURCE_ANY] = "any", [BL_SOURCE_LEARN] = "learn", [BL_SOURCE_LIST] = "list"
};

/* Appends @text to the list @all, with a space before it if it is not the first. */
static void append_text(char *all, size_t size, const char *text)
{
	size_t used = strlen(all);

	snprintf(all + used, size - used, "%s%s", used ? " " : "", text);
}

static void add_row(json_t *rows, const struct bl_node_ref *ref, const struct bl_sw_port *p,
		    const struct bl_sources *s)
{
	char text[INET6_ADDRSTRLEN],
		all_macs[BL_SOURCE_MACS * 18] = "", all_ips[BL_SOURCE_IPS * INET6_ADDRSTRLEN] = "";
	unsigned int k;

	for (k = 0; k < s->nmac && k < BL_SOURCE_MACS; k++) {
		/* as bl_mac48() makes it: the first byte is the lowest */
		const uint64_t mac = htole64(s->mac[k]);

		append_text(all_macs, sizeof(all_macs),
			    mac_text((const uint8_t *)&mac, text, sizeof(text)));
	}
	for (k = 0; k < s->nip && k < BL_SOURCE_IPS; k++)
		append_text(all_ips, sizeof(all_ips),
			    addr_text((const uint8_t *)&s->ip[k], text, sizeof(text)));
	json_array_append_new(rows,
			      json_pack("{s:s, s:s, s:s, s:i, s:s, s:s}", "node", node_name(ref),
					"name", p->name, "addresses",
					s->mode <= BL_SOURCE_LIST ? modes[s->mode] : "?", "lanes",
					BL_PORT_LANES(p), "ethernet", all_macs, "ip", all_ips));
}

static int collect_sources(const struct bl_node_ref *ref, json_t *rows)
{
	struct bl_sw_port p;
	struct bl_sources s;
	struct bl_err err;
	int ports, sources;
	uint32_t k;

	if (ref->role != BL_ROLE_SWITCH)
		return 0;
	ports = bl_map_open(ref, BL_MAP_SW_PORTS, sizeof(p), false, &err);
	if (ports < 0)
		return cli_fail("%s", err.text);
	sources = bl_map_open(ref, BL_MAP_SW_SOURCES, sizeof(s), false, &err);
	for (k = 0; sources >= 0 && k < BL_SW_PORTS_MAX; k++) {
		if (bpf_map_lookup_elem(ports, &k, &p) || !p.ifindex ||
		    bpf_map_lookup_elem(sources, &k, &s))
			continue;
		p.name[sizeof(p.name) - 1] = '\0';
		add_row(rows, ref, &p, &s);
	}
	close(ports);
	if (sources < 0)
		return cli_fail("%s", err.text);
	close(sources);
	return 0;
}

int cmd_show_sources(int argc, char **argv)
{
	static const struct col cols[] = {
		{ "node", "NODE", 's' },         { "name", "NAME", 's' },
		{ "addresses", "FROM", 's' },    { "lanes", "LANES", 'd' },
		{ "ethernet", "ETHERNET", 's' }, { "ip", "IP", 's' }
	};

	return SHOW("barline show sources - addresses that may send on each port of a switch\v"
		    "Ordered frames, beacons, reservations, tokens and packets of Fastpass from "
		    "other sources are dropped as spoofed. FROM: list: the addresses are "
		    "configured; learn: the port accepts those that are used first, and has none "
		    "before the first frame; any: the port is not checked, because a switch is "
		    "behind it, or because it leads out of the rack. LANES is how many datapath "
		    "CPUs the neighbour may have.",
		    "sources", collect_sources, cols, "no ports");
}
