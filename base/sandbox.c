// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See sandbox.h. The list was written from the code and from what the libraries call, and each call
 * has its reason beside it. It was then run with a filter that refuses and logs, over the net tests
 * of daemons, controllers and arbiters, and over a daemon under strace (2026-11-25). Of some calls
 * only certain arguments are allowed; add_rules() has them.
 */
#include "base/sandbox.h"

#include <errno.h>
#include <linux/ptp_clock.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

const char bl_self_exe[] = "/proc/self/exe";

#define D   BL_SERVICE_DAEMON
#define C   BL_SERVICE_CONTROLLER
#define A   BL_SERVICE_ARBITER
#define M   BL_SERVICE_METRICS
#define ALL (D | C | A | M)

static const struct bl_syscall_row rows[] = {
	/* the process and its memory */
	{ "brk", ALL, "malloc" },
	{ "mmap", ALL, "malloc, maps, rings, threads' stacks; never writable and executable" },
	{ "mprotect", ALL, "malloc, threads' stacks, the loader of the caretaker; not executable" },
	{ "mremap", ALL, "realloc" },
	{ "munmap", ALL, "free" },
	{ "madvise", ALL, "free" },
	{ "exit", ALL, "end of a thread" },
	{ "exit_group", ALL, "end of the process" },
	{ "futex", ALL, "mutexes and conditions" },
	{ "clone", ALL, "threads, and the fork of a caretaker; no new namespaces" },
	{ "clone3", ALL, "threads; answered by ENOSYS, see deny_clone3()" },
	{ "seccomp", ALL, "the second of the two filters; a filter can only take away" },
	{ "set_robust_list", ALL, "a new thread" },
	{ "rseq", ALL, "a new thread" },
	{ "set_tid_address", D, "the start of a caretaker" },
	{ "arch_prctl", D, "the start of a caretaker" },
	{ "prlimit64", ALL, "the size of a thread's stack" },
	{ "execve", D, "the caretaker: this program only" },
	{ "setsid", D, "the caretaker" },
	{ "dup2", D, "the caretaker's standard streams" },
	{ "wait4", D, "whether the spare caretaker has ended or is stopped" },
	{ "kill", ALL, "a caretaker that does not begin; abort; whether a process exists" },
	{ "tgkill", ALL, "abort; the signal that stops the pacer" },
	{ "getpid", ALL, "log lines, locks" },
	{ "gettid", ALL, "priorities of threads; abort" },
	{ "getppid", C, "sqlite" },
	{ "getuid", ALL, "libraries" },
	{ "geteuid", ALL, "libraries" },
	{ "getgid", ALL, "libraries" },
	{ "getegid", ALL, "libraries" },
	{ "prctl", ALL, "names and timer slack of threads" },
	{ "restart_syscall", ALL, "a sleep that was interrupted by SIGSTOP" },
	{ "rt_sigaction", ALL, "signal handlers" },
	{ "rt_sigprocmask", ALL, "threads without signals" },
	{ "rt_sigreturn", ALL, "the end of a signal handler" },
	{ "rt_sigtimedwait", ALL, "sd-event" },
	{ "sigaltstack", ALL, "libraries and sanitizers" },
	{ "getrandom", ALL, "incarnations, node ids, TLS" },
	{ "uname", ALL, "libbpf's and GnuTLS's check of the kernel" },
	{ "sysinfo", ALL, "glibc's qsort and sysconf" },
	{ "getrusage", ALL, "TLS's random generator" },
	{ "times", ALL, "TLS's random generator" },
	{ "membarrier", ALL, "libcurl's and sanitizers' threads" },

	/* time and scheduling */
	{ "clock_gettime", ALL, "where the vDSO cannot" },
	{ "clock_getres", ALL, "where the vDSO cannot" },
	{ "gettimeofday", ALL, "where the vDSO cannot" },
	{ "time", ALL, "where the vDSO cannot" },
	{ "adjtimex", D,
	  "the error of the system clock and its leap second; read only in effect: "
	  "setting takes CAP_SYS_TIME" },
	{ "clock_adjtime", D, "the same, as newer glibc asks for it" },
	{ "clock_nanosleep", ALL, "ticks" },
	{ "nanosleep", ALL, "waits" },
	{ "getcpu", ALL, "where the vDSO cannot" },
	{ "sched_yield", ALL, "spinning" },
	{ "sched_getaffinity", ALL, "CPUs of threads, sysconf" },
	{ "sched_setaffinity", D | A, "CPUs of threads and of NAPI threads" },
	{ "sched_getparam", ALL, "pthread_create" },
	{ "sched_getscheduler", ALL, "pthread_create" },
	{ "sched_setscheduler", D | A, "priorities of NAPI threads and of the beacon thread" },
	{ "sched_getattr", D, "whether the kernel has short slices" },
	{ "sched_setattr", D, "short slices" },
	{ "sched_get_priority_min", D | A, "glibc" },
	{ "sched_get_priority_max", D | A, "glibc" },
	{ "getpriority", D, "the nice value of the datapath's threads" },
	{ "setpriority", D, "the nice value of the datapath's threads" },

	/* events */
	{ "epoll_create1", ALL, "sd-event" },
	{ "epoll_ctl", ALL, "sd-event" },
	{ "epoll_wait", ALL, "sd-event" },
	{ "epoll_pwait", ALL, "sd-event" },
	{ "epoll_pwait2", ALL, "sd-event" },
	{ "eventfd2", ALL, "stop, and the bell of threads" },
	{ "timerfd_create", ALL, "sd-event" },
	{ "timerfd_settime", ALL, "sd-event" },
	{ "signalfd4", ALL, "sd-event" },
	{ "poll", ALL, "waits for sockets" },
	{ "ppoll", ALL, "waits for sockets, sd-event" },
	{ "select", ALL, "libraries" },
	{ "pselect6", ALL, "libraries" },
	{ "pipe2", ALL, "libcurl" },
	{ "pidfd_open", D, "the end of an endpoint's process" },
	{ "pidfd_send_signal", D, "a caretaker that does not answer" },

	/* files */
	{ "read", ALL, "files, events" },
	{ "readv", ALL, "libraries" },
	{ "pread64", ALL, "locks, sqlite, the state of a caretaker" },
	{ "write", ALL, "log, files, events" },
	{ "writev", ALL, "log, TLS" },
	{ "pwrite64", ALL, "locks, sqlite" },
	{ "open", ALL, "libraries" },
	{ "openat", ALL, "/proc, /sys, pins, the store" },
	{ "close", ALL, "all of these" },
	{ "close_range", D, "libraries" },
	{ "fcntl", ALL, "copies and flags of descriptors, sqlite's locks" },
	{ "dup", ALL, "libraries" },
	{ "dup3", ALL, "libraries" },
	{ "flock", D | C, "the node's lock and the keeper's; the controller's lock on its store" },
	{ "lseek", ALL, "stdio" },
	{ "fstat", ALL, "stdio, locks" },
	{ "stat", ALL, "locks, network namespaces" },
	{ "lstat", ALL, "sqlite" },
	{ "newfstatat", ALL, "the same by newer glibc" },
	{ "statx", ALL, "libraries" },
	{ "statfs", ALL, "whether the bpffs is mounted" },
	{ "fstatfs", ALL, "libraries" },
	{ "access", ALL, "whether pins exist, sqlite" },
	{ "faccessat", ALL, "libraries" },
	{ "faccessat2", ALL, "libraries" },
	{ "readlink", ALL, "sqlite, sysfs" },
	{ "readlinkat", ALL, "libraries" },
	{ "getdents64", ALL, "pins, sockets that were left, /proc" },
	{ "getcwd", C, "sqlite" },
	{ "ftruncate", ALL, "locks, sqlite" },
	{ "fallocate", C, "sqlite" },
	{ "fsync", C, "the store" },
	{ "fdatasync", C, "the store" },
	{ "mkdir", ALL, "the run directory, directories of pins" },
	{ "rmdir", D, "directories of pins" },
	{ "unlink", ALL, "sockets, locks, pins, the store's journal" },
	{ "unlinkat", ALL, "libraries" },
	{ "rename", ALL, "pins of renamed interfaces, status sockets" },
	{ "chmod", D, "sockets" },
	{ "fchmod", C, "the store's journal" },
	{ "chown", D, "the group of the host's socket" },
	{ "fchown", C, "the store's journal, as root" },
	{ "umask", ALL, "status sockets" },
	{ "utimensat", C, "sqlite" },
	{ "mlockall", D, "the spare caretaker stays in memory" },
	{ "memfd_create", ALL, "the state of a caretaker; long lines to the journal" },

	/* sockets; the families are below */
	{ "socket", ALL, "UDP, TCP, Unix, netlink and packet sockets" },
	{ "socketpair", ALL, "the caretaker's channel; libcurl" },
	{ "bind", ALL, "sockets" },
	{ "connect", ALL, "sessions, the journal, sd_notify" },
	{ "listen", ALL, "Unix and TCP sockets" },
	{ "accept", ALL, "libraries" },
	{ "accept4", ALL, "Unix and TCP sockets" },
	{ "getsockname", ALL, "libraries" },
	{ "getpeername", ALL, "sessions" },
	{ "getsockopt", ALL, "credentials, errors" },
	{ "setsockopt", ALL, "buffers, time limits" },
	{ "sendto", ALL, "beacons, FCP" },
	{ "sendmsg", ALL, "descriptors for endpoints, TLS, the journal" },
	{ "sendmmsg", ALL, "FCP; glibc's resolver" },
	{ "recvfrom", ALL, "netlink, FCP" },
	{ "recvmsg", ALL, "netlink, endpoints" },
	{ "recvmmsg", D | A, "FCP" },
	{ "shutdown", ALL, "sessions" },
	{ "ioctl", ALL, "interfaces; the requests are below" },

	{ "bpf", D | M, "maps and programs" },
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	{ "ptrace", ALL, "the leak sanitizer" },
	{ "personality", ALL, "the sanitizers" },
#endif
};

