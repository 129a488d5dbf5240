// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Forged frames of every opcode, from a host that runs none of our programs, beside a rack under
 * load. Those that bear another's address end at the attacker's own port. Those that bear his own,
 * or one that he has invented, reach the receivers, which believe little of them.
 *
 * Covered elsewhere, where a single frame suffices: verdict and counter of each malformed frame in
 * tests/prog/switch and tests/prog/host; the receiver's arithmetic on sequence numbers, windows and
 * recalls in tests/unit/lib.
 */
#include "tests/net/attacks/attack_rack.h"

#define MS          1000000LL
#define MANY        10000 /* invented addresses */
#define WAIT_TAP_NS 60000000000ULL

enum { H1, H2, H3, R1, R2, R3 }; /* endpoints: best effort, then reliable ones */

/* Sends a DATA in the name of endpoint @from that nothing but its place gives away. */
static void data_as(struct atk *a, unsigned int from, unsigned int to, uint32_t psn)
{
	struct atk_from f = atk_as(from);
	uint8_t body[200], item[ATK_LEN];
	uint64_t ts = atk_now(a);
	struct atk_frame frame;

	tr_fill(item, ATK_LEN, (uint16_t)from, psn, 0);
	atk_udp(a, &frame, &f, to, BL_OP_DATA, ts, ts, psn, body,
		atk_body_data(body, atk_life(from), item, ATK_LEN));
	atk_send(a, &frame);
}

/* One frame, then none: what it breaks stays broken. */
static void one_far_psn(struct atk *a)
{
	data_as(a, H1, H2, atk_psn(H1) + (1U << 30));
	atk_rest(a);
}

/* Two that fit each other, and ever further ones. */
static void far_psns(struct atk *a)
{
	uint32_t psn = atk_psn(H1) + (1U << 30);

	while (atk_pace(a, 2000)) {
		data_as(a, H1, H2, psn);
		data_as(a, H1, H2, psn + 1);
		psn += 1U << 20;
	}
}

RACK_TEST(data__far_psn)
{
	rack_of(&(struct atk_rack){ 0 });
	beside("one DATA of h1 with psn + 2^30, to h2",
	       &(struct atk_case){ .attack = one_far_psn, .reason = "spoofed" });
	beside("pairs of them, 1000 a second",
	       &(struct atk_case){ .attack = far_psns, .reason = "spoofed", .least = 100 });
	rack_judge();
}

/* DATA that bears the number which its receiver waits for, and those around it. */
static void data_next(struct atk *a)
{
	unsigned int i = 0;

	while (atk_pace(a, 2000)) {
		data_as(a, H3, H2, atk_psn(H3) + i % 8);
		i++;
	}
}

/* Only one of the two addresses is false. */
static void half_forged(struct atk *a)
{
	unsigned int i = 0;

	while (atk_pace(a, 1000)) {
		struct atk_from f = atk_as(H1), own = atk_nobody(a, 1);
		uint8_t body[200], item[ATK_LEN];
		struct atk_frame frame;
		uint64_t ts = atk_now(a);

		if (i & 1)
			memcpy(f.mac, own.mac, 6); /* h1's IP address, the attacker's MAC address */
		else
			memcpy(f.ip, own.ip, 16); /* the other way round */
		tr_fill(item, ATK_LEN, H1, i, 0);
		atk_udp(a, &frame, &f, H2, BL_OP_DATA, ts, ts, atk_psn(H1) + i % 4, body,
			atk_body_data(body, atk_life(H1), item, ATK_LEN));
		atk_send(a, &frame);
		i++;
	}
}

RACK_TEST(data__in_anothers_name)
{
	rack_of(&(struct atk_rack){ 0 });
	beside("DATA in h3's name with the next numbers, to h2",
	       &(struct atk_case){ .attack = data_next, .reason = "spoofed", .least = 100 });
	beside("h1's IP address behind h4's MAC address, and the other way round",
	       &(struct atk_case){ .attack = half_forged, .reason = "spoofed", .least = 100 });
	rack_judge();
}

