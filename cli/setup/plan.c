// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See plan.h. Each step is applied to the facts when it is found, so a later wish sees what an
 * earlier one has changed, and no step is found twice. Example: an l2 switch with the ports eth0
 * and eth1, of which eth0 is up already and in br0, which is down, comes to
 *
 *	eth1 up, eth1 in br0, br0 up, the file
 */
#include "cli/setup/plan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ip.h"

#define V4_FORWARDING "net/ipv4/conf/%s/forwarding"
#define V6_ALL        "net/ipv6/conf/all/forwarding"

/** struct planner - the work in progress. */
struct planner {
	struct setup_want *w;
	struct setup_facts *f;
	struct setup_steps *to;
	struct bl_err *err;
};

void setup_want_free(struct setup_want *w)
{
	free(w->ports);
	free(w->hosts);
	free(w->addresses);
	free(w->routes);
	free(w->controllers);
}

void setup_path(const struct setup_want *w, char *path, size_t size)
{
	snprintf(path, size, "%s/%s.yaml", w->dir, w->file);
}

/* Makes a step of what is not so yet. */
static void wish(struct planner *p, enum setup_kind kind, const char *dev, const char *arg,
		 const char *value)
{
	const char *now = setup_get(p->f, kind, dev, arg);

	if (setup_same(now, value))
		return;
	setup_push(p->to, kind, dev, arg, now, value);
	setup_set(p->f, kind, dev, arg, value);
}

/*
 * Notes that something is so before any step, and that undoing must neither change it nor take it
 * for somebody's later work.
 */
static void keep(struct planner *p, enum setup_kind kind, const char *dev, const char *arg)
{
	const char *now = setup_get(p->f, kind, dev, arg);

	if (now && !setup_find(p->to, kind, dev, arg))
		setup_push(p->to, kind, dev, arg, now, now);
}

static void keep_all(struct planner *p)
{
	unsigned int k;
	size_t i;

	for (k = 0; k < p->w->nports; k++) {
		const char *dev = p->w->ports[k].dev;

		keep(p, SETUP_MASTER, dev, "");
		for (i = 0; i < p->f->n; i++)
			if (p->f->v[i].kind == SETUP_ADDRESS && !strcmp(p->f->v[i].dev, dev))
				keep(p, SETUP_ADDRESS, dev, p->f->v[i].arg);
	}
}

/* ---- addresses ---- */

/* Splits ADDRESS/LENGTH, or ADDRESS alone. Returns the family, or 0. */
static int split(const char *text, uint8_t ip[16], unsigned int *len)
{
	char address[SETUP_TEXT], *slash;
	int family;

	snprintf(address, sizeof(address), "%s", text);
	slash = strchr(address, '/');
	if (slash)
		*slash++ = '\0';
	family = strchr(address, ':') ? AF_INET6 : AF_INET;
	*len = slash ? (unsigned int)atoi(slash) : family == AF_INET ? 32 : 128;
	return inet_pton(family, address, ip) == 1 ? family : 0;
}

