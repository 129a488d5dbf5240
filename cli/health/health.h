/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a node is ready: what `barline status` and `barline wait` print, and what an exporter
 * answers at /healthz and /readyz.
 *
 * 	struct bl_node_ref *refs;
 * 	struct health h;
 * 	int n = bl_nodes_find(&refs, bl_netns_ino(), &err), i;
 *
 * 	for (i = 0; i < n; i++)
 * 		ready &= health_read(&refs[i], &h);
 *
 * It takes some milliseconds: maps, netlink, /proc and the daemon's pulse are read, and no process
 * is asked, so nothing blocks on one that is stopped. The checks are the doctor's (cli/doctor/);
 * cli/health/judge.h has the verdicts.
 */
#ifndef BARLINE_CLI_HEALTH_H
#define BARLINE_CLI_HEALTH_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/doctor/finding.h"
#include "loader/load/pin.h"

/** struct health_check - the worst finding of one check. */
struct health_check {
	bool known; /* it was looked at; else the rest is empty */
	enum finding_level level;
	unsigned int more;          /* findings of the same level besides this one */
	char word[24];              /* what was found, as "no_carrier"; "ok" */
	char what[40];              /* the node, and the interface if it concerns one */
	char cause[300], cure[240]; /* what was found, and what to do */
};

/** struct health - the health of one node. */
struct health {
	char node[32];
	enum bl_role role;
	uint64_t netns_ino;
	uint32_t node_id;
	bool ready;               /* no check failed; warnings do not count */
	enum finding_level level; /* of the worst check */
	unsigned int worst;       /* enum node_check: the first that has @level */
	struct health_check check[NODE_CHECKS_NUMBER];
};

/**
 * health_read - reads the health of a node into @h. Of a node in another network namespace, what
 * concerns its interfaces and addresses is not known. Returns @h->ready.
 */
bool health_read(const struct bl_node_ref *ref, struct health *h);

/** health_read_some - health_read() of some checks only. @checks: bit 1 << enum node_check each */
bool health_read_some(const struct bl_node_ref *ref, unsigned int checks, struct health *h);

/** health_text - writes the line of `barline status` into @buf. Returns @buf. */
char *health_text(const struct health *h, char *buf, size_t size);

/** health_json - the object of `barline status -j` for a node; NULL: no memory. */
json_t *health_json(const struct health *h);

#endif
