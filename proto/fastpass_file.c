// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The file that arbiters and hosts share: fastpass_file.h has an example. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rate.h"
#include "base/yaml.h"
#include "core/fastpass/fcp_core.h"
#include "core/length_core.h"
#include "maps/fastpass_abi.h"
#include "proto/fastpass_file.h"
#include "proto/fastpass_limits.h"

/*
 * by default, if it is 8 slots or more: a newcomer waits that long, at most, for its part of a busy
 * link
 */
#define WINDOW_MAX_NS   1000000ULL
#define RUN_MAX_NS      100000ULL
#define RUN_MIN_SLOTS   8 /* a run is an ALLOC to each host: more of them fill a slow link */
#define LEAD_SLOTS      2 /* an ALLOC may wait for a frame at each of two links */
#define LATE_SLOTS      2
#define RTT_US          200
#define RTT_SLOTS       8    /* who waits half of it to acknowledge mostly has something to send */
#define OVERHEAD        1.02 /* a slot's length by its frame's: the rest is for FCP and beacons */
#define FALLBACK_MS     1000U
#define FALLBACK_MAX_MS 3600000U
#define FALLBACK_DEATHS 4ULL /* a host gives its arbiters time to follow each other */
#define SLOT_MAX        (65535 - BL_WIRE_EXTRA) /* a host counts what is left of a slot in 16 bits */
/* from the oldest slot that may be late to the last one given: a host's ring has words of 64 */
#define HOST_SLOTS (BL_FP_SLOTS - 64)

struct yaml_peer {
	char *name, *addr, *mac, **apps;
	unsigned int apps_count;
	uint16_t rack, cap;
	uint32_t weight, deadline_us;
};

struct yaml_pair {
	char *from, *to;
	uint32_t weight, deadline_us;
};

struct yaml_fp {
	char *rate;
	uint32_t slot_ns, slot_bytes;
	char **arbiters;
	unsigned int arbiters_count;
	char *group, *secret, *faults;
	char **path_names;
	unsigned int path_names_count;
	uint32_t fault_report_us, fault_settle_us, fault_frames, fault_percent, fault_hold_ms;
	uint8_t policy, field, how;
	uint32_t window_slots, lead_us, run_slots, watchdog_us, dead_us, guard_us, quota, rtt_us,
		rack_up, paths, path_cap, cores, core_cap, late_us;
	uint32_t *fallback_ms;
	uint16_t udp_ports;
	bool routed;
	struct yaml_peer *endpoints;
	unsigned int endpoints_count;
	uint16_t *pods;
	unsigned int pods_count;
	struct yaml_pair *pairs;
	unsigned int pairs_count;
};

#define POLICY(sym, name, text) { name, BL_ALLOC_##sym },
static const cyaml_strval_t policies[] = { BL_ALLOC_POLICIES(POLICY) };
#undef POLICY
#define FIELD(sym, name, text) { name, BL_FIELD_##sym },
static const cyaml_strval_t path_fields[] = { BL_PATH_FIELDS(FIELD) };
#undef FIELD
static const cyaml_strval_t hows[] = { { "greedy", 0 }, { "euler", 1 } };

#define OPT  (CYAML_FLAG_OPTIONAL)
#define ENUM (CYAML_FLAG_STRICT)

static const cyaml_schema_value_t name_value = { CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1,
								    31) };
static const cyaml_schema_value_t addr_value = { CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 2,
								    45) };
