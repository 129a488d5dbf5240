/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keys of links in files (docs/protocol.md, "Authentication of links").
 *
 * The rack's file stays on one trusted machine. It has a secret per epoch:
 *
 *	overlap_s: 60
 *	epochs:
 *	  - { epoch: 1, from: 0, secret: 00..1f }		# 64 hex digits
 *	  - { epoch: 2, from: 1764060000, secret: 20..3f }	# Unix time, seconds
 *
 * From it `barline auth issue` makes the file of each node, which has the keys of that node's links
 * and nothing from which those of others could be computed:
 *
 *	node: 1
 *	overlap_s: 60
 *	links:
 *	  - peer: 1001
 *	    port: eth1
 *	    epochs:
 *	      - { epoch: 1, from: 0, send: 00..0f, receive: 10..1f }		# 32 hex digits
 *	      - { epoch: 2, from: 1764060000, send: 20..2f, receive: 30..3f }
 *
 * The key from node a to node b on their link number n is the beginning of HMAC-SHA-256 (RFC 2104)
 * of "barline link", epoch, a, b and n, each of the four as 4 bytes in network order, under the
 * secret of the epoch. Keys may also be written by hand.
 *
 * Both files are refused if anyone but their owner can read them.
 */
#ifndef BARLINE_LINK_KEYS_H
#define BARLINE_LINK_KEYS_H

#include <stdint.h>

#include "base/log.h"

#define BL_LINK_SECRET_LEN 32
#define BL_LINK_KEY_LEN    16
#define BL_LINK_EPOCHS     2
#define BL_LINKS_MAX       256
#define BL_LINK_OVERLAP_S  60

/** struct bl_link_epoch - the keys of one epoch of a link. */
struct bl_link_epoch {
	uint32_t epoch;  /* 1 to BL_AUTH_EPOCH_MAX */
	uint64_t from_s; /* Unix time from which on it is sent under */
	uint8_t send[BL_LINK_KEY_LEN], receive[BL_LINK_KEY_LEN];
};

/** struct bl_link - one link of a node. */
struct bl_link {
	uint32_t peer; /* node id of the other end */
	char port[16]; /* interface that it is at; "": a host's NIC */
	unsigned int n;
	struct bl_link_epoch at[BL_LINK_EPOCHS]; /* by rising epoch */
};

/** struct bl_link_file - the file of a node. */
struct bl_link_file {
	uint32_t node;
	uint32_t overlap_s; /* how long an epoch is accepted after the next one has begun */
	unsigned int n;
	struct bl_link link[BL_LINKS_MAX];
};

/** struct bl_rack_file - the file of a rack. */
struct bl_rack_file {
	uint32_t overlap_s;
	unsigned int n;
	struct {
		uint32_t epoch;
		uint64_t from_s;
		uint8_t secret[BL_LINK_SECRET_LEN];
	} at[BL_LINK_EPOCHS]; /* by rising epoch */
};

/** bl_link_file_load, bl_rack_file_load - read and check a file. Return 0 or -errno. */
int bl_link_file_load(struct bl_link_file *f, const char *path, struct bl_err *err);
int bl_rack_file_load(struct bl_rack_file *f, const char *path, struct bl_err *err);

/**
 * bl_link_file_write, bl_rack_file_write - write a file that only its owner can read, in place of
 * one that is there; @path never names an unfinished file. Return 0 or -errno.
 */
int bl_link_file_write(const struct bl_link_file *f, const char *path, struct bl_err *err);
int bl_rack_file_write(const struct bl_rack_file *f, const char *path, struct bl_err *err);

/** bl_link_derive - the key from node @from to node @to on their link number @number. */
int bl_link_derive(const uint8_t secret[BL_LINK_SECRET_LEN], uint32_t epoch, uint32_t from,
		   uint32_t to, uint32_t number, uint8_t key[BL_LINK_KEY_LEN], struct bl_err *err);

/**
 * bl_rack_rotate - adds an epoch with a random secret from Unix time @from_s on; of the others, the
 * latest one stays. Returns 0 or -errno.
 */
int bl_rack_rotate(struct bl_rack_file *f, uint64_t from_s, struct bl_err *err);

/**
 * bl_rack_issue - adds the link to @peer at interface @port, number @number, to the file of node
 * @f->node. Returns 0 or -errno.
 */
int bl_rack_issue(const struct bl_rack_file *rack, struct bl_link_file *f, uint32_t peer,
		  const char *port, uint32_t number, struct bl_err *err);

#endif
