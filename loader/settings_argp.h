/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line of a node, which barlined and `barline host|switch up` share: the flags of the
 * table in settings.c, --config, and those of admission.
 *
 * A command line is parsed twice, so that flags override the file wherever --config stands: first
 * with @file_pass set, which only notes the file; then bl_settings_file() reads it; then without.
 */
#ifndef BARLINE_LOADER_SETTINGS_ARGP_H
#define BARLINE_LOADER_SETTINGS_ARGP_H

#include <argp.h>
#include <stdbool.h>

#include "base/log.h"
#include "loader/node_cfg.h"

/** struct bl_settings_input - input of the parsers below. */
struct bl_settings_input {
	struct bl_node_cfg cfg;
	const char *file; /* of --config; NULL: none */
	bool file_pass;
	bool check;  /* --check: say what the node would be, and start nothing */
	bool detach; /* --detach-on-exit */
};

/* all flags, and those of one role */
extern const struct argp bl_settings_argp, bl_settings_host_argp, bl_settings_switch_argp;

/** bl_settings_add_port - "eth1" or "eth1@2", the home CPU. Returns 0 or -EINVAL. */
int bl_settings_add_port(struct bl_node_cfg *c, const char *text, enum bl_port_role role,
			 struct bl_err *err);

/** bl_settings_file - between the passes: reads the file, if there is one. Returns 0 or -errno. */
int bl_settings_file(struct bl_settings_input *in, struct bl_err *err);

/**
 * bl_settings_done - after the second pass: refuses what can be known to be wrong before anything
 * is touched (bl_config_check()). A wrong combination in a file has its name in front. Returns 0
 * or -errno.
 */
int bl_settings_done(struct bl_settings_input *in, struct bl_err *err);

#endif