static const cyaml_schema_field_t peer_fields[] = {
	CYAML_FIELD_STRING_PTR("name", OPT | CYAML_FLAG_POINTER, struct yaml_peer, name, 1, 31),
	CYAML_FIELD_STRING_PTR("addr", CYAML_FLAG_POINTER, struct yaml_peer, addr, 2, 45),
	CYAML_FIELD_STRING_PTR("mac", OPT | CYAML_FLAG_POINTER, struct yaml_peer, mac, 17, 17),
	CYAML_FIELD_UINT("rack", OPT, struct yaml_peer, rack),
	CYAML_FIELD_UINT("cap", OPT, struct yaml_peer, cap),
	CYAML_FIELD_UINT("weight", OPT, struct yaml_peer, weight),
	CYAML_FIELD_UINT("deadline_us", OPT, struct yaml_peer, deadline_us),
	CYAML_FIELD_SEQUENCE("apps", OPT | CYAML_FLAG_POINTER, struct yaml_peer, apps, &addr_value,
			     1, BL_FP_APPS_MAX),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t peer_value = { CYAML_VALUE_MAPPING(
	CYAML_FLAG_DEFAULT, struct yaml_peer, peer_fields) };

static const cyaml_schema_field_t pair_fields[] = {
	CYAML_FIELD_STRING_PTR("from", CYAML_FLAG_POINTER, struct yaml_pair, from, 1, 45),
	CYAML_FIELD_STRING_PTR("to", CYAML_FLAG_POINTER, struct yaml_pair, to, 1, 45),
	CYAML_FIELD_UINT("weight", OPT, struct yaml_pair, weight),
	CYAML_FIELD_UINT("deadline_us", OPT, struct yaml_pair, deadline_us), CYAML_FIELD_END
};
static const cyaml_schema_value_t pair_value = { CYAML_VALUE_MAPPING(
	CYAML_FLAG_DEFAULT, struct yaml_pair, pair_fields) };

static const cyaml_schema_value_t pod_value = { CYAML_VALUE_UINT(CYAML_FLAG_DEFAULT, uint16_t) };

#define NUMBER(name) CYAML_FIELD_UINT(#name, OPT, struct yaml_fp, name)
static const cyaml_schema_field_t fields[] = {
	CYAML_FIELD_STRING_PTR("rate", OPT | CYAML_FLAG_POINTER, struct yaml_fp, rate, 1, 31),
	NUMBER(slot_ns),
	NUMBER(slot_bytes),
	CYAML_FIELD_SEQUENCE("arbiters", CYAML_FLAG_POINTER, struct yaml_fp, arbiters, &addr_value,
			     1, BL_FP_ARBITERS_MAX),
	CYAML_FIELD_STRING_PTR("group", OPT | CYAML_FLAG_POINTER, struct yaml_fp, group, 2, 45),
	CYAML_FIELD_STRING_PTR("secret", OPT | CYAML_FLAG_POINTER, struct yaml_fp, secret, 1, 32),
	CYAML_FIELD_ENUM("policy", OPT | ENUM, struct yaml_fp, policy, policies,
			 CYAML_ARRAY_LEN(policies)),
	NUMBER(window_slots),
	NUMBER(lead_us),
	NUMBER(run_slots),
	NUMBER(watchdog_us),
	NUMBER(dead_us),
	NUMBER(guard_us),
	NUMBER(quota),
	NUMBER(rtt_us),
	NUMBER(rack_up),
	NUMBER(paths),
	NUMBER(path_cap),
	NUMBER(cores),
	NUMBER(core_cap),
	NUMBER(late_us),
	NUMBER(udp_ports),
	CYAML_FIELD_UINT_PTR("fallback_ms", OPT | CYAML_FLAG_POINTER, struct yaml_fp, fallback_ms),
	CYAML_FIELD_STRING_PTR("faults", OPT | CYAML_FLAG_POINTER, struct yaml_fp, faults, 2, 45),
	NUMBER(fault_report_us),
	NUMBER(fault_settle_us),
	NUMBER(fault_frames),
	NUMBER(fault_percent),
	NUMBER(fault_hold_ms),
	CYAML_FIELD_SEQUENCE("path_names", OPT | CYAML_FLAG_POINTER, struct yaml_fp, path_names,
			     &name_value, 1, BL_PATH_PATHS_MAX),
	CYAML_FIELD_BOOL("routed", OPT, struct yaml_fp, routed),
	CYAML_FIELD_ENUM("path_selection", OPT | ENUM, struct yaml_fp, how, hows,
			 CYAML_ARRAY_LEN(hows)),
	CYAML_FIELD_ENUM("path_field", OPT | ENUM, struct yaml_fp, field, path_fields,
			 CYAML_ARRAY_LEN(path_fields)),
	CYAML_FIELD_SEQUENCE("endpoints", CYAML_FLAG_POINTER, struct yaml_fp, endpoints,
			     &peer_value, 1, BL_FCP_ENDPOINTS_MAX),
	CYAML_FIELD_SEQUENCE("pods", OPT | CYAML_FLAG_POINTER, struct yaml_fp, pods, &pod_value, 1,
			     BL_PATH_RACKS_MAX),
	CYAML_FIELD_SEQUENCE("pairs", OPT | CYAML_FLAG_POINTER, struct yaml_fp, pairs, &pair_value,
			     1, 1 << 20),
	CYAML_FIELD_END
};
static const cyaml_schema_value_t top = { CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct yaml_fp,
							      fields) };

