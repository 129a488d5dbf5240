// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See endpoints.h. */
#include "cli/util/endpoints.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

/* The kernel keeps both positions in the first two pages of a ring. */
int64_t endpoint_ring_used(uint32_t id)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = bpf_map_get_fd_by_id(id);
	int64_t used = -1;
	uint8_t *p;

	if (fd < 0)
		return -1;
	p = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED) {
		used = (int64_t)(*(volatile unsigned long *)(p + page) -
				 *(volatile unsigned long *)p);
		munmap(p, 2 * page);
	}
	close(fd);
	return used;
}

static void read_page(uint32_t id, struct endpoint_row *e)
{
	int fd = bpf_map_get_fd_by_id(id);
	const struct bl_ep_page *p;

	if (fd < 0)
		return;
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED) {
		e->line = p->line;
		e->wake = p->wake;
		munmap((void *)(uintptr_t)p, 4096);
	}
	close(fd);
}

/* Reads what is in the maps of its own of the endpoint in slot @slot. */
static void read_own(int rings, int pages, uint32_t slot, struct endpoint_row *e)
{
	uint32_t id;

	e->ring_used = bpf_map_lookup_elem(rings, &slot, &id) ? -1 : endpoint_ring_used(id);
	if (!bpf_map_lookup_elem(pages, &slot, &id))
		read_page(id, e);
}

int node_endpoints_read(const struct bl_node_ref *ref, const struct bl_host_page *page,
			struct endpoint_row **out, struct bl_err *err)
{
	struct bl_ep_slot *s = calloc(BL_PORT_COUNT, sizeof(*s));
	struct endpoint_row *rows = calloc(BL_PORT_COUNT, sizeof(*rows));
	int rings = -1, pages = -1, rc, n = 0;
	uint32_t i;

	*out = rows;
	if (!s || !rows) {
		free(s);
		return bl_fail(err, ENOMEM, "out of memory");
	}
	rc = bl_map_read_all(ref, BL_MAP_EPS, sizeof(*s), BL_PORT_COUNT, s, err);
	if (!rc)
		rc = rings = bl_map_open(ref, BL_MAP_RINGS, sizeof(uint32_t), false, err);
	if (rc >= 0)
		rc = pages = bl_map_open(ref, BL_MAP_EP_PAGES, sizeof(uint32_t), false, err);
	for (i = 0; rc >= 0 && i < BL_PORT_COUNT; i++) {
		if (!s[i].active || s[i].slot >= BL_EPS_MAX)
			continue;
		s[i].name[sizeof(s[i].name) - 1] = '\0';
		rows[n].s = s[i];
		rows[n].word = page->word[s[i].slot];
		read_own(rings, pages, s[i].slot, &rows[n]);
		n++;
	}
	if (rings >= 0)
		close(rings);
	if (pages >= 0)
		close(pages);
	free(s);
	return rc < 0 ? rc : n;
}