/* Frees h1's window, takes it away, and denies what was delivered. */
static void credits(struct atk *a)
{
	struct atk_from f = atk_as(H2);
	struct atk_frame frame;
	uint8_t body[64];
	unsigned int i = 0;

	while (atk_pace(a, 1000)) {
		uint32_t psn = atk_psn(H1);
		uint32_t len = i & 1 ? atk_body_credit(body, psn, atk_life(H1), 1)
				     : atk_body_credit(body, psn + 200, atk_life(H1), 65535);

		atk_udp(a, &frame, &f, H1, BL_OP_CREDIT, 0, atk_now(a), 0, body, len);
		atk_send(a, &frame);
		i++;
	}
}

static void naks(struct atk *a)
{
	struct atk_from f = atk_as(H2);
	struct atk_frame frame;
	uint8_t body[64];

	while (atk_pace(a, 1000)) {
		uint32_t psn = atk_psn(H1);

		atk_udp(a, &frame, &f, H1, BL_OP_NAK, 0, atk_now(a), 0, body,
			atk_body_nak(body, psn - 8, 16, atk_life(H1),
				     (uint8_t)(1 + t_below(&a->seed, BL_NAK_LEFT))));
		atk_send(a, &frame);
	}
}

RACK_TEST(control__credits_and_naks)
{
	rack_of(&(struct atk_rack){ 0 });
	beside("CREDITs in h2's name, of 1 frame and of 65535, to h1",
	       &(struct atk_case){ .attack = credits, .reason = "spoofed", .least = 100 });
	beside("NAKs in h2's name, of everything that h1 has outstanding",
	       &(struct atk_case){ .attack = naks, .reason = "spoofed", .least = 100 });
	rack_judge();
}

/* A PROBE from each of MANY invented addresses, as fast as it goes. */
static void probes(struct atk *a)
{
	struct atk_frame frame;
	uint8_t body[8];
	uint32_t i;

	for (i = 0; i < MANY && atk_pace(a, 50); i++) {
		struct atk_from f = atk_nobody(a, i);

		atk_udp(a, &frame, &f, H2, BL_OP_PROBE, 0, atk_now(a), 0, body,
			atk_body_probe(body, (uint16_t)i));
		atk_send(a, &frame);
	}
	atk_rest(a);
}

/* Four FRAGs from each, which announce 1 MiB each. */
static void frags(struct atk *a)
{
	struct atk_frame frame;
	uint8_t body[200];
	uint32_t i;

	for (i = 0; i < 4 * MANY && atk_pace(a, 50); i++) {
		struct atk_from f = atk_nobody(a, i / 4);

		atk_udp(a, &frame, &f, H2, BL_OP_FRAG, 0, atk_now(a), i % 4, body,
			atk_body_frag(body, (uint16_t)i, i, 0, BL_MSG_MAX));
		atk_send(a, &frame);
	}
	atk_rest(a);
}

/* The same from other ports of the attacker's own address, of which a port has 256. */
static void own_ports(struct atk *a)
{
	struct atk_from f = atk_nobody(a, 1);
	struct atk_frame frame;
	uint8_t body[200];
	uint32_t i = 0;

	lab_host_addr(&rack.lab.nodes[rack_host(ATK_ME)], AF_INET, f.ip);
	while (atk_pace(a, 200)) {
		f.port = (uint16_t)(BL_PORT_BASE + i / 4 % BL_PORT_COUNT);
		atk_udp(a, &frame, &f, H2, BL_OP_FRAG, 0, atk_now(a), i % 4, body,
			atk_body_frag(body, (uint16_t)(i / 4 / BL_PORT_COUNT), i, 0, BL_MSG_MAX));
		atk_send(a, &frame);
		i++;
	}
}

RACK_TEST(strangers__many)
{
	rack_of(&(struct atk_rack){ 0 });
	beside("a PROBE from each of 10 000 invented addresses, to h2",
	       &(struct atk_case){ .attack = probes,
				   .reason = "spoofed",
				   .least = 1000,
				   .held_ms = ATK_HELD_MS });
	beside("FRAGs from each that announce 4 MiB", &(struct atk_case){ .attack = frags,
									  .reason = "spoofed",
									  .least = 1000,
									  .least_ms = 4000,
									  .held_ms = ATK_HELD_MS });
	rack_judge();
}

/* Nothing of this is forged, so it arrives: here the receiver's own bounds count. */
RACK_TEST(strangers__own_address)
{
	rack_of(&(struct atk_rack){ 0 });
	beside("FRAGs from 256 ports of h4, always of new incarnations",
	       &(struct atk_case){ .attack = own_ports, .held_ms = ATK_HELD_MS });
	rack_judge();
}

