/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `barline metrics --listen` beside a node of the rack, and a client of it.
 *
 *	exporter_start(the_switch(), NULL);
 *	CHECK(http_get("/metrics") == 200 && metric("barline_daemon_up{node=\"s1\"}") == 1);
 */
#ifndef BARLINE_TESTS_EXPORTER_H
#define BARLINE_TESTS_EXPORTER_H

#include "tests/net/barline_run.h"
#include "tests/net/rack.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#define EXPORTER_PORT 9469

static pid_t exporter, exporter_keeper;
static int exporter_rope; /* closed when the test has ended: the keeper then ends the exporter */
static const char *exporter_tls; /* folder of certificates: h1.pem, h1.key, ca.pem; NULL: HTTP */
static int exporter_node;        /* index in rack.lab; -1: the network namespace of the test */
static char http_said[8 << 20];  /* the last answer, without its head */
static char http_head[4096];

/*
 * Starts a process that ends the exporter when the test ends, however that happens. The signal that
 * a parent's death sends is lost when a process becomes another user.
 */
T_FN void exporter_keep(void)
{
	int rope[2];
	char c;

	CHECK(!pipe2(rope, O_CLOEXEC), "%s", strerror(errno));
	exporter_keeper = fork();
	CHECK(exporter_keeper >= 0, "%s", strerror(errno));
	if (!exporter_keeper) {
		close(rope[1]);
		while (read(rope[0], &c, 1) < 0 && errno == EINTR)
			;
		kill(exporter, SIGKILL);
		_exit(0);
	}
	close(rope[0]);
	exporter_rope = rope[1];
}

/* Starts the exporter in the namespace of @node, and waits until it is ready. @user: NULL: root */
T_FN void exporter_start(int node, const char *user)
{
	char barline[512], listen_at[32], line[256];
	int home = node >= 0 ? rack_away((unsigned int)node) : -1, out[2];
	struct bl_err err;
	FILE *f;

	CHECK(barline_path(barline, sizeof(barline)) && !pipe2(out, O_CLOEXEC), "barline");
	CHECK(!bl_iface_up("lo", &err), "%s", err.text);
	snprintf(listen_at, sizeof(listen_at), "127.0.0.1:%d", EXPORTER_PORT);
	fflush(NULL);
	exporter = fork();
	CHECK(exporter >= 0, "%s", strerror(errno));
	if (!exporter) {
		const char *argv[16] = { barline, "metrics", "--listen", listen_at };
		char tls[3][128];
		int n = 4;

		snprintf(tls[0], sizeof(tls[0]), "--tls-cert=%s/h1.pem",
			 exporter_tls ? exporter_tls : "");
		snprintf(tls[1], sizeof(tls[1]), "--tls-key=%s/h1.key",
			 exporter_tls ? exporter_tls : "");
		snprintf(tls[2], sizeof(tls[2]), "--tls-ca=%s/ca.pem",
			 exporter_tls ? exporter_tls : "");
		if (user) {
			argv[n++] = "--user";
			argv[n++] = user;
		}
		for (home = 0; exporter_tls && home < 3; home++)
			argv[n++] = tls[home];
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		execv(barline, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	exporter_keep();
	if (home >= 0)
		rack_back(home);
	exporter_node = node;
	close(out[1]);
	f = fdopen(out[0], "r");
	CHECK(f && fgets(line, sizeof(line), f) && !strncmp(line, "metrics at", 10), "the exporter "
										     "does not "
										     "start");
	fclose(f);
}

T_FN void exporter_stop(void)
{
	int st;

	CHECK(!kill(exporter, SIGTERM) && waitpid(exporter, &st, 0) == exporter && WIFEXITED(st) &&
		      !WEXITSTATUS(st),
	      "the exporter does not end well");
	/* its number may be another's by now */
	CHECK(!kill(exporter_keeper, SIGKILL) &&
		      waitpid(exporter_keeper, NULL, 0) == exporter_keeper,
	      "%s", strerror(errno));
	close(exporter_rope);
}

/* Returns a connection to @port in the exporter's namespace. */
T_FN int http_connect(uint16_t port)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval patience = { .tv_sec = 60 };
	int home = exporter_node >= 0 ? rack_away((unsigned int)exporter_node) : -1, fd;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		fd = -1;
	}
	if (home >= 0)
		rack_back(home);
	return fd;
}

/* Sends @request and reads to the end of the answer. Returns its status; 0: none came. */
T_FN int http_ask(uint16_t port, const char *request)
{
	static char text[sizeof(http_said)];
	int fd = http_connect(port), status = 0;
	size_t len = 0;
	ssize_t n = 0;
	char *end;

	if (fd < 0)
		return 0;
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request))
		while (len < sizeof(text) - 1 &&
		       (n = recv(fd, text + len, sizeof(text) - 1 - len, 0)) > 0)
			len += (size_t)n;
	close(fd);
	text[len] = '\0';
	end = strstr(text, "\r\n\r\n");
	if (!end || sscanf(text, "HTTP/1.%*d %d", &status) != 1)
		return 0;
	*end = '\0';
	snprintf(http_head, sizeof(http_head), "%.4000s", text);
	memcpy(http_said, end + 4, len - (size_t)(end + 4 - text) + 1);
	return status;
}

T_FN int http_get_from(uint16_t port, const char *path, const char *accept)
{
	static char request[16384];

	snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n%s%s%s\r\n", path,
		 accept ? "Accept: " : "", accept ? accept : "", accept ? "\r\n" : "");
	return http_ask(port, request);
}

T_FN int http_get(const char *path)
{
	return http_get_from(EXPORTER_PORT, path, NULL);
}

/* Returns the value of a sample in the last answer, which begins with @sample; -1: there is none.
 */
T_FN double metric(const char *sample)
{
	const char *at = http_said;
	size_t len = strlen(sample);

	while (at && (at = strstr(at, sample))) {
		if ((at == http_said || at[-1] == '\n') && at[len] == ' ')
			return strtod(at + len + 1, NULL);
		at += len;
	}
	return -1;
}

#endif
