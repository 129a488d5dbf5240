// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The failure procedure (controller/recover/) on random racks: nodes die, links fall silent, agents
 * do not answer, leaders die between any two steps and old leaders go on sending commands, while
 * messages are delayed for any time. What must hold at every moment is asserted at every moment,
 * and in the end everything is resumed. The same step by step is in test_recover_core.c.
 *
 * Example: BL_RUN=8 repeats the run with seed 8; BL_SAY=1 prints the seed of each run before it
 * begins; BL_RUNS=5000 makes more runs than the usual 400.
 */
#include "tests/unit/unit.h"

#include "controller/recover/recover_core.h"

#define MS       1000000ULL

#define NODES    12
#define PORTS    8
#define MSGS     4096
#define FAILURES 200

static const struct bl_recover_cfg cfg = { .settle_ns = 5 * MS,
					   .answer_ns = 1000 * MS,
					   .grace_ns = 3000 * MS };

/*
 * What is really the case: which nodes live, which ways work. An agent is like that of the daemon:
 * it obeys the highest epoch that it has heard of.
 */
struct agent_port {
	uint32_t neighbour;
	uint8_t role, state;
	bool way; /* what is sent on the input arrives */
	bool barred;
	uint32_t death;
	uint64_t c;
};

struct agent {
	bool alive, deaf;
	bool is_host, failed, rejoined;
	uint32_t nports;
	struct agent_port port[PORTS];
	uint64_t epoch;
	int leader; /* index of the core that it has a session with; -1: none */
	bool done[FAILURES];
	uint8_t addr[1][16];
	/* processes that died; endpoint 1000 + index. */
	uint32_t nprocs, told;
};

enum {
	M_HELLO,
	M_LINK_DOWN,
	M_BARRED,
	M_DONE,
	M_RESUMED,
	M_PROC_DOWN,
	M_TO_AGENT,
	M_SAVED_NODE,
	M_SAVED_FAILURE
};

/*
 * The inputs that were frozen when a failure was decided; its T is taken from those. The number of
 * the death plus 1; 0: it was not frozen.
 */
typedef uint32_t stood[NODES + 1][PORTS];

/** struct msg - A message. Messages of a pair of sender and receiver keep their order. */
struct msg {
	int from, to, kind;
	uint32_t port;
	uint64_t number, c, epoch;
	struct bl_recover_out out;
	bool barred[PORTS];
	bool asked[PORTS];
	/* HELLO: as it was when it was sent */
	struct agent_port said[PORTS];
	bool rejoin;
	uint32_t death;
};

struct saved {
	bool there;
	uint64_t epoch;
	uint8_t step;
	uint32_t nfailed, ninputs;
	stood stood;
	struct bl_recover_failed failed[NODES];
	struct bl_recover_input input[NODES * PORTS];
};

static struct sim {
	struct rnd rnd;
	uint64_t now;
	uint32_t n;
	struct agent a[NODES + 1]; /* by id, from 1 */
	struct bl_recover *core[2];
	uint64_t epoch[2], leads; /* revision of the store */
	stood stood[2][FAILURES]; /* by core: when it asked for the failure to be saved */
	struct saved f[FAILURES];
	struct bl_recover_node node[NODES + 1];
	bool node_there[NODES + 1];
	struct msg m[MSGS];
	uint32_t nm;
	uint64_t clock; /* the registers that C comes from */
	uint64_t kills, takeovers, fails, resumes, stale, late, left;
} s;

static void post(struct msg m)
{
	assert_true(s.nm < MSGS);
	s.m[s.nm++] = m;
}

static struct bl_recover_hello say_hello(const struct msg *m, struct bl_recover_port *port)
{
	uint32_t id = (uint32_t)m->from;
	const struct agent *a = &s.a[id];
	static const uint16_t endpoint[1] = { 61696 };
	struct bl_recover_hello h = { .id = id,
				      .kind = a->is_host ? BL_DET_HOST : BL_DET_SWITCH,
				      .epoch = m->epoch,
				      .rejoin = m->rejoin,
				      .port = port,
				      .nports = a->nports,
				      .addr = a->addr,
				      .naddrs = a->is_host,
				      .endpoint = endpoint,
				      .nendpoints = a->is_host };
	uint32_t i;

