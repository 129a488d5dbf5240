/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* struct bl_ep: an endpoint of a host, as its daemon has it. endpoint.h has what is done with it.
 */
#ifndef BARLINE_EP_H
#define BARLINE_EP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/library/systemd.h"
#include "maps/host_abi.h"

struct bl_node;

/** struct bl_ep - one endpoint slot. Main thread only. All zero but for the fds: the slot is free.
 */
struct bl_ep {
	struct bl_node *node;
	unsigned int slot;
	int conn;  /* its connection; -1: none since an earlier daemon */
	int pidfd; /* of its process; -1: the process is not visible in this pid namespace */
	sd_event_source *conn_src, *pid_src;
	bool used;
	bool dead;    /* its process is gone or expelled, and its window is not settled */
	bool left;    /* its process is gone */
	bool settled; /* nothing of its window holds the commit barrier any more */
	bool stray;   /* the host has its address no more, and an event has said so */
	/*
	 * Once @left: above every timestamp that the process has sent, if it left by bl_exit(); 0:
	 * it did not.
	 */
	uint64_t bye;
	/* Once @dead, with an agent: what it sent from this bus time on was not committed. */
	uint64_t t;
	int page_fd;             /* of the map of its page; -1: none */
	struct bl_ep_page *page; /* mapped; NULL: not mapped */
	struct bl_ep_slot info;  /* its entry in the map "eps" */
};

#endif
