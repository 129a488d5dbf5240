// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fastpass on a host: bl_hold_xdp holds frames and counts the slots that they want, and
 * bl_host_pace sends them in slots. The test plays the daemon, which enters slots into "fp_dests";
 * v0 plays the NIC, v1 plays bl0d. Slots are an hour long where time must not matter.
 */
#include "core/fastpass/fastpass_core.h" /* before cfg is a name */
#include "tests/prog/host/host_util.h"
#include "tests/prog/pace_util.h"

#include "maps/fcp_abi.h"

#define HOLD_SLOTS 128
#define QUEUES     (BL_DESTS * BL_HOLD_CLASSES)
#define HOUR_NS    3600000000000ULL

static struct bl_hold_cfg hold;
static struct bl_fp_page page;
static const __u8 bl0[6] = { 2, 0, 0, 0xb1, 0, 0 };

static struct bl_fp_dest dest_get(__u32 n)
{
	struct bl_fp_dest d;

	map_get(sk->maps.fp_dests, n, &d);
	return d;
}

static void set_hold(void)
{
	map_put(sk->maps.hold_cfg, 0, &hold);
}

static int fp_setup(void **state)
{
	static const struct bl_hold_dest none;
	static const struct bl_fp_dest no_dest;
	struct bpf_devmap_val v = { 0 };
	struct bl_mac_key k;
	__u32 i;

	host_setup(state);
	/*
	 * The previous slot is late, but not too late, and no slot is missed unless a test misses
	 * it intentionally.
	 */
	hold = (struct bl_hold_cfg){ .on = 1,
				     .policy = BL_POLICY_FASTPASS,
				     .slot_ns = 2000000000U,
				     .slot_bytes = 1514,
				     .slot_late_ns = 4000000000U };
	memcpy(hold.mac, bl0, 6);
	set_hold();
	page = (struct bl_fp_page){ .offset_ns = HOUR_NS };
	map_put(sk->maps.fp_page, 0, &page);
	pace_setup(sk->maps.hold_due, HOLD_SLOTS, QUEUES);
	while (!bpf_map_get_next_key(bpf_map__fd(sk->maps.hold_dests), NULL, &k))
		assert_int_equal(bpf_map_delete_elem(bpf_map__fd(sk->maps.hold_dests), &k), 0);
	while (!bpf_map_lookup_and_delete_elem(bpf_map__fd(sk->maps.hold_free), NULL, &i))
		;
	for (i = 0; i < BL_DESTS; i++) {
		map_put(sk->maps.hold_macs, i, &none);
		map_put(sk->maps.fp_dests, i, &no_dest);
	}
	for (i = 0; i < BL_TX_COUNT; i++) {
		v.ifindex = net.ifindex[i];
		map_put(sk->maps.hold_tx, i, &v);
	}
	return 0;
}

static void give_frame(const struct frame *in)
{
	struct frame out;

	assert_int_equal(run_xdp(sk->progs.bl_hold_xdp, net.ifindex[1], in, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_HOLD, BL_R_HELD }));
}

static void give_n(__u32 to, __u32 first, __u32 n, __u32 len)
{
	struct frame f;
	__u32 i;

	for (i = first; i < first + n; i++) {
		raw_frame(&f, 1, to, len, i);
		give_frame(&f);
	}
}

static __u64 slot_now(void)
{
	return bl_fp_slot(page.offset_ns, hold.slot_ns, mono_now());
}

/* Gives @slot to destination @n, which is an endpoint, as the daemon does. */
static void give_slot(__u32 n, __u64 slot, __u8 path)
{
	struct bl_fp_dest d = dest_get(n);
	__u64 lapsed = 0, begin = bl_fp_slot_begin(page.offset_ns, hold.slot_ns, slot);
	struct bl_due due;

	d.endpoint = 1;
	assert_int_equal(bl_fp_give(&d, slot, path, slot, &lapsed), 0);
	map_put(sk->maps.fp_dests, n, &d);
	due = due_get();
	due.at[n] = due.at[n] < begin ? due.at[n] : begin;
	due.next = due.next < begin ? due.next : begin;
	due_put(&due);
}

static void set_dest_endpoint(__u32 n, __u32 value)
{
	struct bl_fp_dest d = dest_get(n);

	d.endpoint = value;
	map_put(sk->maps.fp_dests, n, &d);
}

static void expect_paced(const struct frame *want)
{
	struct frame out;

	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
	same_frame(&out, want);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
}

