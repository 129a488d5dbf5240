// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The host program's own code, wrapped so that bpf_prog_test_run can run it again and again. Each
 * run turns the frame into a token of 60 bytes again, with the next number, and puts a frame into
 * the flow's queue (a free slot, whose bytes are those of the run before). Then the code of
 * bl_host_xdp answers it: TOP's token to data.
 *
 * The bare program makes the token and returns it (XDP_TX). The difference is barline's cost. It
 * includes the slot and the queue's lock, which bl_hold_xdp would have paid for, so it is a little
 * too high.
 */
#include "bpf/host/host.bpf.c"

/*
 * Shared with host_cost.c. bench_seq: number of the next token. bench_len: bytes of the frame that
 * waits. bench_flow: its flow. bench_token: the token as it arrives.
 */
__u32 bench_seq, bench_len, bench_flow;
__u8 bench_token[64];

/* Turns the frame into the next token. Returns 0, or -1 if the frame cannot have its length. */
static __always_inline int make_fresh_token(struct xdp_md *ctx)
{
	__u32 seq = bench_seq++;
	struct bl_top_hdr *h;
	void *data, *end;

	if (bpf_xdp_adjust_tail(ctx, BL_TOP_TOKEN_LEN - (int)bpf_xdp_get_buff_len(ctx)))
		return -1;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + BL_TOP_TOKEN_LEN > end)
		return -1;
	__builtin_memcpy(data, bench_token, BL_TOP_TOKEN_LEN);
	h = data + BL_TOP_HDR4;
	BL_HALVES_SET(h, seq, seq);
	return 0;
}

SEC("xdp")
int bare_token(struct xdp_md *ctx)
{
	return make_fresh_token(ctx) ? XDP_ABORTED : XDP_TX;
}

SEC("xdp")
int host_token(struct xdp_md *ctx)
{
	int slot;

	if (make_fresh_token(ctx))
		return XDP_ABORTED;
	slot = bl_slot_alloc();
	if (slot < 0 ||
	    bl_queue_put(BL_HOLD_QUEUE(bench_flow, 1), BL_RING_ENTRY((__u32)slot, bench_len), 0))
		return XDP_ABORTED;
	return on_nic_frame(ctx);
}
