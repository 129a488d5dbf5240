/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A rack under load, and what an attack from its last host does to the others.
 *
 * h1, h2 and h3 have an endpoint each that broadcasts ATK_RATE messages of 64 bytes per second to
 * all three, and, with @reliable, another one that sends reliable scatterings to the three of its
 * kind. The attacker has h4, where nothing of barline runs.
 *
 *	rack_of(&(struct atk_rack){ .reliable = true });
 *	beside("a barrier that stands still", &(struct atk_case){
 *		.attack = still, .reason = "lagging", .held_ms = ATK_HELD_MS });
 *	rack_judge();
 *
 * beside() judges by counts, not by the speed of this machine. Every sender has a schedule, and a
 * message that could not be sent in time is sent late, so whoever is held up for a while catches
 * up. A phase ends when each receiver has delivered 95 percent of what the schedule of each sender
 * says until that very moment. Before the attack that has to happen, or the rack proves nothing.
 * During the attack it has to happen at least ATK_LEAST_MS after its begin and before
 * ATK_PATIENCE_MS are over: a rack that stands, or goes on at half the rate, never reaches it. Nor
 * does the attack end before its frames were counted as often as the case demands, since an
 * attacker may be as short of CPU as anybody else, and takes longer then. The longest gap in the
 * deliveries of each pair is compared with what a case allows and with how long this machine itself
 * stood (stall_watch.h). After the attack, each pair must deliver a message that was sent after its
 * end within ATK_RECOVERY_MS, or within that and dead_after if the attacker's input counted in B:
 * he has fallen silent, which the others have to notice first.
 *
 * What each attack did before there was a defence (2026-11-25), and the case that repeats it. Cases
 * are in test_attacks_*.c: b beacons, f frames, l local, c ctl, a admission.
 *
 *	constant barrier, 1000/s or 3.5/s	deliveries 0	b barrier__stands_still*
 *	eight lanes, one stands			deliveries 0	b lanes__too_many
 *	a clock at half the speed		48 %		b barrier__clock_at_half_speed
 *	1 s behind, always			rack lags 1 s	b barrier__far_away
 *	constant C				reliable 0	b commit__stands_still
 *	beacons of other nodes			deliveries 0	b beacon__of_another_node
 *	one DATA, psn + 2^30			held 486 ms	f data__far_psn
 *	pairs of them				delivered	f data__far_psn
 *	20 DATA in another's name		92 %, NAKs	f data__in_anothers_name
 *	CREDITs and NAKs			false reports	f control__credits_and_naks
 *	PROBEs from 10 000 addresses		+13 MiB		f strangers__many
 *	FRAGs from one address			+1 GiB		f strangers__own_address
 *	one RECALL				reliable 0	f reliable__in_anothers_name
 *	one PROBE without a beacon		reliable 0	f reliable__no_beacon
 *	a recording of h1			deliveries 0	f frames__replayed
 *	nobody, another address			sent		l nobody__other_address
 *	nobody, FRAGs over 127/8		+16 GiB		l nobody__loopback
 *	a member writes others' words		expelled	l member__writes_everything
 *	claims 2 ms ahead, a fast clock		38 %		l member__claims_the_future
 *	SIGSTOP in a send			deliveries 0	l member__stops_in_a_send
 *	all endpoints				none for root	l member__takes_all_endpoints
 *	HELLO as h2, PROC_DOWN			h2 announced	c node__in_anothers_name
 *	300 invented nodes			saved		c nodes__invented
 *	600 idle connections			nobody returns	c strangers__hold_connections
 *	RSV in others' names			granted		a pl2__forged
 *	SYNCs and tokens in others' names	messages fail	a top__forged
 *
 * One forged WATCHDOG without a secret, a false controller's epoch and the certificate of another
 * node need no rack: tests/unit/core/fastpass, tests/net/controller.
 */
#ifndef BARLINE_TESTS_ATTACK_RACK_H
#define BARLINE_TESTS_ATTACK_RACK_H

#include "tests/net/attacks/attacker.h"
#include "maps/top_host_abi.h"
#include "tests/net/controller/controller.h"
#include "tests/net/stall_watch.h"
#include "tests/net/until.h"

