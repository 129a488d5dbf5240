/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What somebody may have meant by a word that is none: the candidate that the fewest slips of the
 * fingers lead to.
 *
 *	struct bl_nearest near = { .word = "prots" };
 *
 *	bl_nearest_try(&near, "nodes");
 *	bl_nearest_try(&near, "ports");
 *	near.best is "ports": two letters were swapped, which is one slip
 */
#ifndef BARLINE_BASE_NEAREST_H
#define BARLINE_BASE_NEAREST_H

#include <stddef.h>

/** struct bl_nearest - the search for one word. */
struct bl_nearest {
	const char *word;   /* what was typed */
	const char *best;   /* the nearest candidate; NULL: none is near */
	unsigned int slips; /* between the two, if there is one */
};

/**
 * bl_slips - the least number of letters that have to be inserted, removed, replaced or swapped
 * with their neighbour to make one word of the other (Damerau and Levenshtein; no letter takes part
 * twice). Of words longer than 63 letters, the result is the length of the longer one.
 */
unsigned int bl_slips(const char *a, const char *b);

/**
 * bl_nearest_try - compares one candidate, which must live as long as the search. It is near if the
 * word is its beginning, of at least two letters, or at most a third of the word's letters are
 * wrong; of two that are equally near, the first one counts.
 */
void bl_nearest_try(struct bl_nearest *near, const char *candidate);

/** bl_nearest_of - the nearest of @n candidates, or NULL. An element of NULL is left out. */
const char *bl_nearest_of(const char *word, const char *const *candidates, size_t n);

#endif
