/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Admission of a node as its loader sets it up, and the names of what can be configured. */
#ifndef BARLINE_ADMISSION_H
#define BARLINE_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

struct bl_node;
struct bl_node_cfg;
struct bl_sw_port;
struct bpf_map;
struct bpf_object;

/** bl_policy_name - name of an enum bl_policy; likewise the functions below. */
const char *bl_policy_name(unsigned int policy);
const char *bl_allocator_name(unsigned int allocator);
const char *bl_class_name(unsigned int class);
/** bl_policy_by_name - the number that has this name; -1: none. */
int bl_policy_by_name(const char *name);
int bl_allocator_by_name(const char *name);
/**
 * bl_policy_by_arbiter, bl_policy_by_tokens - how hosts send under an enum bl_policy: in timeslots
 * of an arbiter; in the place of tokens.
 */
bool bl_policy_by_arbiter(unsigned int policy);
bool bl_policy_by_tokens(unsigned int policy);

/** bl_admission_defaults - fills in what is 0 in c->admission. */
void bl_admission_defaults(struct bl_node_cfg *c);
/** bl_admission_check - returns 0, or -errno: the configuration cannot be had. */
int bl_admission_check(const struct bl_node_cfg *c, struct bl_err *err);
/** bl_admission_paced - whether such a node needs a pacer. */
bool bl_admission_paced(const struct bl_node_cfg *c);
/** bl_admission_cpu - CPU of its pacer. */
int bl_admission_cpu(const struct bl_node_cfg *c);
/** bl_admission_port_rate - rate in bits per second at which a port is metered; 0: it is not. */
uint64_t bl_admission_port_rate(const struct bl_node_cfg *c, const char *ifname);

#define BL_ADMISSION_MAPS 20 /* names that bl_admission_size() may append to @anew */
/**
 * bl_admission_size - before the object of the node's role is loaded: sizes its maps for @cfg.
 * @nports: ports of a switch.
 * @anew: names of maps that cannot be reused are appended here.
 */
int bl_admission_size(struct bl_node *n, const struct bl_node_cfg *cfg, struct bpf_object *obj,
		      uint32_t nports, const char **anew, struct bl_err *err);
/** bl_admission_fill - before the programs see a frame: fills the maps of the loaded object. */
int bl_admission_fill(struct bl_node *n, const struct bl_node_cfg *cfg, struct bpf_object *obj,
		      const struct bl_sw_port *ports, struct bl_err *err);
/** bl_admission_pace - has the pacer run program @prog; @links: see struct bl_pace_fds. */
int bl_admission_pace(struct bl_node *n, struct bpf_object *obj, const char *prog, const char *due,
		      unsigned int links, struct bl_err *err);
/** bl_admission_host_on - turns a host's admission on for a bl0 with address @mac; NULL: off. */
int bl_admission_host_on(struct bl_node *n, struct bpf_object *obj, const uint8_t *mac,
			 uint32_t nic, uint32_t bl0d, struct bl_err *err);

#endif