#define ATK_RATE          200 /* messages per second of each best-effort sender */
#define ATK_RATE_RELIABLE 50
#define ATK_LEN           64
#define ATK_HOSTS         3 /* that are attacked */
#define ATK_ME            3 /* the attacker's host, from 0 */
#define ATK_LEAST_MS      1500
#define ATK_PATIENCE_MS   20000
#define ATK_PERCENT       95
#define ATK_RECOVERY_MS   100
#define ATK_ANSWER_MS     20000
/*
 * An input that is silent for longer is excluded. It is longer than a beacon thread waits for a CPU
 * beside one other rack (tests/net/rack.h), or hosts that do nothing wrong would be excluded.
 */
#define ATK_DEAD_AFTER_US 400000
/* What an input may lag before it is put out of B (lag_max_us). */
#define ATK_LAG_MAX_US 500000
/* a retransmission waits 400 ms at most */
#define ATK_COMMIT_LAG_MAX_MS 1000
/*
 * The longest gap that an input can cause that talks and lags: its last good barrier is good for
 * lag_max, and it has to stay behind the others for lag_max after that (core/order/lag_core.h).
 */
#define ATK_HELD_MS ((2 * ATK_LAG_MAX_US + ATK_DEAD_AFTER_US) / 1000)
/* the same for the commit barrier */
#define ATK_COMMIT_HELD_MS (2 * ATK_COMMIT_LAG_MAX_MS + ATK_DEAD_AFTER_US / 1000)
/* Control frames per second of a port: a receiver here sends fewer than a hundred. */
#define ATK_CONTROL_RATE 2000
/* The same for the reliable stream, which waits for the controller to say that C may go on. */
#define ATK_TOLD_MS 1000
/* The longest gap where nobody may be held: messages come every 5 ms. */
#define ATK_FREE_MS 100
/*
 * Memory of an endpoint's process beyond what it had before the attack. Large messages of strangers
 * get 16 MiB of it.
 */
#define ATK_GROWTH_KIB 32768

/** struct atk_rack - which rack. */
struct atk_rack {
	bool reliable;   /* reliable senders, too, and a controller */
	bool leaf_spine; /* two leaves, two spines; h4 is on the second leaf, h1 on the first */
	bool fast;       /* h1's clock is ahead, by nearly as much as the bound allows */
	enum bl_policy policy; /* not BL_POLICY_NONE: admission, and stations on bl0 */
};

/** struct atk_case - an attack, and what it may do. */
struct atk_case {
	void (*attack)(struct atk *a);
	uint64_t arg;
	bool elsewhere; /* not from h4, but from the namespace of the case */
	/*
	 * Where a frame of the attack must be counted: one of these reasons, separated by spaces,
	 * must have grown by @least on a node. The attack goes on until it has. NULL: nothing is
	 * refused.
	 */
	const char *reason;
	uint64_t least;
	uint32_t held_ms;  /* longest gap that it may cause; 0: ATK_FREE_MS */
	uint32_t least_ms; /* least time that it lasts; 0: ATK_LEAST_MS */
	uint32_t grow_kib; /* most memory that an endpoint may gain; 0: ATK_GROWTH_KIB */
};

/** struct atk_times - a worker's log beside that of traffic.h, in shared memory. */
struct atk_times {
	uint64_t sent_at[TR_SENT_MAX]; /* CLOCK_MONOTONIC, by seq */
	/* by sender */
	uint64_t count[TR_MAX];       /* delivered */
	uint64_t last_at[TR_MAX];     /* last delivery */
	uint64_t gap_ns[TR_MAX];      /* longest gap since @phase */
	uint64_t gap_at[TR_MAX];      /* when it ended */
	uint64_t after_at[TR_MAX];    /* first delivery of a message sent at or after @mark */
	uint32_t phase;               /* of struct atk_world, when @gap_ns began */
	uint64_t began_ns, period_ns; /* of the schedule */
	uint64_t again;               /* sends that were refused with -EAGAIN */
};

struct atk_world {
	uint32_t phase;   /* written by the case */
	uint64_t mark_ns; /* written by the case: end of the attack; UINT64_MAX: it goes on */
	struct atk_times of[2 * ATK_HOSTS]; /* by endpoint */
};
static struct atk_world *atk_world;
static struct atk_rack atk_kind;
static unsigned int atk_workers;

/* ---- the work of an endpoint ---- */

