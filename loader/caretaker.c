// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The caretaker: a small process that stands in for a daemon that was stopped on purpose. A host
 * whose beacons stop is excluded after dead_after, 1 ms by default, and announced as failed by a
 * controller; no daemon starts that fast. So the daemon that stops leaves a caretaker, which sends
 * the beacons and keeps the clock record until the next daemon takes over, or until caretaker_ms
 * have passed. A restart, for example, in milliseconds:
 *
 * 	  0	SIGTERM. The old daemon starts a caretaker (fork, exec of itself) with its
 * 		sockets, maps and lock.
 * 	  9	The caretaker sends beacons, and reports ready. The old daemon stops sending
 * 		and writing, and says go.
 * 	 10	The caretaker writes the clock record. The old daemon ends.
 * 	 50	The new daemon starts, loads programs, swaps them, adopts the endpoints. It
 * 		sends beacons.
 * 	400	It tells the caretaker to end (BL_RUN_DIR/<role>-<netns>-caretaker.sock), and
 * 		gets the keeper's lock when that has ended. It writes the clock record.
 *
 * Beacons are sent at every moment. For some milliseconds two processes send them, which is
 * harmless: the egress program fills in what a beacon promises when it leaves. Two processes never
 * write the clock record: the keeper's lock (order/keep.c) belongs to one open file, which the
 * caretaker inherits, so the lock is not free in between either.
 *
 * A caretaker ends as soon as its node is detached, its pins or its NIC are gone, its time has
 * passed, or it gets SIGTERM; from then on the node is silent. It does not answer the controller
 * (message Away in proto/ctl.proto), serve endpoints or pace. After kill -9 of a daemon there is no
 * caretaker.
 */
#include "loader/caretaker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/event.h"
#include "base/log.h"
#include "base/sandbox.h"
#include "loader/load/attach.h"
#include "loader/load/pin.h"
#include "loader/loop.h"
#include "loader/node_agent.h"
#include "loader/node_events.h"
#include "loader/node_priv.h"
#include "loader/order/beacon.h"
#include "loader/order/clock.h"
#include "loader/order/keep.h"
#include "loader/pulse.h"

#define STATE_MAGIC 0x62616b656570ULL
#define READY_MS    5000 /* how long a caretaker may take to report ready */
#define SAMPLE_US   200000

/*
 * What the caretaker is told: a file in memory, written and read by the same build. The integers at
 * the end are descriptors.
 */
struct caretaker_state {
	uint64_t magic, size;
	struct bl_node_cfg cfg; /* ports and fdb are NULL */
	struct bl_meta meta;
	char dir[256];
	uint64_t netns_ino;
	int64_t bus_offset_ns;
	struct bl_attached nic; /* host */
	bool beats;
	int clock, page, note, sock, netns, keep, chan;
};

/* ---- handing over ---- */

static pid_t start_caretaker(const struct caretaker_state *s, int state_fd)
{
	char number[16];
	char *const argv[] = { "barlined", "--caretaker", number, NULL };
	const int keep[] = { state_fd, s->clock, s->page, s->note,
			     s->sock,  s->netns, s->keep, s->chan };
	unsigned int k;
	pid_t pid;
	int null;

	snprintf(number, sizeof(number), "%d", state_fd);
	pid = fork();
	if (pid)
		return pid;
	/*
	 * Only async-signal-safe calls between fork() and execv(): other threads may have held
	 * locks.
	 */
	setsid();
	null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	/*
	 * A program that reads the daemon's stderr through a pipe to its end must not wait for the
	 * caretaker. A journal has no such end.
	 */
	if (!getenv("JOURNAL_STREAM"))
		dup2(null, STDERR_FILENO);
	for (k = 0; k < sizeof(keep) / sizeof(keep[0]); k++)
		if (keep[k] >= 0)
			fcntl(keep[k], F_SETFD, 0);
	execv(bl_self_exe, argv);
	_exit(127);
}

