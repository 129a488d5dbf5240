/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The XDP hook of an interface: what is on it, and taking that off, however it is attached. */
#ifndef BARLINE_XDP_H
#define BARLINE_XDP_H

#include <stddef.h>
#include <stdint.h>

#include "base/iface.h"
#include "base/log.h"

/*
 * One XDP buffer is one 4 KiB page: 256 bytes of headroom, 320 of skb_shared_info, 14 + 8 of
 * Ethernet and VLAN header.
 */
#define BL_XDP_MTU_MAX 3498
/* Frames of several buffers: the greatest of drivers, and what fits the largest ring record. */
#define BL_XDP_FRAGS_MTU_MAX 9216

enum bl_xdp_mode { BL_XDP_NATIVE, BL_XDP_GENERIC };

/**
 * bl_xdp_present - returns the id of the XDP program on an interface; 0: there is none.
 * @name: receives its name, "" if that cannot be read; @size 0: not asked for
 * @flags: receives XDP_FLAGS_* of its mode
 */
uint32_t bl_xdp_present(int ifindex, char *name, size_t size, int *flags);

/**
 * bl_xdp_off_text - writes the command that takes the XDP program @id off an interface. A program
 * that a bpf_link holds is not taken off by ip(8), but by bpftool(8). Returns @to.
 * @flags: XDP_FLAGS_* of its mode
 */
char *bl_xdp_off_text(char *to, size_t size, const struct bl_iface *i, uint32_t id, int flags);

/**
 * bl_xdp_displace - detaches the XDP program @id (its @name, and XDP_FLAGS_* of its mode), and logs
 * that it was asked for. Returns 0 or -errno.
 */
int bl_xdp_displace(const struct bl_iface *i, uint32_t id, const char *name, int flags,
		    struct bl_err *err);

#endif
