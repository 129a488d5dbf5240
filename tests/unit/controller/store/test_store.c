// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The controller's store: every byte that is sent to etcd and how its answers are read
 * (controller/store/etcd_msg.c), and the SQLite store with its epochs, fences, a full disk and
 * damaged files. What needs a real etcd is in tests/net/controller/test_store_etcd.c.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/store/etcd_msg.h"
#include "controller/store/store.h"

/* ---- etcd's messages ---- */

static void b64__both_ways(void **state)
{
	static const struct {
		const char *bytes, *text;
	} t[] = { { "", "" },
		  { "f", "Zg==" },
		  { "fo", "Zm8=" },
		  { "foo", "Zm9v" },
		  { "foob", "Zm9vYg==" },
		  { "fooba", "Zm9vYmE=" },
		  { "foobar", "Zm9vYmFy" },
		  { "\xff\xfe\xfb", "//77" } };
	static const char *const bad[] = { "Z",    "Zg=",      "Zg",       "Z===",
					   "====", "Zm9v!A==", "Zg==Zg==", "Zm-_" };
	size_t i, len;
	uint8_t *back;
	char *text;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		text = etcd_b64(t[i].bytes, strlen(t[i].bytes));
		assert_string_equal(text, t[i].text);
		back = etcd_unb64(text, &len);
		assert_non_null(back);
		assert_int_equal(len, strlen(t[i].bytes));
		assert_memory_equal(back, t[i].bytes, len + 1);
		free(text);
		free(back);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		assert_null(etcd_unb64(bad[i], &len));
}

static void b64__random(void **state)
{
	struct rnd r = rnd_seeded("b64");
	uint8_t in[64];
	size_t n, k, len;

	(void)state;
	for (n = 0; n <= sizeof(in); n++) {
		uint8_t *exact = exact_copy(in, n), *back;
		char *text;

		for (k = 0; k < n; k++)
			exact[k] = (uint8_t)rnd64(&r);
		text = etcd_b64(exact, n);
		back = etcd_unb64(text, &len);
		assert_non_null(back);
		assert_int_equal(len, n);
		assert_memory_equal(back, exact, n);
		free(text);
		free(back);
		exact_free(exact);
	}
}

static void is(char *text, const char *want)
{
	assert_non_null(text);
	assert_string_equal(text, want);
	free(text);
}

