// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names and sums of what is read from nodes (read.h). Pure functions. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/ip.h"
#include "base/nearest.h"
#include "cli/util/read.h"
#include "maps/host_abi.h"

#define R_NAME(sym, name, kind, text) [BL_R_##sym] = name,
#define R_TEXT(sym, name, kind, text) [BL_R_##sym] = text,
#define R_KIND(sym, name, kind, text) [BL_R_##sym] = BL_KIND_##kind,
static const char *const names[] = { BL_REASONS(R_NAME) };
static const char *const texts[] = { BL_REASONS(R_TEXT) };
static const enum bl_reason_kind kinds[] = { BL_REASONS(R_KIND) };

const char *reason_name(unsigned int r)
{
	return r < BL_R_COUNT ? names[r] : "unknown";
}

enum bl_reason reason_of(const char *name, const char **near)
{
	unsigned int k;

	for (k = 0; k < BL_R_COUNT && strcmp(names[k], name); k++)
		;
	*near = k < BL_R_COUNT ? NULL : bl_nearest_of(name, names, BL_R_COUNT);
	return (enum bl_reason)k;
}

const char *reason_text(unsigned int r)
{
	return r < BL_R_COUNT ? texts[r] : "counted by a newer build than this command";
}

enum bl_reason_kind reason_kind(unsigned int r)
{
	return r < BL_R_COUNT ? kinds[r] : BL_KIND_NOTE;
}

const char *role_name(unsigned int role)
{
	return role == BL_ROLE_SWITCH ? "switch" : role == BL_ROLE_HOST ? "host" : "none";
}

const char *port_role_name(unsigned int role)
{
	static const char *const n[] = { [BL_PORT_UNUSED] = "unused",
					 [BL_PORT_HOST] = "host",
					 [BL_PORT_UP] = "up",
					 [BL_PORT_DOWN] = "down" };

	return role < sizeof(n) / sizeof(n[0]) ? n[role] : "?";
}

const char *input_state_name(unsigned int state)
{
	static const char *const n[] = { [BL_REG_ABSENT] = "absent",
					 [BL_REG_JOINING] = "joining",
					 [BL_REG_LIVE] = "live",
					 [BL_REG_DEAD] = "dead" };

	return (state & 0xff) < sizeof(n) / sizeof(n[0]) ? n[state & 0xff] : "?";
}

const char *node_name(const struct bl_node_ref *ref)
{
	return ref->meta.name[0] ? ref->meta.name : role_name(ref->role);
}

const char *endpoint_out_name(const struct bl_ep_word *w)
{
#define NAME(sym, name, text) [BL_OUT_##sym] = (name),
	static const char *const whys[] = { BL_OUT_WHYS(NAME) };
#undef NAME

	if (!w->out)
		return "";
	return w->out_why && w->out_why < BL_OUT_WHY_COUNT ? whys[w->out_why] : "stopping";
}

char *addr_text(const uint8_t ip[16], char *buf, size_t size)
{
	static const uint8_t any[16];

	if (!memcmp(ip, any, 16))
		snprintf(buf, size, "any");
	else if (bl_ip_is_v4(ip))
		inet_ntop(AF_INET, ip + 12, buf, (socklen_t)size);
	else
		inet_ntop(AF_INET6, ip, buf, (socklen_t)size);
	return buf;
}

char *mac_text(const uint8_t mac[6], char *buf, size_t size)
{
	snprintf(buf, size, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		 mac[5]);
	return buf;
}

uint64_t counts_kind(const struct bl_counts *n, enum bl_reason_kind kind)
{
	uint64_t sum = 0;
	unsigned int r;

	for (r = 0; r < BL_REASON_MAX; r++)
		if (reason_kind(r) == kind)
			sum += n->n[r];
	return sum;
}

uint64_t counts_frames(const struct bl_counts *n)
{
	return counts_kind(n, BL_KIND_OK) + counts_kind(n, BL_KIND_DROP);
}

uint64_t counts_data(const struct bl_counts *n)
{
	return n->n[BL_R_FORWARDED] + n->n[BL_R_STORED] + n->n[BL_R_PREPARED] + n->n[BL_R_SENT];
}

uint64_t counts_beacons(const struct bl_counts *n)
{
	return n->n[BL_R_BEACON] + n->n[BL_R_RELAYED] + n->n[BL_R_BEACON_SENT];
}

uint64_t counts_dropped(const struct bl_counts *n)
{
	return counts_kind(n, BL_KIND_DROP) - n->n[BL_R_CLONE_STALE];
}

uint64_t counts_bytes(const struct bl_counts *n)
{
	uint64_t sum = 0;
	unsigned int r;

	for (r = 0; r < BL_REASON_MAX; r++)
		sum += n->bytes[r];
	return sum;
}

void counts_add(struct bl_counts *to, const struct bl_counts *n)
{
	unsigned int r;

	for (r = 0; r < BL_REASON_MAX; r++) {
		to->n[r] += n->n[r];
		to->bytes[r] += n->bytes[r];
	}
}
