// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See read_figures.h. */
#include "cli/util/read_figures.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "maps/host_abi.h"

/* mmap() counts in pages. */
_Static_assert(offsetof(struct bl_ep_page, fig) == 4096, "the figures begin with a page");

const struct bl_figures *figures_map(const struct bl_node_ref *ref, unsigned int slot,
				     struct bl_err *err)
{
	char pin[16];
	void *p;
	int fd;

	snprintf(pin, sizeof(pin), BL_MAP_EP_PAGE_PIN, slot);
	/* For writing, too: the kernel refuses to map what was opened for reading only (EINVAL). */
	fd = bl_map_open(ref, pin, sizeof(struct bl_ep_page), true, err);
	if (fd < 0)
		return NULL;
	p = mmap(NULL, sizeof(struct bl_figures), PROT_READ, MAP_SHARED, fd,
		 offsetof(struct bl_ep_page, fig));
	if (p == MAP_FAILED)
		bl_fail(err, errno, "cannot map %s/maps/%s: %s", ref->dir, pin, strerror(errno));
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

void figures_unmap(const struct bl_figures *f)
{
	if (f)
		munmap((void *)(uintptr_t)f, sizeof(*f));
}
