/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Output of the `barline` commands: error messages on stderr, tables or one JSON object on stdout,
 * a progress line on a terminal, and result files.
 */
#ifndef BARLINE_CLI_UTIL_OUT_H
#define BARLINE_CLI_UTIL_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CLI_SCHEMA 1 /* value of "schema" in every JSON object that a command prints */
#define CLI_USAGE  2 /* exit status of a command that was called wrongly */

/** struct cli_opts - Global options. Written while the command line is parsed, then read only. */
struct cli_opts {
	bool json;         /* -j: one JSON object on stdout instead of text */
	bool pretty;       /* --pretty: JSON in several lines */
	const char *netns; /* -n: name as in ip-netns(8), or a path; NULL: the current namespace */
	int verbose;       /* how many times -v was given */
	const char *title; /* what errors begin with, as "barline send"; NULL: "barline" */
};
extern struct cli_opts cli;

/**
 * cli_fail - Prints an error message: "barline COMMAND: MESSAGE" on stderr, as argp does for wrong
 * options, or with --json an object with "error" on stdout. Returns 1, the exit status of a
 * failure.
 */
int cli_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/** cli_usage - Same as cli_fail(), for a wrong command line. Returns CLI_USAGE. */
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/**
 * cli_keep_errors - From now on messages of cli_fail() and cli_usage() are not printed: the last
 * one is in @buf. For a command that owns the screen. NULL: they are printed again.
 */
void cli_keep_errors(char *buf, size_t size);
/** cli_say - Prints a line on stderr if -v was given. */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/** cli_json - Prints @obj, with "schema" added, on one line of stdout. Steals the reference. */
void cli_json(json_t *obj);

/**
 * struct col - One column of a table that is made from an array of JSON objects, so that text
 * output shows what --json contains.
 */
struct col {
	const char *key;  /* member of each object */
	const char *head; /* heading */
	/*
	 * 's' text, 'd' integer, 'n' counter, 'f' number with one decimal, 't' ns as a time with a
	 * unit, 'b' yes or nothing, 'k' bytes with a unit, 'K' a counter of bytes, with a unit,
	 * 'r' a rate of bits, in thousands, millions or billions
	 */
	char fmt;
};

/** out_cell - Prints one value as a cell of a table, without padding. */
void out_cell(const json_t *v, char fmt, FILE *f);
/** out_table - Prints the objects in @rows as a table with @ncols columns to @f. */
void out_table(FILE *f, json_t *rows, const struct col *cols, size_t ncols);
#define OUT_TABLE(f, rows, cols) out_table(f, rows, cols, sizeof(cols) / sizeof((cols)[0]))

/**
 * out_rows - Prints the result of a `show` command: with --json the object {"schema", @key: @rows},
 * else the table, or the line @none if @rows is empty. Steals the reference to @rows. Returns 0.
 */
int out_rows(const char *key, json_t *rows, const struct col *cols, size_t ncols, const char *none);

/** out_time - Formats @ns with a suitable unit, as in "1.25 ms". Returns @buf. */
char *out_time(int64_t ns, char *buf, size_t size);
/** out_bits - Formats a number of bits per second, as in "12.0 M". Returns @buf. */
char *out_bits(double bits, char *buf, size_t size);
/** out_bytes - Formats @bytes with a suitable unit, as in "12.0 KiB". Returns @buf. */
char *out_bytes(uint64_t bytes, char *buf, size_t size);

/** out_progress - Replaces the progress line on stderr. Prints nothing if stderr is no terminal. */
void out_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/** out_progress_end - Erases the progress line. */
void out_progress_end(void);

/** out_dir - Creates directory @dir unless it exists. Returns 0, or 1 after a message. */
int out_dir(const char *dir);
/**
 * out_open - Opens @dir/@name for writing and creates @dir if needed. Returns NULL after a message.
 */
FILE *out_open(const char *dir, const char *name);
/**
 * out_close - Closes @f, which out_open() returned for the same names. Returns 0, or 1 after a
 * message if any of the data could not be written.
 */
int out_close(const char *dir, const char *name, FILE *f);

#endif
