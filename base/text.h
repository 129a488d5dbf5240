/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A text that is put together piece by piece; each belongs to one thread. What is UTF-8. */
#ifndef BARLINE_BASE_TEXT_H
#define BARLINE_BASE_TEXT_H

#include <stddef.h>

/** struct bl_text - a text in @buf. What does not fit is cut off, and @used counts it as well. */
struct bl_text {
	char *buf;
	size_t size, used;
};

/**
 * bl_utf8_len - length of the UTF-8 sequence at @s, or 0 if there is none: RFC 3629, without
 * overlong forms and surrogates.
 */
size_t bl_utf8_len(const char *s);

/**
 * bl_text_plain - makes a name of any bytes fit for JSON, which refuses what is no UTF-8, and for
 * terminals, which obey control characters: a '?' takes the place of each byte of these.
 */
void bl_text_plain(char *s);

/** bl_text_add - appends to the text, as printf(3) does. */
void bl_text_add(struct bl_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
