// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The daemon's side of the spare caretaker (caretaker.c says what that is, and why taking over is
 * safe). The event loop starts the spare once it turns, and looks after it every second:
 *
 * 	- one that has ended is replaced, after a second, two, four, up to a minute if that goes
 * 	  on, with the event spare_lost for each;
 * 	- one that is stopped by a signal (SIGSTOP), or is not ready in time, is killed
 * 	  and replaced;
 * 	- one that was told what is not so any more (a reload, another NIC) is told to end and
 * 	  replaced. What can change is in its state file, so there is nothing to keep in step.
 *
 * A spare that starts takes some 100 ms of a busy CPU, most of it in the dynamic loader, so it
 * starts with a high nice value: at that moment the node has just come back.
 *
 * Each wait for the spare has a limit, after which it is killed.
 */
#include "loader/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/event.h"
#include "base/log.h"
#include "base/privileges.h"
#include "base/sandbox.h"
#include "base/time.h"
#include "loader/caretaker_priv.h"
#include "loader/node_agent.h"
#include "loader/node_priv.h"
#include "loader/order/beacon.h"
#include "loader/pulse.h"
#include "maps/pulse_abi.h"

#define READY_MS     5000  /* how long a caretaker may take to report ready when it is needed */
#define LAZY_MS      60000 /* the same for a spare that nobody waits for */
#define TAKE_MS      1000  /* how long a ready one may take to take over */
#define END_MS       1000  /* how long one that was told to end may take */
#define LOOK_US      1000000
#define RETRY_MAX_NS 60000000000ULL
#define NICE_LOADING 10

struct bl_spare {
	struct bl_node *node;
	pid_t pid;           /* 0: there is none */
	int chan;            /* -1: there is none */
	bool ready;          /* it waits, and can take over */
	bool reaped;         /* @pid may be another process by now */
	uint64_t begun_ns;   /* CLOCK_MONOTONIC of its start */
	uint64_t next_ns;    /* the same: not before that the next one is started */
	unsigned int losses; /* in a row: of spares that did not wait for RETRY_MAX_NS */
	sd_event_source *chan_src, *look_src;
};

/* ---- one caretaker ---- */

/* @gently: nobody waits for it. */
static pid_t execute(const struct bl_node *n, const struct bl_caretaker_state *s, int state_fd,
		     bool gently)
{
	char number[16];
	char *const argv[] = { "barlined", "--caretaker", number, NULL };
	const int keep[] = { state_fd, s->clock, s->page, s->note, s->sock, s->netns, s->chan };
	unsigned int k;
	pid_t pid;
	int null;

	snprintf(number, sizeof(number), "%d", state_fd);
	/* Without the capability it could not set its nice value back. */
	gently &= !!(bl_caps_effective() & BL_CAP(CAP_SYS_NICE));
	pid = fork();
	if (pid)
		return pid;
	/*
	 * Only async-signal-safe calls between fork() and execv(): other threads may have held
	 * locks.
	 */
	close(n->lock_fd); /* the daemon may be killed before execv() closes it */
	setsid();
	if (gently)
		setpriority(PRIO_PROCESS, 0, NICE_LOADING);
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

static int write_state(const struct bl_caretaker_state *s, struct bl_err *err)
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

static int describe_node(struct bl_node *n, struct bl_caretaker_state *s, struct bl_err *err)
{
	int rc;

	*s = (struct bl_caretaker_state){
		.magic = BL_CARETAKER_MAGIC,
		.size = sizeof(*s),
		.cfg = n->cfg,
		.meta = n->meta,
		.netns_ino = n->netns_ino,
		.bus_offset_ns = n->clock.bus_offset_ns,
		.beats = n->cfg.role == BL_ROLE_HOST && !n->cfg.no_beacons,
		.clock = n->clock.fd,
		.page = n->page_fd,
		.note = n->note_fd,
		.netns = n->netns_fd,
		.sock = -1,
		.chan = -1,
	};
	snprintf(s->dir, sizeof(s->dir), "%s", n->dir);
	if (!s->beats)
		return 0;
	rc = bl_beacon_socket(n, err);
	if (rc)
		return rc;
	s->sock = n->beacon_sock;
	s->nic = n->att[0];
	s->nic.egress = NULL;
	return 0;
}

/* Starts a caretaker. Returns 0 or -errno. */
static int start(struct bl_spare *sp, bool gently, struct bl_err *err)
{
	struct bl_caretaker_state s;
	int chan[2], fd, rc;

	rc = describe_node(sp->node, &s, err);
	if (rc)
		return rc;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, chan))
		return bl_fail(err, errno, "cannot make a socket pair: %s", strerror(errno));
	s.chan = chan[1];
	fd = write_state(&s, err);
	rc = fd < 0 ? fd : 0;
	if (!rc) {
		sp->pid = execute(sp->node, &s, fd, gently);
		if (sp->pid < 0)
			rc = bl_fail(err, errno, "cannot start a caretaker: %s", strerror(errno));
		close(fd);
	}
	close(chan[1]);
	if (rc) {
		sp->pid = 0;
		close(chan[0]);
		return rc;
	}
	sp->chan = chan[0];
	sp->ready = false;
	sp->begun_ns = bl_mono_ns();
	return 0;
}

