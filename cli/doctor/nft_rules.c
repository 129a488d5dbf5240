// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See nft_rules.h. */
#include "cli/doctor/nft_rules.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/nl_dump.h"

#define REGISTERS 32
#define DEPTH_MAX 16 /* of jumps, as in the kernel */
#define IP_PROTO  9  /* offset of the protocol in an IPv4 header */
#define UDP_DPORT 2  /* offset of the destination port in a UDP header */

/** enum loaded - what a register holds. */
enum loaded { UNKNOWN, PROTOCOL, PORT };

/** struct reading - a rule that is being read. */
struct reading {
	const struct nft_set *s;
	struct nft_rule *to;
	enum loaded reg[REGISTERS];
};

static void copy_name(char to[NFT_NAME], const struct rtattr *a)
{
	if (a)
		snprintf(to, NFT_NAME, "%.*s", (int)RTA_PAYLOAD(a), (const char *)RTA_DATA(a));
}

static uint32_t be32(const struct rtattr *nest, uint16_t type, uint32_t none)
{
	const struct rtattr *a = nl_attr_in(nest, type, sizeof(uint32_t));
	uint32_t v;

	if (!a)
		return none;
	memcpy(&v, RTA_DATA(a), sizeof(v));
	return ntohl(v);
}

void nft_read_chain(struct nlmsghdr *h, void *ctx)
{
	const struct nfgenmsg *g = NLMSG_DATA(h);
	const struct rtattr *hook = nl_attr(h, sizeof(*g), NFTA_CHAIN_HOOK, 0);
	const struct rtattr *policy = nl_attr(h, sizeof(*g), NFTA_CHAIN_POLICY, 4);
	struct nft_set *s = ctx;
	struct nft_chain *c = &s->chain[s->nchains];
	uint32_t v = htonl(NF_ACCEPT);

	if (s->nchains == NFT_CHAINS) {
		s->cut = true;
		return;
	}
	s->nchains++;
	*c = (struct nft_chain){ .family = g->nfgen_family, .base = hook };
	copy_name(c->table, nl_attr(h, sizeof(*g), NFTA_CHAIN_TABLE, 1));
	copy_name(c->name, nl_attr(h, sizeof(*g), NFTA_CHAIN_NAME, 1));
	c->hook = (uint8_t)be32(hook, NFTA_HOOK_HOOKNUM, 0xff);
	if (policy)
		memcpy(&v, RTA_DATA(policy), sizeof(v));
	c->drops = ntohl(v) == NF_DROP;
}

/* ---- rules ---- */

static void narrow(struct reading *r, enum nft_match match)
{
	if (match < r->to->match)
		r->to->match = match;
}

static enum loaded get_reg(const struct reading *r, uint32_t n)
{
	return n < REGISTERS ? r->reg[n] : UNKNOWN;
}

static void set_reg(struct reading *r, uint32_t n, enum loaded what)
{
	if (n < REGISTERS)
		r->reg[n] = what;
}

/* How the range from @low to @high compares with @v under @op. */
static enum nft_match compare(uint32_t op, uint32_t low, uint32_t high, uint32_t v)
{
	bool all, none;

	switch (op) {
	case NFT_CMP_EQ:
		all = low == v && high == v;
		none = v < low || v > high;
		break;
	case NFT_CMP_NEQ:
		all = v < low || v > high;
		none = low == v && high == v;
		break;
	case NFT_CMP_LT:
		all = high < v;
		none = low >= v;
		break;
	case NFT_CMP_LTE:
		all = high <= v;
		none = low > v;
		break;
	case NFT_CMP_GT:
		all = low > v;
		none = high <= v;
		break;
	case NFT_CMP_GTE:
		all = low >= v;
		none = high < v;
		break;
	default:
		all = none = false;
	}
	return all ? NFT_YES : none ? NFT_NO : NFT_PERHAPS;
}

/* The number in a register's data; big endian, of one, two or four bytes. */
static bool value_of(const struct rtattr *data, uint32_t *v)
{
	const struct rtattr *a = nl_attr_in(data, NFTA_DATA_VALUE, 1);
	const uint8_t *b = a ? RTA_DATA(a) : NULL;

	if (!a || RTA_PAYLOAD(a) > 2)
		return false;
	*v = RTA_PAYLOAD(a) == 1 ? b[0] : (uint32_t)b[0] << 8 | b[1];
	return true;
}

