/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Small parts of programs that consist of several processes.
 */
#ifndef BARLINE_CLI_UTIL_PROC_H
#define BARLINE_CLI_UTIL_PROC_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

/** nap_ns - Sleeps for @ns nanoseconds, or until a signal is handled. */
void nap_ns(uint64_t ns);

/** kill_child - Kills child *@pid with SIGKILL, reaps it, and sets *@pid to 0. 0: no child. */
void kill_child(pid_t *pid);

/**
 * stop_flag - Returns a flag that SIGINT, SIGTERM and SIGHUP set from now on, instead of ending the
 * process. A SIGHUP that is ignored stays so, for nohup(1).
 */
const volatile sig_atomic_t *stop_flag(void);

#endif
