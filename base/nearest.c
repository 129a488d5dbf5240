/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See nearest.h. */
#include "base/nearest.h"

#include <string.h>

#define LONGEST 63

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

unsigned int bl_slips(const char *a, const char *b)
{
	unsigned int row[3][LONGEST + 1], *above2 = row[0], *above = row[1], *now = row[2], *last;
	size_t n = strlen(a), m = strlen(b), i, j;

	if (n > LONGEST || m > LONGEST)
		return (unsigned int)(n > m ? n : m);
	for (j = 0; j <= m; j++)
		now[j] = (unsigned int)j;
	for (i = 1; i <= n; i++) {
		last = above2;
		above2 = above;
		above = now;
		now = last;
		now[0] = (unsigned int)i;
		for (j = 1; j <= m; j++) {
			now[j] = least(least(above[j], now[j - 1]) + 1,
				       above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], above2[j - 2] + 1);
		}
	}
	return now[m];
}

void bl_nearest_try(struct bl_nearest *near, const char *candidate)
{
	size_t n = strlen(near->word);
	unsigned int slips;

	if (n >= 2 && !strncmp(near->word, candidate, n))
		slips = candidate[n] != '\0';
	else
		slips = bl_slips(near->word, candidate);
	if (slips > (n + 2) / 3 || slips >= n || (near->best && slips >= near->slips))
		return;
	near->best = candidate;
	near->slips = slips;
}

const char *bl_nearest_of(const char *word, const char *const *candidates, size_t n)
{
	struct bl_nearest near = { .word = word };
	size_t i;

	for (i = 0; i < n; i++)
		if (candidates[i])
			bl_nearest_try(&near, candidates[i]);
	return near.best;
}
