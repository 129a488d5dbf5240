/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the arbiters and hosts of a Fastpass network agree on: one YAML file, the same on all of
 * them.
 *
 *	rate: 10gbit		# of a link of capacity 1; with slot_bytes it gives the length of a
 *				# slot, here 1230 ns with 1 % to spare
 *	arbiters: [10.0.0.250, 10.0.0.251]	# by rank: the first one alive rules
 *	group: 239.7.7.7	# where arbiters hear each other
 *	policy: weighted
 *	paths: 2		# between racks, so there are routers between
 *	routed: true
 *	endpoints:
 *	  - { name: h1, addr: 10.0.0.1, mac: 02:c4:00:01:00:00, rack: 0 }
 *	  - { name: h2, addr: 10.0.0.2, mac: 02:c4:00:02:00:00, rack: 1 }
 *	pairs:
 *	  - { from: h1, to: h2, weight: 4 }	# four times the share of others
 *
 * The number of an endpoint is its place in the list. `addr` is the address from which its daemon
 * speaks FCP; `mac` is where frames for it go, its bl0. Where there are routers between, every
 *frame goes to the router's MAC address, and `apps` has the addresses that applications use there:
 *apps: [10.1.0.1, fd01::1].
 */
#ifndef BARLINE_FASTPASS_FILE_H
#define BARLINE_FASTPASS_FILE_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/log.h"
#include "maps/hold_abi.h"

#define BL_FP_ARBITERS_MAX 4
#define BL_FP_APPS_MAX     4
#define BL_FP_NO_FALLBACK  UINT32_MAX

/** struct bl_fp_peer - an endpoint. A number that is 0 is the default, in parentheses. */
struct bl_fp_peer {
	char name[32];
	uint8_t addr[16]; /* IPv6 or IPv4-mapped */
	uint8_t mac[6];
	bool has_mac; /* @mac was given */
	uint16_t rack;
	uint16_t cap;                    /* packets per slot of its link (1) */
	uint8_t app[BL_FP_APPS_MAX][16]; /* addresses of its bl0 */
	unsigned int napps;
	uint32_t weight; /* policy weighted: share of what it sends (1) */
	/* policy deadline: what it sends should leave within that time; 0: no deadline, so last */
	uint32_t deadline_us;
};

/** struct bl_fp_pair - what differs for frames from @src to @dst; 0: as for all frames of @src. */
struct bl_fp_pair {
	uint16_t src, dst; /* numbers of endpoints */
	uint32_t weight, deadline_us;
};

/** struct bl_fp_file - the file. A number that is 0 is the default, in parentheses. */
struct bl_fp_file {
	uint64_t secret[2];
	uint64_t rate_bps;   /* of a link of capacity 1 */
	uint32_t slot_ns;    /* length of a slot (from @rate_bps and @slot_bytes, else 1230) */
	uint32_t slot_bytes; /* bytes of frame in a slot (1514) */
	uint8_t arbiter[BL_FP_ARBITERS_MAX][16]; /* addresses by rank */
	unsigned int narbiters;
	uint8_t group[16];     /* multicast group of watchdogs; IPv6 or IPv4-mapped */
	bool has_group;        /* false: there is one arbiter */
	unsigned int policy;   /* enum bl_alloc_policy (fastpass_limits.h) */
	uint32_t window_slots; /* 8 to 512 (bl_fp_times()) */
	/* as in struct bl_arb_cfg */
	uint32_t lead_us, run_slots, watchdog_us, dead_us, guard_us, quota, rtt_us;
	uint32_t rack_up;  /* packets per slot between a rack and the rest (its endpoints' sum) */
	uint32_t paths;    /* between racks; 0: no path selection */
	uint32_t path_cap; /* packets per slot on a path, out of a rack (as @rack_up needs) */
	/*
	 * Three tiers: a path is one of the @paths aggregation switches of each pod, which have the
	 * same numbers in all pods, and, to another pod, one of the @cores core switches that
	 * belong to that number: path = aggregation switch x @cores + core.
	 */
	uint32_t cores;
	uint32_t core_cap; /* packets per slot between an aggregation switch and a core (all) */
	uint16_t *pod_of;  /* pod of each rack; NULL: two tiers */
	unsigned int npods;
	bool euler;       /* paths are assigned by Euler splits, not greedily */
	bool routed;      /* destinations are known by bl_fp_peer.app */
	uint32_t late_us; /* host: how long after its slot begins a frame may leave (bl_fp_times())
			   */
	/*
	 * host: frames go without slots when no arbiter has answered for that long (1000);
	 * BL_FP_NO_FALLBACK: never, which the file calls 0
	 */
	uint32_t fallback_ms;
	enum bl_path_field field; /* how a frame carries its path */
	/* BL_FIELD_UDP: source port of path 0; path k is k above it (49152) */
	uint16_t udp_ports;
	uint8_t faults[16]; /* address of the fault isolation service */
	bool has_faults;
	uint32_t fault_report_us; /* time between two reports of a host (10000) */
	uint32_t fault_settle_us; /* a frame that has not arrived by then is lost (2000) */
	uint32_t fault_frames;    /* fewer frames say nothing about a path (50) */
	uint32_t fault_percent;   /* a path that loses a smaller part is not broken (1) */
	uint32_t fault_hold_ms;   /* a broken link is avoided for so long (5000) */
	char (*path_name)[32];    /* of the paths' switches, for people */
	unsigned int npath_names;
	struct bl_fp_peer *peer;
	unsigned int npeers, nracks;
	struct bl_fp_pair *pair; /* by source, then destination; each once */
	unsigned int npairs;
};