/* Frames of the reliable stream in the name of R1, with which a commit could be forged or undone.
 */
static void reliable_as(struct atk *a)
{
	struct atk_from f = atk_as(R1), r = atk_as(R2);
	struct atk_frame frame;
	uint8_t body[200];
	unsigned int i = 0;

	while (atk_pace(a, 500)) {
		uint16_t own = atk_life(R1), life = atk_life(R2);
		uint32_t psn = atk_psn(R1);
		uint64_t now = atk_now(a);

		switch (i++ % 6) {
		case 0: /* removes what comes next */
			atk_udp(a, &frame, &f, R2, BL_OP_RECALL, 0, now, psn, body,
				atk_body_recall(body, own, life, 512, 0));
			break;
		case 1: /* the same with a timestamp that may be one */
			atk_udp(a, &frame, &f, R2, BL_OP_RECALL, 0, now, psn - 2, body,
				atk_body_recall(body, own, life, 4, now - 10 * MS));
			break;
		case 2: /* far beyond the window */
			atk_udp(a, &frame, &f, R2, BL_OP_PREP, now, now, psn + (1U << 30), body,
				atk_body_prep(body, own, psn, life));
			break;
		case 3: /* the next one, with other contents */
			atk_udp(a, &frame, &f, R2, BL_OP_PREP, now, now, psn, body,
				atk_body_prep(body, own, 3 * psn, life));
			break;
		case 4: /* the receiver's answer: it is stored, though it is not */
			atk_udp(a, &frame, &r, R1, BL_OP_ACK, now, now - BL_TS_OLD, psn, body,
				atk_body_prep(body, own, 3 * psn, life) - 88);
			break;
		default: /* and its window: none, or far ahead */
			atk_udp(a, &frame, &r, R1, BL_OP_WINDOW, 0, now, 0, body,
				atk_body_window(body, i & 8 ? psn : psn + 1000, own, 1, life));
			break;
		}
		atk_send(a, &frame);
	}
}

/* One RECALL, and one PREP, as in the table of the issue. */
static void one_recall(struct atk *a)
{
	struct atk_from f = atk_as(R1);
	struct atk_frame frame;
	uint8_t body[200];

	atk_udp(a, &frame, &f, R2, BL_OP_RECALL, 0, atk_now(a), atk_psn(R1), body,
		atk_body_recall(body, atk_life(R1), atk_life(R2), 512, 0));
	atk_send(a, &frame);
	atk_rest(a);
}

static void one_prep(struct atk *a)
{
	struct atk_from f = atk_as(R1);
	struct atk_frame frame;
	uint8_t body[200];

	atk_udp(a, &frame, &f, R2, BL_OP_PREP, atk_now(a), atk_now(a), 1U << 30, body,
		atk_body_prep(body, atk_life(R1), 0, atk_life(R2)));
	atk_send(a, &frame);
	atk_rest(a);
}

RACK_TEST(reliable__in_anothers_name)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	beside("one RECALL of 512 frames",
	       &(struct atk_case){ .attack = one_recall, .reason = "spoofed" });
	beside("one PREP with psn 2^30",
	       &(struct atk_case){ .attack = one_prep, .reason = "spoofed" });
	beside("RECALL, PREP, ACK and WINDOW of an endpoint, in its name",
	       &(struct atk_case){ .attack = reliable_as, .reason = "spoofed", .least = 100 });
	rack_judge();
}

/*
 * One frame that bears his own address, and silence. Nobody has heard a beacon of his, so the
 * switch does not know which node has joined there and died.
 */
static void one_own_frame(struct atk *a)
{
	struct atk_from f = atk_nobody(a, 1);
	struct atk_frame frame;
	uint8_t body[8];

	lab_host_addr(&rack.lab.nodes[rack_host(ATK_ME)], AF_INET, f.ip);
	atk_udp(a, &frame, &f, R2, BL_OP_PROBE, 0, atk_now(a), 0, body, atk_body_probe(body, 7));
	atk_send(a, &frame);
	atk_rest(a);
}

RACK_TEST(reliable__no_beacon)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	beside("one PROBE of his own, and silence", &(struct atk_case){ .attack = one_own_frame,
									.held_ms = ATK_HELD_MS,
									.least_ms = 3000 });
	rack_judge();
}

