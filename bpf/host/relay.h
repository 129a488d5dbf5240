/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of the reliable stream that came by way of the controller, because they do not get from
 * one of their hosts to the other (maps/forward_abi.h). The host's daemon runs bl_host_relayed on
 * them (BPF_PROG_TEST_RUN): same rings, same windows and same checks as on the NIC. But such a
 * frame came over no link. So it raises no register, its B and C are ignored, and if it empties a
 * window, the next beacon carries the new commit barrier.
 *
 * Example: a PREP of host 1 for endpoint 61697 is stored, marked as relayed, and turned into its
 * ACK. The verdict is XDP_TX, and the daemon sends the buffer back. On host 1 that ACK closes its
 * slot: the verdict is XDP_DROP.
 *
 * Not here: how the frames get to this host. BPF side only.
 */
#ifndef BARLINE_HOST_RELAY_H
#define BARLINE_HOST_RELAY_H

#include "bpf/host/role.h"
#include "core/wire_core.h"
#include "bpf/bpf_util.h"
#include "bpf/host/commit.h"
#include "bpf/host/ring.h"
#include "bpf/host/run.h"

/* Handles one relayed frame. Returns the reason. */
static __always_inline enum bl_reason on_relayed_frame(struct xdp_md *ctx, struct run *r)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bl_now now = {};

	if (!bl_op_relayed(r->f.opcode))
		return BL_R_BAD_OPCODE;
	if (r->f.l3_off > sizeof(struct ethhdr) + 4)
		return BL_R_SHORT;
	bl_count(BL_HC_INGRESS, BL_R_BY_CONTROLLER);
	/*
	 * The clock is read here and not taken from the page, whose times only the NIC's program
	 * writes.
	 */
	bl_read_clock_slowly(&now);
	if (!now.ok)
		return BL_R_CLOCK_VOID;
	r->ts = bl_op_timed(r->f.opcode) ? bl_ext48(r->f.ts, now.bus) : 0;
	if (r->ts > now.limit + r->cfg->ahead_ns)
		return BL_R_TS_AHEAD;
	copy_addresses(r, data + r->f.l3_off, end);
	if (r->f.opcode == BL_OP_ACK)
		return (enum bl_reason)(bl_take_ack(ctx) & ~BL_EMPTY);
	if (bl_op_asks(r->f.opcode) && read_named_life(data, end, r))
		return BL_R_BAD_LENGTH;
	return answer_frame(ctx, r, prep_is_late(r) ? BL_R_PREP_LATE : store_message(ctx, 0, r));
}

/** bl_host_relayed - attached to no hook; see the top of this file. */
SEC("xdp")
int bl_host_relayed(struct xdp_md *ctx)
{
	struct run r = { .relayed = 1 };
	enum bl_reason why;

	BL_ROOM(256);
	if (!lookup_host_maps(&r))
		return bl_done(ctx, BL_HC_INGRESS, BL_R_NOT_OURS);
	r.len = bl_frame_len(ctx);
	why = bl_parse_whole((void *)(long)ctx->data, (void *)(long)ctx->data_end, r.len,
			     r.cfg->port_base, r.cfg->port_count, &r.f);
	if (why == BL_R_NONE)
		why = on_relayed_frame(ctx, &r);
	return bl_done_len(ctx, BL_HC_INGRESS, why, r.len);
}

#endif
