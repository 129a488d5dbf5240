/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pulse of a node's daemon: a small file in the run directory, BL_RUN_DIR/<role>-<netns>.pulse,
 * that says that the daemon's event loop turns, and how its session with a controller is. Whoever
 * wants to know reads the file, so nobody has to ask a daemon that may be stopped.
 *
 * The daemon writes the file every BL_PULSE_MS, and its caretaker after it. It is removed when the
 * node is detached. A daemon that is killed leaves the file as it was.
 */
#ifndef BARLINE_PULSE_ABI_H
#define BARLINE_PULSE_ABI_H

#include <linux/types.h>

#define BL_PULSE_MAGIC   0x62617270756c7365ULL /* "barpulse" */
#define BL_PULSE_VERSION 1
#define BL_PULSE_MS      200

enum bl_pulse_state {
	BL_PULSE_RUNS,      /* a daemon serves the node */
	BL_PULSE_CARETAKER, /* a caretaker stands in for a daemon that was stopped */
	BL_PULSE_STOPPED,   /* the daemon or the caretaker has ended in order */
};

/** enum bl_pulse_spare - the spare caretaker of a daemon that runs. */
enum bl_pulse_spare {
	BL_PULSE_SPARE_NONE,   /* none is wanted (caretaker_ms: 0), or the daemon is older */
	BL_PULSE_SPARE_STARTS, /* the first one starts */
	BL_PULSE_SPARE_READY,  /* it can take over */
	BL_PULSE_SPARE_LOST,   /* the last one has ended, and the next one is not ready */
};

enum bl_pulse_session {
	BL_PULSE_NO_CONTROLLERS, /* the configuration names none */
	BL_PULSE_WELCOME,        /* a session, and the leader has accepted the node */
	BL_PULSE_NO_SESSION,     /* @trouble says why */
};

/**
 * struct bl_pulse - content of the file. Written by one process at a time, in one write(); a reader
 * that gets two different numbers in @seq and @seq_end has read while it was written, and reads
 * again.
 */
struct bl_pulse {
	__u64 magic;         /* BL_PULSE_MAGIC */
	__u32 version;       /* BL_PULSE_VERSION */
	__u32 size;          /* sizeof(struct bl_pulse) */
	__u64 seq;           /* raised by each write */
	__u64 beat_ns;       /* CLOCK_MONOTONIC of the write */
	__u64 start_time;    /* of the writer: field 22 of /proc/PID/stat */
	__u64 pid_ns;        /* inode number of the PID namespace of @pid */
	__u32 pid;           /* of the writer */
	__u8 state;          /* enum bl_pulse_state */
	__u8 session;        /* enum bl_pulse_session */
	__u8 failed;         /* 1: the node was announced as failed, and has not joined anew */
	__u8 spare;          /* enum bl_pulse_spare */
	__u64 until_ns;      /* caretaker: CLOCK_MONOTONIC at which it ends; 0: not a caretaker */
	__u64 epoch;         /* of the controllers; 0: none heard of */
	__u64 alone_ns;      /* CLOCK_MONOTONIC since when there is no session; 0: there is one */
	char controller[64]; /* of the session; "": none. NUL terminated */
	char trouble[256];   /* why there is no session; "": not known. NUL terminated */
	__u64 seq_end;       /* the same as @seq */
};
_Static_assert(sizeof(struct bl_pulse) == 408, "ABI");

#endif
