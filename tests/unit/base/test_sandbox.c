// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * base/sandbox.c: the filter allows what the list says, and nothing else. The filter's program is
 * interpreted here for every system call; what it does to a real process is tested in a child.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sandbox.h"

#define PROGRAM_MAX 4096
#define NR_MAX      512 /* greater than any system call of Linux 6.18 */
#define REFUSED     (SECCOMP_RET_ERRNO | EPERM)

static const enum bl_service services[] = { BL_SERVICE_DAEMON, BL_SERVICE_CONTROLLER,
					    BL_SERVICE_ARBITER, BL_SERVICE_METRICS };
static struct sock_filter program[ARRAY_SIZE(services)][PROGRAM_MAX];
static size_t program_len[ARRAY_SIZE(services)];

static int setup(void **state)
{
	struct bl_err err;
	size_t k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(services); k++) {
		int fd = memfd_create("filter", 0);
		ssize_t n;

		assert_true(fd >= 0);
		if (bl_sandbox_export(services[k], fd, &err))
			fail_msg("%s", err.text);
		n = pread(fd, program[k], sizeof(program[k]), 0);
		assert_in_range(n, sizeof(program[k][0]), sizeof(program[k]) - 1);
		program_len[k] = (size_t)n / sizeof(program[k][0]);
		close(fd);
	}
	return 0;
}

/* Runs the filter of services[@s]: the instructions that libseccomp generates. */
static uint32_t verdict(size_t s, const struct seccomp_data *d)
{
	uint32_t a = 0;
	size_t pc;

	for (pc = 0; pc < program_len[s]; pc++) {
		const struct sock_filter *i = &program[s][pc];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(i->k + 4 <= sizeof(*d));
			memcpy(&a, (const uint8_t *)d + i->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			pc += a > i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			fail_msg("instruction %#x is not known here", i->code);
		}
	}
	fail_msg("the filter does not end");
	return 0;
}

static uint32_t native_arch(void)
{
	return seccomp_arch_native();
}

static uint32_t ask(size_t s, int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	const struct seccomp_data d = { .nr = nr, .arch = native_arch(), .args = { a0, a1, a2 } };

	return verdict(s, &d);
}

/* Returns the row of a call, or NULL. */
static const struct bl_syscall_row *row_of(int nr, enum bl_service who)
{
	const struct bl_syscall_row *rows;
	unsigned int n, k;

	rows = bl_sandbox_rows(&n);
	for (k = 0; k < n; k++)
		if (rows[k].who & who && seccomp_syscall_resolve_name(rows[k].name) == nr)
			return &rows[k];
	return NULL;
}

static bool by_arguments(int nr)
{
	return nr == SYS_mmap || nr == SYS_mprotect || nr == SYS_socket || nr == SYS_ioctl ||
	       nr == SYS_execve || nr == SYS_clone;
}

static void sandbox__list_is_sound(void **state)
{
	const struct bl_syscall_row *rows;
	unsigned int n, k, j;

	(void)state;
	rows = bl_sandbox_rows(&n);
	assert_in_range(n, 50, 200);
	for (k = 0; k < n; k++) {
		if (seccomp_syscall_resolve_name(rows[k].name) == __NR_SCMP_ERROR)
			fail_msg("there is no system call %s", rows[k].name);
		if (!*rows[k].why || !rows[k].who || rows[k].who > 15)
			fail_msg("%s has no reason, or no service", rows[k].name);
		for (j = 0; j < k; j++)
			if (!strcmp(rows[k].name, rows[j].name))
				fail_msg("%s is listed twice", rows[k].name);
	}
}

/* Each call of the list is allowed, and each other one refused with EPERM, for every service. */
static void sandbox__allows_the_list_only(void **state)
{
	unsigned int allowed = 0;
	size_t s;
	int nr;

	(void)state;
	for (s = 0; s < ARRAY_SIZE(services); s++)
		for (nr = 0; nr < NR_MAX; nr++) {
			const struct bl_syscall_row *row = row_of(nr, services[s]);
			uint32_t want = row ? SECCOMP_RET_ALLOW : REFUSED, is;

			if (row && by_arguments(nr))
				continue;
			is = ask(s, nr, 0, 0, 0);
			if (is != want)
				fail_msg("service %u, call %d (%s): %#x, not %#x", services[s], nr,
					 row ? row->name : "not listed", is, want);
			allowed += row != NULL;
		}
	assert_in_range(allowed, 250, 600);
}

