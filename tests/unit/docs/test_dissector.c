// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * docs/barline.lua in tshark: a pcapng file with a frame of every opcode, made by the writer of
 * `barline capture`, comes back with the fields and the comments that were written. Frames that are
 * cut at every length, or full of random bytes, are no error of the dissector.
 *
 * tests/net/look/test_capture.c has the same with frames of a real rack.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/capture/pcapng.h"
#include "core/wire_core.h"
#include "tests/command.h"

#define FRAME_MAX 256
#define TS        1000000000123ULL /* of every frame; its barriers are 23 and 123 ns before */
#define TSHARK    "tshark -n -X lua_script:docs/barline.lua -r "

/* Two bytes in front of a frame align its IP header. */
#define FRAME(name)                                                             \
	uint8_t name##_room[FRAME_MAX + 2] __attribute__((aligned(8))) = { 0 }; \
	uint8_t *name = name##_room + 2

static char path[] = "/tmp/barline-dissector-XXXXXX";
static struct pcapng file;
static unsigned int written;

static int set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 || close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

static void begin(void)
{
	memset(&file, 0, sizeof(file));
	written = 0;
	file.f = fopen(path, "w");
	assert_non_null(file.f);
	assert_int_equal(pcapng_section(&file, "Linux", "test"), 0);
	assert_int_equal(pcapng_interface(&file, "h1/eth0/in", "host h1", FRAME_MAX), 0);
	assert_int_equal(pcapng_interface(&file, "h1/eth0/out", "host h1", FRAME_MAX), 0);
}

static void packet(const uint8_t *frame, uint32_t caplen, uint32_t len, const char *comment)
{
	struct pcapng_packet k = { .interface = written % 2,
				   .real_ns = 1700000000000000000ULL + written,
				   .len = len,
				   .caplen = caplen,
				   .data = frame,
				   .dir = written % 2 ? PCAPNG_OUTBOUND : PCAPNG_INBOUND,
				   .comment = comment };

	assert_int_equal(pcapng_packet(&file, &k), 0);
	written++;
}

static void end(void)
{
	assert_int_equal(pcapng_statistics(&file, 0, 1700000000000000000ULL, written, 7, "lost 7"),
			 0);
	pcapng_free(&file);
	assert_int_equal(fclose(file.f), 0);
}

/* Returns what a command prints, which the caller frees. It must be a success. */
#define OUTPUT(...)                                              \
	({                                                       \
		int st_;                                         \
		char *text_ = command_output(&st_, __VA_ARGS__); \
		assert_non_null(text_);                          \
		assert_int_equal(st_, 0);                        \
		text_;                                           \
	})

/* ---- frames ---- */

struct body {
	uint8_t at[128];
	size_t n;
};

static void u8(struct body *b, uint32_t v)
{
	assert_true(b->n < sizeof(b->at));
	b->at[b->n++] = (uint8_t)v;
}

static void u16(struct body *b, uint32_t v)
{
	u8(b, v >> 8);
	u8(b, v & 255);
}

static void u32(struct body *b, uint32_t v)
{
	u16(b, v >> 16);
	u16(b, v & 0xffff);
}

static void zeros(struct body *b, size_t n)
{
	while (n--)
		u8(b, 0);
}

/* Writes the body of each opcode, with values that differ. */
static void make_body(unsigned int op, struct body *b)
{
	b->n = 0;
	switch (op) {
	case BL_OP_DATA:
		u16(b, 0x1111);
		u16(b, 1);
		u16(b, 3);
		u8(b, 'a'), u8(b, 'b'), u8(b, 'c');
		break;
	case BL_OP_FRAG:
		u16(b, 0x2222);
		u16(b, 0);
		u32(b, 77), u32(b, 4000), u32(b, 4002);
		u8(b, 1), u8(b, 2);
		break;
	case BL_OP_CREDIT:
		u32(b, 501);
		u16(b, 0x3333), u16(b, 64);
		u32(b, 0x01020304), u32(b, 0x05060708);
		break;
	case BL_OP_NAK:
		u32(b, 601), u32(b, 2);
		u16(b, 0x4444);
		u8(b, BL_NAK_LOST), u8(b, BL_NAK_WHOLE);
		break;
	case BL_OP_PROBE:
		u16(b, 0x5555);
		u16(b, 0);
		u32(b, 0x01020304), u32(b, 0x05060708);
		break;
	case BL_OP_BEACON:
		u16(b, 37);
		u8(b, 1), u8(b, 4);
		u32(b, 4242);
		zeros(b, BL_LINK_AT);
		u32(b, BL_LINK_MAGIC);
		u16(b, 0x6666), u16(b, 1);
		u32(b, 900), u32(b, 0);
		zeros(b, 6);
		u8(b, BL_LINK_VERSION), u8(b, 0);
		u32(b, 250), u32(b, 0);
		zeros(b, 8 + 96 - BL_LINK_AT - 40);
		break;
	case BL_OP_RSV:
	case BL_OP_GRT:
	case BL_OP_RELEASE:
		u32(b, 0x02000000), u16(b, op);
		u32(b, 3000), u32(b, 10), u32(b, 20);
		u8(b, op == BL_OP_GRT ? BL_GRT_COPY : 0), u8(b, 0);
		u16(b, 0x7777);
		break;
	case BL_OP_PREP:
		u16(b, 0x8888);
		u16(b, 1);
		u32(b, 31);
		u16(b, 0x9999), u16(b, 2);
		u16(b, 3);
		u8(b, 'x'), u8(b, 'y'), u8(b, 'z');
		break;
	case BL_OP_ACK:
		u16(b, 0xaaaa);
		u16(b, 1);
		u32(b, 32);
		u16(b, 0xbbbb), u16(b, 0);
		break;
	case BL_OP_OPEN:
		u16(b, 0xcccc);
		u16(b, 0);
		u32(b, 0x01020304), u32(b, 0x05060708);
		break;
	case BL_OP_WINDOW:
		u32(b, 701);
		u16(b, 0xdddd), u16(b, 48), u16(b, 0xeeee), u16(b, 0);
		u32(b, 0x01020304), u32(b, 0x05060708);
		break;
	case BL_OP_RECALL:
	case BL_OP_RECALLED:
		u16(b, 0x1234), u16(b, 0x4321);
		u32(b, 5);
		u16(b, 0), u32(b, 4711);
		u16(b, 0);
		break;
	default:
		fail_msg("no body for opcode %u", op);
	}
}

