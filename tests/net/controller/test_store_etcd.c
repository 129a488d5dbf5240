// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The store on three real members of etcd. False conditions refuse a change, unknown outcomes are
 * read back, a lost quorum stops changes with a message, a watch survives a compaction, and a
 * former leader writes nothing any more.
 *
 * etcd may change its leader or be slow at any time. A case waits for what the protocol promises in
 * the end, and asserts at every moment only what must hold at every moment.
 */
#include "tests/net/controller/etcd.h"

#include "controller/store/store.h"

#define WAIT_S 60
#define TTL_S  3
#include "tests/net/event_loop.h"

/** struct party - one controller's side. */
struct party {
	struct bl_store *s;
	uint64_t epoch, highest; /* @epoch: 0: it does not lead */
	unsigned int lost, troubles, answers, resets, events;
	char other[64], trouble[512], why[128];
	struct bl_store_candidate c;
	struct bl_store_watcher w;
	struct bl_store_reply r; /* the last answer, with its strings in @text and @value */
	char text[512], value[64];
	char seen[64][16]; /* from the watch: the value of key w/N, "": none */
};

static void on_elected(void *ctx, uint64_t epoch)
{
	struct party *p = ctx;

	CHECK(epoch > p->highest, "epoch %" PRIu64 " after %" PRIu64, epoch, p->highest);
	p->epoch = p->highest = epoch;
}

static void on_lost(void *ctx, const char *why)
{
	struct party *p = ctx;

	p->epoch = 0;
	p->lost++;
	snprintf(p->why, sizeof(p->why), "%s", why);
}

static void on_other(void *ctx, const char *leader)
{
	snprintf(((struct party *)ctx)->other, 64, "%s", leader);
}

static void on_trouble(void *ctx, const char *text)
{
	struct party *p = ctx;

	p->troubles += text != NULL;
	if (text)
		snprintf(p->trouble, sizeof(p->trouble), "%s", text);
}

static void on_answer(void *ctx, const struct bl_store_reply *r)
{
	struct party *p = ctx;

	p->answers++;
	p->r = *r;
	snprintf(p->text, sizeof(p->text), "%s", r->text ? r->text : "");
	snprintf(p->value, sizeof(p->value), "%.*s", r->n ? (int)r->kv[0].len : 0,
		 r->n ? (const char *)r->kv[0].value : "");
}

static void see(struct party *p, const struct bl_store_kv *kv)
{
	unsigned int n = 64;
	bool ours = sscanf(kv->key, "w/%u", &n) == 1 && n < 64;

	CHECK(ours, "%s", kv->key);
	snprintf(p->seen[n], 16, "%.*s", (int)kv->len, kv->value ? (const char *)kv->value : "");
}

static void on_event(void *ctx, const struct bl_store_kv *kv)
{
	((struct party *)ctx)->events++;
	see(ctx, kv);
}

static void on_reset(void *ctx, const struct bl_store_reply *r)
{
	struct party *p = ctx;
	size_t i;

	p->resets++;
	memset(p->seen, 0, sizeof(p->seen));
	for (i = 0; i < r->n; i++)
		see(p, &r->kv[i]);
}

static void open_at(struct party *p, const char *const *urls, unsigned int n)
{
	const struct bl_etcd_cfg cfg = {
		.endpoints = urls, .nendpoints = n, .prefix = "/t/", .ttl_s = TTL_S
	};
	struct bl_err err;

	memset(p, 0, sizeof(*p));
	if (!ev)
		CHECK(sd_event_new(&ev) >= 0, "an event loop");
	CHECK(!bl_store_etcd(&p->s, ev, &cfg, &err), "%s", err.text);
}

static void campaign(struct party *p, const char *me)
{
	struct bl_err err;

	p->c = (struct bl_store_candidate){ on_elected, on_lost, on_other, on_trouble, p };
	CHECK(!bl_store_campaign(p->s, me, &p->c, &err), "%s", err.text);
}

