/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What can be known to be wrong in a node's configuration before anything is touched. */
#ifndef BARLINE_LOADER_CONFIG_CHECK_H
#define BARLINE_LOADER_CONFIG_CHECK_H

#include "base/log.h"
#include "loader/node_cfg.h"

/**
 * bl_config_check - checks @c as barlined and `barline host|switch up` have read it, with its
 * defaults: that it is complete, that its settings fit its role and each other, and that the file
 * that hosts share with Fastpass's arbiters can be read. Returns 0 or -errno with a sentence.
 */
int bl_config_check(const struct bl_node_cfg *c, struct bl_err *err);

/**
 * bl_config_check_files - checks that the files of TLS and of keys are there. For `--check`: a
 * daemon finds it out at its start. Returns 0 or -errno.
 */
int bl_config_check_files(const struct bl_node_cfg *c, struct bl_err *err);

/**
 * bl_ctl_peers_check - refuses controllers on other machines without TLS: whoever is on the way
 * could pass for one. Returns 0 or -EPERM.
 */
int bl_ctl_peers_check(const struct bl_ctl_peers *c, struct bl_err *err);

#endif
