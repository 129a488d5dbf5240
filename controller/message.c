// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See message.h. */
#include <stdlib.h>
#include <string.h>

#include "controller/message.h"

/* ---- reading ---- */

static bool read_addrs(uint8_t (**addr)[16], const ProtobufCBinaryData *v, size_t n)
{
	size_t i;

	*addr = n <= BL_RECOVER_ADDRS_MAX ? calloc(n + 1, sizeof(**addr)) : NULL;
	for (i = 0; *addr && i < n; i++) {
		if (v[i].len != 16)
			return false;
		memcpy((*addr)[i], v[i].data, 16);
	}
	return *addr;
}

static bool read_ports(struct bl_recover_port **port, Bl__Port *const *v, size_t n)
{
	size_t i;

	*port = n <= BL_RECOVER_PORTS_MAX ? calloc(n + 1, sizeof(**port)) : NULL;
	for (i = 0; *port && i < n; i++) {
		if (v[i]->role > UINT8_MAX || v[i]->state > UINT8_MAX)
			return false;
		(*port)[i] = (struct bl_recover_port){ .port = v[i]->port,
						       .neighbour = v[i]->neighbour,
						       .role = (uint8_t)v[i]->role,
						       .state = (uint8_t)v[i]->state,
						       .c = v[i]->c,
						       .joined = v[i]->joined,
						       .death = v[i]->death };
	}
	return *port;
}

bool ctl_hello(const Bl__Hello *m, struct bl_recover_hello *h, struct bl_recover_port **port,
	       uint16_t **endpoint, uint8_t (**addr)[16])
{
	bool ok = m->version == 1 && m->kind <= UINT8_MAX && strlen(m->name) <= BL_RECOVER_NAME_MAX;
	size_t i;

	*endpoint = m->n_endpoint <= BL_RECOVER_ENDPOINTS_MAX
			    ? calloc(m->n_endpoint + 1, sizeof(**endpoint))
			    : NULL;
	ok &= read_addrs(addr, m->addr, m->n_addr);
	ok &= read_ports(port, m->port, m->n_port);
	ok &= *endpoint != NULL;
	for (i = 0; ok && i < m->n_endpoint; i++) {
		ok = m->endpoint[i] && m->endpoint[i] <= UINT16_MAX;
		(*endpoint)[i] = (uint16_t)m->endpoint[i];
	}
	if (!ok)
		return false;
	*h = (struct bl_recover_hello){ .id = m->node,
					.epoch = m->epoch,
					.kind = (uint8_t)m->kind,
					.rejoin = m->rejoin,
					.addr = (const uint8_t(*)[16]) * addr,
					.port = *port,
					.endpoint = *endpoint,
					.naddrs = (uint32_t)m->n_addr,
					.nports = (uint32_t)m->n_port,
					.nendpoints = (uint32_t)m->n_endpoint };
	strcpy(h->name, m->name);
	return true;
}

int ctl_load_node(struct bl_recover *r, const uint8_t *data, size_t len)
{
	Bl__Node *m = bl__node__unpack(NULL, len, data);
	uint8_t(*addr)[16] = NULL;
	struct bl_recover_port *port = NULL;
	uint16_t *endpoint = NULL;
	struct bl_recover_hello h;
	int rc = -1;

	if (m && m->hello && ctl_hello(m->hello, &h, &port, &endpoint, &addr)) {
		struct bl_recover_node n = { .id = h.id,
					     .kind = h.kind,
					     .linked = m->linked,
					     .joined = m->joined,
					     .away_ns = m->away_ms * 1000000ULL,
					     .addr = addr,
					     .port = port,
					     .endpoint = endpoint,
					     .naddrs = h.naddrs,
					     .nports = h.nports,
					     .nendpoints = h.nendpoints };

		memcpy(n.name, h.name, sizeof(n.name));
		rc = bl_recover_load_node(r, &n);
	}
	free(addr);
	free(port);
	free(endpoint);
	if (m)
		bl__node__free_unpacked(m, NULL);
	return rc;
}