	for (i = 0; i < a->nports; i++)
		port[i] = (struct bl_recover_port){ .port = i,
						    .neighbour = a->port[i].neighbour,
						    .role = a->port[i].role,
						    .state = m->said[i].state,
						    .c = m->said[i].c,
						    .death = m->said[i].death };
	return h;
}

static void post_hello(uint32_t id)
{
	struct msg m = { .from = (int)id,
			 .to = s.a[id].leader + NODES + 1,
			 .kind = M_HELLO,
			 .epoch = s.a[id].epoch,
			 .rejoin = s.a[id].rejoined };

	memcpy(m.said, s.a[id].port, sizeof(m.said));
	post(m);
}

static void note_stood(int k, uint64_t number)
{
	uint32_t i, p;

	for (i = 0; i < bl_recover_nodes(s.core[k]); i++) {
		const struct bl_recover_node *n = bl_recover_node_at(s.core[k], i);

		for (p = 0; p < n->nports; p++)
			s.stood[k][number][n->id][n->port[p].port] =
				n->state != BL_DET_GONE && n->port[p].state == BL_DET_SILENT
					? n->port[p].death + 1
					: 0;
	}
}

/* Makes messages of all outputs of a core. */
static void drain(int k)
{
	struct bl_recover_out o;

	while (bl_recover_next(s.core[k], &o)) {
		struct msg m = { .from = k + NODES + 1,
				 .to = (int)o.node,
				 .kind = M_TO_AGENT,
				 .out = o,
				 .epoch = s.epoch[k] };
		const struct bl_recover_node *n = bl_recover_node(s.core[k], o.node);
		uint32_t i;

		if (o.what == BL_RECOVER_SAVE_NODE || o.what == BL_RECOVER_SAVE_FAILURE ||
		    o.what == BL_RECOVER_DROP_FAILURE) {
			m.to = k + NODES + 1;
			m.kind = o.what == BL_RECOVER_SAVE_NODE ? M_SAVED_NODE : M_SAVED_FAILURE;
			m.number = o.number;
			m.port = o.node;
			if (o.what == BL_RECOVER_SAVE_FAILURE &&
			    bl_recover_failure(s.core[k], o.number)->step == BL_RECOVER_ANNOUNCED)
				note_stood(k, o.number);
			post(m);
			continue;
		}
		if (o.what == BL_RECOVER_BAR) {
			m.number = n->bar;
			for (i = 0; i < n->nports; i++)
				m.barred[n->port[i].port] = n->port[i].barred;
		}
		for (i = 0; o.what == BL_RECOVER_FREEZE && i < n->nports; i++)
			m.asked[n->port[i].port] = n->port[i].asked;
		/* what a command says was saved by some leader */
		if (o.what == BL_RECOVER_FAIL)
			assert_true(s.f[o.number].there);
		if (o.what == BL_RECOVER_RESUME)
			assert_true(s.f[o.number].there &&
				    s.f[o.number].step >= BL_RECOVER_RESUMED);
		post(m);
	}
}

static bool stays(uint32_t id)
{
	return s.a[id].alive && !s.a[id].failed;
}

static bool is_left(const struct saved *f)
{
	return f->nfailed && f->failed[0].proc.port && f->failed[0].proc.why == BL_WHY_LEFT;
}

/* before inputs are resumed, all correct hosts have completed the failure */
static void check_completed(uint64_t number)
{
	const struct saved *f = &s.f[number];
	uint32_t i, k;
	bool host_or_proc = false;

	for (k = 0; k < f->nfailed; k++)
		host_or_proc = true;
	for (i = 1; i <= s.n && host_or_proc; i++) {
		bool announced = false;
		uint64_t n;

		if (!s.a[i].is_host || s.a[i].done[number] || !s.node[i].linked ||
		    s.node[i].joined >= number)
			continue;
		for (n = 1; n < FAILURES; n++)
			for (k = 0; s.f[n].there && k < s.f[n].nfailed; k++)
				announced |= s.f[n].failed[k].node == i && n > s.node[i].joined;
		if (!announced)
			fail_msg("failure %u is resumed, and host %u has not completed it",
				 (unsigned int)number, i);
	}
}

