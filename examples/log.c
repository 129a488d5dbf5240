/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A replicated log: every replica has the same entries in the same order. Replicas may join while
 * the others append, and may fail.
 *
 *	log -p 61700 10.0.0.1:61700 10.0.0.2:61700	a founder; the addresses are those of all
 *							founders, its own included
 *	log -p 61701 -j 10.0.0.1:61700 10.0.0.2:61700	a replica that joins; some of the addresses
 *							are those of members
 *
 * Each line of standard input is appended to the log. The line "!mark" is sent to all like an
 * entry, and at its place in the order every replica prints how many entries it has, and a hash of
 * them: all replicas print the same. -n COUNT appends COUNT entries by itself. The end of standard
 * input ends the replica.
 *
 * How a replica joins. J asks a member, which sends JOIN to all members. A member that delivers
 * JOIN sends to J, too, from then on, and says so to all (ADDED). When all members have said that,
 * the member with the lowest address, the donor, sends CUT to all and to J. Whatever comes after
 * CUT in the total order was sent after the ADDED of its sender, so J gets it. When the donor
 * delivers CUT, it copies its state, which is that of every member at this place of the order, and
 * sends the copy to J. J ignores what it delivers before CUT, keeps what it delivers after CUT,
 * and applies that to the copy. If the donor fails meanwhile, the next one sends another CUT.
 *
 * What fails. A scattering of which a receiver has failed is delivered by nobody and reported, and
 * is sent again without that receiver. That a process has failed is announced by the controllers;
 * without controllers the log stops when a member dies.
 */
#include <barline.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMBERS 32
#define PIECE   60000 /* bytes of a state in one message */

enum kind { ENTRY, MARK, ASK, JOIN, ADDED, CUT, STATE };

/* What replicas send, followed by text. */
struct msg {
	uint32_t kind;      /* enum kind */
	uint32_t id;        /* number of the message, of its sender */
	struct bl_addr who; /* JOIN, ADDED, CUT: the replica that joins */
	uint64_t cut;       /* STATE: timestamp of the CUT that it belongs to */
	uint64_t total;     /* STATE: bytes of all pieces together */
};

/* A message on its way out, until it is delivered here or, if it is for one receiver, accepted. */
struct out {
	struct out *next;
	bool sent;
	struct bl_addr to; /* port 0: to all */
	size_t len;
	struct msg m; /* with its text */
};

/* What is replicated: the state, without pointers, followed by the text of all entries. */
struct state {
	uint64_t entries, hash, bytes;
	uint32_t nmembers;
	struct bl_addr member[MEMBERS];
};

static struct bl_endpoint *ep;
static struct state st = { .hash = 0xcbf29ce484222325 };
static char *text; /* st.bytes of it */
static struct out *queue, **tail = &queue;
static uint32_t last_id;
static struct bl_addr joiner;    /* port 0: nobody joins */
static uint32_t added, everyone; /* bits of st.member: who has said ADDED */
static bool cut_sent;

/* Of a replica that joins, until it has the state. */
static bool joining;
static uint64_t cut_ts; /* of the last CUT; 0: none has come */
static char *copy;
static size_t copied;
static struct bl_addr gone[MEMBERS]; /* failures that were announced meanwhile */
static uint32_t ngone;
static struct kept {
	struct kept *next;
	struct bl_addr src;
	size_t len;
	struct msg m;
} * kept, **kept_tail = &kept;

static bool same(const struct bl_addr *a, const struct bl_addr *b)
{
	return a->port == b->port && !memcmp(a->ip, b->ip, sizeof(a->ip));
}

static void check(int rc)
{
	if (rc == -ESTALE)
		errx(3, "%s: start again with -j", bl_strerror(ep));
	if (rc < 0)
		errx(1, "%s", bl_strerror(ep));
}

/* ---- sending ---- */

static void send_later(enum kind kind, const struct bl_addr *to, const struct bl_addr *who,
		       uint64_t cut, uint64_t total, const void *data, size_t len)
{
	struct out *o = calloc(1, sizeof(*o) + len);

	if (!o)
		err(1, "calloc");
	if (to)
		o->to = *to;
	o->m = (struct msg){ .kind = kind, .id = ++last_id, .cut = cut, .total = total };
	if (who)
		o->m.who = *who;
	if (len)
		memcpy(&o->m + 1, data, len);
	o->len = sizeof(o->m) + len;
	*tail = o;
	tail = &o->next;
}

