/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP's tokens at a switch (TOP sections 3.1 and 4): how many may leave by each output, and which.
 *
 * The group's rate. A token of 84 bytes on the wire lets one full data frame of 1538 bytes come
 * back, so all six classes of an output together get 84 / (84 + 1538) of its link. One word per
 * output says until when the tokens that have passed fill that share: each token moves it on by the
 * time of its own bytes and of 1538 more, and it never lies in the past. "Ahead" is how far it lies
 * in the future. Example, 10 Gbit/s: a byte takes 0.8 ns, so a token time is 1622 x 0.8 = 1297.6
 * ns. Of three tokens that arrive at 100000 for an idle output, the first finds nothing ahead and
 * leaves 1297.6 ns ahead, the second leaves 2595.2, and the third 3892.8; at 103892.8 nothing is
 * ahead any more. Times are counted in units of 2^-20 ns, in which a token time is a whole number,
 * so nothing is rounded and nothing drifts. (ns2-xpass counts its bucket in whole bytes and has to
 * keep the remainder in its clock.) A token over IPv6 has 104 bytes on the wire and asks for no
 * more data: 1642 bytes, 1.2 % more. Charged by its length alone it would cost 24 % more, and a
 * host that sends one each token time would be a flood, of which the first switch drops every fifth
 * (seen 2026-11). A frame that is longer than any token has to be is charged by its length, at the
 * group's rate: a frame of 1514 bytes as 18.3 tokens.
 *
 * Mode pace. Tokens wait in the output's queues, at most @frames of a class. The pacer sends the
 * best one when at most one token time is ahead: a bucket of two tokens. A token that has waited
 * for more than @expiry token times is dropped instead. In any interval, no more leaves than the
 * group's rate allows, and two tokens.
 *
 * Mode drop. Nothing can be held back, so a token passes at once or never, and a later one of a
 * better class cannot take the place of one that has passed. So the queues are virtual, and only
 * their common length counts: what is ahead. Class c passes if at most @frames - c - 1 token times
 * are ahead, so each class has one token of room that no worse class can fill. With @frames = 8,
 * class 5 fills up to 3 tokens, where class 0 still has room for 5 more. Guarantees:
 *
 *   - In any interval, no more passes than the group's rate allows, and @frames tokens. Tokens
 *     leave earlier than they would from queues, by as much as queues would have held them, and
 *     never more of them.
 *   - Worse classes take nothing from better ones: tokens of the classes up to c that together
 *     keep to the group's rate, and are ahead of it by no more than one token, all pass, whatever
 *     arrives in worse classes.
 *   - An output with nothing ahead refuses no token.
 *
 * Not guaranteed: that a token which a queue would have held for a while and then sent passes
 * (bursts beyond the room of their class lose tokens that waiting would have saved), and that
 * tokens leave in the order of their classes.
 *
 * Starvation. Priority is strict in both modes: a class gets what better classes leave, which is
 * nothing while those alone fill the group's rate. They cannot take more than that, so data, and in
 * the long run each class, gets what is left. Tokens never wait for ever, since they expire. With
 * data first, data goes before tokens only within its own 1538 / (84 + 1538), so tokens get their
 * share.
 *
 * Inputs. A host whose tokens arrive faster than the group's rate of its own link is not a proper
 * receiver: tokens beyond a burst of BL_TOKEN_INPUT are dropped at the input, before they reach any
 * output. Signals, which go before everything else, have a budget of the same rate.
 *
 * Paths. bl_top_flow_port() computes the same 13 bits for a flow's data and for the opposite
 * direction; TOP's own frames carry them as source port.
 *
 * This file has no queues and no counters, reads no clock and knows no routes.
 */
#ifndef BARLINE_TOKEN_CORE_H
#define BARLINE_TOKEN_CORE_H

#include "maps/top_token_abi.h"
#include "core/queue/port_core.h"

