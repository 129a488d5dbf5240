/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The terminal of `barline top`: the other screen of the terminal without echo and lines, keys, and
 * signals. It is plain ANSI: every terminal that is in use understands the few sequences, and a
 * library for terminals would be loaded by each of barline's commands.
 *
 * The terminal is put back by tty_close(), by a signal that ends the process, and before the
 * process is stopped by ^Z; when it goes on, the screen is there again.
 */
#ifndef BARLINE_CLI_LIVE_TTY_H
#define BARLINE_CLI_LIVE_TTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/live/screen.h"

/** tty_usable - whether stdout is a terminal that understands the sequences. */
bool tty_usable(void);

/** tty_open - takes the terminal. Returns 0 or -errno. */
int tty_open(void);
/** tty_close - puts the terminal back as it was. No-op if it is not open. */
void tty_close(void);

/** tty_size - the size of the terminal, 80 columns and 24 lines if it does not say. */
void tty_size(size_t *width, size_t *height);

/** tty_draw - shows a screen, in one write. Returns false if the terminal is gone. */
bool tty_draw(const struct live_lines *l);

enum tty_event {
	TTY_TIME,   /* the time is over */
	TTY_KEY,    /* *@key was pressed */
	TTY_REDRAW, /* the size has changed, or the process was stopped and goes on */
	TTY_END,    /* a signal that ends the process, or the terminal is gone */
};

/** tty_wait - waits until something happens, or until @until_ns (CLOCK_MONOTONIC). */
enum tty_event tty_wait(uint64_t until_ns, int *key);

/**
 * tty_key_of - takes the first key out of what a terminal has sent. Returns how many of the @n
 * bytes it has taken, 0: they are the beginning of a key. *@key: enum live_key or a character; -1:
 * a sequence that is no key here.
 */
size_t tty_key_of(const char *s, size_t n, int *key);

#endif