char *bl_fp_addr_text(const uint8_t addr[16], char *buf)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)addr);

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? addr + 12 : addr, buf, INET6_ADDRSTRLEN);
	return buf;
}

bool bl_fp_addr_parse(const char *s, uint8_t addr[16])
{
	memset(addr, 0, 16);
	if (strchr(s, ':'))
		return inet_pton(AF_INET6, s, addr) == 1;
	addr[10] = addr[11] = 0xff;
	return inet_pton(AF_INET, s, addr + 12) == 1;
}

socklen_t bl_fp_sa(struct sockaddr_storage *s, const uint8_t addr[16], uint16_t port)
{
	struct sockaddr_in *in = (void *)s;
	struct sockaddr_in6 *in6 = (void *)s;

	memset(s, 0, sizeof(*s));
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)addr)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, addr + 12, 4);
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, addr, 16);
	return sizeof(*in6);
}

const char *bl_fp_field_name(unsigned int field)
{
	return field < BL_FIELD_COUNT ? path_fields[field].str : "?";
}

int bl_fp_find(const struct bl_fp_file *f, const uint8_t addr[16])
{
	unsigned int i;

	for (i = 0; i < f->npeers; i++)
		if (!memcmp(f->peer[i].addr, addr, 16))
			return (int)i;
	return -1;
}

void bl_fp_key(const uint8_t addr[16], struct bl_mac_key *key)
{
	memset(key, 0, sizeof(*key));
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)addr)) {
		memcpy(key->mac + 2, addr + 12, 4);
		key->kind = 4;
		return;
	}
	memcpy(key->upper, addr, sizeof(key->upper));
	memcpy(key->mac, addr + sizeof(key->upper), sizeof(key->mac));
	key->kind = 6;
}

uint32_t bl_fp_table(const struct bl_fp_file *f)
{
	uint8_t *all = malloc(16 * (f->npeers + 1));
	uint32_t table = 0;
	unsigned int i;

	for (i = 0; all && i < f->npeers; i++)
		memcpy(all + 16 * i, f->peer[i].addr, 16);
	if (all)
		table = bl_fcp_table(all, f->npeers);
	free(all);
	return table;
}

void bl_fp_free(struct bl_fp_file *f)
{
	free(f->peer);
	free(f->path_name);
	free(f->pair);
	free(f->pod_of);
	f->peer = NULL;
	f->pair = NULL;
	f->pod_of = NULL;
	f->path_name = NULL;
	f->npeers = f->npath_names = f->npairs = f->npods = 0;
}

static void or_else(uint32_t *v, uint32_t dflt)
{
	if (!*v)
		*v = dflt;
}

static uint64_t fallback_least(const struct bl_fp_file *f)
{
	return (FALLBACK_DEATHS * f->dead_us + 999) / 1000;
}

static uint64_t slots_us(const struct bl_fp_file *f, uint32_t slots)
{
	return ((uint64_t)slots * f->slot_ns + 999) / 1000;
}

void bl_fp_times(struct bl_fp_file *f)
{
	uint32_t window = 128, ahead, share, spare;
	uint64_t run;

	while (window > 8 && (uint64_t)window * f->slot_ns > WINDOW_MAX_NS)
		window /= 2;
	or_else(&f->window_slots, window);
	run = (RUN_MAX_NS + f->slot_ns / 2) / f->slot_ns;
	or_else(&f->run_slots,
		(uint32_t)bl_max64(RUN_MIN_SLOTS, bl_min64(bl_min64(16, f->window_slots), run)));
	/* of fast links 100 us are more slots than a host's ring has place for */
	spare = f->window_slots < HOST_SLOTS && f->run_slots < HOST_SLOTS - f->window_slots
			? (HOST_SLOTS - f->window_slots - f->run_slots) / 2
			: 0;
	share = (uint32_t)bl_max64(1, bl_min64(100, (uint64_t)spare * f->slot_ns / 1000));
	or_else(&f->lead_us, (uint32_t)bl_max64(share, slots_us(f, LEAD_SLOTS)));
	or_else(&f->watchdog_us, 100);
	/* what was given must have ended before another arbiter may rule */
	ahead = f->lead_us + (uint32_t)((f->window_slots + 1ULL) * f->slot_ns / 1000);
	or_else(&f->dead_us, (uint32_t)bl_max64(1000, ahead + 5ULL * f->watchdog_us));
	or_else(&f->fallback_ms, (uint32_t)bl_max64(FALLBACK_MS, fallback_least(f)));
	/* as much as a meter catches up by: what is sent later stays in its queue */
	or_else(&f->late_us, (uint32_t)bl_max64(share, slots_us(f, LATE_SLOTS)));
	or_else(&f->rtt_us, (uint32_t)bl_max64(RTT_US, slots_us(f, RTT_SLOTS)));
}

