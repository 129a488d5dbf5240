/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes a controller from the messages of its agents on: unpacking (proto/ctl.proto), dispatching
 * (controller/dispatch.c, forward.c, message.c), and the failure procedure behind them
 * (controller/recover/). The input is a list of operations: messages of several sessions, in the
 * form of the protocol with fields from the input, damaged ones, and plain bytes; sessions that
 * come and go; time; the store's confirmations; and a change of the leader.
 *
 * Besides what ASan and UBSan detect it checks that a leader that was lied to saves only what the
 * next one can load, that each command is a message that agents accept, and that counts of sessions
 * are right.
 *
 * Framing is not covered (fuzz_session.c), nor is the store (fuzz_etcd.c), nor whether what is
 * decided is wise; tests/unit/controller/ has that.
 */
#include "fuzz.h"

#include <time.h>

#include "controller/dispatch.h"
#include "controller/forward.h"
#include "controller/message.h"
#include "controller/peer.h"

#define PEERS   6
#define RECORDS 256

static struct bl_ctl ctl;
static bool leads;
static uint64_t now_ns;

bool __wrap_ctl_leading(const struct bl_ctl *c);
const char *__wrap_bl_store_waits(const struct bl_store *s, char *text, size_t size);
bool __wrap_bl_session_send(struct bl_session *s, const void *body, size_t len);
size_t __wrap_bl_session_waiting(const struct bl_session *s);
void __wrap_bl_session_end(struct bl_session *s);
void __wrap_bl_session_close(struct bl_session *s);
void __wrap_bl_log(int level, const char *fmt, ...);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);

bool __wrap_ctl_leading(const struct bl_ctl *c)
{
	(void)c;
	return leads;
}

const char *__wrap_bl_store_waits(const struct bl_store *s, char *text, size_t size)
{
	(void)s, (void)size;
	return strcpy(text, "");
}

/* Checks that an agent can read what it is sent. */
static void check_sent(const void *body, size_t len)
{
	Bl__ToAgent *m = bl__to_agent__unpack(NULL, len, body);

	FUZZ_CHECK(m && m->what_case != BL__TO_AGENT__WHAT__NOT_SET);
	bl__to_agent__free_unpacked(m, NULL);
}

bool __wrap_bl_session_send(struct bl_session *s, const void *body, size_t len)
{
	(void)s;
	FUZZ_CHECK(len && len <= BL_SESSION_MESSAGE_MAX);
	check_sent(body, len);
	return true;
}

size_t __wrap_bl_session_waiting(const struct bl_session *s)
{
	(void)s;
	return 0;
}

void __wrap_bl_session_end(struct bl_session *s)
{
	(void)s;
}

void __wrap_bl_session_close(struct bl_session *s)
{
	(void)s;
}

void __wrap_bl_log(int level, const char *fmt, ...)
{
	(void)level, (void)fmt;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	(void)id;
	t->tv_sec = (time_t)(now_ns / 1000000000ULL);
	t->tv_nsec = (long)(now_ns % 1000000000ULL);
	return 0;
}

/* ---- the store: what was saved last of each key ---- */

static struct record {
	bool node, pending;
	uint64_t id;
	struct ctl_bytes b;
} record[RECORDS];
static unsigned int nrecords;

static void save(bool node, uint64_t id, struct ctl_bytes b)
{
	unsigned int i;

	FUZZ_CHECK(b.data);
	for (i = 0; i < nrecords && !(record[i].node == node && record[i].id == id); i++)
		;
	if (i == RECORDS) { /* the machine has limits of its own, which are higher */
		free(b.data);
		return;
	}
	if (i == nrecords)
		nrecords++;
	else
		free(record[i].b.data);
	record[i] = (struct record){ node, true, id, b };
}

static void forget(uint64_t failure)
{
	unsigned int i;

	for (i = 0; i < nrecords; i++)
		if (!record[i].node && record[i].id == failure) {
			free(record[i].b.data);
			record[i] = record[--nrecords];
			return;
		}
}

static void send_and_free(struct ctl_bytes b)
{
	FUZZ_CHECK(b.data);
	check_sent(b.data, b.len);
	free(b.data);
}

