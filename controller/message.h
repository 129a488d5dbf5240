/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Between the failure procedure's structs and what is sent or saved (ctl.proto). Whoever reads
 * checks: what does not fit is refused.
 */
#ifndef BARLINE_CONTROLLER_MESSAGE_H
#define BARLINE_CONTROLLER_MESSAGE_H

#include "controller/recover/recover_core.h"

#include "proto/ctl.pb-c.h"

/** struct ctl_bytes - a message, packed; from malloc(). @data NULL: out of memory. */
struct ctl_bytes {
	uint8_t *data;
	size_t len;
};

/**
 * ctl_hello - @h points into memory of @m and into *@port, *@endpoint, which are freed by the
 * caller, whatever it returns. False: it does not fit.
 */
bool ctl_hello(const Bl__Hello *m, struct bl_recover_hello *h, struct bl_recover_port **port,
	       uint16_t **endpoint, uint8_t (**addr)[16]);

struct ctl_bytes ctl_welcome(uint64_t epoch, uint64_t failed, uint32_t answer_ms,
			     uint32_t stuck_ms);
struct ctl_bytes ctl_put_out(uint64_t epoch, uint16_t port, uint16_t life);
struct ctl_bytes ctl_away(uint64_t epoch);
struct ctl_bytes ctl_bar(uint64_t epoch, const struct bl_recover_node *n);
struct ctl_bytes ctl_freeze(uint64_t epoch, const struct bl_recover_node *n);
/** ctl_failure - FAIL, or RESUME (@resume) with the inputs of @node. */
struct ctl_bytes ctl_failure(uint64_t epoch, const struct bl_recover_failure *f, bool resume,
			     uint32_t node);
struct ctl_bytes ctl_not_leading(const char *leader, const char *why);
struct ctl_bytes ctl_ping(uint64_t number);
/**
 * ctl_admission - the order @number: @policy by its name, @rate_bps 0: as it is. @check: only ask
 * whether.
 */
struct ctl_bytes ctl_admission(uint64_t epoch, uint64_t number, bool check, const char *policy,
			       uint64_t rate_bps);
struct ctl_bytes ctl_forward_bytes(uint64_t epoch, const Bl__Forward *m);

/**
 * ctl_save_failure, ctl_save_node, ctl_save_epoch - as they are saved. ctl_load_*: 0, or -1: not
 * sound.
 */
struct ctl_bytes ctl_save_failure(const struct bl_recover_failure *f, uint64_t unix_ns);
struct ctl_bytes ctl_save_node(const struct bl_recover_node *n);
struct ctl_bytes ctl_save_epoch(uint64_t epoch, const char *leader, uint64_t unix_ns);
int ctl_load_failure(struct bl_recover *r, const uint8_t *data, size_t len, uint64_t *number,
		     uint64_t *unix_ns);
int ctl_load_node(struct bl_recover *r, const uint8_t *data, size_t len);

#endif
