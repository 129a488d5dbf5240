// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The flags of admission, which barlined, `barline host|switch up` and the lab share. The input is
 * a struct bl_admission_cfg.
 */
#include "loader/admission/admission_argp.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/rate.h"
#include "loader/admission/admission.h"
#include "loader/admission/admission_priv.h"
#include "loader/admission/top_host.h"
#include "loader/admission/top_switch.h"
#include "loader/node_cfg.h"
#include "maps/top_token_abi.h"

enum {
	OPT_ADMISSION = 256,
	OPT_RATE,
	OPT_ALLOCATOR,
	OPT_K,
	OPT_T,
	OPT_REFUSE,
	OPT_OUTSIDE,
	OPT_FRAMES,
	OPT_BYTES,
	OPT_MARK,
	OPT_SLOTS,
	OPT_PACER,
	OPT_CPU,
	OPT_BEACONS,
	OPT_FASTPASS,
	OPT_TOKENS,
	OPT_DATA_FIRST,
	OPT_UNSCHEDULED,
	OPT_SPRAY,
	OPT_TOKEN_FRAMES,
	OPT_EXPIRY,
	OPT_HEADROOM,
	OPT_LINK_RATE,
	OPT_LAW,
	OPT_OBJECTIVE,
	OPT_TOP
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Admission:", 0 },
	{ "admission", OPT_ADMISSION, "POLICY", 0,
	  "none: applications use bl0, frames go at once; pl2: bursts are reserved at the switch; "
	  "fastpass: an arbiter gives timeslots; top: receivers give tokens. On a switch: whether "
	  "it makes reservations, obeys paths, or limits tokens",
	  0 },
	{ "rate", OPT_RATE, "RATE", 0, "of the NIC, or of each port: as 250mbit or 10gbit", 0 },
	{ "allocator", OPT_ALLOCATOR, "NAME", 0,
	  "switch, pl2: two-counter (default), joint or bitmap", 0 },
	{ "k", OPT_K, "N", 0, "host, pl2: frames in one burst (4)", 0 },
	{ "t", OPT_T, "SLOTS", 0, "host, pl2: below that wait bursts go unsolicited (15)", 0 },
	{ "refuse-us", OPT_REFUSE, "US", 0,
	  "switch, pl2: above that wait unsolicited bursts are dropped (64 slots)", 0 },
	{ "outside", OPT_OUTSIDE, "PERCENT", 0,
	  "switch, pl2: share of each port for traffic from outside the rack (0)", 0 },
	{ "fastpass", OPT_FASTPASS, "FILE", 0,
	  "host, fastpass: the file that hosts and arbiters share", 0 },
	{ "law", OPT_LAW, "NAME", 0, "host, top: feedback: ns2 (default) or paper", 0 },
	{ "objective", OPT_OBJECTIVE, "NAME", 0,
	  "host, top: priority of flows: remaining (default), fct, las, deadline or coflow", 0 },
	{ "top", OPT_TOP, "KEY=VALUE", 0,
	  "host, top: any of its settings, by its name in files, as levels=1; may be repeated", 0 },
	{ "tokens", OPT_TOKENS, "MODE", 0,
	  "switch, top: drop, or pace, which needs a rate (pace where there is one)", 0 },
	{ "link-rate", OPT_LINK_RATE, "RATE", 0, "switch, top: of ports that are not metered", 0 },
	{ "data-first", OPT_DATA_FIRST, NULL, 0,
	  "switch, top, pace: data before tokens, within its share", 0 },
	{ "unscheduled-class", OPT_UNSCHEDULED, NULL, 0,
	  "switch, top: a class for frames without a token, one full frame deep", 0 },
	{ "spray", OPT_SPRAY, NULL, 0,
	  "switch that routes, top: frames take the ways up in turn, not one way per flow", 0 },
	{ "token-frames", OPT_TOKEN_FRAMES, "N", 0, "switch, top: tokens of one class (8)", 0 },
	{ "expiry-tokens", OPT_EXPIRY, "N", 0,
	  "switch, top: token times that a token is good for (8)", 0 },
	{ "headroom", OPT_HEADROOM, "PERCENT", 0,
	  "switch, top: share of each link that tokens leave to what needs none (0)", 0 },
	{ "queue-frames", OPT_FRAMES, "N", 0, "frames in one queue (256)", 0 },
	{ "queue-bytes", OPT_BYTES, "N", 0, "bytes in one queue (as many full frames)", 0 },
	{ "mark-bytes", OPT_MARK, "N", 0,
	  "ECN: mark frames that find more in their queue (host 65536, switch never)", 0 },
	{ "slots", OPT_SLOTS, "N", 0, "frames in all queues together (4096)", 0 },
	{ "pacer", OPT_PACER, "auto|spin", 0,
	  "whether the pacer may sleep when nothing is due (auto)", 0 },
	{ "pacer-cpu", OPT_CPU, "CPU", 0, "where it runs (the first datapath CPU)", 0 },
	{ "pacer-beacons", OPT_BEACONS, NULL, 0,
	  "host: the pacer sends the beacons, and not the daemon's beacon thread", 0 },
	{ 0 },
};