const struct bl_syscall_row *bl_sandbox_rows(unsigned int *n)
{
	*n = COUNT(rows);
	return rows;
}

/* Families of sockets, beside those of the Unix and the Internet domains. */
static const struct {
	unsigned int who;
	int family;
} families[] = {
	{ ALL, AF_UNIX },    { ALL, AF_INET }, { ALL, AF_INET6 },
	{ ALL, AF_NETLINK }, { D, AF_PACKET },
};

/* Requests of ioctl(2). */
static const struct {
	unsigned int who;
	unsigned long request;
} requests[] = {
	{ ALL, TCGETS }, /* stdio: is it a terminal? */
	{ ALL, FIONREAD },
	{ ALL, FIONBIO },
	{ ALL, FIOCLEX },
	{ ALL, SIOCGIFINDEX },
	{ ALL, SIOCGIFNAME },
	{ D, SIOCGIFHWADDR },
	{ D, SIOCGIFMTU },
	{ D, SIOCSIFMTU },
	{ D, SIOCGIFFLAGS },
	{ D, SIOCSIFFLAGS },
	{ D, SIOCETHTOOL },
	{ D, SIOCOUTQ },
	{ D, SIOCADDMULTI },
	{ D, SIOCDELMULTI },
	{ D, SIOCGIFTXQLEN },
	/* the hardware clock that ptp4l steers, against the system clock */
	{ D, PTP_SYS_OFFSET },
	{ D, PTP_SYS_OFFSET_EXTENDED },
	{ D, PTP_SYS_OFFSET_PRECISE },
};