/**
 * bl_fp_load - reads and validates the file. Free with bl_fp_free(). Returns 0, or -errno with file
 * and line in @err.
 */
int bl_fp_load(struct bl_fp_file *f, const char *path, struct bl_err *err);

/** bl_fp_defaults - fills in what is 0. Returns 0, or -errno if the numbers do not fit together. */
int bl_fp_defaults(struct bl_fp_file *f, struct bl_err *err);

/**
 * bl_fp_times - fills in the defaults that follow from the length of a slot. How far ahead slots
 * are given, how often, and how late they may be used are matters of time, so slow links, whose
 * slots are long, get fewer slots. Example: with slots of 1230 ns a window of 128 slots and a run
 * every 16 slots; with slots of 50 us a window of 16 (800 us) and a run every 2.
 */
void bl_fp_times(struct bl_fp_file *f);
void bl_fp_free(struct bl_fp_file *f);

/** bl_fp_find - returns the number of the endpoint with that address; -1: none. */
int bl_fp_find(const struct bl_fp_file *f, const uint8_t addr[16]);

/** bl_fp_key - the key of a destination with that IP address on a host (maps/hold_abi.h). */
void bl_fp_key(const uint8_t addr[16], struct bl_mac_key *key);

/** bl_fp_ways - returns how many path numbers there are. */
static inline uint32_t bl_fp_ways(const struct bl_fp_file *f)
{
	return f->npods ? f->paths * f->cores : f->paths;
}

/** bl_fp_pair_find - what differs for frames from @src to @dst; NULL: nothing. */
static inline const struct bl_fp_pair *bl_fp_pair_find(const struct bl_fp_file *f, uint32_t src,
						       uint32_t dst)
{
	unsigned int from = 0, to = f->npairs;

	while (from < to) {
		unsigned int mid = from + (to - from) / 2;
		const struct bl_fp_pair *p = &f->pair[mid];

		if (p->src == src && p->dst == dst)
			return p;
		if (p->src < src || (p->src == src && p->dst < dst))
			from = mid + 1;
		else
			to = mid;
	}
	return NULL;
}

/** bl_fp_table - returns a hash of the list of endpoints (bl_fcp_table()). */
uint32_t bl_fp_table(const struct bl_fp_file *f);

const char *bl_fp_field_name(unsigned int field);

/** bl_fp_addr_text - writes an IPv6 or IPv4-mapped address to @buf, 46 bytes. Returns @buf. */
char *bl_fp_addr_text(const uint8_t addr[16], char *buf);

/** bl_fp_addr_parse - the reverse of bl_fp_addr_text(). Returns false if @s is no address. */
bool bl_fp_addr_parse(const char *s, uint8_t addr[16]);

/** bl_fp_sa - makes a socket address. Returns its length. */
socklen_t bl_fp_sa(struct sockaddr_storage *s, const uint8_t addr[16], uint16_t port);

#endif
