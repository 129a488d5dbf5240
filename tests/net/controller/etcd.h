/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Three real members of etcd on loopback (lab/lab_etcd.h), in the namespaces of the case (rack.h).
 * They and their data die with the case.
 *
 * They run without fsync: the tests stop, kill and restart processes, and do not simulate disks
 * that lose power.
 */
#ifndef BARLINE_TESTS_ETCD_H
#define BARLINE_TESTS_ETCD_H

#include "tests/net/rack.h"

#include "lab/lab_etcd.h"

#define ETCD_MEMBERS LAB_ETCD_MEMBERS

static struct {
	pid_t pid[ETCD_MEMBERS];
	char url[ETCD_MEMBERS][64];
	const char *urls[ETCD_MEMBERS];
} etcd;

T_FN void etcd_member(unsigned int i)
{
	pid_t parent = getpid();

	lab_etcd_url(i, etcd.url[i], sizeof(etcd.url[i]));
	etcd.urls[i] = etcd.url[i];
	etcd.pid[i] = fork();
	CHECK(etcd.pid[i] >= 0, "%s", strerror(errno));
	if (etcd.pid[i])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	lab_etcd_exec(i);
}

/* Kills a member and keeps its data: etcd_member() starts it again. */
T_FN void etcd_kill(unsigned int i)
{
	int st;

	kill(etcd.pid[i], SIGKILL);
	kill(etcd.pid[i], SIGCONT);
	CHECK(waitpid(etcd.pid[i], &st, 0) == etcd.pid[i], "%s", strerror(errno));
	etcd.pid[i] = 0;
}

/* Sends a signal. A stopped member stands still when this returns. */
T_FN void etcd_signal(unsigned int i, int sig)
{
	pid_t pid = etcd.pid[i];
	int st = 0;

	CHECK(!kill(pid, sig), "%s", strerror(errno));
	if (sig == SIGSTOP)
		CHECK(waitpid(pid, &st, WUNTRACED) == pid && WIFSTOPPED(st), "status %#x", st);
}

/* Same as lab_etcd_post(). */
T_FN long etcd_post(unsigned int i, const char *path, const char *body, char *answer)
{
	return lab_etcd_post(i, path, body, 5000, answer);
}

/*
 * Repeats the request until it succeeds: a member that has no leader at the moment, or no CPU,
 * refuses it.
 */
T_FN void etcd_post_sure(unsigned int i, const char *path, const char *body, char *answer)
{
	uint64_t end = t_mono() + 60000000000ULL;

	while (etcd_post(i, path, body, answer) != 200) {
		CHECK(t_mono() < end, "%s: %s", path, answer);
		usleep(20000);
	}
}

T_FN void etcd_last_words(void)
{
	char buf[4096];
	ssize_t n;
	int fd = open(BL_RUN_DIR "/etcd.log", O_RDONLY);

	if (fd < 0)
		return;
	lseek(fd, -(off_t)sizeof(buf), SEEK_END);
	n = read(fd, buf, sizeof(buf));
	if (n > 0)
		fprintf(stderr, "etcd said: %.*s\n", (int)n, buf);
	close(fd);
}

/* Starts three members and waits until they agree on a leader. */
T_FN void etcd_up(void)
{
	uint64_t end = t_mono() + 60000000000ULL;
	char answer[LAB_ETCD_ANSWER];
	struct bl_err err;
	unsigned int i;

	rack_last_words = etcd_last_words;
	CHECK(!bl_iface_up("lo", &err), "%s", err.text);
	for (i = 0; i < ETCD_MEMBERS; i++)
		etcd_member(i);
	for (i = 0; i < ETCD_MEMBERS; i++)
		while (etcd_post(i, "/v3/kv/range", "{\"key\":\"eA==\"}", answer) != 200) {
			CHECK(t_mono() < end, "etcd does not come up");
			usleep(20000);
		}
}

#endif
