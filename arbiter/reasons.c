// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See arbiter/reasons.h. */
#include "arbiter/reasons.h"

#include "maps/fcp_abi.h"

static const char *const reasons[] = {
#define X(sym, name, text) [BL_FCP_R_##sym] = name,
	BL_FCP_REASONS(X)
#undef X
};

void arb_put_reasons(FILE *o, const char *key, const uint64_t *n)
{
	const char *sep = "";
	unsigned int r;

	fprintf(o, ",\"%s\":{", key);
	for (r = 0; r < BL_FCP_R_COUNT; r++)
		if (n[r]) {
			fprintf(o, "%s\"%s\":%llu", sep, reasons[r], (unsigned long long)n[r]);
			sep = ",";
		}
	fputc('}', o);
}
