// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The configuration file that setup writes; barlined(8) describes its keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/setup/plan.h"

static const char *port_role(enum bl_port_role role)
{
	return role == BL_PORT_UP ? "up" : role == BL_PORT_DOWN ? "down" : "host";
}

/* IPv6 addresses need quotes inside of [ ]. */
static void put_ip(FILE *f, const char *ip)
{
	fprintf(f, strchr(ip, ':') ? ", \"%s\"" : ", %s", ip);
}

/* Whether both addresses of each host behind @dev are known, and there is a host. */
static bool all_known(const struct setup_want *w, const char *dev)
{
	unsigned int k, n = 0;

	for (k = 0; k < w->nhosts; k++) {
		if (strcmp(w->hosts[k].dev, dev) != 0)
			continue;
		if (!w->hosts[k].nip)
			return false;
		n++;
	}
	return n;
}

/*
 * The addresses that frames of a host's port may have as their source. A list without the IP
 * address of one of its hosts would drop all that this host sends, so the port learns them.
 */
static void put_sources(FILE *f, const struct setup_want *w, const char *dev)
{
	unsigned int k, i, n = 0;

	if (!all_known(w, dev)) {
		fputs(", addresses: [learn]", f);
		return;
	}
	fputs(", addresses: [", f);
	for (k = 0; k < w->nhosts; k++) {
		if (strcmp(w->hosts[k].dev, dev) != 0)
			continue;
		fprintf(f, "%s%s", n++ ? ", " : "", w->hosts[k].mac);
		for (i = 0; i < w->hosts[k].nip; i++)
			put_ip(f, w->hosts[k].ip[i]);
	}
	fputs("]", f);
}

static void put_switch(FILE *f, const struct setup_want *w)
{
	unsigned int k;

	fprintf(f, "forward: %s\nports:\n", w->forward == BL_FWD_L2 ? "l2" : "l3");
	for (k = 0; k < w->nports; k++) {
		fprintf(f, "  - { interface: %s, role: %s", w->ports[k].dev,
			port_role(w->ports[k].role));
		if (w->ports[k].role == BL_PORT_HOST)
			put_sources(f, w, w->ports[k].dev);
		fputs(" }\n", f);
	}
	if (w->forward != BL_FWD_L2 || !w->nhosts)
		return;
	fputs("fdb:\n", f);
	for (k = 0; k < w->nhosts; k++)
		fprintf(f, "  - { mac: %s, port: %s }\n", w->hosts[k].mac, w->hosts[k].dev);
}

char *setup_yaml(const struct setup_want *w)
{
	const char *role = w->role == BL_ROLE_SWITCH ? "switch" : "host";
	char *text = NULL;
	unsigned int k;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fprintf(f, "# Written by `barline %s setup`, which replaces it unless it is changed.\n",
		role);
	fprintf(f, "role: %s\nname: %s\n", role, w->name);
	if (w->node_id)
		fprintf(f, "node_id: %u\n", w->node_id);
	if (w->beacon_us)
		fprintf(f, "beacon_us: %u\n", w->beacon_us);
	if (w->clock_bound_us)
		fprintf(f, "clock_bound_us: %u\n", w->clock_bound_us);
	if (w->role == BL_ROLE_HOST)
		fprintf(f, "interface: %s\n", w->ports[0].dev);
	else
		put_switch(f, w);
	for (k = 0; k < w->ncontrollers; k++)
		fprintf(f, k ? "  - \"%s\"\n" : "controllers:\n  - \"%s\"\n", w->controllers[k]);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}