/* Waits for @word. Returns false if it does not come within @ms. */
static bool wait_word(struct bl_spare *sp, enum bl_caretaker_word word, int ms)
{
	struct pollfd p = { .fd = sp->chan, .events = POLLIN };
	uint64_t end = bl_mono_ns() + (uint64_t)ms * 1000000, now;
	char c;

	for (now = bl_mono_ns(); now < end; now = bl_mono_ns()) {
		int rc = poll(&p, 1, (int)((end - now) / 1000000) + 1);

		if (rc < 0 && errno == EINTR)
			continue;
		if (rc != 1 || recv(sp->chan, &c, 1, MSG_DONTWAIT) != 1)
			return false;
		if (c == (char)word)
			return true;
	}
	return false;
}

static bool say_word(struct bl_spare *sp, enum bl_caretaker_word word)
{
	char c = (char)word;

	return send(sp->chan, &c, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/*
 * Gives a caretaker that is ready the lock. One that still loads could not be told to end by the
 * next daemon, so it must not have the lock either.
 */
static bool arm(struct bl_spare *sp)
{
	char c = BL_CARETAKER_LOCK, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { .iov_base = &c, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &sp->node->keep_fd, sizeof(int));
	sp->ready = sendmsg(sp->chan, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
	return sp->ready;
}

/* The process is not this daemon's any more. */
static void forget(struct bl_spare *sp)
{
	sp->chan_src = sd_event_source_disable_unref(sp->chan_src);
	if (sp->chan >= 0)
		close(sp->chan);
	sp->chan = -1;
	sp->pid = 0;
	sp->ready = sp->reaped = false;
}

/* Ends the process, with the kindness of a word if @told, and reaps it. */
static void end(struct bl_spare *sp, bool told)
{
	int pidfd, status;
	struct pollfd p;

	if (!sp->pid)
		return;
	if (sp->reaped) {
		forget(sp);
		return;
	}
	pidfd = pidfd_open(sp->pid, 0);
	p = (struct pollfd){ .fd = pidfd, .events = POLLIN };
	/* One that is still loading reads the word when it is ready, which may be late. */
	if (!told || !sp->ready || !say_word(sp, BL_CARETAKER_END) || pidfd < 0 ||
	    poll(&p, 1, END_MS) != 1)
		kill(sp->pid, SIGKILL);
	/* The kernel may take its time over a process that was killed. */
	if (pidfd >= 0)
		poll(&p, 1, END_MS);
	waitpid(sp->pid, &status, WNOHANG);
	if (pidfd >= 0)
		close(pidfd);
	forget(sp);
}

/* ---- the spare ---- */

static bool is_wanted(const struct bl_node *n)
{
	/* A host that has left is missed by nobody. */
	return n->cfg.caretaker_ms >= 0 && n->keep_fd >= 0 && !n->has_left;
}

/*
 * For the node's pulse, which is below this file (docs/architecture.md), and so cannot ask for it.
 */
static void note_state(const struct bl_spare *sp)
{
	struct bl_node *n = sp->node;

	n->spare_state = !is_wanted(n) ? BL_PULSE_SPARE_NONE
			 : sp->ready   ? BL_PULSE_SPARE_READY
			 : sp->losses  ? BL_PULSE_SPARE_LOST
				       : BL_PULSE_SPARE_STARTS;
}

static void look_in(struct bl_spare *sp, uint64_t us)
{
	if (!sp->look_src)
		return;
	sd_event_source_set_time_relative(sp->look_src, us);
	sd_event_source_set_enabled(sp->look_src, SD_EVENT_ONESHOT);
}

/* The spare has ended, or is of no use: says so, and has another one started. */
static void lose(struct bl_spare *sp, const char *why)
{
	uint64_t now = bl_mono_ns(), wait = 1000000000;
	char who[64] = ""; /* none: @why says that none could be started */
	pid_t pid = sp->pid;

	end(sp, false);
	sp->losses = now - sp->begun_ns > RETRY_MAX_NS ? 1 : sp->losses + 1;
	wait <<= sp->losses < 8 ? sp->losses - 1 : 7;
	sp->next_ns = now + bl_min64(wait, RETRY_MAX_NS);
	note_state(sp);
	if (pid)
		snprintf(who, sizeof(who), "the spare caretaker (process %d) ", pid);
	bl_event(BL_EVENT(SPARE_LOST, WARN, sp->node->meta.name, .pid = (uint64_t)pid,
			  .reason = why),
		 "%s: %s%s; the next one is started in %llu ms", sp->node->meta.name, who, why,
		 (unsigned long long)(sp->next_ns - now) / 1000000);
}

static int on_chan(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct bl_spare *sp = ctx;
	char c;
	ssize_t n = recv(fd, &c, 1, MSG_DONTWAIT);

	(void)src, (void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n != 1) {
		lose(sp, "has ended");
	} else if (c == BL_CARETAKER_READY && arm(sp)) {
		note_state(sp);
		bl_event(BL_EVENT(SPARE_READY, INFO, sp->node->meta.name, .pid = (uint64_t)sp->pid),
			 "%s: the spare caretaker (process %d) is ready", sp->node->meta.name,
			 sp->pid);
	}
	return 0;
}

static void start_spare(struct bl_spare *sp)
{
	struct bl_err err;
	int rc = start(sp, true, &err);

	if (!rc) {
		rc = sd_event_add_io(sp->node->srv->ev, &sp->chan_src, sp->chan, EPOLLIN, on_chan,
				     sp);
		if (rc < 0)
			rc = bl_fail(&err, -rc, "cannot watch it: %s", strerror(-rc));
	}
	if (rc < 0) {
		sp->begun_ns = bl_mono_ns();
		lose(sp, err.text);
	}
}

/* Whether the process is stopped, or has ended, which its channel may not have shown yet. */
static bool is_useless(struct bl_spare *sp, const char **why)
{
	int status;

	if (waitpid(sp->pid, &status, WNOHANG | WUNTRACED) != sp->pid)
		return false;
	sp->reaped = !WIFSTOPPED(status);
	*why = sp->reaped ? "has ended" : "was stopped by a signal";
	return true;
}

static int on_look(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_spare *sp = ctx;
	uint64_t now = bl_mono_ns();
	const char *why;

	(void)src, (void)usec;
	if (!is_wanted(sp->node))
		end(sp, true);
	else if (!sp->pid && now >= sp->next_ns)
		start_spare(sp);
	else if (sp->pid && is_useless(sp, &why))
		lose(sp, why);
	else if (sp->pid && !sp->ready && now - sp->begun_ns > LAZY_MS * 1000000ULL)
		lose(sp, "does not begin");
	note_state(sp);
	look_in(sp, LOOK_US);
	return 0;
}

int bl_spare_open(struct bl_node *n, struct bl_err *err)
{
	struct bl_spare *sp = calloc(1, sizeof(*sp));
	int rc;

	if (!sp)
		return bl_fail(err, ENOMEM, "out of memory");
	sp->node = n;
	sp->chan = -1;
	rc = sd_event_add_time_relative(n->srv->ev, &sp->look_src, CLOCK_MONOTONIC, 0, 1000,
					on_look, sp);
	if (rc < 0) {
		free(sp);
		return bl_fail(err, -rc, "cannot look after a caretaker: %s", strerror(-rc));
	}
	n->spare = sp;
	return 0;
}

void bl_spare_renew(struct bl_node *n)
{
	if (!n->spare)
		return;
	end(n->spare, true);
	n->spare->next_ns = 0;
	n->spare->losses = 0;
	note_state(n->spare);
	look_in(n->spare, 0);
}

static void free_spare(struct bl_node *n)
{
	forget(n->spare);
	sd_event_source_disable_unref(n->spare->look_src);
	free(n->spare);
	n->spare = NULL;
}

void bl_spare_close(struct bl_node *n)
{
	if (!n->spare)
		return;
	end(n->spare, true);
	free_spare(n);
}

/* ---- handing over ---- */

/* Has a caretaker that is ready, or will be soon, take over. Returns 0 or -errno. */
static int have_taken(struct bl_spare *sp, struct bl_err *err)
{
	struct bl_node *n = sp->node;
	int rc = 0;

	if (!sp->pid)
		rc = start(sp, false, err);
	if (!rc && !sp->ready) {
		/* It may have been started gently, and now it is needed. */
		setpriority(PRIO_PROCESS, (id_t)sp->pid, 0);
		if (!wait_word(sp, BL_CARETAKER_READY, READY_MS) || !arm(sp))
			rc = bl_fail(err, ETIME, "the caretaker did not begin within %d ms",
				     READY_MS);
	}
	/* The record has one writer, and until the caretaker is that, beacons are sent here. */
	bl_beacon_keep(n, false);
	if (!rc && (!say_word(sp, BL_CARETAKER_GO) || !wait_word(sp, BL_CARETAKER_TOOK, TAKE_MS)))
		rc = bl_fail(err, ETIME, "the caretaker did not take over within %d ms", TAKE_MS);
	if (rc) {
		end(sp, false);
		bl_beacon_keep(n, true);
	}
	return rc;
}

int bl_node_hand_over(struct bl_node *n, struct bl_err *err)
{
	int rc = 0;

	if (!is_wanted(n)) {
		bl_spare_close(n);
		return 0;
	}
	if (!n->spare)
		rc = bl_spare_open(n, err);
	if (rc)
		return rc;
	if (n->agent)
		bl_node_agent_away(n, (uint32_t)n->cfg.caretaker_ms);
	rc = have_taken(n->spare, err);
	/* A spare may have been killed or stopped just now. One that was made for this has not. */
	if (rc)
		rc = have_taken(n->spare, err);
	if (rc) {
		bl_spare_close(n);
		return rc;
	}
	free_spare(n);
	/* Not unlocked: the caretaker has the same open file, and the lock is its now. */
	close(n->keep_fd);
	n->keep_fd = -1;
	bl_pulse_close(n, true);
	return 0;
}
