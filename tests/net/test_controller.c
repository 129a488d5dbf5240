// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The controller's service: real controllers, each a process of its own, on SQLite or on three real members of etcd; real agents (loader/agent.h) of a switch with four hosts, whose datapath is a few variables here. Controllers
 * are killed and stopped at any step, quorum is lost, sessions are forged.
 *
 * Whatever happens: no agent obeys an order of an epoch below one that it heard; inputs are resumed only after all correct hosts have completed; a failure has one T. In the end all is resumed. No time is asserted.
 */
#include "etcd.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "controller/ctl.pb-c.h"
#include "controller/server.h"
#include "loader/agent.h"

#define WAIT_S 80
#define HOSTS  4
#define SWITCH 9
#define CTLS   3
#define NUMBERS 64

static sd_event *ev;

/** struct node - an agent and its datapath. @hold: does not complete what it is told. @obeyed: the highest epoch of an order that was obeyed. @done: by number. */
struct node {
	struct bl_agent *a;
	uint32_t id;
	bool alive, hold, failed, slow;
	struct bl_agent_port port[HOSTS];
	unsigned int nports;
	bool barred[HOSTS];
	uint64_t epoch, resumes, freezes;
	bool told[NUMBERS], done[NUMBERS];
	uint64_t t[NUMBERS];
};

static struct world {
	struct node n[SWITCH + 1];
	pid_t ctl[CTLS];
	struct bl_ctl_cfg cfg[CTLS];
	unsigned int nctl;
	bool exempt[SWITCH + 1][NUMBERS]; /* a failure that this host has nothing to do with: it failed itself */
	struct bl_session_tls *tls;
	char dir[64];
} w;

static struct node *node_at(void *ctx)
{
	return ctx;
}

static void on_tell(void *ctx, struct bl_agent_node *v)
{
	struct node *n = node_at(ctx);

	v->node_id = n->id;
	v->host = n->id != SWITCH;
	snprintf(v->name, sizeof(v->name), n->id == SWITCH ? "tor" : "h%u", n->id);
	v->naddrs = v->host;
	v->addr[0][15] = (uint8_t)n->id;
	v->nports = n->nports;
	memcpy(v->port, n->port, n->nports * sizeof(*n->port));
	v->nendpoints = v->host;
	v->endpoint[0] = 61696;
}

static void on_epoch(void *ctx, uint64_t epoch)
{
	struct node *n = node_at(ctx);

	CHECK(epoch > n->epoch, "epoch %" PRIu64 " after %" PRIu64, epoch, n->epoch);
	n->epoch = epoch;
}

/* what is not barred and is heard joins again */
static void join(struct node *n)
{
	unsigned int i;
	bool joined = false;

	for (i = 0; i < n->nports; i++) {
		const struct node *to = &w.n[n->port[i].neighbour];

		if (n->port[i].state != BL_AGENT_REMOVED || n->barred[i] || !to->alive || to->failed || n->failed)
			continue;
		n->port[i].state = BL_AGENT_LIVE;
		joined = true;
	}
	if (joined)
		bl_agent_changed(n->a);
}

static int on_bar(void *ctx, const uint32_t *port, unsigned int n)
{
	struct node *v = node_at(ctx);
	unsigned int i;

	memset(v->barred, 0, sizeof(v->barred));
	for (i = 0; i < n; i++) {
		CHECK(port[i] < v->nports, "port %u", port[i]);
		v->barred[port[i]] = true;
	}
	return 0;
}

static int on_freeze(void *ctx, uint32_t port, struct bl_agent_port *p)
{
	struct node *n = node_at(ctx);

	n->freezes++;
	if (n->port[port].state == BL_AGENT_LIVE) {
		n->port[port].state = BL_AGENT_SILENT;
		n->port[port].c = 5000 + port;
		n->port[port].death++;
	}
	*p = n->port[port];
	return 0;
}

static void on_fail(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n)
{
	struct node *me = node_at(ctx);
	unsigned int i, k;

	CHECK(number < NUMBERS && n, "failure %" PRIu64, number);
	me->told[number] = true;
	me->t[number] = v[0].t;
	for (i = 1; i <= SWITCH; i++)
		CHECK(!w.n[i].told[number] || w.n[i].t[number] == v[0].t, "node %u was told T %" PRIu64 ", node %u %" PRIu64, i, w.n[i].t[number], me->id, v[0].t);
	for (i = 0; i < n; i++)
		if (!v[i].port)
			for (k = number; k < NUMBERS; k++)
				w.exempt[v[i].node][k] = true;
	if (me->hold || me->failed)
		return;
	me->done[number] = true;
	bl_agent_done(me->a, number);
}

