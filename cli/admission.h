/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading the maps of admission: queues, meters, and numbers that are kept in units of the wire.
 */
#ifndef BARLINE_CLI_ADM_H
#define BARLINE_CLI_ADM_H

#include "maps/hold_abi.h"
#include "maps/pl2_switch_abi.h"
#include "cli/util/cmd.h"
#include "base/hist.h"

#define ADM_FULL_FRAME 1514 /* bytes: queue lengths are told in such frames */

/**
 * adm_map - open a map of a node; @entries (may be NULL) gets its size. fd, or -1 after a message.
 */
int adm_map(const struct bl_node_ref *ref, const char *name, uint32_t value_size,
	    uint32_t *entries);
/** adm_queue - one queue under its lock: its fields belong together. 0 or -errno. */
int adm_queue(int fd, uint32_t key, struct bl_queue *q);
/** adm_rate - bits per second of a meter; 0: not metered. */
double adm_rate(uint32_t ns_q20);
/**
 * adm_quantiles - "PREFIX_p50UNIT", p99, p999 and max into @row, divided by @divide; null where
 * nothing was counted.
 */
void adm_quantiles(json_t *row, const char *prefix, const char *unit, const struct bl_hist *h,
		   unsigned int shift, double divide);
/**
 * adm_counts - frames by reason since the programs were loaded, added up over the switches and
 * over the hosts among @refs. 0, or 1 after a message.
 */
int adm_counts(const struct bl_node_ref *refs, int nrefs, struct bl_counts *switches,
	       struct bl_counts *hosts);
/**
 * adm_late - how late the pacers of @refs, which all have one, sent; added to @late. 0, or 1 after
 * a message.
 */
int adm_late(const struct bl_node_ref *refs, int nrefs, struct bl_hist *late);
/** adm_reasons - {"reason": count}, those that are not 0. */
json_t *adm_reasons(const struct bl_counts *n);

#endif
