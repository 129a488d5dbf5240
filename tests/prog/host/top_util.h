/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP's frames and a host that speaks TOP, for test_top.c, test_top_rx.c and test_top_loss.c. Every
 * frame is built here from its description. v0 plays the NIC, v1 plays bl0d. This host is
 * host 1, the peer is host 2. Bus time stands still; times that must not matter are hours.
 */
#ifndef BARLINE_TEST_TOP_UTIL_H
#define BARLINE_TEST_TOP_UTIL_H

#include <linux/if_packet.h>
#include <sys/socket.h>
#include "core/top/top_token_core.h" /* bl_top_flow_port(), as in switches */
#include "core/top/top_core.h"       /* before the variable cfg exists */
#include "core/top/top_loss_core.h"  /* before the variable after exists */
#include "loader/admission/top_host.h"
#include "tests/prog/host/host_util.h"
#include "tests/prog/pace_util.h"

#define HOLD_SLOTS 300
#define QUEUES     (BL_DESTS * BL_HOLD_CLASSES)
#define HOUR_NS    3600000000000ULL
#define T_NS       26000ULL

static struct bl_hold_cfg hold;
static struct bl_top_cfg top;
static struct bl_top_page tpage;
static const __u8 bl0[6] = { 2, 0, 0, 0xb1, 0, 0 };

/* Writes the variable top to its map. */
MAYBE_UNUSED static void set_top(void)
{
	map_put(sk->maps.top_cfg, 0, &top);
}

/* Sets the admission policy. */
MAYBE_UNUSED static void set_policy(__u32 policy)
{
	hold.policy = policy;
	map_put(sk->maps.hold_cfg, 0, &hold);
}

MAYBE_UNUSED static struct bl_top_tx tx_get(__u32 n)
{
	struct bl_top_tx t;

	map_get(sk->maps.top_tx, n, &t);
	return t;
}

MAYBE_UNUSED static struct bl_top_rx rx_get(__u32 i)
{
	struct bl_top_rx r;

	map_get(sk->maps.top_rx, i, &r);
	return r;
}

MAYBE_UNUSED static struct bl_top_page top_page_get(void)
{
	struct bl_top_page p;

	map_get(sk->maps.top_page, 0, &p);
	return p;
}

static void empty_hash(const struct bpf_map *m)
{
	__u8 k[64];

	while (!bpf_map_get_next_key(bpf_map__fd(m), NULL, k))
		assert_int_equal(bpf_map_delete_elem(bpf_map__fd(m), k), 0);
}

/* Makes a host under policy top that has no flows. */
MAYBE_UNUSED static int top_setup(void **state)
{
	static const struct bl_hold_dest none;
	static const struct bl_top_tx no_tx;
	static const struct bl_top_kept no_kept;
	static const struct bl_top_rx no_rx;
	static const struct bl_top_hint no_hint;
	struct bpf_devmap_val v = { 0 };
	__u32 i;

	host_setup(state);
	hold = (struct bl_hold_cfg){ .on = 1 };
	memcpy(hold.mac, bl0, 6);
	set_policy(BL_POLICY_TOP);
	top = (struct bl_top_cfg){ .law = BL_TOP_LAW_NS2,
				   .levels = 6,
				   .slot_ns = 1000,
				   .alpha = BL_TOP_ONE / 2,
				   .w_init = BL_TOP_ONE / 16,
				   .w_min = BL_TOP_ONE / 100,
				   .w_max = BL_TOP_ONE / 2,
				   .ramp = BL_TOP_SHORT_RAMP,
				   .limit = { 5, 22, 100, 465, 2155 },
				   .expiry_ns = T_NS,
				   .sync_ns = HOUR_NS,
				   .idle_ns = 100 * HOUR_NS,
				   .dead_ns = 100 * HOUR_NS,
				   .keep_max = HOLD_SLOTS,
				   .short_frames = 8 };
	set_top();
	tpage = (struct bl_top_page){ .at = BL_DUE_NEVER, .random = 1 };
	map_put(sk->maps.top_page, 0, &tpage);
	pace_setup(sk->maps.hold_due, HOLD_SLOTS, QUEUES);
	empty_hash(sk->maps.top_flows);
	empty_hash(sk->maps.top_rx_of);
	empty_hash(sk->maps.top_coflows);
	empty_hash(sk->maps.hold_dests);
	while (!bpf_map_lookup_and_delete_elem(bpf_map__fd(sk->maps.hold_free), NULL, &i))
		;
	for (i = 0; i < BL_DESTS; i++) {
		map_put(sk->maps.hold_macs, i, &none);
		map_put(sk->maps.top_tx, i, &no_tx);
		map_put(sk->maps.top_kept, i, &no_kept);
	}
	for (i = 0; i < BL_TOP_RX_MAX; i++)
		map_put(sk->maps.top_rx, i, &no_rx);
	for (i = 0; i < BL_TOP_HINTS; i++)
		map_put(sk->maps.top_hints, i, &no_hint);
	for (i = 0; i < BL_TX_COUNT; i++) {
		v.ifindex = net.ifindex[i];
		map_put(sk->maps.hold_tx, i, &v);
	}
	return 0;
}

