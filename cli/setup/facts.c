// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the facts of a machine; see state.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ip.h"
#include "base/nl_dump.h"
#include "base/nl_neigh.h"
#include "cli/setup/setup.h"
#include "loader/load/lower.h"

#define TRIES 5

/* The text of a file that cannot be read while steps are taken back: somebody has changed it. */
#define UNREADABLE "cannot be read"

/** struct link - what is needed of a link until all links are read. */
struct link {
	int ifindex;
	int master;      /* 0: none */
	int lower;       /* 0: none, or in another network namespace */
	bool has_routes; /* SETUP_OTHER has been found */
	char name[IFNAMSIZ];
};

/** struct reading - a machine that is being read. */
struct reading {
	struct setup_facts *f;
	struct link *links;
	size_t n, room;
	const struct setup_want *w;
	const struct setup_steps *steps; /* may be NULL */
};

static struct link *link_of(const struct reading *r, int ifindex)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (r->links[i].ifindex == ifindex)
			return &r->links[i];
	return NULL;
}

static const char *name_of(const struct reading *r, int ifindex)
{
	const struct link *l = link_of(r, ifindex);

	return l ? l->name : NULL;
}

static void add_number(struct setup_facts *f, enum setup_kind kind, const char *dev, uint32_t v)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", v);
	setup_add(f, kind, dev, "", text);
}

static struct link *new_link(struct reading *r)
{
	struct link *v = r->links;

	if (r->n == r->room) {
		r->room = r->room ? 2 * r->room : 32;
		v = realloc(v, r->room * sizeof(*v));
		if (!v) {
			r->room = r->n;
			r->f->failed = true;
			return NULL;
		}
		r->links = v;
	}
	return &v[r->n++];
}

/* The device of this namespace that one of the kind @kind sends by; 0: none. */
static int lower_of(const struct nlmsghdr *h, const struct rtattr *info, const char *kind)
{
	const struct rtattr *a = nl_attr_in(info, IFLA_INFO_DATA, 0);
	uint32_t lower = 0;

	/* That of a veth is its other end. */
	if (nl_attr(h, sizeof(struct ifinfomsg), IFLA_LINK_NETNSID, 4) || !strcmp(kind, "veth") ||
	    !strcmp(kind, "netkit"))
		return 0;
	a = strcmp(kind, "vxlan") != 0 ? NULL : nl_attr_in(a, IFLA_VXLAN_LINK, sizeof(lower));
	if (a)
		memcpy(&lower, RTA_DATA(a), sizeof(lower));
	return (int)nl_attr_u32(h, sizeof(struct ifinfomsg), IFLA_LINK, lower);
}

static void read_link(struct nlmsghdr *h, void *ctx)
{
	const struct ifinfomsg *i = NLMSG_DATA(h);
	const struct rtattr *name = nl_attr(h, sizeof(*i), IFLA_IFNAME, 2);
	const struct rtattr *info = nl_attr(h, sizeof(*i), IFLA_LINKINFO, 0);
	const struct rtattr *kind = nl_attr_in(info, IFLA_INFO_KIND, 1);
	uint32_t most = nl_attr_u32(h, sizeof(*i), IFLA_MAX_MTU, 0);
	struct reading *r = ctx;
	struct link *l = name ? new_link(r) : NULL;
	char text[32] = "";

	if (!l)
		return;
	snprintf(l->name, sizeof(l->name), "%.*s", (int)RTA_PAYLOAD(name),
		 (const char *)RTA_DATA(name));
	l->ifindex = i->ifi_index;
	l->has_routes = false;
	l->master = (int)nl_attr_u32(h, sizeof(*i), IFLA_MASTER, 0);
	if (i->ifi_type == ARPHRD_LOOPBACK)
		snprintf(text, sizeof(text), "loopback");
	else if (i->ifi_type != ARPHRD_ETHER)
		snprintf(text, sizeof(text), "other");
	else if (kind)
		snprintf(text, sizeof(text), "%.*s", (int)RTA_PAYLOAD(kind),
			 (const char *)RTA_DATA(kind));
	l->lower = lower_of(h, info, text);
	setup_add(r->f, SETUP_LINK, l->name, "", text);
	setup_add(r->f, SETUP_UP, l->name, "", i->ifi_flags & IFF_UP ? "up" : "down");
	add_number(r->f, SETUP_MTU, l->name, nl_attr_u32(h, sizeof(*i), IFLA_MTU, 0));
	if (most)
		add_number(r->f, SETUP_MTU_MAX, l->name, most);
	if (!strcmp(text, "bridge"))
		setup_add(r->f, SETUP_BRIDGE, l->name, "", "bridge");
}

