// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See message.h. */
#include "cli/util/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int message_parse(struct message_name *m, const char *text)
{
	const char *at = strrchr(text, '@');
	char src[64], *end;

	memset(m, 0, sizeof(*m));
	if (!at || at[1] < '0' || at[1] > '9' || at - text >= (ptrdiff_t)sizeof(src))
		return -EINVAL;
	errno = 0;
	m->ts = strtoull(at + 1, &end, 10);
	if (errno || *end || !m->ts)
		return -EINVAL;
	if (at == text)
		return 0;
	memcpy(src, text, (size_t)(at - text));
	src[at - text] = '\0';
	return bl_addr_parse(&m->src, src);
}

char *message_format(const struct message_name *m, char *buf, size_t size)
{
	char src[64] = "";

	if (m->src.port)
		bl_addr_format(&m->src, src, sizeof(src));
	snprintf(buf, size, "%s@%" PRIu64, src, m->ts);
	return buf;
}
