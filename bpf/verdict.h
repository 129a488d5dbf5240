/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The XDP verdict of each reason. Example: a message that was stored ends here, so it is XDP_DROP.
 *
 * Not here: the verdicts of tc programs (bpf/host/host.bpf.c, bpf/switch/guard.h). BPF side only.
 */
#ifndef BARLINE_VERDICT_H
#define BARLINE_VERDICT_H

#include <linux/bpf.h>
#include "core/core.h"
#include "maps/reasons_abi.h"

/* Returns the XDP verdict of reason @r. */
static __always_inline int bl_xdp_action(enum bl_reason r)
{
	/*
	 * The most frequent verdict of a busy switch is tested first. The reasons that redirect are
	 * too far apart in their enum for a test against one 64-bit mask.
	 */
	if (__builtin_expect(r == BL_R_FORWARDED, 1))
		return XDP_REDIRECT;
	switch (r) {
	case BL_R_NOT_OURS:
	case BL_R_TO_KERNEL:
	case BL_R_CHAINED:
		return XDP_PASS;
	case BL_R_RELAYED:
	case BL_R_STEERED:
	case BL_R_PASSED_ON:
	case BL_R_TOKEN_PASSED:
	case BL_R_PACED:
	case BL_R_BEACON_PACED:
	case BL_R_TO_APP:
		return XDP_REDIRECT;
	case BL_R_TOKEN_USED:
	case BL_R_TOKEN_RESENT:
	case BL_R_TOKEN_STOP:
	case BL_R_PREPARED:
	case BL_R_RECALLED:
	case BL_R_LEFT:
	case BL_R_COMMITTED:
		return XDP_TX;
	case BL_R_CLONE_SENT:
		return XDP_PASS; /* In a device-map program XDP_PASS sends the frame. */
	default:
		return XDP_DROP; /* consumed, copied into a queue, or refused */
	}
}

#endif
