/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What nftables does with UDP to barline's ports, from the kernel's lists of chains and rules.
 *
 * Each rule is reduced to whether it matches such a packet (yes, no, or it depends on something
 * that is not known here, as an address) and to its verdict. Example:
 *
 *	udp dport 61696-61951 accept	yes, accept
 *	tcp dport 22 accept		no
 *	ct state established accept	perhaps, accept
 *	counter reject			yes, drop
 *
 * Rules of iptables are among them where iptables is that of nftables. Older tables (iptables-
 * legacy) are not.
 */
#ifndef BARLINE_CLI_DOCTOR_NFT_RULES_H
#define BARLINE_CLI_DOCTOR_NFT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NFT_NAME   64
#define NFT_CHAINS 512 /* more are not looked at */
#define NFT_RULES  4096

struct nlmsghdr;

/** enum nft_match - whether a rule matches. */
enum nft_match { NFT_NO, NFT_PERHAPS, NFT_YES };

/** enum nft_fate - what becomes of a packet. */
enum nft_fate {
	NFT_GOES_ON, /* the rule or chain says nothing */
	NFT_ACCEPTED,
	NFT_DROPPED,
	NFT_UNSURE, /* dropped, unless a rule accepts it whose condition is not known here */
	NFT_JUMPS   /* of a rule: as chain @to says */
};

/** struct nft_chain - a chain. */
struct nft_chain {
	uint8_t family; /* NFPROTO_* */
	char table[NFT_NAME], name[NFT_NAME];
	bool base;    /* it has a hook */
	uint8_t hook; /* NF_INET_* */
	bool drops;   /* the policy */
};

/** struct nft_rule - a rule, reduced. */
struct nft_rule {
	uint8_t family;
	char table[NFT_NAME], chain[NFT_NAME], to[NFT_NAME];
	enum nft_match match;
	enum nft_fate fate;
};

/** struct nft_set - all chains and rules. Rules of a chain are in their order. */
struct nft_set {
	struct nft_chain chain[NFT_CHAINS];
	struct nft_rule rule[NFT_RULES];
	unsigned int nchains, nrules;
	bool cut;             /* there were more */
	uint16_t first, last; /* the ports, in host order */
};

/** nft_read_chain, nft_read_rule - add what a message of a dump says; @ctx: struct nft_set. */
void nft_read_chain(struct nlmsghdr *h, void *ctx);
void nft_read_rule(struct nlmsghdr *h, void *ctx);

/** nft_walk - what becomes of the packets in chain @c. */
enum nft_fate nft_walk(const struct nft_set *s, const struct nft_chain *c);

#endif
