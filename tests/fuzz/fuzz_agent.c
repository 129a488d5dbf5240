/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes a node's agent from the controller's messages on (loader/order/agent.c). The input is a
 * list of operations: commands in the form of the protocol with fields from the input, damaged
 * ones, and plain bytes; sessions that end; timers; and what the node itself reports.
 *
 * It checks what the node relies on: lists that it is given can be read and are within their
 * bounds, the epoch only rises, no command is carried out before WELCOME or of an older epoch, and
 * everything that is sent is a message that controllers accept.
 *
 * Framing is not covered (fuzz_session.c), nor is what the node does then (tests/net/controller).
 */
#include "fuzz.h"

#include <errno.h>

#include "loader/order/agent.h"
#include "loader/order/agent_priv.h"
#include "maps/failure_abi.h"
#include "proto/ctl.pb-c.h"
#include "proto/forward_msg.h"
#include "proto/session.h"

static struct bl_agent *agent;
static const struct bl_session_ops *ops;
static void *ops_ctx;
static bool open, welcomed;
static uint64_t now_usec, epoch;
static struct fuzz_in *input; /* also of the node's answers */

int __wrap_sd_event_now(sd_event *ev, clockid_t clock, uint64_t *usec);
int __wrap_sd_event_add_time_relative(sd_event *ev, sd_event_source **src, clockid_t clock,
				      uint64_t usec, uint64_t accuracy, sd_event_time_handler_t fn,
				      void *ctx);
int __wrap_bl_session_connect(struct bl_session **out, sd_event *ev, const struct sockaddr *addr,
			      socklen_t len, struct bl_session_tls *tls,
			      const struct bl_session_ops *o, void *ctx, struct bl_err *err);
bool __wrap_bl_session_send(struct bl_session *s, const void *body, size_t len);
size_t __wrap_bl_session_waiting(const struct bl_session *s);
void __wrap_bl_session_close(struct bl_session *s);

int __wrap_sd_event_now(sd_event *ev, clockid_t clock, uint64_t *usec)
{
	(void)ev, (void)clock;
	*usec = now_usec;
	return 0;
}

int __wrap_sd_event_add_time_relative(sd_event *ev, sd_event_source **src, clockid_t clock,
				      uint64_t usec, uint64_t accuracy, sd_event_time_handler_t fn,
				      void *ctx)
{
	(void)ev, (void)clock, (void)usec, (void)accuracy, (void)fn, (void)ctx;
	*src = NULL;
	return 0;
}

int __wrap_bl_session_connect(struct bl_session **out, sd_event *ev, const struct sockaddr *addr,
			      socklen_t len, struct bl_session_tls *tls,
			      const struct bl_session_ops *o, void *ctx, struct bl_err *err)
{
	(void)ev, (void)addr, (void)len, (void)tls, (void)err;
	FUZZ_CHECK(!open);
	*out = (struct bl_session *)&open;
	ops = o;
	ops_ctx = ctx;
	open = true;
	welcomed = false;
	return 0;
}

bool __wrap_bl_session_send(struct bl_session *s, const void *body, size_t len)
{
	Bl__ToController *m = bl__to_controller__unpack(NULL, len, body);

	FUZZ_CHECK((void *)s == &open && open && len && len <= BL_SESSION_MESSAGE_MAX);
	FUZZ_CHECK(m && m->what_case != BL__TO_CONTROLLER__WHAT__NOT_SET);
	bl__to_controller__free_unpacked(m, NULL);
	return true;
}

size_t __wrap_bl_session_waiting(const struct bl_session *s)
{
	(void)s;
	return 0;
}

void __wrap_bl_session_close(struct bl_session *s)
{
	if (s)
		open = false;
}

/* ---- the node ---- */

#define NODE_ID 7

static void tell(void *ctx, struct bl_agent_node *n)
{
	unsigned int i;

	(void)ctx;
	n->node_id = NODE_ID;
	n->host = true;
	snprintf(n->name, sizeof(n->name), "h7");
	n->naddrs = 1;
	n->nports = 3;
	for (i = 0; i < n->nports; i++)
		n->port[i] = (struct bl_agent_port){ .port = i, .neighbour = 9, .c = 900 };
	n->nendpoints = 1;
	n->endpoint[0] = 61696;
}

