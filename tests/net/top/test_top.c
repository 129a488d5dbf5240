// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP on a rack: connections of applications go from bl0 to bl0, each data frame in the place of a
 * token that its receiver sent. The switch holds tokens in its queues (mode pace);
 * test_top_incast.c tests its other modes.
 *
 * Time must not matter where a test is not about it: tokens may be minutes old, and no peer is
 * given up.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include <sys/mman.h>

#include "core/top/top_core.h" /* before conn.h, whose world is w */
#include "tests/net/rack.h"
#include "tests/net/conn.h"

#include "maps/top_host_abi.h"
#include "loader/admission/admission.h"
#include "loader/admission/admission_set.h"

#define RATE    250000000
#define FOREVER 10000000 /* us */
/*
 * A SYNC without a token is repeated after this time in us. With the default of 2000 a rack that
 * stands still for 0.1 s makes a flow take another tag, and tokens and echoes that were under way
 * are refused then; with this value it takes 11 s. A flow that ends while tokens for it are under
 * way has the same effect, so flows do not end unless a case wants that.
 */
#define PATIENT   200000
#define OPT(o, v) (rack_top[BL_TOP_O_##o] = (v) + 1)

static uint32_t rack_top[BL_TOP_O_COUNT];
static uint64_t rate = RATE;
static bool sprayed;        /* leaf and spine: each frame takes another path */
static unsigned int skewed; /* the clock of this node is off by @skew_ns */
static int64_t skew_ns;

static void tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	if (cfg->role == BL_ROLE_HOST)
		memcpy(cfg->admission.top.v, rack_top, sizeof(rack_top));
	else
		cfg->admission.spray =
			sprayed && n->kind == LAB_TOR; /* spines have no uplinks to choose from */
	if (skew_ns && n == &rack.lab.nodes[skewed])
		cfg->skew_ns = skew_ns;
	cfg->clock_bound_us = 1000;
}

/*
 * While a rack starts on a busy machine, beacons may arrive before there is a pacer that drains
 * them.
 */
static struct {
	uint64_t dropped[BL_CL_COUNT], no_slot;
} was;

static uint64_t dropped_by_switch(uint32_t cls)
{
	uint64_t n = 0;
	struct bl_queue q;
	uint32_t port, key;
	int fd = rack_map(0, BL_MAP_QUEUES);

	CHECK(fd >= 0, "%s", strerror(errno));
	for (port = 0; port < rack.lab.nodes[0].nports; port++) {
		key = BL_PORT_QUEUE(port, cls);
		CHECK(!bpf_map_lookup_elem(fd, &key, &q), "%s", strerror(errno));
		n += q.dropped;
	}
	close(fd);
	return n;
}

static void open_rack(unsigned int hosts)
{
	unsigned int i;

	rack.lab.spec.hosts = hosts;
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = sprayed;
	rack.lab.spec.admission.on = true;
	rack.lab.spec.admission.policy = BL_POLICY_TOP;
	rack.lab.spec.admission.rate_bps = rate;
	/*
	 * Beacons are not needed here, and they share a class with data: a pacer that sleeps on a
	 * busy machine drops the excess.
	 */
	rack.lab.spec.beacon_us = 20000;
	rack.tweak = tweak;
	rack_last_words = rack_dump;
	if (!rack_top[BL_TOP_O_EXPIRY])
		OPT(EXPIRY, FOREVER);
	if (!rack_top[BL_TOP_O_DEAD])
		OPT(DEAD, FOREVER);
	if (!rack_top[BL_TOP_O_SYNC])
		OPT(SYNC, PATIENT);
	if (!rack_top[BL_TOP_O_IDLE])
		OPT(IDLE, FOREVER);
	rack_open();
	/* on a busy machine this takes so long that the first nodes' clocks are void by now */
	rack_serve(300);
	for (i = 0; i < BL_CL_COUNT; i++)
		was.dropped[i] = dropped_by_switch(i);
	was.no_slot = rack_count_all(BL_R_NO_SLOT);
}

