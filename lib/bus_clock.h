/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Readings of a clock record for applications. */
#ifndef BARLINE_LIB_BUS_CLOCK_H
#define BARLINE_LIB_BUS_CLOCK_H

#include "barline.h"
#include "maps/clock_abi.h"

/** bl_bus_time_of - bl_get_bus_time() for the record @record, which another process may write. */
int bl_bus_time_of(const struct bl_clock *record, struct bl_bus_time *t);

#endif