/*
 * Three tiers: what a pod's racks send by one aggregation switch, the cores of that number must
 * carry.
 */
static int check_pods(struct bl_fp_file *f, struct bl_err *err)
{
	uint32_t *in_pod, most = 0;
	unsigned int i;

	if (!f->paths)
		return bl_fail(err, EINVAL,
			       "pods, but no paths; say how many aggregation switches a pod has");
	in_pod = calloc(f->npods, sizeof(*in_pod));
	if (!in_pod)
		return bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; i < f->nracks; i++)
		if (++in_pod[f->pod_of[i]] > most)
			most = in_pod[f->pod_of[i]];
	free(in_pod);
	most *= f->path_cap;
	or_else(&f->core_cap, (most + f->cores - 1) / f->cores);
	if ((uint64_t)f->core_cap * f->cores < most)
		return bl_fail(err, EINVAL,
			       "%u cores of %u packets per slot do not carry the %u that an "
			       "aggregation switch may have from its racks; lower path_cap or "
			       "raise core_cap",
			       f->cores, f->core_cap, most);
	return 0;
}

int bl_fp_defaults(struct bl_fp_file *f, struct bl_err *err)
{
	uint32_t most = 0, *sum;
	unsigned int i;

	or_else(&f->slot_bytes, 1514);
	/* a frame with 24 bytes of preamble, FCS and gap, and 2 % for what takes no slots */
	if (!f->slot_ns && f->rate_bps)
		f->slot_ns = (uint32_t)(bl_wire_bytes(f->slot_bytes) * OVERHEAD * 8e9 /
						(double)f->rate_bps +
					0.5);
	or_else(&f->slot_ns, 1230);
	if (f->slot_ns >= 100 && f->slot_ns <= 10000000)
		bl_fp_times(f);
	or_else(&f->quota, 1U << 16);
	or_else(&f->fault_report_us, 10000);
	or_else(&f->fault_settle_us, 2000);
	or_else(&f->fault_frames, 50);
	or_else(&f->fault_percent, 1);
	or_else(&f->fault_hold_ms, 5000);
	if (!f->udp_ports)
		f->udp_ports = 49152;
	f->nracks = 0;
	for (i = 0; i < f->npeers; i++) {
		if (!f->peer[i].cap)
			f->peer[i].cap = 1;
		or_else(&f->peer[i].weight, 1);
		if (f->peer[i].rack >= f->nracks)
			f->nracks = f->peer[i].rack + 1U;
	}
	if (!f->npeers || f->npeers > BL_FCP_ENDPOINTS_MAX || f->nracks > BL_PATH_RACKS_MAX)
		return bl_fail(err, EINVAL, "%u endpoints in %u racks; from 1 to %u, in at most %u",
			       f->npeers, f->nracks, BL_FCP_ENDPOINTS_MAX, BL_PATH_RACKS_MAX);
	if (f->slot_bytes < 64 || f->slot_bytes > SLOT_MAX)
		return bl_fail(err, EINVAL, "slot_bytes %u: from 64 to %u", f->slot_bytes,
			       SLOT_MAX);
	if (f->slot_ns < 100 || f->slot_ns > 10000000)
		return bl_fail(err, EINVAL, "a slot of %u ns; from 100 to 10000000", f->slot_ns);
	if (f->window_slots < 8 || f->window_slots > 512 || f->window_slots & (f->window_slots - 1))
		return bl_fail(err, EINVAL, "window_slots %u: 8, 16, 32, 64, 128, 256 or 512",
			       f->window_slots);
	if (f->fallback_ms != BL_FP_NO_FALLBACK &&
	    (f->fallback_ms > FALLBACK_MAX_MS || f->fallback_ms < fallback_least(f)))
		return bl_fail(err, EINVAL,
			       "fallback_ms %u: 0 (never), or from %llu to %u: an arbiter that "
			       "stands by "
			       "takes over after dead_us, %u us, and hosts must not fall back "
			       "before that",
			       f->fallback_ms, (unsigned long long)fallback_least(f),
			       FALLBACK_MAX_MS, f->dead_us);
	if (((uint64_t)f->lead_us + f->late_us) * 1000 / f->slot_ns + f->window_slots +
		    f->run_slots >
	    HOST_SLOTS)
		return bl_fail(err, EINVAL,
			       "lead_us %u, late_us %u, window_slots %u, run_slots %u: hosts take "
			       "slots of at most %u us together, %u of %u ns; lower them",
			       f->lead_us, f->late_us, f->window_slots, f->run_slots,
			       (uint32_t)((uint64_t)HOST_SLOTS * f->slot_ns / 1000), HOST_SLOTS,
			       f->slot_ns);
	if (f->cores && !f->npods)
		return bl_fail(err, EINVAL, "cores, but no pods; say which pod each rack is in");
	or_else(&f->cores, 1);
	if (f->paths > BL_PATH_PATHS_MAX || f->cores > BL_PATH_PATHS_MAX ||
	    bl_fp_ways(f) > BL_PATH_PATHS_MAX)
		return bl_fail(err, EINVAL, "%u paths: at most %u",
			       f->npods ? f->paths * f->cores : f->paths, BL_PATH_PATHS_MAX);
	if (f->field == BL_FIELD_MAC && bl_fp_ways(f) > BL_PATHS_IN_MAC)
		return bl_fail(err, EINVAL, "%u paths: a MAC address carries at most %u",
			       bl_fp_ways(f), BL_PATHS_IN_MAC);
	if (f->field != BL_FIELD_NONE && !f->paths)
		return bl_fail(err, EINVAL, "path_field %s, but there are no paths; say how many",
			       bl_fp_field_name(f->field));
	if (f->udp_ports + bl_fp_ways(f) > 65536)
		return bl_fail(err, EINVAL, "udp_ports %u: the last path's port is above 65535",
			       f->udp_ports);
	if (f->fault_report_us < 100 || f->fault_report_us > 10000000 ||
	    f->fault_settle_us > 10000000)
		return bl_fail(err, EINVAL,
			       "fault_report_us %u, fault_settle_us %u: from 100 and 1 to 10000000",
			       f->fault_report_us, f->fault_settle_us);
	if (f->fault_percent > 50 || f->fault_frames < 10 || f->fault_hold_ms > 86400000)
		return bl_fail(err, EINVAL,
			       "fault_percent %u, fault_frames %u, fault_hold_ms %u: at most 50, "
			       "at least 10, at most 86400000",
			       f->fault_percent, f->fault_frames, f->fault_hold_ms);
	if (f->rack_up > BL_ALLOC_CAP_MAX || f->path_cap > BL_ALLOC_CAP_MAX ||
	    f->core_cap > BL_ALLOC_CAP_MAX)
		return bl_fail(err, EINVAL,
			       "rack_up %u, path_cap %u, core_cap %u: at most %u packets per slot",
			       f->rack_up, f->path_cap, f->core_cap, BL_ALLOC_CAP_MAX);
	sum = calloc(f->nracks, sizeof(*sum));
	if (!sum)
		return bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; i < f->npeers; i++) {
		sum[f->peer[i].rack] += f->peer[i].cap;
		if (sum[f->peer[i].rack] > most)
			most = sum[f->peer[i].rack];
	}
	free(sum);
	if (f->rack_up && f->rack_up < most)
		most = f->rack_up;
	if (f->paths)
		or_else(&f->path_cap, (most + f->paths - 1) / f->paths);
	if (f->paths && (uint64_t)f->path_cap * f->paths < most)
		return bl_fail(err, EINVAL,
			       "%u paths of %u packets per slot do not carry the %u that a rack "
			       "may send; lower rack_up or raise path_cap",
			       f->paths, f->path_cap, most);
	if (f->npath_names && f->npath_names != bl_fp_ways(f))
		return bl_fail(err, EINVAL, "%u path_names for %u paths", f->npath_names,
			       bl_fp_ways(f));
	return f->npods ? check_pods(f, err) : 0;
}

