// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See xdp.h. */
#include "loader/load/xdp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/if_link.h>

uint32_t bl_xdp_present(int ifindex, char *name, size_t size, int *flags)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);
	struct bpf_prog_info info = {};
	uint32_t id, len = sizeof(info);
	int fd;

	if (size)
		*name = 0;
	*flags = XDP_FLAGS_DRV_MODE;
	if (bpf_xdp_query(ifindex, 0, &q))
		return 0;
	id = q.drv_prog_id;
	if (!id && q.skb_prog_id) {
		id = q.skb_prog_id;
		*flags = XDP_FLAGS_SKB_MODE;
	}
	if (!id && q.hw_prog_id) {
		id = q.hw_prog_id;
		*flags = XDP_FLAGS_HW_MODE;
	}
	fd = id && size ? bpf_prog_get_fd_by_id(id) : -1;
	if (fd >= 0) {
		if (!bpf_obj_get_info_by_fd(fd, &info, &len))
			snprintf(name, size, "%s", info.name);
		close(fd);
	}
	return id;
}

/*
 * Returns a descriptor of the one bpf_link that holds program @id on an interface with this index;
 * -ENOTUNIQ if there are several. Interfaces of other network namespaces count, too, since the
 * link's info does not name the namespace.
 */
static int link_of_prog(uint32_t id, int ifindex)
{
	uint32_t next = 0;
	int found = -1;

	while (!bpf_link_get_next_id(next, &next)) {
		struct bpf_link_info info = {};
		uint32_t len = sizeof(info);
		int fd = bpf_link_get_fd_by_id(next);

		if (fd < 0)
			continue;
		if (bpf_obj_get_info_by_fd(fd, &info, &len) || info.type != BPF_LINK_TYPE_XDP ||
		    info.prog_id != id || info.xdp.ifindex != (uint32_t)ifindex) {
			close(fd);
			continue;
		}
		if (found >= 0) {
			close(found);
			close(fd);
			return -ENOTUNIQ;
		}
		found = fd;
	}
	return found >= 0 ? found : -ENOENT;
}

char *bl_xdp_off_text(char *to, size_t size, const struct bl_iface *i, uint32_t id, int flags)
{
	struct bpf_link_info info = {};
	uint32_t len = sizeof(info);
	int link = link_of_prog(id, i->ifindex);

	if (link >= 0 && !bpf_obj_get_info_by_fd(link, &info, &len))
		snprintf(to, size, "bpftool link detach id %u", info.id);
	else
		snprintf(to, size, "ip link set %s xdp%s off", i->name,
			 flags == XDP_FLAGS_SKB_MODE ? "generic" : "");
	if (link >= 0)
		close(link);
	return to;
}

int bl_xdp_displace(const struct bl_iface *i, uint32_t id, const char *name, int flags,
		    struct bl_err *err)
{
	int prog, link, rc;

	prog = bpf_prog_get_fd_by_id(id);
	if (prog >= 0) {
		LIBBPF_OPTS(bpf_xdp_attach_opts, o, .old_prog_fd = prog);

		rc = bpf_xdp_detach(i->ifindex, (uint32_t)flags | XDP_FLAGS_REPLACE, &o);
		close(prog);
		if (!rc)
			goto done;
	}
	/* A bpf_link holds the program; that has to be detached. */
	link = link_of_prog(id, i->ifindex);
	if (link < 0)
		return bl_fail(err, EBUSY,
			       "%s carries the XDP program %s (id %u), and its holder cannot be "
			       "determined (%s); stop what attached it, then start again",
			       i->name, *name ? name : "of no known name", id, strerror(-link));
	rc = bpf_link_detach(link) ? -errno : 0;
	close(link);
	if (rc)
		return bl_fail(err, -rc, "cannot detach the XDP program %s (id %u) from %s: %s",
			       name, id, i->name, strerror(-rc));
done:
	bl_log(BL_LOG_WARN, "%s: displaced the XDP program %s (id %u), as asked", i->name, name,
	       id);
	return 0;
}
