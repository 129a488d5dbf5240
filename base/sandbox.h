/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The filter of system calls of a service (seccomp(2)): what a service that was taken over can ask
 * of the kernel. It is installed once the service is ready, for all of its threads, and inherited
 * by what they start. sandbox.c has the list, with reasons.
 */
#ifndef BARLINE_BASE_SANDBOX_H
#define BARLINE_BASE_SANDBOX_H

#include <stdint.h>

#include "base/log.h"

/** enum bl_service - whose filter; bits, as a row of the list may be for several. */
enum bl_service {
	BL_SERVICE_DAEMON = 1, /* barlined and its caretaker */
	BL_SERVICE_CONTROLLER = 2,
	BL_SERVICE_ARBITER = 4, /* and the fault isolation service */
	BL_SERVICE_METRICS = 8, /* the exporter */
};

/** struct bl_syscall_row - a row of the list. */
struct bl_syscall_row {
	const char *name; /* of the system call */
	unsigned int who; /* bits of enum bl_service */
	const char *why;
};

/**
 * bl_self_exe - the path of this program. The filter allows execve(2) with this very pointer only,
 * so a service can start its own program again and no other.
 */
extern const char bl_self_exe[];

/** bl_sandbox_rows - the list; *@n receives its length. */
const struct bl_syscall_row *bl_sandbox_rows(unsigned int *n);

/**
 * bl_sandbox - installs the filter in all threads of the process. A call that is not in the list
 * fails with EPERM, and the kernel logs it (audit type 1326, with the number of the call); a call
 * of another architecture kills the process. Sets no_new_privs. Returns 0 or -errno.
 */
int bl_sandbox(enum bl_service who, struct bl_err *err);

/** bl_sandbox_export - writes the filter's program (struct sock_filter) to @fd. 0 or -errno. */
int bl_sandbox_export(enum bl_service who, int fd, struct bl_err *err);

#endif