static int take_secret(uint64_t secret[2], const char *s, const char *path, struct bl_err *err)
{
	unsigned long long hi, lo;

	if (!s)
		return 0;
	if (strlen(s) != 32 || strspn(s, "0123456789abcdefABCDEF") != 32 ||
	    sscanf(s, "%16llx%16llx", &hi, &lo) != 2)
		return bl_yaml_bad(path, "secret", 0, err,
				   "a secret is 32 hex digits, for example from `openssl rand -hex "
				   "16`");
	secret[0] = hi;
	secret[1] = lo;
	return 0;
}

/*
 * Shares and deadlines are refused where the policy would not look at them. @which: how many lines
 * with that key come before.
 */
static int take_shares(const struct yaml_fp *y, uint32_t weight, uint32_t deadline_us,
		       unsigned int which, const char *path, struct bl_err *err)
{
	if (weight && y->policy != BL_ALLOC_WEIGHTED)
		return bl_yaml_bad(path, "weight", which, err,
				   "policy %s knows no weights; set policy: weighted, or leave "
				   "them out",
				   policies[y->policy].str);
	if (weight > BL_ALLOC_WEIGHT_MAX)
		return bl_yaml_bad(path, "weight", which, err, "a weight of %u; from 1 to %u",
				   weight, BL_ALLOC_WEIGHT_MAX);
	if (deadline_us && y->policy != BL_ALLOC_DEADLINE)
		return bl_yaml_bad(path, "deadline_us", which, err,
				   "policy %s knows no deadlines; set policy: deadline, or leave "
				   "them out",
				   policies[y->policy].str);
	if (deadline_us > 10000000)
		return bl_yaml_bad(path, "deadline_us", which, err,
				   "a deadline after %u us; at most 10000000, ten seconds",
				   deadline_us);
	return 0;
}