static void request__golden(void **state)
{
	struct etcd_put p = { .fence = "/b/leader",
			      .fence_rev = 41,
			      .key = "/b/k",
			      .rev = 44,
			      .value = "v",
			      .len = 1 };

	(void)state;
	is(etcd_msg_put(&p), "{\"compare\":[{\"key\":\"L2IvbGVhZGVy\",\"target\":\"CREATE\","
			     "\"result\":\"EQUAL\",\"create_revision\":\"41\"},"
			     "{\"key\":\"L2Ivaw==\",\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_"
			     "revision\":\"44\"}],"
			     "\"success\":[{\"request_put\":{\"key\":\"L2Ivaw==\",\"value\":\"dg=="
			     "\"}}],"
			     "\"failure\":[{\"request_range\":{\"key\":\"L2IvbGVhZGVy\"}},{"
			     "\"request_range\":{\"key\":\"L2Ivaw==\"}}]}");
	p.rev = BL_STORE_ANY;
	p.value = NULL;
	is(etcd_msg_put(&p), "{\"compare\":[{\"key\":\"L2IvbGVhZGVy\",\"target\":\"CREATE\","
			     "\"result\":\"EQUAL\",\"create_revision\":\"41\"}],"
			     "\"success\":[{\"request_delete_range\":{\"key\":\"L2Ivaw==\"}}],"
			     "\"failure\":[{\"request_range\":{\"key\":\"L2IvbGVhZGVy\"}},{"
			     "\"request_range\":{\"key\":\"L2Ivaw==\"}}]}");
	/* a new key: revision 0 is sent, although etcd itself would omit it */
	p = (struct etcd_put){
		.fence = "/b/leader", .fence_rev = 1, .key = "/b/k", .rev = 0, .value = "", .len = 0
	};
	is(etcd_msg_put(&p), "{\"compare\":[{\"key\":\"L2IvbGVhZGVy\",\"target\":\"CREATE\","
			     "\"result\":\"EQUAL\",\"create_revision\":\"1\"},"
			     "{\"key\":\"L2Ivaw==\",\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_"
			     "revision\":\"0\"}],"
			     "\"success\":[{\"request_put\":{\"key\":\"L2Ivaw==\",\"value\":\"\"}}]"
			     ","
			     "\"failure\":[{\"request_range\":{\"key\":\"L2IvbGVhZGVy\"}},{"
			     "\"request_range\":{\"key\":\"L2Ivaw==\"}}]}");
	p = (struct etcd_put){ .key = "/b/leader",
			       .create = true,
			       .value = "me",
			       .len = 2,
			       .lease = 7587870000000000001ULL };
	is(etcd_msg_put(&p), "{\"compare\":[{\"key\":\"L2IvbGVhZGVy\",\"target\":\"CREATE\","
			     "\"result\":\"EQUAL\",\"create_revision\":\"0\"}],"
			     "\"success\":[{\"request_put\":{\"key\":\"L2IvbGVhZGVy\",\"value\":"
			     "\"bWU=\",\"lease\":\"7587870000000000001\"}}],"
			     "\"failure\":[{\"request_range\":{\"key\":\"L2IvbGVhZGVy\"}}]}");
	is(etcd_msg_range("/b/k", false), "{\"key\":\"L2Ivaw==\"}");
	is(etcd_msg_range("/b/", true), "{\"key\":\"L2Iv\",\"range_end\":\"L2Iw\"}");
	is(etcd_msg_watch("/b/", true, 45), "{\"create_request\":{\"key\":\"L2Iv\",\"range_end\":"
					    "\"L2Iw\",\"start_revision\":\"45\",\"progress_"
					    "notify\":true}}");
	is(etcd_msg_grant(5), "{\"TTL\":\"5\"}");
	is(etcd_msg_lease(18446744073709551615ULL), "{\"ID\":\"18446744073709551615\"}");
}

static struct etcd_answer reads_of(const char *text, bool watch)
{
	struct etcd_answer a;
	uint8_t *exact = exact_copy(text, strlen(text));

	etcd_msg_read((char *)exact, strlen(text), "/b/", watch, &a);
	exact_free(exact);
	return a;
}

static struct etcd_answer reads(const char *text)
{
	return reads_of(text, true);
}