static void expect_n_paced(__u32 to, __u32 first, __u32 n, __u32 len)
{
	struct frame f;

	for (; n--; first++) {
		raw_frame(&f, 1, to, len, first);
		expect_paced(&f);
	}
}

static void expect_idle(void)
{
	struct frame out;
	int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 0, NULL, 0);
}

static void hold__wants_slots(void **state)
{
	(void)state;
	give_n(0, 0, 2, 1514);
	assert_int_equal(BL_FP_WANTED(dest_get(1).want), 2);
	give_n(2, 0, 3, 488); /* three frames share a slot: 3 x 512 of 1538 byte times */
	assert_int_equal(BL_FP_WANTED(dest_get(2).want), 1);
	give_n(2, 3, 1, 60);
	assert_int_equal(BL_FP_WANTED(dest_get(2).want), 2);
	expect_idle();
	assert_int_equal(balanced(QUEUES), 6);
}

static void hold__broadcast_does_not_wait(void **state)
{
	struct frame f;

	(void)state;
	raw_frame(&f, 1, 0, 60, 0);
	memset(f.p, 0xff, 6);
	give_frame(&f);
	expect_paced(&f);
	assert_int_equal(dest_get(0).want, 0);
	assert_int_equal(balanced(QUEUES), 0);
}

static void slot__one_full_frame_each(void **state)
{
	struct bl_fp_dest d;

	(void)state;
	give_n(0, 0, 3, 1514);
	give_slot(1, slot_now(), BL_FP_NO_PATH);
	expect_n_paced(0, 0, 1, 1514);
	expect_idle();
	give_slot(1, slot_now() - 1, BL_FP_NO_PATH); /* late, but not too late */
	expect_n_paced(0, 1, 1, 1514);
	expect_idle();
	give_slot(1, slot_now() + 100, BL_FP_NO_PATH);
	expect_idle();
	assert_true(due_get().at[1] > mono_now());
	d = dest_get(1);
	assert_int_equal(d.used, 2);
	assert_int_equal(d.frames, 2);
	assert_int_equal(d.idle | d.missed, 0);
	assert_int_equal(bl_fp_given(&d), 1);
	assert_int_equal(balanced(QUEUES), 1);
}

static void slot__small_frames_share_it(void **state)
{
	(void)state;
	give_n(0, 0, 4, 488);
	give_slot(1, slot_now(), BL_FP_NO_PATH);
	expect_n_paced(0, 0, 3, 488);
	expect_idle();
	assert_int_equal(dest_get(1).used, 1);
	assert_int_equal(dest_get(1).frames, 3);
	assert_int_equal(balanced(QUEUES), 1);
	give_slot(1, slot_now(), BL_FP_NO_PATH);
	expect_n_paced(0, 3, 1, 488);
	expect_idle();
	assert_int_equal(balanced(QUEUES), 0);
}

static void slot__expedited_first(void **state)
{
	struct desc d = plain_frame(1, 0, false);
	struct frame f;

	(void)state;
	give_n(0, 0, 1, 1000);
	d.tos = 46 << 2;
	build(&f, &d);
	give_frame(&f);
	give_slot(1, slot_now(), BL_FP_NO_PATH);
	expect_paced(&f);
	expect_n_paced(0, 0, 1, 1000);
	expect_idle();
}

static void slot__missed_is_counted(void **state)
{
	struct bl_fp_dest d;

	(void)state;
	give_n(0, 0, 1, 100);
	give_slot(1, slot_now() - 3, BL_FP_NO_PATH);
	give_slot(1, slot_now() - 4, BL_FP_NO_PATH);
	expect_idle();
	d = dest_get(1);
	assert_int_equal(d.missed, 2);
	assert_int_equal(d.used | d.idle, 0);
	/* the daemon asks again for missed slots, not the program */
	assert_int_equal(BL_FP_WANTED(d.want), 1);
	assert_int_equal(balanced(QUEUES), 1);
	give_slot(1, slot_now(), BL_FP_NO_PATH);
	expect_n_paced(0, 0, 1, 100);
}

static void slot__without_a_frame(void **state)
{
	(void)state;
	give_n(0, 0, 1, 100);
	give_slot(1, slot_now(), BL_FP_NO_PATH);
	give_slot(1, slot_now() - 1, BL_FP_NO_PATH);
	expect_n_paced(0, 0, 1, 100);
	expect_idle();
	assert_int_equal(dest_get(1).used, 1);
	assert_int_equal(dest_get(1).idle, 1);
	expect_idle();
}

