// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See bpffs.h. */
#include "base/bpffs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void bl_bpffs_name(char *name)
{
	for (; *name; name++)
		if (*name == '.')
			*name = ':';
}

bool bl_bpf_fd_is(int fd, const char *kind)
{
	static const char bpf[] = "anon_inode:bpf-";
	char path[32], what[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, what, sizeof(what) - 1);
	what[n > 0 ? n : 0] = 0;
	return !strncmp(what, bpf, sizeof(bpf) - 1) && !strcmp(what + sizeof(bpf) - 1, kind);
}
