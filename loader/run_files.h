/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files of a node in the run directory. */
#ifndef BARLINE_RUN_FILES_H
#define BARLINE_RUN_FILES_H

#include <stdint.h>

#include "maps/meta_abi.h"

/**
 * bl_run_files_forget - removes them: the node is gone. Each belongs to the part of the daemon that
 * writes it: the keeper's record (order/keep.h), the pulse (pulse.h), the events (node_events.h)
 * and the configuration in force (running.h).
 */
void bl_run_files_forget(enum bl_role role, uint64_t netns_ino);

#endif