/* The store: writes are fenced, and a number never has two decisions. */
static void save_failure(int k, uint64_t number)
{
	const struct bl_recover_failure *f = bl_recover_failure(s.core[k], number);
	struct saved *v = &s.f[number];
	uint32_t i;

	assert_true(number < FAILURES);
	if (s.epoch[k] != s.leads || !f)
		return; /* fenced: the core never hears that it was saved */
	if (v->there) {
		assert_int_equal(v->nfailed, f->nfailed);
		assert_int_equal(v->ninputs, f->ninputs);
		for (i = 0; i < f->nfailed; i++) {
			assert_int_equal(v->failed[i].node, f->failed[i].node);
			assert_int_equal(v->failed[i].proc.t, f->failed[i].proc.t);
		}
		assert_true(f->step >= v->step);
	}
	if (!v->there)
		memcpy(v->stood, s.stood[k][number], sizeof(v->stood));
	v->there = true;
	v->epoch = f->epoch;
	v->step = f->step;
	v->nfailed = f->nfailed;
	v->ninputs = f->ninputs;
	assert_true(f->nfailed <= NODES && f->ninputs <= NODES * PORTS);
	for (i = 0; i < f->nfailed; i++) {
		v->failed[i] = f->failed[i];
		v->failed[i].addr = s.a[f->failed[i].node].addr;
	}
	memcpy(v->input, f->input, f->ninputs * sizeof(*f->input));
	/*
	 * A process that left has a record of its own, in which there is nothing to resume, and
	 * which ends when all hosts have confirmed it.
	 */
	if (is_left(v))
		assert_true(v->nfailed == 1 && !v->ninputs && v->step != BL_RECOVER_RESUMED);
	if (v->step == BL_RECOVER_RESUMED || (is_left(v) && v->step == BL_RECOVER_FINISHED))
		check_completed(number);
	s.left += is_left(v) && v->step == BL_RECOVER_FINISHED;
	bl_recover_saved_failure(s.core[k], s.now, number);
	drain(k);
}

static void save_node(int k, uint32_t id)
{
	const struct bl_recover_node *n = bl_recover_node(s.core[k], id);

	if (s.epoch[k] != s.leads || !n)
		return;
	free(s.node[id].port);
	s.node[id] = *n;
	s.node[id].port = malloc((n->nports + 1) * sizeof(*n->port));
	assert_non_null(s.node[id].port);
	memcpy(s.node[id].port, n->port, n->nports * sizeof(*n->port));
	s.node[id].addr = s.a[id].addr;
	s.node[id].endpoint = NULL;
	s.node[id].nendpoints = 0;
	s.node_there[id] = true;
	bl_recover_saved_node(s.core[k], s.now, id);
	drain(k);
}

static void freeze(uint32_t id, uint32_t port)
{
	struct agent_port *p = &s.a[id].port[port];

	if (bl_det_rises(p->state)) {
		p->state = BL_DET_SILENT;
		p->c = ++s.clock;
		p->death++;
	}
	if (p->state == BL_DET_SILENT && s.a[id].leader >= 0)
		post((struct msg){ .from = (int)id,
				   .to = s.a[id].leader + NODES + 1,
				   .kind = M_LINK_DOWN,
				   .port = port,
				   .c = p->c,
				   .death = p->death });
}

static void join(void);

static void connect_to(uint32_t id, int k)
{
	uint32_t i, n = 0;

	/* a new session: what was under way on the old one is lost */
	for (i = 0; i < s.nm; i++)
		/* or was obeyed just before: commands of the old leader may still be read */
		if (s.m[i].from != (int)id &&
		    (s.m[i].to != (int)id || s.m[i].kind != M_TO_AGENT || rnd_below(&s.rnd, 2)))
			s.m[n++] = s.m[i];
	s.nm = n;
	if (s.a[id].leader >= 0 && s.core[s.a[id].leader])
		bl_recover_bye(s.core[s.a[id].leader], s.now, id);
	s.a[id].leader = k;
	if (k >= 0)
		post_hello(id);
}