static size_t make_frame(unsigned int op, const struct body *b, uint8_t *frame)
{
	bool link = op >= BL_OP_BEACON && op <= BL_OP_RELEASE;
	struct ethhdr *eth = (void *)frame;
	struct bl_hdr *h;
	size_t at = sizeof(*eth);

	memset(frame, 0, FRAME_MAX);
	memcpy(eth->h_dest, (uint8_t[])BL_BEACON_MAC, 6);
	eth->h_source[0] = 2;
	eth->h_proto = link ? BL_BE16(BL_ETHERTYPE) : BL_BE16(ETH_P_IP);
	if (!link) {
		struct iphdr *ip = (void *)(frame + at);
		struct udphdr *u = (void *)(ip + 1);

		ip->version = 4;
		ip->ihl = 5;
		ip->ttl = 64;
		ip->protocol = BL_UDP;
		ip->tot_len = BL_BE16((uint16_t)(sizeof(*ip) + sizeof(*u) + sizeof(*h) + b->n));
		ip->saddr = BL_BE32(0x0a000001);
		ip->daddr = BL_BE32(0x0a000002);
		u->source = BL_BE16(61700);
		u->dest = BL_BE16(61701);
		u->len = BL_BE16((uint16_t)(sizeof(*u) + sizeof(*h) + b->n));
		at += sizeof(*ip) + sizeof(*u);
	}
	h = (void *)(frame + at);
	if (!link) /* the mark of an authenticated link would be there */
		bl_put48(h->ts, TS);
	bl_put48(h->barrier, TS - 23);
	bl_put48(h->commit, TS - 123);
	bl_hdr_set_psn(h, 1000 + op);
	h->opcode = BL_OPCODE_BYTE(op);
	at += sizeof(*h);
	memcpy(frame + at, b->at, b->n);
	return at + b->n;
}

/* by opcode: a field that its body alone has, and its value as tshark prints it */
static const struct {
	const char *field, *value;
} own[BL_OP_LIMIT] = {
	[BL_OP_DATA] = { "barline.item.data", "616263" },
	[BL_OP_FRAG] = { "barline.offset", "4000" },
	[BL_OP_CREDIT] = { "barline.cookie", "0x0102030405060708" },
	[BL_OP_NAK] = { "barline.why", "2" },
	[BL_OP_PROBE] = { "barline.cookie", "0x0102030405060708" },
	[BL_OP_BEACON] = { "barline.link.frames", "900" },
	[BL_OP_RSV] = { "barline.rsv.cookie", "0x7777" },
	[BL_OP_GRT] = { "barline.rsv.copy", "1" },
	[BL_OP_RELEASE] = { "barline.rsv.mac", "02:00:00:00:00:09" },
	[BL_OP_PREP] = { "barline.copy", "2" },
	[BL_OP_ACK] = { "barline.slot", "32" },
	[BL_OP_OPEN] = { "barline.cookie", "0x0102030405060708" },
	[BL_OP_WINDOW] = { "barline.window", "48" },
	[BL_OP_RECALL] = { "barline.recall.ts", "4711" },
	[BL_OP_RECALLED] = { "barline.recall.ts", "4711" },
};

/* Checks that the output has exactly this line, and removes it. */
static void line(char **at, const char *want)
{
	char *end = strchr(*at, '\n');

	assert_non_null(end);
	*end = '\0';
	assert_string_equal(*at, want);
	*at = end + 1;
}

