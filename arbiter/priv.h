/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the arbiter's files share: the stages, the rings between them, and the arbiter itself.
 */
#ifndef BARLINE_ARBITER_PRIV_H
#define BARLINE_ARBITER_PRIV_H

#include <ck_pr.h>
#include <ck_ring.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "server.h" /* first: <netinet/in.h> and <linux/ipv6.h> agree only in this order */

#include "core/fastpass/fcp_arb_core.h"
#include "core/fastpass/watchdog_core.h"
#include "lead.h"

#define ARB_BATCH      64         /* packets in one system call */
#define ARB_ASK_RING   (1U << 16) /* entries; powers of two */
#define ARB_GRANT_RING (1U << 16)
#define ARB_RUN_MAX    4096 /* grants that an allocator gives at once */
/*
 * Runs that may be in the pipeline. What waits there gets late: with as many as the rings hold, a
 * pause of a stage left 3 ms of runs in them for good, and each one came out after its slots.
 */
#define ARB_RUNS_AHEAD 4
#define ARB_SCAN       256 /* endpoints whose timers are looked at in one turn */

/** struct arb_ask - comm to the allocator. @mtus 0: forget @src. */
struct arb_ask {
	uint32_t mtus;
	uint16_t src;
	uint16_t dst;
};
CK_RING_PROTOTYPE(ask, arb_ask)
CK_RING_PROTOTYPE(grant, arb_grant)

/** struct arb_ring - with one producer and one consumer. */
struct arb_ring {
	struct ck_ring ring;
	struct arb_grant *buf;
};

/**
 * struct arb_peer - one endpoint, of comm.
 * @fcp: its session. @addr, @port: where its last packet came from, host order. @via: by which
 * socket. @forgets: sessions that ended and whose grants may still be in the pipeline: they are
 * dropped. @stale: how many were.
 * @touched: it has grants of the present run.
 */
struct arb_peer {
	struct bl_fcp_arb fcp;
	struct in6_addr addr;
	uint16_t port;
	uint8_t via;
	uint32_t forgets;
	bool touched;
	uint64_t stale;
};

/** struct arb_sa - an address as a socket of its family wants it. */
struct arb_sa {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
	socklen_t len;
};

/** struct arb_packets - packets of one system call. */
struct arb_packets {
	unsigned int n;
	struct mmsghdr msg[ARB_BATCH];
	struct iovec iov[ARB_BATCH];
	struct arb_sa addr[ARB_BATCH];
	/* a longer one is seen to be too long */
	_Alignas(8) uint8_t buf[ARB_BATCH][BL_FCP_PACKET_MAX + 8];
};

/**
 * struct arb_sock - a socket for requests; what goes out by it waits in @out. @group: requests to
 * the group; answers leave by the first socket.
 */
struct arb_sock {
	int fd;
	sa_family_t family;
	bool group;
	struct arb_packets out;
};

/**
 * struct bl_arb - an arbiter. What each thread writes is kept apart; what others read of it is
 * atomic or a counter of which a reader may miss the last step.
 * @until_ns: CLOCK_MONOTONIC until which slots may be given; 0: not at all. Comm writes it, the
 * allocation stage reads it before each run: relaxed is enough, since it says all by itself.
 * @stop: set by bl_arb_stop(); read by all threads.
 */
struct bl_arb {
	struct bl_arb_cfg cfg;
	struct bl_fcp_params params;
	const struct arb_alloc_ops *aops;
	void *alloc;
	const struct arb_path_ops *pops;
	void *paths[BL_ARB_PATHS_MAX];
	unsigned int npaths;
	uint64_t horizon_ns;
	atomic_bool stop;
	_Atomic uint64_t until_ns;