static void heal__what_nobody_asked_for(void **state)
{
	(void)state;
	/* frames that were held under another policy */
	hold.policy = BL_POLICY_PL2;
	hold.k_frames = 4;
	hold.k_bytes = 6056;
	hold.retry_ns = HOUR_NS;
	set_hold();
	give_n(0, 0, 2, 100);
	assert_int_equal(dest_get(1).want, 0);
	hold.policy = BL_POLICY_FASTPASS;
	set_hold();
	set_dest_endpoint(1, 1);
	expect_idle();
	/* one slot at a time, as they are given */
	assert_int_equal(BL_FP_WANTED(dest_get(1).want), 1);
	give_slot(1, slot_now(), BL_FP_NO_PATH);
	expect_n_paced(0, 0, 2, 100);
	expect_idle();
}

static void endpoint__unknown_waits_outside_goes(void **state)
{
	(void)state;
	give_n(0, 0, 2, 100);
	expect_idle();
	assert_int_equal(BL_FP_WANTED(dest_get(1).want), 1);
	set_dest_endpoint(1, BL_FP_OUTSIDE);
	{
		struct bl_due d = due_get();

		d.at[1] = d.next = 0;
		due_put(&d);
	}
	expect_n_paced(0, 0, 2, 100);
	give_n(0, 2, 1, 100);
	expect_n_paced(0, 2, 1, 100);
	assert_int_equal(BL_FP_WANTED(dest_get(1).want), 1);
	expect_idle();
}

static void policy__changed_to_none(void **state)
{
	(void)state;
	give_n(0, 0, 3, 1514);
	set_dest_endpoint(1, 1);
	expect_idle();
	hold.policy = BL_POLICY_NONE;
	set_hold();
	{
		struct bl_due d = due_get();

		d.at[1] = d.next = 0;
		due_put(&d);
	}
	expect_n_paced(0, 0, 3, 1514);
	assert_int_equal(balanced(QUEUES), 0);
}

static void set_fallback(__u32 on)
{
	page.fallback = on;
	map_put(sk->maps.fp_page, 0, &page);
}

/*
 * While no arbiter answers, frames leave at once and want no slots. Then an arbiter answers again.
 */
static void fallback__goes_at_once(void **state)
{
	(void)state;
	set_dest_endpoint(1, 1);
	set_fallback(1);
	give_n(0, 0, 3, 1514);
	assert_int_equal(dest_get(1).want, 0);
	expect_n_paced(0, 0, 3, 1514);
	expect_idle();
	assert_int_equal(dest_get(1).frames | dest_get(1).used, 0);
	set_fallback(0);
	give_n(0, 3, 2, 1514);
	expect_idle();
	assert_int_equal(BL_FP_WANTED(dest_get(1).want), 2);
	give_slot(1, slot_now(), BL_FP_NO_PATH);
	expect_n_paced(0, 3, 1, 1514);
	expect_idle();
	assert_int_equal(balanced(QUEUES), 1);
}

/*
 * Frames that were held before the fallback: the daemon lowers the destination's time, and all
 * leave.
 */
static void fallback__what_was_held_before(void **state)
{
	struct bl_due d;

	(void)state;
	set_dest_endpoint(1, 1);
	give_n(0, 0, 3, 1514);
	expect_idle();
	set_fallback(1);
	d = due_get();
	d.at[1] = d.next = 0;
	due_put(&d);
	expect_n_paced(0, 0, 3, 1514);
	expect_idle();
	assert_int_equal(balanced(QUEUES), 0);
	assert_int_equal(BL_FP_WANTED(dest_get(1).want), 3); /* the daemon continues to ask */
	set_fallback(0);
}

/*
 * Frames that were held during the fallback and not sent before an arbiter answered want slots like
 * others.
 */
static void fallback__ends_with_frames_held(void **state)
{
	(void)state;
	set_dest_endpoint(1, 1);
	set_fallback(1);
	give_n(0, 0, 2, 100);
	set_fallback(0);
	expect_idle();
	assert_int_equal(BL_FP_WANTED(dest_get(1).want), 1);
	give_slot(1, slot_now(), BL_FP_NO_PATH);
	expect_n_paced(0, 0, 2, 100);
	expect_idle();
}