static void atk_on_msg(struct tr *w, unsigned int sender, uint64_t seq, const void *data,
		       uint32_t len)
{
	struct atk_times *t = &atk_world->of[w->id];
	uint64_t now = t_mono(), mark = TR_LOAD(atk_world->mark_ns), gap;
	uint32_t phase = TR_LOAD(atk_world->phase);
	unsigned int i;

	(void)data;
	(void)len;
	if (seq >= TR_LOAD(tr_sh->node[sender].nsent))
		tr_fail(w, "delivered message %" PRIu64 " of %u, who has not sent it", seq, sender);
	if (t->phase != phase) {
		for (i = 0; i < TR_MAX; i++)
			t->gap_ns[i] = t->after_at[i] = 0;
		TR_STORE(t->phase, phase);
	}
	gap = now - (t->last_at[sender] ? t->last_at[sender] : now);
	if (gap > t->gap_ns[sender]) {
		TR_STORE(t->gap_ns[sender], gap);
		TR_STORE(t->gap_at[sender], now);
	}
	TR_STORE(t->last_at[sender], now);
	if (!t->after_at[sender] && TR_LOAD(atk_world->of[sender].sent_at[seq]) >= mark)
		TR_STORE(t->after_at[sender], now);
	TR_STORE(t->count[sender], t->count[sender] + 1);
}

/* Sends according to its schedule and receives, until tr_enough(). */
static void atk_work(struct tr *w)
{
	struct atk_times *t = &atk_world->of[w->id];
	const uint32_t len = ATK_LEN;
	uint64_t next = t_mono(), now;

	t->period_ns = 1000000000ULL / (w->cfg->reliable ? ATK_RATE_RELIABLE : ATK_RATE);
	TR_STORE(t->began_ns, next);
	while (!TR_LOAD(tr_sh->enough)) {
		while ((now = t_mono()) >= next && w->me->nsent < TR_SENT_MAX - 10) {
			int rc;

			TR_STORE(t->sent_at[w->me->nsent], now);
			rc = tr_send(w, w->cfg->to, 1, &len, 0);
			if (rc == -EAGAIN) {
				t->again++;
				break;
			}
			if (rc)
				tr_fail(w, "bl_send: %d %s", rc, bl_strerror(w->ep));
			next += t->period_ns;
		}
		tr_take(w, 1);
	}
	bl_flush(w->ep);
	tr_finish(w);
}

/* ---- the rack ---- */

static void atk_tweak(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	if (atk_kind.policy != BL_POLICY_NONE || atk_kind.fast)
		cfg->clock_bound_us = 1000;
	if (atk_kind.fast && !strcmp(n->name, "h1"))
		cfg->skew_ns = 900000;
	if (atk_kind.policy == BL_POLICY_TOP && n->kind == LAB_HOST)
		cfg->admission.top.v[BL_TOP_O_EXPIRY] = 10000000 + 1;
	if (atk_kind.policy == BL_POLICY_PL2 && n->kind == LAB_HOST)
		cfg->admission.coming_us = 500000;
	else if (atk_kind.policy == BL_POLICY_PL2)
		cfg->admission.lapse_us = 10000000;
	cfg->dead_after_us = ATK_DEAD_AFTER_US;
	cfg->lag_max_us = n->kind == LAB_HOST ? 0 : ATK_LAG_MAX_US;
	cfg->commit_lag_max_ms = n->kind == LAB_HOST ? 0 : ATK_COMMIT_LAG_MAX_MS;
	cfg->control_rate = n->kind == LAB_HOST ? 0 : ATK_CONTROL_RATE;
#ifdef BL_SEND_LIMIT_MS
	cfg->send_limit_ms = BL_SEND_LIMIT_MS;
#endif
	if (atk_kind.reliable)
		name_controller(cfg, n);
}

static void atk_add(unsigned int host, bool reliable)
{
	tr_add(&(struct tr_cfg){ .host = host,
				 .fn = atk_work,
				 .on_msg = atk_on_msg,
				 .to = reliable ? 070 : 07,
				 .quiet_ms = 5000,
				 .reliable = reliable });
}

/* Whether every endpoint has a schedule. */
static bool atk_all_began(void)
{
	unsigned int i;

	for (i = 0; i < atk_workers; i++)
		if (!TR_LOAD(atk_world->of[i].began_ns))
			return false;
	return true;
}

