// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether a detach would break something, judged from the pinned maps: the node's daemon has
 * stopped.
 *
 * A switch is busy if ordered frames come in at its ports during a sample of a few dead_after.
 * Beacons do not count, so hosts without endpoints do not make a switch busy. On a metered port all
 * queued frames count, beacons included, because their counter does not distinguish them.
 *
 * A host is busy if it has endpoints whose process lives.
 */
#include "loader/busy.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/log.h"
#include "base/netns.h"
#include "base/time.h"
#include "core/order/line_core.h"
#include "loader/load/counts.h"
#include "loader/load/pin.h"
#include "loader/order/note.h"
#include "loader/order/silence_core.h"
#include "maps/host_abi.h"
#include "maps/switch_abi.h"

#define SAMPLE_MIN_NS 200000000ULL
#define SAMPLE_MAX_NS 3000000000ULL
#define NAMES_MAX     4 /* names that a message lists */

/* A list of names for a message, such as "h1, h2 and 3 more". */
struct names {
	char text[128];
	unsigned int n;
};

static void add_name(struct names *v, const char *name)
{
	size_t at = strlen(v->text);

	if (v->n++ < NAMES_MAX)
		snprintf(v->text + at, sizeof(v->text) - at, "%s%s", at ? ", " : "", name);
}

static const char *finish_names(struct names *v)
{
	size_t at = strlen(v->text);

	if (v->n > NAMES_MAX)
		snprintf(v->text + at, sizeof(v->text) - at, " and %u more", v->n - NAMES_MAX);
	return v->text;
}

/*
 * Returns a descriptor, or -1. A map that does not exist or has another layout cannot be read, and
 * does not prevent the detach.
 */
static int open_pinned_map(const char *dir, const char *name)
{
	char path[BL_PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/maps/%s", dir, name);
	return bpf_obj_get(path);
}

static int read_value(const char *dir, const char *map, uint32_t key, void *to, uint32_t size)
{
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info);
	int fd = open_pinned_map(dir, map), rc;

	if (fd < 0)
		return -1;
	rc = bpf_obj_get_info_by_fd(fd, &info, &len) || info.value_size != size ||
	     bpf_map_lookup_elem(fd, &key, to);
	close(fd);
	return rc ? -1 : 0;
}

static uint64_t ordered_frames(const struct bl_counts *c, bool metered)
{
	return c->n[BL_R_FORWARDED] + c->n[BL_R_TO_KERNEL] + (metered ? c->n[BL_R_QUEUED] : 0);
}

static int switch_busy(const char *dir, struct bl_err *err)
{
	struct bl_counts *was, *is;
	struct timespec pause;
	struct names ports = {};
	struct bl_sw_port port;
	struct bl_sw_cfg cfg;
	uint64_t frames = 0, ns, n;
	uint32_t k;
	int fd, rc;

	if (read_value(dir, BL_MAP_SW_CFG, 0, &cfg, sizeof(cfg)) || cfg.nports > BL_SW_PORTS_MAX)
		return 0;
	ns = 3 * cfg.dead_after_ns;
	ns = ns < SAMPLE_MIN_NS ? SAMPLE_MIN_NS : ns > SAMPLE_MAX_NS ? SAMPLE_MAX_NS : ns;
	pause = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				   .tv_nsec = (long)(ns % 1000000000) };
	fd = open_pinned_map(dir, BL_MAP_COUNTS);
	if (fd < 0)
		return 0;
	was = calloc(2 * (size_t)BL_SW_PORTS_MAX, sizeof(*was));
	is = was ? was + BL_SW_PORTS_MAX : NULL;
	rc = !was || bl_counts_read(fd, was, cfg.nports);
	if (!rc)
		nanosleep(&pause, NULL);
	rc = rc || bl_counts_read(fd, is, cfg.nports);
	close(fd);
	for (k = 0; k < cfg.nports && !rc; k++) {
		if (read_value(dir, BL_MAP_SW_PORTS, k, &port, sizeof(port)) || !port.ifindex)
			continue;
		n = ordered_frames(&is[k], port.metered) - ordered_frames(&was[k], port.metered);
		if (!n)
			continue;
		port.name[sizeof(port.name) - 1] = '\0';
		add_name(&ports, port.name);
		frames += n;
	}
	free(was);
	if (!ports.n)
		return 0;
	return bl_fail(err, EBUSY,
		       "%" PRIu64 " ordered frames came in by %s in the last %" PRIu64
		       " ms: without the programs no ordered frame passes this switch, and "
		       "reliable senders stand still until the programs are back; stop the senders "
		       "first, or pass --force",
		       frames, finish_names(&ports), ns / 1000000);
}