static void read_cmp(struct reading *r, const struct rtattr *data)
{
	enum loaded what = get_reg(r, be32(data, NFTA_CMP_SREG, REGISTERS));
	uint32_t op = be32(data, NFTA_CMP_OP, UINT32_MAX), v;

	if (what == UNKNOWN || !value_of(nl_attr_in(data, NFTA_CMP_DATA, 0), &v))
		narrow(r, NFT_PERHAPS);
	else if (what == PROTOCOL)
		narrow(r, compare(op, IPPROTO_UDP, IPPROTO_UDP, v));
	else
		narrow(r, compare(op, r->s->first, r->s->last, v));
}

/* nft writes a range that is not negated as two comparisons. */
static void read_range(struct reading *r, const struct rtattr *data)
{
	enum loaded what = get_reg(r, be32(data, NFTA_RANGE_SREG, REGISTERS));
	bool negated = be32(data, NFTA_RANGE_OP, NFT_RANGE_EQ) == NFT_RANGE_NEQ;
	enum nft_match above, below, in;
	uint32_t from, to;

	if (what != PORT || !value_of(nl_attr_in(data, NFTA_RANGE_FROM_DATA, 0), &from) ||
	    !value_of(nl_attr_in(data, NFTA_RANGE_TO_DATA, 0), &to)) {
		narrow(r, NFT_PERHAPS);
		return;
	}
	above = compare(NFT_CMP_GTE, r->s->first, r->s->last, from);
	below = compare(NFT_CMP_LTE, r->s->first, r->s->last, to);
	in = above < below ? above : below;
	narrow(r, !negated ? in : in == NFT_YES ? NFT_NO : in == NFT_NO ? NFT_YES : in);
}

static void read_meta(struct reading *r, const struct rtattr *data)
{
	uint32_t key = be32(data, NFTA_META_KEY, UINT32_MAX);

	set_reg(r, be32(data, NFTA_META_DREG, REGISTERS),
		key == NFT_META_L4PROTO ? PROTOCOL : UNKNOWN);
}

static void read_payload(struct reading *r, const struct rtattr *data)
{
	uint32_t base = be32(data, NFTA_PAYLOAD_BASE, UINT32_MAX);
	uint32_t offset = be32(data, NFTA_PAYLOAD_OFFSET, UINT32_MAX);
	uint32_t len = be32(data, NFTA_PAYLOAD_LEN, 0);
	enum loaded what = UNKNOWN;

	if (base == NFT_PAYLOAD_TRANSPORT_HEADER && offset == UDP_DPORT && len == 2)
		what = PORT;
	else if (base == NFT_PAYLOAD_NETWORK_HEADER && offset == IP_PROTO && len == 1 &&
		 r->to->family == NFPROTO_IPV4)
		what = PROTOCOL;
	set_reg(r, be32(data, NFTA_PAYLOAD_DREG, REGISTERS), what);
}

static void read_verdict(struct reading *r, const struct rtattr *data)
{
	const struct rtattr *v =
		nl_attr_in(nl_attr_in(data, NFTA_IMMEDIATE_DATA, 0), NFTA_DATA_VERDICT, 0);
	uint32_t code = be32(v, NFTA_VERDICT_CODE, UINT32_MAX);

	if (!v) /* data for a register, not a verdict */
		return;
	if (code == NF_ACCEPT) {
		r->to->fate = NFT_ACCEPTED;
	} else if (code == NF_DROP) {
		r->to->fate = NFT_DROPPED;
	} else if (code == (uint32_t)NFT_JUMP || code == (uint32_t)NFT_GOTO) {
		r->to->fate = NFT_JUMPS;
		copy_name(r->to->to, nl_attr_in(v, NFTA_VERDICT_CHAIN, 1));
	}
}

static void read_target(struct reading *r, const struct rtattr *data)
{
	char name[NFT_NAME] = "";

	copy_name(name, nl_attr_in(data, NFTA_TARGET_NAME, 1));
	if (!strcmp(name, "REJECT"))
		r->to->fate = NFT_DROPPED;
}