static int write_state(const struct caretaker_state *s, struct bl_err *err)
{
	int fd = memfd_create("barline-caretaker", MFD_CLOEXEC), rc;

	if (fd < 0 || pwrite(fd, s, sizeof(*s), 0) != (ssize_t)sizeof(*s)) {
		rc = bl_fail(err, errno, "cannot write the state for a caretaker: %s",
			     strerror(errno));
		if (fd >= 0)
			close(fd);
		return rc;
	}
	return fd;
}

static bool wait_until_ready(int chan)
{
	struct pollfd p = { .fd = chan, .events = POLLIN };
	char c;

	return poll(&p, 1, READY_MS) == 1 && recv(chan, &c, 1, MSG_DONTWAIT) == 1;
}

static void stop_caretaker(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int bl_node_hand_over(struct bl_node *n, struct bl_err *err)
{
	struct caretaker_state s = { .magic = STATE_MAGIC,
				     .size = sizeof(s),
				     .cfg = n->cfg,
				     .meta = n->meta,
				     .netns_ino = n->netns_ino,
				     .bus_offset_ns = n->clock.bus_offset_ns,
				     .clock = n->clock.fd,
				     .page = n->page_fd,
				     .note = n->note_fd,
				     .netns = n->netns_fd,
				     .keep = n->keep_fd,
				     .sock = -1 };
	int chan[2], fd, rc = 0;
	pid_t pid;

	/* A host that has left is missed by nobody. */
	if (n->cfg.caretaker_ms < 0 || n->keep_fd < 0 || n->has_left)
		return 0;
	s.beats = n->cfg.role == BL_ROLE_HOST && !n->cfg.no_beacons;
	if (s.beats) {
		rc = bl_beacon_socket(n, err);
		if (rc)
			return rc;
		s.sock = n->beacon_sock;
		s.nic = n->att[0];
		s.nic.egress = NULL;
	}
	snprintf(s.dir, sizeof(s.dir), "%s", n->dir);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, chan))
		return bl_fail(err, errno, "cannot make a socket pair: %s", strerror(errno));
	s.chan = chan[1];
	fd = write_state(&s, err);
	pid = fd < 0 ? -1 : start_caretaker(&s, fd);
	if (fd >= 0 && pid < 0)
		rc = bl_fail(err, errno, "cannot start a caretaker: %s", strerror(errno));
	else if (fd < 0)
		rc = fd;
	close(chan[1]);
	if (fd >= 0)
		close(fd);
	if (!rc && !wait_until_ready(chan[0])) {
		stop_caretaker(pid);
		rc = bl_fail(err, ETIME, "the caretaker did not begin within %d ms", READY_MS);
	}
	if (!rc) {
		if (n->agent)
			bl_node_agent_away(n, (uint32_t)n->cfg.caretaker_ms);
		bl_beacon_keep(n, false);
		/*
		 * The caretaker also notices the end of the channel, but a failing send() shows
		 * that it is dead.
		 */
		if (send(chan[0], "go", 2, MSG_NOSIGNAL) != 2) {
			bl_beacon_keep(n, true);
			stop_caretaker(pid);
			rc = bl_fail(err, ESRCH, "the caretaker ended before it could take over");
		}
	}
	close(chan[0]);
	if (rc)
		return rc;
	/* Not unlocked: the caretaker has the same open file, and the lock is its now. */
	close(n->keep_fd);
	n->keep_fd = -1;
	bl_pulse_close(n, true);
	bl_event(BL_EVENT(CARETAKER_BEGUN, INFO, n->meta.name, .pid = (uint64_t)pid),
		 "%s: the caretaker (process %d) stands in for %d ms at most", n->meta.name, pid,
		 n->cfg.caretaker_ms);
	return 0;
}

/* ---- the caretaker ---- */

struct caretaker {
	struct bl_server *s;
	struct bl_node *n;
	struct caretaker_state state;
	struct stat lock;
	sd_event_source *chan_src, *listen_src, *conn_src, *sample_src, *limit_src;
	int listen_fd, conn;
	const char *why;
};

static void end_caretaker(struct caretaker *c, const char *why)
{
	if (!c->why)
		c->why = why;
	bl_server_stop(c->s);
}