static bool fp_rung(void)
{
	static int fd = -1;
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

	if (fd < 0) {
		fd = epoll_create1(EPOLL_CLOEXEC);
		assert_int_equal(epoll_ctl(fd, EPOLL_CTL_ADD, bpf_map__fd(sk->maps.fp_bell), &ev),
				 0);
	}
	return epoll_wait(fd, &ev, 1, 20) == 1;
}

static void bell__once_per_sleep(void **state)
{
	struct bl_fp_page p;

	(void)state;
	fp_rung();
	give_n(0, 0, 1, 1514);
	assert_false(fp_rung()); /* the daemon is awake */
	page.asleep = 1;
	map_put(sk->maps.fp_page, 0, &page);
	give_n(0, 1, 1, 1000);
	assert_true(fp_rung());
	map_get(sk->maps.fp_page, 0, &p);
	assert_int_equal(p.asleep, 0);
	give_n(0, 2, 1, 1514);
	assert_false(fp_rung());
	page.asleep = 1;
	map_put(sk->maps.fp_page, 0, &page);
	give_n(0, 3, 1, 1514);
	assert_true(fp_rung());
}

static void bell__not_for_a_shared_slot(void **state)
{
	(void)state;
	fp_rung();
	give_n(0, 0, 1, 100);
	page.asleep = 1;
	map_put(sk->maps.fp_page, 0, &page);
	give_n(0, 1, 1, 100);
	assert_false(fp_rung());
}

/* ---- the path ---- */

static void path__in_the_mac(void **state)
{
	static const __u8 paths[] = { 0, 1, 14, BL_FP_NO_PATH };
	struct frame f;
	__u32 i;

	(void)state;
	hold.path_field = BL_FIELD_MAC;
	set_hold();
	for (i = 0; i < sizeof(paths); i++) {
		raw_frame(&f, 1, 0, 1514, i);
		give_frame(&f);
		give_slot(1, slot_now(), paths[i]);
		if (paths[i] != BL_FP_NO_PATH)
			f.p[6] = (__u8)((f.p[6] & 0x0f) | (paths[i] + 1) << 4);
		expect_paced(&f);
	}
	hold.path_field = BL_FIELD_NONE;
	set_hold();
	raw_frame(&f, 1, 0, 1514, i);
	give_frame(&f);
	give_slot(1, slot_now(), 3);
	expect_paced(&f);
}

/*
 * A tunnel's frame leaves with the source port of path 5, and with a correct checksum if it had
 * one. Other frames leave unchanged.
 */
static void path__as_udp_port(void **state)
{
	static const struct {
		__u16 dport;
		bool v6, check, changed;
	} t[] = { { 4789, false, false, true }, { 4789, false, true, true },
		  { 4789, true, true, true },   { 6081, true, false, true },
		  { 6081, false, true, true },  { 53, false, true, false },
		  { 4790, false, true, false } };
	__u32 i;

	(void)state;
	hold.path_field = BL_FIELD_UDP;
	hold.udp_ports = 50000;
	set_hold();
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct desc d = plain_frame(1, 0, t[i].v6);
		struct frame f, want;

		d.dport = t[i].dport;
		d.sport = 1234;
		d.csum = t[i].check;
		build(&f, &d);
		give_frame(&f);
		give_slot(1, slot_now(), 5);
		if (t[i].changed)
			d.sport = 50005;
		build(&want, &d);
		expect_paced(&want);
	}
}

/*
 * A checksum that comes out as zero is written as all ones: zero means that there is none, which
 * IPv6 does not allow.
 */
static void path__checksum_of_zero(void **state)
{
	__u32 v, psn;

	(void)state;
	hold.path_field = BL_FIELD_UDP;
	hold.udp_ports = 50000;
	set_hold();
	for (v = 0; v < 2; v++) {
		struct desc d = plain_frame(1, 0, v), want;
		struct frame f;
		__u32 at = hdr_off(&d) - 2;

		d.dport = 4789;
		d.csum = true;
		for (psn = 0; psn < 65536; psn++) {
			want = d;
			want.psn = psn;
			want.sport = 50005;
			build(&f, &want);
			if (f.p[at] == 0xff && f.p[at + 1] == 0xff)
				break;
		}
		assert_true(psn < 65536);
		d.psn = psn;
		d.sport = 1234;
		build(&f, &d);
		give_frame(&f);
		give_slot(1, slot_now(), 5);
		build(&f, &want);
		expect_paced(&f);
	}
}

/* ---- frames by peer and path ---- */

static struct bl_fp_paths paths_expected;

