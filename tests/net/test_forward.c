// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Controller forwarding: two correct hosts that hear each other's barriers, but between which frames of the reliable stream do not pass. They are dropped before a host's XDP program, by source address, and by opcode or all of
 * them; beacons are not. With a controller every message is delivered once, in order; without one none of them is, and the counters say which way they came.
 */
#include "reliable.h"
#include "bpf/wire_core.h"
#include "controller.h"
#include "loader/node_agent.h"

#define ANSWER_MS 20000
#define WAIT_MS	  60000
#define ANY	  0 /* opcode: all that is UDP */

/* Where in a frame is what; @addr: of the source address, whose first and last four bytes tell hosts apart (IPv4: both the same). */
static const struct place {
	int eth, proto, addr[2], l4;
} places[] = { { BL_ETH_IP, 14 + 9, { 14 + 12, 14 + 12 }, 14 + 20 }, { BL_ETH_IP6, 14 + 6, { 14 + 8, 14 + 8 + 12 }, 14 + 40 } };

/* An XDP program that drops UDP frames with @op from a source address with the words @from, in network order, and hands the others to what is behind @next. */
static int filter(const struct place *at, const uint32_t from[2], int op, int next)
{
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = BPF_XDP); /* as in dropper() */
#define ELSE(i) (17 - (i)) /* from the instruction before @i to the tail call */
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_1 },
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_1, .off = offsetof(struct xdp_md, data) },
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_3, .src_reg = BPF_REG_1, .off = offsetof(struct xdp_md, data_end) },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_4, .src_reg = BPF_REG_2 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_4, .imm = at->l4 + 8 + (int)sizeof(struct bl_hdr) },
		{ .code = BPF_JMP | BPF_JGT | BPF_X, .dst_reg = BPF_REG_4, .src_reg = BPF_REG_3, .off = ELSE(6) },
		/* 6: IP of that version, UDP, from there */
		{ .code = BPF_LDX | BPF_MEM | BPF_H, .dst_reg = BPF_REG_5, .src_reg = BPF_REG_2, .off = 12 },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_5, .imm = BL_BE16(at->eth), .off = ELSE(8) },
		{ .code = BPF_LDX | BPF_MEM | BPF_B, .dst_reg = BPF_REG_5, .src_reg = BPF_REG_2, .off = (int16_t)at->proto },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_5, .imm = BL_UDP, .off = ELSE(10) },
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_5, .src_reg = BPF_REG_2, .off = (int16_t)at->addr[0] },
		{ .code = BPF_JMP32 | BPF_JNE | BPF_K, .dst_reg = BPF_REG_5, .imm = (int32_t)from[0], .off = ELSE(12) },
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_5, .src_reg = BPF_REG_2, .off = (int16_t)at->addr[1] },
		{ .code = BPF_JMP32 | BPF_JNE | BPF_K, .dst_reg = BPF_REG_5, .imm = (int32_t)from[1], .off = ELSE(14) },
		/* 14: the opcode */
		{ .code = BPF_LDX | BPF_MEM | BPF_B, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_2, .off = (int16_t)(at->l4 + 8 + (int)offsetof(struct bl_hdr, opcode)) },
		{ .code = BPF_JMP | (op == ANY ? BPF_JGE : BPF_JEQ) | BPF_K, .dst_reg = BPF_REG_0, .imm = op == ANY ? 0 : BL_OPCODE_BYTE(op), .off = 7 },
		{ .code = BPF_JMP | BPF_JA, .off = 0 },
		/* 17: to the host's own */
		T_GO_ON(next),
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 }, /* 23: XDP_DROP */
		{ .code = BPF_JMP | BPF_EXIT },
	};
#undef ELSE
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "t_filter", "GPL", code, sizeof(code) / sizeof(code[0]), &o);

	CHECK(fd >= 0, "the dropping program: %s", strerror(errno));
	return fd;
}

