/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program bl_fence of both roles shares: the fence. BPF side only. */
#ifndef BARLINE_ORDER_UTIL_H
#define BARLINE_ORDER_UTIL_H

#include "core/order/barrier_core.h"
#include "bpf/bpf_util.h"

#define BL_ENOENT 2
#define BL_EINVAL 22
#define BL_ESTALE 116

/*
 * Whether @a says anything about slots, and may be obeyed; @counter: counts refusals. Orders come
 * one at a time (loader/order/fence.h).
 */
static __always_inline int bl_fence_validate(struct bl_fence_arg *a, struct bl_epoch *e,
					     __u32 counter)
{
	a->generation = e->generation;
	if (a->epoch < e->epoch) {
		bl_count(counter, BL_R_EPOCH_OLD);
		a->result = -BL_ESTALE;
		return 0;
	}
	e->epoch = a->epoch;
	a->result = a->kind > BL_FENCE_EMPTY ? -BL_EINVAL : 0;
	return !a->result && a->kind != BL_FENCE_RAISE;
}

/*
 * A FREEZE, RESUME or EMPTY into its slot. @life: of that input. Returns 1 if the slot is another
 * one now.
 */
static __always_inline int bl_fence_write_slot(struct bl_fence_arg *a, struct bl_fence_slot *o,
					       const struct bl_life *life)
{
	int res;

	if (a->kind == BL_FENCE_EMPTY) {
		res = !o->empty;
		o->empty = 1;
		return res;
	}
	res = a->kind == BL_FENCE_FREEZE ? bl_slot_freeze(o, life, a->death)
					 : bl_slot_resume(o, life, a->death);
	if (res < 0)
		a->result = -BL_ENOENT;
	return res > 0;
}

/*
 * Whether what is in the slots has to be obeyed at once. @written: they have changed: a full
 * barrier, so that who sees the number sees the slots.
 */
static __always_inline int bl_fence_publish(struct bl_fence_arg *a, struct bl_epoch *e,
					    __u32 written)
{
	if (a->result)
		return 0;
	if (written) {
		__sync_fetch_and_add(&e->generation, 1);
		a->generation = e->generation;
	}
	return 1;
}

#endif
