/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A node's configuration as rows of text: what `barline config show` prints, what the daemon writes
 * down as the configuration in force, and what `barline config diff` and a reload compare.
 *
 * Example: the file "role: host, interface: eth1, clock: { bound_us: 70 }" has the rows
 *
 *	section  item  key        value
 *	               role       host
 *	               interface  eth1
 *	clock          bound_us   70
 *
 * and with defaults some thirty more, which are marked. A port of a switch is an item of the
 * section "ports", with one row per key.
 */
#ifndef BARLINE_LOADER_CONFIG_ROWS_H
#define BARLINE_LOADER_CONFIG_ROWS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/log.h"
#include "loader/node_cfg.h"
#include "loader/settings.h"

enum bl_row_kind {
	BL_ROW_PLAIN, /* a number, true or false */
	BL_ROW_TEXT,
	BL_ROW_FLOW /* a list or mapping in JSON, which is YAML, too */
};

struct bl_config_row {
	const char *section; /* "": at the top */
	char item[20];       /* of a list: the name of the port, the address of an fdb entry */
	const char *key;
	enum bl_row_kind kind;
	char *value;
	bool dflt;             /* nobody has written it */
	enum bl_change change; /* how a change of this row alone takes effect, and why so */
	const char *why;
};

struct bl_config_rows {
	struct bl_config_row *v;
	unsigned int n;
};

/**
 * bl_config_rows - the rows of @c, whose defaults are not filled in. @defaults: also those that
 * nobody has written. Free with bl_config_rows_free(). Returns 0 or -ENOMEM.
 */
int bl_config_rows(const struct bl_node_cfg *c, bool defaults, struct bl_config_rows *out,
		   struct bl_err *err);
void bl_config_rows_free(struct bl_config_rows *r);

/** bl_config_row_path - "beacon_us", "clock.source" or "ports.swp1.role", into @buf. */
const char *bl_config_row_path(const struct bl_config_row *r, char *buf, size_t size);

/** bl_config_print - writes the rows as a YAML file that can be fed back; defaults are marked. */
void bl_config_print(FILE *f, const struct bl_config_rows *r);

/** struct bl_config_diff - a row that differs. A value that is not there is NULL. */
struct bl_config_diff {
	char path[80];
	const char *was, *now; /* belong to the rows that were compared */
	enum bl_change change;
	const char *why;
};

/**
 * bl_config_diff - the rows in which @was and @now differ, and how each change takes effect.
 * *@out: freed by the caller. Returns their number, or -ENOMEM.
 */
int bl_config_diff(const struct bl_node_cfg *was_cfg, const struct bl_config_rows *was,
		   const struct bl_node_cfg *now_cfg, const struct bl_config_rows *now,
		   struct bl_config_diff **out);

#endif
