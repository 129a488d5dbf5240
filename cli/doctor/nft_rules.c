// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See nft_rules.h. */
#include "cli/doctor/nft_rules.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nl_dump.h"

#define REGISTERS 32
#define DEPTH_MAX 16 /* of jumps, as in the kernel */
#define IP_PROTO  9  /* offset of the protocol in an IPv4 header */
#define IP6_NEXT  6  /* offset of the next header in an IPv6 header */
#define UDP_DPORT 2  /* offset of the destination port in a UDP header */

#ifndef NFTA_DEVICE_PREFIX /* headers older than Linux 6.16 */
#define NFTA_DEVICE_PREFIX 2
#endif

/* What can become of the packets that enter a chain: a set of these. */
#define ACCEPT   1
#define DROP     2
#define COME_OUT 4 /* they leave the chain without a verdict */

/** enum loaded - what a register holds. */
enum loaded { UNKNOWN, PROTOCOL, PORT, FAMILY, ETHERTYPE };

/** struct reading - a rule that is being read, as packets of version @ip meet it. */
struct reading {
	struct nft_set *s;
	const struct nft_chain *in; /* its chain */
	struct nft_rule *to;
	enum nft_ip ip;
	enum loaded reg[REGISTERS];
};

/* Makes room in @v, whose size is kept at a power of two, for element @n. NULL: no memory. */
static void *grow(struct nft_set *s, void *v, unsigned int n, size_t size)
{
	void *more = n & (n - 1) ? v : reallocarray(v, n ? 2 * (size_t)n : 1, size);

	s->failed |= !more;
	return more;
}

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

void nft_read_table(struct nlmsghdr *h, void *ctx)
{
	const struct nfgenmsg *g = NLMSG_DATA(h);
	const struct rtattr *flags = nl_attr(h, sizeof(*g), NFTA_TABLE_FLAGS, 4);
	struct nft_set *s = ctx;
	struct nft_table *t;
	uint32_t v = 0;

	if (flags)
		memcpy(&v, RTA_DATA(flags), sizeof(v));
	if (!(ntohl(v) & NFT_TABLE_F_DORMANT))
		return;
	t = grow(s, s->dormant, s->ndormant, sizeof(*t));
	if (!t)
		return;
	s->dormant = t;
	t += s->ndormant++;
	*t = (struct nft_table){ .family = g->nfgen_family };
	copy_name(t->name, nl_attr(h, sizeof(*g), NFTA_TABLE_NAME, 1));
}

static bool is_dormant(const struct nft_set *s, const struct nft_chain *c)
{
	unsigned int k;

	for (k = 0; k < s->ndormant; k++)
		if (s->dormant[k].family == c->family && !strcmp(s->dormant[k].name, c->table))
			return true;
	return false;
}

/* Whether a name of a device, or the first part of it (@prefix), is that of one of ours. */
static bool is_ours(const struct nft_set *s, const struct rtattr *a, bool prefix)
{
	char name[NFT_NAME] = "";
	unsigned int k;

	copy_name(name, a);
	for (k = 0; k < s->ndev; k++)
		if (prefix ? !strncmp(s->dev[k], name, strlen(name)) : !strcmp(s->dev[k], name))
			return true;
	return false;
}

/* Whether a chain of netdev sees packets that leave by one of our devices. */
static bool is_on_path(const struct nft_set *s, const struct nft_chain *c,
		       const struct rtattr *hook)
{
	const struct rtattr *one = nl_attr_in(hook, NFTA_HOOK_DEV, 1);
	const struct rtattr *list = nl_attr_in(hook, NFTA_HOOK_DEVS, 0), *a;
	bool ours = one && is_ours(s, one, false);
	int len = list ? (int)RTA_PAYLOAD(list) : 0;

	for (a = list ? RTA_DATA(list) : NULL; a && RTA_OK(a, len); a = RTA_NEXT(a, len))
		ours |= is_ours(s, a, (a->rta_type & ~NLA_F_NESTED) == NFTA_DEVICE_PREFIX);
	return ours && c->hook == NF_NETDEV_EGRESS;
}

