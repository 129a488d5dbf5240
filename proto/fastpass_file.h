/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The configuration that the arbiters and hosts of a Fastpass network share: one YAML file, which
 * must be the same on all of them.
 *
 *	rate: 10gbit		# of a link of capacity 1. With slot_bytes it determines the length
 *				# of a slot: here 1255 ns, a full frame on the wire and 2 %
 *	arbiters: [10.0.0.250, 10.0.0.251]	# by rank: the first one alive is the primary
 *	group: 239.7.7.7	# multicast group of the arbiters' watchdogs
 *	policy: weighted
 *	paths: 2		# between racks, which are connected by routers
 *	routed: true
 *	endpoints:
 *	  - { name: h1, addr: 10.0.0.1, mac: 02:c4:00:01:00:00, rack: 0 }
 *	  - { name: h2, addr: 10.0.0.2, mac: 02:c4:00:02:00:00, rack: 1 }
 *	pairs:
 *	  - { from: h1, to: h2, weight: 4 }	# four times the share of others
 *
 * The number of an endpoint is its place in the list. `addr` is the address from which its daemon
 * speaks FCP; `mac` is the MAC address of its bl0, to which frames are sent. With `routed`, every
 * frame is sent to the MAC address of a router, and `apps` has the IP addresses of bl0, as in
 * "apps: [10.1.0.1, fd01::1]".
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

/** struct bl_fp_peer - An endpoint. The number 0 stands for the default in parentheses. */
struct bl_fp_peer {
	char name[32];
	uint8_t addr[16]; /* IPv6 or IPv4-mapped */
	uint8_t mac[6];
	bool has_mac; /* @mac was given */
	uint16_t rack;
	uint16_t cap;                    /* packets per slot of its link (1) */
	uint8_t app[BL_FP_APPS_MAX][16]; /* addresses of its bl0 */
	unsigned int napps;
	uint32_t weight; /* policy weighted: weight of its flows (1) */
	/*
	 * policy deadline: its packets should leave within that time after they are requested; 0:
	 * no deadline, and packets without a deadline come last
	 */
	uint32_t deadline_us;
};

/**
 * struct bl_fp_pair - Settings of frames from @src to @dst that differ from those of @src. The
 * number 0 stands for the setting of @src.
 */
struct bl_fp_pair {
	uint16_t src, dst; /* numbers of endpoints */
	uint32_t weight, deadline_us;
};

/** struct bl_fp_file - The file. The number 0 stands for the default in parentheses. */
struct bl_fp_file {
	uint64_t secret[2];  /* key of the checksum; (0, 0): none */
	bool insecure;       /* the file says that there is no secret */
	uint64_t rate_bps;   /* of a link of capacity 1 */
	uint32_t slot_ns;    /* length of a slot (from @rate_bps and @slot_bytes, else 1230) */
	uint32_t slot_bytes; /* bytes of frame in a slot (1514) */
	uint8_t arbiter[BL_FP_ARBITERS_MAX][16]; /* addresses by rank */
	unsigned int narbiters;
	uint8_t group[16];     /* multicast group of watchdogs; IPv6 or IPv4-mapped */
	bool has_group;        /* false is allowed only with a single arbiter */
	unsigned int policy;   /* enum bl_alloc_policy (fastpass_limits.h) */
	uint32_t window_slots; /* 8 to 512 (bl_fp_times()) */
	/* as in struct bl_arb_cfg */
	uint32_t lead_us, run_slots, watchdog_us, dead_us, guard_us, quota, rtt_us;
	/* packets per slot between a rack and the rest (the sum of its endpoints) */
	uint32_t rack_up;
	uint32_t paths; /* between racks; 0: no path selection */
	/* packets per slot on a path, out of a rack (as many as @rack_up needs) */
	uint32_t path_cap;
	/*
	 * Three tiers: a path is one of the @paths aggregation switches of each pod, which have the
	 * same numbers in all pods, and, to another pod, one of the @cores core switches that
	 * belong to that number: path = aggregation switch x @cores + core.
	 */
	uint32_t cores;
	/* packets per slot between an aggregation switch and a core (as many as needed) */
	uint32_t core_cap;
	uint16_t *pod_of; /* pod of each rack; NULL: two tiers */
	unsigned int npods;
	bool euler;  /* paths are assigned by Euler splits, not greedily */
	bool routed; /* destinations are recognised by bl_fp_peer.app */
	/* host: how long after its slot begins a frame may leave (bl_fp_times()) */
	uint32_t late_us;
	/*
	 * host: frames leave without slots when no arbiter has answered for that long (1000);
	 * BL_FP_NO_FALLBACK, which is 0 in the file: never
	 */
	uint32_t fallback_ms;
	enum bl_path_field field; /* how a frame carries its path */
	/* BL_FIELD_UDP: source port of path 0; that of path k is greater by k (49152) */
	uint16_t udp_ports;
	uint8_t faults[16]; /* address of the fault isolation service */
	bool has_faults;
	uint32_t fault_report_us; /* time between two reports of a host (10000) */
	uint32_t fault_settle_us; /* a frame that has not arrived by then is lost (2000) */
	uint32_t fault_frames;    /* a path with fewer frames is not judged (50) */
	uint32_t fault_percent;   /* a path that loses a smaller percentage is not broken (1) */
	uint32_t fault_hold_ms;   /* how long a broken link is avoided at first (5000) */
	char (*path_name)[32];    /* names of the paths' switches, for display */
	unsigned int npath_names;
	struct bl_fp_peer *peer;
	unsigned int npeers, nracks;
	struct bl_fp_pair *pair; /* by source, then destination; each once */
	unsigned int npairs;
};