/* What is not base64 is neither a key nor a value, and neither is a key without our prefix. */
static void answer__keys_that_are_none(void **state)
{
	static const struct {
		const char *kv;
		size_t n;
	} t[] = {
		{ "\"key\":\"L2Ivaw==\",\"value\":\"bWU=\"", 1 },
		{ "\"key\":\"L2Ivaw==\"", 1 },
		{ "\"key\":\"L2Ivaw==\",\"value\":\"b!U=\"", 0 },
		{ "\"value\":\"bWU=\"", 0 },
		{ "\"key\":\"L2Ivaw=!\",\"value\":\"bWU=\"", 0 },
		{ "\"key\":\"L2I=\"", 0 },
		{ "\"key\":\"L2IvawA=\"", 0 },
		{ "\"key\":\"L2Mvaw==\"", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct etcd_answer a;
		char text[200];

		snprintf(text, sizeof(text), "{\"header\":{\"revision\":\"57\"},\"kvs\":[{%s}]}",
			 t[i].kv);
		a = reads(text);
		assert_true(a.sound);
		assert_int_equal(a.n, t[i].n);
		etcd_answer_free(&a);
	}
}

static void answer__what_is_absent_is_zero(void **state)
{
	struct etcd_answer a = reads("{\"header\":{\"cluster_id\":\"1\",\"revision\":\"57\",\"raft_"
				     "term\":\"2\"},\"responses\":[{\"response_range\":{\"header\":"
				     "{\"revision\":\"9\"},"
				     "\"kvs\":[{\"key\":\"L2IvbGVhZGVy\",\"create_revision\":"
				     "\"41\",\"mod_revision\":\"42\",\"version\":\"1\",\"value\":"
				     "\"bWU=\",\"lease\":\"77\"}],\"count\":\"1\"}},"
				     "{\"response_range\":{}}]}");

	(void)state;
	assert_true(a.sound);
	assert_false(a.succeeded);
	assert_int_equal(a.rev, 57);
	assert_int_equal(a.n, 1);
	assert_string_equal(a.kv[0].kv.key, "leader");
	assert_memory_equal(a.kv[0].kv.value, "me", 3);
	assert_int_equal(a.kv[0].create_rev, 41);
	assert_int_equal(a.kv[0].kv.rev, 42);
	assert_int_equal(a.kv[0].lease, 77);
	etcd_answer_free(&a);
	a = reads("{\"header\":{\"revision\":\"58\"},\"succeeded\":true,\"responses\":[{\"response_"
		  "put\":{\"header\":{\"revision\":\"58\"}}}]}");
	assert_true(a.sound && a.succeeded && a.rev == 58 && !a.n && !a.error);
	etcd_answer_free(&a);
	a = reads("{\"header\":{\"revision\":\"58\"},\"succeeded\":null,\"kvs\":null,\"error\":"
		  "null}");
	assert_true(a.sound && !a.succeeded && a.rev == 58 && !a.n && !a.error);
	etcd_answer_free(&a);
}

static void answer__leases(void **state)
{
	struct etcd_answer a = reads("{\"header\":{\"revision\":\"5\"},\"ID\":"
				     "\"7587870000000000001\",\"TTL\":\"5\"}");

	(void)state;
	assert_true(a.sound && a.lease == 7587870000000000001ULL && a.ttl == 5);
	etcd_answer_free(&a);
	a = reads("{\"result\":{\"header\":{\"revision\":\"5\"},\"ID\":\"7\",\"TTL\":\"5\"}}");
	assert_true(a.sound && a.lease == 7 && a.ttl == 5);
	etcd_answer_free(&a);
	/*
	 * A keep-alive of an expired lease is answered with 200 and no TTL; a query for it with -1.
	 */
	a = reads("{\"result\":{\"header\":{\"revision\":\"5\"},\"ID\":\"7\"}}");
	assert_true(a.sound && !a.error && a.ttl == 0);
	etcd_answer_free(&a);
	a = reads("{\"header\":{\"revision\":\"5\"},\"ID\":\"7\",\"TTL\":\"-1\"}");
	assert_true(a.sound && a.ttl == 0);
	etcd_answer_free(&a);
}

static void answer__errors_of_both_shapes(void **state)
{
	static const struct {
		const char *text, *error;
		int code;
		bool sound;
	} t[] = {
		{ "{\"error\":\"etcdserver: no leader\",\"message\":\"etcdserver: no "
		  "leader\",\"code\":14}",
		  "etcdserver: no leader", 14, true },
		{ "{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":\"etcdserver: no "
		  "leader\",\"http_status\":\"Service Unavailable\"}}",
		  "etcdserver: no leader", 14, true },
		{ "{\"error\":{}}", "an error without words", 0, true },
		{ "{\"error\":\"\"}", "an error without words", 0, true },
		{ "", NULL, 0, false },
		{ "[]", NULL, 0, false },
		{ "{", NULL, 0, false },
		{ "404 page not found", NULL, 0, false },
		{ "{\"result\":null}", NULL, 0, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct etcd_answer a = reads(t[i].text);

		assert_int_equal(a.sound, t[i].sound);
		assert_int_equal(a.grpc_code, t[i].code);
		if (t[i].error)
			assert_string_equal(a.error, t[i].error);
		else
			assert_null(a.error);
		etcd_answer_free(&a);
	}
}

static void answer__watches(void **state)
{
	struct etcd_answer a = reads("{\"result\":{\"header\":{\"revision\":\"12\"},\"created\":"
				     "true}}");

	(void)state;
	assert_true(a.sound && a.created && !a.canceled && a.rev == 12);
	etcd_answer_free(&a);
	/* a PUT has no type, and an empty value is absent, too */
	a = reads("{\"result\":{\"header\":{\"revision\":\"14\"},\"events\":[{\"kv\":{\"key\":"
		  "\"L2Ivaw==\",\"mod_revision\":\"13\"}},{\"type\":\"DELETE\",\"kv\":{\"key\":"
		  "\"L2Ivaw==\",\"mod_revision\":\"14\"}}]}}");
	assert_int_equal(a.n, 2);
	assert_true(!a.kv[0].gone && a.kv[0].kv.value && !a.kv[0].kv.len && a.kv[0].kv.rev == 13);
	assert_true(a.kv[1].gone && !a.kv[1].kv.value && a.kv[1].kv.rev == 14);
	etcd_answer_free(&a);
	/* a value beside a DELETE is not there, and neither is its length */
	a = reads("{\"result\":{\"events\":[{\"type\":\"DELETE\",\"kv\":{\"key\":\"L2Ivaw==\","
		  "\"value\":\"bWU=\"}}]}}");
	assert_true(a.n == 1 && a.kv[0].gone && !a.kv[0].kv.value && !a.kv[0].kv.len);
	etcd_answer_free(&a);
	a = reads("{\"result\":{\"header\":{\"revision\":\"20\"},\"canceled\":true,\"compact_"
		  "revision\":\"18\",\"cancel_reason\":\"mvcc: required revision has been "
		  "compacted\"}}");
	assert_true(a.canceled && a.compacted == 18);
	assert_string_equal(a.cancel_reason, "mvcc: required revision has been compacted");
	etcd_answer_free(&a);
	/* What is no answer to a watch has no events: nobody would expect a key without a value. */
	a = reads_of("{\"events\":[{\"type\":\"DELETE\",\"kv\":{\"key\":\"L2Ivaw==\"}}],\"kvs\":[{"
		     "\"key\":\"L2Ivaw==\",\"value\":\"bWU=\"}]}",
		     false);
	assert_true(a.n == 1 && !a.kv[0].gone && a.kv[0].kv.len == 2);
	etcd_answer_free(&a);
	/* what is not below our prefix, is not base64, or has a 0 in its key, is not ours */
	a = reads("{\"kvs\":[{\"key\":\"L2M=\"},{\"key\":\"L2Ivaw=\"},{\"key\":\"L2IvAGs=\"},{},{"
		  "\"key\":\"L2Iv\"}]}");
	assert_int_equal(a.n, 1);
	assert_string_equal(a.kv[0].kv.key, "");
	etcd_answer_free(&a);
}

/* ---- SQLite ---- */

static char dir[64], path[128];

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/barline-store-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/db", dir);
	return 0;
}

static int remove_dir(void **state)
{
	static const char *const names[] = { "db", "db-journal", "db.leader" };
	char file[160];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(file, sizeof(file), "%s/%s", dir, names[i]);
		unlink(file);
	}
	return rmdir(dir);
}