/* Does what controller/outputs.c does, without a store. */
static void outputs(void)
{
	struct bl_recover *r = ctl.rec;
	struct bl_recover_out o;
	unsigned int most = 1 << 20;

	while (bl_recover_next(r, &o)) {
		const struct bl_recover_node *n = bl_recover_node(r, o.node);
		const struct bl_recover_failure *f = bl_recover_failure(r, o.number);

		FUZZ_CHECK(most--);
		switch (o.what) {
		case BL_RECOVER_SAVE_NODE:
			FUZZ_CHECK(n);
			save(true, o.node, ctl_save_node(n));
			break;
		case BL_RECOVER_SAVE_FAILURE:
			FUZZ_CHECK(f);
			save(false, o.number, ctl_save_failure(f, now_ns));
			break;
		case BL_RECOVER_DROP_FAILURE:
			forget(o.number);
			break;
		case BL_RECOVER_BAR:
			FUZZ_CHECK(n);
			send_and_free(ctl_bar(ctl.elected, n));
			break;
		case BL_RECOVER_FREEZE:
			FUZZ_CHECK(n);
			send_and_free(ctl_freeze(ctl.elected, n));
			break;
		case BL_RECOVER_FAIL:
		case BL_RECOVER_RESUME:
			FUZZ_CHECK(n && f);
			send_and_free(
				ctl_failure(ctl.elected, f, o.what == BL_RECOVER_RESUME, o.node));
			break;
		default:
			break;
		}
	}
}

static void confirm(unsigned int most)
{
	unsigned int i;

	for (i = 0; i < nrecords && most; i++) {
		if (!record[i].pending)
			continue;
		record[i].pending = false;
		most--;
		if (record[i].node)
			bl_recover_saved_node(ctl.rec, now_ns, (uint32_t)record[i].id);
		else
			bl_recover_saved_failure(ctl.rec, now_ns, record[i].id);
		outputs();
	}
}

/* The next leader loads all of it. */
static void elect(void)
{
	uint64_t number, at;
	unsigned int i;

	bl_recover_reset(ctl.rec);
	for (i = 0; i < nrecords; i++) {
		struct record *k = &record[i];

		k->pending = false;
		if (k->node) {
			FUZZ_CHECK(!ctl_load_node(ctl.rec, k->b.data, k->b.len));
			FUZZ_CHECK(bl_recover_node(ctl.rec, (uint32_t)k->id));
		} else {
			FUZZ_CHECK(!ctl_load_failure(ctl.rec, k->b.data, k->b.len, &number, &at));
			FUZZ_CHECK(number == k->id);
		}
	}
	ctl.elected++;
	leads = true;
	bl_recover_start(ctl.rec, now_ns, ctl.elected);
	outputs();
}

/* ---- sessions ---- */

static struct peer *peer_at(unsigned int i)
{
	struct peer *p = ctl.peers;

	for (i %= ctl.npeers ? ctl.npeers : 1; p && i; i--)
		p = p->next;
	return p;
}

static void connect_peer(void)
{
	struct peer *p = ctl.npeers < PEERS ? calloc(1, sizeof(*p)) : NULL;

	if (!p)
		return;
	p->c = &ctl;
	p->session = (struct bl_session *)p;
	p->next = ctl.peers;
	ctl.peers = p;
	ctl.npeers++;
	ctl.strangers++;
}

static void check_peers(void)
{
	unsigned int n = 0, strangers = 0;
	struct peer *p;

	for (p = ctl.peers; p; p = p->next, n++)
		strangers += !p->node;
	FUZZ_CHECK(n == ctl.npeers && strangers == ctl.strangers);
}

/* ---- messages ---- */

static uint32_t node_id(struct fuzz_in *in)
{
	uint8_t k = fuzz_u8(in);

	return k < 224 ? k & 7 : (uint32_t)fuzz_u64(in);
}

/* 48 bits, or that there is none, or too many bits */
static uint64_t time_of(struct fuzz_in *in)
{
	uint8_t k = fuzz_u8(in);

	return k < 128 ? 900 + k : k < 192 ? UINT64_MAX : fuzz_u64(in);
}

static uint8_t addr_of[17];

static ProtobufCBinaryData address(struct fuzz_in *in)
{
	uint8_t k = fuzz_u8(in);

	addr_of[0] = 10;
	addr_of[15] = k & 7;
	return (ProtobufCBinaryData){ k < 240 ? 16 : k & 31 % 17, addr_of };
}

#define MANY 20

static struct parts {
	Bl__Hello hello;
	Bl__LinkDown link;
	Bl__ProcDown proc;
	Bl__ProcStuck stuck;
	Bl__Away away;
	Bl__Number number;
	Bl__Forward forward;
	Bl__Admitted admitted;
	Bl__Port port[MANY], *ports[MANY];
	ProtobufCBinaryData addr[MANY];
	uint8_t addrs[MANY][16], frame[64];
	uint32_t endpoint[MANY];
	char name[64];
} parts;

