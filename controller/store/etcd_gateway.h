/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests to the members of etcd through their JSON gateways, by libcurl in the event loop. What
 * is asked, and what an answer says, is etcd_msg.h; what for, store_etcd.c.
 *
 * Every request asks for a leader ("Grpc-Metadata-hasleader"): a member without a quorum then says
 * so in 25 ms instead of 7 s, and a watch on it ends after 4.6 s instead of never (measured,
 * etcd 3.4.23). A request goes to one member; to the next one if it certainly was not taken, or if
 * it does no harm twice. A write that may have been taken is UNKNOWN.
 *
 * Example, three members, the first one of which is dead: a range is refused by its host, goes to
 * the second one at once and is answered there; what is asked after that goes to the second one
 * first. A transaction that the second one took and did not answer in time is UNKNOWN, and nobody
 * else is asked.
 *
 * A watch is a request that does not end: its lines are collected in @in, and looked at by whoever
 * opened it, at each turn.
 */
#ifndef BARLINE_CONTROLLER_ETCD_GATEWAY_H
#define BARLINE_CONTROLLER_ETCD_GATEWAY_H

#include <curl/curl.h>

#include "controller/store/etcd_msg.h"
#include "controller/store/store_priv.h"

enum etcd_route { ETCD_RANGE, ETCD_TXN, ETCD_GRANT, ETCD_KEEP, ETCD_REVOKE, ETCD_WATCH };

struct etcd_req;

/**
 * etcd_end_fn - the end of a request. @a: what came (zeros if nothing did). @text: what went
 * wrong, NULL: nothing; for people. @q is freed behind it.
 */
typedef void (*etcd_end_fn)(struct etcd_req *q, enum bl_store_outcome outcome,
			    const struct etcd_answer *a, const char *text);

/**
 * struct etcd_req - one request. @in, @len: what has come of its answer; 0-terminated. @twice: does
 * no harm twice. @left: members that may still be tried. @sent_ns: CLOCK_BOOTTIME. @fn: its end; of
 * a watch it is not called for what comes but in the end. @user, @ctx, @epoch: of who asks.
 */
struct etcd_req {
	struct etcd_req *next;
	struct etcd_gateway *g;
	CURL *easy;
	enum etcd_route route;
	char *body;
	char *in;
	size_t len;
	bool twice;
	unsigned int left;
	uint64_t sent_ns;
	etcd_end_fn fn;
	bl_store_fn user;
	void *ctx;
	uint64_t epoch;
};

/**
 * struct etcd_gateway - the first six are set by who opens it. @strip: what keys begin with; see
 * etcd_msg_read(). @turned: something may have come; before any request that has ended is told.
 * @outcome: after each request that is no watch: NULL: it was answered, or what went wrong. @at:
 * the member that is asked next.
 */
struct etcd_gateway {
	sd_event *ev;
	unsigned int request_ms;
	const char *strip;
	void (*turned)(void *ctx);
	void (*outcome)(void *ctx, const char *text);
	void *ctx;
	char **endpoints;
	char *ca, *cert, *key;
	unsigned int n, at;
	CURLM *multi;
	struct curl_slist *headers;
	sd_event_source *timer;
	struct etcd_req *reqs;
};

/**
 * etcd_gateway_open - nothing is asked yet. Returns 0 or -errno; etcd_gateway_close() either way.
 */
int etcd_gateway_open(struct etcd_gateway *g, const struct bl_etcd_cfg *cfg, struct bl_err *err);
void etcd_gateway_close(struct etcd_gateway *g);

/** etcd_gateway_next - another member is asked from now on. */
void etcd_gateway_next(struct etcd_gateway *g);

/**
 * etcd_ask - @body is used up. NULL: it was NULL, or out of memory: @fn is not called, and the
 * caller's next try will come.
 */
struct etcd_req *etcd_ask(struct etcd_gateway *g, enum etcd_route route, char *body, bool twice,
			  etcd_end_fn fn);
void etcd_req_free(struct etcd_req *q);

/** etcd_ask_now - waits, @ms at most, and does not say what came: for one's last words. */
void etcd_ask_now(struct etcd_gateway *g, enum etcd_route route, const char *body, unsigned int ms);

#endif
