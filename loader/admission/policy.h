/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A policy of admission: what it does at the steps of a node's life. The files admission.c and
 * admission_set.c run through the table of policies (policies.h) and know no policy; a policy knows
 * neither the table nor the other policies.
 *
 * A running node can change its policy (`barline admission set`), so the maps of all policies are
 * filled at start, and their options can be set and shown whichever policy rules. @selected says
 * whether it is this one.
 *
 * To add a policy: append it to BL_POLICIES (maps/hold_abi.h), define its struct bl_policy_ops in a
 * file of its own and enter it in policies.c; its options go into options.c. The programs in bpf/
 * need it in bpf/host/hold.h, and docs/protocol.md ("Policies that disagree") says what fits it.
 */
#ifndef BARLINE_ADMISSION_POLICY_H
#define BARLINE_ADMISSION_POLICY_H

#include "loader/admission/common.h"
#include "maps/switch_abi.h"

struct bl_node;
struct bl_policy_ops;
struct bpf_object;

/** struct bl_change - one `barline admission set` on one node, as the policies see it. */
struct bl_change {
	const struct bl_node_ref *ref;
	const struct bl_admission_set *set;
	struct bl_said said; /* what is different now; written when @write is set */
	/* host: hold_cfg as it is, and as it will be; each policy sets its own fields of @hold */
	struct bl_hold_cfg hold_was, hold;
	/*
	 * switch: time per byte of metered ports: of the first one as it is, 0: none is metered;
	 * and as given, or else the same
	 */
	uint32_t meter_q20, rate_q20;
	/* switch: the policies that ruled and will rule. A policy other than none enters itself. */
	enum bl_policy was, is;
};

/** struct bl_policy_role - what a policy does on nodes of one role. NULL: nothing. */
struct bl_policy_role {
	/** defaults - sets the policy's options that were not given. */
	void (*defaults)(struct bl_admission_cfg *a);
	/**
	 * check - refuses a configuration. Values of single options are in range.
	 * Returns 0, or -EINVAL with @err.
	 */
	int (*check)(const struct bl_node_cfg *c, bool selected, struct bl_err *err);
	/** hold - sets the policy's fields of hold_cfg, at start. Hosts only. */
	void (*hold)(const struct bl_admission_cfg *a, struct bl_hold_cfg *c);
	/**
	 * fill - the policy's own maps, after load and before the programs see a frame. @cfg has
	 * the ports of a switch, and @ports their numbers. n->queues_fresh: queues and flows start
	 * empty. Returns 0 or -errno with @err.
	 */
	int (*fill)(struct bl_node *n, const struct bl_node_cfg *cfg, struct bpf_object *obj,
		    const struct bl_sw_port *ports, bool selected, struct bl_err *err);
	/**
	 * change - first called with @write false for all policies: refuses what cannot be done,
	 * and changes nothing. Then with @write true: writes the policy's own maps and says what is
	 * different. Returns 0 or -errno with @err.
	 *
	 * Values of array maps are copied without a lock: a program that reads at that moment may
	 * see some fields old and some new, for one frame.
	 */
	int (*change)(struct bl_change *c, bool write, struct bl_err *err);
	/** show - the values of the policy's options on a running node. 0 or -errno with @err. */
	int (*show)(const struct bl_node_ref *ref, struct bl_admission_set *v, struct bl_err *err);
};

/** struct bl_policy_ops - one policy. */
struct bl_policy_ops {
	struct bl_policy_role host, sw;
	/** paths - how a switch chooses the path up under this policy. NULL: Linux's routes do. */
	void (*paths)(const struct bl_admission_cfg *a, struct bl_sw_cfg *sw);
	unsigned int frame_room; /* bytes of bl0's MTU that frames need for the policy */
	bool by_arbiter;         /* hosts get timeslots from an arbiter */
	bool by_tokens;          /* hosts send in the place of tokens */
};

/** bl_policy_stays - whether the policy rules a switch after the change: as given, or as it was. */
static inline bool bl_policy_stays(const struct bl_change *c, enum bl_policy policy, bool on)
{
	return c->set->given[BL_AO_POLICY] ? c->set->value[BL_AO_POLICY] == policy : on;
}

/* each is defined in the file of its policy; policies.c has the table */
extern const struct bl_policy_ops bl_policy_none, bl_policy_pl2, bl_policy_fastpass, bl_policy_top;

#endif