static int on_resume(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n, const struct bl_agent_input *in, unsigned int nin)
{
	struct node *me = node_at(ctx);
	unsigned int i;

	CHECK(number < NUMBERS, "failure %" PRIu64, number);
	for (i = 1; i <= HOSTS && n; i++)
		CHECK(w.n[i].done[number] || w.exempt[i][number], "failure %" PRIu64 " is resumed, and host %u has not completed it", number, i);
	for (i = 0; i < nin; i++)
		if (me->port[in[i].port].state == BL_AGENT_SILENT && me->port[in[i].port].death == in[i].death)
			me->port[in[i].port].state = BL_AGENT_REMOVED;
	me->resumes++;
	(void)v;
	return 0;
}

static void on_failed(void *ctx, uint64_t number)
{
	struct node *n = node_at(ctx);

	(void)number;
	n->failed = true;
}

static const struct bl_agent_ops ops = { on_tell, on_epoch, on_bar, on_freeze, on_fail, on_resume, on_failed };

static void node_up(uint32_t id)
{
	struct node *n = &w.n[id];
	struct bl_agent_cfg cfg = { .ncontrollers = w.nctl, .epoch = n->epoch, .silence_ms = 2000, .tls = w.tls };
	struct bl_err err;
	unsigned int i;

	n->id = id;
	n->alive = true;
	if (!n->nports) {
		n->nports = id == SWITCH ? HOSTS : 1;
		for (i = 0; i < n->nports; i++)
			n->port[i] = (struct bl_agent_port){ .port = i, .neighbour = id == SWITCH ? i + 1 : SWITCH, .role = id == SWITCH ? 0 : 1, .state = BL_AGENT_LIVE };
	}
	for (i = 0; i < w.nctl; i++)
		snprintf(cfg.controllers[i], sizeof(cfg.controllers[i]), "%s", w.cfg[i].listen);
	CHECK(!bl_agent_new(&n->a, ev, &cfg, &ops, n, &err), "%s", err.text);
}

static void node_down(uint32_t id)
{
	bl_agent_free(w.n[id].a);
	w.n[id].a = NULL;
	w.n[id].alive = false;
}

/* ---- controllers ---- */

static void ctl_start(unsigned int k)
{
	pid_t parent = getpid();
	struct bl_ctl *c;
	struct bl_err err;
	int rc;

	fflush(NULL);
	w.ctl[k] = fork();
	CHECK(w.ctl[k] >= 0, "%s", strerror(errno));
	if (w.ctl[k])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	rc = bl_ctl_new(&c, &w.cfg[k], &err);
	if (!rc)
		rc = bl_ctl_run(c, &err);
	if (rc)
		fprintf(stderr, "controller %u: %s\n", k, err.text);
	_exit(rc ? 1 : 0);
}

static void ctl_kill(unsigned int k)
{
	int st;

	kill(w.ctl[k], SIGKILL);
	CHECK(waitpid(w.ctl[k], &st, 0) == w.ctl[k], "%s", strerror(errno));
	w.ctl[k] = 0;
}

static void configure(unsigned int n, const char *sqlite)
{
	unsigned int k, i;
	struct bl_err err;

	CHECK(!bl_iface_up("lo", &err), "%s", err.text);
	CHECK(sd_event_new(&ev) >= 0, "an event loop");
	w.nctl = n;
	for (k = 0; k < n; k++) {
		struct bl_ctl_cfg *c = &w.cfg[k];

		*c = (struct bl_ctl_cfg){ .settle_us = 2000, .answer_ms = 10000, .grace_ms = 5000, .silence_ms = 2000, .ttl_s = 3 };
		snprintf(c->listen, sizeof(c->listen), "127.0.0.1:%u", 61693 + k);
		snprintf(c->sqlite, sizeof(c->sqlite), "%s", sqlite ? sqlite : "");
		c->netcd = sqlite ? 0 : ETCD_MEMBERS;
		for (i = 0; i < c->netcd; i++)
			snprintf(c->etcd[i], sizeof(c->etcd[i]), "%s", etcd.urls[i]);
	}
}

