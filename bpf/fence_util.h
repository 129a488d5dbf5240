/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of the program bl_fence that both roles share: validating a command of the controller,
 * writing it into a slot, and publishing it. maps/fence_abi.h describes the commands. BPF side
 * only.
 *
 * Example: the node's epoch is 5 and its generation 6. A FREEZE of epoch 4 is refused with -ESTALE
 * and counted as epoch_old. A FREEZE of epoch 2^33 is refused with -ERANGE and counted as
 * epoch_far. A FREEZE of epoch 5 is written into its slot, and generation 7 is published.
 *
 * Not here: how registers follow the slots (bpf/switch/fence.h, bpf/host/fence.h).
 */
#ifndef BARLINE_ORDER_UTIL_H
#define BARLINE_ORDER_UTIL_H

#include "core/order/barrier_core.h"
#include "core/order/epoch_core.h"
#include "bpf/bpf_util.h"

#define BL_ENOENT 2
#define BL_EINVAL 22
#define BL_ERANGE 34
#define BL_ESTALE 116

/**
 * bl_fence_validate - checks the epoch and the kind of command @a, and raises the node's epoch to
 * it. Commands come one at a time (loader/order/fence.h).
 * @a: the command; its generation and result are filled in
 * @e: the node's epoch and generation
 * @counter: port or BL_HC_* at which a refusal counts
 * Returns 1 if the command is to be written into slots; 0 if it was refused (@a->result says why)
 * or is BL_FENCE_RAISE, which only raises the epoch.
 */
static __always_inline int bl_fence_validate(struct bl_fence_arg *a, struct bl_epoch *e,
					     __u32 counter)
{
	enum bl_epoch_verdict verdict = bl_epoch_judge(e->epoch, a->epoch);

	a->generation = e->generation;
	if (verdict != BL_EPOCH_OBEY) {
		bl_count(counter, verdict == BL_EPOCH_OLD ? BL_R_EPOCH_OLD : BL_R_EPOCH_FAR);
		a->result = verdict == BL_EPOCH_OLD ? -BL_ESTALE : -BL_ERANGE;
		return 0;
	}
	e->epoch = a->epoch;
	a->result = a->kind > BL_FENCE_EMPTY ? -BL_EINVAL : 0;
	return !a->result && a->kind != BL_FENCE_RAISE;
}

/**
 * bl_fence_write_slot - writes a FREEZE, RESUME or EMPTY into slot @o of an input whose life is
 * @life. Sets @a->result to -ENOENT if a RESUME names another death than the input's last one.
 * Returns 1 if the slot has changed.
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

/**
 * bl_fence_publish - publishes what was written into the slots.
 * @written: 1: slots have changed; then the generation is raised by a full barrier, so that a lane
 *     that reads the new generation also reads the new slots
 * Returns 1 if the lanes must apply the slots before their next frame; 0 if the command failed.
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