static bool load_failed(struct bl_recover_failure *f, const Bl__Failure *m)
{
	size_t i;

	f->failed = calloc(m->n_failed + 1, sizeof(*f->failed));
	f->input = calloc(m->n_input + 1, sizeof(*f->input));
	if (!f->failed || !f->input)
		return false;
	for (i = 0; i < m->n_failed; i++) {
		const Bl__Failed *v = m->failed[i];
		struct bl_recover_failed *to = &f->failed[f->nfailed++];

		*to = (struct bl_recover_failed){ .node = v->node,
						  .why = (uint8_t)v->why,
						  .naddrs = (uint32_t)v->n_addr };
		to->proc = (struct bl_recover_proc){ .port = (uint16_t)v->port,
						     .life = (uint16_t)v->life,
						     .why = (uint8_t)v->gone,
						     .t = v->t };
		if (v->port > UINT16_MAX || v->life > UINT16_MAX || v->gone > UINT8_MAX ||
		    !read_addrs(&to->addr, v->addr, v->n_addr))
			return false;
	}
	for (i = 0; i < m->n_input; i++)
		f->input[f->ninputs++] =
			(struct bl_recover_input){ m->input[i]->node, m->input[i]->port,
						   m->input[i]->neighbour, m->input[i]->death,
						   m->input[i]->c };
	return true;
}

int ctl_load_failure(struct bl_recover *r, const uint8_t *data, size_t len, uint64_t *number,
		     uint64_t *unix_ns)
{
	Bl__Failure *m = bl__failure__unpack(NULL, len, data);
	struct bl_recover_failure f = { 0 };
	uint32_t i;
	int rc = -1;

	if (m && m->step <= BL_RECOVER_FINISHED && load_failed(&f, m)) {
		f.number = *number = m->number;
		f.epoch = m->epoch;
		f.step = (uint8_t)m->step;
		f.separated = m->separated;
		*unix_ns = m->unix_ns;
		rc = bl_recover_load_failure(r, &f);
	}
	for (i = 0; i < f.nfailed; i++)
		free(f.failed[i].addr);
	free(f.failed);
	free(f.input);
	if (m)
		bl__failure__free_unpacked(m, NULL);
	return rc;
}

/* ---- writing ---- */

/* Returns *@m, a message of protobuf-c type @type, as struct ctl_bytes. */
#define PACKED(type, m)                                                      \
	__extension__({                                                      \
		struct ctl_bytes b_ = { .len = type##__get_packed_size(m) }; \
		b_.data = malloc(b_.len + 1);                                \
		if (b_.data)                                                 \
			type##__pack(m, b_.data);                            \
		b_;                                                          \
	})

static struct ctl_bytes pack_command(Bl__ToAgent *m, uint64_t epoch, Bl__ToAgent__WhatCase what)
{
	m->epoch = epoch;
	m->what_case = what;
	return PACKED(bl__to_agent, m);
}

struct ctl_bytes ctl_put_out(uint64_t epoch, uint16_t port, uint16_t life)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__PutOut p = BL__PUT_OUT__INIT;

	p.port = port;
	p.life = life;
	m.put_out = &p;
	return pack_command(&m, epoch, BL__TO_AGENT__WHAT_PUT_OUT);
}

struct ctl_bytes ctl_welcome(uint64_t epoch, uint64_t failed, uint32_t answer_ms, uint32_t stuck_ms)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Welcome w = BL__WELCOME__INIT;

	w.failed = failed;
	w.answer_ms = answer_ms;
	w.stuck_ms = stuck_ms;
	m.welcome = &w;
	return pack_command(&m, epoch, BL__TO_AGENT__WHAT_WELCOME);
}

struct ctl_bytes ctl_bar(uint64_t epoch, const struct bl_recover_node *n)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Bar b = BL__BAR__INIT;
	uint32_t port[BL_RECOVER_PORTS_MAX * 2], i;

	b.port = port;
	for (i = 0; i < n->nports && b.n_port < BL_RECOVER_PORTS_MAX * 2; i++)
		if (n->port[i].barred)
			port[b.n_port++] = n->port[i].port;
	b.version = n->bar;
	m.bar = &b;
	return pack_command(&m, epoch, BL__TO_AGENT__WHAT_BAR);
}

