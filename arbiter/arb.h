/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The arbiter itself, as its stages share it: comm (comm.h, with the sessions in peer.h), the
 * allocation and path stages (pipe.h), and the life of the whole (server.h).
 */
#ifndef BARLINE_ARBITER_ARB_H
#define BARLINE_ARBITER_ARB_H

#include <ck_pr.h>
#include <ck_ring.h>
#include <pthread.h>
#include <stdatomic.h>

#include "arbiter/config.h" /* first: <netinet/in.h> and <linux/ipv6.h> agree only so */

#include "arbiter/counters.h"
#include "arbiter/lead.h"
#include "arbiter/ring.h"
#include "arbiter/socket.h"
#include "arbiter/stage.h"
#include "base/time.h"
#include "core/fastpass/fcp_arb_core.h"
#include "core/fastpass/watchdog_core.h"

#define ARB_ASK_RING   (1U << 16) /* entries of the ring of asks, a power of two */
#define ARB_GRANT_RING (1U << 16) /* entries of a ring of grants, a power of two */
#define ARB_RUN_MAX    4096       /* grants that an allocator gives in one call */
/*
 * Runs that may be in the pipeline at a time. What waits there gets late: with as many runs as the
 * rings hold, a pause of one stage left 3 ms of runs in them for good, and each run came out after
 * its slots.
 */
#define ARB_RUNS_AHEAD 4
#define ARB_SCAN       256 /* endpoints whose timers comm looks at in one turn */
#define ARB_ASK_LEAST  64u /* asks that each run takes, however slow the last one was */

/** struct arb_ask - An entry on the way from comm to the allocator. */
struct arb_ask {
	uint32_t mtus; /* demanded; 0: forget what waits from @src */
	uint16_t src;  /* endpoints */
	uint16_t dst;
};
CK_RING_PROTOTYPE(ask, arb_ask)

/** struct arb_peer - One endpoint. Only comm uses it. */
struct arb_peer {
	struct bl_fcp_arb fcp; /* its session */
	struct in6_addr addr;  /* source of its last packet; IPv6 or IPv4-mapped */
	uint16_t port;         /* source port of that packet, host order */
	uint8_t via;           /* index in bl_arb.sock of the socket to answer with */
	/*
	 * Sessions that have ended and whose grants may still be in the pipeline. While there are
	 * any, grants are dropped.
	 */
	uint32_t forgets;
	bool touched;   /* has grants of the present run */
	uint64_t stale; /* slots that were dropped */
};

/**
 * struct bl_arb - An arbiter. The fields are grouped by the thread that writes them, so that the
 * threads share few cache lines. What other threads read is atomic, or a counter of which a reader
 * may miss the last step.
 */
struct bl_arb {
	/* written before the threads start */
	struct bl_arb_cfg cfg;
	struct bl_fcp_params params;
	const struct arb_alloc_ops *aops;
	void *alloc;                     /* state of @aops */
	const struct arb_path_ops *pops; /* NULL: no path stage */
	void *paths[BL_ARB_PATHS_MAX];   /* states of @pops */
	unsigned int npaths;             /* path selectors; 0: no path stage */
	uint64_t horizon_ns;             /* from now to the end of the furthest slot given */
	atomic_bool stop;                /* set by bl_arb_stop(), read by all threads */
	/*
	 * CLOCK_MONOTONIC until which slots may be given; 0: not at all. Comm writes it and the
	 * allocation stage reads it before each run. Relaxed order is enough: nothing else is
	 * published with it.
	 */
	_Atomic uint64_t until_ns;

