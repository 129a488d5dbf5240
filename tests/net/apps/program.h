/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program on a host of the rack, with pipes to its standard input and from its standard output.
 *
 * 	struct program p;
 *
 * 	program_start(&p, 0, (const char *[]){ "examples/chat", "-p", "61700", addr, NULL });
 * 	program_say(&p, "hello\n");
 * 	UNTIL("waits for the line", program_said(&p, "hello") == 1);
 * 	program_end(&p, SIGTERM);
 */
#ifndef BARLINE_TESTS_PROGRAM_H
#define BARLINE_TESTS_PROGRAM_H

#include "tests/net/barline_run.h"
#include "tests/net/rack.h"

struct program {
	pid_t pid;
	int in, out;
	size_t len;
	char text[1 << 18]; /* what it has printed */
};

/* Writes the address of port @port of host @host as the programs read it. Returns @text. */
T_FN const char *program_addr(unsigned int host, unsigned int port, char text[64])
{
	struct bl_addr a = { .port = (uint16_t)port };
	uint8_t v4[16];

	lab_host_addr(&rack.lab.nodes[rack_host(host)], AF_INET, v4);
	memset(a.ip, 0, sizeof(a.ip));
	a.ip[10] = a.ip[11] = 0xff;
	memcpy(a.ip + 12, v4, 4);
	return bl_addr_format(&a, text, 64);
}

/*
 * Starts @argv on a host. argv[0] is relative to the build folder, unless it begins with a slash.
 */
T_FN void program_start(struct program *p, unsigned int host, const char *const *argv)
{
	char path[512];
	int in[2], out[2];
	pid_t parent = getpid();

	CHECK(barline_path(path, sizeof(path) - 64), "where am I?");
	strcpy(strrchr(path, '/') + 1, argv[0]);
	CHECK(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC), "%s", strerror(errno));
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fflush(NULL);
	p->len = 0;
	p->text[0] = 0;
	p->pid = fork();
	CHECK(p->pid >= 0, "%s", strerror(errno));
	if (!p->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		rack_enter(rack_host(host));
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execv(argv[0][0] == '/' ? argv[0] : path, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	p->in = in[1];
	p->out = out[0];
}

T_FN void program_say(const struct program *p, const char *line)
{
	CHECK(write(p->in, line, strlen(line)) == (ssize_t)strlen(line), "%s", strerror(errno));
}

/* Reads what the program has printed since, and returns how often @what is in all of it. */
T_FN unsigned int program_said(struct program *p, const char *what)
{
	unsigned int times = 0;
	const char *at;
	ssize_t n;

	while ((n = read(p->out, p->text + p->len, sizeof(p->text) - 1 - p->len)) > 0)
		p->len += (size_t)n;
	p->text[p->len] = 0;
	for (at = p->text; *what && (at = strstr(at, what)); at += strlen(what))
		times++;
	return times;
}

/* Returns the line, without its end, that begins with @what; NULL: it was not printed yet. */
T_FN const char *program_line(struct program *p, const char *what, char line[256])
{
	const char *at;

	program_said(p, what);
	for (at = p->text; (at = strstr(at, what)); at++)
		if ((at == p->text || at[-1] == '\n') && strchr(at, '\n')) {
			snprintf(line, 256, "%.*s", (int)strcspn(at, "\n"), at);
			return line;
		}
	return NULL;
}

T_FN bool program_ended(struct program *p, int *status)
{
	return waitpid(p->pid, status, WNOHANG) == p->pid;
}

#endif