static int allow_memory(scmp_filter_ctx f)
{
	static const int prots[] = { 0, PROT_WRITE, PROT_EXEC };
	unsigned int k;
	int rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));

	for (k = 0; k < COUNT(prots) && !rc; k++)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				      SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_WRITE | PROT_EXEC,
					      (scmp_datum_t)prots[k]));
	return rc;
}

static int allow_sockets(scmp_filter_ctx f, unsigned int who)
{
	unsigned int k;
	int rc = 0;

	for (k = 0; k < COUNT(families) && !rc; k++)
		if (families[k].who & who)
			rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
					      SCMP_A0(SCMP_CMP_EQ,
						      (scmp_datum_t)families[k].family));
	for (k = 0; k < COUNT(requests) && !rc; k++)
		if (requests[k].who & who)
			rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
					      SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX,
						      requests[k].request));
	return rc;
}

/* Whether a rule with arguments stands for the row. */
static bool has_args(int nr)
{
	return nr == SCMP_SYS(mmap) || nr == SCMP_SYS(mprotect) || nr == SCMP_SYS(socket) ||
	       nr == SCMP_SYS(ioctl) || nr == SCMP_SYS(execve) || nr == SCMP_SYS(clone);
}

static int add_rules(scmp_filter_ctx f, unsigned int who)
{
	const scmp_datum_t spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
				    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
	unsigned int k;
	int rc, nr;

	for (k = 0; k < COUNT(rows); k++) {
		nr = seccomp_syscall_resolve_name(rows[k].name);
		if (nr == __NR_SCMP_ERROR)
			return -EINVAL;
		/* negative: this architecture does not have it */
		if (!(rows[k].who & who) || nr < 0 || has_args(nr))
			continue;
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, nr, 0);
		if (rc)
			return rc;
	}
	rc = allow_memory(f);
	if (!rc)
		rc = allow_sockets(f, who);
	if (!rc)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				      SCMP_A0(SCMP_CMP_MASKED_EQ, spaces, 0));
	if (!rc && who & BL_SERVICE_DAEMON)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(execve), 1,
				      SCMP_A0_64(SCMP_CMP_EQ,
						 (scmp_datum_t)(uintptr_t)bl_self_exe));
	return rc;
}

