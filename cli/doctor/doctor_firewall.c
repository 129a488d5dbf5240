// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The doctor's look at the firewall of a host. What arrives for barline never reaches the input
 * hook, since XDP takes it before; but what processes send goes through the output hook as any
 * other UDP. A chain that drops UDP to barline's ports at the output is a failure, one that may
 * drop it a warning; at the input only a warning, and only if it surely drops.
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

#include "base/nl_dump.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/doctor/nft_rules.h"
#include "cli/util/read.h"
#include "maps/host_abi.h"

static const char *family_name(uint8_t family)
{
	return family == NFPROTO_INET ? "inet" : family == NFPROTO_IPV4 ? "ip" : "ip6";
}

static void report(const struct finder *to, const char *what, const struct nft_set *s,
		   const struct nft_chain *c, enum nft_fate fate)
{
	bool out = c->hook == NF_INET_LOCAL_OUT;
	const char *family = family_name(c->family);
	char cure[240];

	if (fate == NFT_ACCEPTED || fate == NFT_GOES_ON || (!out && fate == NFT_UNSURE))
		return;
	snprintf(cure, sizeof(cure), "`nft insert rule %s %.40s %.40s udp dport %u-%u accept`%s",
		 family, c->table, c->name, s->first, s->last,
		 ", or the same in the tool that makes the rules");
	found(to, out && fate == NFT_DROPPED ? FOUND_FAIL : FOUND_WARN, what, cure,
	      fate == NFT_DROPPED ? "the firewall drops what is %s UDP ports %u to %u (nftables "
				    "chain %s %s %s)"
				  : "the firewall may drop what is %s UDP ports %u to %u: no rule "
				    "surely accepts "
				    "it (nftables chain %s %s %s)",
	      out ? "sent to" : "received on", s->first, s->last, family, c->table, c->name);
}

static int read_set(struct nft_set *s)
{
	struct nl nl = { .fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER) };
	int rc;

	if (nl.fd < 0)
		return -errno;
	rc = nl_dump(&nl, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN, NFPROTO_UNSPEC,
		     NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN, sizeof(struct nfgenmsg),
		     nft_read_chain, s);
	if (!rc)
		rc = nl_dump(&nl, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE, NFPROTO_UNSPEC,
			     NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE, sizeof(struct nfgenmsg),
			     nft_read_rule, s);
	nl_close(&nl);
	return rc;
}

void doctor_firewall(const struct finder *to, const struct bl_node_ref *ref, const char *what)
{
	struct nft_set *s = calloc(1, sizeof(*s));
	struct bl_host_cfg cfg;
	unsigned int k;
	int rc;

	if (!s || node_value(ref, BL_MAP_HOST_CFG, 0, &cfg, sizeof(cfg))) {
		free(s);
		return;
	}
	s->first = cfg.port_base;
	s->last = (uint16_t)(cfg.port_base + cfg.port_count - 1);
	rc = read_set(s);
	if (rc && rc != -EOPNOTSUPP && rc != -EPROTONOSUPPORT && rc != -EINVAL)
		found(to, FOUND_WARN, what, "run the doctor as root",
		      "the firewall cannot be read: %s", strerror(-rc));
	for (k = 0; k < s->nchains && !rc; k++) {
		const struct nft_chain *c = &s->chain[k];

		if (c->base && (c->hook == NF_INET_LOCAL_IN || c->hook == NF_INET_LOCAL_OUT) &&
		    (c->family == NFPROTO_INET || c->family == NFPROTO_IPV4 ||
		     c->family == NFPROTO_IPV6))
			report(to, what, s, c, nft_walk(s, c));
	}
	free(s);
}
