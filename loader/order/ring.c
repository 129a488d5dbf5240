// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See ring.h. The map "rings" gives an id of a ring, and opening a map by its id takes
 * CAP_SYS_ADMIN, which the daemon does not keep. So each ring has a pin of its own, maps/ring-SLOT,
 * that lives as long as its entry. A ring without a pin was made by a daemon of before.
 */
#include "loader/order/ring.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "loader/load/pin.h"
#include "loader/node_priv.h"

static void ring_path(char *buf, size_t size, const struct bl_node *n, uint32_t slot)
{
	snprintf(buf, size, "%s/maps/ring-%u", n->dir, slot);
}

int bl_ring_enter(const struct bl_node *n, uint32_t slot, int fd)
{
	char path[BL_PATH_MAX];
	int rc;

	if (bpf_map_update_elem(n->rings_fd, &slot, &fd, BPF_ANY))
		return -errno;
	ring_path(path, sizeof(path), n, slot);
	rc = bl_pin_over(fd, path, NULL);
	if (rc)
		bpf_map_delete_elem(n->rings_fd, &slot);
	return rc;
}

int bl_ring_open(const struct bl_node *n, uint32_t slot)
{
	struct bpf_map_info info = {};
	uint32_t id, len = sizeof(info);
	char path[BL_PATH_MAX];
	int fd;

	if (bpf_map_lookup_elem(n->rings_fd, &slot, &id))
		return -errno;
	ring_path(path, sizeof(path), n, slot);
	fd = bpf_obj_get(path);
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len) && info.id == id)
		return fd;
	if (fd >= 0)
		close(fd);
	fd = bpf_map_get_fd_by_id(id);
	return fd < 0 ? -errno : fd;
}

int bl_ring_remove(const struct bl_node *n, uint32_t slot)
{
	char path[BL_PATH_MAX];

	ring_path(path, sizeof(path), n, slot);
	unlink(path);
	return bpf_map_delete_elem(n->rings_fd, &slot) && errno != ENOENT ? -errno : 0;
}
