/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests of rtnetlink: see nl.h. Each request waits for its acknowledgement. */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/ethtool.h"
#include "base/nl.h"
#include "base/nl_msg.h"

int nl_open(struct nl *nl)
{
	nl->seq = 0;
	nl->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	return nl->fd < 0 ? -errno : 0;
}

void nl_close(struct nl *nl)
{
	if (nl->fd >= 0)
		close(nl->fd);
	nl->fd = -1;
}

void *nl_begin(union nl_req *r, uint16_t type, uint16_t flags, size_t body)
{
	memset(r, 0, sizeof(*r));
	r->h.nlmsg_type = type;
	r->h.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	r->h.nlmsg_len = (uint32_t)NLMSG_LENGTH(body);
	return NLMSG_DATA(&r->h);
}

struct rtattr *nl_put(union nl_req *r, uint16_t type, const void *data, size_t len)
{
	struct rtattr *a = (struct rtattr *)(r->room + NLMSG_ALIGN(r->h.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(a), data, len);
	r->h.nlmsg_len = (uint32_t)(NLMSG_ALIGN(r->h.nlmsg_len) + RTA_ALIGN(a->rta_len));
	return a;
}

void nl_put_u32(union nl_req *r, uint16_t type, uint32_t v)
{
	nl_put(r, type, &v, sizeof(v));
}

void nl_put_end(union nl_req *r, struct rtattr *a)
{
	a->rta_len = (uint16_t)(r->room + r->h.nlmsg_len - (char *)a);
}

int nl_send(struct nl *nl, union nl_req *r)
{
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
		char more[NL_REQ_ROOM];
	} ans;

	r->h.nlmsg_seq = ++nl->seq;
	if (send(nl->fd, r, r->h.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		ssize_t n = recv(nl->fd, &ans, sizeof(ans), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if ((size_t)n >= sizeof(ans.h) + sizeof(ans.e) && ans.h.nlmsg_type == NLMSG_ERROR &&
		    ans.h.nlmsg_seq == nl->seq)
			return ans.e.error;
	}
}

int nl_veth(struct nl *nl, const struct nl_end *a, const struct nl_end *b, int b_netns,
	    uint32_t mtu)
{
	union nl_req r;
	struct ifinfomsg none = { 0 };
	struct rtattr *info, *data, *peer;

	nl_begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(none));
	nl_put(&r, IFLA_IFNAME, a->name, strlen(a->name) + 1);
	nl_put(&r, IFLA_ADDRESS, a->mac, 6);
	nl_put_u32(&r, IFLA_MTU, mtu);
	info = nl_put(&r, IFLA_LINKINFO, NULL, 0);
	nl_put(&r, IFLA_INFO_KIND, "veth", 5);
	data = nl_put(&r, IFLA_INFO_DATA, NULL, 0);
	peer = nl_put(&r, VETH_INFO_PEER, &none, sizeof(none));
	nl_put(&r, IFLA_IFNAME, b->name, strlen(b->name) + 1);
	nl_put(&r, IFLA_ADDRESS, b->mac, 6);
	nl_put_u32(&r, IFLA_MTU, mtu);
	if (b_netns >= 0)
		nl_put_u32(&r, IFLA_NET_NS_FD, (uint32_t)b_netns);
	nl_put_end(&r, peer);
	nl_put_end(&r, data);
	nl_put_end(&r, info);
	return nl_send(nl, &r);
}

int nl_bridge(struct nl *nl, const char *name)
{
	union nl_req r;
	struct rtattr *info, *data;
	uint8_t off = 0;

	nl_begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg));
	nl_put(&r, IFLA_IFNAME, name, strlen(name) + 1);
	info = nl_put(&r, IFLA_LINKINFO, NULL, 0);
	nl_put(&r, IFLA_INFO_KIND, "bridge", 7);
	data = nl_put(&r, IFLA_INFO_DATA, NULL, 0);
	nl_put_u32(&r, IFLA_BR_STP_STATE, 0);
	nl_put(&r, IFLA_BR_MCAST_SNOOPING, &off, 1);
	nl_put_end(&r, data);
	nl_put_end(&r, info);
	return nl_send(nl, &r);
}

int nl_master(struct nl *nl, unsigned int ifindex, unsigned int master)
{
	union nl_req r;
	struct ifinfomsg *i = nl_begin(&r, RTM_NEWLINK, 0, sizeof(*i));

	i->ifi_index = (int)ifindex;
	nl_put_u32(&r, IFLA_MASTER, master);
	return nl_send(nl, &r);
}

