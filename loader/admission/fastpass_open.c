// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A Fastpass host: its maps, its socket and its end of FCP are made and freed. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/ip.h"
#include "core/fastpass/fastpass_core.h"
#include "loader/admission/fastpass_host.h"
#include "loader/load/maps.h"

#define PACE_SLOTS  8 /* requests are that many slots apart at least */
#define DESTS_BYTES (BL_DESTS * sizeof(struct bl_fp_dest))

/* @n bytes, in whole pages. */
static size_t page_round(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) / page * page;
}

void bl_fpass_free(struct bl_fpass *h)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (h->dest)
		munmap(h->dest, page_round(DESTS_BYTES));
	if (h->page)
		munmap(h->page, page);
	if (h->due)
		munmap(h->due, page_round(sizeof(*h->due)));
	if (h->bell_read)
		munmap(h->bell_read, page);
	if (h->bell_written)
		munmap((void *)h->bell_written, page);
	if (h->sock >= 0)
		close(h->sock);
	if (h->macs_fd >= 0)
		close(h->macs_fd);
	if (h->bell_fd >= 0)
		close(h->bell_fd);
	bl_freport_close(h->report);
	free(h->mem);
	free(h->peer);
	free(h->of);
	free(h);
}

/* Binds a socket to the address of the endpoint that this machine is, and sets *@self. */
static int open_socket(struct bl_fpass *h, const struct bl_fp_file *f, uint32_t *self,
		       struct bl_err *err)
{
	struct bl_fpass_arbiter here;
	unsigned int i;
	int last = 0;

	for (i = 0; i < f->npeers; i++) {
		here.len = bl_ip_sockaddr(&here.any, f->peer[i].addr, BL_FCP_PORT);
		h->sock = socket(here.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (h->sock < 0)
			return bl_fail(err, errno, "cannot make a UDP socket: %s", strerror(errno));
		if (!bind(h->sock, &here.sa, here.len)) {
			*self = i;
			return 0;
		}
		if (errno != EADDRNOTAVAIL)
			last = errno;
		close(h->sock);
		h->sock = -1;
	}
	if (last)
		return bl_fail(err, last, "cannot use UDP port %d: %s", BL_FCP_PORT,
			       strerror(last));
	return bl_fail(err, EADDRNOTAVAIL,
		       "this host has none of the addresses of the Fastpass file's %u endpoints; "
		       "add it there",
		       f->npeers);
}

/* FCP's end, with the parameters of the file. */
static int open_fcp(struct bl_fpass *h, const struct bl_fp_file *f, uint32_t self,
		    struct bl_err *err)
{
	struct bl_fcp_end *e = &h->fcp.e;
	uint32_t n = f->npeers, challenge;
	uint8_t *m;

	h->mem = m = calloc(1, BL_FCP_WINDOW * sizeof(*e->sent) +
				       n * (sizeof(*e->pair) + 2 * sizeof(uint16_t)));
	h->peer = calloc(n, sizeof(*h->peer));
	h->of = calloc(n, sizeof(*h->of));
	if (!m || !h->peer || !h->of)
		return bl_fail(err, ENOMEM, "out of memory");
	if (getrandom(&challenge, sizeof(challenge), 0) != sizeof(challenge))
		return bl_fail(err, EIO, "the kernel has no random numbers");
	memcpy(h->peer, f->peer, n * sizeof(*h->peer));
	h->npeers = n;
	e->n = n;
	e->sent = (void *)m;
	e->pair = (void *)(m + BL_FCP_WINDOW * sizeof(*e->sent));
	e->tell.item = (void *)(e->pair + n);
	e->look.item = e->tell.item + n;
	h->fcp.p = (struct bl_fcp_params)BL_FCP_PARAMS_DEFAULT;
	h->fcp.p.secret[0] = f->secret[0];
	h->fcp.p.secret[1] = f->secret[1];
	h->fcp.p.table = bl_fp_table(f);
	h->fcp.p.rtt_ns = f->rtt_us * 1000ULL;
	h->fcp.p.reorder_ns = f->rtt_us * 500ULL;
	h->fcp.p.ack_ns = f->rtt_us * 500ULL;
	h->fcp.p.pace_ns = PACE_SLOTS * (uint64_t)f->slot_ns;
	h->fcp.p.keep_ns = f->rtt_us * 5000ULL;
	bl_fcp_host_init(&h->fcp, self, challenge);
	return 0;
}

/* mmap of a map; NULL after an error. */
static void *mmap_map(int fd, size_t len, off_t at, bool write, const char *name,
		      struct bl_err *err)
{
	void *v = mmap(NULL, len, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, at);

