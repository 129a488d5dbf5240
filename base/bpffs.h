/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names in bpffs, and what a descriptor that was opened there is. */
#ifndef BARLINE_BASE_BPFFS_H
#define BARLINE_BASE_BPFFS_H

#include <stdbool.h>

/** bl_bpffs_name - makes @name, of an interface, one that bpffs accepts: ':' for each dot. */
void bl_bpffs_name(char *name);

/** bl_bpf_fd_is - whether @fd is a descriptor of a BPF object of @kind: "prog", "map" or "link". */
bool bl_bpf_fd_is(int fd, const char *kind);

#endif