/*
 * Puts a value with a known outcome. An outcome that stays unknown is not the subject of the case,
 * so the request is repeated until it is known.
 */
static void put(struct party *p, uint64_t epoch, const char *key, uint64_t rev, const char *value)
{
	uint64_t end = t_mono() + WAIT_S * 1000000000ULL;

	do {
		unsigned int n = p->answers;

		CHECK(t_mono() < end, "%s", p->text);
		bl_store_put(p->s, epoch, key, rev, value, value ? strlen(value) : 0, on_answer, p);
		UNTIL(p->answers != n);
	} while (p->r.outcome == BL_STORE_UNKNOWN || p->r.why == BL_STORE_WHY_DOWN);
}

static void get(struct party *p, const char *key, bool one)
{
	uint64_t end = t_mono() + WAIT_S * 1000000000ULL;

	do {
		unsigned int n = p->answers;

		CHECK(t_mono() < end, "%s", p->text);
		bl_store_range(p->s, key, one, on_answer, p);
		UNTIL(p->answers != n);
	} while (p->r.outcome != BL_STORE_DONE);
}

/* Puts a value and makes sure that it is done, whatever elections this takes. */
static void put_sure(struct party *p, const char *key, uint64_t rev, const char *value)
{
	uint64_t end = t_mono() + WAIT_S * 1000000000ULL;

	do {
		unsigned int n = p->answers;

		UNTIL(p->epoch);
		CHECK(t_mono() < end, "%s", p->text);
		CHECK(!bl_store_put_sure(p->s, p->epoch, key, rev, value, strlen(value), on_answer,
					 p),
		      "put_sure");
		UNTIL(p->answers != n);
	} while (p->r.why == BL_STORE_WHY_FENCED);
	CHECK(p->r.outcome == BL_STORE_DONE, "%s", p->text);
}

RACK_TEST(compare__that_is_false_refuses)
{
	struct party p;
	uint64_t rev, epoch;

	etcd_up();
	open_at(&p, etcd.urls, ETCD_MEMBERS);
	put(&p, 0, "k", BL_STORE_ANY, "nobody leads");
	CHECK(p.r.outcome == BL_STORE_REFUSED && p.r.why == BL_STORE_WHY_FENCED, "%s", p.text);
	put(&p, 1, "k", BL_STORE_ANY, "nobody leads");
	CHECK(p.r.outcome == BL_STORE_REFUSED && p.r.why == BL_STORE_WHY_FENCED, "%s", p.text);
	get(&p, "k", true);
	CHECK(!p.r.n, "it was written");
	campaign(&p, "me");
	put_sure(&p, "k", 0, "one");
	rev = p.r.rev;
	do { /* the epoch may change in between, if etcd is that slow */
		UNTIL(p.epoch);
		epoch = p.epoch;
		put(&p, epoch, "k", 0, "two");
	} while (p.r.why == BL_STORE_WHY_FENCED);
	CHECK(p.r.outcome == BL_STORE_REFUSED && p.r.why == BL_STORE_WHY_CONFLICT, "%s", p.text);
	put(&p, epoch, "k", rev + 1, "two");
	CHECK(p.r.outcome == BL_STORE_REFUSED && p.r.why != BL_STORE_WHY_DOWN, "%s", p.text);
	put(&p, epoch - 1, "k", BL_STORE_ANY, "two");
	CHECK(p.r.why == BL_STORE_WHY_FENCED, "%s", p.text);
	put(&p, epoch + 1, "k", BL_STORE_ANY, "two");
	CHECK(p.r.why == BL_STORE_WHY_FENCED, "%s", p.text);
	get(&p, "k", true);
	CHECK(p.r.n == 1 && !strcmp(p.value, "one"), "\"%s\"", p.value);
	put_sure(&p, "k2", 0, "x");
	put_sure(&p, "l", 0, "y");
	get(&p, "k", false);
	CHECK(p.r.n == 2, "%zu", p.r.n);
	do { /* likewise */
		UNTIL(p.epoch);
		epoch = p.epoch;
		get(&p, "", false);
	} while (p.epoch != epoch || p.r.n == 3);
	CHECK(p.r.n == 4, "%zu: the election's key, too", p.r.n);
	bl_store_resign(p.s, 1000);
	bl_store_close(p.s);
}

