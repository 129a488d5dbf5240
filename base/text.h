/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A text that is put together piece by piece. Each text belongs to one thread. */
#ifndef BARLINE_BASE_TEXT_H
#define BARLINE_BASE_TEXT_H

#include <stddef.h>

/** struct bl_text - a text in @buf. What does not fit is cut off, and @used counts it as well. */
struct bl_text {
	char *buf;
	size_t size, used;
};

/** bl_text_add - appends to the text, as printf(3) does. */
void bl_text_add(struct bl_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