/** struct party - The side of one controller, and how often its callbacks were called. */
struct party {
	sd_event *ev;
	struct bl_store *s;
	uint64_t epoch; /* that it leads with; 0: it does not lead */
	unsigned int lost, troubles, answers, resets, events;
	char other[64], trouble[512];
	struct bl_store_reply r;            /* the last answer */
	char text[512], key[64], value[64]; /* copies of its text and its first key */
};

static void on_elected(void *ctx, uint64_t epoch)
{
	((struct party *)ctx)->epoch = epoch;
}

static void on_lost(void *ctx, const char *why)
{
	struct party *p = ctx;

	assert_non_null(why);
	p->epoch = 0;
	p->lost++;
}

static void on_other(void *ctx, const char *leader)
{
	struct party *p = ctx;

	snprintf(p->other, sizeof(p->other), "%s", leader);
}

static void on_trouble(void *ctx, const char *text)
{
	struct party *p = ctx;

	p->troubles++;
	snprintf(p->trouble, sizeof(p->trouble), "%s", text ? text : "");
}

static void on_answer(void *ctx, const struct bl_store_reply *r)
{
	struct party *p = ctx;

	p->answers++;
	p->r = *r;
	snprintf(p->text, sizeof(p->text), "%s", r->text ? r->text : "");
	snprintf(p->key, sizeof(p->key), "%s", r->n ? r->kv[0].key : r->key ? r->key : "");
	snprintf(p->value, sizeof(p->value), "%.*s", r->n ? (int)r->kv[0].len : 0,
		 r->n ? (const char *)r->kv[0].value : "");
}

