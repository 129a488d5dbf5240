// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The policy fastpass: what hosts take from the file that they share with the arbiters, and that
 * switches obey the paths in frames. The session with the arbiter is in fastpass.c.
 */
#include <errno.h>

#include "loader/admission/policy.h"
#include "proto/fastpass_file.h"

static int check_host(const struct bl_node_cfg *c, bool selected, struct bl_err *err)
{
	const struct bl_admission_cfg *a = &c->admission;

	if (selected && !a->fp && !*a->fp_path)
		return bl_fail(err, EINVAL,
			       "fastpass needs the file that hosts and arbiters share: admission: "
			       "{ fastpass: FILE } (--fastpass FILE)");
	return 0;
}

static void hold_fields(const struct bl_admission_cfg *a, struct bl_hold_cfg *c)
{
	if (!a->fp)
		return;
	c->slot_ns = a->fp->slot_ns;
	c->slot_bytes = a->fp->slot_bytes;
	c->slot_late_ns = a->fp->late_us * 1000U;
	c->path_field = a->fp->field;
	c->udp_ports = a->fp->udp_ports;
	c->routed = a->fp->routed;
	c->count_paths = a->fp->has_faults;
}

static int change_host(struct bl_change *c, bool write, struct bl_err *err)
{
	if (write || c->hold.policy != BL_POLICY_FASTPASS || c->hold.slot_ns)
		return 0;
	return bl_fail(err, EINVAL,
		       "%s was started without Fastpass's file; start it with `admission: { "
		       "fastpass: FILE }`, or --fastpass FILE",
		       c->ref->meta.name);
}

/* The path is in the frame, also while another policy rules: `admission set` can go back. */
static void choose_paths(const struct bl_admission_cfg *a, struct bl_sw_cfg *sw)
{
	(void)a;
	sw->paths = sw->path_ports;
	sw->path_keep = 1;
}

const struct bl_policy_ops bl_policy_fastpass = {
	.host = { .check = check_host, .hold = hold_fields, .change = change_host },
	.paths = choose_paths,
	.by_arbiter = true,
};
