/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs of a node: loaded, or those of the daemon before.
 *
 * The kernel needs some tenths of a second to verify and to translate a node's programs, and on a
 * machine with few CPUs everything else waits meanwhile. A daemon that takes over a node therefore
 * goes on with the programs that run there, if it would load the very same ones: the same object
 * file, the same constants and flags, and the same maps.
 *
 *	libbpf's object is open, its constants, flags and maps are set
 *		bl_progs_load()	finds the pins of such programs, or loads the object
 *		bl_progs_fd()	has the descriptor of a program in either case
 *	the programs are attached
 *		bl_progs_pin()	pins them for the next daemon, and lets go of others
 *
 * Whoever wants them to be loaded anew removes the folder progs/ of the node (maps/meta_abi.h).
 */
#ifndef BARLINE_LOADER_PROGS_H
#define BARLINE_LOADER_PROGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

struct bpf_object_skeleton;
struct bpf_program;

#define BL_PROGS_MAX 48 /* programs of an object */

/** struct bl_progs - the programs of one object. All zero: none. */
struct bl_progs {
	struct bpf_object_skeleton *skel;
	uint64_t sum; /* checksum of all that they depend on, but the maps */
	bool kept;    /* they ran before; the object is open, but not loaded */
	unsigned int n;
	struct {
		const struct bpf_program *prog;
		int fd;
	} of[BL_PROGS_MAX]; /* those that are loaded; libbpf closes @fd unless they are @kept */
};

/**
 * bl_progs_load - opens the programs that are pinned in the directory of the node @dir if they are
 * those of @skel, or loads @skel. Maps that are to be used again are set already.
 * @what: "host" or "switch", for messages.
 * Returns 0 or -errno.
 */
int bl_progs_load(struct bl_progs *p, struct bpf_object_skeleton *skel, const char *dir,
		  const char *what, struct bl_err *err);

/** bl_progs_fd - the descriptor of @prog, which is valid until bl_progs_end(); -1: not loaded. */
int bl_progs_fd(const struct bl_progs *p, const struct bpf_program *prog);

/** bl_progs_find - the descriptor of the program @name; -1: the object has none, or not loaded. */
int bl_progs_find(const struct bl_progs *p, const char *name);

/**
 * bl_progs_pin - pins the programs, which are attached, for the next daemon, removes the pins of
 * others, and says in the log what became of the programs that ran. If that fails, the next daemon
 * loads its programs, and a warning says so.
 * @name: of the node, for the log
 */
void bl_progs_pin(const struct bl_progs *p, const char *dir, const char *name);

/** bl_progs_end - closes the descriptors that bl_progs_load() has opened. Before the object. */
void bl_progs_end(struct bl_progs *p);

/** bl_prog_id - the id of the program @fd; 0: unknown. */
uint32_t bl_prog_id(int fd);

/**
 * bl_prog_enter - makes entry @key of the CPU map or device map @map one of @what, which is the
 * size of a queue or the index of a device, with the program @prog. An entry that is like that
 * already stays, and so do the frames that wait in it. Returns 0 or -errno.
 */
int bl_prog_enter(int map, uint32_t key, uint32_t what, int prog);

#endif
