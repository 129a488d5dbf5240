/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rates as people write them, as in tc(8): "250mbit", "1gbit", "10000000" (bits per second),
 * "125mbps" (bytes per second), "1.5gbit". Decimal prefixes count in thousands, those with an i
 * (kibit) in 1024.
 */
#ifndef BARLINE_BASE_RATE_H
#define BARLINE_BASE_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The rates that a meter can keep, in bits per second. It counts ns per byte, times 2^20, in 32
 * bits: below the least rate a byte takes more than 4096 ns, and above the greatest rate rounding
 * exceeds 0.1 %.
 */
#define BL_RATE_MIN 2000000ULL
#define BL_RATE_MAX 1000000000000ULL

/**
 * bl_rate_parse - the rate that @s says, in bits per second. Returns false if @s is no rate, or not
 * from BL_RATE_MIN to BL_RATE_MAX.
 */
bool bl_rate_parse(const char *s, uint64_t *bits_per_s);
/**
 * bl_rate_text - the shortest text that bl_rate_parse() reads back, as "250mbit", into @buf; "none"
 * for 0. Returns @buf.
 */
char *bl_rate_text(uint64_t bits_per_s, char *buf, size_t size);
/** bl_rate_ns_q20 - nanoseconds per byte, times 2^20, rounded; 0 for 0. */
uint32_t bl_rate_ns_q20(uint64_t bits_per_s);
/** bl_rate_of_q20 - bits per second, rounded to 1000; the inverse of bl_rate_ns_q20(). */
uint64_t bl_rate_of_q20(uint32_t ns_q20);

#endif
