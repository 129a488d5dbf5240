/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TOP at a switch; top_switch.c. */
#ifndef BARLINE_TOP_SWITCH_H
#define BARLINE_TOP_SWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

struct bl_admission_set;
struct bl_node_cfg;
struct bl_node_ref;
struct bl_sw_port;
struct bpf_object;

/** bl_token_mode_name - name of an enum bl_token_mode. */
const char *bl_token_mode_name(unsigned int mode);
/** bl_token_mode_by_name - the mode that has this name; -1: none. */
int bl_token_mode_by_name(const char *name);
/** bl_path_by_name - how a switch chooses the way up: routes, symmetric, spray. */
const char *bl_path_by_name(unsigned int by);

int bl_token_check(const struct bl_node_cfg *c, struct bl_err *err);
int bl_token_fill(const struct bl_node_cfg *cfg, struct bpf_object *obj,
		  const struct bl_sw_port *ports, struct bl_err *err);
int bl_token_change(const struct bl_node_ref *ref, const struct bl_admission_set *c,
		    uint32_t now_q20, bool write, bool *was_on, bool *is_on, char *said,
		    size_t size, struct bl_err *err);
/** bl_token_forget - sets the token counters of a port to 0. */
int bl_token_forget(int fd, uint32_t port, struct bl_err *err);

#endif
