// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The one table of admission's options: see options.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/rate.h"
#include "loader/admission/options.h"
#include "loader/admission/admission.h"
#include "loader/admission/top_switch.h"
#include "loader/node_cfg.h"
#include "maps/switch_abi.h"
#include "maps/top_token_abi.h"

static const char *const policy_names[] = {
#define NAME(sym, name) [BL_POLICY_##sym] = name,
	BL_POLICIES(NAME)
#undef NAME
};
static const char *const allocator_names[] = {
#define NAME(sym, name) [BL_ALLOC_##sym] = name,
	BL_ALLOCATORS(NAME)
#undef NAME
};
static const char *const token_mode_names[] = {
#define NAME(sym, name, text) [BL_TOKEN_##sym] = name,
	BL_TOKEN_MODES(NAME)
#undef NAME
};
static const char *const law_names[] = {
#define NAME(sym, name, text) [BL_TOP_LAW_##sym] = name,
	BL_TOP_LAWS(NAME)
#undef NAME
};
static const char *const objective_names[] = {
#define NAME(sym, name, text) [BL_TOP_BY_##sym] = name,
	BL_TOP_OBJECTIVES(NAME)
#undef NAME
};
static const char *const pacer_names[] = { "auto", "spin" };

#define BOTH (BL_OPTION_HOSTS | BL_OPTION_SWITCHES)
#define MEMBER(m)                                   \
	.at = offsetof(struct bl_admission_cfg, m), \
	.size = sizeof(((struct bl_admission_cfg *)NULL)->m)
#define NAMES(v) .kind = BL_OPTION_NAME, .names = (v), .greatest = sizeof(v) / sizeof((v)[0]) - 1
#define TIME_US  .unit = "us", .greatest = BL_TIME_MAX_US
#define PERCENT  .unit = "percent", .greatest = BL_OUTSIDE_MAX

