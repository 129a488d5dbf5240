/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What tests of the configuration file put in place of functions of the loader (--wrap). */
#ifndef BARLINE_TESTS_CONFIG_WRAPS_H
#define BARLINE_TESTS_CONFIG_WRAPS_H

#include "loader/node_cfg.h"

/*
 * What the reader of the file needs from the rest of the loader; tests/prog/test_config.c tests it
 * with the real functions.
 */
void __wrap_bl_admission_defaults(struct bl_node_cfg *c);
int __wrap_bl_admission_check(const struct bl_node_cfg *c, struct bl_err *err);
const char *__wrap_bl_role_name(enum bl_role role);
int __wrap_bl_chain_check(const char *what, struct bl_err *err);

void __wrap_bl_admission_defaults(struct bl_node_cfg *c)
{
	(void)c;
}

int __wrap_bl_admission_check(const struct bl_node_cfg *c, struct bl_err *err)
{
	(void)c, (void)err;
	return 0;
}

int __wrap_bl_chain_check(const char *what, struct bl_err *err)
{
	(void)what, (void)err;
	return 0;
}

const char *__wrap_bl_role_name(enum bl_role role)
{
	return role == BL_ROLE_HOST ? "host" : "switch";
}

#endif