static int on_go(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct caretaker *c = ctx;
	struct bl_err err;

	(void)fd, (void)events;
	/* A word, or the end of the channel: the daemon does not write the record any more. */
	sd_event_source_set_enabled(src, SD_EVENT_OFF);
	if (bl_clock_adopt(&c->n->clock, &err))
		end_caretaker(c, "it cannot keep the clock record");
	else
		bl_beacon_keep(c->n, true);
	bl_pulse_open(c->n, bl_mono_ns() + (uint64_t)c->n->cfg.caretaker_ms * 1000000);
	return 0;
}

static int on_conn(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct caretaker *c = ctx;
	char text[8];

	(void)src, (void)events;
	if (recv(fd, text, sizeof(text), MSG_DONTWAIT) == 3 && !memcmp(text, "end", 3)) {
		end_caretaker(c, "it was told to");
		return 0;
	}
	c->conn_src = sd_event_source_disable_unref(c->conn_src);
	close(c->conn);
	c->conn = -1;
	return 0;
}

static int on_connect(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct caretaker *c = ctx;
	int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)src, (void)events;
	if (conn < 0)
		return 0;
	/*
	 * One connection at a time: a process that only tested whether there is a caretaker has
	 * closed its own.
	 */
	c->conn_src = sd_event_source_disable_unref(c->conn_src);
	if (c->conn >= 0)
		close(c->conn);
	c->conn = conn;
	sd_event_add_io(c->s->ev, &c->conn_src, conn, EPOLLIN, on_conn, c);
	return 0;
}

static int count_xdp(const char *path, const char *name, int link_fd, uint32_t ifindex, void *ctx)
{
	(void)path, (void)link_fd;
	*(int *)ctx += !strncmp(name, "xdp-", 4) && ifindex;
	return 0;
}

/*
 * Whether the node still exists: its pins, an interface under one of its XDP programs, and the file
 * of the lock.
 */
static bool node_exists(const struct caretaker *c)
{
	struct stat now;
	char path[128];
	int n = 0;

	bl_keep_lock_path(path, sizeof(path), c->n->cfg.role, c->n->netns_ino);
	bl_links_each(c->n->dir, count_xdp, &n);
	return n && !stat(path, &now) && now.st_ino == c->lock.st_ino;
}

static int on_sample(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct caretaker *c = ctx;

	(void)usec;
	if (!node_exists(c))
		end_caretaker(c, "the node is gone");
	sd_event_source_set_time_relative(src, SAMPLE_US);
	return sd_event_source_set_enabled(src, SD_EVENT_ONESHOT);
}

static int on_limit(sd_event_source *src, uint64_t usec, void *ctx)
{
	(void)src, (void)usec;
	end_caretaker(ctx, "its time has passed and no daemon came; the node is silent from now "
			   "on");
	return 0;
}

static int open_socket(struct caretaker *c)
{
	struct sockaddr_un a;
	struct stat dir;

	bl_keep_socket_addr(&a, c->n->cfg.role, c->n->netns_ino);
	/* The socket of a caretaker that was killed: this process has the lock. */
	unlink(a.sun_path);
	c->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listen_fd < 0 || bind(c->listen_fd, (struct sockaddr *)&a, sizeof(a)) ||
	    chmod(a.sun_path, 0600) || listen(c->listen_fd, 8))
		return -errno;
	/* The next daemon, which has to connect, may be of another user. */
	if (!stat(BL_RUN_DIR, &dir) && dir.st_uid != geteuid() &&
	    chown(a.sun_path, dir.st_uid, (gid_t)-1))
		bl_log(BL_LOG_WARN, "cannot give %s to user %u: %s", a.sun_path, dir.st_uid,
		       strerror(errno));
	return 0;
}

