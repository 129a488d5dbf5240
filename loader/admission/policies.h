/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of admission's policies. */
#ifndef BARLINE_ADMISSION_POLICIES_H
#define BARLINE_ADMISSION_POLICIES_H

#include "loader/admission/policy.h"

/** bl_policy_ops - the entry of an enum bl_policy; of bl_policy_none for any other number. */
const struct bl_policy_ops *bl_policy_ops(unsigned int policy);
/** bl_policy_role - what the policy does on nodes of this role. */
const struct bl_policy_role *bl_policy_role(const struct bl_policy_ops *ops, enum bl_role role);

#endif