/**
 * bl_fp_secret_make - Writes a new random secret, 32 hex digits, to a new file that only its owner
 * can read, for the key secret_file. Returns 0 or -errno; -EEXIST: there is such a file already.
 */
int bl_fp_secret_make(const char *path, struct bl_err *err);

/**
 * bl_fp_load - Reads and validates the file. The caller frees @f with bl_fp_free(). Returns 0, or
 * -errno with the file and the line in @err.
 */
int bl_fp_load(struct bl_fp_file *f, const char *path, struct bl_err *err);

/**
 * bl_fp_defaults - Replaces zeros by defaults. Returns 0, or -errno if the numbers contradict each
 * other.
 */
int bl_fp_defaults(struct bl_fp_file *f, struct bl_err *err);

/**
 * bl_fp_times - Sets the defaults that follow from the length of a slot. How far ahead slots are
 * given, how often, and how late they may be used are limited in time, so slow links, whose slots
 * are long, get fewer slots. Example: with slots of 1230 ns a window of 128 slots and a run every
 * 16 slots; with slots of 50 us a window of 16 slots (800 us) and a run every 8.
 */
void bl_fp_times(struct bl_fp_file *f);
/** bl_fp_free - Frees what @f points to. */
void bl_fp_free(struct bl_fp_file *f);

/** bl_fp_find - Returns the number of the endpoint with that address, or -1 if there is none. */
int bl_fp_find(const struct bl_fp_file *f, const uint8_t addr[16]);

/** bl_fp_key - Makes the key of a destination IP address in a host's maps (maps/hold_abi.h). */
void bl_fp_key(const uint8_t addr[16], struct bl_mac_key *key);

/** bl_fp_ways - Returns the number of paths that frames can name. */
static inline uint32_t bl_fp_ways(const struct bl_fp_file *f)
{
	return f->npods ? f->paths * f->cores : f->paths;
}

/** bl_fp_pair_find - Returns the settings of the pair from @src to @dst, or NULL if it has none. */
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

/** bl_fp_table - Returns a hash of the list of endpoints (bl_fcp_table()). */
uint32_t bl_fp_table(const struct bl_fp_file *f);

/** bl_fp_field_name - Returns the name of an enum bl_path_field, or "?". */
const char *bl_fp_field_name(unsigned int field);

/** bl_fp_addr_text - Writes an IPv6 or IPv4-mapped address to @buf (46 bytes). Returns @buf. */
char *bl_fp_addr_text(const uint8_t addr[16], char *buf);

/** bl_fp_addr_parse - Inverse of bl_fp_addr_text(). Returns false if @s is not an address. */
bool bl_fp_addr_parse(const char *s, uint8_t addr[16]);

#endif
