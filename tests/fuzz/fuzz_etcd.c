/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes what the controller makes of etcd's answers: the reader of the JSON (controller/store/
 * etcd_msg.c), and the store above it with its election and its watches (store_etcd.c). The input
 * is a list of operations: answers to the requests that the store has made, with text from the
 * input or built from its fields; lines of a watch in pieces of any size; timers that expire; and
 * calls of the controller.
 *
 * It checks that a controller is told that it leads and that it lost the lead in turns, that it is
 * called back once for each call, and that what a reply points to can be read.
 *
 * libcurl, time, and whether a liar can make two controllers lead are not covered.
 */
#include "fuzz.h"

#include <gnutls/gnutls.h>

#include "controller/store/etcd_gateway.h"

#define REQS   32
#define TIMERS 16

/* ---- the gateway: requests are kept until the harness answers them ---- */

static struct etcd_req *reqs[REQS];
static unsigned int nreqs;
static struct etcd_gateway *gateway;

int __wrap_etcd_gateway_open(struct etcd_gateway *g, const struct bl_etcd_cfg *cfg,
			     struct bl_err *err);
void __wrap_etcd_gateway_close(struct etcd_gateway *g);
void __wrap_etcd_gateway_leave(struct etcd_gateway *g, const struct etcd_req *q);
struct etcd_req *__wrap_etcd_ask(struct etcd_gateway *g, enum etcd_route route, char *body,
				 bool twice, etcd_end_fn fn);
void __wrap_etcd_req_free(struct etcd_req *q);
void __wrap_etcd_ask_now(struct etcd_gateway *g, enum etcd_route route, const char *body,
			 unsigned int ms);
int __wrap_bl_store_once(sd_event *ev, sd_event_source **src, uint64_t ms,
			 sd_event_time_handler_t fn, void *ctx);
int __wrap_sd_event_add_time(sd_event *ev, sd_event_source **src, clockid_t clock, uint64_t usec,
			     uint64_t accuracy, sd_event_time_handler_t fn, void *ctx);
sd_event_source *__wrap_sd_event_source_disable_unref(sd_event_source *src);

int __wrap_etcd_gateway_open(struct etcd_gateway *g, const struct bl_etcd_cfg *cfg,
			     struct bl_err *err)
{
	(void)cfg, (void)err;
	gateway = g;
	return 0;
}

void __wrap_etcd_req_free(struct etcd_req *q)
{
	unsigned int i;

	for (i = 0; i < nreqs && reqs[i] != q; i++)
		;
	FUZZ_CHECK(i < nreqs);
	reqs[i] = reqs[--nreqs];
	free(q->body);
	free(q->in);
	free(q);
}

void __wrap_etcd_gateway_close(struct etcd_gateway *g)
{
	(void)g;
	while (nreqs)
		__wrap_etcd_req_free(reqs[0]);
}

void __wrap_etcd_gateway_leave(struct etcd_gateway *g, const struct etcd_req *q)
{
	FUZZ_CHECK(q->g == g);
	g->at++;
}

struct etcd_req *__wrap_etcd_ask(struct etcd_gateway *g, enum etcd_route route, char *body,
				 bool twice, etcd_end_fn fn)
{
	struct etcd_req *q = body && nreqs < REQS ? calloc(1, sizeof(*q)) : NULL;

	if (!q) {
		free(body);
		return NULL;
	}
	*q = (struct etcd_req){ .g = g,
				.route = route,
				.body = body,
				.twice = twice,
				.fn = fn,
				.sent_ns = bl_boot_ns() };
	reqs[nreqs++] = q;
	return q;
}

void __wrap_etcd_ask_now(struct etcd_gateway *g, enum etcd_route route, const char *body,
			 unsigned int ms)
{
	(void)g, (void)ms;
	FUZZ_CHECK(route == ETCD_REVOKE && body);
}

/* ---- timers: they expire when the input says so ---- */

