/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The user and the capabilities of a process (credentials(7), capabilities(7)).
 *
 * A service does everything that needs root first, calls bl_privileges_drop(), and starts its
 * threads afterwards: capabilities and no_new_privs belong to a thread, and a new thread inherits
 * those of its maker. Threads that exist already are the helpers of base/netns_keep.h, which drop
 * their privileges by themselves.
 */
#ifndef BARLINE_BASE_PRIVILEGES_H
#define BARLINE_BASE_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"

#define BL_USER_MAX 33

/** struct bl_user - a user that a process becomes. */
struct bl_user {
	char name[BL_USER_MAX];
	uid_t uid;
	gid_t gid; /* its primary group */
};

/** BL_CAP - the bit of a capability, as CAP_BPF of <linux/capability.h>, in a set of them. */
#define BL_CAP(cap) (1ULL << (cap))

/** bl_user_find - looks up a user by name. Returns 0 or -errno; -ENOENT: there is no such user. */
int bl_user_find(const char *name, struct bl_user *u, struct bl_err *err);

/** bl_caps_effective - the effective capabilities of the calling thread. */
uint64_t bl_caps_effective(void);

/**
 * bl_caps_text - writes the names of capabilities, as "CAP_BPF, CAP_PERFMON". Returns @buf.
 */
char *bl_caps_text(uint64_t caps, char *buf, size_t size);

/**
 * bl_caps_need - checks the effective capabilities.
 * @what: begins the message, as in "barlined host".
 * Returns 0, or -EPERM with the names of those that are missing.
 */
int bl_caps_need(const char *what, uint64_t need, struct bl_err *err);

/**
 * bl_privileges_drop - gives up everything except @keep, for good.
 * @u: become this user, with its groups. NULL: the user stays.
 * @keep: what stays permitted and effective. It is inheritable and ambient, too, so a program that
 * the process executes has it. A capability that the process does not have is not gained.
 *
 * Sets no_new_privs. Empties the bounding set if the process may (CAP_SETPCAP); otherwise it
 * contains what the service manager left in it. Returns 0 or -errno.
 */
int bl_privileges_drop(const struct bl_user *u, uint64_t keep, struct bl_err *err);

/**
 * bl_thread_keep_caps - the first half of bl_privileges_drop() for another thread: its permitted
 * capabilities survive the change of the user, which is made for all threads at once.
 */
void bl_thread_keep_caps(void);

/** bl_thread_drop - the second half: like bl_privileges_drop(), for the calling thread alone. */
int bl_thread_drop(uint64_t keep);

#endif
