/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding barline's members in dispatchers of libxdp, by the arrays that they use. dispatcher.h
 * explains both.
 */
#ifndef BARLINE_ENTRY_H
#define BARLINE_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_prog_info;

#define BL_MEMBER_NAME        "bl_entry" /* of the program */
#define BL_DISPATCHER_RACES   5          /* looks at a dispatcher that others are replacing */
#define BL_DISPATCHER_MEMBERS 10         /* that libxdp allows */

/** struct bl_member - a program in a dispatcher. */
struct bl_member {
	uint32_t id;
	uint32_t prio; /* members are called in ascending order */
	char name[16];
	bool own; /* it stands for barline's program */
};

/** struct bl_dispatcher - the dispatcher that a node's array is in. */
struct bl_dispatcher {
	uint32_t id; /* of its program; 0: there is none */
	uint32_t ifindex;
	unsigned int n; /* members, in the order in which they are called */
	struct bl_member member[BL_DISPATCHER_MEMBERS];
};

/** bl_entry_is - returns whether @fd, a pin of links/, is an array and not a bpf_link. */
bool bl_entry_is(int fd);

/**
 * bl_entry_ifindex - the interface whose dispatcher has a member with the array @fd; 0: none.
 * @path: of the pin of the array; its directory says in which network namespace the node is
 * In another network namespace than the caller's, a dispatcher counts until its interface is known
 * to be gone.
 */
uint32_t bl_entry_ifindex(const char *path, int fd);

/**
 * bl_entry_prog - finds whether the array @fd is in the dispatcher of interface @ifindex, and
 * writes the id of the program in its slot (0: it is empty). Returns 0 or -ENOENT.
 */
int bl_entry_prog(int fd, int ifindex, uint32_t *id);

/** bl_is_dispatcher - whether XDP program @id on @ifindex is a dispatcher that can be joined. */
bool bl_is_dispatcher(int ifindex, uint32_t id);

/**
 * bl_dispatcher_read - reads the dispatcher that the array pinned at @dir/links/xdp-@ifname is in.
 * Returns 0, or -ENOENT if there is none.
 */
int bl_dispatcher_read(const char *dir, const char *ifname, struct bl_dispatcher *d);

/* ---- for dispatcher.c ---- */

/** bl_libxdp_bpffs - where libxdp expects a bpffs. */
const char *bl_libxdp_bpffs(void);

/** bl_dispatcher_folder - the folder of the pins of dispatcher @id on @ifindex. */
void bl_dispatcher_folder(char *buf, size_t size, uint32_t ifindex, uint32_t id);

/** bl_entry_id - the id of the array @fd; 0: it cannot be read. */
uint32_t bl_entry_id(int fd);

/**
 * bl_is_member - fills @info with what program @fd is. Returns whether it is a member of barline,
 * and the id of its array.
 */
bool bl_is_member(int fd, struct bpf_prog_info *info, uint32_t *array);

/** bl_xdp_id - the id of the XDP program on @ifindex; 0: none. */
uint32_t bl_xdp_id(int ifindex);

/**
 * bl_dispatchers_each - calls @fn for each folder of a dispatcher that has a member with the array
 * @array, until @fn returns true. Returns what @fn returned last.
 */
typedef bool (*bl_folder_fn)(uint32_t ifindex, uint32_t id, void *ctx);
bool bl_dispatchers_each(uint32_t array, bl_folder_fn fn, void *ctx);

#endif
