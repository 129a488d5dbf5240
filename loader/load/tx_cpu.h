/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CPUs that serve the transmit queues of a NIC; tx_cpu.c says how they are found. */
#ifndef BARLINE_TX_CPU_H
#define BARLINE_TX_CPU_H

#include <sched.h>
#include <stdbool.h>

#include "base/iface.h"

/** bl_cpus_parse - parses a list such as "0,2-3". False: malformed, or it names no CPU. */
bool bl_cpus_parse(const char *text, cpu_set_t *set);

/**
 * bl_tx_cpus - the CPUs that serve transmit queue @queue of @i, in this thread's network namespace.
 * False: the system does not say, or names every CPU; then @set is empty.
 */
bool bl_tx_cpus(const struct bl_iface *i, unsigned int queue, cpu_set_t *set);

/** bl_tx_cpus_at - bl_tx_cpus() with descriptors of sysfs and procfs; for the unit test. */
bool bl_tx_cpus_at(int sys, int proc, const char *ifname, unsigned int queue, cpu_set_t *set);

#endif