#define BL_TOKEN_WIRE     84
#define BL_TOKEN_DATA     1538
#define BL_TOKEN_BOTH     (BL_TOKEN_WIRE + BL_TOKEN_DATA)
#define BL_TOKEN_WIRE_MAX 108 /* IPv6 behind a VLAN tag; and a SYNC over IPv4 */
/* tokens; as in ExpressPass's experiments (ns2-xpass, large-scale-fattree.tcl:36) */
#define BL_TOKEN_BURST 2
/* tokens: two queues' worth, since the neighbour may be a switch in mode drop with another clock */
#define BL_TOKEN_INPUT  16
#define BL_SIGNAL_INPUT 64 /* token times: one signal per flow, and flows may begin together */
#define BL_TOKEN_TRIES  8
/*
 * Token times that a word can lie ahead: the greatest limit, and the longest frame (1546 bytes on
 * the wire, 18.4 tokens). A word that is further away has not been written for hours and has
 * wrapped.
 */
#define BL_TOKEN_AHEAD_MAX 128
_Static_assert(BL_TOKEN_FRAMES_MAX + 19 <= BL_TOKEN_AHEAD_MAX &&
		       BL_SIGNAL_INPUT + 19 <= BL_TOKEN_AHEAD_MAX,
	       "what is ahead is told from what has wrapped");

#define BL_TOKEN_BITS (((1U << BL_TOP_CLASSES) - 1) << BL_CL_TOKEN0)
_Static_assert(BL_CL_TOKEN5 - BL_CL_TOKEN0 + 1 == BL_TOP_CLASSES && BL_CL_TOKEN5 < BL_CL_DATA,
	       "token classes of queues are those of the wire");

/* Tests replace this to count the swaps and to make some of them fail. */
#ifndef BL_TOKEN_SWAP
#define BL_TOKEN_SWAP(p, was, now) __sync_val_compare_and_swap(p, was, now)
#endif

/* ---- time ---- */

/**
 * bl_token_unit - a token time in 2^-20 ns, which is also the time of a full data frame within the
 * data's share.
 */
BL_CORE __u64 bl_token_unit(__u32 ns_q20)
{
	return (__u64)ns_q20 * BL_TOKEN_BOTH;
}

/**
 * bl_token_cost - how long a token or signal of @len bytes fills the group's share, in 2^-20 ns;
 * rounded up where it is longer than any token, else exact.
 */
BL_CORE __u64 bl_token_cost(__u32 ns_q20, __u32 len)
{
	__u64 wire = bl_wire_bytes(len);

	if (wire <= BL_TOKEN_WIRE_MAX)
		return (wire + BL_TOKEN_DATA) * ns_q20;
	return (wire * bl_token_unit(ns_q20) + BL_TOKEN_WIRE - 1) / BL_TOKEN_WIRE;
}

/** bl_token_data_cost - how long a data frame of @len bytes fills the data's share, in 2^-20 ns. */
BL_CORE __u64 bl_token_data_cost(__u32 ns_q20, __u32 len)
{
	return (bl_wire_bytes(len) * bl_token_unit(ns_q20) + BL_TOKEN_DATA - 1) / BL_TOKEN_DATA;
}

/**
 * bl_token_ahead - how far @word lies after @now, in 2^-20 ns. A difference of serial numbers, so
 * the wrap every 4.9 hours does not matter.
 */
BL_CORE __u64 bl_token_ahead(__u64 word, __u64 now, __u64 unit)
{
	__u64 ahead = word - (now << 20);

	return ahead <= BL_TOKEN_AHEAD_MAX * unit ? ahead : 0;
}

/* ---- what comes in ---- */

/* A result of bl_token_parse() for signals, beside the classes of tokens. */
#define BL_TOKEN_SIGNAL BL_TOP_CLASSES

/**
 * bl_token_parse - classify a frame to TOP's port. @u: its UDP header; @end: end of the readable
 * part; @len: bytes of frame from @u on. Returns the class of the token, BL_TOKEN_SIGNAL, or
 * -(reason) to drop it. Switches do not parse the bodies of signals.
 */
