// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* barline show hooks: which other XDP programs run behind barline's. */
#include <unistd.h>

#include <bpf/bpf.h>

#include "cli/cmd.h"
#include "cli/show/show.h"
#include "cli/util/read.h"
#include "maps/hook_abi.h"
#include "maps/host_abi.h"
#include "maps/switch_abi.h"

/* Returns "NAME (id N)", the id alone if the program cannot be read, or "" for id 0. */
static const char *prog_text(uint32_t id, char *buf, size_t size)
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

/* Appends the row of port @port. Returns 0, or 1 after a message. */
static int add_hook(const struct bl_node_ref *ref, uint32_t port, const char *name, json_t *rows)
{
	char chained[48], back[48];
	struct bl_hook h;

	if (node_value(ref, BL_MAP_HOOKS, port, &h, sizeof(h)))
		return 1;
	return json_array_append_new(
		rows,
		json_pack("{s:s, s:s, s:s, s:s, s:b}", "node", node_name(ref), "name", name,
			  "chained", prog_text(h.next_id, chained, sizeof(chained)), "put_back",
			  prog_text(h.back_id, back, sizeof(back)), "frags", (int)h.frags));
}

static int collect_hooks(const struct bl_node_ref *ref, json_t *rows)
{
	struct bl_sw_port port;
	char nic[16];
	uint32_t p;

	if (ref->role == BL_ROLE_HOST) {
		node_nic(ref, nic, sizeof(nic));
		return add_hook(ref, 0, nic, rows);
	}
	for (p = 0; p < BL_SW_PORTS_MAX; p++) {
		if (node_value(ref, BL_MAP_SW_PORTS, p, &port, sizeof(port)))
			return 1;
		if (port.ifindex && add_hook(ref, p, port.name, rows))
			return 1;
	}
	return 0;
}

int cmd_show_hooks(int argc, char **argv)
{
	static const struct col cols[] = {
		{ "node", "NODE", 's' },       { "name", "PORT", 's' },
		{ "chained", "CHAINED", 's' }, { "put_back", "PUT_BACK", 's' },
		{ "frags", "FRAGS", 'b' },
	};

	return SHOW("barline show hooks - other XDP programs on the interfaces of nodes\v"
		    "CHAINED gets the frames that are not barline's. PUT_BACK was on the interface "
		    "before barline, and is attached again on detach. FRAGS: frames of several "
		    "buffers are handled, as an MTU above 3498 needs.",
		    "hooks", collect_hooks, cols, "no hooks");
}