static struct timer {
	sd_event_time_handler_t fn;
	void *ctx;
	bool owned, armed; /* one that has expired still belongs to its owner */
} timers[TIMERS];

static sd_event_source *arm(sd_event_time_handler_t fn, void *ctx)
{
	unsigned int i;

	for (i = 0; i < TIMERS && timers[i].owned; i++)
		;
	FUZZ_CHECK(i < TIMERS);
	timers[i] = (struct timer){ fn, ctx, true, true };
	return (sd_event_source *)&timers[i];
}

sd_event_source *__wrap_sd_event_source_disable_unref(sd_event_source *src)
{
	if (src)
		*(struct timer *)src = (struct timer){ 0 };
	return NULL;
}

int __wrap_bl_store_once(sd_event *ev, sd_event_source **src, uint64_t ms,
			 sd_event_time_handler_t fn, void *ctx)
{
	(void)ev, (void)ms;
	*src = __wrap_sd_event_source_disable_unref(*src);
	*src = arm(fn, ctx);
	return 0;
}

int __wrap_sd_event_add_time(sd_event *ev, sd_event_source **src, clockid_t clock, uint64_t usec,
			     uint64_t accuracy, sd_event_time_handler_t fn, void *ctx)
{
	(void)ev, (void)clock, (void)usec, (void)accuracy;
	*src = arm(fn, ctx);
	return 0;
}

static void expire(unsigned int i)
{
	struct timer t = timers[i % TIMERS];

	if (!t.armed)
		return;
	timers[i % TIMERS].armed = false;
	t.fn(NULL, 0, t.ctx);
}

/* ---- the controller ---- */

static struct bl_store *store;
static bool leads;
static unsigned int calls, replies;

/* Reads all of it, for ASan. */
static void touch(const void *p, size_t n)
{
	static volatile uint8_t sum;
	size_t i;

	for (i = 0; i < n; i++)
		sum += ((const uint8_t *)p)[i];
}

static void read_kv(const struct bl_store_kv *kv)
{
	touch(kv->key, strlen(kv->key) + 1);
	if (kv->value)
		touch(kv->value, kv->len + 1);
}

static void on_event(void *ctx, const struct bl_store_kv *kv)
{
	(void)ctx;
	read_kv(kv);
}

static void read_reply(const struct bl_store_reply *r)
{
	size_t i;

	FUZZ_CHECK(r->outcome <= BL_STORE_UNKNOWN && r->why < BL_STORE_WHY_COUNT);
	FUZZ_CHECK((r->outcome == BL_STORE_REFUSED) == (r->why != BL_STORE_WHY_NONE));
	for (i = 0; i < r->n; i++)
		read_kv(&r->kv[i]);
}

static void on_reset(void *ctx, const struct bl_store_reply *r)
{
	(void)ctx;
	FUZZ_CHECK(r->outcome == BL_STORE_DONE);
	read_reply(r);
}

static void on_reply(void *ctx, const struct bl_store_reply *r)
{
	(void)ctx;
	replies++;
	read_reply(r);
}

static void on_elected(void *ctx, uint64_t epoch)
{
	(void)ctx;
	FUZZ_CHECK(!leads && epoch && bl_store_epoch(store) == epoch);
	leads = true;
}

static void on_lost(void *ctx, const char *why)
{
	(void)ctx;
	FUZZ_CHECK(*why && !bl_store_epoch(store));
	leads = false;
}

static void on_other(void *ctx, const char *leader)
{
	(void)ctx;
	touch(leader, strlen(leader) + 1);
}

static void on_trouble(void *ctx, const char *text)
{
	(void)ctx;
	FUZZ_CHECK(!text || *text);
}

static const struct bl_store_candidate candidate = {
	.elected = on_elected, .lost = on_lost, .other = on_other, .trouble = on_trouble
};
static const struct bl_store_watcher watcher = { .event = on_event, .reset = on_reset };

