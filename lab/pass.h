/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The smallest XDP program, for links that carry none of ours: veth takes redirected frames only
 * where some program runs (DESIGN 6).
 */
#ifndef BARLINE_CLI_PASS_H
#define BARLINE_CLI_PASS_H

/** pass_load - fd of a program that returns XDP_PASS, or -errno. */
int pass_load(void);
/** pass_attach - in native mode, for the life of the interface. 0 or -errno. */
int pass_attach(unsigned int ifindex);

#endif