	/* comm */
	struct arb_sock *sock[BL_ARB_LISTEN_MAX + 1];
	unsigned int nsock;
	int wd_fd;   /* receives the group's watchdogs; -1: none */
	int wd_send; /* sends watchdogs to the group; -1: none */
	struct arb_sa wd_to;
	int bell_fd;           /* eventfd that wakes comm */
	atomic_bool asleep;    /* comm may be asleep: a producer must write to @bell_fd */
	struct arb_packets in; /* packets received last */
	struct bl_wd wd;
	bool alone;                /* no group: always primary */
	bool ruled;                /* primary, as far as the sessions know */
	struct arb_peer *peer;     /* [cfg.nendpoints] */
	void *mem;                 /* of the sessions' pairs and sent packets */
	uint32_t *hash;            /* by hash of the address: 1 + index of the peer; 0: free */
	uint32_t hash_mask;        /* entries of @hash - 1 */
	uint64_t hash_key;         /* random */
	uint32_t scan_at;          /* next peer whose timers are looked at */
	uint32_t turn;             /* index in @to_comm of the run that comes next */
	uint16_t *touched;         /* peers that have grants of the present run */
	uint32_t ntouched;         /* entries of @touched */
	uint64_t rnd[2];           /* key and counter of random nonces */
	struct arb_sent sent;      /* packets that left */
	uint32_t faults_challenge; /* random, of this start; never 0 */
	uint64_t faults_boot;      /* start of the service whose list is in use; 0: no list */
	uint64_t told_ns;          /* when an unknown sender was last logged; 0: never */
	struct bl_arb_total t;     /* the counters that comm keeps */

	/* from comm to allocation */
	struct ck_ring asks;
	struct arb_ask *asks_buf;
	/* from allocation to paths, and from paths to comm; @to_path is unused without paths */
	struct arb_ring to_path[BL_ARB_PATHS_MAX], to_comm[BL_ARB_PATHS_MAX];

	/* allocation */
	uint64_t next_slot;         /* first slot of the next run */
	unsigned int run_turn;      /* path selector that gets the present run */
	struct arb_grant *run_buf;  /* [ARB_RUN_MAX] */
	bool busy;                  /* something may wait in the allocator */
	uint32_t asked, ask_budget; /* asks taken since the last run, and how many may be */
	/* CLOCK_MONOTONIC until which new asks are limited because a run was slow; 0: not */
	uint64_t slow_until_ns;
	struct bl_lead lead;
	_Atomic uint64_t took_ns; /* from the start of the last run to its mark; comm writes it */
	_Atomic uint64_t runs, skipped;
	_Atomic uint64_t run_bin[BL_LOG_BINS], run_ns; /* see struct bl_arb_total */
	_Atomic uint64_t marks; /* runs that have left the pipeline; comm writes it */

	/* paths */
	struct arb_grant *path_buf[BL_ARB_PATHS_MAX]; /* [path_max] grants of the present run */
	unsigned int path_n[BL_ARB_PATHS_MAX];        /* valid entries of @path_buf */
	unsigned int path_max;
	_Atomic uint64_t overrun;

	/* the thread of bl_arb_run() */
	pthread_t thread[1 + BL_ARB_PATHS_MAX];
	unsigned int nthreads;
	/*
	 * Called by a producer that finds the ring to comm full: empties it. NULL where comm is a
	 * thread of its own.
	 */
	void (*drain)(struct bl_arb *a);
};

/** arb_slot - Number of the slot that begins @ahead_ns from now, or of the one before that. */
static inline uint64_t arb_slot(const struct bl_arb *a, uint64_t ahead_ns)
{
	return (bl_clock_ns(a->cfg.clock) + (uint64_t)a->cfg.clock_offset_ns + ahead_ns) /
	       a->cfg.slot_ns;
}

/**
 * arb_run_after - First slot of the run after one that began at @slot: the next multiple of @step,
 * but no run crosses the end of a window. So every window is given from its first slot on. When
 * runs began whenever they were due, one slot of each window of 16 was lost (2 slots between runs).
 */
static inline uint64_t arb_run_after(uint64_t slot, uint32_t step, uint32_t window)
{
	return bl_min64(slot - slot % step + step, slot - slot % window + window);
}

/**
 * arb_next_grant - The next entry for comm, in order: the rings of the path threads take turns from
 * mark to mark. Returns false if it has not come yet. For comm only.
 */
static inline bool arb_next_grant(struct bl_arb *a, struct arb_grant *g)
{
	if (!arb_ring_take(&a->to_comm[a->turn], g))
		return false;
	if (g->kind == ARB_MARK && a->npaths)
		a->turn = a->turn + 1 == a->npaths ? 0 : a->turn + 1;
	return true;
}

#endif