static bool in_net(const uint8_t *a, const uint8_t *b, unsigned int len)
{
	unsigned int whole = len / 8, rest = len % 8;

	return !memcmp(a, b, whole) && (!rest || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

/* The interface by which @ip is reached without a router: the longest prefix wins. NULL: none. */
static const char *on_link(const struct setup_facts *f, const char *ip)
{
	uint8_t want[16], have[16];
	unsigned int len, best = 0;
	const char *dev = NULL;
	int family = split(ip, want, &len);
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->v[i].kind == SETUP_ADDRESS && split(f->v[i].arg, have, &len) == family &&
		    in_net(want, have, len) && len >= best) {
			best = len;
			dev = f->v[i].dev;
		}
	return dev;
}

/* The interface that has the address @ip, of whatever length; NULL: none. */
static const char *owner(const struct setup_facts *f, const char *ip)
{
	size_t i, n = strcspn(ip, "/");

	for (i = 0; i < f->n; i++)
		if (f->v[i].kind == SETUP_ADDRESS && !strncmp(f->v[i].arg, ip, n) &&
		    (f->v[i].arg[n] == '/' || !f->v[i].arg[n]))
			return f->v[i].dev;
	return NULL;
}

static int plan_addresses(struct planner *p)
{
	bool l2 = p->w->role == BL_ROLE_SWITCH && p->w->forward == BL_FWD_L2;
	unsigned int k;

	for (k = 0; k < p->w->naddresses; k++) {
		const struct setup_address *a = &p->w->addresses[k];
		const char *has = owner(p->f, a->text);

		if (l2 && strcmp(a->dev, p->w->bridge) != 0)
			return bl_fail(p->err, EINVAL,
				       "--address %s=%s: only the bridge of an l2 switch has "
				       "addresses; give --address %s=%s, or leave it out",
				       a->dev, a->text, p->w->bridge, a->text);

		if (has && strcmp(has, a->dev) != 0)
			return bl_fail(p->err, EBUSY,
				       "%s is an address of %s already; remove it there (`ip "
				       "address del`), or choose another one for %s",
				       a->text, has, a->dev);
		wish(p, SETUP_ADDRESS, a->dev, a->text, "there");
	}
	return 0;
}

static int plan_routes(struct planner *p)
{
	char value[SETUP_ARG];
	unsigned int k;

	for (k = 0; k < p->w->nroutes; k++) {
		const struct setup_route *r = &p->w->routes[k];
		const char *dev = on_link(p->f, r->via);
		const char *now = setup_get(p->f, SETUP_ROUTE, "", r->net);

		if (!dev)
			return bl_fail(p->err, EINVAL,
				       "the router %s of the route to %s is in no subnet of this "
				       "machine; give an interface an address in its subnet "
				       "(--address)",
				       r->via, r->net);
		snprintf(value, sizeof(value), "via %s dev %s", r->via, dev);
		if (now && strcmp(now, value) != 0)
			return bl_fail(p->err, EEXIST,
				       "there is a route to %s %s already; remove it (`ip route "
				       "del %s`), or leave out --route",
				       r->net, now, r->net);
		wish(p, SETUP_ROUTE, "", r->net, value);
	}
	return 0;
}

/* ---- interfaces ---- */

/* Finds what keeps an interface from being a port. */
static int check_port(struct planner *p, const struct setup_port *port)
{
	const char *kind = setup_get(p->f, SETUP_LINK, port->dev, "");
	const char *most = setup_get(p->f, SETUP_MTU_MAX, port->dev, "");
	const char *unfit = setup_get(p->f, SETUP_UNFIT, port->dev, "");
	unsigned int k, n = 0;

	for (k = 0; k < p->w->nports; k++)
		n += !strcmp(p->w->ports[k].dev, port->dev);
	if (n > 1)
		return bl_fail(p->err, EINVAL, "%s is named %u times; name each port once",
			       port->dev, n);
	if (!kind)
		return bl_fail(p->err, ENODEV,
			       "no interface %s in this network namespace; `ip link` lists them",
			       port->dev);
	if (unfit && strcmp(kind, "loopback") != 0)
		return bl_fail(p->err, EOPNOTSUPP, "%s", unfit);
	if (!strcmp(kind, "loopback") || !strcmp(kind, "other") || !strcmp(kind, "bridge"))
		return bl_fail(p->err, EINVAL,
			       "%s is %s; name an Ethernet interface (`ip link` lists them)",
			       port->dev,
			       !strcmp(kind, "other")    ? "not of Ethernet"
			       : !strcmp(kind, "bridge") ? "a bridge"
							 : "the loopback");
	if (p->w->mtu && most && p->w->mtu > (uint32_t)atoi(most))
		return bl_fail(p->err, EINVAL,
			       "%s allows an MTU of at most %s bytes, not %u; give a smaller --mtu",
			       port->dev, most, p->w->mtu);
	return 0;
}

/* Refuses ports of different MTUs: frames that fit into one link would be too long for another. */
static int check_mtu(struct planner *p)
{
	const char *first = setup_get(p->f, SETUP_MTU, p->w->ports[0].dev, "");
	unsigned int k;

	for (k = 1; first && k < p->w->nports && !p->w->mtu; k++) {
		const char *now = setup_get(p->f, SETUP_MTU, p->w->ports[k].dev, "");

		if (now && strcmp(now, first) != 0)
			return bl_fail(p->err, EINVAL,
				       "the MTU of %s is %s and that of %s is %s, but all links of "
				       "a rack need the same; give it with --mtu",
				       p->w->ports[0].dev, first, p->w->ports[k].dev, now);
	}
	return 0;
}

static void plan_links(struct planner *p)
{
	char mtu[16];
	unsigned int k;

	snprintf(mtu, sizeof(mtu), "%u", p->w->mtu);
	for (k = 0; k < p->w->nports; k++) {
		if (p->w->mtu)
			wish(p, SETUP_MTU, p->w->ports[k].dev, "", mtu);
		wish(p, SETUP_UP, p->w->ports[k].dev, "", "up");
	}
}

/*
 * Refuses to make a port of an interface with an address: the address no longer answers there, and
 * whoever is logged in by it is cut off.
 */
static int check_cut(struct planner *p, const char *dev)
{
	const char *master = setup_get(p->f, SETUP_MASTER, dev, "");
	const char *own = *p->w->session ? owner(p->f, p->w->session) : NULL;
	bool session = own && !strcmp(own, dev);
	size_t i;

	if (p->w->force || (master && !strcmp(master, p->w->bridge)))
		return 0;
	for (i = 0; i < p->f->n; i++)
		if (p->f->v[i].kind == SETUP_ADDRESS && !strcmp(p->f->v[i].dev, dev))
			return bl_fail(p->err, EPERM,
				       "%s has the address %s%s, which would not answer any more "
				       "on a port of a bridge; name another port, move the address "
				       "to the bridge, or give --force if you can reach this "
				       "machine by another way",
				       dev, session ? p->w->session : p->f->v[i].arg,
				       session ? ", by which you are logged in" : "");
	return 0;
}

/* Chooses the bridge: the one that was named, that of a port, or br0. */
static int choose_bridge(struct planner *p)
{
	const char *kind;
	unsigned int k;

	for (k = 0; k < p->w->nports; k++) {
		const char *dev = p->w->ports[k].dev;
		const char *master = setup_get(p->f, SETUP_MASTER, dev, "");

		if (master && !*p->w->bridge)
			snprintf(p->w->bridge, sizeof(p->w->bridge), "%s", master);
		if (master && strcmp(master, p->w->bridge) != 0)
			return bl_fail(p->err, EBUSY,
				       "%s is a port of %s, not of %s; take it out (`ip link set "
				       "%s nomaster`), or give --bridge %s for all ports",
				       dev, master, p->w->bridge, dev, master);
	}
	if (!*p->w->bridge)
		snprintf(p->w->bridge, sizeof(p->w->bridge), "br0");
	kind = setup_get(p->f, SETUP_LINK, p->w->bridge, "");
	if (kind && strcmp(kind, "bridge") != 0)
		return bl_fail(p->err, EBUSY,
			       "%s is there and is no bridge; name another one with --bridge",
			       p->w->bridge);
	return 0;
}

static int plan_bridge(struct planner *p)
{
	const char *bridge = p->w->bridge;
	unsigned int k;
	int rc = 0;

	for (k = 0; k < p->w->nports && !rc; k++)
		rc = check_cut(p, p->w->ports[k].dev);
	if (rc)
		return rc;
	wish(p, SETUP_BRIDGE, bridge, "", "bridge");
	for (k = 0; k < p->w->nports; k++)
		wish(p, SETUP_MASTER, p->w->ports[k].dev, "", bridge);
	wish(p, SETUP_UP, bridge, "", "up");
	return 0;
}

/*
 * Forwarding comes before addresses: IPv6 finishes a new address a while after it was added, and if
 * forwarding is set in between, the kernel counts the anycast address of the subnet twice and keeps
 * it when both are taken back (seen on 6.18).
 */
static int plan_forwarding(struct planner *p)
{
	char path[SETUP_ARG];
	unsigned int k;
	bool v6 = false;
	size_t j;

	for (k = 0; k < p->w->nports; k++) {
		const char *dev = p->w->ports[k].dev;
		const char *master = setup_get(p->f, SETUP_MASTER, dev, "");

		if (master)
			return bl_fail(p->err, EBUSY,
				       "%s is a port of %s, so that it does not route; take it out "
				       "(`ip link set %s nomaster`)",
				       dev, master, dev);
		snprintf(path, sizeof(path), V4_FORWARDING, dev);
		wish(p, SETUP_SYSCTL, "", path, "1");
	}
	for (k = 0; k < p->w->naddresses; k++)
		v6 |= !!strchr(p->w->addresses[k].text, ':');
	if (v6 && !setup_same(setup_get(p->f, SETUP_SYSCTL, "", V6_ALL), "1")) {
		/* Setting it for all interfaces, and taking it back, sets it on each. */
		for (j = 0; j < p->f->n; j++)
			if (p->f->v[j].kind == SETUP_SYSCTL && !strcmp(p->f->v[j].value, "1") &&
			    !strncmp(p->f->v[j].arg, "net/ipv6/", 9))
				keep(p, SETUP_SYSCTL, "", p->f->v[j].arg);
		wish(p, SETUP_SYSCTL, "", V6_ALL, "1");
	}
	return 0;
}

static void plan_neighbours(struct planner *p)
{
	unsigned int k, i;

	for (k = 0; k < p->w->nhosts; k++)
		for (i = 0; i < p->w->hosts[k].nip; i++)
			wish(p, SETUP_NEIGHBOUR, p->w->hosts[k].dev, p->w->hosts[k].ip[i],
			     p->w->hosts[k].mac);
}

/* ---- hosts ---- */

static bool is_port(const struct setup_want *w, const char *dev)
{
	unsigned int k;

	for (k = 0; k < w->nports; k++)
		if (!strcmp(w->ports[k].dev, dev))
			return true;
	return false;
}

/* The host before the @k-th with the same Ethernet or IP address; NULL: there is none. */
static const struct setup_host *same_host(const struct setup_want *w, unsigned int k,
					  const char **what)
{
	unsigned int i, a, b;

	for (i = 0; i < k; i++) {
		*what = w->hosts[k].mac;
		if (!strcmp(w->hosts[i].mac, w->hosts[k].mac))
			return &w->hosts[i];
		for (a = 0; a < w->hosts[k].nip; a++)
			for (b = 0; b < w->hosts[i].nip; b++) {
				*what = w->hosts[k].ip[a];
				if (!strcmp(w->hosts[i].ip[b], *what))
					return &w->hosts[i];
			}
	}
	return NULL;
}

static int check_hosts(struct planner *p)
{
	const struct setup_host *other;
	const char *what = "";
	unsigned int k;

	for (k = 0; k < p->w->nhosts; k++) {
		if (!is_port(p->w, p->w->hosts[k].dev))
			return bl_fail(p->err, EINVAL,
				       "--host %s=%s: %s is not among the ports; name it, too",
				       p->w->hosts[k].dev, p->w->hosts[k].mac, p->w->hosts[k].dev);
		other = same_host(p->w, k, &what);
		if (other)
			return bl_fail(p->err, EINVAL,
				       "%s is an address of two hosts, behind %s and behind %s; "
				       "give each host its own",
				       what, other->dev, p->w->hosts[k].dev);
	}
	if (p->w->role == BL_ROLE_SWITCH && p->w->forward == BL_FWD_L2)
		return 0; /* plan_addresses() knows the bridge */
	for (k = 0; k < p->w->naddresses; k++)
		if (!is_port(p->w, p->w->addresses[k].dev))
			return bl_fail(p->err, EINVAL,
				       "--address %s=%s: %s is not among the ports; name it, too",
				       p->w->addresses[k].dev, p->w->addresses[k].text,
				       p->w->addresses[k].dev);
	return 0;
}

/* ---- the file ---- */

static int plan_file(struct planner *p, const char *yaml)
{
	char path[SETUP_ARG];
	const char *now;

	setup_path(p->w, path, sizeof(path));
	now = setup_get(p->f, SETUP_FILE, "", path);
	if (now && strcmp(now, yaml) != 0 && !setup_same(now, p->w->ours) && !p->w->overwrite)
		return bl_fail(p->err, EEXIST,
			       "%s is not as setup wrote it; give --overwrite to replace it "
			       "(--undo puts it back), or another --file",
			       path);
	wish(p, SETUP_DIR, "", p->w->dir, "there");
	wish(p, SETUP_FILE, "", path, yaml);
	return 0;
}

/* Whether nothing but what is so already is in the plan. */
static bool is_idle(const struct setup_steps *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (!setup_is_kept(&s->v[i]))
			return false;
	return true;
}

int setup_plan_ports(struct setup_want *w, struct setup_facts *f, struct bl_err *err)
{
	struct planner p = { .w = w, .f = f, .err = err };
	unsigned int k;
	int rc = 0;

	for (k = 0; k < w->nports && !rc; k++)
		rc = check_port(&p, &w->ports[k]);
	if (!rc && w->role == BL_ROLE_SWITCH && w->forward == BL_FWD_L2)
		rc = choose_bridge(&p);
	return rc;
}

int setup_plan(struct setup_want *w, const char *yaml, struct setup_facts *f,
	       struct setup_steps *steps, struct bl_err *err)
{
	struct planner p = { .w = w, .f = f, .to = steps, .err = err };
	int rc = setup_plan_ports(w, f, err);

	rc = rc ? rc : check_mtu(&p);
	rc = rc ? rc : check_hosts(&p);
	if (rc)
		return rc;
	keep_all(&p);
	plan_links(&p);
	if (w->role == BL_ROLE_SWITCH)
		rc = w->forward == BL_FWD_L2 ? plan_bridge(&p) : plan_forwarding(&p);
	rc = rc ? rc : plan_addresses(&p);
	if (!rc && w->role == BL_ROLE_SWITCH && w->forward == BL_FWD_L3)
		plan_neighbours(&p);
	rc = rc ? rc : plan_routes(&p);
	rc = rc ? rc : plan_file(&p, yaml);
	if (!rc && (steps->failed || f->failed))
		rc = bl_fail(err, ENOMEM, "no memory for the plan");
	if (!rc && is_idle(steps))
		setup_steps_free(steps);
	return rc;
}