static uint32_t number(struct argp_state *st, const char *arg, const char *what, long min, long max)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(arg, &end, 0);
	if (errno || end == arg || *end || v < min || v > max)
		argp_error(st, "%s \"%s\" is not a number from %ld to %ld", what, arg, min, max);
	return (uint32_t)v;
}

static int named(struct argp_state *st, const char *arg, const char *what,
		 int (*by_name)(const char *), const char *(*name)(unsigned int))
{
	int v = by_name(arg);

	if (v < 0) {
		char list[128] = "";
		unsigned int k;

		for (k = 0; *name(k) != '?'; k++)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
				 k ? ", " : "", name(k));
		argp_error(st, "%s \"%s\": there is %s", what, arg, list);
	}
	return v;
}

static void top_option(struct argp_state *st, struct bl_admission_cfg *a, unsigned int option,
		       const char *text)
{
	struct bl_err err;
	uint32_t v;

	if (bl_top_option_parse(option, text, &v, &err))
		argp_error(st, "%s", err.text);
	else
		a->top.v[option] = v + 1;
}

/* KEY=VALUE */
static void top_any(struct argp_state *st, struct bl_admission_cfg *a, const char *arg)
{
	const char *value = strchr(arg, '=');
	unsigned int k;

	for (k = 0; value && k < BL_TOP_O_COUNT; k++) {
		const char *key = bl_top_option_key(k);

		if (strlen(key) == (size_t)(value - arg) && !strncmp(key, arg, strlen(key))) {
			top_option(st, a, k, value + 1);
			return;
		}
	}
	argp_error(st, "top \"%s\": not KEY=VALUE with a key of top, as levels=1", arg);
}

static bool top_given(const struct bl_admission_cfg *a)
{
	unsigned int k;

	for (k = 0; k < BL_TOP_O_COUNT; k++)
		if (a->top.v[k])
			return true;
	return false;
}

