// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * controller/forward.c: which frames the controller forwards from host to host, and how it counts
 * the others. The nodes are those of recover_rack.h, in the state machine itself; a session is only
 * a pointer and a number of waiting bytes here.
 */
#include "tests/unit/controller/recover/recover_rack.h"

#include "proto/forward_msg.h"
#include "controller/forward.h"

static size_t waiting;     /* bytes that wait in the receiver's session */
static unsigned int sends; /* frames that were sent */
static const struct bl_session *sent_to;
static uint8_t sent[16384];
static size_t sent_len;

/* Stand for the functions of proto/session.c that forwarding calls (WRAP_test_ctl_forward). */
size_t __wrap_bl_session_waiting(const struct bl_session *s);
bool __wrap_bl_session_send(struct bl_session *s, const void *body, size_t len);

size_t __wrap_bl_session_waiting(const struct bl_session *s)
{
	assert_non_null(s);
	return waiting;
}

bool __wrap_bl_session_send(struct bl_session *s, const void *body, size_t len)
{
	assert_true(len <= sizeof(sent));
	memcpy(sent, body, len);
	sent_len = len;
	sent_to = s;
	sends++;
	return true;
}

static struct bl_ctl ctl;
static struct peer peers[5]; /* of nodes 9, 1, 2, 3, 4, in this order */
static uint8_t from[16], to[16], frame[BL_FORWARD_MAX + 1];
static Bl__Forward m;

static struct peer *peer_number(uint32_t node)
{
	return &peers[node == 9 ? 0 : node];
}

static int rack_setup(void **state)
{
	static const uint32_t nodes[] = { 9, 1, 2, 3, 4 };

	(void)state;
	memset(&ctl, 0, sizeof(ctl));
	ctl.rec = rack(3);
	ctl.elected = 5;
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		peers[i] = (struct peer){ .next = ctl.peers,
					  .c = &ctl,
					  .node = nodes[i],
					  .session = (struct bl_session *)&peers[i] };
		ctl.peers = &peers[i];
	}
	waiting = 0;
	sends = 0;
	sent_to = NULL;
	memcpy(from, addr_of[1][0], 16);
	memcpy(to, addr_of[2][0], 16);
	memset(frame, 0x5a, sizeof(frame));
	frame[offsetof(struct bl_hdr, opcode)] = BL_OPCODE_BYTE(BL_OP_PREP);
	bl__forward__init(&m);
	m.to = (ProtobufCBinaryData){ 16, to };
	m.from = (ProtobufCBinaryData){ 16, from };
	m.port = 61697;
	m.sport = 61696;
	m.frame = (ProtobufCBinaryData){ 100, frame };
	return 0;
}

static int rack_teardown(void **state)
{
	(void)state;
	bl_recover_free(ctl.rec);
	return 0;
}

/*
 * Hands over one frame from host 1. It has to be counted as @what and as nothing else, and sent
 * only if it is CTL_FORWARDED.
 */
static void goes(enum ctl_count what)
{
	uint64_t counts[CTL_COUNT];
	unsigned int were = sends;

	memcpy(counts, ctl.counts, sizeof(counts));
	counts[what]++;
	assert_int_equal(ctl_forward(peer_number(1), &m), what != CTL_FORWARD_BAD);
	assert_memory_equal(ctl.counts, counts, sizeof(counts));
	assert_int_equal(sends, were + (what == CTL_FORWARDED));
}

static void forward__to_the_receiver_and_with_the_epoch(void **state)
{
	Bl__ToAgent *said;

	(void)state;
	goes(CTL_FORWARDED);
	assert_ptr_equal(sent_to, peer_number(2)->session);
	said = bl__to_agent__unpack(NULL, sent_len, sent);
	assert_non_null(said);
	assert_int_equal(said->epoch, 5);
	assert_int_equal(said->what_case, BL__TO_AGENT__WHAT_FORWARD);
	assert_int_equal(said->forward->frame.len, 100);
	assert_memory_equal(said->forward->frame.data, frame, 100);
	assert_memory_equal(said->forward->to.data, to, 16);
	assert_int_equal(said->forward->port, 61697);
	assert_int_equal(said->forward->sport, 61696);
	bl__to_agent__free_unpacked(said, NULL);
}