static void on_event(void *ctx, const struct bl_store_kv *kv)
{
	struct party *p = ctx;

	p->events++;
	snprintf(p->key, sizeof(p->key), "%s", kv->key);
	snprintf(p->value, sizeof(p->value), "%.*s", (int)kv->len,
		 kv->value ? (const char *)kv->value : "-");
}

static void on_reset(void *ctx, const struct bl_store_reply *r)
{
	struct party *p = ctx;

	p->resets++;
	p->r = *r;
}

static void party_open(struct party *p)
{
	struct bl_err err;

	memset(p, 0, sizeof(*p));
	assert_true(sd_event_new(&p->ev) >= 0);
	if (bl_store_sqlite(&p->s, p->ev, path, &err))
		fail_msg("%s", err.text);
}

static void party_close(struct party *p)
{
	bl_store_close(p->s);
	sd_event_unref(p->ev);
}

/* Runs the loop until *@n has changed. */
static void serve(struct party *p, const unsigned int *n)
{
	unsigned int before = *n, k;

	for (k = 0; *n == before && k < 600; k++)
		assert_true(sd_event_run(p->ev, 100000) >= 0);
	assert_int_not_equal(*n, before);
}

static void campaign(struct party *p, const char *me)
{
	static struct bl_store_candidate c[4];
	static unsigned int next;
	struct bl_store_candidate *v = &c[next++ % 4];
	struct bl_err err;

	*v = (struct bl_store_candidate){ on_elected, on_lost, on_other, on_trouble, p };
	assert_int_equal(bl_store_campaign(p->s, me, v, &err), 0);
}

static void lead(struct party *p, const char *me)
{
	unsigned int k;

	campaign(p, me);
	for (k = 0; !p->epoch && k < 600; k++)
		assert_true(sd_event_run(p->ev, 100000) >= 0);
	assert_int_not_equal(p->epoch, 0);
	assert_int_equal(bl_store_epoch(p->s), p->epoch);
}

static void put(struct party *p, uint64_t epoch, const char *key, uint64_t rev, const char *value)
{
	bl_store_put(p->s, epoch, key, rev, value, value ? strlen(value) : 0, on_answer, p);
	serve(p, &p->answers);
}

static void get(struct party *p, const char *prefix, bool one)
{
	bl_store_range(p->s, prefix, one, on_answer, p);
	serve(p, &p->answers);
	assert_int_equal(p->r.outcome, BL_STORE_DONE);
}