/* both commands say who failed */
static void hear_failed(uint32_t id, uint64_t number)
{
	const struct saved *f = &s.f[number];
	uint32_t i;

	for (i = 0; i < f->nfailed; i++) {
		if (f->failed[i].node != id)
			continue;
		if (!f->failed[i].proc.port)
			s.a[id].failed = true;
		else if (f->failed[i].proc.port >= 1000)
			s.a[id].told |= 1U << (f->failed[i].proc.port - 1000);
	}
}

/*
 * What was frozen when a T was taken from it stays frozen until all hosts have completed that
 * failure.
 */
static void resume(uint32_t id, uint32_t port, uint32_t death)
{
	struct agent_port *p = &s.a[id].port[port];
	uint64_t n;

	s.late += p->state == BL_DET_SILENT && p->death != death;
	if (p->state != BL_DET_SILENT || p->death != death)
		return;
	for (n = 1; n < FAILURES; n++)
		if (s.f[n].there && s.f[n].nfailed && !is_left(&s.f[n]) &&
		    s.f[n].stood[id][port] == death + 1)
			check_completed(n);
	p->state = BL_DET_REMOVED;
}

static void to_agent(const struct msg *m)
{
	struct agent *a = &s.a[m->to];
	struct msg re = { .from = m->to, .to = m->from };
	bool anew;
	uint32_t i;

	if (!a->alive || a->deaf)
		return;
	if (m->epoch < a->epoch) {
		s.stale++;
		return;
	}
	anew = m->epoch > a->epoch;
	a->epoch = m->epoch;
	switch (m->out.what) {
	case BL_RECOVER_WELCOME:
		if (m->out.number && a->rejoined)
			a->rejoined = false;
		if (m->out.number && !a->failed)
			a->failed = true;
		else if (!m->out.number)
			a->failed = false, a->rejoined = false;
		if (anew && a->leader == m->from - NODES - 1)
			post_hello((uint32_t)m->to);
		return;
	case BL_RECOVER_BAR:
		re.kind = M_BARRED;
		re.number = m->number;
		for (i = 0; i < a->nports; i++)
			a->port[i].barred = m->barred[i];
		break;
	case BL_RECOVER_FREEZE:
		for (i = 0; i < a->nports; i++)
			if (m->asked[i])
				freeze((uint32_t)m->to, i);
		return;
	case BL_RECOVER_FAIL:
		s.fails++;
		re.kind = M_DONE;
		re.number = m->out.number;
		a->done[re.number] = true;
		hear_failed((uint32_t)m->to, re.number);
		break;
	case BL_RECOVER_RESUME:
		s.resumes++;
		hear_failed((uint32_t)m->to, m->out.number);
		re.kind = M_RESUMED;
		re.number = m->out.number;
		/* whichever leader sends it: it is saved, and all correct hosts have completed */
		assert_true(s.f[re.number].there && s.f[re.number].step >= BL_RECOVER_RESUMED);
		check_completed(re.number);
		for (i = 0; i < s.f[re.number].ninputs; i++)
			if (s.f[re.number].input[i].node == (uint32_t)m->to)
				resume((uint32_t)m->to, s.f[re.number].input[i].port,
				       s.f[re.number].input[i].death);
		break;
	default:
		return;
	}
	if (!a->failed && s.core[m->from - NODES - 1])
		post(re);
	/* what was resumed may be heard again at once, before the controller has finished */
	if (m->out.what == BL_RECOVER_RESUME && rnd_below(&s.rnd, 2))
		join();
}