static void expect_paths(void)
{
	struct bl_fp_paths p;

	map_get(sk->maps.fp_paths, 0, &p);
	assert_memory_equal(&p, &paths_expected, sizeof(p));
}

static void set_path_counting(__u32 field, __u32 on)
{
	map_get(sk->maps.fp_paths, 0, &paths_expected); /* the counts only grow */
	hold.path_field = field;
	hold.count_paths = on;
	hold.udp_ports = 50000;
	set_hold();
}

static void count__what_left(void **state)
{
	static const struct {
		__u32 field, on, endpoint;
		__u8 path;
		__u16 dport;
		__u32 column; /* BL_FP_COLUMNS: the frame is not counted */
	} t[] = { { BL_FIELD_MAC, 1, 1, 0, 53, 0 },
		  { BL_FIELD_MAC, 1, 1, 14, 53, 14 },
		  { BL_FIELD_MAC, 1, 1, BL_FP_NO_PATH, 53, BL_FP_PATHS },
		  { BL_FIELD_MAC, 1, 1, 15, 53, BL_FP_PATHS },
		  { BL_FIELD_NONE, 1, 1, 3, 53, BL_FP_PATHS },
		  { BL_FIELD_UDP, 1, 1, 3, 4789, 3 },
		  { BL_FIELD_UDP, 1, 1, 63, 6081, 63 },
		  { BL_FIELD_UDP, 1, 1, 3, 53, BL_FP_PATHS },
		  /* the source port that the application chose lies in the range of the paths */
		  { BL_FIELD_UDP, 1, 1, BL_FP_NO_PATH, 4789, 7 },
		  { BL_FIELD_MAC, 0, 1, 2, 53, BL_FP_COLUMNS },
		  { BL_FIELD_MAC, 1, 2, 2, 53, BL_FP_COLUMNS } };
	struct bl_fp_dest dest;
	struct frame out;
	__u32 i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct desc d = plain_frame(1, 0, i & 1);
		struct frame f;

		set_path_counting(t[i].field, t[i].on);
		d.dport = t[i].dport;
		d.sport = 50007;
		build(&f, &d);
		give_frame(&f);
		give_slot(1, slot_now(), t[i].path);
		dest = dest_get(1);
		dest.endpoint = t[i].endpoint; /* 2: an index that does not exist */
		map_put(sk->maps.fp_dests, 1, &dest);
		assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
		counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
		if (t[i].column < BL_FP_COLUMNS)
			paths_expected.sent[t[i].column]++;
		expect_paths();
	}
}

/*
 * Without slots, frames carry no path and are counted in that column, since the receiver does the
 * same.
 */
static void count__without_slots(void **state)
{
	static const __u32 fields[] = { BL_FIELD_MAC, BL_FIELD_UDP, BL_FIELD_NONE };
	static const __u16 ports[] = { BL_FP_PATHS, 7, BL_FP_PATHS };
	__u32 i;

	(void)state;
	set_fallback(1);
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct desc d = plain_frame(1, 0, false);
		struct frame f;

		set_path_counting(fields[i], 1);
		d.dport = 4789;
		d.sport = 50007;
		build(&f, &d);
		give_frame(&f);
		set_dest_endpoint(1, 1);
		expect_paced(&f);
		paths_expected.sent[ports[i]]++;
		expect_paths();
	}
	set_fallback(0);
}

/*
 * Runs a received frame with @bits set in the first byte of its source address; the application
 * must get it without them.
 */
static void expect_received(const struct desc *d, __u32 bits)
{
	struct frame f, out, want;

	build(&f, d);
	memcpy(f.p, bl0, 6);
	want = f;
	f.p[6] |= (__u8)bits;
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_TO_APP }));
	same_frame(&out, &want);
	expect_paths();
}

/* Enters the peer that sends @d, as the daemon does. */
static void set_peer(const struct desc *d, __u32 kind)
{
	struct bl_mac_key k, old;
	__u32 number = 1;
	int fd = bpf_map__fd(sk->maps.fp_peers);

	while (!bpf_map_get_next_key(fd, NULL, &old))
		assert_int_equal(bpf_map_delete_elem(fd, &old), 0);
	memset(&k, 0, sizeof(k));
	k.kind = (__u8)kind;
	if (kind == 6)
		memcpy(k.upper, d->saddr, sizeof(k.upper));
	memcpy(k.mac + (kind == 4 ? 2 : 0),
	       kind == 4   ? d->saddr + 12
	       : kind == 6 ? d->saddr + 10
			   : d->src,
	       kind == 4 ? 4 : 6);
	assert_int_equal(bpf_map_update_elem(fd, &k, &number, BPF_ANY), 0);
}

