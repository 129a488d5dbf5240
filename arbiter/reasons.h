/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets of FCP by reason, as status sockets print them.
 */
#ifndef BARLINE_ARBITER_REASONS_H
#define BARLINE_ARBITER_REASONS_H

#include <stdint.h>
#include <stdio.h>

/**
 * arb_put_reasons - Write ,"key":{...}: packets by BL_FCP_R_*, those whose number is not 0.
 */
void arb_put_reasons(FILE *o, const char *key, const uint64_t *n);

#endif
