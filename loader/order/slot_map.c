// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See slot_map.h. The maps "rings" and "ep_pages" give the id of a map, and opening a map by its id
 * takes CAP_SYS_ADMIN, which the daemon does not keep. So each of them has a pin of its own,
 * maps/ring-SLOT or maps/page-SLOT, that lives as long as its entry.
 */
#include "loader/order/slot_map.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "loader/load/pin.h"
#include "loader/node_priv.h"

static void pin_path(char *buf, size_t size, const struct bl_node *n, enum bl_slot_map what,
		     uint32_t slot)
{
	snprintf(buf, size,
		 what == BL_SLOT_RING ? "%s/maps/" BL_MAP_RING_PIN : "%s/maps/" BL_MAP_EP_PAGE_PIN,
		 n->dir, slot);
}

static int outer_fd(const struct bl_node *n, enum bl_slot_map what)
{
	return what == BL_SLOT_RING ? n->rings_fd : n->pages_fd;
}

int bl_slot_map_enter(const struct bl_node *n, enum bl_slot_map what, uint32_t slot, int fd)
{
	char path[BL_PATH_MAX];
	int rc;

	if (bpf_map_update_elem(outer_fd(n, what), &slot, &fd, BPF_ANY))
		return -errno;
	pin_path(path, sizeof(path), n, what, slot);
	rc = bl_pin_over(fd, path, NULL);
	if (rc)
		bpf_map_delete_elem(outer_fd(n, what), &slot);
	return rc;
}

int bl_slot_map_open(const struct bl_node *n, enum bl_slot_map what, uint32_t slot)
{
	struct bpf_map_info info = {};
	uint32_t id, len = sizeof(info);
	char path[BL_PATH_MAX];
	int fd;

	if (bpf_map_lookup_elem(outer_fd(n, what), &slot, &id))
		return -errno;
	pin_path(path, sizeof(path), n, what, slot);
	fd = bpf_obj_get(path);
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len) && info.id == id)
		return fd;
	if (fd >= 0)
		close(fd);
	fd = bpf_map_get_fd_by_id(id);
	return fd < 0 ? -errno : fd;
}

int bl_slot_map_remove(const struct bl_node *n, enum bl_slot_map what, uint32_t slot)
{
	char path[BL_PATH_MAX];

	pin_path(path, sizeof(path), n, what, slot);
	unlink(path);
	return bpf_map_delete_elem(outer_fd(n, what), &slot) && errno != ENOENT ? -errno : 0;
}
