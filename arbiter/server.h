/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Fastpass arbiter as a library (Fastpass section 6.2): demands come in by FCP, an allocator
 *gives timeslots, a path selector gives paths, ALLOCs go out.
 *
 *	sockets -> comm --asks--> allocation --grants--> paths --grants--> comm -> sockets
 *
 * Each stage is a thread, pinned if the configuration says where; rings with one producer and one
 *consumer (Concurrency Kit) lie between. With one thread the same stages run in turn in one loop.
 * A run of the allocator ends with a mark, so that comm sends each endpoint one ALLOC for it; with
 *several path threads the runs go round, and comm takes them back in the same order.
 *
 * Example, 1.23 us slots, lead 100 us, a run every 16 slots: at bus time t the allocator is asked
 *for slots from (t + 100 us) / 1.23 us on; 20 us later for the next ones. Its window reaches 64
 *slots further, so the horizon is 100 + 79 + 20 = 199 us; with watchdogs of 1 ms that leaves a
 *lease of 801 us (core/fastpass/watchdog_core.h).
 *
 * Thread rules: bl_arb_new() to bl_arb_free() from one thread; bl_arb_stop() from anywhere, also
 *from a signal handler; bl_arb_read() from any thread while it runs: each number is whole, but they
 *may be of slightly different moments.
 */
#ifndef BARLINE_ARBITER_SERVER_H
#define BARLINE_ARBITER_SERVER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/log.h"
#include "maps/fcp_abi.h"

#define BL_ARB_PATHS_MAX  8 /* path threads */
#define BL_ARB_LISTEN_MAX 4

enum arb_kind { ARB_SLOTS, ARB_REFUND, ARB_FORGOTTEN, ARB_MARK };

/**
 * struct arb_grant - what travels from the allocator to comm.
 * @base, @slots: ARB_SLOTS: slot @base + i for each bit i. ARB_MARK: @base is the first slot of the
 * run, @slots when it began (CLOCK_MONOTONIC).
 * @mtus: ARB_REFUND: a demand that the allocator had no room for; comm asks again.
 * @src, @dst: endpoints. @path: BL_FCP_PATH_ANY before the path stage. @kind: enum arb_kind;
 * allocators write ARB_SLOTS only.
 */
struct arb_grant {
	uint64_t base;
	uint64_t slots;
	uint32_t mtus;
	uint16_t src;
	uint16_t dst;
	uint8_t path;
	uint8_t kind;
	uint8_t zero[6];
};
_Static_assert(sizeof(struct arb_grant) == 32, "two to a cache line");

/**
 * struct arb_alloc_ops - an allocator, used by one thread.
 * @demand: @mtus more from @src to @dst, at @slot (deadlines count from it); 0, or -errno: nothing
 * of it was taken (comm asks again later).
 * @forget: drop what waits from @src; not what others want to send to it.
 * @run: give slots from @slot on, into @out, at most @max grants; returns how many. Called again
 * with the same @slot as long as it returns @max. No slot at or beyond @slot + @horizon_slots.
 * @waiting: whether anything was demanded and not given; while not, it is left alone.
 * @grants_max: in one run, each path of a grant counted; 0: endpoints x @horizon_slots.
 */
struct arb_alloc_ops {
	int (*demand)(void *a, uint32_t src, uint32_t dst, uint32_t mtus, uint64_t slot);
	void (*forget)(void *a, uint32_t src);
	unsigned int (*run)(void *a, uint64_t slot, struct arb_grant *out, unsigned int max);
	bool (*waiting)(void *a);
	uint32_t horizon_slots;
	uint32_t grants_max;
	/*
	 * MTUs that may wait besides those that do, before more hardly fill its slots; NULL: it
	 * does not matter
	 */
	uint64_t (*spare)(void *a);
};