/* ---- frames ---- */

/* Returns a frame that an application of this host sends to host @to, from UDP port @sport. */
MAYBE_UNUSED static struct desc app_frame(__u32 to, __u16 sport, bool v6)
{
	struct desc d = plain_frame(1, to, v6);

	memcpy(d.src, bl0, 6);
	d.sport = sport;
	return d;
}

/** struct topd - a TOP frame, field by field. */
struct topd {
	bool v6, token;         /* token: sent to the data's sender, else by it */
	__u32 sender, receiver; /* hosts: the data's sender and its receiver */
	__u16 sport, dport;     /* of the flow */
	__u8 op, cls;
	__u16 flow;
	__u32 seq, tag, frames, deadline, coflow, data, rtt_us;
	__u64 ts, bytes, missing; /* bus time, ns; SYNC, FIN: bytes; LOSS: bits */
	__u16 unsched;
	bool bare; /* a STOP that was made of a token */
};

/* Returns the UDP source port of the flow's tokens and signals. */
static __u16 flow_port(const struct topd *t)
{
	__u8 a[16], b[16];
	__be32 w[2];

	host_addr(a, t->v6, t->sender);
	host_addr(b, t->v6, t->receiver);
	memcpy(&w[0], a + 12, 4);
	memcpy(&w[1], b + 12, 4);
	if (t->v6)
		return bl_top_flow_port(bl_top_addr6(a), bl_top_addr6(b), t->sport, t->dport);
	return bl_top_flow_port(bl_top_addr4(w[0]), bl_top_addr4(w[1]), t->sport, t->dport);
}

/* Writes the Ethernet address of host @h; that of host 1 is bl0's. */
MAYBE_UNUSED static void mac_of(__u8 *mac, __u32 h)
{
	host_mac(mac, h);
	if (h == 1)
		memcpy(mac, bl0, 6);
}

/* Builds the frame that @t describes. */
MAYBE_UNUSED static void build_top(struct frame *f, const struct topd *t)
{
	__u32 from = t->token ? t->receiver : t->sender, to = t->token ? t->sender : t->receiver,
	      at;
	__u32 body = t->op == BL_TOP_SYNC               ? 28
		     : t->op == BL_TOP_FIN              ? 12
		     : t->op == BL_TOP_LOSS             ? 16
		     : t->op == BL_TOP_STOP && !t->bare ? 4
							: 0;
	struct desc d = { .v6 = t->v6, .ttl = 64 };

	memset(f->p, 0, sizeof(f->p));
	f->n = 0;
	mac_of(f->p, to);
	mac_of(f->p + 6, from);
	f->n = 12;
	put16(f, t->v6 ? 0x86dd : 0x0800);
	host_addr(d.saddr, t->v6, from);
	host_addr(d.daddr, t->v6, to);
	at = f->n;
	put_ip(f, &d, 8 + 18 + body);
	if (t->v6)
		memset(f->p + at + 1, 0, 3); /* no flow label */
	put16(f, flow_port(t));
	put16(f, 61692);
	put16(f, (__u16)(8 + 18 + body));
	put16(f, 0);
	put8(f, (__u8)(1 << 4 | t->op));
	put8(f, t->cls);
	put16(f, t->flow);
	put32(f, t->seq);
	put48(f, t->ts & BL_TS_MASK);
	put32(f, t->tag);
	if (t->op == BL_TOP_SYNC || t->op == BL_TOP_FIN) {
		put16(f, 0);
		put48(f, t->bytes);
	}
	if (t->op == BL_TOP_SYNC) {
		put32(f, t->frames);
		put32(f, t->deadline);
		put32(f, t->coflow);
		put16(f, t->unsched);
		put16(f, 0);
	}
	if (body)
		put32(f, t->data);
	if (t->op == BL_TOP_LOSS) {
		put32(f, (__u32)(t->missing >> 32));
		put32(f, (__u32)t->missing);
		put32(f, t->rtt_us);
	}
}