#define UNTIL(cond) \
	do { \
		uint64_t until_ = t_mono() + WAIT_S * 1000000000ULL; \
		while (!(cond)) { \
			CHECK(t_mono() < until_, "never: %s", #cond); \
			CHECK(sd_event_run(ev, 10000) >= 0, "the event loop"); \
		} \
	} while (0)

static void serve_ms(unsigned int ms)
{
	uint64_t until = t_mono() + ms * 1000000ULL;

	while (t_mono() < until)
		CHECK(sd_event_run(ev, 10000) >= 0, "the event loop");
}

static bool welcome(uint32_t id)
{
	struct bl_agent_total t;

	bl_agent_read(w.n[id].a, &t);
	return t.welcome;
}

static uint64_t refused(uint32_t id, enum bl_agent_reason r)
{
	struct bl_agent_total t;

	bl_agent_read(w.n[id].a, &t);
	return t.reasons[r];
}

static bool all_welcome(void)
{
	uint32_t i;

	for (i = 1; i <= SWITCH; i++)
		if (w.n[i].a && !welcome(i))
			return false;
	return true;
}

static const char *ask(unsigned int k);

/* Who leads has heard from all of them since they know its epoch: whoever goes before that is nobody's loss. */
static bool all_linked(void)
{
	unsigned int k, n;
	const char *p;

	for (k = 0; k < w.nctl; k++) {
		for (n = 0, p = w.ctl[k] ? ask(k) : ""; (p = strstr(p, "\"state\":\"ok\"")); p++)
			n++;
		if (n == HOSTS + 1)
			return true;
	}
	return false;
}

static void rack_up(void)
{
	uint32_t i;

	node_up(SWITCH);
	for (i = 1; i <= HOSTS; i++)
		node_up(i);
	UNTIL(all_welcome() && all_linked());
}

static void host_dies(uint32_t id)
{
	struct node *sw = &w.n[SWITCH];

	node_down(id);
	if (sw->port[id - 1].state != BL_AGENT_LIVE)
		return;
	sw->port[id - 1].state = BL_AGENT_SILENT;
	sw->port[id - 1].c = 900 + id;
	sw->port[id - 1].death++;
	bl_agent_link_down(sw->a, &sw->port[id - 1]);
}

/* What the controller at @k says to people, into a buffer; asked in a process of its own, so that it may not answer. */
static const char *ask(unsigned int k)
{
	static char text[65536];
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = 5 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t len = 0;
	ssize_t n;

	snprintf(sa.sun_path, sizeof(sa.sun_path), BL_RUN_DIR BL_CTL_DOOR, (unsigned long long)bl_netns_ino(), (int)w.ctl[k]);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		shutdown(fd, SHUT_WR);
		while (len < sizeof(text) - 1 && (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
			len += (size_t)n;
	}
	close(fd);
	text[len] = 0;
	return text;
}

static int leader_now(void)
{
	unsigned int k;

	for (k = 0; k < w.nctl; k++)
		if (w.ctl[k] && strstr(ask(k), "\"state\":\"leader\""))
			return (int)k;
	return -1;
}

/* with whom the switch has its session: leads, as far as the switch knows */
static int followed(void)
{
	struct bl_agent_total t;
	unsigned int k;

	bl_agent_read(w.n[SWITCH].a, &t);
	for (k = 0; k < w.nctl; k++)
		if (t.welcome && !strcmp(t.controller, w.cfg[k].listen))
			return (int)k;
	return -1;
}

/* `barline`, which is built beside the tests; its output goes to a file */
static void barline(const char *args, const char *file)
{
	char self[256], cmd[600], *end;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int k;

	CHECK(n > 0, "%s", strerror(errno));
	self[n] = 0;
	for (k = 0; k < 3; k++) {
		end = strrchr(self, '/');
		CHECK(end, "%s", self);
		*end = 0;
	}
	snprintf(cmd, sizeof(cmd), "%s/barline %s >%s 2>&1", self, args, file);
	CHECK(!system(cmd), "%s", cmd);
}

/* ---- alone ---- */

RACK_TEST(alone__host_fails_and_joins_anew)
{
	struct node *sw = &w.n[SWITCH];
	unsigned int i;

	configure(1, BL_RUN_DIR "/ctl.db");
	ctl_start(0);
	rack_up();
	w.n[4].hold = true;
	host_dies(2);
	UNTIL(w.n[1].done[1] && w.n[3].done[1] && w.n[4].told[1]);
	CHECK(w.n[1].t[1] == 902, "T %" PRIu64, w.n[1].t[1]);
	CHECK(sw->barred[1], "the switch's output to it is barred before T is told");
	serve_ms(100);
	CHECK(!sw->resumes, "resumed, and host 4 has not completed");
	w.n[4].done[1] = true;
	bl_agent_done(w.n[4].a, 1);
	w.n[4].hold = false;
	UNTIL(sw->resumes && sw->port[1].state == BL_AGENT_REMOVED);
	UNTIL(strstr(ask(0), "\"step\":\"finished\""));
	/* it comes back: it is told, joins, and the next failure waits for it, too */
	node_up(2);
	UNTIL(w.n[2].failed);
	CHECK(w.n[2].told[1], "it hears of its own failure");
	w.n[2].failed = false;
	w.n[2].port[0].state = BL_AGENT_REMOVED;
	for (i = 2; i < NUMBERS; i++)
		w.exempt[2][i] = false;
	bl_agent_rejoin(w.n[2].a);
	UNTIL(!sw->barred[1]);
	join(&w.n[2]);
	join(sw);
	UNTIL(strstr(ask(0), "\"name\":\"h2\",\"role\":\"host\",\"state\":\"ok\""));
	host_dies(3);
	UNTIL(w.n[2].done[2] && sw->resumes == 2);
	/* a process */
	bl_agent_proc_down(w.n[1].a, 61696, 777);
	UNTIL(w.n[2].done[3] && w.n[1].resumes);
	CHECK(w.n[2].t[3] == 777, "T %" PRIu64, w.n[2].t[3]);
	/* what people see */
	UNTIL(strstr(ask(0), "\"number\":3") && !strstr(ask(0), "\"step\":\"resumed\"") && !strstr(ask(0), "\"step\":\"saving\""));
	barline("controller failures -j", BL_RUN_DIR "/said");
	CHECK(!system("grep -q '\"who\": *\"h2\"' " BL_RUN_DIR "/said && grep -q '\"t\": *777' " BL_RUN_DIR "/said"), "failures -j");
	barline("controller failures", BL_RUN_DIR "/said");
	CHECK(!system("grep -q 'h1:61696 *finished' " BL_RUN_DIR "/said"), "failures");
	barline("controller epochs", BL_RUN_DIR "/said");
	CHECK(!system("grep -q '^ *1 *127.0.0.1:61693' " BL_RUN_DIR "/said"), "epochs");
	barline("controller show", BL_RUN_DIR "/said");
	CHECK(!system("grep -q 'h3.*failed' " BL_RUN_DIR "/said && grep -q 'tor.*switch.*ok' " BL_RUN_DIR "/said"), "show");
}

/* killed between any two steps; started again on the same file it goes on */
RACK_TEST(alone__killed_at_each_step)
{
	struct node *sw = &w.n[SWITCH];
	uint64_t epoch;
	unsigned int step;

	configure(1, BL_RUN_DIR "/ctl.db");
	ctl_start(0);
	rack_up();
	for (step = 0; step < 3; step++) {
		uint32_t id = step + 1;
		uint64_t number = step + 1, resumes = sw->resumes;

		epoch = sw->epoch;
		w.n[4].hold = step == 1;
		host_dies(id);
		if (step == 1)
			UNTIL(w.n[4].told[number]);
		else if (step == 2)
			serve_ms(20); /* somewhere */
		ctl_kill(0);
		ctl_start(0);
		UNTIL(sw->epoch > epoch && all_welcome());
		if (w.n[4].hold) {
			w.n[4].hold = false;
			w.n[4].done[number] = true;
			bl_agent_done(w.n[4].a, number);
		}
		UNTIL(sw->port[id - 1].state == BL_AGENT_REMOVED && sw->resumes > resumes);
		CHECK(w.n[4].told[number] && w.n[4].t[number] == 900 + id, "failure %" PRIu64 ": T %" PRIu64, number, w.n[4].t[number]);
	}
}

/* A host that never answers is asked about, and fails itself. */
RACK_TEST(alone__host_does_not_answer)
{
	struct node *sw = &w.n[SWITCH];

	configure(1, BL_RUN_DIR "/ctl.db");
	w.cfg[0].answer_ms = 6000;
	ctl_start(0);
	rack_up();
	w.n[3].hold = true;
	w.exempt[3][1] = true; /* it never completes it; that it has failed before inputs are resumed is checked in tests/unit/test_recover_core.c */
	host_dies(1);
	UNTIL(sw->freezes);
	UNTIL(w.n[2].told[2] && w.n[3].failed);
	CHECK(w.n[2].t[2] == 5002, "T %" PRIu64, w.n[2].t[2]);
	UNTIL(sw->port[0].state == BL_AGENT_REMOVED && sw->port[2].state == BL_AGENT_REMOVED);
	CHECK(sw->barred[0] && sw->barred[2] && !sw->barred[1] && !sw->barred[3], "bars");
	CHECK(!w.n[2].failed && !w.n[4].failed && !sw->failed, "others failed");
}

/* ---- replicated ---- */

static void replicated(void)
{
	unsigned int k;

	etcd_up();
	configure(CTLS, NULL);
	for (k = 0; k < CTLS; k++)
		ctl_start(k);
	rack_up();
}

RACK_TEST(replicated__leader_killed_in_the_middle)
{
	struct node *sw = &w.n[SWITCH];
	uint64_t epoch;
	int old;

	replicated();
	w.n[4].hold = true;
	host_dies(1);
	UNTIL(w.n[4].told[1] && followed() >= 0);
	epoch = sw->epoch;
	old = followed();
	ctl_kill((unsigned int)old);
	UNTIL(all_welcome() && followed() >= 0 && followed() != old);
	UNTIL(sw->epoch > epoch);
	serve_ms(50);
	CHECK(!sw->resumes, "resumed, and host 4 has not completed");
	w.n[4].hold = false;
	w.n[4].done[1] = true;
	bl_agent_done(w.n[4].a, 1);
	UNTIL(sw->port[0].state == BL_AGENT_REMOVED);
	/* and the next failure has the next number */
	host_dies(2);
	UNTIL(w.n[4].done[2] && sw->port[1].state == BL_AGENT_REMOVED);
}

/* A leader that stood still comes back: nothing that it says is obeyed, and it knows that it does not lead. */
RACK_TEST(replicated__paused_leader_comes_back)
{
	struct node *sw = &w.n[SWITCH];
	uint64_t epoch;
	int old;

	replicated();
	w.n[4].hold = true;
	host_dies(1);
	UNTIL(w.n[4].told[1] && followed() >= 0);
	epoch = sw->epoch;
	old = followed();
	CHECK(!kill(w.ctl[old], SIGSTOP), "%s", strerror(errno));
	UNTIL(all_welcome() && followed() >= 0 && followed() != old);
	UNTIL(sw->epoch > epoch);
	w.n[4].hold = false;
	w.n[4].done[1] = true;
	bl_agent_done(w.n[4].a, 1);
	UNTIL(sw->port[0].state == BL_AGENT_REMOVED);
	CHECK(!kill(w.ctl[old], SIGCONT), "%s", strerror(errno));
	/* it may be elected again later, with a higher epoch; what it says with the old one nobody obeys: on_epoch() checks that they rise */
	UNTIL(strstr(ask((unsigned int)old), "\"lost\":\"") && !strstr(ask((unsigned int)old), "\"lost\":\"\""));
	host_dies(2);
	UNTIL(w.n[4].done[2] && sw->port[1].state == BL_AGENT_REMOVED);
}

/* Without a quorum nothing is decided, and it says why; what was reported meanwhile is decided when there is one again. */
RACK_TEST(replicated__no_quorum)
{
	struct node *sw = &w.n[SWITCH];
	unsigned int k;
	bool said = false;

	replicated();
	UNTIL(leader_now() >= 0);
	etcd_signal(1, SIGSTOP);
	etcd_signal(2, SIGSTOP);
	/* as soon as the leader knows, too: a decision that was saved just before is one */
	UNTIL(leader_now() < 0);
	host_dies(1);
	serve_ms(1500);
	CHECK(!w.n[2].told[1] && !sw->resumes, "decided without a quorum");
	for (k = 0; k < CTLS; k++)
		said |= strstr(ask(k), "\"trouble\":\"etcd at ") != NULL;
	CHECK(said, "nobody says why: %s", ask(0));
	etcd_signal(1, SIGCONT);
	etcd_signal(2, SIGCONT);
	UNTIL(all_welcome() && sw->port[0].state == BL_AGENT_REMOVED);
	CHECK(w.n[2].done[1] && w.n[2].t[1] == 901, "T %" PRIu64, w.n[2].t[1]);
}

/* ---- bad input ---- */

static int raw(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(61693), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&sa, sizeof(sa)), "%s", strerror(errno));
	return fd;
}