/* From now on nothing with @op that @id sends comes to @host. */
static void part(unsigned int id, unsigned int host, int op)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const uint8_t *ip = tr_sh->node[id].addr.ip;
	bool v4 = !memcmp(ip, mapped, sizeof(mapped));
	struct behind b = behind_open(host);
	uint32_t from[2];

	memcpy(&from[0], ip + (v4 ? 12 : 0), 4);
	memcpy(&from[1], ip + 12, 4);
	close(behind_put(b, filter(&places[!v4], from, op, b.next)));
}

static void say_all(void)
{
	fprintf(stderr, "%s\n", ask());
	tr_dump();
}

static uint64_t said(const char *name)
{
	json_t *o = json_loads(ask(), 0, NULL);
	uint64_t n = (uint64_t)json_integer_value(json_object_get(json_object_get(o, "counts"), name));

	json_decref(o);
	return n;
}

static void open_rack(unsigned int hosts, bool controller)
{
	if (controller)
		ctl_start(ANSWER_MS);
	rack.lab.spec.hosts = hosts;
	rack.tweak = controller ? name_controller : NULL;
	rack_open();
	if (controller && !tr_until(all_ok, WAIT_MS))
		FAIL("not all nodes are there: %s", ask());
}

static void add(unsigned int hosts, struct tr_cfg cfg)
{
	unsigned int i;

	cfg.fn = tr_mix;
	cfg.reliable = true;
	cfg.family = cfg.family ? cfg.family : AF_INET;
	for (i = 0; i < hosts; i++) {
		cfg.host = i;
		tr_add(&cfg);
	}
	rack_last_words = say_all;
}

static void judge(unsigned int hosts)
{
	unsigned int i;

	tr_stop();
	tr_judge(~0ULL, ~0ULL);
	for (i = 0; i < hosts; i++)
		CHECK(!tr_sh->node[i].nfailed && !tr_sh->node[i].nproc_failed, "endpoint %u: %u messages failed, %u processes", i, tr_sh->node[i].nfailed, tr_sh->node[i].nproc_failed);
	fprintf(stderr, "  forwarded: %" PRIu64 " handed over, %" PRIu64 " by the controller, %" PRIu64 " taken in\n", TR_SUM(forwarded), said("forwarded"), rack_count_all(BL_R_BY_CONTROLLER));
	CHECK(said("forwarded") && TR_SUM(forwarded), "nothing was forwarded: this proves nothing");
}

/* Prepares of one direction are lost: they come by way of the controller, their ACKs as well. */
static void one_direction(int family)
{
	open_rack(3, true);
	add(3, (struct tr_cfg){ .scatterings = 12, .gap_us = 20000, .len = 300, .fan = 3, .quiet_ms = 30000, .family = family });
	part(0, 1, BL_OP_PREP);
	tr_go();
	tr_wait_done(100000);
	judge(3);
	CHECK(rack_count(rack_host(1), BL_R_BY_CONTROLLER), "h2 got nothing by way of the controller");
	CHECK(rack_count(rack_host(0), BL_R_BY_CONTROLLER), "h1 got no ACK by way of the controller");
	CHECK(!rack_count(rack_host(2), BL_R_BY_CONTROLLER), "h3, whom all can reach, got something by way of the controller");
	CHECK(!tr_sh->node[2].st.forwarded, "h3, who reaches all, had something forwarded");
}

/* Nothing passes between two hosts, from before they first speak: the window is asked for, and told, by way of the controller; large messages, too. */
static void both_directions(int family)
{
	open_rack(3, true);
	add(3, (struct tr_cfg){ .scatterings = 10, .len = 1400, .fan = 3, .items = 2, .big = 30, .quiet_ms = 40000, .family = family });
	part(0, 1, ANY);
	part(1, 0, ANY);
	tr_go();
	tr_wait_done(150000);
	judge(3);
	CHECK(rack_count(rack_host(0), BL_R_BY_CONTROLLER) && rack_count(rack_host(1), BL_R_BY_CONTROLLER), "one of the two got nothing by way of the controller");
	CHECK(!rack_count(rack_host(2), BL_R_BY_CONTROLLER) && !tr_sh->node[2].st.forwarded, "h3, whom all can reach, had something forwarded");
}