/* Every opcode byte there is, in the name of each host and of nobody, with bodies of dice. */
static void every_opcode(struct atk *a)
{
	uint8_t body[1400];
	struct atk_frame frame;
	uint32_t i = 0, k;

	while (atk_pace(a, 400)) {
		unsigned int from = t_below(&a->seed, atk_workers),
			     to = t_below(&a->seed, atk_workers);
		struct atk_from f = i % 3 ? atk_as(from) : atk_nobody(a, i % 8);
		uint32_t len = t_below(&a->seed, i % 5 ? 64 : sizeof(body));
		uint64_t ts = atk_now(a) - t_below(&a->seed, 1000000);

		for (k = 0; k < len; k++)
			body[k] = (uint8_t)t_rand(&a->seed);
		if (i & 1)
			atk_put16(body, atk_life(from));
		atk_udp(a, &frame, &f, to, BL_OP_DATA, i & 2 ? ts : 0, ts,
			atk_psn(from) + t_below(&a->seed, 64), body, len);
		frame.b[14 + 20 + 8 + offsetof(struct bl_hdr, opcode)] =
			i & 4 ? BL_OPCODE_BYTE(1 + t_below(&a->seed, BL_OP_LIMIT - 1))
			      : (uint8_t)t_rand(&a->seed);
		atk_send(a, &frame);
		i++;
	}
}

RACK_TEST(opcodes__every_one)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	beside("every opcode with forged and invented sources",
	       &(struct atk_case){ .attack = every_opcode,
				   .reason = "spoofed",
				   .least = 100,
				   .least_ms = 3000 });
	rack_judge();
}

/* Good frames of his own with one thing wrong, and frames that end too early. */
static void malformed(struct atk *a)
{
	struct atk_frame frame;
	uint8_t body[200], item[ATK_LEN] = { 0 };
	uint32_t i = 0;

	while (atk_pace(a, 400)) {
		struct atk_from f = atk_nobody(a, i % 4);
		uint8_t *ip = frame.b + 14;

		atk_udp(a, &frame, &f, t_below(&a->seed, 3), BL_OP_DATA, atk_now(a), atk_now(a), i,
			body, atk_body_data(body, (uint16_t)i, item, ATK_LEN));
		switch (i++ % 9) {
		case 0:
			frame.len = 14 + t_below(&a->seed, frame.len - 14);
			break;
		case 1:
			ip[0] = (uint8_t)(0x40 | t_below(&a->seed, 5));
			break;
		case 2:
			ip[0] = 0x46;
			break;
		case 3:
			ip[6] = 0x20; /* more fragments */
			break;
		case 4: /* two VLAN tags */
			memmove(frame.b + 20, frame.b + 12, frame.len - 12);
			frame.len += 8;
			atk_put32(frame.b + 12, 0x81000001);
			atk_put32(frame.b + 16, 0x81000002);
			break;
		case 5:
			atk_put16(ip + 24, t_below(&a->seed, 65536)); /* UDP length */
			break;
		case 6:
			atk_put16(ip + 2, t_below(&a->seed, 65536)); /* IP length */
			break;
		case 7:
			ip[28 + 22] = (uint8_t)(2 << 5 | BL_OP_DATA); /* version */
			break;
		default:
			ip[28 + 23] = BL_F_LANES(2) | 5; /* flags */
			break;
		}
		atk_send(a, &frame);
	}
}

RACK_TEST(frames__malformed)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	beside("malformed frames", &(struct atk_case){ .attack = malformed,
						       .reason = "short bad_length bad_ihl "
								 "ip_options fragment "
								 "double_tag bad_version bad_flags",
						       .least = 1000,
						       .least_ms = 3000 });
	rack_judge();
}

/* Promises with a beacon that nothing below now will follow, and sends that. */
static void below_the_promise(struct atk *a)
{
	struct atk_from f = atk_nobody(a, 1);
	uint8_t body[200], item[ATK_LEN] = { 0 };
	struct atk_frame frame;
	uint32_t psn = 0;

	lab_host_addr(&rack.lab.nodes[rack_host(ATK_ME)], AF_INET, f.ip);
	while (atk_pace(a, 1000)) {
		uint64_t now = atk_now(a);

		atk_beacon(a, now, now);
		atk_udp(a, &frame, &f, psn % 3, BL_OP_DATA, now - 1000 * MS, now, psn / 3, body,
			atk_body_data(body, 77, item, ATK_LEN));
		atk_send(a, &frame);
		psn++;
	}
}