int nl_no_link_local(struct nl *nl, unsigned int ifindex)
{
	union nl_req r;
	struct ifinfomsg *i = nl_begin(&r, RTM_NEWLINK, 0, sizeof(*i));
	struct rtattr *spec, *v6;
	uint8_t none = IN6_ADDR_GEN_MODE_NONE;
	int err;

	i->ifi_index = (int)ifindex;
	spec = nl_put(&r, IFLA_AF_SPEC, NULL, 0);
	v6 = nl_put(&r, AF_INET6, NULL, 0);
	nl_put(&r, IFLA_INET6_ADDR_GEN_MODE, &none, 1);
	nl_put_end(&r, v6);
	nl_put_end(&r, spec);
	err = nl_send(nl, &r);
	return err == -EAFNOSUPPORT ? 0 : err; /* a kernel without IPv6 */
}

int nl_up(struct nl *nl, unsigned int ifindex)
{
	union nl_req r;
	struct ifinfomsg *i = nl_begin(&r, RTM_NEWLINK, 0, sizeof(*i));

	i->ifi_index = (int)ifindex;
	i->ifi_flags = i->ifi_change = IFF_UP;
	return nl_send(nl, &r);
}

int nl_down(struct nl *nl, unsigned int ifindex)
{
	union nl_req r;
	struct ifinfomsg *i = nl_begin(&r, RTM_NEWLINK, 0, sizeof(*i));

	i->ifi_index = (int)ifindex;
	i->ifi_change = IFF_UP;
	return nl_send(nl, &r);
}

int nl_mtu(struct nl *nl, unsigned int ifindex, uint32_t mtu)
{
	union nl_req r;
	struct ifinfomsg *i = nl_begin(&r, RTM_NEWLINK, 0, sizeof(*i));

	i->ifi_index = (int)ifindex;
	nl_put_u32(&r, IFLA_MTU, mtu);
	return nl_send(nl, &r);
}

int nl_del(struct nl *nl, unsigned int ifindex)
{
	union nl_req r;
	struct ifinfomsg *i = nl_begin(&r, RTM_DELLINK, 0, sizeof(*i));

	i->ifi_index = (int)ifindex;
	return nl_send(nl, &r);
}

int nl_station(struct nl *nl, unsigned int ifindex, const uint8_t mac[6], bool on)
{
	union nl_req r;
	struct ndmsg *n = nl_begin(&r, on ? RTM_NEWNEIGH : RTM_DELNEIGH,
				   on ? NLM_F_CREATE | NLM_F_EXCL : 0, sizeof(*n));
	int err;

	n->ndm_family = AF_BRIDGE;
	n->ndm_ifindex = (int)ifindex;
	n->ndm_flags = NTF_SELF;
	n->ndm_state = NUD_PERMANENT;
	nl_put(&r, NDA_LLADDR, mac, 6);
	err = nl_send(nl, &r);
	return (on && err == -EEXIST) || (!on && err == -ENOENT) ? 0 : err;
}

static size_t addr_len(int family)
{
	return family == AF_INET ? 4 : 16;
}

int nl_addr(struct nl *nl, unsigned int ifindex, int family, const uint8_t *addr, uint8_t plen)
{
	union nl_req r;
	struct ifaddrmsg *i = nl_begin(&r, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*i));

	i->ifa_family = (uint8_t)family;
	i->ifa_prefixlen = plen;
	i->ifa_index = ifindex;
	if (family == AF_INET6)
		i->ifa_flags = IFA_F_NODAD;
	nl_put(&r, IFA_LOCAL, addr, addr_len(family));
	nl_put(&r, IFA_ADDRESS, addr, addr_len(family));
	return nl_send(nl, &r);
}

int nl_addr_del(struct nl *nl, unsigned int ifindex, int family, const uint8_t *addr, uint8_t plen)
{
	union nl_req r;
	struct ifaddrmsg *i = nl_begin(&r, RTM_DELADDR, 0, sizeof(*i));

	i->ifa_family = (uint8_t)family;
	i->ifa_prefixlen = plen;
	i->ifa_index = ifindex;
	nl_put(&r, IFA_LOCAL, addr, addr_len(family));
	return nl_send(nl, &r);
}

int nl_route_via(struct nl *nl, bool add, int family, const uint8_t *dst, uint8_t plen,
		 const struct nl_hop *hop)
{
	union nl_req r;
	struct rtmsg *m = nl_begin(&r, add ? RTM_NEWROUTE : RTM_DELROUTE,
				   add ? NLM_F_CREATE | NLM_F_EXCL : 0, sizeof(*m));

	m->rtm_family = (uint8_t)family;
	m->rtm_dst_len = plen;
	m->rtm_table = RT_TABLE_MAIN;
	m->rtm_protocol = RTPROT_STATIC;
	m->rtm_type = RTN_UNICAST;
	m->rtm_scope = add ? RT_SCOPE_UNIVERSE : RT_SCOPE_NOWHERE; /* NOWHERE: of any scope */
	if (plen)
		nl_put(&r, RTA_DST, dst, addr_len(family));
	nl_put_u32(&r, RTA_OIF, hop->ifindex);
	nl_put(&r, RTA_GATEWAY, hop->via, addr_len(family));
	return nl_send(nl, &r);
}