static void sqlite__put_and_range(void **state)
{
	struct party p;
	uint64_t rev;

	(void)state;
	party_open(&p);
	assert_int_equal(bl_store_epoch(p.s), 0);
	put(&p, 1, "a/1", 0, "x"); /* no controller leads yet */
	assert_int_equal(p.r.outcome, BL_STORE_REFUSED);
	assert_int_equal(p.r.why, BL_STORE_WHY_FENCED);
	lead(&p, "me");
	assert_int_equal(p.epoch, 1);
	put(&p, 1, "a/1", 0, "one");
	assert_int_equal(p.r.outcome, BL_STORE_DONE);
	rev = p.r.rev;
	put(&p, 1, "a/1", 0, "two"); /* the key exists */
	assert_int_equal(p.r.why, BL_STORE_WHY_CONFLICT);
	put(&p, 1, "a/1", rev + 1, "two");
	assert_int_equal(p.r.why, BL_STORE_WHY_CONFLICT);
	put(&p, 1, "a/1", rev, "two");
	assert_int_equal(p.r.outcome, BL_STORE_DONE);
	assert_true(p.r.rev > rev);
	put(&p, 0, "a/1", BL_STORE_ANY, "zero");
	assert_int_equal(p.r.why, BL_STORE_WHY_FENCED);
	put(&p, 2, "a/1", BL_STORE_ANY, "later");
	assert_int_equal(p.r.why, BL_STORE_WHY_FENCED);
	put(&p, 1, "a/2", BL_STORE_ANY, "");
	put(&p, 1, "b/%_", BL_STORE_ANY, "other");
	get(&p, "a/", false);
	assert_int_equal(p.r.n, 2);
	assert_string_equal(p.key, "a/1");
	assert_string_equal(p.value, "two");
	get(&p, "", false);
	assert_int_equal(p.r.n, 3);
	get(&p, "a/2", true);
	assert_int_equal(p.r.n, 1);
	get(&p, "a", true);
	assert_int_equal(p.r.n, 0);
	get(&p, "b/%", false); /* a prefix is not a pattern */
	assert_int_equal(p.r.n, 1);
	put(&p, 1, "a/1", BL_STORE_ANY, NULL);
	assert_int_equal(p.r.outcome, BL_STORE_DONE);
	get(&p, "a/", false);
	assert_int_equal(p.r.n, 1);
	assert_string_equal(p.key, "a/2");
	party_close(&p);
	/* all of it is there the next time, and the epoch is another one */
	party_open(&p);
	get(&p, "", false);
	assert_int_equal(p.r.n, 2);
	lead(&p, "me again");
	assert_int_equal(p.epoch, 2);
	put(&p, 1, "a/2", BL_STORE_ANY, "old");
	assert_int_equal(p.r.why, BL_STORE_WHY_FENCED);
	party_close(&p);
}

static void sqlite__two_on_one_file(void **state)
{
	struct party a, b;
	unsigned int k;

	(void)state;
	party_open(&a);
	party_open(&b);
	lead(&a, "10.0.0.1:61693");
	campaign(&b, "10.0.0.2:61693");
	for (k = 0; !*b.other && k < 100; k++)
		sd_event_run(b.ev, 100000);
	assert_string_equal(b.other, "10.0.0.1:61693");
	assert_int_equal(b.epoch, 0);
	put(&b, a.epoch + 1, "k", 0, "stolen");
	assert_int_equal(b.r.why, BL_STORE_WHY_FENCED);
	/* whatever happened to the lock, the epoch in the file fences */
	bl_store_resign(a.s, 100);
	assert_int_equal(bl_store_epoch(a.s), 0);
	for (k = 0; !b.epoch && k < 100; k++)
		sd_event_run(b.ev, 100000);
	assert_int_equal(b.epoch, 2);
	put(&a, 1, "k", 0, "late");
	assert_int_equal(a.r.why, BL_STORE_WHY_FENCED);
	put(&b, 2, "k", 0, "right");
	assert_int_equal(b.r.outcome, BL_STORE_DONE);
	party_close(&a);
	party_close(&b);
}