/* clang-format off */
static const struct bl_option table[] = {
	[BL_AO_POLICY] = {
		.key = "policy", .start = "admission", .set = "", .show = "policy",
		.column = "POLICY", .roles = BOTH, NAMES(policy_names), MEMBER(policy),
		.unit = "policy", .dflt_text = "needed", .needed = true,
		.text = "what frames of applications wait for. Hosts: none: nothing; pl2: "
			"timeslots reserved at the switch; fastpass: timeslots of an arbiter; "
			"top: tokens of their receivers. Switches: pl2 makes reservations, "
			"fastpass obeys the paths in frames, top limits tokens",
		.more = "The arbiter is `barline arbiter run'; docs/top.md describes top." },
	[BL_AO_RATE] = {
		.key = "rate", .start = "rate", .set = "rate", .show = "rate", .column = "RATE",
		.kind = BL_OPTION_RATE, .roles = BOTH, MEMBER(rate_bps), .unit = "rate",
		.dflt_text = "hosts send as fast as they can, ports are not metered",
		.text = "of the NIC, or of each port, which is then metered; as 250mbit or 10gbit",
		.more = "pl2 needs it, and so does top on hosts." },
	[BL_AO_SLOTS] = {
		.key = "slots", .start = "slots", .roles = BOTH, MEMBER(slots), .unit = "frames",
		.least = 16, .greatest = 65536, .dflt = BL_SLOTS,
		.text = "frames that all queues of the node hold together" },
	[BL_AO_MARK_BYTES] = {
		.key = "mark_bytes", .start = "mark-bytes", .roles = BOTH,
		MEMBER(queue.mark_bytes), .unit = "bytes", .least = 1, .greatest = UINT32_MAX,
		.dflt_text = "hosts 65536, or half of a shorter queue; switches never",
		.text = "frames that find more bytes in their queue are marked as having met "
			"congestion, if their sender does ECN" },
	[BL_AO_PACER] = {
		.key = "pacer", .start = "pacer", .roles = BOTH, NAMES(pacer_names), MEMBER(spin),
		.unit = "when", .dflt_text = "auto",
		.text = "whether the pacer sleeps when nothing is due (auto) or never does (spin)",
		.more = "The first frame after a sleep waits until the pacer is awake." },
	[BL_AO_CPU] = {
		.key = "cpu", .start = "pacer-cpu", .roles = BOTH, MEMBER(pacer_cpu),
		.unit = "cpu", .greatest = BL_SW_CPUS_MAX - 1, .add = 1,
		.dflt_text = "the first of cpus",
		.text = "the pacer's CPU",
		.more = "There is one pacer for all nodes of a process with the same CPU." },

	[BL_AO_PACER_BEACONS] = {
		.key = "pacer_beacons", .start = "pacer-beacons", .kind = BL_OPTION_TRUTH,
		.roles = BL_OPTION_HOSTS, MEMBER(pacer_beacons), .greatest = 1,
		.text = "the pacer sends the host's beacons, and not the daemon's beacon thread",
		.more = "They are sent at the same ticks and leave through bl0 and the kernel, as "
			"everything ordered does, so bl0 must be up. The pacer is then awake "
			"around each tick; with beacon intervals below some 300 us it never "
			"sleeps." },
	[BL_AO_HOLD_FRAMES] = {
		.key = "hold_frames", .start = "queue-frames", .roles = BL_OPTION_HOSTS,
		MEMBER(queue.frames), .unit = "frames", .least = 1, .greatest = BL_RING,
		.dflt = BL_QUEUE_FRAMES, .text = "frames in one queue" },
	[BL_AO_HOLD_BYTES] = {
		.key = "hold_bytes", .start = "queue-bytes", .roles = BL_OPTION_HOSTS,
		MEMBER(queue.bytes), .unit = "bytes", .least = BL_QUEUE_FRAME_MAX,
		.greatest = UINT32_MAX, .dflt_text = "as many full frames",
		.text = "bytes in one queue" },
	[BL_AO_BL0] = {
		.key = "bl0", .kind = BL_OPTION_TEXT, .roles = BL_OPTION_HOSTS, MEMBER(bl0),
		.unit = "interface", .dflt_text = "bl0",
		.text = "name of the interface through which applications send" },
	[BL_AO_BL0D] = {
		.key = "bl0d", .kind = BL_OPTION_TEXT, .roles = BL_OPTION_HOSTS, MEMBER(bl0d),
		.unit = "interface", .dflt_text = "the name of bl0 and a d",
		.text = "name of its other end" },
	[BL_AO_K] = {
		.key = "k", .start = "k", .set = "k", .show = "k", .column = "K",
		.roles = BL_OPTION_HOSTS, .policies = "pl2", MEMBER(k), .unit = "frames",
		.least = 1, .greatest = BL_PL2_K_MAX, .dflt = BL_PL2_K,
		.text = "K: frames in one burst" },
	[BL_AO_T_SLOTS] = {
		.key = "t_slots", .start = "t", .set = "t", .roles = BL_OPTION_HOSTS,
		.policies = "pl2", MEMBER(t_slots), .unit = "slots",
		.greatest = BL_RSV_WORDS * 64, .dflt = BL_T_SLOTS,
		.text = "t: bursts go unsolicited while the last wait was shorter",
		.more = "Here and below a slot is the time of a full frame at the rate. 0, for a "
			"running host: never." },
	[BL_AO_T_US] = {
		.key = "t_us", .set = "t-us", .show = "t_ns", .column = "T",
		.roles = BL_OPTION_HOSTS, .policies = "pl2", MEMBER(t_us), TIME_US,
		.dflt_text = "t_slots", .text = "t as a time, in place of slots" },
	[BL_AO_RECENT_US] = {
		.key = "recent_us", .start = "recent-us", .set = "recent-us", .show = "recent_ns",
		.column = "RECENT", .roles = BL_OPTION_HOSTS, .policies = "pl2",
		MEMBER(recent_us), TIME_US, .dflt_text = "20 slots, at least 100 us",
		.text = "how old a grant may be to justify an unsolicited burst" },
	[BL_AO_RETRY_US] = {
		.key = "retry_us", .start = "retry-us", .set = "retry-us", .show = "retry_ns",
		.column = "RETRY", .roles = BL_OPTION_HOSTS, .policies = "pl2", MEMBER(retry_us),
		.least = 1, TIME_US, .dflt_text = "40 slots, at least 200 us",
		.text = "a reservation without an answer is repeated after that long" },
	[BL_AO_COMING_US] = {
		.key = "coming_us", .start = "coming-us", .set = "coming-us", .show = "coming_ns",
		.column = "COMING", .roles = BL_OPTION_HOSTS, .policies = "pl2",
		MEMBER(coming_us), TIME_US, .dflt_text = "200 slots, at least 1000 us",
		.text = "a burst that was announced and does not come is released after that long",
		.more = "0, for a running host: never." },
	[BL_AO_LATE_US] = {
		.key = "late_us", .start = "late-us", .set = "late-us", .show = "late_ns",
		.column = "LATE", .roles = BL_OPTION_HOSTS, .policies = "pl2", MEMBER(late_us),
		TIME_US, .dflt_text = "20 slots, at least 100 us",
		.text = "a burst that is later than that for its slot asks for another slot",
		.more = "If the pacer stood still, all bursts of that time would otherwise leave "
			"at once. A burst asks twice at most; then it leaves late. Shorter than "
			"lapse_us of the switch. 0, for a running host: never." },
	[BL_AO_FASTPASS] = {
		.key = "fastpass", .start = "fastpass", .kind = BL_OPTION_TEXT,
		.roles = BL_OPTION_HOSTS, .policies = "fastpass", MEMBER(fp_path), .unit = "file",
		.dflt_text = "needed with policy fastpass", .needed = true,
		.text = "the file that hosts and arbiters share",
		.more = "docs/fastpass.md describes it." },
	[BL_AO_TOP_MAP] = {
		.key = "top", .start = "top", .kind = BL_OPTION_BLOCK, .roles = BL_OPTION_HOSTS,
		.policies = "top", .unit = "key=value",
		.text = "a setting of TOP by its key, as levels=1; may be repeated",
		.more = "In the file a mapping of the settings below and of rules, a list of "
			"mappings with port, protocol (tcp, udp or any), bytes, deadline_us, "
			"coflow and resend. docs/top.md describes both." },

	[BL_AO_QUEUE_FRAMES] = {
		.key = "queue_frames", .start = "queue-frames", .roles = BL_OPTION_SWITCHES,
		MEMBER(queue.frames), .unit = "frames", .least = 1, .greatest = BL_RING,
		.dflt = BL_QUEUE_FRAMES, .text = "frames in one queue" },
	[BL_AO_QUEUE_BYTES] = {
		.key = "queue_bytes", .start = "queue-bytes", .roles = BL_OPTION_SWITCHES,
		MEMBER(queue.bytes), .unit = "bytes", .least = BL_QUEUE_FRAME_MAX,
		.greatest = UINT32_MAX, .dflt_text = "as many full frames",
		.text = "bytes in one queue" },
	[BL_AO_LIMITS] = {
		.key = "limits", .kind = BL_OPTION_BLOCK, .roles = BL_OPTION_SWITCHES,
		.unit = "list", .dflt_text = "all classes as queue_frames, queue_bytes and "
					     "mark_bytes say",
		.text = "a list of mappings with class (control, token0 to token5, data, "
			"unscheduled), frames, bytes and mark_bytes, for classes that differ" },
	[BL_AO_ALLOCATOR] = {
		.key = "allocator", .start = "allocator", .set = "allocator", .show = "allocator",
		.column = "ALLOCATOR", .roles = BL_OPTION_SWITCHES, .policies = "pl2",
		NAMES(allocator_names), MEMBER(allocator), .unit = "name",
		.dflt_text = "two-counter",
		.text = "how timeslots are found; two-counter is the paper's" },
	[BL_AO_REFUSE_US] = {
		.key = "refuse_us", .start = "refuse-us", .set = "refuse-us", .show = "refuse_ns",
		.column = "REFUSE", .roles = BL_OPTION_SWITCHES, .policies = "pl2",
		MEMBER(refuse_us), TIME_US, .dflt_text = "64 slots",
		.text = "T: above that wait unsolicited bursts are dropped" },
	[BL_AO_FAR_US] = {
		.key = "far_us", .start = "far-us", .set = "far-us", .show = "far_ns",
		.column = "FAR", .roles = BL_OPTION_SWITCHES, .policies = "pl2", MEMBER(far_us),
		TIME_US, .dflt_text = "480 slots",
		.text = "a reservation further ahead is refused" },
	[BL_AO_LAPSE_US] = {
		.key = "lapse_us", .start = "lapse-us", .set = "lapse-us", .show = "lapse_ns",
		.column = "LAPSE", .roles = BL_OPTION_SWITCHES, .policies = "pl2",
		MEMBER(lapse_us), TIME_US,
		.dflt_text = "400 slots of the reserved rate, at least 2000 us",
		.text = "a promise that is not used lapses that long after its slot" },
	[BL_AO_OUTSIDE_PERCENT] = {
		.key = "outside_percent", .start = "outside", .set = "outside",
		.roles = BL_OPTION_SWITCHES, .policies = "pl2", MEMBER(outside_percent), PERCENT,
		.text = "share of each port for traffic from outside the rack" },
	[BL_AO_TOKENS] = {
		.key = "tokens", .start = "tokens", .set = "tokens", .show = "tokens",
		.column = "TOKENS", .roles = BL_OPTION_SWITCHES, .policies = "top",
		NAMES(token_mode_names), MEMBER(token_mode), .add = 1, .unit = "mode",
		.dflt_text = "pace where ports are metered, else drop",
		.text = "whether tokens above a port's share are dropped as they come (drop), or "
			"wait in the queues of metered ports (pace)" },
	[BL_AO_DATA_FIRST] = {
		.key = "data_first", .start = "data-first", .set = "data-first",
		.show = "data_first", .kind = BL_OPTION_TRUTH, .roles = BL_OPTION_SWITCHES,
		.policies = "top", MEMBER(data_first), .greatest = 1,
		.text = "with tokens paced: data goes before tokens, within its share" },
	[BL_AO_UNSCHEDULED] = {
		.key = "unscheduled", .start = "unscheduled-class", .set = "unscheduled-class",
		.show = "unscheduled", .kind = BL_OPTION_TRUTH, .roles = BL_OPTION_SWITCHES,
		.policies = "top", MEMBER(unscheduled), .greatest = 1,
		.text = "frames without a token have a class, one full frame deep" },
	[BL_AO_TOKEN_FRAMES] = {
		.key = "token_frames", .start = "token-frames", .set = "token-frames",
		.show = "token_frames", .column = "FRAMES", .roles = BL_OPTION_SWITCHES,
		.policies = "top", MEMBER(token_frames), .unit = "tokens", .least = 1,
		.greatest = BL_TOKEN_FRAMES_MAX, .dflt = BL_TOKEN_FRAMES,
		.text = "tokens of one class that may wait or be ahead" },
	[BL_AO_EXPIRY_TOKENS] = {
		.key = "expiry_tokens", .start = "expiry-tokens", .set = "expiry-tokens",
		.show = "expiry_tokens", .roles = BL_OPTION_SWITCHES, .policies = "top",
		MEMBER(expiry_tokens), .unit = "tokens", .least = 1,
		.greatest = BL_TOKEN_FRAMES_MAX, .dflt = BL_TOKEN_EXPIRY,
		.text = "token times that a token is good for" },
	[BL_AO_SPRAY] = {
		.key = "spray", .start = "spray", .set = "spray", .show = "spray",
		.kind = BL_OPTION_TRUTH, .roles = BL_OPTION_SWITCHES, .policies = "top",
		MEMBER(spray), .greatest = 1,
		.text = "on a switch that routes: frames take the paths up in turn, and not one "
			"path per flow" },
	[BL_AO_HEADROOM_PERCENT] = {
		.key = "headroom_percent", .start = "headroom", .roles = BL_OPTION_SWITCHES,
		.policies = "top", MEMBER(headroom_percent), PERCENT,
		.text = "share of each link that tokens leave to frames which need none" },
	[BL_AO_LINK_RATE] = {
		.key = "link_rate", .start = "link-rate", .kind = BL_OPTION_RATE,
		.roles = BL_OPTION_SWITCHES, .policies = "top", MEMBER(link_rate_bps),
		.unit = "rate", .dflt_text = "every port needs the rate that it is metered at",
		.text = "of the links of ports that are not metered" },
	[BL_AO_PATH_DIV] = {
		.key = "path_div", .roles = BL_OPTION_SWITCHES, .policies = "fastpass",
		MEMBER(path_div), .unit = "n", .least = 1, .greatest = UINT32_MAX,
		.dflt_text = "path k is the k-th up port",
		.text = "three tiers: path k is up port k / n, modulo how many there are",
		.more = "On switches of racks the number of cores of each aggregation switch; on "
			"aggregation switches 1." },

#define TOP_NAMES(sym)                                                              \
	(BL_TOP_O_##sym == BL_TOP_O_LAW		? law_names                         \
	 : BL_TOP_O_##sym == BL_TOP_O_OBJECTIVE ? objective_names                   \
						: NULL)
#define TOP_IS_NAME(sym) (BL_TOP_O_##sym == BL_TOP_O_LAW || BL_TOP_O_##sym == BL_TOP_O_OBJECTIVE)
#define TOP_OPTION(sym, key_, flag, least_, most, dflt_, text_)                     \
	[BL_AO_TOP + BL_TOP_O_##sym] = {                                            \
		.key = key_,                                                        \
		.start = TOP_IS_NAME(sym) ? flag : NULL,                            \
		.set = flag,                                                        \
		.show = key_,                                                       \
		.kind = TOP_IS_NAME(sym) ? BL_OPTION_NAME : BL_OPTION_NUMBER,       \
		.names = TOP_NAMES(sym),                                            \
		.roles = BL_OPTION_HOSTS,                                           \
		.policies = "top",                                                  \
		MEMBER(top.v[BL_TOP_O_##sym]),                                      \
		.add = 1,                                                           \
		.unit = TOP_IS_NAME(sym) ? "name" : "n",                            \
		.least = least_,                                                    \
		.greatest = most,                                                   \
		.dflt = dflt_,                                                      \
		.text = text_,                                                      \
	},
	BL_TOP_OPTIONS(TOP_OPTION)
#undef TOP_OPTION
};
/* clang-format on */
_Static_assert(sizeof(table) / sizeof(table[0]) == BL_AO_COUNT, "an option without an entry");

const struct bl_option *bl_option(unsigned int id)
{
	return id < BL_AO_COUNT ? &table[id] : NULL;
}

uint64_t bl_option_start_least(const struct bl_option *o)
{
	return o->least || o->add || !(o->dflt || o->dflt_text) ? o->least : 1;
}

/* ---- values ---- */

const char *bl_option_value(const struct bl_option *o, uint64_t value, char *buf, size_t size)
{
	switch (o->kind) {
	case BL_OPTION_NAME:
		snprintf(buf, size, "%s", value <= o->greatest ? o->names[value] : "?");
		break;
	case BL_OPTION_RATE:
		bl_rate_text(value, buf, size);
		break;
	case BL_OPTION_TRUTH:
		snprintf(buf, size, "%s", value ? "yes" : "no");
		break;
	default:
		snprintf(buf, size, "%llu", (unsigned long long)value);
	}
	return buf;
}

static int parse_name(const struct bl_option *o, const char *what, const char *text,
		      uint64_t *value, struct bl_err *err)
{
	struct bl_nearest near = { .word = text };
	char list[192] = "";
	size_t at = 0;
	uint64_t k;

	for (k = 0; k <= o->greatest; k++) {
		if (!strcmp(o->names[k], text)) {
			*value = k;
			return 0;
		}
		if (at < sizeof(list))
			at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", k ? ", " : "",
					       o->names[k]);
		bl_nearest_try(&near, o->names[k]);
	}
	return bl_fail(err, EINVAL, "%s \"%s\": there is %s%s%s%s", what, text, list,
		       near.best ? "; did you mean " : "", near.best ? near.best : "",
		       near.best ? "?" : "");
}

static int parse_number(const char *what, const char *text, int base, uint64_t least,
			uint64_t greatest, uint64_t *value, struct bl_err *err)
{
	long long v;
	char *end;

	errno = 0;
	v = strtoll(text, &end, base);
	if (errno || end == text || *end || v < 0 || (uint64_t)v < least || (uint64_t)v > greatest)
		return bl_fail(err, EINVAL, "%s \"%s\" is no number from %llu to %llu", what, text,
			       (unsigned long long)least, (unsigned long long)greatest);
	*value = (uint64_t)v;
	return 0;
}

int bl_option_parse(const struct bl_option *o, const char *what, const char *text, uint64_t least,
		    uint64_t greatest, uint64_t *value, struct bl_err *err)
{
	switch (o->kind) {
	case BL_OPTION_NAME:
		return parse_name(o, what, text, value, err);
	case BL_OPTION_RATE:
		return bl_rate_parse(text, value) ? 0
						  : bl_fail(err, EINVAL,
							    "%s \"%s\" is no rate: as 250mbit or "
							    "10gbit, from 2mbit "
							    "to 1000gbit",
							    what, text);
	case BL_OPTION_TRUTH:
		*value = !strcmp(text, "yes");
		return *value || !strcmp(text, "no")
			       ? 0
			       : bl_fail(err, EINVAL, "%s \"%s\": yes or no", what, text);
	case BL_OPTION_NUMBER:
		return parse_number(what, text, 0, least, greatest, value, err);
	default:
		return bl_fail(err, EINVAL, "%s has no single value", what);
	}
}

int bl_option_check(const struct bl_option *o, const char *what, uint64_t value, struct bl_err *err)
{
	if (o->kind == BL_OPTION_RATE || (value >= o->least && value <= o->greatest))
		return 0;
	if (o->least <= 1 && value > o->greatest)
		return bl_fail(err, EINVAL, "%s %llu: at most %llu", what,
			       (unsigned long long)value, (unsigned long long)o->greatest);
	return bl_fail(err, EINVAL, "%s %llu: from %llu to %llu", what, (unsigned long long)value,
		       (unsigned long long)o->least, (unsigned long long)o->greatest);
}

void bl_option_store(const struct bl_option *o, struct bl_admission_cfg *a, uint64_t value)
{
	void *to = (char *)a + o->at;

	value += o->add;
	if (o->size == 1)
		*(uint8_t *)to = (uint8_t)value;
	else if (o->size == 4)
		*(uint32_t *)to = (uint32_t)value;
	else if (o->size == 8)
		*(uint64_t *)to = value;
}

uint64_t bl_option_load(const struct bl_option *o, const struct bl_admission_cfg *a)
{
	const void *from = (const char *)a + o->at;

	if (o->kind == BL_OPTION_TEXT || !o->size)
		return 0;
	return o->size == 1   ? *(const uint8_t *)from
	       : o->size == 4 ? *(const uint32_t *)from
			      : *(const uint64_t *)from;
}

bool bl_admission_any(const struct bl_admission_set *s)
{
	unsigned int k;

	for (k = 0; k < BL_AO_COUNT; k++)
		if (s->given[k])
			return true;
	return false;
}

/* ---- TOP on hosts ---- */

const char *bl_top_option_key(unsigned int option)
{
	return option < BL_TOP_O_COUNT ? table[BL_AO_TOP + option].key : "?";
}

const char *bl_top_option_value(unsigned int option, uint32_t value, char *buf, size_t size)
{
	return bl_option_value(&table[BL_AO_TOP + option], value, buf, size);
}

int bl_top_option_parse(unsigned int option, const char *text, uint32_t *value, struct bl_err *err)
{
	const struct bl_option *o = &table[BL_AO_TOP + option];
	uint64_t v = 0;
	int rc = o->kind == BL_OPTION_NAME
			 ? parse_name(o, o->key, text, &v, err)
			 : parse_number(o->key, text, 10, o->least, o->greatest, &v, err);

	*value = (uint32_t)v;
	return rc;
}

/* ---- names ---- */

const char *bl_policy_name(unsigned int policy)
{
	return policy < BL_POLICY_COUNT ? policy_names[policy] : "?";
}

const char *bl_allocator_name(unsigned int allocator)
{
	return allocator < BL_ALLOC_COUNT ? allocator_names[allocator] : "?";
}

const char *bl_token_mode_name(unsigned int mode)
{
	return mode < BL_TOKEN_MODE_COUNT ? token_mode_names[mode] : "?";
}

static int value_by_name(enum bl_option_id id, const char *name)
{
	struct bl_err err;
	uint64_t v;

	return parse_name(&table[id], name, name, &v, &err) ? -1 : (int)v;
}

int bl_policy_by_name(const char *name)
{
	return value_by_name(BL_AO_POLICY, name);
}

int bl_allocator_by_name(const char *name)
{
	return value_by_name(BL_AO_ALLOCATOR, name);
}

int bl_token_mode_by_name(const char *name)
{
	return value_by_name(BL_AO_TOKENS, name);
}