struct ctl_bytes ctl_freeze(uint64_t epoch, const struct bl_recover_node *n)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Freeze f = BL__FREEZE__INIT;
	uint32_t port[BL_RECOVER_PORTS_MAX * 2], i;

	f.port = port;
	for (i = 0; i < n->nports && f.n_port < BL_RECOVER_PORTS_MAX * 2; i++)
		if (n->port[i].asked)
			port[f.n_port++] = n->port[i].port;
	m.freeze = &f;
	return pack_command(&m, epoch, BL__TO_AGENT__WHAT_FREEZE);
}

/** struct lists - The memory that a Bl__Failure points to. */
struct lists {
	Bl__Failed *failed, **failed_at;
	Bl__Input *input, **input_at;
	ProtobufCBinaryData *addr;
};

static void free_lists(struct lists *l)
{
	free(l->failed);
	free(l->failed_at);
	free(l->input);
	free(l->input_at);
	free(l->addr);
}

/*
 * Fills *@m from @f, with the inputs of node @node only, or all if it is 0. The message points into
 * @l, which the caller frees in either case. Returns false if there is no memory.
 */
static bool fill_failure(Bl__Failure *m, const struct bl_recover_failure *f, uint32_t node,
			 struct lists *l)
{
	size_t addrs = 0;
	uint32_t i, k;

	for (i = 0; i < f->nfailed; i++)
		addrs += f->failed[i].naddrs;
	l->failed = calloc(f->nfailed + 1, sizeof(*l->failed));
	l->failed_at = calloc(f->nfailed + 1, sizeof(*l->failed_at));
	l->input = calloc(f->ninputs + 1, sizeof(*l->input));
	l->input_at = calloc(f->ninputs + 1, sizeof(*l->input_at));
	l->addr = calloc(addrs + 1, sizeof(*l->addr));
	if (!l->failed || !l->failed_at || !l->input || !l->input_at || !l->addr)
		return false;
	for (addrs = i = 0; i < f->nfailed; i++) {
		const struct bl_recover_failed *from = &f->failed[i];
		Bl__Failed *v = l->failed_at[i] = &l->failed[i];

		bl__failed__init(v);
		v->node = from->node;
		v->port = from->proc.port;
		v->t = from->proc.t;
		v->why = from->why;
		v->life = from->proc.life;
		v->gone = from->proc.why;
		v->addr = &l->addr[addrs];
		v->n_addr = from->naddrs;
		for (k = 0; k < from->naddrs; k++)
			l->addr[addrs++] = (ProtobufCBinaryData){ 16, from->addr[k] };
	}
	for (i = 0; i < f->ninputs; i++) {
		Bl__Input *v = &l->input[m->n_input];

		if (node && f->input[i].node != node)
			continue;
		bl__input__init(v);
		v->node = f->input[i].node;
		v->port = f->input[i].port;
		v->neighbour = f->input[i].neighbour;
		v->c = f->input[i].c;
		v->death = f->input[i].death;
		l->input_at[m->n_input++] = v;
	}
	m->number = f->number;
	m->epoch = f->epoch;
	m->step = f->step;
	m->separated = f->separated;
	m->n_failed = f->nfailed;
	m->failed = l->failed_at;
	m->input = l->input_at;
	return true;
}

struct ctl_bytes ctl_failure(uint64_t epoch, const struct bl_recover_failure *f, bool resume,
			     uint32_t node)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Failure v = BL__FAILURE__INIT;
	struct ctl_bytes b = { 0 };
	struct lists l = { 0 };

	if (fill_failure(&v, f, node, &l)) {
		m.fail = &v;
		b = pack_command(&m, epoch,
				 resume ? BL__TO_AGENT__WHAT_RESUME : BL__TO_AGENT__WHAT_FAIL);
	}
	free_lists(&l);
	return b;
}

struct ctl_bytes ctl_save_failure(const struct bl_recover_failure *f, uint64_t unix_ns)
{
	Bl__Failure v = BL__FAILURE__INIT;
	struct ctl_bytes b = { 0 };
	struct lists l = { 0 };

