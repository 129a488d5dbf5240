// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The doctor's look at the firewall of a host. What arrives for barline never reaches the input
 * hook, since XDP takes it before; but what processes send goes through the hooks output,
 * postrouting and, of the devices that it leaves by, egress, as any other UDP. A chain that drops
 * UDP to barline's ports there is a failure, one that may drop it a warning; at the input only a
 * warning, and only if it surely drops. Of IPv4 and IPv6 only what the host has an address of
 * counts: many machines drop all IPv6 on purpose.
 */
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/iface.h"
#include "base/nl_dump.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/doctor/nft_rules.h"
#include "cli/util/read.h"
#include "maps/host_abi.h"

#define TRIES 5 /* to read rules that change meanwhile */

static const char *family_name(uint8_t family)
{
	return family == NFPROTO_INET     ? "inet"
	       : family == NFPROTO_IPV4   ? "ip"
	       : family == NFPROTO_NETDEV ? "netdev"
					  : "ip6";
}

/* @over: the version of IP that the finding is of; "": all that the chain sees. */
static void report(const struct finder *to, const char *what, const struct nft_set *s,
		   const struct nft_chain *c, enum nft_fate fate, const char *over)
{
	bool in = c->family != NFPROTO_NETDEV && c->hook == NF_INET_LOCAL_IN;
	const char *family = family_name(c->family);
	char cure[240];

	if (fate == NFT_ACCEPTED || (in && fate == NFT_UNSURE))
		return;
	snprintf(cure, sizeof(cure), "`nft insert rule %s %.60s %.60s udp dport %u-%u accept`%s",
		 family, c->table, c->name, s->first, s->last,
		 ", or the same in the tool that makes the rules");
	found_as(to, CHECK_ADDRESS, "firewall",
		 !in && fate == NFT_DROPPED ? FOUND_FAIL : FOUND_WARN, what, cure,
		 fate == NFT_DROPPED ? "the firewall drops what is %s UDP ports %u to %u%s "
				       "(nftables "
				       "chain %s %.60s %.60s)"
				     : "the firewall may drop what is %s UDP ports %u to %u%s: no "
				       "rule "
				       "surely accepts it (nftables chain %s %.60s %.60s)",
		 in ? "received on" : "sent to", s->first, s->last, over, family, c->table,
		 c->name);
}

static int read_kind(struct nl *nl, int ask, int want, void (*fn)(struct nlmsghdr *h, void *ctx),
		     struct nft_set *s)
{
	return nl_dump(nl, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | ask), NFPROTO_UNSPEC,
		       (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | want), sizeof(struct nfgenmsg), fn,
		       s);
}

static int read_once(struct nl *nl, struct nft_set *s)
{
	int rc = read_kind(nl, NFT_MSG_GETTABLE, NFT_MSG_NEWTABLE, nft_read_table, s);

	if (!rc)
		rc = read_kind(nl, NFT_MSG_GETCHAIN, NFT_MSG_NEWCHAIN, nft_read_chain, s);
	if (!rc)
		rc = read_kind(nl, NFT_MSG_GETRULE, NFT_MSG_NEWRULE, nft_read_rule, s);
	return !rc && s->failed ? -ENOMEM : rc;
}

static int read_set(struct nft_set *s)
{
	struct nl nl = { .fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER) };
	int rc = -EINTR, k;

	if (nl.fd < 0)
		return -errno;
	for (k = 0; k < TRIES && rc == -EINTR; k++) {
		nft_forget(s);
		rc = read_once(&nl, s);
	}
	nl_close(&nl);
	return rc;
}

/* Whether the host has an address of this family, on the NIC or on top of it. */
static bool has_family(const struct nft_set *s, int family)
{
	uint8_t addr[16];
	unsigned int k;

	for (k = 0; k < s->ndev; k++)
		if (!bl_iface_addr(s->dev[k], family, addr, NULL))
			return true;
	return false;
}

static bool is_looked_at(const struct nft_chain *c)
{
	if (!c->base || c->family == NFPROTO_NETDEV)
		return c->base;
	return (c->family == NFPROTO_INET || c->family == NFPROTO_IPV4 ||
		c->family == NFPROTO_IPV6) &&
	       (c->hook == NF_INET_LOCAL_IN || c->hook == NF_INET_LOCAL_OUT ||
		c->hook == NF_INET_POST_ROUTING);
}

static void check_chain(const struct finder *to, const char *what, struct nft_set *s,
			struct nft_chain *c, bool v4, bool v6)
{
	enum nft_fate f4, f6;

	v4 &= c->family != NFPROTO_IPV6;
	v6 &= c->family != NFPROTO_IPV4;
	f4 = v4 ? nft_walk(s, c, NFT_IPV4) : NFT_ACCEPTED;
	f6 = v6 ? nft_walk(s, c, NFT_IPV6) : NFT_ACCEPTED;
	if (v4 && v6 && f4 != f6) {
		report(to, what, s, c, f4, " over IPv4");
		report(to, what, s, c, f6, " over IPv6");
	} else {
		report(to, what, s, c, v4 ? f4 : f6, "");
	}
}

void doctor_firewall(const struct finder *to, const struct bl_node_ref *ref, const char *what,
		     const char (*dev)[IFNAMSIZ], unsigned int ndev)
{
	struct nft_set s = { .dev = dev, .ndev = ndev };
	struct bl_host_cfg cfg;
	unsigned int k;
	bool v4, v6;
	int rc;

	if (node_value(ref, BL_MAP_HOST_CFG, 0, &cfg, sizeof(cfg)))
		return;
	s.first = cfg.port_base;
	s.last = (uint16_t)(cfg.port_base + cfg.port_count - 1);
	v4 = has_family(&s, AF_INET);
	v6 = has_family(&s, AF_INET6);
	rc = read_set(&s);
	if (rc && rc != -EOPNOTSUPP && rc != -EPROTONOSUPPORT && rc != -EINVAL)
		found(to, FOUND_WARN, what,
		      rc == -EPERM ? "run the doctor as root" : "run the doctor again",
		      "the firewall cannot be read: %s",
		      rc == -EINTR ? "its rules change all the time" : strerror(-rc));
	for (k = 0; k < s.nchains && !rc; k++)
		if (is_looked_at(&s.chain[k]))
			check_chain(to, what, &s, &s.chain[k], v4 || !v6, v6 || !v4);
	nft_forget(&s);
}