static void deliver(const struct msg *m)
{
	int k = m->to - NODES - 1;
	uint32_t from = (uint32_t)m->from;

	if (m->kind == M_TO_AGENT) {
		to_agent(m);
		return;
	}
	if (!s.core[k])
		return;
	switch (m->kind) {
	case M_HELLO: {
		struct bl_recover_port port[PORTS];
		struct bl_recover_hello h = say_hello(m, port);

		/* only a core that leads, or believes so, accepts it */
		bl_recover_hello(s.core[k], s.now, &h);
		break;
	}
	case M_LINK_DOWN:
		bl_recover_link_down(s.core[k], s.now, from, m->port,
				     s.a[from].port[m->port].neighbour, m->c, m->death);
		break;
	case M_PROC_DOWN:
		bl_recover_proc_down(s.core[k], s.now, from,
				     &(struct bl_recover_proc){ .port = (uint16_t)(1000 + m->port),
								.life = 7,
								.why = m->port & 1 ? BL_WHY_LEFT
										   : BL_WHY_DIED,
								.t = 500 + m->port });
		break;
	case M_BARRED:
		bl_recover_barred(s.core[k], s.now, from, m->number);
		break;
	case M_DONE:
		bl_recover_done(s.core[k], s.now, from, m->number);
		break;
	case M_RESUMED:
		bl_recover_resumed(s.core[k], s.now, from, m->number);
		break;
	case M_SAVED_NODE:
		save_node(k, m->port);
		return;
	case M_SAVED_FAILURE:
		save_failure(k, m->number);
		return;
	}
	drain(k);
}

/* a message that is the oldest of its pair */
static void step(void)
{
	uint32_t at = rnd_below(&s.rnd, s.nm), i;
	struct msg m;

	/*
	 * Writes to the store overtake each other, except for those of one key, which name the
	 * revision before them.
	 */
	for (i = 0; i < at; i++)
		if (s.m[i].from == s.m[at].from && s.m[i].to == s.m[at].to &&
		    (s.m[at].from != s.m[at].to ||
		     (s.m[i].kind == s.m[at].kind && s.m[i].number == s.m[at].number &&
		      s.m[i].port == s.m[at].port))) {
			at = i;
			break;
		}
	m = s.m[at];
	memmove(s.m + at, s.m + at + 1, (--s.nm - at) * sizeof(*s.m));
	deliver(&m);
}

static void pass(uint64_t ns)
{
	int k;

	s.now += ns;
	for (k = 0; k < 2; k++)
		if (s.core[k]) {
			bl_recover_tick(s.core[k], s.now);
			drain(k);
		}
}

/* A leader dies: what was on its way from it and to it is lost, and so are its sessions. */
static void end_core(int k)
{
	uint32_t i;

	for (i = 0; i < s.nm;)
		if (s.m[i].from == k + NODES + 1 || s.m[i].to == k + NODES + 1)
			s.m[i] = s.m[--s.nm];
		else
			i++;
	for (i = 1; i <= s.n; i++)
		if (s.a[i].leader == k)
			s.a[i].leader = -1;
	bl_recover_free(s.core[k]);
	s.core[k] = NULL;
}

static void new_leader(bool keep_old)
{
	int k = s.core[0] ? 1 : 0, old = 1 - k;
	uint32_t i;

	if (s.core[k]) {
		k = s.epoch[0] < s.epoch[1] ? 0 : 1;
		old = 1 - k;
	}
	end_core(k);
	if (!keep_old)
		end_core(old);
	s.core[k] = bl_recover_new(&cfg);
	for (i = 1; i <= s.n; i++)
		if (s.node_there[i]) {
			struct bl_recover_node n = s.node[i];

			n.state = BL_DET_UP;
			assert_int_equal(bl_recover_load_node(s.core[k], &n), 0);
		}
	for (i = 1; i < FAILURES; i++)
		if (s.f[i].there) {
			struct bl_recover_failure f = { .number = i,
							.epoch = s.f[i].epoch,
							.step = s.f[i].step,
							.failed = s.f[i].failed,
							.input = s.f[i].input,
							.nfailed = s.f[i].nfailed,
							.ninputs = s.f[i].ninputs };

			assert_int_equal(bl_recover_load_failure(s.core[k], &f), 0);
		}
	s.epoch[k] = ++s.leads;
	bl_recover_start(s.core[k], s.now, s.leads);
	drain(k);
	s.takeovers++;
}

static int leader(void)
{
	return s.core[0] && s.epoch[0] == s.leads ? 0 : 1;
}

