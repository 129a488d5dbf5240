/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pins: the bpffs of barline, the directory of a node in it, the node's lock, and finding nodes and
 * their maps again. maps/meta_abi.h has the layout of the directory.
 */
#ifndef BARLINE_PIN_H
#define BARLINE_PIN_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "maps/meta_abi.h"

#define BL_BPFFS    BL_RUN_DIR "/bpf"
#define BL_PATH_MAX 384 /* bytes of a path below BL_BPFFS */

/** struct bl_node_ref - a node that is pinned on this machine, whether a daemon serves it or not.
 */
struct bl_node_ref {
	enum bl_role role;
	uint64_t netns_ino;  /* inode number of its network namespace */
	char dir[256];       /* its directory in the bpffs */
	struct bl_meta meta; /* its meta map; all zero: could not be read */
};

/** struct bl_node_ports - the NIC of a host, or the ports of a switch. */
struct bl_node_ports {
	unsigned int all;
	unsigned int gone; /* those of them that do not exist any more */
	char first[32];    /* name of the first of @gone; "": none */
};

/** bl_role_name - "switch", "host", or "none". */
const char *bl_role_name(enum bl_role role);

/** bl_bpffs_mount - mounts the bpffs at BL_BPFFS if it is not mounted. Returns 0 or -errno. */
int bl_bpffs_mount(struct bl_err *err);

/**
 * bl_node_lock - takes the lock of a node. A process that changes its pins holds the lock.
 * @ino: inode number of the node's network namespace.
 * @wait_ms: how long to wait for the present holder.
 * Returns the lock's fd, or -errno; -EBUSY names the pid of the holder.
 */
int bl_node_lock(enum bl_role role, uint64_t ino, unsigned int wait_ms, struct bl_err *err);

/** bl_node_unlock - releases the lock @fd (< 0: no-op); @gone: the node is gone, remove the file.
 */
void bl_node_unlock(enum bl_role role, uint64_t ino, int fd, bool gone);

/** bl_meta_read - reads the meta map of the node in @dir. Returns 0, or -errno and all zero. */
int bl_meta_read(const char *dir, struct bl_meta *meta);

/** bl_dir_make - makes the directory of a node and its subdirectories. Returns 0 or -errno. */
int bl_dir_make(const char *dir, struct bl_err *err);

/** bl_pins_folder - makes a folder of pins, unless it is there. Returns 0 or -errno. */
int bl_pins_folder(const char *path, struct bl_err *err);

/** bl_pins_remove - removes a folder of pins with all in it. Returns 0, or -errno. */
int bl_pins_remove(const char *path);

/** bl_dir_remove - removes all pins in @dir, links first, and @dir itself. Returns 0 or -errno. */
int bl_dir_remove(const char *dir);

/**
 * bl_pin_over - pins the object @fd at @path, replacing a pin that is there. The name exists at
 * every moment. Returns 0 or -errno.
 */
int bl_pin_over(int fd, const char *path, struct bl_err *err);

/**
 * bl_links_each - calls @fn for every pinned link of the node in @dir until @fn returns non-zero.
 * The entry into a dispatcher (dispatcher.h) counts as one; @link_fd is a map then.
 * @ifindex of the callback is 0 if the link's interface is gone. Returns what @fn returned last, or
 * -errno.
 */
typedef int (*bl_link_fn)(const char *path, const char *name, int link_fd, uint32_t ifindex,
			  void *ctx);
int bl_links_each(const char *dir, bl_link_fn fn, void *ctx);

/** bl_links_alive - returns how many pinned links of the node are still attached. */
int bl_links_alive(const char *dir);

/**
 * bl_nodes_find - lists the nodes pinned on this machine whose meta map can be read.
 * @netns_ino: only nodes of this network namespace; 0: all.
 * Returns the count or -errno. The caller frees *@out.
 */
int bl_nodes_find(struct bl_node_ref **out, uint64_t netns_ino, struct bl_err *err);

/** bl_nodes_list - bl_nodes_find(); with @meta_needed false also nodes without a meta map. */
int bl_nodes_list(struct bl_node_ref **out, uint64_t netns_ino, bool meta_needed,
		  struct bl_err *err);

/** bl_node_nic - reads the name of a host's NIC, which may be gone. Returns false if unknown. */
bool bl_node_nic(const struct bl_node_ref *ref, char name[IFNAMSIZ]);

/**
 * bl_node_ports - counts the interfaces of the node, and those that are gone. From another network
 * namespace, one without any program of barline counts as gone, too.
 */
void bl_node_ports(const struct bl_node_ref *ref, struct bl_node_ports *p);

/**
 * bl_map_open - opens a pinned map of the node and checks its type, key size and value size.
 * @write: open it for writing, too.
 * Returns an fd or -errno.
 */
int bl_map_open(const struct bl_node_ref *ref, const char *map, uint32_t value_size, bool write,
		struct bl_err *err);

/**
 * bl_array_read - reads the first @entries values of the array @fd, each @value_size bytes, to
 * @out: in one call where the kernel can. Returns 0 or -errno.
 */
int bl_array_read(int fd, uint32_t value_size, uint32_t entries, void *out);

/**
 * bl_map_read_all - reads the first @entries values of an array of the node, each @value_size
 * bytes, to @out. Returns 0 or -errno.
 */
int bl_map_read_all(const struct bl_node_ref *ref, const char *map, uint32_t value_size,
		    uint32_t entries, void *out, struct bl_err *err);

#endif