static void forget(struct out **at)
{
	struct out *o = *at;

	*at = o->next;
	if (tail == &o->next)
		tail = at;
	free(o);
}

/* Send what is not sent yet. A destination that is not there, or a full window, stops it. */
static void send_queue(void)
{
	struct out **at = &queue, *o;

	while ((o = *at)) {
		struct bl_msg vec[MEMBERS + 1];
		uint32_t i, n = 0;
		int rc;

		if (o->sent) {
			at = &o->next;
			continue;
		}
		for (i = 0; !o->to.port && i < st.nmembers; i++)
			vec[n++].dst = st.member[i];
		if (o->to.port || joiner.port)
			vec[n++].dst = o->to.port ? o->to : joiner;
		for (i = 0; i < n; i++) {
			vec[i].data = &o->m;
			vec[i].len = (uint32_t)o->len;
			vec[i].cookie = o->m.id;
		}
		rc = n ? bl_send_reliable(ep, vec, n, 0) : -EAGAIN;
		if (rc == -EAGAIN || rc == -EHOSTUNREACH || rc == -ETIME)
			return;
		check(rc);
		o->sent = true;
		if (o->to.port)
			forget(at);
		else
			at = &o->next;
	}
}

/* Nobody has delivered the scattering, so it is sent again to those that are left. */
static void on_send_fail(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
			 enum bl_fail_reason why)
{
	struct out *o;

	(void)ctx, (void)ts, (void)dst, (void)why;
	for (o = queue; o; o = o->next)
		if (o->m.id == cookie)
			o->sent = false;
}

/* ---- members ---- */

/* The donor sends CUT when all members send to the replica that joins. */
static void maybe_cut(void)
{
	uint32_t i, lowest = 0;

	if (!joiner.port || cut_sent || (added & everyone) != everyone)
		return;
	for (i = 1; i < st.nmembers; i++)
		if (memcmp(&st.member[i], &st.member[lowest], sizeof(st.member[i])) < 0)
			lowest = i;
	if (!same(&st.member[lowest], bl_self(ep)))
		return;
	cut_sent = true;
	send_later(CUT, NULL, &joiner, 0, 0, NULL, 0);
}

static void note_added(const struct bl_addr *src)
{
	uint32_t i;

	for (i = 0; i < st.nmembers; i++)
		if (same(&st.member[i], src))
			added |= 1u << i;
	maybe_cut();
}

/* A member has failed or left. @who may name all processes of a host: port 0. */
static void on_proc_fail(void *ctx, const struct bl_addr *who, uint64_t ts)
{
	uint32_t i, n = 0, bits = 0;

	(void)ctx, (void)ts;
	if (joining)
		gone[ngone++ % MEMBERS] = *who;
	for (i = 0; i < st.nmembers; i++) {
		if (!memcmp(st.member[i].ip, who->ip, 16) &&
		    (!who->port || who->port == st.member[i].port))
			continue;
		bits |= (added >> i & 1) << n;
		st.member[n++] = st.member[i];
	}
	if (joiner.port && !memcmp(joiner.ip, who->ip, 16) &&
	    (!who->port || who->port == joiner.port))
		joiner.port = 0;
	if (n != st.nmembers)
		cut_sent = false; /* the donor may be among those that are gone */
	st.nmembers = n;
	added = bits;
	everyone = (uint32_t)((1ull << n) - 1);
	maybe_cut();
}

static void on_peer(void *ctx, const struct bl_addr *who, enum bl_peer_event what)
{
	char buf[64];

	(void)ctx;
	fprintf(stderr, "%s %s\n", bl_addr_format(who, buf, sizeof(buf)),
		what == BL_PEER_JOINED ? "has joined"
		: what == BL_PEER_BACK ? "is back"
				       : "is lost");
}

/* ---- applying what is delivered ---- */