static void form_hello(struct fuzz_in *in, Bl__Hello *h)
{
	uint8_t shape = fuzz_u8(in);
	unsigned int i;

	bl__hello__init(h);
	h->version = shape == 255 ? 2 : 1;
	h->node = node_id(in);
	h->kind = shape & 1;
	h->rejoin = shape >> 1 & 1;
	memset(parts.name, 'x', sizeof(parts.name));
	parts.name[shape >> 2 & 63] = 0;
	h->name = parts.name;
	h->epoch = shape & 128 ? fuzz_u64(in) : ctl.elected;
	h->n_port = fuzz_u8(in) % MANY;
	h->n_addr = fuzz_u8(in) % MANY;
	h->n_endpoint = fuzz_u8(in) % MANY;
	h->port = parts.ports;
	h->addr = parts.addr;
	h->endpoint = parts.endpoint;
	for (i = 0; i < h->n_port; i++) {
		Bl__Port *p = parts.ports[i] = &parts.port[i];
		uint8_t k = fuzz_u8(in);

		bl__port__init(p);
		p->port = k < 250 ? i + (k & 1) : (uint32_t)fuzz_u64(in);
		p->neighbour = node_id(in);
		p->role = k < 250 ? k % 3 : k;
		p->state = k < 250 ? k % 4 : k;
		p->c = time_of(in);
		p->death = fuzz_u8(in);
	}
	for (i = 0; i < h->n_addr; i++) {
		parts.addr[i] = address(in);
		memcpy(parts.addrs[i], addr_of, 16);
		parts.addr[i].len = parts.addr[i].len > 16 ? 16 : parts.addr[i].len;
		parts.addr[i].data = parts.addrs[i];
	}
	for (i = 0; i < h->n_endpoint; i++)
		parts.endpoint[i] = 61696u + fuzz_u8(in) % 8;
}

static void form_forward(struct fuzz_in *in, Bl__Forward *f)
{
	static uint8_t to[16], from[16];
	size_t i;

	bl__forward__init(f);
	f->to = address(in);
	memcpy(to, addr_of, 16);
	f->from = address(in);
	memcpy(from, addr_of, 16);
	f->to = (ProtobufCBinaryData){ f->to.len > 16 ? 16 : f->to.len, to };
	f->from = (ProtobufCBinaryData){ f->from.len > 16 ? 16 : f->from.len, from };
	f->port = 61696u + fuzz_u8(in) % 8;
	f->sport = 61696u + fuzz_u8(in) % 8;
	for (i = 0; i < sizeof(parts.frame); i++)
		parts.frame[i] = 0;
	parts.frame[22] = BL_OPCODE_BYTE(fuzz_u8(in) & 15);
	f->frame = (ProtobufCBinaryData){ fuzz_u8(in) & 63, parts.frame };
}

/* Builds a message with the fields of @what. */
static void form(struct fuzz_in *in, uint8_t what, Bl__ToController *m)
{
	bl__to_controller__init(m);
	m->what_case = (Bl__ToController__WhatCase)(1 + what % 11);
	switch (m->what_case) {
	case BL__TO_CONTROLLER__WHAT_HELLO:
		m->hello = &parts.hello;
		form_hello(in, m->hello);
		break;
	case BL__TO_CONTROLLER__WHAT_LINK_DOWN:
		bl__link_down__init(&parts.link);
		parts.link.port = fuzz_u8(in) % 8;
		parts.link.neighbour = node_id(in);
		parts.link.c = time_of(in);
		parts.link.death = fuzz_u8(in);
		m->link_down = &parts.link;
		break;
	case BL__TO_CONTROLLER__WHAT_PROC_DOWN:
		bl__proc_down__init(&parts.proc);
		parts.proc.endpoint = what & 128 ? (uint32_t)fuzz_u64(in) : 61696u + what % 8;
		parts.proc.t = time_of(in);
		parts.proc.life = fuzz_u8(in);
		parts.proc.why = fuzz_u8(in) & 15;
		m->proc_down = &parts.proc;
		break;
	case BL__TO_CONTROLLER__WHAT_FORWARD:
		form_forward(in, &parts.forward);
		m->forward = &parts.forward;
		break;
	case BL__TO_CONTROLLER__WHAT_AWAY:
		bl__away__init(&parts.away);
		parts.away.ms = (uint32_t)fuzz_u64(in);
		m->away = &parts.away;
		break;
	case BL__TO_CONTROLLER__WHAT_PROC_STUCK:
		bl__proc_stuck__init(&parts.stuck);
		parts.stuck.endpoint = 61696u + fuzz_u8(in) % 8;
		parts.stuck.from_life = fuzz_u8(in);
		parts.stuck.addr = address(in);
		parts.stuck.port = 61696u + fuzz_u8(in) % 8;
		parts.stuck.life = fuzz_u8(in);
		m->proc_stuck = &parts.stuck;
		break;
	case BL__TO_CONTROLLER__WHAT_ADMITTED:
		bl__admitted__init(&parts.admitted);
		parts.admitted.number = fuzz_u8(in);
		parts.admitted.check = what >> 7;
		m->admitted = &parts.admitted;
		break;
	default: /* messages with a number */
		bl__number__init(&parts.number);
		parts.number.number = fuzz_u64(in);
		m->done = &parts.number;
		break;
	}
}

