/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TOP at a switch: names, and what top.c enters into the table of policies. */
#ifndef BARLINE_ADMISSION_TOP_SWITCH_H
#define BARLINE_ADMISSION_TOP_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

struct bl_admission_set;
struct bl_change;
struct bl_node;
struct bl_node_cfg;
struct bl_node_ref;
struct bl_sw_port;
struct bpf_object;

/** bl_token_mode_name - name of an enum bl_token_mode. */
const char *bl_token_mode_name(unsigned int mode);
/** bl_token_mode_by_name - the mode that has this name; -1: none. */
int bl_token_mode_by_name(const char *name);
/** bl_path_by_name - how a switch chooses the path up: routes, symmetric, spray. */
const char *bl_path_by_name(unsigned int by);
/** bl_token_forget - sets the token counters of a port to 0. Returns 0 or -errno. */
int bl_token_forget(int fd, uint32_t port, struct bl_err *err);

/* see struct bl_policy_role */
int bl_top_switch_check(const struct bl_node_cfg *c, bool selected, struct bl_err *err);
int bl_top_switch_fill(struct bl_node *n, const struct bl_node_cfg *cfg, struct bpf_object *obj,
		       const struct bl_sw_port *ports, bool selected, struct bl_err *err);
int bl_top_switch_change(struct bl_change *c, bool write, struct bl_err *err);
int bl_top_switch_show(const struct bl_node_ref *ref, struct bl_admission_set *v,
		       struct bl_err *err);

#endif
