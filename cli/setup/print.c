// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The settings as files that make them again at every boot: of systemd-networkd, or of ifupdown.
 * Forwarding is a file of sysctl.d, since udev applies those to an interface when it appears.
 *
 * An interface on which setup changes nothing is configured by something else, and has no file
 * here. Neither has a bridge that setup did not make. An interface on which setup does change
 * something may be configured by something else, too. systemd-networkd uses the first file that
 * matches an interface, and nothing of another one. So a file for eth0 that lacks an address or a
 * route of eth0 would take it away at the next boot, and is refused. ifupdown applies all stanzas
 * of an interface, so there the file only adds. Example: eth0 has 10.0.0.1/24 by DHCP.
 *
 *	host setup eth0 --print networkd		prints no file for eth0
 *	... eth0 --mtu 3000 --print networkd		is refused
 *	... eth0 --mtu 3000 --address 10.0.0.1/24 ...	makes the address static
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/setup/setup.h"
#include "cli/util/out.h"

/** struct printing - where files go. */
struct printing {
	const struct setup_output *o;
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

/* The interface by which the plan has the route leave; "": not known. */
static const char *way_of(const struct printing *p, const struct setup_route *r)
{
	const char *value = setup_get(p->o->f, SETUP_ROUTE, "", r->net);
	const char *dev = value ? strstr(value, " dev ") : NULL;

	return dev ? dev + sizeof(" dev ") - 1 : "";
}

static bool leaves_by(const struct printing *p, const struct setup_route *r, const char *dev)
{
	return !strcmp(way_of(p, r), dev);
}

/* ---- what is setup's, and what is not ---- */

static bool is_in(const struct setup_steps *s, enum setup_kind kind, const char *dev)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->v[i].kind == kind && !strcmp(s->v[i].dev, dev) && !setup_is_kept(&s->v[i]))
			return true;
	return false;
}

/* Whether setup makes the fact, or has made it before, now or in an earlier boot. */
static bool is_made(const struct printing *p, enum setup_kind kind, const char *dev)
{
	return is_in(p->o->plan, kind, dev) || is_in(&p->o->j->steps, kind, dev) ||
	       is_in(&p->o->j->earlier, kind, dev);
}

static bool has_address(const struct setup_want *w, const char *dev, const char *text)
{
	unsigned int k;

	for (k = 0; k < w->naddresses; k++)
		if (!strcmp(w->addresses[k].dev, dev) &&
		    (!text || !strcmp(w->addresses[k].text, text)))
			return true;
	return false;
}

/* Whether there is anything to set on @dev. */
static bool is_needed(const struct printing *p, const char *dev, bool port)
{
	unsigned int k;

	if ((port && p->w->mtu) || is_made(p, SETUP_UP, dev) || is_made(p, SETUP_BRIDGE, dev) ||
	    is_made(p, SETUP_MASTER, dev) || has_address(p->w, dev, NULL))
		return true;
	for (k = 0; k < p->w->nroutes; k++)
		if (leaves_by(p, &p->w->routes[k], dev))
			return true;
	for (k = 0; k < p->w->nhosts && !is_l2(p->w); k++)
		if (p->w->hosts[k].nip && !strcmp(p->w->hosts[k].dev, dev))
			return true;
	return false;
}

/* Says of @dev that it has no file. Returns whether it has one. */
static bool has_file(const struct printing *p, const char *dev, bool port)
{
	bool needed = is_needed(p, dev, port);

	if (!needed)
		fprintf(stderr,
			"note: no file for %s: setup changes nothing on it, and what "
			"configures it now has to do so at the next boot, too\n",
			dev);
	return needed;
}