/* true: the other side hung up */
static bool hung_up(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t end = t_mono() + WAIT_S * 1000000000ULL;
	char buf[4096];
	ssize_t n;

	for (;;) {
		CHECK(t_mono() < end, "it does not hang up");
		CHECK(sd_event_run(ev, 1000) >= 0, "the event loop");
		if (poll(&p, 1, 10) == 1) {
			n = read(fd, buf, sizeof(buf));
			if (n <= 0)
				break;
		}
	}
	close(fd);
	return true;
}

static void say(int fd, const Bl__ToController *m)
{
	uint8_t buf[4096];
	size_t len = bl__to_controller__get_packed_size(m);

	CHECK(len + 4 <= sizeof(buf), "%zu", len);
	buf[0] = 0;
	buf[1] = 0;
	buf[2] = (uint8_t)(len >> 8);
	buf[3] = (uint8_t)len;
	bl__to_controller__pack(m, buf + 4);
	CHECK(write(fd, buf, len + 4) == (ssize_t)len + 4, "%s", strerror(errno));
}

RACK_TEST(input__refused_and_counted)
{
	static const uint8_t too_long[] = { 0x7f, 0xff, 0xff, 0xff, 1 }, none[4] = { 0 }, junk[] = { 0, 0, 0, 3, 0xff, 0xff, 0xff }, empty[] = { 0, 0, 0, 2, 0x7a, 0 };
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__LinkDown d = BL__LINK_DOWN__INIT;
	Bl__Hello h = BL__HELLO__INIT;
	uint64_t seed = t_seed();
	unsigned int i, k;
	int fd;

	configure(1, BL_RUN_DIR "/ctl.db");
	ctl_start(0);
	rack_up();
	fd = raw();
	CHECK(write(fd, too_long, sizeof(too_long)) == sizeof(too_long) && hung_up(fd), "too long");
	fd = raw();
	CHECK(write(fd, none, sizeof(none)) == sizeof(none) && hung_up(fd), "of no length");
	fd = raw();
	CHECK(write(fd, junk, sizeof(junk)) == sizeof(junk) && hung_up(fd), "junk");
	fd = raw();
	CHECK(write(fd, empty, sizeof(empty)) == sizeof(empty) && hung_up(fd), "a message that does not exist");
	/* an order's answer, or a report, before HELLO; HELLO of nobody; with a kind, a port and an address that do not exist */
	m.what_case = BL__TO_CONTROLLER__WHAT_LINK_DOWN;
	m.link_down = &d;
	fd = raw();
	say(fd, &m);
	CHECK(hung_up(fd), "a report before HELLO");
	m.what_case = BL__TO_CONTROLLER__WHAT_HELLO;
	m.hello = &h;
	for (i = 0; i < 5; i++) {
		uint8_t bytes[8] = { 0 };
		ProtobufCBinaryData addr = { sizeof(bytes), bytes };
		Bl__Port port = BL__PORT__INIT, *ports[1] = { &port };

		bl__hello__init(&h);
		h.version = i == 0 ? 2 : 1;
		h.node = i == 1 ? 0 : 77;
		h.kind = i == 2 ? 7 : 1;
		h.n_addr = i == 3;
		h.addr = &addr;
		h.n_port = i == 4;
		h.port = ports;
		port.role = 300;
		fd = raw();
		say(fd, &m);
		CHECK(hung_up(fd), "HELLO %u", i);
	}
	/* random bytes, whole messages of them, and silence */
	for (i = 0; i < 200; i++) {
		uint8_t buf[64];

		for (k = 0; k < sizeof(buf); k++)
			buf[k] = (uint8_t)t_rand(&seed);
		buf[0] = buf[1] = buf[2] = 0;
		buf[3] = 60;
		fd = raw();
		if (write(fd, buf, sizeof(buf)) != sizeof(buf))
			FAIL("%s", strerror(errno));
		close(fd);
	}
	fd = raw();
	CHECK(hung_up(fd), "who says nothing is hung up on");
	UNTIL(strstr(ask(0), "\"silent\":"));
	CHECK(strstr(ask(0), "\"bad_hello\":") && strstr(ask(0), "\"stranger\":"), "%s", strstr(ask(0), "\"counts\""));
	/* honest ones never noticed */
	UNTIL(all_welcome());
	for (i = 1; i <= SWITCH; i++)
		CHECK(!w.n[i].a || !refused(i, BL_AGENT_BAD_MESSAGE), "node %u", i);
	host_dies(1);
	UNTIL(w.n[SWITCH].port[0].state == BL_AGENT_REMOVED);
}