static void open_store(void)
{
	static const char *const url[] = { "http://127.0.0.1:2379" };
	const struct bl_etcd_cfg cfg = { .endpoints = url, .nendpoints = 1 };
	struct bl_err err;

	leads = false;
	calls = replies = 0;
	memset(timers, 0, sizeof(timers));
	FUZZ_CHECK(!bl_store_etcd(&store, NULL, &cfg, &err));
	FUZZ_CHECK(!bl_store_watch(store, "node/", &watcher));
	FUZZ_CHECK(!bl_store_campaign(store, "10.0.0.1:61693", &candidate, &err));
}

/* ---- answers ---- */

static void check_answer(const struct etcd_answer *a)
{
	size_t i;

	FUZZ_CHECK(!a->error || *a->error);
	for (i = 0; i < a->n; i++) {
		read_kv(&a->kv[i].kv);
		FUZZ_CHECK(a->kv[i].kv.key && a->kv[i].gone == !a->kv[i].kv.value);
	}
}

/* Ends request @i with the answer in @text. */
static void answer(unsigned int i, uint8_t how, const char *text, size_t len)
{
	struct etcd_req *q = reqs[i % nreqs];
	enum bl_store_outcome out = how % 3 == 0   ? BL_STORE_DONE
				    : how % 3 == 1 ? BL_STORE_REFUSED
						   : BL_STORE_UNKNOWN;
	struct etcd_answer a = { 0 };

	if (q->route != ETCD_WATCH)
		etcd_msg_read(text, len, gateway->strip, false, &a);
	check_answer(&a);
	if (!a.sound || a.error) /* as finish_request() does */
		out = out == BL_STORE_DONE ? BL_STORE_UNKNOWN : out;
	if (q->route != ETCD_WATCH)
		gateway->outcome(gateway->ctx, out == BL_STORE_DONE ? NULL : "an error");
	q->fn(q, out, &a, out == BL_STORE_DONE ? NULL : "an error");
	etcd_answer_free(&a);
	__wrap_etcd_req_free(q);
}

static unsigned long long number(struct fuzz_in *in)
{
	return fuzz_u64(in);
}

/* Writes a key-value pair as etcd does, with its fields from the input. */
static int put_kv(char *to, size_t size, struct fuzz_in *in)
{
	static const char *const keys[] = { "/barline/leader", "/barline/node/00000007",
					    "/barline/failure/0000000001", "/other" };
	const char *name = keys[fuzz_u8(in) & 3];
	size_t len = fuzz_u8(in) & 31;
	const uint8_t *bytes = fuzz_take(in, &len);
	char *key = etcd_b64(name, strlen(name)), *value = etcd_b64(bytes, len);
	int n = snprintf(to, size,
			 "{\"key\":\"%s\",\"value\":\"%s\",\"create_revision\":\"%llu\","
			 "\"mod_revision\":\"%llu\",\"lease\":\"%llu\"}",
			 key, value ? value : "", number(in), number(in), number(in));

	free(key);
	free(value);
	return n;
}

/* Builds an answer in the form of @kind. Returns its length. */
static size_t form(struct fuzz_in *in, uint8_t kind, char *to, size_t size)
{
	char kv[512];

	put_kv(kv, sizeof(kv), in);
	switch (kind % 6) {
	case 0: /* a range */
		return (size_t)snprintf(to, size,
					"{\"header\":{\"revision\":\"%llu\"},\"kvs\":[%s]}",
					number(in), kind & 0x80 ? "" : kv);
	case 1: /* a transaction */
		return (size_t)snprintf(to, size,
					"{\"header\":{\"revision\":\"%llu\"},\"succeeded\":%s,"
					"\"responses\":["
					"{\"response_range\":{\"kvs\":[%s]}}]}",
					number(in), kind & 0x80 ? "true" : "false", kv);
	case 2: /* a lease */
		return (size_t)snprintf(to, size, "{\"ID\":\"%llu\",\"TTL\":\"%llu\"}", number(in),
					number(in));
	case 3: /* a keep-alive */
		return (size_t)snprintf(to, size, "{\"result\":{\"ID\":\"%llu\",\"TTL\":\"%llu\"}}",
					number(in), number(in));
	case 4: /* an event */
		return (size_t)snprintf(to, size,
					"{\"result\":{\"header\":{\"revision\":\"%llu\"},"
					"\"events\":["
					"{\"type\":\"%s\",\"kv\":%s}]}}\n",
					number(in), kind & 0x80 ? "DELETE" : "PUT", kv);
	default: /* the beginning or the end of a watch */
		return (size_t)snprintf(to, size,
					"{\"result\":{\"%s\":true,\"compact_revision\":\"%llu\"}}"
					"\n",
					kind & 0x80 ? "created" : "canceled", number(in));
	}
}

