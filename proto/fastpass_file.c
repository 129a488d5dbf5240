// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the file that arbiters and hosts share; fastpass_file.h has an example. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rate.h"
#include "base/yaml.h"
#include "core/fastpass/fcp_core.h"
#include "core/length_core.h"
#include "maps/alloc_abi.h"
#include "maps/fastpass_abi.h"
#include "proto/fastpass_file.h"

/*
 * Longest default window, unless it has less than 8 slots: a new flow waits at most that long for
 * its share of a busy link.
 */
#define WINDOW_MAX_NS   1000000ULL
#define RUN_MAX_NS      100000ULL
#define RUN_MIN_SLOTS   8 /* each run sends an ALLOC to each host; shorter runs fill a slow link */
#define LEAD_SLOTS      2 /* an ALLOC may wait for a frame at each of two links */
#define LATE_SLOTS      2
#define RTT_US          200
#define RTT_SLOTS       8 /* an acknowledgement that waits for half of it mostly finds a packet */
#define OVERHEAD        1.02 /* slot length / frame time: leaves 2 % to FCP and beacons */
#define FALLBACK_MS     1000U
#define FALLBACK_MAX_MS 3600000U
#define FALLBACK_DEATHS 4ULL /* arbiters need some dead_us to take over from each other */
/* a host counts the unused bytes of a slot in 16 bits */
#define SLOT_MAX (65535 - BL_WIRE_EXTRA)
/*
 * Greatest number of slots from the oldest one that may be late to the last one given. The ring of
 * a host has words of 64 slots.
 */
#define HOST_SLOTS (BL_FP_SLOTS - 64)

static const char *const policies[] = {
#define POLICY(sym, name, text) [BL_ALLOC_##sym] = name,
	BL_ALLOC_POLICIES(POLICY)
#undef POLICY
};
static const char *const path_fields[] = {
#define FIELD(sym, name, text) [BL_FIELD_##sym] = name,
	BL_PATH_FIELDS(FIELD)
#undef FIELD
};
static const char *const path_selections[] = { "greedy", "euler" };

#define COUNT(v)      (sizeof(v) / sizeof((v)[0]))
#define ADDR_TEXT_MAX 45
#define NAME_TEXT_MAX 31
#define PAIRS_MAX     (1 << 20)

