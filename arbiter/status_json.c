// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See arbiter/status_json.h. */
#include <stdlib.h>
#include <string.h>

#include "arbiter/status_json.h"

#include "maps/fcp_abi.h"

static const char *const reason_names[] = {
#define X(sym, name, text) [BL_FCP_R_##sym] = name,
	BL_FCP_REASONS(X)
#undef X
};

json_t *arb_json_text(const char *s)
{
	json_t *o = json_string(s);
	char *ascii, *c;

	if (o)
		return o;
	ascii = strdup(s);
	for (c = ascii; c && *c; c++)
		if ((unsigned char)*c > 0x7f)
			*c = '?';
	o = json_string(ascii);
	free(ascii);
	return o;
}

json_t *arb_json_reasons(const uint64_t *n)
{
	json_t *o = json_object();
	unsigned int r;

	for (r = 0; o && r < BL_FCP_R_COUNT; r++)
		if (n[r])
			json_object_set_new(o, reason_names[r], arb_json_number(n[r]));
	return o;
}

char *arb_json_line(json_t *o, size_t *len)
{
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL, *line = NULL;

	json_decref(o);
	if (text) {
		*len = strlen(text) + 1;
		line = realloc(text, *len + 1);
		if (line)
			memcpy(line + *len - 1, "\n", 2);
		else
			free(text);
	}
	return line;
}
