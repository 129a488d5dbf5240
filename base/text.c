// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See text.h. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

size_t bl_utf8_len(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n = u[0] < 0x80       ? 1
		   : u[0] >> 5 == 6  ? 2
		   : u[0] >> 4 == 14 ? 3
		   : u[0] >> 3 == 30 ? 4
				     : 0;
	size_t k;

	for (k = 1; k < n; k++)
		if (u[k] >> 6 != 2)
			return 0;
	if ((n == 2 && u[0] < 0xc2) || (n == 3 && u[0] == 0xe0 && u[1] < 0xa0) ||
	    (n == 3 && u[0] == 0xed && u[1] > 0x9f) || (n == 4 && u[0] == 0xf0 && u[1] < 0x90) ||
	    (n == 4 && (u[0] > 0xf4 || (u[0] == 0xf4 && u[1] > 0x8f))))
		return 0;
	return n;
}

void bl_text_plain(char *s)
{
	size_t len;

	for (; *s; s += len ? len : 1) {
		const unsigned char *u = (const unsigned char *)s;

		len = bl_utf8_len(s);
		if (!len || u[0] < ' ' || u[0] == 0x7f)
			s[0] = '?';
		else if (u[0] == 0xc2 && u[1] < 0xa0) /* control characters of ISO 6429 */
			s[0] = s[1] = '?';
	}
}

void bl_text_add(struct bl_text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->used >= t->size)
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->used, t->size - t->used, fmt, ap);
	va_end(ap);
	t->used += n > 0 ? (size_t)n : 0;
}