static void append(const struct bl_addr *src, const char *data, size_t len)
{
	size_t i;

	text = realloc(text, st.bytes + len + 1);
	if (!text)
		err(1, "realloc");
	memcpy(text + st.bytes, data, len);
	text[st.bytes + len] = '\n';
	st.bytes += len + 1;
	st.entries++;
	for (i = 0; i < len; i++)
		st.hash = (st.hash ^ (uint8_t)data[i]) * 0x100000001b3;
	st.hash = (st.hash ^ src->port) * 0x100000001b3;
}

/* CUT: the donor sends its state, and the replica that joins is a member from here on. */
static void on_cut(const struct bl_addr *src, const struct msg *m, uint64_t ts)
{
	uint32_t i;
	size_t total, at, n;
	char *all;

	if (st.nmembers == MEMBERS)
		errx(1, "there are more than %d members", MEMBERS);
	for (i = 0; i < st.nmembers && !same(&st.member[i], &m->who); i++)
		;
	if (i == st.nmembers)
		st.member[st.nmembers++] = m->who;
	joiner.port = 0;
	if (!same(src, bl_self(ep)))
		return;
	total = sizeof(st) + st.bytes;
	all = malloc(total);
	if (!all)
		err(1, "malloc");
	memcpy(all, &st, sizeof(st));
	if (st.bytes)
		memcpy(all + sizeof(st), text, st.bytes);
	for (at = 0; at < total; at += n) {
		n = total - at < PIECE ? total - at : PIECE;
		send_later(STATE, &m->who, NULL, ts, total, all + at, n);
	}
	free(all);
}

static void apply(const struct bl_addr *src, const struct msg *m, size_t len, uint64_t ts)
{
	switch (m->kind) {
	case ENTRY:
		append(src, (const char *)(m + 1), len - sizeof(*m));
		break;
	case MARK:
		printf("mark %.*s: %" PRIu64 " entries, hash %016" PRIx64 ", %u members\n",
		       (int)(len - sizeof(*m)), (const char *)(m + 1), st.entries, st.hash,
		       st.nmembers);
		fflush(stdout);
		break;
	case ASK:
		/* One at a time: whoever is not answered asks again. */
		if (!joiner.port)
			send_later(JOIN, NULL, src, 0, 0, NULL, 0);
		break;
	case JOIN:
		if (joiner.port && !same(&joiner, &m->who))
			break;
		joiner = m->who;
		added = 0;
		everyone = (uint32_t)((1ull << st.nmembers) - 1);
		cut_sent = false;
		send_later(ADDED, NULL, &joiner, 0, 0, NULL, 0);
		break;
	case ADDED:
		if (same(&m->who, &joiner))
			note_added(src);
		break;
	case CUT:
		on_cut(src, m, ts);
		break;
	}
}

static void keep(const struct bl_addr *src, const struct msg *m, size_t len)
{
	struct kept *k = calloc(1, sizeof(*k) + len);

	if (!k)
		err(1, "calloc");
	k->src = *src;
	k->len = len;
	memcpy(&k->m, m, len);
	*kept_tail = k;
	kept_tail = &k->next;
}

static void drop_kept(bool and_apply)
{
	struct kept *k;

	while ((k = kept)) {
		kept = k->next;
		if (and_apply)
			apply(&k->src, &k->m, k->len, 0);
		free(k);
	}
	kept_tail = &kept;
}

/* What a replica delivers that does not have the state yet. */
static void while_joining(const struct bl_delivery *d, const struct msg *m)
{
	uint32_t i;

	if (m->kind == CUT && same(&m->who, bl_self(ep))) {
		cut_ts = d->ts;
		copied = 0;
		drop_kept(false);
		return;
	}
	if (m->kind != STATE) {
		if (cut_ts)
			keep(&d->src, m, d->len);
		return;
	}
	if (m->cut != cut_ts)
		return; /* of a donor that has failed */
	copy = realloc(copy, m->total);
	if (!copy)
		err(1, "realloc");
	memcpy(copy + copied, m + 1, d->len - sizeof(*m));
	copied += d->len - sizeof(*m);
	if (copied < m->total)
		return;
	memcpy(&st, copy, sizeof(st));
	text = malloc(st.bytes + 1);
	if (!text)
		err(1, "malloc");
	memcpy(text, copy + sizeof(st), st.bytes);
	free(copy);
	joining = false;
	for (i = 0; i < ngone && i < MEMBERS; i++)
		on_proc_fail(NULL, &gone[i], 0);
	printf("joined with %" PRIu64 " entries\n", st.entries);
	fflush(stdout);
	drop_kept(true);
}