RACK_TEST(prepares__of_one_direction)
{
	one_direction(0);
}

RACK_TEST(everything__both_directions)
{
	both_directions(0);
}

RACK_TEST(ipv6__prepares_of_one_direction)
{
	one_direction(AF_INET6);
}

RACK_TEST(ipv6__everything_both_directions)
{
	both_directions(AF_INET6);
}

/* A leaf-spine of two racks with two hosts each: h1 and h2 on one ToR, h3 and h4 on the other. What h1 prepares at h3 is lost. */
RACK_TEST(leaf_spine__prepares_of_one_direction)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	open_rack(4, true);
	add(4, (struct tr_cfg){ .scatterings = 12, .gap_us = 20000, .len = 300, .fan = 4, .quiet_ms = 30000 });
	part(0, 2, BL_OP_PREP);
	tr_go();
	tr_wait_done(100000);
	judge(4);
	CHECK(rack_count(rack_host(2), BL_R_BY_CONTROLLER), "h3 got nothing by way of the controller");
	CHECK(rack_count(rack_host(0), BL_R_BY_CONTROLLER), "h1 got no ACK by way of the controller");
	CHECK(!rack_count(rack_host(1), BL_R_BY_CONTROLLER) && !rack_count(rack_host(3), BL_R_BY_CONTROLLER), "h2 or h4, whom all can reach, got something by way of the controller");
}

/* What docs/controller.md begins with: spines that have lost their routes to a ToR pass barriers on all the same. Nothing else comes from one rack to the other; the way back is whole. */
RACK_TEST(leaf_spine__spines_have_lost_a_route)
{
	unsigned int i;
	int home;

	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	open_rack(4, true);
	add(4, (struct tr_cfg){ .scatterings = 8, .gap_us = 20000, .len = 300, .fan = 4, .quiet_ms = 40000 });
	for (i = 0; i < rack.lab.nnodes; i++) {
		if (rack.lab.nodes[i].kind != LAB_SPINE)
			continue;
		home = rack_away(i);
		CHECK(!system("ip route del 10.77.2.0/24"), "%s: ip route", rack.lab.nodes[i].name);
		rack_back(home);
	}
	tr_go();
	tr_wait_done(150000);
	judge(4);
	for (i = 0; i < 4; i++)
		CHECK(rack_count(rack_host(i), BL_R_BY_CONTROLLER), "h%u got nothing by way of the controller", i + 1);
}

static bool survivors_heard(void)
{
	return TR_LOAD(tr_sh->node[0].nproc_failed) && TR_LOAD(tr_sh->node[1].nproc_failed);
}