/* ---- an agent and a controller that is none ---- */

static void to_agent(int fd, uint64_t epoch, Bl__ToAgent__WhatCase what, uint64_t number)
{
	Bl__ToAgent m = BL__TO_AGENT__INIT;
	Bl__Welcome wel = BL__WELCOME__INIT;
	Bl__Failure f = BL__FAILURE__INIT;
	uint8_t buf[512];
	size_t len;

	m.epoch = epoch;
	m.what_case = what;
	f.number = number;
	if (what == BL__TO_AGENT__WHAT_WELCOME)
		m.welcome = &wel;
	else
		m.resume = &f;
	len = bl__to_agent__get_packed_size(&m);
	memset(buf, 0, 4);
	buf[2] = (uint8_t)(len >> 8);
	buf[3] = (uint8_t)len;
	bl__to_agent__pack(&m, buf + 4);
	CHECK(write(fd, buf, len + 4) == (ssize_t)len + 4, "%s", strerror(errno));
}

static int accept_one(int listener)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };

	UNTIL(poll(&p, 1, 0) == 1);
	return accept(listener, NULL, NULL);
}

RACK_TEST(agent__refuses_old_epochs_and_nonsense)
{
	static const uint8_t junk[] = { 0, 0, 0, 3, 0xff, 0xff, 0xff };
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(61693), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct node *n = &w.n[SWITCH];
	int one = 1, listener, fd;

	configure(1, BL_RUN_DIR "/none.db");
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	CHECK(!bind(listener, (struct sockaddr *)&sa, sizeof(sa)) && !listen(listener, 16), "%s", strerror(errno));
	n->epoch = 41; /* heard before, by the daemon of before */
	node_up(SWITCH);
	fd = accept_one(listener);
	to_agent(fd, 40, BL__TO_AGENT__WHAT_WELCOME, 0);
	UNTIL(refused(SWITCH, BL_AGENT_OLD_EPOCH) == 1);
	CHECK(hung_up(fd) && !welcome(SWITCH), "it follows an old one");
	fd = accept_one(listener);
	to_agent(fd, 41, BL__TO_AGENT__WHAT_RESUME, 5);
	UNTIL(refused(SWITCH, BL_AGENT_TOO_EARLY) == 1);
	CHECK(hung_up(fd) && !n->resumes, "an order before WELCOME was obeyed");
	fd = accept_one(listener);
	CHECK(write(fd, junk, sizeof(junk)) == sizeof(junk) && hung_up(fd), "junk");
	CHECK(refused(SWITCH, BL_AGENT_BAD_MESSAGE) == 1, "junk is counted");
	fd = accept_one(listener);
	to_agent(fd, 41, BL__TO_AGENT__WHAT_WELCOME, 0);
	UNTIL(welcome(SWITCH));
	to_agent(fd, 43, BL__TO_AGENT__WHAT_RESUME, 5);
	UNTIL(n->resumes == 1);
	CHECK(n->epoch == 43, "epoch %" PRIu64, n->epoch);
	/* on the same session: a leader of before, however it came there */
	to_agent(fd, 42, BL__TO_AGENT__WHAT_RESUME, 6);
	UNTIL(refused(SWITCH, BL_AGENT_OLD_EPOCH) == 2);
	CHECK(hung_up(fd) && n->resumes == 1 && n->epoch == 43, "an order of epoch 42 was obeyed");
	/* one that stands still is left */
	fd = accept_one(listener);
	to_agent(fd, 43, BL__TO_AGENT__WHAT_WELCOME, 0);
	UNTIL(welcome(SWITCH));
	UNTIL(!welcome(SWITCH));
	close(fd);
	close(listener);
}