/* ---- the state of the hosts ---- */

static struct bl_top_page page_of(unsigned int i)
{
	struct bl_top_page p;
	uint32_t zero = 0;
	int fd = rack_map(rack_host(i), BL_MAP_TOP_PAGE);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &p), "%s", strerror(errno));
	close(fd);
	return p;
}

static uint64_t tokens_of(unsigned int i)
{
	struct bl_top_page p = page_of(i);
	uint64_t n = 0;
	unsigned int k;

	for (k = 0; k < BL_TOP_CLASSES; k++)
		n += p.tokens[k];
	return n;
}

/* Checks that every data frame was sent for a token, and nothing was lost in the network. */
static void in_order(unsigned int senders)
{
	uint64_t used = 0, held = 0;
	unsigned int i;

	for (i = 1; i <= senders; i++) {
		used += rack_count(rack_host(i), BL_R_TOKEN_USED) +
			rack_count(rack_host(i), BL_R_TOKEN_PACED);
		held += rack_count(rack_host(i), BL_R_HELD);
	}
	fprintf(stderr, "  %" PRIu64 " tokens, %" PRIu64 " answered, %" PRIu64 " wasted\n",
		tokens_of(0), used,
		rack_count_all(BL_R_TOKEN_WASTED) + rack_count_all(BL_R_TOKEN_STOP));
	CHECK(used && tokens_of(0) >= used && held >= used,
	      "%" PRIu64 " tokens, %" PRIu64 " answered, %" PRIu64 " held", tokens_of(0), used,
	      held);
	for (i = 0; i < BL_CL_COUNT; i++)
		CHECK(dropped_by_switch(i) == was.dropped[i],
		      "%" PRIu64 " frames of class %s were dropped at the switch",
		      dropped_by_switch(i) - was.dropped[i], bl_class_name(i));
	/*
	 * A host's own hold queue may be full: while its pacer waits for a CPU, TCP continues until
	 * the first mark comes back (docs/guarantees.md).
	 */
	CHECK(rack_count_all(BL_R_NO_SLOT) == was.no_slot, "drops");
	CHECK(!rack_count_all(BL_R_TOKEN_FORGED) && !rack_count_all(BL_R_TOKEN_REPLAYED) &&
		      !rack_count_all(BL_R_ECHO_BAD) && !rack_count_all(BL_R_TOKEN_AHEAD) &&
		      !rack_count_all(BL_R_SIGNAL_BAD),
	      "refusals");
}

RACK_TEST(bytes__tcp_v4)
{
	open_rack(2);
	begin(AF_INET, 1, 8 << 20);
	finish();
	in_order(1);
}

RACK_TEST(bytes__tcp_v6)
{
	open_rack(2);
	begin(AF_INET6, 1, 8 << 20);
	finish();
	in_order(1);
}

/* ---- fifteen to one ---- */

RACK_TEST(incast__fifteen_hosts_lose_nothing)
{
	open_rack(16);
	begin(AF_INET, 15, 128 << 10);
	finish();
	in_order(15);
}

/* ---- flows of unknown size ---- */

RACK_TEST(las__classes_by_what_was_served)
{
	struct bl_top_page p;
	uint64_t end;
	unsigned int k;

	OPT(OBJECTIVE, BL_TOP_BY_LAS);
	OPT(LONGEST, 3000);
	/* a flow whose sender waits this long for a CPU starts again in class 0 */
	OPT(IDLE, 2000000);
	open_rack(2);
	begin(AF_INET, 1, 8 << 20); /* 5746 full frames: through all classes */
	finish();
	in_order(1);
	p = page_of(0);
	for (k = 0; k < BL_TOP_CLASSES; k++)
		CHECK(p.tokens[k], "class %u had no token", k);
	CHECK(p.tokens[5] > p.tokens[0], "%llu and %llu", (unsigned long long)p.tokens[5],
	      (unsigned long long)p.tokens[0]);
	/* The flow idles: a FIN is sent, and both ends forget the flow. */
	end = t_mono() + 60000000000ULL;
	for (; page_of(0).used[0] || page_of(1).used[0]; rack_serve(20))
		CHECK(t_mono() < end, "the receiver still knows the flow");
	CHECK(page_of(0).gone && page_of(1).freed, "gone %llu, freed %llu",
	      (unsigned long long)page_of(0).gone, (unsigned long long)page_of(1).freed);
}

