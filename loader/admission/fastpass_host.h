/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One Fastpass host, as the files of Fastpass's thread share it: fastpass.c (the thread),
 * fastpass_slots.c (what is wanted and given), fastpass_open.c (made and freed). All of them run in
 * that thread, under its lock, but for bl_fpass_open() and bl_fpass_free(), which know a host that
 * is not in the thread's list.
 */
#ifndef BARLINE_ADMISSION_FASTPASS_HOST_H
#define BARLINE_ADMISSION_FASTPASS_HOST_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "core/fastpass/fcp_host_core.h"
#include "core/fastpass/fcp_vain_core.h"
#include "core/queue/queue_core.h"
#include "loader/admission/common.h"
#include "loader/admission/fastpass_faults.h"
#include "maps/fastpass_abi.h"
#include "proto/fastpass_file.h"

/** struct bl_fpass_arbiter - an address to which requests go. */
struct bl_fpass_arbiter {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_storage any;
	};
	socklen_t len;
};

/** struct bl_fpass - one host. */
struct bl_fpass {
	struct bl_fpass *next; /* in the thread's list */
	struct bl_node *node;
	struct bl_fcp_host fcp; /* the host's end of FCP */
	void *mem;              /* what @fcp points to */
	struct bl_fpass_arbiter arbiter[BL_FP_ARBITERS_MAX];
	unsigned int narbiters;
	/* the arbiter whose packet was taken last; @narbiters: none of the list */
	unsigned int home;
	int sock;             /* UDP, bound to the endpoint's address; -1: none */
	int macs_fd;          /* the map "hold_macs" */
	int bell_fd;          /* the ring buffer in which programs ring */
	uint32_t slot_ns;     /* length of a slot, by the file */
	uint32_t late_ns;     /* how long after its begin a slot may be used */
	uint64_t fallback_ns; /* without an answer for that long frames go at once; 0: never */
	struct bl_fcp_vain vain;
	struct bl_fp_peer *peer; /* the endpoints of the file, by number */
	unsigned int npeers;
	/* mmapped maps */
	struct bl_fp_dest *dest;
	struct bl_fp_page *page;
	struct bl_due *due;
	unsigned long *bell_read;          /* position of the bell's reader, which is the thread */
	const unsigned long *bell_written; /* and of its writers */
	/* by destination */
	uint64_t told[BL_DESTS];     /* slots wanted that FCP knows of */
	uint64_t missed[BL_DESTS];   /* bl_fp_dest.missed that FCP knows of */
	uint64_t entered[BL_DESTS];  /* slots put into its ring */
	uint64_t short_by[BL_DESTS]; /* slots that were missing at the last audit */
	uint8_t next_of[BL_DESTS];   /* the next destination of the same endpoint; 0: none */
	uint8_t *of;                 /* by endpoint: its first destination; 0: none */
	uint64_t audit_ns;           /* CLOCK_MONOTONIC of the last audit */
	uint64_t complained_ns;      /* when a wrong table was logged last; 0: never */
	uint64_t offset_ns;          /* bus time - CLOCK_MONOTONIC */
	uint64_t resets;             /* sessions of FCP that were logged */
	struct bl_freport *report;   /* NULL: there is no fault isolation service */
};

/**
 * bl_fpass_open - makes a host of Fastpass from the file. The calling thread is in the host's
 * namespace; @obj: the host's programs. Returns 0, or -errno with @err.
 */
int bl_fpass_open(struct bl_fpass **out, struct bl_node *n, struct bpf_object *obj,
		  const struct bl_fp_file *f, struct bl_err *err);
void bl_fpass_free(struct bl_fpass *h);

/** bl_fpass_gather - asks FCP for what came to be wanted since the last call. True if anything. */
bool bl_fpass_gather(struct bl_fpass *h);
/**
 * bl_fpass_audit - asks again for slots that are wanted and were neither asked for nor given at two
 * audits in a row: they were lost between the programs and the daemon.
 */
void bl_fpass_audit(struct bl_fpass *h);
/** bl_fpass_give - enters the slots of an ALLOC, and wakes the pacer for the first of them. */
void bl_fpass_give(struct bl_fpass *h, const struct bl_fcp_pkt *k, uint64_t now);
/** bl_fpass_visit - has the pacer visit destination @n now. */
void bl_fpass_visit(struct bl_fpass *h, uint32_t n);

#endif