/* Raises the rack, without h4, and its load. */
static void rack_of(const struct atk_rack *kind)
{
	pid_t pids[STALL_PIDS];
	unsigned int i;

	atk_kind = *kind;
	rack.lab.spec.hosts = ATK_HOSTS + 1;
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = kind->leaf_spine;
	if (kind->policy != BL_POLICY_NONE) {
		rack.lab.spec.beacon_us = 2000;
		rack.lab.spec.arbiters = kind->policy == BL_POLICY_FASTPASS;
		rack.lab.spec.admission = (struct bl_admission_cfg){ .on = true,
								     .policy = kind->policy,
								     .rate_bps = 100000000 };
	}
	rack.tweak = atk_tweak;
	if (kind->reliable)
		ctl_start(ATK_ANSWER_MS);
	rack.closed = 1ULL << (kind->leaf_spine ? 4 + ATK_ME : 1 + ATK_ME);
	rack_open();
	CHECK(rack_host(ATK_ME) == (kind->leaf_spine ? 4 + ATK_ME : 1 + ATK_ME), "the lab's nodes "
										 "are in another "
										 "order");
	atk_world = tr_map(sizeof(*atk_world));
	atk_world->mark_ns = UINT64_MAX;
	for (i = 0; i < ATK_HOSTS; i++)
		atk_add(i, false);
	for (i = 0; i < ATK_HOSTS && kind->reliable; i++)
		atk_add(i, true);
	atk_workers = tr_sh->count;
	tr_go();
	for (i = 0; i < atk_workers; i++)
		pids[i] = tr_sh->node[i].pid;
	pids[i++] = getpid();
	stall_watch(pids, i);
	CHECK(tr_until(atk_all_began, ATK_PATIENCE_MS), "an endpoint does not begin to send");
}

/* ---- measuring ---- */

/** struct atk_from_here - where a phase began. */
static struct {
	uint64_t at;
	uint64_t count[TR_MAX][TR_MAX]; /* by receiver and sender */
} atk_phase;

static bool atk_talks(unsigned int sender, unsigned int receiver)
{
	return tr_sh->node[sender].cfg.to >> receiver & 1;
}

static void atk_begin(void)
{
	unsigned int r, s;

	atk_phase.at = t_mono();
	for (r = 0; r < atk_workers; r++)
		for (s = 0; s < atk_workers; s++)
			atk_phase.count[r][s] = TR_LOAD(atk_world->of[r].count[s]);
	__atomic_add_fetch(&atk_world->phase, 1, __ATOMIC_ACQ_REL);
}

/* What the schedule of @sender says since the begin of the phase. */
static uint64_t atk_due(unsigned int sender)
{
	return (t_mono() - atk_phase.at) / atk_world->of[sender].period_ns;
}

/* Percent of its schedule that the worst pair has delivered since the begin of the phase. */
static unsigned int atk_percent(unsigned int *receiver, unsigned int *sender)
{
	unsigned int worst = 1000, r, s;

	for (r = 0; r < atk_workers; r++)
		for (s = 0; s < atk_workers; s++) {
			uint64_t got, due = atk_due(s);

			if (!atk_talks(s, r) || !due)
				continue;
			got = TR_LOAD(atk_world->of[r].count[s]) - atk_phase.count[r][s];
			if (got * 100 / due < worst) {
				worst = (unsigned int)(got * 100 / due);
				*receiver = r;
				*sender = s;
			}
		}
	return worst;
}

/* Memory of endpoint @id's process, KiB: what is its own and in use, or what it has reserved. */
static uint64_t atk_memory(unsigned int id, const char *field)
{
	char path[64], line[256];
	unsigned long long kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tr_sh->node[id].pid);
	f = fopen(path, "re");
	CHECK(f, "endpoint %u has no process", id);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, field, strlen(field)))
			sscanf(line + strlen(field), ": %llu", &kib);
	fclose(f);
	return kib;
}

