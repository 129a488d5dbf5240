/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Another XDP program behind barline's (`chain:`): it gets the frames that are not barline's, by a
 * tail call (bpf/chain.h).
 *
 * 	chain: /sys/fs/bpf/firewall	a pinned program
 * 	chain: 41			a loaded program, by its id
 * 	chain: attached			the program that is on the interface now. It is taken off,
 * 					runs behind barline's, and is put back on detach
 * 	chain: none			the kernel gets them
 *
 * The node's maps hold the program, so it stays whoever else lets go of it, and over restarts of
 * the daemon. Opening a program by its id takes CAP_SYS_ADMIN, and other people's pins belong to
 * root; so root prepares them for a daemon of another user (bl_chain_prepare()).
 */
#ifndef BARLINE_CHAIN_LOAD_H
#define BARLINE_CHAIN_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/iface.h"
#include "base/log.h"
#include "maps/hook_abi.h"
#include "maps/meta_abi.h"

#define BL_CHAIN_ATTACHED "attached"
#define BL_CHAIN_NONE     "none"

/** struct bl_chain_at - the hook of one interface. */
struct bl_chain_at {
	const char *dir; /* of the node's pins */
	enum bl_role role;
	int hooks_fd, progs_fd; /* the maps BL_MAP_HOOKS and BL_MAP_NEXT_PROGS */
	uint32_t port;          /* 0 on a host */
	const struct bl_iface *iface;
	enum bl_hook_frags frags; /* barline's program takes frames of several buffers */
};

/** bl_chain_check - checks the form of @what. Returns 0 or -EINVAL. */
int bl_chain_check(const char *what, struct bl_err *err);

/**
 * bl_chain_prepare - as root: opens the program that @what means on @ifname, and pins it for the
 * daemon's user. No-op for a @what without a program. Returns 0 or -errno.
 */
int bl_chain_prepare(enum bl_role role, const char *ifname, const char *what, struct bl_err *err);

/**
 * bl_chain_anew - which maps of the node in @dir cannot be used again, since the kernel allows a
 * map of programs, devices or CPUs either to programs with BPF_F_XDP_HAS_FRAGS or to those without.
 * @anew: receives their names, at most BL_CHAIN_ANEW
 * Returns their number.
 */
#define BL_CHAIN_ANEW 3
unsigned int bl_chain_anew(const char *dir, enum bl_role role, enum bl_hook_frags frags,
			   const char **anew);

/**
 * bl_chain_set - enters what @what means as the chained program of @c; "" or "none": there is none.
 * BL_CHAIN_ATTACHED takes the program off the interface, which barline's follows at once. Returns 0
 * or -errno; after an error the former program is still entered.
 */
int bl_chain_set(const struct bl_chain_at *c, const char *what, struct bl_err *err);

/**
 * bl_chain_give_back - attaches again what bl_chain_set() took off the interface that had the index
 * @was. Called when barline's programs are detached. A program that cannot be attached again is
 * named in the log.
 * @was: 0: off any interface
 * @now: the index that the interface has now; 0: the same
 */
void bl_chain_give_back(const char *dir, uint32_t was, uint32_t now);

/** bl_chain_back_id - returns the id of the program that was taken off @ifindex; 0: none. */
uint32_t bl_chain_back_id(const char *dir, uint32_t ifindex);

/** bl_chain_forget - ends the chain of a port that has left and whose number is free now. */
void bl_chain_forget(const char *dir, uint32_t port);

/** bl_hook_read - reads the hook of @port from the pins in @dir. Returns 0 or -errno. */
int bl_hook_read(const char *dir, uint32_t port, struct bl_hook *hook);

#endif