	if (v != MAP_FAILED)
		return v;
	bl_fail(err, errno, "cannot map %s: %s", name, strerror(errno));
	return NULL;
}

static int open_maps(struct bl_fpass *h, struct bpf_object *obj, struct bl_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct bpf_map *dests, *pg, *due, *macs, *bell;
	int rc;

	rc = bl_map_find(obj, BL_MAP_FP_DESTS, sizeof(struct bl_fp_dest), &dests, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_FP_PAGE, sizeof(struct bl_fp_page), &pg, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_HOLD_DUE, sizeof(struct bl_due), &due, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_HOLD_MACS, sizeof(struct bl_hold_dest), &macs, err);
	if (!rc)
		rc = bl_map_find(obj, BL_MAP_FP_BELL, 0, &bell, err);
	if (rc)
		return rc;
	if (bpf_map__max_entries(dests) != BL_DESTS)
		return bl_fail(err, EPROTO, "the map %s has room for %u destinations, not %d",
			       BL_MAP_FP_DESTS, bpf_map__max_entries(dests), BL_DESTS);
	h->macs_fd = fcntl(bpf_map__fd(macs), F_DUPFD_CLOEXEC, 3);
	h->bell_fd = fcntl(bpf_map__fd(bell), F_DUPFD_CLOEXEC, 3);
	if (h->macs_fd < 0 || h->bell_fd < 0)
		return bl_fail(err, errno, "cannot keep a map: %s", strerror(errno));
	h->dest = mmap_map(bpf_map__fd(dests), page_round(DESTS_BYTES), 0, true, BL_MAP_FP_DESTS,
			   err);
	h->page = h->dest ? mmap_map(bpf_map__fd(pg), page, 0, true, BL_MAP_FP_PAGE, err) : NULL;
	h->due = h->page ? mmap_map(bpf_map__fd(due), page_round(sizeof(struct bl_due)), 0, true,
				    BL_MAP_HOLD_DUE, err)
			 : NULL;
	/*
	 * A ring buffer's first page has the reader's position, the second one the writer's, which
	 * is read-only.
	 */
	h->bell_read = h->due ? mmap_map(h->bell_fd, page, 0, true, BL_MAP_FP_BELL, err) : NULL;
	h->bell_written =
		h->bell_read ? mmap_map(h->bell_fd, page, (off_t)page, false, BL_MAP_FP_BELL, err)
			     : NULL;
	return h->bell_written ? 0 : -EIO;
}

/*
 * Drops what an earlier daemon left: slots of its session are not valid in ours, and the frames
 * that they were for are asked for anew.
 */
static void reset_dests(struct bl_fpass *h)
{
	uint32_t n, i;

	memset(h->page, 0, sizeof(*h->page));
	for (n = 0; n < BL_DESTS; n++) {
		struct bl_fp_dest *d = &h->dest[n];

		for (i = 0; i < BL_FP_WORDS; i++)
			(void)__sync_lock_test_and_set(&d->word[i].bits, 0);
		h->told[n] = d->used + d->idle;
		h->missed[n] = d->missed;
		BL_WRITE_ONCE(d->endpoint, BL_FP_UNKNOWN);
	}
}

int bl_fpass_open(struct bl_fpass **out, struct bl_node *n, struct bpf_object *obj,
		  const struct bl_fp_file *f, struct bl_err *err)
{
	struct bl_fpass *h = calloc(1, sizeof(*h));
	uint32_t self = 0;
	unsigned int i;
	int rc;

	if (!h)
		return bl_fail(err, ENOMEM, "out of memory");
	h->sock = h->macs_fd = h->bell_fd = -1;
	h->node = n;
	h->slot_ns = f->slot_ns;
	h->late_ns = f->late_us * 1000U;
	if (f->fallback_ms != BL_FP_NO_FALLBACK)
		h->fallback_ns = f->fallback_ms * 1000000ULL;
	for (i = 0; i < f->narbiters; i++)
		h->arbiter[i].len = bl_ip_sockaddr(&h->arbiter[i].any, f->arbiter[i], BL_FCP_PORT);
	h->narbiters = f->narbiters;
	rc = open_maps(h, obj, err);
	if (!rc)
		rc = open_socket(h, f, &self, err);
	if (!rc)
		rc = open_fcp(h, f, self, err);
	if (!rc && f->has_faults)
		rc = bl_freport_open(&h->report, obj, f, self, err);
	if (rc) {
		bl_fpass_free(h);
		return rc;
	}
	reset_dests(h);
	*out = h;
	return 0;
}