	v.unix_ns = unix_ns;
	if (fill_failure(&v, f, 0, &l))
		b = PACKED(bl__failure, &v);
	free_lists(&l);
	return b;
}

struct ctl_bytes ctl_save_node(const struct bl_recover_node *n)
{
	Bl__Node m = BL__NODE__INIT;
	Bl__Hello h = BL__HELLO__INIT;
	Bl__Port *port = calloc(n->nports + 1, sizeof(*port)),
		 **at = calloc(n->nports + 1, sizeof(*at));
	ProtobufCBinaryData addr[BL_RECOVER_ADDRS_MAX];
	uint32_t *endpoint = calloc(n->nendpoints + 1, sizeof(*endpoint)), i;
	struct ctl_bytes b = { 0 };

	for (i = 0; port && at && i < n->nports && i < BL_RECOVER_PORTS_MAX; i++) {
		bl__port__init(&port[i]);
		port[i].port = n->port[i].port;
		port[i].neighbour = n->port[i].neighbour;
		port[i].role = n->port[i].role;
		port[i].joined = n->port[i].joined;
		at[h.n_port++] = &port[i];
	}
	for (i = 0; i < n->naddrs; i++)
		addr[i] = (ProtobufCBinaryData){ 16, n->addr[i] };
	for (i = 0; endpoint && i < n->nendpoints; i++)
		endpoint[i] = n->endpoint[i];
	if (port && at && endpoint) {
		h.version = 1;
		h.node = n->id;
		h.kind = n->kind;
		h.name = (char *)(uintptr_t)n->name;
		h.port = at;
		h.n_addr = n->naddrs;
		h.addr = addr;
		h.n_endpoint = n->nendpoints;
		h.endpoint = endpoint;
		m.hello = &h;
		m.joined = n->joined;
		m.linked = n->linked;
		m.away_ms = (uint32_t)((n->away_ns + 999999) / 1000000);
		b = PACKED(bl__node, &m);
	}
	free(port);
	free(at);
	free(endpoint);
	return b;
}

struct ctl_bytes ctl_save_epoch(uint64_t epoch, const char *leader, uint64_t unix_ns)
{
	Bl__Epoch m = BL__EPOCH__INIT;

	m.epoch = epoch;
	m.leader = (char *)(uintptr_t)leader;
	m.unix_ns = unix_ns;
	return PACKED(bl__epoch, &m);
}

struct ctl_bytes ctl_not_leading(const char *leader, const char *why)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__NotLeading v = BL__NOT_LEADING__INIT;

	v.leader = (char *)(uintptr_t)leader;
	v.why = (char *)(uintptr_t)why;
	m.not_leading = &v;
	return pack_command(&m, 0, BL__TO_AGENT__WHAT_NOT_LEADING);
}

struct ctl_bytes ctl_ping(uint64_t number)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Number v = BL__NUMBER__INIT;

	v.number = number;
	m.ping = &v;
	return pack_command(&m, 0, BL__TO_AGENT__WHAT_PING);
}

struct ctl_bytes ctl_away(uint64_t epoch)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Number v = BL__NUMBER__INIT;

	m.away = &v;
	return pack_command(&m, epoch, BL__TO_AGENT__WHAT_AWAY);
}

struct ctl_bytes ctl_forward_bytes(uint64_t epoch, const Bl__Forward *v)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;

	m.forward = (Bl__Forward *)(uintptr_t)v;
	return pack_command(&m, epoch, BL__TO_AGENT__WHAT_FORWARD);
}

struct ctl_bytes ctl_admission(uint64_t epoch, uint64_t number, bool check, const char *policy,
			       uint64_t rate_bps)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Admission v = BL__ADMISSION__INIT;

	v.number = number;
	v.check = check;
	v.policy = (char *)(uintptr_t)policy;
	v.rate_bps = rate_bps;
	m.admission = &v;
	return pack_command(&m, epoch, BL__TO_AGENT__WHAT_ADMISSION);
}
