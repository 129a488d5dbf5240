// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The pinned maps of a node, for the daemon that serves it; see node_priv.h. */
#include <stdio.h>
#include <unistd.h>

#include "loader/load/maps.h"
#include "loader/load/pin.h"
#include "loader/node_priv.h"

int bl_node_map_open(const struct bl_node *n, const char *map, uint32_t value_size,
		     struct bl_err *err)
{
	struct bl_node_ref ref = { .role = n->cfg.role,
				   .netns_ino = n->netns_ino,
				   .meta = n->meta };

	snprintf(ref.dir, sizeof(ref.dir), "%s", n->dir);
	return bl_map_open(&ref, map, value_size, true, err);
}

int bl_node_map_set(const struct bl_node *n, const char *map, uint32_t value_size, uint32_t key,
		    const void *value, struct bl_err *err)
{
	int fd = bl_node_map_open(n, map, value_size, err), rc;

	if (fd < 0)
		return fd;
	rc = bl_map_set(fd, key, value, map, err);
	close(fd);
	return rc;
}
