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
 * IPv4 and IPv6 are judged apart, because a rule may match only one of them. A chain is reduced to
 * the set of what becomes of the packets that enter it: they leave it at its end or by `return`,
 * they are accepted, or they are dropped.
 *
 * Rules of iptables are among them where iptables is that of nftables. Older tables (iptables-
 * legacy) are not.
 *
 * Use: nft_read_table() for each table, then nft_read_chain() for each chain, then nft_read_rule()
 * for each rule, then nft_walk().
 */
#ifndef BARLINE_CLI_DOCTOR_NFT_RULES_H
#define BARLINE_CLI_DOCTOR_NFT_RULES_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NFT_NAME 256 /* as in the kernel */

struct nlmsghdr;

/** enum nft_ip - version of IP of a packet. */
enum nft_ip { NFT_IPV4, NFT_IPV6, NFT_IP_COUNT };

/** enum nft_match - whether a rule matches. */
enum nft_match { NFT_NO, NFT_PERHAPS, NFT_YES };

/** enum nft_fate - what becomes of a packet. */
enum nft_fate {
	NFT_GOES_ON, /* the rule says nothing */
	NFT_ACCEPTED,
	NFT_DROPPED,
	NFT_UNSURE,  /* some are dropped and some accepted, by conditions not known here */
	NFT_RETURNS, /* of a rule: its chain ends here */
	NFT_JUMPS,   /* of a rule: as chain @to says; if that says nothing, the next rule */
	NFT_LEAVES   /* of a rule: as chain @to says; if that says nothing, its chain ends here */
};

/** struct nft_table - a table whose chains do nothing (flag `dormant`). */
struct nft_table {
	uint8_t family; /* NFPROTO_* */
	char name[NFT_NAME];
};

/** struct nft_chain - a chain. */
struct nft_chain {
	uint8_t family; /* NFPROTO_* */
	char table[NFT_NAME], name[NFT_NAME];
	bool base;                /* packets enter it by a hook; of netdev: of one of our devices */
	uint8_t hook;             /* NF_INET_*, or NF_NETDEV_* if @family is NFPROTO_NETDEV */
	bool drops;               /* the policy */
	unsigned int first, last; /* its rules, as 1 + index; 0: none */
	uint8_t sets[NFT_IP_COUNT]; /* of nft_walk(): what becomes of packets; 0: not known yet */
};

/** struct nft_rule - a rule, reduced. */
struct nft_rule {
	unsigned int next; /* in its chain, as 1 + index; 0: none */
	unsigned int to;   /* chain that it goes to, as 1 + index; 0: none */
	enum nft_match match[NFT_IP_COUNT];
	enum nft_fate fate;
};

/** struct nft_set - all chains and rules of tables that are not dormant. */
struct nft_set {
	struct nft_table *dormant;
	struct nft_chain *chain; /* sorted when the first rule is read */
	struct nft_rule *rule;
	unsigned int ndormant, nchains, nrules;
	bool sorted;
	bool failed;                 /* no memory: something was left out */
	uint16_t first, last;        /* the ports, in host order. Set before reading */
	const char (*dev)[IFNAMSIZ]; /* interfaces that packets leave by. Set before reading */
	unsigned int ndev;
};

/** nft_read_* - add what a message of a dump says; @ctx: struct nft_set. */
void nft_read_table(struct nlmsghdr *h, void *ctx);
void nft_read_chain(struct nlmsghdr *h, void *ctx);
void nft_read_rule(struct nlmsghdr *h, void *ctx);

/** nft_forget - frees what was read. */
void nft_forget(struct nft_set *s);

/**
 * nft_walk - what becomes of packets of version @ip in base chain @c: NFT_ACCEPTED, NFT_DROPPED or
 * NFT_UNSURE.
 */
enum nft_fate nft_walk(struct nft_set *s, struct nft_chain *c, enum nft_ip ip);

#endif