RACK_TEST(election__one_after_the_other)
{
	struct party a, b;
	uint64_t first;

	etcd_up();
	open_at(&a, etcd.urls, ETCD_MEMBERS);
	open_at(&b, etcd.urls + 1, 2);
	campaign(&a, "10.0.0.1:61693");
	UNTIL(a.epoch);
	first = a.epoch;
	campaign(&b, "10.0.0.2:61693");
	UNTIL(*b.other);
	CHECK(!strcmp(b.other, "10.0.0.1:61693"), "%s", b.other);
	bl_store_resign(a.s, 1000);
	UNTIL(b.epoch);
	CHECK(b.epoch > first, "epochs rise");
	put(&a, first, "k", BL_STORE_ANY, "late");
	CHECK(a.r.outcome == BL_STORE_REFUSED && a.r.why == BL_STORE_WHY_FENCED, "%s", a.text);
	bl_store_close(a.s);
	/* When it dies, another one leads once its lease has expired. */
	open_at(&a, etcd.urls, ETCD_MEMBERS);
	bl_store_close(b.s);
	campaign(&a, "10.0.0.1:61693");
	UNTIL(a.epoch);
	CHECK(a.epoch > first, "epochs rise");
	bl_store_close(a.s);
}

/* A lease that ends under its holder: it expired, or a stale leader of etcd revoked it. */
RACK_TEST(lease__revoked_is_noticed)
{
	char answer[LAB_ETCD_ANSWER] = "", body[128], *lease;
	uint64_t first, end = t_mono() + WAIT_S * 1000000000ULL;
	struct party p;

	etcd_up();
	open_at(&p, etcd.urls, ETCD_MEMBERS);
	campaign(&p, "me");
	UNTIL(p.epoch);
	first = p.epoch;
	/* Repeat if etcd did not revoke the lease, or if it was another one by then. */
	do {
		CHECK(t_mono() < end, "%s", answer);
		etcd_post_sure(0, "/v3/kv/range", "{\"key\":\"L3QvbGVhZGVy\"}", answer);
		lease = strstr(answer, "\"lease\":\"");
		snprintf(body, sizeof(body), "{\"ID\":\"%" PRIu64 "\"}",
			 lease ? (uint64_t)strtoull(lease + 9, NULL, 10) : 0);
	} while (lease && etcd_post(0, "/v3/lease/revoke", body, answer) != 200);
	UNTIL(p.lost);
	UNTIL(p.epoch);
	CHECK(p.epoch > first, "%" PRIu64, p.epoch);
	put(&p, first, "k", BL_STORE_ANY, "of before");
	CHECK(p.r.why == BL_STORE_WHY_FENCED, "%s", p.text);
	bl_store_close(p.s);
}

/*
 * Two of three members stand still. Nothing is written, the leader steps down in time by its own
 * clock and reports the reason, and it continues when the members do.
 */
