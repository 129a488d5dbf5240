/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TOP at a switch, as top.c enters it into the table of policies: see struct bl_policy_role. */
#ifndef BARLINE_ADMISSION_TOP_SWITCH_H
#define BARLINE_ADMISSION_TOP_SWITCH_H

#include "loader/admission/policy.h"

int bl_top_switch_check(const struct bl_node_cfg *c, bool selected, struct bl_err *err);
int bl_top_switch_fill(struct bl_node *n, const struct bl_node_cfg *cfg, struct bpf_object *obj,
		       const struct bl_sw_port *ports, bool selected, struct bl_err *err);
int bl_top_switch_change(struct bl_change *c, bool write, struct bl_err *err);
int bl_top_switch_show(const struct bl_node_ref *ref, struct bl_admission_set *v,
		       struct bl_err *err);

#endif
