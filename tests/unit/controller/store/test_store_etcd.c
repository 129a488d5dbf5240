// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * controller/store/store_etcd.c: the election with answers that no etcd gives. The gateway is the
 * test's: it keeps the last request, and the test answers it.
 */
#include "tests/unit/unit.h"

#include "controller/store/etcd_gateway.h"

static struct etcd_req *req; /* the last one, other than of a watch */
static struct etcd_gateway *gateway;
static unsigned int elections, revoked;

int __wrap_etcd_gateway_open(struct etcd_gateway *g, const struct bl_etcd_cfg *cfg,
			     struct bl_err *err);
void __wrap_etcd_gateway_close(struct etcd_gateway *g);
struct etcd_req *__wrap_etcd_ask(struct etcd_gateway *g, enum etcd_route route, char *body,
				 bool twice, etcd_end_fn fn);

int __wrap_etcd_gateway_open(struct etcd_gateway *g, const struct bl_etcd_cfg *cfg,
			     struct bl_err *err)
{
	(void)cfg, (void)err;
	gateway = g;
	return 0;
}

static void req_free(void)
{
	if (req)
		free(req->body);
	free(req);
	req = NULL;
}

void __wrap_etcd_gateway_close(struct etcd_gateway *g)
{
	(void)g;
	req_free();
}

struct etcd_req *__wrap_etcd_ask(struct etcd_gateway *g, enum etcd_route route, char *body,
				 bool twice, etcd_end_fn fn)
{
	static struct etcd_req other;
	struct etcd_req *q = &other;

	revoked += route == ETCD_REVOKE;
	if (route == ETCD_REVOKE || !strstr(body, "L2JhcmxpbmUvbGVhZGVy") || route == ETCD_WATCH) {
		if (route != ETCD_GRANT) {
			free(body);
			return q;
		}
	}
	q = calloc(1, sizeof(*q));
	assert_non_null(q);
	*q = (struct etcd_req){ .g = g, .route = route, .body = body, .twice = twice, .fn = fn };
	q->sent_ns = bl_boot_ns();
	req_free();
	req = q;
	return q;
}

/* Answers the last request, which is one of @route. */
static void answer(enum etcd_route route, struct etcd_answer a)
{
	struct etcd_req *q = req;

	assert_non_null(q);
	assert_int_equal(q->route, route);
	req = NULL;
	a.sound = true;
	q->fn(q, BL_STORE_DONE, &a, NULL);
	free(q->body);
	free(q);
}

static void on_elected(void *ctx, uint64_t epoch)
{
	(void)ctx;
	assert_int_not_equal(epoch, 0);
	elections++;
}

static void on_lost(void *ctx, const char *why)
{
	(void)ctx, (void)why;
}

static const struct bl_store_candidate candidate = { .elected = on_elected, .lost = on_lost };

/* Campaigns, up to the transaction that makes the key. */
static struct bl_store *campaign(sd_event *ev)
{
	static const char *const url[] = { "http://127.0.0.1:2379" };
	const struct bl_etcd_cfg cfg = { .endpoints = url, .nendpoints = 1 };
	struct bl_store *s;
	struct bl_err err;

	elections = revoked = 0;
	assert_int_equal(bl_store_etcd(&s, ev, &cfg, &err), 0);
	assert_int_equal(bl_store_campaign(s, "me", &candidate, &err), 0);
	answer(ETCD_RANGE, (struct etcd_answer){ .rev = 7 });
	answer(ETCD_GRANT, (struct etcd_answer){ .lease = 5, .ttl = 5 });
	return s;
}

/*
 * Epoch 0 stands for no leader, and the epoch is the revision of the key. An answer without one
 * elects nobody: the key is read, and then the lease is given back.
 */
static void election__without_a_revision(void **state)
{
	struct etcd_kv kv = { .kv = { .key = "leader", .value = (const uint8_t *)"me", .len = 2 },
			      .lease = 5 };
	struct bl_store *s;
	sd_event *ev;

	(void)state;
	assert_true(sd_event_new(&ev) >= 0);
	s = campaign(ev);
	answer(ETCD_TXN, (struct etcd_answer){ .succeeded = true, .rev = 41 });
	assert_int_equal(elections, 1);
	assert_int_equal(bl_store_epoch(s), 41);
	bl_store_close(s);

	s = campaign(ev);
	answer(ETCD_TXN, (struct etcd_answer){ .succeeded = true });
	assert_int_equal(elections, 0);
	answer(ETCD_RANGE, (struct etcd_answer){ .rev = 8, .kv = &kv, .n = 1 });
	assert_int_equal(elections, 0);
	assert_int_equal(bl_store_epoch(s), 0);
	assert_int_equal(revoked, 1);
	bl_store_close(s);

	/* the transaction's answer is bad, and the key's is not */
	s = campaign(ev);
	answer(ETCD_TXN, (struct etcd_answer){ .succeeded = true });
	kv.create_rev = 42;
	answer(ETCD_RANGE, (struct etcd_answer){ .rev = 42, .kv = &kv, .n = 1 });
	assert_int_equal(elections, 1);
	assert_int_equal(bl_store_epoch(s), 42);
	bl_store_close(s);
	sd_event_unref(ev);
}

static uint64_t read_epoch;

static void on_range(void *ctx, const struct bl_store_reply *r)
{
	(void)ctx;
	read_epoch = r->epoch;
}

/* The answer to a read names the epoch in which it was asked, whatever has happened since. */
static void range__names_its_epoch(void **state)
{
	struct bl_store *s;
	sd_event *ev;

	(void)state;
	assert_true(sd_event_new(&ev) >= 0);
	s = campaign(ev);
	read_epoch = 1;
	bl_store_range(s, "leader", true, on_range, NULL);
	answer(ETCD_RANGE, (struct etcd_answer){ .rev = 40 });
	assert_int_equal(read_epoch, 0);
	bl_store_close(s);

	s = campaign(ev);
	answer(ETCD_TXN, (struct etcd_answer){ .succeeded = true, .rev = 41 });
	bl_store_range(s, "leader", true, on_range, NULL);
	s->epoch = 52;
	answer(ETCD_RANGE, (struct etcd_answer){ .rev = 42 });
	assert_int_equal(read_epoch, 41);
	bl_store_close(s);
	sd_event_unref(ev);
}

/* Of requests that were sent to one member, only the first that fails moves later ones away. */
static void member__that_failed(void **state)
{
	struct etcd_gateway g = { .n = 3, .at = 2 };
	const struct etcd_req a = { .member = 2 }, b = { .member = 2 }, c = { .member = 0 };

	(void)state;
	etcd_gateway_leave(&g, &a);
	assert_int_equal(g.at, 0);
	etcd_gateway_leave(&g, &b);
	assert_int_equal(g.at, 0);
	etcd_gateway_leave(&g, &c);
	assert_int_equal(g.at, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(election__without_a_revision),
		cmocka_unit_test(range__names_its_epoch),
		cmocka_unit_test(member__that_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