/* Same as IN6_IS_ADDR_V4MAPPED(), which would require an aligned address. */
static bool is_v4_mapped(const uint8_t addr[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(addr, prefix, sizeof(prefix));
}

char *bl_fp_addr_text(const uint8_t addr[16], char *buf)
{
	bool v4 = is_v4_mapped(addr);

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
	if (is_v4_mapped(addr)) {
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
	return field < BL_FIELD_COUNT ? path_fields[field] : "?";
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
	if (is_v4_mapped(addr)) {
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
	/* on fast links, 100 us are more slots than the ring of a host has room for */
	spare = f->window_slots < HOST_SLOTS && f->run_slots < HOST_SLOTS - f->window_slots
			? (HOST_SLOTS - f->window_slots - f->run_slots) / 2
			: 0;
	share = (uint32_t)bl_max64(1, bl_min64(100, (uint64_t)spare * f->slot_ns / 1000));
	or_else(&f->lead_us, (uint32_t)bl_max64(share, slots_us(f, LEAD_SLOTS)));
	or_else(&f->watchdog_us, 100);
	/* the slots that were given must have ended before another arbiter may take over */
	ahead = f->lead_us + (uint32_t)((f->window_slots + 1ULL) * f->slot_ns / 1000);
	or_else(&f->dead_us, (uint32_t)bl_max64(1000, ahead + 5ULL * f->watchdog_us));
	or_else(&f->fallback_ms, (uint32_t)bl_max64(FALLBACK_MS, fallback_least(f)));
	/* a meter catches up by that much; frames that are sent later would stay in its queue */
	or_else(&f->late_us, (uint32_t)bl_max64(share, slots_us(f, LATE_SLOTS)));
	or_else(&f->rtt_us, (uint32_t)bl_max64(RTT_US, slots_us(f, RTT_SLOTS)));
}

/*
 * Checks the capacities of three tiers: the cores of an aggregation switch must carry everything
 * that the racks of a pod may send through that switch.
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
	/* a frame with 24 bytes of preamble, FCS and gap, and 2 % for frames that take no slots */
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

/* Parses 32 hex digits. Returns false if @text is something else, or all zeros. */
static bool parse_secret(const char *text, uint64_t secret[2])
{
	unsigned long long hi, lo;

	if (strlen(text) != 32 || strspn(text, "0123456789abcdefABCDEF") != 32 ||
	    sscanf(text, "%16llx%16llx", &hi, &lo) != 2 || (!hi && !lo))
		return false;
	secret[0] = hi;
	secret[1] = lo;
	return true;
}

/*
 * Reads the secret from a file of its own. A relative path is relative to the directory of the file
 * that names it. A file that every user can read is refused, since it is no secret.
 */
static int load_secret(const char *path, const char *beside, uint64_t secret[2], struct bl_err *err)
{
	const char *slash = *path == '/' ? NULL : strrchr(beside, '/');
	char whole[512], text[64] = "";
	struct stat st;
	ssize_t n;
	int fd, rc;

	snprintf(whole, sizeof(whole), "%.*s%s", slash ? (int)(slash - beside + 1) : 0, beside,
		 path);
	fd = open(whole, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		rc = bl_fail(err, errno, "cannot read the secret in %s: %s", whole,
			     strerror(errno));
		if (fd >= 0)
			close(fd);
		return rc;
	}
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	if (st.st_mode & S_IRWXO)
		return bl_fail(err, EACCES,
			       "every user of this machine can read the secret in %s; `chmod o= "
			       "%s`",
			       whole, whole);
	if (!parse_secret(text, secret))
		return bl_fail(err, EINVAL,
			       "%s has no secret, which is 32 hex digits and not all zeros; "
			       "`barline arbiter secret FILE` makes one",
			       whole);
	return 0;
}

static void read_secret(struct bl_fp_file *f, struct bl_yaml *y, const char *path)
{
	const char *text = bl_yaml_text(y, y->root, "secret", 32),
		   *file = bl_yaml_text(y, y->root, "secret_file", 255);
	struct bl_err why;

	f->insecure = bl_yaml_truth(y, y->root, "insecure");
	if (!!text + !!file + f->insecure > 1)
		bl_yaml_refuse(y, y->root, f->insecure ? "insecure" : "secret_file",
			       "give one of secret_file, secret and insecure");
	else if (text && !parse_secret(text, f->secret))
		bl_yaml_refuse(y, y->root, "secret",
			       "a secret is 32 hex digits that are not all zeros, for example from "
			       "`openssl rand -hex 16`");
	else if (file && load_secret(file, path, f->secret, &why))
		bl_yaml_refuse(y, y->root, "secret_file", "%s", why.text);
}

int bl_fp_secret_make(const char *path, struct bl_err *err)
{
	uint64_t secret[2] = { 0, 0 };
	char text[40];
	int fd, rc = 0, len;

	while (!secret[0] && !secret[1])
		if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
			return bl_fail(err, EIO, "the kernel has no random numbers");
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return bl_fail(err, errno, "cannot make %s: %s", path, strerror(errno));
	len = snprintf(text, sizeof(text), "%016llx%016llx\n", (unsigned long long)secret[0],
		       (unsigned long long)secret[1]);
	if (write(fd, text, (size_t)len) != len || fsync(fd))
		rc = bl_fail(err, errno, "cannot write %s: %s", path, strerror(errno));
	close(fd);
	if (rc)
		unlink(path);
	return rc;
}

/* Reads an IP address. Returns false if the key is missing, or after an error. */
static bool read_addr(struct bl_yaml *y, yaml_node_t *map, const char *key, uint8_t addr[16])
{
	const char *text = bl_yaml_text(y, map, key, ADDR_TEXT_MAX);

	if (text && !bl_fp_addr_parse(text, addr))
		bl_yaml_refuse(y, map, key, "%s is no IP address", text);
	return text && !y->rc;
}

/* Reads weight and deadline of an endpoint or a pair; refuses them if the policy ignores them. */
static void read_shares(const struct bl_fp_file *f, struct bl_yaml *y, yaml_node_t *map,
			uint32_t *weight, uint32_t *deadline_us)
{
	*weight = bl_yaml_u32(y, map, "weight");
	*deadline_us = bl_yaml_u32(y, map, "deadline_us");
	if (*weight && f->policy != BL_ALLOC_WEIGHTED)
		bl_yaml_refuse(y, map, "weight",
			       "policy %s knows no weights; set policy: weighted, or leave them "
			       "out",
			       policies[f->policy]);
	if (*weight > BL_ALLOC_WEIGHT_MAX)
		bl_yaml_refuse(y, map, "weight", "a weight of %u; from 1 to %u", *weight,
			       BL_ALLOC_WEIGHT_MAX);
	if (*deadline_us && f->policy != BL_ALLOC_DEADLINE)
		bl_yaml_refuse(y, map, "deadline_us",
			       "policy %s knows no deadlines; set policy: deadline, or leave them "
			       "out",
			       policies[f->policy]);
	if (*deadline_us > 10000000)
		bl_yaml_refuse(y, map, "deadline_us",
			       "a deadline after %u us; at most 10000000, ten seconds",
			       *deadline_us);
}

static int compare_pairs(const void *a, const void *b)
{
	const struct bl_fp_pair *x = a, *y = b;

	return x->src != y->src   ? (x->src < y->src ? -1 : 1)
	       : x->dst != y->dst ? (x->dst < y->dst ? -1 : 1)
				  : 0;
}

static int find_peer_name(const struct bl_fp_file *f, const char *name)
{
	unsigned int i;

	for (i = 0; i < f->npeers; i++)
		if (!strcmp(f->peer[i].name, name))
			return (int)i;
	return -1;
}

/* Returns the number of the endpoint that @key of a pair names, or -1 after an error. */
static int read_pair_end(const struct bl_fp_file *f, struct bl_yaml *y, yaml_node_t *map,
			 const char *key)
{
	const char *name = bl_yaml_need(y, map, key) ? bl_yaml_text(y, map, key, ADDR_TEXT_MAX)
						     : NULL;
	int peer = name ? find_peer_name(f, name) : -1;

	if (name && peer < 0)
		bl_yaml_refuse(y, map, key, "no endpoint is called %s", name);
	return peer;
}

static void read_pair(struct bl_fp_file *f, struct bl_yaml *y, yaml_node_t *map)
{
	static const char *const keys[] = { "from", "to", "weight", "deadline_us", NULL };
	struct bl_fp_pair *p = &f->pair[f->npairs];
	uint32_t weight, deadline_us;
	int src, dst;

	bl_yaml_keys(y, map, keys);
	src = read_pair_end(f, y, map, "from");
	dst = read_pair_end(f, y, map, "to");
	if (!y->rc && src == dst)
		bl_yaml_refuse(y, map, "to", "%s sends nothing to itself through the network",
			       f->peer[dst].name);
	read_shares(f, y, map, &weight, &deadline_us);
	if (y->rc)
		return;
	*p = (struct bl_fp_pair){ (uint16_t)src, (uint16_t)dst, weight, deadline_us };
	f->npairs++;
}

static void read_pairs(struct bl_fp_file *f, struct bl_yaml *y)
{
	yaml_node_t *list;
	unsigned int i, n = bl_yaml_list(y, y->root, "pairs", PAIRS_MAX, &list);

	f->pair = calloc(n + 1, sizeof(*f->pair));
	if (!f->pair) {
		bl_yaml_refuse(y, NULL, NULL, "out of memory");
		return;
	}
	for (i = 0; i < n && !y->rc; i++)
		read_pair(f, y, bl_yaml_item(y, list, i));
	qsort(f->pair, f->npairs, sizeof(*f->pair), compare_pairs);
	for (i = 1; i < f->npairs && !y->rc; i++)
		if (!compare_pairs(&f->pair[i - 1], &f->pair[i]))
			bl_yaml_refuse(y, NULL, NULL, "the pair from %s to %s is there twice",
				       f->peer[f->pair[i].src].name, f->peer[f->pair[i].dst].name);
}

/* Refuses the last endpoint if another one has its name or its bl0's address. */
static void check_peer_unique(const struct bl_fp_file *f, struct bl_yaml *y, yaml_node_t *map)
{
	const struct bl_fp_peer *p = &f->peer[f->npeers];
	unsigned int k;

	for (k = 0; k < f->npeers && !y->rc; k++) {
		if (!strcmp(f->peer[k].name, p->name))
			bl_yaml_refuse(y, map, bl_yaml_get(y, map, "name") ? "name" : "addr",
				       "%s is the name of endpoint %u already", p->name, k);
		if (!f->routed && p->has_mac && f->peer[k].has_mac &&
		    !memcmp(f->peer[k].mac, p->mac, 6))
			bl_yaml_refuse(y, map, "mac",
				       "%s is the address of %s's bl0 already; frames could not "
				       "be told apart",
				       bl_yaml_text(y, map, "mac", 17), f->peer[k].name);
	}
}

static void read_peer_apps(struct bl_fp_file *f, struct bl_yaml *y, yaml_node_t *map)
{
	struct bl_fp_peer *p = &f->peer[f->npeers];
	yaml_node_t *list;
	unsigned int k, n = bl_yaml_list(y, map, "apps", BL_FP_APPS_MAX, &list);

	for (k = 0; k < n && !y->rc; k++) {
		const char *text =
			bl_yaml_item_text(y, bl_yaml_item(y, list, k), "apps", ADDR_TEXT_MAX);

		if (text && !bl_fp_addr_parse(text, p->app[p->napps++]))
			bl_yaml_refuse(y, map, "apps", "%s is no IP address", text);
	}
	if (f->routed && !n)
		bl_yaml_refuse(y, map, "addr",
			       "routers are between, so this endpoint needs apps: the addresses "
			       "of its bl0");
}

static void read_peer(struct bl_fp_file *f, struct bl_yaml *y, yaml_node_t *map)
{
	static const char *const keys[] = { "name",   "addr",        "mac",  "rack", "cap",
					    "weight", "deadline_us", "apps", NULL };
	struct bl_fp_peer *p = &f->peer[f->npeers];
	const char *name, *mac;
	int first;

	bl_yaml_keys(y, map, keys);
	bl_yaml_need(y, map, "addr");
	if (!read_addr(y, map, "addr", p->addr))
		return;
	first = bl_fp_find(f, p->addr);
	if (first >= 0)
		bl_yaml_refuse(y, map, "addr", "%s is endpoint %d already",
			       bl_yaml_text(y, map, "addr", ADDR_TEXT_MAX), first);
	mac = bl_yaml_text(y, map, "mac", 17);
	p->has_mac = mac != NULL;
	if (mac && (!bl_mac_parse(mac, p->mac) || p->mac[0] & 1))
		bl_yaml_refuse(y, map, "mac", "%s is no Ethernet address of one station", mac);
	read_peer_apps(f, y, map);
	read_shares(f, y, map, &p->weight, &p->deadline_us);
	p->rack = bl_yaml_u16(y, map, "rack");
	p->cap = bl_yaml_u16(y, map, "cap");
	name = bl_yaml_text(y, map, "name", NAME_TEXT_MAX);
	if (!name)
		name = bl_yaml_text(y, map, "addr", ADDR_TEXT_MAX);
	snprintf(p->name, sizeof(p->name), "%.31s", name ? name : "");
	check_peer_unique(f, y, map);
	if (!y->rc)
		f->npeers++;
}

static void read_peers(struct bl_fp_file *f, struct bl_yaml *y)
{
	yaml_node_t *list;
	unsigned int i, n;

	bl_yaml_need(y, y->root, "endpoints");
	n = bl_yaml_list(y, y->root, "endpoints", BL_FCP_ENDPOINTS_MAX, &list);
	if (!n)
		return;
	f->peer = calloc(n, sizeof(*f->peer));
	if (!f->peer)
		bl_yaml_refuse(y, NULL, NULL, "out of memory");
	for (i = 0; i < n && !y->rc; i++)
		read_peer(f, y, bl_yaml_item(y, list, i));
}

struct app {
	uint8_t addr[16];
	unsigned int peer;
};

static int compare_apps(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(((const struct app *)a)->addr));
}

/* With routers, frames are recognised by these addresses, so no two endpoints may share one. */
static void check_apps(const struct bl_fp_file *f, struct bl_yaml *y)
{
	struct app *all = calloc(f->npeers * BL_FP_APPS_MAX + 1, sizeof(*all));
	unsigned int i, k, n = 0;
	char text[INET6_ADDRSTRLEN];

	if (!all) {
		bl_yaml_refuse(y, NULL, NULL, "out of memory");
		return;
	}
	for (i = 0; i < f->npeers; i++)
		for (k = 0; k < f->peer[i].napps; k++) {
			memcpy(all[n].addr, f->peer[i].app[k], sizeof(all[n].addr));
			all[n++].peer = i;
		}
	qsort(all, n, sizeof(*all), compare_apps);
	for (i = 1; i < n && !y->rc; i++)
		if (!compare_apps(&all[i - 1], &all[i]) && all[i - 1].peer != all[i].peer)
			bl_yaml_refuse(y, NULL, NULL,
				       "%s is an address of both %s and %s; frames could not be "
				       "told apart",
				       bl_fp_addr_text(all[i].addr, text),
				       f->peer[all[i - 1].peer].name, f->peer[all[i].peer].name);
	free(all);
}

static void read_pods(struct bl_fp_file *f, struct bl_yaml *y)
{
	unsigned int i, n, nracks = 0;
	yaml_node_t *list;
	int64_t pod = 0;

	n = bl_yaml_list(y, y->root, "pods", BL_PATH_RACKS_MAX, &list);
	if (!n)
		return;
	for (i = 0; i < f->npeers; i++)
		if (f->peer[i].rack >= nracks)
			nracks = f->peer[i].rack + 1U;
	if (n != nracks) {
		bl_yaml_refuse(y, y->root, "pods",
			       "%u pods for %u racks; give each rack, from 0 on, the number of "
			       "its pod",
			       n, nracks);
		return;
	}
	f->pod_of = calloc(nracks, sizeof(*f->pod_of));
	if (!f->pod_of)
		bl_yaml_refuse(y, NULL, NULL, "out of memory");
	for (i = 0; i < nracks && !y->rc; i++) {
		bl_yaml_item_number(y, bl_yaml_item(y, list, i), "pods", 0, UINT16_MAX, &pod);
		if (pod >= nracks)
			bl_yaml_refuse(y, y->root, "pods",
				       "pod %lld: with %u racks they are numbered from 0 to %u at "
				       "most",
				       (long long)pod, nracks, nracks - 1);
		f->pod_of[i] = (uint16_t)pod;
		if (!y->rc && pod >= f->npods)
			f->npods = (unsigned int)pod + 1;
	}
}

static void read_arbiters(struct bl_fp_file *f, struct bl_yaml *y)
{
	yaml_node_t *list;
	unsigned int i, n;

	bl_yaml_need(y, y->root, "arbiters");
	n = bl_yaml_list(y, y->root, "arbiters", BL_FP_ARBITERS_MAX, &list);
	for (i = 0; i < n && !y->rc; i++) {
		const char *text =
			bl_yaml_item_text(y, bl_yaml_item(y, list, i), "arbiters", ADDR_TEXT_MAX);

		if (text && !bl_fp_addr_parse(text, f->arbiter[i]))
			bl_yaml_refuse(y, y->root, "arbiters", "%s is no IP address", text);
	}
	f->narbiters = n;
	f->has_group = read_addr(y, y->root, "group", f->group);
	if (f->narbiters > 1 && !f->has_group)
		bl_yaml_refuse(y, y->root, "arbiters",
			       "%u arbiters need a group, or both would rule", f->narbiters);
}

static void read_path_names(struct bl_fp_file *f, struct bl_yaml *y)
{
	yaml_node_t *list;
	unsigned int i, n = bl_yaml_list(y, y->root, "path_names", BL_PATH_PATHS_MAX, &list);

	f->path_name = calloc(n + 1, sizeof(*f->path_name));
	if (!f->path_name) {
		bl_yaml_refuse(y, NULL, NULL, "out of memory");
		return;
	}
	for (i = 0; i < n && !y->rc; i++) {
		const char *text =
			bl_yaml_item_text(y, bl_yaml_item(y, list, i), "path_names", NAME_TEXT_MAX);

		snprintf(f->path_name[i], sizeof(*f->path_name), "%s", text ? text : "");
	}
	f->npath_names = n;
}

/* Keys of the file, and members of struct bl_fp_file, with 32-bit numbers; 0: the default. */
/* clang-format off */
#define NUMBERS(X) \
	X(slot_ns) X(slot_bytes) X(window_slots) X(lead_us) X(run_slots) X(watchdog_us) \
	X(dead_us) X(guard_us) X(quota) X(rtt_us) X(rack_up) X(paths) X(path_cap) X(cores) \
	X(core_cap) X(late_us) X(fault_report_us) X(fault_settle_us) X(fault_frames) \
	X(fault_percent) X(fault_hold_ms)
/* clang-format on */

static void read_numbers(struct bl_fp_file *f, struct bl_yaml *y)
{
	int64_t ms;

#define NUMBER(name) f->name = bl_yaml_u32(y, y->root, #name);
	NUMBERS(NUMBER)
#undef NUMBER
	f->udp_ports = bl_yaml_u16(y, y->root, "udp_ports");
	if (bl_yaml_number(y, y->root, "fallback_ms", 0, UINT32_MAX, &ms))
		f->fallback_ms = ms ? (uint32_t)ms : BL_FP_NO_FALLBACK;
}

static void read_file(struct bl_fp_file *f, struct bl_yaml *y, const char *path)
{
	static const char *const keys[] = {
#define KEY(name) #name,
		NUMBERS(KEY)
#undef KEY
			"rate",
		"arbiters",
		"group",
		"secret",
		"secret_file",
		"insecure",
		"policy",
		"udp_ports",
		"fallback_ms",
		"faults",
		"path_names",
		"routed",
		"path_selection",
		"path_field",
		"endpoints",
		"pods",
		"pairs",
		NULL
	};
	const char *rate;
	int name;

	bl_yaml_keys(y, y->root, keys);
	rate = bl_yaml_text(y, y->root, "rate", 31);
	if (rate && !bl_rate_parse(rate, &f->rate_bps))
		bl_yaml_refuse(y, y->root, "rate",
			       "%s is no rate: as 250mbit or 10gbit, from 2mbit to 1000gbit", rate);
	read_numbers(f, y);
	read_arbiters(f, y);
	f->has_faults = read_addr(y, y->root, "faults", f->faults);
	read_path_names(f, y);
	name = bl_yaml_name(y, y->root, "policy", policies, COUNT(policies));
	f->policy = name > 0 ? (unsigned int)name : 0;
	f->euler = bl_yaml_name(y, y->root, "path_selection", path_selections,
				COUNT(path_selections)) > 0;
	f->routed = bl_yaml_truth(y, y->root, "routed");
	name = bl_yaml_name(y, y->root, "path_field", path_fields, COUNT(path_fields));
	f->field = name > 0 ? (enum bl_path_field)name : (enum bl_path_field)0;
	read_secret(f, y, path);
	read_peers(f, y);
	if (f->routed && !y->rc)
		check_apps(f, y);
	read_pairs(f, y);
	read_pods(f, y);
}

int bl_fp_load(struct bl_fp_file *f, const char *path, struct bl_err *err)
{
	struct bl_err why;
	struct bl_yaml y;
	int rc;

	memset(f, 0, sizeof(*f));
	if (!bl_yaml_open(&y, path, err))
		read_file(f, &y, path);
	if (!y.rc && bl_fp_defaults(f, &why))
		bl_yaml_refuse(&y, NULL, NULL, "%s", why.text);
	if (!y.rc && !f->secret[0] && !f->secret[1] && !f->insecure)
		bl_yaml_refuse(&y, NULL, NULL,
			       "there is no secret, so every machine of the network could grant "
			       "slots, take them, or stop the arbiters: `barline arbiter secret "
			       "FILE` makes one, for secret_file: FILE; insecure: true does "
			       "without");
	rc = bl_yaml_close(&y);
	if (rc)
		bl_fp_free(f);
	return rc;
}
