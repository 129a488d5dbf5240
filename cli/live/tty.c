// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See tty.h. */
#include "cli/live/tty.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/time.h"

/* the other screen, and no cursor; and the way back */
#define ENTER    "\033[?1049h\033[?25l"
#define LEAVE    "\033[?25h\033[?1049l"
#define LEAVE_S  1 /* a terminal that is stopped does not keep the process from ending */
#define PUT_MOST 1024
/* the bytes of a key come together; ESC alone is followed by nothing */
#define ESC_NS 50000000ULL

static struct {
	bool open, keys; /* @keys: stdin is a terminal, too */
	struct termios before;
	sigset_t waiting; /* signals that get through while this waits */
	char in[64];      /* bytes that are no complete key yet */
	size_t n;
} tty;

static volatile sig_atomic_t ends, stops, redraws;

static void on_end(int sig)
{
	(void)sig;
	ends = 1;
}

static void on_stop(int sig)
{
	(void)sig;
	stops = 1;
}

static void on_redraw(int sig)
{
	(void)sig;
	redraws = 1;
}

static const struct {
	int sig;
	void (*fn)(int);
} handlers[] = { { SIGINT, on_end },     { SIGTERM, on_end },  { SIGHUP, on_end },
		 { SIGQUIT, on_end },    { SIGTSTP, on_stop }, { SIGCONT, on_redraw },
		 { SIGWINCH, on_redraw } };
#define NHANDLERS (sizeof(handlers) / sizeof(handlers[0]))

bool tty_usable(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/*
 * Writes to the terminal. One that was stopped by ^S is waited for up to @wait_s, -1: without a
 * limit, but not when the process is to end. Returns false if not all was written.
 */
static bool put(const char *s, size_t n, int wait_s)
{
	struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };
	const struct timespec limit = { .tv_sec = wait_s };
	ssize_t k;

	while (n) {
		/* signals get through here only: none comes between a look at @ends and the wait */
		if (wait_s < 0 && ends)
			return false;
		if (ppoll(&p, 1, wait_s < 0 ? NULL : &limit, wait_s < 0 ? &tty.waiting : NULL) <=
		    0) {
			if (wait_s < 0 && errno == EINTR)
				continue;
			return false;
		}
		/* a terminal has room for so much when it says that it has room */
		k = write(STDOUT_FILENO, s, n < PUT_MOST ? n : PUT_MOST);
		if (k < 0 && errno != EINTR)
			return false;
		s += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
	return true;
}

static void take(void)
{
	struct termios t = tty.before;

	if (tty.keys) {
		t.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
		t.c_cc[VMIN] = 1;
		t.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSANOW, &t);
	}
	put(ENTER, strlen(ENTER), LEAVE_S);
}

static void give_back(void)
{
	put(LEAVE, strlen(LEAVE), LEAVE_S);
	if (tty.keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &tty.before);
}

int tty_open(void)
{
	struct sigaction sa = { 0 };
	sigset_t block;
	size_t k;

	tty.keys = isatty(STDIN_FILENO);
	if (tty.keys && tcgetattr(STDIN_FILENO, &tty.before))
		return -errno;
	/* blocked except while tty_wait() waits: none comes between a look at a flag and that */
	sigemptyset(&block);
	for (k = 0; k < NHANDLERS; k++) {
		sa.sa_handler = handlers[k].fn; /* no SA_RESTART: they interrupt a wait */
		sigaction(handlers[k].sig, &sa, NULL);
		sigaddset(&block, handlers[k].sig);
	}
	sigprocmask(SIG_BLOCK, &block, &tty.waiting);
	tty.open = true;
	take();
	return 0;
}

void tty_close(void)
{
	if (!tty.open)
		return;
	tty.open = false;
	give_back();
	sigprocmask(SIG_SETMASK, &tty.waiting, NULL);
}

/* ^Z: the shell gets the terminal as it was, and the process is stopped as by default. */
static void stop_here(void)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL }, sa = { .sa_handler = on_stop };
	sigset_t only;

	give_back();
	sigaction(SIGTSTP, &dfl, NULL);
	sigemptyset(&only);
	sigaddset(&only, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &only, NULL); /* it is stopped here, until SIGCONT */
	sigprocmask(SIG_BLOCK, &only, NULL);
	sigaction(SIGTSTP, &sa, NULL);
	take();
}