RACK_TEST(data__below_the_promise)
{
	rack_of(&(struct atk_rack){ 0 });
	beside("a barrier of now, and messages of a second ago",
	       &(struct atk_case){ .attack = below_the_promise,
				   .reason = "promise_broken",
				   .least = 100,
				   .held_ms = ATK_HELD_MS });
	rack_judge();
}

/*
 * A recording of what h1 sends, taken at its cable, from another port. The recording is made before
 * the attack by tap().
 */
static struct atk_frame *tape;
static uint32_t tape_len;

static void tap(void)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	uint64_t end = t_mono() + WAIT_TAP_NS;
	int home, fd;

	tape = tr_map(ATK_KEEP * sizeof(*tape));
	home = rack_away(rack_host(0));
	at.sll_ifindex = (int)if_nametoindex("eth0");
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	CHECK(fd >= 0 && !bind(fd, (void *)&at, sizeof(at)), "%s", strerror(errno));
	rack_back(home);
	while (tape_len < ATK_KEEP) {
		struct atk_frame *f = &tape[tape_len];
		ssize_t n = recv(fd, f->b, sizeof(f->b), MSG_DONTWAIT);

		CHECK(t_mono() < end, "h1 sends too little: %u frames", tape_len);
		if (n <= 0) {
			tr_pass(1);
			continue;
		}
		f->len = (uint32_t)n;
		tape_len += n > 66 && !memcmp(f->b + 6, atk_mac(0), 6) && f->b[12] == 8;
	}
	close(fd);
}

static void replay(struct atk *a)
{
	uint32_t i = 0;

	while (atk_pace(a, 1000))
		atk_send(a, &tape[i++ % tape_len]);
}

RACK_TEST(frames__replayed)
{
	rack_of(&(struct atk_rack){ .reliable = true });
	tap();
	beside("what h1 has sent, from h4's port",
	       &(struct atk_case){ .attack = replay, .reason = "spoofed", .least = 100 });
	rack_judge();
}

/* Well-formed frames of his own address that nobody asked for. */
static void flood(struct atk *a)
{
	struct atk_from f = atk_nobody(a, 1);
	uint8_t body[200];
	struct atk_frame frame;
	uint32_t i = 0;

	lab_host_addr(&rack.lab.nodes[rack_host(ATK_ME)], AF_INET, f.ip);
	while (atk_pace(a, 50)) {
		atk_udp(a, &frame, &f, i % 3, i % 2 ? BL_OP_PROBE : BL_OP_OPEN, 0, atk_now(a), i,
			body, atk_body_probe(body, (uint16_t)(i / 3)));
		atk_send(a, &frame);
		i++;
	}
}

RACK_TEST(control__flood)
{
	rack_of(&(struct atk_rack){ 0 });
	beside("20 000 PROBEs and OPENs a second from h4",
	       &(struct atk_case){ .attack = flood,
				   .reason = "control_flood",
				   .least = 1000,
				   .held_ms = ATK_HELD_MS });
	rack_judge();
}

RACK_TEST(data__far_psn_leaf_spine)
{
	rack_of(&(struct atk_rack){ .leaf_spine = true });
	beside("DATA of h1 with psn + 2^30 and + 1, to h2, from another leaf",
	       &(struct atk_case){ .attack = far_psns, .reason = "spoofed", .least = 100 });
	rack_judge();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data__far_psn),
		cmocka_unit_test(data__far_psn_leaf_spine),
		cmocka_unit_test(data__in_anothers_name),
		cmocka_unit_test(control__credits_and_naks),
		cmocka_unit_test(strangers__many),
		cmocka_unit_test(strangers__own_address),
		cmocka_unit_test(reliable__in_anothers_name),
		cmocka_unit_test(reliable__no_beacon),
		cmocka_unit_test(opcodes__every_one),
		cmocka_unit_test(frames__malformed),
		cmocka_unit_test(data__below_the_promise),
		cmocka_unit_test(frames__replayed),
		cmocka_unit_test(control__flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
