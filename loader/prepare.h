/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The start of barlined as root: what takes more than the daemon's capabilities; prepare.c. */
#ifndef BARLINE_PREPARE_H
#define BARLINE_PREPARE_H

#include <linux/capability.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/privileges.h"
#include "loader/load/maps.h"

struct bl_node_cfg;

/*
 * The capabilities of a running daemon, and what is refused without each (Linux 6.1 and 6.18):
 * bpf(2); attaching programs, netlink, sysctls below net, packet sockets of other protocols; the
 * beacons' packet socket; bounded loops and pointer arithmetic in programs; scheduling of the
 * kernel's NAPI threads and of the beacon thread.
 */
#define BL_CAPS_DAEMON (BL_CAPS_LOAD | BL_CAP(CAP_NET_RAW) | BL_CAP(CAP_SYS_NICE))

/**
 * bl_prepare_wait - waits until the NICs of the node exist, and until the bond of one of them has
 * an active slave; @ms at most. A service manager starts the node at boot before drivers have found
 * their NICs, and before VLAN devices and bonds are made. SIGTERM and SIGINT, which are blocked,
 * end it, too, as they end the daemon. Returns 0 or -errno.
 */
int bl_prepare_wait(const struct bl_node_cfg *cfg, unsigned int ms, struct bl_err *err);

/**
 * bl_prepare - does what root alone may do, in the node's network namespace: makes the run
 * directory, mounts the bpffs, and gives both, with everything that daemons have made there, to
 * @u, so that it can take over a node of another user. Gives it bl0 and the attributes in sysfs
 * that the daemon writes. @u NULL: only the run directory and the bpffs are made. Returns 0 or
 * -errno.
 */
int bl_prepare(const struct bl_node_cfg *cfg, const struct bl_user *u, struct bl_err *err);

/**
 * bl_give_run_dir - gives the run directory and what daemons, controllers and arbiters have made
 * there to a user. Returns 0 or -errno.
 */
int bl_give_run_dir(uid_t uid, gid_t gid, struct bl_err *err);

/**
 * bl_prepared_check - whether the calling user can serve nodes: it owns the run directory and the
 * bpffs. Returns 0, or -errno with what has to be done.
 */
int bl_prepared_check(struct bl_err *err);

#endif