void nft_read_chain(struct nlmsghdr *h, void *ctx)
{
	const struct nfgenmsg *g = NLMSG_DATA(h);
	const struct rtattr *hook = nl_attr(h, sizeof(*g), NFTA_CHAIN_HOOK, 0);
	const struct rtattr *policy = nl_attr(h, sizeof(*g), NFTA_CHAIN_POLICY, 4);
	struct nft_set *s = ctx;
	struct nft_chain *c = grow(s, s->chain, s->nchains, sizeof(*c));
	uint32_t v = htonl(NF_ACCEPT);

	if (!c)
		return;
	s->chain = c;
	c += s->nchains;
	*c = (struct nft_chain){ .family = g->nfgen_family, .base = hook };
	copy_name(c->table, nl_attr(h, sizeof(*g), NFTA_CHAIN_TABLE, 1));
	copy_name(c->name, nl_attr(h, sizeof(*g), NFTA_CHAIN_NAME, 1));
	if (is_dormant(s, c))
		return;
	s->nchains++;
	c->hook = (uint8_t)be32(hook, NFTA_HOOK_HOOKNUM, 0xff);
	if (c->family == NFPROTO_NETDEV)
		c->base = hook && is_on_path(s, c, hook);
	if (policy)
		memcpy(&v, RTA_DATA(policy), sizeof(v));
	c->drops = ntohl(v) == NF_DROP;
}

/* ---- rules ---- */

static void narrow(struct reading *r, enum nft_match match)
{
	if (match < r->to->match[r->ip])
		r->to->match[r->ip] = match;
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

/* What register contents @what, which is no port, are for the packet. */
static uint32_t fact(const struct reading *r, enum loaded what)
{
	bool v4 = r->ip == NFT_IPV4;

	if (what == PROTOCOL)
		return IPPROTO_UDP;
	return what == FAMILY ? v4 ? NFPROTO_IPV4 : NFPROTO_IPV6 : v4 ? ETH_P_IP : ETH_P_IPV6;
}

static void read_cmp(struct reading *r, const struct rtattr *data)
{
	enum loaded what = get_reg(r, be32(data, NFTA_CMP_SREG, REGISTERS));
	uint32_t op = be32(data, NFTA_CMP_OP, UINT32_MAX), v;

	if (what == UNKNOWN || !value_of(nl_attr_in(data, NFTA_CMP_DATA, 0), &v))
		narrow(r, NFT_PERHAPS);
	else if (what == PORT)
		narrow(r, compare(op, r->s->first, r->s->last, v));
	else
		narrow(r, compare(op, fact(r, what), fact(r, what), v));
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
		key == NFT_META_L4PROTO    ? PROTOCOL
		: key == NFT_META_NFPROTO  ? FAMILY
		: key == NFT_META_PROTOCOL ? ETHERTYPE
					   : UNKNOWN);
}

/*
 * The protocol is read from the header of one version of IP. Where packets of both versions come
 * by, nft compares the version before.
 */
static void read_payload(struct reading *r, const struct rtattr *data)
{
	uint32_t base = be32(data, NFTA_PAYLOAD_BASE, UINT32_MAX);
	uint32_t offset = be32(data, NFTA_PAYLOAD_OFFSET, UINT32_MAX);
	uint32_t len = be32(data, NFTA_PAYLOAD_LEN, 0);
	enum loaded what = UNKNOWN;

	if (base == NFT_PAYLOAD_TRANSPORT_HEADER && offset == UDP_DPORT && len == 2)
		what = PORT;
	else if (base == NFT_PAYLOAD_NETWORK_HEADER && len == 1 &&
		 offset == (r->ip == NFT_IPV4 ? IP_PROTO : IP6_NEXT))
		what = PROTOCOL;
	set_reg(r, be32(data, NFTA_PAYLOAD_DREG, REGISTERS), what);
}

static int compare_chains(const void *a, const void *b)
{
	const struct nft_chain *x = a, *y = b;
	int by = (int)x->family - (int)y->family;

	if (!by)
		by = strcmp(x->table, y->table);
	return by ? by : strcmp(x->name, y->name);
}