static void read_address(struct nlmsghdr *h, void *ctx)
{
	const struct ifaddrmsg *i = NLMSG_DATA(h);
	const struct rtattr *a = nl_attr(h, sizeof(*i), IFA_LOCAL, 4);
	char ip[INET6_ADDRSTRLEN], text[SETUP_TEXT];
	struct reading *r = ctx;
	const char *dev = name_of(r, (int)i->ifa_index);

	if (!a)
		a = nl_attr(h, sizeof(*i), IFA_ADDRESS, 4);
	if (!a || !dev || (i->ifa_family == AF_INET6 && RTA_PAYLOAD(a) < 16) ||
	    (i->ifa_family == AF_INET6 && i->ifa_scope == RT_SCOPE_LINK) ||
	    !inet_ntop(i->ifa_family, RTA_DATA(a), ip, sizeof(ip)))
		return;
	snprintf(text, sizeof(text), "%s/%u", ip, i->ifa_prefixlen);
	setup_add(r->f, SETUP_ADDRESS, dev, text, "there");
}

/* Whether somebody asks for the route: a router may have a million of others. */
static bool is_asked_for(const struct reading *r, const char *net)
{
	unsigned int k;

	for (k = 0; k < r->w->nroutes; k++)
		if (!strcmp(r->w->routes[k].net, net))
			return true;
	return r->steps && setup_find(r->steps, SETUP_ROUTE, "", net);
}

static void read_route(struct nlmsghdr *h, void *ctx)
{
	const struct rtmsg *m = NLMSG_DATA(h);
	size_t size = m->rtm_family == AF_INET ? 4 : 16;
	const struct rtattr *dst = nl_attr(h, sizeof(*m), RTA_DST, size);
	const struct rtattr *via = nl_attr(h, sizeof(*m), RTA_GATEWAY, size);
	int oif = (int)nl_attr_u32(h, sizeof(*m), RTA_OIF, 0);
	static const uint8_t zero[16];
	char ip[INET6_ADDRSTRLEN], net[SETUP_TEXT], value[SETUP_ARG];
	struct reading *r = ctx;
	struct link *l = link_of(r, oif);
	const char *dev = l ? l->name : NULL;

	if (m->rtm_type != RTN_UNICAST || m->rtm_flags & RTM_F_CLONED ||
	    nl_attr_u32(h, sizeof(*m), RTA_TABLE, m->rtm_table) != RT_TABLE_MAIN ||
	    (m->rtm_family != AF_INET && m->rtm_family != AF_INET6) ||
	    !inet_ntop(m->rtm_family, dst ? RTA_DATA(dst) : zero, ip, sizeof(ip)))
		return;
	snprintf(net, sizeof(net), "%s/%u", ip, m->rtm_dst_len);
	if (!is_asked_for(r, net)) {
		/* Those that come with an address, or from a router's advertisement, come again. */
		if (l && !l->has_routes && m->rtm_protocol != RTPROT_KERNEL &&
		    m->rtm_protocol != RTPROT_RA)
			setup_add(r->f, SETUP_OTHER, dev, "", net);
		if (l && m->rtm_protocol != RTPROT_KERNEL && m->rtm_protocol != RTPROT_RA)
			l->has_routes = true;
		return;
	}
	if (setup_get(r->f, SETUP_ROUTE, "", net))
		return; /* the first one has the least metric */
	if (!dev)
		snprintf(value, sizeof(value), "by several interfaces");
	else if (!via || !inet_ntop(m->rtm_family, RTA_DATA(via), ip, sizeof(ip)))
		snprintf(value, sizeof(value), "dev %s", dev);
	else
		snprintf(value, sizeof(value), "via %s dev %s", ip, dev);
	setup_add(r->f, SETUP_ROUTE, "", net, value);
}

