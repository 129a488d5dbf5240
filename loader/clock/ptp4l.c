// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The source "ptp4l": what ptp4l of linuxptp says on its management socket, and, if it steers a
 * hardware clock and not the system clock, how far the system clock is off that
 * (core/ptp_core.h has the arithmetic).
 *
 * At each reading the answers to the questions of the reading before are taken, and the next
 * questions are sent. ptp4l 3.1.1 answers within 30 to 100 us (2026-11-27), so an answer has
 * waited for the rest of the 250 ms. Nothing here waits.
 *
 * ptp4l has a blocking socket: it stands still while the queue of a client is full, which is so
 * after 11 datagrams. A round has 5 questions with one answer each, and no other is sent before
 * they are answered or SILENT readings have passed. The socket is then made anew. Of a ptp4l that
 * is stopped, the queue is full after two or three such rounds, and no more can be sent.
 *
 * The daemon's socket has a path in its run folder. An abstract address would need no file, but is
 * known in one network namespace only, and ptp4l may run in another one than a node. The socket is
 * connected, so that it gets datagrams from ptp4l alone.
 *
 * Not covered: a ptp4l with several hardware clocks (boundary_clock_jbod).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/time.h"
#include "core/ptp_core.h"
#include "loader/clock/phc.h"
#include "loader/clock/source.h"

#define READ_ONLY  "/var/run/ptp4lro" /* linuxptp 4: questions only, for all users */
#define READ_WRITE "/var/run/ptp4l"
#define PATIENT    4  /* readings after which ptp4l is taken to be silent */
#define SILENT     16 /* readings after which it is asked once more */
#define UNSURE     2  /* readings that do not count after a jump of the hardware clock */
#define TAKES      32 /* datagrams taken at one reading */
#define ANSWER_MAX 1500

struct ptp4l {
	int fd;             /* -1: not connected */
	struct stat peer;   /* of ptp4l's socket, when it was connected to */
	struct stat mine;   /* of the daemon's own */
	char path[108];     /* ptp4l's socket */
	unsigned int waits; /* readings at which the round was not answered in full */
	bool silent;        /* it was not for PATIENT readings, and no round was since */
	struct bl_ptp_asker asker;
	struct bl_ptp_round round;
	struct bl_ptp_view view;
	enum bl_clock_reason verdict; /* of the last round */

	struct bl_phc phc;
	char phc_path[64];
	struct bl_phc_track track;
	unsigned int unsure; /* readings that do not count, since the hardware clock jumped */
	bool tai_told;
};

