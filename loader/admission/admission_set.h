/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The admission of a running node: `barline admission set` and `barline admission show`. */
#ifndef BARLINE_ADMISSION_SET_H
#define BARLINE_ADMISSION_SET_H

#include <stddef.h>

#include "base/log.h"
#include "loader/admission/options.h"

struct bl_node_ref;

/**
 * bl_admission_change - changes the options that @set gives, in the running node's pinned maps.
 * @said: what is different now, as a sentence for people; "": nothing.
 *
 * Returns 0, or -errno with @err; -EINVAL: refused, and nothing changed.
 */
int bl_admission_change(const struct bl_node_ref *ref, const struct bl_admission_set *set,
			char *said, size_t size, struct bl_err *err);

/**
 * bl_admission_show - the options that the running node has, into @v. Times are in ns; a rate of 0
 * is none. Returns 0, or -errno with @err.
 */
int bl_admission_show(const struct bl_node_ref *ref, struct bl_admission_set *v,
		      struct bl_err *err);

#endif
