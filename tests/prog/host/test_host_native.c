// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_host_xdp and bl_fence in the kernel against the same sources compiled natively: random frames,
 * and ACKs that fit, for endpoints that sleep or not, with a clock that advances. After each frame,
 * verdict, bytes, counters, the host page, the pages of endpoints and records have to be the same.
 */
#include "tests/prog/host/commit_util.h"
#include "tests/prog/auth_util.h"
#include "tests/prog/native_drive.h"

int bl_host_xdp(struct xdp_md *ctx);
int bl_fence(struct bl_fence_arg *a);
void native_host_maps(void);

#define RECALL_LIFE 0x0f16

static struct bl_ep_page *native_page[BL_EPS_MAX];
static bool reliable; /* the present frame is one of the reliable stream */
static const char *const configured[] = { "host_cfg",    "host_orders", "host_page", "hints",
					  "eps",         "clock",       "epoch",     "auth_links",
					  "auth_states", "link_seen" };

static void copy_host(void)
{
	__u32 i;

	native_host_maps();
	native_clear();
	for (i = 0; i < sizeof(configured) / sizeof(*configured); i++)
		copy_map(bpf_object__find_map_by_name(sk->obj, configured[i]));
	for (i = 0; i < BL_EPS_MAX; i++) {
		native_page[i] = native_inner_open("ep_pages", i, sizeof(struct bl_ep_page));
		memcpy(native_page[i], ep_page[i], sizeof(struct bl_ep_page));
	}
	for (i = 0; i < NEPS; i++)
		native_ring_open(i);
}

/* The windows, except for when an ACK has come, which is of CLOCK_MONOTONIC. */
static void same_windows(void)
{
	static struct bl_rwin here, want;
	__u32 i, k;

	for (i = 0; i < NEPS; i++) {
		here = ep_page[i]->win;
		want = native_page[i]->win;
		for (k = 0; k < BL_RWIN; k++) {
			if (!here.slot[k].ack_ns != !want.slot[k].ack_ns)
				fail_msg("%s: ack_ns of slot %u in window %u", doing, k, i);
			here.slot[k].ack_ns = want.slot[k].ack_ns = 0;
		}
		if (memcmp(&here, &want, sizeof(here)))
			fail_msg("%s: window %u differs", doing, i);
	}
}

/* Lines, words to wake and what is behind them, of the first @n endpoint slots. */
static void same_pages(__u32 n)
{
	const size_t size = offsetof(struct bl_ep_page, win);
	__u32 i;

	for (i = 0; i < n; i++)
		if (memcmp(ep_page[i], native_page[i], size))
			fail_msg("%s: line (%d) or wake (%d) of slot %u differ", doing,
				 !!memcmp(&ep_page[i]->line, &native_page[i]->line,
					  sizeof(struct bl_inflight)),
				 !!memcmp(&ep_page[i]->wake, &native_page[i]->wake,
					  sizeof(struct bl_ep_wake)),
				 i);
}

static void same_records(void)
{
	__u32 i;

	for (i = 0; i < NEPS; i++) {
		int n = ring_read(i), k = 0;
		size_t size = 0;
		uint8_t *p;

		while ((p = native_ring_take(i, &size))) {
			const struct bl_rec *rec = (const void *)p;

			/* what is behind the body is not written by the program */
			if (!got.rec.at == !rec->at)
				got.rec.at = rec->at; /* the kernel's clock does not stand still */
			if (++k == n && (size != got.size || memcmp(&got.rec, rec, sizeof(*rec)) ||
					 memcmp(got.body, rec + 1, rec->len)))
				fail_msg("%s: the record in ring %u differs", doing, i);
			free(p);
		}
		if (n != k)
			fail_msg("%s: %d records in ring %u, and natively %d", doing, n, i, k);
	}
}

static void same_state(bool all)
{
	same_map(sk->maps.host_page, 1);
	same_map(sk->maps.hints, 1);
	same_map(sk->maps.host_orders, 1);
	same_map(sk->maps.auth_states, 1);
	same_map(sk->maps.link_seen, 1);
	same_map(sk->maps.epoch, 1);
	same_pages(all ? BL_EPS_MAX : NEPS);
	same_records();
	if (reliable || all)
		same_windows();
	if (all)
		same_map(sk->maps.eps, BL_PORT_COUNT);
}

/* Endpoints fall asleep until a barrier near the present one, or wait for an ACK. */
static void endpoints_sleep(void)
{
	struct bl_hints h;
	__u32 i;

	map_get(sk->maps.hints, 0, &h);
	h.next = h.next_c = below(4) ? bus_now - below(200000) : BL_TIME_NONE;
	for (i = 0; i < NEPS; i++) {
		struct bl_ep_wake *w = &ep_page[i]->wake;

		w->until = below(2) ? BL_TIME_NONE : bus_now - below(200000);
		w->until_c = below(2) ? BL_TIME_NONE : bus_now - below(200000);
		if (below(8) == 0)
			w->until = BL_WAKE_ON_DATA;
		w->on_ack = below(2);
		native_page[i]->wake = *w;
	}
	put_both(sk->maps.hints, 0, &h);
}

static __u64 time_or(__u64 none)
{
	return below(2) ? none : bus_now - below(200000);
}

/* Endpoints have something in flight, and the daemon decides that some of it does not count. */
static void endpoints_send(void)
{
	struct bl_host_page page;
	__u32 i;

	map_get(sk->maps.host_page, 0, &page);
	for (i = 0; i < NEPS; i++) {
		struct bl_inflight *line = &ep_page[i]->line;
		struct bl_ep_word *w = &page.word[i];

		line->ts = time_or(BL_TIME_NONE);
		line->hold = time_or(0);
		native_page[i]->line = *line;
		*w = (struct bl_ep_word){ .upto = time_or(0) };
		w->over = below(2) ? 0 : w->upto;
		if (below(8) == 0)
			w->out = below(2) ? BL_OUT_OVER : bus_now - below(200000);
		w->out_why = w->out ? below(2) : 0;
	}
	put_both(sk->maps.host_page, 0, &page);
}

