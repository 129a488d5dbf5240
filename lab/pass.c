/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See pass.h.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <unistd.h>

#include "lab/pass.h"

int pass_load(void)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "bl_pass", "Dual BSD/GPL", code,
			       sizeof(code) / sizeof(code[0]), NULL);

	return fd < 0 ? -errno : fd;
}

int pass_attach(unsigned int ifindex)
{
	int fd = pass_load(), err;

	if (fd < 0)
		return fd;
	err = bpf_xdp_attach((int)ifindex, fd, XDP_FLAGS_DRV_MODE, NULL);
	close(fd);
	return err;
}