static void sqlite__watch(void **state)
{
	struct party p;
	const struct bl_store_watcher w = { on_event, on_reset, &p };

	(void)state;
	party_open(&p);
	lead(&p, "me");
	put(&p, 1, "a/1", 0, "x");
	assert_int_equal(bl_store_watch(p.s, "a/", &w), 0);
	serve(&p, &p.resets);
	assert_int_equal(p.r.n, 1);
	put(&p, 1, "b/1", 0, "y");
	assert_int_equal(p.events, 0);
	put(&p, 1, "a/2", 0, "z");
	assert_int_equal(p.events, 1);
	put(&p, 1, "a/2", 0, "conflict");
	assert_int_equal(p.events, 1);
	put(&p, 1, "a/2", BL_STORE_ANY, NULL);
	assert_int_equal(p.events, 2);
	assert_int_equal(p.resets, 1);
	party_close(&p);
}

static void sqlite__sure(void **state)
{
	struct party p;
	char key[BL_STORE_KEY_MAX + 2];
	uint64_t rev;

	(void)state;
	party_open(&p);
	lead(&p, "me");
	assert_int_equal(bl_store_put_sure(p.s, 1, "k", 0, "v", 1, on_answer, &p), 0);
	assert_int_equal(p.answers, 0); /* the callback does not come from within the call */
	serve(&p, &p.answers);
	assert_int_equal(p.r.outcome, BL_STORE_DONE);
	assert_string_equal(p.key, "k");
	assert_int_equal(p.r.epoch, 1);
	rev = p.r.rev;
	bl_store_range(p.s, "", false, on_answer, &p);
	serve(&p, &p.answers);
	assert_int_equal(p.r.epoch, 1);
	/*
	 * the same put again is known to be done: this is what a try that timed out leaves behind
	 */
	assert_int_equal(bl_store_put_sure(p.s, 1, "k", 0, "v", 1, on_answer, &p), 0);
	serve(&p, &p.answers);
	assert_int_equal(p.r.outcome, BL_STORE_DONE);
	assert_int_equal(p.r.rev, rev);
	assert_int_equal(bl_store_put_sure(p.s, 1, "k", 0, "w", 1, on_answer, &p), 0);
	serve(&p, &p.answers);
	assert_int_equal(p.r.why, BL_STORE_WHY_CONFLICT);
	assert_int_equal(bl_store_put_sure(p.s, 2, "k", rev, "w", 1, on_answer, &p), 0);
	serve(&p, &p.answers);
	assert_int_equal(p.r.why, BL_STORE_WHY_FENCED);
	assert_string_equal(p.key, "k");
	assert_int_equal(p.r.epoch, 2);
	/* deleted by the revision that it has, and by no other */
	assert_int_equal(bl_store_put_sure(p.s, 1, "k", rev, "w", 1, on_answer, &p), 0);
	serve(&p, &p.answers);
	assert_int_equal(p.r.outcome, BL_STORE_DONE);
	assert_int_equal(bl_store_put_sure(p.s, 1, "k", BL_STORE_ANY, "x", 1, on_answer, &p), 0);
	serve(&p, &p.answers);
	assert_int_equal(p.r.outcome, BL_STORE_DONE);
	rev = p.r.rev;
	memset(key, 'k', sizeof(key) - 1);
	key[BL_STORE_KEY_MAX + 1] = 0;
	assert_int_equal(bl_store_put_sure(p.s, 1, key, 0, "v", 1, on_answer, &p), -EINVAL);
	assert_int_equal(bl_store_put_sure(p.s, 1, "", 0, "v", 1, on_answer, &p), -EINVAL);
	/* a put that is under way is dropped with the store */
	assert_int_equal(bl_store_put_sure(p.s, 1, "k", rev, "w", 1, on_answer, &p), 0);
	bl_store_put(p.s, 1, "l", 0, "w", 1, on_answer, &p);
	rev = p.answers;
	party_close(&p);
	assert_int_equal(p.answers, rev);
}