static void add_link(uint32_t low, uint32_t high)
{
	struct agent *a = &s.a[low], *b = &s.a[high];

	a->port[a->nports++] =
		(struct agent_port){ .neighbour = high, .role = BL_RECOVER_UP, .way = true };
	b->port[b->nports++] =
		(struct agent_port){ .neighbour = low,
				     .role = a->is_host ? BL_RECOVER_HOST : BL_RECOVER_DOWN,
				     .way = true };
}

/* four hosts on two leaves with two spines, or four on one switch */
static void build(bool clos)
{
	uint32_t i, k;

	s.n = clos ? 8 : 5;
	for (i = 1; i <= s.n; i++) {
		s.a[i] = (struct agent){ .alive = true, .is_host = i <= 4, .leader = -1 };
		s.a[i].addr[0][0] = (uint8_t)i;
	}
	for (i = 1; i <= 4; i++)
		add_link(i, clos ? 5 + (i - 1) / 2 : 5);
	for (i = 5; clos && i <= 6; i++)
		for (k = 7; k <= 8; k++)
			add_link(i, k);
}

/* the neighbours of @id notice that nothing comes from it */
static void notice(void)
{
	uint32_t i, p;

	for (i = 1; i <= s.n; i++)
		for (p = 0; s.a[i].alive && p < s.a[i].nports; p++)
			if (bl_det_rises(s.a[i].port[p].state) &&
			    (!s.a[i].port[p].way || !s.a[s.a[i].port[p].neighbour].alive) &&
			    !rnd_below(&s.rnd, 3))
				freeze(i, p);
}

/* Links that were resumed are heard again unless a node is barred: they join by themselves. */
static void join(void)
{
	uint32_t i, p;

	for (i = 1; i <= s.n; i++) {
		struct agent *a = &s.a[i];
		bool joined = false;

		for (p = 0; a->alive && !a->failed && p < a->nports; p++)
			if (a->port[p].state == BL_DET_BEHIND) {
				a->port[p].state = BL_DET_LIVE;
				joined = true;
			} else if (a->port[p].state == BL_DET_REMOVED && !a->port[p].barred &&
				   a->port[p].way && s.a[a->port[p].neighbour].alive &&
				   !s.a[a->port[p].neighbour].failed) {
				a->port[p].state = a->port[p].role == BL_RECOVER_HOST ||
								   a->is_host ||
								   rnd_below(&s.rnd, 2)
							   ? BL_DET_LIVE
							   : BL_DET_BEHIND;
				joined = true;
			}
		if (joined && a->leader >= 0)
			post_hello(i);
	}
}

static void rejoin(uint32_t id)
{
	struct agent *a = &s.a[id];
	uint32_t p;

	if (!a->rejoined)
		for (p = 0; p < a->nports; p++)
			a->port[p].state = BL_DET_REMOVED;
	a->rejoined = true;
	a->told = (1U << a->nprocs) - 1; /* of its old life */
	post_hello(id);
}

/* what the leader has not announced, the node may not know */
static void say_procs(uint32_t id)
{
	uint32_t p;

	for (p = 0; p < s.a[id].nprocs; p++)
		if (!(s.a[id].told >> p & 1))
			post((struct msg){ .from = (int)id,
					   .to = s.a[id].leader + NODES + 1,
					   .kind = M_PROC_DOWN,
					   .port = p });
}

static void sessions(bool all)
{
	uint32_t i;
	int k = leader();

	for (i = 1; i <= s.n; i++) {
		struct agent *a = &s.a[i];

		if (!a->alive || a->deaf || (!all && rnd_below(&s.rnd, 8)))
			continue;
		if (a->leader != k)
			connect_to(i, k);
		else if (a->failed && (all || !rnd_below(&s.rnd, 4)))
			rejoin(i);
		if (a->leader >= 0 && !a->failed)
			say_procs(i);
	}
}

