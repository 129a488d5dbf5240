/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The address plan of a lab, for lab_plan.c and lab_net.c.
 *
 * All addresses are 10.77.NET.I or fd77:NET::I. For hosts and arbiters NET is the number of their
 * ToR; switches have networks of their own, which follow.
 */
#ifndef BARLINE_LAB_ADDR_H
#define BARLINE_LAB_ADDR_H

#include <stdint.h>

#define LAB_GATEWAY_NET     250 /* 10.77.250.T: ToR T */
#define LAB_SPINE_NET       251 /* 10.77.251.P: spine P */
#define LAB_BL0_GATEWAY_NET 252 /* 10.77.252.T: ToR T, as the gateway of bl0 */
#define LAB_CORE_NET        253 /* 10.77.253.C: core C */

/** lab_make_addr - Writes address @i of network @net: 4 bytes of AF_INET, 16 bytes of AF_INET6. */
void lab_make_addr(int family, uint8_t *addr, unsigned int net, unsigned int i);

#endif
