// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See config_clock.h. */
#include "loader/config_clock.h"

#include <string.h>

#include "maps/clock_abi.h"

static const char *const names[] = { "trust", "kernel", "ptp4l", "clockbound" };
static const uint32_t kinds[] = { BL_CLOCK_TRUST, BL_CLOCK_KERNEL, BL_CLOCK_PTP4L,
				  BL_CLOCK_CLOCKBOUND };
#define NAMES (sizeof(names) / sizeof(names[0]))

_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == NAMES, "a kind for each name");

const char *bl_clock_source_name(uint32_t kind)
{
	size_t k;

	for (k = 0; k < NAMES; k++)
		if (kinds[k] == kind)
			return names[k];
	return "none";
}

uint32_t bl_clock_source_parse(const char *name)
{
	size_t k;

	for (k = 0; k < NAMES; k++)
		if (!strcmp(names[k], name))
			return kinds[k];
	return 0;
}

void bl_clock_default_source(struct bl_node_cfg *cfg)
{
	if (!cfg->clock_source)
		cfg->clock_source = BL_CLOCK_KERNEL;
}

/* The keys of the source "ptp4l". */
static void read_ptp4l(struct bl_yaml *y, yaml_node_t *map, struct bl_node_cfg *cfg)
{
	static const char *const keys[] = { "socket", "phc", "domain", "transport_specific",
					    "grandmaster" };
	const char *text;
	int64_t v;
	size_t k;

	for (k = 0; k < sizeof(keys) / sizeof(keys[0]) && cfg->clock_source != BL_CLOCK_PTP4L; k++)
		if (bl_yaml_get(y, map, keys[k]))
			bl_yaml_refuse(y, map, keys[k], "%s is used with \"source: ptp4l\" only",
				       keys[k]);
	text = bl_yaml_text(y, map, "socket", sizeof(cfg->clock_socket) - 1);
	if (text && *text != '/')
		bl_yaml_refuse(y, map, "socket", "socket \"%s\" is not an absolute path", text);
	bl_yaml_copy(y, map, "socket", cfg->clock_socket, sizeof(cfg->clock_socket));
	text = bl_yaml_text(y, map, "phc", sizeof(cfg->clock_phc) - 1);
	if (text && *text != '/' && strcmp(text, "none"))
		bl_yaml_refuse(y, map, "phc",
			       "phc \"%s\" is neither a device such as /dev/ptp0 nor "
			       "none",
			       text);
	bl_yaml_copy(y, map, "phc", cfg->clock_phc, sizeof(cfg->clock_phc));
	if (bl_yaml_number(y, map, "domain", 0, 255, &v))
		cfg->clock_domain = (uint8_t)v;
	if (bl_yaml_number(y, map, "transport_specific", 0, 15, &v))
		cfg->clock_transport_specific = (uint8_t)v;
	cfg->clock_grandmaster = bl_yaml_truth(y, map, "grandmaster");
}

/* The key of the source "clockbound". */
static void read_clockbound(struct bl_yaml *y, yaml_node_t *map, struct bl_node_cfg *cfg)
{
	const char *text = bl_yaml_text(y, map, "file", sizeof(cfg->clock_socket) - 1);

	if (!text)
		return;
	if (cfg->clock_source != BL_CLOCK_CLOCKBOUND)
		bl_yaml_refuse(y, map, "file", "file is used with \"source: clockbound\" only");
	if (*text != '/')
		bl_yaml_refuse(y, map, "file", "file \"%s\" is not an absolute path", text);
	bl_yaml_copy(y, map, "file", cfg->clock_socket, sizeof(cfg->clock_socket));
}

void bl_config_clock(struct bl_yaml *y, struct bl_node_cfg *cfg)
{
	static const char *const keys[] = {
		"source", "bound_us",           "max_bound_us", "socket", "phc",
		"domain", "transport_specific", "grandmaster",  "file",   NULL
	};
	yaml_node_t *map = bl_yaml_get(y, y->root, "clock");
	uint32_t bound = bl_yaml_u32(y, y->root, "clock_bound_us");
	int64_t v;
	int kind;

	if (bound)
		cfg->clock_bound_us = bound;
	if (!map)
		return;
	bl_yaml_keys(y, map, keys);
	kind = bl_yaml_name(y, map, "source", names, NAMES);
	if (kind >= 0)
		cfg->clock_source = kinds[kind];
	if (bound && bl_yaml_get(y, map, "bound_us"))
		bl_yaml_refuse(y, map, "bound_us",
			       "bound_us and clock_bound_us are the same; write one of them");
	if (bl_yaml_number(y, map, "bound_us", 1, BL_CLOCK_MAX_BOUND_LIMIT_US, &v))
		cfg->clock_bound_us = (uint32_t)v;
	if (bl_yaml_number(y, map, "max_bound_us", 1, BL_CLOCK_MAX_BOUND_LIMIT_US, &v))
		cfg->clock_max_bound_us = (uint32_t)v;
	read_ptp4l(y, map, cfg);
	read_clockbound(y, map, cfg);
	if (cfg->clock_source == BL_CLOCK_TRUST && bl_yaml_get(y, map, "max_bound_us"))
		bl_yaml_refuse(y, map, "max_bound_us",
			       "max_bound_us is not used with \"source: trust\": a bound that is "
			       "trusted does not change");
}