int nl_route(struct nl *nl, int family, const uint8_t *dst, uint8_t plen, const struct nl_hop *hops,
	     unsigned int nhops)
{
	union nl_req r;
	struct rtmsg *m = nl_begin(&r, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*m));
	struct rtattr *mp;
	unsigned int i;

	m->rtm_family = (uint8_t)family;
	m->rtm_dst_len = plen;
	m->rtm_table = RT_TABLE_MAIN;
	m->rtm_protocol = RTPROT_STATIC;
	m->rtm_type = RTN_UNICAST;
	m->rtm_scope = hops[0].via ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
	if (plen)
		nl_put(&r, RTA_DST, dst, addr_len(family));
	if (nhops == 1) {
		nl_put_u32(&r, RTA_OIF, hops[0].ifindex);
		if (hops[0].via) {
			m->rtm_flags = RTNH_F_ONLINK;
			nl_put(&r, RTA_GATEWAY, hops[0].via, addr_len(family));
		}
		return nl_send(nl, &r);
	}
	mp = nl_put(&r, RTA_MULTIPATH, NULL, 0);
	for (i = 0; i < nhops; i++) {
		struct rtnexthop *nh = (struct rtnexthop *)(r.room + NLMSG_ALIGN(r.h.nlmsg_len));

		r.h.nlmsg_len = (uint32_t)(NLMSG_ALIGN(r.h.nlmsg_len) + sizeof(*nh));
		nh->rtnh_ifindex = (int)hops[i].ifindex;
		nh->rtnh_flags = hops[i].via ? RTNH_F_ONLINK : 0;
		if (hops[i].via)
			nl_put(&r, RTA_GATEWAY, hops[i].via, addr_len(family));
		nh->rtnh_len = (uint16_t)(r.room + r.h.nlmsg_len - (char *)nh);
	}
	nl_put_end(&r, mp);
	return nl_send(nl, &r);
}

int nl_neigh(struct nl *nl, unsigned int ifindex, int family, const uint8_t *addr,
	     const uint8_t mac[6])
{
	union nl_req r;
	struct ndmsg *n = nl_begin(&r, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*n));

	n->ndm_family = (uint8_t)family;
	n->ndm_ifindex = (int)ifindex;
	n->ndm_state = NUD_PERMANENT;
	nl_put(&r, NDA_DST, addr, addr_len(family));
	nl_put(&r, NDA_LLADDR, mac, 6);
	return nl_send(nl, &r);
}

int nl_neigh_del(struct nl *nl, unsigned int ifindex, int family, const uint8_t *addr)
{
	union nl_req r;
	struct ndmsg *n = nl_begin(&r, RTM_DELNEIGH, 0, sizeof(*n));

	n->ndm_family = (uint8_t)family;
	n->ndm_ifindex = (int)ifindex;
	nl_put(&r, NDA_DST, addr, addr_len(family));
	return nl_send(nl, &r);
}

/*
 * Sets each feature to @to. @cmds: ETHTOOL_G* and ETHTOOL_S* of each. A feature that is set already
 * is left alone, since a veth with XDP on it refuses to have an offload turned off once more
 * (EOPNOTSUPP).
 */
static int ethtool_set(const char *ifname, const uint32_t (*cmds)[2], size_t n, uint32_t to)
{
	struct ethtool_value v;
	struct ifreq ifr = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	size_t i;

	if (fd < 0)
		return -errno;
	strncpy(ifr.ifr_name, ifname, IFNAMSIZ - 1);
	ifr.ifr_data = (void *)&v;
	for (i = 0; !err && i < n; i++) {
		v.cmd = cmds[i][0];
		if (!ioctl(fd, SIOCETHTOOL, &ifr) && v.data == to)
			continue;
		v.cmd = cmds[i][1];
		v.data = to;
		if (ioctl(fd, SIOCETHTOOL, &ifr) < 0)
			err = -errno;
	}
	close(fd);
	return err;
}

int nl_plain(const char *ifname)
{
	/* without checksum offload there is no TSO either */
	static const uint32_t cmds[][2] = { { ETHTOOL_GTXCSUM, ETHTOOL_STXCSUM },
					    { ETHTOOL_GTSO, ETHTOOL_STSO },
					    { ETHTOOL_GGSO, ETHTOOL_SGSO } };
	static const char *const tags[] = { ET_FEATURE_TX_VLAN, ET_FEATURE_TX_STAG, ET_FEATURE_VLAN,
					    ET_FEATURE_STAG };
	int err = ethtool_set(ifname, cmds, sizeof(cmds) / sizeof(cmds[0]), 0);
	unsigned int i;

	for (i = 0; !err && i < sizeof(tags) / sizeof(tags[0]); i++)
		if (et_feature(ifname, tags[i]) == 1)
			err = et_feature_set(ifname, tags[i], false);
	return err;
}

int nl_gro(const char *ifname)
{
	static const uint32_t cmd[][2] = { { ETHTOOL_GGRO, ETHTOOL_SGRO } };

	return ethtool_set(ifname, cmd, 1, 1);
}
