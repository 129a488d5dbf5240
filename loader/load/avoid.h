/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps work that can wait off the CPUs of the datapath.
 *
 * The kernel keeps a CPU for milliseconds while it checks and translates programs, and a process
 * that starts or ends takes page faults and removes mappings. All that the datapath does on that
 * CPU waits meanwhile: its beacons, NAPI, and so the barriers of everybody in the rack. A lower
 * priority does not help, since the kernel does not yield the CPU there (docs/design-notes.md).
 */
#ifndef BARLINE_LOAD_AVOID_H
#define BARLINE_LOAD_AVOID_H

#include <sched.h>
#include <stdbool.h>

/**
 * bl_cpus_avoid - keeps this thread, and those that it starts from now on, off the CPUs @busy. If
 * it may run on no others, or is on none of them, it stays where it is.
 * @before: set to the CPUs that it was allowed, for bl_cpus_return(). A CPU that comes online
 * between the two calls is not added to them.
 * Returns whether anything has changed.
 */
bool bl_cpus_avoid(const cpu_set_t *busy, cpu_set_t *before);

/** bl_cpus_return - undoes bl_cpus_avoid() if it returned true. */
void bl_cpus_return(const cpu_set_t *before);

#endif