BL_CORE int bl_token_parse(const struct udphdr *u, const void *end, __u32 len)
{
	const struct bl_top_hdr *h = (const void *)(u + 1);

	if ((const void *)(h + 1) > end)
		return -BL_R_SHORT;
	if (BL_BE16(u->len) < sizeof(*u) + sizeof(*h) || BL_BE16(u->len) > len)
		return -BL_R_BAD_LENGTH;
	if (h->opcode >> 4 != BL_TOP_VERSION)
		return -BL_R_BAD_VERSION;
	if ((h->opcode & 15) - 1U >= BL_TOP_OPCODE_LIMIT - 1)
		return -BL_R_BAD_OPCODE;
	if (h->opcode != BL_TOP_OPCODE_BYTE(BL_TOP_TOKEN))
		return BL_TOKEN_SIGNAL;
	return h->cls < BL_TOP_CLASSES ? h->cls : -BL_R_TOKEN_CLASS;
}

/* ---- mode drop, and budgets ---- */

/** bl_token_limit - number of tokens of which the last one may be of class @cls. */
BL_CORE __u32 bl_token_limit(const struct bl_token_cfg *c, __u32 cls)
{
	return c->frames > cls ? c->frames - cls : 1;
}

/**
 * bl_token_decide - mode drop: decide on a token of class @cls and @len bytes that arrives at @now
 * for the output with this @word and rate. Returns BL_R_TOKEN_PASSED, BL_R_TOKEN_EXPIRED or
 * BL_R_TOKEN_LIMIT. *@lost: 1 if other CPUs won every compare-and-swap.
 */
BL_CORE enum bl_reason bl_token_decide(const struct bl_token_cfg *c, __u64 *word, __u32 ns_q20,
				       __u32 cls, __u32 len, __u64 now, __u32 *lost)
{
	__u64 unit = bl_token_unit(ns_q20), cost = bl_token_cost(ns_q20, len), ahead, was;
	int i;

	*lost = 0;
	for (i = 0; i < BL_TOKEN_TRIES; i++) {
		/* pairs with the swap: of two CPUs that read the same value, one tries again */
		was = BL_READ_ONCE(*word);
		ahead = bl_token_ahead(was, now, unit);
		if (ahead > c->expiry * unit)
			return BL_R_TOKEN_EXPIRED;
		if (ahead > (bl_token_limit(c, cls) - 1) * unit)
			return BL_R_TOKEN_LIMIT;
		if (BL_TOKEN_SWAP(word, was, (now << 20) + ahead + cost) == was)
			return BL_R_TOKEN_PASSED;
	}
	*lost = 1;
	return BL_R_TOKEN_LIMIT;
}

/**
 * bl_token_budget - whether a frame of @len bytes may come in, with a burst of @depth tokens. Moves
 * @word on if it may.
 */
BL_CORE int bl_token_budget(__u64 *word, __u32 ns_q20, __u32 len, __u32 depth, __u64 now)
{
	__u64 unit = bl_token_unit(ns_q20), ahead = bl_token_ahead(*word, now, unit);

	if (ahead > (depth - 1) * unit)
		return 0;
	*word = (now << 20) + ahead + bl_token_cost(ns_q20, len);
	return 1;
}

/* ---- mode pace ---- */

/** bl_token_ready - CLOCK_MONOTONIC from which the output may send a token; not before @now. */
BL_CORE __u64 bl_token_ready(const struct bl_token_port *p, __u64 now)
{
	__u64 unit = bl_token_unit(p->ns_q20), ahead = bl_token_ahead(p->out_q20, now, unit),
	      room = (BL_TOKEN_BURST - 1) * unit;

	return ahead > room ? now + ((ahead - room + (1 << 20) - 1) >> 20) : now;
}

