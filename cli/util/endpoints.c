// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See endpoints.h. */
#include "cli/util/endpoints.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/text.h"

#define PAGE_HEAD offsetof(struct bl_ep_page, fig) /* what is read of an endpoint's page */

/*
 * Maps @bytes of a map that belongs to one endpoint. NULL: the endpoint has left. Such a map has a
 * pin, since opening a map by its id takes CAP_SYS_ADMIN.
 */
static const void *map_pin(const char *path, size_t bytes)
{
	int fd = bpf_obj_get(path);
	void *p;

	if (fd < 0)
		return NULL;
	p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static void unmap_pin(const void *p, size_t bytes)
{
	munmap((void *)(uintptr_t)p, bytes);
}

/* The kernel keeps both positions in the first two pages of a ring. */
int64_t endpoint_ring_used(const struct bl_node_ref *ref, uint32_t slot)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char path[BL_PATH_MAX];
	const uint8_t *p;
	int64_t used;

	snprintf(path, sizeof(path), "%s/maps/" BL_MAP_RING_PIN, ref->dir, slot);
	p = map_pin(path, 2 * page);
	if (!p)
		return -1;
	used = (int64_t)(*(const volatile unsigned long *)(p + page) -
			 *(const volatile unsigned long *)p);
	unmap_pin(p, 2 * page);
	return used;
}

/* Reads what is in the maps of its own of the endpoint in slot @slot. */
static void read_own(const struct bl_node_ref *ref, uint32_t slot, struct endpoint_row *e)
{
	const struct bl_ep_page *p;
	char path[BL_PATH_MAX];

	snprintf(path, sizeof(path), "%s/maps/" BL_MAP_EP_PAGE_PIN, ref->dir, slot);
	p = map_pin(path, PAGE_HEAD);
	e->ring_used = endpoint_ring_used(ref, slot);
	if (!p)
		return;
	e->line = p->line;
	e->wake = p->wake;
	unmap_pin(p, PAGE_HEAD);
}

int node_endpoints_read(const struct bl_node_ref *ref, const struct bl_host_page *page,
			struct endpoint_row **out, struct bl_err *err)
{
	struct bl_ep_slot *s = calloc(BL_PORT_COUNT, sizeof(*s));
	struct endpoint_row *rows = calloc(BL_PORT_COUNT, sizeof(*rows));
	int rc, n = 0;
	uint32_t i;

	*out = rows;
	if (!s || !rows) {
		free(s);
		return bl_fail(err, ENOMEM, "out of memory");
	}
	rc = bl_map_read_all(ref, BL_MAP_EPS, sizeof(*s), BL_PORT_COUNT, s, err);
	for (i = 0; !rc && i < BL_PORT_COUNT; i++) {
		if (!s[i].active || s[i].slot >= BL_EPS_MAX)
			continue;
		s[i].name[sizeof(s[i].name) - 1] = '\0';
		bl_text_plain(s[i].name); /* a process may call itself anything */
		rows[n].s = s[i];
		rows[n].word = page->word[s[i].slot];
		read_own(ref, s[i].slot, &rows[n]);
		n++;
	}
	free(s);
	return rc ? rc : n;
}