/* The chain of @like's family and table, by the name in attribute @name; NULL: none is known. */
static struct nft_chain *find_chain(struct nft_set *s, const struct nft_chain *like,
				    const struct rtattr *name)
{
	struct nft_chain key = { .family = like->family };

	memcpy(key.table, like->table, sizeof(key.table));
	copy_name(key.name, name);
	if (!s->nchains)
		return NULL;
	return bsearch(&key, s->chain, s->nchains, sizeof(key), compare_chains);
}

static void read_verdict(struct reading *r, const struct rtattr *data)
{
	const struct rtattr *v =
		nl_attr_in(nl_attr_in(data, NFTA_IMMEDIATE_DATA, 0), NFTA_DATA_VERDICT, 0);
	uint32_t code = be32(v, NFTA_VERDICT_CODE, UINT32_MAX);
	const struct nft_chain *to;

	if (!v) { /* data for a register, not a verdict */
		set_reg(r, be32(data, NFTA_IMMEDIATE_DREG, REGISTERS), UNKNOWN);
	} else if (code == NF_ACCEPT) {
		r->to->fate = NFT_ACCEPTED;
	} else if (code == NF_DROP) {
		r->to->fate = NFT_DROPPED;
	} else if (code == (uint32_t)NFT_RETURN) {
		r->to->fate = NFT_RETURNS;
	} else if (code == (uint32_t)NFT_JUMP || code == (uint32_t)NFT_GOTO) {
		r->to->fate = code == (uint32_t)NFT_JUMP ? NFT_JUMPS : NFT_LEAVES;
		to = find_chain(r->s, r->in, nl_attr_in(v, NFTA_VERDICT_CHAIN, 1));
		r->to->to = to ? (unsigned int)(to - r->s->chain) + 1 : 0;
	}
}

/*
 * A set narrows the packets to those that are in it. A map of verdicts (vmap) ends with one of
 * them; it may be that the packet is accepted.
 */
static void read_lookup(struct reading *r, const struct rtattr *data)
{
	uint32_t reg = be32(data, NFTA_LOOKUP_DREG, REGISTERS);

	narrow(r, NFT_PERHAPS);
	if (reg == NFT_REG_VERDICT)
		r->to->fate = NFT_ACCEPTED;
	else
		set_reg(r, reg, UNKNOWN);
}

/* A process decides on packets that are queued to it. */
static void read_queue(struct reading *r)
{
	narrow(r, NFT_PERHAPS);
	r->to->fate = NFT_ACCEPTED;
}

static void read_target(struct reading *r, const struct rtattr *data)
{
	char name[NFT_NAME] = "";

	copy_name(name, nl_attr_in(data, NFTA_TARGET_NAME, 1));
	if (!strcmp(name, "REJECT"))
		r->to->fate = NFT_DROPPED;
	else if (!strcmp(name, "NFQUEUE"))
		read_queue(r);
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
	else if (!strcmp(name, "lookup"))
		read_lookup(r, data);
	else if (!strcmp(name, "queue"))
		read_queue(r);
	else if (!strcmp(name, "match") || !strcmp(name, "limit") || !strcmp(name, "connlimit") ||
		 !strcmp(name, "quota") || !strcmp(name, "dynset"))
		narrow(r, NFT_PERHAPS);
	else if (strcmp(name, "counter") != 0 && strcmp(name, "log") != 0)
		memset(r->reg, 0,
		       sizeof(r->reg)); /* ct, bitwise, ...: registers hold other things */
}

static void read_as(struct nft_set *s, const struct nft_chain *in, struct nft_rule *to,
		    const struct rtattr *list, enum nft_ip ip)
{
	struct reading r = { .s = s, .in = in, .to = to, .ip = ip };
	int len = (int)RTA_PAYLOAD(list);
	const struct rtattr *e;

	for (e = RTA_DATA(list); RTA_OK(e, len); e = RTA_NEXT(e, len))
		read_expression(&r, e);
}