/* What is not a frame of the reliable stream ends the session of its sender. */
static void forward__no_frame(void **state)
{
	static const struct {
		const char *what;
		size_t to, from, len;
		uint32_t port, sport;
		uint8_t opcode;
		bool good;
	} t[] = {
		{ "short address of the receiver", 15, 16, 100, 1, 1, BL_OPCODE_BYTE(BL_OP_PREP),
		  false },
		{ "long address of the sender", 16, 17, 100, 1, 1, BL_OPCODE_BYTE(BL_OP_PREP),
		  false },
		{ "no port", 16, 16, 100, 0, 1, BL_OPCODE_BYTE(BL_OP_PREP), false },
		{ "port too large", 16, 16, 100, 65536, 1, BL_OPCODE_BYTE(BL_OP_PREP), false },
		{ "largest ports", 16, 16, 100, 65535, 65535, BL_OPCODE_BYTE(BL_OP_PREP), true },
		{ "sender's port too large", 16, 16, 100, 1, 65536, BL_OPCODE_BYTE(BL_OP_PREP),
		  false },
		{ "sender's port 0", 16, 16, 100, 1, 0, BL_OPCODE_BYTE(BL_OP_PREP), false },
		{ "shorter than a header", 16, 16, sizeof(struct bl_hdr) - 1, 1, 1,
		  BL_OPCODE_BYTE(BL_OP_PREP), false },
		{ "a header alone", 16, 16, sizeof(struct bl_hdr), 1, 1, BL_OPCODE_BYTE(BL_OP_PREP),
		  true },
		{ "as long as may be", 16, 16, BL_FORWARD_MAX, 1, 1, BL_OPCODE_BYTE(BL_OP_PREP),
		  true },
		{ "too long", 16, 16, BL_FORWARD_MAX + 1, 1, 1, BL_OPCODE_BYTE(BL_OP_PREP), false },
		{ "the first of the stream's", 16, 16, 100, 1, 1, BL_OPCODE_BYTE(BL_OP_PREP),
		  true },
		{ "one before it", 16, 16, 100, 1, 1, BL_OPCODE_BYTE(BL_OP_PREP - 1), false },
		{ "the last of the stream's", 16, 16, 100, 1, 1, BL_OPCODE_BYTE(BL_OP_RECALLED),
		  true },
		{ "one after it", 16, 16, 100, 1, 1, BL_OPCODE_BYTE(BL_OP_RECALLED + 1), false },
		{ "another version", 16, 16, 100, 1, 1, (BL_VERSION + 1) << 5 | BL_OP_PREP, false },
	};
	uint8_t longer[17] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		if (i) {
			rack_teardown(state);
			rack_setup(state);
		}
		print_message("%s\n", t[i].what);
		memcpy(longer, from, 16);
		m.to.len = t[i].to;
		m.from = (ProtobufCBinaryData){ t[i].from, longer };
		m.port = t[i].port;
		m.sport = t[i].sport;
		m.frame.len = t[i].len;
		frame[offsetof(struct bl_hdr, opcode)] = t[i].opcode;
		goes(t[i].good ? CTL_FORWARDED : CTL_FORWARD_BAD);
	}
}

/*
 * A host sends for its own addresses only, and for all of them; a session of an unknown node for
 * none.
 */
static void forward__from_ones_own_addresses(void **state)
{
	static const uint8_t two[2][16] = { { 10, 1 }, { 10, 1, 1 } };
	struct bl_recover_hello h = hello_host(1);

	(void)state;
	from[1] = 3;
	goes(CTL_FORWARD_FORGED);
	from[1] = 7;
	goes(CTL_FORWARD_FORGED);
	memcpy(from, two[1], 16);
	goes(CTL_FORWARD_FORGED);
	h.addr = two;
	h.naddrs = 2;
	assert_int_equal(bl_recover_hello(ctl.rec, MS, &h), BL_RECOVER_OK);
	bl_recover_saved_node(ctl.rec, MS, 1);
	outs(ctl.rec);
	bar_all(ctl.rec, MS);
	goes(CTL_FORWARDED);
	from[2] = 0;
	goes(CTL_FORWARDED);
	peer_number(1)->node = 77;
	goes(CTL_FORWARD_FORGED);
}