/* ---- TLS ---- */

static gnutls_x509_privkey_t new_key(const char *path)
{
	gnutls_x509_privkey_t k;
	gnutls_datum_t pem;
	FILE *f;

	CHECK(!gnutls_x509_privkey_init(&k) && !gnutls_x509_privkey_generate(k, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0), "a key");
	CHECK(!gnutls_x509_privkey_export2(k, GNUTLS_X509_FMT_PEM, &pem), "a key");
	f = fopen(path, "w");
	CHECK(f && fwrite(pem.data, 1, pem.size, f) == pem.size && !fclose(f), "%s", path);
	gnutls_free(pem.data);
	return k;
}

/* @purpose NULL: an authority */
static gnutls_x509_crt_t new_cert(const char *path, gnutls_x509_privkey_t key, gnutls_x509_crt_t ca, gnutls_x509_privkey_t ca_key, const char *purpose)
{
	gnutls_x509_crt_t c;
	gnutls_datum_t pem;
	time_t now = time(NULL);
	uint8_t serial = purpose ? 2 : 1;
	FILE *f;

	CHECK(!gnutls_x509_crt_init(&c) && !gnutls_x509_crt_set_version(c, 3) && !gnutls_x509_crt_set_serial(c, &serial, 1) && !gnutls_x509_crt_set_key(c, key), "a certificate");
	gnutls_x509_crt_set_activation_time(c, now - 86400);
	gnutls_x509_crt_set_expiration_time(c, now + 86400);
	gnutls_x509_crt_set_dn_by_oid(c, GNUTLS_OID_X520_COMMON_NAME, 0, purpose ? "node" : "authority", purpose ? 4 : 9);
	gnutls_x509_crt_set_basic_constraints(c, !purpose, -1);
	gnutls_x509_crt_set_key_usage(c, purpose ? GNUTLS_KEY_DIGITAL_SIGNATURE : GNUTLS_KEY_KEY_CERT_SIGN);
	if (purpose)
		gnutls_x509_crt_set_key_purpose_oid(c, purpose, 0);
	CHECK(!gnutls_x509_crt_sign2(c, ca ? ca : c, ca_key, GNUTLS_DIG_SHA256, 0), "a signature");
	CHECK(!gnutls_x509_crt_export2(c, GNUTLS_X509_FMT_PEM, &pem), "a certificate");
	f = fopen(path, "w");
	CHECK(f && fwrite(pem.data, 1, pem.size, f) == pem.size && !fclose(f), "%s", path);
	gnutls_free(pem.data);
	return c;
}