void nft_read_rule(struct nlmsghdr *h, void *ctx)
{
	const struct nfgenmsg *g = NLMSG_DATA(h);
	const struct rtattr *list = nl_attr(h, sizeof(*g), NFTA_RULE_EXPRESSIONS, 0);
	struct nft_set *s = ctx;
	struct nft_chain like = { .family = g->nfgen_family }, *c;
	struct nft_rule *r;

	if (!s->sorted && s->nchains)
		qsort(s->chain, s->nchains, sizeof(*s->chain), compare_chains);
	s->sorted = true;
	copy_name(like.table, nl_attr(h, sizeof(*g), NFTA_RULE_TABLE, 1));
	c = find_chain(s, &like, nl_attr(h, sizeof(*g), NFTA_RULE_CHAIN, 1));
	r = c && list ? grow(s, s->rule, s->nrules, sizeof(*r)) : NULL;
	if (!r)
		return;
	s->rule = r;
	r += s->nrules++;
	*r = (struct nft_rule){ .match = { NFT_YES, NFT_YES } };
	read_as(s, c, r, list, NFT_IPV4);
	read_as(s, c, r, list, NFT_IPV6);
	if (c->last)
		s->rule[c->last - 1].next = s->nrules;
	else
		c->first = s->nrules;
	c->last = s->nrules;
}

void nft_forget(struct nft_set *s)
{
	free(s->dormant);
	free(s->chain);
	free(s->rule);
	s->dormant = NULL;
	s->chain = NULL;
	s->rule = NULL;
	s->ndormant = s->nchains = s->nrules = 0;
	s->sorted = s->failed = false;
}

/* ---- fate ---- */

static uint8_t walk(struct nft_set *s, struct nft_chain *c, enum nft_ip ip, unsigned int depth);

/*
 * What becomes of the packets that rule @r takes out of its chain; @stay: cleared if none reaches
 * the next rule. A rule that drops under a condition that is not known is passed over: it is for
 * certain addresses, or invalid packets.
 */
static uint8_t follow(struct nft_set *s, const struct nft_rule *r, enum nft_ip ip,
		      unsigned int depth, bool *stay)
{
	bool stays = r->fate == NFT_GOES_ON;
	uint8_t set = 0;

	if (r->match[ip] == NFT_NO)
		return 0;
	if (r->fate == NFT_ACCEPTED)
		set = ACCEPT;
	else if (r->fate == NFT_DROPPED)
		set = DROP;
	else if (r->fate == NFT_RETURNS)
		set = COME_OUT;
	else if (r->fate == NFT_JUMPS || r->fate == NFT_LEAVES)
		set = r->to ? walk(s, &s->chain[r->to - 1], ip, depth + 1) : COME_OUT;
	if (r->fate == NFT_JUMPS) {
		stays = set & COME_OUT;
		set &= (uint8_t)~COME_OUT;
	}
	if (r->match[ip] == NFT_PERHAPS)
		return set & (uint8_t)~DROP;
	*stay = stays;
	return set;
}

/* What becomes of the packets that enter chain @c. A chain that is being walked is not entered. */
static uint8_t walk(struct nft_set *s, struct nft_chain *c, enum nft_ip ip, unsigned int depth)
{
	uint8_t set = 0;
	bool stay = true;
	unsigned int k;

	if (c->sets[ip] || depth > DEPTH_MAX)
		return c->sets[ip] ? c->sets[ip] : COME_OUT;
	c->sets[ip] = COME_OUT;
	for (k = c->first; k && stay; k = s->rule[k - 1].next)
		set |= follow(s, &s->rule[k - 1], ip, depth, &stay);
	if (stay)
		set |= COME_OUT;
	if (c->base && set & COME_OUT)
		set = (uint8_t)((set & ~COME_OUT) | (c->drops ? DROP : ACCEPT));
	c->sets[ip] = set;
	return set;
}

enum nft_fate nft_walk(struct nft_set *s, struct nft_chain *c, enum nft_ip ip)
{
	uint8_t set = walk(s, c, ip, 0);

	return !(set & DROP) ? NFT_ACCEPTED : set & ACCEPT ? NFT_UNSURE : NFT_DROPPED;
}