/* Whether one of the reasons in @names has grown on a node since @before; by how much in *@grew. */
static uint64_t atk_reasons(const char *names)
{
	char all[256], *name, *rest = all;
	uint64_t n = 0, known = 0;
	unsigned int i;

	snprintf(all, sizeof(all), "%s", names);
	while ((name = strsep(&rest, " ")))
		for (i = 0; i < rack.lab.nnodes; i++) {
			uint64_t c = *rack.dir[i] ? atk_count(i, name) : 0;

			if (c == UINT64_MAX)
				break;
			known++;
			n += c;
		}
	if (!known)
		fprintf(stderr, "  this build counts nothing as %s\n", names);
	return n;
}

/*
 * Waits until 95 percent are there, at least @least_ms, and until the reasons in @names, if not
 * NULL, have reached @counts. Returns the percentage that was reached.
 */
static unsigned int atk_keeps_up(unsigned int least_ms, const char *names, uint64_t counts,
				 unsigned int *r, unsigned int *s)
{
	uint64_t least = atk_phase.at + least_ms * 1000000ULL,
		 last = least + ATK_PATIENCE_MS * 1000000ULL, now;
	unsigned int percent;
	bool enough;

	do {
		tr_pass(10);
		now = t_mono();
		enough = now >= least && (!names || atk_reasons(names) >= counts);
		percent = atk_percent(r, s);
	} while (now < least || ((percent < ATK_PERCENT || !enough) && now < last));
	return percent;
}

/*
 * The longest gap in the deliveries of a pair in this phase that is not explained by the machine,
 * ms. One that still goes on counts as well. @told: the controller had to be told of the attacker.
 */
static uint64_t atk_gap_ms(bool told)
{
	uint64_t worst = 0, now = t_mono();
	unsigned int r, s;

	for (r = 0; r < atk_workers; r++)
		for (s = 0; s < atk_workers; s++) {
			const struct atk_times *t = &atk_world->of[r];
			uint64_t gap = 0, at = now, since = TR_LOAD(t->last_at[s]), lost;

			if (!atk_talks(s, r))
				continue;
			if (TR_LOAD(t->phase) == atk_world->phase) {
				gap = TR_LOAD(t->gap_ns[s]);
				at = TR_LOAD(t->gap_at[s]);
			}
			if (since < now && now - since > gap) {
				gap = now - since;
				at = now;
			}
			lost = stall_lost(NULL, at - gap, at);
			if (tr_sh->node[s].cfg.reliable && told)
				lost += ATK_TOLD_MS * 1000000ULL;
			gap = gap > lost ? gap - lost : 0;
			worst = gap > worst ? gap : worst;
		}
	return worst / 1000000;
}

/* Whether every pair has delivered a message that was sent after the end of the attack. */
static bool atk_recovered(void)
{
	unsigned int r, s;

	for (r = 0; r < atk_workers; r++)
		for (s = 0; s < atk_workers; s++)
			if (atk_talks(s, r) && !TR_LOAD(atk_world->of[r].after_at[s]))
				return false;
	return true;
}

/*
 * @end: of the attack. @silent: the attacker's input counted until then, and holds the others for
 * dead_after more, as one does that has died; the reliable stream waits for the controller as well.
 */
static void atk_check_recovery(uint64_t end, bool silent)
{
	uint64_t worst = 0, over = 0, most = 0;
	unsigned int r, s;

	CHECK(tr_until(atk_recovered, ATK_PATIENCE_MS),
	      "%u ms after the attack some pair still delivers nothing", ATK_PATIENCE_MS);
	for (r = 0; r < atk_workers; r++)
		for (s = 0; s < atk_workers; s++) {
			uint64_t took, limit = ATK_RECOVERY_MS;

			if (!atk_talks(s, r))
				continue;
			took = atk_world->of[r].after_at[s] - end;
			if (silent)
				limit += ATK_DEAD_AFTER_US / 1000;
			if (silent && tr_sh->node[s].cfg.reliable)
				limit += ATK_TOLD_MS;
			limit = limit * 1000000 + stall_lost(NULL, end, end + took);
			worst = took > worst ? took : worst;
			if (took > limit && took - limit > over) {
				over = took - limit;
				most = limit;
			}
		}
	fprintf(stderr, "  recovered after %" PRIu64 " ms\n", worst / 1000000);
	CHECK(!over, "it took %" PRIu64 " ms to recover, of %" PRIu64 " that are allowed here",
	      (over + most) / 1000000, most / 1000000);
}