/* The file may not grow: this is what a full disk does to SQLite, without a disk. */
static void sqlite__full(void **state)
{
	static char big[200000];
	struct party p;
	unsigned int was;

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	party_open(&p);
	lead(&p, "me");
	put(&p, 1, "k", 0, "small");
	/*
	 * RLIMIT_FSIZE is a limit of the process, and a soft limit can be raised again. It gives an
	 * I/O error in the middle of a transaction, which is close to ENOSPC.
	 */
	{
		struct rlimit old, low;

		getrlimit(RLIMIT_FSIZE, &old);
		low = old;
		low.rlim_cur = 40000;
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &low);
		put(&p, 1, "big", 0, big);
		assert_int_equal(p.r.outcome, BL_STORE_REFUSED);
		assert_int_equal(p.r.why, BL_STORE_WHY_DOWN);
		assert_non_null(strstr(p.text, path));
		assert_string_equal(p.trouble, p.text);
		/* a put of bl_store_put_sure() waits */
		assert_int_equal(bl_store_put_sure(p.s, 1, "big", 0, big, sizeof(big) - 1,
						   on_answer, &p),
				 0);
		was = p.troubles;
		serve(&p, &p.troubles);
		assert_true(p.troubles > was);
		setrlimit(RLIMIT_FSIZE, &old);
	}
	serve(&p, &p.answers);
	assert_int_equal(p.r.outcome, BL_STORE_DONE);
	assert_string_equal(p.trouble, "");
	get(&p, "", false);
	assert_int_equal(p.r.n, 2);
	party_close(&p);
}

static void overwrite(off_t at, const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, n, at), n);
	close(fd);
}

static void refused(int rc, const char *words)
{
	struct bl_store *s;
	struct bl_err err;
	sd_event *ev;

	assert_true(sd_event_new(&ev) >= 0);
	assert_int_equal(bl_store_sqlite(&s, ev, path, &err), rc);
	assert_null(s);
	if (!strstr(err.text, words) || !strstr(err.text, path))
		fail_msg("\"%s\" does not say \"%s\"", err.text, words);
	sd_event_unref(ev);
}

static void sqlite__damaged(void **state)
{
	static const char junk[4096] = "this is no database, and no part of one";
	struct party p;
	char key[32];
	int i;

	(void)state;
	party_open(&p);
	lead(&p, "me");
	for (i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "failure/%010d", i);
		put(&p, 1, key, 0, "a value of some length, so that there are some pages");
	}
	party_close(&p);
	overwrite(8192, junk, sizeof(junk));
	refused(-EBADMSG, "move it away");
	overwrite(0, junk, sizeof(junk));
	refused(-EBADMSG, "not a database");
	assert_int_equal(truncate(path, 100), 0);
	refused(-EBADMSG, "not a database");
}

static void sqlite__another_file(void **state)
{
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE t (a)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	refused(-EBADMSG, "none of barline's");
	unlink(path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "PRAGMA application_id = 1651270516; PRAGMA user_version = "
				      "2; CREATE TABLE t (a)",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	refused(-EPROTO, "format 2");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	refused(-EIO, "cannot open");
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
#define SQLITE_TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b64__both_ways),
		cmocka_unit_test(b64__random),
		cmocka_unit_test(request__golden),
		cmocka_unit_test(answer__keys_that_are_none),
		cmocka_unit_test(answer__what_is_absent_is_zero),
		cmocka_unit_test(answer__leases),
		cmocka_unit_test(answer__errors_of_both_shapes),
		cmocka_unit_test(answer__watches),
		SQLITE_TEST(sqlite__put_and_range),
		SQLITE_TEST(sqlite__two_on_one_file),
		SQLITE_TEST(sqlite__watch),
		SQLITE_TEST(sqlite__sure),
		SQLITE_TEST(sqlite__full),
		SQLITE_TEST(sqlite__damaged),
		SQLITE_TEST(sqlite__another_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