/**
 * struct arb_path_ops - a path selector; @p belongs to one path thread.
 * @assign: the @n grants of one run, all without path; returns how many there are when each has one
 *(a grant may become several), at most @max (the allocator's @grants_max). A slot for which there
 *is no path comes back as ARB_REFUND of 1.
 */
struct arb_path_ops {
	unsigned int (*assign)(void *p, struct arb_grant *g, unsigned int n, unsigned int max);
};

/**
 * struct bl_arb_endpoint - a host. @addr: IPv6 or IPv4-mapped. @port: 0: BL_FCP_PORT; where its
 * last packet came from counts.
 */
struct bl_arb_endpoint {
	struct in6_addr addr;
	uint16_t port;
	char name[32];
};

/**
 * struct bl_arb_cfg - everything that an arbiter is made from; from the file (config.c) or a test.
 * 0 or NULL: the default, in parentheses.
 * @listen, @nlisten: addresses for requests (all). @port (BL_FCP_PORT). @wd_port: of the group
 * (BL_FCP_WATCHDOG_PORT).
 * @group: multicast group of the arbiters, IPv6 or IPv4-mapped; unspecified: this one is alone, and
 * primary at once. Hosts may send requests to it, too. @group_if: its interface.
 * @rank: of this arbiter; lower ones take over first.
 * @endpoints, @nendpoints: index is the place in this list; the same in all arbiters and hosts.
 * @slot_ns (1230), @slot_bytes (1514). @lead_us: how long before its start a slot is given at the
 * latest (100); more if runs need longer and no other arbiter may take over (lead.h). @run_slots:
 * slots between two runs of the allocator (16). @late_us: of hosts (0): bounds what is led by.
 * @interval_us: of watchdogs (100). @dead_us (1000). @guard_us: a candidate waits that long (3
 * intervals).
 * @quota: slots that one endpoint may have waiting (65536). @rtt_us (200).
 * @secret: 0, 0: none.
 * @faults: address of the fault isolation service (none: nobody is believed). @links, @links_ctx:
 * told by comm of the list of links to be avoided, @n of them, whenever it is another one.
 * @clock: of slot numbers (CLOCK_TAI). @clock_offset_ns: added to it.
 * @threads: 1: one loop; 2: comm, and the rest; 3 and more: comm, allocation, paths (1). @cpus,
 * @ncpus: where the threads are pinned, in this order; 0: nowhere.
 * @spin: never sleep.
 */
struct bl_arb_cfg {
	struct in6_addr listen[BL_ARB_LISTEN_MAX];
	unsigned int nlisten;
	uint16_t port;
	uint16_t wd_port;
	struct in6_addr group;
	char group_if[16];
	uint32_t rank;
	const struct bl_arb_endpoint *endpoints;
	uint32_t nendpoints;
	uint32_t slot_ns;
	uint32_t slot_bytes;
	uint32_t lead_us;
	uint32_t late_us;
	uint32_t run_slots;
	uint32_t interval_us;
	uint32_t dead_us;
	uint32_t guard_us;
	uint32_t quota;
	uint32_t rtt_us;
	uint64_t secret[2];
	struct in6_addr faults;
	void (*links)(void *ctx, const struct bl_fcp_link *l, unsigned int n);
	void *links_ctx;
	clockid_t clock;
	bool clock_set; /* @clock is meant, even if it is 0 */
	int64_t clock_offset_ns;
	unsigned int threads;
	int cpus[2 + BL_ARB_PATHS_MAX];
	unsigned int ncpus;
	bool spin;
};

/**
 * struct bl_arb_row - one endpoint. @session: 1: there is one. The rest as in struct bl_fcp_arb
 * and struct bl_fcp_end.
 */
struct bl_arb_row {
	bool session;
	uint32_t waiting;
	uint64_t granted, refused, capped, resets, sessions, gone, stale;
	uint64_t packets[BL_FCP_R_COUNT];
	uint64_t sent, timeouts, nacks;
};