static void deliver(const struct bl_delivery *d)
{
	const struct msg *m = d->data;
	struct out **at;

	if (d->len < sizeof(*m))
		return;
	if (same(&d->src, bl_self(ep)))
		for (at = &queue; *at; at = &(*at)->next)
			if ((*at)->m.id == m->id) {
				forget(at);
				break;
			}
	if (joining)
		while_joining(d, m);
	else
		apply(&d->src, m, d->len, d->ts);
}

/* ---- main ---- */

/* Ask the next of the given members that answers. */
static void ask_to_join(const struct bl_addr *given, uint32_t n)
{
	static uint32_t next;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct bl_addr *a = &given[next++ % n];

		if (!bl_peer_wait(ep, a, 1000)) {
			send_later(ASK, a, NULL, 0, 0, NULL, 0);
			return;
		}
	}
}

static bool read_line(void)
{
	static char buf[4096];
	static size_t used;
	ssize_t n = read(STDIN_FILENO, buf + used, sizeof(buf) - used);
	char *nl;

	if (n <= 0)
		return false;
	used += (size_t)n;
	while ((nl = memchr(buf, '\n', used))) {
		size_t len = (size_t)(nl - buf);

		if (len >= 5 && !memcmp(buf, "!mark", 5))
			send_later(MARK, NULL, NULL, 0, 0, buf + 5, len - 5);
		else
			send_later(ENTRY, NULL, NULL, 0, 0, buf, len);
		used -= len + 1;
		memmove(buf, nl + 1, used);
	}
	return used < sizeof(buf);
}

int main(int argc, char **argv)
{
	struct bl_options opt = { 0 };
	struct bl_addr given[MEMBERS];
	struct bl_delivery d[64];
	uint32_t n = 0, count = 0, done = 0, turns = 0;
	bool more = true;
	int c, rc, i;

	while ((c = getopt(argc, argv, "p:n:j")) != -1) {
		if (c == 'p')
			opt.port = (uint16_t)atoi(optarg);
		else if (c == 'n')
			count = (uint32_t)atoi(optarg);
		else if (c == 'j')
			joining = true;
		else
			return 2;
	}
	for (; optind < argc && n < MEMBERS; n++)
		if (bl_addr_parse(&given[n], argv[optind++]))
			errx(2, "%s is not an address and a port", argv[optind - 1]);
	if (!n)
		errx(2, "usage: log [-p PORT] [-n COUNT] [-j] ADDRESS:PORT ...");
	if (bl_init(&ep, &opt))
		errx(1, "%s", bl_strerror(NULL));
	bl_on_send_fail(ep, on_send_fail, NULL);
	bl_on_proc_fail(ep, on_proc_fail, NULL);
	bl_on_peer(ep, on_peer, NULL);
	if (!joining) {
		memcpy(st.member, given, n * sizeof(given[0]));
		st.nmembers = n;
	}
	while (more || queue) {
		struct pollfd p[2] = { { .fd = bl_fd(ep), .events = POLLIN },
				       { .fd = more ? STDIN_FILENO : -1, .events = POLLIN } };

		if (joining && !cut_ts && turns++ % 1000 == 0)
			ask_to_join(given, n);
		if (!joining && done < count && !queue) {
			char line[32];

			i = snprintf(line, sizeof(line), "entry %u", done++);
			send_later(ENTRY, NULL, NULL, 0, 0, line, (size_t)i);
		}
		send_queue();
		check(bl_process(ep));
		if (poll(p, 2, 5) < 0 && errno != EINTR)
			err(1, "poll");
		if (p[1].revents && !joining)
			more = read_line();
		check(bl_process(ep));
		while ((rc = bl_recv_reliable(ep, d, 64, 0)) > 0)
			for (i = 0; i < rc; i++)
				deliver(&d[i]);
		check(rc);
	}
	while (!(rc = bl_wait(ep, BL_WAIT_ACKED, -1)))
		;
	check(rc);
	bl_exit(ep);
	return 0;
}