static void forward__for_an_address_that_no_host_has(void **state)
{
	static const uint8_t switches[1][16] = { { 10, 9 } };
	struct bl_recover_hello h = hello_switch(3);

	(void)state;
	to[1] = 9;
	goes(CTL_FORWARD_UNKNOWN);
	h.addr = switches;
	h.naddrs = 1;
	bl_recover_hello(ctl.rec, MS, &h);
	bl_recover_saved_node(ctl.rec, MS, 9);
	outs(ctl.rec);
	bar_all(ctl.rec, MS);
	goes(CTL_FORWARD_UNKNOWN);
}

/* Once a host's link is reported silent, no frame is forwarded to it or from it. */
static void forward__who_fails_is_not_served(void **state)
{
	(void)state;
	host_2_fails(ctl.rec);
	goes(CTL_FORWARD_FAILED);
	/* the other direction, to a correct host */
	memcpy(from, addr_of[2][0], 16);
	memcpy(to, addr_of[3][0], 16);
	peer_number(1)->node = 2;
	goes(CTL_FORWARD_FAILED);
}

/* A host without a session, or before its WELCOME, counts as away; the sender retransmits. */
static void forward__without_a_session(void **state)
{
	struct bl_recover_hello h = hello_host(2);

	(void)state;
	peer_number(2)->node = 0;
	goes(CTL_FORWARD_AWAY);
	peer_number(2)->node = 2;
	goes(CTL_FORWARDED);
	assert_int_equal(bl_recover_bye(ctl.rec, MS, 2), BL_RECOVER_OK);
	goes(CTL_FORWARD_AWAY);
	assert_int_equal(bl_recover_hello(ctl.rec, 2 * MS, &h), BL_RECOVER_OK);
	outs(ctl.rec);
	goes(CTL_FORWARDED);
	/* a new host is welcomed when it is saved */
	h = hello_host(4);
	assert_int_equal(bl_recover_hello(ctl.rec, 3 * MS, &h), BL_RECOVER_OK);
	outs(ctl.rec);
	memcpy(to, addr_of[4][0], 16);
	goes(CTL_FORWARD_AWAY);
	bl_recover_saved_node(ctl.rec, 3 * MS, 4);
	outs(ctl.rec);
	goes(CTL_FORWARDED);
}

/*
 * The switch has not confirmed its list of barred ports: it is not certain that C waits for the
 * sender.
 */
static void forward__only_who_is_waited_for(void **state)
{
	struct bl_recover_hello h = hello_switch(3);

	(void)state;
	assert_int_equal(bl_recover_hello(ctl.rec, MS, &h), BL_RECOVER_OK);
	bl_recover_saved_node(ctl.rec, MS, 9);
	outs(ctl.rec);
	goes(CTL_FORWARD_AWAY);
	bar_all(ctl.rec, MS);
	goes(CTL_FORWARDED);
}

static void forward__too_much_waits(void **state)
{
	(void)state;
	waiting = CTL_FORWARD_WAIT;
	goes(CTL_FORWARDED);
	waiting = CTL_FORWARD_WAIT + 1;
	goes(CTL_FORWARD_FULL);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, rack_setup, rack_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(forward__to_the_receiver_and_with_the_epoch),
		CASE(forward__no_frame),
		CASE(forward__from_ones_own_addresses),
		CASE(forward__for_an_address_that_no_host_has),
		CASE(forward__who_fails_is_not_served),
		CASE(forward__without_a_session),
		CASE(forward__only_who_is_waited_for),
		CASE(forward__too_much_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
