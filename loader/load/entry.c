// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See entry.h. The folders of dispatchers are described in dispatcher.c.
 *
 * They are read directly, and not by xdp_multiprog__get_from_ifindex(), because commands look at
 * nodes of other network namespaces, and because this is done for every interface once per second.
 */
#include "loader/load/entry.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <xdp/prog_dispatcher.h>

#include <bpf/bpf.h>

#include "base/bpffs.h"
#include "base/netns.h"
#include "loader/load/xdp.h"

const char *bl_libxdp_bpffs(void)
{
	const char *e = getenv("LIBXDP_BPFFS");

	return e && *e ? e : "/sys/fs/bpf";
}

void bl_dispatcher_folder(char *buf, size_t size, uint32_t ifindex, uint32_t id)
{
	snprintf(buf, size, "%s/xdp/dispatch-%u-%u", bl_libxdp_bpffs(), ifindex, id);
}

uint32_t bl_entry_id(int fd)
{
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &len) ? 0 : info.id;
}

/* Reads what program @fd is. Returns whether it is barline's member, and the id of its array. */
bool bl_is_member(int fd, struct bpf_prog_info *info, uint32_t *array)
{
	uint32_t len = sizeof(*info), id = 0;

	memset(info, 0, sizeof(*info));
	info->nr_map_ids = 1;
	info->map_ids = (uintptr_t)&id;
	if (bpf_obj_get_info_by_fd(fd, info, &len))
		return false;
	*array = id;
	return info->nr_map_ids == 1 && !strcmp(info->name, BL_MEMBER_NAME);
}

/* Returns a descriptor of member @k of the folder @path, whose link is there, too; or -1. */
static int open_member(const char *path, unsigned int k)
{
	char file[PATH_MAX];

	snprintf(file, sizeof(file), "%s/prog%u-link", path, k);
	if (access(file, F_OK))
		return -1;
	snprintf(file, sizeof(file), "%s/prog%u-prog", path, k);
	return bpf_obj_get(file);
}

/* Returns whether a member of dispatcher @id on @ifindex has the array @array. */
static bool has_array(uint32_t ifindex, uint32_t id, uint32_t array)
{
	struct bpf_prog_info info;
	char path[PATH_MAX];
	uint32_t its = 0;
	bool is = false;
	unsigned int k;
	int fd;

	bl_dispatcher_folder(path, sizeof(path), ifindex, id);
	for (k = 0; !is && k < BL_DISPATCHER_MEMBERS; k++) {
		fd = open_member(path, k);
		if (fd < 0)
			break;
		is = bl_is_member(fd, &info, &its) && its == array;
		close(fd);
	}
	return is;
}

uint32_t bl_xdp_id(int ifindex)
{
	int flags;

	return bl_xdp_present(ifindex, NULL, 0, &flags);
}

/*
 * Calls @fn for each folder of a dispatcher with the array @array, until @fn returns true. Returns
 * what @fn returned last.
 */
bool bl_dispatchers_each(uint32_t array, bl_folder_fn fn, void *ctx)
{
	char path[PATH_MAX], end;
	uint32_t ifindex, id;
	struct dirent *e;
	bool rc = false;
	DIR *d;

	snprintf(path, sizeof(path), "%s/xdp", bl_libxdp_bpffs());
	d = opendir(path);
	while (d && !rc && (e = readdir(d)))
		if (sscanf(e->d_name, "dispatch-%" SCNu32 "-%" SCNu32 "%c", &ifindex, &id, &end) ==
			    2 &&
		    has_array(ifindex, id, array))
			rc = fn(ifindex, id, ctx);
	if (d)
		closedir(d);
	return rc;
}

bool bl_entry_is(int fd)
{
	return bl_bpf_fd_is(fd, "map");
}

/** struct where - the dispatcher that a search has found. */
struct where {
	bool here; /* the node is in the caller's network namespace */
	uint32_t ifindex, id;
};

static bool is_here(uint32_t ifindex, uint32_t id, void *ctx)
{
	struct where *w = ctx;

	if (w->here && bl_xdp_id((int)ifindex) != id)
		return false;
	w->ifindex = ifindex;
	w->id = id;
	return true;
}

/* Whether the egress link beside the pin @path has lost its interface, and so has the member. */
static bool is_iface_gone(const char *path)
{
	struct bpf_link_info info = {};
	uint32_t len = sizeof(info);
	char egress[PATH_MAX];
	const char *name = strrchr(path, '/');
	bool gone;
	int fd;

	if (!name || strncmp(name, "/xdp-", 5))
		return false;
	snprintf(egress, sizeof(egress), "%.*s/egress-%s", (int)(name - path), path, name + 5);
	fd = bpf_obj_get(egress);
	if (fd < 0)
		return false;
	gone = !bpf_obj_get_info_by_fd(fd, &info, &len) && !info.xdp.ifindex;
	close(fd);
	return gone;
}

