/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See proc.h.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/time.h"
#include "cli/util/proc.h"

void nap_ns(uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / BL_NS_PER_S),
				    .tv_nsec = (long)(ns % BL_NS_PER_S) };

	nanosleep(&t, NULL);
}

void kill_child(pid_t *pid)
{
	if (*pid > 0) {
		kill(*pid, SIGKILL);
		waitpid(*pid, NULL, 0);
	}
	*pid = 0;
}

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

const volatile sig_atomic_t *stop_flag(void)
{
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	if (signal(SIGHUP, on_signal) == SIG_IGN)
		signal(SIGHUP, SIG_IGN);
	return &stop;
}
