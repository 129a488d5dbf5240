/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way on to another XDP program: frames that are not barline's end in a tail call to the
 * program that the loader has entered for their port (`chain:`). Both roles. BPF side only.
 *
 * Example: a firewall is entered for port 0. An ARP request is no frame of barline: it is counted
 * as chained, and the firewall's verdict is the frame's. Without an entry it is counted as
 * not_ours and goes to the kernel.
 *
 * The tail call is in the main program, since in a function of its own it would limit the stack of
 * its callers to 256 bytes.
 *
 * Not here: which program that is (loader/load/chain.c).
 */
#ifndef BARLINE_CHAIN_H
#define BARLINE_CHAIN_H

#include "bpf/role.h"
#include "bpf/bpf_util.h"

/*
 * 1: an interface has a chained program. Set by the loader before it loads the programs, so that a
 * node without one has no tail call at all.
 */
const volatile __u8 bl_chains = 0;

/**
 * bl_done_or_chain - ends an XDP program as bl_done() does, or goes on to the chained program of
 * @slot if the frame is not barline's.
 * @slot: port of a switch; 0 on a host
 * @key: as for bl_count()
 * @len: bytes of the frame as it arrived
 */
static __always_inline int bl_done_or_chain(struct xdp_md *ctx, __u32 slot, __u32 key,
					    enum bl_reason why, __u32 len)
{
	const struct bl_hook *hook;

	if (why != BL_R_NOT_OURS || !bl_chains)
		return bl_done_len(ctx, key, why, len);
	hook = bpf_map_lookup_elem(&hooks, &slot);
	if (!hook || !BL_READ_ONCE(hook->next_id))
		return bl_done_len(ctx, key, why, len);
	bl_count_frame(key, BL_R_CHAINED, len);
	if (BL_CAPTURING())
		bl_capture_xdp(ctx, key, BL_R_CHAINED, BL_CAPTURE_IN);
	bpf_tail_call(ctx, &next_progs, slot);
	return XDP_PASS; /* the entry was emptied at this moment */
}

#endif
