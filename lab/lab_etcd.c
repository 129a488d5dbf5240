// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See lab_etcd.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/library/curl.h"
#include "lab/lab_etcd.h"
#include "loader/node.h"

#define CLIENT_PORT 23790 /* of member 0, for clients */
#define PEER_PORT   23800 /* of member 0, for the other members */

void lab_etcd_url(unsigned int i, char *url, size_t size)
{
	snprintf(url, size, "http://127.0.0.1:%u", CLIENT_PORT + i);
}

void lab_etcd_exec(unsigned int i)
{
	char name[16], dir[64], peers[64], clients[64], all[256] = "";
	unsigned int k;
	int fd;

	for (k = 0; k < LAB_ETCD_MEMBERS; k++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%sm%u=http://127.0.0.1:%u",
			 k ? "," : "", k, PEER_PORT + k);
	snprintf(name, sizeof(name), "m%u", i);
	snprintf(dir, sizeof(dir), BL_RUN_DIR "/etcd%u", i);
	snprintf(peers, sizeof(peers), "http://127.0.0.1:%u", PEER_PORT + i);
	lab_etcd_url(i, clients, sizeof(clients));
	fd = open(BL_RUN_DIR "/etcd.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		_exit(1);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	execlp("etcd", "etcd", "--name", name, "--data-dir", dir, "--initial-advertise-peer-urls",
	       peers, "--listen-peer-urls", peers, "--listen-client-urls", clients,
	       "--advertise-client-urls", clients, "--initial-cluster", all, "--unsafe-no-fsync",
	       "--logger", "zap", "--log-level", "error", NULL);
	dprintf(STDERR_FILENO, "cannot run etcd: %s\n", strerror(errno));
	_exit(127);
}

static size_t append_answer(char *data, size_t one, size_t n, void *ctx)
{
	char *to = ctx;
	size_t have = strlen(to), left = LAB_ETCD_ANSWER - 1 - have, fit = n < left ? n : left;

	(void)one;
	memcpy(to + have, data, fit);
	to[have + fit] = 0;
	return n;
}

long lab_etcd_post(unsigned int i, const char *path, const char *body, long ms, char *answer)
{
	CURL *c = curl_easy_init();
	char at[64], url[128];
	long http = 0;

	*answer = 0;
	if (!c)
		return 0;
	lab_etcd_url(i, at, sizeof(at));
	snprintf(url, sizeof(url), "%s%s", at, path);
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, ms);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, append_answer);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, answer);
	if (curl_easy_perform(c) == CURLE_OK)
		curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &http);
	curl_easy_cleanup(c);
	return http;
}