static void authority(const char *name)
{
	gnutls_x509_privkey_t ca_key, key;
	gnutls_x509_crt_t ca;
	char path[2][128];
	unsigned int i;

	snprintf(path[0], sizeof(path[0]), BL_RUN_DIR "/%s-ca.key", name);
	snprintf(path[1], sizeof(path[1]), BL_RUN_DIR "/%s-ca.pem", name);
	ca_key = new_key(path[0]);
	ca = new_cert(path[1], ca_key, NULL, ca_key, NULL);
	for (i = 0; i < 2; i++) {
		snprintf(path[0], sizeof(path[0]), BL_RUN_DIR "/%s-%s.key", name, i ? "agent" : "controller");
		snprintf(path[1], sizeof(path[1]), BL_RUN_DIR "/%s-%s.pem", name, i ? "agent" : "controller");
		key = new_key(path[0]);
		gnutls_x509_crt_deinit(new_cert(path[1], key, ca, ca_key, i ? GNUTLS_KP_TLS_WWW_CLIENT : GNUTLS_KP_TLS_WWW_SERVER));
		gnutls_x509_privkey_deinit(key);
	}
	gnutls_x509_crt_deinit(ca);
	gnutls_x509_privkey_deinit(ca_key);
}

static struct bl_session_tls *tls_of(const char *ca, const char *who)
{
	struct bl_session_tls *t;
	char path[3][128];
	struct bl_err err;