static void on_epoch(void *ctx, uint64_t e)
{
	(void)ctx;
	FUZZ_CHECK(e > epoch);
	epoch = e;
}

static int rc_of_node(void)
{
	static const int rcs[] = { 0, 0, 0, -ESTALE, -EIO, 0, 0, 0 };

	FUZZ_CHECK(welcomed);
	return rcs[fuzz_u8(input) & 7];
}

static int do_bar(void *ctx, const uint32_t *port, unsigned int n)
{
	static volatile uint32_t sum;

	(void)ctx;
	while (n--)
		sum += port[n];
	return rc_of_node();
}

static int do_freeze(void *ctx, uint32_t port, struct bl_agent_port *p)
{
	(void)ctx;
	FUZZ_CHECK(port < 3 && p->port == port);
	p->death++;
	return rc_of_node();
}

static void check_failed(const struct bl_agent_failed *v, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		FUZZ_CHECK(v[i].naddrs <= BL_AGENT_ADDRS_MAX && v[i].why < BL_WHY_COUNT);
		FUZZ_CHECK(!v[i].port || v[i].naddrs);
		FUZZ_CHECK(v[i].here == (v[i].node == NODE_ID));
	}
}

static void do_fail(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n)
{
	(void)ctx;
	FUZZ_CHECK(welcomed);
	check_failed(v, n);
	if (fuzz_u8(input) & 1)
		bl_agent_done(agent, number);
}

static int do_resume(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n,
		     const struct bl_agent_input *in, unsigned int nin)
{
	static volatile uint32_t sum;

	(void)ctx, (void)number;
	check_failed(v, n);
	while (nin--)
		sum += in[nin].port;
	return rc_of_node();
}

static void on_own_failure(void *ctx, uint64_t number)
{
	(void)ctx;
	FUZZ_CHECK(number);
}

static void do_forward(void *ctx, const struct bl_forward *f)
{
	static volatile uint32_t sum;
	size_t i;

	(void)ctx;
	FUZZ_CHECK(bl_forward_fits(f) && welcomed);
	for (i = 0; i < f->len; i++)
		sum += f->frame[i];
}

static void do_put_out(void *ctx, uint16_t port, uint16_t life)
{
	struct bl_agent_proc p = { .port = port, .life = life, .t = 900 };

	(void)ctx;
	FUZZ_CHECK(port && welcomed);
	bl_agent_proc_down(agent, &p);
}

static int do_admission(void *ctx, bool check, const char *policy, uint64_t rate_bps, char *said,
			size_t size, struct bl_err *err)
{
	(void)ctx, (void)check, (void)rate_bps;
	snprintf(said, size, "policy %s", policy);
	return fuzz_u8(input) & 1 ? bl_fail(err, EINVAL, "no policy %s", policy) : 0;
}

static const struct bl_agent_ops node_ops = { .tell = tell,
					      .epoch = on_epoch,
					      .bar = do_bar,
					      .freeze = do_freeze,
					      .fail = do_fail,
					      .resume = do_resume,
					      .failed = on_own_failure,
					      .forward = do_forward,
					      .put_out = do_put_out,
					      .admission = do_admission };

/* ---- commands ---- */

#define MANY 20

static struct parts {
	Bl__Welcome welcome;
	Bl__Bar bar;
	Bl__Freeze freeze;
	Bl__Failure failure;
	Bl__Failed failed[MANY], *faileds[MANY];
	Bl__Input input[MANY], *inputs[MANY];
	ProtobufCBinaryData addr[MANY][MANY];
	Bl__NotLeading not_leading;
	Bl__Number number;
	Bl__Forward forward;
	Bl__PutOut put_out;
	Bl__Admission admission;
	uint32_t port[256];
	uint8_t frame[256];
	char text[128];
} parts;

static uint32_t small(struct fuzz_in *in)
{
	uint8_t k = fuzz_u8(in);

	return k < 240 ? k & 7 : (uint32_t)fuzz_u64(in);
}

