// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The settings as files that make them again at every boot: of systemd-networkd, or of ifupdown.
 * Forwarding is a file of sysctl.d, since udev applies those to an interface when it appears.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/setup/setup.h"
#include "cli/util/out.h"

/** struct printing - where files go. */
struct printing {
	const struct setup_want *w;
	const char *dir; /* NULL: to standard output */
	int rc;          /* 1 after a message */
};

static FILE *begin(struct printing *p, const char *folder, const char *name)
{
	FILE *f = p->dir ? out_open(p->dir, name) : stdout;

	if (!f) {
		p->rc = 1;
		return NULL;
	}
	if (!p->dir)
		printf("### %s/%s\n", folder, name);
	fprintf(f, "# Printed by `barline %s setup --print` for %s.\n",
		p->w->role == BL_ROLE_SWITCH ? "switch" : "host", p->w->file);
	return f;
}

static void end(struct printing *p, const char *name, FILE *f)
{
	if (p->dir && out_close(p->dir, name, f))
		p->rc = 1;
	if (!p->dir)
		putchar('\n');
}

static bool is_l2(const struct setup_want *w)
{
	return w->role == BL_ROLE_SWITCH && w->forward == BL_FWD_L2;
}

/* Whether the router of @r is reached by @dev: it is in a subnet that setup gives to it. */
static bool leaves_by(const struct setup_want *w, const struct setup_route *r, const char *dev)
{
	const char *by = setup_want_on_link(w, r->via);

	return by ? !strcmp(by, dev) : !strcmp(w->ports[0].dev, dev);
}

/* ---- systemd-networkd ---- */

static void put_routes(struct printing *p, FILE *f, const char *dev)
{
	unsigned int k;

	for (k = 0; k < p->w->nroutes; k++)
		if (leaves_by(p->w, &p->w->routes[k], dev))
			fprintf(f, "\n[Route]\nDestination=%s\nGateway=%s\n", p->w->routes[k].net,
				p->w->routes[k].via);
}

static void put_neighbours(struct printing *p, FILE *f, const char *dev)
{
	unsigned int k, i;

	for (k = 0; k < p->w->nhosts && !is_l2(p->w); k++)
		for (i = 0; i < p->w->hosts[k].nip && !strcmp(p->w->hosts[k].dev, dev); i++)
			fprintf(f, "\n[Neighbor]\nAddress=%s\nLinkLayerAddress=%s\n",
				p->w->hosts[k].ip[i], p->w->hosts[k].mac);
}

static void put_network(struct printing *p, const char *dev, bool port)
{
	char name[64];
	unsigned int k;
	FILE *f;

	snprintf(name, sizeof(name), "50-barline-%s.network", dev);
	f = begin(p, "/etc/systemd/network", name);
	if (!f)
		return;
	fprintf(f, "[Match]\nName=%s\n\n[Link]\nRequiredForOnline=no\n", dev);
	if (p->w->mtu && port)
		fprintf(f, "MTUBytes=%u\n", p->w->mtu);
	fputs("\n[Network]\n", f);
	if (port && is_l2(p->w))
		fprintf(f, "Bridge=%s\nLinkLocalAddressing=no\n", p->w->bridge);
	else
		fputs("ConfigureWithoutCarrier=yes\n", f);
	for (k = 0; k < p->w->naddresses; k++)
		if (!strcmp(p->w->addresses[k].dev, dev))
			fprintf(f, "Address=%s\n", p->w->addresses[k].text);
	put_routes(p, f, dev);
	put_neighbours(p, f, dev);
	end(p, name, f);
}

static void put_netdev(struct printing *p)
{
	char name[64];
	FILE *f;

	snprintf(name, sizeof(name), "50-barline-%s.netdev", p->w->bridge);
	f = begin(p, "/etc/systemd/network", name);
	if (!f)
		return;
	fprintf(f, "[NetDev]\nName=%s\nKind=bridge\n\n[Bridge]\nSTP=no\nMulticastSnooping=no\n",
		p->w->bridge);
	end(p, name, f);
}