/* Some bytes of a watch's stream have come. */
static void stream(unsigned int i, const char *text, size_t len)
{
	struct etcd_req *q = reqs[i % nreqs];

	if (q->route != ETCD_WATCH || !len)
		return;
	q->in = realloc(q->in, q->len + len + 1);
	FUZZ_CHECK(q->in);
	memcpy(q->in + q->len, text, len);
	q->len += len;
	q->in[q->len] = 0;
	gateway->turned(gateway->ctx);
}

static void put(struct fuzz_in *in, uint8_t which)
{
	uint64_t epoch = bl_store_epoch(store);
	const char *value = which & 1 ? "v" : NULL;

	if (which & 2)
		bl_store_put(store, epoch, "node/00000007", fuzz_u64(in), value, 1, on_reply, NULL);
	else if (bl_store_put_sure(store, epoch, "node/00000007", fuzz_u64(in), value, 1, on_reply,
				   NULL))
		return;
	calls++;
}

static void one_text(const uint8_t *data, size_t size)
{
	struct etcd_answer a;
	uint8_t *p = fuzz_copy(data, size, 0), *bytes;
	char *text = etcd_b64(data, size);
	size_t len = 0;

	etcd_msg_read((const char *)p, size, "/barline/", size & 1, &a);
	check_answer(&a);
	etcd_answer_free(&a);
	fuzz_free(p, 0);
	/* base64 there and back */
	bytes = text ? etcd_unb64(text, &len) : NULL;
	FUZZ_CHECK(!text || (bytes && len == size && !memcmp(bytes, data, size) && !bytes[len]));
	free(bytes);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	char text[2048];
	size_t len;

	if (size && data[0] == '{') {
		one_text(data, size);
		return 0;
	}
	open_store();
	while (in.left) {
		uint8_t op = fuzz_u8(&in), which = fuzz_u8(&in);
		const uint8_t *p;

		switch (op % 8) {
		case 0:
		case 1:
			if (nreqs) {
				len = form(&in, fuzz_u8(&in), text, sizeof(text));
				answer(which, op / 8, text, len);
			}
			break;
		case 2:
			len = which;
			p = fuzz_take(&in, &len);
			if (nreqs)
				answer(op / 8, 0, (const char *)p, len);
			break;
		case 3:
			if (nreqs) {
				len = form(&in, (uint8_t)(4 + (op / 8 & 1) + (op & 0x80)), text,
					   sizeof(text));
				stream(which, text, len);
			}
			break;
		case 4:
			len = which & 63;
			p = fuzz_take(&in, &len);
			if (nreqs)
				stream(op / 8, (const char *)p, len);
			break;
		case 5:
			expire(which);
			break;
		case 6:
			put(&in, which);
			break;
		default:
			bl_store_range(store, "node/", which & 1, on_reply, NULL);
			calls++;
			break;
		}
		FUZZ_CHECK(replies <= calls);
		FUZZ_CHECK(leads || !bl_store_epoch(store));
	}
	if (size && data[size - 1] & 1)
		bl_store_resign(store, 1);
	bl_store_close(store);
	FUZZ_CHECK(!nreqs);
	return 0;
}