static void form_failure(struct fuzz_in *in, Bl__Failure *f)
{
	static uint8_t addr[20] = { [10] = 0xff, [11] = 0xff, [12] = 10 };
	unsigned int i, k;

	bl__failure__init(f);
	f->number = fuzz_u64(in);
	f->epoch = fuzz_u8(in);
	f->step = fuzz_u8(in);
	f->n_failed = fuzz_u8(in) % MANY;
	f->failed = parts.faileds;
	for (i = 0; i < f->n_failed; i++) {
		Bl__Failed *v = parts.faileds[i] = &parts.failed[i];
		uint8_t shape = fuzz_u8(in);

		bl__failed__init(v);
		v->node = small(in);
		v->n_addr = shape & 3 ? shape & 3 : shape / 4 % MANY;
		v->addr = parts.addr[i];
		for (k = 0; k < v->n_addr; k++)
			v->addr[k] = (ProtobufCBinaryData){ shape == 255 ? 17 : 16, addr };
		v->port = shape & 64 ? 61696 + small(in) : 0;
		v->t = fuzz_u64(in);
		v->why = small(in);
		v->life = small(in);
		v->gone = small(in);
	}
	f->n_input = fuzz_u8(in) % MANY;
	f->input = parts.inputs;
	for (i = 0; i < f->n_input; i++) {
		Bl__Input *v = parts.inputs[i] = &parts.input[i];

		bl__input__init(v);
		v->node = small(in);
		v->port = small(in);
		v->neighbour = small(in);
		v->death = small(in);
		v->c = fuzz_u64(in);
	}
}

static void form_ports(struct fuzz_in *in, size_t *n, uint32_t **port)
{
	size_t i;

	*n = fuzz_u8(in);
	*port = parts.port;
	for (i = 0; i < *n; i++)
		parts.port[i] = i < 8 ? small(in) : (uint32_t)i;
}

static void form_forward(struct fuzz_in *in, Bl__Forward *f)
{
	static uint8_t addr[20];
	uint8_t shape = fuzz_u8(in);

	bl__forward__init(f);
	f->to = (ProtobufCBinaryData){ shape & 1 && shape & 2 ? 15 : 16, addr };
	f->from = (ProtobufCBinaryData){ 16, addr };
	f->port = 61696 + small(in);
	f->sport = 61696 + small(in);
	parts.frame[offsetof(struct bl_hdr, opcode)] = BL_OPCODE_BYTE(shape >> 3);
	f->frame = (ProtobufCBinaryData){ fuzz_u8(in), parts.frame };
}

static void form(struct fuzz_in *in, uint8_t what, Bl__ToAgent *m)
{
	uint8_t e = fuzz_u8(in);
	size_t len;

	bl__to_agent__init(m);
	m->epoch = e < 224 ? epoch + (e & 1) : fuzz_u64(in);
	m->what_case = (Bl__ToAgent__WhatCase)(2 + what % 11);
	switch (m->what_case) {
	case BL__TO_AGENT__WHAT_WELCOME:
		bl__welcome__init(&parts.welcome);
		parts.welcome.failed = what & 128 ? small(in) : 0;
		parts.welcome.answer_ms = fuzz_u8(in);
		m->welcome = &parts.welcome;
		break;
	case BL__TO_AGENT__WHAT_BAR:
		bl__bar__init(&parts.bar);
		form_ports(in, &parts.bar.n_port, &parts.bar.port);
		m->bar = &parts.bar;
		break;
	case BL__TO_AGENT__WHAT_FREEZE:
		bl__freeze__init(&parts.freeze);
		form_ports(in, &parts.freeze.n_port, &parts.freeze.port);
		m->freeze = &parts.freeze;
		break;
	case BL__TO_AGENT__WHAT_FAIL:
	case BL__TO_AGENT__WHAT_RESUME:
		form_failure(in, &parts.failure);
		m->fail = &parts.failure;
		break;
	case BL__TO_AGENT__WHAT_NOT_LEADING:
		bl__not_leading__init(&parts.not_leading);
		len = fuzz_u8(in) & 127;
		memset(parts.text, '1', sizeof(parts.text));
		parts.text[len] = 0;
		parts.not_leading.leader = len & 1 ? parts.text : (char *)(uintptr_t) "10.0.0.2";
		parts.not_leading.why = parts.text;
		m->not_leading = &parts.not_leading;
		break;
	case BL__TO_AGENT__WHAT_FORWARD:
		form_forward(in, &parts.forward);
		m->forward = &parts.forward;
		break;
	case BL__TO_AGENT__WHAT_PUT_OUT:
		bl__put_out__init(&parts.put_out);
		parts.put_out.port = what & 128 ? (uint32_t)fuzz_u64(in) : 61696;
		parts.put_out.life = small(in);
		m->put_out = &parts.put_out;
		break;
	case BL__TO_AGENT__WHAT_ADMISSION:
		bl__admission__init(&parts.admission);
		len = fuzz_u8(in) & 127;
		memset(parts.text, 'p', sizeof(parts.text));
		parts.text[len] = 0;
		parts.admission.policy = parts.text;
		m->admission = &parts.admission;
		break;
	default:
		bl__number__init(&parts.number);
		parts.number.number = fuzz_u64(in);
		m->ping = &parts.number;
		break;
	}
}

