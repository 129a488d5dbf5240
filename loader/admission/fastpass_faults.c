// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A host's reports to the fault isolation service (Fastpass section 5.2): how many frames left and
 * came, by peer and path, from the mmapped "fp_paths". core/fastpass/fault_core.h has the packets
 * and what the service makes of them.
 *
 * Every report_us the host sends a round, in as many packets as its peers need. 66 columns fit into
 * a packet, so a host with 50 peers, 4 paths and traffic both ways sends 4. When no count has
 * changed for LINGER_NS, it sends one in SLOW rounds: a host that receives nothing has to go on
 * reporting it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "base/ip.h"
#include "base/log.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "core/fastpass/fault_core.h"
#include "loader/admission/fastpass_faults.h"
#include "loader/load/maps.h"
#include "proto/fastpass_file.h"

#define LINGER_NS 1000000000ULL
#define SLOW      10
#define TOOK_NS   200000U /* a sample that took longer was interrupted, and is repeated */
#define TRIES     3

/** struct bl_freport - one host's reports. Times are CLOCK_MONOTONIC unless they say otherwise. */
struct bl_freport {
	struct bl_fcp_params params;
	struct bl_fp_paths *map; /* mmapped "fp_paths", by peer */
	size_t map_bytes;
	__u64 *v;                   /* [peer][column][2]: sent and came at the last sample */
	uint32_t peers;             /* endpoints of the file */
	uint32_t columns;           /* paths, and one for frames of no path */
	uint32_t self;              /* number of this endpoint */
	uint32_t seq;               /* of the last packet */
	uint64_t boot;              /* bus time of the first round; 0: none was sent */
	uint64_t report_ns;         /* time between two rounds */
	uint64_t next_ns;           /* of the next sample */
	uint64_t changed_ns;        /* of the last sample in which a count had changed */
	int sock;                   /* -1: none */
	struct sockaddr_storage to; /* the service */
	socklen_t to_len;
};

/* Samples all counts. Returns true if one has changed. */
static bool sample_counts(struct bl_freport *r)
{
	bool changed = false;
	uint32_t i, k;

	for (i = 0; i < r->peers; i++)
		for (k = 0; k < r->columns; k++) {
			uint32_t at = k + 1 == r->columns ? BL_FP_PATHS : k;
			__u64 *v = &r->v[2 * ((size_t)i * r->columns + k)];
			/* @came is read first, since a frame is counted there after it was sent */
			uint64_t came = BL_READ_ONCE(r->map[i].came[at]),
				 sent = BL_READ_ONCE(r->map[i].sent[at]);

			changed |= v[0] != sent || v[1] != came;
			v[0] = sent;
			v[1] = came;
		}
	return changed;
}

/* Sends a round, whose counts were read between @before and @after. */
static void send_round(struct bl_freport *r, uint64_t before, uint64_t after, uint64_t offset_ns)
{
	_Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX];
	struct bl_report w = { .v = r->v,
			       .peers = r->peers,
			       .columns = r->columns,
			       .table = r->params.table,
			       .index = r->self,
			       .took_ns = (uint32_t)(after - before),
			       .boot = r->boot,
			       .at = after + offset_ns };
	uint32_t len;

	while ((len = bl_report_fill(&w, buf))) {
		bl_fcp_seal(&r->params, 0, BL_FCP_REPORT, 0, ++r->seq, 0, 0, buf, len);
		/* it may be lost, as on its way: the next round has all counts again */
		sendto(r->sock, buf, len, MSG_DONTWAIT, (struct sockaddr *)&r->to, r->to_len);
	}
}

uint64_t bl_freport_turn(struct bl_freport *r, uint64_t now, uint64_t offset_ns)
{
	uint64_t before, after;
	unsigned int tries = 0;

	if (now < r->next_ns)
		return r->next_ns;
	if (!r->boot)
		r->boot = now + offset_ns;
	do {
		before = bl_mono_ns();
		if (sample_counts(r))
			r->changed_ns = now;
		after = bl_mono_ns();
	} while (after - before > TOOK_NS && ++tries < TRIES);
	r->next_ns = now + r->report_ns * (now - r->changed_ns < LINGER_NS ? 1 : SLOW);
	if (after - before < UINT32_MAX)
		send_round(r, before, after, offset_ns);
	return r->next_ns;
}

void bl_freport_close(struct bl_freport *r)
{
	if (!r)
		return;
	if (r->map)
		munmap(r->map, r->map_bytes);
	if (r->sock >= 0)
		close(r->sock);
	free(r->v);
	free(r);
}