static bool has_v6(const struct setup_want *w)
{
	unsigned int k;

	for (k = 0; k < w->naddresses; k++)
		if (strchr(w->addresses[k].text, ':'))
			return true;
	return false;
}

static void put_forwarding(struct printing *p)
{
	char name[64];
	unsigned int k;
	FILE *f;

	if (p->w->role != BL_ROLE_SWITCH || is_l2(p->w))
		return;
	snprintf(name, sizeof(name), "50-barline-%s.conf", p->w->file);
	f = begin(p, "/etc/sysctl.d", name);
	if (!f)
		return;
	for (k = 0; k < p->w->nports; k++)
		fprintf(f, "net/ipv4/conf/%s/forwarding=1\n", p->w->ports[k].dev);
	if (has_v6(p->w))
		fputs("net/ipv6/conf/all/forwarding=1\n", f);
	end(p, name, f);
}

static void print_networkd(struct printing *p)
{
	unsigned int k;

	if (is_l2(p->w)) {
		put_netdev(p);
		put_network(p, p->w->bridge, false);
	}
	for (k = 0; k < p->w->nports; k++)
		put_network(p, p->w->ports[k].dev, true);
	put_forwarding(p);
}

/* ---- ifupdown ---- */

static void put_up_commands(struct printing *p, FILE *f, const char *dev)
{
	unsigned int k, i;

	for (k = 0; k < p->w->naddresses; k++)
		if (!strcmp(p->w->addresses[k].dev, dev))
			fprintf(f, "\tup ip address replace %s dev %s\n", p->w->addresses[k].text,
				dev);
	for (k = 0; k < p->w->nroutes; k++)
		if (leaves_by(p->w, &p->w->routes[k], dev))
			fprintf(f, "\tup ip route replace %s via %s dev %s\n", p->w->routes[k].net,
				p->w->routes[k].via, dev);
	for (k = 0; k < p->w->nhosts && !is_l2(p->w); k++)
		for (i = 0; i < p->w->hosts[k].nip && !strcmp(p->w->hosts[k].dev, dev); i++)
			fprintf(f, "\tup ip neigh replace %s lladdr %s nud permanent dev %s\n",
				p->w->hosts[k].ip[i], p->w->hosts[k].mac, dev);
}

static void print_ifupdown(struct printing *p)
{
	char name[64];
	unsigned int k;
	FILE *f;

	snprintf(name, sizeof(name), "barline-%s", p->w->file);
	f = begin(p, "/etc/network/interfaces.d", name);
	if (!f)
		return;
	if (is_l2(p->w)) {
		fprintf(f,
			"auto %s\niface %s inet manual\n"
			"\tpre-up ip link add %s type bridge stp_state 0 mcast_snooping 0\n"
			"\tup ip link set %s up\n",
			p->w->bridge, p->w->bridge, p->w->bridge, p->w->bridge);
		put_up_commands(p, f, p->w->bridge);
		fprintf(f, "\tpost-down ip link del %s\n", p->w->bridge);
	}
	for (k = 0; k < p->w->nports; k++) {
		const char *dev = p->w->ports[k].dev;

		fprintf(f, "auto %s\niface %s inet manual\n", dev, dev);
		if (p->w->mtu)
			fprintf(f, "\tpre-up ip link set %s mtu %u\n", dev, p->w->mtu);
		fprintf(f, "\tup ip link set %s up\n", dev);
		if (is_l2(p->w))
			fprintf(f, "\tup ip link set %s master %s\n", dev, p->w->bridge);
		else
			put_up_commands(p, f, dev);
		fprintf(f, "\tdown ip link set %s down\n", dev);
	}
	end(p, name, f);
	put_forwarding(p);
}

int setup_print(const struct setup_want *w, const char *how, const char *dir)
{
	struct printing p = { .w = w, .dir = dir };

	if (!strcmp(how, "networkd"))
		print_networkd(&p);
	else
		print_ifupdown(&p);
	if (!dir && fflush(stdout))
		p.rc = cli_fail("standard output: %s", strerror(errno));
	return p.rc;
}
