/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A line of text as words, as a shell has them: blanks separate words; '...' keeps everything;
 * "..." keeps everything except a backslash, which takes the next character as it is, as it does
 * outside quotes; # begins a comment where a word could begin. Nothing is expanded.
 *
 * Example: send "10.0.0.2:61700" 'it''s #1' # a comment
 * has the words: send, 10.0.0.2:61700, its #1
 */
#ifndef BARLINE_BASE_WORDS_H
#define BARLINE_BASE_WORDS_H

/**
 * bl_words - splits a line in place; the words point into it.
 * @words: room for @most words
 * @why: gets what is wrong with the line
 * Returns the number of words, or -EINVAL (a quote that does not end, a backslash at the end) or
 * -E2BIG (too many words).
 */
int bl_words(char *line, char **words, int most, const char **why);

#endif
