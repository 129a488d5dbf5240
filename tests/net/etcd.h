/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Three real members of etcd on loopback, in the case's namespaces (rack.h): they die with the case, and so does what they wrote.
 *
 * They run without fsync: what is tested is processes that stop, die and come back, not disks that lose power.
 */
#ifndef BARLINE_TESTS_ETCD_H
#define BARLINE_TESTS_ETCD_H

#include "rack.h"

#include <curl/curl.h>

#include "loader/node_priv.h"

#define ETCD_MEMBERS 3

static struct {
	pid_t pid[ETCD_MEMBERS];
	char url[ETCD_MEMBERS][64];
	const char *urls[ETCD_MEMBERS];
} etcd;

T_FN void etcd_member(unsigned int i)
{
	char name[16], dir[64], peers[64], clients[64], all[256] = "";
	unsigned int k;
	pid_t parent = getpid();
	int fd;

	for (k = 0; k < ETCD_MEMBERS; k++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%sm%u=http://127.0.0.1:%u", k ? "," : "", k, 23800 + k);
	snprintf(name, sizeof(name), "m%u", i);
	snprintf(dir, sizeof(dir), BL_RUN_DIR "/etcd%u", i);
	snprintf(peers, sizeof(peers), "http://127.0.0.1:%u", 23800 + i);
	snprintf(clients, sizeof(clients), "http://127.0.0.1:%u", 23790 + i);
	snprintf(etcd.url[i], sizeof(etcd.url[i]), "%s", clients);
	etcd.urls[i] = etcd.url[i];
	etcd.pid[i] = fork();
	CHECK(etcd.pid[i] >= 0, "%s", strerror(errno));
	if (etcd.pid[i])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = open(BL_RUN_DIR "/etcd.log", O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (getppid() != parent || fd < 0)
		_exit(1);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	execlp("etcd", "etcd", "--name", name, "--data-dir", dir, "--initial-advertise-peer-urls", peers, "--listen-peer-urls", peers, "--listen-client-urls", clients, "--advertise-client-urls", clients,
	       "--initial-cluster", all, "--unsafe-no-fsync", "--logger", "zap", "--log-level", "error", NULL);
	dprintf(STDERR_FILENO, "cannot run etcd: %s\n", strerror(errno));
	_exit(127);
}

/* What is left of a member that was killed is kept: etcd_member() takes it up again. */
T_FN void etcd_kill(unsigned int i)
{
	int st;

	kill(etcd.pid[i], SIGKILL);
	kill(etcd.pid[i], SIGCONT);
	CHECK(waitpid(etcd.pid[i], &st, 0) == etcd.pid[i], "%s", strerror(errno));
	etcd.pid[i] = 0;
}

T_FN void etcd_signal(unsigned int i, int sig)
{
	CHECK(!kill(etcd.pid[i], sig), "%s", strerror(errno));
}

T_FN size_t etcd_take(char *data, size_t one, size_t n, void *ctx)
{
	char *to = ctx;
	size_t have = strlen(to), fit = n < 4095 - have ? n : 4095 - have;

	(void)one;
	memcpy(to + have, data, fit);
	to[have + fit] = 0;
	return n;
}

/* As an operator with curl would: POST @body to @path of a member. Returns the HTTP status, 0: none. @answer: 4096 bytes. */
T_FN long etcd_post(unsigned int i, const char *path, const char *body, char *answer)
{
	char url[128];
	CURL *c = curl_easy_init();
	long http = 0;

	CHECK(c, "curl");
	*answer = 0;
	snprintf(url, sizeof(url), "%s%s", etcd.url[i], path);
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, 5000L);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, etcd_take);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, answer);
	if (curl_easy_perform(c) == CURLE_OK)
		curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &http);
	curl_easy_cleanup(c);
	return http;
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

/* Three members that agree on a leader. */
T_FN void etcd_up(void)
{
	uint64_t end = t_mono() + 60000000000ULL;
	char answer[4096];
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
