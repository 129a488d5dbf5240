// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See batch.h. */
#include "cli/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/words.h"
#include "cli/util/out.h"

#define WORDS_MAX 512

/** struct batch - the batch at work. */
struct batch {
	const char *file; /* for messages */
	FILE *f;
	bool is_stdin;
	unsigned int line;  /* that was read last */
	unsigned int first; /* of the command, which may go on in further lines */
	pid_t self;
	int (*run)(int argc, char **argv);
};

/* Says that a line failed, where, and how. */
static void report(const struct batch *b, int status, const char *what)
{
	if (!cli.json) {
		fprintf(stderr, "barline: %s:%u: %s\n", b->file, b->first, what);
		return;
	}
	cli_json(json_pack("{s:s, s:s, s:i, s:i}", "error", what, "file", b->file, "line",
			   (int)b->first, "status", status));
}

/* Reads a command, which goes on in the next line if a line ends with a backslash. */
static bool read_command(struct batch *b, char **text, size_t *size)
{
	char *more = NULL;
	size_t room = 0, len;
	ssize_t n = getline(text, size, b->f);

	b->first = ++b->line;
	while (n >= 2 && (*text)[n - 1] == '\n' && (*text)[n - 2] == '\\') {
		ssize_t k = getline(&more, &room, b->f);
		char *longer;

		(*text)[n - 2] = '\0';
		if (k < 0)
			break;
		b->line++;
		len = (size_t)n - 2;
		longer = realloc(*text, len + (size_t)k + 1);
		if (!longer)
			break;
		memcpy(longer + len, more, (size_t)k + 1);
		*text = longer;
		*size = len + (size_t)k + 1;
		n = (ssize_t)len + k;
	}
	free(more);
	return n >= 0;
}

/* Never returns. */
static void run_child(const struct batch *b, int argc, char **argv)
{
	int null;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != b->self)
		_exit(1);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	/*
	 * The lines behind this one are the batch's. Without the descriptor, exit() cannot move the
	 * position of the file either, which both processes share.
	 */
	close(fileno(b->f));
	if (b->is_stdin) {
		null = open("/dev/null", O_RDONLY);
		if (null > 0) {
			dup2(null, STDIN_FILENO);
			close(null);
		}
	}
	exit(b->run(argc, argv));
}

/* Runs one command. Returns its exit status; @stop: nothing is to follow. */
static int run_line(const struct batch *b, int argc, char **argv, bool *stop)
{
	char what[512];
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		run_child(b, argc, argv);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0) {
		snprintf(what, sizeof(what), "cannot start a process: %s", strerror(errno));
		report(b, 1, what);
		return 1;
	}
	if (WIFSIGNALED(status)) {
		*stop = WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGQUIT;
		snprintf(what, sizeof(what), "\"%s%s%s\" was ended by signal %d", argv[1],
			 argc > 2 ? " " : "", argc > 2 ? argv[2] : "", WTERMSIG(status));
		report(b, 1, what);
		return 1;
	}
	status = WEXITSTATUS(status);
	if (status) {
		snprintf(what, sizeof(what), "\"%s%s%s\" failed with status %d", argv[1],
			 argc > 2 ? " " : "", argc > 2 ? argv[2] : "", status);
		report(b, status, what);
	}
	return status;
}

/* Runs all lines. */
static int run_all(struct batch *b, bool force)
{
	static char program[] = "barline";
	char *argv[WORDS_MAX + 2] = { program }, *text = NULL;
	const char *why;
	bool stop = false;
	size_t size = 0;
	int n, rc, failed = 0;

	while (!stop && read_command(b, &text, &size)) {
		n = bl_words(text, argv + 1, WORDS_MAX, &why);
		if (!n)
			continue;
		rc = CLI_USAGE;
		if (n < 0) {
			report(b, rc, why);
		} else {
			argv[n + 1] = NULL;
			rc = run_line(b, n + 1, argv, &stop);
		}
		failed = failed && force ? failed : rc;
		stop |= rc && !force;
	}
	free(text);
	if (ferror(b->f))
		return cli_fail("%s: %s", b->file, strerror(errno));
	return failed && force ? 1 : failed;
}

int batch_run(const char *file, bool force, int (*run)(int argc, char **argv))
{
	struct batch b = {
		.file = file, .run = run, .self = getpid(), .is_stdin = !strcmp(file, "-")
	};
	struct sigaction ignore = { .sa_handler = SIG_IGN }, intr, quit;
	int rc;

	b.f = b.is_stdin ? stdin : fopen(file, "re");
	if (!b.f)
		return cli_fail("%s: %s", file, strerror(errno));
	/* as system(3): ^C is for the command that runs */
	sigaction(SIGINT, &ignore, &intr);
	sigaction(SIGQUIT, &ignore, &quit);
	rc = run_all(&b, force);
	sigaction(SIGINT, &intr, NULL);
	sigaction(SIGQUIT, &quit, NULL);
	if (!b.is_stdin)
		fclose(b.f);
	return rc;
}