static int by_pair(const void *a, const void *b)
{
	const struct bl_fp_pair *x = a, *y = b;

	return x->src != y->src   ? (x->src < y->src ? -1 : 1)
	       : x->dst != y->dst ? (x->dst < y->dst ? -1 : 1)
				  : 0;
}

static int by_name(const struct bl_fp_file *f, const char *name)
{
	unsigned int i;

	for (i = 0; i < f->npeers; i++)
		if (!strcmp(f->peer[i].name, name))
			return (int)i;
	return -1;
}

static int take_pairs(struct bl_fp_file *f, const struct yaml_fp *y, const char *path,
		      struct bl_err *err)
{
	unsigned int i, weights = 0, deadlines = 0;
	int src, dst, rc;

	for (i = 0; i < y->endpoints_count; i++) {
		weights += y->endpoints[i].weight != 0;
		deadlines += y->endpoints[i].deadline_us != 0;
	}
	f->pair = calloc(y->pairs_count + 1, sizeof(*f->pair));
	if (!f->pair)
		return bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; i < y->pairs_count; i++) {
		const struct yaml_pair *from = &y->pairs[i];

		src = by_name(f, from->from);
		dst = by_name(f, from->to);
		if (src < 0 || dst < 0)
			return bl_yaml_bad(path, src < 0 ? "from" : "to", i, err,
					   "no endpoint is called %s",
					   src < 0 ? from->from : from->to);
		if (src == dst)
			return bl_yaml_bad(path, "to", i, err,
					   "%s sends nothing to itself through the network",
					   from->to);
		rc = take_shares(y, from->weight, from->deadline_us,
				 from->weight ? weights : deadlines, path, err);
		if (rc)
			return rc;
		weights += from->weight != 0;
		deadlines += from->deadline_us != 0;
		f->pair[f->npairs++] = (struct bl_fp_pair){ (uint16_t)src, (uint16_t)dst,
							    from->weight, from->deadline_us };
	}
	qsort(f->pair, f->npairs, sizeof(*f->pair), by_pair);
	for (i = 1; i < f->npairs; i++)
		if (!by_pair(&f->pair[i - 1], &f->pair[i]))
			return bl_fail(err, EINVAL, "%s:1: the pair from %s to %s is there twice",
				       path, f->peer[f->pair[i].src].name,
				       f->peer[f->pair[i].dst].name);
	return 0;
}

static int take_peers(struct bl_fp_file *f, const struct yaml_fp *y, const char *path,
		      struct bl_err *err)
{
	unsigned int i, k, macs = 0, names = 0, lists = 0, weights = 0, deadlines = 0;
	int first, rc;

