// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* barline show sources: the addresses that may be the source of frames from each port of a switch.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
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

/* Writes a list's IP address as text. */
static void print_ip(const struct bl_ip *ip, char text[INET6_ADDRSTRLEN])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t a[16];

	memcpy(a, ip, sizeof(a));
	if (!memcmp(a, mapped, sizeof(mapped)))
		inet_ntop(AF_INET, a + 12, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, a, text, INET6_ADDRSTRLEN);
}

static void add_row(json_t *rows, const struct bl_node_ref *ref, const struct bl_sw_port *p,
		    const struct bl_sources *s)
{
	char text[INET6_ADDRSTRLEN], all_macs[128] = "", all_ips[512] = "";
	unsigned int k;

	for (k = 0; k < s->nmac && k < BL_SOURCE_MACS; k++) {
		uint64_t m = s->mac[k];

		snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", (unsigned)(m & 0xff),
			 (unsigned)(m >> 8 & 0xff), (unsigned)(m >> 16 & 0xff),
			 (unsigned)(m >> 24 & 0xff), (unsigned)(m >> 32 & 0xff),
			 (unsigned)(m >> 40 & 0xff));
		snprintf(all_macs + strlen(all_macs), sizeof(all_macs) - strlen(all_macs), "%s%s",
			 k ? " " : "", text);
	}
	for (k = 0; k < s->nip && k < BL_SOURCE_IPS; k++) {
		print_ip(&s->ip[k], text);
		snprintf(all_ips + strlen(all_ips), sizeof(all_ips) - strlen(all_ips), "%s%s",
			 k ? " " : "", text);
	}
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
		    "Ordered frames, beacons, reservations, tokens and packets of Fastpass with "
		    "another "
		    "source are dropped as spoofed. FROM: list: the addresses are configured; "
		    "learn: "
		    "they are those that were used first, and none is shown before the first "
		    "frame; "
		    "any: the port is not checked, because a switch is behind it, or it leads out "
		    "of "
		    "the rack. LANES is how many datapath CPUs the neighbour may have.",
		    "sources", collect_sources, cols, "no ports");
}
