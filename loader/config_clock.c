// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See config_clock.h. */
#include "loader/config_clock.h"

#include <limits.h>
#include <string.h>

#include "loader/settings.h"
#include "maps/clock_abi.h"

const char *bl_clock_source_name(uint32_t kind)
{
	const struct bl_setting *s = bl_setting(BL_S_CLOCK_SOURCE);
	unsigned int k;

	for (k = 0; k < s->count; k++)
		if (s->values[k] == kind)
			return s->names[k];
	return "none";
}

void bl_clock_default_source(struct bl_node_cfg *cfg)
{
	if (!cfg->clock_source)
		cfg->clock_source = BL_CLOCK_KERNEL;
}

/* Refuses @key unless the source is @kind. */
static void check_source(struct bl_yaml *y, yaml_node_t *map, const char *key,
			 const struct bl_node_cfg *cfg, uint32_t kind)
{
	if (bl_yaml_get(y, map, key) && cfg->clock_source != kind)
		bl_yaml_refuse(y, map, key, "%s is used with \"source: %s\" only", key,
			       bl_clock_source_name(kind));
}

static void check_path(struct bl_yaml *y, yaml_node_t *map, const char *key)
{
	const char *text = bl_yaml_text(y, map, key, PATH_MAX);

	if (text && *text != '/')
		bl_yaml_refuse(y, map, key, "%s \"%s\" is not an absolute path", key, text);
}

void bl_config_clock(struct bl_yaml *y, struct bl_node_cfg *cfg)
{
	static const char *const of_ptp4l[] = { "socket", "phc", "domain", "transport_specific",
						"grandmaster" };
	const struct bl_setting *bound = bl_setting(BL_S_CLOCK_BOUND);
	yaml_node_t *map = bl_yaml_get(y, y->root, "clock");
	const char *text = bl_yaml_text(y, y->root, "clock_bound_us", 64);
	struct bl_err why;
	size_t k;

	if (text && bl_yaml_get(y, map, "bound_us"))
		bl_yaml_refuse(y, map, "bound_us",
			       "bound_us and clock_bound_us are the same; write one of them");
	else if (text && bl_setting_parse(bound, "clock_bound_us", text, cfg, &why))
		bl_yaml_refuse(y, y->root, "clock_bound_us", "%s", why.text);
	if (!map)
		return;
	for (k = 0; k < sizeof(of_ptp4l) / sizeof(of_ptp4l[0]); k++)
		check_source(y, map, of_ptp4l[k], cfg, BL_CLOCK_PTP4L);
	check_source(y, map, "file", cfg, BL_CLOCK_CLOCKBOUND);
	check_path(y, map, "socket");
	check_path(y, map, "file");
	text = bl_yaml_text(y, map, "phc", PATH_MAX);
	if (text && *text != '/' && strcmp(text, "none"))
		bl_yaml_refuse(y, map, "phc",
			       "phc \"%s\" is neither a device such as /dev/ptp0 nor "
			       "none",
			       text);
	if (cfg->clock_source == BL_CLOCK_TRUST && bl_yaml_get(y, map, "max_bound_us"))
		bl_yaml_refuse(y, map, "max_bound_us",
			       "max_bound_us is not used with \"source: trust\": a bound that is "
			       "trusted does not change");
}