/**
 * struct bl_arb_total - the arbiter. @state: enum bl_fcp_state. @term, @takeovers, @yields,
 * @stalls: struct bl_wd.
 * @granted: slots put into ALLOCs. @stale: slots given to a session that had ended, and slots that
 * this arbiter had no right to give any more: not sent. @refunds: demands that the allocator
 * refused.
 * @late: slots whose lead was used up before their ALLOC was sent. @runs: of the allocator.
 * @skipped: slots never given because a run came too late.
 * @overrun: slots that had no room in the path stage: an allocator that gives more than it said.
 * @packets: requests by reason, those of unknown senders and in standby too; @watchdogs: the
 * group's. @send_failed: packets that a socket refused.
 * @unknown: last sender that is no endpoint; "": none.
 * @faults: packets of the fault isolation service by reason. @faults_version: of the list that it
 * sent; 0: none came. @faults_links: how many links are in it.
 */
struct bl_arb_total {
	uint32_t state, term;
	uint64_t takeovers, yields, stalls;
	uint64_t granted, stale, refunds, late, runs, skipped, overrun;
	uint64_t packets[BL_FCP_R_COUNT], watchdogs[BL_FCP_R_COUNT];
	uint64_t sent, send_failed;
	uint64_t faults[BL_FCP_R_COUNT];
	uint32_t faults_version, faults_links;
	char unknown[INET6_ADDRSTRLEN];
};

struct bl_arb;

/**
 * bl_arb_new - sockets, memory, threads' stages; nothing runs yet. @paths: one state for each path
 * thread; @pops NULL: no path stage. Returns 0 or -errno with @err.
 */
int bl_arb_new(struct bl_arb **out, const struct bl_arb_cfg *cfg, const struct arb_alloc_ops *aops,
	       void *alloc, const struct arb_path_ops *pops, void *const *paths,
	       struct bl_err *err);
/** bl_arb_run - until bl_arb_stop(). The calling thread is comm. Returns 0 or -errno. */
int bl_arb_run(struct bl_arb *a, struct bl_err *err);
void bl_arb_stop(struct bl_arb *a);
void bl_arb_free(struct bl_arb *a);

/** bl_arb_read - totals; and @rows of the first @n endpoints, if not NULL. */
void bl_arb_read(struct bl_arb *a, struct bl_arb_total *t, struct bl_arb_row *rows, uint32_t n);

/** bl_arb_table - hash of the list: what hosts compare. */
uint32_t bl_arb_table(const struct bl_arb_endpoint *e, uint32_t n);

/* config.c */
struct bl_fp_file;
/**
 * bl_arb_cfg_of - what a file (proto/fastpass_file.h) says for the arbiter of @rank, into a @cfg of
 * zeros. Returns 0 or -errno. Free with bl_arb_cfg_free().
 */
int bl_arb_cfg_of(struct bl_arb_cfg *cfg, const struct bl_fp_file *f, unsigned int rank,
		  struct bl_err *err);
void bl_arb_cfg_free(struct bl_arb_cfg *cfg);

/* status.c */
#define BL_ARB_DOOR "/arbiter-%llu-%u.sock" /* in BL_RUN_DIR: network namespace, rank */
/**
 * bl_arb_serve - a thread that answers `barline arbiter show` on a Unix socket, until
 * bl_arb_serve_end(): one JSON object to everybody who connects.
 */
struct bl_arb_status;
struct bl_engine;
int bl_arb_serve(struct bl_arb_status **out, struct bl_arb *a, const struct bl_fp_file *f,
		 struct bl_engine *e, unsigned int rank, struct bl_err *err);
void bl_arb_serve_end(struct bl_arb_status *d);
/**
 * bl_arb_text - What that thread answers: one JSON object on one line, from malloc(); NULL if
 * memory is short. @len: set to its length.
 */
char *bl_arb_text(struct bl_arb *a, const struct bl_fp_file *f, struct bl_engine *e,
		  unsigned int rank, size_t *len);

#endif
