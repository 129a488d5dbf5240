// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The caretaker: a small process that stands in for a daemon that was stopped or has died. A host
 * whose beacons stop is excluded after dead_after, 1 ms by default, and announced as failed by a
 * controller; no daemon starts that fast, and no other process does either. So each daemon has a
 * spare (spare.c starts it), which has loaded everything, has every descriptor that it will need,
 * and sleeps until the daemon says go, or the channel to the daemon ends because that has died.
 * From then on it is the caretaker: it sends the beacons and keeps the clock record until the next
 * daemon takes over, or until caretaker_ms have passed. A restart, for example, in milliseconds:
 *
 * 	  0	SIGTERM. The old daemon tells the controller, stops writing the clock record, and
 * 		says go.
 * 	  1	The caretaker sends beacons, writes the record, and answers. The old daemon ends.
 * 	 50	The new daemon starts, loads programs, swaps them, adopts the endpoints. It
 * 		sends beacons.
 * 	400	It tells the caretaker to end (BL_RUN_DIR/<role>-<netns>-caretaker.sock), and
 * 		gets the keeper's lock when that has ended. It writes the clock record. Then it
 * 		starts a spare of its own, of its own version.
 *
 * Who writes. The keeper's lock (order/keep.c) belongs to one open file, of which the spare gets a
 * descriptor when it is ready, so the lock is not free for a moment, and a third process cannot
 * become the keeper in between. Of the two that have it, the daemon writes the clock record until
 * it says go; the spare writes nothing before it hears that, or the end of the channel. The kernel
 * closes the daemon's end when the last of its threads has left user space and the system call that
 * it was in, so that by then nobody else writes. A daemon that is stopped by a signal has not
 * closed anything, and nothing is taken over from it: it may go on at any moment. (Its clock record
 * becomes void, and its host is excluded, as if the machine stood still.) Beacons may be sent by
 * two processes for a moment, which is harmless.
 *
 * What a beacon promises after a crash. The egress program fills that in when the beacon leaves,
 * from the words of the endpoints and of the programs. The same program promises the same in each
 * data frame of the host's endpoints, which go on sending whether there is a daemon or not. Hence a
 * beacon adds nothing that could be wrong: the state that a daemon leaves at any instruction has to
 * be safe for data already, and is (docs/shared-memory.md has for each word what a daemon leaves
 * that dies between two steps). The record of a host's clock is written by a program, which a
 * signal does not interrupt; that of a switch may be half written, which its sequence number shows,
 * and is then continued from the half that is whole, as by a daemon that starts after kill -9.
 *
 * A spare has no timer and no time limit: caretaker_ms runs from the moment when it takes over. It
 * holds one network namespace, a beacon socket and a lock, and ends with the daemon's word. The
 * sandbox of the daemon holds for it, too, because it is started from within. A daemon that cannot
 * have the lock kills whoever has it, asleep or not, through the spare's socket
 * (<role>-<netns>-spare.sock, which becomes the caretaker's when it takes over).
 *
 * Under systemd the spare is in the unit's control group and is not its main process: at a stop
 * KillMode=process leaves it alone, a daemon that has crashed or was killed by the watchdog is
 * started again beside it (Restart=on-failure), and it sends no notifications. Of an upgrade it is
 * the old version, until the next daemon has started its own.
 *
 * A caretaker ends as soon as its node is detached, its pins or its NIC are gone, its time has
 * passed, or it gets SIGTERM; from then on the node is silent. It does not answer the controller
 * (message Away in proto/ctl.proto; after a crash the controller is told nothing), serve endpoints
 * or pace. A crash whose core is written to a file ends the channel only when that is complete.
 */
#include "loader/caretaker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/event.h"
#include "base/log.h"
#include "loader/caretaker_priv.h"
#include "loader/load/attach.h"
#include "loader/load/pin.h"
#include "loader/load/prio.h"
#include "loader/loop.h"
#include "loader/node_events.h"
#include "loader/node_priv.h"
#include "loader/order/beacon.h"
#include "loader/order/clock.h"
#include "loader/order/keep.h"
#include "loader/pulse.h"

#define SAMPLE_US 200000

struct caretaker {
	struct bl_server *s;
	struct bl_node *n;
	struct bl_caretaker_state state;
	struct stat lock;
	sd_event_source *chan_src, *listen_src, *conn_src, *sample_src, *limit_src;
	int listen_fd, conn;
	bool stands_in; /* it has taken over */
	const char *why;
};

static void end_caretaker(struct caretaker *c, const char *why)
{
	if (!c->why)
		c->why = why;
	bl_server_stop(c->s);
}

static void say_word(const struct caretaker *c, enum bl_caretaker_word word)
{
	char w = (char)word;

	(void)!send(c->state.chan, &w, 1, MSG_NOSIGNAL);
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

	bl_keep_spare_addr(&a, c->n->cfg.role, c->n->netns_ino);
	/* The socket of a spare that was killed: this process has the lock. */
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

/* From now on whoever looks for the caretaker finds this process. */
static void move_socket(const struct caretaker *c)
{
	struct sockaddr_un from, to;

	bl_keep_spare_addr(&from, c->n->cfg.role, c->n->netns_ino);
	bl_keep_socket_addr(&to, c->n->cfg.role, c->n->netns_ino);
	if (rename(from.sun_path, to.sun_path))
		bl_log(BL_LOG_WARN, "cannot rename %s: %s", from.sun_path, strerror(errno));
}

/*
 * Before the spare takes over nobody waits for this thread, and then everybody does: it runs as the
 * beacon thread does (order/beacon.c). It has nothing else to do.
 */
static void hurry(const struct caretaker *c)
{
	cpu_set_t set;

	if (setpriority(PRIO_PROCESS, 0, 0) || sched_getaffinity(0, sizeof(set), &set))
		return;
	if (c->state.beats)
		bl_prio_first(gettid(), &set,
			      c->n->cfg.realtime ? c->n->cfg.realtime : BL_RT_ALWAYS, 2);
}

/* Beacons first: the record is valid for some time yet. */
static void take_over(struct caretaker *c, const char *why)
{
	struct bl_node *n = c->n;
	struct bl_err err;
	int rc = 0;

	c->chan_src = sd_event_source_disable_unref(c->chan_src);
	if (c->state.beats)
		rc = bl_beacon_add(n, &err);
	if (!rc)
		rc = bl_clock_adopt(&n->clock, &err);
	if (rc) {
		/* A daemon that lives hears of it by the end of the channel, and starts another. */
		bl_log(BL_LOG_ERR, "%s: caretaker: %s", n->meta.name, err.text);
		end_caretaker(c, "it cannot stand in");
		return;
	}
	c->stands_in = true;
	bl_beacon_keep(n, true);
	move_socket(c);
	say_word(c, BL_CARETAKER_TOOK);
	bl_prio_usual(gettid());
	rc = sd_event_add_time_relative(c->s->ev, &c->sample_src, CLOCK_MONOTONIC, SAMPLE_US, 1000,
					on_sample, c);
	if (rc >= 0)
		rc = sd_event_add_time_relative(c->s->ev, &c->limit_src, CLOCK_MONOTONIC,
						(uint64_t)n->cfg.caretaker_ms * 1000, 1000,
						on_limit, c);
	bl_node_events_open(n);
	bl_pulse_open(n, bl_mono_ns() + (uint64_t)n->cfg.caretaker_ms * 1000000);
	bl_event(BL_EVENT(CARETAKER_BEGUN, INFO, n->meta.name, .pid = (uint64_t)getpid(),
			  .reason = why),
		 "%s: the daemon %s; the caretaker (process %d) stands in for %d ms at most",
		 n->meta.name, why, getpid(), n->cfg.caretaker_ms);
	if (rc < 0) {
		bl_log(BL_LOG_ERR, "%s: caretaker: %s", n->meta.name, strerror(-rc));
		end_caretaker(c, "it cannot stand in");
	}
}

/* Receives a word, and with it the lock if there is one. Returns as recv() does. */
static ssize_t hear(struct caretaker *c, int fd, char *word)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { .iov_base = word, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	ssize_t len = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *h = len == 1 ? CMSG_FIRSTHDR(&m) : NULL;

	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
		memcpy(&c->n->keep_fd, CMSG_DATA(h), sizeof(int));
	return len;
}

/* Whoever has the lock can be told to end. */
static void get_lock(struct caretaker *c)
{
	int rc = fstat(c->n->keep_fd, &c->lock) ? -errno : open_socket(c);

	if (!rc)
		rc = sd_event_add_io(c->s->ev, &c->listen_src, c->listen_fd, EPOLLIN, on_connect,
				     c);
	if (rc >= 0)
		return;
	bl_log(BL_LOG_ERR, "%s: caretaker: cannot listen: %s", c->n->meta.name, strerror(-rc));
	end_caretaker(c, "it cannot listen");
}

static int on_chan(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct caretaker *c = ctx;
	char word = 0;
	ssize_t len;

	(void)src, (void)events;
	len = hear(c, fd, &word);
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (len == 1 && word == BL_CARETAKER_LOCK)
		get_lock(c);
	else if (len == 1 && word == BL_CARETAKER_END)
		end_caretaker(c, "it was told to");
	else if (c->n->keep_fd < 0)
		end_caretaker(c, "the daemon has died, and has not given it the lock");
	else
		take_over(c, len == 1 ? "was stopped" : "was killed or has crashed");
	return 0;
}

static int stand_by(struct caretaker *c, struct bl_err *err)
{
	const struct bl_caretaker_state *s = &c->state;
	struct bl_node *n = c->n;
	int rc;

	n->srv = c->s;
	n->cfg = s->cfg;
	n->meta = s->meta;
	n->netns_ino = s->netns_ino;
	bl_keep_configure(n); /* it makes a path of the namespace's number */
	n->clock.bus_offset_ns = s->bus_offset_ns;
	n->netns_fd = s->netns;
	n->keep_fd = -1; /* until the daemon gives it */
	n->page_fd = s->page;
	n->note_fd = s->note;
	n->beacon_sock = s->sock;
	n->clock.fd = -1;
	n->att = (struct bl_attached *)&s->nic;
	n->natt = 1;
	memcpy(n->dir, s->dir, sizeof(n->dir));
	rc = bl_beacon_start(c->s, err);
	n->clock.note_fd = s->note > 0 ? s->note : 0;
	if (!rc)
		rc = bl_clock_map(&n->clock, s->clock, err);
	if (!rc && s->beats)
		rc = bl_beacon_prepare(n, err);
	if (rc)
		return rc;
	rc = sd_event_add_io(c->s->ev, &c->chan_src, s->chan, EPOLLIN, on_chan, c);
	if (rc < 0)
		return bl_fail(err, -rc, "cannot stand by: %s", strerror(-rc));
	/*
	 * What it has used so far stays in memory, and so does the rest of it once it is used.
	 * Where that is not allowed it is only slower on a machine without free memory. Not
	 * MCL_FUTURE, with which a limit of locked memory makes mmap() fail later.
	 */
	mlockall(MCL_CURRENT | MCL_ONFAULT);
	hurry(c);
	say_word(c, BL_CARETAKER_READY);
	return 0;
}

/* Nothing is written or sent any more when this returns; the lock goes with the process. */
static void close_caretaker(struct caretaker *c)
{
	struct sockaddr_un a;

	bl_pulse_close(c->n, false);
	bl_beacon_remove(c->n);
	bl_beacon_stop(c->s);
	bl_clock_close(&c->n->clock); /* the socket of its source has a path */
	if (c->listen_fd < 0)
		return;
	if (c->stands_in)
		bl_keep_socket_addr(&a, c->n->cfg.role, c->n->netns_ino);
	else
		bl_keep_spare_addr(&a, c->n->cfg.role, c->n->netns_ino);
	unlink(a.sun_path);
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
	    c->state.magic != BL_CARETAKER_MAGIC || c->state.size != sizeof(c->state)) {
		bl_log(BL_LOG_ERR, "--caretaker is for the daemon's own use");
		return 2;
	}
	close(atoi(number));
	rc = bl_server_new(&c->s, &err);
	if (!rc)
		rc = stand_by(c, &err);
	if (!rc)
		rc = bl_server_run(c->s, &err);
	if (rc)
		bl_log(BL_LOG_ERR, "%s: caretaker: %s", c->state.meta.name, err.text);
	else if (c->stands_in)
		bl_event(BL_EVENT(CARETAKER_ENDED, INFO, c->state.meta.name,
				  .pid = (uint64_t)getpid(),
				  .reason = c->why ? c->why : "it got a signal"),
			 "%s: the caretaker ends: %s", c->state.meta.name,
			 c->why ? c->why : "it got a signal");
	if (c->s)
		close_caretaker(c);
	return rc ? 1 : 0;
}