	snprintf(path[0], sizeof(path[0]), BL_RUN_DIR "/%s-ca.pem", ca);
	snprintf(path[1], sizeof(path[1]), BL_RUN_DIR "/%s.pem", who);
	snprintf(path[2], sizeof(path[2]), BL_RUN_DIR "/%s.key", who);
	CHECK(!bl_session_tls_new(&t, path[0], path[1], path[2], &err), "%s", err.text);
	return t;
}

static void agent_with(struct bl_session_tls *tls, bool good, const char *words)
{
	struct bl_agent_total t;

	w.tls = tls;
	node_up(SWITCH);
	do {
		UNTIL((bl_agent_read(w.n[SWITCH].a, &t), t.welcome || t.sessions > 1));
	} while (0);
	CHECK(t.welcome == good, "welcome %d: %s", t.welcome, t.trouble);
	CHECK(good || strstr(t.trouble, words), "%s", t.trouble);
	node_down(SWITCH);
	bl_session_tls_free(tls);
}

RACK_TEST(tls__certificates)
{
	struct bl_session_tls *t;
	struct bl_err err;

	authority("ours");
	authority("theirs");
	configure(1, BL_RUN_DIR "/ctl.db");
	snprintf(w.cfg[0].ca, sizeof(w.cfg[0].ca), BL_RUN_DIR "/ours-ca.pem");
	snprintf(w.cfg[0].cert, sizeof(w.cfg[0].cert), BL_RUN_DIR "/ours-controller.pem");
	snprintf(w.cfg[0].key, sizeof(w.cfg[0].key), BL_RUN_DIR "/ours-controller.key");
	ctl_start(0);
	UNTIL(leader_now() == 0);
	agent_with(tls_of("ours", "ours-agent"), true, NULL);
	agent_with(tls_of("theirs", "ours-agent"), false, "NOT trusted");		/* the agent does not know the controller's authority */
	agent_with(tls_of("ours", "theirs-agent"), false, "controller 127.0.0.1:61693"); /* the controller does not know the agent's */
	agent_with(tls_of("ours", "ours-controller"), false, "controller 127.0.0.1:61693"); /* a server's certificate is none for a client */
	agent_with(NULL, false, "controller 127.0.0.1:61693");
	UNTIL(strstr(ask(0), "\"bad_session\":"));
	agent_with(tls_of("ours", "ours-agent"), true, NULL);
	/* an agent's certificate is none for a controller */
	ctl_kill(0);
	snprintf(w.cfg[0].cert, sizeof(w.cfg[0].cert), BL_RUN_DIR "/ours-agent.pem");
	snprintf(w.cfg[0].key, sizeof(w.cfg[0].key), BL_RUN_DIR "/ours-agent.key");
	ctl_start(0);
	UNTIL(leader_now() == 0);
	agent_with(tls_of("ours", "ours-agent"), false, "purpose");
	CHECK(bl_session_tls_new(&t, BL_RUN_DIR "/ours-ca.key", BL_RUN_DIR "/ours-agent.pem", BL_RUN_DIR "/ours-agent.key", &err) && strstr(err.text, "ours-ca.key"), "%s", err.text);
	CHECK(bl_session_tls_new(&t, BL_RUN_DIR "/ours-ca.pem", BL_RUN_DIR "/ours-agent.pem", BL_RUN_DIR "/theirs-agent.key", &err) && strstr(err.text, "theirs-agent.key"), "%s", err.text);
	CHECK(bl_session_tls_new(&t, BL_RUN_DIR "/ours-ca.pem", "", NULL, &err), "no key");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone__host_fails_and_joins_anew),
		cmocka_unit_test(alone__killed_at_each_step),
		cmocka_unit_test(alone__host_does_not_answer),
		cmocka_unit_test(replicated__leader_killed_in_the_middle),
		cmocka_unit_test(replicated__paused_leader_comes_back),
		cmocka_unit_test(replicated__no_quorum),
		cmocka_unit_test(input__refused_and_counted),
		cmocka_unit_test(agent__refuses_old_epochs_and_nonsense),
		cmocka_unit_test(tls__certificates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