static void count__what_came(void **state)
{
	static const struct {
		__u32 routed, v6, kind;
	} t[] = { { 0, 0, 0 }, { 0, 1, 0 }, { 1, 0, 4 }, { 1, 1, 6 } };
	__u32 i, path;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct desc d = plain_frame(0, 1, t[i].v6), other = plain_frame(2, 1, t[i].v6);

		/* ::1 of another rack's /64 is a different host */
		if (t[i].kind == 6) {
			memcpy(other.saddr, d.saddr, sizeof(other.saddr));
			other.saddr[7] ^= 1;
		}
		hold.routed = t[i].routed;
		set_path_counting(BL_FIELD_MAC, 1);
		set_peer(&d, t[i].kind);
		for (path = 0; path < 15; path++) {
			paths_expected.came[path]++;
			expect_received(&d, (path + 1) << 4);
		}
		paths_expected.came[BL_FP_PATHS]++;
		expect_received(&d, 0);
		/* a peer that the daemon has not entered: not counted, but the path is removed */
		expect_received(&other, 0x30);
		set_path_counting(BL_FIELD_MAC, 0);
		expect_received(&d, 0x10);
		set_path_counting(BL_FIELD_NONE, 1);
		paths_expected.came[BL_FP_PATHS]++;
		expect_received(&d, 0);
		/*
		 * source ports of a tunnel: that of the first path, of the last one, and those just
		 * outside the range
		 */
		set_path_counting(BL_FIELD_UDP, 1);
		d.dport = 4789;
		d.sport = 50000;
		paths_expected.came[0]++;
		expect_received(&d, 0);
		d.sport = 50063;
		paths_expected.came[63]++;
		expect_received(&d, 0);
		d.sport = 50064;
		paths_expected.came[BL_FP_PATHS]++;
		expect_received(&d, 0);
		d.sport = 49999;
		paths_expected.came[BL_FP_PATHS]++;
		expect_received(&d, 0);
		d.dport = 4790;
		d.sport = 50001;
		paths_expected.came[BL_FP_PATHS]++;
		expect_received(&d, 0);
	}
	hold.policy = BL_POLICY_NONE; /* under another policy frames are not counted */
	set_hold();
	expect_received(&(struct desc[]){ plain_frame(0, 1, false) }[0], 0);
	hold.routed = 0;
}

/* ARP frames are not counted, since the sender neither holds nor counts them. */
static void count__not_arp(void **state)
{
	struct desc d = plain_frame(0, 1, false);
	struct frame f, out;

	(void)state;
	set_path_counting(BL_FIELD_MAC, 1);
	set_peer(&d, 0);
	raw_frame(&f, 0, 1, 60, 0);
	memcpy(f.p, bl0, 6);
	memcpy(f.p + 6, d.src, 6);
	f.p[12] = 0x08;
	f.p[13] = 0x06;
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_TO_APP }));
	expect_paths();
	f.p[13] = 0x99;
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_TO_APP }));
	paths_expected.came[BL_FP_PATHS]++;
	expect_paths();
}

static void reasons__all_seen(void **state)
{
	(void)state;
	assert_true(reason_seen[BL_R_HELD] && reason_seen[BL_R_PACED]);
}

int main(void)
{
#define CASE(t) cmocka_unit_test_setup(t, fp_setup)
	const struct CMUnitTest tests[] = {
		CASE(hold__wants_slots),
		CASE(hold__broadcast_does_not_wait),
		CASE(slot__one_full_frame_each),
		CASE(slot__small_frames_share_it),
		CASE(slot__expedited_first),
		CASE(slot__missed_is_counted),
		CASE(slot__without_a_frame),
		CASE(heal__what_nobody_asked_for),
		CASE(fallback__goes_at_once),
		CASE(fallback__what_was_held_before),
		CASE(fallback__ends_with_frames_held),
		CASE(count__without_slots),
		CASE(endpoint__unknown_waits_outside_goes),
		CASE(policy__changed_to_none),
		CASE(bell__once_per_sleep),
		CASE(bell__not_for_a_shared_slot),
		CASE(path__in_the_mac),
		CASE(path__as_udp_port),
		CASE(path__checksum_of_zero),
		CASE(count__what_left),
		CASE(count__what_came),
		CASE(count__not_arp),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests_name("fp", tests, net_up, NULL);
}
