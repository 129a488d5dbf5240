/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Kernel threads of the datapath: threaded NAPI and CPU maps. napi.c says how they are found. */
#ifndef BARLINE_NAPI_H
#define BARLINE_NAPI_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/iface.h"
#include "base/log.h"
#include "loader/load/prio.h"

struct bl_node_cfg;

/**
 * bl_napi_thread - makes the NAPI of @i threaded and pins its threads to @cpu. No-op for the
 * threads of an interface that is down: it has none yet. Returns 0 or -errno.
 */
int bl_napi_thread(const struct bl_iface *i, int cpu, enum bl_realtime how, struct bl_err *err);

/**
 * bl_napi_is_threaded - the kernel's attribute "threaded". 0: the NAPI of @i is not threaded; 1: it
 * is; 2: its threads poll busily, which barline never sets; -errno: not known.
 */
int bl_napi_is_threaded(const struct bl_iface *i);

/**
 * bl_napi_undo - undoes bl_napi_thread(): those threads of @i that are kept on @cpu get the CPUs
 * and the scheduling of a new kernel thread. @stop: the NAPI is not threaded any more, either.
 */
void bl_napi_undo(const struct bl_iface *i, int cpu, bool stop);

/**
 * bl_napi_give - gives the attributes in sysfs that the functions above and below write to a user
 * that may not write there otherwise. It needs CAP_NET_ADMIN nevertheless. Returns 0 or -errno.
 */
int bl_napi_give(const struct bl_iface *i, uid_t uid, struct bl_err *err);

/**
 * bl_napi_gather - segments of a TCP flow that arrive at @i less than @ns apart are merged and
 * acknowledged as one; 0: only those that arrive in one poll. Returns 0 or -errno.
 */
int bl_napi_gather(const struct bl_iface *i, uint64_t ns);

/**
 * bl_steer_open - gives each datapath CPU of @cfg a queue in the CPU map @map for frames that come
 * in elsewhere, which program @prog handles. The kernel's thread of each queue gets the priority of
 * a datapath thread; without permission it works at its old one. Done before any frame comes in.
 * Returns 0 or -errno.
 */
int bl_steer_open(int map, int prog, const struct bl_node_cfg *cfg, struct bl_err *err);

#endif