	f->peer = calloc(y->endpoints_count, sizeof(*f->peer));
	if (!f->peer)
		return bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; i < y->endpoints_count; i++) {
		const struct yaml_peer *from = &y->endpoints[i];
		struct bl_fp_peer *p = &f->peer[i];

		if (!bl_fp_addr_parse(from->addr, p->addr))
			return bl_yaml_bad(path, "addr", i, err, "%s is no IP address", from->addr);
		first = bl_fp_find(f, p->addr);
		if (first >= 0)
			return bl_yaml_bad(path, "addr", i, err, "%s is endpoint %d already",
					   from->addr, first);
		p->has_mac = from->mac != NULL;
		if (from->mac && (!bl_mac_parse(from->mac, p->mac) || p->mac[0] & 1))
			return bl_yaml_bad(path, "mac", macs, err,
					   "%s is no Ethernet address of one station", from->mac);
		macs += from->mac != NULL;
		for (k = 0; k < from->apps_count; k++)
			if (!bl_fp_addr_parse(from->apps[k], p->app[p->napps++]))
				return bl_yaml_bad(path, "apps", lists, err, "%s is no IP address",
						   from->apps[k]);
		lists += from->apps_count != 0;
		if (y->routed && !from->apps_count)
			return bl_yaml_bad(path, "addr", i, err,
					   "routers are between, so this endpoint needs apps: the "
					   "addresses of its bl0");
		rc = take_shares(y, from->weight, from->deadline_us,
				 from->weight ? weights : deadlines, path, err);
		if (rc)
			return rc;
		weights += from->weight != 0;
		deadlines += from->deadline_us != 0;
		p->weight = from->weight;
		p->deadline_us = from->deadline_us;
		p->rack = from->rack;
		p->cap = from->cap;
		if (from->name)
			snprintf(p->name, sizeof(p->name), "%s", from->name);
		else
			snprintf(p->name, sizeof(p->name), "%.31s", from->addr);
		for (k = 0; k < i; k++) {
			if (!strcmp(f->peer[k].name, p->name))
				return bl_yaml_bad(path, from->name ? "name" : "addr",
						   from->name ? names : i, err,
						   "%s is the name of endpoint %u already", p->name,
						   k);
			if (!y->routed && p->has_mac && f->peer[k].has_mac &&
			    !memcmp(f->peer[k].mac, p->mac, 6))
				return bl_yaml_bad(path, "mac", macs - 1, err,
						   "%s is the address of %s's bl0 already; frames "
						   "could not be told apart",
						   from->mac, f->peer[k].name);
		}
		names += from->name != NULL;
		f->npeers++;
	}
	return 0;
}

struct app {
	uint8_t addr[16];
	unsigned int peer;
};

static int by_app(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(((const struct app *)a)->addr));
}

/* Where routers are between, frames are known by these addresses: each is of one endpoint. */
static int check_apps(const struct bl_fp_file *f, const char *path, struct bl_err *err)
{
	struct app *all = calloc(f->npeers * BL_FP_APPS_MAX + 1, sizeof(*all));
	unsigned int i, k, n = 0;
	char text[INET6_ADDRSTRLEN];
	int rc = 0;

	if (!all)
		return bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; i < f->npeers; i++)
		for (k = 0; k < f->peer[i].napps; k++) {
			memcpy(all[n].addr, f->peer[i].app[k], sizeof(all[n].addr));
			all[n++].peer = i;
		}
	qsort(all, n, sizeof(*all), by_app);
	for (i = 1; i < n && !rc; i++)
		if (!by_app(&all[i - 1], &all[i]) && all[i - 1].peer != all[i].peer)
			rc = bl_fail(err, EINVAL,
				     "%s:1: %s is an address of both %s and %s; frames could not "
				     "be told apart",
				     path, bl_fp_addr_text(all[i].addr, text),
				     f->peer[all[i - 1].peer].name, f->peer[all[i].peer].name);
	free(all);
	return rc;
}

static int take_pods(struct bl_fp_file *f, const struct yaml_fp *y, const char *path,
		     struct bl_err *err)
{
	unsigned int i, nracks = 0;

