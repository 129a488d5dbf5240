/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The clock record of a node (maps/clock_abi.h) and its keeper; clock.c says how it is kept. */
#ifndef BARLINE_LOADER_CLOCK_H
#define BARLINE_LOADER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "loader/clock/source.h"
#include "maps/clock_abi.h"

#define BL_CLOCK_TICK_NS   250000000ULL /* from one update of the record to the next */
#define BL_CLOCK_DRIFT_PPB 100000
/* a greater correction is a step of the system clock, not drift */
#define BL_CLOCK_STEP_NS 1000000000LL

/**
 * struct bl_clock_keeper - a node's clock record, as its keeper has it. The configuration is set
 * before bl_clock_map(). After bl_clock_adopt() the beacon thread alone writes; other threads read
 * @shared by bl_clock_at().
 */
struct bl_clock_keeper {
	/* configuration; see struct bl_node_cfg */
	const char *name; /* of the node, for the log */
	uint32_t bound_us;
	uint32_t max_bound_us; /* unused if the source is trusted */
	uint32_t source;       /* enum bl_clock_source_kind; 0: BL_CLOCK_TRUST */
	uint32_t void_after_ms;
	int64_t skew_ns;
	uint64_t base_ns;
	struct bl_clock_options options; /* of the source */

	int fd; /* of the map "clock"; -1: not open */
	/*
	 * The program bl_note, which writes the record of a host, whose map is frozen (note.c). 0:
	 * the keeper of a switch writes the mapped record. Belongs to the node.
	 */
	int note_fd;
	struct bl_clock *shared; /* the mapped record; NULL: not mapped */
	struct bl_clock own;     /* what @shared is to be; only the keeper has it */
	uint64_t next_ns;        /* CLOCK_MONOTONIC of the next update */
	int64_t bus_offset_ns;   /* wanted bus time less CLOCK_TAI, without @skew_ns */
	bool stepped;            /* the system clock was set, and bus time does not follow */
	/* The rest of this paragraph is for a source that is measured. */
	struct bl_clock_memory memory;
	struct bl_clock_hold hold;
	uint64_t last_width_ns;   /* of the last reading of both clocks */
	uint64_t before_width_ns; /* of the one before that */
	bool read;                /* the source was read since the start */
	bool synced;              /* what the source said last */
	enum bl_clock_reason why; /* the same: why it is not */
	int32_t tai_said_s;       /* the same: TAI - UTC */
	int32_t tai_offset_s;     /* TAI - UTC of the clock that is held */
	bool jumped;              /* CLOCK_TAI has jumped since the reading before the last one */
	uint64_t asleep_ns;       /* for how long the machine was suspended at the most */
	bool asleep_known;
	uint64_t ahead_ns;         /* how far bus time is from its target */
	enum bl_clock_state state; /* the last one that was published */
	/* the last ones that were logged */
	enum bl_clock_state told_state;
	enum bl_clock_reason told_why;
	/*
	 * Error of this clock beyond the bound of its source, ns, as the clocks of neighbours have
	 * proven it; 0: none. It is added to the bound. Any thread of the daemon may store it.
	 */
	_Atomic uint64_t proven_ns;
};

/** bl_clock_map - maps the record; no-op if it is mapped. Returns 0 or -errno. */
int bl_clock_map(struct bl_clock_keeper *k, int map_fd, struct bl_err *err);

/**
 * bl_clock_adopt - continues the shared record as its keeper, or starts a new one if it is void.
 * The caller has the keeper's lock (keep.h). Returns 0 or -errno.
 */
int bl_clock_adopt(struct bl_clock_keeper *k, struct bl_err *err);

/**
 * bl_clock_tick - updates the record if that is due at @mono (CLOCK_MONOTONIC). Returns the time of
 * the next update. Beacon thread only.
 */
uint64_t bl_clock_tick(struct bl_clock_keeper *k, uint64_t mono);

void bl_clock_close(struct bl_clock_keeper *k);

#endif