static struct ptp4l *state_of(struct bl_clock_memory *m)
{
	struct ptp4l *p = m->own;

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->fd = p->phc.fd = -1;
	p->verdict = BL_CLOCK_ASKING;
	m->own = p;
	return p;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void disconnect(struct ptp4l *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	p->view = (struct bl_ptp_view){};
}

static enum bl_clock_reason reason_of(int err)
{
	switch (err) {
	case ENOENT:
	case ENOTDIR:
	case ECONNREFUSED:
		return BL_CLOCK_PTP_GONE;
	case EACCES:
	case EPERM:
		return BL_CLOCK_PTP_DENIED;
	default:
		return BL_CLOCK_PTP_WRONG;
	}
}

/* Connects to ptp4l's socket at @path. Returns a descriptor or -errno. */
static int connect_to(struct ptp4l *p, const char *path)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	snprintf(p->path, sizeof(p->path), "%s", path);
	if (fd >= 0 && !stat(path, &p->peer) && !connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return fd;
	rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

/*
 * Gives @fd an address, which ptp4l answers to. One that a daemon left that was killed is replaced.
 * A ptp4l that is not root may write to it; nobody else can, since the socket is connected.
 */
static int bind_to(struct ptp4l *p, int fd, const char *path)
{
	struct sockaddr_un me = { .sun_family = AF_UNIX };

	snprintf(me.sun_path, sizeof(me.sun_path), "%s", path);
	unlink(path);
	if (bind(fd, (struct sockaddr *)&me, sizeof(me)) || chmod(path, 0666) ||
	    stat(path, &p->mine))
		return -errno;
	return 0;
}

static enum bl_clock_reason connect_ptp4l(struct ptp4l *p, struct bl_clock_memory *m,
					  const struct bl_clock_options *o)
{
	int fd = connect_to(p, *o->socket ? o->socket : READ_ONLY), rc;

	if (fd < 0 && !*o->socket)
		fd = connect_to(p, READ_WRITE);
	if (fd < 0) {
		snprintf(m->detail, sizeof(m->detail), "%s: %s", p->path, strerror(-fd));
		return reason_of(-fd);
	}
	rc = bind_to(p, fd, o->own_path);
	if (rc) {
		snprintf(m->detail, sizeof(m->detail), "%s: %s", o->own_path, strerror(-rc));
		close(fd);
		return BL_CLOCK_OWN_SOCKET;
	}
	p->fd = fd;
	p->asker.domain = o->domain;
	p->asker.transport = o->transport_specific;
	if (getrandom(p->asker.me, sizeof(p->asker.me), GRND_NONBLOCK) < 0)
		memcpy(p->asker.me, &(uint64_t){ bl_mono_ns() }, sizeof(uint64_t));
	return BL_CLOCK_NO_REASON;
}

/*
 * Sends the questions of the next round. What cannot be sent, since ptp4l's queue is full, is not
 * answered. Returns false if ptp4l has ended.
 */
static bool ask(struct ptp4l *p, uint16_t port)
{
	uint16_t first = (uint16_t)(p->round.first + BL_PTP_QUESTIONS);
	uint8_t msg[BL_PTP_ASK_BYTES];
	unsigned int q;

	p->round = (struct bl_ptp_round){ .first = first, .port = port };
	p->waits = 0;
	for (q = 0; q < BL_PTP_QUESTIONS; q++) {
		bl_ptp_ask(msg, &p->asker, &p->round, q);
		if (send(p->fd, msg, sizeof(msg), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return errno == EAGAIN || errno == ENOBUFS || errno == EINTR;
	}
	return true;
}

static void take_answers(struct ptp4l *p)
{
	uint8_t msg[ANSWER_MAX];
	unsigned int k;
	ssize_t n;

	for (k = 0; k < TAKES; k++) {
		n = recv(p->fd, msg, sizeof(msg), MSG_DONTWAIT);
		if (n < 0)
			return;
		bl_ptp_take(&p->round, &p->asker, msg, (uint32_t)n);
	}
}

/*
 * Whether the ptp4l that @p is connected to still has its socket, and no other one has the path. To
 * connect once more changes nothing if it has.
 */
static bool is_there(struct ptp4l *p)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct stat now;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", p->path);
	return !stat(p->path, &now) && same_file(&now, &p->peer) &&
	       !connect(p->fd, (struct sockaddr *)&to, sizeof(to));
}

static const char *state_name(uint8_t state)
{
	switch (state) {
#define NAME(number, name)  \
	case BL_PTP_##name: \
		return #name;
		BL_PTP_STATES(NAME)
#undef NAME
	default:
		return "unknown";
	}
}

/* Opens the hardware clock that is wanted, if it is not open. Returns 0 or -errno. */
static int open_phc(struct ptp4l *p, const struct bl_clock_options *o)
{
	char path[sizeof(p->phc_path)];
	int rc = 0;

	snprintf(path, sizeof(path), "%s", *o->phc ? o->phc : p->round.interface);
	if (!*o->phc)
		rc = bl_phc_path(path, sizeof(path), p->round.interface);
	if (strcmp(path, p->phc_path)) {
		bl_phc_close(&p->phc);
		p->track = (struct bl_phc_track){};
		snprintf(p->phc_path, sizeof(p->phc_path), "%s", path);
	}
	if (!rc && p->phc.fd < 0)
		rc = bl_phc_open(&p->phc, path);
	return rc;
}

static int64_t realtime_ahead_of(uint64_t *mono)
{
	uint64_t a = bl_mono_ns(), real = bl_clock_ns(CLOCK_REALTIME), b = bl_mono_ns();

	*mono = a + (b - a) / 2;
	return (int64_t)(real - *mono);
}

/*
 * Adds how far the system clock is off the hardware clock that ptp4l steers. A jump of that since
 * the reading before makes this reading void, and the next, whose Sync may be from before the jump.
 */
static enum bl_clock_reason add_phc(struct ptp4l *p, struct bl_clock_memory *m,
				    const struct bl_clock_options *o, struct bl_clock_sample *s)
{
	struct bl_phc_reading r;
	int rc = open_phc(p, o);
	uint64_t mono, by;
	int64_t ahead;

	if (!rc)
		rc = bl_phc_read(&p->phc, &r);
	if (rc) {
		snprintf(m->detail, sizeof(m->detail), "%s: %s", p->phc_path, strerror(-rc));
		bl_phc_close(&p->phc);
		return BL_CLOCK_PHC_GONE;
	}
	ahead = realtime_ahead_of(&mono);
	by = bl_phc_jump(&p->track, mono, (int64_t)((uint64_t)r.ahead_ns + (uint64_t)ahead),
			 r.half_ns);
	if (by) {
		snprintf(m->detail, sizeof(m->detail), "%s, by %llu us", p->phc_path,
			 (unsigned long long)by / 1000);
		p->unsure = UNSURE;
	}
	s->bound_ns = bl_ptp_add(s->bound_ns, bl_phc_error(&r, bl_ptp_ahead_s(&p->round)));
	if (!p->unsure)
		return BL_CLOCK_NO_REASON;
	p->unsure--;
	return BL_CLOCK_PHC_JUMPED;
}

static void compare_tai(struct ptp4l *p, const struct bl_clock_options *o, int32_t tai_s)
{
	bool differs = bl_ptp_tai_differs(&p->round, tai_s);

	if (differs && !p->tai_told)
		bl_log(BL_LOG_WARN,
		       "%s: TAI is %d s ahead of UTC by the grandmaster and %d s by this kernel: "
		       "nodes with another offset refuse this one; phc2sys -w sets it if the "
		       "grandmaster's offset is valid, chrony by leapsectz (docs/clocks.md)",
		       o->name, p->round.utc_offset_s, tai_s);
	p->tai_told = differs;
}

/* The round was answered. Returns why the clock is not synchronised, or 0. */
static enum bl_clock_reason finish_round(struct ptp4l *p, struct bl_clock_memory *m,
					 const struct bl_clock_options *o, uint64_t mono,
					 struct bl_clock_sample *s)
{
	const struct bl_ptp_round *r = &p->round;
	enum bl_clock_reason why, phc = BL_CLOCK_NO_REASON;

	p->silent = false;
	m->detail[0] = '\0';
	if (r->error) {
		bl_ptp_missed(&p->view);
		snprintf(m->detail, sizeof(m->detail), "%s, questions %#x of %#x", p->path,
			 r->error, BL_PTP_ALL);
		return BL_CLOCK_PTP_WRONG;
	}
	compare_tai(p, o, s->tai_offset_s);
	why = bl_ptp_judge(&p->view, r, mono, !p->waits, o->grandmaster, s);
	if (strcmp(o->phc, "none") && (*o->phc || r->stamping))
		phc = add_phc(p, m, o, s);
	if (why == BL_CLOCK_PTP_PORT)
		snprintf(m->detail, sizeof(m->detail), "port %u of %u is %s", r->port, r->ports,
			 state_name(r->state));
	why = why ? why : phc;
	if (why)
		s->synced = s->fresh = 0;
	return why;
}

/*
 * The round has not been answered yet. What the last one said remains in force for a while, but
 * nothing is fresh.
 */
static enum bl_clock_reason await_round(struct ptp4l *p, struct bl_clock_memory *m,
					struct bl_clock_sample *s)
{
	bl_ptp_missed(&p->view);
	p->waits++;
	p->silent |= p->waits >= PATIENT;
	if (p->silent) {
		snprintf(m->detail, sizeof(m->detail), "%s", p->path);
		return BL_CLOCK_PTP_SILENT;
	}
	s->synced = p->verdict == BL_CLOCK_NO_REASON;
	s->late = 1;
	return p->verdict;
}

/* Connects to ptp4l and asks for the first time. Returns why it is not possible, or 0. */
static enum bl_clock_reason begin(struct ptp4l *p, struct bl_clock_memory *m,
				  const struct bl_clock_options *o)
{
	enum bl_clock_reason why = connect_ptp4l(p, m, o);

	if (!why && !ask(p, 1)) {
		snprintf(m->detail, sizeof(m->detail), "%s", p->path);
		disconnect(p);
		why = BL_CLOCK_PTP_GONE;
	}
	return why;
}

static int read_ptp4l(struct bl_clock_memory *m, const struct bl_clock_options *o, uint64_t mono,
		      struct bl_clock_sample *s)
{
	struct ptp4l *p = state_of(m);
	struct timex tx = {};
	bool complete;

	*s = (struct bl_clock_sample){};
	if (!p)
		return -ENOMEM;
	if (adjtimex(&tx) < 0)
		return -errno;
	s->tai_offset_s = tx.tai;
	if (p->fd >= 0) {
		take_answers(p);
		complete = (p->round.got | p->round.error) == BL_PTP_ALL;
		if (complete)
			p->verdict = finish_round(p, m, o, mono, s);
		else if (await_round(p, m, s) && p->waits >= SILENT)
			disconnect(p);
		if (complete ? !ask(p, bl_ptp_next_port(&p->round)) : !is_there(p))
			disconnect(p);
	}
	if (p->fd < 0) {
		enum bl_clock_reason why = begin(p, m, o);

		s->synced = s->fresh = 0;
		p->verdict = BL_CLOCK_ASKING;
		if (why) {
			p->silent = false;
			return why;
		}
	}
	return p->silent ? BL_CLOCK_PTP_SILENT : p->verdict;
}

static void close_ptp4l(struct bl_clock_memory *m, const struct bl_clock_options *o)
{
	struct ptp4l *p = m->own;
	struct stat now;

	if (!p)
		return;
	/* A caretaker, or the next daemon, may have made its own at that path. */
	if (!stat(o->own_path, &now) && same_file(&now, &p->mine))
		unlink(o->own_path);
	disconnect(p);
	bl_phc_close(&p->phc);
	free(p);
	m->own = NULL;
}

const struct bl_clock_source bl_clock_ptp4l = { .read = read_ptp4l, .close = close_ptp4l };