/* Whether the neighbours of @dev matter: it is a port, or a step has made one. */
static bool is_watched(const struct reading *r, const char *dev)
{
	unsigned int k;
	size_t i;

	for (k = 0; k < r->w->nports; k++)
		if (!strcmp(r->w->ports[k].dev, dev))
			return true;
	for (i = 0; r->steps && i < r->steps->n; i++)
		if (r->steps->v[i].kind == SETUP_NEIGHBOUR && !strcmp(r->steps->v[i].dev, dev))
			return true;
	return false;
}

static void read_neighbour(const struct nl_neighbour *n, void *ctx)
{
	const struct reading *r = ctx;
	const char *dev = name_of(r, n->ifindex);
	char ip[INET6_ADDRSTRLEN], mac[SETUP_MAC_TEXT];
	bool v4 = bl_ip_is_v4(n->ip);

	if (!n->permanent || !dev || !is_watched(r, dev) ||
	    !inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? n->ip + 12 : n->ip, ip, sizeof(ip)))
		return;
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", n->mac[0], n->mac[1], n->mac[2],
		 n->mac[3], n->mac[4], n->mac[5]);
	setup_add(r->f, SETUP_NEIGHBOUR, dev, ip, mac);
}

static void read_sysctl(struct setup_facts *f, const char *path)
{
	char full[SETUP_ARG + 16], line[32] = "";
	FILE *file;

	snprintf(full, sizeof(full), "/proc/sys/%s", path);
	file = fopen(full, "re");
	if (file && fgets(line, sizeof(line), file) && !setup_get(f, SETUP_SYSCTL, "", path)) {
		line[strcspn(line, "\n")] = '\0';
		setup_add(f, SETUP_SYSCTL, "", path, line);
	}
	if (file)
		fclose(file);
}

/* IPv6 forwarding is read of all interfaces, because setting it for all changes each. */
static void read_forwarding(const struct setup_want *w, struct reading *r)
{
	char path[SETUP_ARG];
	unsigned int k;
	size_t i;

	for (k = 0; k < w->nports; k++) {
		snprintf(path, sizeof(path), "net/ipv4/conf/%s/forwarding", w->ports[k].dev);
		read_sysctl(r->f, path);
	}
	read_sysctl(r->f, "net/ipv6/conf/all/forwarding");
	read_sysctl(r->f, "net/ipv6/conf/default/forwarding");
	for (i = 0; i < r->n; i++) {
		snprintf(path, sizeof(path), "net/ipv6/conf/%s/forwarding", r->links[i].name);
		read_sysctl(r->f, path);
	}
}

/* Reads to the end of the file. Returns 0 or a positive errno. */
static int read_all(FILE *f, size_t max, char **text, size_t *size)
{
	size_t room = 0;

	*size = 0;
	do {
		char *more = realloc(*text, (room ? 2 * room : 4096) + 1);

		if (!more)
			return ENOMEM;
		*text = more;
		room = room ? 2 * room : 4096;
		*size += fread(*text + *size, 1, room - *size, f);
	} while (*size == room && *size <= max);
	(*text)[*size] = '\0';
	return ferror(f) ? EIO : *size > max ? EFBIG : 0;
}

char *setup_file_text(const char *path, size_t max, size_t *size)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t n;
	int rc;

	if (!f)
		return NULL;
	rc = read_all(f, max, &text, &n);
	fclose(f);
	if (!rc && !size && strlen(text) < n)
		rc = EILSEQ;
	if (size)
		*size = n;
	if (!rc)
		return text;
	free(text);
	errno = rc;
	return NULL;
}

/*
 * @back: steps are taken back, so that a file that cannot be read has been changed by somebody
 * Returns 0 or -errno.
 */