static error_t parse(int key, char *arg, struct argp_state *st)
{
	struct bl_admission_cfg *a = st->input;

	if (!a)
		return ARGP_ERR_UNKNOWN;
	switch (key) {
	case OPT_ADMISSION:
		a->policy = (enum bl_policy)named(st, arg, "admission", bl_policy_by_name,
						  bl_policy_name);
		a->on = true;
		return 0;
	case OPT_RATE:
		if (!bl_rate_parse(arg, &a->rate_bps))
			argp_error(st,
				   "rate \"%s\" is no rate: as 250mbit or 10gbit, from 2mbit to "
				   "1000gbit",
				   arg);
		return 0;
	case OPT_ALLOCATOR:
		a->allocator = (enum bl_allocator)named(st, arg, "allocator", bl_allocator_by_name,
							bl_allocator_name);
		return 0;
	case OPT_K:
		a->k = number(st, arg, "K", 1, BL_PL2_K_MAX);
		return 0;
	case OPT_T:
		a->t_slots = number(st, arg, "t", 1, BL_RSV_WORDS * 64);
		return 0;
	case OPT_FASTPASS:
		if (strlen(arg) >= sizeof(a->fp_path))
			argp_error(st, "fastpass: the file's name is too long");
		strcpy(a->fp_path, arg);
		return 0;
	case OPT_TOKENS:
		if (bl_token_mode_by_name(arg) < 0)
			argp_error(st, "tokens \"%s\": there is %s, %s", arg, bl_token_mode_name(0),
				   bl_token_mode_name(1));
		a->token_mode = (uint8_t)(bl_token_mode_by_name(arg) + 1);
		return 0;
	case OPT_LINK_RATE:
		if (!bl_rate_parse(arg, &a->link_rate_bps))
			argp_error(st,
				   "link-rate \"%s\" is no rate: as 250mbit or 10gbit, from 2mbit "
				   "to 1000gbit",
				   arg);
		return 0;
	case OPT_DATA_FIRST:
		a->data_first = true;
		return 0;
	case OPT_UNSCHEDULED:
		a->unscheduled = true;
		return 0;
	case OPT_SPRAY:
		a->spray = true;
		return 0;
	case OPT_TOKEN_FRAMES:
		a->token_frames = number(st, arg, "token-frames", 1, BL_TOKEN_FRAMES_MAX);
		return 0;
	case OPT_EXPIRY:
		a->expiry_tokens = number(st, arg, "expiry-tokens", 1, BL_TOKEN_FRAMES_MAX);
		return 0;
	case OPT_HEADROOM:
		a->headroom_percent = number(st, arg, "headroom", 0, BL_OUTSIDE_MAX);
		return 0;
	case OPT_LAW:
		top_option(st, a, BL_TOP_O_LAW, arg);
		return 0;
	case OPT_OBJECTIVE:
		top_option(st, a, BL_TOP_O_OBJECTIVE, arg);
		return 0;
	case OPT_TOP:
		top_any(st, a, arg);
		return 0;
	case OPT_REFUSE:
		a->refuse_us = number(st, arg, "refuse-us", 1, BL_TIME_MAX_US);
		return 0;
	case OPT_OUTSIDE:
		a->outside_percent = number(st, arg, "outside", 0, BL_OUTSIDE_MAX);
		return 0;
	case OPT_FRAMES:
		a->queue.frames = number(st, arg, "queue-frames", 1, BL_RING);
		return 0;
	case OPT_BYTES:
		a->queue.bytes = number(st, arg, "queue-bytes", BL_QUEUE_FRAME_MAX, 1 << 30);
		return 0;
	case OPT_MARK:
		a->queue.mark_bytes = number(st, arg, "mark-bytes", 1, 1 << 30);
		return 0;
	case OPT_SLOTS:
		a->slots = number(st, arg, "slots", 16, 65536);
		return 0;
	case OPT_PACER:
		if (strcmp(arg, "auto") && strcmp(arg, "spin"))
			argp_error(st, "pacer \"%s\": auto or spin", arg);
		a->spin = *arg == 's';
		return 0;
	case OPT_CPU:
		a->pacer_cpu = number(st, arg, "pacer-cpu", 0, BL_SW_CPUS_MAX - 1) + 1;
		return 0;
	case OPT_BEACONS:
		a->pacer_beacons = true;
		return 0;
	case ARGP_KEY_END:
		if (!a->on &&
		    (a->rate_bps || a->k || a->t_slots || a->refuse_us || a->outside_percent ||
		     a->queue.frames || a->queue.bytes || a->queue.mark_bytes || a->slots ||
		     a->spin || a->pacer_cpu || a->pacer_beacons || a->allocator || a->token_mode ||
		     a->data_first || a->unscheduled || a->spray || a->token_frames ||
		     a->expiry_tokens || a->headroom_percent || a->link_rate_bps || top_given(a)))
			argp_error(st, "these settings are of admission: add --admission none, "
				       "pl2, fastpass or top");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp bl_admission_argp = { .options = options, .parser = parse };