static void dispatch(struct peer *p, const uint8_t *body, size_t len)
{
	Bl__ToController *m = bl__to_controller__unpack(NULL, len, body);

	if (!m || !ctl_dispatch(p, m))
		ctl_peer_hang_up(p);
	if (m)
		bl__to_controller__free_unpacked(m, NULL);
	outputs();
}

static void message(struct fuzz_in *in, struct peer *p, uint8_t what, bool damaged)
{
	Bl__ToController m;
	uint8_t *body;
	size_t len;

	form(in, what, &m);
	len = bl__to_controller__get_packed_size(&m);
	body = malloc(len + 1);
	FUZZ_CHECK(body && bl__to_controller__pack(&m, body) == len);
	if (damaged && len) {
		body[fuzz_u16(in) % len] ^= (uint8_t)(1 + fuzz_u8(in));
		len -= fuzz_u8(in) & 1 ? fuzz_u8(in) % len : 0;
	}
	dispatch(p, body, len);
	free(body);
}

/* A record of another kind, another version, or a liar: it is refused or taken, and no more. */
static void load_bytes(const uint8_t *p, size_t len)
{
	static const struct bl_recover_cfg cfg = { .settle_ns = 1, .answer_ns = 1, .grace_ns = 1 };
	struct bl_recover *r = bl_recover_new(&cfg);
	uint64_t number, at;

	FUZZ_CHECK(r);
	ctl_load_node(r, p, len);
	ctl_load_failure(r, p, len, &number, &at);
	bl_recover_start(r, now_ns, 7);
	bl_recover_tick(r, now_ns + 10);
	bl_recover_free(r);
}

static void begin(void)
{
	static const struct bl_recover_cfg cfg = { .settle_ns = 5000000,
						   .answer_ns = 1000000000,
						   .grace_ns = 3000000000 };

	memset(&ctl, 0, sizeof(ctl));
	FUZZ_CHECK(!pthread_mutex_init(&ctl.lock, NULL));
	ctl.rec = bl_recover_new(&cfg);
	FUZZ_CHECK(ctl.rec);
	now_ns = 1ULL << 40;
	nrecords = 0;
	elect();
}

static void end(void)
{
	while (ctl.peers)
		ctl_peer_hang_up(ctl.peers);
	elect(); /* whatever was saved */
	bl_recover_free(ctl.rec);
	while (nrecords)
		free(record[--nrecords].b.data);
	pthread_mutex_destroy(&ctl.lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };

	begin();
	while (in.left) {
		uint8_t op = fuzz_u8(&in), arg = fuzz_u8(&in);
		struct peer *p = peer_at(op / 16);
		const uint8_t *bytes;
		size_t len;

		switch (op % 16) {
		default:
			if (p)
				message(&in, p, arg, false);
			else
				connect_peer();
			break;
		case 8:
			if (p)
				message(&in, p, arg, true);
			break;
		case 9:
			len = arg;
			bytes = fuzz_take(&in, &len);
			if (p)
				dispatch(p, bytes, len);
			break;
		case 10:
			connect_peer();
			break;
		case 11:
			if (p && arg & 1)
				ctl_peer_remove(p);
			outputs();
			break;
		case 12:
		case 13:
			confirm(arg);
			break;
		case 14:
			now_ns += 1ULL << (arg & 31);
			bl_recover_tick(ctl.rec, now_ns);
			outputs();
			break;
		case 15:
			if (arg == 1) {
				leads = false;
				bl_recover_reset(ctl.rec);
			} else if (arg == 2) {
				elect();
			} else {
				len = arg;
				bytes = fuzz_take(&in, &len);
				load_bytes(bytes, len);
			}
			break;
		}
		check_peers();
	}
	end();
	return 0;
}