static void read_expression(struct reading *r, const struct rtattr *e)
{
	const struct rtattr *data = nl_attr_in(e, NFTA_EXPR_DATA, 0);
	char name[NFT_NAME] = "";

	copy_name(name, nl_attr_in(e, NFTA_EXPR_NAME, 1));
	if (!strcmp(name, "cmp"))
		read_cmp(r, data);
	else if (!strcmp(name, "range"))
		read_range(r, data);
	else if (!strcmp(name, "meta"))
		read_meta(r, data);
	else if (!strcmp(name, "payload"))
		read_payload(r, data);
	else if (!strcmp(name, "immediate"))
		read_verdict(r, data);
	else if (!strcmp(name, "reject"))
		r->to->fate = NFT_DROPPED;
	else if (!strcmp(name, "target"))
		read_target(r, data);
	else if (!strcmp(name, "lookup") || !strcmp(name, "match") || !strcmp(name, "limit") ||
		 !strcmp(name, "connlimit") || !strcmp(name, "quota"))
		narrow(r, NFT_PERHAPS);
	else if (strcmp(name, "counter") != 0 && strcmp(name, "log") != 0)
		memset(r->reg, 0,
		       sizeof(r->reg)); /* ct, bitwise, ...: registers hold other things */
}

void nft_read_rule(struct nlmsghdr *h, void *ctx)
{
	const struct nfgenmsg *g = NLMSG_DATA(h);
	const struct rtattr *list = nl_attr(h, sizeof(*g), NFTA_RULE_EXPRESSIONS, 0), *e;
	struct nft_set *s = ctx;
	struct reading r = { .s = s, .to = &s->rule[s->nrules] };
	int len;

	if (s->nrules == NFT_RULES) {
		s->cut = true;
		return;
	}
	s->nrules++;
	*r.to = (struct nft_rule){ .family = g->nfgen_family, .match = NFT_YES };
	copy_name(r.to->table, nl_attr(h, sizeof(*g), NFTA_RULE_TABLE, 1));
	copy_name(r.to->chain, nl_attr(h, sizeof(*g), NFTA_RULE_CHAIN, 1));
	if (!list)
		return;
	len = (int)RTA_PAYLOAD(list);
	for (e = RTA_DATA(list); RTA_OK(e, len); e = RTA_NEXT(e, len))
		read_expression(&r, e);
}

/* ---- fate ---- */

static const struct nft_chain *find_chain(const struct nft_set *s, const struct nft_rule *r)
{
	unsigned int k;

	for (k = 0; k < s->nchains; k++)
		if (s->chain[k].family == r->family && !strcmp(s->chain[k].table, r->table) &&
		    !strcmp(s->chain[k].name, r->to))
			return &s->chain[k];
	return NULL;
}

static bool is_of(const struct nft_rule *r, const struct nft_chain *c)
{
	return r->family == c->family && !strcmp(r->table, c->table) && !strcmp(r->chain, c->name);
}

/*
 * Walks a chain. @perhaps: set if a rule accepts under a condition that is not known. Rules that
 * drop under such a condition are passed over: they are for certain addresses, or invalid packets.
 */
static enum nft_fate walk(const struct nft_set *s, const struct nft_chain *c, unsigned int depth,
			  bool *perhaps)
{
	unsigned int k;

	for (k = 0; k < s->nrules && depth < DEPTH_MAX; k++) {
		const struct nft_rule *r = &s->rule[k];
		const struct nft_chain *to;
		enum nft_fate fate = r->fate;

		if (r->match == NFT_NO || !is_of(r, c))
			continue;
		if (fate == NFT_JUMPS) {
			to = find_chain(s, r);
			fate = to ? walk(s, to, depth + 1, perhaps) : NFT_GOES_ON;
		}
		if (r->match == NFT_YES && (fate == NFT_ACCEPTED || fate == NFT_DROPPED))
			return fate;
		*perhaps |= fate == NFT_ACCEPTED;
	}
	return !c->base ? NFT_GOES_ON : c->drops ? NFT_DROPPED : NFT_ACCEPTED;
}

enum nft_fate nft_walk(const struct nft_set *s, const struct nft_chain *c)
{
	bool perhaps = false;
	enum nft_fate fate = walk(s, c, 0, &perhaps);

	return fate == NFT_DROPPED && perhaps ? NFT_UNSURE : fate;
}