static int host_busy(const char *dir, struct bl_err *err)
{
	struct names eps = {};
	struct bl_ep_slot ep;
	char text[48];
	uint32_t k;

	for (k = 0; k < BL_PORT_COUNT; k++) {
		if (read_value(dir, BL_MAP_EPS, k, &ep, sizeof(ep)))
			break;
		if (ep.active != BL_EP_ACTIVE || (kill((pid_t)ep.pid, 0) && errno == ESRCH))
			continue;
		ep.name[sizeof(ep.name) - 1] = '\0';
		snprintf(text, sizeof(text), "%u (%s, pid %u)", ep.port, ep.name, ep.pid);
		add_name(&eps, text);
	}
	if (!eps.n)
		return 0;
	return bl_fail(err, EBUSY,
		       "there are endpoints: %s; without the programs they can neither send nor "
		       "receive; end them first, or pass --force",
		       finish_names(&eps));
}

/*
 * Puts one endpoint out, by the words of the host page that its library reads in every call. C may
 * not pass the C that was sent last any more: messages that wait for ACKs are above it; the
 * controller settles them when it announces the silent link. No process has been given messages
 * above the commit barrier that arrived last. Returns whether the entry @key has an endpoint.
 */
static bool put_endpoint_out(const struct bl_host_page *host, int note, int eps, uint32_t key)
{
	struct bl_note_arg a = { .kind = BL_NOTE_WORD };
	uint64_t c = host->sent_commit ? host->sent_commit : 1;
	struct bl_ep_slot ep;

	if (bpf_map_lookup_elem(eps, &key, &ep) || ep.active == BL_EP_FREE || ep.slot >= BL_EPS_MAX)
		return false;
	/* First, so that the egress program refuses its frames from now on. */
	ep.active = BL_EP_DEAD;
	bpf_map_update_elem(eps, &key, &ep, BPF_ANY);
	a.slot = ep.slot;
	a.word = host->word[ep.slot];
	if (a.word.out)
		return true;
	bl_line_stop(&a.word, c, host->commit);
	bl_line_out(&a.word, c, BL_OUT_DETACHED);
	bl_note(note, &a);
	return true;
}

/* Loads the program that writes the host page. Returns its descriptor or -errno. */
static int open_note(const char *dir)
{
	static const char *const names[] = { BL_MAP_CLOCK, BL_MAP_HOST_PAGE, BL_MAP_FAILURES };
	struct bl_err err;
	int fd[3], note = -ENOENT, k;

	for (k = 0; k < 3; k++)
		fd[k] = open_pinned_map(dir, names[k]);
	if (fd[0] >= 0 && fd[1] >= 0 && fd[2] >= 0)
		note = bl_note_open(fd[0], fd[1], fd[2], &err);
	for (k = 0; k < 3; k++)
		if (fd[k] >= 0)
			close(fd[k]);
	return note;
}

bool bl_host_put_all_out(const char *dir)
{
	const struct timespec a_flush = { .tv_nsec = 20000000 };
	int eps = open_pinned_map(dir, BL_MAP_EPS), note = open_note(dir);
	struct bl_host_page host = {};
	bool any = false;
	uint32_t k;

	if (eps >= 0 && note >= 0) {
		read_value(dir, BL_MAP_HOST_PAGE, 0, &host, sizeof(host));
		for (k = 0; k < BL_PORT_COUNT; k++)
			any |= put_endpoint_out(&host, note, eps, k);
		/*
		 * A process that had begun to send reaches the egress program before it is removed,
		 * and that refuses the frame.
		 */
		nanosleep(&a_flush, NULL);
	}
	if (note >= 0)
		close(note);
	if (eps >= 0)
		close(eps);
	return any;
}

void bl_host_wait_unheard(const char *dir)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	enum bl_silence_says says;
	struct bl_host_page page = {};
	struct bl_host_cfg cfg = {};
	struct bl_silence s;

	if (read_value(dir, BL_MAP_HOST_CFG, 0, &cfg, sizeof(cfg)))
		return;
	read_value(dir, BL_MAP_HOST_PAGE, 0, &page, sizeof(page));
	s = bl_silence_begin(&cfg, &page, bl_mono_ns());
	do {
		nanosleep(&pause, NULL);
		/* If this fails, the page stays as it is, and nothing seems to arrive. */
		read_value(dir, BL_MAP_HOST_PAGE, 0, &page, sizeof(page));
		says = bl_silence_sample(&s, &page, bl_mono_ns());
	} while (says == BL_SILENCE_WAIT);
	if (says == BL_SILENCE_LATE)
		bl_log(BL_LOG_WARN,
		       "%s: the neighbour does not show within %" PRIu64 " ms that it has noticed "
		       "the silence of this host; start the host again only when `barline show "
		       "failures` at the controller lists its failure",
		       dir, s.most_ns / 1000000);
}

int bl_node_busy(enum bl_role role, const char *netns, struct bl_err *err)
{
	char dir[BL_PATH_MAX];
	int old, rc;

	rc = bl_netns_enter(netns, &old, err);
	if (rc)
		return rc;
	snprintf(dir, sizeof(dir), "%s/%s-%" PRIu64, BL_BPFFS, bl_role_name(role), bl_netns_ino());
	rc = role == BL_ROLE_SWITCH ? switch_busy(dir, err) : host_busy(dir, err);
	bl_netns_leave(old);
	return rc;
}
