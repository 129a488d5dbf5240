/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files of one line, in which the kernel describes processes and devices.
 */
#ifndef BARLINE_BASE_PROC_H
#define BARLINE_BASE_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * bl_read_line - The first line of file @path in directory @dir (or AT_FDCWD), without its newline.
 * Returns 0 or -errno.
 */
int bl_read_line(int dir, const char *path, char *buf, size_t size);

#define BL_PROC_FLAGS   9  /* flags of the kernel's task: PF_* */
#define BL_PROC_STARTED 22 /* start of the process, in ticks after boot */

/**
 * bl_proc_stat - Field @field (3 or greater) of /proc/PID/stat, which has to be a number. Returns
 * 0, or -errno with *@v set to 0 if there is no such process.
 */
int bl_proc_stat(pid_t pid, int field, uint64_t *v);

/** bl_proc_state - State of a process as in /proc/PID/stat, such as 'S' or 'T'; 0: there is none.
 */
char bl_proc_state(pid_t pid);

/**
 * bl_proc_silence - Writes what is to be said of a process that has not answered for @ms: that it
 * is stopped and how to continue it, or where to see what it does. Returns @buf.
 * @what: what it is, as in "arbiter"; @pid: 0: not known
 */
const char *bl_proc_silence(char *buf, size_t size, const char *what, pid_t pid, unsigned int ms);

/**
 * bl_proc_waited_ns - For how long the threads of a process have been ready to run without a CPU,
 * in all, ns. Of a process with many threads only some count. Returns 0 if the kernel does not say.
 */
uint64_t bl_proc_waited_ns(pid_t pid);

#endif
