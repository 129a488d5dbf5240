/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The configuration of an arbiter, and its translation from the file that arbiters and hosts share.
 */
#ifndef BARLINE_ARBITER_CONFIG_H
#define BARLINE_ARBITER_CONFIG_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/log.h"
#include "maps/fcp_abi.h"

#define BL_ARB_PATHS_MAX  8 /* path threads */
#define BL_ARB_LISTEN_MAX 4
#define BL_ARB_GROUP_MAX  4 /* arbiters of one network */

/** struct bl_arb_endpoint - A host that the arbiter serves. */
struct bl_arb_endpoint {
	struct in6_addr addr; /* IPv6 or IPv4-mapped */
	uint16_t port;        /* before its first packet; 0: BL_FCP_PORT */
	char name[32];
};

/**
 * struct bl_arb_cfg - Everything that an arbiter is made from. The defaults, which replace 0 and
 * NULL, are in parentheses. Addresses are IPv6 or IPv4-mapped.
 */
struct bl_arb_cfg {
	struct in6_addr listen[BL_ARB_LISTEN_MAX]; /* addresses for requests (any address) */
	unsigned int nlisten;
	uint16_t port;    /* for requests (BL_FCP_PORT) */
	uint16_t wd_port; /* for the group's watchdogs (BL_FCP_WATCHDOG_PORT) */
	/*
	 * Multicast group of the arbiters, to which hosts may send requests too. Unspecified: this
	 * arbiter is alone and becomes primary at once.
	 */
	struct in6_addr group;
	char group_if[16]; /* interface of @group */
	uint32_t rank;     /* of this arbiter; lower ranks take over first */
	/*
	 * Addresses of the arbiters by rank: a watchdog counts only if it comes from the address of
	 * its rank. None: watchdogs from everywhere count.
	 */
	struct in6_addr arbiters[BL_ARB_GROUP_MAX];
	unsigned int narbiters;
	/* The same list in all arbiters and hosts: an endpoint's number is its place in it. */
	const struct bl_arb_endpoint *endpoints;
	uint32_t nendpoints;
	uint32_t slot_ns;    /* (1230) */
	uint32_t slot_bytes; /* (1514) */
	/*
	 * Time before its start at which a slot is given at the latest (100). More if runs need
	 * longer and no other arbiter may take over (lead.h).
	 */
	uint32_t lead_us;
	uint32_t late_us;     /* how late a host may use a slot (0); limits the lead */
	uint32_t run_slots;   /* between two runs of the allocator (16) */
	uint32_t interval_us; /* between two watchdogs (100) */
	uint32_t dead_us;     /* silence after which an arbiter counts as dead (1000) */
	uint32_t guard_us;    /* for which a candidate waits (3 x @interval_us) */
	uint32_t quota;       /* slots that one endpoint may have waiting (65536) */
	uint32_t rtt_us;      /* round trip between a host and the arbiter (200) */
	uint64_t secret[2];   /* 0, 0: packets are not authenticated */
	/* Address of the fault isolation service. Unspecified: no list of links is accepted. */
	struct in6_addr faults;
	/* Called by comm with the links to avoid whenever the list changes; may be NULL. */
	void (*links)(void *ctx, const struct bl_fcp_link *l, unsigned int n);
	void *links_ctx;
	clockid_t clock;         /* that slot numbers are derived from (CLOCK_TAI) */
	bool clock_set;          /* @clock is meant, even if its number is 0 */
	int64_t clock_offset_ns; /* added to @clock */
	/* 1: one loop (default); 2: comm, and the rest; 3 and more: comm, allocation, paths */
	unsigned int threads;
	int cpus[2 + BL_ARB_PATHS_MAX]; /* to which the threads are pinned, in that order */
	unsigned int ncpus;             /* valid entries of @cpus; 0: no thread is pinned */
	bool spin;                      /* the threads never sleep */
};

struct bl_fp_file;

/**
 * bl_arb_cfg_of - Fill a configuration from the shared file.
 * @cfg: all zeros. Free with bl_arb_cfg_free().
 * @f: see proto/fastpass_file.h.
 * @rank: of this arbiter.
 *
 * Returns 0 or -errno with @err.
 */
int bl_arb_cfg_of(struct bl_arb_cfg *cfg, const struct bl_fp_file *f, unsigned int rank,
		  struct bl_err *err);
void bl_arb_cfg_free(struct bl_arb_cfg *cfg);

#endif
