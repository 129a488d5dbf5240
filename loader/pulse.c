// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See pulse.h. */
#include "loader/pulse.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/proc.h"
#include "base/time.h"
#include "loader/load/pin.h"
#include "loader/node_agent.h"
#include "loader/node_priv.h"

#define READ_TRIES 8

struct bl_pulse_writer {
	struct bl_pulse p;
	int fd;
	sd_event_source *timer;
};

static void pulse_path(char *buf, size_t size, enum bl_role role, uint64_t ino)
{
	snprintf(buf, size, "%s/%s-%" PRIu64 ".pulse", BL_RUN_DIR, bl_role_name(role), ino);
}

static void write_pulse(struct bl_node *n)
{
	struct bl_pulse_writer *w = n->pulse;

	if (w->p.state == BL_PULSE_RUNS) {
		bl_node_agent_pulse(n, &w->p);
		w->p.spare = n->spare_state;
	}
	w->p.beat_ns = bl_mono_ns();
	w->p.seq_end = ++w->p.seq;
	if (pwrite(w->fd, &w->p, sizeof(w->p), 0) < 0)
		return; /* the reader finds an old one, and says so */
}

static int on_beat(sd_event_source *src, uint64_t usec, void *ctx)
{
	(void)usec;
	write_pulse(ctx);
	sd_event_source_set_time_relative(src, BL_PULSE_MS * 1000);
	return sd_event_source_set_enabled(src, SD_EVENT_ONESHOT);
}

void bl_pulse_open(struct bl_node *n, uint64_t until_ns)
{
	struct bl_pulse_writer *w = calloc(1, sizeof(*w));
	struct stat pids = { 0 };
	uint64_t started;
	char path[128];
	int rc = -ENOMEM;

	pulse_path(path, sizeof(path), n->cfg.role, n->netns_ino);
	if (w) {
		/* Opened anew: what an earlier writer may still have open is another file. */
		unlink(path);
		w->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
		rc = w->fd < 0 ? -errno : 0;
	}
	if (!rc)
		rc = sd_event_add_time_relative(n->srv->ev, &w->timer, CLOCK_MONOTONIC,
						BL_PULSE_MS * 1000, 1000, on_beat, n);
	if (rc < 0) {
		bl_log(BL_LOG_WARN,
		       "%s: cannot write %s: %s; `barline status` will not see this "
		       "daemon",
		       n->meta.name, path, strerror(-rc));
		if (w && w->fd >= 0)
			close(w->fd);
		free(w);
		return;
	}
	stat("/proc/self/ns/pid", &pids);
	w->p = (struct bl_pulse){ .magic = BL_PULSE_MAGIC,
				  .version = BL_PULSE_VERSION,
				  .size = sizeof(w->p),
				  .pid_ns = pids.st_ino,
				  .pid = (uint32_t)getpid(),
				  .state = until_ns ? BL_PULSE_CARETAKER : BL_PULSE_RUNS,
				  .until_ns = until_ns };
	bl_proc_stat(getpid(), BL_PROC_STARTED, &started);
	w->p.start_time = started;
	n->pulse = w;
	write_pulse(n);
}

void bl_pulse_close(struct bl_node *n, bool handed_over)
{
	struct bl_pulse_writer *w = n->pulse;

	if (!w)
		return;
	if (!handed_over) {
		w->p.state = BL_PULSE_STOPPED;
		write_pulse(n);
	}
	n->pulse = NULL;
	sd_event_source_disable_unref(w->timer);
	close(w->fd);
	free(w);
}

void bl_pulse_forget(enum bl_role role, uint64_t ino)
{
	char path[128];

	pulse_path(path, sizeof(path), role, ino);
	unlink(path);
}

int bl_pulse_read(enum bl_role role, uint64_t ino, struct bl_pulse *p)
{
	char path[128];
	int fd, k, rc = -EAGAIN;
	ssize_t len;

	pulse_path(path, sizeof(path), role, ino);
	/* O_NONBLOCK: whoever owns the directory may have put a FIFO there. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		rc = -errno;
	for (k = 0; fd >= 0 && rc == -EAGAIN && k < READ_TRIES; k++) {
		len = pread(fd, p, sizeof(*p), 0);
		if (len < 0)
			rc = -errno;
		else if ((size_t)len < sizeof(*p) || p->magic != BL_PULSE_MAGIC ||
			 p->version != BL_PULSE_VERSION || p->size != sizeof(*p))
			rc = len ? -EPROTO : -EAGAIN;
		else if (p->seq == p->seq_end)
			rc = 0;
	}
	if (fd >= 0)
		close(fd);
	if (rc)
		memset(p, 0, sizeof(*p));
	p->controller[sizeof(p->controller) - 1] = '\0';
	p->trouble[sizeof(p->trouble) - 1] = '\0';
	return rc;
}