/* Appends the echo of token @seq, with the frame's number @data. */
MAYBE_UNUSED static void add_numbered(struct frame *f, __u16 flow, __u32 seq, __u32 data)
{
	put16(f, 0x70be);
	put16(f, flow);
	put32(f, seq);
	put32(f, data);
}

/* Appends the echo of token @seq, without a number. */
MAYBE_UNUSED static void add_echo(struct frame *f, __u16 flow, __u32 seq)
{
	add_numbered(f, flow, seq, 0);
}

/* ---- steps ---- */

/* Runs bl_hold_xdp on a frame, which must be dropped and counted for @why. */
MAYBE_UNUSED static void run_hold(const struct frame *in, enum bl_reason why)
{
	struct frame out;

	assert_int_equal(run_xdp(sk->progs.bl_hold_xdp, net.ifindex[1], in, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_HOLD, why }));
}

/*
 * Holds a frame of the flow to host 2 from UDP port @sport. @id is its IP identification, which
 * distinguishes it from other frames. Returns the frame.
 */
MAYBE_UNUSED static struct frame hold_frame(__u16 sport, __u16 id, bool v6)
{
	struct desc d = app_frame(2, sport, v6);
	struct frame f;

	d.ip_id = id;
	build(&f, &d);
	run_hold(&f, BL_R_HELD);
	return f;
}

/* The next turn of the pacer must send @want. */
MAYBE_UNUSED static void expect_paced(const struct frame *want)
{
	struct frame out;

	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
	same_frame(&out, want);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
}

/* The next turns of the pacer must send nothing. */
MAYBE_UNUSED static void expect_idle(void)
{
	struct frame out;
	int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 0, NULL, 0);
}

/* Runs bl_host_xdp on @in, which must end with the frame @want, @action and reason @why. */
MAYBE_UNUSED static void expect_host_xdp(const struct frame *in, const struct frame *want,
					 int action, enum bl_reason why)
{
	struct frame out;
	int verdict = run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], in, &out);

	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, why }));
	assert_int_equal(verdict, action);
	same_frame(&out, want);
}

/* Runs bl_host_xdp on @in, which must be dropped unchanged and counted for @why. */
MAYBE_UNUSED static void expect_refused(const struct frame *in, enum bl_reason why)
{
	expect_host_xdp(in, in, XDP_DROP, why);
}

/* Returns the SYNC that this host sends for a flow. */
MAYBE_UNUSED static struct topd sync_of(__u16 sport, __u16 flow, __u32 seq, __u32 frames, bool v6)
{
	return (struct topd){ .v6 = v6,
			      .sender = 1,
			      .receiver = 2,
			      .sport = sport,
			      .dport = 53,
			      .op = BL_TOP_SYNC,
			      .flow = flow,
			      .seq = seq,
			      .tag = tx_get(flow).tag,
			      .frames = frames,
			      .ts = bus_now };
}

/* Returns the token that host 2 sends for a flow of this host. */
MAYBE_UNUSED static struct topd token_of(__u16 sport, __u16 flow, __u32 seq)
{
	return (struct topd){ .v6 = tx_get(flow).key.v6,
			      .token = true,
			      .sender = 1,
			      .receiver = 2,
			      .sport = sport,
			      .dport = 53,
			      .op = BL_TOP_TOKEN,
			      .cls = 2,
			      .flow = flow,
			      .seq = seq,
			      .tag = tx_get(flow).tag,
			      .ts = bus_now - 5000 };
}

/* Returns a signal of an inbound flow, from host 2. */
MAYBE_UNUSED static struct topd inbound_signal(__u8 op, __u16 flow, __u32 seq, __u32 tag)
{
	return (struct topd){ .sender = 2,
			      .receiver = 1,
			      .sport = 1000,
			      .dport = 2000,
			      .op = op,
			      .flow = flow,
			      .seq = seq,
			      .tag = tag,
			      .ts = bus_now };
}

/* Runs a signal that must be accepted. */
MAYBE_UNUSED static void accept_signal(const struct topd *t)
{
	struct frame f;

	build_top(&f, t);
	expect_host_xdp(&f, &f, XDP_DROP, BL_R_SIGNAL);
}

#endif