static void receive(const uint8_t *body, size_t len)
{
	Bl__ToAgent *m = bl__to_agent__unpack(NULL, len, body);

	/* what may be carried out from now on: the agent has to find out the same */
	if (m && m->what_case == BL__TO_AGENT__WHAT_WELCOME && m->epoch && m->epoch >= epoch)
		welcomed = true;
	if (m)
		bl__to_agent__free_unpacked(m, NULL);
	ops->message(ops_ctx, body, len);
}

static void command(struct fuzz_in *in, uint8_t what, bool damaged)
{
	Bl__ToAgent m;
	uint8_t *body;
	size_t len;

	form(in, what, &m);
	len = bl__to_agent__get_packed_size(&m);
	body = malloc(len + 1);
	FUZZ_CHECK(body && bl__to_agent__pack(&m, body) == len);
	if (damaged && len) {
		body[fuzz_u16(in) % len] ^= (uint8_t)(1 + fuzz_u8(in));
		len -= fuzz_u8(in) & 1 ? fuzz_u8(in) % len : 0;
	}
	receive(body, len);
	free(body);
}

static void report(struct fuzz_in *in, uint8_t what)
{
	struct bl_agent_port port = { .port = what & 3, .neighbour = 9, .c = 900 };
	struct bl_agent_proc proc = { .port = 61696, .life = fuzz_u8(in), .t = 900 };
	struct bl_agent_stuck stuck = { .from = proc, .port = 61697, .life = 3 };

	switch (what >> 4 & 7) {
	case 0:
		bl_agent_link_down(agent, &port);
		break;
	case 1:
		bl_agent_proc_down(agent, &proc);
		break;
	case 2:
		bl_agent_stuck(agent, &stuck);
		break;
	case 3:
		bl_agent_done(agent, fuzz_u64(in));
		break;
	case 4:
		bl_agent_rejoin(agent);
		break;
	case 5:
		bl_agent_away(agent, 1 + what);
		break;
	default:
		bl_agent_changed(agent);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct bl_agent_cfg cfg = { .controllers = { "10.0.0.1", "10.0.0.2:5" },
					  .ncontrollers = 2,
					  .epoch = 3 };
	struct fuzz_in in = { data, size };
	struct bl_agent_total total;
	struct bl_err err;

	input = &in;
	now_usec = 1000000;
	epoch = cfg.epoch;
	open = false;
	FUZZ_CHECK(!bl_agent_new(&agent, NULL, &cfg, &node_ops, NULL, &err));
	while (in.left) {
		uint8_t op = fuzz_u8(&in), arg = fuzz_u8(&in);
		const uint8_t *bytes;
		size_t len = arg;

		if (!open) {
			bl_agent_on_retry(NULL, 0, agent);
			bl_agent_read(agent, &total);
			if (!open)
				break; /* it is away, and begins no session any more */
			ops->up(ops_ctx);
		}
		switch (op % 8) {
		default:
			command(&in, arg, false);
			break;
		case 4:
			command(&in, arg, true);
			break;
		case 5:
			bytes = fuzz_take(&in, &len);
			receive(bytes, len);
			break;
		case 6:
			report(&in, arg);
			break;
		case 7:
			now_usec += 1ULL << (arg & 31);
			if (arg & 32) {
				open = false;
				ops->down(ops_ctx, "closed");
			} else {
				bl_agent_on_beat(NULL, 0, agent);
			}
			break;
		}
		bl_agent_read(agent, &total);
		FUZZ_CHECK(total.epoch == epoch && total.welcome <= open);
	}
	bl_agent_free(agent);
	return 0;
}