static bool find_dispatcher(const char *path, int fd, struct where *w)
{
	const char *end = strstr(path, "/links/"), *ino = end;
	uint32_t array = bl_entry_id(fd);
	unsigned int k;

	while (ino && ino > path && ino[-1] != '-')
		ino--;
	memset(w, 0, sizeof(*w));
	w->here = ino && strtoull(ino, NULL, 10) == bl_netns_ino();
	if (!array || (!w->here && is_iface_gone(path)))
		return false;
	/* Others may replace the dispatcher between a look at its folder and one at the hook. */
	for (k = 0; k < BL_DISPATCHER_RACES; k++)
		if (bl_dispatchers_each(array, is_here, w))
			return true;
	return false;
}

uint32_t bl_entry_ifindex(const char *path, int fd)
{
	struct where w;

	return find_dispatcher(path, fd, &w) ? w.ifindex : 0;
}

int bl_entry_prog(int fd, int ifindex, uint32_t *id)
{
	uint32_t array = bl_entry_id(fd), zero = 0, now, at;
	unsigned int k;

	for (k = 0; array && k < BL_DISPATCHER_RACES; k++) {
		at = bl_xdp_id(ifindex);
		if (!at)
			return -ENOENT;
		if (has_array((uint32_t)ifindex, at, array)) {
			if (bpf_map_lookup_elem(fd, &zero, id))
				*id = 0;
			return 0;
		}
		now = bl_xdp_id(ifindex);
		if (now == at)
			break;
	}
	return -ENOENT;
}

bool bl_is_dispatcher(int ifindex, uint32_t id)
{
	char path[PATH_MAX];

	bl_dispatcher_folder(path, sizeof(path), (uint32_t)ifindex, id);
	return !access(path, F_OK);
}

/* Reads the configuration that libxdp has given to dispatcher @id; all zero if that fails. */
static void read_config(uint32_t id, struct xdp_dispatcher_config *c)
{
	struct bpf_map_info map = {};
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info), rodata = 0, zero = 0;
	int prog = bpf_prog_get_fd_by_id(id), fd = -1;

	memset(c, 0, sizeof(*c));
	info.nr_map_ids = 1;
	info.map_ids = (uintptr_t)&rodata;
	if (prog >= 0 && !bpf_obj_get_info_by_fd(prog, &info, &len) && info.nr_map_ids == 1)
		fd = bpf_map_get_fd_by_id(rodata);
	len = sizeof(map);
	if (fd >= 0 && (bpf_obj_get_info_by_fd(fd, &map, &len) || map.value_size != sizeof(*c) ||
			bpf_map_lookup_elem(fd, &zero, c) || c->magic != XDP_DISPATCHER_MAGIC))
		memset(c, 0, sizeof(*c));
	if (fd >= 0)
		close(fd);
	if (prog >= 0)
		close(prog);
}

int bl_dispatcher_read(const char *dir, const char *ifname, struct bl_dispatcher *d)
{
	struct xdp_dispatcher_config c;
	struct bpf_prog_info info;
	char path[PATH_MAX], folder[PATH_MAX];
	uint32_t array = 0;
	struct where w;
	int fd, prog;
	bool found;

	memset(d, 0, sizeof(*d));
	snprintf(path, sizeof(path), "%s/links/xdp-%s", dir, ifname);
	bl_bpffs_name(path + strlen(path) - strlen(ifname));
	fd = bpf_obj_get(path);
	if (fd < 0)
		return -ENOENT;
	found = bl_entry_is(fd) && find_dispatcher(path, fd, &w);
	if (found) {
		d->id = w.id;
		d->ifindex = w.ifindex;
		read_config(w.id, &c);
		bl_dispatcher_folder(folder, sizeof(folder), w.ifindex, w.id);
		while (d->n < BL_DISPATCHER_MEMBERS && (prog = open_member(folder, d->n)) >= 0) {
			struct bl_member *m = &d->member[d->n];

			m->own = bl_is_member(prog, &info, &array) && array == bl_entry_id(fd);
			m->id = info.id;
			m->prio = c.run_prios[d->n++];
			snprintf(m->name, sizeof(m->name), "%s", info.name);
			close(prog);
		}
	}
	close(fd);
	return found ? 0 : -ENOENT;
}
