/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Membership in the libxdp dispatcher of an interface (`xdp: dispatcher`), so that barline's XDP
 * program runs beside those of others.
 *
 * The member is a small program (bpf/entry.bpf.c) that tail-calls slot 0 of an array. The pin
 * links/xdp-IFNAME holds the array where it would otherwise hold a bpf_link, and this array is how
 * the member is recognized. dispatcher.c explains how that survives what others do.
 */
#ifndef BARLINE_DISPATCHER_H
#define BARLINE_DISPATCHER_H

#include <stdbool.h>

#include "base/iface.h"
#include "base/log.h"
#include "loader/load/xdp.h"

struct bpf_program;

/** bl_xdp_set_member - before the load: makes an XDP program one that a member may go on to. */
void bl_xdp_set_member(struct bpf_program *p);

/**
 * bl_dispatcher_check - whether the XDP programs of the node in @dir are in dispatchers, or not, as
 * @dispatcher says. Returns 0, also if it has none yet, or -EBUSY.
 */
int bl_dispatcher_check(const char *dir, bool dispatcher, struct bl_err *err);

/**
 * bl_dispatcher_join - puts @prog_fd into the slot of the array pinned at @path, and the member
 * into the dispatcher of the interface, if it is not there yet. Other members stay; a program that
 * is in no dispatcher is only displaced with @replace. Returns 0 or -errno.
 */
int bl_dispatcher_join(const struct bl_iface *i, const char *path, int prog_fd,
		       enum bl_xdp_mode mode, bool replace, struct bl_err *err);

/**
 * bl_dispatcher_leave - takes the member with the array @fd out of the dispatcher of its interface,
 * and removes what libxdp keeps of former dispatchers with it. Other members stay. No-op if it is
 * in none. Returns 0 or -errno.
 */
int bl_dispatcher_leave(int fd, struct bl_err *err);

/**
 * bl_dispatcher_forget - removes what libxdp keeps of dispatchers that had a member with the array
 * @fd, and are not attached.
 */
void bl_dispatcher_forget(int fd);

#endif