/* ---- flows of known size ---- */

/* @bytes: size in the hint, 0: no hint; @sent: bytes that are sent. */
static void hinted(int family, uint64_t bytes, uint64_t sent, int priority, unsigned int class)
{
	const struct bl_flow_hint hint = { .bytes = bytes };
	struct bl_top_page p;
	unsigned int k;

	OPT(LONGEST, 3000);
	open_rack(2);
	w.hint = bytes ? &hint : NULL;
	w.priority = priority;
	begin(family, 1, sent);
	finish();
	in_order(1);
	p = page_of(0);
	for (k = 0; k < BL_TOP_CLASSES; k++)
		CHECK(!p.tokens[k] == (k != class), "class %u: %llu tokens", k,
		      (unsigned long long)p.tokens[k]);
}

RACK_TEST(hint__small)
{
	hinted(AF_INET, 1000, 1000, 0, 0);
}

/*
 * The application announces 1000 bytes and sends 2 MB: its hint does not keep the flow in the best
 * class.
 */
RACK_TEST(hint__of_a_liar)
{
	const struct bl_flow_hint hint = { .bytes = 1000 };
	struct bl_top_page p;

	OPT(LONGEST, 3000);
	open_rack(2);
	w.hint = &hint;
	begin(AF_INET, 1, 2 << 20); /* 1437 full frames; class 4 begins at 209, class 5 at 790 */
	finish();
	in_order(1);
	p = page_of(0);
	CHECK(p.tokens[0] && p.tokens[4] && p.tokens[5], "%llu, %llu and %llu tokens",
	      (unsigned long long)p.tokens[0], (unsigned long long)p.tokens[4],
	      (unsigned long long)p.tokens[5]);
}

RACK_TEST(hint__large_v6)
{
	hinted(AF_INET6, 1ULL << 40, 2 << 20, 0, 5);
}

RACK_TEST(hint__by_the_sockets_priority)
{
	hinted(AF_INET, 0, 2 << 20, 4, 2);
}

