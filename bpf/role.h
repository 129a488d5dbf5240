/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps of the role that is compiled. "counts" and the queues have the same names in both roles
 * and differ in size, so the headers that both roles share get them from here.
 *
 * A file of the host role includes bpf/host/role.h before any other header. Everything else,
 * including a shared header that is compiled on its own, gets the maps of the switch.
 */
#ifndef BARLINE_ROLE_H
#define BARLINE_ROLE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#ifdef BL_ROLE_HOST
#include "maps/host_maps.h"
#else
#include "maps/switch_maps.h"
#endif

/*
 * Makes the compiler use the register that was checked instead of a copy of it. The verifier (Linux
 * 6.1 above all) knows the range of the checked register only.
 */
#define BL_SEEN(var) __asm__ volatile("" : "+r"(var))

#endif