/* A process dies, and what was sent to it must be recalled from a host that neither gets RECALL nor could answer it. */
RACK_TEST(recall__by_way_of_the_controller)
{
	struct tr_cfg cfg = { .run_ms = 1500, .gap_us = 300, .len = 300, .quiet_ms = 4000 };
	unsigned int i;

	open_rack(3, true);
	add(3, cfg);
	for (i = 0; i < 3; i++)
		CHECK(!strcmp(tr_sh->node[i].error, ""), "%s", tr_sh->node[i].error);
	/* what comes to h1 from h2, and the other way round */
	part(0, 1, BL_OP_RECALL);
	part(1, 0, BL_OP_RECALLED);
	tr_go();
	tr_pass(400);
	/* from here on h3 acknowledges nothing */
	part(2, 0, BL_OP_ACK);
	tr_pass(100);
	tr_kill(2);
	CHECK(tr_until(survivors_heard, WAIT_MS), "not everybody heard of it");
	CHECK(tr_until(all_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(0, 0); /* what waited for h3 came to nobody */
	for (i = 0; i < 3; i++)
		all_or_none(i, 0x3);
	fprintf(stderr, "  recalls sent %" PRIu64 ", taken out %" PRIu64 ", forwarded %" PRIu64 "\n", TR_SUM(recalls_sent), TR_SUM(recalled), TR_SUM(forwarded));
	CHECK(tr_sh->node[0].st.recalls_sent && tr_sh->node[1].st.recalled, "nothing was recalled: this proves nothing");
	CHECK(said("forwarded"), "nothing was forwarded: this proves nothing");
}

static uint32_t want[2];

static bool go_on(void)
{
	return TR_LOAD(tr_sh->node[0].ngot) >= want[0] && TR_LOAD(tr_sh->node[2].ngot) >= want[1];
}

static void want_more(uint32_t more)
{
	want[0] = TR_LOAD(tr_sh->node[0].ngot) + more;
	want[1] = TR_LOAD(tr_sh->node[2].ngot) + more;
}

/*
 * Frames of h1 do not come to h2, nor can they be forwarded; barriers pass, nobody has failed. What is not acknowledged holds the
 * rack's commit barrier: the receiver is put out after stuck_ms, and the others go on.
 */
RACK_TEST(stuck__one_of_the_two_goes)
{
	struct bl_ctl_cfg c = { .listen = CTL_ADDR, .sqlite = BL_RUN_DIR "/ctl.db", .answer_ms = ANSWER_MS, .stuck_ms = 1500 };
	struct bl_err err;
	unsigned int i;

	CHECK(!bl_iface_up("lo", &err), "%s", err.text);
	ctl = ctl_child(&c);
	rack.lab.spec.hosts = 3;
	rack.tweak = name_controller;
	rack_open();
	if (!tr_until(all_ok, WAIT_MS))
		FAIL("not all nodes are there: %s", ask());
	add(3, (struct tr_cfg){ .until_enough = true, .gap_us = 2000, .len = 300, .quiet_ms = 4000 });
	tr_sh->node[1].may_die = true; /* it gets ESTALE */
	tr_go();
	want_more(50);
	CHECK(tr_until(go_on, WAIT_MS), "nothing is delivered");
	rack.node[rack_host(1)]->relayed_fd = -1;
	part(0, 1, BL_OP_PREP);
	CHECK(tr_until(one_finished, WAIT_MS), "nobody is put out, and all stand still: %s", ask());
	CHECK(strstr(ask(), "\"why\":\"unreachable\""), "somebody else failed: %s", ask());
	want_more(200);
	CHECK(tr_until(go_on, WAIT_MS), "the others do not go on");
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(0, 0);
	for (i = 0; i < 3; i++)
		all_or_none(i, 0x5);
	CHECK(!*tr_sh->node[0].error && !*tr_sh->node[2].error, "%s %s", tr_sh->node[0].error, tr_sh->node[2].error);
	CHECK(*tr_sh->node[1].error, "the one that was put out has not noticed");
}

/* Without a controller what is lost stays lost, and the daemon says so once. */
RACK_TEST(no_controller__is_not_forwarded)
{
	open_rack(2, false);
	add(2, (struct tr_cfg){ .scatterings = 3, .len = 300, .to = 0x2, .quiet_ms = 2500 });
	part(0, 1, BL_OP_PREP);
	tr_go();
	tr_wait_done(WAIT_MS);
	tr_stop();
	CHECK(TR_SUM(forwarded), "nothing was handed over: this proves nothing");
	CHECK(!rack_count_all(BL_R_BY_CONTROLLER), "something was forwarded, by nobody");
	CHECK(!has(1, 0, 0), "it was delivered: it was not lost");
}

static struct bl_forward frame(const uint8_t *body, unsigned int from, unsigned int to)
{
	struct bl_forward f = { .port = tr_sh->node[to].addr.port, .sport = tr_sh->node[from].addr.port, .frame = body, .len = sizeof(struct bl_hdr) + 12 };

	memcpy(f.from, tr_sh->node[from].addr.ip, 16);
	memcpy(f.to, tr_sh->node[to].addr.ip, 16);
	return f;
}

static const char *counted;
static uint64_t more_than;

static const struct bl_forward *offered;

/* Until it was: a session that has just begun takes none. */
static bool was_counted(void)
{
	if (said(counted) > more_than)
		return true;
	bl_node_agent_forward(rack.node[rack_host(0)], offered);
	return false;
}

static void refused(const char *name, const struct bl_forward *f)
{
	uint64_t sent = said("forwarded");

	counted = name;
	more_than = said(name);
	offered = f;
	CHECK(tr_until(was_counted, WAIT_MS), "%s is not counted: %s", name, ask());
	CHECK(said("forwarded") == sent, "%s: it was sent on", name);
	CHECK(tr_until(all_ok, WAIT_MS), "%s: not all nodes are there again", name);
}

static bool h2_failed(void)
{
	return times_said("\"state\":\"failed\"") == 1;
}

/* What the controller does not send on, by name. What is no frame of the reliable stream ends the session of who sends it. */
RACK_TEST(refused__and_counted)
{
	static uint8_t body[BL_FORWARD_MAX + 1];
	struct bl_forward f;
	uint8_t op;

	open_rack(2, true);
	add(2, (struct tr_cfg){ .scatterings = 0, .quiet_ms = 600000 });
	((struct bl_hdr *)body)->opcode = BL_OPCODE_BYTE(BL_OP_RECALLED);
	f = frame(body, 0, 1);
	counted = "forwarded";
	more_than = 0;
	offered = &f;
	CHECK(tr_until(was_counted, WAIT_MS), "a good one is not sent on: %s", ask());
	f.from[15] ^= 1; /* nobody's */
	refused("forward_forged", &f);
	f = frame(body, 1, 0); /* h2's, sent by h1 */
	refused("forward_forged", &f);
	f = frame(body, 0, 1);
	f.to[15] ^= 0x40;
	refused("forward_unknown", &f);
	f = frame(body, 0, 1);
	f.len = sizeof(struct bl_hdr) - 1;
	refused("forward_bad", &f);
	f.len = BL_FORWARD_MAX + 1;
	refused("forward_bad", &f);
	f = frame(body, 0, 1);
	f.port = 0;
	refused("forward_bad", &f);
	f = frame(body, 0, 1);
	for (op = 1; op < BL_OP_LIMIT; op++) {
		if (bl_op_relayed(op))
			continue;
		((struct bl_hdr *)body)->opcode = BL_OPCODE_BYTE(op);
		refused("forward_bad", &f);
	}
	((struct bl_hdr *)body)->opcode = BL_OPCODE_BYTE(BL_OP_PREP);
	tr_sh->node[1].may_die = true;
	/* when its process goes, the host joins anew */
	CHECK(!kill(tr_sh->node[1].pid, SIGSTOP), "%s", strerror(errno));
	rack_link(0, "h2", false);
	CHECK(tr_until(h2_failed, WAIT_MS), "h2 is not announced: %s", ask());
	counted = "forward_failed";
	more_than = 0;
	offered = &f;
	CHECK(tr_until(was_counted, WAIT_MS), "it is sent to who failed: %s", ask());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prepares__of_one_direction),
		cmocka_unit_test(everything__both_directions),
		cmocka_unit_test(ipv6__prepares_of_one_direction),
		cmocka_unit_test(ipv6__everything_both_directions),
		cmocka_unit_test(leaf_spine__prepares_of_one_direction),
		cmocka_unit_test(leaf_spine__spines_have_lost_a_route),
		cmocka_unit_test(recall__by_way_of_the_controller),
		cmocka_unit_test(stuck__one_of_the_two_goes),
		cmocka_unit_test(no_controller__is_not_forwarded),
		cmocka_unit_test(refused__and_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