	/* comm */
	struct arb_sock *sock[BL_ARB_LISTEN_MAX + 1];
	unsigned int nsock;
	int wd_fd;   /* receives the group's watchdogs */
	int wd_send; /* sends them */
	struct arb_sa wd_to;
	int bell_fd;
	atomic_bool asleep; /* comm sleeps: who gives it something writes to @bell_fd */
	struct arb_packets in;
	struct bl_wd wd;
	bool alone; /* no group: always primary */
	bool ruled;
	struct arb_peer *peer;
	void *mem;
	uint32_t *hash; /* 1 + index; 0: free */
	uint32_t hash_mask;
	uint64_t hash_key;
	uint32_t scan_at, turn;
	uint16_t *touched;
	uint32_t ntouched;
	uint64_t rnd[2];
	uint32_t faults_challenge; /* of this start */
	uint64_t faults_boot;      /* of the list that was taken; 0: none */
	uint64_t told_ns;          /* when an unknown sender was last complained about */
	struct bl_arb_total t;

	/* comm to allocation */
	struct ck_ring asks;
	struct arb_ask *asks_buf;
	/* allocation to paths, paths to comm; without path threads the first is not used */
	struct arb_ring to_path[BL_ARB_PATHS_MAX], to_comm[BL_ARB_PATHS_MAX];

	/* allocation */
	uint64_t next_slot;
	unsigned int run_turn;
	struct arb_grant *run_buf;
	bool busy;                  /* something may wait in the allocator */
	uint32_t asked, ask_budget; /* asks taken since the last run, and how many may be */
	/* CLOCK_MONOTONIC; runs are slow, and what waits is kept to what fills slots */
	uint64_t slow_until_ns;
	struct bl_lead lead;
	/* written by comm: from the begin of the last run until its mark came */
	_Atomic uint64_t took_ns;
	_Atomic uint64_t runs, skipped;
	_Atomic uint64_t marks; /* written by comm: runs that have come out of the pipeline */

	/* paths */
	struct arb_grant *path_buf[BL_ARB_PATHS_MAX];
	unsigned int path_n[BL_ARB_PATHS_MAX];
	unsigned int path_max;
	_Atomic uint64_t overrun;
	pthread_t thread[1 + BL_ARB_PATHS_MAX];
	unsigned int nthreads;
	/*
	 * empties what lies before comm; set where comm is in the thread that fills it, else NULL
	 */
	void (*drain)(struct bl_arb *a);
};

#define ARB_ASK_LEAST 64u /* asks that each run takes, however slow the last one was */

static inline uint64_t arb_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static inline uint64_t arb_mono(void)
{
	return arb_clock(CLOCK_MONOTONIC);
}

static inline uint64_t arb_slot(const struct bl_arb *a, uint64_t ahead_ns)
{
	return (arb_clock(a->cfg.clock) + (uint64_t)a->cfg.clock_offset_ns + ahead_ns) /
	       a->cfg.slot_ns;
}

/*
 * The first slot of the run after one from @slot on: the next multiple of @step, but no run goes
 * across the end of a window. So every window is given from its first slot on: with runs that came
 * when they came, one slot of each window of 16 was lost (2 slots between runs).
 */
static inline uint64_t arb_run_after(uint64_t slot, uint32_t step, uint32_t window)
{
	return bl_min64(slot - slot % step + step, slot - slot % window + window);
}

/* comm.c */
int arb_comm_open(struct bl_arb *a, struct bl_err *err);
void arb_comm_close(struct bl_arb *a);
/**
 * arb_comm_turn - one turn of comm; returns when the next one is due (CLOCK_MONOTONIC), if nothing
 * comes before.
 */
uint64_t arb_comm_turn(struct bl_arb *a);
/** arb_comm_take - what the pipeline has for comm. */
void arb_comm_take(struct bl_arb *a);
/** arb_comm_wait - sleep until @until, or something comes. */
void arb_comm_wait(struct bl_arb *a, uint64_t until);

/* pipe.c */
int arb_pipe_open(struct bl_arb *a, struct bl_err *err);
void arb_pipe_close(struct bl_arb *a);
/** arb_alloc_turn - asks, and a run if one is due; returns when the next one is. */
uint64_t arb_alloc_turn(struct bl_arb *a);
/** arb_path_turn - what the ring of path thread @i holds; true: there was something. */
bool arb_path_turn(struct bl_arb *a, unsigned int i);
/** arb_pipe_next - the next grant for comm, in order. */
bool arb_pipe_next(struct bl_arb *a, struct arb_grant *g);

#endif
