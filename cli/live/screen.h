/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a reading of `barline top` (rows.h) is shown: as a screen of some width and height, which
 * keys change, or as a block of text. Pure functions: no terminal, no clock.
 */
#ifndef BARLINE_CLI_LIVE_SCREEN_H
#define BARLINE_CLI_LIVE_SCREEN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum live_table { LIVE_NODES, LIVE_PORTS, LIVE_ENDPOINTS, LIVE_TABLES };

/* Keys that are no characters. */
enum live_key {
	LIVE_UP = 256,
	LIVE_DOWN,
	LIVE_LEFT,
	LIVE_RIGHT,
	LIVE_PAGE_UP,
	LIVE_PAGE_DOWN,
	LIVE_HOME
};

/** struct live_view - what the keys have chosen. */
struct live_view {
	enum live_table table;
	size_t node;               /* 0: all nodes; else the number of the node, from 1 on */
	size_t sort[LIVE_TABLES];  /* column, by table */
	bool reverse[LIVE_TABLES]; /* texts fall and numbers rise, instead of the other way round */
	size_t first;              /* row at the top */
	size_t page;               /* rows that fit; by live_screen() */
	bool paused, help, quit;
};

/** live_key - changes the view. @nodes: of the reading. Returns whether the key means anything. */
bool live_key(struct live_view *v, int key, size_t nodes);

/** struct live_lines - a screen: lines without control characters. */
struct live_lines {
	char **line;
	size_t n;
	size_t heading; /* which of them is the heading of the table; @n: none */
};

/**
 * live_screen - draws a reading: at most @height lines of at most @width columns. The view's @first
 * and @node are corrected if there are fewer rows or nodes now. NULL: no reading yet. The caller
 * calls live_lines_free().
 */
void live_screen(const json_t *reading, struct live_view *v, size_t width, size_t height,
		 struct live_lines *out);
void live_lines_free(struct live_lines *l);

/** live_text - prints a reading as a block of text. */
void live_text(FILE *f, const json_t *reading);

#endif
