/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a daemon (spare.c) and its caretaker (caretaker.c) say to each other. The daemon describes
 * the node in a file in memory, whose number is on the caretaker's command line. After that each
 * says one byte at a time over a pair of SOCK_SEQPACKET sockets, which ends when the daemon does.
 */
#ifndef BARLINE_CARETAKER_PRIV_H
#define BARLINE_CARETAKER_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/node_cfg.h"
#include "maps/meta_abi.h"

#define BL_CARETAKER_MAGIC 0x62616b656570ULL

/** enum bl_caretaker_word - what is said over the channel. */
enum bl_caretaker_word {
	BL_CARETAKER_READY = 'r', /* caretaker: everything is loaded */
	BL_CARETAKER_LOCK = 'l',  /* daemon: here is the keeper's lock (SCM_RIGHTS); wait */
	BL_CARETAKER_GO = 'g',    /* daemon: I do not write the clock record any more; take over */
	BL_CARETAKER_TOOK = 't',  /* caretaker: it has taken over */
	BL_CARETAKER_END = 'e',   /* daemon: end, and take nothing over */
};

/**
 * struct bl_caretaker_state - the content of the file; written and read by the same build. The
 * integers at the end are descriptors, which the caretaker inherits; -1: none.
 */
struct bl_caretaker_state {
	uint64_t magic, size;
	struct bl_node_cfg cfg; /* ports and fdb are NULL */
	struct bl_meta meta;
	char dir[256];
	uint64_t netns_ino;
	int64_t bus_offset_ns;
	struct bl_attached nic; /* host */
	bool beats;             /* the node has beacons to send */
	int clock, page, note, sock, netns, chan;
};

#endif
