/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs at the hooks of a rack's nodes: those of somebody else, and barline's that go. */
#ifndef BARLINE_TESTS_NET_LOADER_STRANGER_H
#define BARLINE_TESTS_NET_LOADER_STRANGER_H

#include "tests/net/rack.h"

/* Loads a program that returns @verdict. @flags: BPF_F_* of the program */
static inline int stranger_load(enum bpf_prog_type type, int verdict, uint32_t flags)
{
	LIBBPF_OPTS(bpf_prog_load_opts, o, .prog_flags = flags,
		    .expected_attach_type = type == BPF_PROG_TYPE_XDP ? BPF_XDP : 0);
	const struct bpf_insn insn[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = verdict },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(type, "stranger", "GPL", insn, 2, &o);

	CHECK(fd >= 0, "%s", strerror(errno));
	return fd;
}

static inline uint32_t stranger_id(int fd)
{
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info);

	CHECK(!bpf_obj_get_info_by_fd(fd, &info, &len), "%s", strerror(errno));
	return info.id;
}

/* Detaches the link that is pinned at @path, and removes the pin. */
static inline void undo_link(const char *path)
{
	int fd = bpf_obj_get(path);

	/* Closing the last descriptor would detach it a little later. */
	CHECK(fd >= 0 && !bpf_link_detach(fd) && !unlink(path), "%s: %s", path, strerror(errno));
	close(fd);
}

/* The XDP program on @ifname of @node; 0: none. */
static inline uint32_t xdp_at(unsigned int node, const char *ifname)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);
	int home = rack_away(node), rc = bpf_xdp_query((int)if_nametoindex(ifname), 0, &q);

	rack_back(home);
	return rc ? 0 : q.drv_prog_id ? q.drv_prog_id : q.skb_prog_id;
}

#endif