/* prints what the leader knows beside what is the case */
static void dump(void)
{
	const struct bl_recover *r = s.core[leader()];
	uint32_t i, p;

	for (i = 0; i < bl_recover_nodes(r); i++) {
		const struct bl_recover_node *n = bl_recover_node_at(r, i);
		const struct agent *a = &s.a[n->id];

		print_message("node %u: state %u gone %u joined %u%s%s%s; alive %d failed %d\n",
			      n->id, n->state, (unsigned int)n->gone, (unsigned int)n->joined,
			      n->connected ? " connected" : "", n->linked ? " linked" : "",
			      n->due ? " owes" : "", a->alive, a->failed);
		for (p = 0; p < n->nports; p++)
			print_message("  port %u -> %u: state %u record %u%s%s%s c %d; really %u "
				      "way %d\n",
				      n->port[p].port, n->port[p].neighbour, n->port[p].state,
				      (unsigned int)n->port[p].record,
				      n->port[p].fence ? " fence" : "",
				      n->port[p].barred ? " barred" : "",
				      n->port[p].asked ? " asked" : "", (int)n->port[p].c,
				      a->port[n->port[p].port].state, a->port[n->port[p].port].way);
	}
	for (i = 0; i < bl_recover_failures(r); i++) {
		const struct bl_recover_failure *f = bl_recover_failure_at(r, i);

		print_message("failure %u step %u%s:", (unsigned int)f->number, f->step,
			      f->saving ? " saving" : "");
		for (p = 0; p < f->nfailed; p++)
			print_message(" %u(%u, T %d)", f->failed[p].node, f->failed[p].why,
				      (int)f->failed[p].proc.t);
		for (p = 0; p < f->ninputs; p++)
			print_message(" resume %u.%u", f->input[p].node, f->input[p].port);
		print_message("\n");
	}
}

#define FATAL(...)                     \
	do {                           \
		dump();                \
		fail_msg(__VA_ARGS__); \
	} while (0)

static void one_run(uint64_t seed)
{
	uint32_t i, p, turns;
	uint64_t n;

	memset(&s, 0, sizeof(s));
	s.rnd.x = seed;
	s.clock = 1000;
	build(rnd_below(&s.rnd, 2));
	new_leader(false);
	sessions(true);
	while (s.nm)
		step();
	for (turns = 0; turns < 400; turns++) {
		switch (rnd_below(&s.rnd, 24)) {
		case 0: /* a node dies for good */
			if (s.kills < 3 && rnd_below(&s.rnd, 3) == 0) {
				i = 1 + rnd_below(&s.rnd, s.n);
				s.kills += s.a[i].alive;
				s.a[i].alive = false;
				connect_to(i, -1);
			}
			break;
		case 1: /* one way or both ways of a link fail */
			i = 1 + rnd_below(&s.rnd, s.n);
			p = rnd_below(&s.rnd, s.a[i].nports);
			if (s.kills < 3) {
				s.kills += s.a[i].port[p].way;
				s.a[i].port[p].way =
					!s.a[i].port[p].way; /* or the link comes back */
			}
			break;
		case 2:
			if (!rnd_below(&s.rnd, 3))
				new_leader(rnd_below(&s.rnd, 2));
			break;
		case 3: /* an agent is stopped for a while, and comes back */
			i = 1 + rnd_below(&s.rnd, s.n);
			s.a[i].deaf = !s.a[i].deaf && !rnd_below(&s.rnd, 4);
			if (s.a[i].deaf)
				connect_to(i, -1);
			break;
		case 4:
			pass(rnd_below(&s.rnd, 2000) * MS);
			break;
		case 5:
			sessions(false);
			break;
		case 6:
			notice();
			break;
		case 7:
			join();
			break;
		case 8:
			i = 1 + rnd_below(&s.rnd, 4);
			if (s.a[i].alive && !s.a[i].failed && s.a[i].leader >= 0 &&
			    s.a[i].nprocs < 4 && !rnd_below(&s.rnd, 4)) {
				s.a[i].nprocs++;
				say_procs(i);
			}
			break;
		default:
			if (s.nm)
				step();
			else
				pass(rnd_below(&s.rnd, 20) * MS);
		}
	}
	/* no more faults: everything comes to its end */
	for (i = 1; i <= s.n; i++)
		s.a[i].deaf = false;
	new_leader(false);
	for (turns = 0; turns < 300; turns++) {
		/*
		 * Except for links between leaf and spine that are cut for a moment: no node fails
		 * for that, and they are heard again as soon as they are resumed.
		 */
		i = 1 + rnd_below(&s.rnd, s.n);
		p = rnd_below(&s.rnd, s.a[i].nports);
		if (turns < 40 && !(turns % 4) && s.a[i].port[p].way &&
		    s.a[i].port[p].role != BL_RECOVER_HOST && !s.a[i].is_host && s.a[i].alive)
			freeze(i, p);
		notice();
		join();
		sessions(true);
		while (s.nm)
			step();
		pass(100 * MS);
		while (s.nm)
			step();
	}
	for (n = 1; n < FAILURES; n++)
		if (s.f[n].there && s.f[n].step != BL_RECOVER_FINISHED)
			FATAL("failure %u is in step %u for ever", (unsigned int)n, s.f[n].step);
	for (i = 1; i <= s.n; i++) {
		const struct bl_recover_node *v = bl_recover_node(s.core[leader()], i);

		for (p = 0; stays(i) && v->state == BL_DET_UP && p < s.a[i].nports; p++)
			if (s.a[i].port[p].state == BL_DET_SILENT ||
			    v->port[p].state == BL_DET_SILENT)
				FATAL("port %u of node %u stands still for ever", p, i);
			else if (v->linked && s.a[i].port[p].state == BL_DET_LIVE &&
				 v->port[p].state != BL_DET_LIVE)
				FATAL("port %u of node %u is live, and the leader does not know", p,
				      i);
		if (stays(i) && s.a[i].told != (1U << s.a[i].nprocs) - 1)
			FATAL("a process of host %u died, and nobody was told", i);
		for (p = 0; stays(i) && p < s.a[i].nports; p++)
			if (!s.a[s.a[i].port[p].neighbour].alive &&
			    s.a[i].port[p].state != BL_DET_REMOVED)
				FATAL("node %u waits for node %u, which is dead", i,
				      s.a[i].port[p].neighbour);
	}
	for (i = 0; i < 2; i++) {
		bl_recover_free(s.core[i]);
		s.core[i] = NULL;
	}
	for (i = 1; i <= s.n; i++)
		free(s.node[i].port);
}

