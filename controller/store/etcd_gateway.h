/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests to the members of etcd through their JSON gateways, by libcurl in the event loop.
 * etcd_msg.h makes the requests and reads the answers; store_etcd.c decides what to ask.
 *
 * Every request requires a leader ("Grpc-Metadata-hasleader"): a member without a quorum then
 * refuses within 25 ms instead of 7 s, and a watch on it ends after 4.6 s instead of never
 * (measured with etcd 3.4.23). A request is sent to one member. It is sent to the next one if the
 * first certainly did not accept it, or if the request may safely be made twice. The outcome of a
 * write that may have been accepted is UNKNOWN.
 *
 * Example, three members, the first of them dead: the host of the first refuses the connection for
 * a range, so the range is sent to the second member at once and answered there; later requests are
 * sent to the second member first. A transaction that the second member accepted and did not answer
 * in time is UNKNOWN, and is sent to no other member.
 *
 * With https:// a member must have a certificate of the authority in @ca, and of no other one, that
 * names the host of the URL. What is refused there is reported with what to do; a request is never
 * sent without TLS instead.
 *
 * A watch is a request that does not end. Its lines are collected in @in, and its owner reads them
 * in @turned.
 */
#ifndef BARLINE_CONTROLLER_ETCD_GATEWAY_H
#define BARLINE_CONTROLLER_ETCD_GATEWAY_H

#include "base/library/curl.h"
#include "controller/store/etcd_msg.h"
#include "controller/store/store_priv.h"

enum etcd_route { ETCD_RANGE, ETCD_TXN, ETCD_GRANT, ETCD_KEEP, ETCD_REVOKE, ETCD_WATCH };

struct etcd_req;

/**
 * etcd_end_fn - A request has ended. @q is freed when the callback returns.
 * @a: the answer; all zero if there was none.
 * @text: what went wrong, for people; NULL: nothing.
 */
typedef void (*etcd_end_fn)(struct etcd_req *q, enum bl_store_outcome outcome,
			    const struct etcd_answer *a, const char *text);

/** struct etcd_req - A request. */
struct etcd_req {
	struct etcd_req *next;
	struct etcd_gateway *g;
	CURL *easy; /* NULL: out of memory */
	enum etcd_route route;
	char *body;
	char *in;                     /* what has come of the answer, 0-terminated; NULL: nothing */
	size_t len;                   /* bytes of @in */
	bool twice;                   /* the request may safely be made twice */
	unsigned int left;            /* members that may still be tried */
	unsigned int member;          /* index of the member that it was sent to */
	uint64_t sent_ns;             /* CLOCK_BOOTTIME */
	char detail[CURL_ERROR_SIZE]; /* what libcurl says of an error; "": nothing */
	etcd_end_fn fn;               /* called once, when the request ends; also for a watch */
	/* set and used by the caller of etcd_ask() */
	bl_store_fn user;
	void *ctx;
	uint64_t epoch;
};

/** struct etcd_gateway - The members. The caller of etcd_gateway_open() sets the first six. */
struct etcd_gateway {
	sd_event *ev;
	unsigned int request_ms; /* deadline of a request */
	const char *strip;       /* prefix of keys, see etcd_msg_read() */
	/* Something may have come. Called before @fn of the requests that have ended. */
	void (*turned)(void *ctx);
	/* A request other than a watch was answered (@text NULL), or what went wrong with it. */
	void (*outcome)(void *ctx, const char *text);
	void *ctx;

	char **endpoints; /* URLs of the @n members */
	char *ca;
	char *cert;
	char *key;
	unsigned int n;
	unsigned int at; /* index of the member that the next request is sent to, below @n */
	CURLM *multi;
	struct curl_slist *headers;
	sd_event_source *timer; /* of libcurl */
	struct etcd_req *reqs;
};

/**
 * etcd_gateway_open - Sets up libcurl for the members in @cfg. No request is sent yet.
 *
 * Returns 0 or -errno with a text in @err. etcd_gateway_close() has to be called in either case.
 */
int etcd_gateway_open(struct etcd_gateway *g, const struct bl_etcd_cfg *cfg, struct bl_err *err);

/** etcd_gateway_close - Drops all requests without calling their callbacks. */
void etcd_gateway_close(struct etcd_gateway *g);

/**
 * etcd_gateway_leave - The member that @q was sent to has failed: later requests go to another one.
 */
void etcd_gateway_leave(struct etcd_gateway *g, const struct etcd_req *q);

/**
 * etcd_ask - Sends a request.
 * @body: text from malloc(), which is consumed; NULL is allowed.
 * @twice: the request may safely be made twice.
 * @fn: called when it has ended.
 *
 * Returns NULL if @body is NULL or there is no memory; @fn is not called then, and the caller tries
 * again later.
 */
struct etcd_req *etcd_ask(struct etcd_gateway *g, enum etcd_route route, char *body, bool twice,
			  etcd_end_fn fn);

/** etcd_req_free - Drops a request without calling its callback. */
void etcd_req_free(struct etcd_req *q);

/** etcd_ask_now - Sends a request and blocks for at most @ms. The answer is ignored. */
void etcd_ask_now(struct etcd_gateway *g, enum etcd_route route, const char *body, unsigned int ms);

#endif