	if (!y->pods_count)
		return 0;
	for (i = 0; i < f->npeers; i++)
		if (f->peer[i].rack >= nracks)
			nracks = f->peer[i].rack + 1U;
	if (y->pods_count != nracks)
		return bl_yaml_bad(path, "pods", 0, err,
				   "%u pods for %u racks; give each rack, from 0 on, the number of "
				   "its pod",
				   y->pods_count, nracks);
	f->pod_of = calloc(nracks, sizeof(*f->pod_of));
	if (!f->pod_of)
		return bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; i < nracks; i++) {
		if (y->pods[i] >= nracks)
			return bl_yaml_bad(path, "pods", 0, err,
					   "pod %u: with %u racks they are numbered from 0 to %u "
					   "at most",
					   y->pods[i], nracks, nracks - 1);
		f->pod_of[i] = y->pods[i];
		if (y->pods[i] >= f->npods)
			f->npods = y->pods[i] + 1U;
	}
	return 0;
}

static int take(struct bl_fp_file *f, const struct yaml_fp *y, const char *path, struct bl_err *err)
{
	struct bl_err why;
	unsigned int i;

	if (y->rate && !bl_rate_parse(y->rate, &f->rate_bps))
		return bl_yaml_bad(path, "rate", 0, err,
				   "%s is no rate: as 250mbit or 10gbit, from 2mbit to 1000gbit",
				   y->rate);
	f->slot_ns = y->slot_ns;
	f->slot_bytes = y->slot_bytes;
	for (i = 0; i < y->arbiters_count; i++)
		if (!bl_fp_addr_parse(y->arbiters[i], f->arbiter[i]))
			return bl_yaml_bad(path, "arbiters", 0, err, "%s is no IP address",
					   y->arbiters[i]);
	f->narbiters = y->arbiters_count;
	f->has_group = y->group != NULL;
	if (y->group && !bl_fp_addr_parse(y->group, f->group))
		return bl_yaml_bad(path, "group", 0, err, "%s is no IP address", y->group);
	if (f->narbiters > 1 && !y->group)
		return bl_yaml_bad(path, "arbiters", 0, err,
				   "%u arbiters need a group, or both would rule", f->narbiters);
	f->has_faults = y->faults != NULL;
	if (y->faults && !bl_fp_addr_parse(y->faults, f->faults))
		return bl_yaml_bad(path, "faults", 0, err, "%s is no IP address", y->faults);
	f->fault_report_us = y->fault_report_us;
	f->fault_settle_us = y->fault_settle_us;
	f->fault_frames = y->fault_frames;
	f->fault_percent = y->fault_percent;
	f->fault_hold_ms = y->fault_hold_ms;
	f->path_name = calloc(y->path_names_count + 1, sizeof(*f->path_name));
	if (!f->path_name)
		return bl_fail(err, ENOMEM, "out of memory");
	for (f->npath_names = 0; f->npath_names < y->path_names_count; f->npath_names++)
		snprintf(f->path_name[f->npath_names], sizeof(*f->path_name), "%s",
			 y->path_names[f->npath_names]);
	f->policy = y->policy;
	f->window_slots = y->window_slots;
	f->lead_us = y->lead_us;
	f->run_slots = y->run_slots;
	f->watchdog_us = y->watchdog_us;
	f->dead_us = y->dead_us;
	f->guard_us = y->guard_us;
	f->quota = y->quota;
	f->rtt_us = y->rtt_us;
	f->rack_up = y->rack_up;
	f->paths = y->paths;
	f->path_cap = y->path_cap;
	f->cores = y->cores;
	f->core_cap = y->core_cap;
	f->euler = y->how;
	f->routed = y->routed;
	f->late_us = y->late_us;
	if (y->fallback_ms)
		f->fallback_ms = *y->fallback_ms ? *y->fallback_ms : BL_FP_NO_FALLBACK;
	f->field = (enum bl_path_field)y->field;
	f->udp_ports = y->udp_ports;
	if (take_secret(f->secret, y->secret, path, err) || take_peers(f, y, path, err) ||
	    (y->routed && check_apps(f, path, err)) || take_pairs(f, y, path, err) ||
	    take_pods(f, y, path, err))
		return -EINVAL;
	return bl_fp_defaults(f, &why) ? bl_fail(err, EINVAL, "%s:1: %s", path, why.text) : 0;
}

int bl_fp_load(struct bl_fp_file *f, const char *path, struct bl_err *err)
{
	struct yaml_fp *y;
	int rc;

	memset(f, 0, sizeof(*f));
	rc = bl_yaml_load(path, &top, (void **)&y, err);
	if (rc)
		return rc;
	rc = take(f, y, path, err);
	bl_yaml_free(&top, y);
	if (rc)
		bl_fp_free(f);
	return rc;
}