/*
 * Runs that once went wrong.
 *
 * In the first, a process left while its host had no link, and its session broke before the host
 * was told; the record was finished, and the host was never told again.
 *
 * In the second, a node joined a port at the moment at which the neighbour was announced, and
 * reported that; the report was ignored, and not repeated when the neighbour was back.
 */
static void random__once_wrong(void **state)
{
	(void)state;
	one_run(2689627092537426122ULL);
	one_run(1765350011146263981ULL);
}

static void random__all_is_resumed(void **state)
{
	struct rnd r = rnd_seeded("recover");
	uint64_t fails = 0, resumes = 0, takeovers = 0, stale = 0, late = 0, left = 0;
	const char *runs = getenv("BL_RUNS"), *only = getenv("BL_RUN");
	unsigned int k, n = runs ? (unsigned int)atoi(runs) : 400;

	(void)state;
	for (k = 0; k < n; k++) {
		uint64_t seed = only ? strtoull(only, NULL, 0) : rnd64(&r);

		if (getenv("BL_SAY"))
			print_message("BL_RUN=%llu\n", (unsigned long long)seed);
		one_run(seed);
		fails += s.fails;
		resumes += s.resumes;
		takeovers += s.takeovers;
		stale += s.stale;
		late += s.late;
		left += s.left;
	}
	print_message("%u runs: %llu FAIL, %llu RESUME obeyed, %llu leaders, %llu stale orders "
		      "refused, %llu late ones, %llu leaves\n",
		      n, (unsigned long long)fails, (unsigned long long)resumes,
		      (unsigned long long)takeovers, (unsigned long long)stale,
		      (unsigned long long)late, (unsigned long long)left);
	assert_true(left > 0);
	assert_true(only || n < 100 || (fails && resumes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random__once_wrong),
		cmocka_unit_test(random__all_is_resumed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
