/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What stays changed on a NIC that barline cannot put back, in words for the operator. */
#ifndef BARLINE_NIC_LEFT_H
#define BARLINE_NIC_LEFT_H

#include <stdbool.h>
#include <stddef.h>

#include "maps/nic_abi.h"

/**
 * bl_nic_undo_text - writes the commands that put back what stays when a NIC changes to another
 * network namespace: what ethtool sets, and threaded NAPI. Queueing disciplines and filters go by
 * that. Returns false if there is nothing. @buf: 700 bytes take all commands.
 */
bool bl_nic_undo_text(const struct bl_nic *nic, char *buf, size_t size);

#endif
