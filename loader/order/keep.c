// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The keeper of a node: the process that writes its clock record and, for a host, sends its
 * beacons. There is one at a time, which holds the lock BL_RUN_DIR/<role>-<netns>-keeper.lock.
 *
 * A daemon is the keeper while it runs. When it is stopped or has died, its spare becomes the
 * keeper as a caretaker until the next daemon takes over (loader/caretaker.c). If there is none,
 * the next daemon keeps the node from its first step on, before it loads anything: the programs of
 * before run, and the clock record is valid for clock_void_after_ms.
 */
#include "loader/order/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/iface.h"
#include "base/log.h"
#include "base/time.h"
#include "loader/load/pin.h"
#include "loader/node_priv.h"
#include "loader/order/beacon.h"
#include "loader/order/clock.h"
#include "loader/order/note.h"

#define KEEP_WAIT_MS  5000 /* how long a keeper may take to end */
#define KEEP_END_MS   1000 /* a caretaker that was told to end is killed after that */
#define KEEP_EARLY_MS 200  /* a daemon that was killed may still be ending */

static uint64_t now_ms(void)
{
	return bl_mono_ns() / 1000000;
}

static void sleep_ms(unsigned int ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000L };

	nanosleep(&t, NULL);
}

void bl_keep_lock_path(char *buf, size_t size, enum bl_role role, uint64_t ino)
{
	snprintf(buf, size, "%s/%s-%" PRIu64 "-keeper.lock", BL_RUN_DIR, bl_role_name(role), ino);
}

void bl_keep_socket_addr(struct sockaddr_un *a, enum bl_role role, uint64_t ino)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(a->sun_path, sizeof(a->sun_path), "%s/%s-%" PRIu64 "-caretaker.sock", BL_RUN_DIR,
		 bl_role_name(role), ino);
}

void bl_keep_spare_addr(struct sockaddr_un *a, enum bl_role role, uint64_t ino)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(a->sun_path, sizeof(a->sun_path), "%s/%s-%" PRIu64 "-spare.sock", BL_RUN_DIR,
		 bl_role_name(role), ino);
}

/* The path of the socket with which a source asks ptp4l. */
static void source_path(char *buf, size_t size, enum bl_role role, uint64_t ino)
{
	snprintf(buf, size, "%s/%s-%" PRIu64 "-ptp4l.sock", BL_RUN_DIR, bl_role_name(role), ino);
}

/* Returns a descriptor of the lock, or -errno; -EWOULDBLOCK: there is a keeper. */
static int try_keeper_lock(enum bl_role role, uint64_t ino)
{
	struct stat mine, there;
	char path[128];
	int fd, rc;

	bl_keep_lock_path(path, sizeof(path), role, ino);
	for (;;) {
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			rc = -errno;
			close(fd);
			return rc;
		}
		/* A detach may have removed the file between open() and flock(). */
		if (!fstat(fd, &mine) && !stat(path, &there) && mine.st_ino == there.st_ino)
			return fd;
		close(fd);
	}
}

static int connect_to(const struct sockaddr_un *a)
{
	int fd, rc;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)a, sizeof(*a))) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

/* Returns a connection to the caretaker, or -errno: there is none. */
static int connect_caretaker(enum bl_role role, uint64_t ino)
{
	struct sockaddr_un a;

	bl_keep_socket_addr(&a, role, ino);
	return connect_to(&a);
}

/* The same, or to the spare of a daemon that has died. */
static int connect_holder(enum bl_role role, uint64_t ino)
{
	int fd = connect_caretaker(role, ino);
	struct sockaddr_un a;

	if (fd >= 0)
		return fd;
	bl_keep_spare_addr(&a, role, ino);
	return connect_to(&a);
}