static void sandbox__arguments(void **state)
{
	const uint64_t w = PROT_READ | PROT_WRITE, x = PROT_READ | PROT_EXEC;
	size_t s;
	int family;

	(void)state;
	for (s = 0; s < ARRAY_SIZE(services); s++) {
		bool daemon = services[s] == BL_SERVICE_DAEMON;

		assert_int_equal(ask(s, SYS_mmap, 0, 4096, w), SECCOMP_RET_ALLOW);
		assert_int_equal(ask(s, SYS_mmap, 0, 4096, x), SECCOMP_RET_ALLOW);
		assert_int_equal(ask(s, SYS_mmap, 0, 4096, PROT_NONE), SECCOMP_RET_ALLOW);
		assert_int_equal(ask(s, SYS_mmap, 0, 4096, w | x), REFUSED);
		assert_int_equal(ask(s, SYS_mprotect, 0, 4096, w), SECCOMP_RET_ALLOW);
		assert_int_equal(ask(s, SYS_mprotect, 0, 4096, x), REFUSED);
		assert_int_equal(ask(s, SYS_clone, CLONE_VM | CLONE_FS | CLONE_THREAD, 0, 0),
				 SECCOMP_RET_ALLOW);
		assert_int_equal(ask(s, SYS_clone, SIGCHLD, 0, 0), SECCOMP_RET_ALLOW);
		assert_int_equal(ask(s, SYS_clone, CLONE_NEWUSER, 0, 0), REFUSED);
		assert_int_equal(ask(s, SYS_clone, CLONE_NEWNET | SIGCHLD, 0, 0), REFUSED);
		assert_int_equal(ask(s, SYS_execve, (uintptr_t)bl_self_exe, 0, 0),
				 daemon ? SECCOMP_RET_ALLOW : REFUSED);
		assert_int_equal(ask(s, SYS_execve, (uintptr_t)bl_self_exe + 1, 0, 0), REFUSED);
		assert_int_equal(ask(s, SYS_execve, (uintptr_t)bl_self_exe + (1ULL << 32), 0, 0),
				 REFUSED);
		for (family = 0; family < 64; family++) {
			bool good = family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
				    family == AF_NETLINK || (daemon && family == AF_PACKET);

			if (ask(s, SYS_socket, (uint64_t)family, SOCK_RAW, 0) !=
			    (good ? SECCOMP_RET_ALLOW : REFUSED))
				fail_msg("service %u, socket family %d", services[s], family);
		}
		assert_int_equal(ask(s, SYS_ioctl, 0, FIONREAD, 0), SECCOMP_RET_ALLOW);
		assert_int_equal(ask(s, SYS_ioctl, 0, SIOCSIFMTU, 0),
				 daemon ? SECCOMP_RET_ALLOW : REFUSED);
		assert_int_equal(ask(s, SYS_ioctl, 0, TIOCSTI, 0), REFUSED);
		assert_int_equal(ask(s, SYS_bpf, 0, 0, 0),
				 daemon || services[s] == BL_SERVICE_METRICS ? SECCOMP_RET_ALLOW
									     : REFUSED);
	}
}

/* A call of another architecture would be another call. */
static void sandbox__other_architectures(void **state)
{
	struct seccomp_data d = { .nr = SYS_read, .arch = AUDIT_ARCH_I386 };
	size_t s;

	(void)state;
	if (native_arch() == AUDIT_ARCH_I386)
		d.arch = AUDIT_ARCH_X86_64;
	for (s = 0; s < ARRAY_SIZE(services); s++)
		assert_true((verdict(s, &d) & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_KILL_THREAD ||
			    (verdict(s, &d) & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_KILL_PROCESS);
}

/* ---- in a child ---- */

static void *add_one(void *v)
{
	++*(int *)v;
	return NULL;
}

/* Returns the number of the first check that fails; 0: none. */
static int confined(void)
{
	struct bl_err err;
	pthread_t t;
	int ran = 0, fd;
	char *const argv[] = { "true", NULL };

	if (bl_sandbox(BL_SERVICE_DAEMON, &err))
		return 1;
	if (!unshare(CLONE_NEWUSER) || errno != EPERM)
		return 2;
	if (execv("/bin/true", argv) != -1 || errno != EPERM)
		return 3;
	if (socket(AF_VSOCK, SOCK_STREAM, 0) != -1 || errno != EPERM)
		return 4;
	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0) != MAP_FAILED ||
	    errno != EPERM)
		return 5;
	if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
		return 6;
	if (syscall(SYS_keyctl, 0, 0, 0, 0, 0) != -1 || errno != EPERM)
		return 7;
	if (syscall(SYS_init_module, NULL, 0, "") != -1 || errno != EPERM)
		return 8;
	/* threads, files and sockets work */
	if (pthread_create(&t, NULL, add_one, &ran) || pthread_join(t, NULL) || ran != 1)
		return 9;
	fd = open("/proc/self/stat", O_RDONLY);
	if (fd < 0 || close(fd))
		return 10;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	return fd < 0 || close(fd) ? 11 : 0;
}

static void sandbox__confines_a_process(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(confined());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The filter covers threads that exist already. */
static _Atomic int stage;

static void *late_unshare(void *v)
{
	while (stage != 1)
		sched_yield();
	*(int *)v = unshare(CLONE_NEWUTS) ? errno : 0;
	return NULL;
}

static void sandbox__covers_all_threads(void **state)
{
	int status, got = 0;
	struct bl_err err;
	pthread_t t;
	pid_t pid;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (pthread_create(&t, NULL, late_unshare, &got))
			_exit(1);
		if (bl_sandbox(BL_SERVICE_ARBITER, &err))
			_exit(2);
		stage = 1;
		pthread_join(t, NULL);
		_exit(got == EPERM ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sandbox__list_is_sound),
		cmocka_unit_test(sandbox__allows_the_list_only),
		cmocka_unit_test(sandbox__arguments),
		cmocka_unit_test(sandbox__other_architectures),
		cmocka_unit_test(sandbox__confines_a_process),
		cmocka_unit_test(sandbox__covers_all_threads),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
