/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bl0, the interface of a host through which admitted traffic goes; bl0.c. */
#ifndef BARLINE_BL0_H
#define BARLINE_BL0_H

#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"

struct bl_node;
struct bl_node_cfg;
struct bpf_object;

/** bl_bl0_mtu - MTU of bl0 under a policy (enum bl_policy) on a host whose NIC has MTU @nic. */
unsigned int bl_bl0_mtu(unsigned int nic, unsigned int policy);
/** bl_bl0_mac - address of bl0 on a host whose NIC has this one. */
void bl_bl0_mac(const uint8_t nic[6], uint8_t mac[6]);

/** bl_bl0_open - makes bl0, or takes it over. In the host's namespace. Returns 0 or -errno. */
int bl_bl0_open(struct bl_node *n, struct bpf_object *obj, struct bl_err *err);
/** bl_bl0_remove - removes bl0 of the node with these pins; no-op without one. */
int bl_bl0_remove(const char *dir, struct bl_err *err);
/**
 * bl_bl0_give - makes bl0 if it is missing, and gives what root alone may set of it to a user that
 * the daemon is about to become. @cfg: with defaults. Returns 0 or -errno.
 */
int bl_bl0_give(const struct bl_node_cfg *cfg, uid_t uid, struct bl_err *err);
/** bl_bl0_nic - the NIC is another interface now: what else bl0 needs of it. */
int bl_bl0_nic(struct bl_node *n, struct bl_err *err);
/**
 * bl_bl0_rate - the rate of the node with these pins has changed: bl0 gathers segments for as long
 * as one takes.
 */
void bl_bl0_rate(const char *dir, uint32_t ns_q20);
/**
 * bl_bl0_policy - the policy of the node with these pins has changed: bl0's MTU leaves room for
 * TOP's echo, or does not any more.
 */
int bl_bl0_policy(const char *dir, unsigned int policy, struct bl_err *err);

#endif