/* Tells the caretaker at @conn to end. One that does not answer is killed. */
static void end_caretaker(int conn)
{
	struct pollfd p = { .fd = conn, .events = POLLIN };
	struct ucred who = {};
	socklen_t len = sizeof(who);
	int pidfd;

	getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &who, &len);
	/* It has the other end open, so the pid is still its own. */
	pidfd = who.pid > 0 ? pidfd_open(who.pid, 0) : -1;
	if (send(conn, "end", 3, MSG_NOSIGNAL) == 3 && poll(&p, 1, KEEP_END_MS) == 0 &&
	    pidfd >= 0) {
		bl_log(BL_LOG_WARN, "the caretaker (process %d) does not answer and is killed",
		       who.pid);
		pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
	}
	if (pidfd >= 0)
		close(pidfd);
}

/* Returns the lock once the former keeper has ended, or -errno. A caretaker is told to end. */
static int obtain_keeper_lock(enum bl_role role, uint64_t ino, struct bl_err *err)
{
	uint64_t end = now_ms() + KEEP_WAIT_MS;
	int fd, conn;

	for (;;) {
		fd = try_keeper_lock(role, ino);
		if (fd != -EWOULDBLOCK)
			return fd < 0 ? bl_fail(err, -fd, "cannot lock the keeper's lock in %s: %s",
						BL_RUN_DIR, strerror(-fd))
				      : fd;
		conn = connect_holder(role, ino);
		if (conn >= 0) {
			end_caretaker(conn);
			close(conn);
		}
		if (now_ms() > end)
			return bl_fail(err, EBUSY,
				       "another process keeps the clock record of the %s of this "
				       "network namespace and does not end",
				       bl_role_name(role));
		sleep_ms(1);
	}
}

