// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See follow.h. */
#include "cli/capture/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RISES  4096 /* of an input that are kept: a second of beacons, and more */
#define INPUTS 256  /* of a switch */

/** struct rise - when an input's barriers rose, and how far. */
struct rise {
	uint64_t at_ns, b, c;
};

/** struct input - the last rises of an input of a switch. */
struct input {
	struct rise rise[RISES];
	uint64_t n; /* rises so far; the ring has the last ones */
};

struct follow {
	struct input **inputs[FOLLOW_NODES]; /* by node and port; NULL: none seen */
	struct follow_message under_way[FOLLOW_MAX];
	uint32_t n, next; /* messages in use; the place of the next one */
};

/* Returns whether @a is above @b, as serial numbers of 48 bits. */
static bool above(uint64_t a, uint64_t b)
{
	return (int64_t)((a - b) << 16) > 0;
}

struct follow *follow_new(void)
{
	return calloc(1, sizeof(struct follow));
}

void follow_free(struct follow *f)
{
	uint32_t i, k;

	if (!f)
		return;
	for (i = 0; i < FOLLOW_NODES; i++) {
		for (k = 0; f->inputs[i] && k < INPUTS; k++)
			free(f->inputs[i][k]);
		free(f->inputs[i]);
	}
	free(f);
}

/* Notes that an input of a switch has received barriers. Returns 0 or -errno. */
static int note_rise(struct follow *f, const struct follow_frame *k)
{
	struct input ***node = &f->inputs[k->node], **in;
	struct rise r = { k->at_ns, k->b_before, k->c_before };

	if (!*node)
		*node = calloc(INPUTS, sizeof(**node));
	if (!*node)
		return -ENOMEM;
	in = &(*node)[k->port];
	if (!*in)
		*in = calloc(1, sizeof(**in));
	if (!*in)
		return -ENOMEM;
	if ((*in)->n) {
		const struct rise *last = &(*in)->rise[((*in)->n - 1) % RISES];

		if (!above(r.b, last->b) && !above(r.c, last->c))
			return 0;
		if (!above(r.b, last->b))
			r.b = last->b;
		if (!above(r.c, last->c))
			r.c = last->c;
	}
	(*in)->rise[(*in)->n++ % RISES] = r;
	return 0;
}

/* Returns when the input passed @ts; 0: before what is kept; UINT64_MAX: never. */
static uint64_t passed_at(const struct input *in, uint64_t ts, bool reliable)
{
	uint64_t first = in->n > RISES ? in->n - RISES : 0, i;

	for (i = first; i < in->n; i++) {
		const struct rise *r = &in->rise[i % RISES];

		if (above(reliable ? r->c : r->b, ts))
			return i == first ? 0 : r->at_ns;
	}
	return UINT64_MAX;
}

bool follow_input(const struct follow *f, uint32_t node, uint64_t ts, bool reliable, uint64_t until,
		  uint32_t *port, uint64_t *at_ns, bool *excluded)
{
	bool found = false;
	uint64_t most = 0;
	uint32_t k;

	for (k = 0; f->inputs[node] && k < INPUTS; k++) {
		const struct input *in = f->inputs[node][k];
		uint64_t at = in ? passed_at(in, ts, reliable) : 0;

		if (!in || (found && at <= most))
			continue;
		found = true;
		most = at;
		*port = k;
	}
	*excluded = found && most > until;
	*at_ns = *excluded ? until : most;
	return found;
}

static struct follow_message *find(struct follow *f, const struct follow_frame *k)
{
	uint32_t i;

	for (i = 0; i < f->n; i++) {
		struct follow_message *m = &f->under_way[i];

		if (m->ts == k->ts && m->psn == k->psn && m->sport == k->sport &&
		    m->dport == k->dport && m->reliable == k->reliable &&
		    !memcmp(m->src, k->src, 16) && !memcmp(m->dst, k->dst, 16))
			return m;
	}
	return NULL;
}

static struct follow_message *add(struct follow *f, const struct follow_frame *k)
{
	struct follow_message *m = &f->under_way[f->next];

	f->next = (f->next + 1) % FOLLOW_MAX;
	if (f->n < FOLLOW_MAX)
		f->n++;
	memset(m, 0, sizeof(*m));
	memcpy(m->src, k->src, 16);
	memcpy(m->dst, k->dst, 16);
	m->sport = k->sport;
	m->dport = k->dport;
	m->psn = k->psn;
	m->ts = k->ts;
	m->reliable = k->reliable;
	return m;
}

/* Notes that a message was seen at a node. */
static void note_message(struct follow *f, const struct follow_frame *k)
{
	struct follow_message *m = find(f, k);

	if (!m)
		m = add(f, k);
	if (k->in_switch) {
		if (!m->first_ns)
			m->first_ns = k->at_ns;
		m->last_ns = k->at_ns;
		m->last_switch = k->node;
	} else if (k->out) {
		if (!m->sent_ns)
			m->sent_ns = k->at_ns;
		m->sender = k->node;
	} else if (!m->stored_ns) {
		m->stored_ns = k->at_ns;
		m->receiver = k->node;
	}
}

int follow_frame(struct follow *f, const struct follow_frame *k,
		 void (*done)(const struct follow_message *m, void *ctx), void *ctx)
{
	uint32_t i;
	int rc;

	if (k->node >= FOLLOW_NODES || k->port >= INPUTS)
		return 0;
	if (k->in_switch && !k->out && k->b_before) {
		rc = note_rise(f, k);
		if (rc)
			return rc;
	}
	if (k->message && k->took)
		note_message(f, k);
	if (k->in_switch || k->out || !k->b_after)
		return 0;
	for (i = 0; i < f->n; i++) {
		struct follow_message *m = &f->under_way[i];

		if (!m->stored_ns || m->done_ns || m->receiver != k->node ||
		    !above(m->reliable ? k->c_after : k->b_after, m->ts))
			continue;
		m->done_ns = k->at_ns;
		m->held = m->last_ns &&
			  follow_input(f, m->last_switch, m->ts, m->reliable, m->done_ns,
				       &m->held_port, &m->held_ns, &m->excluded);
		done(m, ctx);
	}
	return 0;
}