/* Refuses a file for @dev that would take away what something else configures there. */
static int check_rest(const struct printing *p, const char *dev, bool port)
{
	const struct setup_facts *f = p->o->f;
	const char *route = setup_get(f, SETUP_OTHER, dev, "");
	size_t i;

	if (p->w->force || !is_needed(p, dev, port))
		return 0;
	for (i = 0; i < f->n; i++)
		if (f->v[i].kind == SETUP_ADDRESS && !strcmp(f->v[i].dev, dev) &&
		    !has_address(p->w, dev, f->v[i].arg))
			return cli_fail("%s has the address %s, which a file of systemd-networkd "
					"for %s would take away, since only the first file that "
					"matches an interface is used; name it with --address to "
					"have it in the file, or add what --dry-run prints to the "
					"file that configures %s now",
					dev, f->v[i].arg, dev, dev);
	if (!route)
		return 0;
	return cli_fail("there is a route to %s by %s, which a file of systemd-networkd for %s "
			"would take away, since only the first file that matches an interface is "
			"used; name it with --route to have it in the file, or add what --dry-run "
			"prints to the file that configures %s now",
			route, dev, dev, dev);
}

/* Whether files can have all that was asked for. Returns 0, or 1 after a message. */
static int check(const struct printing *p)
{
	bool networkd = !strcmp(p->o->how, "networkd");
	unsigned int k, i;

	for (k = 0; k < p->w->nroutes; k++) {
		const char *dev = way_of(p, &p->w->routes[k]);
		bool ours = is_l2(p->w) && !strcmp(dev, p->w->bridge);

		for (i = 0; i < p->w->nports && !ours; i++)
			ours = !strcmp(dev, p->w->ports[i].dev);
		if (!ours)
			return cli_fail("the route to %s leaves by %s, for which setup has no "
					"file; leave out --route, and put the route into the file "
					"that configures %s",
					p->w->routes[k].net, dev, dev);
	}
	if (networkd && is_l2(p->w) && check_rest(p, p->w->bridge, false))
		return 1;
	for (k = 0; k < p->w->nports && networkd; k++)
		if (check_rest(p, p->w->ports[k].dev, true))
			return 1;
	return 0;
}

/* ---- systemd-networkd ---- */

static void put_routes(struct printing *p, FILE *f, const char *dev)
{
	unsigned int k;

	for (k = 0; k < p->w->nroutes; k++)
		if (leaves_by(p, &p->w->routes[k], dev))
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

	if (!has_file(p, dev, port))
		return;
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
		if (is_made(p, SETUP_BRIDGE, p->w->bridge))
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
		if (leaves_by(p, &p->w->routes[k], dev))
			fprintf(f, "\tup ip route replace %s via %s dev %s\n", p->w->routes[k].net,
				p->w->routes[k].via, dev);
	for (k = 0; k < p->w->nhosts && !is_l2(p->w); k++)
		for (i = 0; i < p->w->hosts[k].nip && !strcmp(p->w->hosts[k].dev, dev); i++)
			fprintf(f, "\tup ip neigh replace %s lladdr %s nud permanent dev %s\n",
				p->w->hosts[k].ip[i], p->w->hosts[k].mac, dev);
}

static void put_bridge(struct printing *p, FILE *f)
{
	const char *bridge = p->w->bridge;
	bool made = is_made(p, SETUP_BRIDGE, bridge);

	if (!has_file(p, bridge, false))
		return;
	fprintf(f, "auto %s\niface %s inet manual\n", bridge, bridge);
	if (made)
		fprintf(f, "\tpre-up ip link add %s type bridge stp_state 0 mcast_snooping 0\n",
			bridge);
	fprintf(f, "\tup ip link set %s up\n", bridge);
	put_up_commands(p, f, bridge);
	if (made)
		fprintf(f, "\tpost-down ip link del %s\n", bridge);
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
	if (is_l2(p->w))
		put_bridge(p, f);
	for (k = 0; k < p->w->nports; k++) {
		const char *dev = p->w->ports[k].dev;

		if (!has_file(p, dev, true))
			continue;
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

int setup_print(const struct setup_output *o)
{
	struct printing p = { .o = o, .w = o->w, .dir = o->dir };

	if (check(&p))
		return 1;
	if (!strcmp(o->how, "networkd"))
		print_networkd(&p);
	else
		print_ifupdown(&p);
	if (!o->dir && fflush(stdout))
		p.rc = cli_fail("standard output: %s", strerror(errno));
	return p.rc;
}