/* The endpoint at port 9 has sent PREPs, for which reliable_frame() makes ACKs. */
static void new_window(bool v6)
{
	put_window(0, BODY_SLOT, BODY_SLOT + 1 + below(4), bus_now - 1000 - below(100000), v6);
	native_page[0]->win = ep_page[0]->win;
	native_page[0]->line = ep_page[0]->line;
}

/* An ACK of the window, or a PREP or RECALL for an endpoint that is there. */
static void reliable_frame(struct frame *f, bool v6)
{
	struct desc d = v6 ? data_frame6(0, 1, 0, bus_now) : data_frame(0, 1, 0, bus_now);
	const struct bl_rwin *w = &native_page[0]->win;

	d.b = d.c = below(2) ? bus_now - BL_TS_OLD : bus_now - below(200000);
	d.body = below(8) ? 16 + below(60) : below(16);
	d.tags = below(4) == 0;
	d.csum = below(2);
	switch (below(4)) {
	case 0:
		d.op = BL_OP_PREP;
		d.dport = BL_PORT_BASE + (v6 ? 9 : 10);
		d.ts = bus_now + below(BOUND);
		break;
	case 1:
		d.op = BL_OP_RECALL;
		d.dport = BL_PORT_BASE + (v6 ? 11 : 9);
		d.ts = bus_now;
		break;
	default:
		d.op = BL_OP_ACK;
		d.sport = BL_PORT_BASE + 7;
		d.dport = FROM;
		d.ts = w->slot[BODY_SLOT % BL_RWIN].ts;
		break;
	}
	build(f, &d);
	if (below(8) == 0)
		f->p[below(f->n)] ^= (__u8)(1 + below(255));
	f->n = f->n < 60 ? 60 : f->n;
}

static void random_command(void)
{
	const struct bl_host_page *page = native_get("host_page", 0);
	struct bl_fence_arg a = random_fence();

	a.port = below(16) == 0;
	a.barred[0] = below(2);
	fence_both(&a, page->life.death);
}

static void between_frames(__u64 frame)
{
	(void)frame;
	if (below(4) == 0)
		endpoints_sleep();
	if (below(16) == 0)
		endpoints_send();
	if (below(64) == 0)
		random_command();
}

static __u32 next_frame(struct frame *in)
{
	const struct bl_host_page *page = native_get("host_page", 0);
	bool v6;

	reliable = below(4) == 0;
	v6 = below(2);
	if (reliable) {
		if (below(2))
			new_window(v6);
		reliable_frame(in, v6);
	} else {
		random_frame(in, below(2), bus_now, below(2) ? page->reg[0].b : page->commit);
	}
	if (with_auth)
		seal_random(in, 0, bus_now);
	return 0;
}

static void prepare(void)
{
	struct bl_ep_slot ep;

	/* what the bodies of frames.h name: in ACKs to port 9, PREPs to 10, and RECALLs to 11 */
	map_get(sk->maps.eps, 9, &ep);
	ep.life = BODY_INCARNATION;
	map_put(sk->maps.eps, 9, &ep);
	map_get(sk->maps.eps, 11, &ep);
	ep.life = RECALL_LIFE;
	map_put(sk->maps.eps, 11, &ep);
	copy_host();
}

static __u64 run(const char *who)
{
	static const struct native_test test = { prepare, between_frames, next_frame, same_state };
	const struct native_side host = { .xdp = sk->progs.bl_host_xdp,
					  .xdp_natively = bl_host_xdp,
					  .fence = sk->progs.bl_fence,
					  .fence_natively = bl_fence,
					  .clock = sk->maps.clock,
					  .counts = sk->maps.counts,
					  .counted = counted,
					  .keys = 2 * BL_HC_MAX,
					  .count0 = BL_HC_INGRESS };

	return native_drive(who, &host, &test);
}

static void native__host(void **state)
{
	__u64 frames;

	(void)state;
	frames = run("a host");
	HAVE_MET(frames, BL_R_STORED, BL_R_BEACON, BL_R_PREPARED, BL_R_ACKED, BL_R_ACK_REPEATED,
		 BL_R_ACK_UNKNOWN, BL_R_COMMITTED, BL_R_RECALLED, BL_R_WRONG_LIFE, BL_R_PREP_LATE,
		 BL_R_NO_ENDPOINT, BL_R_UNSWITCHED, BL_R_BARRIER_AHEAD, BL_R_TS_AHEAD,
		 BL_R_EPOCH_OLD, BL_R_LOOPED);
}

static int keys_setup(void **state)
{
	static const struct bl_auth_state none;

	bl_host__destroy(sk);
	sk = NULL;
	with_auth = BL_AUTH_LINKS;
	native_set_auth(with_auth);
	host_setup(state);
	put_keys(0, 0x1000); /* the node of beacon_frame() */
	map_put(sk->maps.auth_states, 0, &none);
	return 0;
}

static void native__with_keys(void **state)
{
	__u64 frames;

	(void)state;
	frames = run("a host with keys");
	HAVE_MET(frames, BL_R_STORED, BL_R_BEACON, BL_R_AUTH_MISSING, BL_R_AUTH_EPOCH,
		 BL_R_AUTH_REPLAYED, BL_R_AUTH_BAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(native__host, host_setup),
		cmocka_unit_test_setup(native__with_keys, keys_setup),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
