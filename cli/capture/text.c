// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See text.h. */
#include "cli/capture/text.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/util/read.h"

#define OPCODE_NAME(sym, num, name, where) [num] = name,
static const char *const opcodes[] = { [0] = "other", BL_OPCODES(OPCODE_NAME) };
#define NOPCODES (sizeof(opcodes) / sizeof(opcodes[0]))

const char *dir_name(unsigned int dir)
{
	return dir == BL_CAPTURE_IN ? "in" : "out";
}

const char *opcode_name(unsigned int opcode)
{
	return opcode < NOPCODES && opcodes[opcode] ? opcodes[opcode] : "unknown";
}

int opcode_number(const char *name)
{
	size_t i;

	for (i = 0; i < NOPCODES; i++)
		if (opcodes[i] && !strcmp(name, opcodes[i]))
			return (int)i;
	return -1;
}

int reason_number(const char *name)
{
	const char *near;
	enum bl_reason r = reason_of(name, &near);

	return r != BL_R_NONE && r < BL_R_COUNT ? (int)r : -1;
}

void frame_find(const struct bl_capture_event *e, struct bl_capture_head *h)
{
	uint8_t head[BL_CAPTURE_HEAD] = { 0 };
	uint32_t n = e->caplen < sizeof(head) ? e->caplen : (uint32_t)sizeof(head);

	memcpy(head, e + 1, n);
	/* The program has decided with the node's port range whether there is a header. */
	if (e->opcode)
		bl_capture_find(head, n, 0, 65536, h);
	else
		bl_capture_find(head, n, 0, 0, h);
}

/* Writes " NAME=VALUE" unless the value is 0, which means none. Returns the length. */
static int put_time(char *buf, size_t size, const char *name, uint64_t v)
{
	return v ? snprintf(buf, size, " %s=%" PRIu64, name, v) : 0;
}

char *frame_comment(const struct capture *c, const struct bl_capture_event *e, char *buf,
		    size_t size)
{
	struct capture_place p = capture_place(c, e);
	int n = snprintf(buf, size, "node=%s name=%s direction=%s reason=%s", p.node, p.port,
			 dir_name(e->dir), reason_name(e->reason));

	if (!e->opcode || n < 0 || (size_t)n + 160 > size)
		return buf;
	n += put_time(buf + n, size - (size_t)n, "barrier_before", e->b_before);
	n += put_time(buf + n, size - (size_t)n, "barrier_after", e->b_after);
	n += put_time(buf + n, size - (size_t)n, "commit_before", e->c_before);
	put_time(buf + n, size - (size_t)n, "commit_after", e->c_after);
	return buf;
}

static char *end_text(const struct bl_capture_event *e, const struct bl_capture_head *h, bool dst,
		      char *buf, size_t size)
{
	const uint8_t *p = (const uint8_t *)(e + 1) + h->l3_off;
	uint32_t need = h->l3_off + (h->v6 ? 40 : 20);
	char ip[INET6_ADDRSTRLEN];

	if (!h->l3_off || e->caplen < need) {
		p = (const uint8_t *)(e + 1);
		if (e->caplen < 12)
			snprintf(buf, size, "?");
		else
			mac_text(p + (dst ? 0 : 6), buf, size);
		return buf;
	}
	if (h->v6) {
		inet_ntop(AF_INET6, p + (dst ? 24 : 8), ip, sizeof(ip));
		snprintf(buf, size, "[%s]:%u", ip, dst ? h->dport : h->sport);
	} else {
		inet_ntop(AF_INET, p + (dst ? 16 : 12), ip, sizeof(ip));
		snprintf(buf, size, "%s:%u", ip, dst ? h->dport : h->sport);
	}
	return buf;
}

char *frame_line(const struct capture *c, const struct bl_capture_event *e, char *buf, size_t size)
{
	struct capture_place p = capture_place(c, e);
	uint64_t real = capture_real_ns(c, e);
	time_t s = (time_t)(real / 1000000000);
	char src[64], dst[64], clock[16] = "";
	struct bl_capture_head h;
	struct tm tm;
	int n;

	frame_find(e, &h);
	if (localtime_r(&s, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	n = snprintf(buf, size, "%s.%09" PRIu64 " %s %s %s %s: %s %s > %s length %u", clock,
		     real % 1000000000, p.node, p.port, dir_name(e->dir), reason_name(e->reason),
		     opcode_name(e->opcode), end_text(e, &h, false, src, sizeof(src)),
		     end_text(e, &h, true, dst, sizeof(dst)), e->len);
	if (!e->opcode || n < 0 || (size_t)n + 256 > size)
		return buf;
	n += snprintf(buf + n, size - (size_t)n, " psn=%" PRIu32, (uint32_t)h.psn);
	n += put_time(buf + n, size - (size_t)n, "ts", h.ts);
	n += put_time(buf + n, size - (size_t)n, "barrier_before", e->b_before);
	n += put_time(buf + n, size - (size_t)n, "barrier_after", e->b_after);
	n += put_time(buf + n, size - (size_t)n, "commit_before", e->c_before);
	put_time(buf + n, size - (size_t)n, "commit_after", e->c_after);
	return buf;
}

/* A time, or null. */
static json_t *time_json(uint64_t v)
{
	return v ? json_integer((json_int_t)v) : json_null();
}

json_t *frame_json(const struct capture *c, const struct bl_capture_event *e)
{
	struct capture_place p = capture_place(c, e);
	struct bl_capture_head h;
	char src[64], dst[64];
	json_t *o;

	frame_find(e, &h);
	o = json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I}", "time_ns",
		      (json_int_t)capture_real_ns(c, e), "node", p.node, "role", p.role, "name",
		      p.port, "direction", dir_name(e->dir), "reason", reason_name(e->reason),
		      "opcode", opcode_name(e->opcode), "source",
		      end_text(e, &h, false, src, sizeof(src)), "destination",
		      end_text(e, &h, true, dst, sizeof(dst)), "length", (json_int_t)e->len);
	if (o && e->opcode)
		json_object_update_new(o, json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "psn",
						    (json_int_t)h.psn, "ts", time_json(h.ts),
						    "barrier_before", time_json(e->b_before),
						    "barrier_after", time_json(e->b_after),
						    "commit_before", time_json(e->c_before),
						    "commit_after", time_json(e->c_after)));
	return o;
}