RACK_TEST(hint__refused)
{
	const struct bl_flow_hint hint = { .bytes = 1 }, unknown = { .flags = 2 },
				  reserved = { .reserved = 1 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
	    u = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	CHECK(bl_flow_hint(-1, &hint) == -EBADF, "no socket");
	CHECK(bl_flow_hint(fd, &hint) == -ENOTCONN, "not connected");
	CHECK(bl_flow_hint(fd, &unknown) == -EINVAL && bl_flow_hint(fd, &reserved) == -EINVAL, "no "
											       "suc"
											       "h "
											       "fla"
											       "g");
	CHECK(bl_flow_hint(u, &hint) < 0, "no IP");
	CHECK(!system("ip link set lo up"), "lo");
	CHECK(!connect(fd, (void *)&sa, sizeof(sa)), "%s", strerror(errno));
	CHECK(bl_flow_hint(fd, &hint) == -ENOENT, "no daemon");
}

RACK_TEST(paper__law)
{
	OPT(LAW, BL_TOP_LAW_PAPER);
	OPT(LEVELS, 1);
	open_rack(3);
	begin(AF_INET, 2, 2 << 20);
	finish();
	in_order(2);
	CHECK(page_of(0).tokens[0] == tokens_of(0), "ExpressPass has one class");
}

/* ---- learned thresholds ---- */

/* Simulates @n flows of @frames frames that came to host @i and ended. */
static void flows_came(unsigned int i, uint64_t frames, uint64_t n)
{
	size_t size = (sizeof(struct bl_top_page) + 4095) / 4096 * 4096;
	int fd = rack_map(rack_host(i), BL_MAP_TOP_PAGE);
	struct bl_top_page *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(fd >= 0 && p != MAP_FAILED, "%s", strerror(errno));
	__atomic_fetch_add(&p->sizes[bl_top_bucket(frames)], n, __ATOMIC_RELAXED);
	munmap(p, size);
	close(fd);
}

static void limits_become(unsigned int i, bool learnt)
{
	uint64_t end = t_mono() + 60000000000ULL;

	for (; !page_of(i).limit[0] == learnt; rack_serve(20))
		CHECK(t_mono() < end, "%s", learnt ? "nothing is learnt" : "what was learnt stays");
}

/*
 * The daemon of the host that received the flows learns from them, and so does its successor, and
 * no other host does.
 */
RACK_TEST(learn__by_the_daemon)
{
	struct bl_top_page p;
	unsigned int k;

	open_rack(2);
	flows_came(0, 100, 1000);
	limits_become(0, true);
	p = page_of(0);
	for (k = 1; k < BL_TOP_CLASSES - 1; k++)
		CHECK(p.limit[k] > p.limit[k - 1] && p.limit[k] <= 128,
		      "class %u begins at %llu frames", k + 1, (unsigned long long)p.limit[k]);
	CHECK(!page_of(1).limit[0], "a host that received nothing has learnt something");
	rack_close_node(rack_host(0));
	rack_open_node(rack_host(0));
	flows_came(0, 5000, 1000);
	for (k = 0; page_of(0).limit[4] <= 128; rack_serve(20))
		CHECK(++k < 3000, "the next daemon has not learnt that flows are longer");
	begin(AF_INET, 1, 2 << 20);
	finish();
	in_order(1);
}

/* ---- one end dies ---- */

static uint64_t answered(unsigned int i)
{
	return rack_count(rack_host(i), BL_R_TOKEN_USED) +
	       rack_count(rack_host(i), BL_R_TOKEN_PACED);
}

static void until_answered(unsigned int i, uint64_t n)
{
	while (answered(i) < n) {
		CHECK(running(), "the transfer ended before it was told to");
		rack_serve(2);
	}
}

RACK_TEST(receiver__dies_and_comes_back)
{
	uint64_t before, signals, end = t_mono() + 60000000000ULL;

	OPT(SYNC, 25000); /* it repeats often, and for 1.5 s with the same tag */
	open_rack(2);
	begin(AF_INET, 1, ENDLESS);
	until_answered(1, 500);
	/* Without its pacer it sends no tokens, and without its daemon nothing takes over. */
	rack_close_node(rack_host(0));
	/*
	 * What is under way arrives; then the sender continues to ask, and nothing leaves any more.
	 */
	do {
		before = answered(1);
		signals = rack_count(rack_host(0), BL_R_SIGNAL);
		while (rack_count(rack_host(0), BL_R_SIGNAL) < signals + 4) {
			CHECK(t_mono() < end, "the sender has given up asking");
			rack_serve(5);
		}
		CHECK(t_mono() < end, "frames leave without end, and without a token");
	} while (answered(1) != before);
	CHECK(running(), "the transfer ended without tokens");
	rack_open_node(rack_host(0));
	finish();
	in_order(1);
}

RACK_TEST(sender__dies_and_is_forgotten)
{
	uint64_t end;

	OPT(DEAD, 200000);
	OPT(SYNC, 2000);
	open_rack(3);
	begin(AF_INET, 2, ENDLESS);
	until_answered(1, 100);
	rack_close_node(rack_host(1));
	rack_link(rack_host(1), "eth0", false); /* and its program answers no tokens any more */
	for (end = t_mono() + 60000000000ULL; !page_of(0).gone; rack_serve(20))
		CHECK(t_mono() < end, "the receiver still knows it");
	/* The other flow ends, whatever became of the first one. */
	enough();
	while (w.pid[2]) {
		running();
		rack_serve(10);
	}
}

/* ---- losses ---- */

#define XDP_REG(op, dst, src, offset, value)                                                       \
	{                                                                                          \
		.code = (op), .dst_reg = BPF_REG_##dst, .src_reg = BPF_REG_##src, .off = (offset), \
		.imm = (value)                                                                     \
	}

/*
 * From now on the NIC of host @i loses @per_65536 of 65536 incoming frames of UDP over IPv4: data,
 * tokens and signals. A program of the test takes the place of barline's in its link, and calls it
 * for the other frames. (The answers to tokens leave by XDP_TX, so no tc program of the host sees
 * them.)
 */
static void make_lossy(unsigned int i, uint32_t per_65536)
{
	char path[384];
	struct bpf_link_info info = { 0 };
	uint32_t len = sizeof(info), zero = 0;
	int link, next, prog,
		map = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "t_next", 4, 4, 1, NULL);
	const struct bpf_insn code[] = {
		XDP_REG(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0),
		XDP_REG(BPF_LDX | BPF_MEM | BPF_W, 2, 1, (int16_t)offsetof(struct xdp_md, data), 0),
		XDP_REG(BPF_LDX | BPF_MEM | BPF_W, 3, 1, (int16_t)offsetof(struct xdp_md, data_end),
			0),
		XDP_REG(BPF_ALU64 | BPF_MOV | BPF_X, 4, 2, 0, 0),
		XDP_REG(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, 24),
		XDP_REG(BPF_JMP | BPF_JGT | BPF_X, 4, 3, 9, 0),
		XDP_REG(BPF_LDX | BPF_MEM | BPF_H, 5, 2, 12, 0), /* ethertype */
		XDP_REG(BPF_JMP | BPF_JNE | BPF_K, 5, 0, 7, 0x0008),
		XDP_REG(BPF_LDX | BPF_MEM | BPF_B, 5, 2, 23, 0), /* protocol */
		XDP_REG(BPF_JMP | BPF_JNE | BPF_K, 5, 0, 5, IPPROTO_UDP),
		XDP_REG(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_prandom_u32),
		XDP_REG(BPF_ALU64 | BPF_AND | BPF_K, 0, 0, 0, 0xffff),
		XDP_REG(BPF_JMP | BPF_JGE | BPF_K, 0, 0, 2, (int32_t)per_65536),
		XDP_REG(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_DROP),
		XDP_REG(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		XDP_REG(BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0),
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
		  .dst_reg = BPF_REG_2,
		  .src_reg = BPF_PSEUDO_MAP_FD,
		  .imm = map },
		{ 0 },
		XDP_REG(BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, 0),
		XDP_REG(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_tail_call),
		XDP_REG(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_ABORTED),
		XDP_REG(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = BPF_XDP);

	snprintf(path, sizeof(path), "%s/links/xdp-eth0", rack.dir[rack_host(i)]);
	link = bpf_obj_get(path);
	CHECK(map >= 0 && link >= 0 && !bpf_obj_get_info_by_fd(link, &info, &len), "%s: %s", path,
	      strerror(errno));
	next = bpf_prog_get_fd_by_id(info.prog_id);
	prog = bpf_prog_load(BPF_PROG_TYPE_XDP, "t_drop", "GPL", code,
			     sizeof(code) / sizeof(code[0]), &o);
	CHECK(next >= 0 && prog >= 0, "the dropping program: %s", strerror(errno));
	CHECK(!bpf_map_update_elem(map, &zero, &next, BPF_ANY), "barline's program behind it: %s",
	      strerror(errno));
	CHECK(!bpf_link_update(link, prog, NULL), "its link: %s", strerror(errno));
	/*
	 * The array forgets its program when no process holds a descriptor of the array, so it
	 * stays open.
	 */
	close(link);
	close(prog);
	close(next);
}

/*
 * Frames that are held for longer than 4096 full ones take, which is 5 s at this rate, are dropped,
 * and so are datagrams. SYNCs are lost, so they are repeated often enough, and the tag stays the
 * same for 3 s.
 */
#define SLOW      10000000
#define SLOW_SYNC 50000
#define DATAGRAMS 2000
#define IN_QUEUE  200 /* fewer than fit into a hold queue */

static struct {
	uint32_t sent, came, twice;
	uint8_t got[DATAGRAMS];
} * shared;

static void take_datagrams(void)
{
	uint32_t b[256];
	ssize_t n;

	for (;;) {
		n = recv(w.listener, b, sizeof(b), 0);
		CHECK(n == 1000 && b[0] < DATAGRAMS, "%zd bytes, datagram %u", n, b[0]);
		if (shared->got[b[0]]++)
			__atomic_add_fetch(&shared->twice, 1, __ATOMIC_RELAXED);
		else
			__atomic_add_fetch(&shared->came, 1, __ATOMIC_RELAXED);
	}
}

static uint64_t answered(unsigned int i);

static void send_datagrams(void)
{
	struct sockaddr_storage sa;
	socklen_t len = address(AF_INET, rack_host(0), &sa);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint32_t b[250] = { 0 };

	CHECK(fd >= 0 && !connect(fd, (void *)&sa, len), "%s", strerror(errno));
	CHECK(!bl_flow_hint(fd, w.hint), "hint");
	for (b[0] = 0; b[0] < DATAGRAMS; b[0]++) {
		/*
		 * the first one alone: while the kernel resolves the neighbour it keeps a hundred
		 */
		while (b[0] >= answered(1) + (answered(1) ? IN_QUEUE : 1))
			usleep(1000);
		CHECK(send(fd, b, sizeof(b), 0) == sizeof(b), "send: %s", strerror(errno));
		__atomic_store_n(&shared->sent, b[0] + 1, __ATOMIC_RELAXED);
	}
}

static void slow_rack(void)
{
	rate = SLOW;
	OPT(SYNC, SLOW_SYNC);
	open_rack(2);
}

/*
 * Checks that no frame was dropped because it was held for too long. Fails before the time of the
 * case is over, with a report of how far it came.
 */
static void not_lost(void)
{
	uint64_t held = rack_count_all(BL_R_HELD_LONG);
	uint64_t end = rack_begun + (RACK_CASE_S - 10) * 1000000000ULL;

	CHECK(!held, "%" PRIu64 " frames were held for so long that they were dropped", held);
	CHECK(t_mono() < end, "%u datagrams sent, %" PRIu64 " left, %u came",
	      __atomic_load_n(&shared->sent, __ATOMIC_RELAXED), answered(1),
	      __atomic_load_n(&shared->came, __ATOMIC_RELAXED));
}

/* Waits until all datagrams have left h2, whatever the loss. */
static void datagrams(const struct bl_flow_hint *hint)
{
	struct sockaddr_storage sa;
	socklen_t len = address(AF_INET, rack_host(0), &sa);
	int home = rack_away(rack_host(0)), room = 64 << 20;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	w.n = w.left = 0;
	w.hint = hint;
	w.listener = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(shared != MAP_FAILED && w.listener >= 0 &&
		      !setsockopt(w.listener, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) &&
		      !bind(w.listener, (void *)&sa, len),
	      "%s", strerror(errno));
	rack_back(home);
	child(rack_host(0), "receiver", take_datagrams);
	child(rack_host(1), "sender", send_datagrams);
	while (w.left > 1 || answered(1) < DATAGRAMS) {
		running();
		not_lost();
		rack_serve(10);
	}
}

static const struct bl_flow_hint resend = { .flags = BL_FLOW_RESEND }, no_resend = { .flags = 0 };

static void complete_and_once(void)
{
	while (__atomic_load_n(&shared->came, __ATOMIC_RELAXED) < DATAGRAMS) {
		running();
		not_lost();
		rack_serve(10);
	}
	rack_serve(200); /* for late arrivals */
	fprintf(stderr,
		"  %" PRIu64 " LOSS, %" PRIu64 " frames sent again, %" PRIu64
		" of them came twice, %" PRIu64 " tokens blocked\n",
		rack_count_all(BL_R_LOSS), rack_count_all(BL_R_TOKEN_RESENT),
		rack_count_all(BL_R_DATA_REPEATED), rack_count_all(BL_R_TOKEN_BLOCKED));
	CHECK(!shared->twice, "%u datagrams came twice", shared->twice);
	CHECK(!rack_count_all(BL_R_DATA_LOST) && !rack_count_all(BL_R_NOT_KEPT) &&
		      !rack_count_all(BL_R_LOSS_BAD),
	      "data_lost %" PRIu64, rack_count_all(BL_R_DATA_LOST));
}

RACK_TEST(resend__udp_complete_and_once)
{
	slow_rack();
	make_lossy(0, 6554); /* a tenth */
	make_lossy(1, 6554);
	datagrams(&resend);
	complete_and_once();
	CHECK(rack_count_all(BL_R_TOKEN_RESENT) && rack_count_all(BL_R_LOSS), "nothing was lost: "
									      "this proves "
									      "nothing");
}

/* Two uplinks, used in turn by tokens, data and signals. */
RACK_TEST(resend__sprayed)
{
	sprayed = true;
	slow_rack();
	make_lossy(0, 1311); /* a fiftieth */
	datagrams(&resend);
	complete_and_once();
}

RACK_TEST(resend__not_asked_for)
{
	slow_rack();
	make_lossy(0, 6554);
	datagrams(&no_resend);
	rack_serve(500);
	fprintf(stderr, "  %u of %u came\n", shared->came, DATAGRAMS);
	CHECK(shared->came < DATAGRAMS && !shared->twice, "nothing was lost: this proves nothing");
	CHECK(!rack_count_all(BL_R_TOKEN_RESENT) && !rack_count_all(BL_R_LOSS) &&
		      !rack_count_all(BL_R_DATA_REPEATED) && !rack_count_all(BL_R_DATA_LOST),
	      "a flow that did not ask for it");
}

/* ---- clocks against T ---- */

RACK_TEST(clock__sender_ahead_beyond_t)
{
	struct bl_admission_set set = {};
	struct bl_node_ref *refs;
	char said[512];
	struct bl_err err;
	int n, i, home;

	OPT(EXPIRY, 100000);
	skewed = 2; /* h2, the sender; a switch and h1 come before it */
	skew_ns = 900000000;
	open_rack(2);
	begin(AF_INET, 1, 1 << 20);
	while (rack_count(rack_host(1), BL_R_TOKEN_EXPIRED) < 50) {
		CHECK(running(), "it ended");
		rack_serve(5);
	}
	CHECK(!answered(1), "%" PRIu64 " tokens were answered that were too old", answered(1));
	/* configured for clocks that differ this much */
	bl_admission_put(&set, BL_AO_TOP + BL_TOP_O_EXPIRY, 5000000);
	n = bl_nodes_find(&refs, 0, &err);
	home = rack_away(rack_host(1));
	for (i = 0; i < n; i++)
		if (refs[i].role == BL_ROLE_HOST && refs[i].netns_ino == bl_netns_ino())
			CHECK(!bl_admission_change(&refs[i], &set, said, sizeof(said), &err) &&
				      strstr(said, "expiry_us: 100000 -> 5000000"),
			      "%s", said);
	rack_back(home);
	free(refs);
	finish();
	in_order(1);
}

RACK_TEST(clock__receiver_ahead)
{
	skewed = 1;           /* h1 */
	skew_ns = 9000000000; /* longer than any token is under way */
	open_rack(2);
	begin(AF_INET, 1, 1 << 20);
	while (rack_count(rack_host(1), BL_R_TOKEN_AHEAD) < 50) {
		CHECK(running(), "it ended");
		rack_serve(5);
	}
	CHECK(!answered(1), "%" PRIu64 " tokens were answered that were not sent yet", answered(1));
}

/* ---- changes while it runs ---- */

static void policy(enum bl_policy p)
{
	struct bl_admission_set set = {};
	struct bl_node_ref *refs;
	char said[512];
	struct bl_err err;
	int n, i, home;
	unsigned int k;

	bl_admission_put(&set, BL_AO_POLICY, p);
	n = bl_nodes_find(&refs, 0, &err);
	for (k = 0; k < rack.lab.spec.hosts; k++) {
		home = rack_away(rack_host(k));
		for (i = 0; i < n; i++)
			if (refs[i].role == BL_ROLE_HOST && refs[i].netns_ino == bl_netns_ino())
				CHECK(!bl_admission_change(&refs[i], &set, said, sizeof(said),
							   &err),
				      "%s", err.text);
		rack_back(home);
	}
	free(refs);
}

/* Waits until @n more frames have arrived at h1's application. */
static void until_more_came(uint64_t n)
{
	n += rack_count(rack_host(0), BL_R_TO_APP);
	while (rack_count(rack_host(0), BL_R_TO_APP) < n) {
		CHECK(running(), "the transfer ended before it was told to");
		rack_serve(2);
	}
}

RACK_TEST(policy__changed_in_the_middle)
{
	uint64_t n;

	open_rack(2);
	begin(AF_INET, 1, ENDLESS);
	until_answered(1, 500);
	policy(BL_POLICY_NONE);
	until_more_came(500); /* The token in whose turn the policy changed has been answered. */
	n = answered(1);
	until_more_came(500);
	CHECK(answered(1) == n, "a token was answered under policy none");
	policy(BL_POLICY_TOP);
	until_answered(1, n + 500);
	finish();
}

RACK_TEST(daemons__exchanged)
{
	unsigned int i;

	open_rack(2);
	begin(AF_INET, 1, ENDLESS);
	for (i = 0; i < 2 * rack.lab.nnodes; i++) {
		until_answered(1, 300 * (i + 1));
		rack_upgrade_node(i % rack.lab.nnodes);
	}
	finish(); /* TCP retransmits what was lost while there was no pacer. */
	CHECK(tokens_of(0) >= answered(1), "%" PRIu64 " tokens, %" PRIu64 " answered", tokens_of(0),
	      answered(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes__tcp_v4),
		cmocka_unit_test(bytes__tcp_v6),
		cmocka_unit_test(incast__fifteen_hosts_lose_nothing),
		cmocka_unit_test(las__classes_by_what_was_served),
		cmocka_unit_test(hint__small),
		cmocka_unit_test(hint__of_a_liar),
		cmocka_unit_test(hint__large_v6),
		cmocka_unit_test(hint__by_the_sockets_priority),
		cmocka_unit_test(hint__refused),
		cmocka_unit_test(paper__law),
		cmocka_unit_test(learn__by_the_daemon),
		cmocka_unit_test(receiver__dies_and_comes_back),
		cmocka_unit_test(sender__dies_and_is_forgotten),
		cmocka_unit_test(resend__udp_complete_and_once),
		cmocka_unit_test(resend__sprayed),
		cmocka_unit_test(resend__not_asked_for),
		cmocka_unit_test(clock__sender_ahead_beyond_t),
		cmocka_unit_test(clock__receiver_ahead),
		cmocka_unit_test(policy__changed_in_the_middle),
		cmocka_unit_test(daemons__exchanged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
