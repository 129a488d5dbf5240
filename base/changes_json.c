// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The changes of a reload as JSON; apart, because the daemon does without jansson. */
#include "base/changes_json.h"

json_t *bl_changes_json(const struct bl_changes *c, bool refused)
{
	json_t *rows = json_array();
	unsigned int k;

	for (k = 0; k < c->n; k++) {
		const struct bl_changed *v = &c->v[k];

		if (refused && v->change == BL_CHANGE_LIVE)
			continue;
		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "what",
						refused ? "refused" : "changed", "setting", v->path,
						"was", v->was, "now", v->now, "change",
						bl_change_name(v->change), "why", v->why));
	}
	return rows;
}
