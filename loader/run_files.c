// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See run_files.h. */
#include "loader/run_files.h"

#include "loader/node_events.h"
#include "loader/order/keep.h"
#include "loader/pulse.h"
#include "loader/running.h"

void bl_run_files_forget(enum bl_role role, uint64_t netns_ino)
{
	bl_keep_forget(role, netns_ino);
	bl_pulse_forget(role, netns_ino);
	bl_node_events_forget(role, netns_ino);
	bl_running_forget(role, netns_ino);
}
