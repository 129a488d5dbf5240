/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an arbiter counts, as bl_arb_read() returns it.
 */
#ifndef BARLINE_ARBITER_COUNTERS_H
#define BARLINE_ARBITER_COUNTERS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/log_hist_core.h"
#include "maps/fcp_abi.h"

#define ARB_RUN_FIRST 9 /* from 512 ns to 134 ms */

/**
 * struct bl_arb_row - One endpoint. The counters without a comment are those of struct bl_fcp_arb
 * and struct bl_fcp_end.
 */
struct bl_arb_row {
	bool session; /* the endpoint has a session */
	uint32_t waiting;
	uint64_t granted, refused, capped, resets, sessions, gone;
	uint64_t stale;                   /* slots given to a session that had ended */
	uint64_t packets[BL_FCP_R_COUNT]; /* received, by enum bl_fcp_reason */
	uint64_t sent, timeouts, nacks;
};

/** struct bl_arb_total - The arbiter as a whole. */
struct bl_arb_total {
	uint32_t state; /* enum bl_fcp_state */
	uint32_t term;  /* this one and the next three: see struct bl_wd */
	uint64_t takeovers, yields, stalls;
	uint64_t granted; /* slots put into ALLOCs */
	/* slots that were not sent: their session or the right to give them had ended */
	uint64_t stale;
	uint64_t refunds; /* demands that the allocator or the path stage refused */
	uint64_t late;    /* slots that had begun before they were put into an ALLOC */
	uint64_t runs;    /* of the allocator */
	/* the same by how long they took: bl_log_bin() of ns from 2^ARB_RUN_FIRST on, and in all */
	uint64_t run_bin[BL_LOG_BINS], run_ns;
	uint64_t skipped; /* slots never given because a run came too late */
	/* slots for which the path stage had no room: more grants than @grants_max announced */
	uint64_t overrun;
	uint64_t packets[BL_FCP_R_COUNT];   /* requests by reason, unknown senders included */
	uint64_t watchdogs[BL_FCP_R_COUNT]; /* of the group by reason */
	uint64_t sent;
	uint64_t send_failed;            /* packets that a socket refused */
	uint64_t faults[BL_FCP_R_COUNT]; /* packets of the fault isolation service by reason */
	uint32_t faults_version;         /* of the list of links in use; 0: none has come */
	uint32_t faults_links;           /* number of links in that list */
	char unknown[INET6_ADDRSTRLEN];  /* last sender that is not an endpoint; "": none */
};

#endif
