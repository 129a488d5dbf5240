// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of admission's policies: see policies.h. */
#include "loader/admission/policies.h"

const struct bl_policy_ops bl_policy_none = {};

static const struct bl_policy_ops *const table[BL_POLICY_COUNT] = {
	[BL_POLICY_NONE] = &bl_policy_none,
	[BL_POLICY_PL2] = &bl_policy_pl2,
	[BL_POLICY_FASTPASS] = &bl_policy_fastpass,
	[BL_POLICY_TOP] = &bl_policy_top,
};
_Static_assert(BL_POLICY_COUNT == 4, "a policy without an entry");

const struct bl_policy_ops *bl_policy_ops(unsigned int policy)
{
	return policy < BL_POLICY_COUNT ? table[policy] : &bl_policy_none;
}

const struct bl_policy_role *bl_policy_role(const struct bl_policy_ops *ops, enum bl_role role)
{
	return role == BL_ROLE_HOST ? &ops->host : &ops->sw;
}

bool bl_policy_by_arbiter(unsigned int policy)
{
	return bl_policy_ops(policy)->by_arbiter;
}

bool bl_policy_by_tokens(unsigned int policy)
{
	return bl_policy_ops(policy)->by_tokens;
}
