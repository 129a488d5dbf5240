// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See hooks.h. */
#include "cli/util/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "loader/load/pin.h"
#include "maps/switch_abi.h"

struct bl_hook_watch *hook_watches(const struct bl_node_ref *ref)
{
	uint32_t n = ref->role == BL_ROLE_SWITCH ? BL_SW_PORTS_MAX : BL_HOOK_PLACES, k;
	struct bl_hook_watch *w = calloc(n, sizeof(*w));

	if (w && bl_map_read_all(ref, BL_MAP_HOOK_WATCH, sizeof(*w), n, w, NULL))
		memset(w, 0, n * sizeof(*w));
	for (k = 0; w && k < n; k++)
		if (w[k].magic != BL_HOOK_WATCH_MAGIC || w[k].version != BL_HOOK_WATCH_VERSION ||
		    w[k].size != sizeof(*w))
			memset(&w[k], 0, sizeof(*w));
	return w;
}

const char *hook_state_text(uint32_t state)
{
	static const char *const texts[] = {
		[BL_HOOK_UNKNOWN] = "unknown", [BL_HOOK_OURS] = "own",
		[BL_HOOK_EMPTY] = "EMPTY",     [BL_HOOK_OTHERS] = "OTHER",
		[BL_HOOK_BEHIND] = "behind",   [BL_HOOK_FOLLOWED] = "followed"
	};

	return state < sizeof(texts) / sizeof(texts[0]) ? texts[state] : "unknown";
}

const char *prog_text(uint32_t id, char *buf, size_t size)
{
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info);
	int fd = id ? bpf_prog_get_fd_by_id(id) : -1;

	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len))
		snprintf(buf, size, "%s (id %u)", info.name, id);
	else
		snprintf(buf, size, id ? "id %u" : "", id);
	if (fd >= 0)
		close(fd);
	return buf;
}
