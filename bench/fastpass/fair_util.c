// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See fair.h. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sys/socket.h>

#include "cli/util/cmd.h"
#include "fair.h"
#include "bench/fct/fct.h"

int fair_enter(unsigned int i)
{
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "%s/h%u", LAB_NETNS_DIR, i + 1);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	err = fd < 0 || setns(fd, CLONE_NEWNET) ? -1 : 0;
	if (fd >= 0)
		close(fd);
	return err;
}

void fair_addr(const struct lab *lab, unsigned int i, uint8_t addr[4])
{
	uint8_t a[16];
	unsigned int k;

	for (k = 0; k < lab->nnodes; k++)
		if (lab->nodes[k].kind == LAB_HOST && lab->nodes[k].index == i + 1)
			(lab->spec.admission.on ? lab_bl0_addr : lab_host_addr)(&lab->nodes[k],
										AF_INET, a);
	memcpy(addr, a, 4);
}

pid_t fair_fork(unsigned int i, void (*fn)(void *arg), void *arg)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		cli_fail("cannot fork: %s", strerror(errno));
		return -1;
	}
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fair_enter(i))
		_exit(126);
	fn(arg);
	_exit(0);
}

void fair_end(pid_t *pid)
{
	if (*pid > 0) {
		kill(*pid, SIGKILL);
		waitpid(*pid, NULL, 0);
	}
	*pid = 0;
}

void fair_nap(uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / 1000000000ULL),
				    .tv_nsec = (long)(ns % 1000000000ULL) };

	nanosleep(&t, NULL);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double fair_quantile(double *v, unsigned int n, double q)
{
	unsigned int at;

	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), by_value);
	at = (unsigned int)(q * n);
	return v[at < n ? at : n - 1];
}

void *fair_shared(size_t size)
{
	/* most of it is never touched */
	void *m = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (m != MAP_FAILED)
		return m;
	cli_fail("cannot map room for the results: %s", strerror(errno));
	return NULL;
}

int (*fair_asked(int argc, char **argv))(int argc, char **argv)
{
	static const char *const flags[] = { "-j", "--json", "-v", "--verbose" };
	int at, i;

	for (at = 1; at < argc; at++) {
		for (i = 0; i < 4 && strcmp(argv[at], flags[i]); i++)
			;
		if (i == 4)
			break;
	}
	if (at < argc && !strcmp(argv[at], "fairness"))
		return fair_main;
	if (at < argc && !strcmp(argv[at], "fct"))
		return fct_main;
	if (at == argc || strcmp(argv[at], "failover"))
		return NULL;
	for (i = at; i < argc; i++)
		if (!strncmp(argv[i], "--kill", 6))
			return kill_main;
	return failover_main;
}