/* The rack keeps up by itself. */
static void beside_nothing(void)
{
	unsigned int r = 0, s = 0, percent;

	atk_begin();
	percent = atk_keeps_up(500, NULL, 0, &r, &s);
	CHECK(percent >= ATK_PERCENT, "%u delivers %u %% of what %u sends", r, percent, s);
}

/* Attacks the rack, and judges what the others notice. */
static void beside(const char *what, const struct atk_case *c)
{
	uint64_t counted = c->reason ? atk_reasons(c->reason) : 0, gap, end, again = 0, grown = 0,
		 frames, memory[2][TR_MAX], failed = 0;
	const uint64_t least = c->least ? c->least : 1;
	unsigned int r = 0, s = 0, percent, i;
	uint64_t voids;

	fprintf(stderr, "  %s:\n", what);
	beside_nothing();
	voids = rack_count_all(BL_R_SEND_VOID);
	for (i = 0; i < atk_workers; i++) {
		memory[0][i] = atk_memory(i, "RssAnon");
		memory[1][i] = atk_memory(i, "VmData");
		again += atk_world->of[i].again;
		failed += TR_LOAD(tr_sh->node[i].nfailed);
	}
	TR_STORE(atk_world->mark_ns, UINT64_MAX);
	atk_begin();
	atk_start(c->elsewhere ? ATK_NO_HOST : ATK_ME, c->attack, c->arg);
	percent = atk_keeps_up(c->least_ms ? c->least_ms : ATK_LEAST_MS, c->reason, counted + least,
			       &r, &s);
	gap = atk_gap_ms(c->held_ms != 0);
	end = atk_stop();
	TR_STORE(atk_world->mark_ns, end);
	frames = TR_LOAD(atk_sh->frames);
	for (i = 0; i < atk_workers; i++) {
		again -= atk_world->of[i].again;
		failed -= TR_LOAD(tr_sh->node[i].nfailed);
		memory[0][i] = atk_memory(i, "RssAnon") - memory[0][i];
		memory[1][i] = atk_memory(i, "VmData") - memory[1][i];
		grown = (int64_t)memory[0][i] > (int64_t)grown ? memory[0][i] : grown;
		grown = (int64_t)memory[1][i] > (int64_t)grown ? memory[1][i] : grown;
	}
	/* Counted before their senders were told, so this is read after that. */
	voids = rack_count_all(BL_R_SEND_VOID) - voids;
	counted = c->reason ? atk_reasons(c->reason) - counted : 0;
	fprintf(stderr,
		"  %" PRIu64 " frames in %.1f s (%" PRIu64 " refused by the NIC): %u %% delivered, "
		"longest gap %" PRIu64 " ms, %" PRIu64 " x EAGAIN, %" PRIu64
		" failure reports, %" PRIu64 " KiB more, counted %" PRIu64 "\n",
		frames, (double)(end - atk_phase.at) / 1e9, TR_LOAD(atk_sh->refused), percent, gap,
		-again, -failed, grown, counted);
	CHECK(frames, "the attacker sent nothing");
	CHECK(percent >= ATK_PERCENT, "%u delivers %u %% of what %u sends", r, percent, s);
	CHECK(gap <= (c->held_ms ? c->held_ms : ATK_FREE_MS),
	      "it held deliveries for %" PRIu64 " ms", gap);
	CHECK(grown <= (c->grow_kib ? c->grow_kib : ATK_GROWTH_KIB),
	      "an endpoint has grown by %" PRIu64 " KiB", grown);
	/*
	 * A process that has no CPU for 20 ms in the middle of a send loses these messages, and is
	 * told so. That is the machine, not the attack; a frame has one message here.
	 */
	CHECK(-failed <= voids,
	      "%" PRIu64 " messages failed, and %" PRIu64 " of their frames were void", -failed,
	      voids);
	CHECK(!c->reason || counted >= least,
	      "%" PRIu64 " were counted as %s, of at least %" PRIu64, counted, c->reason, least);
	atk_check_recovery(end, c->held_ms != 0);
}

/* Ends the load and judges all of it: nothing broke the order, and reliable messages all came. */
static void rack_judge(void)
{
	tr_enough();
	tr_wait_done(60000);
	tr_stop();
	tr_judge_all(atk_kind.reliable ? 070 : 0, atk_kind.reliable ? 070 : 0, true);
}

#endif