static int stand_in(struct caretaker *c, struct bl_err *err)
{
	const struct caretaker_state *s = &c->state;
	struct bl_node *n = c->n;
	sd_event *ev = c->s->ev;
	int rc;

	n->srv = c->s;
	n->cfg = s->cfg;
	n->meta = s->meta;
	n->netns_ino = s->netns_ino;
	bl_keep_configure(n); /* it makes a path of the namespace's number */
	n->clock.bus_offset_ns = s->bus_offset_ns;
	n->netns_fd = s->netns;
	n->keep_fd = s->keep;
	n->page_fd = s->page;
	n->note_fd = s->note;
	n->beacon_sock = s->sock;
	n->clock.fd = -1;
	n->att = (struct bl_attached *)&s->nic;
	n->natt = 1;
	memcpy(n->dir, s->dir, sizeof(n->dir));
	bl_node_events_open(n);
	if (fstat(n->keep_fd, &c->lock))
		return bl_fail(err, errno, "it has no lock: %s", strerror(errno));
	rc = bl_beacon_start(c->s, err);
	n->clock.note_fd = s->note > 0 ? s->note : 0;
	if (!rc)
		rc = bl_clock_map(&n->clock, s->clock, err);
	if (!rc && s->beats)
		rc = bl_beacon_add(n, err);
	if (rc)
		return rc;
	rc = open_socket(c);
	if (rc >= 0)
		rc = sd_event_add_io(ev, &c->listen_src, c->listen_fd, EPOLLIN, on_connect, c);
	if (rc >= 0)
		rc = sd_event_add_io(ev, &c->chan_src, s->chan, EPOLLIN, on_go, c);
	if (rc >= 0)
		rc = sd_event_add_time_relative(ev, &c->sample_src, CLOCK_MONOTONIC, SAMPLE_US,
						1000, on_sample, c);
	if (rc >= 0)
		rc = sd_event_add_time_relative(ev, &c->limit_src, CLOCK_MONOTONIC,
						(uint64_t)n->cfg.caretaker_ms * 1000, 1000,
						on_limit, c);
	if (rc < 0)
		return bl_fail(err, -rc, "cannot stand in: %s", strerror(-rc));
	return send(s->chan, "r", 1, MSG_NOSIGNAL) == 1
		       ? 0
		       : bl_fail(err, errno, "the daemon that it stands in for is gone");
}

/* Nothing is written or sent any more when this returns; the lock goes with the process. */
static void close_caretaker(struct caretaker *c)
{
	struct sockaddr_un a;

	bl_pulse_close(c->n, false);
	bl_beacon_remove(c->n);
	bl_beacon_stop(c->s);
	bl_clock_close(&c->n->clock); /* the socket of its source has a path */
	if (c->listen_fd >= 0) {
		bl_keep_socket_addr(&a, c->n->cfg.role, c->n->netns_ino);
		unlink(a.sun_path);
	}
}

int bl_caretaker_main(const char *number)
{
	struct caretaker *c = calloc(1, sizeof(*c));
	struct bl_err err = {};
	int rc;

	if (!c)
		return 1;
	c->listen_fd = c->conn = -1;
	c->n = calloc(1, sizeof(*c->n));
	if (!c->n ||
	    pread(atoi(number), &c->state, sizeof(c->state), 0) != (ssize_t)sizeof(c->state) ||
	    c->state.magic != STATE_MAGIC || c->state.size != sizeof(c->state)) {
		bl_log(BL_LOG_ERR, "--caretaker is for the daemon's own use when it stops");
		return 2;
	}
	rc = bl_server_new(&c->s, &err);
	if (!rc)
		rc = stand_in(c, &err);
	if (!rc)
		rc = bl_server_run(c->s, &err);
	if (rc)
		bl_log(BL_LOG_ERR, "%s: caretaker: %s", c->state.meta.name, err.text);
	else
		bl_event(BL_EVENT(CARETAKER_ENDED, INFO, c->state.meta.name,
				  .pid = (uint64_t)getpid(),
				  .reason = c->why ? c->why : "it got a signal"),
			 "%s: the caretaker ends: %s", c->state.meta.name,
			 c->why ? c->why : "it got a signal");
	if (c->s)
		close_caretaker(c);
	return rc ? 1 : 0;
}
