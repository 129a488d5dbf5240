// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds the hosts behind the ports of a switch in what its kernel has learnt: Ethernet addresses
 * from the tables of bridges (l2), and IP addresses, with Ethernet addresses, from the neighbours
 * of ports (l3) and of the bridge. Only a host that has sent something is known.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <stdlib.h>
#include <string.h>

#include "base/ip.h"
#include "base/nl_dump.h"
#include "base/nl_neigh.h"
#include "cli/setup/setup.h"

/** struct learning - what is found. */
struct learning {
	struct setup_want *w;
	const struct setup_port
		*port;      /* whose neighbours are being read; NULL: those of a bridge */
	unsigned int given; /* the first @given hosts of @w were on the command line */
	bool failed;        /* no memory */
};

static void mac_text(const uint8_t mac[6], char to[SETUP_MAC_TEXT])
{
	snprintf(to, SETUP_MAC_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		 mac[3], mac[4], mac[5]);
}

/*
 * The host with that Ethernet address: one that was given, wherever it is, or one that was learnt
 * behind @dev, since two links of a router may have the same address. @dev NULL: behind any port.
 */
static struct setup_host *find_host(const struct learning *l, const char *dev, const char *mac)
{
	unsigned int k;

	for (k = 0; k < l->w->nhosts; k++)
		if (!strcmp(l->w->hosts[k].mac, mac) &&
		    (k < l->given || !dev || !strcmp(l->w->hosts[k].dev, dev)))
			return &l->w->hosts[k];
	return NULL;
}

static struct setup_host *add_host(struct learning *l, const char *dev, const char *mac)
{
	struct setup_host *v = realloc(l->w->hosts, (l->w->nhosts + 1) * sizeof(*v));

	if (!v) {
		l->failed = true;
		return NULL;
	}
	l->w->hosts = v;
	v += l->w->nhosts++;
	*v = (struct setup_host){ 0 };
	snprintf(v->dev, sizeof(v->dev), "%s", dev);
	snprintf(v->mac, sizeof(v->mac), "%s", mac);
	return v;
}

static void learn_mac(struct nlmsghdr *h, void *ctx)
{
	const struct ndmsg *m = NLMSG_DATA(h);
	const struct rtattr *a = nl_attr(h, sizeof(*m), NDA_LLADDR, 6);
	struct learning *l = ctx;
	char mac[SETUP_MAC_TEXT];
	unsigned int k;

	/* permanent: the addresses of the ports themselves. Group addresses are no hosts. */
	if (!a || m->ndm_family != AF_BRIDGE || m->ndm_state & NUD_PERMANENT ||
	    m->ndm_flags & NTF_SELF || ((const uint8_t *)RTA_DATA(a))[0] & 1)
		return;
	mac_text(RTA_DATA(a), mac);
	for (k = 0; k < l->w->nports; k++)
		if ((int)if_nametoindex(l->w->ports[k].dev) == m->ndm_ifindex &&
		    !find_host(l, l->w->ports[k].dev, mac))
			add_host(l, l->w->ports[k].dev, mac);
}

static void learn_ip(const struct nl_neighbour *n, void *ctx)
{
	struct learning *l = ctx;
	bool v4 = bl_ip_is_v4(n->ip);
	char mac[SETUP_MAC_TEXT];
	struct setup_host *h;

	if (!n->known || (!v4 && n->ip[0] == 0xfe && (n->ip[1] & 0xc0) == 0x80))
		return;
	mac_text(n->mac, mac);
	h = find_host(l, l->port ? l->port->dev : NULL, mac);
	if (!h && l->port)
		h = add_host(l, l->port->dev, mac);
	if (!h || h - l->w->hosts < l->given)
		return;
	if (h->nip == SETUP_HOST_IPS)
		h->ncut++;
	else if (inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? n->ip + 12 : n->ip, h->ip[h->nip],
			   INET6_ADDRSTRLEN))
		h->nip++;
}

int setup_learn(struct setup_want *w, struct bl_err *err)
{
	struct learning l = { .w = w, .given = w->nhosts };
	unsigned int k;
	struct nl nl;
	int rc = nl_open(&nl);

	if (rc)
		return bl_fail(err, -rc, "netlink: %s", strerror(-rc));
	if (w->forward == BL_FWD_L2) {
		rc = nl_dump(&nl, RTM_GETNEIGH, AF_BRIDGE, RTM_NEWNEIGH, sizeof(struct ndmsg),
			     learn_mac, &l);
		if (!rc && if_nametoindex(w->bridge))
			rc = nl_neigh_each(&nl, (int)if_nametoindex(w->bridge), learn_ip, &l);
	}
	for (k = 0; k < w->nports && !rc && w->forward == BL_FWD_L3; k++) {
		l.port = &w->ports[k];
		if (l.port->role == BL_PORT_HOST && if_nametoindex(l.port->dev))
			rc = nl_neigh_each(&nl, (int)if_nametoindex(l.port->dev), learn_ip, &l);
	}
	nl_close(&nl);
	if (l.failed)
		rc = -ENOMEM;
	return rc ? bl_fail(err, -rc, "the neighbours cannot be read: %s", strerror(-rc))
		  : (int)(w->nhosts - l.given);
}
