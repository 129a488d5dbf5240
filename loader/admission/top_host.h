/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TOP on a host: its settings (top_host.c), and what top.c enters into the table of policies. */
#ifndef BARLINE_ADMISSION_TOP_HOST_H
#define BARLINE_ADMISSION_TOP_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "loader/admission/options.h"
#include "loader/node_cfg.h"
#include "maps/top_host_abi.h"

struct bl_change;
struct bl_node;
struct bl_node_ref;
struct bl_sw_port;
struct bpf_object;

/**
 * bl_top_limits - frames from which classes begin by these settings, as bl_top_cfg.limit has them;
 * the default stands for an option that is not given. Learnt thresholds are not in them.
 */
void bl_top_limits(const struct bl_top_opts *o, uint64_t limit[BL_TOP_CLASSES - 1]);

/** bl_top_defaults - sets the options that were not given to their defaults. */
void bl_top_defaults(struct bl_top_opts *o);
/** bl_top_check - refuses values out of range, and those that do not go together. 0 or -EINVAL. */
int bl_top_check(const struct bl_top_opts *o, struct bl_err *err);
/**
 * bl_top_make - what the programs need, from settings that bl_top_check() took, for a link of
 * @ns_q20 >> 20 ns per byte (0: no rate yet). c->keep_max becomes 0; the caller sets it.
 */
void bl_top_make(const struct bl_top_opts *o, uint32_t ns_q20, struct bl_top_cfg *c);
/**
 * bl_top_limit - frames from which class @cls (1 to @levels - 1) begins: the least x with
 * floor(K log_p(a x + b)) = @cls, where K is @levels and p is @longest.
 */
uint64_t bl_top_limit(unsigned int cls, unsigned int levels, double a, double b, double longest);

/* see struct bl_policy_role */
int bl_top_host_check(const struct bl_node_cfg *c, bool selected, struct bl_err *err);
int bl_top_host_fill(struct bl_node *n, const struct bl_node_cfg *cfg, struct bpf_object *obj,
		     const struct bl_sw_port *ports, bool selected, struct bl_err *err);
int bl_top_host_change(struct bl_change *c, bool write, struct bl_err *err);
int bl_top_host_show(const struct bl_node_ref *ref, struct bl_admission_set *v, struct bl_err *err);

#endif