int bl_keep_end(enum bl_role role, uint64_t ino, struct bl_err *err)
{
	int fd = obtain_keeper_lock(role, ino, err);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

void bl_keep_forget(enum bl_role role, uint64_t ino)
{
	struct sockaddr_un a;
	char path[128];

	bl_keep_lock_path(path, sizeof(path), role, ino);
	unlink(path);
	bl_keep_socket_addr(&a, role, ino);
	unlink(a.sun_path);
	bl_keep_spare_addr(&a, role, ino);
	unlink(a.sun_path);
	source_path(path, sizeof(path), role, ino);
	unlink(path);
}

void bl_keep_configure(struct bl_node *n)
{
	n->clock.name = n->meta.name;
	n->clock.bound_us = n->cfg.clock_bound_us;
	n->clock.max_bound_us = n->cfg.clock_max_bound_us;
	n->clock.source = n->cfg.clock_source;
	n->clock.void_after_ms = n->cfg.clock_void_after_ms;
	n->clock.skew_ns = n->cfg.skew_ns;
	n->clock.base_ns = n->cfg.clock_base_ns;
	n->clock.note_fd = 0;
	n->clock.options = (struct bl_clock_options){
		.name = n->meta.name,
		.socket = n->cfg.clock_socket,
		.phc = n->cfg.clock_phc,
		.bound_default = n->cfg.clock_bound_default,
		.domain = n->cfg.clock_domain,
		.transport_specific = n->cfg.clock_transport_specific,
		.grandmaster = n->cfg.clock_grandmaster,
	};
	source_path(n->clock.options.own_path, sizeof(n->clock.options.own_path), n->cfg.role,
		    n->netns_ino);
}

void bl_keep_change(struct bl_node *n)
{
	pthread_mutex_lock(&n->srv->beacon_lock);
	n->clock.bound_us = n->cfg.clock_bound_us;
	n->clock.max_bound_us = n->cfg.clock_max_bound_us;
	n->clock.void_after_ms = n->cfg.clock_void_after_ms;
	n->clock.options.bound_default = n->cfg.clock_bound_default;
	n->clock.next_ns = 0;
	pthread_cond_signal(&n->srv->beacon_cond);
	pthread_mutex_unlock(&n->srv->beacon_lock);
}

int bl_keep_clock(struct bl_node *n, int map_fd, struct bl_err *err)
{
	int rc;

	n->clock.note_fd = n->note_fd > 0 ? n->note_fd : 0;
	rc = bl_clock_map(&n->clock, map_fd, err);

	if (rc || n->keep_fd < 0 || n->keeping)
		return rc;
	rc = bl_clock_adopt(&n->clock, err);
	if (!rc)
		bl_beacon_keep(n, true);
	return rc;
}

static bool has_caretaker(enum bl_role role, uint64_t ino)
{
	int conn = connect_caretaker(role, ino);

	if (conn >= 0)
		close(conn);
	return conn >= 0;
}

/*
 * Sends a host's beacons before its programs are loaded: the programs of before run, and their
 * barrier page is pinned.
 */
static void send_early_beacons(struct bl_node *n)
{
	struct bl_err why;

	if (!bl_beacons_here(&n->cfg) || n->att)
		return;
	n->att = calloc(2, sizeof(*n->att));
	if (!n->att || bl_iface_get(&n->att[0].iface, n->cfg.ifname, &why))
		return;
	if (n->page_fd >= 0 && bl_beacon_add(n, &why))
		bl_log(BL_LOG_WARN, "%s: no beacons while programs are loaded: %s", n->meta.name,
		       why.text);
}

/* Loads the program that writes a host's record. Returns 0 or -errno; a switch needs none. */
static int open_note(struct bl_node *n, const struct bl_node_ref *ref, int clock_fd,
		     struct bl_err *why)
{
	if (n->cfg.role != BL_ROLE_HOST)
		return 0;
	n->page_fd = bl_map_open(ref, BL_MAP_HOST_PAGE, sizeof(struct bl_host_page), true, why);
	if (n->page_fd < 0)
		return n->page_fd;
	n->failures_fd = bl_map_open(ref, BL_MAP_FAILURES, sizeof(struct bl_failures), true, why);
	if (n->failures_fd < 0)
		return n->failures_fd;
	n->note_fd = bl_note_open(clock_fd, n->page_fd, n->failures_fd, why);
	return n->note_fd < 0 ? n->note_fd : 0;
}

int bl_keep_early(struct bl_node *n, struct bl_err *err)
{
	struct bl_node_ref ref = { .role = n->cfg.role,
				   .netns_ino = n->netns_ino,
				   .meta = n->meta };
	uint64_t end = now_ms() + KEEP_EARLY_MS;
	struct bl_err why;
	int fd;

	if (n->fresh) {
		/* A caretaker would keep maps that no program uses any more. */
		n->keep_fd = obtain_keeper_lock(n->cfg.role, n->netns_ino, err);
		return n->keep_fd < 0 ? n->keep_fd : 0;
	}
	while ((n->keep_fd = try_keeper_lock(n->cfg.role, n->netns_ino)) < 0) {
		if (has_caretaker(n->cfg.role, n->netns_ino) || now_ms() > end)
			return 0;
		sleep_ms(1);
	}
	snprintf(ref.dir, sizeof(ref.dir), "%s", n->dir);
	fd = bl_map_open(&ref, BL_MAP_CLOCK, sizeof(struct bl_clock), true, &why);
	if (fd >= 0 && !open_note(n, &ref, fd, &why) && !bl_keep_clock(n, fd, &why))
		send_early_beacons(n);
	if (fd >= 0)
		close(fd);
	return 0;
}

int bl_keep_take_over(struct bl_node *n, struct bl_err *err)
{
	bool beats = bl_beacons_here(&n->cfg);
	int rc = beats ? bl_beacon_add(n, err) : 0;

	if (!rc && n->keep_fd < 0) {
		n->keep_fd = obtain_keeper_lock(n->cfg.role, n->netns_ino, err);
		rc = n->keep_fd < 0 ? n->keep_fd : bl_keep_clock(n, n->clock.fd, err);
	}
	return rc;
}

void bl_keep_close(struct bl_node *n)
{
	if (n->keep_fd < 0)
		return;
	flock(n->keep_fd, LOCK_UN); /* a child that was forked meanwhile has the same open file */
	close(n->keep_fd);
	n->keep_fd = -1;
}