RACK_TEST(quorum__lost_and_found)
{
	struct party p;
	uint64_t held, now, rev, first;
	unsigned int n;

	etcd_up();
	open_at(&p, etcd.urls, ETCD_MEMBERS);
	campaign(&p, "me");
	put_sure(&p, "k", 0, "before");
	rev = p.r.rev;
	first = p.epoch;
	etcd_signal(1, SIGSTOP);
	etcd_signal(2, SIGSTOP);
	n = p.answers;
	UNTIL(p.epoch || p.lost);
	CHECK(!bl_store_put_sure(p.s, first, "k", rev, "during", 6, on_answer, &p), "put_sure");
	while (p.epoch) {
		CHECK(sd_event_run(ev, 5000) >= 0, "the event loop");
		held = bl_store_held_until(p.s);
		now = bl_boot_ns();
		CHECK(now < held || !bl_store_epoch(p.s), "it believes that it leads");
	}
	UNTIL(p.answers != n);
	CHECK(p.r.outcome == BL_STORE_REFUSED && p.r.why == BL_STORE_WHY_FENCED, "%s", p.text);
	UNTIL(p.troubles);
	CHECK(strstr(p.trouble, "etcd at http://127.0.0.1:2379"), "%s", p.trouble);
	etcd_signal(1, SIGCONT);
	etcd_signal(2, SIGCONT);
	UNTIL(p.epoch);
	CHECK(p.epoch >= first, "epochs rise");
	/*
	 * "during" was written or not; either way the outcome is known now, and what is written
	 * after it stays.
	 */
	get(&p, "k", true);
	CHECK(!strcmp(p.value, "before") || !strcmp(p.value, "during"), "\"%s\"", p.value);
	put_sure(&p, "k2", 0, "after");
	bl_store_close(p.s);
}

/*
 * A member without a quorum reports that at once, because every request demands a leader; without
 * that it took 7 s (measured).
 */
RACK_TEST(quorum__said_in_words)
{
	struct party p;
	uint64_t end = t_mono() + WAIT_S * 1000000000ULL;

	etcd_up();
	open_at(&p, etcd.urls, 1);
	etcd_signal(1, SIGSTOP);
	etcd_signal(2, SIGSTOP);
	do {
		unsigned int n = p.answers;

		CHECK(t_mono() < end, "%s", p.text);
		bl_store_range(p.s, "k", true, on_answer, &p);
		UNTIL(p.answers != n);
	} while (!strstr(p.text, "no quorum"));
	CHECK(p.r.outcome == BL_STORE_REFUSED && p.r.why == BL_STORE_WHY_DOWN, "%s", p.text);
	/* A request that is not answered in time is another matter, and reports that. */
	do {
		unsigned int n = p.answers;

		CHECK(t_mono() < end, "%s", p.text);
		bl_store_put(p.s, 1, "k", 0, "v", 1, on_answer, &p);
		UNTIL(p.answers != n);
		CHECK(p.r.outcome != BL_STORE_DONE, "done by nobody");
	} while (!strstr(p.text, "no quorum"));
	CHECK(p.r.outcome == BL_STORE_REFUSED && p.r.why == BL_STORE_WHY_DOWN,
	      "a write that was not proposed is known to be not done: %s", p.text);
	bl_store_close(p.s);
}

/*
 * A put that times out may appear later. It is read back, done once, and does not undo what is
 * written after it.
 */
RACK_TEST(unknown__is_read_back)
{
	struct party p;
	unsigned int round, n, unknown = 0;
	uint64_t rev;

	etcd_up();
	open_at(&p, etcd.urls, ETCD_MEMBERS);
	campaign(&p, "me");
	put_sure(&p, "k", 0, "0");
	for (round = 1; round <= 6; round++) {
		char value[16];

		rev = p.r.rev;
		snprintf(value, sizeof(value), "%u", round);
		UNTIL(p.epoch);
		/*
		 * All members stand still: the kernel accepts the request, and it is answered when
		 * they continue.
		 */
		for (n = 0; n < ETCD_MEMBERS; n++)
			etcd_signal(n, SIGSTOP);
		n = p.answers;
		bl_store_put(p.s, p.epoch, "k", rev, value, strlen(value), on_answer, &p);
		UNTIL(p.answers != n);
		CHECK(p.r.outcome != BL_STORE_DONE, "done by nobody");
		unknown += p.r.outcome == BL_STORE_UNKNOWN;
		for (n = 0; n < ETCD_MEMBERS; n++)
			etcd_signal(n, SIGCONT);
		put_sure(&p, "k", rev, value);
		get(&p, "k", true);
		CHECK(p.r.n == 1 && !strcmp(p.value, value), "\"%s\" instead of \"%s\"", p.value,
		      value);
		put_sure(&p, "k", BL_STORE_ANY, value);
		rev = p.r.rev;
		serve_ms(100);
		get(&p, "k", true);
		CHECK(!strcmp(p.value, value), "undone: \"%s\"", p.value);
		p.r.rev = rev;
	}
	CHECK(unknown, "no outcome was unknown");
	bl_store_close(p.s);
}

