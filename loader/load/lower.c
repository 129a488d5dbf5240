// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See lower.h.
 *
 * A node needs a link: an interface with one cable, by which everything leaves and on which
 * everything arrives, in the order in which it was sent.
 *
 * 	a NIC, a veth, a tap	is one
 * 	VLAN, macvlan, MACsec,	sends by the device below, whose queueing discipline and queues
 * 	a tunnel		sort its frames, and the filter that picks a queue is forgotten on
 * 				the way. The node belongs on the device below.
 * 	bond, team, bridge	has several links. Each of them is a FIFO, all together are not:
 * 				a barrier that arrives by one vouches for what is under way on
 * 				another. The node belongs on one of the links.
 * 	a port of a bridge	is the NIC below: what the bridge sends by it passes the port's
 * 				egress program and its queue, and the XDP program comes before the
 * 				bridge. The address of the host is on the bridge.
 * 	the active slave of a	is one, too, until the bond takes another one. Then what the host
 * 	bond (active-backup)	sends leaves by a NIC without programs and promises nothing.
 * 	another port of a bond	does not send everything that the host sends
 *
 * Example: eth0 is a port of br0 with 10.0.0.5, and br0.7 is a VLAN device with 10.7.0.5. A host on
 * eth0 is fine. Its endpoints would have an address of br0 or of br0.7, so one of the two has to be
 * chosen: by giving eth0 the address itself.
 */
#include "loader/load/lower.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/load/sysfs.h"

#define DEPTH 4 /* devices on top of each other that an address is looked for on */

/* ---- kinds ---- */

enum kind_class { ITSELF, ABOVE, TUNNEL, BOND, TEAM, BRIDGE, VRF, DEAF, INTERNAL };

static const struct kind {
	const char *kind;
	enum kind_class class;
	const char *noun;
} kinds[] = {
	{ "", ITSELF, "a NIC" },
	{ "veth", ITSELF, "a veth" },
	{ "tun", ITSELF, "a tap device" },
	{ "netkit", ITSELF, "a netkit device" },
	{ "vlan", ABOVE, "a VLAN device" },
	{ "macvlan", ABOVE, "a macvlan device" },
	{ "macvtap", ABOVE, "a macvtap device" },
	{ "ipvlan", ABOVE, "an ipvlan device" },
	{ "ipvtap", ABOVE, "an ipvtap device" },
	{ "macsec", ABOVE, "a MACsec device" },
	{ "vxlan", TUNNEL, "" },
	{ "geneve", TUNNEL, "" },
	{ "gretap", TUNNEL, "" },
	{ "ip6gretap", TUNNEL, "" },
	{ "erspan", TUNNEL, "" },
	{ "ip6erspan", TUNNEL, "" },
	{ "bond", BOND, "bond" },
	{ "team", TEAM, "team" },
	{ "bridge", BRIDGE, "bridge" },
	{ "vrf", VRF, "VRF" },
	{ "dummy", DEAF, "" },
	{ "ifb", DEAF, "" },
	{ "openvswitch", INTERNAL, "" },
};

static enum kind_class class_of(const char *name)
{
	unsigned int k;

	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		if (!strcmp(kinds[k].kind, name))
			return kinds[k].class;
	return ITSELF;
}

/* "a VLAN device", or for a kind that is not in the table "a device of the kind dsa". */
static const char *noun_of(const struct nl_link *l, char *buf, size_t size)
{
	unsigned int k;

	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		if (!strcmp(kinds[k].kind, l->kind) && kinds[k].class == ABOVE)
			return kinds[k].noun;
	snprintf(buf, size, "a device of the kind \"%s\"", l->kind);
	return buf;
}

/* ---- looking ---- */