static void dissector__every_opcode(void **state)
{
	FRAME(frame);
	char want[256], fields[512] = "", *text, *at;
	unsigned int op;
	struct body b;
	size_t n, len = 0;

	begin();
	for (op = 1; op < BL_OP_LIMIT; op++) {
		make_body(op, &b);
		n = make_frame(op, &b, frame);
		snprintf(want, sizeof(want), "node=h1 reason=number-%u", op);
		packet(frame, (uint32_t)n, (uint32_t)n, want);
	}
	end();
	text = at = OUTPUT(TSHARK "%s -T fields -E separator=\\| -e barline.opcode -e barline.psn "
				  "-e barline.ts -e barline.barrier -e barline.commit "
				  "-e frame.interface_name -e frame.comment 2>/dev/null",
			   path);
	for (op = 1; op < BL_OP_LIMIT; op++) {
		bool link = op >= BL_OP_BEACON && op <= BL_OP_RELEASE;

		snprintf(want, sizeof(want),
			 "%u|%u|%llu|%llu|%llu|h1/eth0/%s|node=h1 reason=number-%u", op, 1000 + op,
			 link ? 0 : TS, TS - 23, TS - 123, op % 2 ? "in" : "out", op);
		line(&at, want);
	}
	assert_string_equal(at, "");
	free(text);
	/* Each field once: row N has the value of the field of opcode N in one of its columns. */
	for (op = 1; op < BL_OP_LIMIT; op++)
		if (!strstr(fields, own[op].field))
			len += (size_t)snprintf(fields + len, sizeof(fields) - len, " -e %s",
						own[op].field);
	text = at = OUTPUT(TSHARK "%s -T fields -E separator=\\|%s 2>/dev/null", path, fields);
	for (op = 1; op < BL_OP_LIMIT; op++) {
		char *row = strsep(&at, "\n"), *cell = row;

		while (row && strcmp(cell = strsep(&row, "|"), own[op].value))
			;
		assert_non_null(cell);
		assert_string_equal(cell, own[op].value);
	}
	assert_string_equal(at, "");
	free(text);
	text = OUTPUT(TSHARK "%s -V 2>/dev/null", path);
	assert_null(strstr(text, "Lua Error"));
	assert_null(strstr(text, "alformed"));
	free(text);
}

/* A dissector that fails shows "Lua Error" in the frame, and goes on with the next one. */
static void dissector__hostile(void **state)
{
	uint64_t seed = 0x9E3779B97F4A7C15ULL;
	FRAME(frame);
	unsigned int op, k;
	char *text, want[32];
	struct body b;
	size_t n, cut, i;

	begin();
	for (op = 1; op < BL_OP_LIMIT; op++) {
		make_body(op, &b);
		n = make_frame(op, &b, frame);
		for (cut = 0; cut < n; cut += 1) {
			packet(frame, (uint32_t)cut, (uint32_t)cut, "cut");
			packet(frame, (uint32_t)cut, (uint32_t)n, "captured in part");
		}
		for (k = 0; k < 64; k++) {
			for (i = 0; i < b.n; i++) {
				seed ^= seed << 13;
				seed ^= seed >> 7;
				seed ^= seed << 17;
				b.at[i] = (uint8_t)(k < 8 ? 0xff : seed >> 32);
			}
			n = make_frame(op, &b, frame);
			packet(frame, (uint32_t)n, (uint32_t)n, "random");
		}
	}
	end();
	text = OUTPUT(TSHARK "%s -V 2>/dev/null | grep -c 'Lua Error' || true", path);
	assert_string_equal(text, "0\n");
	free(text);
	text = OUTPUT(TSHARK "%s -T fields -e frame.number 2>/dev/null | tail -n 1", path);
	snprintf(want, sizeof(want), "%u\n", written);
	assert_string_equal(text, want);
	free(text);
}

/* The file itself, by the reader of others. */
static void pcapng__capinfos(void **state)
{
	FRAME(frame);
	struct body b;
	char *text;
	size_t n, i;

	begin();
	make_body(BL_OP_DATA, &b);
	n = make_frame(BL_OP_DATA, &b, frame);
	for (i = 0; i < 5; i++) /* every remainder of the lengths */
		packet(frame, (uint32_t)(n - i), (uint32_t)n, &"abcde"[i]);
	end();
	text = OUTPUT("capinfos -M %s 2>/dev/null", path);
	assert_non_null(strstr(text, "Number of packets:   5"));
	assert_non_null(strstr(text, "Number of interfaces in file: 2"));
	assert_non_null(strstr(text, "Name = h1/eth0/out"));
	assert_non_null(strstr(text, "File timestamp precision:  nanoseconds (9)"));
	assert_non_null(strstr(text, "Capture application: test"));
	free(text);
	text = OUTPUT("tshark -r %s -T fields -e frame.comment -e frame.cap_len -e frame.len "
		      "-e frame.time_epoch -e frame.packet_flags_direction 2>/dev/null | sed -n 2p",
		      path);
	assert_string_equal(text, "bcde\t74\t75\t1700000000.000000001\t0x00000002\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dissector__every_opcode),
		cmocka_unit_test(dissector__hostile),
		cmocka_unit_test(pcapng__capinfos),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