/*
 * The watch's member dies. Meanwhile keys change, and the history is compacted away. Nothing may be
 * missed, and what was deleted may not stay.
 */
RACK_TEST(watch__compacted_away)
{
	char answer[LAB_ETCD_ANSWER], body[64], key[16];
	struct party p, q;
	unsigned int i;

	etcd_up();
	open_at(&p, etcd.urls, 1);
	open_at(&q, etcd.urls + 1, 2);
	p.w = (struct bl_store_watcher){ on_event, on_reset, &p };
	CHECK(!bl_store_watch(p.s, "w/", &p.w), "watch");
	UNTIL(p.resets); /* It knows the current state: nothing. What follows are events. */
	campaign(&q, "me");
	for (i = 0; i < 8; i++) {
		snprintf(key, sizeof(key), "w/%u", i);
		put_sure(&q, key, 0, "old");
	}
	UNTIL(!strcmp(p.seen[7], "old"));
	CHECK(p.resets >= 1 && (p.events || p.resets > 1), "the watch did not watch");
	etcd_kill(0);
	i = p.resets;
	put_sure(&q, "w/3", BL_STORE_ANY, "new");
	do {
		UNTIL(q.epoch);
		put(&q, q.epoch, "w/4", BL_STORE_ANY, NULL);
	} while (q.r.outcome != BL_STORE_DONE);
	put_sure(&q, "w/9", BL_STORE_ANY, "new");
	snprintf(body, sizeof(body), "{\"revision\":\"%" PRIu64 "\"}", q.r.rev);
	/* A request that is done and not answered is refused when it is repeated. */
	while (etcd_post(1, "/v3/kv/compaction", body, answer) != 200 && !strstr(answer, "compacte"
											 "d"))
		usleep(20000);
	etcd_member(0);
	UNTIL(!strcmp(p.seen[9], "new"));
	CHECK(!strcmp(p.seen[3], "new") && !*p.seen[4] && !strcmp(p.seen[7], "old"), "%s %s %s",
	      p.seen[3], p.seen[4], p.seen[7]);
	CHECK(p.resets > i, "it went on at a revision that is gone");
	/* The watch continues. */
	put_sure(&q, "w/10", BL_STORE_ANY, "later");
	UNTIL(!strcmp(p.seen[10], "later"));
	bl_store_close(p.s);
	bl_store_close(q.s);
}

/*
 * A controller in a process of its own leads, stands still beyond its lease, and continues: it
 * writes nothing, and reports that it lost the lead.
 */
