/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What `barline lab run` and `barline bench` share: options of a measurement, and doing it.
 */
#ifndef BARLINE_CLI_DRIVE_H
#define BARLINE_CLI_DRIVE_H

#include "bench.h"
#include "cli/util/cmd.h"

extern const struct bench_params bench_defaults;
extern const struct argp bench_argp; /* input: struct bench_params */

/**
 * bench_drive - one worker per host h1 to h@n of the namespaces bound in @netns_dir, or @n workers
 * here if it is NULL. Measures, checks, reports. Returns the exit status.
 */
int bench_drive(unsigned int n, const char *netns_dir, const struct bench_params *p,
		bool throughput, bool latency);

struct lab;
struct lab_spec;
extern const struct argp lab_argp; /* input: struct lab_spec */
/** lab_new - a lab as the options' defaults say; NULL: out of memory. The caller frees. */
struct lab *lab_new(void);

/** lab_ask - what a lab says of itself; NULL: none, after a message. lab.c */
json_t *lab_ask(const char *name, int *pidfd, pid_t *pid);

#endif