/** bl_token_expired - whether a token that arrived at @came has waited for too long. */
BL_CORE int bl_token_expired(const struct bl_token_cfg *c, const struct bl_token_port *p,
			     __u64 came, __u64 now)
{
	return now > came && now - came > (c->expiry * bl_token_unit(p->ns_q20)) >> 20;
}

/**
 * bl_token_choose - the class that the output sends next, of those in @bits; BL_CL_COUNT: only
 * tokens are there, and they must wait.
 */
BL_CORE __u32 bl_token_choose(const struct bl_token_cfg *c, const struct bl_token_port *p,
			      __u64 bits, __u64 now)
{
	__u64 unit = bl_token_unit(p->ns_q20);

	if (bits & 1U << BL_CL_CONTROL)
		return BL_CL_CONTROL;
	if (c->data_first && bits & 1U << BL_CL_DATA &&
	    bl_token_ahead(p->data_q20, now, unit) <= (BL_TOKEN_BURST - 1) * unit)
		return BL_CL_DATA;
	if (bl_token_ready(p, now) > now)
		bits &= ~(__u64)BL_TOKEN_BITS;
	return bits ? bl_busy_first(bits) : BL_CL_COUNT;
}

/**
 * bl_token_sent - account for a frame of @len bytes and class @cls that has left. Data that
 * exceeded its share, since nothing else was there, owes no more than one frame.
 */
BL_CORE void bl_token_sent(struct bl_token_port *p, __u32 cls, __u32 len, __u64 now)
{
	__u64 unit = bl_token_unit(p->ns_q20);

	if (1U << cls & BL_TOKEN_BITS)
		p->out_q20 = (now << 20) + bl_token_ahead(p->out_q20, now, unit) +
			     bl_token_cost(p->ns_q20, len);
	else if (cls == BL_CL_DATA)
		p->data_q20 = (now << 20) + bl_min64(bl_token_ahead(p->data_q20, now, unit), unit) +
			      bl_token_data_cost(p->ns_q20, len);
}

/** bl_token_next_ns - when the pacer looks again at an output whose link is free at @free. */
BL_CORE __u64 bl_token_next_ns(const struct bl_token_port *p, __u64 bits, __u64 free, __u64 now)
{
	if (!bits)
		return BL_DUE_NEVER;
	return bits & ~(__u64)BL_TOKEN_BITS ? free : bl_max64(free, bl_token_ready(p, now));
}

/* ---- paths ---- */

/** bl_top_addr4, bl_top_addr6 - an address in the form that bl_top_flow_port() takes. */
BL_CORE __u64 bl_top_addr4(__be32 addr)
{
	return BL_BE32(addr);
}

BL_CORE __u64 bl_top_addr6(const void *addr)
{
	return bl_load64(addr) * 0x9E3779B97F4A7C15ULL + bl_load64((const __u8 *)addr + 8);
}

/**
 * bl_top_flow_port - the source port of TOP's frames of a flow between @a and @b with these ports
 * (host order; 0 where there are none). The same if both ends are exchanged, since sums and
 * exclusive ors do not depend on the order.
 */
BL_CORE __u16 bl_top_flow_port(__u64 a, __u64 b, __u16 sport, __u16 dport)
{
	__u64 h = (a ^ b) * 0xBF58476D1CE4E5B9ULL + (a + b);

	h = (h ^ h >> 32) * 0x94D049BB133111EBULL +
	    ((__u64)(sport ^ dport) << 17 | (__u32)(sport + dport));
	h = (h ^ h >> 29) * 0x9E3779B97F4A7C15ULL;
	return (__u16)(BL_TOP_SPORT_BASE | h >> 51);
}

/**
 * bl_top_path - which of @paths a flow takes. @port: bl_top_flow_port(), or the source port of a
 * TOP frame.
 */
BL_CORE __u32 bl_top_path(__u16 port, __u32 paths)
{
	return (port & (BL_TOP_SPORT_COUNT - 1)) * paths / BL_TOP_SPORT_COUNT;
}

#endif