static int read_file(struct setup_facts *f, const char *path, bool back, struct bl_err *err)
{
	char *text;

	if (setup_get(f, SETUP_FILE, "", path))
		return 0;
	text = setup_file_text(path, SETUP_FILE_MAX, NULL);
	if (!text && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (!text && !back)
		return bl_fail(err, errno,
			       "%s is no configuration: %s; move it away, or give another --file",
			       path,
			       errno == EILSEQ  ? "it has a zero byte"
			       : errno == EFBIG ? "it is longer than 4 MiB"
						: strerror(errno));
	setup_add(f, SETUP_FILE, "", path, text ? text : UNREADABLE);
	free(text);
	return 0;
}

static void read_dir(struct setup_facts *f, const char *path)
{
	struct stat st;

	if (!setup_get(f, SETUP_DIR, "", path) && !stat(path, &st) && S_ISDIR(st.st_mode))
		setup_add(f, SETUP_DIR, "", path, "there");
}

static int read_tables(struct nl *nl, struct reading *r)
{
	size_t i;
	int rc = nl_dump(nl, RTM_GETLINK, AF_UNSPEC, RTM_NEWLINK, sizeof(struct ifinfomsg),
			 read_link, r);

	for (i = 0; i < r->n; i++) {
		const struct link *l = &r->links[i];

		if (l->master && name_of(r, l->master))
			setup_add(r->f, SETUP_MASTER, l->name, "", name_of(r, l->master));
		if (l->lower && name_of(r, l->lower))
			setup_add(r->f, SETUP_LOWER, l->name, "", name_of(r, l->lower));
	}
	if (!rc)
		rc = nl_dump(nl, RTM_GETADDR, AF_UNSPEC, RTM_NEWADDR, sizeof(struct ifaddrmsg),
			     read_address, r);
	if (!rc)
		rc = nl_dump(nl, RTM_GETROUTE, AF_UNSPEC, RTM_NEWROUTE, sizeof(struct rtmsg),
			     read_route, r);
	if (!rc)
		rc = nl_neigh_each(nl, 0, read_neighbour, r);
	return rc;
}

/* Whether a node can run on the ports; the loader judges by the same function. */
static void judge_ports(const struct setup_want *w, struct setup_facts *f)
{
	struct bl_lower v;
	struct bl_err err;
	unsigned int k;
	int rc;

	for (k = 0; k < w->nports; k++) {
		const char *dev = w->ports[k].dev;

		/* setup_plan() says it if there is none */
		if (!if_nametoindex(dev) || bl_lower_look((int)if_nametoindex(dev), &v))
			continue;
		rc = bl_lower_judge(&v, w->role, &err);
		if (rc)
			setup_set(f, rc == -EPERM ? SETUP_DOUBT : SETUP_UNFIT, dev, "", err.text);
	}
}

int setup_read(const struct setup_want *w, const struct setup_steps *steps, struct setup_facts *f,
	       struct bl_err *err)
{
	struct reading r = { .f = f, .w = w, .steps = steps };
	char path[SETUP_ARG];
	struct nl nl;
	int rc, tries;
	size_t i;

	*f = (struct setup_facts){ 0 };
	rc = nl_open(&nl);
	if (rc)
		return bl_fail(err, -rc, "netlink: %s", strerror(-rc));
	for (tries = 0; tries < TRIES; tries++) {
		setup_facts_free(f);
		r.n = 0;
		rc = read_tables(&nl, &r);
		if (rc != -EINTR)
			break;
	}
	nl_close(&nl);
	if (!rc)
		read_forwarding(w, &r);
	free(r.links);
	if (rc)
		return bl_fail(err, -rc, "the network settings cannot be read: %s", strerror(-rc));
	if (!steps)
		judge_ports(w, f);
	read_dir(f, w->dir);
	setup_path(w, path, sizeof(path));
	rc = read_file(f, path, steps != NULL, err);
	for (i = 0; steps && i < steps->n && !rc; i++) {
		if (steps->v[i].kind == SETUP_DIR)
			read_dir(f, steps->v[i].arg);
		if (steps->v[i].kind == SETUP_FILE)
			rc = read_file(f, steps->v[i].arg, true, err);
		if (steps->v[i].kind == SETUP_SYSCTL)
			read_sysctl(f, steps->v[i].arg);
	}
	if (!rc && f->failed)
		rc = bl_fail(err, ENOMEM, "no memory for the settings of this machine");
	return rc;
}
