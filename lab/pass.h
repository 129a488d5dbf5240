/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The smallest XDP program, for interfaces without a program of ours: a veth accepts redirected
 * frames only if an XDP program is attached to it.
 */
#ifndef BARLINE_LAB_PASS_H
#define BARLINE_LAB_PASS_H

/** pass_load - Loads a program that returns XDP_PASS. Returns its descriptor, or -errno. */
int pass_load(void);
/**
 * pass_attach - Attaches such a program in native mode until the interface is removed. Returns 0 or
 * -errno.
 */
int pass_attach(unsigned int ifindex);

#endif