void tty_size(size_t *width, size_t *height)
{
	struct winsize w;

	*width = 80;
	*height = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w))
		return;
	*width = w.ws_col ? w.ws_col : 80;
	*height = w.ws_row ? w.ws_row : 24;
}

bool tty_draw(const struct live_lines *l)
{
	char *text = NULL;
	size_t size, i;
	FILE *f = open_memstream(&text, &size);
	bool ok;

	if (!f)
		return true; /* the next one may find memory */
	/* each line is erased to its end, and what is below all of them */
	fputs("\033[H", f);
	for (i = 0; i < l->n; i++)
		fprintf(f, "%s%s%s\033[K%s", i == l->heading ? "\033[7m" : "", l->line[i],
			i == l->heading ? "\033[m" : "", i + 1 < l->n ? "\r\n" : "");
	fputs("\033[J", f);
	fclose(f);
	ok = put(text, size, -1);
	free(text);
	return ok;
}

size_t tty_key_of(const char *s, size_t n, int *key)
{
	static const struct {
		const char *s; /* behind ESC */
		int key;
	} keys[] = { { "[A", LIVE_UP },         { "[B", LIVE_DOWN }, { "[C", LIVE_RIGHT },
		     { "[D", LIVE_LEFT },       { "OA", LIVE_UP },   { "OB", LIVE_DOWN },
		     { "OC", LIVE_RIGHT },      { "OD", LIVE_LEFT }, { "[5~", LIVE_PAGE_UP },
		     { "[6~", LIVE_PAGE_DOWN }, { "[H", LIVE_HOME }, { "[1~", LIVE_HOME } };
	size_t k, len = 2;

	*key = -1;
	if (!n)
		return 0;
	if (s[0] != '\033') {
		*key = (unsigned char)s[0];
		return 1;
	}
	if (n < 2)
		return 0;
	if (s[1] != '[' && s[1] != 'O')
		return 1; /* ESC alone, and another key behind it */
	while (len < n && s[1] == '[' && (s[len] < '@' || s[len] > '~'))
		len++;
	if (len >= n)
		return n < sizeof(tty.in) / 2 ? 0 : n; /* an endless one is thrown away */
	len++;
	for (k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
		if (strlen(keys[k].s) == len - 1 && !memcmp(s + 1, keys[k].s, len - 1))
			*key = keys[k].key;
	return len;
}

/* Takes the next key out of what has been read. Returns false if there is none. */
static bool next_key(int *key)
{
	size_t used = tty_key_of(tty.in, tty.n, key);

	tty.n -= used;
	memmove(tty.in, tty.in + used, tty.n);
	return used;
}

static struct timespec left(uint64_t until)
{
	uint64_t now = bl_mono_ns(), ns = until > now ? until - now : 0;

	return (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
}

enum tty_event tty_wait(uint64_t until_ns, int *key)
{
	struct pollfd p = { .fd = tty.keys ? STDIN_FILENO : -1, .events = POLLIN };
	uint64_t until = until_ns, esc = bl_mono_ns() + ESC_NS;
	struct timespec t;
	ssize_t got;
	int n;

	for (;;) {
		if (ends)
			return TTY_END;
		if (stops) {
			stops = 0;
			stop_here();
			redraws = 1;
		}
		if (redraws) {
			redraws = 0;
			return TTY_REDRAW;
		}
		if (next_key(key))
			return TTY_KEY;
		until = tty.n && esc < until_ns ? esc : until_ns;
		t = left(until);
		n = ppoll(&p, 1, &t, &tty.waiting);
		if (n < 0)
			continue; /* a signal, whose flag says what it is */
		if (!n && tty.n) {
			tty.n = 0; /* ESC alone */
			continue;
		}
		if (!n)
			return TTY_TIME;
		got = read(STDIN_FILENO, tty.in + tty.n, sizeof(tty.in) - tty.n);
		if (got <= 0 && errno != EINTR && errno != EAGAIN)
			return TTY_END; /* the terminal is gone */
		if (got == 0)
			return TTY_END;
		tty.n += got > 0 ? (size_t)got : 0;
		esc = bl_mono_ns() + ESC_NS;
	}
}