/* Enters the addresses by which the programs know the endpoints. */
static int enter_peers(struct bpf_map *m, const struct bl_fp_file *f, struct bl_err *err)
{
	struct bl_mac_key key, next;
	uint32_t i, k, number, other;
	int fd = bpf_map__fd(m);

	while (!bpf_map_get_next_key(fd, NULL, &next))
		if (bpf_map_delete_elem(fd, &next))
			return bl_fail(err, errno, "cannot empty the map %s: %s", BL_MAP_FP_PEERS,
				       strerror(errno));
	for (i = 0; i < f->npeers; i++) {
		const struct bl_fp_peer *p = &f->peer[i];

		number = i + 1;
		for (k = 0; k < p->napps + p->has_mac; k++) {
			if (k < p->napps) {
				bl_fp_key(p->app[k], &key);
			} else {
				memset(&key, 0, sizeof(key));
				memcpy(key.mac, p->mac, 6);
			}
			if (!bpf_map_lookup_elem(fd, &key, &other) && other != number)
				return bl_fail(err, EEXIST,
					       "%s and %s have an address in common: their frames "
					       "cannot be told apart",
					       f->peer[other - 1].name, p->name);
			if (bpf_map_update_elem(fd, &key, &number, BPF_ANY))
				return bl_fail(err, errno, "cannot enter %s into the map %s: %s",
					       p->name, BL_MAP_FP_PEERS, strerror(errno));
		}
	}
	return 0;
}

static int open_maps(struct bl_freport *r, struct bpf_object *obj, const struct bl_fp_file *f,
		     struct bl_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct bpf_map *paths, *peers;
	int rc;

	rc = bl_map_find(obj, BL_MAP_FP_PATHS, sizeof(struct bl_fp_paths), &paths, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_FP_PEERS, sizeof(uint32_t), &peers, err);
	if (rc)
		return rc;
	if (bpf_map__max_entries(paths) < f->npeers)
		return bl_fail(err, EPROTO, "the map %s has room for %u endpoints, not %u",
			       BL_MAP_FP_PATHS, bpf_map__max_entries(paths), f->npeers);
	r->map_bytes = (f->npeers * sizeof(struct bl_fp_paths) + page - 1) / page * page;
	r->map = mmap(NULL, r->map_bytes, PROT_READ, MAP_SHARED, bpf_map__fd(paths), 0);
	if (r->map == MAP_FAILED) {
		r->map = NULL;
		return bl_fail(err, errno, "cannot map %s: %s", BL_MAP_FP_PATHS, strerror(errno));
	}
	return enter_peers(peers, f, err);
}

static int open_socket(struct bl_freport *r, const struct bl_fp_file *f, struct bl_err *err)
{
	struct sockaddr_storage from;
	socklen_t len = bl_ip_sockaddr(&from, f->peer[r->self].addr, 0);

	r->to_len = bl_ip_sockaddr(&r->to, f->faults, BL_FCP_FAULTS_PORT);
	if (from.ss_family != r->to.ss_family)
		return bl_fail(err, EAFNOSUPPORT,
			       "the addresses of this endpoint and of fault isolation must both be "
			       "IPv4 or both IPv6");
	r->sock = socket(from.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r->sock < 0)
		return bl_fail(err, errno, "cannot make a UDP socket: %s", strerror(errno));
	return bind(r->sock, (struct sockaddr *)&from, len)
		       ? bl_fail(err, errno, "cannot use this endpoint's address for reports: %s",
				 strerror(errno))
		       : 0;
}

int bl_freport_open(struct bl_freport **out, struct bpf_object *obj, const struct bl_fp_file *f,
		    uint32_t self, struct bl_err *err)
{
	struct bl_freport *r = calloc(1, sizeof(*r));
	int rc;

	*out = NULL;
	if (!r)
		return bl_fail(err, ENOMEM, "out of memory");
	r->sock = -1;
	r->peers = f->npeers;
	r->columns = bl_fp_ways(f) + 1;
	r->self = self;
	r->report_ns = f->fault_report_us * 1000ULL;
	r->params.secret[0] = f->secret[0];
	r->params.secret[1] = f->secret[1];
	r->params.table = bl_fp_table(f);
	r->v = calloc((size_t)r->peers * r->columns, 2 * sizeof(*r->v));
	rc = r->v ? open_maps(r, obj, f, err) : bl_fail(err, ENOMEM, "out of memory");
	if (!rc)
		rc = open_socket(r, f, err);
	if (rc)
		bl_freport_close(r);
	else
		*out = r;
	return rc;
}
