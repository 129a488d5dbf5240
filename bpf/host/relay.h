/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of the reliable stream that came by way of the controller, since they do not pass between
 * their two hosts (maps/forward_abi.h). The host's daemon runs this on them (BPF_PROG_TEST_RUN):
 * same rings, same windows, same checks as on the NIC, but for what a frame says of its link: it
 * came over none. So no register hears of it, its B and C are not looked at, and the window that it
 * empties is told by the next beacon.
 *
 * Example: a PREP of host 1 for endpoint 61697: stored, marked as relayed, turned into the ACK: the
 * verdict is XDP_TX, and the daemon sends what is in the buffer back. On host 1 that ACK closes its
 * slot: XDP_DROP.
 *
 * Included by host.bpf.c, after bpf/host/commit.h. BPF side only.
 */
#ifndef BARLINE_HOST_RELAY_H
#define BARLINE_HOST_RELAY_H

#include "bpf/host/role.h"
#include "core/wire_core.h"
#include "bpf/bpf_util.h"
#include "bpf/host/commit.h"
#include "bpf/host/ring.h"
#include "bpf/host/run.h"

static __always_inline enum bl_reason on_relayed_frame(struct xdp_md *ctx, struct run *r)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bl_now now;

	if (!bl_op_relayed(r->f.opcode))
		return BL_R_BAD_OPCODE;
	if (r->f.l3_off > sizeof(struct ethhdr) + 4)
		return BL_R_SHORT;
	bl_count(BL_HC_INGRESS, BL_R_BY_CONTROLLER);
	/* read here, not from the page: its times are the NIC's to write */
	bl_read_clock(&now);
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

SEC("xdp")
int bl_host_relayed(struct xdp_md *ctx)
{
	struct run r = { .relayed = 1 };
	enum bl_reason why;

	if (!lookup_host_maps(&r))
		return bl_done(BL_HC_INGRESS, BL_R_NOT_OURS);
	why = bl_parse((void *)(long)ctx->data, (void *)(long)ctx->data_end, r.cfg->port_base,
		       r.cfg->port_count, &r.f);
	if (why == BL_R_NONE)
		why = on_relayed_frame(ctx, &r);
	return bl_done(BL_HC_INGRESS, why);
}

#endif