static int make_filter(scmp_filter_ctx *out, enum bl_service who, struct bl_err *err)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int rc;

	*out = f;
	if (!f)
		return bl_fail(err, ENOMEM, "out of memory");
	rc = seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!rc)
		rc = seccomp_attr_set(f, SCMP_FLTATR_CTL_LOG, 1);
	if (!rc)
		rc = add_rules(f, who);
	if (!rc)
		return 0;
	seccomp_release(f);
	return bl_fail(err, -rc, "cannot make the filter of system calls: %s", strerror(-rc));
}

/*
 * The flags of clone3() are in memory, which a filter cannot read, so there is no such call: glibc
 * falls back to clone(). This filter is one of its own because it does not log.
 */
static int deny_clone3(void)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	int rc = f ? seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1) : -ENOMEM;

	if (!rc)
		rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!rc)
		rc = seccomp_load(f);
	if (f)
		seccomp_release(f);
	return rc;
}

int bl_sandbox(enum bl_service who, struct bl_err *err)
{
	scmp_filter_ctx f;
	int rc = make_filter(&f, who, err);

	if (rc)
		return rc;
	rc = deny_clone3();
	if (!rc)
		rc = seccomp_load(f);
	seccomp_release(f);
	return rc ? bl_fail(err, -rc,
			    "cannot install the filter of system calls: %s; the kernel needs "
			    "CONFIG_SECCOMP_FILTER, and --no-sandbox does without",
			    strerror(-rc))
		  : 0;
}

int bl_sandbox_export(enum bl_service who, int fd, struct bl_err *err)
{
	scmp_filter_ctx f;
	int rc = make_filter(&f, who, err);

	if (rc)
		return rc;
	rc = seccomp_export_bpf(f, fd);
	seccomp_release(f);
	return rc ? bl_fail(err, -rc, "cannot export the filter: %s", strerror(-rc)) : 0;
}