RACK_TEST(leader__paused_comes_back)
{
	struct party a, b;
	uint64_t epoch;
	unsigned int asked = 0;
	int to[2], from[2], st;
	char said = 0;
	pid_t pid;

	etcd_up();
	CHECK(!pipe(to) && !pipe(from), "pipes");
	pid = fork();
	CHECK(pid >= 0, "%s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_at(&a, etcd.urls, ETCD_MEMBERS);
		campaign(&a, "paused");
		UNTIL(a.epoch);
		epoch = a.epoch;
		CHECK(write(from[1], &epoch, sizeof(epoch)) == sizeof(epoch), "pipe");
		while (a.epoch == epoch) {
			/* as a controller does: only while it may assume that it leads */
			if (bl_store_epoch(a.s) == epoch && a.answers == asked) {
				bl_store_put(a.s, epoch, "k", BL_STORE_ANY, "by the paused one", 17,
					     on_answer, &a);
				asked++;
			}
			CHECK(sd_event_run(ev, 20000) >= 0, "the event loop");
		}
		UNTIL(a.answers == asked); /* perhaps of before the pause */
		/* even if it did not check its clock */
		put(&a, epoch, "k", BL_STORE_ANY, "by the paused one");
		said = a.r.outcome == BL_STORE_REFUSED && a.r.why == BL_STORE_WHY_FENCED ? 'f'
											 : '?';
		CHECK(write(from[1], &said, 1) == 1, "pipe");
		bl_store_close(a.s);
		_exit(0);
	}
	CHECK(read(from[0], &epoch, sizeof(epoch)) == sizeof(epoch), "the child ended");
	CHECK(!kill(pid, SIGSTOP), "%s", strerror(errno));
	CHECK(waitpid(pid, &st, WUNTRACED) == pid && WIFSTOPPED(st), "status %#x", st);
	open_at(&b, etcd.urls, ETCD_MEMBERS);
	campaign(&b, "next");
	UNTIL(b.epoch);
	CHECK(b.epoch > epoch, "epochs rise");
	put_sure(&b, "k", BL_STORE_ANY, "by the next one");
	CHECK(!kill(pid, SIGCONT), "%s", strerror(errno));
	serve_ms(200);
	CHECK(read(from[0], &said, 1) == 1 && said == 'f', "what the paused one wrote was not "
							   "fenced");
	get(&b, "k", true);
	CHECK(!strcmp(b.value, "by the next one"), "\"%s\"", b.value);
	waitpid(pid, NULL, 0);
	bl_store_close(b.s);
}

/* SQLite on a file system that is really full. */
RACK_TEST(sqlite__disk_full)
{
	struct party p;
	struct bl_err err;
	char junk[4096] = { 0 };
	unsigned int n;
	int fd;

	CHECK(!mkdir(BL_RUN_DIR "/disk", 0700) &&
		      !mount("tmpfs", BL_RUN_DIR "/disk", "tmpfs", 0, "size=256k"),
	      "%s", strerror(errno));
	memset(&p, 0, sizeof(p));
	CHECK(sd_event_new(&ev) >= 0, "an event loop");
	CHECK(!bl_store_sqlite(&p.s, ev, BL_RUN_DIR "/disk/db", &err), "%s", err.text);
	campaign(&p, "me");
	put_sure(&p, "k", 0, "before");
	fd = open(BL_RUN_DIR "/disk/junk", O_WRONLY | O_CREAT, 0600);
	while (write(fd, junk, sizeof(junk)) > 0)
		;
	n = p.answers;
	bl_store_put(p.s, p.epoch, "l", 0, "during", 6, on_answer, &p);
	UNTIL(p.answers != n);
	CHECK(p.r.outcome == BL_STORE_REFUSED && p.r.why == BL_STORE_WHY_DOWN &&
		      strstr(p.text, "make room"),
	      "%s", p.text);
	CHECK(!strcmp(p.trouble, p.text), "%s", p.trouble);
	/* The old content can be read, and a change waits until there is room. */
	get(&p, "", false);
	CHECK(p.r.n == 1 && !strcmp(p.value, "before"), "%s", p.value);
	n = p.answers;
	CHECK(!bl_store_put_sure(p.s, p.epoch, "l", 0, "during", 6, on_answer, &p), "put_sure");
	serve_ms(300);
	CHECK(p.answers == n, "%s", p.text);
	CHECK(!ftruncate(fd, 0), "%s", strerror(errno));
	UNTIL(p.answers != n);
	CHECK(p.r.outcome == BL_STORE_DONE, "%s", p.text);
	bl_store_close(p.s);
	close(fd);
	CHECK(!umount(BL_RUN_DIR "/disk"), "%s", strerror(errno));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compare__that_is_false_refuses),
		cmocka_unit_test(election__one_after_the_other),
		cmocka_unit_test(lease__revoked_is_noticed),
		cmocka_unit_test(quorum__lost_and_found),
		cmocka_unit_test(quorum__said_in_words),
		cmocka_unit_test(unknown__is_read_back),
		cmocka_unit_test(watch__compacted_away),
		cmocka_unit_test(leader__paused_comes_back),
		cmocka_unit_test(sqlite__disk_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