/* The first device below @ifname that sysfs names; "": none. */
static void below_by_sysfs(const char *ifname, char below[IFNAMSIZ])
{
	int sys = bl_sysfs_open(), dir = -1;
	char path[32 + IFNAMSIZ];
	struct dirent *e;
	DIR *d = NULL;

	below[0] = 0;
	if (sys >= 0) {
		snprintf(path, sizeof(path), "class/net/%s", ifname);
		dir = openat(sys, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(sys);
	}
	if (dir >= 0)
		d = fdopendir(dir);
	while (d && !below[0] && (e = readdir(d)))
		if (!strncmp(e->d_name, "lower_", 6))
			snprintf(below, IFNAMSIZ, "%.15s", e->d_name + 6);
	if (d)
		closedir(d);
	else if (dir >= 0)
		close(dir);
}

int bl_lower_look(int ifindex, struct bl_lower *to)
{
	const struct nl_link *bond = NULL;
	struct nl nl;
	int rc;

	memset(to, 0, sizeof(*to));
	rc = nl_open(&nl);
	if (!rc)
		rc = nl_link_get(&nl, ifindex, &to->dev);
	/* The master may be gone by now. */
	if (!rc && to->dev.master && nl_link_get(&nl, to->dev.master, &to->master))
		to->master = (struct nl_link){ 0 };
	nl_close(&nl);
	if (rc)
		return rc;
	if (!to->dev.lower)
		below_by_sysfs(to->dev.name, to->below);
	else if (!to->dev.lower_away)
		if_indextoname((unsigned int)to->dev.lower, to->below);
	if (!strcmp(to->dev.kind, "bond"))
		bond = &to->dev;
	else if (!strcmp(to->master.kind, "bond"))
		bond = &to->master;
	if (bond && bond->bond_active)
		if_indextoname((unsigned int)bond->bond_active, to->active);
	return 0;
}

/* ---- judging ---- */

#define ACCEPT "or accept that frames are reordered (--accept reordering)"

static int judge_above(const struct bl_lower *v, enum bl_role role, struct bl_err *err)
{
	const char *name = v->dev.name;
	char buf[64];
	const char *noun = noun_of(&v->dev, buf, sizeof(buf));

	if (!v->below[0])
		return bl_fail(err, role == BL_ROLE_HOST ? EPERM : EOPNOTSUPP,
			       "%s is %s, and the device that it sends by is in another network "
			       "namespace; run the node there, or give this namespace a NIC or a "
			       "veth of its own%s",
			       name, noun, role == BL_ROLE_HOST ? ", " ACCEPT : "");
	if (role == BL_ROLE_SWITCH)
		return bl_fail(err, EOPNOTSUPP,
			       "%s is %s and sends by way of %s, past which a switch cannot send; "
			       "list %s as the port (frames with one VLAN tag are ordered there, "
			       "too)",
			       name, noun, v->below, v->below);
	return bl_fail(err, EPERM,
		       "%s is %s and sends by way of %s, whose queues may send frames in another "
		       "order than they get them; run the node on %s (its address may stay on a "
		       "VLAN device), " ACCEPT,
		       name, noun, v->below, v->below);
}

static int judge_bond(const struct bl_lower *v, struct bl_err *err)
{
	const char *name = v->dev.name, *mode = nl_bond_mode_name(v->dev.bond_mode);

	if (v->dev.bond_mode != NL_BOND_BACKUP)
		return bl_fail(err, EOPNOTSUPP,
			       "%s is a bond (%s) and sends by several links, which keep no order "
			       "between them; run the node on a NIC that is in no bond, or make "
			       "%s an active-backup bond and run the node on its active slave",
			       name, mode, name);
	return bl_fail(err, EOPNOTSUPP,
		       "%s is a bond (%s), and each of its slaves is a link of its own; run the "
		       "node on the active one%s%s (the address may stay on %s)",
		       name, mode, v->active[0] ? ", " : "", v->active, name);
}

static int judge_dev(const struct bl_lower *v, enum bl_role role, struct bl_err *err)
{
	const char *name = v->dev.name, *kind = v->dev.kind;
	bool host = role == BL_ROLE_HOST;

	switch (class_of(kind)) {
	case ABOVE:
		return judge_above(v, role, err);
	case TUNNEL:
		return bl_fail(err, host ? EPERM : EOPNOTSUPP,
			       "%s is a tunnel (%s), whose frames may overtake each other on their "
			       "way; run the node on the NIC that the tunnel uses%s",
			       name, kind, host ? ", " ACCEPT : "");
	case BOND:
		if (host)
			return judge_bond(v, err);
		return bl_fail(err, EOPNOTSUPP,
			       "%s is a bond (%s); take its slaves out of it (`ip link set SLAVE "
			       "nomaster`) and list each as a port of the switch",
			       name, nl_bond_mode_name(v->dev.bond_mode));
	case TEAM:
		return bl_fail(err, EOPNOTSUPP,
			       "%s is a team device, and each of its ports is a link of its own; "
			       "%s",
			       name,
			       host ? "run the node on a NIC that is in no team"
				    : "take its ports out of it and list each as a port of the "
				      "switch");
	case BRIDGE:
		if (host)
			return bl_fail(err, EOPNOTSUPP,
				       "%s is a bridge, and each of its ports is a link of its "
				       "own; run the node on the port that leads to the rack (the "
				       "address may stay on %s)",
				       name, name);
		return bl_fail(err, EOPNOTSUPP,
			       "%s is a bridge; list its ports (`ip link show master %s`) as the "
			       "ports of the switch",
			       name, name);
	case VRF:
		return bl_fail(err, EOPNOTSUPP,
			       "%s is a VRF and has no link; run the node on a NIC that is in no "
			       "VRF",
			       name);
	case DEAF:
		return bl_fail(err, EOPNOTSUPP,
			       "%s is a device of the kind %s, which has no other end; run the "
			       "node on a NIC",
			       name, kind);
	case INTERNAL:
		return bl_fail(err, EOPNOTSUPP,
			       "%s is an internal port of Open vSwitch; run the node on the NIC "
			       "that leads to the rack",
			       name);
	case ITSELF:
		break;
	}
	/* Of a kind that is not known, or a NIC that a driver has put on top of others. */
	if (v->below[0] && strcmp(kind, "veth") != 0 && strcmp(kind, "netkit") != 0)
		return judge_above(v, role, err);
	return 0;
}

/* Judges an interface that is a port of @v->master. */
static int judge_port(const struct bl_lower *v, enum bl_role role, struct bl_err *err)
{
	const char *name = v->dev.name, *master = v->master.name;
	enum kind_class class = class_of(v->master.kind);

	if (class == BOND && role == BL_ROLE_HOST && v->master.bond_mode == NL_BOND_BACKUP) {
		if (v->master.bond_active == v->dev.ifindex)
			return 0;
		if (!v->active[0])
			return bl_fail(err, EAGAIN,
				       "%s is a slave of the bond %s, which has no active slave; "
				       "set %s and its slaves up, and run the node on the active "
				       "one",
				       name, master, master);
		return bl_fail(err, EOPNOTSUPP,
			       "%s is a slave of the bond %s, which sends by its active slave %s; "
			       "run the node on %s, or make %s the active one (`ip link set %s "
			       "type bond active_slave %s`)",
			       name, master, v->active, v->active, name, master, name);
	}
	if (class == BOND && role == BL_ROLE_HOST)
		return bl_fail(err, EOPNOTSUPP,
			       "%s is a slave of the bond %s (%s), which sends by others, too; "
			       "take it out (`ip link set %s nomaster`), or make %s an "
			       "active-backup bond",
			       name, master, nl_bond_mode_name(v->master.bond_mode), name, master);
	if (class == BOND || class == TEAM)
		return bl_fail(err, EOPNOTSUPP,
			       "%s is a port of the %s device %s, which sends by others, too; take "
			       "it out (`ip link set %s nomaster`)",
			       name, v->master.kind, master, name);
	if (class == VRF && role == BL_ROLE_HOST)
		return bl_fail(err, EOPNOTSUPP,
			       "%s is in the VRF %s, whose routes the sockets of endpoints do not "
			       "use; take it out (`ip link set %s nomaster`)",
			       name, master, name);
	return 0;
}

int bl_lower_judge(const struct bl_lower *v, enum bl_role role, struct bl_err *err)
{
	int rc;

	/* Kinds come first, since their sentences know more. */
	rc = judge_dev(v, role, err);
	if (!rc && v->dev.type != ARPHRD_ETHER)
		return bl_fail(err, EOPNOTSUPP,
			       "%s%s%s%s carries no Ethernet frames, and beacons are Ethernet "
			       "frames; run the node on the NIC that it sends by",
			       v->dev.name, v->dev.kind[0] ? " (" : "", v->dev.kind,
			       v->dev.kind[0] ? ")" : "");
	return !rc && v->master.ifindex ? judge_port(v, role, err) : rc;
}

int bl_lower_check(const struct bl_iface *i, enum bl_role role, struct bl_err *err)
{
	struct bl_lower v;
	int rc = bl_lower_look(i->ifindex, &v);

	if (rc)
		return bl_fail(err, -rc, "cannot read what kind of device %s is: %s", i->name,
			       strerror(-rc));
	return bl_lower_judge(&v, role, err);
}

/* ---- the address of a host ---- */

/** struct links - all interfaces of a network namespace. */
struct links {
	struct nl_link *v;
	unsigned int n, room;
	bool failed; /* out of memory */
};

static void add_link(const struct nl_link *l, void *ctx)
{
	struct links *a = ctx;
	struct nl_link *v;

	if (a->n == a->room) {
		v = reallocarray(a->v, a->room ? 2 * a->room : 64, sizeof(*v));
		if (!v) {
			a->failed = true;
			return;
		}
		a->v = v;
		a->room = a->room ? 2 * a->room : 64;
	}
	a->v[a->n++] = *l;
}

/* Whether what @up sends leaves by @low, or may. */
static bool is_above(const struct nl_link *up, const struct nl_link *low)
{
	enum kind_class class = class_of(up->kind);

	if (class == BRIDGE || class == BOND)
		return low->master == up->ifindex;
	return !strcmp(up->kind, "vlan") && !up->lower_away && up->lower == low->ifindex;
}

/* Calls @fn for the devices on top of @low, and on top of those. */
static void each_above(const struct links *all, const struct nl_link *low, int depth, nl_link_fn fn,
		       void *ctx)
{
	unsigned int k;

	for (k = 0; k < all->n && depth < DEPTH; k++)
		if (is_above(&all->v[k], low)) {
			fn(&all->v[k], ctx);
			each_above(all, &all->v[k], depth + 1, fn, ctx);
		}
}

int bl_lower_above(int ifindex, nl_link_fn fn, void *ctx)
{
	struct links all = { 0 };
	struct nl nl;
	unsigned int k;
	int rc;

	rc = nl_open(&nl);
	if (!rc)
		rc = nl_link_each(&nl, add_link, &all);
	nl_close(&nl);
	if (!rc && all.failed)
		rc = -ENOMEM;
	for (k = 0; k < all.n && !rc; k++)
		if (all.v[k].ifindex == ifindex)
			each_above(&all, &all.v[k], 0, fn, ctx);
	free(all.v);
	return rc;
}

/** struct choice - the device whose address endpoints get. */
struct choice {
	int family;
	char name[IFNAMSIZ], other[IFNAMSIZ]; /* @other: another one that has an address */
	unsigned int n;                       /* devices that have one */
	uint8_t addr[16];
};

static void choose(const struct nl_link *up, void *ctx)
{
	struct choice *c = ctx;
	uint8_t addr[16];

	if (bl_iface_addr(up->name, c->family, addr, NULL))
		return;
	if (!c->n++) {
		memcpy(c->addr, addr, sizeof(addr));
		memcpy(c->name, up->name, sizeof(c->name));
	} else {
		memcpy(c->other, up->name, sizeof(c->other));
	}
}

int bl_lower_addr(const struct bl_iface *nic, int family, uint8_t addr[16], unsigned int *mtu,
		  struct bl_err *err)
{
	struct choice c = { .family = family };
	struct bl_iface above;
	int rc = bl_iface_addr(nic->name, family, addr, err);

	/* Without an answer of the kernel the NIC has no address, which @err says already. */
	if (rc != -EADDRNOTAVAIL || bl_lower_above(nic->ifindex, choose, &c) || !c.n)
		return rc;
	if (c.n > 1)
		return bl_fail(err, ENOTUNIQ,
			       "%s has no address, and of the devices on top of it both %s and %s "
			       "have one; give %s itself the address that endpoints are to have",
			       nic->name, c.name, c.other, nic->name);
	rc = bl_iface_get(&above, c.name, err);
	if (rc)
		return rc;
	memcpy(addr, c.addr, 16);
	if (above.mtu < *mtu)
		*mtu = above.mtu;
	return 0;
}
