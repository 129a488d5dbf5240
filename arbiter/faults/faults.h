/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fault isolation service (Fastpass section 5.2) without sockets: REPORTs come in, the list of
 * links to avoid goes out. Time is an argument. arbiter/faults/faultd.c is the process around it.
 *
 * A link that is named twice in a row is avoided for the hold time, and then allowed again on
 * trial. If other links are named with it, it must be named for a generation of the window, so that
 * flows which lose nothing have had the time to exonerate it. If it is named again during the
 * trial, it is avoided for twice as long (64 times the hold time at most); if flows through it are
 * found good, its record is clear. While it is avoided nothing is sent on it, so the bad flows are
 * remembered (bl_fault_col.sticky): losses on other paths may show that a host was to blame, and
 * then the link is allowed at once.
 *
 * Suspects that flows cannot tell apart are avoided together. If the link of a host is among them
 * (only one host uses the path), the others are avoided as an experiment, but not the last path of
 * any rack.
 *
 * Example, hold 5 s: at 100.00 s rack 1 -> path 0 is named, at 100.01 s again: version 1 = {1 up
 * 0}. At 105.01 s: version 2 = {}; at 105.13 s it is named again: version 3 = {1 up 0} until
 * 115.13 s.
 */
#ifndef BARLINE_ARBITER_FAULTS_H
#define BARLINE_ARBITER_FAULTS_H

#include <stdio.h>

#include "arbiter/faults/isolate.h"

/* Pairs of hosts that are watched; reports about further pairs are only counted. */
#define BL_FAULTS_PAIRS_MAX (1U << 17)
#define BL_FAULTS_ARBITERS  4

/* X(SYMBOL, "name") */
/* clang-format off */
#define BL_FAULTS_STATES(X) \
	X(GOOD,    "good")    /* nothing is known against it */ \
	X(SUSPECT, "suspect") /* named, and cannot or may not be avoided */ \
	X(BROKEN,  "broken")  /* avoided */ \
	X(TRIAL,   "trial")   /* allowed again after it was avoided, and not shown to be good yet */
/* clang-format on */
#define BL_FAULTS_ENUM(sym, name) BL_FAULTS_##sym,
enum bl_faults_state { BL_FAULTS_STATES(BL_FAULTS_ENUM) BL_FAULTS_STATE_COUNT };
#undef BL_FAULTS_ENUM

/** struct bl_faults_cfg - Configuration, from the file; addresses are IPv6 or IPv4-mapped. */
struct bl_faults_cfg {
	struct bl_iso_net net;
	const uint8_t (*addr)[16];    /* [net.endpoints] */
	const uint8_t (*arbiter)[16]; /* [narbiters] */
	unsigned int narbiters;
	uint64_t secret[2];
	uint32_t table;              /* hash of the endpoints */
	uint64_t report_ns;          /* fault_report_us of the file */
	uint64_t hold_ns;            /* fault_hold_ms of the file */
	struct bl_fault_rules rules; /* from the other fault_* of the file */
};

/** struct bl_faults_part - What is known about a component. */
struct bl_faults_part {
	uint8_t state;   /* enum bl_faults_state */
	uint8_t named;   /* evaluations in a row that named it; stops at 2 */
	uint8_t unnamed; /* evaluations in a row that did not; stops at 2 */
	uint8_t proven;  /* 1: was named without any link inside the network beside it */
	uint32_t one_of; /* as in struct bl_iso_named, of the last time it was named */
	uint32_t times;  /* how often it was found broken */
	uint32_t reserved;
	uint64_t first_ns; /* since when it is named */
	uint64_t since_ns; /* when @state was entered */
	uint64_t until_ns; /* BROKEN: when it is tried again */
	uint64_t hold_ns;  /* for how long it is avoided the next time */
	uint64_t sent;     /* frames of the bad flows through it when it was found */
	uint64_t lost;     /* of these, the frames that were lost */
};

/** struct bl_faults_total - Counters of the service. */
struct bl_faults_total {
	uint64_t packets[BL_FCP_R_COUNT]; /* received, by enum bl_fcp_reason */
	uint64_t unwatched;               /* reports about pairs beyond BL_FAULTS_PAIRS_MAX */
	uint64_t evaluations;             /* how often broken links were looked for */
	uint64_t unexplained;             /* bad flows that no component explained, the last time */
	uint64_t boots;                   /* hosts that started to count anew */
	uint64_t sent;                    /* packets to arbiters */
	uint32_t pairs;                   /* watched */
	uint32_t version;                 /* of the list of links to avoid */
	uint32_t avoided;                 /* links in that list */
};

struct bl_faults;

/**
 * bl_faults_new - Make a service that knows nothing yet.
 * @cfg: copied, but for what it points to.
 * @boot: time of its start, by which arbiters tell lists of different starts apart. If an arbiter
 * has a list of a later start, the service takes a later time.
 *
 * Returns NULL if memory is short.
 */
struct bl_faults *bl_faults_new(const struct bl_faults_cfg *cfg, uint64_t boot);
void bl_faults_free(struct bl_faults *f);

/**
 * bl_faults_rx - Process and count a received packet.
 * @from: its source address, IPv6 or IPv4-mapped.
 * @packet: @len bytes, aligned to 8.
 * @now: CLOCK_MONOTONIC.
 *
 * Returns BL_FCP_R_OK, or why the packet was refused.
 */
enum bl_fcp_reason bl_faults_rx(struct bl_faults *f, const uint8_t from[16], const void *packet,
				uint32_t len, uint64_t now);
/**
 * bl_faults_tick - Look for broken links if that is due, and end hold times. Returns when the next
 * tick is due. @changed: set to true if the list of links to avoid is a new one.
 */
uint64_t bl_faults_tick(struct bl_faults *f, uint64_t now, bool *changed);
/**
 * bl_faults_tx - Write the next packet that is due to @buf of BL_FCP_PACKET_MAX bytes. @arbiter:
 * set to the number of its receiver. Returns its length; 0: none is due.
 */
uint32_t bl_faults_tx(struct bl_faults *f, uint64_t now, void *buf, unsigned int *arbiter);
/** bl_faults_clear - Make all links good, whatever was found. */
void bl_faults_clear(struct bl_faults *f, uint64_t now);

const struct bl_faults_part *bl_faults_part(const struct bl_faults *f, uint32_t component);
/** bl_faults_heard_ns - CLOCK_MONOTONIC of the endpoint's last accepted REPORT; 0: none came. */
uint64_t bl_faults_heard_ns(const struct bl_faults *f, uint32_t endpoint);
/** bl_faults_has - Version of the list that arbiter @i has; -1: it never answered. */
int64_t bl_faults_has(const struct bl_faults *f, unsigned int i);
void bl_faults_read(const struct bl_faults *f, struct bl_faults_total *t);

#endif
