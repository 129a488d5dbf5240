/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packs and unpacks the messages of proto/ctl.proto: between the structs of the failure procedure
 * and what is sent to agents or saved in the store. What is read is validated: a message that does
 * not fit is refused.
 */
#ifndef BARLINE_CONTROLLER_MESSAGE_H
#define BARLINE_CONTROLLER_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/recover/recover_core.h"
#include "proto/ctl.pb-c.h"

/** struct ctl_bytes - A packed message. */
struct ctl_bytes {
	uint8_t *data; /* from malloc(); NULL: out of memory */
	size_t len;
};

/**
 * ctl_hello - Reads a HELLO into *@h, which points into @m and into *@port, *@endpoint and *@addr.
 * The caller frees these three in either case.
 *
 * Returns false if @m is not valid or there is no memory.
 */
bool ctl_hello(const Bl__Hello *m, struct bl_recover_hello *h, struct bl_recover_port **port,
	       uint16_t **endpoint, uint8_t (**addr)[16]);

/* Commands. Each carries the @epoch of the leader. */

/**
 * ctl_welcome - The node's HELLO is accepted.
 * @failed: number of the failure that announced the node; 0: it is correct.
 * @answer_ms: the node has failed if it takes longer than this for an answer.
 * @stuck_ms: the node reports frames that do not reach their receiver for this time; 0: never.
 */
struct ctl_bytes ctl_welcome(uint64_t epoch, uint64_t failed, uint32_t answer_ms,
			     uint32_t stuck_ms);

/** ctl_put_out - Expel the endpoint at UDP port @port if it has life @life. */
struct ctl_bytes ctl_put_out(uint64_t epoch, uint16_t port, uint16_t life);

/** ctl_away - The absence of the node's daemon is saved. */
struct ctl_bytes ctl_away(uint64_t epoch);

/** ctl_bar - Bar all ports of @n that have @barred, and no others. */
struct ctl_bytes ctl_bar(uint64_t epoch, const struct bl_recover_node *n);

/** ctl_freeze - Freeze and report the inputs of @n that have @asked. */
struct ctl_bytes ctl_freeze(uint64_t epoch, const struct bl_recover_node *n);

/** ctl_failure - Failure @f is announced; or, if @resume, resume its inputs at node @node. */
struct ctl_bytes ctl_failure(uint64_t epoch, const struct bl_recover_failure *f, bool resume,
			     uint32_t node);

/** ctl_not_leading - This controller does not lead, for the reason @why. @leader: "": unknown. */
struct ctl_bytes ctl_not_leading(const char *leader, const char *why);

/** ctl_ping - The answer to ping @number. */
struct ctl_bytes ctl_ping(uint64_t number);

/**
 * ctl_admission - Change the admission policy.
 * @number: of the change.
 * @check: only answer whether the node can change.
 * @policy: name of the policy.
 * @rate_bps: rate of the links; 0: unchanged.
 */
struct ctl_bytes ctl_admission(uint64_t epoch, uint64_t number, bool check, const char *policy,
			       uint64_t rate_bps);

/** ctl_forward_bytes - A frame of another host, as it came. */
struct ctl_bytes ctl_forward_bytes(uint64_t epoch, const Bl__Forward *m);

/* Records in the store. */

/** ctl_save_failure - The record of @f. @unix_ns: CLOCK_REALTIME of its announcement. */
struct ctl_bytes ctl_save_failure(const struct bl_recover_failure *f, uint64_t unix_ns);

/** ctl_save_node - The record of @n. */
struct ctl_bytes ctl_save_node(const struct bl_recover_node *n);

/** ctl_save_epoch - The record of an election. @unix_ns: CLOCK_REALTIME at which it was loaded. */
struct ctl_bytes ctl_save_epoch(uint64_t epoch, const char *leader, uint64_t unix_ns);

/**
 * ctl_load_failure - Loads the record of a failure into @r, and sets *@number and *@unix_ns.
 *
 * Returns 0; -1: the record is not valid, or there is no memory.
 */
int ctl_load_failure(struct bl_recover *r, const uint8_t *data, size_t len, uint64_t *number,
		     uint64_t *unix_ns);

/** ctl_load_node - Loads the record of a node into @r. Returns as ctl_load_failure(). */
int ctl_load_node(struct bl_recover *r, const uint8_t *data, size_t len);

#endif
