/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the arbiters and hosts of a Fastpass network agree on: one YAML file, the same on all of
 *them.
 *
 *	rate: 10gbit			# of a link of capacity 1; with slot_bytes it gives the
 *slot's length, here 1230 ns with 1 % to spare arbiters: [10.0.0.250, 10.0.0.251]	# by rank:
 *the first rules unless it is dead group: 239.7.7.7		# where arbiters hear each other
 *policy: weighted paths: 2			# between racks; then there are routers between, and
 *routed: true routed: true endpoints:
 *	  - { name: h1, addr: 10.0.0.1, mac: 02:c4:00:01:00:00, rack: 0 }
 *	  - { name: h2, addr: 10.0.0.2, mac: 02:c4:00:02:00:00, rack: 1 }
 *
 *	pairs:
 *	  - { from: h1, to: h2, weight: 4 }	# four times the share of others
 *
 * An endpoint's number is its place in the list. @addr is where its daemon speaks FCP from; @mac is
 *where frames for it go to: its bl0. Where routers are between, every frame goes to the router's,
 *and @apps are the addresses that applications have there: apps: [10.1.0.1, fd01::1].
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

/**
 * struct bl_fp_peer - an endpoint. @addr: IPv6 or IPv4-mapped. @has_mac: @mac was given. @cap:
 * packets per slot of its link. @app, @napps: addresses of its bl0.
 * @weight: share of what it sends, for policy weighted (1). @deadline_us: what it sends should
 * leave within that time, for policy deadline; 0: when nothing is more urgent.
 */
struct bl_fp_peer {
	char name[32];
	uint8_t addr[16];
	uint8_t mac[6];
	bool has_mac;
	uint16_t rack;
	uint16_t cap;
	uint8_t app[BL_FP_APPS_MAX][16];
	unsigned int napps;
	uint32_t weight, deadline_us;
};

/**
 * struct bl_fp_pair - what is different from @src to @dst: @weight and @deadline_us as in struct
 * bl_fp_peer; 0: as for all that @src sends.
 */
struct bl_fp_pair {
	uint16_t src, dst;
	uint32_t weight, deadline_us;
};

/**
 * struct bl_fp_file - the file. 0: the default, in parentheses.
 * @slot_ns: of a slot. @slot_bytes: bytes of frame in it (1514).
 * @arbiter, @narbiters: addresses by rank. @group, @has_group: multicast group of watchdogs, IPv6
 *or IPv4-mapped; without one there is one arbiter.
 * @policy: number of an allocator's policy (arbiter/alloc/alloc.h). @window_slots: 8 to 512
 *(bl_fp_times()).
 * @lead_us, @run_slots, @watchdog_us, @dead_us, @guard_us, @quota, @rtt_us: as in struct
 *bl_arb_cfg.
 * @rack_up: packets per slot between a rack and the rest; 0: as many as its endpoints have.
 * @paths: between racks; 0: no path selection. @path_cap: packets per slot on a path, out of a rack
 *(as many as needed for @rack_up).
 * @pod_of, @npods: three tiers: pod of each rack; NULL: two tiers. Then a path is one of @paths
 *aggregation switches in each pod (which have the same numbers in all pods), and, to another pod,
 *one of the
 *	@cores core switches that belong to that number: path = aggregation switch x @cores + core.
 *@core_cap: packets per slot between an aggregation switch and a core (as many as its racks send).
 *@euler: by Euler splits instead of greedily. @routed: destinations are known by @app.
 * @pair, @npairs: by source, then destination; each once.
 * @faults, @has_faults: address of the fault isolation service. @fault_report_us: time between two
 *reports of a host (10000). @fault_settle_us: a frame that has not arrived so long after it was
 *sent is lost (2000). @fault_frames: fewer say nothing about a path (50). @fault_percent: a path
 *that loses fewer of a hundred is not broken (1). @fault_hold_ms: how long a broken link is avoided
 *before it is tried again (5000). @path_name, @npath_names: of the paths' switches, for people.
 * @fallback_ms: host: frames go without slots when no arbiter has answered for that long (1000);
 *	BL_FP_NO_FALLBACK: never, which the file calls 0.
 * @late_us: host: how long after its slot's begin a frame may leave (bl_fp_times()). @field: how
 *paths travel. @udp_ports: source port of path 0 for BL_FIELD_UDP; path k is k above it (49152).
 */
struct bl_fp_file {
	uint64_t secret[2];
	uint64_t rate_bps;
	uint32_t slot_ns, slot_bytes;
	uint8_t arbiter[BL_FP_ARBITERS_MAX][16];
	unsigned int narbiters;
	uint8_t group[16];
	bool has_group;
	unsigned int policy;
	uint32_t window_slots, lead_us, run_slots, watchdog_us, dead_us, guard_us, quota, rtt_us;
	uint32_t rack_up, paths, path_cap, cores, core_cap;
	uint16_t *pod_of;
	unsigned int npods;
	bool euler, routed;
	uint32_t late_us, fallback_ms;
	enum bl_path_field field;
	uint16_t udp_ports;
	uint8_t faults[16];
	bool has_faults;
	uint32_t fault_report_us, fault_settle_us, fault_frames, fault_percent, fault_hold_ms;
	char (*path_name)[32];
	unsigned int npath_names;
	struct bl_fp_peer *peer;
	unsigned int npeers, nracks;
	struct bl_fp_pair *pair;
	unsigned int npairs;
};

/**
 * bl_fp_load - reads and checks it. Returns 0 or -errno with file and line in @err. Free with
 * bl_fp_free().
 */
int bl_fp_load(struct bl_fp_file *f, const char *path, struct bl_err *err);
/** bl_fp_defaults - fills in what is 0. Returns 0, or -errno: the numbers do not go together. */
int bl_fp_defaults(struct bl_fp_file *f, struct bl_err *err);
/**
 * bl_fp_times - the defaults that follow from the slot's length, for what is 0. What is given
 * ahead, how often, and how late it may be used is a matter of time, so slow links, whose slots are
 * long, get fewer slots. Example: slots of 1230 ns: a window of 128 and a run every 16; of 50 us:
 * 16 (800 us) and 2.
 */
void bl_fp_times(struct bl_fp_file *f);
void bl_fp_free(struct bl_fp_file *f);
/** bl_fp_find - number of the endpoint with that address; -1: none. */
int bl_fp_find(const struct bl_fp_file *f, const uint8_t addr[16]);

/** bl_fp_key - how hosts know a destination with that IP address (maps/hold_abi.h). */
void bl_fp_key(const uint8_t addr[16], struct bl_mac_key *key);

/** bl_fp_ways - how many path numbers there are. */
static inline uint32_t bl_fp_ways(const struct bl_fp_file *f)
{
	return f->npods ? f->paths * f->cores : f->paths;
}

/** bl_fp_pair_find - what is different from @src to @dst; NULL: nothing. */
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

/** bl_fp_table - hash of the list of endpoints (bl_fcp_table()). */
uint32_t bl_fp_table(const struct bl_fp_file *f);
const char *bl_fp_field_name(unsigned int field);
/**
 * bl_fp_addr_text - IPv6 or IPv4-mapped address as text; @buf has 46 bytes. bl_fp_addr_parse -
 * back.
 */
char *bl_fp_addr_text(const uint8_t addr[16], char *buf);
bool bl_fp_addr_parse(const char *s, uint8_t addr[16]);
/** bl_fp_sa - the same as a socket's address. Returns its length. */
socklen_t bl_fp_sa(struct sockaddr_storage *s, const uint8_t addr[16], uint16_t port);

#endif
