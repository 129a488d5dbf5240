/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The JSON that the status sockets of the arbiter and of fault isolation answer with: jansson, plus
 * what both of them print alike.
 */
#ifndef BARLINE_ARBITER_STATUS_JSON_H
#define BARLINE_ARBITER_STATUS_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/** arb_json_number - @v as a JSON integer; a new reference, NULL if memory is short. */
static inline json_t *arb_json_number(uint64_t v)
{
	return json_integer((json_int_t)v);
}

/**
 * arb_json_text - @s as a JSON string; a new reference, NULL if memory is short. JSON is UTF-8: in
 * a string that is not, each byte above 0x7f becomes a question mark.
 */
json_t *arb_json_text(const char *s);

/**
 * arb_json_reasons - Counters of packets by BL_FCP_R_* as an object; a new reference.
 * @n: BL_FCP_R_COUNT counters. Those that are 0 are left out.
 */
json_t *arb_json_reasons(const uint64_t *n);

/**
 * arb_json_line - Write an object on one line, without spaces, and release it.
 * @o: may be NULL: memory was short.
 * @len: set to the length of the text.
 *
 * Returns a string from malloc() that ends with a newline; NULL if memory is short.
 */
char *arb_json_line(json_t *o, size_t *len);

#endif
