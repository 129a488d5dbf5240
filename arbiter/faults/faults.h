/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fault isolation service (Fastpass section 5.2) without sockets: REPORTs in, the list of links
 * to be avoided out. Time is an argument. arbiter/faults/faultd.c is the process around it.
 *
 * A link that is named twice in a row (and, if others are named with it, for a generation of the
 * window, so that flows which lose nothing have shown it) is avoided for the hold time, then
 * allowed again on trial: if it is named again, it is avoided for twice as long (64 times at most),
 * and if flows through it are found good, it is as good as new. While it is avoided nothing is sent
 * on it, so what was found bad is remembered (bl_fault_col.sticky): other paths' losses may show
 * that a host was to blame, and then the link is allowed at once.
 *
 * Suspects that flows cannot tell apart are avoided together. If a host's link is among them (only
 * one host uses the path), the others are avoided as an experiment, but not the last path of any
 * rack.
 *
 * Example, hold 5 s: at 100.00 s rack 1 -> path 0 is named, at 100.01 s again: version 1 = {1 up
 * 0}. At 105.01 s: version 2 = {}; at 105.13 s it is named again: version 3 = {1 up 0} until 115.13
 * s.
 */
#ifndef BARLINE_ARBITER_FAULTS_H
#define BARLINE_ARBITER_FAULTS_H

#include <stdio.h>

#include "arbiter/faults/isolate.h"

/* pairs of hosts that are watched; further ones are counted and not watched */
#define BL_FAULTS_PAIRS_MAX (1U << 17)
#define BL_FAULTS_ARBITERS  4

/* X(SYMBOL, "name") */
/* clang-format off */
#define BL_FAULTS_STATES(X) \
	X(GOOD,    "good")    /* nothing is known against it */ \
	X(SUSPECT, "suspect") /* named, and cannot or may not be avoided */ \
	X(BROKEN,  "broken")  /* avoided */ \
	X(TRIAL,   "trial")   /* was avoided, may be used again, and has not shown yet that it is good */
/* clang-format on */
#define BL_FAULTS_ENUM(sym, name) BL_FAULTS_##sym,
enum bl_faults_state { BL_FAULTS_STATES(BL_FAULTS_ENUM) BL_FAULTS_STATE_COUNT };
#undef BL_FAULTS_ENUM

/**
 * struct bl_faults_cfg - from the file. @addr: of each endpoint, 16 bytes (IPv6 or IPv4-mapped).
 * @arbiter: likewise. @report_ns, @hold_ns, @rules: fault_* of the file.
 */
struct bl_faults_cfg {
	struct bl_iso_net net;
	const uint8_t (*addr)[16];
	const uint8_t (*arbiter)[16];
	unsigned int narbiters;
	uint64_t secret[2];
	uint32_t table;
	uint64_t report_ns;
	uint64_t hold_ns;
	struct bl_fault_rules rules;
};

/**
 * struct bl_faults_part - a component. @state: enum bl_faults_state. @named: evaluations in a row
 * that named it. @unnamed: that did not. @one_of: as in struct bl_iso_named, of the last time.
 * @times: how often it was found broken.
 * @first_ns: since when it is named. @proven: 1: named without any link inside the network beside
 * it. @since_ns: of @state. @until_ns: BROKEN: when it is tried again. @hold_ns: for how long it is
 * avoided the next time. @sent, @lost: of the bad flows through it when it was found.
 */
struct bl_faults_part {
	uint8_t state;
	uint8_t named;
	uint8_t unnamed;
	uint8_t proven;
	uint32_t one_of;
	uint32_t times;
	uint32_t reserved;
	uint64_t first_ns;
	uint64_t since_ns;
	uint64_t until_ns;
	uint64_t hold_ns;
	uint64_t sent;
	uint64_t lost;
};

/**
 * struct bl_faults_total - @pairs: watched; @unwatched: reports about pairs beyond
 * BL_FAULTS_PAIRS_MAX. @evaluations: how often links were looked for. @unexplained: bad flows that
 * no component explained, the last time. @boots: hosts that began to count anew.
 */
struct bl_faults_total {
	uint64_t packets[BL_FCP_R_COUNT];
	uint64_t unwatched, evaluations, unexplained, boots, sent;
	uint32_t pairs, version, avoided;
};

struct bl_faults;

struct bl_faults *bl_faults_new(const struct bl_faults_cfg *cfg, uint64_t boot);
void bl_faults_free(struct bl_faults *f);

/**
 * bl_faults_rx - a packet of @len bytes, aligned to 8, from @from (16 bytes). @now:
 * CLOCK_MONOTONIC. Returns what became of it, and counts it.
 */
enum bl_fcp_reason bl_faults_rx(struct bl_faults *f, const uint8_t from[16], const void *packet,
				uint32_t len, uint64_t now);
/**
 * bl_faults_tick - looks for broken links if it is time, and lets time pass for those that are
 * avoided. Returns when the next tick is due. *@changed: the list is another one.
 */
uint64_t bl_faults_tick(struct bl_faults *f, uint64_t now, bool *changed);
/**
 * bl_faults_tx - the next packet that is due, into @buf of BL_FCP_PACKET_MAX bytes; *@arbiter: to
 * whom. Returns its length; 0: nothing is due.
 */
uint32_t bl_faults_tx(struct bl_faults *f, uint64_t now, void *buf, unsigned int *arbiter);
/** bl_faults_clear - all links are good, whatever was found. */
void bl_faults_clear(struct bl_faults *f, uint64_t now);

const struct bl_faults_part *bl_faults_part(const struct bl_faults *f, uint32_t component);
/** bl_faults_heard_ns - CLOCK_MONOTONIC of the endpoint's last REPORT that was taken; 0: none. */
uint64_t bl_faults_heard_ns(const struct bl_faults *f, uint32_t endpoint);
/** bl_faults_has - which list arbiter @i has; -1: it never answered. */
int64_t bl_faults_has(const struct bl_faults *f, unsigned int i);
void bl_faults_read(const struct bl_faults *f, struct bl_faults_total *t);

#endif
